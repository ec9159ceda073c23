"""The figure of MaskablePPO on ConcertDuel, with runs of a second."""

from __future__ import annotations

import pytest

pytest.importorskip("sb3_contrib")
pytest.importorskip("tyro")
pytest.importorskip("matplotlib")

import learn
from learning import concert_figures
from learning.concert_figures import ARMS, LANES, TENTHS
from learning.drawing import read_table
from learning.figures import FigureArgs

pytestmark = pytest.mark.slow


def test_the_first_hour_has_a_row_for_each_tenth_of_each_seed(
    figure_args: FigureArgs, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(concert_figures, "STEPS", 2 * LANES * concert_figures.ARGUMENTS["n_steps"])
    monkeypatch.setattr(concert_figures, "TEST_MATCHES", 2)
    monkeypatch.setattr(concert_figures, "TESTS", ("random",))  # each script compiles more
    monkeypatch.setattr(concert_figures, "OTHERS", ("hold",))
    concert_figures.first_hour(figure_args)
    rows = read_table(figure_args.figures / "concert_first_hour.csv")
    assert [(row["arm"], row["seed"]) for row in rows] == [
        (arm, seed) for arm in ARMS for seed in ("0", "1") for _ in range(TENTHS)
    ]
    assert {float(row["wins"]) + float(row["losses"]) <= 1.0 for row in rows} == {True}
    results = read_table(figure_args.figures / "concert_first_hour_results.csv")
    assert len(results) == 2 * len(ARMS) + 1
    assert (figure_args.figures / "concert_first_hour.png").read_bytes().startswith(b"\x89PNG")
    assert "at most 600: holds" in capsys.readouterr().out


def test_wins_and_losses_are_those_of_the_player(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(concert_figures, "TEST_MATCHES", 32)
    monkeypatch.setattr(concert_figures, "TESTS", ("hold",))
    (random,) = concert_figures.result_rows("random", "", "random")
    assert (random["player"], random["opponent"]) == ("random", "hold")
    assert random["wins"] > 0.7
    assert random["losses"] < 0.2
    assert random["reward"] > 0.4


def test_a_bar_is_held_or_missed_by_each_seed():
    row = {"player": "dict", "seed": 0, "opponent": "random", "wins": 0.69, "low": 0.6, "high": 0.8}
    more = {"losses": 0.1, "reward": 0.5, "cpu_s": 601.0}
    missed, held = concert_figures.result_lines([{**row, **more}, {**row, **more, "wins": 0.71, "cpu_s": 599.0}])
    assert missed.count("MISSED") == 2
    assert held.count("holds") == 2


def test_other_players_are_asked_for_nothing():
    row = {"player": "hold", "seed": "", "opponent": "random", "wins": 0.0, "low": 0.0, "high": 0.1}
    (line,) = concert_figures.result_lines([{**row, "losses": 0.9, "reward": -0.7}])
    assert "MISSED" not in line


def test_the_figure_has_a_picture():
    assert "concert_first_hour" in learn.FIGURES
    assert "concert_first_hour" in learn.PICTURES
