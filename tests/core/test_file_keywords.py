"""Keywords that name files: which texts of somebody else may be code or a path, and which may not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from palaestra.core.contract.file_keywords import LOOKS, may_name, parse_json, plain_file, refusal, with_contents
from palaestra.core.files import FileError, TextFile
from palaestra.game import any_text

PLAIN = ("3m", "smac-4.10", "grid:10x10", "dungeons:2x60:7", "mix:0.5", "", "red", "two words", "6x1", "a: b")
PATHS = (
    "a.json",
    "/etc/passwd",
    "..\\x",
    "//host/share",
    "\\\\host\\share",
    "a.edges",
    "~/x",
    "~",
    "..",
    "x/\n",
    "C:x",
)
CODE = (
    "antigravity:fly",
    "os:system",
    "a.b.c:D.e",
    "os.system",
    "file:///etc/passwd",
    "https://host/x.py",
    "org/model",
)


@pytest.mark.parametrize("text", PLAIN)
def test_a_plain_word_of_an_undeclared_keyword_names_nothing(text: str) -> None:
    assert not may_name(text, None)


@pytest.mark.parametrize("text", [*PATHS, *CODE])
def test_an_undeclared_text_that_looks_like_a_path_or_code_may_name_something(text: str) -> None:
    assert may_name(text, None)


@pytest.mark.parametrize("text", [*PLAIN, *PATHS, *CODE])
def test_only_its_own_words_name_nothing_where_a_keyword_is_declared(text: str) -> None:
    assert may_name(text, ("bm25",))
    assert not may_name(text, any_text)
    assert may_name(text, str.isdigit)
    assert not may_name("7", str.isdigit)
    assert not may_name("bm25", ("bm25",))


class Word(str):
    """A text of another class."""


def nested(value: Any, deep: int) -> Any:
    for _ in range(deep):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [
        *("mine.json", Word("mine.json"), Path("mine"), b"mine", object(), print, np.array(["mine.json"])),
        *(["3m", ["4m", {"a": "b.txt"}]], {"b.txt": 1}, ({"a": ("b:c",)},), nested(1, 17), nested(1, 900)),
    ],
)
def test_values_of_somebody_else_that_are_no_plain_data_are_refused(value: Any) -> None:
    for declared in ({}, {"level": ("3m", "4m")}):
        reason = refusal({"size": 3, "level": value}, declared)
        assert reason is not None
        assert "level" in reason
        assert reason.isprintable()
        assert len(reason) < 300


def test_numbers_words_and_content_of_somebody_else_are_taken() -> None:
    plain = {"a": None, "b": True, "c": [1, 2.5, [[3], {"d": "3m"}]], "e": np.arange(3), "f": np.float32(1)}
    assert (
        refusal({**plain, "map": TextFile("mine.json", "{}"), "prompt": "a/b.c"}, {"map": (), "prompt": any_text})
        is None
    )
    assert "not declared to take one" in str(refusal({"map": TextFile("mine.json", "{}")}, {}))
    assert "not declared to take one" in str(refusal({"map": TextFile("mine.json", "{}")}, {"map": any_text}))


@pytest.mark.parametrize("keywords", ["level", ["level"], None, {"a b": 1}, {"../x": 1}, {3: 1}, {"": 1}])
def test_keywords_have_names(keywords: Any) -> None:
    assert refusal(keywords, {}) is not None


def test_content_takes_the_place_of_paths_by_the_declaration(tmp_path: Path) -> None:
    city, notes = tmp_path / "city", tmp_path / "notes.txt"
    for file in (city, notes):
        file.write_text("a b", encoding="utf-8")
    given = {"graph": str(city), "prompt": str(notes), "other": [str(notes)], "word": "city"}
    held = with_contents(given, {"graph": (), "prompt": any_text, "word": ("city",)})
    assert held == {**given, "graph": TextFile("city", "a b"), "other": [TextFile("notes.txt", "a b")]}


# -- as JSON -----------------------------------------------------------------------------------------------------------


def test_content_is_read_as_it_was_written() -> None:
    city = TextFile("city.edges", "a b")
    assert parse_json(json.dumps({"graph": [city, 1]}, default=plain_file)) == {"graph": [city, 1]}


@pytest.mark.parametrize("name", ["../city.edges", "/etc/city.edges", "a\\\\b", "C:city", ""])
def test_content_has_a_name_and_no_path(name: str) -> None:
    text = json.dumps(TextFile("city", "a b"), default=plain_file).replace("city", name)
    if name:
        with pytest.raises(FileError, match="is a path"):
            parse_json(text)
    else:
        assert parse_json(text).name == ""


def test_a_name_that_stands_twice_is_refused_in_no_time() -> None:
    many = ",".join(f'"{k}": 1' for k in range(50_000))
    with pytest.raises(FileError, match="'map' stands twice"):
        parse_json('{"a": [{"map": "3m", ' + many + ', "map": "mine.json"}]}')


def test_the_look_of_a_long_text_is_seen_in_no_time() -> None:
    for text in ("a." * 500_000 + "!", "a:" * 500_000, "a" * 1_000_000 + ":!", " " * 1_000_000):
        LOOKS.fullmatch(text)
