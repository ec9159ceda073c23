"""Equations of motion of a rigid body over a planet: kernel functions in feet, slugs, pounds and seconds.

Axes. *Inertial*: the planet's centre, z along its axis. *Earth*: the same, turning with the planet. *Local*: north,
east, down at the body. *Body*: forward, right, down. The state is held in inertial axes, as JSBSim holds it
(`FGPropagate`, `FGAccelerations` of JSBSim 1.3; Stevens, Lewis and Johnson, *Aircraft Control and Simulation*, 3rd
ed., 1.7), and so are the integrators: explicit Euler for attitude and rates, two-step Adams-Bashforth for the
velocity, three-step Adams-Bashforth for the position.
"""

from __future__ import annotations

import math
from typing import NamedTuple


class Matrix(NamedTuple):
    """A rotation, row by row: ``apply(m, v)`` has the components of v in the other axes.

    Attributes:
        xx: Row x, column x, and so on.
        xy: See above.
        xz: See above.
        yx: See above.
        yy: See above.
        yz: See above.
        zx: See above.
        zy: See above.
        zz: See above.
    """

    xx: float
    xy: float
    xz: float
    yx: float
    yy: float
    yz: float
    zx: float
    zy: float
    zz: float


def apply(m, x, y, z):
    """The vector in the axes that the matrix leads to."""
    return m.xx * x + m.xy * y + m.xz * z, m.yx * x + m.yy * y + m.yz * z, m.zx * x + m.zy * y + m.zz * z


def apply_back(m, x, y, z):
    """The vector in the axes that the matrix comes from."""
    return m.xx * x + m.yx * y + m.zx * z, m.xy * x + m.yy * y + m.zy * z, m.xz * x + m.yz * y + m.zz * z


def compose_back(m, n):
    """The matrix ``m n^T``: back by ``n``, then on by ``m``."""
    return Matrix(
        m.xx * n.xx + m.xy * n.xy + m.xz * n.xz,
        m.xx * n.yx + m.xy * n.yy + m.xz * n.yz,
        m.xx * n.zx + m.xy * n.zy + m.xz * n.zz,
        m.yx * n.xx + m.yy * n.xy + m.yz * n.xz,
        m.yx * n.yx + m.yy * n.yy + m.yz * n.yz,
        m.yx * n.zx + m.yy * n.zy + m.yz * n.zz,
        m.zx * n.xx + m.zy * n.xy + m.zz * n.xz,
        m.zx * n.yx + m.zy * n.yy + m.zz * n.yz,
        m.zx * n.zx + m.zy * n.zy + m.zz * n.zz,
    )


def cross(ax, ay, az, bx, by, bz):
    """The vector product a x b."""
    return ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx


# --------------------------------------------------------------------------------------------------------- attitude


def turn(w, x, y, z, p, q, r, dt):
    """A quaternion (inertial to body) after one explicit Euler step with the body rates p, q, r, rad/s."""
    half = 0.5 * dt
    next_w = w - half * (x * p + y * q + z * r)
    next_x = x + half * (w * p - z * q + y * r)
    next_y = y + half * (z * p + w * q - x * r)
    next_z = z + half * (-y * p + x * q + w * r)
    length = math.sqrt(next_w * next_w + next_x * next_x + next_y * next_y + next_z * next_z)
    if length == 0.0 or abs(length - 1.0) < 1e-10:
        return next_w, next_x, next_y, next_z
    scale = 1.0 / length
    return next_w * scale, next_x * scale, next_y * scale, next_z * scale


def rotation(w, x, y, z):
    """The matrix of a unit quaternion: inertial to body axes."""
    return Matrix(
        w * w + x * x - y * y - z * z,
        2.0 * (x * y + w * z),
        2.0 * (x * z - w * y),
        2.0 * (x * y - w * z),
        w * w - x * x + y * y - z * z,
        2.0 * (y * z + w * x),
        2.0 * (x * z + w * y),
        2.0 * (y * z - w * x),
        w * w - x * x - y * y + z * z,
    )


def quaternion(roll, pitch, heading):
    """The unit quaternion (w, x, y, z) of the sequence heading, pitch, roll, rad."""
    cos_roll, sin_roll = math.cos(0.5 * roll), math.sin(0.5 * roll)
    cos_pitch, sin_pitch = math.cos(0.5 * pitch), math.sin(0.5 * pitch)
    cos_heading, sin_heading = math.cos(0.5 * heading), math.sin(0.5 * heading)
    return (
        cos_roll * cos_pitch * cos_heading + sin_roll * sin_pitch * sin_heading,
        sin_roll * cos_pitch * cos_heading - cos_roll * sin_pitch * sin_heading,
        cos_roll * sin_pitch * cos_heading + sin_roll * cos_pitch * sin_heading,
        cos_roll * cos_pitch * sin_heading - sin_roll * sin_pitch * cos_heading,
    )


def quaternion_of(m):
    """The unit quaternion of a rotation matrix, from its largest component."""
    traces = (1.0 + m.xx + m.yy + m.zz, 1.0 + m.xx - m.yy - m.zz, 1.0 - m.xx + m.yy - m.zz, 1.0 - m.xx - m.yy + m.zz)
    largest = max(max(traces[0], traces[1]), max(traces[2], traces[3]))
    root = 0.5 * math.sqrt(largest)
    share = 0.25 / root
    if largest == traces[0]:
        return root, share * (m.yz - m.zy), share * (m.zx - m.xz), share * (m.xy - m.yx)
    if largest == traces[1]:
        return share * (m.yz - m.zy), root, share * (m.xy + m.yx), share * (m.zx + m.xz)
    if largest == traces[2]:
        return share * (m.zx - m.xz), share * (m.xy + m.yx), root, share * (m.yz + m.zy)
    return share * (m.xy - m.yx), share * (m.zx + m.xz), share * (m.yz + m.zy), root


def product(aw, ax, ay, az, bw, bx, by, bz):
    """The quaternion of the rotation a followed by b."""
    return (
        aw * bw - ax * bx - ay * by - az * bz,
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
    )


def pitch_angle(m):
    """Pitch, rad in [-pi/2, pi/2], of a matrix from local to body axes."""
    return math.asin(min(max(-m.xz, -1.0), 1.0))


def roll_angle(m):
    """Roll, rad in [-pi, pi]."""
    if abs(m.xz) >= 1.0:
        return math.atan2(-m.zy, m.yy)
    return math.atan2(m.yz, m.zz)


def cosines(m):
    """Cosines of pitch and roll, without the angles."""
    pitch = math.sqrt(m.xx * m.xx + m.xy * m.xy)
    return pitch, m.zz / pitch if pitch > 1e-9 else m.yy


def heading_angle(m):
    """Heading of the nose, rad in [0, 2 pi)."""
    if abs(m.xz) >= 1.0:
        return 0.0
    heading = math.atan2(m.xy, m.xx)
    return heading + 2.0 * math.pi if heading < 0.0 else heading


# --------------------------------------------------------------------------------------------------------- position


class Place(NamedTuple):
    """Where a point is over the planet.

    Attributes:
        to_local: Earth axes to local axes.
        altitude: Above the sea level under it on the line to the planet's centre, ft: JSBSim's ``position/h-sl-ft``.
        height: Above the ellipsoid, along its normal, ft.
        sine: Of the geodetic latitude.
        cosine: See above.
    """

    to_local: Matrix
    altitude: float
    height: float
    sine: float
    cosine: float


def place_on_sphere(x, y, z, radius):
    """The `Place` of a point in Earth axes over a sphere."""
    flat = math.sqrt(x * x + y * y)
    distance = math.sqrt(x * x + y * y + z * z)
    sine, cosine = z / distance, flat / distance
    east, start = y / flat, x / flat
    return Place(local_axes(sine, cosine, east, start), distance - radius, distance - radius, sine, cosine)


def place_on_ellipsoid(x, y, z, equator, pole):
    """The `Place` of a point in Earth axes over an ellipsoid of revolution with these two radii.

    The geodetic latitude is found by Halley's method (Fukushima, Journal of Geodesy 79, 2006, pp. 689-693): one step
    is exact to the last digits.
    """
    flat = math.sqrt(x * x + y * y)
    distance = math.sqrt(x * x + y * y + z * z)
    east, start = y / flat, x / flat
    ratio = pole / equator
    square = 1.0 - ratio * ratio
    curve = equator * square
    s0 = abs(z)
    c0 = ratio * flat
    zc = ratio * s0
    a2 = c0 * c0 + s0 * s0
    a1 = math.sqrt(a2)
    a3 = a2 * a1
    s1 = zc * a3 + curve * s0 * s0 * s0
    c1 = flat * a3 - curve * c0 * c0 * c0
    both = curve * c0 * s0
    b0 = 1.5 * both * ((flat * s0 - zc * c0) * a1 - both)
    s1 = s1 * a3 - b0 * s0
    cc = ratio * (c1 * a3 - b0 * c0)
    length = math.sqrt(s1 * s1 + cc * cc)
    height = (flat * cc + s0 * s1 - equator * math.sqrt(ratio * ratio * s1 * s1 + cc * cc)) / length
    sine, cosine = math.copysign(s1 / length, z), cc / length
    level = equator * ratio / math.sqrt(1.0 - square * (flat / distance) * (flat / distance))
    return Place(local_axes(sine, cosine, east, start), distance - level, height, sine, cosine)


def local_axes(sine, cosine, east, start):
    """Matrix from Earth to local axes at a latitude (sine, cosine) and a longitude (``east`` its sine)."""
    return Matrix(
        -start * sine, -east * sine, cosine, -east, start, 0.0, -start * cosine, -east * cosine, -sine
    )  # fmt: skip


def turned_earth(m, cosine, sine):
    """A matrix from Earth axes as one from inertial axes, the planet having turned by an angle."""
    return Matrix(
        m.xx * cosine - m.xy * sine,
        m.xx * sine + m.xy * cosine,
        m.xz,
        m.yx * cosine - m.yy * sine,
        m.yx * sine + m.yy * cosine,
        m.yz,
        m.zx * cosine - m.zy * sine,
        m.zx * sine + m.zy * cosine,
        m.zz,
    )


def point_over_ellipsoid(latitude, longitude, altitude, equator, pole):
    """Earth axes, ft, of a point at a geodetic latitude, rad, and an altitude as in `Place`."""
    sine, cosine = math.sin(latitude), math.cos(latitude)
    square = 1.0 - pole * pole / (equator * equator)
    curvature = equator / math.sqrt(1.0 - square * sine * sine)
    height = altitude
    for _ in range(8):
        flat = (curvature + height) * cosine
        up = ((1.0 - square) * curvature + height) * sine
        distance = math.sqrt(flat * flat + up * up)
        level = pole / math.sqrt(1.0 - square * (flat / distance) * (flat / distance))
        height += altitude - (distance - level)
    flat = (curvature + height) * cosine
    return flat * math.cos(longitude), flat * math.sin(longitude), ((1.0 - square) * curvature + height) * sine


def gravity(x, y, z, mass, flattening, equator):
    """Acceleration of gravity in Earth axes, ft/s^2: a point mass with the second zonal harmonic.

    Args:
        x: Position in Earth axes, ft.
        y: See above.
        z: See above.
        mass: Gravitational parameter, ft^3/s^2.
        flattening: J2; 0 for a sphere.
        equator: Radius that J2 belongs to, ft.
    """
    square = x * x + y * y + z * z
    distance = math.sqrt(square)
    sine2 = z * z / square
    harmonic = 1.5 * flattening * equator * equator / square
    pull = -mass / (square * distance)
    across = pull * (1.0 + harmonic * (1.0 - 5.0 * sine2))
    return across * x, across * y, pull * (1.0 + harmonic * (3.0 - 5.0 * sine2)) * z


# ------------------------------------------------------------------------------------------------------------ mass


class Inertia(NamedTuple):
    """Moments and products of inertia about the centre of gravity in body axes, slug ft^2.

    The matrix is ``[[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]``: products enter with the sign of the matrix.

    Attributes:
        xx: Moment about the axis forward.
        yy: Moment about the axis to the right.
        zz: Moment about the axis down.
        xy: Element of the matrix.
        xz: Element of the matrix.
        yz: Element of the matrix.
    """

    xx: float
    yy: float
    zz: float
    xy: float
    xz: float
    yz: float


def with_mass(inertia, mass, x, y, z):
    """The inertia with a point of ``mass`` (slug) added at a place in body axes from the centre of gravity, ft."""
    return Inertia(
        inertia.xx + mass * (y * y + z * z),
        inertia.yy + mass * (x * x + z * z),
        inertia.zz + mass * (x * x + y * y),
        inertia.xy - mass * x * y,
        inertia.xz - mass * x * z,
        inertia.yz - mass * y * z,
    )


def angular_acceleration(inertia, p, q, r, roll, pitch, yaw):
    """Euler's equations: the change of the body rates p, q, r (inertial, rad/s) under moments (ft lbf), rad/s^2."""
    i = inertia
    hx, hy, hz = i.xx * p + i.xy * q + i.xz * r, i.xy * p + i.yy * q + i.yz * r, i.xz * p + i.yz * q + i.zz * r
    tx, ty, tz = roll - (q * hz - r * hy), pitch - (r * hx - p * hz), yaw - (p * hy - q * hx)
    a, b, c = i.yy * i.zz - i.yz * i.yz, i.xz * i.yz - i.xy * i.zz, i.xy * i.yz - i.xz * i.yy
    d, e, f = i.xx * i.zz - i.xz * i.xz, i.xy * i.xz - i.xx * i.yz, i.xx * i.yy - i.xy * i.xy
    scale = 1.0 / (i.xx * a + i.xy * b + i.xz * c)
    return (
        scale * (a * tx + b * ty + c * tz),
        scale * (b * tx + d * ty + e * tz),
        scale * (c * tx + e * ty + f * tz),
    )
