"""Pictures of the matrix games."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from palaestra.drawing.board import Board
from palaestra.drawing.canvas import Canvas
from palaestra.drawing.colors import BACKGROUND, MUTED, PANEL, SIGNAL, TEAMS, TEXT, blend
from palaestra.game import Game

WIDTH, HEADER, MARGIN = 600, 40, 18
LABELS = 56
"""Room for the joint choices beside and above the table, pixels."""
LARGEST_WITH_NUMBERS = 9
"""Joint choices of a team; larger tables show their colours alone."""


def board_of(choices: int) -> Board:
    """The table in pixels: a cell for two joint choices."""
    side = (WIDTH - 2 * MARGIN - LABELS) / choices**2
    return Board(MARGIN + LABELS, HEADER + LABELS, side, choices**2, choices**2)


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
    board = board_of(choices)
    canvas = Canvas(WIDTH, HEADER + LABELS + round(board.side * board.rows) + MARGIN, BACKGROUND)
    last = [int(choice) for choice in match.last]
    chosen = (last[0] * choices + last[1], last[2] * choices + last[3]) if match.played > 0 else (-1, -1)
    draw_header(canvas, game, world, match)
    draw_labels(canvas, board, choices, chosen)
    draw_table(canvas, board, world.payoff.reshape(choices**2, choices**2))
    if match.played > 0:
        frame_cell(canvas, board, *chosen)
    return canvas


def draw_header(canvas: Canvas, game: Game, world: Any, match: Any) -> None:
    """Name, what red has got so far, and the round."""
    base = 26
    canvas.text((MARGIN, base), game.name, TEXT, 16)
    total = float(match.total) + 0.0
    color = MUTED if abs(total) < 1e-9 else TEAMS[int(total < 0)]
    canvas.text((WIDTH / 2, base), f"red {total:+.2f}   blue {0.0 - total:+.2f}", color, 16, "ms")
    canvas.text((WIDTH - MARGIN, base), f"round {int(match.played)} / {world.rounds}", MUTED, 14, "rs")


def draw_labels(canvas: Canvas, board: Board, choices: int, chosen: tuple[int, int]) -> None:
    """The joint choices of both teams."""
    joint = list(product(range(choices), repeat=2))
    corner = MARGIN + LABELS - 10, HEADER + LABELS - 10
    canvas.text((corner[0], corner[1] - 16), "blue", TEAMS[1], 13, "rs")
    canvas.text((corner[0], corner[1] + 2), "red", TEAMS[0], 13, "rs")
    down, across = (
        [(f"{one} {other}", TEAMS[team] if one * choices + other == chosen[team] else MUTED) for one, other in joint]
        for team in (0, 1)
    )
    board.draw_labels(canvas, down, across, min(13, int(0.45 * board.side)))


def draw_table(canvas: Canvas, board: Board, gains: np.ndarray) -> None:
    """A cell for each pair of joint choices, the redder the more red gets."""
    colors = [blend(PANEL, TEAMS[int(gain < 0)], 0.85 * abs(float(gain)) ** 0.7) for gain in gains.flat]
    board.draw_cells(canvas, np.arange(gains.size).reshape(gains.shape), colors, 3)
    size = int(0.5 * (board.side / 2 - 1))
    for (row, column), gain in np.ndenumerate(gains) if len(gains) <= LARGEST_WITH_NUMBERS else ():
        (x, y), strength = board.center(row, column), abs(float(gain))
        text = f"{gain:+.2f}".replace("0.", ".") if strength > 0.004 else "0"
        canvas.text((x, y + 0.36 * size), text, BACKGROUND if strength > 0.6 else TEXT, size, "ms")


def frame_cell(canvas: Canvas, board: Board, row: int, column: int) -> None:
    """A frame around what has been chosen last."""
    (x, y), half = board.center(row, column), board.side / 2
    corners = [(x - half, y - half), (x + half, y - half), (x + half, y + half), (x - half, y + half)]
    canvas.line([*corners, *corners[:2]], SIGNAL, 3)
