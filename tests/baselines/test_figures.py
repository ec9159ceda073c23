"""The figures: trained once, evaluated on the same matches, made again without training."""

from __future__ import annotations

import csv
import dataclasses
import functools
from pathlib import Path

import pytest

pytest.importorskip("jsbsim")
pytest.importorskip("stable_baselines3")
pytest.importorskip("tyro")
pytest.importorskip("matplotlib")

from palaestra.kernels.networks import load_network
from palaestra_baselines import figures, ppo_tracking
from palaestra_baselines.common.tracking import evaluation_flights

SMALL = {
    "total_steps": 512,
    "lanes": 8,
    "rollout_steps": 32,
    "batch_size": 128,
    "evaluations": 2,
    "flights": 2,
    "quiet": True,
}


@pytest.fixture
def args(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> figures.Args:
    """Arguments of a figure that takes seconds."""
    monkeypatch.setattr(ppo_tracking, "Args", functools.partial(ppo_tracking.Args, **SMALL))
    few = lambda flights, workers, script=None: evaluation_flights(2, workers, script, horizon=150)  # noqa: E731
    for module in (figures, ppo_tracking):
        monkeypatch.setattr(module, "evaluation_flights", few)
    return figures.Args(seeds=2, runs=tmp_path / "runs", assets=tmp_path / "assets", workers=0)


def test_the_tracking_figure_is_made_and_made_again_without_training(
    args: figures.Args, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    figures.tracking(args)
    first = capsys.readouterr().out
    assert (args.assets / "figures" / "tracking.png").read_bytes().startswith(b"\x89PNG")
    with (args.assets / "figures" / "tracking.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["player"] for row in rows if row["flights"] == "test"] == ["PPO, seed 0", "PPO, seed 1", "PID"]
    steps = [int(row["steps"]) for row in rows if row["player"] == "PPO, seed 1" and row["flights"] == "selection"]
    assert steps == [0, 256, 512]
    assert load_network(args.assets / "weights" / "ucav_inner_loop.npz").sizes.tolist() == [29, 64, 64, 4]
    monkeypatch.setattr(ppo_tracking, "train", lambda run: pytest.fail("it trained again"))
    figures.tracking(args)
    assert capsys.readouterr().out == first


def test_a_run_with_other_arguments_is_not_taken_for_the_same(args: figures.Args):
    run = ppo_tracking.Args(directory=args.runs)
    assert not figures.finished(run)
    for name in ("done.json", "checkpoint.safetensors"):
        (run.folder / name).touch()
    assert figures.finished(run)
    assert not figures.finished(dataclasses.replace(run, gamma=0.5))
    assert sorted(file.name for file in run.folder.iterdir()) == ["args.json"]


def test_an_unknown_figure_names_those_that_there_are():
    with pytest.raises(SystemExit, match=r"no figure 'tracing': choose from tracking"):
        figures.main(["tracing"])
