"""Shows the registered environments."""

from __future__ import annotations

import argparse

from palaestra import registry
from palaestra.cli.common import add_json, find_family, print_json
from palaestra.console import print_table

ABOUT = "the registered environments"
EXAMPLE = "palaestra list --family calibration"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See `palaestra.cli`."""
    parser.add_argument("--family", help="only this family")
    parser.add_argument("--all", action="store_true", help="every id; else one line for all presets of an environment")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """See `palaestra.cli`."""
    family = find_family(args.family) if args.family else None
    pages = [(page, rows) for page, rows in registry.pages() if family in (None, rows[0].family)]
    if args.json:
        reported = [
            {"id": r.id, "family": r.family, "page": page.name, "about": r.about, "keywords": dict(r.kwargs)}
            for page, rows in pages
            for r in rows
        ]
        print_json(reported)
    elif args.all:
        print_table([[r.id, r.family, r.about] for _, rows in pages for r in rows], ["id", "family", "about"])
    else:
        table = [[rows[0].id, str(len(rows)), rows[0].family, page.about] for page, rows in pages]
        print_table(table, ["id", "presets", "family", "about"])
        if any(len(rows) > 1 for _, rows in pages):
            print("\npalaestra list --all shows every preset.")
    return 0
