"""The picture and the text of a game that has none of its own: what stands in the match record."""

from __future__ import annotations

from typing import Any

import numpy as np

from palaestra.drawing.canvas import Canvas
from palaestra.drawing.colors import MUTED, SIGNAL, TEXT
from palaestra.drawing.widgets import draw_rows

WIDTH, LINE_HEIGHT, MARGIN = 640, 18, 14
NAMES_WIDTH = 170
MOST_LINES = 40
"""Fields of the record that are shown at most."""
MOST_CHARACTERS = 72
"""Of one value; the rest is cut."""


def draw(game: Any, world: Any, s: Any) -> Canvas:
    """Draws one match: who is in it, how it stands, and the author's fields.

    Args:
        game: The rules.
        world: Its world, unused.
        s: The match record.

    Returns:
        W x H pixels, of the same size for every match of a game.
    """
    lines = lines_of(game, s)
    canvas = Canvas(WIDTH, 2 * MARGIN + LINE_HEIGHT * (len(lines) + 1))
    canvas.text((MARGIN, MARGIN), game.name, SIGNAL, 14, "la")
    below, split = canvas.height, MARGIN + NAMES_WIDTH
    names, values = [(name, MUTED) for name, _ in lines], [(value, TEXT) for _, value in lines]
    draw_rows(canvas, (MARGIN, MARGIN + 12, split - 8, below), names, 12, LINE_HEIGHT)
    draw_rows(canvas, (split, MARGIN + 12, WIDTH - MARGIN, below), values, 12, LINE_HEIGHT)
    return canvas


def write(game: Any, world: Any, s: Any) -> str:
    """Writes what `draw` shows, one line a field."""
    lines = [("game", game.name), *lines_of(game, s)]
    width = max(len(name) for name, _ in lines)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in lines)


def lines_of(game: Any, s: Any) -> list[tuple[str, str]]:
    """Names and values that the picture shows of a match; agents that are not asked now stand in brackets."""
    end = game.end_reason(int(s["info"]["end_reason"])) or "running"
    winner = game.team_names[int(s["info"]["winner"])] or "nobody"
    players = [
        agent if s["acting"][slot] else f"({agent})" for slot, agent in enumerate(game.agents) if s["alive"][slot]
    ]
    lines = [
        ("decision", f"{int(s['steps'])} of {int(s['parameters']['horizon'])}"),
        ("match", f"{end}, winner {winner}"),
        ("in the match", " ".join(players)),
    ]
    lines += [(name, _text(s[name])) for name, *_ in list(game.state)[: MOST_LINES - len(lines)]]
    return [
        (name, value if len(value) <= MOST_CHARACTERS else f"{value[:MOST_CHARACTERS]} ...") for name, value in lines
    ]


def _text(value: Any) -> str:
    if value.dtype.names is not None:
        return str(value)
    return np.array2string(value, precision=3, separator=" ", threshold=24).replace("\n", "")
