"""Lengths and distances."""

from __future__ import annotations

import math


def norm(x, y, z):
    """Length of a vector in space: sqrt(x^2 + y^2 + z^2), in the unit of its components."""
    return math.sqrt(x * x + y * y + z * z)


def distance(points, i, j):
    """Distance of two points in the plane: sqrt(dx^2 + dy^2), in the unit of ``points``. The same both ways.

    Args:
        points: float64 [N, 2].
        i: Row of one point.
        j: Row of the other.
    """
    dx, dy = points[i, 0] - points[j, 0], points[i, 1] - points[j, 1]
    return math.sqrt(dx * dx + dy * dy)
