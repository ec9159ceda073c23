"""Scripts of teams: whom each aircraft fights. How it fights is that of `palaestra.games.ucav.pilots`.

`plan` chooses a target for each member of a team, once in a decision; the scripts of one aircraft fly at it.
"""

from __future__ import annotations

import math

from palaestra.games.ucav.aim_macros import AIM_PERIODS, write_aim
from palaestra.games.ucav.aiming import wish_aim_earth
from palaestra.games.ucav.armament import is_good_shot
from palaestra.games.ucav.body import PERIOD_S, RED
from palaestra.games.ucav.geometry import antenna_train_angle_rad, aspect_angle_rad, distance_m, relative_position
from palaestra.games.ucav.macros import MACRO_S
from palaestra.games.ucav.missiles import GUIDED, may_launch
from palaestra.games.ucav.pilots import (
    EXPERT,
    FULL_SPEED_MPS,
    STRAIGHT,
    avoid_collision,
    avoid_ground,
    decide,
    fly_by_macro,
    fly_by_stick,
    stay_inside,
)
from palaestra.kernels.vectors import norm

SCRIPTS = ("straight", "solo", "sort", "drag", "cover")
HOLD, SOLO, SORT, DRAG, COVER = range(5)
NOBODY = -1
FAR_M = 1e9
"""Beyond every distance, m."""
HUNTED_M, POINTS_RAD, BEHIND_RAD = 2500.0, math.radians(45.0), math.radians(90.0)
"""Who hunts an aircraft: range, m, angle of the prey off its nose and angle off the tail of the prey, rad, at most."""
CLEAR_S = 2.0
"""How far ahead a pilot looks for collisions with those that it does not fight, s."""
SPACING_M, SLOWER_MPS = 400.0, 30.0
"""Range of a mate ahead, m, within which a pilot flies slower than it, by m/s."""
SAFE_M = 1200.0
"""Range, m, from which on the bait runs straight on: beyond the gun's."""


def plan_scratch(capacity: int) -> tuple[tuple, ...]:
    """Work fields of `plan`, for so many aircraft."""
    return (
        ("target", "i8", (capacity,)),  # whom a slot fights
        ("bait", "i8", (2,)),  # of each team
        ("taken", "u1", (capacity,)),  # members that fight an opponent
        ("served", "u1", (capacity,)),  # members that have a target
    )


def script_stick(s, world, slot, which, actions, scratch):
    """Decides and flies with the stick, once a period."""
    decide_in_team(s, world, slot, which, PERIOD_S, scratch)
    fly_by_stick(s, slot, actions.pilot[slot])


def script_macro(s, world, slot, which, actions, scratch):
    """Decides and asks the inner loop for it, twice a second."""
    decide_in_team(s, world, slot, which, MACRO_S, scratch)
    fly_by_macro(s, slot, actions)


def script_aim(s, world, slot, which, actions, scratch):
    """Decides, and says at whom and where the nose is to point, five times a second."""
    decide_in_team(s, world, slot, which, AIM_PERIODS * PERIOD_S, scratch)
    target, action = scratch.target[slot], actions.pilot[slot]
    write_aim(s.pilots[slot].wish, s.body[slot], s.body[target], action)
    action.target = number_of(s, world, slot, target)


def number_of(s, world, slot, target):
    """The alternative of a choice that stands for an opponent."""
    return 1 + target - (world.red if s.team[slot] == RED else 0)


def shot_at(s, world, slot, which, scratch):
    """The launch that a script chooses: at its target, unless a missile of the own team follows that one."""
    target = scratch.target[slot]
    good = which != HOLD and is_good_shot(s.body[slot], s.body[target])
    if not good or is_followed(s, target) or not may_launch(s, slot, target):
        return 0
    return number_of(s, world, slot, target)


def is_followed(s, target):
    """Whether a missile follows an aircraft."""
    count = 0
    for k in range(s.missiles.shape[0]):
        count += s.missiles[k].status == GUIDED and s.missiles[k].target == target
    return count > 0


def decide_in_team(s, world, slot, which, interval_s, scratch):
    """Writes the wish of a member: the bait runs from its hunter, all others fight their targets; none hits another."""
    target, m, me = scratch.target[slot], s.pilots[slot], s.body[slot]
    is_bait = scratch.bait[s.team[slot]] == slot and distance_m(me, s.body[target]) > SAFE_M
    decide(s, slot, target, STRAIGHT if which == HOLD or is_bait else EXPERT, interval_s, scratch)
    if is_bait:
        run_from(m, me, s.body[target])
        stay_inside(m, me, s.parameters.arena_radius_m)
    keep_clear(s, world, slot, target, m, interval_s)


def keep_clear(s, world, slot, target, m, interval_s):
    """Lets a wish avoid collisions with all but the target, whom it avoids already."""
    me = s.body[slot]
    for k in range(world.red + world.blue):
        if s.alive[k] and k != slot and k != target:
            if s.team[k] == s.team[slot]:
                fall_behind(m, me, s.body[k])
            if not m.avoiding:
                avoid_collision(m, me, s.body[k], CLEAR_S + interval_s)
    avoid_ground(m, me, s.parameters.floor_m)


def fall_behind(m, me, mate):
    """Lets the one behind of two mates that are close be the slower one: who hunts the same comes to the same place."""
    x, y, z = relative_position(me, mate)
    if x > 0.0 and norm(x, y, z) < SPACING_M:
        m.wish.speed_mps = min(m.wish.speed_mps, mate.true_airspeed_mps - SLOWER_MPS)


def run_from(m, me, hunter):
    """Wishes to fly away from another aircraft, level and fast."""
    away = math.atan2(me.east_m - hunter.east_m, me.north_m - hunter.north_m)
    wish_aim_earth(m.wish, me, away, 0.0, FULL_SPEED_MPS)


def plan(s, world, team, which, scratch):
    """Writes whom each member of a team fights, ``scratch.target``, and which one is the bait."""
    count = world.red + world.blue
    scratch.bait[team] = NOBODY
    if which in (SORT, DRAG, COVER):
        divide(s, team, count, scratch)
    else:
        for slot in range(count):
            if s.team[slot] == team and s.alive[slot]:
                scratch.target[slot] = nearest_opponent(s, slot, count)
    if which == DRAG:
        lure(s, team, count, scratch)
    elif which == COVER:
        guard(s, team, count, scratch)


def nearest_opponent(s, slot, count):
    """The nearest opponent in the match; a match that goes on has one."""
    best, nearest = FAR_M, NOBODY
    for k in range(count):
        if s.alive[k] and s.team[k] != s.team[slot]:
            distance = distance_m(s.body[slot], s.body[k])
            if distance < best:
                best, nearest = distance, k
    return nearest


def divide(s, team, count, scratch):
    """Gives the members targets: again and again the nearest pair of those whose opponent the fewest have taken."""
    for slot in range(count):
        scratch.taken[slot] = 0
        scratch.served[slot] = 0
    for _ in range(count):
        best, member, target = 2.0 * FAR_M, NOBODY, NOBODY
        for slot in range(count):
            if s.alive[slot] and s.team[slot] == team and not scratch.served[slot]:
                for k in range(count):
                    if s.alive[k] and s.team[k] != team:
                        cost = distance_m(s.body[slot], s.body[k]) + FAR_M / count * scratch.taken[k]
                        if cost < best:
                            best, member, target = cost, slot, k
        if member == NOBODY:
            return
        scratch.target[member] = target
        scratch.served[member] = 1
        scratch.taken[target] += 1


def lure(s, team, count, scratch):
    """Makes the bait of who is hunted from nearest by; the mate nearest to its hunter fights that one."""
    bait, best = NOBODY, HUNTED_M
    for slot in range(count):
        if s.alive[slot] and s.team[slot] == team:
            hunter = hunter_of(s, slot, count)
            if hunter != NOBODY and distance_m(s.body[slot], s.body[hunter]) < best:
                bait, best = slot, distance_m(s.body[slot], s.body[hunter])
                scratch.target[slot] = hunter
    if bait == NOBODY:
        return
    mate, best = NOBODY, FAR_M
    for slot in range(count):
        if s.alive[slot] and s.team[slot] == team and slot != bait:
            distance = distance_m(s.body[slot], s.body[scratch.target[bait]])
            if distance < best:
                mate, best = slot, distance
    if mate != NOBODY:
        scratch.bait[team] = bait
        scratch.target[mate] = scratch.target[bait]


def guard(s, team, count, scratch):
    """Makes pairs of the members by number: each of a pair fights whoever hunts the other, if somebody does."""
    first = NOBODY
    for slot in range(count):
        if s.alive[slot] and s.team[slot] == team:
            if first == NOBODY:
                first = slot
            else:
                cover(s, first, slot, count, scratch)
                cover(s, slot, first, count, scratch)
                first = NOBODY


def cover(s, slot, mate, count, scratch):
    """Makes whoever hunts a mate the target."""
    hunter = hunter_of(s, mate, count)
    if hunter != NOBODY:
        scratch.target[slot] = hunter


def hunter_of(s, slot, count):
    """The nearest opponent that is behind an aircraft and points at it, or `NOBODY`."""
    best, hunter = HUNTED_M, NOBODY
    for k in range(count):
        if s.alive[k] and s.team[k] != s.team[slot]:
            distance = distance_m(s.body[k], s.body[slot])
            if distance < best and is_behind(s.body[k], s.body[slot]):
                best, hunter = distance, k
    return hunter


def is_behind(hunter, prey):
    """Whether an aircraft is behind another one and points at it."""
    points = antenna_train_angle_rad(hunter, prey) < POINTS_RAD
    return points and aspect_angle_rad(hunter, prey) < BEHIND_RAD
