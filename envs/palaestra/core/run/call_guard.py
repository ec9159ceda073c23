"""Refuses concurrent calls of one simulation, and calls after an interrupted one.

Ctrl-C, an alarm or an error of an engine may end a call anywhere. One call of machine code cannot be interrupted. All
others mark the simulation before they begin to change it and take the mark away at their end: where a call finds the
mark of another one, it raises `InterruptedCallError`, until a reset of all lanes or a restore has written all anew.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Protocol, TypeVar, cast

import numpy as np

from palaestra.core.run.opponent_assignments import OpponentAssignments

Method = TypeVar("Method", bound=Callable[..., Any])


class InterruptedCallError(RuntimeError):
    """An earlier call was interrupted: the matches are neither as before it nor as after it."""


class CallGuard:
    """Which call of a simulation is running, or was interrupted.

    Attributes:
        owner: Name of the game, for errors.
        started: Whether a match has been started in every lane.
        closed: Whether the simulation is closed.
        suspended: Whether it is closed until the next call, which opens it again.
        why_closed: Why, if it did not happen by its own `close`.
        running: The call that is running; empty if none.
        interrupted: The call that has begun to change the matches, or was interrupted after that; empty if none.
        blocked: No step may begin: closed, not started, another call is running, or one was interrupted.
    """

    def __init__(self, owner: str) -> None:
        """The guard of a simulation in which no match has started."""
        self.owner = owner
        self.started = self.closed = self.suspended = False
        self.why_closed = self.running = self.interrupted = ""
        self.blocked = True

    def close(self) -> None:
        """No call may begin from now on."""
        self.closed = self.blocked = True

    def end_step_by(self, error: BaseException) -> None:
        """Says whether another step may begin after one that an error has ended; it was caught in that very call.

        Machine code raises no error but where a function apart could not be compiled: in the midst of a match. Ctrl-C
        has no message.
        """
        raised_at = error.__traceback__
        if error.args and raised_at is not None and raised_at.tb_next is None:
            self.interrupted = f"step (by {type(error).__name__})"
        self.blocked = self.closed or self.interrupted != ""

    def open_again(self) -> None:
        """Calls may begin again after a pause."""
        self.closed = self.suspended = False
        self.blocked = not self.started or self.interrupted != ""

    def check_open(self) -> None:
        """Whether the simulation is open.

        Raises:
            RuntimeError: It is closed.
        """
        if self.closed:
            why = self.why_closed
            raise RuntimeError(f"this simulation is closed{why and f' ({why})'}: make another")

    def check_whole(self, wanted: str) -> None:
        """Whether no call was interrupted.

        Raises:
            InterruptedCallError: An earlier call was; says which and what to do.
        """
        if self.interrupted:
            raise InterruptedCallError(
                f"{wanted}() after an interrupted {self.interrupted}: the matches of {self.owner} are half changed. "
                "Call reset() of all lanes or restore(snapshot) first, or make the simulation anew"
            )

    def concurrent(self, running: str, wanted: str) -> RuntimeError:
        """The error of a call during another one."""
        return RuntimeError(
            f"{wanted}() was called while {running}() of the same simulation is running, in another thread or around "
            "this call: one call at a time, or a simulation for each thread"
        )

    def refusal_of_step(self) -> RuntimeError:
        """Why no step may begin; raises at once if the simulation is closed or a call was interrupted."""
        self.check_open()
        if self.running:
            return self.concurrent(self.running, "step")
        self.check_whole("step")
        if self.started:
            return self.concurrent("step", "step")
        return RuntimeError("step before reset: call reset() first")


class Guarded(Protocol):
    """What has a guard."""

    guard: CallGuard

    def _open_again(self) -> bool: ...


class Closes:
    """What has a guard and frees what it holds: for good, or until the next call."""

    guard: CallGuard

    def close(self) -> None:
        """Frees threads and engines for good; may be called twice."""
        self.guard.close()
        self.guard.suspended = False

    def suspend(self) -> None:
        """Frees threads and engines until the next call, which takes them again: this is how faces are closed.

        Matches go on where they are. Worker processes are ended for good: with them it is `close`.
        """
        if not self.guard.closed:
            self._keep_engine()
            self.close()
            self.guard.suspended = True

    def _open_again(self) -> bool:
        """Takes again what `suspend` has freed. Returns whether a step may begin.

        Raises:
            RuntimeError: The simulation is closed for good.
        """
        if not self.guard.suspended:
            self.guard.check_open()
        self._take_engine()
        self.guard.open_again()
        return not self.guard.blocked

    def _keep_engine(self) -> None:
        """Called before the engine is freed for a while."""

    def _take_engine(self) -> None:
        """Called to have it again."""


def exclusive(method: Method) -> Method:
    """A method during which no other such method, and no step, of the same object may begin.

    Raises:
        RuntimeError: The object is closed, or another of its calls is running.
    """
    name = method.__name__

    @functools.wraps(method)
    def guarded(self: Guarded, *arguments: Any, **keywords: Any) -> Any:
        guard = self.guard
        if guard.closed:
            self._open_again()
        if guard.running or (guard.blocked and guard.started and not guard.interrupted):
            raise guard.concurrent(guard.running or "step", name)
        guard.running, guard.blocked = name, True  # no thread switch lies between the test and this
        try:
            return method(self, *arguments, **keywords)
        except BaseException as error:
            if guard.interrupted == name:
                guard.interrupted = f"{name} (by {type(error).__name__})"
            raise
        finally:  # no function is called here, as it might be interrupted itself
            guard.running = ""
            guard.blocked = guard.closed or guard.interrupted != "" or not guard.started

    return cast(Method, guarded)


class RollbackOnError:
    """Undoes changes of players and of some fields of the match records that an exception has left unfinished.

    No generator: one that is interrupted while it ends lives on in the traceback, and would undo what is finished as
    soon as the user drops the exception.
    """

    def __init__(self, states: np.ndarray, assignments: OpponentAssignments, *fields: str) -> None:
        """Copies what is there before."""
        self._states, self._assignments = states, assignments
        self._before = {name: states[name].copy() for name in fields if name in (states.dtype.names or ())}
        self._players = {
            team: [(a, a.agents.copy(), a.whole_team.copy()) for a in row] for team, row in assignments.items()
        }

    def __enter__(self) -> None:
        """Nothing has changed yet."""

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        """Restores it after an exception."""
        if kind is None:
            return
        for name, values in self._before.items():
            self._states[name] = values
        self._assignments.clear()
        for team, row in self._players.items():
            for assignment, agents, whole_team in row:
                assignment.agents[...], assignment.whole_team[...] = agents, whole_team
                assignment.settle()
            self._assignments[team] = [assignment for assignment, *_ in row]
