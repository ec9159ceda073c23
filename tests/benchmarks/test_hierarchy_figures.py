"""The figures of the league, with runs of a second."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jsbsim")
pytest.importorskip("stable_baselines3")
pytest.importorskip("tyro")
pytest.importorskip("matplotlib")

from learning import hierarchy_figures
from learning.drawing import read_table
from learning.figures import FigureArgs
from learning.hierarchy_figures import AGAINST, ARMS, EQUAL, LEAGUE_ARM
from learning.study import Made, Study
from palaestra_baselines.common.agents import keywords
from palaestra_baselines.ucav_hierarchy import Args

(STUDY,) = (figure for figure in hierarchy_figures.FIGURES if isinstance(figure, Study))

SMALL: dict[str, Any] = {
    "pairs": 1,
    "trials": 2,
    "lanes": 4,
    "rollout": 16,
    "minibatches": 2,
    "hidden": (4,),
    "evaluations": 2,
    "matches": 2,
}
SHORT = "duration_s=10"
"""Matches fly 10 s instead of 300."""


@pytest.mark.slow
def test_the_ways_are_tested_and_installed(figure_args: FigureArgs, monkeypatch: pytest.MonkeyPatch):
    for name, value in (("TEST_MATCHES", 2), ("JSBSIM_MATCHES", 2), ("GENERATIONS", 2), ("STEPS", 128)):
        monkeypatch.setattr(hierarchy_figures, name, value)
    monkeypatch.setattr(hierarchy_figures, "EQUAL", dict.fromkeys(EQUAL, 1))
    evaluate, rules = hierarchy_figures.evaluate, keywords((SHORT,))
    monkeypatch.setattr(hierarchy_figures, "evaluate", lambda *args, **given: evaluate(*args, **{**given, **rules}))
    options = {arm: (*method.arguments.get("options", Args.options), SHORT) for arm, method in ARMS.items()}
    entries = tuple(
        replace(entry, steps=64, arguments={**SMALL, "options": options[entry.method]}) for entry in STUDY.entries
    )
    replace(STUDY, entries=entries).make(figure_args)
    for name in ("ucav_league", "ucav_league_matrix"):
        assert (figure_args.figures / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    rows = read_table(figure_args.figures / "ucav_league_results.csv")
    anchors, seeds = len(Args().anchors), figure_args.seeds
    others = (len(ARMS) - 1) * seeds
    assert len(rows) == 2 * anchors + seeds * (anchors + len(AGAINST) + 2) + others * (anchors + 2)
    assert len(read_table(figure_args.figures / "ucav_league_best.csv")) == 2 * seeds
    assert (figure_args.assets / "weights" / "ucav_hierarchy.safetensors").is_file()


def test_bars_are_of_paid_wins_against_scripts_and_of_scores_at_equal_frames(tmp_path: Path):
    row = {"player": LEAGUE_ARM, "seed": 0, "won": 0.7, "lost": 0.2, "score": 0.75}
    rows = [
        {**row, "opponent": "expert", "test": ""},
        {**row, "opponent": "lead_pursuit", "test": ""},
        {**row, "opponent": "flat", "test": "equal frames"},
        {**row, "opponent": "flat", "test": "equal frames", "score": 0.59},
        {**row, "opponent": "expert", "test": "head-on"},
    ]
    (tmp_path / "ucav_league_best.csv").write_text("generation,seed,won,lost,score\n")
    made = Made({}, {}, FigureArgs(figures=tmp_path))
    holds, missed, won, lost, none = hierarchy_figures.result_lines(STUDY, rows, made)
    assert "paid wins at least 0.65: holds" in holds
    assert "paid wins at least 0.75: MISSED" in missed
    assert "score at least 0.6: holds" in won
    assert "score at least 0.6: MISSED" in lost
    assert "least" not in none
