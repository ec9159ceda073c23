"""Who shoots at whom and what it does: ranges, armour, bonuses, shields, splash, healing, cooldowns.

All attacks of a loop are noted first (`attack`) and fall together afterwards (`take_hits`): a unit that dies in a loop
has still shot in it, so no side shoots first.

* A hit takes ``damage``, and ``bonus`` where the target has an attribute of the bonus. Shields take it first, lessened
  by the rules' shield armour; what the shield does not hold is lessened by the target's armour. A hit is never below
  the rules' least damage.
* Ranges go from edge to edge: the distance of the centres less both radii.
* An attack may come when the cooldown is over. The next one follows after the weapon's cooldown and a whole number of
  loops drawn uniformly from the rules' deviation, one draw an attack from the stream of its side.
* A splash hits every opponent in its circle or line in full, the target among them. Who attacks by its own death hits
  around itself, and does so too when it is killed.
* A healer heals a wounded teammate as long as its energy lasts.
* Shields recover when a unit took no damage for a while, hit points and energy all the time.

``s.shot_at`` is the slot that a unit attacked or healed last in this decision (its own where it exploded), or `NOBODY`.
`world.units` are the rows of `palaestra.games.skirmish.ruleset.table`, ``s.kind`` the row of each slot.
"""

from __future__ import annotations

import math

from palaestra.games.skirmish.battle_records import RED
from palaestra.games.skirmish.sampling import lucky_integer
from palaestra.kernels.inlining import inlined

NOBODY = -1
CIRCLE, LINE = 1, 2
FIGHTER, HEALER, HARMLESS = 4, 2, 0
"""Priorities of targets; one more for who can shoot back."""
HIGHEST = FIGHTER + 1
SLACK = 1e-6
"""Who is so much too far away, cells, is so whatever the rounding."""


@inlined
def gap(s, world, i, j):
    """Distance between the edges of two units, in cells; below 0 where they overlap."""
    dx, dy = s.position[j, 0] - s.position[i, 0], s.position[j, 1] - s.position[i, 1]
    return math.sqrt(dx * dx + dy * dy) - world.units[s.kind[i]].radius - world.units[s.kind[j]].radius


def can_hit(s, world, i, j):
    """Whether the weapon of i aims at units such as j."""
    return (world.units[s.kind[i]].targets & world.units[s.kind[j]].planes) != 0


def can_heal(s, world, i, j):
    """Whether i heals units such as j: of its team, not itself, no healer, with the attribute that healing needs."""
    healer, patient = world.units[s.kind[i]], world.units[s.kind[j]]
    is_teammate = i != j and s.team[i] == s.team[j] and patient.heal_per_loop == 0.0
    return is_teammate and (healer.heal_mask & patient.attributes) != 0


def is_wounded(s, world, j):
    """Whether a unit lacks hit points."""
    return s.hit_points[j] < world.units[s.kind[j]].hit_points


@inlined
def acquire(s, world, scratch, i, scan):
    """Whom a unit turns to by itself within ``scan`` cells, edge to edge; `NOBODY` if there is none.

    The opponent of the highest priority: fighters, then healers, then the rest, and among them first who can shoot
    back. Of equals the nearest, of equally near ones the lower slot. For a healer the nearest wounded teammate.
    """
    rules, heals = world.rules[s.map], world.units[s.kind[i]].heal_per_loop > 0.0
    is_red = (s.team[i] == RED) == heals  # the side that it looks at
    first, last = (0, rules.reds) if is_red else (rules.reds, rules.reds + rules.blues)
    best, best_priority, best_gap = NOBODY, -1, 0.0
    x, y, limit = s.position[i, 0], s.position[i, 1], scan + world.units[s.kind[i]].radius + SLACK
    for j in range(first, last):
        if not s.alive[j]:
            continue
        dx, dy, reach = s.position[j, 0] - x, s.position[j, 1] - y, limit + world.units[s.kind[j]].radius
        if dx * dx + dy * dy > reach * reach:  # most are farther away: `gap`, in short
            continue
        away = gap(s, world, i, j)
        if away > scan or (best_priority == HIGHEST and away >= best_gap):
            continue
        priority = priority_of(s, world, i, j)
        if priority > best_priority or (best != NOBODY and priority == best_priority and away < best_gap):
            best, best_priority, best_gap = j, priority, away
    return best


@inlined
def priority_of(s, world, i, j):
    """How gladly a unit turns to another one by itself; -1 not at all."""
    other = world.units[s.kind[j]]
    if world.units[s.kind[i]].heal_per_loop > 0.0:
        return FIGHTER if can_heal(s, world, i, j) and is_wounded(s, world, j) else -1
    if not can_hit(s, world, i, j):
        return -1
    kind = FIGHTER if other.targets != 0 else HEALER if other.heal_per_loop > 0.0 else HARMLESS
    return kind + can_hit(s, world, j, i)


@inlined
def attack(s, world, scratch, i, j):
    """Unit i, whose cooldown is over, attacks j: noted here, done by `take_hits`."""
    rules = world.rules[s.map]
    scratch.aimed[i] = s.shot_at[i] = j
    deviation = rules.least_deviation + lucky_integer(s, s.team[i], rules.deviations)
    s.cooldown[i] = world.units[s.kind[i]].cooldown_loops + deviation


@inlined
def take_hits(s, world, scratch):
    """All noted attacks hit, in the order of the attackers' slots. Who has no hit points left is removed later."""
    slots = world.rules[s.map].reds + world.rules[s.map].blues
    for i in range(slots):
        scratch.exploded[i] = 0
    for i in range(slots):
        if not s.alive[i] or scratch.aimed[i] == NOBODY:
            continue
        j = scratch.aimed[i]
        unit = world.units[s.kind[i]]
        if unit.suicide:
            explode(s, world, scratch, i)
        elif unit.splash_shape != 0:
            hit_around(s, world, scratch, i, j)
        else:
            hit(s, world, scratch, i, j)
    has_more = scratch.suicides > 0
    while has_more:  # the killed explode, which may kill others that explode
        has_more = False
        for i in range(slots):
            if s.alive[i] and s.hit_points[i] <= 0.0 and world.units[s.kind[i]].suicide and not scratch.exploded[i]:
                explode(s, world, scratch, i)
                has_more = True


@inlined
def explode(s, world, scratch, i):
    """A unit attacks by its own death, once; what it had left counts as lost."""
    if not scratch.exploded[i]:
        scratch.exploded[i] = 1
        s.shot_at[i] = i
        hit_around(s, world, scratch, i, i)
        scratch.lost[i] += s.hit_points[i] + s.shield[i]
        s.hit_points[i] = s.shield[i] = 0.0


def hit_around(s, world, scratch, i, centre):
    """Unit i hits all opponents in the circle or line of its splash around a unit; those that its weapon aims at."""
    unit = world.units[s.kind[i]]
    dx, dy = s.position[centre, 0] - s.position[i, 0], s.position[centre, 1] - s.position[i, 1]
    way = math.sqrt(dx * dx + dy * dy)
    for k in range(scratch.count):
        j = scratch.living[k]
        if s.team[j] == s.team[i] or not can_hit(s, world, i, j):
            continue
        x, y = s.position[j, 0] - s.position[centre, 0], s.position[j, 1] - s.position[centre, 1]
        radius = world.units[s.kind[j]].radius
        is_hit = j == centre
        if unit.splash_shape == CIRCLE:
            is_hit |= math.sqrt(x * x + y * y) - radius <= unit.splash_radius
        elif way > 0.0:
            along, across = (x * dx + y * dy) / way, (y * dx - x * dy) / way
            is_hit |= abs(along) <= unit.splash_depth + radius and abs(across) <= unit.splash_radius + radius
        if is_hit:
            hit(s, world, scratch, i, j)


def hit(s, world, scratch, i, j):
    """All hits of one attack of i on j; what j loses is added to ``scratch.lost``."""
    unit, target, rules = world.units[s.kind[i]], world.units[s.kind[j]], world.rules[s.map]
    power = unit.damage + (unit.bonus if (unit.bonus_mask & target.attributes) != 0 else 0.0)
    for _ in range(unit.hits):
        if s.hit_points[j] <= 0.0:
            return
        through = power
        if s.shield[j] > 0.0:
            blow = max(power - rules.shield_armour, rules.minimum_damage)
            held = min(blow, s.shield[j])
            s.shield[j] -= held
            scratch.lost[j] += held
            through = blow - held
        if through > 0.0:
            taken = min(max(through - target.armour, rules.minimum_damage), s.hit_points[j])
            s.hit_points[j] -= taken
            scratch.lost[j] += taken
        s.calm[j] = 0


@inlined
def heal(s, world, scratch, i, j):
    """One loop of healing: hit points for energy, as far as both go."""
    healer, patient = world.units[s.kind[i]], world.units[s.kind[j]]
    wanted = patient.hit_points - s.hit_points[j] - scratch.healed[j]
    given = min(healer.heal_per_loop, wanted, s.energy[i] * healer.heal_per_energy)
    if given > 0.0:
        s.energy[i] -= given / healer.heal_per_energy
        scratch.healed[j] += given
        s.shot_at[i] = j


@inlined
def recover(s, world, scratch, i):
    """End of a loop for a living unit: healing arrives; hit points, energy and shield recover; cooldowns run."""
    unit, rules = world.units[s.kind[i]], world.rules[s.map]
    s.hit_points[i] = min(s.hit_points[i] + scratch.healed[i] + unit.regeneration_per_loop, unit.hit_points)
    s.energy[i] = min(s.energy[i] + unit.energy_per_loop, unit.energy_most)
    s.cooldown[i] = max(s.cooldown[i] - (unit.ability_attack if s.boosted[i] > 0.0 else 1.0), 0.0)
    s.boosted[i] = max(s.boosted[i] - 1.0, 0.0)
    s.pause[i] = max(s.pause[i] - 1.0, 0.0)
    if s.calm[i] >= rules.shield_delay_loops:
        s.shield[i] = min(s.shield[i] + rules.shield_per_loop, unit.shield)
    s.calm[i] += 1
