"""MetaDirection: a body is paid for its velocity along a direction that only its rewards tell.

## Description

Fifty tasks, a direction in the plane each: the 2-D relative of the running robots whose task is a direction (Finn,
Abbeel and Levine, "Model-agnostic meta-learning for fast adaptation of deep networks", ICML 2017). A body thrusts in
the plane against a drag; a decision is 0.1 s. With its velocity v, in m/s, and the thrust a, whose length is cut to 1::

    v <- 0.8 v + 0.2 a,    x <- x + 0.1 v

The directions are evenly spaced, and their numbers are in a random order, so that neighbours in number are not
neighbours on the circle. Forty-five tasks are for training, five are held out; a match is one of those that `tasks`
names, or the one that `task` names. Neither place nor velocity at the start depends on the task.

The scripts: ``expert`` knows the direction, and no player earns more. ``average`` does not thrust, which is the best
answer to all directions at once. Mean returns over all tasks: ``expert`` 15.1, ``average`` 0.0, uniform play -0.6. With
the first as 100 and the last as 0 in each task, ``average`` has 4, and the expert of one task has -4.6 in the others,
-6 to -3 by task (200 matches of each pair, ``python benchmarks/meta_claims.py``).

## Action Space

<!-- table: action -->

## Observation Space

<!-- table: observation -->

## Rewards

The velocity along the direction after the decision, in m/s, minus 0.05 times the square of the thrust.

## Starting State

Place and velocity, each in the square [-1, 1] x [-1, 1], uniformly. With ``task=-1``, the default, the task is drawn
uniformly among those of `tasks`.

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

START_M, START_MPS = 1.0, 1.0
"""Half the sides of the squares from which place and velocity are drawn."""
PERIOD_S = 0.1
DRAG = 0.2
"""Share of the velocity that is lost in a decision, and that the thrust gives back: the greatest speed is 1 m/s."""
CONTROL_WEIGHT = 0.05
"""Of the squared thrust. Below 0.1 full thrust along the direction is best in each decision, the last one too."""
SEEN_M = 3.0
"""Places beyond this, which nobody reaches in 20 decisions, are seen at this."""


class World(NamedTuple):
    """What the rules read.

    Attributes:
        tasks: Which are played.
        directions: Of each task, length 1, ``[50, 2]``.
    """

    tasks: TaskWorld
    directions: np.ndarray


def reset(s, world):
    """Anywhere, at any speed."""
    begin_task(s, world)
    for axis in range(2):
        s.position_m[axis] = uniform(s, -START_M, START_M)
        s.velocity_mps[axis] = uniform(s, -START_MPS, START_MPS)
        s.direction[axis] = world.directions[s.task, axis]


def step(s, world, actions, rewards, scratch):
    """Thrusts and moves, then pays for the velocity."""
    thrust = actions.agent[0].thrust
    square = thrust[0] * thrust[0] + thrust[1] * thrust[1]
    share = 1.0 / math.sqrt(square) if square > 1.0 else 1.0
    reward = -CONTROL_WEIGHT * clip(square, 0.0, 1.0)
    for axis in range(2):
        s.velocity_mps[axis] = (1.0 - DRAG) * s.velocity_mps[axis] + DRAG * share * thrust[axis]
        s.position_m[axis] += PERIOD_S * s.velocity_mps[axis]
        reward += s.velocity_mps[axis] * s.direction[axis]
    rewards[0] = reward
    return False


def observe(s, world, observations, scratch):
    """Place and velocity."""
    for axis in range(2):
        observations.agent[0].position_m[axis] = clip(s.position_m[axis], -SEEN_M, SEEN_M)
        observations.agent[0].velocity_mps[axis] = s.velocity_mps[axis]


def script(s, world, slot, which, actions, scratch):
    """0 ``expert``: along the direction; 1 ``average``: no thrust."""
    for axis in range(2):
        actions.agent[slot].thrust[axis] = s.direction[axis] if which == 0 else 0.0


@with_options(*TASK_OPTIONS)
def game(options: Any) -> Game:
    """The rules of `palaestra/MetaDirection-v0`."""
    tasks = task_set(options, TASKS, held_out("MetaDirection"))
    seen: tuple[Any, ...] = (
        Field("position_m", (2,), -SEEN_M, SEEN_M, "m", "own place, right and up", parts=("x", "y")),
        Field("velocity_mps", (2,), -START_MPS, START_MPS, "m/s", "own velocity, right and up", parts=("x", "y")),
    )
    thrust = Continuous(
        "thrust", (2,), -1.0, 1.0, "1", "to the right and up, as a share of the greatest", parts=("right", "up")
    )
    return Game(
        name="MetaDirection",
        roles=(Role("agent", ("agent_0",), seen, (thrust,)),),
        state=(("task", "i8"), ("position_m", "f8", (2,)), ("velocity_mps", "f8", (2,)), ("direction", "f8", (2,))),
        reset=reset,
        step=step,
        observe=observe,
        script=script,
        scripts=("expert", "average"),
        default_opponent="expert",
        parameters=(tasks.parameter,),
        info=(tasks.info,),
        horizon=20,
        world=World(tasks.world, directions("MetaDirection", 2.0 * math.pi)),
        determinism="cross-platform",
        render="palaestra.games.meta.render_meta:draw_direction",
    )
