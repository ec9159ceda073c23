"""UcavDogfight: two F-16s fight with guns; an aircraft loses when it has no health left, crashes or breaks.

## Description

A UCAV is an unmanned combat aerial vehicle. `palaestra/UcavDogfight-v0` is a within-visual-range gun fight of two of
them with full six-degree-of-freedom dynamics (JSBSim's F-16 at 60 Hz). ``red_0`` fights ``blue_0``; both have the same
aircraft, the same gun and, over the matches, the same distribution of starting positions. `palaestra/UcavPursuit-v0`
(`palaestra.ucav.pursuit`) is the same fight with an unarmed target.

There is no trigger: as in the contests that these rules follow, **the gun fires by itself while the solution is
there**, that is while the other aircraft is inside a cone around the nose (half-angle `cone_half_angle_deg`) and at a
range from 152 m to 914 m (500 to 3000 ft). Damage per second falls linearly from `damage_per_second` at the near end
to nothing at the far end. Health starts at 1. The cone may widen while the match lasts (``cone_half_angle_deg=1,
cone_step_deg=1`` is 1, 2 and 3 degrees from 0, 100 and 150 s, as in the contests).

An aircraft outside the arena, a cylinder about the origin of the match, loses health too, and that counts as damage
dealt by the other: flight does not lead to a draw.

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

* `commands`: ``"stick"`` or ``"macro"``.
* `inner_loop`: what flies a macro: ``"pid"``, ``"ppo"`` (the network that palaestra ships) or the path of a trained
  one.

<!-- table: parameters -->

## Version History

* v0: first version.
"""

from __future__ import annotations

import math
from typing import Literal

from palaestra.game import Continuous, Field, Game, Parameter, Role, check_word, uniform
from palaestra.kernels.scalars import clip
from palaestra.ucav.autopilot import AUTOPILOT, steer
from palaestra.ucav.body import BLUE, BODY, INSTANT_LOAD_G, RED, SUSTAINED_LOAD_G, SUSTAINED_LOAD_S
from palaestra.ucav.geometry import antenna_train_angle_rad, distance_m
from palaestra.ucav.inner_loop import SCRATCH, STICK, load_inner_loop, steer_by_network
from palaestra.ucav.jsbsim_engine import JsbsimEngine
from palaestra.ucav.pilots import MEMORY, SCRIPTS, script_macro, script_stick
from palaestra.ucav.shaping import note_potentials, shape
from palaestra.ucav.sight import NEAR_UNIT_M, observation_table, write_centre, write_ego, write_other

PERIOD_S = 0.1
"""Time between command and evaluate, s: six frames of 60 Hz."""
STICK_PERIODS, MACRO_PERIODS = 1, 5
"""Periods in one decision: 10 Hz and 2 Hz."""
DURATION_S = 200.0
"""Length of a match, s: a round of the contest."""

GUN_NEAR_M, GUN_FAR_M = 152.4, 914.4
"""Range window of the gun, m: the contest's 500 ft and 3000 ft."""
OPPORTUNITY_RAD = math.radians(10.0)
"""Angle off the nose, rad, within which a target in the range window counts as an opportunity. Statistics only."""

START_TAIL_RAD, START_NOSE_RAD = math.radians(45.0), math.radians(20.0)
"""Set-up "behind": largest angle off the other's tail and largest angle off the own nose, rad."""

ROLL_SPAN_RAD, FLIGHT_PATH_SPAN_RAD = math.pi, math.radians(60.0)
SPEED_LOW_MPS, SPEED_HIGH_MPS = 120.0, 400.0
"""The range of a macro from -1 to 1: roll, flight-path angle (rad, symmetric) and true airspeed (m/s)."""

RUNNING, KILL, FLED, CRASH, OVERLOAD, OFF_TABLES, NOT_FINITE, BOTH = 0, 2, 3, 4, 5, 6, 7, 8
"""Numbers of the end reasons: 0 and 1 belong to the suite."""
END_REASONS = ("kill", "fled", "crash", "overload", "off_tables", "not_finite", "both")

PARAMETERS = (
    Parameter("cone_half_angle_deg", 1.0, 0.01, 180.0, "deg", "half-angle of the gun's cone at the start"),
    Parameter("cone_step_deg", 0.0, 0.0, 60.0, "deg", "widening of the half-angle per step of the schedule"),
    Parameter("cone_first_step_s", 100.0, 0.0, 1e6, "s", "time of the first widening"),
    Parameter("cone_next_step_s", 50.0, 0.1, 1e6, "s", "time between further widenings"),
    Parameter("damage_per_second", 1.0, 0.0, 100.0, "1/s", "health that the gun takes at the near end of its range"),
    Parameter("red_gun", 1.0, 0.0, 1.0, "1", "factor on the damage that red deals: 0 is unarmed"),
    Parameter("blue_gun", 1.0, 0.0, 1.0, "1", "factor on the damage that blue deals: 0 is unarmed"),
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
)

MACRO = (
    Continuous("roll", unit="180 deg", about="roll angle to hold, positive is right wing down"),
    Continuous("flight_path", unit="60 deg", about="flight-path angle to hold, positive climbs"),
    Continuous("speed", about="true airspeed to hold: -1 is 120 m/s, 1 is 400 m/s"),
)

INFO = (
    Field(
        "opportunities", (2,), unit="1", about="times the other came within 10 deg of the nose at gun range", dtype="i8"
    ),
    Field("opportunity_seconds", (2,), unit="s", about="how long it stayed there", dtype="f8"),
    Field("cone_seconds", (2,), unit="s", about="how long it was inside the cone", dtype="f8"),
    Field("gun_damage", (2,), unit="1", about="health taken from the other by the gun", dtype="f8"),
    Field("arena_damage", (2,), unit="1", about="health that the other lost outside the arena", dtype="f8"),
    Field("reward_damage", about="red's reward so far for damage", dtype="f8"),
    Field("reward_end", about="red's reward for the end", dtype="f8"),
    Field("reward_posture", about="red's shaping by angles so far", dtype="f8"),
    Field("reward_altitude", about="red's shaping by height so far", dtype="f8"),
    Field("reward_energy", about="red's shaping by energy so far", dtype="f8"),
    Field("reward_aim", about="red's shaping by aim so far", dtype="f8"),
)


STATE = (
    ("body", BODY, (2,)),
    ("autopilots", AUTOPILOT, (2,)),
    ("pilots", MEMORY, (2,)),  # memory of the scripts
    ("health", "f8", (2,)),
    ("overload_s", "f8", (2,)),  # time above the sustained load, ending now
    ("potentials", "f8", (4,)),  # at the end of the last decision
    ("last_action", "f8", (2, 4)),
    ("periods", "i8"),  # periods played in this match
    ("in_gun", "u1", (2,)),  # slot's gun hits
    ("in_funnel", "u1", (2,)),  # slot has an opportunity
    ("lost", "i8", (2,)),  # end reason of the slot, 0 while it is in the fight
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
    s.health[slot] = 1.0


# --------------------------------------------------------------------------------------------------------- commands


def command_stick(s, world, actions, scratch):
    """Puts the stick where the pilots want it. Throttle -1..1 is 0..1 of the lever."""
    for k in range(2):
        action, body = actions.pilot[k], s.body[k]
        body.aileron_command = action.aileron
        body.elevator_command = action.elevator
        body.rudder_command = action.rudder
        body.throttle_command = 0.5 * (action.throttle + 1.0)
        s.last_action[k, 0] = action.aileron
        s.last_action[k, 1] = action.elevator
        s.last_action[k, 2] = action.rudder
        s.last_action[k, 3] = action.throttle


def command_macro_pid(s, world, actions, scratch):
    """Lets the cascaded PID of `palaestra.ucav.autopilot` fly the macro for one period."""
    for k in range(2):
        action = actions.pilot[k]
        remember_macro(s, k, action)
        steer(
            s.body[k],
            s.autopilots[k],
            action.roll * ROLL_SPAN_RAD,
            action.flight_path * FLIGHT_PATH_SPAN_RAD,
            macro_speed_mps(action.speed),
        )


def command_macro_network(s, world, actions, scratch):
    """Lets a trained network (`palaestra.kernels.networks`) fly the macro for one period."""
    age_s = (s.periods % MACRO_PERIODS) * PERIOD_S
    for k in range(2):
        action = actions.pilot[k]
        remember_macro(s, k, action)
        steer_by_network(
            world.weights,
            world.biases,
            world.sizes,
            scratch,
            s.body[k],
            action.roll * ROLL_SPAN_RAD,
            action.flight_path * FLIGHT_PATH_SPAN_RAD,
            macro_speed_mps(action.speed),
            age_s,
        )


def macro_speed_mps(scaled):
    """True airspeed that a macro's third number encodes, m/s."""
    return SPEED_LOW_MPS + 0.5 * (scaled + 1.0) * (SPEED_HIGH_MPS - SPEED_LOW_MPS)


def remember_macro(s, k, action):
    """Notes the action for the next observation."""
    s.last_action[k, 0] = action.roll
    s.last_action[k, 1] = action.flight_path
    s.last_action[k, 2] = action.speed


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
    damage = fire(s, BLUE) - fire(s, RED)
    damage += drain(s, BLUE) - drain(s, RED)
    for k in range(2):
        s.overload_s[k] = s.overload_s[k] + PERIOD_S if abs(s.body[k].load_factor_g) > SUSTAINED_LOAD_G else 0.0
        s.lost[k] = fate(s, k)
    over = s.lost[RED] != RUNNING or s.lost[BLUE] != RUNNING
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


def cone_half_angle_rad(s):
    """Half-angle of the cone now: a step wider from `cone_first_step_s` on and every `cone_next_step_s` after."""
    p = s.parameters
    steps = 0.0
    late = s.periods * PERIOD_S - p.cone_first_step_s
    if late >= 0.0:
        steps = 1.0 + math.floor(late / p.cone_next_step_s)
    return min(math.radians(p.cone_half_angle_deg + steps * p.cone_step_deg), math.pi)


def damage_rate(s, range_m):
    """Health per second that a hit takes: falls linearly from `damage_per_second` at 152 m to 0 at 914 m. Ours."""
    return s.parameters.damage_per_second * (GUN_FAR_M - range_m) / (GUN_FAR_M - GUN_NEAR_M)


def fire(s, target):
    """Lets the other side's gun hit ``target`` for one period, books it, and returns the health lost."""
    shooter = 1 - target
    range_m = distance_m(s.body[shooter], s.body[target])
    angle = antenna_train_angle_rad(s.body[shooter], s.body[target])
    in_range = GUN_NEAR_M <= range_m <= GUN_FAR_M
    near = in_range and angle <= OPPORTUNITY_RAD
    hits = in_range and angle <= cone_half_angle_rad(s)
    if near and not s.in_funnel[shooter]:
        s.info.opportunities[shooter] += 1
    s.in_funnel[shooter] = near
    s.in_gun[shooter] = hits
    lost = 0.0
    if near:
        s.info.opportunity_seconds[shooter] += PERIOD_S
    if hits:
        s.info.cone_seconds[shooter] += PERIOD_S
        armed = s.parameters.red_gun if shooter == RED else s.parameters.blue_gun
        lost = min(s.health[target], armed * damage_rate(s, range_m) * PERIOD_S)
        s.health[target] -= lost
        s.info.gun_damage[shooter] += lost
    return lost


def drain(s, slot):
    """Takes a period's health from an aircraft outside the arena, books it as dealt by the other, and returns it."""
    body = s.body[slot]
    lost = 0.0
    if math.sqrt(body.north_m * body.north_m + body.east_m * body.east_m) > s.parameters.arena_radius_m:
        lost = min(s.health[slot], s.parameters.arena_drain * PERIOD_S)
        s.health[slot] -= lost
        s.info.arena_damage[1 - slot] += lost
    return lost


def fate(s, slot):
    """Why the aircraft is out of the fight: an end reason, or `RUNNING`."""
    body = s.body[slot]
    if not body.finite:
        return NOT_FINITE
    if s.health[slot] <= 0.0:
        return KILL if s.in_gun[1 - slot] else FLED
    if body.altitude_m < s.parameters.floor_m:
        return CRASH
    if abs(body.load_factor_g) > INSTANT_LOAD_G or s.overload_s[slot] > SUSTAINED_LOAD_S:
        return OVERLOAD
    if not body.in_tables:
        return OFF_TABLES
    return RUNNING


def conclude(s):
    """Books winner and reason of a match that a rule ended; returns red's reward for it."""
    if s.lost[RED] != RUNNING and s.lost[BLUE] != RUNNING:
        s.info.end_reason = BOTH
        return 0.0
    loser = RED if s.lost[RED] != RUNNING else BLUE
    s.info.winner = 1 - loser
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
    for k in range(2):
        o, ego, other = observations.pilot[k], s.body[k], s.body[1 - k]
        write_ego(o, ego)
        write_other(o, ego, other)
        o.height_over_floor = clip((ego.altitude_m - p.floor_m) / NEAR_UNIT_M, -1.0, 5.0)
        o.overload = clip(s.overload_s[k] / SUSTAINED_LOAD_S, 0.0, 1.0)
        o.health = clip(s.health[k], 0.0, 1.0)
        o.other_health = clip(s.health[1 - k], 0.0, 1.0)
        o.gun_range = clip(distance_m(ego, other) / GUN_FAR_M, 0.0, 5.0)
        o.in_my_gun = s.in_gun[k]
        o.in_its_gun = s.in_gun[1 - k]
        o.cone_half_angle = cone
        o.time_left = time_left
        write_centre(o, ego, p.arena_radius_m)
        for i in range(o.last_action.shape[0]):
            o.last_action[i] = clip(s.last_action[k, i], -1.0, 1.0)


# ------------------------------------------------------------------------------------------------------------- game


def game(commands: Literal["stick", "macro"] = "stick", inner_loop: str = "pid") -> Game:
    """The rules of `palaestra/UcavDogfight-v0`.

    Args:
        commands: What a pilot decides: ``"stick"`` (10 Hz) or ``"macro"`` (2 Hz).
        inner_loop: What flies a macro: ``"pid"``, ``"ppo"`` or the path of a trained network.

    Raises:
        ValueError: Unknown commands, or an inner loop for the stick.
    """
    return build("UcavDogfight", commands, inner_loop, PARAMETERS, "expert", symmetric_teams=True)


def build(
    name: str,
    commands: str,
    inner_loop: str,
    parameters: tuple[Parameter, ...],
    default_opponent: str,
    *,
    symmetric_teams: bool,
) -> Game:
    """The rules under another name, with other numbers.

    Args:
        name: CamelCase name of the game.
        commands: As for `game`.
        inner_loop: As for `game`.
        parameters: `PARAMETERS` with other defaults.
        default_opponent: Script that plays the teams that the user does not.
        symmetric_teams: Whether both aircraft have the same task and the same arms.

    Raises:
        ValueError: Unknown commands, an inner loop for the stick, or a file that is no network for an inner loop.
        FileNotFoundError: There is no such network.
    """
    check_word("commands", commands, ("stick", "macro"))
    stick = commands == "stick"
    if stick and inner_loop != "pid":
        raise ValueError(f'inner_loop={inner_loop!r} flies macros: use it with commands="macro"')
    network = None if inner_loop == "pid" else load_inner_loop(inner_loop)
    fly_macro = command_macro_pid if network is None else command_macro_network
    action = STICK if stick else MACRO
    periods = STICK_PERIODS if stick else MACRO_PERIODS
    return Game(
        name=name,
        roles=(Role("pilot", ("red_0", "blue_0"), observation_table(action), action),),
        state=STATE,
        reset=reset,
        observe=observe,
        script=script_stick if stick else script_macro,
        scripts=SCRIPTS,
        command=command_stick if stick else fly_macro,
        evaluate=evaluate_stick if stick else evaluate_macro,
        physics="palaestra.ucav.jsbsim_engine:JsbsimEngine",
        physics_options={"physics_hz": 60, "frames": 6},
        periods=periods,
        parameters=parameters,
        horizon=round(DURATION_S / (PERIOD_S * periods)),
        info=INFO,
        end_reasons=END_REASONS,
        scratch=(("unused", "f8"),) if network is None else SCRATCH,
        world=network,
        zero_sum=True,
        symmetric_teams=symmetric_teams,
        default_opponent=default_opponent,
        render="palaestra.ucav.render_flight:draw_dogfight",
        render_fps=1.0 / (PERIOD_S * periods),
        engine_version=JsbsimEngine.version,
    )
