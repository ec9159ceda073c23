"""Orders that the scripts of the Concert games draw up for all units of a power, by values of places.

A draft is an order's number for each province with a unit of the power, ``scratch.draft``. While it is drawn up,
``scratch.comes`` says which own unit will stand in a province (the province where it stands now), and ``scratch.open``
which own units have no order yet.
"""

from __future__ import annotations

from palaestra.game import script_integer, script_uniform
from palaestra.games.concert.concert_orders import (
    BUILD_ARMY,
    BUILD_FLEET,
    COAST,
    HOLD,
    MOVE,
    REMOVE,
    SUPPORT_HOLD,
    SUPPORT_MOVE,
    is_free,
    location_of,
    may_walk,
    order_number,
    power_of,
)
from palaestra.games.concert.concert_phases import adjustment, asks, can_build_at
from palaestra.games.concert.concert_values import value_at, way, ways

NOBODY = -1
SHARPNESS = 2
"""Places are drawn in proportion to their value, squared so many times: a softmax without the exponential function,
whose bits differ between machines."""
FLEET_FACTOR = 1.0
"""A fleet is built where its place is worth more than this times what it is worth for an army."""


def scratch_fields(provinces: int) -> tuple[tuple, ...]:
    """Fields of the work record."""
    names = ("draft", "comes", "open", "queue", "backers", "able")
    return tuple((name, "i8", (provinces,)) for name in names)


def line_up(s, world, power, scratch):
    """Puts the units of a power into the queue, in an order that is drawn. Returns how many there are."""
    count = 0
    for k in range(world.provinces):
        p = world.ranked[power, k]
        scratch.draft[p], scratch.comes[p], scratch.open[p], scratch.backers[p] = HOLD, NOBODY, 0, 0
        if s.unit[p] != 0 and power_of(s.unit[p]) == power:
            scratch.queue[count], scratch.open[p] = p, 1
            count += 1
    for last in range(count - 1, 0, -1):
        j = script_integer(scratch, last + 1)
        scratch.queue[last], scratch.queue[j] = scratch.queue[j], scratch.queue[last]
    return count


# --------------------------------------------------------------------------------------------------------------- moves


def draft_by_value(s, world, power, sharpness, scratch):
    """Each unit draws its place by value; who comes second supports the first. ``sharpness``: see `SHARPNESS`."""
    count = line_up(s, world, power, scratch)
    for j in range(count):
        decide(s, world, power, scratch.queue[j], sharpness, scratch)
    support_with_rest(s, world, power, count, scratch)


def decide(s, world, power, p, sharpness, scratch):
    """Draws the place of a unit among its moves, and makes its order; ``sharpness`` below 0 takes the best.

    Not where an own unit stands that has no order yet; where one will be, a support, if it may be needed.
    """
    unit, goal, total, best = s.unit[p], p, 0.0, -1.0
    chosen = location_of(world, unit, p)
    first, last = ways(world, unit, p)
    for k in range(first - 1, last):
        at = location_of(world, unit, p) if k < first else way(world, unit, k)
        province = world.province_of[at]
        draw = script_uniform(scratch, 0.0, 1.0)
        if province != p and not is_open_to(s, world, province, scratch):
            continue
        weight = value_at(unit, at, scratch) * chance(s, world, power, province, scratch)
        if sharpness < 0:
            weight *= 1.0 + 0.01 * draw
            if weight > best:
                best, chosen, goal = weight, at, province
        else:
            for _ in range(sharpness):
                weight *= weight
            total += weight
            if draw * total < weight:
                chosen, goal = at, province
    give(s, world, p, chosen, goal, scratch)


def is_open_to(s, world, goal, scratch):
    """Whether an own unit may move to a province, or support the own unit that will be there."""
    if scratch.open[goal]:
        return False
    return scratch.comes[goal] == NOBODY or needs_support(s, world, goal, scratch)


def needs_support(s, world, goal, scratch):
    """Whether others could be stronger where an own unit will be, which stays or walks there.

    Supports of an army that comes by convoy may have no room in the lists.
    """
    start = scratch.comes[goal]
    is_near = start == goal or (start != NOBODY and may_walk(world, s.unit[start], start, goal))
    return is_near and scratch.backers[goal] < scratch.rivals[goal]


def chance(s, world, power, p, scratch):
    """Share of the strength around a province that is a power's own; a unit of another power there counts twice."""
    own, rivals = scratch.reach[power, p], scratch.rivals[p]
    if s.unit[p] != 0 and power_of(s.unit[p]) != power:
        rivals += 1
    return own / (own + rivals) if own > 0 else 0.0


def give(s, world, p, location, goal, scratch):
    """Lets a unit move, or support who will be at the goal; it will stand where it stands if it supports."""
    scratch.open[p] = 0
    if goal == p:
        scratch.comes[p] = p
    elif scratch.comes[goal] == NOBODY:
        scratch.comes[goal] = p
        scratch.draft[p] = order_number(world, MOVE, location, 0)
    else:
        scratch.comes[p] = p
        support(world, p, goal, scratch)


def support(world, p, goal, scratch):
    """Lets a unit support the own unit that will be at a province."""
    scratch.backers[goal] += 1
    if scratch.comes[goal] == goal:
        scratch.draft[p] = order_number(world, SUPPORT_HOLD, goal, 0)
    else:
        scratch.draft[p] = order_number(world, SUPPORT_MOVE, scratch.comes[goal], goal)


def support_with_rest(s, world, power, count, scratch):
    """Units that hold support whom they can where rivals are, first at the place of the greatest value."""
    for j in range(count):
        p = scratch.queue[j]
        if scratch.draft[p] == HOLD:
            unit, best, chosen = s.unit[p], 0.0, NOBODY
            first, last = ways(world, unit, p)
            for k in range(first, last):
                at = way(world, unit, k)
                goal = world.province_of[at]
                if needs_support(s, world, goal, scratch) and value_at(unit, at, scratch) > best:
                    best, chosen = value_at(unit, at, scratch), goal
            if chosen != NOBODY:
                support(world, p, chosen, scratch)


# ------------------------------------------------------------------------------------------- retreats, adjustments


def draft_retreats(s, world, power, scratch):
    """Each dislodged unit goes to the free place of the greatest value to which no other own one goes."""
    line_up(s, world, power, scratch)
    for j in range(world.provinces):
        p = world.ranked[power, j]
        unit = s.dislodged[p]
        if unit == 0 or power_of(unit) != power:
            continue
        best, chosen = 0.0, NOBODY
        first, last = ways(world, unit, p)
        for k in range(first, last):
            at = way(world, unit, k)
            goal = world.province_of[at]
            if is_free(s, goal, s.mark[p]) and scratch.comes[goal] == NOBODY and value_at(unit, at, scratch) > best:
                best, chosen = value_at(unit, at, scratch), at
        if chosen != NOBODY:
            scratch.draft[p] = order_number(world, MOVE, chosen, 0)
            scratch.comes[world.province_of[chosen]] = p


def plan_adjustments(s, board, power, scratch):
    """Builds where the value is highest, or removes the units at the least valuable places."""
    due = adjustment(s, board.map, power)
    line_up(s, board.map, power, scratch)
    for j in range(min(abs(due), board.slots)):
        if due > 0:
            scratch.planned[power, j] = best_build(s, board.map, power, scratch)
        else:
            scratch.planned[power, j] = best_removal(s, board.map, power, scratch)


def best_build(s, world, power, scratch):
    """The build of the greatest value in a centre that has none yet."""
    best, number, taken = 0.0, HOLD, NOBODY
    for k in range(world.provinces):
        p = world.ranked[power, k]
        if world.centre[p] < 0 or scratch.comes[p] != NOBODY or not can_build_at(s, world, power, world.centre[p]):
            continue
        if scratch.army_value[p] > best:
            best, number, taken = scratch.army_value[p], order_number(world, BUILD_ARMY, p, 0), p
        if world.ground[p] == COAST:
            start = p if world.coasts[p] == 0 else world.first_coast[p]
            for at in range(start, start + max(1, world.coasts[p])):
                if scratch.fleet_value[at] > FLEET_FACTOR * best:
                    best, number, taken = scratch.fleet_value[at], order_number(world, BUILD_FLEET, at, 0), p
    if taken != NOBODY:
        scratch.comes[taken] = taken
    return number


def best_removal(s, world, power, scratch):
    """The removal of the unit at the least valuable place, of those that are left."""
    least, number, taken = 0.0, HOLD, NOBODY
    for k in range(world.provinces):
        p = world.ranked[power, k]
        if scratch.open[p]:
            value = value_at(s.unit[p], location_of(world, s.unit[p], p), scratch)
            if taken == NOBODY or value < least:
                least, number, taken = value, order_number(world, REMOVE, p, 0), p
    if taken != NOBODY:
        scratch.open[taken] = 0
    return number


def write_plan(s, world, power, scratch):
    """Puts a draft into the order in which a power gives its orders."""
    j = 0
    for k in range(world.provinces):
        p = world.ranked[power, k]
        if asks(s, world, power, p):
            scratch.planned[power, j] = scratch.draft[p]
            j += 1


__all__ = ["draft_by_value", "draft_retreats", "give", "line_up", "plan_adjustments", "scratch_fields", "write_plan"]
