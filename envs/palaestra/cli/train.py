"""Trains by a method of an installed package (entry-point group palaestra.baselines).

What follows the method's name is passed on to it: palaestra train METHOD --help. Without a name: the installed methods.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
from importlib.metadata import entry_points
from pathlib import Path

from palaestra.cli.common import METHODS, load_method
from palaestra.console import print_table

ABOUT = "train by a method"
EXAMPLE = "palaestra train fm3q --env-id TeamPong --opponent tracker:0.8"
DEMO = "demo"
"""Entry of the group that is no method: `palaestra demo` runs it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See `palaestra.cli`."""
    parser.add_argument("method", metavar="METHOD", nargs="?", help="name of a method; the rest is passed on to it")


def split(arguments: list[str]) -> list[str]:
    """Words of our own: the name of the method, or ``--help``."""
    return arguments[:1]


def about(module: str) -> str:
    """First line of a module's docstring, read from its source: an import would take seconds."""
    try:
        spec = importlib.util.find_spec(module)
        source = Path(spec.origin).read_text(encoding="utf-8") if spec and spec.origin else ""
        return (ast.get_docstring(ast.parse(source)) or "").partition("\n")[0]
    except (ImportError, OSError, ValueError, SyntaxError):
        return ""


def run(args: argparse.Namespace) -> int:
    """See `palaestra.cli`.

    Raises:
        ValueError: No such method; suggests the near one.
    """
    if args.method is None:
        found = sorted((entry for entry in entry_points(group=METHODS) if entry.name != DEMO), key=lambda e: e.name)
        rows = [[entry.name, entry.value, about(entry.value)] for entry in found]
        print_table(rows or [["none", 'pip install "palaestra[baselines]"', ""]], ["method", "module", "about"])
        return 0
    module = load_method(args.method)
    if hasattr(module, "main"):
        return module.main(args.passed_on) or 0
    if not (hasattr(module, "Args") and hasattr(module, "train")):
        raise ValueError(f"the method {args.method!r} ({module.__name__}) has neither main nor Args and train")
    import tyro

    module.train(tyro.cli(module.Args, args=args.passed_on, prog=f"palaestra train {args.method}"))
    return 0
