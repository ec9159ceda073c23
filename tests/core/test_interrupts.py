"""Ctrl-C waits while libraries are imported, rules compiled and processes started; it is never lost."""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from inspect import signature
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from palaestra.core.compile import batch_loop
from palaestra.core.compile.linker import Kernel
from palaestra.core.interrupts import Hold, let_through
from palaestra.core.run.worker_pool import WorkerPool
from palaestra.game import Importing

# ruff: noqa: PT012 (a `with` of what is raised at its end holds what is done before)
pytestmark = pytest.mark.skipif(os.name == "nt", reason="a process of Windows cannot send itself Ctrl-C")


def press(times: int = 1) -> None:
    """Ctrl-C."""
    for _ in range(times):
        signal.raise_signal(signal.SIGINT)


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """After each test the signals have their own handlers, no hold is left and no signal waits.

    A shell that starts pytest in the background lets it ignore Ctrl-C; here it is Python's own again.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with Hold("an import"):
        pass
    with pytest.raises(KeyboardInterrupt), Hold("a compilation", breakable=True):
        press()
        with let_through():
            raise AssertionError("another hold is left")
    signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def handler(call: Callable[[int, Any], Any] | signal.Handlers, number: int = signal.SIGINT) -> Iterator[None]:
    before = signal.signal(number, call)
    try:
        yield
    finally:
        signal.signal(number, before)


def test_ctrl_c_takes_effect_at_the_end_and_says_what_it_waits_for(capfd, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("PALAESTRA_VERBOSE", raising=False)
    done = []
    with pytest.raises(KeyboardInterrupt), Hold("the import of numba"):
        press()
        done.append("all of it")
    assert done
    assert capfd.readouterr().err == "palaestra: Ctrl-C waits for the end of the import of numba\n"


def test_what_nobody_interrupts_is_not_disturbed(capfd: pytest.CaptureFixture[str]):
    with Hold("nothing"):
        pass
    press_is_at_once = False
    try:
        press()
    except KeyboardInterrupt:
        press_is_at_once = True
    assert press_is_at_once
    assert capfd.readouterr().err == ""


def test_the_outermost_hold_decides():
    done = []
    with pytest.raises(KeyboardInterrupt), Hold("all"):
        with Hold("a part"):
            press()
        done.append("between")
        with Hold("another", breakable=True), let_through():
            done.append("the whole does not let it through")
    assert len(done) == 2


def test_an_error_inside_is_the_reason_of_nothing_and_stays_visible():
    with pytest.raises(KeyboardInterrupt) as raised, Hold("an import"):
        press()
        raise ValueError("as well")
    assert isinstance(raised.value.__context__, ValueError)


@pytest.mark.parametrize("times", [1, 2, 50])
def test_every_ctrl_c_reaches_a_handler_of_the_user(times: int):
    pressed: list[int] = []
    with handler(lambda number, frame: pressed.append(number)):
        with Hold("an import"):
            press(times)
            assert not pressed
        assert pressed == [signal.SIGINT] * times
        press()
    assert len(pressed) == times + 1


def test_two_are_one_interrupt_where_nobody_counts_them():
    with pytest.raises(KeyboardInterrupt), Hold("an import"):
        press(2)


def test_alarms_wait_too():
    def too_late(*arguments: Any) -> None:
        raise TimeoutError("too late")

    done = []
    with handler(too_late, signal.SIGALRM), pytest.raises(TimeoutError), Hold("an import"):
        signal.raise_signal(signal.SIGALRM)
        done.append("all of it")
    assert done


@pytest.mark.parametrize("kind", [signal.SIG_IGN, signal.SIG_DFL])
def test_a_handler_of_the_system_stays(kind: signal.Handlers):
    with handler(kind), Hold("an import"):
        assert signal.getsignal(signal.SIGINT) is kind


def test_a_handler_that_is_installed_inside_stays_and_may_call_the_one_before():
    def chained(number: int, frame: Any) -> None:
        before(number, frame)

    try:
        with Hold("an import of a library that listens to Ctrl-C"):
            before: Any = signal.getsignal(signal.SIGINT)
            signal.signal(signal.SIGINT, chained)
        assert signal.getsignal(signal.SIGINT) is chained
        with pytest.raises(KeyboardInterrupt):
            press()
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def test_other_threads_hold_nothing():
    def hold() -> None:
        with Hold("an import", breakable=True):
            found.append(signal.getsignal(signal.SIGINT))
            with let_through():
                pass

    found: list[Any] = []
    thread = threading.Thread(target=hold)
    thread.start()
    thread.join()
    assert found == [signal.default_int_handler]


def test_what_may_be_interrupted_is_and_the_rest_is_whole_again():
    done: list[str] = []
    with pytest.raises(KeyboardInterrupt), Hold("a compilation", breakable=True):
        press()
        done.append("a function")
        try:
            with let_through():
                done.append("never")
        finally:
            with contextlib.suppress(KeyboardInterrupt):
                press()
                done.append("cleaned up")
    assert done == ["a function", "cleaned up"]


def test_rules_that_never_end_can_be_interrupted():
    with pytest.raises(KeyboardInterrupt), Hold("a compilation", breakable=True), let_through():
        press()
        raise AssertionError("not reached")


def test_a_library_is_imported_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    package = tmp_path / "halves"
    package.mkdir()
    (package / "__init__.py").write_text(
        "import signal, halves.part\nsignal.raise_signal(signal.SIGINT)\nwhole = halves.part\n"
    )
    (package / "part.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(KeyboardInterrupt), Importing("halves"):
        importlib.import_module("halves")
    try:
        assert sys.modules["halves"].whole is sys.modules["halves"].part
    finally:
        for name in ("halves", "halves.part"):
            del sys.modules[name]


def test_a_package_whose_import_was_interrupted_at_its_end_has_its_modules_again(tmp_path: Path, monkeypatch):
    package = tmp_path / "ended"
    package.mkdir()
    held = "from palaestra.core.interrupts import Hold, rejoin\nwith Hold('the import of ended'):\n"
    press_once = (
        "    import ended.part, signal, sys\n    rejoin(__name__)\n    if len(sys.argv) < 99: sys.argv += 99 * ['']; "
    )
    (package / "__init__.py").write_text(f"{held}{press_once}signal.raise_signal(2)\n")
    (package / "part.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "argv", [])
    with pytest.raises(KeyboardInterrupt):
        importlib.import_module("ended")
    assert importlib.import_module("ended").part is sys.modules["ended.part"]
    for name in ("ended", "ended.part"):
        del sys.modules[name]


def test_a_library_that_is_missing_says_how_to_get_it():
    with pytest.raises(ImportError, match="pip install halves") as raised, Importing("halves", "pip install halves"):
        importlib.import_module("halves")
    assert isinstance(raised.value.__cause__, ModuleNotFoundError)


class Machine:
    """The builder of a kernel, or one of its drivers; the compiler of the first ``step_lanes`` is interrupted."""

    def __init__(self, interrupted: bool = False) -> None:
        self.interrupted = interrupted
        self.entry_point = self
        self.overloads = {"its arguments": self}

    def __call__(self, *arguments: Any) -> None:
        if self.interrupted:
            press()
            with let_through():  # as where it begins with another function
                raise AssertionError("not reached")

    def functions(self) -> tuple[Any, ...]:
        return ()

    def load_natives(self, arguments: Any) -> None:
        return

    def shortcuts(self) -> Any:
        return contextlib.nullcontext()


@pytest.mark.check
def test_an_interrupted_compilation_begins_anew_with_what_was_not_compiled():
    made: list[dict[str, Any]] = []

    def build() -> Any:
        made.append({"check_lanes": Machine(), "step_lanes": Machine(interrupted=not made)})
        return Machine(), made[-1]

    def bind(name: str) -> Any:
        return kernel.bind(name, *signature(getattr(batch_loop, name)).parameters)

    kernel: Any = Kernel(SimpleNamespace(name="Raid"), "digest", build)  # type: ignore[arg-type]
    kernel.compiled = True
    compiled = bind("check_lanes")
    with pytest.raises(KeyboardInterrupt):
        bind("step_lanes")
    assert bind("step_lanes") is made[1]["step_lanes"]
    assert bind("check_lanes") is compiled is made[0]["check_lanes"]


class Process:
    """A process or pipe that is not there, what it was told, and whether Ctrl-C would have reached it."""

    pid = 4711

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.hears = True

    def start(self) -> None:
        self.told.append("start")
        os.kill(os.getpid(), signal.SIGINT)
        self.hears = signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])

    def send(self, message: Any) -> None:
        self.told.append(message)
        press()

    def close(self) -> None:
        self.told.append("close")

    def join(self, seconds: float | None = None) -> None:
        self.told.append("join")

    def is_alive(self) -> bool:
        return False


class Context:
    """Makes such processes."""

    def __init__(self) -> None:
        self.processes: list[Process] = []

    def Pipe(self) -> tuple[Process, Process]:
        return Process(), Process()

    def Process(self, **options: Any) -> Process:
        self.processes.append(Process())
        return self.processes[-1]


def test_workers_start_deaf_and_an_interrupt_comes_when_all_of_them_are_known():
    context, pool = Context(), WorkerPool("Raid", [(0, 1), (1, 2)])
    with pytest.raises(KeyboardInterrupt):
        pool.start(print, [(), ()], context)
    assert pool.processes == context.processes
    assert [(process.told, process.hears) for process in context.processes] == [(["start"], False)] * 2
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
    with pytest.raises(KeyboardInterrupt):  # each pipe presses again
        pool.end("an interrupt")
    assert [pipe.told for pipe in pool.pipes] == [[None, "close"]] * 2  # type: ignore[attr-defined]
    assert [process.told[-1] for process in context.processes] == ["join"] * 2
