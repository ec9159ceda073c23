"""A map as a drawing: cells of provinces, their coasts and borders, and where things stand, in pixels.

A province's cell is what lies nearer to its places (`Names.at`) than to those of others (a Voronoi cell). Coasts and
borders are irregular curves, which say nothing. Where cells touch and no unit may cross, the border is a heavy line; a
few neighbours have cells that do not touch.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from palaestra.drawing.canvas import Canvas, Point
from palaestra.drawing.colors import BACKGROUND, Color
from palaestra.drawing.widgets import Area, length_of
from palaestra.games.concert.concert_map import NOBODY, SEA, Names, World

MARGIN = 62.0
"""From the outermost places to the edge of the map, in units of `Names.at`."""
COASTLINE, BORDER, SEA_BORDER, CLOSED = range(4)
"""Between land and sea, two provinces of land, two seas; where no unit may cross."""
ROUGHNESS = (0.15, 0.05, 0.03)
"""How far the middle of a curve of a kind may lie beside the straight line, as a share of its length."""
SHORTEST = 5.0
"""Pixels of a piece of a curve."""
LARGEST_UNIT = 17.0
"""Its radius, pixels."""
OUTSIDE = -1
WATER: Color = (196, 216, 229)
SHALLOWS: Color = (222, 234, 241)
NEUTRAL: Color = (228, 214, 182)
PLAIN: Color = (241, 234, 217)
"""Land with a supply centre, and without."""
INK: Color = (38, 46, 56)
STROKES: tuple[tuple[Color, float], ...] = (
    ((66, 84, 100), 1.5),
    ((158, 142, 112), 1.0),
    ((152, 180, 198), 1.0),
    ((66, 60, 52), 3.0),
)
"""Colours and widths of curves."""

Edge = tuple[Point, Point, int]
"""Where an edge of a cell begins and ends, and the number of the cell behind it."""


class MapDrawing(NamedTuple):
    """A map in pixels.

    Attributes:
        area: The map.
        places: Where a unit is drawn, float64 ``[L, 2]``.
        cells: Polygons of each province, one for each of its places.
        curves: Lines between provinces of each kind: coastlines, borders, borders of seas, closed ones.
        unit: Radius of a unit.
        labels: Left ends of the base lines of the provinces' keys, or of the dots before them.
    """

    area: Area
    places: np.ndarray
    cells: tuple[tuple[tuple[Point, ...], ...], ...]
    curves: tuple[tuple[tuple[Point, ...], ...], ...]
    unit: float
    labels: tuple[Point, ...]

    def location_at(self, x: float, y: float) -> int | None:
        """The location whose place is nearest to a pixel, None outside of the map; curves are taken as straight."""
        left, top, right, bottom = self.area
        if not (left <= x < right and top <= y < bottom):
            return None
        return int(np.hypot(*(self.places - (x, y)).T).argmin())


def neighbours(world: World) -> np.ndarray:
    """Pairs of provinces between which some unit may move without a convoy, bool ``[P, P]``."""
    sails = np.zeros((world.provinces, world.provinces), np.bool_)
    np.logical_or.at(sails, world.province_of, world.fleet_reach != 0)
    return sails | sails.T | (world.army_edge != 0)


def drawing_of(world: World, names: Names, area: Area) -> MapDrawing:
    """The drawing of a map in an area."""
    places, near, owner = fitted(names.at, area), neighbours(world), world.province_of.tolist()
    curves: tuple[list, ...] = ([], [], [], [])
    drawn = dict[tuple[int, int], list[Point]]()
    cells = [list[tuple[Point, ...]]() for _ in range(world.provinces)]
    for k in range(len(places)):
        outline = list[Point]()
        for start, end, other in cell_edges(places, k, area):
            points = [start, end]
            if (other, k) in drawn:
                points = drawn[other, k][::-1]
            elif other != OUTSIDE and owner[other] != owner[k]:
                ends = owner[k], owner[other]
                kind = kind_of(world, *ends)
                points = drawn[k, other] = curve(start, end, ROUGHNESS[kind], k * len(places) + other)
                curves[kind if near[ends] else CLOSED].append(tuple(points))
            outline += points[:-1]
        cells[owner[k]].append(tuple(outline))
    apart = np.hypot(*(places[:, None] - places[None]).transpose(2, 0, 1)) + 1e9 * np.eye(len(places))
    unit = min(LARGEST_UNIT, 0.43 * float(apart.min()))
    return MapDrawing(
        area,
        places,
        tuple(map(tuple, cells)),
        tuple(map(tuple, curves)),
        unit,
        label_places(world, names, places, unit),
    )


def kind_of(world: World, a: int, b: int) -> int:
    """Which kind of curve parts two provinces."""
    seas = int(world.ground[a] == SEA) + int(world.ground[b] == SEA)
    return (BORDER, COASTLINE, SEA_BORDER)[seas]


def fitted(at: np.ndarray, area: Area) -> np.ndarray:
    """Places in pixels: as large as they fit into an area, in its middle."""
    left, top, right, bottom = area
    low, high = at.min(0) - MARGIN, at.max(0) + MARGIN
    scale = min((right - left) / (high[0] - low[0]), (bottom - top) / (high[1] - low[1]))
    return ((left + right) / 2, (top + bottom) / 2) + scale * (at - (low + high) / 2)


def cell_edges(places: np.ndarray, k: int, area: Area) -> list[Edge]:
    """Edges of the cell of a place, clockwise: the part of an area that is nearer to it than to all others."""
    left, top, right, bottom = area
    corners = [(left, top), (right, top), (right, bottom), (left, bottom)]
    edges = [(corners[i], corners[(i + 1) % 4], OUTSIDE) for i in range(4)]
    distances = np.hypot(*(places - places[k]).T)
    for other in np.argsort(distances).tolist():
        if other != k:
            middle, normal = (places[k] + places[other]) / 2, places[other] - places[k]
            edges = cut(edges, middle.tolist(), normal.tolist(), other)
    return edges


def cut(edges: list[Edge], through: Sequence[float], normal: Sequence[float], other: int) -> list[Edge]:
    """Cuts off what lies beyond a straight line.

    Args:
        edges: Of a convex polygon.
        through: A point of the line.
        normal: What points beyond it.
        other: Number of the cell there.
    """
    kept, leaves, enters = list[Edge](), None, None
    for start, end, behind in edges:
        a, b = ((p[0] - through[0]) * normal[0] + (p[1] - through[1]) * normal[1] for p in (start, end))
        if a <= 0 and b <= 0:
            kept.append((start, end, behind))
        elif a <= 0 or b <= 0:
            share = a / (a - b)
            at = start[0] + share * (end[0] - start[0]), start[1] + share * (end[1] - start[1])
            if a <= 0:
                kept.append((start, at, behind))
                leaves = len(kept), at
            else:
                kept.append((at, end, behind))
                enters = at
    if leaves is not None and enters is not None:
        kept.insert(leaves[0], (leaves[1], enters, other))
    return kept


def curve(start: Point, end: Point, roughness: float, seed: int) -> list[Point]:
    """An irregular line between two points, by displacing middles; the same for the same seed."""
    generator, points = random.Random(seed), [start, end]
    while math.dist(points[0], points[1]) > SHORTEST:
        finer = [points[0]]
        for a, b in itertools.pairwise(points):
            aside = roughness * generator.uniform(-1.0, 1.0)
            middle = (a[0] + b[0]) / 2 - aside * (b[1] - a[1]), (a[1] + b[1]) / 2 + aside * (b[0] - a[0])
            finer += [middle, b]
        points = finer
    return points


# ---------------------------------------------------------------------------------------------------------- background


def draw_map(canvas: Canvas, world: World, names: Names, drawing: MapDrawing) -> None:
    """Draws what never changes: seas, land, borders, names and supply centres."""
    canvas.rectangle(*drawing.area, WATER)
    for points in drawing.curves[COASTLINE]:
        canvas.line(points, SHALLOWS, 9.0)
    for province in np.flatnonzero(world.ground != SEA).tolist():
        for outline in drawing.cells[province]:
            canvas.polygon(outline, PLAIN if world.centre[province] < 0 else NEUTRAL)
    for kind in (SEA_BORDER, BORDER, COASTLINE, CLOSED):
        for points in drawing.curves[kind]:
            canvas.line(points, *STROKES[kind])
    draw_frame(canvas, drawing.area)
    size = label_size(names)
    for province, (x, y) in enumerate(drawing.labels):
        shift = 2 * DOT + GAP if world.centre[province] != NOBODY else 0.0
        color = INK if world.ground[province] != SEA else STROKES[COASTLINE][0]
        canvas.text((x + shift, y), names.provinces[province], color, size)
    for place in range(world.provinces, world.locations):
        x, y = drawing.places[place].tolist()
        canvas.text((x + 1.3 * drawing.unit + 5, y + 8), names.locations[place][4:].lower(), INK, 10)


def draw_frame(canvas: Canvas, area: Area) -> None:
    """Covers what reaches beyond the map."""
    left, top, right, bottom = area
    canvas.rectangle(0, 0, canvas.width, top, BACKGROUND)
    canvas.rectangle(0, bottom, canvas.width, canvas.height, BACKGROUND)
    canvas.rectangle(0, top, left, bottom, BACKGROUND)
    canvas.rectangle(right, top, canvas.width, bottom, BACKGROUND)


DOT, GAP = 3.2, 5.0
"""Radius of a supply centre; from it to the name."""


def draw_centres(canvas: Canvas, world: World, names: Names, drawing: MapDrawing) -> None:
    """A dot before the name of each supply centre, in a ring where it is a home centre."""
    lift = 0.36 * label_size(names)
    dots = {c: drawing.labels[p] for c, p in enumerate(world.centre_province.tolist())}
    homes = [c for c in dots if world.home[world.centre_province[c]] != NOBODY]
    points = np.array([(x + DOT, y - lift) for x, y in dots.values()])
    canvas.marks(points[homes], DOT + 2.0, INK)
    canvas.marks(points[homes], DOT + 1.0, PLAIN)
    canvas.marks(points, DOT, INK)


def label_size(names: Names) -> int:
    """Size of the letters of keys."""
    return 11 if len(names.provinces) > 40 else 14


def label_places(world: World, names: Names, marks: np.ndarray, radius: float) -> tuple[Point, ...]:
    """Left ends of the base lines of all keys: below the unit, or above or beside it where that is less crowded."""
    size = label_size(names)
    taken = [(x - radius, y - radius, x + radius, y + radius) for x, y in marks.tolist()]
    places = list[Point]()
    for province, (x, y) in enumerate(marks[: world.provinces].tolist()):
        dot = 2 * DOT + GAP if world.centre[province] != NOBODY else 0.0
        width = length_of(names.provinces[province], size) + dot
        middle, beside = x - width / 2, y + 0.36 * size
        choices = (
            (middle, y + radius + size),
            (middle, y - radius - 5),
            (x + radius + 5, beside),
            (x - radius - 5 - width, beside),
        )
        boxes = [(left - 3, base - size, left + width + 2, base + 3) for left, base in choices]
        costs = [sum(overlap(box, other) for k, other in enumerate(taken) if k != province) for box in boxes]
        best = min(range(4), key=lambda k: costs[k] + k)
        taken.append(boxes[best])
        places.append(choices[best])
    return tuple(places)


def overlap(box: Area, other: Area) -> float:
    """Pixels that two rectangles have in common."""
    across, down = (min(box[k + 2], other[k + 2]) - max(box[k], other[k]) for k in (0, 1))
    return max(across, 0.0) * max(down, 0.0)
