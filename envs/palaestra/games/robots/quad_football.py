"""Teams of quadrupeds play football.

## Description
One or two quadruped robots on each side push a ball into the other side's goal. A low-level trot walks as an agent
commands. The tasks are `go1football-1vs1` and `go1football-2vs2` of MQE (Xiong et al., "MQE: Unleashing the Power of
Interaction with Multi-agent Quadruped Environment", arXiv 2403.16015); rules, field and body are our own.

The field is 5 m long and 3 m wide; goals are 1.2 m wide. Boards enclose it; the ball cannot cross them. Those
beside a goal lead to it: there are no corners in which the ball is lost. The ball has a diameter of 0.28 m and a mass
of 0.3 kg; when it rolls it loses 0.5 m/s in a second.

## Action Space
<!-- table: action -->

A decision is 0.1 s. Commands that are longer than 1 together are shortened to 1.

## Observation Space
<!-- table: observation -->

All is in the robot's own frame, so both sides see alike. Forces on feet are those before the last 5 ms.

## Rewards
Zero-sum, paid to each robot of a team. 1 for the winners, -1 for the losers, 0 for a draw. `reward="dense"` adds metres
that the ball has gone towards the opponents' goal line, divided by the length of the field.

## Starting State
The ball is within 0.1 m of the middle. The robots stand in their own half, 0.9 to 1.5 m from the middle line, within
0.3 rad of looking at the ball: one against one up to 0.3 m aside, two against two 0.3 to 0.9 m to the left and to the
right.

## Episode End

- terminated: `scored`, the ball's middle is behind a goal line; `fallen`, a trunk is lower than 0.14 m or tilted by 60
  degrees: its team loses, both at once are a draw.
- truncated: `diverged`, MuJoCo has given the match up; or the horizon, 30 s: a draw.

## Arguments
`low_level`, `randomise`, `sensor_noise` and `body`: [change the robots](../guides/robots.md).
Our body is under the MIT licence, `body="menagerie:unitree_go1"` and `"menagerie:unitree_go2"` under BSD-3-Clause.
The script `attack` goes behind the ball and pushes it into the goal; of two robots the other one stays between ball and
own goal.

<!-- table: options -->

<!-- table: parameters -->

## Version History
v0: initial version.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from palaestra.game import DRAW, TERMINATED, TRUNCATED, Game, Option, uniform, with_options
from palaestra.games.robots.engine import compiled_spec, import_mujoco
from palaestra.games.robots.parts import AHEAD_LEFT, FREE, free_copies, real, start_noise, write_motion
from palaestra.games.robots.quad_parts import DUEL_OPTIONS, TEAM_COLORS, has_fallen, next_period, place, quad_game, vary
from palaestra.games.robots.quad_sight import (
    STATE_SIZE,
    mates,
    observe_mate,
    observe_self,
    to_axes,
    to_frame,
    write_robots,
)
from palaestra.games.robots.quadruped import OWN, POSITIONS, VELOCITIES, Build, add_quadruped, quad_spec
from palaestra.games.robots.trot import steer

MOST = 4
LINE_M, SIDE_M, POST_M = 2.5, 1.5, 0.6
"""From the middle to the goal lines, to the boards of the sides, to the posts along a goal line."""
SLANT_M, NET_M = 0.6, 0.4
"""From a goal line to where boards leave the sides; depth of a goal."""
BOARD_M, WALL_M = 0.3, 1.5
"""Height of boards, and of the walls that are not drawn: two robots can squeeze the ball 0.6 m up."""
BALL_M, BALL_KG = 0.14, 0.3
"""Radius: too wide for the legs, and for the trunk to get over it; mass."""
BALL_FRICTION = (0.4, 0.005, 0.01)
"""Sliding; spinning and rolling in m: on the floor it loses 0.5 m/s in a second."""
SCORED, FALLEN, LOST = 2, 3, 4
"""Numbers of the end reasons."""
BEHIND_M, EDGE_M, BACK_M, STEEP = 0.5, SIDE_M - 0.2, 0.4, 0.92
"""Of the script: how far behind the ball it goes; from the middle line along the field at most; how far it goes back
when its trunk is tilted, by which cosine."""
SLOW_M, APART_M, FORCE = 0.8, 0.6, 2.0
"""It is slower within this way; keeps this distance from robots; metres aside for each metre that is missing."""


def reset(s, world):
    """The ball is in the middle, red robots are on the side of negative x."""
    ball, size = s.balls[0], world.robots // 2
    ball.position_m[0], ball.position_m[1] = uniform(s, -0.1, 0.1), uniform(s, -0.1, 0.1)
    ball.position_m[2] = BALL_M
    ball.quaternion[0] = 1.0
    s.ball_x_m = ball.position_m[0]
    for k in range(world.robots):
        forward = way(world, k)
        aside = 0.6 * (size - 1.0) * (1.0 - 2.0 * (k % size))
        x = -forward * uniform(s, 0.9, 1.5)
        y = forward * (aside + uniform(s, -0.3, 0.3))
        toward = math.atan2(ball.position_m[1] - y, ball.position_m[0] - x)
        place(s.robots[k], x, y, toward + uniform(s, -0.3, 0.3))
    vary(s, world)


def way(world, k):
    """Whether the team of a robot attacks along x (1) or against it (-1)."""
    return 1.0 if 2 * k < world.robots else -1.0


def evaluate(s, world, rewards, scratch):
    """Pays both teams, and ends the match."""
    next_period(s, world)
    x, half = s.balls[0].position_m[0], world.robots // 2
    gone = x - s.ball_x_m
    s.ball_x_m = x
    if s.diverged != 0.0:
        s.info.end_reason, s.info.winner = LOST, DRAW
        return TRUNCATED
    red_fell, blue_fell = 0, 0
    for k in range(half):
        red_fell += has_fallen(s.robots[k])
        blue_fell += has_fallen(s.robots[half + k])
    won, result = 0.0, 0
    if abs(x) > LINE_M and abs(s.balls[0].position_m[1]) < POST_M:
        won, s.info.end_reason, result = (1.0 if x > 0.0 else -1.0), SCORED, TERMINATED
    elif red_fell or blue_fell:
        won = 1.0 * (blue_fell > 0) - 1.0 * (red_fell > 0)
        s.info.end_reason, result = FALLEN, TERMINATED
    if result:
        s.info.winner = DRAW if won == 0.0 else (0 if won > 0.0 else 1)
    paid = won + (gone / (2.0 * LINE_M) if world.is_dense else 0.0)
    for k in range(half):
        rewards[k] += paid
        rewards[half + k] -= paid
    return result


def observe(s, world, observations, scratch):
    """A robot sees itself, the others, the ball and the goals."""
    start_noise(s, scratch)
    ball, half = s.balls[0], world.robots // 2
    for k in range(world.robots):
        seen, robot, forward = observations.robot[k], s.robots[k], way(world, k)
        observe_self(s, world, k, scratch, seen)
        own = half * (k // half)
        for i in range(1, half):
            observe_mate(s, k, own + (k - own + i) % half, seen.mates[i - 1])
        for i in range(half):
            observe_mate(s, k, half - own + i, seen.mates[half - 1 + i])
        to_frame(robot, ball.position_m[0], ball.position_m[1], seen.ball_m)
        to_axes(robot, ball.velocity_mps[0], ball.velocity_mps[1], seen.ball_mps)
        to_frame(robot, forward * LINE_M, 0.0, seen.goal_m)
        to_frame(robot, -forward * LINE_M, 0.0, seen.own_goal_m)


def script(s, world, slot, which, actions, scratch):
    """`attack`: of a team the one nearest to the place behind the ball dribbles, the other one guards the goal."""
    robot, ball, half = s.robots[slot], s.balls[0], world.robots // 2
    forward, first = way(world, slot), slot // half * half
    x, y = ball.position_m[0], ball.position_m[1]
    back_x, back_y = behind(x, y, forward)
    own, is_nearest = distance(robot, back_x, back_y), True
    for k in range(first, first + half):
        is_nearest = is_nearest and (k == slot or own <= distance(s.robots[k], back_x, back_y))
    if is_nearest:
        look = math.atan2(y - back_y, x - back_x)
        to_x, to_y = dribble(robot, x, y, back_x, back_y, look)
    else:
        look = math.atan2(y - robot.position_m[1], x - robot.position_m[0])
        to_x, to_y = 0.4 * x - 0.6 * forward * LINE_M, 0.4 * y
    walk(s, world, slot, to_x, to_y, look, actions.robot[slot])


def behind(x, y, forward):
    """The place from which the ball goes to the goal, on the field: beside a board it goes along the board."""
    way_x, way_y = forward * (LINE_M + 0.3) - x, -y
    length = math.sqrt(way_x * way_x + way_y * way_y)
    return x - BEHIND_M * way_x / length, min(max(y - BEHIND_M * way_y / length, -EDGE_M), EDGE_M)


def distance(robot, x, y):
    """From a robot to a place."""
    way_x, way_y = x - robot.position_m[0], y - robot.position_m[1]
    return math.sqrt(way_x * way_x + way_y * way_y)


def dribble(robot, x, y, back_x, back_y, look):
    """Where to go: through the ball from behind it, else behind it, else around it."""
    cos, sin = math.cos(look), math.sin(look)
    way_x, way_y = robot.position_m[0] - x, robot.position_m[1] - y
    along, across = cos * way_x + sin * way_y, cos * way_y - sin * way_x
    if along < -0.2 and abs(across) < 0.15:
        return x + 0.4 * cos, y + 0.4 * sin
    if along < -0.35:
        return back_x, back_y
    side = 0.55 if across > 0.0 else -0.55
    if abs(y + side * cos) > EDGE_M:  # a board is on this side
        side = -side
    back = -BEHIND_M if side * across > 0.25 else along  # first aside, then back
    return x + back * cos - side * sin, y + back * sin + side * cos


def walk(s, world, slot, x, y, look, action):
    """Goes to a place, looking in a direction: away from near robots, and back when robots or ball have tilted it."""
    robot = s.robots[slot]
    here_x, here_y = robot.position_m[0], robot.position_m[1]
    share = SLOW_M / max(distance(robot, x, y), SLOW_M)
    x, y = here_x + share * (x - here_x), here_y + share * (y - here_y)
    tilt_x, tilt_y = robot.quaternion[1], robot.quaternion[2]
    if 1.0 - 2.0 * (tilt_x * tilt_x + tilt_y * tilt_y) < STEEP:
        x, y = here_x - BACK_M * math.cos(look), here_y - BACK_M * math.sin(look)
    for k in range(world.robots):
        other_x, other_y = s.robots[k].position_m[0], s.robots[k].position_m[1]
        apart = max(distance(robot, other_x, other_y), 0.01)
        if k != slot and apart < APART_M:
            x += FORCE * (APART_M - apart) * (here_x - other_x) / apart
            y += FORCE * (APART_M - apart) * (here_y - other_y) / apart
    steer(robot, action, x, y, look, SLOW_M)


def global_state(s, world, out):
    """All robots; place, velocity and turning of the ball."""
    write_robots(s, world, out)
    write_motion(s.balls[0], STATE_SIZE * world.robots, out)


def names(size: int) -> tuple[str, ...]:
    """Agents of a match, red ones first."""
    return tuple(f"{team}_{k}" for team in ("red", "blue") for k in range(size))


def scene(size: int, build: Build = OWN) -> Any:
    """The model (``mujoco.MjModel``)."""
    spec = quad_spec()
    for k, name in enumerate(names(size)):
        add_quadruped(spec, name, TEAM_COLORS[k // size], build)
    ball = spec.worldbody.add_body(name="ball", pos=[0.0, 0.0, BALL_M])
    ball.add_freejoint(name="ball_free")
    ball.add_geom(
        type=import_mujoco().mjtGeom.mjGEOM_SPHERE,
        size=[BALL_M, 0.0, 0.0],
        mass=BALL_KG,
        rgba=[0.97, 0.85, 0.25, 1.0],
        condim=6,
        friction=list(BALL_FRICTION),
        priority=2,  # else the larger friction of ball and floor or feet decides
    )
    _add_field(spec)
    return compiled_spec(spec, eye=(0.0, -4.8, 3.9), target=(0.0, 0.0, 0.0))


def _add_field(spec: Any) -> None:
    """Boards, lines and goals."""
    wood, white = (0.55, 0.43, 0.30), (0.95, 0.95, 0.93)
    for side in (-1.0, 1.0):
        corner, post, net = LINE_M - SLANT_M, (LINE_M, side * POST_M), (LINE_M + NET_M, side * POST_M)
        _add_board(spec, (-corner, side * SIDE_M), (corner, side * SIDE_M), wood)
        for end, color in zip((-1.0, 1.0), TEAM_COLORS, strict=True):
            _add_board(spec, (end * corner, side * SIDE_M), (end * post[0], post[1]), wood)
            _add_board(spec, (end * post[0], post[1]), (end * net[0], net[1]), color)
    for end, color in zip((-1.0, 1.0), TEAM_COLORS, strict=True):
        _add_board(spec, (end * (LINE_M + NET_M), -POST_M), (end * (LINE_M + NET_M), POST_M), color)
        _add_line(spec, end * LINE_M, POST_M, color)
    _add_line(spec, 0.0, SIDE_M, white)


def _add_board(spec: Any, start: tuple[float, float], end: tuple[float, float], color: tuple) -> None:
    """A board between two places on the floor, and a wall in it that is not drawn."""
    way_x, way_y = end[0] - start[0], end[1] - start[1]
    half, turned = 0.5 * math.hypot(way_x, way_y), 0.5 * math.atan2(way_y, way_x)
    for height, paint, collides in ((BOARD_M, (*color, 1.0), 0), (WALL_M, (0.0, 0.0, 0.0, 0.0), 1)):
        spec.worldbody.add_geom(
            type=import_mujoco().mjtGeom.mjGEOM_BOX,
            size=[half + 0.02, 0.02, 0.5 * height],
            pos=[0.5 * (start[0] + end[0]), 0.5 * (start[1] + end[1]), 0.5 * height],
            quat=[math.cos(turned), 0.0, 0.0, math.sin(turned)],
            friction=[0.3, 0.02, 0.01],
            rgba=list(paint),
            contype=collides,
            conaffinity=collides,
        )


def _add_line(spec: Any, x: float, half: float, color: tuple) -> None:
    """A line across the field, only drawn."""
    spec.worldbody.add_geom(
        type=import_mujoco().mjtGeom.mjGEOM_BOX,
        size=[0.03, half, 0.002],
        pos=[x, 0.0, 0.0],
        rgba=[*color, 1.0],
        contype=0,
        conaffinity=0,
    )


@with_options(Option("size", 1, "robots of a team", low=1, high=MOST // 2), *DUEL_OPTIONS)
def game(options: Any) -> Game:
    """The rules of `palaestra/QuadFootball1v1-v0` and `palaestra/QuadFootball2v2-v0`."""
    size, robots = options.size, 2 * options.size

    def sees(number: str) -> tuple[Any, ...]:
        others = "the other robots: teammates, then opponents by number"
        return (
            dataclasses.replace(mates(robots - 1, number, MOST - 1), about=others),
            real("ball_m", 2, "m", "to the ball's middle: ahead and to the left", number, AHEAD_LEFT),
            real("ball_mps", 2, "m/s", "its velocity over the floor: ahead and to the left", number, AHEAD_LEFT),
            real(
                "goal_m", 2, "m", "to the middle of the opponents' goal line: ahead and to the left", number, AHEAD_LEFT
            ),
            real("own_goal_m", 2, "m", "to the middle of the own goal line: ahead and to the left", number, AHEAD_LEFT),
        )

    return quad_game(
        options,
        f"QuadFootball{size}v{size}",
        names(size),
        sees,
        scene,
        arguments=(size,),
        bodies=free_copies("balls", 0, POSITIONS * robots, VELOCITIES * robots),
        state=(("balls", FREE, (1,)), ("ball_x_m", "f8")),
        capacity=MOST,
        state_size=9,
        horizon=300,
        scripts=("attack",),
        reset=reset,
        evaluate=evaluate,
        observe=observe,
        script=script,
        global_state=global_state,
        end_reasons=("scored", "fallen"),
        zero_sum=True,
        symmetric_teams=True,
    )
