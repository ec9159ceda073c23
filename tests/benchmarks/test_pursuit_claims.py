"""Positions that look alike: by hand on a path, and on a grid what each view tells."""

from __future__ import annotations

import numpy as np
import pytest

from palaestra.games.pursuit.solver import solve_pursuit
from pursuit_claims import aliased_share, best_moves

pytestmark = pytest.mark.check


def test_best_moves_are_those_that_capture_soonest():
    solution = solve_pursuit("path:5", 2)
    down, up = 1, 2  # alternatives of a node inside the path
    found = best_moves(solution, np.array([[1, 3, 2], [1, 1, 4]])).tolist()
    best = [{(k // 3, k % 3) for k in range(9) if bits >> k & 1} for bits in found]
    every = [(one, other) for one in range(3) for other in range(3)]
    assert best[0] == {(one, other) for one, other in every if one == up or other == down}
    assert best[1] == {(one, other) for one, other in every if up in (one, other)}


def test_all_positions_of_a_small_grid_have_a_best_move_that_what_a_team_sees_tells():
    assert aliased_share("grid:4x4", 2) == (0.0, 3600)


def test_hops_from_the_own_node_alone_do_not_tell_it():
    share, positions = aliased_share("grid:4x4", 2, observation="hops")
    assert positions == 3600
    assert share > 0.5
