"""What `palaestra.core.simulation.Simulation.snapshot` makes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Snapshot:
    """Everything that decides how the matches go on: made by `Simulation.snapshot`, taken back by `restore`.

    Attributes:
        game: Name of the game.
        rules: Digest of the rules that the matches were played by, their visible sizes included.
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
