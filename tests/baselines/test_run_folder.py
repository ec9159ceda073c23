"""The folder of a run: lock, evaluations that are due, curve, checkpoint and resume."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("tyro")

import torch

from palaestra.core.files import FileError
from palaestra_baselines import fm3q, iql, mappo, minimax_q, vdn
from palaestra_baselines.common.policy_file import read_arrays, write_arrays
from palaestra_baselines.common.run_folder import LOG, RunArgs, RunFolder, read_rows
from palaestra_baselines.common.run_outputs import (
    CHECKPOINT,
    PREVIOUS,
    UnsealedError,
    key_path,
    load_checkpoint,
    save_checkpoint,
    user_key,
)


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
        run.record({"steps": 25, "score": 0.5}, {"weights": 1})
        with pytest.raises(RuntimeError, match=r"another process trains in .*seed_0 \(run.lock is locked\).*--seed"):
            RunFolder(args, "mine").__enter__()
        assert read_rows(args.folder / LOG)
        assert (args.folder / CHECKPOINT).exists()
    with RunFolder(args_of(tmp_path, seed=1), "mine"), RunFolder(args_of(tmp_path, resume=True), "mine"):
        pass


@pytest.mark.check
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


def test_a_run_whose_log_cannot_be_written_unlocks_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def full(text: str, stream: str) -> None:
        raise OSError("no space")

    monkeypatch.setattr("palaestra.cli.progress_bar.show", full)
    monkeypatch.setattr("palaestra.cli.progress_bar.FIRST_LINE_S", 0.0)
    run = RunFolder(args_of(tmp_path, quiet=False), "mine")
    with pytest.raises(OSError, match="no space"), run:
        pass
    with RunFolder(args_of(tmp_path), "mine"):
        pass


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_folder_with_results_is_refused_and_stays_as_it_is(tmp_path: Path):
    recorded(args_of(tmp_path), 0, 25)
    before = contents(tmp_path / "seed_0")
    wanted = (
        r"seed_0 holds .*\(checkpoint.previous.safetensors, checkpoint.safetensors, log.csv\): --resume .*--overwrite"
    )
    with pytest.raises(FileExistsError, match=wanted), RunFolder(args_of(tmp_path), "mine"):
        pass
    assert contents(tmp_path / "seed_0") == before


@pytest.mark.parametrize("name", ["last.safetensors", "log.csv", "done.json", "checkpoint.pickle"])
def test_each_kind_of_result_counts_but_no_other_file(tmp_path: Path, name: str):
    folder = tmp_path / "seed_0"
    folder.mkdir()
    (folder / "notes.txt").touch()
    with RunFolder(args_of(tmp_path), "mine"):
        pass
    (folder / name).touch()
    with pytest.raises(FileExistsError, match=name), RunFolder(args_of(tmp_path), "mine"):
        pass


def test_overwriting_deletes_the_results_when_the_new_run_has_its_first(tmp_path: Path):
    recorded(args_of(tmp_path), 0, 25)
    (tmp_path / "seed_0" / "last.safetensors").touch()
    before = contents(tmp_path / "seed_0")
    with RunFolder(args_of(tmp_path, overwrite=True), "mine") as run:
        assert (run.before, run.steps, run.rows) == (None, 0, [])
    assert contents(tmp_path / "seed_0") == before  # the new run failed before it had anything
    with RunFolder(args_of(tmp_path, overwrite=True), "mine") as run:
        assert run.is_due(0)
        assert not (tmp_path / "seed_0" / "last.safetensors").exists()
        run.record({"steps": 0, "score": 9.0}, {})
    assert sorted(contents(tmp_path / "seed_0")) == ["checkpoint.safetensors", "log.csv", "run.lock", "settings.toml"]
    assert [row["score"] for row in read_rows(tmp_path / "seed_0" / LOG)] == [9.0]


def test_nothing_to_resume_is_an_error(tmp_path: Path):
    wanted = r"there is nothing to resume: .*seed_0 has no checkpoint.safetensors: train without --resume"
    with pytest.raises(FileNotFoundError, match=wanted), RunFolder(args_of(tmp_path, resume=True), "mine"):
        pass
    (tmp_path / "seed_0" / "last.safetensors").touch()
    with (
        pytest.raises(FileNotFoundError, match=r"but last.safetensors \(--overwrite deletes them\)"),
        RunFolder(args_of(tmp_path, resume=True), "mine"),
    ):
        pass


def test_resume_and_overwrite_exclude_each_other(tmp_path: Path):
    with pytest.raises(ValueError, match="give one of them"):
        RunFolder(args_of(tmp_path, resume=True, overwrite=True), "mine").__enter__()


def test_a_run_resumes_with_its_own_settings_alone_and_every_difference_is_named(tmp_path: Path):
    args = vdn.Args(directory=tmp_path, quiet=True)
    with RunFolder(args, "vdn") as run:
        run.record({"steps": 5}, {"weights": 1})
    other = replace(args, resume=True, gamma=0.5, hidden=(64,), quiet=False)
    wanted = (
        r"seed_0.checkpoint.safetensors: the run was begun with other settings \(gamma: was 0.99, is 0.5, "
        r"hidden: was \[64, 64\], is \[64\]\).*only total_steps and evaluations may change"
    )
    with pytest.raises(FileError, match=wanted), RunFolder(other, "vdn"):
        pass
    with pytest.raises(FileError, match="it is a run of vdn, not of iql"), RunFolder(replace(args, resume=True), "iql"):
        pass
    with RunFolder(replace(args, resume=True, total_steps=3_000_000, evaluations=7), "vdn") as run:
        assert (run.steps, run.is_finished) == (5, False)


def test_a_finished_run_says_so_and_nothing_changes(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    recorded(args_of(tmp_path), 0, 104)
    before = contents(tmp_path / "seed_0")
    with RunFolder(args_of(tmp_path, resume=True, quiet=False), "mine") as run:
        assert run.is_finished
        assert due(run, 104) == []
    assert contents(tmp_path / "seed_0") == before
    (line,) = capsys.readouterr().out.splitlines()
    assert "the run is finished, 104 of 100 decisions: nothing is done (a larger --total-steps continues it)" in line


def test_a_run_that_ends_with_nothing_to_continue_from_is_finished_and_cannot_be_longer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    recorded(args_of(tmp_path), 0, 25)
    with RunFolder(args_of(tmp_path, resume=True), "mine") as run:
        run.record({"steps": 104, "score": 1.0}, None)
    kept = contents(tmp_path / "seed_0")
    assert sorted(kept) == ["checkpoint.safetensors", "log.csv", "run.lock", "settings.toml"]
    (tmp_path / "seed_0" / PREVIOUS).touch()  # the process was killed before it was deleted
    with RunFolder(args_of(tmp_path, resume=True, quiet=False), "mine") as run:
        assert (run.is_finished, run.before, run.rows[-1]) == (True, {}, {"steps": 104, "score": 1.0})
        assert due(run, 104) == []
    assert contents(tmp_path / "seed_0") == kept
    (line,) = capsys.readouterr().out.splitlines()
    assert line.endswith("the run is finished, 104 of 100 decisions: nothing is done")
    wanted = (
        r"seed_0.checkpoint\.safetensors: the run has ended after 104 decisions and keeps weights and curve alone: "
        r"--overwrite trains it anew with --total-steps 500, another --directory keeps both"
    )
    with pytest.raises(FileError, match=wanted), RunFolder(args_of(tmp_path, resume=True, total_steps=500), "mine"):
        pass
    assert contents(tmp_path / "seed_0") == kept


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"total_steps": -1}, "--total-steps must be greater than 0, got -1"),
        ({"evaluations": 0}, "--evaluations must be greater than 0, got 0"),
        ({"hidden": ()}, "--hidden takes at least one number"),
        ({"hidden": (64, 0)}, "--hidden must be greater than 0, got 64 0"),
        ({"gamma": float("nan")}, "--gamma must be between 0 and 1, got nan"),
        ({"epsilon": (1.0, 1.5)}, r"--epsilon must be between 0 and 1, got 1.0 1.5"),
        ({"learning_rate": (1e-3, float("inf"))}, "--learning-rate must be greater than 0"),
        ({"warmup_steps": -2}, "--warmup-steps must be not negative"),
        ({"seed": 1 << 31}, r"--seed is a whole number below 2\*\*31"),
        ({"seed": -1}, "--seed must be not negative"),
    ],
    ids=str,
)
def test_a_number_that_no_training_can_have_is_refused_by_name(tmp_path: Path, changes: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=message):
        vdn.train(vdn.Args(**{"directory": tmp_path, "quiet": True, **changes}))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("module", [fm3q, vdn, iql, minimax_q, mappo])
def test_the_default_numbers_are_fine(module: Any):
    module.Args().check()


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


def damaged(path: Path, place: int = -5) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


def test_the_last_two_checkpoints_are_kept_and_the_one_before_serves_a_damaged_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    args = args_of(tmp_path)
    recorded(args, 0, 25, 50)
    assert load_checkpoint(args.folder / PREVIOUS)["run"]["steps"] == 25
    damaged(args.folder / CHECKPOINT)
    with RunFolder(args_of(tmp_path, resume=True), "mine") as run:
        assert (run.steps, [row["steps"] for row in run.rows]) == (25, [0, 25])
        assert [row["steps"] for row in read_rows(args.folder / LOG)] == [0, 25]
        run.record({"steps": 51, "score": 0.0}, {})
    (line,) = capsys.readouterr().err.splitlines()
    assert "warning:" in line
    assert "checkpoint.safetensors: its checksum is wrong" in line
    assert "continues from the checkpoint before it" in line
    kept = [load_checkpoint(args.folder / name)["run"]["steps"] for name in (PREVIOUS, CHECKPOINT)]
    assert kept == [25, 51]  # the damaged one took no whole one's place


def test_a_process_that_ended_between_the_two_names_of_a_checkpoint_resumes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    args = args_of(tmp_path)
    recorded(args, 0)
    (args.folder / CHECKPOINT).rename(args.folder / PREVIOUS)
    with RunFolder(args_of(tmp_path, resume=True), "mine") as run:
        assert run.rows == [{"steps": 0, "score": 0.0}]
    assert "checkpoint.safetensors: is missing" in capsys.readouterr().err


def test_what_a_killed_process_had_not_finished_writing_is_removed(tmp_path: Path):
    recorded(args_of(tmp_path), 0)
    (tmp_path / "seed_0" / ".checkpoint.safetensors.0a1b.tmp").write_bytes(b"half")
    with RunFolder(args_of(tmp_path, resume=True), "mine"):
        assert sorted(contents(tmp_path / "seed_0")) == [
            "checkpoint.safetensors",
            "log.csv",
            "run.lock",
            "settings.toml",
        ]


def test_two_damaged_checkpoints_are_an_error_that_names_the_newest(tmp_path: Path):
    args = args_of(tmp_path)
    recorded(args, 0, 25)
    before = contents(args.folder)
    for name in (CHECKPOINT, PREVIOUS):
        damaged(args.folder / name)
    with (
        pytest.raises(FileError, match=r"seed_0.checkpoint\.safetensors: its checksum"),
        RunFolder(args_of(tmp_path, resume=True), "mine"),
    ):
        pass
    assert contents(args.folder)[LOG] == before[LOG]


def test_a_row_that_is_not_in_the_log_yet_comes_back_from_the_checkpoint(tmp_path: Path):
    args = args_of(tmp_path)
    recorded(args, 0, 25)
    whole = (args.folder / LOG).read_bytes()
    (args.folder / LOG).write_bytes(whole[:-12])
    with RunFolder(args_of(tmp_path, resume=True), "mine"):
        pass
    assert (args.folder / LOG).read_bytes() == whole


# -- seals -------------------------------------------------------------------------------------------------------------


def test_a_checkpoint_of_another_user_is_refused_unless_it_is_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    args = args_of(tmp_path)
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("XDG_STATE_HOME", str(tmp_path / "elsewhere"))
        elsewhere.setenv("LOCALAPPDATA", str(tmp_path / "elsewhere"))
        recorded(args, 0, 25)
    before = contents(args.folder)
    wanted = r"was not written by this user on this machine .*--trust-checkpoint; else train anew with --overwrite"
    with pytest.raises(UnsealedError, match=wanted), RunFolder(args_of(tmp_path, resume=True), "mine"):
        pass
    assert contents(args.folder) == before
    with RunFolder(args_of(tmp_path, resume=True, trust_checkpoint=True), "mine") as run:
        assert run.steps == 25


def test_an_evil_checkpoint_with_a_checksum_that_fits_is_refused(tmp_path: Path):
    path = tmp_path / "a.safetensors"
    save_checkpoint(path, {"steps": 1, "states": np.zeros(4)})
    arrays, metadata = read_arrays(path)
    write_arrays(path, {**arrays, "0": np.full(4, 1e9)}, metadata)
    with pytest.raises(UnsealedError, match="a made-up checkpoint can run code"):
        load_checkpoint(path)
    write_arrays(path, arrays, {"state": metadata["state"]})
    with pytest.raises(UnsealedError):
        load_checkpoint(path)
    write_arrays(path, arrays, {"seal": metadata["seal"]})
    with pytest.raises(FileError, match=r"no checkpoint \(metadata 'state' is missing\)"):
        load_checkpoint(path)


@pytest.mark.parametrize("state", ["[" * 100_000, "{}", '{"array": "7"}', '{"dict": [1]}', "nothing"])
def test_a_trusted_file_that_is_no_checkpoint_is_an_error_of_the_file(tmp_path: Path, state: str):
    path = tmp_path / "a.safetensors"
    write_arrays(path, {}, {"state": state})
    with pytest.raises(FileError, match=r"a\.safetensors: no checkpoint"):
        load_checkpoint(path, trusted=True)


def test_a_checkpoint_that_does_not_fit_the_training_is_an_error_of_the_file(tmp_path: Path):
    (tmp_path / "seed_0").mkdir()
    save_checkpoint(tmp_path / "seed_0" / CHECKPOINT, {"weights": np.zeros(3)})
    with (
        pytest.raises(FileError, match=r"checkpoint\.safetensors: has no 'run'"),
        RunFolder(args_of(tmp_path, resume=True), "mine"),
    ):
        pass


@pytest.mark.skipif(os.name == "nt", reason="file modes of POSIX")
def test_the_key_is_this_users_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    key = user_key()
    assert user_key() == key
    assert key_path().stat().st_mode & 0o777 == 0o600
    assert [path.name for path in key_path().parent.iterdir()] == [key_path().name]
    key_path().chmod(0o644)
    with pytest.raises(OSError, match="others can read it: delete it"):
        user_key()
    key_path().chmod(0o600)
    key_path().write_bytes(b"short")
    with pytest.raises(OSError, match="5 bytes instead of 32"):
        user_key()


def test_without_a_key_a_run_says_that_it_cannot_be_resumed_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "file").touch()
    for name in ("XDG_STATE_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(tmp_path / "file"))
    recorded(args_of(tmp_path), 0)
    assert "cannot be sealed" in capsys.readouterr().err
    with pytest.raises(UnsealedError), RunFolder(args_of(tmp_path, resume=True), "mine"):
        pass
    with RunFolder(args_of(tmp_path, resume=True, trust_checkpoint=True), "mine") as run:
        assert run.steps == 0
