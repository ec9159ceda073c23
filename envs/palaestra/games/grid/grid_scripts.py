"""Scripts of both games on a grid. Teams of the same script are as likely to win: all is decided in the own frame.

The opponent that an agent goes to or flees from is the nearest one, of several the first by number.
"""

from __future__ import annotations

import numpy as np

from palaestra.game import script_integer
from palaestra.games.grid.grid_ground import alternatives_of, is_offered, occupant, side_of, slots

NAMES = ("rush", "hold_line", "focus", "wander", "flee")
RUSH, HOLD_LINE, FOCUS, WANDER, FLEE = range(5)
HIT = 20
"""Tenths of a hit point that a hit takes by default."""
NONE = -1
STAY = 0


def plan(s, world, team, which, scratch):
    """Counts for "focus" how many of the team can hit each opponent now; other scripts of the team leave it alone."""
    agents = slots(world)
    for k in range(agents):
        if which == FOCUS and s.team[k] != team:
            scratch.wanted[k] = 0
    for k in range(agents):
        if which == FOCUS and s.alive[k] and s.team[k] == team:
            has = alternatives_of(s, world, k)
            for act in range(1 + has.moves, 1 + has.moves + has.hits):
                if is_offered(s, world, k, act):
                    scratch.wanted[target(s, world, k, act)] += 1


def target(s, world, k, act):
    """Slot of the agent in the cell of an alternative."""
    way = alternatives_of(s, world, k).ways[act]
    return occupant(s, s.row[k] + way[0], s.column[k] + side_of(s, world, k) * way[1]) - 1


def choose(s, world, k, which, scratch):
    """The alternative of an agent.

    0 "rush" goes to the nearest opponent and hits the first that it can. 1 "hold_line" goes to the column at a quarter
    of the map, stays there and hits the weakest. 2 "focus" goes to the nearest as well, and hits whom the team kills
    soonest, of these the healthiest, of these the one that most can hit; but nobody whom fewer than needed can hit.
    3 "wander" moves at random and hits the first. 4 "flee" goes away from the nearest opponent and hits nobody; from
    opponents that cannot hit it does not flee, but is "rush".
    """
    has, opponents = alternatives_of(s, world, k), world.second if s.team[k] == 0 else world.first
    draw = script_integer(s, 1 + has.moves)  # always drawn
    flees = which == FLEE and opponents.hits > 0
    if not flees:
        act = best_hit(s, world, k, which, scratch)
        if act != STAY:
            return act
    if which == WANDER:
        return draw if is_offered(s, world, k, draw) else STAY
    if which == HOLD_LINE:
        quarter = world.size // 4
        column = quarter if side_of(s, world, k) > 0 else world.size - 1 - quarter
        return way_to(s, world, k, s.row[k], column, 1)
    j = nearest_opponent(s, world, k)
    return STAY if j == NONE else way_to(s, world, k, s.row[j], s.column[j], -1 if flees else 1)


def best_hit(s, world, k, which, scratch):
    """The hit that a script chooses, `STAY` where there is none."""
    has, best, least = alternatives_of(s, world, k), STAY, 0
    for act in range(1 + has.moves, 1 + has.moves + has.hits):
        if is_offered(s, world, k, act):
            j = target(s, world, k, act)
            cost = 0
            if which == FOCUS:
                if scratch.wanted[j] < world.need:
                    continue
                cost = decisions_to_kill(s, j, scratch) * 8192 - 64 * np.int64(s.hit_points[j]) - scratch.wanted[j]
            elif which == HOLD_LINE:
                cost = np.int64(s.hit_points[j])
            if best == STAY or cost < least:
                best, least = act, cost
    return best


def decisions_to_kill(s, j, scratch):
    """In how many decisions an opponent dies if all hit it that can, by hits that take what they take by default."""
    taken = HIT * scratch.wanted[j]
    return (s.hit_points[j] + taken - 1) // taken


def nearest_opponent(s, world, k):
    """Slot of the nearest living opponent, or `NONE`."""
    first = world.sizes[0] if s.team[k] == 0 else 0
    best, least = NONE, 0
    for j in range(first, first + world.sizes[1 - s.team[k]]):
        if s.alive[j]:
            square = square_distance(s, j, s.row[k], s.column[k])
            if best == NONE or square < least:
                best, least = j, square
    return best


def square_distance(s, j, row, column):
    """Square of the distance of an agent from a cell."""
    down, across = np.int64(s.row[j]) - row, np.int64(s.column[j]) - column
    return down * down + across * across


def way_to(s, world, k, row, column, sign):
    """The move, or staying, after which a cell is nearest (sign 1) or farthest (-1)."""
    has, best, least = alternatives_of(s, world, k), STAY, sign * square_distance(s, k, row, column)
    for act in range(1, 1 + has.moves):
        if is_offered(s, world, k, act):
            down = s.row[k] + has.ways[act, 0] - row
            across = s.column[k] + side_of(s, world, k) * has.ways[act, 1] - column
            square = sign * (down * down + across * across)
            if square < least:
                best, least = act, square
    return best
