"""Copy: both agents are to play a number that the first alone sees.

Each decision has a new number g, uniform in [-1, 1]; the reward is 1 - (abs(a1 - g) + abs(a2 - g)) / 2. Without
communication the second agent plays 0 at best, which gives 0.75 a decision; with it both can have 1. Matches are
truncated, not ended.
"""

from __future__ import annotations

import palaestra
from palaestra.game import Continuous, Field, Game, Role, uniform

DECISIONS = 10
BLIND, BEST = 0.75, 1.0
"""Reward of a decision of the best play without communication, and with it."""


def reset(s, world):
    """Draws the first number."""
    s.g = uniform(s, -1.0, 1.0)


def step(s, world, actions, rewards, scratch):
    """Pays both for being near, and draws the next number."""
    missed = 0.0
    for k in range(2):
        missed += abs(actions.copier[k].number - s.g)
    for k in range(2):
        rewards[k] = 1.0 - 0.5 * missed
    s.g = uniform(s, -1.0, 1.0)
    return False


def observe(s, world, observations, scratch):
    """Shows it to the first."""
    observations.copier[0].g = s.g


def game() -> Game:
    """The rules."""
    return Game(
        name="Copy",
        roles=(Role("copier", ("team_0", "team_1"), (Field("g", (), -1, 1),), (Continuous("number"),)),),
        state=(("g", "f8"),),
        reset=reset,
        step=step,
        observe=observe,
        reward="team",
        horizon=DECISIONS,
        determinism="cross-platform",
    )


palaestra.register("tests/Copy-v0", game, about="two agents play a number that one of them sees")
