"""Pages of twelve ids in a headless Chromium, as wide as a desk's and as a telephone's: nothing is cut off."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import chromium
from chromium import Chromium
from palaestra import registry
from palaestra.replay import record, to_html

pytest.importorskip("PIL", reason="pictures need the extra palaestra[render]")
WHY_NOT = chromium.why_not()
pytestmark = [pytest.mark.browser, pytest.mark.skipif(WHY_NOT != "", reason=WHY_NOT)]

IDS = (
    *("TeamTag-v0", "TeamPong-v0", "GridSoccer-v0", "Skirmish-3m-v0", "UcavDogfight-v2", "QuadSumo-v0"),
    *("GraphPursuit-Petersen-v0", "SearchQA-2Hop-v1", "MathText-Arith-v1", "LLMEnsemble-v0", "MetaPoint-v0"),
    "GridBattle-12-v0",
)
"""Of all families."""
CLIPPED = """return [...document.querySelectorAll(arguments[0])].filter((cell) => {
  const { display, overflowX } = getComputedStyle(cell);
  const isBox = cell.offsetParent && display !== 'inline' && overflowX !== 'auto';
  return isBox && cell.scrollWidth > cell.clientWidth + 1;
}).map((cell) => cell.textContent.slice(0, 80))"""
"""Texts of the cells that are wider than their place and do not scroll."""
CELLS = (
    "header h1, #controls > *, [role=tab], #agent_list span, #agent_detail dt, #agent_detail dd, #mark_list span, "
    "#about th, #about td, #text_list pre"
)
CUT_OFF = "const title = document.getElementById('title'); return title.scrollHeight > title.clientHeight + 1"


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with Chromium() as browser:
        yield browser


@pytest.fixture
def page(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A page of a match of an id."""
    try:
        game = registry.make_game(f"palaestra/{request.param}")[0]
    except ImportError as error:
        pytest.skip(str(error))
    players = dict.fromkeys(game.teams, game.scripts[-1] if game.scripts else "random")
    to_html(record(f"palaestra/{request.param}", players, seed=3, horizon=20), tmp_path / "match.html")
    return tmp_path / "match.html"


def opened(browser: Chromium, file: Path, width: int) -> Any:
    """The driver with a page in a window of some width, at the last frame."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    assert browser.open(file, "#t=9999") == ""
    return browser


@pytest.mark.parametrize("page", IDS, indirect=True)
def test_no_cell_is_cut_off(page: Path, browser: Chromium):
    for width in (1400, 390):
        shown = opened(browser, page, width)
        assert shown.run("return document.documentElement.scrollWidth <= innerWidth")
        assert not shown.run(CUT_OFF)
        for tab in ("tab_about", "tab_marks", "tab_agents"):
            shown.run("document.getElementById(arguments[0]).click()", tab)
            assert shown.run(CLIPPED, CELLS) == []


def test_a_cell_that_is_cut_off_is_found(browser: Chromium, tmp_path: Path):
    (tmp_path / "narrow.html").write_text(
        '<!DOCTYPE html><div style="width: 40px; overflow: hidden; white-space: nowrap">a text that is too long</div>'
    )
    assert browser.open(tmp_path / "narrow.html", ready="0") == ""
    assert browser.run(CLIPPED, "div") == ["a text that is too long"]
