"""Runs of a figure: each trained once, several in parallel; interrupted runs resume."""

from __future__ import annotations

import concurrent.futures
import dataclasses
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
from palaestra.cli.progress_bar import Progress
from palaestra.core.files import write_atomically
from palaestra_baselines.common.checkpoints import CHECKPOINT, PREVIOUS
from palaestra_baselines.common.curves import read_rows
from palaestra_baselines.common.number_checks import check_numbers
from palaestra_baselines.common.run_folder import LOG, differences

DONE = "done.json"
"""Says that a run is complete, and of which settings it is."""


@dataclass
class FigureArgs:
    """Arguments.

    Attributes:
        names: Figures to make; all if none is named.
        seeds: Runs of each method.
        runs: Where training keeps its files.
        figures: Where plots and tables go: docs/figures in a clone of the repository, else a folder here.
        assets: Where weights go: the package in a clone of the repository, else a folder here.
        trust_checkpoint: Resume from checkpoints that another user or machine wrote. They can run code: do so only if
            you know who wrote them.
        workers: Processes that simulate, or that train in parallel; 0 for this one alone.
    """

    names: Annotated[tuple[str, ...], tyro.conf.Positional] = ()
    seeds: int = 3
    runs: Path = Path("runs")
    figures: Path = dataclasses.field(default_factory=lambda: figures_folder("palaestra-figures"))
    assets: Path = dataclasses.field(default_factory=lambda: assets_folder("palaestra-figures"))
    trust_checkpoint: bool = False
    workers: int = 2

    def check(self) -> None:
        """Looks at the numbers.

        Raises:
            ValueError: One that cannot be; names the option.
        """
        check_numbers(vars(self), ("workers",), ())


def assets_folder(elsewhere: str) -> Path:
    """The package of assets where it stands in a clone of the repository; an installed one is never written to.

    Args:
        elsewhere: Folder that is given where there is no clone.
    """
    return clone / "assets" / "palaestra_assets" if (clone := _clone()) else Path(elsewhere)


def figures_folder(elsewhere: str) -> Path:
    """``docs/figures`` in a clone of the repository; ``elsewhere`` where there is none."""
    return clone / "docs" / "figures" if (clone := _clone()) else Path(elsewhere)


def _clone() -> Path | None:
    """The clone of the repository in which the package of assets stands; None where it is installed."""
    folder, clone = Path(palaestra_assets.path("py.typed")).parents[1:3]
    return clone if folder.name == "assets" and (clone / "pyproject.toml").exists() else None


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


def mark_finished(run: Run, **facts: Any) -> None:
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


def train_one(method: str, run: Any, evaluation: Any) -> None:
    """Trains a run to its end, from its checkpoint where there is one, and marks it as complete."""
    report = importlib.import_module(f"palaestra_baselines.{method}").train(continued(run), evaluation)
    mark_finished(run, steps=report.steps, updates=report.updates, cpu_s=report.cpu_s)


def steps_so_far(method_runs: Sequence[tuple[str, Any, Any]]) -> int:
    """Steps of all runs up to their last evaluations."""
    steps = 0.0
    for _, run, _ in method_runs:
        log = run.folder / LOG
        rows = read_rows(log) if log.exists() else []
        steps += rows[-1]["steps"] if rows else 0.0
    return int(steps)
