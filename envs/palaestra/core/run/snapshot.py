"""What `palaestra.core.run.simulation.Simulation.snapshot` makes, and whether a simulation can go back to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from palaestra.core.contract.rules import Game


@dataclass(frozen=True)
class Snapshot:
    """Everything that decides how the matches go on: made by `Simulation.snapshot`, taken back by `restore`.

    It is the memory of the matches, which compiled code indexes by: `restore` compares the rules, the bounds of
    parameters and the sizes, not each number. A pickled snapshot is a pickle: load your own alone, never the file of
    somebody else, which may run anything. To pass matches on, record a replay (`palaestra.replay`).

    Attributes:
        game: Name of the game.
        rules: Digest of the rules that the matches were played by, their visible sizes and bounds included.
        states: The match records, one a lane, at capacity.
        lane_seeds: Seeds of the lanes.
        memories: Memory of each python opponent, by team.
        engine: What the engine needs to come back (None for kernels).
    """

    game: str
    rules: str
    states: Any
    lane_seeds: np.ndarray
    memories: dict[str, np.ndarray]
    engine: Any = None


def check_snapshot(snapshot: Snapshot, game: str, lanes: int, rules: str, memory_sizes: dict[str, int]) -> None:
    """Whether a simulation can go back to a snapshot.

    Args:
        snapshot: The snapshot.
        game: Name of the simulation's game.
        lanes: Number of its lanes.
        rules: Digest of its rules.
        memory_sizes: How many numbers its Python opponents remember in a lane, by team.

    Raises:
        ValueError: The snapshot is of another game, of other rules or sizes, or of other Python opponents.
    """
    if snapshot.game != game or snapshot.states.shape != (lanes,):
        raise ValueError(
            f"snapshot of {snapshot.game} with {len(snapshot.states)} lanes does not fit {game} with {lanes}"
        )
    if snapshot.rules != rules:
        raise ValueError(
            f"the snapshot was taken under other rules of {game} (code, numbers, agents or world): "
            "restore it into a simulation of the same id and keywords"
        )
    if memory_sizes != {team: memory.shape[1] for team, memory in snapshot.memories.items()}:
        raise ValueError(
            f"the snapshot was taken against other opponents (memory sizes {memory_sizes} here): "
            "set_opponent them first"
        )


def check_records(game: Game, records: np.ndarray, count: int) -> None:
    """Whether match records are those of a game, one for each of ``count`` lanes.

    Raises:
        ValueError: Records of another game, of other agents, or not one a lane.
    """
    if records.dtype != game.state_dtype or records.shape != (count,):
        raise ValueError(
            f"load_states takes {count} records of {game.name} (game.state_dtype), "
            f"got {records.shape} of {records.dtype if records.dtype.names is None else 'another record'}"
        )
    if (records["team"] != game.team_of_slots).any():
        raise ValueError(
            f"load_states was given records of {game.name} with other agents: take them from a simulation "
            "of the same keywords"
        )
