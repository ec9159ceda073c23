# pyright: reportMissingImports=false
"""skrl: its wrappers of single, vector and PettingZoo environments, and its PPO."""

from __future__ import annotations

from typing import Any

import gymnasium
import torch
from peers.libraries.trials import STEPS, main, trial
from skrl.agents.torch.ppo import PPO
from skrl.envs.wrappers.torch import wrap_env
from skrl.memories.torch import RandomMemory
from skrl.trainers.torch import SequentialTrainer
from skrl.utils.model_instantiators.torch import (
    categorical_model,
    deterministic_model,
    gaussian_model,
    multicategorical_model,
)

from palaestra import zoo

NETWORK = [{"name": "net", "input": "OBSERVATIONS", "layers": [32], "activations": "elu"}]


def learn(env: Any, policy: Any, **trainer: Any) -> None:
    """A rollout of PPO with its updates, with skrl's defaults: actions are not clipped."""
    spaces = {"observation_space": env.observation_space, "action_space": env.action_space, "device": env.device}
    models = {
        "policy": policy(**spaces, network=NETWORK, output="ACTIONS"),
        "value": deterministic_model(**spaces, network=NETWORK, output="ONE"),
    }
    memory = RandomMemory(memory_size=50, num_envs=env.num_envs, device=env.device)
    experiment = {"write_interval": 0, "checkpoint_interval": 0}
    settings = {"rollouts": 50, "learning_epochs": 1, "mini_batches": 2, "experiment": experiment}
    agent = PPO(models=models, memory=memory, cfg=settings, **spaces)
    timesteps = STEPS // env.num_envs
    SequentialTrainer(
        env=env, agents=agent, cfg={"timesteps": timesteps, "disable_progressbar": True, **trainer}
    ).train()


def play(env: Any) -> None:
    env.reset()
    for _ in range(STEPS):
        actions = {
            agent: torch.as_tensor(env.action_space(agent).sample()).reshape(1, -1) for agent in env.possible_agents
        }
        env.step(actions)
        if not env.agents:
            env.reset()


@trial("box", "PPO with Gaussian actions beyond their bounds, on UcavTrack")
def _() -> None:
    learn(wrap_env(gymnasium.make("palaestra/UcavTrack-v3")), gaussian_model, headless=True)


@trial("opponent", "PPO on GridSoccer and UcavDogfight")
def _() -> None:
    learn(wrap_env(gymnasium.make("palaestra/GridSoccer-v0")), categorical_model, headless=True)
    learn(wrap_env(gymnasium.make("palaestra/UcavDogfight-v2")), gaussian_model, headless=True)


@trial("choices", "PPO on MultiDiscrete, and on one Discrete of a team's choices")
def _() -> None:
    learn(wrap_env(gymnasium.make("palaestra/ArenaDuel2v2-v0")), multicategorical_model, headless=True)
    env = gymnasium.make("palaestra/SpeakerListener-v0", choices="discrete")
    learn(wrap_env(env), categorical_model, headless=True)


@trial("parallel", "wrap_env on TeamPong, TeamTag, Arena, state included")
def _() -> None:
    for module in (zoo.team_pong_v0, zoo.team_tag_v0, zoo.arena_duel2v2_v0):
        env = wrap_env(module.parallel_env(), wrapper="pettingzoo")
        play(env)
        size = module.parallel_env().state_space.shape[0]
        assert all(state.shape[-1] == size for state in env.state().values())


@trial("vector", "PPO on make_vec, native and sync, with the trainer's defaults")
def _() -> None:
    for mode in (None, "sync"):
        envs = gymnasium.make_vec("palaestra/UcavTrack-v3", num_envs=2, vectorization_mode=mode)
        learn(wrap_env(envs), gaussian_model, headless=mode == "sync")


if __name__ == "__main__":
    main("skrl", "torch")
