"""Looking ahead: the turn that an offensive expert chooses.

The idea is that of the adaptive manoeuvring logic (Burgin, Fogel and Phelps, NASA CR-2582, 1975,
ntrs.nasa.gov/citations/19750022744): foresee the other, try a few turns of one's own for some seconds, and rate where
they lead. Aircraft are points here that bend their path with the lift, and the other is expected to turn its nose on
ego. The ratings are ours, and so is the choice of turns:

* the hardest pull in eight directions around the velocity;
* the hardest and half a pull towards where the other was, is and will be.
"""

from __future__ import annotations

import math

import numpy as np

from palaestra.games.ucav.geometry import (
    GRAVITY_MPS2,
    SLOWEST_MPS,
    off_axis_angle_rad,
    relative_position,
    rotate_to_earth,
)
from palaestra.kernels.scalars import clip
from palaestra.kernels.vectors import norm

COMPASS, PURSUITS = 8, 6
"""Turns that it tries: around the clock, and towards the other."""
TURNS = COMPASS + PURSUITS

GHOSTS = np.dtype(
    [
        ("position_m", "f8", (3, TURNS)),
        ("velocity_mps", "f8", (3, TURNS)),
        ("lift", "f8", (3, TURNS)),
        ("load_g", "f8", (TURNS,)),
    ],
    align=True,
)
"""An aircraft as a point, once in each future: north, east, down; the lift axis is a unit vector across the velocity.

All loops over the futures are innermost, over numbers that lie side by side: processors do several at once.
"""
FUTURES = np.dtype(
    [
        ("lift", "f8", (3, TURNS)),  # direction of the turn: north, east, down
        ("load_g", "f8", (TURNS,)),
        ("rolling_s", "f8", (TURNS,)),  # time until the lift points there
        ("ego", GHOSTS),
        ("opponent", GHOSTS),
        ("across_m", "f8", (TURNS,)),  # of ego from the opponent: across its velocity and along it
        ("along_m", "f8", (TURNS,)),
        ("off_rad", "f8", (TURNS,)),  # angle between the two
        ("rating", "f8", (TURNS,)),
    ],
    align=True,
)
"""The turns that the expert tries, where they lead, and what they are worth."""

STEPS, STEP_S = 12, 0.3
"""How far the expert looks ahead."""
PURSUIT_S = 1.2
"""How far behind and ahead of the other the pursuits aim, s."""
ROLL_RADPS = 1.5
"""Rate at which the lift axis is expected to come round, rad/s."""
ATTACK_RAD_PER_G = 0.02
"""Angle from the velocity to the nose, towards the lift, per g: JSBSim's f16 at 250 m/s, 4 km, 3 g (0.028 at 7 g)."""

TRACKING_M, TRACKING_RAD = 1800.0, 0.35
"""Range and angle off the nose within which the expert just tracks."""
OPPONENT_LOAD_G = 6.5
"""Load factor that the other is expected to pull at most, g."""
COMMITMENT = 2.0
"""Worth of a turn in the present direction of the lift: an aircraft that alternates between two turns flies neither."""
LATER_PER_S = 0.2
"""How much more a second later counts."""
ITS_NOSE = 0.5
"""Worth of the other's nose angle against the own."""
BEST_RANGE_M, RANGE_PER_M = 420.0, 0.0003
"""Best range, and what a metre off it costs."""
GUN_COSINE, GUN_M = 0.99, 1200.0
"""Cosine of the angle off a nose, and the range, that count as a gun that bears."""
OWN_GUN, ITS_GUN = 0.7, 2.1
"""Worth of bearing guns."""
LOW_M, LOW = 300.0, 5.0
"""Height over the floor that is too low, and what that costs."""


def choose_turn(futures, me, other, strongest_g, lowest_m):
    """Tries the turns; returns the number of the best, whose lift direction and load factor are in ``futures``."""
    list_turns(futures, me, other, strongest_g)
    foresee(futures, me, other, lowest_m)
    best = 0
    for k in range(1, TURNS):
        if futures.rating[k] > futures.rating[best]:
            best = k
    return best


def list_turns(futures, me, other, strongest_g):
    """Writes lift direction and load factor of the turns."""
    n, e, d = me.velocity_north_mps, me.velocity_east_mps, me.velocity_down_mps
    speed = max(norm(n, e, d), SLOWEST_MPS)
    n, e, d = n / speed, e / speed, d / speed
    size = max(math.sqrt(1.0 - min(d * d, 1.0)), 1e-3)
    up_n, up_e, up_d = d * n / size, d * e / size, (d * d - 1.0) / size  # upwards, across the velocity
    right_n, right_e, right_d = e * up_d - d * up_e, d * up_n - n * up_d, n * up_e - e * up_n
    for k in range(TURNS):
        angle, load = 2.0 * math.pi * k / COMPASS, strongest_g
        if k >= COMPASS:
            lead_s = ((k - COMPASS) % 3 - 1) * PURSUIT_S
            to_n = other.north_m - me.north_m + lead_s * other.velocity_north_mps
            to_e = other.east_m - me.east_m + lead_s * other.velocity_east_mps
            to_d = me.altitude_m - other.altitude_m + lead_s * other.velocity_down_mps
            angle = math.atan2(
                to_n * right_n + to_e * right_e + to_d * right_d, to_n * up_n + to_e * up_e + to_d * up_d
            )
            load = strongest_g if k < COMPASS + 3 else 0.5 * strongest_g
        cosine, sine = math.cos(angle), math.sin(angle)
        futures.lift[0, k] = cosine * up_n + sine * right_n
        futures.lift[1, k] = cosine * up_e + sine * right_e
        futures.lift[2, k] = cosine * up_d + sine * right_d
        futures.load_g[k] = load


def foresee(futures, me, other, lowest_m):
    """Rates the turns: lift brought round to the direction and to the load factor, then held."""
    ego, opponent, lift = futures.ego, futures.opponent, futures.lift
    start_ghosts(ego, me)
    start_ghosts(opponent, other)
    start_n, start_e, start_d = ego.lift[0, 0], ego.lift[1, 0], ego.lift[2, 0]
    for k in range(TURNS):
        cosine = clip(start_n * lift[0, k] + start_e * lift[1, k] + start_d * lift[2, k], -1.0, 1.0)
        futures.rolling_s[k] = max(math.acos(cosine) / ROLL_RADPS, 0.2)
        futures.rating[k] = COMMITMENT * cosine
    for step in range(STEPS):
        time_s = (step + 1) * STEP_S
        for k in range(TURNS):
            share = min(time_s / futures.rolling_s[k], 1.0)
            ego.lift[0, k] = start_n + share * (lift[0, k] - start_n)
            ego.lift[1, k] = start_e + share * (lift[1, k] - start_e)
            ego.lift[2, k] = start_d + share * (lift[2, k] - start_d)
            ego.load_g[k] = me.load_factor_g + share * (futures.load_g[k] - me.load_factor_g)
        chase(futures, STEP_S)
        move_ghosts(ego, STEP_S)
        move_ghosts(opponent, STEP_S)
        rate(futures, 1.0 + LATER_PER_S * time_s, lowest_m)


def start_ghosts(ghosts, body):
    """Puts points where an aircraft is, with its velocity, lift axis and load factor."""
    north, east, down = rotate_to_earth(body, 0.0, 0.0, -1.0)
    for k in range(TURNS):
        ghosts.position_m[0, k] = body.north_m
        ghosts.position_m[1, k] = body.east_m
        ghosts.position_m[2, k] = -body.altitude_m
        ghosts.velocity_mps[0, k] = body.velocity_north_mps
        ghosts.velocity_mps[1, k] = body.velocity_east_mps
        ghosts.velocity_mps[2, k] = body.velocity_down_mps
        ghosts.lift[0, k], ghosts.lift[1, k], ghosts.lift[2, k] = north, east, down
        ghosts.load_g[k] = body.load_factor_g


def move_ghosts(ghosts, seconds):
    """Bends and flies the paths: dv/dt = n g lift + g down, the lift kept across the velocity. Thrust balances drag."""
    x, v, lift, load_g = ghosts.position_m, ghosts.velocity_mps, ghosts.lift, ghosts.load_g
    for k in range(TURNS):
        n, e, d = v[0, k], v[1, k], v[2, k]
        square = max(n * n + e * e + d * d, SLOWEST_MPS * SLOWEST_MPS)
        along = (lift[0, k] * n + lift[1, k] * e + lift[2, k] * d) / square
        lift_n, lift_e, lift_d = lift[0, k] - along * n, lift[1, k] - along * e, lift[2, k] - along * d
        size = max(norm(lift_n, lift_e, lift_d), 0.1)
        force = load_g[k] * GRAVITY_MPS2 * seconds / size
        n, e, d = n + force * lift_n, e + force * lift_e, d + force * lift_d + GRAVITY_MPS2 * seconds
        lift[0, k], lift[1, k], lift[2, k] = lift_n / size, lift_e / size, lift_d / size
        v[0, k], v[1, k], v[2, k] = n, e, d
        x[0, k] += n * seconds
        x[1, k] += e * seconds
        x[2, k] += d * seconds


def chase(futures, seconds):
    """Turns the opponent's lift and load towards ego: as hard as need be to have its nose on it after the step."""
    ego, opponent = futures.ego.position_m, futures.opponent.position_m
    v, lift, load_g = futures.opponent.velocity_mps, futures.opponent.lift, futures.opponent.load_g
    for k in range(TURNS):
        x, y, z = ego[0, k] - opponent[0, k], ego[1, k] - opponent[1, k], ego[2, k] - opponent[2, k]
        n, e, d = v[0, k], v[1, k], v[2, k]
        square = max(n * n + e * e + d * d, SLOWEST_MPS * SLOWEST_MPS)
        along = (x * n + y * e + z * d) / square
        across_n, across_e, across_d = x - along * n, y - along * e, z - along * d
        across = max(norm(across_n, across_e, across_d), 1.0)
        lift[0, k], lift[1, k], lift[2, k] = across_n / across, across_e / across, across_d / across
        futures.across_m[k], futures.along_m[k] = across, along * math.sqrt(square)
    for k in range(TURNS):  # alone: no processor has this angle
        futures.off_rad[k] = math.atan2(futures.across_m[k], futures.along_m[k])
    for k in range(TURNS):
        square = max(v[0, k] * v[0, k] + v[1, k] * v[1, k] + v[2, k] * v[2, k], SLOWEST_MPS * SLOWEST_MPS)
        wanted_g = futures.off_rad[k] / seconds * math.sqrt(square) / GRAVITY_MPS2
        load_g[k] = clip(wanted_g, 1.0, OPPONENT_LOAD_G)


def rate(futures, weight, lowest_m):
    """Adds the worth of a step: own nose on the other, its nose elsewhere, gun range, guns that bear, height."""
    ego, opponent, rating = futures.ego, futures.opponent, futures.rating
    for k in range(TURNS):
        mine, its, distance = nose_cosine(ego, opponent, k), nose_cosine(opponent, ego, k), distance_m(ego, opponent, k)
        worth = mine - ITS_NOSE * its - RANGE_PER_M * abs(distance - BEST_RANGE_M)
        worth += OWN_GUN if distance < GUN_M and mine > GUN_COSINE else 0.0
        worth -= ITS_GUN if distance < GUN_M and its > GUN_COSINE else 0.0
        worth -= LOW if -ego.position_m[2, k] < lowest_m else 0.0
        rating[k] += weight * worth


def nose_cosine(ghosts, others, k):
    """Cosine of the angle between the nose of a point, the angle of attack included, and the line to another."""
    v, lift, a, b = ghosts.velocity_mps, ghosts.lift, ghosts.position_m, others.position_m
    speed = max(norm(v[0, k], v[1, k], v[2, k]), SLOWEST_MPS)
    attack = ATTACK_RAD_PER_G * ghosts.load_g[k]
    x, y, z = b[0, k] - a[0, k], b[1, k] - a[1, k], b[2, k] - a[2, k]
    total = (v[0, k] / speed + attack * lift[0, k]) * x
    total += (v[1, k] / speed + attack * lift[1, k]) * y
    total += (v[2, k] / speed + attack * lift[2, k]) * z
    square = x * x + y * y + z * z
    return total / math.sqrt(max(square * (1.0 + attack * attack), 1.0))


def distance_m(ghosts, others, k):
    """Distance of two points."""
    a, b = ghosts.position_m, others.position_m
    return norm(b[0, k] - a[0, k], b[1, k] - a[1, k], b[2, k] - a[2, k])


def may_track(me, other):
    """Whether the other is so near the nose, in range, that tracking it is all there is to do."""
    x, y, z = relative_position(me, other)
    return norm(x, y, z) < TRACKING_M and off_axis_angle_rad(x, y, z) < TRACKING_RAD
