"""Where matches of GraphPursuit start, which graph and how many pursuers they draw, and what is refused."""

from __future__ import annotations

import math
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pursuit.hunts import ID, hunt, nodes_of

from palaestra import make_batch
from palaestra.core.compile.linker import jit_disabled
from palaestra.core.files import FileError
from palaestra.exact import pursuit
from palaestra.exact.positions import enumerate_positions
from palaestra.games.pursuit.graph_pursuit import game
from palaestra.games.pursuit.graphs import Graph, read

compiles = pytest.mark.skipif(jit_disabled(), reason="hundreds of matches")


def starts(lanes: int, seed: int = 0, **keywords: Any) -> np.ndarray:
    """Records of so many matches as they begin."""
    sim = make_batch(ID, lanes, autoreset_mode="off", **keywords)
    sim.reset(seed=seed)
    return sim.states.copy()


def are_about_equal(counts: np.ndarray) -> bool:
    """Whether no count is more than five standard deviations off the others' mean."""
    mean = counts.mean()
    return bool((np.abs(counts - mean) < 5 * math.sqrt(mean)).all())


# --------------------------------------------------------------------------------------------------------------- starts


@pytest.mark.check
@compiles
def test_pursuers_stand_anywhere_and_the_evader_on_any_node_without_one():
    nodes = starts(14_400, graph="grid:3x3", pursuers=1)["node"]
    counts = np.zeros((9, 9), int)
    np.add.at(counts, (nodes[:, 0], nodes[:, 1]), 1)
    assert counts.trace() == 0
    assert are_about_equal(counts[~np.eye(9, dtype=bool)])


@pytest.mark.check
@compiles
@pytest.mark.parametrize("pursuers", [1, 2, 3])
def test_a_free_node_is_drawn_as_one_of_those_that_all_are_looked_at_for(pursuers: int):
    fast = starts(500, graph="complete:5", pursuers=pursuers, start_hops=1)
    slow = starts(500, graph="complete:5", pursuers=pursuers, solve=True, starts="winnable")  # every start is winnable
    assert (slow["node"] == fast["node"]).all()
    assert len(np.unique(fast["node"][:, pursuers])) == 5


@pytest.mark.check
def test_the_table_of_positions_has_the_starts_of_the_game():
    table = enumerate_positions(ID, graph="path:3", pursuers=2, symmetry=False)
    found = np.zeros((3, 3, 3))
    found.reshape(-1)[table.numbers[table.starts]] = table.start_probabilities
    first, second, evader = np.indices(found.shape)
    free = 3 - np.where(first == second, 1, 2)
    expected = np.where((evader == first) | (evader == second), 0, 1 / 9 / free)
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.check
@compiles
def test_together_all_pursuers_stand_on_one_node():
    nodes = starts(400, graph="grid:3x3", pursuers=3, starts="together")["node"]
    assert (nodes[:, :3] == nodes[:, :1]).all()
    assert (nodes[:, 3] != nodes[:, 0]).all()
    assert len(np.unique(nodes[:, 0])) == 9


@compiles
def test_evaders_start_at_least_so_many_hops_from_pursuers_and_exits():
    nodes = starts(500, graph="path:12", pursuers=2, exits=[0], start_hops=3)["node"]
    hops = np.abs(nodes[:, :2] - nodes[:, 2:3]).min(axis=1)
    least = np.minimum(hops, nodes[:, 2])
    possible = np.abs(np.arange(12)[None, :, None] - nodes[:, None, :2]).min(axis=2)
    farthest = np.minimum(possible, np.arange(12)).max(axis=1)
    assert (least >= np.minimum(3, farthest)).all()
    assert ((least == 3).any(), (least > 3).any()) == (True, True)


@pytest.mark.jitless
def test_where_no_node_is_far_enough_the_farthest_is_taken():
    sim = hunt("path:7", 40, pursuers=1, parameters={"start_hops": 6})
    pursuer, evader = sim.states["node"][:, 0], sim.states["node"][:, 1]
    assert (np.abs(pursuer - evader) == np.maximum(pursuer, 6 - pursuer)).all()
    assert len(np.unique(pursuer)) > 3


@pytest.mark.jitless
def test_no_evader_starts_where_it_is_captured_at_once_or_at_an_exit():
    sim = hunt("path:13", 60, pursuers=2, exits=[4], parameters={"radius": 2, "need": 1, "start_hops": 0})
    hops = np.abs(sim.states["node"][:, :2] - sim.states["node"][:, 2:3])
    assert (hops > 2).all()
    assert (sim.states["node"][:, 2] != 4).all()
    sim = hunt("path:13", 60, pursuers=2, parameters={"radius": 2, "need": 2, "start_hops": 0})
    hops = np.abs(sim.states["node"][:, :2] - sim.states["node"][:, 2:3])
    assert (hops.max(axis=1) > 2).all()
    assert (hops.min(axis=1) <= 2).any(), "one of them may be near"


@pytest.mark.check
@compiles
@pytest.mark.parametrize(("graph", "pursuers"), [("petersen", 2), ("cycle:12", 1), ("torus:4x4", 2)])
def test_winnable_starts_are_those_from_which_the_pursuers_win(graph: str, pursuers: int):
    times = pursuit(graph, pursuers).times
    nodes = starts(400, graph=graph, pursuers=pursuers, solve=True, starts="winnable")["node"]
    assert (times[tuple(nodes[:, : pursuers + 1].T)] > 0).all()
    plain = starts(400, graph=graph, pursuers=pursuers)["node"]
    assert (times[tuple(plain[:, : pursuers + 1].T)] < 0).any()


@pytest.mark.check
@compiles
def test_where_no_draw_of_pursuers_is_winnable_they_start_where_they_win():
    rules: dict[str, Any] = {"need": 3, "radius": 0}
    times = pursuit("cycle:30", 3, **rules).times
    assert (times > 0).any(axis=3).mean() < 0.03, "32 draws are not enough for all matches"
    nodes = starts(200, graph="cycle:30", pursuers=3, solve=rules, starts="winnable")["node"]
    assert (times[tuple(nodes[:, :4].T)] > 0).all()


@compiles
def test_the_number_of_pursuers_is_drawn_uniformly_and_the_absent_are_not_in_the_match():
    states = starts(9000, graph="grid:3x3", pursuers=3, fewest_pursuers=1)
    there = states["alive"][:, :3]
    counts = np.bincount(there.sum(axis=1, dtype=int), minlength=4)
    assert counts[0] == 0
    assert are_about_equal(counts[1:])
    assert (np.diff(there.astype(int), axis=1) <= 0).all(), "the first ones are there"
    assert (states["acting"][:, :3] == there).all()
    assert (states["alive"][:, 3] == 1).all()


@compiles
def test_an_evader_may_start_where_an_absent_pursuer_would_be():
    states = starts(500, graph="grid:3x3", pursuers=3, fewest_pursuers=1)
    alone = states["alive"][:, :3].sum(axis=1) == 1
    assert (states["node"][alone, 3] == states["node"][alone, 2]).any()


@compiles
def test_each_match_draws_one_graph_of_a_pool():
    states = starts(8000, graph=["path:3", "cycle:7", "grid:3x3", "petersen"], pursuers=2)
    assert are_about_equal(np.bincount(states["graph"], minlength=4))
    sizes = np.array([3, 7, 9, 10])[states["graph"]]
    assert (states["node"][:, :3] < sizes[:, None]).all()
    assert all(states["node"][states["graph"] == k, 2].max() == size - 1 for k, size in enumerate((3, 7, 9, 10)))


@pytest.mark.jitless
def test_a_seed_starts_the_same_match():
    first, second = (hunt("grid:4x4", 5, seed=9, pursuers=2) for _ in range(2))
    assert [nodes_of(first, k) for k in range(5)] == [nodes_of(second, k) for k in range(5)]


# -------------------------------------------------------------------------------------------------------------- refused


def like_networkx(*edges: tuple[Any, Any], directed: bool = False) -> Any:
    """What is read of a networkx graph."""
    nodes = tuple(dict.fromkeys(node for edge in edges for node in edge))
    return SimpleNamespace(name="trio", nodes=nodes, edges=edges, is_directed=lambda: directed)


TWO_PARTS = np.array([[0, 1], [1, 2], [3, 4]])
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"graph": []}, "graph must be at least one graph, got an empty list"),
    ({"graph": np.zeros((0, 2), int)}, "the edge array is empty"),
    ({"graph": Graph("lonely", 1, np.zeros((0, 2), int))}, "lonely: no possible start, it has a single node"),
    ({"graph": like_networkx((0, 1), directed=True)}, "the graph is directed, teams move both ways"),
    ({"graph": np.array([[0, 1], [1, 0]])}, "edge 0-1 is there twice"),
    ({"graph": np.array([[0, 1], [1, 1]])}, "edge 1-1 joins a node with itself"),
    ({"graph": np.array([[0, k] for k in range(1, 66)])}, "node 0 has 65 neighbours, at most 64 are possible"),
    ({"graph": np.array([[k, k + 1] for k in range(4096)])}, "a graph has 1 to 4096 nodes, this one has 4097"),
    ({"graph": "grd:3x3"}, "no graph 'grd:3x3': did you mean grid:"),
    ({"graph": "grid:3"}, "graph 'grid:3' must look like"),
    ({"exits": [100]}, "grid:10x10 has no node 100"),
    ({"exits": 100}, "exits must be an integer from 0 to 99, got 100"),
    ({"exits": range(100)}, "grid:10x10: no possible start, every node is an exit"),
    (
        {"graph": TWO_PARTS, "starts": "together"},
        'starts="together": it is not connected, no way leads from node 0',
    ),
    ({"graph": TWO_PARTS, "starts": "winnable", "solve": True}, "is not connected, no way leads from node 0 to 3"),
    ({"starts": "winnable"}, 'starts="winnable" needs the solution: give solve=True'),
    (
        {"graph": "complete:3", "starts": "winnable", "solve": {"radius": 1}},
        "complete:3: no possible start, 2 pursuers win",
    ),
    ({"pursuers": 4, "solve": True}, "4 pursuers on grid:10x10 (100 nodes) would take 20.0 GB, at most 4 are allowed"),
    ({"solve": {"need": 3}}, "solve['need'] must be an integer from 1 to 2, got 3"),
    ({"solve": {"radius": -1}}, "solve['radius'] must be an integer from 0"),
    ({"solve": {"need": 1, "vision": 2}}, "solve must be True, False or a dict"),
    ({"solve": "yes"}, "solve must be True, False or a dict"),
    ({"solve": True, "evaders": 2}, "solve needs one evader and always as many pursuers"),
    ({"solve": True, "fewest_pursuers": 1}, "solve needs one evader and always as many pursuers"),
    ({"fewest_pursuers": 3}, "fewest_pursuers must be at most pursuers=2, got 3"),
]


@pytest.mark.parametrize(("keywords", "message"), REFUSED, ids=[message[:40] for _, message in REFUSED])
def test_a_wrong_keyword_is_named(keywords: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=re.escape(message)):
        game(**keywords)


def test_a_damaged_file_is_named_with_its_line(tmp_path: Path):
    path = tmp_path / "city.edges"
    path.write_text("a b\nb c d\n", encoding="utf-8")
    with pytest.raises(FileError, match=r"city\.edges, line 2: 3 words; a line is an edge"):
        game(path)


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ({"need": 3}, "need"),
        ({"start_hops": 19}, "start_hops"),
        ({"radius": -1}, "radius"),
        ({"need": 1.5}, "need"),
    ],
)
def test_a_number_out_of_range_is_named(numbers: dict[str, float], message: str):
    with pytest.raises(ValueError, match=message):
        make_batch(ID, 1, compiled=False, **numbers)


def test_the_rules_that_were_solved_may_not_be_changed():
    with pytest.raises(ValueError, match="radius"):
        make_batch(ID, 1, compiled=False, graph="petersen", solve=True, radius=1)


@pytest.mark.parametrize("flag", [False, np.False_])
def test_a_game_that_is_not_solved_has_no_optimal_script(flag: Any):
    assert "optimal" not in game("petersen", solve=flag).scripts
    assert "optimal" in game("petersen", solve=True).scripts


def test_exits_may_be_named_by_their_labels():
    (graph,) = read(like_networkx(("a", "b"), ("b", "c")))
    assert game(graph, exits=["c"], pursuers=1).world.exits[0].tolist() == [2]
