"""Lamp: a game of one agent whose `observe` writes nothing in every other decision, and adds to what is there."""

from __future__ import annotations

import palaestra
from palaestra.game import Choice, Field, Game, Role


def reset(s, world):
    """The lamp is off."""


def step(s, world, actions, rewards, scratch):
    """Nothing happens before the horizon."""
    return False


def observe(s, world, observations, scratch):
    """Shows the lamp after decisions of odd number alone."""
    watcher = observations.watcher[0]
    if s.steps % 2 == 1:
        watcher.light = 1.0
    watcher.writes += 1.0


def game() -> Game:
    """The rules."""
    fields = (Field("light", (), 0, 1), Field("writes", (), 0, 9))
    return Game(
        name="Lamp",
        roles=(Role("watcher", ("watcher_0",), fields, (Choice("wait", 2),)),),
        state=(),
        reset=reset,
        step=step,
        observe=observe,
        horizon=5,
        determinism="cross-platform",
    )


palaestra.register("tests/Lamp-v0", game, about="a lamp that is on in every other decision")
