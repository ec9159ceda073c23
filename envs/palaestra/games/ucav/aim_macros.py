"""Aim commands: where the nose is to point relative to the other aircraft, and how fast to fly.

A pilot chooses five times a second; the law with which the scripts point (`palaestra.games.ucav.aiming.point`) flies
ten times a second, after the scripts' own safety (`palaestra.games.ucav.pilots`) has kept the aircraft off the ground,
off the other aircraft and inside the arena. All zeros is pure pursuit at corner speed. Close to the nose and in gun
range the offsets shrink, so that a learner's noise does not spoil the aim that the law holds.
"""

from __future__ import annotations

import math

from palaestra.game import Continuous
from palaestra.games.ucav.aiming import AIM_GAIN, LIFT, MACRO, point, wish_aim
from palaestra.games.ucav.autopilot import GAINS, hold_speed
from palaestra.games.ucav.body import PERIOD_S, opponent_of
from palaestra.games.ucav.geometry import (
    GRAVITY_MPS2,
    SLOWEST_MPS,
    antenna_train_angle_rad,
    distance_m,
    line_of_sight_rate,
    rotate_to_body,
    rotate_to_earth,
)
from palaestra.games.ucav.macros import SPEED_HIGH_MPS, SPEED_LOW_MPS
from palaestra.games.ucav.pilots import (
    BREAK_OFF_S,
    CORNER_SPEED_MPS,
    EXPERT,
    avoid_collision,
    avoid_ground,
    decide,
    stay_inside,
)
from palaestra.kernels.angles import wrap_angle_rad
from palaestra.kernels.scalars import clip

AIM_PERIODS = 2
"""Periods between two decisions: 5 Hz."""
LEAD_SPAN_S, SIDE_SPAN_RAD, UP_SPAN_RAD = 2.0, math.pi, 0.5 * math.pi
"""What 1 stands for."""
FREE_RAD, NEAR_RAD, FAR_M, NEAR_M, LEAST = 0.35, 0.1, 1500.0, 900.0, 0.02
"""Offsets act in full beyond this angle off the nose or range, and by `LEAST` inside the second ones."""
TURNED_RAD = 0.35
"""Offset, rad, from which on the nose no longer turns with the line of sight."""
STEEPEST_BANK_RAD = math.radians(80.0)
"""Bank, rad, of the steepest level turn that a script asks for."""

AIM = (
    Continuous("lead", unit="2 s", about="aim where the other will be, or was (negative); no effect below 900 m"),
    Continuous("side", unit="180 deg", about="aim to the right of that: the cube of the number"),
    Continuous("up", unit="90 deg", about="aim above that: the cube of the number"),
    Continuous(
        "speed",
        about=f"true airspeed to hold: -1 is {SPEED_LOW_MPS:.0f}, 0 {CORNER_SPEED_MPS:.0f}, 1 {SPEED_HIGH_MPS:.0f} m/s",
    ),
)


def fly_aim(s, slot, other):
    """Points an aircraft as its last action says, for one period. Writes the four commands of its record.

    Args:
        s: Match record; `remember_aim` has noted the action.
        slot: Of the aircraft.
        other: Slot of the aircraft that it aims at.
    """
    wish_as_aimed(s, slot, other)
    fly_as_wished(s, slot)


def remember_aim(s, slot, action):
    """Notes the action, a record of `AIM`: it is flown until the next one, and the next observation shows it."""
    s.last_action[slot, 0] = action.lead
    s.last_action[slot, 1] = action.side
    s.last_action[slot, 2] = action.up
    s.last_action[slot, 3] = action.speed


def wish_as_aimed(s, slot, other):
    """Writes the wish that the last action stands for, and what safety makes of it."""
    m, me, target = s.aims[slot], s.body[slot], s.body[other]
    action = s.last_action[slot]  # lead, side, up, speed
    free = freedom(me, target)
    heading, elevation = direction_to(me, target, LEAD_SPAN_S * action[0])
    side, up = SIDE_SPAN_RAD * free * cube(action[1]), UP_SPAN_RAD * free * cube(action[2])
    heading, elevation = heading + side, clip(elevation + up, -UP_SPAN_RAD, UP_SPAN_RAD)
    level = math.cos(elevation)
    x, y, z = rotate_to_body(me, level * math.cos(heading), level * math.sin(heading), -math.sin(elevation))
    keep = clip(1.0 - (abs(side) + abs(up)) / TURNED_RAD, 0.0, 1.0)
    rate_x, rate_y, rate_z = line_of_sight_rate(me, target)
    wish_aim(m.wish, x, y, z, keep * rate_x, keep * rate_y, keep * rate_z, read_speed_mps(action[3]))
    stay_inside(m, me, s.parameters.arena_radius_m)
    avoid_collision(m, me, target, BREAK_OFF_S[EXPERT])
    avoid_ground(m, me, s.parameters.floor_m)


def fly_as_wished(s, slot):
    """Puts the nose where the wish has it."""
    wish = s.aims[slot].wish
    point(s.body[slot], wish)
    hold_speed(GAINS, s.body[slot], s.autopilots[slot], wish.speed_mps)


def freedom(me, target):
    """By how much the offsets act: 1 far from the nose or out of gun range, `LEAST` on the nose."""
    turned = (antenna_train_angle_rad(me, target) - NEAR_RAD) / (FREE_RAD - NEAR_RAD)
    return clip(max(turned, (distance_m(me, target) - NEAR_M) / (FAR_M - NEAR_M)), LEAST, 1.0)


def direction_to(me, target, lead_s):
    """Heading and elevation, rad, of where the other will be in a time; of where it is within gun range."""
    far = lead_s * clip((distance_m(me, target) - NEAR_M) / NEAR_M, 0.0, 1.0)
    north = target.north_m - me.north_m + far * target.velocity_north_mps
    east = target.east_m - me.east_m + far * target.velocity_east_mps
    up = target.altitude_m - me.altitude_m - far * target.velocity_down_mps
    return math.atan2(east, north), math.atan2(up, math.sqrt(north * north + east * east))


def read_speed_mps(share):
    """True airspeed that a number from -1 to 1 stands for."""
    end = SPEED_HIGH_MPS if share > 0.0 else SPEED_LOW_MPS
    return CORNER_SPEED_MPS + abs(share) * (end - CORNER_SPEED_MPS)


def write_speed(speed_mps):
    """The inverse of `read_speed_mps`, clipped."""
    above = speed_mps - CORNER_SPEED_MPS
    span = SPEED_HIGH_MPS - CORNER_SPEED_MPS if above > 0.0 else CORNER_SPEED_MPS - SPEED_LOW_MPS
    return clip(above / span, -1.0, 1.0)


# --------------------------------------------------------------------------------------------------------- scripts


def script_aim(s, world, slot, which, actions, scratch):
    """Decides and says where the nose is to point, five times a second."""
    decide_aim(s, slot, which, actions.pilot[slot], scratch)


def decide_aim(s, slot, which, action, scratch):
    """Writes the action of a script for the next two periods."""
    other = opponent_of(slot)
    decide(s, slot, other, which, AIM_PERIODS * PERIOD_S, scratch)
    write_aim(s.pilots[slot].wish, s.body[slot], s.body[other], action)


def write_aim(wish, me, target, action):
    """Encodes the wish of a script: lead is left to the direction."""
    x, y, z = aim_of(wish, me)
    north, east, down = rotate_to_earth(me, x, y, z)
    heading, elevation = direction_to(me, target, 0.0)
    free = freedom(me, target)
    action.lead = 0.0
    action.side = cube_root(wrap_angle_rad(math.atan2(east, north) - heading) / (SIDE_SPAN_RAD * free))
    action.up = cube_root((math.asin(clip(-down, -1.0, 1.0)) - elevation) / (UP_SPAN_RAD * free))
    action.speed = write_speed(wish.speed_mps)


def aim_of(wish, me):
    """Unit vector in body axes at which the nose points, or turns towards as a lift or a macro asks."""
    if wish.kind != MACRO and wish.kind != LIFT:
        return wish.aim[0], wish.aim[1], wish.aim[2]
    g_per_radps = max(me.true_airspeed_mps, SLOWEST_MPS) / GRAVITY_MPS2
    if wish.kind == MACRO:
        bank = clip(wish.roll_rad, -STEEPEST_BANK_RAD, STEEPEST_BANK_RAD)
        heading = me.heading_rad + math.tan(bank) / (g_per_radps * AIM_GAIN)
        elevation = clip(me.pitch_rad + wish.flight_path_rad - me.flight_path_angle_rad, -UP_SPAN_RAD, UP_SPAN_RAD)
        level = math.cos(elevation)
        return rotate_to_body(me, level * math.cos(heading), level * math.sin(heading), -math.sin(elevation))
    right = wish.load_g * math.sin(wish.roll_error_rad) + math.sin(me.roll_rad) * math.cos(me.pitch_rad)
    up = wish.load_g * math.cos(wish.roll_error_rad) - math.cos(me.roll_rad) * math.cos(me.pitch_rad)
    size = max(math.sqrt(right * right + up * up), 1e-9)
    off = min(size / (g_per_radps * AIM_GAIN), math.pi)
    return math.cos(off), math.sin(off) * right / size, -math.sin(off) * up / size


def cube(x):
    """The third power, the same in machine code and in Python."""
    return x * x * x


def cube_root(x):
    """The number whose cube this is, clipped to [-1, 1]."""
    return math.copysign(min(abs(x), 1.0) ** (1.0 / 3.0), x)
