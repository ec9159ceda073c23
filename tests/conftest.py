"""What holds for all tests: no window, no sound, no oversubscribed cores, no random examples, a state folder
of their own; and fixtures that several folders use."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from palaestra.core.run.simulation import Simulation
    from palaestra.game import Game

# Before anything imports pygame, matplotlib or torch.
os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
os.environ.setdefault("SDL_AUDIODRIVER", "dummy")
os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("PALAESTRA_VERBOSE", "0")  # what stderr says does not depend on the cache

# What is imported and collected lives as long as the run, and much of what tests compile: looking for garbage in it
# takes time.
gc.disable()


def pytest_collection_finish() -> None:
    gc.enable()
    gc.freeze()
    gc.set_threshold(20_000)


WORKER = os.environ.get("PYTEST_XDIST_WORKER", "")


class Backwards:
    """Every other process collects the last file first: each reads half of the byte code that another has written.

    A plugin of its own: a hook of this file is not called for the folder `tests`.
    """

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        report = yield
        if all(isinstance(node, pytest.File | pytest.Directory) for node in report.result or ()):
            report.result.reverse()
        return report


def pytest_configure(config: pytest.Config) -> None:
    if WORKER[-1:] in tuple("13579"):
        config.pluginmanager.register(Backwards())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """`make test` runs tests marked ``jitless`` without the compiler alone: one that is skipped there runs nowhere."""
    if WORKER:  # the same order in each
        items.sort(key=lambda item: item.path.parts)
    if os.environ.get("NUMBA_DISABLE_JIT") == "1" and sys.platform != "win32":
        for item in items:
            names = {mark.name for mark in item.iter_markers()}
            is_skipped = any(mark.args[:1] == (True,) for mark in item.iter_markers("skipif"))
            if is_skipped and "jitless" in names and names.isdisjoint(("check", "slow")):
                raise pytest.UsageError(f"{item.nodeid} is skipped without the compiler: mark it `check` too")


# The same examples in every run: a failing test fails everywhere. No deadline: the first call of a kernel compiles it.
settings.register_profile("palaestra", derandomize=True, deadline=None)
settings.load_profile("palaestra")


@pytest.fixture(autouse=True, scope="session")
def own_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A folder for the key of checkpoints, in this process and in those that it starts: the user's is not touched."""
    patch = pytest.MonkeyPatch()
    folder = str(tmp_path_factory.mktemp("state"))
    patch.setenv("XDG_STATE_HOME", folder)
    patch.setenv("LOCALAPPDATA", folder)
    yield
    patch.undo()


@pytest.fixture
def rules() -> Iterator[Callable[..., Simulation]]:
    """``rules(game, num_envs=1, **keywords)``: a simulation whose rules run as plain Python, closed after the test.

    For tests of rules that play a few decisions: nothing is compiled, and an index outside an array is an error.
    ``game`` is a `Game`, with the keywords of `Simulation`, or an id, with those of `palaestra.make_batch`.
    """
    from palaestra import make_batch
    from palaestra.core.run.kernel import KernelSimulation
    from palaestra.core.run.physics import PhysicsSimulation

    made: list[Simulation] = []

    def rules(game: Game | str, num_envs: int = 1, **keywords: Any) -> Simulation:
        if isinstance(game, str):
            made.append(make_batch(game, num_envs, compiled=False, **keywords))
        else:
            kind = KernelSimulation if game.physics is None else PhysicsSimulation
            made.append(kind(game, num_envs, compiled=False, **keywords))
        return made[-1]

    yield rules
    for sim in made:
        sim.close()


@pytest.fixture(scope="module")
def rules_do_not_change() -> Iterator[None]:
    """The code of each game is walked once, not each time that the module makes or plays it."""
    from palaestra.core.compile.reachable import unchanged_rules

    with unchanged_rules():
        yield


@pytest.fixture
def broken_games_are_registered() -> Iterator[None]:
    from testing.planting import games, no_games

    games()
    yield
    no_games()
