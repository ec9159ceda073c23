"""Scripted pilots: from flying straight to basic fighter manoeuvres by rule.

Every pilot decides in the same three layers. A *tactic* writes a wish (`palaestra.games.ucav.aiming`): a macro (roll,
flight path, speed), a direction for the nose, or one for the lift. *Safety* then overrules it: no pilot flies into the
ground, into the other aircraft or out of the arena. At last the wish is *flown*: with the stick, or, where the rules
take macros, as the bank and the flight path with which the inner loop comes nearest to it.

=================  =====================================================================================================
straight           holds its course, level
level_turn         turns level at one bank angle, to one side, for ever
weave              turns level to one side and the other
jink               breaks as hard as it can, to a side and for a time that are drawn each time
random_macros      holds a bank, a flight path and a speed that are drawn every few seconds
vertical           pulls up into a climb and down into a dive, in planes that are drawn each time
pure_fast          pure pursuit at full speed
pure_pursuit       puts its nose on the other, at corner speed
lag_pursuit        aims behind the other until it is at gun range, with closure under control
lead_pursuit       aims ahead of it until it is at gun range, with closure under control
expert             fights: see `palaestra.games.ucav.expert`
=================  =====================================================================================================

The last four are a ladder: each has the better of the one before. The better a pilot is, the later it breaks off before
a collision (`BREAK_OFF_S`): until then its gun bears.

The strength of a script (``"expert:0.5"``) is a pilot's: the weaker, the less often it looks at the other, the worse it
sees where the other is, and the less it pulls. Its safety is that of the strongest.
"""

from __future__ import annotations

import math

import numpy as np

from palaestra.game import script_uniform
from palaestra.games.ucav.aiming import (
    LIFT,
    LIMIT_LOAD_G,
    MACRO,
    MACRO_AIM_GAIN,
    STRONGEST_PUSH_G,
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
    wish_turn,
)
from palaestra.games.ucav.autopilot import GAINS, hold_speed, steer
from palaestra.games.ucav.body import PERIOD_S, opponent_of
from palaestra.games.ucav.expert import FUTURES, LOW_M, choose_turn, may_track
from palaestra.games.ucav.geometry import (
    GRAVITY_MPS2,
    SLOWEST_MPS,
    antenna_train_angle_rad,
    aspect_angle_rad,
    distance_m,
    relative_position,
    relative_velocity,
    rotate_to_body,
    rotate_to_earth,
)
from palaestra.games.ucav.macros import MACRO_S, write_macro
from palaestra.kernels.angles import wrap_angle_rad
from palaestra.kernels.scalars import clip
from palaestra.kernels.vectors import norm

SCRIPTS = (
    "straight",
    "level_turn",
    "weave",
    "jink",
    "random_macros",
    "vertical",
    "pure_fast",
    "pure_pursuit",
    "lag_pursuit",
    "lead_pursuit",
    "expert",
)
STRAIGHT, LEVEL_TURN, WEAVE, JINK, RANDOM_MACROS, VERTICAL, PURE_FAST, PURE, LAG, LEAD, EXPERT = range(11)

SEEN = np.dtype(
    [
        ("north_m", "f8"),
        ("east_m", "f8"),
        ("altitude_m", "f8"),
        ("roll_rad", "f8"),
        ("pitch_rad", "f8"),
        ("heading_rad", "f8"),
        ("true_airspeed_mps", "f8"),
        ("velocity_north_mps", "f8"),
        ("velocity_east_mps", "f8"),
        ("velocity_down_mps", "f8"),
        ("load_factor_g", "f8"),
    ],
    align=True,
)
"""The other aircraft as a pilot believes it to be: fields of `palaestra.games.ucav.body.BODY`."""

MEMORY = np.dtype(
    [
        ("wish", WISH),
        ("course_rad", "f8"),
        ("side", "f8"),  # -1 left, 1 right
        ("bank_rad", "f8"),
        ("cruise_mps", "f8"),
        ("flight_path_rad", "f8"),
        ("phase_s", "f8"),
        ("half_period_s", "f8"),
        ("seen", SEEN),
        ("unseen_s", "f8"),  # time until the next look at the other
        ("target", "i8"),  # slot that was looked at
        ("saved", "u1"),  # 1 while ground avoidance flies
        ("escaping", "u1"),  # 1 while the way back into the arena is flown
        ("avoiding", "u1"),  # 1 while it breaks off before a collision
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
CLOSURE_RAD = 0.5
"""Angle off the nose, rad, within which the speed is governed: who still has to turn flies at corner speed."""
LEAD_S = 0.5
"""How far ahead of the other, or behind it, lead and lag pursuit aim, s."""
ANTICIPATION_S = 0.3
"""How far ahead the turn of the line of sight is expected, s: the nose follows the stick that late."""
OFFENSIVE_RAD = math.radians(80.0)
"""Aspect angle, rad, within which the expert is offensive."""
EXPERT_RANGE_M, EXPERT_SPEED_MPS = 600.0, 200.0
"""Range that the expert keeps behind the other, m, and its speed in an offensive turn, m/s: slow turns are tight."""
WIDE, WIDE_FROM_M = 0.12, 2300.0
"""How far beside the other, per range, the expert passes, and from where on, m: room to turn in."""

BREAK_G, BREAK_RADS, BREAK_S = 7.0, (math.radians(72.0), math.radians(102.0)), (1.0, 4.0)
"""Breaks of `jink`: load factor, g, angle of the lift from upwards, rad, and length, s."""
MACRO_ROLL_RAD, MACRO_PATH_RAD, MACRO_SPEEDS_MPS, MACRO_HOLD_S = math.radians(75.0), 0.5, (180.0, 350.0), (3.0, 8.0)
"""Bounds of `random_macros`: bank and flight path, rad, speed, m/s, and how long they are held, s."""
LOOP_G, LOOP_SLANT_RAD, LOOP_PATHS_RAD = 6.0, 0.9, (0.5, 1.2)
"""Pulls of `vertical`: load factor, g, largest slant of their planes and flight paths at which they end, rad."""
SLOW_MPS, DOWN_RAD = 180.0, math.radians(30.0)
"""Speed below which `vertical` climbs no more, m/s, and the breaks of `jink` slant down by so much more, rad."""

BLIND_S, MISSEEN_RAD, SPARED_G = 0.5, 0.03, 3.0
"""A pilot of strength 0: time between two looks at the other, s, by how much it mistakes its place, rad, g unused."""

BREAK_OFF_S = (2.0,) * LAG + (1.54, 1.27, 1.15)
"""How long before a collision each script breaks off, s. At 1.1 s 12 % of an expert's matches against itself
would end in one."""
MISS_M, AWAY_G = 40.0, 8.0
"""Miss distance below which it does, m, and the load factor of the break, g."""
CLIMB_OUT_RAD = math.radians(15.0)
"""Elevation, rad, to which a pilot pulls out of a dive."""
GROUND_MARGIN_M = 200.0
"""Height, m, that stays under a pull-out."""
EDGE_SECONDS, SIDEWAYS_RAD, BACKWARD_RAD = 8.0, math.radians(70.0), math.radians(150.0)
"""How far ahead a pilot looks for the edge of the arena, s; how far to a side it then aims; what is behind it, rad."""


# ------------------------------------------------------------------------------------------------------------ hooks


def script_stick(s, world, slot, which, actions, scratch):
    """Decides and flies with the stick, once a period."""
    decide_stick(s, slot, which, actions.pilot[slot], scratch)


def decide_stick(s, slot, which, action, scratch):
    """Writes the action of a script for the next period."""
    decide(s, slot, opponent_of(slot), which, PERIOD_S, scratch)
    fly_by_stick(s, slot, action)


def fly_by_stick(s, slot, action):
    """Flies the wish of a pilot with the stick for one period."""
    wish, body = s.pilots[slot].wish, s.body[slot]
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
    m, me = s.pilots[slot], s.body[slot]
    if s.steps == 0:
        start(s, m, me)
    weakness = 1.0 - s.strength[slot]
    look(s, m, me, opponent, weakness, interval_s)
    m.phase_s += interval_s
    other = m.seen
    if which == STRAIGHT:
        hold_course(m, me)
    elif which == LEVEL_TURN:
        wish_macro(m.wish, m.side * m.bank_rad, 0.0, m.cruise_mps)
    elif which == WEAVE:
        weave(m, me)
    elif which == JINK:
        jink(s, m, me)
    elif which == RANDOM_MACROS:
        hold_macro(s, m, me)
    elif which == VERTICAL:
        loop(s, m, me)
    elif which == PURE_FAST:
        pursue(m, me, other, 0.0, 0.0, FULL_SPEED_MPS)
    elif which == PURE:
        pursue(m, me, other, 0.0, 0.0, chasing_speed_mps(me, other))
    elif which == LAG:
        pursue(m, me, other, -LEAD_S, 0.0, chasing_speed_mps(me, other))
    elif which == LEAD:
        pursue(m, me, other, LEAD_S, 0.0, chasing_speed_mps(me, other))
    else:
        expert(m, me, other, s.parameters.floor_m, scratch)
    stay_inside(m, me, s.parameters.arena_radius_m)
    avoid_collision(m, me, s.body[opponent], BREAK_OFF_S[which] + interval_s - PERIOD_S)
    avoid_ground(m, me, s.parameters.floor_m)
    m.wish.spared_g = 0.0 if m.escaping or m.avoiding or m.saved else weakness * SPARED_G


def start(s, m, me):
    """Draws what a pilot holds to for a match."""
    draw_1 = script_uniform(s, 0.0, 1.0)
    draw_2 = script_uniform(s, 0.0, 1.0)
    draw_3 = script_uniform(s, 0.0, 1.0)
    m.course_rad = me.heading_rad
    m.side = 1.0 if draw_1 < 0.5 else -1.0
    m.bank_rad = math.radians(45.0 + 30.0 * draw_2)
    m.cruise_mps = 220.0 + 40.0 * draw_3
    m.half_period_s = 4.0 + 4.0 * draw_2


def look(s, m, me, opponent, weakness, interval_s):
    """Looks at the other, or supposes that it has flown straight on since the last look."""
    seen, other = m.seen, s.body[opponent]
    m.unseen_s -= interval_s
    if m.unseen_s > 0.0 and m.target == opponent:
        seen.north_m += seen.velocity_north_mps * interval_s
        seen.east_m += seen.velocity_east_mps * interval_s
        seen.altitude_m -= seen.velocity_down_mps * interval_s
        return
    m.unseen_s = weakness * BLIND_S
    m.target = opponent
    seen.north_m, seen.east_m, seen.altitude_m = other.north_m, other.east_m, other.altitude_m
    seen.roll_rad, seen.pitch_rad, seen.heading_rad = other.roll_rad, other.pitch_rad, other.heading_rad
    seen.true_airspeed_mps, seen.load_factor_g = other.true_airspeed_mps, other.load_factor_g
    seen.velocity_north_mps = other.velocity_north_mps
    seen.velocity_east_mps = other.velocity_east_mps
    seen.velocity_down_mps = other.velocity_down_mps
    if weakness > 0.0:
        error_m = weakness * MISSEEN_RAD * distance_m(me, other)
        seen.north_m += error_m * script_uniform(s, -1.0, 1.0)
        seen.east_m += error_m * script_uniform(s, -1.0, 1.0)
        seen.altitude_m += error_m * script_uniform(s, -1.0, 1.0)


def hold_course(m, me):
    """Level on the course."""
    wish_macro(m.wish, clip(2.0 * wrap_angle_rad(m.course_rad - me.heading_rad), -1.0, 1.0), 0.0, m.cruise_mps)


def weave(m, me):
    """Level turns to one side and the other, `half_period_s` each."""
    if m.phase_s > m.half_period_s:
        m.phase_s -= m.half_period_s
        m.side = -m.side
    wish_macro(m.wish, m.side * m.bank_rad, 0.0, m.cruise_mps)


def jink(s, m, me):
    """Break turns of random side, slant and length."""
    if m.phase_s > m.half_period_s:
        m.phase_s = 0.0
        m.half_period_s = script_uniform(s, BREAK_S[0], BREAK_S[1])
        m.side = 1.0 if script_uniform(s, 0.0, 1.0) < 0.5 else -1.0
        m.bank_rad = script_uniform(s, BREAK_RADS[0], BREAK_RADS[1])
        if me.true_airspeed_mps < SLOW_MPS:
            m.bank_rad += DOWN_RAD
    wish_turn(m.wish, me, m.side * m.bank_rad, BREAK_G, CORNER_SPEED_MPS)


def hold_macro(s, m, me):
    """A bank, a flight path and a speed, drawn anew after a while; a descent takes at most half of the height."""
    if m.phase_s > m.half_period_s:
        m.phase_s = 0.0
        m.half_period_s = script_uniform(s, MACRO_HOLD_S[0], MACRO_HOLD_S[1])
        m.bank_rad = script_uniform(s, -MACRO_ROLL_RAD, MACRO_ROLL_RAD)
        m.cruise_mps = script_uniform(s, MACRO_SPEEDS_MPS[0], MACRO_SPEEDS_MPS[1])
        steepest = 0.5 * (me.altitude_m - s.parameters.floor_m) / (MACRO_SPEEDS_MPS[1] * m.half_period_s)
        m.flight_path_rad = script_uniform(s, -min(steepest, MACRO_PATH_RAD), MACRO_PATH_RAD)
    wish_macro(m.wish, m.bank_rad, m.flight_path_rad, m.cruise_mps)


def loop(s, m, me):
    """Pulls up and down by turns, each in a plane and to a flight path of its own."""
    path = m.side * me.flight_path_angle_rad
    if m.saved:
        m.side = 1.0
    elif path > m.flight_path_rad or (m.side > 0.0 and me.true_airspeed_mps < SLOW_MPS and path > 0.0):
        m.side = -m.side
        m.bank_rad = script_uniform(s, -LOOP_SLANT_RAD, LOOP_SLANT_RAD)
        m.flight_path_rad = script_uniform(s, LOOP_PATHS_RAD[0], LOOP_PATHS_RAD[1])
    wish_turn(m.wish, me, m.bank_rad if m.side > 0.0 else math.pi - m.bank_rad, LOOP_G, CORNER_SPEED_MPS)


def governed_speed_mps(me, other, range_m, speed):
    """Airspeed that brings ego to a range behind the other and keeps it there; ``speed`` while it is not behind."""
    if aspect_angle_rad(me, other) > BEHIND_RAD:
        return speed
    distance = norm(*relative_position(me, other))
    return other.true_airspeed_mps + clip(GOVERNOR_GAIN * (distance - range_m), -60.0, 100.0)


def chasing_speed_mps(me, other):
    """`governed_speed_mps` with the other near the nose; corner speed while ego has to turn."""
    if antenna_train_angle_rad(me, other) > CLOSURE_RAD:
        return CORNER_SPEED_MPS
    return governed_speed_mps(me, other, GOVERNED_RANGE_M, CORNER_SPEED_MPS)


def pursue(m, me, other, lead_s, wide, speed):
    """Aims where the other will be in ``lead_s`` seconds (has been, if negative); at gun range at the other itself.

    From `WIDE_FROM_M` on it aims beside it, away from where it would pass, by ``wide`` of the range. The nose is to
    turn as the line of sight will after `ANTICIPATION_S`, if both keep their lift.
    """
    x, y, z = relative_position(me, other)
    u, v, w = relative_velocity(me, other)
    n, e, d = relative_acceleration(me, other)
    ax, ay, az = rotate_to_body(me, n, e, d)
    t = ANTICIPATION_S
    px, py, pz = x + t * (u + 0.5 * t * ax), y + t * (v + 0.5 * t * ay), z + t * (w + 0.5 * t * az)
    u, v, w = u + t * ax, v + t * ay, w + t * az
    square = max(px * px + py * py + pz * pz, 1.0)
    rate_x, rate_y, rate_z = (py * w - pz * v) / square, (pz * u - px * w) / square, (px * v - py * u) / square
    distance = norm(x, y, z)
    lead_s *= clip((distance - 900.0) / 900.0, 0.0, 1.0)
    vx, vy, vz = rotate_to_body(me, other.velocity_north_mps, other.velocity_east_mps, other.velocity_down_mps)
    x, y, z = x + lead_s * vx, y + lead_s * vy, z + lead_s * vz
    if wide > 0.0 and distance > WIDE_FROM_M and x > 0.0:
        _, n, e, d = closest_approach(me, other)
        mx, my, mz = rotate_to_body(me, n, e, d)
        beside = wide * distance * clip((distance - WIDE_FROM_M) / 900.0, 0.0, 1.0) / max(norm(n, e, d), 1.0)
        x, y, z = x - beside * mx, y - beside * my, z - beside * mz
    wish_aim(m.wish, x, y, z, rate_x, rate_y, rate_z, speed)


def relative_acceleration(me, other):
    """Acceleration of the other minus ego's, north, east and down, m/s^2: that of the two lifts."""
    n, e, d = rotate_to_earth(other, 0.0, 0.0, -other.load_factor_g * GRAVITY_MPS2)
    mine_n, mine_e, mine_d = rotate_to_earth(me, 0.0, 0.0, -me.load_factor_g * GRAVITY_MPS2)
    return n - mine_n, e - mine_e, d - mine_d


def closest_approach(me, other):
    """Time until the two velocities bring them closest, s (negative: it is over), and where the other will then be.

    That is from ego, north, east and down, m, if both keep their lift until then.
    """
    n, e, d = other.north_m - me.north_m, other.east_m - me.east_m, me.altitude_m - other.altitude_m
    u, v = other.velocity_north_mps - me.velocity_north_mps, other.velocity_east_mps - me.velocity_east_mps
    w = other.velocity_down_mps - me.velocity_down_mps
    t = -(n * u + e * v + d * w) / max(u * u + v * v + w * w, 1.0)
    ahead = max(t, 0.0)
    bend = 0.5 * ahead * ahead
    a, b, c = relative_acceleration(me, other)
    return t, n + ahead * u + bend * a, e + ahead * v + bend * b, d + ahead * w + bend * c


def expert(m, me, other, floor_m, scratch):
    """Fights by the situation.

    Near its nose, it tracks. Offensive, within `OFFENSIVE_RAD` of the other's tail, it flies the turn that looks
    best seconds ahead (`palaestra.games.ucav.expert`). Neutral or defensive, it turns as hard as it can, at
    corner speed, towards the other, and passes wide of it.
    """
    if may_track(me, other):
        pursue(m, me, other, 0.0, 0.0, governed_speed_mps(me, other, EXPERT_RANGE_M, CORNER_SPEED_MPS))
    elif aspect_angle_rad(me, other) > OFFENSIVE_RAD:
        pursue(m, me, other, 0.0, WIDE, CORNER_SPEED_MPS)
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


def avoid_collision(m, me, other, seconds):
    """Pulls or pushes away from where the other will pass, when that is near and in less than ``seconds``.

    Who passes below the nose is left by the nearer half roll and a pull, who passes above it by pushing: that takes no
    roll.
    """
    t, n, e, d = closest_approach(me, other)
    m.avoiding = 0.0 <= t <= seconds and norm(n, e, d) < MISS_M
    if m.avoiding:
        _, y, z = rotate_to_body(me, n, e, d)
        pulls = z > -0.6 * abs(y)
        m.wish.kind = LIFT
        m.wish.roll_error_rad = math.atan2(-y, z) if pulls else math.atan2(y, -z)
        m.wish.load_g = AWAY_G if pulls else STRONGEST_PUSH_G


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
