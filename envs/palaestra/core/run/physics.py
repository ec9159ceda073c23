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

from palaestra.core.compile.batch_loop import (
    COMMAND,
    EVALUATE,
    FINISH,
    OBSERVE,
    PREPARE,
    RESET_DUE,
    RUNNING,
    START,
)
from palaestra.core.compile.linker import Kernel, link
from palaestra.core.contract.engines import DrawingEngine, PhysicsEngine, Saved, SavingEngine
from palaestra.core.contract.factories import load
from palaestra.core.contract.rules import Game
from palaestra.core.run.input_log import InputLog, Inputs
from palaestra.core.run.kernel import bound, lane_arguments, write_state
from palaestra.core.run.simulation import Simulation


def engine_class(game: Game) -> type:
    """Class of the game's engine.

    Raises:
        ValueError: The game has no engine outside.
    """
    if game.physics is None:
        raise ValueError(f"{game.name} is a kernel game: it has no engine")
    engine: Any = load(game.physics)
    return engine


def engine_driver(sim: Simulation, stage: np.ndarray, results: np.ndarray, shown: np.ndarray) -> Callable[[int], int]:
    """`palaestra.core.compile.batch_loop.engine_lanes` for all lanes of a simulation, to be called with its parts."""
    arguments = (sim.autoreset, 0, stage, results, shown, *lane_arguments(sim))
    kernel = link(sim.game, sim.compiled)
    driver = bound(sim, kernel, "engine_lanes", 0, 0, *arguments, 0, kind=PhysicsSimulation)
    return functools.partial(driver, 0, sim.num_envs, *arguments)


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
        self.engine = self._make_engine()
        self._kept: Saved | None = None
        self._stage, self._results, self._shown = np.zeros((3, num_envs), np.int64)
        self._all_lanes = np.arange(num_envs)
        self._loaded = False
        self.input_log: InputLog | None = None
        if not isinstance(self.engine, SavingEngine):
            bodies: np.ndarray = self.states[self.engine.body_field]
            self.input_log = InputLog(game.name, bodies, self.engine.command_fields)
        self._lanes = engine_driver(self, self._stage, self._results, self._shown)

    def _step_lanes(self) -> int:
        prepared = self._lanes(PREPARE | COMMAND)
        if prepared >= 0:
            return prepared
        stage, playing = self._stage, -1 - prepared
        lanes = self._all_lanes if playing == self.num_envs else np.flatnonzero(stage == RUNNING)
        for periods_left in reversed(range(self.game.periods)):
            if playing == 0:
                break
            if self.input_log is not None:
                self.input_log.append(lanes)
            self.engine.advance(self.states, lanes)
            if periods_left and (left := self._lanes(EVALUATE | COMMAND)) < playing:
                playing, lanes = left, np.flatnonzero((stage == RUNNING) & (self._results == 0))
        if self._lanes(EVALUATE | FINISH | OBSERVE):
            self._start()
        return -1

    def _start(self) -> None:
        """Starts a match where the stage says so, and shows it once the engine has its bodies."""
        self._lanes(START)
        self._load_bodies(self._stage == RESET_DUE)
        self._lanes(OBSERVE)

    def _reset_lanes(self, which: np.ndarray) -> None:
        self.buffers.clear_results(which)
        self._stage[...] = np.where(which, RESET_DUE, RUNNING)
        self._start()

    def _load_bodies(self, which: np.ndarray) -> None:
        lanes = np.flatnonzero(which)
        if self.input_log is not None:
            self.input_log.start(lanes)
        self.engine.load(self.states, lanes)
        self._loaded = True

    def _refresh_lanes(self, which: np.ndarray) -> None:
        self._shown[...] = np.where(which, 2, 0)
        self._lanes(OBSERVE)

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

    def _make_engine(self) -> PhysicsEngine:
        return engine_class(self.game)(self.game, self.num_envs, self.threads, **self.game.physics_options)

    def _keep_engine(self) -> None:
        self._kept = None
        if self._loaded and isinstance(self.engine, SavingEngine):
            self._kept = self.engine.save(self._all_lanes)

    def _take_engine(self) -> None:
        self.engine = self._make_engine()
        if self._kept is not None:
            self._load_engine(self._kept)
        elif self._loaded and self.input_log is not None:
            try:
                self._repeat(self.input_log.save())
            except RuntimeError:  # its log was given up: the matches are lost, and a reset starts others
                self.guard.interrupted = "close"
        self._kept = None

    def _render_engine(self, lane: int) -> np.ndarray:
        if self.guard.suspended:
            self._open_again()
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
