"""A match as one HTML file that a browser opens without a network: pictures, rewards, actions, observations.

The file holds the data of the match and a program of its own (`SCRIPTS`). Its policy lets nothing else run or
load; what others can name, players and agents among it, is text there and never markup. Tested in Chromium; it uses
what browsers have since 2024.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from palaestra.core.files import write_atomically
from palaestra.core.run.simulation import Simulation
from palaestra.drawing.canvas import Canvas, font, import_pillow
from palaestra.drawing.colors import TEAMS, TEXT
from palaestra.drawing.display_list import SCALE, DisplayList
from palaestra.replay.agent_tables import AgentTables
from palaestra.replay.export import check_lane
from palaestra.replay.file import STEP, Replay
from palaestra.replay.headline import headline, name_of, short_names
from palaestra.replay.playback import frames

FORMAT = 1
TEMPLATE, TEMPLATE_OF_SEVERAL = "match_page.html", "match_pages.html"
SCRIPTS = ("match_pictures.js", "match_plot.js", "match_panel.js", "match_page.js")
SOURCES = "font-src data:; img-src blob:"
"""What else a page of a match may load."""
QUALITY = 90
"""Of pictures that an engine draws, as WebP."""
LONGEST = 500
"""Characters of a keyword's value that are shown."""
FALLS = 3
"""Decisions in which a critic's value falls most that are marked, of each team."""
LEAST_FALL = 0.1
"""Share of the range of its values by which such a value falls at least."""


def to_html(replay: Replay | Sequence[Replay], path: str | Path, *, lane: int = 0) -> int:
    """Writes one lane as a page; an old file stays until the new one is whole.

    Args:
        replay: What is shown; several stand side by side and move together.
        path: File to write, ``*.html``.
        lane: Which match.

    Returns:
        Bytes of the file.

    Raises:
        ReplayError: No such lane, or the replay cannot be played here.
        ValueError: The file is to be no page.
        NotImplementedError: The game has no picture.
        ImportError: Pillow is missing.
    """
    if Path(path).suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"{path}: a page is an HTML file: name it *.html")
    page = make_page(replay, lane).encode()
    write_atomically(path, lambda file: file.write(page))
    return len(page)


def make_page(replay: Replay | Sequence[Replay], lane: int = 0) -> str:
    """The page of one lane, of several replays side by side; see `to_html`."""
    replays = [replay] if isinstance(replay, Replay) else list(replay)
    if not replays:
        raise ValueError("no replay is given: give one, or several to see side by side")
    pages = [page for one in replays for page in make_pages(one, [lane])]
    return pages[0] if len(pages) == 1 else side_by_side(pages)


def make_pages(replay: Replay, lanes: Sequence[int]) -> list[str]:
    """The pages of several lanes, for which the replay is played once; see `to_html`."""
    import_pillow()  # before anything is played
    for lane in lanes:
        check_lane(replay, lane)
    made = [MatchData(replay, lane) for lane in lanes]
    for sim in frames(replay):
        for match in made:
            match.add(sim)
    return [match.page() for match in made]


def make_page_of_last_match(replay: Replay, lane: int = 0) -> str:
    """The page of the last match of a lane of which a decision was made; of no other one's frames."""
    import_pillow()
    check_lane(replay, lane)
    last, match = None, MatchData(replay, lane)
    for operation, sim in zip(replay.operations, frames(replay), strict=True):
        if match.is_over_for(sim):
            after = match.next()
            if sim.autoreset_mode == "same_step" and operation == STEP:
                match.add(sim)  # its last step is the first frame of the next match
            last, match = match if match.decisions > 0 else last, after
        match.add(sim)
    return (match if last is None or match.decisions > 0 else last).page()


def page_of(title: str, data: bytes) -> str:
    """A page of the data that `packed` gives."""
    files = [Path(__file__).with_name(name) for name in (TEMPLATE, *SCRIPTS)]
    return filled(*files, title=title, data=base64.b64encode(data).decode(), sources=SOURCES)


def side_by_side(pages: Sequence[str]) -> str:
    """A page of several pages of matches, in frames with one clock."""
    frames = [f'<iframe srcdoc="{html.escape(page)}" title="{title_of(page)}"></iframe>' for page in pages]
    files = [Path(__file__).with_name(name) for name in (TEMPLATE_OF_SEVERAL, "match_pages.js")]
    title = " | ".join(html.unescape(title_of(page)) for page in pages)
    return filled(*files, title=title, data="".join(frames), sources=SOURCES, framed=pages[0])


def filled(template: Path, *scripts: Path, title: str, data: str, sources: str, framed: str = "") -> str:
    """An HTML file of its template, its program and its data, with a policy that lets nothing else run or load.

    Args:
        template: HTML with ``{{policy}}``, ``{{font}}``, ``{{title}}``, ``{{data}}`` and ``{{script}}``.
        scripts: JavaScript, one behind the other.
        title: Any text.
        data: Text without ``<``, or markup that is ours.
        sources: What else the page may load, as the policy says it.
        framed: A page in a frame, to which this policy applies too: its program and its style are let run.
    """
    script = "\n".join(path.read_text(encoding="utf-8") for path in scripts)
    page = template.read_text(encoding="utf-8").replace("{{font}}", _font_face())
    style = _between(page, "style")
    programs = [_hash(text) for text in (script, _between(framed, "script")) if text]
    styles = [_hash(text) for text in (style, _between(framed, "style")) if text]
    rules = ["default-src 'none'", f"script-src {' '.join(programs)}", f"style-src {' '.join(styles)}", sources]
    policy = "; ".join([*rules, "base-uri 'none'", "form-action 'none'"])
    parts = {"policy": policy, "title": html.escape(title), "data": data, "script": script}
    return re.sub(r"{{(\w+)}}", lambda found: parts[found[1]], page)  # in one pass: parts are not looked through


def packed(header: Mapping[str, Any], blocks: Mapping[str, np.ndarray]) -> bytes:
    """Header and arrays, compressed: the length of the header as uint32, the header as JSON, the arrays' bytes."""
    places, parts, at = {}, list[bytes](), 0
    for name, array in blocks.items():
        content = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()
        places[name] = {"dtype": array.dtype.str[1:], "shape": list(array.shape), "start": at}
        parts.append(content + bytes(-len(content) % 8))
        at += len(parts[-1])
    text = json.dumps({**header, "blocks": places}, separators=(",", ":")).encode()
    start = len(text).to_bytes(4, "little") + text
    return zlib.compress(b"".join([start + bytes(-len(start) % 8), *parts]), 9)


class MatchData:
    """What a page shows of one lane, collected from decision to decision.

    Attributes:
        title: The environment, the players and how it ended, once the match has been played.
    """

    def __init__(self, replay: Replay, lane: int) -> None:
        """Nothing has been played."""
        self.title = name_of(replay.id)
        self._replay, self._lane = replay, lane
        self._list = DisplayList()
        self._images = list[bytes]()
        self._size = (0, 0)
        self._marks = list[dict[str, Any]]()
        self._ends = list[tuple[str | None, str]]()
        self._steps = list[int]()
        self._rows = dict[str, list[np.ndarray]]()
        self._alive: np.ndarray | None = None
        self._was_over = self._is_later = False
        self._operation = self._decision = -1
        self._decisions = dict[int, int]()  # frame by decision
        self._tables: AgentTables | None = None
        self._game: Any = None

    @property
    def decisions(self) -> int:
        """Decisions that were added."""
        return len(self._steps) - 1

    def is_over_for(self, sim: Simulation) -> bool:
        """Whether a simulation has begun another match in the lane."""
        return bool(self._steps) and sim.states["steps"][self._lane] == 0

    def next(self) -> MatchData:
        """One for the match after this one in the lane."""
        other = MatchData(self._replay, self._lane)
        other._operation, other._decision, other._is_later = self._operation, self._decision, True
        return other

    def add(self, sim: Simulation) -> None:
        """Adds what a lane shows after a reset or a decision."""
        if self._tables is None:
            self._game, self._tables = sim.game, AgentTables(sim, self._lane, self._replay)
        number = len(self._steps)
        self._operation += 1
        is_decision = self._replay.operations[self._operation] == STEP
        self._decision += is_decision
        if self._was_over and sim.autoreset_mode == "off" and sim.states["steps"][self._lane] == self._steps[-1]:
            return  # waits for a reset while other lanes go on
        if is_decision and number > 0:
            self._decisions[self._decision] = number
        self._steps.append(int(sim.states["steps"][self._lane]))
        self._add_picture(sim.draw(self._lane))
        self._mark(sim, number)
        for name, row in self._tables.rows(self._decision if is_decision else None).items():
            self._rows.setdefault(name, []).append(row)
        for name in self._tables.left_out:
            self._rows.pop(name, None)

    def page(self) -> str:
        """The page of what was played, see `page_of`."""
        header, blocks = self.finish()
        return page_of(header["title"], packed(header, blocks))

    def finish(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Header and arrays, see `packed`."""
        assert self._tables is not None, "a replay has a reset"
        self.title = self._headline()
        self._mark_falls()
        blocks = {name: np.stack(rows) for name, rows in self._rows.items()}
        if self._images:
            starts = np.cumsum([0, *map(len, self._images)], dtype=np.uint32)
            blocks |= {"images": np.frombuffer(b"".join(self._images), np.uint8), "image_starts": starts}
        else:
            blocks |= self._list.blocks()
        header = {
            "format": FORMAT,
            "title": self.title,
            "about": self._about(),
            "fps": self._game.render_fps,
            "width": self._size[0],
            "height": self._size[1],
            "scale": SCALE,
            "frames": len(self._steps),
            "steps": self._steps,
            "teams": _teams(self._game),
            "marks": self._marks,
            "styles": self._list.styles,
            "layers": self._list.layers,
            "letters": self._list.letters,
            **self._tables.header(blocks),
        }
        return header, blocks

    def _add_picture(self, picture: Any) -> None:
        """Operations of a canvas, or pixels as a WebP file; an empty one where they are those of the frame before."""
        if isinstance(picture, Canvas):
            self._size = picture.width, picture.height
            self._list.add(picture)
            return
        pixels = np.asarray(picture)
        self._size = pixels.shape[1], pixels.shape[0]
        file = BytesIO()
        import_pillow()[0].fromarray(pixels).save(file, "WEBP", quality=QUALITY)
        content = file.getvalue()
        last = next((image for image in reversed(self._images) if image), b"")
        self._images.append(b"" if content == last else content)

    def _mark(self, sim: Simulation, number: int) -> None:
        """Notes deaths, arrivals and the end."""
        lane, game = self._lane, sim.game
        is_over, alive = bool(sim.terminated[lane] | sim.truncated[lane]), sim.alive[lane].copy()
        same_match = self._alive is not None and number > 0 and self._steps[number] > self._steps[number - 1]
        for slot, agent in enumerate(game.agents) if same_match else ():
            if alive[slot] != self._alive[slot]:  # pyright: ignore[reportOptionalSubscript]
                kind = "arrival" if alive[slot] else "death"
                self._marks.append({"frame": number, "kind": kind, "text": agent})
        if is_over and number > 0:
            info = sim.final_info if sim.autoreset_mode == "same_step" else sim.info
            winner, reason = int(info["winner"][lane]), game.end_reason(int(info["end_reason"][lane]))
            outcome = f"{game.team_names[winner]} wins" if winner >= 0 and len(game.teams) > 1 else "the end"
            self._marks.append({"frame": number, "kind": "end", "text": f"{outcome}: {reason}"})
            self._ends.append((game.team_names[winner] if winner >= 0 else None, reason))
        self._was_over, self._alive = is_over, alive

    def _mark_falls(self) -> None:
        """Notes the decisions in which the value that a critic gives a team falls most."""
        ends = [mark["frame"] for mark in self._marks if mark["kind"] == "end"]
        for team, values in self._tables.outputs_of("value") if self._tables and self._decisions else ():
            values, after = values[list(self._decisions)], np.array(list(self._decisions.values()))
            falls = np.nan_to_num(-np.diff(values), nan=0.0)
            falls[np.isin(after[:-1], ends)] = 0.0  # the next value is one of the next match
            least = LEAST_FALL * np.ptp(values[np.isfinite(values)]) if np.isfinite(values).any() else 0.0
            for k in np.argsort(-falls, kind="stable")[:FALLS]:
                if falls[k] > least:
                    text = f"{team}'s value falls from {values[k]:.3g} to {values[k + 1]:.3g}"
                    self._marks.append({"frame": int(after[k]), "kind": "fall", "text": text})
        self._marks.sort(key=lambda mark: mark["frame"])

    def _headline(self) -> str:
        """See `headline`; of a lane with several matches their number."""
        players = dict(zip(self._replay.players, short_names(list(self._replay.players.values())), strict=True))
        if len(self._ends) < 2:
            winner, reason = self._ends[0] if self._ends else (None, "")
            return headline(self._replay.id, players, winner, reason, len(self._steps) - 1)
        pairing = " and ".join(f"{player} ({team})" for team, player in players.items())
        return f"{name_of(self._replay.id)}: {pairing}, {len(self._ends)} matches"

    def _about(self) -> list[tuple[str, str]]:
        """What is told of the match, in words."""
        replay, lane = self._replay, self._lane
        texts = {name: repr(value) for name, value in replay.keywords.items()}
        seed = str(replay.seeds[lane]) + (" (went on from an earlier match)" if replay.streams_went_on else "")
        seed += " (of the first recorded match, this is a later one)" if self._is_later else ""
        file = replay.path or "match.npz"
        of_lane = f" --lane {lane}" if lane else ""
        return [
            ("id", replay.id),
            *((name, text if len(text) <= LONGEST else f"{text[:LONGEST]} ...") for name, text in texts.items()),
            ("seed", seed),
            *((team, player) for team, player in replay.players.items()),
            ("decisions", str(len(self._steps) - 1)),
            ("palaestra", replay.palaestra),
            *((("engine", replay.engine),) if replay.engine else ()),
            ("rules", replay.rules),
            ("digest", replay.digest),
            ("command", f"palaestra replay {Path(file).name} --verify{of_lane}"),
        ]


def _teams(game: Any) -> list[dict[str, Any]]:
    """Names, colours and agents of the teams."""
    return [
        {
            "name": name,
            "color": list(TEAMS[number] if number < len(TEAMS) else TEXT),
            "agents": [slot for slot, team in enumerate(game.team_index) if team == number],
        }
        for number, name in enumerate(game.teams)
    ]


def _between(page: str, tag: str) -> str:
    """The content of an element without attributes, of which a page has one."""
    return page.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0]


def title_of(page: str) -> str:
    """The title of a page, as markup."""
    return _between(page, "title")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def _font_face() -> str:
    """The typeface of the pictures, so that words have their places in the browser, too."""
    content = font(12).font_bytes if hasattr(font(12), "font_bytes") else b""
    if not content:
        return ""
    return f'@font-face{{font-family:"palaestra";src:url(data:font/ttf;base64,{base64.b64encode(content).decode()})}}'
