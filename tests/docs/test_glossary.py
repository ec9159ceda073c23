"""The glossary has one entry for each class that users meet, and one sense for each term."""

import importlib
import inspect
import re
from pathlib import Path

from palaestra import exact, registry

GLOSSARY = Path(__file__).parents[2] / "docs" / "glossary.md"
ROOMS = ("game", "players", "evaluation", "replay", "wrappers", "exact", "testing")
"""Packages whose `__all__` is public."""
INTERFACES = (
    "palaestra.core.faces.aec_env",
    "palaestra.core.faces.gym_env",
    "palaestra.core.faces.parallel_env",
    "palaestra.core.faces.vector_env",
    "palaestra.core.run.opponents",
    "palaestra.core.run.simulation",
    "palaestra.core.run.snapshot",
)
"""Modules of docs/api/interfaces.md and docs/api/players.md: the classes that they define are public."""
STANDARD = {"Array": "numba's array type, for declarations of `palaestra.game.native` alone"}
"""Classes without an entry: name -> why the name needs none."""


def entries() -> list[str]:
    return re.findall(r"^\| (.+?) \|", GLOSSARY.read_text(encoding="utf-8"), re.M)


def public_classes() -> set[str]:
    rooms = [importlib.import_module(f"palaestra.{room}") for room in ROOMS]
    named = [(room, name) for room in rooms for name in room.__all__]
    named += [(exact, name) for name in registry.offers("exact")]
    found = {name for room, name in named if inspect.isclass(getattr(room, name))}
    for module in map(importlib.import_module, INTERFACES):
        members = inspect.getmembers(module, inspect.isclass)
        found |= {n for n, cls in members if cls.__module__ == module.__name__ and not n.startswith("_")}
    return found


def test_each_class_that_users_meet_has_an_entry():
    terms = {entry.strip("`") for entry in entries() if entry.startswith("`")}
    assert public_classes() - terms == set(STANDARD)


def test_each_entry_of_a_class_names_a_public_class():
    terms = {entry.strip("`") for entry in entries() if entry.startswith("`")}
    assert terms <= public_classes()


def test_each_term_has_one_entry():
    terms = entries()
    assert len(terms) == len(set(terms))


def test_tables_are_in_alphabetical_order():
    for table in GLOSSARY.read_text(encoding="utf-8").split("|---|---|\n")[1:]:
        rows = [row.lower().replace("`", "") for row in table.split("\n\n")[0].splitlines()]
        assert rows == sorted(rows)
