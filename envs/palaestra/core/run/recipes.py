"""Pickles of games: one that `palaestra.core.contract.factories.make` has made travels as its factory and keywords.

Where it arrives it is made again, or found if it is there: the same object for the same keywords, as everywhere. All
other games are pickled by value. `palaestra.registry` registers this with `copyreg`, for every tool that copies
objects.
"""

from __future__ import annotations

import pickle
from typing import Any

from palaestra.core.contract import factories
from palaestra.core.contract.factories import Recipe
from palaestra.core.contract.rules import Game


def reduced(game: Game) -> Any:
    """What pickle writes in the place of a game: a function and its arguments, see `copyreg.pickle`."""
    from palaestra.core.compile.identity import rules_digest

    if game in factories.recipe_of:
        return arrived, (game.name, factories.recipe_of[game], _version(), _engine(game), rules_digest(game))
    whole, representation = vars(game).get("shown_from", (None, ""))
    if whole in factories.recipe_of:
        return shown, (whole, representation, rules_digest(game))
    return game.__reduce_ex__(pickle.HIGHEST_PROTOCOL)


class ByValue:
    """A game that is pickled with its numbers and the names of its functions: no factory runs where it arrives.

    For processes that this one starts, which need the numbers at once and no other copy of them.
    """

    def __init__(self, game: Game) -> None:
        """Wraps the game; what arrives is the game itself."""
        self.game = game

    def __reduce__(self) -> tuple:
        state = {name: value for name, value in vars(self.game).items() if name != "shown_from"}
        return _valued, ({**state, "representations": {}, "_variants": {}},)


def _valued(state: dict[str, Any]) -> Game:
    game = object.__new__(Game)
    game.__setstate__(state)
    return game


def arrived(name: str, recipe: Recipe, version: str, engine: str, digest: str) -> Game:
    """The game of a pickle: the object itself if it lives in this process, else what its factory makes here.

    Args:
        name: Of the game.
        recipe: How it was made.
        version: Of palaestra, where the game was pickled.
        engine: Version of the game's engine there; empty without one.
        digest: Of its rules there.

    Raises:
        pickle.UnpicklingError: It cannot be made here, or has other rules or versions; says what differs.
    """
    if (here := factories.living.get(recipe.token)) is not None:
        return here
    _check_same(name, "palaestra", version, _version())
    try:
        game = factories.make_again(recipe)
    except Exception as error:  # imports and calls a factory of anybody
        raise pickle.UnpicklingError(
            f"{name} is pickled as its factory and keywords and cannot be made here ({type(error).__name__}: {error}): "
            "install here what it needs, or make the game here in place of loading it"
        ) from error
    _check_same(name, "engine", engine, _engine(game))
    return _checked(game, digest)


def shown(whole: Game, representation: str, digest: str) -> Game:
    """A game in one of its representations.

    Raises:
        pickle.UnpicklingError: It has other rules here.
    """
    return _checked(whole.represented(representation), digest)


def _checked(game: Game, digest: str) -> Game:
    from palaestra.core.compile.identity import rules_digest

    _check_same(game.name, "rules whose digest is", digest, rules_digest(game))
    return game


def _check_same(name: str, what: str, there: str, here: str) -> None:
    if there != here:
        raise pickle.UnpicklingError(
            f"{name} was pickled with {what} {there or 'none'}, here is {here or 'none'}: use the same code, files and "
            "versions on both sides, or make the game here in place of loading it"
        )


def _version() -> str:
    version: Any = factories.load("palaestra:__version__")
    return version


def _engine(game: Game) -> str:
    return "" if game.engine_version is None else game.engine_version()
