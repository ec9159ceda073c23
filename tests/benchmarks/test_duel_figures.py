"""The figure of self-play on SkirmishDuel, with runs of a second."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("tyro")
pytest.importorskip("matplotlib")

from learning import duel_figures
from learning.drawing import read_table
from learning.figures import FigureArgs
from palaestra_baselines import mappo

pytestmark = pytest.mark.check

SMALL = {"total_steps": 320, "evaluations": 1, "lanes": 8, "rollout": 8, "epochs": 1}


@pytest.fixture
def args(figure_args: FigureArgs, monkeypatch: pytest.MonkeyPatch) -> FigureArgs:
    """One seed of two rounds."""
    monkeypatch.setattr(duel_figures, "LEARNS", {**duel_figures.LEARNS, **SMALL, "matches": 8})
    monkeypatch.setattr(duel_figures, "ROUNDS", 2)
    monkeypatch.setattr(duel_figures, "TEST_MATCHES", 8)
    return replace(figure_args, seeds=1)


def test_rounds_have_rows_and_are_made_again_without_training(
    args: FigureArgs, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    duel_figures.skirmish_duel(args)
    first = capsys.readouterr().out
    rows = read_table(args.figures / "skirmish_duel.csv")
    assert [(row["round"], row["seed"], row["pool"]) for row in rows] == [("0", "0", "0"), ("1", "0", "2")]
    assert all(float(row["low"]) <= float(row["exploited"]) <= float(row["high"]) for row in rows)
    assert (args.figures / "skirmish_duel.png").read_bytes().startswith(b"\x89PNG")
    folder = args.runs / "skirmish_duel"
    pool = json.loads((folder / "pool_of_round_1_seed_0.json").read_text())
    assert [Path(member["file"]).parts[:2] for member in pool["members"]] == [
        ("round_0", "learner"),
        ("round_0", "best_response"),
    ]
    monkeypatch.setattr(mappo, "train", lambda *_: pytest.fail("it trained again"))
    duel_figures.skirmish_duel(args)
    assert capsys.readouterr().out == first


def test_red_learns_against_a_script_then_the_pool_and_best_responses_against_the_policy_alone(tmp_path: Path):
    first, second = (duel_figures.Round(tmp_path, 0, number) for number in range(2))
    assert first.learner.options == first.best_response.options == ("map=arena",)
    assert (first.learner.team, first.learner.opponent) == ("red", "nearest")
    assert (second.learner.team, second.learner.opponent) == ("red", str(second.pool))
    for one in (first, second):
        policy = one.learner.folder / "last.safetensors"
        assert (one.best_response.team, one.best_response.opponent) == ("red", str(policy))


def test_no_two_trainings_play_the_same_matches(tmp_path: Path):
    rounds = [duel_figures.Round(tmp_path, seed, number) for seed in range(4) for number in range(duel_figures.ROUNDS)]
    seeds = [run.seed for one in rounds for run in (one.learner, one.best_response)]
    assert len(set(seeds)) == len(seeds)


def test_a_round_counts_the_matches_that_the_best_response_wins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    played: list[tuple[str, str]] = []

    class Table:
        wins, matches, win_interval, score = 3, 4, (0.3, 0.95), 0.25
        results = np.array([(5.0,), (6.0,), (7.0,), (-2.0,)], [("return_a", "f8")])

    monkeypatch.setattr(duel_figures, "matches", lambda red, blue: played.append((red, blue)) or Table)
    monkeypatch.setattr(duel_figures, "read_rows", lambda _: [{"steps": 10.0, "cpu_s": 2.0}])
    one = duel_figures.Round(tmp_path, 0, 0)
    row = one.row()
    policy, best_response = (str(run.folder / "last.safetensors") for run in (one.learner, one.best_response))
    assert played == [(best_response, policy), (policy, "nearest")]
    assert (row["exploited"], row["low"], row["high"], row["score_against_script"]) == (0.75, 0.3, 0.95, 0.25)
    assert (row["decisions"], row["cpu_s"], row["gain"]) == (20, 4.0, 4.0)
