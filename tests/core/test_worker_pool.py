"""Requests over pipes: late answers, interrupts, hung and unborn workers, forks; too little shared memory, or none."""

import contextlib
import errno
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from games import two_team
from games.play import python

from palaestra.core.run import shared_block, worker_pool
from palaestra.core.run.call_guard import CallGuard
from palaestra.core.run.shared_block import SharedBlock
from palaestra.core.run.worker_pool import WorkerError, WorkerPool
from palaestra.core.run.workers import ProcessSimulation

posix = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs POSIX")


def make(**options: Any) -> ProcessSimulation:
    return ProcessSimulation(two_team.game(), 3, workers=2, compiled=False, **options)


class Process:
    """Stands for a worker process: a thread."""

    def __init__(self, target: Callable[[Connection], None], args: tuple[Connection], **_: Any) -> None:
        self.sentinel, self._far_sentinel = Pipe()
        self.pid, self.exitcode = 4711, None
        self._target, self._pipe = target, os.dup(args[0].fileno())

    def start(self) -> None:
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        with contextlib.suppress(EOFError, OSError), Connection(self._pipe) as pipe:  # the pool may have ended
            self._target(pipe)
        self.exitcode = 1
        self._far_sentinel.close()

    def join(self, seconds: float) -> None: ...

    def is_alive(self) -> bool:
        return False


def answer(pipe: Connection) -> None:
    """What a worker runs."""
    pipe.send((0, False, None))
    while (message := pipe.recv()) is not None:
        number, call, argument = message
        if call != "hang" or argument is None:
            pipe.send((number, False, f"{call} {argument}"))


def pool(target: Callable[[Connection], None] = answer, seconds: float = 5.0) -> WorkerPool:
    made = WorkerPool("Raid", [(0, 2), (2, 4)], seconds)
    made.start(target, [(), ()], SimpleNamespace(Pipe=Pipe, Process=Process))
    return made


def test_the_answer_to_an_interrupted_request_is_never_taken_for_another(monkeypatch: pytest.MonkeyPatch):
    workers, real = pool(), worker_pool.wait

    def interrupted(*arguments: Any) -> Any:
        monkeypatch.setattr(worker_pool, "wait", real)
        raise KeyboardInterrupt

    for _ in range(3):
        monkeypatch.setattr(worker_pool, "wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            workers.ask("old", {0: 1, 1: 2})
    assert workers.ask("new", {1: 3, 0: 4}) == ["new 3", "new 4"]
    assert workers.ask("newer", {0: 5}) == ["newer 5"]


@pytest.mark.parametrize(
    ("call", "moment"), [("send_bytes", "while worker 1 was told"), ("recv", "while the answer of")]
)
def test_an_interrupt_in_the_middle_of_a_message_ends_the_workers(call: str, moment: str, monkeypatch):
    workers = pool()

    def half(*message: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(workers.pipes[1], call, half)
    with pytest.raises(KeyboardInterrupt):
        workers.ask("step", {0: 1, 1: bytes(5000)})
    with pytest.raises(RuntimeError, match=f"have ended .interrupted by KeyboardInterrupt {moment}"):
        workers.ask("step", {0: 1, 1: 2})
    assert all(pipe.closed for pipe in workers.pipes)


def test_an_interrupt_while_a_short_message_is_sent_ends_nothing(monkeypatch: pytest.MonkeyPatch):
    workers = pool()

    def interrupted(*message: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(workers.pipes[1], "send_bytes", interrupted)
    with pytest.raises(KeyboardInterrupt):
        workers.ask("step", {0: 1, 1: 2})
    monkeypatch.undo()
    assert workers.ask("new", {0: 3, 1: 4}) == ["new 3", "new 4"]


def test_a_worker_that_hangs_is_named_and_given_up(monkeypatch, capfd: pytest.CaptureFixture[str]):
    monkeypatch.setattr(worker_pool, "NOTICE_SECONDS", 0.02)
    workers = pool(seconds=0.05)
    late = r"worker 1 \(lanes 2 to 3, process 4711\) of Raid"
    with pytest.raises(WorkerError, match=rf"'hang' within 0.05 s \(PALAESTRA_WORKER_SECONDS .*\) from {late}"):
        workers.ask("hang", {0: None, 1: 1})
    assert re.search(rf"still waiting for {late}: no answer to 'hang' for 0.02 s", capfd.readouterr().err)
    with pytest.raises(RuntimeError, match="no answer to 'hang'"):
        workers.ask("step", {0: None})


def test_a_worker_that_dies_before_it_has_started_names_the_guard():
    with pytest.raises(WorkerError, match=r'exit code (1|None); .* needs `if __name__ == "__main__":`'):
        pool(lambda pipe: None)


@posix
@pytest.mark.slow
def test_a_close_that_is_interrupted_ends_all_that_it_has_to(monkeypatch: pytest.MonkeyPatch):
    sim = make()
    real = CallGuard.close

    def interrupted(guard: CallGuard) -> None:
        real(guard)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(CallGuard, "close", interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # pytest may run in the background
    with pytest.raises(KeyboardInterrupt):
        sim.close()
    signal.signal(signal.SIGINT, before)
    assert not any(process.is_alive() for process in sim.processes)
    with pytest.raises(FileNotFoundError):
        SharedMemory(sim.memory.name)


@pytest.mark.parametrize("text", ["0", "-1", "nan", "soon"])
def test_a_limit_that_is_no_positive_number_is_refused(text: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(worker_pool.ANSWER_VARIABLE, text)
    with pytest.raises(ValueError, match=f"PALAESTRA_WORKER_SECONDS must be a positive number .* got '{text}'"):
        make()


def test_what_could_not_be_made_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch):
    made: list[SharedBlock] = []
    real = SharedBlock.__init__

    def remember(block: SharedBlock, *arguments: Any) -> None:
        made.append(block)
        real(block, *arguments)

    monkeypatch.setattr(SharedBlock, "__init__", remember)
    with pytest.raises(ValueError, match="has no team 'green'"):
        make(opponents={"green": "random"})
    with pytest.raises(FileNotFoundError):
        SharedMemory(made[0].memory.name)


def test_too_little_shared_memory_is_an_error_that_names_both_sizes(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(shared_block, "free_bytes", lambda: 1000)
    with pytest.raises(OSError, match=r"Raid with 3 lanes needs .* MB of shared memory .* has 0.0 MB free.*--shm-size"):
        make()


@pytest.mark.skipif(not shared_block.FOLDER.is_dir(), reason="shared memory lies elsewhere")
def test_memory_that_is_taken_by_others_meanwhile_is_an_error_and_no_signal(monkeypatch: pytest.MonkeyPatch):
    def full(*arguments: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    before = set(shared_block.FOLDER.iterdir())
    with pytest.raises(OSError, match="--shm-size") as raised:
        SharedBlock(4096, "a test")
    assert raised.value.errno == errno.ENOSPC
    assert set(shared_block.FOLDER.iterdir()) <= before


@pytest.mark.parametrize("number", [errno.EROFS, errno.ENOENT, errno.EACCES, errno.ENOSYS, errno.ENOSPC, errno.EMFILE])
@pytest.mark.parametrize("call", ["SharedMemory", "_reserve"])
def test_without_shared_memory_the_error_says_what_to_write(call: str, number: int, monkeypatch: pytest.MonkeyPatch):
    made: list[SharedMemory] = []

    def make_block(**options: Any) -> SharedMemory:
        made.append(SharedMemory(**options))
        return made[-1]

    def refuse(*arguments: Any, **keywords: Any) -> Any:
        raise OSError(number, os.strerror(number), "/psm_4711")

    monkeypatch.setattr(shared_block, "SharedMemory", make_block)
    monkeypatch.setattr(shared_block, call, refuse)
    with pytest.raises(OSError, match=r"Raid needs 0.0 MB of shared memory .* leave workers= out") as raised:
        SharedBlock(4096, "Raid")
    assert raised.value.errno == number
    assert ("--shm-size" in str(raised.value)) == (number == errno.ENOSPC)
    for block in made:
        with pytest.raises(FileNotFoundError):
            SharedMemory(block.name)
    assert len(made) == (call == "_reserve")


READ_ONLY = """
from palaestra import make_batch

if __name__ == "__main__":
    for lanes in (2, 4000):
        try:
            sim = make_batch("palaestra/CartPole-v0", lanes, workers=2, compiled=False)
            sim.reset(seed=0)
            print("plays")
            sim.close()
        except OSError as error:
            print(error.errno, error)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("options", "expected"), [("ro", [errno.EROFS] * 2), ("size=64k", [None, errno.ENOSPC])])
def test_a_folder_of_shared_memory_that_is_read_only_or_small_is_an_error(options: str, expected: list, tmp_path: Path):
    program = tmp_path / "program.py"
    program.write_text(READ_ONLY)
    mounted = f"mount -t tmpfs -o {options} tmpfs {shared_block.FOLDER}"  # a new one: that of the system is all others'
    inside = ["unshare", "--mount", "--map-root-user", "--propagation", "private", "sh", "-c"]
    if shutil.which("unshare") is None or subprocess.run([*inside, mounted], capture_output=True).returncode:
        pytest.skip("no other file systems may be mounted here")
    command = [*inside, f'{mounted} && exec "$0" "$1"', sys.executable, str(program)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    for line, number in zip(lines, expected, strict=True):
        assert line == "plays" if number is None else line.startswith(f"{number} ") and "leave workers= out" in line


def test_a_system_without_its_folder_is_asked_all_the_same(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(shared_block, "FOLDER", tmp_path / "shm")
    assert shared_block.free_bytes() is None
    SharedBlock(4096, "Raid").free()


FORK = """
import os, sys, warnings
from games import two_team
from games.play import all_bytes, idle_actions
from palaestra.core.run.workers import ProcessSimulation
from palaestra.core.run.kernel import KernelSimulation

if __name__ == "__main__":
    warnings.simplefilter("ignore", DeprecationWarning)
    sim = ProcessSimulation(two_team.game(), 3, workers=1, compiled=False)
    sim.reset(seed=1)
    before = all_bytes(sim)
    if os.fork() == 0:
        for call in (lambda: sim.step(idle_actions(sim)), lambda: sim.set_parameters(horizon=7), lambda: sim.seed(3)):
            try:
                call()
            except RuntimeError as error:
                print(error)
        sim.close()
        sys.exit(0)  # a normal exit, which ends the children of a process
    print(os.wait()[1], (all_bytes(sim) == before).all())
    sim.step(idle_actions(sim))
    if os.fork() == 0:
        del sim
        os._exit(0)
    print(os.wait()[1])
    sim.step(idle_actions(sim))
    twin = KernelSimulation(two_team.game(), 3, compiled=False)
    twin.reset(seed=1)
    for _ in range(2):
        twin.step(idle_actions(sim))
    print((all_bytes(sim) == all_bytes(twin)).all())
"""


@pytest.mark.check
@posix
def test_the_child_of_a_fork_can_neither_use_nor_end_the_workers_of_its_parent():
    *refused, first, second, third = python(FORK).splitlines()
    assert len(refused) == 3
    assert all("they belong to the process that made them, and this is a fork of it" in line for line in refused)
    assert (first, second, third) == ("0 True", "0", "True")
