"""What all games of two hands share: the game around a task, records, commands, what a hand sees.

A task gives hooks, fields, a scene and its objects; `hand_game` makes the `palaestra.game.Game`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from palaestra.game import TERMINATED, TRUNCATED, Continuous, Field, Game, Option, Role, uniform
from palaestra.games.robots.engine import DIVERGED, Copy, Scale, import_mujoco, version
from palaestra.games.robots.hand import BASE, FINGERS, HAND, Mount, add_hand, all_servos, joints, range_of, servos
from palaestra.games.robots.parts import (
    FIELD_DTYPES,
    FREE,
    ROBOT_OPTIONS,
    draw_factor,
    draw_noise,
    free_copies,
    real,
    scales_of,
    write_free,
)

SUBSTEPS, TIMESTEP_S = 4, 1.0 / 240.0
CUP_M, PALM_M = 0.1, 0.011
"""The middle of a cupped hand: along its fingers from the wrist, and its palm's height."""
STRAYED_M = 0.1
"""A movable base that is so far from its place has strayed."""
CLOSED_BY = (("base", "curl"), ("thumb_rise", "thumb_tip"))
"""Servos that the closure of the four fingers and that of the thumb move."""
GRIP, MOVABLE_GRIP = 4, 10
GRIP_PARTS = ("fingers", "thumb", "wrist sideways", "wrist bend")
"""Numbers of a grip: closure of the fingers, of the thumb, wrist sideways, wrist bend; then the base."""
DONE, DROPPED, STRAYED, LOST = 2, 3, 4, 5
"""Numbers of the end reasons: `ENDS`, and the loss of a match."""
ENDS = ("done", "dropped", "strayed")
COLORS = {"skin": (0.83, 0.62, 0.50), "object": (0.20, 0.45, 0.75), "goal": (0.15, 0.65, 0.30)}

OBJECT = np.dtype([*FREE.descr, ("mass_factor", "f8"), ("friction_factor", "f8")], align=True)
"""A free object in the match record; the last two are drawn at a start."""
NOISE = np.array([0.01] * 24 + [0.5] * 24 + [0.1] * 5 + [0.001] * 3 + [0.01] * 3 + [0.01] * 3 + [0.1] * 3)
"""Most noise of what a hand measures of itself with ``sensor_noise=1``, in their units."""

HAND_OPTIONS = (
    *ROBOT_OPTIONS,
    Option("commands", "joint", "agents give a number a servo, or one for all fingers", words=("joint", "grip")),
)
"""Of all games of hands."""


class HandWorld(NamedTuple):
    """What the hooks of all games of hands read.

    Attributes:
        low: Least target of each servo, those of a movable base last, rad and m.
        high: Most of each.
        cup_target: Servos at the start, ``[2, servos]``.
        cup_joint: Hinges at the start, ``[2, 24]``.
        cup_action: The action that keeps the targets of the start, ``[2, numbers]``.
        part_of: Number of a grip that moves a servo, -1 for none, ``[servos]``.
        is_dense: Whether what leads to the end is paid.
        is_movable: Whether hands have movable bases.
        servos: Servos of a hand: 20, or 26 with a movable base.
        numbers: Of an action.
        place_m: Where the wrists are mounted, ``[2, 3]``.
        axes: Of the hands: along the fingers, to the thumb's side, out of the palm, ``[2, 3, 3]``.
        randomise: Share of the most that servos and objects vary.
        sensor_noise: Share of the most noise.
        noise: `NOISE`.
        task: What the task adds: a NamedTuple.
    """

    low: np.ndarray
    high: np.ndarray
    cup_target: np.ndarray
    cup_joint: np.ndarray
    cup_action: np.ndarray
    part_of: np.ndarray
    is_dense: int
    is_movable: int
    servos: int
    numbers: int
    place_m: np.ndarray
    axes: np.ndarray
    randomise: float
    sensor_noise: float
    noise: np.ndarray
    task: Any


class Posture(NamedTuple):
    """How a hand starts: servos that are not at 0, rad.

    Attributes:
        base: First joint of the four fingers.
        curl: The other two, both together.
        thumb_turn: Of the thumb, like the following three.
        thumb_rise: Its first joint.
        thumb_middle: Its second joint.
        thumb_tip: Its last joint.
        press: Times ``curl``: what the curl's servos are told, so that fingers press on what they hold.
    """

    base: float = 0.5
    curl: float = 0.8
    thumb_turn: float = 0.0
    thumb_rise: float = 0.9
    thumb_middle: float = 0.0
    thumb_tip: float = 0.0
    press: float = 1.0


CUPPED = Posture()


class Free(NamedTuple):
    """Names in the model of what belongs to a free object.

    Attributes:
        bodies: Its bodies.
        geoms: Their geoms.
    """

    bodies: tuple[str, ...]
    geoms: tuple[str, ...]


def start_hands(s, world):
    """Hands take their postures; call it first in a reset."""
    for k in range(2):
        for i in range(20):
            s.hands[k].target_rad[i] = world.cup_target[k, i]
        for i in range(24):
            s.hands[k].joint_rad[i] = world.cup_joint[k, i]
        for i in range(world.numbers):
            s.last[k, i] = world.cup_action[k, i]


def vary(s, world):
    """Draws gains and delays of servos, masses and friction of objects for a match; call it last in a reset."""
    for k in range(2):
        s.hands[k].gain_factor = draw_factor(s, 0.2 * world.randomise)
        s.hands[k].delay = world.randomise * uniform(s, 0.0, 1.0)
    for j in range(len(s.objects)):
        s.objects[j].mass_factor = draw_factor(s, 0.2 * world.randomise)
        s.objects[j].friction_factor = draw_factor(s, 0.5 * world.randomise)
    draw_noise(s, world)


def command(s, world, actions, scratch):
    """Each number is the target of a servo."""
    draw_noise(s, world)
    for k in range(2):
        for i in range(world.servos):
            share = actions.hand[k].target[i]
            s.last[k, i] = share
            set_target(s, k, i, world.low[i] + 0.5 * (share + 1.0) * (world.high[i] - world.low[i]))


def command_grip(s, world, actions, scratch):
    """A number moves several servos: from their start at 0 to their most at 1 and their least at -1."""
    draw_noise(s, world)
    for k in range(2):
        grip = actions.hand[k].grip
        for i in range(world.numbers):
            s.last[k, i] = grip[i]
        for i in range(world.servos):
            target = world.cup_target[k, i]
            if world.part_of[i] >= 0:
                share = grip[world.part_of[i]]
                way = world.high[i] - target if share > 0.0 else target - world.low[i]
                target += share * way
            set_target(s, k, i, target)


def set_target(s, k, i, target):
    """Tells a servo of a hand, or of its base."""
    if i < 20:
        s.hands[k].target_rad[i] = target
    else:
        s.hands[k].base_target[i - 20] = target


def hold(s, world, slot, which, actions, scratch):
    """`hold`: the servos stay as they were at the start."""
    for i in range(world.numbers):
        actions.hand[slot].target[i] = world.cup_action[slot, i]


def hold_grip(s, world, slot, which, actions, scratch):
    """`hold`: the same by a grip."""
    for i in range(world.numbers):
        actions.hand[slot].grip[i] = world.cup_action[slot, i]


def has_strayed(s):
    """Whether a movable base is too far from its place."""
    for k in range(2):
        base = s.hands[k].base_pose
        if base[0] * base[0] + base[1] * base[1] + base[2] * base[2] >= STRAYED_M * STRAYED_M:
            return True
    return False


def pay_hands(s, rewards, paid, is_done, low_m, is_lost):
    """Pays both hands, and 1 for the end; ends the match: done, the object is lower than ``low_m``, strayed, lost."""
    info, result = s.info, 0
    info.reward_done = 0.0
    if is_done:
        info.reward_done, info.end_reason, result = 1.0, DONE, TERMINATED
    elif s.objects[0].position_m[2] < low_m:
        info.end_reason, result = DROPPED, TERMINATED
    elif has_strayed(s):
        info.end_reason, result = STRAYED, TERMINATED
    if is_lost:
        info.end_reason, result = LOST, TRUNCATED
    for k in range(2):
        rewards[k] += paid + info.reward_done
    return result


def distance(a, b):
    """Between two points."""
    return math.sqrt((a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2 + (a[2] - b[2]) ** 2)


def to_frame(world, k, point, out):
    """Writes a point in the frame of the place where a hand is mounted."""
    for i in range(3):
        total = 0.0
        for j in range(3):
            total += world.axes[k, i, j] * (point[j] - world.place_m[k, j])
        out[i] = total


def to_axes(world, k, vector, out):
    """Writes a velocity or direction in that frame."""
    for i in range(3):
        total = 0.0
        for j in range(3):
            total += world.axes[k, i, j] * vector[j]
        out[i] = total


def own_numbers(s, k, world, scratch):
    """Writes ``scratch.own``: what a hand measures of itself (`measured_numbers`), with noise, then its last action.

    Call it for both hands in their order, `start_noise` before the first one.
    """
    hand, out = s.hands[k], scratch.own
    for i in range(24):
        out[i], out[24 + i] = hand.joint_rad[i], hand.joint_radps[i]
    for i in range(5):
        out[48 + i] = hand.touch_n[i]
    first = 53
    if world.is_movable:
        for i in range(6):
            out[53 + i], out[59 + i] = hand.base_pose[i], hand.base_speed[i]
        first = 65
    if world.sensor_noise > 0.0:
        for i in range(first):
            out[i] += world.sensor_noise * world.noise[i] * uniform(scratch, -1.0, 1.0)
    for i in range(world.numbers):
        out[first + i] = s.last[k, i]


def observe_self(s, k, world, seen, scratch):
    """Writes `own_fields` of a hand whose base is fixed."""
    own_numbers(s, k, world, scratch)
    own = scratch.own
    for i in range(24):
        seen.joint_rad[i], seen.joint_radps[i] = own[i], own[24 + i]
    for i in range(5):
        seen.touch[i] = own[48 + i]
    first = 65 if world.is_movable else 53
    for i in range(world.numbers):
        seen.last[i] = own[first + i]


def observe_movable(s, k, world, seen, scratch):
    """Writes `own_fields` of a hand with a movable base."""
    observe_self(s, k, world, seen, scratch)
    for i in range(6):
        seen.base_pose[i], seen.base_speed[i] = scratch.own[53 + i], scratch.own[59 + i]


def write_hands(s, world, out):
    """Writes both hands to a global state; returns the numbers written.

    Of each: hinges and their velocities, base and its velocities, gain and delay of the servos.
    """
    first = 0
    for k in range(2):
        hand = s.hands[k]
        for i in range(24):
            out[first + i], out[first + 24 + i] = hand.joint_rad[i], hand.joint_radps[i]
        first += 48
        if world.is_movable:
            for i in range(6):
                out[first + i], out[first + 6 + i] = hand.base_pose[i], hand.base_speed[i]
            first += 12
        out[first], out[first + 1] = hand.gain_factor, hand.delay
        first += 2
    return first


def write_objects(s, first, out):
    """Writes free objects to a global state from a place on; returns the next place."""
    for j in range(len(s.objects)):
        thing = s.objects[j]
        write_free(thing, first, out)
        out[first + 13], out[first + 14] = thing.mass_factor, thing.friction_factor
        first += 15
    return first


def global_state(s, world, out):
    """Hands, then place, velocities and orientation of each object, and what was drawn of it."""
    write_objects(s, write_hands(s, world, out), out)


def own_fields(number: str, action: Continuous, is_movable: bool) -> tuple[Field, ...]:
    """What a hand sees of itself: fields of a dtype, and of its action."""
    base_parts = tuple(name.removeprefix("base_") for name in BASE)
    base = (
        real("base_pose", 6, "m, rad", "own base: x, y, z, roll, pitch, yaw", number, base_parts),
        real("base_speed", 6, "m/s, rad/s", "its velocities", number, base_parts),
    )
    return (
        real("joint_rad", 24, "rad", "own joints: as the servos, a curl is two", number, joints()),
        real("joint_radps", 24, "rad/s", "their velocities", number, joints()),
        real(
            "touch",
            5,
            "N",
            "on finger tips from the first to the little one, then the thumb",
            number,
            (*FINGERS, "thumb"),
        ),
        *(base if is_movable else ()),
        real("last", action.size, "1", "own last action", number, action.parts),
    )


def measured_numbers(is_movable: bool) -> int:
    """Numbers that a hand measures of itself; its last action follows them in `own_numbers`."""
    return 65 if is_movable else 53


def action_numbers(commands: str, is_movable: bool) -> int:
    """Numbers of an action."""
    if commands == "grip":
        return MOVABLE_GRIP if is_movable else GRIP
    return len(all_servos(is_movable))


def hand_spec(mounts: Sequence[Mount], *, is_movable: bool, is_varied: bool) -> Any:
    """A floor, two hands, and a camera ``top`` above them (``mujoco.MjSpec``); objects are added after them."""
    mujoco = import_mujoco()
    spec = mujoco.MjSpec()
    spec.compiler.degree = False
    spec.option.timestep = TIMESTEP_S
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    spec.option.jacobian = mujoco.mjtJacobian.mjJAC_DENSE  # the sparse solver fails now and then: things fly off
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1], name="floor")
    for k, mount in enumerate(mounts):
        add_hand(spec, f"hand_{k}", mount, is_movable=is_movable, is_varied=is_varied, color=COLORS["skin"])
    cups = np.array([mount.position_m + CUP_M * mount.axes()[0] for mount in mounts])
    x, y, _ = cups.mean(axis=0)
    spec.worldbody.add_camera(name="top", pos=[x, y, cups[:, 2].max() + 0.7])
    return spec


def add_goal(spec: Any, position_m: Any) -> None:
    """Marks a place by a small green ball that nothing touches."""
    spec.worldbody.add_geom(
        type=import_mujoco().mjtGeom.mjGEOM_SPHERE,
        size=[0.006, 0, 0],
        pos=list(position_m),
        rgba=[*COLORS["goal"], 1.0],
        contype=0,
        conaffinity=0,
    )


def copies(is_movable: bool, objects: int, more: Sequence[Copy] = ()) -> dict[str, tuple[Copy, ...]]:
    """Inputs, outputs and starts: keywords of the engine.

    Args:
        is_movable: Whether hands have movable bases.
        objects: Free objects, which come right after the hands in the model.
        more: Copies of other bodies, which start and are written.
    """
    inputs, starts, sensors = [], [], []
    bases, controls = (6, 26) if is_movable else (0, 20)
    joints = bases + 24
    for k in range(2):
        inputs.append(Copy("hands", k, "target_rad", "ctrl", controls * k))
        if is_movable:
            inputs.append(Copy("hands", k, "base_target", "ctrl", controls * k + 20))
            starts.append(Copy("hands", k, "base_pose", "qpos", joints * k))
            starts.append(Copy("hands", k, "base_speed", "qvel", joints * k))
        starts.append(Copy("hands", k, "joint_rad", "qpos", joints * k + bases))
        starts.append(Copy("hands", k, "joint_radps", "qvel", joints * k + bases))
        sensors.append(Copy("hands", k, "touch_n", "sensordata", 5 * k))
    for j in range(objects):
        starts += free_copies("objects", j, 2 * joints + 7 * j, 2 * joints + 6 * j)
    starts += more
    return {"inputs": tuple(inputs), "starts": tuple(starts), "outputs": (*starts, *sensors)}


def scales(is_movable: bool, objects: Sequence[Free]) -> tuple[Scale, ...]:
    """What `vary` draws, in the model."""
    made: list[Scale] = []
    for k in range(2):
        made += scales_of("hands", k, servos=[f"hand_{k}_{servo}" for servo in all_servos(is_movable)])
    for j, free in enumerate(objects):
        made += scales_of("objects", j, bodies=free.bodies, geoms=free.geoms)
    return tuple(made)


def posed(posture: Posture) -> tuple[np.ndarray, np.ndarray]:
    """Targets of the 20 servos, and the 24 hinges; a curl is divided between the two joints that it bends."""
    values = posture._asdict()
    told, joints = [], []
    for servo in servos():
        value = next((values[name] for name in values if servo.endswith(name)), 0.0)
        is_curl = servo.endswith("_curl")
        told.append(posture.press * value if is_curl else value)
        joints += [value / 2, value / 2] if is_curl else [value]
    return np.array(told), np.array(joints)


def parts_of_a_grip(is_movable: bool) -> np.ndarray:
    """Which number of a grip moves each servo, -1 for none."""
    numbers = {"wrist_side": 2, "wrist_bend": 3, **{name: GRIP + k for k, name in enumerate(BASE)}}
    found = []
    for servo in all_servos(is_movable):
        closing = next((part for part, names in enumerate(CLOSED_BY) if servo.endswith(names)), -1)
        found.append(numbers.get(servo, closing))
    return np.array(found)


def hand_world(
    mounts: Sequence[Mount],
    postures: Sequence[Posture],
    is_movable: bool,
    options: Any,
    task: Any,
) -> HandWorld:
    """What the hooks read."""
    names = all_servos(is_movable)
    low, high = np.array([range_of(servo) for servo in names]).T.copy()
    poses = [posed(posture) for posture in postures]
    targets = np.array([np.pad(told, (0, len(names) - len(told))) for told, _ in poses])
    numbers = action_numbers(options.commands, is_movable)
    told = 2.0 * (targets - low) / (high - low) - 1.0
    return HandWorld(
        low,
        high,
        targets,
        np.array([joints for _, joints in poses]),
        told if options.commands == "joint" else np.zeros((2, numbers)),
        parts_of_a_grip(is_movable),
        int(options.reward == "dense"),
        int(is_movable),
        len(names),
        numbers,
        np.array([mount.position_m for mount in mounts]),
        np.array([mount.axes() for mount in mounts]),
        options.randomise,
        options.sensor_noise,
        NOISE,
        task,
    )


def hand_game(
    options: Any,
    name: str,
    sees: Callable[[Any], tuple],
    scene: Callable[..., Any],
    *,
    arguments: tuple = (),
    mounts: Sequence[Mount],
    postures: Sequence[Posture] = (CUPPED, CUPPED),
    is_movable: bool,
    objects: Sequence[Free],
    bodies: Sequence[Copy] = (),
    state: Sequence[tuple] = (),
    state_size: int = 0,
    task: Any = (),
    **rules: Any,
) -> Game:
    """The game of a task of two hands.

    Args:
        options: `HAND_OPTIONS` of the user. With ``"grip"`` agents command as `command_grip` says.
        name: Of the game.
        sees: Gives what a hand sees beside itself, from the dtype of numbers.
        scene: ``scene(*arguments, is_varied) -> MjModel``: see `hand_spec`; free objects come right after the hands.
        arguments: Of the scene.
        mounts: Of the two hands.
        postures: How they start.
        is_movable: Whether their bases move.
        objects: Free objects, ``s.objects``.
        bodies: Copies of other bodies, which start and are written.
        state: Fields of the task in the match record.
        state_size: Numbers of the global state beside those of hands and free objects.
        task: `HandWorld.task`.
        rules: Other attributes of `palaestra.game.Game`.
    """
    number, numbers = FIELD_DTYPES[options.dtype], action_numbers(options.commands, is_movable)
    is_joint, is_varied = options.commands == "joint", options.randomise > 0.0
    field, about = (
        ("target", "targets of the servos, of their ranges")
        if is_joint
        else ("grip", "fingers close, thumb closes, wrist sideways, wrist bend" + (", base" if is_movable else ""))
    )
    names = all_servos(is_movable) if is_joint else (*GRIP_PARTS, *(BASE if is_movable else ()))
    action = Continuous(field, (numbers,), -1.0, 1.0, "1", about, parts=names)
    defaults: dict[str, Any] = {
        "global_state": global_state,
        "script": hold if is_joint else hold_grip,
        "scripts": ("hold",),
        "default_opponent": "hold",
    }
    return Game(
        name=name,
        roles=(
            Role(
                "hand",
                ("hand_0", "hand_1"),
                (*own_fields(number, action, is_movable), *sees(number)),
                (action,),
            ),
        ),
        state=(
            ("hands", HAND, (2,)),
            ("objects", OBJECT, (len(objects),)),
            (DIVERGED, "f8"),
            ("last", "f8", (2, numbers)),
            ("noise_seed", "f8"),
            *state,
        ),
        command=command if is_joint else command_grip,
        scratch=(("rng", "u8"), ("own", "f8", (measured_numbers(is_movable) + numbers,))),
        physics="palaestra.games.robots.engine:MujocoEngine",
        physics_options={
            "model": scene,
            "arguments": (*arguments, is_varied),
            "substeps": SUBSTEPS,
            **copies(is_movable, len(objects), bodies),
            "scales": scales(is_movable, objects) if is_varied else (),
        },
        engine_version=version,
        truncation_reasons=("diverged",),
        reward_dtype=number,
        global_state_size=(124 if is_movable else 100) + 15 * len(objects) + state_size,
        world=hand_world(mounts, postures, is_movable, options, task),
        render="palaestra.games.robots.picture:draw",
        render_fps=60.0,
        **defaults | rules,
    )
