"""The figures can be measured by a command, and by other commands as plain dicts."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from games.play import python

from palaestra.exact import solver_figures


def test_figures_are_plain_dicts_with_a_verdict():
    rows = solver_figures.matrix_accuracy(matrices=500)
    assert [row["holds"] for row in rows] == [True, True]
    assert json.loads(json.dumps(rows)) == rows
    assert solver_figures.figure("too slow", 2.0, 1.0, at_least=False)["holds"] is False
    assert solver_figures.figure("for comparison", 2.0, None, at_least=True)["holds"] is None


def test_littmans_soccer_is_as_claimed():
    rows = {row["about"].partition(":")[2]: row for row in solver_figures.littman()}
    assert all(row["holds"] for about, row in rows.items() if " s to " not in about)


@pytest.mark.slow
def test_all_bars_hold():
    pytest.importorskip("scipy", reason="the comparison needs the extra palaestra[exact]")
    run = subprocess.run(
        [sys.executable, "-m", "palaestra.exact.solver_figures"], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "MISSED" not in run.stdout


def test_importing_palaestra_does_not_load_the_solvers():
    assert python("import sys, palaestra; print('palaestra.exact' in sys.modules)") == "False"
    assert python("import sys, palaestra.exact; print('torch' in sys.modules)") == "False"
