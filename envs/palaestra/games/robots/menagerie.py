"""Quadrupeds of MuJoCo Menagerie as bodies of our games, where that package and its models are installed.

A robot has to have twelve joints named as those of Unitree's robots, ``FR_hip_joint`` to ``RL_calf_joint``, and feet
that are geoms ``FR``, ``FL``, ``RR``, ``RL``. Its meshes are left out, they collide with nothing; its motors are our
servos.
"""

from __future__ import annotations

import hashlib
import importlib
from dataclasses import dataclass
from typing import Any

from palaestra.games.robots.engine import import_mujoco

PREFIX = "menagerie:"
LEGS = ("FR", "FL", "RR", "RL")
"""In the order of `palaestra.games.robots.quadruped.LEGS`."""
PARTS = ("hip", "thigh", "calf")
"""Of a leg; ours have the same names."""


def find(body: str) -> Any:
    """The robot's entry (``mujoco_menagerie.Robot``) of a body ``"menagerie:name"``.

    Raises:
        ImportError: The package is missing; the message says how to install it.
        ValueError: No such quadruped.
    """
    try:
        package: Any = importlib.import_module("mujoco_menagerie")
    except ImportError as error:
        raise ImportError(f'body="{body}" needs MuJoCo Menagerie: pip install mujoco-menagerie') from error
    name = body.removeprefix(PREFIX)
    known = [robot.name for robot in package.robots("quadruped")]
    if name not in known:
        raise ValueError(f"MuJoCo Menagerie has no quadruped {name!r}, it has {', '.join(known)}")
    return package.get(name)


def spec_of(body: str) -> Any:
    """The robot as ``MjSpec``, links and joints alone; the package downloads its files when they are not here.

    Raises:
        ImportError: The package is missing.
        ValueError: No such quadruped, its files cannot be had or read, or it has other joints.
    """
    robot = find(body)
    try:
        spec = robot.spec(robot.default_model)
    except Exception as error:  # the package's own errors, and those of MuJoCo's parser
        raise ValueError(f"the files of {body!r} cannot be read: {error}") from error
    for leg in LEGS:
        missing = [f"{leg}_{part}_joint" for part in PARTS if spec.joint(f"{leg}_{part}_joint") is None]
        if spec.geom(leg) is None:
            missing.append(f"geom {leg}")
        if missing:
            raise ValueError(f"{body!r} is no robot of twelve joints like ours: it has no {', '.join(missing)}")
    meshes = [geom for geom in spec.geoms if geom.type == import_mujoco().mjtGeom.mjGEOM_MESH]
    for thing in (*meshes, *spec.meshes, *spec.actuators, *spec.sensors, *spec.keys, *spec.cameras, *spec.lights):
        spec.delete(thing)
    return spec


def legs_of(body: str) -> tuple[int, ...]:
    """Numbers of the legs, of `LEGS`, in the order of the robot's joints."""
    names = [joint.name for joint in spec_of(body).joints]
    return tuple(sorted(range(4), key=lambda leg: names.index(f"{LEGS[leg]}_hip_joint")))


def add_links(spec: Any, name: str, body: str, names: tuple[str, ...]) -> None:
    """Adds trunk and legs to a model, named as ours.

    Args:
        spec: The model.
        name: Of the robot.
        body: ``"menagerie:name"``.
        names: Our names of the legs, in the order of `LEGS`.
    """
    made = spec_of(body)
    trunk = made.joint(f"{LEGS[0]}_hip_joint").parent.parent
    for leg, ours in zip(LEGS, names, strict=True):
        made.geom(leg).name = f"{ours}_foot"
        for part in PARTS:
            joint = made.joint(f"{leg}_{part}_joint")
            joint.name = joint.parent.name = f"{ours}_{part}"
    trunk.name = "trunk"
    made.option.cone, made.option.impratio = spec.option.cone, spec.option.impratio  # else MuJoCo says that they differ
    spec.worldbody.add_frame().attach_body(trunk, f"{name}_", "")
    spec.body(f"{name}_trunk").name = name


@dataclass(frozen=True)
class BodyDigest:
    """Says which files decide the rules: `palaestra.game.Game.model_digest`."""

    body: str

    def __call__(self) -> str:
        """SHA-256 of the robot's model as text."""
        return hashlib.sha256(spec_of(self.body).to_xml().encode()).hexdigest()

    def licence(self) -> str:
        """The robot's licence as the package names it, and the first line of its ``LICENSE``: on the game's page."""
        robot = find(self.body)
        first = (robot.path() / "LICENSE").read_text(encoding="utf-8").strip().partition("\n")[0]
        return f"{robot.license}; its file begins: {first.strip()}"
