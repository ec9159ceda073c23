"""What pictures are laid out of: texts that fit into their place, panels with a title, bars, legends."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from palaestra.drawing.canvas import LETTER_SAMPLING, Canvas, Point, large_font
from palaestra.drawing.colors import LINE, MUTED, PANEL, TEXT, Color

Area = tuple[float, float, float, float]
"""Left, upper, right and lower edge in pixels."""

LEADING = 1.3
"""Height of a line over that of its letters."""
ELLIPSIS = "..."
PADDING, HEADING = 16, 26
"""Within a panel: from its sides, and from its upper edge to the base line of its title, pixels."""


# -- measures ----------------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=16384)
def length_of(words: str, size: int) -> float:
    """Length of letters in pixels."""
    return large_font(size).getlength(words) / LETTER_SAMPLING


def fit(words: str, size: int, width: float) -> str:
    """Words on one line, with an ellipsis where they are cut."""
    words = " ".join(words[: max(int(width), 0)].split())
    if length_of(words, size) <= width:
        return words
    while words and (length := length_of(words + ELLIPSIS, size)) > width:
        words = words[: min(len(words) - 1, int(len(words) * width / length))].rstrip()
    return words + ELLIPSIS if words or length_of(ELLIPSIS, size) <= width else ""


def wrap(words: str, size: int, width: float, most: int) -> list[str]:
    """The lines of a text; where it needs more than ``most``, the last one ends with an ellipsis."""
    lines, line, taken = list[str](), "", 0.0
    for word in words.split() if most > 0 else ():
        needed = taken + length_of(f" {word}" if line else word, size)
        if needed <= width:
            line, taken = f"{line} {word}" if line else word, needed
        elif len(lines) == most - 1:
            return [*lines, fit(f"{line} {word}", size, width)]
        else:
            lines += [line] if line else []
            line = fit(word, size, width)
            taken = length_of(line, size)
    return [*lines, line] if line else lines


@functools.lru_cache(maxsize=1024)
def arrange(words: str, sizes: tuple[int, ...], width: float, height: float) -> tuple[int, list[str]]:
    """The first of some sizes of letters with which a text fits, else the last one, and the lines of the text."""
    for size in sizes[:-1]:
        lines = wrap(words, size, width, int(height / (LEADING * size)))
        if " ".join(lines) == " ".join(words.split()):
            return size, lines
    return sizes[-1], wrap(words, sizes[-1], width, int(height / (LEADING * sizes[-1])))


# -- blocks ------------------------------------------------------------------------------------------------------------


def draw_text(
    canvas: Canvas, area: Area, words: str, sizes: tuple[int, ...], color: Color = TEXT, is_centered: bool = False
) -> None:
    """Writes a text into an area, in the first of some sizes of letters with which it fits, else cut.

    Args:
        canvas: Where.
        area: The area.
        words: The text.
        sizes: Sizes of letters, the largest first.
        color: Of the letters.
        is_centered: Whether the lines stand in the middle of the area's height, not at its top.
    """
    left, top, right, bottom = area
    size, lines = arrange(words, sizes, right - left, bottom - top)
    if is_centered:
        top += (bottom - top - LEADING * size * len(lines)) / 2
    for number, line in enumerate(lines):
        canvas.text((left, top + (LEADING * number + 1.0) * size), line, color, size)


def draw_rows(canvas: Canvas, area: Area, rows: Sequence[tuple[str, Color]], size: int, pitch: float) -> None:
    """Writes rows below each other, each cut to the width; an ellipsis is the last one where there are too many.

    Args:
        canvas: Where.
        area: The area.
        rows: Words and their colours.
        size: Size of the letters.
        pitch: From one base line to the next, pixels.
    """
    left, top, right, bottom = area
    most = int((bottom - top) / pitch)
    shown = [*rows[: most - 1], (ELLIPSIS, rows[most - 1][1])] if len(rows) > most > 0 else rows[:most]
    for number, (words, color) in enumerate(shown, 1):
        canvas.text((left, top + number * pitch), fit(words, size, right - left), color, size)


def draw_panel(canvas: Canvas, area: Area, title: str = "", radius: float = 10) -> Area:
    """Draws a panel with a title; returns the area that is left for its content."""
    left, top, right, bottom = area
    canvas.rectangle(*area, PANEL, radius)
    canvas.text((left + PADDING, top + HEADING), fit(title, 11, right - left - 2 * PADDING), MUTED, 11)
    return left + PADDING, top + (HEADING + 4 if title else PADDING), right - PADDING, bottom - PADDING


def draw_bar(
    canvas: Canvas,
    area: Area,
    share: float,
    color: Color,
    *,
    back: Color = LINE,
    radius: float = 2,
    mirrored: bool = False,
) -> None:
    """Draws a bar, filled from the left (from the right if ``mirrored``) by a share, 0 to 1, at least a round end."""
    left, top, right, bottom = area
    canvas.rectangle(left, top, right, bottom, back, radius)
    length = max(min(share, 1.0) * (right - left), min(2.0 * radius, right - left))
    if share > 0.0:
        ends = (right - length, right) if mirrored else (left, left + length)
        canvas.rectangle(ends[0], top, ends[1], bottom, color, radius)


def draw_legend(
    canvas: Canvas, at: Point, entries: Sequence[tuple[str, Color | Callable[[Point], None]]], right: float
) -> None:
    """Draws symbols with what they mean beside them on one line, an ellipsis in the place of those without room.

    Args:
        canvas: Where.
        at: Centre of the first symbol.
        entries: Words, and the colour of a disc or what draws the symbol around a centre.
        right: Right edge of the line.
    """
    x, y = at
    for words, symbol in entries:
        if x + 14 + length_of(words, 12) > right:
            canvas.text((x - 6, y + 4.5), ELLIPSIS, MUTED, 12)
            break
        if callable(symbol):
            symbol((x, y))
        else:
            canvas.circle((x, y), 6.0, symbol)
        canvas.text((x + 14, y + 4.5), words, MUTED, 12)
        x += 36.0 + length_of(words, 12)
