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

from palaestra.kernels.scalars import clip
from palaestra.kernels.vectors import norm
from palaestra.ucav.geometry import (
    GRAVITY_MPS2,
    SLOWEST_MPS,
    off_axis_angle_rad,
    relative_position,
    rotate_to_earth,
)

GHOST = np.dtype(
    [("position_m", "f8", (3,)), ("velocity_mps", "f8", (3,)), ("lift", "f8", (3,)), ("load_g", "f8")], align=True
)
"""An aircraft as a point: north, east, down; the lift axis is a unit vector across the velocity."""

STEPS, STEP_S = 12, 0.3
"""How far the expert looks ahead."""
COMPASS, PURSUITS = 8, 6
"""Turns that it tries: around the clock, and towards the other."""
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


def start_ghost(ghost, body):
    """Puts a point where an aircraft is, with its velocity, lift axis and load factor."""
    ghost.position_m[0], ghost.position_m[1], ghost.position_m[2] = body.north_m, body.east_m, -body.altitude_m
    ghost.velocity_mps[0] = body.velocity_north_mps
    ghost.velocity_mps[1] = body.velocity_east_mps
    ghost.velocity_mps[2] = body.velocity_down_mps
    north, east, down = rotate_to_earth(body, 0.0, 0.0, -1.0)
    ghost.lift[0], ghost.lift[1], ghost.lift[2] = north, east, down
    ghost.load_g = body.load_factor_g


def move_ghost(ghost, seconds):
    """Bends and flies the path: dv/dt = n g lift + g down, the lift kept across the velocity. Thrust balances drag."""
    v, lift, x = ghost.velocity_mps, ghost.lift, ghost.position_m
    square = max(v[0] * v[0] + v[1] * v[1] + v[2] * v[2], SLOWEST_MPS * SLOWEST_MPS)
    along = (lift[0] * v[0] + lift[1] * v[1] + lift[2] * v[2]) / square
    for i in range(3):
        lift[i] -= along * v[i]
    size = max(norm(lift[0], lift[1], lift[2]), 0.1)
    force = ghost.load_g * GRAVITY_MPS2 * seconds / size
    for i in range(3):
        v[i] += force * lift[i]
        lift[i] /= size
    v[2] += GRAVITY_MPS2 * seconds
    for i in range(3):
        x[i] += v[i] * seconds


def chase(ghost, prey, seconds):
    """Turns a point's lift and load towards another: as hard as need be to have the nose on it after the step."""
    v = ghost.velocity_mps
    x, y, z = (
        prey.position_m[0] - ghost.position_m[0],
        prey.position_m[1] - ghost.position_m[1],
        prey.position_m[2] - ghost.position_m[2],
    )
    square = max(v[0] * v[0] + v[1] * v[1] + v[2] * v[2], SLOWEST_MPS * SLOWEST_MPS)
    along = (x * v[0] + y * v[1] + z * v[2]) / square
    across_n, across_e, across_d = x - along * v[0], y - along * v[1], z - along * v[2]
    across = max(norm(across_n, across_e, across_d), 1.0)
    angle = math.atan2(across, along * math.sqrt(square))
    wanted = angle / seconds * math.sqrt(square) / GRAVITY_MPS2
    ghost.lift[0], ghost.lift[1], ghost.lift[2] = across_n / across, across_e / across, across_d / across
    ghost.load_g = clip(wanted, 1.0, OPPONENT_LOAD_G)


def nose_cosine(ghost, other):
    """Cosine of the angle between the nose of a point, the angle of attack included, and the line to another."""
    v, lift = ghost.velocity_mps, ghost.lift
    speed = max(norm(v[0], v[1], v[2]), SLOWEST_MPS)
    attack = ATTACK_RAD_PER_G * ghost.load_g
    total, square = 0.0, 0.0
    for i in range(3):
        way = other.position_m[i] - ghost.position_m[i]
        total += (v[i] / speed + attack * lift[i]) * way
        square += way * way
    return total / math.sqrt(max(square * (1.0 + attack * attack), 1.0))


def ghost_distance_m(ghost, other):
    """Distance of two points."""
    a, b = ghost.position_m, other.position_m
    return norm(b[0] - a[0], b[1] - a[1], b[2] - a[2])


def foresee(ghosts, me, other, lift, load_g, lowest_m):
    """Rating of a turn: lift brought round to a direction (north, east, down) and to a load factor, then held."""
    ego, opponent = ghosts[0], ghosts[1]
    start_ghost(ego, me)
    start_ghost(opponent, other)
    start_n, start_e, start_d = ego.lift[0], ego.lift[1], ego.lift[2]
    cosine = clip(start_n * lift[0] + start_e * lift[1] + start_d * lift[2], -1.0, 1.0)
    rolling_s = max(math.acos(cosine) / ROLL_RADPS, 0.2)
    rating = COMMITMENT * cosine
    for k in range(STEPS):
        time_s = (k + 1) * STEP_S
        share = min(time_s / rolling_s, 1.0)
        ego.lift[0] = start_n + share * (lift[0] - start_n)
        ego.lift[1] = start_e + share * (lift[1] - start_e)
        ego.lift[2] = start_d + share * (lift[2] - start_d)
        ego.load_g = me.load_factor_g + share * (load_g - me.load_factor_g)
        chase(opponent, ego, STEP_S)
        move_ghost(ego, STEP_S)
        move_ghost(opponent, STEP_S)
        rating += (1.0 + LATER_PER_S * time_s) * rate(ego, opponent, lowest_m)
    return rating


def rate(ego, opponent, lowest_m):
    """Worth of a situation: own nose on the other, its nose elsewhere, gun range, guns that bear, height."""
    mine, its, distance = nose_cosine(ego, opponent), nose_cosine(opponent, ego), ghost_distance_m(ego, opponent)
    worth = mine - ITS_NOSE * its - RANGE_PER_M * abs(distance - BEST_RANGE_M)
    if distance < GUN_M:
        if mine > GUN_COSINE:
            worth += OWN_GUN
        if its > GUN_COSINE:
            worth -= ITS_GUN
    return worth - LOW if -ego.position_m[2] < lowest_m else worth


def choose_turn(ghosts, lift, me, other, strongest_g, lowest_m):
    """Tries the turns and leaves the best lift direction (north, east, down) in ``lift``; returns its load factor."""
    n, e, d = me.velocity_north_mps, me.velocity_east_mps, me.velocity_down_mps
    speed = max(norm(n, e, d), SLOWEST_MPS)
    n, e, d = n / speed, e / speed, d / speed
    size = max(math.sqrt(1.0 - min(d * d, 1.0)), 1e-3)
    up_n, up_e, up_d = d * n / size, d * e / size, (d * d - 1.0) / size  # upwards, across the velocity
    right_n, right_e, right_d = e * up_d - d * up_e, d * up_n - n * up_d, n * up_e - e * up_n
    best, best_angle, best_load = -1e9, 0.0, 1.0
    for k in range(COMPASS + PURSUITS):
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
        lift[0], lift[1] = cosine * up_n + sine * right_n, cosine * up_e + sine * right_e
        lift[2] = cosine * up_d + sine * right_d
        rating = foresee(ghosts, me, other, lift, load, lowest_m)
        if rating > best:
            best, best_angle, best_load = rating, angle, load
    cosine, sine = math.cos(best_angle), math.sin(best_angle)
    lift[0], lift[1] = cosine * up_n + sine * right_n, cosine * up_e + sine * right_e
    lift[2] = cosine * up_d + sine * right_d
    return best_load


def may_track(me, other):
    """Whether the other is so near the nose, in range, that tracking it is all there is to do."""
    x, y, z = relative_position(me, other)
    return norm(x, y, z) < TRACKING_M and off_axis_angle_rad(x, y, z) < TRACKING_RAD
