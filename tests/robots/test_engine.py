"""MuJoCo's batch as an engine: the same bits by any number of threads, and a match that diverges alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from palaestra import make_batch
from palaestra.core.run.physics import PhysicsSimulation
from palaestra.games.robots import FAMILY, ma
from palaestra.games.robots.engine import Scale, compiled, elements, quiet_log

mujoco = pytest.importorskip("mujoco")

ID = "palaestra/MaHalfCheetah-v0"


def played(lanes: int, threads: int, absurd: int | None = None, decisions: int = 30) -> Any:
    """A batch after some decisions; the velocity of one lane is made absurd before the last ten."""
    sim: Any = make_batch(ID, lanes, threads=threads, autoreset_mode="off")
    sim.reset(seed=5)
    rng = np.random.default_rng(1)
    for number in range(decisions):
        if number == decisions - 10 and absurd is not None:
            records = sim.states.copy()
            records["bodies"]["velocity"][absurd, 0, 2] = 1e12
            sim.load_states(records[[absurd]], np.arange(lanes) == absurd)
        sim.actions[...] = rng.uniform(-1, 1, sim.actions.shape)
        sim.step()
    return sim


@pytest.mark.check
def test_the_bits_do_not_depend_on_threads():
    one, two = played(5, 1), played(5, 2)
    assert one.states.tobytes() == two.states.tobytes()
    assert one.observations.tobytes() == two.observations.tobytes()
    assert len(np.unique(one.info["x_m"])) == 5


def test_a_match_that_diverges_is_truncated_alone_and_shows_finite_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    sound, spoilt = played(5, 2), played(5, 2, absurd=3)
    others = [0, 1, 2, 4]
    for member in ("position", "velocity"):
        bodies, expected = (sim.states["bodies"][member][others] for sim in (spoilt, sound))
        assert bodies.tobytes() == expected.tobytes()
    assert spoilt.states["info"]["end_reason"].tolist() == [0, 0, 0, ma.LOST, 0]
    assert not spoilt.states["info"]["winner"][3] >= 0
    assert np.isfinite(spoilt.observations).all()
    assert np.isfinite(spoilt.rewards).all()
    spoilt.reset(np.arange(5) == 3)
    spoilt.step()
    assert spoilt.states["info"]["end_reason"][3] == 0
    assert np.isfinite(spoilt.states["bodies"]["position"]).all()
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr().err == ""


def test_what_the_users_log_was_set_to_comes_back():
    before = mujoco.MjLogConfig.get()
    sims = [make_batch(ID, 1), make_batch(ID, 1)]
    assert not mujoco.MjLogConfig.get().logto_file
    for sim in sims:
        sim.close()
    sims.clear()
    with quiet_log:
        assert not mujoco.MjLogConfig.get().logto_console
    after = mujoco.MjLogConfig.get()
    assert (after.logto_file, after.logto_console) == (before.logto_file, before.logto_console)


def test_a_snapshot_brings_back_what_mujoco_keeps():
    sim = played(3, 1)
    saved = sim.snapshot()
    futures = []
    for _ in range(2):
        for _ in range(8):
            sim.actions[...] = 0.7
            sim.step()
        futures.append(sim.states.tobytes())
        sim.restore(saved)
    assert futures[0] == futures[1]


def test_records_that_are_not_aligned_are_refused(monkeypatch: pytest.MonkeyPatch):
    dtype = np.dtype
    monkeypatch.setattr(ma.np, "dtype", lambda fields, align=False: dtype(fields))
    game = ma.game()
    monkeypatch.undo()
    with pytest.raises(ValueError, match="MaHalfCheetah: make the dtype of 'bodies' with align=True"):
        PhysicsSimulation(game, 1)


@pytest.fixture
def scaled(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """``scaled(array, names, lanes)``: half cheetahs; a factor in their record multiplies numbers of the model."""

    def scaled(array: str, names: tuple[str, ...], lanes: int = 1, columns: tuple[int, ...] = (0,)) -> Any:
        game = ma.game(parts="1", dtype="float64")
        state = list(game.state)
        members = [(name, "f8", state[0][1][name].shape) for name in state[0][1].names]
        bodies = np.dtype([*members, ("factor", "f8")], align=True)
        state[0] = ("bodies", bodies, (1,))
        scales = (Scale("bodies", 0, "factor", array, names, columns),)
        options = {**game.physics_options, "scales": scales}
        return PhysicsSimulation(
            dataclasses.replace(game, state=tuple(state), physics_options=options), lanes, compiled=False
        )

    return scaled


LEGS = ("bthigh", "bshin", "bfoot", "fthigh", "fshin", "ffoot")


@pytest.mark.parametrize(
    ("array", "names", "rows"),
    [
        ("dof_damping", LEGS, slice(3, 9)),
        ("dof_armature", ("rootx", "ffoot"), [0, 8]),
        ("jnt_stiffness", ("bshin",), [4]),
        ("body_mass", ("torso",), [1]),
        ("geom_friction", ("floor", "head"), [0, 2]),
    ],
)
def test_a_lane_whose_model_is_scaled_moves_as_a_model_made_so(scaled: Any, array: str, names: Any, rows: Any):
    factors, sim = np.array([0.5, 1.0, 1.7]), scaled(array, names, 3)
    sim.reset(seed=0)
    records = sim.states.copy()
    records["bodies"]["factor"][:, 0] = factors
    sim.load_states(records)
    rng = np.random.default_rng(1)
    torques = rng.uniform(-1, 1, (20, 3, 6))
    for now in torques:
        sim.actions[:, 0] = now
        sim.step()
    for lane, factor in enumerate(factors):
        model = ma.model("half_cheetah")
        numbers = getattr(model, array)
        if numbers.ndim == 1:
            numbers[rows] *= factor
        else:
            numbers[rows, 0] *= factor
        data = mujoco.MjData(model)
        mujoco.mj_setConst(model, data)
        mujoco.mj_resetData(model, data)
        data.qpos[:], data.qvel[:] = (records["bodies"][name][lane, 0] for name in ("position", "velocity"))
        mujoco.mj_forward(model, data)
        for now in torques[:, lane]:
            data.ctrl[:] = now
            mujoco.mj_step(model, data, 5)
        assert sim.states["bodies"]["position"][lane, 0].tobytes() == data.qpos.tobytes()


def test_all_degrees_of_freedom_of_a_joint_bear_its_name():
    model = compiled(
        "<mujoco><worldbody><body><freejoint name='free'/><geom size='1'/><body>"
        "<joint name='hinge' axis='1 0 0'/><geom size='1'/></body></body></worldbody></mujoco>"
    )
    assert elements(model, "Free", "dof_damping", ("free",)).tolist() == [0, 1, 2, 3, 4, 5]
    assert elements(model, "Free", "dof_damping", ("hinge",)).tolist() == [6]


@pytest.mark.parametrize(
    ("array", "name", "message"),
    [
        ("dof_damping", "thigh", "the model has no joint 'thigh'; it has rootx, rootz, rooty, bthigh, "),
        ("body_mass", "head", "the model has no body 'head'; it has world, torso, "),
        ("geom_friction", "leg", "the model has no geom 'leg'; it has floor, torso, "),
        ("qpos_spring", "bthigh", "'qpos_spring' is no array of named elements"),
    ],
)
def test_elements_that_there_are_not_are_refused_by_name(scaled: Any, array: str, name: str, message: str):
    with pytest.raises(ValueError, match=message):
        scaled(array, (name,))


def test_words_out_of_use_in_a_model_are_no_warning(capfd: pytest.CaptureFixture[str]):
    compiled(ma.ROBOTS["half_cheetah"].path.read_text(encoding="utf-8"))
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
@pytest.mark.parametrize("id", [row.id for row in FAMILY.rows])
def test_no_match_diverges_in_a_hundred_thousand_random_decisions(id: str):
    sim: Any = make_batch(id, 100)
    sim.reset(seed=1)
    rng, lost, reason = np.random.default_rng(2), 0, 2 + len(sim.game.end_reasons)
    for _ in range(1000):
        sim.actions[...] = rng.uniform(-1, 1, sim.actions.shape)
        sim.step()
        lost += np.count_nonzero(sim.states["info"]["end_reason"] == reason)
    print(f"diverge, {id}: {lost}")
    assert lost == 0
