"""Kills trainings, many of them within a write, resumes them, and compares the results with those of a whole run.

    python tests/reliability/killed_trainings.py                    # 100 kills
    python tests/reliability/killed_trainings.py --kills 20 --methods fm3q pid

Half of the kills come at a random time. The others come at a moment of a write: before or after a call of fsync,
replace or unlink, or after half of a file's content. A run is killed up to six times, then it ends. Weights and curve
must be bitwise those of a run that was never killed, the times of the curve left out. The flights of ``ppo_tracking``
start anew where it resumes; there the curve must be complete and the best weights those of the evaluation that they
name.

Exit status 1 if anything is lost. For Linux and macOS.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import itertools
import json
import multiprocessing
import os
import pathlib
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MOST_KILLS = 6
"""Of one run."""
LONGEST_S = 300.0
ERRORS = "errors.txt"
"""What the last process of a run has printed."""
TIMES = ("cpu_s", "wall_s")
METHODS = ("fm3q", "vdn", "iql", "mappo", "minimax_q", "pid", "ppo_tracking")
SHARES = {"ppo_tracking": 0.05, "pid": 0.15}
"""Share of the kills of methods that fly; the others have equal shares of the rest."""
SMALL = {
    "env_id": "palaestra/TeamGridSoccer-3x3-v0",
    "options": ("order=alternating",),
    "total_steps": 1200,
    "lanes": 16,
    "warmup_steps": 200,
    "updates": 1,
    "batch_size": 32,
    "replay_size": 800,
    "hidden": (16, 16),
    "evaluations": 6,
    "opponent": "",
    "quiet": True,
}


# ------------------------------------------------------------------------------------------------ in the killed process


class Moments:
    """Counts the moments of writes, and ends the process at one of them without a word."""

    def __init__(self, last: int | None) -> None:
        """Watches all writes from now on; ``last`` is the moment that the process does not survive."""
        self.count, self.last = 0, last
        for name in ("fsync", "replace", "unlink"):
            setattr(os, name, self.watched(getattr(os, name)))
        opened = pathlib.Path.open

        def open_watched(path: Path, mode: str = "r", *given: Any, **named: Any) -> Any:
            file = opened(path, mode, *given, **named)
            return HalfWritten(file, self) if mode == "xb" else file

        pathlib.Path.open = open_watched  # type: ignore[method-assign, assignment]

    def pass_one(self) -> None:
        """One more moment."""
        self.count += 1
        if self.count == self.last:
            os.kill(os.getpid(), signal.SIGKILL)

    def watched(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """A call with a moment before and one after it."""

        @functools.wraps(call)
        def call_watched(*given: Any, **named: Any) -> Any:
            self.pass_one()
            result = call(*given, **named)
            self.pass_one()
            return result

        return call_watched


class HalfWritten:
    """A file with a moment after half of what is written to it."""

    def __init__(self, file: Any, moments: Moments) -> None:
        self.file, self.moments = file, moments

    def write(self, content: Any) -> int:
        half = len(content) // 2
        self.file.write(content[:half])
        self.file.flush()
        self.moments.pass_one()
        self.file.write(content[half:])
        return len(content)

    def __enter__(self) -> HalfWritten:
        return self

    def __exit__(self, *error: Any) -> None:
        self.file.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)


def train(method: str, folder: Path, last: int | None, moments_file: Path) -> None:
    """Trains, or resumes, until the end or the last moment."""
    sys.stdout = sys.stderr = (folder / ERRORS).open("w")
    moments = Moments(last)
    if method == "pid":
        from palaestra_baselines import pid

        chosen = tuple(itertools.islice(pid.sets(), 6))
        pid.sets = lambda: iter(chosen)
        pid.train(pid.Args(grid=True, flights=2, horizon=60, directory=folder, table=folder / "table.csv"))
    else:
        from palaestra_baselines import ppo_tracking
        from palaestra_baselines.common.runs import continued
        from palaestra_baselines.common.tracking import evaluation_flights

        module: Any = importlib.import_module(f"palaestra_baselines.{method}")
        settings: dict[str, Any] = SMALL
        if method == "minimax_q":
            settings = {"total_steps": 40_000, "evaluations": 6, "lanes": 64, "quiet": True}
        if method == "mappo":
            settings = {"env_id": "palaestra/TeamTag-2v2-v0", "opponent": "random", "total_steps": 1200, "lanes": 8}
            settings |= {"rollout": 16, "hidden": (16, 16), "evaluations": 6, "matches": 8, "quiet": True}
        if method == "ppo_tracking":
            ppo_tracking.evaluation_flights = functools.partial(evaluation_flights, horizon=100)
            settings = {"total_steps": 1024, "lanes": 8, "workers": 0, "rollout_steps": 32, "batch_size": 128}
            settings |= {"evaluations": 4, "flights": 2, "quiet": True}
        module.train(continued(module.Args(**settings, directory=folder)))
    moments_file.write_text(str(moments.count))


# -------------------------------------------------------------------------------------------------------------- results


def results(method: str, folder: Path) -> dict[str, Any]:
    """What a finished run has left, by name, without times."""
    if method == "pid":
        return {path.name: path.read_bytes() for path in sorted(folder.glob("*.csv"))}
    from palaestra_baselines.common.curves import read_rows
    from palaestra_baselines.common.policy_file import read_policy

    home, found = folder / "seed_0", {}
    rows = read_rows(home / "log.csv")
    policies = [path for path in sorted(home.glob("*.safetensors")) if not path.name.startswith("checkpoint")]
    if method == "ppo_tracking":
        _, notes = read_policy(home / "best.safetensors")
        row = next(row for row in rows if row["steps"] == notes["steps"])
        same = all(abs(row[name] - value) <= 1e-5 * abs(value) for name, value in notes["tracking"].items())
        return {"steps": [row["steps"] for row in rows], "best is an evaluation": same}
    for path in policies:
        arrays, notes = read_policy(path)
        found |= {f"{path.name}: {name}": array.tobytes() for name, array in arrays.items()}
        found[f"{path.name}: steps"] = notes["steps"]
    found["log.csv"] = json.dumps([{k: v for k, v in row.items() if k not in TIMES} for row in rows])
    return found


@dataclass
class Tally:
    """Counts of one method."""

    runs: int = 0
    kills: int = 0
    in_writes: int = 0
    failed_resumes: int = 0
    lost: int = 0


class Trial:
    """Runs of one method: one that is never killed, and those that are."""

    def __init__(self, method: str, folder: Path, rng: random.Random) -> None:
        """Trains the whole run."""
        self.method, self.folder, self.rng, self.tally = method, folder, rng, Tally()
        self.context = multiprocessing.get_context("forkserver")
        began = time.perf_counter()
        if self.once(folder / "whole", None, None) != 0:
            raise SystemExit(f"{method}: the run that is never killed has failed")
        self.whole_s = time.perf_counter() - began
        self.moments = int((folder / "moments").read_text())
        self.whole = results(method, folder / "whole")

    def once(self, folder: Path, last: int | None, after_s: float | None) -> int | None:
        """Exit code of a process that trains; it is killed at a moment, after a time, or not at all."""
        folder.mkdir(exist_ok=True)
        given = (self.method, folder, last, self.folder / "moments")
        process = self.context.Process(target=train, args=given)
        process.start()
        process.join(LONGEST_S if after_s is None else after_s)
        if process.is_alive():
            process.kill()
            process.join()
        return process.exitcode

    def killed_run(self, number: int, most: int) -> None:
        """One run that is killed up to ``most`` times and then ends."""
        folder, tally, kills = self.folder / f"run_{number}", self.tally, 0
        tally.runs += 1
        while True:
            last = after_s = None
            if kills < most:
                if self.rng.random() < 0.5:
                    last = self.rng.randint(1, self.moments)
                else:
                    after_s = self.rng.uniform(0.0, self.whole_s)
            code = self.once(folder, last, after_s)
            if code == 0:
                break
            if code != -signal.SIGKILL or (last is None and after_s is None):
                said = (folder / ERRORS).read_text().strip().splitlines()[-1:]
                print(f"{self.method}: run {number} does not resume (exit code {code}): {' '.join(said)}")
                tally.failed_resumes += 1
                return
            kills += 1
            tally.kills += 1
            tally.in_writes += last is not None
        found = results(self.method, folder)
        differing = [name for name in {**self.whole, **found} if self.whole.get(name) != found.get(name)]
        if differing:
            print(f"{self.method}: run {number} differs from the whole run: {', '.join(differing[:5])}")
            tally.lost += 1


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    args = parser.parse_args()
    multiprocessing.set_forkserver_preload(["torch", *(f"palaestra_baselines.{m}" for m in METHODS), "palaestra.exact"])
    rest = [method for method in args.methods if method not in SHARES]
    fixed = sum(SHARES[method] for method in args.methods if method in SHARES) if rest else 0.0
    print(f"{'method':14s}{'kills':>7s}{'in writes':>11s}{'runs':>6s}{'not resumed':>13s}{'lost':>6s}{'s':>7s}")
    total, bad = Tally(), 0
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = folder  # a key for checkpoints of its own
        for method in args.methods:
            share = (1.0 - fixed) / len(rest) if method in rest else SHARES[method] if rest else 1 / len(args.methods)
            wanted, began = max(round(share * args.kills), 1), time.perf_counter()
            home = Path(folder) / method
            home.mkdir()
            trial = Trial(method, home, random.Random(f"{args.seed} {method}"))
            tally = trial.tally
            while tally.kills < wanted and not tally.failed_resumes:
                trial.killed_run(tally.runs, min(MOST_KILLS, wanted - tally.kills))
            counts = (tally.kills, tally.in_writes, tally.runs, tally.failed_resumes, tally.lost)
            print_row(method, counts, time.perf_counter() - began)
            bad += tally.failed_resumes + tally.lost
            total = Tally(*(a + b for a, b in zip(vars(total).values(), vars(tally).values(), strict=True)))
    print_row("all", (total.kills, total.in_writes, total.runs, total.failed_resumes, total.lost), None)
    return 1 if bad else 0


def print_row(name: str, counts: tuple[int, ...], seconds: float | None) -> None:
    """One row of the table."""
    cells = "".join(f"{count:{width}d}" for count, width in zip(counts, (7, 11, 6, 13, 6), strict=True))
    print(f"{name:14s}{cells}" + ("" if seconds is None else f"{seconds:7.0f}"), flush=True)


if __name__ == "__main__":
    sys.exit(main())
