"""What tests of team pong do with their matches: place the ball and the paddles."""

from __future__ import annotations

from typing import Any

from games.points import started

from palaestra.games.teams import pong

PAIRS = pong.game()


def flying(position: Any, velocity: Any, heights: Any = (0, 0, 0, 0), **parameters: Any) -> Any:
    """A match with the ball there, at that velocity, and paddles at these heights."""
    sim = started(PAIRS, **parameters)
    sim.states["ball_position"], sim.states["ball_velocity"] = position, velocity
    sim.states["paddle_y"] = heights
    return sim
