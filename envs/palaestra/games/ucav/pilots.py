"""Scripted pilots: from flying straight to basic fighter manoeuvres by rule.

Every pilot decides in the same three layers. A *tactic* writes a wish (`palaestra.games.ucav.aiming`): a macro (roll,
flight path, speed), a direction for the nose, or one for the lift. *Safety* then overrules it: no pilot flies into the
ground or out of the arena. At last the wish is *flown*: with the stick, or, where the rules take macros, as the bank
and the flight path with which the inner loop comes nearest to it.

=================  =====================================================================================================
straight           holds its course, level
level_turn         turns level at one bank angle, to one side, for ever
weave              turns level to one side and the other
pure_pursuit       puts its nose on the other, at full speed
lead_pursuit       aims ahead of the other until it is at gun range, with closure under control
lag_pursuit        aims behind it until it is at gun range, with closure under control
expert             fights: see `palaestra.games.ucav.expert`
=================  =====================================================================================================
"""

from __future__ import annotations

import math

import numpy as np

from palaestra.game import script_uniform
from palaestra.games.ucav.aiming import (
    LIMIT_LOAD_G,
    MACRO,
    MACRO_AIM_GAIN,
    WISH,
    demand,
    flight_path_for_load_factor,
    full_stick_g,
    impact_pressure_kpa,
    off_the_edge,
    point,
    wish_aim,
    wish_aim_earth,
    wish_lift,
    wish_macro,
)
from palaestra.games.ucav.autopilot import GAINS, hold_speed, steer
from palaestra.games.ucav.body import PERIOD_S, opponent_of
from palaestra.games.ucav.expert import FUTURES, LOW_M, choose_turn, may_track
from palaestra.games.ucav.geometry import (
    GRAVITY_MPS2,
    SLOWEST_MPS,
    aspect_angle_rad,
    relative_position,
    relative_velocity,
    rotate_to_body,
)
from palaestra.games.ucav.macros import MACRO_S, write_macro
from palaestra.kernels.angles import wrap_angle_rad
from palaestra.kernels.scalars import clip
from palaestra.kernels.vectors import norm

SCRIPTS = ("straight", "level_turn", "weave", "pure_pursuit", "lead_pursuit", "lag_pursuit", "expert")
STRAIGHT, LEVEL_TURN, WEAVE, PURE, LEAD, LAG, EXPERT = range(7)

MEMORY = np.dtype(
    [
        ("wish", WISH),
        ("course_rad", "f8"),
        ("side", "f8"),  # -1 left, 1 right
        ("bank_rad", "f8"),
        ("cruise_mps", "f8"),
        ("phase_s", "f8"),
        ("half_period_s", "f8"),
        ("saved", "u1"),  # 1 while ground avoidance flies
        ("escaping", "u1"),  # 1 while the way back into the arena is flown
    ],
    align=True,
)
"""What a pilot remembers, zero at the start of a match."""

PILOT_SCRATCH = (("futures", FUTURES),)
"""Work fields that a game with these scripts adds to its scratch record; no script reads what another call wrote."""

CORNER_SPEED_MPS = 250.0
"""About where JSBSim's f16 turns fastest: 7 g at full stick at 4 km (measured), m/s."""
FULL_SPEED_MPS = 400.0
MACRO_LOAD_G, MACRO_SPEED_MPS = 6.5, 320.0
"""Largest load factor and speed that a pilot asks an inner loop for, g and m/s."""
GOVERNED_RANGE_M, GOVERNOR_GAIN = 400.0, 0.08
"""Range behind the other, m, that the closure governor keeps, and its speed per range, 1/s."""
BEHIND_RAD = math.radians(70.0)
"""Aspect angle, rad, within which ego is behind the other."""
LEAD_S = 1.0
"""How far ahead of the other, or behind it, lead and lag pursuit aim, s."""
OFFENSIVE_RAD = math.radians(100.0)
"""Aspect angle, rad, within which the expert is offensive."""
EXPERT_RANGE_M, EXPERT_SPEED_MPS = 600.0, 200.0
"""Range that the expert keeps behind the other, m, and its speed elsewhere, m/s: slow turns are tight."""
CLIMB_OUT_RAD = math.radians(15.0)
"""Elevation, rad, to which a pilot pulls out of a dive."""
GROUND_MARGIN_M = 200.0
"""Height, m, that stays under a pull-out."""
EDGE_SECONDS, SIDEWAYS_RAD, BACKWARD_RAD = 8.0, math.radians(70.0), math.radians(150.0)
"""How far ahead a pilot looks for the edge of the arena, s; how far to a side it then aims; what is behind it, rad."""


# ------------------------------------------------------------------------------------------------------------ hooks


def script_stick(s, world, slot, which, actions, scratch):
    """Decides and flies with the stick, once a period."""
    decide(s, slot, opponent_of(slot), which, PERIOD_S, scratch)
    fly_by_stick(s, slot, actions)


def fly_by_stick(s, slot, actions):
    """Flies the wish of a pilot with the stick for one period."""
    wish, body, action = s.pilots[slot].wish, s.body[slot], actions.pilot[slot]
    if wish.kind == MACRO:
        steer(body, s.autopilots[slot], wish.roll_rad, wish.flight_path_rad, wish.speed_mps)
    else:
        point(body, wish)
        hold_speed(GAINS, body, s.autopilots[slot], wish.speed_mps)
    action.aileron = clip(body.aileron_command, -1.0, 1.0)
    action.elevator = clip(body.elevator_command, -1.0, 1.0)
    action.rudder = clip(body.rudder_command, -1.0, 1.0)
    action.throttle = clip(2.0 * body.throttle_command - 1.0, -1.0, 1.0)


def script_macro(s, world, slot, which, actions, scratch):
    """Decides and asks the inner loop for it, twice a second."""
    decide(s, slot, opponent_of(slot), which, MACRO_S, scratch)
    fly_by_macro(s, slot, actions)


def fly_by_macro(s, slot, actions):
    """Asks the inner loop for the wish of a pilot.

    At 90 degrees of bank an inner loop cannot pull, since no load factor holds the path there, so the bank keeps off
    it; load and speed keep a margin for the half second without a correction.
    """
    m, body, action = s.pilots[slot], s.body[slot], actions.pilot[slot]
    wish = m.wish
    roll, flight_path, speed = wish.roll_rad, wish.flight_path_rad, wish.speed_mps
    if m.saved:
        roll, flight_path = 0.0, CLIMB_OUT_RAD
    elif wish.kind != MACRO:
        roll_error, load = demand(body, wish, MACRO_AIM_GAIN)
        roll = off_the_edge(wrap_angle_rad(body.roll_rad + roll_error))
        flight_path = flight_path_for_load_factor(body, roll, min(load, MACRO_LOAD_G))
        speed = min(speed, MACRO_SPEED_MPS)
    write_macro(action, roll, flight_path, speed)


# --------------------------------------------------------------------------------------------------------- tactics


def decide(s, slot, opponent, which, interval_s, scratch):
    """Writes the wish of the script ``which`` in a slot against the aircraft in another: tactic first, safety last."""
    m, me, other = s.pilots[slot], s.body[slot], s.body[opponent]
    draw_1, draw_2, draw_3 = 0.0, 0.0, 0.0
    if s.steps == 0:
        draw_1 = script_uniform(s, 0.0, 1.0)
        draw_2 = script_uniform(s, 0.0, 1.0)
        draw_3 = script_uniform(s, 0.0, 1.0)
        m.course_rad = me.heading_rad
        m.side = 1.0 if draw_1 < 0.5 else -1.0
        m.bank_rad = math.radians(45.0 + 30.0 * draw_2)
        m.cruise_mps = 220.0 + 40.0 * draw_3
        m.half_period_s = 4.0 + 4.0 * draw_2
    m.phase_s += interval_s
    if which == STRAIGHT:
        hold_course(m, me)
    elif which == LEVEL_TURN:
        wish_macro(m.wish, m.side * m.bank_rad, 0.0, m.cruise_mps)
    elif which == WEAVE:
        weave(m, me)
    elif which == PURE:
        pursue(m, me, other, 0.0, FULL_SPEED_MPS)
    elif which == LEAD:
        pursue(m, me, other, LEAD_S, governed_speed_mps(me, other, GOVERNED_RANGE_M, CORNER_SPEED_MPS))
    elif which == LAG:
        pursue(m, me, other, -LEAD_S, governed_speed_mps(me, other, GOVERNED_RANGE_M, CORNER_SPEED_MPS))
    else:
        expert(m, me, other, s.parameters.floor_m, scratch)
    stay_inside(m, me, s.parameters.arena_radius_m)
    avoid_ground(m, me, s.parameters.floor_m)


def hold_course(m, me):
    """Level on the course."""
    wish_macro(m.wish, clip(2.0 * wrap_angle_rad(m.course_rad - me.heading_rad), -1.0, 1.0), 0.0, m.cruise_mps)


def weave(m, me):
    """Level turns to one side and the other, `half_period_s` each."""
    if m.phase_s > m.half_period_s:
        m.phase_s -= m.half_period_s
        m.side = -m.side
    wish_macro(m.wish, m.side * m.bank_rad, 0.0, m.cruise_mps)


def governed_speed_mps(me, other, range_m, speed):
    """Airspeed that brings ego to a range behind the other and keeps it there; ``speed`` while it is not behind."""
    if aspect_angle_rad(me, other) > BEHIND_RAD:
        return speed
    distance = norm(*relative_position(me, other))
    return other.true_airspeed_mps + clip(GOVERNOR_GAIN * (distance - range_m), -60.0, 100.0)


def pursue(m, me, other, lead_s, speed):
    """Aims where the other will be in ``lead_s`` seconds (has been, if negative); at gun range at the other itself."""
    x, y, z = relative_position(me, other)
    vx, vy, vz = rotate_to_body(me, other.velocity_north_mps, other.velocity_east_mps, other.velocity_down_mps)
    far = clip((norm(x, y, z) - 900.0) / 900.0, 0.0, 1.0)
    x, y, z = x + lead_s * far * vx, y + lead_s * far * vy, z + lead_s * far * vz
    ux, uy, uz = relative_velocity(me, other)
    square = max(x * x + y * y + z * z, 1.0)
    wish_aim(m.wish, x, y, z, (y * uz - z * uy) / square, (z * ux - x * uz) / square, (x * uy - y * ux) / square, speed)


def expert(m, me, other, floor_m, scratch):
    """Fights by the situation.

    Near its nose, it tracks. Offensive, within `OFFENSIVE_RAD` of the other's tail, it flies the turn that looks
    best seconds ahead (`palaestra.games.ucav.expert`). Neutral or defensive, it turns as hard as it can, at
    corner speed, towards where the other has been.
    """
    aspect = aspect_angle_rad(me, other)
    if may_track(me, other):
        pursue(m, me, other, 0.0, governed_speed_mps(me, other, EXPERT_RANGE_M, EXPERT_SPEED_MPS))
    elif aspect > OFFENSIVE_RAD:
        pursue(m, me, other, -LEAD_S, CORNER_SPEED_MPS)
    else:
        strongest = min(full_stick_g(me, impact_pressure_kpa(me)), LIMIT_LOAD_G)
        turn = choose_turn(scratch.futures, me, other, strongest, floor_m + LOW_M)
        lift, load = scratch.futures.lift, scratch.futures.load_g[turn]
        speed = governed_speed_mps(me, other, EXPERT_RANGE_M, EXPERT_SPEED_MPS)
        wish_lift(m.wish, me, lift[0, turn], lift[1, turn], lift[2, turn], load, speed)


# ----------------------------------------------------------------------------------------------------------- safety


def stay_inside(m, me, radius_m):
    """Turns hard and level towards the centre of the arena before its edge is reached."""
    edge = math.sqrt(me.north_m * me.north_m + me.east_m * me.east_m) + EDGE_SECONDS * outward_mps(me)
    if edge > radius_m:
        m.escaping = 1
    elif edge < 0.8 * radius_m:
        m.escaping = 0
    if m.escaping:
        m.course_rad = math.atan2(-me.east_m, -me.north_m)
        error = wrap_angle_rad(m.course_rad - me.heading_rad)
        if abs(error) > BACKWARD_RAD:  # either way will do: the one that it banks to
            error = math.copysign(error, me.roll_rad)
        wish_aim_earth(m.wish, me, me.heading_rad + clip(error, -SIDEWAYS_RAD, SIDEWAYS_RAD), 0.0, CORNER_SPEED_MPS)


def outward_mps(me):
    """Speed away from the centre of the arena."""
    distance = max(math.sqrt(me.north_m * me.north_m + me.east_m * me.east_m), 1.0)
    return (me.north_m * me.velocity_north_mps + me.east_m * me.velocity_east_mps) / distance


def avoid_ground(m, me, floor_m):
    """Pulls out of a dive while there is height for it, whatever the tactic wants.

    A pull-out at n g from a dive angle d takes V^2 (1 - cos(d)) / (g (n - 1)) of height, and the aircraft sinks on
    with V sin(d) while it rolls upright. The margin is left under it.
    """
    speed = max(me.true_airspeed_mps, SLOWEST_MPS)
    dive = max(-me.flight_path_angle_rad, 0.0)
    load = clip(6.0 * speed * speed / (230.0 * 230.0), 2.0, 6.0)
    arc = speed * speed * (1.0 - math.cos(dive)) / (GRAVITY_MPS2 * (load - 1.0))
    rolling_s = 0.6 + abs(me.roll_rad) / 1.5
    spare = me.altitude_m - floor_m - arc - speed * math.sin(dive) * rolling_s
    if spare < GROUND_MARGIN_M:
        m.saved = 1
    elif spare > 2.0 * GROUND_MARGIN_M and dive == 0.0:
        m.saved = 0
    if m.saved:
        wish_aim_earth(
            m.wish, me, math.atan2(me.velocity_east_mps, me.velocity_north_mps), CLIMB_OUT_RAD, CORNER_SPEED_MPS
        )
