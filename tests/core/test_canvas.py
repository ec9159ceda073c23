"""The canvas: shapes whose geometry other pictures rely on."""

import sys

import numpy as np
import pytest

pytest.importorskip("PIL", reason="pictures need the extra palaestra[render]")

from palaestra.drawing.canvas import Canvas
from palaestra.drawing.widgets import length_of


def test_a_missing_pillow_is_named_with_its_cure(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ImportError, match=r'pip install "palaestra\[render\]"'):
        Canvas(2, 2).finish()


def test_an_arc_covers_its_angles_clockwise_from_three_oclock():
    canvas = Canvas(100, 100)
    canvas.arc((50, 50), 30, 0.0, 90.0, (255, 0, 0), 4)
    red = np.array(canvas.finish())[..., 0].astype(int) > 150
    rows, columns = np.nonzero(red)
    assert len(rows) > 50
    assert (rows >= 49).all()  # below the centre: rows grow downwards
    assert (columns >= 49).all()
    assert abs(np.hypot(rows - 50, columns - 50) - 28).max() < 3


def test_dashes_are_as_long_as_their_gaps():
    canvas = Canvas(100, 20, (0, 0, 0))
    canvas.dashes((10, 10), (90, 10), (255, 0, 0), 4.0, 10.0)
    edges = np.diff((np.asarray(canvas)[10, :, 0] > 128).astype(int))
    starts, ends = (np.flatnonzero(edges == sign) + 1 for sign in (1, -1))
    np.testing.assert_allclose(starts, [10, 26, 42, 58, 74], atol=1)
    np.testing.assert_allclose(ends, [18, 34, 50, 66, 82], atol=1)


def test_copies_share_what_was_drawn_before_and_nothing_after():
    first = Canvas(40, 20, (0, 0, 0))
    first.circle((10, 10), 4, (255, 0, 0))
    first.text((30, 10), "x", (255, 255, 255), 12, "mm")
    alone = np.asarray(first)
    second = first.copy()
    second.rectangle(0, 0, 5, 5, (0, 255, 0))
    third = second.copy()
    third.rectangle(20, 0, 25, 5, (0, 0, 255))
    first.rectangle(35, 15, 40, 20, (255, 255, 0))
    assert np.asarray(third)[10, 10].tolist() == [255, 0, 0]
    assert np.asarray(third)[2, 2].tolist() == [0, 255, 0]
    assert np.asarray(third)[2, 22].tolist() == [0, 0, 255]
    assert np.asarray(second)[2, 22].tolist() == [0, 0, 0]
    assert np.asarray(second)[17, 37].tolist() == [0, 0, 0]
    assert np.asarray(first)[17, 37].tolist() == [255, 255, 0]
    np.testing.assert_array_equal(np.asarray(first)[:15], alone[:15])
    assert [len(canvas.shapes) for canvas in (first, second, third)] == [1, 0, 1]
    assert third.layer is not None
    assert third.layer.under is first.layer


def test_panels_stand_above_shapes_and_words_and_are_cut_at_their_edges():
    whole, panel = Canvas(40, 20, (0, 0, 0)), Canvas(10, 10, (9, 9, 9))
    whole.rectangle(0, 0, 40, 20, (255, 0, 0))
    whole.text((15, 10), "word", (255, 255, 255), 12, "mm")
    panel.circle((10, 10), 6, (0, 255, 0))
    whole.put(panel, (10, 5))
    pixels = np.asarray(whole)
    np.testing.assert_array_equal(pixels[5:15, 10:20], np.asarray(panel))
    assert pixels[14, 21].tolist() == [255, 0, 0]
    with pytest.raises(ValueError, match="before panels"):
        whole.copy()


def all_shapes() -> Canvas:
    """Each kind of shape, on a layer, above it and on a panel."""
    canvas = Canvas(80, 60, (10, 20, 30))
    canvas.rectangle(2, 2, 20, 12, (200, 0, 0), 3)
    canvas.line([(5, 50), (30, 40), (40, 55)], (0, 200, 0), 2.0)
    canvas.dashes((2, 30), (70, 34), (200, 200, 0), 2.0)
    canvas = canvas.copy()
    canvas.polygon([(40, 5), (60, 5), (50, 20)], (0, 0, 200), (255, 255, 255))
    canvas.circle((30, 20), 8, (90, 90, 90), (250, 250, 250), 2.0)
    canvas.arc((65, 45), 10, 0.0, 200.0, (0, 200, 200), 3.0)
    canvas.segment((15, 40), 7, 20.0, 180.0, (200, 0, 200))
    canvas.marks(np.array([[70.0, 10.0], [72.0, 20.0]]), 3.0, (255, 128, 0))
    panel = Canvas(20, 10, (0, 60, 0))
    panel.cells(2, 2, 18, 8, np.array([[0, 1, 0], [1, 0, 1]]), [(0, 0, 0), (255, 255, 255)])
    panel.text((10, 8), "xi", (255, 0, 0), 8, "ms")
    canvas.put(panel, (45, 40))
    return canvas


def test_a_canvas_is_drawn_at_the_size_that_is_asked_for():
    canvas = all_shapes()
    own = np.asarray(canvas)
    np.testing.assert_array_equal(canvas.pixels((80, 60)), own)
    larger = canvas.pixels((240, 180)).astype(float)
    shrunk = larger.reshape(60, 3, 80, 3, 3).mean(axis=(1, 3))
    assert np.abs(shrunk - own).mean() < 3.6  # the same picture,
    edges = np.abs(larger - np.repeat(np.repeat(own, 3, 0), 3, 1)).max(axis=2) > 60.0
    assert edges.mean() > 0.01  # not of larger pixels


def test_a_canvas_stands_in_the_middle_of_a_size_of_another_shape():
    wide = all_shapes().pixels((280, 120))
    assert wide.shape == (120, 280, 3)
    np.testing.assert_array_equal(wide[:, 60:220], all_shapes().pixels((160, 120)))
    assert (wide[:, :60] == (10, 20, 30)).all()
    assert (wide[:, 220:] == (10, 20, 30)).all()


@pytest.mark.parametrize("size", [10, 11, 12, 13, 14])
def test_small_letters_are_as_far_apart_as_large_ones(size: int):
    words = "right answer throttle 12.5"
    for letter in sorted(set(words)):
        assert length_of(letter, size) == pytest.approx(length_of(letter, 100 * size) / 100, abs=0.17), letter
    canvas = Canvas(200, 30, (0, 0, 0))
    canvas.text((10, 20), words, (255, 255, 255), size)
    ink = np.flatnonzero(np.asarray(canvas).max(axis=(0, 2)) > 60)
    assert np.ptp(ink) + 1 == pytest.approx(length_of(words, 100 * size) / 100, abs=2.5)
