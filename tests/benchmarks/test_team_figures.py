"""The figures of the two-team learners, each with runs of a second."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("stable_baselines3")
pytest.importorskip("tyro")
pytest.importorskip("matplotlib")
pytest.importorskip("jsbsim")

from learning import team_figures
from learning.drawing import read_table
from learning.figures import FigureArgs
from learning.study import Study
from learning.team_figures import AT_LITTMAN, LITTMAN
from palaestra.core.run.opponents import policy_metadata
from palaestra_baselines import fm3q
from palaestra_baselines.common.many_runs import finished, train_runs
from palaestra_baselines.common.policy_file import read_policy

pytestmark = [pytest.mark.usefixtures("rules_do_not_change"), pytest.mark.slow]

SMALL = {
    **{"lanes": 16, "warmup_steps": 100, "updates": 1, "batch_size": 16, "replay_size": 400, "hidden": (8,)},
    "evaluations": 2,
}


@pytest.fixture
def studies(monkeypatch: pytest.MonkeyPatch) -> dict[str, Study]:
    """Studies that take seconds."""
    monkeypatch.setattr(team_figures, "TABLES", ("saddle",))
    monkeypatch.setattr(team_figures, "METHODS", {name: team_figures.METHODS[name] for name in ("fm3q", "iql")})
    monkeypatch.setattr(team_figures, "TEST_MATCHES", 8)
    monkeypatch.setattr(team_figures, "DUEL_MATCHES", 4)
    return {study.name: small(study) for study in team_figures.FIGURES}


def small(study: Study) -> Study:
    """The study with two methods, all mixers, or both losses, and runs of a second."""
    entries = (
        replace(entry, steps=320, arguments={**SMALL, "matches": 8})
        for entry in study.entries
        if study.name != "team_learning" or entry.method in ("fm3q", "iql")
    )
    return replace(study, entries=tuple(entries))


def test_the_exact_figure_has_tables_and_networks_of_all_mixers(
    studies: dict[str, Study], figure_args: FigureArgs, monkeypatch: pytest.MonkeyPatch
):
    args = replace(figure_args, seeds=1)
    one = replace(studies["fm3q_exact"], places={"soccer": LITTMAN}, evaluation=lambda entry: AT_LITTMAN)
    one.make(args)
    rows = read_table(args.figures / "fm3q_exact.csv")
    for part in ("table", "network"):
        assert {row["mixer"] for row in rows if row["part"] == part} == set(team_figures.MIXERS)
    assert all(float(row["nash_conv"]) < 1e-3 for row in rows if row["game"] == "saddle")
    assert (args.figures / "fm3q_exact.png").read_bytes().startswith(b"\x89PNG")
    assert policy_metadata(args.assets / "weights" / "fm3q_grid_soccer.safetensors")["method"] == "fm3q"


def test_no_learnt_policy_is_safer_than_the_best_that_does_not_mix(studies: dict[str, Study], figure_args: FigureArgs):
    studies["fm3q_limit"].make(figure_args)
    for row in read_table(figure_args.figures / "fm3q_limit.csv"):
        assert float(row["ball_security"]) <= float(row["ball_pure_maximin"]) + 1e-6
        assert float(row["no_ball_security"]) <= float(row["no_ball_pure_maximin"]) + 1e-6
        assert float(row["ball_pure_maximin"]) < float(row["ball_value"])
        assert float(row["exploitability_red"]) >= 0.0


def test_the_comparison_has_curves_finals_and_duels(studies: dict[str, Study], figure_args: FigureArgs):
    studies["team_learning"].make(figure_args)
    folder = figure_args.figures
    assert len(read_table(folder / "team_learning.csv")) == 2 * 2 * 2 * 3  # games, methods, seeds, evaluations
    parts = [row["part"] for row in read_table(folder / "team_learning_results.csv")]
    assert [parts.count(part) for part in ("script", "final", "duel")] == [2, 4, 2]
    assert (folder / "team_learning.png").exists()
    assert (figure_args.assets / "weights" / "fm3q_team_tag.safetensors").stat().st_size < 2_000_000


def test_the_auxiliary_loss_has_curves_and_finals_beside_fm3q_without_it(
    studies: dict[str, Study], figure_args: FigureArgs
):
    study, folder = studies["fm3q_features"], figure_args.figures
    study.make(figure_args)
    assert {row["method"] for row in read_table(folder / "fm3q_features.csv")} == set(team_figures.AUXILIARY)
    rows = read_table(folder / "fm3q_features_results.csv")
    assert [(row["part"], row["game"], row["a"]) for row in rows] == [
        ("final", game, method) for game in team_figures.GAMES for method in team_figures.AUXILIARY
    ]
    assert (folder / "fm3q_features.png").exists()
    assert [run.auxiliary_weight > 0 for run, *_ in study.runs_of(figure_args).values()] == [False, True] * 2


def test_the_first_reach_is_an_evaluation_not_a_guess_between_two():
    log = [{"steps": 0.0, "win_rate": 0.1}, {"steps": 10.0, "win_rate": 0.69}, {"steps": 20.0, "win_rate": 0.7}]
    assert team_figures.first_reach(log) == 20.0
    assert team_figures.first_reach(log[:2]) == float("inf")


@pytest.mark.slow
def test_runs_side_by_side_are_those_of_one_process(tmp_path: Path):
    given = {
        "env_id": "palaestra/GridSoccer-v0",
        "options": ("order=alternating",),
        **SMALL,
        "total_steps": 320,
        "quiet": True,
    }
    for workers in (0, 2):
        runs = [fm3q.Args(**given, seed=seed, directory=tmp_path / str(workers), resume=True) for seed in (0, 1)]
        train_runs("both", [(fm3q.__name__, run, None) for run in runs], workers, quiet=True)
        assert all(finished(run) for run in runs)
    for seed in (0, 1):
        here, there = (read_policy(tmp_path / str(w) / f"seed_{seed}" / "last.safetensors")[0] for w in (0, 2))
        assert all((here[name] == there[name]).all() for name in here)
