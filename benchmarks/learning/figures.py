"""Runs of a figure, each trained once, several in parallel; tables and statistics of their curves.

Agarwal, Schwarzer, Castro, Courville and Bellemare, "Deep reinforcement learning at the edge of the statistical
precipice" (NeurIPS 2021): few runs are compared by the interquartile mean, with an interval from resampling the runs
within each task.
"""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro

from palaestra.core.files import write_atomically
from palaestra_baselines.common.many_runs import train_runs
from palaestra_baselines.common.run_folder import LOG, WEIGHTS, RunArgs, check_numbers, read_rows, write_csv

CLONE = Path(__file__).parents[2]
Runs = Mapping[Any, Sequence[RunArgs]]
"""Arguments of runs by what they are compared by, then by seed."""
Logs = Mapping[Any, Sequence[list[dict[str, float]]]]
"""Curves of `Runs`."""


@dataclass(frozen=True)
class Method:
    """A method as it is compared.

    Attributes:
        title: Its name in figures.
        module: Its module, see `method_module`.
        arguments: What it is given everywhere.
        options: Keywords of the game that it needs.
    """

    title: str
    module: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    options: tuple[str, ...] = ()

    def make_args(self, **given: Any) -> Any:
        """Arguments of a training."""
        return method_module(self.module).Args(**given)


@dataclass
class FigureArgs:
    """Arguments.

    Attributes:
        names: Figures to make; all if none is named.
        redraw: Draw the pictures again from their tables in `figures`. Nothing is trained or played.
        seeds: Runs of each method.
        runs: Where training keeps its files.
        figures: Where plots and tables go.
        assets: Where weights go.
        trust_checkpoint: Resume from checkpoints that another user or machine wrote. They can run code: do so only if
            you know who wrote them.
        workers: Processes that simulate, or that train in parallel; 0 for this one alone.
        ray: Address of a Ray cluster that trains the runs, `workers` of them at the same time (0 for as many as it has
            processors); ``local`` starts one here. All its machines must share the file system of `runs`. The figures
            tracking, search and text train on this machine alone.
    """

    names: Annotated[tuple[str, ...], tyro.conf.Positional] = ()
    redraw: bool = False
    seeds: int = 3
    runs: Path = Path("runs")
    figures: Path = CLONE / "docs" / "figures"
    assets: Path = CLONE / "assets" / "palaestra_assets"
    trust_checkpoint: bool = False
    workers: int = 2
    ray: str = ""

    def check(self) -> None:
        """Looks at the numbers.

        Raises:
            ValueError: One that cannot be; names the option.
        """
        check_numbers({"seeds": self.seeds, "workers": self.workers}, ("workers",), ())


def train_all(title: str, method_runs: Sequence[tuple[str, Any, Any]], args: FigureArgs) -> None:
    """Trains the runs that are missing.

    Args:
        title: What the user sees.
        method_runs: ``(method, arguments, evaluation or None)`` of each run.
        args: Of the figure.
    """
    runs = [(method_module(method).__name__, run, evaluation) for method, run, evaluation in method_runs]
    train_runs(title, runs, args.workers, ray=args.ray)


def train_in_turn(
    title: str, runs: Runs, module_of: Callable[[Any], str], args: FigureArgs, evaluation: Any = None
) -> None:
    """Trains the runs that are missing, the first seeds of all first.

    Args:
        title: What the user sees.
        runs: Arguments of the runs of each key, by seed.
        module_of: Name of the method's module by key.
        args: Of the figure.
        evaluation: What evaluations measure; matches against the script if None.
    """
    in_turn = [[(module_of(key), run, evaluation) for run in group] for key, group in runs.items()]
    train_all(title, [entry for seed in itertools.zip_longest(*in_turn) for entry in seed if entry], args)


def method_module(method: str) -> Any:
    """The module of a method, which has ``Args`` and ``train``: of `palaestra_baselines`, or a full name with a dot."""
    return importlib.import_module(method if "." in method else f"palaestra_baselines.{method}")


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


def copy_file(source: Path, target: Path) -> None:
    """Copies a file; the folder of the copy is made.

    Raises:
        OSError: It cannot be read or written; the old copy is as it was.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    content = source.read_bytes()
    write_atomically(target, lambda file: file.write(content))


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Writes rows, whose columns may differ, as CSV."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    shown = [{n: f"{v:.5g}" if isinstance(v, float) else v for n, v in row.items()} for row in rows]
    write_csv(path, [columns, *([row.get(name, "") for name in columns] for row in shown)])


def read_logs(runs: Runs) -> Logs:
    """The curves of all runs."""
    return {key: [read_rows(run.folder / LOG) for run in group] for key, group in runs.items()}


def curve_rows(logs: Logs, *names: str) -> list[dict[str, Any]]:
    """The evaluations of all runs as rows of one table, the parts of the key under ``names`` and the seed first."""
    return [
        {**dict(zip(names, key, strict=True)), "seed": seed, **row}
        for key, group in logs.items()
        for seed, log in enumerate(group)
        for row in log
    ]


def install(run: RunArgs, assets: Path, name: str) -> None:
    """Copies the weights of a run to the assets."""
    copy_file(run.folder / WEIGHTS, assets / "weights" / f"{name}.safetensors")


def row_line(row: Mapping[str, Any]) -> str:
    """A row as a line of text."""
    return "  ".join(f"{name} {value:.4g}" if isinstance(value, float) else f"{value}" for name, value in row.items())


def verdicts(asked: Iterable[tuple[str, bool]]) -> str:
    """What was asked of a result, and whether it holds, for a line of text."""
    return "".join(f"  {what}: {'holds' if holds else 'MISSED'}" for what, holds in asked)
