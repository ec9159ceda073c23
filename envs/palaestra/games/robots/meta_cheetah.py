"""MetaCheetah: a half cheetah whose target speed, or whose body, is one of 50 tasks that no observation tells.

## Description

The half cheetah of Gymnasium (`HalfCheetah-v5`, whose model this is) as two sets of 50 tasks. One agent moves the whole
body. A match is never ended by rule. Forty-five tasks are for training, five are held out; a match is one of those that
`tasks` names, or the one that `task` names. Numbers are in a random order: they tell nothing about the task.

`MetaCheetahVel-v0`: each task is a speed, on a grid of 50 from 0.075 to 3 m/s, and the reward alone tells it (Finn,
Abbeel and Levine, "Model-agnostic meta-learning for fast adaptation of deep networks", ICML 2017).

`MetaCheetahParam-v0`: each task is a body. The mass and the moments of inertia of each of the seven links, and the
friction of all surfaces, are those of the model times 1.5^u; the damping of each of the six joints is that of the model
times 1.3^u. Each u was drawn once, uniformly from (-3, 3). So the way of drawing is that of the families of random
bodies on the hopper and the walker which work on meta-learning uses; the limit 3 and the numbers of the tasks are ours.
MuJoCo takes the greater friction of two surfaces, so here one factor is for all of them, the floor's too.

There are no scripts: an expert has to be learnt. With ``observe_task=True`` the observations end with the target speed,
or with the factors of the body, so that one network can learn to be the expert of every task.

## Action Space

<!-- table: action -->

## Observation Space

The positions and velocities of Gymnasium's task. The place along x is not shown.

<!-- table: observation -->

## Rewards

With the mean speed along x in the decision, v in m/s, and the torques a:

- `MetaCheetahVel-v0`: -|v - target| - 0.05 |a|^2
- `MetaCheetahParam-v0`: v - 0.1 |a|^2, as in Gymnasium's task

## Starting State

The standing robot, with noise on all positions and velocities as in Gymnasium's task. With ``task=-1``, the default,
the task is drawn uniformly among those of `tasks`.

## Episode End

Truncated after 200 decisions, or when MuJoCo has given the match up (`diverged`).

## Arguments

`task` may differ from lane to lane. A task that is not among those of `tasks` is refused. With ``hide_task=False`` the
info `task` tells the number, for those who evaluate.

<!-- table: options -->

<!-- table: parameters -->

## Version History

* v0: first version.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np

import palaestra_assets
from palaestra.game import (
    TASK_OPTIONS,
    TRUNCATED,
    Continuous,
    Field,
    Game,
    Option,
    Role,
    TaskWorld,
    begin_task,
    keyed_uniforms,
    task_set,
    with_options,
)
from palaestra.games.robots.engine import DIVERGED, Copy, Scale, version
from palaestra.games.robots.ma import CHECKED, CHEETAH, ROBOTS, ModelDigest, body_fields, model, observe_alone
from palaestra.games.robots.ma import reset as stand
from palaestra.games.robots.parts import INF, real

TASKS = 50
ROBOT = "half_cheetah"
SLOWEST_MPS, FASTEST_MPS = 0.075, 3.0
"""Ends of the grid of target speeds."""
MOST = 3.0
"""Of the exponents u."""
LINKS = ("torso", *CHEETAH)
SURFACES = ("floor", "torso", "head", *CHEETAH)
FACTORS = (
    *(("body_mass", (name,), (0,), 1.5) for name in LINKS),
    *(("body_inertia", (name,), (0, 1, 2), 1.5) for name in LINKS),
    *(("dof_damping", (name,), (0,), 1.3) for name in CHEETAH),
    ("geom_friction", SURFACES, (0, 1, 2), 1.5),
)
"""What a body of `MetaCheetahParam-v0` has factors for: array of the model, elements, columns, base of the power."""
CONTROL_WEIGHT = {"speed": 0.05, "body": 0.1}
"""Of the squared torques."""
LOST = 2
"""Number of the end reason."""


class World(NamedTuple):
    """What the rules read.

    Attributes:
        tasks: Which are played.
        start: Positions at the start.
        noise: Of positions and velocities.
        is_normal: Whether the noise of velocities is normal.
        shown: First position that is shown.
        fastest: Velocities are clipped to this.
        decision_s: Time of a decision.
        control_weight: Of the squared torques.
        targets_mps: Speed of each task, ``[50]``; 0 where tasks are bodies.
        factors: Of each task, ``[50, factors]``.
    """

    tasks: TaskWorld
    start: np.ndarray
    noise: np.ndarray
    is_normal: int
    shown: int
    fastest: float
    decision_s: float
    control_weight: float
    targets_mps: np.ndarray
    factors: np.ndarray


def reset(s, world):
    """Stands, but for the noise, in the body of the task."""
    begin_task(s, world)
    stand(s, world)
    for k in range(len(s.factors)):
        s.factors[k].factor = world.factors[s.task, k]


def command(s, world, actions, scratch):
    """Hands the torques to the motors."""
    body = s.bodies[0]
    s.before_m = body.position[0]
    for k in range(len(body.torque)):
        body.torque[k] = actions.body[0].torque[k]


def evaluate_speed(s, world, rewards, scratch):
    """Pays for a speed near that of the task."""
    cost = measure(s, world)
    rewards[0] += -abs(s.info.speed_mps - world.targets_mps[s.task]) - cost
    return end_if_diverged(s)


def evaluate_body(s, world, rewards, scratch):
    """Pays for the speed."""
    cost = measure(s, world)
    rewards[0] += s.info.speed_mps - cost
    return end_if_diverged(s)


def observe_speed(s, world, observations, scratch):
    """What Gymnasium's task shows, and the speed of the task."""
    observe_alone(s, world, observations, scratch)
    observations.body[0].target_mps[0] = world.targets_mps[s.task]


def observe_factors(s, world, observations, scratch):
    """What Gymnasium's task shows, and the body of the task."""
    observe_alone(s, world, observations, scratch)
    for k in range(len(s.factors)):
        observations.body[0].factors[k] = s.factors[k].factor


def measure(s, world):
    """Writes place and speed; returns the cost of the torques."""
    body = s.bodies[0]
    s.info.x_m = body.position[0]
    s.info.speed_mps = (body.position[0] - s.before_m) / world.decision_s
    squares = 0.0
    for k in range(len(body.torque)):
        squares += body.torque[k] * body.torque[k]
    return world.control_weight * squares


def end_if_diverged(s):
    """Cuts off a match that MuJoCo has given up."""
    if s.diverged != 0.0:
        s.info.end_reason = LOST
        return TRUNCATED
    return 0


def target_speeds() -> np.ndarray:
    """Target speeds in m/s by number of the task, ``[50]``."""
    steps = np.argsort(keyed_uniforms("MetaCheetahVel", TASKS)) / (TASKS - 1)
    return np.round(SLOWEST_MPS + (FASTEST_MPS - SLOWEST_MPS) * steps, 9)


def factor_parts() -> tuple[str, ...]:
    """Names of `FACTORS`."""
    return tuple(f"{array} {names[0]}" if len(names) == 1 else array for array, names, *_ in FACTORS)


def body_factors() -> np.ndarray:
    """Factors of `FACTORS` by number of the task, ``[50, factors]``.

    They are rounded to nine digits: powers differ in their last bits from machine to machine.
    """
    exponents = MOST * (2.0 * keyed_uniforms("MetaCheetahParam", TASKS * len(FACTORS)) - 1.0)
    return np.round(np.array([base for *_, base in FACTORS]) ** exponents.reshape(TASKS, -1), 9)


@with_options(
    Option("differ", "speed", "what tasks differ in; fixed by the id", words=("speed", "body")),
    Option("observe_task", False, "whether observations end with the speed or the factors of the task, for experts"),
    *TASK_OPTIONS,
)
def game(options: Any) -> Game:
    """The rules of `palaestra/MetaCheetahVel-v0` and `palaestra/MetaCheetahParam-v0`."""
    name = "MetaCheetahVel" if options.differ == "speed" else "MetaCheetahParam"
    held_out = json.loads(palaestra_assets.path("meta/held_out.json").read_text(encoding="utf-8"))[name]
    tasks, kind = task_set(options, TASKS, held_out), ROBOTS[ROBOT]
    positions, velocities, motors = len(kind.start), kind.root[1] + len(kind.joints), len(kind.motors)
    members = [("torque", "f8", (motors,)), ("position", "f8", (positions,)), ("velocity", "f8", (velocities,))]
    is_speed = options.differ == "speed"
    factors = np.ones((TASKS, 1)) if is_speed else body_factors()
    told = real("target_mps", 1, "m/s", "target speed of the task", "f4")
    if not is_speed:
        told = real(
            "factors",
            factors.shape[1],
            "1",
            "of the body of the task, in the order of the description",
            "f4",
            factor_parts(),
        )
    outputs = tuple(Copy("bodies", 0, part, array, 0) for part, array in (("position", "qpos"), ("velocity", "qvel")))
    scales = () if is_speed else tuple(Scale("factors", k, "factor", *what[:3]) for k, what in enumerate(FACTORS))
    return Game(
        name=name,
        roles=(
            Role(
                "body",
                ("body_0",),
                (
                    *body_fields(kind, "f4"),
                    *((told,) if options.observe_task else ()),
                ),
                (
                    Continuous(
                        "torque", (motors,), -1.0, 1.0, "1", "torque over the gear of each motor", parts=kind.motors
                    ),
                ),
            ),
        ),
        state=(
            ("bodies", np.dtype(members, align=True), (1,)),
            ("factors", np.dtype([("factor", "f8")], align=True), (factors.shape[1],)),
            (DIVERGED, "f8"),
            ("before_m", "f8"),
            ("task", "i8"),
        ),
        reset=reset,
        command=command,
        evaluate=evaluate_speed if is_speed else evaluate_body,
        observe=(observe_speed if is_speed else observe_factors) if options.observe_task else observe_alone,
        physics="palaestra.games.robots.engine:MujocoEngine",
        physics_options={
            "model": model,
            "arguments": (ROBOT,),
            "substeps": kind.substeps,
            "inputs": (Copy("bodies", 0, "torque", "ctrl", 0),),
            "outputs": outputs,
            "starts": outputs,
            "scales": scales,
        },
        model_digest=ModelDigest(ROBOT),
        engine_version=version,
        parameters=(tasks.parameter,),
        horizon=200,
        plots=("speed_mps", "x_m"),
        info=(
            tasks.info,
            Field("x_m", (), -INF, INF, "m", "place of the trunk along x", "f8", checked=CHECKED),
            Field("speed_mps", (), -INF, INF, "m/s", "mean speed along x in the decision", "f8", checked=CHECKED),
        ),
        truncation_reasons=("diverged",),
        world=World(
            tasks=tasks.world,
            start=np.array(kind.start),
            noise=np.array(kind.noise),
            is_normal=int(kind.is_normal),
            shown=kind.hidden,
            fastest=INF,
            decision_s=kind.substeps * kind.step_s,
            control_weight=CONTROL_WEIGHT[options.differ],
            targets_mps=target_speeds() if is_speed else np.zeros(TASKS),
            factors=factors,
        ),
        render="palaestra.games.robots.picture:draw",
        render_fps=1.0 / (kind.substeps * kind.step_s),
    )
