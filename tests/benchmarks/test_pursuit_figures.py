"""The figures of methods on graphs, with runs of a second."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("tyro")
pytest.importorskip("matplotlib")

import learn
import palaestra
from learning import pursuit_figures
from learning.drawing import read_table
from learning.figures import FigureArgs
from learning.pursuit_figures import GROUPS, METHODS, SETTINGS, Entry, Setting
from palaestra import registry
from palaestra_baselines import arac, mappo
from palaestra_baselines.common.agents import keywords

pytestmark = [pytest.mark.usefixtures("rules_do_not_change"), pytest.mark.slow]

PATH = "test/GraphPursuit-Path-v0"
palaestra.register(PATH, "palaestra.games.pursuit.graph_pursuit:game", family="test", graph="grid:3x3")
SOLVED = ("order=alternating", "starts=winnable", "solve=True", "horizon=24")
SMALL = {"evaluations": 2, "lanes": 8, "warmup_steps": 40, "batch_size": 8, "replay_size": 80, "matches": 8}
FEW = {"evaluations": 2, "lanes": 8, "rollout": 8, "matches": 8}


@pytest.fixture
def args(figure_args: FigureArgs, monkeypatch: pytest.MonkeyPatch) -> FigureArgs:
    """Two seeds on a solved grid of nine nodes, and 16 matches in the end."""
    monkeypatch.setitem(SETTINGS, "grid", Setting("nine nodes", PATH, SOLVED))
    monkeypatch.setitem(GROUPS, "grid", (Entry("grid", "arac", 120, bar=1.0, weights="learnt", arguments=SMALL),))
    monkeypatch.setattr(pursuit_figures, "TEST_MATCHES", 16)
    return figure_args


def test_a_figure_has_curves_results_and_weights_and_is_made_again_without_training(
    args: FigureArgs, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    pursuit_figures.pursuit_figure("grid", args)
    first = capsys.readouterr().out
    assert [line.split()[:2] for line in first.splitlines()[1:3]] == [["ARAC", "0"], ["ARAC", "1"]]
    assert "at least 1.00" in first.splitlines()[-1]
    folder = args.figures
    assert (folder / "pursuit_grid.png").read_bytes().startswith(b"\x89PNG")
    assert {row["seed"] for row in read_table(folder / "pursuit_grid.csv")} == {"0", "1"}
    assert list(read_table(folder / "pursuit_grid_results.csv")[0]) == [
        *("setting", "where", "method", "title", "reference", "seed", "decisions", "cpu_s"),
        *("test", "opponent", "won", "slower"),
    ]
    assert (args.assets / "weights" / "learnt.safetensors").exists()
    monkeypatch.setattr(arac, "train", lambda *_: pytest.fail("it trained again"))
    pursuit_figures.pursuit_figure("grid", args)
    assert capsys.readouterr().out == first


def test_methods_meet_each_other_on_both_sides(args: FigureArgs, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(
        SETTINGS, "confront", replace(SETTINGS["confront"], options=("graph=path:4", "red=1", "blue=1"))
    )
    entries = (Entry("confront", "arac", 120, arguments=SMALL), Entry("confront", "mappo", 120, arguments=FEW))
    monkeypatch.setitem(GROUPS, "confront", entries)
    pursuit_figures.pursuit_figure("confront", replace(args, seeds=1))
    rows = read_table(args.figures / "pursuit_confront_results.csv")
    assert [(row["title"], row["test"]) for row in rows] == [
        *(("ARAC", "as learnt"), ("MAPPO", "as learnt"), ("ARAC", "against MAPPO"))
    ]
    assert all(0.0 <= float(row["won"]) <= 1.0 for row in rows)


def test_references_play_the_same_matches_without_learning(args: FigureArgs, monkeypatch: pytest.MonkeyPatch):
    setting = Setting("nine nodes", PATH, SOLVED, scripts=("shortest_path", "optimal"))
    monkeypatch.setattr(pursuit_figures, "SETTINGS", {"grid": setting})
    pursuit_figures.pursuit_references(args)
    rows = read_table(args.figures / "pursuit_references.csv")
    assert [(row["script"], row["opponent"]) for row in rows] == [
        *(("random", "optimal"), ("shortest_path", "optimal"), ("optimal", "optimal"))
    ]
    assert (rows[2]["won"], rows[2]["slower"]) == ("1", "1")
    assert not args.runs.exists()


@pytest.mark.parametrize(
    ("method", "more", "reference"),
    [("arac", {}, "shortest_path"), ("arac", pursuit_figures.PERFECT, "optimal"), ("none", {}, ""), ("mappo", {}, "")],
)
def test_results_name_the_reference_of_a_method(method: str, more: dict[str, Any], reference: str, tmp_path: Path):
    entry = Entry("grid", method, 1, arguments=more)
    run = pursuit_figures.run_of(entry, 0, tmp_path)
    assert pursuit_figures.costs(entry, run, [{"steps": 1.0, "cpu_s": 1.0}])["reference"] == reference


def test_optimal_pursuers_need_the_moves_of_optimal_play():
    result = pursuit_figures.play_matches(Setting("", PATH), "optimal", SOLVED, "optimal")
    assert result == {"won": 1.0, "slower": 1.0}


def test_moves_are_compared_with_those_of_optimal_play_from_the_same_starts():
    slow = pursuit_figures.play_matches(Setting("", PATH), "stay", SOLVED, "random")
    fast = pursuit_figures.play_matches(Setting("", PATH), "stay", SOLVED, "shortest_path")
    assert slow["slower"] > 1.0 > fast["slower"], "who stays is captured sooner than who flees"


def test_unsolved_games_have_no_optimal_moves():
    assert pursuit_figures.play_matches(Setting("", PATH), "stay", (), "shortest_path") == {"won": 1.0, "slower": 0.0}


@pytest.mark.parametrize("pursuers", [1, 2])
def test_optimal_moves_are_those_of_the_solution(pursuers: int):
    options: dict[str, Any] = {"order": "alternating", "solve": True, "pursuers": pursuers, "graph": "path:5"}
    sim = registry.make_batch(PATH, 2, autoreset_mode="off", **options)
    sim.reset(seed=0)
    sim.states["node"][:, : pursuers + 1] = [[0] * pursuers + [3], [4] * pursuers + [2]]
    assert pursuit_figures.optimal_moves(sim).tolist() == [4, 4]
    sim.close()


def result(method: str, won: float, **more: Any) -> dict[str, Any]:
    return {"setting": "grid", "method": method, "test": "as learnt", "won": won, "slower": 1.5, "cpu_s": 120.0, **more}


def test_medians_are_held_against_what_is_asked():
    entries = (
        Entry("grid", "arac", 1, bar=0.9, minutes=1.0, slower=1.4, ahead={"fixed": 0.05}),
        Entry("grid", "fixed", 1),
    )
    rows = [result("arac", won) for won in (0.5, 0.94, 1.0)] + [result("fixed", won) for won in (0.8, 0.9, 0.9)]
    log = [{"steps": 100.0 * k, "win_rate": 0.2 * k} for k in range(6)]
    logs = {("grid", "arac"): [log, log[:2], log], ("grid", "fixed"): [log[:2]] * 3}
    _, own, other = pursuit_figures.median_lines(entries, rows, logs)
    assert "won 0.940  1.50x moves  2.0 min  half after 300" in own
    for asked in ("at least 0.90: holds", "at most 1 min: MISSED", "at most 1.4x the moves: MISSED"):
        assert asked in own
    assert "+0.05 over fixed weight 0.03 (+0.04): MISSED" in own
    assert other.endswith("half after never  last 4 0.100")


def test_tests_of_one_policy_are_held_against_each_other():
    entry = Entry("grid", "arac", 1, spread=0.1)
    logs = {("grid", "arac"): [[{"steps": 1.0, "win_rate": 0.0}]]}
    for far, said in ((0.55, "(0.05): holds"), (0.75, "(0.25): MISSED")):
        rows = [result("arac", 0.5, test="two"), result("arac", far, test="six")]
        assert all(line.endswith(said) for line in pursuit_figures.median_lines((entry,), rows, logs)[1:])


def test_decisions_to_a_share_are_those_of_the_first_evaluation_that_reaches_it():
    log = [{"steps": 10.0, "win_rate": 0.4}, {"steps": 20.0, "win_rate": 0.6}, {"steps": 30.0, "win_rate": 0.3}]
    assert pursuit_figures.steps_to([log], 0.5) == 20.0
    assert np.isinf(pursuit_figures.steps_to([log], 0.7))


@pytest.mark.parametrize("group", sorted(GROUPS))
def test_entries_name_known_settings_methods_and_arguments(group: str, tmp_path: Path):
    entries = GROUPS[group]
    assert len({(entry.place, entry.method) for entry in entries}) == len(entries)
    for entry in entries:
        assert set(entry.ahead) <= {other.method for other in entries}
        run: Any = pursuit_figures.run_of(entry, 1, tmp_path)
        assert (run.seed, run.total_steps) == (1, entry.steps)
        registry.make_game(SETTINGS[entry.place].env_id, **keywords((*run.options,)))
    assert f"pursuit_{group}" in learn.FIGURES


def test_methods_have_titles_of_their_own():
    assert len({method.title for method in METHODS.values()}) == len(METHODS)
    assert {method.module for method in METHODS.values()} == {"arac", "mappo"}
    assert arac.METHOD != mappo.METHOD
