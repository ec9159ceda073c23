"""Values of small games with guaranteed bounds: Shapley's value iteration.

The value V of a zero-sum stochastic game with discount gamma is the fixed point of (T V)(p) = value of the matrix game
r + gamma E[V(next)] in p (Shapley, "Stochastic games", PNAS 39, 1953; as an algorithm in Littman, "Markov games as a
framework for multi-agent reinforcement learning", ICML 1994). Every sweep gives certified brackets
lower <= T V <= upper, and with them, T being monotone and T(V + c) <= T V + gamma c,

    V* <= upper + gamma c,    c = max(0, max_p(upper - V)) / (1 - gamma),    likewise from below.

The bounds of all sweeps hold at the same time, so they never get wider. Between two sweeps the strategies just
found are followed for a while (Newton's method of Pollatschek and Avi-Itzhak, Management Science 15, 1969, stopped
early), which takes a quarter of the sweeps. Alone it may cycle. Where a residual does not fall as value
iteration guarantees, the step is undone and plain value iteration continues.

The same iteration under another rule for the local games (`palaestra.exact.sweeps`) gives the values of
pure strategies and, in `palaestra.exact.exploitability`, best responses.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from palaestra.core.files.short_repr import fields_html, short_repr
from palaestra.exact.matrix_solver import highs, matrix_game
from palaestra.exact.positions import PositionTable, enumerate_positions
from palaestra.exact.simplex import HIGHS, SADDLE, bracket
from palaestra.exact.sweeps import (
    GAME,
    MAXIMIN,
    MINIMAX,
    ROUNDING,
    ROWS_ANSWER,
    follow_policies,
    margins,
    order_of_play,
    solve_positions,
    sweep,
)
from palaestra.game import Game

FOLLOWED_SWEEPS = 20
"""Most sweeps for which strategies are followed."""
FOLLOWED_TO = 0.01
"""Share of the last residual to which they are."""
LOOSE_SHARE = 1e-3
"""Share of the last residual that a bracket may be wide before new strategies are sought."""

PATIENCE = 100
"""Sweeps without a narrower bound after which a search is hopeless."""


@dataclass(frozen=True, eq=False)
class Bounds:
    """Guaranteed values under one rule.

    Attributes:
        values: What the row team gets, float64 ``[P]``.
        lower: Guaranteed lower bounds, float64 ``[P]``.
        upper: Guaranteed upper bounds, float64 ``[P]``.
        error: Largest difference between a value and a bound.
        sweeps: Sweeps that were needed.
        rows: Policy of the row team along `PositionTable.actions`.
        columns: Policy of the column team.
    """

    values: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    error: float
    sweeps: int
    rows: np.ndarray
    columns: np.ndarray

    def __repr__(self) -> str:
        """One line."""
        return short_repr(self)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return fields_html(self)


@dataclass(frozen=True, eq=False)
class Solution:
    """A solved game. Values are those of the first team; the second's are the negative.

    Attributes:
        table: Positions and transitions.
        gamma: Discount a decision.
        values: Value of each position of the table, float64 ``[P]``.
        lower: Guaranteed lower bounds.
        upper: Guaranteed upper bounds.
        error: Guaranteed error of `values`.
        sweeps: Sweeps of value iteration that were needed.
        rows: Best stationary strategy of the first team along `PositionTable.actions`; `policy` has it by position.
        columns: Likewise of the second.
        pure_maximin: Value that the first team can guarantee without mixing, `[P]`; nan without ``pure``.
        pure_minimax: Most that it can get if the second team does not mix.
        pure_error: Guaranteed error of these two.
    """

    table: PositionTable
    gamma: float
    values: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    error: float
    sweeps: int
    rows: np.ndarray
    columns: np.ndarray
    pure_maximin: np.ndarray
    pure_minimax: np.ndarray
    pure_error: float

    def __repr__(self) -> str:
        """One line."""
        return short_repr(self)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return fields_html(self)

    @property
    def start_value(self) -> float:
        """Value before the random draw that starts a match."""
        return float(self.values[self.table.starts] @ self.table.start_probabilities)

    @cached_property
    def without_pure_saddle(self) -> np.ndarray:
        """Positions of the table whose value differs between teams that must not mix: committing first loses."""
        return np.flatnonzero(self.pure_minimax - self.pure_maximin > 2 * self.pure_error)

    def value_of(self, numbers: Any) -> np.ndarray:
        """Values of positions by the game's own numbers."""
        return self.values[self.table.index[numbers]]

    def policy(self, team: str) -> np.ndarray:
        """A team's best strategy: probabilities of its joint actions, float64 ``[P, J]``."""
        return self.table.dense(team, (self.rows, self.columns)[self.table.side(team)])


def solve(
    game_or_id: Game | str | PositionTable,
    gamma: float = 0.9,
    tolerance: float = 1e-8,
    *,
    pure: bool = True,
    symmetry: bool = True,
    limit: int | None = None,
    max_sweeps: int = 100_000,
    **keywords: Any,
) -> Solution:
    """Values of all positions and best strategies of both teams.

    Args:
        game_or_id: Registered id, the rules themselves, or a table of them.
        gamma: Discount a decision, in (0, 1]; 1 only for games that never come back to a position.
        tolerance: Guaranteed error of the values.
        pure: Also find what teams get that must not mix.
        symmetry: Visit one position of those that are alike.
        limit: Most transitions to hold: see `palaestra.exact.positions.enumerate_positions`.
        max_sweeps: Sweeps after which it fails.
        **keywords: The game's structural keywords and parameters.

    Raises:
        ValueError: The game cannot be enumerated, or a number is out of range.
        RuntimeError: The tolerance was not reached in ``max_sweeps``, or is finer than rounding allows.
    """
    table = as_table(game_or_id, symmetry, limit, keywords)
    found = iterate(table, GAME, gamma, tolerance, max_sweeps=max_sweeps)
    maximin = minimax = np.full(len(table), np.nan)
    pure_error = np.nan
    if pure:
        low, high = (iterate(table, rule, gamma, tolerance, max_sweeps=max_sweeps) for rule in (MAXIMIN, MINIMAX))
        maximin, minimax, pure_error = low.values, high.values, max(low.error, high.error)
    return Solution(
        table,
        gamma,
        found.values,
        found.lower,
        found.upper,
        found.error,
        found.sweeps,
        found.rows,
        found.columns,
        maximin,
        minimax,
        pure_error,
    )


def compile_solvers() -> None:
    """Compiles all that the solvers call, by solving a game of one position: later processes load it from the disk."""
    table = enumerate_positions("palaestra/TeamMatrix-v0")
    found = iterate(table, GAME, 0.5, 1e-6)
    payoffs = local_payoffs(table, 0.5, found.values, 0)
    matrix_game(payoffs)
    bracket(payoffs, len(payoffs), payoffs.shape[1], found.rows, found.columns, payoffs.min())
    arrays = (table.cell_start, table.rewards, table.next, *table.action_start)
    follow_policies(*arrays, 0.5, found.rows, found.columns, found.values, 0.1, 1)
    order, residual = order_of_play(table.next, table.cell_start), np.zeros(len(table))
    margins(order, table.cell_start, table.next, 0.5, residual, residual.copy())
    which, width = np.zeros(len(table), np.bool_), max(len(joint) for joint in table.joint_actions)
    solve_positions(
        which, table.cell_start, *table.action_start, table.rewards, found.values, found.rows, found.columns, width
    )


def as_table(game_or_id: Any, symmetry: bool, limit: int | None, keywords: dict[str, Any]) -> PositionTable:
    """The table of the given id, game, table or solution.

    Raises:
        TypeError: Keywords beside a table that is made already.
    """
    if not isinstance(game_or_id, PositionTable):
        return enumerate_positions(game_or_id, symmetry=symmetry, limit=limit, **keywords)
    if keywords:
        raise TypeError(f"a table has its keywords already: enumerate_positions(..., {next(iter(keywords))}=...)")
    return game_or_id


def iterate(
    table: PositionTable,
    rule: int,
    gamma: float,
    tolerance: float,
    *,
    rows: np.ndarray | None = None,
    columns: np.ndarray | None = None,
    plan: np.ndarray | None = None,
    weight: np.ndarray | None = None,
    max_sweeps: int = 100_000,
) -> Bounds:
    """Value iteration under one of the rules of `palaestra.exact.sweeps` until the guaranteed error is small.

    Args:
        table: Positions and transitions.
        rule: Value of a local game.
        gamma: Discount a decision.
        tolerance: Guaranteed error.
        rows: Policy of the row team along `PositionTable.actions`, where the rule keeps it fixed.
        columns: Likewise of the column team.
        plan: Number of the plan of each joint action of the team that answers; if None each is a plan.
        weight: Its probability under that plan.
        max_sweeps: Sweeps after which it fails.

    Raises:
        ValueError: gamma or tolerance is out of range.
        RuntimeError: The tolerance was not reached.
    """
    order = _order(table, gamma, tolerance)
    x = np.zeros(len(table.actions[0])) if rows is None else rows.copy()
    y = np.zeros(len(table.actions[1])) if columns is None else columns.copy()
    if plan is None or weight is None:
        plan, weight = _every_action(table, 0 if rule == ROWS_ANSWER else 1)
    width = int(max(np.diff(start).max() for start in table.action_start))
    positions = len(table)
    values, plain = np.zeros(positions), np.zeros(positions)
    lower, upper = np.empty(positions), np.empty(positions)
    best_lower, best_upper = np.full(positions, -np.inf), np.full(positions, np.inf)
    method = np.full(positions, SADDLE)
    share = 1.0 - gamma if gamma < 1.0 else 1e-3
    accepted = share * tolerance / 4  # width of a bracket that does not hold up anything
    before, least_error, idle = np.inf, np.inf, 0
    followed, wait, pause = False, 0, 1
    arrays = (table.cell_start, table.rewards, table.next, *table.action_start, gamma)
    patience = PATIENCE if order is None else PATIENCE + positions  # undiscounted, a reward comes back step by step
    count, error = 0, np.inf
    for count in range(1, max_sweeps + 1):
        loose = min(LOOSE_SHARE * before, accepted)
        sweep(rule, *arrays, values, loose, x, y, plan, weight, width, lower, upper, method)
        residual = float(np.abs((upper + lower) / 2 - values).max())
        if rule == GAME:
            rounded = 100 * ROUNDING * (np.abs(table.rewards).max() + np.abs(values).max())
            stuck = np.flatnonzero((upper - lower > max(accepted, rounded)) & (10 * (upper - lower) > residual))
            _solve_again(table, gamma, values, stuck, lower, upper, x, y, method)
        np.minimum(best_upper, values + _margins(table, order, gamma, upper - values), out=best_upper)
        np.maximum(best_lower, values - _margins(table, order, gamma, values - lower), out=best_lower)
        found = np.clip((upper + lower) / 2, best_lower, best_upper)
        error = float(max((best_upper - found).max(), (found - best_lower).max()))
        if error <= tolerance:
            return Bounds(found, best_lower, best_upper, error, count, x, y)
        idle = 0 if error < least_error else idle + 1
        least_error = min(error, least_error)
        if idle == patience:
            break
        if followed and residual > gamma * before:  # the residual did not fall: undo the step
            values[:] = plain
            followed, pause = False, 2 * pause
            wait = pause
            continue
        before = residual
        values = (upper + lower) / 2
        followed, wait = wait == 0, max(wait - 1, 0)
        if followed:
            plain[:] = values
            follow_policies(*arrays, x, y, values, FOLLOWED_TO * residual, FOLLOWED_SWEEPS)
    raise RuntimeError(
        f"{table.game.name}: a guaranteed error of {tolerance:g} was not reached in {count} sweeps, it is "
        f"{error:.3g}: raise tolerance= (rounding allows no less than about 1e-15 / (1 - gamma)) or max_sweeps="
    )


def _every_action(table: PositionTable, side: int) -> tuple[np.ndarray, np.ndarray]:
    """Each joint action of a team as a plan of its own."""
    start = table.action_start[side]
    plan = np.arange(start[-1]) - np.repeat(start[:-1], np.diff(start))
    return plan, np.ones(len(plan))


def _order(table: PositionTable, gamma: float, tolerance: float) -> np.ndarray | None:
    """The order of play for gamma = 1, else None.

    Raises:
        ValueError: gamma or tolerance is out of range, or gamma is 1 and the game may never end.
    """
    if not 0.0 < gamma <= 1.0:
        raise ValueError(f"gamma must be in (0, 1], got {gamma}")
    if not tolerance > 0.0:
        raise ValueError(f"tolerance must be positive, got {tolerance}")
    if gamma < 1.0:
        return None
    order = order_of_play(table.next, table.cell_start)
    if len(order) < len(table):
        raise ValueError(
            f"gamma=1 is for games that never come back to a position; {table.game.name} may, in "
            f"{len(table) - len(order):,} of {len(table):,} positions: use gamma < 1"
        )
    return order


def _margins(table: PositionTable, order: np.ndarray | None, gamma: float, residual: np.ndarray) -> np.ndarray:
    """How far the values may be from the fixed point on one side, by the residuals T V - V (or V - T V)."""
    if order is None:
        return residual + gamma * max(float(residual.max()), 0.0) / (1.0 - gamma)
    margin = np.zeros(len(residual))
    margins(order, table.cell_start, table.next, gamma, residual, margin)
    return margin


def _solve_again(
    table: PositionTable,
    gamma: float,
    values: np.ndarray,
    positions: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    x: np.ndarray,
    y: np.ndarray,
    method: np.ndarray,
) -> None:
    """Narrows the brackets of local games by HiGHS."""
    for p in positions:
        a = local_payoffs(table, gamma, values, p)
        row, column, low, high, _ = highs(a)
        if high - low < upper[p] - lower[p]:
            x[table.action_start[0][p] : table.action_start[0][p + 1]] = row
            y[table.action_start[1][p] : table.action_start[1][p + 1]] = column
            rounding = ROUNDING * np.abs(a).max()
            lower[p], upper[p], method[p] = low - rounding, high + rounding, HIGHS


def local_payoffs(table: PositionTable, gamma: float, values: np.ndarray, position: int) -> np.ndarray:
    """The local game of a position, ``[rows, columns]``: r + gamma * (mean value of the next positions)."""
    cells = slice(table.cell_start[position], table.cell_start[position + 1])
    following = table.next[cells]
    ahead = np.where(following >= 0, values[following], 0.0).mean(1)
    rows = table.action_start[0][position + 1] - table.action_start[0][position]
    return (table.rewards[cells] + gamma * ahead).reshape(rows, -1)
