"""A quadruped robot of the size of a Go1: trunk, four legs of three joints, spheres as feet, no meshes.

Lengths of links are those of Unitree's Go1; masses are rounded, shapes are ours. Joints are servos for positions.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from palaestra.games.robots import menagerie
from palaestra.games.robots.engine import import_mujoco
from palaestra.games.robots.parts import add_servo, add_touch

LEGS = ("fr", "fl", "rr", "rl")
"""Front right, front left, rear right, rear left: the order of joints and feet."""
PARTS = menagerie.PARTS
JOINTS = tuple(f"{leg}_{part}" for leg in LEGS for part in PARTS)
HIP_X_M, HIP_Y_M = 0.1881, 0.0468
"""The first joint of a leg, from the middle of the trunk."""
SIDE_M, LINK_M, FOOT_M = 0.08, 0.213, 0.023
"""From the first joint to the second, length of thigh and calf, radius of a foot."""
TRUNK_M = (0.19, 0.047, 0.057)
"""Half sizes of the trunk."""
STAND_M = 0.285
"""Height of the trunk in the stance."""
RANGES_RAD = ((-0.86, 0.86), (-0.69, 3.0), (-2.82, -0.89))
TORQUES_NM = (23.7, 23.7, 35.5)
"""Most that a servo gives."""
STIFFNESS, DAMPING = 120.0, 2.0
"""Of a servo: N m/rad and N m s/rad."""
TIMESTEP_S = 0.005

ROBOT = np.dtype(
    [
        ("target_rad", "f8", (12,)),
        ("position_m", "f8", (3,)),
        ("quaternion", "f8", (4,)),
        ("joint_rad", "f8", (12,)),
        ("velocity_mps", "f8", (3,)),
        ("turn_radps", "f8", (3,)),
        ("joint_radps", "f8", (12,)),
        ("foot_force_n", "f8", (4,)),
        ("wanted", "f8", (3,)),
        ("phase", "f8"),
        ("correction", "f8", (3,)),
        ("mass_factor", "f8"),
        ("friction_factor", "f8"),
        ("gain_factor", "f8"),
        ("delay", "f8"),
    ],
    align=True,
)
"""A robot in the match record.

``target_rad`` is the input of its servos. Place, orientation (w, x, y, z), velocity in the frame of the floor, turning
in the frame of the trunk, joints and forces on feet are MuJoCo's. ``wanted``, ``phase`` and ``correction`` are the
trot's, see `palaestra.games.robots.trot`. The last four are drawn at a start: factors of masses, of the friction of
feet and of the servos' gains, and the servos' delay as a share of 20 ms.
"""
POSITIONS, VELOCITIES = 19, 18
"""Numbers of a robot in MuJoCo's ``qpos`` and ``qvel``."""


class Build(NamedTuple):
    """Of which make robots are.

    Attributes:
        body: ``"own"``, or ``"menagerie:name"``.
        is_varied: Whether their servos can be delayed.
    """

    body: str = "own"
    is_varied: bool = False


OWN = Build()


def add_quadruped(spec: Any, name: str, color: tuple[float, float, float], build: Build) -> None:
    """Adds a robot to a model (``MjSpec``).

    Its servos and sensors come in the order of `JOINTS`. A camera of its name looks ahead from the head.

    Args:
        spec: The model.
        name: Of the robot.
        color: Red, green, blue.
        build: Of which make it is.
    """
    mujoco = import_mujoco()
    if build.body == "own":
        _add_links(spec, name, color)
    else:
        menagerie.add_links(spec, name, build.body, LEGS)
    head = spec.body(name).add_camera(name=name, pos=[0.25, 0.0, 0.05], fovy=70.0)
    head.alt.type = mujoco.mjtOrientation.mjORIENTATION_XYAXES
    head.alt.xyaxes = [0.0, -1.0, 0.0, 0.0, 0.0, 1.0]
    for number, joint in enumerate(JOINTS):
        add_servo(spec, f"{name}_{joint}", (STIFFNESS, DAMPING, TORQUES_NM[number % 3]), build.is_varied)
    for leg in LEGS:
        foot = spec.geom(f"{name}_{leg}_foot")
        add_touch(spec, foot.parent, foot.name, foot.pos, 0.03)


def _add_links(spec: Any, name: str, color: tuple[float, float, float]) -> None:
    """Adds trunk and legs of our own."""
    mujoco = import_mujoco()
    geoms, hinge = mujoco.mjtGeom, mujoco.mjtJoint.mjJNT_HINGE
    paint, dark = [*color, 1.0], [0.22, 0.23, 0.25, 1.0]
    trunk = spec.worldbody.add_body(name=name, pos=[0.0, 0.0, STAND_M])
    trunk.add_freejoint(name=f"{name}_free")
    trunk.add_geom(type=geoms.mjGEOM_BOX, size=list(TRUNK_M), mass=5.2, rgba=paint)
    trunk.add_geom(type=geoms.mjGEOM_BOX, size=[0.03, 0.04, 0.03], pos=[0.21, 0, 0.03], mass=0.1, rgba=dark)
    for number, leg in enumerate(LEGS):
        ahead, left = 1.0 - 2.0 * (number // 2), 2.0 * (number % 2) - 1.0
        hip = trunk.add_body(name=f"{name}_{leg}_hip", pos=[ahead * HIP_X_M, left * HIP_Y_M, 0.0])
        hip.add_geom(type=geoms.mjGEOM_SPHERE, size=[0.04, 0, 0], mass=0.68, rgba=dark, contype=0, conaffinity=0)
        thigh = hip.add_body(name=f"{name}_{leg}_thigh", pos=[0.0, left * SIDE_M, 0.0])
        ends = [0.0, 0.0, -0.02, 0.0, 0.0, -LINK_M]
        thigh.add_geom(type=geoms.mjGEOM_CAPSULE, size=[0.02, 0, 0], fromto=ends, mass=1.0, rgba=paint)
        calf = thigh.add_body(name=f"{name}_{leg}_calf", pos=[0.0, 0.0, -LINK_M])
        calf.add_geom(type=geoms.mjGEOM_CAPSULE, size=[0.012, 0, 0], fromto=ends, mass=0.2, rgba=dark)
        calf.add_geom(
            name=f"{name}_{leg}_foot",
            type=geoms.mjGEOM_SPHERE,
            size=[FOOT_M, 0, 0],
            pos=[0, 0, -LINK_M],
            mass=0.06,
            rgba=dark,
            friction=[1, 0.02, 0.01],
            priority=1,  # the feet decide the friction, not the floor
        )
        axes = ([1, 0, 0], [0, 1, 0], [0, 1, 0])
        for link, part, axis, limits in zip((hip, thigh, calf), PARTS, axes, RANGES_RAD, strict=True):
            joint = f"{name}_{leg}_{part}"
            link.add_joint(name=joint, type=hinge, axis=axis, range=limits, armature=0.01, damping=0.1)


def quad_spec() -> Any:
    """A floor (``mujoco.MjSpec``)."""
    mujoco = import_mujoco()
    spec = mujoco.MjSpec()
    spec.compiler.degree = False
    spec.option.timestep = TIMESTEP_S
    spec.option.iterations = 20
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1], friction=[0.8, 0.02, 0.01], name="floor")
    return spec


def add_wall(spec: Any, half_m: float, gate_m: float) -> None:
    """Adds a wall along the y axis, up to ``half_m`` to both sides, with a gate of a width in its middle."""
    for side in (-1.0, 1.0):
        spec.worldbody.add_geom(
            type=import_mujoco().mjtGeom.mjGEOM_BOX,
            size=[0.05, 0.5 * (half_m - 0.5 * gate_m), 0.25],
            pos=[0.0, side * 0.5 * (half_m + 0.5 * gate_m), 0.25],
            rgba=[0.62, 0.35, 0.27, 1.0],
        )


def to_go(body, behind_m):
    """Metres to a place behind the gate of a wall at x = 0, by way of the gate's middle."""
    x, y = body.position_m[0], body.position_m[1]
    if x >= 0.0:
        return max(behind_m - x, 0.0)
    return behind_m + math.sqrt(x * x + y * y)
