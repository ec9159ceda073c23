"""The nightly program runs a unit once a commit, and says what failed."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import nightly

PASSES, FAILS, EMPTY = ([sys.executable, "-c", f"raise SystemExit({status})"] for status in (0, 1, nightly.NO_TESTS))
SKIPS = [sys.executable, "-c", "print('3 skipped, 2 deselected in 0.1s')"]


def played(
    folder: Path, units: Mapping[str, Sequence[str]], commit: str = "a", minutes: float = 60.0
) -> dict[str, str]:
    """Results of a night."""
    night = nightly.Night(folder, commit)
    night.run_all(units, 2, minutes)
    return {name: result["result"] for name, result in night.results.items()}


def test_a_unit_passes_fails_or_has_nothing_to_run(tmp_path: Path):
    units = {"good": PASSES, "bad": FAILS, "empty": EMPTY, "needs/a.package": SKIPS}
    results = played(tmp_path, units)
    assert results == {"good": "passed", "bad": "failed", "empty": "skipped", "needs/a.package": "skipped"}
    rows = nightly.table([*units, "later"], nightly.read_results(tmp_path)).splitlines()
    assert rows[3].split()[0] == "not"
    assert rows[4].split()[:2] == ["failed", "a"]
    assert rows[-1] == "1 passed, 2 skipped, 1 not run, 1 failed"


def test_what_has_passed_at_a_commit_is_not_run_again_and_what_failed_is(tmp_path: Path):
    assert played(tmp_path, {"x": PASSES, "y": FAILS}) == {"x": "passed", "y": "failed"}
    assert played(tmp_path, {"x": FAILS, "y": PASSES}) == {"x": "passed", "y": "passed"}
    assert played(tmp_path, {"x": FAILS}, commit="b")["x"] == "failed"


def test_with_changed_files_nothing_counts_as_passed(tmp_path: Path):
    assert played(tmp_path, {"x": PASSES}, commit="a-dirty") == {"x": "passed"}
    assert played(tmp_path, {"x": FAILS}, commit="a-dirty") == {"x": "failed"}


def test_no_unit_is_begun_when_time_is_up(tmp_path: Path):
    assert nightly.Night(tmp_path, "a").run_all({"x": PASSES}, 1, minutes=0.0) == ["x"]
    assert nightly.read_results(tmp_path) == {}


def test_units_have_all_ids_all_lists_of_mutations_and_all_libraries():
    units = nightly.units()
    kinds = {name.partition("/")[0] for name in units}
    assert kinds == {"tests", "full", "mutations", "reliability", "ray", "peers"}
    assert "full/palaestra/CartPole-v0" in units
    assert "tests/reliability/test_interrupts.py" in units
    scripts = {command[1] for command in units.values() if command[1].endswith(".py")}
    assert len(scripts) > 8
    assert all(Path(script).exists() for script in scripts)
