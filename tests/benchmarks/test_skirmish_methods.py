"""The table of all methods on all battles: which runs there are, how long they are, and that none is made twice."""

import csv
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from learning import skirmish_methods as methods
from learning.figures import FigureArgs

SMALL: dict[str, Any] = {"lanes": 8, "evaluations": 2, "matches": 4}
REPLAY: dict[str, Any] = {"warmup_steps": 60, "batch_size": 16, "replay_size": 200, "updates": 1}


def test_every_map_has_a_run_of_every_method_and_unshaped_battles_have_one_of_every_arm():
    counts = Counter((cell.battle, cell.arm) for cell in methods.cells())
    assert counts["bane_vs_bane", "mappo"] == 1
    assert counts["MMM2", "vdn"] == 3
    assert counts["Late", "vdn, entity"] == 3
    assert counts["3s5z_vs_3s6z", "unmas, flat"] == 5
    assert ("MMM2", "vdn, entity") not in counts
    assert len({battle for battle, _ in counts}) == 28
    battles = [(cell.battle not in methods.FACTORIAL, cell.seed) for cell in methods.cells()]
    assert battles == sorted(battles)


@pytest.mark.slow
def test_runs_are_kept_in_the_tables_and_made_again_only_where_play_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(methods, "SEEDS", {"3m": 2})
    monkeypatch.setattr(methods, "MAP_ARMS", ("vdn", "mappo"))
    monkeypatch.setattr(methods, "MINUTES", 1e-6)
    monkeypatch.setattr(methods, "TRIAL", 1600)
    monkeypatch.setattr(methods, "TEST_MATCHES", 8)
    monkeypatch.setattr(methods, "RED_LEARNS", {**methods.RED_LEARNS, **SMALL})
    vdn = methods.ARMS["vdn"]
    monkeypatch.setitem(methods.ARMS, "vdn", methods.Method(vdn.title, vdn.module, {**vdn.arguments, **REPLAY}))
    args = FigureArgs(runs=tmp_path / "runs", figures=tmp_path, workers=0)
    methods.skirmish_methods(args)
    with (tmp_path / "skirmish_methods_results.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["arm"], row["seed"], row["decisions_wanted"]) for row in rows] == [
        *(("vdn", "0", "1600"), ("mappo", "0", "1600"), ("vdn", "1", "1600"), ("mappo", "1", "1600")),
    ]
    assert all(0.0 <= float(row[column]) <= 1.0 for row in rows for column in row if column.startswith("won_"))
    assert sum(column.startswith("won_") for column in rows[0]) == 3
    written = [(tmp_path / name).read_bytes() for name in ("skirmish_methods.csv", "skirmish_methods_results.csv")]
    methods.skirmish_methods(args)
    assert "4 runs are there, 0 are to be made" in capsys.readouterr().out
    assert written == [(tmp_path / n).read_bytes() for n in ("skirmish_methods.csv", "skirmish_methods_results.csv")]
    monkeypatch.setattr(methods.Cell, "play", "otherwise")
    monkeypatch.setattr(methods, "MAP_ARMS", ("mappo",))
    methods.skirmish_methods(args)
    assert "0 runs are there, 2 are to be made" in capsys.readouterr().out
