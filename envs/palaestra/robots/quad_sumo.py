"""Two quadrupeds push each other out of a ring.

## Description
Two quadruped robots face each other in a ring. The one whose trunk leaves it, or that falls, loses. A low-level trot
walks as an agent commands. The task is akin to `go1wrestling` of MQE (Xiong et al., "MQE: Unleashing the Power of
Interaction with Multi-agent Quadruped Environment", arXiv 2403.16015); rules and body are our own.

## Action Space
<!-- table: action -->

A decision is 0.1 s. Commands that are longer than 1 together are shortened to 1.

## Observation Space
<!-- table: observation -->

Forces on feet are those before the last 5 ms.

## Rewards
Zero-sum. 1 for the winner, -1 for the loser, 0 for a draw. `reward="dense"` adds metres by which the opponent has gone
outwards minus those by which the robot has, divided by the radius of the ring.

## Starting State
The robots stand opposite, 0.7 m from the middle, each within 0.1 m and 0.3 rad of its place and of looking at the
other; the line between them has any direction.

## Episode End
- terminated: `out`, a trunk's middle has left the ring; `fallen`, a trunk is lower than 0.14 m or tilted by 60 degrees.
  Both at once are a draw.
- truncated: `diverged`, MuJoCo has given the match up; or the horizon, 15 s: a draw.

## Arguments
`reward`: `"sparse"` or `"dense"`. `dtype`: `"float32"` or `"float64"`, of observations and rewards. The script `shove`
pushes the opponent outwards from the middle. Parameters:

<!-- table: parameters -->

## Version History
v0: initial version.
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

from palaestra.game import DRAW, TERMINATED, TRUNCATED, Game, Role, check_word, uniform
from palaestra.robots.engine import DIVERGED, compiled_spec, import_mujoco, version
from palaestra.robots.quad_parts import (
    ACTION,
    PERIODS,
    STATE_SIZE,
    has_fallen,
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
from palaestra.robots.quadruped import ROBOT, add_quadruped, floor

RING_M = 1.5
START_M = 0.7
OUT, FALLEN, LOST = 2, 3, 4
"""Numbers of the end reasons."""


class World(NamedTuple):
    """What differs between variants.

    Attributes:
        robots: Number of robots.
        is_dense: Whether ways outwards are paid.
    """

    robots: int
    is_dense: int


def reset(s, world):
    """The robots stand opposite."""
    line = uniform(s, -math.pi, math.pi)
    for k in range(2):
        toward = line + math.pi * k  # from the middle to the robot
        x = START_M * math.cos(toward) + uniform(s, -0.1, 0.1)
        y = START_M * math.sin(toward) + uniform(s, -0.1, 0.1)
        place(s.robots[k], x, y, toward + math.pi + uniform(s, -0.3, 0.3))
        s.radius_m[k] = radius(s.robots[k])


def radius(robot):
    """From the middle of the ring."""
    x, y = robot.position_m[0], robot.position_m[1]
    return math.sqrt(x * x + y * y)


def command(s, world, actions, scratch):
    """Both robots trot."""
    obey(s, 0, actions.robot[0])
    obey(s, 1, actions.robot[1])


def evaluate(s, world, rewards, scratch):
    """Pays both, and ends the match."""
    lost_0, lost_1, fallen, lead = 0, 0, 0, 0.0
    for k in range(2):
        robot = s.robots[k]
        fell, own = has_fallen(robot), radius(robot)
        lead += (2 * k - 1) * (own - s.radius_m[k]) / RING_M
        s.radius_m[k] = own
        fallen += fell
        if k == 0:
            lost_0 = fell or own > RING_M
        else:
            lost_1 = fell or own > RING_M
    if s.diverged != 0.0:
        s.info.end_reason, s.info.winner = LOST, DRAW
        return TRUNCATED
    paid = lead if world.is_dense else 0.0
    result = 0
    if lost_0 or lost_1:
        s.info.end_reason = FALLEN if fallen else OUT
        s.info.winner = DRAW if lost_0 and lost_1 else (1 if lost_0 else 0)
        paid += 1.0 * lost_1 - 1.0 * lost_0
        result = TERMINATED
    rewards[0] += paid
    rewards[1] -= paid
    return result


def observe(s, world, observations, scratch):
    """A robot sees itself, the other, and the middle of the ring."""
    for k in range(2):
        seen = observations.robot[k]
        observe_self(s, k, seen)
        observe_mates(s, k, 2, seen)
        to_frame(s.robots[k], 0.0, 0.0, seen.middle_m)


def script(s, world, slot, which, actions, scratch):
    """`shove`: to the middle when farther out than the opponent, else through it, outwards, slowly: few trip then."""
    robot, other, action = s.robots[slot], s.robots[1 - slot], actions.robot[slot]
    out = max(radius(other), 0.01)
    x = other.position_m[0] * (1.0 + 0.3 / out)
    y = other.position_m[1] * (1.0 + 0.3 / out)
    if radius(robot) > min(1.1, out):
        x, y = 0.0, 0.0
    look = math.atan2(other.position_m[1] - robot.position_m[1], other.position_m[0] - robot.position_m[0])
    steer(robot, action, x, y, look, 1.6)


def global_state(s, world, out):
    """Places, orientations, joints and velocities of both robots."""
    write_robots(s, 2, out)


def scene() -> Any:
    """The model (``mujoco.MjModel``); the ring is drawn, it stops nobody."""
    mujoco = import_mujoco()
    spec = mujoco.MjSpec()
    floor(spec)
    for k in range(2):
        add_quadruped(spec, ("red_0", "blue_0")[k], ((0.80, 0.20, 0.17), (0.17, 0.40, 0.75))[k])
    spec.worldbody.add_geom(
        type=mujoco.mjtGeom.mjGEOM_CYLINDER,
        size=[RING_M, 0.002, 0.0],
        rgba=[0.87, 0.80, 0.62, 1.0],
        contype=0,
        conaffinity=0,
    )
    return compiled_spec(spec, eye=(-0.9, -2.6, 1.9), target=(0.0, 0.0, 0.1))


def game(
    reward: Literal["sparse", "dense"] = "sparse",
    dtype: Literal["float32", "float64"] = "float32",
) -> Game:
    """The rules of `palaestra/QuadSumo-v0`.

    Args:
        reward: ``"sparse"`` or ``"dense"``.
        dtype: Of observations and rewards.

    Raises:
        ValueError: A word that is none of these.
    """
    check_word("reward", reward, ("sparse", "dense"))
    check_word("dtype", dtype, ("float32", "float64"))
    number: Any = "f8" if dtype == "float64" else "f4"
    seen = (
        *own_fields(number),
        mates(1, number),
        real("middle_m", 2, "m", "to the middle of the ring: ahead and to the left", number),
    )
    return Game(
        name="QuadSumo",
        roles=(Role("robot", ("red_0", "blue_0"), seen, (ACTION,)),),
        state=(
            ("robots", ROBOT, (2,)),
            (DIVERGED, "f8"),
            ("last", "f8", (2, 3)),
            ("radius_m", "f8", (2,)),
        ),
        reset=reset,
        command=command,
        evaluate=evaluate,
        observe=observe,
        script=script,
        scripts=("shove",),
        periods=PERIODS,
        physics="palaestra.robots.engine:MujocoEngine",
        physics_options=options(scene, (), 2),
        engine_version=version,
        horizon=150,
        end_reasons=("out", "fallen"),
        truncation_reasons=("diverged",),
        reward_dtype=number,
        global_state=global_state,
        global_state_size=2 * STATE_SIZE,
        world=World(robots=2, is_dense=int(reward == "dense")),
        zero_sum=True,
        symmetric_teams=True,
        default_opponent="shove",
        render="palaestra.robots.picture:draw",
        render_fps=10.0,
    )
