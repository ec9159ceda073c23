"""What units see of themselves and of each other, and what they may do now."""

from __future__ import annotations

import math

from palaestra.game import Field, Table
from palaestra.games.skirmish.battle_records import BLUE
from palaestra.games.skirmish.combat import can_heal, can_hit
from palaestra.games.skirmish.movement import AIR, CLIFF, GROUND, is_open
from palaestra.games.skirmish.orders import (
    AHEAD,
    BOOST,
    FACING,
    LOOK,
    NORTH,
    NOTHING,
    STOP,
    WEST,
    first_target,
    order_of,
    targets_of,
)
from palaestra.games.skirmish.ruleset import ABILITIES, ATTRIBUTES
from palaestra.kernels.inlining import inlined
from palaestra.kernels.scalars import clip

KINDS = len(ATTRIBUTES)
CAN_BOOST, CAN_JUMP = 1, 2
"""Numbers of `palaestra.games.skirmish.ruleset.ABILITIES`."""

OWN = (
    Field("hit_points", (), 0, 1, "1", "share of the most that the kind has"),
    Field("shield", (), 0, 1, "1", "likewise; 0 without a shield"),
    Field("energy", (), 0, 1, "1", "likewise; 0 without energy"),
    Field("cooldown", (), 0, 1, "1", "share of the longest time between two attacks that is left; 0 without a weapon"),
    Field("attributes", (KINDS,), 0, 1, "1", f"1 for what it is: {', '.join(ATTRIBUTES)}", parts=ATTRIBUTES),
    Field(
        "free",
        (4,),
        0,
        1,
        "1",
        "1 where the order to move to the north, south, east, west is legal",
        parts=("north", "south", "east", "west"),
    ),
    Field(
        "ability",
        (len(ABILITIES),),
        0,
        1,
        "1",
        f"1 for the ability that it has now: {', '.join(ABILITIES)}",
        parts=ABILITIES,
    ),
    Field("ability_pause", (), 0, 1, "1", "share of the time until it may be used again"),
    Field("boosted", (), 0, 1, "1", "share of a boost that is left"),
    Field(
        "facing",
        (2,),
        -1,
        1,
        "1",
        "east and north of the direction of sight; 0 for who sees all around",
        parts=("east", "north"),
    ),
)
SEEN = (
    Field("seen", (), 0, 1, "1", "1 for a living unit in sight; all else is 0 for the others"),
    Field(
        "offset", (2,), -1, 1, "1", "how far east and north of oneself, shares of the sight", parts=("east", "north")
    ),
    Field("distance", (), 0, 1, "1", "from centre to centre, likewise"),
    Field("hit_points", (), 0, 1, "1", "share of the most that the kind has"),
    Field("shield", (), 0, 1, "1", "likewise; 0 without a shield"),
    Field("energy", (), 0, 1, "1", "likewise; 0 without energy"),
    Field("attributes", (KINDS,), 0, 1, "1", "as for oneself; none for a prize", parts=ATTRIBUTES),
    Field("range", (), 0, 1, "1", "of weapon or healing, share of the sight"),
    Field("can_be_target", (), 0, 1, "1", "1 where the order to attack or heal it is legal"),
)
STATE = 7 + KINDS
"""Numbers of each agent in the global state."""


def full_observation(own: int, others: int, capacity: int) -> tuple[Field | Table, ...]:
    """The tables of units that learn: ``own`` of their side and ``others`` of the other one."""
    about = "teammates in the order of their names, oneself left out, then opponents in the order of theirs"
    return (*OWN, Table("units", own - 1 + others, SEEN, about, capacity))


SMALL_OBSERVATION = (
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
    half = 0.5 * world.rules[s.map].move_cells
    x = s.position[slot, 0] + half * AHEAD[order - NORTH, 0]
    y = s.position[slot, 1] + half * AHEAD[order - NORTH, 1]
    unit, terrain = world.units[s.kind[slot]], world.terrain[s.map]
    if world.rules[s.map].compat:  # SMAC asks for ground, for fliers too, and rounds towards 0: -0.9 is in cell 0
        return unit.speed_per_loop > 0.0 and is_open(terrain, GROUND, int(x) + 0.5, int(y) + 0.5)
    return unit.speed_per_loop > 0.0 and is_open(terrain, standing(unit), x, y)


def sight_of(s, world, slot):
    """How far a unit sees, cells."""
    common = world.rules[s.map].sight
    return common if common > 0.0 else world.units[s.kind[slot]].sight


def reach_of(s, world, slot):
    """How far away a target may be ordered, from centre to centre, cells."""
    rules = world.rules[s.map]
    return rules.shoot_range if rules.shoot_range > 0.0 else max(world.units[s.kind[slot]].range, rules.least_range)


@inlined
def is_in_view(s, world, slot, other):
    """Whether a unit looks towards another: always, or where that lies within half the angle of sight."""
    view = world.rules[s.map].half_view
    if view < -1.0 or s.team[slot] == BLUE:
        return True
    dx, dy = s.position[other, 0] - s.position[slot, 0], s.position[other, 1] - s.position[slot, 1]
    ahead = dx * FACING[s.facing[slot], 0] + dy * FACING[s.facing[slot], 1]
    return ahead >= view * math.sqrt(dx * dx + dy * dy)


@inlined
def is_near(s, world, slot, other):
    """Whether two units live and the one may be ordered to aim so far, from centre to centre."""
    if not (s.alive[slot] and s.alive[other]):
        return False
    dx, dy = s.position[other, 0] - s.position[slot, 0], s.position[other, 1] - s.position[slot, 1]
    reach = reach_of(s, world, slot)
    return dx * dx + dy * dy <= reach * reach


def is_target(s, world, slot, other):
    """Whether a unit may be ordered to attack or heal another: alive, near, in view, and of the right kind.

    The distance is that of the centres, whatever the weapon's range; a healer is offered teammates, wounded or not.
    """
    if not (is_near(s, world, slot, other) and is_in_view(s, world, slot, other)):
        return False
    return suits(s, world, slot, other)


def suits(s, world, slot, other):
    """Whether another unit is of the kind that a unit attacks or heals."""
    if s.team[slot] == s.team[other]:
        return can_heal(s, world, slot, other)
    return can_hit(s, world, slot, other)


def is_able(s, world, slot):
    """Whether a unit has its ability now, ready or not."""
    return world.units[s.kind[slot]].ability != 0 and s.able[slot, 0] <= s.steps < s.able[slot, 1]


def may_use(s, world, slot, order):
    """Whether a unit may use its ability: has it, of the order's kind, after the pause, and survives the cost."""
    unit = world.units[s.kind[slot]]
    kind = CAN_BOOST if order == BOOST else CAN_JUMP
    is_ready = s.pause[slot] <= 0.0 and s.hit_points[slot] > unit.ability_hit_points
    return unit.ability == kind and is_ready and is_able(s, world, slot)


def observe(s, world, observations, scratch):
    """What every living unit sees, where blue only follows scripts."""
    rules = world.rules[s.map]
    describe(s, world, scratch)
    for slot in range(rules.reds):
        if s.alive[slot]:
            write_own(s, world, observations.red[slot], slot)
            write_units(s, world, observations.red[slot].units, scratch, slot)
    observe_blue(s, world, observations)


def observe_blue(s, world, observations):
    """What every living unit of blue sees, where it only follows scripts."""
    rules = world.rules[s.map]
    for k in range(rules.blues):
        slot = rules.reds + k
        if s.alive[slot]:
            unit = world.units[s.kind[slot]]
            observations.blue[k].hit_points = share(s.hit_points[slot], unit.hit_points)
            observations.blue[k].shield = share(s.shield[slot], unit.shield)


def observe_alike(s, world, observations, scratch):
    """What every living unit sees, where both sides are alike."""
    rules = world.rules[s.map]
    describe(s, world, scratch)
    for slot in range(rules.reds + rules.blues):
        if s.alive[slot]:
            write_own(s, world, observations.unit[slot], slot)
            write_units(s, world, observations.unit[slot].units, scratch, slot)


@inlined
def describe(s, world, scratch):
    """Notes what all who see a unit see alike, once for all of them."""
    rules = world.rules[s.map]
    for slot in range(rules.reds + rules.blues):
        if s.alive[slot]:
            unit, look = world.units[s.kind[slot]], scratch.looks[slot]
            look.hit_points = share(s.hit_points[slot], unit.hit_points)
            look.shield = share(s.shield[slot], unit.shield)
            look.energy = share(s.energy[slot], unit.energy_most)
            for k in range(KINDS):
                look.attributes[k] = (unit.attributes >> k) & 1


@inlined
def write_own(s, world, own, slot):
    """What a unit knows of itself."""
    unit, rules = world.units[s.kind[slot]], world.rules[s.map]
    own.hit_points = share(s.hit_points[slot], unit.hit_points)
    own.shield = share(s.shield[slot], unit.shield)
    own.energy = share(s.energy[slot], unit.energy_most)
    own.cooldown = cooldown_share(s, world, slot)
    for k in range(KINDS):
        own.attributes[k] = (unit.attributes >> k) & 1
    for k in range(4):
        own.free[k] = is_free(s, world, slot, order_of(s, world, slot, NORTH + k))
    if rules.abilities != 0 and is_able(s, world, slot):
        own.ability[unit.ability - 1] = 1.0
    own.ability_pause = share(s.pause[slot], unit.ability_pause_loops)
    own.boosted = share(s.boosted[slot], unit.ability_loops)
    if rules.half_view >= -1.0:
        own.facing[0], own.facing[1] = FACING[s.facing[slot], 0], FACING[s.facing[slot], 1]


def cooldown_share(s, world, slot):
    """Share of the longest time between two attacks that is left."""
    unit, rules = world.units[s.kind[slot]], world.rules[s.map]
    longest = unit.cooldown_loops + rules.least_deviation + rules.deviations - 1
    return share(s.cooldown[slot], longest) if unit.cooldown_loops > 0.0 else 0.0


@inlined
def write_units(s, world, table, scratch, slot):
    """What a unit knows of all others: a row each, teammates first.

    What does not change from row to row is read before: a compiler cannot know that the rows which are written do not
    lie where it is read from.
    """
    rules, team, x, y = world.rules[s.map], s.team[slot], s.position[slot, 0], s.position[slot, 1]
    slots, first = rules.reds + rules.blues, rules.reds if team == BLUE else 0
    sight, reach = sight_of(s, world, slot), reach_of(s, world, slot)
    far, near = sight * sight, reach * reach
    sees_around, is_flipped = rules.half_view < -1.0 or team == BLUE, rules.flips and team == BLUE
    row = 0
    for k in range(slots):
        other = first + k if first + k < slots else first + k - slots
        if other == slot:
            continue
        seen, row = table[row], row + 1
        dx, dy = s.position[other, 0] - x, s.position[other, 1] - y
        square = dx * dx + dy * dy
        if square >= far or not s.alive[other] or not (sees_around or is_in_view(s, world, slot, other)):
            continue
        seen.seen = 1.0
        seen.offset[0], seen.offset[1] = (-dx if is_flipped else dx) / sight, dy / sight
        seen.distance = math.sqrt(square) / sight
        look = scratch.looks[other]
        seen.hit_points, seen.shield, seen.energy = look.hit_points, look.shield, look.energy
        for kind in range(KINDS):
            seen.attributes[kind] = look.attributes[kind]
        seen.range = clip(world.units[s.kind[other]].range / sight, 0.0, 1.0)
        seen.can_be_target = square <= near and suits(s, world, slot, other)


def legal(s, world, mask):
    """What every living unit may do; the dead do nothing."""
    rules = world.rules[s.map]
    for k in range(rules.reds):
        write_legal(s, world, k, mask.red[k].order)
    for k in range(rules.blues):
        write_legal(s, world, rules.reds + k, mask.blue[k].order)


def legal_alike(s, world, mask):
    """The same where both sides are alike."""
    rules = world.rules[s.map]
    for slot in range(rules.reds + rules.blues):
        write_legal(s, world, slot, mask.unit[slot].order)


@inlined
def write_legal(s, world, slot, allowed):
    """What one unit may do."""
    if not s.alive[slot]:
        allowed[NOTHING] = 1
        return
    beginning = world.rules[s.map].first_target[s.team[slot]]
    allowed[STOP] = 1
    for action in range(NORTH, beginning):
        allowed[action] = is_allowed(s, world, slot, order_of(s, world, slot, action))
    first, reach = first_target(s, world, slot), reach_of(s, world, slot)
    x, y = s.position[slot, 0], s.position[slot, 1]
    for k in range(targets_of(s, world, slot)):
        dx, dy = s.position[first + k, 0] - x, s.position[first + k, 1] - y
        if s.alive[first + k] and dx * dx + dy * dy <= reach * reach:  # most are farther away: `is_target`, in short
            is_legal = is_in_view(s, world, slot, first + k) and suits(s, world, slot, first + k)
            allowed[beginning + k] = is_legal


def is_allowed(s, world, slot, order):
    """Whether a unit may get an order that has no target."""
    if NORTH <= order <= WEST:
        return is_free(s, world, slot, order)
    if BOOST <= order < LOOK:
        return may_use(s, world, slot, order)
    return True


def global_state(s, world, out):
    """Everything about all units, for centralised critics; `STATE` numbers each, all 0 for the absent.

    1 for a living unit, east and north of the map's middle as shares of its half, hit points, shield, energy,
    cooldown, attributes.
    """
    rules = world.rules[s.map]
    for slot in range(rules.reds + rules.blues):
        unit, first = world.units[s.kind[slot]], STATE * slot
        if not s.alive[slot]:
            for k in range(STATE):
                out[first + k] = 0.0
            continue
        out[first] = 1.0
        out[first + 1] = clip(2.0 * s.position[slot, 0] / rules.width - 1.0, -1.0, 1.0)
        out[first + 2] = clip(2.0 * s.position[slot, 1] / rules.height - 1.0, -1.0, 1.0)
        out[first + 3] = share(s.hit_points[slot], unit.hit_points)
        out[first + 4] = share(s.shield[slot], unit.shield)
        out[first + 5] = share(s.energy[slot], unit.energy_most)
        out[first + 6] = cooldown_share(s, world, slot)
        for k in range(KINDS):
            out[first + 7 + k] = (unit.attributes >> k) & 1
