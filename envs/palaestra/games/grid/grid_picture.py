"""Both games on a grid from above, as text, and the meaning of a click. All agents are shown, whoever sees them.

An agent is a disc, or a cell on large maps, in the colour of its team: the darker, the fewer hit points it has.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from palaestra.core.compile.linker import record_view
from palaestra.drawing.board import SEPARATE, Board
from palaestra.drawing.canvas import Canvas
from palaestra.drawing.colors import BACKGROUND, LINE, MUTED, PANEL, TEAMS, TEXT, blend, fade
from palaestra.drawing.widgets import draw_bar
from palaestra.game import Game
from palaestra.games.grid.grid_ground import FREE, FULL, alternatives_of, is_offered, occupant, side_of

WIDTH, HEADER, MARGIN, BASE = 640, 58, 20, 24
"""Pixels of the picture, of the part above the map, beside it, and of the base line of the title."""
MAP = 600
"""Pixels of the largest map."""
NUMBERED = 20
"""Agents in cells of at least so many pixels wear their numbers."""
SHADES = 5
DARKEST = 0.62
CHARACTERS = 60
"""Of a line of the map as text; a larger map has several cells a character."""
LETTERS = ("x", "o")
"""Of the teams in the map as text."""
COLORS = [PANEL, *(blend(color, PANEL, DARKEST * (1 - n / (SHADES - 1))) for color in TEAMS for n in range(SHADES))]
"""A free cell; then for each team the shades from few hit points to all."""


def board_of(size: int) -> Board:
    """The map in pixels."""
    side = MAP // size
    return Board((WIDTH - side * size) // 2, HEADER, side, size, size)


def draw(game: Game, world: Any, s: Any) -> Canvas:
    """Draws a match.

    Args:
        game: The rules.
        world: Their numbers.
        s: The match record.

    Returns:
        640 x H pixels; H goes with the map.
    """
    match: Any = record_view(s)
    size = world.size
    board = board_of(size)
    edge = board.side * size
    canvas = Canvas(WIDTH, HEADER + edge + MARGIN, BACKGROUND)
    draw_header(canvas, game, match)
    living = np.flatnonzero(match.alive)
    rows, columns = match.row[living], match.column[living]
    kinds = 1 + SHADES * match.team[living] + np.ceil(match.hit_points[living] * (SHADES / FULL)).astype(int) - 1
    if board.side < SEPARATE:
        cells = np.zeros((size, size), int)
        cells[rows, columns] = kinds
        board.draw_cells(canvas, cells, COLORS)
        return canvas
    canvas.rectangle(board.left, board.top, board.left + edge, board.top + edge, PANEL)
    for n in range(1, size):
        across, down = board.left + n * board.side, board.top + n * board.side
        canvas.line([(across, board.top), (across, board.top + edge)], fade(LINE, 0.35))
        canvas.line([(board.left, down), (board.left + edge, down)], fade(LINE, 0.35))
    board.draw_marks(canvas, np.stack([rows, columns], 1), kinds, COLORS, 0.42)
    if board.side >= NUMBERED:
        letters = round(0.45 * board.side)
        for slot, row, column in zip(living.tolist(), rows.tolist(), columns.tolist(), strict=True):
            x, y = board.center(row, column)
            canvas.text((x, y + 0.36 * letters), game.agents[slot].rpartition("_")[2], BACKGROUND, letters, "ms")
    return canvas


def draw_header(canvas: Canvas, game: Game, match: Any) -> None:
    """Title, result and time; the living of both teams as bars from the middle outwards."""
    canvas.text((MARGIN, BASE), game.name, TEXT, 16)
    canvas.text((WIDTH - MARGIN, BASE), f"{int(match.steps)} / {match.parameters.horizon:.0f}", MUTED, 14, "rs")
    canvas.text((WIDTH / 2, BASE), *result(game, match), 14, "ms")
    middle, top, long = WIDTH / 2, BASE + 12, 190
    for team, (name, slots) in enumerate(game.teams.items()):
        left, side = int(match.left[team]), 1 if team else -1
        ends = sorted((middle + side * 6, middle + side * (6 + long)))
        draw_bar(canvas, (ends[0], top, ends[1], top + 8), left / len(slots), TEAMS[team])
        at = (middle + side * (14 + long), top + 9)
        canvas.text(at, f"{name} {left}", TEAMS[team], 13, "ls" if team else "rs")


def result(game: Game, match: Any) -> tuple[str, Any]:
    """The words in the middle of the header and their colour."""
    winner = int(match.info.winner)
    if winner >= 0:
        return f"{list(game.teams)[winner]} has won", TEAMS[winner]
    if "catches" in match.info.dtype.names:
        return f"{int(match.info.catches)} caught", TEXT
    return "", TEXT


def write(game: Game, world: Any, s: Any) -> str:
    """The map as text: x or o, the team with more hit points in each cell, in capitals from a half of all on."""
    match: Any = record_view(s)
    size = world.size
    scale = -(-size // CHARACTERS)
    side = -(-size // scale)
    points = np.zeros((2, side, side), int)
    agents = np.zeros((2, side, side), int)
    living = np.flatnonzero(match.alive)
    place = (match.team[living], match.row[living] // scale, match.column[living] // scale)
    np.add.at(points, place, match.hit_points[living])
    np.add.at(agents, place, 1)
    stronger = points.argmax(0)
    most, count = points.max(0), np.take_along_axis(agents, stronger[None], 0)[0]
    letters = np.array(LETTERS)[stronger]
    letters = np.where(2 * most >= FULL * count, np.char.upper(letters), letters)
    lines = ["".join(line) for line in np.where(most > 0, letters, ".")]
    counts = ", ".join(f"{team} ({x}) {int(n)}" for team, x, n in zip(game.teams, LETTERS, match.left, strict=True))
    each = f", {scale} x {scale} cells a character" if scale > 1 else ""
    words = result(game, match)[0]
    return "\n".join([f"{game.name} {int(match.steps)}: {counts}{each}{f', {words}' if words else ''}", *lines])


def click(game: Game, world: Any, s: Any, slot: int, x: int, y: int) -> int | str | None:
    """The meaning of a click for an agent: a cell that it may move to, an opponent that it may hit, or a teammate.

    Args:
        game: The rules.
        world: Their numbers.
        s: The match record.
        slot: The agent.
        x: Column of the pixel.
        y: Row of the pixel.

    Returns:
        The number of the alternative, the name of the teammate to command next, or None where there is neither.
    """
    match: Any = record_view(s)
    cell = board_of(world.size).cell_at(x, y)
    if cell is None:
        return None
    row, column = cell
    if match.alive[slot]:
        way = row - int(match.row[slot]), side_of(match, world, slot) * (column - int(match.column[slot]))
        for act, (down, ahead) in enumerate(alternatives_of(match, world, slot).ways.tolist()):
            if way == (down, ahead) and is_offered(match, world, slot, act):
                return act
    other = int(occupant(match, row, column)) - 1
    if other >= FREE and match.team[other] == match.team[slot]:
        return game.agents[other]
    return None
