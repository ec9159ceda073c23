"""Maps and rulesets of anybody are refused at once, by their file, in words that a terminal can show."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import palaestra_assets
from palaestra.core.files import FileError
from palaestra.games.skirmish import games

AT_ONCE_S = 2.0
"""CPU time that a refusal may take on a slow machine."""
ESCAPES = "\x1b[2J\u202e"


def changed(file: str, **entries: Any) -> str:
    return json.dumps({**json.loads(palaestra_assets.path(file).read_text(encoding="utf-8")), **entries})


MAP, RULES = "skirmish/maps/3m.json", "skirmish/rulesets/smac-4.10.json"
CROWD = {"groups": [{"unit": "marine", "count": 64, "at": [9, 16]}], "order": {"kind": "none", "points": []}}
TEXTS: dict[str, Callable[[], str]] = {
    "deep": lambda: "[" * 200_000,
    "deep objects": lambda: '{"a":' * 100_000,
    "long number": lambda: '{"format": ' + "9" * 100_000 + "}",
    "number": lambda: changed(MAP, limit=10**400),
    "array": lambda: changed(MAP, size=[0] * 200_000),
    "many keys, the last one twice": lambda: "{" + ",".join(f'"{k}":0' for k in (*range(80_000), 79_999)) + "}",
    "long key": lambda: json.dumps({"x" * 1_000_000: 1}),
    "long name": lambda: changed(MAP, name="x" * 900_000),
    "unit": lambda: changed(MAP, blue={**CROWD, "groups": [{"unit": ESCAPES * 9999, "count": 1, "at": [9, 16]}]}),
    "ruleset": lambda: changed(MAP, ruleset=ESCAPES * 9999),
    "crowd": lambda: changed(MAP, blue=CROWD),
    "large": lambda: " " * 2_000_000,
}


def refused(make: Callable[[], Any]) -> None:
    began = time.process_time()
    with pytest.raises(FileError, match=r"evil\.json") as refusal:
        make()
    assert time.process_time() - began < AT_ONCE_S
    assert str(refusal.value).isprintable()
    assert len(str(refusal.value)) < 600


@pytest.mark.check
@pytest.mark.parametrize("name", TEXTS)
def test_a_map_of_anybody_is_refused_at_once_and_named(tmp_path: Path, name: str):
    path = tmp_path / "evil.json"
    path.write_text(TEXTS[name](), encoding="utf-8")
    refused(lambda: games.battle(path))
    refused(lambda: games.battle("3m", ruleset=str(path)))


def make_sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(20 * 10**9)


@pytest.mark.parametrize("make", [make_sparse, Path.mkdir, *([os.mkfifo] if hasattr(os, "mkfifo") else [])])
def test_what_is_no_file_or_a_vast_one_is_not_read(tmp_path: Path, make: Callable[[Path], None]):
    make(tmp_path / "evil.json")
    refused(lambda: games.battle(tmp_path / "evil.json"))
    refused(lambda: games.duel("3m", ruleset=str(tmp_path / "evil.json")))
