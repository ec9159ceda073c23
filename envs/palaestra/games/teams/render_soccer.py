"""Pictures of soccer on a grid."""

from __future__ import annotations

from typing import Any

import numpy as np

from palaestra.drawing.board import Board
from palaestra.drawing.canvas import Canvas
from palaestra.drawing.colors import BACKGROUND, LINE, MUTED, PANEL, SIGNAL, TEAMS, TEXT, blend, fade
from palaestra.game import Game
from palaestra.games.teams.soccer import BLUE, RED, team_of

WIDTH, HEADER, MARGIN = 600, 40, 18
NET = 42
"""Depth of a goal behind its mouth, pixels."""
TALLEST = 440
"""Height of the tallest pitch, pixels."""
GRASS = blend(PANEL, (46, 120, 84), 0.35)
"""Colour of every other cell; the rest is a little darker."""


def board_of(rows: int, columns: int) -> Board:
    """The pitch in pixels."""
    side = min((WIDTH - 2 * (MARGIN + NET)) // columns, TALLEST // rows)
    return Board((WIDTH - side * columns) / 2, HEADER, side, rows, columns)


def draw_soccer(game: Game, world: Any, s: np.void) -> Canvas:
    """Draws one match of `palaestra.games.teams.soccer`: players with their numbers, the ball, the goals by team.

    Args:
        game: The rules.
        world: The pitch.
        s: The match record.

    Returns:
        600 x H pixels; H goes with the shape of the pitch.
    """
    match = s.view((np.record, s.dtype))  # fields as attributes, as in the rules
    board = board_of(world.rows, world.columns)
    canvas = Canvas(WIDTH, HEADER + int(board.side) * board.rows + MARGIN, BACKGROUND)
    draw_header(canvas, game, world, match)
    draw_pitch(canvas, board, world)
    for slot in range(len(match.row)):
        draw_player(canvas, board, match, slot)
    return canvas


def draw_header(canvas: Canvas, game: Game, world: Any, match: Any) -> None:
    """Names, the holder of the ball or the scorer, and the number of the decision."""
    base = 26
    names = list(game.teams)
    canvas.text((MARGIN, base), game.name, TEXT, 16)
    winner, holder = int(match.info.winner), team_of(match, int(match.holder))
    if winner >= 0:
        canvas.text((WIDTH / 2, base), f"{names[winner]} scores", TEAMS[winner], 16, "ms")
    elif len(world.orders) > 1:
        canvas.text((WIDTH / 2, base), f"{names[int(match.turn)]} to move", TEAMS[int(match.turn)], 14, "ms")
    else:
        canvas.text((WIDTH / 2, base), f"{names[holder]} has the ball", TEAMS[holder], 14, "ms")
    canvas.text((WIDTH - MARGIN, base), f"{int(match.steps)} / {match.parameters.horizon:.0f}", MUTED, 14, "rs")


def draw_pitch(canvas: Canvas, board: Board, world: Any) -> None:
    """Cells, and a goal on each side in the colour of the team that guards it."""
    half = board.side / 2
    board.draw_cells(canvas, np.indices((board.rows, board.columns)).sum(0) % 2, (blend(GRASS, PANEL, 0.35), GRASS))
    for team, column, side in ((RED, 0, -1), (BLUE, board.columns - 1, 1)):
        x, top = board.center(world.mouth_first_row, column)
        bottom = board.center(world.mouth_last_row, column)[1] + half
        line, top = x + side * half, top - half
        back = line + side * NET
        canvas.rectangle(min(line, back), top, max(line, back), bottom, fade(TEAMS[team], 0.14))
        for across in np.arange(top + 10, bottom, 10):
            canvas.line([(line, across), (back, across)], fade(LINE, 0.8))
        for along in np.arange(10, NET, 10):
            canvas.line([(line + side * along, top), (line + side * along, bottom)], fade(LINE, 0.8))
        canvas.line([(back, top), (back, bottom)], fade(TEAMS[team], 0.5), 2)
        canvas.line([(line, top), (line, bottom)], TEAMS[team], 4)


def draw_player(canvas: Canvas, board: Board, match: Any, slot: int) -> None:
    """A disc with the player's number; the holder wears a ring and the ball. A scorer is drawn in the goal."""
    size = board.side
    x, y = board.center(int(match.row[slot]), int(match.column[slot]))
    team, holds, radius = team_of(match, slot), slot == match.holder, 0.3 * size
    if holds and match.info.winner >= 0:
        radius = min(radius, 0.4 * NET)
        x += (0.5 * size + 0.5 * NET) * (1 if team == RED else -1)
    canvas.circle((x, y), radius, TEAMS[team], blend(TEAMS[team], BACKGROUND, 0.45), 2)
    if holds:
        canvas.circle((x, y), 1.2 * radius, None, SIGNAL, 3)
        canvas.circle((x + 0.85 * radius, y + 0.85 * radius), 0.3 * radius, SIGNAL, BACKGROUND, 2)
    number = slot % (len(match.row) // 2)
    letters = max(11, round(radius))
    canvas.text((x, y + 0.36 * letters), str(number), BACKGROUND, letters, "ms")
