"""Pictures of pong."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from palaestra.drawing.canvas import Canvas, Point
from palaestra.drawing.colors import BACKGROUND, LINE, MUTED, PANEL, SIGNAL, TEAMS, TEXT, blend, fade
from palaestra.game import Game
from palaestra.games.teams.pong import (
    BALL,
    BLUE,
    FRONT,
    HALF_HEIGHT,
    HALF_WIDTH,
    RED,
    THICKNESS,
    folded,
    gap_of,
    wall_side,
)

SCALE = 2.5
"""Pixels in a unit."""
HEADER, MARGIN = 40, 16
WIDTH = round(2 * (SCALE * HALF_WIDTH + MARGIN))
HEIGHT = round(HEADER + 2 * SCALE * HALF_HEIGHT + MARGIN)
TRAIL, TRAIL_SUBSTEPS = 24, 0.75
"""Dots of the trail, and substeps between two of them."""


def place(x: float, y: float) -> Point:
    """Pixels of a point of the arena."""
    return WIDTH / 2 + SCALE * x, HEADER + SCALE * (HALF_HEIGHT - y)


def draw_pong(game: Game, world: Any, s: np.void) -> Canvas:
    """Draws one match of `palaestra.games.teams.pong`: the paddles, the ball and where it comes from.

    Args:
        game: The rules.
        world: Unused.
        s: The match record.

    Returns:
        620 x 556 pixels.
    """
    match = s.view((np.record, s.dtype))  # fields as attributes, as in the rules
    canvas = arena().copy()
    draw_header(canvas, game, match)
    for slot in range(len(match.paddle_y)):
        draw_paddle(canvas, match, slot)
    draw_ball(canvas, match)
    return canvas


def draw_header(canvas: Canvas, game: Game, match: Any) -> None:
    """Name, returns so far or the team that scored, speed factor, and the number of the decision."""
    base, winner = 26, int(match.info.winner)
    canvas.text((MARGIN, base), game.name, TEXT, 16)
    if winner >= 0:
        canvas.text((WIDTH / 2, base), f"point for {list(game.teams)[winner]}", TEAMS[winner], 16, "ms")
    else:
        rally = f"{int(match.info.hits)} returns, speed {match.speed_factor:.2f}"
        canvas.text((WIDTH / 2, base), rally, SIGNAL, 14, "ms")
    canvas.text((WIDTH - MARGIN, base), f"{int(match.steps)} / {match.parameters.horizon:.0f}", MUTED, 14, "rs")


@functools.cache
def arena() -> Canvas:
    """The floor, the middle line, and the walls in the colours of the teams that guard them."""
    canvas = Canvas(WIDTH, HEIGHT, BACKGROUND)
    left, top = place(-HALF_WIDTH, HALF_HEIGHT)
    right, bottom = place(HALF_WIDTH, -HALF_HEIGHT)
    middle = (left + right) / 2
    canvas.rectangle(left, top, right, bottom, PANEL)
    for team in (RED, BLUE):
        # The goal of a team glows, the weaker the farther from the wall.
        wall = left if team == RED else right
        for k in range(12):
            inner = wall - wall_side(team) * 5 * (k + 1)
            canvas.rectangle(min(wall, inner), top, max(wall, inner), bottom, fade(TEAMS[team], 0.016))
        canvas.line([(wall, top), (wall, bottom)], TEAMS[team], 3)
    canvas.circle((middle, (top + bottom) / 2), 60, None, LINE, 1.5)
    canvas.dashes((middle, top), (middle, bottom), LINE, 2, 8)
    for edge in (top, bottom):
        canvas.line([(left, edge), (right, edge)], LINE, 3)
    return canvas


def draw_paddle(canvas: Canvas, match: Any, slot: int) -> None:
    """A bar on its track; front paddles are a little lighter."""
    players = len(match.paddle_y) // 2
    team, k = slot // players, slot % players
    x = wall_side(team) * (HALF_WIDTH - gap_of(match, k))
    half = match.parameters.paddle_length / 2
    canvas.line([place(x, HALF_HEIGHT), place(x, -HALF_HEIGHT)], fade(TEAMS[team], 0.10), 1)
    color = blend(TEAMS[team], TEXT, 0.25) if k == FRONT else TEAMS[team]
    left, top = place(x - THICKNESS / 2, match.paddle_y[slot] + half)
    right, bottom = place(x + THICKNESS / 2, match.paddle_y[slot] - half)
    canvas.rectangle(left - 4, top - 4, right + 4, bottom + 4, fade(color, 0.15), 8)
    canvas.rectangle(left, top, right, bottom, color, 4)


def draw_ball(canvas: Canvas, match: Any) -> None:
    """The ball, and a trail of where it would have been with the velocity that it has."""
    (x, y), (velocity_x, velocity_y) = match.ball_position, match.ball_velocity
    for k in range(TRAIL, 0, -1):
        back_x, back_y = x - k * TRAIL_SUBSTEPS * velocity_x, folded(y - k * TRAIL_SUBSTEPS * velocity_y)
        if abs(back_x) < HALF_WIDTH:
            left_over = 1 - k / (TRAIL + 1)
            canvas.circle(place(back_x, back_y), SCALE * BALL * (0.15 + 0.3 * left_over), fade(SIGNAL, 0.3 * left_over))
    left, top = place(x - BALL / 2, y + BALL / 2)
    size = SCALE * BALL
    canvas.rectangle(left - 3, top - 3, left + size + 3, top + size + 3, fade(SIGNAL, 0.2), 6)
    canvas.rectangle(left, top, left + size, top + size, SIGNAL, 3)
