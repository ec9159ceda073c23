"""The command ``palaestra data``."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from palaestra.cli import main
from palaestra.cli.data_command import tasks_of
from palaestra.data import read_manifest

pytest.importorskip("minari", reason='needs the extra "palaestra[data]"')
pytestmark = pytest.mark.usefixtures("rules_do_not_change")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]):
    def run(*words: object) -> SimpleNamespace:
        code = main(["data", *map(str, words)])
        printed = capsys.readouterr()
        return SimpleNamespace(code=code, out=printed.out, err=printed.err.splitlines()[-1:])

    return run


@pytest.mark.parametrize(
    ("text", "tasks"), [(None, None), ("0-3", [0, 1, 2, 3]), ("0,2,5-6", [0, 2, 5, 6]), ("train", "train"), ("7", [7])]
)
def test_tasks_are_numbers_spans_or_a_word(text: str | None, tasks: Any):
    assert tasks_of(text) == tasks


@pytest.mark.parametrize("text", ["3-1", "0-99999999"])
def test_a_span_that_goes_down_or_too_far_is_refused(text: str):
    with pytest.raises(ValueError, match="--tasks takes spans that go up"):
        tasks_of(text)


def test_make_records_what_its_options_say(run: Any, tmp_path: Path):
    path = tmp_path / "walk-v0"
    options = (
        "--policy",
        "right",
        "--episodes",
        2,
        "--seed",
        5,
        "--tasks",
        "1-2",
        "--info",
        "task",
        "--set",
        "compiled=False",
    )
    made = run("make", "tests/Targets-v0", *options, "--out", path, "--json")
    manifest = read_manifest(path)
    assert (made.code, json.loads(made.out)["episodes"], json.loads(made.out)["tasks"]) == (0, 4, 2)
    assert (manifest.seed, manifest.task_list, manifest.players) == (5, [1, 2], {"walker": "right"})
    assert "infos/task" in manifest.arrays


def test_list_names_each_data_set_and_what_is_wrong_with_one(run: Any, recorded: Path, tmp_path: Path):
    (tmp_path / "good-v0").symlink_to(recorded)
    (tmp_path / "bad-v0").mkdir()
    (tmp_path / "bad-v0" / "palaestra.json").write_text("{")
    found = run("list", tmp_path)
    assert found.code == 0
    assert "good-v0  tests/Targets-v0  random  12 " in found.out
    assert "bad-v0/palaestra.json: is damaged or cut off" in found.out


def test_verify_reads_all_and_says_so(run: Any, recorded: Path):
    found = run("verify", recorded, "--json")
    assert (found.code, json.loads(found.out)["verified"]) == (0, True)
    assert "verified: all episodes are as they were recorded" in run("verify", recorded).out


def test_verify_refuses_in_one_line_and_ends_with_1(run: Any, spoilt: Any):
    path = spoilt()
    (path / "data" / "main_data.hdf5").write_bytes(b"")
    found = run("verify", path)
    assert (found.code, found.out) == (1, "")
    assert found.err[0].startswith(f"palaestra: {path}/data/main_data.hdf5: is cut off: 0 bytes of")


def test_show_prints_the_manifest_without_reading_the_data(run: Any, spoilt: Any):
    path = spoilt()
    (path / "data" / "main_data.hdf5").unlink()
    found = run("show", path)
    assert found.code == 0
    assert "targets-v0: tests/Targets-v0\n  12 episodes" in found.out
    assert f"rules {read_manifest(path).rules}" in found.out


def test_without_a_verb_the_command_says_which_there_are(run: Any):
    assert run().code == 2
