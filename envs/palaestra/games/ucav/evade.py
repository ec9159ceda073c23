"""UcavEvade: an unarmed F-16 survives one or two missiles.

## Description

Missiles have been launched at the aircraft of ``pilot_0``, an unarmed F-16 with full six-degree-of-freedom dynamics (as
in `palaestra/UcavDogfight-v2`: JSBSim's, compiled). It survives when none of them flies any more.

A missile (`palaestra.games.ucav.missiles`) is a point of 85.5 kg with the size of an AIM-9: 6 s of thrust, drag, and
up to 30 g of lift, less where the air is thin or the missile slow. It follows its target by proportional navigation at
60 Hz, and hits where it passes within 8 m (`lethal_m`). There are two ways out:

* **turn the side to it**: the seeker sees the hot nozzle, at 10 km from right behind (`seeker_rear_m`) and at 1 km from
  the side and from ahead (`seeker_front_m`). A target that hides its nozzle while the missile is farther away than that
  is lost, and a missile that lost its target does not find it again. A turn of 90 degrees takes some five seconds, in
  which a missile comes two to three kilometres closer;
* **run away**: burnt out, a missile gets slower, and gives up when it falls behind.

The **no-escape range** is 5.2 km: the largest at which a missile that was launched from right behind hits a target that
flees at full throttle from the launch on, both at 5 km and 250 m/s. Inside, a target that flies straight was hit by 200
of 200; at 1.2 times the range one that turned its side to the missile by none of 64
(``pytest tests/ucav/test_evade.py -k no_escape``).

Share of 1,024 matches that end with survival:

| | one missile | two |
|---|---|---|
| random sticks | 8 % | 0.5 % |
| ``straight``: holds its course | 8 % | 0.5 % |
| ``break_turn``: turns towards the missile when it is 3 s away | 8 % | 0.5 % |
| ``drag``: flees | 13 % | 1.5 % |
| ``beam``: turns level until the missile is 120 degrees off its tail | 83 % | 61 % |
| ``expert``: hides its nozzle the shortest way, from the missile that is still far enough | 83 % | 61 % |

Stable-Baselines3's PPO as it comes learns it in about 70 s on one core: of the last tenth of the matches in 150,000
decisions, still exploring, it survives 61, 55 and 79 % (seeds 3, 4, 5; `side_weight` was chosen by runs of seeds 0 and
1), of the first tenth 9 to 13 %:
``PPO("MlpPolicy", gymnasium.make("palaestra/UcavEvade-v0"), seed=seed).learn(150_000)``.

## Action Space

Ten decisions a second.

<!-- table: action -->

## Observation Space

Own instruments, and what a warning receiver tells of the missiles that follow the aircraft, first the next to arrive.
Nothing depends on where the aircraft is or where north is.

<!-- table: observation -->

## Rewards

* **end**: +1 for surviving, -1 for a hit, a crash, a broken airframe or a flight out of the tables;
* **shaping**: ``weight * (shaping_discount * F(next) - F(now))`` of two potentials (Ng, Harada and Russell, ICML 1999).
  `side_weight`: ``F`` falls from 0 to -1 as the missile that arrives next gets from the side to right behind, and is 0
  when none follows the aircraft. `altitude_weight`: height over the floor as a share of 1500 m, minus 1. Both are 0
  after the end.

## Starting State

The aircraft flies level at a height of `altitude_low_m` to `altitude_high_m` and a speed of `speed_low_mps` to
`speed_high_mps`. Each missile has just left a launcher that flew at a speed of the same range straight at the aircraft,
at a range of `range_low_m` to `range_high_m`, at most `aspect_deg` off its tail, to either side, and at most
`altitude_spread_m` higher or lower.

## Episode End

``survived``; ``hit``; and by the aircraft itself: ``crash`` below `floor_m`, ``overload`` (more than 9 g for half a
second, 12 g at once), ``off_tables`` (angle of attack from -10 to 45 degrees, sideslip 30), ``not_finite``. At the
horizon (90 s) the match is truncated; a missile flies 60 s at most.

## Arguments

<!-- table: options -->

<!-- table: parameters -->

## Version History

* v0: first version.
"""

from __future__ import annotations

import math
from typing import Any

from palaestra.game import Field, Game, Parameter, Role, uniform, with_options
from palaestra.games.ucav.aiming import wish_aim, wish_aim_earth
from palaestra.games.ucav.autopilot import AUTOPILOT
from palaestra.games.ucav.body import BODY, PERIOD_S
from palaestra.games.ucav.flight import FLIGHT_OPTIONS, flight_of_game
from palaestra.games.ucav.flight_commands import put_stick
from palaestra.games.ucav.geometry import off_axis_angle_rad, rotate_to_body
from palaestra.games.ucav.inner_loop import STICK
from palaestra.games.ucav.limits import FAILURES, NO_FAILURE, SUSTAINED_LOAD_S, extend_overload_s, find_failure
from palaestra.games.ucav.missiles import (
    GUIDED,
    INBOUND,
    MISSILE,
    MISSILE_PARAMETERS,
    WARNING_FIELDS,
    fly,
    in_flight,
    start_missile,
    threat,
    time_to_go_s,
    write_warnings,
)
from palaestra.games.ucav.pilots import MEMORY, avoid_ground, fly_by_stick, hold_course
from palaestra.games.ucav.shaping import safe_altitude_share
from palaestra.games.ucav.sight import ALTITUDE, MACH, MOTION, NEAR_UNIT_M, SUPPLY, write_ego
from palaestra.games.ucav.weapons import note_places
from palaestra.games.ucav.weather import WEATHER, start_weather
from palaestra.kernels.angles import wrap_angle_rad
from palaestra.kernels.scalars import clip
from palaestra.kernels.vectors import norm

PILOT, LAUNCHER = 0, 1
"""Slot of the aircraft, and number of whoever launched the missiles."""
DURATION_S = 90.0
"""Length of a match."""

END_REASONS = ("survived", "hit", *FAILURES)
RUNNING, SURVIVED, HIT, FIRST_FAILURE = 0, 2, 3, 4
"""Numbers of the end reasons: 0 and 1 belong to the suite."""

SCRIPTS = ("straight", "beam", "drag", "break_turn", "expert")
STRAIGHT, BEAM, DRAG, BREAK_TURN, EXPERT = range(5)
BEAM_RAD = math.radians(120.0)
"""Angle off the tail, rad, at which a beaming pilot keeps the missile: the nozzle is hidden."""
BREAK_S = 3.0
"""Time to go at which the late turn begins, s."""
HIDDEN_RAD, ABOVE = math.radians(37.0), 0.1
"""How far the expert turns beyond the beam, and how much it prefers to pull: without a roll."""
RUN_MPS, TURN_MPS = 500.0, 280.0
"""Speeds that pilots ask for, running and turning."""

USED = ("lethal_m", "seeker_deg", "seeker_rear_m", "seeker_front_m")
"""Parameters of missiles that have been launched."""
PARAMETERS = (
    Parameter("missiles", 1.0, 1.0, float(INBOUND), "1", "missiles on their way", at_start=True, whole=True),
    *(p for p in MISSILE_PARAMETERS if p.name in USED),
    Parameter("range_low_m", 2000.0, 200.0, 50_000.0, "m", "smallest range of a launch", up_to="range_high_m"),
    Parameter("range_high_m", 5500.0, 200.0, 50_000.0, "m", "largest range of a launch"),
    Parameter("aspect_deg", 90.0, 0.0, 180.0, "deg", "largest angle of a launcher off the tail"),
    Parameter("altitude_low_m", 4000.0, 500.0, 15_000.0, "m", "smallest starting height", up_to="altitude_high_m"),
    Parameter("altitude_high_m", 6000.0, 500.0, 15_000.0, "m", "largest starting height"),
    Parameter("altitude_spread_m", 500.0, 0.0, 5000.0, "m", "launchers are up to this higher or lower"),
    Parameter("speed_low_mps", 220.0, 120.0, 400.0, "m/s", "smallest starting airspeed", up_to="speed_high_mps"),
    Parameter("speed_high_mps", 280.0, 120.0, 400.0, "m/s", "largest starting airspeed"),
    Parameter("floor_m", 305.0, 0.0, 5000.0, "m", "height below which the aircraft has crashed (1000 ft)"),
    Parameter("side_weight", 4.0, -100.0, 100.0, "1", "weight of the shaping by what the missile sees", shaping=True),
    Parameter(
        "altitude_weight", 1.0, -100.0, 100.0, "1", "weight of the shaping by height over the floor", shaping=True
    ),
    Parameter("shaping_discount", 0.99, 0.0, 1.0, "1", "discount in the shaping: give the learner's"),
    *WEATHER,
)

INFO = (
    Field("closest_m", unit="m", about="smallest distance of a missile so far", dtype="f8"),
    Field("lost_sight", unit="1", about="missiles that lost the aircraft so far", dtype="i8"),
    Field("reward_end", about="reward for the end", dtype="f8"),
    Field("reward_side", about="shaping by what the missile sees so far", dtype="f8"),
    Field("reward_altitude", about="shaping by height so far", dtype="f8"),
)

STATE = (
    ("body", BODY, (1,)),
    ("autopilots", AUTOPILOT, (1,)),
    ("pilots", MEMORY, (1,)),  # memory of the scripts
    ("past_m", "f8", (1, 3)),  # north, east, up when the period began
    ("missiles", MISSILE, (INBOUND,)),
    ("last_action", "f8", (1, 4)),
    ("overload_s", "f8"),  # time above the sustained load, ending now
    ("side_potential", "f8"),
    ("altitude_potential", "f8"),
)


# --------------------------------------------------------------------------------------------------- start, commands


def reset(s, world):
    """Level flight, and missiles that have just been launched behind it."""
    p, body = s.parameters, s.body[PILOT]
    body.altitude_m = uniform(s, p.altitude_low_m, p.altitude_high_m)
    body.true_airspeed_mps = uniform(s, p.speed_low_mps, p.speed_high_mps)
    body.heading_rad = uniform(s, 0.0, 2.0 * math.pi)
    body.throttle_command = 0.5
    body.finite = 1
    body.in_tables = 1
    start_weather(s, body)
    for k in range(INBOUND):
        behind = body.heading_rad + math.pi + uniform(s, -1.0, 1.0) * math.radians(p.aspect_deg)
        distance = uniform(s, p.range_low_m, p.range_high_m)
        up = uniform(s, -1.0, 1.0) * p.altitude_spread_m
        speed = uniform(s, p.speed_low_mps, p.speed_high_mps)
        if k < int(p.missiles):
            n, e = distance * math.cos(behind), distance * math.sin(behind)
            missile = s.missiles[k]
            start_missile(missile, n, e, body.altitude_m + up, LAUNCHER, PILOT)
            share = speed / norm(n, e, up)
            missile.velocity_north_mps = -share * n
            missile.velocity_east_mps = -share * e
            missile.velocity_down_mps = share * up
    s.info.closest_m = norm(s.missiles[0].north_m, s.missiles[0].east_m, s.missiles[0].altitude_m - body.altitude_m)
    s.side_potential, s.altitude_potential = side_potential(s), altitude_potential(s)


def move_stick(s, world, actions, scratch):
    """Puts the stick where the pilot wants it."""
    note_places(s)
    put_stick(s, PILOT, actions.pilot[PILOT])


# ------------------------------------------------------------------------------------------------------------- rules


def evaluate(s, world, rewards, scratch):
    """Flies the missiles for the period, ends the match, and pays. Returns whether a rule ended it."""
    hit = fly_missiles(s)
    end = loss_reason(s, hit)
    if end == RUNNING and not any_in_flight(s):
        end = SURVIVED
    paid = 0.0
    if end != RUNNING:
        s.info.end_reason = end
        s.info.winner = 0 if end == SURVIVED else -1
        paid = 1.0 if end == SURVIVED else -1.0
    side = 0.0 if end != RUNNING else side_potential(s)
    altitude = 0.0 if end != RUNNING else altitude_potential(s)
    p = s.parameters
    by_side = p.side_weight * (p.shaping_discount * side - s.side_potential)
    by_altitude = p.altitude_weight * (p.shaping_discount * altitude - s.altitude_potential)
    s.side_potential, s.altitude_potential = side, altitude
    s.info.reward_end += paid
    s.info.reward_side += by_side
    s.info.reward_altitude += by_altitude
    rewards[0] = paid + by_side + by_altitude
    return end != RUNNING


def fly_missiles(s):
    """Flies the missiles for one period; returns whether one hits."""
    hit, lost = False, 0
    for k in range(INBOUND):
        missile = s.missiles[k]
        if in_flight(missile):
            guided = missile.status == GUIDED
            hit = fly(missile, s.past_m[PILOT], s.body[PILOT], s.parameters) or hit
            lost += 1 if guided and missile.status != GUIDED else 0
            s.info.closest_m = min(s.info.closest_m, missile.closest_m)
    s.info.lost_sight += lost
    return hit


def any_in_flight(s):
    """Whether a missile flies."""
    flying = False
    for k in range(INBOUND):
        flying = flying or in_flight(s.missiles[k])
    return flying


def loss_reason(s, hit):
    """Why the aircraft is lost: an end reason, or `RUNNING`."""
    s.overload_s = extend_overload_s(s.overload_s, s.body[PILOT])
    failure = find_failure(s.body[PILOT], s.overload_s, s.parameters.floor_m)
    if failure != NO_FAILURE:
        return FIRST_FAILURE + failure
    return HIT if hit else RUNNING


def side_potential(s):
    """How far the next missile is from seeing no nozzle, in [-1, 0]: its angle off the tail over 90 degrees, less 1."""
    k = threat(s, PILOT, -1)
    if k < 0:
        return 0.0
    x, y, z = sight_of(s, k)
    return min(off_axis_angle_rad(-x, y, z) / (0.5 * math.pi) - 1.0, 0.0)


def altitude_potential(s):
    """Height over the floor as a share of 1500 m, at most 1, minus 1: only being low costs."""
    return safe_altitude_share(s.body[PILOT], s.parameters.floor_m) - 1.0


# ------------------------------------------------------------------------------------------------- sight and scripts


def observe(s, world, observations, scratch):
    """Shows the instruments and the warnings."""
    o, body = observations.pilot[PILOT], s.body[PILOT]
    write_ego(o, body)
    o.height_over_floor = clip((body.altitude_m - s.parameters.floor_m) / NEAR_UNIT_M, -1.0, 5.0)
    o.overload = clip(s.overload_s / SUSTAINED_LOAD_S, 0.0, 1.0)
    for i in range(4):
        o.last_action[i] = clip(s.last_action[PILOT, i], -1.0, 1.0)
    write_warnings(o, s, PILOT)


def script(s, world, slot, which, actions, scratch):
    """Decides and flies with the stick."""
    m, me = s.pilots[slot], s.body[slot]
    if s.steps == 0:
        m.course_rad, m.cruise_mps = me.heading_rad, me.true_airspeed_mps
        m.side = 0.0
    k = threat(s, slot, -1)
    if which == STRAIGHT or k < 0:
        hold_course(m, me)
    else:
        missile = s.missiles[k]
        m.course_rad = me.heading_rad
        away = math.atan2(me.east_m - missile.east_m, me.north_m - missile.north_m)
        if which == DRAG:
            turn_to(m, me, away, RUN_MPS)
        elif which == EXPERT:
            hide(s, m, me)
        elif which == BEAM:
            off = wrap_angle_rad(me.heading_rad - away)
            turn_to(m, me, away + math.copysign(BEAM_RAD, off), TURN_MPS)
        elif time_to_go_s(missile, me) < BREAK_S:
            turn_to(m, me, away + math.pi, TURN_MPS)
        else:
            hold_course(m, me)
    avoid_ground(m, me, s.parameters.floor_m)
    fly_by_stick(s, slot, actions.pilot[slot])


def turn_to(m, me, heading, speed):
    """Puts the nose on a level heading as fast as the aircraft can."""
    error = wrap_angle_rad(heading - me.heading_rad)
    wish_aim_earth(m.wish, me, me.heading_rad + clip(error, -1.5, 1.5), 0.0, speed)


def hide(s, m, me):
    """Turns the nose the shortest way to where the next missile that can still be shaken off does not see the nozzle.

    That is the direction nearest to the nose, or to a little above it, that is `HIDDEN_RAD` off the plane across the
    line of sight, on the missile's side.
    """
    k = threat(s, PILOT, -1)
    other = threat(s, PILOT, k)
    if other >= 0 and norm(*sight_of(s, k)) < s.parameters.seeker_front_m:
        k = other
    ux, uy, uz = sight_of(s, k)
    distance = max(norm(ux, uy, uz), 1.0)
    share = max(math.sin(HIDDEN_RAD) - (ux - ABOVE * uz) / distance, 0.0) / distance
    wish_aim(m.wish, 1.0 + share * ux, share * uy, share * uz - ABOVE, 0.0, 0.0, 0.0, TURN_MPS)


def sight_of(s, k):
    """Place of a missile in body axes of the aircraft, m."""
    me, missile = s.body[PILOT], s.missiles[k]
    n, e = missile.north_m - me.north_m, missile.east_m - me.east_m
    return rotate_to_body(me, n, e, me.altitude_m - missile.altitude_m)


# -------------------------------------------------------------------------------------------------------------- game


@with_options(*FLIGHT_OPTIONS)
def game(options: Any) -> Game:
    """The rules of `palaestra/UcavEvade-v0`."""
    flight = flight_of_game(options, count=1)
    observation = (
        ALTITUDE,
        Field("height_over_floor", (), -1.0, 5.0, "1 km", "height above the floor"),
        *MOTION,
        Field("overload", (), 0.0, 1.0, "0.5 s", "time spent above 9 g: the airframe breaks at 1"),
        MACH,
        *SUPPLY,
        Field("last_action", (4,), -1.0, 1.0, "1", "own last action", parts=tuple(c.name for c in STICK)),
        *WARNING_FIELDS,
    )
    return Game(
        name="UcavEvade",
        roles=(Role("pilot", ("pilot_0",), observation, STICK),),
        state=(*STATE, *flight.pop("state")),
        reset=reset,
        observe=observe,
        script=script,
        scripts=SCRIPTS,
        command=move_stick,
        evaluate=evaluate,
        parameters=PARAMETERS,
        horizon=round(DURATION_S / PERIOD_S),
        info=INFO,
        end_reasons=END_REASONS,
        render="palaestra.games.ucav.render_flight:draw_evade",
        render_fps=1.0 / PERIOD_S,
        **flight,
    )
