"""The command that uses forged folders: the list is long, and what it counts as a failure is one."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from reliability import forged_models
from reliability.forged_folders import MODULE, Forgery
from reliability.forged_models import FORGERIES, UNSEEN
from reliability.mutated_files import FOREIGN, ILL_TOLD, OPENED, PLAYED, RAN_CODE, REFUSED, Watch, make_home

from palaestra.core.files import FileError

KIND = "flight"


def told(path: Path) -> None:
    raise FileError(f"{path / 'x.json'}: is wrong: give another")


def advises(path: Path) -> None:
    raise FileError(f"{path / 'x.json'}: pip install evil-package")


def quotes_a_raw_cause(path: Path) -> None:
    try:
        raise ValueError("\x1b[2J")
    except ValueError as error:
        raise FileError(f"{path / 'x.json'}: is wrong") from error


def names_no_file(path: Path) -> None:
    raise FileError("something is wrong")


def leaves_a_mark(path: Path) -> None:
    (path.parent / "canary").touch()
    told(path)


def opens_elsewhere(path: Path) -> None:
    (path.parents[1] / "elsewhere").read_text()
    told(path)


def lets_another_out(path: Path) -> None:
    raise KeyError("x")


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("forged")
    (root / "elsewhere").touch()
    (root / "scratch").mkdir()
    make_home(root / "scratch" / "home")
    return root / "scratch"


@pytest.fixture(scope="module")
def watch(scratch: Path) -> Watch:
    """One for all: its hook stays in the process."""
    return Watch(scratch / "home", scratch)


@pytest.mark.parametrize(
    ("use", "outcome"),
    [
        (told, REFUSED), (advises, ILL_TOLD), (quotes_a_raw_cause, ILL_TOLD), (names_no_file, ILL_TOLD),
        (leaves_a_mark, RAN_CODE), (opens_elsewhere, OPENED), (lets_another_out, FOREIGN), (lambda path: None, UNSEEN),
    ],
)  # fmt: skip
def test_outcomes_are_told_apart(
    use: Callable[[Path], None], outcome: str, scratch: Path, watch: Watch, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(forged_models.USES, KIND, use)
    canary = scratch / "canary"
    forgery = Forgery("x", KIND, lambda folder: None, "x.json")
    assert forged_models.outcome_of(forgery, scratch / "x", watch, canary)[0] == outcome
    canary.unlink(missing_ok=True)
    harmless = Forgery("x", KIND, lambda folder: None, "x.json", harmless=True)
    if outcome == UNSEEN:
        assert forged_models.outcome_of(harmless, scratch / "x", watch, canary)[0] == PLAYED


def test_the_list_is_as_long_as_the_pages_say():
    assert len(FORGERIES) == 305
    assert MODULE in forged_models.NEVER_IMPORTED


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork there")
def test_the_command_ends_with_0(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setenv("PYTHONPATH", "tests")
    assert forged_models.main(["--kinds", "embedder", "index"]) == 0
    assert "0 failed" in capsys.readouterr().out
