"""A speed figure, and the setup for measuring figures."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from palaestra import registry
from palaestra.cli.measure import Subject, Timing, measure


@dataclass(frozen=True)
class Figure:
    """One measured number.

    Attributes:
        letter: Name of the measurement.
        about: What is compared with what.
        value: The figure; None where it could not be measured.
        bar: What it is held to; None where it is reported for comparison.
        at_least: Whether more is better.
        note: Absolute numbers, or why it could not be measured.
    """

    letter: str
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
"""What tables say of a bar."""


def value_text(value: float | None) -> str:
    """Three digits, or all before the point; ``-`` where nothing was measured."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def bar_text(bar: float | None, at_least: bool) -> str:
    """``>= 1.5``, ``<= 0.3``, or nothing."""
    return "" if bar is None else f"{'>=' if at_least else '<='} {bar:,g}"


class NotHere(Exception):
    """Cannot be measured here; says why."""


@dataclass(frozen=True)
class Setup:
    """What figures are measured with. The games are not part of the suite; a figure without its game is left out.

    Attributes:
        game: ``module:function`` of a two-team game whose agents have equal tables, for overheads and threads.
        size_game: ``module:function`` of a game whose keyword ``agents`` changes its size but not its kernel.
        body_game: ``module:function`` of a game whose bodies an engine moves.
        report_progress: Called with what is being measured.
    """

    game: str | None = None
    size_game: str | None = None
    body_game: str | None = None
    report_progress: Callable[[str], object] = lambda note: None


def timed(*subjects: Subject, **options: Any) -> list[Timing]:
    """`measure`, and closes the subjects."""
    try:
        return measure(subjects, **options)
    finally:
        for subject in subjects:
            subject.close()


def register_game(id: str, spec: str) -> str:
    """Registers the game of ``module:function`` under an id, once; returns the id."""
    if id not in registry.ROWS:
        module, _, function = spec.partition(":")
        registry.register(id, getattr(importlib.import_module(module), function), about="for the speed figures")
    return id
