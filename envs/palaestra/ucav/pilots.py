"""Scripted pilots: from flying straight to basic fighter manoeuvres by rule.

Every pilot decides in the same three layers. A *tactic* writes a wish into its memory: either a macro (roll, flight
path, speed) or an *aim*, a direction in body axes on which the nose is to be put and kept. *Safety* then overrules
it: nobody flies into the ground or out of the arena. At last the wish is *flown*: with the stick, macros by
`palaestra.ucav.autopilot.steer` and aims by `point`; where the rules take macros, an aim becomes the bank and the
flight path whose turn comes nearest to it.

=================  =====================================================================================================
straight           holds its course, level
level_turn         turns level at one bank angle, to one side, for ever
weave              turns level to one side and the other
pure_pursuit       puts its nose on the other, at full speed
lead_pursuit       aims ahead of the other until it is at gun range, with closure under control
lag_pursuit        aims behind it until it is at gun range, with closure under control
expert             fights: see `expert`
=================  =====================================================================================================
"""

from __future__ import annotations

import math

import numpy as np

from palaestra.core.rng import script_uniform
from palaestra.ucav.autopilot import FLATTEST_COSINE, GAINS, STEEPEST_TURN_G, hold_speed, steer
from palaestra.ucav.geometry import (
    GRAVITY_MPS2,
    aspect_angle_rad,
    clip,
    norm,
    off_axis_angle_rad,
    relative_position,
    relative_velocity,
    rotate_to_body,
    wrap_angle_rad,
)

SCRIPTS = ("straight", "level_turn", "weave", "pure_pursuit", "lead_pursuit", "lag_pursuit", "expert")
STRAIGHT, LEVEL_TURN, WEAVE, PURE, LEAD, LAG, EXPERT = range(7)

MEMORY = np.dtype(
    [
        # the wish
        ("aims", "u1"),  # 1: an aim, 0: a macro
        ("roll_rad", "f8"),
        ("flight_path_rad", "f8"),
        ("speed_mps", "f8"),
        ("aim", "f8", (3,)),  # unit vector, body axes
        ("aim_rate", "f8", (3,)),  # its inertial rotation, body axes, rad/s
        # what lasts
        ("course_rad", "f8"),
        ("side", "f8"),  # -1 left, 1 right
        ("bank_rad", "f8"),
        ("cruise_mps", "f8"),
        ("phase_s", "f8"),
        ("half_period_s", "f8"),
        ("trim", "f8"),  # integral of the pitch law, stick
        ("ease", "f8"),  # how far the stick is kept from where it would overload the airframe
        ("saved", "u1"),  # 1 while ground avoidance flies
        ("escaping", "u1"),  # 1 while the way back into the arena is flown
        ("guard_s", "f8"),  # time left of a guns defence
    ],
    align=True,
)

STICK_S, MACRO_S = 0.1, 0.5
"""Time between two decisions with the stick and with macros, s."""

# What the aircraft can do, and margins against the rules.
STRONGEST_PULL_G, STRONGEST_PUSH_G = 8.4, -1.5
"""Load factors that a pilot asks for, g: 9 g is the limit of the rules."""
LIMIT_LOAD_G, ALARM_LOAD_G = 8.2, 8.5
"""Load factors, g: the stick is not pulled further than what should hold the first, and comes forward above the
second."""
CORNER_SPEED_MPS = 250.0
"""About where the F-16 of JSBSim turns fastest at 4 km: 7 g at full stick (measured), m/s."""
FULL_SPEED_MPS = 400.0

MACRO_LOAD_G, MACRO_SPEED_MPS, EDGE_RAD = 6.5, 320.0, math.radians(10.0)
"""What a pilot asks an inner loop for: largest load factor and speed, smallest distance of the bank from 90 deg."""

# The law of `point`, tuned on JSBSim's f16 at 10 Hz.
AIM_GAIN, MACRO_AIM_GAIN = 1.7, 0.7
"""Nose rate per aiming error with the stick and with macros, 1/s."""
FASTEST_NOSE_RADPS = 0.6
ROLL_GAIN = 1.25
"""Stick per radian of roll error; a full stick is about 3 rad/s."""
PITCH_RATE_GAIN = 0.6
"""Stick per rad/s of pitch-rate error."""
TRIM_GAIN = 0.1
"""Stick per rad of integrated pitch-rate error, per decision."""
PUSH_RAD = 0.3
"""Aiming error, rad, within which a target below the nose is reached by pushing and not by rolling over."""
EASE_GAIN = 0.025
"""Stick per g and decision above `ALARM_LOAD_G`."""
SLOWEST_MPS = 60.0
SEA_LEVEL_DENSITY = 1.225
"""ICAO standard atmosphere, kg/m^3."""


GOVERNED_RANGE_M, GOVERNOR_GAIN = 400.0, 0.08
"""Range behind the other, m, that the closure governor keeps, and its speed per range, 1/s."""
BEHIND_RAD = math.radians(70.0)
"""Aspect angle, rad, within which ego is behind the other."""
EXPERT_LEAD_S, EXPERT_LAG_S = 1.0, 0.5
"""How far the expert aims ahead of the other when behind it, and behind it otherwise, s."""
FAR_M, TRANSIT_SPEED_MPS = 2500.0, 300.0
"""Range beyond which the expert makes way, m, and the speed for it, m/s."""
CLIMB_OUT_RAD = math.radians(15.0)
"""Elevation, rad, to which a pilot pulls out of a dive."""
GROUND_MARGIN_M = 200.0
"""Height, m, that stays under a pull-out."""
EDGE_SECONDS, SIDEWAYS_RAD, BACKWARD_RAD = 8.0, math.radians(70.0), math.radians(150.0)
"""How far ahead a pilot looks for the edge of the arena, s; how far to a side it then aims; what is behind it, rad."""


# ------------------------------------------------------------------------------------------------------------ hooks


def script_stick(s, world, slot, which, actions, scratch):
    """Decides and flies with the stick, ten times a second."""
    decide(s, slot, which, STICK_S)
    m, body, action = s.pilots[slot], s.body[slot], actions.pilot[slot]
    if m.aims:
        point(body, m)
        hold_speed(GAINS, body, s.autopilots[slot], m.speed_mps)
    else:
        steer(body, s.autopilots[slot], m.roll_rad, m.flight_path_rad, m.speed_mps)
    action.aileron = clip(body.aileron_command, -1.0, 1.0)
    action.elevator = clip(body.elevator_command, -1.0, 1.0)
    action.rudder = clip(body.rudder_command, -1.0, 1.0)
    action.throttle = clip(2.0 * body.throttle_command - 1.0, -1.0, 1.0)


def script_macro(s, world, slot, which, actions, scratch):
    """Decides and asks the inner loop for it, twice a second.

    At 90 degrees of bank an inner loop cannot pull, since no load factor holds the path there, so the bank keeps off
    it; load and speed keep a margin for the half second in which nobody corrects.
    """
    decide(s, slot, which, MACRO_S)
    m, body, action = s.pilots[slot], s.body[slot], actions.pilot[slot]
    roll, flight_path, speed = m.roll_rad, m.flight_path_rad, m.speed_mps
    if m.saved:
        roll, flight_path = 0.0, CLIMB_OUT_RAD
    elif m.aims:
        roll_error, load = demand(body, m, MACRO_AIM_GAIN)
        roll = off_the_edge(wrap_angle_rad(body.roll_rad + roll_error))
        flight_path = flight_path_for_load_factor(body, roll, min(load, MACRO_LOAD_G))
        speed = min(speed, MACRO_SPEED_MPS)
    action.roll = clip(wrap_angle_rad(roll) / math.pi, -1.0, 1.0)
    action.flight_path = clip(flight_path / math.radians(60.0), -1.0, 1.0)
    action.speed = clip((speed - 120.0) / 140.0 - 1.0, -1.0, 1.0)


def off_the_edge(roll):
    """The nearest roll angle in [-pi, pi] that is at least `EDGE_RAD` from 90 degrees on either side."""
    beyond = abs(roll) - 0.5 * math.pi
    if abs(beyond) >= EDGE_RAD:
        return roll
    return math.copysign(0.5 * math.pi + math.copysign(EDGE_RAD, beyond), roll)


# ----------------------------------------------------------------------------------------------------------- flying


def demand(body, m, gain):
    """Roll error, rad, and load factor, g, that bring the nose onto the aim and keep it there.

    The nose has to turn with the aim's own rotation and by ``gain`` times the error. At airspeed V a nose that
    turns with (q, r) bends the path by (V r, V q) to the right and up; with gravity taken off, that is the force that
    the lift has to supply, so the lift axis is rolled into it. A small demand downwards is met by pushing.
    """
    x, y, z = m.aim[0], m.aim[1], m.aim[2]
    off = off_axis_angle_rad(x, y, z)
    side = max(math.sqrt(y * y + z * z), 1e-9)
    rate = min(gain * off, FASTEST_NOSE_RADPS)
    pitch_rate = m.aim_rate[1] - z / side * rate
    yaw_rate = m.aim_rate[2] + y / side * rate
    speed_per_g = max(body.true_airspeed_mps, SLOWEST_MPS) / GRAVITY_MPS2
    right = speed_per_g * yaw_rate - math.sin(body.roll_rad) * math.cos(body.pitch_rad)
    up = speed_per_g * pitch_rate + math.cos(body.roll_rad) * math.cos(body.pitch_rad)
    if STRONGEST_PUSH_G < up < 0.0 and off < PUSH_RAD:
        return 0.5 * clip(right, -1.0, 1.0), up
    error = math.atan2(right, up)
    if abs(error) > 2.6 and error * body.p_radps < -0.3:
        error = -error  # nearly upside down: go on rolling the way it rolls
    load = math.sqrt(right * right + up * up) * max(math.cos(error), 0.0)
    return error, min(load, STRONGEST_PULL_G)


def point(body, m):
    """Puts the nose on the aim with aileron and elevator.

    The stick is the sum of what holds the demanded load factor at this impact pressure, of the error of the pitch
    rate that belongs to it, q = (n - cos(roll) cos(pitch)) g / V, and of a trim that integrates that error while the
    roll is about right.
    """
    roll_error, load = demand(body, m, AIM_GAIN)
    gravity = math.cos(body.roll_rad) * math.cos(body.pitch_rad)
    pitch_rate = (load - gravity) * GRAVITY_MPS2 / max(body.true_airspeed_mps, SLOWEST_MPS)
    error = pitch_rate - body.q_radps
    pressure_kpa = impact_pressure_kpa(body)
    strongest = full_stick_g(body, pressure_kpa)
    if abs(roll_error) < 0.5:
        m.trim = clip(m.trim + TRIM_GAIN * error, -0.2, 0.2)
    stick = stick_for(load / strongest) + PITCH_RATE_GAIN * min(28.0 / pressure_kpa, 1.0) * error + m.trim
    body.aileron_command = clip(ROLL_GAIN * roll_error, -1.0, 1.0)
    excess = body.load_factor_g - ALARM_LOAD_G
    m.ease = clip(m.ease + EASE_GAIN * excess, 0.0, 0.4)
    furthest = stick_for(clip(LIMIT_LOAD_G / strongest, 0.0, 1.0)) - 2.0 * EASE_GAIN * max(excess, 0.0) - m.ease
    body.elevator_command = clip(stick, -0.44, furthest)
    body.rudder_command = coordinating_rudder(body)


def coordinating_rudder(body):
    """Rudder against sideslip, with what the yaw rate of a coordinated turn needs, as `steer` has it."""
    turn_rate = (
        GRAVITY_MPS2 / max(body.true_airspeed_mps, SLOWEST_MPS) * math.sin(body.roll_rad) * math.cos(body.pitch_rad)
    )
    return clip(GAINS.sideslip * body.sideslip_rad + GAINS.turn_rate * turn_rate, -1.0, 1.0)


def impact_pressure_kpa(body):
    """rho_0 CAS^2 / 2, kPa: the dynamic pressure at sea level that the calibrated airspeed stands for."""
    return 0.0005 * SEA_LEVEL_DENSITY * max(body.calibrated_airspeed_mps * body.calibrated_airspeed_mps, 3600.0)


def full_stick_g(body, pressure_kpa):
    """Load factor that JSBSim's f16 settles at with the stick held fully back, g.

    Straight lines through 24 measured points, 0.5 to 7 km, 150 to 400 m/s; the flap schedule makes the step at Mach
    0.9.
    """
    if body.mach < 0.9:
        return min(1.7 + 0.19 * pressure_kpa, 9.7)
    return 0.178 * pressure_kpa if body.mach < 1.0 else 3.0 + 0.092 * pressure_kpa


def stick_for(share):
    """Stick that holds this share of the load factor of a stick fully back (1). Measured like `full_stick_g`."""
    return 0.55 * share + 0.45 * share * share if share > 0.0 else 0.55 * share


def flight_path_for_load_factor(body, roll, load):
    """Flight-path command, rad, at which `palaestra.ucav.autopilot` holds a load factor at a bank for one macro.

    Its law turned round: the path must stay ahead by what the law multiplies, by what it predicts, and by the turn
    until the middle of the macro.
    """
    upright = math.cos(roll)
    share = upright if abs(upright) >= FLATTEST_COSINE else FLATTEST_COSINE * FLATTEST_COSINE / away_from_zero(upright)
    g_per_radps = max(body.true_airspeed_mps, SLOWEST_MPS) / GRAVITY_MPS2
    turn_g = clip(load * share - math.cos(body.flight_path_angle_rad), -STEEPEST_TURN_G, STEEPEST_TURN_G)
    ahead_s = 1.0 / GAINS.flight_path + GAINS.flight_path_lead + 0.5 * MACRO_S
    return body.flight_path_angle_rad + ahead_s * turn_g / g_per_radps


def away_from_zero(value):
    """The value, kept at least 0.02 from zero on its own side."""
    return max(value, 0.02) if value >= 0.0 else min(value, -0.02)


# --------------------------------------------------------------------------------------------------------- tactics


def decide(s, slot, which, interval_s):
    """Writes the wish of one script: tactic first, safety last."""
    m, me, other = s.pilots[slot], s.body[slot], s.body[1 - slot]
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
        wish_macro(m, m.side * m.bank_rad, 0.0, m.cruise_mps)
    elif which == WEAVE:
        weave(m, me)
    elif which == PURE:
        pursue(m, me, other, 0.0, FULL_SPEED_MPS)
    elif which == LEAD:
        pursue(m, me, other, 1.0, governed_speed_mps(me, other))
    elif which == LAG:
        pursue(m, me, other, -1.0, governed_speed_mps(me, other))
    else:
        expert(m, me, other)
    stay_inside(m, me, s.parameters.arena_radius_m)
    avoid_ground(m, me, s.parameters.floor_m)


def wish_macro(m, roll, flight_path, speed):
    """Wishes a roll angle, a flight-path angle (rad) and an airspeed (m/s)."""
    m.aims = 0
    m.roll_rad = roll
    m.flight_path_rad = flight_path
    m.speed_mps = speed


def wish_aim(m, x, y, z, rate_x, rate_y, rate_z, speed):
    """Wishes the nose on a direction of any length that rotates at a rate (rad/s), both in body axes, and a speed."""
    length = max(norm(x, y, z), 1e-9)
    m.aims = 1
    m.aim[0], m.aim[1], m.aim[2] = x / length, y / length, z / length
    m.aim_rate[0], m.aim_rate[1], m.aim_rate[2] = rate_x, rate_y, rate_z
    m.speed_mps = speed


def wish_aim_earth(m, me, heading, elevation, speed):
    """Wishes the nose on a fixed direction of the Earth: heading and elevation, rad."""
    level = math.cos(elevation)
    x, y, z = rotate_to_body(me, level * math.cos(heading), level * math.sin(heading), -math.sin(elevation))
    wish_aim(m, x, y, z, 0.0, 0.0, 0.0, speed)


def hold_course(m, me):
    """Level on the course."""
    wish_macro(m, clip(2.0 * wrap_angle_rad(m.course_rad - me.heading_rad), -1.0, 1.0), 0.0, m.cruise_mps)


def weave(m, me):
    """Level turns to one side and the other, `half_period_s` each."""
    if m.phase_s > m.half_period_s:
        m.phase_s -= m.half_period_s
        m.side = -m.side
    wish_macro(m, m.side * m.bank_rad, 0.0, m.cruise_mps)


def governed_speed_mps(me, other):
    """Airspeed that brings ego into the middle of the gun's range behind the other and keeps it there."""
    distance = norm(*relative_position(me, other))
    if aspect_angle_rad(me, other) > BEHIND_RAD:
        return CORNER_SPEED_MPS
    return other.true_airspeed_mps + clip(GOVERNOR_GAIN * (distance - GOVERNED_RANGE_M), -60.0, 100.0)


def pursue(m, me, other, lead_s, speed):
    """Aims where the other will be in ``lead_s`` seconds (has been, if negative); at gun range at the other itself."""
    x, y, z = relative_position(me, other)
    vx, vy, vz = rotate_to_body(me, other.velocity_north_mps, other.velocity_east_mps, other.velocity_down_mps)
    far = clip((norm(x, y, z) - 900.0) / 900.0, 0.0, 1.0)
    x, y, z = x + lead_s * far * vx, y + lead_s * far * vy, z + lead_s * far * vz
    ux, uy, uz = relative_velocity(me, other)
    square = max(x * x + y * y + z * z, 1.0)
    wish_aim(m, x, y, z, (y * uz - z * uy) / square, (z * ux - x * uz) / square, (x * uy - y * ux) / square, speed)


def expert(m, me, other):
    """Basic fighter manoeuvres by rule.

    Offensive, that is behind the other: lead pursuit with the closure under control, and at gun range the nose stays
    on it. Otherwise, neutral or defensive: the hardest turn, at corner speed, towards where the other has been, which
    leads behind it. Far away, speed first.
    """
    distance = norm(*relative_position(me, other))
    if aspect_angle_rad(me, other) < BEHIND_RAD:
        pursue(m, me, other, EXPERT_LEAD_S, governed_speed_mps(me, other))
        return
    pursue(m, me, other, -EXPERT_LAG_S, CORNER_SPEED_MPS if distance < FAR_M else TRANSIT_SPEED_MPS)


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
        wish_aim_earth(m, me, me.heading_rad + clip(error, -SIDEWAYS_RAD, SIDEWAYS_RAD), 0.0, CORNER_SPEED_MPS)


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
        wish_aim_earth(m, me, math.atan2(me.velocity_east_mps, me.velocity_north_mps), CLIMB_OUT_RAD, CORNER_SPEED_MPS)
