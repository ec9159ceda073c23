"""Games that are a set of tasks: each match is one of them, its number is a parameter that no observation tells.

A factory takes `TASK_OPTIONS` among its options and makes a `TaskSet` of them::

    @with_options(*TASK_OPTIONS)
    def game(options) -> Game:
        tasks = task_set(options, 50, held_out=(3, 17, 22, 31, 48))
        return Game(
            state=(("task", "i8"), ...),
            parameters=(tasks.parameter,),
            info=(tasks.info,),
            world=World(tasks.world, ...),
            ...,
        )

`reset` calls `begin_task` before it draws anything else; then ``s.task`` is the number of the task of the match.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np

from palaestra.core.contract.fields import Field, Parameter
from palaestra.core.contract.options import Option
from palaestra.core.rng import integer, keyed_uniforms

TASK_OPTIONS = (
    Option("tasks", "train", "which are played: those for training, those held out, or all", ("train", "test", "all")),
    Option(
        "split_seed",
        None,
        "draws which tasks are held out of training; None is the split of the package",
        low=0,
        high=2**31 - 1,
        only={"tasks": ("train", "test")},
    ),
    Option("hide_task", True, "whether `info` says -1 in place of the number of the task"),
)


class TaskWorld(NamedTuple):
    """The part of a game's world that `begin_task` reads: ``world.tasks``.

    Attributes:
        numbers: Of the tasks that are played, int64.
        hides: Whether infos do not tell the number.
    """

    numbers: np.ndarray
    hides: int


class TaskSet(NamedTuple):
    """What a game that is a set of tasks is made of; its state has a field ``("task", "i8")``.

    Attributes:
        parameter: ``task``, the number of a lane's next match; -1 draws it.
        info: The field ``task``.
        world: The member ``tasks`` of the game's world.
    """

    parameter: Parameter
    info: Field
    world: TaskWorld


def task_set(options: Any, count: int, held_out: Collection[int]) -> TaskSet:
    """The tasks that the options choose.

    Args:
        options: Of a factory with `TASK_OPTIONS`.
        count: Number of all tasks.
        held_out: Numbers of the tasks that are not for training, unless ``split_seed`` draws as many others.
    """
    held = np.sort(np.array(list(held_out)))
    if options.split_seed is not None:
        held = np.sort(np.argsort(keyed_uniforms(f"split {options.split_seed}", count))[: len(held)])
    everything = np.arange(count)
    numbers = {"all": everything, "test": held, "train": np.setdiff1d(everything, held)}[options.tasks]
    values = (-1.0, *map(float, numbers))
    about = "number of the task, one of those that `tasks` names; -1 draws one of them in each match"
    return TaskSet(
        Parameter("task", -1.0, about=about, at_start=True, whole=True, values=values),
        Field("task", (), -1, count - 1, "1", "number of the task, -1 with `hide_task`", "i8"),
        TaskWorld(numbers.astype(np.int64), int(options.hide_task)),
    )


def begin_task(s, world):
    """Writes the number of the task of a match that starts: the parameter's, or one that is drawn."""
    drawn = world.tasks.numbers[integer(s, len(world.tasks.numbers))]
    s.task = drawn if s.parameters.task < 0.0 else np.int64(s.parameters.task)
    s.info.task = -1 if world.tasks.hides else s.task
