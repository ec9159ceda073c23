"""The arms of ARAC and what is told of their curves, without a run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("tyro")

from learning import pursuit_figures
from learning.drawing import STYLES
from learning.pursuit_figures import METHODS, STUDIES
from learning.study import Entry

pytestmark = pytest.mark.check

RESULT = {"method": "arac", "test": "as learnt", "won": 0.5, "slower": 0.0, "cpu_s": 60.0}


def test_a_curve_that_falls_after_it_was_high_is_told_by_its_worst_seed():
    entry = Entry("grid", "arac", 1, fall=0.15)
    curves = ((0.0, 0.7, 0.2, 0.8, 0.95, 0.85), (0.0, 0.82, 0.9, 0.4, 0.99, 0.7))
    logs = {("grid", "arac"): [[{"steps": 1.0, "win_rate": rate} for rate in curve] for curve in curves]}
    (line,) = pursuit_figures.median_lines(replace(STUDIES["grid"], entries=(entry,)), [RESULT], logs)
    assert line.endswith("last 4 0.724  no seed falls more than 0.15 (0.50): MISSED")
    assert pursuit_figures.largest_fall(logs["grid", "arac"][0]) == pytest.approx(0.1)
    assert pursuit_figures.largest_fall([{"win_rate": 0.79}, {"win_rate": 0.1}]) == 0.0


def test_the_arms_differ_in_one_part_each(tmp_path: Path):
    arms = STUDIES["arms"]
    runs: Any = {entry.method: arms.run_of(entry, 0, tmp_path) for entry in arms.entries}
    parts = {name: (run.beta, run.beta_first, run.reference_lanes > 0) for name, run in runs.items()}
    assert parts == {
        "arac": ("adaptive", 0.03, True),
        "fixed_least": ("fixed", 0.003, True),
        "fixed_middle": ("fixed", 0.01, True),
        "fixed": ("fixed", 0.03, True),
        "linear": ("linear", 0.03, True),
        "none": ("none", 0.03, False),
        "lanes": ("lanes", 0.03, True),
        "divergence": ("fixed", 0.03, False),
    }
    for run in runs.values():
        run.check()
        assert (run.entropy, run.play) == ((0.002, 0.0005), "drawn")
    styles = [STYLES[METHODS[entry.method].title] for entry in arms.entries]
    assert all(len(set(parts)) == len(styles) for parts in zip(*styles, strict=True)), "a picture shows them all"
