"""All positions and transitions of a small game, found by playing its own step from each position.

A game declares in its `palaestra.game.Enumeration` how its positions are counted. Here each of them is written into
lanes of a simulation, one lane for every joint action and every outcome of the rules' draw, and one decision is played.
So the table is exact for the environment, and the rules are written once.

The horizon is ignored: a match in the table ends by a rule or never.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from palaestra import registry
from palaestra.core.contract.actions import ActionTable
from palaestra.core.files.short_repr import fields_html, short_repr
from palaestra.core.rng import GOLDEN, stream_before
from palaestra.core.run.kernel import KernelSimulation
from palaestra.core.run.simulation import Simulation
from palaestra.game import Continuous, Game

CHUNK = 1 << 15
"""Lanes that are played at once."""
MEMORY_SHARE = 0.25
"""Share of the machine's memory that a table may take unless a limit is given."""
INTERPRETED_TO = 2_000
"""Transitions up to which the rules are interpreted: compiling a game takes longer than playing them."""


@dataclass(frozen=True, eq=False)
class PositionTable:
    """The transitions of a two-team game. P positions, C cells (pairs of joint actions, over all positions).

    A joint action of a team is a number: its agents' choices as the digits, the first agent's the most significant. A
    position's cells are its row team's joint actions by its column team's, row after row; only legal joint actions of
    agents to act have a number (an agent that does not act does nothing).

    Attributes:
        game: The rules.
        parameters: Their numbers where they are not the default.
        teams: Names of the team of the rows and of the team of the columns.
        numbers: The game's own numbers of the positions, int64 ``[P]``.
        index: Row of each of the game's positions in this table, int32: that of its representative.
        symmetric: Whether positions that are alike by symmetry are in the table once.
        joint_actions: Of either team, the choices of each joint action: int64 ``[J, choices of the team]``.
        action_start: Of either team, where a position's joint actions begin in `actions`, int64 ``[P + 1]``.
        actions: Of either team, numbers of joint actions, int32.
        cell_start: Where a position's cells begin, int64 ``[P + 1]``.
        rewards: What the row team gets in a cell, the mean over the draw, float64 ``[C]``.
        next: Rows of the table that a cell leads to, one for each outcome of the draw, -1 where a rule ends the match;
            int32 ``[C, chance_outcomes]``.
        starts: Rows of the table at which matches start, int64.
        start_probabilities: How often, float64.
    """

    game: Game
    parameters: dict[str, float]
    teams: tuple[str, str]
    numbers: np.ndarray
    index: np.ndarray
    symmetric: bool
    joint_actions: tuple[np.ndarray, np.ndarray]
    action_start: tuple[np.ndarray, np.ndarray]
    actions: tuple[np.ndarray, np.ndarray]
    cell_start: np.ndarray
    rewards: np.ndarray
    next: np.ndarray
    starts: np.ndarray
    start_probabilities: np.ndarray

    def __repr__(self) -> str:
        """One line."""
        return short_repr(self)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return fields_html(self)

    def __len__(self) -> int:
        """Number of positions in the table."""
        return len(self.numbers)

    @property
    def chance_outcomes(self) -> int:
        """Outcomes of the rules' draw."""
        return self.next.shape[1]

    def side(self, team: str) -> int:
        """0 for the team of the rows, 1 for that of the columns.

        Raises:
            ValueError: No such team.
        """
        if team not in self.teams:
            raise ValueError(f"{self.game.name} has no team {team!r}: choose from {', '.join(self.teams)}")
        return self.teams.index(team)

    def actions_of(self, team: str, position: int) -> np.ndarray:
        """Numbers of the joint actions that a team has in a position."""
        side = self.side(team)
        start = self.action_start[side]
        return self.actions[side][start[position] : start[position + 1]]

    def dense(self, team: str, flat: np.ndarray) -> np.ndarray:
        """Numbers by position and joint action, ``[P, J]``, of numbers along `actions`; 0 where there is no action."""
        side = self.side(team)
        out = np.zeros((len(self), len(self.joint_actions[side])))
        rows = np.repeat(np.arange(len(self)), np.diff(self.action_start[side]))
        out[rows, self.actions[side]] = flat
        return out

    def describe(self, position: int) -> str:
        """A position for error messages."""
        return f"position {int(self.numbers[position])}"


def solvable_game(game_or_id: Game | str, keywords: dict[str, Any]) -> tuple[Game, dict[str, float]]:
    """The rules and parameters of the given id, game or table.

    Raises:
        ValueError: The game cannot be enumerated; the message names what is missing.
        TypeError: A keyword that the game does not know.
    """
    if isinstance(game_or_id, str):
        game, parameters = registry.make_game(game_or_id, **keywords)
    else:
        game, parameters = game_or_id, keywords
    lacks = None
    if len(game.teams) != 2:
        lacks = f"two teams: it has {len(game.teams)}"
    elif not game.zero_sum:
        lacks = "rewards that add up to zero (Game.zero_sum)"
    elif any(isinstance(f, Continuous) for role in game.roles for f in role.action):
        lacks = "discrete actions only: it has continuous ones"
    elif game.step is None:
        lacks = "rules of its own (Game.step): another engine moves its bodies"
    elif game.enumeration is None:
        lacks = "a count of its positions (Game.enumeration)"
    if lacks:
        raise ValueError(f"{game.name} cannot be solved exactly, it lacks {lacks}")
    return game, parameters


def enumerate_positions(
    game_or_id: Game | str, *, symmetry: bool = True, limit: int | None = None, **keywords: Any
) -> PositionTable:
    """Plays every joint action in every position.

    Args:
        game_or_id: Registered id, or the rules themselves.
        symmetry: Keep one position of those that are alike (`Enumeration.canonical`). Enough for values; policies in
            general are not alike where positions are, so exploitability needs ``symmetry=False``.
        limit: Most transitions to hold; None for what fits into a quarter of the machine's memory.
        **keywords: The game's structural keywords and parameters.

    Raises:
        ValueError: The game cannot be enumerated or has too many positions; the message gives the remedy.
        RuntimeError: The game's enumeration and its rules do not fit each other.
    """
    game, parameters = solvable_game(game_or_id, keywords)
    counting = game.enumeration
    assert counting is not None
    if limit is None:
        limit = int(MEMORY_SHARE * machine_memory_bytes()) // _bytes_per_transition(counting.chance_outcomes)
    if counting.positions > limit:
        raise _too_many(game, counting.positions, limit)
    numbers, index = _representatives(game, symmetry)
    board = Board(game, parameters)
    joints = tuple(joint_actions(game, team) for team in game.teams)
    starts, actions = _list_actions(board, numbers, joints)
    rows, columns = np.diff(starts[0]), np.diff(starts[1])
    cells = np.zeros(len(numbers) + 1, np.int64)
    np.cumsum(rows * columns, out=cells[1:])
    if cells[-1] * counting.chance_outcomes > limit:
        raise _too_many(game, int(cells[-1]) * counting.chance_outcomes, limit)
    rewards = np.zeros(cells[-1])
    following = np.empty((cells[-1], counting.chance_outcomes), np.int32)
    for lo, hi in _chunks(cells, max(CHUNK // counting.chance_outcomes, 1)):
        position, row, column = _cells(cells, columns, lo, hi)
        red, blue = actions[0][starts[0][position] + row], actions[1][starts[1][position] + column]
        words = board.words_of((joints[0][red], joints[1][blue]))
        for outcome in range(counting.chance_outcomes):
            reward, reached = board.play(numbers[position], words, outcome)
            rewards[lo:hi] += reward
            following[lo:hi, outcome] = np.where(reached < 0, -1, index[reached])
    rewards /= counting.chance_outcomes
    begun, how_often = np.unique(index[board.kickoffs()], return_counts=True)
    return PositionTable(
        game,
        parameters,
        (board.teams[0], board.teams[1]),
        numbers,
        index,
        len(numbers) < counting.positions,
        (joints[0], joints[1]),
        starts,
        actions,
        cells,
        rewards,
        following,
        begun.astype(np.int64),
        how_often / counting.initial_chance_outcomes,
    )


def _representatives(game: Game, symmetry: bool) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the positions to visit, int64 ``[P]``, and for each of the game's its representative.

    Raises:
        RuntimeError: The canonical position of a canonical position is another.
    """
    counting = game.enumeration
    assert counting is not None
    everything = np.arange(counting.positions, dtype=np.int64)
    if not symmetry or counting.canonical is None:
        return everything, everything.astype(np.int32)
    stands_for = np.concatenate([counting.canonical(part) for part in _parts(everything)])
    numbers = np.flatnonzero(stands_for == everything)
    index = np.full(counting.positions, -1, np.int32)
    index[numbers] = np.arange(len(numbers), dtype=np.int32)
    index = index[stands_for]
    if (index < 0).any():
        raise RuntimeError(f"{game.name}: Enumeration.canonical(canonical(n)) is not canonical(n)")
    return numbers, index


def machine_memory_bytes() -> int:
    """Memory of the machine; 8 GiB where the system does not report it."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 8 << 30


def _bytes_per_transition(chance_outcomes: int) -> int:
    return 4 + 8 // chance_outcomes + 1


def _too_many(game: Game, transitions: int, limit: int) -> ValueError:
    assert game.enumeration is not None
    positions, chance_outcomes = game.enumeration.positions, game.enumeration.chance_outcomes
    at_least = "at least " if transitions == positions else ""
    return ValueError(
        f"{game.name} has {positions:,} positions with {at_least}{transitions:,} transitions, more than "
        f"limit={limit:,}: take a smaller board, use symmetry=True if that is enough, or raise limit= (about "
        f"{transitions * _bytes_per_transition(chance_outcomes) / 2**30:.1f} GiB)"
    )


def _bytes(records: np.ndarray) -> np.ndarray:
    return records.view(np.uint8).reshape(len(records), -1)


def joint_actions(game: Game, team: str) -> np.ndarray:
    """Choices of each joint action of a team, int64 ``[J, choices]``: agent after agent, the first the slowest."""
    words = ActionTable(game).words
    sizes = [int(word["n"]) for slot in game.teams[team] for word in words if word["agent"] == slot]
    return np.indices(sizes).reshape(len(sizes), -1).T.copy()


def _parts(numbers: np.ndarray, size: int = 1 << 18) -> Iterator[np.ndarray]:
    return (numbers[k : k + size] for k in range(0, len(numbers), size))


def _chunks(cells: np.ndarray, size: int) -> Iterator[tuple[int, int]]:
    total = int(cells[-1])
    return ((lo, min(lo + size, total)) for lo in range(0, total, size))


def _cells(cells: np.ndarray, columns: np.ndarray, lo: int, hi: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Position, row and column of the cells [lo, hi)."""
    cell = np.arange(lo, hi)
    position = np.searchsorted(cells, cell, side="right") - 1
    row, column = np.divmod(cell - cells[position], columns[position])
    return position, row, column


def _list_actions(board: Board, numbers: np.ndarray, joints: tuple[np.ndarray, ...]) -> Any:
    """The joint actions that either team has in each position: where they begin, and their numbers."""
    counts: tuple[list, list] = ([], [])
    listed: tuple[list, list] = ([], [])
    for part in _parts(numbers, CHUNK):
        board.write_state(part)
        for side, team in enumerate(board.teams):
            allowed = board.allowed(team, joints[side])
            counts[side].append(allowed.sum(1))
            listed[side].append(np.nonzero(allowed)[1].astype(np.int32))
    starts = tuple(np.concatenate([[0], np.cumsum(np.concatenate(c))]) for c in counts)
    return starts, tuple(np.concatenate(x) for x in listed)


class Board:
    """A simulation on which positions are set up: what enumeration and the players of `palaestra.exact` look at.

    Attributes:
        sim: The simulation, of as many lanes as the positions that were placed last.
        teams: Names of the two teams.
    """

    def __init__(self, game: Game, parameters: dict[str, float]) -> None:
        """Prepares an empty record.

        Args:
            game: The rules.
            parameters: Their numbers.
        """
        assert game.enumeration is not None
        self.game, self.parameters, self.enumeration = game, parameters, game.enumeration
        self.teams = tuple(game.teams)
        self._words = ActionTable(game).words
        self._compiled = self._most_transitions() > INTERPRETED_TO
        self._make(1)

    def _most_transitions(self) -> int:
        """Transitions if every joint action is legal in every position."""
        return self.enumeration.positions * self.enumeration.chance_outcomes * prod(int(n) for n in self._words["n"])

    def _simulation(self, lanes: int) -> Simulation:
        options: dict[str, Any] = {"autoreset_mode": "off", "parameters": self.parameters, "compiled": self._compiled}
        return KernelSimulation(self.game, lanes, **options)

    def _make(self, lanes: int) -> None:
        self.sim = self._simulation(lanes)
        self._blank = self.sim.states[:1].copy()
        self._blank["info"]["winner"] = -1
        self._blank["seeded"] = 1
        self.sim.reset(seed=0)

    def write_state(self, numbers: np.ndarray, outcome: int | None = None) -> None:
        """Sets up positions, one a lane, the rules' draw about to fall on ``outcome``."""
        if len(numbers) != self.sim.num_envs:
            self._make(len(numbers))
        distinct, which = np.unique(numbers, return_inverse=True)  # a position fills many lanes
        states = np.repeat(self._blank, len(distinct))
        self.enumeration.write_state(states, distinct)
        # Rows of bytes: NumPy copies records member by member, ten times slower.
        np.take(_bytes(states), which, axis=0, out=_bytes(self.sim.states))
        if outcome is not None:
            self.sim.states["rng"] = stream_before(np.array((outcome + 0.5) / self.enumeration.chance_outcomes))
        if outcome is None or self.game.legal is not None:  # a decision reads the masks and nothing else
            self.sim.refresh()

    def allowed(self, team: str, joints: np.ndarray) -> np.ndarray:
        """Which joint actions a team has in the positions placed, bool ``[N, J]``."""
        n = self.sim.num_envs
        active = self.sim.alive & self.sim.acting
        allowed = np.ones((n, len(joints)), np.bool_)
        for k, w in enumerate(self._columns(team)):
            word = self._words[w]
            alternatives = np.arange(word["n"])
            if self.game.legal is not None:
                open_ = self.sim.action_table.allowed(self.sim.buffers.mask_bytes, w)
            else:
                open_ = active[:, word["agent"], None] | (alternatives == word["noop"])
            allowed &= open_[:, joints[:, k]]
        return allowed

    def words_of(self, choices: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        """Action words int64 ``[N, W]`` of both teams' choices, in the order of the action table."""
        words = np.empty((len(choices[0]), len(self._words)), np.int64)
        for team, chosen in zip(self.teams, choices, strict=True):
            words[:, self._columns(team)] = chosen
        return words

    def _columns(self, team: str) -> list[int]:
        slots = self.game.teams[team]
        return [w for slot in slots for w in range(len(self._words)) if self._words[w]["agent"] == slot]

    def play(self, numbers: np.ndarray, words: np.ndarray, outcome: int) -> tuple[np.ndarray, np.ndarray]:
        """Plays one decision from positions.

        Returns:
            Rewards of the first team, float64 ``[N]``, and the positions reached, -1 where a rule ended the match.

        Raises:
            RuntimeError: More than one random draw in a decision, or a position reached has no number.
        """
        self.write_state(numbers, outcome)
        before = self.sim.states["rng"].copy()
        self.sim.buffers.action_words[:, self._words["column"]] = words
        self.sim.step()
        draws = self.sim.states["rng"] - before
        if not ((draws == 0) | (draws == GOLDEN)).all():
            raise RuntimeError(f"{self.game.name}: a step draws more than once, which no enumeration can follow")
        ended = self.sim.terminated
        reached = np.full(len(numbers), -1, np.int64)
        reached[~ended] = self.enumeration.state_index(self.sim.states[~ended])
        if ((reached < 0) & ~ended).any() or (reached >= self.enumeration.positions).any():
            raise RuntimeError(f"{self.game.name}: Enumeration.state_index gives numbers outside [0, positions)")
        return self.sim.team_rewards(self.teams[0]).astype(np.float64), reached

    def kickoffs(self) -> np.ndarray:
        """Positions after the reset, one for each outcome of its draw."""
        chance_outcomes = self.enumeration.initial_chance_outcomes
        sim = self._simulation(chance_outcomes)
        sim.seed(0)
        sim.states["rng"] = stream_before((np.arange(chance_outcomes) + 0.5) / chance_outcomes)
        sim.reset()
        return self.enumeration.state_index(sim.states)
