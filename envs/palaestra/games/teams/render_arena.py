"""Pictures of the robot arena."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from palaestra.drawing.canvas import Canvas, Point
from palaestra.drawing.colors import BACKGROUND, LINE, MUTED, PANEL, SIGNAL, TEAMS, TEXT, blend, fade
from palaestra.drawing.widgets import draw_bar
from palaestra.game import Game
from palaestra.games.teams.arena_duel import HIT_POINTS
from palaestra.games.teams.arena_fire import NO_AGENT
from palaestra.games.teams.arena_map import HALF_LENGTH_M, HALF_WIDTH_M, OBSTACLES_M
from palaestra.games.teams.arena_moves import NOWHERE, TEAM_OF

SCALE = 74.0
"""Pixels in a metre."""
HEADER, FOOTER, MARGIN = 40, 62, 14
WIDTH = round(2 * (SCALE * HALF_LENGTH_M + MARGIN))
HEIGHT = round(HEADER + 2 * SCALE * HALF_WIDTH_M + FOOTER)
LONG_M, WIDE_M, TURRET_M, BARREL_M = 0.26, 0.21, 0.12, 0.34
"""Half lengths of a chassis, radius of a turret and length of a barrel."""
PLATES = ((1.0, 3.5), (0.55, 2.5), (0.25, 2.0))
"""Brightness and width of the lines for front, sides and rear."""
TRACK = fade(LINE, 0.9)
"""Colour of the empty part of bars."""


def place(x_m: float, z_m: float) -> Point:
    """Pixels of a point of the arena; z points up."""
    return WIDTH / 2 + SCALE * x_m, HEADER + SCALE * (HALF_WIDTH_M - z_m)


def draw_arena(game: Game, world: Any, s: np.void) -> Canvas:
    """Draws one match of `arena_duel`: robots with plates, turrets and fire, where they drive, bars.

    Args:
        game: The rules.
        world: The tables of the arena.
        s: The match record.

    Returns:
        620 x 435 pixels.
    """
    match = s.view((np.record, s.dtype))  # fields as attributes, as in the rules
    canvas = Canvas(WIDTH, HEIGHT, BACKGROUND)
    draw_header(canvas, game, match)
    draw_floor(canvas)
    for slot in range(4):
        draw_way(canvas, world, match, slot)
    for slot in range(4):
        draw_fire(canvas, match, slot)
    for slot in range(4):
        draw_robot(canvas, match, slot)
        draw_bars(canvas, game, match, slot)
    return canvas


def draw_header(canvas: Canvas, game: Game, match: Any) -> None:
    """Name, the leader or the winner, and the number of the decision."""
    base, names = 26, list(game.teams)
    canvas.text((MARGIN, base), game.name, TEXT, 16)
    red, blue = (float(x) for x in match.info.hit_points)
    leader, winner = int(blue > red), int(match.info.winner)
    if winner >= 0:
        canvas.text((WIDTH / 2, base), f"{names[winner]} has won", TEAMS[winner], 16, "ms")
    elif red != blue:
        canvas.text((WIDTH / 2, base), f"{names[leader]} leads by {abs(red - blue):.0f}", TEAMS[leader], 14, "ms")
    else:
        canvas.text((WIDTH / 2, base), "level", MUTED, 14, "ms")
    canvas.text((WIDTH - MARGIN, base), f"{int(match.steps)} / {match.parameters.horizon:.0f}", MUTED, 14, "rs")


def draw_floor(canvas: Canvas) -> None:
    """Floor with a grid of a metre, the ends where the teams start, and the obstacles."""
    left, top = place(-HALF_LENGTH_M, HALF_WIDTH_M)
    right, bottom = place(HALF_LENGTH_M, -HALF_WIDTH_M)
    canvas.rectangle(left, top, right, bottom, PANEL, 6)
    for x_m in range(-3, 4):
        canvas.line([(place(x_m, 0)[0], top), (place(x_m, 0)[0], bottom)], fade(LINE, 0.45))
    for z_m in range(-2, 3):
        canvas.line([(left, place(0, z_m)[1]), (right, place(0, z_m)[1])], fade(LINE, 0.45))
    for team, edge in ((0, left), (1, right)):
        inner = edge + 0.7 * SCALE * (1 - 2 * team)
        canvas.rectangle(min(edge, inner), top, max(edge, inner), bottom, fade(TEAMS[team], 0.08), 6)
        canvas.line([(edge, top + 4), (edge, bottom - 4)], TEAMS[team], 3)
    for x_m, z_m, half_x_m, half_z_m in OBSTACLES_M:
        (x, y), (far_x, far_y) = place(x_m - half_x_m, z_m + half_z_m), place(x_m + half_x_m, z_m - half_z_m)
        canvas.rectangle(x + 3, y + 4, far_x + 3, far_y + 4, fade(BACKGROUND, 0.7), 4)
        canvas.rectangle(x, y, far_x, far_y, blend(LINE, MUTED, 0.5), 4)
        canvas.rectangle(x + 2, y + 2, far_x - 2, far_y - 2, blend(LINE, MUTED, 0.25), 3)


def draw_way(canvas: Canvas, world: Any, match: Any, slot: int) -> None:
    """A dashed line to the post that a robot drives to."""
    if not match.alive[slot] or match.post[slot] == NOWHERE:
        return
    post, color = place(*world.post_m[int(match.post[slot])]), TEAMS[TEAM_OF[slot]]
    at = place(*match.position_m[slot])
    if math.dist(at, post) > 0.3 * SCALE:
        canvas.dashes(at, post, fade(color, 0.35), 1.5, 4)
    canvas.circle(post, 5, None, fade(color, 0.6), 1.5)


def draw_fire(canvas: Canvas, match: Any, slot: int) -> None:
    """The line of fire from the barrel to the last target."""
    target = int(match.shot_at[slot])
    if target == NO_AGENT:
        return
    tip, end = place(*(match.position_m[slot] + BARREL_M * match.turret[slot])), place(*match.position_m[target])
    for width, opacity in ((7.0, 0.10), (3.5, 0.25), (1.3, 0.95)):
        canvas.line([tip, end], fade(SIGNAL, opacity), width)
    canvas.circle(tip, 4, fade(SIGNAL, 0.9))


def draw_robot(canvas: Canvas, match: Any, slot: int) -> None:
    """Chassis, plates (the front is the brightest), turret and a bar of hit points; a cross where one has fallen."""
    color, center = TEAMS[TEAM_OF[slot]], place(*match.position_m[slot])
    if not match.alive[slot]:
        for tilt in (-1, 1):
            arm = 8 * tilt
            ends = [(center[0] - 8, center[1] - arm), (center[0] + 8, center[1] + arm)]
            canvas.line(ends, fade(color, 0.5), 3)
        return
    ahead = match.heading[slot]
    aside = np.array([-ahead[1], ahead[0]])
    signs = ((1, 1), (1, -1), (-1, -1), (-1, 1))
    corners = [place(*(match.position_m[slot] + LONG_M * a * ahead + WIDE_M * b * aside)) for a, b in signs]
    canvas.circle(center, SCALE * 0.34, fade(color, 0.12))
    canvas.polygon(corners, blend(color, BACKGROUND, 0.62))
    for k, (share, width) in enumerate((PLATES[0], PLATES[1], PLATES[2], PLATES[1])):
        canvas.line([corners[k], corners[(k + 1) % 4]], blend(BACKGROUND, blend(color, TEXT, 0.3), share), width)
    canvas.circle(center, SCALE * TURRET_M, color, BACKGROUND, 1.5)
    canvas.line([center, place(*(match.position_m[slot] + BARREL_M * match.turret[slot]))], TEXT, 3)
    bar = (center[0] - 20, center[1] - 31, center[0] + 20, center[1] - 27)
    draw_bar(canvas, bar, float(match.hit_points[slot]) / HIT_POINTS, color, back=TRACK)


def draw_bars(canvas: Canvas, game: Game, match: Any, slot: int) -> None:
    """One robot's name, hit points and rounds below the arena."""
    width = (WIDTH - 5 * MARGIN) / 4
    left, top = MARGIN + slot * (width + MARGIN), HEIGHT - FOOTER + 12
    color = TEAMS[TEAM_OF[slot]] if match.alive[slot] else LINE
    hit_points, rounds = float(match.hit_points[slot]), float(match.rounds[slot])
    canvas.text((left, top + 9), game.agents[slot], color if match.alive[slot] else MUTED, 12)
    canvas.text((left + width, top + 9), f"{math.ceil(hit_points)}", TEXT if hit_points > 0 else MUTED, 12, "rs")
    draw_bar(canvas, (left, top + 15, left + width, top + 23), hit_points / HIT_POINTS, color, back=TRACK, radius=4)
    share = rounds / max(float(match.parameters.rounds), 1.0)
    color = SIGNAL if match.alive[slot] else LINE
    draw_bar(canvas, (left, top + 27, left + width, top + 31), share, color, back=TRACK)
