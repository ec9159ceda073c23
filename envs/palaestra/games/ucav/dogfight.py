"""UcavDogfight: two F-16s fight with guns; an aircraft loses when it has no health left, crashes or breaks.

## Description

A UCAV is an unmanned combat aerial vehicle. `palaestra/UcavDogfight-v1` is a within-visual-range gun fight of two of
them with full six-degree-of-freedom dynamics. ``red_0`` fights ``blue_0``; both have the same
aircraft, the same gun and, over the matches, the same distribution of starting positions. `palaestra/UcavPursuit-v1`
(`palaestra.games.ucav.pursuit`) is the same fight with an unarmed target.

There is no trigger: as in the contests that these rules follow, **the gun fires by itself while the solution is
there**, that is while the other aircraft is inside a cone around the nose (half-angle `cone_half_angle_deg`) and at a
range from 152 m to 914 m (500 to 3000 ft). Damage per second falls linearly from `damage_per_second` at the near end
to nothing at the far end. Health starts at 1. The cone may widen while the match lasts (``cone_half_angle_deg=1,
cone_step_deg=1`` is 1, 2 and 3 degrees from 0, 100 and 150 s, as in the contests).

An aircraft outside the arena, a cylinder about the origin of the match, loses health too, and that counts as damage
dealt by the other: flight does not lead to a draw.

## Flight

The aircraft is JSBSim's F-16 with its own flight control system, gear up, at 60 frames a second. Its files are read
from the user's installation. `engine="compiled"` makes machine code of them, every table and component in the order in
which JSBSim computes: after one frame forces are JSBSim's to 1e-7 lbf, after 60 s of flight places are its own to a
micrometre or less, and a frame takes a twenty-fifth of the time. `engine="jsbsim"` is JSBSim itself.

In JSBSim's file the ailerons change the symmetric lift and drag: two signs and a gain of the flaperon mixer are wrong,
and learners find the thrust that rolling right pays. `airframe="f16"` corrects them when the file is read,
`"f16-jsbsim"` flies it as installed. Energy height gained per second in a full roll at idle from 250 m/s and 6 km, and
how far apart mirrored flights of 20 s end:

| | rolling right | wings level | rolling left | mirrored flights |
|---|---|---|---|---|
| as installed | +50 m/s | -56 m/s | -165 m/s | 387 m |
| corrected | -59 m/s | -56 m/s | -59 m/s | 34 m |

`planet="still"` is a sphere that does not turn: the same flight ends at the same place, to 0.03 m after 60 s, whatever
its heading (59 m over the turning Earth, `"wgs84"`). Wind, gusts, the density of the air and a payload are among the
parameters.

## Action Space

`commands="stick"` decides at 10 Hz, `commands="macro"` at 2 Hz; an inner loop (`inner_loop`) flies a macro for five
periods of 0.1 s.

<!-- table: action -->

## Observation Space

Float32, scaled (the unit column gives the value of 1), clipped to its bounds. Nothing in it depends on where north
is; the only place that it knows is the centre of the arena.

<!-- table: observation -->

## Rewards

Zero-sum, exactly: one number is computed, red gets it and blue gets its negative.

* **damage**: health that blue lost minus health that red lost in this decision;
* **end**: +1 if a rule ended the match for red, -1 if for blue, 0 after a draw and at the horizon;
* **posture, altitude, energy, aim**: shaping, off by default, each with a weight among the parameters. A shaping item
  is ``weight * (shaping_discount * F(next) - F(now))`` of a potential ``F`` that is red's minus blue's, so it changes
  no optimal policy (Ng, Harada and Russell, ICML 1999) when `shaping_discount` is the learner's discount. ``F`` is 0
  after an end by rule.

``info`` holds each item's sum over the match, as red's, and for both sides how often they came near a shot
(`opportunities`), for how long, for how long they had it (`cone_seconds`), and what came of it (`gun_damage`).

## Starting State

One of three set-ups, drawn with the weights `neutral_weight`, `red_behind_weight`, `blue_behind_weight`:

* neutral: the two positions and headings are one image of the other under half a turn about the origin, at any angle
  off;
* behind: the favoured side sits within 45 degrees of the other's tail and points within 20 degrees of it, at
  `behind_range_low_m` to `behind_range_high_m`.

Heights and speeds are drawn for each aircraft alone, wings level.

## Episode End

A match ends by rule when an aircraft has no health left (``kill``, ``fled``), sinks below `floor_m` (``crash``),
pulls more than 9 g for over half a second or 12 g at all, either way up (``overload``), leaves the tables of the
aerodynamic model (``off_tables``) or has a state that is not a number (``not_finite``): it loses. If both do in the
same tenth of a second the match is a draw (``both``). At the horizon (200 s) it is truncated and `info.winner` is the
aircraft that dealt more damage.

## Arguments

``inner_loop="ppo"`` was trained on the commands of `palaestra/UcavTrack-v1`, not on the wide ones of macros, and
crashes with them: hunting a level turn in UcavPursuit the script ``"lag_pursuit"`` won 64 of 64 matches over ``"pid"``;
over ``"ppo"`` it won 20 and lost 22 by its own flight.

<!-- table: options -->

<!-- table: parameters -->

## Version History

* v1: the airframe is corrected, the planet stands still, and the flight is compiled.
* v0: the aircraft of JSBSim as installed, on the turning Earth, flown by JSBSim.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from palaestra.game import Field, Game, Option, Parameter, Role, uniform, with_options
from palaestra.games.ucav.autopilot import AUTOPILOT, steer
from palaestra.games.ucav.body import BLUE, BODY, COUNT, PERIOD_S, RED, opponent_of
from palaestra.games.ucav.flight import FLIGHT_OPTIONS, flight_of_game
from palaestra.games.ucav.geometry import distance_m
from palaestra.games.ucav.inner_loop import INNER_LOOP_SCRATCH, STICK, load_inner_loop, steer_by_network
from palaestra.games.ucav.limits import (
    FAILURES,
    NO_FAILURE,
    NOT_FINITE,
    SUSTAINED_LOAD_S,
    extend_overload_s,
    find_failure,
)
from palaestra.games.ucav.macros import MACRO, MACRO_PERIODS, read_macro
from palaestra.games.ucav.pilots import MEMORY, PILOT_SCRATCH, SCRIPTS, script_macro, script_stick
from palaestra.games.ucav.shaping import note_potentials, shape
from palaestra.games.ucav.sight import NEAR_UNIT_M, observation_table, write_centre, write_ego, write_other
from palaestra.games.ucav.weapons import GUN_FAR_M, GUN_INFO, GUN_PARAMETERS, cone_half_angle_rad, fire
from palaestra.games.ucav.weather import WEATHER, change_weather, start_weather
from palaestra.kernels.scalars import clip

STICK_PERIODS = 1
"""Periods in one decision with the stick: 10 Hz. `MACRO_PERIODS` are those of a macro."""
DURATION_S = 200.0
"""Length of a match, s: a round of the contest."""

START_TAIL_RAD, START_NOSE_RAD = math.radians(45.0), math.radians(20.0)
"""Set-up "behind": largest angle off the other's tail and largest angle off the own nose, rad."""

END_REASONS = ("kill", "fled", *FAILURES, "both")
RUNNING, KILL, FLED, FIRST_FAILURE, BOTH = 0, 2, 3, 4, 4 + len(FAILURES)
"""Numbers of the end reasons: 0 and 1 belong to the suite."""

PARAMETERS = (
    *GUN_PARAMETERS,
    Parameter("arena_radius_m", 15_000.0, 1000.0, 1e6, "m", "radius of the arena about the origin"),
    Parameter("arena_drain", 0.05, 0.0, 100.0, "1/s", "health lost outside the arena"),
    Parameter("floor_m", 305.0, 0.0, 5000.0, "m", "height below which an aircraft has crashed (1000 ft)"),
    Parameter("neutral_weight", 2.0, 0.0, 1e6, "1", "weight of the neutral set-up"),
    Parameter("red_behind_weight", 1.0, 0.0, 1e6, "1", "weight of the set-up with red behind blue"),
    Parameter("blue_behind_weight", 1.0, 0.0, 1e6, "1", "weight of the set-up with blue behind red"),
    Parameter("neutral_range_low_m", 1500.0, 200.0, 20_000.0, "m", "neutral set-up: smallest range"),
    Parameter("neutral_range_high_m", 4000.0, 200.0, 20_000.0, "m", "neutral set-up: largest range"),
    Parameter("behind_range_low_m", 800.0, 200.0, 20_000.0, "m", "set-up behind: smallest range"),
    Parameter("behind_range_high_m", 1600.0, 200.0, 20_000.0, "m", "set-up behind: largest range"),
    Parameter("altitude_low_m", 3000.0, 500.0, 15_000.0, "m", "smallest starting height"),
    Parameter("altitude_high_m", 5000.0, 500.0, 15_000.0, "m", "largest starting height"),
    Parameter("altitude_spread_m", 500.0, 0.0, 5000.0, "m", "largest difference of the two starting heights"),
    Parameter("speed_low_mps", 200.0, 120.0, 400.0, "m/s", "smallest starting airspeed"),
    Parameter("speed_high_mps", 280.0, 120.0, 400.0, "m/s", "largest starting airspeed"),
    Parameter("posture_weight", 0.0, -100.0, 100.0, "1", "weight of the shaping by angles"),
    Parameter("altitude_weight", 0.0, -100.0, 100.0, "1", "weight of the shaping by height over the floor"),
    Parameter("energy_weight", 0.0, -100.0, 100.0, "1", "weight of the shaping by energy height"),
    Parameter("aim_weight", 0.0, -100.0, 100.0, "1", "weight of the shaping by aim at gun range"),
    Parameter("shaping_discount", 1.0, 0.0, 1.0, "1", "discount in the shaping: give the learner's"),
    *WEATHER,
)

INFO = (
    *GUN_INFO,
    Field("arena_damage", (COUNT,), unit="1", about="health that the other lost outside the arena", dtype="f8"),
    Field("reward_damage", about="red's reward so far for damage", dtype="f8"),
    Field("reward_end", about="red's reward for the end", dtype="f8"),
    Field("reward_posture", about="red's shaping by angles so far", dtype="f8"),
    Field("reward_altitude", about="red's shaping by height so far", dtype="f8"),
    Field("reward_energy", about="red's shaping by energy so far", dtype="f8"),
    Field("reward_aim", about="red's shaping by aim so far", dtype="f8"),
)


STATE = (
    ("body", BODY, (COUNT,)),
    ("autopilots", AUTOPILOT, (COUNT,)),
    ("pilots", MEMORY, (COUNT,)),  # memory of the scripts
    ("health", "f8", (COUNT,)),
    ("overload_s", "f8", (COUNT,)),  # time above the sustained load, ending now
    ("potentials", "f8", (4,)),  # at the end of the last decision
    ("last_action", "f8", (COUNT, 4)),
    ("periods", "i8"),  # periods played in this match
    ("in_gun", "u1", (COUNT,)),  # slot's gun hits
    ("in_funnel", "u1", (COUNT,)),  # slot has an opportunity
    ("lost", "i8", (COUNT,)),  # end reason of the slot, 0 while it is in the fight
)


# ------------------------------------------------------------------------------------------------------------ start


def reset(s, world):
    """Sets up both aircraft, wings level, and fills the books."""
    p = s.parameters
    total = p.neutral_weight + p.red_behind_weight + p.blue_behind_weight
    draw = uniform(s, 0.0, 1.0) * total
    bearing = uniform(s, -math.pi, math.pi)  # of blue from red
    range_share = uniform(s, 0.0, 1.0)
    off = uniform(s, -1.0, 1.0)
    nose = uniform(s, -1.0, 1.0)
    if draw < p.neutral_weight or total <= 0.0:
        distance = p.neutral_range_low_m + range_share * (p.neutral_range_high_m - p.neutral_range_low_m)
        red_heading = bearing + off * math.pi
        blue_heading = red_heading + math.pi
    else:
        distance = p.behind_range_low_m + range_share * (p.behind_range_high_m - p.behind_range_low_m)
        red_behind = draw < p.neutral_weight + p.red_behind_weight
        ahead = bearing if red_behind else bearing + math.pi  # from the favoured side to the other
        chaser, chased = ahead + nose * START_NOSE_RAD, ahead + off * START_TAIL_RAD
        red_heading = chaser if red_behind else chased
        blue_heading = chased if red_behind else chaser
    middle = uniform(s, p.altitude_low_m, p.altitude_high_m)
    difference = uniform(s, -0.5, 0.5) * p.altitude_spread_m
    place(s, RED, bearing + math.pi, 0.5 * distance, red_heading, middle + difference)
    place(s, BLUE, bearing, 0.5 * distance, blue_heading, middle - difference)
    note_potentials(s)


def place(s, slot, bearing, distance, heading, altitude):
    """Puts one aircraft into the air at a bearing and distance from the origin, wings level."""
    body = s.body[slot]
    body.north_m = distance * math.cos(bearing)
    body.east_m = distance * math.sin(bearing)
    body.altitude_m = altitude
    body.heading_rad = heading - 2.0 * math.pi * math.floor(heading / (2.0 * math.pi))
    body.true_airspeed_mps = uniform(s, s.parameters.speed_low_mps, s.parameters.speed_high_mps)
    body.throttle_command = 0.5
    body.finite = 1
    body.in_tables = 1
    start_weather(s, body)
    s.health[slot] = 1.0


# --------------------------------------------------------------------------------------------------------- commands


def command_stick(s, world, actions, scratch):
    """Puts the stick where the pilots want it. Throttle -1..1 is 0..1 of the lever."""
    for slot in range(COUNT):
        put_stick(s, slot, actions)


def put_stick(s, slot, actions):
    """Puts the stick of one aircraft where its pilot wants it."""
    action, body = actions.pilot[slot], s.body[slot]
    change_weather(s, body)
    body.aileron_command = action.aileron
    body.elevator_command = action.elevator
    body.rudder_command = action.rudder
    body.throttle_command = 0.5 * (action.throttle + 1.0)
    s.last_action[slot, 0] = action.aileron
    s.last_action[slot, 1] = action.elevator
    s.last_action[slot, 2] = action.rudder
    s.last_action[slot, 3] = action.throttle


def command_macro_pid(s, world, actions, scratch):
    """Lets the cascaded PID of `palaestra.games.ucav.autopilot` fly the macro for one period."""
    for slot in range(COUNT):
        fly_macro(s, slot, actions)


def fly_macro(s, slot, actions):
    """Lets the cascaded PID fly the macro of one aircraft."""
    change_weather(s, s.body[slot])
    remember_macro(s, slot, actions.pilot[slot])
    roll, flight_path, speed = read_macro(actions.pilot[slot])
    steer(s.body[slot], s.autopilots[slot], roll, flight_path, speed)


def command_macro_network(s, world, actions, scratch):
    """Lets a trained network (`palaestra.kernels.networks`) fly the macro for one period."""
    age_s = (s.periods % MACRO_PERIODS) * PERIOD_S
    for slot in range(COUNT):
        change_weather(s, s.body[slot])
        remember_macro(s, slot, actions.pilot[slot])
        roll, flight_path, speed = read_macro(actions.pilot[slot])
        steer_by_network(
            world.weights, world.biases, world.sizes, scratch, s.body[slot], roll, flight_path, speed, age_s
        )


def remember_macro(s, slot, action):
    """Notes the action for the next observation."""
    s.last_action[slot, 0] = action.roll
    s.last_action[slot, 1] = action.flight_path
    s.last_action[slot, 2] = action.speed


# ------------------------------------------------------------------------------------------------------------ rules


def evaluate_stick(s, world, rewards, scratch):
    """Judges a period that is a whole decision."""
    return evaluate(s, rewards, STICK_PERIODS)


def evaluate_macro(s, world, rewards, scratch):
    """Judges one of the five periods of a decision."""
    return evaluate(s, rewards, MACRO_PERIODS)


def evaluate(s, rewards, periods):
    """Gun, arena, airframe, ground; then the end and the rewards. Returns whether a rule ended the match."""
    s.periods += 1
    damage = exchange_fire(s) + drain_outside(s)
    for slot in range(COUNT):
        s.overload_s[slot] = extend_overload_s(s.overload_s[slot], s.body[slot])
        s.lost[slot] = fate(s, slot)
    over = is_beaten(s, RED) or is_beaten(s, BLUE)
    end = 0.0
    if over:
        end = conclude(s)
    decision_over = s.periods % periods == 0
    if decision_over and not over and s.steps >= s.parameters.horizon:
        s.info.winner = leader(s)
    shaping = 0.0
    if over or decision_over:
        shaping = shape(s, over)
    s.info.reward_damage += damage
    s.info.reward_end += end
    total = float(rewards[RED]) + damage + end + shaping
    rewards[RED] = total
    rewards[BLUE] = 0.0 - total
    return over


def exchange_fire(s):
    """Lets every gun hit the opponent for one period; returns red's reward for it."""
    damage = 0.0
    for shooter in range(COUNT):
        lost = fire(s, shooter, opponent_of(shooter))
        damage += lost if shooter == RED else -lost
    return damage


def drain_outside(s):
    """Takes health from every aircraft outside the arena; returns red's reward for it."""
    damage = 0.0
    for slot in range(COUNT):
        lost = drain(s, slot)
        damage += -lost if slot == RED else lost
    return damage


def drain(s, slot):
    """Takes a period's health from an aircraft outside the arena, books it as dealt by the other, and returns it."""
    body = s.body[slot]
    lost = 0.0
    if math.sqrt(body.north_m * body.north_m + body.east_m * body.east_m) > s.parameters.arena_radius_m:
        lost = min(s.health[slot], s.parameters.arena_drain * PERIOD_S)
        s.health[slot] -= lost
        s.info.arena_damage[opponent_of(slot)] += lost
    return lost


def fate(s, slot):
    """Why the aircraft is out of the fight: an end reason, or `RUNNING`."""
    failure = find_failure(s.body[slot], s.overload_s[slot], s.parameters.floor_m)
    if s.health[slot] <= 0.0 and failure != NOT_FINITE:
        return KILL if s.in_gun[opponent_of(slot)] else FLED
    return FIRST_FAILURE + failure if failure != NO_FAILURE else RUNNING


def is_beaten(s, team):
    """Whether a team has no aircraft left in the fight: it has one, in the slot of its own number."""
    return s.lost[team] != RUNNING


def conclude(s):
    """Books winner and reason of a match that a rule ended; returns red's reward for it."""
    if is_beaten(s, RED) and is_beaten(s, BLUE):
        s.info.end_reason = BOTH
        return 0.0
    loser = RED if is_beaten(s, RED) else BLUE
    s.info.winner = opponent_of(loser)
    s.info.end_reason = s.lost[loser]
    return 1.0 if loser == BLUE else -1.0


def leader(s):
    """The aircraft that dealt more damage, -1 if neither did."""
    difference = s.health[RED] - s.health[BLUE]
    if difference == 0.0:
        return -1
    return RED if difference > 0.0 else BLUE


# ------------------------------------------------------------------------------------------------------------ sight


def observe(s, world, observations, scratch):
    """Shows both pilots the same things, each from its own cockpit."""
    p = s.parameters
    cone = cone_half_angle_rad(s)
    time_left = clip(1.0 - s.steps / p.horizon, 0.0, 1.0)
    for slot in range(COUNT):
        opponent = opponent_of(slot)
        o, ego, other = observations.pilot[slot], s.body[slot], s.body[opponent]
        write_ego(o, ego)
        write_other(o, ego, other)
        o.height_over_floor = clip((ego.altitude_m - p.floor_m) / NEAR_UNIT_M, -1.0, 5.0)
        o.overload = clip(s.overload_s[slot] / SUSTAINED_LOAD_S, 0.0, 1.0)
        o.health = clip(s.health[slot], 0.0, 1.0)
        o.other_health = clip(s.health[opponent], 0.0, 1.0)
        o.gun_range = clip(distance_m(ego, other) / GUN_FAR_M, 0.0, 5.0)
        o.in_my_gun = s.in_gun[slot]
        o.in_its_gun = s.in_gun[opponent]
        o.cone_half_angle = cone
        o.time_left = time_left
        write_centre(o, ego, p.arena_radius_m)
        for i in range(o.last_action.shape[0]):
            o.last_action[i] = clip(s.last_action[slot, i], -1.0, 1.0)


# ------------------------------------------------------------------------------------------------------------- game


def exchange(by_stick: bool, states: Any, actions: Any) -> None:
    """Exchanges the teams, whose compiled flights are fields of the records. What scripts remember is forgotten."""
    other = [BLUE, RED]
    of_slots = ("health", "overload_s", "last_action", "in_gun", "in_funnel", "lost", "alive", "acting")
    for name in ("body", "flight", "autopilots", *of_slots):
        states[name] = states[name][:, other]
    states["potentials"] *= -1.0
    actions["pilot"] = actions["pilot"][:, other]
    for name in ("pilots", "autopilots") if by_stick else ("pilots",):
        states[name] = np.zeros((), states.dtype[name].base)


DOGFIGHT_OPTIONS = (
    Option("commands", "stick", "what a pilot decides, at 10 Hz or 2 Hz", words=("stick", "macro")),
    Option(
        "inner_loop",
        "pid",
        "what flies a macro: `pid`, `ppo` (the network that palaestra ships) or the path of a trained one",
        texts=("pid", "ppo"),
        only={"commands": "macro"},
        example="ppo",
    ),
    *FLIGHT_OPTIONS,
)
"""Of games of two aircraft."""


@with_options(*DOGFIGHT_OPTIONS)
def game(options: Any) -> Game:
    """The rules of `palaestra/UcavDogfight-v1`; errors as of `build`."""
    return build(options, "UcavDogfight", PARAMETERS, "expert", symmetric_teams=True)


def build(
    options: Any,
    name: str,
    parameters: tuple[Parameter, ...],
    default_opponent: str,
    *,
    symmetric_teams: bool,
) -> Game:
    """The rules under a name, with numbers.

    Args:
        options: `DOGFIGHT_OPTIONS` of the user.
        name: CamelCase name of the game.
        parameters: `PARAMETERS`, or the same with other defaults.
        default_opponent: Script that plays the teams that the user does not.
        symmetric_teams: Whether both aircraft have the same task and the same arms.

    Raises:
        FileError: A file that is no network for an inner loop.
        FileNotFoundError: There is no such network.
    """
    flight, stick = flight_of_game(options, COUNT), options.commands == "stick"
    network = None if options.inner_loop == "pid" else load_inner_loop(options.inner_loop)
    fly_macro = command_macro_pid if network is None else command_macro_network
    action = STICK if stick else MACRO
    periods = STICK_PERIODS if stick else MACRO_PERIODS
    return Game(
        name=name,
        roles=(Role("pilot", ("red_0", "blue_0"), observation_table(action), action),),
        state=(*STATE, *flight.pop("state")),
        reset=reset,
        observe=observe,
        script=script_stick if stick else script_macro,
        scripts=SCRIPTS,
        command=command_stick if stick else fly_macro,
        evaluate=evaluate_stick if stick else evaluate_macro,
        periods=periods,
        parameters=parameters,
        horizon=round(DURATION_S / (PERIOD_S * periods)),
        info=INFO,
        end_reasons=END_REASONS,
        scratch=PILOT_SCRATCH if network is None else (*PILOT_SCRATCH, *INNER_LOOP_SCRATCH),
        world=network,
        zero_sum=True,
        symmetric_teams=symmetric_teams,
        mirror=partial(exchange, stick) if symmetric_teams and "advance" in flight else None,
        default_opponent=default_opponent,
        render="palaestra.games.ucav.render_flight:draw_dogfight",
        render_fps=1.0 / (PERIOD_S * periods),
        **flight,
    )
