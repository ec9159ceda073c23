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
from learning.text_figures import ARMS, ASKING, CONTROL, DOT, EXACT, GRPO, MODEL, PATH, PLACES, WRONG
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
        asked = {"accepted": 0.9, "fair": 0.3 + 0.2 * (k == 1), "hops": 2.0}
        rows.append({"iteration": k, "cpu_s": 2.0 * k, **temperatures, **asked, "critic_accuracy": 0.95})
    return rows


@pytest.fixture
def claimed() -> dict[str, dict[str, Any]]:
    """The claims of made-up curves by their words."""
    curves = {
        (p, name): [made_up(p, name, seed) for seed in range(8)] for name, arm in ARMS.items() for p in arm.places
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
    assert claimed[f"{GRPO} - {CONTROL}, early, final, sampled"]["mean"] == pytest.approx(0.9, abs=0.01)
    assert claimed["GRPO, shortcut: seeds of 8 with sampled >= 0.8 and greedy >= 0.9"]["mean"] == 8.0
    assert claimed["GRPO, shortcut, CPU seconds"]["mean"] == 60.0
    rises = f"{ASKING}: seeds in which more have 0 < k < n than at the start, "
    assert claimed[rises + "after the examiner's first round"]["mean"] == 8.0
    assert claimed[rises + "end"]["mean"] == 0.0
    assert "MISSED" in claimed[rises + "end"]["verdict"]


@pytest.mark.parametrize("name", [CONTROL, ASKING])
def test_a_run_measures_before_and_after(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    place = "examiner" if name == ASKING else "noisy"
    monkeypatch.setitem(PLACES, place, dataclasses.replace(PLACES[place], groups=1, iterations=2, measured=(0, 2)))
    monkeypatch.setitem(ARMS, name, dataclasses.replace(ARMS[name], arguments={**ARMS[name].arguments, **few(name)}))
    monkeypatch.setattr(text_figures, "QUESTIONS", 4)
    monkeypatch.setattr(text_figures, "EXAMINED", 1)
    text_figures.train(tmp_path / "run.csv", place, name, 0)
    rows = read_rows(tmp_path / "run.csv")
    assert [row["iteration"] for row in rows] == [0.0, 2.0]
    assert rows[1]["cpu_s"] > rows[0]["cpu_s"] == 0.0
    assert all(0.0 <= row[column] <= 1.0 for row in rows for column in ("sampled", "temperature_0.5", "greedy"))
    assert all(np.isnan(row["accepted"]) == (name == CONTROL) for row in rows)


def few(name: str) -> dict[str, int]:
    return {"examiner_iterations": 1} if name == ASKING else {}


def test_tables_and_pictures_are_made_from_finished_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    drawn = dict[str, list[Any]]()
    monkeypatch.setattr(drawing, "draw", lambda table, panels: drawn.update({table.stem: panels}))
    args = FigureArgs(runs=tmp_path / "runs", figures=tmp_path / "figures", workers=1)
    args.figures.mkdir()
    for name, arm in ARMS.items():
        for place in arm.places:
            for seed in range(8):
                log = text_figures.log_of(args.runs, place, name, seed)
                log.parent.mkdir(parents=True, exist_ok=True)
                write_rows(log, made_up(place, name, seed))
    text_figures.text_learning(args)
    assert "iterations to 0.65" in capsys.readouterr().out
    assert list(drawn) == list(text_figures.PICTURED)
    assert [set(panel.curves) for panel in drawn["text_critics"]] == [{GRPO, EXACT, MODEL, WRONG}]
    rows = drawing.read_table(args.figures / "text_privileged.csv")
    assert {row["base"] for row in rows} == {"early"}
    assert len({(row["method"], row["seed"]) for row in rows}) == 6 * 8
