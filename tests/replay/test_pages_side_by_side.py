"""Two matches on one page in a headless Chromium: one clock moves both, from the keys and the slider of each."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import chromium
from chromium import Chromium
from palaestra.replay import Replay, record, show, to_html
from palaestra.replay.notebook import Shown

pytest.importorskip("PIL", reason="pictures need the extra palaestra[render]")
WHY_NOT = chromium.why_not()
pytestmark = [pytest.mark.browser, pytest.mark.skipif(WHY_NOT != "", reason=WHY_NOT)]

OPENED = "Promise.all([...document.querySelectorAll('iframe')].map((f) => f.contentWindow.palaestraMatch.ready))"
END, HOME, RIGHT = "\ue010", "\ue011", "\ue014"


@pytest.fixture(scope="module")
def matches() -> list[Replay]:
    """One seed by two policies: the second match is longer."""
    by_script = record("palaestra/TeamTag-v0", {"red": "default", "blue": "random"}, seed=5, horizon=20)
    return [by_script, record("palaestra/TeamTag-v0", {"red": "random", "blue": "random"}, seed=5, horizon=40)]


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with Chromium() as browser:
        yield browser


class Pair:
    """Two pages of matches beside each other."""

    def __init__(self, browser: Chromium) -> None:
        self.driver = browser.driver
        self.frames = self.driver.find_elements("css selector", "iframe")

    def read(self, number: int, script: str) -> Any:
        """What a script in one of the pages returns."""
        self.driver.switch_to.default_content()
        self.driver.switch_to.frame(self.frames[number])
        return self.driver.execute_script(f"return {script}")

    def places(self) -> list[int]:
        return [self.read(number, "palaestraMatch.frame") for number in range(len(self.frames))]

    def playing(self) -> list[bool]:
        label = "document.getElementById('play').ariaLabel"
        return [self.read(number, label) == "Pause" for number in range(len(self.frames))]

    def press(self, number: int, key: str) -> None:
        """Presses a key in one of the pages."""
        self.read(number, "null")
        self.driver.find_element("css selector", "#view").click()
        self.driver.find_element("css selector", "body").send_keys(key)


def wait_for(what: Callable[[], Any]) -> None:
    end = time.monotonic() + 5.0
    while not what():
        assert time.monotonic() < end, "the pages did not do it"
        time.sleep(0.02)


@pytest.fixture
def pair(browser: Chromium, matches: list[Replay], tmp_path: Path) -> Pair:
    to_html(matches, tmp_path / "both.html")
    assert browser.open(tmp_path / "both.html", "#t=3", OPENED) == ""
    pair = Pair(browser)
    wait_for(lambda: pair.places() == [3, 3])
    return pair


def test_both_pages_are_named_and_ask_for_nothing(pair: Pair, browser: Chromium):
    pair.driver.switch_to.default_content()
    first, _, second = browser.driver.title.partition(" | ")
    assert "default (red)" in first
    assert "default (red)" not in second
    assert [pair.read(k, "document.title") for k in (0, 1)] == [first, second]
    assert browser.console() == []
    assert {url.partition(":")[0] for url in browser.requests()} <= {"file", "data", "blob", "about"}


def test_keys_in_each_page_move_both(pair: Pair):
    pair.press(0, RIGHT)
    wait_for(lambda: pair.places() == [4, 4])
    pair.press(1, RIGHT)
    wait_for(lambda: pair.places() == [5, 5])
    pair.press(0, END)
    wait_for(lambda: pair.places() == [20, 40])  # the shorter match stays at its end
    pair.press(0, HOME)
    wait_for(lambda: pair.places() == [0, 0])


def test_the_slider_of_each_page_moves_both(pair: Pair):
    for number, value, places in ((0, 12, [12, 12]), (1, 33, [20, 33]), (0, 30, [20, 30])):
        pair.read(number, f"(scrub.value = {value}, scrub.dispatchEvent(new Event('input')))")
        wait_for(lambda places=places: pair.places() == places)


def test_both_play_to_the_end_of_the_longer_one_and_each_pauses_both(pair: Pair):
    pair.read(0, "(speed.value = 0.25, speed.dispatchEvent(new Event('change')), palaestraMatch.play())")
    wait_for(lambda: pair.places()[1] > 4)
    assert pair.read(1, "speed.value") == "0.25"
    assert pair.playing() == [True, True]
    pair.read(1, "palaestraMatch.pause()")
    wait_for(lambda: pair.playing() == [False, False])
    here = pair.places()
    time.sleep(0.2)
    assert pair.places() == here
    assert here[0] == here[1]
    pair.read(1, "(palaestraMatch.seek(38), palaestraMatch.play())")
    wait_for(lambda: pair.places() == [20, 40])
    wait_for(lambda: pair.playing() == [False, False])


def test_a_notebook_shows_both(browser: Chromium, matches: list[Replay], tmp_path: Path):
    """Its frame is closed to scripts of the notebook, so the pages in it answer by messages alone."""
    shown = show(matches, height=400)
    assert isinstance(shown, Shown)
    (tmp_path / "notebook.html").write_text(f"<!DOCTYPE html><meta charset=utf-8><title>n</title>{shown.html}")
    assert browser.open(tmp_path / "notebook.html", ready="Promise.resolve()") == ""
    outer = browser.driver.find_element("css selector", "iframe")
    browser.driver.switch_to.frame(outer)
    pair = Pair(browser)

    def place(number: int) -> int:
        browser.driver.switch_to.default_content()
        browser.driver.switch_to.frame(outer)
        browser.driver.switch_to.frame(browser.driver.find_elements("css selector", "iframe")[number])
        return browser.driver.execute_script("return palaestraMatch.frame ?? -1")

    assert len(pair.frames) == 2
    wait_for(lambda: place(1) == 0)
    wait_for(lambda: place(0) == 0)
    browser.driver.execute_script("palaestraMatch.seek(7)")
    wait_for(lambda: place(1) == 7)
