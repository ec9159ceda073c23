"""Progress of long work, in a terminal and elsewhere."""

from __future__ import annotations

import errno
import io
import os
import sys

import pytest

from palaestra.cli import progress_bar
from palaestra.cli.progress_bar import Progress, clock, short


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which stands still."""
    now = [0.0]
    monkeypatch.setattr(progress_bar.time, "monotonic", lambda: now[0])
    monkeypatch.delenv("JPY_PARENT_PID", raising=False)
    monkeypatch.delenv("MPLBACKEND", raising=False)
    return now


def test_without_a_terminal_it_is_a_line_now_and_then(capsys: pytest.CaptureFixture[str], now: list[float]):
    with Progress("matches") as report_progress:
        for done in range(0, 14):
            now[0] += 1.0
            report_progress(done, 14, "CartPole")
    assert capsys.readouterr().err.splitlines() == [
        "CartPole: matches 1/14  matches/s 1  left 0:13",
        "CartPole: matches 11/14  matches/s 1  left 0:03",
        "CartPole: matches 13/14  matches/s 1  left 0:01",
    ]


@pytest.mark.parametrize(
    ("name", "value"), [("JPY_PARENT_PID", "7"), ("MPLBACKEND", "module://matplotlib_inline.backend_inline")]
)
def test_in_a_notebook_lines_are_few_and_none_is_live(
    name: str, value: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, now: list[float]
):
    monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)  # as for a command behind "!"
    with Progress("steps", 600, stream="stdout") as progress:
        for done in range(1, 500):
            now[0] += 1.0
            progress.update(done)
    printed = capsys.readouterr().out
    assert [line.split()[1] for line in printed.splitlines()] == ["60/600", "120/600", "240/600", "480/600", "499/600"]
    assert "\x1b" not in printed


def test_short_work_in_a_notebook_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, now: list[float]
):
    monkeypatch.setenv("JPY_PARENT_PID", "7")
    with Progress("steps", 50) as progress:
        for done in range(1, 51):
            now[0] += 1.0
            progress.update(done)
    assert capsys.readouterr().err == "steps 50/50  steps/s 1  left 0:00\n"


def test_what_is_said_in_a_notebook_comes_with_the_next_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, now: list[float]
):
    monkeypatch.setenv("JPY_PARENT_PID", "7")
    with Progress("steps", 90, stream="stdout") as progress:
        progress.say("first")
        now[0] += 30.0
        progress.update(30)
        assert capsys.readouterr().out == ""
        now[0] += 30.0
        progress.update(60)
        assert capsys.readouterr().out == "first\nsteps 60/90  steps/s 1  left 0:30\n"
        progress.say("last")
        progress.update(90)
    assert capsys.readouterr().out.startswith("last\nsteps 90/90 ")
    with Progress("steps", 1, stream="stdout") as progress:
        progress.say("quick")
    assert capsys.readouterr().out == "quick\n"


def test_short_work_says_nothing(capsys: pytest.CaptureFixture[str], now: list[float]):
    with Progress("steps", 10) as progress:
        now[0] += 1.9
        progress.update(10)
    assert capsys.readouterr() == ("", "")


def test_what_happens_once_before_the_first_part_is_not_in_the_estimate(
    capsys: pytest.CaptureFixture[str], now: list[float]
):
    with Progress("matches") as report_progress:
        for now[0], done in ((300.0, 1), (301.0, 2), (311.0, 12)):
            report_progress(done, 16)
    assert capsys.readouterr().err.splitlines() == [
        "matches 1/16  matches/s 0  left ?",
        "matches 12/16  matches/s 1  left 0:04",
    ]


def test_a_training_shows_its_figures_on_stdout(capsys: pytest.CaptureFixture[str], now: list[float]):
    with Progress("steps", 2000, 500, title="training", stream="stdout") as progress:
        now[0] += 10.0
        progress.update(1000, reward=0.123456)
        progress.say("hello")
    line = "training: steps 1k/2k  steps/s 50  left 0:20  reward 0.123"
    assert capsys.readouterr() == (f"{line}\nhello\n", "")


def test_quiet_work_says_nothing(capsys: pytest.CaptureFixture[str], now: list[float]):
    with Progress("steps", 10, quiet=True) as progress:
        now[0] += 10.0
        progress.update(5)
        progress.say("unheard")
    assert capsys.readouterr() == ("", "")


def test_in_a_terminal_it_is_a_live_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("rich.live")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with Progress("matches") as report_progress:
        report_progress(1, 2, "CartPole")
    shown = capsys.readouterr().err
    assert "1/2" in shown
    assert "CartPole" in shown
    assert "matches 1/2" not in shown  # no plain line


class FullLog(io.StringIO):
    """Output that goes to a log on a full disk."""

    name = "training.log"

    def flush(self) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_log_on_a_full_disk_is_named_and_hides_no_other_error(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sys.stdout", FullLog())
    monkeypatch.setattr(progress_bar, "FIRST_LINE_S", 0.0)
    make = lambda: Progress("steps", 10, stream="stdout")  # noqa: E731
    with pytest.raises(OSError, match=r"No space left on device: 'training\.log'"), make():
        pass
    with pytest.raises(OSError, match=r"training\.log"), make() as progress:
        progress.say("hello")
    with pytest.raises(KeyError, match="first"), make():
        raise KeyError("first")


def test_numbers_and_times_are_short():
    assert [short(n) for n in (7, 1234, 2_500_000, 3e9)] == ["7", "1.23k", "2.5M", "3G"]
    assert [clock(s) for s in (5, 65, 3725, float("nan"))] == ["0:05", "1:05", "1:02:05", "?"]
