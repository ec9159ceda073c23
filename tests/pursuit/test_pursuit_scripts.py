"""Where the scripts of GraphPursuit go, by hand on small graphs; the other team stays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pursuit.hunts import hunt, nodes_of, place

from palaestra.core.compile.linker import jit_disabled
from palaestra.exact import pursuit
from palaestra.games.pursuit.solver import NEVER

pytestmark = pytest.mark.jitless


def gone(script: str, graph: Any, *nodes: int, team: str = "pursuer", lanes: int = 1, **keywords: Any) -> Any:
    """Nodes of a team after one decision of a script; with several lanes, the set of them."""
    sim = hunt(graph, lanes, **keywords)
    for one in sim.game.teams:
        sim.set_opponent(one, script if one == team else "stay")
    for lane in range(lanes):
        place(sim, *nodes, lane=lane, turn=int(team == "evader"))
    sim.step()
    pursuers = sim.actions["pursuer"].shape[1]
    own = slice(0, pursuers) if team == "pursuer" else slice(pursuers, None)
    found = [nodes_of(sim, lane)[own] for lane in range(lanes)]
    return found[0] if lanes == 1 else {tuple(one) for one in found}


@pytest.mark.parametrize("script", ["greedy", "flee", "shortest_path", "keep_exits"])
def test_pursuers_go_nearer_to_the_nearest_evader(script: str):
    assert gone(script, "path:9", 4, 1, 6, pursuers=1, evaders=2) == [5]


def test_who_stays_stays():
    assert gone("stay", "path:9", 4, 1, pursuers=1) == [4]


def test_greedy_draws_one_of_equal_ways():
    assert gone("greedy", "grid:3x3", 0, 8, pursuers=1, lanes=30) == {(1,), (3,)}
    assert gone("greedy", "grid:3x3", 4, 0, 8, team="evader", pursuers=1, evaders=2) == [0, 8], "corners are farthest"
    assert gone("greedy", "cycle:8", 0, 4, team="evader", pursuers=1) == [4]


def test_a_greedy_evader_goes_away_from_the_nearest_pursuer():
    assert gone("greedy", "path:9", 1, 3, team="evader", pursuers=1) == [4]
    assert gone("greedy", "path:9", 2, 8, 4, team="evader", pursuers=2) == [5]


def test_teammates_on_the_shortest_path_go_different_ways():
    assert sorted(gone("shortest_path", "grid:3x3", 0, 0, 8)) == [1, 3]
    assert gone("shortest_path", "path:9", 2, 2, 8) == [3, 3], "where there are several"


def test_an_evader_on_the_shortest_path_goes_to_the_nearest_exit_whoever_is_there():
    rules: dict[str, Any] = {"team": "evader", "pursuers": 1, "exits": [0, 8]}
    assert gone("shortest_path", "path:9", 2, 3, **rules) == [2]
    assert gone("shortest_path", "path:9", 2, 5, **rules) == [6]


def test_an_evader_goes_to_an_exit_that_it_reaches_first_and_else_flees():
    rules: dict[str, Any] = {"team": "evader", "exits": [0, 8]}
    assert gone("keep_exits", "path:9", 2, 3, pursuers=1, **rules) == [4]
    assert gone("keep_exits", "path:9", 7, 3, pursuers=1, **rules) == [2]
    assert gone("keep_exits", "path:9", 1, 7, 4, pursuers=2, **rules) == [4], "none is open"


def test_pursuers_keep_an_exit_each_that_the_evader_is_near_to_and_capture_who_is_beside():
    rules: dict[str, Any] = {"pursuers": 2, "exits": [0, 8]}
    assert gone("keep_exits", "path:9", 4, 5, 2, **rules) == [3, 6]
    assert gone("keep_exits", "path:9", 5, 4, 2, **rules) == [6, 3], "the nearest one goes"
    assert gone("keep_exits", "path:9", 3, 5, 2, **rules) == [2, 6]
    assert gone("keep_exits", "path:9", 5, 5, 7, pursuers=2, exits=[8]) == [6, 6], "who has no exit hunts"


@pytest.mark.parametrize("script", ["flee", "shortest_path", "keep_exits"])
@pytest.mark.parametrize("nodes", [(0, 3, 9), (5, 10, 6), (0, 1, 4), (2, 13, 15), (9, 9, 8)])
def test_an_evader_without_exits_goes_where_most_room_is(script: str, nodes: tuple[int, int, int]):
    sim = hunt("grid:4x4")
    hops, around = sim.game.world.hops[0].astype(int), sim.game.world.neighbours[0, nodes[2]]
    from_pursuers = hops[list(nodes[:2])].min(axis=0)
    room = {int(node): (hops[node] < from_pursuers).sum() * (from_pursuers[node] > 0) for node in around if node >= 0}
    best = max((count, from_pursuers[node]) for node, count in room.items())
    (node,) = gone(script, "grid:4x4", *nodes, team="evader")
    assert (room[node], from_pursuers[node]) == best


@pytest.mark.check
@pytest.mark.skipif(jit_disabled(), reason="the solver overflows on purpose, about which plain NumPy warns")
@pytest.mark.parametrize(
    ("graph", "exits"),
    [("grid:3x3", ()), ("grid:4x4", ()), ("cycle:9", ()), ("cube:3", ()), ("tree:2x2", (6,)), ("path:6", (0,))],
)
def test_optimal_moves_are_as_good_as_solved(graph: str, exits: tuple[int, ...]):
    solved = pursuit(graph, 2, exits=exits)
    rules: dict[str, Any] = {"solve": True, "order": "alternating", "exits": list(exits)}
    draw = np.random.default_rng(0)
    for nodes in draw.integers(solved.graph.nodes, size=(40, 3)).tolist():
        time, escape = int(solved.times[tuple(nodes)]), int(solved.escapes[tuple(nodes)]) if exits else NEVER
        if time == 0 or nodes[2] in exits:
            continue
        went = gone("optimal", graph, *nodes, **rules)
        around = [int(node) for node in solved.graph.neighbours[nodes[2]] if node >= 0]
        is_captured = solved.times[(*went, nodes[2])] == 0
        if time != NEVER:
            left = [0] if is_captured else [int(solved.times[(*went, node)]) for node in around]
            assert max(left) == time - 1
            assert NEVER not in left
        if is_captured:
            continue
        (node,) = gone("optimal", graph, *went, nodes[2], team="evader", **rules)
        if time != NEVER:
            assert solved.times[(*went, node)] == time - 1
        elif escape == NEVER:
            assert solved.times[(*went, node)] == NEVER
        else:
            assert node in exits if escape == 1 else solved.escapes[(*went, node)] == escape - 1
