"""Runs of a figure, each trained once, several in parallel; tables and statistics of their curves.

Agarwal, Schwarzer, Castro, Courville and Bellemare, "Deep reinforcement learning at the edge of the statistical
precipice" (NeurIPS 2021): few runs are compared by the interquartile mean, with an interval from resampling the runs
within each task.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import importlib
import itertools
import json
import multiprocessing
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro

from palaestra.cli.progress_bar import Progress
from palaestra.core.files import write_atomically
from palaestra_baselines.common.checkpoints import CHECKPOINT, PREVIOUS
from palaestra_baselines.common.run_folder import (
    LOG,
    WEIGHTS,
    RunArgs,
    check_numbers,
    differences,
    read_rows,
    write_csv,
)

CLONE = Path(__file__).parents[2]
DONE = "done.json"
"""Says that a run is complete, and of which settings it is."""
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


@dataclass(frozen=True)
class Entry:
    """Runs of a method in one place, and what is asked of the median of its seeds.

    Attributes:
        place: Battle or setting where it learns.
        method: Who learns.
        steps: Decisions of a run.
        bar: Least share of won matches; None asks for nothing.
        minutes: Most processor time of a run; likewise.
        ahead: Least lead in won matches over other methods in the same place; a negative one is how far it may be
            behind.
        weights: Name under which the weights of the best seed are bundled; empty if they are not.
        seeds: Runs, at most those that are asked for; None for all.
        arguments: What the method is given here alone.
    """

    place: str
    method: str
    steps: int
    bar: float | None = None
    minutes: float | None = None
    ahead: Mapping[str, float] = field(default_factory=dict)
    weights: str = ""
    seeds: int | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str]:
        """Place and method: a figure has one entry of each."""
        return self.place, self.method


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
    """

    names: Annotated[tuple[str, ...], tyro.conf.Positional] = ()
    redraw: bool = False
    seeds: int = 3
    runs: Path = Path("runs")
    figures: Path = CLONE / "docs" / "figures"
    assets: Path = CLONE / "assets" / "palaestra_assets"
    trust_checkpoint: bool = False
    workers: int = 2

    def check(self) -> None:
        """Looks at the numbers.

        Raises:
            ValueError: One that cannot be; names the option.
        """
        check_numbers({"seeds": self.seeds, "workers": self.workers}, ("workers",), ())


def finished(run: RunArgs) -> bool:
    """Whether the run is complete.

    Raises:
        FileExistsError: A run with other settings is complete there.
    """
    note = run.folder / DONE
    try:
        before = json.loads(note.read_text(encoding="utf-8"))["settings"]
    except FileNotFoundError:
        return False
    except (ValueError, KeyError, TypeError, RecursionError):  # not written to its end: the checkpoint knows
        return False
    if before != run.settings:
        raise FileExistsError(
            f"{run.folder} holds a run with other settings ({differences(before, run.settings) or 'its length'}): "
            "give another folder (--runs), or delete this one"
        )
    return True


def mark_finished(run: RunArgs, **facts: Any) -> None:
    """Writes down that the run is complete."""
    content = json.dumps({"settings": run.settings, **facts}).encode()
    write_atomically(run.folder / DONE, lambda file: file.write(content))


def continued(run: Any) -> Any:
    """The arguments of a run that goes on from its checkpoint where there is one, and else starts anew."""
    begun = any((run.folder / name).exists() for name in (CHECKPOINT, PREVIOUS))
    return dataclasses.replace(run, resume=begun, overwrite=not begun)


def train_all(title: str, method_runs: Sequence[tuple[str, Any, Any]], workers: int, quiet: bool = False) -> None:
    """Trains the runs that are missing, ``workers`` at a time.

    Args:
        title: What the user sees.
        method_runs: ``(method, arguments, evaluation or None)`` of each run.
        workers: Processes; 0 trains here.
        quiet: Show nothing.
    """
    missing = [entry for entry in method_runs if not finished(entry[1])]
    if workers < 1:
        for entry in missing:
            train_one(*entry)
    if workers < 1 or not missing:
        return
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")  # for the processes: they share the cores
    total = sum(run.total_steps for _, run, _ in missing)
    context = multiprocessing.get_context("spawn")
    with (
        concurrent.futures.ProcessPoolExecutor(workers, context) as pool,
        Progress("steps", total, steps_so_far(missing), title=title, quiet=quiet, stream="stdout") as progress,
    ):
        waiting = [pool.submit(train_one, *entry) for entry in missing]
        while waiting:
            for done in [future for future in waiting if future.done()]:
                waiting.remove(done)
                done.result()
            progress.update(steps_so_far(missing), runs=len(missing) - len(waiting))
            time.sleep(1.0)


def train_in_turn(
    title: str, runs: Runs, module_of: Callable[[Any], str], workers: int, evaluation: Any = None
) -> None:
    """Trains the runs that are missing, the first seeds of all first.

    Args:
        title: What the user sees.
        runs: Arguments of the runs of each key, by seed.
        module_of: Name of the method's module by key.
        workers: Processes; 0 trains here.
        evaluation: What evaluations measure; matches against the script if None.
    """
    in_turn = [[(module_of(key), run, evaluation) for run in group] for key, group in runs.items()]
    train_all(title, [entry for seed in itertools.zip_longest(*in_turn) for entry in seed if entry], workers)


def train_entries(
    title: str,
    entries: Iterable[Entry],
    methods: Mapping[str, Method],
    run_of: Callable[..., RunArgs],
    args: FigureArgs,
) -> dict[Any, list[RunArgs]]:
    """Trains the missing runs of some entries, the first seeds of all first.

    Args:
        title: Name of the figure and of its folder.
        entries: The entries.
        methods: Methods by the name that entries give them.
        run_of: ``run_of(entry, seed, directory, **more)``, the arguments of a run.
        args: Of the figure.

    Returns:
        Runs by place and method.
    """
    shared = {"trust_checkpoint": args.trust_checkpoint, "quiet": True}
    runs = {
        entry.key: [
            run_of(entry, seed, args.runs / title / entry.place.replace(" ", "_") / entry.method, **shared)
            for seed in range(args.seeds if entry.seeds is None else min(args.seeds, entry.seeds))
        ]
        for entry in entries
    }
    train_in_turn(title, runs, lambda key: methods[key[1]].module, args.workers)
    return runs


def train_one(method: str, run: Any, evaluation: Any) -> None:
    """Trains a run to its end, from its checkpoint where there is one, and marks it as complete."""
    report = method_module(method).train(continued(run), evaluation)
    mark_finished(run, steps=report.steps, updates=report.updates, cpu_s=report.cpu_s)


def method_module(method: str) -> Any:
    """The module of a method, which has ``Args`` and ``train``: of `palaestra_baselines`, or a full name with a dot."""
    return importlib.import_module(method if "." in method else f"palaestra_baselines.{method}")


def steps_so_far(method_runs: Sequence[tuple[str, Any, Any]]) -> int:
    """Steps of all runs up to their last evaluations."""
    steps = 0.0
    for _, run, _ in method_runs:
        log = run.folder / LOG
        rows = read_rows(log) if log.exists() else []
        steps += rows[-1]["steps"] if rows else 0.0
    return int(steps)


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


def install_best(
    runs: Sequence[RunArgs],
    logs: Sequence[Sequence[Mapping[str, float]]],
    assets: Path,
    name: str,
    by: str = "win_rate",
) -> None:
    """Copies the weights of the run that has most of a column in its last evaluation to the assets."""
    install(runs[int(np.argmax([log[-1][by] for log in logs]))], assets, name)


def verdicts(asked: Iterable[tuple[str, bool]]) -> str:
    """What was asked of a result, and whether it holds, for a line of text."""
    return "".join(f"  {what}: {'holds' if holds else 'MISSED'}" for what, holds in asked)
