"""The ground of a battle in pictures: which part of a map is shown, how large, and what it looks like."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from palaestra.drawing.canvas import Canvas, Point
from palaestra.drawing.colors import BACKGROUND, LINE, MUTED, PANEL, Color, blend, fade
from palaestra.games.skirmish.movement import AIR, CLIFF, GROUND, HEIGHT

WIDTH, MARGIN, HEADER, FOOTER = 720, 14, 52, 34
"""Pixels: of all pictures, at the sides, above and below the ground."""
TALLEST = 560
"""Pixels of the ground, at most."""
BORDER = 0.75
"""Cells around the ground that are shown too."""
ROOM = 1.0
"""Cells around the middle of units that are shown too: their bodies and bars."""
CLOSEST = 6.0
"""Cells that a picture is wide, at least."""
ZOOM_STEP = math.sqrt(2.0)
"""From one width of the camera to the next: it changes when the units need another one, not with each move."""
PAN_STEPS = 12
"""Steps of the camera in its own width."""
WALL = blend(BACKGROUND, PANEL, 0.6)
LOW, HIGH = (40, 52, 62), (66, 78, 84)
"""Colours of the lowest ground and of that one cliff higher."""
SLOPE = blend(LOW, WALL, 0.45)
CLIFF_LEVELS = 8

Box = tuple[float, float, float, float]
"""West, south, east and north in cells."""


class View(NamedTuple):
    """A part of the map on a picture.

    Attributes:
        scale: Pixels in a cell.
        left: Pixels right of the picture's edge at which x is 0.
        bottom: Pixels down from the picture's edge at which y is 0.
        height: Of the picture, pixels.
        box: What is shown.
    """

    scale: float
    left: float
    bottom: float
    height: int
    box: Box

    def place(self, x: float, y: float) -> Point:
        """Pixels of a point of the map; y points up."""
        return self.left + self.scale * x, self.bottom - self.scale * y

    def point(self, x: float, y: float) -> Point:
        """The point of the map, in cells, that a place of the picture shows."""
        return (x - self.left) / self.scale, (self.bottom - y) / self.scale


def box_of(terrain: np.ndarray) -> Box:
    """The least part of a map, uint8 ``[rows, columns]``, that holds all of its ground, and `BORDER` around it."""
    rows, columns = np.nonzero(terrain & (GROUND | CLIFF))
    if not len(rows):
        return -BORDER, -BORDER, terrain.shape[1] + BORDER, terrain.shape[0] + BORDER
    west, east = float(columns.min()), columns.max() + 1.0
    return west - BORDER, float(rows.min()) - BORDER, east + BORDER, rows.max() + 1.0 + BORDER


def around(box: Box, positions: np.ndarray) -> Box:
    """The box, larger by whole cells where units at ``positions``, float64 ``[n, 2]``, are outside: fliers may be."""
    west, south, east, north = box
    if not len(positions):
        return box
    (low_x, low_y), (high_x, high_y) = (positions.min(0) - BORDER).tolist(), (positions.max(0) + BORDER).tolist()
    west, south = west - max(0, math.ceil(west - low_x)), south - max(0, math.ceil(south - low_y))
    return west, south, east + max(0, math.ceil(high_x - east)), north + max(0, math.ceil(high_y - north))


def scale_of(box: Box) -> float:
    """Pixels in a cell with which a part of a map fills a picture."""
    west, south, east, north = box
    return min((WIDTH - 2 * MARGIN) / (east - west), TALLEST / (north - south))


def view_of(layers: np.ndarray, layer: int, positions: np.ndarray) -> View:
    """How a match is shown: all matches of a game fill a picture of one size.

    Args:
        layers: Terrain of all maps of the game, uint8 ``[maps, rows, columns]``.
        layer: The match's map.
        positions: What has to be seen, float64 ``[n, 2]``, cells; all of the map if there is nothing.
    """
    boxes = [box_of(terrain) for terrain in layers]
    tall = max(round(scale_of(box) * (box[3] - box[1])) for box in boxes)
    wide = WIDTH - 2 * MARGIN
    box = camera_of(around(boxes[layer], positions), wide / tall, positions)
    scale = wide / (box[2] - box[0])
    return View(scale, MARGIN - scale * box[0], HEADER + scale * box[3], HEADER + tall + FOOTER, box)


def camera_of(whole: Box, shape: float, positions: np.ndarray) -> Box:
    """The part of a map that shows all that has to be seen, nearly as large as there is room.

    Its width is one of a few, and it moves by whole parts of its width, so that it stands still while units move a
    little. It depends on nothing but where they are: the same state gives the same picture.

    Args:
        whole: What may be shown.
        shape: Width over height of the picture.
        positions: What has to be seen, float64 ``[n, 2]``, cells.
    """
    west, south, east, north = whole
    width = max(east - west, shape * (north - south))
    if len(positions):
        low, high = positions.min(0) - ROOM, positions.max(0) + ROOM
        needed = max(high[0] - low[0], shape * (high[1] - low[1])) * PAN_STEPS / (PAN_STEPS - 1)
        steps = math.floor(math.log(width / max(needed, CLOSEST), ZOOM_STEP))
        width /= ZOOM_STEP ** max(steps, 0)
    else:
        low, high = np.array(whole[:2]), np.array(whole[2:])
    box = list[float]()
    for length, first, last, least, most in zip(
        (width, width / shape), low.tolist(), high.tolist(), whole[:2], whole[2:], strict=True
    ):
        if length >= most - least:
            start = 0.5 * (least + most - length)
        else:
            step = length / PAN_STEPS
            start = least + step * round((0.5 * (first + last - length) - least) / step)
            start = min(max(start, least), most - length)
        box += [start, start + length]
    return box[0], box[2], box[1], box[3]


def empty_ground(terrain: np.ndarray, view: View) -> Canvas:
    """A panel with the ground alone, to draw on: its corner is at `MARGIN`, `HEADER` of the picture."""
    return _ground(terrain.tobytes(), terrain.shape, view).copy()


def on_panel(view: View) -> View:
    """The view, in pixels of the panel that shows the ground."""
    return view._replace(left=view.left - MARGIN, bottom=view.bottom - HEADER)


@functools.lru_cache(maxsize=32)
def _ground(terrain_bytes: bytes, shape: tuple[int, int], view: View) -> Canvas:
    """What does not change in a match as long as the camera stands still; maps are known by what they hold."""
    both = np.frombuffer(terrain_bytes, np.uint8).reshape(shape)
    terrain, level = both & (GROUND | CLIFF | AIR), (both >> HEIGHT).astype(np.int8) - 1
    view = on_panel(view)
    west, south, east, north = view.box
    canvas = Canvas(WIDTH - 2 * MARGIN, view.height - HEADER - FOOTER, WALL)
    cells = [
        (int(row), int(column))
        for row, column in np.argwhere(terrain & (GROUND | CLIFF))
        if west - 2 < column < east + 1 and south - 2 < row < north + 1
    ]
    for row, column in cells:
        (x, y), (far_x, far_y) = view.place(column, row + 1), view.place(column + 1, row)
        canvas.rectangle(x, y, far_x + 0.5, far_y + 0.5, _tone(terrain, level, row, column))
    for row, column in cells:
        _draw_edges(canvas, view, terrain, level, row, column)
    return canvas


def _tone(terrain: np.ndarray, level: np.ndarray, row: int, column: int) -> Color:
    """Colour of a cell that can be walked on."""
    if not terrain[row, column] & GROUND:
        return SLOPE
    tone = blend(LOW, HIGH, max(int(level[row, column]), 0) / CLIFF_LEVELS)
    return blend(tone, WALL, 0.06) if (row // 2 + column // 2) % 2 else tone


def _draw_edges(canvas: Canvas, view: View, terrain: np.ndarray, level: np.ndarray, row: int, column: int) -> None:
    """Strokes on a slope, the shadow of a wall to the north, and lines where the ground ends or changes its height."""
    is_slope = not terrain[row, column] & GROUND
    if is_slope:
        for share in (0.2, 0.53, 0.87):
            stroke = [view.place(column + share, row + 0.85), view.place(column + share, row + 0.15)]
            canvas.line(stroke, fade(MUTED, 0.28))
    for step_row, step_column in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        kind, height = _cell(terrain, level, row + step_row, column + step_column)
        ends = [(column + (step_column > 0), row + (step_row > 0))]
        ends.append((ends[0][0] + (step_row != 0), ends[0][1] + (step_column != 0)))
        edge = [view.place(*end) for end in ends]
        if not kind & (GROUND | CLIFF):
            if step_row > 0:
                canvas.rectangle(*edge[0], edge[1][0], edge[1][1] + 0.22 * view.scale, fade((0, 0, 0), 0.22))
            canvas.line(edge, blend(LINE, MUTED, 0.3), 1.5)
        elif not is_slope and kind & GROUND and height < level[row, column]:
            canvas.line(edge, fade(MUTED, 0.3))


def _cell(terrain: np.ndarray, level: np.ndarray, row: int, column: int) -> tuple[Any, Any]:
    """Terrain and height of a cell, 0 and -1 off the map."""
    if 0 <= row < terrain.shape[0] and 0 <= column < terrain.shape[1]:
        return terrain[row, column], level[row, column]
    return 0, -1
