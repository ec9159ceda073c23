"""What a pilot's instruments and eyes show, by hand-made numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from palaestra.core.contract.fields import record_dtype
from palaestra.games.ucav import sight
from palaestra.games.ucav.body import BODY

pytestmark = pytest.mark.jitless


def body(**values: float) -> Any:
    """An aircraft at rest in the middle of the arena whose nose points north, but for ``values``."""
    made: Any = np.zeros(1, BODY).view(np.recarray)[0]
    for name, value in values.items():
        setattr(made, name, value)
    return made


def nothing() -> Any:
    """An observation in which nothing is written."""
    return np.zeros(1, record_dtype(sight.observation_table(()), True)).view(np.recarray)[0]


def test_instruments_show_units_and_signs_of_the_table():
    shown = nothing()
    sight.write_ego(shown, body(altitude_m=2500.0, velocity_down_mps=-34.0, u_mps=340.0, v_mps=34.0, load_factor_g=4.5))
    assert (shown.altitude, shown.load_factor) == (0.5, 0.5)
    assert shown.climb_rate == pytest.approx(0.1)
    assert shown.velocity == pytest.approx((1.0, 0.1, 0.0))


def test_an_aircraft_right_ahead_that_flies_away_shows_its_tail():
    shown = nothing()
    sight.write_other(shown, body(), body(north_m=1000.0, velocity_north_mps=34.0))
    assert (shown.train_angle, shown.aspect_angle) == (0.0, 0.0)
    assert shown.range == pytest.approx(0.1)
    assert shown.closure == pytest.approx(-0.1)
    assert shown.relative_velocity == pytest.approx((0.1, 0.0, 0.0))
    assert shown.other_nose == pytest.approx((1.0, 0.0, 0.0))
    assert shown.other_lift == pytest.approx((0.0, 0.0, -1.0))


def test_an_aircraft_that_crosses_from_left_to_right_shows_its_side():
    shown = nothing()
    sight.write_other(shown, body(), body(north_m=1000.0, heading_rad=0.5 * math.pi, velocity_east_mps=100.0))
    assert (shown.train_angle, shown.aspect_angle) == (0.0, pytest.approx(0.5 * math.pi))
    assert shown.sight_rate == pytest.approx((0.0, 0.0, 0.1))
    assert shown.other_nose == pytest.approx((0.0, 1.0, 0.0), abs=1e-6)


def test_differences_are_the_others_less_ones_own_in_kilometres():
    shown = nothing()
    sight.write_other(shown, body(altitude_m=3000.0), body(altitude_m=3500.0, true_airspeed_mps=100.0))
    assert shown.altitude_difference == pytest.approx(0.5)
    assert shown.energy_difference == pytest.approx(0.5 + 100.0**2 / (2 * 9.80665) / 1000.0)
