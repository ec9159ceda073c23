"""Pages of matches in a headless Chromium: size, first frame, pictures next to Python's, playing; cost of recording.

    python benchmarks/pages.py                  # all ids, large matches and the cost of recording
    python benchmarks/pages.py TeamTag CartPole # these ids alone
    python benchmarks/pages.py --sheet docs/images/match_pages.webp  # screenshots of pages of nine families

Needs the dependency group `browser`, Chromium and chromedriver.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np

from chromium import FILTER_MS, LISTED_MS, Chromium, difference, why_not
from measurement import VERDICTS, Measurement, print_measurements, timed
from palaestra import registry
from palaestra.cli.measure import Benchmark
from palaestra.cli.progress_bar import Progress
from palaestra.cli.random_actions import mover
from palaestra.console import find_id, print_table
from palaestra.evaluation import evaluate
from palaestra.evaluation.match_pages import index_of
from palaestra.replay import Recorder, Replay, frames, to_html

DECISIONS = 60
"""Of a match of every id, at most."""
PICTURES = 20
"""Of an id are compared."""
COMPARED = (
    *("CartPole", "GridSoccer", "TeamPong", "TeamTag", "SpeakerListener", "UcavDogfight", "Skirmish-3m"),
    *("Skirmish-27m_vs_30m", "Drill-Shards", "GraphPursuit-Petersen", "QuadSumo", "SearchQA-2Hop"),
)
"""Ids whose pictures are compared where none are named: of all families."""
DIFFERENCE_BAR = 2.0
"""Of 255, mean over pixels and colours; for each of the pictures."""
FIRST_FRAME_BAR_MS, RATE_BAR = 1000.0, 60.0
OPENINGS = 3
"""Of a large page; the median counts."""
RATE_S = 3.0
"""Seconds that are played to count pictures."""
SPEEDS = (1, 2, 4, 8, 16)
LISTED_MATCHES, LISTED_BAR_MS, FILTER_BAR_MS = 256, 1000.0, 50.0
SHEET: Mapping[str, dict[str, Any]] = {
    "UcavDogfight": {"players": {"red": "expert", "blue": "weave"}},
    "Skirmish-MMM": {},
    "GraphPursuit-Grid10": {"players": {"pursuer": "shortest_path", "evader": "flee"}},
    "QuadSumo": {},
    "TeamTag": {},
    "Concert": {},
    "GridBattle": {},
    "SearchQA-2Hop": {"form": "text"},
    "MathText-Arith": {"form": "text", "players": {"agent": "oracle"}},
}
"""Ids whose pages are shown, with players and keywords: one of each family."""
WIDTHS, SHEET_HEIGHT, SHEET_SCALE = (1400, 390), 900, 0.3
"""Pixels of a window, and the size at which it is shown."""
RECORDED_DECISIONS, RECORDING_BAR = 1000, 0.15
RECORDED = (
    *(("TeamTag", 1), ("TeamTag", 256), ("Skirmish-3m", 1), ("Skirmish-3m", 256)),
    *(("GraphPursuit", 1), ("UcavDogfight", 1), ("QuadGate2", 1)),
)
"""Ids whose recording is timed, and matches side by side."""


@dataclass(frozen=True)
class Large:
    """A large match.

    Attributes:
        id: Of the game.
        decisions: How many; matches that end are followed by others.
        bar_kb: Of the page.
        players: By team.
        keywords: Of the game.
    """

    id: str
    decisions: int
    bar_kb: float
    players: Mapping[str, str]
    keywords: Mapping[str, Any] = field(default_factory=dict)


LARGE = (
    Large("palaestra/TeamPong-v0", 1000, 400.0, {"red": "tracker", "blue": "chaser"}),
    Large("palaestra/Skirmish-27m_vs_30m-v0", 1000, 1500.0, {"red": "builtin", "blue": "builtin"}),
    Large("palaestra/UcavDogfight-v2", 2000, 1000.0, {"red": "weave", "blue": "level_turn"}, {"horizon": 2000}),
)
EMPTY = """<!DOCTYPE html><title>empty</title>
<script>window.palaestraMatch = { ready: Promise.resolve(), firstFrameMs: performance.now() }</script>"""
"""What the browser itself needs to open a page."""
PLAY = """new Promise((done) => {
  const own = picture.getContext("2d"), clear = CanvasRenderingContext2D.prototype.clearRect;
  let pictures = 0;
  own.clearRect = (...box) => { pictures++; clear.apply(own, box); };
  palaestraMatch.seek(0);
  speed.value = given[0];
  speed.dispatchEvent(new Event("change"));
  palaestraMatch.play();
  const start = performance.now();
  setTimeout(() => {
    palaestraMatch.pause();
    delete own.clearRect;
    done(pictures / (performance.now() - start) * 1000);
  }, given[1] * 1000);
})"""
"""Plays at a speed for some seconds and gives the pictures a second: each begins with an empty canvas."""


@dataclass(frozen=True)
class Opened:
    """What a page of an id gave.

    Attributes:
        id: Of the game.
        frames: Of the match.
        kb: Size.
        first_frame_ms: From opening.
        errors: On the console, or why the page cannot be used.
        differences: Of pictures to those of Python.
        size: Width and height of the picture.
    """

    id: str
    frames: int
    kb: float
    first_frame_ms: float
    errors: list[str]
    differences: list[float]
    size: list[int]

    @property
    def holds(self) -> bool:
        """Whether it opens without errors and shows what Python draws."""
        return not self.errors and max(self.differences, default=0.0) <= DIFFERENCE_BAR


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints; 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("ids", nargs="*", metavar="ID", help="ids to open (default: all, and the other measurements)")
    parser.add_argument("--sheet", type=Path, metavar="FILE", help="write a picture of pages of nine families instead")
    args = parser.parse_args(arguments)
    if reason := why_not():
        parser.error(reason)
    if args.sheet:
        return _write_sheet(args.sheet)
    ids = [find_id(text) for text in args.ids] or list(registry.ROWS)
    compared = set(ids) if args.ids else {find_id(text) for text in COMPARED}
    measurements: list[Measurement] = []
    with tempfile.TemporaryDirectory() as folder, Chromium() as browser:
        opened = _open_all(browser, ids, compared, Path(folder))
        if not args.ids:
            measurements = [m for large in LARGE for m in _large(browser, large, Path(folder))]
            measurements += _index(browser, Path(folder))
    _print_opened(opened)
    if not args.ids:
        measurements += [_recording(find_id(id), lanes) for id, lanes in RECORDED]
        print()
        print_measurements(measurements)
    return int(not all(page.holds for page in opened) or any(m.holds is False for m in measurements))


def play(
    id: str, decisions: int, players: Mapping[str, str] | None = None, *, mode: str = "same_step", **keywords: Any
) -> Replay:
    """Decisions of one match or, unless ``mode`` is off, of several.

    Args:
        id: Registered id.
        decisions: How many, at most.
        players: By team; by default the first script, or random actions where the game has none.
        mode: As `palaestra.make_batch` takes it.
        keywords: Of the game.
    """
    sim = registry.make_batch(id, 1, autoreset_mode=mode, **keywords)
    try:
        move = _players(sim, players)
        with Recorder(sim) as recorder:
            sim.reset(seed=0)
            for _ in range(decisions):
                move()
                sim.step()
                if mode == "off" and bool(sim.terminated[0] | sim.truncated[0]):
                    break
        return recorder.replay()
    finally:
        sim.close()


def _write_sheet(file: Path) -> int:
    """Writes the screenshots of `SHEET` in wide and narrow windows; 1 if a page scrolls sideways."""
    image = importlib.import_module("PIL.Image")
    shots, wide = list[Any](), 0
    with tempfile.TemporaryDirectory() as folder, Chromium() as browser:
        for id, keywords in SHEET.items():
            to_html(play(find_id(id), DECISIONS, mode="off", **keywords), Path(folder) / "page.html")
            for width in WIDTHS:
                shot, over = browser.screenshot(
                    Path(folder) / "page.html", width, SHEET_HEIGHT, "palaestraMatch.seek(25)"
                )
                wide += over > 0
                shots.append(image.fromarray(shot).resize([int(SHEET_SCALE * n) for n in shot.shape[1::-1]]))
    columns, height = 3, shots[0].height
    row = sum(shot.width for shot in shots[:2])
    sheet = image.new("RGB", (columns * row, len(SHEET) // columns * height), "white")
    for number, shot in enumerate(shots):
        page = number // len(WIDTHS)
        left = page % columns * row + (shots[0].width if number % len(WIDTHS) else 0)
        sheet.paste(shot, (left, page // columns * height))
    sheet.save(file, quality=60)
    print(f"{file}: {file.stat().st_size / 1000:.0f} kB, {wide} pages scroll sideways")
    return int(wide > 0)


def _players(sim: Any, players: Mapping[str, str] | None = None) -> Any:
    """Sets the players; returns what writes the actions of the caller, or does nothing."""
    if not sim.game.scripts:
        return mover(sim)
    for team in sim.game.teams:
        sim.set_opponent(team, (players or {}).get(team, sim.game.scripts[0]))
    return lambda: None


def _open_all(browser: Chromium, ids: Sequence[str], compared: set[str], folder: Path) -> list[Opened]:
    """A page of each id."""
    opened = []
    with Progress("pages", len(ids)) as progress:
        for number, id in enumerate(ids):
            progress(number, len(ids), id)
            opened.append(_open(browser, id, id in compared, folder / "page.html"))
    return opened


def _open(browser: Chromium, id: str, is_compared: bool, file: Path) -> Opened:
    """Plays a match, writes its page and opens it."""
    replay = play(id, DECISIONS, mode="off")
    size = to_html(replay, file)
    error = browser.open(file)
    if error:
        return Opened(id, replay.steps + 1, size / 1000, np.nan, [error, *browser.console()], [], [])
    first_frame_ms = browser.run("return palaestraMatch.firstFrameMs")
    pixels = browser.run("return [palaestraMatch.header.width, palaestraMatch.header.height]")
    differences = _differences(browser, replay) if is_compared else []
    browser.run("palaestraMatch.seek(1e9)")
    for tab in ("tab_text", "tab_marks", "tab_about"):
        browser.run("document.getElementById(arguments[0]).click()", tab)
    shown = browser.run("return message.hidden ? '' : message.textContent")
    errors = [*filter(None, [shown]), *browser.console()]
    return Opened(id, replay.steps + 1, size / 1000, first_frame_ms, errors, differences, pixels)


def _differences(browser: Chromium, replay: Replay) -> list[float]:
    """Differences of pictures of the page to those of Python, from the first frame to the last."""
    chosen = set(np.linspace(0, replay.steps, min(PICTURES, replay.steps + 1)).astype(int).tolist())
    shown = enumerate(frames(replay))
    return [difference(browser.picture(number), sim.render(0)) for number, sim in shown if number in chosen]


def _large(browser: Chromium, large: Large, folder: Path) -> list[Measurement]:
    """The page of a large match: size, first frame, playing."""
    name = f"{large.decisions:,} decisions of {large.id.partition('/')[2]}"
    print(f"{name} ...", file=sys.stderr, flush=True)
    replay = play(large.id, large.decisions, large.players, **large.keywords)
    kb = to_html(replay, folder / "large.html") / 1000
    (folder / "empty.html").write_text(EMPTY, encoding="utf-8")
    first, empty = [], []
    for _ in range(OPENINGS):
        for file, times in ((folder / "empty.html", empty), (folder / "large.html", first)):
            if error := browser.open(file):
                raise RuntimeError(f"{large.id}: {error}")
            times.append(browser.run("return palaestraMatch.firstFrameMs"))
    fps = browser.run("return palaestraMatch.header.fps")
    fast = next((speed for speed in SPEEDS if speed * fps >= RATE_BAR), SPEEDS[-1])
    note = f"matches: {len(replay.matches)}; {replay.steps:,} decisions"
    found = [Measurement("", f"{name}: page, kB", kb, large.bar_kb, False, note)]
    note = f"ms: {', '.join(f'{ms:.0f}' for ms in first)}; a page of one line: {median(empty):.0f}"
    note += f"; load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    found.append(Measurement("", f"{name}: first frame, ms", median(first), FIRST_FRAME_BAR_MS, False, note))
    for speed in dict.fromkeys((1, fast)):
        wanted = speed * fps
        rate = round(browser.wait(PLAY, str(speed), min(RATE_S, 0.9 * replay.steps / wanted)))
        bar = RATE_BAR if wanted >= RATE_BAR else None
        about = f"{name}: pictures a second at speed {speed}"
        found.append(Measurement("", about, rate, bar, True, f"decisions a second: {wanted:g}"))
    return found


def _index(browser: Chromium, folder: Path) -> list[Measurement]:
    """The index of many matches: opening, filtering."""
    print(f"an index of {LISTED_MATCHES} matches ...", file=sys.stderr, flush=True)
    id, players = "palaestra/TeamPong-v0", ("tracker", "chaser")
    evaluate(id, *players, matches=2, html=folder)
    (folder / "index.html").write_text(index_of(evaluate(id, *players, matches=LISTED_MATCHES)), encoding="utf-8")
    listed, filtered = [], []
    for _ in range(OPENINGS):
        if error := browser.open(folder / "index.html", ready="0"):
            raise RuntimeError(f"index: {error}")
        listed.append(browser.run(LISTED_MS))
        filtered += [browser.run(FILTER_MS, words) for words in ("chaser", "")]
    name = f"index of {LISTED_MATCHES} matches"
    return [
        Measurement("", f"{name}: opens, ms", median(listed), LISTED_BAR_MS, False, "the first match beside it"),
        Measurement("", f"{name}: filters, ms", median(filtered), FILTER_BAR_MS, False, f"most: {max(filtered):.0f}"),
    ]


def _recording(id: str, lanes: int) -> Measurement:
    """CPU time of decisions with a recorder over those without, by turns."""
    about = f"{RECORDED_DECISIONS:,} decisions of {id.partition('/')[2]}, {lanes} lanes, cost of recording"
    print(f"{about} ...", file=sys.stderr, flush=True)

    def benchmark(name: str, is_recorded: bool) -> Benchmark:
        sim = registry.make_batch(id, lanes)
        move = _players(sim)

        def decide() -> None:
            sim.reset(seed=0)
            for _ in range(RECORDED_DECISIONS):
                move()
                sim.step()

        def record() -> None:
            with Recorder(sim):
                decide()

        return Benchmark(name, record if is_recorded else decide, RECORDED_DECISIONS, sim.close)

    plain, recorded = timed(benchmark("plain", False), benchmark("recorded", True))
    plain_us, recorded_us = (1e6 * timing.cpu_s / RECORDED_DECISIONS for timing in (plain, recorded))
    note = f"us a decision: {plain_us:.1f} and {recorded_us:.1f}"
    return Measurement("", about, recorded_us / plain_us - 1, RECORDING_BAR, False, note)


def _print_opened(opened: Sequence[Opened]) -> None:
    """The table of the ids, then what is wrong."""
    rows = []
    for page in opened:
        apart = page.differences
        rows.append(
            [
                page.id.partition("/")[2],
                str(page.frames),
                " x ".join(map(str, page.size)),
                f"{page.kb:.0f}",
                f"{page.first_frame_ms:.0f}",
                str(len(page.errors)),
                f"{mean(apart):.2f}" if apart else "",
                f"{max(apart):.2f}" if apart else "",
                VERDICTS[page.holds],
            ]
        )
    headings = ["id", "frames", "pixels", "kB", "first frame, ms", "errors", "mean difference", "largest", ""]
    print_table(rows, headings)
    for page in opened:
        for error in page.errors:
            print(f"{page.id}: {error}")
    sizes, first = ([getattr(page, name) for page in opened] for name in ("kb", "first_frame_ms"))
    print(f"{len(opened)} ids: kB {median(sizes):.0f}, at most {max(sizes):.0f};", end=" ")
    print(f"first frame, ms {median(first):.0f}, at most {max(first):.0f}; bar of each difference {DIFFERENCE_BAR:g}")


if __name__ == "__main__":
    sys.exit(main())
