"""Aim commands: where the nose is to point, and scripts that say so."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from games.play import long_without_the_compiler

import palaestra
from palaestra.core.compile.linker import record_view
from palaestra.games.ucav import aim_macros
from palaestra.games.ucav.aiming import WISH, wish_aim, wish_lift, wish_macro
from palaestra.games.ucav.body import BODY
from palaestra.games.ucav.geometry import GRAVITY_MPS2, rotate_to_body

pytestmark = pytest.mark.jitless


def aircraft(north_m: float = 0.0, east_m: float = 0.0, up_m: float = 0.0, heading_deg: float = 0.0) -> Any:
    body: Any = record_view(np.zeros(1, BODY))[0]
    body.north_m, body.east_m, body.altitude_m = north_m, east_m, 4000.0 + up_m
    body.heading_rad, body.true_airspeed_mps, body.load_factor_g = math.radians(heading_deg), 250.0, 1.0
    body.velocity_north_mps = 250.0 * math.cos(body.heading_rad)
    body.velocity_east_mps = 250.0 * math.sin(body.heading_rad)
    body.calibrated_airspeed_mps, body.mach = 205.0, 0.77
    return body


def wish() -> Any:
    return record_view(np.zeros(1, WISH))[0]


class Recorded:
    """A match of two in which what is asked of the pointing law is kept."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, me: Any, target: Any) -> None:
        for name in ("stay_inside", "avoid_ground", "hold_speed"):
            monkeypatch.setattr(aim_macros, name, lambda *words: None)
        monkeypatch.setattr(aim_macros, "point", lambda body, wish: None)
        parameters = SimpleNamespace(arena_radius_m=1e6, floor_m=300.0)
        self.s = SimpleNamespace(
            body=[me, target],
            aims=[SimpleNamespace(wish=wish())],
            autopilots=[None],
            parameters=parameters,
            last_action=np.zeros((2, 4)),
        )

    def aim(self, **action: float) -> Any:
        words = {"lead": 0.0, "side": 0.0, "up": 0.0, "speed": 0.0} | action
        aim_macros.remember_aim(self.s, 0, SimpleNamespace(**words))
        aim_macros.fly_aim(self.s, 0, 1)
        return self.s.aims[0].wish


def direction_deg(wish: Any) -> tuple[float, float]:
    """Degrees to the right of and above a level aircraft's nose."""
    x, y, z = wish.aim
    return math.degrees(math.atan2(y, x)), math.degrees(math.asin(-z))


def test_all_zeros_is_pure_pursuit_at_corner_speed(monkeypatch):
    wish = Recorded(monkeypatch, aircraft(), aircraft(3000.0, 3000.0, 0.0)).aim()
    assert direction_deg(wish) == pytest.approx((45.0, 0.0), abs=1e-9)
    assert wish.speed_mps == 250.0


@pytest.mark.parametrize(
    ("action", "right_deg", "up_deg"),
    [
        ({"side": 0.5}, 22.5, 0.0),
        ({"side": -1.0}, -180.0, 0.0),
        ({"up": 0.5}, 0.0, 11.25),
        ({"lead": 1.0}, math.degrees(math.atan2(500.0, 4000.0)), 0.0),
        ({"lead": -0.5}, math.degrees(math.atan2(-250.0, 4000.0)), 0.0),
    ],
)
def test_offsets_turn_the_aim_to_the_right_up_and_ahead_of_the_other(monkeypatch, action, right_deg, up_deg):
    seen = direction_deg(Recorded(monkeypatch, aircraft(), aircraft(4000.0, heading_deg=90.0)).aim(**action))
    assert math.cos(math.radians(seen[0] - right_deg)) == pytest.approx(1.0)
    assert seen[1] == pytest.approx(up_deg, abs=1e-6)


def test_near_the_nose_in_gun_range_offsets_nearly_vanish(monkeypatch):
    seen = direction_deg(Recorded(monkeypatch, aircraft(), aircraft(500.0, 10.0)).aim(side=1.0, lead=1.0))
    assert seen[0] == pytest.approx(math.degrees(math.atan2(10.0, 500.0)) + 0.02 * 180.0)


@pytest.mark.parametrize(("share", "mps"), [(-1.0, 120.0), (-0.5, 185.0), (0.0, 250.0), (0.5, 325.0), (1.0, 400.0)])
def test_speeds_are_read_as_they_are_written(share, mps):
    assert aim_macros.read_speed_mps(share) == pytest.approx(mps)
    assert aim_macros.write_speed(mps) == pytest.approx(share)


@pytest.mark.parametrize(("right_deg", "up_deg"), [(0.0, 0.0), (60.0, 10.0), (-120.0, -40.0), (170.0, 30.0)])
def test_a_script_that_aims_says_the_direction_that_is_flown(monkeypatch, right_deg, up_deg):
    me, target = aircraft(heading_deg=40.0), aircraft(2500.0, 900.0, 300.0)
    match, wanted = Recorded(monkeypatch, me, target), wish()
    heading, level = me.heading_rad + math.radians(right_deg), math.cos(math.radians(up_deg))
    down = -math.sin(math.radians(up_deg))
    wish_aim(
        wanted, *rotate_to_body(me, level * math.cos(heading), level * math.sin(heading), down), 0.0, 0.0, 0.0, 300.0
    )
    action: Any = SimpleNamespace()
    aim_macros.write_aim(wanted, me, target, action)
    flown = match.aim(**vars(action))
    np.testing.assert_allclose(flown.aim, wanted.aim, atol=1e-9)
    assert flown.speed_mps == pytest.approx(300.0)


@pytest.mark.parametrize("bank_deg", [-60.0, 45.0])
def test_a_level_turn_is_an_aim_that_turns_as_fast(bank_deg):
    me, wanted = aircraft(), wish()
    wish_macro(wanted, math.radians(bank_deg), 0.0, 250.0)
    x, y, z = aim_macros.aim_of(wanted, me)
    rate = GRAVITY_MPS2 / 250.0 * math.tan(math.radians(bank_deg))
    assert math.atan2(y, x) * aim_macros.AIM_GAIN == pytest.approx(rate)
    assert z == pytest.approx(0.0, abs=1e-9)


def test_a_lift_is_an_aim_to_its_side():
    me, wanted = aircraft(), wish()
    wish_lift(wanted, me, 0.0, 1.0, 0.0, 5.0, 250.0)  # to the right
    x, y, z = aim_macros.aim_of(wanted, me)
    assert y > 0.0 < z  # and down: nothing carries the weight
    assert x * x + y * y + z * z == pytest.approx(1.0)


@pytest.mark.slow
@long_without_the_compiler
def test_zeros_shoot_down_what_weaves_and_scripts_fly_as_with_the_stick():
    hunts = palaestra.make_batch("palaestra/UcavPursuit-Contest-v2", 64, commands="aim", autoreset_mode="off")
    hunts.set_opponent("blue", "weave")
    hunts.reset(seed=9)
    for _ in range(1000):
        hunts.step(np.zeros(hunts.actions.shape))
    kills = [hunts.game.end_reason(int(number)) for number in hunts.info["end_reason"]].count("kill")
    assert kills >= 58
    hunts.set_opponent("red", "lag_pursuit")
    hunts.reset(seed=10)
    for _ in range(1000):
        hunts.step()
    assert (hunts.info["winner"] == 0).mean() >= 0.95
    hunts.close()
