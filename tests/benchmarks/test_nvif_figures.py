"""The figures of NVIF, with runs of a second."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("tyro")
pytest.importorskip("matplotlib")

import learn
from learning import nvif_figures
from learning.drawing import read_table
from learning.figures import FigureArgs
from learning.nvif_figures import HOME, LARGER, SHUFFLED
from learning.study import Entry, Study

pytestmark = pytest.mark.slow

SMALL = {"lanes": 4, "rollout": 4, "minibatches": 1, "pretraining": 2, "random_decisions": 40, "batch_size": 4}
SMALL |= {"evaluations": 2, "matches": 4}


@pytest.mark.parametrize(("group", "tests"), [("blind", 3), ("battle", 1)])
def test_a_figure_has_curves_and_results(
    group: str, tests: int, figure_args: FigureArgs, monkeypatch: pytest.MonkeyPatch
):
    study = learn.ALL[f"nvif_{group}"]
    assert isinstance(study, Study)
    small = tuple(Entry(group, entry.method, 32, arguments=SMALL) for entry in study.entries)
    monkeypatch.setattr(nvif_figures, "TEST_MATCHES", 4)
    replace(study, entries=small).make(figure_args)
    assert (figure_args.figures / f"nvif_{group}.png").read_bytes().startswith(b"\x89PNG")
    found = [row["test"] for row in read_table(figure_args.figures / f"nvif_{group}_results.csv")]
    assert found.count(HOME) == 2 * len(small)
    assert found.count(SHUFFLED) == 2 * (len(small) - 1)
    assert found.count(LARGER) == (2 * len(small) if tests == 3 else 0)


def result(method: str, caught: float, test: str = HOME, width: float = 0.2) -> dict[str, Any]:
    return {"setting": "blind", "method": method, "test": test, "catches": caught, "half_width": width}


def test_claims_are_held_against_results_of_each_seed():
    rows = [result("none", c) for c in (1.0, 2.0)] + [result("mean", c) for c in (2.5, 2.5)]
    rows += [result("nvif", c) for c in (3.0, 2.4)] + [result("nvif", c, SHUFFLED) for c in (1.0, 1.7)]
    rows += [result("none", 1.0, LARGER), result("nvif", 4.5, LARGER)]
    told = "\n".join(nvif_figures.claim_lines("blind", rows, {}))
    assert "NVIF over no messages: 1.80x  at least 1.6: holds  apart in each seed: MISSED" in told
    assert "mean of messages over no messages: 1.67x  at least 1.6: holds" in told
    assert "falls by 50 %  at least 40 %: holds" in told
    assert "83 % of home a predator, 4.50x no messages  at least 75 %: holds  at least 2x: holds" in told


def test_the_pace_is_that_to_the_last_score_without_messages():
    curve = lambda *caught: [{"steps": 10.0 * k, "catches": c} for k, c in enumerate(caught)]  # noqa: E731
    logs = {("easy", "none"): [curve(0.0, 1.0, 3.0)], ("easy", "nvif"): [curve(0.0, 4.0, 5.0)]}
    logs["easy", "scratch"] = [curve(0.0, 1.0, 5.0)]
    assert "8 pretrained, 15 from scratch  at most .75: holds" in nvif_figures.pace_line(logs)
    assert nvif_figures.steps_to(curve(0.0, 1.0), 2.0) == float("inf")
