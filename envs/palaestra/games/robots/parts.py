"""What quadrupeds and hands share: fields without bounds, free bodies, servos, randomisation, sensor noise."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Literal

import numpy as np

from palaestra.core.contract.fields import Parts
from palaestra.game import Field, Option, uniform
from palaestra.games.robots.engine import Copy, Scale, import_mujoco

INF = math.inf
LONGEST_DELAY_S = 0.02
"""Of servos, with ``randomise=1``."""
DELAY_SAMPLES = 6
"""Targets that a servo with a delay keeps, one a time step of 4 to 5 ms: more than the longest delay has."""

FREE = np.dtype(
    [("position_m", "f8", (3,)), ("quaternion", "f8", (4,)), ("velocity_mps", "f8", (3,)), ("turn_radps", "f8", (3,))],
    align=True,
)
"""A free body in the match record: place, orientation (w, x, y, z), velocity, and turning in its own frame."""
SCALED = (
    ("mass_factor", "body_mass", "bodies", (0,)),
    ("mass_factor", "body_inertia", "bodies", (0, 1, 2)),
    ("friction_factor", "geom_friction", "geoms", (0,)),
    ("gain_factor", "actuator_gainprm", "servos", (0,)),
    ("gain_factor", "actuator_biasprm", "servos", (1, 2)),
    ("delay", "actuator_delay", "servos", (0,)),
)
"""What a start draws: member of a record, array of ``mjModel``, whose numbers, which of them."""

REWARD = Option("reward", "dense", "what is paid: see Rewards", words=("dense", "sparse"))
DTYPE = Option("dtype", "float32", "of observations and rewards", words=("float32", "float64"))
ROBOT_OPTIONS = (
    REWARD,
    DTYPE,
    Option("randomise", 0.0, "share of the most that bodies vary from match to match", low=0.0, high=1.0),
    Option("sensor_noise", 0.0, "share of the most noise of what a robot measures of itself", low=0.0, high=1.0),
)
"""Of all games of quadrupeds and of hands."""
FIELD_DTYPES: dict[str, Literal["f4", "f8"]] = {"float32": "f4", "float64": "f8"}
"""What fields call a ``dtype``."""


AXES = ("x", "y", "z")
AHEAD_LEFT = ("ahead", "left")


def real(name: str, size: int, unit: str, about: str, number: str, parts: Parts = ()) -> Field:
    """A field of numbers without bounds; ``number`` is its dtype, ``parts`` are the names of its numbers."""
    return Field(name, (size,), -INF, INF, unit, about, number, checked=(-1e3, 1e3), parts=parts)


def trunk_parts(is_flat: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of a trunk's positions that are shown, and of its velocities; in a plane, or in space."""
    if is_flat:
        return ("height", "pitch"), ("ahead", "up", "pitch")
    return ("height", "w", "x", "y", "z"), ("x", "y", "z", "roll", "pitch", "yaw")


def free_copies(field: str, body: int, position: int, velocity: int) -> tuple[Copy, ...]:
    """Copies of `FREE` members, from the first of its numbers in ``qpos`` and in ``qvel`` on."""
    return (
        Copy(field, body, "position_m", "qpos", position),
        Copy(field, body, "quaternion", "qpos", position + 3),
        Copy(field, body, "velocity_mps", "qvel", velocity),
        Copy(field, body, "turn_radps", "qvel", velocity + 3),
    )


def scales_of(field: str, body: int, **names: Iterable[str]) -> list[Scale]:
    """What a start draws of a body, in the model: names of its ``bodies``, ``geoms`` and ``servos``."""
    return [
        Scale(field, body, member, array, tuple(names[whose]), columns)
        for member, array, whose, columns in SCALED
        if whose in names
    ]


def add_servo(
    spec: Any, name: str, strength: tuple[float, float, float], is_varied: bool, is_tendon: bool = False
) -> None:
    """Adds a servo of the joint or tendon of its name to a model (``MjSpec``).

    Args:
        spec: The model.
        name: Of servo and joint.
        strength: Stiffness, damping, most force: N/m, N s/m, N, or N m/rad, N m s/rad, N m.
        is_varied: Whether it can be delayed.
        is_tendon: It pulls a tendon.
    """
    transmissions = import_mujoco().mjtTrn
    stiff, damp, most = strength
    servo = spec.add_actuator(
        name=name,
        target=name,
        trntype=transmissions.mjTRN_TENDON if is_tendon else transmissions.mjTRN_JOINT,
        forcerange=[-most, most],
    )
    servo.set_to_position(kp=stiff, kv=damp)
    if is_varied:
        servo.delay, servo.nsample = LONGEST_DELAY_S, DELAY_SAMPLES


def add_touch(spec: Any, body: Any, name: str, position_m: Any, radius_m: float) -> None:
    """Adds a sensor of the force on a ball in the frame of a body."""
    mujoco = import_mujoco()
    body.add_site(name=name, pos=position_m, size=[radius_m] * 3)
    spec.add_sensor(name=name, type=mujoco.mjtSensor.mjSENS_TOUCH, objtype=mujoco.mjtObj.mjOBJ_SITE, objname=name)


def draw_factor(s, width):
    """A factor in [1 - width, 1 + width)."""
    return 1.0 + width * uniform(s, -1.0, 1.0)


def draw_noise(s, world):
    """Draws the seed of the noise that the next observation has."""
    if world.sensor_noise > 0.0:
        s.noise_seed = uniform(s, 0.0, 1.0)


def start_noise(s, scratch):
    """Begins the noise of an observation: `uniform(scratch, ...)` gives the same numbers after the same seed."""
    scratch.rng = int(s.noise_seed * 9007199254740992.0)


def write_motion(body, first, out):
    """Writes place, velocity and turning of a body to a global state, nine numbers."""
    for i in range(3):
        out[first + i] = body.position_m[i]
        out[first + 3 + i] = body.velocity_mps[i]
        out[first + 6 + i] = body.turn_radps[i]


def write_free(body, first, out):
    """Writes `write_motion`, then the orientation: thirteen numbers."""
    write_motion(body, first, out)
    for i in range(4):
        out[first + 9 + i] = body.quaternion[i]
