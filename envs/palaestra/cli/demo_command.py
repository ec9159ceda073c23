"""Plays a match of each kind between bundled policies and shows where the replays are.

What follows is passed on to the demo, which comes with the baselines: python -m palaestra_baselines.demo --help
"""

from __future__ import annotations

import argparse

from palaestra.cli.common import load_method

ABOUT = "a match of each kind between bundled policies"
EXAMPLE = "palaestra demo"
EXTRAS = "baselines,flight,render"
"""Optional parts of palaestra that the demo needs: policies, aircraft, pictures."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See `palaestra.cli`."""


def split(words: list[str]) -> list[str]:
    """Words of our own: the rest is passed on."""
    return words[:1] if words[:1] in (["-h"], ["--help"]) else []


def run(args: argparse.Namespace) -> int:
    """See `palaestra.cli`."""
    return load_method("demo", EXTRAS).main(args.passed_on) or 0
