"""The folder of a run: lock, evaluations that are due, curve, checkpoint and resume."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("tyro")

import torch

from palaestra_baselines.common.checkpoints import load_checkpoint, save_checkpoint
from palaestra_baselines.common.curves import read_rows
from palaestra_baselines.common.run_folder import CHECKPOINT, LOG, RunArgs, RunFolder


def args_of(folder: Path, **changes: Any) -> RunArgs:
    return RunArgs(**{"directory": folder, "total_steps": 100, "evaluations": 4, "quiet": True, **changes})


def recorded(args: RunArgs, *steps: int) -> RunFolder:
    with RunFolder(args, "mine") as run:
        for number in steps:
            run.record({"steps": number, "score": number / 7}, {"weights": np.full(2, number)})
    return run


# -- lock --------------------------------------------------------------------------------------------------------------


def test_a_second_run_in_the_same_folder_is_refused_and_changes_nothing(tmp_path: Path):
    args = args_of(tmp_path)
    with RunFolder(args, "mine") as run:
        run.record({"steps": 25, "score": 0.5}, {})
        with pytest.raises(RuntimeError, match=r"another process trains in .*seed_0 \(run.lock is locked\).*--seed"):
            RunFolder(args, "mine").__enter__()
        assert read_rows(args.folder / LOG)
        assert (args.folder / CHECKPOINT).exists()
    with RunFolder(args_of(tmp_path, seed=1), "mine"), RunFolder(args, "mine"):
        pass


def test_another_process_is_refused_until_the_first_one_has_ended(tmp_path: Path):
    holder = (
        "import sys; from pathlib import Path; from palaestra_baselines.common.run_folder import lock;"
        "file = lock(Path(sys.argv[1])); print('locked', flush=True); sys.stdin.read()"
    )
    args = args_of(tmp_path)
    args.folder.mkdir(parents=True)
    roots = f"import sys; sys.path[:0] = {[str(Path(root)) for root in sys.path if root]}; "
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", roots + holder, str(args.folder / "run.lock")], **pipes) as process:  # type: ignore[call-overload]
        assert process.stdout is not None
        assert process.stdout.readline() == "locked\n"
        with pytest.raises(RuntimeError, match="another process trains"), RunFolder(args, "mine"):
            pass
        process.kill()
    with RunFolder(args, "mine"):
        pass


# -- evaluations -------------------------------------------------------------------------------------------------------


def due(run: RunFolder, *steps: int) -> list[int]:
    return [number for number in steps if run.is_due(number)]


def test_an_evaluation_is_due_at_the_start_and_after_each_share_of_the_training(tmp_path: Path):
    with RunFolder(args_of(tmp_path), "mine") as run:
        assert due(run, 0, 0, 24, 25, 26, 60, 74, 75, 99, 130, 160) == [0, 25, 60, 75, 130]
    with RunFolder(args_of(tmp_path), "mine", evaluates_at_start=False) as run:
        assert due(run, 0, 24, 26) == [26]


def test_the_last_evaluation_is_at_the_end_where_the_shares_are_no_whole_numbers(tmp_path: Path):
    with RunFolder(args_of(tmp_path, total_steps=10, evaluations=3), "mine") as run:
        assert due(run, *range(11)) == [0, 4, 7, 10]


# -- resume ------------------------------------------------------------------------------------------------------------


def test_a_resumed_run_has_the_state_and_the_curve_up_to_its_checkpoint(tmp_path: Path):
    args = args_of(tmp_path)
    recorded(args, 0, 25, 50)
    with (args.folder / LOG).open("a") as file:
        file.write("75,0.5\n")  # the process ended between the row and its checkpoint
    with RunFolder(args_of(tmp_path, resume=True), "mine") as run:
        assert run.steps == 50
        assert run.before is not None
        assert run.before["weights"].tolist() == [50, 50]
        assert [row["steps"] for row in run.rows] == [0, 25, 50]
        assert due(run, 50, 74, 75) == [75]
        run.record({"steps": 75, "score": 1.0}, {})
    assert [row["steps"] for row in read_rows(args.folder / LOG)] == [0, 25, 50, 75]
    assert [row["steps"] for row in run.rows] == [0, 25, 50, 75]


def test_a_new_run_forgets_what_was_there(tmp_path: Path):
    recorded(args_of(tmp_path), 0, 25)
    with RunFolder(args_of(tmp_path), "mine") as run:
        assert (run.before, run.steps, run.rows) == (None, 0, [])
        assert not (run.args.folder / CHECKPOINT).exists()
    with RunFolder(args_of(tmp_path, resume=True), "mine") as run:
        assert run.before is None


def test_settings_are_the_arguments_that_decide_the_result(tmp_path: Path):
    assert args_of(tmp_path, seed=3).settings == {"seed": 3, "total_steps": 100, "evaluations": 4}


# -- checkpoints -------------------------------------------------------------------------------------------------------


def test_a_checkpoint_comes_back_bitwise_with_its_types(tmp_path: Path):
    rng = np.random.default_rng(3)
    rng.random(7)
    adam = torch.optim.Adam([torch.nn.Parameter(torch.ones(2, 2))])
    adam.param_groups[0]["params"][0].grad = torch.ones(2, 2)
    adam.step()
    arrays = {
        "cut": np.arange(12.0).reshape(3, 4)[:, ::2],
        "yes": np.array([True, False]),
        "seed": np.array([2**63], np.uint64),
    }
    state: dict[Any, Any] = {
        "rng": rng.bit_generator.state,
        "adam": adam.state_dict(),
        "arrays": arrays,
        7: [None, 1.5, "text", True],
    }
    save_checkpoint(tmp_path / "a.safetensors", state)
    back: dict[Any, Any] = load_checkpoint(tmp_path / "a.safetensors")
    assert [p.name for p in tmp_path.iterdir()] == ["a.safetensors"]
    for name, array in arrays.items():
        np.testing.assert_array_equal(back["arrays"][name], array)
        assert back["arrays"][name].dtype == array.dtype
    assert back[7] == [None, 1.5, "text", True]
    other = np.random.default_rng(0)
    other.bit_generator.state = back["rng"]
    assert other.random() == rng.random()
    step = back["adam"]["state"][0]["step"]
    assert isinstance(step, torch.Tensor)
    assert (step.item(), step.shape) == (1.0, ())
    torch.testing.assert_close(back["adam"]["state"][0]["exp_avg"], adam.state_dict()["state"][0]["exp_avg"])


def test_a_checkpoint_of_something_else_is_refused_and_the_last_one_stays(tmp_path: Path):
    path = tmp_path / "a.safetensors"
    save_checkpoint(path, {"steps": 1})
    for wrong in (object(), np.zeros(2, [("x", "f8")]), np.array([None])):
        with pytest.raises(TypeError, match="a checkpoint holds arrays, numbers and texts, not"):
            save_checkpoint(path, {"steps": 2, "wrong": wrong})
    assert load_checkpoint(path) == {"steps": 1}
