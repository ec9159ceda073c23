"""`make release` refuses what has not passed, and its notes are the section of the changelog. It is tried by itself."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import nightly
import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def release(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setattr(sys, "path", [*sys.path])
    spec = importlib.util.spec_from_file_location("release", ROOT / ".ci" / "release.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_commit_is_released_only_when_every_unit_has_passed_there(
    release: ModuleType, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(nightly, "units", lambda: {"a": [], "b": []})
    passed = {
        name: nightly.Result(result=how, commit="c", seconds=1.0) for name, how in (("a", "passed"), ("b", "skipped"))
    }
    monkeypatch.setattr(nightly, "read_results", lambda folder: passed)
    assert release.check_nightly("c") == "2 units of `make nightly` at c"
    with pytest.raises(SystemExit, match="files are changed: commit them"):
        release.check_nightly("c-dirty")
    with pytest.raises(SystemExit, match=r"2 of 2 units have not passed at d \(a, ...\): make nightly"):
        release.check_nightly("d")
    passed["b"]["result"] = "failed"
    with pytest.raises(SystemExit, match=r"1 of 2 units have not passed at c \(b"):
        release.check_nightly("c")


def test_the_notes_are_the_section_of_the_version_and_what_was_checked(release: ModuleType):
    text = release.notes("0.1.0", ["Python 3.12: works"])
    assert text.startswith("# palaestra 0.1.0\n\nThe first version.")
    assert text.endswith("## Checked\n\n* Python 3.12: works\n")
    with pytest.raises(SystemExit, match=r"CHANGELOG.md has no section \[9.9.9\]"):
        release.notes("9.9.9", [])


def test_the_interpreters_are_those_of_the_supported_versions(release: ModuleType):
    versions = release.pythons.wanted()
    assert versions[0] == "3.11"
    assert set(release.pythons.found()) <= set(versions)
