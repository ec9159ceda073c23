"""Families of graphs by name: grids and trees, named graphs of theory, random graphs, dungeons and streets.

Each function of `FAMILIES` draws its graphs from scratch: nodes, edges and where to draw the nodes. What is random
draws from `random.Random` of a text with name, seed and number, and uses its ``random()`` alone, the one method whose
values Python promises to keep.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

MOST = 4096
"""Largest size of a graph; `palaestra.games.pursuit.graphs` refuses more nodes."""
MOST_GRAPHS = 4096
"""Graphs of a pool."""
MOST_PAIRS = 2**26
"""Pairs of nodes of all graphs of a pool, as hops between them are kept."""
MOST_STUBS = 2**20
"""Ends of edges that are drawn until a random regular graph is found."""
CORRIDOR = (2, 5)
"""Cells of a corridor of a dungeon, least and most."""
ROOM = (2, 5)
"""Sides of a room of a dungeon."""
LOOPS = 0.12
"""Probability that two neighbouring cells of different parts of a dungeon have a door."""
CLOSED = 0.15
"""Probability that a street of the lattice is closed, where no node is cut off."""
DIAGONALS = 0.06
"""Probability of a diagonal street in a block."""

Edge = tuple[int, int]
Cell = tuple[int, int]
STEPS: tuple[Cell, ...] = ((0, 1), (1, 0), (0, -1), (-1, 0))


class BadSize(ValueError):
    """Sizes that a family does not have; the message says which it has."""


@dataclass(frozen=True)
class Drawing:
    """A graph as a family makes it.

    Attributes:
        nodes: Number of nodes.
        edges: Each edge once.
        places: float64 ``[V, 2]``, x and y of each node; None where the shape has no natural picture.
    """

    nodes: int
    edges: Sequence[Edge]
    places: np.ndarray | None = None


@dataclass(frozen=True)
class Family:
    """What a name can be followed by, and who makes the graphs.

    Attributes:
        form: An example for messages.
        sizes: How many sizes the name has.
        draw: ``draw(sizes, seed)`` makes the graphs; of a pool each when it is asked for.
        is_drawn: Whether they are random, so that the name may end in a seed.
    """

    form: str
    sizes: int
    draw: Callable[[Sequence[int], int], Iterable[Drawing]]
    is_drawn: bool = False


def need(value: int, least: int, most: int, what: str) -> None:
    """Refuses a size out of range.

    Raises:
        BadSize: Names the size and the range.
    """
    if not least <= value <= most:
        raise BadSize(f"{what} must be {least} to {most}, got {value}")


# ------------------------------------------------------------------------------------------------------------- regular


def lattice(sizes: Sequence[int], wraps: bool, diagonal: bool) -> list[Drawing]:
    """Rows and columns of nodes, joined to the next ones; ``wraps`` joins the ends, ``diagonal`` the corners."""
    rows, columns = sizes
    least = 3 if wraps else 1
    need(rows, least, MOST, "rows")
    need(columns, least, MOST, "columns")
    need(rows * columns, 1, MOST, "rows x columns")
    ways = [(0, 1), (1, 0), *([(1, 1), (1, -1)] if diagonal else [])]
    edges = []
    for r in range(rows):
        for c in range(columns):
            for dr, dc in ways:
                to_r, to_c = r + dr, c + dc
                if wraps:
                    to_r, to_c = to_r % rows, to_c % columns
                if 0 <= to_r < rows and 0 <= to_c < columns:
                    edges.append((r * columns + c, to_r * columns + to_c))
    places = [(c, -r) for r in range(rows) for c in range(columns)]
    return [Drawing(rows * columns, edges, np.array(places, float))]


def path(sizes: Sequence[int], seed: int) -> list[Drawing]:
    """A row of nodes."""
    return lattice((1, sizes[0]), wraps=False, diagonal=False)


def on_circle(count: int, radius: float = 1.0, turn: float = 0.0) -> np.ndarray:
    """Places evenly on a circle, ``[count, 2]``; the first one at the top.

    Places are a part of the rules: sines are those of the C library, since NumPy's differ between processors.
    """
    angles = [2.0 * math.pi * (k + turn) / count for k in range(count)]
    return radius * np.array([(math.sin(angle), math.cos(angle)) for angle in angles])


def cycle(sizes: Sequence[int], seed: int) -> list[Drawing]:
    """A ring of nodes."""
    (n,) = sizes
    need(n, 3, MOST, "nodes")
    return [Drawing(n, [(k, (k + 1) % n) for k in range(n)], on_circle(n))]


def tree(sizes: Sequence[int], seed: int) -> list[Drawing]:
    """The tree whose nodes have b children down to a depth: ``tree:2x4`` has 31 nodes."""
    children, depth = sizes
    need(children, 1, 63, "children")
    need(depth, 0, MOST, "depth")
    levels = [1]
    for _ in range(depth):
        levels.append(levels[-1] * children)
        need(sum(levels), 1, MOST, "nodes")
    nodes = sum(levels)
    edges = [((k - 1) // children, k) for k in range(1, nodes)]
    places = [((k + 0.5) / count, -level / max(depth, 1)) for level, count in enumerate(levels) for k in range(count)]
    return [Drawing(nodes, edges, np.array(places))]


def cube(sizes: Sequence[int], seed: int) -> list[Drawing]:
    """The hypercube of a dimension: nodes are words of bits, neighbours differ in one."""
    (dimension,) = sizes
    need(dimension, 1, 12, "dimension")
    nodes = 1 << dimension
    edges = [(k, k ^ (1 << b)) for k in range(nodes) for b in range(dimension) if not k >> b & 1]
    # each dimension is a direction of its own in the plane, shorter from the third on
    angles = [math.pi * (k + 0.25) / dimension for k in range(dimension)]
    way = np.array([(0.8**k * math.cos(angle), 0.8**k * math.sin(angle)) for k, angle in enumerate(angles)])
    bits = np.arange(nodes)[:, None] >> np.arange(dimension) & 1
    return [Drawing(nodes, edges, (bits[..., None] * way).sum(1))]


def complete(sizes: Sequence[int], seed: int) -> list[Drawing]:
    """Every two nodes are neighbours."""
    (n,) = sizes
    need(n, 1, 65, "nodes")
    return [Drawing(n, [(a, b) for a in range(n) for b in range(a + 1, n)], on_circle(n))]


def petersen(sizes: Sequence[int], seed: int) -> list[Drawing]:
    """Petersen's graph: an outer ring of five, an inner star of five, and spokes."""
    edges = [(k, (k + 1) % 5) for k in range(5)] + [(5 + k, 5 + (k + 2) % 5) for k in range(5)]
    return [Drawing(10, edges + [(k, 5 + k) for k in range(5)], np.concatenate([on_circle(5), on_circle(5, 0.5)]))]


def heawood(sizes: Sequence[int], seed: int) -> list[Drawing]:
    """Heawood's graph: a ring of 14 with a chord from each even node to the fifth after it."""
    edges = [(k, (k + 1) % 14) for k in range(14)] + [(k, (k + 5) % 14) for k in range(0, 14, 2)]
    return [Drawing(14, edges, on_circle(14))]


def dodecahedron(sizes: Sequence[int], seed: int) -> list[Drawing]:
    """The edges of the dodecahedron: rings of 5, 10 and 5 nodes."""
    outer, middle, inner = range(5), range(5, 15), range(15, 20)
    edges = [(outer[k], outer[(k + 1) % 5]) for k in range(5)] + [(inner[k], inner[(k + 1) % 5]) for k in range(5)]
    edges += [(middle[k], middle[(k + 1) % 10]) for k in range(10)]
    edges += [(outer[k], middle[2 * k]) for k in range(5)] + [(inner[k], middle[2 * k + 1]) for k in range(5)]
    places = np.concatenate([on_circle(5), on_circle(10, 0.7), on_circle(5, 0.4, turn=0.5)])
    return [Drawing(20, edges, places)]


# -------------------------------------------------------------------------------------------------------------- random


def randrange(random: Random, n: int) -> int:
    """A whole number in [0, n)."""
    return int(random.random() * n)


def regular(sizes: Sequence[int], seed: int) -> list[Drawing]:
    """A random connected graph whose nodes have d neighbours: stubs are joined one by one, from anew at a dead end.

    After Steger and Wormald, "Generating random regular graphs quickly" (1999).
    """
    nodes, degree = sizes
    need(nodes, 3, MOST, "nodes")
    need(degree, 2, min(nodes - 1, 64), "degree")
    if nodes * degree % 2:
        raise BadSize(f"nodes x degree must be even, got {nodes} x {degree}")
    random = Random(f"regular {nodes} {degree} {seed}")
    for _ in range(max(MOST_STUBS // (nodes * degree), 8)):
        edges = _joined_stubs(random, nodes, degree)
        if edges and _is_connected(nodes, edges):
            return [Drawing(nodes, sorted(edges))]
    raise BadSize(f"no random graph of {nodes} nodes was found whose nodes all have {degree} neighbours: take fewer")


def _joined_stubs(random: Random, nodes: int, degree: int) -> set[Edge]:
    """Edges of a random regular graph; none at a dead end."""
    stubs, edges, misses = [node for node in range(nodes) for _ in range(degree)], set[Edge](), 0
    while stubs:
        a, b = randrange(random, len(stubs)), randrange(random, len(stubs))
        edge = (min(stubs[a], stubs[b]), max(stubs[a], stubs[b]))
        if edge[0] == edge[1] or edge in edges:
            misses += 1
            if misses > 100 + len(stubs):
                return set()
            continue
        edges.add(edge)
        misses = 0
        for k in sorted((a, b), reverse=True):
            stubs[k] = stubs[-1]
            stubs.pop()
    return edges


def scale_free(sizes: Sequence[int], seed: int) -> list[Drawing]:
    """Each new node joins m others, drawn by their numbers of neighbours (Barabasi and Albert, Science 286, 1999).

    It begins with m + 1 nodes that all are neighbours. Nobody gets more than 64 neighbours.
    """
    nodes, each = sizes
    need(each, 1, 16, "edges of a new node")
    need(nodes, each + 1, MOST, "nodes")
    random = Random(f"scale_free {nodes} {each} {seed}")
    edges = [(a, b) for a in range(each + 1) for b in range(a + 1, each + 1)]
    ends, degrees = [node for edge in edges for node in edge], [each] * (each + 1)
    for new in range(each + 1, nodes):
        chosen: list[int] = []
        while len(chosen) < each:
            node = ends[randrange(random, len(ends))]
            if node not in chosen and degrees[node] < 64:
                chosen.append(node)
        for node in chosen:
            edges.append((node, new))
            ends += [node, new]
            degrees[node] += 1
        degrees.append(each)
    return [Drawing(nodes, edges)]


def _is_connected(nodes: int, edges: set[Edge] | Sequence[Edge]) -> bool:
    near: list[list[int]] = [[] for _ in range(nodes)]
    for a, b in edges:
        near[a].append(b)
        near[b].append(a)
    seen, ahead = {0}, [0]
    while ahead:
        for node in near[ahead.pop()]:
            if node not in seen:
                seen.add(node)
                ahead.append(node)
    return len(seen) == nodes


# --------------------------------------------------------------------------------------------------------------- pools


def dungeons(sizes: Sequence[int], seed: int) -> Iterator[Drawing]:
    """Dungeons of rooms, whose cells one may cross diagonally, and corridors; all have the same number of cells."""
    count, nodes = sizes
    need(count, 1, MOST_GRAPHS, "dungeons")
    need(nodes, 8, MOST, "nodes")
    need(count, 1, MOST_PAIRS // nodes**2, f"dungeons of {nodes} nodes")
    return (dungeon(Random(f"dungeon {nodes} {seed} {k}"), nodes) for k in range(count))


def dungeon(random: Random, nodes: int) -> Drawing:
    """A dungeon that grows cell by cell: a corridor from a cell at random, a room at its end, until it is large enough.

    Each room and each corridor is a part. Cells of one part are joined; cells that touch by a side and belong to
    different parts have a door where the corridor was begun, else seldom: these doors close loops.
    """
    part: dict[Cell, int] = {}
    doors: set[tuple[Cell, Cell]] = set()
    rooms: set[int] = set()
    order: list[Cell] = []

    def add(cell: Cell, of: int, behind: Cell | None) -> bool:
        """Adds a free cell while there are too few. Returns whether the cell is of this part."""
        if cell not in part and len(order) < nodes:
            part[cell] = of
            order.append(cell)
            if behind is not None:
                doors.add((behind, cell))
        return part.get(cell) == of

    def add_room(corner: Cell, of: int, behind: Cell | None) -> None:
        """Adds the cells of a room that are free and can be reached from its first cell."""
        height, width = (ROOM[0] + randrange(random, ROOM[1] - ROOM[0] + 1) for _ in range(2))
        rooms.add(of)
        if not add(corner, of, behind):
            return
        down, right = (1 if random.random() < 0.5 else -1 for _ in range(2))
        for r in range(height):
            for c in range(width):
                cell = (corner[0] + down * r, corner[1] + right * c)
                if any(part.get((cell[0] + dr, cell[1] + dc)) == of for dr, dc in STEPS):
                    add(cell, of, None)

    add_room((0, 0), 0, None)
    last = 0
    while len(order) < nodes:
        behind, (dr, dc) = order[randrange(random, len(order))], STEPS[randrange(random, 4)]
        length = CORRIDOR[0] + randrange(random, CORRIDOR[1] - CORRIDOR[0] + 1)
        ahead = [(behind[0] + k * dr, behind[1] + k * dc) for k in range(1, length + 2)]
        if any(cell in part for cell in ahead):
            continue
        last += 2
        for cell in ahead[:-1]:
            add(cell, last - 1, behind)
            behind = cell
        if len(order) < nodes:
            add_room(ahead[-1], last, behind)
    return _joined_cells(random, order, part, doors, rooms)


def _joined_cells(
    random: Random, order: list[Cell], part: dict[Cell, int], doors: set[tuple[Cell, Cell]], rooms: set[int]
) -> Drawing:
    """The graph of the cells of a dungeon."""
    number = {cell: k for k, cell in enumerate(order)}
    edges = {(min(number[a], number[b]), max(number[a], number[b])) for a, b in doors}
    for cell in order:
        r, c = cell
        for dr, dc in ((0, 1), (1, 0), (1, 1), (1, -1)):
            other = (r + dr, c + dc)
            if other not in part:
                continue
            same, touches = part[cell] == part[other], 0 in (dr, dc)
            if (same and (touches or part[cell] in rooms)) or (touches and not same and random.random() < LOOPS):
                edges.add((min(number[cell], number[other]), max(number[cell], number[other])))
    return Drawing(len(order), sorted(edges), np.array([(c, -r) for r, c in order], float))


def streets(sizes: Sequence[int], seed: int) -> list[Drawing]:
    """Quarters of a city: a lattice with closed streets, missing crossings and some diagonals."""
    count, nodes = sizes
    need(count, 1, MOST_GRAPHS, "quarters")
    need(nodes, 9, MOST, "nodes")
    need(count, 1, MOST_PAIRS // nodes**2, f"quarters of {nodes} nodes")
    return [quarter(Random(f"streets {nodes} {seed} {k}"), nodes) for k in range(count)]


def quarter(random: Random, nodes: int) -> Drawing:
    """A quarter that keeps ``nodes`` crossings of a lattice: those that a walk in all directions reaches first."""
    side = math.isqrt(2 * nodes) + 2
    near: dict[Cell, list[Cell]] = {(r, c): [] for r in range(side) for c in range(side)}
    for (r, c), own in near.items():
        for cell in ((r, c + 1), (r + 1, c)):
            if cell in near and random.random() >= CLOSED:
                own.append(cell)
                near[cell].append((r, c))
        down = random.random() < 0.5
        ends = ((r, c), (r + 1, c + 1)) if down else ((r, c + 1), (r + 1, c))
        if random.random() < DIAGONALS and all(cell in near for cell in ends):
            near[ends[0]].append(ends[1])
            near[ends[1]].append(ends[0])
    start = (side // 2, side // 2)
    number, ahead = {start: 0}, [start]
    while ahead and len(number) < nodes:
        # the nearest crossings first, in random order among those that wait
        cell = ahead.pop(min(randrange(random, len(ahead)), randrange(random, len(ahead))))
        for other in near[cell]:
            if other not in number and len(number) < nodes:
                number[other] = len(number)
                ahead.append(other)
    if len(number) < nodes:  # the middle was cut off: draw another quarter from the same stream
        return quarter(random, nodes)
    edges = sorted((number[a], number[b]) for a in number for b in near[a] if b in number and number[a] < number[b])
    shift = [(random.random(), random.random()) for _ in number]
    places = [(c + 0.5 * x, -r + 0.5 * y) for (r, c), (x, y) in zip(number, shift, strict=True)]
    return Drawing(nodes, edges, np.array(places))


FAMILIES: dict[str, Family] = {
    "grid": Family("grid:10x10", 2, lambda sizes, seed: lattice(sizes, wraps=False, diagonal=False)),
    "path": Family("path:9", 1, path),
    "cycle": Family("cycle:12", 1, cycle),
    "tree": Family("tree:2x4", 2, tree),
    "torus": Family("torus:5x5", 2, lambda sizes, seed: lattice(sizes, wraps=True, diagonal=False)),
    "king": Family("king:5x5", 2, lambda sizes, seed: lattice(sizes, wraps=False, diagonal=True)),
    "cube": Family("cube:4", 1, cube),
    "complete": Family("complete:6", 1, complete),
    "petersen": Family("petersen", 0, petersen),
    "heawood": Family("heawood", 0, heawood),
    "dodecahedron": Family("dodecahedron", 0, dodecahedron),
    "regular": Family("regular:200x4", 2, regular, is_drawn=True),
    "scale_free": Family("scale_free:200x2", 2, scale_free, is_drawn=True),
    "dungeons": Family("dungeons:256x200", 2, dungeons, is_drawn=True),
    "streets": Family("streets:64x200", 2, streets, is_drawn=True),
}
"""The families by name."""
