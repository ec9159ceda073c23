"""Compiles the games of many ids ahead of time, each kernel once, and removes what the cache no longer needs."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from palaestra import registry
from palaestra.core.compile import compiler
from palaestra.core.compile.linker import Kernel, hooks_of, link
from palaestra.core.compile.reachable import reachable
from palaestra.core.contract import factories
from palaestra.core.run.kernel import KernelSimulation
from palaestra.core.run.physics import PhysicsSimulation
from palaestra.game import Game

OTHERS = {
    "palaestra.exact": "palaestra.exact.values:compile_solvers",
    "palaestra.replay": "palaestra.replay.lane_hashes:compiled_calls",
}
"""What is compiled besides games, solvers and the recorder, by the name that stands for it among those of games."""
OTHERS_SIZE = 10_000
"""Their `code_size`, about: the solvers take as long as a large game."""
KEPT_DAYS = 30.0
"""An entry of the cache that no id uses is removed once it was not read for so long."""
ENTRY = re.compile(r"\.(\w+_[0-9a-f]{16})-\d+\.py\d+(\.\d+)?\.nb[ic]$")
"""Name of a file of the cache; its group is the name of the driver."""


def warm(games: Iterable[str], jobs: int = 1) -> list[dict[str, Any]]:
    """Compiles every kernel that these games need, the largest first, each once.

    Args:
        games: Ids, factories ``"module:function"`` of games that have no id, or names of `OTHERS`.
        jobs: Processes that compile at the same time; one compiles in this process.

    Returns:
        One row a game in the order given: ``id``, ``status`` (``"ready"``, ``"missing"`` where an optional package is,
        ``"failed"``), ``seconds`` (0 where another game has the same kernel) and ``note``.
    """
    rows: dict[str, dict[str, Any]] = {}
    owners: dict[Kernel, str] = {}
    sizes: dict[str, int] = {}
    shared: dict[str, str] = {}
    for name in games:
        if name in OTHERS:
            rows[name], sizes[name] = {"id": name}, OTHERS_SIZE
            continue
        outcome, game = _attempt(lambda name=name: find_game(name))
        rows[name] = {"id": name, **outcome}
        if game is None:
            continue
        outcome, kernel = _attempt(lambda game=game: link(game))
        if kernel is None:
            rows[name].update(outcome)
        elif owners.setdefault(kernel, name) == name:
            sizes[name] = code_size(game)
        else:
            shared[name] = owners[kernel]
    order = sorted(sizes, key=lambda name: -sizes[name])
    for number, (name, outcome) in enumerate(_compiled(order, jobs), 1):
        rows[name].update(outcome)
        print(f"{number}/{len(order)} {name}: {outcome['status']}, {outcome['seconds']:.1f} s", file=sys.stderr)
    for name, owner in shared.items():
        rows[name].update(status=rows[owner]["status"], note=f"the kernel of {owner}")
    return list(rows.values())


def find_game(name: str) -> Game:
    """The game of an id or of a factory ``"module:function"``."""
    return registry.make_game(name)[0] if name in registry.ROWS else factories.load(name)()


def code_size(game: Game) -> int:
    """Bytes of the byte code that is compiled for a game: more of it takes longer."""
    return sum(len(found.value.__code__.co_code) for found in reachable(hooks_of(game)) if found.is_new)


def _compiled(names: Sequence[str], jobs: int) -> Iterable[tuple[str, dict[str, Any]]]:
    """Names and outcomes as they come."""
    if jobs == 1:
        with compiler.silence():
            for name in names:
                yield name, _compile(name)
        return
    try:
        executor = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"))
    except OSError as error:  # its locks lie in /dev/shm
        raise OSError(error.errno, f"--jobs {jobs} needs shared memory ({error.strerror}): say --jobs 1") from error
    with executor as pool:
        waiting = {pool.submit(_compile, name): name for name in names}
        for done in as_completed(waiting):
            yield waiting[done], done.result()


def _compile(name: str) -> dict[str, Any]:
    if name in OTHERS:
        return _attempt(lambda: factories.load(OTHERS[name])())[0]
    return _attempt(lambda: play_one_decision(find_game(name)))[0]


def play_one_decision(game: Game) -> None:
    """Compiles all drivers of a game by playing a decision of it."""
    kind = KernelSimulation if game.physics is None else PhysicsSimulation
    sim = kind(game, 2, threads=2)  # two threads use one driver more
    try:
        sim.reset(seed=0)
        for team in game.teams if len(game.teams) > 1 else ():
            sim.set_opponent(team, "random")
        sim.step()
        sim.state()
        link(game).compile_late()
    finally:
        sim.close()


def _attempt(call: Callable[[], Any]) -> tuple[dict[str, Any], Any]:
    """How a call went, and what it returned or None."""
    start = time.perf_counter()
    try:
        result = call()
    except ImportError as error:
        return {"status": "missing", "seconds": 0.0, "note": str(error)}, None
    except Exception as error:
        note = f"{type(error).__name__}: {error}".splitlines()[0]
        return {"status": "failed", "seconds": time.perf_counter() - start, "note": note}, None
    return {"status": "ready", "seconds": time.perf_counter() - start, "note": ""}, result


def prune(games: Iterable[str], now: float, days: float = KEPT_DAYS) -> dict[str, Any]:
    """Removes entries of the cache that none of these games uses, if they were not read for long.

    Args:
        games: As for `warm`; looked at are the folders that hold their kernels.
        now: Seconds since the epoch.
        days: Entries that were read or written within so many days stay.

    Returns:
        ``files`` that were removed, their ``megabytes``, and the ``modules`` of the games that they were of.
    """
    used, folders = set(), set()
    for name in games:
        kernel = _attempt(lambda name=name: link(find_game(name)))[1]
        if kernel is not None:
            used |= kernel.cache_names()
            folders |= kernel.cache_folders()
    removed: dict[Path, int] = {}
    for path in sorted(path for folder in folders for path in folder.glob("*.nb[ic]")):
        found, status = ENTRY.search(path.name), path.stat()
        if found and found[1] not in used and max(status.st_atime, status.st_mtime) < now - days * 86_400:
            path.unlink(missing_ok=True)
            removed[path] = status.st_size
    modules = sorted({path.name.partition(".")[0] for path in removed})
    return {"files": len(removed), "megabytes": sum(removed.values()) / 1e6, "modules": modules}
