"""The rules of a battle: two sides fight in loops of simulation until one of them has no fighter left.

A decision lasts ``loops_per_decision`` loops of the ruleset. In each loop all living units act on what is there at its
beginning: they walk, attack or heal by their order. Then all attacks hit at once (`palaestra.games.skirmish.combat`),
all units move and make room for each other (`palaestra.games.skirmish.movement`), the dead leave, and the living
recover. At the end of a decision reinforcements arrive and units change sides, where the game has that
(`palaestra.games.skirmish.arrivals`).

* Red never does anything without an order. An order to attack or to heal leads there first; when its target dies, the
  unit stays where it is until the next decision. To turn the sight or to use an ability leaves the order before as it
  is; a jump ends it.
* Blue has one order more, to attack on its way (`palaestra.games.skirmish.orders.ATTACK_MOVE`): it goes where the map
  orders its side and turns to opponents within the rules' acquire range (`palaestra.games.skirmish.combat.acquire`).
* A match ends when a side has no unit left that can shoot, on the field or still to come; healers do not count. Both at
  once is a draw.
* Red is paid the hit points and shields that blue loses by attacks, also those of its units that attack by their own
  death, a bonus for each kill and one for the victory. SMAC (Samvelyan et al. 2019) does so too, but pays also for what
  blue's shields recover. Blue is paid nothing, or the opposite where both sides learn.
"""

from __future__ import annotations

import math

from palaestra.game import TERMINATED, apart, integer
from palaestra.games.skirmish.arrivals import bring, change_sides_late, collect_late, enter, fighters, leave
from palaestra.games.skirmish.battle_records import ARRIVED, BLUE, GO_TO, HUNT, NEVER, RED
from palaestra.games.skirmish.combat import NOBODY, acquire, attack, can_hit, gap, heal, is_wounded, recover, take_hits
from palaestra.games.skirmish.movement import go, is_open, next_point, push_apart
from palaestra.games.skirmish.observe import standing
from palaestra.games.skirmish.orders import (
    AHEAD,
    AIM,
    ATTACK_MOVE,
    BOOST,
    DIRECTIONS,
    JUMP,
    LOOK,
    NORTH,
    NOTHING,
    STOP,
    WEST,
    order_of,
    target_of,
)
from palaestra.games.skirmish.sampling import draw_abilities, draw_battle_late, draw_goal, draw_luck, place_anywhere
from palaestra.games.skirmish.smac_view import is_refused, smac_reward
from palaestra.kernels.inlining import inlined

WIPED_OUT = 2
EVERYWHERE = 1e9
HALF_TURN = DIRECTIONS // 2
JUMP_STEP = 0.5
"""A jump that would end in a wall is so many cells shorter, until it fits."""


def reset(s, world):
    """Both sides stand in formation, or where they are drawn; blue gets its order."""
    s.map = integer(s, len(world.rules))
    rules = world.rules[s.map]
    draw_luck(s)
    draw_goal(s, world)
    for slot in range(rules.reds + rules.blues):
        begin(s, world, slot)
    if rules.drawn:
        draw_battle_late(s, world)
        for slot in range(rules.reds + rules.blues):
            s.target[slot] = NOBODY
            enter(s, world, slot)
    s.changes_left = rules.changes
    s.next_change = rules.change_from + integer(s, rules.change_to - rules.change_from + 1)
    bring(s, world)


def begin(s, world, slot):
    """One slot as its opening begins it."""
    opening = world.openings[s.map, slot]
    s.kind[slot] = opening.kind
    s.position[slot, 0], s.position[slot, 1] = opening.x, opening.y
    s.order[slot], s.target[slot], s.shot_at[slot] = STOP, NOBODY, NOBODY
    s.facing[slot] = 0 if s.team[slot] == RED else HALF_TURN
    s.last_action[slot] = -1
    s.arrives[slot] = NEVER
    s.alive[slot] = 0
    draw_abilities(s, world, slot)
    if not opening.there:
        return
    if not (opening.x >= 0.0 or world.rules[s.map].drawn):
        place_anywhere(s, world, slot)
    s.arrives[slot] = opening.first + integer(s, opening.last - opening.first + 1)
    s.comes_with[slot] = opening.wave
    if opening.wave > 0:
        s.arrives[slot] = ARRIVED
    elif s.arrives[slot] > ARRIVED:
        s.to_come[s.team[slot]] += 1
    else:
        enter(s, world, slot)


def step(s, world, actions, rewards, scratch):
    """One decision: orders, then the loops of simulation in which all units act at once."""
    rules = world.rules[s.map]
    find_living(s, world, scratch)
    for k in range(scratch.count):
        slot = scratch.living[k]
        action = actions.red[slot].order if slot < rules.reds else actions.blue[slot - rules.reds].order
        take_order(s, world, slot, action)
    return play(s, world, rewards, scratch)


def step_alike(s, world, actions, rewards, scratch):
    """The same where both sides are alike."""
    find_living(s, world, scratch)
    for k in range(scratch.count):
        take_order(s, world, scratch.living[k], actions.unit[scratch.living[k]].order)
    return play(s, world, rewards, scratch)


@inlined
def find_living(s, world, scratch):
    """Lists the units on the field, and forgets what the last decision has noted."""
    rules = world.rules[s.map]
    scratch.count = scratch.suicides = 0
    scratch.killed[RED] = scratch.killed[BLUE] = scratch.prizes = 0
    for slot in range(rules.reds + rules.blues):
        scratch.lost[slot] = 0.0
        s.shot_at[slot] = NOBODY
        s.last_action[slot] = NOTHING
        if s.alive[slot] and world.units[s.kind[slot]].prize == 0:
            scratch.living[scratch.count] = slot
            scratch.count += 1
            scratch.suicides += world.units[s.kind[slot]].suicide


def play(s, world, rewards, scratch):
    """The loops of a decision, and what happens at its end."""
    rules = world.rules[s.map]
    for _ in range(rules.loops):
        play_loop(s, world, scratch)
    if rules.has_prizes:
        collect_late(s, world, scratch)
    if s.changes_left > 0 and s.steps >= s.next_change:
        change_sides_late(s, world)
    bring(s, world)
    return settle(s, world, rewards, scratch)


@inlined
def take_order(s, world, slot, action):
    """Changes what a unit does from now on."""
    rules, order = world.rules[s.map], order_of(s, world, slot, action)
    s.last_action[slot] = action
    is_strict = rules.compat and order == AIM and slot < rules.reds
    if is_strict and is_refused(s, world, slot, target_of(s, world, slot, action)):
        return
    if order >= LOOK:
        s.facing[slot] = order - LOOK
        return
    if order == BOOST:
        use_boost_late(s, world, slot)
        return
    if order >= JUMP:
        jump_late(s, world, slot, order - JUMP)
        order = STOP
    s.order[slot] = order
    if NORTH <= order <= WEST:
        s.target[slot] = NOBODY
        for axis in range(2):
            s.goal[slot, axis] = s.position[slot, axis] + rules.move_cells * AHEAD[order - NORTH, axis]
    elif order == AIM:
        s.target[slot] = target_of(s, world, slot, action)
    elif order != ATTACK_MOVE:
        s.target[slot] = NOBODY


def use_boost(s, world, slot):
    """Spends hit points and starts the boost; the mask has checked that it is legal."""
    unit = world.units[s.kind[slot]]
    s.hit_points[slot] -= unit.ability_hit_points
    s.boosted[slot], s.pause[slot] = unit.ability_loops, unit.ability_pause_loops


def jump(s, world, slot, direction):
    """Moves a unit by the length of its jump at once, or less far where there is no ground for it."""
    unit = world.units[s.kind[slot]]
    s.pause[slot] = unit.ability_pause_loops
    way = unit.ability_distance
    while way > 0.0:
        x, y = s.position[slot, 0] + way * AHEAD[direction, 0], s.position[slot, 1] + way * AHEAD[direction, 1]
        if is_open(world.terrain[s.map], standing(unit), x, y):
            s.position[slot, 0], s.position[slot, 1] = x, y
            return
        way -= JUMP_STEP


use_boost_late, jump_late = apart(use_boost), apart(jump)
"""Compiled for the battles with such abilities."""


@inlined
def play_loop(s, world, scratch):
    """One loop: all living units act on what they see, then all of it happens."""
    rules, terrain = world.rules[s.map], world.terrain[s.map]
    for k in range(scratch.count):
        slot = scratch.living[k]
        scratch.aimed[slot] = NOBODY
        scratch.healed[slot] = 0.0
        scratch.walks[slot] = 0
        for axis in range(2):
            scratch.wanted[slot, axis] = s.position[slot, axis]
    for slot in range(rules.reds + rules.blues):  # in this order, and not by place, weapons draw from their streams
        if s.alive[slot] and world.units[s.kind[slot]].prize == 0:
            act(s, world, scratch, slot)
            if scratch.walks[slot]:
                walk(s, world, scratch, slot)
            else:
                s.pace[slot] = 0.0
    take_hits(s, world, scratch)
    for k in range(scratch.count):
        slot = scratch.living[k]
        unit = world.units[s.kind[slot]]
        go(terrain, standing(unit), s.position[slot], scratch.wanted[slot, 0], scratch.wanted[slot, 1])
    if push_apart(s, world, scratch):
        for k in range(scratch.count):
            slot = scratch.living[k]
            go(terrain, standing(world.units[s.kind[slot]]), s.position[slot], scratch.x[k], scratch.y[k])
    end_loop(s, world, scratch)


@inlined
def end_loop(s, world, scratch):
    """The dead leave, the others recover."""
    kept = 0
    for k in range(scratch.count):
        slot = scratch.living[k]
        if s.hit_points[slot] <= 0.0:
            leave(s, slot)
            scratch.killed[s.team[slot]] += 1
            s.info.dead[s.team[slot]] += 1
            continue
        scratch.living[kept] = slot
        kept += 1
        recover(s, world, scratch, slot)
    scratch.count = kept


@inlined
def act(s, world, scratch, slot):
    """What one unit wants to do in this loop, by its order."""
    order, target = s.order[slot], int(s.target[slot])
    if order == ATTACK_MOVE:
        target = attack_move(s, world, scratch, slot)
    elif target != NOBODY:
        if not s.alive[target]:
            s.order[slot] = STOP
            s.target[slot] = target = NOBODY
    elif NORTH <= order <= WEST:
        head_for(scratch, slot, s.goal[slot, 0], s.goal[slot, 1])
    if target != NOBODY:
        engage(s, world, scratch, slot, target)


@inlined
def head_for(scratch, slot, x, y):
    """A unit wants to walk towards a point in this loop."""
    scratch.walks[slot] = 1
    scratch.point[0], scratch.point[1] = x, y


@inlined
def attack_move(s, world, scratch, slot):
    """Keeps a target that is in reach, else chooses anew; returns it. Walks on if there is none."""
    rules, target = world.rules[s.map], int(s.target[slot])
    reach = world.units[s.kind[slot]].range
    if target == NOBODY or not s.alive[target] or gap(s, world, slot, target) > reach or is_healed(s, world, slot):
        scan = EVERYWHERE if rules.order == HUNT else max(rules.acquire_range, reach)
        target = s.target[slot] = acquire(s, world, scratch, slot, scan)
    if target == NOBODY and rules.order == GO_TO:
        head_for(scratch, slot, s.goal_of_blue[0], s.goal_of_blue[1])
    return target


def is_healed(s, world, slot):
    """Whether a healer's patient needs it no more."""
    return world.units[s.kind[slot]].heal_per_loop > 0.0 and not is_wounded(s, world, s.target[slot])


@inlined
def engage(s, world, scratch, slot, target):
    """Attacks or heals a unit that is in range, or goes to it."""
    unit = world.units[s.kind[slot]]
    if gap(s, world, slot, target) > unit.range:
        head_for(scratch, slot, s.position[target, 0], s.position[target, 1])
    elif unit.heal_per_loop > 0.0:
        heal(s, world, scratch, slot, target)
    elif s.cooldown[slot] <= 0.0 and can_hit(s, world, slot, target):
        attack(s, world, scratch, slot, target)


@inlined
def walk(s, world, scratch, slot):
    """Wants to be one loop's way nearer to the point that it heads for."""
    unit, to_x, to_y = world.units[s.kind[slot]], scratch.point[0], scratch.point[1]
    next_point(world.terrain[s.map], world.ways[s.map], standing(unit), s.position[slot], to_x, to_y, scratch.point)
    dx, dy = scratch.point[0] - s.position[slot, 0], scratch.point[1] - s.position[slot, 1]
    way = math.sqrt(dx * dx + dy * dy)
    speed = unit.speed_per_loop * (unit.ability_speed if s.boosted[slot] > 0.0 else 1.0)
    s.pace[slot] = min(s.pace[slot] + unit.acceleration_per_loop, speed)
    share = 1.0 if way <= s.pace[slot] else s.pace[slot] / way
    scratch.wanted[slot, 0] = s.position[slot, 0] + share * dx
    scratch.wanted[slot, 1] = s.position[slot, 1] + share * dy


def settle(s, world, rewards, scratch):
    """Pays rewards; returns `TERMINATED` if the match is over, else 0."""
    rules = world.rules[s.map]
    lost_by_red, lost_by_blue = 0.0, 0.0
    for slot in range(rules.reds):
        lost_by_red += scratch.lost[slot]
    for slot in range(rules.reds, rules.reds + rules.blues):
        lost_by_blue += scratch.lost[slot]
    s.info.damage += lost_by_blue
    red_there, red_late = fighters(s, world, RED)
    blue_there, blue_late = fighters(s, world, BLUE)
    reds, blues = red_there + red_late, blue_there + blue_late
    is_over = (reds == 0 or blues == 0) and not rules.never_ends
    if is_over:
        s.info.end_reason = WIPED_OUT
        if reds != blues:
            s.info.winner = RED if reds > 0 else BLUE
        elif rules.compat and rules.smac.healers:
            s.info.winner = BLUE  # SMAC asks first whether red has only healers left
    red_won, blue_won = s.info.winner == RED, s.info.winner == BLUE
    if rules.compat:
        paid = smac_reward(s, world)
    elif rules.zero_sum:
        paid = rules.damage * (lost_by_blue - lost_by_red) + rules.kill * (scratch.killed[BLUE] - scratch.killed[RED])
        paid += rules.win * red_won - rules.win * blue_won
    else:
        paid = rules.damage * lost_by_blue + rules.kill * scratch.killed[BLUE] + rules.loss * scratch.killed[RED]
        paid += rules.prize * scratch.prizes + rules.win * red_won + rules.defeat * blue_won
    for slot in range(rules.reds):
        rewards[slot] = paid
    if rules.zero_sum:
        for slot in range(rules.reds, rules.reds + rules.blues):
            rewards[slot] = -paid
    return TERMINATED if is_over else 0
