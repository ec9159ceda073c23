"""Interpolation in the tables of an aircraft file: kernel functions.

All numbers of an airframe, breakpoints and data, stand in one array; a table is named by places in it. Between
breakpoints the value is linear, beyond them it is that of the last breakpoint.
"""

from __future__ import annotations


def place(numbers, first, count, value):
    """Interval of ``value`` among breakpoints, and how far inside it lies, in [0, 1].

    Args:
        numbers: All numbers of the airframe, float64 ``[K]``.
        first: Where the breakpoints begin; they rise.
        count: How many there are, at least 2.
        value: Where the table is looked up.

    Returns:
        Number of the lower breakpoint, and the share of the interval below ``value``.
    """
    k = first + 1
    last = first + count - 1
    while k < last and numbers[k] < value:
        k += 1
    low = numbers[k - 1]
    share = (value - low) / (numbers[k] - low)
    return k - 1 - first, min(max(share, 0.0), 1.0)


def line(numbers, data, k, share):
    """Value of a table with one variable whose data begin at ``data``; ``k`` and ``share`` are what `place` returns."""
    low = numbers[data + k]
    return share * (numbers[data + k + 1] - low) + low


def plane(numbers, data, columns, row, row_share, column, column_share):
    """Value of a table with two variables, stored row by row; places of both as `place` returns them."""
    at = data + row * columns + column
    left = row_share * numbers[at + columns] + (1.0 - row_share) * numbers[at]
    right = row_share * numbers[at + columns + 1] + (1.0 - row_share) * numbers[at + 1]
    return column_share * (right - left) + left
