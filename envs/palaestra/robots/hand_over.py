"""Two hands: one throws a ball, the other one catches it.

## Description
Two hands of 24 joints lie palm up, finger tips towards each other, on bases that are fixed. A ball of 80 g lies in the
right one; its goal is above the palm of the left one, 0.25 m away: it has to be thrown. The task is `ShadowHandOver` of
Bi-DexHands (Chen et al., "Towards Human-Level Bimanual Dexterous Manipulation with Reinforcement Learning", NeurIPS
2022) with hands of our own and a ball, whose orientation does not matter.

## Action Space
<!-- table: action -->

A decision is 1/60 s. The servos' order: wrist sideways, wrist bend; for the four fingers from the thumb's side on
spread, base, curl (the little finger's arch before them); thumb turn, rise, twist, middle, tip.

## Observation Space
<!-- table: observation -->

Frames of hands: x along the fingers, y to the thumb's side, z upwards. Touch is that before the last substep.

## Rewards
Paid to both. `reward="dense"`: exp(-10 d) in each decision, d metres from the ball to the goal (`reward_near`), and 1
when it is there (`reward_done`). `reward="sparse"`: the latter alone.

## Starting State
Hands are cupped. The ball lies in the right one, within 2 mm of the middle.

## Episode End
- terminated: `done`, the ball is less than 0.03 m from the goal; `dropped`, it is lower than 0.3 m, the hands are at
  0.5 m.
- truncated: `diverged`, MuJoCo has given the match up; or the horizon, 75 decisions.

## Arguments
`reward`: `"dense"` or `"sparse"`. `dtype`: `"float32"` or `"float64"`, of observations and rewards. The script `hold`
keeps hands cupped. Parameters:

<!-- table: parameters -->

## Version History
v0: initial version.
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import numpy as np

from palaestra.game import TERMINATED, TRUNCATED, Continuous, Field, Game, Role, check_word, uniform
from palaestra.robots.engine import DIVERGED, Copy, compiled_spec, import_mujoco, version
from palaestra.robots.hand import HAND, add_hand, range_of, servos
from palaestra.robots.quad_parts import INF, real

BASE_M, HEIGHT_M = 0.225, 0.5
"""Of the hands: along x from the middle, above the floor."""
BALL_M, BALL_KG, CUP_M = 0.032, 0.08, 0.1
"""Radius and mass of the ball; where it lies, from the base of the hand."""
BALL_Z_M = HEIGHT_M + 0.011 + BALL_M
GOAL_M, NEAR_M, LOW_M = (0.125, 0.0, BALL_Z_M), 0.03, 0.3
DONE, DROPPED, LOST = 2, 3, 4
"""Numbers of the end reasons."""
SUBSTEPS, TIMESTEP_S = 4, 1.0 / 240.0
CUPPED = {"base": 0.5, "curl": 0.8, "thumb_rise": 0.9}
"""Servos of a cupped hand; the others are at 0."""

BALL = np.dtype(
    [("position_m", "f8", (3,)), ("quaternion", "f8", (4,)), ("velocity_mps", "f8", (3,)), ("turn_radps", "f8", (3,))],
    align=True,
)
"""The ball in the match record."""


class World(NamedTuple):
    """What the hooks read.

    Attributes:
        low: Least of each servo, rad.
        high: Most of each servo.
        cup_target: Servos of a cupped hand.
        cup_joint: Its joints.
        is_dense: Whether nearness is paid.
    """

    low: np.ndarray
    high: np.ndarray
    cup_target: np.ndarray
    cup_joint: np.ndarray
    is_dense: int


def reset(s, world):
    """Hands are cupped, the ball lies in the right one."""
    for k in range(2):
        for i in range(20):
            s.hands[k].target_rad[i] = world.cup_target[i]
            s.last[k, i] = share_of(world, i)
        for i in range(24):
            s.hands[k].joint_rad[i] = world.cup_joint[i]
    ball = s.balls[0]
    ball.position_m[0] = -BASE_M + CUP_M + uniform(s, -0.002, 0.002)
    ball.position_m[1] = uniform(s, -0.002, 0.002)
    ball.position_m[2] = BALL_Z_M
    ball.quaternion[0] = 1.0
    s.info.distance_m = s.info.nearest_m = distance(s)


def share_of(world, i):
    """The action that cups a servo."""
    return 2.0 * (world.cup_target[i] - world.low[i]) / (world.high[i] - world.low[i]) - 1.0


def distance(s):
    """From the ball to the goal."""
    square = 0.0
    for i in range(3):
        square += (s.balls[0].position_m[i] - GOAL_M[i]) ** 2
    return math.sqrt(square)


def command(s, world, actions, scratch):
    """Sets the targets of all servos."""
    for k in range(2):
        for i in range(20):
            share = actions.hand[k].target[i]
            s.last[k, i] = share
            s.hands[k].target_rad[i] = world.low[i] + 0.5 * (share + 1.0) * (world.high[i] - world.low[i])


def evaluate(s, world, rewards, scratch):
    """Pays both, and ends the match."""
    info = s.info
    info.distance_m = distance(s)
    info.nearest_m = min(info.nearest_m, info.distance_m)
    info.reward_near = math.exp(-10.0 * info.distance_m) if world.is_dense else 0.0
    info.reward_done, result = 0.0, 0
    if s.diverged != 0.0:
        info.end_reason, result = LOST, TRUNCATED
    elif info.distance_m < NEAR_M:
        info.reward_done, info.end_reason, result = 1.0, DONE, TERMINATED
    elif s.balls[0].position_m[2] < LOW_M:
        info.end_reason, result = DROPPED, TERMINATED
    for k in range(2):
        rewards[k] += info.reward_near + info.reward_done
    return result


def observe(s, world, observations, scratch):
    """A hand sees itself, the ball and the goal."""
    ball = s.balls[0]
    for k in range(2):
        seen, hand, turned = observations.hand[k], s.hands[k], 1.0 - 2.0 * k
        for i in range(24):
            seen.joint_rad[i] = hand.joint_rad[i]
            seen.joint_radps[i] = hand.joint_radps[i]
        for i in range(5):
            seen.touch[i] = hand.touch_n[i]
        for i in range(20):
            seen.last[i] = s.last[k, i]
        seen.ball_m[0] = turned * ball.position_m[0] + BASE_M
        seen.ball_m[1] = ball.position_m[1]
        seen.ball_m[2] = ball.position_m[2] - HEIGHT_M
        seen.ball_mps[0] = turned * ball.velocity_mps[0]
        seen.ball_mps[1] = ball.velocity_mps[1]
        seen.ball_mps[2] = ball.velocity_mps[2]
        seen.goal_m[0] = turned * GOAL_M[0] + BASE_M
        seen.goal_m[1] = GOAL_M[1]
        seen.goal_m[2] = GOAL_M[2] - HEIGHT_M


def script(s, world, slot, which, actions, scratch):
    """`hold`: the hand stays cupped."""
    for i in range(20):
        actions.hand[slot].target[i] = share_of(world, i)


def global_state(s, world, out):
    """Joints and velocities of both hands; place, orientation and velocities of the ball."""
    for k in range(2):
        for i in range(24):
            out[48 * k + i] = s.hands[k].joint_rad[i]
            out[48 * k + 24 + i] = s.hands[k].joint_radps[i]
    ball = s.balls[0]
    for i in range(3):
        out[96 + i] = ball.position_m[i]
        out[99 + i] = ball.velocity_mps[i]
        out[102 + i] = ball.turn_radps[i]
    for i in range(4):
        out[105 + i] = ball.quaternion[i]


def scene() -> Any:
    """The model (``mujoco.MjModel``)."""
    mujoco = import_mujoco()
    spec = mujoco.MjSpec()
    spec.compiler.degree = False
    spec.option.timestep = TIMESTEP_S
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1], name="floor")
    skin = (0.83, 0.62, 0.50)
    add_hand(spec, "hand_0", (-BASE_M, 0.0, HEIGHT_M), 0.0, is_left=False, color=skin)
    add_hand(spec, "hand_1", (BASE_M, 0.0, HEIGHT_M), math.pi, is_left=True, color=skin)
    ball = spec.worldbody.add_body(name="ball", pos=[0.0, 0.0, 1.0])
    ball.add_freejoint(name="ball_free")
    ball.add_geom(
        type=mujoco.mjtGeom.mjGEOM_SPHERE,
        size=[BALL_M, 0, 0],
        mass=BALL_KG,
        rgba=[0.20, 0.45, 0.75, 1.0],
        condim=6,
        friction=[1.0, 0.01, 0.002],
        priority=1,
    )
    spec.worldbody.add_geom(
        type=mujoco.mjtGeom.mjGEOM_SPHERE,
        size=[0.006, 0, 0],
        pos=list(GOAL_M),
        rgba=[0.15, 0.65, 0.30, 1.0],
        contype=0,
        conaffinity=0,
    )
    return compiled_spec(spec, eye=(0.0, -0.75, 0.85), target=(0.0, 0.0, 0.5))


def copies() -> dict[str, tuple[Copy, ...]]:
    """Inputs, outputs and starts: keywords of the engine."""
    inputs, starts, sensors = [], [], []
    for k in range(2):
        inputs.append(Copy("hands", k, "target_rad", "ctrl", 20 * k))
        starts.append(Copy("hands", k, "joint_rad", "qpos", 24 * k))
        starts.append(Copy("hands", k, "joint_radps", "qvel", 24 * k))
        sensors.append(Copy("hands", k, "touch_n", "sensordata", 5 * k))
    starts += [
        Copy("balls", 0, "position_m", "qpos", 48),
        Copy("balls", 0, "quaternion", "qpos", 51),
        Copy("balls", 0, "velocity_mps", "qvel", 48),
        Copy("balls", 0, "turn_radps", "qvel", 51),
    ]
    return {"inputs": tuple(inputs), "starts": tuple(starts), "outputs": (*starts, *sensors)}


def cupped() -> tuple[np.ndarray, np.ndarray]:
    """Servos and joints of a cupped hand; a curl is divided between the two joints that it bends."""
    told = [next((value for name, value in CUPPED.items() if servo.endswith(name)), 0.0) for servo in servos()]
    joints: list[float] = []
    for servo, value in zip(servos(), told, strict=True):
        joints += [value / 2, value / 2] if servo.endswith("_curl") else [value]
    return np.array(told), np.array(joints)


def game(
    reward: Literal["dense", "sparse"] = "dense",
    dtype: Literal["float32", "float64"] = "float32",
) -> Game:
    """The rules of `palaestra/HandOver-v0`.

    Args:
        reward: ``"dense"`` or ``"sparse"``.
        dtype: Of observations and rewards.

    Raises:
        ValueError: A word that is none of these.
    """
    check_word("reward", reward, ("dense", "sparse"))
    check_word("dtype", dtype, ("float32", "float64"))
    number: Any = "f8" if dtype == "float64" else "f4"
    limits = np.array([range_of(servo) for servo in servos()])
    targets, joints = cupped()
    seen = (
        real("joint_rad", 24, "rad", "own joints: as the servos, a curl is two", number),
        real("joint_radps", 24, "rad/s", "their velocities", number),
        real("touch", 5, "N", "on finger tips from the first to the little one, then the thumb", number),
        real("last", 20, "1", "own last action", number),
        real("ball_m", 3, "m", "the ball in the frame of the hand", number),
        real("ball_mps", 3, "m/s", "its velocity", number),
        real("goal_m", 3, "m", "the goal in the frame of the hand", number),
    )
    return Game(
        name="HandOver",
        roles=(
            Role(
                "hand",
                ("hand_0", "hand_1"),
                seen,
                (Continuous("target", (20,), -1.0, 1.0, "1", "targets of the servos, of their ranges"),),
            ),
        ),
        state=(("hands", HAND, (2,)), ("balls", BALL, (1,)), (DIVERGED, "f8"), ("last", "f8", (2, 20))),
        reset=reset,
        command=command,
        evaluate=evaluate,
        observe=observe,
        script=script,
        scripts=("hold",),
        default_opponent="hold",
        physics="palaestra.robots.engine:MujocoEngine",
        physics_options={"model": scene, "arguments": (), "substeps": SUBSTEPS, **copies()},
        engine_version=version,
        horizon=75,
        info=(
            Field("distance_m", (), 0, INF, "m", "from the ball to the goal", "f8", checked=(0.0, 100.0)),
            Field("nearest_m", (), 0, INF, "m", "the least distance so far", "f8", checked=(0.0, 100.0)),
            Field("reward_near", (), 0, 1, "1", "for nearness", "f8"),
            Field("reward_done", (), 0, 1, "1", "for the end", "f8"),
        ),
        end_reasons=("done", "dropped"),
        truncation_reasons=("diverged",),
        reward_dtype=number,
        global_state=global_state,
        global_state_size=109,
        world=World(limits[:, 0].copy(), limits[:, 1].copy(), targets, joints, int(reward == "dense")),
        render="palaestra.robots.picture:draw",
        render_fps=60.0,
    )
