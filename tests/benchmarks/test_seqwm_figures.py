"""The figures of SeqWM and the PPO beside it: short runs in a game of one number, made-up curves, tables, pictures."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("stable_baselines3")
pytest.importorskip("safetensors")
pytest.importorskip("tyro")
pytest.importorskip("matplotlib")
pytest.importorskip("mujoco")

import games.copy_game

import learn
from learning import drawing, figures, seqwm_figures
from learning.figures import FigureArgs, write_rows
from learning.seqwm_figures import (
    CENTRALISED,
    COPY_STUDY,
    DECENTRALISED,
    MAPPO,
    MODE_STUDY,
    MODES,
    OWN_LATENT,
    PPO,
    SEQWM,
    SETTINGS,
    TASK_STUDY,
    TASKS,
    TUNING_STUDY,
)
from learning.study import Made, Study

pytestmark = pytest.mark.slow


def test_a_method_is_named_by_its_module_or_by_a_full_name():
    assert figures.method_module("learning.figures") is figures
    assert figures.method_module("mappo").METHOD == "mappo"


# -- areas and verdicts ------------------------------------------------------------------------------------------------


def test_the_area_is_the_mean_over_the_decisions_and_nothing_after_them_counts():
    log = [{"steps": s, "return": r} for s, r in ((0, 0.0), (50, 1.0), (150, 3.0))]
    assert seqwm_figures.area(log, 100.0) == pytest.approx((0.5 * 50 + 1.5 * 50) / 100)
    assert seqwm_figures.area(log[:2], 50.0) == 0.5
    assert seqwm_figures.area(log, 50.0) == 0.5


def result(task: str, method: str, low: float, high: float, cpu_s: float = 60.0) -> dict[str, Any]:
    return {"task": task, "method": method, "area": (low + high) / 2, "low": low, "high": high, "cpu_s": cpu_s}


def test_seqwm_is_ahead_where_its_interval_lies_above_both_others():
    rows = [result("QuadGate2", PPO, 0.0, 0.4), result("QuadGate2", MAPPO, 0.1, 0.2, 121.0)]
    verdict = lambda low: seqwm_figures.with_verdicts([*rows, result("QuadGate2", SEQWM, low, 0.9, 361.0)])  # noqa: E731
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(seqwm_figures, "CLAIMED_ON", ("QuadGate2",))
        ppo, mappo, own, either = (row["verdict"] for row in verdict(0.5))
        assert (ppo, mappo) == ("at most 2 min: holds", "at most 2 min: MISSED")
        assert own == f"at most 6 min: MISSED  area above {PPO} and {MAPPO}: holds"
        assert either.endswith("one of them: holds")
        *_, own, either = (row["verdict"] for row in verdict(0.4))
        assert own.endswith(f"{MAPPO}: MISSED")
        assert either.endswith("one of them: MISSED")
        assert seqwm_figures.with_verdicts([{**row} for row in verdict(0.5)[:-1]])[-1]["task"] == "QuadGate2"


@pytest.mark.parametrize(
    ("name", "score", "cpu_s", "verdict"),
    [
        (SEQWM, 0.9, 60.0, "at least 0.9: holds  at most 60 s: holds"),
        (CENTRALISED, 0.89, 61.0, "at least 0.9: MISSED  at most 60 s: MISSED"),
        (DECENTRALISED, 0.77, 1.0, "0.72 to 0.76: MISSED  at most 60 s: holds"),
        (DECENTRALISED, 0.75, 1.0, "0.72 to 0.76: holds  at most 60 s: holds"),
        (OWN_LATENT, 0.1, 1.0, "at most 60 s: holds"),
    ],
)
def test_scores_of_copy_are_held_against_their_bars(name: str, score: float, cpu_s: float, verdict: str):
    logs = [[{"score": 0.0, "cpu_s": 0.0}, {"score": score, "cpu_s": cpu_s - seed}] for seed in range(5)]
    row = seqwm_figures.copy_result(name, logs, np.full(5, 0.5))
    assert (row["score"], row["actor"], row["cpu_s"], row["verdict"]) == (pytest.approx(score), 0.5, cpu_s, verdict)


def test_the_score_of_copy_is_the_mean_reward_of_a_decision():
    blind = lambda seen: np.zeros((*seen.shape[:2], 1))  # noqa: E731
    assert seqwm_figures.copy_score(blind, 512) == pytest.approx(0.5, abs=0.01)
    assert seqwm_figures.copy_score(lambda seen: seen, 512) == pytest.approx(games.copy_game.BLIND, abs=0.01)


# -- runs and tables ---------------------------------------------------------------------------------------------------


def test_settings_are_tried_in_folders_of_their_own_and_as_many_of_each_method(tmp_path: Path):
    runs = TUNING_STUDY.runs_of(FigureArgs(runs=tmp_path))
    assert {len(settings) for settings in SETTINGS.values()} == {8}
    assert len({run.folder for (run,) in runs.values()}) == len(runs) == 24


def test_runs_of_the_mode_seq_serve_both_figures(tmp_path: Path):
    args = FigureArgs(runs=tmp_path, seeds=2)
    tasks, modes = TASK_STUDY.runs_of(args), MODE_STUDY.runs_of(args)
    assert [run.mode for (run, _) in modes.values()] == list(MODES.values())
    done = {run.folder: run.settings for group in tasks.values() for run in group}
    assert [done.get(run.folder) == run.settings for (run, _) in modes.values()] == [True, False, False, False]


def test_copy_has_five_seeds_of_four_arms_whatever_is_asked(tmp_path: Path):
    runs = list(COPY_STUDY.runs_of(FigureArgs(runs=tmp_path, seeds=2)).values())
    assert [run.seed for run in runs[0]] == list(range(5))
    assert {method.module for method in COPY_STUDY.methods.values()} == {"learning.seqwm_figures"}
    assert [(run.mode, run.actor_sees) for run, *_ in runs] == [
        *(("seq", "earlier"), ("centralised", "earlier"), ("decentralised", "earlier"), ("seq", "own"))
    ]
    runs[0][0].check()


def test_a_table_of_settings_names_the_best_of_each_method(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(figures, "train_all", lambda *_: None)
    good = seqwm_figures.folder_of("gamma 0.96")

    def curve(log: Path) -> list[dict[str, float]]:
        end = 2.0 if good == log.parents[1].name else 1.0
        return [{"steps": s, "return": r, "success": 0.5, "cpu_s": s / 1e3} for s, r in ((0.0, 0.0), (5e4, end))]

    monkeypatch.setattr(figures, "read_rows", curve)
    TUNING_STUDY.make(FigureArgs(runs=tmp_path, figures=tmp_path))
    rows = drawing.read_table(tmp_path / "seqwm_tuning.csv")
    assert [(row["method"], row["setting"]) for row in rows] == [
        (m, n) for m, by_name in SETTINGS.items() for n in by_name
    ]
    assert list(rows[0]) == ["method", "setting", "area", "return", "success", "cpu_s"]
    assert {row["area"] for row in rows} == {"0.5", "1"}
    assert f"{PPO}: gamma 0.96 has the greatest area" in capsys.readouterr().out


def drawn(monkeypatch: pytest.MonkeyPatch, draw: Any) -> Any:
    """Panels that are drawn from a table; a picture is made of them."""
    seen: list[Any] = []
    monkeypatch.setattr(drawing, "draw", lambda table, panels: seen.append((table.name, panels)))
    draw()
    ((name, panels),) = seen
    drawing.make_picture(panels)
    return name, panels


LOG = [{"steps": s, "return": s / 5e4, "success": 0.5, "cpu_s": s / 1e3, "loss": 1.0} for s in (0.0, 5e4)]


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> None:
    """What scripts and random play reach in all tasks."""
    script, random = {"return": 2.0, "success": 1.0}, {"return": 0.1, "success": 0.0}
    monkeypatch.setattr(seqwm_figures, "play", lambda task, who, _: random if who == "random" else script)


def made(study: Study) -> Made:
    """Three equal runs of all entries."""
    runs: Any = {entry.key: [SimpleNamespace(seed=seed) for seed in range(3)] for entry in study.entries}
    return Made(runs, {key: [LOG, LOG, LOG] for key in runs}, FigureArgs())


@pytest.mark.parametrize(("name", "last"), [("seqwm_tasks", 5e4), ("seqwm_tasks_cpu", 50.0)])
def test_pictures_of_tasks_are_drawn_from_their_table(
    name: str, last: float, played: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    rows = seqwm_figures.table_rows(TASK_STUDY, made(TASK_STUDY))
    write_rows(tmp_path / f"{name}.csv", rows)
    assert list(rows[0]) == ["task", "method", "mode", "seed", "steps", "return", "success", "cpu_s"]
    file, panels = drawn(monkeypatch, lambda: learn.ALL[name].draw(tmp_path))
    assert file == f"{name}.csv"
    assert [panel.title for panel in panels] == list(TASKS)
    for panel in panels:
        assert list(panel.curves) == [PPO, MAPPO, SEQWM]
        assert panel.curves[PPO].x.tolist() == [0.0, last]
        assert panel.lines == {"script": 2.0, "random play": 0.1}


def test_the_picture_of_modes_is_drawn_from_its_table(played: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    write_rows(tmp_path / "seqwm_modes.csv", seqwm_figures.table_rows(MODE_STUDY, made(MODE_STUDY)))
    _, (panel,) = drawn(monkeypatch, lambda: MODE_STUDY.draw(tmp_path))
    assert list(panel.curves) == list(MODES)
    assert panel.curves[SEQWM].middle.tolist() == [0.0, 1.0]


def test_results_have_areas_last_evaluations_and_of_seqwm_the_actors_alone(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(seqwm_figures, "actors_alone", lambda *_: {"actor_return": 0.25})
    ppo, _, own = (seqwm_figures.result(entry, made(TASK_STUDY)) for entry in TASK_STUDY.entries[:3])
    assert (ppo["area"], ppo["return"], ppo["success"], ppo["cpu_s"]) == (0.5, 1.0, 0.5, 50.0)
    assert "actor_return" not in ppo
    assert own["actor_return"] == 0.25


def test_the_figure_of_copy_has_a_table_results_and_a_picture(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(figures, "train_all", lambda *_: None)
    monkeypatch.setattr(seqwm_figures, "actor_score", lambda _: 0.4)
    log = [{"steps": s, "score": 0.5 + s / 5e4, "cpu_s": s / 1e3} for s in (0.0, 2e4)]
    monkeypatch.setattr(figures, "read_rows", lambda _: log)
    make = lambda: COPY_STUDY.make(FigureArgs(runs=tmp_path, figures=tmp_path))  # noqa: E731
    _, (panel,) = drawn(monkeypatch, make)
    assert list(panel.curves) == list(seqwm_figures.COPY_ARMS)
    assert panel.lines == {
        "best": 1.0,
        "best without communication": 0.75,
        "random play": pytest.approx(1 / 3, abs=0.01),
    }
    rows = drawing.read_table(tmp_path / "seqwm_copy_results.csv")
    assert [row["method"] for row in rows] == [*seqwm_figures.COPY_ARMS, *panel.lines]
    assert (rows[0]["score"], rows[0]["actor"]) == ("0.9", "0.4")
