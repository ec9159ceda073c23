"""The canvas: shapes whose geometry other pictures rely on."""

import numpy as np
import pytest

pytest.importorskip("PIL", reason="pictures need the extra palaestra[render]")

from palaestra.drawing.canvas import Canvas


def test_an_arc_covers_its_angles_clockwise_from_three_oclock():
    canvas = Canvas(100, 100)
    canvas.arc((50, 50), 30, 0.0, 90.0, (255, 0, 0), 4)
    red = np.array(canvas.finish())[..., 0].astype(int) > 150
    rows, columns = np.nonzero(red)
    assert len(rows) > 50
    assert (rows >= 49).all()  # below the centre: rows grow downwards
    assert (columns >= 49).all()
    assert abs(np.hypot(rows - 50, columns - 50) - 28).max() < 3
