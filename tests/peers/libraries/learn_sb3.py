"""Stable-Baselines3: its checker on all ids, a few learners, its vector environments, a batch through our adapter."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from peers.libraries.more_ids import ALL, TEXTS
from peers.libraries.trials import STEPS, main, trial, trial_of_ids
from stable_baselines3 import A2C, DQN, PPO, SAC, TD3
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import SubprocVecEnv, VecNormalize

from palaestra.adapters.sb3 import as_vec_env
from palaestra.players.onnx_models import read_file

ON_POLICY = {"n_steps": 100, "device": "cpu"}
OFF_POLICY = {"learning_starts": 100, "train_freq": 50, "batch_size": 32, "device": "cpu"}


NO_ARRAY = {"must be a numpy array": TEXTS}


@trial_of_ids("check_env", ALL, limits=NO_ARRAY)
def _(id: str) -> None:
    check_env(gymnasium.make(id), warn=False)


@trial_of_ids("check_env with render_mode, skip_render_check=False", ALL, limits=NO_ARRAY)
def _(id: str) -> None:
    check_env(gymnasium.make(id, render_mode="rgb_array"), warn=False, skip_render_check=False)


@trial("box", "PPO, SAC, TD3 on UcavTrack; save, load, evaluate")
def _() -> None:
    id = "palaestra/UcavTrack-v3"
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
    for id in ("palaestra/TeamPong-v0", "palaestra/UcavDogfight-v2"):
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


class Exported(torch.nn.Module):
    """As on SB3's page "Exporting models"."""

    def __init__(self, policy: Any) -> None:
        super().__init__()
        self.policy = policy

    def forward(self, observation: torch.Tensor) -> Any:
        return self.policy(observation, deterministic=True)


def plays_as_exported(model: Any, folder: Path, **keywords: Any) -> None:
    """Exports a policy and compares what our player of the file does with the model on 1,000 observations."""
    shape, path = model.observation_space.shape, folder / "policy.onnx"
    torch.distributions.Distribution.set_default_validate_args(False)  # torch's newer exporter cannot follow them
    with torch.no_grad():
        torch.onnx.export(Exported(model.policy).eval(), (torch.zeros(1, *shape),), str(path), **keywords)
    torch.distributions.Distribution.set_default_validate_args(True)
    seen = np.random.default_rng(0).normal(size=(1000, *shape)).astype(np.float32)
    played: Any = read_file(path).model
    np.testing.assert_array_equal(played.output(seen), model.predict(seen, deterministic=True)[0])


@trial("choices", "its documented ONNX export of PPO, A2C, DQN: the actions of predict, by both exporters of torch")
def _() -> None:
    many: dict[str, Any] = {"input_names": ["input"], "dynamic_axes": {"input": {0: "rows"}}}
    with tempfile.TemporaryDirectory() as folder:
        for id in ("palaestra/GridSoccer-v0", "palaestra/ArenaDuel2v2-v0"):
            models = [method("MlpPolicy", id, device="cpu") for method in (PPO, A2C)]
            models += [DQN("MlpPolicy", id, buffer_size=10, device="cpu")] if id == "palaestra/GridSoccer-v0" else []
            for model in models:
                plays_as_exported(model, Path(folder), opset_version=18, external_data=False)
                plays_as_exported(model, Path(folder), opset_version=17, dynamo=False, **many)


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
