"""The arena of `arena_duel`: obstacles, where robots can drive and on which way, and what sees what.

Robots drive on a lattice of `SPACING_M`. Everything here is computed once, in plain NumPy, and handed to the rules as
read-only tables. The arena is its own image under reflection at its middle, and so is every table: node i is opposite
to node ``NODES - 1 - i`` and post k to the last but k.
"""

from __future__ import annotations

import heapq
import math
from typing import NamedTuple

import numpy as np

HALF_LENGTH_M, HALF_WIDTH_M = 4.0, 2.25
"""Of the arena, along x and z. The origin is in its middle."""
ROBOT_RADIUS_M = 0.25
SPACING_M = 0.25
COLUMNS_OUT, ROWS_OUT = 15, 8
"""Columns and rows of the lattice on each side of the middle: where a robot has room between the walls."""
COLUMNS, ROWS = 2 * COLUMNS_OUT + 1, 2 * ROWS_OUT + 1
NODES = COLUMNS * ROWS
POST_COLUMNS, POST_ROWS = (-14, -10, -6, -2, 2, 6, 10, 14), (-6, -2, 2, 6)
"""Of the places that robots choose to drive to: a metre apart."""

_HALF = ((-2.75, 1.25, 0.4, 0.1), (-2.25, 0.0, 0.1, 0.4), (-2.75, -1.85, 0.1, 0.4), (-0.75, 1.25, 0.5, 0.1))
OBSTACLES_M = np.array(
    [*_HALF, (0.0, 0.0, 0.2, 0.2), *((-x, -z, along, across) for x, z, along, across in _HALF[::-1])]
)
"""The nine boxes: middle x and z, half lengths along x and z; float64 [9, 4]. Each has its opposite."""


class Arena(NamedTuple):
    """What does not change during a match.

    Attributes:
        sight: Whether nothing is between two nodes, uint8 [NODES, NODES].
        post_node: Nodes of the posts, int64 [P].
        post_m: Places of the posts, x and z, float64 [P, 2].
        way_m: Length of the shortest way from a node to a post, float64 [P, NODES]; infinite from inside an obstacle.
        next_node: The node after this one on that way, the post itself at its end, int16 [P, NODES].
        is_sparse: 1 if only the end of a match is paid.
    """

    sight: np.ndarray
    post_node: np.ndarray
    post_m: np.ndarray
    way_m: np.ndarray
    next_node: np.ndarray
    is_sparse: int


def node_positions_m() -> np.ndarray:
    """Places of all nodes, x and z, row after row, float64 [NODES, 2]."""
    z, x = np.mgrid[-ROWS_OUT : ROWS_OUT + 1, -COLUMNS_OUT : COLUMNS_OUT + 1]
    return SPACING_M * np.stack([x.ravel(), z.ravel()], axis=1)


def free_nodes() -> np.ndarray:
    """Nodes at which a robot touches no obstacle, bool [NODES]."""
    apart_m = np.abs(node_positions_m()[:, None] - OBSTACLES_M[:, :2]) - OBSTACLES_M[:, 2:]
    return (apart_m.max(2) >= ROBOT_RADIUS_M - 1e-9).all(1)


def sight_table() -> np.ndarray:
    """Whether the segment between two nodes crosses the inside of no obstacle (slab test), uint8 [NODES, NODES].

    A segment enters a box where it has entered both of the box's slabs, and leaves it where it leaves the first.
    """
    x_m, z_m = (SPACING_M * np.arange(-out, out + 1) for out in (COLUMNS_OUT, ROWS_OUT))
    sight = np.ones((ROWS, COLUMNS, ROWS, COLUMNS), np.bool_)
    for middle_x, middle_z, half_x, half_z in OBSTACLES_M:
        enter_x, leave_x = slab(x_m, middle_x, half_x)
        enter_z, leave_z = slab(z_m, middle_z, half_z)
        enter = np.maximum(enter_x[None, :, None, :], enter_z[:, None, :, None])
        leave = np.minimum(leave_x[None, :, None, :], leave_z[:, None, :, None])
        sight &= enter >= leave - 1e-9
    sight = sight.reshape(NODES, NODES)
    return (sight & sight.T & sight[::-1, ::-1]).astype(np.uint8)  # the rounding of a slab has no direction


def slab(line_m: np.ndarray, middle_m: float, half_m: float) -> tuple[np.ndarray, np.ndarray]:
    """Shares in [0, 1] of the way from each line of the lattice to each other at which it enters and leaves a slab.

    Args:
        line_m: Coordinates of the lines along one axis, float64 [L].
        middle_m: Of the slab, along that axis.
        half_m: Half of its width.

    Returns:
        Two float64 [L, L]. A way inside the slab enters at 0 and leaves at 1; one that misses it enters at over 1.
    """
    from_middle, along = np.broadcast_arrays((line_m - middle_m)[:, None], line_m[None] - line_m[:, None])
    is_parallel = along == 0.0
    divisor = np.where(is_parallel, 1.0, along)
    first, second = (-half_m - from_middle) / divisor, (half_m - from_middle) / divisor
    misses = np.abs(from_middle) >= half_m
    near = np.where(is_parallel, np.where(misses, 2.0, -1.0), np.minimum(first, second))
    far = np.where(is_parallel, 2.0, np.maximum(first, second))
    return np.maximum(near, 0.0), np.minimum(far, 1.0)


def neighbours(node: int, free: np.ndarray) -> list[tuple[int, float]]:
    """Nodes a step away and the length of the step, m. A step aslant needs room on both of its sides."""
    row, column = divmod(node, COLUMNS)
    found = []
    for down in (-1, 0, 1):
        for right in (-1, 0, 1):
            there = (row + down, column + right)
            if (down, right) == (0, 0) or not (0 <= there[0] < ROWS and 0 <= there[1] < COLUMNS):
                continue
            passed = (there, (row + down, column), (row, column + right))
            if all(free[r * COLUMNS + c] for r, c in passed):
                found.append((there[0] * COLUMNS + there[1], SPACING_M * math.sqrt(down * down + right * right)))
    return found


def ways_to(post: int, steps: list[list[tuple[int, float]]]) -> tuple[np.ndarray, np.ndarray]:
    """Length of the shortest way from every node to a post, and the node that follows on it (Dijkstra).

    Args:
        post: Node of the post.
        steps: `neighbours` of every node.

    Returns:
        float64 [NODES], infinite where there is no way, and int16 [NODES].
    """
    way_m, following = np.full(NODES, np.inf), np.arange(NODES, dtype=np.int16)
    way_m[post] = 0.0
    queue = [(0.0, post)]
    while queue:
        so_far_m, node = heapq.heappop(queue)
        if so_far_m > way_m[node]:
            continue
        for other, step_m in steps[node]:
            if so_far_m + step_m < way_m[other] - 1e-9:
                way_m[other], following[other] = so_far_m + step_m, node
                heapq.heappush(queue, (so_far_m + step_m, other))
    return way_m, following


def build(is_sparse: bool) -> Arena:
    """The tables. Ways to the second half of the posts are the reflected ways to the first."""
    free = free_nodes()
    lattice = [(r + ROWS_OUT) * COLUMNS + c + COLUMNS_OUT for r in POST_ROWS for c in POST_COLUMNS]
    posts = np.array([node for node in lattice if free[node]])
    steps = [neighbours(node, free) for node in range(NODES)]
    ways = [ways_to(int(post), steps) for post in posts[: len(posts) // 2]]
    ways += [(way_m[::-1], NODES - 1 - following[::-1]) for way_m, following in ways[::-1]]
    return Arena(
        sight=sight_table(),
        post_node=posts,
        post_m=node_positions_m()[posts],
        way_m=np.array([way_m for way_m, _ in ways]),
        next_node=np.array([following for _, following in ways], np.int16),
        is_sparse=int(is_sparse),
    )
