"""Sound games pass every check, and some check uses each public method and option of the simulation and its faces."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from games import reach, size_game  # noqa: F401 (they register their ids)
from testing.planting import COURIERS, CROWD, DUEL, SPOKEN, TUG, games, no_games

from palaestra.core.faces.aec_env import GameAECEnv
from palaestra.core.faces.gym_env import GameEnv
from palaestra.core.faces.parallel_env import GameParallelEnv
from palaestra.core.faces.vector_env import GameVectorEnv
from palaestra.core.run.simulation import Simulation
from palaestra.testing import Report, check

pytestmark = pytest.mark.check

CLASSES = (Simulation, GameEnv, GameVectorEnv, GameParallelEnv, GameAECEnv)
NOT_FOR_USERS = {
    "Simulation(allocate=)": "memory of worker processes",
    "Simulation(attach=)": "memory of worker processes",
    "Simulation.close": "each kind of simulation has its own, which calls it",
    "GameVectorEnv.close_extras": "Gymnasium's close calls it",
    "GameVectorEnv.close_extras(kwargs=)": "Gymnasium's signature; nothing is read",
    "GameEnv.reset(options=)": "Gymnasium's signature; a match of one lane has none",
    "GameParallelEnv.reset(options=)": "PettingZoo's signature, likewise",
    "GameAECEnv.reset(options=)": "PettingZoo's signature, likewise",
    "GameVectorEnv.call(args=)": "Gymnasium's signature; lanes have no methods",
    "GameVectorEnv.call(kwargs=)": "Gymnasium's signature; lanes have no methods",
}
"""Words that no check says, with the reason."""


def public_words() -> set[str]:
    """``Class.method``, ``Class.method(option=)`` and ``Class(option=)`` of everything public."""
    words: set[str] = set()
    for cls in CLASSES:
        for name, member in methods_of(cls).items():
            words.add(f"{cls.__name__}.{name}")
            words |= {f"{cls.__name__}.{name}({option}=)" for option in options_of(member)}
        words |= {f"{cls.__name__}({option}=)" for option in options_of(cls.__init__)}
    return words - set(NOT_FOR_USERS)


def methods_of(cls: type) -> dict[str, Callable]:
    """The public methods and properties that a class defines itself."""
    members = {
        name: member.fget if isinstance(member, property) else getattr(cls, name)
        for name, member in vars(cls).items()
        if not name.startswith("_")
    }
    return {name: member for name, member in members.items() if inspect.isfunction(member)}


def options_of(function: Any) -> list[str]:
    """Arguments that may be left out."""
    parameters = inspect.signature(function).parameters.values()
    loose = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return [p.name for p in parameters if p.default is not inspect.Parameter.empty or p.kind in loose]


def said(cls: type, name: str, function: Callable, arguments: tuple, keywords: dict[str, Any]) -> set[str]:
    """The words of one call: the method, and the options that differ from their default."""
    bound = inspect.signature(function).bind(*arguments, **keywords).arguments
    defaults = {p.name: p.default for p in inspect.signature(function).parameters.values()}
    given = [n for n in options_of(function) if n in bound and bound[n] is not defaults[n] and not _is_empty(bound[n])]
    place = place_of(cls, name)
    return {place, *(f"{place}({option}=)" for option in given)}


def place_of(cls: type, name: str) -> str:
    return cls.__name__ if name == "__init__" else f"{cls.__name__}.{name}"


def _is_empty(value: Any) -> bool:
    return isinstance(value, dict | tuple) and not value


@pytest.fixture(scope="module")
def checked() -> Iterator[tuple[set[str], list[Report]]]:
    """What the checks use on sound games that, together, have everything; and the reports."""
    used: set[str] = set()
    patch = pytest.MonkeyPatch()

    def note(cls: type, name: str, function: Callable) -> Callable:
        place = place_of(cls, name)
        open_words = {place, *(f"{place}({option}=)" for option in options_of(function))}

        @functools.wraps(function)
        def noted_function(*arguments: Any, **keywords: Any) -> Any:
            caller = sys._getframe(1).f_globals["__name__"]
            if open_words and (name == "__init__" or caller.startswith("palaestra.testing.")):
                used.update(said(cls, name, function, arguments, keywords))
                open_words.difference_update(used)
            return function(*arguments, **keywords)

        return noted_function

    for cls in CLASSES:
        for name, member in methods_of(cls).items():
            is_property = isinstance(vars(cls)[name], property)
            noted_member: Any = note(cls, name, member)
            if is_property:
                noted_member = property(noted_member, vars(cls)[name].fset)
            patch.setattr(cls, name, noted_member)
        patch.setattr(cls, "__init__", note(cls, "__init__", cls.__init__))
    games()
    reports = [check(id, fault=0) for id in (DUEL, TUG, SPOKEN, CROWD)]
    reports.append(check(COURIERS, only=["face_attributes_match"]))
    reports.append(check("tests/Reach-v0", only=["goal_rewards_are_paid"]))
    yield used, reports
    no_games()
    patch.undo()


def test_sound_games_pass_everything(checked: tuple[set[str], list[Report]]):
    for report in checked[1]:
        assert report.passed, str(report)


def test_every_public_call_and_option_is_used_by_a_check(checked: tuple[set[str], list[Report]]):
    unused = sorted(public_words() - checked[0])
    assert not unused, f"no check uses {', '.join(unused)}"
