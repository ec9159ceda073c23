"""Quadrupeds pass a narrow gate, one after the other.

## Description
Two to five quadruped robots stand in a row before a wall with one gate, 0.9 m wide. All have to pass it. A low-level
trot walks as an agent commands. The task is `go1gate` of MQE (Xiong
et al., "MQE: Unleashing the Power of Interaction with Multi-agent Quadruped Environment", arXiv 2403.16015), on a body
and with rewards of our own.

## Action Space
<!-- table: action -->

A decision is 0.1 s. Commands that are longer than 1 together are shortened to 1.

## Observation Space
<!-- table: observation -->

Forces on feet are those before the last 5 ms.

## Rewards
Paid to all. `reward="dense"`: metres that the robots have come nearer to 0.5 m behind the gate, by way of the gate's
middle, over their number (`reward_progress`); 1 when all have passed (`reward_done`); -1 for a fall (`reward_fall`).
`reward="sparse"`: 1 when all have passed, alone.

## Starting State
The robots stand 1.6 m before the wall, 0.8 m apart, each within 0.1 m and 0.2 rad of its place.

## Episode End

- terminated: `done`, all robots are 0.5 m behind the wall; `fallen`, a trunk is lower than 0.14 m or tilted by 60
  degrees.
- truncated: `diverged`, MuJoCo has given the match up; or the horizon, 5 (n + 1) s for n robots.

## Arguments
`low_level`, `randomise`, `sensor_noise` and `body`: [change the robots](../guides/robots.md).
Our body is under the MIT licence, `body="menagerie:unitree_go1"` and `"menagerie:unitree_go2"` under BSD-3-Clause.
The script `turns` lets one robot pass after the other.

<!-- table: options -->

<!-- table: parameters -->

## Version History
v0: initial version.
"""

from __future__ import annotations

import math
from typing import Any

from palaestra.game import Field, Game, Option, uniform, with_options
from palaestra.games.robots.engine import compiled_spec
from palaestra.games.robots.parts import real, start_noise
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
from palaestra.games.robots.quad_sight import mates, observe_mates, observe_self, write_robots
from palaestra.games.robots.quadruped import OWN, Build, add_quadruped, add_wall, quad_spec, to_go
from palaestra.games.robots.trot import heading, steer

MOST = 5
START_M, APART_M = 1.6, 0.8
"""From the row to the wall, between robots."""
GATE_M, BEHIND_M = 0.9, 0.5
"""Width of the gate; how far behind the wall a robot has passed."""


def reset(s, world):
    """The robots stand in a row before the wall, which is at x = 0."""
    for k in range(world.robots):
        x, y = -START_M + uniform(s, -0.1, 0.1), APART_M * (k - 0.5 * (world.robots - 1)) + uniform(s, -0.1, 0.1)
        place(s.robots[k], x, y, uniform(s, -0.2, 0.2))
        s.to_go_m[k] = to_go(s.robots[k], BEHIND_M)
    vary(s, world)


def evaluate(s, world, rewards, scratch):
    """Pays the team, and ends the match."""
    progress, passed = 0.0, 0
    for k in range(world.robots):
        left = to_go(s.robots[k], BEHIND_M)
        progress += s.to_go_m[k] - left
        s.to_go_m[k] = left
        passed += left == 0.0
    s.info.passed = passed
    return pay_team(s, world, rewards, progress / world.robots, passed == world.robots)


def observe(s, world, observations, scratch):
    """A robot sees itself, the others, and the gate."""
    start_noise(s, scratch)
    for k in range(world.robots):
        seen = observations.robot[k]
        observe_self(s, world, k, scratch, seen)
        observe_mates(s, k, world.robots, seen)
        x, y = s.robots[k].position_m[0], s.robots[k].position_m[1]
        seen.gate_m[0], seen.gate_m[1] = -x, -y
        turned = heading(s.robots[k])
        seen.heading[0], seen.heading[1] = math.cos(turned), math.sin(turned)


def script(s, world, slot, which, actions, scratch):
    """`turns`: a robot passes when all before it have passed, the nearest to the gate's middle first."""
    robot, action = s.robots[slot], actions.robot[slot]
    own, before, ahead = rank(s, world, slot), 0, 0
    for k in range(world.robots):
        if rank(s, world, k) < own:
            before += s.robots[k].position_m[0] < 0.35
            ahead += 1
    x, y = robot.position_m[0], robot.position_m[1]
    if x > 0.3:  # out of the way of those that follow
        side = 1.0 if ahead % 2 else -1.0
        steer(robot, action, 0.8 + 0.45 * (world.robots - 1 - ahead), 0.5 * side, 0.0, 0.3)
    elif before > 0:
        steer(robot, action, x, y, 0.0, 0.3)
    elif x < -0.5 and abs(y) > 0.08:
        steer(robot, action, -0.75, 0.0, 0.0, 0.3)
    else:
        steer(robot, action, 1.2, 0.0, 0.0, 0.3)


def rank(s, world, k):
    """Order in which robots pass: from the middle of the row outwards."""
    return abs(2 * k - (world.robots - 1) + 0.5)


def global_state(s, world, out):
    """All robots."""
    write_robots(s, world, out)


def scene(robots: int, build: Build = OWN) -> Any:
    """The model (``mujoco.MjModel``)."""
    spec = quad_spec()
    add_wall(spec, 0.5 * (APART_M * robots + 1.0), GATE_M)
    for k in range(robots):
        add_quadruped(spec, f"robot_{k}", COLORS[k], build)
    return compiled_spec(
        spec, eye=(-2.2 - 0.2 * robots, -1.3 - 0.3 * robots, 1.6 + 0.1 * robots), target=(-0.2, 0.0, 0.1)
    )


@with_options(Option("robots", 2, "how many pass the gate", low=2, high=MOST), *QUAD_OPTIONS)
def game(options: Any) -> Game:
    """The rules of `palaestra/QuadGate2-v0` and its kin."""
    robots = options.robots

    def sees(number: str) -> tuple[Any, ...]:
        return (
            mates(robots - 1, number, MOST - 1),
            real(
                "gate_m",
                2,
                "m",
                "from the robot to the gate's middle: across the wall, along it",
                number,
                ("across", "along"),
            ),
            Field(
                "heading",
                (2,),
                -1,
                1,
                "1",
                "cosine and sine of the heading, 0 is across the wall",
                number,
                parts=("cosine", "sine"),
            ),
        )

    return quad_game(
        options,
        f"QuadGate{robots}",
        tuple(f"robot_{k}" for k in range(robots)),
        sees,
        scene,
        arguments=(robots,),
        state=(("to_go_m", "f8", (MOST,)),),
        capacity=MOST,
        horizon=50 * (robots + 1),
        scripts=("turns",),
        reset=reset,
        evaluate=evaluate,
        observe=observe,
        script=script,
        global_state=global_state,
        plots=("passed",),
        info=(
            Field("passed", (), 0, MOST, "1", "robots that have passed", "i8"),
            *TEAM_INFO,
        ),
        end_reasons=TEAM_ENDS,
    )
