"""Arrays of the caller's own in which a simulation keeps its results: ``Simulation.step(out=...)``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from palaestra.core.batch_loop import WAITING
from palaestra.core.buffers import check_array

if TYPE_CHECKING:
    from palaestra.core.simulation import Simulation


def take(sim: Simulation, out: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Uses the caller's arrays from now on. Returns those that were used before, by name; none if they are the same.

    Raises:
        ValueError: An array cannot take the place of the simulation's own; none is taken then.
    """
    for name, array in out.items():
        check_array(sim.game, name, getattr(sim, name, None), array)
    before: dict[str, Any] = {name: sim._mirrored.get(name, getattr(sim, name)) for name in out}
    if all(before[name] is array for name, array in out.items()):
        return {}
    if "observations" in out and sim.game.observe_reset is not None:  # the step writes no fields at="reset"
        out["observations"][...] = before["observations"]
    waiting = sim.states["pending"] == WAITING
    if waiting.any():  # the step does not write these lanes
        for name, array in out.items():
            array[waiting] = before[name][waiting]
    use(sim, out)
    return before


def use(sim: Simulation, arrays: Mapping[str, np.ndarray]) -> None:
    """Puts arrays, which fit, in the place of the simulation's own."""
    for name, array in arrays.items():
        if name == "observations":
            rows = array.reshape(sim.num_envs, -1)
            sim.buffers.observations = rows.view(sim.game.observation_dtype)[:, 0]
            sim._name_observations()
        elif name == "rewards" and sim.buffers.rewards.shape != array.shape:
            sim._mirrored[name] = array  # the rules pay all slots, users see the visible agents
        else:
            setattr(sim.buffers, name, array)
        if name not in sim._mirrored:
            setattr(sim, name, array)
    sim._buffers_changed()
