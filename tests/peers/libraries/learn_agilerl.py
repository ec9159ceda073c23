# pyright: reportMissingImports=false
"""AgileRL: PPO by id, IPPO and MADDPG on PettingZoo, its vector environment of matches."""

from __future__ import annotations

from functools import partial
from typing import Any

import gymnasium
from agilerl.algorithms import IPPO, MADDPG, PPO
from agilerl.components.replay_buffer import ReplayBuffer
from agilerl.training.train_multi_agent_off_policy import train_multi_agent_off_policy
from agilerl.training.train_multi_agent_on_policy import train_multi_agent_on_policy
from agilerl.training.train_on_policy import train_on_policy
from agilerl.vector.pz_async_vec_env import AsyncPettingZooVecEnv
from peers.libraries.more_ids import TWO
from peers.libraries.trials import STEPS, main, trial

from palaestra import zoo
from palaestra.registry import make_parallel

SIZES = {"batch_size": 50, "learn_step": 100}
BUDGET = {"max_steps": STEPS, "evo_steps": STEPS, "eval_steps": 20, "verbose": False}


def learn(id: str, **keywords: Any) -> None:
    """PPO as AgileRL's tutorials train it: a population of one."""
    envs = gymnasium.make_vec(id, num_envs=2, vectorization_mode="sync", **keywords)
    agent = PPO(envs.single_observation_space, envs.single_action_space, num_envs=2, update_epochs=1, **SIZES)
    train_on_policy(envs, id, "PPO", [agent], **BUDGET)
    envs.close()


def spaces_of(env: Any) -> dict[str, Any]:
    return {
        "observation_spaces": [env.observation_space(agent) for agent in env.possible_agents],
        "action_spaces": [env.action_space(agent) for agent in env.possible_agents],
        "agent_ids": env.possible_agents,
    }


def learn_ippo(make: Any) -> None:
    env = make()
    envs = AsyncPettingZooVecEnv([make, make])
    train_multi_agent_on_policy(envs, "match", "IPPO", [IPPO(**spaces_of(env), update_epochs=1, **SIZES)], **BUDGET)
    envs.close()


@trial("box", "PPO on UcavTrack")
def _() -> None:
    learn("palaestra/UcavTrack-v3")


@trial("opponent", "PPO on GridSoccer, UcavDogfight, and a team of TeamPong as one Discrete")
def _() -> None:
    learn("palaestra/GridSoccer-v0")
    learn("palaestra/UcavDogfight-v2")
    learn("palaestra/TeamPong-v0", choices="discrete")


@trial("choices", "PPO on MultiDiscrete")
def _() -> None:
    learn("palaestra/ArenaDuel2v2-v0")


@trial("parallel", "IPPO on AsyncPettingZooVecEnv: TeamPong, TeamTag, UcavDogfight")
def _() -> None:
    for module in (zoo.team_pong_v0, zoo.team_tag_v0, zoo.ucav_dogfight_v2):
        learn_ippo(module.parallel_env)


@trial("parallel", "IPPO with agents that die (Arena), fixed_agents=True")
def _() -> None:
    learn_ippo(partial(zoo.arena_duel2v2_v0.parallel_env, fixed_agents=True))


@trial("parallel", "IPPO with agents that leave: AgileRL lets them see NaN", limit="`inf`, `nan`")
def _() -> None:
    learn_ippo(zoo.arena_duel2v2_v0.parallel_env)


@trial("parallel", "MADDPG on TeamPong")
def _() -> None:
    env = zoo.team_pong_v0.parallel_env()
    envs = AsyncPettingZooVecEnv([zoo.team_pong_v0.parallel_env] * 2)
    agent = MADDPG(**spaces_of(env), vect_noise_dim=2, **SIZES)
    train_multi_agent_off_policy(envs, "match", "MADDPG", [agent], memory=ReplayBuffer(1000), **BUDGET)
    envs.close()


@trial("choices", "IPPO on masks in infos", limit="truth value of an array")
def _() -> None:
    learn_ippo(partial(make_parallel, TWO, mask="info"))


if __name__ == "__main__":
    main("agilerl", "torch")
