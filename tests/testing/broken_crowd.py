"""A small sound game with a capacity, a table, lists of candidates and truncation reasons, to be broken by number."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from testing.broken_games import (
    BEYOND_GOALS,
    FAULT,
    HIDDEN_ALIVE,
    HIDDEN_PAID,
    INFO_BEYOND,
    OFFERED_TWICE,
    ONE_WALKER_PAID,
    TABLE_BEYOND,
    TERMINATED_AS_LOST,
    TOO_FAST,
    TOO_MANY,
    TRUNCATED_AS_MET,
)

from palaestra.game import TERMINATED, TRUNCATED, Choice, Field, Game, Role, Table, integer, offer

MOST, GOALS, ROOM = 5, 10, 3
MET, LOST = 2, 3


class World(NamedTuple):
    """How many walkers there are."""

    walkers: int


def reset(s, world):
    for k in range(world.walkers):
        s.place[k] = integer(s, GOALS)


def step(s, world, actions, rewards, scratch):
    fault = s.parameters.fault
    for k in range(world.walkers):
        s.speed[k] = actions.walker[k].goal - s.place[k] if actions.walker[k].goal > 0 else 0
        s.place[k] += s.speed[k]
    if fault == HIDDEN_ALIVE and s.steps == 3:
        s.alive[MOST - 1] = 1
    if fault == HIDDEN_PAID and s.steps == 3:
        rewards[MOST - 1] = 1.0
    if fault == ONE_WALKER_PAID:
        rewards[1] = 1.0
    s.info.shares[1] = 1.0 if fault != INFO_BEYOND or s.steps < 4 else 1.5
    draw = integer(s, 24)
    if draw == 0:
        s.info.end_reason = MET if fault != TERMINATED_AS_LOST else LOST
        return TERMINATED
    if draw == 1:
        s.info.end_reason = LOST if fault != TRUNCATED_AS_MET else MET
        return TRUNCATED
    return 0


def observe(s, world, observations, scratch):
    fault = s.parameters.fault
    for k in range(world.walkers):
        seen = observations.walker[k]
        seen.speed = s.speed[k] if fault != TOO_FAST or s.steps != 4 else 3.0
        for other in range(world.walkers):
            seen.walkers[other].mine = 1.0 if other == k else 0.0
            seen.walkers[other].place = s.place[other]
        if fault == TABLE_BEYOND and s.steps == 4:
            seen.walkers[1].place = GOALS


def legal(s, world, mask):
    fault = s.parameters.fault
    for k in range(world.walkers):
        goals = mask.walker[k].goal
        offer(goals, 0)
        for goal in range(max(s.place[k] - 1, 1), min(s.place[k] + 2, GOALS)):
            if goal != s.place[k] or fault == TOO_MANY:
                offer(goals, goal)
        if fault == BEYOND_GOALS and s.place[k] == GOALS - 1:
            offer(goals, GOALS)
        if fault == OFFERED_TWICE and s.place[k] == GOALS - 1:
            offer(goals, 0)


def crowd() -> Game:
    """Three of at most five walkers on a line."""
    observation = (
        Field("speed", (), -np.inf, np.inf, "1", "in the last decision", checked=(-1.0, 1.0)),
        Table(
            "walkers",
            3,
            (Field("mine", (), 0, 1, "1", "1 for myself"), Field("place", (), 0, GOALS - 1, "1", "on the line")),
            "all walkers",
            capacity=MOST,
        ),
    )
    action = (Choice("goal", GOALS, (), "0 stay", candidates=ROOM),)
    return Game(
        name="Crowd",
        roles=(Role("walker", ("red_0", "red_1", "blue_0"), observation, action, capacity=MOST),),
        state=(("place", "i8", (MOST,)), ("speed", "i8", (MOST,))),
        reset=reset,
        step=step,
        observe=observe,
        legal=legal,
        parameters=(FAULT,),
        horizon=40,
        info=(Field("shares", (2,), 0, 1),),
        end_reasons=("met",),
        truncation_reasons=("lost",),
        world=World(3),
        determinism="cross-platform",
    )
