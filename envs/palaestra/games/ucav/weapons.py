"""The gun: where it hits, what a hit takes, and what is counted about it; and aircraft that touch.

There is no trigger. The gun of one aircraft is applied to one target at a time (`fire`), so a game decides who may
shoot at whom. Kernel functions on the match record of `palaestra.games.ucav.dogfight`.
"""

from __future__ import annotations

import math

from palaestra.game import Field, Parameter
from palaestra.games.ucav.body import COUNT, PERIOD_S, RED
from palaestra.games.ucav.geometry import antenna_train_angle_rad, aspect_angle_rad, closest_pass_m, distance_m

GUN_NEAR_M, GUN_FAR_M = 152.4, 914.4
"""Range window of the gun, m: the contest's 500 ft and 3000 ft."""
OPPORTUNITY_RAD = math.radians(10.0)
"""Angle off the nose, rad, within which a target in the range window counts as an opportunity. Statistics only."""
REAR_RAD, FRONT_RAD = math.radians(60.0), math.radians(120.0)
"""Aspect angles, rad, up to which a shot comes from behind and from which on it comes from ahead. Statistics only."""

GUN_PARAMETERS = (
    Parameter("cone_half_angle_deg", 15.0, 0.01, 180.0, "deg", "half-angle of the gun's cone at the start"),
    Parameter("cone_step_deg", 0.0, 0.0, 60.0, "deg", "widening of the half-angle per step of the schedule"),
    Parameter("cone_first_step_s", 100.0, 0.0, 1e6, "s", "time of the first widening"),
    Parameter("cone_next_step_s", 50.0, 0.1, 1e6, "s", "time between further widenings"),
    Parameter("gun_aspect_deg", 180.0, 0.0, 180.0, "deg", "largest aspect of a hit: 135 forbids shots from ahead"),
    Parameter("damage_per_second", 1.0, 0.0, 100.0, "1/s", "health that the gun takes at the near end of its range"),
    Parameter("red_gun", 1.0, 0.0, 1.0, "1", "factor on the damage that red deals: 0 is unarmed"),
    Parameter("blue_gun", 1.0, 0.0, 1.0, "1", "factor on the damage that blue deals: 0 is unarmed"),
)

GUN_INFO = (
    Field(
        "opportunities",
        (COUNT,),
        unit="1",
        about="times the other came within 10 deg of the nose at gun range",
        dtype="i8",
    ),
    Field("opportunity_seconds", (COUNT,), unit="s", about="how long it stayed there", dtype="f8"),
    Field("cone_seconds", (COUNT,), unit="s", about="how long it was inside the cone", dtype="f8"),
    Field("gun_damage", (COUNT,), unit="1", about="health taken from the other by the gun", dtype="f8"),
    Field(
        "aspect_damage",
        (COUNT, 3),
        unit="1",
        about="of this from behind (to 60 deg), beside, ahead",
        dtype="f8",
    ),
)


def cone_half_angle_rad(s):
    """Half-angle of the cone now: a step wider from `cone_first_step_s` on and every `cone_next_step_s` after."""
    p = s.parameters
    steps = 0.0
    late = s.periods * PERIOD_S - p.cone_first_step_s
    if late >= 0.0:
        steps = 1.0 + math.floor(late / p.cone_next_step_s)
    return min(math.radians(p.cone_half_angle_deg + steps * p.cone_step_deg), math.pi)


def damage_rate(s, range_m):
    """Health per second that a hit takes: falls linearly from `damage_per_second` at 152 m to 0 at 914 m. Ours."""
    return s.parameters.damage_per_second * (GUN_FAR_M - range_m) / (GUN_FAR_M - GUN_NEAR_M)


def fire(s, shooter, target):
    """Lets the gun of ``shooter`` hit ``target`` for one period, counts it, and returns the health lost.

    A match record has one `in_gun` and one `in_funnel` for each shooter, so a shooter may have one target in a period.
    """
    return shoot(s, shooter, target, True)


def shoot(s, shooter, target, firing):
    """The same of a gun that fires or not: one that does not hurts nobody, and shows all the same what it would hit."""
    range_m = distance_m(s.body[shooter], s.body[target])
    angle = antenna_train_angle_rad(s.body[shooter], s.body[target])
    in_range = GUN_NEAR_M <= range_m <= GUN_FAR_M
    aspect = aspect_angle_rad(s.body[shooter], s.body[target])
    near = in_range and angle <= OPPORTUNITY_RAD
    hits = in_range and angle <= cone_half_angle_rad(s) and aspect <= math.radians(s.parameters.gun_aspect_deg)
    if near and not s.in_funnel[shooter]:
        s.info.opportunities[shooter] += 1
    s.in_funnel[shooter] = near
    s.in_gun[shooter] = hits
    lost = 0.0
    if near:
        s.info.opportunity_seconds[shooter] += PERIOD_S
    if hits:
        s.info.cone_seconds[shooter] += PERIOD_S
    if hits and firing:
        armed = s.parameters.red_gun if s.team[shooter] == RED else s.parameters.blue_gun
        lost = min(s.health[target], armed * damage_rate(s, range_m) * PERIOD_S)
        s.health[target] -= lost
        s.info.gun_damage[shooter] += lost
        s.info.aspect_damage[shooter, 0 if aspect <= REAR_RAD else 1 if aspect < FRONT_RAD else 2] += lost
    return lost


def note_places(s):
    """Writes where the aircraft are when a period begins: `palaestra.games.ucav.body` keeps where they are now."""
    for slot in range(s.body.shape[0]):
        s.past_m[slot, 0] = s.body[slot].north_m
        s.past_m[slot, 1] = s.body[slot].east_m
        s.past_m[slot, 2] = s.body[slot].altitude_m


def closest_approach_m(s, one, two):
    """Smallest distance of two aircraft in the last period, m: both fly straight from `past_m` to where they are."""
    a, b, past = s.body[one], s.body[two], s.past_m
    x, y, z = past[two, 0] - past[one, 0], past[two, 1] - past[one, 1], past[two, 2] - past[one, 2]
    return closest_pass_m(x, y, z, b.north_m - a.north_m, b.east_m - a.east_m, b.altitude_m - a.altitude_m)
