"""Orders on a map: arrows, crosses, dashes, dots and rings."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from palaestra.drawing.canvas import Canvas, Point
from palaestra.drawing.colors import Color, blend, fade
from palaestra.games.concert.adjudication import OK, VOID
from palaestra.games.concert.concert_map import World
from palaestra.games.concert.concert_orders import (
    CONVOY,
    HOLD,
    MOVE,
    REMOVE,
    SUPPORT_HOLD,
    VIA,
    location_of,
    order_parts,
)
from palaestra.games.concert.concert_phases import ADJUSTMENTS, RETREATS
from palaestra.games.concert.concert_position import LastOrder, Position
from palaestra.games.concert.map_drawing import INK, MapDrawing

WRONG: Color = (206, 32, 40)
LIGHT: Color = (255, 250, 244)
HEAD, SHAFT, EDGE = 9.0, 2.8, 1.1
"""Length of the head of an arrow, widths of its shaft and of its edge, pixels."""
ASIDE = 2.5
"""Arrows pass so far right of the straight line, and past those in the other direction, pixels."""
MARK = 0.55
"""Where on an arrow its cross stands, and supports and convoys end, as a share."""
STEP = 6.0
"""From dot to dot."""


def aside(drawing: MapDrawing, place: Point) -> Point:
    """Where a unit that has to retreat stands, and the mark of one that was built."""
    return place[0] + 1.15 * drawing.unit, place[1] - 1.15 * drawing.unit


def draw_arrow(canvas: Canvas, start: Point, end: Point, color: Color, edge: Color) -> None:
    """An arrow of a colour with an edge."""
    length = max(math.dist(start, end), 1.0)
    x, y = (end[0] - start[0]) / length, (end[1] - start[1]) / length
    neck = end[0] - x * HEAD, end[1] - y * HEAD
    for grown, shade in ((EDGE, edge), (0.0, color)):
        canvas.line([start, neck], shade, SHAFT + 2 * grown)
        back, wide, tip = HEAD + grown, 0.62 * HEAD + 1.6 * grown, 2.2 * grown
        sides = [(end[0] - x * back - y * side, end[1] - y * back + x * side) for side in (wide, -wide)]
        canvas.polygon([(end[0] + tip * x, end[1] + tip * y), *sides], shade)


def draw_cross(canvas: Canvas, at: Point, size: float) -> None:
    """A red cross with light edges."""
    x, y = at
    for width, color in ((4.4, LIGHT), (2.4, WRONG)):
        for side in (size, -size):
            canvas.line([(x - size, y - side), (x + size, y + side)], color, width)


class OrderMarks:
    """Draws the last orders of a match."""

    def __init__(
        self, canvas: Canvas, world: World, drawing: MapDrawing, position: Position, colors: Sequence[Color]
    ) -> None:
        """See `draw`."""
        self._canvas, self._world, self._drawing = canvas, world, drawing
        self._position, self._colors = position, colors

    def draw(self, orders: Sequence[LastOrder], phase: int) -> None:
        """Draws orders of a phase, those of others' moves first."""
        parts = [(order, *order_parts(self._world, order.number)) for order in orders]
        if phase == ADJUSTMENTS:
            for order, *_ in parts:
                self._adjustment(order)
            return
        edge = WRONG if phase == RETREATS else INK
        for order, kind, a, b in sorted(parts, key=lambda part: part[1] in (MOVE, VIA)):
            start = self._place(order.province)
            color = self._colors[order.power]
            if kind in (MOVE, VIA):
                self._move(start, self._point(a), color, order.result != OK, edge)
            elif phase == RETREATS:
                draw_cross(self._canvas, aside(self._drawing, start), 5.0)
            elif kind == HOLD:
                self._canvas.circle(start, self._drawing.unit + 5.5, None, fade(INK, 0.75), 1.2)
            elif kind == CONVOY:
                self._convoy(start, self._middle(a, b), color, order.result == VOID)
            elif kind == SUPPORT_HOLD:
                self._support(start, self._place(a), color, order.result, self._drawing.unit + 4)
            else:
                self._support(start, self._middle(a, b), color, order.result, 2.0)

    def _point(self, location: int) -> Point:
        x, y = self._drawing.places[location].tolist()
        return x, y

    def _place(self, province: int) -> Point:
        """Where the unit that was ordered stood."""
        return self._point(int(location_of(self._world, self._position.last_units[province], province)))

    def _middle(self, start: int, goal: int) -> Point:
        """Where on the arrow of another unit a support or a convoy ends."""
        (x, y), (end_x, end_y) = self._shifted(self._place(start), self._goal(start, goal))
        return x + MARK * (end_x - x), y + MARK * (end_y - y)

    def _goal(self, start: int, goal: int) -> Point:
        """Where a unit goes that goes to a province: the coast that it named."""
        kind, at, _ = order_parts(self._world, int(self._position.orders[start]))
        goes = kind == MOVE and self._world.province_of[at] == goal
        return self._point(at if goes else goal)

    def _shifted(self, start: Point, end: Point) -> tuple[Point, Point]:
        """The ends of an arrow between two places: outside of the units, a little to the right."""
        length = max(math.dist(start, end), 1.0)
        x, y = (end[0] - start[0]) / length, (end[1] - start[1]) / length
        first, last = min(self._drawing.unit, 0.3 * length), length - min(self._drawing.unit + 4.0, 0.35 * length)
        return tuple((start[0] + x * at - y * ASIDE, start[1] + y * at + x * ASIDE) for at in (first, last))  # type: ignore[return-value]

    def _move(self, start: Point, end: Point, color: Color, has_failed: bool, edge: Color) -> None:
        """An arrow between two places."""
        (x, y), (end_x, end_y) = ends = self._shifted(start, end)
        draw_arrow(self._canvas, *ends, color, edge)
        if has_failed:
            draw_cross(self._canvas, (x + MARK * (end_x - x), y + MARK * (end_y - y)), 5.0)

    def _support(self, start: Point, end: Point, color: Color, result: int, gap: float) -> None:
        """A dashed line that ends a little before a point, faint where nothing fits the support."""
        (x, y), (end_x, end_y), length = start, end, max(math.dist(start, end), 1.0)
        first, last = min(self._drawing.unit, 0.4 * length), length - min(gap, 0.4 * length)
        near, far = ((x + (end_x - x) * at / length, y + (end_y - y) * at / length) for at in (first, last))
        if result == VOID:
            self._canvas.dashes(near, far, fade(INK, 0.45), 1.2, 3.0)
            return
        self._canvas.dashes(near, far, INK, 3.4, 4.0)
        self._canvas.dashes(near, far, color, 2.4, 4.0)
        self._canvas.circle(far, 3.4, color, INK, 1.0)
        if result != OK:
            draw_cross(self._canvas, ((near[0] + far[0]) / 2, (near[1] + far[1]) / 2), 3.5)

    def _convoy(self, start: Point, end: Point, color: Color, is_void: bool) -> None:
        """A dotted line, faint where no army goes that way."""
        count = max(int(math.dist(start, end) / STEP), 1)
        shares = np.arange(1, count + 1)[:, None] / (count + 1)
        points = np.array(start) + shares * (np.array(end) - np.array(start))
        if is_void:
            self._canvas.marks(points, 1.2, fade(INK, 0.5))
            return
        self._canvas.marks(points, 2.6, INK)
        self._canvas.marks(points, 1.7, blend(color, LIGHT, 0.2))

    def _adjustment(self, order: LastOrder) -> None:
        """A plus beside a unit that was built, a cross where one was removed."""
        kind, _, _ = order_parts(self._world, order.number)
        if kind in (REMOVE, HOLD):
            draw_cross(self._canvas, self._point(order.province), 6.0)
            return
        unit = self._position.units[order.province]
        place = self._point(int(location_of(self._world, unit, order.province)))
        x, y = aside(self._drawing, place)
        self._canvas.circle(place, self._drawing.unit + 5.0, None, LIGHT, 2.0)
        for width, color in ((4.4, INK), (2.2, LIGHT)):
            self._canvas.line([(x - 5, y), (x + 5, y)], color, width)
            self._canvas.line([(x, y - 5), (x, y + 5)], color, width)
