"""Replay buffers as data sets: the complete matches that a `Replay` still holds, in the files of `palaestra.data`.

It stands here and not beside the writer: the layout of the ring is that of `palaestra_baselines.common.rollout`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from palaestra.core.compile.batch_loop import RUNNING
from palaestra.core.run.simulation import Simulation
from palaestra.data import Episode, EpisodeWriter, Manifest
from palaestra_baselines.common.agents import Roster
from palaestra_baselines.common.rollout import OBSERVATIONS, Replay


def write_replay(
    replay: Replay,
    roster: Roster,
    sim: Simulation,
    path: str | Path,
    *,
    team: str | None = None,
    policy: str = "replay",
) -> Manifest:
    """Writes the complete matches of a replay buffer as a data set; what was overwritten or runs on is left out.

    Args:
        replay: The ring.
        roster: The agents whose decisions it holds, all those of the team among them.
        sim: The lanes that it was filled from, as they are after the last decision.
        path: Folder to make, named ``NAME-v0``.
        team: Recorded team; may be left out where there is one.
        policy: What to call who played it.

    Returns:
        The manifest. Matches are numbered from 1 in each lane: how many came before is not known.

    Raises:
        DataError: No match is complete; see also `palaestra.data.EpisodeWriter`.
    """
    with EpisodeWriter(sim, path, policy=policy, team=team) as writer:
        for lane in range(replay.lanes):
            seed = int(sim.lane_seeds[lane])
            is_over = bool(sim.states["pending"][lane] != RUNNING)
            for match, episode in enumerate(_episodes(replay, roster, lane, writer.team, seed, is_over), 1):
                writer.add(episode, match)
    return writer.manifest


def _episodes(replay: Replay, roster: Roster, lane: int, team: str, seed: int, is_over: bool) -> Iterator[Episode]:
    """The complete matches of a lane, the oldest first; the last row waits for its decision."""
    rows = (replay.head - replay.filled + np.arange(replay.filled + 1)) % replay.rows
    running = np.append(replay.arrays["running"][rows[:-1], lane], not is_over)
    pauses = np.flatnonzero(~running)
    for start in np.flatnonzero(replay.arrays["first"][rows, lane] & running):
        later = pauses[pauses > start]
        if not len(later):
            return
        seen, played = rows[start : later[0] + 1], rows[start : later[0]]
        terminated = bool(replay.arrays["terminated"][played[-1], lane])
        rewards = replay.arrays["rewards"][played, lane, list(roster.game.teams).index(team)]
        observations, actions = _joined(replay, roster, team, lane, seen, played)
        yield Episode(observations, actions, rewards, terminated, not terminated, seed, -1, {})


def _joined(
    replay: Replay, roster: Roster, team: str, lane: int, seen: np.ndarray, played: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Observations ``[T + 1, n]`` and actions ``[T, m]`` of the agents of a team side by side, role after role."""
    own = roster.team_of == list(roster.game.teams).index(team)
    observations, actions = [], []
    for name, columns in roster.columns.items():
        members = own[columns]
        if members.any():
            observations.append(replay.arrays[OBSERVATIONS + name][seen, lane][:, members].reshape(len(seen), -1))
            split = roster.joint[name].split(replay.arrays["actions"][played, lane, columns][:, members])
            actions.append(split.reshape(len(played), -1))
    return np.concatenate(observations, axis=1), np.concatenate(actions, axis=1)
