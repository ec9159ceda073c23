"""Trains by a method of an installed package (entry-point group palaestra.baselines).

What follows the method's name is passed on to it: palaestra train METHOD --help. Without a name: the installed methods.
"""

from __future__ import annotations

import argparse
from importlib.metadata import entry_points

from palaestra.cli.common import METHODS, load_method
from palaestra.console import print_table

ABOUT = "train by a method"
EXAMPLE = "palaestra train ppo_tracking --help"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See `palaestra.cli`."""
    parser.add_argument("method", metavar="METHOD", nargs="?", help="name of a method; the rest is passed on to it")


def split(words: list[str]) -> list[str]:
    """Words of our own: the name of the method, or ``--help``."""
    return words[:1]


def run(args: argparse.Namespace) -> int:
    """See `palaestra.cli`.

    Raises:
        ValueError: No such method; suggests the near one.
    """
    if args.method is None:
        found = sorted(entry_points(group=METHODS), key=lambda entry: entry.name)
        rows = [[entry.name, entry.value] for entry in found] or [["none", 'pip install "palaestra[baselines]"']]
        print_table(rows, ["method", "module"])
        return 0
    module = load_method(args.method)
    if hasattr(module, "main"):
        return module.main(args.passed_on) or 0
    if not (hasattr(module, "Args") and hasattr(module, "train")):
        raise ValueError(f"the method {args.method!r} ({module.__name__}) has neither main nor Args and train")
    import tyro

    module.train(tyro.cli(module.Args, args=args.passed_on, prog=f"palaestra train {args.method}"))
    return 0
