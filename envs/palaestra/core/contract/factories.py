"""Factories are called once: a game does not change, so the same keywords get the same `Game` again."""

from __future__ import annotations

import enum
import importlib
import inspect
import os
import pickle
import re
import secrets
import stat
import weakref
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Any, NamedTuple

import numpy as np

from palaestra.core.contract.file_keywords import with_contents
from palaestra.core.contract.keywords import any_text
from palaestra.core.contract.options import declared_words
from palaestra.core.contract.rules import Game
from palaestra.core.files import TextFile

MOST_GAMES = 64
"""Games of keywords of the user's own that are kept; beyond that, those go that were not asked for longest."""

made: dict[Any, Game] = {}
"""By factory and keywords; the one that was asked for last stands last."""

presets: dict[Any, Game] = {}
"""The games of registered ids, as they are without keywords of the user's own: all are kept."""

living: weakref.WeakValueDictionary[Any, Game] = weakref.WeakValueDictionary()
"""All games that are still referenced: by factory and keywords, and by the token of their recipe."""

recipe_of: weakref.WeakKeyDictionary[Game, Recipe] = weakref.WeakKeyDictionary()
"""How each of them was made, if that can be said in another process."""


class Recipe(NamedTuple):
    """How a game was made, for `palaestra.core.run.recipes`.

    Attributes:
        token: Names the object, in all processes that it goes to.
        content: Pickle of the factory, its keywords as they were then, and the same with the content of the files that
            they name.
    """

    token: str
    content: bytes


def load(named: str | Callable[..., Any]) -> Callable[..., Any]:
    """A factory, engine or function itself, imported where it is named ``"module:name"``."""
    if not isinstance(named, str):
        return named
    module, _, name = named.partition(":")
    return getattr(importlib.import_module(module), name)


NAMES_NONE = re.compile(r"\b(None|Optional)\b")


def without_nones(factory: Callable[..., Game], keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Keywords without those that are None and so not given: a table of rows has None where a row has no value.

    None says something of its own only where the factory's annotation allows it beside another default
    (``split: str | None = "train"``).
    """
    if all(value is not None for value in keywords.values()):
        return dict(keywords)
    known = inspect.signature(factory).parameters
    speaks = {p.name for p in known.values() if p.default is not None and NAMES_NONE.search(str(p.annotation))}
    return {name: value for name, value in keywords.items() if value is not None or name in speaks}


def make(factory: Callable[..., Game], keywords: Mapping[str, Any], is_preset: bool = False) -> Game:
    """What the factory returns, with a read-only world; the same object for the same keywords.

    Keywords are the same if they are equal and of the same types. A text or path that names a file stands for that
    file: once it is written anew, the factory is called again. Where a keyword may change (an array, a graph, an object
    of another class, a folder), the game is another one each time.

    Args:
        factory: Makes the game.
        keywords: What it is given.
        is_preset: Keep the game for ever: there are only as many as registered ids.
    """
    try:
        key = (factory, _keys(factory, keywords))
        hash(key)
    except (TypeError, RecursionError):  # a list may hold itself
        return _made(factory, keywords)
    game = living.get(key) or _made(factory, keywords)
    living[key] = game
    made.pop(key, None)
    (presets if is_preset or key in presets else made)[key] = game
    for oldest in list(made)[:-MOST_GAMES]:
        made.pop(oldest, None)  # another thread may have been here
    return game


def make_again(recipe: Recipe) -> Game:
    """The game of a recipe that comes from another process.

    A path stands for the file that it names here if that has the same content, else for the content that travels.
    """
    factory, keywords, contents = pickle.loads(recipe.content)
    here = with_contents(keywords, declared_words(factory))
    game = make(factory, keywords if here == contents else contents)
    living[recipe.token] = game
    return game


def _made(factory: Callable[..., Game], keywords: Mapping[str, Any]) -> Game:
    """What the factory returns; its recipe is written before, as the factory or the user may change a keyword."""
    recipe = _recipe(factory, dict(keywords))
    try:
        game = factory(**keywords)
    except TypeError as error:  # a value of a wrong kind, where the factory has not looked at it
        if not keywords or any(name in str(error) for name in keywords):
            raise
        known = inspect.signature(factory).parameters
        given = ", ".join(f"{n}={v!r} ({known[n].annotation})" if n in known else n for n, v in keywords.items())
        raise TypeError(f"one of these keywords has a value of a wrong kind: {given}: {error}") from error
    if recipe is not None and game not in recipe_of:  # a factory may return a game that another one has made
        recipe_of[game] = recipe
        living[recipe.token] = game
    return game


def _recipe(factory: Callable[..., Game], keywords: dict[str, Any]) -> Recipe | None:
    """How the game will be made, or None where no other process could do the same.

    Such are factories and keywords that cannot be pickled, and what stands in ``__main__``: workers have another one.
    """
    try:
        content = pickle.dumps((factory, keywords, with_contents(keywords, declared_words(factory))))
    except Exception:  # keywords of anybody
        return None
    return None if b"__main__" in content else Recipe(secrets.token_hex(8), content)


def _keys(factory: Callable[..., Game], keywords: Mapping[str, Any]) -> Any:
    """What distinguishes keywords, in their order, which may be that of a game's units.

    Raises:
        TypeError: A value may change.
    """
    prose = {name for name, words in declared_words(factory).items() if words is any_text}
    return tuple((name, _key(value, name not in prose)) for name, value in keywords.items())


def _key(value: Any, may_be_path: bool) -> Any:
    """What distinguishes values; 1, 1.0 and True are three, a list and a tuple of the same members are one.

    Raises:
        TypeError: The value may change.
    """
    if isinstance(value, str | PurePath):
        return (type(value), value, _stamp(value) if may_be_path else None)
    if value is None or isinstance(value, bool | int | float | complex | bytes | np.number | np.bool_ | enum.Enum):
        return (type(value), repr(value))  # repr: -0.0 is not 0.0, and nan is nan
    if isinstance(value, TextFile):
        return value
    if isinstance(value, list | tuple):
        return (tuple, *(_key(member, may_be_path) for member in value))
    if isinstance(value, dict):  # in its order, too
        return (dict, *((_key(name, may_be_path), _key(member, may_be_path)) for name, member in value.items()))
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
