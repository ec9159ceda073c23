"""Matrix games by a dense simplex method, compiled: what `palaestra.exact.matrix_solver` and the sweeps call.

The row player gets ``A[i, j]`` and maximises, the column player pays and minimises (von Neumann, "Zur Theorie der
Gesellschaftsspiele", Mathematische Annalen 100, 1928). With all payoffs moved into [1, 2] the column player's best
strategy is y = u / sum(u), where u solves the linear program (Dantzig 1951)

    max sum(u)   subject to   B u <= 1,   u >= 0,

and the row player's is its dual solution, likewise divided by its sum; the value of B is 1 / sum(u). The tableau holds
no unit columns: a pivot exchanges the labels of a row and a column. Everything that is returned is certified on the
payoffs themselves: for any strategies x and y the value lies in [min(x A), max(A y)].
"""

from __future__ import annotations

import numpy as np

from palaestra.exact.compiled import compiled, inner

METHODS = ("saddle", "simplex", "refined", "highs")
SADDLE, SIMPLEX, REFINED, HIGHS = range(4)
"""What gave the strategies: a pure saddle point, the simplex method, its last basis solved again from the payoffs, or
the solver HiGHS (`palaestra.exact.matrix_solver`)."""

OPTIMAL = 1e-12
"""Reduced costs (of payoffs in [1, 2]) that count as zero."""
SMALLEST_PIVOT = 1e-10
REFINE_OVER = 1e-12
"""Relative gap over which the last basis is solved again."""
RETRY_OVER = 1e-10
"""Relative gap over which the game is solved once more with the players exchanged, along another way of pivots."""
PATIENCE = 12
"""Pivots without gain before Bland's rule takes over; it cannot cycle."""


# Loops instead of assignments to slices: for those numba compiles messages about shapes, which takes seconds.


@inner
def copy_numbers(source, n, to):
    """The first n numbers."""
    for k in range(n):
        to[k] = source[k]


@inner
def clear(p, n):
    """Writes n zeros."""
    for k in range(n):
        p[k] = 0.0


@compiled
def bracket(a, m, n, x, y, base):
    """Certificate of two strategies: the value of ``a[:m, :n]`` lies in ``base`` + [min(x A), max(A y)].

    All payoffs are taken less ``base``, one of them, so that nothing is lost where they differ by little.
    """
    lower = np.inf
    for j in range(n):
        paid = 0.0
        for i in range(m):
            paid += x[i] * (a[i, j] - base)
        lower = min(lower, paid)
    upper = -np.inf
    for i in range(m):
        gained = 0.0
        for j in range(n):
            gained += y[j] * (a[i, j] - base)
        upper = max(upper, gained)
    return min(lower, upper), max(lower, upper)  # rounding may cross them


@inner
def pure_security(a, m, n):
    """Row and payoff that are best against an answer that knows the row (max min), likewise of the column (min max)."""
    row, maximin = 0, -np.inf
    for i in range(m):
        least = a[i, 0]
        for j in range(1, n):
            least = min(least, a[i, j])
        if least > maximin:
            row, maximin = i, least
    column, minimax = 0, np.inf
    for j in range(n):
        most = a[0, j]
        for i in range(1, m):
            most = max(most, a[i, j])
        if most < minimax:
            column, minimax = j, most
    return row, maximin, column, minimax


@inner
def least_and_range(a, m, n):
    """Least payoff, and the largest less that."""
    least, most = a[0, 0], a[0, 0]
    for i in range(m):
        for j in range(n):
            least = min(least, a[i, j])
            most = max(most, a[i, j])
    return least, most - least


@inner
def lay_out(a, m, n, least, span, exchanged, t, row_label, column_label):
    """Writes the first tableau: payoffs moved into [1, 2], slack variables (n, n + 1, ...) basic.

    With the players exchanged it is that of ``-a.T``, which has n rows and m columns.
    """
    rows, columns = (n, m) if exchanged else (m, n)
    for i in range(rows):
        for j in range(columns):
            t[i, j] = 2.0 - (a[j, i] - least) / span if exchanged else 1.0 + (a[i, j] - least) / span
        t[i, columns] = 1.0
        row_label[i] = columns + i
    for j in range(columns):
        t[rows, j] = -1.0
        column_label[j] = j
    t[rows, columns] = 0.0


@inner
def entering_column(t, m, n, column_label, bland):
    """The column with the lowest reduced cost, or by Bland's rule that of the lowest label; -1 at the optimum."""
    chosen, least = -1, -OPTIMAL
    for j in range(n):
        cost = t[m, j]
        if bland:
            if cost < -OPTIMAL and (chosen < 0 or column_label[j] < column_label[chosen]):
                chosen = j
        elif cost < least:
            chosen, least = j, cost
    return chosen


@inner
def leaving_row(t, m, n, column, row_label, bland):
    """The row that bounds the step; of equal ones that with the largest pivot, or of the lowest label."""
    chosen, best = -1, np.inf
    for i in range(m):
        pivot = t[i, column]
        if pivot <= SMALLEST_PIVOT:
            continue
        ratio = max(t[i, n], 0.0) / pivot
        if ratio < best:
            chosen, best = i, ratio
        elif ratio == best:
            better = row_label[i] < row_label[chosen] if bland else pivot > t[chosen, column]
            if better:
                chosen = i
    return chosen


@inner
def exchange(t, m, n, r, c):
    """One pivot."""
    inverse = 1.0 / t[r, c]
    for j in range(n + 1):
        t[r, j] *= inverse
    t[r, c] = inverse
    for i in range(m + 1):
        factor = t[i, c]
        if i == r or factor == 0.0:
            continue
        t[i, c] = 0.0
        for j in range(n + 1):
            t[i, j] -= factor * t[r, j]


@inner
def pivot_to_optimum(t, m, n, row_label, column_label):
    """Pivots until no reduced cost is negative, or for so long that something must be wrong."""
    idle, gained = 0, 0.0
    for _ in range(50 * (m + n)):
        bland = idle > PATIENCE
        c = entering_column(t, m, n, column_label, bland)
        if c < 0:
            return
        r = leaving_row(t, m, n, c, row_label, bland)
        if r < 0:
            return
        exchange(t, m, n, r, c)
        row_label[r], column_label[c] = column_label[c], row_label[r]
        idle = 0 if t[m, n] > gained else idle + 1
        gained = max(gained, t[m, n])


@inner
def normalise(p, n):
    """Makes a strategy of numbers that should be non-negative."""
    total = 0.0
    for j in range(n):
        p[j] = max(p[j], 0.0)
        total += p[j]
    for j in range(n):
        p[j] = p[j] / total if total > 0.0 else 1.0 / n


@inner
def read_strategies(t, m, n, row_label, column_label, x, y):
    """Takes both strategies from an optimal tableau."""
    clear(x, m)
    clear(y, n)
    for i in range(m):
        if row_label[i] < n:
            y[row_label[i]] = t[i, n]
    for j in range(n):
        if column_label[j] >= n:
            x[column_label[j] - n] = t[m, j]
    normalise(x, m)
    normalise(y, n)


@inner
def eliminate(t, k):
    """Solves the k equations ``t[:k, :k] z = t[:k, k]`` in place by elimination; z is written into column k."""
    for c in range(k):
        r = c
        for i in range(c + 1, k):
            if abs(t[i, c]) > abs(t[r, c]):
                r = i
        if t[r, c] == 0.0:
            return False
        if r != c:
            for j in range(c, k + 1):
                t[r, j], t[c, j] = t[c, j], t[r, j]
        for i in range(c + 1, k):
            factor = t[i, c] / t[c, c]
            for j in range(c, k + 1):
                t[i, j] -= factor * t[c, j]
    for c in range(k - 1, -1, -1):
        for j in range(c + 1, k):
            t[c, k] -= t[c, j] * t[j, k]
        t[c, k] /= t[c, c]
    return True


@inner
def basis_lines(m, n, row_label, column_label, rows, columns):
    """Rows and columns of the payoffs in use, equally many. Returns how many."""
    k = 0
    for j in range(n):
        if column_label[j] >= n:
            rows[k] = column_label[j] - n
            k += 1
    k = 0
    for i in range(m):
        if row_label[i] < n:
            columns[k] = row_label[i]
            k += 1
    return k


@inner
def refine(a, m, n, t, rows, columns, k, x, y):
    """Solves the last basis again from the payoffs: the k rows in use pay the same against the k columns in use."""
    for transposed in range(2):
        for i in range(k):
            for j in range(k):
                t[i, j] = a[rows[j], columns[i]] if transposed else a[rows[i], columns[j]]
            t[i, k] = -1.0
            t[i, k + 1] = 0.0
        for j in range(k):
            t[k, j] = 1.0
        t[k, k] = 0.0
        t[k, k + 1] = 1.0
        if not eliminate(t, k + 1):
            return
        if transposed:
            clear(x, m)
            for i in range(k):
                x[rows[i]] = t[i, k + 1]
        else:
            clear(y, n)
            for j in range(k):
                y[columns[j]] = t[j, k + 1]
    normalise(x, m)
    normalise(y, n)


@inner
def try_simplex(a, m, n, least, span, exchanged, x, y, t, labels, kept_x, kept_y):
    """One run of the simplex method. Returns the bracket less ``least`` and the method."""
    row_label, column_label, rows, columns = labels[0], labels[1], labels[2], labels[3]
    lay_out(a, m, n, least, span, exchanged, t, row_label, column_label)
    if exchanged:
        pivot_to_optimum(t, n, m, row_label, column_label)
        read_strategies(t, n, m, row_label, column_label, y, x)
    else:
        pivot_to_optimum(t, m, n, row_label, column_label)
        read_strategies(t, m, n, row_label, column_label, x, y)
    lower, upper = bracket(a, m, n, x, y, least)
    if upper - lower <= REFINE_OVER * span:
        return lower, upper, SIMPLEX
    if exchanged:
        k = basis_lines(n, m, row_label, column_label, columns, rows)
    else:
        k = basis_lines(m, n, row_label, column_label, rows, columns)
    copy_numbers(x, m, kept_x)
    copy_numbers(y, n, kept_y)
    refine(a, m, n, t, rows, columns, k, x, y)
    refined_lower, refined_upper = bracket(a, m, n, x, y, least)
    if refined_upper - refined_lower < upper - lower:
        return refined_lower, refined_upper, REFINED
    copy_numbers(kept_x, m, x)
    copy_numbers(kept_y, n, y)
    return lower, upper, SIMPLEX


@inner
def solve_matrix(a, m, n, x, y, t, labels, kept):
    """Solves one matrix game.

    Args:
        a: Payoffs, in ``a[:m, :n]``.
        m: Rows.
        n: Columns.
        x: Receives the row player's strategy, m numbers.
        y: Receives the column player's, n numbers.
        t: Work, at least ``[max(m, n) + 2, max(m, n) + 2]``.
        labels: Work, int64, at least ``[4, max(m, n)]``.
        kept: Work, at least ``[4, max(m, n)]``.

    Returns:
        Certified lower and upper bound of the value, their difference over the range of the payoffs (more exact than
        the bounds themselves where that is small), and which method gave the strategies.
    """
    row, maximin, column, minimax = pure_security(a, m, n)
    if maximin >= minimax:
        clear(x, m)
        clear(y, n)
        x[row] = 1.0
        y[column] = 1.0
        return maximin, minimax, 0.0, SADDLE
    least, span = least_and_range(a, m, n)
    lower, upper, method = -np.inf, np.inf, SIMPLEX
    for exchanged in range(2):
        copy_numbers(x, m, kept[2])
        copy_numbers(y, n, kept[3])
        low, high, how = try_simplex(a, m, n, least, span, exchanged == 1, x, y, t, labels, kept[0], kept[1])
        if exchanged == 0 or high - low < upper - lower:
            lower, upper, method = low, high, how
        else:
            copy_numbers(kept[2], m, x)
            copy_numbers(kept[3], n, y)
        if upper - lower <= RETRY_OVER * span:
            break
    return least + lower, least + upper, (upper - lower) / span, method


@compiled
def solve_matrices(a, x, y, lower, upper, gap, method):
    """`solve_matrix` on each of ``a[k, m, n]``."""
    count, m, n = a.shape
    size = max(m, n) + 2
    t = np.empty((size, size))
    labels, kept = np.empty((4, size), np.int64), np.empty((4, size))
    for k in range(count):
        lower[k], upper[k], gap[k], method[k] = solve_matrix(a[k], m, n, x[k], y[k], t, labels, kept)
