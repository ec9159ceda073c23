"""Assignment of targets to agents."""

from __future__ import annotations

import math

from palaestra.kernels.vectors import distance


def pair_nearest(points, first_seeker, seekers, first_target, targets, target_of):
    """Splits targets evenly over seekers, nearest pairs first: a greedy matching, O(seekers^2 * targets * seekers).

    No target gets a second seeker before each has one. Of equally near pairs the first target's goes first, then the
    first seeker's.

    Args:
        points: Positions, float64 [N, 2].
        first_seeker: Row of the first seeker; the others follow it.
        seekers: Their number.
        first_target: Row of the first target; the others follow it.
        targets: Their number, at least 1.
        target_of: Gets the row of each seeker's target, int64 [seekers].
    """
    for k in range(seekers):
        target_of[k] = -1
    for paired in range(seekers):
        nearest, seeker, target = math.inf, 0, first_target
        for j in range(first_target, first_target + targets):
            taken = 0
            for k in range(seekers):
                taken += target_of[k] == j
            for k in range(seekers):
                if target_of[k] < 0 and taken <= paired // targets:
                    apart = distance(points, first_seeker + k, j)
                    if apart < nearest:
                        nearest, seeker, target = apart, k, j
        target_of[seeker] = target
