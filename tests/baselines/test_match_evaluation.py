"""Evaluation from both sides: whose wins count, and which player has which team."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("tyro")

from palaestra import registry
from palaestra.evaluation.matches import MATCH, MatchTable
from palaestra_baselines.common.training import BothSides, play_both_sides

PONG = "palaestra/TeamPong-v0"


def table(wins: int, losses: int, draws: int) -> MatchTable:
    results = np.zeros(wins + losses + draws, MATCH)
    results["outcome"] = [1] * wins + [-1] * losses + [0] * draws
    return MatchTable(PONG, "a", "b", registry.make_game(PONG)[0], results)


def test_wins_of_the_second_side_are_the_losses_in_its_table():
    both = BothSides(as_first=table(6, 1, 1), as_second=table(3, 4, 1))
    assert both.win_rates == (6 / 8, 4 / 8)
    assert both.win_rate == 10 / 16
    assert both.score == (6 + 0.5 + 4 + 0.5) / 16


def test_each_half_has_the_players_in_their_teams(monkeypatch: pytest.MonkeyPatch):
    calls: list[Any] = []
    monkeypatch.setattr(
        "palaestra_baselines.common.training.evaluate", lambda *given, **named: calls.append((*given, named))
    )
    play_both_sides("some", {"red": "own_red", "blue": "own_blue"}, "script", 21, seed=5, horizon=9)
    options = {"matches": 10, "seed": 5, "swap": False, "num_envs": 64, "horizon": 9}
    assert calls == [("some", "own_red", "script", options), ("some", "script", "own_blue", options)]


def test_the_stronger_script_wins_as_either_team():
    assert min(play_both_sides(PONG, "tracker", "random", 40).win_rates) > 0.8
    assert max(play_both_sides(PONG, "random", "tracker", 40).win_rates) < 0.2
