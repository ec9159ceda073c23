"""Scripts of teams: whom each aircraft fights. How it fights is that of `palaestra.games.ucav.pilots`.

`plan` chooses a target for each member of a team, once in a decision; the scripts of one aircraft fly at it.
"""

from __future__ import annotations

import math

from palaestra.games.ucav.aiming import wish_aim_earth
from palaestra.games.ucav.body import PERIOD_S, RED
from palaestra.games.ucav.geometry import antenna_train_angle_rad, distance_m
from palaestra.games.ucav.macros import MACRO_S
from palaestra.games.ucav.missiles import GUIDED, may_launch
from palaestra.games.ucav.pilots import (
    EXPERT,
    FULL_SPEED_MPS,
    STRAIGHT,
    avoid_ground,
    decide,
    fly_by_macro,
    fly_by_stick,
    stay_inside,
)

SCRIPTS = ("straight", "solo", "sort", "drag", "cover")
HOLD, SOLO, SORT, DRAG, COVER = range(5)
NOBODY = -1
FAR_M = 1e9
"""Beyond every distance, m."""
THREAT_M = 3000.0
"""Range, m, at which an angle off the nose weighs e times less when it is asked who threatens an aircraft."""


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
    decide_in_team(s, slot, which, PERIOD_S, scratch)
    fly_by_stick(s, slot, actions)


def script_macro(s, world, slot, which, actions, scratch):
    """Decides and asks the inner loop for it, twice a second."""
    decide_in_team(s, slot, which, MACRO_S, scratch)
    fly_by_macro(s, slot, actions)


def script_stick_missiles(s, world, slot, which, actions, scratch):
    """The same with missiles."""
    script_stick(s, world, slot, which, actions, scratch)
    actions.pilot[slot].launch = shot_at(s, world, slot, which, scratch)


def script_macro_missiles(s, world, slot, which, actions, scratch):
    """The same with missiles."""
    script_macro(s, world, slot, which, actions, scratch)
    actions.pilot[slot].launch = shot_at(s, world, slot, which, scratch)


def shot_at(s, world, slot, which, scratch):
    """The launch that a script chooses: at its target, unless a missile of the own team follows that one."""
    target = scratch.target[slot]
    if which == HOLD or is_followed(s, target) or not may_launch(s, slot, target):
        return 0
    return 1 + target - (world.red if s.team[slot] == RED else 0)


def is_followed(s, target):
    """Whether a missile follows an aircraft."""
    count = 0
    for k in range(s.missiles.shape[0]):
        count += s.missiles[k].status == GUIDED and s.missiles[k].target == target
    return count > 0


def decide_in_team(s, slot, which, interval_s, scratch):
    """Writes the wish of a member: `drag`'s bait runs, all others fight their targets."""
    target = scratch.target[slot]
    if which == DRAG and scratch.bait[s.team[slot]] == slot:
        decide(s, slot, target, STRAIGHT, interval_s, scratch)
        run_from(s, slot, target)
    else:
        decide(s, slot, target, STRAIGHT if which == HOLD else EXPERT, interval_s, scratch)


def run_from(s, slot, hunter):
    """Wishes to fly away from another aircraft, level and fast."""
    m, me, other = s.pilots[slot], s.body[slot], s.body[hunter]
    away = math.atan2(me.east_m - other.east_m, me.north_m - other.north_m)
    wish_aim_earth(m.wish, me, away, 0.0, FULL_SPEED_MPS)
    stay_inside(m, me, s.parameters.arena_radius_m)
    avoid_ground(m, me, s.parameters.floor_m)


def plan(s, world, team, which, scratch):
    """Writes whom each member of a team fights, ``scratch.target``, and of `drag` who the bait is."""
    count = world.red + world.blue
    for slot in range(count):
        if s.team[slot] == team and s.alive[slot]:
            scratch.target[slot] = nearest_opponent(s, slot, count)
    if which == SORT:
        divide(s, team, count, scratch)
    elif which == DRAG:
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
    """Chooses the bait, who is nearest to an opponent, and lets the others fight that opponent. One alone fights."""
    bait, best, members = NOBODY, FAR_M, 0
    for slot in range(count):
        if s.alive[slot] and s.team[slot] == team:
            members += 1
            distance = distance_m(s.body[slot], s.body[scratch.target[slot]])
            if distance < best:
                bait, best = slot, distance
    scratch.bait[team] = bait if members > 1 else NOBODY
    for slot in range(count):
        if s.alive[slot] and s.team[slot] == team:
            scratch.target[slot] = scratch.target[bait]


def guard(s, team, count, scratch):
    """Lets all but the first of the team fight whoever threatens the first most."""
    leader = NOBODY
    for slot in range(count):
        if s.alive[slot] and s.team[slot] == team:
            if leader == NOBODY:
                leader = slot
            else:
                scratch.target[slot] = most_threatening(s, leader, count)


def most_threatening(s, slot, count):
    """The opponent whose nose is nearest to an aircraft, the nearer the worse."""
    best, worst = FAR_M, NOBODY
    for k in range(count):
        if s.alive[k] and s.team[k] != s.team[slot]:
            threat = antenna_train_angle_rad(s.body[k], s.body[slot])
            threat += distance_m(s.body[k], s.body[slot]) / THREAT_M
            if threat < best:
                best, worst = threat, k
    return worst
