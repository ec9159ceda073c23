"""Geometry of two aircraft: known cases, exact symmetries, and agreement with numerical derivatives."""

from __future__ import annotations

import math
from copy import copy
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaestra.games.ucav import geometry
from palaestra.games.ucav.body import BODY
from palaestra.kernels.vectors import norm

pytestmark = pytest.mark.jitless

NUMBERS = ("north_m", "east_m", "altitude_m", "velocity_north_mps", "velocity_east_mps", "velocity_down_mps")
ANGLES = ("roll_rad", "pitch_rad", "heading_rad")


def make_body(**values: float) -> Any:
    """The fields of an aircraft record, without the slowness of a record."""
    return SimpleNamespace(**{**dict.fromkeys(BODY.names or (), 0.0), **values})


def bodies(reach: float = 5000.0) -> st.SearchStrategy[Any]:
    values = {
        **dict.fromkeys(NUMBERS[:3], st.floats(-reach, reach)),
        **dict.fromkeys(NUMBERS[3:], st.floats(-400, 400)),
        "roll_rad": st.floats(-math.pi, math.pi),
        "pitch_rad": st.floats(-1.5, 1.5),
        "heading_rad": st.floats(0, 2 * math.pi),
    }
    return st.fixed_dictionaries(values).map(lambda v: make_body(**v))


def turned(body: Any, angle: float) -> Any:
    """The same aircraft after the whole match has been turned about the vertical through the origin."""
    twin = copy(body)
    for north, east in (("north_m", "east_m"), ("velocity_north_mps", "velocity_east_mps")):
        x, y = getattr(body, north), getattr(body, east)
        setattr(twin, north, math.cos(angle) * x - math.sin(angle) * y)
        setattr(twin, east, math.sin(angle) * x + math.cos(angle) * y)
    twin.heading_rad = body.heading_rad + angle
    return twin


def mirrored(body: Any) -> Any:
    """The same aircraft in a mirror that swaps east and west."""
    twin = copy(body)
    for name in ("east_m", "velocity_east_mps", "heading_rad", "roll_rad"):
        setattr(twin, name, -getattr(body, name))
    return twin


def test_heading_east_a_target_in_the_north_is_on_the_left():
    ego, other = make_body(heading_rad=math.pi / 2), make_body(north_m=100.0)
    assert geometry.relative_position(ego, other) == pytest.approx((0, -100, 0), abs=1e-9)


def test_nose_up_a_target_above_is_ahead():
    ego, other = make_body(pitch_rad=math.pi / 2), make_body(altitude_m=100.0)
    assert geometry.relative_position(ego, other) == pytest.approx((100, 0, 0), abs=1e-9)


def test_right_wing_down_a_target_below_is_on_the_right():
    ego, other = make_body(roll_rad=math.pi / 2), make_body(altitude_m=-100.0)
    assert geometry.relative_position(ego, other) == pytest.approx((0, 100, 0), abs=1e-9)


def test_right_behind_the_train_angle_and_the_aspect_angle_are_zero():
    ego, other = make_body(heading_rad=1.0), make_body(heading_rad=1.0)
    other.north_m, other.east_m = 500 * math.cos(1.0), 500 * math.sin(1.0)
    assert geometry.antenna_train_angle_rad(ego, other) == pytest.approx(0.0, abs=1e-9)
    assert geometry.aspect_angle_rad(ego, other) == pytest.approx(0.0, abs=1e-9)
    assert geometry.aspect_angle_rad(other, ego) == pytest.approx(math.pi)


def test_head_on_the_aspect_angle_is_half_a_turn():
    ego, other = make_body(), make_body(north_m=500.0, heading_rad=math.pi)
    assert geometry.aspect_angle_rad(ego, other) == pytest.approx(math.pi)


def test_closure_is_positive_when_they_approach():
    ego = make_body(velocity_north_mps=200.0)
    other = make_body(north_m=1000.0, velocity_north_mps=-150.0)
    assert geometry.closure_mps(ego, other) == pytest.approx(350.0)


def test_a_target_that_crosses_to_the_right_turns_the_line_of_sight_to_the_right():
    rate = geometry.line_of_sight_rate(make_body(), make_body(north_m=1000.0, velocity_east_mps=100.0))
    assert rate == pytest.approx((0.0, 0.0, 0.1))


def test_a_target_that_climbs_turns_the_line_of_sight_up():
    rate = geometry.line_of_sight_rate(make_body(), make_body(north_m=1000.0, velocity_down_mps=-100.0))
    assert rate == pytest.approx((0.0, 0.1, 0.0))


def test_energy_height_adds_what_the_speed_could_climb():
    body = make_body(altitude_m=1000.0, true_airspeed_mps=100.0)
    assert geometry.energy_height_m(body) == pytest.approx(1000.0 + 10_000.0 / (2 * 9.80665))


def test_two_aircraft_at_one_point_give_finite_numbers():
    ego, other = make_body(), make_body(velocity_north_mps=100.0)
    assert geometry.antenna_train_angle_rad(ego, other) == 0.0
    assert all(math.isfinite(x) for x in geometry.line_of_sight_rate(ego, other))
    assert math.isfinite(geometry.closure_mps(ego, other))


@given(bodies(), st.tuples(*[st.floats(-1000, 1000)] * 3))
def test_rotating_to_the_earth_and_back_changes_nothing(body, vector):
    back = geometry.rotate_to_body(body, *geometry.rotate_to_earth(body, *vector))
    assert back == pytest.approx(vector, abs=1e-9)
    assert norm(*back) == pytest.approx(norm(*vector), abs=1e-9)


@given(bodies(), bodies())
def test_range_and_closure_are_symmetric(ego, other):
    assert geometry.distance_m(ego, other) == geometry.distance_m(other, ego)
    assert geometry.closure_mps(ego, other) == pytest.approx(geometry.closure_mps(other, ego), abs=1e-9)


@given(bodies(), bodies())
def test_aspect_is_half_a_turn_less_the_angle_off_the_others_nose(ego, other):
    assert geometry.aspect_angle_rad(ego, other) == pytest.approx(
        math.pi - geometry.antenna_train_angle_rad(other, ego), abs=1e-9
    )


@given(bodies(), bodies(), st.floats(-math.pi, math.pi))
def test_turning_the_whole_match_changes_nothing(ego, other, angle):
    for function in (geometry.relative_position, geometry.relative_velocity, geometry.line_of_sight_rate):
        assert function(turned(ego, angle), turned(other, angle)) == pytest.approx(function(ego, other), abs=1e-5)


@given(bodies(), bodies())
def test_a_mirror_swaps_left_and_right_and_nothing_else(ego, other):
    x, y, z = geometry.relative_position(ego, other)
    assert geometry.relative_position(mirrored(ego), mirrored(other)) == pytest.approx((x, -y, z), abs=1e-9)
    wx, wy, wz = geometry.line_of_sight_rate(ego, other)
    assert geometry.line_of_sight_rate(mirrored(ego), mirrored(other)) == pytest.approx((-wx, wy, -wz), abs=1e-9)


@given(bodies(), bodies())
def test_rates_are_the_derivatives_of_what_they_are_rates_of(ego, other):
    if geometry.distance_m(ego, other) < 100.0:
        return
    dt = 1e-5
    later = []
    for body in (ego, other):
        twin = copy(body)
        twin.north_m += dt * body.velocity_north_mps
        twin.east_m += dt * body.velocity_east_mps
        twin.altitude_m -= dt * body.velocity_down_mps
        later.append(twin)
    shrink = (geometry.distance_m(ego, other) - geometry.distance_m(*later)) / dt
    assert shrink == pytest.approx(geometry.closure_mps(ego, other), abs=0.01)
    now, then = (np.array(geometry.relative_position(a, b)) for a, b in ((ego, other), later))
    now, then = now / np.linalg.norm(now), then / np.linalg.norm(then)
    rate = np.array(geometry.line_of_sight_rate(ego, other))
    np.testing.assert_allclose((then - now) / dt, np.cross(rate, now), atol=5e-3)


@pytest.mark.check
@given(st.lists(st.floats(-100.0, 100.0), min_size=6, max_size=6))
def test_the_miss_distance_is_that_of_two_straight_lines(numbers):
    start, end = np.array(numbers[:3]), np.array(numbers[3:])
    way = end - start
    sampled = min(float(np.linalg.norm(start + share * way)) for share in np.linspace(0.0, 1.0, 2001))
    exact = geometry.closest_pass_m(*start, *end)
    assert exact <= sampled + 1e-9
    assert sampled <= exact + float(np.linalg.norm(way)) / 4000.0 + 1e-9


def test_lines_that_cross_have_the_distance_of_the_cross_product():
    start, end = np.array([-300.0, 4.0, 100.0]), np.array([250.0, 9.0, -60.0])
    way = end - start
    formula = np.linalg.norm(np.cross(start, way)) / np.linalg.norm(way)
    assert geometry.closest_pass_m(*start, *end) == pytest.approx(formula, rel=1e-9)
