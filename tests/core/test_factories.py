"""A factory is called once for the same keywords, and the world of its game is read-only."""

from __future__ import annotations

import dataclasses
import gc
import inspect
import os
import pickle
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakValueDictionary, ref

import gymnasium
import numpy as np
import pytest
from games import two_team

import palaestra
from palaestra import registry
from palaestra.core.compile.linker import link
from palaestra.core.contract import factories
from palaestra.core.contract.factories import make
from palaestra.core.contract.worlds import read_only
from palaestra.core.run.kernel import KernelSimulation
from palaestra.game import Choice, Field, Game, Role

ID = "test/Made-v0"


@pytest.fixture(autouse=True)
def no_game_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    for kept in ("made", "presets"):
        monkeypatch.setattr(factories, kept, {})
    monkeypatch.setattr(factories, "living", WeakValueDictionary())


@pytest.fixture
def registered() -> Iterator[Callable[..., None]]:
    def register(factory: Callable[..., Game], **keywords: Any) -> None:
        palaestra.register(ID, factory, **keywords)

    yield register
    registry.ROWS.pop(ID, None)
    gymnasium.registry.pop(ID, None)


def anything(what: Any = None) -> Game:
    """The factory of these tests: a new game for every call."""
    return two_team.game()


def game_of(**keywords: Any) -> Game:
    return registry.make_game(ID, **keywords)[0]


# -- one game a factory and its keywords -------------------------------------------------------------------------------


def test_the_same_keywords_give_the_same_game(registered):
    registered(two_team.game)
    assert game_of(nodes=8) is game_of(nodes=8)
    assert game_of(nodes=8) is not game_of(nodes=6)
    assert palaestra.make_batch(ID, nodes=8).game is game_of(nodes=8)


def test_parameters_do_not_make_another_game(registered):
    registered(two_team.game)
    assert game_of(horizon=7) is game_of()


def test_two_ids_with_the_same_keywords_share_the_game(registered):
    registered(two_team.game, nodes=8)
    eight = game_of()
    registered(two_team.game)
    assert game_of(nodes=8) is eight


def test_an_id_that_is_registered_again_serves_the_new_game(registered):
    registered(lambda: two_team.game(6))
    assert len(game_of().world.adjacency) == 6
    registered(lambda: two_team.game(8))
    assert len(game_of().world.adjacency) == 8


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (1, True),
        (0.0, -0.0),
        ("1", 1),
        (np.int64(1), 1),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (Enum("Unit", "MARINE").MARINE, Enum("Unit", "MARINE").MARINE),
    ],
)
def test_keywords_that_a_factory_could_distinguish_are_kept_apart(one: Any, other: Any):
    assert make(anything, {"what": one}) is make(anything, {"what": one})
    assert make(anything, {"what": one}) is not make(anything, {"what": other})


def test_lists_and_dicts_are_distinguished_by_their_contents():
    deep = lambda last: {"what": {"units": [["marine", 3], ["medic", last]]}}  # noqa: E731
    assert make(anything, deep(1)) is make(anything, deep(1))
    assert make(anything, deep(1)) is not make(anything, deep(2))
    assert make(anything, {"what": [1, 2]}) is make(anything, {"what": (1, 2)})  # JSON makes lists of tuples


class Graph:
    """Hashable, and yet it may change."""


@pytest.mark.parametrize(
    "changeable", [np.ones(3), Graph(), [Graph()], {1, 2}], ids=["array", "object", "in a list", "set"]
)
def test_what_may_change_is_never_kept(changeable: Any):
    assert make(anything, {"what": changeable}) is not make(anything, {"what": changeable})


@pytest.mark.parametrize("kind", [str, Path])
def test_a_file_that_was_written_anew_is_read_again(tmp_path: Path, kind: type):
    file = tmp_path / "weights.npz"
    file.write_text("old")
    old = make(anything, {"what": kind(file)})
    assert make(anything, {"what": kind(file)}) is old
    file.write_text("new")
    os.utime(file, ns=(1, 1))
    assert make(anything, {"what": kind(file)}) is not old
    assert make(anything, {"what": kind(tmp_path)}) is not make(anything, {"what": kind(tmp_path)})  # a folder


def test_a_factory_that_fails_is_called_again():
    calls = []

    def moody() -> Game:
        calls.append(0)
        if len(calls) == 1:
            raise ValueError("not today")
        return two_team.game()

    with pytest.raises(ValueError, match="not today"):
        make(moody, {})
    assert make(moody, {}) is make(moody, {})


@pytest.mark.check
def test_no_more_games_are_kept_than_the_limit_and_those_in_use_stay():
    first = make(anything, {"what": 0})
    second = make(anything, {"what": 1})
    for what in range(2, factories.MOST_GAMES + 1):
        assert make(anything, {"what": 0}) is first
        make(anything, {"what": what})
    assert len(factories.made) == factories.MOST_GAMES
    assert make(anything, {"what": 1}) is second, "held here"
    gone = ref(second)
    del second
    for what in range(2, factories.MOST_GAMES + 2):
        make(anything, {"what": what})
    gc.collect()
    assert gone() is None


def test_a_second_loop_over_all_presets_calls_no_factory(registered):
    calls = []

    def counted(number: int = 0) -> Game:
        calls.append(number)
        return two_team.game()

    ids = [f"test/Preset{k}-v0" for k in range(factories.MOST_GAMES + 3)]
    for number, id in enumerate(ids):
        palaestra.register(id, counted, number=number)
    try:
        first, second = ([registry.make_game(id)[0] for id in ids] for _ in range(2))
    finally:
        for id in ids:
            registry.ROWS.pop(id, None)
            gymnasium.registry.pop(id, None)
    assert len(calls) == len(ids)
    assert all(one is other for one, other in zip(first, second, strict=True))


def test_a_preset_and_the_same_keywords_are_one_game(registered):
    registered(anything, what=5)
    by_word = game_of(what=5)
    assert game_of() is by_word is game_of(what=5)


# -- read-only worlds --------------------------------------------------------------------------------------------------


class Place(NamedTuple):
    tables: tuple[np.ndarray, int]
    name: np.ndarray


def test_the_world_of_a_registered_game_is_read_only(registered):
    registered(anything)
    for game in (game_of(), game_of(what=Graph())):
        with pytest.raises(ValueError, match="read-only"):
            game.world.adjacency[0, 0] = 1


def test_arrays_within_tuples_are_read_only_and_the_author_s_own_are_not():
    own = np.arange(3)
    world = read_only(Place((own, 4), np.zeros(2)))
    assert isinstance(world, Place)
    assert world.tables[1] == 4
    for array in (world.tables[0], world.name):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    own[0] = 7
    assert world.tables[0][0] == 7
    assert read_only(None) is None


class Prices(NamedTuple):
    prices: np.ndarray


def writing_game() -> Game:
    """One runner, the smallest game with a world; its first rule writes into it."""

    def reset(s, world):
        world.prices[0] = 1.0

    def step(s, world, actions, rewards, scratch):
        return False

    def observe(s, world, observations, scratch):
        observations.runner[0].x = s.x

    role = Role("runner", ("red_0",), (Field("x", (), 0, 1),), (Choice("go", 2),))
    hooks: dict[str, Any] = {"reset": reset, "step": step, "observe": observe}
    return Game("Writer", (role,), (("x", "f8"),), world=Prices(np.zeros(3)), **hooks)


@pytest.mark.check
@pytest.mark.parametrize("interpreted", ["0", "1"])
def test_a_rule_that_writes_into_the_world_does_not_play(interpreted: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", interpreted)
    game = make(writing_game, {})
    with pytest.raises(Exception, match=r"readonly array|read-only"):
        KernelSimulation(game, 1).reset(seed=0)


def test_a_game_that_went_through_pickle_runs_the_same_machine_code():
    game = make(two_team.game, {})
    again = pickle.loads(pickle.dumps(dataclasses.replace(game)))  # by value
    assert link(again) is link(game)
    with pytest.raises(ValueError, match="read-only"):
        again.world.adjacency[0, 0] = 1
    loose = two_team.game()
    assert link(pickle.loads(pickle.dumps(loose))) is link(loose)


# -- None is not given -------------------------------------------------------------------------------------------------


def own_none(size: int = 3, split: str | None = "train", mode: str | None = None, loose=2) -> Game:
    """A factory whose ``split`` may be None."""
    assert isinstance(size, int)
    game = two_team.game()
    return dataclasses.replace(game, name=f"Own{len(str((size, split, mode, loose)))}", horizon=size + (split is None))


def test_none_is_not_given_unless_it_says_something_of_its_own(registered: Callable[..., None]):
    registered(own_none, size=7, mode="fast")
    plain = registry.make_game(ID)[0]
    assert plain.horizon == 7
    for name in ("size", "mode", "loose", "damage", "horizon", "max_cycles", "observation", "of_another_game"):
        assert registry.make_game(ID, **{name: None})[0] is plain
        assert registry.make_game(ID, **{name: None}) == (plain, {})
    assert registry.make_game(ID, split=None)[0].horizon == 8
    env: Any = registry.make_env(ID, size=None, damage=None, compiled=False, observation="dict", opponent=None)
    assert env.sim.game.horizon == 7
    assert env.sim.parameters["damage"].tolist() == [0.6]
    with pytest.raises(ValueError, match="damage must be a number"):
        env.sim.set_parameters(damage=None)


def test_keywords_of_all_factories_may_be_none_in_a_table_of_rows():
    allowed = {"split": "SearchQA: None asks the questions of all splits"}
    for row in registry.ROWS.values():
        factory = factories.load(row.factory)
        names = list(inspect.signature(factory).parameters)
        assert set(factories.without_nones(factory, dict.fromkeys(names))) <= set(allowed), row.id


def test_a_value_of_a_wrong_kind_is_told_with_its_keyword(registered: Callable[..., None]):
    def sums(count: int = 3) -> Game:
        return dataclasses.replace(two_team.game(), horizon=sum(range(count)))

    registered(sums)
    with pytest.raises(TypeError, match=r"wrong kind: count='many' \(int\): 'str' object cannot be"):
        registry.make_game(ID, count="many")
