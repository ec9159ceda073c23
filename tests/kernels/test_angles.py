"""Arithmetic on the circle."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaestra.kernels.angles import wrap_angle_rad

pytestmark = pytest.mark.jitless


@pytest.mark.parametrize(
    ("angle", "wrapped"),
    [(0.0, 0.0), (0.5, 0.5), (1.5 * math.pi, -0.5 * math.pi), (-1.5 * math.pi, 0.5 * math.pi), (7.0, 7.0 - math.tau)],
)
def test_an_angle_beyond_half_a_turn_is_taken_from_the_other_side(angle: float, wrapped: float):
    assert wrap_angle_rad(angle) == pytest.approx(wrapped)


@given(st.floats(-100, 100))
def test_a_wrapped_angle_points_the_same_way(angle: float):
    wrapped = wrap_angle_rad(angle)
    assert -math.pi <= wrapped <= math.pi
    assert math.cos(wrapped - angle) == pytest.approx(1.0)
