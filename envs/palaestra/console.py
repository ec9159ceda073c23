"""What programs on the console share: ids by their short names, tables."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterable

from palaestra import registry


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
