"""Pictures of the families of tasks in the plane: the body from above, the hidden task, all others in grey."""

from __future__ import annotations

from typing import Any

import numpy as np

from palaestra.drawing.canvas import Canvas, Point
from palaestra.drawing.colors import BACKGROUND, LINE, MUTED, SIGNAL, TEAMS, TEXT, Color, blend, fade
from palaestra.game import Game

SQUARE, MARGIN, HEADER = 540, 10, 34
REACH_M = 1.5
"""Half the side of the square that is shown; where the body is farther away, the picture shows more."""
START_M = 1.0


class Plane:
    """The panel that shows a match.

    Attributes:
        canvas: What is drawn on.
        scale: Pixels of a metre.
    """

    def __init__(self, position_m: np.ndarray) -> None:
        """The square in which matches start, and as much around it as shows the body."""
        self.canvas = Canvas(SQUARE, SQUARE)
        self.scale = 0.5 * SQUARE / max(REACH_M, 1.1 * float(np.abs(position_m).max()))
        corners = ((-1, -1), (1, -1), (1, 1), (-1, 1), (-1, -1))
        self.canvas.line([self.point((START_M * x, START_M * y)) for x, y in corners], LINE)

    def point(self, position_m: Any) -> Point:
        """Pixels of a place; up is up."""
        return 0.5 * SQUARE + float(position_m[0]) * self.scale, 0.5 * SQUARE - float(position_m[1]) * self.scale

    def arrow(self, start_m: Any, way_m: Any, color: Color, width: float = 2.0) -> None:
        """A vector."""
        tip = np.asarray(start_m) + np.asarray(way_m)
        self.canvas.line([self.point(start_m), self.point(tip)], color, width)
        self.canvas.circle(self.point(tip), 1.5 * width, color)

    def body(self, position_m: Any) -> None:
        """The agent."""
        self.canvas.circle(self.point(position_m), 11, TEAMS[1], blend(TEAMS[1], TEXT, 0.4), 1.5)


def draw_point(game: Game, world: Any, s: Any) -> Canvas:
    """Draws one match of `palaestra.games.meta.meta_point`.

    Args:
        game: The rules.
        world: Goals of all tasks.
        s: The match record.

    Returns:
        560 x 584 pixels.
    """
    position_m, goal_m = np.array(s["position_m"]), np.array(s["goal_m"])
    plane = Plane(position_m)
    for other in world.goals_m:
        plane.canvas.circle(plane.point(other), 3, fade(MUTED, 0.5))
    plane.canvas.dashes(plane.point(position_m), plane.point(goal_m), fade(SIGNAL, 0.6))
    plane.canvas.circle(plane.point(goal_m), 8, SIGNAL)
    plane.body(position_m)
    return picture(game, s, f"{float(np.linalg.norm(goal_m - position_m)):.2f} m from the goal", plane)


def draw_direction(game: Game, world: Any, s: Any) -> Canvas:
    """Draws one match of `palaestra.games.meta.meta_direction`; arguments and result as in `draw_point`."""
    position_m, velocity_mps, direction = (np.array(s[name]) for name in ("position_m", "velocity_mps", "direction"))
    plane = Plane(position_m)
    for other in world.directions:
        plane.canvas.circle(plane.point(1.3 * other), 3, fade(MUTED, 0.5))
    plane.arrow((0.0, 0.0), 1.3 * direction, SIGNAL, 3.0)
    plane.arrow(position_m, 0.5 * velocity_mps, TEAMS[1])
    plane.body(position_m)
    return picture(game, s, f"{float(velocity_mps @ direction):+.2f} m/s along the direction", plane)


def picture(game: Game, s: Any, note: str, plane: Plane) -> Canvas:
    """Header and plane."""
    header = Canvas(SQUARE, HEADER, BACKGROUND)
    header.text((0, 23), f"{game.name}, task {int(s['task'])}", TEXT, 16)
    header.text((0.5 * SQUARE, 23), note, MUTED, 13, "ms")
    is_over = int(s["info"]["end_reason"]) != 0
    count = "over" if is_over else f"{int(s['steps'])} / {int(s['parameters']['horizon'])}"
    header.text((SQUARE, 23), count, SIGNAL if is_over else MUTED, 13, "rs")
    whole = Canvas(SQUARE + 2 * MARGIN, SQUARE + HEADER + MARGIN, BACKGROUND)
    whole.put(header, (MARGIN, 0))
    whole.put(plane.canvas, (MARGIN, HEADER))
    return whole
