"""What varies a quadruped: drawn masses, friction, gains, delays; noise of sensors; joints as actions; other bodies."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from palaestra import make_batch, registry
from palaestra.games.robots import menagerie, quad_parts, quad_sight
from palaestra.games.robots.quadruped import LEGS, OWN, PARTS, RANGES_RAD, add_quadruped, quad_spec
from palaestra.pages import page

pytestmark = pytest.mark.check

mujoco = pytest.importorskip("mujoco")

ID = "palaestra/QuadGate2-v0"
FACTORS = ("mass_factor", "friction_factor", "gain_factor", "delay")


def batch(lanes: int = 1, seed: int = 3, **keywords: Any) -> Any:
    sim: Any = make_batch(ID, lanes, autoreset_mode="off", **keywords)
    sim.reset(seed=seed)
    return sim


def factors(sim: Any) -> np.ndarray:
    """``[N, 2, 4]``."""
    return np.stack([sim.states["robots"][name][:, :2] for name in FACTORS], axis=-1)


def test_what_a_start_draws_is_the_models_and_stands_in_the_global_state():
    sim = batch(40, randomise=1.0)
    drawn = factors(sim)
    low, high = drawn.min((0, 1)), drawn.max((0, 1))
    assert (low >= (0.8, 0.5, 0.8, 0.0)).all()
    assert (high <= (1.2, 1.5, 1.2, 1.0)).all()
    assert (high - low > (0.3, 0.7, 0.3, 0.7)).all()
    np.testing.assert_allclose(sim.state().reshape(40, 2, 41)[:, :, -4:], drawn, rtol=1e-6)
    plain = sim.game.physics_options["model"](*sim.game.physics_options["arguments"])
    numbers = sim.engine.batch
    for array, factor in (("body_mass", 0), ("geom_friction", 1), ("actuator_gainprm", 2)):
        of_robot = {
            "body_mass": plain.body("robot_1").id,
            "geom_friction": plain.geom("robot_1_rl_foot").id,
            "actuator_gainprm": plain.actuator("robot_1_rl_calf").id,
        }[array]
        ratio = numbers.expand(array)[:, of_robot].reshape(40, -1)[:, 0] / getattr(plain, array)[of_robot].flat[0]
        np.testing.assert_allclose(ratio, drawn[:, 1, factor])
    servo = plain.actuator("robot_0_fr_hip").id
    np.testing.assert_allclose(numbers.expand("actuator_delay")[:, servo], 0.02 * drawn[:, 0, 3])
    np.testing.assert_allclose(numbers.expand("body_subtreemass")[:, plain.body("robot_0").id] / 13.06, drawn[:, 0, 0])


def test_without_randomise_bodies_are_alike_and_starts_are_the_same():
    plain, varied = batch(5), batch(5, randomise=1.0)
    assert (factors(plain) == (1.0, 1.0, 1.0, 0.0)).all()
    np.testing.assert_array_equal(plain.states["robots"]["position_m"], varied.states["robots"]["position_m"])
    for sim in (plain, varied):
        sim.actions[...] = 0.7
        for _ in range(5):
            sim.step()
    assert (plain.states["robots"]["position_m"][:, 0] != varied.states["robots"]["position_m"][:, 0]).all()


def test_a_servo_with_a_delay_starts_from_its_target_and_follows_later():
    """Half of the lanes have the longest delay: 4 of MuJoCo's steps, a whole decision of 20 ms."""
    sim = batch(2, low_level="joint", randomise=1.0, compiled=False)
    records = sim.states.copy()
    for name in FACTORS[:3]:
        records["robots"][name] = 1.0
    records[1] = records[0]
    records["robots"]["delay"] = np.array([0.0, 1.0])[:, None]
    sim.load_states(records, np.array([True, True]))
    before = sim.states["robots"]["joint_rad"][0, 0].copy()
    world = sim.game.world
    sim.actions[...] = (before - world.middle_rad) / world.half_rad
    sim.actions[:, :, 2::3] += 0.3
    moved = []
    for _ in range(2):
        sim.step()
        moved.append(np.abs(sim.states["robots"]["joint_rad"][:, 0, 2::3] - before[2::3]).max(axis=1))
    assert moved[0][0] > 0.03 > moved[0][1]
    assert moved[1][1] > 0.03


def test_a_snapshot_of_varied_bodies_continues_in_another_batch():
    sim, other = batch(4, randomise=1.0), batch(4, seed=8, randomise=1.0)
    for _ in range(3):
        sim.actions[...] = 0.5
        sim.step()
    other.restore(sim.snapshot())
    for _ in range(3):
        for each in (sim, other):
            each.actions[...] = -0.5
            each.step()
    assert sim.states.tobytes() == other.states.tobytes()


def test_noise_is_of_own_sensors_bounded_and_the_same_when_it_is_asked_again():
    noisy, plain = batch(50, sensor_noise=0.5), batch(50)
    for _ in range(2):
        difference = np.abs(noisy.observations - plain.observations).max(axis=(0, 1))
        assert (difference[: quad_sight.OWN] <= 0.5 * quad_parts.NOISE + 1e-5).all()
        assert (difference[: quad_sight.OWN] > 0.4 * quad_parts.NOISE).all()
        assert (difference[quad_sight.OWN :] == 0).all()
        seen, state = noisy.observations.copy(), noisy.states.tobytes()
        noisy.load_states(noisy.states.copy(), np.ones(50, bool))
        assert noisy.states.tobytes() == state
        np.testing.assert_array_equal(noisy.observations[..., :9], seen[..., :9])
        noisy.reset(seed=4)
        plain.reset(seed=4)
    first = noisy.observations[:, 0, : quad_sight.OWN] - plain.observations[:, 0, : quad_sight.OWN]
    second = noisy.observations[:, 1, : quad_sight.OWN] - plain.observations[:, 1, : quad_sight.OWN]
    assert abs(np.corrcoef(first.ravel() / 1.0, second.ravel())[0, 1]) < 0.1


def test_joints_go_where_they_are_told_fifty_times_a_second():
    sim = batch(low_level="joint")
    game = sim.game
    assert (game.horizon, game.render_fps, game.scripts, sim.actions.shape) == (750, 50.0, (), (1, 2, 12))
    share = np.tile([0.1, -0.2, 0.05], 4)
    sim.actions[...] = share
    for _ in range(40):
        sim.step()
    robot = sim.states["robots"][0, 0]
    ranges = np.tile(np.array(RANGES_RAD), (4, 1))
    np.testing.assert_allclose(robot["target_rad"], ranges.mean(1) + share * np.ptp(ranges, axis=1) / 2, atol=1e-6)
    np.testing.assert_allclose(robot["joint_rad"], robot["target_rad"], atol=0.12)
    np.testing.assert_allclose(sim.observations[0, 0, quad_sight.OWN : quad_sight.OWN + 12], share, atol=1e-6)


def with_names_of_menagerie(order: tuple[int, ...]) -> Any:
    """Our own body as Menagerie names it: another order of legs, motors, a mesh that is not there."""
    ours = quad_spec()
    add_quadruped(ours, "r", (0.5, 0.5, 0.5), OWN)
    spec = mujoco.MjSpec()
    spec.compiler.degree = False
    spec.option.cone, spec.option.impratio = mujoco.mjtCone.mjCONE_ELLIPTIC, 100.0

    def copy_geoms(source: Any, target: Any) -> None:
        for geom in source.geoms:
            name = menagerie.LEGS[LEGS.index(geom.name[2:4])] if geom.name else ""
            target.add_geom(
                name=name,
                type=geom.type,
                size=geom.size,
                pos=geom.pos,
                fromto=geom.fromto,
                mass=geom.mass,
                friction=geom.friction,
                priority=geom.priority,
                contype=geom.contype,
                conaffinity=geom.conaffinity,
            )

    trunk = spec.worldbody.add_body(name="base", pos=[0, 0, 0.445])
    trunk.add_freejoint()
    copy_geoms(ours.body("r"), trunk)
    spec.add_mesh(name="hull", file="hull.obj")
    trunk.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname="hull", contype=0, conaffinity=0)
    for leg in order:
        parent = trunk
        for part in PARTS:
            source = ours.body(f"r_{LEGS[leg]}_{part}")
            parent = parent.add_body(name=f"{menagerie.LEGS[leg]}_{part}", pos=source.pos)
            copy_geoms(source, parent)
            joint, name = source.joints[0], f"{menagerie.LEGS[leg]}_{part}_joint"
            parent.add_joint(
                name=name, type=joint.type, axis=joint.axis, range=joint.range, armature=0.01, damping=joint.damping
            )
            spec.add_actuator(name=name, target=name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
    return spec


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A package as MuJoCo Menagerie's, with one robot."""
    made = SimpleNamespace(default_model="ours", spec=lambda entry: with_names_of_menagerie((1, 0, 3, 2)))
    names = [SimpleNamespace(name=name) for name in ("ours", "six", "lost")]
    fake = SimpleNamespace(robots=lambda category: names, get=lambda name: made, made=made)
    monkeypatch.setitem(sys.modules, "mujoco_menagerie", fake)
    return fake


def test_a_body_of_menagerie_walks_as_its_joints_say_in_any_order_of_legs(
    package: Any, capfd: Any, monkeypatch: pytest.MonkeyPatch
):
    own, other = batch(2), batch(2, body="menagerie:ours")
    for _ in range(10):
        for sim in (own, other):
            sim.actions[...] = 0.8, 0.3, -0.2
            sim.step()
    for member in ("position_m", "joint_rad", "joint_radps", "foot_force_n", "target_rad"):
        ours, theirs = (sim.states["robots"][member][:, :2] for sim in (own, other))
        assert np.abs(ours).max() > 0.2
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-3)
    assert capfd.readouterr() == ("", "")
    assert other.render(0).std() > 20
    varied = batch(2, body="menagerie:ours", randomise=1.0)
    assert np.ptp(varied.engine.batch.expand("body_mass").sum(axis=1)) > 0.1
    digest = other.game.model_digest()
    monkeypatch.setattr(package.made, "spec", lambda entry: with_names_of_menagerie((0, 1, 2, 3)))
    assert other.game.model_digest() != digest


def test_the_page_names_the_licence_of_bodies(package: Any, tmp_path: Path):
    (tmp_path / "LICENSE").write_text("Copyright (c) Unitree\nAll rights reserved.\n", encoding="utf-8")
    package.made.license, package.made.path = "BSD-3-Clause", lambda: tmp_path
    own, other = page(ID), page(ID, body="menagerie:ours")
    assert "Our body is under the MIT licence" in own
    assert "licence of the model" not in own
    assert "| licence of the model | BSD-3-Clause; its file begins: Copyright (c) Unitree |" in other


def test_bodies_that_cannot_be_had_say_what_to_do(package: Any, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(ValueError, match=r"body must be 'own' or 'menagerie:\.\.\.', got 'go2'"):
        registry.make_game(ID, body="go2")
    with pytest.raises(ValueError, match="no quadruped 'cat', it has ours, six, lost"):
        registry.make_game(ID, body="menagerie:cat")
    six = mujoco.MjSpec()
    six.worldbody.add_body(name="base").add_joint(name="FR_hip_joint")
    monkeypatch.setattr(package.made, "spec", lambda entry: six)
    with pytest.raises(ValueError, match="it has no FR_thigh_joint, FR_calf_joint, geom FR"):
        registry.make_game(ID, body="menagerie:six")

    def fails(entry: str) -> None:
        raise OSError("no route to host")

    monkeypatch.setattr(package.made, "spec", fails)
    with pytest.raises(ValueError, match="files of 'menagerie:lost' cannot be read: no route to host"):
        registry.make_game(ID, body="menagerie:lost")
    monkeypatch.setitem(sys.modules, "mujoco_menagerie", None)
    with pytest.raises(ImportError, match="pip install mujoco-menagerie"):
        registry.make_game(ID, body="menagerie:lost")
