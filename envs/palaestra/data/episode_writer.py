"""Writes the episodes of a loop of one's own as a data set: a training run, a player that no name calls."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from palaestra.core.run.recorder_protocol import Call
from palaestra.core.run.simulation import Simulation
from palaestra.data.data_maker import PART_BYTES, plan_of
from palaestra.data.data_manifest import Manifest
from palaestra.data.data_parts import Parts
from palaestra.data.data_reader import Episode
from palaestra.data.episode_rows import INFO, EpisodeRows

MOST_WAITING = PART_BYTES // 4
"""Bytes of finished episodes that wait in memory for their part."""


class EpisodeWriter:
    """Records the complete episodes of one team while other code drives the simulation, in any autoreset mode.

    A match counts from its reset to its end. One that is reset earlier, or goes on from a snapshot or a loaded record,
    is left out. An episode's key is the seed of its lane and the number of the match since then: lane i under seed s
    gives the episodes of lane 0 under s + i. ::

        sim = palaestra.make_batch("palaestra/CartPole-v0", 64, autoreset_mode="same_step")
        with EpisodeWriter(sim, "data/mine-v0", policy="my learner") as writer:
            sim.reset(seed=7)
            while writer.episodes < 1000:
                sim.step(choose(sim.observations))

    The data set is there when the block has ended; after an exception there is none.

    Attributes:
        team: The recorded team.
        manifest: What was written, once the block has ended.
    """

    keep_outputs = False
    manifest: Manifest

    def __init__(
        self,
        sim: Simulation,
        path: str | Path,
        *,
        policy: str = "caller",
        team: str | None = None,
        infos: Sequence[str] = (),
    ) -> None:
        """Takes the folder; unfinished parts of an earlier recording are deleted.

        Args:
            sim: Made by `palaestra.make_batch`, or one of the faces (``env.unwrapped.sim``).
            path: Folder to make; its name is the data set's in Minari: ``NAME-v0``.
            policy: What to call who plays the team.
            team: Recorded team; may be left out where there is one.
            infos: Fields of ``sim.info`` to keep.

        Raises:
            DataError, ValueError, ImportError: See `palaestra.data.make_data`.
        """
        self._rows = EpisodeRows(sim, team, infos)
        self.team = self._rows.team
        players: dict[str, Any] = dict.fromkeys(sim.game.teams) | {self.team: policy}
        plan = plan_of(path, self._rows, players)
        self._parts = Parts(path, plan, self._rows, goes_on=False)
        self._waiting: list[np.ndarray] = []
        self._matches = np.full(sim.num_envs, int(sim.started))  # running matches may come from anywhere
        self._pending: tuple[Call, np.ndarray, np.ndarray] | None = None
        self._written = 0
        sim.recorder = self

    @property
    def episodes(self) -> int:
        """Episodes that are complete so far."""
        return self._parts.episodes + len(self._waiting)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if self._rows.sim.recorder is self:
            self._rows.sim.recorder = None
        if kind is not None:
            self._parts.close()
            return
        self._write()
        self.manifest = self._parts.finish()

    def add(self, episode: Episode, match: int = 0) -> None:
        """Adds an episode that was gathered elsewhere, from a replay buffer say.

        Args:
            episode: Its arrays fit the spaces of the team.
            match: Number of the match since its lane was seeded.

        Raises:
            ValueError: An array of another shape.
        """
        steps = len(episode.rewards)
        rows = np.zeros(steps + 1, self._rows.dtype)
        rows["seed"], rows["match"], rows["task"] = episode.seed, match, episode.task
        rows["observation"] = episode.observations
        rows["action"][:-1] = np.reshape(episode.actions, rows["action"][:-1].shape)
        rows["reward"][:-1] = episode.rewards
        rows["terminated"][steps - 1], rows["truncated"][steps - 1] = episode.terminated, episode.truncated
        for name in rows.dtype.names or ():
            if name.startswith(INFO):
                rows[name] = episode.infos[name.removeprefix(INFO)]
        self._take([rows])

    def before(self, call: Call, which: np.ndarray | None = None, what: Any = None) -> None:
        """See `palaestra.core.run.recorder_protocol.RecorderProtocol`."""
        everywhere = np.ones(self._rows.sim.num_envs, np.bool_)
        self._pending = call, everywhere if which is None else which, self._rows.running

    def after(self) -> None:
        """See `palaestra.core.run.recorder_protocol.RecorderProtocol`."""
        if self._pending is None:
            return
        (call, which, running), self._pending = self._pending, None
        lanes = np.flatnonzero(which)
        if call == "seed":
            self._matches[lanes] = 0
        elif call == "reset":
            self._begin(lanes)
        elif call in ("restore", "load_states"):
            self._rows.drop(lanes)
        elif call == "step":
            sim, played = self._rows.sim, running[which[running]]
            self._take(self._rows.add_decision(played))
            goes_on = played[~(sim.terminated | sim.truncated)[played]]
            self._begin(np.setdiff1d(np.intersect1d(lanes, self._rows.running), goes_on))

    def _begin(self, lanes: np.ndarray) -> None:
        self._rows.begin(lanes, self._matches[lanes])
        self._matches[lanes] += 1

    def _take(self, episodes: list[np.ndarray]) -> None:
        self._waiting += episodes
        if sum(rows.nbytes for rows in self._waiting) > MOST_WAITING:
            self._write()

    def _write(self) -> None:
        if self._waiting:
            self._parts.add(self._written, self._waiting)
            self._written += 1
            self._waiting = []
