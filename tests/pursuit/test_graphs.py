"""Graphs by name, from arrays, networkx and files: their shapes, their hops, and what is refused."""

from __future__ import annotations

import hashlib
from collections import deque
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import palaestra_assets
from palaestra.core.files import FileError
from palaestra.games.pursuit import families, graphs
from palaestra.games.pursuit.graph_ground import exits_of
from palaestra.games.pursuit.graphs import Graph, read

pytestmark = pytest.mark.jitless


def one(source: Any) -> Graph:
    (graph,) = read(source)
    return graph


def hops_by_search(graph: Graph) -> np.ndarray:
    """Hops by a search in breadth from each node, in plain Python."""
    near: list[list[int]] = [[] for _ in range(graph.nodes)]
    for a, b in graph.edges.tolist():
        near[a].append(b)
        near[b].append(a)
    found = np.full((graph.nodes, graph.nodes), graphs.UNREACHABLE)
    for start in range(graph.nodes):
        found[start, start] = 0
        ahead = deque([start])
        while ahead:
            node = ahead.popleft()
            for other in near[node]:
                if found[start, other] == graphs.UNREACHABLE:
                    found[start, other] = found[start, node] + 1
                    ahead.append(other)
    return found


# ------------------------------------------------------------------------------------------------------------ families

SHAPES = {  # nodes, edges, least and most neighbours, diameter
    "grid:3x4": (12, 17, 2, 4, 5),
    "grid:1x1": (1, 0, 0, 0, 1),
    "path:9": (9, 8, 1, 2, 8),
    "cycle:12": (12, 12, 2, 2, 6),
    "tree:2x4": (31, 30, 1, 3, 8),
    "tree:3x0": (1, 0, 0, 0, 1),
    "torus:5x5": (25, 50, 4, 4, 4),
    "king:5x5": (25, 72, 3, 8, 4),
    "cube:4": (16, 32, 4, 4, 4),
    "complete:6": (6, 15, 5, 5, 1),
    "petersen": (10, 15, 3, 3, 2),
    "heawood": (14, 21, 3, 3, 3),
    "dodecahedron": (20, 30, 3, 3, 5),
}


@pytest.mark.parametrize("name", SHAPES)
def test_families_have_the_shapes_of_their_names(name: str):
    graph = one(name)
    least, most = graph.degrees.min(), graph.degrees.max()
    assert (graph.nodes, len(graph.edges), least, most, graph.diameter) == SHAPES[name]
    assert graph.is_connected


@pytest.mark.parametrize(("name", "girth"), [("petersen", 5), ("heawood", 6), ("dodecahedron", 5), ("cube:4", 4)])
def test_shortest_cycles(name: str, girth: int):
    graph, found = one(name), []
    for k in range(len(graph.edges)):
        without = Graph("without", graph.nodes, np.delete(graph.edges, k, axis=0))
        found.append(1 + without.hops[tuple(graph.edges[k])])
    assert min(found) == girth


@pytest.mark.parametrize(("nodes", "degree"), [(10, 3), (200, 4), (60, 8)])
def test_random_regular_graphs_are_regular_and_connected(nodes: int, degree: int):
    graph = one(f"regular:{nodes}x{degree}")
    assert set(graph.degrees) == {degree}
    assert graph.is_connected


def test_scale_free_graphs_have_few_large_nodes():
    graph = one("scale_free:200x2")
    assert (graph.nodes, len(graph.edges), graph.degrees.min()) == (200, 3 + 197 * 2, 2)
    assert graph.degrees.max() > 5 * np.median(graph.degrees)


@pytest.mark.parametrize("name", ["dungeons:12x60", "streets:12x60"])
def test_pools_hold_different_connected_graphs_of_one_size(name: str):
    pool = read(name)
    assert len(pool) == 12
    assert {graph.nodes for graph in pool} == {60}
    assert all(graph.is_connected for graph in pool)
    assert len({graph.edges.tobytes() for graph in pool}) == 12
    assert graphs.class_of(pool) <= 9
    assert all(graph.places is not None and len(np.unique(graph.places, axis=0)) == 60 for graph in pool)


def test_dungeons_have_rooms_and_corridors():
    for graph in read("dungeons:12x120"):
        assert (graph.degrees >= 5).sum() > 10  # inside and along rooms
        assert (graph.degrees <= 2).sum() > 10


@pytest.mark.parametrize("family", ["regular:30x3", "scale_free:30x2", "dungeons:2x30", "streets:2x30"])
def test_seeds_make_other_graphs(family: str):
    first, other, again = (read(f"{family}:{seed}")[0].edges for seed in (0, 1, 0))
    assert first.tolist() == again.tolist() == read(family)[0].edges.tolist()
    assert first.tolist() != other.tolist()


def test_generated_graphs_are_the_same_on_every_machine():
    names = ["regular:200x4", "scale_free:200x2", "dungeons:8x200", "streets:8x200", "dungeons:4x60:7"]
    digest = hashlib.sha256()
    for name in names:
        for graph in read(name):
            digest.update(graph.edges.astype("<i8").tobytes())
    assert digest.hexdigest()[:16] == "4bc6edaddc8ec7f9"


# ---------------------------------------------------------------------------------------------------------------- hops


@pytest.mark.check
@pytest.mark.parametrize("name", ["grid:4x7", "heawood", "dungeons:1x90", "scale_free:70x3", "tree:3x3", "path:1200"])
def test_hops_are_those_of_a_search(name: str):
    graph = one(name)
    np.testing.assert_array_equal(graph.hops, hops_by_search(graph))
    assert graph.hops.dtype == np.int16


def test_no_way_between_parts_of_a_graph():
    graph = Graph("parts", 5, np.array([[0, 1], [2, 3]]))
    assert not graph.is_connected
    assert graph.hops[0].tolist() == [0, 1, -1, -1, -1]
    np.testing.assert_array_equal(graph.hops, hops_by_search(graph))


def test_closed_neighbourhoods_begin_with_the_node_itself():
    graph = one([[2, 0], [1, 2], [2, 3]])
    assert graph.neighbours.tolist() == [[0, 2, -1, -1], [1, 2, -1, -1], [2, 0, 1, 3], [3, 2, -1, -1]]


@pytest.mark.parametrize(("name", "size"), [("cycle:5", 5), ("cube:4", 5), ("complete:6", 9), ("complete:65", 65)])
def test_degree_classes(name: str, size: int):
    assert graphs.class_of(read(name)) == size


# ------------------------------------------------------------------------------------------------------ what users give


class Networkx:
    """What is read of a networkx graph."""

    name = "trio"
    nodes = ("b", "a", "c")

    def __init__(self, edges: Any = (("a", "b"), ("b", "c")), directed: bool = False) -> None:
        self.edges, self.directed = edges, directed

    def is_directed(self) -> bool:
        return self.directed


def test_a_networkx_graph_keeps_the_names_of_its_nodes():
    graph = one(Networkx())
    assert (graph.name, graph.labels, graph.edges.tolist()) == ("trio", ("b", "a", "c"), [[0, 1], [0, 2]])
    assert graph.node_of("c") == graph.node_of(2) == 2


def test_lists_of_graphs_are_pools():
    assert [graph.name for graph in read(["petersen", "cycle:5"])] == ["petersen", "cycle:5"]
    assert [graph.nodes for graph in read([one("path:3"), [[0, 1]]])] == [3, 2]


def test_a_file_has_a_line_for_each_edge(tmp_path: Path):
    file = tmp_path / "town.edges"
    file.write_text("# a town\nhall market\n\nmarket gate # the way out\nhill\n")
    for source in (file, str(file)):
        graph = one(source)
        assert (graph.name, graph.labels) == ("town", ("hall", "market", "gate", "hill"))
        assert graph.edges.tolist() == [[0, 1], [1, 2]]


def test_whole_numbers_in_a_file_are_the_nodes(tmp_path: Path):
    file = tmp_path / "numbers.txt"
    file.write_text("2 0\n1 10\n" + "".join(f"{k}\n" for k in range(11)))
    graph = one(file)
    assert graph.edges.tolist() == [[0, 2], [1, 10]]
    assert graph.labels == tuple(map(str, range(11)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a b\nb c d\n", r"line 2: 3 words; a line is an edge"),
        ("a b\nc d\nb a\n", r"line 3: edge b-a is in line 1 already"),
        ("a b\na a\n", r"line 2: an edge from a to itself"),
        ("# nothing\n", r"no node"),
        ("".join(f"hub n{k}\n" for k in range(65)), r"node hub has 65 neighbours, at most 64"),
    ],
)
def test_a_damaged_file_is_refused_with_its_line(tmp_path: Path, text: str, message: str):
    file = tmp_path / "bad.edges"
    file.write_text(text)
    with pytest.raises(FileError, match=message):
        read(file)


def test_files_that_cannot_be_read(tmp_path: Path):
    (tmp_path / "bytes.edges").write_bytes(b"\xff\xfe\xff")
    for name in ("bytes.edges", "missing.edges"):
        with pytest.raises(FileError, match=rf"{name}: (no text in UTF-8|cannot be read)"):
            read(tmp_path / name)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("petersn", r"no graph 'petersn': did you mean petersen\?"),
        ("Grid 10", r"no graph 'Grid 10'"),
        ("grid:10", r"'grid:10' must look like 'grid:10x10'"),
        ("petersen:3", r"must look like 'petersen'"),
        ("grid:3x3:1", r"must look like 'grid:10x10'"),
        ("grid:0x3", r"rows must be 1 to 4096, got 0"),
        ("grid:100x100", r"rows x columns must be 1 to 4096, got 10000"),
        ("torus:2x5", r"rows must be 3 to 4096"),
        ("tree:9x9", r"nodes must be 1 to 4096"),
        ("cube:13", r"dimension must be 1 to 12"),
        ("complete:66", r"nodes must be 1 to 65"),
        ("regular:5x3", r"nodes x degree must be even, got 5 x 3"),
        ("scale_free:2x2", r"nodes must be 3 to 4096, got 2"),
        ("dungeons:0x20", r"dungeons must be 1 to 4096, got 0"),
        ("streets:2x5000", r"nodes must be 9 to 4096"),
        ([], r"at least one graph"),
        (7, r"an edge array has the shape \[E, 2\] and whole numbers"),
        (np.zeros((3, 2)), r"an edge array has the shape \[E, 2\] and whole numbers, got float64 \(3, 2\)"),
        (np.zeros((0, 2), int), r"the edge array is empty"),
        ([[0, 1], [-1, 2]], r"edge -1-2: its nodes are 0 to 2"),
        ([[0, 1], [2, 2]], r"edge 2-2 joins a node with itself"),
        ([[0, 1], [1, 0]], r"edge 0-1 is there twice"),
        ([[k, k + 1] for k in range(4096)], r"a graph has 1 to 4096 nodes, this one has 4097"),
        (Networkx(directed=True), r"trio: the graph is directed"),
        (Networkx((("a", "b"), ("b", "a"))), r"trio: edge b-a is there twice: pass a simple graph, g = nx\.Graph\(g\)"),
        (
            Networkx((("a", "b"), ("b", "a"), ("a", "b"), ("b", "c"), ("c", "a"), ("c", "c")), directed=True),
            r"trio: the graph is directed, .* \(edge b-c and 1 more leads one way\), edge a-b is there twice, "
            r"edge c-c joins a node with itself; .*: pass a simple graph, g = nx\.Graph\(g\); g\.remove_edges_from",
        ),
        (Networkx(()), r"trio: a graph without edges: it has 3 nodes"),
        ("city", r"no graph 'city': .*a text with a suffix or a slash is a path"),
        ("maps/city", r"maps/city: cannot be read"),
        ("city.graphml", r"city\.graphml: cannot be read"),
    ],
)
def test_what_is_no_graph_is_refused_by_name(source: Any, message: str):
    with pytest.raises(ValueError, match=message):
        read(source)


def test_a_directed_graph_whose_arcs_lead_both_ways_is_one_of_edges():
    both = Networkx((("a", "b"), ("b", "c"), ("b", "a"), ("c", "b")), directed=True)
    assert one(both).edges.tolist() == [[0, 1], [0, 2]]


class Nodes(Networkx):
    """A path along some nodes."""

    def __init__(self, *nodes: Any) -> None:
        self.nodes = nodes
        super().__init__(tuple(pairwise(nodes)))


FROM_ONE = range(1, 11)
LABELS = [  # nodes, names, their numbers
    (FROM_ONE, [9, 10], (8, 9)),
    (FROM_ONE, ["9", "10"], (8, 9)),
    (FROM_ONE, np.array([9, 10]), (8, 9)),
    (FROM_ONE, [np.int16(9), 10.0], (8, 9)),
    (FROM_ONE, {10, 9}, (8, 9)),
    ((2, 0, 1), [0, 1], (1, 2)),
    ((10, 0, 20), [0, 10], (1, 0)),
    (("9", 9, 8), [9, "9"], (1, 0)),
    ((1.5, 2.0, 3.5), [2, "3.5"], (1, 2)),
    (((0, 0), (0, 1), (1, 1)), [(0, 1), [1, 1]], (1, 2)),
    (((0, 0), (0, 1), (1, 1)), np.array([[0, 1], [1, 1]]), (1, 2)),
    (((0, 0), (0, 1), (1, 1)), ["(0, 1)"], (1,)),
    ((True, "a"), [True], (0,)),
    (("a", "b", "c"), ["c", 0], (2, 0)),
]


@pytest.mark.parametrize(("nodes", "names", "numbers"), LABELS)
def test_names_of_nodes_are_those_of_the_user(nodes: Any, names: Any, numbers: tuple[int, ...]):
    assert one(Nodes(*nodes)).nodes_of(names, "exits") == numbers
    assert exits_of(one(Nodes(*nodes)), names) == numbers


@pytest.mark.parametrize(
    ("nodes", "names", "message"),
    [
        (FROM_ONE, [0], r"trio has no node 0; did you mean 10\?"),
        (FROM_ONE, [11], r"trio has no node 11; did you mean 1\?"),
        (FROM_ONE, [True], r"trio has no node True: nodes are 1 to 10"),
        (FROM_ONE, [9.5], r"trio has no node 9\.5: nodes are 1 to 10"),
        (FROM_ONE, [None], r"trio has no node None"),
        (FROM_ONE, "10", r"exits must be a list of nodes, got '10'"),
        (FROM_ONE, [[[1]]], r"trio has no node"),
        (FROM_ONE, [{1}], r"a node is a number, a text or a tuple of these, got a set"),
        (FROM_ONE, [9, 9], r"exits names node 9 of trio twice, as 9 and 9"),
        (FROM_ONE, [9, "9"], r"exits names node 9 of trio twice, as 9 and '9'"),
        (FROM_ONE, [9, np.int64(9)], r"exits names node 9 of trio twice, as 9 and 9"),
        (("a", "b", "c"), ["c", 2], r"exits names node c of trio twice, as 'c' and 2"),
        (("a", "b", "c"), [3], r"trio has no node 3: nodes are a to c"),
        (("9", "10"), [0], r"trio has no node 0; did you mean 10\?"),
        (((0, 0), (0, 1)), [0], r"trio has no node 0: nodes are '\(0, 0\)' to '\(0, 1\)'"),
        (((0, 0), (0, 1)), (0, 1), r"trio has no node 0"),
        ((1, (1,), "(1,)"), [[1], "(1,)", 1.0, (1,)], r"exits names node '\(1,\)' of trio twice"),
    ],
)
def test_a_name_is_refused_that_names_no_node_or_one_that_is_named_already(nodes: Any, names: Any, message: str):
    with pytest.raises(ValueError, match=message):
        one(Nodes(*nodes)).nodes_of(names, "exits")


def test_a_name_that_two_nodes_have_as_text_is_refused():
    graph = one(Nodes((1, 2), 1, "(1, 2)", "1"))
    assert [graph.node_of(name) for name in (1, "1", (1, 2), "(1, 2)")] == [1, 3, 0, 2]
    with pytest.raises(ValueError, match=r"trio: 9 may be node 9 and 9: give it as the graph has it"):
        one(Nodes(Text(9), Text(9), 1)).node_of("9")


class Text:
    """A node of a class of its own, as rustworkx and others have them."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __str__(self) -> str:
        return str(self.number)


@pytest.mark.parametrize("graph", ["path:4", [[0, 1], [1, 2], [2, 3]]])
def test_nodes_without_names_are_numbers(graph: Any):
    assert one(graph).nodes_of([3, "0", np.int8(2)], "exits") == (3, 0, 2)
    for name in (4, -1, True, 1.0):
        with pytest.raises(ValueError, match="has no node"):
            one(graph).node_of(name)


def test_unknown_nodes_are_refused_with_the_nearest():
    graph = one(Networkx())
    with pytest.raises(ValueError, match=r"trio has no node 3: nodes are b to c"):
        graph.node_of(3)
    named = Graph("town", 2, np.array([[0, 1]]), ("market", "gate"))
    with pytest.raises(ValueError, match=r"town has no node markt; did you mean market\?"):
        named.node_of("markt")


def test_every_family_says_how_it_is_written():
    for family in families.FAMILIES.values():
        assert read(family.form.replace("256x", "2x").replace("64x", "2x"))


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("dungeon-200", "dungeons:1x200"),
        ("streets-200", "streets:1x200"),
        ("regular-200x4", "regular:200x4"),
        ("scale-free-200x2", "scale_free:200x2"),
    ],
)
def test_bundled_graphs_are_those_that_are_generated_today(file: str, source: str):
    (bundled,), (generated,) = read(palaestra_assets.path(f"graphs/{file}.edges")), read(source)
    assert bundled.nodes == generated.nodes
    np.testing.assert_array_equal(bundled.edges, generated.edges)
