"""Two quadrupeds push a box to a goal.

## Description
Two quadruped robots stand behind a box of 8 kg; its goal is 1.5 m ahead.
A low-level trot walks as an agent commands. The task is `go1pushbox` of MQE (Xiong et al., "MQE: Unleashing the Power
of Interaction with Multi-agent Quadruped Environment", arXiv 2403.16015), on a body and with rewards of our own.

## Action Space
<!-- table: action -->

A decision is 0.1 s. Commands that are longer than 1 together are shortened to 1.

## Observation Space
<!-- table: observation -->

Forces on feet are those before the last 5 ms.

## Rewards
Paid to both. `reward="dense"`: metres that the box's middle has come nearer to the goal (`reward_progress`); 1 when it
is there (`reward_done`); -1 for a fall (`reward_fall`). `reward="sparse"`: the last two alone.

## Starting State
The box is within 0.1 m of the origin and within 0.15 rad of lying across the way. The goal is 1.5 m ahead and up to
0.3 m aside. The robots stand 1 m behind, 0.35 m to both sides, each within 0.1 m and 0.2 rad of its place.

## Episode End
- terminated: `done`, the box's middle is less than 0.3 m from the goal; `fallen`, a trunk is lower than 0.14 m or
  tilted by 60 degrees.
- truncated: `diverged`, MuJoCo has given the match up; or the horizon, 15 s.

## Arguments
`reward`: `"dense"` or `"sparse"`. `dtype`: `"float32"` or `"float64"`, of observations and rewards.
The script `push` pushes at two points so that the box turns to the goal. Parameters:

<!-- table: parameters -->

## Version History
v0: initial version.
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import numpy as np

from palaestra.game import TERMINATED, TRUNCATED, Field, Game, Role, check_word, uniform
from palaestra.robots.engine import DIVERGED, Copy, compiled_spec, import_mujoco, version
from palaestra.robots.quad_parts import (
    ACTION,
    COLORS,
    INF,
    PERIODS,
    STATE_SIZE,
    has_fallen,
    heading,
    mates,
    obey,
    observe_mates,
    observe_self,
    options,
    own_fields,
    place,
    real,
    steer,
    to_frame,
    write_robots,
)
from palaestra.robots.quadruped import POSITIONS, ROBOT, VELOCITIES, add_quadruped, floor

ROBOTS = 2
HALF_M = (0.25, 0.5, 0.2)
"""Half sizes of the box: along the way, across it, upwards."""
BOX_KG = 8.0
GOAL_M, ASIDE_M, NEAR_M = 1.5, 0.3, 0.3
DONE, FALLEN, LOST = 2, 3, 4
"""Numbers of the end reasons."""
BOX = np.dtype(
    [("position_m", "f8", (3,)), ("quaternion", "f8", (4,)), ("velocity_mps", "f8", (3,)), ("turn_radps", "f8", (3,))],
    align=True,
)
"""The box in the match record: place, orientation (w, x, y, z), velocity, and turning in its own frame."""


class World(NamedTuple):
    """What differs between variants.

    Attributes:
        robots: Number of robots.
        is_dense: Whether progress is paid.
    """

    robots: int
    is_dense: int


def reset(s, world):
    """The robots stand behind the box."""
    box = s.boxes[0]
    turned = uniform(s, -0.15, 0.15)
    box.position_m[0], box.position_m[1] = uniform(s, -0.1, 0.1), uniform(s, -0.1, 0.1)
    box.position_m[2] = HALF_M[2]
    box.quaternion[0], box.quaternion[3] = math.cos(0.5 * turned), math.sin(0.5 * turned)
    s.goal_m[0], s.goal_m[1] = GOAL_M, uniform(s, -ASIDE_M, ASIDE_M)
    for k in range(ROBOTS):
        x, y = -1.0 + uniform(s, -0.1, 0.1), 0.35 * (2 * k - 1) + uniform(s, -0.1, 0.1)
        place(s.robots[k], x, y, uniform(s, -0.2, 0.2))
    s.distance_m = distance(s)


def distance(s):
    """From the box's middle to the goal."""
    x, y = s.goal_m[0] - s.boxes[0].position_m[0], s.goal_m[1] - s.boxes[0].position_m[1]
    return math.sqrt(x * x + y * y)


def command(s, world, actions, scratch):
    """Both robots trot."""
    for k in range(ROBOTS):
        obey(s, k, actions.robot[k])


def evaluate(s, world, rewards, scratch):
    """Pays the team, and ends the match."""
    info = s.info
    if s.period == 0:
        info.reward_progress = info.reward_done = info.reward_fall = 0.0
    s.period = (s.period + 1) % PERIODS
    left = distance(s)
    progress = s.distance_m - left
    s.distance_m = info.distance_m = left
    result = 0
    if s.diverged != 0.0:
        info.end_reason, result = LOST, TRUNCATED
    elif has_fallen(s.robots[0]) or has_fallen(s.robots[1]):
        info.reward_fall, info.end_reason, result = -1.0, FALLEN, TERMINATED
    elif left < NEAR_M:
        info.reward_done, info.end_reason, result = 1.0, DONE, TERMINATED
    paid = info.reward_done + info.reward_fall
    if world.is_dense:
        info.reward_progress += progress
        paid += progress
    for k in range(ROBOTS):
        rewards[k] += paid
    return result


def observe(s, world, observations, scratch):
    """A robot sees itself, the other, the box and the goal."""
    for k in range(ROBOTS):
        seen, robot, box = observations.robot[k], s.robots[k], s.boxes[0]
        observe_self(s, k, seen)
        observe_mates(s, k, ROBOTS, seen)
        to_frame(robot, box.position_m[0], box.position_m[1], seen.box_m)
        turned = heading(box) - heading(robot)
        seen.box_heading[0], seen.box_heading[1] = math.cos(turned), math.sin(turned)
        to_frame(robot, s.goal_m[0], s.goal_m[1], seen.goal_m)


def script(s, world, slot, which, actions, scratch):
    """`push`: each robot pushes at its end of the box, the more the farther its end is behind."""
    box = s.boxes[0]
    turned = heading(box)
    x, y = s.goal_m[0] - box.position_m[0], s.goal_m[1] - box.position_m[1]
    error = math.atan2(y, x) - turned  # the box has to turn to the left where positive
    side = 2.0 * slot - 1.0  # the robot on the right turns the box to the left
    cos, sin = math.cos(turned), math.sin(turned)
    behind, aside = -HALF_M[0] - 0.26, 0.3 * side
    robot, action = s.robots[slot], actions.robot[slot]
    point_x = box.position_m[0] + cos * behind - sin * aside
    point_y = box.position_m[1] + sin * behind + cos * aside
    push = 0.35 - side * min(max(0.8 * error, -0.3), 0.3)
    steer(robot, action, point_x + push * cos, point_y + push * sin, turned, 0.5)


def global_state(s, world, out):
    """Places, orientations, joints and velocities of both robots, then of the box, and the goal."""
    write_robots(s, ROBOTS, out)
    box, first = s.boxes[0], STATE_SIZE * ROBOTS
    for i in range(3):
        out[first + i] = box.position_m[i]
        out[first + 3 + i] = box.velocity_mps[i]
        out[first + 6 + i] = box.turn_radps[i]
    for i in range(4):
        out[first + 9 + i] = box.quaternion[i]
    out[first + 13], out[first + 14] = s.goal_m[0], s.goal_m[1]


def scene() -> Any:
    """The model (``mujoco.MjModel``)."""
    mujoco = import_mujoco()
    spec = mujoco.MjSpec()
    floor(spec)
    for k in range(ROBOTS):
        add_quadruped(spec, f"robot_{k}", COLORS[k])
    box = spec.worldbody.add_body(name="box", pos=[0.0, 0.0, HALF_M[2]])
    box.add_freejoint(name="box_free")
    box.add_geom(
        type=mujoco.mjtGeom.mjGEOM_BOX,
        size=list(HALF_M),
        mass=BOX_KG,
        rgba=[0.79, 0.62, 0.36, 1.0],
        friction=[0.3, 0.02, 0.01],
        priority=1,  # else the larger friction of floor and box decides
    )
    return compiled_spec(spec, eye=(-1.7, -2.3, 1.7), target=(0.3, 0.0, 0.1))


def game(
    reward: Literal["dense", "sparse"] = "dense",
    dtype: Literal["float32", "float64"] = "float32",
) -> Game:
    """The rules of `palaestra/QuadPushBox-v0`.

    Args:
        reward: ``"dense"`` or ``"sparse"``.
        dtype: Of observations and rewards.

    Raises:
        ValueError: A word that is none of these.
    """
    check_word("reward", reward, ("dense", "sparse"))
    check_word("dtype", dtype, ("float32", "float64"))
    number: Any = "f8" if dtype == "float64" else "f4"
    seen = (
        *own_fields(number),
        mates(1, number),
        real("box_m", 2, "m", "to the box's middle: ahead and to the left", number),
        Field("box_heading", (2,), -1, 1, "1", "cosine and sine of the box's heading against the own", number),
        real("goal_m", 2, "m", "to the goal: ahead and to the left", number),
    )
    q, v = POSITIONS * ROBOTS, VELOCITIES * ROBOTS
    box = (
        Copy("boxes", 0, "position_m", "qpos", q),
        Copy("boxes", 0, "quaternion", "qpos", q + 3),
        Copy("boxes", 0, "velocity_mps", "qvel", v),
        Copy("boxes", 0, "turn_radps", "qvel", v + 3),
    )
    return Game(
        name="QuadPushBox",
        roles=(Role("robot", tuple(f"robot_{k}" for k in range(ROBOTS)), seen, (ACTION,)),),
        state=(
            ("robots", ROBOT, (ROBOTS,)),
            ("boxes", BOX, (1,)),
            (DIVERGED, "f8"),
            ("last", "f8", (ROBOTS, 3)),
            ("goal_m", "f8", (2,)),
            ("distance_m", "f8"),
            ("period", "i8"),
        ),
        reset=reset,
        command=command,
        evaluate=evaluate,
        observe=observe,
        script=script,
        scripts=("push",),
        default_opponent="push",
        periods=PERIODS,
        physics="palaestra.robots.engine:MujocoEngine",
        physics_options=options(scene, (), ROBOTS, box),
        engine_version=version,
        horizon=150,
        info=(
            Field("distance_m", (), 0, INF, "m", "from the box's middle to the goal", "f8", checked=(0.0, 100.0)),
            Field("reward_progress", (), -INF, INF, "1", "for progress", "f8", checked=(-10.0, 10.0)),
            Field("reward_done", (), 0, 1, "1", "for the end", "f8"),
            Field("reward_fall", (), -1, 0, "1", "for a fall", "f8"),
        ),
        end_reasons=("done", "fallen"),
        truncation_reasons=("diverged",),
        reward_dtype=number,
        global_state=global_state,
        global_state_size=STATE_SIZE * ROBOTS + 15,
        world=World(robots=ROBOTS, is_dense=int(reward == "dense")),
        render="palaestra.robots.picture:draw",
        render_fps=10.0,
    )
