"""Every face of an environment as something to time, with the same opponents and fresh actions in every call."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from palaestra import registry
from palaestra.cli.measure import Benchmark
from palaestra.cli.random_actions import POOL, batch_call, episodes, samples, stepper
from palaestra.game import Game

CALIBRATION = "palaestra/CartPole-v0"
CALIBRATION_LANES = 1024


def faces(id: str, num_envs: int, opponent: str | None = None, **keywords: Any) -> list[Benchmark]:
    """All faces that can have so many lanes.

    Args:
        id: Registered id.
        num_envs: Lanes.
        opponent: Player of the teams that are not measured; the game's default if None.
        **keywords: As for `palaestra.make_batch`.
    """
    made = [
        batch(id, num_envs, opponent, **keywords),
        vector(id, num_envs, opponent, copy=True, **keywords),
        vector(id, num_envs, opponent, copy=False, **keywords),
    ]
    alone = {name: value for name, value in keywords.items() if name not in ("threads", "workers")}
    if num_envs == 1 and alone == keywords:
        made += [single(id, opponent, **keywords), parallel(id, opponent, **keywords)]
    return made


def calibration() -> Benchmark:
    """The reference on all machines: a well-known compiled game."""
    return batch(CALIBRATION, CALIBRATION_LANES, None, name="calibration")


def batch(id: str, num_envs: int, opponent: str | None = None, *, name: str = "batch", **keywords: Any) -> Benchmark:
    """The simulation itself, moved as a learner moves it: actions of one team written, one step."""
    sim = registry.make_batch(id, num_envs, **keywords)
    control, *others = sim.game.teams
    for team in others:
        sim.set_opponent(team, sim.game.default_opponent if opponent is None else opponent)
    call = batch_call(sim, sim.game.teams[control])
    return Benchmark(name, call, num_envs * len(sim.game.agents), sim.close)


def vector(id: str, num_envs: int, opponent: str | None = None, *, copy: bool, **keywords: Any) -> Benchmark:
    """Gymnasium's VectorEnv."""
    env: Any = registry.make_vec(id, num_envs, copy=copy, **_against(opponent), **keywords)
    name = "vector, copies" if copy else "vector, no copies"
    return Benchmark(name, stepper(env, samples(env.action_space)), num_envs * len(env.sim.game.agents), env.close)


def single(id: str, opponent: str | None = None, **keywords: Any) -> Benchmark:
    """``gymnasium.make`` with its default wrappers."""
    env = gymnasium.make(id, **_against(opponent), **keywords)
    agents = len(env.unwrapped.sim.game.agents)  # type: ignore[attr-defined]
    return Benchmark("gymnasium.make", episodes(env, samples(env.action_space)), agents, env.close)


def parallel(id: str, opponent: str | None = None, **keywords: Any) -> Benchmark:
    """PettingZoo's ParallelEnv, the first team in the user's hands."""
    game, _ = registry.make_game(id, **keywords)
    _, *others = game.teams
    opponents = dict.fromkeys(others, game.default_opponent if opponent is None else opponent)
    env = registry.make_parallel(id, **({"opponents": opponents} if others else {}), **keywords)
    env.reset(seed=0)
    rng = np.random.default_rng(0)
    spaces = {agent: samples(env.action_space(agent), int(rng.integers(2**31))) for agent in env.possible_agents}
    count = [0]

    def call() -> None:
        count[0] += 1
        if not env.agents:
            env.reset()
        else:
            env.step({agent: spaces[agent][count[0] % POOL] for agent in env.agents})

    return Benchmark("PettingZoo", call, len(game.agents), env.close)


def peer(name: str, env: gymnasium.Env | gymnasium.vector.VectorEnv, size: float) -> Benchmark:
    """An environment of another package, moved in the same way."""
    actions = samples(env.action_space)
    is_vector = isinstance(env, gymnasium.vector.VectorEnv)
    return Benchmark(name, stepper(env, actions) if is_vector else episodes(env, actions), size, env.close)


def _against(opponent: str | None) -> dict[str, str]:
    return {} if opponent is None else {"opponent": opponent}


def is_kernel_game(game: Game) -> bool:
    """Whether the rules are compiled whole, so that no other engine moves the bodies."""
    return game.physics is None
