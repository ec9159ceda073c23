"""A board of cells: what is drawn where, how fast, what a click means, and what a page needs for it."""

import time
import zlib

import numpy as np
import pytest

pytest.importorskip("PIL", reason="pictures need the extra palaestra[render]")

import itertools

from palaestra.drawing.board import Board
from palaestra.drawing.canvas import Canvas
from palaestra.drawing.colors import MUTED, TEAMS
from palaestra.drawing.display_list import DisplayList
from palaestra.drawing.widgets import length_of

PALETTE = ((10, 20, 30), (40, 50, 60), (70, 80, 90))
LARGE = Board(40, 40, 3, 200, 200)


def crowd(board: Board, cells: np.ndarray, at: np.ndarray) -> Canvas:
    """A board with its labels and 2,000 agents of two teams."""
    canvas = Canvas(680, 680)
    board.draw_cells(canvas, cells, PALETTE)
    board.draw_marks(canvas, at, np.arange(len(at)) % 2, TEAMS)
    labels = [(str(k), MUTED) for k in range(200)]
    board.draw_labels(canvas, labels, labels)
    return canvas


@pytest.mark.parametrize("side", [3, 3.7, 11, 20])
def test_each_cell_has_its_color_where_a_click_finds_it(side: float):
    rng = np.random.default_rng(0)
    board = Board(12, 7, side, 9, 13)
    cells = rng.integers(0, 3, (9, 13))
    canvas = Canvas(300, 220)
    board.draw_cells(canvas, cells, PALETTE)
    pixels = np.asarray(canvas)
    for (row, column), number in np.ndenumerate(cells):
        x, y = board.center(row, column)
        assert tuple(pixels[int(y), int(x)]) == PALETTE[number]
        assert board.cell_at(x, y) == (row, column)
    right, bottom = 12 + 13 * side, 7 + 9 * side
    assert [board.cell_at(x, y) for x, y in ((11, 8), (13, 6), (right + 1, 8), (13, bottom + 1))] == [None] * 4


def test_cells_of_some_opacity_blend():
    canvas = Canvas(20, 20, (0, 0, 0))
    canvas.rectangle(0, 0, 20, 20, (200, 0, 0))
    canvas.cells(0, 0, 20, 20, np.array([[0, 1]]), [(0, 0, 200, 128), (0, 0, 200)])
    pixels = np.asarray(canvas)
    np.testing.assert_allclose(pixels[10, 5], (100, 0, 100), atol=2)
    assert pixels[10, 15].tolist() == [0, 0, 200]


def test_marks_have_the_color_of_their_kind_and_stand_on_their_cells():
    board = Board(10, 10, 20, 5, 5)
    canvas = Canvas(120, 120, (0, 0, 0))
    board.draw_marks(canvas, np.array([[0, 4], [3, 1], [2.5, 2]]), np.array([0, 1, 1]), TEAMS)
    pixels = np.asarray(canvas)
    for row, column, team in ((0, 4, 0), (3, 1, 1), (2.5, 2, 1)):
        x, y = board.center(row, column)
        assert tuple(pixels[int(y), int(x)]) == TEAMS[team]
    board.draw_marks(canvas, np.zeros((0, 2)), np.zeros(0, int), TEAMS)
    assert len(canvas.shapes) == 2


@pytest.mark.parametrize("side", [3, 20, 60])
def test_labels_have_room(side: int):
    board, canvas = Board(60, 40, side, 200, 200), Canvas(700, 700)
    labels = [(f"{k}", MUTED) for k in range(200)]
    board.draw_labels(canvas, labels, labels)
    across = [word for word in canvas.words if word.anchor == "ms"]
    ends = [(w.at[0] - length_of(w.words, 11) / 2, w.at[0] + length_of(w.words, 11) / 2) for w in across]
    assert all(one[1] < other[0] for one, other in itertools.pairwise(ends))
    down = [word.at[1] for word in canvas.words if word.anchor == "rs"]
    assert np.diff(down).min() >= 11
    assert [word.words for word in across[:2]] == ["0", {3: "10", 20: "2", 60: "1"}[side]]


def test_two_thousand_agents_on_a_large_board_are_drawn_fast_and_take_little_room_in_a_page():
    rng = np.random.default_rng(0)
    cells, at = rng.integers(0, 3, (200, 200)), rng.integers(0, 200, (2000, 2))
    frames, seconds = DisplayList(), list[float]()
    for frame in range(12):
        at = np.clip(at + rng.integers(-1, 2, at.shape), 0, 199)
        row, column = rng.integers(0, 200, (2, 200))
        cells = cells.copy()
        cells[row, column] = rng.integers(0, 3, 200)
        canvas = crowd(LARGE, cells, at)
        frames.add(canvas)
        if frame < 5:
            start = time.process_time()
            np.asarray(crowd(LARGE, cells, at))
            seconds.append(time.process_time() - start)
    assert min(seconds) < 0.05
    packed = zlib.compress(b"".join(block.tobytes() for block in frames.blocks().values()), 9)
    assert len(packed) * 4 / 3 < 60_000
    assert len(frames.styles) < 100
