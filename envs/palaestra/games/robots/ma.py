"""Gymnasium's running robots, each driven by several agents: half cheetah, ant, hopper and walker.

## Description
A robot of Gymnasium's MuJoCo tasks (`HalfCheetah-v5`, `Ant-v5`, `Hopper-v5`, `Walker2d-v5`) runs to the right. Its
joints are divided among agents, which are paid together: `parts="2x3"` are two agents with three joints each. An agent
sees the trunk, its own joints and those that are linked to them (Peng et al., "FACMAC: Factored Multi-Agent Centralised
Policy Gradients", NeurIPS 2021, whose tasks are known as MaMuJoCo). `parts="1"` has one agent, as Gymnasium's task.

The models are those of the installed Gymnasium. With `parts="1"` and `dtype="float64"`, from the same positions and
velocities, observations, rewards and ends are those of `HalfCheetah-v5`, `Hopper-v5` and `Walker2d-v5` to the bit. So
are the ant's observations and ends next to `Ant-v5` without its forces of contact
(`include_cfrc_ext_in_observation=False`); its reward differs. Gymnasium takes the ant's speed from a frame that MuJoCo
computes before the last of the five steps of a decision ends, here it is that of the positions that are shown.

## Action Space
<!-- table: action -->

The torque of each of the agent's motors over its gear.

## Observation Space
<!-- table: observation -->

With `parts="1"` there are the positions and velocities of Gymnasium's task. The robot's place along x is not shown.

## Rewards
`forward_weight` times the speed along x, minus `control_weight` times the sum of all squared actions, plus
`healthy_reward` (not for the half cheetah). The ant's forces of contact are neither shown nor paid for.

With `reward="sparse"` instead 1 for each mark that is passed for the first time. Marks stand at x = `metres`, at twice
that, and so on: the return is floor(greatest x / `metres`), or 0. A way back costs nothing, and is not paid again. The
noise at the start is less than the shortest way to a mark, 0.2 m.

`SparseMaHalfCheetah-v0`, `SparseMaAnt-v0` and `SparseMaHopper-v0` are tasks of exploration, with a mark every 5, 3 and
0.25 m. Uniform play passes one in 1.6, 3.8 and 0.7 % of the matches (2,000 each); there are no scripts. The dense task
beside each is the id without `Sparse`. The walker has no such task: at random it falls backwards.

## Starting State
The standing robot, with noise on all positions and velocities as in Gymnasium's task.

## Episode End

- terminated: `fallen`, the trunk is too high, too low or too steep, as in Gymnasium's task (not the half cheetah). The
  hopper has also fallen when a number of its state but its place and height along the ground reaches 100.
- truncated: `diverged`, MuJoCo has given the match up; or the horizon.

With `reward="sparse"` the winner is the team if it has passed a mark by then.

## Arguments

<!-- table: options -->

<!-- table: parameters -->

## Version History
v0: initial version.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from palaestra.core.contract.keywords import check_word
from palaestra.game import (
    TERMINATED,
    TRUNCATED,
    Continuous,
    Field,
    Game,
    Option,
    Parameter,
    Role,
    uniform,
    with_options,
)
from palaestra.games.robots.engine import DIVERGED, Copy, compiled, version
from palaestra.games.robots.parts import DTYPE, FIELD_DTYPES, INF, REWARD, real, trunk_parts

FALLEN, LOST = 2, 3
"""Numbers of the end reasons."""
CHECKED = (-1e3, 1e3)
"""What no number of info exceeds."""
FASTEST = 10.0
"""Velocities are clipped to this where Gymnasium's task does so."""


@dataclass(frozen=True)
class Robot:
    """A robot of Gymnasium's.

    Attributes:
        file: Name of its model.
        root: Numbers of positions and of velocities of the trunk, which come first.
        hidden: Positions of the trunk that are not shown: places along the ground.
        height: Where the trunk's height stands among its positions.
        start: Positions at the start.
        joints: Names in the order of their positions.
        motors: The joint of each motor, in the order of the motors.
        links: Pairs of joints that are neighbours.
        parts: Joints of each agent, by the name of the division; the first one is the default.
        substeps: Steps of MuJoCo in a decision.
        step_s: Time of a step.
        noise: Of positions and of velocities at the start.
        is_normal: Whether the noise of velocities is normal; else uniform.
        control: Default of ``control_weight``.
        healthy: Default of ``healthy_reward``.
        heights_m: Heights between which the robot is healthy.
        steepest_rad: Pitch up to which it is healthy.
        largest: Size of an angle or a velocity at which it is no longer healthy.
        clips: Whether velocities are clipped before they are shown.
        milestone_m: Default of ``metres``.
    """

    file: str
    root: tuple[int, int]
    hidden: int
    height: int
    start: tuple[float, ...]
    joints: tuple[str, ...]
    motors: tuple[str, ...]
    links: tuple[tuple[str, str], ...]
    parts: dict[str, tuple[tuple[str, ...], ...]]
    substeps: int
    step_s: float
    noise: tuple[float, float]
    is_normal: bool
    control: float
    healthy: float
    heights_m: tuple[float, float] = (-INF, INF)
    steepest_rad: float = INF
    largest: float = INF
    clips: bool = False
    milestone_m: float = 1.0

    @property
    def path(self) -> Path:
        """The model of the installed Gymnasium."""
        return Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets" / self.file


def legs(*names: str) -> tuple[tuple[str, str], ...]:
    """Links of joints that follow one another."""
    return tuple(itertools.pairwise(names))


CHEETAH = ("bthigh", "bshin", "bfoot", "fthigh", "fshin", "ffoot")
ANT = tuple(f"{joint}_{k}" for k in (1, 2, 3, 4) for joint in ("hip", "ankle"))
HOPPER = ("thigh_joint", "leg_joint", "foot_joint")
WALKER = (*HOPPER, *(f"{joint[:-6]}_left_joint" for joint in HOPPER))
ROBOTS = {
    "half_cheetah": Robot(
        file="half_cheetah.xml",
        root=(3, 3),
        hidden=1,
        height=1,
        start=(0.0,) * 9,
        joints=CHEETAH,
        motors=CHEETAH,
        links=(*legs(*CHEETAH[:3]), *legs(*CHEETAH[3:]), ("bthigh", "fthigh")),
        parts={
            "2x3": (CHEETAH[:3], CHEETAH[3:]),
            "6x1": tuple((joint,) for joint in CHEETAH),
            "1": (CHEETAH,),
        },
        substeps=5,
        step_s=0.01,
        noise=(0.1, 0.1),
        is_normal=True,
        control=0.1,
        healthy=0.0,
    ),
    "ant": Robot(
        file="ant.xml",
        root=(7, 6),
        hidden=2,
        height=2,
        start=(0.0, 0.0, 0.75, 1.0, *(0.0,) * 11),
        joints=ANT,
        motors=(*ANT[6:], *ANT[:6]),
        links=(
            *((f"hip_{k}", f"ankle_{k}") for k in (1, 2, 3, 4)),
            ("hip_1", "hip_2"),
            ("hip_2", "hip_3"),
            ("hip_3", "hip_4"),
            ("hip_4", "hip_1"),
        ),
        parts={
            "4x2": (ANT[:2], ANT[2:4], ANT[4:6], ANT[6:]),
            "2x4": (ANT[:4], ANT[4:]),
            "1": (ANT,),
        },
        substeps=5,
        step_s=0.01,
        noise=(0.1, 0.1),
        is_normal=True,
        control=0.5,
        healthy=1.0,
        heights_m=(0.2, 1.0),
    ),
    "hopper": Robot(
        file="hopper.xml",
        root=(3, 3),
        hidden=1,
        height=1,
        start=(0.0, 1.25, 0.0, 0.0, 0.0, 0.0),
        joints=HOPPER,
        motors=HOPPER,
        links=legs(*HOPPER),
        parts={"3x1": tuple((joint,) for joint in HOPPER), "1": (HOPPER,)},
        substeps=4,
        step_s=0.002,
        noise=(5e-3, 5e-3),
        is_normal=False,
        control=1e-3,
        healthy=1.0,
        heights_m=(0.7, INF),
        steepest_rad=0.2,
        largest=100.0,
        clips=True,
        milestone_m=0.5,
    ),
    "walker2d": Robot(
        file="walker2d_v5.xml",
        root=(3, 3),
        hidden=1,
        height=1,
        start=(0.0, 1.25, *(0.0,) * 7),
        joints=WALKER,
        motors=WALKER,
        links=(*legs(*WALKER[:3]), *legs(*WALKER[3:]), (WALKER[0], WALKER[3])),
        parts={
            "2x3": (WALKER[:3], WALKER[3:]),
            "6x1": tuple((joint,) for joint in WALKER),
            "1": (WALKER,),
        },
        substeps=4,
        step_s=0.002,
        noise=(5e-3, 5e-3),
        is_normal=False,
        control=1e-3,
        healthy=1.0,
        heights_m=(0.8, 2.0),
        steepest_rad=1.0,
        clips=True,
        milestone_m=0.5,
    ),
}

SCALE_PARAMETERS = (
    Parameter("forward_weight", 1.0, 0.0, 100.0, "s/m", "of the speed along x"),
    Parameter("control_weight", 0.0, 0.0, 10.0, "1", "of the squared actions"),
    Parameter("healthy_reward", 0.0, 0.0, 10.0, "1", "for each decision that does not end in a fall"),
)


class World(NamedTuple):
    """What differs between robots and divisions, read by the hooks.

    Attributes:
        agents: Number of agents.
        shown: First position that is shown.
        root: Positions of the trunk.
        root_velocities: Velocities of the trunk.
        height: Where the height stands.
        start: Positions at the start.
        noise: Of positions and velocities.
        is_normal: Whether the noise of velocities is normal.
        decision_s: Time of a decision.
        milestone_m: Way that the sparse reward pays for; 0 for the dense one.
        heights_m: Heights between which the robot is healthy.
        steepest_rad: Pitch up to which it is.
        largest: Size of the trunk's pitch, a joint's angle or a velocity up to which it is.
        fastest: Velocities are clipped to this.
        motor_of: Motor of each action, ``[agents, own]``.
        own: Joint of each action, ``[agents, own]``.
        near: Joints linked to one's own, ``[agents, near]``, -1 where there is none.
    """

    agents: int
    shown: int
    root: int
    root_velocities: int
    height: int
    start: np.ndarray
    noise: np.ndarray
    is_normal: int
    decision_s: float
    milestone_m: float
    heights_m: np.ndarray
    steepest_rad: float
    largest: float
    fastest: float
    motor_of: np.ndarray
    own: np.ndarray
    near: np.ndarray


def reset(s, world):
    """Stands, but for the noise."""
    body = s.bodies[0]
    for k in range(len(world.start)):
        body.position[k] = world.start[k] + uniform(s, -world.noise[0], world.noise[0])
    for k in range(len(body.velocity)):
        if world.is_normal:
            body.velocity[k] = world.noise[1] * normal(s)
        else:
            body.velocity[k] = uniform(s, -world.noise[1], world.noise[1])


def normal(s):
    """A standard normal number (Box and Muller)."""
    radius = math.sqrt(-2.0 * math.log(1.0 - uniform(s, 0.0, 1.0)))
    return radius * math.cos(uniform(s, 0.0, 2.0 * math.pi))


def command(s, world, actions, scratch):
    """Hands the torques to the motors."""
    body = s.bodies[0]
    s.before_m = body.position[0]
    for agent in range(world.agents):
        for k in range(world.motor_of.shape[1]):
            body.torque[world.motor_of[agent, k]] = actions.body[agent].torque[k]


def evaluate(s, world, rewards, scratch):
    """Pays the team, and ends the match."""
    body, info = s.bodies[0], s.info
    squares = 0.0
    for k in range(len(body.torque)):
        squares += body.torque[k] * body.torque[k]
    info.x_m = body.position[0]
    info.speed_mps = (body.position[0] - s.before_m) / world.decision_s
    info.reward_forward = s.parameters.forward_weight * info.speed_mps
    info.reward_control = -(s.parameters.control_weight * squares)
    fell = has_fallen(body, world)
    healthy = 0.0 if fell else s.parameters.healthy_reward
    reward = info.reward_forward + healthy - s.parameters.control_weight * squares
    if world.milestone_m > 0.0:
        passed = math.floor(body.position[0] / world.milestone_m)
        reward = max(passed - s.passed, 0.0)
        s.passed = max(passed, s.passed)
    for agent in range(world.agents):
        rewards[agent] += reward
    if s.diverged != 0.0:
        info.end_reason = LOST
        return TRUNCATED
    if fell:
        info.end_reason = FALLEN
        return TERMINATED
    return 0


def evaluate_marks(s, world, rewards, scratch):
    """The same with the sparse reward, where a team that has passed a mark has won when the match is over."""
    result = evaluate(s, world, rewards, scratch)
    if s.passed > 0.0 and (result != 0 or s.steps >= s.parameters.horizon):
        s.info.winner = 0
    return result


def has_fallen(body, world):
    """Whether the robot is not healthy, as Gymnasium's task has it."""
    if not world.heights_m[0] < body.position[world.height] < world.heights_m[1]:
        return True
    if world.root == 3 and not abs(body.position[2]) < world.steepest_rad:
        return True
    if world.largest < INF:
        for k in range(2, len(body.position)):
            if not abs(body.position[k]) < world.largest:
                return True
        for k in range(len(body.velocity)):
            if not abs(body.velocity[k]) < world.largest:
                return True
    return False


def observe(s, world, observations, scratch):
    """The trunk, one's own joints and those next to them."""
    body = s.bodies[0]
    for agent in range(world.agents):
        seen = observations.body[agent]
        for k in range(world.root - world.shown):
            seen.trunk[k] = body.position[world.shown + k]
        for k in range(world.root_velocities):
            seen.trunk_velocity[k] = clipped(body.velocity[k], world.fastest)
        for k in range(world.own.shape[1]):
            joint = world.own[agent, k]
            seen.joint_rad[k] = body.position[world.root + joint]
            seen.joint_radps[k] = clipped(body.velocity[world.root_velocities + joint], world.fastest)
        for k in range(world.near.shape[1]):
            joint = world.near[agent, k]
            if joint >= 0:
                seen.near_rad[k] = body.position[world.root + joint]
                seen.near_radps[k] = clipped(body.velocity[world.root_velocities + joint], world.fastest)


def observe_alone(s, world, observations, scratch):
    """What Gymnasium's task shows."""
    body, seen = s.bodies[0], observations.body[0]
    for k in range(len(seen.position)):
        seen.position[k] = body.position[world.shown + k]
    for k in range(len(seen.velocity)):
        seen.velocity[k] = clipped(body.velocity[k], world.fastest)


def clipped(value, most):
    """The nearest number in [-most, most]."""
    return min(max(value, -most), most)


def global_state(s, world, out):
    """All positions and velocities."""
    body = s.bodies[0]
    for k in range(len(body.position)):
        out[k] = body.position[k]
    for k in range(len(body.velocity)):
        out[len(body.position) + k] = body.velocity[k]


def model(name: str) -> Any:
    """The model of a robot (``mujoco.MjModel``)."""
    return compiled(ROBOTS[name].path.read_text(encoding="utf-8"))


@dataclass(frozen=True)
class ModelDigest:
    """Says which model file decides the rules: `Game.model_digest`."""

    name: str

    def __call__(self) -> str:
        """SHA-256 of the file."""
        return hashlib.sha256(ROBOTS[self.name].path.read_bytes()).hexdigest()


def checked_parts(parts: str, above: Any) -> str:
    """A division that the robot has."""
    check_word(f"parts of robot={above['robot']!r}", parts, tuple(ROBOTS[above["robot"]].parts))
    return parts


@with_options(
    Option("robot", "half_cheetah", "which robot runs; fixed by the id", words=tuple(ROBOTS)),
    Option(
        "parts",
        None,
        "how its joints are divided among agents; None is the division by legs, or that of the hopper by joints",
        words=tuple(dict.fromkeys(parts for kind in ROBOTS.values() for parts in kind.parts)),
        check=checked_parts,
        otherwise=lambda above: next(iter(ROBOTS[above["robot"]].parts)),
        example="1",
    ),
    REWARD,
    Option(
        "metres",
        None,
        "way that is paid 1; None is 1, or 0.5 for hopper and walker",
        low=0.2,
        high=1000.0,
        unit="m",
        otherwise=lambda above: ROBOTS[above["robot"]].milestone_m,
        only={"reward": "sparse"},
        example=0.2,
    ),
    DTYPE,
)
def game(options: Any) -> Game:
    """The rules of `palaestra/MaHalfCheetah-v0` and its kin."""
    robot, kind, number = options.robot, ROBOTS[options.robot], FIELD_DTYPES[options.dtype]
    divided, kin = kind.parts[options.parts], neighbours(kind)
    own = np.array([[kind.joints.index(joint) for joint in part] for part in divided])
    near = [sorted({k for j in part for k in kin[j]} - set(part.tolist())) for part in own]
    most_near = max(map(len, near))
    positions, velocities = len(kind.start), kind.root[1] + len(kind.joints)
    motor_of = np.array([[kind.motors.index(joint) for joint in part] for part in divided])
    bodies = np.dtype(
        [
            ("torque", "f8", (len(kind.motors),)),
            ("position", "f8", (positions,)),
            ("velocity", "f8", (velocities,)),
        ],
        align=True,
    )
    world = World(
        agents=len(divided),
        shown=kind.hidden,
        root=kind.root[0],
        root_velocities=kind.root[1],
        height=kind.height,
        start=np.array(kind.start),
        noise=np.array(kind.noise),
        is_normal=int(kind.is_normal),
        decision_s=kind.substeps * kind.step_s,
        milestone_m=options.metres if options.reward == "sparse" else 0.0,
        heights_m=np.array(kind.heights_m),
        steepest_rad=kind.steepest_rad,
        largest=kind.largest,
        fastest=FASTEST if kind.clips else INF,
        motor_of=motor_of,
        own=own,
        near=np.array([[*joints, *[-1] * (most_near - len(joints))] for joints in near]).reshape(len(divided), -1),
    )
    alone = len(divided) == 1
    about = "torque over the gear of each own motor"
    torque = Continuous("torque", own.shape[1:], -1.0, 1.0, "1", about, parts=divided)
    seen = body_fields(kind, number) if alone else _seen(kind, divided, near, most_near, number)
    outputs = tuple(
        Copy("bodies", 0, member, array, 0) for member, array in (("position", "qpos"), ("velocity", "qvel"))
    )
    defaults = {"control_weight": kind.control, "healthy_reward": kind.healthy}
    return Game(
        name="".join(map(str.capitalize, f"ma_{robot}".split("_"))),
        roles=(
            Role(
                "body",
                tuple(f"body_{k}" for k in range(len(divided))),
                seen,
                (torque,),
            ),
        ),
        state=(("bodies", bodies, (1,)), (DIVERGED, "f8"), ("before_m", "f8"), ("passed", "f8")),
        reset=reset,
        command=command,
        evaluate=evaluate_marks if options.reward == "sparse" else evaluate,
        observe=observe_alone if alone else observe,
        physics="palaestra.games.robots.engine:MujocoEngine",
        physics_options={
            "model": model,
            "arguments": (robot,),
            "substeps": kind.substeps,
            "inputs": (Copy("bodies", 0, "torque", "ctrl", 0),),
            "outputs": outputs,
            "starts": outputs,
        },
        model_digest=ModelDigest(robot),
        engine_version=version,
        parameters=tuple(
            Parameter(p.name, defaults.get(p.name, p.default), p.low, p.high, p.unit, p.about) for p in SCALE_PARAMETERS
        ),
        horizon=1000,
        plots=("speed_mps", "x_m"),
        info=(
            Field("x_m", (), -INF, INF, "m", "place of the trunk along x", "f8", checked=CHECKED),
            Field("speed_mps", (), -INF, INF, "m/s", "mean speed along x in the decision", "f8", checked=CHECKED),
            Field("reward_forward", (), -INF, INF, "1", "for the speed", "f8", checked=CHECKED),
            Field("reward_control", (), -INF, 0.0, "1", "for the actions", "f8", checked=(-1e3, 0.0)),
        ),
        end_reasons=("fallen",),
        truncation_reasons=("diverged",),
        reward_dtype=number,
        global_state=global_state,
        global_state_size=positions + velocities,
        world=world,
        render="palaestra.games.robots.picture:draw",
        render_fps=1.0 / (kind.substeps * kind.step_s),
    )


def neighbours(kind: Robot) -> list[set[int]]:
    """Numbers of the joints that each joint is linked to."""
    kin: list[set[int]] = [set() for _ in kind.joints]
    for pair in kind.links:
        first, second = (kind.joints.index(joint) for joint in pair)
        kin[first].add(second)
        kin[second].add(first)
    return kin


def body_fields(kind: Robot, number: Any) -> tuple[Field, ...]:
    """The observation of the one agent of a whole robot."""
    places, speeds = ((*names, *kind.joints) for names in trunk_parts(is_flat=kind.root[0] == 3))
    return (
        real("position", len(places), "m, rad", "of the trunk and of all joints", number, places),
        real("velocity", len(speeds), "m/s, rad/s", "of the trunk and of all joints", number, speeds),
    )


def _seen(kind: Robot, divided: Any, linked: Any, near: int, number: Any) -> tuple[Field, ...]:
    own, (places, speeds) = len(divided[0]), trunk_parts(is_flat=kind.root[0] == 3)
    kin = tuple((*(kind.joints[k] for k in ks), *["no joint"] * (near - len(ks))) for ks in linked)
    turn = "pitch" if kind.root[0] == 3 else "orientation (quaternion)"
    table = [
        real("trunk", kind.root[0] - kind.hidden, "m, rad", f"height and {turn}", number, places),
        real("trunk_velocity", kind.root[1], "m/s, rad/s", "of the trunk", number, speeds),
        real("joint_rad", own, "rad", "own joints", number, divided),
        real("joint_radps", own, "rad/s", "their velocities", number, divided),
    ]
    if near:
        table.append(real("near_rad", near, "rad", "joints linked to one's own, then zeros", number, kin))
        table.append(real("near_radps", near, "rad/s", "their velocities", number, kin))
    return tuple(table)
