"""Trains by a method of an installed package (entry-point group palaestra.baselines).

What follows the method's name is passed on to it: palaestra train METHOD --help. Without a name: the installed methods.

--seeds trains several seeds, each in its own folder. Seeds that were begun are continued from their checkpoints, those
that are complete are skipped: the same command goes on where it was. On a Ray cluster all machines must share the file
system of the runs (--directory of the method); a seed whose process or machine died is continued on another one, which
needs --trust-checkpoint where the machines do not share the user's home.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import itertools
import re
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from palaestra.cli.common import METHODS, load_method, positive_count
from palaestra.cli.typed_arguments import read_arguments
from palaestra.console import print_table
from palaestra.core.contract import factories

ABOUT = "train by a method"
EXAMPLE = "palaestra train fm3q --env-id TeamPong --opponent tracker:0.8"
DEMO = "demo"
"""Entry of the group that is no method: `palaestra demo` runs it."""
OWN = ("--seeds", "--at-once", "--ray")
"""Options that are not the method's."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See `palaestra.cli`."""
    parser.add_argument("method", metavar="METHOD", nargs="?", help="name of a method; the rest is passed on to it")
    parser.add_argument("--seeds", type=seed_range, metavar="SEEDS", help="train several seeds: 0-7, or 0,2,5")
    parser.add_argument(
        "--at-once",
        type=positive_count,
        metavar="N",
        default=0,
        help="seeds at the same time (default: one, on a cluster as many as it has processors)",
    )
    parser.add_argument(
        "--ray",
        metavar="ADDRESS",
        default="",
        help="train the seeds on a Ray cluster: auto, ip:6379, or local for one on this machine",
    )


def split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Words of our own, the name of the method or ``--help`` first, and what is passed on to the method."""
    own, others, words = [], [], iter(arguments)
    for word in words:
        if word.partition("=")[0] in OWN:
            own += [word, *([] if "=" in word else itertools.islice(words, 1))]
        else:
            others.append(word)
    return others[:1] + own, others[1:]


def seed_range(text: str) -> list[int]:
    """An option's seeds: numbers and ranges, their ends included, with commas between them.

    Raises:
        argparse.ArgumentTypeError: It has another form.
    """
    if not re.fullmatch(r"\d+(-\d+)?(,\d+(-\d+)?)*", text):
        raise argparse.ArgumentTypeError(f"must be like 0-7 or 0,2,5, got {text!r}")
    seeds: dict[int, None] = {}
    for part in text.split(","):
        first, _, last = part.partition("-")
        if int(last or first) < int(first):
            raise argparse.ArgumentTypeError(f"{part!r} ends before it begins, write {last}-{first}")
        seeds |= dict.fromkeys(range(int(first), int(last or first) + 1))
    return list(seeds)


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
        ValueError: No such method; suggests the near one. Options that do not go together.
    """
    if not args.seeds and (args.at_once or args.ray):
        raise ValueError(f"{'--ray' if args.ray else '--at-once'} goes with --seeds")
    if args.method is None:
        found = sorted((entry for entry in entry_points(group=METHODS) if entry.name != DEMO), key=lambda e: e.name)
        rows = [[entry.name, entry.value, about(entry.value)] for entry in found]
        print_table(rows or [["none", 'pip install "palaestra[baselines]"', ""]], ["method", "module", "about"])
        return 0
    module = load_method(args.method)
    if args.seeds:
        _train_seeds(module, args)
        return 0
    if hasattr(module, "main"):
        return module.main(args.passed_on) or 0
    if not (hasattr(module, "Args") and hasattr(module, "train")):
        raise ValueError(f"the method {args.method!r} ({module.__name__}) has neither main nor Args and train")
    module.train(read_arguments(module.Args, args.passed_on, f"palaestra train {args.method}"))
    return 0


def _train_seeds(module: Any, args: argparse.Namespace) -> None:
    train = getattr(getattr(module, "Args", None), "SEEDS_BY", None)
    if train is None or not hasattr(module, "train"):
        raise ValueError(
            f"the method {args.method!r} ({module.__name__}) trains no --seeds: they need its train, and an Args that "
            "inherits from RunArgs"
        )
    if any(word.partition("=")[0] == "--seed" for word in args.passed_on):
        raise ValueError("give --seed or --seeds, not both")
    factories.load(train)(args.method, module, args.passed_on, args.seeds, args.at_once, args.ray)
