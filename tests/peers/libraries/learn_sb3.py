"""Stable-Baselines3: a few learners by id, its vector environments, and a native batch through our adapter."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import gymnasium
from peers.libraries.trials import STEPS, main, trial
from stable_baselines3 import A2C, DQN, PPO, SAC, TD3
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import SubprocVecEnv, VecNormalize

from palaestra.adapters.sb3 import as_vec_env

ON_POLICY = {"n_steps": 100, "device": "cpu"}
OFF_POLICY = {"learning_starts": 100, "train_freq": 50, "batch_size": 32, "device": "cpu"}


@trial("box", "PPO, SAC, TD3 on UcavTrack; save, load, evaluate")
def _() -> None:
    id = "palaestra/UcavTrack-v1"
    check_env(gymnasium.make(id))
    for method in (SAC, TD3):
        method("MlpPolicy", gymnasium.make(id), buffer_size=1000, **OFF_POLICY).learn(STEPS)
    model = PPO("MlpPolicy", gymnasium.make(id), batch_size=50, **ON_POLICY).learn(STEPS)
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "ppo")
        evaluate_policy(PPO.load(Path(folder) / "ppo"), gymnasium.make(id), n_eval_episodes=1)


@trial("box", "PPO with MultiInputPolicy on Dict observations")
def _() -> None:
    env = gymnasium.make("palaestra/CartPole-v0", observation="dict")
    PPO("MultiInputPolicy", env, batch_size=50, **ON_POLICY).learn(STEPS)


@trial("opponent", "PPO, A2C on TeamPong and UcavDogfight")
def _() -> None:
    for id in ("palaestra/TeamPong-v0", "palaestra/UcavDogfight-v1"):
        PPO("MlpPolicy", id, batch_size=50, **ON_POLICY).learn(STEPS)
        A2C("MlpPolicy", id, device="cpu").learn(STEPS)


@trial("opponent", 'DQN on TeamPong, choices="discrete"')
def _() -> None:
    env = gymnasium.make("palaestra/TeamPong-v0", choices="discrete")
    DQN("MlpPolicy", env, buffer_size=1000, **OFF_POLICY).learn(STEPS)


@trial("choices", "PPO on MultiDiscrete")
def _() -> None:
    PPO("MlpPolicy", "palaestra/ArenaDuel2v2-v0", batch_size=50, **ON_POLICY).learn(STEPS)


@trial("choices", "DQN on GridSoccer (Discrete)")
def _() -> None:
    DQN("MlpPolicy", "palaestra/GridSoccer-v0", buffer_size=1000, **OFF_POLICY).learn(STEPS)


@trial("choices", "DQN on MultiDiscrete", limit="only supports")
def _() -> None:
    DQN("MlpPolicy", gymnasium.make("palaestra/ArenaDuel2v2-v0"), buffer_size=1000, **OFF_POLICY)


@trial("choices", "PPO on a team of unlike roles (SpeakerListener)")
def _() -> None:
    env = gymnasium.make("palaestra/SpeakerListener-v0", choices="discrete")
    PPO("MlpPolicy", env, batch_size=50, **ON_POLICY).learn(STEPS)


@trial("vector", "DummyVecEnv, SubprocVecEnv, VecNormalize")
def _() -> None:
    for kind in (None, SubprocVecEnv):
        envs = VecNormalize(make_vec_env("palaestra:palaestra/TeamTag-v0", 2, vec_env_cls=kind))
        PPO("MlpPolicy", envs, batch_size=50, **ON_POLICY).learn(STEPS)
        envs.close()


@trial("vector", "Gymnasium's native VectorEnv", limit="not a Gymnasium environment")
def _() -> None:
    PPO("MlpPolicy", gymnasium.make_vec("palaestra/TeamTag-v0", num_envs=2))  # pyright: ignore[reportArgumentType]


@trial("adapter", "adapters.sb3.as_vec_env: a team, a row for every agent, Dict observations")
def _() -> None:
    id = "palaestra/TeamTag-v0"
    kinds: tuple[dict[str, Any], ...] = ({}, {"agents": "rows", "team": "red"})
    for keywords in kinds:
        PPO("MlpPolicy", as_vec_env(id, 2, **keywords), batch_size=50, **ON_POLICY).learn(STEPS)
    PPO("MultiInputPolicy", as_vec_env(id, 2, observation="dict"), batch_size=50, **ON_POLICY).learn(STEPS)


if __name__ == "__main__":
    main("stable-baselines3", "torch")
