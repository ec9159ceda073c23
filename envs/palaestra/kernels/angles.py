"""Arithmetic on the circle."""

from __future__ import annotations

import math


def wrap_angle_rad(angle_rad):
    """The same angle in [-pi, pi]: atan2 of its sine and cosine."""
    return math.atan2(math.sin(angle_rad), math.cos(angle_rad))
