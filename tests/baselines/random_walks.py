"""Small recorded matches of a family of tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Episode(NamedTuple):
    """As `palaestra.data` reads it, as far as learners look at it."""

    observations: np.ndarray
    actions: np.ndarray
    rewards: np.ndarray
    task: int


def walks(tasks: Sequence[int] = (7, 3, 5), each: int = 3, longest: int = 9, seed: int = 0) -> list[Episode]:
    """A point that walks at random and is paid for one direction a task; matches differ in length."""
    rng, made = np.random.default_rng(seed), []
    for number in range(each * len(tasks)):
        which, steps = number % len(tasks), longest - number % 3
        moves = rng.uniform(-1.0, 1.0, (steps, 2))
        places = np.concatenate([rng.uniform(-1.0, 1.0, (1, 2)), 0.1 * moves]).cumsum(0)
        paid = moves @ np.array([np.cos(which), np.sin(which)])
        made.append(Episode(places.astype(np.float32), moves, paid, tasks[which]))
    return made
