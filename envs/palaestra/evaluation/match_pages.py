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
from palaestra.replay.headline import headline, name_of, short_names
from palaestra.replay.page import filled, make_pages

AT_ONCE = 64
"""Matches that are played again at the same time."""


def write_pages(
    folder: str | Path,
    table: MatchTable,
    players: tuple[OpponentSpec, OpponentSpec],
    keywords: Mapping[str, Any],
    progress: Progress | None = None,
    pages: int | None = None,
) -> Path:
    """Plays the matches of a table again and writes a page of each, their replays, and an index of all.

    Args:
        folder: Where files go; made where it is not there.
        table: What was played.
        players: The two players of the table; None for the second where there is one team.
        keywords: As for `palaestra.evaluation.evaluate`.
        progress: Called with the numbers of written and of all pages.
        pages: How many of the first matches get a page; None for all. The index lists all.

    Returns:
        The index, ``index.html``.

    Raises:
        ValueError: A match went another way when it was played again: a player is not a function of what it sees.
        ImportError: Pillow is missing.
    """
    folder, rules = Path(folder), {name: value for name, value in keywords.items() if name != "workers"}
    folder.mkdir(parents=True, exist_ok=True)
    pages = table.matches if pages is None else min(pages, table.matches)
    written = 0
    for side in (0, 1):
        given = dict(zip(list(table.game.teams)[:: 1 if side == 0 else -1], players, strict=False))  # a first
        rows = np.flatnonzero(table.results["side"][:pages] == side)
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
                    progress(written, pages)
    index = folder / "index.html"
    _write(index, index_of(table, pages))
    return index


def index_of(table: MatchTable, pages: int | None = None) -> str:
    """The page that lists the matches of a table, of which the first ``pages`` (all if None) have one of their own."""
    players = short_names([table.a, table.b] if table.b else [table.a])
    teams, matches = list(table.game.teams), []
    for row, match in enumerate(table.results):
        outcome, side = int(match["outcome"]), int(match["side"])
        by_team = dict(zip(teams, players if side == 0 else players[::-1], strict=False))
        winner = teams[side if outcome > 0 else 1 - side] if outcome and table.b else None
        end, decisions = table.game.end_reason(int(match["end_reason"])), int(match["steps"])
        matches.append(
            {
                "file": _name(row) if pages is None or row < pages else "",
                "seed": str(match["seed"]),
                "first": by_team[teams[0]],
                "winner": by_team[winner] if winner else "",
                "outcome": outcome,
                "end": end,
                "decisions": decisions,
                "return": float(match["return_a"]),
                "title": headline(table.id, by_team, winner, end, decisions),
            }
        )
    title = f"{name_of(table.id)}: {' against '.join(players)}, {table.matches} matches"
    data = {"title": title, "about": str(table), "player": players[0], "has_two": bool(table.b), "matches": matches}
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    files = [Path(__file__).with_name(name) for name in ("match_index.html", "match_index.js")]
    return filled(*files, title=title, data=text, sources="frame-src 'self' file:")


def _rows_of(results: np.ndarray) -> np.ndarray:
    """Results as a replay holds them: lane, decisions, number of the winning team, number of the end reason."""
    outcome, side = results["outcome"], results["side"]
    winner = np.where(outcome == 0, -1, np.where(outcome == 1, side, 1 - side))
    return np.column_stack([np.arange(len(results)), results["steps"], winner, results["end_reason"]])


def _name(row: int) -> str:
    return f"match_{row:04}.html"


def _write(path: Path, page: str) -> None:
    write_atomically(path, lambda file: file.write(page.encode()))
