"""Slices of the lanes in worker processes, for engines that hold the interpreter's lock.

All arrays lie in one block of shared memory; a worker runs an ordinary simulation on its slice and answers over a
pipe. A worker that dies is an error that names it, never a wait without end; a worker whose parent dies reads the end
of its pipe and leaves.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import traceback
import weakref
from itertools import pairwise
from multiprocessing.connection import Connection, wait
from multiprocessing.shared_memory import SharedMemory
from typing import Any

import numpy as np

from palaestra.core.game import Game
from palaestra.core.kernel import KernelSimulation, check_arguments
from palaestra.core.linker import link
from palaestra.core.physics import PhysicsSimulation, engine_drivers, join_saved, part_of
from palaestra.core.simulation import Simulation

ALIGNMENT = 64
START_SECONDS = 300.0
"""A worker that has not compiled and started by then is given up."""


class WorkerError(RuntimeError):
    """A worker process failed or died."""


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
            game: The rules. It is pickled to the workers.
            num_envs: Number of lanes.
            workers: Number of processes, at least 1; no more than lanes are started.
            **options: As for `Simulation`.

        Raises:
            WorkerError: A worker could not start; carries its message.
        """
        if workers < 1:
            raise ValueError(f"workers must be at least 1, got {workers}")
        self.workers = min(workers, num_envs)
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
        self.memory = SharedMemory(create=True, size=size)
        self.processes: list[Any] = []
        self._pipes: list[Connection] = []
        self._finalizer = weakref.finalize(self, _shut_down, self.processes, self._pipes, self.memory)
        places = {name: offset for name, offset, _, _ in plan}
        block = np.frombuffer(self.memory.buf or b"", np.uint8)  # keeps the memory mapped for as long as a view is held
        super().__init__(
            game,
            num_envs,
            allocate=lambda name, shape, dtype: np.ndarray(shape, dtype, block, places[name]),
            **options,
        )
        if game.physics is not None:
            engine_drivers(self)  # compiled once here, so that the workers find them in the cache
        self._check = link(game, self.compiled).bind("check_lanes", 0, 0, *check_arguments(self))
        edges = [num_envs * k // self.workers for k in range(self.workers + 1)]
        self._spans = list(pairwise(edges))
        # spawn: a fork would copy locks held by threads that do not exist in the child
        context = multiprocessing.get_context("spawn")
        for k in range(self.workers):
            pipe, far_end = context.Pipe()
            arguments = (far_end, self.memory.name, plan, game, num_envs, self._spans[k], probe_options)
            process = context.Process(target=_work, args=arguments, daemon=True, name=f"palaestra-worker-{k}")
            process.start()
            far_end.close()
            self.processes.append(process)
            self._pipes.append(pipe)
        self._collect(START_SECONDS, list(range(self.workers)))

    def _ask(self, verb: str, arguments: list[Any] | None = None) -> list[Any]:
        """Sends all workers on an errand; their answers in their order."""
        return self._ask_some(verb, dict(enumerate(arguments or [None] * len(self._pipes))))

    def _ask_some(self, verb: str, arguments: dict[int, Any]) -> list[Any]:
        """The same with some of the workers, by number."""
        self._check_open()
        for k, argument in arguments.items():
            try:
                self._pipes[k].send((verb, argument))
            except OSError:
                raise self._died(k) from None
        return self._collect(None, list(arguments))

    def _collect(self, seconds: float | None, workers: list[int]) -> list[Any]:
        """Answers of the workers, in their order."""
        answers: dict[int, Any] = {}
        open_ = set(workers)
        failure = None
        while open_:
            waiting: list[Any] = [self._pipes[k] for k in open_] + [self.processes[k].sentinel for k in open_]
            ready = wait(waiting, seconds)
            if not ready:
                self.close()
                raise WorkerError(f"workers {sorted(open_)} did not start within {seconds:.0f} s")
            for k in sorted(open_):
                if self._pipes[k] in ready:
                    try:
                        failed, answers[k] = self._pipes[k].recv()
                    except (EOFError, ConnectionResetError):
                        raise self._died(k) from None
                    failure = answers[k] if failed else failure
                    open_.discard(k)
                elif self.processes[k].sentinel in ready and not self._pipes[k].poll():
                    raise self._died(k)
        if failure is not None:
            self.close()
            raise WorkerError(f"a worker failed:\n{failure}")
        return [answers[k] for k in workers]

    def _died(self, k: int) -> WorkerError:
        process = self.processes[k]
        process.join(1.0)
        lo, hi = self._spans[k]
        lanes = f"lanes {lo} to {hi - 1}"
        code = process.exitcode
        self.close()
        return WorkerError(
            f"worker {k} ({lanes}) of {self.game.name} died with exit code {code}; its matches are lost. "
            "Make the simulation anew (a negative code is a signal: -9 is often the system running out of memory)."
        )

    def _step_lanes(self) -> int:
        offender = self._check(0, self.num_envs, *check_arguments(self))
        if offender < 0:
            self._ask("step")
        return offender

    def _reset_lanes(self, which: np.ndarray) -> None:
        self._ask("reset", [which[lo:hi] for lo, hi in self._spans])

    def _refresh_lanes(self, which: np.ndarray) -> None:
        self._ask("see", [which[lo:hi] for lo, hi in self._spans])

    def _write_state(self, out: np.ndarray) -> None:
        out[...] = np.concatenate(self._ask("state"))

    def _take_buffers(self, out: Any) -> dict[str, np.ndarray]:
        raise ValueError("out= needs a simulation in this process: leave workers away")

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

    def close(self) -> None:
        """Ends the workers and frees the shared memory; the arrays keep their last values."""
        if not self._closed:
            super().close()
            self._finalizer()

    def _copy_options(self) -> dict[str, Any]:
        return {**super()._copy_options(), "workers": self.workers}


class _Layout(Simulation):
    """A simulation of arrays alone: measures their memory."""

    def _reset_lanes(self, which: np.ndarray) -> None: ...

    def _step_lanes(self) -> int:
        return -1

    def _refresh_lanes(self, which: np.ndarray) -> None: ...

    def _write_state(self, out: np.ndarray) -> None: ...


def _shut_down(processes: list[Any], pipes: list[Connection], memory: SharedMemory) -> None:
    for pipe in pipes:
        with contextlib.suppress(OSError):  # it may be gone already
            pipe.send(None)
        pipe.close()
    for process in processes:
        process.join(2.0)
        if process.is_alive():
            process.kill()
            process.join()
    try:
        memory.close()
    except BufferError:  # a view is still held: the mapping goes with the last of them
        memory._buf = memory._mmap = None  # type: ignore[attr-defined]
    memory.unlink()


def _work(
    pipe: Connection,
    memory_name: str,
    plan: list[tuple[str, int, tuple[int, ...], np.dtype]],
    game: Game,
    num_envs: int,
    span: tuple[int, int],
    options: dict[str, Any],
) -> None:
    """Main loop of a worker."""
    memory = SharedMemory(memory_name)
    lo, hi = span
    places = {name: (offset, shape, dtype) for name, offset, shape, dtype in plan}

    def attach(name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        offset, whole_shape, _ = places[name]
        whole = np.ndarray(whole_shape, dtype, memory.buf, offset)
        return whole[lo:hi] if whole_shape[0] == num_envs else np.zeros(shape, dtype)

    try:
        kind = KernelSimulation if game.physics is None else PhysicsSimulation
        sim = kind(game, hi - lo, allocate=attach, attach=True, **options)
        answer: tuple[bool, Any] = (False, None)
    except BaseException:
        pipe.send((True, traceback.format_exc()))
        return
    while True:
        try:
            pipe.send(answer)
            message = pipe.recv()
        except (EOFError, BrokenPipeError, ConnectionResetError, KeyboardInterrupt):
            return  # the parent is gone
        if message is None:
            sim.close()
            return
        try:
            answer = (False, obey(sim, *message))
        except BaseException:
            answer = (True, traceback.format_exc())


def obey(sim: Simulation, verb: str, argument: Any) -> Any:
    """Runs an errand of the parent on a worker's simulation. Returns the answer."""
    if verb == "step":
        return sim._step_lanes()
    if verb == "reset":
        return sim._reset_lanes(np.ascontiguousarray(argument))
    if verb == "see":
        return sim._refresh_lanes(np.ascontiguousarray(argument))
    if verb == "save":
        try:
            return sim._save_engine()
        except RuntimeError as error:  # such as a log that was given up: an answer, no failure of this process
            return error
    if verb == "load":
        return sim._load_engine(argument)
    if verb == "load_bodies":
        return sim._load_bodies(np.ascontiguousarray(argument))
    if verb == "render":
        try:
            return sim.render(argument)
        except NotImplementedError as error:
            return error
    if verb == "state":
        return sim.state()
    raise ValueError(f"unknown verb {verb!r}")
