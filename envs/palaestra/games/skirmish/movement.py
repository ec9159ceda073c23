"""How units of a battle move: steering by hand-made rules, walls, and bodies that push each other apart.

The engine whose battles we follow is closed, so its steering cannot be repeated to the letter. What is done here, in
every loop, for all units at once:

* A unit goes straight to where it wants to be. Where walls are between (`sees_way`), it goes to the next cell of the
  shortest way over the cells of the map, found by `shortest_ways` when the map is loaded.
* Places are rounded to multiples of 2**-20 cells, so that their differences and the squares of these are exact, and a
  match mirrored in x goes on as the mirror image.
* A step into a wall, or off the map, is taken along the axis that is free (`go`); a unit whose two axes are both
  blocked stays where it is.
* Bodies are discs. Two that overlap are pushed apart along the line between their centres, each by half of the overlap,
  or one by all of it where the other cannot move (`push_apart`), twice in a loop. Fliers and walkers do not touch each
  other. Pairs are found by a sweep over the units in the order of their x, so that the cost grows with the neighbours
  and not with all pairs.

Positions are in cells. Cell ``(row, column)`` covers ``[column, column + 1)`` in x and ``[row, row + 1)`` in y. Only
arithmetic and square roots: the same bits on all machines.
"""

from __future__ import annotations

import math

import numpy as np

from palaestra.core.compile.compiler import compile_cached
from palaestra.core.compile.linker import jit_disabled
from palaestra.games.skirmish.battle_records import RED
from palaestra.kernels.inlining import inlined

GROUND, CLIFF, AIR = 1, 2, 4
"""Bits of terrain: who may stand in a cell. Cliff walkers stand where either of the first two is set."""
HEIGHT = 3
"""The bits of terrain from here on are the height of the ground in eighths of a cliff, plus 1; 0 without ground."""
NEIGHBOURS = 8
STEP_X = np.array([1, 0, -1, 0, 1, -1, -1, 1])
STEP_Y = np.array([0, 1, 0, -1, 1, 1, -1, -1])
NO_WAY = 255
FAR = 1 << 62
ROUNDING = 1.5 * 2.0**32
"""Added to a number and subtracted again it leaves multiples of 2**-20: float64 has 52 bits, and rounds halves to even,
which is the same for a number and for its mirror image."""
PUSHES = 2
"""How often in a loop bodies push each other apart: crowds are pressed together less."""
NEAR = 0.0625
"""Bodies that are farther apart before the first push, in cells, do not push each other in the second."""
TOUCH = 1e-9
"""Distance in cells at which two middles count as one point."""


def is_open(terrain, bits, x, y):
    """Whether a unit that may stand where one of ``bits`` is set may stand at a point."""
    column, row = math.floor(x), math.floor(y)
    if x <= 0.0 or y <= 0.0 or row >= terrain.shape[0] or column >= terrain.shape[1]:
        return False
    return (terrain[row, column] & bits) != 0


def can_step(terrain, bits, x, y, to_x, to_y):
    """Whether a unit may step from a point to one near it: it is open, and so is a way around the corner between."""
    if not is_open(terrain, bits, to_x, to_y):
        return False
    return is_open(terrain, bits, to_x, y) or is_open(terrain, bits, x, to_y)


@inlined
def go(terrain, bits, position, to_x, to_y):
    """Moves a unit to a point, along one axis where the other is blocked; returns whether it has moved."""
    x, y = position[0], position[1]
    to_x, to_y = (to_x + ROUNDING) - ROUNDING, (to_y + ROUNDING) - ROUNDING
    if to_x == x and to_y == y:
        return False
    if can_step(terrain, bits, x, y, to_x, to_y):
        position[0], position[1] = to_x, to_y
    elif is_open(terrain, bits, to_x, y):
        position[0] = to_x
    elif is_open(terrain, bits, x, to_y):
        position[1] = to_y
    return position[0] != x or position[1] != y


def sees_way(terrain, bits, x, y, to_x, to_y):
    """Whether a unit may step along the straight line, half a cell at a time."""
    dx, dy = to_x - x, to_y - y
    pieces = int(2.0 * math.sqrt(dx * dx + dy * dy)) + 1
    from_x, from_y = x, y
    for k in range(1, pieces + 1):
        there = k / pieces
        next_x, next_y = x + there * dx, y + there * dy
        if not can_step(terrain, bits, from_x, from_y, next_x, next_y):
            return False
        from_x, from_y = next_x, next_y
    return True


@inlined
def next_point(terrain, ways, bits, position, to_x, to_y, point):
    """Writes where to go now on the way to a point: there, or the middle of the next cell of the shortest way."""
    point[0], point[1] = to_x, to_y
    if ways.shape[0] == 0 or bits & AIR or sees_way(terrain, bits, position[0], position[1], to_x, to_y):
        return
    columns = terrain.shape[1]
    here = math.floor(position[1]) * columns + math.floor(position[0])
    there = math.floor(to_y) * columns + math.floor(to_x)
    if there < 0 or there >= ways.shape[0] or not 0.0 <= to_x < columns:
        return
    direction = ways[there, here]
    if direction != NO_WAY:
        point[0] = math.floor(position[0]) + STEP_X[direction] + 0.5
        point[1] = math.floor(position[1]) + STEP_Y[direction] + 0.5


def shortest_ways(terrain, ways, queue, steps):
    """Fills ``ways[to, from]``: the direction of the first step of a shortest way over ground, or `NO_WAY`.

    Breadth-first search from each cell; a diagonal step costs as much as a straight one and needs both cells beside it
    to be open. Of equal ways the one found first, straight steps before diagonal ones.

    Where there is no way to a cell, as it has no ground (cliff walkers and fliers are there too) or the ground is not
    connected, ways lead to the nearest ground that can be reached, and end there.

    Args:
        terrain: Bits uint8 ``[rows, columns]``.
        ways: uint8 ``[cells, cells]``.
        queue: int64 ``[cells]``, work memory.
        steps: int64 ``[cells]``, work memory.
    """
    rows, columns = terrain.shape
    for goal in range(rows * columns):
        for cell in range(rows * columns):
            ways[goal, cell] = NO_WAY
            steps[cell] = -1
        first = last = 0
        while True:
            nearest = FAR  # square of the distance to ground that no way has reached yet
            for cell in range(rows * columns):
                if steps[cell] >= 0 or terrain[cell // columns, cell % columns] & GROUND == 0:
                    continue
                away = (cell // columns - goal // columns) ** 2 + (cell % columns - goal % columns) ** 2
                if away < nearest:
                    nearest, last = away, first
                if away == nearest:
                    queue[last] = cell
                    last += 1
            for k in range(first, last):
                steps[queue[k]] = 0
            while first < last:
                cell = queue[first]
                first += 1
                row, column = cell // columns, cell % columns
                for k in range(NEIGHBOURS):
                    to_row, to_column = row + STEP_Y[k], column + STEP_X[k]
                    if to_row < 0 or to_column < 0 or to_row >= rows or to_column >= columns:
                        continue
                    beside = terrain[row, to_column] & terrain[to_row, column] & terrain[to_row, to_column]
                    other = to_row * columns + to_column
                    if beside & GROUND == 0 or steps[other] >= 0:
                        continue
                    steps[other] = steps[cell] + 1
                    # the way back: from `other` towards the goal is the opposite step
                    ways[goal, other] = (k + 2) % 4 if k < 4 else 4 + (k - 2) % 4
                    queue[last] = other
                    last += 1
            if nearest == FAR:
                break


def find_ways(terrain: np.ndarray, always: bool = False) -> np.ndarray:
    """The table of `shortest_ways`; ``[0, 0]`` where the ground is one rectangle, in which all straight lines are free.

    Args:
        terrain: Bits uint8 ``[rows, columns]``.
        always: Searches there too.
    """
    ground = (terrain & GROUND) != 0
    rows, columns = np.flatnonzero(ground.any(axis=1)), np.flatnonzero(ground.any(axis=0))
    if not always and len(rows) and ground[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1].all():
        return np.zeros((0, 0), np.uint8)
    cells = terrain.size
    ways = np.empty((cells, cells), np.uint8)
    search = shortest_ways if jit_disabled() else compile_cached(shortest_ways)
    search(terrain, ways, np.empty(cells, np.int64), np.empty(cells, np.int64))
    return ways


def sort_by_x(position, order, count):
    """Keeps the living in the order of their x: insertion sort, which is short where little has moved."""
    for k in range(1, count):
        slot = order[k]
        x = position[slot, 0]
        place = k
        while place > 0 and position[order[place - 1], 0] > x:
            order[place] = order[place - 1]
            place -= 1
        order[place] = slot


@inlined
def push_apart(s, world, scratch):
    """Writes into ``scratch.x`` and ``scratch.y`` where bodies that overlap have pushed each other; after all moved.

    `PUSHES` times, all pushes follow from the same places, so that the order of the pairs changes rounding at most. Who
    cannot move is not pushed: the other goes all the way. Walls count when the units go there, in the end.
    ``scratch.living`` is in the order of x of the loop before, which is sorted again here; row k of the arrays is of
    the unit in place k of it. Returns whether anybody was pushed.
    """
    sort_by_x(s.position, scratch.living, scratch.count)
    for k in range(scratch.count):
        slot = scratch.living[k]
        unit = world.units[s.kind[slot]]
        scratch.x[k], scratch.y[k] = s.position[slot, 0], s.position[slot, 1]
        scratch.body[k], scratch.flies[k] = unit.separation_radius, unit.flying
        scratch.stands[k] = unit.speed_per_loop == 0.0
    pairs = find_pairs(scratch, world.rules[s.map].widest)
    pushes = 0
    while pushes < PUSHES and push_pairs(s, scratch, pairs):  # a push that moves no unit would be repeated
        pushes += 1
    return pushes > 0


@inlined
def find_pairs(scratch, widest):
    """Lists in ``scratch.pairs`` the pairs of bodies that are at most `NEAR` apart, and returns how many there are.

    Every candidate is written, and overwritten by the next one where it is too far away: no branch to be guessed.
    Unsigned indices spare the question whether they count from the end.
    """
    pairs, count = np.uint64(0), np.uint64(scratch.count)
    for first in range(count):
        x, y, reach, flies = scratch.x[first], scratch.y[first], scratch.body[first] + NEAR, scratch.flies[first]
        for second in range(np.uint64(first) + np.uint64(1), count):
            dx, dy, touch = scratch.x[second] - x, scratch.y[second] - y, scratch.body[second] + reach
            if dx >= reach + widest:
                break
            scratch.pairs[pairs, 0], scratch.pairs[pairs, 1] = first, second
            pairs += np.uint64((dx * dx + dy * dy < touch * touch) & (flies == scratch.flies[second]))
    return pairs


@inlined
def push_pairs(s, scratch, pairs):
    """All pairs that overlap push each other once; returns whether there is one."""
    has_pushed = False
    for k in range(scratch.count):
        scratch.pushed[k, 0] = scratch.pushed[k, 1] = 0.0
    for k in range(pairs):
        first, second = scratch.pairs[k, 0], scratch.pairs[k, 1]
        dx, dy = scratch.x[second] - scratch.x[first], scratch.y[second] - scratch.y[first]
        touch = scratch.body[first] + scratch.body[second]
        square = dx * dx + dy * dy
        if square < touch * touch:
            push_pair(s, scratch, first, second, dx, dy)
            has_pushed = True
    if has_pushed:
        for k in range(scratch.count):
            scratch.x[k] = (scratch.x[k] + scratch.pushed[k, 0] + ROUNDING) - ROUNDING
            scratch.y[k] = (scratch.y[k] + scratch.pushed[k, 1] + ROUNDING) - ROUNDING
    return has_pushed


@inlined
def push_pair(s, scratch, first, second, dx, dy):
    """Adds to ``scratch.pushed`` of two units that overlap; the second is ``dx``, ``dy`` away from the first, cells.

    Two centres on one point part along x: red to the left of blue, of one side the lower slot farther from the other
    side.
    """
    way = math.sqrt(dx * dx + dy * dy)
    if way < TOUCH:
        i, j = scratch.living[first], scratch.living[second]
        dx, dy, way = (TOUCH if (i < j) == (s.team[i] == RED or s.team[j] == RED) else -TOUCH), 0.0, TOUCH
    share = 0.0 if scratch.stands[first] else 1.0 if scratch.stands[second] else 0.5
    other_share = 0.0 if scratch.stands[second] else 1.0 - share
    overlap = (scratch.body[first] + scratch.body[second] - way) / way
    scratch.pushed[first, 0] -= share * overlap * dx
    scratch.pushed[first, 1] -= share * overlap * dy
    scratch.pushed[second, 0] += other_share * overlap * dx
    scratch.pushed[second, 1] += other_share * overlap * dy
