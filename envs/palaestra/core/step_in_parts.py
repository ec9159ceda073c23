"""A decision that is more than one call of machine code: with Python opponents, a recorder, or the caller's arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from palaestra.core import out_arrays
from palaestra.core.opponent_assignments import query_opponents

if TYPE_CHECKING:
    from palaestra.core.simulation import Simulation


def step_in_parts(sim: Simulation, out: Mapping[str, np.ndarray] | None) -> int:
    """Plays a decision as the actions say. Returns the place of an action that was refused, or -1.

    Where it is interrupted before the matches move, nothing has happened; later, the simulation stays marked as torn.
    """
    sim._busy = "step"
    try:
        remembered = query_opponents(sim, sim.opponent_assignments)
        sim._about_to("step")
        sim._torn = "step"
        try:
            before = sim._take_buffers(out) if out is not None else {}
        except ValueError:  # refused, and none was taken
            sim._torn = ""
            raise
        offender = sim._step_lanes()
        if offender < 0:
            for assignment, lanes, memory in remembered:
                assignment.memory[lanes] = memory
            for name, array in sim._mirrored.items():
                array[...] = getattr(sim, name)
            sim._has_done()
        elif before:
            out_arrays.use(sim, before)
        sim._torn = ""
    except BaseException as error:
        if sim._torn:
            sim._torn = f"step (by {type(error).__name__})"
        raise
    finally:
        sim._busy = ""
    return offender
