"""One verb of a simulation at a time, and none on what an interrupted verb has left half done.

Ctrl-C, an alarm or an error of an engine may end a verb anywhere. A verb that is one call of machine code cannot be
torn. All others mark the simulation before they begin to change it and take the mark away at their end: where it is
found, `InterruptedVerbError` says so, until a reset of all lanes or a restore has written everything anew.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from palaestra.core.simulation import Simulation

Method = TypeVar("Method", bound=Callable[..., Any])


class InterruptedVerbError(RuntimeError):
    """An earlier verb was interrupted: the matches are neither as before it nor as after it."""


def verb(method: Method) -> Method:
    """A verb that nothing else of the same simulation interleaves with.

    Raises:
        RuntimeError: The simulation is closed, or another of its verbs is running.
    """
    name = method.__name__

    @functools.wraps(method)
    def guarded(self: Simulation, *arguments: Any, **keywords: Any) -> Any:
        if self._closed:
            self._check_open()
        if self._busy or (self._blocked and self.started and not self._torn):
            raise busy(self._busy or "step", name)
        self._busy, self._blocked = name, True  # no thread switch lies between the test and this
        try:
            return method(self, *arguments, **keywords)
        except BaseException as error:
            if self._torn == name:
                self._torn = f"{name} (by {type(error).__name__})"
            raise
        finally:
            self._busy = ""
            self._blocked = self._closed or self._torn != "" or not self.started

    return cast(Method, guarded)


def busy(running: str, wanted: str) -> RuntimeError:
    """The error of a verb that was called while another one is running."""
    return RuntimeError(
        f"{wanted}() was called while {running}() of the same simulation is running, in another thread or around this "
        "call: one verb at a time, or a simulation for each thread"
    )


def check_whole(sim: Simulation, wanted: str) -> None:
    """Whether the matches are whole.

    Raises:
        InterruptedVerbError: An earlier verb was interrupted; says which and what helps.
    """
    if sim._torn:
        raise InterruptedVerbError(
            f"{wanted}() after an interrupted {sim._torn}: the matches of {sim.game.name} are torn. Call reset() of "
            "all lanes or restore(snapshot) first, or make the simulation anew"
        )


def refusal_of_step(sim: Simulation) -> RuntimeError:
    """Why no step may begin; a closed or torn simulation raises at once."""
    sim._check_open()
    if sim._busy:
        return busy(sim._busy, "step")
    check_whole(sim, "step")
    return busy("step", "step") if sim.started else RuntimeError("step before reset: call reset() first")


def begin(sim: Simulation, name: str, heals: bool = False) -> None:
    """Marks a simulation that a verb is about to change; ``sim._torn = ""`` takes the mark away.

    Args:
        sim: The simulation.
        name: The verb.
        heals: Whether the verb writes everything anew, so that it may follow an interrupted one.

    Raises:
        InterruptedVerbError: An earlier verb was interrupted.
    """
    if not heals:
        check_whole(sim, name)
    elif sim._torn:
        sim._recover()
    sim._torn = name


class TakenBack:
    """Changes of players and of some fields of the match records inside are taken back if they are not finished.

    No generator: one that is interrupted while it ends lives on in the traceback, and would take back what is finished
    as soon as the user drops the exception.
    """

    def __init__(self, sim: Simulation, *fields: str) -> None:
        """Copies what is there before."""
        states, assignments = sim.states, sim.opponent_assignments
        self._sim = sim
        self._before = {name: states[name].copy() for name in fields if name in states.dtype.names}
        self._players = {team: [(a, a.lanes.copy()) for a in row] for team, row in assignments.items()}

    def __enter__(self) -> None:
        """Nothing has changed yet."""

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        """Takes back after an exception."""
        if kind is None:
            return
        assignments = self._sim.opponent_assignments
        for name, values in self._before.items():
            self._sim.states[name] = values
        assignments.clear()
        for team, row in self._players.items():
            for assignment, lanes in row:
                assignment.lanes[...] = lanes
            assignments[team] = [assignment for assignment, _ in row]
