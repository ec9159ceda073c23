"""What a pilot sees: the table of the observation of two-sided games, and the kernels that fill it."""

from __future__ import annotations

import math

from palaestra.game import Continuous, Field
from palaestra.games.ucav.body import opponent_of
from palaestra.games.ucav.geometry import (
    CLOSEST_M,
    aspect_angle_rad,
    closure_mps,
    distance_m,
    energy_height_m,
    line_of_sight_rate,
    off_axis_angle_rad,
    relative_position,
    relative_velocity,
    rotate_to_body,
    rotate_to_earth,
)
from palaestra.games.ucav.limits import SUSTAINED_LOAD_S
from palaestra.games.ucav.weapons import GUN_FAR_M, cone_half_angle_rad
from palaestra.kernels.scalars import clip
from palaestra.kernels.vectors import norm

ALTITUDE_UNIT_M, RANGE_UNIT_M, NEAR_UNIT_M = 5000.0, 10_000.0, 1000.0
SPEED_UNIT_MPS = 340.0
"""Scales: the value of 1, m and m/s."""
FUEL_UNIT_KG = 1361.0
"""Two tanks of 1500 lb, as JSBSim's f16 is loaded, kg."""
FINE_SIGHT_RAD = math.radians(10.0)
"""Full scale of the two fine aiming errors, rad."""
LOAD_UNIT_G = 9.0
"""Scale of the load factor, g."""

BODY_AXES = ("forward", "right", "down")
ALTITUDE = Field("altitude", (), 0.0, 6.0, "5 km", "height above sea level")
MOTION = (
    Field("roll", (2,), -1.0, 1.0, "1", "sine and cosine of the roll angle", parts=("sine", "cosine")),
    Field("pitch", (2,), -1.0, 1.0, "1", "sine and cosine of the pitch angle", parts=("sine", "cosine")),
    Field(
        "velocity",
        (3,),
        -5.0,
        5.0,
        "340 m/s",
        "velocity through the air in body axes: forward, right, down",
        parts=BODY_AXES,
    ),
    Field("airspeed", (), 0.0, 5.0, "340 m/s", "true airspeed"),
    Field("climb_rate", (), -5.0, 5.0, "340 m/s", "vertical speed, positive up"),
    Field("rates", (3,), -10.0, 10.0, "rad/s", "roll, pitch and yaw rate in body axes", parts=("roll", "pitch", "yaw")),
    Field("angle_of_attack", (), -1.6, 1.6, "rad", "angle of attack"),
    Field("sideslip", (), -1.6, 1.6, "rad", "sideslip angle"),
    Field("load_factor", (), -3.0, 3.0, "9 g", "load factor, 1/9 in level flight"),
)
MACH = Field("mach", (), 0.0, 5.0, "1", "Mach number")
SUPPLY = (
    Field("engine", (), 0.0, 2.0, "1", "speed of the high-pressure spool"),
    Field("fuel", (), 0.0, 5.0, "1361 kg", "fuel left; 1 is JSBSim's standard load"),
)
"""What pilots of all tasks see of their own flight, as `write_ego` writes it."""


PLACE = (
    Field("relative_position", (3,), -5.0, 5.0, "10 km", "position of the other in body axes", parts=BODY_AXES),
    Field(
        "relative_velocity",
        (3,),
        -5.0,
        5.0,
        "340 m/s",
        "velocity of the other minus own, in body axes",
        parts=BODY_AXES,
    ),
    Field("range", (), 0.0, 5.0, "10 km", "distance"),
)
"""What `write_place` writes."""
NOSE = Field("other_nose", (3,), -1.0, 1.0, "1", "unit vector of the other's nose in own body axes", parts=BODY_AXES)
OTHER_HEALTH = Field("other_health", (), 0.0, 1.0, "1", "its health")
OTHER = (
    Field("direction", (3,), -1.0, 1.0, "1", "unit vector to the other in body axes", parts=BODY_AXES),
    *PLACE,
    Field("gun_range", (), 0.0, 5.0, "914 m", "distance in units of the gun's reach"),
    Field("closure", (), -5.0, 5.0, "340 m/s", "speed at which the distance shrinks"),
    Field("train_angle", (), 0.0, 3.15, "rad", "angle of the other off the nose"),
    Field("aspect_angle", (), 0.0, 3.15, "rad", "angle off the other's tail: 0 is right behind it"),
    Field(
        "aim_error",
        (2,),
        -1.0,
        1.0,
        "10 deg",
        "fine sight: how far right of and above the nose the other is",
        parts=("right", "above"),
    ),
    Field(
        "sight_rate",
        (3,),
        -2.0,
        2.0,
        "rad/s",
        "inertial rotation of the line of sight in body axes",
        parts=("roll", "pitch", "yaw"),
    ),
    NOSE,
    Field(
        "other_lift", (3,), -1.0, 1.0, "1", "unit vector out of the other's canopy in own body axes", parts=BODY_AXES
    ),
    Field("other_airspeed", (), 0.0, 5.0, "340 m/s", "its true airspeed"),
    Field("altitude_difference", (), -5.0, 5.0, "1 km", "its height minus own"),
    Field("energy_difference", (), -10.0, 10.0, "1 km", "its energy height minus own"),
    OTHER_HEALTH,
    Field("in_my_gun", (), 0.0, 1.0, "1", "1 while the own gun hits"),
    Field("in_its_gun", (), 0.0, 1.0, "1", "1 while the other's gun hits"),
)
"""What a pilot sees of an opponent: as `write_other` writes it, and its health and the guns."""
SITUATION = (
    Field("cone_half_angle", (), 0.0, 3.15, "rad", "half-angle of the cone now"),
    Field("time_left", (), 0.0, 1.0, "1", "share of the match that is left"),
    Field(
        "centre",
        (2,),
        -1,
        1,
        "1",
        "cosine and sine of the bearing of the arena's centre, clockwise from the nose",
        parts=("cosine", "sine"),
    ),
    Field("centre_distance", (), 0.0, 5.0, "1", "distance of the arena's centre in arena radii"),
)
"""What a pilot sees of the match."""


def own_table(action: tuple[Continuous, ...]) -> tuple[Field, ...]:
    """What a pilot sees of the own aircraft; the last action has as many numbers as the action."""
    return (
        ALTITUDE,
        Field("height_over_floor", (), -1.0, 5.0, "1 km", "height above the floor of the arena"),
        *MOTION,
        Field("overload", (), 0.0, 1.0, "0.5 s", "time spent above 9 g: the airframe breaks at 1"),
        MACH,
        *SUPPLY,
        Field("health", (), 0.0, 1.0, "1", "own health"),
        Field("last_action", (len(action),), -1.0, 1.0, "1", "own last action", parts=tuple(a.name for a in action)),
    )


def observation_table(action: tuple[Continuous, ...]) -> tuple[Field, ...]:
    """What a pilot sees in a fight of two."""
    return (*own_table(action), *OTHER, *SITUATION)


def write_fight(s, slot, o):
    """Shows a pilot of a fight of two what `observation_table` has, from its own cockpit."""
    p, opponent = s.parameters, opponent_of(slot)
    ego, other = s.body[slot], s.body[opponent]
    write_ego(o, ego)
    write_other(o, ego, other)
    o.height_over_floor = clip((ego.altitude_m - p.floor_m) / NEAR_UNIT_M, -1.0, 5.0)
    o.overload = clip(s.overload_s[slot] / SUSTAINED_LOAD_S, 0.0, 1.0)
    o.health = clip(s.health[slot], 0.0, 1.0)
    o.other_health = clip(s.health[opponent], 0.0, 1.0)
    o.gun_range = clip(distance_m(ego, other) / GUN_FAR_M, 0.0, 5.0)
    o.in_my_gun = s.in_gun[slot]
    o.in_its_gun = s.in_gun[opponent]
    o.cone_half_angle = cone_half_angle_rad(s)
    o.time_left = clip(1.0 - s.steps / p.horizon, 0.0, 1.0)
    write_centre(o, ego, p.arena_radius_m)
    for i in range(o.last_action.shape[0]):
        o.last_action[i] = clip(s.last_action[slot, i], -1.0, 1.0)


def write_ego(o, ego):
    """Writes what the pilot's own instruments show."""
    o.altitude = clip(ego.altitude_m / ALTITUDE_UNIT_M, 0.0, 6.0)
    o.roll[0], o.roll[1] = math.sin(ego.roll_rad), math.cos(ego.roll_rad)
    o.pitch[0], o.pitch[1] = math.sin(ego.pitch_rad), math.cos(ego.pitch_rad)
    o.velocity[0] = clip(ego.u_mps / SPEED_UNIT_MPS, -5.0, 5.0)
    o.velocity[1] = clip(ego.v_mps / SPEED_UNIT_MPS, -5.0, 5.0)
    o.velocity[2] = clip(ego.w_mps / SPEED_UNIT_MPS, -5.0, 5.0)
    o.airspeed = clip(ego.true_airspeed_mps / SPEED_UNIT_MPS, 0.0, 5.0)
    o.climb_rate = clip(-ego.velocity_down_mps / SPEED_UNIT_MPS, -5.0, 5.0)
    o.rates[0] = clip(ego.p_radps, -10.0, 10.0)
    o.rates[1] = clip(ego.q_radps, -10.0, 10.0)
    o.rates[2] = clip(ego.r_radps, -10.0, 10.0)
    o.angle_of_attack = clip(ego.angle_of_attack_rad, -1.6, 1.6)
    o.sideslip = clip(ego.sideslip_rad, -1.6, 1.6)
    o.load_factor = clip(ego.load_factor_g / LOAD_UNIT_G, -3.0, 3.0)
    o.mach = clip(ego.mach, 0.0, 5.0)
    o.engine = clip(ego.engine_n2_fraction, 0.0, 2.0)
    o.fuel = clip(ego.fuel_kg / FUEL_UNIT_KG, 0.0, 5.0)


def write_other(o, ego, other):
    """Writes where the other is, how it moves and points, all in the pilot's body axes; returns its distance, m."""
    x, y, z, distance = write_place(o, ego, other)
    reach = max(distance, CLOSEST_M)
    o.direction[0], o.direction[1], o.direction[2] = x / reach, y / reach, z / reach
    o.closure = clip(closure_mps(ego, other) / SPEED_UNIT_MPS, -5.0, 5.0)
    o.train_angle = off_axis_angle_rad(x, y, z)
    o.aspect_angle = aspect_angle_rad(ego, other)
    o.aim_error[0] = clip(math.atan2(y, x) / FINE_SIGHT_RAD, -1.0, 1.0)
    o.aim_error[1] = clip(math.atan2(-z, x) / FINE_SIGHT_RAD, -1.0, 1.0)
    wx, wy, wz = line_of_sight_rate(ego, other)
    o.sight_rate[0], o.sight_rate[1] = clip(wx, -2.0, 2.0), clip(wy, -2.0, 2.0)
    o.sight_rate[2] = clip(wz, -2.0, 2.0)
    write_axis(o.other_nose, ego, other, 1.0, 0.0)
    write_axis(o.other_lift, ego, other, 0.0, -1.0)
    o.other_airspeed = clip(other.true_airspeed_mps / SPEED_UNIT_MPS, 0.0, 5.0)
    o.altitude_difference = clip((other.altitude_m - ego.altitude_m) / NEAR_UNIT_M, -5.0, 5.0)
    o.energy_difference = clip((energy_height_m(other) - energy_height_m(ego)) / NEAR_UNIT_M, -10.0, 10.0)
    return distance


def write_mate(o, ego, other):
    """Writes where a mate is, how it moves and where its nose points."""
    write_place(o, ego, other)
    write_axis(o.other_nose, ego, other, 1.0, 0.0)


def write_place(o, ego, other):
    """Writes position and velocity of the other; returns its place in own body axes and the distance, m."""
    x, y, z = relative_position(ego, other)
    vx, vy, vz = relative_velocity(ego, other)
    distance = norm(x, y, z)
    o.relative_position[0] = clip(x / RANGE_UNIT_M, -5.0, 5.0)
    o.relative_position[1] = clip(y / RANGE_UNIT_M, -5.0, 5.0)
    o.relative_position[2] = clip(z / RANGE_UNIT_M, -5.0, 5.0)
    o.relative_velocity[0] = clip(vx / SPEED_UNIT_MPS, -5.0, 5.0)
    o.relative_velocity[1] = clip(vy / SPEED_UNIT_MPS, -5.0, 5.0)
    o.relative_velocity[2] = clip(vz / SPEED_UNIT_MPS, -5.0, 5.0)
    o.range = clip(distance / RANGE_UNIT_M, 0.0, 5.0)
    return x, y, z, distance


def write_axis(axis, ego, other, forward, down):
    """Writes an axis of the other aircraft, given in its own body axes, in those of ego."""
    north, east, below = rotate_to_earth(other, forward, 0.0, down)
    x, y, z = rotate_to_body(ego, north, east, below)
    axis[0], axis[1], axis[2] = clip(x, -1.0, 1.0), clip(y, -1.0, 1.0), clip(z, -1.0, 1.0)


def write_centre(o, ego, radius_m):
    """Writes where the centre of the arena is: bearing from the nose, and distance in arena radii."""
    distance = math.sqrt(ego.north_m * ego.north_m + ego.east_m * ego.east_m)
    bearing = math.atan2(-ego.east_m, -ego.north_m) - ego.heading_rad
    o.centre[0], o.centre[1] = math.cos(bearing), math.sin(bearing)
    o.centre_distance = clip(distance / radius_m, 0.0, 5.0)
