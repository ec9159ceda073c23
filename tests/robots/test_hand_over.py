"""Two hands and a ball: the body and its mirror, the rules, and a throw that the search in `examples/` finds."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from palaestra import make_batch, registry
from palaestra.robots import hand_over
from palaestra.robots.hand import range_of, servos

mujoco = pytest.importorskip("mujoco")

ID = "palaestra/HandOver-v0"


def batch(lanes: int = 1, **keywords: Any) -> Any:
    sim: Any = make_batch(ID, lanes, autoreset_mode="off", **keywords)
    sim.reset(seed=2)
    return sim


def with_ball(sim: Any, place: Any, velocity: Any = (0.0, 0.0, 0.0)) -> None:
    records = sim.states.copy()
    records["balls"]["position_m"][0, 0], records["balls"]["velocity_mps"][0, 0] = place, velocity
    sim.load_states(records[:1], np.arange(sim.num_envs) == 0)


def test_a_hand_has_24_hinges_and_20_servos_in_the_order_of_the_tables():
    model = hand_over.scene()
    assert (model.nq, model.nv, model.nu, model.nsensor) == (55, 54, 40, 10)
    assert [model.actuator(k).name for k in range(20)] == [f"hand_0_{servo}" for servo in servos()]
    joints = [model.joint(k).name.removeprefix("hand_0_") for k in range(24)]
    expected: list[str] = []
    for servo in servos():
        finger = servo.removesuffix("_curl")
        expected += [servo] if finger == servo else [f"{finger}_middle", f"{finger}_distal"]
    assert joints == expected
    for k, name in enumerate(joints):
        if name in servos():
            assert tuple(model.jnt_range[k]) == range_of(name)


def test_the_left_hand_is_the_mirror_of_the_right_one():
    """The same targets move both alike, in their own frames mirrored at the plane of the fingers."""
    sim = batch()
    with_ball(sim, (0.0, 3.0, 3.0))
    rng = np.random.default_rng(0)
    for _ in range(20):
        sim.actions[...] = rng.uniform(-1, 1, 20)
        sim.step()
    right, left = sim.states["hands"]["joint_rad"][0]
    assert np.abs(right).max() > 0.2
    np.testing.assert_allclose(right, left, atol=1e-6)
    model = hand_over.scene()
    data = mujoco.MjData(model)
    data.qpos[:24], data.qpos[24:48] = right, left
    mujoco.mj_kinematics(model, data)
    for tip in ("first_tip", "little_tip", "thumb_tip"):
        a, b = (data.site(f"hand_{k}_{tip}").xpos for k in range(2))
        np.testing.assert_allclose(a, b * (-1.0, 1.0, 1.0), atol=1e-6)


def test_the_two_last_joints_of_a_finger_bend_together():
    sim = batch()
    with_ball(sim, (0.0, 3.0, 3.0))
    curl = [k for k, servo in enumerate(servos()) if servo.endswith("_curl")]
    sim.actions[...] = sim.states["last"]
    sim.actions[..., curl] = 0.3
    for _ in range(40):
        sim.step()
    joints = sim.states["hands"]["joint_rad"][0, 0]
    names = [hand_over.scene().joint(k).name for k in range(24)]
    for finger in ("first", "middle", "ring", "little"):
        middle, distal = (joints[names.index(f"hand_0_{finger}_{part}")] for part in ("middle", "distal"))
        assert middle == pytest.approx(distal, abs=0.02)
        assert middle + distal == pytest.approx(0.65 * 3.14, abs=0.1)


def test_a_cupped_hand_holds_the_ball():
    sim = batch(4)
    sim.set_opponent("hand", "hold")
    before = sim.states["balls"]["position_m"].copy()
    for _ in range(75):
        sim.step()
    assert np.abs(sim.states["balls"]["position_m"] - before).max() < 0.01
    assert (sim.states["info"]["end_reason"] == 1).all()


def test_a_hand_sees_the_ball_and_the_goal_in_its_own_frame():
    sim = batch()
    with_ball(sim, (-0.1, 0.02, 0.6), (1.0, 2.0, 3.0))
    right, left = sim.observations[0, :, -9:]
    goal = hand_over.GOAL_M
    assert right.tolist() == pytest.approx([0.125, 0.02, 0.1, 1, 2, 3, goal[0] + 0.225, 0, goal[2] - 0.5], abs=1e-6)
    assert left.tolist() == pytest.approx([0.325, 0.02, 0.1, -1, 2, 3, 0.225 - goal[0], 0, goal[2] - 0.5], abs=1e-6)


@pytest.mark.parametrize("reward", ["dense", "sparse"])
def test_the_rules_pay_nearness_and_the_end(reward: str):
    for place, reason in (
        ((0.125, 0.0, 0.56), hand_over.DONE),
        ((0.0, 0.5, 0.2), hand_over.DROPPED),
        ((0, 0.1, 1.0), 0),
    ):
        sim = batch(reward=reward)
        with_ball(sim, place)
        sim.step()
        info = sim.states["info"][0]
        assert info["end_reason"] == reason
        paid = float(reason == hand_over.DONE)
        if reward == "dense":
            paid += math.exp(-10.0 * info["distance_m"])
        assert sim.rewards[0].tolist() == pytest.approx([paid] * 2, abs=1e-6)


def test_unknown_words_are_refused():
    with pytest.raises(ValueError, match="reward"):
        registry.make_game(ID, reward="much")
    with pytest.raises(ValueError, match="dtype"):
        registry.make_game(ID, dtype="float16")


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_throw_over_a_quarter_of_a_metre_is_found_by_search(seed: int):
    path = Path(__file__).parents[2] / "examples" / "throw_by_search.py"
    spec: Any = importlib.util.spec_from_file_location("throw_by_search", path)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    plan, nearest = example.search(seed, 1600, quiet=True)
    print(f"over, seed {seed}: {1000 * nearest:.1f} mm")
    assert nearest < 0.03
    again = make_batch(ID, 1, autoreset_mode="off")
    again.set_opponent("hand_1", "hold")
    assert example.play(again, plan[None], seed)[0] == nearest
