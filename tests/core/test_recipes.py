"""A game that a factory made is pickled as the factory and its keywords, and comes back as the same object.

Those of all ids: tests/replay/test_other_process.py.
"""

from __future__ import annotations

import copy
import dataclasses
import gc
import pickle
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pytest
from games import size_game, two_team

from palaestra import registry
from palaestra.core.compile.identity import rules_digest
from palaestra.core.contract import factories
from palaestra.core.contract.factories import make
from palaestra.core.run import recipes
from palaestra.game import Game


def again(game: Game) -> Game:
    return pickle.loads(pickle.dumps(game))


@contextmanager
def elsewhere() -> Iterator[None]:
    """As in a process where no game was made before."""
    with pytest.MonkeyPatch.context() as patch:
        for kept in ("made", "presets"):
            patch.setattr(factories, kept, {})
        patch.setattr(factories, "living", weakref.WeakValueDictionary())
        yield


def as_elsewhere(game: Game) -> Game:
    """The game that its pickle gives in such a process, and that is pickled there once more."""
    pickled = pickle.dumps(game)
    with elsewhere():
        arrived = pickle.loads(pickled)
        assert pickle.loads(pickled) is arrived is again(arrived) is not game
        return arrived


def from_words(words: Any = None, nodes: int = 6) -> Game:
    """A factory of any keyword; the number of nodes is how many words it is given, if they can be counted."""
    return two_team.game(len(words) if isinstance(words, np.ndarray | list) else nodes)


def from_file(path: Any) -> Game:
    """A factory of a file's name, or of its content."""
    return two_team.game(int(path.text if isinstance(path, factories.TextFile) else Path(path).read_text()))


# -- the same object ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("copied", [copy.deepcopy, copy.copy, again, lambda g: pickle.loads(cloudpickle.dumps(g))])
def test_every_way_to_copy_gives_the_object_itself(copied: Any):
    game = make(two_team.game, {"nodes": 7})
    assert copied(game) is game
    assert copied({"a": [game]})["a"][0] is game


def test_a_game_is_found_as_long_as_somebody_holds_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(factories, "MOST_GAMES", 1)
    held = make(from_words, {"words": "held"})
    make(from_words, {"words": "another"})
    assert again(held) is held is make(from_words, {"words": "held"})


@pytest.mark.check
def test_a_game_that_nobody_holds_is_let_go(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(factories, "MOST_GAMES", 1)
    calls = []
    monkeypatch.setattr(two_team, "game", lambda nodes, game=two_team.game: calls.append(nodes) or game(nodes))
    for _ in range(2):
        make(from_words, {"words": "left"})
        make(from_words, {"words": "another"})
        gc.collect()
    assert len(calls) == 4


def test_another_representation_comes_back_as_itself():
    game = make(size_game.game, {})
    name = next(iter(game.representations))
    view = game.represented(name)
    assert len(pickle.dumps(view)) <= 2048
    assert again(view) is view
    assert as_elsewhere(view).observation_dtype == view.observation_dtype


# -- what travels ------------------------------------------------------------------------------------------------------


def test_arrays_travel_as_they_were_when_the_game_was_made():
    words = np.zeros(8)
    game = make(from_words, {"words": words})
    other = make(from_words, {"words": words})
    words.resize(9, refcheck=False)
    assert again(game) is game is not again(other)
    assert len(as_elsewhere(game).world.adjacency) == 8


def test_a_keyword_that_the_factory_changes_travels_as_it_was_given(monkeypatch: pytest.MonkeyPatch):
    calls = []

    def emptying(words: list[int]) -> Game:
        calls.append(list(words))
        return two_team.game(len(words) + words.pop())

    monkeypatch.setattr(two_team, "emptying", emptying, raising=False)
    emptying.__module__, emptying.__qualname__ = two_team.__name__, "emptying"
    game = make(emptying, {"words": [1, 2, 3, 4]})
    as_elsewhere(game)
    assert calls[1:] == calls[:1] * (len(calls) - 1)
    assert len(calls) > 1


def test_files_travel_by_content(tmp_path: Path):
    file = tmp_path / "nodes.txt"
    file.write_text("8")
    game = make(from_file, {"path": str(file)})
    assert as_elsewhere(game).world.adjacency.shape == (8, 8)
    file.write_text("9 ")  # of another size: a file system may count time in seconds
    assert again(game) is game
    assert as_elsewhere(game).world.adjacency.shape == (8, 8)
    file.unlink()
    assert as_elsewhere(game).world.adjacency.shape == (8, 8)


def test_a_file_that_is_here_too_is_the_one_that_make_game_reads(tmp_path: Path):
    file = tmp_path / "nodes.txt"
    file.write_text("8")
    pickled = pickle.dumps(make(from_file, {"path": file}))
    with elsewhere():
        assert pickle.loads(pickled) is make(from_file, {"path": file})


# -- by value ----------------------------------------------------------------------------------------------------------


def game_of_main(nodes: int = 6) -> Game:
    return two_team.game(nodes)


game_of_main.__module__ = "__main__"


@pytest.mark.parametrize(
    "game",
    [
        two_team.game(),
        dataclasses.replace(make(two_team.game, {}), horizon=7),
        make(lambda: two_team.game(), {}),
        make(from_words, {"words": lambda: 0}),
        make(game_of_main, {}),
    ],
    ids=["by hand", "replaced", "a nameless factory", "a nameless keyword", "a factory of __main__"],
)
def test_what_no_other_process_could_make_is_pickled_by_value(game: Game):
    copied = again(game)
    assert copied is not game
    assert (copied.horizon, copied.state_dtype) == (game.horizon, game.state_dtype)
    np.testing.assert_array_equal(copied.world.adjacency, game.world.adjacency)


# -- refused on arrival ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shown", [False, True], ids=["whole", "in a representation"])
def test_a_game_pickled_by_value_arrives_without_its_factory(shown: bool, monkeypatch: pytest.MonkeyPatch):
    game = registry.make_game("palaestra/GraphPursuit-Petersen-v0", **({"observation": "nodes"} if shown else {}))[0]
    pickled = pickle.dumps(recipes.ByValue(game))
    monkeypatch.setattr(factories, "make_again", lambda recipe: pytest.fail("a factory was called"))
    with elsewhere():
        arrived = pickle.loads(pickled)
    assert arrived is not game
    assert rules_digest(arrived) == rules_digest(game)
    assert not any(array.flags.writeable for array in arrived.world if isinstance(array, np.ndarray))


def refused(pickled: bytes, game: str, *words: str) -> None:
    with elsewhere(), pytest.raises(pickle.UnpicklingError) as raised:
        pickle.loads(pickled)
    assert str(raised.value).startswith(game)
    for word in (*words, "make the game here"):
        assert word in str(raised.value)


def test_other_rules_are_refused(monkeypatch: pytest.MonkeyPatch):
    game = make(two_team.game, {})
    pickled, digest = pickle.dumps(game), recipes.reduced(game)[1][-1]
    monkeypatch.setattr("palaestra.core.compile.identity.rules_digest", lambda game: "other")
    refused(pickled, game.name, digest, "here is other")


def test_other_rules_of_a_representation_are_refused(monkeypatch: pytest.MonkeyPatch):
    whole = make(size_game.game, {})
    view = whole.represented(next(iter(whole.representations)))
    pickled, honest = pickle.dumps(view), recipes.reduced(whole)[1][-1]
    monkeypatch.setattr(
        "palaestra.core.compile.identity.rules_digest",
        lambda game: honest if game.observe is whole.observe else "other",
    )
    refused(pickled, view.name, "here is other")


def test_another_palaestra_is_refused(monkeypatch: pytest.MonkeyPatch):
    game = make(two_team.game, {})
    pickled = pickle.dumps(game)
    monkeypatch.setattr("palaestra.__version__", "99.9")
    refused(pickled, game.name, "palaestra", "99.9")


def test_another_engine_is_refused(monkeypatch: pytest.MonkeyPatch):
    versions = ["engine 1.0"]

    def driven() -> Game:
        return dataclasses.replace(two_team.game(), engine_version=lambda: versions[0])

    monkeypatch.setattr(two_team, "driven", driven, raising=False)
    driven.__module__, driven.__qualname__ = two_team.__name__, "driven"
    game = make(driven, {})
    pickled = pickle.dumps(game)
    versions[0] = "engine 2.0"
    refused(pickled, game.name, "engine 1.0", "engine 2.0")


def test_a_factory_that_fails_here_is_named_with_what_it_says(monkeypatch: pytest.MonkeyPatch):
    game = make(from_words, {"words": "unheard"})
    pickled = pickle.dumps(game)
    monkeypatch.setattr(factories, "make_again", lambda recipe: int("no number"))
    refused(pickled, game.name, "ValueError", "no number")
