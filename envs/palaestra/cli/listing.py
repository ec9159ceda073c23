"""Shows the registered environments."""

from __future__ import annotations

import argparse

from palaestra import registry
from palaestra.cli.common import add_json, find_family, print_json, print_table

ABOUT = "the registered environments"
EXAMPLE = "palaestra list --family calibration"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See `palaestra.cli`."""
    parser.add_argument("--family", help="only this family")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """See `palaestra.cli`."""
    family = find_family(args.family) if args.family else None
    rows = [row for row in registry.ROWS.values() if family in (None, row.family)]
    if args.json:
        print_json([{"id": r.id, "family": r.family, "about": r.about, "keywords": dict(r.kwargs)} for r in rows])
    else:
        print_table([[r.id, r.family, r.about] for r in rows], ["id", "family", "about"])
    return 0
