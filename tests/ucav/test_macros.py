"""How the numbers of an action encode a macro."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaestra.games.ucav.macros import read_macro, write_macro

ROLL_RAD, FLIGHT_PATH_RAD, SPEED_MPS = st.floats(-3.0, 3.0), st.floats(-1.0, 1.0), st.floats(120.0, 400.0)


@pytest.mark.parametrize(("scaled", "speed_mps"), [(-1.0, 120.0), (0.0, 260.0), (1.0, 400.0)])
def test_a_macro_speed_of_minus_one_is_120_and_of_one_is_400(scaled, speed_mps):
    assert read_macro(SimpleNamespace(roll=0.0, flight_path=0.0, speed=scaled))[2] == speed_mps


@given(ROLL_RAD, FLIGHT_PATH_RAD, SPEED_MPS)
def test_a_macro_is_read_as_it_was_written(roll_rad, flight_path_rad, speed_mps):
    action = SimpleNamespace()
    write_macro(action, roll_rad, flight_path_rad, speed_mps)
    assert read_macro(action) == pytest.approx((roll_rad, flight_path_rad, speed_mps), abs=1e-9)


def test_a_macro_beyond_its_range_is_clipped():
    action = SimpleNamespace()
    write_macro(action, 0.0, 2.0, 90.0)
    assert (action.roll, action.flight_path, action.speed) == (0.0, 1.0, -1.0)
