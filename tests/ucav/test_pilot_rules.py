"""What the scripted pilots see, avoid and wish, by hand-made numbers."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from palaestra.games.ucav import aiming, pilots
from palaestra.games.ucav.body import BODY
from palaestra.games.ucav.geometry import GRAVITY_MPS2, rotate_to_body

pytestmark = pytest.mark.jitless

SPEED_MPS = 250.0


def aircraft(**values: float) -> Any:
    """In level flight northwards at 5 km, at 1 g."""
    body: Any = np.zeros(1, BODY).view(np.recarray)[0]
    body.altitude_m, body.true_airspeed_mps, body.velocity_north_mps, body.load_factor_g = 5000, SPEED_MPS, SPEED_MPS, 1
    for name, value in values.items():
        setattr(body, name, value)
    return body


def oncoming(distance_m: float, **values: float) -> Any:
    """Ahead of `aircraft`, and on its way towards it."""
    return aircraft(north_m=distance_m, heading_rad=math.pi, velocity_north_mps=-SPEED_MPS, **values)


def memory(**values: float) -> Any:
    m: Any = np.zeros(1, pilots.MEMORY).view(np.recarray)[0]
    for name, value in values.items():
        m[name] = value
    return m


# ------------------------------------------------------------------------------------------------------------ avoidance


def test_an_oncoming_aircraft_passes_where_and_when_the_velocities_say():
    t, north, east, down = pilots.closest_approach(aircraft(), oncoming(1000.0, east_m=30.0, altitude_m=5010.0))
    assert (t, north, east, down) == pytest.approx((2.0, 0.0, 30.0, -10.0))


def test_a_lift_bends_the_path_to_the_closest_approach():
    """At 3 g the other climbs with 2 g more than ego: by g t^2 in t seconds."""
    *_, down = pilots.closest_approach(aircraft(), oncoming(500.0, load_factor_g=3.0))
    assert down == pytest.approx(-GRAVITY_MPS2)


def avoided(other: Any, seconds: float = 1.2) -> Any:
    m = memory()
    pilots.avoid_collision(m, aircraft(), other, seconds)
    return m


@pytest.mark.parametrize(
    ("distance_m", "east_m"), [(650.0, 0.0), (550.0, pilots.MISS_M + 5.0), (-100.0, 0.0)], ids=["far", "wide", "past"]
)
def test_who_passes_late_or_wide_is_not_avoided(distance_m: float, east_m: float):
    assert not avoided(oncoming(distance_m, east_m=east_m)).avoiding


def test_who_passes_below_is_pulled_away_from():
    m = avoided(oncoming(500.0, altitude_m=4990.0))
    assert m.avoiding
    assert (m.wish.kind, m.wish.roll_error_rad, m.wish.load_g) == (aiming.LIFT, 0.0, pilots.AWAY_G)


def test_who_passes_above_is_pushed_away_from():
    m = avoided(oncoming(500.0, altitude_m=5010.0))
    assert m.avoiding
    assert (m.wish.roll_error_rad, m.wish.load_g) == (0.0, aiming.STRONGEST_PUSH_G)


@pytest.mark.parametrize("east_m", [-20.0, 20.0])
def test_who_passes_on_one_side_is_rolled_away_from(east_m: float):
    m = avoided(oncoming(500.0, east_m=east_m))
    assert m.wish.roll_error_rad == pytest.approx(math.copysign(math.pi / 2, -east_m))


def test_two_that_meet_head_on_avoid_each_other_to_opposite_sides():
    """Each to its own right or each to its own left: both see the same miss."""
    one, other = aircraft(), oncoming(500.0, east_m=10.0)
    first, second = memory(), memory()
    pilots.avoid_collision(first, one, other, 1.2)
    pilots.avoid_collision(second, other, one, 1.2)
    assert first.wish.roll_error_rad == pytest.approx(second.wish.roll_error_rad)


# ------------------------------------------------------------------------------------------------------------- strength


def match(other: Any) -> Any:
    return SimpleNamespace(body=[aircraft(), other], script_rng=np.uint64(3))


def looks(weakness: float, seconds: float, m: Any = None) -> list[float]:
    """Height, m, at which ego believes the other, which seems to fly level but rises by 10 m a period."""
    other, m = oncoming(1000.0), memory() if m is None else m
    s, seen = match(other), []
    for _ in range(round(10 * seconds)):
        with np.errstate(over="ignore"):
            pilots.look(s, m, s.body[0], 1, weakness, 0.1)
        seen.append(float(m.seen.altitude_m))
        other.altitude_m += 10.0
    return seen


def test_the_strongest_pilot_sees_the_other_as_it_is_in_every_decision():
    assert looks(0.0, 1.0) == [5000.0 + 10.0 * k for k in range(10)]


def test_a_weak_pilot_looks_seldom_and_not_exactly():
    seen = looks(1.0, 1.0)
    period = round(10 * pilots.BLIND_S)
    assert len(set(seen)) == 10 / period
    assert abs(seen[0] - 5000.0) <= pilots.MISSEEN_RAD * 1000.0


def test_between_two_looks_the_other_is_supposed_to_fly_straight_on():
    m = memory()
    looks(1.0, 0.1, m)
    first = float(m.seen.north_m)
    looks(1.0, 0.2, m)
    assert float(m.seen.north_m) == pytest.approx(first - 0.2 * SPEED_MPS)


def test_another_target_is_looked_at_at_once():
    m = memory(unseen_s=0.5, target=0)
    assert looks(0.9, 0.1, m) != [0.0]


def test_a_weak_pilot_pulls_less():
    m = memory()
    m.wish.kind, m.wish.load_g = aiming.LIFT, 8.0
    m.wish.spared_g = pilots.SPARED_G
    assert aiming.demand(aircraft(), m.wish, 1.0) == (0.0, aiming.STRONGEST_PULL_G - pilots.SPARED_G)


# --------------------------------------------------------------------------------------------------------------- turns


@pytest.mark.parametrize(("angle_deg", "up", "right"), [(0, 1, 0), (90, 0, 1), (-90, 0, -1), (180, -1, 0)])
@pytest.mark.parametrize("heading_deg", [0.0, 120.0])
def test_the_angle_of_a_turn_is_from_upwards_to_the_right(angle_deg, up, right, heading_deg):
    heading = math.radians(heading_deg)
    north, east = SPEED_MPS * math.cos(heading), SPEED_MPS * math.sin(heading)
    body, m = aircraft(heading_rad=heading, velocity_north_mps=north, velocity_east_mps=east), memory()
    aiming.wish_turn(m.wish, body, math.radians(angle_deg), 5.0, SPEED_MPS)
    error = float(m.wish.roll_error_rad)
    assert (math.cos(error), math.sin(error)) == pytest.approx((up, right), abs=1e-9)


def test_a_turn_in_a_climb_stays_across_the_velocity():
    climb = math.radians(40.0)
    level, down = SPEED_MPS * math.cos(climb), -SPEED_MPS * math.sin(climb)
    body, m = aircraft(pitch_rad=climb, velocity_north_mps=level, velocity_down_mps=down), memory()
    aiming.wish_turn(m.wish, body, 0.0, 5.0, SPEED_MPS)
    assert m.wish.roll_error_rad == pytest.approx(0.0)
    assert rotate_to_body(body, level, 0.0, down) == pytest.approx((SPEED_MPS, 0.0, 0.0))


def test_corner_speed_is_flown_until_the_nose_is_near_the_other():
    ahead = aircraft(north_m=1400.0)
    assert pilots.chasing_speed_mps(aircraft(heading_rad=1.0), ahead) == pilots.CORNER_SPEED_MPS
    assert pilots.chasing_speed_mps(aircraft(), ahead) == pytest.approx(SPEED_MPS + 80.0)
