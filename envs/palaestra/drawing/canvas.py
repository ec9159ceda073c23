"""Drawing for the pictures of the games: smooth edges and lettering from Pillow alone, and the colours."""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from PIL import Image
    from PIL.ImageFont import FreeTypeFont

Color = tuple[int, ...]
"""Red, green, blue and, where it blends, opacity; each 0 to 255."""
Point = tuple[float, float]
"""Pixels right and down of the upper left corner."""

BACKGROUND: Color = (13, 19, 26)
PANEL: Color = (20, 28, 37)
LINE: Color = (44, 57, 70)
MUTED: Color = (128, 145, 161)
TEXT: Color = (224, 231, 238)
TEAMS: tuple[Color, ...] = ((255, 112, 86), (88, 178, 255))
"""Red and blue: they differ in hue and in lightness with every common kind of colour vision."""
SIGNAL: Color = (255, 209, 92)
"""What demands attention, and every commanded value."""
SKY: Color = (58, 104, 146)
GROUND: Color = (104, 80, 58)

OVERSAMPLING = 2
"""Shapes are drawn this many times larger in each direction and shrunk."""


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
def font(size: int) -> FreeTypeFont:
    """The typeface that Pillow carries with it, in pixels."""
    return import_pillow()[2].load_default(size)


@functools.lru_cache(maxsize=4096)
def lettering(words: str, size: int, anchor: str) -> tuple[int, int, Image.Image]:
    """Words as a mask, and where its corner is from the anchor. Most of a picture's words are those of the last one."""
    image_module, draw_module, _ = import_pillow()
    left, top, right, bottom = (round(x) for x in font(size).getbbox(words, anchor=anchor))
    mask = image_module.new("L", (max(1, right - left), max(1, bottom - top)))
    draw_module.Draw(mask).text((-left, -top), words, 255, font(size), anchor)
    return left, top, mask


def blend(color: Color, other: Color, share: float) -> Color:
    """The colour that lies ``share`` of the way from one to the other."""
    return tuple(round(a + share * (b - a)) for a, b in zip(color[:3], other[:3], strict=True))


def fade(color: Color, opacity: float) -> Color:
    """The colour with an opacity, 0 to 1."""
    return (*color[:3], round(255 * min(max(opacity, 0.0), 1.0)))


class Canvas:
    """A panel of a picture: coordinates are pixels of the finished panel, fractions allowed.

    Shapes blend by the opacity of their colour. Lettering stands above all shapes of its panel.
    """

    def __init__(self, width: int, height: int, background: Color = PANEL) -> None:
        """An empty panel."""
        image_module, draw_module, _ = import_pillow()
        self.width, self.height = width, height
        self._draw_module = draw_module
        self._image = image_module.new("RGB", (width * OVERSAMPLING, height * OVERSAMPLING), background)
        self._pen = draw_module.Draw(self._image, "RGBA")
        self._words: list[tuple[Point, str, Color, int, str]] = []

    def copy(self) -> Canvas:
        """A panel that shows the same and is drawn on by itself: what never changes is drawn once."""
        same = copy.copy(self)
        same._image, same._words = self._image.copy(), self._words.copy()
        same._pen = self._draw_module.Draw(same._image, "RGBA")
        return same

    def line(self, points: Sequence[Point], color: Color, width: float = 1.0) -> None:
        """A polyline."""
        joint = "curve" if width > 1 else None
        self._pen.line(_enlarge(points), color, max(1, round(width * OVERSAMPLING)), joint)

    def dashes(self, start: Point, end: Point, color: Color, width: float = 1.0, dash: float = 5.0) -> None:
        """A dashed straight line."""
        length = math.dist(start, end)
        count = min(int(length / (2 * dash)) + 1, 400)
        step = ((end[0] - start[0]) / count, (end[1] - start[1]) / count)
        for i in range(count):
            a = (start[0] + i * step[0], start[1] + i * step[1])
            self.line([a, (a[0] + 0.5 * step[0], a[1] + 0.5 * step[1])], color, width)

    def polygon(self, points: Sequence[Point], fill: Color | None, outline: Color | None = None) -> None:
        """A filled polygon."""
        self._pen.polygon(_enlarge(points), fill, outline)

    def rectangle(self, left: float, top: float, right: float, bottom: float, fill: Color, radius: float = 0.0) -> None:
        """A filled rectangle, its corners rounded on request."""
        box = _enlarge([(left, top), (right, bottom)])
        box = [box[0], (max(box[0][0], box[1][0] - 1), max(box[0][1], box[1][1] - 1))]
        if radius > 0.0:
            self._pen.rounded_rectangle(box, radius * OVERSAMPLING, fill)
        else:
            self._pen.rectangle(box, fill)

    def circle(
        self, center: Point, radius: float, fill: Color | None = None, outline: Color | None = None, width: float = 1.0
    ) -> None:
        """A disc or a ring."""
        self._pen.ellipse(_disc(center, radius), fill, outline, max(1, round(width * OVERSAMPLING)))

    def arc(
        self, center: Point, radius: float, start_deg: float, end_deg: float, color: Color, width: float = 1.0
    ) -> None:
        """A part of a ring, ``radius`` to its outer edge; angles clockwise from 3 o'clock."""
        self._pen.arc(_disc(center, radius), start_deg, end_deg, color, max(1, round(width * OVERSAMPLING)))

    def segment(self, center: Point, radius: float, start_deg: float, end_deg: float, fill: Color) -> None:
        """The part of a disc on one side of a chord; angles clockwise from 3 o'clock."""
        self._pen.chord(_disc(center, radius), start_deg, end_deg, fill)

    def text(self, at: Point, words: str, color: Color = TEXT, size: int = 12, anchor: str = "ls") -> None:
        """Lettering. ``anchor`` as in Pillow: l, m, r across and s (base line), m, a (top) upright."""
        if words:
            self._words.append((at, words, color, size, anchor))

    def finish(self) -> Image.Image:
        """The panel at its own size."""
        image = self._image.reduce(OVERSAMPLING)
        pen = self._draw_module.Draw(image)
        for (x, y), words, color, size, anchor in self._words:
            left, top, mask = lettering(words, size, anchor)
            pen.bitmap((round(x) + left, round(y) + top), mask, color)
        return image


def _enlarge(points: Sequence[Point]) -> list[Point]:
    return [(x * OVERSAMPLING, y * OVERSAMPLING) for x, y in points]


def _disc(center: Point, radius: float) -> list[Point]:
    (x, y), r = center, radius
    return _enlarge([(x - r, y - r), (x + r, y + r)])
