"""How faults are planted, and the table of them.

A fault that a check of its own has to see is a rule broken by number in `broken_games`, or a face broken after it was
made (`testing.faults`, `testing.face_faults`). One that any check may see is a line of a game's source that is changed,
or something of the suite that is replaced (`tests/reliability`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import gymnasium
from games import reach, size_game  # noqa: F401 (they register their ids)
from testing import broken_games

from palaestra import register, registry
from palaestra.core.run.kernel import KernelSimulation
from palaestra.game import Game, Option, with_options
from palaestra.testing import Subject

DUEL, APART, TUG, SPOKEN, CROWD, HALF_DOCUMENTED, CALLABLE, OPENING, IDLE = (
    "faults/Duel-v0",
    "faults/Apart-v0",
    "faults/Tug-v0",
    "faults/Spoken-v0",
    "faults/Crowd-v0",
    "faults/HalfDocumented-v0",
    "faults/Callable-v0",
    "faults/Opening-v0",
    "faults/Idle-v0",
)
COURIERS, REACH = "tests/Couriers-v0", "tests/Reach-v0"
FACES = ("batch", "env", "vec", "parallel", "aec")


Patch = tuple[Any, str, Any]
"""Owner, name and new value of what is replaced."""
Patches = Callable[[], Iterator[Patch]]


@dataclass(frozen=True)
class Fault:
    """A fault.

    Attributes:
        about: The fault in words.
        check: Name of the check that has to see it; empty if any may.
        match: Pattern that the check's message has to show: it failed for the planted reason.
        subject: Makes the faulty subject of that check.
        game: The game that shows it to any check.
        changes: Pairs of old and new text of its source; none for a fault of the suite.
        patches: What is replaced in the suite; None for a fault of rules.
    """

    about: str
    check: str = ""
    match: str = ""
    subject: Callable[[], Subject] | None = None
    game: str = ""
    changes: tuple[tuple[str, str], ...] = ()
    patches: Patches | None = None


class Tampered(Subject):
    """A subject whose faces are broken after they were made."""

    def __init__(self, id: str, face: str, tamper: Callable[[Any], Any], **keywords: Any) -> None:
        super().__init__(id, **keywords)
        self._face, self._tamper = face, tamper

    def batch(self, num_envs: int = 1, **options: Any) -> Any:
        return self._broken("batch", super().batch(num_envs, **options))

    def env(self, **options: Any) -> Any:
        return self._broken("env", super().env(**options))

    def vec(self, num_envs: int, **options: Any) -> Any:
        return self._broken("vec", super().vec(num_envs, **options))

    def parallel(self, **options: Any) -> Any:
        return self._broken("parallel", super().parallel(**options))

    def aec(self, **options: Any) -> Any:
        return self._broken("aec", super().aec(**options))

    def _broken(self, face: str, made: Any) -> Any:
        if face == self._face:
            self._tamper(made)
        return made


class Outside(Subject):
    """A subject whose rules read beyond the end of an array."""

    @property
    def game(self) -> Game:
        return dataclasses.replace(super().game, observe=look_outside)

    def batch(self, num_envs: int = 1, **options: Any) -> Any:
        return KernelSimulation(self.game, num_envs, **options)


def look_outside(s: Any, world: Any, observations: Any, scratch: Any) -> None:
    s.health[0] = s.health[4]


def opening_duel(size: int = 2, level: str | None = None) -> Game:
    """A factory that opens what a keyword names, and does not declare it."""
    if level is not None:
        Path(level).read_text(encoding="utf-8")
    return broken_games.duel()


@with_options(
    Option("ring", False, "the place is another one", only={"size": 3}),
    Option("size", 2, "of the place", low=1, high=3),
)
def idle_option(options: Any) -> Game:
    """A factory that overlooks an option."""
    return replace(broken_games.duel(), horizon=20 + options.size)


def games() -> None:
    """Registers the games."""
    register(DUEL, "testing.broken_games:duel")
    register(APART, "testing.broken_games:apart")
    register(TUG, "testing.broken_games:tug")
    register(SPOKEN, "testing.broken_games:spoken")
    register(CROWD, "testing.broken_crowd:crowd")
    register(HALF_DOCUMENTED, "testing.broken_games:half_documented")
    gymnasium.register(
        CALLABLE, entry_point=lambda **keywords: registry.make_env(**keywords), kwargs={"game_id": CALLABLE}
    )
    register(CALLABLE, "testing.broken_games:tug")
    register(OPENING, opening_duel)
    register(IDLE, idle_option)


def no_games() -> None:
    """Takes them back: other tests look at all ids."""
    for id in (DUEL, APART, TUG, SPOKEN, CROWD, HALF_DOCUMENTED, CALLABLE, OPENING, IDLE):
        registry.ROWS.pop(id, None)
        gymnasium.registry.pop(id, None)


FAULTS: list[Fault] = [
    Fault(
        "an index outside its array",
        "rules_run_as_plain_python",
        r"Duel: observe, .*planting.py line \d+: s.health\[4\]: index 4 is out of bounds for axis 0 with size 4",
        lambda: Outside(DUEL),
    ),
    Fault(
        "the dead have rewards of their own",
        "no_reward_after_leaving",
        r"lane \d+, \w+_\d gets .* after it has left the match",
        lambda: Subject(APART, fault=broken_games.SOUND),
    ),
    Fault(
        "the factory opens a file whose name is an undeclared keyword",
        "keywords_that_name_files_are_declared",
        r"level=.*palaestra_canary.* reaches open: declare .*Option\('level', .* texts=",
        lambda: Subject(OPENING),
    ),
    Fault(
        "the factory overlooks an option",
        "each_option_makes_a_difference",
        r"ring=True makes no difference beside \{'size': 3\}",
        lambda: Subject(IDLE),
    ),
]


def rule(check: str, name: str, match: str, id: str = DUEL) -> None:
    """Plants a rule that is broken by number."""
    number = broken_games.NUMBER[name]
    FAULTS.append(Fault(name, check, match, lambda: Subject(id, fault=number)))


def codec(name: str, match: str) -> None:
    """Plants a broken codec."""
    number = broken_games.NUMBER[name]
    FAULTS.append(Fault(name, "codec_results_are_in_spaces", match, lambda: Subject(TUG, words=number)))


def face(check: str, which: str, match: str, id: str = DUEL) -> Callable[[Callable[[Any], None]], Callable]:
    """Plants a broken face."""
    assert which in FACES

    def plant(tamper: Callable[[Any], None]) -> Callable[[Any], None]:
        about = (tamper.__doc__ or "").strip()
        keywords = {} if id in (COURIERS, REACH) else {"fault": broken_games.SOUND}  # what is given is not drawn
        FAULTS.append(Fault(about, check, match, lambda: Tampered(id, which, tamper, **keywords)))
        return tamper

    return plant


def changed_rule(about: str, game: str, old: str, new: str, *more: tuple[str, str]) -> None:
    """Plants a change of source: what is written instead of a text, and instead of others where one is not enough."""
    FAULTS.append(Fault(about, game=game, changes=((old, new), *more)))


def suite(game: str = "Raid") -> Callable[[Patches], Patches]:
    """Plants a fault of the suite: a generator of what is replaced, named by its docstring."""

    def add(patches: Patches) -> Patches:
        FAULTS.append(Fault((patches.__doc__ or "").strip().rstrip("."), game=game, patches=patches))
        return patches

    return add


def replace_step(made: Any, change: Callable[[Any, tuple], Any]) -> None:
    """Lets ``change(action, result)`` answer in the place of ``step``."""
    step = made.step
    made.step = lambda action: change(action, step(action))
