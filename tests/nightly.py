"""Everything that `make test` and `make check` leave out, in units that are run once at a commit: `make nightly`.

    python tests/nightly.py                          # all that has not passed at this commit
    python tests/nightly.py --only reliability full  # units whose names begin so
    python tests/nightly.py --minutes 15             # begins none after 15 minutes
    python tests/nightly.py --list                   # the table of last results

Units are files of tests (the slow ones, and compiled those that `make test` runs without the compiler), ids at the full
level of the conformance kit, lists of mutations, commands of tests/reliability, slow tests with Ray, and libraries of
tests/peers. ``build/nightly`` keeps the
table (`results.json`) and what each unit printed. Ctrl-C loses the units that run. A working tree with changes has no
commit: nothing counts as passed there. The seed of reliability is the day, so that every night draws other faults.

The exit status is 1 if a unit fails, and 2 if there was no time for all. Linux or macOS.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypedDict

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "build" / "nightly"
PATHS = ("envs", "baselines", "assets", "benchmarks", "docs/tools", "tests", "tests/tools")
TESTS = "(jitless or slow) and not (browser or learning or peers or ray)"
MARKS = ("mark.jitless", "mark.slow")
RELIABILITY = (
    "interrupts.py --interrupts 40 --seed {day}",
    "interrupts.py --first-calls 50",
    "forged_models.py",
    "mutated_files.py --files 1000 --seed {day}",
    "forged_keywords.py --share 0.3",
    "set_parameters.py",
    "full_disk.py",
    "killed_trainings.py --kills 4 --seed {day}",
    "planted_faults.py --level fast",
)
"""Commands of tests/reliability, as large as a night needs, the shortest first."""
PATIENCE_S = 5.0
NO_TESTS = 5
"""Exit status of pytest where no test is left."""


class Result(TypedDict):
    """The last run of a unit: ``passed``, ``failed`` or ``skipped`` (nothing in it can run here)."""

    result: str
    commit: str
    seconds: float


def units() -> dict[str, list[str]]:
    """The commands of all units, by name."""
    sys.path[:0] = [str(ROOT / name) for name in PATHS]
    from palaestra import registry

    pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m"]
    tests = {p.relative_to(ROOT / "tests").as_posix(): p for p in sorted((ROOT / "tests").rglob("test_*.py"))}
    marked = [n for n, p in tests.items() if any(mark in p.read_text(encoding="utf-8") for mark in MARKS)]
    lists = sorted(p.stem for p in (ROOT / "tests" / "mutations").glob("*.toml"))
    libraries = tomllib.loads((ROOT / "tests" / "peers" / "libraries.toml").read_text(encoding="utf-8"))
    reliability = {c: shlex.split(c.format(day=time.strftime("%Y%m%d"))) for c in RELIABILITY}

    def script(path: str, *arguments: str) -> list[str]:
        return [sys.executable, str(ROOT / "tests" / path), *arguments]

    return {
        **{f"tests/{name}": [*pytest, TESTS, str(tests[name])] for name in marked},
        **{f"full/{id}": [sys.executable, "-m", "palaestra", "check", id, "--level", "full"] for id in registry.ROWS},
        **{f"mutations/{name}": script("mutations/run.py", "--jobs", "1", "--match", f"^{name} ") for name in lists},
        **{f"reliability/{c}": script(f"reliability/{words[0]}", *words[1:]) for c, words in reliability.items()},
        "ray/slow": ["make", "test-ray", "MARK=ray and slow"],
        **{f"peers/{name}": script("peers/run.py", "--only", name) for name in libraries},
    }


def commit_of(folder: Path) -> str:
    """The commit that is checked out, with ``-dirty`` where files have been changed."""
    describe = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    return subprocess.run(describe, cwd=folder, capture_output=True, text=True, check=True).stdout.strip()


def read_results(folder: Path) -> dict[str, Result]:
    """The last results that a folder keeps, by name."""
    path = folder / "results.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def table(names: Sequence[str], results: Mapping[str, Result]) -> str:
    """A row a unit, those that failed last, and how many there are of each result."""
    nothing = Result(result="not run", commit="", seconds=0.0)
    rows = [(results.get(name, nothing), name) for name in names]
    rows.sort(key=lambda row: row[0]["result"] == "failed")
    lines = [f"{r['result']:8s} {r['commit']:18s} {r['seconds']:7.0f} s  {name}" for r, name in rows]
    counts = Counter(r["result"] for r, _ in rows)
    return "\n".join([*lines, ", ".join(f"{number} {result}" for result, number in counts.items())])


class Night:
    """Runs units, some at a time, and keeps each result at once.

    Attributes:
        folder: Of the results and of what the units print.
        commit: What is tried.
        results: The last ones, by name.
    """

    def __init__(self, folder: Path, commit: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.commit, self.results = folder, commit, read_results(folder)
        self._processes: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._is_over = False

    def is_done(self, name: str) -> bool:
        """Whether a unit has passed at this commit, or cannot run here."""
        known = self.results.get(name)
        is_clean = not self.commit.endswith("dirty")
        return is_clean and known is not None and known["commit"] == self.commit and known["result"] != "failed"

    def run_all(self, units: Mapping[str, Sequence[str]], jobs: int, minutes: float) -> list[str]:
        """Runs what is not done and begins none after so many minutes; returns the names of those it left."""
        end_s, left = time.monotonic() + 60.0 * minutes, list[str]()

        def run(name: str) -> None:
            if self._is_over or time.monotonic() >= end_s:
                left.append(name)
            else:
                self._run(name, units[name])

        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            try:
                for done in [pool.submit(run, name) for name in units if not self.is_done(name)]:
                    done.result()
            finally:
                self._is_over = True
                self._end_processes()
        return left

    def _run(self, name: str, command: Sequence[str]) -> None:
        log = self.folder / f"{name.replace('/', '.')}.log"
        paths = {"PYTHONPATH": os.pathsep.join(str(ROOT / name) for name in PATHS)}
        started_s = time.monotonic()
        with log.open("wb") as file:
            with self._lock:
                if self._is_over:
                    return
                process = subprocess.Popen(
                    command, cwd=ROOT, env={**os.environ, **paths}, stdout=file, stderr=file, start_new_session=True
                )
                self._processes.add(process)
            status = process.wait()
        with self._lock:
            self._processes.discard(process)
            if self._is_over:  # it was ended
                return
            said = b"".join(log.read_bytes().splitlines()[-1:])
            skipped = status == NO_TESTS or (not status and b" skipped" in said and b" passed" not in said)
            result = "skipped" if skipped else "failed" if status else "passed"
            seconds = round(time.monotonic() - started_s, 1)
            self.results[name] = Result(result=result, commit=self.commit, seconds=seconds)
            new = self.folder / "results.new"
            new.write_text(json.dumps(self.results, indent=1) + "\n", encoding="utf-8")
            new.replace(self.folder / "results.json")
        print(f"{result:8s} {seconds:7.1f} s  {name}", flush=True)
        if result == "failed":
            print(f"    {shlex.join(command)}\n    see {log}", flush=True)

    def _end_processes(self) -> None:
        """Interrupts what runs, so that it takes its files away, and kills what is there after `PATIENCE_S`."""
        with self._lock:
            processes = list(self._processes)
        for number, wait_s in ((signal.SIGINT, PATIENCE_S), (signal.SIGKILL, None)):
            for process in processes:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, number)
            for process in processes:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(wait_s)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs what has not passed at this commit; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[""], metavar="NAME", help="units whose names begin so")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no unit after so many")
    parser.add_argument("--jobs", type=int, default=1, help="units at the same time (default 1)")
    parser.add_argument("--list", action="store_true", help="print the table of last results and run none")
    args = parser.parse_args(argv)
    chosen = {name: command for name, command in units().items() if name.startswith(tuple(args.only))}
    if not chosen:
        parser.error(f"no unit begins with {' or '.join(args.only)}")
    if args.list:
        print(table(list(chosen), read_results(KEPT)))
        return 0
    night = Night(KEPT, commit_of(ROOT))
    try:
        left = night.run_all(chosen, args.jobs, args.minutes)
    except KeyboardInterrupt:
        return 130
    print(table(list(chosen), night.results))
    has_failed = any(night.results.get(name, {}).get("result") == "failed" for name in chosen)
    return 1 if has_failed else 2 if left else 0


if __name__ == "__main__":
    sys.exit(main())
