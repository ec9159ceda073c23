"""The command that spoils files: it tells the outcomes apart, and a handful of spoilt replays are no danger."""

from __future__ import annotations

import os
import pickle
import signal
from pathlib import Path

import numpy as np
import pytest
from reliability import mutated_files
from reliability.kinds import KINDS, Kind
from reliability.mutated_files import CRASHED, FOREIGN, PLAYED, REFUSED, in_a_fork, shares, spoil, use
from reliability.mutations import ANY_FILE, Payload

from palaestra.core.files import FileError


def refuses(path: Path, honest: int) -> None:
    raise FileError(f"{path}: is no such file: give another")


def refuses_in_two_lines(path: Path, honest: int) -> None:
    raise FileError(f"{path}: is no such file\ngive another")


def lets_another_error_out(path: Path, honest: int) -> None:
    raise KeyError("header")


def plays(path: Path, honest: int) -> None: ...


def dies(path: Path, honest: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize(
    ("what", "outcome"),
    [(refuses, REFUSED), (refuses_in_two_lines, FOREIGN), (lets_another_error_out, FOREIGN), (plays, PLAYED)],
)
def test_outcomes_are_told_apart(what, outcome: str):
    kind = Kind("any", ".x", lambda folder: [], ANY_FILE, what)
    assert use(kind, Path("00001-0-cut.x"))[0] == outcome


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork there")
def test_a_process_that_dies_is_a_crash():
    kind = Kind("any", ".x", lambda folder: [], ANY_FILE, dies)
    assert in_a_fork(kind, Path("00001-0-cut.x"))[0] == CRASHED


def test_a_payload_leaves_its_mark(tmp_path: Path):
    pickle.loads(pickle.dumps(Payload(tmp_path / "marker"))).close()
    assert (tmp_path / "marker").exists()


def test_all_files_are_of_some_kind():
    counts = shares(list(KINDS), 3000)
    assert abs(sum(counts.values()) - 3000) <= len(counts)
    assert counts["replay"] == max(counts.values())


def test_spoilt_replays_are_refused_or_played(tmp_path: Path):
    kind = KINDS["replay"]
    outcomes = [use(kind, path) for path in spoil(kind, tmp_path, 60, seed=5)]
    assert {outcome for outcome, _ in outcomes} <= {REFUSED, PLAYED}, outcomes
    assert sum(outcome == REFUSED for outcome, _ in outcomes) > 30
    assert not (tmp_path / mutated_files.MARKER).exists()


@pytest.mark.slow
def test_the_command_ends_with_0(capsys: pytest.CaptureFixture[str]):
    assert mutated_files.main(["--files", "300", "--kinds", "replay", "policy", "sb3", "pool", "checkpoint"]) == 0
    assert "crashed" in capsys.readouterr().out


def test_draws_repeat(tmp_path: Path):
    kind = Kind("any", ".x", lambda folder: [made(folder)], ANY_FILE, plays)
    files = [[path.read_bytes() for path in spoil(kind, tmp_path / name, 20, seed=1)] for name in "ab"]
    same = [a == b for a, b in zip(*files, strict=True)]
    assert np.mean(same) > 0.8, "all but the pickles, which name a folder"


def made(folder: Path) -> Path:
    path = folder / "file.x"
    path.write_bytes(bytes(range(256)) * 20)
    return path
