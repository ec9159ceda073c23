"""Places of the nodes of a graph in its pictures: the places that are known, else a layout by hops.

A layout brings the distances between nodes as near as it can to their hops. It starts from the hops to a few pivots
(Brandes and Pich, "Eigensolver methods for progressive multidimensional scaling of large data", 2006) and goes on by
stress majorisation (Gansner, Koren and North, "Graph drawing by stress majorization", 2004): of all pairs for up to
`MOST_PAIRED` nodes, else of each node with its neighbours and the pivots. Nothing in it is random.
"""

from __future__ import annotations

import math
from collections import OrderedDict

import numpy as np

from palaestra.games.pursuit.graph_ground import FAR, Ground

MOST_PAIRED = 600
"""Nodes of the largest graph in whose layout every pair counts."""
PIVOTS = 48
ROUNDS = 60
"""Rounds of stress majorisation."""
LEAST_WAY = 1e-9
GAP = 1.5
"""Edges between two components."""
LANDSCAPE = 1.5
"""Width over height that several components together come near to."""
MOST_CACHED = 512
"""Layouts that are kept."""

_layouts: OrderedDict[tuple, np.ndarray] = OrderedDict()


def places_of(world: Ground, graph: int) -> np.ndarray:
    """Places of a graph's nodes, float64 ``[V, 2]``, y upwards. They are kept, so that the next call is fast.

    Args:
        world: The arrays of the game.
        graph: Number of the graph.
    """
    nodes = int(world.nodes[graph])
    known = world.places[graph, :nodes]
    if np.isfinite(known).all():
        return known
    neighbours = world.neighbours[graph, :nodes]
    key = (neighbours.shape, neighbours.tobytes())
    if key not in _layouts:
        if len(_layouts) >= MOST_CACHED:
            _layouts.popitem(last=False)
        _layouts[key] = lay_out(neighbours, world.hops[graph, :nodes, :nodes])
        _layouts[key].setflags(write=False)
    return _layouts[key]


def lay_out(neighbours: np.ndarray, hops: np.ndarray) -> np.ndarray:
    """A layout of a graph; an edge is about 1 long, and no two nodes have the same place.

    Args:
        neighbours: Closed neighbourhoods, int16 ``[V, D]``, -1 at the end.
        hops: int16 ``[V, V]``, `FAR` where there is no way.

    Returns:
        float64 ``[V, 2]``. Components are side by side, the largest one first.
    """
    first = (hops < FAR).argmax(axis=1)
    parts = sorted((np.flatnonzero(first == node) for node in np.unique(first)), key=lambda part: -len(part))
    number = np.zeros(len(hops), np.int64)
    for part in parts:
        number[part] = np.arange(len(part))
    places = np.zeros((len(hops), 2))
    for part in parts:
        near = neighbours[part]
        places[part] = lay_out_connected(np.where(near < 0, -1, number[near]), hops[np.ix_(part, part)])
    return spread_out(side_by_side(places, parts) if len(parts) > 1 else places)


def lay_out_connected(neighbours: np.ndarray, hops: np.ndarray) -> np.ndarray:
    """The layout of one component, its longest extent across and its first node to the left."""
    nodes = len(hops)
    if nodes == 1:
        return np.zeros((1, 2))
    pivots = choose_pivots(hops)
    start = place_by_pivots(hops[:, pivots].astype(float))
    if nodes <= MOST_PAIRED:
        return align(majorize_all(hops.astype(float), start))
    near = np.where(neighbours[:, 1:] < 0, np.arange(nodes)[:, None], neighbours[:, 1:])
    others = np.concatenate([near, np.broadcast_to(pivots, (nodes, len(pivots)))], axis=1)
    return align(majorize_some(others, np.take_along_axis(hops, others, axis=1).astype(float), start))


def choose_pivots(hops: np.ndarray) -> np.ndarray:
    """Nodes far from each other, at most `PIVOTS`: each is as far as possible from those before."""
    pivots, nearest = [int(hops[0].argmax())], hops[int(hops[0].argmax())].copy()
    while len(pivots) < min(PIVOTS, len(hops)):
        pivots.append(int(nearest.argmax()))
        nearest = np.minimum(nearest, hops[pivots[-1]])
    return np.array(pivots)


def place_by_pivots(hops: np.ndarray) -> np.ndarray:
    """The two directions in which the hops to pivots, float ``[V, P]``, differ most, float64 ``[V, 2]``.

    Nodes that have the same hops to all pivots are moved apart a little.
    """
    square = hops**2
    centred = square - square.mean(axis=0) - square.mean(axis=1, keepdims=True) + square.mean()
    _, axes = np.linalg.eigh(centred.T @ centred)
    found = centred @ axes[:, -1:-3:-1]
    found = np.pad(found, ((0, 0), (0, 2 - found.shape[1])))
    found *= np.abs(hops).max() / max(2.0 * float(np.abs(found).max()), LEAST_WAY)
    angle = math.pi * (3.0 - math.sqrt(5.0)) * np.arange(len(hops))
    return found + 0.02 * np.column_stack([np.cos(angle), np.sin(angle)])


def majorize_all(hops: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Lowers the stress, the sum over pairs of ``((distance - hops) / hops)^2``: each round solves for all places."""
    nodes = len(hops)
    weights = 1.0 / np.maximum(hops, 1.0) ** 2
    np.fill_diagonal(weights, 0.0)
    inverse = np.linalg.inv(np.diag(weights.sum(axis=1)) - weights + 1.0 / nodes)
    pull = weights * hops
    for _ in range(ROUNDS):
        ways = np.sqrt(np.square(places[:, None, 0] - places[:, 0]) + np.square(places[:, None, 1] - places[:, 1]))
        pulls = pull / np.maximum(ways, LEAST_WAY)
        places = inverse @ (pulls.sum(axis=1)[:, None] * places - pulls @ places)
    return places


def majorize_some(others: np.ndarray, hops: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Likewise with some other nodes for each, int ``[V, K]``, and its hops to them, float ``[V, K]``.

    A round moves each node to where it would have the least stress if the others stood still. Nodes of ``others`` with
    0 hops do not count.
    """
    weights = np.where(hops > 0.0, 1.0 / np.maximum(hops, 1.0) ** 2, 0.0)[..., None]
    total = weights.sum(axis=1)
    for _ in range(ROUNDS):
        there = places[others]
        way = places[:, None] - there
        far = np.maximum(np.sqrt((way * way).sum(axis=-1, keepdims=True)), LEAST_WAY)
        places = (weights * (there + way * (hops[..., None] / far))).sum(axis=1) / total
    return places


def align(places: np.ndarray) -> np.ndarray:
    """Turns a layout so that it is wider than high and its first node is on the left and in the upper half."""
    places = places - places.mean(axis=0)
    _, axes = np.linalg.eigh(places.T @ places)
    places = places @ axes[:, ::-1]
    return places * np.where(places[0] * (1.0, -1.0) > 0.0, -1.0, 1.0)


def side_by_side(places: np.ndarray, parts: list[np.ndarray]) -> np.ndarray:
    """Moves the components into rows, from the upper left on, in their order."""
    sizes = np.array([np.ptp(places[part], axis=0) for part in parts]) + GAP
    width = max(float(sizes[:, 0].max()), math.sqrt(LANDSCAPE * float(sizes.prod(axis=1).sum())))
    found, left, top, tall = places.copy(), 0.0, 0.0, 0.0
    for part, (wide, high) in zip(parts, sizes.tolist(), strict=True):
        if left > 0.0 and left + wide > width:
            left, top, tall = 0.0, top - tall, 0.0
        low, up = places[part].min(axis=0)[0], places[part].max(axis=0)[1]
        found[part] += (left - low, top - up)
        left, tall = left + wide, max(tall, high)
    return found


def spread_out(places: np.ndarray) -> np.ndarray:
    """Moves nodes off cells of a fine lattice that another node is in, to the nearest free cell."""
    cell = min(0.25, 0.4 * float(np.ptp(places, axis=0).max()) / math.sqrt(len(places)))
    if cell <= 0.0:
        return places
    found, taken = places.copy(), set[tuple[int, int]]()
    moved = []
    for node, (column, row) in enumerate(np.floor(places / cell).astype(int).tolist()):
        if (column, row) in taken:
            moved.append((node, column, row))
        taken.add((column, row))
    for node, column, row in moved:
        free = _nearest_free(taken, column, row)
        taken.add(free)
        found[node] = (free[0] + 0.5) * cell, (free[1] + 0.5) * cell
    return found


def _nearest_free(taken: set[tuple[int, int]], column: int, row: int) -> tuple[int, int]:
    """A cell that is not taken on the smallest square around one that has such cells, the nearest of them."""
    ring = 1
    while True:
        sides = [
            (column + c, row + r)
            for c in range(-ring, ring + 1)
            for r in (range(-ring, ring + 1) if abs(c) == ring else (-ring, ring))
        ]
        free = [cell for cell in sides if cell not in taken]
        if free:
            return min(free, key=lambda cell: (cell[0] - column) ** 2 + (cell[1] - row) ** 2)
        ring += 1
