"""Shaping of the reward of fights: potentials of red minus blue, and what their changes pay.

A shaping item is ``weight * (shaping_discount * F(next) - F(now))`` of a potential ``F``, which changes no optimal
policy (Ng, Harada and Russell, ICML 1999). Of teams a potential is a mean over their aircraft in the match, or over all
pairs of opponents. Kernel functions on the match records of `palaestra.games.ucav.dogfight` and
`palaestra.games.ucav.team`.
"""

from __future__ import annotations

import math

from palaestra.games.ucav.body import BLUE, RED
from palaestra.games.ucav.geometry import antenna_train_angle_rad, distance_m, energy_height_m
from palaestra.kernels.scalars import clip

POSTURE, ALTITUDE, ENERGY, AIM = 0, 1, 2, 3
"""Numbers of the potentials."""

SAFE_ALTITUDE_M = 1500.0
"""Height over the floor, m, below which the altitude potential falls."""
ENERGY_UNIT_M = 2000.0
"""Difference of energy heights, m, at which the energy potential has reached tanh(1)."""
AIM_UNIT_RAD, AIM_RANGE_M = math.radians(10.0), 2000.0
"""Angle off the nose, rad, and range, m, at which the aim potential has fallen by a factor of e."""


def note_potentials(s):
    """Writes the potentials at the start of a match."""
    s.potentials[POSTURE] = posture_potential(s)
    s.potentials[ALTITUDE] = altitude_potential(s)
    s.potentials[ENERGY] = energy_potential(s)
    s.potentials[AIM] = aim_potential(s)


def shape(s, over):
    """Pays red the weighted changes of the potentials since the last decision, item by item; returns their sum."""
    p = s.parameters
    posture = p.posture_weight * change(s, POSTURE, 0.0 if over else posture_potential(s))
    altitude = p.altitude_weight * change(s, ALTITUDE, 0.0 if over else altitude_potential(s))
    energy = p.energy_weight * change(s, ENERGY, 0.0 if over else energy_potential(s))
    aim = p.aim_weight * change(s, AIM, 0.0 if over else aim_potential(s))
    s.info.reward_posture += posture
    s.info.reward_altitude += altitude
    s.info.reward_energy += energy
    s.info.reward_aim += aim
    return posture + altitude + energy + aim


def change(s, which, potential):
    """shaping_discount * F(next) - F(now), and keeps F(next)."""
    paid = s.parameters.shaping_discount * potential - s.potentials[which]
    s.potentials[which] = potential
    return paid


def posture_potential(s):
    """(angle off blue's nose - angle off red's nose) / pi, in [-1, 1]: 1 is red behind blue and pointing at it."""
    pairs = members(s, RED) * members(s, BLUE)
    return (angles_to_noses(s, RED) - angles_to_noses(s, BLUE)) / (math.pi * pairs) if pairs else 0.0


def members(s, team):
    """Aircraft of a team in the match."""
    count = 0
    for slot in range(s.body.shape[0]):
        if s.alive[slot] and s.team[slot] == team:
            count += 1
    return count


def is_pair(s, slot, team, other):
    """Whether two slots have aircraft in the match, the first of a team and the second of its opponents."""
    return s.alive[slot] and s.team[slot] == team and s.alive[other] and s.team[other] != team


def angles_to_noses(s, team):
    """Sum of the angles at which each aircraft of a team is off the nose of each opponent, rad."""
    total = 0.0
    for slot in range(s.body.shape[0]):
        for other in range(s.body.shape[0]):
            if is_pair(s, slot, team, other):
                total += antenna_train_angle_rad(s.body[other], s.body[slot])
    return total


def altitude_potential(s):
    """Red's minus blue's height over the floor as a share of 1500 m, each cut to [0, 1]: only being low costs."""
    return safe_altitude(s, RED) - safe_altitude(s, BLUE)


def safe_altitude(s, team):
    """Mean share of a safe height over the aircraft that a team began with."""
    total, size = 0.0, 0
    for slot in range(s.body.shape[0]):
        if s.team[slot] == team:
            size += 1
            total += safe_altitude_share(s.body[slot], s.parameters.floor_m) if s.alive[slot] else 0.0
    return total / size


def safe_altitude_share(body, floor_m):
    """Height over the floor as a share of 1500 m, cut to [0, 1]."""
    return clip((body.altitude_m - floor_m) / SAFE_ALTITUDE_M, 0.0, 1.0)


def energy_potential(s):
    """Hyperbolic tangent of the difference of the mean energy heights over 2000 m."""
    return math.tanh((mean_energy_height_m(s, RED) - mean_energy_height_m(s, BLUE)) / ENERGY_UNIT_M)


def mean_energy_height_m(s, team):
    """Mean energy height of the aircraft of a team in the match, 0 without any."""
    total = 0.0
    for slot in range(s.body.shape[0]):
        if s.alive[slot] and s.team[slot] == team:
            total += energy_height_m(s.body[slot])
    return total / max(members(s, team), 1)


def aim_potential(s):
    """exp(-red's angle off / 10 deg) exp(-range / 2000 m) minus the same of blue."""
    return mean_aim(s, RED) - mean_aim(s, BLUE)


def mean_aim(s, team):
    """Aim of a team's aircraft in the match at their opponents, summed, over its aircraft."""
    total = 0.0
    for slot in range(s.body.shape[0]):
        for other in range(s.body.shape[0]):
            if is_pair(s, slot, team, other):
                shooter, target = s.body[slot], s.body[other]
                total += aim_share(shooter, target) * math.exp(-distance_m(shooter, target) / AIM_RANGE_M)
    return total / max(members(s, team), 1)


def aim_share(shooter, target):
    """exp(-angle off the nose / 10 deg), in (0, 1]: 1 is a nose right on the target."""
    return math.exp(-antenna_train_angle_rad(shooter, target) / AIM_UNIT_RAD)
