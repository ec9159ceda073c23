"""Sizes of pictures: what a renderer gives becomes pixels of the size that was asked for."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

Size = tuple[int, int]
"""Columns and rows."""
LEAST, MOST = 64, 2048
"""Pixels that a picture may be wide or high."""


@runtime_checkable
class Drawing(Protocol):
    """A picture that can be drawn at any size. ``numpy.asarray`` gives it at its own."""

    def pixels(self, size: Size) -> np.ndarray:
        """The picture of ``size``, uint8 ``[H, W, 3]``."""
        ...

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """The picture at its own size, uint8 ``[H, W, 3]``."""
        ...


def check_size(size: Any) -> Size | None:
    """Columns and rows as they are given for ``render_size``; None for the size of the game's own.

    Raises:
        ValueError: They are no two whole numbers in range; says what to write.
    """
    if size is None:
        return None
    given = tuple(size) if isinstance(size, tuple | list | np.ndarray) else ()
    if len(given) != 2 or not all(_is_length(number) for number in given):
        raise ValueError(
            f"render_size must be (width, height), two integers from {LEAST} to {MOST} such as (640, 480), got {size!r}"
        )
    return int(given[0]), int(given[1])


def _is_length(number: Any) -> bool:
    return isinstance(number, int | np.integer) and not isinstance(number, bool) and LEAST <= int(number) <= MOST


def pixels_of(picture: Any, size: Size | None) -> np.ndarray:
    """Pixels of what a renderer gives, uint8 ``[H, W, 3]``: of its own size where ``size`` is None.

    A `Drawing` is drawn at that size. Of an array, which has pixels alone, each new pixel takes the nearest one; above
    and below, or at the sides, it is black where the shape is another one.
    """
    if size is None:
        return np.asarray(picture)
    if isinstance(picture, Drawing):
        return picture.pixels(size)
    pixels = np.asarray(picture)
    height, width = pixels.shape[:2]
    _, (left, top), (columns, rows) = fit((width, height), size)
    nearest = [((np.arange(new) + 0.5) * old / new).astype(np.intp) for new, old in ((rows, height), (columns, width))]
    fitted = np.zeros((size[1], size[0], 3), np.uint8)
    fitted[top : top + rows, left : left + columns] = pixels[nearest[0]][:, nearest[1]]
    return fitted


class Fit(NamedTuple):
    """A picture of one size in another one.

    Attributes:
        zoom: Pixels of the other one to a pixel.
        corner: Column and row of the upper left corner.
        size: Columns and rows that it takes.
    """

    zoom: float
    corner: tuple[int, int]
    size: Size


def fit(own: Size, size: Size) -> Fit:
    """How a picture of its ``own`` size stands in the middle of another size, as large as there is room."""
    zoom = min(size[0] / own[0], size[1] / own[1])
    columns, rows = max(1, round(zoom * own[0])), max(1, round(zoom * own[1]))
    return Fit(zoom, ((size[0] - columns) // 2, (size[1] - rows) // 2), (columns, rows))
