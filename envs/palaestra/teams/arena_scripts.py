"""Scripts of `palaestra.teams.arena_duel`."""

from __future__ import annotations

import math

from palaestra.kernels.vectors import distance
from palaestra.teams.arena_moves import ADVANCE, COVER, FLANK, FOES, HOLD, look_around

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
    target = FOES[slot, k]
    action = actions.robot[slot]
    action.target = k
    is_seen_by_both = scratch.sees[slot, FOES[slot, 0]] and scratch.sees[slot, FOES[slot, 1]]
    if which == SHELTER and is_seen_by_both and s.hit_points[slot] < s.hit_points[target]:
        action.move = COVER
    elif scratch.sees[slot, target] and distance(s.position_m, slot, target) < STAND_M:
        action.move = HOLD
    else:
        action.move = FLANK if which == FLANKER else ADVANCE


def weaker_foe(s, slot):
    """Number of the living foe with the fewest hit points; among equals the one that is nearer to both mates."""
    mate, weaker, least = slot ^ 1, 0, math.inf
    for k in range(2):
        foe = FOES[slot, k]
        if s.alive[foe]:
            away_m = distance(s.position_m, slot, foe) + s.alive[mate] * distance(s.position_m, mate, foe)
            strength = s.hit_points[foe] + HIT_POINTS_PER_M * away_m
            if strength < least:
                weaker, least = k, strength
    return weaker
