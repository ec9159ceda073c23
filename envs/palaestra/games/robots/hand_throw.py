"""Two hands: one throws a ball, the other one catches it.

## Description
A ball of 80 g lies in a hand of 24 joints; its goal is above the palm of the other hand, too far away to be handed
over: it has to be thrown. Three ids differ in where hands stand:

- `HandOver`: palms up, finger tips towards each other, on bases that are fixed; the ball flies 0.25 m.
- `HandCatchAbreast`: side by side, palms up, on movable bases; the ball is tossed sideways, 0.25 m.
- `HandCatchOver2Underarm`: the thrower stands upright and holds the ball in its fingers, palm towards the catcher; that
  lies lower with its palm up; bases are movable.

The tasks are `ShadowHandOver`, `ShadowHandCatchAbreast` and `ShadowHandCatchOver2Underarm` of Bi-DexHands (Chen et al.,
"Towards Human-Level Bimanual Dexterous Manipulation with Reinforcement Learning", NeurIPS 2022) with hands and
distances of our own and a ball, whose orientation does not matter.

## Action Space
<!-- table: action -->

A decision is 1/60 s. The servos' order: wrist sideways, wrist bend; for the four fingers from the thumb's side on
spread, base, curl (the little finger's arch before them); thumb turn, rise, twist, middle, tip. A movable base has six
more: along the fingers, to the thumb's side, out of the palm (0.12 m each way), then roll (lifts the thumb's side),
pitch (lifts the fingers), yaw (to the thumb's side; 0.6 rad each way).

`commands="grip"`: 4 numbers, of a movable hand 10: the four fingers close (base and curl), the thumb closes (rise and
tip), wrist sideways, wrist bend, then the base. 0 is the posture of the start, -1 and 1 are the ends of the ranges.

## Observation Space
<!-- table: observation -->

Frames of hands: x along the fingers, y to the thumb's side, z out of the palm, from the place where the wrist is
mounted; they do not move with a base. A movable hand has `base_pose` and `base_speed` besides. Touch is that before
the last substep.

`observation="goal"`: `observation` holds all this but the goal, `achieved_goal` is the ball and `desired_goal` its
goal, in the frame of the world; both are float64. With `reward="sparse"` faces have `compute_reward`.

## Rewards
Paid to both. `reward="dense"`: by how much exp(-10 d) has grown in a decision, d metres from the ball to the goal
(`reward_near`), and 1 when it is there (`reward_done`). `reward="sparse"`: the latter alone. Bi-DexHands pays the
nearness itself in each decision: a match that lasts is then paid more than one that succeeds.

## Starting State
Hands are cupped, the upright one has closed its fingers. The ball lies in the first one, within 2 mm of the middle.

## Episode End

- terminated: `done`, the ball is less than 0.03 m from the goal; `dropped`, it is lower than 0.3 m, the catching hand
  is at 0.5 m; `strayed`, a movable base is 0.1 m from its place.
- truncated: `diverged`, MuJoCo has given the match up; or the horizon, 75 decisions, 150 in `HandCatchAbreast`.

## Arguments
`randomise` and `sensor_noise`: [change the robots](../guides/robots.md). The script `hold` keeps the hands as they
start.

<!-- table: options -->

<!-- table: parameters -->

## Version History
v0: initial version.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from palaestra.game import Field, Game, Option, Representation, uniform, with_options
from palaestra.games.robots.engine import compiled_spec, import_mujoco
from palaestra.games.robots.hand import Mount
from palaestra.games.robots.hand_parts import (
    COLORS,
    CUP_M,
    CUPPED,
    ENDS,
    HAND_OPTIONS,
    PALM_M,
    Free,
    Posture,
    action_numbers,
    add_goal,
    distance,
    hand_game,
    hand_spec,
    measured_numbers,
    observe_movable,
    observe_self,
    own_numbers,
    pay_hands,
    start_hands,
    to_axes,
    to_frame,
    vary,
)
from palaestra.games.robots.parts import AXES, FIELD_DTYPES, INF, real, start_noise

HEIGHT_M = 0.5
"""Of the catching hand."""
BALL_M, BALL_KG = 0.032, 0.08
NEAR_M, LOW_M, START_M = 0.03, 0.3, 0.002
"""The goal is reached, the ball is dropped, how far it starts from the middle."""


class Throw(NamedTuple):
    """What distinguishes the tasks.

    Attributes:
        name: Of the game.
        mounts: Of thrower and catcher.
        postures: How they start.
        ball_m: Where the ball starts, along the thrower's fingers and to its thumb's side.
        is_movable: Whether their bases move.
        horizon: Decisions.
        eye_m: The camera.
        look_m: What it looks at.
    """

    name: str
    mounts: tuple[Mount, Mount]
    postures: tuple[Posture, Posture]
    ball_m: tuple[float, float]
    is_movable: bool
    horizon: int
    eye_m: tuple[float, float, float]
    look_m: tuple[float, float, float]

    def start_m(self) -> np.ndarray:
        """The ball that lies on the palm of the thrower."""
        return self.mounts[0].point_m(*self.ball_m, PALM_M + BALL_M)

    def goal_m(self) -> np.ndarray:
        """The same on that of the catcher."""
        return self.mounts[1].point_m(CUP_M, 0.0, PALM_M + BALL_M)


OVER = Throw(
    "HandOver",
    (Mount((-0.225, 0.0, HEIGHT_M)), Mount((0.225, 0.0, HEIGHT_M), yaw_rad=math.pi, is_right=True)),
    (CUPPED, CUPPED),
    ball_m=(CUP_M, 0.0),
    is_movable=False,
    horizon=75,
    eye_m=(0.0, -0.75, 0.85),
    look_m=(0.0, 0.0, 0.5),
)
ABREAST = Throw(
    "HandCatchAbreast",
    (Mount((-0.1, 0.125, HEIGHT_M)), Mount((-0.1, -0.125, HEIGHT_M), is_right=True)),
    (CUPPED, CUPPED),
    ball_m=(CUP_M, 0.0),
    is_movable=True,
    horizon=150,
    eye_m=(0.62, 0.0, 0.86),
    look_m=(0.0, 0.0, 0.5),
)
OVER2UNDERARM = Throw(
    "HandCatchOver2Underarm",
    (
        Mount((-0.2, 0.0, HEIGHT_M + 0.15), yaw_rad=math.pi, pitch_rad=0.5 * math.pi),
        Mount((0.225, 0.0, HEIGHT_M), yaw_rad=math.pi, is_right=True),
    ),
    (Posture(0.95, 1.65, thumb_turn=-1.05, thumb_rise=1.13, thumb_middle=0.6, thumb_tip=1.0, press=1.1), CUPPED),
    ball_m=(0.091, 0.023),
    is_movable=True,
    horizon=75,
    eye_m=(0.0, -0.9, 0.9),
    look_m=(0.0, 0.0, 0.6),
)
TASKS = (("over", OVER), ("abreast", ABREAST), ("over2underarm", OVER2UNDERARM))


class ThrowTask(NamedTuple):
    """`palaestra.games.robots.hand_parts.HandWorld.task`: where the ball starts and where it should be, metres."""

    start_m: np.ndarray
    goal_m: np.ndarray


def reset(s, world):
    """The ball lies in the first hand."""
    start_hands(s, world)
    ball = s.objects[0]
    along, aside = uniform(s, -START_M, START_M), uniform(s, -START_M, START_M)
    for i in range(3):
        ball.position_m[i] = world.task.start_m[i] + along * world.axes[0, 0, i] + aside * world.axes[0, 1, i]
    ball.quaternion[0] = 1.0
    s.info.distance_m = s.info.nearest_m = distance(ball.position_m, world.task.goal_m)
    vary(s, world)


def evaluate(s, world, rewards, scratch):
    """Pays both, and ends the match."""
    info, ball = s.info, s.objects[0]
    before, info.distance_m = info.distance_m, distance(ball.position_m, world.task.goal_m)
    info.nearest_m = min(info.nearest_m, info.distance_m)
    info.reward_near = math.exp(-10.0 * info.distance_m) - math.exp(-10.0 * before) if world.is_dense else 0.0
    return pay_hands(s, rewards, info.reward_near, info.distance_m < NEAR_M, LOW_M, s.diverged != 0.0)


def goal_reward(achieved: np.ndarray, desired: np.ndarray, info: object) -> np.ndarray:
    """What ``reward="sparse"`` pays; goals ``[N, 3]`` or ``[N, agents, 3]``, all agents are paid the same."""
    return np.array([float(d < NEAR_M) for d in _distances(achieved, desired)])


def _distances(achieved: np.ndarray, desired: np.ndarray) -> list[float]:
    """Of the first agent: Python's numbers, as the rules compute them to the bit."""
    pairs = zip(np.reshape(achieved, (len(achieved), -1)), np.reshape(desired, (len(desired), -1)), strict=True)
    return [distance(a.tolist(), b.tolist()) for a, b in pairs]


def observe(s, world, observations, scratch):
    """A hand on a fixed base sees itself, the ball and the goal."""
    start_noise(s, scratch)
    for k in range(2):
        observe_self(s, k, world, observations.hand[k], scratch)
        observe_ball(s, k, world, observations.hand[k])


def observe_with_base(s, world, observations, scratch):
    """A hand on a movable base sees itself, the ball and the goal."""
    start_noise(s, scratch)
    for k in range(2):
        observe_movable(s, k, world, observations.hand[k], scratch)
        observe_ball(s, k, world, observations.hand[k])


def observe_ball(s, k, world, seen):
    """Writes the ball and the goal in the frame of a hand."""
    to_frame(world, k, s.objects[0].position_m, seen.ball_m)
    to_axes(world, k, s.objects[0].velocity_mps, seen.ball_mps)
    to_frame(world, k, world.task.goal_m, seen.goal_m)


def observe_goal(s, world, observations, scratch):
    """The same as a table of goals."""
    start_noise(s, scratch)
    for k in range(2):
        seen, own = observations.hand[k], len(scratch.own)
        own_numbers(s, k, world, scratch)
        for i in range(own):
            seen.observation[i] = scratch.own[i]
        to_frame(world, k, s.objects[0].position_m, seen.observation[own : own + 3])
        to_axes(world, k, s.objects[0].velocity_mps, seen.observation[own + 3 : own + 6])
        for i in range(3):
            seen.achieved_goal[i], seen.desired_goal[i] = s.objects[0].position_m[i], world.task.goal_m[i]


def scene(throw: Throw, is_varied: bool = False) -> Any:
    """The model (``mujoco.MjModel``)."""
    mujoco = import_mujoco()
    spec = hand_spec(throw.mounts, is_movable=throw.is_movable, is_varied=is_varied)
    ball = spec.worldbody.add_body(name="ball", pos=[0.0, 0.0, 1.0])
    ball.add_freejoint(name="ball_free")
    ball.add_geom(
        name="ball",
        type=mujoco.mjtGeom.mjGEOM_SPHERE,
        size=[BALL_M, 0, 0],
        mass=BALL_KG,
        rgba=[*COLORS["object"], 1.0],
        condim=6,
        friction=[1.0, 0.01, 0.002],
        priority=1,
    )
    add_goal(spec, throw.goal_m())
    return compiled_spec(spec, eye=throw.eye_m, target=throw.look_m)


def sees(number: Any) -> tuple[Field, ...]:
    """What a hand sees beside itself."""
    return (
        real("ball_m", 3, "m", "the ball in the frame of the hand", number, AXES),
        real("ball_mps", 3, "m/s", "its velocity", number, AXES),
        real("goal_m", 3, "m", "the goal in the frame of the hand", number, AXES),
    )


def shown_as_goals(own: int, number: Any) -> Representation:
    """The representation for hindsight replay; ``own`` numbers that a hand knows of itself."""
    fields = (
        real("observation", own + 6, "", "the hand's own fields, then the ball's place and velocity", number),
        real("achieved_goal", 3, "m", "the ball in the frame of the world", "f8"),
        real("desired_goal", 3, "m", "where it should be", "f8"),
    )
    return Representation("goals for hindsight replay", observe_goal, {"hand": fields}, default_form="dict")


@with_options(Option("task", "over", "where hands stand; fixed by the id", words=tuple(dict(TASKS))), *HAND_OPTIONS)
def game(options: Any) -> Game:
    """The rules of `palaestra/HandOver-v0` and its kin."""
    throw = dict(TASKS)[options.task]
    own = measured_numbers(throw.is_movable) + action_numbers(options.commands, throw.is_movable)
    return hand_game(
        options,
        throw.name,
        sees,
        scene,
        arguments=(throw,),
        mounts=throw.mounts,
        postures=throw.postures,
        is_movable=throw.is_movable,
        task=ThrowTask(throw.start_m(), throw.goal_m()),
        objects=(Free(("ball",), ("ball",)),),
        reset=reset,
        evaluate=evaluate,
        observe=observe_with_base if throw.is_movable else observe,
        representations={"goal": shown_as_goals(own, FIELD_DTYPES[options.dtype])},
        goal_reward=f"{__name__}:goal_reward" if options.reward == "sparse" else None,
        horizon=throw.horizon,
        plots=("distance_m",),
        info=(
            Field("distance_m", (), 0, INF, "m", "from the ball to the goal", "f8", checked=(0.0, 100.0)),
            Field("nearest_m", (), 0, INF, "m", "the least distance so far", "f8", checked=(0.0, 100.0)),
            Field("reward_near", (), -1, 1, "1", "for coming nearer", "f8"),
            Field("reward_done", (), 0, 1, "1", "for the end", "f8"),
        ),
        end_reasons=ENDS,
    )
