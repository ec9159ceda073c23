"""Random play seldom solves the sparse tasks of the particle games, their scripts nearly always."""

import numpy as np
import pytest

import sparse_claims
from palaestra import registry
from palaestra.evaluation.matches import MATCH, MatchTable


@pytest.mark.slow
@pytest.mark.parametrize("task", sparse_claims.SCRIPTS)
def test_the_shares_are_those_that_exploration_needs(task: str):
    found = list(sparse_claims.shares(task, sparse_claims.MATCHES))
    assert [share.player for share in found] == ["random", "default"]
    assert all(share.holds for share in found)


@pytest.mark.parametrize(
    ("solved", "holds", "verdict"), [(2, True, "holds"), (3, False, "MISSED"), (0, False, "MISSED")]
)
def test_a_share_outside_its_bar_is_told(solved: int, holds: bool, verdict: str):
    results = np.zeros(100, MATCH)
    results["outcome"][:solved], results["seed"] = 1, range(100)
    table = MatchTable("x", "random", None, registry.make_game("palaestra/SparseSpread-v0")[0], results)
    share = sparse_claims.Share("SparseSpread", "random", table, sparse_claims.RANDOM_BAR)
    assert share.holds is (verdict == "holds")
    assert share.row()[3] == f"{solved:.2f}"
    assert share.row()[-1] == verdict
