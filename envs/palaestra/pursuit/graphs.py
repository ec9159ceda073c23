"""Graphs on which teams move: families by name, pools of generated graphs, edge arrays, networkx graphs and files.

`read` turns what a user writes into graphs::

    read("grid:10x10")  # one graph
    read("dungeons:256x200")  # a pool: 256 dungeons of 200 nodes
    read(np.array([[0, 1], [1, 2]]))  # an edge array [E, 2]
    read(networkx.petersen_graph())
    read("city.edges")  # a line for each edge: two names of nodes

Graphs are simple, undirected and have at most `MOST_NODES` nodes of at most `MOST_NEIGHBOURS` neighbours. A name makes
the same graph on every machine: generated ones draw from `random.Random`, whose stream Python does not change.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from palaestra.core.files import FileError
from palaestra.core.keywords import nearest
from palaestra.pursuit.families import FAMILIES, BadSize, Drawing

MOST_NODES = 4096
MOST_NEIGHBOURS = 64
DEGREE_CLASSES = (5, 9, 17, 65)
"""Alternatives of a move in memory: nodes of a graph have fewer neighbours than the least class that holds them."""
NAME = re.compile(r"(?P<family>[a-z_]+)(?::(?P<first>\d+)(?:x(?P<second>\d+))?(?::(?P<seed>\d+))?)?")
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
        places: float64 ``[V, 2]``, where to draw the nodes; None where nobody knows.
    """

    name: str
    nodes: int
    edges: np.ndarray
    labels: tuple[str, ...] = ()
    places: np.ndarray | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Refuses what is no simple graph.

        Raises:
            ValueError: No node, too many nodes or neighbours, an edge to an unknown node or to itself, or a repeated
                edge; names node or edge.
        """
        if not self.labels:
            object.__setattr__(self, "labels", tuple(map(str, range(self.nodes))))
        if not 1 <= self.nodes <= MOST_NODES:
            raise ValueError(f"{self.name}: a graph has 1 to {MOST_NODES} nodes, this one has {self.nodes}")
        edges = np.asarray(self.edges, np.int64).reshape(-1, 2)
        for k in np.flatnonzero(((edges < 0) | (edges >= self.nodes)).any(axis=1))[:1]:
            raise ValueError(f"{self.name}: edge {_pair(edges[k])}: its nodes are 0 to {self.nodes - 1}")
        for k in np.flatnonzero(edges[:, 0] == edges[:, 1])[:1]:
            raise ValueError(
                f"{self.name}: edge {self.edge_name(edges[k])} joins a node with itself; staying needs none"
            )
        edges = np.sort(edges, axis=1)
        edges = edges[np.lexsort((edges[:, 1], edges[:, 0]))]
        for k in np.flatnonzero((edges[1:] == edges[:-1]).all(axis=1))[:1]:
            raise ValueError(f"{self.name}: edge {self.edge_name(edges[k])} is there twice; graphs are undirected")
        object.__setattr__(self, "edges", edges)
        most = int(self.degrees.argmax())
        if self.degrees[most] > MOST_NEIGHBOURS:
            what = f"node {self.labels[most]} has {self.degrees[most]} neighbours"
            raise ValueError(f"{self.name}: {what}, at most {MOST_NEIGHBOURS} are possible")

    def __repr__(self) -> str:
        """The name and the sizes."""
        return f"<Graph {self.name}: {self.nodes} nodes, {len(self.edges)} edges>"

    def edge_name(self, edge: Iterable[int]) -> str:
        """An edge by the labels of its nodes."""
        return "-".join(self.labels[node] for node in edge)

    def node_of(self, label: Any) -> int:
        """The number of a node.

        Args:
            label: The number, or what the user calls the node.

        Raises:
            ValueError: There is no such node; suggests the nearest label.
        """
        if isinstance(label, int | np.integer) and not isinstance(label, bool) and 0 <= label < self.nodes:
            return int(label)
        if str(label) in self.labels:
            return self.labels.index(str(label))
        near = nearest(str(label), self.labels)
        hint = f"; did you mean {near}?" if near else f": nodes are {self.labels[0]} to {self.labels[-1]}"
        raise ValueError(f"{self.name} has no node {label}{hint}")

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
        nodes = np.arange(self.nodes)
        found = np.full((self.nodes, self.nodes), UNREACHABLE, np.int16)
        found[nodes, nodes] = 0
        near = np.where(self.neighbours < 0, nodes[:, None], self.neighbours)
        reached = np.packbits(np.eye(self.nodes, dtype=bool), axis=1)
        for distance in range(1, self.nodes):
            wider = np.bitwise_or.reduce(reached[near], axis=1)
            new = wider & ~reached
            if not new.any():
                break
            found[np.unpackbits(new, axis=1, count=self.nodes).view(bool)] = distance
            reached = wider
        return found

    @property
    def is_connected(self) -> bool:
        """Whether there is a way between any two nodes."""
        return bool((self.hops[0] != UNREACHABLE).all())

    @property
    def diameter(self) -> int:
        """Most hops between two connected nodes, at least 1."""
        return max(int(self.hops.max()), 1)


def read(source: Any) -> tuple[Graph, ...]:
    """The graphs that a user asks for; several are a pool, of which each match draws one.

    Args:
        source: A name, see `palaestra.pursuit.families`; an edge array ``[E, 2]``; a networkx graph; a file, as `Path`
            or as text that ends in ``.edges`` or ``.txt``; a `Graph`; or a list of these.

    Raises:
        ValueError: No such graph; names what is wrong with name, node or edge.
        FileError: A damaged file; names file and line.
    """
    if isinstance(source, Graph):
        return (source,)
    if isinstance(source, Path) or (isinstance(source, str) and source.endswith((".edges", ".txt"))):
        return (read_file(Path(source)),)
    if isinstance(source, str):
        return by_name(source)
    if hasattr(source, "edges") and hasattr(source, "nodes"):
        return (from_networkx(source),)
    if isinstance(source, list | tuple) and not (source and _is_pair(source[0])):
        if not source:
            raise ValueError("graph must be at least one graph, got an empty list")
        return tuple(graph for one in source for graph in read(one))
    return (from_array(source),)


def _is_pair(value: Any) -> bool:
    return np.ndim(value) == 1 and np.size(value) == 2 and np.asarray(value).dtype.kind in "iuf"


def _pair(edge: Sequence[int] | np.ndarray) -> str:
    return "-".join(str(int(node)) for node in edge)


def by_name(name: str) -> tuple[Graph, ...]:
    """The graphs of a family's name, as ``"grid:10x10"``, ``"petersen"`` or ``"regular:200x4:7"`` with a seed.

    Raises:
        ValueError: No such family, or sizes that it does not have; says which it has.
    """
    found = NAME.fullmatch(name)
    if found is None or found["family"] not in FAMILIES:
        known = ", ".join(family.form for family in FAMILIES.values())
        near = nearest(name.partition(":")[0], FAMILIES)
        hint = f"did you mean {FAMILIES[near].form}? " if near else ""
        others = "files (.edges, .txt), edge arrays and networkx graphs"
        raise ValueError(f"no graph {name!r}: {hint}names are {known}; there are {others} besides")
    family = FAMILIES[found["family"]]
    sizes = [int(found[part]) for part in ("first", "second") if found[part] is not None]
    if len(sizes) != family.sizes or (found["seed"] is not None and not family.is_drawn):
        raise ValueError(f"graph {name!r} must look like {family.form!r}")
    try:
        drawings = family.draw(sizes, int(found["seed"] or 0))
    except BadSize as error:
        raise ValueError(f"graph {name!r}: {error}") from None
    if len(drawings) == 1:
        return (_drawn(name, drawings[0]),)
    return tuple(_drawn(f"{name}[{k}]", drawing) for k, drawing in enumerate(drawings))


def _drawn(name: str, drawing: Drawing) -> Graph:
    return Graph(name, drawing.nodes, np.array(drawing.edges, np.int64).reshape(-1, 2), (), drawing.places)


def from_array(edges: Any, name: str = "graph") -> Graph:
    """The graph of an edge array ``[E, 2]`` of whole numbers; its nodes are 0 to the largest one.

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
    return Graph(name, int(array.max()) + 1, array)


def from_networkx(graph: Any) -> Graph:
    """A graph of networkx, or of anything with the same ``nodes``, ``edges``, ``is_directed`` and ``name``.

    Raises:
        ValueError: It is directed, or refused; see `Graph`.
    """
    name = str(getattr(graph, "name", "") or "graph")
    if graph.is_directed():
        raise ValueError(f"{name}: the graph is directed, teams move both ways: pass graph.to_undirected()")
    labels = [str(node) for node in graph.nodes]
    number = {node: k for k, node in enumerate(graph.nodes)}
    edges = [[number[edge[0]], number[edge[1]]] for edge in graph.edges]
    return Graph(name, len(labels), np.array(edges, np.int64).reshape(-1, 2), tuple(labels))


def read_file(path: Path) -> Graph:
    """Reads a file of edges: a line for each, two names of nodes; a name alone is a node, ``#`` begins a comment.

    Nodes have the order of their first line; where all are the whole numbers from 0 on, they are these numbers.

    Raises:
        FileError: The file cannot be read, or a line cannot be used; names file and line.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"{path}: cannot be read as text: {error}") from error
    number: dict[str, int] = {}
    line_of: dict[tuple[int, ...], int] = {}
    for k, line in enumerate(lines, start=1):
        words = line.partition("#")[0].split()
        if len(words) > 2:
            raise FileError(f"{path}, line {k}: {len(words)} words; a line is an edge, two names of nodes")
        nodes = tuple(number.setdefault(word, len(number)) for word in words)
        edge = tuple(sorted(nodes))
        if len(edge) == 2 and edge in line_of:
            raise FileError(f"{path}, line {k}: edge {'-'.join(words)} is in line {line_of[edge]} already")
        if len(edge) == 2 and edge[0] == edge[1]:
            raise FileError(f"{path}, line {k}: an edge from {words[0]} to itself; staying needs none")
        line_of[edge] = k
    if not number:
        raise FileError(f"{path}: no node; a line is an edge, two names of nodes")
    labels = tuple(number)
    if sorted(labels, key=lambda word: (len(word), word)) == [str(k) for k in range(len(labels))]:
        number, labels = {label: int(label) for label in labels}, ()
    edges = [[number[word] for word in line.partition("#")[0].split()] for line in lines]
    pairs = np.array([edge for edge in edges if len(edge) == 2], np.int64).reshape(-1, 2)
    try:
        return Graph(path.stem, len(number), pairs, labels)
    except ValueError as error:
        raise FileError(f"{path}: {error}") from None


def class_of(graphs: Iterable[Graph]) -> int:
    """The least of `DEGREE_CLASSES` that holds the closed neighbourhoods of all graphs."""
    widest = max(graph.neighbours.shape[1] for graph in graphs)
    return next(size for size in DEGREE_CLASSES if size >= widest)
