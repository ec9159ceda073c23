"""What an aim demands of the lift, by hand-made numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from palaestra.games.ucav import aiming
from palaestra.games.ucav.body import BODY
from palaestra.games.ucav.geometry import GRAVITY_MPS2

pytestmark = pytest.mark.jitless

SPEED_MPS = 25.0 * GRAVITY_MPS2
"""At this speed a nose that turns with 1 rad/s takes 25 g."""
GAIN = 2.0


def demanded(x: float, y: float, z: float, roll_deg: float = 0.0) -> tuple[float, float]:
    """Roll error, deg, and load factor, g, of an aircraft in level flight that aims at a direction in body axes."""
    body: Any = np.zeros(1, BODY).view(np.recarray)[0]
    wish: Any = np.zeros(1, aiming.WISH).view(np.recarray)[0]
    body.true_airspeed_mps, body.roll_rad = SPEED_MPS, math.radians(roll_deg)
    aiming.wish_aim(wish, x, y, z, 0.0, 0.0, 0.0, SPEED_MPS)
    error_rad, load_g = aiming.demand(body, wish, GAIN)
    return math.degrees(error_rad), load_g


def test_an_aim_right_ahead_demands_what_holds_level_flight():
    assert demanded(1.0, 0.0, 0.0) == pytest.approx((0.0, 1.0))


def test_an_aim_above_the_nose_is_pulled_to():
    assert demanded(math.cos(0.1), 0.0, -math.sin(0.1)) == pytest.approx((0.0, 1.0 + 25.0 * GAIN * 0.1))


def test_an_aim_a_little_below_the_nose_is_pushed_to():
    assert demanded(math.cos(0.04), 0.0, math.sin(0.04)) == pytest.approx((0.0, 1.0 - 25.0 * GAIN * 0.04))


def test_an_aim_on_the_right_is_rolled_to():
    right_g = 25.0 * GAIN * 0.1
    error_deg, load_g = demanded(math.cos(0.1), math.sin(0.1), 0.0)
    assert error_deg == pytest.approx(math.degrees(math.atan2(right_g, 1.0)))
    assert load_g == pytest.approx(1.0)  # the lift axis still points up, and carries the weight alone


def test_the_lift_of_a_banked_aircraft_is_rolled_back_against_gravity():
    assert demanded(1.0, 0.0, 0.0, roll_deg=30.0) == pytest.approx((-30.0, math.cos(math.radians(30.0))))


def test_no_command_exceeds_the_strongest_pull():
    assert demanded(0.5, 0.0, -0.9) == pytest.approx((0.0, aiming.STRONGEST_PULL_G))


@pytest.mark.parametrize(("roll_deg", "kept_deg"), [(0, 0), (60, 60), (85, 80), (95, 100), (-85, -80), (-170, -170)])
def test_a_bank_keeps_off_the_edge(roll_deg: float, kept_deg: float):
    assert math.degrees(aiming.off_the_edge(math.radians(roll_deg))) == pytest.approx(kept_deg)
