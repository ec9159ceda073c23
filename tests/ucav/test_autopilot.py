"""The cascaded PID on the real aircraft: it tracks its commands at any bank and stays within the aerodynamic tables."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from palaestra.games.ucav import autopilot
from palaestra.games.ucav.autopilot import AUTOPILOT, GAINS, steer, steer_load_factor
from palaestra.games.ucav.body import BODY

COMMANDS = ("aileron_command", "elevator_command", "rudder_command", "throttle_command")


def make_body(**values: float) -> Any:
    body = np.zeros(1, BODY).view(np.recarray)[0]
    body.altitude_m, body.true_airspeed_mps, body.load_factor_g = 6000.0, 250.0, 1.0
    for name, value in values.items():
        setattr(body, name, value)
    return body


def make_memory() -> Any:
    return np.zeros(1, AUTOPILOT).view(np.recarray)[0]


class Flight:
    """One aircraft in JSBSim, flown by a law ten times a second."""

    def __init__(self, **start: float) -> None:
        pytest.importorskip("jsbsim", reason="the aircraft need the extra palaestra[flight]")
        from palaestra.games.ucav.jsbsim_engine import JsbsimEngine

        game: Any = SimpleNamespace(state_dtype=np.dtype([("body", BODY, (1,))], align=True))
        self.engine = JsbsimEngine(game, 1, airframe="f16", planet="still")
        self.states: Any = np.zeros(1, game.state_dtype)
        self.body: Any = self.states["body"][0].view(np.recarray)[0]
        values = {"altitude_m": 6000.0, "true_airspeed_mps": 250.0, "throttle_command": 0.3, **start}
        for name, value in values.items():
            setattr(self.body, name, value)
        self.engine.load(self.states, [0])
        self.memory = make_memory()

    def fly(self, law: Any, *command: float, seconds: float) -> list[Any]:
        """The records on the way."""
        records = []
        for _ in range(round(10 * seconds)):
            law(self.body, self.memory, *command)
            self.engine.advance(self.states, [0])
            records.append(self.body.copy())
        return records


@pytest.mark.parametrize("roll_deg", [-60, 0, 45])
@pytest.mark.parametrize("flight_path_deg", [-15, 0, 12])
def test_it_settles_on_roll_and_flight_path(roll_deg, flight_path_deg):
    late = Flight().fly(steer, math.radians(roll_deg), math.radians(flight_path_deg), 250.0, seconds=12)[-20:]
    for body in late:
        assert math.degrees(body.roll_rad) == pytest.approx(roll_deg, abs=1.0)
        assert math.degrees(body.flight_path_angle_rad) == pytest.approx(flight_path_deg, abs=1.0)


def test_it_holds_a_speed_that_the_engine_can_give():
    late = Flight().fly(steer, 0.0, 0.0, 265.0, seconds=40)[-50:]
    assert [body.true_airspeed_mps for body in late] == pytest.approx([265.0] * 50, abs=1.0)


def test_it_flies_level_on_its_back_by_pushing():
    late = Flight(true_airspeed_mps=280.0).fly(steer, math.pi, 0.0, 280.0, seconds=12)[-20:]
    for body in late:
        assert abs(math.degrees(body.roll_rad)) == pytest.approx(180.0, abs=2.0)
        assert abs(math.degrees(body.flight_path_angle_rad)) < 2.0
        assert body.load_factor_g < -0.8


def test_it_pulls_when_it_is_to_go_down_on_its_back():
    body, memory = make_body(roll_rad=math.pi), make_memory()
    steer(body, memory, math.pi, math.radians(-40.0), 250.0)
    assert body.elevator_command > 0.2


def test_it_asks_for_no_load_at_a_bank_that_carries_nothing():
    body, memory = make_body(roll_rad=math.pi / 2), make_memory()
    assert autopilot.load_factor_for_flight_path(GAINS, body, memory, 0.3) == pytest.approx(0.0, abs=1e-9)


def test_the_load_factor_law_settles():
    late = Flight(true_airspeed_mps=270.0).fly(steer_load_factor, math.radians(70.0), 3.0, 270.0, seconds=8)[-15:]
    assert [body.load_factor_g for body in late] == pytest.approx([3.0] * 15, abs=0.2)


def test_random_commands_of_any_attitude_stay_in_the_tables_and_below_nine_g():
    random = np.random.default_rng(0)
    flight = Flight(altitude_m=8000.0)
    for _ in range(6):
        roll, path = random.uniform(-math.pi, math.pi), random.uniform(-0.7, 0.7)
        for body in flight.fly(steer, roll, path, random.uniform(170, 350), seconds=4):
            assert body.in_tables
            assert body.load_factor_g < 12.0


def test_every_command_is_inside_its_range_whatever_the_state():
    random = np.random.default_rng(1)
    memory = make_memory()
    for _ in range(300):
        body = make_body(**{name: random.normal(0, 100) for name in (BODY.names or ())[4:-3]})
        steer(body, memory, *random.normal(0, 100, 3))
        commands = [body[name] for name in COMMANDS]
        assert all(-1.0 <= command <= 1.0 for command in commands)
        assert commands[3] >= 0.0


@pytest.mark.parametrize("sign", [-1, 1])
def test_the_throttle_integral_does_not_wind_up_at_a_stop(sign):
    body, memory = make_body(), make_memory()
    for _ in range(1000):
        steer(body, memory, 0.0, 0.0, 250.0 + sign * 100.0)
    assert abs(memory.throttle_integral) < 0.1


@pytest.mark.parametrize("command_deg", [90, 350, 200])
def test_a_heading_is_reached_the_short_way(command_deg):
    body = make_body(heading_rad=math.radians(10))
    roll = autopilot.heading_to_roll(body, math.radians(command_deg), math.radians(60))
    assert math.copysign(1, roll) == (1 if command_deg == 90 else -1)
    assert abs(roll) <= math.radians(60)


def test_an_altitude_is_climbed_to_no_steeper_than_allowed():
    body = make_body()
    assert autopilot.altitude_to_flight_path(body, 9000.0, 0.3) == pytest.approx(0.3)
    assert autopilot.altitude_to_flight_path(body, 5900.0, 0.3) == pytest.approx(-math.asin(12.5 / 250.0))
