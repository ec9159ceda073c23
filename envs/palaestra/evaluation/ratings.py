"""Numbers that sum up matches: Wilson's interval of a share, Elo ratings with fixed anchors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from palaestra.core.files.short_repr import fields_html, short_repr

NORMAL_95 = 1.959963984540054
"""Two-sided 95 % quantile of the normal distribution."""
ELO_PER_LOGIT = 400.0 / math.log(10.0)
"""Elo points of one natural unit of the logistic curve: 400 points are odds of ten to one."""
SATURATED_LOGITS = 20.0
"""A difference that no number of matches shows: odds of a thousand million to one, 3474 Elo points."""


@dataclass(frozen=True)
class Rating:
    """Strength of a player.

    Attributes:
        elo: Rating; a difference of 400 are expected odds of ten to one.
        half_width: Half of the 95 % interval from the curvature of the likelihood; 0 for an anchor.
    """

    elo: float
    half_width: float

    def __repr__(self) -> str:
        """One line."""
        return short_repr(self)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return fields_html(self)


def wilson_interval(successes: float, trials: int, z: float = NORMAL_95) -> tuple[float, float]:
    """Interval of a share (Wilson, 1927, Journal of the American Statistical Association 22).

    Args:
        successes: Successes; a draw may count as half of one.
        trials: Trials; with none the interval is [0, 1].
        z: Quantile of the normal distribution.

    Returns:
        Lower and upper end, within [0, 1].
    """
    if trials == 0:
        return 0.0, 1.0
    share, weight = successes / trials, z * z / trials
    middle = (share + weight / 2) / (1 + weight)
    half = math.sqrt(share * (1 - share) * weight + weight * weight / 4) / (1 + weight)
    return max(0.0, middle - half), min(1.0, middle + half)


def fit_elo(
    names: Sequence[str],
    points: np.ndarray,
    anchors: Mapping[str, float] | None = None,
    *,
    virtual_draws: float = 1.0,
    matches_per_trial: float = 1.0,
) -> dict[str, Rating]:
    """Most likely Elo ratings: P(i beats j) = 1 / (1 + 10 ** ((elo_j - elo_i) / 400)), a draw is half a win for both.

    This is the model of Bradley and Terry (Biometrika 39, 1952), fitted by Newton's method; its likelihood is concave.

    Args:
        names: Players.
        points: ``points[i, j]`` is what i won against j, wins plus half of the draws.
        anchors: Ratings that stay as they are. Without any, the mean is 0.
        virtual_draws: Draws added to each pair that has met, so that a player that won or lost everything has a finite
            rating. With 0 it is the plain maximum of the likelihood.
        matches_per_trial: Matches that count as one independent trial in the intervals: 2 where each seed was played
            from both sides. Ratings do not depend on it.

    Raises:
        ValueError: An anchor is no player, a player has no path of matches to an anchor, or the likelihood
            has no maximum.
    """
    anchors = dict(anchors or {})
    unknown = [name for name in anchors if name not in names]
    if unknown:
        raise ValueError(f"anchor {unknown[0]!r} is none of the players: {', '.join(names)}")
    won = np.array(points, np.float64)
    met = won + won.T > 0
    _check_connected(names, met, list(anchors))
    won += virtual_draws / 2 * met
    games = won + won.T
    elo = np.array([anchors.get(name, np.mean(list(anchors.values()) or [0.0])) for name in names], np.float64)
    strength = elo / ELO_PER_LOGIT
    free = np.array([name not in anchors for name in names])
    curvature = np.zeros((int(free.sum()),) * 2)
    for _ in range(100):
        expected = 1.0 / (1.0 + np.exp(strength[None, :] - strength[:, None]))
        gradient = (won - games * expected).sum(axis=1)[free]
        curvature = _curvature(games * expected * (1.0 - expected))[np.ix_(free, free)]
        change = np.clip(np.linalg.pinv(curvature, hermitian=True) @ gradient, -1.0, 1.0)
        strength[free] += change
        if np.abs(change).max(initial=0.0) < 1e-10:
            break
    if np.ptp(strength[met.any(axis=0)]) > SATURATED_LOGITS + np.ptp(list(anchors.values()) or [0.0]) / ELO_PER_LOGIT:
        raise ValueError("a player won or lost everything, so no rating is the most likely: use virtual_draws")
    if not anchors:
        strength -= strength.mean()
    spread = np.zeros(len(names))
    spread[free] = np.sqrt(np.maximum(0.0, matches_per_trial * np.diag(np.linalg.pinv(curvature, hermitian=True))))
    elo = np.where(free, ELO_PER_LOGIT * strength, elo)  # anchors to the bit
    half_widths = NORMAL_95 * ELO_PER_LOGIT * spread
    return {name: Rating(float(elo[k]), float(half_widths[k])) for k, name in enumerate(names)}


def _curvature(weights: np.ndarray) -> np.ndarray:
    """Negative second derivative of the log-likelihood."""
    return np.diag(weights.sum(axis=1)) - weights


def _check_connected(names: Sequence[str], met: np.ndarray, anchors: list[str]) -> None:
    reached = {names.index(name) for name in anchors} or {0}
    frontier = list(reached)
    while frontier:
        found = set(np.flatnonzero(met[frontier.pop()]).tolist()) - reached
        reached |= found
        frontier += found
    lost = [name for k, name in enumerate(names) if k not in reached]
    if lost:
        raise ValueError(f"{lost[0]!r} met no player of known rating, so it has none")
