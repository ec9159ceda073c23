"""Bounds of one number."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaestra.kernels.scalars import clip

pytestmark = pytest.mark.jitless


@pytest.mark.parametrize(("value", "clipped"), [(-3.0, -1.0), (-1.0, -1.0), (0.5, 0.5), (2.0, 2.0), (2.5, 2.0)])
def test_a_number_outside_the_bounds_becomes_the_nearer_bound(value: float, clipped: float):
    assert clip(value, -1.0, 2.0) == clipped


@pytest.mark.parametrize("value", [math.inf, -math.inf])
def test_an_infinity_becomes_the_bound_on_its_side(value: float):
    assert clip(value, -1.0, 2.0) == (2.0 if value > 0.0 else -1.0)


def test_nan_becomes_the_lower_bound():
    assert clip(math.nan, -1.0, 1.0) == -1.0


def test_a_zero_at_a_bound_keeps_its_sign():
    assert math.copysign(1.0, clip(-0.0, 0.0, 1.0)) == -1.0
    assert math.copysign(1.0, clip(-0.0, -1.0, 0.0)) == -1.0


@given(st.floats(allow_nan=False), st.tuples(st.floats(-10, 10), st.floats(-10, 10)))
def test_it_is_the_clip_of_numpy(value: float, bounds: tuple[float, float]):
    low, high = sorted(bounds)
    assert clip(value, low, high) == np.clip(value, low, high)
