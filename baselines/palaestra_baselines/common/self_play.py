"""Self-play of two teams in many lanes: who sits where, collecting with epsilon-greedy utilities, and the replay.

FM3Q, VDN and IQL differ in how they combine the utilities Q_i(o_i, a_i) of the agents into what they regress on a
reward. All else they share: this file, `palaestra_baselines.common.utilities` (networks and players) and
`palaestra_baselines.common.td_learning` (the loop).
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from palaestra import registry
from palaestra.core.evaluation import teams_are_alike
from palaestra.core.fields import Choice, is_homogeneous
from palaestra.core.game import Game, Role
from palaestra.core.lanes import RUNNING
from palaestra.core.simulation import Simulation

RUN_BITS = 32
"""Lanes of run r have the seeds (r << RUN_BITS) + lane."""


@dataclass(frozen=True)
class Crew:
    """Agents that share a network: all of a role, or where the teams are unlike those of one team.

    Attributes:
        role: Whose tables they have.
        slots: Of the game, in rising order.
        members: The same, counted within the role.
        places: int64: index of each among its team's members of the crew.
    """

    role: Role
    slots: tuple[int, ...]
    members: tuple[int, ...]
    places: np.ndarray


class Roster:
    """Who plays in a two-team zero-sum game of discrete actions, and how the arrays of its roles become one.

    Attributes:
        game: The rules.
        alike: Whether the teams can change sides: equally many agents of each role, and no mirror that says otherwise.
        crews: Who shares a network, by a name for the weights.
        slots: Slots of each role, by name.
        sizes: Numbers that an agent of a role sees.
        choices: Alternatives of an agent of a role.
        actions: M, the most alternatives of any role.
        noops: int64 [A]: what an agent does that is not asked.
        signs: float32 [A]: 1 for members of the first team, -1 for those of the second.
    """

    def __init__(self, game: Game) -> None:
        """Reads the tables of a game.

        Raises:
            ValueError: The game has not two teams with opposite rewards, or an agent has not exactly one choice, or
                sees something else than numbers of one kind.
        """
        if len(game.teams) != 2 or not game.zero_sum:
            raise ValueError(f"{game.name} is no zero-sum game of two teams")
        if game.team_observation or game.lane_observation:
            raise ValueError(f"{game.name} shows things to a whole team or match: not supported by these methods")
        self.game, first = game, 0
        self.alike = teams_are_alike(game) and (game.mirror is None or game.mirror_swaps_teams)
        self.crews: dict[str, Crew] = {}
        self.slots: dict[str, slice] = {}
        self.sizes: dict[str, int] = {}
        self.choices: dict[str, int] = {}
        noops: list[int] = []
        for role in game.roles:
            choice = role.action[0]
            if len(role.action) != 1 or not isinstance(choice, Choice) or choice.shape:
                raise ValueError(f"{game.name}: agents of role {role.name!r} have not exactly one discrete choice")
            if choice.candidates is not None:
                raise ValueError(
                    f"{game.name}: the legal alternatives of {choice.name!r} are a list of candidates, which these "
                    "methods do not support: they need a mask of all alternatives"
                )
            if not is_homogeneous(role.observation):
                raise ValueError(f"{game.name}: agents of role {role.name!r} see numbers of several kinds")
            self.slots[role.name] = slice(first, first + len(role.agents))
            self.sizes[role.name] = sum(f.size for f in role.observation)
            self.choices[role.name] = choice.n
            self.crews |= crews_of(game, role, first, self.alike)
            noops += [choice.noop] * len(role.agents)
            first += len(role.agents)
        self.actions = max(self.choices.values())
        self.noops = np.array(noops)
        self.signs = np.where(game.team_index == 0, 1.0, -1.0).astype(np.float32)

    @property
    def agents(self) -> int:
        """A, the number of slots."""
        return len(self.noops)

    def see(self, sim: Simulation) -> dict[str, np.ndarray]:
        """Observations float32 ``[N, A_role, size]`` by role."""
        seen = sim.observations
        return {name: seen if isinstance(seen, np.ndarray) else seen[name] for name in self.slots}

    def legal(self, sim: Simulation) -> np.ndarray:
        """Bool ``[N, A, M]``: what an agent may do; its no-op alone if it is not asked."""
        mask = np.zeros((sim.num_envs, self.agents, self.actions), np.bool_)
        for name, slots in self.slots.items():
            allowed: Any = True if sim.legal is None else sim.legal
            mask[:, slots, : self.choices[name]] = allowed[name] if isinstance(allowed, dict) else allowed
        idle = ~(sim.alive & sim.acting)
        mask[idle] = False
        mask[idle, np.broadcast_to(self.noops, idle.shape)[idle]] = True
        return mask

    def act(self, sim: Simulation, actions: np.ndarray) -> None:
        """Writes the actions ``[N, A]`` into the simulation."""
        for name, slots in self.slots.items():
            target = sim.actions if isinstance(sim.actions, np.ndarray) else sim.actions[name]
            target[...] = actions[:, slots].reshape(target.shape)


def crews_of(game: Game, role: Role, first: int, alike: bool) -> dict[str, Crew]:
    """The crews of a role whose first slot is ``first``: one for both teams where they are alike, else one a team."""
    crews = {}
    for name, team in [(role.name, None)] if alike else [(f"{role.name}_{team}", team) for team in game.teams]:
        members = [k for k in range(len(role.agents)) if team is None or first + k in game.teams[team]]
        counts = dict.fromkeys(range(2), 0)
        places = np.zeros(len(members), np.int64)
        for row, k in enumerate(members):
            side = int(game.team_index[first + k])
            places[row], counts[side] = counts[side], counts[side] + 1
        if members:
            crews[name] = Crew(role, tuple(first + k for k in members), tuple(members), places)
    return crews


def make_lanes(id: str, options: tuple[str, ...], lanes: int) -> Simulation:
    """Lanes that start anew by themselves.

    Args:
        id: Registered id.
        options: Keywords of the game, ``name=value`` each.
        lanes: Number of matches at once.
    """
    return registry.make_batch(id, lanes, autoreset_mode="next_step", **keywords(options))


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


def scatter_starts(sim: Simulation, lanes: np.ndarray, rng: np.random.Generator) -> None:
    """Puts lanes that have just started onto positions drawn uniformly from all positions of an enumerable game.

    Raises:
        ValueError: The positions of the game are not enumerable.
    """
    enumeration = sim.game.enumeration
    if enumeration is None:
        raise ValueError(f"random starts need positions that can be counted; those of {sim.game.name} cannot")
    snapshot = sim.snapshot()
    rows = snapshot.states[lanes]
    for name, *_ in sim.game.state:
        rows[name] = 0
    enumeration.place(rows, rng.integers(enumeration.positions, size=len(lanes)))
    snapshot.states[lanes] = rows
    sim.restore(snapshot)


# --------------------------------------------------------------------------------------------------------- the replay


@dataclass(frozen=True)
class Batch:
    """Decisions drawn from the replay.

    Attributes:
        observations: float32 ``[B, A_role, size]`` by role, before the decision.
        next_observations: Likewise after it; of the last position where a match ended.
        actions: int64 ``[B, A]``.
        next_legal: bool ``[B, A, M]`` after the decision.
        alive: float32 ``[B, A]``, 1 for agents in the match before the decision.
        next_alive: Likewise after it.
        rewards: float32 ``[B]`` of the first team.
        goes_on: float32 ``[B]``, 0 where a rule ended the match; 1 at the horizon, whose values count.
        weights: float32 ``[B]``, 0 for a decision that was none: the lane was starting anew.
    """

    observations: dict[str, torch.Tensor]
    next_observations: dict[str, torch.Tensor]
    actions: torch.Tensor
    next_legal: torch.Tensor
    alive: torch.Tensor
    next_alive: torch.Tensor
    rewards: torch.Tensor
    goes_on: torch.Tensor
    weights: torch.Tensor


class Replay:
    """The last decisions of all lanes: a ring of rows, one a decision; the row after it shows where it led."""

    def __init__(self, roster: Roster, rows: int, lanes: int) -> None:
        """Allocates ``rows`` decisions of ``lanes`` lanes."""
        self.rows, self.lanes = rows, lanes
        shape, agents = (rows, lanes), roster.agents
        self.arrays: dict[str, np.ndarray] = {}
        for name, slots in roster.slots.items():
            self.arrays[f"see.{name}"] = np.zeros((*shape, slots.stop - slots.start, roster.sizes[name]), np.float32)
        self.arrays["legal"] = np.zeros((*shape, agents, roster.actions), np.bool_)
        self.arrays["alive"] = np.zeros((*shape, agents), np.uint8)
        self.arrays["actions"] = np.zeros((*shape, agents), np.uint8 if roster.actions <= 256 else np.int32)
        self.arrays["rewards"] = np.zeros(shape, np.float32)
        self.arrays["goes_on"] = np.zeros(shape, np.uint8)
        self.arrays["counts"] = np.zeros(shape, np.uint8)
        self._flat = {name: torch.from_numpy(array.reshape(rows * lanes, *array.shape[2:]))
                      for name, array in self.arrays.items()}  # fmt: skip
        self.roles = tuple(roster.slots)
        self.head = self.filled = 0

    def write_position(self, observations: dict[str, np.ndarray], legal: np.ndarray, alive: np.ndarray) -> None:
        """Writes what all agents see now, the position before the next decision."""
        for name in self.roles:
            self.arrays[f"see.{name}"][self.head] = observations[name]
        self.arrays["legal"][self.head] = legal
        self.arrays["alive"][self.head] = alive

    def write_decision(self, actions: np.ndarray, rewards: np.ndarray, ended: np.ndarray, counts: np.ndarray) -> None:
        """Writes what was done and what it brought, and goes on to the next row."""
        for name, value in (("actions", actions), ("rewards", rewards), ("goes_on", ~ended), ("counts", counts)):
            self.arrays[name][self.head] = value
        self.head = (self.head + 1) % self.rows
        self.filled = min(self.filled + 1, self.rows - 1)  # the row at the head waits for its decision

    def sample(self, rng: np.random.Generator, size: int) -> Batch:
        """Draws decisions uniformly."""
        rows = (self.head - 1 - rng.integers(self.filled, size=size)) % self.rows
        lanes = rng.integers(self.lanes, size=size)
        before = torch.from_numpy(rows * self.lanes + lanes)
        after = torch.from_numpy((rows + 1) % self.rows * self.lanes + lanes)
        flat = self._flat
        return Batch(
            {name: flat[f"see.{name}"][before] for name in self.roles},
            {name: flat[f"see.{name}"][after] for name in self.roles},
            flat["actions"][before].long(),
            flat["legal"][after],
            flat["alive"][before].float(),
            flat["alive"][after].float(),
            flat["rewards"][before],
            flat["goes_on"][before].float(),
            flat["counts"][before].float(),
        )

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps: the rows that have been written."""
        used = self.rows if self.filled == self.rows - 1 else self.filled + 1
        return {"head": self.head, "filled": self.filled, "arrays": {n: a[:used] for n, a in self.arrays.items()}}

    def restore(self, state: dict[str, Any]) -> None:
        """Takes back what `state` gave."""
        self.head, self.filled = state["head"], state["filled"]
        for name, array in state["arrays"].items():
            self.arrays[name][: len(array)] = array


# ------------------------------------------------------------------------------------------------------- the collector


class Collector:
    """Plays all lanes and fills the replay.

    Attributes:
        sim: The lanes.
        replay: What they have seen.
        steps: Decisions of matches so far, those left out in which a lane started anew.
    """

    def __init__(self, sim: Simulation, replay: Replay, roster: Roster, seed: int, random_starts: bool) -> None:
        """Starts all lanes under seeds of run ``seed``."""
        self.sim, self.replay, self.roster, self.random_starts = sim, replay, roster, random_starts
        self.rng = np.random.default_rng([seed, 1])
        self.steps = 0
        sim.reset(seed=seed << RUN_BITS)
        if random_starts:
            scatter_starts(sim, np.arange(sim.num_envs), self.rng)
        self._look()

    def _look(self) -> None:
        self.legal = self.roster.legal(self.sim)
        self.replay.write_position(self.roster.see(self.sim), self.legal, self.sim.alive)

    def play(self, values: np.ndarray | None, epsilon: float) -> None:
        """One decision in all lanes.

        Args:
            values: Utilities float32 ``[N, A, M]``; None plays at random.
            epsilon: Share of its decisions that an agent takes at random among what is legal.
        """
        draws = self.rng.random(self.legal.shape, np.float32)
        actions = np.where(self.legal, draws, -1.0).argmax(axis=2)
        if values is not None:
            greedy = np.where(self.legal, values, -np.inf).argmax(axis=2)
            explores = self.rng.random(actions.shape, np.float32) < epsilon
            actions = np.where(explores, actions, greedy)
        sim = self.sim
        running = sim.states["pending"] == RUNNING
        self.roster.act(sim, actions)
        sim.step()
        first, _ = self.roster.game.teams
        self.replay.write_decision(actions, sim.team_rewards(first), sim.terminated & running, running)
        self.steps += int(running.sum())
        if self.random_starts and not running.all():
            scatter_starts(sim, np.flatnonzero(~running), self.rng)
        self._look()

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {"sim": self.sim.snapshot(), "rng": self.rng.bit_generator.state, "steps": self.steps}

    def restore(self, state: dict[str, Any]) -> None:
        """Takes back what `state` gave; the replay first."""
        self.sim.restore(state["sim"])
        self.rng.bit_generator.state, self.steps = state["rng"], state["steps"]
        self._look()
