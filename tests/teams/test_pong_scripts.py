"""The scripts of TeamPong: what trackers and chasers do, and the effect of their strength."""

from itertools import pairwise
from typing import Any

import pytest
from games.paddles import PAIRS, flying
from games.points import played_out, started

from palaestra.evaluation import MatchTable, evaluate
from palaestra.games.teams import pong
from palaestra.games.teams.pong import BACK, DOWN, FRONT, STAY, UP

ID = "palaestra/TeamPong-v0"


def share(table: MatchTable) -> float:
    return table.wins / table.matches


def chosen(sim: Any, script: str) -> list[int]:
    """What the paddles of the script do."""
    for team in sim.game.teams:
        sim.set_opponent(team, script)
    sim.step()
    return sim.buffers.action_records["paddle"]["move"][0].tolist()


def test_a_chaser_follows_the_height_of_the_ball():
    assert chosen(flying((0, 50), (1, 0), (0, 49, 60, 90)), "chaser") == [UP, STAY, DOWN, DOWN]


def test_a_tracker_runs_to_where_the_ball_will_come_after_its_reflections():
    # From the middle to the face of the front paddle are 67.5 units: 27 substeps, in which the ball gets to 70 + 54 =
    # 124, which top reflects to 71.
    sim = flying((0, 70), (-2.5, 2), (0, 95, 0, 0))
    assert chosen(sim, "tracker")[FRONT] == DOWN
    assert chosen(flying((0, 70), (-2.5, 2), (0, 40, 0, 0)), "tracker")[FRONT] == UP


def test_a_tracker_at_the_back_takes_what_its_teammate_cannot():
    fast = flying((-50, 60), (-9, 0), (40, -80, 0, 0))
    assert chosen(fast, "tracker")[BACK] == UP
    assert chosen(flying((-50, 60), (-2, 0), (0, 60, 0, 0)), "tracker")[BACK] == DOWN, "and keeps apart from it else"


def test_a_tracker_aims_between_opponents_that_stand_at_both_edges():
    # Aimed at an edge, the ball would end 12 units or less from a paddle; by way of a reflection it ends 85 from both.
    sim = flying((-30, 0), (-2, 0), (0, 0, 90, -80))
    assert chosen(sim, "tracker")[FRONT] == DOWN


@pytest.mark.check
@pytest.mark.parametrize("players", [1, 2])
def test_trackers_lose_no_point_to_random_players(players: int):
    sim = played_out(pong.game(players), 256, compiled=True, red="tracker", blue="random")
    assert (sim.info["winner"] == pong.RED).all()


def test_matches_between_trackers_end_with_a_point():
    sim = played_out(PAIRS, 256, red="tracker", blue="tracker")
    assert sim.terminated.mean() > 0.99
    assert sim.info["hits"].mean() > 10


def test_with_the_growth_of_wimblepong_trackers_do_not_miss():
    sim = started(PAIRS, 32, growth=0.005)
    for team in PAIRS.teams:
        sim.set_opponent(team, "tracker")
    for _ in range(500):
        sim.step()
    assert sim.truncated.all()


def test_a_tracker_beats_chasers_and_random_players():
    assert share(evaluate(ID, "tracker", "tracker:0", matches=200)) > 0.95
    assert share(evaluate(ID, "tracker", "chaser", matches=200)) > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("players", [1, 2])
@pytest.mark.parametrize("script", ["tracker", "chaser"])
def test_the_stronger_player_wins_more_matches(script: str, players: int):
    strengths = [f"{script}:{grade}" for grade in (0, 0.25, 0.5, 0.75, 1)]
    wins = [share(evaluate(ID, strength, strengths[0], matches=2000, players=players)) for strength in strengths]
    assert all(weaker < stronger for weaker, stronger in pairwise(wins)), wins
    assert wins[-1] >= 0.9
    for weaker, stronger in pairwise(strengths):
        table = evaluate(ID, stronger, weaker, matches=2000, players=players)
        assert table.wins > 1.2 * table.losses, (stronger, weaker, table.sides)


@pytest.mark.slow
@pytest.mark.parametrize("players", [1, 2])
def test_neither_side_is_better_off_between_equal_players(players: int):
    table = evaluate(ID, "tracker:0.7", "tracker:0.7", matches=8000, players=players)
    assert abs(table.first_team_score - 0.5) < 0.03
    assert abs(table.score - 0.5) < 0.03
    assert table.draws < 0.01 * table.matches
