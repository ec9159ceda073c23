"""Plants faults in rules and in the suite, and lists which of them the conformance kit catches.

    python tests/reliability/planted_faults.py [--level fast] [--match TEXT ...] [--jobs 2]

The faults were written without a look at the checks. A fault of rules is a copy of a test game with a line changed;
a fault of the suite replaces a method in a forked process, and may show in any of the games. All checks pass without
a fault. Level ``fast`` must catch 90 %, ``full`` all: what ``fast`` has caught is not played again.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import hashlib
import multiprocessing
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from unittest import mock

TESTS = Path(__file__).resolve().parents[1]
SUITE = TESTS.parent / "envs" / "palaestra"
GAMES = SUITE / "games"
sys.path.insert(0, str(TESTS))

from reliability import (  # noqa: E402, F401 (they add)
    action_faults,
    batch_faults,
    blind_spots,
    face_faults,
    rule_faults,
    state_faults,
    view_faults,
)
from testing.planting import FAULTS, Fault  # noqa: E402

from palaestra import register, registry  # noqa: E402
from palaestra.testing import CHECKS  # noqa: E402
from palaestra.testing.harness import run_one  # noqa: E402
from palaestra.testing.subject import Level, Subject  # noqa: E402

SOURCES = {
    "Raid": TESTS / "games" / "two_team.py",
    "Orchard": TESTS / "games" / "orchard.py",
    "Pong": GAMES / "teams" / "pong.py",
    "Couriers": TESTS / "games" / "size_game.py",
    "MathText": GAMES / "mathtext" / "math_text.py",
    "SearchQA": GAMES / "search" / "search_qa.py",
    "Hunt": GAMES / "pursuit" / "graph_pursuit.py",
    "Flight": GAMES / "ucav" / "pursuit.py",
    "Robot": GAMES / "robots" / "ma.py",
}
KEYWORDS = {
    "Raid": {"observation": "dict"},
    "Orchard": {"observation": "dict"},
    "MathText": {"task": "algebra"},
    "SearchQA": {"form": "text"},
}
AS_THEY_ARE = ("MathText", "SearchQA", "Hunt", "Flight", "Robot")
"""Games that are not copied where nothing in them changes: their kernels may be in the cache."""
LEVELS: tuple[Level, ...] = ("fast", "full")
ANOTHER_PROCESS = "another_process_plays_the_same"


FOLDER = tempfile.TemporaryDirectory()
"""Of the games' copies; worker processes find it on the path."""


def changed_source(game: str, changes: tuple[tuple[str, str], ...]) -> str:
    """The source of a game with changes.

    Raises:
        ValueError: An old text does not stand there exactly once.
    """
    text = SOURCES[game].read_text(encoding="utf-8")
    text = text.replace('Parameter("flood", 0, 0, 9)', 'Parameter("flood", 0, 0, 1)')  # more do not fit into the list
    for old, new in changes:
        if text.count(old) != 1:
            raise ValueError(f"{old!r} stands {text.count(old)} times in {SOURCES[game]}")
        text = text.replace(old, new)
    return text


@functools.cache
def _module(game: str, changes: tuple[tuple[str, str], ...]) -> ModuleType:
    """A copy of a game's module with changes; those without any are made, and compiled, once for all faults."""
    text = changed_source(game, changes)
    name = f"planted_{game.lower()}_{hashlib.sha256(repr(changes).encode()).hexdigest()[:8]}"
    path = Path(FOLDER.name) / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    spec = spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _subject(game: str, level: Level, changes: tuple[tuple[str, str], ...] = ()) -> Subject:
    id = f"planted/{game}-v0"
    if not changes and game in AS_THEY_ARE:
        module = ".".join(("palaestra", *SOURCES[game].relative_to(SUITE).with_suffix("").parts))
    else:
        module = _module(game, changes).__name__
    register(id, f"{module}:game")
    return Subject(id, level, **KEYWORDS.get(game, {}))


def caught_by(fault: Fault, level: Level) -> list[str]:
    """Game and check that catch a fault: its game, and for a fault of the suite the others too, as ``check --all``."""
    games = [fault.game, *(game for game in SOURCES if game != fault.game and fault.patches)]
    for game in games:
        if names := failed(replace(fault, game=game), level):
            return [f"{game}, {names[0]}"]
    return []


def failed(fault: Fault, level: Level) -> list[str]:
    """The first check that fails, or all without a fault; ``crash: ...`` stands for an error outside the checks."""
    with contextlib.ExitStack() as stack:
        subject = _subject(fault.game, level, fault.changes)
        for owner, name, new in fault.patches() if fault.patches else ():
            stack.enter_context(mock.patch.object(owner, name, new, create=not hasattr(owner, name)))
        names = []
        try:
            subject.warm_up()
            for entry in CHECKS.values():
                if fault.patches and entry.name == ANOTHER_PROCESS:
                    continue  # it has no faults of this process
                if level in entry.levels and run_one(subject, entry).status == "FAILED":
                    names.append(entry.name)
                    if fault.changes or fault.patches:
                        break
        except Exception as error:
            names.append(f"crash: {type(error).__name__}: {error}".splitlines()[0])
        return names


def _play(task: tuple[int, Level]) -> tuple[int, list[str], float]:
    number, level = task
    started = time.perf_counter()
    if number < 0:
        return number, failed(Fault("none", game=list(SOURCES)[-number - 1]), level), time.perf_counter() - started
    return number, caught_by(FAULTS[number], level), time.perf_counter() - started


def _play_apart(task: tuple[int, Level]) -> tuple[int, list[str], float]:
    """`_play` in a forked process of its own, which may start workers: a fault must not outlive its check."""
    context = multiprocessing.get_context("fork")
    result, answer = context.Pipe(duplex=False)
    process = context.Process(target=lambda: answer.send(_play(task)))
    process.start()
    answer.close()
    try:
        return result.recv()
    except EOFError:
        return task[0], ["crash: the process ended"], 0.0
    finally:
        process.join()


def main() -> int:
    """Plays all faults; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--level", choices=LEVELS, help="this level alone; both if left out")
    parser.add_argument("--match", nargs="+", default=[""], help="only faults whose description holds such a text")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    args = parser.parse_args()
    anybody = [(k, fault) for k, fault in enumerate(FAULTS) if not fault.check]
    chosen = {k for k, fault in anybody if any(text in fault.about for text in args.match)}
    left, caught, sound = set(chosen), dict.fromkeys(LEVELS, 0), True
    sys.path.insert(0, FOLDER.name)
    for game in SOURCES:  # forked processes need not compile them
        _subject(game, "full").warm_up()
        registry.ROWS.pop(f"planted/{game}-v0")
    levels: tuple[Level, ...] = (args.level,) if args.level else LEVELS
    for level in levels:
        tasks: list[tuple[int, Level]] = [(number, level) for number in (*range(-len(SOURCES), 0), *sorted(left))]
        with ThreadPoolExecutor(args.jobs) as pool:
            for done in as_completed([pool.submit(_play_apart, task) for task in tasks]):
                number, names, seconds = done.result()
                if number < 0:
                    sound = sound and not names
                    print(f"{level:4}  without a fault, {list(SOURCES)[-number - 1]}: {', '.join(names) or 'passes'}")
                    continue
                if names:
                    left.discard(number)
                print(
                    f"{level:4}  {seconds:5.0f} s  {FAULTS[number].about}: {', '.join(names) or 'NOT CAUGHT'}",
                    flush=True,
                )
        caught[level] = len(chosen) - len(left)
        print(f"{level}: {caught[level]} of {len(chosen)} faults caught\n", flush=True)
    enough = caught["fast"] >= 0.9 * len(chosen) or args.level == "full"
    return 0 if sound and enough and (not left or args.level == "fast") else 1


if __name__ == "__main__":
    sys.exit(main())
