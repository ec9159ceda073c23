"""What a run leaves for its user: its folder, its best policy, its settings as a file, its curve in a tracker."""

from __future__ import annotations

import dataclasses
import importlib.util
import sys
from collections.abc import Iterable
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("tyro")

from baselines.short_runs import OF_MAPPO, Stop

import palaestra_assets
from palaestra.cli.typed_arguments import read_arguments
from palaestra.core.files import FileError
from palaestra_baselines import mappo, minimax_q, qmix, vdn
from palaestra_baselines.common import run_folder
from palaestra_baselines.common.run_folder import BEST, LOG, WEIGHTS, RunArgs, RunFolder, read_rows, run_command
from palaestra_baselines.common.run_outputs import CURVE, SETTINGS, draw_curves, open_tracker, write_settings
from palaestra_baselines.common.training import Evaluation


def args_of(folder: Path, **changes: Any) -> RunArgs:
    return RunArgs(**{"directory": folder, "total_steps": 100, "evaluations": 4, "quiet": True, **changes})


# -- folder ------------------------------------------------------------------------------------------------------------


def test_runs_of_two_methods_on_two_ids_have_folders_of_their_own():
    args = [kind(env_id=f"palaestra/{id}") for kind in (vdn.Args, qmix.Args) for id in ("TeamPong-v0", "TeamTag-v0")]
    assert [run.folder.as_posix() for run in args] == [
        f"runs/{method}/{id}/seed_0" for method in ("vdn", "qmix") for id in ("TeamPong-v0", "TeamTag-v0")
    ]
    assert vdn.Args(directory=Path("mine"), seed=2).folder == Path("mine", "seed_2")
    assert vdn.Args(env_id="mine/Pond:2-v0").folder_of_seeds.as_posix() == "runs/vdn/mine_Pond_2-v0"


# -- the best policy ---------------------------------------------------------------------------------------------------


def kept_after(folder: Path, scores: Iterable[float], column: str = "win_rate", **record: Any) -> bytes | None:
    """The best policy after evaluations with these scores; that of evaluation k is the text k."""
    args = args_of(folder)
    with RunFolder(args, "mine") as run:
        for number, score in enumerate(scores):
            (args.folder / WEIGHTS).write_text(str(number))
            run.record({"steps": number, "loss": 9.0, column: score}, {}, **record)
    best = args.folder / BEST
    return best.read_bytes() if best.exists() else None


@pytest.mark.parametrize(
    ("scores", "best"),
    [((0.1, 0.7, 0.3), b"1"), ((0.5, 0.2, 0.5), b"2"), ((0.9, float("nan")), b"0"), ((float("nan"), -3.0, -4.0), b"1")],
)
def test_the_best_policy_is_the_latest_with_the_greatest_score(tmp_path: Path, scores: Any, best: bytes):
    assert kept_after(tmp_path, scores) == best


def test_without_a_score_or_a_file_that_is_all_of_the_policy_none_is_the_best(tmp_path: Path):
    assert kept_after(tmp_path / "a", (1.0, 2.0), "illegal") is None
    assert kept_after(tmp_path / "b", (1.0, 2.0), is_one_file=False) is None


def scored(*scores: float | None) -> Evaluation:
    """Evaluations with these scores; None ends the training."""
    left = iter(scores)

    def evaluation(_: Any) -> dict[str, float]:
        score = next(left)
        if score is None:
            raise Stop
        return {"win_rate": score}

    return evaluation


@pytest.mark.check
@pytest.mark.parametrize(("before", "after"), [((0.2, 0.9, None), (0.4,)), ((0.2, None), (0.9, 0.4))])
def test_a_resumed_training_keeps_the_same_best_policy_to_the_byte(tmp_path: Path, before: Any, after: Any):
    args = mappo.Args(**OF_MAPPO, env_id="palaestra/TeamPong-v0", opponent="tracker", directory=tmp_path / "whole")
    mappo.train(args, scored(0.2, 0.9, 0.4))
    halves = dataclasses.replace(args, directory=tmp_path / "halves")
    with pytest.raises(Stop):
        mappo.train(halves, scored(*before))
    mappo.train(dataclasses.replace(halves, resume=True), scored(*after))
    assert (halves.folder / BEST).read_bytes() == (args.folder / BEST).read_bytes()
    assert (args.folder / BEST).read_bytes() != (args.folder / WEIGHTS).read_bytes()


def test_a_process_killed_before_its_checkpoint_evaluates_again_and_keeps_the_same_best(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def killed(*words: Any, **more: Any) -> None:
        raise Stop

    args = args_of(tmp_path)
    with RunFolder(args, "mine") as run:
        (args.folder / WEIGHTS).write_text("0")
        run.record({"steps": 0, "score": 0.0}, {"x": 1})
        (args.folder / WEIGHTS).write_text("1")
        with monkeypatch.context() as patch:
            patch.setattr(run_folder, "save_checkpoint", killed)
            with pytest.raises(Stop):
                run.record({"steps": 25, "score": 1.0}, {"x": 1})
    with RunFolder(args_of(tmp_path, resume=True), "mine") as run:
        assert run.steps == 0
        run.record({"steps": 25, "score": 1.0}, {"x": 1})
    assert (args.folder / BEST).read_text() == "1"


def test_of_exploitabilities_the_smallest_is_the_best():
    rows = [{"steps": k, "exploitability": x} for k, x in enumerate((0.5, 0.2, 0.3))]
    assert [run_folder.is_best(rows[: k + 1]) for k in range(3)] == [True, True, False]


# -- settings ----------------------------------------------------------------------------------------------------------


@pytest.mark.check
def test_the_settings_of_every_method_come_back_from_their_file(tmp_path: Path):
    found = 0
    for entry in entry_points(group="palaestra.baselines"):
        kind = getattr(entry.load(), "Args", None)
        if isinstance(kind, type) and issubclass(kind, RunArgs):
            args = dataclasses.replace(kind(), seed=5)
            write_settings(tmp_path, entry.name, args.settings)
            path = tmp_path / SETTINGS
            assert read_arguments(kind, ["--config", str(path)], "x") == dataclasses.replace(args, config=str(path))
            found += 1
    assert found > 20


def test_a_run_writes_its_settings_and_what_the_command_line_says_wins(tmp_path: Path):
    args = vdn.Args(directory=tmp_path, gamma=0.5, hidden=(8,), options=("players=1",), random_starts=True, quiet=True)
    with RunFolder(args, "vdn") as run:
        run.record({"steps": 0}, {})
    text = (args.folder / SETTINGS).read_text()
    assert text.startswith("# palaestra train vdn --config settings.toml\n")
    assert "directory" not in text
    words = [f"--config={args.folder / SETTINGS}", "--gamma", "0.25", "--no-random-starts", "--hidden", "4", "2"]
    read = read_arguments(vdn.Args, words, "palaestra train vdn")
    assert (read.gamma, read.random_starts, read.hidden, read.options) == (0.25, False, (4, 2), ("players=1",))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gama = 0.5", r"no setting 'gama', did you mean 'gamma'\? \(there are: .*total_steps"),
        ("directory = '/'", "'directory' is no setting: give --directory on the command line"),
        ("overwrite = true", "'overwrite' is no setting"),
        ("env_id = 'os:path'", "env_id 'os:path' would import a module"),
        ("[gamma]\nx = 1", "'gamma' is a table: write settings as name = value"),
        ("gamma 0.5", "no TOML"),
    ],
)
def test_a_file_of_settings_that_cannot_be_is_refused_by_name(tmp_path: Path, text: str, message: str):
    (tmp_path / "a.toml").write_text(text)
    with pytest.raises(FileError, match=rf"a\.toml: {message}"):
        read_arguments(vdn.Args, ["--config", str(tmp_path / "a.toml")], "palaestra train vdn")


@pytest.mark.parametrize("file", sorted(palaestra_assets.path("settings").glob("*.toml")), ids=lambda file: file.stem)
def test_settings_that_come_with_the_package_are_those_of_the_method_that_they_name(file: Path):
    words = file.read_text().splitlines()[0].split(";")[0].split()
    assert words == ["#", "palaestra", "train", words[3], "--config", file.stem]
    (entry,) = entry_points(group="palaestra.baselines", name=words[3])
    read = read_arguments(entry.load().Args, ["--config", file.stem], "x")
    read.check()
    assert read != dataclasses.replace(entry.load().Args(), config=file.stem)


def test_a_name_that_is_no_file_of_settings_is_refused_with_the_near_one():
    with pytest.raises(FileError, match=r"no file 'qmix_5m_vs_6', did you mean 'qmix_5m_vs_6m'\? .*mappo_5m_vs_6m"):
        read_arguments(vdn.Args, ["--config", "qmix_5m_vs_6"], "palaestra train vdn")


# -- trackers and the picture ------------------------------------------------------------------------------------------


class Wandb(ModuleType):
    """Keeps what a run sends."""

    def __init__(self) -> None:
        super().__init__("wandb")
        self.runs: list[dict[str, Any]] = []

    def init(self, **given: Any) -> Any:
        self.runs.append({**given, "rows": [], "is_finished": False})
        run, kept = ModuleType("run"), self.runs[-1]
        vars(run).update(log=lambda row, step: kept["rows"].append({"steps": step, **row}))
        vars(run).update(finish=lambda: kept.update(is_finished=True))
        return run


def test_wandb_is_sent_the_numbers_of_the_file_and_a_resumed_run_sends_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "wandb", wandb := Wandb())
    args = args_of(tmp_path, track="wandb")
    with RunFolder(args, "mine") as run:
        run.record({"steps": 0, "score": 1 / 3, "updates": 2}, {"x": 1})
    with RunFolder(dataclasses.replace(args, resume=True), "mine") as run:
        run.record({"steps": 100, "score": 2e7 / 3, "updates": 7}, None)
    first, second = wandb.runs
    assert first["rows"] == read_rows(args.folder / LOG)[:1]
    assert second["rows"] == read_rows(args.folder / LOG)
    assert [run["is_finished"] for run in wandb.runs] == [True, True]
    assert first["config"] == args.settings


def test_a_tracker_that_is_not_installed_names_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    wanted = "--track wandb needs wandb, which is not installed: pip install wandb"
    with pytest.raises(ImportError, match=wanted), RunFolder(args_of(tmp_path, track="wandb"), "mine"):
        pass
    with RunFolder(args_of(tmp_path), "mine"):  # unlocked
        pass


@pytest.mark.check
@pytest.mark.skipif(importlib.util.find_spec("tensorboard") is None, reason="needs tensorboard")
def test_tensorboard_is_sent_the_numbers_of_the_file(tmp_path: Path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator  # type: ignore[import-not-found]

    rows = [{"steps": k, "score": k / 3} for k in (0, 7)]
    for sent in (rows[:1], rows):  # resumed
        with open_tracker("tensorboard", "mine", tmp_path, {"seed": 0}) as track:
            for row in sent:
                track(row)
    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    found = [(event.step, event.value) for event in events.Scalars("score")]
    assert found == [(0, 0.0), (7, pytest.approx(2.33333, abs=1e-7))]


@pytest.mark.check
def test_a_command_ends_with_a_picture_of_the_curve(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    pytest.importorskip("matplotlib")

    def train(args: RunArgs) -> Any:
        with RunFolder(args, "mine") as run:
            (args.folder / WEIGHTS).touch()
            run.record({"steps": 0, "score": 0.5, "cpu_s": 1.0}, {})
        return minimax_q.Report(args.folder / WEIGHTS, 0, run.rows)

    args, _ = run_command(RunArgs, "mine", "Mine.", ["--directory", str(tmp_path)], train)
    assert (args.folder / CURVE).read_bytes().startswith(b"\x89PNG")
    said = f"{args.folder / CURVE} shows the curve; {args.folder / BEST} is the policy of the best evaluation"
    assert said in capsys.readouterr().out
    draw_curves(tmp_path / "two.png", {name: [{"steps": 0, "a": 1.0}] for name in ("seed 0", "seed 1")}, "mine")
    assert (tmp_path / "two.png").stat().st_size > (args.folder / CURVE).stat().st_size


# -- team and opponent -------------------------------------------------------------------------------------------------


def test_the_default_team_and_opponent_are_those_of_the_game_where_it_has_no_others():
    def fitted(kind: Any, **given: Any) -> tuple[str, str]:
        args = kind(**given)
        args.fit_to_game()
        return args.team, args.opponent

    assert fitted(qmix.Args) == ("red", "builtin")
    assert fitted(qmix.Args, env_id="palaestra/TeamPong-v0") == ("red", "tracker")
    assert fitted(qmix.Args, env_id="palaestra/CartPole-v0") == ("cart", "")
    assert fitted(vdn.Args, env_id="palaestra/CartPole-v0") == ("cart", "")
    assert fitted(vdn.Args) == ("", "random")
    assert fitted(qmix.Args, env_id="palaestra/TeamPong-v0", opponent="chaser") == ("red", "chaser")
