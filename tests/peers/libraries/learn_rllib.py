# pyright: reportMissingImports=false
"""RLlib's new stack: its checker on all ids; by id, here and in a remote runner; PettingZoo with policies by team."""

from __future__ import annotations

from typing import Any

import gymnasium
import ray
from peers.libraries.more_ids import ALL, MODULE, ONE, TEXTS
from peers.libraries.trials import STEPS, main, trial, trial_of_ids
from ray.rllib.algorithms.dqn import DQNConfig
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.algorithms.sac import SACConfig
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.env.multi_agent_env_runner import MultiAgentEnvRunner
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner
from ray.rllib.env.wrappers.pettingzoo_env import ParallelPettingZooEnv
from ray.rllib.examples.rl_modules.classes.action_masking_rlm import ActionMaskingTorchRLModule
from ray.rllib.utils.pre_checks.env import check_multiagent_environments
from ray.tune import register_env

from palaestra import zoo
from palaestra.adapters.rllib import MatchEnv, register
from palaestra.registry import make_parallel

TOKENS = ("palaestra/MathText-Arith-v1", "palaestra/MathText-Algebra-v0")
"""Whose observations are whole numbers, in a Box."""
NO_NETWORK = {"No default encoder config": TEXTS, "must have the same dtype, but got Int and Float": TOKENS}
TRACK, TAG = "palaestra:palaestra/UcavTrack-v3", "palaestra:palaestra/TeamTag-v0"


def ppo(id: str, runners: int = 0, config: dict[str, Any] | None = None, **env_runners: Any) -> PPOConfig:
    made = PPOConfig().environment(id, env_config=config or {})
    made.env_runners(num_env_runners=runners, rollout_fragment_length="auto", **env_runners)
    return made.training(train_batch_size_per_learner=STEPS, minibatch_size=50, num_epochs=1)


def train(config: Any) -> None:
    algorithm = config.build_algo()
    found = algorithm.train()
    assert found["num_env_steps_sampled_lifetime"] >= STEPS
    algorithm.stop()


@trial_of_ids("SingleAgentEnvRunner by id", ALL, limits=NO_NETWORK)
def _(id: str) -> None:
    runner = SingleAgentEnvRunner(config=ppo(f"palaestra:{id}"))
    assert sum(len(episode) for episode in runner.sample(num_timesteps=20)) >= 20
    runner.stop()


@trial_of_ids("its checker of multi-agent environments on ParallelPettingZooEnv", ALL)
def _(id: str) -> None:
    check_multiagent_environments(ParallelPettingZooEnv(make_parallel(id)))


@trial_of_ids("its checker of multi-agent environments on our adapter", ALL)
def _(id: str) -> None:
    check_multiagent_environments(MatchEnv(id))


@trial_of_ids("MultiAgentEnvRunner on our adapter, a policy for each agent", ALL, limits=NO_NETWORK)
def _(id: str) -> None:
    config = ppo(register(id))
    agents = MatchEnv(id).possible_agents
    config.multi_agent(policies=set(agents), policy_mapping_fn=lambda agent, *given, **named: agent)
    runner = MultiAgentEnvRunner(config=config)
    assert sum(len(episode) for episode in runner.sample(num_timesteps=20)) >= 20
    runner.stop()


@trial("box", "PPO, SAC by id on UcavTrack")
def _() -> None:
    train(ppo(TRACK))
    sac = SACConfig().environment(TRACK).env_runners(num_env_runners=0, rollout_fragment_length=STEPS)
    train(sac.training(train_batch_size_per_learner=32, num_steps_sampled_before_learning_starts=100))


@trial("box", "PPO by id in a remote runner")
def _() -> None:
    train(ppo(TRACK, runners=1))


@trial("opponent", "PPO by id on TeamPong and UcavDogfight")
def _() -> None:
    train(ppo("palaestra:palaestra/TeamPong-v0", config={"opponent": "tracker"}))
    train(ppo("palaestra:palaestra/UcavDogfight-v2"))


@trial("opponent", 'DQN on TeamPong, choices="discrete"')
def _() -> None:
    dqn = DQNConfig().environment("palaestra:palaestra/TeamPong-v0", env_config={"choices": "discrete"})
    dqn.env_runners(num_env_runners=0, rollout_fragment_length=STEPS)
    train(dqn.training(train_batch_size_per_learner=32, num_steps_sampled_before_learning_starts=100))


@trial("choices", "PPO on MultiDiscrete and on unlike roles")
def _() -> None:
    train(ppo("palaestra:palaestra/ArenaDuel2v2-v0"))
    train(ppo("palaestra:palaestra/SpeakerListener-v0"))


@trial("choices", 'ActionMaskingTorchRLModule with mask_keys=("observations", "action_mask")')
def _() -> None:
    masked = ppo(f"{MODULE}:{ONE}", config={"mask": "obs", "mask_keys": ("observations", "action_mask")})
    masked.rl_module(rl_module_spec=RLModuleSpec(module_class=ActionMaskingTorchRLModule))
    train(masked)


@trial("choices", "Dict observations", limit="No default encoder config")
def _() -> None:
    train(ppo(TAG, config={"observation": "dict"}))


@trial("parallel", "ParallelPettingZooEnv, a policy by team, on TeamPong, TeamTag, Arena with deaths, UcavDogfight")
def _() -> None:
    for module in (zoo.team_pong_v0, zoo.team_tag_v0, zoo.arena_duel2v2_v0, zoo.ucav_dogfight_v2):
        register_env("match", lambda config, make=module.parallel_env: ParallelPettingZooEnv(make(**config)))
        match = ppo("match")
        match.multi_agent(
            policies={"red", "blue"}, policy_mapping_fn=lambda agent, *given, **named: agent.partition("_")[0]
        )
        train(match)


@trial("vector", "two environments a runner: sync, async, native vector_entry_point")
def _() -> None:
    for mode in (gymnasium.VectorizeMode.SYNC, gymnasium.VectorizeMode.ASYNC, "vector_entry_point"):
        train(ppo(TAG, num_envs_per_env_runner=2, gym_env_vectorize_mode=mode))


if __name__ == "__main__":
    ray.init(num_cpus=2, include_dashboard=False, logging_level="error", log_to_driver=False)
    main("ray", "torch")
    ray.shutdown()
