"""Pictures of the particle games: the arena from above, discs with their velocities, flashes where they touch."""

from __future__ import annotations

from typing import Any

import numpy as np

from palaestra.drawing.canvas import Canvas, Point
from palaestra.drawing.colors import BACKGROUND, LINE, MUTED, PANEL, SIGNAL, TEAMS, TEXT, Color, blend, fade
from palaestra.game import DRAW, Game
from palaestra.games.teams.particles import ARENA_M

SQUARE, MARGIN, HEADER = 540, 10, 34
SPEED_LINE_S = 0.3
"""A velocity is drawn as the way of this time."""
GRID_M = 0.5
OBSTACLE = blend(LINE, MUTED, 0.25)


class Arena:
    """The panel that shows the bodies of a match.

    Attributes:
        canvas: What is drawn on.
        scale: Pixels of a metre.
    """

    def __init__(self, positions_m: np.ndarray, has_walls: bool) -> None:
        """A square around the origin in which all of ``positions_m`` [B, 2] are seen."""
        reach_m = ARENA_M * 1.04 if has_walls else max(ARENA_M * 1.3, 1.1 * float(np.abs(positions_m).max()))
        self.canvas = Canvas(SQUARE, SQUARE)
        self.scale = 0.5 * SQUARE / reach_m
        grid_m = GRID_M * max(1, round(reach_m))
        for k in range(-int(reach_m / grid_m), int(reach_m / grid_m) + 1):
            at = k * grid_m
            for line in (((at, -reach_m), (at, reach_m)), ((-reach_m, at), (reach_m, at))):
                self.canvas.line([self.point(line[0]), self.point(line[1])], fade(LINE, 0.5))
        corners = [self.point((x * ARENA_M, y * ARENA_M)) for x, y in ((-1, -1), (1, -1), (1, 1), (-1, 1), (-1, -1))]
        self.canvas.line(corners, MUTED if has_walls else LINE, 2.0 if has_walls else 1.0)

    def point(self, position_m: Any) -> Point:
        """Pixels of a place; up is up."""
        return 0.5 * SQUARE + float(position_m[0]) * self.scale, 0.5 * SQUARE - float(position_m[1]) * self.scale

    def disc(self, position_m: Any, radius_m: float, color: Color, outline: Color | None = None) -> None:
        """A body."""
        self.canvas.circle(self.point(position_m), radius_m * self.scale, color, outline, 1.5)

    def ring(self, position_m: Any, radius_m: float, color: Color, width: float = 2.0) -> None:
        """A ring around a place."""
        self.canvas.circle(self.point(position_m), radius_m * self.scale, None, color, width)

    def flash(self, position_m: Any, radius_m: float) -> None:
        """A touch: rings that fade outwards."""
        for k, opacity in ((1, 0.9), (2, 0.5), (3, 0.25)):
            self.ring(position_m, radius_m * (1.0 + 0.35 * k), fade(SIGNAL, opacity))

    def arrow(self, position_m: Any, velocity_mps: Any, color: Color) -> None:
        """The way of the next moments."""
        tip = np.asarray(position_m) + SPEED_LINE_S * np.asarray(velocity_mps)
        self.canvas.line([self.point(position_m), self.point(tip)], color, 2.0)

    def label(self, position_m: Any, text: str, color: Color = TEXT, size: int = 12) -> None:
        """Lettering in the middle of a body."""
        self.canvas.text(self.point(position_m), text, color, size, "mm")


def picture(game: Game, match: Any, note: str, arena: Arena) -> Canvas:
    """Header and arena, 560 x 584 pixels."""
    header = Canvas(SQUARE, HEADER, BACKGROUND)
    header.text((0, 23), game.name, TEXT, 16)
    header.text((0.5 * SQUARE, 23), note, MUTED, 13, "ms")
    text, color = outcome(game, match)
    header.text((SQUARE, 23), text, color, 13 if color == MUTED else 16, "rs")
    whole = Canvas(SQUARE + 2 * MARGIN, SQUARE + HEADER + MARGIN, BACKGROUND)
    whole.put(header, (MARGIN, 0))
    whole.put(arena.canvas, (MARGIN, HEADER))
    return whole


def outcome(game: Game, match: Any) -> tuple[str, Color]:
    """The winner, or the number of decisions so far; and its colour."""
    if match.info.end_reason == 0:
        return f"{int(match.steps)} / {int(match.parameters.horizon)}", MUTED
    winner = int(match.info.winner)
    if len(game.teams) == 1:
        return "over", SIGNAL
    return ("draw", SIGNAL) if winner == DRAW else (f"{list(game.teams)[winner]} wins", TEAMS[winner])


def attributes(s: np.void) -> Any:
    """The record with its fields as attributes, as in the rules."""
    return s.view((np.record, s.dtype))


def draw_agent(arena: Arena, s: Any, i: int, radius_m: float, color: Color, name: str) -> None:
    """An agent with its velocity and its number."""
    arena.arrow(s.position_m[i], s.velocity_mps[i], fade(color, 0.8))
    arena.disc(s.position_m[i], radius_m, color, blend(color, TEXT, 0.4))
    arena.label(s.position_m[i], name, PANEL, 13)


def draw_tag(game: Game, world: Any, s: np.void) -> Canvas:
    """Draws one match of `palaestra.games.teams.tag`.

    Args:
        game: The rules.
        world: Unused.
        s: The match record.

    Returns:
        560 x 584 pixels.
    """
    match = attributes(s)
    p, agents, chasers = match.parameters, len(match.alive), len(match.alive) - len(match.touched)
    arena = Arena(match.position_m, game.zero_sum)
    for k in range(agents, len(match.position_m)):
        arena.disc(match.position_m[k], float(p.obstacle_radius_m), OBSTACLE, MUTED)
    for i in range(agents):
        radius_m = float(p.chaser_radius_m if i < chasers else p.runner_radius_m)
        team = int(i >= chasers)
        draw_agent(arena, match, i, radius_m, TEAMS[team], str(i - team * chasers))
        if team and match.touched[i - chasers]:
            arena.flash(match.position_m[i], radius_m)
    return picture(game, match, f"tags {int(match.info.tags)}", arena)


def draw_spread(game: Game, world: Any, s: np.void) -> Canvas:
    """Draws one match of `palaestra.games.teams.spread`; arguments and result as in `draw_tag`."""
    match = attributes(s)
    agents, radius_m = len(match.alive), float(match.parameters.radius_m)
    arena = Arena(match.position_m, False)
    for k in range(agents):
        at, is_covered = match.position_m[agents + k], bool(match.covered[k])
        arena.disc(at, 0.05, SIGNAL if is_covered else OBSTACLE, MUTED)
        arena.ring(at, float(match.parameters.cover_radius_m), fade(SIGNAL, 0.9 if is_covered else 0.3))
    for i in range(agents):
        draw_agent(arena, match, i, radius_m, fade(TEAMS[1], 0.75), str(i))
    return picture(game, match, f"covered {int(match.info.covered)} / {agents}", arena)


COLORS: tuple[Color, ...] = ((239, 108, 96), (120, 200, 120), (104, 160, 245))
"""Of the landmarks of the talking games: red, green, blue."""


def draw_talk(game: Game, world: Any, s: np.void) -> Canvas:
    """Draws one match of `reference` or `speaker_listener`; arguments and result as in `draw_tag`."""
    match = attributes(s)
    walkers = len(match.velocity_mps)
    arena = Arena(match.position_m, False)
    goals, messages = np.atleast_1d(match.goal), np.atleast_2d(match.said)
    for k, color in enumerate(COLORS):
        arena.disc(match.position_m[walkers + k], 0.06, color)
    for i in range(walkers):
        goal = int(goals[i])
        at = match.position_m[walkers + goal]
        arena.ring(at, float(match.parameters.goal_radius_m) + 0.015 * i, COLORS[goal])
        arena.canvas.dashes(arena.point(match.position_m[i]), arena.point(at), fade(COLORS[goal], 0.6))
        name = str(i) if walkers > 1 else ""
        draw_agent(arena, match, i, 0.05, MUTED, name)
    for i, message in enumerate(messages):
        spoken = f'"{int(message.argmax())}"' if message.any() else "nothing"
        arena.canvas.text((10, 22 + 18 * i), f"{game.agents[i]} says {spoken}", TEXT, 13)
    return picture(game, match, f"arrived {int(match.info.arrived)} / {walkers}", arena)


def draw_push(game: Game, world: Any, s: np.void) -> Canvas:
    """Draws one match of `palaestra.games.teams.push`; arguments and result as in `draw_tag`."""
    match = attributes(s)
    p, agents, team = match.parameters, len(match.alive), len(match.alive) // 2
    arena = Arena(match.position_m, True)
    for side, color in ((1.0, TEAMS[0]), (-1.0, TEAMS[1])):
        x = side * float(p.goal_m)
        left, right = arena.point((min(x, side), ARENA_M)), arena.point((max(x, side), -ARENA_M))
        arena.canvas.rectangle(*left, *right, fade(color, 0.15))
        arena.canvas.dashes(arena.point((x, -ARENA_M)), arena.point((x, ARENA_M)), fade(color, 0.8))
    puck, radius_m = match.position_m[agents], float(p.puck_radius_m)
    arena.arrow(puck, match.velocity_mps[agents], SIGNAL)
    arena.disc(puck, radius_m, OBSTACLE, SIGNAL)
    for i in range(agents):
        draw_agent(arena, match, i, float(p.radius_m), TEAMS[i // team], str(i % team))
        if np.linalg.norm(match.position_m[i] - puck) < radius_m + float(p.radius_m):
            arena.ring(match.position_m[i], 1.3 * float(p.radius_m), fade(SIGNAL, 0.8))
    return picture(game, match, f"puck {float(puck[0]):+.2f} m", arena)


def draw_keep_away(game: Game, world: Any, s: np.void) -> Canvas:
    """Draws one match of `palaestra.games.teams.keep_away`; arguments and result as in `draw_tag`."""
    match = attributes(s)
    agents, red, radius_m = len(match.alive), world.red, float(match.parameters.radius_m)
    arena, goal = Arena(match.position_m, True), match.position_m[agents + int(match.goal)]
    for place in match.position_m[agents:]:
        arena.disc(place, 0.05, OBSTACLE, MUTED)
    arena.disc(goal, 0.05, SIGNAL)
    for first, last, color in ((0, red, TEAMS[0]), (red, agents, TEAMS[1])):
        nearest = min(match.position_m[first:last], key=lambda at: float(np.linalg.norm(at - goal)))
        arena.canvas.dashes(arena.point(nearest), arena.point(goal), fade(color, 0.8))
    for i in range(agents):
        draw_agent(arena, match, i, radius_m, TEAMS[int(i >= red)], str(i if i < red else i - red))
        apart_m = np.linalg.norm(match.position_m[:agents] - match.position_m[i], axis=1)
        if (apart_m < 2 * radius_m).sum() > 1:
            arena.ring(match.position_m[i], 1.25 * radius_m, fade(SIGNAL, 0.8))
    return picture(game, match, f"red leads by {float(match.info.margin_m):.1f} m", arena)
