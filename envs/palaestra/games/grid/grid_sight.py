"""What agents on a grid see: a window around themselves, lists of their neighbours, and the state for central critics.

All is in the agent's own frame: columns grow ahead.
"""

from __future__ import annotations

import numpy as np

from palaestra.game import Field, Table
from palaestra.games.grid.grid_ground import (
    CHANNELS,
    FARTHEST,
    FREE,
    FULL,
    LARGEST,
    MOST,
    NOBODY,
    STRIDE,
    member,
    occupant,
    side_of,
    slots,
)

NEIGHBOURS, ENTITIES = 8, 16
WIDEST = 2 * FARTHEST + 1
"""Cells of a side of the widest window."""
TEAMMATE, OPPONENT = 1, 3
"""Channels of a window; the next one holds the hit points."""
FAR_KEY = 2**31 - 1
BOXES = 10
STATE_SIZE = 3 + 2 * BOXES * BOXES

OWN = Field(
    "own",
    (6,),
    0,
    LARGEST,
    "1",
    "own hit points, living of the own team and of the other, and time, each in % of all; row; column, counted ahead",
    "u1",
    parts=("hit points", "own living", "other living", "time", "row", "column"),
)


def window_field(view: int) -> Field:
    """The window of an agent that sees so many cells to each side."""
    side = 2 * view + 1
    return Field(
        "window",
        (side, side, CHANNELS),
        0,
        100,
        "%",
        "cells around, rows downwards, columns ahead: wall, teammate, its hit points, opponent, its hit points",
        "u1",
        capacity=(WIDEST, WIDEST, CHANNELS),
    )


def observation_of(view: int) -> tuple[Field, ...]:
    """Own numbers, window, and lists of neighbours."""
    return (
        OWN,
        window_field(view),
        Field("neighbours", (NEIGHBOURS,), NOBODY, MOST - 1, "1", "nearest teammates: numbers within the team", "i2"),
        Field(
            "offsets",
            (NEIGHBOURS, 2),
            -16,
            16,
            "cells",
            "from the agent to them: rows down, columns ahead",
            "i1",
            parts=("down", "ahead"),
        ),
    )


SEEN_ENTITIES = (
    Field("own", (6,), 0, LARGEST, "1", OWN.about, parts=OWN.parts),
    Table(
        "entities",
        ENTITIES,
        (
            Field("there", (), 0, 1, "1", "1 if there is one"),
            Field("teammate", (), 0, 1, "1", "1 if it is of the own team"),
            Field("offset", (2,), -16, 16, "cells", "rows down and columns ahead", parts=("down", "ahead")),
            Field("hit_points", (), 0, 1, "1", "its share of hit points"),
        ),
        "the nearest agents, nearest first",
    ),
)
"""The nearest agents of both teams."""


# ------------------------------------------------------------------------------------------------------------- observe


def draw_maps(s, world, scratch):
    """Draws the map as each team sees it, with walls around: a window is a part of it."""
    view, size, full = world.sight, world.size, CHANNELS * (world.size + 2 * world.sight)
    for team in range(2):
        for row in range(size + 2 * view):
            line = scratch.maps[team, row]
            line[:full] = 0
            if view <= row < view + size:
                line[: CHANNELS * view : CHANNELS] = 100
                line[CHANNELS * (view + size) : full : CHANNELS] = 100
            else:
                line[:full:CHANNELS] = 100
    for k in range(slots(world)):
        if s.alive[k]:
            for team in range(2):
                line = scratch.maps[team, s.row[k] + view]
                at = CHANNELS * (columns_ahead(world, team, s.column[k]) + view)
                at += TEAMMATE if s.team[k] == team else OPPONENT
                line[at] = 100
                line[at + 1] = s.hit_points[k]


def columns_ahead(world, team, column):
    """A column in the frame of a team."""
    return world.size - 1 - column if world.mirrored and team == 1 else column


def sort_by_cell(s, world, scratch):
    """Writes the living of each team into ``scratch.order``, row by row.

    ``scratch.before`` is how many of the team are before a cell.
    """
    before, order, second, both = scratch.before, scratch.order, 0, 0
    for row in range(world.size):
        for column in range(world.size + 1):
            there = occupant(s, row, column)
            before[0, row, column], before[1, row, column] = both - second, second
            order[0, both - second] = order[1, second] = max(there, 1) - 1
            both += there > FREE
            second += there > world.sizes[0]


def write_own(s, world, k, own):
    """Writes the numbers of the agent itself."""
    team = s.team[k]
    own[0] = s.hit_points[k]
    own[1] = percent(s.left[team], world.sizes[team])
    own[2] = percent(s.left[1 - team], world.sizes[1 - team])
    own[3] = percent(s.steps, s.parameters.horizon)
    own[4] = s.row[k]
    own[5] = columns_ahead(world, team, s.column[k])


def percent(part, whole):
    """The share in %, rounded up."""
    return (100 * np.int64(part) + np.int64(whole) - 1) // np.int64(whole)


def write_window(s, world, k, window, scratch):
    """Writes the cells around an agent; unsigned indices let it copy many bytes at a time."""
    team, row, side = s.team[k], np.uint64(s.row[k]), np.uint64(2 * world.sight + 1)
    cells, pitch = window.flat, np.uint64(window.shape[1] * CHANNELS)
    first = np.uint64(CHANNELS * columns_ahead(world, team, s.column[k]))
    for a in range(side):
        line, start = scratch.maps[team, row + np.uint64(a)], pitch * np.uint64(a)
        for b in range(np.uint64(CHANNELS) * side):
            cells[start + np.uint64(b)] = line[first + np.uint64(b)]


def find_nearest(s, world, k, most, teammates, scratch):
    """Sorts the agent itself and the nearest within the radius into ``scratch.key[1:]``; returns how many, without it.

    A key is the squared distance times 4,096, plus the slot. ``teammates`` leaves opponents out. Minima and maxima in
    place of comparisons leave a processor nothing to guess.
    """
    row, column, key, found = s.row[k], s.column[k], scratch.key, 0
    for team in range(2):
        if team == s.team[k] or not teammates:
            found = find_near(s, world, k, team, found, scratch)
    key[0] = -1
    for n in range(1, most + 2):
        key[n] = FAR_KEY
    for n in range(found):
        j = scratch.near[n]
        down, across = np.int64(s.row[j]) - row, np.int64(s.column[j]) - column
        own = (down * down + across * across) * 4096 + j
        for place in range(most + 1, 0, -1):
            key[place] = min(key[place], max(key[place - 1], own))
    return min(found - 1, most)


def find_near(s, world, k, team, found, scratch):
    """Adds the agents of a team within the radius to the ``found`` of ``scratch.near``; returns how many there are."""
    row, column, radius, size = s.row[k], s.column[k], world.radius, world.size
    before, order, near = scratch.before[team], scratch.order[team], scratch.near
    left, right = max(column - radius, 0), min(column + radius + 1, size)
    for there in range(max(row - radius, 0), min(row + radius + 1, size)):
        first, count = before[there, left], before[there, right] - before[there, left]
        for n in range(STRIDE):  # more than there are, mostly; the next row overwrites them
            near[found + n] = order[first + n]
        for n in range(STRIDE, count):
            near[found + n] = order[first + n]
        found += count
    return found


def write_lists(s, world, k, seen, scratch):
    """Writes the nearest teammates and their offsets."""
    found, side = find_nearest(s, world, k, NEIGHBOURS, True, scratch), side_of(s, world, k)
    for n in range(NEIGHBOURS):
        if n < found:
            j = scratch.key[n + 2] & 4095
            seen.neighbours[n] = member(s, world, j)
            seen.offsets[n, 0] = s.row[j] - s.row[k]
            seen.offsets[n, 1] = side * (s.column[j] - s.column[k])
        else:
            seen.neighbours[n] = NOBODY


def write_sight(s, world, k, seen, scratch):
    """Writes what an agent sees: own numbers, window and lists; the dead have no neighbours and see nothing else."""
    if s.alive[k]:
        write_own(s, world, k, seen.own)
        write_window(s, world, k, seen.window, scratch)
        write_lists(s, world, k, seen, scratch)
    else:
        for n in range(NEIGHBOURS):
            seen.neighbours[n] = NOBODY


def write_entities(s, world, k, seen, scratch):
    """Writes the nearest agents of both teams."""
    write_own(s, world, k, seen.own)
    side = side_of(s, world, k)
    for n in range(find_nearest(s, world, k, ENTITIES, False, scratch)):
        j, entity = scratch.key[n + 2] & 4095, seen.entities[n]
        entity.there = 1.0
        entity.teammate = s.team[j] == s.team[k]
        entity.offset[0] = s.row[j] - s.row[k]
        entity.offset[1] = side * (s.column[j] - s.column[k])
        entity.hit_points = s.hit_points[j] / FULL


def global_state(s, world, out):
    """The living of both teams and the time as shares; then hit points a team and box of the map, in whole agents."""
    out[0], out[1] = s.left[0] / world.sizes[0], s.left[1] / world.sizes[1]
    out[2] = s.steps / s.parameters.horizon
    for n in range(3, STATE_SIZE):
        out[n] = 0.0
    for k in range(slots(world)):
        if s.alive[k]:
            down, across = s.row[k] * BOXES // world.size, s.column[k] * BOXES // world.size
            out[3 + (s.team[k] * BOXES + down) * BOXES + across] += s.hit_points[k] / FULL
