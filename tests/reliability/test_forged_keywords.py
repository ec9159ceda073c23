"""The command that forges keywords: a handful of each kind is refused, and a file that reaches a canary is seen."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from reliability import forged_keywords
from reliability.forged_keywords import CANARY, KINDS, Forgery, load_engines, run_all
from reliability.mutated_files import OPENED, PLAYED, REFUSED

from palaestra.core.files import FileError


@pytest.mark.slow  # imports every factory
def test_a_few_forged_files_of_each_kind_reach_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for folder in ("honest", "forged"):
        (tmp_path / folder).mkdir()
    for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(tmp_path / "forged"))
    load_engines()
    kinds = [kind for kind in KINDS if kind != "control"]
    found = [*run_all(["control"], tmp_path / "honest"), *run_all(kinds, tmp_path / "forged", share=0.01)]
    assert {forgery.kind for forgery, _, _ in found} == {"replay", "pool", "policy", "run folder"}
    assert {outcome for _, outcome, _ in found} <= {REFUSED, PLAYED}, found


def imports(path: Path) -> None:
    importlib.import_module(CANARY)


def opens(path: Path) -> None:
    Path(f"{CANARY}.txt").read_bytes()


def names_nothing(path: Path) -> None:
    raise FileError("no")


def refuses(path: Path) -> None:
    raise FileError(f"{path}: no")


def fails(path: Path) -> None:
    raise TypeError


@pytest.mark.parametrize(
    ("use", "outcome"),
    [(imports, "ran code"), (opens, OPENED), (names_nothing, "ill told"), (refuses, REFUSED), (fails, "foreign error")],
)
def test_a_file_that_reaches_a_canary_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, use: object, outcome: str
):
    forgery = Forgery("toy", "a keyword", 1, ".json", lambda path: path.write_text("{}"), use)  # type: ignore[arg-type]
    monkeypatch.setitem(forged_keywords.KINDS, "toy", lambda honest: iter([forgery]))
    assert [seen for _, seen, _ in run_all(["toy"], tmp_path)] == [outcome]
