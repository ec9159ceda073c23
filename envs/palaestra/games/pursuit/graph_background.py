"""The empty picture of a graph: where its nodes and edges are, and what never changes in a match."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from palaestra.drawing.canvas import Canvas, Point
from palaestra.drawing.colors import BACKGROUND, LINE, MUTED, PANEL, SIGNAL, Color, blend, fade
from palaestra.games.pursuit.graph_ground import NO_NODE, Ground
from palaestra.games.pursuit.layouts import places_of

WIDTH, MARGIN, HEADER, FOOTER = 720, 14, 58, 34
"""Pixels: of all pictures, at the sides, above and below the graph."""
LOWEST, HIGHEST = 180, 560
"""Pixels of the part that shows the graph; the most where a match draws one of several graphs."""
PADDING = 28
"""Pixels around the graph, for agents that are at its border."""
MOST_STRETCHED = 4.0
"""A graph that is longer is not stretched further to fill its frame: it would show what is no shape."""
CROWDED = 60
"""Nodes from which on those of a computed layout are spread more evenly."""
STUB = 26.0
"""Pixels of an edge that leaves the picture, at most."""
LABELLED = 7.5
"""Nodes of at least this radius show their numbers."""
SMALLEST_NODE = 1.8
"""Pixels of the smallest nodes' radius."""
LARGEST_HUB = 2.5
"""Most that a node with many neighbours is larger than the others."""
SMALLEST = 7.0
"""Pixels of the smallest agents' radius."""
CURVE_POINTS = 17
FULL_COLOR, FAINTEST = 0.1, 0.25
"""Pixels of edges over those of the picture up to which edges have their full colour; least opacity."""
MOST_CHECKED = 4_000_000
"""Pairs of an edge and a node that are looked at for edges that pass a node."""
MOST_CACHED = 8
"""Empty pictures that are kept."""
EDGE: Color = blend(LINE, MUTED, 0.3)
NODE: Color = blend(LINE, MUTED, 0.75)

Polyline = Sequence[Point]


class GraphBackground(NamedTuple):
    """A graph on its picture.

    Attributes:
        points: Pixels of the nodes, float64 ``[V, 2]``.
        edges: int64 ``[E, 2]``.
        bent: Lines of the edges that are not straight, by their nodes, the smaller one first.
        spacing: Pixels between nodes that are near to each other.
        node_radius: Pixels of a node.
        radii: Likewise of each: larger where it has more neighbours than most, if nodes are crowded. float64 ``[V]``.
        agent_radius: Pixels of an agent.
        height: Pixels of the picture.
        canvas: The picture without agents.
    """

    points: np.ndarray
    edges: np.ndarray
    bent: dict[tuple[int, int], list[Polyline]]
    spacing: float
    node_radius: float
    radii: np.ndarray
    agent_radius: float
    height: int
    canvas: Canvas

    def point(self, node: int) -> Point:
        """Pixels of a node."""
        x, y = self.points[node].tolist()
        return x, y

    def lines(self, start: int, end: int) -> list[Polyline]:
        """The lines of the edge between two nodes."""
        straight: Polyline = [self.point(start), self.point(end)]
        return self.bent.get((min(start, end), max(start, end)), [straight])


_backgrounds: OrderedDict[tuple, GraphBackground] = OrderedDict()


def background_of(world: Ground, graph: int) -> GraphBackground:
    """The empty picture of a graph. It is kept, so that the next call is fast: copy its canvas to draw on it."""
    nodes = int(world.nodes[graph])
    neighbours = world.neighbours[graph, :nodes]
    key = (
        len(world.nodes) > 1,
        neighbours.shape,
        neighbours.tobytes(),
        world.places[graph, :nodes].tobytes(),
        world.exits[graph].tobytes(),
    )
    if key not in _backgrounds:
        if len(_backgrounds) >= MOST_CACHED:
            _backgrounds.popitem(last=False)
        _backgrounds[key] = make_background(world, graph)
    return _backgrounds[key]


def make_background(world: Ground, graph: int) -> GraphBackground:
    """Places nodes and edges, and draws what never changes."""
    nodes, places = int(world.nodes[graph]), places_of(world, graph)
    neighbours = world.neighbours[graph, :nodes, 1:]
    start, way = np.nonzero(neighbours > np.arange(nodes)[:, None])
    edges = np.column_stack([start, neighbours[start, way]]).astype(np.int64)
    size = np.maximum(np.ptp(places, axis=0), 1e-9)
    room = WIDTH - 2 * (MARGIN + PADDING)
    tall = math.ceil(min(max(room * size[1] / size[0] + 2 * PADDING, LOWEST), HIGHEST))
    tall = HIGHEST if len(world.nodes) > 1 else tall
    is_known = bool(np.isfinite(world.places[graph, :nodes]).all())
    filled = fill(places if is_known or nodes < CROWDED else evened(places), np.array([room, tall - 2 * PADDING]))
    points = (WIDTH / 2, HEADER + tall / 2) + filled * (1.0, -1.0)
    spacing = spacing_of(points)
    node_radius = min(max(0.17 * spacing, SMALLEST_NODE), 12.0)
    bent = {} if len(edges) == 0 else bend(points, edges, spacing, node_radius)
    canvas = Canvas(WIDTH, HEADER + tall + FOOTER, BACKGROUND)
    agent_radius = min(max(0.36 * spacing, SMALLEST), 16.0)
    radii = radii_of(node_radius, (neighbours != NO_NODE).sum(axis=1), is_known)
    background = GraphBackground(points, edges, bent, spacing, node_radius, radii, agent_radius, canvas.height, canvas)
    canvas.rectangle(MARGIN, HEADER, WIDTH - MARGIN, HEADER + tall, PANEL, 6)
    draw_edges(canvas, background)
    for node in range(nodes):
        canvas.circle(background.point(node), float(radii[node]), node_color(node_radius))
    for node in world.exits[graph][world.exits[graph] != NO_NODE].tolist():
        draw_exit(canvas, background.point(node), exit_radius(background))
    return background


def fill(places: np.ndarray, room: np.ndarray) -> np.ndarray:
    """Places around the middle of a rectangle that reach its sides, float64 ``[V, 2]``; ``room`` is its size.

    A graph without breadth, as a path, stays a line.
    """
    size = np.ptp(places, axis=0)
    scale = room / np.maximum(size, 1e-6 * size.max() + 1e-9)
    scale = np.minimum(scale, MOST_STRETCHED * scale.min())
    return (places - 0.5 * (places.min(axis=0) + places.max(axis=0))) * scale


def evened(places: np.ndarray) -> np.ndarray:
    """A layout whose nodes stand less crowded: half of each coordinate is the place in the order of the nodes."""
    order = places.argsort(axis=0, kind="stable").argsort(axis=0, kind="stable")
    size = np.maximum(np.ptp(places, axis=0), 1e-9)
    return size * (0.5 * (places - places.min(axis=0)) / size + 0.5 * order / max(len(places) - 1, 1))


def radii_of(node_radius: float, degrees: np.ndarray, is_known: bool) -> np.ndarray:
    """Pixels of the nodes' radii: by the root of their neighbours over the median, so that hubs are seen.

    All are as large where places are known, or where nodes are large enough for their numbers.
    """
    if is_known or node_radius >= LABELLED:
        return np.full(len(degrees), node_radius)
    return node_radius * np.clip(np.sqrt(degrees / max(float(np.median(degrees)), 1.0)), 1.0, LARGEST_HUB)


def node_color(node_radius: float) -> Color:
    """Colour of a node: darker where it is large and shows its number."""
    return NODE if node_radius < LABELLED else blend(NODE, PANEL, 0.45)


def spacing_of(points: np.ndarray) -> float:
    """Pixels from a node to the nearest other one: less at a fifth of the nodes, more at the others."""
    nearest = np.empty(len(points))
    for first in range(0, len(points), 512):
        here = points[first : first + 512]
        ways = np.square(here[:, None, 0] - points[:, 0]) + np.square(here[:, None, 1] - points[:, 1])
        ways[np.arange(len(here)), first + np.arange(len(here))] = math.inf
        nearest[first : first + 512] = ways.min(axis=1)
    return math.sqrt(float(np.quantile(nearest, 0.2)))


def bend(
    points: np.ndarray, edges: np.ndarray, spacing: float, node_radius: float
) -> dict[tuple[int, int], list[Polyline]]:
    """Lines of the edges that would pass over other nodes.

    Such an edge between opposite borders, as on a torus, leaves the picture on both sides; any other one is a curve.
    """
    low, high = points.min(axis=0), points.max(axis=0)
    border = 0.04 * (high - low).max()
    bent: dict[tuple[int, int], list[Polyline]] = {}
    for a, b in edges[pass_over(points, edges, node_radius)].tolist():
        start, end = points[a], points[b]
        first, last = np.minimum(start, end), np.maximum(start, end)
        opposite = (first - low < border) & (high - last < border) & (high - low > border)
        bent[a, b] = stubs(start, end, min(STUB, 0.5 * spacing)) if opposite.any() else [curve(start, end, spacing)]
    return bent


def pass_over(points: np.ndarray, edges: np.ndarray, node_radius: float) -> np.ndarray:
    """Numbers of the edges whose straight lines pass over a node that is not theirs."""
    length = np.linalg.norm(points[edges[:, 1]] - points[edges[:, 0]], axis=1)
    longest_first = np.argsort(-length, kind="stable")[: MOST_CHECKED // len(points)]
    found = []
    for number in longest_first.tolist():
        (start, end), long = points[edges[number]], max(float(length[number]), 1e-9)
        along = (points - start) @ ((end - start) / long)
        aside = np.abs((points - start) @ (np.array([start[1] - end[1], end[0] - start[0]]) / long))
        inside = (along > 0.5) & (along < long - 0.5)
        if (inside & (aside < node_radius + 1.0)).any():
            found.append(number)
    return np.sort(np.array(found, np.int64))


def stubs(start: np.ndarray, end: np.ndarray, length: float) -> list[Polyline]:
    """The two ends of an edge, each going away from the other."""
    way = (end - start) / max(float(np.linalg.norm(end - start)), 1e-9) * length
    ends = [[start, start - way], [end, end + way]]
    return [[tuple(point.tolist()) for point in line] for line in ends]


def curve(start: np.ndarray, end: np.ndarray, spacing: float) -> Polyline:
    """A bow between two points."""
    way = end - start
    length = max(float(np.linalg.norm(way)), 1e-9)
    aside = np.array([-way[1], way[0]]) / length * min(max(spacing, 0.12 * length), 0.4 * length)
    control = 0.5 * (start + end) + aside
    share = np.linspace(0.0, 1.0, CURVE_POINTS)[:, None]
    found = (1 - share) ** 2 * start + 2 * share * (1 - share) * control + share**2 * end
    return [tuple(point) for point in found.tolist()]


def draw_edges(canvas: Canvas, background: GraphBackground) -> None:
    """All edges, thinner and fainter where there are more of them than room."""
    crowd = len(background.edges) / max(1.0, len(background.points))
    width = 2.0 if background.spacing > 26.0 and crowd < 6.0 else 1.0 if background.spacing > 8.0 else 0.5
    starts, ends = (background.points[background.edges[:, side]] for side in (0, 1))
    covered = float(np.linalg.norm(ends - starts, axis=1).sum()) / ((WIDTH - 2 * MARGIN) * background.height)
    color = fade(EDGE, min(1.0, max(FAINTEST, FULL_COLOR / max(covered, 1e-9))))
    for a, b in background.edges.tolist():
        for line in background.lines(a, b):
            canvas.line(line, color, width)


def exit_radius(background: GraphBackground) -> float:
    """Pixels from the middle of the mark of an exit to its corners."""
    return max(1.9 * background.node_radius, 7.0)


def draw_exit(canvas: Canvas, center: Point, radius: float) -> None:
    """A lozenge around a node by which evaders escape; a large one leaves room for the node's number."""
    core = [(0.32 * radius, SIGNAL)] if radius < 1.9 * LABELLED else []
    for size, color in ((radius, SIGNAL), (radius - 2.2, blend(SIGNAL, PANEL, 0.75)), *core):
        canvas.polygon(lozenge(center, size), color)


def lozenge(center: Point, radius: float) -> list[Point]:
    """The corners of a square, one of them below the others."""
    x, y = center
    return [(x, y - radius), (x + radius, y), (x, y + radius), (x - radius, y)]
