"""A late function is compiled when a match first calls it, and gives the bits of the function itself."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from games.play import python

from palaestra.cli.warm import play_one_decision
from palaestra.core.compile import binder, linker
from palaestra.core.compile.apart import ApartFunction, FirstCall
from palaestra.core.compile.linker import jit_disabled, link
from palaestra.core.run.call_guard import InterruptedCallError
from palaestra.core.run.kernel import KernelSimulation
from palaestra.game import Choice, Field, Game, Role, apart

compiled_only = pytest.mark.skipif(jit_disabled(), reason="nothing is compiled")
pytestmark = [pytest.mark.jitless, pytest.mark.check]

STEP = 3


def dance(s, world, slot, which, actions, scratch):
    """Goes by the turn of its team; fails where the record says so."""
    if s.fails:
        raise ValueError("stumbled")
    scratch.turns = which + world[0] * slot
    actions.dancer[slot].go = (s.turn + scratch.turns) % STEP


dance_late = apart(dance)


def reset(s, world):
    s.turn = 1


def step(s, world, actions, rewards, scratch):
    for k in range(2):
        s.turn = 2 * s.turn % 1009 + actions.dancer[k].go
        rewards[k] = s.turn
    return False


def observe(s, world, observations, scratch):
    for k in range(2):
        observations.dancer[k].turn = s.turn


def by_address(s, world, slot, which, actions, scratch):
    if which == 0:
        actions.dancer[slot].go = slot
    else:
        dance_late(s, world, slot, which, actions, scratch)


def inside(s, world, slot, which, actions, scratch):
    if which == 0:
        actions.dancer[slot].go = slot
    else:
        dance(s, world, slot, which, actions, scratch)


def game(script: Callable = by_address, **changes: Any) -> Game:
    role = Role("dancer", ("red_0", "blue_0"), (Field("turn", (), 0, 4000),), (Choice("go", STEP),))
    options: dict[str, Any] = {
        "name": "Dance",
        "roles": (role,),
        "state": (("turn", "i8"), ("fails", "i8")),
        "scratch": (("turns", "i8"),),
        "world": (2,),
        "scripts": ("still", "dance", "whirl"),
        "script": script,
        "reset": reset,
        "step": step,
        "observe": observe,
        "reward": "agent",
        **changes,
    }
    return Game(**options)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for kernels, with that of the game."""
    folder = tmp_path_factory.mktemp("cache")
    if not jit_disabled():
        with pytest.MonkeyPatch.context() as patch:
            start_anew(patch, folder)
            with_the_kernel.extend(compiled_names(lambda: KernelSimulation(game(), 1)))
    return folder


with_the_kernel: list[str] = []
"""Names of the functions that were compiled when the game was first made."""


@pytest.fixture
def anew(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    """Nothing is served from memory, and nothing from the disk but what tests of this file have put there."""
    start_anew(monkeypatch, cache)


@pytest.fixture
def kernel_alone(monkeypatch: pytest.MonkeyPatch, cache: Path, tmp_path: Path) -> None:
    """No late function is served from memory or disk; kernels are, if tests of this file have compiled them."""
    shutil.copytree(cache, tmp_path / "kept", ignore=shutil.ignore_patterns("*dance_*"))
    start_anew(monkeypatch, tmp_path / "kept")


def start_anew(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setattr(linker, "_linked", {})
    monkeypatch.setattr(binder, "loaded", {})
    if not jit_disabled():
        from numba.core import config

        monkeypatch.setattr(config, "CACHE_DIR", str(folder))


def compiled_names(call: Callable[[], Any]) -> list[str]:
    """Names of the functions that are compiled during a call."""
    from numba.core import event

    with event.install_recorder("numba:compile") as recorder:
        call()
    return [e.data["dispatcher"].py_func.__name__ for _, e in recorder.buffer if e.is_start]


def played(sim: KernelSimulation, script: str, decisions: int = 9) -> bytes:
    sim.reset(seed=4)
    for team in ("red", "blue"):
        sim.set_opponent(team, script)
    seen = b""
    for _ in range(decisions):
        sim.step()
        seen += sim.states["turn"].tobytes() + sim.rewards.tobytes()
    return seen


def test_it_gives_the_bits_of_the_function(anew: None):
    """The function itself is interpreted: that it then has the bits of a compiled one is tested elsewhere."""
    sims = [KernelSimulation(game(), 3), KernelSimulation(game(), 3)]
    sims += [KernelSimulation(game(script), 3, compiled=False) for script in (by_address, inside)]
    for script in ("dance", "still", "whirl"):
        results = [played(sim, script) for sim in sims]
        assert len(set(results)) == 1
        assert len(set(results[0])) > 2


@compiled_only
def test_it_is_compiled_when_a_match_first_calls_it(kernel_alone: None):
    assert "step_lanes" in with_the_kernel
    assert "dance" not in with_the_kernel
    sim = KernelSimulation(game(), 3)
    assert compiled_names(lambda: played(sim, "still")) == []
    assert compiled_names(lambda: played(sim, "whirl")) == ["dance"]
    assert compiled_names(lambda: played(sim, "dance")) == []
    assert compiled_names(lambda: played(KernelSimulation(game(), 2), "dance")) == []  # the kernel is shared


@compiled_only
def test_each_kernel_has_code_of_its_own(anew: None):
    first, second = KernelSimulation(game(), 2), KernelSimulation(large_game(), 2)
    assert played(first, "dance") == played(second, "dance")
    assert len([name for name in binder.loaded if "dance" in name]) == 2


@compiled_only
def test_two_threads_that_need_it_at_once_compile_it_once(kernel_alone: None):
    sim = KernelSimulation(game(), 8, threads=2)
    assert compiled_names(lambda: played(sim, "dance")) == ["dance"]
    assert played(sim, "dance") == played(KernelSimulation(game(), 8), "dance")
    sim.close()


@compiled_only
def test_an_error_inside_reaches_the_caller(anew: None):
    sim = KernelSimulation(game(), 1)
    played(sim, "dance")
    sim.states["fails"] = 1
    with pytest.raises(ValueError, match="stumbled"):
        sim.step()


@compiled_only
def test_the_kernel_is_another_one_when_the_function_changes(monkeypatch: pytest.MonkeyPatch):
    before = link(game()).digest
    monkeypatch.setitem(globals(), "dance_late", apart(reset_turns))
    assert link(game(by_address)).digest != before


def reset_turns(s, world, slot, which, actions, scratch):
    scratch.turns = 0


def hoard(s, world, slot, which, actions, scratch):
    actions.dancer[slot].go = int(np.zeros(3)[0])


hoard_late = apart(hoard)


def hoarding(s, world, slot, which, actions, scratch):
    if which < 2:
        by_address(s, world, slot, which, actions, scratch)
    else:
        hoard_late(s, world, slot, which, actions, scratch)


def large_game() -> Game:
    """Another kernel than that of the game, whose last script cannot be compiled."""
    return game(hoarding, state=(("turn", "i8"), ("room", "f8", (5,)), ("fails", "i8")))


@compiled_only
def test_one_that_cannot_be_compiled_says_so_when_it_is_called(anew: None, capfd: pytest.CaptureFixture):
    sim = KernelSimulation(large_game(), 1)
    played(sim, "still")
    with pytest.raises(RuntimeError, match="'hoard' could not be compiled: the error is above"):
        played(sim, "whirl")
    assert "the function apart 'hoard' allocates memory (test_late.py line" in capfd.readouterr().err
    with pytest.raises(ValueError, match="the function apart 'hoard' allocates memory"):
        sim.kernel.compile_late()


@compiled_only
def test_an_interrupted_compilation_is_an_interrupt(anew: None, monkeypatch: pytest.MonkeyPatch):
    sim = KernelSimulation(game(), 1)
    with monkeypatch.context() as patch:
        patch.setattr(binder, "_load", interrupted)
        with pytest.raises(KeyboardInterrupt, match="while 'dance' was compiled"):
            played(sim, "dance")
        with pytest.raises(InterruptedCallError, match=r"interrupted step \(by KeyboardInterrupt\)"):
            sim.step()
    twin = KernelSimulation(game(inside), 1, compiled=False)
    assert played(sim, "dance") == played(twin, "dance")


@compiled_only
def test_what_an_interrupt_keeps_from_being_compiled_is_not_called(anew: None, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(FirstCall, "_compile_in_match", lambda self: 0)  # as where it ends before its first line
    sim = KernelSimulation(game(), 1)
    with pytest.raises(KeyboardInterrupt, match="before 'dance' was compiled"):
        played(sim, "dance")


def interrupted(*arguments: Any) -> Any:
    raise KeyboardInterrupt


def few(s, world, slot, which, actions, scratch):
    dance_late(s, world, slot, which)


def real(s, world, slot, which, actions, scratch):
    dance_late(s, world, slot, 1.0 * which, actions, scratch)


@compiled_only
@pytest.mark.parametrize(
    ("script", "message"),
    [(few, "missing 2 required .* 'actions' and"), (real, "the function apart 'dance': 'which' is float64, not int64")],
)
def test_a_wrong_call_is_refused_when_the_kernel_is_made(anew: None, script: Callable, message: str):
    with pytest.raises(ValueError, match=f"(?s)Dance.*{message}"):
        KernelSimulation(game(script), 1)


@compiled_only
def test_warming_compiles_it_and_its_files_count_as_used(kernel_alone: None):
    play_one_decision(game())
    sim = KernelSimulation(game(), 1)
    assert compiled_names(lambda: played(sim, "dance")) == []
    assert any(name.startswith("dance_") for name in sim.kernel.cache_names())


def test_what_cannot_be_late_is_refused():
    with pytest.raises(TypeError, match="apart takes a plain function, got builtin_function_or_method"):
        apart(abs)
    k = 1.0
    with pytest.raises(ValueError, match="is a closure: define it at the level of the module"):
        apart(lambda s: k)
    with pytest.raises(ValueError, match=r"defaults, \*args and keyword-only parameters do not work"):
        apart(lambda s, slot=0: None)


def test_it_can_be_sent_to_another_process():
    sent = pickle.loads(pickle.dumps(dance_late))
    assert isinstance(sent, ApartFunction)
    assert sent.py_func is dance


PLAY = """
import sys
from importlib.util import module_from_spec, spec_from_file_location
spec = spec_from_file_location(*sys.argv[1:])
t = sys.modules[spec.name] = module_from_spec(spec)
spec.loader.exec_module(t)
sim = t.KernelSimulation(t.game(), 2)
print(t.compiled_names(lambda: t.played(sim, "dance")), t.played(sim, "dance").hex())
"""


@compiled_only
def test_another_process_loads_it_from_the_cache(anew: None, cache: Path):
    here = played(KernelSimulation(game(), 2), "dance").hex()
    names, there = python(PLAY, __name__, __file__, NUMBA_CACHE_DIR=str(cache)).split("] ")
    assert (names, there.strip()) == ("[", here)
