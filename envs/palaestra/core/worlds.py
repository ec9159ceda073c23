"""Worlds are read-only: the same arrays serve every simulation of a game, so nobody may write into them.

NumPy refuses a write in Python, and numba refuses to compile a hook that assigns to a member of ``world``.
"""

from __future__ import annotations

import copyreg
from typing import Any

import numpy as np

from palaestra.core.game import Game


def read_only(world: Any) -> Any:
    """The world with read-only views in the place of its arrays, in tuples within tuples too.

    The arrays themselves stay as they are: one that a user handed to a factory is still the user's to write to.
    """
    if isinstance(world, np.ndarray):
        if not world.flags.writeable:
            return world
        view = world.view()
        view.flags.writeable = False
        return view
    if isinstance(world, tuple):
        members = [read_only(member) for member in world]
        return type(world)._make(members) if hasattr(world, "_fields") else tuple(members)  # type: ignore[attr-defined]
    return world


def lock(game: Game) -> Game:
    """The game itself, its world made read-only."""
    object.__setattr__(game, "world", read_only(game.world))  # Game is frozen
    return game


def _is_locked(world: Any) -> bool:
    if isinstance(world, tuple):
        return all(_is_locked(member) for member in world)
    return not isinstance(world, np.ndarray) or not world.flags.writeable


def _pickled(game: Game) -> tuple:
    return _unpickled, (vars(game), _is_locked(game.world))


def _unpickled(fields: dict[str, Any], locked: bool) -> Game:
    game = object.__new__(Game)
    vars(game).update(fields)
    return lock(game) if locked else game


# NumPy's pickles forget that an array is read-only. Compiled code takes it for granted: a worker process that got
# writable arrays would compile the whole game anew.
copyreg.pickle(Game, _pickled)
