"""Boards of cells: places of cells in pixels, cells and marks that are drawn fast, labels, and clicks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from palaestra.drawing.canvas import Canvas, Point
from palaestra.drawing.colors import Color
from palaestra.drawing.widgets import length_of

SEPARATE = 12
"""Cells of at least so many pixels are drawn apart, with round corners."""


class Board(NamedTuple):
    """A board of R x C square cells.

    Attributes:
        left: Left edge, pixels.
        top: Upper edge.
        side: Of a cell.
        rows: R.
        columns: C.
    """

    left: float
    top: float
    side: float
    rows: int
    columns: int

    def center(self, row: float, column: float) -> Point:
        """Pixels of the middle of a cell."""
        return self.left + (column + 0.5) * self.side, self.top + (row + 0.5) * self.side

    def cell_at(self, x: float, y: float) -> tuple[int, int] | None:
        """Row and column of the cell at a pixel, which was clicked; None outside of the board."""
        row, column = int((y - self.top) // self.side), int((x - self.left) // self.side)
        return (row, column) if 0 <= row < self.rows and 0 <= column < self.columns else None

    def draw_cells(self, canvas: Canvas, cells: np.ndarray, palette: Sequence[Color], radius: float = 4) -> None:
        """Draws the cells in colours of a palette; ``cells`` are their numbers in it ``[R, C]``.

        Large cells stand apart, with round corners of a ``radius``; small ones are one image.
        """
        if self.side < SEPARATE:
            right, bottom = self.left + self.columns * self.side, self.top + self.rows * self.side
            canvas.cells(self.left, self.top, right, bottom, cells, palette)
            return
        half = self.side / 2 - 1
        for (row, column), number in np.ndenumerate(cells):
            x, y = self.center(row, column)
            canvas.rectangle(x - half, y - half, x + half, y + half, palette[number], radius)

    def draw_marks(
        self, canvas: Canvas, cells: np.ndarray, kinds: np.ndarray, palette: Sequence[Color], size: float = 0.35
    ) -> None:
        """Draws a disc for each of N agents.

        Args:
            canvas: Where.
            cells: Row and column of each, fractions allowed ``[N, 2]``.
            kinds: Numbers of their colours ``[N]``.
            palette: Colours.
            size: Radius of a disc as a share of a cell's side.
        """
        points = np.array([self.left, self.top]) + (np.asarray(cells)[:, ::-1] + 0.5) * self.side
        for kind in np.unique(kinds).tolist():
            canvas.marks(points[np.asarray(kinds) == kind], size * self.side, palette[kind])

    def draw_labels(
        self,
        canvas: Canvas,
        down: Sequence[tuple[str, Color]],
        across: Sequence[tuple[str, Color]],
        size: int = 11,
        gap: float = 10,
    ) -> None:
        """Names rows on the left and columns above the board; without room for each, every second, fifth, tenth, ...

        Args:
            canvas: Where.
            down: Words and colour of each row.
            across: Those of each column.
            size: Size of the letters.
            gap: From the board to the labels, pixels.
        """
        for row in range(0, len(down), _step(size + 1, self.side)):
            y = self.center(row, 0)[1]
            canvas.text((self.left - gap, y + 0.36 * size), *down[row], size, "rs")
        widest = max((length_of(words, size) for words, _ in across), default=0.0)
        for column in range(0, len(across), _step(widest + 4, self.side)):
            canvas.text((self.center(0, column)[0], self.top - gap), *across[column], size, "ms")


def _step(needed: float, side: float) -> int:
    """From one label to the next that has room: 1, 2, 5, 10, 20, 50, ..., cells."""
    return next(step for tens in range(9) for step in (10**tens, 2 * 10**tens, 5 * 10**tens) if step * side >= needed)
