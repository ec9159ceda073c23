"""Formats of graphs that other programs write: numbers a line, letters, and lists of attributes."""

from __future__ import annotations

import html
import re
from itertools import islice
from xml.parsers import expat

import numpy as np

from palaestra.core.files import printable, printable_name
from palaestra.games.pursuit.graph_nets import (
    MOST_EDGES,
    MOST_NODES,
    MOST_WORDS,
    TOO_LARGE,
    BadGraph,
    Net,
    node_in,
    numbered,
    rows_of,
    whole,
)

DEEPEST = 100
"""Lists of GML, or elements of XML, within each other."""


# -- lines of numbers --------------------------------------------------------------------------------------------------


def is_metis(lines: list[str]) -> bool:
    """Whether the numbers of nodes and edges in the first line are those of lists of neighbours after it."""
    if not any(words[0].isdigit() for _, words in islice(rows_of(lines, "%"), 1)):
        return False
    try:
        return bool(metis(lines).arcs)
    except BadGraph:
        return False


def metis(lines: list[str]) -> Net:
    """``nodes edges [format [weights]]``, then a line of neighbours for each node, from 1 on."""
    (start, header), *_ = [*islice(rows_of(lines, "%"), 1), (0, ["", ""])]
    if not 2 <= len(header) <= 4:
        raise BadGraph(f"line {start}: METIS begins with nodes and edges, at most four numbers")
    net, parts = numbered(header[0], start), header[2].zfill(3) if len(header) > 2 else "000"
    if not re.fullmatch("[01]{3}", parts):
        raise BadGraph(f"line {start}: the third number of METIS has three digits 0 or 1, got {printable(parts)}")
    sizes, weights, each = parts
    edges = whole(header[1], 0, MOST_EDGES, "the number of edges", start)
    skip = int(sizes == "1") + (int(weights == "1") if len(header) < 4 else whole(header[3], 0, 99, "weights", start))
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
            net.join(node, node_in(net, word, k), is_arc=True)
    if len(net.arcs) != 2 * edges:
        raise BadGraph(f"METIS: {edges} edges are {2 * edges} neighbours in all lines, got {len(net.arcs)}")
    if len(set(net.arcs) & {(b, a) for a, b in net.arcs}) != len(net.arcs):
        raise BadGraph("METIS: a node is a neighbour of another one that is not its neighbour")
    return net


def dimacs(lines: list[str]) -> Net:
    """``p edge nodes edges``, then ``e a b``; or ``p sp nodes arcs``, then ``a a b weight``."""
    net, most = Net(), 0
    for k, words in rows_of(lines):
        if words[0] == "p" and len(words) == 4 and not net.number:
            net, most = numbered(words[2], k), whole(words[3], 0, 10**9 - 1, "the number of edges", k)
        elif words[0] in ("e", "a") and len(words) > 2:
            net.join(node_in(net, words[1], k), node_in(net, words[2], k), words[0] == "a")
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
    rows = rows_of(lines, "%")
    start, size = next(rows, (0, []))
    if len(size) != 3 or size[0] != size[1]:
        raise BadGraph(f"line {start}: a matrix of neighbours has as many columns as rows, then the number of entries")
    net, most = numbered(size[0], start), whole(size[2], 0, 10**9 - 1, "the number of entries", start)
    for k, words in rows:
        net.join(node_in(net, words[0], k), node_in(net, [*words, ""][1], k), kind[4] == "general")
    if len(net.edges) + len(net.arcs) != most:
        raise BadGraph(f"Matrix Market: line {start} says {most} entries, got {len(net.edges) + len(net.arcs)}")
    return net


def movingai_map(lines: list[str]) -> Net:
    """Open cells ``.``, ``G`` and ``S``; a diagonal step needs both cells beside it."""
    rows = [line for line in lines if line.strip()]
    kind, *sizes = [[*row.split(), ""][1] for row in rows[:3]]
    height, width = (whole(size, 1, 10**6, what) for size, what in zip(sizes, ("height", "width"), strict=True))
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
    for k, words in rows_of(lines, "%"):
        if words[0].startswith("*"):
            section, row = words[0].lower(), 0
            if section == "*vertices":
                count = whole([*words, ""][1], 1, MOST_NODES, "the number of nodes", k)
                names = {node: str(node) for node in range(1, count + 1)}
            elif section not in ("*network", "*edges", "*arcs", "*edgeslist", "*arcslist", "*matrix"):
                raise BadGraph(f"line {k}: of Pajek vertices, edges and arcs are read, got {printable(words[0])}")
        elif section == "*vertices":
            number, name = PAJEK_VERTEX.match(lines[k - 1]).groups() if words[0].isdigit() else (words[0], None)  # type: ignore[union-attr]
            names[whole(number, 1, count, "a node", k)] = (name or number).strip('"')
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
    node, *others = (whole(word, 1, count, "a node", line) - 1 for word in words)
    for other in others:
        net.join(node, other, is_arc)
