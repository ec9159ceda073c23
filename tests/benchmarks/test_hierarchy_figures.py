"""The figures of the league, with runs of a second."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("jsbsim")
pytest.importorskip("stable_baselines3")
pytest.importorskip("tyro")
pytest.importorskip("matplotlib")

import learn
from learning import hierarchy_figures
from learning.drawing import read_table
from learning.figures import FigureArgs
from learning.hierarchy_figures import AGAINST, ARMS, EQUAL, LEAGUE_ARM
from palaestra_baselines import ucav_hierarchy
from palaestra_baselines.common.agents import keywords
from palaestra_baselines.ucav_hierarchy import Args

SMALL: dict[str, Any] = {
    "pairs": 1,
    "trials": 2,
    "lanes": 4,
    "rollout": 16,
    "minibatches": 2,
    "hidden": (4,),
    "total_steps": 64,
    "evaluations": 2,
    "matches": 2,
}
SHORT = "duration_s=10"
"""Matches fly 10 s instead of 300."""


@pytest.mark.slow
def test_the_ways_are_trained_once_tested_and_installed(
    figure_args: FigureArgs, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    for arm, (title, given) in ARMS.items():
        options = (*given.get("options", Args.options), SHORT)
        monkeypatch.setitem(ARMS, arm, (title, {**given, **SMALL, "options": options}))
    evaluate = hierarchy_figures.evaluate
    rules = keywords((SHORT,))
    monkeypatch.setattr(hierarchy_figures, "evaluate", lambda *args, **given: evaluate(*args, **{**given, **rules}))
    for name, value in (("TEST_MATCHES", 2), ("JSBSIM_MATCHES", 2), ("GENERATIONS", 2), ("STEPS", 128)):
        monkeypatch.setattr(hierarchy_figures, name, value)
    monkeypatch.setattr(hierarchy_figures, "EQUAL", dict.fromkeys(EQUAL, 1))
    hierarchy_figures.league_figure(figure_args)
    first = capsys.readouterr().out
    for name in ("ucav_league", "ucav_league_matrix"):
        assert (figure_args.figures / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    rows = read_table(figure_args.figures / "ucav_league_results.csv")
    anchors, seeds = len(Args().anchors), figure_args.seeds
    others = (len(ARMS) - 1) * seeds
    assert len(rows) == 2 * anchors + seeds * (anchors + len(AGAINST) + 2) + others * (anchors + 2)
    assert len(read_table(figure_args.figures / "ucav_league_best.csv")) == 2 * seeds
    assert (figure_args.assets / "weights" / "ucav_hierarchy.safetensors").is_file()
    monkeypatch.setattr(ucav_hierarchy, "train", lambda *_: pytest.fail("it trained again"))
    hierarchy_figures.league_figure(figure_args)
    assert capsys.readouterr().out == first


def test_bars_are_of_paid_wins_against_scripts_and_of_scores_at_equal_frames():
    row = {"player": LEAGUE_ARM, "seed": 0, "won": 0.7, "lost": 0.2, "score": 0.75}
    rows = [
        {**row, "opponent": "expert", "test": ""},
        {**row, "opponent": "lead_pursuit", "test": ""},
        {**row, "opponent": "flat", "test": "equal frames"},
        {**row, "opponent": "flat", "test": "equal frames", "score": 0.59},
        {**row, "opponent": "expert", "test": "head-on"},
    ]
    holds, missed, won, lost, none = hierarchy_figures.result_lines(rows, [])
    assert "paid wins at least 0.65: holds" in holds
    assert "paid wins at least 0.75: MISSED" in missed
    assert "score at least 0.6: holds" in won
    assert "score at least 0.6: MISSED" in lost
    assert "least" not in none


def test_the_figure_has_a_command():
    assert "ucav_league" in learn.FIGURES
    assert {"ucav_league", "ucav_league_matrix"} <= set(learn.PICTURES)
