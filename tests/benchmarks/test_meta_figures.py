"""The figures of Meta-DT, with runs of a second and with made-up results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("tyro")
pytest.importorskip("matplotlib")

import functools
from dataclasses import replace

from learning import meta_figures
from learning.drawing import read_table
from learning.figures import FigureArgs
from learning.meta_figures import METHODS, SETTINGS, model_lines, score_lines
from palaestra_baselines import meta_dt

SMALL = {"matches_per_task": 2, "world_steps": 2, "batch_size": 4, "width": 8, "episodes": 2, "matches": 2}
SCORES = {"meta_dt": 70.0, "any_segment": 68.0, "dt": 30.0, "prompt_dt": 75.0, "random_prompt": 45.0, "true_task": 85.0}


def rows_of(**changes: float) -> list[dict[str, Any]]:
    """Results of five seeds, one point apart."""
    means = {**SCORES, "zero_shot": 50.0, "with_uniform": 25.0, **changes}
    rows: list[dict[str, Any]] = []
    for name in METHODS:
        for seed in range(5):
            more = {column: means[column] + seed for column in ("zero_shot", "with_uniform")}
            rows.append({"method": name, "seed": seed, "score": means[name] + seed, "cpu_s": 20.0, **more})
    return rows


def missed(lines: list[str]) -> list[str]:
    """Names of what is asked for and missed."""
    return [line.split(", ", 1)[1].partition(":")[0] for line in lines if "MISSED" in line]


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({}, []),
        ({"dt": 67.0}, ["DT"]),
        ({"random_prompt": 67.0}, ["Prompt-DT, random prompt"]),
        ({"with_uniform": 67.0}, ["Prompt-DT, given a random prompt"]),
        ({"zero_shot": 70.5}, ["Meta-DT, first match"]),
        ({"true_task": 69.0}, ["true task"]),
        ({"prompt_dt": 95.0}, []),
    ],
)
def test_what_is_missed_on_meta_point_is_said(changes: dict[str, float], names: list[str]):
    lines = list(score_lines("point", rows_of(**changes)))
    assert missed(lines) == names
    assert any("holds" in line for line in lines)


def test_on_meta_direction_only_the_lead_over_dt_is_asked_for():
    assert missed(list(score_lines("direction", rows_of(random_prompt=90.0, zero_shot=90.0)))) == []
    assert missed(list(score_lines("direction", rows_of(dt=67.0)))) == ["DT"]


@pytest.mark.parametrize(("error", "verdict"), [(0.40, "holds"), (0.44, "MISSED")])
def test_the_error_with_a_context_is_asked_to_be_a_quarter(error: float, verdict: str):
    rows = [
        {"setting": place, "method": name, "seed": seed, "steps": step, "error": value}
        for place in meta_figures.MODEL_PLACES
        for name, values in zip(meta_figures.CONTEXTS, ((error, 0.08), (1.0, 1.0)), strict=True)
        for seed in range(2)
        for step, value in enumerate(values)
    ]
    lines = list(model_lines(rows))
    for line, place in zip(lines, meta_figures.MODEL_PLACES, strict=True):
        assert line.startswith(SETTINGS[place].title)
        assert verdict in line
        assert "from the second decision on 0.080" in line


def test_nothing_is_asked_for_where_the_expert_is_learnt():
    assert missed(list(score_lines("speed", rows_of(dt=90.0, zero_shot=90.0)))) == []


@pytest.mark.slow
def test_figures_have_curves_and_results_and_are_made_again_without_training(
    figure_args: FigureArgs, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setitem(SETTINGS, "point", replace(SETTINGS["point"], seeds=2, steps=2))
    monkeypatch.setattr(meta_figures, "EVALUATIONS", 2)
    for name, method in METHODS.items():
        monkeypatch.setitem(METHODS, name, replace(method, arguments={**method.arguments, **SMALL}))
    meta_figures.score_figure("point", figure_args)
    first = capsys.readouterr().out
    assert (figure_args.figures / "meta_point.png").read_bytes().startswith(b"\x89PNG")
    assert len(read_table(figure_args.figures / "meta_point_results.csv")) == 2 * len(METHODS)
    monkeypatch.setattr(meta_dt, "train", lambda *_: pytest.fail("it trained again"))
    meta_figures.score_figure("point", figure_args)
    assert capsys.readouterr().out == first


@pytest.mark.slow
def test_errors_of_world_models_are_measured_in_held_out_tasks(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(meta_dt, "Args", functools.partial(meta_dt.Args, world_steps=2))
    errors = meta_figures.model_errors("point", 16, 0)
    assert errors.shape == (20,)
    assert np.isfinite(errors).all()
