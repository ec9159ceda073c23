"""Scripts: units that follow simple rules, by the orders that every player has."""

from __future__ import annotations

import math

from palaestra.games.skirmish.battle_records import RED
from palaestra.games.skirmish.combat import NOBODY
from palaestra.games.skirmish.observe import is_free, is_target
from palaestra.games.skirmish.orders import ATTACK_MOVE, EAST, NORTH, SOUTH, STOP, WEST, action_of, aim_at

NAMES = ("builtin", "hold", "nearest", "weakest", "focus_fire")
BUILTIN, HOLD, NEAREST, WEAKEST, FOCUS_FIRE = range(len(NAMES))


def choose(s, world, slot, which, scratch):
    """Chooses the action of one unit.

    ``builtin``: blue attacks on its way, by the engine's priorities; red has no such order and plays ``nearest``.
    ``hold``: stays, attacks the nearest in reach. ``nearest``, ``weakest``: goes to its nearest opponent, attacks the
    nearest, or the weakest, in reach. ``focus_fire``: likewise, but attacks the target of its team (`plan`)
    where it may. Healers heal the weakest teammate in reach and go with the others.
    """
    if which == BUILTIN and action_of(s, world, slot, ATTACK_MOVE) != STOP:
        give(s, world, slot, ATTACK_MOVE, scratch)
        return
    target = choose_target(s, world, slot, which, scratch)
    if target != NOBODY:
        aim(s, world, slot, target, scratch)
    elif which == HOLD:
        give(s, world, slot, STOP, scratch)
    else:
        give(s, world, slot, approach(s, world, slot), scratch)


def give(s, world, slot, order, scratch):
    """Gives an order that has no target."""
    scratch.chosen = action_of(s, world, slot, order)


def aim(s, world, slot, target, scratch):
    """Gives the order to attack or heal the unit in slot ``target``."""
    scratch.chosen = aim_at(s, world, slot, target)


def plan(s, world, team, which, scratch):
    """Chooses the one target of a team that fires together: who most of it may attack; of equals the weakest."""
    if which != FOCUS_FIRE:
        return
    rules = world.rules[s.map]
    best, best_count, best_left = NOBODY, 0, 0.0
    for target in range(rules.reds + rules.blues):
        if s.team[target] == team or not s.alive[target]:
            continue
        count = 0
        for slot in range(rules.reds + rules.blues):
            if s.team[slot] == team:
                count += is_target(s, world, slot, target)
        left = s.hit_points[target] + s.shield[target]
        if count > best_count or (count == best_count and count > 0 and left < best_left):
            best, best_count, best_left = target, count, left
    scratch.focus[team] = best


def choose_target(s, world, slot, which, scratch):
    """Whom a unit attacks or heals now, of those that it may; `NOBODY` if there is none."""
    rules = world.rules[s.map]
    heals = world.units[s.kind[slot]].heal_per_loop > 0.0
    if which == FOCUS_FIRE and not heals:
        focus = scratch.focus[s.team[slot]]
        if focus != NOBODY and is_target(s, world, slot, focus):
            return focus
    best, best_worth = NOBODY, 0.0
    for other in range(rules.reds + rules.blues):
        if is_target(s, world, slot, other):
            by_strength = which == WEAKEST or heals
            worth = s.hit_points[other] + s.shield[other] if by_strength else square_distance(s, slot, other)
            if best == NOBODY or worth < best_worth:
                best, best_worth = other, worth
    return best


def square_distance(s, i, j):
    """Square of the distance of two centres, cells^2."""
    dx, dy = s.position[j, 0] - s.position[i, 0], s.position[j, 1] - s.position[i, 1]
    return dx * dx + dy * dy


def nearest_opponent(s, world, slot):
    """The nearest living opponent, `NOBODY` if there is none."""
    nearest, least = NOBODY, 0.0
    for other in range(world.rules[s.map].reds + world.rules[s.map].blues):
        if s.alive[other] and s.team[other] != s.team[slot]:
            square = square_distance(s, slot, other)
            if nearest == NOBODY or square < least:
                nearest, least = other, square
    return nearest


def approach(s, world, slot):
    """The order that leads nearer to the nearest opponent."""
    nearest = nearest_opponent(s, world, slot)
    if nearest == NOBODY:
        return STOP
    return order_to(s, world, slot, s.position[nearest, 0], s.position[nearest, 1])


def order_to(s, world, slot, x, y):
    """The order that leads nearer to a point, along the longer of the two axes that is free."""
    dx, dy = x - s.position[slot, 0], y - s.position[slot, 1]
    forward = EAST if s.team[slot] == RED else WEST
    along_x = EAST if dx > 0.0 else WEST if dx < 0.0 else forward
    along_y = NORTH if dy > 0.0 else SOUTH
    first, second = (along_x, along_y) if math.fabs(dx) >= math.fabs(dy) else (along_y, along_x)
    if is_free(s, world, slot, first):
        return first
    return second if is_free(s, world, slot, second) else STOP
