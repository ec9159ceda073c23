"""The matches of an evaluation as pages for a browser: one each, and an index to find them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from palaestra.core.files import write_atomically
from palaestra.core.run.opponents import OpponentSpec
from palaestra.evaluation.matches import MatchTable, Progress
from palaestra.replay import record
from palaestra.replay.page import filled, make_pages

AT_ONCE = 64
"""Matches that are played again at the same time."""


def write_pages(
    folder: str | Path,
    table: MatchTable,
    players: tuple[OpponentSpec, OpponentSpec],
    keywords: Mapping[str, Any],
    progress: Progress | None = None,
) -> Path:
    """Plays the matches of a table again and writes a page of each, their replays, and an index of all.

    Args:
        folder: Where files go; made where it is not there.
        table: What was played.
        players: The two players of the table; None for the second where there is one team.
        keywords: As for `palaestra.evaluation.evaluate`.
        progress: Called with the numbers of written and of all pages.

    Returns:
        The index, ``index.html``.

    Raises:
        ValueError: A match went another way when it was played again: a player is not a function of what it sees.
        ImportError: Pillow is missing.
    """
    folder, rules = Path(folder), {name: value for name, value in keywords.items() if name != "workers"}
    folder.mkdir(parents=True, exist_ok=True)
    written = 0
    for side in (0, 1):
        given = dict(zip(table.game.teams, players if side == 0 else players[::-1], strict=False))
        rows = np.flatnonzero(table.results["side"] == side)
        for start in range(0, len(rows), AT_ONCE):
            some = rows[start : start + AT_ONCE]
            results = table.results[some]  # their seeds follow each other
            made = record(table.id, given, seed=int(results["seed"][0]), num_envs=len(some), **rules)
            made = replace(made, path=str(folder / f"matches_{side}_{start:04}.npz"))
            if not np.array_equal(made.match_rows[made.match_rows[:, 0].argsort()], _rows_of(results)):
                raise ValueError(f"{table.id}: played again, a match went another way: a player keeps a memory")
            made.save(made.path)
            for row, page in zip(some, make_pages(made, range(len(some))), strict=True):
                _write(folder / _name(row), page)
                written += 1
                if progress:
                    progress(written, table.matches)
    index = folder / "index.html"
    _write(index, index_of(table))
    return index


def index_of(table: MatchTable) -> str:
    """The page that lists the matches of a table."""
    players = (table.a, table.b or "")
    matches = []
    for row, match in enumerate(table.results):
        outcome, side = int(match["outcome"]), int(match["side"])
        matches.append(
            {
                "file": _name(row),
                "seed": str(match["seed"]),
                "first": players[side],
                "winner": players[0] if outcome > 0 else players[1] if outcome < 0 else "",
                "end": table.game.end_reason(int(match["end_reason"])),
                "decisions": int(match["steps"]),
                "return": round(float(match["return_a"]), 6),
            }
        )
    data = {"title": table.id, "about": str(table), "player": table.a, "has_two": bool(table.b), "matches": matches}
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    files = [Path(__file__).with_name(name) for name in ("match_index.html", "match_index.js")]
    return filled(*files, title=table.id, data=text, sources="frame-src 'self' file:")


def _rows_of(results: np.ndarray) -> np.ndarray:
    """Results as a replay holds them: lane, decisions, number of the winning team, number of the end reason."""
    outcome, side = results["outcome"], results["side"]
    winner = np.where(outcome == 0, -1, np.where(outcome == 1, side, 1 - side))
    return np.column_stack([np.arange(len(results)), results["steps"], winner, results["end_reason"]])


def _name(row: int) -> str:
    return f"match_{row:04}.html"


def _write(path: Path, page: str) -> None:
    write_atomically(path, lambda file: file.write(page.encode()))
