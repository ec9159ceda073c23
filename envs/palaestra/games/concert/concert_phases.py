"""Phases of the Concert games: who has orders to give, and what follows from them.

A year is: spring moves, retreats; autumn moves, retreats, capture of centres, adjustments. A phase in which nobody has
a choice is skipped. A power gives its orders in the order in which it counts provinces (``rank`` of the map): one a
unit in moves and retreats, one a unit that it may build or has to remove in adjustments.
"""

from __future__ import annotations

from palaestra.games.concert.adjudication import (
    BOUNCED,
    DISLODGED,
    NO,
    OK,
    VOID,
    YES,
    adjudicate,
    is_contested,
    result_of,
)
from palaestra.games.concert.concert_orders import (
    BITS,
    BUILD_ARMY,
    BUILD_FLEET,
    CONTESTED,
    HOLD,
    MOVE,
    NOTHING,
    REMOVE,
    count_of,
    is_fleet,
    is_free,
    location_of,
    order_parts,
    power_of,
    unit_at,
)

MOVES, RETREATS, ADJUSTMENTS = 0, 1, 2
PHASES = ("moves", "retreats", "adjustments")
SPRING, AUTUMN = 0, 1
SEASONS = ("spring", "autumn")
SOLO, STALEMATE, LAST_YEAR = 2, 3, 4
"""End reasons."""


# ---------------------------------------------------------------------------------------------------- who has to order


def set_up(s, world):
    """Puts units and owners where they start."""
    for p in range(world.provinces):
        s.unit[p], s.last_unit[p], s.mark[p] = world.start_unit[p], world.start_unit[p], NOTHING
    for c in range(world.centres):
        s.owner[c], s.last_owner[c] = world.start_owner[c], world.start_owner[c]
    s.year = world.first_year


def units_of(s, world, power):
    """How many units a power has."""
    count = 0
    for p in range(world.provinces):
        count += s.unit[p] != 0 and power_of(s.unit[p]) == power
    return count


def centres_of(s, world, power):
    """How many centres a power owns."""
    count = 0
    for c in range(world.centres):
        count += s.owner[c] == power
    return count


def can_build_at(s, world, power, c):
    """Whether a power may build in a centre: its own home, which it owns and where nobody is."""
    p = world.centre_province[c]
    return world.home[p] == power and s.owner[c] == power and s.unit[p] == 0


def adjustment(s, world, power):
    """Units that a power may build, or has to remove as a negative number."""
    balance = centres_of(s, world, power) - units_of(s, world, power)
    if balance <= 0:
        return balance
    free = 0
    for c in range(world.centres):
        free += can_build_at(s, world, power, c)
    return min(balance, free)


def asks(s, world, power, p):
    """Whether the unit in a province asks a power for an order, in moves and retreats."""
    unit = s.unit[p] if s.phase == MOVES else s.dislodged[p]
    return unit != 0 and power_of(unit) == power


def asked_power(s, board, row, p):
    """Power that the unit in a province asks for an order and that counts in the order ``row``, or -1."""
    unit = s.unit[p] if s.phase == MOVES else s.dislodged[p]
    if unit == 0:
        return -1
    power = power_of(unit)
    return power if board.orders_of[power] == row else -1


def has_retreat(s, world, p):
    """Whether a dislodged unit has somewhere to go."""
    unit = s.dislodged[p]
    at = location_of(world, unit, p)
    if is_fleet(unit):
        for k in range(world.fleet_start[at], world.fleet_start[at + 1]):
            if is_free(s, world.province_of[world.fleet_list[k]], s.mark[p]):
                return True
        return False
    found = False
    for k in range(world.army_start[p], world.army_start[p + 1]):
        found = found or is_free(s, world.army_list[k], s.mark[p])
    return found


# --------------------------------------------------------------------------------------------------------- resolutions


def resolve(s, board, given, a):
    """Carries out the orders of a phase.

    Args:
        s: The match.
        board: The board.
        given: Numbers of the orders by power, in the order of its units, int [powers, slots].
        a: Work record.
    """
    world = board.map
    s.last_phase = s.phase
    for p in range(world.provinces):
        s.order[p], s.result[p] = HOLD, OK
    if s.phase == ADJUSTMENTS:
        for power in range(world.powers):
            adjust(s, board, power, given)
        return
    for row in range(board.orders):
        counters = 0
        for k in range(world.provinces):
            p = world.ranked[row, k]
            power = asked_power(s, board, row, p)
            if power >= 0:
                s.order[p] = given[power, count_of(counters, power)]
                counters += 1 << (BITS * power)
    if s.phase == MOVES:
        resolve_moves(s, board, a)
    else:
        resolve_retreats(s, world, a)


def resolve_moves(s, board, a):
    """Adjudicates, moves units, and notes who has to retreat."""
    world = board.map
    for p in range(world.provinces):
        s.last_unit[p], s.mark[p] = s.unit[p], NOTHING
    for c in range(world.centres):
        s.last_owner[c] = s.owner[c]
    adjudicate(s, board, a)
    s.info.guesses += a.guesses
    for i in range(a.count):
        p = a.at[i]
        s.result[p] = result_of(world, a, i)
        if a.moves[i] == YES:
            s.unit[p] = 0
        elif a.is_dislodged[i] == YES:
            s.dislodged[p], s.unit[p] = s.last_unit[p], 0
    for i in range(a.count):
        if a.moves[i] == YES:
            enter(s, world, a, i)
    for p in range(world.provinces):
        if s.unit[p] == 0 and is_contested(a, p):
            s.mark[p] = CONTESTED
    for p in range(world.provinces):
        if s.dislodged[p] != 0 and not has_retreat(s, world, p):
            s.dislodged[p] = 0


def enter(s, world, a, i):
    """Puts a unit where it moves to, and notes from where it attacked; nobody may retreat thither, unless by sea."""
    goal, unit = a.goal[i], s.last_unit[a.at[i]]
    kind, location, _ = order_parts(world, s.order[a.at[i]])
    s.unit[goal] = unit_at(world, a.whose[i], is_fleet(unit), location if kind == MOVE else goal)
    if s.dislodged[goal] != 0 and not a.by_sea[i]:
        s.mark[goal] = a.at[i]


def resolve_retreats(s, world, a):
    """Moves dislodged units; of those that go to the same province none survives."""
    for p in range(world.provinces):
        a.first_attacker[p] = 0
    for p in range(world.provinces):
        kind, location, _ = order_parts(world, s.order[p])
        if s.dislodged[p] != 0 and kind == MOVE:
            a.first_attacker[world.province_of[location]] += 1
    for p in range(world.provinces):
        unit = s.dislodged[p]
        kind, location, _ = order_parts(world, s.order[p])
        if unit != 0:
            s.result[p] = DISLODGED
            if kind == MOVE:
                goal = world.province_of[location]
                s.result[p] = BOUNCED
                if a.first_attacker[goal] == 1:
                    s.unit[goal] = unit_at(world, power_of(unit), is_fleet(unit), location)
                    s.result[p] = OK
            s.dislodged[p] = 0


def adjust(s, board, power, given):
    """Builds or removes units of a power; what it leaves open is removed by the rules of civil disorder."""
    world = board.map
    due = adjustment(s, world, power)
    for j in range(abs(due)):
        kind, at, _ = order_parts(world, given[power, j])
        if due > 0 and kind in (BUILD_ARMY, BUILD_FLEET):
            p = world.province_of[at]
            if s.unit[p] == 0:
                s.unit[p], s.order[p] = unit_at(world, power, kind == BUILD_FLEET, at), given[power, j]
        elif due < 0 and kind == REMOVE and s.unit[at] != 0:
            s.unit[at], s.order[at] = 0, given[power, j]
    if due < 0:
        for _ in range(units_of(s, world, power) - centres_of(s, world, power)):
            remove(s, world, farthest(s, board, power))


def remove(s, world, p):
    """Removes a unit that its power did not name."""
    s.unit[p], s.result[p] = 0, VOID


def farthest(s, board, power):
    """Province of the unit that is removed first in civil disorder.

    It is the farthest from the home centres of its power, fleets by sea (rules of 2000), or from its centres, all by
    land and sea (2023); of equally far ones a fleet, and of these the first in the order of the power.
    """
    world, chosen, most = board.map, 0, -1
    for k in range(world.provinces):
        p = world.ranked[power, k]
        unit = s.unit[p]
        if unit != 0 and power_of(unit) == power:
            value = 2 * steps_home(s, board, power, p, unit) + is_fleet(unit)
            if value > most:
                chosen, most = p, value
    return chosen


def steps_home(s, board, power, p, unit):
    """Moves from a unit to the nearest centre that counts: see `farthest`."""
    world, steps = board.map, 127
    for c in range(world.centres):
        goal = world.centre_province[c]
        if board.rules == 1 and s.owner[c] == power:
            steps = min(steps, world.army_steps[p, goal])
        elif board.rules == 0 and world.home[goal] == power:
            by_sea = world.fleet_steps[location_of(world, unit, p), goal]
            steps = min(steps, by_sea if is_fleet(unit) else world.army_steps[p, goal])
    return steps


# ------------------------------------------------------------------------------------------------------ what comes next


def go_on(s, board):
    """Goes on to the next phase in which somebody has orders to give. Returns whether the match is over."""
    world = board.map
    while True:
        if s.phase == MOVES and any_dislodged(s, world):
            s.phase = RETREATS
        elif s.phase != ADJUSTMENTS and s.season == SPRING:
            s.phase, s.season = MOVES, AUTUMN
        elif s.phase != ADJUSTMENTS:
            capture(s, world)
            if is_over(s, board):
                return True
            s.phase = ADJUSTMENTS
        else:
            s.phase, s.season = MOVES, SPRING
            s.year += 1
        if write_acting(s, world):
            return False


def any_dislodged(s, world):
    """Whether a unit has to retreat."""
    found = False
    for p in range(world.provinces):
        found = found or s.dislodged[p] != 0
    return found


def write_acting(s, world):
    """Notes how many orders each power has to give, and asks those that have one. Returns whether there are any."""
    for power in range(world.powers):
        s.due[power] = abs(adjustment(s, world, power)) if s.phase == ADJUSTMENTS else 0
    if s.phase != ADJUSTMENTS:
        for p in range(world.provinces):
            unit = s.unit[p] if s.phase == MOVES else s.dislodged[p]
            if unit != 0:
                s.due[power_of(unit)] += 1
    some = False
    for power in range(world.powers):
        s.acting[power] = s.due[power] > 0
        some = some or s.due[power] > 0
    return some


def capture(s, world):
    """Gives centres to the powers whose units stand there; a power without centre leaves, and its units with it."""
    changes = False
    for c in range(world.centres):
        unit = s.unit[world.centre_province[c]]
        if unit != 0 and s.owner[c] != power_of(unit):
            s.owner[c] = power_of(unit)
            changes = True
    s.quiet_years = 0 if changes else s.quiet_years + 1
    for power in range(world.powers):
        if centres_of(s, world, power) == 0:
            s.alive[power] = 0
            for p in range(world.provinces):
                if s.unit[p] != 0 and power_of(s.unit[p]) == power:
                    s.unit[p] = 0


def is_over(s, board):
    """Whether somebody has won, nothing changed for too long, or the last year is over; writes the reason."""
    world, most, alive = board.map, 0, 0
    for power in range(world.powers):
        most = max(most, centres_of(s, world, power))
        alive += s.alive[power]
    if most >= world.solo or alive == 1:
        s.info.end_reason = SOLO
    elif s.quiet_years >= s.parameters.quiet_years:
        s.info.end_reason = STALEMATE
    elif s.year >= board.last_year:
        s.info.end_reason = LAST_YEAR
    return s.info.end_reason != 0


# --------------------------------------------------------------------------------------------------------------- score


def share(s, board, power):
    """Share of a power in the 1 that a match is worth."""
    world = board.map
    if s.info.end_reason == SOLO:
        return 1.0 if is_first(s, world, power) else 0.0
    mine, total = 0.0, 0.0
    for other in range(world.powers):
        centres = centres_of(s, world, other)
        weight = centres * centres if board.score == 0 else (centres > 0 if board.score == 1 else centres)
        total += weight
        if other == power:
            mine = float(weight)
    return mine / total


def is_first(s, world, power):
    """Whether a power owns more centres than any other."""
    own, is_most = centres_of(s, world, power), True
    for other in range(world.powers):
        is_most = is_most and (other == power or centres_of(s, world, other) < own)
    return is_most


__all__ = ["NO", "PHASES", "SEASONS", "go_on", "is_first", "resolve", "set_up", "share", "write_acting"]
