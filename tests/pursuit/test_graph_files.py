"""Files of graphs in the formats of others: equal to what networkx reads, or refused with what to do."""

from __future__ import annotations

import io
import itertools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palaestra.core.files import FileError, TextFile
from palaestra.games.pursuit import graph_pursuit
from palaestra.games.pursuit.graphs import Graph, read
from palaestra.replay import load, record, verify

nx = pytest.importorskip("networkx")
pytestmark = pytest.mark.jitless

AT_ONCE_S = 2.0
Named = tuple[set[str], set[frozenset[str]]]


def shifted() -> Any:
    return nx.relabel_nodes(nx.dodecahedral_graph(), {node: node + 1 for node in range(20)})


def words() -> Any:
    graph = nx.krackhardt_kite_graph()
    return nx.relabel_nodes(graph, {node: f"street_{'abcdefghij'[node]}" for node in graph})


def parts() -> Any:
    """A star, a triangle and a node without edges."""
    graph = nx.disjoint_union(nx.star_graph(4), nx.cycle_graph(3))
    graph.add_node(8)
    return graph


GRAPHS = {"petersen": nx.petersen_graph, "numbers from 1": shifted, "words": words, "parts": parts}


def named(graph: Any) -> Named:
    """Names of the nodes and of the ends of the edges, of a graph of networkx or of ours."""
    if isinstance(graph, Graph):
        edges = {frozenset(graph.labels[node] for node in edge) for edge in graph.edges.tolist()}
        return set(graph.labels), edges
    return set(map(str, graph)), {frozenset(map(str, edge[:2])) for edge in graph.edges}


def counted(graph: Any, first: int = 1) -> Any:
    """The graph with numbers as names, as formats have it that keep no names."""
    return nx.convert_node_labels_to_integers(graph, first)


def written(write: Callable[..., None], graph: Any, **options: Any) -> str:
    file = io.BytesIO()
    write(graph, file, **options)
    return file.getvalue().decode()


def rows(graph: Any, line: str) -> str:
    return "".join(line.format(*edge) for edge in counted(graph).edges)


def by_networkx(write: Any, back: Any, suffix: str, **options: Any) -> Callable[[Any], tuple[str, str, Any]]:
    def make(graph: Any) -> tuple[str, str, Any]:
        graph = counted(graph, 0) if suffix in (".g6", ".s6") else graph
        text = written(write, graph, **options)
        return f"graph{suffix}", text, back(io.BytesIO(text.encode()))

    return make


def csv(separator: str, header: str, row: str) -> Callable[[Any], tuple[str, str, Any]]:
    def make(graph: Any) -> tuple[str, str, Any]:
        text = header + "".join(row.format(*edge) for edge in graph.edges)
        return "graph.csv", text.replace(",", separator), nx.Graph(graph.edges)

    return make


def metis(graph: Any) -> tuple[str, str, Any]:
    near = [" ".join(str(other) for other in counted(graph)[node]) for node in counted(graph)]
    return "graph.any", "\n".join([f"% written by hand\n{len(graph)} {graph.size()}", *near]) + "\n", counted(graph)


def weighted_metis(graph: Any) -> tuple[str, str, Any]:
    near = ["5 " + " ".join(f"{other} 7" for other in counted(graph)[node]) for node in counted(graph)]
    return "graph.graph", "\n".join([f"{len(graph)} {graph.size()} 011", *near]) + "\n", counted(graph)


def dimacs(graph: Any) -> tuple[str, str, Any]:
    return "graph.col", f"c a graph\np edge {len(graph)} {graph.size()}\n" + rows(graph, "e {} {}\n"), counted(graph)


def dimacs_arcs(graph: Any) -> tuple[str, str, Any]:
    text = rows(graph, "a {0} {1} 9\na {1} {0} 9\n")
    return "graph.gr", f"c roads\np sp {len(graph)} {2 * graph.size()}\n{text}", counted(graph)


def symmetric_matrix(graph: Any) -> tuple[str, str, Any]:
    size = f"%%MatrixMarket matrix coordinate pattern symmetric\n% a graph\n{len(graph)} {len(graph)} {graph.size()}\n"
    return "graph.mtx", size + rows(graph, "{1} {0}\n"), counted(graph)


def general_matrix(graph: Any) -> tuple[str, str, Any]:
    size = f"%%MatrixMarket matrix coordinate real general\n{len(graph)} {len(graph)} {2 * graph.size()}\n"
    return "graph.mtx", size + rows(graph, "{0} {1} 1.5\n{1} {0} 1.5\n"), counted(graph)


def pajek_matrix(graph: Any) -> tuple[str, str, Any]:
    near = [" ".join(str(int(graph.has_edge(a, b))) for b in graph) for a in graph]
    return "graph.net", "\n".join([f"*Vertices {len(graph)}", "*Matrix", *near]), counted(graph)


FORMATS = {
    "edges": by_networkx(nx.write_edgelist, nx.read_edgelist, ".edges"),
    "edges, no data": by_networkx(nx.write_edgelist, nx.read_edgelist, ".txt", data=False),
    "CSV": csv(",", "", "{},{}\n"),
    "CSV with a header": csv(",", "Source,Target,Weight\r\n", '"{}", {},0.5\r\n'),
    "semicolons": csv(";", "id,from,to\n", "7,{},{}\n"),
    "tabs": csv("\t", "# two columns\n", "{},{}\n"),
    "adjacency": by_networkx(nx.write_adjlist, nx.read_adjlist, ".adjlist"),
    "graph6": by_networkx(nx.write_graph6, nx.read_graph6, ".g6"),
    "graph6, no header": by_networkx(nx.write_graph6, nx.read_graph6, ".g6", header=False),
    "sparse6": by_networkx(nx.write_sparse6, nx.read_sparse6, ".s6"),
    "sparse6, no header": by_networkx(nx.write_sparse6, nx.read_sparse6, ".s6", header=False),
    "GML": by_networkx(nx.write_gml, nx.read_gml, ".gml"),
    "GraphML": by_networkx(nx.write_graphml, nx.read_graphml, ".graphml"),
    "GEXF": by_networkx(nx.write_gexf, nx.read_gexf, ".gexf"),
    "Pajek": by_networkx(nx.write_pajek, nx.read_pajek, ".net"),
    "Pajek matrix": pajek_matrix,
    "METIS": metis,
    "METIS with weights": weighted_metis,
    "DIMACS": dimacs,
    "DIMACS arcs": dimacs_arcs,
    "Matrix Market": symmetric_matrix,
    "Matrix Market, general": general_matrix,
}


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("format", FORMATS)
def test_a_file_is_the_graph_that_networkx_reads(format: str, graph: str):
    name, text, expected = FORMATS[format](GRAPHS[graph]())
    (found,) = read(TextFile(name, text))
    assert named(found) == named(expected)


REFUSED = {
    "weights without a header": (nx.write_weighted_edgelist, r'3 words; a line is .*"source target weight"'),
    "neighbours without a suffix": (nx.write_adjlist, r"words; a line is an edge, .* suffix \.adjlist"),
    "neighbours on lines": (nx.write_multiline_adjlist, r"neighbours on lines of their own: pass networkx"),
}


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("format", REFUSED)
def test_a_file_that_may_mean_another_graph_is_refused_by_name(format: str, graph: str):
    write, message = REFUSED[format]
    made = GRAPHS[graph]()
    nx.set_edge_attributes(made, 2, "weight")
    with pytest.raises(FileError, match=message):
        read(TextFile("graph.txt", written(write, made)))


MAPS = [
    "....\n.@.T\n....",
    "..@\n@..\n..W",
    "GGSS.\nG@@S.\n.O.O.\n.....",
    ".",
]


@pytest.mark.parametrize("kind", ["octile", "tile"])
@pytest.mark.parametrize("cells", MAPS)
def test_open_cells_of_a_map_are_nodes_and_no_diagonal_cuts_a_corner(cells: str, kind: str):
    lines = cells.split("\n")
    text = f"type {kind}\nheight {len(lines)}\nwidth {len(lines[0])}\nmap\n{cells}\n"
    expected = nx.Graph()
    expected.add_nodes_from((x, y) for y, row in enumerate(lines) for x, cell in enumerate(row) if cell in ".GS")
    for (x, y), (to_x, to_y) in itertools.combinations(expected, 2):
        corners = {(x, to_y), (to_x, y)}
        if (
            max(abs(x - to_x), abs(y - to_y)) == 1
            and corners <= set(expected)
            and (kind == "octile" or len(corners & {(x, y), (to_x, to_y)}) == 2)
        ):
            expected.add_edge((x, y), (to_x, to_y))
    (found,) = read(TextFile("arena.map", text))
    assert named(found) == named(expected)
    assert found.node_of([0, 0]) == found.node_of((0, 0)) == 0
    assert found.places is not None
    assert found.places[0].tolist() == [0.0, 0.0]


# ------------------------------------------------------------------------------------------- what is no graph, or bad

TRIANGLE = "1 2\n2 3\n1 3\n"
NODES = '<node id="a"/><node id="b"/><node id="c"/>'
GRAPHML = '<graphml><graph edgedefault="undirected">{}</graph></graphml>'
GML = 'graph [ node [ id 1 label "a" ] node [ id 2 label "{}" ] {} ]'


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        # other formats and tables
        ("a.txt", '{"nodes": [], "links": []}', r"JSON: pass networkx\.node_link_graph"),
        ("a.txt", "graph G {\n a -- b;\n}\n", "DOT: pass networkx"),
        ("a.txt", "LEDA.GRAPH\nstring\nint\n", "LEDA: pass networkx"),
        ("a.txt", "dl n=3 format=edgelist1\n", "UCINET"),
        ("a.txt", "% bip unweighted\n1 1\n1 2\n", "KONECT, of two kinds of nodes"),
        ("a.txt", "&BG", "digraph6: teams move both ways"),
        ("a.txt", "<html><node id='a'/></html>", "of XML GraphML and GEXF are read, got html"),
        ("a.csv", "Id,Label\n1,Ann\n2,Bob\n", "no two lines share a node"),
        ("a.csv", "0,1,1\n1,0,1\n1,1,0\n", "line 1: 3 words"),
        ("a.csv", "12.5 3.25\n7.5 8.25\n", "no two lines share a node"),
        ("a.txt", "0 1\n1\n", None),
        ("a.txt", "5 3\n1 2\n2 3\n3 4\n", "the first line may say how many nodes and edges there are"),
        ("a.txt", "4 3\n0 1\n1 2\n2 3\n", "the first line may say how many nodes and edges there are"),
        ("a.txt", "1 2\n5 3\n2 3\n3 4\n", None),
        ("a.txt", "hall\ngate\n", "a graph without edges: it has 2 nodes"),
        ("a.txt", "", "no node"),
        ("a.txt", "0, 1\n1 2\n", "line 1: a comma or semicolon, which other lines do not have"),
        ("a.csv", 'a,b\nb,"c\n', "unexpected end of data"),
        ("a.csv", "a,b\nb,\n", "line 2: an empty name"),
        ("a.csv", "source,target,weight\na,b\n", "line 2: 2 words"),
        # damage
        ("a.g6", ">>graph6<<IsP@OkWH", "graph6: 10 nodes need 8 letters after their number, got 7"),
        ("a.s6", ">>sparse6<<:Cd\u00e9", "graph6: a letter that it does not have"),
        ("a.gml", "graph [ node [ id 1 ]", "a file is one graph, and each"),
        ("a.gml", GML.format("a", ""), "two nodes are called a"),
        ("a.gml", GML.format("b", "edge [ source 1 target 3 ]"), "an edge of node 3, which is not listed"),
        ("a.gml", GML.format("b", "edge [ source 1 ]"), "without 'target'"),
        ("a.graphml", GRAPHML.format(NODES + '<edge source="a"/>'), "an element without 'target'"),
        ("a.graphml", GRAPHML.format(NODES + '<edge source="a" target="z"/>'), "node z, which is not listed"),
        ("a.graphml", GRAPHML.format(NODES)[:-9], "no XML: "),
        ("a.graphml", GRAPHML.format(NODES + "<hyperedge/>"), "a hyperedge"),
        (
            "a.graphml",
            '<!DOCTYPE g [<!ENTITY a "a">]>' + GRAPHML.format(NODES + '<edge source="&a;" target="b"/>'),
            "XML with a document type, whose entities are not expanded",
        ),
        ("a.graphml", "<graphml><graph/><graph/></graphml>", "a file is one graph, got 2"),
        ("a.net", '*Vertices 2\n1 "a"\n2 "a"\n*Edges\n1 2\n', "two nodes are called a"),
        ("a.net", "*Vertices 2\n*Edges\n1 3\n", "line 3: a node must be a whole number from 1 to 2, got '3'"),
        ("a.net", "*Vertices 2\n*Partition\n1\n", "line 2: of Pajek vertices, edges and arcs are read"),
        ("a.col", "p edge 3 3\ne 1 2\n", "DIMACS: the line p says 3 edges, got 1"),
        ("a.col", "p edge 3 1\ne 1 4\n", "line 2: a node must be a whole number from 1 to 3, got '4'"),
        ("a.mtx", "%%MatrixMarket matrix array real general\n2 2\n", "a sparse matrix is read"),
        ("a.mtx", "%%MatrixMarket matrix coordinate real symmetric\n3 2 1\n2 1\n", "as many columns as rows"),
        ("a.mtx", "%%MatrixMarket matrix coordinate real symmetric\n3 3 2\n2 1\n", "says 2 entries, got 1"),
        ("a.graph", "3 2\n2\n1 3\n", "METIS: line 1 says 3 nodes"),
        ("a.graph", "3 2\n2\n1 3\n1\n", "METIS: a node is a neighbour of another one"),
        ("a.graph", "3 3\n2\n1 3\n2\n", "METIS: 3 edges are 6 neighbours"),
        ("a.map", "type octile\nheight 2\nwidth 2\nmap\n..\n", "the map must have 2 rows of 2 cells"),
        ("a.map", "type octile\nheight 1\nwidth 2\nmap\n.x\n", "a map has the cells"),
        # not simple
        (
            "a.graphml",
            GRAPHML.replace("un", "").format(NODES + '<edge source="a" target="b"/>'),
            "edge a-b leads one way",
        ),
        ("a.gml", GML.format("b", "directed 1 edge [ source 1 target 2 ]"), "edge a-b leads one way"),
        ("a.net", "*Vertices 2\n*Arcs\n1 2\n", "edge 1-2 leads one way"),
        ("a.gr", "p sp 2 1\na 1 2 5\n", "edge 1-2 leads one way"),
        ("a.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 2\n2 1 1\n1 1 1\n", "2-1 leads .* 1-1 joins"),
    ],
)
def test_a_file_is_never_read_as_another_graph(name: str, text: str, message: str | None):
    if message is None:
        assert read(TextFile(name, text))
        return
    with pytest.raises(FileError, match=message) as refusal:
        read(TextFile(name, text))
    assert name in str(refusal.value)


@pytest.mark.parametrize("text", ["source target\n1 2\n2 3\n1 3\n", "hello world\n1 2\n2 3\n1 3\n", TRIANGLE])
def test_a_first_line_that_names_the_columns_is_no_edge(text: str):
    assert named(read(TextFile("a.txt", text))[0]) == named(nx.Graph([(1, 2), (2, 3), (1, 3)]))


def test_a_mark_of_a_comment_within_a_name_is_a_part_of_it():
    for name in ("a.txt", "a.adjlist"):
        (graph,) = read(TextFile(name, "a#1 b  # the way out\nb c#\n"))
        assert graph.labels == ("a#1", "b", "c#")


def test_a_first_line_whose_names_come_again_is_an_edge():
    assert len(read(TextFile("a.txt", "source target\ntarget end\n"))[0].edges) == 2
    assert len(read(TextFile("a.txt", "hall market\n1 2\nmarket 1\n"))[0].edges) == 3


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_encodings_and_ends_of_lines_change_no_name(tmp_path: Path, encoding: str, end: str):
    path = tmp_path / "city.edges"
    path.write_bytes(f"Caf\u00e9 Ost{end}Ost West{end}".encode(encoding))
    assert read(path)[0].labels == ("Caf\u00e9", "Ost", "West")


def test_a_file_of_graph6_is_a_pool(tmp_path: Path):
    graphs = [nx.petersen_graph(), nx.path_graph(5), nx.cycle_graph(7)]
    text = "".join(written(nx.write_graph6, graph, header=False) for graph in graphs)
    assert list(map(named, read(TextFile("a.g6", text)))) == list(map(named, graphs))


BOMB = "<!DOCTYPE g [<!ENTITY a 'aaaaaaaaaa'>" + "".join(
    f"<!ENTITY {b} '{f'&{a};' * 10}'>" for a, b in itertools.pairwise("abcdefghij")
)
HOSTILE = {
    "entities": f"{BOMB}]><graphml>&j;</graphml>",
    "an entity of a file": "<!DOCTYPE g [<!ENTITY a SYSTEM 'file:///etc/passwd'>]><graphml>&a;</graphml>",
    "deep XML": "<graphml>" + "<a>" * 1_000_000,
    "many nodes": GRAPHML.format("".join(f'<node id="{k}"/>' for k in range(200_000))),
    "many edges": GRAPHML.format(NODES + '<edge source="a" target="b"/>' * 200_000),
    "deep GML": "graph [ " + "a [ " * 1_000_000,
    "many words": "a " * 4_000_000,
    "many blank lines": "graph\n" * 10 + "\n" * 8_000_000,
    "many graphs": "A_\n" * 2_500_000,
    "a long graph6": "~" * 8_000_000,
    "a long sparse6": ":~??" + "@" * 8_000_000,
    "a vast map": "type octile\nheight 2000\nwidth 2000\nmap\n" + ("." * 2000 + "\n") * 2000,
    "a vast matrix": "%%MatrixMarket matrix coordinate real general\n999999999 999999999 1\n1 1\n",
    "vast METIS": "4096 100000\n" + "1 " * 4_000_000,
    "many entries": "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 900000\n" + "2 1\n" * 900_000,
    "long names": "x" * 4_000_000 + "," + "\x1b" * 4_000_000 + "\n",
    "a long number": "p edge " + "9" * 1_000_000 + " 1\n",
    "a matrix of Pajek": "*Vertices 4096\n*Matrix\n" + "1 " * 4_000_000,
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if "entit" in name else pytest.mark.slow) for name in HOSTILE]
)
def test_a_hostile_file_is_refused_at_once(name: str):
    began = time.process_time()
    with pytest.raises(FileError, match=r"evil\.txt") as refusal:
        graph_pursuit.game(TextFile("evil.txt", HOSTILE[name]))
    assert time.process_time() - began < AT_ONCE_S
    assert str(refusal.value).isprintable()
    assert len(str(refusal.value)) < 600


@pytest.mark.parametrize(
    ("name", "text", "exits"),
    [
        ("arena.map", "type octile\nheight 2\nwidth 3\nmap\n...\n.@.\n", [(0, 1), (2, 1)]),
        ("town.graphml", GRAPHML.format(NODES + '<edge source="a" target="b"/><edge source="b" target="c"/>'), ["c"]),
        ("town.csv", "source,target,km\n1,2,0.5\n2,3,1.5\n", [3]),
    ],
)
def test_a_replay_holds_the_file_and_the_names_of_its_nodes(tmp_path: Path, name: str, text: str, exits: Any):
    (tmp_path / name).write_text(text)
    keywords = {"graph": str(tmp_path / name), "exits": exits, "evaders": 1, "pursuers": 1}
    record("palaestra/GraphPursuit-v0", max_cycles=2, seed=1, **keywords).save(tmp_path / "match.npz")
    (tmp_path / name).unlink()
    assert verify(load(tmp_path / "match.npz")).ok
