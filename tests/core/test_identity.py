"""The digest of the rules depends on everything that decides how a match continues, and on nothing else."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from games import body_game, depot, size_game, two_team

from palaestra.core.compile.identity import rules_digest
from palaestra.core.compile.linker import HOOKS
from palaestra.core.run.kernel import KernelSimulation
from palaestra.game import Field, Game, Parameter, Table

pytestmark = pytest.mark.jitless

COURIERS, BODY, OUTSIDE, DEPOT = size_game.game(), body_game.game("compiled"), body_game.game(), depot.game("mixed")
GLOBAL = two_team.game()


def with_action(game: Game, number: int = 0, **changes: Any) -> Game:
    (role,) = game.roles
    action = list(role.action)
    action[number] = replace(action[number], **changes)
    return replace(game, roles=(replace(role, action=tuple(action)),))


def with_parameter(name: str, **changes: Any) -> Game:
    return replace(BODY, parameters=tuple(replace(p, **changes) if p.name == name else p for p in BODY.parameters))


def with_hook(game: Game, name: str) -> Game:
    """The game with a hook that does one thing more."""
    hook = getattr(game, name)

    def more(*arguments: Any) -> Any:
        return hook(*arguments)

    return replace(game, **{name: more})


def a_function(code: str) -> Any:
    """A function of the package of `OUTSIDE`'s engine."""
    made: dict[str, Any] = {"__name__": "games.models"}
    exec(f"def model(): return {code}", made)
    return made["model"]


HOOKED = [
    (game, name) for game in (COURIERS, BODY, OUTSIDE, GLOBAL) for name in HOOKS if getattr(game, name) is not None
]


def test_the_games_here_have_every_hook():
    assert {name for _, name in HOOKED} == set(HOOKS)


@pytest.mark.parametrize(("game", "name"), HOOKED, ids=[f"{game.name} {name}" for game, name in HOOKED])
def test_every_hook_decides(game: Game, name: str):
    assert rules_digest(with_hook(game, name)) != rules_digest(game)


OTHER_RULES: dict[str, tuple[Game, Game]] = {
    "end_reasons": (COURIERS, replace(COURIERS, end_reasons=("all_gone",))),
    "truncation_reasons": (COURIERS, replace(COURIERS, truncation_reasons=("idle",))),
    "which ends truncate": (COURIERS, replace(COURIERS, end_reasons=("all_taken", "stalled"), truncation_reasons=())),
    "reward": (BODY, replace(BODY, reward="team")),
    "reward_dtype": (BODY, replace(BODY, reward_dtype="f4")),
    "periods": (BODY, replace(BODY, periods=4)),
    "bounds of a parameter": (BODY, with_parameter("drag_nspm", high=1e6)),
    "values of a parameter": (BODY, with_parameter("drag_nspm", values=tuple(range(9)), default=1.0)),
    "at_start": (BODY, with_parameter("mass_spread_kg", at_start=False)),
    "a new parameter": (BODY, replace(BODY, parameters=(*BODY.parameters, Parameter("wind", 0.0, 0.0, 1.0)))),
    "candidates": (COURIERS, with_action(COURIERS, candidates=9)),
    "alternatives": (COURIERS, with_action(COURIERS, 1, n=3)),
    "noop": (COURIERS, with_action(COURIERS, noop=1)),
    "bounds of an action": (BODY, with_action(BODY, high=(5.0, 2.0))),
    "shape of an action": (DEPOT, with_action(DEPOT, 2, shape=(3,))),
    "couriers": (COURIERS, size_game.game(agents=7)),
    "parcels": (COURIERS, size_game.game(parcels=11)),
    "scripts": (COURIERS, replace(COURIERS, scripts=("nearest", "plan"))),
    "scratch": (COURIERS, replace(COURIERS, scratch=(*COURIERS.scratch, ("more", "f8")))),
    "world": (COURIERS, replace(COURIERS, world=COURIERS.world._replace(worth=COURIERS.world.worth * 2))),
    "engine": (OUTSIDE, replace(OUTSIDE, physics="games.logged_pucks:LoggedPucks")),
    "a model": (OUTSIDE, replace(OUTSIDE, model_digest=lambda: "pucks of steel")),
    "another model": (replace(OUTSIDE, model_digest=lambda: "wood"), replace(OUTSIDE, model_digest=lambda: "steel")),
    "functions among the options": (
        replace(OUTSIDE, physics_options={"model": a_function("'steel'")}),
        replace(OUTSIDE, physics_options={"model": a_function("len('wood')")}),
    ),
    "options of the engine": (OUTSIDE, replace(OUTSIDE, physics_options={"stiffness": 2})),
}


@pytest.mark.parametrize("what", OTHER_RULES)
def test_what_decides_how_a_match_continues_is_in_the_digest(what: str):
    game, other = OTHER_RULES[what]
    assert rules_digest(game) != rules_digest(other)


def told_otherwise(game: Game) -> Game:
    """Other bounds, units, columns' names and explanations of all that is seen."""
    (role,) = game.roles
    seen: list[Any] = [
        replace(f, about="other words", **({} if isinstance(f, Table) else {"low": -9.0, "high": 9.0, "unit": "km"}))
        for f in role.observation
    ]
    return replace(game, roles=(replace(role, observation=tuple(seen)),))


SAME_RULES: dict[str, tuple[Game, Game]] = {
    "observation tables": (COURIERS, told_otherwise(COURIERS)),
    "info tables": (COURIERS, replace(COURIERS, info=(Field("lead", about="other words", dtype="f8"),))),
    "words about an action": (COURIERS, with_action(COURIERS, 1, about="pace", meanings=("slow", "fast"))),
    "names of an action's numbers": (BODY, with_action(BODY, parts=("ahead", "left"))),
    "unit of an action": (BODY, with_action(BODY, unit="kN")),
    "default of a parameter": (BODY, with_parameter("drag_nspm", default=1.0)),
    "default opponent": (COURIERS, replace(COURIERS, default_opponent="random")),
    "default representation": (COURIERS, replace(COURIERS, default_observation="flat")),
    "pictures": (BODY, replace(BODY, render=None)),
    "the same again": (OUTSIDE, body_game.game()),
}


@pytest.mark.parametrize("what", SAME_RULES)
def test_what_decides_nothing_is_not_in_the_digest(what: str):
    game, other = SAME_RULES[what]
    assert rules_digest(game) == rules_digest(other)


# -- text --------------------------------------------------------------------------------------------------------------

HOOK = (
    'def step(s, world, actions, rewards, scratch):\n    s.x = f"{s.x:>{s.width}}", u"a", s.y + 1\n    return False\n'
)
LAMBDA = "HOOKS = (\n    lambda s, world, actions, rewards, scratch: s.y > 1,\n)\nstep = HOOKS[0]\n"
SAME_TEXT = {
    "a comment and blank lines": HOOK.replace("    return", "\n    # over\n\n    return"),
    "a docstring": HOOK.replace("    s.x", '    """Plays.\n\nIt is short."""\n    s.x'),
    "layout": HOOK.replace("s.y + 1", "(\n        s.y+1\n    )").replace('u"a"', '"a"').replace('"a"', "'a'"),
    "code before it": "OTHER = 1\n\n\n" + HOOK,
}
OTHER_TEXT = {
    "a number": HOOK.replace("1", "2"),
    "text of an f-string": HOOK.replace(":>", ":<"),
    "a text": HOOK.replace('"a"', '"b"'),
    "an annotation": HOOK.replace("scratch)", "scratch) -> bool"),
}


def digest_with(folder: Path, text: str) -> str:
    """Digest of a game whose step stands in a file of its own."""
    path = folder / f"hook_{len(list(folder.iterdir()))}.py"
    path.write_text(text)
    names: dict[str, Any] = {"__name__": "hook"}
    exec(compile(text, str(path), "exec"), names)
    return rules_digest(replace(COURIERS, step=names["step"]))


def test_layout_comments_and_docstrings_decide_nothing(tmp_path: Path):
    texts = {"as it was": HOOK, **SAME_TEXT}
    assert len({digest_with(tmp_path, text) for text in texts.values()}) == 1


def test_what_the_text_says_decides(tmp_path: Path):
    texts = {"as it was": HOOK, "a lambda": LAMBDA, "its number": LAMBDA.replace("1", "2"), **OTHER_TEXT}
    assert len({digest_with(tmp_path, text) for text in texts.values()}) == len(texts)
    assert digest_with(tmp_path, LAMBDA.replace(" > 1", " > (1)")) == digest_with(tmp_path, LAMBDA)


# -- engines -----------------------------------------------------------------------------------------------------------


def other_method(self: Any, *arguments: Any) -> None:
    """Does nothing."""


def other_formula(value: Any, target: Any, share: Any) -> Any:
    return value


ENGINE_EDITS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "a method": lambda patch: patch.setattr(body_game.Pucks, "load", other_method),
    "a method called by a method": lambda patch: patch.setattr(body_game.Pucks, "_move", other_method),
    "a function": lambda patch: patch.setattr(body_game, "followed", other_formula),
    "a constant": lambda patch: patch.setattr(body_game, "STIFFNESS_NPM", 301.0),
    "a constant of the class": lambda patch: patch.setattr(body_game.Pucks, "command_fields", ("command_x_n",)),
}


@pytest.mark.parametrize("what", ENGINE_EDITS)
def test_the_code_of_an_engine_outside_decides(what: str, monkeypatch: pytest.MonkeyPatch):
    before = rules_digest(OUTSIDE)
    ENGINE_EDITS[what](monkeypatch)
    assert rules_digest(OUTSIDE) != before
    monkeypatch.undo()
    assert rules_digest(OUTSIDE) == before


def test_a_base_class_and_a_class_that_it_uses_decide_too(monkeypatch: pytest.MonkeyPatch):
    derived = replace(OUTSIDE, physics=f"{__name__}:Derived")
    before = rules_digest(derived)
    monkeypatch.setattr(Part, "weight", lambda self: 2.0)
    used = rules_digest(derived)
    monkeypatch.setattr(Base, "save", other_method)
    assert len({before, used, rules_digest(derived)}) == 3


class Part:
    def weight(self) -> float:
        return 1.0


class Base:
    def save(self) -> float:
        return Part().weight()


class Derived(Base): ...


@dataclass(frozen=True)
class Limits:
    highest: float = 1.0
    seen: list[float] = field(default_factory=list)


class Pool:
    def __init__(self) -> None:
        self.idle = 0

    def __repr__(self) -> str:
        return f"a pool of {self.idle}"


idle: dict[int, list[float]] = {}
waiting: list[float] = []
names: set[str] = set()
pool, limits = Pool(), Limits()


@functools.cache
def cached(x: float) -> float:
    return x


@contextlib.contextmanager
def managed() -> Iterator[float]:
    yield limits.highest


class Keeping:
    """An engine that uses all of these."""

    taken: tuple[str, ...] = ()

    def load(self) -> float:
        with managed() as highest:
            return highest + cached(2.0) + len(idle) + len(waiting) + len(names) + pool.idle


KEEPING = replace(OUTSIDE, physics=f"{__name__}:Keeping")


def test_what_an_engine_keeps_in_the_process_decides_nothing(monkeypatch: pytest.MonkeyPatch):
    before = rules_digest(KEEPING)
    monkeypatch.setitem(idle, 60, [1.0])
    monkeypatch.setattr(pool, "idle", 3)
    waiting.append(1.0)
    names.add("f16")
    limits.seen.append(2.0)
    assert rules_digest(KEEPING) == before


def doubled(x: float) -> float:
    return 2.0 * x


@contextlib.contextmanager
def closed() -> Iterator[float]:
    yield 0.0


KEEPING_EDITS: dict[str, tuple[str, Any]] = {
    "a number of a frozen dataclass": ("limits", Limits(highest=2.0)),
    "a function behind a cache": ("cached", functools.cache(doubled)),
    "a function behind a decorator": ("managed", closed),
    "the class of an object": ("pool", Part()),
}


@pytest.mark.parametrize("what", KEEPING_EDITS)
def test_what_an_engine_uses_decides(what: str, monkeypatch: pytest.MonkeyPatch):
    before = rules_digest(KEEPING)
    monkeypatch.setitem(globals(), *KEEPING_EDITS[what])
    assert rules_digest(KEEPING) != before


def test_the_methods_of_an_object_that_an_engine_uses_decide(monkeypatch: pytest.MonkeyPatch):
    before = rules_digest(KEEPING)
    monkeypatch.setattr(Pool, "__init__", lambda self: None)
    assert rules_digest(KEEPING) != before


# -- callers ---------------------------------------------------------------------------------------------------------


def test_a_constant_that_was_changed_is_seen_although_the_game_is_the_same(monkeypatch: pytest.MonkeyPatch):
    before = rules_digest(COURIERS)
    monkeypatch.setattr(size_game, "PATIENCE", 61)
    assert rules_digest(COURIERS) != before


def test_a_snapshot_of_rules_before_a_change_is_refused_after_it(monkeypatch: pytest.MonkeyPatch):
    def simulation() -> KernelSimulation:
        sim = KernelSimulation(COURIERS, 2, compiled=False)
        sim.reset(seed=1)
        return sim

    snapshot = simulation().snapshot()
    simulation().restore(snapshot)
    monkeypatch.setattr(size_game, "PATIENCE", 61)
    with pytest.raises(ValueError, match="the snapshot was taken under other rules of Couriers"):
        simulation().restore(snapshot)


@pytest.mark.parametrize("sizes", [{"agents": 7}, {"parcels": 11}, {"paces": 3}])
def test_a_snapshot_of_other_visible_sizes_is_refused_although_the_record_is_the_same(sizes: dict[str, int]):
    sim, other = KernelSimulation(COURIERS, 2), KernelSimulation(size_game.game(**sizes), 2)
    assert sim.states.dtype == other.states.dtype
    sim.reset(seed=1)
    other.reset(seed=1)
    before = other.states.copy()
    with pytest.raises(ValueError, match=r"other rules of Couriers \(code, numbers, agents or world\)"):
        other.restore(sim.snapshot())
    np.testing.assert_array_equal(other.states, before)


def test_a_snapshot_may_be_restored_after_documentation_has_changed():
    sim, other = KernelSimulation(COURIERS, 2), KernelSimulation(told_otherwise(COURIERS), 2)
    sim.reset(seed=1)
    other.restore(sim.snapshot())
    assert other.states.tobytes() == sim.states.tobytes()
