"""Where the units of a side stand when a match starts: around the point of their group, as near as they fit."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np

LATTICE = 0.25
"""Distance of the places that are tried, in cells: all arithmetic with them is exact."""
TOGETHER = 256
"""So many places are tried at once: most units find theirs among the first ones."""
FARTHEST = 8.0
"""How far from its point a unit may stand, in cells."""


def stand_around(
    points: np.ndarray,
    radii: np.ndarray,
    flying: np.ndarray,
    open_cells: Sequence[np.ndarray],
    turn: tuple[int, int] = (1, 1),
) -> np.ndarray:
    """Gives each unit the free place that is nearest to its point; the first come first.

    Args:
        points: Where their groups are, float64 ``[units, 2]``, cells.
        radii: Of the bodies, float64 ``[units]``, cells.
        flying: bool ``[units]``: fliers and walkers do not touch each other.
        open_cells: uint8 ``[rows, columns]`` for each unit: where it may stand.
        turn: Factors of x and y: with a -1 mirrored places are preferred, so that two sides that face each other are
            mirror images.

    Returns:
        float64 ``[units, 2]``, cells.

    Raises:
        ValueError: There is no room; names the unit's number.
    """
    placed = np.zeros((len(points), 2))
    for k, point in enumerate(points):
        others = np.flatnonzero(flying[:k] == flying[k])
        for first in range(0, len(_places()), TOGETHER):
            spots = point + _places()[first : first + TOGETHER] * turn
            away = ((spots[:, None] - placed[others]) ** 2).sum(axis=2)
            free = (away >= (radii[others] + radii[k]) ** 2).all(axis=1) & _is_open(open_cells[k], spots)
            if free.any():
                placed[k] = spots[np.argmax(free)]
                break
        else:
            raise ValueError(f"unit {k} finds no place within {FARTHEST:g} cells of x = {point[0]:g}, y = {point[1]:g}")
    return placed


def _is_open(open_cells: np.ndarray, spots: np.ndarray) -> np.ndarray:
    """Whether the cells of some points ``[points, 2]`` are open and on the map: bool ``[points]``."""
    cells = np.floor(spots).astype(int)
    rows, columns = open_cells.shape
    inside = (cells[:, 0] >= 0) & (cells[:, 1] >= 0) & (cells[:, 0] < columns) & (cells[:, 1] < rows)
    inside[inside] = open_cells[cells[inside, 1], cells[inside, 0]] != 0
    return inside


def reachable(open_cells: np.ndarray, point: np.ndarray) -> np.ndarray:
    """The open cells that are connected with a point, side by side: uint8 ``[rows, columns]``.

    Args:
        open_cells: uint8 ``[rows, columns]``.
        point: x and y, cells. Where no cell is open, none is reachable.
    """
    found = np.zeros_like(open_cells)
    row, column = int(point[1]), int(point[0])
    found[row, column] = open_cells[row, column]
    while True:
        wider = found.copy()
        wider[1:] |= found[:-1]
        wider[:-1] |= found[1:]
        wider[:, 1:] |= found[:, :-1]
        wider[:, :-1] |= found[:, 1:]
        wider &= open_cells
        if (wider == found).all():
            return found
        found = wider


@functools.cache
def _places() -> np.ndarray:
    """Places around a point by distance, those of one distance counterclockwise: float64 ``[places, 2]``, cells."""
    reach = int(FARTHEST / LATTICE)
    steps = [(i, j) for i in range(-reach, reach + 1) for j in range(-reach, reach + 1)]
    steps = [(i, j) for i, j in steps if i * i + j * j <= reach * reach]
    steps.sort(key=lambda step: (step[0] ** 2 + step[1] ** 2, math.atan2(step[1], step[0])))
    return np.array(steps, np.float64) * LATTICE
