"""What units see of themselves and of each other, and what they may do now."""

from __future__ import annotations

import math

import numpy as np

from palaestra.core.fields import Field, Table
from palaestra.kernels.scalars import clip
from palaestra.skirmish.combat import can_heal, can_hit
from palaestra.skirmish.movement import AIR, CLIFF, GROUND, is_open
from palaestra.skirmish.ruleset import ATTRIBUTES

NOTHING, STOP, NORTH, SOUTH, EAST, WEST, ATTACK_MOVE = range(7)
"""Orders; red has no `ATTACK_MOVE`: its targets follow where blue has it."""
RED_TARGETS, BLUE_TARGETS = ATTACK_MOVE, ATTACK_MOVE + 1
AHEAD = np.array([[0, 1], [0, -1], [1, 0], [-1, 0]])
"""East and north of the orders from `NORTH` to `WEST`."""
KINDS = len(ATTRIBUTES)

OWN = (
    Field("hit_points", (), 0, 1, "1", "share of the most that the kind has"),
    Field("shield", (), 0, 1, "1", "likewise; 0 without a shield"),
    Field("energy", (), 0, 1, "1", "likewise; 0 without energy"),
    Field("cooldown", (), 0, 1, "1", "share of the longest time between two attacks that is left; 0 without a weapon"),
    Field("attributes", (KINDS,), 0, 1, "1", f"1 for what it is: {', '.join(ATTRIBUTES)}"),
    Field("free", (4,), 0, 1, "1", "1 where the order to move to the north, south, east, west is legal"),
)
SEEN = (
    Field("seen", (), 0, 1, "1", "1 for a living unit in sight; all else is 0 for the others"),
    Field("offset", (2,), -1, 1, "1", "how far east and north of oneself, shares of the sight"),
    Field("distance", (), 0, 1, "1", "from centre to centre, likewise"),
    Field("hit_points", (), 0, 1, "1", "share of the most that the kind has"),
    Field("shield", (), 0, 1, "1", "likewise; 0 without a shield"),
    Field("energy", (), 0, 1, "1", "likewise; 0 without energy"),
    Field("attributes", (KINDS,), 0, 1, "1", "as for oneself"),
    Field("range", (), 0, 1, "1", "of weapon or healing, share of the sight"),
    Field("can_be_target", (), 0, 1, "1", "1 where the order to attack or heal it is legal"),
)


def red_observation(own: int, others: int, capacity: int) -> tuple[Field | Table, ...]:
    """The tables of red's units: ``own`` of red and ``others`` of blue."""
    about = "teammates in the order of their names, oneself left out, then opponents in the order of theirs"
    return (*OWN, Table("units", own - 1 + others, SEEN, about, capacity))


BLUE_OBSERVATION = (
    Field("hit_points", (), 0, 1, "1", "share of the most that the kind has"),
    Field("shield", (), 0, 1, "1", "likewise; 0 without a shield"),
)


def share(amount, most):
    """A part of a whole; 0 of nothing."""
    return amount / most if most > 0.0 else 0.0


def standing(unit):
    """Bits of the terrain on which a unit may stand."""
    return AIR if unit.flying else CLIFF if unit.cliff_walker else GROUND


def is_free(s, world, slot, order):
    """Whether a unit may be ordered to move: the point half of the way ahead is open."""
    half = 0.5 * world.rules[0].move_cells
    x = s.position[slot, 0] + half * AHEAD[order - NORTH, 0]
    y = s.position[slot, 1] + half * AHEAD[order - NORTH, 1]
    unit = world.units[s.kind[slot]]
    return unit.speed_per_loop > 0.0 and is_open(world.terrain, standing(unit), x, y)


def is_target(s, world, slot, other):
    """Whether a unit may be ordered to attack or heal another: alive, near, and of the right kind.

    The distance is that of the centres, whatever the weapon's range; a healer is offered teammates, wounded or not.
    """
    if not (s.alive[slot] and s.alive[other]):
        return False
    dx, dy = s.position[other, 0] - s.position[slot, 0], s.position[other, 1] - s.position[slot, 1]
    reach = world.rules[0].shoot_range
    if dx * dx + dy * dy > reach * reach:
        return False
    if s.team[slot] == s.team[other]:
        return can_heal(s, world, slot, other)
    return can_hit(s, world, slot, other)


def observe(s, world, observations, scratch):
    """What every living unit sees."""
    rules = world.rules[0]
    for slot in range(rules.reds):
        if s.alive[slot]:
            write_own(s, world, observations.red[slot], slot)
            row = 0
            for other in range(rules.reds + rules.blues):
                if other != slot:
                    write_seen(s, world, observations.red[slot].units[row], slot, other)
                    row += 1
    for k in range(rules.blues):
        slot = rules.reds + k
        if s.alive[slot]:
            unit = world.units[s.kind[slot]]
            observations.blue[k].hit_points = share(s.hit_points[slot], unit.hit_points)
            observations.blue[k].shield = share(s.shield[slot], unit.shield)


def write_own(s, world, own, slot):
    """What a unit knows of itself."""
    unit, rules = world.units[s.kind[slot]], world.rules[0]
    own.hit_points = share(s.hit_points[slot], unit.hit_points)
    own.shield = share(s.shield[slot], unit.shield)
    own.energy = share(s.energy[slot], unit.energy_most)
    longest = unit.cooldown_loops + rules.least_deviation + rules.deviations - 1
    own.cooldown = share(s.cooldown[slot], longest) if unit.cooldown_loops > 0.0 else 0.0
    for k in range(KINDS):
        own.attributes[k] = (unit.attributes >> k) & 1
    for k in range(4):
        own.free[k] = is_free(s, world, slot, NORTH + k)


def write_seen(s, world, seen, slot, other):
    """What a unit knows of another one."""
    sight = world.rules[0].sight
    dx, dy = s.position[other, 0] - s.position[slot, 0], s.position[other, 1] - s.position[slot, 1]
    square = dx * dx + dy * dy
    if not s.alive[other] or square >= sight * sight:
        return
    unit = world.units[s.kind[other]]
    seen.seen = 1.0
    seen.offset[0], seen.offset[1] = dx / sight, dy / sight
    seen.distance = math.sqrt(square) / sight
    seen.hit_points = share(s.hit_points[other], unit.hit_points)
    seen.shield = share(s.shield[other], unit.shield)
    seen.energy = share(s.energy[other], unit.energy_most)
    for k in range(KINDS):
        seen.attributes[k] = (unit.attributes >> k) & 1
    seen.range = clip(unit.range / sight, 0.0, 1.0)
    seen.can_be_target = is_target(s, world, slot, other)


def legal(s, world, mask):
    """What every living unit may do; the dead do nothing."""
    reds = world.rules[0].reds
    for k in range(reds):
        write_legal(s, world, k, mask.red[k].order, RED_TARGETS)
    for k in range(world.rules[0].blues):
        write_legal(s, world, reds + k, mask.blue[k].order, BLUE_TARGETS)


def write_legal(s, world, slot, allowed, first_target):
    """What one unit may do; its targets begin at ``first_target``, the orders of its side end before."""
    if not s.alive[slot]:
        allowed[NOTHING] = 1
        return
    rules = world.rules[0]
    allowed[STOP] = 1
    for order in range(NORTH, WEST + 1):
        allowed[order] = is_free(s, world, slot, order)
    if first_target > ATTACK_MOVE:
        allowed[ATTACK_MOVE] = 1
    aims_at_red = (slot < rules.reds) == (world.units[s.kind[slot]].heal_per_loop > 0.0)
    first, count = (0, rules.reds) if aims_at_red else (rules.reds, rules.blues)
    for k in range(count):
        allowed[first_target + k] = is_target(s, world, slot, first + k)
