"""Graphs on which teams move: families by name, pools of generated graphs, edge arrays, networkx graphs and files.

`read` turns what a user writes into graphs::

    read("grid:10x10")  # one graph
    read("dungeons:256x200")  # a pool: 256 dungeons of 200 nodes
    read(np.array([[0, 1], [1, 2]]))  # an edge array [E, 2]; numbers from 4096 on are names, as in OpenStreetMap
    read(networkx.petersen_graph())
    read("city.graphml")  # a file: a line for each edge, or a format of `palaestra.games.pursuit.graph_files`

A text with a slash or a suffix (``"city.txt"``, ``"maps/city"``) is the path of a file, any other one a name.

Graphs are simple, undirected and have at most `MOST_NODES` nodes of at most `MOST_NEIGHBOURS` neighbours. A name makes
the same graph on every machine: generated ones draw from `random.Random`, whose stream Python does not change.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, count, islice
from pathlib import PurePath
from typing import Any

import numpy as np

from palaestra.core.contract.keywords import nearest
from palaestra.core.files import FileError, TextFile, printable, printable_name, read_text
from palaestra.games.pursuit import graph_files
from palaestra.games.pursuit.families import FAMILIES, MOST_GRAPHS, MOST_PAIRS, BadSize, Drawing
from palaestra.games.pursuit.graph_nets import MOST_EDGES, MOST_NEIGHBOURS, MOST_NODES, BadGraph

DEGREE_CLASSES = (5, 9, 17, 65)
"""Alternatives of a move in memory: nodes of a graph have fewer neighbours than the least class that holds them."""
LARGEST = 2**23
"""Bytes of a file that are read."""
FEW_PAIRS = 1024
"""Where fewer than one of so many pairs of nodes are new at a distance, hops are counted pair by pair."""
DEEPEST = 8
"""Lists within lists of graphs."""
NAME = re.compile(
    r"(?P<family>[a-z_]{1,20})(?::(?P<first>\d{1,9})(?:x(?P<second>\d{1,9}))?(?::(?P<seed>\d{1,18}))?)?", re.ASCII
)
PATH = re.compile(r".*[/\\].*|.*\.[A-Za-z]\w*", re.DOTALL)
"""A text that names a file: it has a slash, or a suffix that begins with a letter."""
SIMPLE = "g = nx.Graph(g); g.remove_edges_from(nx.selfloop_edges(g))"
"""What makes a graph of networkx undirected, with each edge once and none from a node to itself."""
UNREACHABLE = -1
"""Hops between nodes that no way connects."""


@dataclass(frozen=True, eq=False)
class Graph:
    """A simple undirected graph.

    Attributes:
        name: What it is called in messages and pictures.
        nodes: V, number of nodes.
        edges: int64 ``[E, 2]``: pairs of nodes, the smaller one first, in ascending order.
        labels: What users call the nodes, ``[V]``; the numbers 0 to V - 1 by default.
        places: float64 ``[V, 2]``, where to draw the nodes; None where that is not known.
        file: The file that it was read from, for messages.
        keys: The labels as the objects that they are in networkx (numbers, tuples), ``[V]``; the labels by default.
    """

    name: str
    nodes: int
    edges: np.ndarray
    labels: tuple[str, ...] = ()
    places: np.ndarray | None = field(default=None, repr=False)
    file: str = ""
    keys: tuple[Hashable, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        """Refuses what is no simple graph.

        Raises:
            ValueError: No node, too many nodes or neighbours, several nodes without an edge, an edge to an unknown node
                or to itself, or a repeated edge; names node or edge. It is a `FileError` where the graph is that of a
                file.
        """
        if not 1 <= self.nodes <= MOST_NODES:
            raise self.refusal(f"a graph has 1 to {MOST_NODES} nodes, this one has {self.nodes}")
        if len(self.edges) > MOST_EDGES:
            raise self.refusal(f"a graph has at most {MOST_EDGES} edges, this one has {len(self.edges)}")
        if self.nodes > 1 and not len(self.edges):
            raise self.refusal(f"a graph without edges: it has {self.nodes} nodes, from which no way leads")
        object.__setattr__(self, "keys", self.keys or self.labels)
        if not self.labels:
            object.__setattr__(self, "labels", tuple(map(str, range(self.nodes))))
        edges = np.asarray(self.edges, np.int64).reshape(-1, 2)
        for k in np.flatnonzero(((edges < 0) | (edges >= self.nodes)).any(axis=1))[:1]:
            raise self.refusal(f"edge {_pair(edges[k])}: its nodes are 0 to {self.nodes - 1}")
        for k in np.flatnonzero(edges[:, 0] == edges[:, 1])[:1]:
            raise self.refusal(f"edge {self.edge_name(edges[k])} joins a node with itself; staying needs none")
        edges = np.sort(edges, axis=1)
        edges = edges[np.lexsort((edges[:, 1], edges[:, 0]))]
        for k in np.flatnonzero((edges[1:] == edges[:-1]).all(axis=1))[:1]:
            raise self.refusal(f"edge {self.edge_name(edges[k])} is there twice; graphs are undirected")
        object.__setattr__(self, "edges", edges)
        most = int(self.degrees.argmax())
        if self.degrees[most] > MOST_NEIGHBOURS:
            what = f"node {printable_name(self.labels[most])} has {self.degrees[most]} neighbours"
            raise self.refusal(f"{what}, at most {MOST_NEIGHBOURS} are possible")

    def __repr__(self) -> str:
        """The name and the sizes."""
        return f"<Graph {printable_name(self.name)}: {self.nodes} nodes, {len(self.edges)} edges>"

    def refusal(self, reason: str) -> ValueError:
        """The error for a graph that cannot be used: a `FileError` if it is that of a file."""
        return (
            FileError(f"{self.file}: {reason}") if self.file else ValueError(f"{printable_name(self.name)}: {reason}")
        )

    def edge_name(self, edge: Iterable[int]) -> str:
        """An edge by the labels of its nodes, for messages."""
        return "-".join(printable_name(self.labels[node]) for node in edge)

    def node_of(self, label: Any) -> int:
        """The number of a node.

        Args:
            label: What the user calls the node: a key or a label. The number itself where nodes have no labels of their
                own, or none but words.

        Raises:
            ValueError: There is no such node, or there are two; suggests the nearest label.
        """
        named = _named(label)
        if (found := self._number_of.get(named)) is not None and isinstance(named, bool) == isinstance(
            self.keys[found], bool
        ):
            return found
        if isinstance(named, int) and not isinstance(named, bool) and 0 <= named < self.nodes and self._has_positions:
            return named
        same = [node for node, own in enumerate(self.labels) if own == str(named)]
        if len(same) == 1:
            return same[0]
        shown = printable_name(named)
        if same:
            keys = " and ".join(_quoted(self.keys[node]) for node in same[:2])
            raise ValueError(f"{printable_name(self.name)}: {shown} may be node {keys}: give it as the graph has it")
        near = nearest(str(named), self.labels)
        first, last = printable_name(self.labels[0]), printable_name(self.labels[-1])
        hint = f"; did you mean {printable_name(near)}?" if near else f": nodes are {first} to {last}"
        raise ValueError(f"{printable_name(self.name)} has no node {shown}{hint}")

    def nodes_of(self, labels: Iterable[Any], keyword: str) -> tuple[int, ...]:
        """The numbers of some nodes, in this order; those of a set in ascending order.

        Args:
            labels: What the user calls them, see `node_of`.
            keyword: That the user gave them as, for messages.

        Raises:
            ValueError: No such node, or one that is named twice; gives both names.
        """
        if isinstance(labels, str | bytes) or not isinstance(labels, Iterable):
            raise ValueError(f"{keyword} must be a list of nodes, got {printable(labels)}")
        found: dict[int, Any] = {}
        for label in labels:
            node = self.node_of(label)
            if node in found:
                shown = " and ".join(map(_quoted, (found[node], label)))
                what = printable_name(self.labels[node])
                raise ValueError(f"{keyword} names node {what} of {printable_name(self.name)} twice, as {shown}")
            found[node] = label
        return tuple(sorted(found) if isinstance(labels, AbstractSet) else found)

    @cached_property
    def _number_of(self) -> dict[Hashable, int]:
        return {key: node for node, key in enumerate(self.keys)}

    @cached_property
    def _has_positions(self) -> bool:
        """Whether a number can only be a node's position: nodes have no labels, or words that are no numbers."""
        return all(isinstance(key, str) and not _is_number(key) for key in self.keys)

    @cached_property
    def degrees(self) -> np.ndarray:
        """Numbers of neighbours, int64 ``[V]``."""
        return np.bincount(self.edges.reshape(-1), minlength=self.nodes)

    @cached_property
    def neighbours(self) -> np.ndarray:
        """Closed neighbourhoods, int16 ``[V, D]``: the node itself, then its neighbours in ascending order, then -1."""
        found = np.full((self.nodes, int(self.degrees.max()) + 1), -1, np.int16)
        found[:, 0] = np.arange(self.nodes)
        both = np.concatenate([self.edges, self.edges[:, ::-1]])
        both = both[np.lexsort((both[:, 1], both[:, 0]))]
        first = np.cumsum(self.degrees) - self.degrees
        found[both[:, 0], 1 + np.arange(len(both)) - first[both[:, 0]]] = both[:, 1]
        return found

    @cached_property
    def hops(self) -> np.ndarray:
        """Edges on a shortest way between two nodes, int16 ``[V, V]``; `UNREACHABLE` where there is none."""
        size, nodes = self.nodes, np.arange(self.nodes)
        near = np.where(self.neighbours.T < 0, nodes, self.neighbours.T)  # [D, V]: whole rows are united at a time
        found = np.full((size, size), UNREACHABLE, np.int16)
        found[nodes, nodes], flat = 0, found.reshape(-1)
        reached: np.ndarray | None = np.packbits(np.eye(size, dtype=bool), axis=1)
        pairs, count = None, size  # that are new: the number of the first node times V plus that of the second
        for distance in range(1, size):
            if count * FEW_PAIRS < size**2:  # as on a long path: each is followed
                pairs = np.flatnonzero(flat == distance - 1) if pairs is None else pairs
                first, second = np.divmod(pairs, size)
                ahead = (first * size + near[:, second]).reshape(-1)
                pairs, reached = np.unique(ahead[flat[ahead] == UNREACHABLE]), None
                flat[pairs], count = distance, len(pairs)
            else:  # sets of nodes are united, 8 a byte
                reached = np.packbits(found != UNREACHABLE, axis=1) if reached is None else reached
                wider = np.bitwise_or.reduce(reached[near], axis=0)
                new = np.unpackbits(wider & ~reached, axis=1, count=size).view(bool)
                np.copyto(found, distance, where=new)
                pairs, reached, count = None, wider, int(np.count_nonzero(new))
            if not count:
                break
        return found

    @property
    def is_connected(self) -> bool:
        """Whether there is a way between any two nodes."""
        return bool((self.hops[0] != UNREACHABLE).all())

    @property
    def diameter(self) -> int:
        """Most hops between two connected nodes, at least 1."""
        return max(int(self.hops.max()), 1)


def _refusal(name: str, reason: str) -> ValueError:
    return ValueError(f"{printable_name(name)}: {reason}")


def _named(label: Any, depth: int = 0) -> Any:
    """A name that can be looked up: numbers of NumPy are Python's, and lists, as JSON has them, tuples."""
    if isinstance(label, np.generic | np.ndarray):
        label = label.tolist()
    if isinstance(label, list | tuple) and depth < DEEPEST:
        return tuple(_named(part, depth + 1) for part in label)
    if isinstance(label, list | tuple | dict | set):
        raise ValueError(f"a node is a number, a text or a tuple of these, got a {type(label).__name__}")
    return label


def _quoted(name: Any) -> str:
    """A name for a message that tells the text '9' from the number 9."""
    return printable(name) if isinstance(name, str) else printable_name(name)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def read(source: Any) -> tuple[Graph, ...]:
    """The graphs that a user asks for; several are a pool, of which each match draws one.

    Args: source: A name, see `palaestra.games.pursuit.families`; an edge array ``[E, 2]``; a networkx graph; a file, as
        `Path`,
            as text with a slash or a suffix, or its content (`TextFile`), see `palaestra.games.pursuit.graph_files`; a
            `Graph`; or a list of these.

    Raises:
        ValueError: No such graph, or too many; names what is wrong with name, node or edge.
        FileError: A damaged file; names file and line.
    """
    pool: list[Graph] = []
    largest = 0
    for graph in _graphs(source, 0):
        pool.append(graph)
        largest = max(largest, graph.nodes)
        try:
            check_pool(len(pool), largest)
        except ValueError as error:
            raise graph.refusal(str(error)) from None
    return tuple(pool)


def check_pool(graphs: int, nodes: int) -> None:
    """Refuses a pool whose hops between all pairs of nodes would take too much memory and time.

    Args:
        graphs: How many.
        nodes: Of the largest one.

    Raises:
        ValueError: Says how many are possible.
    """
    most = min(MOST_GRAPHS, MOST_PAIRS // nodes**2)
    if graphs > most:
        raise ValueError(
            f"a pool has at most {most} graphs of {nodes} nodes, got {graphs}: take fewer, or smaller ones"
        )


def _graphs(source: Any, depth: int) -> Iterator[Graph]:
    if isinstance(source, Graph):
        yield source
    elif isinstance(source, PurePath | TextFile) or (isinstance(source, str) and PATH.fullmatch(source)):
        yield from read_file(source)
    elif isinstance(source, str):
        yield from by_name(source)
    elif hasattr(source, "edges") and hasattr(source, "nodes"):
        yield from_networkx(source)
    elif isinstance(source, list | tuple) and not (source and _is_pair(source[0])):
        if not source:
            raise ValueError("graph must be at least one graph, got an empty list")
        if depth == DEEPEST:
            raise ValueError(f"graph: lists are nested {DEEPEST} deep: give one list of graphs")
        for one in source:
            yield from _graphs(one, depth + 1)
    else:
        yield from_array(source)


def _is_pair(value: Any) -> bool:
    """Whether it is a row of an edge array, and no graph or list of graphs."""
    if isinstance(value, list | tuple):
        return len(value) == 2 and all(np.isscalar(node) and not isinstance(node, str | bytes) for node in value)
    return hasattr(value, "shape") and tuple(value.shape) == (2,) and np.asarray(value).dtype.kind in "iuf"


def _pair(edge: Sequence[int] | np.ndarray) -> str:
    return "-".join(str(int(node)) for node in edge)


def is_family(name: str) -> bool:
    """Whether a text has the form of a family's name, which `by_name` makes: no file is opened for it."""
    found = NAME.fullmatch(name)
    return found is not None and found["family"] in FAMILIES


def by_name(name: str) -> Iterator[Graph]:
    """The graphs of a family's name, as ``"grid:10x10"``, ``"petersen"`` or ``"regular:200x4:7"`` with a seed.

    Each is made when it is asked for: a pool may be refused before its last one.

    Raises:
        ValueError: No such family, or sizes that it does not have; says which it has.
    """
    found = NAME.fullmatch(name)
    if found is None or found["family"] not in FAMILIES:
        known = ", ".join(family.form for family in FAMILIES.values())
        near = nearest(name.partition(":")[0], FAMILIES)
        hint = f"did you mean {FAMILIES[near].form}? " if near else ""
        others = "files (a text with a suffix or a slash is a path), edge arrays and networkx graphs"
        raise ValueError(f"no graph {printable(name)}: {hint}names are {known}; there are {others} besides")
    family = FAMILIES[found["family"]]
    sizes = [int(found[part]) for part in ("first", "second") if found[part] is not None]
    if len(sizes) != family.sizes or (found["seed"] is not None and not family.is_drawn):
        raise ValueError(f"graph {name!r} must look like {family.form!r}")
    try:
        drawings = iter(family.draw(sizes, int(found["seed"] or 0)))
    except BadSize as error:
        raise ValueError(f"graph {name!r}: {error}") from None
    first = list(islice(drawings, 2))
    for k, drawing in enumerate(chain(first, drawings)):
        yield _drawn(name if len(first) == 1 else f"{name}[{k}]", drawing)


def _drawn(name: str, drawing: Drawing) -> Graph:
    return Graph(name, drawing.nodes, np.array(drawing.edges, np.int64).reshape(-1, 2), (), drawing.places)


def from_array(edges: Any, name: str = "graph") -> Graph:
    """The graph of an edge array ``[E, 2]`` of whole numbers.

    Its nodes are 0 to the largest number. Where that is `MOST_NODES` or more, numbers are names, like
    OpenStreetMap's ids: those that occur are the nodes, in ascending order.

    Raises:
        ValueError: It is no such array, or the graph is refused; see `Graph`.
    """
    array = np.asarray(edges)
    if array.ndim != 2 or array.shape[1:] != (2,) or array.dtype.kind not in "iu":
        raise ValueError(
            f"{name}: an edge array has the shape [E, 2] and whole numbers, got {array.dtype} {array.shape}"
        )
    if not len(array):
        raise ValueError(f"{name}: the edge array is empty; a graph of one node is Graph('name', 1, array)")
    if len(array) > MOST_EDGES or array.min() < 0 or array.max() < MOST_NODES:
        return Graph(name, min(int(array.max()) + 1, MOST_NODES), array)
    numbers, edges = np.unique(array, return_inverse=True)
    labels = tuple(map(str, numbers[: MOST_NODES + 1].tolist()))
    return Graph(name, len(numbers), edges.reshape(-1, 2), labels)


def from_networkx(graph: Any) -> Graph:
    """A graph of networkx, or of anything with the same ``nodes``, ``edges``, ``is_directed`` and ``name``.

    A directed graph is one of edges where each of its arcs leads both ways. Attributes of nodes and edges are left out.

    Raises:
        ValueError: It is not simple, with the line that makes it so, or refused; see `Graph`.
    """
    name = str(getattr(graph, "name", "") or "graph")
    is_directed = bool(graph.is_directed())
    number = {node: k for k, node in enumerate(islice(graph.nodes, MOST_NODES + 1))}
    most = MOST_EDGES * (1 + is_directed)
    edges = [edge[:2] for edge in islice(graph.edges, most + 1)]
    if len(number) > MOST_NODES or len(edges) > most:
        raise _refusal(name, f"a graph has at most {MOST_NODES} nodes and {MOST_EDGES} edges")
    labels = tuple(map(str, number))
    pairs = [(number[a], number[b]) for a, b in edges]
    edges, problems = _undirected([] if is_directed else pairs, pairs if is_directed else [], labels)
    if problems:
        raise _refusal(name, f"{problems}: pass a simple graph, {SIMPLE}")
    return Graph(name, len(number), edges, labels, keys=tuple(number))


def _undirected(
    edges: Sequence[tuple[int, int]], arcs: Sequence[tuple[int, int]], labels: Sequence[Hashable]
) -> tuple[np.ndarray, str]:
    """Edges ``[E, 2]``, of which arcs both ways are one, and what keeps them from being a simple graph, or nothing."""

    def shown(found: Sequence[tuple[int, int]]) -> str:
        more = f" and {len(found) - 1} more" if len(found) > 1 else ""
        return "-".join(printable_name(labels[node]) for node in found[0]) + more

    there = Counter(arcs)
    ways = [(a, b) for a, b in there if (b, a) not in there]
    pairs = [*edges, *((a, b) for a, b in there if a <= b or (b, a) not in there)]
    same = Counter((min(edge), max(edge)) for edge in pairs)
    twice = [edge for counted in (there, same) for edge, times in counted.items() if times > 1 and edge[0] != edge[1]]
    loops = [edge for edge in same if edge[0] == edge[1]]
    problems = [
        *([f"the graph is directed, teams move both ways (edge {shown(ways)} leads one way)"] if ways else []),
        *([f"edge {shown(twice)} is there twice"] if twice else []),
        *([f"edge {shown(loops)} joins a node with itself; staying needs none"] if loops else []),
    ]
    return np.array(pairs, np.int64).reshape(-1, 2), ", ".join(problems)


def read_file(source: str | PurePath | TextFile) -> Iterator[Graph]:
    """The graphs of a file, see `palaestra.games.pursuit.graph_files`; one, but a file of graph6 may hold several.

    Nodes have the order in which the file names them; where all are the whole numbers from 0 on, they are these
    numbers.

    Raises:
        FileError: The file cannot be read, or its graph cannot be used; names file and line.
    """
    name = PurePath(source.name if isinstance(source, TextFile) else source).name
    shown = str(source)
    nets = graph_files.parse(read_text(source if isinstance(source, TextFile) else shown, LARGEST), name)
    for k in count():
        try:
            net = next(nets, None)
        except BadGraph as error:
            raise FileError(f"{shown}{',' if str(error).startswith('line ') else ':'} {error}") from None
        if net is None:
            return
        keys = tuple(net.number)
        labels = tuple(map(str, keys))
        edges, problems = _undirected(net.edges, net.arcs, labels)
        if problems:
            raise FileError(f"{shown}: {problems}: write a simple graph, with networkx {SIMPLE}")
        if sorted(labels, key=lambda word: (len(word), word)) == [str(node) for node in range(len(labels))]:
            edges, labels, keys = np.array(list(map(int, labels)), np.int64)[edges], (), ()
        stem = PurePath(name).stem
        yield Graph(f"{stem}[{k}]" if k else stem, len(net.number), edges, labels, net.places, shown, keys)


def class_of(graphs: Iterable[Graph]) -> int:
    """The least of `DEGREE_CLASSES` that holds the closed neighbourhoods of all graphs."""
    widest = max(graph.neighbours.shape[1] for graph in graphs)
    return next(size for size in DEGREE_CLASSES if size >= widest)
