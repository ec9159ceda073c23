"""What several commands share: ids, keywords, entry points, JSON."""

from __future__ import annotations

import argparse
import ast
import difflib
import importlib
import json
import math
from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from palaestra import registry

METHODS = "palaestra.baselines"
"""Entry-point group of the methods."""


def near(word: str, known: Iterable[str]) -> str:
    """``", did you mean 'x'?"`` where something known is near, else nothing."""
    found = difflib.get_close_matches(word, list(known), 1, 0.5)
    return f", did you mean {found[0]!r}?" if found else ""


def find_id(text: str) -> str:
    """The registered id that a word stands for.

    ``CartPole`` and ``CartPole-v0`` are short for ``palaestra/CartPole-v0``; ``package.module:namespace/Name-v0``
    imports the module first, which registers its ids.

    Raises:
        KeyError: No such id, or several; suggests the near one.
    """
    module, _, id = text.rpartition(":")
    if module:
        importlib.import_module(module)
    if id in registry.ROWS:
        return id
    short = {row: (row.split("/")[-1], row.split("/")[-1].rpartition("-v")[0]) for row in registry.ROWS}
    matches = [row for row, names in short.items() if id in names]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise KeyError(f"{id!r} may be {' or '.join(matches)}")
    names = {name: row for row, pair in short.items() for name in (*pair, row)}
    found = difflib.get_close_matches(id, names, 1, 0.5)
    hint = f", did you mean {names[found[0]]!r}?" if found else ""
    raise KeyError(f"no environment {id!r}{hint} (palaestra list shows all)")


def find_family(name: str) -> str:
    """The family itself.

    Raises:
        ValueError: No such family; suggests the near one.
    """
    families = sorted({row.family for row in registry.ROWS.values()})
    if name not in families:
        raise ValueError(f"no family {name!r}{near(name, families)} (there are: {', '.join(families)})")
    return name


def find_method(name: str) -> EntryPoint:
    """The installed method of a name.

    Raises:
        ValueError: None is installed; suggests the near one, or what to install.
    """
    methods = {entry.name: entry for entry in entry_points(group=METHODS)}
    if name not in methods:
        there = f"installed are: {', '.join(sorted(methods))}" if methods else "none is installed"
        raise ValueError(f'no method {name!r}{near(name, methods)} ({there}; pip install "palaestra[baselines]")')
    return methods[name]


def load_method(name: str) -> Any:
    """The module of a method.

    Raises:
        ValueError: None is installed.
        ImportError: It needs a package that is missing; names the command that installs it.
    """
    try:
        return find_method(name).load()
    except ModuleNotFoundError as error:
        message = f'{name} needs {error.name}, which is not installed: pip install "palaestra[baselines]"'
        raise ImportError(message) from error


def add_id(parser: argparse.ArgumentParser, optional: bool = False) -> None:
    """The positional argument ID."""
    about = "id of an environment; CartPole is short for palaestra/CartPole-v0, module:id imports a module first"
    parser.add_argument("id", metavar="ID", nargs="?" if optional else None, help=about)


def add_keywords(parser: argparse.ArgumentParser) -> None:
    """The option ``--set name=value``."""
    parser.add_argument(
        "--set",
        dest="keywords",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="keyword of the environment, as often as needed (palaestra info ID shows them)",
    )


def keywords_of(args: argparse.Namespace) -> dict[str, Any]:
    """What ``--set`` has collected: numbers, lists, True, False and None as in Python, else text.

    Raises:
        ValueError: Not of the form NAME=VALUE.
    """
    keywords = {}
    for text in args.keywords:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise ValueError(f"--set takes NAME=VALUE, got {text!r}")
        try:
            keywords[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            keywords[name] = value
    return keywords


def add_json(parser: argparse.ArgumentParser) -> None:
    """The option ``--json``."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def print_json(value: Any) -> None:
    """Prints JSON that every reader takes: what is not finite becomes null."""
    print(json.dumps(_finite(value), indent=2, allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(member) for member in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_table(rows: list[list[str]], headings: list[str]) -> None:
    """Prints columns side by side; numbers to the right."""
    table = [headings, *rows]
    widths = [max(len(row[k]) for row in table) for k in range(len(headings))]
    right = [all(_is_number(row[k]) for row in rows) for k in range(len(headings))]
    for row in table:
        cells = (cell.rjust(w) if r else cell.ljust(w) for cell, w, r in zip(row, widths, right, strict=True))
        print("  ".join(cells).rstrip())


def _is_number(text: str) -> bool:
    return bool(text) and text.lstrip("+-").replace(",", "").replace(".", "", 1).rstrip("x%").isdigit()
