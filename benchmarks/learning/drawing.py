"""The pictures of figures: every one is drawn from its table in ``docs/figures``, as PNG and as SVG.

A method has one colour, one line style and one marker in all pictures, see `STYLES`. Thresholds and scripts are grey
lines. The legend says what a line and its band are.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from learning.figures import bootstrap_interval, interquartile_mean
from palaestra.core.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Rows = Sequence[Mapping[str, Any]]
"""Evaluations of one run, in their order."""


class Style(NamedTuple):
    """How a method is drawn.

    Attributes:
        color: One of the colours below.
        dashes: Lengths of dashes and gaps in widths of the line; none is a solid line.
        marker: Of matplotlib, at each evaluation.
    """

    color: str
    dashes: tuple[float, ...]
    marker: str


BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILLION, PURPLE, WINE = "#0072B2", "#D55E00", "#CC79A7", "#882255"
"""Colours that colour-blind readers tell apart: Okabe and Ito, "Color universal design" (2008); no yellow on white, but
the wine of Tol, "Colour schemes" (2021), in its place."""
SOLID, DASHED, DOTTED, LONG, SHORT = (), (5.0, 2.0), (1.0, 1.5), (10.0, 2.5), (2.5, 1.5)
DASH_DOT, DASH_DOT_DOT = (6.0, 2.0, 1.0, 2.0), (6.0, 2.0, 1.0, 2.0, 1.0, 2.0)
LONG_SHORT = (10.0, 2.0, 3.0, 2.0)
STYLES: dict[str, Style] = {
    "UNMAS": Style(VERMILLION, SOLID, "o"),
    "MAPPO": Style(BLUE, DASHED, "s"),
    "VDN": Style(ORANGE, DASH_DOT, "^"),
    "QMIX": Style(GREEN, DOTTED, "D"),
    "FM3Q": Style(BLACK, SOLID, "o"),
    "FM3Q, sums": Style(PURPLE, DASHED, "s"),
    "FM3Q, pairwise": Style(VERMILLION, DOTTED, "D"),
    "FM3Q, auxiliary loss": Style(GREEN, LONG, "P"),
    "IQL": Style(SKY, DOTTED, "v"),
    "ARAC": Style(GREEN, SOLID, "o"),
    "fixed weight 0.03": Style(ORANGE, LONG, "P"),
    "fixed weight 0.1": Style(VERMILLION, DASH_DOT, "^"),
    "fixed weight 0.003": Style(SKY, DASHED, "s"),
    "fixed weight 0.01": Style(VERMILLION, DASH_DOT, "v"),
    "lanes, no divergence": Style(BLUE, SHORT, "^"),
    "divergence, no lanes": Style(WINE, LONG_SHORT, ">"),
    "linear weight": Style(PURPLE, DOTTED, "D"),
    "MASAC, no reference": Style(BLACK, DASH_DOT_DOT, "X"),
    "ARAC, agents decide at once": Style(SKY, SHORT, "v"),
    "MAPPO, 4 M decisions": Style(SKY, DASH_DOT, "^"),
    "PPO": Style(PURPLE, SOLID, "o"),
    "PPO, memory": Style(VERMILLION, DASH_DOT, "P"),
    "MAPPO, memory": Style(GREEN, LONG, "D"),
    "evolution, league": Style(VERMILLION, SOLID, "X"),
    "evolution, scripts": Style(ORANGE, DASHED, "s"),
    "PPO, scripts": Style(BLUE, DASH_DOT, "^"),
    "PPO, last self": Style(GREEN, DOTTED, "o"),
    "PPO, stick": Style(BLACK, LONG, "P"),
    "PPO, macros": Style(BLUE, DASHED, "^"),
    "PPO, turn rewards": Style(BLUE, SOLID, "o"),
    "PPO, answer alone": Style(ORANGE, DASHED, "^"),
    "GRPO": Style(BLACK, DASHED, "o"),
    "entropy alone": Style(SKY, DOTTED, "s"),
    "CriticSearch, exact labels": Style(BLUE, SOLID, "^"),
    "pi-Play, path": Style(VERMILLION, LONG, "D"),
    "GRPO, passages in the loss": Style(GREEN, DASH_DOT, "P"),
    "GRPO, turn rewards": Style(GREEN, SHORT, "v"),
    "GRPO, SearchQA-2Hop": Style(BLACK, SOLID, "s"),
    "GRPO, SearchQA-Reading": Style(BLUE, SHORT, "D"),
    "CriticSearch, model": Style(PURPLE, LONG, "s"),
    "CriticSearch, 20 % wrong": Style(ORANGE, DOTTED, "D"),
    "pi-Play, dot": Style(SKY, SOLID, "s"),
    "pi-Play, partial": Style(GREEN, DOTTED, "^"),
    "pi-Play, answer": Style(BLUE, DASH_DOT, "v"),
    "pi-Play, none": Style(PURPLE, SHORT, "P"),
    "OPD, sampled token": Style(ORANGE, SOLID, "v"),
    "OPD, K 16": Style(BLUE, LONG, "o"),
    "OPD, K 4": Style(GREEN, DASHED, "^"),
    "OPD, full vocabulary": Style(BLACK, DASH_DOT, "D"),
    "OPD, K 4, not renormalised": Style(VERMILLION, SHORT, "X"),
    "OPD, K 16, not renormalised": Style(PURPLE, DASH_DOT_DOT, "P"),
    "SRFT": Style(VERMILLION, SOLID, "^"),
    "SFT": Style(GREEN, DASH_DOT, "v"),
    "SFT then GRPO": Style(BLUE, LONG, "D"),
    "SRFT, weights 1": Style(ORANGE, SHORT, "P"),
    "SRFT, exp(+H)": Style(PURPLE, DASH_DOT_DOT, "X"),
    "PPO (SB3)": Style(GREEN, LONG, "^"),
    "MaskablePPO, vector": Style(VERMILLION, SOLID, "s"),
    "MaskablePPO, dict": Style(BLUE, DOTTED, "o"),
    "MAPPO, ten epochs": Style(BLACK, DOTTED, "D"),
    "CPEG": Style(VERMILLION, SOLID, "<"),
    "MASAC": Style(WINE, LONG_SHORT, "p"),
    "MASAC with bonus": Style(SKY, SHORT, "h"),
    "CPEG without consensus": Style(ORANGE, DASH_DOT, "v"),
    "CPEG without guidance": Style(GREEN, LONG, "*"),
    "consistency policy alone": Style(PURPLE, DASH_DOT_DOT, "^"),
    "factorised, taught": Style(VERMILLION, SOLID, ">"),
    "factorised, cloned anchor": Style(BLUE, DOTTED, "D"),
    "classifier of plans": Style(GREEN, DASHED, "s"),
    "factorised, units reversed": Style(PURPLE, DASH_DOT, "^"),
    "factorised, 100 games": Style(ORANGE, LONG, "o"),
    "classifier, 100 games": Style(SKY, DASH_DOT_DOT, "X"),
    "Meta-DT": Style(VERMILLION, SOLID, "*"),
    "Meta-DT, first match": Style(ORANGE, DASHED, "v"),
    "Meta-DT, any segment": Style(PURPLE, SHORT, "X"),
    "DT": Style(BLUE, DOTTED, "<"),
    "Prompt-DT, expert prompt": Style(GREEN, LONG, "o"),
    "Prompt-DT, random prompt": Style(SKY, DASH_DOT, "D"),
    "true task": Style(BLACK, DASH_DOT_DOT, "s"),
    "world model, context": Style(VERMILLION, SOLID, "P"),
    "world model, no context": Style(BLUE, DOTTED, "s"),
    "SeqWM": Style(VERMILLION, SOLID, "D"),
    "SeqWM, random order": Style(ORANGE, DASHED, "o"),
    "SeqWM, centralised": Style(SKY, LONG, "s"),
    "SeqWM, decentralised": Style(BLACK, DOTTED, "^"),
    "SeqWM, own latent": Style(PURPLE, DASH_DOT, "v"),
    "Poisson": Style(VERMILLION, SOLID, "v"),
    "Gaussian (SB3)": Style(BLACK, DASHED, "s"),
    "categorical": Style(BLUE, DOTTED, "^"),
    "Poisson, tau fixed at 1": Style(SKY, DASH_DOT, "o"),
    "Poisson, mirrored": Style(PURPLE, LONG, "^"),
    "ordinal": Style(ORANGE, DASH_DOT_DOT, "X"),
    "K = 7": Style(SKY, SOLID, "o"),
    "K = 11": Style(VERMILLION, DASHED, "s"),
    "K = 15": Style(GREEN, DASH_DOT, "^"),
    "K = 31": Style(BLACK, DOTTED, "P"),
    "no messages": Style(BLACK, DASHED, "P"),
    "mean of messages": Style(BLUE, LONG, "s"),
    "mean without offsets": Style(SKY, DOTTED, "D"),
    "NVIF": Style(VERMILLION, SOLID, "h"),
    "NVIF, frozen": Style(ORANGE, DASH_DOT, "o"),
    "NVIF from scratch": Style(PURPLE, SHORT, "^"),
    "DQN, no messages": Style(BLACK, LONG, "s"),
    "NVIF-DQN": Style(GREEN, SHORT, "o"),
}
"""Style of each method by its name in pictures. Methods of one picture differ in all three parts."""
GREY = "0.4"
GREY_DASHES = ((4.0, 2.0), (1.0, 1.5), (8.0, 2.0, 1.0, 2.0), (2.0, 4.0))
"""Of thresholds and scripts, in the order in which a picture names them."""
FEW_SEEDS = 5
"""From this number of seeds on the band is a bootstrap interval; that of fewer goes from the least to the most, too."""
SHARE_MARGIN = 0.03
"""Room below 0 and above 1 in pictures of shares, so that lines there are seen."""
UNITS = ((1_000_000, 1_000_000, " (millions)"), (10_000, 1_000, " (thousands)"), (0, 1, ""))
"""What x is counted in and its name, from a largest x on."""
LENGTHS = 12.0
"""Where the longest curve of a panel is so many times as long as the shortest, x is logarithmic: 0 is left out."""
COLUMNS = 3
"""Most panels in a row of a picture."""
SIZES = {1: (6.6, 3.5), 2: (4.1, 3.0), 3: (3.05, 2.8)}
"""Inches of a panel by the number of panels in a row; the legend stands in that of a single one."""
LEGEND_HEIGHT = 0.25
"""Inches that a row of a legend below the panels needs."""
LEGEND_COLUMNS = 5
"""Most names in such a row."""
LEGEND_LETTERS, LINE_LETTERS = 12.6, 8
"""Letters of a row of a legend in an inch of the picture, at most, and what a line takes."""
FORMATS: dict[str, dict[str, str | None]] = {"png": {"Software": None}, "svg": {"Creator": None, "Date": None}}
"""What else pictures would say of their making, by format: the same table gives the same bytes."""
SETTINGS: dict[str, Any] = {
    "axes.titlesize": "medium",
    "figure.constrained_layout.h_pad": 0.08,
    "figure.constrained_layout.w_pad": 0.08,
    "figure.dpi": 100,
    "font.size": 10.0,
    "savefig.dpi": 305,
    "svg.fonttype": "none",
    "svg.hashsalt": "palaestra",
}


class Curve(NamedTuple):
    """A column over the evaluations of some runs.

    Attributes:
        x: Where they were evaluated.
        middle: Interquartile mean of the runs; of fewer than four it is the mean.
        low: Lower end of the band.
        high: Its upper end.
        seeds: Number of runs.
    """

    x: np.ndarray
    middle: np.ndarray
    low: np.ndarray
    high: np.ndarray
    seeds: int


@dataclass(frozen=True)
class Panel:
    """One pair of axes.

    Attributes:
        title: What was learnt: a battle, a graph, a game.
        y_label: Quantity and unit.
        curves: By the name of the method, see `STYLES`.
        lines: Values of thresholds and scripts by name, drawn across.
        x_label: Quantity.
        is_log: Whether y is logarithmic.
        is_share: Whether y goes from 0 to 1.
    """

    title: str
    y_label: str
    curves: Mapping[str, Curve]
    lines: Mapping[str, float] = field(default_factory=dict)
    x_label: str = "decisions"
    is_log: bool = False
    is_share: bool = False


def read_table(path: Path) -> list[dict[str, str]]:
    """Rows of the table of a figure, by column.

    Raises:
        FileNotFoundError: There is none.
    """
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing: `python benchmarks/learn.py {path.stem}` makes it")
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def group_runs(rows: Rows, *names: str) -> dict[Any, list[Rows]]:
    """Runs by the values of some columns (of one column by its value alone), each seed's rows together."""
    groups: dict[Any, dict[str, list[Mapping[str, Any]]]] = {}
    for row in rows:
        key = row[names[0]] if len(names) == 1 else tuple(row[name] for name in names)
        groups.setdefault(key, {}).setdefault(row["seed"], []).append(row)
    return {key: list(by_seed.values()) for key, by_seed in groups.items()}


def curve_over_seeds(runs: Sequence[Rows], y: str, x: str = "steps") -> Curve:
    """A column of runs that were evaluated at nearly the same x: their k-th evaluations are compared.

    The band goes from the least to the most of the runs; from `FEW_SEEDS` runs on it is the 95 % bootstrap interval of
    the interquartile mean.

    Raises:
        ValueError: The runs differ in their number of evaluations.
    """
    places, values = (
        np.array([[float(row[name]) for row in rows] for rows in zip(*runs, strict=True)]) for name in (x, y)
    )
    low, high = values.min(axis=1), values.max(axis=1)
    if len(runs) >= FEW_SEEDS:
        low, high = np.array([bootstrap_interval(row)[1:] for row in values]).T
    return Curve(places.mean(axis=1), interquartile_mean(values), low, high, len(runs))


def panel_of(
    title: str,
    y_label: str,
    rows: Rows,
    arm: str,
    y: str,
    x: str = "steps",
    titles: Mapping[str, str] | None = None,
    lines: Mapping[str, float] | None = None,
    **more: Any,
) -> Panel:
    """A panel of the rows of a table: a curve for each arm, a line across for each row that has no seed.

    Args:
        title: Of the panel.
        y_label: Quantity and unit.
        rows: Of the table; those without a number in ``y`` are left out.
        arm: Column of the arm's name.
        y: Column that is drawn.
        x: Column over which it is drawn.
        titles: Names in the picture by those of the table, where they differ.
        lines: Further lines across.
        **more: Attributes of `Panel`.
    """
    shown = [row for row in rows if row[y] not in ("", "nan")]
    runs = group_runs([row for row in shown if row["seed"] != ""], arm)
    named: dict[Any, Any] = {name: (titles or {}).get(name, name) for name in runs}
    curves = {named[name]: curve_over_seeds(made, y, x) for name, made in runs.items()}
    across = {row[arm]: float(row[y]) for row in shown if row["seed"] == ""}
    return Panel(title, y_label, curves, {**across, **(lines or {})}, **more)


def thresholds(shares: Iterable[float | None]) -> dict[str, float]:
    """Lines across at the shares of matches that are asked for."""
    asked = sorted({share for share in shares if share is not None})
    return {f"threshold: {100 * share:g} %": share for share in asked}


def draw(table: Path, panels: Sequence[Panel]) -> None:
    """Draws panels into ``.png`` and ``.svg`` beside their table, whose digest the files bear.

    Raises:
        ValueError: A method has no style, or there are too many lines across.
    """
    figure = make_picture(panels)
    for suffix in FORMATS:
        write_picture(table.with_suffix(f".{suffix}"), figure, table_digest(table))


def table_digest(table: Path) -> str:
    """SHA-256 of a table, whatever the ends of its lines."""
    return hashlib.sha256(table.read_text(encoding="utf-8").encode()).hexdigest()


def write_picture(path: Path, figure: Figure, source: str) -> None:
    """Writes a picture in the format of its suffix.

    Args:
        path: The file; its folder is made.
        figure: The picture.
        source: Digest of the table from which it was drawn.

    Raises:
        OSError: It cannot be written; the old file is as it was.
    """
    import matplotlib.style

    suffix = path.suffix[1:]
    path.parent.mkdir(parents=True, exist_ok=True)
    with matplotlib.style.context(["default", SETTINGS], after_reset=True):
        metadata = {**FORMATS[suffix], "Source": source}
        write_atomically(path, lambda file: figure.savefig(file, format=suffix, metadata=metadata))


def make_picture(panels: Sequence[Panel]) -> Figure:
    """Panels side by side, at most `COLUMNS` in a row, with one legend beside a single one and else below them.

    Raises:
        ValueError: A method has no style, or there are too many lines across.
    """
    import matplotlib.style
    from matplotlib.figure import Figure

    check(panels)
    columns = min(len(panels), COLUMNS)
    rows = -(-len(panels) // columns)
    width, height = SIZES[columns]
    largest = max(curve.x.max() for panel in panels for curve in panel.curves.values())
    unit, word = next((unit, word) for least, unit, word in UNITS if largest >= least)
    with matplotlib.style.context(["default", SETTINGS], after_reset=True):
        figure = Figure(layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False)
        for axis in axes.flat[len(panels) :]:
            axis.set_axis_off()
        dashes = dict(zip(line_names(panels), GREY_DASHES, strict=False))
        for number, (axis, panel) in enumerate(zip(axes.flat, panels, strict=False)):
            draw_panel(axis, panel, dashes)
            scale_axes(axis, panel, unit)
            axis.set_title(panel.title)
            axis.set_xlabel(panel.x_label + word)
            if number % columns == 0 or panel.y_label != panels[number - 1].y_label:
                axis.set_ylabel(panel.y_label)
        legend_rows = add_legend(figure, panels)
        figure.set_size_inches(width * columns, height * rows + LEGEND_HEIGHT * legend_rows)
    return figure


def check(panels: Sequence[Panel]) -> None:
    """Looks at the names of a picture.

    Raises:
        ValueError: A method has no style, or there are too many lines across.
    """
    for name in dict.fromkeys(name for panel in panels for name in panel.curves):
        if name not in STYLES:
            given = ", ".join(STYLES)
            raise ValueError(
                f"no style for the method {name!r}: write one into STYLES of learning/drawing.py, beside {given}"
            )
    if len(lines := line_names(panels)) > len(GREY_DASHES):
        raise ValueError(
            f"{len(lines)} lines across ({', '.join(lines)}): at most {len(GREY_DASHES)} can be told apart"
        )


def line_names(panels: Sequence[Panel]) -> list[str]:
    """Names of thresholds and scripts of all panels, each once."""
    return list(dict.fromkeys(name for panel in panels for name in panel.lines))


def draw_panel(axis: Axes, panel: Panel, dashes: Mapping[str, tuple[float, ...]]) -> None:
    """Draws lines, bands and curves, the curves last."""
    for name, value in panel.lines.items():
        axis.axhline(value, color=GREY, linestyle=(0, dashes[name]), linewidth=1.3, label=name)
    for name, curve in panel.curves.items():
        color, pattern, marker = STYLES[name]
        if curve.seeds > 1:
            axis.fill_between(curve.x, curve.low, curve.high, color=color, alpha=0.2, linewidth=0)
        axis.plot(
            curve.x,
            curve.middle,
            color=color,
            linestyle=(0, pattern) if pattern else "-",
            marker=marker,
            markersize=4.0,
            markeredgewidth=0.0,
            label=name,
            zorder=3.0,
        )


def scale_axes(axis: Axes, panel: Panel, unit: int) -> None:
    """Limits, scales and plain numbers at the ticks; those of x count units."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

    lengths = [curve.x.max() for curve in panel.curves.values()]
    if max(lengths) > LENGTHS * min(lengths):
        axis.set_xscale("log", nonpositive="mask")
    elif unit == 1:
        axis.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axis.xaxis.set_major_formatter(lambda x, _: f"{x / unit:g}")
    if panel.is_log:
        axis.set_yscale("log")
        low, high = axis.get_ylim()
        axis.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 100.0 * low else (1.0,)))
        axis.yaxis.set_major_formatter("{x:g}")
        axis.yaxis.set_minor_formatter(NullFormatter())
    if panel.is_share:
        axis.set_ylim(-SHARE_MARGIN, 1.0 + SHARE_MARGIN)
    axis.grid(alpha=0.3)


def legend_rows(names: Sequence[str], inches: float) -> int:
    """The fewest rows of a legend that is not wider than its picture; a column is as wide as its longest name."""
    for rows in range(-(-len(names) // LEGEND_COLUMNS), len(names)):
        columns = np.array_split(np.array([len(name) + LINE_LETTERS for name in names]), -(-len(names) // rows))
        if sum(int(column.max()) for column in columns) <= LEGEND_LETTERS * inches:
            return rows
    return len(names)


def add_legend(figure: Figure, panels: Sequence[Panel]) -> int:
    """Adds the legend of all panels, which says what lines and bands are; returns its rows below the panels."""
    handles = [axis.get_legend_handles_labels() for axis in figure.axes]
    entries = {name: handle for both in handles for handle, name in zip(*both, strict=True)}
    names = [*dict.fromkeys(name for panel in panels for name in panel.curves), *line_names(panels)]
    said = list(dict.fromkeys(describe_curves(curve.seeds) for panel in panels for curve in panel.curves.values()))
    is_single = len(panels) == 1
    rows = len(names) if is_single else legend_rows(names, figure.get_figwidth())
    figure.legend(
        [entries[name] for name in names],
        names,
        loc="outside right upper" if is_single else "outside lower center",
        ncols=-(-len(names) // rows),
        title="\n".join(line.replace("; ", "\n") if is_single else line for line in said),
        alignment="left" if is_single else "center",
        handlelength=3.6,
        frameon=False,
    )
    return 0 if is_single else len(said) + rows


def describe_curves(seeds: int) -> str:
    """What a line and its band are."""
    if seeds == 1:
        return "line: one seed"
    mean = "interquartile mean" if seeds > 3 else "mean"
    band = "least to most" if seeds < FEW_SEEDS else "95 % bootstrap interval"
    return f"line: {mean} of {seeds} seeds; band: {band}"
