"""Macro moves of `palaestra.games.teams.arena_duel`: which post a robot drives to, and how it gets there."""

from __future__ import annotations

import math

import numpy as np

from palaestra.games.teams.arena_map import COLUMNS, COLUMNS_OUT, ROWS_OUT, SPACING_M

ADVANCE, FLANK, COVER, HOLD = range(4)
NOWHERE = -1
NODES_PER_M = 1.0 / SPACING_M
PERIOD_S = 0.18
"""Length of a substep."""
FIGHT_M = 1.5
"""Distance from its target at which a robot likes to fight."""
BLIND_M = 8.0
"""Detour that a robot makes for a post from which it sees its target."""
SEEN_M = 4.0
"""Detour that a robot in search of cover makes for each opponent that does not see it there."""
FLANK_M = 2.0
"""Detour that a flanking robot makes to see its target from the side instead of from the front."""
TURN_COS, TURN_SIN = 0.8, 0.6
"""Greatest turn in a substep, 36.9 degrees."""


TEAM_OF = np.array([0, 0, 1, 1])
"""Team of each slot: 0 for red, 1 for blue."""
OPPONENTS = np.array([[2, 3], [2, 3], [0, 1], [0, 1]])
"""Slots of the first and the second opponent of each slot."""


def living_opponent(s, slot, k):
    """Slot of the k-th opponent, or of the other one if that is dead."""
    opponent = OPPONENTS[slot, k]
    return opponent if s.alive[opponent] else opponent ^ 1


def node_of(s, slot):
    """The node nearest to a robot. Cutting towards zero rounds alike on both sides of the middle."""
    x, z = s.position_m[slot, 0] * NODES_PER_M, s.position_m[slot, 1] * NODES_PER_M
    column, row = np.int64(x + math.copysign(0.5, x)), np.int64(z + math.copysign(0.5, z))
    return np.uint64((row + ROWS_OUT) * COLUMNS + column + COLUMNS_OUT)


def look_around(s, sight, scratch):
    """Writes the nodes of all robots, and which opponents see each other, uint8 [4, 4].

    Once a substep: handing all of `world` down to every test of visibility made a decision twelve times slower.
    """
    for slot in range(4):
        scratch.node[slot] = node_of(s, slot)
    for red in range(2):
        for blue in range(2, 4):
            sees = sight[scratch.node[red], scratch.node[blue]]
            scratch.sees[red, blue] = scratch.sees[blue, red] = sees and s.alive[red] and s.alive[blue]


def choose_post(s, world, slot, move, target, scratch):
    """Number of the post that serves a move best, or `NOWHERE`: the one with the least way and detours.

    What a post lacks counts as a detour: for a robot in search of cover that an opponent sees it there; for the others
    sight of the target, the right distance from it and, for a flanking robot, a place at its side or rear.
    """
    if move == HOLD:
        return NOWHERE
    start, posts = scratch.node[slot], len(world.post_node)
    best, least_m = NOWHERE, math.inf
    for k in range(posts):
        post = k if TEAM_OF[slot] == 0 else posts - 1 - k  # both teams see the same order
        node = world.post_node[post]
        detour_m = 0.0
        if move == COVER:
            for n in range(2):
                opponent = OPPONENTS[slot, n]
                if s.alive[opponent] and world.sight[node, scratch.node[opponent]]:
                    detour_m += SEEN_M
        else:
            dx = world.post_m[post, 0] - s.position_m[target, 0]
            dz = world.post_m[post, 1] - s.position_m[target, 1]
            distance_m = math.sqrt(dx * dx + dz * dz)
            detour_m = 2.0 * abs(distance_m - FIGHT_M)
            if not world.sight[node, scratch.node[target]]:
                detour_m += BLIND_M
            if move == FLANK:
                apart_m = distance_m if distance_m > SPACING_M else SPACING_M
                ahead = (s.heading[target, 0] * dx + s.heading[target, 1] * dz) / apart_m
                detour_m += FLANK_M * (1.0 + ahead)
        cost_m = world.way_m[post, start] + detour_m
        if cost_m < least_m:
            best, least_m = post, cost_m
    return best


def drive_all(s, next_node, scratch):
    """One substep of each robot's way to its post, from node to node; notes which robots move."""
    reach_m = s.parameters.speed_mps * (1.0 + s.friction) * PERIOD_S
    for slot in range(4):
        scratch.is_moving[slot] = False
        if s.alive[slot] and s.post[slot] != NOWHERE:
            start_x, start_z = s.position_m[slot, 0], s.position_m[slot, 1]
            drive(s, next_node, slot, reach_m)
            dx, dz = s.position_m[slot, 0] - start_x, s.position_m[slot, 1] - start_z
            length_m = math.sqrt(dx * dx + dz * dz)
            if length_m > 0.0:
                turn(s.heading[slot], dx / length_m, dz / length_m)
                scratch.is_moving[slot] = True


def drive(s, next_node, slot, way_m):
    """Moves a robot by a way on its shortest way to its post."""
    while way_m > 0.0:
        node = np.int64(next_node[s.post[slot], node_of(s, slot)])
        node_x, node_z = SPACING_M * (node % COLUMNS - COLUMNS_OUT), SPACING_M * (node // COLUMNS - ROWS_OUT)
        to_x, to_z = node_x - s.position_m[slot, 0], node_z - s.position_m[slot, 1]
        length_m = math.sqrt(to_x * to_x + to_z * to_z)
        if length_m == 0.0:
            break  # at the post
        if length_m <= way_m:
            s.position_m[slot, 0], s.position_m[slot, 1] = node_x, node_z
        else:
            s.position_m[slot, 0] += way_m / length_m * to_x
            s.position_m[slot, 1] += way_m / length_m * to_z
        way_m -= length_m


def turn(direction, to_x, to_z):
    """Turns a unit vector to another, at most by the angle of `TURN_COS`. Returns whether it has got there."""
    x, z = direction[0], direction[1]
    if x * to_x + z * to_z >= TURN_COS:
        direction[0], direction[1] = to_x, to_z
        return True
    sin = TURN_SIN if x * to_z - z * to_x > 0.0 else -TURN_SIN
    turned_x, turned_z = TURN_COS * x - sin * z, sin * x + TURN_COS * z
    length = math.sqrt(turned_x * turned_x + turned_z * turned_z)  # 1 but for rounding
    direction[0], direction[1] = turned_x / length, turned_z / length
    return False
