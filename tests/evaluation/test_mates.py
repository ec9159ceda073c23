"""Matches in which the first player has one agent, and other players have its teammates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from games import two_team_homogeneous  # noqa: F401 (the module of an id below)

import palaestra
from palaestra import registry
from palaestra.core.compile.batch_loop import RANDOM
from palaestra.evaluation import evaluate, matches, tournament
from palaestra.replay import load, record, verify

pytestmark = pytest.mark.check

MELEE = "test/MeleeOfMates-v0"
palaestra.register(MELEE, "games.two_team_homogeneous:game", family="test")


def assigned(monkeypatch: pytest.MonkeyPatch, *players: Any, **keywords: Any) -> list[list[int]]:
    """Players of all agents by side, as numbers of scripts, of matches that are not played."""
    seen: list[list[int]] = []

    def no_matches(sim: Any, seeds: np.ndarray, *_: Any) -> np.ndarray:
        seen.append(sim.states["assigned_player"][0].tolist())
        return np.zeros(len(seeds), matches.MATCH)

    monkeypatch.setattr(matches, "play_seeds", no_matches)
    evaluate(MELEE, *players, matches=2, **keywords)
    return seen


def test_the_first_player_has_the_first_agent_of_its_team_on_either_side(monkeypatch: pytest.MonkeyPatch):
    game, _ = registry.make_game(MELEE)
    chaser, half = game.scripts.index("chaser"), len(game.teams["red"])
    beside = [chaser, *[RANDOM] * (half - 1)]
    assert assigned(monkeypatch, "chaser", "random", mates="random", swap=True) == [
        [*beside, *[RANDOM] * half],
        [*[RANDOM] * half, *beside],
    ]
    assert assigned(monkeypatch, "chaser", "random", swap=False) == [[chaser] * half + [RANDOM] * half]


def test_the_table_says_who_the_teammates_are():
    table = evaluate(MELEE, "chaser", "random", mates=["random", "chaser"], matches=2, horizon=5)
    assert (table.a, table.b) == ("chaser beside random or chaser", "random")


def test_mates_are_of_one_of_two_players_alone():
    with pytest.raises(TypeError, match=r"one of two players has teammates in evaluate\(id, a, b, mates="):
        tournament(MELEE, ["chaser", "random"], mates="random")
    with pytest.raises(ValueError, match=r"mates= are those of the first team in players="):
        record(MELEE, mates="random")


def test_matches_beside_others_are_recorded_and_have_pages(tmp_path: Path):
    pytest.importorskip("PIL")
    words: dict[str, Any] = {"mates": ["random", "chaser"], "horizon": 150}
    evaluate(MELEE, "chaser", "random", matches=8, swap=True, html=tmp_path, **words)
    files = sorted(tmp_path.glob("matches_*.npz"))
    assert len(files) == 2, "the pages of both sides are there: their matches went as in the table"
    assert all(verify(load(file)).ok for file in files)
