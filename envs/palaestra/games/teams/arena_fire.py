"""Fire of `palaestra.games.teams.arena_duel`: targets, the plate that is hit, and its damage."""

from __future__ import annotations

import math

from palaestra.games.teams.arena_moves import living_opponent, turn

NO_AGENT = -1
FRONT, SIDE, REAR = range(3)
"""Armour plates; left and right are alike."""


def plate_facing(s, of, by):
    """The plate of robot ``of`` that faces robot ``by``: each covers a right angle."""
    dx, dz = s.position_m[by, 0] - s.position_m[of, 0], s.position_m[by, 1] - s.position_m[of, 1]
    ahead = s.heading[of, 0] * dx + s.heading[of, 1] * dz
    aside = abs(s.heading[of, 0] * dz - s.heading[of, 1] * dx)
    if ahead >= aside:
        return FRONT
    return REAR if -ahead >= aside else SIDE


def shoot(s, slot, scratch):
    """Turns the turret, and a standing chassis, to an opponent that is seen, and lets a round go if it can hit.

    The opponent is the one that the agent has chosen, or the other one if only that is seen. The share of a round's
    damage that hits falls linearly to zero at the range, and is less from a moving chassis. Damage is felt when all
    have shot.
    """
    target, is_moving = living_opponent(s, slot, s.target[slot]), scratch.is_moving[slot] != 0
    if scratch.sees[slot, target ^ 1] and not scratch.sees[slot, target]:
        target ^= 1
    if not scratch.sees[slot, target]:
        return
    dx, dz = s.position_m[target, 0] - s.position_m[slot, 0], s.position_m[target, 1] - s.position_m[slot, 1]
    distance_m = math.sqrt(dx * dx + dz * dz)
    is_aimed = True
    if distance_m > 0.0:  # robots do not hinder each other, and a robot cannot hide inside another one
        to_x, to_z = dx / distance_m, dz / distance_m
        if not is_moving:
            turn(s.heading[slot], to_x, to_z)
        is_aimed = turn(s.turret[slot], to_x, to_z)
    share = 1.0 - distance_m / s.parameters.range_m
    if is_moving:
        share *= s.parameters.moving_accuracy
    if is_aimed and share > 0.0 and s.rounds[slot] >= 1.0:
        s.rounds[slot] -= 1.0
        s.shot_at[slot] = target
        scratch.hit_share[slot] = share


def fire_all(s, scratch):
    """One substep of fire: all robots aim, then all rounds hit at the same time."""
    p = s.parameters
    for slot in range(4):
        scratch.damage[slot] = 0.0
        s.shot_at[slot] = NO_AGENT
    for slot in range(4):
        if s.alive[slot]:
            shoot(s, slot, scratch)
    for slot in range(4):
        target = s.shot_at[slot]
        if target != NO_AGENT:
            plate = plate_facing(s, target, slot)
            damage = p.front_damage if plate == FRONT else p.side_damage if plate == SIDE else p.rear_damage
            scratch.damage[target] += scratch.hit_share[slot] * damage
    for slot in range(4):
        s.hit_points[slot] -= scratch.damage[slot]
        if s.hit_points[slot] <= 0.0:
            s.hit_points[slot] = 0.0
            s.alive[slot] = 0
