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

`observation="goal"` shows a dict for hindsight replay: `observation`, and in the frame of the floor `achieved_goal`,
the box's place, and `desired_goal`. With `reward="sparse"` faces have `compute_reward` (with `dtype="float32"`, goals
are rounded to 1e-7 m). A team of two is one agent to `gymnasium.make`: each field has a row a robot, both rows of a
goal are the same.

## Rewards
Paid to both. `reward="dense"`: metres that the box's middle has come nearer to the goal (`reward_progress`); 1 when it
is there (`reward_done`); -1 for a fall (`reward_fall`). `reward="sparse"`: 1 when it is there, alone.

## Starting State
The box is within 0.1 m of the origin and within 0.15 rad of lying across the way. The goal is 1.5 m ahead and up to
0.3 m aside. The robots stand 1 m behind, 0.35 m to both sides, each within 0.1 m and 0.2 rad of its place.

## Episode End

- terminated: `done`, the box's middle is less than 0.3 m from the goal; `fallen`, a trunk is lower than 0.14 m or
  tilted by 60 degrees.
- truncated: `diverged`, MuJoCo has given the match up; or the horizon, 15 s.

## Arguments
`low_level`, `randomise`, `sensor_noise` and `body`: [change the robots](../guides/robots.md).
Our body is under the MIT licence, `body="menagerie:unitree_go1"` and `"menagerie:unitree_go2"` under BSD-3-Clause.
The script `push` pushes at two points so that the box turns to the goal.

<!-- table: options -->

<!-- table: parameters -->

## Version History
v0: initial version.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from palaestra.game import Field, Game, Representation, uniform, with_options
from palaestra.games.robots.engine import compiled_spec, import_mujoco
from palaestra.games.robots.parts import AHEAD_LEFT, FREE, INF, free_copies, real, start_noise, write_free
from palaestra.games.robots.quad_parts import (
    COLORS,
    QUAD_OPTIONS,
    TEAM_ENDS,
    TEAM_INFO,
    pay_team,
    place,
    quad_game,
    vary,
)
from palaestra.games.robots.quad_sight import (
    STATE_SIZE,
    mates,
    measure,
    observe_mates,
    observe_self,
    to_frame,
    write_robots,
)
from palaestra.games.robots.quadruped import OWN, POSITIONS, VELOCITIES, Build, add_quadruped, quad_spec
from palaestra.games.robots.trot import heading, steer

ROBOTS = 2
HALF_M = (0.25, 0.5, 0.2)
"""Half sizes of the box: along the way, across it, upwards."""
BOX_KG = 8.0
GOAL_M, ASIDE_M, NEAR_M = 1.5, 0.3, 0.3


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
    vary(s, world)


def distance(s):
    """From the box's middle to the goal."""
    x, y = s.goal_m[0] - s.boxes[0].position_m[0], s.goal_m[1] - s.boxes[0].position_m[1]
    return math.sqrt(x * x + y * y)


def evaluate(s, world, rewards, scratch):
    """Pays the team, and ends the match."""
    left = distance(s)
    progress = s.distance_m - left
    s.distance_m = s.info.distance_m = left
    return pay_team(s, world, rewards, progress, left < NEAR_M)


def observe(s, world, observations, scratch):
    """A robot sees itself, the other, the box and the goal."""
    start_noise(s, scratch)
    for k in range(ROBOTS):
        seen, robot, box = observations.robot[k], s.robots[k], s.boxes[0]
        observe_self(s, world, k, scratch, seen)
        observe_mates(s, k, ROBOTS, seen)
        to_frame(robot, box.position_m[0], box.position_m[1], seen.box_m)
        turned = heading(box) - heading(robot)
        seen.box_heading[0], seen.box_heading[1] = math.cos(turned), math.sin(turned)
        to_frame(robot, s.goal_m[0], s.goal_m[1], seen.goal_m)


def observe_goal(s, world, observations, scratch):
    """What a robot measures of itself, how it stands to the floor, the other and the box; the goals."""
    start_noise(s, scratch)
    first, box = len(scratch.own), s.boxes[0]
    for k in range(ROBOTS):
        seen, robot, mate = observations.robot[k], s.robots[k], s.robots[1 - k]
        measure(s, world, k, scratch)
        for i in range(first):
            seen.observation[i] = scratch.own[i]
        own, out = heading(robot), seen.observation[first:]
        out[0], out[1] = math.cos(own), math.sin(own)
        to_frame(robot, mate.position_m[0], mate.position_m[1], out[2:])
        out[4], out[5] = math.cos(heading(mate) - own), math.sin(heading(mate) - own)
        to_frame(robot, box.position_m[0], box.position_m[1], out[6:])
        out[8], out[9] = math.cos(heading(box) - own), math.sin(heading(box) - own)
        for i in range(2):
            seen.achieved_goal[i], seen.desired_goal[i] = box.position_m[i], s.goal_m[i]


def reward_goal(achieved: np.ndarray, desired: np.ndarray, info: Any) -> np.ndarray:
    """1 where the box is at the goal, else 0: what ``reward="sparse"`` pays.

    Args:
        achieved: Places of the box, ``[N, 2]``, or of a team ``[N, robots, 2]``: each robot is shown the same.
        desired: Goals, likewise.
        info: Not used.
    """
    ways = (desired - achieved).reshape(len(achieved), -1, 2)
    return np.where((np.sqrt((ways * ways).sum(-1)) < NEAR_M).all(-1), 1.0, 0.0)


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
    """Both robots; place, velocity, turning and orientation of the box; the goal."""
    write_robots(s, world, out)
    first = STATE_SIZE * ROBOTS
    write_free(s.boxes[0], first, out)
    out[first + 13], out[first + 14] = s.goal_m[0], s.goal_m[1]


def scene(build: Build = OWN) -> Any:
    """The model (``mujoco.MjModel``)."""
    spec = quad_spec()
    for k in range(ROBOTS):
        add_quadruped(spec, f"robot_{k}", COLORS[k], build)
    box = spec.worldbody.add_body(name="box", pos=[0.0, 0.0, HALF_M[2]])
    box.add_freejoint(name="box_free")
    box.add_geom(
        type=import_mujoco().mjtGeom.mjGEOM_BOX,
        size=list(HALF_M),
        mass=BOX_KG,
        rgba=[0.79, 0.62, 0.36, 1.0],
        friction=[0.3, 0.02, 0.01],
        priority=2,  # else the larger friction of floor and box decides
    )
    return compiled_spec(spec, eye=(-1.7, -2.3, 1.7), target=(0.3, 0.0, 0.1))


@with_options(*QUAD_OPTIONS)
def game(options: Any) -> Game:
    """The rules of `palaestra/QuadPushBox-v0`."""

    def sees(number: str) -> tuple[Any, ...]:
        return (
            mates(1, number),
            real("box_m", 2, "m", "to the box's middle: ahead and to the left", number, AHEAD_LEFT),
            Field(
                "box_heading",
                (2,),
                -1,
                1,
                "1",
                "cosine and sine of the box's heading against the own",
                number,
                parts=("cosine", "sine"),
            ),
            real("goal_m", 2, "m", "to the goal: ahead and to the left", number, AHEAD_LEFT),
        )

    made = quad_game(
        options,
        "QuadPushBox",
        tuple(f"robot_{k}" for k in range(ROBOTS)),
        sees,
        scene,
        bodies=free_copies("boxes", 0, POSITIONS * ROBOTS, VELOCITIES * ROBOTS),
        state=(("boxes", FREE, (1,)), ("goal_m", "f8", (2,)), ("distance_m", "f8")),
        state_size=15,
        horizon=150,
        scripts=("push",),
        reset=reset,
        evaluate=evaluate,
        observe=observe,
        script=script,
        global_state=global_state,
        plots=("distance_m",),
        info=(
            Field("distance_m", (), 0, INF, "m", "from the box's middle to the goal", "f8", checked=(0.0, 100.0)),
            *TEAM_INFO,
        ),
        end_reasons=TEAM_ENDS,
    )
    size, number = made.scratch_dtype["own"].shape[0] + 10, made.reward_dtype
    about = "of itself, its heading on the floor, then offset and heading of mate and box in the own frame"
    goal = (
        real("observation", size, "1", about, number),
        real("achieved_goal", 2, "m", "the box's middle on the floor", number),
        real("desired_goal", 2, "m", "the goal on the floor", number),
    )
    shown = Representation("places of the box as goals", observe_goal, {"robot": goal}, default_form="dict")
    paid = f"{__name__}:reward_goal" if options.reward == "sparse" else None
    return replace(made, representations={"goal": shown}, goal_reward=paid)
