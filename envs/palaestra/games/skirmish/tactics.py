"""Scripts that move with care: they keep away, step back, spread out or surround, by the orders every player has.

``kite``: who shoots farther than its pursuers shoots when the weapon is ready and no pursuer reaches it meanwhile,
else it walks away from them; the others attack together.
``retreat_heal``: who fights from afar and would hardly survive those that aim at it steps back behind its teammates
while its weapon is not ready; healers follow and heal the wounded; the others attack together.
``split``: keeps a distance to teammates as long as opponents with splash are there; units that attack by their own
death go where most opponents are together; the others attack the nearest.
``surround``: melee units walk around the opponents, each to a place of its own, and attack who is near; the
others attack the nearest.

Directions that are equally good are tried away from the opponents' side first, so that a mirrored battle is played
as the mirror of the battle.
"""

from __future__ import annotations

import math

from palaestra.game import apart
from palaestra.games.skirmish.combat import NOBODY, can_hit, gap, is_wounded
from palaestra.games.skirmish.movement import is_open
from palaestra.games.skirmish.observe import is_free, is_target, reach_of, standing
from palaestra.games.skirmish.orders import AHEAD, EAST, NORTH, SOUTH, STOP, WEST
from palaestra.games.skirmish.scripts import (
    FOCUS_FIRE,
    NEAREST,
    aim,
    choose_target,
    give,
    nearest_opponent,
    order_to,
    square_distance,
)
from palaestra.games.skirmish.scripts import NAMES as SIMPLE_NAMES
from palaestra.games.skirmish.scripts import choose as choose_simply
from palaestra.games.skirmish.scripts import plan as plan_simply

HELD_OUT = ("kite", "retreat_heal")
"""They are for evaluation: `palaestra.game.Game.held_out`."""
NAMES = (*SIMPLE_NAMES, "split", "surround", *HELD_OUT)
SPLIT, SURROUND, KITE, RETREAT_HEAL = range(len(SIMPLE_NAMES), len(NAMES))
MELEE = 2.0
"""Range in cells below which a weapon is one for melee."""
VOLLEYS = 2.0
"""Who has less left than so many volleys of those that aim at it steps back."""
COVER = 3.0
"""Teammates that are at most so much farther from the opponents cover a retreat, cells."""
NEARLY = 0.5
"""Who lacks so much to have a target in range counts as having it there, cells."""
SPREAD = 1.8
"""Teammates that spread out keep the radius of the opponents' splash and this apart, cells: two bodies and a step."""
WAY = 4.0
"""A crowd so much farther away is worth half as much as one next to a unit that explodes, cells."""
FOLLOW = 2.0
"""How near healers stay to the nearest fighter, cells."""
RING = 3.0
"""Distance of the places around the middle of the opponents, cells."""
CONTACT = 3.0
"""Melee units that have an opponent so near attack instead of walking around, cells, edge to edge."""
AHEAD_CELLS = 4
"""How far units that flee look for walls, cells."""
WALL = 0.03125
"""What one cell less of them weighs in `flee`, 1 / cells^2."""
SOFT = 0.1
"""Added to squares of distances that divide, cells^2."""


def script(s, world, slot, which, actions, scratch):
    """Gives the action of one unit, where the sides have tables of their own."""
    choose(s, world, slot, which, scratch)
    reds = world.rules[s.map].reds
    if slot < reds:
        actions.red[slot].order = scratch.chosen
    else:
        actions.blue[slot - reds].order = scratch.chosen


def script_alike(s, world, slot, which, actions, scratch):
    """Gives the action of one unit, where both sides are alike."""
    choose(s, world, slot, which, scratch)
    actions.unit[slot].order = scratch.chosen


def choose(s, world, slot, which, scratch):
    """Chooses the action of one unit."""
    if which < SPLIT:
        choose_simply(s, world, slot, which, scratch)
    else:
        choose_late(s, world, slot, which, scratch)


def choose_with_care(s, world, slot, which, scratch):
    """Chooses the action of one unit, of the scripts that this file adds."""
    if world.units[s.kind[slot]].heal_per_loop > 0.0:
        follow_and_heal(s, world, slot, scratch)
    elif which == KITE:
        kite(s, world, slot, scratch)
    elif which == RETREAT_HEAL:
        retreat(s, world, slot, scratch)
    elif which == SPLIT:
        split(s, world, slot, scratch)
    else:
        surround(s, world, slot, scratch)


def plan(s, world, team, which, scratch):
    """What concerns the whole team: its common target, who is hunted and aimed at, where opponents are together."""
    if which >= FOCUS_FIRE:
        plan_late(s, world, team, which, scratch)


def plan_team(s, world, team, which, scratch):
    """What concerns the whole team, of the scripts for which something does."""
    if which in (FOCUS_FIRE, KITE, RETREAT_HEAL):
        plan_simply(s, world, team, FOCUS_FIRE, scratch)
    if which == KITE:
        find_hunted(s, world, team, scratch)
    if which == RETREAT_HEAL:
        find_volleys(s, world, team, scratch)
    if which == SPLIT:
        find_crowds(s, world, team, scratch)
    if which == SURROUND:
        find_middle(s, world, 0, scratch)
        find_middle(s, world, 1, scratch)


choose_late, plan_late = apart(choose_with_care), apart(plan_team)
"""Compiled when a match is first played by one of these scripts: a quarter of all code."""


def is_melee(s, world, slot):
    """Whether a unit fights from nearby."""
    unit = world.units[s.kind[slot]]
    return unit.targets != 0 and unit.range < MELEE


def stride(s, world, slot):
    """How far a unit walks in a decision, cells."""
    return world.units[s.kind[slot]].speed_per_loop * world.rules[s.map].loops


def advance(s, world, slot, waits, scratch):
    """Goes to the nearest opponent, but waits for one that is coming: the unit that does not move shoots first."""
    nearest = nearest_opponent(s, world, slot)
    if nearest == NOBODY:
        give(s, world, slot, STOP, scratch)
        return
    reach = reach_of(s, world, slot) + stride(s, world, slot)
    is_coming = waits and s.pace[nearest] > 0.0 and not is_melee(s, world, slot)
    if is_coming and square_distance(s, slot, nearest) <= reach * reach:
        give(s, world, slot, STOP, scratch)
    else:
        give(s, world, slot, order_to(s, world, slot, s.position[nearest, 0], s.position[nearest, 1]), scratch)


def room(s, world, slot, order):
    """Cells that are open in a row in a direction, at most `AHEAD_CELLS`."""
    bits = standing(world.units[s.kind[slot]])
    for k in range(AHEAD_CELLS):
        x = s.position[slot, 0] + (k + 1) * AHEAD[order - NORTH, 0]
        y = s.position[slot, 1] + (k + 1) * AHEAD[order - NORTH, 1]
        if not is_open(world.terrain[s.map], bits, x, y):
            return k
    return AHEAD_CELLS


def direction(k, team):
    """Number k of the directions: north, south, home, forward."""
    home, forward = (WEST, EAST) if team == 0 else (EAST, WEST)
    return NORTH if k == 0 else SOUTH if k == 1 else home if k == 2 else forward


def pressure(s, world, slot, x, y):
    """How near the opponents would be at a point: the sum of 1 / distance^2."""
    total = 0.0
    for other in range(world.rules[s.map].reds + world.rules[s.map].blues):
        if s.alive[other] and s.team[other] != s.team[slot]:
            dx, dy = s.position[other, 0] - x, s.position[other, 1] - y
            total += 1.0 / (dx * dx + dy * dy + SOFT)
    return total


def flee(s, world, slot):
    """The order that leads where the opponents are farthest and walls are not near; `STOP` where none is free."""
    best, least = STOP, 0.0
    step = stride(s, world, slot)
    for k in range(4):
        order = direction(k, s.team[slot])
        if not is_free(s, world, slot, order):
            continue
        x = s.position[slot, 0] + step * AHEAD[order - NORTH, 0]
        y = s.position[slot, 1] + step * AHEAD[order - NORTH, 1]
        free = room(s, world, slot, order)
        worth = pressure(s, world, slot, x, y) + WALL * (AHEAD_CELLS - free)
        if best == STOP or worth < least:
            best, least = order, worth
    return best


def find_hunted(s, world, team, scratch):
    """Writes into ``scratch.hunters`` how many opponents with a shorter weapon are nearest to each unit of a team."""
    slots = world.rules[s.map].reds + world.rules[s.map].blues
    for slot in range(slots):
        if s.team[slot] == team:
            scratch.hunters[slot] = 0
    for other in range(slots):
        if not s.alive[other] or s.team[other] == team or not is_melee(s, world, other):
            continue
        prey, least = NOBODY, 0.0
        for slot in range(slots):
            if s.alive[slot] and s.team[slot] == team and can_hit(s, world, other, slot):
                away = gap(s, world, other, slot)
                if prey == NOBODY or away < least:
                    prey, least = slot, away
        if prey != NOBODY:
            scratch.hunters[prey] += 1
    scratch.free_shooters[team] = 0
    for slot in range(slots):
        if s.alive[slot] and s.team[slot] == team and scratch.hunters[slot] == 0:
            scratch.free_shooters[team] += world.units[s.kind[slot]].targets != 0


def pursuer_of(s, world, slot):
    """The opponent for melee that is first to have a unit in its range, `NOBODY` if there is none."""
    first, least = NOBODY, 0.0
    for other in range(world.rules[s.map].reds + world.rules[s.map].blues):
        if not s.alive[other] or s.team[other] == s.team[slot] or not is_melee(s, world, other):
            continue
        left = gap(s, world, other, slot) - world.units[s.kind[other]].range
        if can_hit(s, world, other, slot) and (first == NOBODY or left < least):
            first, least = other, left
    return first


def must_flee(s, world, slot, scratch):
    """Whether a unit has to walk away now: a pursuer reaches it while it shoots, or while its weapon is not ready."""
    pursuer = pursuer_of(s, world, slot)
    if pursuer == NOBODY or is_melee(s, world, slot):
        return False
    left = gap(s, world, pursuer, slot) - world.units[s.kind[pursuer]].range
    own, its = stride(s, world, slot), stride(s, world, pursuer)
    is_ready = s.cooldown[slot] < world.rules[s.map].loops
    if own < its or (own == its and is_ready and scratch.free_shooters[s.team[slot]] == 0):
        return False
    return left < (1.0 if is_ready else 2.0) * its


def kite(s, world, slot, scratch):
    """Shoots when the weapon is ready and no pursuer arrives meanwhile; else walks away from pursuers."""
    order = flee(s, world, slot) if must_flee(s, world, slot, scratch) else STOP
    if order != STOP:
        give(s, world, slot, order, scratch)
    else:
        attack_together(s, world, slot, True, scratch)


def attack_together(s, world, slot, waits, scratch):
    """Attacks the target of the team, or the nearest in reach; goes there if there is none."""
    target = choose_target(s, world, slot, FOCUS_FIRE, scratch)
    if target != NOBODY:
        aim(s, world, slot, target, scratch)
    else:
        advance(s, world, slot, waits, scratch)


def find_volleys(s, world, team, scratch):
    """Writes into ``scratch.volley`` the damage of one attack of each opponent that has a unit as its target in range.

    Armour, shields and bonuses are left out.
    """
    slots = world.rules[s.map].reds + world.rules[s.map].blues
    for slot in range(slots):
        if s.team[slot] == team:
            scratch.volley[slot] = 0.0
    for other in range(slots):
        target = s.target[other]
        if s.alive[other] and s.team[other] != team and target != NOBODY and s.team[target] == team:
            weapon = world.units[s.kind[other]]
            if gap(s, world, other, target) <= weapon.range + NEARLY:
                scratch.volley[target] += weapon.damage * weapon.hits


def follow_and_heal(s, world, slot, scratch):
    """A healer heals whom it reaches and who has the fewest hit points; else it stays with the wounded or nearest."""
    best, least = NOBODY, 0.0
    near, way = NOBODY, 0.0
    for other in range(world.rules[s.map].reds + world.rules[s.map].blues):
        if not s.alive[other] or s.team[other] != s.team[slot] or other == slot:
            continue
        is_patient = is_target(s, world, slot, other) and is_wounded(s, world, other)
        if is_patient and (best == NOBODY or s.hit_points[other] < least):
            best, least = other, s.hit_points[other]
        if world.units[s.kind[other]].targets != 0:
            square = square_distance(s, slot, other)
            if near == NOBODY or square < way:
                near, way = other, square
    if best != NOBODY:
        aim(s, world, slot, best, scratch)
    elif near == NOBODY or way < FOLLOW * FOLLOW:
        give(s, world, slot, STOP, scratch)
    else:
        give(s, world, slot, order_to(s, world, slot, s.position[near, 0], s.position[near, 1]), scratch)


def retreat(s, world, slot, scratch):
    """Steps back while its weapon is not ready, if two volleys would kill it and others are there; else attacks."""
    left = s.hit_points[slot] + s.shield[slot]
    is_ready = s.cooldown[slot] < world.rules[s.map].loops
    order = STOP
    if not is_ready and left <= VOLLEYS * scratch.volley[slot] and has_cover(s, world, slot):
        order = flee(s, world, slot)
    if order != STOP:
        give(s, world, slot, order, scratch)
    else:
        attack_together(s, world, slot, False, scratch)


def has_cover(s, world, slot):
    """Whether it fights from afar and a fighter of its team that has more left is about as near to the opponents."""
    foe = nearest_opponent(s, world, slot)
    if foe == NOBODY or is_melee(s, world, slot):
        return False
    left, away = s.hit_points[slot] + s.shield[slot], gap(s, world, slot, foe) + COVER
    for other in range(world.rules[s.map].reds + world.rules[s.map].blues):
        fights = s.alive[other] and s.team[other] == s.team[slot] and world.units[s.kind[other]].targets != 0
        if fights and s.hit_points[other] + s.shield[other] > left and gap(s, world, other, foe) < away:
            return True
    return False


def find_crowds(s, world, team, scratch):
    """Writes how far a team has to spread, and how many opponents are around each opponent."""
    slots = world.rules[s.map].reds + world.rules[s.map].blues
    scratch.spread[team] = 0.0
    blast = 0.0
    for slot in range(slots):
        unit = world.units[s.kind[slot]]
        if not s.alive[slot]:
            continue
        if s.team[slot] != team and unit.splash_shape != 0:
            scratch.spread[team] = max(scratch.spread[team], unit.splash_radius)
        if s.team[slot] == team and unit.suicide:
            blast = max(blast, unit.splash_radius)
    for target in range(slots):
        if s.team[target] == team:
            continue
        scratch.crowd[target] = 0
        if not s.alive[target] or blast == 0.0:
            continue
        for other in range(slots):
            if s.alive[other] and s.team[other] != team:
                scratch.crowd[target] += square_distance(s, target, other) <= blast * blast


def split(s, world, slot, scratch):
    """Steps away from teammates that are too near; else attacks the nearest; explodes where opponents are many."""
    if world.units[s.kind[slot]].suicide:
        explode_in_crowd(s, world, slot, scratch)
        return
    spread = scratch.spread[s.team[slot]]
    if spread > 0.0:
        order = spread_out(s, world, slot, spread + SPREAD)
        if order != STOP:
            give(s, world, slot, order, scratch)
            return
    attack_nearest(s, world, slot, scratch)


def spread_out(s, world, slot, wanted):
    """The order that leads away from teammates; `STOP` where all are far enough or no direction is better."""
    here = crowding(s, world, slot, s.position[slot, 0], s.position[slot, 1], wanted)
    best, least = STOP, here
    step = stride(s, world, slot)
    for k in range(4):
        order = direction(k, s.team[slot])
        if here > 0.0 and is_free(s, world, slot, order):
            x = s.position[slot, 0] + step * AHEAD[order - NORTH, 0]
            y = s.position[slot, 1] + step * AHEAD[order - NORTH, 1]
            worth = crowding(s, world, slot, x, y, wanted)
            if worth < least:
                best, least = order, worth
    return best


def crowding(s, world, slot, x, y, wanted):
    """How much too near the teammates would be at a point: the sum of what is lacking in distance, cells."""
    total = 0.0
    for other in range(world.rules[s.map].reds + world.rules[s.map].blues):
        if other != slot and s.alive[other] and s.team[other] == s.team[slot]:
            dx, dy = s.position[other, 0] - x, s.position[other, 1] - y
            square = dx * dx + dy * dy
            if square < wanted * wanted:
                total += wanted - math.sqrt(square)
    return total


def explode_in_crowd(s, world, slot, scratch):
    """Goes to the opponent with most of its teammates around it for the way, and attacks it."""
    best, most = NOBODY, 0.0
    for other in range(world.rules[s.map].reds + world.rules[s.map].blues):
        if s.alive[other] and s.team[other] != s.team[slot] and can_hit(s, world, slot, other):
            worth = scratch.crowd[other] / (WAY + math.sqrt(square_distance(s, slot, other)))
            if best == NOBODY or worth > most:
                best, most = other, worth
    if best == NOBODY:
        give(s, world, slot, STOP, scratch)
    elif is_target(s, world, slot, best):
        aim(s, world, slot, best, scratch)
    else:
        give(s, world, slot, order_to(s, world, slot, s.position[best, 0], s.position[best, 1]), scratch)


def find_middle(s, world, side, scratch):
    """Writes the middle of the living units of a team into ``scratch.middle``, cells."""
    x, y, count = 0.0, 0.0, 0
    for slot in range(world.rules[s.map].reds + world.rules[s.map].blues):
        if s.alive[slot] and s.team[slot] == side:
            count += 1
            x += s.position[slot, 0]
            y += s.position[slot, 1]
    scratch.middle[side, 0], scratch.middle[side, 1] = x / max(count, 1), y / max(count, 1)


def surround(s, world, slot, scratch):
    """Melee units go to their places around the opponents until one of these is near; then they attack."""
    foe = nearest_opponent(s, world, slot)
    if is_melee(s, world, slot) and foe != NOBODY and gap(s, world, slot, foe) > CONTACT:
        go_around(s, world, slot, scratch)
    else:
        attack_nearest(s, world, slot, scratch)


def attack_nearest(s, world, slot, scratch):
    """Attacks the nearest in reach; goes there if there is none."""
    target = choose_target(s, world, slot, NEAREST, scratch)
    if target != NOBODY:
        aim(s, world, slot, target, scratch)
    else:
        advance(s, world, slot, True, scratch)


def go_around(s, world, slot, scratch):
    """Walks to the unit's own place on the ring around the opponents.

    Places follow each other from left to right as the units do, seen from the middle of their team: the outermost go
    behind the opponents, the innermost stay before them. "Left" of red is "right" of blue, as in a mirror.
    """
    team = s.team[slot]
    ahead_x = scratch.middle[1 - team, 0] - scratch.middle[team, 0]
    ahead_y = scratch.middle[1 - team, 1] - scratch.middle[team, 1]
    way = math.sqrt(ahead_x * ahead_x + ahead_y * ahead_y + SOFT)
    turn = 1.0 / way if team == 0 else -1.0 / way
    ahead_x, ahead_y, left_x, left_y = ahead_x / way, ahead_y / way, -ahead_y * turn, ahead_x * turn
    place = place_in_line(s, world, slot, left_x, left_y)
    # corners of a square on its tip: -1 is behind the opponents, 0 before them, 1 behind them again
    beyond = 2.0 * math.fabs(place) - 1.0
    aside = min(math.fabs(place), 1.0 - math.fabs(place))
    aside = aside if place > 0.0 else -aside
    size = RING / math.sqrt(aside * aside + beyond * beyond)
    x = scratch.middle[1 - team, 0] + size * (aside * left_x + beyond * ahead_x)
    y = scratch.middle[1 - team, 1] + size * (aside * left_y + beyond * ahead_y)
    give(s, world, slot, order_to(s, world, slot, x, y), scratch)


def place_in_line(s, world, slot, left_x, left_y):
    """Where a unit is among the melee units of its team along a direction: from -1, the last, to 1, the first."""
    own = s.position[slot, 0] * left_x + s.position[slot, 1] * left_y
    behind, count = 0, 0
    for other in range(world.rules[s.map].reds + world.rules[s.map].blues):
        if s.alive[other] and s.team[other] == s.team[slot] and is_melee(s, world, other):
            count += 1
            along = s.position[other, 0] * left_x + s.position[other, 1] * left_y
            behind += along < own or (along == own and other < slot)
    return (2.0 * behind + 1.0) / count - 1.0
