"""Processes that answer requests over pipes, with a time limit for each answer; unusable after a fork.

A request is a message ``(number, call, argument)``; its answer carries the number. The wait for an answer may be
interrupted at any moment: an answer that arrives after that is recognised by its number and dropped. An interrupt in
the middle of a long message, or of reading one, would leave half of it in the pipe, so the pool is ended then.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import process as running_processes
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.reduction import ForkingPickler
from typing import Any

from palaestra.core.compile.diagnosis import RuleError
from palaestra.core.interrupts import Hold, let_through

START_SECONDS = 300.0
"""A worker that has not compiled and started by then is given up."""
NOTICE_SECONDS = 10.0
"""A worker that has not answered for so long is named on the standard error output."""
ANSWER_SECONDS = 600.0
"""A worker that has not answered for so long is given up; `ANSWER_VARIABLE` says another number."""
SHUTDOWN_SECONDS = 2.0
"""A worker that has not left by then is killed."""
ANSWER_VARIABLE = "PALAESTRA_WORKER_SECONDS"
WHOLE_BYTES = 4096
"""A message of so many bytes is in the pipe whole or not at all, whatever interrupts its sender."""
GUARD = (
    "It had not started yet. Every worker imports the main script again: a script that makes a simulation with "
    'workers= needs `if __name__ == "__main__":` before its own statements'
)


class WorkerError(RuntimeError):
    """A worker process failed, died, or did not answer."""


class WorkerPool:
    """Processes and their pipes.

    Attributes:
        processes: The processes.
        pipes: Their pipes.
        ended: Why the pool takes no more requests; empty while it does.
    """

    def __init__(self, owner: str, spans: Sequence[tuple[int, int]], seconds: float | None = None) -> None:
        """No process has started before `start`.

        Args:
            owner: Name of the game, for errors.
            spans: Lanes [lo, hi) of each worker, for errors.
            seconds: Limit for each answer; by default what `ANSWER_VARIABLE` says.

        Raises:
            ValueError: `ANSWER_VARIABLE` is no positive number.
        """
        self.processes: list[Any] = []
        self.ended = ""
        self._owner, self._spans = owner, spans
        self._seconds = answer_seconds() if seconds is None else seconds
        self.pipes: list[Connection] = []
        self._number = 0
        self._has_started = False
        self._end = weakref.finalize(self, _end_processes, self.processes, self.pipes)

    def start(self, target: Callable[..., None], arguments: Sequence[tuple[Any, ...]], context: Any = None) -> None:
        """Starts ``target(pipe, *arguments[k])`` in process k; returns when all have sent the answer to request 0.

        Args:
            target: What a worker runs.
            arguments: For each worker.
            context: Makes pipes and processes; by default the context ``"spawn"`` of `multiprocessing`.

        Raises:
            WorkerError: A worker could not start; carries its message.
        """
        # spawn: a fork would copy locks held by threads that do not exist in the child
        context = context or multiprocessing.get_context("spawn")
        with Hold(f"the start of {self._owner}'s workers", breakable=True):
            for k, more in enumerate(arguments):
                pipe, far_end = context.Pipe()
                self.pipes.append(pipe)
                name = f"palaestra-worker-{k}"
                process = context.Process(target=target, args=(far_end, *more), daemon=True, name=name)
                with _deaf_children():
                    process.start()
                self.processes.append(process)
                far_end.close()
            with let_through():
                self._collect("start", list(range(len(arguments))), START_SECONDS)
            self._has_started = True

    def ask(self, call: str, arguments: dict[int, Any]) -> list[Any]:
        """Sends workers, by number, on a request. Returns their answers in the same order.

        Raises:
            WorkerError: A worker failed, died or did not answer; the pool has ended.
            RuleError: The rules are wrong; the pool has ended.
            RuntimeError: The pool has ended before.
        """
        if self.ended:
            raise RuntimeError(f"the workers of {self._owner} have ended ({self.ended}): make the simulation anew")
        self._number += 1
        for k, argument in arguments.items():
            self._send(k, (self._number, call, argument))
        return self._collect(call, list(arguments), self._seconds)

    def _send(self, k: int, message: tuple[int, str, Any]) -> None:
        pickled = ForkingPickler.dumps(message)
        try:
            self.pipes[k].send_bytes(pickled)
        except OSError:
            raise self._died(k) from None
        except BaseException as error:
            if len(pickled) > WHOLE_BYTES:
                self._tear(error, f"while worker {k} was told to {message[1]!r}")
            raise

    def _collect(self, call: str, workers: list[int], limit: float) -> list[Any]:
        """Answers of the workers to the latest request, in their order."""
        answers: dict[int, Any] = {}
        open_, failure = set(workers), None
        for ready in self._ready(call, open_, limit):
            for k in sorted(open_):
                if self.pipes[k] in ready:
                    number, failed, answer = self._receive(k)
                    if number == self._number:  # else the answer to a request whose sender was interrupted
                        answers[k] = answer
                        failure = answer if failed else failure
                        open_.discard(k)
                elif self.processes[k].sentinel in ready and not self.pipes[k].poll():
                    raise self._died(k)
        if failure is not None:
            self.end("a worker failed")
            if isinstance(failure, RuleError):
                raise failure
            raise WorkerError(f"a worker failed:\n{failure}")
        return [answers[k] for k in workers]

    def _ready(self, call: str, open_: set[int], limit: float) -> Any:
        """Yields what has news of the open workers until there are none; names those that are late."""
        begun, is_told = time.monotonic(), call == "start"
        while open_:
            waited = time.monotonic() - begun
            until = limit if is_told else min(limit, NOTICE_SECONDS)
            waiting: list[Any] = [self.pipes[k] for k in open_] + [self.processes[k].sentinel for k in open_]
            ready = wait(waiting, max(until - waited, 0.0))
            if ready:
                yield ready
                continue
            late = "; ".join(self._named(k) for k in sorted(open_))
            if until >= limit:
                self.end(f"no answer to {call!r} within {limit:g} s")
                more = "" if call == "start" else f" ({ANSWER_VARIABLE} says another number of seconds)"
                raise WorkerError(f"no answer to {call!r} within {limit:g} s{more} from {late} of {self._owner}")
            is_told = True
            print(
                f"palaestra: still waiting for {late} of {self._owner}: no answer to {call!r} for {until:g} s; "
                f"given up after {limit:g} s",
                file=sys.stderr,
                flush=True,
            )

    def _receive(self, k: int) -> tuple[int, bool, Any]:
        try:
            return self.pipes[k].recv()
        except (EOFError, ConnectionResetError):
            raise self._died(k) from None
        except BaseException as error:
            self._tear(error, f"while the answer of worker {k} was read")
            raise

    def _tear(self, error: BaseException, moment: str) -> None:
        """Ends the pool whose pipe holds half a message."""
        self.end(f"interrupted by {type(error).__name__} {moment}")

    def _named(self, k: int) -> str:
        lo, hi = self._spans[k]
        return f"worker {k} (lanes {lo} to {hi - 1}, process {self.processes[k].pid})"

    def _died(self, k: int) -> WorkerError:
        process = self.processes[k]
        process.join(1.0)
        lo, hi = self._spans[k]
        code = process.exitcode
        self.end(f"worker {k} died")
        hint = (
            "Make the simulation anew (a negative code is a signal: -9 is often the system running out of memory)."
            if self._has_started
            else f"{GUARD} (a negative code is a signal: -9 is often the system running out of memory)."
        )
        return WorkerError(
            f"worker {k} (lanes {lo} to {hi - 1}) of {self._owner} died with exit code {code}; its matches are lost. "
            f"{hint}"
        )

    def end(self, why: str) -> None:
        """Ends the processes; may be called twice."""
        self.ended = self.ended or why
        self._end()

    def leave(self) -> None:
        """Called in the child of a fork: the processes, their pipes and their end are the parent's business."""
        self.ended = "they belong to the process that made them, and this is a fork of it"
        self._end.detach()
        # What a normal exit of this process would otherwise terminate and wait for:
        children = getattr(running_processes, "_children", set())
        children.difference_update(self.processes)


def answer_seconds() -> float:
    """The limit for an answer in seconds.

    Raises:
        ValueError: `ANSWER_VARIABLE` is no positive number.
    """
    text = os.environ.get(ANSWER_VARIABLE, "") or str(ANSWER_SECONDS)
    with contextlib.suppress(ValueError):
        if (seconds := float(text)) > 0.0:
            return seconds
    raise ValueError(f"{ANSWER_VARIABLE} must be a positive number of seconds (inf: wait for ever), got {text!r}")


@contextlib.contextmanager
def _deaf_children() -> Iterator[None]:
    """Processes that start inside do not hear Ctrl-C, which goes to all processes of a terminal: the parent decides.

    One that still imports would die of it, with a traceback, and its parent would take it for a failure.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # it starts with the first process, and would unblock the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # the parent hears it afterwards
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_processes(processes: list[Any], pipes: list[Connection]) -> None:
    with Hold("the end of the workers"):
        for pipe in pipes:
            with contextlib.suppress(OSError):  # it may be gone already
                pipe.send(None)
            pipe.close()
        latest = time.monotonic() + SHUTDOWN_SECONDS
        for process in processes:
            process.join(max(latest - time.monotonic(), 0.0))
            if process.is_alive():
                process.kill()
                process.join()
