"""The page of a match in a headless Chromium: it opens, draws what Python draws, and is played by mouse and keys."""

from __future__ import annotations

import html
import re
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from replay.test_policy_outputs import play

import chromium
from chromium import Chromium, difference, tile_difference
from palaestra import registry
from palaestra.drawing.board import Board
from palaestra.drawing.canvas import Canvas
from palaestra.drawing.colors import LINE, TEAMS, TEXT
from palaestra.drawing.widgets import length_of
from palaestra.replay import Recorder, Replay, frames, record, to_html
from palaestra.replay.page import MatchData, packed, page_of

pytest.importorskip("PIL", reason="pictures need the extra palaestra[render]")
WHY_NOT = chromium.why_not()
pytestmark = [pytest.mark.browser, pytest.mark.skipif(WHY_NOT != "", reason=WHY_NOT)]

MOST_DIFFERENCE = 2.2
"""Mean absolute difference of the page's pictures to those of Python, of 255: edges are smoothed in another way, and
the browser places the letters within a word."""
MOST_TILE_DIFFERENCE = 10.0
"""Of the mean colours within a tile: 1 to 8 where many thin lines are, 20 and more without the words."""
PATIENCE_S = 5.0
"""How long a page may take to do what it was told."""
HOSTILE = (
    "<img src=x onerror='window.hacked=1'>",
    "</script></title><script>window.hacked=1;alert(1)</script>",
    "\"'><svg/onload=alert(1)>{{data}}&lt;b&gt;",
    "\u202egnirts a\u2066\u2067\u202d\u200f",
    "long" * 2500,
    "javascript:alert(1)//`${alert(1)}`\\u003cscript\\u003e\u0000\u2028",
    "</pre></td></table></canvas><iframe srcdoc='<script>parent.hacked=1</script>'>",
)
"""Names that strangers may choose."""


class Keys:
    """Codes of keys in WebDriver."""

    TAB, ENTER, SHIFT, ESCAPE = "\ue004", "\ue007", "\ue008", "\ue00c"
    END, HOME, ARROW_LEFT, ARROW_RIGHT = "\ue010", "\ue011", "\ue012", "\ue014"


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with Chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def tag() -> Replay:
    return record("palaestra/TeamTag-v0", {"red": "default", "blue": "random"}, seed=5)


@pytest.fixture(scope="module")
def written(tag: Replay, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of a match of TeamTag."""
    file = tmp_path_factory.mktemp("page") / "match.html"
    to_html(tag, file)
    return file


@pytest.fixture
def page(browser: Chromium, written: Path) -> Page:
    """The page of TeamTag, opened anew."""
    assert browser.open(written) == ""
    return Page(browser)


class Page:
    """An open page of a match, and what a reader does with it."""

    def __init__(self, browser: Chromium) -> None:
        self.browser = browser
        self.last = browser.run("return palaestraMatch.header.frames") - 1

    @property
    def frame(self) -> int:
        return self.browser.run("return palaestraMatch.frame")

    def element(self, id: str) -> Any:
        return self.browser.driver.find_element("id", id)

    def elements(self, selector: str) -> list[Any]:
        return self.browser.driver.find_elements("css selector", selector)

    def curves(self) -> Any:
        return self.browser.run("return palaestraMatch.plot.curves.map((c) => [c.label, c.lines.map((l) => l.values)])")

    def click(self, id: str) -> None:
        self.element(id).click()

    def mouse(self) -> Any:
        return self.browser.moves()

    def press(self, *keys: str) -> None:
        """Presses keys together."""
        chain = self.mouse()
        for key in keys[:-1]:
            chain.key_down(key)
        chain.send_keys(keys[-1])
        for key in keys[:-1]:
            chain.key_up(key)
        chain.perform()

    def seek(self, frame: int) -> None:
        self.browser.run("palaestraMatch.seek(arguments[0])", frame)

    def value(self, id: str) -> str:
        return self.element(id).get_property("value")

    def is_playing(self) -> bool:
        return self.element("play").get_attribute("aria-label") == "Pause"

    def is_zoomed(self) -> bool:
        return "zoomed" in (self.element("view").get_attribute("class") or "")

    def is_full(self) -> bool:
        return self.browser.run("return document.fullscreenElement !== null")

    def shown(self) -> np.ndarray:
        """The pixels of the canvas, once they are drawn."""
        last = "requestAnimationFrame(() => requestAnimationFrame(() => resolve(picture.toDataURL())))"
        content = self.browser.wait(f"new Promise((resolve) => {last})")
        return np.frombuffer(content.encode(), np.uint8)


def wait_for(what: Callable[[], Any]) -> None:
    """Waits until something holds."""
    end = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < end, "the page did not do it"
        time.sleep(0.02)


# -- pictures ----------------------------------------------------------------------------------------------------------


def test_a_page_opens_without_errors_and_asks_for_nothing(browser: Chromium, written: Path, tag: Replay):
    assert browser.open(written) == ""
    page = Page(browser)
    assert (page.last, page.frame) == (tag.steps, 0)
    assert not page.element("message").is_displayed()
    assert page.element("title").text == browser.driver.title == page.browser.run("return palaestraMatch.header.title")
    assert re.fullmatch(r"TeamTag: default \(red\) .* random \(blue\) .*, \d+ decisions", browser.driver.title)
    page.seek(page.last)
    wait_for(lambda: browser.run("return location.hash") == f"#t={page.last}")
    assert browser.run("return palaestraMatch.firstFrameMs") > 0
    assert browser.console() == []
    addresses = [url for url in browser.requests() if not url.startswith(("data:", "blob:", "about:"))]
    assert addresses == [written.resolve().as_uri()]


@pytest.mark.parametrize(
    ("id", "players"),
    [
        ("palaestra/TeamTag-v0", {"red": "default", "blue": "random"}),
        ("palaestra/Skirmish-3m-v0", {"red": "random", "blue": "builtin"}),
        ("palaestra/TeamPong-v0", {"red": "tracker", "blue": "chaser"}),  # dashes
        ("palaestra/GraphPursuit-Petersen-v0", {}),
        ("palaestra/SearchQA-2Hop-v1", {"agent": "oracle"}),
    ],
)
def test_a_frame_is_what_render_draws(id: str, players: dict[str, str], browser: Chromium, tmp_path: Path):
    replay = record(id, players, seed=3)
    to_html(replay, tmp_path / "match.html")
    chosen = {0, 1, replay.steps // 3, replay.steps // 2, replay.steps}
    rendered = {k: sim.render(0).copy() for k, sim in enumerate(frames(replay)) if k in chosen}
    assert browser.open(tmp_path / "match.html") == ""
    drawn = {k: browser.picture(k) for k in sorted(chosen, reverse=True)}  # backwards, too, each is the same
    assert max(difference(drawn[k], rendered[k]) for k in chosen) <= MOST_DIFFERENCE
    assert max(tile_difference(drawn[k], rendered[k]) for k in chosen) <= MOST_TILE_DIFFERENCE
    assert difference(drawn[0], drawn[replay.steps]) > 0
    assert browser.console() == []


def test_a_board_of_cells_and_marks_is_what_the_canvas_draws(browser: Chromium, tag: Replay, tmp_path: Path):
    rng, board = np.random.default_rng(0), Board(20, 20, 3, 90, 121)
    cells, at = rng.integers(0, 3, (90, 121)), rng.integers(0, 90, (300, 2))
    data, rendered = MatchData(tag, 0), list[np.ndarray]()
    for number, sim in zip(range(3), frames(tag), strict=False):
        canvas = Canvas(420, 320)
        board.draw_cells(
            canvas, cells := (cells + (rng.random((90, 121)) < 0.1)) % 3, ((20, 60, 40), (90, 70, 50), LINE)
        )
        board.draw_marks(canvas, at[: 300 - 50 * number], np.arange(300 - 50 * number) % 2, TEAMS)
        board.draw_labels(canvas, [(str(k), TEXT) for k in range(90)], [(str(k), TEXT) for k in range(121)])
        sim.draw = lambda lane, canvas=canvas: canvas  # type: ignore[method-assign]
        data.add(sim)
        rendered.append(np.asarray(canvas))
    (tmp_path / "board.html").write_text(page_of(data.title, packed(*data.finish())))
    assert browser.open(tmp_path / "board.html") == ""
    for number in (2, 0, 1):
        assert difference(browser.picture(number), rendered[number]) <= MOST_DIFFERENCE
        assert tile_difference(browser.picture(number), rendered[number]) <= MOST_TILE_DIFFERENCE
    assert browser.console() == []


def uneven(picture: np.ndarray, left: float, pitch: float, letters: int) -> float:
    """By how many pixels equal letters stand nearer to each other or farther apart than a ``pitch``, at most."""
    ink = picture.astype(float).max(axis=2).sum(axis=0)
    columns = np.arange(len(ink)) + 0.5
    middles = []
    for k in range(letters):
        first = left + k * pitch
        weights = ink * np.clip(np.minimum(columns + 0.5 - first, first + pitch - columns + 0.5), 0.0, 1.0)
        middles.append((weights * columns).sum() / weights.sum() - k * pitch)
    return float(np.ptp(middles))


@pytest.mark.parametrize("size", [11, 12])
def test_small_letters_are_evenly_spaced(size: int, browser: Chromium, tag: Replay, tmp_path: Path):
    canvas, data = Canvas(300, 30, (0, 0, 0)), MatchData(tag, 0)
    canvas.text((10, 20), 20 * "o", (255, 255, 255), size)
    sim = next(frames(tag))
    sim.draw = lambda lane: canvas  # type: ignore[method-assign]
    data.add(sim)
    (tmp_path / "words.html").write_text(page_of(data.title, packed(*data.finish())))
    assert browser.open(tmp_path / "words.html") == ""
    pitch = length_of("o", size)
    assert uneven(np.asarray(canvas), 10.0, pitch, 20) < 0.3
    assert uneven(browser.picture(0), 10.0, pitch, 20) < 0.3


def test_pictures_of_an_engine_are_shown(browser: Chromium, tmp_path: Path):
    pytest.importorskip("mujoco", reason="needs the extra palaestra[robots]")
    replay = record("palaestra/QuadGate2-v0", seed=1, horizon=3)
    to_html(replay, tmp_path / "match.html")
    rendered = [sim.render(0).copy() for sim in frames(replay)]
    assert browser.open(tmp_path / "match.html") == ""
    assert max(difference(browser.picture(k), rendered[k]) for k in range(len(rendered))) <= MOST_DIFFERENCE
    assert browser.console() == []


# -- controls ----------------------------------------------------------------------------------------------------------


def test_frames_are_stepped_by_buttons_and_keys(page: Page):
    for act, frame in (
        (lambda: page.click("forward"), 1),
        (lambda: page.click("forward"), 2),
        (lambda: page.click("back"), 1),
        (lambda: page.press(Keys.ARROW_RIGHT), 2),
        (lambda: page.press(Keys.SHIFT, Keys.ARROW_RIGHT), 12),
        (lambda: page.press(Keys.ARROW_LEFT), 11),
        (lambda: page.press(Keys.SHIFT, Keys.ARROW_LEFT), 1),
        (lambda: page.press(Keys.END), page.last),
        (lambda: page.click("forward"), page.last),
        (lambda: page.press(Keys.HOME), 0),
        (lambda: page.click("back"), 0),
    ):
        act()
        assert page.frame == frame
    assert page.element("frame_text").text.startswith(f"frame 0 of {page.last} ")


def test_a_match_is_played_and_paused_by_the_button_and_the_space_bar(page: Page):
    for act in (lambda: page.click("play"), lambda: page.press(" ")):
        start = page.frame
        act()
        assert page.is_playing()
        wait_for(lambda start=start: page.frame > start)
        act()
        assert not page.is_playing()
        frame = page.frame
        time.sleep(0.2)
        assert page.frame == frame


def test_playing_stops_at_the_end_and_begins_again_there(page: Page):
    page.seek(page.last - 1)
    page.click("play")
    wait_for(lambda: not page.is_playing())
    assert page.frame == page.last
    page.click("play")
    assert page.is_playing()
    assert page.frame < page.last
    page.click("play")


def test_the_speed_is_chosen_by_list_and_keys(page: Page):
    options = page.elements("#speed option")
    assert [option.get_property("value") for option in options] == ["0.25", "0.5", "1", "2", "4", "8", "16"]
    page.press("+")
    assert page.value("speed") == "2"
    page.press("-")
    page.press("-")
    assert page.value("speed") == "0.5"
    options[-1].click()
    assert page.value("speed") == "16"
    page.browser.run("document.activeElement.blur()")
    fps = page.browser.run("return palaestraMatch.header.fps")
    page.browser.run("window.start = performance.now(); palaestraMatch.play()")
    time.sleep(0.3)
    passed_ms, frame = page.browser.run("return [performance.now() - window.start, palaestraMatch.frame]")
    assert frame == pytest.approx(min(passed_ms / 1000 * fps * 16, page.last), rel=0.5)


def test_the_bar_and_the_plot_go_to_a_frame(page: Page):
    page.mouse().move_to_element(page.element("scrub")).click().perform()
    assert page.frame == pytest.approx(page.last / 2, abs=0.02 * page.last + 1)
    frame = page.frame
    page.press(Keys.ARROW_RIGHT)
    assert page.frame == frame + 1
    plot = page.element("plot")
    width = plot.size["width"]
    page.mouse().move_to_element_with_offset(plot, -width // 4, 0).click().perform()
    assert page.frame == pytest.approx(page.last / 4, abs=0.02 * page.last + 1)
    page.mouse().move_to_element_with_offset(plot, width // 4, 0).perform()
    words = page.element("plot_text").text
    assert int(re.findall(r"^frame (\d+)", words)[0]) == pytest.approx(page.last * 3 / 4, abs=0.02 * page.last + 1)


def test_the_plot_shows_what_the_reader_ticks(page: Page, tag: Replay):
    page.click("plot_what")
    ticks = page.elements("#plot_list label")
    assert [tick.text for tick in ticks[:2]] == ["rewards", "is_chaser"]
    ((label, sums),) = page.curves()
    assert label == "sum of rewards"
    assert sums == page.browser.run("return palaestraMatch.rewards.teams.map((team) => [...team.sums])")
    before = page.browser.run("return plot_canvas.toDataURL()")
    ticks[1].click()
    (_, (label, lines)) = page.curves()
    assert label == "is_chaser"
    assert [set(line) for line in lines] == [{1}, {1}, {1}, {0}]
    assert {len(line) for line in lines} == {tag.steps + 1}
    assert page.browser.run("return plot_canvas.toDataURL()") != before
    ticks[1].click()
    assert page.browser.run("return plot_canvas.toDataURL()") == before


def test_a_game_says_what_is_plotted_first(browser: Chromium, tmp_path: Path):
    file = tmp_path / "match.html"
    to_html(record("palaestra/UcavDogfight-v2", dict.fromkeys(("red", "blue"), "straight"), max_cycles=20), file)
    assert browser.open(file) == ""
    page = Page(browser)
    (range_label, ranges), (health_label, healths) = page.curves()
    assert (range_label, health_label) == ("range (km)", "health")
    assert 0.1 < np.min(ranges) < 50
    assert healths == [[1.0] * (page.last + 1)] * 2


def test_keys_go_to_the_next_and_the_last_event(browser: Chromium, tmp_path: Path):
    made = record("palaestra/Skirmish-3m-v0", {"red": "random", "blue": "builtin"}, seed=2)
    to_html(made, tmp_path / "match.html")
    assert browser.open(tmp_path / "match.html") == ""
    page = Page(browser)
    frames_of_marks = sorted({mark["frame"] for mark in browser.run("return palaestraMatch.header.marks")})
    for key, wanted in (("n", frames_of_marks), ("p", frames_of_marks[-2::-1])):
        for frame in wanted:
            page.press(key)
            assert page.frame == frame
    labels = [label for label, _ in page.curves()]
    assert labels == ["units alive", "hit points"]
    page.seek(page.last)
    score = sum(float(sim.team_rewards("red")[0]) for sim in frames(made))
    shown = browser.run("return document.querySelectorAll('#agent_list .heading span')[3].textContent")
    assert score > 0
    assert float(shown) == pytest.approx(score, rel=1e-3)
    page.elements("#agent_list button.row")[0].click()
    assert "attack blue_0" in page.element("agent_detail").text


def test_the_picture_is_zoomed_and_moved(page: Page):
    whole = page.shown()
    for come, go in (("zoom_in", "zoom_out"), ("i", "o"), ("zoom_in", "zoom_reset"), ("i", "0")):
        for name, is_zoomed in ((come, True), (go, False)):
            page.press(name) if len(name) == 1 else page.click(name)
            assert page.is_zoomed() == is_zoomed
            assert np.array_equal(page.shown(), whole) != is_zoomed
    page.press("i")
    zoomed = page.shown()
    page.mouse().move_to_element(page.element("view")).click_and_hold().move_by_offset(60, 40).release().perform()
    assert not np.array_equal(page.shown(), zoomed)
    page.mouse().double_click(page.element("view")).perform()
    assert not page.is_zoomed()
    wheel = "new WheelEvent('wheel', {deltaY: -800, bubbles: true, cancelable: true})"
    page.browser.run(f"document.getElementById('view').dispatchEvent({wheel})")
    assert page.is_zoomed()


def test_the_picture_fills_the_screen(page: Page):
    for act in (lambda: page.click("full_screen"), lambda: page.press("f")):
        act()
        wait_for(page.is_full)
        act()
        wait_for(lambda: not page.is_full())


def test_the_theme_is_changed(page: Page):
    theme = "return [document.documentElement.dataset.theme, getComputedStyle(document.body).backgroundColor]"
    before = page.browser.run(theme)
    page.click("theme")
    after = page.browser.run(theme)
    assert {before[0], after[0]} == {"dark", "light"}
    assert before[1] != after[1]
    page.click("theme")
    assert page.browser.run(theme) == before


def test_help_is_opened_and_closed(page: Page):
    for come, go in (("?", Keys.ESCAPE), ("help_button", "help_close")):
        page.press(come) if len(come) == 1 else page.click(come)
        assert page.element("help").is_displayed()
        assert "play or pause" in page.element("help").text
        page.press(go) if len(go) == 1 else page.click(go)
        assert not page.element("help").is_displayed()


def test_agents_are_shown_by_mouse_and_focus(page: Page, tag: Replay):
    agents = page.browser.run("return palaestraMatch.header.agents")
    rows = page.elements("#agent_list button.row")
    assert [row.get_attribute("data-agent") for row in rows] == ["0", "1", "2", "3"]
    assert [row.text.split("\n")[0] for row in rows] == agents
    detail = page.element("agent_detail")
    assert detail.text.startswith(agents[0])
    page.mouse().move_to_element(rows[3]).perform()
    assert detail.text.startswith(agents[3])
    page.mouse().move_to_element(page.element("view")).perform()
    assert detail.text.startswith(agents[0])
    rows[2].click()
    page.mouse().move_to_element(page.element("view")).perform()
    page.browser.run("document.activeElement.blur()")
    assert detail.text.startswith(agents[2])
    page.browser.run("document.querySelector('[data-agent=\"1\"]').focus()")
    assert detail.text.startswith(agents[1])
    page.press(Keys.TAB)
    page.press(Keys.ENTER)
    assert detail.text.startswith(agents[2])


def test_what_a_player_computed_is_shown_beside_its_action(browser: Chromium, tmp_path: Path):
    to_html(play(), tmp_path / "match.html")
    assert browser.open(tmp_path / "match.html", "#t=2") == ""
    page = Page(browser)
    page.elements("#agent_list button.row")[1].click()
    words = page.element("agent_detail").text.split("\n")
    start = words.index("probability")
    assert words[start + 1] == f"highest: {words[start + 10]}"
    assert words[start + 3 : start + 12 : 2] == ["37", "38", "39", "40", "41"]
    assert words[words.index("value") + 1] == "2.25"
    assert [float(bar.get_property("value")) for bar in page.elements("meter")] == [0.0, 0.25, 0.5, 0.75, 1.0]
    page.press(Keys.HOME)
    words = page.element("agent_detail").text.split("\n")
    assert words[words.index("probability") + 1] == words[words.index("value") + 1] == "none"
    assert browser.console() == []


def test_tabs_are_changed_by_mouse_and_arrow_keys(page: Page, tag: Replay):
    assert not page.element("tab_text").is_displayed()
    page.click("tab_marks")
    page.elements("#mark_list button")[-1].click()
    assert page.frame == tag.steps
    page.element("tab_marks").send_keys(Keys.ARROW_RIGHT)
    assert page.element("tab_about_panel").is_displayed()
    assert not page.element("tab_marks_panel").is_displayed()
    assert page.frame == tag.steps
    assert tag.digest in page.element("about").text
    page.press(Keys.ARROW_RIGHT)
    assert page.element("tab_agents_panel").is_displayed()


def test_the_command_and_the_link_are_copied(page: Page):
    page.browser.driver.execute_cdp_cmd(
        "Browser.grantPermissions", {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}
    )
    page.seek(7)
    page.click("tab_about")
    for id, end in (("copy_command", "palaestra replay match.npz --verify"), ("frame_link", "match.html#t=7")):
        page.click(id)
        wait_for(lambda id=id: page.element(id).text == "Copied")
        assert page.browser.wait("navigator.clipboard.readText()").endswith(end)
    assert page.browser.run("return location.hash") == "#t=7"


def test_all_controls_are_reached_by_the_tabulator(page: Page):
    reached = set()
    for _ in range(40):
        page.press(Keys.TAB)
        reached.add(page.browser.run("return document.activeElement.id"))
    wanted = {"play", "back", "forward", "speed", "scrub", "zoom_in", "zoom_out", "zoom_reset", "full_screen"}
    assert reached >= {*wanted, "frame_link", "theme", "help_button", "tab_agents"}


def test_an_address_opens_its_frame(browser: Chromium, written: Path):
    assert browser.open(written, "#t=12") == ""
    page = Page(browser)
    assert page.frame == 12
    browser.run("location.hash = '#t=20'")
    wait_for(lambda: page.frame == 20)
    browser.run("location.hash = '#t=999999'")
    wait_for(lambda: page.frame == page.last)
    browser.run("location.hash = '#t=<b>'")
    time.sleep(0.1)
    assert page.frame == page.last
    assert browser.console() == []


def test_a_page_within_the_frame_of_a_notebook_is_played(browser: Chromium, written: Path, tmp_path: Path):
    inner = html.escape(written.read_text(encoding="utf-8"))
    frame = f'<iframe sandbox="allow-scripts" width="900" height="700" srcdoc="{inner}"></iframe>'
    (tmp_path / "notebook.html").write_text(frame, encoding="utf-8")
    browser.driver.get((tmp_path / "notebook.html").as_uri())
    browser.driver.switch_to.frame(0)
    try:
        assert browser.wait("palaestraMatch.ready.then(() => '', String)") == ""
        page = Page(browser)
        assert not page.element("full_screen").is_displayed()
        page.click("forward")
        for key in ("f", Keys.ARROW_RIGHT):
            page.press(key)
        assert page.frame == 2
        time.sleep(0.3)  # the page tries to change its address
        assert not page.element("message").is_displayed()
    finally:
        browser.driver.switch_to.default_content()
    assert browser.console() == []


# -- texts -------------------------------------------------------------------------------------------------------------


TEXTS = [
    (
        "palaestra/SearchQA-2Hop-v1",
        "oracle",
        ["Question:", "<search>", "<information>", "<search>", "<information>", "<answer>"],
    ),
    ("palaestra/SearchQA-Reading-v0", "oracle", ["Question:", "<search>", "<information>", "<answer>"]),
    ("palaestra/MathText-Arith-v1", "oracle", ["Question", "<answer>"]),
    ("palaestra/ConcertDuel-v0", "hold", ["red_0 read", "blue_0 read", "red_0 wrote", "blue_0 wrote"]),
]
"""An id of each family that has texts, a player, and what stands in the transcript in this order."""


@pytest.mark.parametrize(("id", "player", "words"), TEXTS)
def test_a_match_of_texts_is_one_transcript(id: str, player: str, words: list[str], browser: Chromium, tmp_path: Path):
    teams = registry.make_game(id)[0].teams
    replay = record(id, dict.fromkeys(teams, player), seed=1, form="text", horizon=12)
    to_html(replay, tmp_path / "match.html")
    assert browser.open(tmp_path / "match.html", f"#t={replay.steps}") == ""
    page = Page(browser)
    page.click("tab_text")
    shown, at = page.element("text_list").text, 0
    for word in words:
        at = shown.index(word, at) + len(word)
    current = page.elements("#text_list section[data-current]")
    assert current
    assert {piece.get_attribute("data-frame") for piece in current} == {str(page.last)}
    turn = page.elements("#text_list section.written button")[0]
    browser.run("arguments[0].click()", turn)
    assert page.frame == 1
    page.click("tab_agents")
    assert "Turn that led to this frame" in page.element("agent_detail").text
    assert browser.console() == []


def test_thoughts_of_players_stand_in_the_transcript(browser: Chromium, tmp_path: Path):
    env = gymnasium.make("palaestra/SearchQA-2Hop-v1", form="text")
    turn = "<think>I wonder about zebra</think><search>mayor of Dadam Shore</search>"
    with Recorder(env.unwrapped.sim) as recorder:  # type: ignore[attr-defined]
        env.reset(seed=7)
        env.step(turn)
    to_html(recorder.replay(), tmp_path / "match.html")
    assert browser.open(tmp_path / "match.html") == ""
    page = Page(browser)
    page.click("tab_text")
    (thought,) = page.elements("#text_list .thought")
    assert thought.text == "I wonder about zebra"
    assert turn in page.element("text_list").text


@pytest.fixture(scope="module")
def hostile(tag: Replay) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Header and arrays of a match in which strangers chose all words."""
    made = MatchData(tag, 0)
    for sim in frames(tag):
        made.add(sim)
    header, blocks = made.finish()
    names = [HOSTILE[k % len(HOSTILE)] for k in range(100)]
    agents = len(header["agents"])
    blocks["texts"] = np.ones((header["frames"], agents), np.uint32) * np.arange(1, agents + 1, dtype=np.uint32)
    field = header["actions"][0][0]
    options = [names[k] for k in range(len(field["options"]))]
    header |= {
        "title": HOSTILE[1],
        "agents": names[3 : 3 + agents],
        "strings": list(HOSTILE),
        "about": [*([name, text] for name, text in pairwise(names[:9])), ["command", HOSTILE[1]]],
        "notes": list(HOSTILE),
        "marks": [{"frame": k, "kind": name, "text": names[k + 1]} for k, name in enumerate(names[:20])],
        "teams": [{**team, "name": names[k]} for k, team in enumerate(header["teams"])],
        "actions": [[{**field, "name": names[k], "about": names[k], "options": options}] for k in range(agents)],
        "fields": [
            [{**f, "name": names[k], "about": names[k + 1], "unit": names[k + 2]} for k, f in enumerate(fields)]
            for fields in header["fields"]
        ],
    }
    words = [style for style in header["styles"] if style[0] == "text"]
    assert len(words) > 2
    for style, name in zip(words, names, strict=False):
        style[1] = name
    return header, blocks


OVERFLOWING = """
const wide = (element) => element.scrollWidth > element.clientWidth + 1;
const CELLS = "td, th, li, pre, dd, dt, button, h1, h2, h3, div, header, section";
const cell = (element) => element.parentElement.closest(CELLS);
const outside = (element) => {
  const [box, holder] = [element.getBoundingClientRect(), cell(element).getBoundingClientRect()];
  return box.width > 0 && (box.left < holder.left - 1 || box.right > holder.right + 1);
};
const panels = [...document.querySelectorAll('[role="tabpanel"], #agent_list, #agent_detail, html')].filter(wide);
return [...panels, ...[...document.querySelectorAll(".stranger")].filter(outside)].map((e) => e.id || e.className);
"""
"""Parts of the page that are wider than their cells."""
ABOUT = "return Array.from(about.rows, (row) => Array.from(row.cells, (cell) => cell.firstChild.textContent))"
"""The words of the table of the match."""


@pytest.mark.parametrize("width", [1300, 700])
def test_hostile_names_stay_text_in_their_cells(width: int, browser: Chromium, hostile: Any, tmp_path: Path):
    header, blocks = hostile
    (tmp_path / "hostile.html").write_text(page_of(HOSTILE[1], packed(header, blocks)), encoding="utf-8")
    browser.driver.set_window_size(width, 900)
    try:
        assert browser.open(tmp_path / "hostile.html") == ""
        page = Page(browser)
        for tab in ("tab_agents", "tab_text", "tab_marks", "tab_about"):
            page.click(tab)
            for frame in (0, 5, page.last):
                page.seek(frame)
                page.shown()
            assert browser.run(OVERFLOWING) == [], tab
        assert browser.run(ABOUT) == header["about"]
    finally:
        browser.driver.set_window_size(*chromium.SIZE)
    assert browser.run("return window.hacked") is None
    assert page.elements("img, iframe, #match, #panel svg, body > script + script + script, b") == []
    assert browser.console() == []
    assert not page.element("message").is_displayed()
    addresses = [url for url in browser.requests() if not url.startswith(("data:", "blob:", "about:"))]
    assert len(addresses) == 1


# -- damage ------------------------------------------------------------------------------------------------------------


def cut(text: str) -> str:
    """A page without half of its data."""
    data = re.findall(r'id="match">(.*?)</script>', text, re.DOTALL)[0]
    return text.replace(data, data[: len(data) // 2])


def of_another_format(text: str) -> str:
    return page_of("a match", packed({"format": 99}, {}))


def without_pictures(text: str) -> str:
    header: dict[str, Any] = {"format": 1, "dropped_bits": {}, "styles": [], "layers": 0, "frames": 2}
    header |= {"actions": [], "fields": [], "outputs": []}
    return page_of("a match", packed(header, dict.fromkeys(("op_styles", "op_xs", "op_ys"), np.zeros(0, np.uint8))))


@pytest.mark.parametrize(
    ("damage", "words"),
    [(cut, "data of the page are damaged"), (of_another_format, "format 99"), (without_pictures, "cut off")],
)
def test_a_damaged_page_says_so(
    damage: Callable[[str], str], words: str, browser: Chromium, written: Path, tmp_path: Path
):
    damaged = tmp_path / "damaged.html"
    damaged.write_text(damage(written.read_text(encoding="utf-8")), encoding="utf-8")
    assert words in browser.open(damaged)
    message = browser.driver.find_element("id", "message")
    assert message.is_displayed()
    assert words in message.text
    assert browser.console() == []
