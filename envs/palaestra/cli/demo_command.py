"""Plays dogfights, or another game with --game, between good players and shows where the replays are.

The options are those of the demo, which comes with the baselines: pip install "palaestra[baselines,flight,render]".
"""

from __future__ import annotations

import argparse
import importlib.util

from palaestra.cli.common import load_method

ABOUT = "matches between good players to watch: dogfights, or another game with --game"
EXAMPLE = "palaestra demo"
HELP = (["-h"], ["--help"])
EXTRAS = "baselines,flight,render"
"""Optional parts of palaestra that the demo needs: policies, aircraft, pictures."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See `palaestra.cli`."""


def split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """No arguments of our own: all are passed on, ``--help`` too where tyro is installed."""
    own = int(arguments[:1] in HELP and importlib.util.find_spec("tyro") is None)
    return arguments[:own], arguments[own:]


def run(args: argparse.Namespace) -> int:
    """See `palaestra.cli`.

    Raises:
        ImportError: A package is missing that all its games need; gives the command that installs it.
    """
    for package in ("tyro", "PIL"):
        if importlib.util.find_spec(package) is None:
            raise ImportError(f'demo needs {package}, which is not installed: pip install "palaestra[{EXTRAS}]"')
    try:
        return load_method("demo", EXTRAS).main(args.passed_on) or 0
    finally:
        if args.passed_on[:1] in HELP:
            print(f"\nexample:\n  {EXAMPLE}")
