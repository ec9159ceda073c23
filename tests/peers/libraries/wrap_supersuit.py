# pyright: reportMissingImports=false
"""SuperSuit: its wrappers on the PettingZoo face, and matches side by side as a vector environment."""

from __future__ import annotations

import numpy as np
import supersuit as ss
from peers.libraries.more_ids import TWO
from peers.libraries.trials import STEPS, main, trial
from stable_baselines3 import PPO

from palaestra import zoo
from palaestra.registry import make_parallel


def play(env, seed: int = 0) -> None:
    """Random actions in a ParallelEnv."""
    env.reset(seed=seed)
    for _ in range(STEPS):
        actions = {agent: env.action_space(agent).sample() for agent in env.agents}
        seen, *_ = env.step(actions)
        for agent, observation in seen.items():
            assert env.observation_space(agent).contains(observation), agent
        if not env.agents:
            env.reset()


@trial("parallel", "pad, frame stack, dtype, flatten, sticky, clip reward, delay on TeamTag and TeamPong")
def _() -> None:
    for module in (zoo.team_tag_v0, zoo.team_pong_v0):
        env = ss.pad_action_space_v0(ss.pad_observations_v0(module.parallel_env()))
        env = ss.frame_stack_v1(ss.sticky_actions_v0(env, 0.25), 3)
        play(ss.clip_reward_v0(ss.dtype_v0(ss.flatten_v0(env), np.float64)))
        play(ss.delay_observations_v0(module.parallel_env(), 2))


@trial("box", "clip_actions and scaling on UcavDogfight")
def _() -> None:
    play(ss.clip_actions_v0(zoo.ucav_dogfight_v0.parallel_env()))


@trial("choices", "agents that die: black_death on the arena")
def _() -> None:
    play(ss.black_death_v3(zoo.arena_duel2v2_v0.parallel_env()))


@trial("choices", "black_death on masked observations", limit="must be Box spaces")
def _() -> None:
    play(ss.black_death_v3(make_parallel(TWO)))


@trial("choices", 'black_death with mask="info"')
def _() -> None:
    play(ss.black_death_v3(make_parallel(TWO, mask="info")))


@trial("choices", "pad_action_space on unlike MultiDiscrete")
def _() -> None:
    play(ss.pad_action_space_v0(zoo.arena_duel2v2_v0.parallel_env(choices="discrete")))


@trial("vector", "concat_vec_envs in Gymnasium's and Stable-Baselines3's form, with one update")
def _() -> None:
    for module, wrap in ((zoo.team_pong_v0, False), (zoo.arena_duel2v2_v0, True)):
        env = module.parallel_env()
        env = ss.black_death_v3(env) if wrap else ss.pad_observations_v0(env)
        envs = ss.pettingzoo_env_to_vec_env_v1(env)
        for kind in ("gymnasium", "stable_baselines3"):
            rows = ss.concat_vec_envs_v1(envs, 2, num_cpus=0, base_class=kind)
            rows.reset()
            if kind == "stable_baselines3":
                PPO("MlpPolicy", rows, n_steps=50, batch_size=50, device="cpu").learn(STEPS)


if __name__ == "__main__":
    main("supersuit")
