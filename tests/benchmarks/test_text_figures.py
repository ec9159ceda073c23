"""The figures of methods on a tiny language model: a short run, claims from made-up curves, tables and pictures."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("tyro")
pytest.importorskip("matplotlib")

from learning import drawing, text_figures
from learning.figures import FigureArgs, write_rows
from learning.text_figures import ARMS, CONTROL, DOT, EXACT, GRPO, MODEL, PATH, PLACES, TURNS, WRONG
from palaestra_baselines.common.run_folder import read_rows

pytestmark = pytest.mark.slow

SPEED = {GRPO: 0.08, EXACT: 0.08, MODEL: 0.08, WRONG: 0.05, PATH: 0.16, CONTROL: 0.0}
"""By how much made-up exact match grows in an iteration; 0.1 for other methods."""


def made_up(place: str, name: str, seed: int) -> list[dict[str, float]]:
    iterations = PLACES[place].measured or range(PLACES[place].iterations + 1)
    rows = list[dict[str, float]]()
    for k in [k for k in iterations if k <= PLACES[place].iterations]:
        value = min(0.1 + SPEED.get(name, 0.1) * k + 0.001 * seed, 1.0)
        temperatures = {"sampled": value, "temperature_0.5": value, "greedy": value}
        rows.append({"iteration": k, "cpu_s": 2.0 * k, **temperatures, "critic_accuracy": 0.95})
    return rows


@pytest.fixture
def claimed() -> dict[str, dict[str, Any]]:
    """The claims of made-up curves by their words."""
    curves = {
        (p, name): [made_up(p, name, seed) for seed in range(8)] for name, (_, where) in ARMS.items() for p in where
    }
    return {row["claim"]: row for row in text_figures.claims(curves)}


def test_iterations_are_counted_to_the_first_that_is_good_enough():
    run = [{"iteration": float(k), "sampled": value} for k, value in enumerate((0.1, 0.7, 0.2, 0.9))]
    assert text_figures.iterations_to(run) == 1
    assert text_figures.iterations_to(run, 0.8) == 3
    assert text_figures.iterations_to(run, 0.95) == 4


def test_a_claim_holds_where_mean_and_interval_do():
    values = np.array([0.1, 0.2, 0.3, 0.2, 0.1, 0.3, 0.2, 0.2])
    row = text_figures.claim("x", values, 0.15, 0.0)
    assert row["mean"] == pytest.approx(0.2)
    assert row["low"] < row["mean"] < row["high"]
    assert row["verdict"] == "at least 0.15: holds  interval above 0: holds"
    assert text_figures.claim("x", values, 0.25, 0.3)["verdict"] == "at least 0.25: MISSED  interval above 0.3: MISSED"
    assert text_figures.claim("x", values)["verdict"] == ""


def test_methods_are_compared_the_right_way_round(claimed: dict[str, dict[str, Any]]):
    assert claimed[f"iterations to 0.65, GRPO over {PATH}, noisy"]["mean"] == pytest.approx(7 / 4)
    assert claimed[f"iterations to 0.65, GRPO over {WRONG}, noisy"]["mean"] == pytest.approx(7 / 11)
    assert claimed[f"{PATH} - {DOT}, early, iteration 5"]["mean"] == pytest.approx(0.3)
    assert claimed[f"{GRPO} - {CONTROL}, early, final"]["mean"] == pytest.approx(0.9, abs=0.01)
    assert claimed[f"{PATH} - {GRPO}, early, iteration 5"]["mean"] == pytest.approx(0.4)
    assert claimed[f"{EXACT} - {TURNS}, noisy, iteration 5"]["mean"] == pytest.approx(-0.1)
    assert claimed["GRPO, shortcut: seeds of 8 with sampled >= 0.8 and greedy >= 0.9"]["mean"] == 8.0
    assert claimed["GRPO, shortcut, CPU seconds"]["mean"] == 60.0


def test_the_lowest_seed_and_those_that_failed_stand_beside_the_mean():
    row = text_figures.score("x", np.array([0.2, 0.64, 0.65, 0.9, 0.9, 0.9, 0.9, 1.0]))
    assert (row["lowest"], row["failed"], row["seeds"]) == (0.2, 2, 8)
    assert row["mean"] > 0.8


@pytest.mark.parametrize("name", [CONTROL, TURNS])
def test_a_run_measures_before_and_after(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    short = dataclasses.replace(PLACES["noisy"], groups=1, iterations=2, measured=(0, 2))
    monkeypatch.setitem(PLACES, "noisy", short)
    monkeypatch.setattr(text_figures, "QUESTIONS", 4)
    text_figures.train(tmp_path / "run.csv", "noisy", name, 0)
    rows = read_rows(tmp_path / "run.csv")
    assert [row["iteration"] for row in rows] == [0.0, 2.0]
    assert rows[1]["cpu_s"] > rows[0]["cpu_s"] == 0.0
    assert all(0.0 <= row[column] <= 1.0 for row in rows for column in ("sampled", "temperature_0.5", "greedy"))


def test_tables_and_pictures_are_made_from_finished_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    drawn = dict[str, list[Any]]()
    monkeypatch.setattr(drawing, "draw", lambda table, panels: drawn.update({table.stem: panels}))
    args = FigureArgs(runs=tmp_path / "runs", figures=tmp_path / "figures", workers=1)
    args.figures.mkdir()
    for name, (_, places) in ARMS.items():
        for place in places:
            for seed in range(8):
                log = text_figures.log_of(args.runs, place, name, seed)
                log.parent.mkdir(parents=True, exist_ok=True)
                write_rows(log, made_up(place, name, seed))
    text_figures.text_learning(args)
    assert "iterations to 0.65" in capsys.readouterr().out
    assert list(drawn) == list(text_figures.PICTURED)
    three, five = {GRPO, TURNS, EXACT}, {GRPO, TURNS, EXACT, MODEL, WRONG}
    assert [set(panel.curves) for panel in drawn["text_critics"]] == [three, three, five]
    rows = drawing.read_table(args.figures / "text_privileged.csv")
    assert {row["base"] for row in rows} == {"early", "noisy"}
    assert len({(row["base"], row["method"], row["seed"]) for row in rows}) == (6 + 3) * 8
    results = (args.figures / "text_results.csv").read_bytes()
    (args.figures / "text_results.csv").unlink()
    text_figures.write_results(args.figures)  # from the tables alone
    assert (args.figures / "text_results.csv").read_bytes() == results
