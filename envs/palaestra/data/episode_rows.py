"""What one team sees, does and is paid in all lanes of a simulation, gathered to complete episodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces

from palaestra.console import near
from palaestra.core.compile.batch_loop import RUNNING
from palaestra.core.faces.agent_io import AgentIO
from palaestra.core.run.simulation import Simulation

INFO = "info "
"""Begins the names of the columns that are fields of ``sim.info``."""
NO_TASK = -1
"""Task of an episode whose game has none."""


class Key(NamedTuple):
    """Which match of which lane an episode is; it does not depend on the number of lanes.

    Attributes:
        seed: Seed of the lane.
        match: Number of the match since the lane was seeded; the seed alone decides match 0.
        task: Number of the task, or `NO_TASK`.
    """

    seed: int
    match: int
    task: int


class EpisodeRows:
    """Gathers the episodes of a team.

    An episode of T decisions has T + 1 rows. Row t holds what is seen before decision t, and the decision: action,
    reward, end. The last row holds what is seen after the last decision, and zeros.

    Attributes:
        sim: The lanes.
        team: Name of the team; it acts as one agent with a joint action.
        observation_space: Flat Box of what its agents see side by side.
        action_space: Joint action: Box, Discrete or MultiDiscrete.
        dtype: Record of a row: ``observation``, ``action``, ``reward``, ``terminated``, ``truncated``, columns that
            begin with `INFO`, and those of `Key`.
    """

    def __init__(self, sim: Simulation, team: str | None = None, infos: Sequence[str] = ()) -> None:
        """Finds the team's arrays.

        Args:
            sim: Lanes, in any autoreset mode.
            team: The team; may be left out where there is one.
            infos: Fields of ``sim.info`` to be kept, one value a row.

        Raises:
            ValueError: No such team or field, or what is seen or done is no flat vector; says which.
        """
        game = sim.game
        if team is None and len(game.teams) > 1:
            raise ValueError(f"{game.name} has teams {', '.join(game.teams)}: say which one is recorded (team)")
        self.sim, self.team = sim, next(iter(game.teams)) if team is None else team
        if self.team not in game.teams:
            raise ValueError(f"{game.name} has no team {team!r}: team is one of {', '.join(game.teams)}")
        for name in infos:
            if name not in sim.info:
                raise ValueError(f"{game.name} has no info {name!r}{near(name, sim.info)}: {', '.join(sim.info)}")
        try:
            self._io = AgentIO(sim, tuple(game.teams[self.team]), "flat", None, "none")
        except ValueError as error:
            raise ValueError(
                f"{game.name} shows no flat vector, which a data set holds: record another game"
            ) from error
        self.observation_space, self.action_space = self._io.observation_space, self._io.action_space
        if not isinstance(self.action_space, spaces.Box | spaces.Discrete | spaces.MultiDiscrete):
            raise ValueError(
                f"a data set takes numbers or choices alone, actions of {game.name} are {self.action_space}"
            )
        seen, done = self.observation_space, self.action_space
        self._infos = tuple(dict.fromkeys(infos))
        self.dtype = np.dtype(
            [
                ("observation", seen.dtype, seen.shape),
                ("action", done.dtype, done.shape),
                ("reward", game.reward_dtype),
                ("terminated", "?"),
                ("truncated", "?"),
                *((INFO + name, sim.info[name].dtype, sim.info[name].shape[1:]) for name in self._infos),
                ("seed", "<u8"),
                ("match", "<i8"),
                ("task", "<i8"),
            ]
        )
        self._rows = np.zeros((2, sim.num_envs), self.dtype)
        self._lengths = np.zeros(sim.num_envs, np.int64)
        self._final_views = sim.autoreset_mode == "same_step"

    @property
    def running(self) -> np.ndarray:
        """Indices of the lanes whose match the next decision moves."""
        return np.flatnonzero(self.sim.states["pending"] == RUNNING)

    def begin(self, lanes: np.ndarray, matches: np.ndarray | int, task: int = NO_TASK) -> None:
        """Starts the episodes of lanes (indices) in which a match has just begun.

        Args:
            lanes: Indices.
            matches: Number of the match since its lane was seeded, ``[len(lanes)]`` or one for all.
            task: Task of all; `NO_TASK` takes the field ``task`` of ``sim.info``, if there is one.
        """
        self._lengths[lanes] = 0
        info = self.sim.info
        self._rows["seed"][0, lanes] = self.sim.lane_seeds[lanes]
        self._rows["match"][0, lanes] = matches
        self._rows["task"][0, lanes] = info["task"][lanes] if task == NO_TASK and "task" in info else task
        self._write_positions(lanes, self._io.observe(copy=False)[lanes], info)

    def drop(self, lanes: np.ndarray) -> None:
        """Forgets the running episodes of lanes (indices)."""
        self._lengths[lanes] = 0

    def add_decision(self, lanes: np.ndarray) -> list[np.ndarray]:
        """Reads the decision that lanes (indices, of those that were `running`) have just played.

        Returns:
            Rows ``[T + 1]`` of each episode that has ended, in the order of lanes.
        """
        sim = self.sim
        lanes = lanes[self._lengths[lanes] > 0]
        if not len(lanes):
            return []
        here = self._lengths[lanes] - 1, lanes
        actions = np.concatenate([b.actions.reshape(sim.num_envs, -1) for b in self._io.blocks], axis=1)
        self._rows["action"][here] = actions[lanes].reshape(len(lanes), *self.action_space.shape)  # type: ignore[misc]
        self._rows["reward"][here] = sim.team_rewards(self.team)[lanes]
        self._rows["terminated"][here], self._rows["truncated"][here] = sim.terminated[lanes], sim.truncated[lanes]
        over = lanes[(sim.terminated | sim.truncated)[lanes]]
        others = np.setdiff1d(lanes, over, assume_unique=True) if self._final_views else lanes
        self._write_positions(others, self._io.observe(copy=False)[others], sim.info)
        if self._final_views and len(over):
            self._write_positions(over, self._io.final_rows(over), sim.final_info)
        episodes = [self._episode(lane) for lane in over.tolist()]
        self._lengths[over] = 0
        return episodes

    def _write_positions(self, lanes: np.ndarray, observations: np.ndarray, info: Any) -> None:
        if not len(lanes):
            return
        if self._lengths[lanes].max() == len(self._rows):
            self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)])
        here = self._lengths[lanes], lanes
        self._rows["observation"][here] = observations
        for name in self._infos:
            self._rows[INFO + name][here] = info[name][lanes]
        self._lengths[lanes] += 1

    def _episode(self, lane: int) -> np.ndarray:
        rows = self._rows[: self._lengths[lane], lane].copy()
        for name in Key._fields:
            rows[name] = rows[name][0]
        for name in ("action", "reward", "terminated", "truncated"):
            rows[name][-1] = 0
        return rows
