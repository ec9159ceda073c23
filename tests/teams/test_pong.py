"""TeamPong: how the ball flies and is returned, who is paid for the point, what is seen, and how the scripts play."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from games.play import random_actions
from games.points import assert_mirror_goes_on_as_mirror, author_fields, played_out, started

from palaestra.core.rng import opposite_stream
from palaestra.evaluation import MatchTable, evaluate
from palaestra.teams import pong
from palaestra.teams.pong import BACK, DOWN, FRONT, STAY, UP

ID = "palaestra/TeamPong-v0"
PAIRS, SINGLES = pong.game(), pong.game(1)
RED_BACK, RED_FRONT, BLUE_BACK, BLUE_FRONT = range(4)
BACK_FACE, FRONT_FACE = 102.5, 67.5
"""Distance of a ball from the middle line that touches a paddle: 117.5 less the gap and 5 for half of both."""


def flying(position: Any, velocity: Any, heights: Any = (0, 0, 0, 0), **parameters: Any) -> Any:
    """A match with the ball there, at that velocity, and paddles at these heights."""
    sim = started(PAIRS, **parameters)
    sim.states["ball_position"], sim.states["ball_velocity"] = position, velocity
    sim.states["paddle_y"] = heights
    return sim


def play(sim: Any, *moves: int) -> None:
    sim.step(np.tile(moves or [STAY] * len(sim.game.agents), (sim.num_envs, 1)))


def ball(sim: Any) -> list[float]:
    """Position and velocity."""
    return [*sim.states["ball_position"][0].tolist(), *sim.states["ball_velocity"][0].tolist()]


def seen(sim: Any, slot: int) -> Any:
    return sim._observation_memory["paddle"][0, slot]


def share(table: MatchTable) -> float:
    return table.wins / table.matches


# -- rules -------------------------------------------------------------------------------------------------------------


def test_the_ball_flies_straight_for_three_substeps():
    sim = flying((0, 10), (2, -1))
    play(sim)
    assert ball(sim) == [6, 7, 2, -1]


def test_top_and_bottom_reflect_the_ball():
    sim = flying((0, 97), (1, 1))
    play(sim)
    assert ball(sim) == [3, 95, 1, -1], "97.5 is as high as its middle gets"
    sim = flying((0, -97), (-1, -1))
    play(sim)
    assert ball(sim) == [-3, -95, -1, 1]


def test_a_paddle_moves_three_units_in_each_substep_and_stops_at_the_edge():
    sim = flying((0, 0), (1, 0), (0, 0, 85, -85))
    play(sim, UP, DOWN, UP, DOWN)
    assert sim.states["paddle_y"][0].tolist() == [9, -9, 90, -90]


@pytest.mark.parametrize(("heights", "face"), [((40, 0, 0, 0), FRONT_FACE), ((0, 40, 0, 0), BACK_FACE)])
def test_who_is_in_the_way_returns_the_ball(heights: tuple, face: float):
    sim = flying((-face + 1, 0), (-2, 0), heights)
    play(sim)
    expected_x = -face + 2 * 6 * sim.states["speed_factor"][0]  # met in the first substep, two more to fly
    np.testing.assert_allclose(ball(sim)[:2], [expected_x, 0])
    assert sim.info["hits"][0] == 1


@pytest.mark.parametrize("share", [-1.0, -0.5, 0.0, 0.3, 1.0])
def test_a_return_is_the_steeper_the_farther_from_the_middle_of_the_paddle(share: float):
    sim = flying((BACK_FACE - 3, 10 * share), (2, 0), start_factor=0.5)
    sim.states["paddle_y"][0, BLUE_FRONT] = 60
    play(sim)
    angle = math.radians(65 * share)
    np.testing.assert_allclose(ball(sim)[2:], [-0.55 * 3 * (math.cos(angle) + 1), 0.55 * 8 * math.sin(angle)])


@pytest.mark.parametrize(("y", "is_hit"), [(12.5, True), (12.6, False), (-12.5, True), (-12.6, False)])
def test_a_paddle_meets_what_overlaps_it(y: float, is_hit: bool):
    sim = flying((FRONT_FACE - 1, y), (2, 0), (0, 0, 60, 0))
    play(sim)
    assert (ball(sim)[2] < 0) == is_hit


def test_a_mate_lets_the_ball_of_the_back_paddle_pass():
    sim = flying((-FRONT_FACE - 3, 0), (2, 0))
    play(sim)
    assert ball(sim) == [-FRONT_FACE + 3, 0, 2, 0]


def test_no_ball_is_too_fast_to_be_met():
    sim = flying((BACK_FACE - 17, 0), (18, 0), (0, 0, 0, 60))
    play(sim)
    assert ball(sim)[2] < 0


def test_the_ball_gets_faster_with_each_return_up_to_a_limit():
    sim = started(PAIRS, start_factor=0.4, growth=0.25, greatest_factor=0.8)
    factors = []
    for _ in range(3):
        sim.states["ball_position"], sim.states["ball_velocity"] = (-BACK_FACE + 1, 0), (-2, 0)
        play(sim)
        factors.append(sim.states["speed_factor"][0])
    np.testing.assert_allclose(factors, [0.65, 0.8, 0.8])


@pytest.mark.parametrize(("direction", "winner"), [(-1, 1), (1, 0)])
def test_a_ball_that_gets_to_the_wall_is_a_point_and_ends_the_match(direction: int, winner: int):
    sim = flying((direction * 115, 50), (2 * direction, 0))
    play(sim)
    assert sim.terminated[0]
    assert sim.info["winner"][0] == winner
    assert sim.game.end_reason(sim.info["end_reason"][0]) == "point"
    assert sim.rewards[0].tolist() == ([1, 1, -1, -1] if winner == 0 else [-1, -1, 1, 1])


def test_rewards_add_up_to_zero_and_only_points_pay():
    sim = started(PAIRS, 64)
    rng = np.random.default_rng(2)
    for _ in range(60):
        playing = ~sim.terminated
        sim.step(random_actions(sim, rng))
        assert (sim.rewards[:, RED_BACK] + sim.rewards[:, BLUE_BACK] == 0).all()
        assert (sim.rewards[:, ::2] == sim.rewards[:, 1::2]).all()
        assert (abs(sim.rewards[:, RED_BACK]) == (playing & sim.terminated)).all()
    assert sim.terminated.mean() > 0.5


# -- symmetry ----------------------------------------------------------------------------------------------------------


def test_the_coin_tells_the_side_of_the_serve_and_the_angle_is_within_40_degrees():
    velocity = started(PAIRS, 512).states["ball_velocity"]
    assert 200 < (velocity[:, 0] > 0).sum() < 312
    slope = np.abs(velocity[:, 1]) / np.abs(velocity[:, 0])
    steepest = 8 * math.sin(math.radians(40)) / (3 * (math.cos(math.radians(40)) + 1))
    assert 0.9 * steepest < slope.max() <= steepest
    assert 200 < (velocity[:, 1] > 0).sum() < 312


def test_the_other_side_of_the_coin_is_the_mirrored_serve():
    sim: Any = started(PAIRS, 64, serve_deg=0)  # the coin is the first draw, an angle would be the second
    streams = np.arange(64, dtype=np.uint64)
    serves = []
    for stream in (streams, opposite_stream(streams)):
        sim.states["rng"] = stream
        sim.reset(np.ones(64, np.bool_))
        serves.append(sim.states["ball_velocity"].copy())
    np.testing.assert_array_equal(serves[1], serves[0] * [-1, 1])


@pytest.mark.parametrize("game", [PAIRS, SINGLES], ids=["pairs", "singles"])
def test_a_mirrored_match_goes_on_as_the_mirror(game: Any):
    assert_mirror_goes_on_as_mirror(game, decisions=80)


def test_a_match_upside_down_goes_on_upside_down():
    sim, twin = started(PAIRS, 32), started(PAIRS, 32)
    rng = np.random.default_rng(4)
    for name in author_fields(PAIRS):
        twin.states[name] = sim.states[name]
    for one in (twin.states["ball_position"], twin.states["ball_velocity"]):
        one[:, 1] *= -1
    for _ in range(80):
        moves = random_actions(sim, rng)
        sim.step(moves)
        twin.step(np.array([STAY, DOWN, UP])[moves])
        np.testing.assert_array_equal(twin.states["paddle_y"], -sim.states["paddle_y"])
        np.testing.assert_array_equal(twin.states["ball_position"], sim.states["ball_position"] * [1, -1])


# -- observations ------------------------------------------------------------------------------------------------------


def test_everybody_sees_its_own_wall_on_the_left():
    sim = flying((-3, 50), (1, 0), (10, 20, 30, 40))
    play(sim)
    red, blue = seen(sim, RED_FRONT), seen(sim, BLUE_BACK)
    np.testing.assert_allclose(red["ball_position"], [0, 0.5])
    np.testing.assert_allclose(red["ball_velocity"], [0.1, 0])
    np.testing.assert_allclose(blue["ball_velocity"], [-0.1, 0])
    np.testing.assert_allclose([red["is_front"], red["own_y"], *red["mate_y"], *red["foe_y"]], [1, 0.2, 0.1, 0.3, 0.4])
    np.testing.assert_allclose(
        [blue["is_front"], blue["own_y"], *blue["mate_y"], *blue["foe_y"]], [0, 0.3, 0.4, 0.1, 0.2]
    )


def test_alone_there_is_no_mate_to_see():
    sim = started(SINGLES)
    assert sim.observations.shape == (1, 2, 7)
    assert started(PAIRS).observations.shape == (1, 4, 9)


def test_the_fastest_ball_is_within_the_bounds():
    sim = flying((-BACK_FACE + 1, 10), (-2, 0), (0, 60, 60, 60), start_factor=3, bounce_deg=80)
    play(sim)
    assert np.abs(seen(sim, 0)["ball_velocity"]).max() <= pong.SEEN_SPEEDS
    assert ball(sim)[3] > 23


# -- scripts -----------------------------------------------------------------------------------------------------------


def chosen(sim: Any, script: str) -> list[int]:
    """What the paddles of the script do."""
    for team in sim.game.teams:
        sim.set_opponent(team, script)
    sim.step()
    return sim._action_rows["paddle"]["move"][0].tolist()


def test_a_chaser_follows_the_height_of_the_ball():
    assert chosen(flying((0, 50), (1, 0), (0, 49, 60, 90)), "chaser") == [UP, STAY, DOWN, DOWN]


def test_a_tracker_runs_to_where_the_ball_will_come_after_its_reflections():
    # From the middle to the face of the front paddle are 67.5 units: 27 substeps, in which the ball gets to 70 + 54 =
    # 124, which top reflects to 71.
    sim = flying((0, 70), (-2.5, 2), (0, 95, 0, 0))
    assert chosen(sim, "tracker")[FRONT] == DOWN
    assert chosen(flying((0, 70), (-2.5, 2), (0, 40, 0, 0)), "tracker")[FRONT] == UP


def test_a_tracker_at_the_back_takes_what_its_mate_cannot():
    fast = flying((-50, 60), (-9, 0), (40, -80, 0, 0))
    assert chosen(fast, "tracker")[BACK] == UP
    assert chosen(flying((-50, 60), (-2, 0), (40, 60, 0, 0)), "tracker")[BACK] == DOWN, "and keeps apart from it else"


@pytest.mark.parametrize("players", [1, 2])
def test_trackers_lose_no_point_to_random_players(players: int):
    sim = played_out(pong.game(players), 256, red="tracker", blue="random")
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


def test_three_paddles_of_a_team_are_refused():
    with pytest.raises(ValueError, match="players must be 1 or 2, got 3"):
        pong.game(3)
