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
from learning.meta_figures import METHODS, PLACES, STUDIES, model_lines, score_lines
from learning.study import Made
from palaestra_baselines import meta_dt
from palaestra_baselines.common.run_folder import WEIGHTS

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


def lines_of(place: str, rows: list[dict[str, Any]]) -> Any:
    """What is printed of results."""
    return score_lines(STUDIES[place], rows, Made({}, {}, FigureArgs()))


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
    lines = list(lines_of("point", rows_of(**changes)))
    assert missed(lines) == names
    assert any("holds" in line for line in lines)


def test_on_meta_direction_only_the_lead_over_dt_is_asked_for():
    assert missed(list(lines_of("direction", rows_of(random_prompt=90.0, zero_shot=90.0)))) == []
    assert missed(list(lines_of("direction", rows_of(dt=67.0)))) == ["DT"]


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
        assert line.startswith(PLACES[place].title)
        assert verdict in line
        assert "from the second decision on 0.080" in line


def test_nothing_is_asked_for_where_the_expert_is_learnt():
    assert missed(list(lines_of("speed", rows_of(dt=90.0, zero_shot=90.0)))) == []


@pytest.mark.slow
def test_a_figure_has_curves_and_results(figure_args: FigureArgs):
    study = STUDIES["point"]
    entries = (replace(entry, steps=2, seeds=2, arguments={**SMALL, "evaluations": 2}) for entry in study.entries)
    replace(study, entries=tuple(entries)).make(figure_args)
    assert (figure_args.figures / "meta_point.png").read_bytes().startswith(b"\x89PNG")
    assert len(read_table(figure_args.figures / "meta_point_results.csv")) == 2 * len(METHODS)


def test_the_expert_of_half_cheetahs_is_trained_first(figure_args: FigureArgs, monkeypatch: pytest.MonkeyPatch):
    asked: list[Any] = []
    monkeypatch.setattr(meta_figures.figures, "train_all", lambda title, runs, args: asked.extend(runs))
    study = meta_figures.with_expert(STUDIES["speed"], figure_args)
    ((method, run, _),) = asked
    assert (method, run.total_steps) == ("mappo", meta_figures.EXPERT_STEPS["speed"])
    assert {entry.arguments["expert"] for entry in study.entries} == {str(run.folder / WEIGHTS)}
    assert meta_figures.with_expert(STUDIES["point"], figure_args) == STUDIES["point"]


@pytest.mark.slow
def test_errors_of_world_models_are_measured_in_held_out_tasks(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(meta_dt, "Args", functools.partial(meta_dt.Args, world_steps=2))
    errors = meta_figures.model_errors("point", 16, 0)
    assert errors.shape == (20,)
    assert np.isfinite(errors).all()
