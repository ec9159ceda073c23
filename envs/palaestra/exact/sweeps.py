"""Sweeps over all positions of a game, compiled: shared by value iteration and best responses.

Each position p has a *local game*, the matrix of r + gamma * (mean value of the next positions). Five rules give
a local game a value; each of them makes a monotone operator T on values with T(V + c) <= T V + gamma c, and all the
bounds of `palaestra.exact.values` need no more:

====================  ================================================================================================
GAME                  its value as a matrix game (Shapley 1953): both may mix
MAXIMIN, MINIMAX      the row (column) team commits itself to one joint action, which the other sees
ROWS_ANSWER           the column team's policy is fixed, the row team plays its best *plan*: a joint action, or what
                      follows from the choice of one member whose teammates keep their part
COLUMNS_ANSWER        likewise the other way round
EVALUATE              both policies are fixed
====================  ================================================================================================

The arrays are those of `palaestra.exact.positions.PositionTable`; ``x`` and ``y`` hold the policies of the two teams
along its `actions`.
"""

from __future__ import annotations

import numpy as np

from palaestra.exact.compiled import compiled, inner
from palaestra.exact.simplex import SADDLE, bracket, clear, pure_security, solve_matrix

GAME, MAXIMIN, MINIMAX, ROWS_ANSWER, COLUMNS_ANSWER, EVALUATE = range(6)

ROUNDING = 1e-15
"""Relative error of sums of local payoffs, added to every bracket (8 units in the last place and a little)."""


@inner
def local_game(p, cell_start, rewards, following, columns, rows, gamma, values, x, use_x, y, use_y, a):
    """Writes the local game of a position. Cells that a fixed policy never plays are left out (zero)."""
    chance_outcomes = following.shape[1]
    cell = cell_start[p]
    for i in range(rows):
        for j in range(columns):
            a[i, j] = 0.0
            if not ((use_x and x[i] == 0.0) or (use_y and y[j] == 0.0)):
                ahead = 0.0
                for k in range(chance_outcomes):
                    q = following[cell, k]
                    if q >= 0:
                        ahead += values[q]
                a[i, j] = rewards[cell] + gamma * ahead / chance_outcomes
            cell += 1


@inner
def best_answer(a, rows, columns, x, y, for_rows, plan, weight, gains):
    """Best plan of one team against the other's fixed policy, written into its policy.

    ``plan`` and ``weight`` hold for each joint action of the answering team to which plan it belongs and how likely it
    is under it; ``gains`` is work.

    Returns:
        What the row team gets.
    """
    own, other = (rows, columns) if for_rows else (columns, rows)
    answer, fixed = (x, y) if for_rows else (y, x)
    for k in range(own):
        gains[plan[k]] = 0.0
    for k in range(own):
        for j in range(other):
            payoff = a[k, j] if for_rows else -a[j, k]
            gains[plan[k]] += weight[k] * fixed[j] * payoff
    chosen = plan[0]
    for k in range(own):
        if gains[plan[k]] > gains[chosen]:
            chosen = plan[k]
    for k in range(own):
        answer[k] = weight[k] if plan[k] == chosen else 0.0
    return gains[chosen] if for_rows else -gains[chosen]


@inner
def expected(a, rows, columns, x, y):
    """What two policies give the row team."""
    total = 0.0
    for i in range(rows):
        if x[i] > 0.0:
            for j in range(columns):
                total += x[i] * a[i, j] * y[j]
    return total


@inner
def commit(a, rows, columns, rule, x, y):
    """One team commits to a pure strategy, the other answers. Returns what the row team gets."""
    row, maximin, column, minimax = pure_security(a, rows, columns)
    if rule == MAXIMIN:
        for j in range(columns):
            if a[row, j] < a[row, column]:
                column = j
    else:
        for i in range(rows):
            if a[i, column] > a[row, column]:
                row = i
    clear(x, rows)
    clear(y, columns)
    x[row] = 1.0
    y[column] = 1.0
    return maximin if rule == MAXIMIN else minimax


@compiled
def sweep(
    rule, cell_start, rewards, following, row_start, column_start, gamma, values, loose, x, y, plan, weight,
    width, lower, upper, method,
):  # fmt: skip
    """Applies T to ``values`` in all positions: brackets ``lower`` <= T V <= ``upper``, strategies into x and y.

    ``loose`` is the width of a bracket below which the last strategies are reused.
    """
    a = np.empty((width, width))
    t = np.empty((width + 2, width + 2))
    labels, kept = np.empty((4, width + 2), np.int64), np.empty((4, width + 2))
    plans = 0
    for k in range(len(plan)):
        plans = max(plans, plan[k] + 1)
    gains = np.empty(plans)
    use_x = rule in (COLUMNS_ANSWER, EVALUATE)
    use_y = rule in (ROWS_ANSWER, EVALUATE)
    for p in range(len(values)):
        rows = row_start[p + 1] - row_start[p]
        columns = column_start[p + 1] - column_start[p]
        xp, yp = x[row_start[p] : row_start[p + 1]], y[column_start[p] : column_start[p + 1]]
        local_game(p, cell_start, rewards, following, columns, rows, gamma, values, xp, use_x, yp, use_y, a)
        if rule == GAME:
            if method[p] != SADDLE:
                base = a[0, 0]
                lo, up = bracket(a, rows, columns, xp, yp, base)
                lower[p], upper[p] = base + lo, base + up
            if method[p] == SADDLE or upper[p] - lower[p] > loose:
                lower[p], upper[p], _, method[p] = solve_matrix(a, rows, columns, xp, yp, t, labels, kept)
        else:
            if rule in (MAXIMIN, MINIMAX):
                value = commit(a, rows, columns, rule, xp, yp)
            elif rule == EVALUATE:
                value = expected(a, rows, columns, xp, yp)
            else:
                own = row_start if rule == ROWS_ANSWER else column_start
                planned, weights = plan[own[p] : own[p + 1]], weight[own[p] : own[p + 1]]
                value = best_answer(a, rows, columns, xp, yp, rule == ROWS_ANSWER, planned, weights, gains)
            lower[p], upper[p] = value, value
        largest = 0.0
        for i in range(rows):
            for j in range(columns):
                largest = max(largest, abs(a[i, j]))
        lower[p] -= ROUNDING * largest
        upper[p] += ROUNDING * largest


@compiled
def solve_positions(which, cell_start, row_start, column_start, payoffs, values, rows, columns, width):
    """Solves the matrix games ``payoffs`` (along the cells) of the positions where ``which`` is set, and clears it."""
    a = np.empty((width, width))
    t = np.empty((width + 2, width + 2))
    labels, kept = np.empty((4, width + 2), np.int64), np.empty((4, width + 2))
    for p in range(len(which)):
        if which[p]:
            which[p] = False
            m, n = row_start[p + 1] - row_start[p], column_start[p + 1] - column_start[p]
            for i in range(m):
                for j in range(n):
                    a[i, j] = payoffs[cell_start[p] + i * n + j]
            x, y = rows[row_start[p] : row_start[p + 1]], columns[column_start[p] : column_start[p + 1]]
            lower, upper, _, _ = solve_matrix(a, m, n, x, y, t, labels, kept)
            values[p] = lower + (upper - lower) / 2


@compiled
def follow_policies(cell_start, rewards, following, row_start, column_start, gamma, x, y, values, tolerance, most):
    """Values of two fixed policies by sweeps in place, until no value changes by more than ``tolerance``."""
    chance_outcomes = following.shape[1]
    for _ in range(most):
        change = 0.0
        for p in range(len(values)):
            columns = column_start[p + 1] - column_start[p]
            cell = cell_start[p]
            total = 0.0
            for i in range(row_start[p], row_start[p + 1]):
                if x[i] > 0.0:
                    for j in range(columns):
                        share = x[i] * y[column_start[p] + j]
                        if share > 0.0:
                            ahead = 0.0
                            for k in range(chance_outcomes):
                                q = following[cell + j, k]
                                if q >= 0:
                                    ahead += values[q]
                            total += share * (rewards[cell + j] + gamma * ahead / chance_outcomes)
                cell += columns
            change = max(change, abs(total - values[p]))
            values[p] = total
        if change <= tolerance:
            break


@compiled
def margins(order, cell_start, following, gamma, residual, margin):
    """Adds up residuals along the order of play: margin(p) = max(residual(p), 0) + gamma max over next of margin."""
    for p in order:
        worst = 0.0
        for cell in range(cell_start[p], cell_start[p + 1]):
            for q in following[cell]:
                if q >= 0:
                    worst = max(worst, margin[q])
        margin[p] = max(residual[p], 0.0) + gamma * worst


@compiled
def order_of_play(following, cell_start):
    """Positions in an order in which nothing comes before what it leads to; shorter than all of them on a cycle."""
    positions = len(cell_start) - 1
    leads_to = np.zeros(positions, np.int64)
    comes_from = np.zeros(positions + 1, np.int64)
    for p in range(positions):
        for cell in range(cell_start[p], cell_start[p + 1]):
            for q in following[cell]:
                if q >= 0:
                    leads_to[p] += 1
                    comes_from[q + 1] += 1
    for p in range(positions):
        comes_from[p + 1] += comes_from[p]
    source = np.empty(comes_from[positions], np.int32)
    filled = comes_from[:-1].copy()
    for p in range(positions):
        for cell in range(cell_start[p], cell_start[p + 1]):
            for q in following[cell]:
                if q >= 0:
                    source[filled[q]] = p
                    filled[q] += 1
    order = np.empty(positions, np.int64)
    found = 0
    for p in range(positions):
        if leads_to[p] == 0:
            order[found] = p
            found += 1
    done = 0
    while done < found:
        q = order[done]
        done += 1
        for k in range(comes_from[q], comes_from[q + 1]):
            p = source[k]
            leads_to[p] -= 1
            if leads_to[p] == 0:
                order[found] = p
                found += 1
    return order[:found]
