"""A study: methods in places, some seeds of each, and the tables, pictures and verdicts that are made of their runs.

A study is a table of entries. `Study.make` trains the runs that are missing, writes their curves (``NAME.csv``), draws
them (``.png``, ``.svg``), measures the last policies (``NAME_results.csv``), installs the best weights and prints what
was asked of the results. `Study.draw` draws the picture again from its table.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from learning import drawing, figures
from learning.figures import FigureArgs, Logs, Method, Runs
from palaestra_baselines.common.agents import keywords
from palaestra_baselines.common.run_folder import RunArgs

Rows = Sequence[Mapping[str, Any]]
"""Rows of a table."""


@dataclass(frozen=True)
class Place:
    """Where methods learn.

    Attributes:
        title: In pictures and lines of text.
        env_id: Environment.
        options: Keywords of the game, ``name=value`` each.
        team: The team that learns; that of the method's defaults if empty.
        opponent: Script that plays the other team; likewise.
        arguments: Of all methods here.
        tests: Script of the other team and keywords of the game of each test, by its name in the results; those of the
            training if empty.
        scripts: Those that stand beside what is learnt.
        column: Of the curves, that which is drawn.
        label: Name of that column in pictures.
    """

    title: str
    env_id: str
    options: tuple[str, ...] = ()
    team: str = ""
    opponent: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    tests: Mapping[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    scripts: tuple[str, ...] = ()
    column: str = "win_rate"
    label: str = ""

    @property
    def given(self) -> dict[str, Any]:
        """Arguments of a training here."""
        named = {"options": self.options, "team": self.team, "opponent": self.opponent}
        return {"env_id": self.env_id, **{name: value for name, value in named.items() if value}, **self.arguments}

    @property
    def played(self) -> Mapping[str, tuple[str, tuple[str, ...]]]:
        """The tests, or the training where there are none."""
        return self.tests or {"as learnt": (self.opponent, self.options)}

    @property
    def keywords(self) -> dict[str, Any]:
        """Keywords of the game."""
        return keywords(self.options)


@dataclass(frozen=True)
class Entry:
    """Runs of a method in one place, and what is asked of the median of their seeds.

    Attributes:
        place: Where.
        method: Name of the method.
        steps: Decisions of a run.
        bar: Least share of won matches; None asks for nothing.
        minutes: Most processor time of a run; likewise.
        ahead: Least lead in won matches over other methods in the same place; a negative one is how far it may be
            behind.
        slower: Most moves of captures over those of optimal play.
        spread: Most difference between the shares of its tests.
        fall: Most that an evaluation of any seed may be under an earlier one.
        unseen: Place that the policy plays without having learnt there; the bar is meant there.
        weights: Name under which the weights of the best seed are bundled; empty if they are not.
        seeds: Runs, at most those that are asked for; None for all.
        arguments: What the method is given here alone.
        name: Of the arm in tables, where a method has several in one place.
    """

    place: str
    method: str
    steps: int
    bar: float | None = None
    minutes: float | None = None
    ahead: Mapping[str, float] = field(default_factory=dict)
    slower: float | None = None
    spread: float | None = None
    fall: float | None = None
    unseen: str = ""
    weights: str = ""
    seeds: int | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""

    @property
    def arm(self) -> str:
        """Name in tables."""
        return self.name or self.method

    @property
    def key(self) -> tuple[str, str]:
        """Place and arm: a study has one entry of each."""
        return self.place, self.arm


class Made(NamedTuple):
    """Runs of a study and their curves, by place and arm, then by seed.

    Attributes:
        runs: Their arguments.
        logs: Their curves.
        args: Of the command.
    """

    runs: Runs
    logs: Logs
    args: FigureArgs

    def each(self, entries: Iterable[Entry]) -> Iterable[tuple[Entry, RunArgs, list[dict[str, float]]]]:
        """Entry, arguments and curve of each run."""
        for entry in entries:
            for run, log in zip(self.runs[entry.key], self.logs[entry.key], strict=True):
                yield entry, run, log


def curve_table(study: Study, made: Made) -> Rows:
    """The evaluations of all runs; a study with one column has one place."""
    few = len(study.columns) == 1
    return figures.curve_rows({key[1:] if few else key: logs for key, logs in made.logs.items()}, *study.columns)


@dataclass(frozen=True)
class Study:
    """Methods in places.

    Attributes:
        name: Of the table, the picture, and the folder of the runs.
        entries: What is trained.
        methods: Methods by the names that entries give them.
        places: Places likewise.
        shared: Arguments of all runs.
        columns: Columns of place and arm in the table of curves, or that of the arm alone.
        table: Gives the rows of the table of curves; None if there is no such table.
        panels: Gives the panels of the picture from the rows of the table; None if there is no picture.
        results: Measures the runs: rows of the table of results.
        lines: What is printed of results and curves.
        evaluation: What evaluations of an entry measure; matches against the opponent if None.
        folder: Folder of the runs of an entry, below that of all runs.
        prepare: Makes what the runs need first; gives the study with it.
        fixed_seeds: Whether entries have as many seeds as they name, whatever the command asks for.
        seeds: Seeds of all entries, whatever is asked; those that the command and the entries ask for if empty.
        best: Gives, of the last evaluation of a run, what is greatest where the weights are best.
        ending: Of the name of the table of results.
        is_kept: Whether the tables are kept in docs/figures, so that the picture can be drawn again.
    """

    name: str
    entries: tuple[Entry, ...]
    methods: Mapping[str, Method]
    places: Mapping[str, Place]
    shared: Mapping[str, Any] = field(default_factory=dict)
    columns: tuple[str, ...] = ("setting", "method")
    table: Callable[[Study, Made], Rows] | None = curve_table
    panels: Callable[[Study, list[dict[str, str]]], Sequence[drawing.Panel]] | None = None
    results: Callable[[Study, Made], Rows] | None = None
    lines: Callable[[Study, Rows, Made], Iterable[str]] | None = None
    evaluation: Callable[[Entry], Any] | None = None
    folder: Callable[[Study, Entry], Path] = lambda study, entry: Path(
        study.name, entry.place.replace(" ", "_"), entry.arm
    )
    prepare: Callable[[Study, FigureArgs], Study] | None = None
    fixed_seeds: bool = False
    seeds: tuple[int, ...] = ()
    best: Callable[[Mapping[str, float]], float] = lambda last: last["win_rate"]
    ending: str = "_results"
    is_kept: bool = True

    def run_of(self, entry: Entry, seed: int, directory: Path, **more: Any) -> Any:
        """Arguments of one run.

        Args:
            entry: The entry.
            seed: Of the run.
            directory: Its folder.
            **more: Arguments that decide nothing, ``quiet`` for one.
        """
        method = self.methods[entry.method]
        given = {**self.shared, **self.places[entry.place].given, **method.arguments, **entry.arguments, **more}
        if method.options:
            given["options"] = (*given.get("options", ()), *method.options)
        return method.make_args(**given, total_steps=entry.steps, seed=seed, directory=directory)

    def seeds_of(self, entry: Entry, args: FigureArgs) -> Sequence[int]:
        """Seeds of the runs of an entry."""
        count = args.seeds if entry.seeds is None else entry.seeds
        return self.seeds or range(count if self.fixed_seeds else min(count, args.seeds))

    def runs_of(self, args: FigureArgs) -> dict[Any, list[Any]]:
        """Arguments of all runs by place and arm, then by seed."""
        shared = {"trust_checkpoint": args.trust_checkpoint, "quiet": True}
        return {
            entry.key: [
                self.run_of(entry, seed, args.runs / self.folder(self, entry), **shared)
                for seed in self.seeds_of(entry, args)
            ]
            for entry in self.entries
        }

    def train(self, args: FigureArgs) -> Made:
        """Trains the runs that are missing, the first seeds of all first."""
        runs = self.runs_of(args)
        in_turn = [
            [
                (self.methods[entry.method].module, run, self.evaluation(entry) if self.evaluation else None)
                for run in runs[entry.key]
            ]
            for entry in self.entries
        ]
        figures.train_all(self.name, [run for seed in itertools.zip_longest(*in_turn) for run in seed if run], args)
        return Made(runs, figures.read_logs(runs), args)

    def make(self, args: FigureArgs) -> None:
        """Makes everything, see above."""
        study = self if self.prepare is None else self.prepare(self, args)
        made = study.train(args)
        if study.table is not None:
            figures.write_rows(args.figures / f"{study.name}.csv", study.table(study, made))
        study.draw(args.figures)
        for entry in study.entries:
            if entry.weights:
                best = int(np.argmax([study.best(log[-1]) for log in made.logs[entry.key]]))
                figures.install(made.runs[entry.key][best], args.assets, entry.weights)
        rows: Rows = []
        if study.results is not None:
            rows = study.results(study, made)
            figures.write_rows(args.figures / f"{study.name}{study.ending}.csv", rows)
        for line in study.lines(study, rows, made) if study.lines else map(figures.row_line, rows):
            print(line)

    def draw(self, folder: Path) -> None:
        """Draws the picture beside its table in a folder; nothing where the study has none."""
        if self.panels is not None:
            table = folder / f"{self.name}.csv"
            drawing.draw(table, self.panels(self, drawing.read_table(table)))

    @property
    def titles(self) -> dict[str, str]:
        """Titles of the methods."""
        return {name: method.title for name, method in self.methods.items()}


@dataclass(frozen=True)
class Figure:
    """A figure that is no `Study`.

    Attributes:
        name: Of its table.
        make: Makes it; None where another figure's command does.
        panels: Draws its picture from the table in a folder; None where there is none.
        claims: Makes a table of claims from the other tables in a folder; likewise.
        is_kept: As of a `Study`.
    """

    name: str
    make: Callable[[FigureArgs], None] | None
    panels: Callable[[Path], None] | None = None
    claims: Callable[[Path], None] | None = None
    is_kept: bool = field(default=True, init=False)

    def draw(self, folder: Path) -> None:
        """Draws the picture and makes the table of claims; nothing where there is none."""
        for part in filter(None, (self.panels, self.claims)):
            part(folder)


def panel_per_place(study: Study, rows: list[dict[str, str]]) -> list[drawing.Panel]:
    """A panel for each place of the table, with a curve for each method."""
    panels, (column, arm) = list[drawing.Panel](), study.columns
    for name in dict.fromkeys(row[column] for row in rows):
        place, own = study.places[name], [row for row in rows if row[column] == name]
        panels.append(drawing.panel_of(place.title, place.label, own, arm, place.column, titles=study.titles))
    return panels


def won_per_place(study: Study, rows: list[dict[str, str]]) -> list[drawing.Panel]:
    """Shares of matches won against the opponent, a panel for each place, and the shares that are asked for there."""
    panels, (column, arm) = list[drawing.Panel](), study.columns
    for name in dict.fromkeys(row[column] for row in rows):
        place, own = study.places[name], [row for row in rows if row[column] == name]
        opponent = place.opponent or study.shared["opponent"]
        bars = drawing.thresholds(e.bar for e in study.entries if e.place == name and not e.unseen)
        more: Any = {"titles": study.titles, "lines": bars, "is_share": True}
        panels.append(drawing.panel_of(place.title, f"share won against {opponent}", own, arm, "win_rate", **more))
    return panels


def median(rows: Iterable[Mapping[str, Any]], column: str, **where: str) -> float:
    """Median of a column over the rows that have some words in other columns."""
    return float(np.median([row[column] for row in rows if all(row[name] == word for name, word in where.items())]))


def asked_of(study: Study, entry: Entry, won: float, minutes: float, others: Callable[[str], float]) -> list[Any]:
    """What an entry asks of the median of its seeds, and whether it holds.

    Args:
        study: Of the entry.
        entry: The entry.
        won: Share of won matches.
        minutes: Processor time.
        others: Share of won matches of another method.
    """
    asked = []
    if entry.bar is not None:
        asked.append((f"at least {entry.bar:.2f}", won >= entry.bar))
    if entry.minutes is not None:
        asked.append((f"at most {entry.minutes:g} min", minutes <= entry.minutes))
    for other, lead in entry.ahead.items():
        over = won - others(other)
        asked.append((f"{lead:+.2f} over {study.methods[other].title} ({over:+.2f})", over >= lead))
    return asked
