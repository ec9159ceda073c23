"""Positions of soccer: symmetric positions have equal outcomes, and Littman's game has the values of its page."""

import itertools
from typing import Any

import numpy as np
import pytest
from games.pitch import in_turn
from games.play import simulation

from palaestra.core.rng import stream_before
from palaestra.games.teams import soccer

GAMES: dict[str, Any] = {
    "singles": soccer.game(),
    "singles in turn": in_turn(),
    "pairs": soccer.game(3, 3, 2),
    "pairs in turn": in_turn(3, 3, 2),
}
DISCOUNT = 0.9


def joint(players: int) -> np.ndarray:
    """All joint actions of so many players, int64 [J, players]."""
    return np.array(list(itertools.product(range(5), repeat=players)))


def after(game: Any, numbers: np.ndarray, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What follows positions [P] under joint actions [J, A] and every outcome K of the draw: int64 [P, J, K].

    Returns:
        The next positions (-1 at the end of the match) and red's rewards.
    """
    shape = (len(numbers), len(actions), game.enumeration.chance_outcomes)
    position, action, outcome = (index.ravel() for index in np.indices(shape))
    records: Any = np.zeros(len(position), game.state_dtype)
    game.enumeration.write_state(records, numbers[position])
    sim: Any = simulation(game, len(position), compiled=True, autoreset_mode="off")
    sim.reset(seed=0)
    for name in ("row", "column", "holder", "turn", "acting"):
        sim.states[name] = records[name]
    sim.states["rng"] = stream_before((outcome + 0.5) / shape[2])
    sim.step(actions[action])
    following = np.where(sim.terminated, -1, game.enumeration.state_index(sim.states))
    return following.reshape(shape), sim.rewards[:, 0].astype(np.int64).reshape(shape)


def canonical(game: Any, following: np.ndarray) -> np.ndarray:
    """One number for positions that are alike; the end stays -1."""
    numbers = game.enumeration.canonical(np.maximum(following, 0).ravel())
    return np.where(following < 0, -1, numbers.reshape(following.shape))


@pytest.mark.check
@pytest.mark.parametrize("game", GAMES.values(), ids=GAMES)
def test_positions_that_are_alike_have_equal_outcomes(game: Any):
    some = np.random.default_rng(0).integers(game.enumeration.positions, size=6)
    alike = game.enumeration.canonical(some)
    assert (alike != some).sum() > 1
    for number, same in zip(some, alike, strict=True):
        outcomes = []
        for start in (number, same):
            following, reward = after(game, np.array([start]), joint(len(game.agents)))
            outcomes.append(sorted(zip(canonical(game, following).ravel(), reward.ravel(), strict=True)))
        assert outcomes[0] == outcomes[1]


@pytest.fixture(scope="module")
def littman() -> tuple[np.ndarray, np.ndarray]:
    """Red's best certain value without mixing, and blue's, of all 760 positions with a discount factor of 0.9."""
    game = GAMES["singles"]
    following, reward = after(game, np.arange(760), joint(2))
    values = []
    for pure in (lambda q: q.min(2).max(1), lambda q: q.max(1).min(1)):
        value = np.zeros(760)
        for _ in range(200):
            ahead = np.where(following < 0, 0.0, DISCOUNT * value[following])
            value = pure((reward + ahead).mean(2).reshape(760, 5, 5))
        values.append(value)
    return values[0], values[1]


def test_without_mixing_the_two_sides_of_littmans_game_guarantee_different_values(littman: tuple):
    maximin, minimax = littman
    gap = minimax - maximin
    assert (gap > -1e-9).all()
    assert (gap > 1e-9).sum() == 324
    np.testing.assert_allclose([gap.mean(), gap.max()], [0.09770680, 0.405], atol=1e-8)


def test_the_side_with_the_ball_at_kick_off_can_guarantee_zero_at_most_without_mixing(littman: tuple):
    sim: Any = simulation(GAMES["singles"], 16)
    sim.reset(seed=0)
    number = GAMES["singles"].enumeration.state_index(sim.states)
    red = sim.states["holder"] == 0
    maximin, minimax = littman
    np.testing.assert_allclose(maximin[number], np.where(red, 0.0, -0.295245), atol=1e-9)
    np.testing.assert_allclose(minimax[number], np.where(red, 0.295245, 0.0), atol=1e-9)


@pytest.mark.check
def test_alternating_two_against_two_is_worth_playing():
    """With a mouth that two defenders can stand in, every kick-off would be worth nothing."""
    game = GAMES["pairs in turn"]
    numbers = np.unique(game.enumeration.canonical(np.arange(game.enumeration.positions)))
    pairs = joint(2)
    following, reward = after(game, numbers, np.concatenate([pairs, pairs], 1))  # only the team to move moves
    number = np.searchsorted(numbers, canonical(game, following))
    value = np.zeros(len(numbers))
    for _ in range(150):
        q = (reward + np.where(following < 0, 0.0, DISCOUNT * value[number])).mean(2)
        value = np.where(numbers % 2 == 0, q.max(1), q.min(1))
    sim: Any = simulation(game, 64)
    sim.reset(seed=0)
    start = value[np.searchsorted(numbers, game.enumeration.canonical(game.enumeration.state_index(sim.states)))]
    holds_and_moves = np.where(sim.states["holder"] // 2 == sim.states["turn"], 1 - 2 * sim.states["turn"], 0)
    np.testing.assert_allclose(start, 0.247542 * holds_and_moves, atol=1e-5)
