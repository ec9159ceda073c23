"""MetaPoint: a point walks to a goal on a half circle that only its rewards tell.

## Description

The Point-Robot of meta-learning: 50 tasks, a goal each, on the upper half of the circle of radius 1 around the origin.
No observation tells the goal; how the reward changes from one place to the next does. The goals are evenly spaced, and
their numbers are in a random order, so that neighbours in number are not neighbours on the circle. Forty-five tasks are
for training, five are held out; a match is one of those that `tasks` names, or the one that `task` names.

A match starts anywhere in the square around the half circle, not at the origin as in the published task: of players
that walk from the origin to their goals, the place alone tells the goal.

The scripts: ``expert`` knows the goal, and no player earns more. ``average`` walks to the mean of all goals, whatever
the task. Mean returns over all tasks: ``expert`` -6.7, ``average`` -16.2, uniform play -24.5. With the first as 100 and
the last as 0 in each task, ``average`` has 46, and the expert of one task has 29.5 in the others, from 1 at the ends of
the half circle to 45 in its middle (200 matches of each pair, ``python benchmarks/meta_claims.py``).

## Action Space

<!-- table: action -->

## Observation Space

<!-- table: observation -->

## Rewards

Minus the distance from the goal after the decision.

## Starting State

A place in the square [-1, 1] x [-1, 1], uniformly. With ``task=-1``, the default, the task is drawn uniformly among
those of `tasks`.

## Episode End

Truncated after 20 decisions. Nobody wins.

## Arguments

`task` may differ from lane to lane. A task that is not among those of `tasks` is refused. With ``hide_task=False`` the
info `task` tells the number, for those who evaluate.

<!-- table: options -->

<!-- table: parameters -->

## Version History

* v0: first version.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from palaestra.game import (
    TASK_OPTIONS,
    Continuous,
    Field,
    Game,
    Role,
    TaskWorld,
    begin_task,
    task_set,
    uniform,
    with_options,
)
from palaestra.games.meta.plane_tasks import TASKS, directions, held_out
from palaestra.kernels.scalars import clip

START_M = 1.0
"""Half the side of the square in which matches start."""
STEP_M = 0.1
"""Greatest way along an axis in a decision."""
SEEN_M = 3.0
"""Places beyond this, which nobody reaches in 20 decisions, are seen at this."""


class World(NamedTuple):
    """What the rules read.

    Attributes:
        tasks: Which are played.
        goals_m: Goal of each task, ``[50, 2]``.
        mean_m: Mean of all goals, ``[2]``.
    """

    tasks: TaskWorld
    goals_m: np.ndarray
    mean_m: np.ndarray


def reset(s, world):
    """Anywhere in the square."""
    begin_task(s, world)
    for axis in range(2):
        s.position_m[axis] = uniform(s, -START_M, START_M)
        s.goal_m[axis] = world.goals_m[s.task, axis]


def step(s, world, actions, rewards, scratch):
    """Moves, then pays for the distance."""
    for axis in range(2):
        s.position_m[axis] += STEP_M * actions.agent[0].move[axis]
    dx, dy = s.goal_m[0] - s.position_m[0], s.goal_m[1] - s.position_m[1]
    rewards[0] = -math.sqrt(dx * dx + dy * dy)
    return False


def observe(s, world, observations, scratch):
    """The place."""
    for axis in range(2):
        observations.agent[0].position_m[axis] = clip(s.position_m[axis], -SEEN_M, SEEN_M)


def script(s, world, slot, which, actions, scratch):
    """0 ``expert``, 1 ``average``: along each axis as far as it is to the own goal, or to the mean of all goals."""
    for axis in range(2):
        goal_m = s.goal_m[axis] if which == 0 else world.mean_m[axis]
        actions.agent[slot].move[axis] = clip((goal_m - s.position_m[axis]) / STEP_M, -1.0, 1.0)


@with_options(*TASK_OPTIONS)
def game(options: Any) -> Game:
    """The rules of `palaestra/MetaPoint-v0`."""
    tasks = task_set(options, TASKS, held_out("MetaPoint"))
    goals_m = directions("MetaPoint", math.pi, 0.5)
    seen = Field("position_m", (2,), -SEEN_M, SEEN_M, "m", "own place, right and up", parts=("x", "y"))
    move = Continuous("move", (2,), -1.0, 1.0, "1", f"way to the right and up, over {STEP_M} m", parts=("right", "up"))
    return Game(
        name="MetaPoint",
        roles=(Role("agent", ("agent_0",), (seen,), (move,)),),
        state=(("task", "i8"), ("position_m", "f8", (2,)), ("goal_m", "f8", (2,))),
        reset=reset,
        step=step,
        observe=observe,
        script=script,
        scripts=("expert", "average"),
        default_opponent="expert",
        parameters=(tasks.parameter,),
        info=(tasks.info,),
        horizon=20,
        world=World(tasks.world, goals_m, np.round(goals_m.mean(axis=0), 9)),
        determinism="cross-platform",
        render="palaestra.games.meta.render_meta:draw_point",
    )
