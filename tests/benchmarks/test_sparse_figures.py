"""The figures of sparse rewards for teams, with runs of a second."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("tyro")
pytest.importorskip("matplotlib")

from learning import sparse_figures
from learning.drawing import read_table
from learning.figures import FigureArgs
from learning.sparse_figures import METHODS, STUDIES, TUNING
from learning.study import Made, Study

SMALL = {"lanes": 8, "evaluations": 2, "matches": 8}
OFF_POLICY = {**SMALL, "warmup_steps": 64, "batch_size": 8, "value_steps": 2, "decisions_per_update": 64}


def small(group: str, **more: Any) -> Study:
    """The study with runs that take no time."""
    on_policy = {**SMALL, "rollout": 4, "minibatches": 1}
    made = {name: on_policy if method.module == "mappo" else OFF_POLICY for name, method in METHODS.items()}
    entries = (replace(e, steps=256, arguments=made[e.method], **more) for e in STUDIES[group].entries)
    return replace(STUDIES[group], entries=tuple(entries))


@pytest.mark.slow
@pytest.mark.parametrize("group", ["spread2", "tasks"])
def test_a_figure_has_curves_and_results(group: str, figure_args: FigureArgs, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sparse_figures, "DRAWS", 16)
    small(group).make(figure_args)
    assert (figure_args.figures / f"sparse_{group}.png").read_bytes().startswith(b"\x89PNG")
    rows = read_table(figure_args.figures / f"sparse_{group}_results.csv")
    assert len(rows) == 2 * len(STUDIES[group].entries)
    agreeing = {row["method"] for row in rows if row["agree"]}
    assert agreeing == ({"cpeg", "no_guidance"} if group == "spread2" else {"cpeg"})
    assert not [row for row in rows if row["setting"] == "speaker" and row["agree"]]


@pytest.mark.slow
@pytest.mark.parametrize("group", ["pairs", "trap"])
def test_games_of_one_decision_are_told_by_draws_of_the_last_policy(
    group: str, figure_args: FigureArgs, capsys: pytest.CaptureFixture[str]
):
    small(group, seeds=2).make(figure_args)
    assert ("miscoordinated" if group == "pairs" else "intervals apart") in capsys.readouterr().out
    assert len(read_table(figure_args.figures / f"sparse_{group}_results.csv")) == 2 * len(STUDIES[group].entries)


def test_draws_are_told_by_the_peak_they_are_at_and_by_their_reward():
    choices = np.array([[-0.6, -0.6], [0.6, 0.6], [0.6, -0.6], [0.6, 0.6]])
    found = sparse_figures.told("pairs", choices)
    assert (found["low"], found["high"], found["miscoordinated"]) == (0.25, 0.5, 0.25)
    assert found["reward"] == pytest.approx(0.75, abs=1e-6)
    assert sparse_figures.told("trap", choices)["peak"] == 0.5
    assert sparse_figures.told("trap", np.array([[-0.5, -0.5]])) == {"reward": pytest.approx(0.6), "peak": 0.0}


def test_both_peaks_and_nearly_the_best_reward_are_asked_for():
    good = {"low": 0.25, "high": 0.75, "reward": 0.9}
    assert sparse_figures.holds(good)
    assert not sparse_figures.holds({**good, "low": 0.2})
    assert not sparse_figures.holds({**good, "reward": 0.89})
    assert sparse_figures.holds({"peak": 0.6, "reward": 1.0})
    assert not sparse_figures.holds({"peak": 0.4, "reward": 1.0})


def test_intervals_of_few_and_of_no_successes():
    assert sparse_figures.wilson(0, 16) == pytest.approx((0.0, 0.1936), abs=1e-4)
    low, high = sparse_figures.wilson(8, 16)
    assert (low + high) / 2.0 == pytest.approx(0.5)
    assert low == pytest.approx(0.28, abs=1e-2)


def test_the_area_is_the_mean_of_the_curve_up_to_the_steps_of_the_shortest():
    log = [{"steps": 0.0, "return": 0.0}, {"steps": 100.0, "return": 1.0}, {"steps": 200.0, "return": 1.0}]
    assert sparse_figures.area(log, 200.0) == pytest.approx(0.75)
    assert sparse_figures.area(log, 150.0) == pytest.approx(2.0 / 3.0)
    assert sparse_figures.area(log, 1_000.0) == pytest.approx(0.75)


def row(method: str, last: float, cpu_s: float = 100.0, **more: float) -> dict[str, Any]:
    return {"setting": "spread2", "method": method, "last": last, "area": 0.5, "cpu_s": cpu_s, **more}


def test_what_is_asked_of_spread_is_told_with_the_results():
    rows = [row("cpeg", x, agree=0.8, agree_shuffled=0.01) for x in (0.97, 0.98, 0.99)]
    rows += [row("masac", x) for x in (0.90, 0.91, 0.92)] + [row("masac_bonus", x) for x in (0.96, 0.98, 0.99)]
    rows += [row("mappo", 0.4, 200.0)]
    told = "\n".join(sparse_figures.curve_lines(STUDIES["spread2"], rows, Made({}, {}, FigureArgs())))
    assert "codes agree 80 % (shuffled 1 %), 100 s  at most 3 min: holds  at least 75 %: holds" in told
    assert "CPEG  above MASAC: holds  above MASAC with bonus: MISSED  above MAPPO: holds" in told
    assert "200 s  at most 3 min: MISSED" in told


def test_each_method_is_tuned_by_the_same_number_of_trials():
    assert {len(trials) for trials in TUNING.values()} == {6}
    assert set(TUNING) == {"cpeg", "masac", "masac_bonus", "mappo"}
