"""The sheep and those who drive it; places of the box as goals for hindsight replay."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest

from palaestra import make_batch
from palaestra.evaluation import evaluate
from palaestra.games.robots import quad_box, quad_parts, quad_shepherd, quadruped

pytestmark = pytest.mark.check

pytest.importorskip("mujoco")

SHEPHERD, BOX = "palaestra/QuadShepherd-v0", "palaestra/QuadPushBox-v0"


def placed(sheep: tuple[float, float], *robots: tuple[float, float], **keywords: Any) -> Any:
    """A match whose sheep and robots stand somewhere."""
    sim: Any = make_batch(SHEPHERD, 1, autoreset_mode="off", **keywords)
    sim.reset(seed=3)
    records = sim.states.copy()
    records["sheep"]["position_m"][0, 0] = sheep
    records["robots"]["position_m"][0, :, :2] = robots
    records["info"]["to_go_m"][0] = quadruped.to_go(records["sheep"].view(np.recarray)[0, 0], quad_shepherd.BEHIND_M)
    sim.load_states(records, np.array([True]))
    return sim


def way_of_sheep(sim: Any, decisions: int) -> np.ndarray:
    """Metres that the sheep moves while robots stand."""
    before = sim.states["sheep"]["position_m"][0, 0].copy()
    for _ in range(decisions):
        sim.step()
    return sim.states["sheep"]["position_m"][0, 0] - before


def test_the_sheep_stands_where_no_robot_is_near():
    sim = placed((-2.0, 1.0), (-2.0, 2.3), (-3.3, 1.0))
    np.testing.assert_array_equal(way_of_sheep(sim, 5), 0.0)


def test_the_sheep_flees_from_a_robot_faster_from_a_nearer_one_and_comes_to_rest():
    far, near = (way_of_sheep(placed((-2.0, 1.0), (-2.0, 1.0 + d), (-9.0, 9.0)), 8) for d in (1.0, 0.7))
    assert near[1] < far[1] < -0.05
    assert abs(near[0]) < 0.02
    sim = placed((-2.0, 1.0), (-2.0, 1.7), (-9.0, 9.0))
    way_of_sheep(sim, 80)
    assert np.abs(sim.states["sheep"]["velocity_mps"][0, 0]).max() < 0.05


def wanted(sheep: tuple[float, float], *robots: tuple[float, float]) -> np.ndarray:
    """The velocity that a resting sheep wants."""
    states = placed(sheep, *robots).states.copy()
    s = SimpleNamespace(sheep=states["sheep"].view(np.recarray)[0], robots=states["robots"].view(np.recarray)[0])
    quad_shepherd.flee(s)
    return states["sheep"]["force_n"][0, 0] / (quad_shepherd.SHEEP_KG * quad_shepherd.GAIN_PS)


def test_pushes_of_two_robots_add_up_to_the_top_speed():
    np.testing.assert_allclose(wanted((-3.0, 0.0), (-3.6, 0.0), (-9.0, 9.0)), (0.7, 0.0))
    np.testing.assert_allclose(wanted((-3.0, 0.0), (-3.6, 0.0), (-3.0, 0.9)), (0.7, -0.35))
    np.testing.assert_allclose(wanted((-3.0, 0.0), (-3.4, 0.4), (-3.4, -0.4)), (0.8, 0.0), atol=1e-12)
    sim = placed((-3.0, 0.0), (-3.4, 0.4), (-3.4, -0.4))
    x, y = way_of_sheep(sim, 8)
    assert x > 0.2
    assert abs(y) < 0.03


def test_the_wall_stops_the_sheep():
    sim = placed((-0.5, 1.5), (-1.1, 1.5), (-9.0, 9.0))
    way_of_sheep(sim, 40)
    assert -0.3 < sim.states["sheep"]["position_m"][0, 0, 0] < -0.2


def test_the_dense_reward_is_the_way_of_the_sheep_through_the_gate():
    sim = placed((-1.2, 0.9), (-1.6, 1.4), (-9.0, 9.0))
    assert sim.states["info"]["to_go_m"][0] == pytest.approx(0.3 + 1.5)
    way = 0.0
    for _ in range(6):
        sim.step()
        left = math.hypot(*sim.states["sheep"]["position_m"][0, 0]) + quad_shepherd.BEHIND_M
        way += sim.rewards[0, 0]
        assert way == pytest.approx(0.3 + 1.5 - left, abs=1e-6)
        assert sim.rewards[0, 0] == sim.rewards[0, 1]
    assert way > 0.1


@pytest.mark.parametrize(("reward", "fall"), [("dense", -1.0), ("sparse", 0.0)])
def test_a_match_ends_with_the_sheep_behind_the_gate_or_with_a_fall(reward: str, fall: float):
    sim = placed((0.29, 0.0), (-0.4, 0.0), (-9.0, 9.0), reward=reward)
    sim.step()
    assert sim.states["info"]["end_reason"][0] == quad_parts.DONE
    assert sim.rewards[0].tolist() == pytest.approx([1.0 + 0.01 * (reward == "dense")] * 2)
    sim = placed((-2.0, 0.0), (-4.0, 0.0), (-9.0, 9.0), reward=reward)
    records = sim.states.copy()
    records["robots"]["quaternion"][0, 1] = math.cos(0.75), math.sin(0.75), 0.0, 0.0
    sim.load_states(records, np.array([True]))
    sim.step()
    assert sim.states["info"]["end_reason"][0] == quad_parts.FALLEN
    assert sim.rewards[0].tolist() == [fall] * 2


def test_a_robot_sees_sheep_and_gate_in_its_own_frame():
    sim = placed((-2.0, 3.0), (-2.0, 1.0), (-9.0, 9.0))
    records = sim.states.copy()
    records["robots"]["quaternion"][0, 0] = math.sqrt(0.8), 0.0, 0.0, math.sqrt(0.2)  # looks along (0.6, 0.8)
    records["sheep"]["velocity_mps"][0, 0] = 0.5, 0.25
    sim.load_states(records, np.array([True]))
    seen = sim.observations[0, 0, -8:].tolist()
    assert seen == pytest.approx([1.6, 1.2, 0.5, -0.25, 0.4, -2.2, 0.6, 0.8], abs=1e-6)


def test_the_box_pays_for_shown_goals_what_compute_reward_says():
    env: Any = gymnasium.make(BOX, reward="sparse", observation="goal", compiled=False).unwrapped
    paid = []
    for aside, tilt_rad in ((0.31, 0.0), (0.29, 0.0), (0.31, 1.5), (0.29, 1.5)):
        env.reset(seed=1)
        records = env.sim.states.copy()
        records["boxes"]["position_m"][0, 0, :2] = records["goal_m"][0] + (0.0, aside)
        records["robots"]["position_m"][0, :, 1] += 5.0
        records["robots"]["quaternion"][0, 0] = math.cos(tilt_rad / 2), math.sin(tilt_rad / 2), 0.0, 0.0
        env.sim.load_states(records, np.array([True]))
        seen, reward, over, *_ = env.step(np.zeros(6, np.float32))
        assert over == (aside < 0.3 or tilt_rad > 0.0)
        assert env.compute_reward(seen["achieved_goal"], seen["desired_goal"]) == reward
        np.testing.assert_array_equal(seen["desired_goal"], np.float32(records["goal_m"][[0, 0]]))
        np.testing.assert_array_equal(
            seen["achieved_goal"], np.float32(env.sim.states["boxes"]["position_m"][0, [0, 0], :2])
        )
        paid.append(reward)
    assert paid == [0.0, 1.0, 0.0, 1.0]


def test_goals_of_a_team_and_of_one_robot_are_paid_alike():
    rng = np.random.default_rng(0)
    achieved, desired = rng.uniform(-0.3, 0.3, (2, 50, 2))
    alone = quad_box.reward_goal(achieved, desired, None)
    rows = [np.repeat(goals[:, None], 2, axis=1) for goals in (achieved, desired)]
    team = quad_box.reward_goal(rows[0], rows[1], None)
    np.testing.assert_array_equal(alone, team)
    np.testing.assert_array_equal(alone, np.hypot(*(achieved - desired).T) < quad_box.NEAR_M)


def test_a_robot_sees_what_hindsight_replay_needs():
    goal, plain = ({}, {})
    for seen, observation in ((goal, "goal"), (plain, "dict")):
        env: Any = gymnasium.make(BOX, observation=observation)
        seen.update(env.reset(seed=5)[0])
    own = goal["observation"]
    np.testing.assert_array_equal(own[:, :3], plain["up"])
    np.testing.assert_array_equal(own[:, 37:40], plain["last"])
    np.testing.assert_array_equal(own[:, 46:48], plain["box_m"])
    np.testing.assert_array_equal(own[:, 48:50], plain["box_heading"])
    cos, sin = own[:, 40:42].T  # from the place in the own frame back to the floor: the way from box to goal
    ahead, left = (plain["goal_m"] - plain["box_m"]).T
    way = np.stack([cos * ahead - sin * left, sin * ahead + cos * left], axis=-1)
    np.testing.assert_allclose(way, goal["desired_goal"] - goal["achieved_goal"], atol=1e-5)


def test_a_dense_reward_is_not_computed_from_goals():
    env: Any = gymnasium.make(BOX, observation="goal").unwrapped
    assert not hasattr(env, "compute_reward")
    assert hasattr(gymnasium.make(BOX, observation="goal", reward="sparse").unwrapped, "compute_reward")


@pytest.mark.slow
def test_the_script_drives_the_sheep_through_and_chance_does_not():
    done = {who: evaluate(SHEPHERD, who, matches=256).end_reasons.get("done", 0) for who in ("herd", "random")}
    print("QuadShepherd, done of 256:", done)
    assert done["herd"] >= 0.90 * 256
    assert done["random"] <= 0.02 * 256


@pytest.mark.slow
def test_hindsight_replay_of_sb3_plays_the_box():
    sb3 = pytest.importorskip("stable_baselines3")
    env = gymnasium.make(BOX, reward="sparse", observation="goal")
    options = {"learning_starts": 160, "batch_size": 32, "policy_kwargs": {"net_arch": [16]}, "seed": 1}
    model = sb3.SAC("MultiInputPolicy", env, replay_buffer_class=sb3.HerReplayBuffer, **options)
    model.learn(500)
    sample = model.replay_buffer.sample(256)
    ways = (sample.next_observations["achieved_goal"] - sample.next_observations["desired_goal"]).numpy()
    expected = (np.hypot(ways[:, 0, 0], ways[:, 0, 1]) < quad_box.NEAR_M).astype(float)
    assert sample.rewards[:, 0].tolist() == expected.tolist()
    assert 0.2 < expected.mean() < 1.0  # goals are put in place afterwards, and some stay
