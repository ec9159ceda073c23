"""Matrix games: the value of a zero-sum game of two players that choose at the same time, with a certificate.

A row player chooses x, a column player y, and the row player gets x A y from the other. Von Neumann's theorem
(Mathematische Annalen 100, 1928): max_x min_y x A y = min_y max_x x A y, the value. For any x and y it lies in
[min(x A), max(A y)], and this interval is the certificate of every solution: its width is zero for optimal strategies.

The work is done by `palaestra.exact.simplex`. Where the certificate is wider than `LOOSE` times the range of the
payoffs, HiGHS solves the game once more (extra ``palaestra[exact]``) and the better answer counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from palaestra.core.files.short_repr import fields_html, short_repr
from palaestra.exact.simplex import HIGHS, METHODS, bracket, solve_matrices
from palaestra.game import Importing

LOOSE = 1e-9
"""Relative gap that is not accepted from our own simplex method."""


@dataclass(frozen=True, eq=False)
class MatrixGame:
    """A solved matrix game.

    Attributes:
        value: What the row player gets when both play their best: the middle of the bounds.
        row_strategy: Probabilities of the rows, float64 ``[m]``.
        column_strategy: Probabilities of the columns, float64 ``[n]``.
        lower: What the row strategy earns against any answer, ``min(x A)``.
        upper: What the column strategy pays at most, ``max(A y)``.
        gap: ``upper - lower`` over the range of the payoffs; 0 where all are equal.
        method: ``"saddle"`` (a pure saddle point), ``"simplex"``, ``"refined"`` (the simplex method's last basis,
            solved again) or ``"highs"``.
    """

    value: float
    row_strategy: np.ndarray
    column_strategy: np.ndarray
    lower: float
    upper: float
    gap: float
    method: str

    def __repr__(self) -> str:
        """One line."""
        return short_repr(self)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return fields_html(self)


@dataclass(frozen=True, eq=False)
class MatrixGames:
    """Many solved matrix games of one shape: the attributes of `MatrixGame` as arrays.

    Attributes:
        value: float64 ``[k]``.
        row_strategy: float64 ``[k, m]``.
        column_strategy: float64 ``[k, n]``.
        lower: float64 ``[k]``.
        upper: float64 ``[k]``.
        gap: float64 ``[k]``.
        method: str ``[k]``.
    """

    value: np.ndarray
    row_strategy: np.ndarray
    column_strategy: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    gap: np.ndarray
    method: np.ndarray

    def __repr__(self) -> str:
        """One line."""
        return short_repr(self)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return fields_html(self)


def matrix_game(payoffs: Any) -> MatrixGame:
    """Solves one game.

    >>> matrix_game([[3, 0], [1, 2]]).value
    1.5

    Args:
        payoffs: What the row player gets, ``[m, n]``.

    Raises:
        ValueError: Not a matrix of finite numbers; names the place.
        ImportError: The certificate is loose and scipy is missing.
    """
    a = _payoffs(payoffs, 2)
    many = matrix_games(a[None])
    return MatrixGame(
        float(many.value[0]),
        many.row_strategy[0],
        many.column_strategy[0],
        float(many.lower[0]),
        float(many.upper[0]),
        float(many.gap[0]),
        str(many.method[0]),
    )


def matrix_games(payoffs: Any) -> MatrixGames:
    """Solves many games of one shape in one compiled loop.

    Args:
        payoffs: What the row players get, ``[k, m, n]``.

    Raises:
        ValueError: Not matrices of finite numbers; names the place.
        ImportError: A certificate is loose and scipy is missing.
    """
    a = _payoffs(payoffs, 3)
    count, m, n = a.shape
    x, y = np.empty((count, m)), np.empty((count, n))
    lower, upper, gap = np.empty(count), np.empty(count), np.empty(count)
    method = np.empty(count, np.int64)
    solve_matrices(a, x, y, lower, upper, gap, method)
    for k in np.flatnonzero(~(gap <= LOOSE)):
        other_x, other_y, other_lower, other_upper, other_gap = highs(a[k])
        if not gap[k] <= other_gap:
            x[k], y[k], lower[k], upper[k], gap[k] = other_x, other_y, other_lower, other_upper, other_gap
            method[k] = HIGHS
    return MatrixGames(lower + (upper - lower) / 2, x, y, lower, upper, gap, np.array(METHODS)[method])


def highs(a: np.ndarray) -> tuple[np.ndarray, np.ndarray, float, float, float]:
    """Solves a game by the dual simplex method of HiGHS with its tightest tolerances.

    Returns:
        Row strategy, column strategy, lower and upper bound, relative gap.

    Raises:
        ImportError: scipy is missing.
    """
    missing = (
        "a matrix game is too ill-conditioned for the built-in simplex method, and the second solver needs scipy: "
        'pip install "palaestra[exact]"'
    )
    with Importing("scipy", missing):
        from scipy.optimize import linprog
    m, n = a.shape
    least = a.min()
    span = (a - least).max() or 1.0
    unit = (a - least) / span
    solution = linprog(
        np.append(np.zeros(m), -1.0),
        A_ub=np.hstack([-unit.T, np.ones((n, 1))]),
        b_ub=np.zeros(n),
        A_eq=np.append(np.ones(m), 0.0)[None],
        b_eq=[1.0],
        bounds=[(0, None)] * m + [(None, None)],
        method="highs-ds",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if solution.x is None:
        return np.full(m, 1 / m), np.full(n, 1 / n), -np.inf, np.inf, np.inf
    x, y = _strategy(solution.x[:m]), _strategy(-solution.ineqlin.marginals)
    lower, upper = bracket(np.ascontiguousarray(a), m, n, x, y, least)
    return x, y, least + lower, least + upper, (upper - lower) / span


def _strategy(numbers: np.ndarray) -> np.ndarray:
    clipped = np.maximum(numbers, 0.0)
    total = clipped.sum()
    return clipped / total if total > 0.0 else np.full(len(clipped), 1 / len(clipped))


def _payoffs(payoffs: Any, axes: int) -> np.ndarray:
    """Payoffs as float64.

    Raises:
        ValueError: Other axes, no numbers, or not finite; names the place.
    """
    a = np.ascontiguousarray(payoffs, np.float64)
    wanted = "[rows, columns]" if axes == 2 else "[games, rows, columns]"
    if np.ndim(payoffs) != axes:
        raise ValueError(f"payoffs must be {wanted}, got an array of shape {np.shape(payoffs)}")
    if min(a.shape[-2:]) == 0:
        raise ValueError(f"a matrix game needs a row and a column at least, got payoffs of shape {a.shape}")
    bad = np.argwhere(~np.isfinite(a))
    if len(bad):
        *game, row, column = bad[0].tolist()
        where = "".join(f"game {k}, " for k in game)
        raise ValueError(f"payoffs must be finite: {where}row {row}, column {column} is {a[tuple(bad[0])]}")
    ranges = a.max((-2, -1)) / 2 - a.min((-2, -1)) / 2
    if a.size and ranges.max() > np.finfo(np.float64).max / 2:
        raise ValueError("the range of the payoffs is beyond float64: divide them by a constant")
    return a
