"""The map of both games on a grid: capacities, cells, alternatives, and moves that do not depend on the agents' order.

A cell is a row and a column, counted from the upper left corner. Directions are in the agent's own frame: *ahead* is to
the right for the first team, and to the left for the second one where the world is ``mirrored``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from palaestra.core.rng import mix64
from palaestra.game import Choice, Option, integer

CLASSES = ((16, 64), (128, 100), (512, 128), (1024, 200))
"""Capacities, each of its own compiled kernels: agents of a team, cells of a side of the map."""
MOST, LARGEST = CLASSES[-1]
EDGE = 2
"""Rows and columns of wall around the map: no way is longer."""
FARTHEST, CHANNELS = 6, 5
"""Cells that an agent can see to each side at most; numbers of a cell in its window."""
STRIDE = 4
"""Agents of a row that are copied at once."""
FREE, WALL = 0, -1
"""Cells without an agent; the agent in slot k is k + 1."""
FULL = 100
"""Hit points of an agent at the start, tenths."""
NOBODY = -1
NEAR = (("ahead", (0, 1)), ("back", (0, -1)), ("up", (-1, 0)), ("down", (1, 0)))
DIAGONAL = (
    ("ahead and up", (-1, 1)),
    ("ahead and down", (1, 1)),
    ("back and up", (-1, -1)),
    ("back and down", (1, -1)),
)
FAR = tuple((f"2 {name}", (2 * row, 2 * column)) for name, (row, column) in NEAR)
"""Names of the ways of an agent, and rows and columns ahead."""
LOTS = 2**32
"""How many draws of lots there are."""


class Alternatives(NamedTuple):
    """The alternatives of a team's choice `act`: 0 stays, then moves, then hits.

    Attributes:
        moves: How many are moves.
        hits: How many are hits.
        ways: Rows and columns ahead of each, int64 ``[1 + moves + hits, 2]``.
    """

    moves: int
    hits: int
    ways: np.ndarray


class World(NamedTuple):
    """Numbers of a game that do not change, read-only.

    Attributes:
        size: Cells of a side of the map.
        sizes: Agents of the two teams, int64 ``[2]``.
        mirrored: 1 if ahead is to the left for the second team.
        first: Alternatives of the first team.
        second: Those of the second one.
        sight: Cells that an agent sees to each side.
        radius: Cells to each side in which it has neighbours.
        alone: 1 if nobody gets a cell that several want.
        sparse: 1 if the end alone, or a catch alone, is paid.
        need: Hits in one decision that catch a prey; 1 in a battle.
        returns: 1 if a caught prey comes back.
    """

    size: int
    sizes: np.ndarray
    mirrored: int
    first: Alternatives
    second: Alternatives
    sight: int
    radius: int
    alone: int
    sparse: int
    need: int = 1
    returns: int = 0


def alternatives(moves: tuple, hits: tuple) -> Alternatives:
    """The alternatives of a team whose agents have these named moves and hits."""
    ways = [(0, 0), *(way for _, way in (*moves, *hits))]
    return Alternatives(len(moves), len(hits), np.array(ways, np.int64))


def choice_of(moves: tuple, hits: tuple) -> Choice:
    """The choice of an agent that has these named moves and hits."""
    words = ("stay", *(f"move {name}" for name, _ in moves), *(f"hit {name}" for name, _ in hits))
    return Choice("act", len(words), words, "a cell to move to, or one to hit" if hits else "a cell to move to")


# ------------------------------------------------------------------------------------------------------------- options

MAP_SIZE = Option("map_size", 45, "cells of a side of the map", low=20, high=LARGEST)
VIEW = Option("view", 6, "cells that an agent sees to each side", low=1, high=FARTHEST)
RADIUS = Option("radius", 6, "cells to each side in which an agent has neighbours", low=1, high=16)
REWARD = Option("reward", "magent", "see Rewards", words=("magent", "sparse"))
TIES = Option(
    "ties",
    "lots",
    'who gets a cell that several move to: `"lots"` one of them, drawn; `"nobody"` none, all stay',
    words=("lots", "nobody"),
)


def class_of(agents: int, size: int) -> tuple[int, int]:
    """The smallest of `CLASSES` for so many agents of a team and cells of a side."""
    return next(room for room in CLASSES if room[0] >= agents and room[1] >= size)


def state_fields(room: tuple[int, int]) -> tuple[tuple, ...]:
    """Fields of the match record: agents of both teams, and who stands in each cell."""
    agents, side = 2 * room[0], room[1] + 2 * EDGE
    return (
        ("row", "i2", (agents,)),
        ("column", "i2", (agents,)),
        ("hit_points", "i2", (agents,)),
        ("cell", "i2", (side, side)),
        ("left", "i8", (2,)),
    )


def scratch_fields(room: tuple[int, int]) -> tuple[tuple, ...]:
    """Fields of the work record."""
    agents, side = 2 * room[0], room[1] + 2 * EDGE
    return (
        ("act", "i8", (agents,)),
        ("victim", "i8", (agents,)),
        ("hits", "i8", (agents,)),
        ("claim", "i2", (side, side)),
        ("maps", "u1", (2, room[1] + 2 * FARTHEST, CHANNELS * (room[1] + 2 * FARTHEST))),
        ("before", "u2", (2, room[1], room[1] + 1)),
        ("order", "u2", (2, room[0] + STRIDE)),
        ("near", "u2", (agents + STRIDE,)),
        ("key", "i4", (18,)),
        ("wanted", "i8", (agents,)),
    )


# --------------------------------------------------------------------------------------------------------------- cells


def slots(world):
    """Number of agents."""
    return world.sizes[0] + world.sizes[1]


def side_of(s, world, k):
    """1 if ahead is to the right for agent ``k``, -1 if it is to the left."""
    return -1 if world.mirrored and s.team[k] == 1 else 1


def occupant(s, row, column):
    """What is in a cell of the map or of the walls around it: `FREE`, `WALL`, or a slot + 1."""
    return s.cell[np.uint64(row + EDGE), np.uint64(column + EDGE)]


def put(s, k, row, column):
    """Puts an agent into a free cell."""
    s.row[k], s.column[k] = row, column
    s.cell[row + EDGE, column + EDGE] = k + 1


def take_away(s, k):
    """Frees the cell of an agent."""
    s.cell[s.row[k] + EDGE, s.column[k] + EDGE] = FREE


def start(s, world):
    """An empty map with walls around it; all agents are sound."""
    end = world.size + EDGE
    for a in range(end + EDGE):
        for b in range(EDGE):
            s.cell[a, b] = s.cell[b, a] = s.cell[a, end + b] = s.cell[end + b, a] = WALL
    for k in range(slots(world)):
        s.hit_points[k] = FULL
    s.left[0], s.left[1] = world.sizes[0], world.sizes[1]


def put_anywhere(s, world, k):
    """Puts an agent into a free cell, all being as likely."""
    while True:
        row, column = integer(s, world.size), integer(s, world.size)
        if occupant(s, row, column) == FREE:
            put(s, k, row, column)
            return


def remove(s, k):
    """An agent leaves the match."""
    take_away(s, k)
    s.alive[k] = 0
    s.left[s.team[k]] -= 1


def alternatives_of(s, world, k):
    """The alternatives of an agent."""
    return world.first if s.team[k] == 0 else world.second


def is_offered(s, world, k, act):
    """Whether an agent may choose an alternative: a free cell to move to, an opponent to hit."""
    has = alternatives_of(s, world, k)
    there = occupant(s, s.row[k] + has.ways[act, 0], s.column[k] + side_of(s, world, k) * has.ways[act, 1])
    if act <= has.moves:
        return act == 0 or there == FREE
    return there > world.sizes[0] if s.team[k] == 0 else FREE < there <= world.sizes[0]


def write_legal(s, world, k, may):
    """Writes the mask of an agent, int8 ``[1 + moves + hits]``."""
    has = alternatives_of(s, world, k)
    for act in range(1 + has.moves + has.hits):
        may[act] = is_offered(s, world, k, act)


# ------------------------------------------------------------------------------------------------------ hits and moves


def strike(s, world, scratch):
    """Finds whom each agent hits where it stands before the moves, and how many hit each."""
    agents = slots(world)
    for k in range(agents):
        scratch.hits[k] = 0
    for k in range(agents):
        has = alternatives_of(s, world, k)
        act = scratch.act[k]
        scratch.victim[k] = NOBODY
        if s.alive[k] and act > has.moves:
            row, column = s.row[k] + has.ways[act, 0], s.column[k] + side_of(s, world, k) * has.ways[act, 1]
            scratch.victim[k] = occupant(s, row, column) - 1
            scratch.hits[scratch.victim[k]] += 1


def move(s, world, draw, scratch):
    """Moves all agents at once; ``draw`` in [0, `LOTS`) decides who gets a cell that several want."""
    agents = slots(world)
    for k in range(agents):
        if moves(s, world, k, scratch):
            row, column = goal(s, world, k, scratch)
            scratch.claim[row, column] = FREE
    for k in range(agents):
        if moves(s, world, k, scratch):
            row, column = goal(s, world, k, scratch)
            other = scratch.claim[row, column]
            if other == FREE:
                scratch.claim[row, column] = k + 1
            elif world.alone:
                scratch.claim[row, column] = WALL
            elif lot(s, world, k, draw) < lot(s, world, other - 1, draw):
                scratch.claim[row, column] = k + 1
    for k in range(agents):
        if moves(s, world, k, scratch):
            row, column = goal(s, world, k, scratch)
            if scratch.claim[row, column] == k + 1:
                take_away(s, k)
                put(s, k, row - EDGE, column - EDGE)


def moves(s, world, k, scratch):
    """Whether an agent wants to move."""
    return s.alive[k] and 0 < scratch.act[k] <= alternatives_of(s, world, k).moves


def goal(s, world, k, scratch):
    """Where it wants to be: row and column of ``s.cell``."""
    way = alternatives_of(s, world, k).ways[scratch.act[k]]
    return s.row[k] + way[0] + EDGE, s.column[k] + side_of(s, world, k) * way[1] + EDGE


def lot(s, world, k, draw):
    """The lot of an agent, uint64: no two agents have the same, and each order is as likely.

    A draw and its complement ``LOTS - 1 - draw`` exchange the lots of the teams: in the mirror image of a match the
    image of the same agent moves.
    """
    own = LOTS - 1 - draw if s.team[k] == 1 else draw
    return mix64(np.uint64(own * MOST + np.int64(member(s, world, k))))


def member(s, world, k):
    """Number of an agent within its team."""
    return k - world.sizes[0] if s.team[k] == 1 else k
