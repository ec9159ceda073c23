"""The command that spoils files: it tells the outcomes apart, and a handful of spoilt replays are no danger."""

from __future__ import annotations

import os
import pickle
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from reliability import mutated_files
from reliability.kinds import KINDS, Kind
from reliability.mutated_files import (
    CRASHED,
    FOREIGN,
    HUNG,
    ILL_TOLD,
    LARGE,
    OPENED,
    PLAYED,
    REFUSED,
    WROTE,
    Watch,
    contents_of,
    in_a_fork,
    make_home,
    most_memory,
    shares,
    spoil,
    use,
)
from reliability.mutations import ANY_FILE, Payload

from palaestra.core.files import FileError


def refuses(path: Path, honest: int) -> None:
    raise FileError(f"{path}: is no such file: give another")


def refuses_at_length(path: Path, honest: int) -> None:
    raise FileError(f"{path}: is no such file: give another" * 100)


def refuses_without_its_name(path: Path, honest: int) -> None:
    raise FileError("a file is wrong: give another")


def quotes_a_private_file(path: Path, honest: int) -> None:
    raise FileError(f"{path}: no number: {mutated_files.SECRET}")


def works_for_long(path: Path, honest: int) -> None:
    began = time.process_time()
    while time.process_time() - began < 0.3:
        pass


def takes_memory(path: Path, honest: int) -> None:
    np.ones(10_000_000)


def lets_another_error_out(path: Path, honest: int) -> None:
    raise KeyError("header")


def plays(path: Path, honest: int) -> None: ...


def dies(path: Path, honest: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize(
    ("what", "outcome"),
    [
        (refuses, REFUSED),
        (refuses_at_length, ILL_TOLD),
        (refuses_without_its_name, ILL_TOLD),
        (quotes_a_private_file, OPENED),
        (lets_another_error_out, FOREIGN),
        (works_for_long, HUNG),
        pytest.param(takes_memory, LARGE, marks=pytest.mark.skipif(not most_memory(), reason="no /proc there")),
        (plays, PLAYED),
    ],
)
def test_outcomes_are_told_apart(what, outcome: str, monkeypatch: pytest.MonkeyPatch):
    if outcome == HUNG:  # on a busy machine to write 80 MB takes that long too
        monkeypatch.setattr(mutated_files, "HANGS_S", 0.2)
    monkeypatch.setattr(mutated_files, "LARGE_BYTES", 50_000_000)
    kind = Kind("any", ".x", lambda folder: [], ANY_FILE, what)
    assert use(kind, Path("00001-0-cut.x"))[0] == outcome


def test_files_that_are_opened_and_written_are_seen(tmp_path: Path):
    home, allowed = tmp_path / "home", tmp_path / "kind"
    private = make_home(home)
    allowed.mkdir()
    watch = Watch(home, allowed)
    (allowed / "own").write_text("of the kind")
    assert watch.found is None
    assert contents_of(home) == private
    assert watch.found is not None
    assert watch.found[0] == OPENED
    watch.found = None
    (tmp_path / "elsewhere").write_text("written")
    assert watch.found == (WROTE, str(tmp_path / "elsewhere"))


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


@pytest.mark.check
def test_spoilt_replays_are_refused_or_played(tmp_path: Path):
    kind = KINDS["replay"]
    outcomes = [use(kind, path) for path in spoil(kind, tmp_path, 60, seed=5)]
    assert {outcome for outcome, _ in outcomes} <= {REFUSED, PLAYED}, outcomes
    assert sum(outcome == REFUSED for outcome, _ in outcomes) > 30
    assert not (tmp_path / mutated_files.MARKER).exists()


@pytest.mark.slow
def test_the_command_ends_with_0(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setenv("PYTHONPATH", "tests")  # its children stand in a folder of the user, who has no such folder
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
