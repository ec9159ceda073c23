"""Two peaks: agents choose a number each, once; two choices are best.

The reward is exp(-d^2 / (2 0.2^2)), where d^2 is the sum over agents of the squared distances from 0.6, or that from
-0.6 if it is less: agents at different peaks are paid nothing. A normal distribution has one of the peaks, or both and
all between; see `learning.sparse_figures`.
"""

from __future__ import annotations

import math

import palaestra
from palaestra.game import Continuous, Field, Game, Role

PEAK, WIDTH = 0.6, 0.2
"""Distance of the peaks from 0, and their width."""


def reset(s, world):
    """Nothing is drawn."""
    s.paid = 0.0


def step(s, world, actions, rewards, scratch):
    """The one decision."""
    agents = len(s.alive)
    low, high = 0.0, 0.0
    for i in range(agents):
        place = actions.agent[i].place
        low += (place + PEAK) ** 2
        high += (place - PEAK) ** 2
    s.paid = math.exp(-0.5 * min(low, high) / WIDTH**2)
    for i in range(agents):
        rewards[i] = s.paid
    return True


def observe(s, world, observations, scratch):
    """Nothing but who one is."""
    for i in range(len(s.alive)):
        observations.agent[i].number = i


def game(agents: int = 1) -> Game:
    """The rules."""
    names = tuple(f"agent_{k}" for k in range(agents))
    seen = Field("number", (), 0, 1, about="who one is")
    return Game(
        name="TwoPeaks",
        roles=(Role("agent", names, (seen,), (Continuous("place", (), -1.0, 1.0, "1", "what it chooses"),)),),
        state=(("paid", "f8"),),
        reset=reset,
        step=step,
        observe=observe,
        reward="team",
        horizon=1,
    )


palaestra.register("benchmarks/TwoPeaks-v0", game, about="agents choose one of two peaks")
