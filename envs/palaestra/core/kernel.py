"""Games whose rules are compiled whole: the simulation of kernel games."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from palaestra.core.game import Game
from palaestra.core.linker import Kernel, jit_disabled, link, record_view
from palaestra.core.simulation import Simulation


class KernelSimulation(Simulation):
    """Rules compiled into one batch loop; ``threads`` slices of the lanes run side by side."""

    def __init__(self, game: Game, num_envs: int, **options: Any) -> None:
        """See `Simulation`."""
        super().__init__(game, num_envs, **options)
        self._kernel: Kernel = link(game)
        self._pool: ThreadPoolExecutor | None = None
        self._pool_pid = 0
        self._buffers_changed()

    def _buffers_changed(self) -> None:
        self._arguments = lane_arguments(self)
        none = np.zeros(self.num_envs, np.bool_)
        bind = self._kernel.bind
        self._step_driver = bind("step_lanes", 0, 0, True, self._mode, 0, *self._arguments)
        self._step_arguments = (0, self.num_envs, True, self._mode, 0, *self._arguments)  # made once
        if self.threads > 1:
            self._check_driver = bind("check_lanes", 0, 0, *self._arguments)
        self._reset_driver = bind("reset_lanes", 0, 0, none, 0, *self._arguments)
        self._see_driver = bind("see_lanes", 0, 0, none, 0, *self._arguments)

    def _step_lanes(self) -> int:
        if self.threads == 1:
            return self._step_driver(*self._step_arguments)
        offender = self._check_driver(0, self.num_envs, *self._arguments)  # all of it before any slice moves
        if offender < 0:
            self._slices(lambda lo, hi, t: self._step_driver(lo, hi, False, self._mode, t, *self._arguments))
        return offender

    def _slices(self, call: Callable[[int, int, int], Any]) -> None:
        if self._pool is None or self._pool_pid != os.getpid():  # threads do not survive a fork
            self._pool, self._pool_pid = ThreadPoolExecutor(self.threads), os.getpid()
        edges = [self.num_envs * t // self.threads for t in range(self.threads + 1)]
        waiting = [self._pool.submit(call, edges[t], edges[t + 1], t) for t in range(1, self.threads)]
        call(edges[0], edges[1], 0)
        for slice_ in waiting:
            slice_.result()

    def _reset_lanes(self, which: np.ndarray) -> None:
        self._reset_driver(0, self.num_envs, which, 0, *self._arguments)

    def _see_lanes(self, which: np.ndarray) -> None:
        self._see_driver(0, self.num_envs, which, 0, *self._arguments)

    def _write_state(self, out: np.ndarray) -> None:
        states, scratch = record_view(self.states), record_view(self._scratch)
        driver = self._kernel.bind("state_lanes", 0, 0, 0, states, world_of(self.game), out, scratch)
        driver(0, self.num_envs, 0, states, world_of(self.game), out, scratch)

    def close(self) -> None:
        """Ends the threads."""
        super().close()
        if self._pool is not None and self._pool_pid == os.getpid():
            self._pool.shutdown()
        self._pool = None


def world_of(game: Game) -> Any:
    """The game's world, or 0 where it has none (kernels take it untouched)."""
    return 0 if game.world is None else game.world


def lane_arguments(sim: Simulation) -> tuple:
    """The arrays of `palaestra.core.lanes` drivers, from S to SCRATCH."""
    n = sim.num_envs
    bytes_of = lambda a: a.view("u1").reshape(len(a), -1)  # noqa: E731
    observation, final = sim._observation_memory, sim._final_memory
    mask, final_mask = sim._mask_memory, sim._final_mask_memory
    arrays = (
        sim.states,
        bytes_of(sim.states),
        world_of(sim.game),
        sim._words,
        sim._action_rows,
        sim._wi,
        sim._wi.view("f8"),
        observation,
        bytes_of(observation),
        mask,
        mask.view("i1").reshape(n, -1),
        final,
        bytes_of(final),
        final_mask,
        final_mask.view("i1").reshape(len(final_mask), -1),
        sim._final_info,
        sim.rewards,
        sim.terminated,
        sim.truncated,
        sim.agent_terminated,
        sim._scratch,
    )
    if not jit_disabled():
        return arrays
    return tuple(record_view(a) if isinstance(a, np.ndarray) else a for a in arrays)
