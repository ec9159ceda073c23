"""Independent pieces of work on many processes: what is lost with a process or a machine is done again.

Ray starts the processes and chooses the machines. What is here counts what has been asked for and what came back, so
that each piece's result is taken exactly once.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

MOST_LOSSES = 20
"""Processes that may die over one piece before it is taken for the cause."""
Report = Callable[[int, int, int], Any]
"""``report(done, running, losses)``: pieces that are finished, pieces given out, processes that died so far."""


class Lost(Exception):
    """The process or the machine that had a piece is gone."""


class Tasks(Protocol):
    """Where pieces are worked on. Handles can be hashed."""

    def start(self, piece: Any) -> Any:
        """Begins with a piece and returns a handle of it."""
        ...

    def wait(self, running: list[Any]) -> list[Any]:
        """The handles among these that have ended; waits a second for the first of them, and may return none."""
        ...

    def result(self, handle: Any) -> Any:
        """What came out of a piece that has ended.

        Raises:
            Lost: Nothing, as who had it is gone.
            Exception: What the work itself raised.
        """
        ...

    def cancel(self, running: list[Any]) -> None:
        """Ends work that nobody waits for any more."""
        ...


def work_off(
    tasks: Tasks, pieces: Sequence[Any], at_once: int, report: Report | None = None
) -> Iterator[tuple[int, Any]]:
    """Has all pieces worked on; yields number and result of each, as they come.

    Args:
        tasks: Where.
        pieces: What.
        at_once: Most pieces in work at the same time.
        report: Called before each wait, so at least every second, and at the end.

    Raises:
        RuntimeError: More than `MOST_LOSSES` processes died over one piece.
        Exception: What a piece raised. The other pieces in work are cancelled.
    """
    waiting, losses = deque(enumerate(pieces)), Counter[int]()
    running: dict[Any, tuple[int, Any]] = {}
    done = 0
    try:
        while waiting or running:
            while waiting and len(running) < at_once:
                number, piece = waiting.popleft()
                running[tasks.start(piece)] = number, piece
            if report is not None:
                report(done, len(running), losses.total())
            for handle in tasks.wait(list(running)):
                number, piece = running.pop(handle)
                try:
                    result = tasks.result(handle)
                except Lost as error:
                    losses[number] += 1
                    if losses[number] > MOST_LOSSES:
                        raise RuntimeError(f"{losses[number]} processes died over {piece}, the last: {error}") from None
                    waiting.appendleft((number, piece))
                    continue
                done += 1
                yield number, result
        if report is not None:
            report(done, 0, losses.total())
    finally:
        if running:
            tasks.cancel(list(running))
