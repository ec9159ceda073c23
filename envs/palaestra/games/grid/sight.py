"""What agents on a grid see: a window around themselves, lists of their neighbours, and the state for central critics.

All is in the agent's own frame: columns grow ahead.
"""

from __future__ import annotations

import numpy as np

from palaestra.game import Field, Table
from palaestra.games.grid.ground import FULL, LARGEST, MOST, NOBODY, member, side_of, slots

NEIGHBOURS, ENTITIES = 8, 16
WIDEST = 13
"""Cells of a side of the widest window."""
TEAMMATE, OPPONENT = 1, 3
"""Channels of a window; the next one holds the hit points."""
BOXES = 16
STATE_SIZE = 3 + 2 * BOXES * BOXES

OWN = Field(
    "own",
    (6,),
    0,
    LARGEST,
    "1",
    "own hit points, living of the own team and of the other, and time, each in % of all; row; column, counted ahead",
    "u1",
)


def window_field(view: int) -> Field:
    """The window of an agent that sees so many cells to each side."""
    side = 2 * view + 1
    return Field(
        "window",
        (side, side, 5),
        0,
        100,
        "%",
        "cells around, rows downwards, columns ahead: wall, teammate, its hit points, opponent, its hit points",
        "u1",
        capacity=(WIDEST, WIDEST, 5),
    )


def observation_of(view: int) -> tuple[Field, ...]:
    """Own numbers, window, and lists of neighbours."""
    return (
        OWN,
        window_field(view),
        Field("neighbours", (NEIGHBOURS,), NOBODY, MOST - 1, "1", "nearest teammates: numbers within the team", "i2"),
        Field("offsets", (NEIGHBOURS, 2), -16, 16, "cells", "from the agent to them: rows down, columns ahead", "i1"),
    )


SEEN_ENTITIES = (
    Field("own", (6,), 0, LARGEST, "1", OWN.about),
    Table(
        "entities",
        ENTITIES,
        (
            Field("there", (), 0, 1, "1", "1 if there is one"),
            Field("teammate", (), 0, 1, "1", "1 if it is of the own team"),
            Field("offset", (2,), -16, 16, "cells", "rows down and columns ahead"),
            Field("hit_points", (), 0, 1, "1", "its share of hit points"),
        ),
        "the nearest agents, nearest first",
    ),
)
"""The nearest agents of both teams."""


# ------------------------------------------------------------------------------------------------------------- observe


def sort_by_row(s, world, scratch):
    """Writes the living agents row by row into ``scratch.order``; those of row r begin at ``scratch.first[r]``."""
    first, order, agents = scratch.first, scratch.order, slots(world)
    for r in range(world.size + 2):
        first[r] = 0
    for k in range(agents):
        if s.alive[k]:
            first[s.row[k] + 2] += 1
    for r in range(2, world.size + 2):
        first[r] += first[r - 1]
    for k in range(agents):
        if s.alive[k]:
            index = first[s.row[k] + 1]
            order[index] = k
            scratch.columns[index] = s.column[k]
            first[s.row[k] + 1] += 1


def write_own(s, world, k, own):
    """Writes the numbers of the agent itself."""
    team, size = s.team[k], world.size
    own[0] = s.hit_points[k]
    own[1] = percent(s.left[team], world.sizes[team])
    own[2] = percent(s.left[1 - team], world.sizes[1 - team])
    own[3] = percent(s.steps, s.parameters.horizon)
    own[4] = s.row[k]
    own[5] = s.column[k] if side_of(s, world, k) > 0 else size - 1 - s.column[k]


def percent(part, whole):
    """The share in %, rounded up."""
    return (100 * np.int64(part) + np.int64(whole) - 1) // np.int64(whole)


def write_walls(s, world, k, window):
    """Writes the cells beyond the map."""
    view, size, row = world.sight, world.size, s.row[k]
    column = s.column[k] if side_of(s, world, k) > 0 else size - 1 - s.column[k]
    left, right = view - column, size + view - column
    for a in range(2 * view + 1):
        if not 0 <= row + a - view < size:
            for b in range(2 * view + 1):
                window[a, b, 0] = 100
        else:
            for b in range(left):
                window[a, b, 0] = 100
            for b in range(right, 2 * view + 1):
                window[a, b, 0] = 100


def write_window(s, world, k, window, scratch):
    """Writes the cells around an agent."""
    view, side, team, row, column = world.sight, side_of(s, world, k), s.team[k], s.row[k], s.column[k]
    write_walls(s, world, k, window)
    above = row - view if row > view else 0
    below = row + view + 1 if row + view + 1 < world.size else world.size
    for index in range(scratch.first[above], scratch.first[below]):
        ahead = side * (scratch.columns[index] - column)
        if -view <= ahead <= view:
            j = scratch.order[index]
            cell = window[s.row[j] - row + view, ahead + view]
            channel = TEAMMATE if s.team[j] == team else OPPONENT
            cell[channel] = 100
            cell[channel + 1] = s.hit_points[j]


def find_nearest(s, world, k, most, teammates, scratch):
    """Sorts the nearest agents within the radius into ``scratch.key``; returns how many there are, at most ``most``.

    A key is the squared distance times 4,096, plus the slot. ``teammates`` leaves opponents out.
    """
    radius, team, row, column, found = world.radius, s.team[k], s.row[k], s.column[k], 0
    key = scratch.key
    above = row - radius if row > radius else 0
    below = row + radius + 1 if row + radius + 1 < world.size else world.size
    for index in range(scratch.first[above], scratch.first[below]):
        across = scratch.columns[index] - column
        j = scratch.order[index]
        if -radius <= across <= radius and j != k and (not teammates or s.team[j] == team):
            down = np.int64(s.row[j] - row)
            own = (down * down + across * across) * 4096 + j
            if found < most or own < key[most - 1]:
                place = found if found < most else most - 1
                while place > 0 and key[place - 1] > own:
                    key[place] = key[place - 1]
                    place -= 1
                key[place] = own
                if found < most:
                    found += 1
    return found


def write_lists(s, world, k, seen, scratch):
    """Writes the nearest teammates and their offsets."""
    found, side = find_nearest(s, world, k, NEIGHBOURS, True, scratch), side_of(s, world, k)
    for n in range(NEIGHBOURS):
        if n < found:
            j = scratch.key[n] & 4095
            seen.neighbours[n] = member(s, world, j)
            seen.offsets[n, 0] = s.row[j] - s.row[k]
            seen.offsets[n, 1] = side * (s.column[j] - s.column[k])
        else:
            seen.neighbours[n] = NOBODY


def write_sight(s, world, k, seen, scratch):
    """Writes what an agent sees: own numbers, window and lists."""
    write_own(s, world, k, seen.own)
    write_window(s, world, k, seen.window, scratch)
    write_lists(s, world, k, seen, scratch)


def write_entities(s, world, k, seen, scratch):
    """Writes the nearest agents of both teams."""
    write_own(s, world, k, seen.own)
    side = side_of(s, world, k)
    for n in range(find_nearest(s, world, k, ENTITIES, False, scratch)):
        j, entity = scratch.key[n] & 4095, seen.entities[n]
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
