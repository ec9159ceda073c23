"""Slices of the lanes in worker processes, for engines that hold the interpreter's lock.

All arrays lie in one block of shared memory; a worker runs an ordinary simulation on its slice and answers over a
pipe (`palaestra.core.run.worker_pool`). A worker that dies or hangs is an error that names it, never a wait without
end; a worker whose parent dies reads the end of its pipe and leaves. A process made by a fork cannot use its parent's
workers.
"""

from __future__ import annotations

import os
import pickle
import signal
import traceback
import weakref
from itertools import pairwise
from multiprocessing.connection import Connection
from multiprocessing.shared_memory import SharedMemory
from typing import Any

import numpy as np

from palaestra.core.compile.diagnosis import RuleError
from palaestra.core.compile.linker import link
from palaestra.core.contract.rules import Game
from palaestra.core.interrupts import Hold
from palaestra.core.run.buffers import check_count
from palaestra.core.run.call_guard import CallGuard
from palaestra.core.run.kernel import KernelSimulation, check_arguments
from palaestra.core.run.physics import PhysicsSimulation, engine_driver, join_saved, part_of
from palaestra.core.run.recipes import ByValue
from palaestra.core.run.shared_block import SharedBlock
from palaestra.core.run.simulation import Simulation
from palaestra.core.run.worker_pool import WorkerError, WorkerPool

__all__ = ["ProcessSimulation", "WorkerError", "answered"]

ALIGNMENT = 64

_simulations: weakref.WeakSet[ProcessSimulation] = weakref.WeakSet()


class ProcessSimulation(Simulation):
    """A simulation whose lanes are split over ``workers`` processes.

    The results are bitwise those of one process: a lane depends on its own seed and actions only.

    Attributes:
        workers: Number of processes.
        processes: The processes.
        memory: The block of shared memory in which all arrays lie.
    """

    def __init__(self, game: Game, num_envs: int, *, workers: int, **options: Any) -> None:
        """See `Simulation`.

        Args:
            game: The rules. They are pickled to the workers by value, see `palaestra.core.run.recipes.ByValue`.
            num_envs: Number of lanes.
            workers: Number of processes, at least 1; no more than lanes are started.
            **options: As for `Simulation`.

        Raises:
            WorkerError: A worker could not start; carries its message.
            RuleError: The rules are wrong; names the author's file and line.
        """
        self.workers = min(check_count("workers", workers), check_count("num_envs", num_envs))
        plan: list[tuple[str, int, tuple[int, ...], np.dtype]] = []
        size = 0

        def measure(name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
            nonlocal size
            plan.append((name, size, shape, dtype))
            size += -(-int(np.prod(shape)) * dtype.itemsize // ALIGNMENT) * ALIGNMENT
            return np.zeros(shape, dtype)

        probe_options = {
            k: v for k, v in options.items() if k in ("autoreset_mode", "threads", "compiled", "out_of_range")
        }
        _Layout(game, num_envs, allocate=measure, **probe_options)
        edges = [num_envs * k // self.workers for k in range(self.workers + 1)]
        self._spans = list(pairwise(edges))
        self._pool = WorkerPool(game.name, self._spans)
        self.processes = self._pool.processes
        with Hold(f"the start of {game.name}'s workers", breakable=True):
            self._block = SharedBlock(size, f"{game.name} with {num_envs} lanes")
            self.memory = self._block.memory
            self.guard = CallGuard(game.name)  # a fork may happen while the workers start
            _simulations.add(self)
            try:
                self._start(game, num_envs, plan, probe_options, options)
            except BaseException:
                self._pool.end("they could not start")
                self._block.free()
                raise

    def _start(
        self,
        game: Game,
        num_envs: int,
        plan: list[tuple[str, int, tuple[int, ...], np.dtype]],
        probe_options: dict[str, Any],
        options: dict[str, Any],
    ) -> None:
        """Lays the arrays into the shared memory and starts the workers."""
        places = {name: offset for name, offset, _, _ in plan}
        block = np.frombuffer(self.memory.buf or b"", np.uint8)  # keeps the memory mapped for as long as a view is held
        super().__init__(
            game,
            num_envs,
            allocate=lambda name, shape, dtype: np.ndarray(shape, dtype, block, places[name]),
            **options,
        )
        if game.physics is not None:
            engine_driver(self, *np.zeros((3, num_envs), np.int64))  # compiled here: the workers find it in the cache
        self._check = link(game, self.compiled).bind("check_lanes", 0, 0, *check_arguments(self))
        shared = (self.memory.name, plan, _pickled(game), num_envs)
        self._pool.start(_work, [(*shared, span, probe_options) for span in self._spans])

    def _ask(self, call: str, arguments: list[Any] | None = None) -> list[Any]:
        """Sends a request to all workers. Returns their answers in order."""
        return self._ask_some(call, dict(enumerate(arguments or [None] * self.workers)))

    def _ask_some(self, call: str, arguments: dict[int, Any]) -> list[Any]:
        """The same with some of the workers, by number."""
        self.guard.check_open()
        try:
            return self._pool.ask(call, arguments)
        finally:
            if self._pool.ended:
                self.close()

    def _step_lanes(self) -> int:
        offender = self._check(0, self.num_envs, *check_arguments(self))
        if offender < 0:
            self._ask("step")
        return offender

    def _reset_lanes(self, which: np.ndarray) -> None:
        self._ask("reset", [which[lo:hi] for lo, hi in self._spans])

    def _refresh_lanes(self, which: np.ndarray) -> None:
        self._ask("refresh", [which[lo:hi] for lo, hi in self._spans])

    def _write_state(self, out: np.ndarray) -> None:
        out[...] = np.concatenate(self._ask("state"))

    def _save_engine(self) -> Any:
        if self.game.physics is None:
            return None
        parts = self._ask("save")
        for part in parts:
            if isinstance(part, RuntimeError):  # there is nothing to save now: the workers are as well as before
                raise part
        return join_saved(parts)

    def _load_engine(self, saved: Any) -> None:
        if saved is not None:
            self._ask("load", [part_of(saved, lo, hi) for lo, hi in self._spans])

    def _load_bodies(self, which: np.ndarray) -> None:
        if self.game.physics is not None:
            self._ask("load_bodies", [which[lo:hi] for lo, hi in self._spans])

    def _render_engine(self, lane: int) -> np.ndarray:
        lane = range(self.num_envs)[lane]
        worker = next(k for k, (_, hi) in enumerate(self._spans) if lane < hi)
        (picture,) = self._ask_some("render", {worker: lane - self._spans[worker][0]})
        if isinstance(picture, NotImplementedError):
            raise picture
        return picture

    def _recover(self) -> None:
        self._ask("wait")  # until no worker writes into the arrays

    def close(self) -> None:
        """Ends the workers and frees the shared memory; the arrays keep their last values."""
        with Hold("the end of the workers"):
            if not self.guard.closed:
                super().close()
                self._pool.end("closed")
                self.guard.why_closed = self._pool.ended
                self._block.free()

    suspend = close  # other processes would need other memory

    def leave(self) -> None:
        """Called in the child of a fork: what there is belongs to the parent, and this copy is closed."""
        self.guard.close()
        self._pool.leave()
        self.guard.why_closed = self._pool.ended
        self._block.leave()

    def _copy_options(self) -> dict[str, Any]:
        return {**super()._copy_options(), "workers": self.workers}


class _Layout(Simulation):
    """A simulation of arrays alone: measures their memory."""

    def _reset_lanes(self, which: np.ndarray) -> None: ...

    def _step_lanes(self) -> int:
        return -1

    def _refresh_lanes(self, which: np.ndarray) -> None: ...

    def _write_state(self, out: np.ndarray) -> None: ...


def _leave_all() -> None:
    for sim in list(_simulations):
        sim.leave()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_all)


def _pickled(game: Game) -> bytes:
    """A game for workers: by value, so that no factory runs there, or as its recipe if its functions have no names."""
    try:
        return pickle.dumps(ByValue(game), pickle.HIGHEST_PROTOCOL)
    except (pickle.PicklingError, AttributeError, TypeError):
        return pickle.dumps(game, pickle.HIGHEST_PROTOCOL)


def _work(
    pipe: Connection,
    memory_name: str,
    plan: list[tuple[str, int, tuple[int, ...], np.dtype]],
    pickled: bytes,
    num_envs: int,
    span: tuple[int, int],
    options: dict[str, Any],
) -> None:
    """Main loop of a worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all processes of a terminal: the parent decides
    lo, hi = span
    places = {name: (offset, shape, dtype) for name, offset, shape, dtype in plan}

    def attach(name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        offset, whole_shape, _ = places[name]
        whole = np.ndarray(whole_shape, dtype, memory.buf, offset)
        return whole[lo:hi] if whole_shape[0] == num_envs else np.zeros(shape, dtype)

    try:
        memory = SharedMemory(memory_name)
        game = pickle.loads(pickled)
        kind = KernelSimulation if game.physics is None else PhysicsSimulation
        sim = kind(game, hi - lo, allocate=attach, attach=True, **options)
        answer: tuple[int, bool, Any] = (0, False, None)
    except BaseException as error:
        pipe.send((0, True, _report_of(error)))
        return
    while True:
        try:
            pipe.send(answer)
            message = pipe.recv()
        except (EOFError, BrokenPipeError, ConnectionResetError):
            return  # the parent is gone
        if message is None:
            sim.close()
            return
        number, *request = message
        try:
            answer = (number, False, answered(sim, *request))
        except BaseException as error:
            answer = (number, True, _report_of(error))


def _report_of(error: BaseException) -> Any:
    """The report of an error to the parent; an error of the rules is sent as it is."""
    return error if isinstance(error, RuleError) else traceback.format_exc()


def answered(sim: Simulation, call: str, argument: Any) -> Any:
    """Carries out a request of the parent on a worker's simulation. Returns the answer."""
    if call == "wait":
        return None
    if call == "step":
        return sim._step_lanes()
    if call == "reset":
        return sim._reset_lanes(np.ascontiguousarray(argument))
    if call == "refresh":
        return sim._refresh_lanes(np.ascontiguousarray(argument))
    if call == "save":
        try:
            return sim._save_engine()
        except RuntimeError as error:  # such as a log that was given up: an answer, no failure of this process
            return error
    if call == "load":
        return sim._load_engine(argument)
    if call == "load_bodies":
        return sim._load_bodies(np.ascontiguousarray(argument))
    if call == "render":
        try:
            return sim.render(argument)
        except NotImplementedError as error:
            return error
    if call == "state":
        return sim.state()
    raise ValueError(f"unknown request {call!r}")
