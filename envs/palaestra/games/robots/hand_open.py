"""Two hands open what has two parts: a bottle and its cap, a pen and its cap, scissors.

## Description
Two hands of 24 joints on movable bases stand at a thing of two parts that lies on a stand. A joint with dry friction
connects the parts: neither weight nor one hand alone opens it. `hand_0` holds one part and `hand_1` the other one, then
they move apart. Three ids differ in the thing and in how hands stand:

- `HandBottleCap`: a bottle of 48 mm and a cap that slides off along its axis; hands below it, palms up, side by side.
- `HandPen`: a pen of 32 mm and its cap; hands above it, palms down, side by side.
- `HandScissors`: scissors that lie flat; hands face each other, palms up, below the handles.

The tasks are `ShadowHandBottleCap`, `ShadowHandPen` and `ShadowHandScissors` of Bi-DexHands (Chen et al., "Towards
Human-Level Bimanual Dexterous Manipulation with Reinforcement Learning", NeurIPS 2022) with hands, things, rewards and
thresholds of our own.

## Action Space
<!-- table: action -->

A decision is 1/60 s. The servos' order: wrist sideways, wrist bend; for the four fingers from the thumb's side on
spread, base, curl (the little finger's arch before them); thumb turn, rise, twist, middle, tip; then the base: along
the fingers, to the thumb's side, out of the palm (0.12 m each way), roll (lifts the thumb's side), pitch (lifts the
fingers), yaw (to the thumb's side; 0.6 rad each way).

`commands="grip"`: 10 numbers: the four fingers close, the thumb closes, wrist sideways, wrist bend, then the base. 0 is
the posture of the start, -1 and 1 are the ends of the servos' ranges.

## Observation Space
<!-- table: observation -->

Frames of hands: x along the fingers, y to the thumb's side, z out of the palm, from the place where the wrist is
mounted; they do not move with the base. That of a right hand is mirrored, and so is what it sees. Touch is that before
the last substep.

## Rewards
Paid to both. `reward="dense"`: the mean of both hands' exp(-10 d), times 0.002, in each decision, d metres from the
place where a part lies in the hand to where it is (`reward_near`); the change of the opening, up to that which ends
the match and as a share of it (`reward_open`); and 1 at the end (`reward_done`). `reward="sparse"`: the last alone.

## Starting State
Hands are open, the part of each is 8 mm from its palm. Bottle and pen lie up to 5 mm to either side, the scissors up to
5 mm along and across, and are turned by up to 0.05 rad.

## Episode End

- terminated: `done`, the thing is open and each part is less than 0.04 m from the place where it lies in its hand. The
  bottle is open at 0.03 m, the pen at 0.06 m (both joints end at 0.1 m), the scissors at 0.7 rad (of 1.4);
  `dropped`, the thing is lower than 0.2 m, it starts above 0.3 m; `strayed`, a base is 0.1 m from its place.
- truncated: `diverged`, MuJoCo has given the match up or the thing is faster than 20 m/s; or the horizon, 125
  decisions, 150 in `HandScissors`.

## Arguments
`randomise` and `sensor_noise`: [change the robots](../guides/robots.md). The script `hold` keeps the hands as they
start; `pull` closes them and moves the bases apart.

<!-- table: options -->

<!-- table: parameters -->

## Version History
v0: initial version.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from palaestra.game import Field, Game, Option, uniform, with_options
from palaestra.games.robots.engine import Copy, compiled_spec, import_mujoco
from palaestra.games.robots.hand import BASE_MOST_M, Mount
from palaestra.games.robots.hand_parts import (
    COLORS,
    ENDS,
    GRIP,
    HAND_OPTIONS,
    PALM_M,
    Free,
    Posture,
    distance,
    hand_game,
    hand_spec,
    observe_movable,
    pay_hands,
    start_hands,
    to_axes,
    to_frame,
    vary,
    write_hands,
    write_objects,
)
from palaestra.games.robots.parts import AXES, INF, real, start_noise

HEIGHT_M, LOW_M = 0.3, 0.2
"""Of the wrists; a thing that is lower is dropped."""
CUP_M, GAP_M = 0.09, 0.008
"""Where a part lies in a hand: along the fingers from the wrist; how far it is from the palm at the start."""
HELD_M, NEAR_PAY = 0.04, 0.002
"""A part is so near to its palm that it is held; what nearness is paid at most in a decision."""
CLOSED, CLOSE, PULL, PULLED = 0.9, 25, 40, 70
"""Of the script: how far hands close, and the decisions until it has closed, begins to pull and has pulled."""
ABSURD_MPS = 20.0
"""No hand throws a thing as fast as that."""
CALM = 1e-4, 2e-3
"""Inertia and damping of the free joint, kg and kg m^2, N s/m and N m s/rad: what is thin spins fast, which steps of
1/240 s do not resolve."""
STAND_FRICTION = 0.1
"""So that the stand does not hold what a hand pulls."""
CAP_COLOR, STAND_COLOR = (0.80, 0.33, 0.20), (0.55, 0.57, 0.60)

OPENING = np.dtype([("opening", "f8"), ("speed", "f8")], align=True)
"""The joint between the parts in the match record, m and m/s or rad and rad/s."""


class Rod(NamedTuple):
    """A capsule of a thing, in its frame.

    Attributes:
        part: 0 for the part of `hand_0`, 1 for that of `hand_1`.
        start_m: An end of its axis.
        end_m: The other one.
        radius_m: Of the capsule.
        mass_kg: Of the capsule.
    """

    part: int
    start_m: tuple[float, float, float]
    end_m: tuple[float, float, float]
    radius_m: float
    mass_kg: float


class Thing(NamedTuple):
    """What distinguishes the tasks. The frame of a thing is that of `hand_0`'s part and has the axes of the world.

    Attributes:
        name: Of the game.
        mounts: Of both hands.
        pull_m: Where the script moves a base: along the fingers, to the thumb's side, out of the palm.
        place_m: The thing at the start.
        rods: Both parts.
        grips_m: Where hands grip: a point of each part while it is shut, in the frame of the thing.
        open_at: The match is won.
        friction: Dry friction of the joint, N or N m.
        posture: How hands start.
        spread_m: The thing is so far away from its place at most, along x and y.
        spread_rad: And is turned by so much.
        is_hinge: The joint turns about z through the origin, clockwise; else it slides towards -y.
        most: The end of the joint, m or rad.
        inertia: Added to that of the second part along the joint, kg or kg m^2: so light parts stay calm.
        horizon: Decisions.
        eye_m: The camera.
    """

    name: str
    mounts: tuple[Mount, Mount]
    pull_m: tuple[float, float, float]
    place_m: tuple[float, float, float]
    rods: tuple[Rod, ...]
    grips_m: tuple[tuple[float, float, float], tuple[float, float, float]]
    open_at: float
    friction: float
    posture: Posture = Posture(base=0.25, curl=0.3, thumb_rise=0.2)
    spread_m: tuple[float, float] = (0.0, 0.005)
    spread_rad: float = 0.0
    is_hinge: bool = False
    most: float = 0.1
    inertia: float = 0.1
    horizon: int = 125
    eye_m: tuple[float, float, float] = (0.45, -0.4, 0.62)

    def radius_m(self) -> float:
        """Of the parts where hands grip."""
        return max(rod.radius_m for rod in self.rods)


def _above(radius_m: float) -> float:
    """How high a part of a radius is above the middle of a palm at the start."""
    return PALM_M + GAP_M + radius_m


BOTTLE_CAP = Thing(
    "HandBottleCap",
    (Mount((-CUP_M, 0.07, HEIGHT_M)), Mount((-CUP_M, -0.07, HEIGHT_M), is_right=True)),
    pull_m=(0.0, 0.05, 0.0),
    place_m=(0.0, 0.0, HEIGHT_M + _above(0.024)),
    rods=(
        Rod(0, (0.0, 0.116, 0.0), (0.0, -0.05, 0.0), 0.023, 0.15),
        Rod(1, (0.0, 0.02, 0.0), (0.0, -0.116, 0.0), 0.024, 0.1),
    ),
    grips_m=((0.0, 0.07, 0.0), (0.0, -0.07, 0.0)),
    open_at=0.03,
    friction=4.0,
)
PEN = Thing(
    "HandPen",
    (
        Mount((-CUP_M, 0.08, HEIGHT_M + 0.1), yaw_rad=math.pi, pitch_rad=math.pi, is_right=True),
        Mount((-CUP_M, -0.08, HEIGHT_M + 0.1), yaw_rad=math.pi, pitch_rad=math.pi),
    ),
    pull_m=(0.0, 0.06, 0.0),
    place_m=(0.0, 0.0, HEIGHT_M + 0.1 - _above(0.016)),
    rods=(
        Rod(0, (0.0, 0.114, 0.0), (0.0, -0.05, 0.0), 0.015, 0.09),
        Rod(1, (0.0, 0.02, 0.0), (0.0, -0.114, 0.0), 0.016, 0.06),
    ),
    grips_m=((0.0, 0.08, 0.0), (0.0, -0.08, 0.0)),
    open_at=0.06,
    friction=2.5,
)
SCISSORS = Thing(
    "HandScissors",
    (
        Mount((-0.115 - CUP_M, 0.0, HEIGHT_M)),
        Mount((0.115 + CUP_M, 0.0, HEIGHT_M), yaw_rad=math.pi, is_right=True),
    ),
    posture=Posture(base=0.5, curl=0.6, thumb_rise=0.2),
    pull_m=(-0.07, 0.0, 0.0),
    place_m=(0.0, -0.12, HEIGHT_M + _above(0.013)),
    spread_m=(0.005, 0.005),
    spread_rad=0.05,
    rods=(
        Rod(0, (-0.115, 0.07, 0.0), (-0.115, 0.17, 0.0), 0.013, 0.04),
        Rod(0, (0.0, 0.0, 0.0), (-0.115, 0.07, 0.0), 0.01, 0.03),
        Rod(0, (0.0, 0.0, 0.0), (0.012, -0.13, 0.0), 0.01, 0.08),
        Rod(1, (0.115, 0.07, 0.0), (0.115, 0.17, 0.0), 0.013, 0.04),
        Rod(1, (0.0, 0.0, 0.0), (0.115, 0.07, 0.0), 0.01, 0.03),
        Rod(1, (0.0, 0.0, 0.0), (-0.012, -0.13, 0.0), 0.01, 0.08),
    ),
    grips_m=((-0.115, 0.12, 0.0), (0.115, 0.12, 0.0)),
    is_hinge=True,
    most=1.4,
    open_at=0.7,
    friction=0.25,
    inertia=0.001,
    horizon=150,
    eye_m=(0.0, -0.6, 0.75),
)
TASKS = (("bottle_cap", BOTTLE_CAP), ("pen", PEN), ("scissors", SCISSORS))


class OpenTask(NamedTuple):
    """`palaestra.games.robots.hand_parts.HandWorld.task`: see `Thing`.

    Attributes:
        place_m: The thing at the start, ``[3]``.
        spread: Most offset along x and y, most turn, ``[3]``.
        grips_m: ``[2, 3]``.
        above_m: How high a part is above the middle of the palm that it lies on.
        slide: Way of the second part towards -y, a unit of opening.
        turn: Its turn clockwise about z, a unit of opening.
        open_at: The match is won.
        mirror: -1 for a hand whose frame is mirrored, else 1, ``[2]``.
        pull: Numbers of the base in a grip that the script moves to, ``[6]``.
    """

    place_m: np.ndarray
    spread: np.ndarray
    grips_m: np.ndarray
    above_m: float
    slide: float
    turn: float
    open_at: float
    mirror: np.ndarray
    pull: np.ndarray


def reset(s, world):
    """The thing lies shut on its stand."""
    start_hands(s, world)
    thing, task = s.objects[0], world.task
    for i in range(3):
        thing.position_m[i] = task.place_m[i]
    for i in range(2):
        thing.position_m[i] += uniform(s, -1.0, 1.0) * task.spread[i]
    turned = uniform(s, -1.0, 1.0) * task.spread[2]
    thing.quaternion[0], thing.quaternion[3] = math.cos(0.5 * turned), math.sin(0.5 * turned)
    vary(s, world)


def rotated(quaternion, x, y, z):
    """A vector of a body's frame in that of the world."""
    w, a, b, c = quaternion[0], quaternion[1], quaternion[2], quaternion[3]
    p, q, r = 2.0 * (b * z - c * y), 2.0 * (c * x - a * z), 2.0 * (a * y - b * x)
    return x + w * p + b * r - c * q, y + w * q + c * p - a * r, z + w * r + a * q - b * p


def grip_point(s, world, k):
    """Where a hand grips its part, in the frame of the world, m."""
    task, thing, opening = world.task, s.objects[0], s.joints[0].opening
    x, y, z = task.grips_m[k, 0], task.grips_m[k, 1], task.grips_m[k, 2]
    if k == 1:
        cos, sin = math.cos(task.turn * opening), math.sin(task.turn * opening)
        x, y = cos * x + sin * y, cos * y - sin * x - task.slide * opening
    x, y, z = rotated(thing.quaternion, x, y, z)
    return thing.position_m[0] + x, thing.position_m[1] + y, thing.position_m[2] + z


def turned(angle, x, y):
    """A point of a plane, turned from x to y."""
    cos, sin = math.cos(angle), math.sin(angle)
    return cos * x - sin * y, sin * x + cos * y


def palm_point(hand, above):
    """Where a part would lie in a hand, from its wrist and base, in the frame of its mount, m."""
    x, z = turned(hand.joint_rad[1], CUP_M, above)
    x, y = turned(hand.joint_rad[0] + hand.base_pose[5], x, 0.0)
    x, z = turned(hand.base_pose[4], x, z)
    y, z = turned(hand.base_pose[3], y, z)
    return hand.base_pose[0] + x, hand.base_pose[1] + y, hand.base_pose[2] + z


def share_open(world, opening):
    """Of what ends the match, 0 to 1."""
    return min(max(opening / world.task.open_at, 0.0), 1.0)


def is_absurd(velocity):
    """Whether the solver has failed and the thing flies off."""
    return velocity[0] ** 2 + velocity[1] ** 2 + velocity[2] ** 2 > ABSURD_MPS**2


def evaluate(s, world, rewards, scratch):
    """Pays both, and ends the match."""
    info, task, opening = s.info, world.task, s.joints[0].opening
    info.reward_near = info.reward_open = info.away_m = 0.0
    for k in range(2):
        to_frame(world, k, grip_point(s, world, k), scratch.own)
        away = distance(palm_point(s.hands[k], task.above_m), scratch.own)
        info.away_m = max(info.away_m, away)
        if world.is_dense:
            info.reward_near += 0.5 * NEAR_PAY * math.exp(-10.0 * away)
    if world.is_dense:
        info.reward_open = share_open(world, opening) - share_open(world, info.opening)
    info.opening = opening
    is_done = opening > task.open_at and info.away_m < HELD_M
    is_lost = s.diverged != 0.0 or is_absurd(s.objects[0].velocity_mps)
    return pay_hands(s, rewards, info.reward_near + info.reward_open, is_done, LOW_M, is_lost)


def observe(s, world, observations, scratch):
    """A hand sees itself, the thing, its opening and where to grip it."""
    start_noise(s, scratch)
    thing, joint = s.objects[0], s.joints[0]
    q = thing.quaternion
    for k in range(2):
        seen, mirror = observations.hand[k], world.task.mirror[k]
        observe_movable(s, k, world, seen, scratch)
        to_frame(world, k, thing.position_m, seen.thing_m)
        to_axes(world, k, thing.velocity_mps, seen.thing_mps)
        to_axes(world, k, rotated(q, thing.turn_radps[0], thing.turn_radps[1], thing.turn_radps[2]), seen.thing_radps)
        sign = -1.0 if q[0] < 0.0 else 1.0
        to_axes(world, k, q[1:], scratch.own)
        seen.thing_turn[0] = sign * q[0]
        for i in range(3):  # turns in a mirror are the other way
            seen.thing_turn[1 + i] = sign * mirror * scratch.own[i]
            seen.thing_radps[i] *= mirror
        seen.opening[0], seen.opening_speed[0] = joint.opening, joint.speed
        to_frame(world, k, grip_point(s, world, k), seen.grip_m)


def global_state(s, world, out):
    """Hands, the thing, its opening and the velocity of that."""
    first = write_objects(s, write_hands(s, world, out), out)
    out[first], out[first + 1] = s.joints[0].opening, s.joints[0].speed


def pulling(s, world, number):
    """`pull`: a number of a grip."""
    if number < 2:
        return CLOSED * min(s.steps / CLOSE, 1.0)
    if number < GRIP:
        return 0.0
    return world.task.pull[number - GRIP] * min(max((s.steps - PULL) / (PULLED - PULL), 0.0), 1.0)


def script(s, world, slot, which, actions, scratch):
    """`hold` and `pull`: a number a servo."""
    for i in range(world.servos):
        target = world.cup_target[slot, i]
        if which == 1 and world.part_of[i] >= 0:
            target += pulling(s, world, world.part_of[i]) * (world.high[i] - target)
        actions.hand[slot].target[i] = 2.0 * (target - world.low[i]) / (world.high[i] - world.low[i]) - 1.0


def script_grip(s, world, slot, which, actions, scratch):
    """The same by a grip."""
    for i in range(world.numbers):
        actions.hand[slot].grip[i] = pulling(s, world, i) if which == 1 else 0.0


def scene(thing: Thing, is_varied: bool = False) -> Any:
    """The model (``mujoco.MjModel``)."""
    mujoco = import_mujoco()
    geoms, joints = mujoco.mjtGeom, mujoco.mjtJoint
    spec = hand_spec(thing.mounts, is_movable=True, is_varied=is_varied)
    spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    first = spec.worldbody.add_body(name="part_0", pos=list(thing.place_m))
    first.add_joint(name="part_0_free", type=joints.mjJNT_FREE, armature=CALM[0], damping=CALM[1])
    second = first.add_body(name="part_1")
    second.add_joint(
        name="opening",
        type=joints.mjJNT_HINGE if thing.is_hinge else joints.mjJNT_SLIDE,
        axis=[0, 0, -1] if thing.is_hinge else [0, -1, 0],
        range=[0.0, thing.most],
        frictionloss=thing.friction,
        armature=thing.inertia,
    )
    for number, rod in enumerate(thing.rods):
        (first, second)[rod.part].add_geom(
            name=f"rod_{number}",
            type=geoms.mjGEOM_CAPSULE,
            size=[rod.radius_m, 0, 0],
            fromto=[*rod.start_m, *rod.end_m],
            mass=rod.mass_kg,
            rgba=[*(CAP_COLOR if rod.part else COLORS["object"]), 1.0],
            condim=4,
            friction=[1.0, 0.01, 0.001],
            priority=1,
        )
    add_stand(spec, thing)
    return compiled_spec(spec, eye=thing.eye_m, target=(0.0, 0.0, thing.place_m[2]))


def add_stand(spec: Any, thing: Thing) -> None:
    """Below scissors a plate; below what slides two rails, between which it lies. A column carries them."""
    geoms = import_mujoco().mjtGeom
    look = {"rgba": [*STAND_COLOR, 1.0], "friction": [STAND_FRICTION, 0.01, 0.001], "condim": 4, "priority": 2}
    x, y, z = thing.place_m
    if thing.is_hinge:
        top, y, half = z - thing.rods[1].radius_m, y - 0.045, (0.03, 0.075)
    else:
        rail, radius = 0.005, thing.radius_m()
        away = (radius + rail) * math.sqrt(0.5)
        top, half = z - radius - rail, (away, 0.012)
        for side in (-1, 1):
            ends = [x + side * away, y - half[1], z - away, x + side * away, y + half[1], z - away]
            spec.worldbody.add_geom(type=geoms.mjGEOM_CAPSULE, size=[rail, 0, 0], fromto=ends, **look)
    spec.worldbody.add_geom(name="stand", type=geoms.mjGEOM_BOX, size=[*half, top / 2], pos=[x, y, top / 2], **look)


def sees(number: Any) -> tuple[Field, ...]:
    """What a hand sees beside itself."""
    return (
        real("thing_m", 3, "m", "the thing in the frame of the hand", number, AXES),
        real(
            "thing_turn",
            4,
            "1",
            "how it is turned since it was on its stand (w, x, y, z), w not negative",
            number,
            ("w", *AXES),
        ),
        real("thing_mps", 3, "m/s", "its velocity", number, AXES),
        real("thing_radps", 3, "rad/s", "its turning", number, AXES),
        real("opening", 1, "m or rad", "how far it is open", number),
        real("opening_speed", 1, "m/s or rad/s", "the velocity of that", number),
        real("grip_m", 3, "m", "where to grip the own part, in the frame of the hand", number, AXES),
    )


@with_options(Option("task", "bottle_cap", "what is opened; fixed by the id", words=tuple(dict(TASKS))), *HAND_OPTIONS)
def game(options: Any) -> Game:
    """The rules of `palaestra/HandBottleCap-v0` and its kin."""
    thing = dict(TASKS)[options.task]
    slides = 0.0 if thing.is_hinge else 1.0
    return hand_game(
        options,
        thing.name,
        sees,
        scene,
        arguments=(thing,),
        mounts=thing.mounts,
        postures=(thing.posture, thing.posture),
        is_movable=True,
        bodies=(Copy("joints", 0, "opening", "qpos", 67), Copy("joints", 0, "speed", "qvel", 66)),
        state=(("joints", OPENING, (1,)),),
        state_size=2,
        task=OpenTask(
            np.array(thing.place_m),
            np.array([*thing.spread_m, thing.spread_rad]),
            np.array(thing.grips_m),
            PALM_M + thing.radius_m(),
            slides,
            1.0 - slides,
            thing.open_at,
            np.array([round(np.linalg.det(mount.axes())) for mount in thing.mounts], float),
            np.array([*thing.pull_m, 0.0, 0.0, 0.0]) / BASE_MOST_M,
        ),
        objects=(Free(("part_0", "part_1"), tuple(f"rod_{k}" for k in range(len(thing.rods)))),),
        reset=reset,
        evaluate=evaluate,
        observe=observe,
        script=script if options.commands == "joint" else script_grip,
        scripts=("hold", "pull"),
        global_state=global_state,
        horizon=thing.horizon,
        plots=("opening", "away_m"),
        info=(
            Field("opening", (), -INF, INF, "m or rad", "how far the thing is open", "f8", checked=(-1.0, 10.0)),
            Field("away_m", (), 0, INF, "m", "from a palm to its part, the larger of both", "f8", checked=(0.0, 100.0)),
            Field("reward_near", (), 0, NEAR_PAY, "1", "for nearness", "f8"),
            Field("reward_open", (), -1, 1, "1", "for opening", "f8"),
            Field("reward_done", (), 0, 1, "1", "for the end", "f8"),
        ),
        end_reasons=ENDS,
    )
