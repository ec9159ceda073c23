"""Matches from both sides in turn, each pair of them from the same seed."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env

import palaestra
from palaestra.wrappers import SwapSides

DUEL, RAID = "swap/Duel-v0", "swap/Raid-v0"
palaestra.register(DUEL, "testing.broken_games:duel", family="test")
palaestra.register(RAID, "games.two_team:game", family="test")


def play(env: Any, steps: int = 5) -> list[Any]:
    results = []
    for number in range(steps):
        observation, reward, terminated, truncated, _ = env.step(np.array([number % 2 * 3, 0]))
        results.append((observation.tolist(), reward, terminated, truncated))
        if terminated or truncated:
            break
    return results


def single(control: str, seed: int) -> list[Any]:
    env = gymnasium.make(DUEL, control=control, opponent="walker").unwrapped
    env.reset(seed=seed)
    return play(env)


def test_a_seed_is_played_from_one_side_and_then_from_the_other():
    env = SwapSides(DUEL, opponent="walker")
    for seed, sides in ((4, ("red", "blue")), (5, ("blue", "red"))):
        assert env.reset(seed=seed)[1]["side"] == sides[0]
        assert play(env) == single(sides[0], seed)
        assert env.reset()[1]["side"] == sides[1]
        assert play(env) == single(sides[1], seed)


def test_sides_alternate_and_the_random_streams_continue():
    env, twin = SwapSides(DUEL), SwapSides(DUEL)
    matches = []
    for one in (env, twin):
        one.reset(seed=0)
        seen = [(one.side, play(one))]
        for _ in range(5):
            one.reset()
            seen.append((one.side, play(one)))
        matches.append(seen)
    assert matches[0] == matches[1]
    assert [side for side, _ in matches[0]] == ["red", "blue"] * 3
    assert matches[0][0][1] != matches[0][2][1], "another match, not the seed's again"


def test_a_side_can_be_chosen():
    env = SwapSides(DUEL)
    assert env.reset(seed=0, options={"side": "blue"})[1]["side"] == "blue"
    assert env.reset()[1]["side"] == "red"
    assert env.reset(options={"side": "red"})[1]["side"] == "red"
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"options": {"side": "green"}}, "no side 'green': choose from red, blue"),
        ({"options": {"sides": "red"}}, "reset: unknown option 'sides'"),
        ({"options": "red"}, "options must be a dict or None, got 'red'"),
        ({"seed": 1.5}, "seed must be an integer"),
    ]
    for words, message in wrong:
        with pytest.raises(ValueError, match=message):
            env.reset(**words)
    assert env.reset()[1]["side"] == "blue", "a refused reset is no turn"


def test_gymnasium_takes_it():
    env = SwapSides(DUEL)
    check_env(env, skip_render_check=True)
    assert env.action_masks().shape == (8,)
    env.close()


def test_other_peoples_environments_say_what_their_sides_are():
    made = []

    def make(control: str) -> Any:
        made.append(control)
        return gymnasium.make("CartPole-v1")

    env = SwapSides(make, ("left", "right"))
    assert made == ["left", "right"]
    assert env.reset(seed=1)[1]["side"] == "right"
    with pytest.raises(ValueError, match="give the names of the sides"):
        SwapSides(make)


def test_sides_that_cannot_be_swapped_are_refused():
    with pytest.raises(ValueError, match=r"the teams of swap/Raid-v0 \(red, blue\) are not two alike"):
        SwapSides(RAID, observation="dict")
    with pytest.raises(ValueError, match=r"CartPole-v0 .* are not two alike"):
        SwapSides("palaestra/CartPole-v0")
    with pytest.raises(TypeError, match="control= makes no sense here"):
        SwapSides(DUEL, control="red")

    def unlike(control: str) -> Any:
        env = gymnasium.make("CartPole-v1")
        env.action_space = spaces.Discrete(2 if control == "left" else 3)
        return env

    with pytest.raises(ValueError, match="left and right do not see and do the same"):
        SwapSides(unlike, ("left", "right"))
