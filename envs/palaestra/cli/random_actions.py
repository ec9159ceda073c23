"""Random moves for anything that can be stepped, drawn before the clock starts.

This module imports nothing of palaestra and uses public names only: processes that run another version of palaestra
move its environments with this code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

POOL = 64
"""Batches of actions, drawn before: with fewer the branch predictor would learn them."""


def mover(sim: Any, slots: Sequence[int] | None = None, seed: int = 0) -> Callable[[], None]:
    """A function that writes random actions into ``sim.actions``, another batch in each call.

    Every number is uniform within its own range; what is illegal in a match may be among them.

    Args:
        sim: A simulation of any game.
        slots: Slots to move, numbered over all roles; all if None.
        seed: Of the draws. Two simulations of one layout get the same actions.
    """
    rng = np.random.default_rng(seed)
    targets: list[tuple[np.ndarray, Any, list[np.ndarray]]] = []
    first = 0
    for role in sim.game.roles:
        block = sim.actions[role.name] if isinstance(sim.actions, dict) else sim.actions
        count = block.shape[1]
        own = range(count) if slots is None else [slot - first for slot in slots if first <= slot < first + count]
        first += count
        if len(own) == 0:
            continue
        is_run = own[-1] - own[0] == len(own) - 1
        rows: Any = slice(own[0], own[-1] + 1) if is_run else np.array(own)
        pool = [np.ascontiguousarray(_random_block(role, block, rng)[:, rows]) for _ in range(POOL)]
        targets.append((block, (slice(None), rows), pool))
    moved = [0]

    def move() -> None:
        number = moved[0] % POOL
        moved[0] += 1
        for block, where, pool in targets:
            block[where] = pool[number]

    return move


def batch_call(sim: Any, slots: Sequence[int] | None = None) -> Callable[[], None]:
    """One decision of a batch, the agents in ``slots`` (all if None) by random actions. Starts the matches."""
    move, step = mover(sim, slots), sim.step
    sim.reset(seed=0)

    def call() -> None:
        move()
        step()

    return call


def samples(space: Any, seed: int = 0) -> list[Any]:
    """A pool of actions of a Gymnasium space."""
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


def parallel_episodes(env: Any) -> Callable[[], None]:
    """A step of a PettingZoo ParallelEnv by the next of its agents' actions, and a reset after the end of a match."""
    actions = {agent: samples(env.action_space(agent), seed) for seed, agent in enumerate(env.possible_agents)}
    env.reset(seed=0)
    step, reset, count = env.step, env.reset, [0]

    def call() -> None:
        number = count[0] % POOL
        count[0] += 1
        step({agent: actions[agent][number] for agent in env.agents})
        if not env.agents:
            reset()

    return call


def _random_block(role: Any, block: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Random actions of one role, of the shape and type of its block."""
    drawn = np.zeros(block.shape, block.dtype)
    if block.dtype.names is not None:
        for field in role.action:
            drawn[field.name] = _draw(field, drawn[field.name].shape, rng)
        return drawn
    lanes, agents = block.shape[:2]
    columns = drawn.reshape(lanes, agents, -1)
    start = 0
    for field in role.action:
        values = _draw(field, (lanes, agents, *field.shape), rng)
        columns[:, :, start : start + field.size] = values.reshape(lanes, agents, field.size)
        start += field.size
    return drawn


def _draw(field: Any, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Uniform values of an action field: one of ``n``, or a real number between ``low`` and ``high``."""
    if hasattr(field, "n"):
        return rng.integers(field.n, size=shape)
    return rng.uniform(field.low, field.high, shape)
