"""Scripts of the Concert games."""

from __future__ import annotations

NAMES = ("hold",)


def plan(s, board, power, which, scratch):
    """Orders of a power."""
    for j in range(board.slots):
        scratch.planned[power, j] = 0


def choose(s, board, power, scratch):
    """The place of the order in the list."""
    return 0
