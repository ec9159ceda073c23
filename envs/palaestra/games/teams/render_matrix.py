"""Pictures of the matrix games."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from palaestra.drawing.board import Board
from palaestra.drawing.canvas import Canvas
from palaestra.drawing.colors import BACKGROUND, MUTED, PANEL, SIGNAL, TEAMS, TEXT, blend
from palaestra.game import Game
from palaestra.games.teams.trap import worth

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


CELLS, SHADES = 80, 32
"""Cells of a side of the map of `trap`, and its colours."""


def draw_trap(game: Game, world: Any, s: np.void) -> Canvas:
    """Draws one match of `trap`: the worth of the places of the first agent (across) and of the second (up).

    Args:
        game: The rules.
        world: Unused.
        s: The match record.

    Returns:
        600 x 622 pixels; the pair that was chosen is marked.
    """
    match = s.view((np.record, s.dtype))
    board = Board(MARGIN + LABELS, HEADER, (WIDTH - 2 * MARGIN - LABELS) / CELLS, CELLS, CELLS)
    canvas = Canvas(WIDTH, HEADER + LABELS + round(board.side * CELLS) + MARGIN, BACKGROUND)
    places = (np.arange(CELLS) + 0.5) / CELLS * 2 - 1
    worths = np.array([[worth(x, y, float(match.parameters.width)) for x in places] for y in places[::-1]])
    palette = [blend(PANEL, TEAMS[0], 0.9 * shade / (SHADES - 1)) for shade in range(SHADES)]
    board.draw_cells(canvas, np.round(worths * (SHADES - 1)).astype(np.int64), palette)
    bottom = HEADER + CELLS * board.side
    canvas.text((board.center(0, CELLS / 2)[0], bottom + 26), "place of agent_0", MUTED, 14, "ms")
    canvas.text((MARGIN, board.center(CELLS / 2, 0)[1]), "agent_1", MUTED, 14)
    canvas.text((MARGIN, 26), game.name, TEXT, 16)
    if match.info.end_reason != 0:
        canvas.text((WIDTH - MARGIN, 26), f"paid {float(match.paid):.3f}", SIGNAL, 16, "rs")
        row, column = ((1 - match.place[1]) * CELLS - 1) / 2, ((1 + match.place[0]) * CELLS - 1) / 2
        board.draw_marks(canvas, np.array([[row, column]]), np.zeros(1, np.int64), [SIGNAL], size=1.2)
    return canvas
