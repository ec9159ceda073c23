"""What `palaestra.core.simulation.Simulation.snapshot` makes, and whether a simulation can go back to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from palaestra.core.layout import team_of_slots

if TYPE_CHECKING:
    from palaestra.core.simulation import Simulation


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


def check_snapshot(sim: Simulation, snapshot: Snapshot) -> None:
    """Whether a simulation can go back to a snapshot.

    Raises:
        ValueError: The snapshot is of another game, of other rules or sizes, or of other python opponents.
    """
    if snapshot.game != sim.game.name or snapshot.states.shape != sim.states.shape:
        raise ValueError(
            f"snapshot of {snapshot.game} with {len(snapshot.states)} lanes does not fit {sim.game.name} "
            f"with {sim.num_envs}"
        )
    if snapshot.rules != sim.rules:
        raise ValueError(
            f"the snapshot was taken under other rules of {sim.game.name} (code, numbers, agents or world): "
            "restore it into a simulation of the same id and keywords"
        )
    widths = {
        team: sum(assignment.memory.shape[1] for assignment in assignments)
        for team, assignments in sim.opponent_assignments.items()
    }
    if widths != {team: memory.shape[1] for team, memory in snapshot.memories.items()}:
        raise ValueError(
            f"the snapshot was taken against other opponents (memory sizes {widths} here): set_opponent them first"
        )


def check_records(sim: Simulation, records: np.ndarray, count: int) -> None:
    """Whether match records are those of a simulation's game, one for each of ``count`` lanes.

    Raises:
        ValueError: Records of another game, of other agents, or not one a lane.
    """
    game = sim.game
    if records.dtype != game.state_dtype or records.shape != (count,):
        raise ValueError(
            f"load_states takes {count} records of {game.name} (game.state_dtype), "
            f"got {records.shape} of {records.dtype if records.dtype.names is None else 'another record'}"
        )
    if (records["team"] != team_of_slots(game)).any():
        raise ValueError(
            f"load_states was given records of {game.name} with other agents: take them from a simulation "
            "of the same keywords"
        )
