"""The rules of GridPursuit: hits together, what comes back, what is paid, who has won, starts and sizes."""

import numpy as np
import pytest
from grid.grids import assert_map_is_whole, cells, ended, go, hit_points, hunt, place

from palaestra.games.grid.grid_pursuit import game

pytestmark = pytest.mark.jitless
AROUND = {"predator_0": "hit ahead", "predator_1": "hit back", "predator_2": "hit ahead and down"}
CELLS = (5, 5), (5, 7), (4, 5)
"""Three predators around a prey in (5, 6)."""

# -------------------------------------------------------------------------------------------------------------- catches


@pytest.mark.parametrize(("need", "hits", "catches"), [(1, 1, 1), (1, 3, 1), (2, 1, 0), (3, 2, 0), (3, 3, 1)])
def test_a_prey_is_caught_by_as_many_hits_as_needed_in_one_decision(need: int, hits: int, catches: int):
    sim = place(hunt(3, 2, need=need), *CELLS, (5, 6), (9, 9))
    for number in range(1 if catches else 3):  # hits of another decision do not count
        go(sim, **dict(list(AROUND.items())[:hits]))
        assert sim.info["catches"][0] == catches, number
    assert cells(sim) == [*CELLS, None if catches else (5, 6), (9, 9)]
    assert hit_points(sim) == [100] * 5


def test_a_prey_that_moves_away_is_caught_where_it_stood():
    sim = go(place(hunt(1, 2), (5, 5), (5, 6), (9, 9)), predator_0="hit ahead", prey_0="move ahead and up")
    assert cells(sim) == [(5, 5), None, (9, 9)]


def test_predators_move_along_rows_and_columns_and_hit_prey_alone():
    sim = place(hunt(2, 2), (5, 5), (5, 6), (4, 4), (9, 9))
    assert np.flatnonzero(sim.legal["predator"][0, 0]).tolist() == [0, 2, 3, 4, 11], (
        "stay, three moves, hit back and up"
    )
    assert np.flatnonzero(sim.legal["prey"][0, 0]).tolist() == [0, 1, 2, 3, 4, 5, 7, 8], "all but ahead and down"


@pytest.mark.check
def test_with_returns_a_caught_prey_comes_back_into_a_free_cell_and_others_move_as_usual():
    lanes = 64
    sim = place(hunt(2, 2, lanes, returns=True), (5, 5), (7, 6), (5, 6), (6, 7))
    go(sim, predator_0="hit ahead", predator_1="move up", prey_0="move ahead", prey_1="move up")
    assert_map_is_whole(sim)
    places = [cells(sim, lane) for lane in range(lanes)]
    assert {(p[0], p[1], p[3]) for p in places} == {((5, 5), (6, 6), (5, 7))}
    assert len({p[2] for p in places}) > lanes // 2, "anywhere"
    assert sim.info["catches"].tolist() == [1] * lanes
    assert sim.states["alive"][:, :4].all()
    assert not (sim.terminated | sim.truncated).any()


def test_the_cell_of_a_caught_prey_is_free_in_the_next_decision():
    sim = place(hunt(1, 2), (5, 5), (5, 6), (9, 9))
    go(sim, predator_0="hit ahead")
    go(sim, predator_0="move ahead")
    assert cells(sim) == [(5, 6), None, (9, 9)]


# -------------------------------------------------------------------------------------------------------------- rewards


def test_each_hit_costs_and_each_predator_that_has_hit_a_caught_prey_is_paid():
    sim = place(hunt(4, 2, need=2), (5, 5), (5, 7), (9, 8), (12, 12), (5, 6), (9, 9))
    go(sim, predator_0="hit ahead", predator_1="hit back", predator_2="hit ahead")
    np.testing.assert_allclose(sim.rewards[0], [0.8, 0.8, -0.2, 0, -1, 0], rtol=1e-6)
    go(sim)
    assert not sim.rewards.any()


def test_sparse_pursuits_pay_all_predators_and_all_prey_for_each_catch():
    sim = place(hunt(2, 3, reward="sparse"), (5, 5), (9, 8), (5, 6), (9, 9), (12, 12))
    go(sim, predator_0="hit ahead")
    assert sim.rewards[0].tolist() == [1, 1, -1, -1, -1]
    go(sim, predator_1="hit ahead")
    assert sim.rewards[0].tolist() == [1, 1, -1, -1, -1], "the caught lose with their team"
    two = place(hunt(2, 3, reward="sparse"), (5, 5), (9, 8), (5, 6), (9, 9), (12, 12))
    go(two, predator_0="hit ahead", predator_1="hit ahead")
    assert two.rewards[0].tolist() == [2, 2, -2, -2, -2]


# ----------------------------------------------------------------------------------------------------------------- ends


def test_predators_have_won_when_all_prey_are_caught():
    sim = place(hunt(1, 2), (5, 5), (5, 6), (4, 5))
    go(sim, predator_0="hit ahead")
    assert not sim.terminated[0]
    go(sim, predator_0="hit up")
    assert ended(sim) == ("all_caught", 0)
    assert sim.terminated[0]


@pytest.mark.parametrize(("returns", "winner"), [(False, 1), (True, -1)])
def test_at_the_horizon_prey_have_won_but_nobody_where_they_come_back(returns: bool, winner: int):
    sim = place(hunt(1, 2, returns=returns, parameters={"horizon": 2}), (5, 5), (5, 6), (9, 9))
    go(sim, predator_0="hit ahead")
    assert sim.info["winner"][0] == -1
    go(sim)
    assert ended(sim) == ("horizon", winner)
    assert sim.truncated[0]


def test_a_last_catch_at_the_horizon_wins():
    sim = place(hunt(1, 1, parameters={"horizon": 1}), (5, 5), (5, 6))
    assert ended(go(sim, predator_0="hit ahead")) == ("all_caught", 0)


# --------------------------------------------------------------------------------------------------------------- starts


def test_all_start_anywhere_each_in_a_cell_of_its_own():
    sim = hunt(100, 100, lanes=2)
    assert_map_is_whole(sim)
    for team in (slice(0, 100), slice(100, 200)):
        assert (np.ptp(sim.states["row"][:, team]), np.ptp(sim.states["column"][:, team])) == (19, 19)


def test_agents_that_fill_more_than_half_of_the_map_and_hits_that_nobody_can_deal_are_refused():
    game(map_size=20, predators=150, prey=50)
    with pytest.raises(ValueError, match="map_size=20 has room for 200 agents, got 150 predators and 51 prey"):
        game(map_size=20, predators=150, prey=51)
    with pytest.raises(ValueError, match="need=3 is more than predators=2"):
        game(predators=2, need=3)
