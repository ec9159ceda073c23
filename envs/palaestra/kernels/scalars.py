"""Bounds of one number."""

from __future__ import annotations


def clip(value, low, high):
    """The number in [low, high] that is nearest to ``value``; ``low`` for NaN.

    Comparisons alone: numba compiles `min` and `max` as functions of their own, for every game anew.
    """
    bounded = value if value >= low else low
    return high if bounded > high else bounded
