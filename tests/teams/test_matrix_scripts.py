"""The effect of the strength of the scripts of the matrix games."""

from itertools import pairwise
from typing import Any

import pytest

from palaestra.evaluation import evaluate
from palaestra.games.teams import matrix

pytestmark = pytest.mark.check

ID = "palaestra/TeamMatrix-v0"
TABLES = matrix.TABLES
STRENGTHS = ("maximin:0", "maximin:0.25", "maximin:0.5", "maximin:0.75", "maximin")


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("script", ["maximin", "counter"])
def test_a_script_beats_the_random_player_over_ten_rounds(name: Any, script: str):
    table = evaluate(ID, script, "random", matches=2000, game=name, num_envs=200)
    assert table.wins / table.matches >= (0.90 if name == "pennies" else 0.98), table.sides


def test_one_round_is_too_few_to_decide():
    """The random player finds the best joint choice, and a draw, in one round of nine."""
    table = evaluate(ID, "maximin", "random", matches=2000, rounds=1, num_envs=200)
    assert table.losses == 0
    assert table.wins / table.matches == pytest.approx(8 / 9, abs=0.03)


@pytest.mark.parametrize("name", TABLES)
def test_neither_side_is_better_off_between_equal_players(name: Any):
    for script in ("maximin:0.7", "counter:0.7", "maximin"):
        table = evaluate(ID, script, script, matches=8000, game=name, num_envs=400)
        assert abs(table.first_team_score - 0.5) < 0.03, script


@pytest.mark.parametrize("name", TABLES)
def test_the_stronger_wins_more_matches(name: Any):
    for weaker, stronger in pairwise(STRENGTHS):
        if (name, stronger) == ("climb", "maximin:0.25"):
            continue  # a teammate's mistake costs more here than an occasional good choice gains
        table = evaluate(ID, stronger, weaker, matches=4000, game=name, num_envs=400)
        assert table.wins > 1.1 * table.losses, (stronger, weaker, table.sides)
