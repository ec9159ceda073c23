"""The graphs of a game as arrays, which all its matches share: the world of pursuit and of confrontation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from palaestra.core.contract.keywords import check_count
from palaestra.core.files import printable_name
from palaestra.games.pursuit.graphs import Graph, class_of
from palaestra.games.pursuit.solver import MOST_GIGABYTES, NEVER, PursuitSolution, solve_pursuit

FAR = 2**15 - 1
"""Hops between nodes that no way connects, and to the next exit where there is none."""
NO_NODE = -1
ANY, TOGETHER, WINNABLE = range(3)
"""Starts of a match: places among the words of the option."""


class Rules(NamedTuple):
    """Options of a game. In a confrontation pursuers and evaders are red and blue.

    Attributes:
        pursuers: Size of the team.
        fewest_pursuers: Of those who are there in a match.
        evaders: Size of the team.
        order: 1 if the teams move in turns.
        starts: `ANY`, `TOGETHER` or `WINNABLE`.
        has_exits: 1 if a graph has exits.
        solved: 1 if there is a solution.
        sparse: 1 if only the end is paid.
    """

    pursuers: int = 0
    fewest_pursuers: int = 0
    evaders: int = 0
    order: int = 0
    starts: int = ANY
    has_exits: int = 0
    solved: int = 0
    sparse: int = 0


class Ground(NamedTuple):
    """Options, and the arrays of a pool of G graphs of at most V nodes, of which a match draws one.

    Attributes:
        rules: The options.
        nodes: Number of nodes, int64 ``[G]``.
        diameter: Most hops between two nodes that a way connects, int64 ``[G]``.
        per_hop: One over the diameter, float64 ``[G]``.
        neighbours: Closed neighbourhoods, int16 ``[G, V, D]``: the node itself, its neighbours, then `NO_NODE`; D is
            one of `palaestra.games.pursuit.graphs.DEGREE_CLASSES`.
        hops: int16 ``[G, V, V]``, `FAR` where there is no way.
        eccentricity: Most hops from a node to another one, as a share of the diameter, float64 ``[G, V]``.
        farness: Likewise the mean of the hops from a node to all that a way leads to, itself among them.
        exits: Nodes by which evaders escape, int16 ``[G, X]``, X at least 1, then `NO_NODE`.
        exit_hops: Hops to the next exit, int16 ``[G, V]``, `FAR` where there is none.
        times: Times of the solution, int16 ``[G, V ** (k + 1)]``, see `palaestra.games.pursuit.solver.PursuitSolution`;
            one number a graph where the game is not solved.
        escapes: Likewise; one number a graph without exits.
        safe_start: Nodes of the pursuers and of an evader from which the pursuers win, int16 ``[G, k + 1]``; 0 where
            the game is not solved.
        places: Where to draw the nodes, float64 ``[G, V, 2]``; NaN where that is not known.
    """

    rules: Rules
    nodes: np.ndarray
    diameter: np.ndarray
    per_hop: np.ndarray
    neighbours: np.ndarray
    hops: np.ndarray
    eccentricity: np.ndarray
    farness: np.ndarray
    exits: np.ndarray
    exit_hops: np.ndarray
    times: np.ndarray
    escapes: np.ndarray
    safe_start: np.ndarray
    places: np.ndarray


def ground_of(pool: Sequence[Graph], exits: Sequence[Sequence[int]] | None = None, **rules: int) -> Ground:
    """The arrays of some graphs without a solution.

    Args:
        pool: The graphs.
        exits: Nodes by which evaders escape, of each graph.
        **rules: Members of `Rules`.

    Raises:
        ValueError: A graph has a single node.
    """
    for graph in pool:
        if graph.nodes < 2:
            raise graph.refusal("no possible start, it has a single node")
    exits = [()] * len(pool) if exits is None else exits
    count, most, width = len(pool), max(graph.nodes for graph in pool), class_of(pool)
    ground = Ground(
        rules=Rules(**{name: int(value) for name, value in rules.items()}),
        nodes=np.array([graph.nodes for graph in pool]),
        diameter=np.array([graph.diameter for graph in pool]),
        per_hop=np.array([1.0 / graph.diameter for graph in pool]),
        neighbours=np.full((count, most, width), NO_NODE, np.int16),
        hops=np.full((count, most, most), FAR, np.int16),
        eccentricity=np.zeros((count, most)),
        farness=np.zeros((count, most)),
        exits=np.full((count, max(1, *map(len, exits)) if exits else 1), NO_NODE, np.int16),
        exit_hops=np.full((count, most), FAR, np.int16),
        times=np.zeros((count, 1), np.int16),
        escapes=np.zeros((count, 1), np.int16),
        safe_start=np.zeros((count, 1), np.int16),
        places=np.full((count, most, 2), np.nan),
    )
    for k, graph in enumerate(pool):
        size = graph.nodes
        ground.neighbours[k, :size, : graph.neighbours.shape[1]] = graph.neighbours
        ground.hops[k, :size, :size] = np.where(graph.hops < 0, FAR, graph.hops)
        hops = np.maximum(graph.hops, 0)
        ground.eccentricity[k, :size] = hops.max(axis=1) * ground.per_hop[k]
        ground.farness[k, :size] = hops.sum(axis=1) / (graph.hops >= 0).sum(axis=1) * ground.per_hop[k]
        if len(exits[k]):
            ground.exits[k, : len(exits[k])] = exits[k]
            ground.exit_hops[k, :size] = ground.hops[k, list(exits[k]), :size].min(axis=0)
        if graph.places is not None:
            ground.places[k, :size] = graph.places
    return ground


def exits_of(graph: Graph, exits: int | Sequence[Any]) -> tuple[int, ...]:
    """The nodes by which evaders escape.

    Args: graph: The graph. exits: Nodes, see `palaestra.games.pursuit.graphs.Graph.node_of`; or how many: each is then
        as far as possible from
            those before, the first one as far as possible from node 0.

    Raises:
        ValueError: No such node, one that is named twice, or not one node is left that is no exit.
    """
    if isinstance(exits, int | np.integer):
        check_count("exits", exits, 0, graph.nodes - 1)
        chosen: list[int] = []
        hops = np.where(graph.hops < 0, FAR, graph.hops)
        nearest = hops[0].copy()
        for _ in range(exits):
            chosen.append(int(nearest.argmax()))
            nearest = np.minimum(nearest, hops[chosen[-1]]) if len(chosen) > 1 else hops[chosen[-1]].copy()
        return tuple(chosen)
    nodes = graph.nodes_of(exits, "exits")
    if len(nodes) >= graph.nodes:
        raise graph.refusal("no possible start, every node is an exit")
    return nodes


def with_solutions(
    ground: Ground, pool: Sequence[Graph], exits: Sequence[Sequence[int]], pursuers: int, need: int, radius: int
) -> Ground:
    """The arrays with the solution of each graph, see `palaestra.games.pursuit.solver.solve_pursuit`.

    Raises:
        ValueError: They would take too much memory: says how much; or matches are to start where the pursuers win, and
            on some graph they win from nowhere.
    """
    most = ground.hops.shape[1]
    size, has_exits = most ** (pursuers + 1), any(map(len, exits))
    needed = 2 * len(pool) * size * (1 + has_exits)
    if needed > MOST_GIGABYTES * 1e9:
        where = (
            f"{len(pool)} graphs of up to {most} nodes"
            if len(pool) > 1
            else f"{printable_name(pool[0].name)} ({most} nodes)"
        )
        what = f"solve: {pursuers} pursuers on {where} would take"
        raise ValueError(f"{what} {needed / 1e9:,.1f} GB, at most {MOST_GIGABYTES:g} are allowed: take fewer")
    times = np.full((len(pool), *[most] * (pursuers + 1)), NEVER, np.int16)
    escapes = np.full_like(times, NEVER) if has_exits else np.zeros((len(pool), 1), np.int16)
    safe_start = np.zeros((len(pool), pursuers + 1), np.int16)
    for k, graph in enumerate(pool):
        solution = solve_pursuit(graph, pursuers, need, radius, exits[k])
        corner = (k, *[slice(graph.nodes)] * (pursuers + 1))
        times[corner] = solution.times
        if len(exits[k]):
            escapes[corner] = solution.escapes
        start = _winnable_start(solution)
        if start is None and ground.rules.starts == WINNABLE:
            raise graph.refusal(f"no possible start, {pursuers} pursuers win from nowhere: take more")
        safe_start[k] = 0 if start is None else start
    flat = times.reshape(len(pool), -1)
    return ground._replace(times=flat, escapes=escapes.reshape(len(pool), -1), safe_start=safe_start)


def _winnable_start(solution: PursuitSolution) -> Sequence[int] | None:
    """The first position from which the pursuers win, the evader being neither captured nor at an exit."""
    winnable = solution.times > 0
    winnable[..., list(solution.exits)] = False
    first = int(winnable.argmax())
    return np.unravel_index(first, winnable.shape) if winnable.reshape(-1)[first] else None  # type: ignore[return-value]
