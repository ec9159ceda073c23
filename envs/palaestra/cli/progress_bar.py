"""Progress of long work: one live line where there is a terminal and rich, else a plain line now and then.

A notebook keeps all that is printed, and what a live line overwrites too: there lines are few, and ever rarer.
"""

from __future__ import annotations

import os
import sys
import time
from types import TracebackType
from typing import Any, Literal, Self

FIRST_LINE_S = 2.0
"""Shorter work prints nothing where the output is no terminal."""
NEXT_LINE_S = 10.0
"""Time between two lines there."""
NOTEBOOK_LINE_S = 60.0
"""Time until the first line in a notebook; it doubles from line to line."""


class Progress:
    """Parts done, parts per second, time left and named numbers of long work. Use it as a context manager.

    Work whose parts are known reports by `update`. Work that learns of them on the way calls the object:

    >>> with Progress("matches") as report_progress:
    ...     for done in range(3):
    ...         report_progress(done + 1, 3)

    Attributes:
        total: Number of parts at the end.
        done: Number of parts that are finished.
    """

    def __init__(
        self,
        unit: str,
        total: int = 0,
        started_at: int = 0,
        *,
        title: str = "",
        quiet: bool = False,
        stream: Literal["stdout", "stderr"] = "stderr",
    ) -> None:
        """Prepares the display.

        Args:
            unit: What is counted, in the plural.
            total: Number of parts at the end; 0 where the calls give it.
            started_at: Number of parts at the beginning (a resumed run starts late).
            title: Name of the work.
            quiet: Show nothing.
            stream: Where it is shown.
        """
        self.unit, self.total, self.done, self.title = unit, total, started_at, title
        self._before, self._quiet, self._stream = started_at, quiet, stream
        self._numbers: dict[str, float] = {}
        self._live: Any = None
        self._shown: int | None = None
        self._in_notebook, self._is_over = in_notebook(), False
        self._kept: list[str] = []
        self._start_clock()

    def __enter__(self) -> Self:
        """Starts the clock and, in a terminal, the live line."""
        self._start_clock()
        if not self._quiet and not self._in_notebook and getattr(sys, self._stream).isatty():
            try:
                from rich.console import Console
                from rich.live import Live
            except ImportError:
                return self
            self._live = Live(self._table(), console=Console(stderr=self._stream == "stderr"))
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leaves the last state on the screen."""
        self._is_over = True
        if self._live is not None:
            self._live.update(self._table())
            self._live.stop()
        elif time.monotonic() >= self._first_line_s and self._shown != self.done:
            try:
                self.say(self.line())
            except OSError:
                if error is None:  # else the first error is the one to report
                    raise
        elif self._kept and not self._quiet:
            show("\n".join(self._kept), self._stream)

    def __call__(self, done: int, total: int, note: str = "") -> None:
        """Notes that ``done`` of ``total`` parts are finished, and what is in work.

        The speed is that since the first call: what went before it, such as compiling, comes once.
        """
        if self.total == 0:
            self._began_s, self._before = time.monotonic(), done
        self.total, self.title = total, note
        self.update(done)

    def update(self, done: int, **numbers: float) -> None:
        """Notes how many parts are finished; numbers stay until new ones are given."""
        self.done = done
        self._numbers.update(numbers)
        now = time.monotonic()
        if self._live is not None:
            self._live.update(self._table())
        elif now >= self._next_line_s:
            self.say(self.line())
            wait_s = now - self._started_s if self._in_notebook else NEXT_LINE_S
            self._next_line_s, self._shown = now + wait_s, done

    def say(self, text: str) -> None:
        """Prints a line without disturbing the live one."""
        if self._live is not None:
            self._live.console.print(text)
        elif self._in_notebook and time.monotonic() < self._next_line_s and not self._is_over:
            self._kept.append(text)  # each print would be an output of its own
        elif not self._quiet:
            show("\n".join([*self._kept, text]), self._stream)
            self._kept = []

    def line(self) -> str:
        """The state as one plain line."""
        return (f"{self.title}: " if self.title else "") + "  ".join(f"{k} {v}" for k, v in self._columns().items())

    def _start_clock(self) -> None:
        self._began_s = self._started_s = time.monotonic()
        self._first_line_s = self._began_s + FIRST_LINE_S
        self._next_line_s = self._began_s + NOTEBOOK_LINE_S if self._in_notebook else self._first_line_s

    def _columns(self) -> dict[str, str]:
        """What is shown, by heading."""
        speed = (self.done - self._before) / max(time.monotonic() - self._began_s, 1e-9)
        shown = {
            self.unit: f"{short(self.done)}/{short(self.total)}",
            f"{self.unit}/s": short(speed),
            "left": clock(max(self.total - self.done, 0) / speed if speed > 0 else float("nan")),
        }
        return shown | {name: f"{value:.3g}" for name, value in self._numbers.items()}

    def _table(self) -> Any:
        from rich.table import Table

        columns = self._columns()
        table = Table(*columns, title=self.title, title_justify="left")
        table.add_row(*columns.values())
        return table


def in_notebook() -> bool:
    """Whether this is a kernel of Jupyter's, or a command that one has started: its terminal is none."""
    return "JPY_PARENT_PID" in os.environ or "inline" in os.environ.get("MPLBACKEND", "")


def show(text: str, stream: str = "stdout") -> None:
    """Prints a line at once.

    Raises:
        OSError: It cannot be written, for example to a log on a full disk; names the output.
    """
    file = getattr(sys, stream)
    try:
        print(text, file=file, flush=True)
    except OSError as error:
        error.filename = error.filename or file.name
        raise


def short(number: float) -> str:
    """A number with a thousands letter: 1234567 is 1.23M."""
    for limit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= limit:
            return f"{number / limit:.3g}{letter}"
    return f"{number:.3g}"


def clock(seconds: float) -> str:
    """Seconds as ``m:ss`` or ``h:mm:ss``; ``?`` if unknown."""
    if not 0.0 <= seconds < 1e7:
        return "?"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
