"""Plans of a whole power in the Concert games: attacks with supports, defences, convoys; see `greedy_support`.

Targets are served in the order of their gain for each unit that they take: the chance that the attack succeeds or the
centre is kept, times what it is worth. Chances are rough: they grow with the own units and fall with those that the
strongest other power could bring.
"""

from __future__ import annotations

from typing import NamedTuple

from palaestra.game import script_uniform
from palaestra.games.concert.concert_drafts import NOBODY, decide, give, line_up, support_with_rest
from palaestra.games.concert.concert_orders import COAST, CONVOY, VIA, is_fleet, order_number, power_of
from palaestra.games.concert.concert_values import value_at, way, ways

BEST = -1


class Odds(NamedTuple):
    """Chances and prizes, without unit.

    Attributes:
        spring: Prize of a centre in spring, when it does not change its owner; in autumn it is 1.
        doubt: Chance that is lost with each unit that the others could have more.
        alone: Chance of a single unit against one that stands there: it may leave.
        even: Chance to enter an empty place that others reach with as many units.
        few: Chance with fewer.
        risk: Chance that an own centre is lost for each unit by which others are stronger.
        position: Worth of the best place.
        least: Least gain for each unit.
    """

    spring: float = 0.7
    doubt: float = 0.25
    alone: float = 0.15
    even: float = 0.5
    few: float = 0.2
    risk: float = 0.4
    position: float = 0.3
    least: float = 0.08


ODDS = Odds()


def draft_attacks(s, board, power, scratch):
    """Serves targets as long as they are worth their units; the other units go to the best places."""
    world = board.map
    count = line_up(s, world, power, scratch)
    most = 1e-9
    for p in range(world.provinces):
        most = max(most, scratch.army_value[p], scratch.fleet_value[p])
    serves = True
    while serves:
        serves = serve_best(s, board, power, count, ODDS.position / most, scratch)
    for j in range(count):
        if scratch.open[scratch.queue[j]]:
            decide(s, world, power, scratch.queue[j], BEST, scratch)
    support_with_rest(s, world, power, count, scratch)


def serve_best(s, board, power, count, scale, scratch):
    """Orders the units of the best target. Returns whether there was one."""
    world, best, target, units = board.map, ODDS.least, NOBODY, 0
    count_able(s, world, count, scratch)
    for p in range(world.provinces):
        if scratch.comes[p] == NOBODY and world.centre[p] >= 0:
            for m in range(1, scratch.able[p] + 1):
                gain = target_gain(s, world, power, p, m, scratch) / m
                gain *= 1.0 + 0.01 * script_uniform(scratch, 0.0, 1.0)
                if gain > best:
                    best, target, units = gain, p, m
    best, army, goal, first, second = best_convoy(s, board, power, count, scale, best, scratch)
    if army != NOBODY:
        order_convoy(world, army, goal, first, second, scratch)
        return True
    if target == NOBODY:
        return False
    order_attack(s, world, target, units, count, scratch)
    return True


def count_able(s, world, count, scratch):
    """Counts the own units without an order that reach or hold each province."""
    for p in range(world.provinces):
        scratch.able[p] = 0
    for j in range(count):
        p = scratch.queue[j]
        if scratch.open[p]:
            scratch.able[p] += 1
            before = p
            first, last = ways(world, s.unit[p], p)
            for k in range(first, last):
                goal = world.province_of[way(world, s.unit[p], k)]
                scratch.able[goal] += goal != before
                before = goal


def target_gain(s, world, power, p, units, scratch):
    """Centres that a power may expect to gain, or not to lose, if it uses so many units for a centre."""
    won = success(s, power, p, units, scratch)
    if s.owner[world.centre[p]] == power and (s.unit[p] == 0 or power_of(s.unit[p]) == power):
        return max(0.0, won - max(0.0, 1.0 - ODDS.risk * scratch.rivals[p]))
    return won * (1.0 if s.season else ODDS.spring)


def success(s, power, p, units, scratch):
    """Chance that a power stands in a province after the moves if it uses so many units."""
    rivals, unit = scratch.rivals[p], s.unit[p]
    if unit != 0 and power_of(unit) != power:
        if units == 1:
            return ODDS.alone
        return 1.0 if units > rivals else max(ODDS.few, 1.0 - ODDS.doubt * (rivals - units + 1))
    if scratch.open[p]:
        return 1.0 if units >= rivals else max(ODDS.few, 1.0 - ODDS.doubt * (rivals - units + 1))
    if units > rivals:
        return 1.0
    return ODDS.even if units == rivals else ODDS.few


def order_attack(s, world, target, units, count, scratch):
    """The unit that holds the target stays; else that goes which guards least. Those that guard most support it."""
    for m in range(units):
        best, chosen = -1e9, NOBODY
        for j in range(count):
            p = scratch.queue[j]
            if scratch.open[p] and (p == target or reaches(s, world, p, target)):
                guards = scratch.worth[p] * (scratch.rivals[p] + 1)
                merit = 1e6 if p == target else -guards if m == 0 else guards
                if merit > best:
                    best, chosen = merit, p
        if chosen != NOBODY:
            give(s, world, chosen, best_location(s, world, chosen, target, scratch), target, scratch)


def reaches(s, world, p, target):
    """Whether a unit may move to a province."""
    first, last = ways(world, s.unit[p], p)
    found = False
    for k in range(first, last):
        found = found or world.province_of[way(world, s.unit[p], k)] == target
    return found


def best_location(s, world, p, target, scratch):
    """The location of a province to which a unit goes best."""
    unit, chosen, best = s.unit[p], target, -1.0
    first, last = ways(world, unit, p)
    for k in range(first, last):
        at = way(world, unit, k)
        if world.province_of[at] == target and value_at(unit, at, scratch) > best:
            best, chosen = value_at(unit, at, scratch), at
    return chosen


# ------------------------------------------------------------------------------------------------------------- convoys


def best_convoy(s, board, power, count, scale, least, scratch):
    """The best convoy by one own fleet or two: gain for each unit, army, goal, fleets; no army if none is enough.

    An army that could do nothing else is not counted.
    """
    world = board.map
    best, army, goal, chosen, second = least, NOBODY, NOBODY, NOBODY, NOBODY
    for i in range(count):
        f = scratch.queue[i]
        if not scratch.open[f] or board.sea_number[f] < 0:
            continue
        for j in range(count):
            p = scratch.queue[j]
            if not scratch.open[p] or is_fleet(s.unit[p]) or not world.fleet_reach[f, p]:
                continue
            others = 1 if walks_to_target(s, world, power, p, scratch) else 0
            for n in range(count):
                g = scratch.queue[n]
                if g != f and not (scratch.open[g] and board.sea_number[g] >= 0 and world.fleet_edge[f, g]):
                    continue
                for t in range(world.provinces):
                    if can_land(s, world, p, t, scratch) and world.fleet_reach[g, t]:
                        if g != f and world.fleet_reach[f, t]:
                            continue
                        gain = landing_gain(s, world, power, p, t, scale, scratch) / (others + (1 if g == f else 2))
                        if gain > best:
                            best, army, goal, chosen, second = gain, p, t, f, g
    return best, army, goal, chosen, second


def walks_to_target(s, world, power, p, scratch):
    """Whether an army reaches a centre of others on foot."""
    for k in range(world.army_start[p], world.army_start[p + 1]):
        goal = world.army_list[k]
        if world.centre[goal] >= 0 and s.owner[world.centre[goal]] != power and scratch.comes[goal] == NOBODY:
            return True
    return False


def can_land(s, world, p, t, scratch):
    """Whether an army may be convoyed to a coast where nobody is."""
    is_free_coast = world.ground[t] == COAST and s.unit[t] == 0 and scratch.comes[t] == NOBODY
    return is_free_coast and t != p and world.army_edge[p, t] == 0


def landing_gain(s, world, power, p, t, scale, scratch):
    """Centres that a landing may gain, and how much better the army stands."""
    gain = scale * (scratch.army_value[t] - scratch.army_value[p])
    if world.centre[t] >= 0 and s.owner[world.centre[t]] != power:
        gain += target_gain(s, world, power, t, 1, scratch)
    return gain


def order_convoy(world, army, goal, first, second, scratch):
    """Orders an army and one or two fleets."""
    scratch.draft[army] = order_number(world, VIA, goal, 0)
    scratch.comes[goal], scratch.open[army] = army, 0
    for fleet in (first, second):
        scratch.draft[fleet] = order_number(world, CONVOY, army, goal)
        scratch.comes[fleet], scratch.open[fleet] = fleet, 0


__all__ = ["draft_attacks"]
