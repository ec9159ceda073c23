"""Exact values of small games of GraphPursuit, found by playing the compiled rules from every position."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pursuit.hunts import ID

from palaestra import exact
from palaestra.games.pursuit.solver import NEVER

GAMMA = 0.9
ALTERNATING = [("path:4", 1, ()), ("cycle:9", 1, (4,)), ("path:6", 2, (0,)), ("grid:3x3", 2, ())]


@pytest.mark.check
@pytest.mark.parametrize(("graph", "pursuers", "exits"), ALTERNATING)
def test_values_of_alternating_moves_are_those_of_capture_and_escape_times(graph: str, pursuers: int, exits: Any):
    solution = exact.solve(ID, GAMMA, graph=graph, pursuers=pursuers, exits=list(exits), order="alternating")
    solved = exact.pursuit(graph, pursuers, exits=exits)
    starts = solution.table.starts
    turn, *nodes = np.unravel_index(solution.table.numbers[starts], (2, *solved.times.shape))
    assert not turn.any(), "the pursuers begin"
    assert (np.diff(nodes[:-1], axis=0) >= 0).all(), "pursuers are alike"
    times = solved.times[tuple(nodes)].astype(float)
    expected = np.where(times == NEVER, 0.0, GAMMA ** (2 * times - 2))
    if exits:
        escapes = solved.escapes[tuple(nodes)].astype(float)
        expected -= np.where(escapes == NEVER, 0.0, GAMMA ** (2 * escapes - 1))
        assert expected.min() < 0.0 < expected.max()
    np.testing.assert_allclose(solution.values[starts], expected, atol=1e-6)


@pytest.mark.check
@pytest.mark.parametrize(
    ("graph", "expected"),
    [("complete:3", [[0, 1, 1], [1, 0, 1], [1, 1, 0]]), ("path:3", [[0, 2, 2], [3, 0, 3], [2, 2, 0]])],
)
def test_values_of_simultaneous_moves_are_those_by_hand(graph: str, expected: list[list[int]]):
    """By pursuer and evader. On a triangle v = (1 + GAMMA v) / 2: a pursuer guesses whether the evader stays.

    From the middle of a path it captures at once, from an end a decision later: it goes to the middle first.
    """
    values = np.array([0.0, 1.0 / (2.0 - GAMMA), GAMMA, 1.0])[np.array(expected)]
    solution = exact.solve(ID, GAMMA, graph=graph, pursuers=1)
    starts = solution.table.starts
    assert len(starts) == 6
    found = solution.values[starts]
    np.testing.assert_allclose(found, values[np.unravel_index(solution.table.numbers[starts], (3, 3))], atol=1e-6)
    assert solution.start_value == pytest.approx(values.sum() / 6.0, abs=1e-6)
