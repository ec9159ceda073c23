"""Games whose rules are compiled whole: the simulation of kernel games."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from palaestra.core.compile.batch_loop import OFF, REFRESH, RESET_DUE, SKIP
from palaestra.core.compile.compiler_messages import explain_refusal, plain_text
from palaestra.core.compile.diagnosis import RuleError
from palaestra.core.compile.linker import Kernel, hooks_of, link, record_view
from palaestra.core.contract.packing import mask_spans, observation_spans
from palaestra.core.contract.rules import Game
from palaestra.core.run.buffers import first_of_equal, rows_of_bytes
from palaestra.core.run.dry_run import find_mistake, refuse_certain_mistakes
from palaestra.core.run.lane_threads import LaneThreads
from palaestra.core.run.recorder_protocol import Call
from palaestra.core.run.simulation import Simulation


class KernelSimulation(Simulation):
    """Rules compiled into one batch loop; ``threads`` slices of the lanes run side by side."""

    def __init__(self, game: Game, num_envs: int, **options: Any) -> None:
        """See `Simulation`."""
        super().__init__(game, num_envs, **options)
        self.kernel: Kernel = link(game, self.compiled)
        self._lane_threads: LaneThreads | None = None
        self._arguments = lane_arguments(self)
        self._step_driver = bound(self, self.kernel, "step_lanes", 0, 0, True, self.autoreset, 0, *self._arguments)
        if self.threads == 1:
            self._machine_step = partial(self._step_driver, 0, self.num_envs, True, self.autoreset, 0, *self._arguments)
            self._one_call = self._machine_step if self.compiled else None
        else:
            self._check_arguments = check_arguments(self)
            self._check_driver = self.kernel.bind("check_lanes", 0, 0, *self._check_arguments)

    def _step_lanes(self) -> int:
        if self.threads == 1:
            return self._machine_step()
        offender = self._check_driver(0, self.num_envs, *self._check_arguments)  # all of it before any slice moves
        if offender < 0:
            self._play()
        return offender

    def _check_no_outputs(self, call: Call) -> None:
        readers = [f"the Python opponent of {team}" for team in self.opponent_assignments]
        readers += ["the recorder"] if self.recorder is not None else []
        if readers:
            raise ValueError(f"{call}(outputs=False): {readers[0]} reads observations")
        if call == "step" and self.autoreset != OFF:
            raise ValueError(f'step(outputs=False) needs autoreset_mode="off", got {self.autoreset_mode!r}')
        _ = self._result_driver  # the first such call compiles it, before any match is touched

    @functools.cached_property
    def _result_driver(self) -> Callable:
        arguments = (self.buffers.mask_rows, *self._arguments)
        driver = bound(self, self.kernel, "result_lanes", 0, 0, True, True, 0, *arguments)
        return lambda lo, hi, check, plays, t: driver(lo, hi, check, plays, t, *arguments)

    def _step_results(self) -> int:
        pending = self.states["pending"]
        if (pending == RESET_DUE).any():  # in records of a simulation that starts matches by itself
            self._refresh_lanes(pending != SKIP)
            return self._step_lanes()
        self._outputs_hold = False
        if (pending == SKIP).any():
            self._unshare_masks()
        driver, checks = self._result_driver, self.threads == 1
        if not checks and (offender := self._check_driver(0, self.num_envs, *self._check_arguments)) >= 0:
            return offender
        self._slices(lambda lo, hi, t: driver(lo, hi, False, False, t))
        if checks:
            return driver(0, self.num_envs, True, True, 0)
        self._slices(lambda lo, hi, t: driver(lo, hi, False, True, t))
        return -1

    def _share_masks(self, which: np.ndarray) -> None:
        self._outputs_hold = False
        self._unshare_masks()
        rows, own = self.buffers.mask_rows, np.arange(self.num_envs)
        rows[which] = first_of_equal(self.states, which)
        rows[which & (rows == own)] = -1

    def _unshare_masks(self) -> None:
        """Lanes that are held to another lane's masks have none, so that any lane's may be written."""
        if not self._outputs_hold:
            rows = self.buffers.mask_rows
            rows[rows != np.arange(self.num_envs)] = -1

    def _have_written(self, which: np.ndarray) -> None:
        """Lanes show what their records hold again."""
        if not self._outputs_hold:
            self.buffers.mask_rows[which] = np.flatnonzero(which)
            self._outputs_hold = bool(which.all())

    def _play(self) -> None:
        self._slices(lambda lo, hi, t: self._step_driver(lo, hi, False, self.autoreset, t, *self._arguments))

    def _slices(self, call: Callable[[int, int, int], Any]) -> None:
        if self.threads == 1:
            call(0, self.num_envs, 0)
            return
        if self._lane_threads is None or self._lane_threads.pid != os.getpid():
            self._lane_threads = LaneThreads(self.threads)
        self._lane_threads.run(call, [self.num_envs * t // self.threads for t in range(self.threads + 1)])

    def _reset_lanes(self, which: np.ndarray) -> None:
        self._unshare_masks()
        self._only(which, RESET_DUE)
        self._have_written(which)

    def _refresh_lanes(self, which: np.ndarray) -> None:
        self._unshare_masks()
        self._only(which, REFRESH)
        self._have_written(which)

    def _only(self, which: np.ndarray, task: int) -> None:
        """Sends the lanes of ``which`` through the one driver for a task; the others stay as they are."""
        pending = self.states["pending"]
        if task == RESET_DUE and np.count_nonzero(which) == self.num_envs:
            pending.fill(task)
            self._play()
            return
        before = pending.copy()
        pending[...] = np.where(which, task, SKIP)
        try:
            self._play()
        finally:
            back = ~which if task == RESET_DUE else slice(None)
            pending[back] = before[back]

    def _write_state(self, out: np.ndarray) -> None:
        write_state(self, self.kernel, out)

    def _recover(self) -> None:
        self._end_threads()  # slices of the interrupted call may still be running

    def close(self) -> None:
        """Ends the threads."""
        super().close()
        self._end_threads()

    def _end_threads(self) -> None:
        if self._lane_threads is not None:
            self._lane_threads.end()
        self._lane_threads = None


def world_of(game: Game) -> Any:
    """The game's world, or 0 where it has none (kernels take it untouched)."""
    return 0 if game.world is None else game.world


def write_state(sim: Simulation, kernel: Kernel, out: np.ndarray) -> None:
    """Lets the game's own hook write the global state."""
    arguments = _viewed(sim, (sim.states, world_of(sim.game), out, sim.buffers.scratch))
    driver = bound(sim, kernel, "state_lanes", 0, 0, 0, *arguments)
    driver(0, sim.num_envs, 0, *arguments)


def bound(
    sim: Simulation, kernel: Kernel, name: str, *arguments: Any, kind: type[Simulation] | None = None
) -> Callable:
    """A driver for the arrays of a simulation: see `Kernel.bind`.

    Before rules are compiled anew they are played as plain Python for a short time, longer if the compiler refuses.

    Args:
        sim: The simulation.
        kernel: That of its game.
        name: Of the driver.
        *arguments: For `Kernel.bind`.
        kind: What plays the rules as plain Python; the simulation's own class if None.

    Raises:
        RuleError: The rules are wrong; names the author's file and line.
    """
    if not kernel.compiled:
        return kernel.bind(name, *arguments)

    def make_twin(lanes: int) -> Simulation:
        twin = (kind or type(sim))(sim.game, lanes, compiled=False)
        for parameters in ("parameters", "next_parameters"):
            if parameters in (sim.states.dtype.names or ()):
                twin.states[parameters] = sim.states[parameters][0]
        return twin

    try:
        return kernel.bind(
            name, *arguments, before=lambda: refuse_certain_mistakes(sim, make_twin, kernel.native_codes)
        )
    except (OSError, MemoryError):
        raise
    except Exception as error:
        wrong = error if isinstance(error, RuleError) else _explained(sim, kernel, error, make_twin)
        if wrong is None:
            raise
        refusal = wrong
    raise refusal.with_traceback(None)  # here, where the compiler's own error is no context of it


def _explained(
    sim: Simulation, kernel: Kernel, error: Exception, make_twin: Callable[[int], Simulation]
) -> RuleError | None:
    wrong = find_mistake(sim, make_twin) or explain_refusal(sim.game, hooks_of(sim.game), error, kernel.functions)
    if wrong is not None:
        wrong.compiler_message = plain_text(error)
    return wrong


def lane_arguments(sim: Simulation) -> tuple:
    """The arrays of `palaestra.core.compile.batch_loop` drivers, from S to mask_spans.

    Kernels of sized games write work records; the rows that users see, whose layout differs between the games that
    share a kernel, are passed as bytes alone.
    """
    b, game, table = sim.buffers, sim.game, sim.action_table
    work, work_masks = b.work_observations, b.work_masks
    observations, masks = (work, work_masks) if game.sized else (b.observations, b.masks)
    arrays = (
        b.states,
        rows_of_bytes(b.states),
        world_of(game),
        table.words,
        table.first_word,
        b.action_records,
        b.action_words,
        b.action_reals,
        b.rewards,
        b.terminated,
        b.truncated,
        b.winners,
        b.end_reasons,
        b.agent_terminated,
        b.scratch,
        observations,
        rows_of_bytes(b.observations),
        masks,
        rows_of_bytes(b.masks, "i1"),
        rows_of_bytes(b.final_observations),
        rows_of_bytes(b.final_masks, "i1"),
        b.final_info,
        work,
        rows_of_bytes(work),
        work_masks,
        rows_of_bytes(work_masks, "i1"),
        observation_spans(game),
        mask_spans(game),
    )
    return _viewed(sim, arrays)


def check_arguments(sim: Simulation) -> tuple:
    """The arrays of `palaestra.core.compile.batch_loop.check_lanes`."""
    b = sim.buffers
    return _viewed(sim, (b.states, sim.action_table.words, b.action_words, b.action_reals))


def _viewed(sim: Simulation, arrays: tuple) -> tuple:
    """The arrays as the drivers of a simulation take them."""
    if sim.compiled:
        return arrays
    return tuple(map(_with_attributes, arrays))


def _with_attributes(argument: Any) -> Any:
    """An array, or the arrays of a world, whose records have attributes in plain Python too."""
    if isinstance(argument, np.ndarray):
        return record_view(argument)
    if isinstance(argument, tuple):
        members = map(_with_attributes, argument)
        return type(argument)._make(members) if hasattr(argument, "_fields") else tuple(members)  # type: ignore[attr-defined]
    return argument
