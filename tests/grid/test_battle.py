"""The rules of GridBattle: hits, recovery, what is paid, who has won, starts and sizes."""

import numpy as np
import pytest
from grid.grids import cells, ended, fight, go, hit_points, place

from palaestra.games.grid.grid_battle import game

pytestmark = pytest.mark.jitless

# ----------------------------------------------------------------------------------------------------------------- hits


def test_a_hit_takes_two_hit_points_and_a_tenth_comes_back():
    sim = go(place(fight(), (5, 5), (5, 6)), red_0="hit ahead")
    assert hit_points(sim) == [100, 81]


def test_damage_and_recovery_are_in_tenths_of_a_hit_point():
    sim = place(fight(parameters={"damage": 3, "recovery": 2}), (5, 5), (5, 6), hit_points=[50, 50])
    go(sim, red_0="hit ahead")
    assert hit_points(sim) == [52, 49]
    assert sim.buffers.observations["soldier"]["own"][0, :, 0].tolist() == [52, 49]


def test_nobody_recovers_to_more_than_at_the_start():
    sim = place(fight(parameters={"recovery": 30}), (5, 5), (5, 6), hit_points=[80, 100])
    go(sim, red_0="hit ahead")
    assert hit_points(sim) == [100, 100]


def test_who_has_no_hit_points_left_leaves_before_it_recovers():
    sim = place(fight(2, 1, parameters={"recovery": 100}), (5, 5), (9, 9), (5, 6), hit_points=[9, 1, 20])
    go(sim, red_0="hit ahead")
    assert cells(sim) == [(5, 5), (9, 9), None]
    assert hit_points(sim) == [100, 100, 0]


def test_agents_hit_who_stands_there_before_the_moves():
    sim = go(place(fight(), (5, 5), (5, 6)), red_0="hit ahead", blue_0="move 2 back")
    assert hit_points(sim) == [100, 81]
    assert cells(sim) == [(5, 5), (5, 8)]


def test_all_hits_on_one_agent_count():
    sim = place(fight(3, 1), (5, 5), (4, 6), (6, 6), (5, 6))
    go(sim, red_0="hit ahead", red_1="hit down", red_2="hit up")
    assert hit_points(sim) == [100, 100, 100, 41]


def test_a_mask_offers_hits_at_opponents_alone():
    sim = place(fight(2, 1), (5, 5), (5, 4), (6, 6))
    assert np.flatnonzero(sim.legal[0, 0, 13:]).tolist() == [5]
    assert not sim.legal[0, 1, 13:].any()


def test_two_that_hit_each_other_may_both_leave_and_nobody_has_won():
    sim = place(fight(), (5, 5), (5, 6), hit_points=20)
    go(sim, red_0="hit ahead", blue_0="hit ahead")
    assert cells(sim) == [None, None]
    assert ended(sim) == ("wiped_out", -1)
    np.testing.assert_allclose(sim.rewards, -0.005 + 0.1 + 5 - 0.1, rtol=1e-6)


# -------------------------------------------------------------------------------------------------------------- rewards


def test_a_kill_is_divided_among_those_who_hit():
    sim = place(fight(3, 2), (5, 5), (4, 6), (6, 6), (5, 6), (9, 9), hit_points=30)
    go(sim, red_0="hit ahead", red_1="hit down", red_2="hit up")
    np.testing.assert_allclose(sim.rewards[0], [0.095 + 5 / 3] * 3 + [-0.105, -0.005], rtol=1e-6)


def test_the_dead_are_not_paid_and_nothing_else_is_their_due():
    sim = place(fight(1, 2), (5, 5), (5, 6), (9, 9), hit_points=20)
    go(sim, red_0="hit ahead")
    go(sim)
    np.testing.assert_allclose(sim.rewards[0], [-0.005, 0, -0.005], rtol=1e-6)
    assert not sim.buffers.observations["soldier"]["own"][0, 1].any()


def test_each_part_of_the_pay_is_a_parameter():
    pay = {"step_reward": 1, "hit_reward": 10, "kill_reward": 50, "death_reward": -7}
    sim = place(fight(2, 2, parameters=pay), (5, 5), (8, 5), (5, 6), (8, 6), hit_points=[100, 100, 20, 21])
    go(sim, red_0="hit ahead", red_1="hit ahead")
    assert sim.rewards[0].tolist() == [61, 11, -6, 1]


@pytest.mark.parametrize(("hp", "pay"), [((20, 20), 0), ((20, 100), -1), ((100, 20), 1)])
def test_sparse_matches_pay_the_winner_at_the_end_alone(hp: tuple, pay: int):
    sim = place(fight(reward="sparse"), (5, 5), (5, 6))
    go(sim, red_0="hit ahead", blue_0="hit ahead")
    assert not sim.rewards.any()
    go(place(sim, (5, 5), (5, 6), hit_points=hp), red_0="hit ahead", blue_0="hit ahead")
    assert sim.terminated[0]
    assert sim.rewards[0].tolist() == [pay, -pay]


# ----------------------------------------------------------------------------------------------------------------- ends


@pytest.mark.parametrize(
    ("red", "blue", "hp", "winner"),
    [
        (1, 2, [100, 1, 1], 1),
        (2, 1, [1, 1, 100], 0),
        (1, 1, [60, 61], 1),
        (1, 1, [61, 60], 0),
        (2, 2, [90, 1, 40, 51], -1),
    ],
)
def test_at_the_horizon_more_agents_have_won_then_more_hit_points(red: int, blue: int, hp: list, winner: int):
    sim = fight(red, blue, reward="sparse", parameters={"horizon": 2, "recovery": 0})
    go(place(sim, *((3 * k, 3 * k) for k in range(red + blue)), hit_points=hp))
    assert not sim.truncated[0]
    assert not sim.rewards.any()
    go(sim)
    assert ended(sim) == ("horizon", winner)
    assert not sim.terminated[0]
    assert sim.rewards[0].tolist() == [
        0 if winner < 0 else 1 if (k >= red) == winner else -1 for k in range(red + blue)
    ]
    assert (sim.info["red_left"][0], sim.info["blue_left"][0]) == (red, blue)


# --------------------------------------------------------------------------------------------------------------- starts


@pytest.mark.parametrize(("size", "middle"), [(20, (9, 10)), (21, (9, 10, 11))])
def test_blue_starts_as_the_mirror_image_of_red_and_nobody_in_the_middle(size: int, middle: tuple):
    sim = fight(90, 90, lanes=3, map_size=size)
    for lane in range(3):
        places = cells(sim, lane)
        assert places[90:] == [(row, size - 1 - column) for row, column in places[:90]]
        assert len(set(places)) == 180
        rows, columns = np.transpose(places[:90])
        assert (rows.min(), rows.max(), columns.min(), columns.max()) == (0, size - 1, 0, middle[0] - 1)


def test_a_started_match_says_how_many_there_are():
    sim = fight(12, 5)
    assert (sim.info["red_left"][0], sim.info["blue_left"][0]) == (12, 5)


def test_the_rest_of_a_larger_army_starts_in_its_half():
    for red, blue in ((12, 1), (1, 12)):
        places = cells(fight(red, blue))
        assert len(set(places)) == 13
        assert all(column < 9 for _, column in places[:red])
        assert all(column > 10 for _, column in places[red:])
        assert places[red] == (places[0][0], 19 - places[0][1])


def test_armies_that_fill_more_than_half_of_their_side_are_refused():
    game(map_size=20, red=90, blue=1)
    for options in ({"red": 91, "blue": 1}, {"red": 1, "blue": 91}):
        with pytest.raises(ValueError, match="map_size=20 has room for 90 agents a side, got 91"):
            game(map_size=20, **options)
    with pytest.raises(ValueError, match="red must be an integer from 1 to 1024, got 1025"):
        game(map_size=200, red=1025)
