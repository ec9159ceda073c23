"""The scripted pilots on JSBSim's F-16: they do what their names say and keep out of the ground and of overloads."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from palaestra.core.compile.linker import record_view
from palaestra.core.run.physics import PhysicsSimulation
from palaestra.game import Game
from palaestra.games.ucav import aiming, dogfight, expert
from palaestra.games.ucav.autopilot import steer
from palaestra.games.ucav.dogfight import BLUE, RED
from palaestra.games.ucav.geometry import antenna_train_angle_rad, rotate_to_body
from palaestra.games.ucav.limits import INSTANT_LOAD_G, SUSTAINED_LOAD_G

pytestmark = pytest.mark.check

pytest.importorskip("jsbsim", reason='the aircraft need the extra "palaestra[flight]"')

BEHIND: dict[str, Any] = {"neutral_weight": 0.0, "blue_behind_weight": 0.0, "cone_half_angle_deg": 1.0}
STICK, MACRO = dogfight.game(engine="jsbsim"), dogfight.game(commands="macro", engine="jsbsim")


class Flight:
    """One match of two scripts.

    With sticks it runs compiled, in the kernel of the registered ids, with macros as plain Python: both scripts are
    played in both ways.
    """

    def __init__(self, red: str, blue: str, game: Game = STICK, seed: int = 1, **parameters: float) -> None:
        self.game = game
        opponents = {"red": red, "blue": blue}
        self.sim = PhysicsSimulation(
            game, 1, compiled=game is STICK, autoreset_mode="off", opponents=opponents, parameters=parameters
        )
        self.sim.reset(seed=seed)
        self.engine: Any = self.sim.engine
        self.states = self.sim.states
        self.s: Any = record_view(self.states)[0]

    def put(self, slot: int, **values: float) -> Flight:
        for name, value in values.items():
            setattr(self.s.body[slot], name, value)
        return self

    def fly(self, seconds: float) -> Iterator[Any]:
        """The match record after every decision, until a rule ends the match."""
        if self.s.steps == 0:
            self.sim.load_states(self.states.copy())
        for _ in range(round(seconds * self.game.render_fps)):
            self.sim.step()
            yield self.s
            if self.sim.terminated[0]:
                return

    def last(self, seconds: float) -> Any:
        *_, s = self.fly(seconds)
        return s


def apart(red: str, blue: str = "straight", **options: Any) -> Flight:
    """Both far from each other, level, at 5 km."""
    flight = Flight(red, blue, arena_drain=0.0, arena_radius_m=100_000.0, **options)
    for slot, east in ((RED, 0.0), (BLUE, 20_000.0)):
        flight.put(slot, north_m=0.0, east_m=east, altitude_m=5000.0, heading_rad=0.0, true_airspeed_mps=240.0)
    return flight


def memory() -> Any:
    return record_view(np.zeros(1, aiming.WISH))[0]


# ------------------------------------------------------------------------------------------------------ what they fly


@pytest.mark.slow
@pytest.mark.parametrize("game", [STICK, MACRO])
def test_straight_holds_course_and_height(game):
    body = apart("straight", game=game).last(30).body[RED]
    assert abs(body.east_m) < 100.0
    assert abs(body.altitude_m - 5000.0) < 100.0
    assert body.north_m > 6000.0


@pytest.mark.parametrize("game", [STICK, MACRO])
def test_level_turn_turns_level_to_one_side_for_ever(game):
    headings = []
    for s in apart("level_turn", game=game).fly(100):
        headings.append(float(s.body[RED].heading_rad))
        assert abs(s.body[RED].altitude_m - 5000.0) < 200.0
    turned = np.unwrap(headings)
    assert abs(turned[-1] - turned[0]) > math.pi
    assert len(set(np.sign(np.diff(turned[round(3 * game.render_fps) :])))) == 1


def test_weave_turns_to_both_sides():
    rolls = [float(s.body[RED].roll_rad) for s in apart("weave").fly(30)]
    assert max(rolls) > math.radians(40.0)
    assert min(rolls) < -math.radians(40.0)


def test_jink_breaks_hard_to_both_sides():
    states = [(float(s.body[RED].load_factor_g), float(s.body[RED].roll_rad)) for s in apart("jink").fly(30)]
    loads, rolls = np.array(states).T
    assert np.mean(loads) > 3.5
    assert max(loads) > 6.0
    assert min(np.mean(rolls > 1.0), np.mean(rolls < -1.0)) > 0.1


@pytest.mark.parametrize("game", [STICK, MACRO])
def test_random_macros_hold_what_they_have_drawn_and_then_draw_again(game):
    wishes = [[float(s.pilots[RED].wish[n]) for n in ("roll_rad", "flight_path_rad", "speed_mps")] for s in hold(game)]
    changes = np.flatnonzero(np.diff(wishes, axis=0).any(axis=1))
    assert 6 <= len(changes) <= 18  # in a minute, of 3 to 8 s each
    assert len(np.unique(np.array(wishes)[:, 0])) == len(changes) + 1
    assert np.ptp(wishes, axis=0).min() > 0.5


def hold(game: Game) -> Iterator[Any]:
    return apart("random_macros", game=game).fly(60)


def test_vertical_climbs_and_dives():
    heights = [float(s.body[RED].altitude_m) for s in apart("vertical").fly(60)]
    turns = np.flatnonzero(np.diff(np.sign(np.diff(heights[::10]))))
    assert max(heights) - min(heights) > 1000.0
    assert len(turns) >= 4


def test_the_same_randomness_flies_the_same_turn_and_leaves_the_stream_of_the_rules_alone():
    first, second = apart("weave", seed=5), apart("weave", seed=5)
    dice = int(first.s.rng)
    assert first.last(10).body[RED].tobytes() == second.last(10).body[RED].tobytes()
    assert int(first.s.rng) == dice


@pytest.mark.parametrize("aim_deg", [(60.0, 0.0), (-100.0, 0.0), (0.0, 40.0), (30.0, -30.0)])
def test_pointing_brings_the_nose_onto_a_direction_and_keeps_it_there(aim_deg):
    heading, elevation = map(math.radians, aim_deg)
    flight = apart("straight")
    flight.engine.load(flight.states, [0])
    body, m, errors = flight.s.body[RED], memory(), []
    for _ in range(150):
        aiming.wish_aim_earth(m, body, heading, elevation, 250.0)
        aiming.point(body, m)
        body.throttle_command = 1.0
        flight.engine.advance(flight.states, [0])
        errors.append(math.degrees(math.acos(min(rotate_to_body(body, *direction(heading, elevation))[0], 1.0))))
    assert max(errors[-30:]) < 1.5


def direction(heading: float, elevation: float) -> tuple[float, float, float]:
    level = math.cos(elevation)
    return level * math.cos(heading), level * math.sin(heading), -math.sin(elevation)


# ------------------------------------------------------------------------------------------------------------- safety


@pytest.mark.parametrize("altitude_m", [600.0, 2500.0, 6000.0])
@pytest.mark.parametrize("speed_mps", [220.0, 300.0, 380.0])
def test_the_hardest_pull_does_not_break_the_airframe(altitude_m, speed_mps):
    flight = apart("straight").put(RED, altitude_m=altitude_m, true_airspeed_mps=speed_mps, throttle_command=1.0)
    flight.engine.load(flight.states, [0])
    body, m, loads = flight.s.body[RED], memory(), []
    for step in range(80):
        aiming.wish_aim_earth(m, body, 0.0, 0.0, 400.0)
        if step >= 10:
            aiming.wish_aim(m, 0.0, 0.0, -1.0, 0.0, 0.3, 0.0, 400.0)
        aiming.point(body, m)
        body.throttle_command = 1.0
        flight.engine.advance(flight.states, [0])
        loads.append(float(body.load_factor_g))
    assert max(loads) < INSTANT_LOAD_G
    above = [load > SUSTAINED_LOAD_G for load in loads]
    assert not any(all(above[i : i + 5]) for i in range(len(above)))


@pytest.mark.parametrize("game", [STICK, MACRO])
@pytest.mark.parametrize("dive_deg", [20.0, 60.0])
@pytest.mark.parametrize("script", ["pure_pursuit", "level_turn", "expert", "jink", "vertical"])
def test_no_pilot_dives_into_the_ground(game, dive_deg, script):
    flight = apart(script, game=game)
    flight.put(RED, altitude_m=3000.0, pitch_rad=-math.radians(dive_deg), roll_rad=2.0, true_airspeed_mps=260.0)
    flight.put(BLUE, altitude_m=320.0, north_m=6000.0, east_m=0.0)
    lowest = min(float(s.body[RED].altitude_m) for s in flight.fly(25))
    assert lowest > 305.0


@pytest.mark.parametrize("script", ["straight", "weave", "level_turn", "jink", "random_macros", "vertical"])
def test_no_robot_leaves_the_arena(script):
    flight = Flight(script, "level_turn", arena_radius_m=9000.0)
    radii = [math.hypot(*(float(s.body[RED][n]) for n in ("north_m", "east_m"))) for s in flight.fly(70)]
    assert max(radii) < 9000.0


# ----------------------------------------------------------------------------------------------------------- shooting


@pytest.mark.parametrize("hunter", ["pure_pursuit", "lead_pursuit", "lag_pursuit", "expert"])
@pytest.mark.parametrize("target", ["straight", "level_turn", "weave"])
def test_hunters_kill_targets_with_the_narrowest_cone(hunter, target):
    s = (flight := Flight(hunter, target, seed=3, **BEHIND)).last(100)
    assert (s.info.winner, flight.game.end_reason(int(s.info.end_reason))) == (RED, "kill")


def test_a_hunter_holds_a_turning_target_in_the_cone():
    flight = Flight("lag_pursuit", "level_turn", seed=3, **BEHIND, damage_per_second=0.0)
    angles = [math.degrees(antenna_train_angle_rad(s.body[RED], s.body[BLUE])) for s in flight.fly(40)]
    assert np.mean(np.array(angles[-200:]) < 1.0) > 0.9


def test_a_script_gives_actions_inside_their_space():
    for game in (STICK, MACRO):
        flight = Flight("expert", "pure_pursuit", game=game)
        for _ in flight.fly(20):
            values = flight.sim.actions
            assert np.all(np.abs(values) <= 1.0)


# --------------------------------------------------------------------------------------------------------------- laws


@pytest.mark.parametrize("roll_deg", [30.0, 60.0, 75.0])
@pytest.mark.parametrize("load_g", [1.0, 3.0, 5.0])
def test_macros_hold_the_load_factor_that_is_wanted(roll_deg, load_g):
    flight = apart("straight").put(RED, altitude_m=6000.0, true_airspeed_mps=280.0)
    flight.engine.load(flight.states, [0])
    body, autopilot, loads = flight.s.body[RED], flight.s.autopilots[RED], []
    roll = path = 0.0
    for period in range(50):
        if period % 5 == 0 and period >= 10:
            roll = math.radians(roll_deg)
            path = aiming.flight_path_for_load_factor(body, roll, load_g)
        steer(body, autopilot, roll, path, 280.0)
        flight.engine.advance(flight.states, [0])
        loads.append(float(body.load_factor_g))
    assert np.mean(loads[20:]) == pytest.approx(load_g, abs=0.5)


def test_the_look_ahead_turns_towards_a_target_abeam():
    flight = apart("straight")
    flight.put(RED, velocity_north_mps=240.0, load_factor_g=1.0)
    flight.put(BLUE, velocity_north_mps=240.0, load_factor_g=1.0, east_m=1500.0)
    work = record_view(np.zeros(1, STICK.scratch_dtype))[0]
    turn = expert.choose_turn(work.futures, flight.s.body[RED], flight.s.body[BLUE], 7.0, 600.0)
    assert work.futures.lift[1, turn] > 0.5  # east
    assert work.futures.load_g[turn] >= 3.5


def test_a_ghost_in_a_level_turn_flies_the_circle_of_its_load():
    ghosts = np.zeros(1, expert.GHOSTS).view(np.recarray)[0]
    ghosts.velocity_mps[0], ghosts.lift[1], ghosts.lift[2] = 200.0, math.sqrt(15.0) / 4.0, -0.25  # 4 g, level
    ghosts.load_g[:] = 4.0
    for _ in range(10):
        expert.move_ghosts(ghosts, 0.01)
    turned = np.arctan2(ghosts.velocity_mps[1], ghosts.velocity_mps[0])
    np.testing.assert_allclose(turned, 0.1 * 9.80665 * math.sqrt(15.0) / 200.0, rtol=0.01)
    assert np.abs(ghosts.velocity_mps[2]).max() < 0.1


def test_the_stick_for_a_share_is_monotonic_and_full_at_one():
    shares = np.linspace(-1.0, 1.0, 50)
    sticks = [aiming.stick_for(share) for share in shares]
    assert np.all(np.diff(sticks) > 0.0)
    assert sticks[-1] == 1.0
