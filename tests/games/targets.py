"""Targets: a walker on a line is paid for steps towards a target that the task names; a short family of tasks."""

from __future__ import annotations

import palaestra
from palaestra.game import Choice, Continuous, Field, Game, Role, integer


def reset(s, world):
    """Draws where the walker starts; the task is the world's, or drawn where that is negative."""
    s.place = float(integer(s, 3))
    drawn = integer(s, 4)
    s.info.task = drawn if world[0] < 0 else world[0]


def step(s, world, actions, rewards, scratch):
    """Moves; the match ends at the target."""
    before = abs(s.place - s.info.task)
    s.place += actions.walker[0].move - 1
    rewards[0] = before - abs(s.place - s.info.task)
    return s.place == s.info.task


def step_far(s, world, actions, rewards, scratch):
    """Moves by a real number."""
    s.place += actions.walker[0].move
    rewards[0] = -abs(s.place - s.info.task)
    return False


def observe(s, world, observations, scratch):
    """Shows the place, not the target."""
    observations.walker[0].place = s.place
    observations.walker[0].steps = s.steps


def script(s, world, slot, which, actions, scratch):
    """Walks to the right."""
    actions.walker[slot].move = 2


def script_real(s, world, slot, which, actions, scratch):
    """Walks to the right by a number that float32 lacks."""
    actions.walker[slot].move = 0.1


def game(task: int = -1, tasks: str = "", real: bool = False) -> Game:
    """The rules.

    Args:
        task: Number of the task; -1 draws one of four for each match.
        tasks: A word of the user; no rule reads it.
        real: Whether moves are real numbers.
    """
    fields = (Field("place", (), -99, 99), Field("steps", (), 0, 99))
    move = Continuous("move", (), -1, 1) if real else Choice("move", 3)
    return Game(
        name="Targets",
        roles=(Role("walker", ("walker_0",), fields, (move,)),),
        state=(("place", "f8"),),
        info=(Field("task", (), -9, 99, dtype="i8"),),
        reset=reset,
        step=step_far if real else step,
        observe=observe,
        script=script_real if real else script,
        scripts=("right",),
        world=(task,),
        horizon=5,
        determinism="cross-platform",
    )


palaestra.register("tests/Targets-v0", game, about="a walker and a target")
