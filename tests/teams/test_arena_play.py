"""ArenaDuel2v2 in whole matches: invariants, scripts, and the effect of their strength."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from games.play import random_actions
from games.points import assert_mirror_goes_on_as_mirror, played_out, started
from games.robots import BLUE_1, DUEL, HIDDEN, RED_0, SPARSE, duel, play

from palaestra.evaluation import MatchTable, evaluate
from palaestra.games.teams import arena_map
from palaestra.games.teams.arena_moves import NOWHERE

pytestmark = pytest.mark.check

ID = "palaestra/ArenaDuel2v2-v0"


def share(table: MatchTable) -> float:
    return table.wins / table.matches


def test_robots_never_touch_walls_or_obstacles():
    sim = started(DUEL, 64, speed_mps=3.0, rounds=0)
    rng = np.random.default_rng(1)
    for _ in range(20):
        sim.step(random_actions(sim, rng))
        at = sim.states["position_m"].reshape(-1, 2)
        boxes = arena_map.OBSTACLES_M
        apart_m = (np.abs(at[:, None] - boxes[:, :2]) - boxes[:, 2:]).max(2)
        assert (np.abs(at) <= [3.75, 2.0]).all()
        assert apart_m.min() > 0.12, "half a step of the lattice nearer than a robot on a node"


def test_dense_rewards_of_a_match_add_up_to_the_difference_of_the_hit_points():
    sim = played_out(DUEL, 64, red="focus", blue="flanker")
    red, blue = sim.info["hit_points"].T
    np.testing.assert_allclose(sim.returns[:, 0], (red - blue) / 2000, atol=1e-4)
    assert (sim.returns[:, 0] == -sim.returns[:, 2]).all()


@pytest.mark.parametrize("game", [DUEL, SPARSE], ids=["dense", "sparse"])
def test_a_match_turned_by_half_a_turn_with_exchanged_teams_continues_as_the_turned_match(game: Any):
    assert_mirror_goes_on_as_mirror(game, decisions=30)


@pytest.mark.parametrize("script", ["focus", "flanker", "shelter"])
def test_both_robots_of_a_script_attack_the_weaker_opponent(script: str):
    sim = duel(((-2.0, 0.75), (-2.0, -0.75), (2.0, 0.75), (2.0, -0.75)))
    sim.states["hit_points"][0, BLUE_1] = 900
    sim.set_opponent("red", script)
    play(sim)
    assert sim.states["target"][0, :2].tolist() == [1, 1]


def test_a_sheltering_robot_leaves_when_two_stronger_opponents_see_it():
    places = ((-1.0, -0.75), HIDDEN[0], (1.0, -0.75), (1.0, -0.5))
    for script, driven in (("shelter", True), ("focus", False)):
        sim = duel(places, rounds=0)
        sim.states["hit_points"][0, RED_0] = 1000
        sim.set_opponent("red", script)
        play(sim)
        assert (sim.states["post"][0, RED_0] != NOWHERE) == driven


@pytest.mark.parametrize("script", ["focus", "flanker", "shelter"])
def test_a_script_beats_the_random_player_in_nine_of_ten_matches(script: str):
    assert share(evaluate(ID, script, f"{script}:0", matches=400)) >= 0.9


@pytest.mark.slow
@pytest.mark.parametrize("script", ["focus", "flanker", "shelter"])
def test_the_stronger_player_wins_more_matches(script: str):
    strengths = [f"{script}:{grade}" for grade in (0, 0.25, 0.5, 0.75, 1)]
    wins = [share(evaluate(ID, strength, strengths[0], matches=2000)) for strength in strengths]
    assert all(weaker < stronger for weaker, stronger in pairwise(wins)), wins
    assert wins[-1] >= 0.9
    for weaker, stronger in pairwise(strengths):
        table = evaluate(ID, stronger, weaker, matches=2000)
        assert table.wins > 1.2 * table.losses, (stronger, weaker, table.sides)


@pytest.mark.slow
@pytest.mark.parametrize("script", ["focus", "flanker", "shelter"])
def test_neither_side_is_better_off_between_equal_players(script: str):
    table = evaluate(ID, f"{script}:0.7", f"{script}:0.7", matches=8000)
    assert abs(table.first_team_score - 0.5) < 0.03
    assert abs(table.score - 0.5) < 0.03
    assert table.draws < 0.03 * table.matches
