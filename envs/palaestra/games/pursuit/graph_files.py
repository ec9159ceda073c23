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
import re
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import PurePath

from palaestra.core.files import printable_name
from palaestra.games.pursuit.graph_formats import (
    GML_GRAPH,
    dimacs,
    gml,
    graph6,
    is_graph6,
    is_metis,
    matrix_market,
    metis,
    movingai_map,
    pajek,
    xml,
)
from palaestra.games.pursuit.graph_nets import MOST_WORDS, BadGraph, Net, is_whole, rows_of

MOST_LINES = 1_000_000
COMMENT = re.compile(r"(?:^|\s)#")
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
    first = next(rows_of(lines, "#%"), (0, [""]))[1]
    if text.lstrip()[:1] == "<":
        return lambda _: xml(text)
    if text.lstrip()[:14].lower() == "%%matrixmarket":
        return matrix_market
    if first[0].startswith("*"):
        return pajek
    if first[0] == "type" and [words[0] for _, words in islice(rows_of(lines), 1, 4)] == ["height", "width", "map"]:
        return movingai_map
    if first[0].lower() in ("graph", "graph[", "creator", "version") and GML_GRAPH.search(text):
        return lambda _: gml(text)
    if next((len(words) == 4 and words[0] == "p" for _, words in rows_of(lines) if words[0] != "c"), False):
        return dimacs
    if suffix in (".graph", ".metis") or is_metis(lines):
        return metis
    return adjacency if suffix == ".adjlist" else edge_list


def _single_words(lines: list[str]) -> list[str]:
    """The lines, or none if one of them has several words."""
    found = []
    for _, words in rows_of(lines):
        if len(words) > 1:
            return []
        found.append(words[0])
    return found


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
    for k, words in rows_of(lines, "#%"):
        if separator is None:
            words = COMMENT.split(lines[k - 1], maxsplit=1)[0].split(None, MOST_WORDS)
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
    if net.edges[1:] and net.edges[0] == (0, 1) and all(is_whole(names[node]) for node in used):
        nodes, edges = int(names[0]), int(names[1])
        if edges == len(net.edges) - 1 and max(int(names[node]) for node in used[2:]) <= nodes:
            raise BadGraph("the first line may say how many nodes and edges there are: remove it, or move it down")
    if net.edges[1:] and net.edges[0] == (0, 1) and used.count(0) == used.count(1) == 1:
        numbers = list(map(is_whole, names))
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
    for _, words in rows_of(COMMENT.split(line, maxsplit=1)[0] for line in lines):
        node, *near = map(net.node, words)
        for other in near:
            net.join(node, other)
    return net.once()


# -- lines of numbers --------------------------------------------------------------------------------------------------
