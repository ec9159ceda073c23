"""Two quadrupeds drive a sheep through a gate.

## Description
Two quadruped robots stand behind a sheep that flees from them. They have to drive it through the gate of a wall,
1.2 m wide. A low-level trot walks as an agent commands. The task is `go1sheep` with one sheep of MQE (Xiong et al.,
"MQE: Unleashing the Power of Interaction with Multi-agent Quadruped Environment", arXiv 2403.16015), on a body and with
a sheep and rewards of our own.

The sheep is a smooth body of 8 kg that slides over the floor and does not turn. From each robot that is nearer than
1.2 m it wants to move away, with 1.4 (1 - d / 1.2) m/s at a distance of d metres; both add up, to at most 0.8 m/s. It
stands where no robot is near. Wall and robots block it.

## Action Space
<!-- table: action -->

A decision is 0.1 s. Commands that are longer than 1 together are shortened to 1.

## Observation Space
<!-- table: observation -->

Forces on feet are those before the last 5 ms.

## Rewards
Paid to both. `reward="dense"`: metres that the sheep has come nearer to 0.3 m behind the gate, by way of the gate's
middle (`reward_progress`); 1 when it has passed (`reward_done`); -1 for a fall (`reward_fall`). `reward="sparse"`: 1
when it has passed, alone.

## Starting State
The sheep is 1.8 m before the wall, within 0.2 m, and up to 0.8 m beside the gate's middle. The robots stand 3.4 m
before the wall, 0.6 m to both sides, each within 0.1 m and 0.2 rad of its place.

## Episode End

- terminated: `done`, the sheep's middle is 0.3 m behind the wall; `fallen`, a trunk is lower than 0.14 m or tilted by
  60 degrees.
- truncated: `diverged`, MuJoCo has given the match up; or the horizon, 15 s.

## Arguments
`low_level`, `randomise`, `sensor_noise` and `body`: [change the robots](../guides/robots.md).
Our body is under the MIT licence, `body="menagerie:unitree_go1"` and `"menagerie:unitree_go2"` under BSD-3-Clause.
The script `herd` keeps both robots behind the sheep, as seen from the gate.

<!-- table: options -->

<!-- table: parameters -->

## Version History
v0: initial version.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from palaestra.game import Field, Game, uniform, with_options
from palaestra.games.robots import quad_parts
from palaestra.games.robots.engine import Copy, compiled_spec, import_mujoco
from palaestra.games.robots.parts import AHEAD_LEFT, INF, real, start_noise
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
    observe_mates,
    observe_self,
    to_axes,
    to_frame,
    write_robots,
)
from palaestra.games.robots.quadruped import (
    OWN,
    POSITIONS,
    VELOCITIES,
    Build,
    add_quadruped,
    add_wall,
    quad_spec,
    to_go,
)
from palaestra.games.robots.trot import heading, steer

ROBOTS = 2
START_M, SHEEP_M, ASIDE_M = 3.4, 1.8, 0.8
"""From robots to the wall, from the sheep to it, most from the sheep to the middle of the gate along the wall."""
GATE_M, BEHIND_M = 1.2, 0.3
"""Width of the gate; how far behind the wall the sheep has passed."""
WALL_M = 15.6
"""End of the wall on each side: farther than a sheep comes in a match."""
SHEEP_KG, RADIUS_M, TALL_M = 8.0, 0.2, 0.44
"""The sheep: mass, radius, height."""
FEAR_MPS, FEAR_M, TOP_MPS = 1.4, 1.2, 0.8
"""Speed away from a robot that touches its middle, distance from which on it is afraid, its top speed."""
GAIN_PS = 5.0
"""Its acceleration for each m/s that it is slower than it wants."""
SHEEP = np.dtype([("position_m", "f8", (2,)), ("velocity_mps", "f8", (2,)), ("force_n", "f8", (2,))], align=True)
"""The sheep in the match record; ``force_n`` is what its legs would do, an input of MuJoCo."""


def reset(s, world):
    """The sheep stands between the wall, which is at x = 0, and the robots."""
    sheep = s.sheep[0]
    sheep.position_m[0] = -SHEEP_M + uniform(s, -0.2, 0.2)
    sheep.position_m[1] = uniform(s, -ASIDE_M, ASIDE_M)
    for k in range(ROBOTS):
        x, y = -START_M + uniform(s, -0.1, 0.1), 0.6 * (2 * k - 1) + uniform(s, -0.1, 0.1)
        place(s.robots[k], x, y, uniform(s, -0.2, 0.2))
    s.info.to_go_m = to_go(sheep, BEHIND_M)
    vary(s, world)


def command(s, world, actions, scratch):
    """Robots trot as they are commanded, the sheep flees."""
    quad_parts.command(s, world, actions, scratch)
    flee(s)


def command_joints(s, world, actions, scratch):
    """Joints of robots go where they are commanded, the sheep flees."""
    quad_parts.command_joints(s, world, actions, scratch)
    flee(s)


def flee(s):
    """The sheep's force, towards the velocity that it wants: away from each robot, the faster the nearer it is."""
    sheep = s.sheep[0]
    wanted_x, wanted_y = 0.0, 0.0
    for k in range(ROBOTS):
        x = sheep.position_m[0] - s.robots[k].position_m[0]
        y = sheep.position_m[1] - s.robots[k].position_m[1]
        distance = max(math.sqrt(x * x + y * y), 0.01)
        speed = FEAR_MPS * max(1.0 - distance / FEAR_M, 0.0)
        wanted_x += speed * x / distance
        wanted_y += speed * y / distance
    share = TOP_MPS / max(math.sqrt(wanted_x * wanted_x + wanted_y * wanted_y), TOP_MPS)
    sheep.force_n[0] = SHEEP_KG * GAIN_PS * (share * wanted_x - sheep.velocity_mps[0])
    sheep.force_n[1] = SHEEP_KG * GAIN_PS * (share * wanted_y - sheep.velocity_mps[1])


def evaluate(s, world, rewards, scratch):
    """Pays the team, and ends the match."""
    before, s.info.to_go_m = s.info.to_go_m, to_go(s.sheep[0], BEHIND_M)
    return pay_team(s, world, rewards, before - s.info.to_go_m, s.info.to_go_m == 0.0)


def observe(s, world, observations, scratch):
    """A robot sees itself, the other, the sheep and the gate."""
    start_noise(s, scratch)
    for k in range(ROBOTS):
        seen, robot, sheep = observations.robot[k], s.robots[k], s.sheep[0]
        observe_self(s, world, k, scratch, seen)
        observe_mates(s, k, ROBOTS, seen)
        to_frame(robot, sheep.position_m[0], sheep.position_m[1], seen.sheep_m)
        to_axes(robot, sheep.velocity_mps[0], sheep.velocity_mps[1], seen.sheep_mps)
        to_frame(robot, 0.0, 0.0, seen.gate_m)
        seen.heading[0], seen.heading[1] = math.cos(heading(robot)), math.sin(heading(robot))


def script(s, world, slot, which, actions, scratch):
    """`herd`: robots keep to two points behind the sheep, as seen from the gate, to the right and to the left."""
    sheep, robot, action = s.sheep[0], s.robots[slot], actions.robot[slot]
    x, y = sheep.position_m[0], sheep.position_m[1]
    way = math.atan2(-y, 0.5 - x)  # where the sheep should go
    side = 2.0 * slot - 1.0
    spread = way + math.pi - 0.7 * side
    steer(robot, action, x + 0.7 * math.cos(spread), y + 0.7 * math.sin(spread), way, 0.5)


def global_state(s, world, out):
    """Both robots; place and velocity of the sheep."""
    write_robots(s, world, out)
    first = STATE_SIZE * ROBOTS
    for i in range(2):
        out[first + i], out[first + 2 + i] = s.sheep[0].position_m[i], s.sheep[0].velocity_mps[i]


def scene(build: Build = OWN) -> Any:
    """The model (``mujoco.MjModel``)."""
    mujoco = import_mujoco()
    spec = quad_spec()
    add_wall(spec, WALL_M, GATE_M)
    for k in range(ROBOTS):
        add_quadruped(spec, f"robot_{k}", COLORS[k], build)
    sheep = spec.worldbody.add_body(name="sheep", pos=[0.0, 0.0, 0.5 * TALL_M + 0.01])  # the floor does not rub it
    for axis in ([1, 0, 0], [0, 1, 0]):
        sheep.add_joint(type=mujoco.mjtJoint.mjJNT_SLIDE, axis=axis)
    sheep.add_geom(
        type=mujoco.mjtGeom.mjGEOM_CAPSULE,
        size=[RADIUS_M, 0.5 * TALL_M - RADIUS_M, 0.0],
        mass=SHEEP_KG,
        rgba=[0.96, 0.96, 0.94, 1.0],
        friction=[0.1, 0.02, 0.01],
        priority=2,  # else the larger friction of wall and robots decides
    )
    return compiled_spec(spec, eye=(-5.2, -3.1, 2.4), target=(-1.7, 0.0, 0.0))


@with_options(*QUAD_OPTIONS)
def game(options: Any) -> Game:
    """The rules of `palaestra/QuadShepherd-v0`."""

    def sees(number: str) -> tuple[Any, ...]:
        return (
            mates(1, number),
            real("sheep_m", 2, "m", "to the sheep's middle: ahead and to the left", number, AHEAD_LEFT),
            real("sheep_mps", 2, "m/s", "its velocity over the floor: ahead and to the left", number, AHEAD_LEFT),
            real("gate_m", 2, "m", "to the gate's middle: ahead and to the left", number, AHEAD_LEFT),
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

    q, v = POSITIONS * ROBOTS, VELOCITIES * ROBOTS
    return quad_game(
        options,
        "QuadShepherd",
        tuple(f"robot_{k}" for k in range(ROBOTS)),
        sees,
        scene,
        bodies=(Copy("sheep", 0, "position_m", "qpos", q), Copy("sheep", 0, "velocity_mps", "qvel", v)),
        inputs=(Copy("sheep", 0, "force_n", "qfrc_applied", v),),
        state=(("sheep", SHEEP, (1,)),),
        state_size=4,
        horizon=150,
        scripts=("herd",),
        reset=reset,
        command=command if options.low_level == "trot" else command_joints,
        evaluate=evaluate,
        observe=observe,
        script=script,
        global_state=global_state,
        plots=("to_go_m",),
        info=(
            Field("to_go_m", (), 0, INF, "m", "of the sheep, by way of the gate", "f8", checked=(0.0, 100.0)),
            *TEAM_INFO,
        ),
        end_reasons=TEAM_ENDS,
    )
