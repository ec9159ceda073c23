"""The half cheetah's sets of tasks: bodies equal to the bit to models of MuJoCo changed so, speeds, rewards, ends."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

from palaestra import make_batch
from palaestra.games.robots import meta_cheetah
from palaestra.games.robots.ma import CHEETAH, model
from palaestra.games.robots.meta_cheetah import FACTORS, TASKS

mujoco = pytest.importorskip("mujoco")

VEL, PARAM = "palaestra/MetaCheetahVel-v0", "palaestra/MetaCheetahParam-v0"
BODIES, SPEEDS = meta_cheetah.body_factors(), meta_cheetah.target_speeds()


def started(id: str, tasks: list[int], **keywords: Any) -> Any:
    """A lane of each of the tasks, as plain Python."""
    options = {"tasks": "all", "compiled": False, "autoreset_mode": "off", **keywords}
    sim: Any = make_batch(id, len(tasks), task=np.array(tasks), **options)
    sim.reset(seed=2)
    return sim


def model_of(task: int) -> Any:
    """A model of MuJoCo, changed by hand as the page says, and its data."""
    changed, links = model("half_cheetah"), len(CHEETAH) + 1
    masses, inertias, dampings, friction = np.split(BODIES[task], [links, 2 * links, 3 * links - 1])
    changed.body_mass[1:] *= masses
    changed.body_inertia[1:] *= inertias[:, None]
    changed.dof_damping[3:] *= dampings
    changed.geom_friction[:] *= friction
    data = mujoco.MjData(changed)
    mujoco.mj_setConst(changed, data)
    mujoco.mj_resetData(changed, data)
    return changed, data


@pytest.mark.check
def test_a_body_moves_as_a_model_of_mujoco_that_is_changed_so_for_200_decisions_to_the_bit():
    """Each lane has a body of its own, and another one in its next match."""
    tasks = [0, 7, 23, 49]
    sim = started(PARAM, tasks)
    rng = np.random.default_rng(0)
    for first in (tasks, tasks[::-1]):
        sim.set_parameters(task=np.array(first))
        sim.reset()
        models = [model_of(task) for task in first]
        for (changed, data), body in zip(models, sim.states["bodies"][:, 0], strict=True):
            data.qpos[:], data.qvel[:] = body["position"], body["velocity"]
            mujoco.mj_forward(changed, data)
        for _ in range(200):
            actions = rng.uniform(-1, 1, sim.actions.shape).astype(np.float32)
            sim.step(actions)
            for (changed, data), action, body in zip(models, actions[:, 0], sim.states["bodies"][:, 0], strict=True):
                data.ctrl[:] = action
                mujoco.mj_step(changed, data, 5)
                assert body["position"].tobytes() == data.qpos.tobytes()
                assert body["velocity"].tobytes() == data.qvel.tobytes()
        assert sim.truncated.all()


def test_each_link_and_joint_has_a_factor_of_its_own_for_mass_inertia_and_damping_and_surfaces_share_that_of_friction():
    counts = {array: [names for kind, names, *_ in FACTORS if kind == array] for array, *_ in FACTORS}
    changed = model("half_cheetah")
    links = [(changed.body(k).name,) for k in range(1, changed.nbody)]
    surfaces = tuple(changed.geom(k).name for k in range(changed.ngeom))
    joints = [(name,) for name in CHEETAH]
    wanted = {"body_mass": links, "body_inertia": links, "dof_damping": joints, "geom_friction": [surfaces]}
    assert counts == wanted


def test_factors_are_powers_of_exponents_that_fill_the_range_from_minus_3_to_3():
    exponents = np.log(BODIES) / np.log([1.3 if array == "dof_damping" else 1.5 for array, *_ in FACTORS])
    assert BODIES.shape == (TASKS, 21)
    assert np.abs(exponents).max() <= 3.0
    np.testing.assert_allclose(np.quantile(exponents, [0.0, 0.25, 0.5, 0.75, 1.0]), [-3, -1.5, 0, 1.5, 3], atol=0.15)
    assert len(np.unique(BODIES)) == BODIES.size


def test_target_speeds_are_a_grid_whose_order_tells_nothing():
    np.testing.assert_allclose(np.sort(SPEEDS), np.linspace(0.075, 3.0, TASKS), atol=1e-9)
    assert abs(np.corrcoef(np.arange(TASKS), SPEEDS)[0, 1]) < 0.25
    assert np.abs(np.diff(SPEEDS)).mean() == pytest.approx(1.0, abs=0.2)  # (b - a) / 3 for any two of a grid


def test_the_rewards_are_those_of_the_published_tasks_by_the_speed_of_gymnasiums_half_cheetah():
    env: Any = gymnasium.make("HalfCheetah-v5")
    env.reset(seed=0)
    slowest = int(SPEEDS.argmin())
    speeds, bodies = (started(id, [0, slowest]) for id in (VEL, PARAM))
    for sim in (speeds, bodies):
        records = sim.states.copy()
        records["bodies"]["velocity"][1, 0, 0] = 2.0  # faster than the target
        sim.load_states(records)
        env.unwrapped.set_state(*(sim.states["bodies"][name][0, 0] for name in ("position", "velocity")))
        actions = np.random.default_rng(0).uniform(-1, 1, sim.actions.shape).astype(np.float32)
        sim.step(actions)
        speed, squares = sim.info["speed_mps"], (actions.astype(float) ** 2).sum((1, 2))
        if sim is speeds:
            assert speed[0] == pytest.approx(env.step(actions[0, 0])[4]["x_velocity"], rel=1e-12)
            paid = -np.abs(speed - SPEEDS[[0, slowest]]) - 0.05 * squares
        else:
            paid = speed - 0.1 * squares
        np.testing.assert_allclose(sim.rewards[:, 0], paid, rtol=1e-6)


@pytest.mark.parametrize("id", [VEL, PARAM])
def test_what_is_seen_is_the_state_without_the_place_along_x_and_without_the_task(id: str):
    sim = started(id, [3, 40])
    body = sim.states["bodies"][:, 0]
    seen = np.hstack([body["position"][:, 1:], body["velocity"]])
    np.testing.assert_array_equal(sim.observations[:, 0], seen.astype(np.float32))
    others = started(id, [41, 2])
    np.testing.assert_array_equal(others.observations, sim.observations)
    assert (others.states["task"] != sim.states["task"]).all()


@pytest.mark.check
@pytest.mark.parametrize("id", [VEL, PARAM])
def test_a_match_goes_on_for_200_decisions_also_on_its_back(id: str):
    sim = started(id, [3])
    records = sim.states.copy()
    records["bodies"]["position"][0, 0, 2] = np.pi
    sim.load_states(records)
    for _ in range(199):
        sim.step()
        assert not (sim.terminated | sim.truncated).any()
    sim.step()
    assert (sim.terminated.any(), sim.truncated.all()) == (False, True)


def test_a_match_that_mujoco_gives_up_is_cut_off():
    sim = started(PARAM, [3, 4])
    records = sim.states.copy()
    records["bodies"]["velocity"][0, 0, 2] = 1e12
    sim.load_states(records)
    sim.step()
    assert sim.truncated.tolist() == [True, False]
    assert [sim.game.end_reason(number) for number in sim.info["end_reason"]] == ["diverged", ""]


@pytest.mark.parametrize(("id", "tables"), [(VEL, SPEEDS[:, None]), (PARAM, BODIES)])
def test_observations_end_with_the_task_where_they_are_to_and_are_the_same_before(id: str, tables: np.ndarray):
    tasks = [3, 41]
    hidden, told = started(id, tasks), started(id, tasks, observe_task=True)
    actions = np.random.default_rng(1).uniform(-1, 1, hidden.actions.shape)
    for _ in range(2):
        np.testing.assert_array_equal(told.observations[:, 0, :17], hidden.observations[:, 0])
        np.testing.assert_array_equal(told.observations[:, 0, 17:], tables[tasks].astype(np.float32))
        hidden.step(actions)
        told.step(actions)
