"""The figures of ordered heads: areas, verdicts, folders of runs, noise of gradients, tables and pictures."""

from __future__ import annotations

import re
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

from learning import drawing, figures, poisson_figures
from learning.figures import FigureArgs
from learning.poisson_figures import ARMS, CATEGORICAL, FIGURES, NORMAL, POISSON, area, gradient_noise, with_verdicts
from learning.study import Study
from palaestra_baselines.common.run_folder import LOG, write_curve

pytestmark = pytest.mark.slow


def curve(*returns: float) -> list[dict[str, float]]:
    """Rows of a run whose evaluations are 100 decisions apart, the last one 50."""
    steps = [100 * k for k in range(len(returns))] + [100 * len(returns) - 50]
    rows = zip(steps, (float("nan"), *returns), strict=True)
    return [{"steps": s, "updates": s, "return": 2.0 * s, "training_return": r, "cpu_s": s / 10.0} for s, r in rows]


def test_the_area_of_ordered_runs_weights_returns_by_decisions():
    assert area(curve(1.0, 2.0, 6.0)) == pytest.approx((100.0 * 1.0 + 100.0 * 2.0 + 50.0 * 6.0) / 250.0)
    assert area(curve(1.0, 2.0, 6.0), "return") == pytest.approx((100 * 200 + 100 * 400 + 50 * 500) / 250)


STUDIES = {figure.name: figure for figure in FIGURES if isinstance(figure, Study)}


def test_ordered_runs_of_equal_arguments_share_a_folder_and_of_others_none(tmp_path: Path):
    args = FigureArgs(runs=tmp_path)
    names = ("poisson_tasks", "poisson_atoms", "poisson_modes")
    runs = {name: STUDIES[name].runs_of(args) for name in names}
    of_cheetah = [
        run for group in runs.values() for (place, _), made in group.items() if "Cheetah" in place for run in made[:1]
    ]
    by_folder: dict[Path, Any] = {}
    for run in of_cheetah:
        assert by_folder.setdefault(run.folder, run.settings) == run.settings
    (one, *_), (other, *_) = (
        runs["poisson_tasks"]["HalfCheetah", POISSON],
        runs["poisson_modes"]["HalfCheetah", POISSON],
    )
    assert one.folder == other.folder == runs["poisson_atoms"][f"HalfCheetah, {POISSON}", "K = 11"][0].folder
    assert len(by_folder) == len({str(run.settings) for run in of_cheetah}) == 3 + 3 + 2 * 3


def row(arm: str, area: float, low: float, high: float, task: str = "Hopper", cpu_s: float = 10.0) -> dict[str, Any]:
    return {"task": task, "arm": arm, "area": area, "low": low, "high": high, "cpu_s": cpu_s}


@pytest.mark.parametrize(
    ("poisson", "missed"),
    [
        ((12.0, 11.0, 13.0), []),
        ((9.0, 8.0, 9.5), ["not below Gaussian"]),
        ((9.0, 8.0, 10.5), []),
        ((6.5, 5.0, 9.8), ["not below Gaussian", "intervals apart from categorical"]),
        ((5.0, 3.0, 12.0), ["above categorical", "intervals apart from categorical"]),
    ],
)
def test_verdicts_on_ordered_heads_say_what_is_missed(poisson: tuple[float, float, float], missed: list[str]):
    others = [row(NORMAL, 11.0, 10.0, 12.0), row(CATEGORICAL, 6.0, 5.0, 7.0)]
    (judged, *_) = with_verdicts([row(POISSON, *poisson), *others])
    assert re.findall(r"(?:^|  )([^:]+): MISSED", judged["verdict"]) == missed
    assert "MISSED" in with_verdicts([row(NORMAL, 11.0, 10.0, 12.0, cpu_s=700.0)])[0]["verdict"]


def test_tables_and_pictures_of_ordered_heads_hold_all_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    args, study = FigureArgs(runs=tmp_path / "runs", figures=tmp_path), STUDIES["poisson_tasks"]
    study = replace(study, entries=tuple(replace(e, seeds=2) for e in study.entries if e.place == "Hopper"))
    monkeypatch.setattr(figures, "train_all", lambda *_: None)
    monkeypatch.setattr(
        poisson_figures, "lines_of", lambda task: [{"task": task, "arm": "random play", "last_return": 0.5}]
    )
    for k, made in enumerate(study.runs_of(args).values()):
        for seed, run in enumerate(made):
            run.folder.mkdir(parents=True)
            write_curve(run.folder / LOG, curve(1.0 + k, 2.0 + seed, 3.0))
    study.make(args)
    results = drawing.read_table(tmp_path / "poisson_tasks_results.csv")
    assert [row["arm"] for row in results] == [*ARMS, "random play"]
    areas = [float(row["mean_area"]) for row in results[:3]]
    assert areas == pytest.approx([(1.0 + k + 2.5 + 1.5) / 2.5 for k in range(3)])
    assert results[0]["last_return"] == "500"
    assert len(drawing.read_table(tmp_path / "poisson_tasks.csv")) == 3 * 2 * 4 + 1
    assert (tmp_path / "poisson_tasks.svg").exists()


def test_the_noise_of_a_gradient_is_that_of_its_samples(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(poisson_figures, "BATCHES", 24)
    poisson, categorical = (np.array(gradient_noise(head, 11, 0)) for head in ("poisson", "categorical"))
    assert poisson[2] == pytest.approx(categorical[2], rel=1e-3)  # entropies are equal
    assert (poisson[:2] < categorical[:2]).all()
    assert gradient_noise("poisson", 11, 0) == tuple(poisson)
