"""From a model's output to actions: the best or a drawn choice, real numbers within their bounds.

Draws come from the seed of the lane, the number of the decision and the place of the number in the team's action, so
they are the same whatever other lanes are played beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from palaestra.core.rng import GOLDEN, SHIFT_11, TO_UNIT, mix64

SALT = np.uint64(0x706F_6C69_6379_5F31)


class Chance:
    """Random numbers of the rows of one decision.

    Args:
        seeds: Seeds of the lanes, uint64 ``[n]``.
        decisions: Number of the decision in each lane, since it was seeded.
        rows_per_lane: Rows of a lane.
        team: Number of the team: two players with one policy draw apart.
    """

    def __init__(self, seeds: np.ndarray, decisions: np.ndarray, rows_per_lane: int, team: int) -> None:
        """Keeps one key a row."""
        with np.errstate(over="ignore"):
            lanes = mix64(mix64(seeds ^ SALT ^ np.uint64(team + 1)) + GOLDEN * decisions.astype(np.uint64))
            places = np.arange(1, rows_per_lane + 1, dtype=np.uint64)
            self._keys = mix64(lanes[:, None] + GOLDEN * places).reshape(-1)

    def uniforms(self, count: int) -> np.ndarray:
        """float64 in (0, 1), ``[rows, count]``."""
        with np.errstate(over="ignore"):
            bits = mix64(self._keys[:, None] + GOLDEN * np.arange(1, count + 1, dtype=np.uint64))
        return (bits >> SHIFT_11).astype(np.float64) * TO_UNIT + TO_UNIT / 2

    def normals(self, count: int) -> np.ndarray:
        """Standard normal float64 ``[rows, count]`` (Box and Muller, Annals of Mathematical Statistics 29, 1958)."""
        radius, angle = np.split(self.uniforms(2 * count), 2, axis=1)
        return np.sqrt(-2.0 * np.log(radius)) * np.cos(2.0 * np.pi * angle)


def choose(logits: np.ndarray, masks: np.ndarray | None, sizes: Sequence[int], chance: Chance | None) -> np.ndarray:
    """Choices int64 ``[rows, K]``.

    Args:
        logits: Of the alternatives of all choices side by side, ``[rows, sum(sizes)]``.
        masks: bool, likewise: False is never chosen, unless nothing else is left. None allows all.
        sizes: Alternatives of each of the K choices.
        chance: Draws from the softmax; None takes the largest.

    Raises:
        ValueError: A logit is NaN.
    """
    scores = np.asarray(logits, np.float64)
    if np.isnan(scores).any():
        raise ValueError(f"the model gave NaN in row {int(np.flatnonzero(np.isnan(scores).any(axis=1))[0])}")
    draws = None if chance is None else chance.uniforms(len(sizes))
    chosen = np.empty((len(scores), len(sizes)), np.int64)
    start = 0
    for k, n in enumerate(sizes):
        part = scores[:, start : start + n]
        if masks is not None:
            allowed = masks[:, start : start + n]
            part = np.where(allowed | ~allowed.any(axis=1, keepdims=True), part, -np.inf)
        start += n
        chosen[:, k] = part.argmax(axis=1) if draws is None else _drawn(part, draws[:, k])
    return chosen


def probabilities(logits: np.ndarray, masks: np.ndarray | None) -> np.ndarray:
    """Softmax of the alternatives of one choice, float64 ``[..., M]``; forbidden ones have 0."""
    scores = np.asarray(logits, np.float64)
    if masks is not None:
        scores = np.where(masks | ~masks.any(axis=-1, keepdims=True), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def _drawn(logits: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
    edges = np.exp(logits - logits.max(axis=1, keepdims=True)).cumsum(axis=1)
    return (edges <= uniforms[:, None] * edges[:, -1:]).sum(axis=1)


def as_choices(chosen: np.ndarray, space: spaces.Space) -> np.ndarray:
    """Choices ``[rows, K]`` in the batched form of their space: ``[rows]`` of a Discrete."""
    return chosen[:, 0] if isinstance(space, spaces.Discrete) else chosen


def as_reals(given: np.ndarray, space: Any) -> np.ndarray:
    """Real numbers float64 ``[rows, K]``, clipped to a Box.

    Raises:
        ValueError: One is NaN.
    """
    numbers = np.asarray(given, np.float64)
    if np.isnan(numbers).any():
        raise ValueError(f"the model gave NaN in row {int(np.flatnonzero(np.isnan(numbers).any(axis=1))[0])}")
    return np.clip(numbers, space.low, space.high)


def from_unit(unit: np.ndarray, space: Any) -> np.ndarray:
    """Numbers in [-1, 1] as numbers in the bounds of a Box: Stable-Baselines3's ``unscale_action``."""
    return as_reals(space.low + 0.5 * (np.asarray(unit, np.float64) + 1.0) * (space.high - space.low), space)
