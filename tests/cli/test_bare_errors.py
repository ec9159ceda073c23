"""Errors of Python itself on the command line, and the current folder as a place of modules."""

import re
import sys
from pathlib import Path

import pytest


def test_an_error_that_says_no_more_than_a_key_is_given_its_place(run, refused, monkeypatch: pytest.MonkeyPatch):
    def lacking(args):
        return {}["torque"]

    monkeypatch.setattr("palaestra.cli.listing.run", lacking)
    said = refused(run("list"))
    assert re.search(r"KeyError: torque \(test_bare_errors.py line \d+, in lacking; --debug shows more\)", said)


@pytest.mark.parametrize(
    ("words", "trouble"),
    [
        ("replay none.npz", "none.npz: there is no such file or folder: check the path"),
        ("replay here.npz/none.npz", "here.npz/none.npz: a file is where the path needs a folder"),
        ("replay .", "a folder"),
        ("eval CartPole --a none.zip", "none.zip: there is no such file"),
        ("eval CartPole --a none.safetensors", "none.safetensors: there is no such file"),
    ],
)
def test_a_path_that_cannot_be_used_is_named_with_the_reason_in_words(
    words: str, trouble: str, run, refused, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.chdir(tmp_path)
    Path("here.npz").touch()
    said = refused(run(*words.split()))
    assert trouble in said
    assert "Errno" not in said


def test_a_path_that_this_user_may_not_open_is_named(run, refused, monkeypatch: pytest.MonkeyPatch):
    def forbidden(args):
        raise PermissionError(13, "Permission denied", Path("secret.npz"))

    monkeypatch.setattr("palaestra.cli.replay.run", forbidden)
    assert "secret.npz: this user may not read or write it" in refused(run("replay", "secret.npz"))


@pytest.mark.parametrize("words", [["replay"], ["serve"], ["list", "--as"], ["no such command"]])
def test_a_name_never_reaches_the_terminal_raw(words: list[str], run, tmp_path: Path):
    hostile = tmp_path / "a\x1b[2J\x9b\u202e\r\n.npz"
    for path in (hostile, hostile.with_suffix(".none")):
        hostile.touch()
        said = run(*words, path).err.removesuffix("\n")
        assert said
        assert said.isprintable()


def test_the_current_folder_is_looked_into_once(run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    (tmp_path / "rules_here.py").write_text("raise NameError('no rules yet')\n")
    for _ in range(2):
        assert "no rules yet (rules_here.py line 1, in <module>" in run("info", "rules_here:mine/Here-v0").err
    assert sys.path.count(str(tmp_path)) == 1
