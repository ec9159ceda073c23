"""Factories are called once: a game does not change, so the same keywords get the same `Game` again."""

from __future__ import annotations

import enum
import importlib
import os
import stat
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Any

import numpy as np

from palaestra.core.files import TextFile
from palaestra.core.game import Game

MOST_GAMES = 64
"""Games of keywords of the user's own that are kept; beyond that, those go that were not asked for longest."""

made: dict[Any, Game] = {}
"""By factory and keywords; the one that was asked for last stands last."""

presets: dict[Any, Game] = {}
"""The games of registered ids, as they are without keywords of the user's own: all are kept."""


def load(named: str | Callable[..., Any]) -> Callable[..., Any]:
    """A factory, engine or function itself, imported where it is named ``"module:name"``."""
    if not isinstance(named, str):
        return named
    module, _, name = named.partition(":")
    return getattr(importlib.import_module(module), name)


def make(factory: Callable[..., Game], keywords: Mapping[str, Any], is_preset: bool = False) -> Game:
    """What the factory returns, with a read-only world; the same object for the same keywords.

    Keywords are the same if they are equal and of the same types. A text or path that names a file stands for that
    file: once it is written anew, the factory is called again. Where a keyword may change (an array, a graph, an object
    of another class, a folder), nothing is kept.

    Args:
        factory: Makes the game.
        keywords: What it is given.
        is_preset: Keep the game for ever: there are only as many as registered ids.
    """
    try:
        key = (factory, _key(dict(keywords)))
        hash(key)
    except (TypeError, RecursionError):  # a list may hold itself
        return factory(**keywords)
    game = presets.get(key) or made.pop(key, None) or factory(**keywords)
    (presets if is_preset or key in presets else made)[key] = game
    for oldest in list(made)[:-MOST_GAMES]:
        made.pop(oldest, None)  # another thread may have been here
    return game


def _key(value: Any) -> Any:
    """What distinguishes values; 1, 1.0 and True are three, a list and a tuple of the same members are one.

    Raises:
        TypeError: The value may change.
    """
    if isinstance(value, str | PurePath):
        return (type(value), value, _stamp(value))
    if value is None or isinstance(value, bool | int | float | complex | bytes | np.number | np.bool_ | enum.Enum):
        return (type(value), repr(value))  # repr: -0.0 is not 0.0, and nan is nan
    if isinstance(value, TextFile):
        return value
    if isinstance(value, list | tuple):
        return (tuple, *(_key(member) for member in value))
    if isinstance(value, dict):  # in its order, which may be that of a game's units
        return (dict, *((_key(name), _key(member)) for name, member in value.items()))
    raise TypeError(f"{type(value).__name__} may change")


def _stamp(path: str | PurePath) -> tuple[int, ...] | None:
    """Which file a text names and when it was written, or None if it names none.

    Raises:
        TypeError: It names a folder: its files may change unseen.
    """
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    if stat.S_ISDIR(status.st_mode):
        raise TypeError(f"the files in {path} may change")
    return (status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size)
