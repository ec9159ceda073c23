"""Files of graphs: edges line by line, and the formats of others, which their content tells apart.

* GraphML: begins with ``<`` and has the element ``graphml``; GEXF: ``gexf``; GML: ``graph [``.
* Pajek: ``*Vertices`` or ``*Network``. DIMACS: ``p edge 5 7`` (``col``, ``sp``). Matrix Market: ``%%MatrixMarket``.
* MovingAI maps: ``type octile``, ``height``, ``width``, ``map``. Each open cell is a node, called ``(x, y)`` as in
  scenarios; steps are the eight of the format, none cuts a corner (``type tile``: the four straight ones).
* graph6 and sparse6: their headers, or lines of one word each that are such graphs. Each line is a graph.
* METIS: a first line ``nodes edges`` that all lines after it bear out, or the suffix ``.graph`` or ``.metis``.
* Lists of neighbours: the suffix ``.adjlist``; a line is a node and its neighbours.
* Anything else is a list of edges: a line is two names between blanks, tabs, commas or semicolons, or one name, a node
  without edges. A first line that names the columns may stand before it (``source,target,weight``).

Weights and other attributes are left out: each edge is one move. Nothing is fetched, no entity of XML is expanded, and
reading ends at the size of the largest graph that there is.
"""

from __future__ import annotations

import csv
import html
import re
from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import islice
from pathlib import PurePath
from xml.parsers import expat

import numpy as np

from palaestra.core.files import printable, printable_name
from palaestra.pursuit.families import MOST as MOST_NODES

MOST_NEIGHBOURS = 64
MOST_EDGES = MOST_NODES * MOST_NEIGHBOURS // 2
MOST_LINES = 1_000_000
MOST_WORDS = 2 * MOST_NODES + 2
"""Words of a line; the rest is the last one."""
DEEPEST = 100
"""Lists of GML, or elements of XML, within each other."""
SEPARATORS = ("\t", ";", ",")
SOURCES = {"source", "from", "fromnodeid", "from_node", "src", "node1", "node_1", "node_a", "id1", "start"}
TARGETS = {"target", "to", "tonodeid", "to_node", "dst", "node2", "node_2", "node_b", "id2", "end"}
"""Words of a header, in small letters, that name the columns of the nodes."""
OTHERS = (
    (r"[{\[]", "JSON: pass networkx.node_link_graph(json.load(file))"),
    (r"(strict\s+)?(di)?graph\b[^\[]*\{", "DOT: pass networkx.nx_pydot.read_dot(file)"),
    (r"leda\.graph", "LEDA: pass networkx.read_leda(file)"),
    (r"dl\s+n\s*=|nodedef>", "a format of UCINET or GUESS: write GraphML, or a line for each edge"),
    (r"%\s*(bip|asym)\b", "KONECT, of two kinds of nodes or one-way: write a line for each edge between two names"),
    (r">>digraph6<<|&\S+$", "digraph6: teams move both ways, write graph6"),
)
"""How files of formats begin that are not read, and what to do instead."""
TOO_LARGE = f"more than {MOST_NODES} nodes or {MOST_EDGES} edges: none is as large"


class BadGraph(ValueError):
    """What is wrong with the content of a file; the message begins with the line where that is known."""


class Net:
    """Nodes and edges as they are read.

    Attributes:
        number: Numbers of the nodes by name, in the order in which they were named.
        edges: Pairs of numbers.
        arcs: Pairs that lead one way.
        places: float64 ``[V, 2]``, where to draw the nodes.
    """

    def __init__(self, names: Iterable[Hashable] = ()) -> None:
        """Begins with some nodes, each with a name of its own."""
        self.number: dict[Hashable, int] = {}
        self.edges: list[tuple[int, int]] = []
        self.arcs: list[tuple[int, int]] = []
        self.places: np.ndarray | None = None
        for name in names:
            if name in self.number:
                raise BadGraph(f"two nodes are called {printable_name(name)}: give each a name of its own")
            self.node(name)

    def node(self, name: Hashable) -> int:
        """The number of a node, which may be new."""
        found = self.number.setdefault(name, len(self.number))
        if found >= MOST_NODES:
            raise BadGraph(TOO_LARGE)
        return found

    def known(self, name: str) -> int:
        """The number of a node that was named before."""
        if name not in self.number:
            raise BadGraph(f"an edge of node {printable_name(name)}, which is not listed")
        return self.number[name]

    def join(self, a: int, b: int, is_arc: bool = False) -> None:
        """Adds an edge, or an arc."""
        (self.arcs if is_arc else self.edges).append((a, b))
        if len(self.edges) + len(self.arcs) > 2 * (MOST_EDGES + MOST_NODES):
            raise BadGraph(TOO_LARGE)

    def once(self) -> Net:
        """Itself without the second mention of an edge, in formats that may list it at both nodes."""
        self.edges = list(dict.fromkeys((min(edge), max(edge)) for edge in self.edges))
        return self


def parse(text: str, name: str) -> Iterator[Net]:
    """The graphs of a file; one, but a file of graph6 or sparse6 may hold several.

    Args:
        text: The content.
        name: Of the file: its suffix tells lists of neighbours from edges.

    Raises:
        BadGraph: It is of no known format, or damaged; says what is wrong where.
    """
    if text.count("\n") + text.count("\r") > MOST_LINES:
        raise BadGraph(f"more than {MOST_LINES} lines: none is as long")
    lines = text.splitlines()
    begin = next((line.strip() for line in lines if line.strip()), "")
    for pattern, advice in OTHERS:
        if re.match(pattern, begin, re.IGNORECASE):
            raise BadGraph(advice)
    try:
        words = _single_words(lines)
        if words and (begin.startswith(">>") or is_graph6(words[0])):
            yield from map(graph6, words)
        else:
            yield _reader(text, lines, PurePath(name).suffix.lower())(lines)
    except (csv.Error, UnicodeError) as error:
        raise BadGraph(str(error)) from None


def _reader(text: str, lines: list[str], suffix: str) -> Callable[[list[str]], Net]:
    first = next(_rows(lines, "#%"), (0, [""]))[1]
    if text.lstrip()[:1] == "<":
        return lambda _: xml(text)
    if text.lstrip()[:14].lower() == "%%matrixmarket":
        return matrix_market
    if first[0].startswith("*"):
        return pajek
    if first[0] == "type" and [words[0] for _, words in islice(_rows(lines), 1, 4)] == ["height", "width", "map"]:
        return movingai_map
    if first[0].lower() in ("graph", "graph[", "creator", "version") and GML_GRAPH.search(text):
        return lambda _: gml(text)
    if next((len(words) == 4 and words[0] == "p" for _, words in _rows(lines) if words[0] != "c"), False):
        return dimacs
    if suffix in (".graph", ".metis") or is_metis(lines):
        return metis
    return adjacency if suffix == ".adjlist" else edge_list


def _rows(lines: Iterable[str], comments: str = "") -> Iterator[tuple[int, list[str]]]:
    """The words of each line that has some and does not begin with the mark of a comment, with the line's number."""
    for k, line in enumerate(lines, start=1):
        words = line.split(None, MOST_WORDS)
        if words and words[0][0] not in comments:
            yield k, words


def _single_words(lines: list[str]) -> list[str]:
    """The lines, or none if one of them has several words."""
    found = []
    for _, words in _rows(lines):
        if len(words) > 1:
            return []
        found.append(words[0])
    return found


def _is_whole(word: str) -> bool:
    return word.isascii() and word.isdigit() and len(word) <= 9


def _whole(word: str, low: int, high: int, what: str, line: int = 0) -> int:
    """A whole number of a stranger's text."""
    if not (_is_whole(word) and low <= int(word) <= high):
        where = f"line {line}: " if line else ""
        raise BadGraph(f"{where}{what} must be a whole number from {low} to {high}, got {printable(word)}")
    return int(word)


def _numbered(count: str, line: int = 0) -> Net:
    """Nodes called 1, 2, ..."""
    return Net(map(str, range(1, 1 + _whole(count, 1, MOST_NODES, "the number of nodes", line))))


def _node(net: Net, word: str, line: int) -> int:
    """A node of `_numbered`."""
    return _whole(word, 1, len(net.number), "a node", line) - 1


# -- lines of names ----------------------------------------------------------------------------------------------------


def edge_list(lines: list[str]) -> Net:
    """Two names a line, or one; ``{...}`` after them, as networkx writes it, is left out."""
    net, line_of = Net(), {}
    columns, width = (0, 1), 2
    for k, words in _split(lines):
        named = None if line_of else _columns(words)
        if named and len(words) > 2:
            columns, width, line_of[()] = named, len(words), k
            continue
        if len(words) != width and (width, len(words)) != (2, 1):
            raise BadGraph(
                f"line {k}: {len(words)} words; a line is an edge, two names of nodes. Weights need a first line that "
                'names the columns, as "source target weight"; nodes with their neighbours the suffix .adjlist'
            )
        names = words if len(words) == 1 else [words[column] for column in columns]
        edge = tuple(sorted(map(net.node, names)))
        if not all(names):
            raise BadGraph(f"line {k}: an empty name")
        if len(edge) == 2:
            shown = "-".join(map(printable_name, names))
            if edge in line_of:
                raise BadGraph(f"line {k}: edge {shown} is in line {line_of[edge]} already")
            if edge[0] == edge[1]:
                raise BadGraph(f"line {k}: an edge from {printable_name(names[0])} to itself; staying needs none")
            net.join(*edge)
        line_of[edge] = k
    return _without_header(net)


def _split(lines: list[str]) -> Iterator[tuple[int, list[str]]]:
    """The words of each line of edges, between what all lines have between them."""
    full = [line for line in lines if line.strip() and line.strip()[0] not in "#%"]
    separator = next((mark for mark in SEPARATORS if full and all(mark in line for line in full)), None)
    for k, words in _rows(lines, "#%"):
        if separator is None:
            words = lines[k - 1].partition("#")[0].split(None, MOST_WORDS)
            if any("," in word or ";" in word for word in words):
                raise BadGraph(f"line {k}: a comma or semicolon, which other lines do not have: put one in each line")
        else:
            row = csv.reader([lines[k - 1]], delimiter=separator, skipinitialspace=True, strict=True)
            words = [word.strip() for word in next(row)]
        if len(words) > 1 and words[1].startswith("{"):
            raise BadGraph(f"line {k}: neighbours on lines of their own: pass networkx.read_multiline_adjlist(file)")
        yield k, words[:2] if len(words) > 2 and words[2].startswith("{") and words[-1].endswith("}") else words


def _columns(words: list[str]) -> tuple[int, int] | None:
    """The columns of the nodes in a line that names them."""
    low = [word.lower() for word in words]
    found = [next((k for k, word in enumerate(low) if word in known), -1) for known in (SOURCES, TARGETS)]
    return (found[0], found[1]) if min(found) >= 0 else None


def _without_header(net: Net) -> Net:
    """Without the first line, if it names the columns; refuses what is no list of edges."""
    names, used = list(map(str, net.number)), [node for edge in net.edges for node in edge]
    if net.edges[1:] and net.edges[0] == (0, 1) and all(_is_whole(names[node]) for node in used):
        nodes, edges = int(names[0]), int(names[1])
        if edges == len(net.edges) - 1 and max(int(names[node]) for node in used[2:]) <= nodes:
            raise BadGraph("the first line may say how many nodes and edges there are: remove it, or move it down")
    if net.edges[1:] and net.edges[0] == (0, 1) and used.count(0) == used.count(1) == 1:
        numbers = list(map(_is_whole, names))
        if _columns(names[:2]) or (not any(numbers[:2]) and all(numbers[2:])):
            shifted = Net(names[2:])
            for a, b in net.edges[1:]:
                shifted.join(a - 2, b - 2)
            net, used = shifted, used[2:]
    if len(net.edges) > 1 and len(set(used)) == len(used) == len(net.number):
        raise BadGraph("no two lines share a node: is it a list of edges, two names of nodes a line?")
    if not net.number:
        raise BadGraph("no node; a line is an edge, two names of nodes")
    return net


def adjacency(lines: list[str]) -> Net:
    """A node and its neighbours a line."""
    net = Net()
    for _, words in _rows(line.partition("#")[0] for line in lines):
        node, *near = map(net.node, words)
        for other in near:
            net.join(node, other)
    return net.once()


# -- lines of numbers --------------------------------------------------------------------------------------------------


def is_metis(lines: list[str]) -> bool:
    """Whether the numbers of nodes and edges in the first line are those of lists of neighbours after it."""
    if not any(words[0].isdigit() for _, words in islice(_rows(lines, "%"), 1)):
        return False
    try:
        return bool(metis(lines).arcs)
    except BadGraph:
        return False


def metis(lines: list[str]) -> Net:
    """``nodes edges [format [weights]]``, then a line of neighbours for each node, from 1 on."""
    (start, header), *_ = [*islice(_rows(lines, "%"), 1), (0, ["", ""])]
    if not 2 <= len(header) <= 4:
        raise BadGraph(f"line {start}: METIS begins with nodes and edges, at most four numbers")
    net, parts = _numbered(header[0], start), header[2].zfill(3) if len(header) > 2 else "000"
    if not re.fullmatch("[01]{3}", parts):
        raise BadGraph(f"line {start}: the third number of METIS has three digits 0 or 1, got {printable(parts)}")
    sizes, weights, each = parts
    edges = _whole(header[1], 0, MOST_EDGES, "the number of edges", start)
    skip = int(sizes == "1") + (int(weights == "1") if len(header) < 4 else _whole(header[3], 0, 99, "weights", start))
    rest = (
        (k, line.split(None, MOST_WORDS))
        for k, line in enumerate(lines, 1)
        if k > start and not line.lstrip().startswith("%")
    )
    rows = list(islice(rest, len(net.number)))
    if len(rows) < len(net.number) or any(words for _, words in rest):
        raise BadGraph(f"METIS: line {start} says {len(net.number)} nodes, which are as many lines after it")
    for node, (k, words) in enumerate(rows):
        for word in words[skip :: 2 if each == "1" else 1]:
            net.join(node, _node(net, word, k), is_arc=True)
    if len(net.arcs) != 2 * edges:
        raise BadGraph(f"METIS: {edges} edges are {2 * edges} neighbours in all lines, got {len(net.arcs)}")
    if len(set(net.arcs) & {(b, a) for a, b in net.arcs}) != len(net.arcs):
        raise BadGraph("METIS: a node is a neighbour of another one that is not its neighbour")
    return net


def dimacs(lines: list[str]) -> Net:
    """``p edge nodes edges``, then ``e a b``; or ``p sp nodes arcs``, then ``a a b weight``."""
    net, most = Net(), 0
    for k, words in _rows(lines):
        if words[0] == "p" and len(words) == 4 and not net.number:
            net, most = _numbered(words[2], k), _whole(words[3], 0, 10**9 - 1, "the number of edges", k)
        elif words[0] in ("e", "a") and len(words) > 2:
            net.join(_node(net, words[1], k), _node(net, words[2], k), words[0] == "a")
        elif words[0] not in ("c", "n", "v", "d", "x"):
            raise BadGraph(f"line {k}: DIMACS has no line {printable(' '.join(words))}")
    mentions, net = len(net.edges) + len(net.arcs), net.once()
    if mentions not in (most, 2 * most) and len(net.edges) != most:
        raise BadGraph(f"DIMACS: the line p says {most} edges, got {mentions}")
    return net


def matrix_market(lines: list[str]) -> Net:
    """``rows columns entries``, then ``row column [value]``: a square matrix of neighbours."""
    kind = lines[0].lower().split() if lines else []
    if len(kind) != 5 or kind[1:3] != ["matrix", "coordinate"]:
        raise BadGraph("line 1: of Matrix Market a sparse matrix is read: %%MatrixMarket matrix coordinate ...")
    rows = _rows(lines, "%")
    start, size = next(rows, (0, []))
    if len(size) != 3 or size[0] != size[1]:
        raise BadGraph(f"line {start}: a matrix of neighbours has as many columns as rows, then the number of entries")
    net, most = _numbered(size[0], start), _whole(size[2], 0, 10**9 - 1, "the number of entries", start)
    for k, words in rows:
        net.join(_node(net, words[0], k), _node(net, [*words, ""][1], k), kind[4] == "general")
    if len(net.edges) + len(net.arcs) != most:
        raise BadGraph(f"Matrix Market: line {start} says {most} entries, got {len(net.edges) + len(net.arcs)}")
    return net


def movingai_map(lines: list[str]) -> Net:
    """Open cells ``.``, ``G`` and ``S``; a diagonal step needs both cells beside it."""
    rows = [line for line in lines if line.strip()]
    kind, *sizes = [[*row.split(), ""][1] for row in rows[:3]]
    height, width = (_whole(size, 1, 10**6, what) for size, what in zip(sizes, ("height", "width"), strict=True))
    cells = [row.rstrip() for row in rows[4:]]
    if len(cells) != height or any(len(row) != width for row in cells):
        raise BadGraph(f"the map must have {height} rows of {width} cells")
    if strange := set("".join(cells)) - set(".GS@OTW"):
        raise BadGraph(f"a map has the cells .GS@OTW, got {printable(min(strange))}")
    net = Net((x, y) for y, row in enumerate(cells) for x, cell in enumerate(row) if cell in ".GS")
    steps = ((1, 0), (0, 1)) if kind == "tile" else ((1, 0), (0, 1), (1, 1), (-1, 1))
    for (x, y), node in net.number.items():  # type: ignore[misc]
        for dx, dy in steps:
            if {(x + dx, y + dy), (x + dx, y), (x, y + dy)} <= net.number.keys():
                net.join(node, net.number[x + dx, y + dy])
    net.places = np.array(list(net.number), float).reshape(-1, 2) * (1.0, -1.0)
    return net


# -- graph6 and sparse6 ------------------------------------------------------------------------------------------------


def is_graph6(word: str) -> bool:
    """Whether a word is a graph: its length is the one that its first letters say."""
    try:
        return bool(graph6(word).number)
    except BadGraph:
        return False


def graph6(word: str) -> Net:
    """A graph in a word of printable letters, six bits each (McKay, "graph6 and sparse6 graph formats")."""
    body = re.sub(r"^>>(graph6|sparse6)<<", "", word)
    is_sparse, letters = body.startswith(":"), np.frombuffer(body.lstrip(":").encode(), np.uint8) - np.uint8(63)
    if not len(letters) or (letters > 63).any():
        raise BadGraph("graph6: a letter that it does not have")
    long = int(letters[0] == 63) * (1 + int(len(letters) > 1 and letters[1] == 63))
    head, data = letters[long : long + (1, 3, 6)[long]], letters[long + (1, 3, 6)[long] :]
    nodes = int(sum(int(six) << 6 * k for k, six in enumerate(head[::-1])))
    if not 1 <= nodes <= MOST_NODES:
        raise BadGraph(f"a graph has 1 to {MOST_NODES} nodes, this one has {nodes}")
    pairs = nodes * (nodes - 1) // 2
    if is_sparse and len(data) > 3 * (MOST_EDGES + MOST_NODES):
        raise BadGraph(TOO_LARGE)
    if not is_sparse and len(data) != -(-pairs // 6):
        raise BadGraph(f"graph6: {nodes} nodes need {-(-pairs // 6)} letters after their number, got {len(data)}")
    net, bits = Net(map(str, range(nodes))), np.unpackbits(data[:, None], axis=1)[:, 2:].reshape(-1)
    if is_sparse:
        return _sparse6(net, nodes, bits)
    found = np.argwhere(np.tri(nodes, k=-1, dtype=bool))[np.flatnonzero(bits[:pairs])]
    for b, a in found.tolist():
        net.join(a, b)
    return net


def _sparse6(net: Net, nodes: int, bits: np.ndarray) -> Net:
    wide, node = max((nodes - 1).bit_length(), 1), 0
    rows = bits[: len(bits) // (1 + wide) * (1 + wide)].reshape(-1, 1 + wide)
    for is_next, other in zip(rows[:, 0].tolist(), (rows[:, 1:] @ (1 << np.arange(wide)[::-1])).tolist(), strict=True):
        node += is_next
        if node >= nodes or other >= nodes:
            break
        if other > node:
            node = other
        else:
            net.join(other, node)
    return net


# -- formats with attributes -------------------------------------------------------------------------------------------


class _Elements:
    """What the elements ``graph``, ``node`` and ``edge`` of GraphML and GEXF say, as a parser of XML meets them."""

    def __init__(self) -> None:
        self.path: list[str] = []
        self.names: list[str] = []
        self.ends: list[tuple[str, str, bool]] = []
        self.graphs: list[bool] = []

    def begin(self, tag: str, attributes: dict[str, str]) -> None:
        """Reads the attributes of an element."""
        tag = tag.rpartition(" ")[2]
        if not self.path and tag not in ("graphml", "gexf"):
            raise BadGraph(f"of XML GraphML and GEXF are read, got {printable_name(tag)}")
        self.path.append(tag)
        if tag == "graph":
            self.graphs.append("directed" in (attributes.get("edgedefault"), attributes.get("defaultedgetype")))
        elif tag == "node":
            self.names.append(attributes["id"])
        elif tag == "edge":
            kind = attributes.get("directed") or attributes.get("type")
            is_arc = True in self.graphs if kind is None else kind in ("true", "1", "directed")
            self.ends.append((attributes["source"], attributes["target"], is_arc))
        elif tag == "hyperedge":
            raise BadGraph("a hyperedge: an edge joins two nodes")
        if len(self.path) > DEEPEST:
            raise BadGraph(f"elements {DEEPEST} deep")
        if len(self.names) > MOST_NODES or len(self.ends) > 2 * MOST_EDGES:
            raise BadGraph(TOO_LARGE)

    def end(self, _: str) -> None:
        """Leaves an element."""
        self.path.pop()

    def refuse(self, *_: object) -> None:
        """Refuses definitions of entities, which may grow without end or name files."""
        raise BadGraph("XML with a document type, whose entities are not expanded: remove the lines <!DOCTYPE ...>")


def xml(text: str) -> Net:
    """GraphML or GEXF: elements ``graph``, ``node`` and ``edge``."""
    elements, parser = _Elements(), expat.ParserCreate(namespace_separator=" ")
    parser.StartElementHandler, parser.EndElementHandler = elements.begin, elements.end
    parser.StartDoctypeDeclHandler = elements.refuse
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        raise BadGraph(f"no XML: {error}") from None
    except KeyError as error:
        raise BadGraph(f"line {parser.CurrentLineNumber}: an element without {error}") from None
    if len(elements.graphs) != 1:
        raise BadGraph(f"a file is one graph, got {len(elements.graphs)} elements graph")
    net = Net(elements.names)
    for a, b, is_arc in elements.ends:
        net.join(net.known(a), net.known(b), is_arc)
    return net


GML_GRAPH = re.compile(r"^[ \t]*graph\s*\[", re.MULTILINE | re.IGNORECASE)
GML_TOKEN = re.compile(r'"[^"]*"|[\[\]]|[^\s\[\]"]+')


def gml(text: str) -> Net:
    """``graph [ directed 0 node [ id 1 label "a" ] edge [ source 1 target 2 ] ]``; labels are the names."""
    tokens = (found[0] for found in GML_TOKEN.finditer(re.sub(r"(?m)^[ \t]*#.*$", "", text)))
    path: list[str] = []
    lists: dict[str, list[dict[str, str]]] = {"graph": [], "node": [], "edge": []}
    for key in tokens:
        if key == "]":
            if not path:
                raise BadGraph("GML: a ] without its [")
            path.pop()
            continue
        value, key = next(tokens, "]"), key.lower()
        if value == "]":
            raise BadGraph(f"GML: {printable(key)} without a value")
        where = path[-1] if path in (["graph"], ["graph", "node"], ["graph", "edge"]) else ""
        if value == "[":
            path.append(key)
            if len(path) > DEEPEST:
                raise BadGraph(f"GML: lists {DEEPEST} deep")
            if path in (["graph"], ["graph", "node"], ["graph", "edge"]):
                lists[key].append({})
        elif where:
            lists[where][-1][key] = html.unescape(value.strip('"'))
        if len(lists["node"]) > MOST_NODES or len(lists["edge"]) > 2 * MOST_EDGES:
            raise BadGraph(TOO_LARGE)
    if path or len(lists["graph"]) != 1:
        raise BadGraph("GML: a file is one graph, and each [ has its ]")
    try:
        numbers = Net(node["id"] for node in lists["node"])
        net = Net(node["label"] for node in lists["node"]) if all("label" in n for n in lists["node"]) else numbers
        is_arc = lists["graph"][0].get("directed") == "1"
        for edge in lists["edge"]:
            net.join(numbers.known(edge["source"]), numbers.known(edge["target"]), is_arc)
    except KeyError as error:
        raise BadGraph(f"GML: a node or an edge without {error}") from None
    return net


PAJEK_VERTEX = re.compile(r'\s*(\d+)(?:\s+("[^"]*"|\S+))?')


def pajek(lines: list[str]) -> Net:
    """``*Vertices n`` with a number and a name a line, then ``*Edges`` and ``*Arcs``, or lists or a matrix of them."""
    names: dict[int, str] = {}
    count, section, net, row = 0, "", Net(), 0
    for k, words in _rows(lines, "%"):
        if words[0].startswith("*"):
            section, row = words[0].lower(), 0
            if section == "*vertices":
                count = _whole([*words, ""][1], 1, MOST_NODES, "the number of nodes", k)
                names = {node: str(node) for node in range(1, count + 1)}
            elif section not in ("*network", "*edges", "*arcs", "*edgeslist", "*arcslist", "*matrix"):
                raise BadGraph(f"line {k}: of Pajek vertices, edges and arcs are read, got {printable(words[0])}")
        elif section == "*vertices":
            number, name = PAJEK_VERTEX.match(lines[k - 1]).groups() if words[0].isdigit() else (words[0], None)  # type: ignore[union-attr]
            names[_whole(number, 1, count, "a node", k)] = (name or number).strip('"')
        elif section == "*matrix":
            row += 1
            near = [column for column, word in enumerate(words, 1) if word.strip("0.")]
            _join_pajek(net, [str(row), *map(str, near)], count, k, True)
        elif section != "*network":
            is_list = section.endswith("list")
            _join_pajek(net, words if is_list else words[:2], count, k, section.startswith("*arcs"))
    named = Net(names.values())
    named.edges, named.arcs = net.edges, net.arcs
    return named


def _join_pajek(net: Net, words: list[str], count: int, line: int, is_arc: bool) -> None:
    node, *others = (_whole(word, 1, count, "a node", line) - 1 for word in words)
    for other in others:
        net.join(node, other, is_arc)
