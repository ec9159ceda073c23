"""The figures: trained once, evaluated on the same matches, made again without training."""

from __future__ import annotations

import dataclasses
import functools
import re
from pathlib import Path

import pytest

pytest.importorskip("jsbsim")
pytest.importorskip("stable_baselines3")
pytest.importorskip("tyro")
pytest.importorskip("matplotlib")

import learn
import palaestra_assets
from learning import figures, tracking_figures
from learning.drawing import read_table
from learning.figures import FigureArgs
from palaestra.core.run.simulation import Simulation
from palaestra.games.ucav.inner_loop import load_inner_loop
from palaestra_baselines import pid, ppo_tracking
from palaestra_baselines.common.many_runs import continued, finished, mark_finished
from palaestra_baselines.ppo_tracking import evaluation_flights

pytestmark = pytest.mark.slow

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
def args(figure_args: FigureArgs, monkeypatch: pytest.MonkeyPatch) -> FigureArgs:
    """Arguments of a figure that takes seconds."""
    monkeypatch.setattr(ppo_tracking, "Args", functools.partial(ppo_tracking.Args, **SMALL))
    monkeypatch.setattr(ppo_tracking, "evaluation_flights", few_flights)
    monkeypatch.setattr(tracking_figures, "hunt", lambda inner_loop, target, seed=0: (64, 0))
    return figure_args


def few_flights(flights: int, workers: int, script: str | None, **parameters: float) -> Simulation:
    return evaluation_flights(2, workers, script, horizon=150, **parameters)


def test_the_tracking_figure_is_made_and_made_again_without_training(
    args: FigureArgs, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    tracking_figures.tracking(args)
    first = capsys.readouterr().out
    assert (args.figures / "tracking.png").read_bytes().startswith(b"\x89PNG")
    rows = read_table(args.figures / "tracking.csv")
    for condition in ppo_tracking.CONDITIONS:
        players = [row["player"] for row in rows if row["flights"] == condition]
        assert players == ["PPO, seed 0", "PPO, seed 1", "PID"]
    steps = [int(row["steps"]) for row in rows if row["player"] == "PPO, seed 1" and row["flights"] == "selection"]
    assert steps == [0, 256, 512]
    assert load_inner_loop(str(args.assets / "weights" / "ucav_inner_loop.safetensors")).sizes.tolist() == [
        33,
        64,
        64,
        4,
    ]
    monkeypatch.setattr(ppo_tracking, "train", lambda run: pytest.fail("it trained again"))
    tracking_figures.tracking(args)
    assert capsys.readouterr().out == first


def test_a_run_with_other_arguments_is_refused_and_loses_nothing(args: FigureArgs):
    run = ppo_tracking.Args(directory=args.runs)
    assert not finished(run)
    run.folder.mkdir(parents=True)
    mark_finished(run, steps=5)
    (run.folder / "checkpoint.safetensors").touch()
    assert finished(run)
    with pytest.raises(
        FileExistsError, match=rf"seed_0 holds a run with other settings \(gamma: was {run.gamma}, is 0\.5\)"
    ):
        finished(dataclasses.replace(run, gamma=0.5))
    assert sorted(file.name for file in run.folder.iterdir()) == ["checkpoint.safetensors", "done.json"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"steps": 5}', '{"settings": '])
def test_a_note_that_was_not_written_to_its_end_says_nothing(args: FigureArgs, text: str):
    run = ppo_tracking.Args(directory=args.runs)
    run.folder.mkdir(parents=True)
    (run.folder / "done.json").write_text(text)
    assert not finished(run)


def test_a_run_goes_on_from_its_checkpoint_and_else_starts_anew(args: FigureArgs):
    run = ppo_tracking.Args(directory=args.runs)
    assert (continued(run).resume, continued(run).overwrite) == (False, True)
    run.folder.mkdir(parents=True)
    (run.folder / "checkpoint.previous.safetensors").touch()
    assert (continued(run).resume, continued(run).overwrite) == (True, False)


def test_an_installed_package_is_never_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert FigureArgs().assets == Path(palaestra_assets.path("py.typed")).parent
    assert (FigureArgs().figures / "tracking.png").is_file()
    assert pid.Args().table == FigureArgs().assets / "tables" / "pid_grid.csv"
    monkeypatch.setattr(palaestra_assets, "path", lambda name: tmp_path / "site-packages" / "palaestra_assets" / name)
    assert pid.Args().table == Path("runs/pid/tables/pid_grid.csv")


def test_the_runs_of_a_figure_go_to_the_cluster_that_is_named(args: FigureArgs, monkeypatch: pytest.MonkeyPatch):
    asked: list[tuple[object, ...]] = []
    monkeypatch.setattr(figures, "train_runs", lambda title, runs, at_once, ray: asked.append((runs, at_once, ray)))
    run = ppo_tracking.Args(directory=args.runs)
    named = dataclasses.replace(args, workers=3, ray="auto")
    figures.train_in_turn("mine", {"ppo": [run]}, lambda _: "ppo_tracking", named, print)
    assert asked == [([("palaestra_baselines.ppo_tracking", run, print)], 3, "auto")]


@pytest.mark.parametrize(("word", "value"), [("--seeds", "0"), ("--workers", "-1")])
def test_a_number_that_cannot_be_is_refused_by_name(word: str, value: str):
    with pytest.raises(ValueError, match=f"{word} must be"):
        learn.main([word, value, "tracking"])


def test_an_unknown_figure_names_those_that_there_are():
    with pytest.raises(SystemExit, match=r"no figure 'tracing': choose from tracking"):
        learn.main(["tracing"])


def test_commands_on_pages_name_figures_that_there_are():
    root = Path(__file__).parents[2]
    pages = [root / "README.md", *(root / "docs").rglob("*.md")]
    named = [
        words
        for page in pages
        for words in re.findall(r"python benchmarks/learn\.py((?:\s+\w+)*)`", page.read_text(encoding="utf-8"))
    ]
    assert len(named) > 10
    for words in named:
        assert learn.chosen(words.split())
