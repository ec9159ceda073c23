"""The figure of Skirmish's learners, with runs of a second."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("tyro")
pytest.importorskip("matplotlib")

import palaestra
from palaestra_baselines import skirmish_figures, vdn
from palaestra_baselines.common.runs import FigureArgs

BATTLE = "test/Skirmish-3m-v0"
palaestra.register(BATTLE, "palaestra.skirmish.battle:game", family="test", map="3m")
SMALL = {"total_steps": 320, "lanes": 16, "warmup_steps": 100, "batch_size": 16, "replay_size": 400, "matches": 8}


def test_the_figure_has_curves_and_a_table_and_is_made_again_without_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(skirmish_figures, "BATTLES", {"3m": BATTLE})
    small = {**skirmish_figures.RED_LEARNS, **SMALL, "evaluations": 2}
    monkeypatch.setattr(skirmish_figures, "RED_LEARNS", small)
    monkeypatch.setattr(skirmish_figures, "TEST_MATCHES", 8)
    args = FigureArgs(seeds=2, runs=tmp_path / "runs", assets=tmp_path / "assets", workers=0)
    skirmish_figures.skirmish_learning(args)
    first = capsys.readouterr().out
    head, *lines = first.splitlines()
    assert head.split()[:3] == ["map", "method", "seed"]
    assert [line.split()[:3] for line in lines] == [["3m", "VDN", "0"], ["3m", "VDN", "1"]]
    figures = args.assets / "figures"
    assert (figures / "skirmish_learning.png").read_bytes().startswith(b"\x89PNG")
    with (figures / "skirmish_learning.csv").open(newline="") as file:
        assert [row["seed"] for row in csv.DictReader(file)] == ["0"] * 3 + ["1"] * 3
    monkeypatch.setattr(vdn, "train", lambda *_: pytest.fail("it trained again"))
    skirmish_figures.skirmish_learning(args)
    assert capsys.readouterr().out == first
