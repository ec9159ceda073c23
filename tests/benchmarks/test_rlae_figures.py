"""The figures of ensembles of language models: tables that are learnt without learning by reward, and what is asked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("stable_baselines3")
pytest.importorskip("safetensors")
pytest.importorskip("tyro")
pytest.importorskip("matplotlib")

from learning import rlae_figures
from learning.drawing import read_table
from learning.figures import FigureArgs
from learning.rlae_figures import FIGURES, MEMORY_TABLE, METHODS, MIXTURES, ORACLE, STATIC, TABLE, Table, learn_table
from learning.study import Made, Study
from palaestra.evaluation import evaluate
from palaestra.games.ensemble.llm_ensemble import SKILL
from palaestra_baselines import rlae

pytestmark = pytest.mark.slow
RLAE, HIDDEN = FIGURES
LINES = {STATIC: 0.70, TABLE: 0.72, MEMORY_TABLE: 0.82, ORACLE: 0.90}


def test_a_table_of_domains_that_are_seen_is_that_of_the_skills():
    table = learn_table({"feature_noise": 0.0}, 0.0)
    np.testing.assert_allclose(table.right, np.transpose(SKILL), atol=0.05)
    found = evaluate(rlae.WHO["one"][0], table, matches=512, num_envs=512, seed=3).results["return_a"].mean()
    assert 0.90 < found < 0.94


def test_what_a_table_has_seen_fades_and_is_forgotten_when_a_match_ends():
    table = Table(np.eye(3), 0.5)
    memory = np.array([[0.0, 1.0, 0.0], [0.0, 2.4, 0.0]])
    logits = table.act(np.array([[[0.6, 0.0, 0.0, 9.0]], [[1.0, 0.0, 0.0, 9.0]]]), None, None, None, None, memory)
    np.testing.assert_allclose(memory, [[0.6, 0.5, 0.0], [1.0, 1.2, 0.0]])
    np.testing.assert_array_equal(logits[:, 0], [[5.0, -5.0, -5.0], [-5.0, 5.0, -5.0]])
    options: dict[str, Any] = {"matches": 256, "num_envs": 128, "seed": 3, "feature_noise": 0.0, "domain_stay": 1.0}
    first = learn_table({"feature_noise": 0.0}, 0.0)
    endless = Table(first.right, 1.0)  # what is left of the matches before would mislead it
    one, other = (evaluate(rlae.WHO["one"][0], player, **options).results["return_a"] for player in (first, endless))
    np.testing.assert_array_equal(one, other)


def test_runs_of_a_figure_have_folders_of_their_own_and_the_mixture_that_is_measured(tmp_path: Path):
    runs = [run for run, *_ in HIDDEN.runs_of(FigureArgs(runs=tmp_path)).values()]
    assert len({run.folder for run in runs}) == len(METHODS)
    assert {run.options for run in runs} == {("spans=12", "domain_stay=0.95", "feature_noise=1.0")}
    assert [(run.agents, run.recurrent) for run in runs] == [
        ("one", False), ("each", False), ("one", True), ("each", True)
    ]  # fmt: skip
    for run in runs:
        run.check()


@pytest.mark.parametrize(
    ("study", "shares", "verdict"),
    [
        (HIDDEN, (0.83, 0.84, 0.85), f"above the {TABLE}: holds  above the {MEMORY_TABLE}: holds"),
        (HIDDEN, (0.79, 0.84, 0.85), f"above the {TABLE}: holds  above the {MEMORY_TABLE}: MISSED"),
        (RLAE, (0.89, 0.89, 0.89), f"90 % of the gap: holds  60 s: holds  above the {TABLE}: holds"),
        (RLAE, (0.71, 0.71, 0.71), f"90 % of the gap: MISSED  60 s: holds  above the {TABLE}: MISSED"),
    ],
)
def test_methods_are_asked_for_more_than_the_tables_have(
    study: Study, shares: tuple[float, ...], verdict: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    mixtures = dict.fromkeys(MIXTURES[study.name], 0.0)
    lines = {name: dict.fromkeys(mixtures, share) for name, share in LINES.items()}
    monkeypatch.setattr(rlae_figures, "control_lines", lambda name: lines)
    logs = [[{"steps": 8, "cpu_s": 9.0, **dict.fromkeys(mixtures, share)}] for share in shares]
    entries, made = study.entries[:1], Made({}, {("", "PPO"): logs}, FigureArgs(figures=tmp_path))
    monkeypatch.setattr(Study, "train", lambda *_: made)
    replace(study, entries=entries).make(made.args)
    rows = read_table(tmp_path / f"{study.name}_results.csv")
    row = next(row for row in rows if row["method"] == "PPO")
    assert row["verdict"] == verdict
    assert float(row["worst"]) == min(shares)
    assert [row["method"] for row in rows if row["mixture"] == next(iter(mixtures))] == [*LINES, "PPO"]
    assert (tmp_path / f"{study.name}.png").exists()
