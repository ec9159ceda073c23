"""Training logs as CSV, and curves over seeds with the interquartile mean and its bootstrap interval.

Agarwal, Schwarzer, Castro, Courville and Bellemare, "Deep reinforcement learning at the edge of the statistical
precipice" (NeurIPS 2021): few runs are compared by the interquartile mean, with an interval from resampling the runs
within each task.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np


class CurveLog:
    """A CSV file with one row per evaluation. A resumed run removes all rows after its checkpoint.

    Attributes:
        path: The file.
        rows: All rows in it.
    """

    def __init__(self, path: Path, resume_from: float | None = None) -> None:
        """Starts an empty file, or keeps the rows up to a step.

        Args:
            path: The file.
            resume_from: Value of the first column up to which rows stay; None keeps no row.
        """
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        kept = [] if resume_from is None or not path.exists() else read_rows(path)
        kept = [row for row in kept if next(iter(row.values())) <= (resume_from or 0.0)]
        path.unlink(missing_ok=True)
        self.rows: list[dict[str, float]] = []
        for row in kept:
            self.write(row)

    def write(self, row: Mapping[str, float]) -> None:
        """Appends a row; the first one names the columns."""
        self.rows.append(dict(row))
        is_new = not self.path.exists()
        with self.path.open("a", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            if is_new:
                writer.writerow(row)
            writer.writerow([f"{value:.6g}" if isinstance(value, float) else value for value in row.values()])


def read_rows(path: Path) -> list[dict[str, float]]:
    """Rows of a CSV file of numbers, by column."""
    with path.open(newline="", encoding="utf-8") as file:
        return [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]


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
    """Draws curves side by side into a PNG.

    Args:
        path: The file.
        panels: For each panel ``label`` (of the y axis), ``x_label``, ``curves`` (name -> ``[steps, 4]`` as from
            `curve_over_seeds`), ``lines`` (name -> value, drawn across) and ``log`` (whether y is logarithmic).
        title: Over all of them.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(panels), figsize=(4.2 * len(panels), 3.4), squeeze=False, layout="constrained")
    for axis, panel in zip(axes[0], panels, strict=True):
        for number, (name, curve) in enumerate(panel["curves"].items()):
            x, mean, low, high = curve.T
            axis.plot(x, mean, color=f"C{number}", label=name)
            axis.fill_between(x, low, high, color=f"C{number}", alpha=0.25, linewidth=0)
        for number, (name, value) in enumerate(panel.get("lines", {}).items()):
            axis.axhline(value, color=f"C{number + len(panel['curves'])}", linestyle="--", label=name)
        if panel.get("log"):
            axis.set_yscale("log")
        axis.set_xlabel(panel["x_label"])
        axis.set_ylabel(panel["label"])
        axis.grid(alpha=0.3, which="both")
    axes[0][0].legend(fontsize="small")
    figure.suptitle(title)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110, metadata={"Software": None})
    plt.close(figure)
