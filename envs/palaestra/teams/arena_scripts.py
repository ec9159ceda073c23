"""Scripts of `palaestra.teams.arena_duel`."""

from __future__ import annotations

import math

from palaestra.teams.arena_moves import ADVANCE, COVER, FLANK, HOLD, foe_slot, look_around

FOCUS, SHELTER, FLANKER = range(3)
"""Numbers of the scripts."""
STAND_M = 2.2
"""Distance at which a robot stands and shoots instead of driving on."""
HIT_POINTS_PER_M = 100.0
"""What a foe's distance weighs against its hit points in the choice of a target."""


def script(s, world, slot, which, actions, scratch):
    """Both robots of a team take the same foe; how they go for it is the script's."""
    look_around(s, world.sight, scratch)
    k = weaker_foe(s, slot)
    target = foe_slot(slot, k)
    is_seen = scratch.sees[slot, target]
    actions.robot[slot].target = k
    is_outgunned = count_seen_by(slot, scratch) == 2 and s.hit_points[slot] < s.hit_points[target]
    if which == SHELTER and is_outgunned:
        move = COVER
    elif is_seen and distance_m(s, slot, target) < STAND_M:
        move = HOLD
    else:
        move = FLANK if which == FLANKER else ADVANCE
    actions.robot[slot].move = move


def distance_m(s, slot, other):
    """Between two robots."""
    dx, dz = s.position_m[other, 0] - s.position_m[slot, 0], s.position_m[other, 1] - s.position_m[slot, 1]
    return math.sqrt(dx * dx + dz * dz)


def weaker_foe(s, slot):
    """Number of the living foe with the fewest hit points; among equals the one that is nearer to both mates."""
    first, least = slot // 2 * 2, math.inf
    weaker = 0
    for k in range(2):
        foe = foe_slot(slot, k)
        if s.alive[foe]:
            away_m = s.alive[first] * distance_m(s, first, foe) + s.alive[first + 1] * distance_m(s, first + 1, foe)
            strength = s.hit_points[foe] + HIT_POINTS_PER_M * away_m
            if strength < least:
                weaker, least = k, strength
    return weaker


def count_seen_by(slot, scratch):
    """How many foes see a robot."""
    return scratch.sees[slot, foe_slot(slot, 0)] + scratch.sees[slot, foe_slot(slot, 1)]
