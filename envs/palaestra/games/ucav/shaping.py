"""Shaping of the dogfight's reward: potentials of red minus blue, and what their changes pay.

A shaping item is ``weight * (shaping_discount * F(next) - F(now))`` of a potential ``F``, which changes no optimal
policy (Ng, Harada and Russell, ICML 1999). Kernel functions on the match record of `palaestra.games.ucav.dogfight`.
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
    red, blue = s.body[RED], s.body[BLUE]
    return (antenna_train_angle_rad(blue, red) - antenna_train_angle_rad(red, blue)) / math.pi


def altitude_potential(s):
    """Red's minus blue's height over the floor as a share of 1500 m, each cut to [0, 1]: only being low costs."""
    floor_m = s.parameters.floor_m
    return safe_altitude_share(s.body[RED], floor_m) - safe_altitude_share(s.body[BLUE], floor_m)


def safe_altitude_share(body, floor_m):
    """Height over the floor as a share of 1500 m, cut to [0, 1]."""
    return clip((body.altitude_m - floor_m) / SAFE_ALTITUDE_M, 0.0, 1.0)


def energy_potential(s):
    """Hyperbolic tangent of the difference of the energy heights over 2000 m."""
    return math.tanh((energy_height_m(s.body[RED]) - energy_height_m(s.body[BLUE])) / ENERGY_UNIT_M)


def aim_potential(s):
    """(exp(-red's angle off / 10 deg) - exp(-blue's angle off / 10 deg)) * exp(-range / 2000 m)."""
    red, blue = s.body[RED], s.body[BLUE]
    return (aim_share(red, blue) - aim_share(blue, red)) * math.exp(-distance_m(red, blue) / AIM_RANGE_M)


def aim_share(shooter, target):
    """exp(-angle off the nose / 10 deg), in (0, 1]: 1 is a nose right on the target."""
    return math.exp(-antenna_train_angle_rad(shooter, target) / AIM_UNIT_RAD)
