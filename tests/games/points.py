"""What tests of the particle games do with their matches: start them, place bodies, mirror them."""

from __future__ import annotations

from typing import Any

import numpy as np
from games.play import random_actions, simulation

from palaestra.game import Game

STAY, LEFT, RIGHT, DOWN, UP = range(5)


def started(game: Game, lanes: int = 1, seed: int = 0, **parameters: float) -> Any:
    """Matches that wait when they are over."""
    sim = simulation(game, lanes, autoreset_mode="off", parameters=parameters)
    sim.reset(seed=seed)
    return sim


def placed(game: Game, positions: Any, velocities: Any = None, **parameters: Any) -> Any:
    """One match whose bodies are there."""
    sim = started(game, **parameters)
    sim.states["position_m"] = positions
    sim.states["velocity_mps"] = 0.0 if velocities is None else velocities
    return sim


def played_out(game: Game, lanes: int, seed: int = 0, compiled: bool | None = None, **opponents: str) -> Any:
    """Matches between scripts, to their ends; returns of the agents [N, A] as ``returns``."""
    sim: Any = simulation(game, lanes, compiled=compiled, autoreset_mode="off", opponents=opponents)
    sim.reset(seed=seed)
    sim.returns = np.zeros(sim.rewards.shape)
    while not (sim.terminated | sim.truncated).all():
        sim.step()
        sim.returns += sim.rewards
    return sim


def author_fields(game: Game) -> list[str]:
    """Fields of the match record that the rules write."""
    return ["alive", "acting", *(name for name, *_ in game.state)]


def assert_mirror_goes_on_as_mirror(game: Game, decisions: int = 25, lanes: int = 16) -> None:
    """Plays random matches next to their mirrors, which must stay their mirrors bitwise (except for the sign of 0)."""
    assert game.mirror is not None
    sim, twin = started(game, lanes, seed=5), started(game, lanes, seed=5)
    rng, order = np.random.default_rng(5), _slots_after_mirror(game)
    _copy(twin.states, sim.states, game)
    game.mirror(twin.states, twin.buffers.action_records)
    for number in range(decisions):
        sim.step(random_actions(sim, rng))
        twin.buffers.action_words[...] = sim.buffers.action_words
        expected = sim.states.copy()
        game.mirror(expected, twin.buffers.action_records)
        twin.step()
        for name in author_fields(game):
            np.testing.assert_array_equal(twin.states[name], expected[name], f"{name}, decision {number}")
        np.testing.assert_array_equal(twin.rewards, sim.rewards[:, order])
        np.testing.assert_array_equal(twin.terminated, sim.terminated)
        winners = sim.info["winner"]
        swapped = np.where(winners >= 0, 1 - winners, winners) if game.symmetric_teams else winners
        np.testing.assert_array_equal(twin.info["winner"], swapped)


def _slots_after_mirror(game: Game) -> list[int]:
    if not game.symmetric_teams:
        return list(range(len(game.agents)))
    first, second = game.teams.values()
    return [*second, *first]


def _copy(to: Any, records: np.ndarray, game: Game) -> None:
    for name in author_fields(game):
        to[name] = records[name]
