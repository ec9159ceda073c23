"""Scripts of `palaestra.games.teams.arena_duel`."""

from __future__ import annotations

import math

from palaestra.games.teams.arena_moves import ADVANCE, COVER, FLANK, HOLD, OPPONENTS, look_around
from palaestra.kernels.vectors import distance

FOCUS, SHELTER, FLANKER = range(3)
"""Numbers of the scripts."""
STAND_M = 2.2
"""Distance at which a robot stops and shoots."""
HIT_POINTS_PER_M = 100.0
"""What an opponent's distance weighs against its hit points in the choice of a target."""


def script(s, world, slot, which, actions, scratch):
    """Both robots of a team take the same opponent; how they go for it is the script's."""
    look_around(s, world.sight, scratch)
    k = weaker_opponent(s, slot)
    target = OPPONENTS[slot, k]
    action = actions.robot[slot]
    action.target = k
    is_seen_by_both = scratch.sees[slot, OPPONENTS[slot, 0]] and scratch.sees[slot, OPPONENTS[slot, 1]]
    if which == SHELTER and is_seen_by_both and s.hit_points[slot] < s.hit_points[target]:
        action.move = COVER
    elif scratch.sees[slot, target] and distance(s.position_m, slot, target) < STAND_M:
        action.move = HOLD
    else:
        action.move = FLANK if which == FLANKER else ADVANCE


def weaker_opponent(s, slot):
    """Number of the living opponent with the fewest hit points; among equals the one nearer to both robots."""
    teammate, weaker, least = slot ^ 1, 0, math.inf
    for k in range(2):
        opponent = OPPONENTS[slot, k]
        if s.alive[opponent]:
            away_m = distance(s.position_m, slot, opponent) + s.alive[teammate] * distance(
                s.position_m, teammate, opponent
            )
            strength = s.hit_points[opponent] + HIT_POINTS_PER_M * away_m
            if strength < least:
                weaker, least = k, strength
    return weaker
