"""Games whose bodies another engine moves: `command` -> engine -> `evaluate`, `Game.periods` times a decision.

The rules stay kernel hooks; an engine is a `PhysicsEngine` that reads the bodies' inputs from the match records and
writes their new state back. What it keeps besides, it may `save` (`SavingEngine`); an engine that cannot is brought
back to a snapshot by repeating its inputs (`palaestra.core.run.input_log`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from palaestra.core.compile.batch_loop import RESET_DUE, RUNNING
from palaestra.core.compile.linker import Kernel, link
from palaestra.core.run.input_log import InputLog, Inputs
from palaestra.core.run.kernel import bound, lane_arguments, write_state
from palaestra.core.run.simulation import Simulation
from palaestra.core.spec.engines import DrawingEngine, PhysicsEngine, Saved, SavingEngine
from palaestra.core.spec.factories import load
from palaestra.core.spec.rules import Game


def engine_class(game: Game) -> type:
    """Class of the game's engine.

    Raises:
        ValueError: The game has no engine outside.
    """
    if game.physics is None:
        raise ValueError(f"{game.name} is a kernel game: it has no engine")
    engine: Any = load(game.physics)
    return engine


def engine_drivers(sim: Simulation) -> tuple[Callable, ...]:
    """The compiled pieces of a decision: prepare, command, evaluate, finish, start, observe."""
    bind = functools.partial(bound, sim, link(sim.game, sim.compiled), kind=PhysicsSimulation)
    rest = lane_arguments(sim)
    mode, (stage, results, which) = sim.autoreset, np.zeros((3, sim.num_envs), np.int64)
    return (
        bind("prepare_lanes", 0, 0, True, 0, stage, results, *rest),
        bind("command_lanes", 0, 0, 0, stage, results, *rest),
        bind("evaluate_lanes", 0, 0, 0, stage, results, *rest),
        bind("finish_lanes", 0, 0, mode, 0, stage, results, which, *rest),
        bind("start_lanes", 0, 0, stage, 0, *rest),
        bind("observe_lanes", 0, 0, which, 0, *rest),
    )


class PhysicsSimulation(Simulation):
    """Bodies moved by a `PhysicsEngine` in this process, everything else by the game's compiled hooks.

    ``threads`` is handed to the engine; the hooks run in one thread.

    Attributes:
        engine: The engine.
        input_log: The inputs of an engine that cannot save its state, else None.
    """

    def __init__(self, game: Game, num_envs: int, **options: Any) -> None:
        """See `Simulation`. The engine is made here."""
        super().__init__(game, num_envs, **options)
        self.engine: PhysicsEngine = engine_class(game)(game, num_envs, self.threads, **game.physics_options)
        self._stage = np.zeros(num_envs, np.int64)
        self._results = np.zeros(num_envs, np.int64)
        self._shown = np.zeros(num_envs, np.int64)
        self._all_lanes = np.arange(num_envs)
        self._loaded = False
        self.input_log: InputLog | None = None
        if not isinstance(self.engine, SavingEngine):
            bodies: np.ndarray = self.states[self.engine.body_field]
            self.input_log = InputLog(game.name, bodies, self.engine.command_fields)
        self._arguments = lane_arguments(self)
        drivers = engine_drivers(self)
        self._prepare, self._command, self._evaluate, self._finish_lanes, self._start_match, self._observe = drivers

    def _step_lanes(self) -> int:
        n, stage, results, rest = self.num_envs, self._stage, self._results, self._arguments
        prepared = self._prepare(0, n, True, 0, stage, results, *rest)
        if prepared >= 0:
            return prepared
        playing = -1 - prepared
        lanes = self._all_lanes if playing == n else np.flatnonzero(stage == RUNNING)
        for _ in range(self.game.periods):
            if playing == 0:
                break
            self._command(0, n, 0, stage, results, *rest)
            if self.input_log is not None:
                self.input_log.append(lanes)
            self.engine.advance(self.states, lanes)
            left = self._evaluate(0, n, 0, stage, results, *rest)
            if left < playing:
                playing, lanes = left, np.flatnonzero((stage == RUNNING) & (results == 0))
        if self._finish_lanes(0, n, self.autoreset, 0, stage, results, self._shown, *rest):
            self._start_match(0, n, stage, 0, *rest)
            self._load_bodies(stage == RESET_DUE)
        self._observe(0, n, self._shown, 0, *rest)
        return -1

    def _reset_lanes(self, which: np.ndarray) -> None:
        self.buffers.clear_results(which)
        self._start(which)
        self._shown[...] = np.where(which, 2, 0)
        self._observe(0, self.num_envs, self._shown, 0, *self._arguments)

    def _start(self, which: np.ndarray) -> None:
        self._shown[...] = np.where(which, RESET_DUE, RUNNING)
        self._start_match(0, self.num_envs, self._shown, 0, *self._arguments)
        self._load_bodies(which)

    def _load_bodies(self, which: np.ndarray) -> None:
        lanes = np.flatnonzero(which)
        if self.input_log is not None:
            self.input_log.start(lanes)
        self.engine.load(self.states, lanes)
        self._loaded = True

    def _refresh_lanes(self, which: np.ndarray) -> None:
        self._shown[...] = np.where(which, 2, 0)
        self._observe(0, self.num_envs, self._shown, 0, *self._arguments)

    @functools.cached_property
    def _kernel(self) -> Kernel:
        return link(self.game, self.compiled)

    def _write_state(self, out: np.ndarray) -> None:
        write_state(self, self._kernel, out)

    def _save_engine(self) -> Saved | Inputs:
        if not self._loaded:
            raise RuntimeError(f"{self.game.name} has no bodies yet: call reset() before snapshot()")
        if self.input_log is not None:
            return self.input_log.save()
        assert isinstance(self.engine, SavingEngine)
        return self.engine.save(self._all_lanes)

    def _load_engine(self, saved: Saved | Inputs) -> None:
        if isinstance(saved, Inputs):
            self._repeat(saved)
        elif isinstance(self.engine, SavingEngine):
            self.engine.load_saved(saved, self._all_lanes)
        self._loaded = True

    def _repeat(self, saved: Inputs) -> None:
        """Runs every lane again from its start; the match records are as they should be and stay so."""
        assert self.input_log is not None
        target = self.states.copy()
        self.input_log.restart(saved)
        self.engine.load(self.states, self._all_lanes)
        for period in range(max(map(len, saved.periods))):
            lanes = np.flatnonzero([period < len(rows) for rows in saved.periods])
            self.input_log.repeat(saved, lanes, period)
            self.engine.advance(self.states, lanes)
        bodies = self.engine.body_field
        same = self.states[bodies].tobytes() == target[bodies].tobytes()
        self.states[...] = target
        if not same:
            raise RuntimeError(f"{self.game.name}: the engine did not come back to the snapshot (another version?)")

    def _render_engine(self, lane: int) -> np.ndarray:
        if not isinstance(self.engine, DrawingEngine):
            raise NotImplementedError(
                f'{self.game.name} has render="engine", but {type(self.engine).__name__} has no method render'
            )
        return self.engine.render(self.states, lane)

    def close(self) -> None:
        """Frees the engine."""
        if not self.guard.closed:
            self.engine.close()
        super().close()


def join_saved(parts: list[Saved] | list[Inputs]) -> Saved | Inputs:
    """What several simulations saved of consecutive lanes, as one would have saved it."""
    if isinstance(parts[0], Inputs):
        return Inputs.joined(parts)  # type: ignore[arg-type]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}  # type: ignore[index]


def part_of(saved: Saved | Inputs, lo: int, hi: int) -> Saved | Inputs:
    """What was saved of the lanes [lo, hi)."""
    if isinstance(saved, Inputs):
        return saved.part(lo, hi)
    return {name: array[lo:hi] for name, array in saved.items()}
