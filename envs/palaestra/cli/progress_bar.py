"""Progress on stderr: a bar where there is a terminal and rich, else a line now and then."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

FIRST_LINE_S = 2.0
"""What takes less says nothing."""
NEXT_LINE_S = 5.0


class Progress:
    """Reports how far long work has come; a context manager that is called with the numbers of done and of all parts.

    >>> with Progress("matches") as report_progress:
    ...     for done in range(3):
    ...         report_progress(done + 1, 3)
    """

    def __init__(self, what: str) -> None:
        """Shows nothing before the first call.

        Args:
            what: What is counted, in the plural.
        """
        self._what = what
        self._bar: Any = _bar()
        self._task: Any = None
        self._first: tuple[float, int] | None = None
        self._next = time.monotonic() + FIRST_LINE_S

    def __enter__(self) -> Progress:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, done: int, total: int, note: str = "") -> None:
        """Notes that ``done`` of ``total`` parts are finished.

        What is left is estimated from the parts since the first call: what went before it, compiling say, comes once.
        """
        if self._bar is not None:
            if self._task is None:
                self._task = self._bar.add_task(self._what, total=total)
            self._bar.update(self._task, completed=done, description=f"{self._what} {note}".rstrip())
            return
        now = time.monotonic()
        if self._first is None:
            self._first = (now, done)
        if now >= self._next:
            self._next = now + NEXT_LINE_S
            start, before = self._first
            ahead = f", {(now - start) / (done - before) * (total - done):.0f} s left" if done > before else ""
            print(f"{done}/{total} {self._what} {note}".rstrip() + ahead, file=sys.stderr, flush=True)


def _bar() -> Any:
    """A bar of rich, or None."""
    if not sys.stderr.isatty():
        return None
    try:
        from rich import progress
        from rich.console import Console
    except ImportError:
        return None
    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeRemainingColumn(),
    )
    return progress.Progress(*columns, console=Console(stderr=True), transient=True)
