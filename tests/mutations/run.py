"""Mutation testing: breaks the code in one line at a time and expects a fast test to fail.

    python tests/mutations/run.py                       # every mutation, two at a time
    python tests/mutations/run.py --sample 10 --seed 3  # ten drawn at random
    python tests/mutations/run.py --match fm3q          # those whose list, file or reason matches
    python tests/mutations/run.py --list

Each ``*.toml`` beside this file holds a table for each mutated file, and in it a list for each test:

    ["pong.py"]                                # a file; with its folder where several have this name
    "teams/test_pong.py::test_x" = [           # the test in tests/ that must fail; "A & B": one of the two must
      ["step", "ball_x = -ball_x", "ball_x = ball_x", "the ball goes through a paddle"]]

An entry has four strings: the function, class or method ("" for the whole file), a text that stands exactly once in it,
the text that takes its place, and the behaviour that this breaks.

Each mutation is applied to a copy of the repository, never to the checkout. It is *caught* if its tests fail, and
*survives* if they pass. Before any mutation, all named tests run once on the unchanged copy and must pass. The exit
status is 1 if a mutation survives, 2 if an entry is wrong.
"""

from __future__ import annotations

import argparse
import ast
import concurrent.futures
import contextlib
import functools
import os
import queue
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
COPIED = ("envs", "baselines", "assets", "tests", "examples", "benchmarks", "docs")
MUTATED = ("envs", "baselines", "assets", "benchmarks", "docs/tools")
COPIED_FILES = ("pyproject.toml", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "Makefile")
CAUGHT, SURVIVED, TIMED_OUT, INVALID = "caught", "SURVIVED", "caught (time)", "INVALID"
TIME_LIMIT_S = 240.0
TESTS_FAILED = 1
"""Exit status of pytest where tests ran and at least one failed."""


@dataclass(frozen=True)
class Mutation:
    """One broken line.

    Attributes:
        group: Name of the TOML file, without its ending.
        file: Path in the repository.
        place: Function, class or method (``"Class.method"``) in the file, "" for the whole file.
        old: Text that stands exactly once in that place.
        new: Text that takes its place.
        tests: Node ids for pytest, one of which must fail.
        why: The behaviour that is broken.
    """

    group: str
    file: str
    place: str
    old: str
    new: str
    tests: tuple[str, ...]
    why: str

    def applied(self, source: str) -> str:
        """The text of the file after the mutation."""
        start, end, changed = self.changed(source)
        return source[:start] + changed + source[end:]

    def changed(self, source: str) -> tuple[int, int, str]:
        """Where the place begins and ends in the text of the file, and its text after the mutation.

        Raises:
            ValueError: The place or the old text does not stand exactly once in it, or nothing would change.
        """
        spans = places(source).get(self.place, [])
        if len(spans) != 1:
            raise ValueError(f"{self}: {self.place!r} stands {len(spans)} times in {self.file}, not once")
        start, end = spans[0]
        inside = source[start:end]
        if inside.count(self.old) != 1:
            where = f"in {self.place} of {self.file}" if self.place else f"in {self.file}"
            raise ValueError(
                f"{self}: the old text stands {inside.count(self.old)} times {where}, not once: {self.old!r}"
            )
        if self.old == self.new:
            raise ValueError(f"{self}: changes nothing: {self.old!r}")
        return start, end, inside.replace(self.old, self.new)

    def __str__(self) -> str:
        """The entry, for messages: table, file and behaviour."""
        return f"{self.group}.toml, {self.file.rpartition('/')[2]}, {self.why!r}"


@functools.lru_cache(maxsize=8)
def places(source: str) -> dict[str, list[tuple[int, int]]]:
    """First and last position of all functions, classes and methods of a source, and of the whole as ""."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = {"": [(0, len(source))]}

    def enter(node: ast.AST, within: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                first = min([child.lineno, *(d.lineno for d in child.decorator_list)])
                found.setdefault(within + child.name, []).append((starts[first - 1], starts[child.end_lineno or first]))
                if isinstance(child, ast.ClassDef):
                    enter(child, f"{within}{child.name}.")
            else:
                enter(child, within)

    enter(ast.parse(source), "")
    return found


@dataclass(frozen=True)
class Outcome:
    """Result of one mutation.

    Attributes:
        mutation: The mutation.
        verdict: `CAUGHT`, `SURVIVED`, `TIMED_OUT` or `INVALID`.
        wall_s: Time of its tests, in seconds.
        output: What pytest printed.
    """

    mutation: Mutation
    verdict: str
    wall_s: float
    output: str = ""

    def __str__(self) -> str:
        """One line for the terminal."""
        m = self.mutation
        return f"{self.verdict:14s} {self.wall_s:6.1f} s  {m.group:10s} {m.file.rpartition('/')[2]:24s} {m.why}"


def load_mutations(folder: Path = Path(__file__).parent) -> list[Mutation]:
    """All mutations of the TOML files of a folder, in the order of their names.

    Raises:
        ValueError: A file is unknown or one of several, or an entry has not four strings.
    """
    paths = [p for name in MUTATED for p in (REPOSITORY / name).rglob("*.py")]
    mutations = []
    for path in sorted(folder.glob("*.toml")):
        for file, lists in tomllib.loads(path.read_text(encoding="utf-8")).items():
            meant = [p.relative_to(REPOSITORY).as_posix() for p in paths if p.as_posix().endswith(f"/{file}")]
            if len(meant) != 1:
                raise ValueError(
                    f"{path.name}: {len(meant)} files are called {file!r}, not one: {', '.join(meant[:3])}"
                )
            for tests, entries in lists.items():
                named = tuple(f"tests/{test}" for test in tests.split(" & "))
                for entry in entries:
                    if len(entry) != 4:
                        raise ValueError(f"{path.name}, {file}: an entry wants function, old, new, why; is {entry}")
                    place, old, new, why = entry
                    mutations.append(Mutation(path.stem, meant[0], place, old, new, named, why))
    return mutations


def copy_repository(target: Path) -> None:
    """Copies what the tests read to an empty folder."""
    ignored = shutil.ignore_patterns("__pycache__", "*.pyc", ".pytest_cache")
    for name in COPIED:
        shutil.copytree(REPOSITORY / name, target / name, ignore=ignored)
    for name in COPIED_FILES:
        shutil.copyfile(REPOSITORY / name, target / name)


def run_tests(
    copy: Path, tests: Sequence[str], time_limit_s: float | None = TIME_LIMIT_S, variables: Mapping[str, str] = {}
) -> tuple[int, str]:
    """Runs tests in a copy.

    Args:
        copy: The copy.
        tests: Node ids and options for pytest.
        time_limit_s: Time after which they and all that they started are stopped; None for no limit.
        variables: Further environment variables.

    Returns:
        Exit status of pytest, -1 where the tests were stopped, and its output.
    """
    roots = [str(copy / name) for name in ("envs", "baselines", "assets", "tests")]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(roots),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # tests need no plugin; loading them takes up to a second
        **variables,
    }
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider", *tests]
    with (
        tempfile.TemporaryFile() as file,
        subprocess.Popen(
            command, cwd=copy, env=environment, stdout=file, stderr=file, start_new_session=True
        ) as process,
    ):
        try:
            status = process.wait(time_limit_s)
        except subprocess.TimeoutExpired:
            return -1, ""
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        file.seek(0)
        return status, file.read().decode(errors="replace")


def run_mutation(copy: Path, mutation: Mutation) -> Outcome:
    """Applies a mutation to a copy, runs its tests and takes it back."""
    path = copy / mutation.file
    source = path.read_text(encoding="utf-8")
    started_s = time.perf_counter()
    path.write_text(mutation.applied(source), encoding="utf-8")
    try:
        status, output = run_tests(copy, mutation.tests)
    finally:
        path.write_text(source, encoding="utf-8")
    verdicts = {0: SURVIVED, TESTS_FAILED: CAUGHT, -1: TIMED_OUT}
    return Outcome(mutation, verdicts.get(status, INVALID), time.perf_counter() - started_s, output)


def run_all(mutations: Sequence[Mutation], jobs: int, folder: Path) -> list[Outcome]:
    """Runs mutations, ``jobs`` at a time, each job in a copy of its own, and prints a line for each.

    Raises:
        RuntimeError: A named test fails without any mutation.
    """
    copies: queue.Queue[Path] = queue.Queue()
    for number in range(jobs):
        copy_repository(folder / f"copy_{number}")
        copies.put(folder / f"copy_{number}")

    def in_a_copy(mutation: Mutation) -> Outcome:
        copy = copies.get()
        try:
            outcome = run_mutation(copy, mutation)
        finally:
            copies.put(copy)
        print(outcome, flush=True)
        return outcome

    tests = sorted({test for mutation in mutations for test in mutation.tests})
    print(f"{len(tests)} tests on the unchanged code, then {len(mutations)} mutations", flush=True)
    status, output = run_tests(folder / "copy_0", tests, time_limit_s=None)
    if status:
        raise RuntimeError(f"tests fail without any mutation:\n{output}")
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(in_a_copy, mutations))


def report(outcomes: Sequence[Outcome]) -> int:
    """Prints counts by group and the output of invalid entries; returns the exit status."""
    for group in sorted({o.mutation.group for o in outcomes}):
        own = [o for o in outcomes if o.mutation.group == group]
        caught = sum(o.verdict in (CAUGHT, TIMED_OUT) for o in own)
        print(f"{group:12s} {caught} of {len(own)} caught")
    invalid = [o for o in outcomes if o.verdict == INVALID]
    for outcome in invalid:
        print(f"\n{outcome}\n{outcome.output}")
    return 2 if invalid else int(any(o.verdict == SURVIVED for o in outcomes))


def main(argv: Sequence[str] | None = None) -> int:
    """Runs mutations that the arguments choose; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--match", default="", help="only mutations whose group, file or reason has this pattern")
    parser.add_argument("--sample", type=int, metavar="N", help="only N of them, drawn at random")
    parser.add_argument("--seed", type=int, help="seed of the draw; printed if it is not given")
    parser.add_argument("--jobs", type=int, default=2, help="mutations at the same time (default 2)")
    parser.add_argument("--list", action="store_true", help="print the mutations and run none")
    args = parser.parse_args(argv)
    mutations = [m for m in load_mutations() if re.search(args.match, f"{m.group} {m.file} {m.why}")]
    if args.sample is not None:
        seed = random.SystemRandom().randrange(10**6) if args.seed is None else args.seed
        print(f"seed {seed}")
        mutations = random.Random(seed).sample(mutations, min(args.sample, len(mutations)))
    if not mutations:
        print(f"no mutation matches {args.match!r}", file=sys.stderr)
        return 2
    if args.list:
        for m in mutations:
            print(f"{m.group:10s} {m.file}: {m.why}")
        return 0
    with tempfile.TemporaryDirectory(prefix="palaestra-mutations-") as folder:
        return report(run_all(mutations, max(args.jobs, 1), Path(folder)))


if __name__ == "__main__":
    sys.exit(main())
