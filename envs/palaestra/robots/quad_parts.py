"""What all games of quadrupeds share: records, copies to MuJoCo, commands, what a robot sees."""

from __future__ import annotations

import math
from typing import Any

from palaestra.game import Continuous, Field, Table
from palaestra.robots.engine import Copy
from palaestra.robots.quadruped import POSITIONS, STAND_M, VELOCITIES
from palaestra.robots.trot import start_trot, trot

INF = math.inf
PERIODS, SUBSTEPS = 5, 4
"""Of the trot in a decision, of MuJoCo in a period of the trot: 10, 50 and 200 Hz."""
DECISION_S = 0.1
LOWEST_M, STEEPEST = 0.14, 0.5
"""A robot has fallen whose trunk is lower, or whose cosine of the tilt is smaller."""
COLORS = ((0.86, 0.42, 0.16), (0.17, 0.47, 0.72), (0.30, 0.62, 0.34), (0.75, 0.62, 0.18), (0.55, 0.37, 0.66))
ACTION = Continuous("velocity", (3,), -1.0, 1.0, "1", "ahead (of 1 m/s), left (of 0.5 m/s), turn left (of 1 rad/s)")


def copies(robots: int) -> dict[str, tuple[Copy, ...]]:
    """Inputs, outputs and starts of robots that come first in the model: keywords of the engine."""
    inputs, starts, sensors = [], [], []
    for k in range(robots):
        q, v = POSITIONS * k, VELOCITIES * k
        inputs.append(Copy("robots", k, "target_rad", "ctrl", 12 * k))
        starts += [
            Copy("robots", k, "position_m", "qpos", q),
            Copy("robots", k, "quaternion", "qpos", q + 3),
            Copy("robots", k, "joint_rad", "qpos", q + 7),
            Copy("robots", k, "velocity_mps", "qvel", v),
            Copy("robots", k, "turn_radps", "qvel", v + 3),
            Copy("robots", k, "joint_radps", "qvel", v + 6),
        ]
        sensors.append(Copy("robots", k, "foot_force_n", "sensordata", 4 * k))
    return {"inputs": tuple(inputs), "starts": tuple(starts), "outputs": (*starts, *sensors)}


def own_fields(number: str) -> tuple[Field, ...]:
    """What a robot sees of itself; ``number`` is the dtype."""
    return (
        real("up", 3, "1", "upwards, in the frame of the trunk", number),
        real("velocity_mps", 3, "m/s", "of the trunk, in its frame", number),
        real("turn_radps", 3, "rad/s", "of the trunk, in its frame", number),
        real("joint_rad", 12, "rad", "joints: hip, thigh, calf of each leg", number),
        real("joint_radps", 12, "rad/s", "their velocities", number),
        real("foot_force", 4, "100 N", "on each foot: front right, front left, rear right, rear left", number),
        real("last", 3, "1", "own last action", number),
    )


def mates(rows: int, number: str, capacity: int | None = None) -> Table:
    """What a robot sees of the others."""
    columns = (
        Field("offset_m", (2,), -INF, INF, "m", "ahead and to the left, in the own frame", number, checked=(-1e3, 1e3)),
        Field("heading", (2,), -1, 1, "1", "cosine and sine of its heading against the own", number),
    )
    return Table("mates", rows, columns, "the other robots, by number", capacity=capacity)


def real(name: str, size: int, unit: str, about: str, number: str) -> Field:
    """A field of numbers without bounds."""
    return Field(name, (size,), -INF, INF, unit, about, number, checked=(-1e3, 1e3))


def place(robot, x, y, heading):
    """A robot stands on the floor."""
    robot.position_m[0], robot.position_m[1], robot.position_m[2] = x, y, STAND_M
    robot.quaternion[0], robot.quaternion[3] = math.cos(0.5 * heading), math.sin(0.5 * heading)
    start_trot(robot)
    for k in range(12):
        robot.joint_rad[k] = robot.target_rad[k]


def obey(s, k, action):
    """A robot trots as it is commanded."""
    for i in range(3):
        s.last[k, i] = action.velocity[i]
    trot(s.robots[k], action.velocity[0], action.velocity[1], action.velocity[2])


def heading(robot):
    """Where a robot looks, in rad from the x axis."""
    w, x, y, z = robot.quaternion[0], robot.quaternion[1], robot.quaternion[2], robot.quaternion[3]
    return math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))


def has_fallen(robot):
    """Whether the trunk is too low or too steep."""
    x, y = robot.quaternion[1], robot.quaternion[2]
    return robot.position_m[2] < LOWEST_M or 1.0 - 2.0 * (x * x + y * y) < STEEPEST


def observe_self(s, k, seen):
    """Writes `own_fields`."""
    robot = s.robots[k]
    w, x, y, z = robot.quaternion[0], robot.quaternion[1], robot.quaternion[2], robot.quaternion[3]
    ahead = (1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y + w * z), 2.0 * (x * z - w * y))
    left = (2.0 * (x * y - w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z + w * x))
    up = (2.0 * (x * z + w * y), 2.0 * (y * z - w * x), 1.0 - 2.0 * (x * x + y * y))
    seen.up[0], seen.up[1], seen.up[2] = ahead[2], left[2], up[2]
    for i in range(3):
        seen.velocity_mps[0] += ahead[i] * robot.velocity_mps[i]
        seen.velocity_mps[1] += left[i] * robot.velocity_mps[i]
        seen.velocity_mps[2] += up[i] * robot.velocity_mps[i]
        seen.turn_radps[i] = robot.turn_radps[i]
        seen.last[i] = s.last[k, i]
    for i in range(12):
        seen.joint_rad[i] = robot.joint_rad[i]
        seen.joint_radps[i] = robot.joint_radps[i]
    for i in range(4):
        seen.foot_force[i] = 0.01 * robot.foot_force_n[i]


def observe_mates(s, k, robots, seen):
    """Writes `mates`."""
    row = 0
    for other in range(robots):
        if other != k:
            mate = s.robots[other]
            to_frame(s.robots[k], mate.position_m[0], mate.position_m[1], seen.mates[row].offset_m)
            turned = heading(mate) - heading(s.robots[k])
            seen.mates[row].heading[0], seen.mates[row].heading[1] = math.cos(turned), math.sin(turned)
            row += 1


def to_frame(robot, x, y, out):
    """Writes a place in the frame of a robot: ahead and to the left."""
    way_x, way_y = x - robot.position_m[0], y - robot.position_m[1]
    cos, sin = math.cos(heading(robot)), math.sin(heading(robot))
    out[0], out[1] = cos * way_x + sin * way_y, cos * way_y - sin * way_x


def steer(robot, action, x, y, look, slow_m):
    """A script's command: to a place, looking in a direction; slower within ``slow_m``."""
    way_x, way_y = x - robot.position_m[0], y - robot.position_m[1]
    own = heading(robot)
    ahead = math.cos(own) * way_x + math.sin(own) * way_y
    left = math.cos(own) * way_y - math.sin(own) * way_x
    turn = look - own
    turn -= 2.0 * math.pi * math.floor(turn / (2.0 * math.pi) + 0.5)
    action.velocity[0] = min(max(ahead / slow_m, -1.0), 1.0)
    action.velocity[1] = min(max(2.0 * left / slow_m, -1.0), 1.0)
    action.velocity[2] = min(max(1.5 * turn, -1.0), 1.0)


STATE_SIZE = 37
"""Numbers of a robot in the global state."""


def write_robots(s, robots, out):
    """Writes places, velocities, turning, orientations, joints and their velocities to a global state."""
    for k in range(robots):
        robot, first = s.robots[k], STATE_SIZE * k
        for i in range(3):
            out[first + i] = robot.position_m[i]
            out[first + 3 + i] = robot.velocity_mps[i]
            out[first + 6 + i] = robot.turn_radps[i]
        for i in range(4):
            out[first + 9 + i] = robot.quaternion[i]
        for i in range(12):
            out[first + 13 + i] = robot.joint_rad[i]
            out[first + 25 + i] = robot.joint_radps[i]


def options(model: Any, arguments: tuple, robots: int, more: tuple[Copy, ...] = ()) -> dict[str, Any]:
    """Keywords of the engine; ``more`` are copies of other bodies, which start and are written."""
    made = copies(robots)
    return {
        "model": model,
        "arguments": arguments,
        "substeps": SUBSTEPS,
        "inputs": made["inputs"],
        "outputs": (*made["outputs"], *more),
        "starts": (*made["starts"], *more),
    }
