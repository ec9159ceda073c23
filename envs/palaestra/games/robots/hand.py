"""A hand of 24 hinges and 20 servos, of the size and with the joints of the Shadow Hand, without meshes.

The last two joints of four fingers are coupled: one servo bends both. Shapes, masses and servos are ours. A hand lies
with its fingers along its x axis and the palm upwards; the right hand is the mirror of the left one.

The base of a hand is fixed or has six joints and servos of its own. Those of its servos come after the 20 of the hand;
in MuJoCo's ``qpos`` and ``qvel`` they come before its hinges.
"""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from palaestra.games.robots.engine import import_mujoco
from palaestra.games.robots.parts import add_servo, add_touch

FINGERS = ("first", "middle", "ring", "little")
"""From the thumb's side on."""
FINGER_Y_M = (0.033, 0.011, -0.011, -0.033)
PALM_M = (0.048, 0.042, 0.011)
"""Half sizes of the palm."""
LINKS_M = (0.045, 0.025, 0.024)
THUMB_LINKS_M = (0.038, 0.032, 0.026)
WIDE_M = 0.0085
"""Radius of fingers."""
RANGES_RAD = {
    "wrist_side": (-0.49, 0.49),
    "wrist_bend": (-0.70, 0.70),
    "spread": (-0.35, 0.35),
    "base": (-0.26, 1.57),
    "arch": (0.0, 0.78),
    "curl": (0.0, 3.14),
    "thumb_turn": (-1.05, 1.05),
    "thumb_rise": (0.0, 1.22),
    "thumb_twist": (-0.21, 0.21),
    "thumb_middle": (-0.70, 0.70),
    "thumb_tip": (0.0, 1.57),
}
"""Of servos: ``curl`` is the sum of the two coupled joints of a finger."""
STRENGTH = MappingProxyType({"wrist": (20.0, 0.4, 10.0), "finger": (2.0, 0.04, 2.0), "thumb": (2.0, 0.04, 2.0)})
"""Of servos: N m/rad, N m s/rad, most N m."""
BASE = ("base_x", "base_y", "base_z", "base_roll", "base_pitch", "base_yaw")
"""Joints and servos of a movable base: along the fingers, to the thumb's side, out of the palm.

A roll lifts the thumb's side, a pitch lifts the fingers, a yaw turns to the thumb's side.
"""
BASE_MOST_M, BASE_MOST_RAD = 0.12, 0.6
BASE_SLIDE, BASE_HINGE = (1600.0, 160.0, 200.0, 2.0), (20.0, 2.0, 10.0, 0.03)
"""Of the servos of a movable base: stiffness, damping, most force, and inertia that is added to the hand's own.

Units: N, m, s, kg; of hinges N m and rad. About critically damped, at 20 rad/s.
"""

HAND = np.dtype(
    [
        ("target_rad", "f8", (20,)),
        ("base_target", "f8", (6,)),
        ("base_pose", "f8", (6,)),
        ("joint_rad", "f8", (24,)),
        ("base_speed", "f8", (6,)),
        ("joint_radps", "f8", (24,)),
        ("touch_n", "f8", (5,)),
        ("gain_factor", "f8"),
        ("delay", "f8"),
    ],
    align=True,
)
"""A hand in the match record.

Targets of its servos and of its base, the base, joints, velocities of both, forces on the finger tips. Of a base that
is fixed all numbers are 0. The last two are drawn at a start: the factor of the servos' gains, and their delay as a
share of 20 ms.
"""


class Mount(NamedTuple):
    """Where the base of a hand stands.

    Attributes:
        position_m: Of the wrist.
        yaw_rad: Fingers point along the x axis, then are turned about the upward axis.
        pitch_rad: Before that they are lifted.
        is_right: The right hand.
    """

    position_m: tuple[float, float, float]
    yaw_rad: float = 0.0
    pitch_rad: float = 0.0
    is_right: bool = False

    def quaternion(self) -> np.ndarray:
        """Orientation (w, x, y, z)."""
        yaw, pitch = 0.5 * self.yaw_rad, 0.5 * self.pitch_rad
        return np.array(
            [
                math.cos(yaw) * math.cos(pitch),
                math.sin(yaw) * math.sin(pitch),
                -math.cos(yaw) * math.sin(pitch),
                math.sin(yaw) * math.cos(pitch),
            ]
        )

    def axes(self) -> np.ndarray:
        """Along the fingers, to the thumb's side, out of the palm: rows of ``[3, 3]``; mirrored for the right hand."""
        yaw, pitch = self.yaw_rad, self.pitch_rad
        along = np.array([math.cos(yaw) * math.cos(pitch), math.sin(yaw) * math.cos(pitch), math.sin(pitch)])
        left = np.array([-math.sin(yaw), math.cos(yaw), 0.0])
        side = -left if self.is_right else left
        return np.round(np.array([along, side, np.cross(along, left)]), 12) + 0.0  # no -0.0

    def point_m(self, along: float, aside: float, above: float) -> np.ndarray:
        """The point in the frame of the world that is given in that of the hand, metres."""
        return self.position_m + np.array([along, aside, above]) @ self.axes()


def servos() -> tuple[str, ...]:
    """Names of the 20 servos in their order: wrist, fingers from the thumb's side on, thumb. `BASE` comes after."""
    names = ["wrist_side", "wrist_bend"]
    for finger in FINGERS:
        if finger == "little":
            names.append("little_arch")
        names += [f"{finger}_spread", f"{finger}_base", f"{finger}_curl"]
    return (*names, "thumb_turn", "thumb_rise", "thumb_twist", "thumb_middle", "thumb_tip")


def all_servos(is_movable: bool) -> tuple[str, ...]:
    """Names of the servos, those of a movable base last."""
    return (*servos(), *BASE) if is_movable else servos()


def joints() -> tuple[str, ...]:
    """Names of the 24 joints of a hand in the order of its model: as the servos, but a curl is two joints."""
    curled = (
        (f"{servo[:-5]}_middle", f"{servo[:-5]}_distal") if servo.endswith("_curl") else (servo,) for servo in servos()
    )
    return tuple(joint for pair in curled for joint in pair)


def range_of(servo: str) -> tuple[float, float]:
    """What a servo can be told, in rad or m."""
    if servo in BASE:
        most = BASE_MOST_M if BASE.index(servo) < 3 else BASE_MOST_RAD
        return -most, most
    return RANGES_RAD[servo] if servo in RANGES_RAD else RANGES_RAD[servo.rpartition("_")[2]]


def add_hand(spec: Any, name: str, mount: Mount, *, is_movable: bool, is_varied: bool, color: Any) -> None:
    """Adds a hand to a model (``MjSpec``).

    Args:
        spec: The model.
        name: Joints, servos and sensors are called ``<name>_...``.
        mount: Where its base stands.
        is_movable: The base has six joints; the weight of the hand is then carried without them (``gravcomp``).
        is_varied: Whether its servos can be delayed.
        color: Red, green, blue.
    """
    mujoco = import_mujoco()
    geoms, hinge = mujoco.mjtGeom, mujoco.mjtJoint.mjJNT_HINGE
    side = -1.0 if mount.is_right else 1.0
    paint, dark = [*color, 1.0], [0.25, 0.26, 0.28, 1.0]

    def joint(body: Any, label: str, axis: Any, limits: Any) -> None:
        body.add_joint(
            name=f"{name}_{label}",
            type=hinge,
            axis=[side * axis[0], axis[1], side * axis[2]],  # in a mirror of y, turns about x and z are the other way
            range=limits,
            armature=2e-4,
            damping=0.02,
            frictionloss=0.002,
        )

    def link(parent: Any, label: str, place: Any, length: float, mass: float, paint: Any) -> Any:
        body = parent.add_body(name=f"{name}_{label}", pos=[place[0], side * place[1], place[2]])
        body.add_geom(
            type=geoms.mjGEOM_CAPSULE,
            size=[WIDE_M, 0, 0],
            fromto=[0, 0, 0, length, 0, 0],
            mass=mass,
            rgba=paint,
            friction=[1.0, 0.01, 0.001],
        )
        return body

    arm = spec.worldbody.add_body(name=name, pos=list(mount.position_m), quat=mount.quaternion())
    arm.add_geom(type=geoms.mjGEOM_CAPSULE, size=[0.03, 0, 0], fromto=[-0.2, 0, 0, -0.035, 0, 0], rgba=dark, mass=1.0)
    wrist = arm.add_body(name=f"{name}_wrist")
    wrist.add_geom(type=geoms.mjGEOM_SPHERE, size=[0.02, 0, 0], mass=0.1, rgba=dark, contype=0, conaffinity=0)
    joint(wrist, "wrist_side", [0, 0, 1], RANGES_RAD["wrist_side"])
    palm = wrist.add_body(name=f"{name}_palm")
    joint(palm, "wrist_bend", [0, -1, 0], RANGES_RAD["wrist_bend"])
    palm.add_geom(
        type=geoms.mjGEOM_BOX,
        size=list(PALM_M),
        pos=[0.01 + PALM_M[0], 0, 0],
        mass=0.25,
        rgba=paint,
        friction=[1.0, 0.01, 0.001],
    )
    tips = []
    for finger, y in zip(FINGERS, FINGER_Y_M, strict=True):
        parent, x = palm, 0.01 + 2 * PALM_M[0]
        if finger == "little":
            arch = palm.add_body(name=f"{name}_little_arch", pos=[0.03, side * y, 0])
            joint(arch, "little_arch", [0.6, -0.8, 0], RANGES_RAD["arch"])
            arch.add_geom(type=geoms.mjGEOM_SPHERE, size=[0.008, 0, 0], mass=0.02, rgba=dark, contype=0, conaffinity=0)
            parent, x, y = arch, x - 0.03, 0.0
        knuckle = parent.add_body(name=f"{name}_{finger}_knuckle", pos=[x, side * y, 0])
        knuckle.add_geom(type=geoms.mjGEOM_SPHERE, size=[0.008, 0, 0], mass=0.01, rgba=dark, contype=0, conaffinity=0)
        joint(knuckle, f"{finger}_spread", [0, 0, 1], RANGES_RAD["spread"])
        first = link(knuckle, f"{finger}_proximal", (0, 0, 0), LINKS_M[0], 0.03, paint)
        joint(first, f"{finger}_base", [0, -1, 0], RANGES_RAD["base"])
        second = link(first, f"{finger}_middle", (LINKS_M[0], 0, 0), LINKS_M[1], 0.017, paint)
        joint(second, f"{finger}_middle", [0, -1, 0], (0.0, 1.57))
        third = link(second, f"{finger}_distal", (LINKS_M[1], 0, 0), LINKS_M[2], 0.012, dark)
        joint(third, f"{finger}_distal", [0, -1, 0], (0.0, 1.57))
        tips.append((third, f"{finger}_tip", LINKS_M[2]))
        spec.add_equality(
            name=f"{name}_{finger}_couple",
            type=mujoco.mjtEq.mjEQ_JOINT,
            name1=f"{name}_{finger}_distal",
            name2=f"{name}_{finger}_middle",
            objtype=mujoco.mjtObj.mjOBJ_JOINT,
            data=[0.0, 1.0, *[0.0] * (mujoco.mjNEQDATA - 2)],
        )
        tendon = spec.add_tendon(name=f"{name}_{finger}_curl")
        for part in ("middle", "distal"):
            tendon.wrap_joint(f"{name}_{finger}_{part}", 1.0)
    root = palm.add_body(name=f"{name}_thumb_root", pos=[0.035, side * 0.038, 0.0], quat=[0.83, 0, 0, side * 0.56])
    root.add_geom(type=geoms.mjGEOM_SPHERE, size=[0.01, 0, 0], mass=0.02, rgba=dark, contype=0, conaffinity=0)
    joint(root, "thumb_turn", [0, 0, 1], RANGES_RAD["thumb_turn"])
    first = link(root, "thumb_proximal", (0, 0, 0), THUMB_LINKS_M[0], 0.04, paint)
    joint(first, "thumb_rise", [0, -1, 0], RANGES_RAD["thumb_rise"])
    hub = first.add_body(name=f"{name}_thumb_hub", pos=[THUMB_LINKS_M[0], 0, 0])
    hub.add_geom(type=geoms.mjGEOM_SPHERE, size=[0.008, 0, 0], mass=0.005, rgba=dark, contype=0, conaffinity=0)
    joint(hub, "thumb_twist", [0, -1, 0], RANGES_RAD["thumb_twist"])
    second = link(hub, "thumb_middle", (0, 0, 0), THUMB_LINKS_M[1], 0.02, paint)
    joint(second, "thumb_middle", [0, 0, -1], RANGES_RAD["thumb_middle"])
    third = link(second, "thumb_distal", (THUMB_LINKS_M[1], 0, 0), THUMB_LINKS_M[2], 0.016, dark)
    joint(third, "thumb_tip", [0, 0, -1], RANGES_RAD["thumb_tip"])
    tips.append((third, "thumb_tip", THUMB_LINKS_M[2]))
    for body, label, length in tips:
        add_touch(spec, body, f"{name}_{label}", [length, 0, 0], 0.011)
    for label in (*(f"{finger}_proximal" for finger in FINGERS), "thumb_proximal", "thumb_middle"):
        # MuJoCo leaves out contacts of a body with its parent alone; these begin inside the palm or each other
        touching = f"{name}_thumb_proximal" if label == "thumb_middle" else f"{name}_palm"
        spec.add_exclude(bodyname1=touching, bodyname2=f"{name}_{label}")
    for servo in servos():
        stiff, damp, most = STRENGTH[servo.split("_")[0] if servo.split("_")[0] in STRENGTH else "finger"]
        is_tendon = servo.endswith("_curl")
        share = 0.25 if is_tendon else 1.0
        add_servo(spec, f"{name}_{servo}", (share * stiff, share * damp, most), is_varied, is_tendon)
    if is_movable:
        _add_base(spec, name, arm, side, is_varied)


def _add_base(spec: Any, name: str, arm: Any, side: float, is_varied: bool) -> None:
    """Six driven joints under the arm; no part of the hand weighs on them."""
    mujoco = import_mujoco()
    axes = ([1, 0, 0], [0, side, 0], [0, 0, 1], [side, 0, 0], [0, -1, 0], [0, 0, side])
    for number, (label, axis) in enumerate(zip(BASE, axes, strict=True)):
        kind = mujoco.mjtJoint.mjJNT_SLIDE if number < 3 else mujoco.mjtJoint.mjJNT_HINGE
        *strength, inertia = BASE_SLIDE if number < 3 else BASE_HINGE
        arm.add_joint(name=f"{name}_{label}", type=kind, axis=axis, range=range_of(label), armature=inertia)
        add_servo(spec, f"{name}_{label}", (strength[0], strength[1], strength[2]), is_varied)
    for body in (arm, *arm.find_all("body")):
        body.gravcomp = 1.0
