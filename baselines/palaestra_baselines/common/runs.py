"""Runs of a figure: each trained once, several in parallel; interrupted runs resume."""

from __future__ import annotations

import concurrent.futures
import importlib
import json
import multiprocessing
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Protocol

import tyro

import palaestra_assets
from palaestra_baselines.common.curves import read_rows
from palaestra_baselines.common.progress import Progress
from palaestra_baselines.common.run_folder import CHECKPOINT, LOG


@dataclass
class FigureArgs:
    """Arguments.

    Attributes:
        names: Figures to make; all if none is named.
        seeds: Runs of each method.
        runs: Where training keeps its files.
        assets: Where figures and weights go.
        workers: Processes that simulate, or that train in parallel; 0 for this one alone.
    """

    names: Annotated[tuple[str, ...], tyro.conf.Positional] = ()
    seeds: int = 3
    runs: Path = Path("runs")
    assets: Path = Path(palaestra_assets.path("py.typed")).parent
    workers: int = 2


class Run(Protocol):
    """Arguments of a training."""

    total_steps: int

    @property
    def folder(self) -> Path:
        """Where its files are."""
        ...

    @property
    def settings(self) -> dict[str, Any]:
        """Arguments that decide its result."""
        ...


def finished(run: Run) -> bool:
    """Whether the run is complete; the files of a run with other arguments do not count."""
    note, wanted = run.folder / "args.json", run.settings
    if not note.exists() or json.loads(note.read_text()) != wanted:
        for left_over in ("done.json", CHECKPOINT):
            (run.folder / left_over).unlink(missing_ok=True)
        run.folder.mkdir(parents=True, exist_ok=True)
        note.write_text(json.dumps(wanted))
    return (run.folder / "done.json").exists()


def train_all(title: str, method_runs: Sequence[tuple[str, Any, Any]], workers: int, quiet: bool = False) -> None:
    """Trains the runs that are missing, ``workers`` at a time.

    Args:
        title: What the user sees.
        method_runs: ``(method, arguments with resume=True, evaluation or None)`` of each run.
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
        Progress(title, total, steps_so_far(missing), quiet) as progress,
    ):
        waiting = [pool.submit(train_one, *entry) for entry in missing]
        while waiting:
            for done in [future for future in waiting if future.done()]:
                waiting.remove(done)
                done.result()
            progress.update(steps_so_far(missing), runs=len(missing) - len(waiting))
            time.sleep(1.0)


def train_one(method: str, run: Any, evaluation: Any) -> None:
    """Trains a run to its end and marks it as complete."""
    report = importlib.import_module(f"palaestra_baselines.{method}").train(run, evaluation)
    facts = {"steps": report.steps, "updates": report.updates, "cpu_s": report.cpu_s}
    (run.folder / "done.json").write_text(json.dumps(facts))


def steps_so_far(method_runs: Sequence[tuple[str, Any, Any]]) -> int:
    """Steps of all runs up to their last evaluations."""
    steps = 0.0
    for _, run, _ in method_runs:
        log = run.folder / LOG
        rows = read_rows(log) if log.exists() else []
        steps += rows[-1]["steps"] if rows else 0.0
    return int(steps)
