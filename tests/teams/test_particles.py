"""The physics of points against its formula: drift, thrust, contact, walls."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaestra.games.teams import particles
from palaestra.games.teams.particles import DAMPING, MARGIN_M, PERIOD_S, STIFFNESS_N_PER_M

pytestmark = pytest.mark.jitless


def bodies(positions, velocities=(), radius_m=0.1):
    s = SimpleNamespace(position_m=np.array(positions, float), velocity_mps=np.array(velocities, float).reshape(-1, 2))
    scratch = SimpleNamespace(radius_m=np.full(len(s.position_m), radius_m), force_n=np.zeros((len(s.velocity_mps), 2)))
    return s, scratch


def push(s, scratch, i=0):
    return particles.add_contacts(s, scratch, i, 0, len(s.position_m), 0.0, 0.0)


@given(st.floats(-0.2, 0.04), st.floats(0.0, 2 * math.pi))
def test_two_bodies_push_each_other_by_the_smoothed_spring(gap, angle):
    distance = 0.2 + gap
    s, scratch = bodies([(0.3, -0.2), (0.3 + distance * math.cos(angle), -0.2 + distance * math.sin(angle))])
    x, y = push(s, scratch)
    apart = math.dist(*s.position_m)
    expected = STIFFNESS_N_PER_M * MARGIN_M * np.logaddexp(0.0, (0.2 - apart) / MARGIN_M)
    if apart > 1e-9:
        assert math.hypot(x, y) == pytest.approx(expected, rel=1e-9, abs=1e-18)
        assert push(s, scratch, 1) == (-x, -y), "action and reaction are bitwise equal"
        assert x * math.cos(angle) + y * math.sin(angle) <= 0.0, "it pushes away"


def test_what_is_left_out_of_the_contact_force_is_below_any_rounding():
    s, scratch = bodies([(0.0, 0.0), (0.2 + particles.NEGLIGIBLE_M + 1e-9, 0.0)])
    assert push(s, scratch) == (0.0, 0.0)
    left_out = STIFFNESS_N_PER_M * MARGIN_M * math.exp(-particles.NEGLIGIBLE_M / MARGIN_M)
    assert left_out < 1e-18


def test_bodies_in_the_same_place_do_not_push_each_other():
    s, scratch = bodies([(0.5, 0.5), (0.5, 0.5)])
    assert push(s, scratch) == (0.0, 0.0)


def test_the_position_moves_by_the_old_velocity_and_the_velocity_by_the_force():
    s, scratch = bodies([(0.0, 0.0)], [(1.0, -0.4)])
    scratch.force_n[0] = 3.0, 0.0
    particles.advance(s, scratch, 0, 2.0, math.inf)
    np.testing.assert_allclose(s.position_m[0], [PERIOD_S, -0.4 * PERIOD_S], rtol=1e-15)
    np.testing.assert_allclose(s.velocity_mps[0], [1 - DAMPING + 1.5 * PERIOD_S, -0.4 * (1 - DAMPING)], rtol=1e-15)


def test_no_agent_exceeds_the_speed_of_its_role():
    s, scratch = bodies([(0.0, 0.0)], [(3.0, 4.0)])
    particles.advance(s, scratch, 0, 1.0, 1.3)
    np.testing.assert_allclose(s.velocity_mps[0], [1.3 * 0.6, 1.3 * 0.8], rtol=1e-15)


def test_a_body_without_thrust_coasts_for_the_coasting_time():
    s, scratch = bodies([(0.0, 0.0)], [(1.0, 0.0)])
    for _ in range(200):
        particles.advance(s, scratch, 0, 1.0, math.inf)
    assert s.position_m[0, 0] == pytest.approx(particles.COAST_S)


@given(st.floats(-3, 3), st.floats(-3, 3), st.floats(-2, 2), st.floats(-2, 2))
def test_a_wall_takes_the_speed_towards_it_and_nothing_else(x, y, vx, vy):
    s, scratch = bodies([(x, y)], [(vx, vy)])
    particles.stop_at_walls(s, scratch, 0)
    for before, speed, after, left in zip((x, y), (vx, vy), s.position_m[0], s.velocity_mps[0], strict=True):
        inside = abs(before) < 0.9
        assert after == (before if inside else math.copysign(0.9, before))
        assert left == (speed if inside or speed * before <= 0 else 0.0)
