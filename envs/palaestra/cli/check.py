"""Puts environments to the test: everything that palaestra promises of each of them (palaestra.testing)."""

from __future__ import annotations

import argparse

from palaestra import registry
from palaestra.cli.common import add_id, add_json, add_keywords, find_id, keywords_of, print_json
from palaestra.cli.progress import Progress

ABOUT = "the conformance test of an environment, yours too"
EXAMPLE = "palaestra check CartPole --level full"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See `palaestra.cli`."""
    add_id(parser, optional=True)
    parser.add_argument("--all", action="store_true", help="every registered environment")
    parser.add_argument("--level", choices=("fast", "full"), default="fast", help="seconds, or minutes (default fast)")
    parser.add_argument("--only", metavar="CHECK", nargs="+", help="only these checks")
    parser.add_argument("--skip", metavar="CHECK", nargs="+", default=[], help="all but these checks")
    add_keywords(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """See `palaestra.cli`.

    Raises:
        ValueError: Neither an id nor ``--all``, or both.
    """
    from palaestra import testing

    if (args.id is None) != args.all:
        raise ValueError("say what to check: an ID, or --all")
    keywords = keywords_of(args)
    if args.all and keywords:
        raise ValueError("--set goes with an ID, not with --all")
    reports = []
    with Progress("environments") as tell:
        ids = list(registry.ROWS) if args.all else [find_id(args.id)]
        for done, id in enumerate(ids):
            tell(done, len(ids), id)
            if args.all:
                report = testing.check_all(args.level, ids=[id], only=args.only, skip=args.skip)[0]
            else:
                report = testing.check(id, args.level, only=args.only, skip=args.skip, **keywords)
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
                    "checks": [
                        {"name": r.name, "status": r.status, "seconds": r.seconds, "message": r.message}
                        for r in report.results
                    ],
                }
                for report in reports
            ]
        )
    return 0 if all(report.passed for report in reports) else 1
