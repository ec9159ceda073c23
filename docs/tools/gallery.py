"""Pictures of the environments for their pages: one moment of a match between scripts.

::

    python docs/tools/gallery.py                          # all that have none yet
    python docs/tools/gallery.py palaestra/TeamPong-v0    # that of this id's page anew
    python docs/tools/gallery.py --all                    # all anew

It also puts them side by side, each above its id, into the sheets ``docs/images/environments.png`` and ``robots.png``.
A page shows the first of its presets. The match is always the same: it is played to its end under a fixed seed, then
again up to the decision that `choose` takes.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from palaestra import registry
from palaestra.core.run.simulation import Simulation
from palaestra.drawing.canvas import Canvas, import_pillow
from palaestra.drawing.colors import BACKGROUND, TEXT
from palaestra.game import Page
from palaestra.replay import Recorder, to_html

FOLDER = Path("docs", "images", "environments")
SEED = 11
MOMENT = 0.6
"""Share of the match that has been played in the picture, about."""
PRESENT = 0.5
"""Share of each team that is in the match in the picture, at least."""
LONGEST = 400
"""Decisions of a match that are looked at; longer ones are cut here."""
SHOWN, DRAWN = 120, 24
"""Decisions of a match on a page of the site; and of one that an engine draws, which takes long and is large."""
COLORS = 128
"""Palette of the files."""
SHEETS = {"environments": 5, "robots": 4}
"""Pictures in a row by sheet: the first one has all, another one those of its family."""
CELL, FRAME, LABEL = (340, 286), (320, 240), 20
"""Pixels of a sheet for a picture with its id, for the picture alone, and of the letters."""


def picture_name(page: Page) -> str:
    """File name of a page's picture."""
    return f"{page.name}.png"


def has_picture(id: str) -> bool:
    """Whether the game of an id draws one."""
    return registry.make_game(id)[0].render is not None


def moment(id: str) -> np.ndarray:
    """The picture of an id, uint8 ``[H, W, 3]``.

    Raises:
        NotImplementedError: The game draws none.
        ImportError: Pillow or the game's engine is missing.
    """
    sim = _with_players(id)
    try:
        _play(sim, choose(*_play(sim, LONGEST)))
        return sim.render()
    finally:
        sim.close()


def write_match(id: str, path: Path) -> None:
    """Writes the start of the same match as a page for the browser: `SHOWN` decisions, or `DRAWN` by an engine.

    Raises:
        NotImplementedError: The game draws no picture.
        ImportError: Pillow or the game's engine is missing.
    """
    sim = _with_players(id)
    try:
        with Recorder(sim, check_every=SHOWN) as recorder:
            _play(sim, DRAWN if sim.game.render == "engine" else SHOWN)
            path.parent.mkdir(parents=True, exist_ok=True)
            to_html(recorder.replay(), path)
    finally:
        sim.close()


def _with_players(id: str) -> Simulation:
    """One match between the players of the pictures."""
    sim = registry.make_batch(id, 1, autoreset_mode="off")
    family = registry.FAMILIES.get(registry.row(id).family)
    named = () if family is None else family.players
    for number, team in enumerate(sim.game.teams):
        if len(sim.game.teams) > 1 or sim.game.scripts:
            sought = (*named[number : number + 1], sim.game.default_opponent, *sim.game.scripts)
            sim.set_opponent(team, next((name for name in sought if name in sim.game.scripts), "random"))
    return sim


def choose(is_event: np.ndarray, present: np.ndarray) -> int:
    """The decision that is shown: nearest to `MOMENT` of those in which something happens, or of all.

    If possible, both teams are there.

    Args:
        is_event: bool ``[T]``: somebody was paid or fell.
        present: float ``[T, teams]``: share of each team that is in the match.
    """
    decisions = np.arange(1, len(is_event) + 1)
    are_there = (present >= PRESENT).all(axis=1)
    wanted = (is_event & are_there, is_event, are_there)
    kept = next((kept for kept in wanted if kept.any()), np.ones(len(is_event), bool))
    distance = np.abs(decisions - MOMENT * len(decisions))
    return int(decisions[kept][distance[kept].argmin()])


def _play(sim: Simulation, decisions: int) -> tuple[np.ndarray, np.ndarray]:
    """Plays the match from its start, at most so many decisions. Returns what `choose` takes."""
    sim.reset(seed=SEED)
    events, present = list[bool](), list[list[float]]()
    teams = [sim.game.team_index == number for number in range(len(sim.game.teams))]
    before = sim.alive[0].copy()
    for _ in range(decisions):
        sim.step()
        alive = sim.alive[0].copy()
        events.append(bool(sim.rewards[0].any() or (before & ~alive).any()))
        present.append([float(alive[team].mean()) for team in teams])
        before = alive
        if sim.terminated[0] or sim.truncated[0]:
            break
    return np.array(events), np.array(present)


def write(id: str, root: Path = Path()) -> Path:
    """Draws the picture of the id's page into ``docs/images/environments`` under ``root``. Returns the file."""
    image_module, _, _ = import_pillow()
    page, rows = registry.page_of(id)
    path = root / FOLDER / picture_name(page)
    path.parent.mkdir(parents=True, exist_ok=True)
    image_module.fromarray(moment(rows[0].id)).quantize(COLORS, dither=0).save(path, optimize=True)
    return path


def draw_sheet(name: str, root: Path = Path()) -> Any:
    """Puts the pictures of a sheet's pages side by side, each above the id that it shows. Returns Pillow's image."""
    image_module, _, _ = import_pillow()
    shown = [
        (rows[0].id.rpartition("/")[2], picture)
        for page, rows in registry.pages()
        if rows[0].id.startswith("palaestra/")
        and (name == next(iter(SHEETS)) or rows[0].family == name)
        and (picture := root / FOLDER / picture_name(page)).exists()
    ]
    columns, (wide, high) = SHEETS[name], CELL
    places = [(wide * (k % columns), high * (k // columns)) for k in range(len(shown))]
    canvas = Canvas(wide * columns, high * -(-len(shown) // columns), BACKGROUND)
    for (id, _), (left, top) in zip(shown, places, strict=True):
        canvas.text((left + wide / 2, top + high - LABEL / 2), id, TEXT, LABEL, "ms")
    sheet = canvas.finish()
    for (_, path), (left, top) in zip(shown, places, strict=True):
        picture = image_module.open(path).convert("RGB")
        picture.thumbnail(FRAME, image_module.Resampling.LANCZOS)
        sheet.paste(picture, (left + (wide - picture.width) // 2, top + 10 + (FRAME[1] - picture.height) // 2))
    return sheet


def write_sheet(name: str, root: Path = Path()) -> Path:
    """Draws a sheet into ``docs/images`` under ``root``. Returns the file."""
    image_module, _, _ = import_pillow()
    path = root / FOLDER.parent / f"{name}.png"
    coverage = image_module.Quantize.MAXCOVERAGE  # keeps rare colours: signals
    draw_sheet(name, root).quantize(2 * COLORS, method=coverage, dither=0).save(path, optimize=True)
    return path


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "ids", nargs="*", metavar="ID", help="draw those of their pages anew; without any, those that are missing"
    )
    parser.add_argument("--all", action="store_true", help="draw all anew")
    parser.add_argument("--root", type=Path, default=Path(), help="folder of docs/ (default: here)")
    given = parser.parse_args(arguments)
    ids = [registry.row(id).id for id in given.ids]
    if not ids:
        pages = [(page, rows[0].id) for page, rows in registry.pages() if rows[0].id.startswith("palaestra/")]
        ids = [
            id
            for page, id in pages
            if has_picture(id) and (given.all or not (given.root / FOLDER / picture_name(page)).exists())
        ]
    for id in ids:
        print(f"wrote: {write(id, given.root)}")
    for name in SHEETS:
        if ids or not (given.root / FOLDER.parent / f"{name}.png").exists():
            print(f"wrote: {write_sheet(name, given.root)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
