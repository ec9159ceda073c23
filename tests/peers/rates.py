"""Rates of the adapters next to the libraries' own vectorisation of the same game, in steps of matches per CPU second.

    python tests/peers/rates.py gymnasium
    python tests/peers/rates.py rllib
    python tests/peers/rates.py rows
    python tests/peers/rates.py torchrl

prints rows of a table, for an environment that has palaestra and the library (RLlib for ``rllib``, SuperSuit for
``rows``, TorchRL for ``torchrl``): the adapter with 512 lanes (with 8 matches for ``rllib``), then the library with as
many as it is said to have, and how many times faster the adapter is. The game is TeamTag, the actions are random, and
each figure is the best of `ROUNDS` rounds on one core.
"""

# pyright: reportMissingImports=false

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

GAME = "palaestra/TeamTag-v0"
LANES = 512
ROUNDS = 5


def rates(players: dict[str, tuple[int, Callable[[], Any]]], seconds: float = 1.0) -> dict[str, float]:
    """Steps of matches per CPU second of functions that each play one decision in so many lanes.

    The functions take turns, `ROUNDS` times, so that a busy machine slows all of them alike.
    """
    best = dict.fromkeys(players, 0.0)
    for _ in range(ROUNDS):
        for name, (lanes, step) in players.items():
            step()
            count, started = 0, time.process_time()
            while time.process_time() - started < seconds:
                step()
                count += 1
            best[name] = max(best[name], count * lanes / (time.process_time() - started))
    return best


def rows() -> str:
    """`palaestra.adapters.rows` next to SuperSuit's concatenation of ParallelEnvs, of few and of as many."""
    import supersuit

    from palaestra import zoo
    from palaestra.adapters.rows import rows as make_rows

    rng = np.random.default_rng(0)
    ours: Any = make_rows(GAME, LANES)
    envs = {"rows": (LANES, ours)}
    for lanes in (16, LANES):
        one = supersuit.pettingzoo_env_to_vec_env_v1(zoo.team_tag_v0.parallel_env())
        envs[f"SuperSuit {lanes}"] = lanes, supersuit.concat_vec_envs_v1(one, lanes, num_cpus=0, base_class="gymnasium")
    players = {}
    for name, (lanes, env) in envs.items():
        env.reset(seed=0)
        actions = rng.integers(0, ours.single_action_space.n, env.num_envs)
        players[name] = (lanes, lambda env=env, actions=actions: env.step(actions))
    mine, *theirs = rates(players).values()
    return f"| rows | SuperSuit | {mine:,.0f} | " + " | ".join(f"{rate:,.0f} | {mine / rate:,.0f}x" for rate in theirs)


def rllib() -> str:
    """`palaestra.adapters.rllib` next to RLlib's wrapper of a ParallelEnv: 8 matches of one local runner."""
    from ray.rllib.algorithms.ppo import PPOConfig
    from ray.rllib.env.multi_agent_env_runner import MultiAgentEnvRunner
    from ray.rllib.env.wrappers.pettingzoo_env import ParallelPettingZooEnv
    from ray.tune.registry import register_env

    from palaestra import zoo
    from palaestra.adapters.rllib import policy_by_team, register

    register_env("wrapped", lambda config: ParallelPettingZooEnv(zoo.team_tag_v0.parallel_env()))
    decisions, found = 200, {}
    for name in (register(GAME), "wrapped"):
        config = PPOConfig().environment(name).env_runners(num_envs_per_env_runner=8)
        config = config.multi_agent(policies={"red", "blue"}, policy_mapping_fn=policy_by_team)
        runner = MultiAgentEnvRunner(config=config)
        found[name] = (
            8 * decisions,
            lambda runner=runner: runner.sample(num_timesteps=8 * decisions, random_actions=True),
        )
    mine, theirs = rates(found).values()
    return f"| rllib | RLlib's ParallelPettingZooEnv | {mine:,.0f} | {theirs:,.0f} | {mine / theirs:.2f}x |"


def torchrl() -> str:
    """`palaestra.adapters.torchrl` next to wrappers of one match in a SerialEnv, in rollouts of whole matches.

    First matches of which all agents are played, then red alone against a random runner, next to a SyncVectorEnv too.
    """
    import importlib.metadata
    import warnings

    import gymnasium
    import torch
    from torchrl.envs import GymWrapper, PettingZooWrapper, SerialEnv

    from palaestra import zoo
    from palaestra.adapters.torchrl import TorchRLEnv

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    few, decisions = 16, 50
    alone = lambda: gymnasium.make(GAME, opponent="random")  # noqa: E731
    synchronous = gymnasium.vector.SyncVectorEnv([alone] * few, autoreset_mode=gymnasium.vector.AutoresetMode.SAME_STEP)
    envs = {
        "all": TorchRLEnv(GAME, LANES, state=False),  # the wrappers show none either
        "red": TorchRLEnv(GAME, LANES, state=False, opponents={"blue": "random"}),
        "PettingZooWrapper": SerialEnv(few, lambda: PettingZooWrapper(zoo.team_tag_v0.parallel_env())),
        "GymWrapper": SerialEnv(few, lambda: GymWrapper(alone())),
        "GymWrapper of SyncVectorEnv": GymWrapper(synchronous),
    }
    players: dict[str, tuple[int, Callable[[], Any]]] = {
        name: (env.batch_size[0] * decisions, lambda env=env: env.rollout(decisions, break_when_any_done=False))
        for name, env in envs.items()
    }
    found = rates(players)
    mine = {"PettingZooWrapper": "all", "GymWrapper": "red", "GymWrapper of SyncVectorEnv": "red"}
    version = importlib.metadata.version("torchrl")
    return "\n".join(
        f"| torchrl, {ours} | TorchRL {version} {name} {few} | {found[ours]:,.0f} | {found[name]:,.0f} | "
        f"{found[ours] / found[name]:,.0f}x"
        for name, ours in mine.items()
    )


def gymnasium() -> str:
    """Lanes instead of processes: `gymnasium.make_vec` natively, and its other two modes, in steps a second (wall)."""
    from gymnasium import make_vec

    lines = []
    for id in (GAME, "palaestra/GridSoccer-v0", "palaestra/UcavDogfight-v2"):
        found = {}
        for mode, lanes in (("vector_entry_point", 16), ("sync", 16), ("async", 16), ("async", 2)):
            envs = make_vec(f"palaestra:{id}", num_envs=lanes, vectorization_mode=mode)
            envs.reset(seed=0)
            actions = envs.action_space.sample()
            envs.step(actions)
            best = 0.0
            for _ in range(ROUNDS):
                count, started = 0, time.perf_counter()
                while time.perf_counter() - started < 0.5:
                    envs.step(actions)
                    count += 1
                best = max(best, count * lanes / (time.perf_counter() - started))
            envs.close()
            found[mode, lanes] = best
        lines.append(f"| {id} | " + " | ".join(f"{rate:,.0f}" for rate in found.values()) + " |")
    return "\n".join(["| id | native 16 | sync 16 | async 16 | async 2 |", "|---|---|---|---|---|", *lines])


if __name__ == "__main__":
    for library in sys.argv[1:]:
        print({"gymnasium": gymnasium, "rllib": rllib, "rows": rows, "torchrl": torchrl}[library]())
