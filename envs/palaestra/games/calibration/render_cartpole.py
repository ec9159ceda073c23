"""Pictures of the calibration games."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from palaestra.drawing.canvas import Canvas
from palaestra.game import Game
from palaestra.games.calibration.cartpole import POSITION_LIMIT_M

WIDTH, HEIGHT = 600, 400
TRACK_Y = 300
CART_WIDTH, CART_HEIGHT = 50, 30
POLE_THICKNESS = 10
LONGEST_POLE = 260
"""Pixels: a longer pole would leave the picture."""
WHITE, BLACK, POLE, HINGE = (255, 255, 255), (0, 0, 0), (202, 152, 101), (129, 132, 203)


def draw_cartpole(game: Game, world: Any, s: np.void) -> Canvas:
    """Draws one match of `palaestra.games.calibration.cartpole`.

    Args:
        game: The rules.
        world: Unused.
        s: The match record.

    Returns:
        600 x 400 pixels.
    """
    pixels_per_m = WIDTH / (2 * POSITION_LIMIT_M)
    x = WIDTH / 2 + float(s["position_m"]) * pixels_per_m
    hinge = (x, TRACK_Y - CART_HEIGHT / 4)
    length = min(2 * float(s["parameters"]["half_length_m"]) * pixels_per_m, LONGEST_POLE)
    angle_rad = float(s["angle_rad"])
    tip = (hinge[0] + length * math.sin(angle_rad), hinge[1] - length * math.cos(angle_rad))
    canvas = Canvas(WIDTH, HEIGHT, WHITE)
    canvas.line([(0, TRACK_Y), (WIDTH, TRACK_Y)], BLACK)
    canvas.rectangle(
        x - CART_WIDTH / 2, TRACK_Y - CART_HEIGHT / 2, x + CART_WIDTH / 2, TRACK_Y + CART_HEIGHT / 2, BLACK
    )
    canvas.line([hinge, tip], POLE, POLE_THICKNESS)
    canvas.circle(hinge, POLE_THICKNESS / 2, HINGE)
    return canvas
