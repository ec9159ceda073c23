"""The claims about the exact solvers hold."""

from __future__ import annotations

import pytest
from games.play import python

import exact_claims

pytestmark = pytest.mark.slow


def test_the_solver_is_as_exact_as_claimed():
    assert [measurement.holds for measurement in exact_claims.matrix_accuracy(matrices=500)] == [True, True]


def test_littmans_soccer_is_as_claimed():
    assert all(measurement.holds for measurement in exact_claims.littman() if " s to " not in measurement.about)


@pytest.mark.slow
def test_all_bars_hold():
    pytest.importorskip("scipy", reason="the comparison needs the extra palaestra[exact]")
    assert exact_claims.main() == 0


def test_importing_palaestra_does_not_load_the_solvers():
    assert python("import sys, palaestra; print('palaestra.exact' in sys.modules)") == "False"
    assert python("import sys, palaestra.exact; print('torch' in sys.modules)") == "False"
