"""The index of an evaluation in a headless Chromium: it lists, filters, sorts and shows matches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chromium
from chromium import FILTER_MS, LISTED_MS, Chromium
from palaestra.evaluation import MatchTable, evaluate
from palaestra.evaluation.match_pages import index_of

pytest.importorskip("PIL", reason="pictures need the extra palaestra[render]")
WHY_NOT = chromium.why_not()
pytestmark = [pytest.mark.browser, pytest.mark.skipif(WHY_NOT != "", reason=WHY_NOT)]

ID = "palaestra/TeamPong-v0"
MATCHES = 256
HOSTILE = "</script><img src=x onerror='window.hacked=1'>\u202e\"'{{data}}" + "long" * 2500


CLIPPED = """
return [...document.querySelectorAll("#list td, #list th, #list h1")]
  .filter((cell) => cell.scrollWidth > cell.clientWidth + 1).map((cell) => cell.textContent)
"""
"""Cells that do not show all of their words."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with Chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def table() -> MatchTable:
    return evaluate(ID, "tracker", "chaser", matches=MATCHES)


@pytest.fixture(scope="module")
def folder(table: MatchTable, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two pages of matches, and the index of many more."""
    folder = tmp_path_factory.mktemp("pages")
    evaluate(ID, "tracker", "chaser", matches=2, html=folder)
    (folder / "index.html").write_text(index_of(table), encoding="utf-8")
    return folder


@pytest.fixture
def index(browser: Chromium, folder: Path) -> Chromium:
    """The index, opened anew."""
    assert browser.open(folder / "index.html", ready="0") == ""
    return browser


def column(index: Chromium, number: int) -> list[str]:
    """A column of the list from top to bottom."""
    cells = "[...document.querySelectorAll(`#matches td:nth-child(${arguments[0]})`)]"
    return index.run(f"return {cells}.map((cell) => cell.textContent)", number)


def find(index: Chromium, selector: str) -> Any:
    return index.driver.find_element("css selector", selector)


def test_all_matches_are_listed_and_the_first_is_shown(index: Chromium, folder: Path, table: MatchTable):
    assert column(index, 1) == [str(k) for k in range(MATCHES)]
    assert column(index, 5) == [str(steps) for steps in table.results["steps"]]
    assert find(index, "#count").text == f"{MATCHES} of {MATCHES} matches"
    assert find(index, "#match").get_attribute("src") == (folder / "match_0000.html").resolve().as_uri()
    assert index.console() == []
    addresses = {url for url in index.requests() if not url.startswith(("data:", "blob:", "about:"))}
    assert addresses == {(folder / name).resolve().as_uri() for name in ("index.html", "match_0000.html")}


def test_a_list_of_many_matches_opens_and_filters_fast(index: Chromium):
    assert index.run(LISTED_MS) <= 1000
    assert index.run(FILTER_MS, "chaser") <= 50


def test_matches_are_filtered_by_words_and_by_lists(index: Chromium, table: MatchTable):
    words, results = find(index, "#filter"), table.results
    words.send_keys(" Chaser")
    has_word = (results["side"] == 1) | (results["outcome"] < 0)
    assert column(index, 1) == [str(k) for k in np.flatnonzero(has_word)]
    words.send_keys(" 1xyz")
    assert column(index, 1) == []
    assert find(index, "#count").text == f"0 of {MATCHES} matches"
    words.send_keys("\ue003" * 12)
    find(index, "#winner option[value='chaser']").click()
    assert column(index, 1) == [str(k) for k in np.flatnonzero(results["outcome"] < 0)]
    assert 0 < len(column(index, 1)) < MATCHES
    find(index, "#end option[value='point']").click()
    assert 0 < len(column(index, 1)) < MATCHES


def test_matches_are_sorted_by_a_click_and_by_a_key(index: Chromium, table: MatchTable):
    lengths = sorted(table.results["steps"].tolist())
    find(index, "#heads th:nth-child(5) button").click()
    assert [int(text) for text in column(index, 5)] == lengths
    find(index, "#heads th:nth-child(5) button").send_keys("\ue007")
    assert [int(text) for text in column(index, 5)] == lengths[::-1]
    orders = [head.get_attribute("aria-sort") for head in index.driver.find_elements("css selector", "#heads th")]
    assert orders == ["none"] * 4 + ["descending", "none"]


def test_a_match_is_shown_by_a_click_and_by_a_key(index: Chromium, folder: Path):
    for act, name in (
        (lambda row: row.click(), "match_0001.html"),
        (lambda row: row.send_keys("\ue007"), "match_0001.html"),
    ):
        assert index.open(folder / "index.html", ready="0") == ""
        row = index.driver.find_elements("css selector", "#matches tr")[1]
        act(row)
        assert find(index, "#match").get_attribute("src") == (folder / name).resolve().as_uri()
        assert row.get_attribute("aria-selected") == "true"
        assert index.run("return location.hash") == "#1"
    assert index.open(folder / "index.html", "#1", ready="0") == ""
    assert find(index, "#match").get_attribute("src") == (folder / "match_0001.html").resolve().as_uri()


def test_names_of_strangers_stay_text_within_their_cells(browser: Chromium, folder: Path):
    table = evaluate(ID, "tracker", "chaser", matches=4, names=(HOSTILE, "b"))
    (folder / "hostile.html").write_text(index_of(table), encoding="utf-8")
    assert browser.open(folder / "hostile.html", ready="0") == ""
    assert browser.run("return window.hacked") is None
    assert f"{HOSTILE[:60]}\u2026" in column(browser, 2)
    assert browser.run(CLIPPED) == []
    assert browser.run("return document.documentElement.scrollWidth <= innerWidth")
    assert browser.console() == []


@pytest.mark.parametrize("width", [1400, 390])
def test_nothing_is_clipped_and_wins_have_a_colour(width: int, browser: Chromium, folder: Path, table: MatchTable):
    names = ("runs/mappo/TeamPong-v0/seed_0/last.safetensors", "runs/a_name_of_20_letters.onnx")
    (folder / "long.html").write_text(index_of(replace(table, a=names[0], b=names[1])), encoding="utf-8")
    browser.driver.set_window_size(width, 900)
    try:
        assert browser.open(folder / "long.html", ready="0") == ""
        assert browser.run(CLIPPED) == []
        assert browser.run("return document.documentElement.scrollWidth <= innerWidth")
    finally:
        browser.driver.set_window_size(*chromium.SIZE)
    assert set(column(browser, 2)) == {"last", "a_name_of_20_letters"}
    rows = browser.driver.find_elements("css selector", "#matches tr")
    outcomes = [{"won": 1, "lost": -1, "": 0}[row.get_attribute("class") or ""] for row in rows[:20]]
    assert outcomes == table.results["outcome"][:20].tolist()


def test_arrow_keys_go_through_the_pages(browser: Chromium, folder: Path, table: MatchTable):
    (folder / "few.html").write_text(index_of(table, 2), encoding="utf-8")
    assert browser.open(folder / "few.html", ready="0") == ""
    assert find(browser, "#count").text == f"{MATCHES} of {MATCHES} matches, 2 with a page"
    for key, number in (("\ue015", 1), ("\ue015", 1), ("\ue013", 0)):
        browser.moves().send_keys(key).perform()
        assert browser.run("return location.hash") == f"#{number}"
