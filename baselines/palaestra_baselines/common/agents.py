"""Which agents of a game learn, which of them share weights, what they observe and what they may do.

A `Roster` turns the arrays of a `palaestra.core.run.simulation.Simulation`, one per role, into arrays over one axis of
A learning agents: all agents of the game, or those of the teams that learn while opponents play the others. An agent
that makes several choices in a decision makes one of all their combinations, see `JointChoice`; one that gives real
numbers gives all of them side by side, see `JointNumbers`, to methods that learn numbers.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

import numpy as np

from palaestra import registry
from palaestra.core.contract.fields import bounds, is_homogeneous
from palaestra.core.contract.rules import teams_are_alike
from palaestra.core.run.opponents import OpponentSpec
from palaestra.core.run.simulation import Simulation
from palaestra.game import Choice, Continuous, Game, Role

MOST = 4096
"""Combinations that an agent may have."""


MATES = "mates"
"""Keyword of `palaestra.make_batch` and `palaestra.evaluation.evaluate`, which the rules do not take."""


class JointChoice:
    """All choices of an agent as one.

    Attributes:
        sizes: Alternatives of each choice.
        n: Number of combinations.
        noop: The combination of the no-ops.
    """

    def __init__(self, game: Game, role: Role, takes_records: bool = False) -> None:
        """Reads a role's table of actions.

        Args:
            game: The rules.
            role: The role.
            takes_records: Whether fields of an observation may differ in dtype.

        Raises:
            ValueError: Its agents do not make single choices alone, legal alternatives are a list, there are more than
                `MOST` combinations, or observations differ in dtype.
        """
        choices = [choice for choice in role.action if isinstance(choice, Choice) and not choice.shape]
        if len(choices) != len(role.action):
            others = ", ".join(repr(f.name) for f in role.action if f not in choices)
            raise ValueError(
                f"{game.name}: agents of role {role.name!r} have other actions than single choices, {others}, which "
                "this method does not learn; real numbers alone are learnt by palaestra train mappo and ppo"
            )
        for choice in choices:
            if choice.candidates is not None:
                raise ValueError(
                    f"{game.name}: the legal alternatives of {choice.name!r} are a list of candidates, which these "
                    "methods do not support: they need a mask of all alternatives"
                )
        if not takes_records:
            check_observation(game, role)
        self.sizes = tuple(choice.n for choice in choices)
        self.n = prod(self.sizes)
        if self.n > MOST:
            raise ValueError(f"{game.name}: agents of role {role.name!r} have {self.n} combinations of their choices")
        self.noop = int(np.ravel_multi_index([choice.noop for choice in choices], self.sizes))

    def mask(self, allowed: np.ndarray) -> np.ndarray:
        """Legal combinations bool ``[..., n]`` of the masks of all choices side by side, ``[..., sum of sizes]``."""
        if len(self.sizes) == 1:
            return allowed != 0
        first, *rest = np.split(allowed != 0, np.cumsum(self.sizes)[:-1], axis=-1)
        for more in rest:
            first = (first[..., :, None] & more[..., None, :]).reshape(*first.shape[:-1], -1)
        return first

    def split(self, numbers: np.ndarray) -> np.ndarray:
        """Choices int64 ``[..., choices]`` of combinations ``[...]``; unchanged where there is one choice."""
        if len(self.sizes) == 1:
            return numbers
        return np.stack(np.unravel_index(numbers, self.sizes), axis=-1)


class JointNumbers:
    """All real numbers of an agent side by side, each scaled so that its range is [-1, 1].

    Attributes:
        n: How many.
        noop: 0: the rules put the no-ops where an agent does not act.
    """

    noop = 0

    def __init__(self, game: Game, role: Role) -> None:
        """Reads a role's table of actions.

        Raises:
            ValueError: Its agents make choices, too, or observations differ in dtype.
        """
        reals = [f for f in role.action if isinstance(f, Continuous)]
        if len(reals) != len(role.action):
            parts = (", ".join(repr(f.name) for f in role.action if (f in reals) == real) for real in (False, True))
            choices, numbers = parts
            raise ValueError(
                f"{game.name}: agents of role {role.name!r} make choices, {choices}, and give numbers, {numbers}: "
                "composite actions are not learnt; make the game with one of the two"
            )
        check_observation(game, role)
        low, high = (np.concatenate([pair[side].reshape(-1) for pair in map(bounds, reals)]) for side in (0, 1))
        self.n, self._middle, self._half = len(low), (low + high) / 2.0, (high - low) / 2.0

    def split(self, numbers: np.ndarray) -> np.ndarray:
        """Actions float64 ``[..., n]`` of scaled numbers ``[..., M]``, the first n of which count; clipped."""
        return self._middle + self._half * np.clip(numbers[..., : self.n], -1.0, 1.0)

    def scale(self, actions: np.ndarray) -> np.ndarray:
        """Scaled numbers ``[..., n]`` of actions ``[..., n]``: what `split` is given."""
        return (actions - self._middle) / self._half


def check_observation(game: Game, role: Role) -> None:
    """Refuses observations that are no vector.

    Raises:
        ValueError: Fields differ in dtype.
    """
    if not is_homogeneous(role.observation):
        raise ValueError(f"{game.name}: agents of role {role.name!r} see numbers of several kinds")


@dataclass(frozen=True)
class Group:
    """Learning agents that share weights: all of a role, or those of one team where the teams are not alike.

    Attributes:
        role: Their role.
        agents: Their indices among the A learning agents, rising.
        members: Their indices among the learning agents of the role.
        places: int64: index of each agent among the agents of its team in this group.
    """

    role: Role
    agents: tuple[int, ...]
    members: tuple[int, ...]
    places: np.ndarray


class Roster:
    """The learning agents of a game, all of which make choices, or all of which give real numbers.

    Attributes:
        game: The rules.
        gives_numbers: Whether actions are real numbers.
        alike: Whether the game has two teams that can change sides: equally many agents of each role, and no mirror
            that says otherwise.
        groups: Agents that share weights, by a name for the weights.
        columns: Place of each role's learning agents on the axis of the A learning agents.
        rows: Index of the same agents in the simulation's arrays of the role.
        slots: int64 [A]: slots of the learning agents in the game.
        team_of: int64 [A]: number of each agent's team.
        sizes: Length of the observation of an agent, by role.
        joint: All choices, or all numbers, of an agent as one action, by role.
        choices: Number of its alternatives, or of its numbers, by role.
        actions: M, the largest of these of any role.
        noops: int64 [A]: choice of an agent that does not act; 0 where it would give numbers.
        decides: bool [A]: agents that the learner plays; others have players of their own, see `leave_to_others`.
    """

    TAKES_RECORDS: ClassVar[bool] = False
    """Whether fields of an observation may differ in dtype: then `read_observations` reads them one by one."""

    def __init__(self, game: Game, teams: Iterable[str] | None = None, *, numbers: bool = False) -> None:
        """Reads the tables of a game.

        Args:
            game: The rules.
            teams: Names of the teams that learn; all if None.
            numbers: Whether the method learns real numbers, too.

        Raises:
            ValueError: No such team, an agent that learns has actions of other kinds, or observes fields of several
                dtypes.
        """
        learning = self._learning_slots(game, teams)
        self.game, first, count = game, 0, 0
        self.gives_numbers = numbers and gives_numbers(game, learning)
        self.alike = teams_are_alike(game) and (game.mirror is None or game.symmetric_teams)
        self.groups: dict[str, Group] = {}
        self.columns: dict[str, slice] = {}
        self.rows: dict[str, slice | list[int]] = {}
        self.sizes: dict[str, int] = {}
        self.joint: dict[str, Any] = {}
        self.choices: dict[str, int] = {}
        noops: list[int] = []
        for role in game.roles:
            rows = [k for k in range(len(role.agents)) if first + k in learning]
            if rows:
                choice = self.joint[role.name] = (
                    JointNumbers(game, role) if self.gives_numbers else JointChoice(game, role, self.TAKES_RECORDS)
                )
                self.columns[role.name] = slice(count, count + len(rows))
                self.rows[role.name] = as_slice(rows)
                self.sizes[role.name] = sum(f.size for f in role.observation)
                self.choices[role.name] = choice.n
                by_team = None if self.alike or len(game.teams) == 1 else tuple(game.teams)
                teams_of_rows = [int(game.team_index[first + k]) for k in rows]
                self.groups |= groups_of(role, teams_of_rows, count, by_team)
                noops += [choice.noop] * len(rows)
                count += len(rows)
            first += len(role.agents)
        self.slots = np.array(sorted(learning))
        self.team_of = np.asarray(game.team_index, np.int64)[self.slots]
        self.actions = max(self.choices.values())
        self.noops, self.decides = np.array(noops), np.ones(count, np.bool_)
        self._index = as_slice(self.slots.tolist())

    @staticmethod
    def _learning_slots(game: Game, teams: Iterable[str] | None) -> set[int]:
        names = list(game.teams) if teams is None else list(teams)
        for name in names:
            if name not in game.teams:
                raise ValueError(f"{game.name} has no team {name!r}: choose from {', '.join(game.teams)}")
        return {slot for name in names for slot in game.teams[name]}

    def check_shared(self) -> None:
        """Refuses to learn without what is shown to whole teams and matches; a learnt policy may play without it.

        Raises:
            ValueError: The game shows such things.
        """
        if self.game.team_observation or self.game.lane_observation:
            raise ValueError(f"{self.game.name} shows things to a whole team or match: not supported by these methods")

    def leave_to_others(self, sim: Simulation) -> None:
        """Asks agents that a simulation gives to players for nothing: the learner sees them, and decides for the rest.

        Raises:
            ValueError: No agent is left.
        """
        is_open = np.isin(self.slots, [slot for team in self.game.teams for slot in sim.open_slots(team)])
        if not is_open.any():
            raise ValueError(f"{self.game.name}: all agents of the team have players, and none is left to learn")
        self.decides = is_open

    @property
    def agents(self) -> int:
        """A, the number of learning agents."""
        return len(self.noops)

    @property
    def signs(self) -> np.ndarray:
        """float32 [A]: 1 for agents of the first team, -1 for those of the second."""
        return np.where(self.team_of == 0, 1.0, -1.0).astype(np.float32)

    def read_observations(self, sim: Simulation) -> dict[str, np.ndarray]:
        """Observations float32 ``[N, A_role, size]`` by role: views, valid until the next step."""
        read = sim.observations
        return {name: (read if isinstance(read, np.ndarray) else read[name])[:, r] for name, r in self.rows.items()}

    def read_alive(self, sim: Simulation) -> np.ndarray:
        """Bool ``[N, A]``: agents in the match."""
        return sim.alive[:, self._index]

    def read_asked(self, sim: Simulation) -> np.ndarray:
        """Bool ``[N, A]``: agents in the match that act now by the learner's decision."""
        return (sim.alive & sim.acting)[:, self._index] & self.decides

    def read_rewards(self, sim: Simulation) -> np.ndarray:
        """Rewards float32 ``[N, T]`` of all teams."""
        return np.stack([sim.team_rewards(team) for team in self.game.teams], 1).astype(np.float32)

    def read_legal(self, sim: Simulation) -> np.ndarray:
        """Bool ``[N, A, M]``: legal alternatives; an agent that does not act has its no-op alone.

        Of numbers those that an agent has; none where it does not act.
        """
        mask = np.zeros((sim.num_envs, self.agents, self.actions), np.bool_)
        for name, columns in self.columns.items():
            told: Any = None if self.gives_numbers else sim.legal
            allowed: Any = told[name] if isinstance(told, dict) else told
            mask[:, columns, : self.choices[name]] = (
                True if allowed is None else self.joint[name].mask(allowed[:, self.rows[name]])
            )
        idle = ~self.read_asked(sim)
        mask[idle] = False
        if not self.gives_numbers:
            mask[idle, np.broadcast_to(self.noops, idle.shape)[idle]] = True
        return mask

    def write_actions(self, sim: Simulation, actions: np.ndarray) -> None:
        """Writes the actions ``[N, A]``, or scaled numbers ``[N, A, M]``, into the simulation."""
        for name, columns in self.columns.items():
            target = sim.actions if isinstance(sim.actions, np.ndarray) else sim.actions[name]
            split = self.joint[name].split(actions[:, columns])
            target[:, self.rows[name]] = split.reshape(len(actions), -1, *target.shape[2:])


def gives_numbers(game: Game, slots: Iterable[int]) -> bool:
    """Whether agents in these slots give real numbers.

    Raises:
        ValueError: Some roles do, and others make choices alone.
    """
    roles = {role.name: role for role in (game.role_of(slot)[0] for slot in sorted(slots))}
    does = {name: any(isinstance(f, Continuous) for f in role.action) for name, role in roles.items()}
    if len(set(does.values())) > 1:
        real, other = (", ".join(name for name, is_real in does.items() if is_real == kind) for kind in (True, False))
        raise ValueError(
            f"{game.name}: agents of role {real} give numbers and those of {other} make choices: one method learns "
            "either"
        )
    return any(does.values())


def two_team_roster(game: Game) -> Roster:
    """All agents of a two-team zero-sum game, to learn.

    Raises:
        ValueError: The game has not two teams with opposite rewards, or `Roster` refuses it.
    """
    if len(game.teams) != 2 or not game.zero_sum:
        raise ValueError(f"{game.name} is no zero-sum game of two teams")
    roster = Roster(game)
    roster.check_shared()
    return roster


def one_team_roster(kind: type[Roster], game: Game, team: str, **options: bool) -> Roster:
    """The agents of a team, to learn; ``options`` and what it raises as of `Roster` and its `check_shared`."""
    roster = kind(game, [team], **options)
    roster.check_shared()
    return roster


def groups_of(role: Role, teams: Sequence[int], first: int, by_team: Sequence[str] | None) -> dict[str, Group]:
    """Groups of a role's learning agents.

    Args:
        role: The role.
        teams: Number of the team of each.
        first: Index of the first on the axis of all learning agents.
        by_team: Names of the teams where each has a group of its own; None for one group.
    """
    groups = {}
    for number, name in [(None, role.name)] if by_team is None else enumerate(f"{role.name}_{t}" for t in by_team):
        members = [k for k, team in enumerate(teams) if number is None or team == number]
        places = [sum(teams[j] == teams[k] for j in members if j < k) for k in members]
        if members:
            agents = tuple(first + k for k in members)
            groups[name] = Group(role, agents, tuple(members), np.array(places, np.int64))
    return groups


def as_slice(indices: list[int]) -> slice | list[int]:
    """Consecutive indices as a slice, which makes a view; others unchanged."""
    consecutive = indices == list(range(indices[0], indices[0] + len(indices)))
    return slice(indices[0], indices[-1] + 1) if consecutive else indices


def group_rows(group: Group, observations: Mapping[str, Any]) -> Any:
    """What a group observes, ``[..., A_group, size]``, of an array or tensor by role."""
    rows = observations[group.role.name]
    return rows if len(group.members) == rows.shape[-2] else rows[..., group.members, :]


# ----------------------------------------------------------------------------------------------------------- the lanes


def make_lanes(
    id: str, options: tuple[str, ...], lanes: int, opponents: Mapping[str, OpponentSpec] | None = None
) -> Simulation:
    """Lanes with autoreset.

    Args:
        id: Registered id.
        options: Keywords of the game, ``name=value`` each.
        lanes: Number of matches at once.
        opponents: Players of the teams that do not learn.
    """
    return registry.make_batch(id, lanes, autoreset_mode="next_step", opponents=opponents, **keywords(options))


def make_rules(id: str, options: tuple[str, ...]) -> Game:
    """The rules of an id by texts as of `keywords`."""
    return registry.make_game(id, **rule_keywords(options))[0]


def rule_keywords(options: tuple[str, ...]) -> dict[str, Any]:
    """Keywords of the rules from texts as of `keywords`: ``mates=``, which is for what plays them, is left out."""
    return {name: value for name, value in keywords(options).items() if name != MATES}


def opponents_of(id: str, options: tuple[str, ...], team: str, opponent: str) -> dict[str, str]:
    """The player of the team that does not learn; none in a game of one team.

    Raises:
        ValueError: None of the teams has this name, nobody plays the other, or somebody is to play where there is none.
    """
    game = make_rules(id, options)
    if list(game.teams) == [team] and not opponent:
        return {}
    if team not in game.teams or len(game.teams) != 2:
        raise ValueError(
            f"--team is one of two teams; {game.name} has {', '.join(game.teams)}, got {team!r}"
            + (" (one team learns alone, with --opponent '')" if len(game.teams) == 1 else "")
        )
    if not opponent:
        raise ValueError(f"--team {team} learns against a script: say which by --opponent")
    return {other: opponent for other in game.teams if other != team}


def check_mates(id: str, options: tuple[str, ...], team: str, team_learner: str | None) -> None:
    """Refuses teammates that others play, ``mates=``, where nobody learns beside them.

    Args:
        id: Registered id.
        options: Texts as of `keywords`.
        team: Name of the team that learns.
        team_learner: Name of the method if it learns whole teams alone.

    Raises:
        ValueError: Says what to do.
    """
    if MATES not in keywords(options):
        return
    if team_learner is not None:
        raise ValueError(f"{team_learner} learns whole teams: leave --options mates= out, or learn one agent by mappo")
    first = next(iter(make_rules(id, options).teams))
    if team != first:
        raise ValueError(
            f"--options mates= gives teammates to the first agent of the first team: say --team {first}, got {team!r}"
        )


def keywords(options: tuple[str, ...]) -> dict[str, Any]:
    """Keywords of a game from ``name=value`` texts, values as in Python, else text.

    Raises:
        ValueError: Not of that form.
    """
    values = {}
    for text in options:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise ValueError(f"an option of the game is name=value, got {text!r}")
        try:
            values[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            values[name] = value
    return values
