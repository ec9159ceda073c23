"""Pictures of the matrix games."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from palaestra.drawing.canvas import Canvas, Point
from palaestra.drawing.colors import BACKGROUND, MUTED, PANEL, SIGNAL, TEAMS, TEXT, blend
from palaestra.game import Game

WIDTH, HEADER, MARGIN = 600, 40, 18
LABELS = 56
"""Room for the joint choices beside and above the table, pixels."""
LARGEST_WITH_NUMBERS = 9
"""Joint choices of a team; larger tables show their colours alone."""


def cell_side(choices: int) -> float:
    """Side of a cell, pixels."""
    return (WIDTH - 2 * MARGIN - LABELS) / choices**2


def cell_center(choices: int, row: int, column: int) -> Point:
    """Pixels of the middle of the cell of two joint choices."""
    side = cell_side(choices)
    return MARGIN + LABELS + (column + 0.5) * side, HEADER + LABELS + (row + 0.5) * side


def draw_matrix(game: Game, world: Any, s: np.void) -> Canvas:
    """Draws one match of `matrix`: what red gets for its joint choices (down) and blue's (across).

    Args:
        game: The rules.
        world: The table.
        s: The match record.

    Returns:
        600 x 614 pixels; what has been chosen last is framed.
    """
    match = s.view((np.record, s.dtype))  # fields as attributes, as in the rules
    choices = len(world.payoff)
    canvas = Canvas(WIDTH, HEADER + LABELS + round(cell_side(choices) * choices**2) + MARGIN, BACKGROUND)
    last = [int(choice) for choice in match.last]
    chosen = (last[0] * choices + last[1], last[2] * choices + last[3]) if match.played > 0 else (-1, -1)
    draw_header(canvas, game, world, match)
    draw_labels(canvas, choices, chosen)
    draw_table(canvas, world.payoff.reshape(choices**2, choices**2), choices)
    if match.played > 0:
        frame_cell(canvas, choices, *chosen)
    return canvas


def draw_header(canvas: Canvas, game: Game, world: Any, match: Any) -> None:
    """Name, what red has got so far, and the round."""
    base = 26
    canvas.text((MARGIN, base), game.name, TEXT, 16)
    total = float(match.total) + 0.0
    color = MUTED if abs(total) < 1e-9 else TEAMS[int(total < 0)]
    canvas.text((WIDTH / 2, base), f"red {total:+.2f}   blue {0.0 - total:+.2f}", color, 16, "ms")
    canvas.text((WIDTH - MARGIN, base), f"round {int(match.played)} / {world.rounds}", MUTED, 14, "rs")


def draw_labels(canvas: Canvas, choices: int, chosen: tuple[int, int]) -> None:
    """The joint choices of both teams."""
    size = min(13, int(0.45 * cell_side(choices)))
    corner = MARGIN + LABELS - 10, HEADER + LABELS - 10
    canvas.text((corner[0], corner[1] - 16), "blue", TEAMS[1], 13, "rs")
    canvas.text((corner[0], corner[1] + 2), "red", TEAMS[0], 13, "rs")
    for joint, teammates in enumerate(product(range(choices), repeat=2)):
        text = f"{teammates[0]} {teammates[1]}"
        x, y = cell_center(choices, joint, joint)
        canvas.text((corner[0], y + 0.36 * size), text, TEAMS[0] if joint == chosen[0] else MUTED, size, "rs")
        canvas.text((x, corner[1]), text, TEAMS[1] if joint == chosen[1] else MUTED, size, "ms")


def draw_table(canvas: Canvas, gains: np.ndarray, choices: int) -> None:
    """A cell for each pair of joint choices, the redder the more red gets."""
    half = cell_side(choices) / 2 - 1
    size = int(0.5 * half)
    for (row, column), gain in np.ndenumerate(gains):
        x, y = cell_center(choices, row, column)
        strength = abs(float(gain))
        color = blend(PANEL, TEAMS[int(gain < 0)], 0.85 * strength**0.7)
        canvas.rectangle(x - half, y - half, x + half, y + half, color, 3)
        if len(gains) <= LARGEST_WITH_NUMBERS:
            text = f"{gain:+.2f}".replace("0.", ".") if strength > 0.004 else "0"
            canvas.text((x, y + 0.36 * size), text, BACKGROUND if strength > 0.6 else TEXT, size, "ms")


def frame_cell(canvas: Canvas, choices: int, row: int, column: int) -> None:
    """A frame around what has been chosen last."""
    x, y = cell_center(choices, row, column)
    half = cell_side(choices) / 2
    corners = [(x - half, y - half), (x + half, y - half), (x + half, y + half), (x - half, y + half)]
    canvas.line([*corners, *corners[:2]], SIGNAL, 3)
