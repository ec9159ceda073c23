"""Nodes and edges as files of graphs are read, within the size of the largest graph that there is."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

import numpy as np

from palaestra.core.files import printable, printable_name
from palaestra.games.pursuit.families import MOST as MOST_NODES

MOST_NEIGHBOURS = 64
MOST_EDGES = MOST_NODES * MOST_NEIGHBOURS // 2
MOST_WORDS = 2 * MOST_NODES + 2
"""Words of a line; the rest is the last one."""
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


def rows_of(lines: Iterable[str], comments: str = "") -> Iterator[tuple[int, list[str]]]:
    """The words of each line that has some and does not begin with the mark of a comment, with the line's number."""
    for k, line in enumerate(lines, start=1):
        words = line.split(None, MOST_WORDS)
        if words and words[0][0] not in comments:
            yield k, words


def is_whole(word: str) -> bool:
    """Whether a word is a whole number, of a size that a graph may have."""
    return word.isascii() and word.isdigit() and len(word) <= 9


def whole(word: str, low: int, high: int, what: str, line: int = 0) -> int:
    """A whole number of a stranger's text."""
    if not (is_whole(word) and low <= int(word) <= high):
        where = f"line {line}: " if line else ""
        raise BadGraph(f"{where}{what} must be a whole number from {low} to {high}, got {printable(word)}")
    return int(word)


def numbered(count: str, line: int = 0) -> Net:
    """Nodes called 1, 2, ..."""
    return Net(map(str, range(1, 1 + whole(count, 1, MOST_NODES, "the number of nodes", line))))


def node_in(net: Net, word: str, line: int) -> int:
    """A node of `numbered`."""
    return whole(word, 1, len(net.number), "a node", line) - 1
