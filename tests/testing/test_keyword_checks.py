"""The check of undeclared keywords: factories of any author that import, open or run what a keyword names are seen."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest
from games import two_team

from palaestra import registry
from palaestra.core.contract import factories
from palaestra.core.contract.options import declared_words
from palaestra.game import Game, Option, any_text, with_options
from palaestra.testing.checks.keyword_checks import undeclared


def first(value: Any) -> Any:
    """The text in a value."""
    return next(iter(value.values() if isinstance(value, dict) else value)) if isinstance(value, dict | list) else value


REACHES: dict[str, Callable[[Any], Any]] = {
    "import": lambda text: importlib.import_module(str(text).partition(":")[0]),
    "import by a statement": lambda text: __import__(str(text)),
    "open": lambda text: open(text).close(),
    "open within a list": lambda text: open(text[0]).close() if isinstance(text, list) else None,
    "open within a mapping": lambda text: open(text["name"]).close() if isinstance(text, dict) else None,
    "open a path": lambda text: text.read_bytes() if isinstance(text, Path) else None,
    "open a suffix": lambda text: open(text).close() if str(text).endswith(".npz") else None,
    "list a folder": lambda text: os.listdir(first(text)),
    "look for": lambda text: os.path.exists(first(text)),
    "look for by pathlib": lambda text: Path(first(text)).is_dir(),
    "run": lambda text: subprocess.run([sys.executable, "-c", "", str(text)], check=True),
    "run in a shell": lambda text: os.system(f"true {text}"),
}


@pytest.mark.parametrize("name", REACHES)
def test_a_factory_that_reaches_what_an_undeclared_keyword_names_is_seen(name: str, tmp_path: Path):
    def factory(level: Any = None) -> Game:
        if level is not None:
            REACHES[name](level)
        raise ValueError("no game is made")

    folder = tmp_path / "palaestra_canary"
    folder.mkdir()
    found = next(undeclared(factory, {}, folder, is_thorough=False))
    assert found[0] == "level"
    level = Option("level", None, "which one", texts=())
    declared = with_options(level)(lambda options: factory(options.level))
    (folder / "again").mkdir()
    assert not list(undeclared(declared, {}, folder / "again", is_thorough=False))


def test_what_a_game_reaches_when_it_is_played_is_seen(tmp_path: Path):
    def factory(level: str = "") -> Game:
        from dataclasses import replace

        return replace(two_team.game(), model_digest=lambda: str(level and Path(level).exists()))

    (tmp_path / "palaestra_canary").mkdir()
    assert next(undeclared(factory, {}, tmp_path / "palaestra_canary", is_thorough=False))[0] == "level"


def test_what_only_another_word_makes_the_factory_reach_is_seen_at_full_level(tmp_path: Path):
    def factory(kind: Literal["plain", "learned"] = "plain", weights: str = "") -> Game:
        if kind == "learned" and weights:
            open(weights).close()
        raise ValueError("no game is made")

    for folder in ("palaestra_canary_1", "palaestra_canary_2"):
        (tmp_path / folder).mkdir()
    assert not list(undeclared(factory, {}, tmp_path / "palaestra_canary_1", is_thorough=False))
    assert next(undeclared(factory, {}, tmp_path / "palaestra_canary_2", is_thorough=True))[0] == "weights"


DECLARED = {
    "palaestra.games.ucav.pursuit": {"inner_loop"},
    "palaestra.games.ucav.dogfight": {"inner_loop"},
    "palaestra.games.skirmish.games": {"map", "maps", "ruleset"},
    "palaestra.games.pursuit.graph_pursuit": {"graph"},
    "palaestra.games.pursuit.confront": {"graph"},
    "palaestra.games.search.search_qa": {"world", "questions", "retriever"},
    **{f"palaestra.games.robots.quad_{name}": {"body"} for name in ("gate", "box", "shepherd", "sumo", "football")},
}
"""Keywords that name code, files, folders or models; some reach them only where an optional package is installed."""


def test_the_keywords_of_ours_that_name_files_are_declared():
    found: dict[str, set[str]] = {}
    for row in registry.ROWS.values():
        if row.id.startswith("palaestra/"):
            factory: Any = factories.load(row.factory)
            named = {name for name, words in declared_words(factory).items() if words is not any_text}
            found.setdefault(factory.__module__, set()).update(named)
    assert {module: names for module, names in found.items() if names} == DECLARED
