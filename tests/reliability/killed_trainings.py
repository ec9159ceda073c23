"""Kills trainings, many of them within a write, resumes them, and compares the results with those of a whole run.

    PYTHONPATH=tests:benchmarks python tests/reliability/killed_trainings.py  # 20 kills of each of the five learners
    PYTHONPATH=tests:benchmarks python tests/reliability/killed_trainings.py --kills 4 --methods fm3q pid

Each method trains in small settings of one or two kinds (`reliability.small_runs`); the methods beside UNMAS, ARAC,
QMIX, VDN and MAPPO are killed a quarter as often. Half of the kills come at a random time. The others come at a moment
of a write: before a file is opened, after half of its content, or before or after a call of fsync, replace or unlink. A
run is killed up to six times, then it ends. A table counts

* resumed: kills after which the run went on;
* lost: kills after which no whole checkpoint was there, or one of fewer decisions than before;
* different: runs whose weights, curve (its times left out) or files are not bitwise those of a run that was never
  killed. The flights of ``ppo_tracking`` start anew where it resumes; there the curve must be complete and the best
  weights those of the evaluation that they name.

Exit status 1 if a run does not resume, or anything is lost or different. For Linux and macOS.
"""

from __future__ import annotations

import argparse
import importlib
import multiprocessing
import os
import random
import resource
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reliability import small_runs
from reliability.small_runs import LEARNERS, RUNS, method_of, results, steps_kept, watched_writes

MOST_KILLS = 6
"""Of one run."""
LONGEST_S = 300.0
ERRORS = "errors.txt"
"""What the last process of a run has printed."""
METHODS = tuple(dict.fromkeys(map(method_of, RUNS)))
OTHERS_SHARE = 0.25
"""Kills of another method than the five learners, in those of a learner."""
COLUMNS = ("kills", "in writes", "runs", "resumed", "lost", "different")


# ------------------------------------------------------------------------------------------------ in the killed process


class Moments:
    """Counts the moments of writes, and ends the process at one of them without a word."""

    def __init__(self, last: int | None) -> None:
        """``last`` is the number of the moment that the process does not survive."""
        self.count, self.last = 0, last

    def __call__(self, what: str, where: Any) -> None:
        """One more moment."""
        self.count += 1
        if self.count == self.last:
            os.kill(os.getpid(), signal.SIGKILL)


def train(name: str, folder: Path, last: int | None, moments_file: Path) -> None:
    """Trains, or resumes, until the end or the last moment."""
    sys.stdout = sys.stderr = (folder / ERRORS).open("w")
    moments = Moments(last)
    with watched_writes(moments):
        small_runs.train(name, folder, **({} if method_of(name) == "pid" else {"quiet": True}))
    moments_file.write_text(str(moments.count))


# -------------------------------------------------------------------------------------------------------------- trials


@dataclass
class Tally:
    """Counts of the kills of some runs, in the order of `COLUMNS`."""

    kills: int = 0
    in_writes: int = 0
    runs: int = 0
    resumed: int = 0
    lost: int = 0
    different: int = 0

    @property
    def is_bad(self) -> bool:
        """Whether anything went wrong."""
        return self.resumed < self.kills or self.lost > 0 or self.different > 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(*(a + b for a, b in zip(vars(self).values(), vars(other).values(), strict=True)))


class Trial:
    """Runs of one kind: one that is never killed, and those that are."""

    def __init__(self, name: str, folder: Path, rng: random.Random) -> None:
        """Trains the whole run."""
        self.name, self.folder, self.rng, self.tally = name, folder, rng, Tally()
        self.context = multiprocessing.get_context("fork")
        began = time.perf_counter()
        if self.once(folder / "whole", None, None) != 0:
            raise SystemExit(f"{name}: the run that is never killed has failed: {said(folder / 'whole')}")
        self.whole_s = time.perf_counter() - began
        self.moments = int((folder / "moments").read_text())
        self.whole = results(name, folder / "whole")

    def once(self, folder: Path, last: int | None, after_s: float | None) -> int | None:
        """Exit code of a process that trains; it is killed at a moment, after a time, or not at all."""
        folder.mkdir(exist_ok=True)
        given = (self.name, folder, last, self.folder / "moments")
        process = self.context.Process(target=train, args=given)
        process.start()
        process.join(LONGEST_S if after_s is None else after_s)
        if process.is_alive():
            process.kill()
            process.join()
        return process.exitcode

    def killed_run(self, number: int, most: int) -> None:
        """One run that is killed up to ``most`` times and then ends."""
        folder, tally, kills, kept = self.folder / f"run_{number}", self.tally, 0, -1
        tally.runs += 1
        while True:
            last = after_s = None
            if kills < most:
                if 2 * tally.in_writes <= tally.kills:
                    last = self.rng.randint(1, self.moments)
                else:
                    after_s = self.rng.uniform(0.0, self.whole_s)
            code = self.once(folder, last, after_s)
            is_killed = code == -signal.SIGKILL and (last is not None or after_s is not None)
            if code != 0 and not is_killed:
                print(f"{self.name}: run {number} does not resume (exit code {code}): {said(folder)}")
                tally.lost += 1
                return
            tally.resumed += kills > 0
            if code == 0:
                break
            kills += 1
            tally.kills += 1
            tally.in_writes += last is not None
            kept, before = steps_kept(self.name, folder), kept
            if kept < before:
                print(f"{self.name}: run {number} was at {before} decisions and is at {kept} after a kill")
                tally.lost += 1
        found = results(self.name, folder)
        differing = [name for name in {**self.whole, **found} if self.whole.get(name) != found.get(name)]
        if differing:
            print(f"{self.name}: run {number} differs from the whole run: {', '.join(differing[:5])}")
            tally.different += 1


def said(folder: Path) -> str:
    """The last line that a process has printed."""
    return " ".join((folder / ERRORS).read_text().strip().splitlines()[-1:])


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20, help="of each of the five learners")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    args = parser.parse_args()
    for module in ("torch._dynamo", "palaestra.exact", *(f"palaestra_baselines.{method}" for method in METHODS)):
        importlib.import_module(module)  # once, for all processes: they are forks of this one
    print(f"{'method':18s}" + "".join(f"{name:>11s}" for name in COLUMNS) + f"{'s':>7s}")
    totals = {"five learners": Tally(), "all": Tally()}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = folder  # a key for checkpoints of its own
        for method in args.methods:
            names = [name for name in RUNS if method_of(name) == method]
            share = (1.0 if method in LEARNERS else OTHERS_SHARE) / len(names)
            for name in names:
                wanted, began = max(round(share * args.kills), 1), time.perf_counter()
                home = Path(folder) / name.replace(" ", "_")
                home.mkdir()
                trial = Trial(name, home, random.Random(f"{args.seed} {name}"))
                tally = trial.tally
                while tally.kills < wanted and not tally.is_bad:
                    trial.killed_run(tally.runs, min(MOST_KILLS, wanted - tally.kills))
                print_row(name, tally, time.perf_counter() - began)
                totals["all"] += tally
                if method in LEARNERS:
                    totals["five learners"] += tally
    for name, tally in totals.items():
        print_row(name, tally, None)
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    print(f"{sum(usage.ru_utime + usage.ru_stime for usage in spent):.0f} s of processor")
    return int(totals["all"].is_bad)


def print_row(name: str, tally: Tally, seconds: float | None) -> None:
    """One row of the table."""
    cells = "".join(f"{count:11d}" for count in vars(tally).values())
    print(f"{name:18s}{cells}" + ("" if seconds is None else f"{seconds:7.0f}"), flush=True)


if __name__ == "__main__":
    sys.exit(main())
