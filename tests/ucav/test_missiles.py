"""The missile against the formulas of textbooks, and the rules of seeker and launch, as plain Python."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from palaestra.core.compile.linker import record_view
from palaestra.games.ucav import missiles
from palaestra.games.ucav.body import BODY
from palaestra.games.ucav.geometry import GRAVITY_MPS2
from palaestra.games.ucav.missiles import FRAME_S, GONE, GUIDED, HIT, LOST, MISSILE

pytestmark = pytest.mark.jitless

DEFAULTS = {p.name: p.default for p in missiles.MISSILE_PARAMETERS}
EXACT = 1e-6
"""Largest relative error of a closed form."""

STATE = np.dtype([("body", BODY, (2,)), ("missiles", MISSILE, (4,)), ("ammunition", "i8", (2,))], align=True)


def parameters(**changes: float) -> Any:
    return SimpleNamespace(**{**DEFAULTS, "floor_m": 0.0, "density_deviation": 0.0, **changes})


def missile(north: float = 600.0, east: float = 0.0, down: float = 0.0, altitude_m: float = 5000.0) -> Any:
    """A missile over the origin with a velocity."""
    m: Any = record_view(np.zeros(1, MISSILE))[0]
    missiles.start_missile(m, 0.0, 0.0, altitude_m, 0, 1)
    m.velocity_north_mps, m.velocity_east_mps, m.velocity_down_mps = north, east, down
    return m


def burnt_out(*velocity: float, altitude_m: float = 5000.0) -> Any:
    m = missile(*velocity, altitude_m=altitude_m)
    m.flight_s = missiles.BOOST_S + missiles.SUSTAIN_S
    return m


def aircraft(north_m: float, east_m: float = 0.0, altitude_m: float = 5000.0, heading_deg: float = 0.0) -> Any:
    body: Any = record_view(np.zeros(1, BODY))[0]
    body.north_m, body.east_m, body.altitude_m = north_m, east_m, altitude_m
    body.heading_rad = math.radians(heading_deg)
    return body


def coast(m: Any, frames: int) -> None:
    for _ in range(frames):
        missiles.move(m, 0.0, 0.0, 0.0, 0.0)


def hunt(m: Any, body: Any, velocity: tuple[float, float, float], p: Any, periods: int = 600) -> None:
    """Flies the missile at an aircraft that goes straight (north, east, up, m/s) until one of them is done."""
    for _ in range(periods):
        past = np.array([body.north_m, body.east_m, body.altitude_m])
        body.north_m += 0.1 * velocity[0]
        body.east_m += 0.1 * velocity[1]
        body.altitude_m += 0.1 * velocity[2]
        if missiles.fly(m, past, body, p) or not missiles.in_flight(m):
            return


@pytest.fixture
def without_drag(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(missiles, "DRAG", 0.0)


@pytest.fixture
def without_gravity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(missiles, "GRAVITY_MPS2", 0.0)


@pytest.fixture
def without_motor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(missiles, "EXHAUST_MPS", 0.0)


# ------------------------------------------------------------------------------------------------------ closed forms


def test_without_air_a_burnt_out_missile_flies_a_parabola(without_drag):
    m = burnt_out(400.0, 30.0, -200.0)
    coast(m, 600)
    seconds = 600 * FRAME_S
    assert m.north_m == pytest.approx(400.0 * seconds, rel=EXACT)
    assert m.east_m == pytest.approx(30.0 * seconds, rel=EXACT)
    assert m.altitude_m == pytest.approx(5000.0 + 200.0 * seconds - 0.5 * GRAVITY_MPS2 * seconds**2, rel=EXACT)


def test_in_free_space_the_motor_gives_the_speed_of_tsiolkovsky(without_drag, without_gravity):
    m = missile(250.0)
    coast(m, 60)
    assert missiles.speed_mps(m) == pytest.approx(250.0 + missiles.EXHAUST_MPS * math.log(85.5 / 79.5), rel=EXACT)
    coast(m, 360)
    assert missiles.speed_mps(m) == pytest.approx(250.0 + missiles.EXHAUST_MPS * math.log(85.5 / 67.5), rel=EXACT)


def test_drag_alone_slows_as_the_inverse_of_the_speed_grows_with_time(without_gravity):
    m = burnt_out(800.0)
    coast(m, 600)
    mass = missiles.LAUNCH_KG - missiles.burnt_kg(1e9)
    k = 0.5 * missiles.air_density_kgpm3(5000.0, 0.0) * missiles.SECTION_M2 * missiles.DRAG / mass
    assert 1.0 / missiles.speed_mps(m) == pytest.approx(1.0 / 800.0 + k * 10.0, rel=EXACT)
    assert m.north_m == pytest.approx(math.log(1.0 + k * 800.0 * 10.0) / k, rel=EXACT)


@pytest.mark.parametrize(("altitude_m", "density"), [(0.0, 1.225), (5000.0, 0.736116), (10_000.0, 0.412707)])
def test_the_air_is_that_of_the_standard_atmosphere(altitude_m, density):
    assert missiles.air_density_kgpm3(altitude_m, 0.0) == pytest.approx(density, rel=1e-4)
    assert missiles.air_density_kgpm3(altitude_m, 0.1) == pytest.approx(1.1 * density, rel=1e-4)


def test_a_turn_at_the_limit_keeps_the_speed_and_turns_by_the_acceleration_over_it(
    without_drag, without_gravity, monkeypatch
):
    monkeypatch.setattr(missiles, "LIFT_AREA_M2", 1e30)  # no drag of the lift and no limit but the structure's
    m = burnt_out(600.0)
    for _ in range(60):
        missiles.move(m, -m.velocity_east_mps * 10.0, m.velocity_north_mps * 10.0, 0.0, 0.0)
        assert m.lift_mps2 == 30.0 * GRAVITY_MPS2
    assert missiles.speed_mps(m) == pytest.approx(600.0, rel=EXACT)
    assert math.atan2(m.velocity_east_mps, m.velocity_north_mps) == pytest.approx(
        30.0 * GRAVITY_MPS2 / 600.0, rel=EXACT
    )


def test_the_drag_of_the_lift_is_lift_times_angle_of_attack(without_drag, without_gravity):
    m = burnt_out(600.0)
    dynamic_pressure = 0.5 * missiles.air_density_kgpm3(5000.0, 0.0) * 600.0**2
    missiles.move(m, 0.0, 100.0, 0.0, 0.0)
    attack = 67.5 * 100.0 / (dynamic_pressure * missiles.LIFT_AREA_M2)
    assert 600.0 - missiles.speed_mps(m) == pytest.approx(100.0 * attack * FRAME_S, rel=EXACT)


def test_slow_missiles_pull_what_their_largest_angle_of_attack_gives():
    m = burnt_out(250.0)
    area = 0.5 * missiles.air_density_kgpm3(5000.0, 0.0) * 250.0**2 * missiles.LIFT_AREA_M2
    missiles.move(m, 0.0, 1e4, 0.0, 0.0)
    expected = area * missiles.MOST_ATTACK_RAD / (missiles.LAUNCH_KG - 18.0)
    assert m.lift_mps2 == pytest.approx(expected, rel=EXACT)
    assert m.lift_mps2 < missiles.MOST_LIFT_MPS2


# ---------------------------------------------------------------------------------------------------------- guidance


def test_on_a_collision_course_navigation_asks_for_nothing_but_weight(without_gravity):
    m = burnt_out(600.0, 250.0)  # the target keeps abreast at 250 m/s
    asked = missiles.navigate(m, 3000.0, 0.0, 0.0, -100.0, 250.0, 0.0)
    assert np.allclose(asked, 0.0, atol=EXACT)


def test_a_missile_on_a_collision_course_meets_its_target(without_gravity, without_drag):
    m, body = burnt_out(600.0, 250.0), aircraft(3000.0, heading_deg=90.0)
    lifts = []
    for _ in range(60):
        past = np.array([body.north_m, body.east_m, body.altitude_m])
        body.north_m, body.east_m = body.north_m - 10.0, body.east_m + 25.0
        missiles.fly(m, past, body, parameters(seeker_front_m=1e4))
        lifts.append(m.lift_mps2)
        if not missiles.in_flight(m):
            break
    assert m.status == HIT
    assert max(lifts) < EXACT


def test_navigation_turns_with_its_gain_times_the_line_of_sight():
    m = burnt_out(600.0)
    north, east, down = missiles.navigate(m, 2000.0, 0.0, 0.0, 100.0, 50.0, 0.0)
    assert (north, down) == (pytest.approx(0.0, abs=1e-9), pytest.approx(-GRAVITY_MPS2))
    assert east == pytest.approx(missiles.NAVIGATION * 500.0 * (50.0 / 2000.0), rel=EXACT)


@pytest.mark.parametrize("velocity", [(250.0, 0.0, 0.0), (200.0, 150.0, 0.0), (220.0, 40.0, 60.0)])
def test_a_target_that_flies_straight_in_range_is_hit(velocity):
    m, body = missile(250.0), aircraft(2500.0)
    body.heading_rad = math.atan2(velocity[1], velocity[0])
    hunt(m, body, velocity, parameters())
    assert m.status == HIT
    assert m.closest_m <= DEFAULTS["lethal_m"]


def test_no_frame_exceeds_the_limits_of_structure_and_attack():
    m, body = missile(250.0), aircraft(1500.0, 900.0, heading_deg=120.0)
    hunt(m, body, (-150.0, 280.0, 0.0), parameters(seeker_front_m=1e4))
    assert m.lift_mps2 <= missiles.MOST_LIFT_MPS2


# ------------------------------------------------------------------------------------------------- seeker and the end


def test_a_target_that_shows_its_side_far_away_is_lost():
    p = parameters()
    behind, beside = aircraft(3000.0), aircraft(3000.0, heading_deg=90.0)
    past = np.array([3000.0, 0.0, 5000.0])
    follows, loses = missile(), missile()
    missiles.fly(follows, past, behind, p)
    missiles.fly(loses, past, beside, p)
    assert (follows.status, loses.status) == (GUIDED, LOST)


def test_a_near_target_is_seen_from_all_sides():
    m = missile()
    missiles.fly(m, np.array([900.0, 0.0, 5000.0]), aircraft(900.0, heading_deg=180.0), parameters())
    assert m.status == GUIDED


def test_the_range_of_the_lock_is_the_root_of_the_radiance():
    p = parameters()
    assert missiles.lock_range_m(1.0, p) == p.seeker_rear_m
    assert missiles.lock_range_m(0.0, p) == missiles.lock_range_m(-1.0, p) == p.seeker_front_m
    half = 0.5 * (p.seeker_rear_m**2 + p.seeker_front_m**2)
    assert missiles.lock_range_m(0.5, p) == pytest.approx(math.sqrt(half))


def test_a_target_outside_the_cone_is_lost_and_the_missile_does_not_steer_any_more():
    m = missile()
    body = aircraft(1000.0, 1000.0)
    missiles.fly(m, np.array([1000.0, 1000.0, 5000.0]), body, parameters())
    assert m.status == LOST
    assert m.lift_mps2 == 0.0
    assert m.velocity_east_mps == 0.0
    missiles.fly(m, np.array([1000.0, 0.0, 5000.0]), aircraft(1000.0), parameters())
    assert m.status == LOST


def test_a_missile_that_has_lost_its_target_still_hits_what_it_meets():
    m, body = missile(700.0), aircraft(100.0)
    m.status = LOST
    hunt(m, body, (250.0, 0.0, 0.0), parameters())
    assert m.status == HIT


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"flight_s": missiles.LIFE_S - FRAME_S / 2}, "old"),
        ({"velocity_north_mps": missiles.SLOWEST_MPS - 1.0, "flight_s": 30.0}, "slow"),
        ({"altitude_m": -1.0}, "low"),
    ],
)
def test_a_missile_destroys_itself(change, why):
    m = missile()
    for name, value in change.items():
        setattr(m, name, value)
    missiles.fly(m, np.array([900.0, 0.0, 5000.0]), aircraft(900.0), parameters())
    assert m.status == GONE, why


def test_burnt_out_and_falling_behind_is_the_end_of_a_missile():
    fast, slow = burnt_out(400.0), burnt_out(300.0)
    for m in (fast, slow):
        missiles.fly(m, np.array([2000.0, 0.0, 5000.0]), aircraft(2035.0), parameters())
    assert (fast.status, slow.status) == (GUIDED, GONE)


def test_a_pass_between_two_frames_is_seen():
    p = parameters(lethal_m=3.0)
    m, past = burnt_out(900.0), np.array([51.0, 2.0, 5000.0])
    m.status = LOST
    body = aircraft(26.0, 2.0)  # closes at 1150 m/s: 19 m a frame
    assert missiles.fly(m, past, body, p)
    assert m.closest_m == pytest.approx(2.0, abs=0.1)


# ------------------------------------------------------------------------------------------------------------ launch


def fight(**changes: float) -> Any:
    """Slot 0 is 2 km behind slot 1, both flying north."""
    s: Any = record_view(np.zeros(1, STATE))[0]
    view = SimpleNamespace(
        body=s.body, missiles=s.missiles, ammunition=s.ammunition, team=[0, 1], parameters=parameters(**changes)
    )
    for slot, north_m in ((0, 0.0), (1, 2000.0)):
        view.body[slot].north_m, view.body[slot].altitude_m = north_m, 5000.0
        view.body[slot].velocity_north_mps = 250.0
        missiles.arm(view, slot)
    return view


def test_a_launch_needs_range_cone_and_ammunition():
    s = fight()
    assert missiles.may_launch(s, 0, 1)
    assert not missiles.may_launch(s, 1, 0)
    for north_m in (900.0, 5100.0):
        s.body[1].north_m = north_m
        assert not missiles.may_launch(s, 0, 1)
    s.body[1].north_m = 2000.0
    s.body[0].heading_rad = math.radians(31.0)
    assert not missiles.may_launch(s, 0, 1)
    s.body[0].heading_rad = 0.0
    s.body[0].velocity_north_mps, s.body[0].velocity_down_mps = 0.75 * 250.0, 0.66 * 250.0  # 41 deg below the nose
    assert not missiles.may_launch(s, 0, 1)
    s.body[0].velocity_north_mps, s.body[0].velocity_down_mps = 0.8 * 250.0, 0.6 * 250.0
    assert missiles.may_launch(s, 0, 1)
    s.ammunition[0] = 0
    assert not missiles.may_launch(s, 0, 1)


def test_a_launch_needs_a_lock():
    s = fight()
    s.body[1].north_m = 3000.0
    assert missiles.may_launch(s, 0, 1)
    s.body[1].heading_rad = math.pi
    assert not missiles.may_launch(s, 0, 1)


def test_a_missile_leaves_its_aircraft_with_its_velocity_and_is_missed_in_its_magazine():
    s = fight()
    missiles.launch(s, 0, 1)
    assert list(s.ammunition) == [1, 2]
    m = s.missiles[0]
    assert (m.status, m.shooter, m.target) == (GUIDED, 0, 1)
    assert (m.north_m, m.altitude_m, m.velocity_north_mps) == (0.0, 5000.0, 250.0)
    missiles.launch(s, 0, 1)
    s.ammunition[0] = 1
    assert not missiles.may_launch(s, 0, 1)  # both records fly
    s.missiles[0].status = GONE
    assert missiles.may_launch(s, 0, 1)


def test_a_pilot_is_warned_of_the_next_two_missiles_in_the_order_of_their_arrival():
    s = fight()
    missiles.launch(s, 0, 1)
    missiles.launch(s, 0, 1)
    s.missiles[0].velocity_north_mps, s.missiles[1].velocity_north_mps = 500.0, 650.0
    o = SimpleNamespace(**{field.name: np.zeros(field.shape) for field in missiles.WARNING_FIELDS})
    missiles.write_warnings(o, s, 0)
    assert not o.warning.any()
    missiles.write_warnings(o, s, 1)
    assert list(o.warning) == [1.0, 1.0]
    assert o.warning_time == pytest.approx([2000.0 / 400.0 / 10.0, 2000.0 / 250.0 / 10.0])
    assert o.warning_direction[0] == pytest.approx([-1.0, 0.0, 0.0])
    assert o.warning_range == pytest.approx([0.2, 0.2])
    assert o.warning_closure == pytest.approx([400.0 / 340.0, 250.0 / 340.0])


def test_two_missiles_that_arrive_together_are_both_told():
    s = fight()
    missiles.launch(s, 0, 1)
    missiles.launch(s, 0, 1)
    o = SimpleNamespace(**{field.name: np.zeros(field.shape) for field in missiles.WARNING_FIELDS})
    missiles.write_warnings(o, s, 1)
    assert list(o.warning) == [1.0, 1.0]
