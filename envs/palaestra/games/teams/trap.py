"""TeamTrap: two agents choose a number each, once; a wide hill of 0.6 hides a narrow peak of 1.

## Description

The smallest game that asks whether a policy can be multimodal. Two agents choose a place each on [-1, 1], at the same
time and only once. The pair of places is worth ::

    max(0.6 exp(-h^2 / (2 0.4^2)), exp(-p^2 / (2 width^2)))

where h and p are its distances from the top of the hill, (-0.5, -0.5), and from the peak, (0.6, 0.6). The best pair is
the peak, for each `width`: 1. The hill's top, 0.6, is the only other local maximum, and the way uphill from (0, 0)
leads there: a policy with one mode has to give up the hill before it tries the peak. If one agent chooses the peak and
the other the hill, both are paid 0.014.

The scripts: ``hill`` and ``peak`` choose the two tops.

## Action Space

<!-- table: action -->

## Observation Space

Nothing is seen but who one is.

<!-- table: observation -->

## Rewards

Both agents get what the pair is worth.

## Starting State

Always the same.

## Episode End

By rule after the decision (``over``). The winner is the team if it is paid more than 0.6, which no place on the hill is
worth: within 1.0108 `width` of the peak. With the default that is a share of pi `width`^2 ln(5/3) / 2 = 3.2 % of all
pairs, so uniform play wins 3.2 % of the matches, ``peak`` all and ``hill`` none.

## Arguments

<!-- table: parameters -->

## Version History

* v0: first version.
"""

from __future__ import annotations

import math
from typing import Any

from palaestra.game import Continuous, Field, Game, Parameter, Role

AGENTS = 2
HILL, HILL_AT, HILL_WIDTH = 0.6, -0.5, 0.4
"""Worth of the hill's top, the place of both agents there, and its width."""
PEAK_AT = 0.6
OVER = 2
"""Number of the end reason."""
PARAMETERS = (Parameter("width", 0.2, 0.02, 0.39, "1", "of the peak, as a standard deviation"),)


def worth(first, second, width):
    """What a pair of places is worth."""
    hill = square_distance(first, second, HILL_AT) / (HILL_WIDTH * HILL_WIDTH)
    peak = square_distance(first, second, PEAK_AT) / (width * width)
    return max(HILL * math.exp(-0.5 * hill), math.exp(-0.5 * peak))


def square_distance(first, second, at):
    """Square of the distance of a pair from the point where both are at the same place."""
    return (first - at) * (first - at) + (second - at) * (second - at)


def reset(s, world):
    """Nothing is drawn."""
    s.paid = 0.0


def step(s, world, actions, rewards, scratch):
    """The one decision."""
    for i in range(AGENTS):
        s.place[i] = actions.agent[i].place
    s.paid = worth(s.place[0], s.place[1], s.parameters.width)
    for i in range(AGENTS):
        rewards[i] = s.paid
    s.info.end_reason = OVER
    if s.paid > HILL:
        s.info.winner = 0
    return True


def observe(s, world, observations, scratch):
    """Who one is."""
    for i in range(AGENTS):
        observations.agent[i].is_second = i


def script(s, world, slot, which, actions, scratch):
    """0 ``hill``, 1 ``peak``: the own place at a top."""
    actions.agent[slot].place = PEAK_AT if which == 1 else HILL_AT


def game() -> Game:
    """The rules of `palaestra/TeamTrap-v0`."""
    seen: tuple[Any, ...] = (Field("is_second", (), 0, 1, about="it is the second agent"),)
    place = Continuous("place", (), -1.0, 1.0, "1", "what the agent chooses")
    return Game(
        name="TeamTrap",
        roles=(Role("agent", tuple(f"agent_{k}" for k in range(AGENTS)), seen, (place,)),),
        state=(("place", "f8", (AGENTS,)), ("paid", "f8")),
        reset=reset,
        step=step,
        observe=observe,
        script=script,
        scripts=("hill", "peak"),
        default_opponent="peak",
        parameters=PARAMETERS,
        horizon=1,
        end_reasons=("over",),
        render="palaestra.games.teams.render_matrix:draw_trap",
        render_fps=1.0,
    )
