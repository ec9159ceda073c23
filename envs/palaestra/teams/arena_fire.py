"""Fire of `palaestra.teams.arena_duel`: who aims at whom, which plate is hit, and what that costs."""

from __future__ import annotations

import math

from palaestra.teams.arena_moves import living_foe, turn

NOBODY = -1
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


def plate_damage(s, plate):
    """Hit points that a round takes there."""
    p = s.parameters
    if plate == FRONT:
        return p.front_damage
    return p.side_damage if plate == SIDE else p.rear_damage


def aim(s, slot, target, is_moving, scratch):
    """Turns the turret, and a standing chassis, to a target that is seen. Returns whether the barrel points at it."""
    if not scratch.sees[slot, target]:
        return False
    dx, dz = s.position_m[target, 0] - s.position_m[slot, 0], s.position_m[target, 1] - s.position_m[slot, 1]
    distance_m = math.sqrt(dx * dx + dz * dz)
    if distance_m == 0.0:
        return True  # robots do not hinder each other, and nobody hides inside another one
    to_x, to_z = dx / distance_m, dz / distance_m
    if not is_moving:
        turn(s.heading[slot], to_x, to_z)
    return turn(s.turret[slot], to_x, to_z)


def hit_share(s, slot, target, is_moving):
    """Share of the rounds that hit: falls linearly to zero at the range, and is less from a moving chassis."""
    dx, dz = s.position_m[target, 0] - s.position_m[slot, 0], s.position_m[target, 1] - s.position_m[slot, 1]
    share = max(0.0, 1.0 - math.sqrt(dx * dx + dz * dz) / s.parameters.range_m)
    return share * s.parameters.moving_accuracy if is_moving else share


def choose_target(s, slot, scratch):
    """The foe that the agent has chosen, or the other one if only that is seen."""
    target = living_foe(s, slot, s.target[slot])
    is_other_seen = scratch.sees[slot, target ^ 1]
    return target ^ 1 if is_other_seen and not scratch.sees[slot, target] else target


def shoot(s, slot, is_moving, scratch):
    """Aims and lets a round go if it can hit. Damage is felt when all have shot."""
    target = choose_target(s, slot, scratch)
    if not aim(s, slot, target, is_moving, scratch) or s.rounds[slot] < 1.0:
        return
    share = hit_share(s, slot, target, is_moving)
    if share > 0.0:
        s.rounds[slot] -= 1.0
        s.shot_at[slot] = target
        scratch.hit_share[slot] = share


def fire_all(s, scratch):
    """One substep of fire: everybody aims, then all rounds hit at the same time."""
    for slot in range(4):
        scratch.damage[slot] = 0.0
        s.shot_at[slot] = NOBODY
    for slot in range(4):
        if s.alive[slot]:
            shoot(s, slot, scratch.is_moving[slot] != 0, scratch)
    for slot in range(4):
        target = s.shot_at[slot]
        if target != NOBODY:
            scratch.damage[target] += scratch.hit_share[slot] * plate_damage(s, plate_facing(s, target, slot))
    for slot in range(4):
        s.hit_points[slot] = max(0.0, s.hit_points[slot] - scratch.damage[slot])
        if s.hit_points[slot] == 0.0:
            s.alive[slot] = 0


def plate_seen(s, of, by, scratch):
    """How weak the plate of ``of`` is that ``by`` sees: 0 for none, 1/3 front, 2/3 side, 1 rear."""
    return (1 + plate_facing(s, of, by)) * (1.0 / 3.0) if scratch.sees[by, of] else 0.0
