"""What quadrupeds and hands share: fields without bounds, randomisation, sensor noise."""

from __future__ import annotations

import math
from typing import Any

from palaestra.game import Field, check_word, uniform

INF = math.inf
LONGEST_DELAY_S = 0.02
"""Of servos, with ``randomise=1``."""
DELAY_SAMPLES = 6
"""Targets that a servo with a delay keeps, one a time step of 4 to 5 ms: more than the longest delay has."""


def real(name: str, size: int, unit: str, about: str, number: str) -> Field:
    """A field of numbers without bounds; ``number`` is its dtype."""
    return Field(name, (size,), -INF, INF, unit, about, number, checked=(-1e3, 1e3))


def check_share(keyword: str, share: Any) -> None:
    """Refuses what is no number in [0, 1].

    Raises:
        ValueError: Names keyword and value.
    """
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0.0 <= share <= 1.0:
        raise ValueError(f"{keyword} must be a number from 0 to 1, got {share!r}")


def number_of(reward: Any, dtype: Any, randomise: Any, sensor_noise: Any) -> Any:
    """The dtype of observations and rewards, after a check of what users give to each game of robots.

    Raises:
        ValueError: Names keyword and value.
    """
    check_word("reward", reward, ("dense", "sparse"))
    check_word("dtype", dtype, ("float32", "float64"))
    check_share("randomise", randomise)
    check_share("sensor_noise", sensor_noise)
    return "f8" if dtype == "float64" else "f4"


def draw_factor(s, width):
    """A factor in [1 - width, 1 + width)."""
    return 1.0 + width * uniform(s, -1.0, 1.0)


def draw_noise(s, world):
    """Draws the seed of the noise that the next observation has."""
    if world.sensor_noise > 0.0:
        s.noise_seed = uniform(s, 0.0, 1.0)


def start_noise(s, scratch):
    """Begins the noise of an observation: `uniform(scratch, ...)` gives the same numbers after the same seed."""
    scratch.rng = int(s.noise_seed * 9007199254740992.0)
