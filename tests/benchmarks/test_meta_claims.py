"""The expert of one task is no expert in the others, and the program that says so counts right."""

import dataclasses

import numpy as np
import pytest

import meta_claims


@pytest.mark.slow
@pytest.mark.parametrize("name", meta_claims.SETS)
def test_experts_of_other_tasks_earn_little_and_the_own_one_exactly_100(name: str):
    table = meta_claims.measure(name, 20)
    np.testing.assert_allclose(np.diag(table.score(table.others)), 100.0)
    assert table.holds
    assert table.score(table.average).max() < 85.0


def test_scores_are_shares_of_the_way_from_random_play_to_the_tasks_own_expert():
    others = np.array([[10.0, 3.0, 0.0], [2.0, 7.0, 5.0], [6.0, 3.0, 4.0]])
    table = meta_claims.Table("x", np.diag(others), np.array([0.0, 3.0, -6.0]), np.array([5.0, 5.0, -1.0]), others)
    np.testing.assert_allclose(table.pairs, [[20.0, 60.0], [0.0, 0.0], [60.0, 110.0]])
    assert table.row()[3:] == ["50", "41.7", "0 to 85", "MISSED"]
    assert dataclasses.replace(table, others=others - 1.0).row()[-1] == "holds"
    assert table.rows_by_task()[1] == ["x", "1", "7.00", "3.00", "50.00", "0.00"]
