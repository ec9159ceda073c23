"""A decision that is more than one call of machine code: with Python opponents, a recorder, threads or an engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaestra.core.opponent_assignments import query_opponents

if TYPE_CHECKING:
    from palaestra.core.simulation import Simulation


def step_in_parts(sim: Simulation) -> int:
    """Plays a decision as the actions say. Returns the place of an action that was refused, or -1.

    Where it is interrupted before the matches move, nothing has happened; later, the simulation stays marked as torn.
    """
    sim._busy = "step"
    try:
        remembered = query_opponents(sim, sim.opponent_assignments)
        sim._about_to("step")
        sim._torn = "step"
        offender = sim._step_lanes()
        if offender < 0:
            for assignment, lanes, memory in remembered:
                assignment.memory[lanes] = memory
            sim._has_done()
        sim._torn = ""
    except BaseException as error:
        if sim._torn:
            sim._torn = f"step (by {type(error).__name__})"
        raise
    finally:
        sim._busy = ""
    return offender
