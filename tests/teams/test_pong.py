"""TeamPong: flight and return of the ball, rewards of a point, observations."""

import math
from typing import Any

import numpy as np
import pytest
from games.paddles import PAIRS, flying
from games.play import random_actions
from games.points import assert_mirror_goes_on_as_mirror, author_fields, started

from palaestra.core.rng import opposite_stream
from palaestra.games.teams import pong
from palaestra.games.teams.pong import DOWN, STAY, UP

pytestmark = pytest.mark.jitless

SINGLES = pong.game(1)
RED_BACK, RED_FRONT, BLUE_BACK, BLUE_FRONT = range(4)
BACK_FACE, FRONT_FACE = 102.5, 67.5
"""Distance of a ball from the middle line that touches a paddle: 117.5 less the gap and 5 for half of both."""


def play(sim: Any, *moves: int) -> None:
    sim.step(np.tile(moves or [STAY] * len(sim.game.agents), (sim.num_envs, 1)))


def ball(sim: Any) -> list[float]:
    """Position and velocity."""
    return [*sim.states["ball_position"][0].tolist(), *sim.states["ball_velocity"][0].tolist()]


def seen(sim: Any, slot: int) -> Any:
    return sim.buffers.observations["paddle"][0, slot]


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
def test_a_paddle_in_the_way_returns_the_ball(heights: tuple, face: float):
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


def test_a_teammate_lets_the_ball_of_the_back_paddle_pass():
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


@pytest.mark.check
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


def test_a_random_draw_decides_the_side_of_the_serve_and_the_angle_is_within_40_degrees():
    velocity = started(PAIRS, 512).states["ball_velocity"]
    assert 200 < (velocity[:, 0] > 0).sum() < 312
    slope = np.abs(velocity[:, 1]) / np.abs(velocity[:, 0])
    steepest = 8 * math.sin(math.radians(40)) / (3 * (math.cos(math.radians(40)) + 1))
    assert 0.9 * steepest < slope.max() <= steepest
    assert 200 < (velocity[:, 1] > 0).sum() < 312


def test_the_opposite_draw_gives_the_mirrored_serve():
    sim: Any = started(PAIRS, 64, serve_deg=0)  # the coin is the first draw, an angle would be the second
    streams = np.arange(64, dtype=np.uint64)
    serves = []
    for stream in (streams, opposite_stream(streams)):
        sim.states["rng"] = stream
        sim.reset(np.ones(64, np.bool_))
        serves.append(sim.states["ball_velocity"].copy())
    np.testing.assert_array_equal(serves[1], serves[0] * [-1, 1])


@pytest.mark.check
@pytest.mark.parametrize("game", [PAIRS, SINGLES], ids=["pairs", "singles"])
def test_a_mirrored_match_continues_as_the_mirror(game: Any):
    assert_mirror_goes_on_as_mirror(game, decisions=80)


def test_a_match_reflected_top_to_bottom_continues_as_the_reflected_match():
    sim, twin = started(PAIRS, 8), started(PAIRS, 8)
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


def test_each_agent_sees_its_own_wall_on_the_left():
    sim = flying((-3, 50), (1, 0), (10, 20, 30, 40))
    play(sim)
    red, blue = seen(sim, RED_FRONT), seen(sim, BLUE_BACK)
    np.testing.assert_allclose(red["ball_position"], [0, 0.5])
    np.testing.assert_allclose(red["ball_velocity"], [0.1, 0])
    np.testing.assert_allclose(blue["ball_velocity"], [-0.1, 0])
    np.testing.assert_allclose(
        [red["is_front"], red["own_y"], *red["teammate_y"], *red["opponent_y"]], [1, 0.2, 0.1, 0.3, 0.4]
    )
    np.testing.assert_allclose(
        [blue["is_front"], blue["own_y"], *blue["teammate_y"], *blue["opponent_y"]], [0, 0.3, 0.4, 0.1, 0.2]
    )


def test_alone_there_is_no_teammate_to_see():
    sim = started(SINGLES)
    assert sim.observations.shape == (1, 2, 7)
    assert started(PAIRS).observations.shape == (1, 4, 9)


def test_the_fastest_ball_is_within_the_bounds():
    sim = flying((-BACK_FACE + 1, 10), (-2, 0), (0, 60, 60, 60), start_factor=3, bounce_deg=80)
    play(sim)
    assert np.abs(seen(sim, 0)["ball_velocity"]).max() <= pong.SEEN_SPEEDS
    assert ball(sim)[3] > 23
