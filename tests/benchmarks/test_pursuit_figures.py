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

import palaestra
from learning import pursuit_figures
from learning.drawing import read_table
from learning.figures import FigureArgs
from learning.pursuit_figures import PLACES, STUDIES
from learning.study import Entry, Place
from palaestra import registry

pytestmark = [pytest.mark.usefixtures("rules_do_not_change"), pytest.mark.slow]

PATH = "test/GraphPursuit-Path-v0"
palaestra.register(PATH, "palaestra.games.pursuit.graph_pursuit:game", family="test", graph="grid:3x3")
SOLVED = ("order=alternating", "starts=winnable", "solve=True", "horizon=24")
SMALL = {"evaluations": 2, "lanes": 8, "warmup_steps": 40, "batch_size": 8, "replay_size": 80, "matches": 8}
FEW = {"evaluations": 2, "lanes": 8, "rollout": 8, "matches": 8}
NINE = Place("nine nodes", PATH, SOLVED, "pursuer", "optimal", scripts=("shortest_path", "optimal"))


@pytest.fixture
def args(figure_args: FigureArgs, monkeypatch: pytest.MonkeyPatch) -> FigureArgs:
    """Two seeds on a solved grid of nine nodes, and 16 matches in the end."""
    monkeypatch.setitem(PLACES, "grid", NINE)
    monkeypatch.setattr(pursuit_figures, "TEST_MATCHES", 16)
    return figure_args


def test_a_figure_has_curves_results_and_weights(args: FigureArgs, capsys: pytest.CaptureFixture[str]):
    entries = (Entry("grid", "arac", 120, bar=1.0, weights="learnt", arguments=SMALL),)
    replace(STUDIES["grid"], entries=entries).make(args)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines[1:3]] == [["ARAC", "0"], ["ARAC", "1"]]
    assert "at least 1.00" in lines[-1]
    folder = args.figures
    assert (folder / "pursuit_grid.png").read_bytes().startswith(b"\x89PNG")
    assert {row["seed"] for row in read_table(folder / "pursuit_grid.csv")} == {"0", "1"}
    assert list(read_table(folder / "pursuit_grid_results.csv")[0]) == [
        *("setting", "where", "method", "title", "reference", "seed", "decisions", "cpu_s"),
        *("test", "opponent", "won", "slower"),
    ]
    assert (args.assets / "weights" / "learnt.safetensors").exists()


def test_methods_meet_each_other_on_both_sides(args: FigureArgs, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(PLACES, "confront", replace(PLACES["confront"], options=("graph=path:4", "red=1", "blue=1")))
    entries = (Entry("confront", "arac", 120, arguments=SMALL), Entry("confront", "mappo", 120, arguments=FEW))
    replace(STUDIES["confront"], entries=entries).make(replace(args, seeds=1))
    rows = read_table(args.figures / "pursuit_confront_results.csv")
    assert [(row["title"], row["test"]) for row in rows] == [
        *(("ARAC", "as learnt"), ("MAPPO", "as learnt"), ("ARAC", "against MAPPO"))
    ]
    assert all(0.0 <= float(row["won"]) <= 1.0 for row in rows)


def test_references_play_the_same_matches_without_learning(args: FigureArgs, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pursuit_figures, "PLACES", {"grid": NINE})
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
    run = STUDIES["grid"].run_of(entry, 0, tmp_path)
    assert pursuit_figures.costs(entry, run, [{"steps": 1.0, "cpu_s": 1.0}])["reference"] == reference


def test_optimal_pursuers_need_the_moves_of_optimal_play():
    result = pursuit_figures.play_matches(NINE, "optimal", SOLVED, "optimal")
    assert result == {"won": 1.0, "slower": 1.0}


def test_moves_are_compared_with_those_of_optimal_play_from_the_same_starts():
    slow = pursuit_figures.play_matches(NINE, "stay", SOLVED, "random")
    fast = pursuit_figures.play_matches(NINE, "stay", SOLVED, "shortest_path")
    assert slow["slower"] > 1.0 > fast["slower"], "who stays is captured sooner than who flees"


def test_unsolved_games_have_no_optimal_moves():
    assert pursuit_figures.play_matches(NINE, "stay", (), "shortest_path") == {"won": 1.0, "slower": 0.0}


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
    own, other = pursuit_figures.median_lines(replace(STUDIES["grid"], entries=entries), rows, logs)
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
        lines = pursuit_figures.median_lines(replace(STUDIES["grid"], entries=(entry,)), rows, logs)
        assert all(line.endswith(said) for line in lines)


def test_decisions_to_a_share_are_those_of_the_first_evaluation_that_reaches_it():
    log = [{"steps": 10.0, "win_rate": 0.4}, {"steps": 20.0, "win_rate": 0.6}, {"steps": 30.0, "win_rate": 0.3}]
    assert pursuit_figures.steps_to([log], 0.5) == 20.0
    assert np.isinf(pursuit_figures.steps_to([log], 0.7))
