"""Battles for tests: units of any kind at any place, and orders by name. Rules run as plain Python."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from palaestra.core.run.kernel import KernelSimulation
from palaestra.games.skirmish import games, ruleset
from palaestra.games.skirmish.orders import FIRST, NOTHING, STOP

SMAC = ruleset.load("smac-4.10")
OPEN = ("." * 32,) * 20
"""Ground without walls, 32 x 20 cells."""
Units = Sequence[tuple[str, float, float]]
"""Kind, x and y of each."""


def write_map(
    folder: Path, red: Units, blue: Units, terrain: Sequence[str] = OPEN, order: dict[str, Any] | None = None
) -> Path:
    """The file of a map on which every unit is a group of its own."""
    groups = [[{"unit": unit, "count": 1, "at": [x, y]} for unit, x, y in side] for side in (red, blue)]
    return write_groups(folder, groups[0], groups[1], terrain, order)


def write_groups(
    folder: Path,
    red: Sequence[dict[str, Any]],
    blue: Sequence[dict[str, Any]],
    terrain: Sequence[str] = OPEN,
    order: dict[str, Any] | None = None,
    name: str = "own",
    **more: Any,
) -> Path:
    """The file of a map with such groups; one has a ``count`` of 1 unless it says more."""
    content = {
        "format": 1,
        "name": name,
        "sources": [],
        "ruleset": "smac-4.10",
        "size": [len(terrain[0]), len(terrain)],
        "limit": 400,
        "red": {"groups": [{"count": 1, **group} for group in red]},
        "blue": {"groups": [{"count": 1, **group} for group in blue], "order": order or {"kind": "none", "points": []}},
        "terrain": list(terrain),
        **more,
    }
    path = folder / f"{name}.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def start(game: Any, seed: int = 0, lanes: int = 1) -> Any:
    """Matches of a game as its own reset begins them."""
    sim = KernelSimulation(game, lanes, compiled=False, autoreset_mode="off")
    sim.reset(seed=seed)
    return sim


def fight(
    folder: Path,
    red: Units,
    blue: Units,
    terrain: Sequence[str] = OPEN,
    order: dict[str, Any] | None = None,
    seed: int = 0,
) -> Any:
    """A match whose units stand exactly where they are told, in the order in which they are told."""
    sim = KernelSimulation(
        games.battle(write_map(folder, red, blue, terrain, order)), 1, compiled=False, autoreset_mode="off"
    )
    sim.reset(seed=seed)
    s = sim.states[0]
    for slot, (unit, x, y) in enumerate([*red, *blue]):
        kind = SMAC.unit(unit)
        s["kind"][slot] = SMAC.number_of(unit)
        s["position"][slot] = x, y
        s["hit_points"][slot], s["shield"][slot] = kind.hit_points, kind.shield
        s["energy"][slot] = kind.energy.start if kind.energy else 0.0
    sim.refresh()
    return sim


def at_red(k: int) -> int:
    """Red's order to attack number k of blue, or to heal number k of red."""
    return FIRST + k


def at_blue(k: int) -> int:
    """Blue's order to attack number k of red, or to heal number k of blue."""
    return FIRST + 1 + k


def decide(sim: Any, red: int | Sequence[int] = STOP, blue: int | Sequence[int] = STOP) -> None:
    """One decision; one order goes to all units of a side. The dead get none."""
    reds = sim.actions["red"].shape[1]
    for role, orders, alive in (("red", red, sim.alive[0, :reds]), ("blue", blue, sim.alive[0, reds:])):
        sim.actions[role][0] = np.where(alive, orders, NOTHING)
    sim.step()
    assert not sim.info["illegal"].any()


def unit(sim: Any, name: str, slot: int) -> Any:
    """One number of a unit's state, or two of its position."""
    return sim.states[0][name][slot]


def life(sim: Any, slot: int) -> float:
    """Hit points and shield of a unit."""
    return float(unit(sim, "hit_points", slot) + unit(sim, "shield", slot))


def put(sim: Any, slot: int, **numbers: Any) -> None:
    """Writes numbers of a unit's state by hand."""
    for name, number in numbers.items():
        sim.states[0][name][slot] = number
    sim.refresh()


def terrain_of(*rows: str) -> np.ndarray:
    """Terrain drawn as in a map: the first row on top, ``#`` for fliers alone, ``^`` for cliff walkers too."""
    bits = {".": 1 | 2 | 4, "^": 2 | 4, "#": 4}
    return np.array([[bits[cell] for cell in row] for row in reversed(rows)], np.uint8)
