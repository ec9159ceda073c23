"""UcavTrack: fly a commanded attitude, heading or load factor.

## Description

The inner loop of an air-combat agent, a UCAV (unmanned combat aerial vehicle). One F-16 with full six-degree-of-freedom
dynamics (as in `palaestra/UcavDogfight-v2`: JSBSim's, compiled) is given a command; after 5 to 15 seconds (20 to 40 for
headings) it is given another. The pilot moves stick and throttle ten times a second and is paid for how close the
aircraft is to the command. What is learned here flies the macros of the dogfight (`palaestra.games.ucav.inner_loop`).

An option decides what is commanded:

* ``command="attitude"``: roll angle, flight-path angle and true airspeed;
* ``command="heading"``: heading, altitude and true airspeed;
* ``command="load_factor"``: roll angle, load factor and true airspeed.

Commands are drawn uniformly from the ranges among the parameters. Below `lowest_m` no descent is commanded and above
`highest_m` no climb. A descent, or a bank whose lift does not carry the aircraft, is made as flat as it takes to pull
out 500 m over the floor afterwards, and a load is raised to what ends a dive there: a pilot that follows stays in the
air. With ``"load_factor"`` the load is drawn and the bank follows: the one with which the flight path ends near a drawn
angle, upside down where that needs a pull towards the ground.

## Action Space

<!-- table: action -->

## Observation Space

Own instruments, the three errors, the age of the command, the last action, the part of the second error that a pull at
this bank takes away, and the integrals of the errors, which stand still while an error is larger than 0.05 in its unit.
Units are scaled as in the table and every number is clipped to its bounds. Nothing in it depends on where the aircraft
is or where north is. The flight control system has hidden state (integrators, actuators), so the problem is partially
observable, mildly.

<!-- table: observation -->

## Rewards

How close the aircraft is to the command, in [0, 1] per decision::

    reward = (c(turn) + c(climb) + c(speed)) / 3
    c(error) = (g(1) + g(5) + g(25) + 4 g(125)) / 7,   g(k) = exp(-(error / (k scale)) ^ 2)

with the scales of the mode among the parameters. Far from the command, where a product of narrow Gaussians is zero, the
widest one has a slope; the narrowest one pays for the last tenth of a degree. Off by default are `control_rate_cost`
times the mean absolute change of the four actions since the last decision, and `push_cost` times how far the angle of
attack has gone from -6 to -10 degrees, where the tables end. The step that ends a match by a rule is paid nothing, or
costs `end_cost`, and what could have been earned until the horizon is lost: with rewards that are never negative, that
is the penalty.

## Starting State

Level flight at a height, speed and heading drawn uniformly (`altitude_low_m` to `altitude_high_m`, `speed_low_mps` to
`speed_high_mps`, any heading), engine settled at a throttle of 0.35, angle of attack zero: the first second is a
transient to trim.

## Episode End

A rule ends the match when the aircraft sinks below `floor_m` (``crash``), pulls more than 9 g for half a second or 12
g at once, either way up (``overload``), leaves the tables of the aerodynamic model, -10 to 45 degrees of angle of
attack and 30 degrees of sideslip (``off_tables``), or has a state that is not a number (``not_finite``). At the
horizon (600 decisions, 60 s) it is truncated.

## Two windows

The script ``"pid"`` is a cascaded PID (`palaestra.games.ucav.autopilot`), the reference for learners. Errors over the
*whole window* of a command are mostly those of the way there, with stick, load factor or thrust at a stop. So 162 sets
of gains have nearly the same: -0.2 to 2.2 % more than the bundled set in roll, -0.6 to 1.7 % in flight path, -0.6 to
0.5 % in speed (``python -m palaestra_baselines.pid --grid``). *Settled* errors, from five seconds after a command on,
differ by factors: 0.6 to 5.6 in roll, 0.8 to 2.0 in flight path. There a learner can win.
``python -m palaestra_baselines.ppo_tracking --evaluate FILE`` measures both.

## Arguments

<!-- table: options -->

<!-- table: parameters -->

## Version History

* v3: the reward is a mean over several scales of each error, no longer a product of three Gaussians; the integrals of
  the errors and the error to pull for are observed; the script ``"pid"`` has gains of its own.
* v2: no command ends in the ground.
* v1, v0: before the first release: compiled, and flown by JSBSim with its aircraft as installed, on the turning Earth.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from palaestra.game import Field, Game, Option, Parameter, Role, apart, uniform, with_options
from palaestra.games.ucav.autopilot import (
    AUTOPILOT,
    TRACKING_GAINS,
    altitude_to_flight_path,
    heading_to_roll,
    steer_load_factor,
    steer_with,
)
from palaestra.games.ucav.body import BODY, PERIOD_S
from palaestra.games.ucav.flight import FLIGHT_OPTIONS, flight_of_game
from palaestra.games.ucav.geometry import GRAVITY_MPS2, SLOWEST_MPS
from palaestra.games.ucav.inner_loop import STICK, integrate_errors, tracking_table, write_tracking_observation
from palaestra.games.ucav.limits import FAILURES, NO_FAILURE, SUSTAINED_LOAD_G, extend_overload_s, find_failure
from palaestra.games.ucav.weather import WEATHER, change_weather, start_weather
from palaestra.kernels.angles import wrap_angle_rad
from palaestra.kernels.scalars import clip

ATTITUDE, HEADING, LOAD_FACTOR = 0, 1, 2
"""Values of ``world.command``."""

START_THROTTLE = 0.35
"""Position of the throttle lever at the start, about that of level cruise."""
PID_ROLL_RAD, PID_FLIGHT_PATH_RAD = math.radians(60.0), math.radians(15.0)
"""Steepest bank and path with which the script ``"pid"`` flies to a heading and an altitude, rad."""

SPARE_M, SPEED_MARGIN, PULL_OUT_G, UPRIGHT_S = 500.0, 1.1, 4.0, 2.0
"""Height that is left over the floor, m; how much faster than it is, or is to be, a descending aircraft may get; load
with which it pulls out, g, and time in which it rolls upright before, s."""
UPRIGHT_G, INVERTED_G = 4.0, 1.5
"""Load that is there to carry an aircraft upright and upside down, g."""
FLATTENINGS, FLATTER = 16, 0.8
"""How often a command that does not fit is made flatter, and by what factor."""

PUSHED_RAD, LOWEST_RAD = math.radians(-6.0), math.radians(-10.0)
"""Angles of attack from which on pushing costs, and at which the tables end, rad."""
RUNNING, FIRST_FAILURE = 0, 2
"""Numbers of end reasons: 0 and 1 belong to the suite; the `FAILURES` follow."""

PARAMETERS = (
    Parameter("roll_range_deg", 60.0, 0.0, 180.0, "deg", "attitude: roll angles up to this"),
    Parameter("flight_path_range_deg", 15.0, 0.0, 80.0, "deg", "attitude, load_factor: flight-path angles up to this"),
    Parameter("heading_range_deg", 180.0, 0.0, 180.0, "deg", "heading: changes of heading up to this"),
    Parameter("altitude_range_m", 600.0, 0.0, 5000.0, "m", "heading: changes of altitude up to this"),
    Parameter("load_factor_low_g", 1.0, 0.1, 8.0, "g", "load_factor: smallest", up_to="load_factor_high_g"),
    Parameter("load_factor_high_g", 5.0, 0.1, 8.0, "g", "load_factor: largest"),
    Parameter(
        "speed_low_mps",
        220.0,
        120.0,
        400.0,
        "m/s",
        "smallest true airspeed, commanded and at the start",
        up_to="speed_high_mps",
    ),
    Parameter("speed_high_mps", 300.0, 120.0, 400.0, "m/s", "largest true airspeed, commanded and at the start"),
    Parameter("command_low_s", 5.0, 0.1, 1e6, "s", "shortest time until the next command", up_to="command_high_s"),
    Parameter("command_high_s", 15.0, 0.1, 1e6, "s", "longest time until the next command"),
    Parameter("altitude_low_m", 5000.0, 500.0, 15_000.0, "m", "smallest starting height", up_to="altitude_high_m"),
    Parameter("altitude_high_m", 7000.0, 500.0, 15_000.0, "m", "largest starting height"),
    Parameter("lowest_m", 3000.0, 0.0, 15_000.0, "m", "below this height no descent is commanded"),
    Parameter("highest_m", 9000.0, 0.0, 15_000.0, "m", "above this height no climb is commanded"),
    Parameter("floor_m", 305.0, 0.0, 5000.0, "m", "height below which the aircraft has crashed (1000 ft)"),
    Parameter("roll_scale_deg", 0.5, 0.01, 180.0, "deg", "reward: narrowest scale of the roll error"),
    Parameter("heading_scale_deg", 0.5, 0.01, 180.0, "deg", "reward: narrowest scale of the heading error"),
    Parameter("flight_path_scale_deg", 0.2, 0.01, 180.0, "deg", "reward: narrowest scale of the flight-path error"),
    Parameter("altitude_scale_m", 5.0, 0.01, 5000.0, "m", "reward: narrowest scale of the altitude error"),
    Parameter("load_factor_scale_g", 0.02, 0.001, 10.0, "g", "reward: narrowest scale of the load-factor error"),
    Parameter("speed_scale_mps", 0.5, 0.01, 400.0, "m/s", "reward: narrowest scale of the airspeed error"),
    Parameter("control_rate_cost", 0.0, 0.0, 100.0, "1", "reward: cost of a mean change of the action by 1"),
    Parameter("end_cost", 0.0, 0.0, 1e6, "1", "reward: cost of an end by rule"),
    Parameter("push_cost", 0.0, 0.0, 100.0, "1", "reward: cost of -10 deg of angle of attack; none from -6 deg up"),
    *WEATHER,
)

DEFAULTS = {"heading": {"heading_range_deg": 90.0, "command_low_s": 20.0, "command_high_s": 40.0}}
"""Defaults that differ by mode: a turn of 90 degrees at 60 degrees of bank takes some 20 s."""

INFO = (
    Field("turn_error_rad", unit="rad", about="roll or heading error when the last reward was paid", dtype="f8"),
    Field("climb_error", unit="rad, m or g", about="flight-path, altitude or load-factor error then", dtype="f8"),
    Field("speed_error_mps", unit="m/s", about="airspeed error then", dtype="f8"),
    Field("command_age_s", unit="s", about="age of that command", dtype="f8"),
    Field("action_change", unit="1", about="mean absolute change of the four actions", dtype="f8"),
)

STATE = (
    ("body", BODY, (1,)),
    ("autopilot", AUTOPILOT),  # memory of the script
    ("integrals", "f8", (3,)),  # of the errors, as observed
    ("turn_command_rad", "f8"),
    ("climb_command", "f8"),  # rad, m or g
    ("speed_command_mps", "f8"),
    ("command_age", "i8"),  # decisions under this command
    ("command_length", "i8"),  # after which there is another
    ("overload_s", "f8"),  # time above the sustained load, ending now
)


# ------------------------------------------------------------------------------------------------ start and commands


def reset(s, world):
    """Level flight somewhere, and the first command."""
    p, body = s.parameters, s.body[0]
    body.altitude_m = uniform(s, p.altitude_low_m, p.altitude_high_m)
    body.true_airspeed_mps = uniform(s, p.speed_low_mps, p.speed_high_mps)
    body.heading_rad = uniform(s, 0.0, 2.0 * math.pi)
    body.throttle_command = START_THROTTLE
    body.finite = 1
    body.in_tables = 1
    start_weather(s, body)
    give_command(s, world.command)
    add_to_integrals(s, world.command)


def give_command(s, mode):
    """Draws the next command: always five numbers, in every mode."""
    p, body = s.parameters, s.body[0]
    turn, climb, load = uniform(s, -1.0, 1.0), uniform(s, -1.0, 1.0), uniform(s, 0.0, 1.0)
    s.speed_command_mps = uniform(s, p.speed_low_mps, p.speed_high_mps)
    seconds = uniform(s, p.command_low_s, p.command_high_s)
    s.command_length = max(1, int(seconds / PERIOD_S + 0.5))
    s.command_age = 0
    if body.altitude_m < p.lowest_m:
        climb = abs(climb)
    elif body.altitude_m > p.highest_m:
        climb = -abs(climb)
    roll, path = turn * math.radians(p.roll_range_deg), climb * math.radians(p.flight_path_range_deg)
    if mode == ATTITUDE:
        s.turn_command_rad, s.climb_command = fit_to_height(s, roll, path, seconds)
    elif mode == HEADING:
        s.turn_command_rad = wrap_angle_rad(body.heading_rad + turn * math.radians(p.heading_range_deg))
        s.climb_command = clip(body.altitude_m + climb * p.altitude_range_m, p.lowest_m, p.highest_m)
    else:
        drawn = p.load_factor_low_g + load * (p.load_factor_high_g - p.load_factor_low_g)
        s.climb_command = max(drawn, saving_load_g(s, seconds))
        _, path = fit_to_height(s, 0.0, path, seconds)
        bank = bank_for_path(body, s.climb_command, path, seconds)
        s.turn_command_rad = math.copysign(bank, turn)


def fit_to_height(s, roll_rad, path_rad, seconds):
    """Roll and flight-path angle, made so flat that the flight and the pull-out after it end above `SPARE_M`, rad.

    A command that fits stays as it is. A descent takes V sin(angle) of height a second; where the lift of a bank does
    not carry the aircraft it falls; the pull-out at n g from the steepest dive takes V^2 (1 - cos(dive)) / (g (n - 1)),
    after `UPRIGHT_S` in which it rolls upright.
    """
    body = s.body[0]
    speed = SPEED_MARGIN * max(body.true_airspeed_mps, s.speed_command_mps)
    room = body.altitude_m - s.parameters.floor_m - SPARE_M
    arc = speed * speed / (GRAVITY_MPS2 * (PULL_OUT_G - 1.0))
    for _ in range(FLATTENINGS):
        upright = math.cos(roll_rad)
        carried = clip(upright * UPRIGHT_G if upright > 0.0 else -upright * INVERTED_G, 0.0, 1.0)
        falling = (1.0 - carried) * GRAVITY_MPS2 * seconds
        descent = max(speed * math.sin(max(-path_rad, 0.0)), min(falling, speed))
        dive = max(math.asin(descent / speed), -body.flight_path_angle_rad)
        loss = seconds * (descent if falling < descent else 0.5 * descent)
        if loss + UPRIGHT_S * speed * math.sin(dive) + arc * (1.0 - math.cos(dive)) <= room:
            break
        roll_rad, path_rad = FLATTER * roll_rad, FLATTER * path_rad if path_rad < 0.0 else path_rad
    return roll_rad, path_rad


def saving_load_g(s, seconds):
    """Least load factor, wings level, that ends a dive above `SPARE_M` if it is held from now on, g; 0 out of a dive.

    V dgamma/dt = g (n - cos(gamma)) has to end the dive within half of the time to the ground, `UPRIGHT_S` taken off.
    """
    body = s.body[0]
    dive, speed = -body.flight_path_angle_rad, SPEED_MARGIN * max(body.true_airspeed_mps, SLOWEST_MPS)
    if dive <= 0.0:
        return 0.0
    room = body.altitude_m - s.parameters.floor_m - SPARE_M
    left_s = room / (speed * math.sin(dive)) - UPRIGHT_S
    if left_s > seconds + speed * dive / (GRAVITY_MPS2 * (PULL_OUT_G - 1.0)):
        return 0.0
    return min(1.0 + speed * dive / (GRAVITY_MPS2 * max(left_s, 1.0)), PULL_OUT_G)


def bank_for_path(body, load_factor_g, flight_path_rad, seconds):
    """Bank at which a load factor brings the flight path to an angle in a time, in [0, pi] rad.

    From V dgamma/dt = g (n cos(bank) - cos(gamma)): cos(bank) = (cos(gamma) + V dgamma/dt / g) / n.
    """
    rate = (flight_path_rad - body.flight_path_angle_rad) / seconds
    upward_g = math.cos(body.flight_path_angle_rad) + body.true_airspeed_mps * rate / GRAVITY_MPS2
    return math.acos(clip(upward_g / load_factor_g, -1.0, 1.0))


def move_stick(s, world, actions, scratch):
    """Puts stick and throttle where the pilot wants them. Throttle -1..1 is 0..1 of the lever."""
    action, body = actions.pilot[0], s.body[0]
    change_weather(s, body)
    throttle = 0.5 * (action.throttle + 1.0)
    s.info.action_change = 0.25 * (
        abs(action.aileron - body.aileron_command)
        + abs(action.elevator - body.elevator_command)
        + abs(action.rudder - body.rudder_command)
        + abs(2.0 * (throttle - body.throttle_command))
    )
    body.aileron_command = action.aileron
    body.elevator_command = action.elevator
    body.rudder_command = action.rudder
    body.throttle_command = throttle


# ------------------------------------------------------------------------------------------------------------- rules


def turn_error_rad(s, mode):
    """Command minus own angle, in [-pi, pi]: the roll angle, or the heading."""
    body = s.body[0]
    return wrap_angle_rad(s.turn_command_rad - (body.heading_rad if mode == HEADING else body.roll_rad))


def climb_error(s, mode):
    """Command minus own flight-path angle (rad), altitude (m) or load factor (g)."""
    body = s.body[0]
    if mode == ATTITUDE:
        return wrap_angle_rad(s.climb_command - body.flight_path_angle_rad)
    if mode == HEADING:
        return s.climb_command - body.altitude_m
    return s.climb_command - body.load_factor_g


def shown_climb_error(s, mode):
    """Its value in the unit of the observation: rad, km or 9 g."""
    error = climb_error(s, mode)
    if mode == HEADING:
        return error / 1000.0
    return error if mode == ATTITUDE else error / SUSTAINED_LOAD_G


def add_to_integrals(s, mode):
    """Adds the errors of the command that holds from now on to their integrals."""
    integrate_errors(s.integrals, turn_error_rad(s, mode), shown_climb_error(s, mode), speed_error_mps(s))


def speed_error_mps(s):
    """Command minus own true airspeed."""
    return s.speed_command_mps - s.body[0].true_airspeed_mps


def evaluate(s, world, rewards, scratch):
    """Notes the errors, ends the match or pays for them, and gives the next command when it is time."""
    mode = world.command
    s.command_age += 1
    s.info.turn_error_rad = turn_error_rad(s, mode)
    s.info.climb_error = climb_error(s, mode)
    s.info.speed_error_mps = speed_error_mps(s)
    s.info.command_age_s = s.command_age * PERIOD_S
    end = fate(s)
    if end != RUNNING:
        s.info.end_reason = end
        rewards[0] = 0.0 - s.parameters.end_cost
        return True
    cost = s.parameters.control_rate_cost * s.info.action_change + s.parameters.push_cost * pushed(s.body[0])
    rewards[0] = tracking_reward(s, mode) - cost
    if s.command_age >= s.command_length:
        give_command(s, mode)
    add_to_integrals(s, mode)
    return False


def pushed(body):
    """How near to the end of the tables an aircraft pushes: 0 from -6 degrees of angle of attack up, 1 at -10."""
    return clip((PUSHED_RAD - body.angle_of_attack_rad) / (PUSHED_RAD - LOWEST_RAD), 0.0, 1.0)


def tracking_reward(s, mode):
    """Mean of how close the three errors are to zero, in [0, 1]."""
    p = s.parameters
    turn_scale = math.radians(p.heading_scale_deg if mode == HEADING else p.roll_scale_deg)
    if mode == ATTITUDE:
        climb_scale = math.radians(p.flight_path_scale_deg)
    elif mode == HEADING:
        climb_scale = p.altitude_scale_m
    else:
        climb_scale = p.load_factor_scale_g
    turn, climb = closeness(s.info.turn_error_rad / turn_scale), closeness(s.info.climb_error / climb_scale)
    return (turn + climb + closeness(s.info.speed_error_mps / p.speed_scale_mps)) / 3.0


def closeness(error):
    """Weighted mean of four Gaussians, each five times as wide as the one before, of an error over its scale."""
    square = error * error
    narrow = math.exp(-square) + math.exp(-square / 25.0) + math.exp(-square / 625.0)
    return (narrow + 4.0 * math.exp(-square / 15_625.0)) / 7.0


def fate(s):
    """Number of the end reason, or `RUNNING` while the flight goes on."""
    s.overload_s = extend_overload_s(s.overload_s, s.body[0])
    failure = find_failure(s.body[0], s.overload_s, s.parameters.floor_m)
    return FIRST_FAILURE + failure if failure != NO_FAILURE else RUNNING


# ------------------------------------------------------------------------------------------------- sight and scripts


def observe(s, world, observations, scratch):
    """Shows the instruments and the errors to the command that holds from now on."""
    mode, o, age_s = world.command, observations.pilot[0], s.command_age * PERIOD_S
    turn, climb, speed = turn_error_rad(s, mode), shown_climb_error(s, mode), speed_error_mps(s)
    write_tracking_observation(o, s.body[0], s.integrals, turn, climb, speed, age_s)


def script(s, world, slot, which, actions, scratch):
    """Flies the command with the cascaded PID of `palaestra.games.ucav.autopilot`."""
    mode = world.command
    body, action = s.body[0], actions.pilot[0]
    aileron, elevator = body.aileron_command, body.elevator_command
    rudder, throttle = body.rudder_command, body.throttle_command
    fly_by_pid_late(s, mode)
    action.aileron = body.aileron_command
    action.elevator = body.elevator_command
    action.rudder = body.rudder_command
    action.throttle = 2.0 * body.throttle_command - 1.0
    body.aileron_command, body.elevator_command = aileron, elevator  # `move_stick` moves the stick
    body.rudder_command, body.throttle_command = rudder, throttle


def fly_by_pid(s, mode):
    """Writes the commands of the autopilot into the aircraft record."""
    body = s.body[0]
    if mode == LOAD_FACTOR:
        steer_load_factor(body, s.autopilot, s.turn_command_rad, s.climb_command, s.speed_command_mps)
        return
    roll, path = s.turn_command_rad, s.climb_command
    if mode == HEADING:
        roll = heading_to_roll(body, s.turn_command_rad, PID_ROLL_RAD)
        path = altitude_to_flight_path(body, s.climb_command, PID_FLIGHT_PATH_RAD)
    steer_with(TRACKING_GAINS, body, s.autopilot, roll, path, s.speed_command_mps)


fly_by_pid_late = apart(fly_by_pid)

# -------------------------------------------------------------------------------------------------------------- game


@with_options(
    Option("command", "attitude", "what is commanded: see Description", words=("attitude", "heading", "load_factor")),
    *FLIGHT_OPTIONS,
)
def game(options: Any) -> Game:
    """The rules of `palaestra/UcavTrack-v3`."""
    flight, defaults = flight_of_game(options, count=1), DEFAULTS.get(options.command, {})
    table = (
        tracking_table("roll angle", "flight-path angle", "rad"),
        tracking_table("heading", "altitude", "1 km"),
        tracking_table("roll angle", "load factor", "9 g"),
    )[options.numbers.command]
    return Game(
        name="UcavTrack",
        roles=(Role("pilot", ("pilot_0",), table, STICK),),
        state=(*STATE, *flight.pop("state")),
        reset=reset,
        observe=observe,
        script=script,
        scripts=("pid",),
        command=move_stick,
        evaluate=evaluate,
        parameters=tuple(replace(p, default=defaults.get(p.name, p.default)) for p in PARAMETERS),
        horizon=600,
        info=INFO,
        end_reasons=FAILURES,
        world=options.numbers,
        render="palaestra.games.ucav.render_flight:draw_track",
        render_fps=1.0 / PERIOD_S,
        **flight,
    )
