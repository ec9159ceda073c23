"""Every face of an environment as something to time, with the same opponents and fresh actions in every call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

from palaestra import registry
from palaestra.cli.measure import Subject

POOL = 64
"""Batches of actions, drawn before: fewer and the branch predictor would learn them."""
CALIBRATION = "palaestra/CartPole-v0"
CALIBRATION_LANES = 1024


def faces(id: str, num_envs: int, opponent: str | None = None, **keywords: Any) -> list[Subject]:
    """All faces that can have so many lanes.

    Args:
        id: Registered id.
        num_envs: Lanes.
        opponent: Who plays the teams that are not measured; the game's default if None.
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


def calibration() -> Subject:
    """The yardstick of all machines: a compiled game that everybody knows."""
    return batch(CALIBRATION, CALIBRATION_LANES, None, name="calibration")


def batch(id: str, num_envs: int, opponent: str | None = None, *, name: str = "batch", **keywords: Any) -> Subject:
    """The simulation itself, moved as a learner moves it: actions of one team written, one step."""
    sim = registry.make_batch(id, num_envs, **keywords)
    control, *others = sim.game.teams
    for team in others:
        sim.set_opponent(team, opponent or sim.game.default_opponent)
    sim.reset(seed=0)
    rng = np.random.default_rng(0)
    words = sim.action_table.words
    own = np.flatnonzero(np.isin(words["agent"], sim.game.teams[control]))
    columns = own if len(own) < len(words) else slice(None)
    pool = [_random_words(words, num_envs, rng)[:, columns].copy() for _ in range(POOL)]
    memory, step, count = sim.buffers.action_words, sim.step, [0]

    def call() -> None:
        memory[:, columns] = pool[count[0] % POOL]
        count[0] += 1
        step()

    return Subject(name, call, num_envs * len(sim.game.agents), sim.close)


def vector(id: str, num_envs: int, opponent: str | None = None, *, copy: bool, **keywords: Any) -> Subject:
    """Gymnasium's VectorEnv."""
    env: Any = registry.make_vec(id, num_envs, copy=copy, **_against(opponent), **keywords)
    name = "vector, copies" if copy else "vector, no copies"
    return Subject(name, stepper(env, _samples(env.action_space)), num_envs * len(env.sim.game.agents), env.close)


def single(id: str, opponent: str | None = None, **keywords: Any) -> Subject:
    """``gymnasium.make`` with its default wrappers."""
    env = gymnasium.make(id, **_against(opponent), **keywords)
    agents = len(env.unwrapped.sim.game.agents)  # type: ignore[attr-defined]
    return Subject("gymnasium.make", episodes(env, _samples(env.action_space)), agents, env.close)


def parallel(id: str, opponent: str | None = None, **keywords: Any) -> Subject:
    """PettingZoo's ParallelEnv, the first team in the user's hands."""
    game, _ = registry.make_game(id, **keywords)
    _, *others = game.teams
    opponents = dict.fromkeys(others, opponent or game.default_opponent)
    env = registry.make_parallel(id, **({"opponents": opponents} if others else {}), **keywords)
    env.reset(seed=0)
    rng = np.random.default_rng(0)
    spaces = {agent: _samples(env.action_space(agent), int(rng.integers(2**31))) for agent in env.possible_agents}
    count = [0]

    def call() -> None:
        count[0] += 1
        if not env.agents:
            env.reset()
        else:
            env.step({agent: spaces[agent][count[0] % POOL] for agent in env.agents})

    return Subject("PettingZoo", call, len(game.agents), env.close)


def peer(name: str, env: gymnasium.Env | gymnasium.vector.VectorEnv, size: float) -> Subject:
    """Somebody else's environment, moved in the same way."""
    samples = _samples(env.action_space)
    is_vector = isinstance(env, gymnasium.vector.VectorEnv)
    return Subject(name, stepper(env, samples) if is_vector else episodes(env, samples), size, env.close)


def _against(opponent: str | None) -> dict[str, str]:
    return {} if opponent is None else {"opponent": opponent}


def _samples(space: gymnasium.Space, seed: int = 0) -> list[Any]:
    space.seed(seed)
    return [space.sample() for _ in range(POOL)]


def stepper(env: Any, actions: list[Any]) -> Callable[[], None]:
    """A step of an environment that resets by itself, by the next of the actions."""
    env.reset(seed=0)
    step, count = env.step, [0]

    def call() -> None:
        step(actions[count[0] % POOL])
        count[0] += 1

    return call


def episodes(env: Any, actions: list[Any]) -> Callable[[], None]:
    """A step of a single environment by the next of the actions, and a reset after the last of a match."""
    env.reset(seed=0)
    step, reset, count = env.step, env.reset, [0]

    def call() -> None:
        _, _, terminated, truncated, _ = step(actions[count[0] % POOL])
        count[0] += 1
        if terminated or truncated:
            reset()

    return call


def _random_words(words: np.ndarray, num_envs: int, rng: np.random.Generator) -> np.ndarray:
    """Uniform actions as a simulation holds them, int64 ``[N, W]``."""
    rows = np.empty((num_envs, len(words)), np.int64)
    for k, word in enumerate(words):
        if word["n"] > 0:
            rows[:, k] = rng.integers(word["n"], size=num_envs)
        else:
            rows[:, k] = rng.uniform(word["low"], word["high"], num_envs).view(np.int64)
    return rows
