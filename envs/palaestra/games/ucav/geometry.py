"""Geometry of two aircraft: kernel functions on `palaestra.games.ucav.body.BODY` records.

Axes. Earth: north, east, down, flat (`body`). Body: x forward along the nose, y to the right wing, z down. The
rotation between them is the aerospace sequence heading, pitch, roll about z, y, x (Stevens, Lewis and Johnson,
*Aircraft Control and Simulation*, 3rd ed., 1.3).

Every angle that is seen from a cockpit is measured from the *nose*, as the gun is: angle of attack and sideslip are
ignored on purpose. All functions are rotation-invariant: turning the whole match about the vertical changes nothing
that they return, except for `rotate_to_earth` and `rotate_to_body`, which are what makes it so.
"""

from __future__ import annotations

import math

from palaestra.kernels.scalars import clip
from palaestra.kernels.vectors import norm

GRAVITY_MPS2 = 9.80665
"""Standard acceleration of free fall (ISO 80000-3), m/s^2."""

CLOSEST_M = 1.0
"""Ranges below this count as this in quotients: two aircraft at one point have no line of sight, m."""
SLOWEST_MPS = 60.0
"""Airspeeds below this count as this in quotients such as g / V, m/s."""


def rotate_to_body(body, north, east, down):
    """Components of an Earth vector in the aircraft's body axes: (x, y, z), in the unit of the argument."""
    sin_roll, cos_roll = math.sin(body.roll_rad), math.cos(body.roll_rad)
    sin_pitch, cos_pitch = math.sin(body.pitch_rad), math.cos(body.pitch_rad)
    sin_heading, cos_heading = math.sin(body.heading_rad), math.cos(body.heading_rad)
    ahead = cos_heading * north + sin_heading * east
    right = cos_heading * east - sin_heading * north
    x = cos_pitch * ahead - sin_pitch * down
    below = sin_pitch * ahead + cos_pitch * down
    return x, cos_roll * right + sin_roll * below, cos_roll * below - sin_roll * right


def rotate_to_earth(body, x, y, z):
    """Components of a body-axes vector along north, east and down: the inverse of `rotate_to_body`."""
    sin_roll, cos_roll = math.sin(body.roll_rad), math.cos(body.roll_rad)
    sin_pitch, cos_pitch = math.sin(body.pitch_rad), math.cos(body.pitch_rad)
    sin_heading, cos_heading = math.sin(body.heading_rad), math.cos(body.heading_rad)
    right = cos_roll * y - sin_roll * z
    below = sin_roll * y + cos_roll * z
    ahead = cos_pitch * x + sin_pitch * below
    down = cos_pitch * below - sin_pitch * x
    return cos_heading * ahead - sin_heading * right, sin_heading * ahead + cos_heading * right, down


def relative_position(ego, other):
    """Position of the other aircraft in the body axes of ego: (x, y, z), m."""
    return rotate_to_body(
        ego, other.north_m - ego.north_m, other.east_m - ego.east_m, ego.altitude_m - other.altitude_m
    )


def relative_velocity(ego, other):
    """Velocity of the other aircraft minus ego's, in the body axes of ego: (x, y, z), m/s.

    It is the difference of two inertial velocities, so ego's own rotation is not in it.
    """
    return rotate_to_body(
        ego,
        other.velocity_north_mps - ego.velocity_north_mps,
        other.velocity_east_mps - ego.velocity_east_mps,
        other.velocity_down_mps - ego.velocity_down_mps,
    )


def distance_m(ego, other):
    """Distance between the two aircraft, m. Symmetric."""
    north, east = other.north_m - ego.north_m, other.east_m - ego.east_m
    return norm(north, east, other.altitude_m - ego.altitude_m)


def closure_mps(ego, other):
    """Speed at which the range shrinks, ``-(r . v) / |r|``, m/s: positive when they get closer. Symmetric."""
    north, east = other.north_m - ego.north_m, other.east_m - ego.east_m
    down = ego.altitude_m - other.altitude_m
    along = (
        north * (other.velocity_north_mps - ego.velocity_north_mps)
        + east * (other.velocity_east_mps - ego.velocity_east_mps)
        + down * (other.velocity_down_mps - ego.velocity_down_mps)
    )
    return -along / max(norm(north, east, down), CLOSEST_M)


def off_axis_angle_rad(x, y, z):
    """Angle between a body-axes vector and the nose, atan2(sqrt(y^2 + z^2), x), in [0, pi]; 0 for the null vector."""
    return math.atan2(math.sqrt(y * y + z * z), x)


def antenna_train_angle_rad(ego, other):
    """Angle between ego's nose and the line of sight to the other, in [0, pi]: 0 is "right ahead"."""
    x, y, z = relative_position(ego, other)
    return off_axis_angle_rad(x, y, z)


def aspect_angle_rad(ego, other):
    """Angle between the line of sight from ego to the other and the other's nose, in [0, pi].

    0: ego is right behind the other; pi: it is right in front of its gun. With the antenna-train angle
    of the other: aspect(ego, other) = pi - train(other, ego).
    """
    x, y, z = relative_position(other, ego)
    return off_axis_angle_rad(-x, y, z)


def line_of_sight_rate(ego, other):
    """Rotation of the line of sight in inertial space, in body axes of ego: ``(r x v) / |r|^2 = (x, y, z)``, rad/s.

    The y component is the pitch rate and the z component the yaw rate at which ego's nose must turn to stay on the
    other.
    """
    px, py, pz = relative_position(ego, other)
    vx, vy, vz = relative_velocity(ego, other)
    square = max(px * px + py * py + pz * pz, CLOSEST_M * CLOSEST_M)
    return (py * vz - pz * vy) / square, (pz * vx - px * vz) / square, (px * vy - py * vx) / square


def energy_height_m(body):
    """Specific energy as a height, h + V^2 / (2 g), m: how high the speed would carry the aircraft without loss."""
    return body.altitude_m + body.true_airspeed_mps * body.true_airspeed_mps / (2.0 * GRAVITY_MPS2)


def closest_pass_m(n, e, d, end_n, end_e, end_d):
    """Smallest distance of two points that both move straight at constant speed.

    Args:
        n: North of one from the other at the start, m; then east and down.
        e: East.
        d: Down.
        end_n: The same at the end.
        end_e: East.
        end_d: Down.
    """
    vn, ve, vd = end_n - n, end_e - e, end_d - d
    square = vn * vn + ve * ve + vd * vd
    share = clip(-(n * vn + e * ve + d * vd) / square, 0.0, 1.0) if square > 0.0 else 0.0
    return norm(n + share * vn, e + share * ve, d + share * vd)
