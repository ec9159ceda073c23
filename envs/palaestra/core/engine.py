"""Games whose bodies another engine moves: `command` -> engine -> `judge`, `Game.periods` times a decision.

The rules stay kernel hooks; an engine is a `Plant` that reads the bodies' inputs from the match records and writes
their new state back.
"""

from __future__ import annotations

import importlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.lib.stride_tricks import as_strided

from palaestra.core.fields import member_offset
from palaestra.core.game import Game
from palaestra.core.kernel import lane_arguments, write_state
from palaestra.core.lanes import RESET_DUE, RUNNING
from palaestra.core.linker import link
from palaestra.core.simulation import Simulation


class Plant(Protocol):
    """An engine that moves the bodies of N matches.

    Attributes:
        body_field: Field of the match record that holds the bodies, ``[K]`` records a lane.
        command_fields: Members of a body that the engine reads as inputs.
    """

    body_field: str
    command_fields: tuple[str, ...]

    def __init__(self, game: Game, lanes: int, **options: Any) -> None: ...

    def load(self, states: np.ndarray, lanes: np.ndarray) -> None:
        """Starts the bodies of ``lanes`` (indices) at the initial conditions in their records; writes all outputs.

        What the bodies did before must not matter.
        """
        ...

    def advance(self, states: np.ndarray, lanes: np.ndarray) -> None:
        """Reads the inputs of ``lanes``, runs one period, writes all outputs."""
        ...

    def close(self) -> None:
        """Frees the engine."""
        ...


@dataclass(frozen=True)
class FlightLog:
    """How the bodies of each lane came to where they are: an engine that cannot save its state replays this.

    Attributes:
        starts: Bodies ``[N, K]`` as the rules' reset wrote them.
        inputs: For each lane the inputs of its periods, float64 ``[periods, K, inputs]``.
    """

    starts: np.ndarray
    inputs: tuple[np.ndarray, ...]


def load_plant(game: Game) -> type:
    """Class of the game's engine."""
    if game.physics is None:
        raise ValueError(f"{game.name} is a kernel game: it has no engine")
    module, _, name = game.physics.partition(":")
    return getattr(importlib.import_module(module), name)


def engine_drivers(sim: Simulation) -> tuple[Callable, ...]:
    """The compiled pieces of a decision: prepare, command, judge, close, begin, see."""
    bind, rest = link(sim.game).bind, lane_arguments(sim)
    mode, stage, results = sim._mode, np.zeros(sim.num_envs, np.int64), np.zeros(sim.num_envs, np.int64)
    return (
        bind("prepare_lanes", 0, 0, True, 0, stage, results, *rest),
        bind("command_lanes", 0, 0, 0, stage, results, *rest),
        bind("judge_lanes", 0, 0, 0, stage, results, *rest),
        bind("close_lanes", 0, 0, mode, 0, stage, results, *rest),
        bind("begin_lanes", 0, 0, stage, 0, *rest),
        bind("see_lanes", 0, 0, stage, 0, *rest),
    )


class EngineSimulation(Simulation):
    """Bodies moved by a `Plant` in this process, everything else by the game's compiled hooks."""

    def __init__(self, game: Game, num_envs: int, **options: Any) -> None:
        """See `Simulation`. The engine is made here."""
        super().__init__(game, num_envs, **options)
        self.plant: Plant = load_plant(game)(game, num_envs, **game.physics_options)
        self._kernel = link(game)
        self._stage = np.zeros(num_envs, np.int64)
        self._results = np.zeros(num_envs, np.int64)
        self._bodies = self.states[self.plant.body_field]
        self._inputs = _joined(self._bodies, self.plant.command_fields)
        self._shown = np.zeros(num_envs, np.int64)
        self._all_lanes = np.arange(num_envs)
        self._starts = self._bodies.copy()
        self._log: deque[tuple[np.ndarray, np.ndarray]] = deque()
        self._log_offset = 0  # number of the oldest entry kept
        self._since = np.zeros(num_envs, np.int64)  # number of the first entry of each lane's match
        self._buffers_changed()

    def _buffers_changed(self) -> None:
        self._arguments = lane_arguments(self)
        self._prepare, self._command, self._judge, self._close_lanes, self._begin, self._see = engine_drivers(self)

    def _step_lanes(self) -> int:
        n, stage, results, rest = self.num_envs, self._stage, self._results, self._arguments
        offender = self._prepare(0, n, True, 0, stage, results, *rest)
        if offender >= 0:
            return offender
        lanes = np.flatnonzero(stage == RUNNING) if stage.any() else self._all_lanes
        for _ in range(self.game.periods):
            if lanes.size == 0:
                break
            self._command(0, n, 0, stage, results, *rest)
            self._advance(lanes)
            if self._judge(0, n, 0, stage, results, *rest) < lanes.size:
                lanes = np.flatnonzero((stage == RUNNING) & (results == 0))
        self._close_lanes(0, n, self._mode, 0, stage, results, *rest)
        fresh = stage == RESET_DUE
        if fresh.any():
            self._start(fresh)
        self._shown[...] = np.where(fresh, 2, 1)
        self._see(0, n, self._shown, 0, *rest)
        return -1

    def _reset_lanes(self, which: np.ndarray) -> None:
        self._clear_results(which)
        self._start(which)
        self._look_lanes(which)

    def _start(self, which: np.ndarray) -> None:
        self._shown[...] = np.where(which, RESET_DUE, RUNNING)
        self._begin(0, self.num_envs, self._shown, 0, *self._arguments)
        lanes = np.flatnonzero(which)
        self._starts[lanes] = self._bodies[lanes]
        self._since[lanes] = self._log_offset + len(self._log)
        self.plant.load(self.states, lanes)

    def _advance(self, lanes: np.ndarray) -> None:
        if self._inputs is not None:
            inputs = self._inputs.copy() if lanes.size == self.num_envs else self._inputs[lanes]
        else:
            inputs = np.stack([self._bodies[name][lanes] for name in self.plant.command_fields], axis=-1)
        self._log.append((lanes, inputs))
        self.plant.advance(self.states, lanes)
        if len(self._log) % 256 == 0:
            oldest = int(self._since.min())
            while self._log_offset < oldest:
                self._log.popleft()
                self._log_offset += 1

    def _look_lanes(self, which: np.ndarray) -> None:
        self._shown[...] = np.where(which, 2, 0)
        self._see(0, self.num_envs, self._shown, 0, *self._arguments)

    def _write_state(self, out: np.ndarray) -> None:
        write_state(self, out)

    def _save_engine(self) -> FlightLog:
        inputs: list[list[np.ndarray]] = [[] for _ in range(self.num_envs)]
        for number, (lanes, rows) in enumerate(self._log, self._log_offset):
            for lane, row in zip(lanes, rows, strict=True):
                if number >= self._since[lane]:
                    inputs[lane].append(row)
        shape = (0, *self._bodies.shape[1:], len(self.plant.command_fields))
        stacked = tuple(np.array(rows) if rows else np.zeros(shape) for rows in inputs)
        return FlightLog(self._starts.copy(), stacked)

    def _load_engine(self, saved: FlightLog) -> None:
        """Flies every lane again from its start; the match records are as they should be and stay so."""
        target = self.states.copy()
        self._log.clear()
        self._log_offset = 0
        self._since[:] = 0
        self._starts[...] = saved.starts
        self._bodies[...] = saved.starts
        self.plant.load(self.states, np.arange(self.num_envs))
        for period in range(max((len(rows) for rows in saved.inputs), default=0)):
            lanes = np.array([k for k, rows in enumerate(saved.inputs) if period < len(rows)])
            inputs = np.stack([saved.inputs[k][period] for k in lanes])
            for column, name in enumerate(self.plant.command_fields):
                self._bodies[name][lanes] = inputs[..., column]
            self._log.append((lanes, inputs))
            self.plant.advance(self.states, lanes)
        same = self.states[self.plant.body_field].tobytes() == target[self.plant.body_field].tobytes()
        self.states[...] = target
        if not same:
            raise RuntimeError(f"{self.game.name}: the engine did not come back to the snapshot (another version?)")

    def close(self) -> None:
        """Frees the engine."""
        if not self._closed:
            self.plant.close()
        super().close()


def _joined(bodies: Any, names: tuple[str, ...]) -> np.ndarray | None:
    """View ``[N, K, names]`` of members that are float64 and lie side by side; None if they do not."""
    offsets = [member_offset(bodies.dtype, name) for name in names]
    kinds = {bodies.dtype[name] for name in names}
    if kinds != {np.dtype("f8")} or offsets != list(range(offsets[0], offsets[0] + 8 * len(names), 8)):
        return None
    return as_strided(bodies[names[0]], (*bodies.shape, len(names)), (*bodies.strides, 8))
