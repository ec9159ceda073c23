"""Training logs as CSV, and curves over seeds with the interquartile mean and its bootstrap interval.

Agarwal, Schwarzer, Castro, Courville and Bellemare, "Deep reinforcement learning at the edge of the statistical
precipice" (NeurIPS 2021): few runs are compared by the interquartile mean, with an interval from resampling the runs
within each task.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from palaestra.core.files import FileError, write_atomically

SHARE_MARGIN = 0.03
"""Room below 0 and above 1 in pictures of shares, so that lines there are seen."""
LARGE = 10_000
"""From this number on x is written in thousands (k) and millions (M)."""
COLUMNS = 3
"""Most panels in a row of a picture."""


class CurveLog:
    """A CSV file with one row per evaluation, always written as a whole, in one piece.

    Attributes:
        path: The file.
        rows: All rows in it.
    """

    def __init__(self, path: Path, rows: Sequence[Mapping[str, float]] = ()) -> None:
        """Writes nothing yet.

        Args:
            path: The file.
            rows: The rows before the next one: those of the checkpoint from which a run continues.
        """
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self.rows: list[dict[str, float]] = [dict(row) for row in rows]

    def write(self, row: Mapping[str, float]) -> None:
        """Adds a row; the columns are those of the first one.

        Raises:
            OSError: It cannot be written; the old file is as it was.
        """
        self.rows.append(dict(row))
        write_atomically(self.path, lambda file: file.write(self._text().encode()))

    def restore(self) -> None:
        """Writes the file where it does not hold the rows: a process ended after its checkpoint and before its row."""
        if not self.path.exists() or self.path.read_bytes() != self._text().encode():
            write_atomically(self.path, lambda file: file.write(self._text().encode()))

    def _text(self) -> str:
        text = io.StringIO(newline="")
        writer = csv.writer(text)
        writer.writerow(self.rows[0] if self.rows else ())
        for one in self.rows:
            writer.writerow([f"{value:.6g}" if isinstance(value, float) else value for value in one.values()])
        return text.getvalue()


def read_rows(path: Path) -> list[dict[str, float]]:
    """Rows of a CSV file of numbers, by column.

    Raises:
        FileError: A row is not complete, or no row of numbers; names its line.
    """
    with path.open(newline="", encoding="utf-8") as file:
        rows: list[dict[str, float]] = []
        try:
            rows.extend({name: float(value) for name, value in row.items()} for row in csv.DictReader(file))
        except (TypeError, ValueError, AttributeError, csv.Error) as error:
            raise FileError(
                f"{path}: line {len(rows) + 2} is no row of numbers under its columns: resume the training, which "
                "writes the file anew"
            ) from error
    return rows


def interquartile_mean(values: np.ndarray, axis: int = -1) -> np.ndarray:
    """Mean without the lowest and the highest quarter (rounded down) of the values along an axis."""
    ordered = np.sort(values, axis=axis)
    count = ordered.shape[axis]
    return np.take(ordered, np.arange(count // 4, count - count // 4), axis=axis).mean(axis=axis)


def bootstrap_interval(
    scores: np.ndarray, level: float = 0.95, repetitions: int = 2000, seed: int = 0
) -> tuple[float, float, float]:
    """Interquartile mean of scores and its percentile interval, runs resampled within each task.

    Args:
        scores: ``[runs, tasks]``, or ``[runs]`` for one task.
        level: Share of the bootstrap distribution inside the interval.
        repetitions: Number of resamples.
        seed: Of the resampling.

    Returns:
        Mean, lower and upper end.
    """
    table = np.asarray(scores, np.float64).reshape(len(scores), -1)
    runs, tasks = table.shape
    drawn = np.random.default_rng(seed).integers(0, runs, (repetitions, runs, tasks))
    resampled = table[drawn, np.arange(tasks)].reshape(repetitions, -1)
    tail = 50.0 * (1.0 - level)
    low, high = np.percentile(interquartile_mean(resampled), [tail, 100.0 - tail])
    return float(interquartile_mean(table.ravel())), float(low), float(high)


def curve_over_seeds(runs: Sequence[list[dict[str, float]]], x: str, y: str) -> np.ndarray:
    """A column over the steps that all runs have: ``[steps, 4]`` (x, interquartile mean, low, high)."""
    tables = [{row[x]: row[y] for row in run} for run in runs]
    common = sorted(set.intersection(*(set(table) for table in tables)))
    rows = [(step, *bootstrap_interval(np.array([table[step] for table in tables]))) for step in common]
    return np.array(rows).reshape(-1, 4)


def plot_panels(path: Path, panels: Sequence[Mapping[str, Any]], title: str) -> None:
    """Draws curves side by side into a PNG, at most `COLUMNS` in a row.

    Args:
        path: The file.
        panels: For each panel ``label`` (of the y axis), ``x_label``, ``curves`` (name -> ``[steps, 4]`` as from
            `curve_over_seeds`), ``lines`` (name -> value, drawn across), ``log`` (whether y is logarithmic) and
            ``is_share`` (whether y goes from 0 to 1). A panel has a legend where its names are not those of the panel
            before.
        title: Over all of them.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import EngFormatter

    columns = min(len(panels), COLUMNS)
    rows = -(-len(panels) // columns)
    size = (4.2 * columns, 3.4 * rows)
    figure, axes = plt.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained")
    for axis in axes.flat[len(panels) :]:
        axis.set_axis_off()
    named: list[str] = []
    for axis, panel in zip(axes.flat, panels, strict=False):
        for number, (name, curve) in enumerate(panel["curves"].items()):
            x, mean, low, high = curve.T
            axis.plot(x, mean, color=f"C{number}", label=name)
            axis.fill_between(x, low, high, color=f"C{number}", alpha=0.25, linewidth=0)
        for number, (name, value) in enumerate(panel.get("lines", {}).items()):
            axis.axhline(value, color=f"C{number + len(panel['curves'])}", linestyle="--", label=name)
        if panel.get("log"):
            axis.set_yscale("log")
        if panel.get("is_share"):
            axis.set_ylim(-SHARE_MARGIN, 1.0 + SHARE_MARGIN)
        if axis.get_xlim()[1] >= LARGE:
            axis.xaxis.set_major_formatter(EngFormatter(sep=""))
        axis.set_xlabel(panel["x_label"])
        axis.set_ylabel(panel["label"])
        axis.grid(alpha=0.3, which="both")
        names = axis.get_legend_handles_labels()[1]
        if names != named:
            axis.legend(fontsize="small")
            named = names
    figure.suptitle(title, fontsize="medium" if columns == 1 else "large")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, lambda file: figure.savefig(file, dpi=110, format="png", metadata={"Software": None}))
    plt.close(figure)
