"""Kernels own no memory: neither the compiled code of a game nor a hook of its author may allocate."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from games import duel, two_team_homogeneous
from games.play import all_bytes, random_actions

from palaestra.core.compile import compiler, disk_cache, linker
from palaestra.core.compile.linker import jit_disabled
from palaestra.core.compile.reachable import unchanged_rules
from palaestra.core.run.kernel import KernelSimulation
from palaestra.game import Choice, Field, Game, Role
from palaestra.games.calibration import cartpole

pytestmark = [pytest.mark.skipif(jit_disabled(), reason="nothing is compiled"), pytest.mark.check]


@pytest.fixture
def compiles_anew(monkeypatch: pytest.MonkeyPatch):
    """Nothing is served from memory or disk: what was loaded from the disk has no intermediate code to look at."""
    import numba

    monkeypatch.setattr(linker, "_linked", {})
    monkeypatch.setattr(disk_cache, "_warned", set())
    monkeypatch.setattr(
        compiler, "compile_cached", lambda function: numba.njit(**compiler.options(inside=False))(function)
    )


def play(game: Game, decisions: int = 12) -> tuple[KernelSimulation, bytes]:
    """Plays two lanes by random actions."""
    sim, rng = KernelSimulation(game, 2), np.random.default_rng(3)
    sim.reset(seed=3)
    seen = all_bytes(sim).tobytes()
    for _ in range(decisions):
        sim.step(random_actions(sim, rng))
        seen += all_bytes(sim).tobytes()
    return sim, seen


def machine_code(sim: KernelSimulation) -> bytes:
    """The stored machine code of a game, which has the names of all functions outside that it calls."""
    kernel = sim.kernel
    files = [f for folder in kernel.cache_folders() for n in kernel.cache_names() for f in folder.glob(f"*.{n}-*.nbc")]
    return b"".join(file.read_bytes() for file in files)


@pytest.mark.parametrize("game", [two_team_homogeneous.game, duel.game])
def test_kernels_count_no_references(game: Callable[[], Game]):
    sim, _ = play(game())
    code = machine_code(sim)
    assert b"step_lanes" in code
    assert b"NRT_" not in code


def test_a_numba_that_does_not_know_the_options_gives_the_same_bits_with_one_warning(monkeypatch: pytest.MonkeyPatch):
    sim, seen = play(cartpole.game())
    monkeypatch.setattr(linker, "_linked", {})
    monkeypatch.setattr(disk_cache, "_warned", set())
    monkeypatch.setattr(compiler, "known_options", lambda: frozenset({"nogil", "error_model"}))
    with pytest.warns(RuntimeWarning, match="does not know the options") as warned:
        plain, seen_plainly = play(cartpole.game())
    assert len(warned) == 1
    assert plain.kernel is not sim.kernel  # nor would the one be loaded for the other: see the name
    names = [s.kernel.cache_names() for s in (sim, plain)]
    assert names[0].isdisjoint(names[1])
    assert b"NRT_" not in machine_code(sim)
    assert b"NRT_" in machine_code(plain)
    assert seen == seen_plainly


def test_this_numba_knows_the_options():
    assert set(compiler.TUNING) <= compiler.known_options()


def tiny(**hooks: Callable) -> Game:
    """A game of one runner that may have any hook replaced."""
    role = Role("runner", ("red_0",), (Field("x", (), -1e9, 1e9),), (Choice("go", 2),))
    state = (("x", "f8", (4,)), ("y", "f8", (4,)))
    return Game(name="Tiny", roles=(role,), state=state, **{"reset": reset, "step": step, "observe": observe, **hooks})


def reset(s, world):
    s.x[0] = 0.0


def step(s, world, actions, rewards, scratch):
    s.x[0] += 1.0
    return False


def observe(s, world, observations, scratch):
    observations.runner[0].x = s.x[0]


def helper(s):
    s.x[1] = 1.0
    total = np.zeros(3)  # here
    return total[0]


def helped(s, world):
    s.x[0] = helper(s)


def listing(s, world):
    s.x[0] = [1.0, 2.0][int(s.y[0])]  # here


def temporary(s, world, actions, rewards, scratch):
    s.x[:] = s.y + 1.0  # here
    return False


def copying(s, world, observations, scratch):
    s.x[1:3] = s.y[0:2]  # here


def middle(s):  # here
    return s.x[1:3]


def slicing(s, world):
    s.x[0] = middle(s)[0]


def line_of(function: Callable) -> str:
    code = function.__code__  # type: ignore[attr-defined]
    with open(code.co_filename, encoding="utf-8") as file:
        lines = file.readlines()
    first = code.co_firstlineno
    return f"test_linker.py line {next(n for n in range(first, first + 9) if '# here' in lines[n - 1])}"


@pytest.mark.parametrize(
    ("hooks", "hook", "function", "what"),
    [
        ({"reset": helped}, "reset", helper, "allocates memory in 'helper'"),
        ({"reset": listing}, "reset", listing, "allocates memory in 'listing'"),
        ({"step": temporary}, "step", temporary, "allocates memory in 'temporary'"),
        ({"observe": copying}, "observe", copying, "allocates memory in 'copying'"),
        ({"reset": slicing}, "reset", middle, "returns an array that a function made in 'middle'"),
    ],
)
def test_a_hook_that_needs_memory_is_refused_by_name(hooks: dict, hook: str, function: Callable, what: str):
    with pytest.raises(ValueError, match="kernels own no memory") as refused:
        KernelSimulation(tiny(**hooks), 1)
    message = str(refused.value)
    assert message.startswith(f"Tiny: the hook '{hook}' {what} ({line_of(function)}): ")


def test_a_hook_with_another_mistake_keeps_numbas_own_words():
    def mistaken(s, world):
        s.x[0] = s.no_such_field

    with pytest.raises(Exception, match="no_such_field") as refused:
        KernelSimulation(tiny(reset=mistaken), 1)
    assert "own no memory" not in str(refused.value)


RULES = """
from palaestra.game import Choice, Field
from palaestra.game import Game, Role
def reset(s, world):
    s.x = 0.0
def step(s, world, actions, rewards, scratch):
    s.x += 1.0
    return False
def step_slowly(s, world, actions, rewards, scratch):
    s.x += 0.5
    return False
def observe(s, world, observations, scratch):
    observations.runner[0].x = s.x
def game(name, step=step):
    role = Role("runner", ("red_0",), (Field("x", (), -1e9, 1e9),), (Choice("go", 2),))
    return Game(name=name, roles=(role,), state=(("x", "f8"),), reset=reset, step=step, observe=observe)
"""
PLAY = """
from rules import game, step_slowly
from palaestra.core.compile import linker
from palaestra.core.run.kernel import KernelSimulation
from palaestra.core.run.workers import ProcessSimulation
def play(kind, game, **options):
    sim = kind(game, 2, **options)
    sim.reset(seed=1)
    sim.step([[0], [0]])
    sim.close()
if __name__ == "__main__":
    play(KernelSimulation, game("Tiny"))
    linker._linked.clear()
    play(KernelSimulation, game("Tiny"))  # it is loaded from the disk
    play(ProcessSimulation, game("Shared", step_slowly), workers=1)
"""


def said(folder: Path) -> list[str]:
    """Lines on stderr of a process that plays."""
    (folder / "rules.py").write_text(RULES)
    (folder / "play.py").write_text(PLAY)
    places = {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "NUMBA_CACHE_DIR": str(folder / "cache")}
    run = subprocess.run(
        [sys.executable, str(folder / "play.py")],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, **places, "PALAESTRA_VERBOSE": ""},
    )
    assert run.returncode == 0, run.stderr
    return run.stderr.splitlines()


def test_a_wait_for_the_compiler_is_announced_in_a_log_too_once_a_kernel_and_not_by_workers(tmp_path: Path):
    tiny, shared = said(tmp_path)
    assert re.fullmatch(
        r"palaestra: compiling Tiny, usually \d+ to \d+ s \(once, .*`palaestra doctor --warm`.*\)", tiny
    )
    assert shared.startswith("palaestra: compiling Shared, ")


def test_two_kernels_of_one_name_are_announced_apart_and_more_code_takes_longer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    import numba

    def announced(function: Callable) -> str:
        with compiler.announcement("Twin", [function]):
            assert numba.njit(lambda x: x)(1) == 1
        return capsys.readouterr().err

    monkeypatch.delenv("PALAESTRA_VERBOSE")
    written: dict[str, Any] = {}
    exec("def large(x):\n" + " x += 1\n" * 2000, written)
    seconds = round(len(written["large"].__code__.co_code) / compiler.BYTES_A_SECOND)
    assert seconds > 1
    assert announced(twice) == "palaestra: compiling Twin, usually 1 to 3 s (in every process: no cache)\n"
    assert announced(twice) == ""
    assert f" usually {seconds} to {3 * seconds} s " in announced(written["large"])


@pytest.mark.parametrize(
    ("wish", "stderr", "expected"), [(None, 1, True), ("1", 1, True), ("0", 1, False), ("1", 0, False)]
)
def test_one_variable_and_callers_that_report_themselves_silence_the_announcement(
    wish: str | None, stderr: int, expected: bool, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sys, "stderr", SimpleNamespace() if stderr else None)
    monkeypatch.delenv("PALAESTRA_VERBOSE")
    if wish is not None:
        monkeypatch.setenv("PALAESTRA_VERBOSE", wish)
    assert compiler.is_announced() is expected
    with compiler.silence():
        assert not compiler.is_announced()


def twice(x):
    return 2 * x


@pytest.mark.usefixtures("compiles_anew")
def test_a_helper_is_compiled_once_for_all_constants():
    from numba.core import event

    compiled: list[str] = []

    class Listener(event.Listener):
        def on_start(self, event: Any) -> None:
            compiled.append(event.data["dispatcher"].py_func.__name__)

        def on_end(self, event: Any) -> None:
            pass

    def step(s, world, actions, rewards, scratch):
        s.x = twice(1) + twice(2) + twice(actions.runner[0].go)
        return False

    def reset(s, world):
        s.x = 0

    def observe(s, world, observations, scratch):
        observations.runner[0].x = s.x

    role = Role("runner", ("red_0",), (Field("x", (), 0, 100),), (Choice("go", 2),))
    game = Game("Twice", roles=(role,), state=(("x", "i8"),), reset=reset, step=step, observe=observe)
    with event.install_listener("numba:compile", Listener()):
        sim = KernelSimulation(game, 1)
    assert compiled.count("twice") == 1
    sim.reset(seed=0)
    sim.step(np.array([[1]]))
    assert sim.states["x"][0] == 8


def test_a_game_is_made_without_importing_coverage_and_all_of_scipy_and_both_are_still_found():
    program = (
        "import sys, numpy as np, palaestra; palaestra.make_batch('palaestra/CartPole-v0', 1); "
        "made = 'scipy.linalg' in sys.modules or 'coverage' in sys.modules; "
        "import coverage, numba; from numba.np import arraymath; "
        "dot = numba.njit(lambda a: np.dot(a, a)); print(made, dot(np.ones(2)), arraymath._HAVE_BLAS)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False", "2.0", "True"]


def test_code_is_walked_once_where_rules_are_said_to_be_unchanged(monkeypatch: pytest.MonkeyPatch):
    game, walks, real = duel.game(), [], linker.code_digest
    monkeypatch.setattr(linker, "code_digest", lambda *arguments: walks.append(1) or real(*arguments))
    with unchanged_rules():
        kernels = {linker.link(game, compiled=False) for _ in range(3)}
        assert len(walks) == len(kernels) == 1
        linker.link(duel.game(), compiled=False)
        assert len(walks) == 2
    linker.link(game, compiled=False)
    with unchanged_rules():
        linker.link(game, compiled=False)
    assert len(walks) == 4
