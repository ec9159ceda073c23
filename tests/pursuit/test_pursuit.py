"""The rules of GraphPursuit: moves, captures and escapes, what is paid, who has won, and whose turn it is."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from pursuit.hunts import ID, ended, go, hunt, nodes_of, place

from palaestra import make_batch
from palaestra.core.compile.linker import jit_disabled, link
from palaestra.games.pursuit.graph_pursuit import game

pytestmark = pytest.mark.jitless
compiles = pytest.mark.skipif(jit_disabled(), reason="kernels are plain functions")

# ---------------------------------------------------------------------------------------------------------------- moves


def test_alternatives_lead_to_the_neighbours_in_ascending_order_and_the_first_one_stays():
    sim = hunt("grid:3x3", pursuers=1)
    for way, node in enumerate((4, 1, 3, 5, 7)):
        place(sim, 4, 0)
        sim.actions["pursuer"][0, 0], sim.actions["evader"][0, 0] = way, 0
        sim.step()
        assert nodes_of(sim) == [node, 0]


def test_the_mask_allows_staying_and_the_ways_that_there_are():
    sim = place(hunt("grid:3x3", pursuers=2), 0, 1, 4)
    assert sim.legal["pursuer"][0].tolist() == [[1, 1, 1, 0, 0], [1, 1, 1, 1, 0]]
    assert sim.legal["evader"][0].tolist() == [[1, 1, 1, 1, 1]]


def test_an_alternative_that_is_not_there_stays_and_is_counted():
    sim = place(hunt("grid:3x3", pursuers=2), 0, 8, 4)
    sim.actions["pursuer"][0] = 4, 1
    sim.actions["evader"][0] = 0
    sim.step()
    assert nodes_of(sim) == [0, 5, 4]
    assert sim.info["illegal"][0].tolist() == [1, 0, 0]


# ------------------------------------------------------------------------------------------------------------- captures


def test_a_pursuer_on_the_node_of_the_evader_captures_it():
    sim = place(hunt("path:5", pursuers=1), 0, 2)
    go(sim, 1, 2)
    assert not sim.terminated[0]
    go(sim, 2, 2)
    assert ended(sim) == ("captured", 0)
    assert sim.rewards[0].tolist() == [1, -1]
    assert sim.info["captured"][0] == 1


def test_a_pursuer_and_an_evader_that_cross_on_an_edge_have_met():
    sim = place(hunt("path:5", pursuers=1), 1, 2)
    go(sim, 2, 1)
    assert ended(sim) == ("captured", 0)


def test_who_goes_where_the_other_was_but_not_back_has_not_met_it():
    sim = place(hunt("path:5", pursuers=1), 1, 2)
    go(sim, 2, 3)
    assert not sim.terminated[0]
    place(sim, 1, 3)
    go(sim, 0, 2)
    assert not sim.terminated[0]


@pytest.mark.parametrize(("radius", "captures"), [(1, False), (2, True), (3, True)])
def test_a_pursuer_captures_from_radius_hops_away(radius: int, captures: bool):
    sim = place(hunt("path:6", pursuers=1, parameters={"radius": radius}), 0, 2)
    go(sim, 0, 2)
    assert sim.terminated[0] == captures


def test_nobody_captures_where_no_way_leads():
    sim = place(hunt(np.array([[0, 1], [2, 3]]), pursuers=1, parameters={"radius": 5}), 0, 2)
    go(sim, 1, 3)
    assert not sim.terminated[0]


@pytest.mark.parametrize(("nodes", "captures"), [((1, 5, 5), False), ((1, 3, 5), True), ((2, 2, 5), True)])
def test_it_takes_as_many_pursuers_as_needed(nodes: tuple[int, ...], captures: bool):
    sim = place(hunt("path:8", pursuers=3, parameters={"need": 2, "radius": 1}), *nodes, 2)
    go(sim, *nodes, 2)
    assert sim.terminated[0] == captures


def test_who_has_met_the_evader_on_an_edge_is_one_of_those_needed():
    sim = place(hunt("path:6", pursuers=2, parameters={"need": 2}), 2, 1, 3)
    go(sim, 3, 1, 2)  # the first one crosses, the other is beside
    assert not sim.terminated[0]
    place(sim, 2, 1, 3)
    go(sim, 3, 2, 2)  # the first one crosses, the other is there
    assert ended(sim) == ("captured", 0)


def test_absent_pursuers_capture_nobody():
    sim = hunt("path:6", pursuers=2, fewest_pursuers=1)
    sim.states["alive"][0, 1] = 0
    place(sim, 0, 3, 3)
    go(sim, 0, 3, 3)
    assert not sim.terminated[0]


# -------------------------------------------------------------------------------------------------------------- escapes


def test_an_evader_that_reaches_an_exit_has_escaped():
    sim = place(hunt("path:6", pursuers=1, exits=[5]), 0, 4)
    go(sim, 1, 5)
    assert ended(sim) == ("escaped", 1)
    assert sim.rewards[0].tolist() == [-1, 1]
    assert (sim.info["captured"][0], sim.info["escaped"][0]) == (0, 1)


def test_an_evader_that_is_captured_at_an_exit_has_not_escaped():
    sim = place(hunt("path:6", pursuers=1, exits=[3]), 2, 4)
    go(sim, 3, 3)
    assert ended(sim) == ("captured", 0)


def test_a_number_of_exits_are_as_far_as_possible_from_those_before():
    assert game("path:9", pursuers=1, exits=3).world.exits[0].tolist() == [8, 0, 4]


# ------------------------------------------------------------------------------------------------------ several evaders


def two_evaders(*nodes: int, **keywords: Any) -> Any:
    return place(hunt("path:7", pursuers=1, evaders=2, exits=[6], **keywords), *nodes)


def test_each_evader_pays_for_itself_and_the_captured_leave():
    sim = two_evaders(1, 2, 4)
    go(sim, 2, 2, 4)
    assert sim.alive[0].tolist() == [True, False, True]
    assert sim.acting[0].tolist() == [True, False, True]
    assert sim.rewards[0].tolist() == [1, -1, -1]
    go(sim, 2, 2, 4)
    assert sim.rewards[0].tolist() == [0, 0, 0], "who has left is not captured again"
    go(sim, 3, 2, 3)
    assert sim.rewards[0].tolist() == [1, -1, -1]
    assert ended(sim) == ("captured", 0)
    assert sim.info["captured"][0] == 2


def test_as_many_captures_as_escapes_are_a_draw():
    sim = two_evaders(1, 2, 5)
    go(sim, 2, 2, 6)
    assert sim.rewards[0].tolist() == [0, 0, 0]
    assert ended(sim) == ("escaped", -1)


@pytest.mark.parametrize(("captured", "escaped", "winner"), [(2, 1, 0), (1, 2, 1), (2, 2, -1), (3, 0, 0), (0, 3, 1)])
def test_the_majority_of_the_evaders_decides(captured: int, escaped: int, winner: int):
    sim = hunt("path:7", pursuers=1, evaders=captured + escaped, exits=[6])
    nodes = [1] * captured + [5] * escaped
    place(sim, 0, *nodes)
    go(sim, 1, *(node if node == 1 else 6 for node in nodes))
    assert ended(sim) == ("escaped" if escaped else "captured", winner)


def test_two_captures_in_one_decision_pay_twice():
    sim = two_evaders(1, 2, 2)
    go(sim, 2, 2, 2)
    assert sim.rewards[0].tolist() == [2, -2, -2]


# ----------------------------------------------------------------------------------------------------- time and payment


def test_the_evaders_have_won_at_the_horizon():
    sim = two_evaders(1, 2, 4, parameters={"horizon": 2})
    go(sim, 2, 2, 4)
    go(sim, 2, 2, 4)
    assert ended(sim) == ("horizon", 1)
    assert (sim.truncated[0], sim.terminated[0]) == (True, False)


def test_a_capture_in_the_last_decision_is_one():
    sim = place(hunt("path:5", pursuers=1, parameters={"horizon": 1}), 1, 2)
    go(sim, 2, 2)
    assert ended(sim) == ("captured", 0)


def test_pursuers_pay_for_time_to_evaders_in_every_decision():
    sim = place(hunt("path:6", pursuers=2, parameters={"time_cost": 0.25}), 0, 0, 4)
    go(sim, 1, 0, 4)
    assert sim.rewards[0].tolist() == [-0.25, -0.25, 0.25]
    place(sim, 3, 0, 4)
    go(sim, 4, 0, 4)
    assert sim.rewards[0].tolist() == [0.75, 0.75, -0.75]


def test_a_decision_without_a_gain_pays_no_negative_zero():
    sim = place(hunt("path:6", pursuers=1), 0, 4)
    go(sim, 0, 4)
    assert not np.signbit(sim.rewards).any()


@pytest.mark.parametrize("order", ["simultaneous", "alternating"])
def test_the_rewards_of_the_teams_add_up_to_exactly_zero(order: Any):
    numbers = {"time_cost": 0.1, "radius": 1, "horizon": 12}
    sim = hunt("grid:4x4", 4, pursuers=2, evaders=3, exits=3, order=order, parameters=numbers)
    for team in sim.game.teams:
        sim.set_opponent(team, "random")
    paid = 0.0
    for _ in range(12):
        sim.step()
        assert (sim.team_rewards("pursuer") + sim.team_rewards("evader") == 0).all()
        paid += np.abs(sim.rewards).sum()
    assert paid > 12 * 4 * 0.1


# ---------------------------------------------------------------------------------------------------- alternating order


def test_in_alternating_order_the_pursuers_are_first_and_teams_take_turns():
    sim = place(hunt("path:8", pursuers=2, evaders=2, order="alternating"), 0, 1, 5, 6)
    for turn in (0, 1, 0, 1):
        assert sim.states["turn"][0] == turn
        assert sim.acting[0].tolist() == [turn == 0, turn == 0, turn == 1, turn == 1]
        go(sim, *nodes_of(sim))


@pytest.mark.parametrize("seed", range(3))
def test_a_match_in_alternating_order_begins_with_the_pursuers(seed: int):
    sim = hunt("path:8", pursuers=1, order="alternating", seed=seed)
    assert sim.acting[0].tolist() == [True, False]


def test_who_is_not_to_move_may_only_stay():
    sim = place(hunt("path:8", pursuers=1, order="alternating"), 1, 5)
    assert (sim.legal["pursuer"][0, 0].tolist(), sim.legal["evader"][0, 0].tolist()) == ([1, 1, 1], [1, 0, 0])
    go(sim, 2, 5)
    assert (sim.legal["pursuer"][0, 0].tolist(), sim.legal["evader"][0, 0].tolist()) == ([1, 0, 0], [1, 1, 1])


def test_who_is_not_to_move_stays_whatever_it_wants():
    sim = place(hunt("path:8", pursuers=1, order="alternating"), 1, 5)
    sim.actions["pursuer"][0], sim.actions["evader"][0] = 1, 1
    sim.step()
    assert nodes_of(sim) == [0, 5]


def test_in_alternating_order_an_evader_that_moves_to_a_pursuer_is_captured():
    sim = place(hunt("path:8", pursuers=1, order="alternating"), 1, 3)
    go(sim, 2, 3)
    assert not sim.terminated[0]
    go(sim, 2, 2)
    assert ended(sim) == ("captured", 0)


def test_the_captured_are_not_asked_when_it_is_their_turn():
    sim = place(hunt("path:8", pursuers=1, evaders=2, order="alternating"), 1, 2, 5)
    go(sim, 2, 2, 5)
    assert sim.acting[0].tolist() == [False, False, True]


# -------------------------------------------------------------------------------------------------------------- kernels

KERNEL = {"graph": "grid:10x10", "pursuers": 2}
ALIKE: list[dict[str, Any]] = [
    {"graph": "path:3", "pursuers": 1},
    {"graph": "torus:8x8", "pursuers": 3, "order": "alternating", "exits": 4},
    {"graph": "regular:200x4", "pursuers": 3, "fewest_pursuers": 1, "starts": "together"},
    {"graph": ["petersen", "grid:3x4", "cycle:9"], "pursuers": 2},
]
OTHERS: list[dict[str, Any]] = [
    {"graph": "king:3x3", "pursuers": 2},  # eight neighbours
    {"graph": "grid:10x10", "pursuers": 4},
    {"graph": "grid:10x10", "pursuers": 9},
]


@pytest.mark.check
@compiles
@pytest.mark.parametrize("keywords", ALIKE, ids=str)
def test_one_kernel_plays_all_graphs_of_a_degree_class_with_up_to_three_pursuers(keywords: dict[str, Any]):
    assert link(game(**keywords)) is link(game(**KERNEL))


@pytest.mark.check
@compiles
def test_solved_games_share_a_kernel_too():
    small = game("grid:3x3", solve=True, starts="winnable", order="alternating")
    assert link(small) is link(game("petersen", 3, solve={"need": 2, "radius": 1}, exits=2))


@pytest.mark.check
@compiles
def test_capacities_and_degree_classes_and_representations_have_a_kernel_each():
    games = [game(**keywords) for keywords in (KERNEL, *OTHERS)]
    kernels = [link(one) for one in (*games, *map(games[0].represented, ("hops", "nodes")))]
    assert all(one is not other for one, other in itertools.combinations(kernels, 2))
    assert link(game("grid:10x10", 8, evaders=2)) is link(game("petersen", 4)) is link(game("path:3", 1, evaders=2))
    ten = link(games[0].represented("nodes"))
    assert link(game("path:100").represented("nodes")) is ten
    assert link(game("path:129").represented("nodes")) is not ten


def test_the_id_plays_a_whole_match_of_scripts():
    sim = make_batch(ID, 2, compiled=False, graph="grid:4x4", opponents={"pursuer": "shortest_path", "evader": "flee"})
    sim.reset(seed=0)
    for _ in range(3):
        sim.step(sim.actions)
    assert (sim.states["steps"] > 0).any()
