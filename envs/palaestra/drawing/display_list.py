"""Pictures of a match as operations that a browser draws: every style and every static part once, then what differs.

A picture is a list of operations, each a style (what is drawn, colours, widths, words) and numbers (places and sizes).
Numbers are whole: `SCALE` to a pixel or degree. The k-th operation of a style holds differences to the k-th of that
style in the picture before, if there is one. Styles, numbers across and numbers upright are three streams of integers
in LEB128, which compress well. ``match_pictures.js`` of `palaestra.replay` reads them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from palaestra.drawing.canvas import LETTER_SAMPLING, Canvas, Layer, Point, Shape, Words, large_font

SCALE = 3
"""Numbers of operations that make a pixel, or a degree."""
PLAIN = frozenset(map(chr, range(32, 127)))
"""Letters that stand side by side, whatever is next to them."""
LARGEST = 2**29
"""Bound of a number: farther places are moved there."""
MANY = 64
"""Longer rows of numbers are rounded as an array."""

Operation = tuple[int, tuple[int, ...]]
"""Number of the style, and the numbers."""


class Streams(NamedTuple):
    """Natural numbers of lists of operations, one behind the other, in LEB128.

    Attributes:
        styles: Of each list the number of operations; of each operation 1 + number of its style, or 0 where it is the
            style that follows, in the list before, the operation to which the last difference was taken (that of the
            first operation, before there is one).
        xs: First, third, ... number of each operation.
        ys: Second, fourth, ...
    """

    styles: bytearray
    xs: bytearray
    ys: bytearray


class DisplayList:
    """Pictures, one after the other.

    Attributes:
        styles: Of all operations, as JSON holds them: a word for what is drawn, then what does not move.
        letters: Widths of plain letters as Pillow places them, by the size of the typeface.
        layers: Number of the lists that pictures refer to.
        pictures: Number of the pictures.
    """

    def __init__(self) -> None:
        """Without pictures."""
        self.styles = list[list[Any]]()
        self.layers = self.pictures = 0
        self.letters = dict[float, dict[str, float]]()
        self._numbers = dict[tuple, int]()
        self._layers = dict[Layer, tuple[int, int]]()
        self._of_layers, self._of_pictures = (Streams(bytearray(), bytearray(), bytearray()) for _ in range(2))
        self._before = list[Operation]()

    def add(self, canvas: Canvas) -> None:
        """Adds a picture."""
        operations = list(self._panel(canvas, (0, 0)))
        _write(self._of_pictures, operations, self._before)
        self._before = operations
        self.pictures += 1

    def blocks(self) -> dict[str, np.ndarray]:
        """All layers, then all pictures: streams by name, uint8 ``[bytes]``."""
        names = ("op_styles", "op_xs", "op_ys")
        return {
            name: np.frombuffer(layers + pictures, np.uint8)
            for name, layers, pictures in zip(names, self._of_layers, self._of_pictures, strict=True)
        }

    def _panel(self, canvas: Canvas, corner: tuple[int, int]) -> Iterator[Operation]:
        """Operations of a canvas, and of the panels on it."""
        size = canvas.width, canvas.height
        yield self._operation((*corner, *size), "panel", canvas.background)
        layers = list(_down_from(canvas.layer))[::-1]
        for layer in layers:
            yield self._operation((), "layer", self._numbers_of(layer)[0])
        yield from map(self._shape, canvas.shapes)
        for layer in layers:
            if layer.words:
                yield self._operation((), "layer", self._numbers_of(layer)[1])
        yield from map(self._words, canvas.words)
        for panel, (x, y) in canvas.panels:
            yield from self._panel(panel, (corner[0] + x, corner[1] + y))

    def _numbers_of(self, layer: Layer) -> tuple[int, int]:
        """Numbers of the lists of a layer's shapes and of its words."""
        if layer not in self._layers:
            self._layers[layer] = self.layers, self.layers + 1
            for operations in ([*map(self._shape, layer.shapes)], [*map(self._words, layer.words)]):
                _write(self._of_layers, operations, [])
                self.layers += 1
        return self._layers[layer]

    def _shape(self, shape: Shape) -> Operation:
        kind, numbers, style = shape
        match kind:
            case "line" | "polygon" | "marks":
                style = (*style, len(numbers) // 2)
            case "rectangle":
                fill, radius = style
                if radius > 0.0:
                    kind, numbers = "rounded", (*numbers, radius)
                style = (fill,)
        return self._operation(numbers, kind, *style)

    def _words(self, words: Words) -> Operation:
        """Lettering from its left end, as Pillow places it."""
        (x, y), text, color, size, anchor = words
        widths = self.letters.setdefault(size, {})
        for letter in sorted(PLAIN.intersection(text).difference(widths)):
            widths[letter] = large_font(size).getlength(letter) / LETTER_SAMPLING
        right, down = _left_end(text, size, anchor)
        start = round(x) + right, round(y) + down
        return self._operation(start, "text", text, color, size, "left")

    def _operation(self, numbers: Sequence[float], *style: Any) -> Operation:
        number = self._numbers.get(style)
        if number is None:
            number = self._numbers[style] = len(self.styles)
            self.styles.append([list(part) if isinstance(part, tuple) else part for part in style])
        if len(numbers) > MANY:
            whole = np.rint(SCALE * np.array(numbers, np.float64)).clip(-LARGEST, LARGEST)
            return number, tuple(whole.astype(np.int64).tolist())
        return number, tuple(max(-LARGEST, min(round(SCALE * x), LARGEST)) for x in numbers)


def _down_from(layer: Layer | None) -> Iterator[Layer]:
    while layer is not None:
        yield layer
        layer = layer.under


@lru_cache(maxsize=4096)
def _left_end(text: str, size: float, anchor: str) -> Point:
    """Where the left end of the base line is from the anchor, as Pillow places words."""
    placed, plain = (large_font(size).getbbox(text, anchor=a) for a in (anchor, "ls"))
    return (placed[0] - plain[0]) / LETTER_SAMPLING, (placed[1] - plain[1]) / LETTER_SAMPLING


def _write(out: Streams, operations: Sequence[Operation], before: Sequence[Operation]) -> None:
    """Writes a list of operations, as differences to those of the list before it that have their styles."""
    styles, xs, ys = [len(operations)], list[int](), list[int]()
    alike = dict[int, deque[int]]()
    for place, (style, _) in enumerate(before):
        alike.setdefault(style, deque()).append(place)
    expected = 0  # where the next operation stood, if it is the one behind the last
    for style, numbers in operations:
        styles.append(0 if expected < len(before) and before[expected][0] == style else style + 1)
        if alike.get(style):
            place = alike[style].popleft()
            numbers = [a - b for a, b in zip(numbers, before[place][1], strict=True)]
            expected = place + 1
        xs.extend(numbers[::2])
        ys.extend(numbers[1::2])
    out.styles.extend(varints(np.array(styles)))
    out.xs.extend(varints(natural(np.array(xs, np.int64))))
    out.ys.extend(varints(natural(np.array(ys, np.int64))))


def natural(numbers: np.ndarray) -> np.ndarray:
    """0, -1, 1, -2, ... as 0, 1, 2, 3, ..."""
    return np.where(numbers >= 0, 2 * numbers, -2 * numbers - 1)


def varints(numbers: Sequence[int] | np.ndarray) -> np.ndarray:
    """Natural numbers below 2**35 in LEB128: seven bits a byte, the lowest first; the highest says that more follow."""
    values = np.array(numbers, np.int64)
    lengths = 1 + (values[:, None] >= 1 << np.arange(7, 35, 7)).sum(axis=1)
    which = np.repeat(np.arange(len(values)), lengths)
    place = np.arange(len(which)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    more = place + 1 < lengths[which]
    return ((values[which] >> 7 * place & 127) | (more << 7)).astype(np.uint8)
