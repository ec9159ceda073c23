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
`low_level`, `randomise`, `sensor_noise` and `body`: [change the robots](../guides/robots.md).
Our body is under the MIT licence, `body="menagerie:unitree_go1"` and `"menagerie:unitree_go2"` under BSD-3-Clause.
The script `shove` pushes the opponent away, from the side of the middle.

<!-- table: options -->

<!-- table: parameters -->

## Version History
v0: initial version.
"""

from __future__ import annotations

import math
from typing import Any

from palaestra.game import DRAW, TERMINATED, TRUNCATED, Game, uniform, with_options
from palaestra.games.robots.engine import compiled_spec, import_mujoco
from palaestra.games.robots.parts import AHEAD_LEFT, real, start_noise
from palaestra.games.robots.quad_parts import DUEL_OPTIONS, TEAM_COLORS, has_fallen, next_period, place, quad_game, vary
from palaestra.games.robots.quad_sight import mates, observe_mates, observe_self, to_frame, write_robots
from palaestra.games.robots.quadruped import OWN, Build, add_quadruped, quad_spec
from palaestra.games.robots.trot import steer

RING_M = 1.5
START_M = 0.7
STEEP = 0.92
"""Cosine of the tilt: the script lets go of the opponent at a smaller one."""
OUT, FALLEN, LOST = 2, 3, 4
"""Numbers of the end reasons."""


def reset(s, world):
    """The robots stand opposite."""
    line = uniform(s, -math.pi, math.pi)
    for k in range(2):
        toward = line + math.pi * k  # from the middle to the robot
        x = START_M * math.cos(toward) + uniform(s, -0.1, 0.1)
        y = START_M * math.sin(toward) + uniform(s, -0.1, 0.1)
        place(s.robots[k], x, y, toward + math.pi + uniform(s, -0.3, 0.3))
        s.radius_m[k] = radius(s.robots[k])
    vary(s, world)


def radius(robot):
    """From the middle of the ring."""
    x, y = robot.position_m[0], robot.position_m[1]
    return math.sqrt(x * x + y * y)


def evaluate(s, world, rewards, scratch):
    """Pays both, and ends the match."""
    next_period(s, world)
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
    start_noise(s, scratch)
    for k in range(2):
        seen = observations.robot[k]
        observe_self(s, world, k, scratch, seen)
        observe_mates(s, k, 2, seen)
        to_frame(s.robots[k], 0.0, 0.0, seen.middle_m)


def script(s, world, slot, which, actions, scratch):
    """`shove`: to the middle when farther out than the opponent, else straight through it; back when tilted by it."""
    robot, other, action = s.robots[slot], s.robots[1 - slot], actions.robot[slot]
    x, y = robot.position_m[0], robot.position_m[1]
    way_x, way_y = other.position_m[0] - x, other.position_m[1] - y
    distance, look = math.sqrt(way_x * way_x + way_y * way_y), math.atan2(way_y, way_x)
    tilt_x, tilt_y = robot.quaternion[1], robot.quaternion[2]
    is_tilted = distance < 0.6 and 1.0 - 2.0 * (tilt_x * tilt_x + tilt_y * tilt_y) < STEEP
    go = -0.5 if is_tilted else distance + 0.5
    x, y = x + go * math.cos(look), y + go * math.sin(look)
    if not is_tilted and radius(robot) > radius(other):
        x, y = 0.0, 0.0
    steer(robot, action, x, y, look, 1.3)


def global_state(s, world, out):
    """Both robots."""
    write_robots(s, world, out)


def scene(build: Build = OWN) -> Any:
    """The model (``mujoco.MjModel``); the ring is drawn, it stops nobody."""
    spec = quad_spec()
    for k in range(2):
        add_quadruped(spec, ("red_0", "blue_0")[k], TEAM_COLORS[k], build)
    spec.worldbody.add_geom(
        type=import_mujoco().mjtGeom.mjGEOM_CYLINDER,
        size=[RING_M, 0.002, 0.0],
        rgba=[0.87, 0.80, 0.62, 1.0],
        contype=0,
        conaffinity=0,
    )
    return compiled_spec(spec, eye=(-0.9, -2.6, 1.9), target=(0.0, 0.0, 0.1))


@with_options(*DUEL_OPTIONS)
def game(options: Any) -> Game:
    """The rules of `palaestra/QuadSumo-v0`."""

    def sees(number: str) -> tuple[Any, ...]:
        return mates(1, number), real(
            "middle_m", 2, "m", "to the middle of the ring: ahead and to the left", number, AHEAD_LEFT
        )

    return quad_game(
        options,
        "QuadSumo",
        ("red_0", "blue_0"),
        sees,
        scene,
        horizon=150,
        scripts=("shove",),
        state=(("radius_m", "f8", (2,)),),
        reset=reset,
        evaluate=evaluate,
        observe=observe,
        script=script,
        global_state=global_state,
        end_reasons=("out", "fallen"),
        zero_sum=True,
        symmetric_teams=True,
    )
