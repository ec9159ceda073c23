"""One simulation, four interfaces: Gymnasium's Env and VectorEnv, PettingZoo's ParallelEnv, and a batch."""

import gymnasium
import numpy as np

import palaestra
from palaestra.zoo import cart_pole_v0

ID = "palaestra/CartPole-v0"

# 1. Gymnasium: one match.
env = gymnasium.make(ID)
observation, info = env.reset(seed=7)
observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
print("Env            ", observation)

# 2. Gymnasium's VectorEnv: native, thousands of matches; lane i is the Env seeded with 7 + i, bit for bit.
envs = gymnasium.make_vec(ID, num_envs=1024)
observations, infos = envs.reset(seed=7)
observations, rewards, terminations, truncations, infos = envs.step(envs.action_space.sample())
print("VectorEnv      ", observations.shape)

# 3. PettingZoo: every agent by its name.
parallel = cart_pole_v0.parallel_env()
observations, infos = parallel.reset(seed=7)
observations, rewards, terminations, truncations, infos = parallel.step({"cart_0": 1})
print("ParallelEnv    ", observations)

# 4. The batch itself: arrays [lanes, agents, ...] of all teams, for learners of their own.
batch = palaestra.make_batch(ID, num_envs=1024, autoreset_mode="same_step")
batch.reset(seed=7)
rng = np.random.default_rng(0)
for _ in range(100):
    batch.step(rng.integers(0, 2, batch.actions.shape))
saved = batch.snapshot()
batch.step(np.ones(batch.actions.shape, int))
batch.restore(saved)  # back to the very same matches
print("batch          ", batch.observations.shape, batch.rewards.shape, batch.info["end_reason"].shape)
