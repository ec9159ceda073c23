"""What robots of games of quadrupeds see: fields, observations, frames, the global state."""

from __future__ import annotations

import math

from palaestra.game import Field, Table, uniform
from palaestra.games.robots.parts import INF, real, write_free
from palaestra.games.robots.quadruped import JOINTS, LEGS
from palaestra.games.robots.trot import heading

OWN = 37
"""Numbers that a robot measures of itself; its last action follows them."""
SENSOR_LIMIT = 1e3
"""No sensor shows more, in its unit: a leg that is squeezed among robots can turn faster for an instant."""
TROT = ("ahead", "left", "turn left")
"""Numbers of an action that a trot walks."""
STATE_SIZE = 41
"""Numbers of a robot in the global state."""


def own_fields(number: str, numbers: int) -> tuple[Field, ...]:
    """What a robot sees of itself: fields of a dtype, and of an action of some numbers."""
    return (
        real("up", 3, "1", "upwards, in the frame of the trunk", number, ("ahead", "left", "up")),
        real("velocity_mps", 3, "m/s", "of the trunk, in its frame", number, ("ahead", "left", "up")),
        real("turn_radps", 3, "rad/s", "of the trunk, in its frame", number, ("roll", "pitch", "yaw")),
        real("joint_rad", 12, "rad", "joints: hip, thigh, calf of each leg", number, JOINTS),
        real("joint_radps", 12, "rad/s", "their velocities", number, JOINTS),
        real("foot_force", 4, "100 N", "on each foot: front right, front left, rear right, rear left", number, LEGS),
        real("last", numbers, "1", "own last action", number, JOINTS if numbers == len(JOINTS) else TROT),
    )


def mates(rows: int, number: str, capacity: int | None = None) -> Table:
    """What a robot sees of the others."""
    columns = (
        Field(
            "offset_m",
            (2,),
            -INF,
            INF,
            "m",
            "ahead and to the left, in the own frame",
            number,
            checked=(-1e3, 1e3),
            parts=("ahead", "left"),
        ),
        Field(
            "heading",
            (2,),
            -1,
            1,
            "1",
            "cosine and sine of its heading against the own",
            number,
            parts=("cosine", "sine"),
        ),
    )
    return Table("mates", rows, columns, "the other robots, by number", capacity=capacity)


def measure(s, world, k, scratch):
    """Writes what a robot measures of itself, with noise, and its last action: ``scratch.own``.

    Call it for the robots in their order, `start_noise` before the first one.
    """
    robot, own = s.robots[k], scratch.own
    w, x, y, z = robot.quaternion[0], robot.quaternion[1], robot.quaternion[2], robot.quaternion[3]
    ahead = (1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y + w * z), 2.0 * (x * z - w * y))
    left = (2.0 * (x * y - w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z + w * x))
    up = (2.0 * (x * z + w * y), 2.0 * (y * z - w * x), 1.0 - 2.0 * (x * x + y * y))
    velocity = robot.velocity_mps
    own[0], own[1], own[2] = ahead[2], left[2], up[2]
    own[3] = ahead[0] * velocity[0] + ahead[1] * velocity[1] + ahead[2] * velocity[2]
    own[4] = left[0] * velocity[0] + left[1] * velocity[1] + left[2] * velocity[2]
    own[5] = up[0] * velocity[0] + up[1] * velocity[1] + up[2] * velocity[2]
    for i in range(3):
        own[6 + i] = robot.turn_radps[i]
    for i in range(12):
        own[9 + i] = robot.joint_rad[i]
        own[21 + i] = robot.joint_radps[i]
    for i in range(4):
        own[33 + i] = 0.01 * robot.foot_force_n[i]
    if world.sensor_noise > 0.0:
        for i in range(OWN):
            own[i] += world.sensor_noise * world.noise[i] * uniform(scratch, -1.0, 1.0)
    for i in range(OWN):
        own[i] = min(max(own[i], -SENSOR_LIMIT), SENSOR_LIMIT)
    for i in range(world.numbers):
        own[OWN + i] = s.last[k, i]


def observe_self(s, world, k, scratch, seen):
    """Writes `own_fields`."""
    measure(s, world, k, scratch)
    own = scratch.own
    for i in range(3):
        seen.up[i], seen.velocity_mps[i], seen.turn_radps[i] = own[i], own[3 + i], own[6 + i]
    for i in range(12):
        seen.joint_rad[i], seen.joint_radps[i] = own[9 + i], own[21 + i]
    for i in range(4):
        seen.foot_force[i] = own[33 + i]
    for i in range(world.numbers):
        seen.last[i] = own[OWN + i]


def observe_mates(s, k, robots, seen):
    """Writes `mates`."""
    row = 0
    for other in range(robots):
        if other != k:
            observe_mate(s, k, other, seen.mates[row])
            row += 1


def observe_mate(s, k, other, row):
    """Writes a row of `mates`."""
    mate = s.robots[other]
    to_frame(s.robots[k], mate.position_m[0], mate.position_m[1], row.offset_m)
    turned = heading(mate) - heading(s.robots[k])
    row.heading[0], row.heading[1] = math.cos(turned), math.sin(turned)


def to_frame(robot, x, y, out):
    """Writes a place in the frame of a robot: ahead and to the left."""
    to_axes(robot, x - robot.position_m[0], y - robot.position_m[1], out)


def to_axes(robot, x, y, out):
    """Writes a vector of the floor in the frame of a robot: ahead and to the left."""
    cos, sin = math.cos(heading(robot)), math.sin(heading(robot))
    out[0], out[1] = cos * x + sin * y, cos * y - sin * x


def write_robots(s, world, out):
    """Writes all robots to a global state.

    Of each: `palaestra.games.robots.parts.write_free`, joints and their velocities, then what `vary` drew.
    """
    for k in range(world.robots):
        robot, first = s.robots[k], STATE_SIZE * k
        write_free(robot, first, out)
        for i in range(12):
            out[first + 13 + i] = robot.joint_rad[i]
            out[first + 25 + i] = robot.joint_radps[i]
        out[first + 37], out[first + 38] = robot.mass_factor, robot.friction_factor
        out[first + 39], out[first + 40] = robot.gain_factor, robot.delay
