"""The moves of optimal play in a solved match of alternating moves, as its pictures show them."""

from __future__ import annotations

from typing import Any

import numpy as np

from palaestra.games.pursuit.graph_ground import FAR, NO_NODE, Ground
from palaestra.games.pursuit.solver import NEVER

MOST_LOOKED_AT = 1_000_000
"""Joint moves and answers of one position, at most; of more none is shown."""
CAUGHT, ESCAPED = 2 * FAR + 2, -2 * FAR
"""Values for the pursuers. A capture in t moves is 2 FAR - t, an escape in t moves `ESCAPED` + t, neither is 0."""


def best_nodes(world: Ground, s: Any) -> dict[int, list[int]]:
    """Where those who are to move go in optimal play, by slot: of a team all nodes of any of its best joint moves.

    Empty where the game is not solved, moves are simultaneous, the match is over, or every move is as good.

    Args:
        world: The graphs of the game, and their solutions.
        s: The match record.
    """
    pursuers = int(world.rules.pursuers)
    if not world.rules.solved or not world.rules.order or not s.alive[pursuers]:
        return {}
    ways = [ways_of(world, s, slot) for slot in range(pursuers + 1)]
    most = world.hops.shape[1]
    if s.turn:
        start = position(most, [np.array(int(s.node[slot])) for slot in range(pursuers)])
        harm = values_of(world, s, start * most + ways[pursuers], ways[pursuers])
        is_best = harm == harm.min()
        return {} if is_best.all() else {pursuers: ways[pursuers][is_best].tolist()}
    if np.prod([float(len(nodes)) for nodes in ways]) > MOST_LOOKED_AT:
        return {}
    start = position(most, np.ix_(*ways[:-1]))
    answered = values_of(world, s, start[..., None] * most + ways[pursuers], ways[pursuers]).min(axis=-1)
    is_caught = world.times[s.graph, start * most + int(s.node[pursuers])] == 0
    value = np.where(is_caught, CAUGHT, answered)
    is_best = value == value.max()
    if is_best.all():
        return {}
    places = np.nonzero(is_best)
    return {slot: ways[slot][np.unique(places[slot])].tolist() for slot in range(pursuers)}


def ways_of(world: Ground, s: Any, slot: int) -> np.ndarray:
    """Nodes that an agent can go to, int64, its own first."""
    found = world.neighbours[s.graph, s.node[slot]].astype(np.int64)
    return found[found != NO_NODE]


def position(most: int, nodes: Any) -> np.ndarray:
    """Index of the pursuers' nodes, to be followed by the evader's; ``most`` is the stride."""
    number = np.array(0)
    for node in nodes:
        number = number * most + node
    return number


def values_of(world: Ground, s: Any, positions: np.ndarray, nodes: np.ndarray) -> np.ndarray:
    """Values int64 of positions for the pursuers, who are to move; ``nodes`` are those of the evader."""
    times = world.times[s.graph, positions].astype(np.int64)
    value = np.where(times == NEVER, 0, 2 * FAR - times)
    if world.rules.has_exits:
        escapes = world.escapes[s.graph, positions].astype(np.int64)
        value = np.where(escapes == NEVER, value, ESCAPED + escapes)
        value = np.where(world.exit_hops[s.graph, nodes] == 0, ESCAPED, value)
    return np.where(times == 0, CAUGHT, value)
