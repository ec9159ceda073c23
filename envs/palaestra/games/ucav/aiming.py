"""Laws that put an aircraft's nose, or its lift, where a pilot wants it: kernel functions for ten calls a second.

A wish (`WISH`) is one of three: a macro, which `palaestra.games.ucav.autopilot.steer` flies; an *aim*, a direction in
body axes that turns at a known rate and on which the nose is to be put and kept; or a *lift*, a direction out of the
canopy and a load factor. `point` flies the last two with stick alone; `flight_path_for_load_factor` turns them into a
macro.
"""

from __future__ import annotations

import math

import numpy as np

from palaestra.games.ucav.autopilot import FLATTEST_COSINE, GAINS, STEEPEST_TURN_G
from palaestra.games.ucav.geometry import (
    GRAVITY_MPS2,
    SLOWEST_MPS,
    off_axis_angle_rad,
    rotate_to_body,
)
from palaestra.games.ucav.macros import MACRO_S
from palaestra.kernels.scalars import clip
from palaestra.kernels.vectors import norm

MACRO, AIM, LIFT = 0, 1, 2
"""Values of ``wish.kind``."""

WISH = np.dtype(
    [
        ("kind", "u1"),
        ("roll_rad", "f8"),
        ("flight_path_rad", "f8"),
        ("speed_mps", "f8"),
        ("aim", "f8", (3,)),  # body axes, a unit vector
        ("aim_rate", "f8", (3,)),  # its inertial rotation in body axes, rad/s
        ("roll_error_rad", "f8"),  # of the lift
        ("load_g", "f8"),
        ("spared_g", "f8"),  # what the pilot leaves of the strongest pull
        ("trim", "f8"),  # memory of `point`: integral of the pitch-rate error, stick
        ("ease", "f8"),  # memory of `point`: how far the stick is kept from where it would overload the airframe
    ],
    align=True,
)

STRONGEST_PULL_G, STRONGEST_PUSH_G = 8.4, -1.5
"""Load factors that are asked for, g: 9 g is the limit of the rules."""
LIMIT_LOAD_G, ALARM_LOAD_G = 8.2, 8.5
"""The stick is not pulled further than what should hold the first load factor and comes forward above the second, g."""

# The law of `point`, tuned on JSBSim's f16.
AIM_GAIN, MACRO_AIM_GAIN = 3.5, 0.7
"""Nose rate per aiming error with the stick and with macros, 1/s."""
FASTEST_NOSE_RADPS = 0.6
ROLL_GAIN = 1.25
"""Stick per radian of roll error; a full stick is 2.1 to 2.9 rad/s, from 200 to 350 m/s."""
PITCH_RATE_GAIN = 0.6
"""Stick per rad/s of pitch-rate error."""
TRIM_GAIN = 0.1
"""Stick per rad/s of pitch-rate error and call."""
PUSH_RAD = 0.3
"""Aiming error, rad, within which a target below the nose is reached by pushing and not by rolling over."""
EASE_GAIN = 0.025
"""Stick per g above `ALARM_LOAD_G` and call."""
SEA_LEVEL_DENSITY = 1.225
"""ICAO standard atmosphere, kg/m^3."""
EDGE_RAD = math.radians(10.0)
"""How far a macro's bank keeps off 90 degrees, rad."""


def wish_macro(wish, roll, flight_path, speed):
    """Wishes a roll angle, a flight-path angle (rad) and an airspeed (m/s)."""
    wish.kind = MACRO
    wish.roll_rad = roll
    wish.flight_path_rad = flight_path
    wish.speed_mps = speed


def wish_aim(wish, x, y, z, rate_x, rate_y, rate_z, speed):
    """Wishes the nose on a direction of any length that rotates at a rate (rad/s), both in body axes, and a speed."""
    length = max(norm(x, y, z), 1e-9)
    wish.kind = AIM
    wish.aim[0], wish.aim[1], wish.aim[2] = x / length, y / length, z / length
    wish.aim_rate[0], wish.aim_rate[1], wish.aim_rate[2] = rate_x, rate_y, rate_z
    wish.speed_mps = speed


def wish_aim_earth(wish, body, heading, elevation, speed):
    """Wishes the nose on a fixed direction of the Earth: heading and elevation, rad."""
    level = math.cos(elevation)
    x, y, z = rotate_to_body(body, level * math.cos(heading), level * math.sin(heading), -math.sin(elevation))
    wish_aim(wish, x, y, z, 0.0, 0.0, 0.0, speed)


def wish_lift(wish, body, north, east, down, load, speed):
    """Wishes the lift axis towards a direction of the Earth, as seen along the nose, and a load factor (g)."""
    _, y, z = rotate_to_body(body, north, east, down)
    wish.kind = LIFT
    wish.roll_error_rad = math.atan2(y, -z)
    wish.load_g = load
    wish.speed_mps = speed


def wish_turn(wish, body, angle, load, speed):
    """Wishes a lift that lies across the velocity at an angle (rad) to the right of upwards, a load and a speed."""
    n, e, d = body.velocity_north_mps, body.velocity_east_mps, body.velocity_down_mps
    length = max(norm(n, e, d), SLOWEST_MPS)
    n, e, d = n / length, e / length, d / length
    level = max(math.sqrt(n * n + e * e), 1e-3)
    up, right = math.cos(angle), math.sin(angle)
    north = up * d * n / level - right * e / level
    east = up * d * e / level + right * n / level
    wish_lift(wish, body, north, east, -up * level, load, speed)


def demand(body, wish, gain):
    """Roll error, rad, and load factor, g, that bring the nose onto the aim and keep it there.

    The nose has to turn with the aim's own rotation and by ``gain`` times the error. At airspeed V a nose that
    turns with (q, r) bends the path by (V r, V q) to the right and up; with gravity taken off, that is the force that
    the lift has to supply, so the lift axis is rolled into it. A small demand downwards is met by pushing.
    """
    strongest = STRONGEST_PULL_G - wish.spared_g
    if wish.kind == LIFT:
        return wish.roll_error_rad, min(wish.load_g, strongest) * max(math.cos(wish.roll_error_rad), 0.0)
    x, y, z = wish.aim[0], wish.aim[1], wish.aim[2]
    off = off_axis_angle_rad(x, y, z)
    side = max(math.sqrt(y * y + z * z), 1e-9)
    rate = min(gain * off, FASTEST_NOSE_RADPS)
    pitch_rate = wish.aim_rate[1] - z / side * rate
    yaw_rate = wish.aim_rate[2] + y / side * rate
    speed_per_g = max(body.true_airspeed_mps, SLOWEST_MPS) / GRAVITY_MPS2
    right = speed_per_g * yaw_rate - math.sin(body.roll_rad) * math.cos(body.pitch_rad)
    up = speed_per_g * pitch_rate + math.cos(body.roll_rad) * math.cos(body.pitch_rad)
    if STRONGEST_PUSH_G < up < 0.0 and off < PUSH_RAD:
        return 0.5 * clip(right, -1.0, 1.0), up
    error = math.atan2(right, up)
    if abs(error) > 2.6 and error * body.p_radps < -0.3:
        error = -error  # nearly upside down: go on rolling the way it rolls
    load = math.sqrt(right * right + up * up) * max(math.cos(error), 0.0)
    return error, min(load, strongest)


def point(body, wish):
    """Puts the nose on the aim with aileron and elevator.

    The stick is the sum of what holds the demanded load factor at this impact pressure, of the error of the pitch
    rate that belongs to it, q = (n - cos(roll) cos(pitch)) g / V, and of a trim that integrates that error while the
    roll is about right.
    """
    roll_error, load = demand(body, wish, AIM_GAIN)
    gravity = math.cos(body.roll_rad) * math.cos(body.pitch_rad)
    pitch_rate = (load - gravity) * GRAVITY_MPS2 / max(body.true_airspeed_mps, SLOWEST_MPS)
    error = pitch_rate - body.q_radps
    pressure_kpa = impact_pressure_kpa(body)
    strongest = full_stick_g(body, pressure_kpa)
    if abs(roll_error) < 0.5:
        wish.trim = clip(wish.trim + TRIM_GAIN * error, -0.2, 0.2)
    stick = stick_for(load / strongest) + PITCH_RATE_GAIN * min(28.0 / pressure_kpa, 1.0) * error + wish.trim
    body.aileron_command = clip(ROLL_GAIN * roll_error, -1.0, 1.0)
    excess = body.load_factor_g - ALARM_LOAD_G
    wish.ease = clip(wish.ease + EASE_GAIN * excess, 0.0, 0.4)
    furthest = stick_for(clip(LIMIT_LOAD_G / strongest, 0.0, 1.0)) - 2.0 * EASE_GAIN * max(excess, 0.0) - wish.ease
    body.elevator_command = clip(stick, -0.44, furthest)
    body.rudder_command = coordinating_rudder(body)


def coordinating_rudder(body):
    """Rudder against sideslip, with what the yaw rate of a coordinated turn needs, as `steer` has it."""
    turn_rate = (
        GRAVITY_MPS2 / max(body.true_airspeed_mps, SLOWEST_MPS) * math.sin(body.roll_rad) * math.cos(body.pitch_rad)
    )
    return clip(GAINS.sideslip * body.sideslip_rad + GAINS.turn_rate * turn_rate, -1.0, 1.0)


def impact_pressure_kpa(body):
    """rho_0 CAS^2 / 2, kPa: the dynamic pressure at sea level of the calibrated airspeed."""
    speed = max(body.calibrated_airspeed_mps, SLOWEST_MPS)
    return 0.0005 * SEA_LEVEL_DENSITY * (speed * speed)


def full_stick_g(body, pressure_kpa):
    """Load factor that JSBSim's f16 settles at with the stick held fully back, g.

    Straight lines through 24 measured points, 0.5 to 7 km, 150 to 400 m/s; 0.5 g off the corrected airframe (root mean
    square), 0.6 g off the one as installed. The flap schedule makes the step at Mach 0.9.
    """
    if body.mach < 0.9:
        return min(1.7 + 0.19 * pressure_kpa, 9.7)
    return 0.178 * pressure_kpa if body.mach < 1.0 else 3.0 + 0.092 * pressure_kpa


def stick_for(share):
    """Stick that holds this share of the load factor of a stick fully back (1). Measured like `full_stick_g`."""
    return 0.55 * share + 0.45 * share * share if share > 0.0 else 0.55 * share


def flight_path_for_load_factor(body, roll, load):
    """Flight-path command, rad, at which `palaestra.games.ucav.autopilot` holds a load factor at a bank for one macro.

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


def off_the_edge(roll):
    """The nearest roll angle in [-pi, pi] that is at least `EDGE_RAD` from 90 degrees on either side."""
    beyond = abs(roll) - 0.5 * math.pi
    if abs(beyond) >= EDGE_RAD:
        return roll
    return math.copysign(0.5 * math.pi + math.copysign(EDGE_RAD, beyond), roll)
