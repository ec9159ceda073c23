"""What programs on the console share: ids by their short names, tables."""

from __future__ import annotations

import difflib
import importlib
import os
from collections.abc import Iterable
from pathlib import Path

from palaestra import registry
from palaestra.core.contract.keywords import nearest

PROGRESS_FILE = "PALAESTRA_PROGRESS_FILE"
"""Environment variable that names a file in which a child process writes what it does: its parent reads it when the
child has crashed."""


def tell(what: str) -> None:
    """Writes what is done now, if the parent asks for it."""
    if name := os.environ.get(PROGRESS_FILE):
        Path(name).write_text(what, encoding="utf-8")


def near(name: str, known: Iterable[str]) -> str:
    """``", did you mean 'x'?"`` where something known is near, else nothing."""
    found = nearest(name, known)
    return "" if found is None else f", did you mean {found!r}?"


def find_id(text: str) -> str:
    """The registered id of a text: an id, or its short name.

    ``CartPole`` and ``CartPole-v0`` are short for ``palaestra/CartPole-v0``; without a version the newest one is meant.
    ``package.module:namespace/Name-v0`` imports the module first, which registers its ids.

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
    if len({row.rpartition("-v")[0] for row in matches}) == 1:
        return max(matches, key=lambda row: int(row.rpartition("-v")[2]))
    if matches:
        raise KeyError(f"{id!r} may be {' or '.join(matches)}")
    names = {name: row for row, pair in short.items() for name in (*pair, row)}
    found = difflib.get_close_matches(id, names, 1, 0.5)
    hint = f", did you mean {names[found[0]]!r}?" if found else ""
    raise KeyError(f"no environment {id!r}{hint} (palaestra list shows all)")


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
