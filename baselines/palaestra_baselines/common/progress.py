"""Progress of a training: one live line in a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, Self

PLAIN_INTERVAL_S = 10.0
"""Time between two lines where the output is no terminal."""


class Progress:
    """Steps, steps per second, time left and named figures of a long task.

    Use it as a context manager. It counts wall time from the moment it is entered.

    Attributes:
        total: Number of steps at the end.
        started_at: Number of steps at the beginning (a resumed run starts late).
    """

    def __init__(self, title: str, total: int, started_at: int = 0, quiet: bool = False, unit: str = "steps") -> None:
        """Prepares the display.

        Args:
            title: Name of the task.
            total: Number of steps at the end.
            started_at: Number of steps at the beginning.
            quiet: Show nothing.
            unit: What is counted, in the plural.
        """
        self.title, self.total, self.started_at, self.quiet, self.unit = title, total, started_at, quiet, unit
        self.figures: dict[str, float] = {}
        self.done = started_at
        self._live: Any = None
        self._began_s = self._said_s = time.perf_counter()

    def __enter__(self) -> Self:
        """Starts the clock and, in a terminal, the live line."""
        self._began_s = self._said_s = time.perf_counter()
        if not self.quiet and sys.stdout.isatty():
            try:
                from rich.live import Live
            except ImportError:
                return self
            self._live = Live(self._table(), refresh_per_second=4, transient=False)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leaves the last state on the screen."""
        if self._live is not None:
            self._live.update(self._table())
            self._live.stop()
        elif not self.quiet:
            try:
                show(self.line())
            except OSError:
                if error is None:  # else the first error is the one to tell
                    raise

    def update(self, done: int, **figures: float) -> None:
        """Reports the progress; figures stay until new ones are given."""
        self.done = done
        self.figures.update(figures)
        now = time.perf_counter()
        if self._live is not None:
            self._live.update(self._table())
        elif not self.quiet and now - self._said_s >= PLAIN_INTERVAL_S:
            self._said_s = now
            show(self.line())

    def say(self, text: str) -> None:
        """Prints a line without disturbing the live one."""
        if self._live is not None:
            self._live.console.print(text)
        elif not self.quiet:
            show(text)

    @property
    def steps_per_s(self) -> float:
        """Speed since the beginning."""
        return (self.done - self.started_at) / max(time.perf_counter() - self._began_s, 1e-9)

    def columns(self) -> dict[str, str]:
        """What is shown, by heading."""
        left_s = max(self.total - self.done, 0) / self.steps_per_s if self.done > self.started_at else float("nan")
        shown = {
            self.unit: f"{short(self.done)}/{short(self.total)}",
            f"{self.unit}/s": short(self.steps_per_s),
            "left": clock(left_s),
        }
        return shown | {name: f"{value:.3g}" for name, value in self.figures.items()}

    def line(self) -> str:
        """The state as one plain line."""
        return f"{self.title}: " + "  ".join(f"{name} {value}" for name, value in self.columns().items())

    def _table(self) -> Any:
        from rich.table import Table

        table = Table(title=self.title, title_justify="left")
        columns = self.columns()
        for name in columns:
            table.add_column(name, justify="right")
        table.add_row(*columns.values())
        return table


def show(text: str) -> None:
    """Prints a line at once.

    Raises:
        OSError: It cannot be written, for example to a log on a full disk; names the output.
    """
    try:
        print(text, flush=True)
    except OSError as error:
        error.filename = error.filename or sys.stdout.name
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
