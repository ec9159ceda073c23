"""A measured number with its bar: how it is measured, judged and printed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from palaestra import registry
from palaestra.cli.measure import Benchmark, Timing, measure
from palaestra.console import print_table

ReportProgress = Callable[[str], object]
"""Called with what is being measured."""


@dataclass(frozen=True)
class Measurement:
    """One measured number.

    Attributes:
        name: Name of the measurement.
        about: What is compared with what.
        value: The number; None where it could not be measured.
        bar: What it is held to; None where it is reported for comparison.
        at_least: Whether more is better.
        note: Absolute numbers, or why it could not be measured.
    """

    name: str
    about: str
    value: float | None
    bar: float | None
    at_least: bool
    note: str = ""

    @property
    def holds(self) -> bool | None:
        """Whether the bar is kept; None where there is none or nothing was measured."""
        return holds(self.value, self.bar, self.at_least)


def holds(value: float | None, bar: float | None, at_least: bool) -> bool | None:
    """Whether a value keeps its bar; None where one of the two is missing."""
    if value is None or bar is None:
        return None
    return value >= bar if at_least else value <= bar


VERDICTS = {True: "holds", False: "MISSED", None: ""}
"""What tables print of a bar."""


def value_text(value: float | None) -> str:
    """Three digits, or all before the point; ``-`` where nothing was measured."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def bar_text(bar: float | None, at_least: bool) -> str:
    """``>= 1.5``, ``<= 0.3``, or nothing."""
    return "" if bar is None else f"{'>=' if at_least else '<='} {bar:,g}"


class NotHere(Exception):
    """Cannot be measured here; the message gives the reason."""


def timed(*benchmarks: Benchmark, **options: Any) -> list[Timing]:
    """`measure`, and closes the benchmarks."""
    try:
        return measure(benchmarks, **options)
    finally:
        for benchmark in benchmarks:
            benchmark.close()


def register_game(id: str, spec: str) -> str:
    """Registers the game of ``module:function`` under an id, once; returns the id."""
    if id not in registry.ROWS:
        registry.register(id, spec, about="for the speed measurements")
    return id


def print_measurements(measurements: Sequence[Measurement]) -> None:
    """Prints the table of measurements."""
    rows = [
        [f.name, f.about, value_text(f.value), bar_text(f.bar, f.at_least), VERDICTS[f.holds], f.note]
        for f in measurements
    ]
    print_table(rows, ["", "measurement", "measured", "bar", "", ""])
