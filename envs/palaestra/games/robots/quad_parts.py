"""What all games of quadrupeds share: the game around a task, records, commands, rewards of a team.

A task gives hooks, fields, a scene and its bodies; `quad_game` makes the `palaestra.game.Game`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from palaestra.game import TERMINATED, TRUNCATED, Continuous, Field, Game, Option, Role, uniform
from palaestra.games.robots import menagerie
from palaestra.games.robots.engine import DIVERGED, Copy, Scale, version
from palaestra.games.robots.parts import (
    FIELD_DTYPES,
    INF,
    REWARD,
    ROBOT_OPTIONS,
    draw_factor,
    draw_noise,
    free_copies,
    scales_of,
)
from palaestra.games.robots.quad_sight import OWN, STATE_SIZE, TROT, own_fields
from palaestra.games.robots.quadruped import JOINTS, LEGS, POSITIONS, RANGES_RAD, ROBOT, STAND_M, VELOCITIES, Build
from palaestra.games.robots.trot import start_trot, trot

PERIODS, SUBSTEPS = 5, 4
"""Of the trot in a decision, of MuJoCo in a period of the trot: 10, 50 and 200 Hz."""
LOWEST_M, STEEPEST = 0.14, 0.5
"""A robot has fallen whose trunk is lower, or whose cosine of the tilt is smaller."""
COLORS = ((0.86, 0.42, 0.16), (0.17, 0.47, 0.72), (0.30, 0.62, 0.34), (0.75, 0.62, 0.18), (0.55, 0.37, 0.66))
TEAM_COLORS = ((0.80, 0.20, 0.17), (0.17, 0.40, 0.75))
ACTIONS = {
    "trot": Continuous(
        "velocity", (3,), -1.0, 1.0, "1", "ahead (of 1 m/s), left (of 0.5 m/s), turn left (of 1 rad/s)", parts=TROT
    ),
    "joint": Continuous("target", (12,), -1.0, 1.0, "1", "targets of the joints, of their ranges", parts=JOINTS),
}
"""By ``low_level``: what an agent commands."""
DONE, FALLEN, LOST = 2, 3, 4
"""Numbers of the end reasons of a team, `TEAM_ENDS` and the loss of a match."""
TEAM_ENDS = ("done", "fallen")
TEAM_INFO = (
    Field("reward_progress", (), -INF, INF, "1", "for progress", "f8", checked=(-10.0, 10.0)),
    Field("reward_done", (), 0, 1, "1", "for the end", "f8"),
    Field("reward_fall", (), -1, 0, "1", "for a fall", "f8"),
)
NOISE = np.array([0.02] * 3 + [0.1] * 3 + [0.1] * 3 + [0.01] * 12 + [0.5] * 12 + [0.1] * 4)
"""Most noise of each with ``sensor_noise=1``, in their units."""


def checked_body(body: Any, above: Any) -> str:
    """What ``body=`` may be."""
    if body != "own" and not (isinstance(body, str) and body.startswith(menagerie.PREFIX)):
        raise ValueError(f"body must be 'own' or '{menagerie.PREFIX}...', got {body!r}")
    return body


QUAD_OPTIONS = (
    *ROBOT_OPTIONS,
    Option("low_level", "trot", "agents command velocities, which a trot walks, or joints", words=tuple(ACTIONS)),
    Option(
        "body",
        "own",
        f'`"own"`, or `"{menagerie.PREFIX}unitree_go2"` and other quadrupeds of MuJoCo Menagerie',
        texts=("own",),
        check=checked_body,
        example=f"{menagerie.PREFIX}unitree_go2",
    ),
)
"""Of all games of quadrupeds."""
DUEL_OPTIONS = (replace(REWARD, default="sparse"), *QUAD_OPTIONS[1:])
"""Of those of two sides."""


class QuadWorld(NamedTuple):
    """What the hooks of all games of quadrupeds read.

    Attributes:
        robots: Number of robots.
        is_dense: Whether what leads to the end is paid.
        periods: Of the low level in a decision.
        numbers: Of an action.
        randomise: Share of the most that bodies vary.
        sensor_noise: Share of the most noise.
        noise: `NOISE`.
        middle_rad: Of the ranges of a robot's joints, ``[12]``.
        half_rad: Half of the ranges.
    """

    robots: int
    is_dense: int
    periods: int
    numbers: int
    randomise: float
    sensor_noise: float
    noise: np.ndarray
    middle_rad: np.ndarray
    half_rad: np.ndarray


def quad_game(
    options: Any,
    name: str,
    agents: tuple[str, ...],
    sees: Callable[[str], tuple],
    scene: Callable[..., Any],
    *,
    arguments: tuple = (),
    bodies: tuple[Copy, ...] = (),
    inputs: tuple[Copy, ...] = (),
    state: tuple[tuple, ...] = (),
    capacity: int | None = None,
    state_size: int = 0,
    horizon: int,
    scripts: tuple[str, ...],
    **rules: Any,
) -> Game:
    """The game of a task of quadrupeds.

    Args:
        options: `QUAD_OPTIONS` of the user. With ``"joint"`` there are five times as many decisions, and no scripts.
        name: Of the game.
        agents: One a robot.
        sees: Gives what a robot sees beside itself, from the dtype of numbers.
        scene: ``scene(*arguments, build) -> MjModel``; the robots come first in it, named as the agents.
        arguments: Of the scene.
        bodies: Copies of other bodies, which start and are written.
        inputs: Copies of other bodies to MuJoCo.
        state: Fields of the task in the match record.
        capacity: Robots in a record, by default as many as there are.
        state_size: Numbers of the global state beside those of robots.
        horizon: Decisions of 0.1 s.
        scripts: Names of scripts, the first one is the default opponent.
        rules: Other attributes of `palaestra.game.Game`.

    Raises:
        ValueError: MuJoCo Menagerie has no such body.
        ImportError: MuJoCo Menagerie is asked for and missing.
    """
    number, body = FIELD_DTYPES[options.dtype], options.body
    is_trot, is_varied = options.low_level == "trot", options.randomise > 0.0
    action, robots = ACTIONS[options.low_level], len(agents)
    numbers, ranges = action.shape[0], np.tile(np.array(RANGES_RAD), (4, 1))
    periods = PERIODS if is_trot else 1
    engine = copies(robots, (0, 1, 2, 3) if body == "own" else menagerie.legs_of(body))
    engine["inputs"] += inputs
    engine["starts"] += bodies
    engine["outputs"] += bodies
    world = QuadWorld(
        robots,
        int(options.reward == "dense"),
        periods,
        numbers,
        options.randomise,
        options.sensor_noise,
        NOISE,
        ranges.mean(axis=1),
        0.5 * (ranges[:, 1] - ranges[:, 0]),
    )
    most = capacity or robots
    rules = {"command": command if is_trot else command_joints, **rules}
    if not is_trot:
        rules |= {"script": None}
    elif scripts:
        rules |= {"scripts": scripts, "default_opponent": scripts[0]}
    return Game(
        name=name,
        roles=(Role("robot", agents, (*own_fields(number, numbers), *sees(number)), (action,), capacity=capacity),),
        state=(
            ("robots", ROBOT, (most,)),
            (DIVERGED, "f8"),
            ("last", "f8", (most, numbers)),
            ("noise_seed", "f8"),
            ("period", "i8"),
            *state,
        ),
        scratch=(("rng", "u8"), ("own", "f8", (OWN + numbers,))),
        periods=periods,
        physics="palaestra.games.robots.engine:MujocoEngine",
        physics_options={
            "model": scene,
            "arguments": (*arguments, Build(body, is_varied)),
            "substeps": SUBSTEPS,
            **engine,
            "scales": scales(agents) if is_varied else (),
        },
        model_digest=None if body == "own" else menagerie.BodyDigest(body),
        engine_version=version,
        horizon=horizon * PERIODS // periods,
        truncation_reasons=("diverged",),
        reward_dtype=number,
        global_state_size=STATE_SIZE * robots + state_size,
        world=world,
        render="palaestra.games.robots.picture:draw",
        render_fps=10.0 * PERIODS / periods,
        **rules,
    )


def scales(agents: tuple[str, ...]) -> tuple[Scale, ...]:
    """What `vary` draws, in the model."""
    made: list[Scale] = []
    for k, agent in enumerate(agents):
        links = [f"{agent}_{joint}" for joint in JOINTS]  # servos have the names of links
        feet = [f"{agent}_{leg}_foot" for leg in LEGS]
        made += scales_of("robots", k, bodies=(agent, *links), geoms=feet, servos=links)
    return tuple(made)


def copies(robots: int, legs: tuple[int, ...]) -> dict[str, tuple[Copy, ...]]:
    """Inputs, outputs and starts of robots that come first in the model: keywords of the engine.

    Args:
        robots: Number of robots.
        legs: Numbers of legs in the order of the model's joints.
    """
    inputs, starts, sensors = [], [], []
    for k in range(robots):
        q, v = POSITIONS * k, VELOCITIES * k
        inputs.append(Copy("robots", k, "target_rad", "ctrl", 12 * k))
        starts += free_copies("robots", k, q, v)
        for member, array, first in (("joint_rad", "qpos", q + 7), ("joint_radps", "qvel", v + 6)):
            if legs == tuple(range(4)):
                starts.append(Copy("robots", k, member, array, first))
            else:
                parts = [(3 * leg, 3 * leg + 3) for leg in legs]
                starts += [Copy("robots", k, member, array, first + 3 * n, part) for n, part in enumerate(parts)]
        sensors.append(Copy("robots", k, "foot_force_n", "sensordata", 4 * k))
    return {"inputs": tuple(inputs), "starts": tuple(starts), "outputs": (*starts, *sensors)}


def place(robot, x, y, heading):
    """A robot stands on the floor."""
    robot.position_m[0], robot.position_m[1], robot.position_m[2] = x, y, STAND_M
    robot.quaternion[0], robot.quaternion[3] = math.cos(0.5 * heading), math.sin(0.5 * heading)
    start_trot(robot)
    for k in range(12):
        robot.joint_rad[k] = robot.target_rad[k]


def vary(s, world):
    """Draws masses, friction of feet, gains and delays of motors for a match; call it last in a reset."""
    for k in range(world.robots):
        robot = s.robots[k]
        robot.mass_factor = draw_factor(s, 0.2 * world.randomise)
        robot.friction_factor = draw_factor(s, 0.5 * world.randomise)
        robot.gain_factor = draw_factor(s, 0.2 * world.randomise)
        robot.delay = world.randomise * uniform(s, 0.0, 1.0)
    draw_noise(s, world)


def command(s, world, actions, scratch):
    """All robots trot as they are commanded."""
    if s.period == 0:
        draw_noise(s, world)
    for k in range(world.robots):
        wanted = actions.robot[k].velocity
        for i in range(3):
            s.last[k, i] = wanted[i]
        trot(s.robots[k], wanted[0], wanted[1], wanted[2])


def command_joints(s, world, actions, scratch):
    """The joints of all robots go where they are commanded."""
    draw_noise(s, world)
    for k in range(world.robots):
        for i in range(12):
            share = actions.robot[k].target[i]
            s.last[k, i] = share
            s.robots[k].target_rad[i] = world.middle_rad[i] + share * world.half_rad[i]


def next_period(s, world):
    """Counts the period; whether it is the first one of a decision."""
    is_first = s.period == 0
    s.period = (s.period + 1) % world.periods
    return is_first


def has_fallen(robot):
    """Whether the trunk is too low or too steep."""
    x, y = robot.quaternion[1], robot.quaternion[2]
    return robot.position_m[2] < LOWEST_M or 1.0 - 2.0 * (x * x + y * y) < STEEPEST


def pay_team(s, world, rewards, progress, is_done):
    """Pays a team for progress and the end, with `TEAM_INFO`, and ends the match: when it is done or a robot falls."""
    info, fallen, result = s.info, 0, 0
    if next_period(s, world):
        info.reward_progress = info.reward_done = info.reward_fall = 0.0
    for k in range(world.robots):
        fallen += has_fallen(s.robots[k])
    if s.diverged != 0.0:
        info.end_reason, result = LOST, TRUNCATED
    elif is_done:
        info.reward_done, info.end_reason, result = 1.0, DONE, TERMINATED
    elif fallen:
        info.reward_fall, info.end_reason, result = -1.0 if world.is_dense else 0.0, FALLEN, TERMINATED
    paid = info.reward_done + info.reward_fall
    if world.is_dense:
        info.reward_progress += progress
        paid += progress
    for k in range(world.robots):
        rewards[k] += paid
    return result
