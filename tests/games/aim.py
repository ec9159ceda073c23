"""Aim: two agents of different roles each hit what they see by real numbers of different ranges.

An agent sees a goal for each of its numbers, scaled so that the range of the number is [-1, 1], and pays the square of
its distance to each goal. `game` puts both in one team, or each in its own.
"""

from __future__ import annotations

import palaestra
from palaestra.game import Continuous, Field, Game, Role, uniform

LOW, HIGH = (0.0, -10.0, 20.0), (4.0, -6.0, 21.0)
"""Ranges of the numbers: two of the archer, one of the gunner."""


def draw(s):
    """New goals, away from the bounds."""
    for k in range(3):
        s.goal[k] = uniform(s, -0.8, 0.8)


def reset(s, world):
    """Draws the first goals."""
    draw(s)


def step(s, world, actions, rewards, scratch):
    """Pays what was missed."""
    archer, gunner = actions.archer[0], actions.gunner[0]
    first = (archer.place[0] - 2.0) / 2.0 - s.goal[0]
    second = (archer.place[1] + 8.0) / 2.0 - s.goal[1]
    third = (gunner.height - 20.5) / 0.5 - s.goal[2]
    rewards[0], rewards[1] = -(first * first) - second * second, -third * third
    draw(s)
    return False


def observe(s, world, observations, scratch):
    """Shows each its own goals."""
    for k in range(2):
        observations.archer[0].goal[k] = s.goal[k]
    observations.gunner[0].goal = s.goal[2]


def game(archer: str = "team_0", gunner: str = "team_1") -> Game:
    """The rules, with the names of the agents."""
    places = Continuous("place", (2,), LOW[:2], HIGH[:2], noop=LOW[:2])
    height = Continuous("height", (), LOW[2], HIGH[2], noop=LOW[2])
    return Game(
        name="Aim",
        roles=(
            Role("archer", (archer,), (Field("goal", (2,), -1, 1),), (places,)),
            Role("gunner", (gunner,), (Field("goal", (), -1, 1),), (height,)),
        ),
        state=(("goal", "f8", (3,)),),
        reset=reset,
        step=step,
        observe=observe,
        reward="agent",
        horizon=5,
        determinism="cross-platform",
    )


palaestra.register("tests/Aim-v0", game, about="two agents hit goals by real numbers")
