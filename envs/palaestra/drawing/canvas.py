"""Drawing for the pictures of the games: shapes and words.

A canvas holds what was drawn on it as a list. Pillow makes pixels of it (``np.asarray(canvas)``), with smooth edges; a
page draws the same list in a browser (`palaestra.drawing.display_list`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from palaestra.drawing.colors import PANEL, TEXT, Color

if TYPE_CHECKING:
    from PIL import Image
    from PIL.ImageFont import FreeTypeFont

Point = tuple[float, float]
"""Pixels right and down of the upper left corner."""

LEAST_LETTERS = 1.0
"""Size of the letters of a picture that is drawn smaller, at least."""
OVERSAMPLING = 2
"""Shapes are drawn this many times larger in each direction and shrunk."""
LETTER_SAMPLING = 8
"""Letters are drawn this many times larger and shrunk, so that they are as far apart as the typeface says."""
MOST_DASHES = 400
"""Of one line."""
LENGTHS = {
    "line": (None, 1),
    "dashes": (4, 1),
    "polygon": (None, None),
    "rectangle": (4, 1),
    "circle": (3, 2),
    "arc": (3, 1),
    "segment": (3, None),
    "cells": (4, None),
    "marks": (None, 1),
}
"""By kind of shape how many of its numbers are lengths, the first ones (None: all), and which part of its style is."""


def import_pillow() -> tuple[Any, Any, Any]:
    """The modules Image, ImageDraw and ImageFont.

    Raises:
        ImportError: Pillow is missing; the message names the extra that brings it.
    """
    try:
        from PIL import Image, ImageDraw, ImageFont
    except ImportError as error:
        raise ImportError('pictures need Pillow: pip install "palaestra[render]"') from error
    return Image, ImageDraw, ImageFont


@functools.cache
def font(size: float) -> FreeTypeFont:
    """The typeface that Pillow carries with it, in pixels."""
    return import_pillow()[2].load_default(size)


def large_font(size: float) -> FreeTypeFont:
    """The typeface in which letters of a size are measured and drawn, `LETTER_SAMPLING` times as large.

    Pillow moves on by whole pixels from letter to letter, which is uneven in small letters.
    """
    return font(LETTER_SAMPLING * size)


@functools.lru_cache(maxsize=4096)
def lettering(words: str, size: float, anchor: str) -> tuple[int, int, Image.Image]:
    """Words as a mask, and where its corner is from the anchor. Most of a picture's words are those of the last one."""
    image_module, draw_module, _ = import_pillow()
    large = large_font(size)
    box = large.getbbox(words, anchor=anchor)
    left, top = (math.floor(edge / LETTER_SAMPLING) for edge in box[:2])
    right, bottom = (math.ceil(edge / LETTER_SAMPLING) for edge in box[2:])
    area = LETTER_SAMPLING * max(1, right - left), LETTER_SAMPLING * max(1, bottom - top)
    mask = image_module.new("L", area)
    draw_module.Draw(mask).text((-LETTER_SAMPLING * left, -LETTER_SAMPLING * top), words, 255, large, anchor)
    return left, top, mask.reduce(LETTER_SAMPLING)


class Shape(NamedTuple):
    """One shape.

    Attributes:
        kind: Name of the method of `Canvas` that draws it.
        numbers: Places and sizes in pixels, angles in degrees, in the order of the method's arguments; of dashes their
            number is the last.
        style: The other arguments: colours, widths.
    """

    kind: str
    numbers: tuple[float, ...]
    style: tuple[Any, ...]

    def resized(self, zoom: float) -> Shape:
        """The shape, ``zoom`` times as large."""
        kind, numbers, style = self
        count, place = LENGTHS[kind]
        count = len(numbers) if count is None else count
        numbers = (*(zoom * number for number in numbers[:count]), *numbers[count:])
        if place is not None:
            style = (*style[:place], zoom * style[place], *style[place + 1 :])
        return Shape(kind, numbers, style)


class Words(NamedTuple):
    """Lettering; see `Canvas.text`."""

    at: Point
    words: str
    color: Color
    size: float
    anchor: str

    def resized(self, zoom: float) -> Words:
        """The words in letters ``zoom`` times as large."""
        at = zoom * self.at[0], zoom * self.at[1]
        return self._replace(at=at, size=max(LEAST_LETTERS, zoom * self.size))


class Layer:
    """What a canvas and its copies have in common; it does not change any more.

    Attributes:
        under: The layer below, or None.
        shapes: Its own shapes.
        words: Its own words.
    """

    def __init__(self, under: Layer | None, shapes: Sequence[Shape], words: Sequence[Words]) -> None:
        """Freezes shapes and words."""
        self.under, self.shapes, self.words = under, tuple(shapes), tuple(words)
        self._enlarged: dict[tuple, Image.Image] = {}
        self._resized: dict[float, Layer] = {}

    def enlarged(self, size: tuple[int, int], background: Color) -> Image.Image:
        """Its shapes and those below, `OVERSAMPLING` times as large; drawn once. Not to be changed."""
        if (size, background) not in self._enlarged:
            image = _empty(size, background) if self.under is None else self.under.enlarged(size, background).copy()
            self._enlarged[size, background] = _painted(image, self.shapes)
        return self._enlarged[size, background]

    def resized(self, zoom: float) -> Layer:
        """The layer and those below, ``zoom`` times as large; the last one is kept."""
        if zoom not in self._resized:
            under = None if self.under is None else self.under.resized(zoom)
            shapes = [shape.resized(zoom) for shape in self.shapes]
            self._resized = {zoom: Layer(under, shapes, [words.resized(zoom) for words in self.words])}
        return self._resized[zoom]

    def all_words(self) -> list[Words]:
        """Its words and those below."""
        return [*(self.under.all_words() if self.under is not None else ()), *self.words]


class Canvas:
    """A panel of a picture: coordinates are pixels of the finished panel, fractions allowed.

    Shapes blend by the opacity of their colour. Lettering stands above all shapes of its panel, and panels that were
    put on it above both.

    Attributes:
        width: Pixels.
        height: Pixels.
        background: Colour.
        layer: What it has in common with canvases that are copies, or None.
        shapes: What was drawn since.
        words: Lettering since.
        panels: Panels that were put on it, and the places of their upper left corners.
    """

    def __init__(self, width: int, height: int, background: Color = PANEL) -> None:
        """An empty panel."""
        self.width, self.height, self.background = width, height, background
        self.layer: Layer | None = None
        self.shapes = list[Shape]()
        self.words = list[Words]()
        self.panels = list[tuple[Canvas, tuple[int, int]]]()

    def copy(self) -> Canvas:
        """A panel that shows the same and is drawn on by itself: what never changes is drawn once.

        Raises:
            ValueError: Panels were put on it.
        """
        if self.panels:
            raise ValueError("copy a canvas before panels are put on it")
        if self.shapes or self.words:
            self.layer = Layer(self.layer, self.shapes, self.words)
            self.shapes, self.words = [], []
        same = Canvas(self.width, self.height, self.background)
        same.layer = self.layer
        return same

    def put(self, panel: Canvas, corner: tuple[int, int]) -> None:
        """Puts a finished panel on this one; ``corner`` is the place of its upper left corner."""
        self.panels.append((panel, corner))

    def line(self, points: Sequence[Point], color: Color, width: float = 1.0) -> None:
        """A polyline."""
        self._add("line", _flat(points), color, width)

    def dashes(self, start: Point, end: Point, color: Color, width: float = 1.0, dash: float = 5.0) -> None:
        """A dashed straight line."""
        count = min(int(math.dist(start, end) / (2 * dash)) + 1, MOST_DASHES)
        self._add("dashes", (*start, *end, count), color, width)

    def polygon(self, points: Sequence[Point], fill: Color | None, outline: Color | None = None) -> None:
        """A filled polygon."""
        self._add("polygon", _flat(points), fill, outline)

    def rectangle(self, left: float, top: float, right: float, bottom: float, fill: Color, radius: float = 0.0) -> None:
        """A filled rectangle, its corners rounded on request."""
        self._add("rectangle", (left, top, right, bottom), fill, radius)

    def circle(
        self, center: Point, radius: float, fill: Color | None = None, outline: Color | None = None, width: float = 1.0
    ) -> None:
        """A disc or a ring."""
        self._add("circle", (*center, radius), fill, outline, width)

    def arc(
        self, center: Point, radius: float, start_deg: float, end_deg: float, color: Color, width: float = 1.0
    ) -> None:
        """A part of a ring, ``radius`` to its outer edge; angles clockwise from 3 o'clock."""
        self._add("arc", (*center, radius, start_deg, end_deg), color, width)

    def segment(self, center: Point, radius: float, start_deg: float, end_deg: float, fill: Color) -> None:
        """The part of a disc on one side of a chord; angles clockwise from 3 o'clock."""
        self._add("segment", (*center, radius, start_deg, end_deg), fill)

    def cells(
        self, left: float, top: float, right: float, bottom: float, cells: np.ndarray, palette: Sequence[Color]
    ) -> None:
        """A rectangle of equal cells as one image.

        Args:
            left: Of the rectangle.
            top: Likewise.
            right: Likewise.
            bottom: Likewise.
            cells: Integers ``[rows, columns]``: numbers of the cells' colours in the palette.
            palette: Colours. Pictures of a match share it, so that a page holds what differs only.
        """
        rows, columns = cells.shape
        self._add("cells", (left, top, right, bottom, *cells.ravel().tolist()), tuple(palette), rows, columns)

    def marks(self, points: np.ndarray, radius: float, fill: Color) -> None:
        """Discs of one size and colour; ``points`` are their centres ``[N, 2]``."""
        if len(points):
            self._add("marks", tuple(points.ravel().tolist()), fill, radius)

    def text(self, at: Point, words: str, color: Color = TEXT, size: int = 12, anchor: str = "ls") -> None:
        """Lettering. ``anchor`` as in Pillow: l, m, r across and s (base line), m, a (top) upright."""
        if words:
            self.words.append(Words(at, words, color, size, anchor))

    def finish(self) -> Image.Image:
        """The panel at its own size, in pixels.

        Raises:
            ImportError: Pillow is missing; the message names the extra that brings it.
        """
        size = self.width, self.height
        words = self.words
        if self.layer is None:
            enlarged = _empty(size, self.background)
        else:
            enlarged = self.layer.enlarged(size, self.background)
            enlarged = enlarged.copy() if self.shapes else enlarged
            words = [*self.layer.all_words(), *words]
        image = _painted(enlarged, self.shapes).reduce(OVERSAMPLING)
        pen = import_pillow()[1].Draw(image)
        for (x, y), text, color, points, anchor in words:
            left, top, mask = lettering(text, points, anchor)
            pen.bitmap((round(x) + left, round(y) + top), mask, color)
        for panel, corner in self.panels:
            image.paste(panel.finish(), corner)
        return image

    def resized(self, zoom: float) -> Canvas:
        """The panel, drawn ``zoom`` times as large: lines and letters stay sharp."""
        same = Canvas(max(1, round(zoom * self.width)), max(1, round(zoom * self.height)), self.background)
        same.layer = None if self.layer is None else self.layer.resized(zoom)
        same.shapes = [shape.resized(zoom) for shape in self.shapes]
        same.words = [words.resized(zoom) for words in self.words]
        same.panels = [(panel.resized(zoom), (round(zoom * x), round(zoom * y))) for panel, (x, y) in self.panels]
        return same

    def pixels(self, size: tuple[int, int]) -> np.ndarray:
        """Its pixels as a picture of ``size``, W columns and H rows, in the middle of it; uint8 ``[H, W, 3]``."""
        fitted = self.resized(min(size[0] / self.width, size[1] / self.height))
        image = import_pillow()[0].new("RGB", size, self.background)
        image.paste(fitted.finish(), ((size[0] - fitted.width) // 2, (size[1] - fitted.height) // 2))
        return np.array(image)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """Its pixels, uint8 ``[H, W, 3]``, for ``np.asarray(canvas)``."""
        return np.array(self.finish()).astype(np.uint8 if dtype is None else dtype, copy=False)

    def _add(self, kind: str, numbers: tuple[float, ...], *style: Any) -> None:
        self.shapes.append(Shape(kind, numbers, style))


# -- pixels ------------------------------------------------------------------------------------------------------------


def _empty(size: tuple[int, int], background: Color) -> Image.Image:
    return import_pillow()[0].new("RGB", (size[0] * OVERSAMPLING, size[1] * OVERSAMPLING), background)


def _painted(image: Image.Image, shapes: Sequence[Shape]) -> Image.Image:
    """The image, on which the shapes are drawn enlarged."""
    pen = import_pillow()[1].Draw(image, "RGBA")
    for kind, numbers, style in shapes:
        if kind == "cells":
            _paste_cells(image, numbers, *style)
        else:
            PAINT[kind](pen, numbers, *style)
    return image


def _paste_cells(
    image: Image.Image, numbers: tuple[float, ...], palette: tuple[Color, ...], rows: int, columns: int
) -> None:
    left, top, right, bottom = map(round, _enlarge(numbers[:4]))
    width, height = right - left, bottom - top
    colors = np.array([(*color, 255)[:4] for color in palette], np.uint8).view(np.uint32)[:, 0]  # a number a pixel
    pixels = colors[np.array(numbers[4:], np.intp).reshape(rows, columns)]
    pixels = pixels[:, np.arange(width) * columns // width][np.arange(height) * rows // height]
    cells = import_pillow()[0].frombuffer("RGBA", (width, height), pixels.tobytes())
    image.paste(cells, (left, top), None if all(color[3:] in ((), (255,)) for color in palette) else cells)


def _paint_marks(pen: Any, numbers: tuple[float, ...], fill: Color, radius: float) -> None:
    for x, y in zip(numbers[::2], numbers[1::2], strict=True):
        pen.ellipse(_disc(x, y, radius), fill)


def _paint_line(pen: Any, numbers: tuple[float, ...], color: Color, width: float) -> None:
    pen.line(_enlarge(numbers), color, _pixels(width), "curve" if width > 1 else None)


def _paint_dashes(pen: Any, numbers: tuple[float, ...], color: Color, width: float) -> None:
    x, y, end_x, end_y, count = numbers
    dx, dy = (end_x - x) / count, (end_y - y) / count
    for i in range(int(count)):
        ax, ay = x + i * dx, y + i * dy
        _paint_line(pen, (ax, ay, ax + 0.5 * dx, ay + 0.5 * dy), color, width)


def _paint_polygon(pen: Any, numbers: tuple[float, ...], fill: Color | None, outline: Color | None) -> None:
    pen.polygon(_enlarge(numbers), fill, outline)


def _paint_rectangle(pen: Any, numbers: tuple[float, ...], fill: Color, radius: float) -> None:
    left, top, right, bottom = _enlarge(numbers)
    box = left, top, max(left, right - 1), max(top, bottom - 1)
    if radius > 0.0:
        pen.rounded_rectangle(box, radius * OVERSAMPLING, fill)
    else:
        pen.rectangle(box, fill)


def _paint_circle(
    pen: Any, numbers: tuple[float, ...], fill: Color | None, outline: Color | None, width: float
) -> None:
    pen.ellipse(_disc(*numbers), fill, outline, _pixels(width))


def _paint_arc(pen: Any, numbers: tuple[float, ...], color: Color, width: float) -> None:
    x, y, radius, start_deg, end_deg = numbers
    pen.arc(_disc(x, y, radius), start_deg, end_deg, color, _pixels(width))


def _paint_segment(pen: Any, numbers: tuple[float, ...], fill: Color) -> None:
    x, y, radius, start_deg, end_deg = numbers
    pen.chord(_disc(x, y, radius), start_deg, end_deg, fill)


PAINT = {
    "line": _paint_line,
    "dashes": _paint_dashes,
    "polygon": _paint_polygon,
    "rectangle": _paint_rectangle,
    "circle": _paint_circle,
    "arc": _paint_arc,
    "segment": _paint_segment,
    "marks": _paint_marks,
}


def _flat(points: Sequence[Point]) -> tuple[float, ...]:
    return tuple(number for point in points for number in point)


def _pixels(width: float) -> int:
    """Width of a line on the enlarged image."""
    return max(1, round(width * OVERSAMPLING))


def _enlarge(numbers: Sequence[float]) -> list[float]:
    return [number * OVERSAMPLING for number in numbers]


def _disc(x: float, y: float, radius: float) -> list[float]:
    return _enlarge((x - radius, y - radius, x + radius, y + radius))
