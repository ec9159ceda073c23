"""Reinforcements, changes of sides and prizes: all of it at the end of a decision.

* A unit with a decision of arrival comes when it is due, or as soon as its side has no unit on the field.
* A wave comes when blue has no fighter left on the field and none comes by time; red's part of it comes along.
* A unit that changes sides leaves its slot and continues in a free slot of the other side, with all that it has: hit
  points, place, cooldown. It is drawn among the fighters of both sides that leave a fighter behind.
* A prize is collected by any red unit that touches it.
"""

from __future__ import annotations

from palaestra.game import apart, integer
from palaestra.games.skirmish.battle_records import ARRIVED, BLUE, NEVER, RED
from palaestra.games.skirmish.combat import NOBODY, gap
from palaestra.games.skirmish.orders import STOP
from palaestra.games.skirmish.sampling import place_anywhere

MOVES = 1
OUTSIDE = -100.0
"""Where collected prizes are until all are collected, and slots whose unit has changed sides, cells."""


def is_due(s, slot):
    """Whether a unit comes by time, now or later."""
    return s.arrives[slot] > ARRIVED


def enter(s, world, slot):
    """A unit comes to the field with all that its kind has."""
    unit = world.units[s.kind[slot]]
    s.arrives[slot] = ARRIVED
    s.comes_with[slot] = 0
    s.alive[slot] = 1
    s.acting[slot] = unit.prize == 0
    s.hit_points[slot], s.shield[slot], s.energy[slot] = unit.hit_points, unit.shield, unit.energy_start
    s.life_before[slot] = unit.hit_points + unit.shield
    s.calm[slot] = int(world.rules[s.map].shield_delay_loops)


def fighters(s, world, team):
    """Units of a side that can shoot: on the field, and still to come by time."""
    rules = world.rules[s.map]
    first, last = (0, rules.reds) if team == RED else (rules.reds, rules.reds + rules.blues)
    there, late = 0, 0
    for slot in range(first, last):
        if world.units[s.kind[slot]].targets != 0:
            there += s.alive[slot]
            late += is_due(s, slot)
    return there, late


def bring_due(s, world):
    """Units whose decision has come."""
    rules = world.rules[s.map]
    for slot in range(rules.reds + rules.blues):
        if is_due(s, slot) and s.steps >= s.arrives[slot]:
            enter(s, world, slot)
            s.to_come[0 if slot < rules.reds else 1] -= 1


def bring_next(s, world, team):
    """The next units of a side that has none on the field."""
    rules = world.rules[s.map]
    first, last = (0, rules.reds) if team == RED else (rules.reds, rules.reds + rules.blues)
    soonest = 0
    for slot in range(first, last):
        if s.alive[slot] and world.units[s.kind[slot]].prize == 0:
            return
        if is_due(s, slot) and (soonest == 0 or s.arrives[slot] < soonest):
            soonest = s.arrives[slot]
    for slot in range(first, last):
        if is_due(s, slot) and s.arrives[slot] == soonest:
            enter(s, world, slot)
            s.to_come[team] -= 1


def bring_wave(s, world):
    """The next wave, if blue is beaten; after one without fighters of blue the next one comes along."""
    rules = world.rules[s.map]
    while s.wave < rules.waves:
        there, late = fighters(s, world, BLUE)
        if there + late > 0:
            return
        s.wave += 1
        for slot in range(rules.reds + rules.blues):
            if s.comes_with[slot] == s.wave:
                enter(s, world, slot)


def bring(s, world):
    """All that comes at the end of a decision, or at the start of a match."""
    if s.to_come[RED] + s.to_come[BLUE] > 0 or s.wave < world.rules[s.map].waves:
        bring_late(s, world)


def bring_all(s, world):
    """Who is due, the next ones of a side without anybody, and the next wave."""
    if s.to_come[RED] + s.to_come[BLUE] > 0:
        bring_due(s, world)
        for team in (RED, BLUE):
            if s.to_come[team] > 0:
                bring_next(s, world, team)
    bring_wave(s, world)


def may_change(s, world, slot):
    """Whether a unit may change sides: a living fighter, not the last one of its side."""
    if not s.alive[slot] or world.units[s.kind[slot]].targets == 0:
        return False
    there, _ = fighters(s, world, s.team[slot])
    return there > 1 and free_slot(s, world, 1 - s.team[slot]) != NOBODY


def free_slot(s, world, team):
    """A slot of a side that had no unit in this match, or `NOBODY`."""
    rules = world.rules[s.map]
    first, last = (0, rules.reds) if team == RED else (rules.reds, rules.reds + rules.blues)
    for slot in range(first, last):
        if s.arrives[slot] == NEVER:
            return slot
    return NOBODY


def change_sides(s, world):
    """One unit changes sides; the draw is made whether or not there is one."""
    rules = world.rules[s.map]
    s.changes_left -= 1
    s.next_change = s.steps + rules.change_from + integer(s, rules.change_to - rules.change_from + 1)
    slots, count = rules.reds + rules.blues, 0
    for slot in range(slots):
        count += may_change(s, world, slot)
    left = integer(s, max(count, 1))
    for slot in range(slots):
        if may_change(s, world, slot):
            if left == 0:
                hand_over(s, world, slot, free_slot(s, world, 1 - s.team[slot]))
                return
            left -= 1


def hand_over(s, world, old, new):
    """The unit of a slot continues in another one, without an order."""
    s.kind[new] = s.kind[old]
    enter(s, world, new)
    s.hit_points[new], s.shield[new], s.energy[new] = s.hit_points[old], s.shield[old], s.energy[old]
    s.cooldown[new], s.boosted[new], s.pause[new] = s.cooldown[old], s.boosted[old], s.pause[old]
    s.calm[new], s.facing[new] = s.calm[old], s.facing[old]
    for axis in range(2):
        s.position[new, axis] = s.position[old, axis]
        s.position[old, axis] = OUTSIDE
    s.order[new], s.target[new] = STOP, NOBODY
    s.info.changed[s.team[old]] += 1
    leave(s, old)


def leave(s, slot):
    """A unit is no longer on the field."""
    s.alive[slot] = 0
    s.hit_points[slot] = s.shield[slot] = s.energy[slot] = 0.0


def collect(s, world, scratch):
    """Prizes that red touches."""
    rules = world.rules[s.map]
    scratch.prizes, left, kept = 0, 0, 0
    for slot in range(rules.reds, rules.reds + rules.blues):
        prize = world.units[s.kind[slot]].prize
        if not s.alive[slot] or prize == 0 or s.taken[slot]:
            kept += (s.alive[slot] != 0) & (prize > MOVES)
            continue
        if is_touched(s, world, slot):
            scratch.prizes += 1
            if prize == MOVES:
                place_anywhere(s, world, slot)
            else:
                s.taken[slot] = 1
                s.position[slot, 0] = s.position[slot, 1] = OUTSIDE
                kept += 1
        elif prize > MOVES:
            left += 1
    s.info.prizes += scratch.prizes
    if kept > 0 and left == 0:
        for slot in range(rules.reds, rules.reds + rules.blues):
            if s.taken[slot]:
                s.taken[slot] = 0
                place_anywhere(s, world, slot)


def is_touched(s, world, prize):
    """Whether a red unit touches a prize."""
    touches = False
    for slot in range(world.rules[s.map].reds):
        touches |= s.alive[slot] != 0 and gap(s, world, slot, prize) <= 0.0
    return touches


bring_late, change_sides_late, collect_late = apart(bring_all), apart(change_sides), apart(collect)
"""Compiled for the battles in which that happens."""
