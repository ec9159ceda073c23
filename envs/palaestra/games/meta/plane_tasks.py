"""The tasks of the games in the plane, and which of them are held out of training."""

from __future__ import annotations

import json

import numpy as np

import palaestra_assets
from palaestra.game import keyed_uniforms

TASKS = 50
"""Of each game."""


def held_out(name: str) -> list[int]:
    """Numbers of the tasks of a game that are not for training."""
    return json.loads(palaestra_assets.path("meta/held_out.json").read_text(encoding="utf-8"))[name]


def directions(name: str, angle_rad: float, offset: float = 0.0) -> np.ndarray:
    """Directions by number of the task, ``[50, 2]``: evenly spaced from 0 to an angle, their order drawn by a key.

    They are rounded to nine digits: sine and cosine differ in their last bits from machine to machine.

    Args:
        name: Of the game, the key.
        angle_rad: Where the tasks end.
        offset: Of the first one, as a share of the angle between two.
    """
    angles_rad = angle_rad * (np.argsort(keyed_uniforms(name, TASKS)) + offset) / TASKS
    return np.round(np.stack([np.cos(angles_rad), np.sin(angles_rad)], axis=1), 9)
