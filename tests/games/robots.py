"""What tests of the robot arena do with their matches: place robots and let them decide."""

from __future__ import annotations

from typing import Any

import numpy as np
from games.points import started

from palaestra.games.teams import arena_duel
from palaestra.games.teams.arena_moves import HOLD

DUEL, SPARSE = arena_duel.game(), arena_duel.game("sparse")
RED_0, RED_1, BLUE_0, BLUE_1 = range(4)
RIGHT, LEFT, UP = (1.0, 0.0), (-1.0, 0.0), (0.0, 1.0)
HIDDEN = ((-3.5, 0.0), (3.5, 0.0))
"""Two points without a line of sight to each other or to the middle."""


def duel(
    places: Any, headings: Any = (RIGHT, RIGHT, LEFT, LEFT), game: Any = DUEL, dead: tuple = (), **parameters: Any
) -> Any:
    """A match without friction in which the robots stand there, turrets as the chassis."""
    sim = started(game, **{"friction_spread": 0.0, **parameters})
    sim.states["position_m"], sim.states["heading"], sim.states["turret"] = places, headings, headings
    for slot in dead:
        sim.states["alive"][0, slot] = 0
        sim.states["acting"][0, slot] = 0
        sim.states["hit_points"][0, slot] = 0.0
    return sim


def play(sim: Any, *moves: int, targets: tuple[int, ...] = (0, 0, 0, 0)) -> None:
    """One decision; all robots hold unless ``moves`` are given."""
    sim.step(np.array([list(zip(targets, moves or [HOLD] * 4, strict=True))]))
