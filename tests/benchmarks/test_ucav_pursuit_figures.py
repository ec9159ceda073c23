"""The figures of the pilot of UcavPursuit, with runs of a second."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

pytest.importorskip("jsbsim")
pytest.importorskip("stable_baselines3")
pytest.importorskip("tyro")
pytest.importorskip("matplotlib")

from learning import ucav_pursuit_figures
from learning.drawing import read_table
from learning.figures import FigureArgs
from learning.study import Made
from learning.ucav_pursuit_figures import ARMS, BARS, MACRO, OTHERS, STICK, TENTHS
from palaestra_baselines.ucav_pursuit import TESTS

pytestmark = pytest.mark.slow

STUDY = ucav_pursuit_figures.FIGURES[0]

SMALL: dict[str, Any] = {
    "lanes": 8,
    "rollout": 16,
    "minibatches": 1,
    "evaluations": 2,
    "matches": 2,
}


def test_the_pilots_are_tested_and_installed(figure_args: FigureArgs, monkeypatch: pytest.MonkeyPatch):
    entries = tuple(replace(entry, steps=256, arguments=SMALL) for entry in STUDY.entries)
    monkeypatch.setattr(ucav_pursuit_figures, "TEST_MATCHES", 2)
    replace(STUDY, entries=entries).make(figure_args)
    assert (figure_args.figures / "ucav_pursuit.png").read_bytes().startswith(b"\x89PNG")
    rows = read_table(figure_args.figures / "ucav_pursuit_results.csv")
    assert len(rows) == len(TESTS) * (2 * len(ARMS) + len(OTHERS))
    assert (figure_args.assets / "weights" / "ucav_pursuit.safetensors").is_file()


def test_a_bar_holds_where_each_seed_holds_it():
    name = next(iter(TESTS))
    rows = [{"player": STICK, "seed": k, "test": name, "kills": x, "cpu_s": 130.0} for k, x in enumerate((1.0, 0.9))]
    rows += [{"player": MACRO, "seed": 0, "test": name, "kills": 0.7, "cpu_s": 130.0}]
    told = "\n".join(ucav_pursuit_figures.result_lines(STUDY, rows, Made({}, {}, FigureArgs())))
    assert "1.000  0.900  at least 0.95: MISSED" in told
    assert "0.700  at least 0.6: holds" in told
    assert "up to 130 s  at most 120 s: MISSED" in told
    assert "up to 130 s  at most 300 s: holds" in told


def test_the_first_hour_has_a_row_for_each_tenth_of_each_seed(
    figure_args: FigureArgs, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(
        ucav_pursuit_figures, "train_by_default", partial(ucav_pursuit_figures.train_by_default, steps=4096)
    )
    ucav_pursuit_figures.first_hour(figure_args)
    rows = read_table(figure_args.figures / "ucav_first_hour.csv")
    assert [(row["seed"], int(row["steps"])) for row in rows[TENTHS - 1 : TENTHS + 1]] == [("0", 4096), ("1", 409)]
    assert "kills 0.00 in the last tenth" in capsys.readouterr().out


def test_bars_name_players_and_tests_that_there_are():
    assert {player for player, _ in BARS} <= {*ARMS, *OTHERS}
    assert {test for _, test in BARS} <= set(TESTS)
