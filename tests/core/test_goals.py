"""Rewards of other goals: what faces compute is what the rules pay, and hindsight replay of SB3 learns from it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
import pytest
from games import reach

from palaestra.core.faces.gym_env import GameEnv
from palaestra.core.run.kernel import KernelSimulation

ID = "tests/Reach-v0"


def test_what_a_face_computes_is_what_the_rules_have_paid():
    env: Any = gymnasium.make(ID, observation="goal", compiled=False)
    env.action_space.seed(3)
    seen, paid, info = [], [], {}
    for seed in range(20):
        env.reset(seed=seed)
        for _ in range(20):
            o, reward, _, _, info = env.step(env.action_space.sample())
            assert env.unwrapped.compute_reward(o["achieved_goal"], o["desired_goal"], info) == reward
            seen.append(o)
            paid.append(reward)
    assert set(paid) == {0.0, -1.0}
    achieved, desired = (np.array([o[name] for o in seen]) for name in ("achieved_goal", "desired_goal"))
    assert env.unwrapped.compute_reward(achieved, desired, {}).tolist() == paid
    assert env.unwrapped.compute_reward(desired, desired, {}).tolist() == [0.0] * len(paid)
    assert isinstance(env.unwrapped.compute_reward(desired[0], desired[0], {}), float)


def test_a_batch_computes_likewise():
    envs: Any = gymnasium.make_vec(ID, num_envs=64, observation="goal", compiled=False)
    envs.reset(seed=1)
    envs.action_space.seed(1)
    for _ in range(10):
        seen, rewards, *_, info = envs.step(envs.action_space.sample())
        computed = envs.compute_reward(seen["achieved_goal"], seen["desired_goal"], info)
        assert computed.dtype == rewards.dtype == np.float32
        assert computed.tobytes() == rewards.tobytes()


def test_what_cannot_be_computed_is_refused_by_name():
    seen: Any = gymnasium.make(ID, observation="goal", compiled=False).unwrapped
    with pytest.raises(ValueError, match=r"goals have shape \(2,\) or \(N, \*\(2,\)\), not \(3, 3\) and \(3, 2\)"):
        seen.compute_reward(np.zeros((3, 3)), np.zeros((3, 2)))


def test_rewards_have_the_dtype_of_the_game():
    sim = KernelSimulation(replace(reach.game(), reward_dtype="f8").represented("goal"), 2, compiled=False)
    env = GameEnv(sim, observation="dict")
    assert env.compute_reward(np.zeros((2, 2)), np.ones((2, 2))).dtype == np.float64


@pytest.mark.check
@pytest.mark.parametrize("batched", [False, True])
def test_hindsight_replay_of_sb3_plays_the_id(batched: bool):
    sb3 = pytest.importorskip("stable_baselines3")
    from palaestra.adapters.sb3 import as_vec_env

    words: dict[str, Any] = {"observation": "goal", "compiled": False}
    env = as_vec_env(ID, 4, **words) if batched else gymnasium.make(ID, **words)
    options = {"learning_starts": 100, "batch_size": 32, "policy_kwargs": {"net_arch": [16]}, "seed": 1}
    model = sb3.DDPG("MultiInputPolicy", env, replay_buffer_class=sb3.HerReplayBuffer, **options)
    model.learn(240)
    sample = model.replay_buffer.sample(256)
    near = ((sample.next_observations["achieved_goal"] - sample.next_observations["desired_goal"]) ** 2).sum(1)
    expected = np.where(near.numpy() < reach.NEAR_M**2, 0.0, -1.0)
    assert sample.rewards[:, 0].tolist() == expected.tolist()
    assert (expected == 0.0).mean() > 0.2  # goals are put in place afterwards
