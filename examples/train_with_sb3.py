"""Stable-Baselines3's PPO, unmodified, on a native batch of lanes.

pip install "palaestra[baselines]"
python examples/train_with_sb3.py 100000
"""

import sys
from typing import Any

from stable_baselines3 import PPO

from palaestra.adapters.sb3 import as_vec_env

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
envs = as_vec_env("palaestra/CartPole-v0", num_envs=64)
model = PPO("MlpPolicy", envs, n_steps=32, batch_size=256, n_epochs=4, learning_rate=1e-3, seed=0, verbose=0)
model.learn(steps, progress_bar=False)
lengths = [0.0] * envs.num_envs
observations: Any = envs.reset()
for _ in range(500):
    actions, _ = model.predict(observations, deterministic=True)
    observations, rewards, dones, infos = envs.step(actions)
    lengths = [n + r for n, r in zip(lengths, rewards, strict=True)]
print(f"after {steps} steps: {sum(lengths) / len(lengths):.0f} decisions upright of 500, falls included")
