# pyright: reportMissingImports=false
"""Tianshou: DQN and PPO by id on its vector environments, masks by ``mask_keys``, and its multi-agent algorithm."""

from __future__ import annotations

from typing import Any

import gymnasium
import torch
from peers.libraries.more_ids import MODULE, ONE, TWO
from peers.libraries.trials import STEPS, main, trial
from tianshou.algorithm import DQN, PPO
from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
from tianshou.algorithm.modelfree.reinforce import ProbabilisticActorPolicy
from tianshou.algorithm.multiagent.marl import MultiAgentOffPolicyAlgorithm
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv, PettingZooEnv, ShmemVectorEnv, SubprocVectorEnv
from tianshou.env.gym_wrappers import MultiDiscreteToDiscrete
from tianshou.trainer import OffPolicyTrainerParams, OnPolicyTrainerParams
from tianshou.utils.net.common import Net
from tianshou.utils.net.continuous import ContinuousActorProbabilistic, ContinuousCritic

from palaestra import zoo
from palaestra.registry import zoo_name

TRAINING = {"max_epochs": 1, "epoch_num_steps": STEPS, "collection_step_num_env_steps": STEPS, "verbose": False}


def dqn(observation: gymnasium.Space, action: Any) -> DQN:
    net = Net(state_shape=observation.shape, action_shape=action.n, hidden_sizes=[32])
    policy = DiscreteQLearningPolicy(model=net, action_space=action, eps_training=0.5)
    return DQN(policy=policy, optim=AdamOptimizerFactory(lr=1e-3), target_update_freq=50)


def learn_dqn(algorithm: Any, envs: Any) -> None:
    collector = Collector(algorithm, envs, VectorReplayBuffer(1000, len(envs)), exploration_noise=True)
    settings = OffPolicyTrainerParams(
        training_collector=collector,
        test_collector=None,
        batch_size=32,
        update_step_num_gradient_steps_per_sample=0.02,
        **TRAINING,
    )
    algorithm.run_training(settings)


def learn_ppo(env: Any, envs: Any) -> None:
    spaces = {"state_shape": env.observation_space.shape, "hidden_sizes": [32]}
    actor = ContinuousActorProbabilistic(
        preprocess_net=Net(**spaces), action_shape=env.action_space.shape, unbounded=True
    )
    policy = ProbabilisticActorPolicy(
        actor=actor,
        dist_fn=lambda given: torch.distributions.Independent(torch.distributions.Normal(*given), 1),
        action_space=env.action_space,
        action_bound_method="clip",
    )
    critic = ContinuousCritic(preprocess_net=Net(**spaces))
    algorithm = PPO(policy=policy, critic=critic, optim=AdamOptimizerFactory(lr=1e-3))
    collector = Collector(algorithm, envs, VectorReplayBuffer(STEPS, len(envs)))
    settings = OnPolicyTrainerParams(training_collector=collector, test_collector=None, **TRAINING)
    algorithm.run_training(settings)


@trial("box", "PPO on UcavTrack")
def _() -> None:
    id = "palaestra/UcavTrack-v3"
    learn_ppo(gymnasium.make(id), DummyVectorEnv([lambda: gymnasium.make(id)] * 2))


@trial("opponent", "DQN on GridSoccer; on a team of TeamPong by Tianshou's own wrapper")
def _() -> None:
    for make in (
        lambda: gymnasium.make("palaestra/GridSoccer-v0"),
        lambda: MultiDiscreteToDiscrete(gymnasium.make("palaestra/TeamPong-v0")),
    ):
        env = make()
        learn_dqn(dqn(env.observation_space, env.action_space), DummyVectorEnv([make] * 2))


@trial("choices", 'DQN on masks, mask_keys=("obs", "mask"), one agent and a team\'s choices as one Discrete')
def _() -> None:
    for id in (ONE, TWO):
        keywords: dict[str, Any] = {"mask": "obs", "mask_keys": ("obs", "mask"), "choices": "discrete"}
        env: Any = gymnasium.make(id, **keywords)
        envs = DummyVectorEnv([lambda id=id, given=keywords: gymnasium.make(id, **given)] * 2)
        learn_dqn(dqn(env.observation_space["obs"], env.action_space), envs)


@trial("vector", "SubprocVectorEnv, ShmemVectorEnv by id")
def _() -> None:
    for kind in (SubprocVectorEnv, ShmemVectorEnv):
        id = f"{MODULE}:joint/TeamPong-v0"
        env = gymnasium.make(id)
        envs = kind([lambda id=id: gymnasium.make(id)] * 2)
        learn_dqn(dqn(env.observation_space, env.action_space), envs)
        envs.close()


def match(id: str, **keywords: Any) -> PettingZooEnv:
    return PettingZooEnv(getattr(zoo, zoo_name(id)).env(**keywords))


def learn_match(id: str, **keywords: Any) -> None:
    env = match(id, **keywords)
    observation = env.observation_space
    seen = observation["observation"] if isinstance(observation, gymnasium.spaces.Dict) else observation
    algorithms = [dqn(seen, env.action_space) for _ in env.agents]
    together = MultiAgentOffPolicyAlgorithm(algorithms=algorithms, env=env)
    learn_dqn(together, DummyVectorEnv([lambda: match(id, **keywords)] * 2))


@trial("parallel", "MultiAgentOffPolicyAlgorithm on PettingZooEnv: TeamPong, GridSoccer, masked pairs")
def _() -> None:
    for id in ("palaestra/TeamPong-v0", "palaestra/GridSoccer-v0", TWO):
        learn_match(id)


@trial("parallel", 'the same on composite choices with deaths (Arena), choices="discrete"')
def _() -> None:
    learn_match("palaestra/ArenaDuel2v2-v0", choices="discrete")


@trial("parallel", "the same on MultiDiscrete", limit="has no attribute 'n'")
def _() -> None:
    learn_match("palaestra/ArenaDuel2v2-v0")


if __name__ == "__main__":
    main("tianshou", "torch")
