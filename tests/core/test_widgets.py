"""Blocks of pictures: texts stay in their place, whatever they say; panels, bars and legends."""

import numpy as np
import pytest

pytest.importorskip("PIL", reason="pictures need the extra palaestra[render]")

from palaestra.drawing.canvas import Canvas
from palaestra.drawing.colors import LINE, MUTED, PANEL, TEXT
from palaestra.drawing.widgets import (
    arrange,
    draw_bar,
    draw_legend,
    draw_panel,
    draw_rows,
    draw_text,
    fit,
    length_of,
    wrap,
)

LONG = "a description without an end " * 60
TEXTS = (LONG, "x" * 900, "short", "", " two\n  lines ", "длинный текст " * 30, "漢字かな" * 40, "العربية " * 40)


@pytest.mark.parametrize("width", [0.0, 5.0, 12.0, 40.0, 300.0])
def test_letters_of_a_line_are_no_longer_than_its_place(width: float):
    for words in TEXTS:
        lines = wrap(words, 13, width, 3)
        assert len(lines) <= 3
        assert all(length_of(line, 13) <= width for line in (*lines, fit(words, 13, width)))


def test_texts_are_cut_with_an_ellipsis_and_spaces_joined():
    assert wrap("one two\nthree", 13, 400.0, 2) == ["one two three"]
    assert wrap(LONG, 13, 300.0, 3)[-1].endswith("...")
    assert wrap(LONG, 13, 300.0, 0) == []
    assert fit("one  two\nthree", 13, 400.0) == "one two three"
    assert fit(LONG, 13, 90.0) == "a description..."


def test_a_text_has_the_largest_letters_with_which_it_fits():
    assert arrange("a few words", (15, 13), 300.0, 70.0) == (15, ["a few words"])
    size, lines = arrange("x" * 20 + " and many more words" * 7, (15, 13), 300.0, 70.0)
    assert size == 13
    assert len(lines) == 4
    assert arrange("it ends with ...", (15, 13), 300.0, 70.0)[0] == 15


@pytest.mark.parametrize("rows", [1, 3, 64])
@pytest.mark.parametrize("width", [40, 300])
@pytest.mark.parametrize("words", TEXTS)
def test_texts_and_rows_stay_in_their_area(words: str, width: int, rows: int):
    area = (20, 10, 20 + width, 10 + 80)
    for is_text in (True, False):
        canvas = Canvas(width + 40, 100, (0, 0, 0))
        if is_text:
            draw_text(canvas, area, " ".join([words] * rows), (18, 12), is_centered=rows == 3)
        else:
            draw_rows(canvas, area, [(words, TEXT)] * rows, 12, 18)
            assert len(canvas.words) <= 4
            assert rows < 5 or canvas.words == [] or canvas.words[-1].words == "..."
        outside = np.asarray(canvas).copy()
        outside[10:93, 19 : 22 + width] = 0  # letters that hang below the base line, and those that lean
        assert not outside.any()


def test_a_panel_says_what_room_it_leaves():
    canvas = Canvas(200, 100, (0, 0, 0))
    left, top, right, bottom = draw_panel(canvas, (10, 10, 190, 90), "TITLE THAT IS FAR TOO LONG FOR ITS PANEL")
    assert (left, right) == (26, 174)
    pixels = np.asarray(canvas)
    assert (pixels[top:bottom, left:right] == PANEL).all()
    assert (pixels[20:40, 176:188] == PANEL).all()
    assert not pixels[:, :9].any()
    assert draw_panel(canvas, (10, 10, 190, 90))[1] == 26


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("share", [0.0, 0.25, 1.0, 3.0])
def test_a_bar_is_filled_by_its_share_from_its_side(share: float, mirrored: bool):
    canvas = Canvas(120, 20, (0, 0, 0))
    draw_bar(canvas, (10, 5, 110, 15), share, (255, 0, 0), radius=0, mirrored=mirrored)
    row = np.asarray(canvas)[10]
    row = row[::-1] if mirrored else row
    filled = (row == (255, 0, 0)).all(-1)
    length = round(100 * min(share, 1.0))
    assert np.flatnonzero(filled).tolist() == list(range(10, 10 + length))
    assert (row[10 + length : 110] == LINE).all()


def test_a_legend_has_an_ellipsis_where_its_room_ends():
    canvas, drawn = Canvas(200, 20), list[object]()
    draw_legend(canvas, (10, 10), [("red", (255, 0, 0)), ("wall", drawn.append), *[("exit", MUTED)] * 9], 190)
    words = [word.words for word in canvas.words]
    assert words[:2] == ["red", "wall"]
    assert words[-1] == "..."
    assert drawn == [(46.0 + length_of("red", 12), 10)]
    assert all(word.at[0] + length_of(word.words, 12) <= 190 for word in canvas.words[:-1])
