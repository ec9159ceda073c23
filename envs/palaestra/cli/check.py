"""Checks that environments keep all of palaestra's promises (palaestra.testing)."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from palaestra import registry
from palaestra.cli.common import add_id, add_json, add_keywords, keywords_of, print_json
from palaestra.cli.progress_bar import Progress
from palaestra.console import PROGRESS_FILE, find_id

ABOUT = "the conformance test of an environment, yours too"
EXAMPLE = "palaestra check CartPole --level full"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See `palaestra.cli`."""
    add_id(parser, optional=True)
    parser.add_argument("--all", action="store_true", help="every registered environment")
    parser.add_argument(
        "--level",
        choices=("preset", "fast", "full"),
        default="fast",
        help="half a second, seconds (default) or minutes",
    )
    parser.add_argument("--only", metavar="CHECK", nargs="+", help="only these checks")
    parser.add_argument(
        "--seed",
        type=int,
        default=0,
        metavar="K",
        help="seed of the numbers that the checks draw, such as lanes and seeds (default 0); a failure names it",
    )
    parser.add_argument("--skip", metavar="CHECK", nargs="+", default=[], help="all but these checks")
    add_keywords(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """See `palaestra.cli`.

    Raises:
        ValueError: Neither an id nor ``--all``, or both.
    """
    if (args.id is None) != args.all:
        raise ValueError("give what to check: an ID, or --all")
    keywords = keywords_of(args)
    if args.all and keywords:
        raise ValueError("--set goes with an ID, not with --all")
    if args.is_program and PROGRESS_FILE not in os.environ:
        return run_in_child(sys.argv[1:])
    from palaestra import testing

    reports = []
    with Progress("environments") as report_progress:
        ids = list(registry.ROWS) if args.all else [find_id(args.id)]
        for done, id in enumerate(ids):
            report_progress(done, len(ids), id)
            if args.all:
                report = testing.check_all(args.level, ids=[id], only=args.only, skip=args.skip, seed=args.seed)[0]
            else:
                report = testing.check(id, args.level, only=args.only, skip=args.skip, seed=args.seed, **keywords)
            reports.append(report)
            if not args.json:
                print(report, flush=True)
    if args.json:
        print_json(
            [
                {
                    "id": report.id,
                    "level": report.level,
                    "passed": report.passed,
                    "seconds": report.seconds,
                    "compile_seconds": report.compile_seconds,
                    "cpu_seconds": report.cpu_seconds,
                    "checks": [
                        {"name": r.name, "status": r.status, "seconds": r.seconds, "message": r.message}
                        for r in report.results
                    ],
                }
                for report in reports
            ]
        )
    return 0 if all(report.passed for report in reports) else 1


def run_in_child(arguments: Sequence[str]) -> int:
    """Runs this command in another process, which rules that write outside their memory may kill.

    Args:
        arguments: Of the command line.

    Returns:
        Exit code of the command; 1 if the process was killed; prints what it did then.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "progress"
        file.touch()
        path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
        environment = {**os.environ, PROGRESS_FILE: str(file), "PYTHONPATH": path}
        code = subprocess.run([sys.executable, "-m", "palaestra", *arguments], env=environment, check=False).returncode
        if code in (0, 1, 2, 130):
            return code
        progress = file.read_text(encoding="utf-8") or "nothing yet"
    signal_name = next((s.name for s in signal.Signals if s == -code), f"exit code {code}")
    print(
        f"palaestra: the process that checks was killed ({signal_name}). It ran {progress}\n"
        "Compiled rules may have written outside an array. NUMBA_DISABLE_JIT=1 palaestra check ... runs them as plain "
        "Python, which checks every index and names the line",
        file=sys.stderr,
    )
    return 1
