"""Reach: a point walks to a goal; each decision costs 1 unless it is there. Shown as a table of goals, too.

A decision moves the point by at most `STEP_M` along each axis. The representation ``"goal"`` has the fields that
hindsight replay reads: what is observed, the goal that is achieved, and the one that is desired.
"""

from __future__ import annotations

import numpy as np

import palaestra
from palaestra.game import Continuous, Field, Game, Representation, Role, uniform

NEAR_M, STEP_M = 0.2, 0.25
GOAL = (
    Field("observation", (2,), -1, 1, "m", "where the point is"),
    Field("achieved_goal", (2,), -1, 1, "m", "where the point is"),
    Field("desired_goal", (2,), -1, 1, "m", "where it should be"),
)


def reset(s, world):
    """Draws the point and the goal."""
    for k in range(2):
        s.point[k] = uniform(s, -1.0, 1.0)
        s.goal[k] = uniform(s, -1.0, 1.0)


def step(s, world, actions, rewards, scratch):
    """Moves the point."""
    square = 0.0
    for k in range(2):
        s.point[k] = min(max(s.point[k] + STEP_M * actions.walker[0].move[k], -1.0), 1.0)
        square += (s.point[k] - s.goal[k]) ** 2
    rewards[0] = 0.0 if square < NEAR_M * NEAR_M else -1.0
    return False


def observe(s, world, observations, scratch):
    """Shows both."""
    walker = observations.walker[0]
    for k in range(2):
        walker.point[k], walker.goal[k] = s.point[k], s.goal[k]


def observe_goal(s, world, observations, scratch):
    """The same as a table of goals."""
    walker = observations.walker[0]
    for k in range(2):
        walker.observation[k], walker.achieved_goal[k], walker.desired_goal[k] = s.point[k], s.point[k], s.goal[k]


def goal_reward(achieved: np.ndarray, desired: np.ndarray, info: object) -> np.ndarray:
    """0 where the goal is near, else -1."""
    return np.where(((achieved - desired) ** 2).sum(-1) < NEAR_M**2, 0.0, -1.0)


def game() -> Game:
    """The rules."""
    fields = (Field("point", (2,), -1, 1, "m"), Field("goal", (2,), -1, 1, "m"))
    shown = Representation("points as goals", observe_goal, {"walker": GOAL}, default_form="dict")
    return Game(
        name="Reach",
        roles=(Role("walker", ("walker_0",), fields, (Continuous("move", (2,)),)),),
        state=(("point", "f8", (2,)), ("goal", "f8", (2,))),
        reset=reset,
        step=step,
        observe=observe,
        representations={"goal": shown},
        goal_reward=f"{__name__}:goal_reward",
        horizon=20,
        determinism="cross-platform",
    )


palaestra.register("tests/Reach-v0", game, about="a point walks to a goal")
