"""Missiles: where they fly, what their seekers see, when they hit. Of the size of an AIM-9, all with one target each.

A missile is a point with a mass. It is flown at 60 frames a second; within a period of the rules its target moves on a
straight line, so a frame is two straight segments, and the miss distance is their closest approach. In a frame

* the motor adds ``c ln(m0 / m1)`` along the velocity (Tsiolkovsky), half of the drag before it and half after it, each
  as the solution of ``dv/dt = -k v^2``;
* the lift turns the velocity through ``a dt / v`` and does not change its length; gravity adds ``g dt``;
* the place moves with the mean of the velocities before and after.

So a fall without air, a burn in free space, a drag-only deceleration and the speed in a turn are exact. All together
are of first order: after a chase of 6 s a missile is 0.4 m from where a hundredfold rate brings it.

Guidance is true proportional navigation, ``N Vc (omega x line of sight)``, across the velocity, with gravity added,
limited by the structure (`MOST_LIFT_MPS2`) and by the angle of attack (`MOST_ATTACK_RAD`).

The seeker sees heat. The nozzle is a flat disc, which radiates with the cosine of the angle off its axis (Lambert),
and the rest of the aircraft the same in all directions. The range of the lock is the root of the radiance: a target
that turns its side to the missile while it is farther than `seeker_front_m` is lost, and so is one that leaves the
gimbal's cone. A missile without its target does not steer any more. Wind does not move missiles.

Kernel functions without a game: they take a missile, its target and the parameters, or a record with `body`,
`missiles` and `ammunition`. There are no random numbers.
"""

from __future__ import annotations

import math

import numpy as np

from palaestra.game import Field, Parameter
from palaestra.games.ucav.body import PERIOD_S, RED
from palaestra.games.ucav.geometry import (
    CLOSEST_M,
    GRAVITY_MPS2,
    closest_pass_m,
    rotate_to_body,
    rotate_to_earth,
)
from palaestra.games.ucav.sight import BODY_AXES, RANGE_UNIT_M, SPEED_UNIT_MPS
from palaestra.kernels.scalars import clip
from palaestra.kernels.vectors import norm

FRAMES = 6
"""Frames in a period: 60 Hz."""
FRAME_S = PERIOD_S / FRAMES

LAUNCH_KG, DIAMETER_M, SPAN_M = 85.5, 0.127, 0.63
"""AIM-9M: 190 lb, 5 in, span of the fins (U.S. Air Force, fact sheet "AIM-9 Sidewinder")."""
SECTION_M2 = 0.25 * math.pi * DIAMETER_M * DIAMETER_M
"""Reference area of the drag."""
BOOST_KGPS, BOOST_S = 6.0, 2.0
SUSTAIN_KGPS, SUSTAIN_S = 1.5, 4.0
"""Burn rates and times. 18 kg at 6 kg/s are those of the missile of LAG (github.com/liuqh16/LAG), which burns them in
3 s; that the last third is a sustainer's is ours."""
EXHAUST_MPS = 230.0 * GRAVITY_MPS2
"""Specific impulse of 230 s: solid double-base propellants have 220 to 250 s (Sutton, Rocket Propulsion Elements, 7th
ed., table 12-1); LAG's has 120 s."""
DRAG = 0.7
"""Drag coefficient of a missile that flies straight. By the formulas of Fleeman (Tactical Missile Design, 2nd ed., ch.
2) a body of 23 diameters with a nose of 1.5 has 0.18 by friction, 0.13 at its base and 0.3 by waves at Mach 2 and 5 km;
0.1 for the fins is ours. LAG's missile has 0.4."""
LIFT_AREA_M2 = 0.5 * math.pi * SPAN_M * SPAN_M
"""Lift by dynamic pressure and angle of attack, m^2/rad: a slender wing of that span (Jones, NACA Report 835, 1946).
The drag of the lift is lift times angle of attack."""
MOST_ATTACK_RAD = math.radians(25.0)
"""Largest angle of attack. Ours."""
MOST_LIFT_MPS2 = 30.0 * GRAVITY_MPS2
"""Largest acceleration by lift, 30 g: LAG's."""
NAVIGATION = 4.0
"""Gain of the navigation; 3 to 5 are usual (Zarchan, Tactical and Strategic Missile Guidance, 6th ed., ch. 2)."""
LIFE_S, SLOWEST_MPS = 60.0, 150.0
"""Time of flight and speed at which a missile destroys itself: LAG's."""
SEA_LEVEL_KGPM3, LAPSE_PER_M, DENSITY_EXPONENT = 1.225, 2.25577e-5, 4.25588
"""Density of the air, rho0 (1 - L h)^n: ICAO standard atmosphere up to 11 km, higher than fights go."""

FREE, GUIDED, LOST, HIT, GONE = range(5)
"""Values of ``missile.status``: not launched, follows its target, flies on without it, has hit, destroyed itself."""

MISSILE = np.dtype(
    [
        ("north_m", "f8"),
        ("east_m", "f8"),
        ("altitude_m", "f8"),
        ("velocity_north_mps", "f8"),
        ("velocity_east_mps", "f8"),
        ("velocity_down_mps", "f8"),
        ("flight_s", "f8"),  # since the launch
        ("lift_mps2", "f8"),  # acceleration by lift in the last frame
        ("closest_m", "f8"),  # to the target, since the launch
        ("shooter", "i8"),  # slot in the fight
        ("target", "i8"),
        ("status", "i8"),
    ],
    align=True,
)
"""A missile; all zero is one that was not launched."""

MISSILE_PARAMETERS = (
    Parameter("red_missiles", 2.0, 0.0, 8.0, "1", "missiles of each aircraft of red", at_start=True, whole=True),
    Parameter("blue_missiles", 2.0, 0.0, 8.0, "1", "missiles of each aircraft of blue", at_start=True, whole=True),
    Parameter("missile_damage", 1.0, 0.0, 1.0, "1", "health that a missile takes"),
    Parameter("lethal_m", 8.0, 0.1, 100.0, "m", "miss distance within which a missile hits"),
    Parameter("seeker_deg", 40.0, 1.0, 90.0, "deg", "angle off its velocity up to which a missile sees its target"),
    Parameter("seeker_rear_m", 10_000.0, 100.0, 1e5, "m", "range at which it sees a target from right behind"),
    Parameter("seeker_front_m", 1000.0, 100.0, 1e5, "m", "range at which it sees a target from the side and ahead"),
    Parameter("launch_deg", 30.0, 1.0, 90.0, "deg", "angle off the nose up to which a missile can be launched"),
    Parameter("launch_near_m", 1000.0, 0.0, 1e5, "m", "smallest range of a launch", up_to="launch_far_m"),
    Parameter("launch_far_m", 5000.0, 0.0, 1e5, "m", "largest range of a launch"),
)


# ------------------------------------------------------------------------------------------------------------ flight


def burnt_kg(flight_s):
    """Propellant burnt until a time of flight, kg."""
    return BOOST_KGPS * clip(flight_s, 0.0, BOOST_S) + SUSTAIN_KGPS * clip(flight_s - BOOST_S, 0.0, SUSTAIN_S)


def air_density_kgpm3(altitude_m, deviation):
    """Density at a height, with the deviation of the day (`density_deviation`, a share)."""
    return SEA_LEVEL_KGPM3 * max(1.0 - LAPSE_PER_M * altitude_m, 0.0) ** DENSITY_EXPONENT * (1.0 + deviation)


def in_flight(missile):
    """Whether a missile flies, with or without its target."""
    return missile.status == GUIDED or missile.status == LOST


def fly(missile, past_m, target, p):
    """Flies a missile for one period; returns whether it hits.

    Args:
        missile: `MISSILE` record in flight.
        past_m: Where the target was when the period began: float64 [3], north, east, up.
        target: Its aircraft record at the end of the period.
        p: Parameters of the match: `MISSILE_PARAMETERS`, `floor_m` and `density_deviation`.
    """
    step_n = (target.north_m - past_m[0]) / FRAMES
    step_e = (target.east_m - past_m[1]) / FRAMES
    step_d = (past_m[2] - target.altitude_m) / FRAMES
    nose_n, nose_e, nose_d = rotate_to_earth(target, 1.0, 0.0, 0.0)
    for frame in range(FRAMES):
        if in_flight(missile):
            n = past_m[0] + frame * step_n - missile.north_m
            e = past_m[1] + frame * step_e - missile.east_m
            d = missile.altitude_m - past_m[2] + frame * step_d
            distance = max(norm(n, e, d), CLOSEST_M)
            cosine = (n * nose_n + e * nose_e + d * nose_d) / distance
            if not sees(missile, n, e, d, cosine, p):
                missile.status = LOST
            lift_n, lift_e, lift_d = 0.0, 0.0, 0.0
            if missile.status == GUIDED:
                lift_n, lift_e, lift_d = navigate(
                    missile, n, e, d, step_n / FRAME_S, step_e / FRAME_S, step_d / FRAME_S
                )
            old_n, old_e, old_up = missile.north_m, missile.east_m, missile.altitude_m
            move(missile, lift_n, lift_e, lift_d, p.density_deviation)
            end_n = n + step_n - (missile.north_m - old_n)
            end_e = e + step_e - (missile.east_m - old_e)
            end_d = d + step_d + (missile.altitude_m - old_up)
            missile.closest_m = min(missile.closest_m, closest_pass_m(n, e, d, end_n, end_e, end_d))
            if missile.closest_m <= p.lethal_m:
                missile.status = HIT
            elif is_spent(missile, norm(end_n, end_e, end_d) > distance, p.floor_m):
                missile.status = GONE
    return missile.status == HIT


def navigate(missile, n, e, d, target_n, target_e, target_d):
    """Acceleration of the lift that is asked for, m/s^2: north, east, down, across the velocity.

    With v the velocity of the target less the missile's, ``omega x line of sight`` is the part of v across the line of
    sight over the range.

    Args:
        missile: The missile.
        n: North of the target from it, m; then east and down.
        e: East.
        d: Down.
        target_n: Velocity of the target, m/s; then east and down.
        target_e: East.
        target_d: Down.
    """
    distance = max(norm(n, e, d), CLOSEST_M)
    n, e, d = n / distance, e / distance, d / distance
    vn = target_n - missile.velocity_north_mps
    ve = target_e - missile.velocity_east_mps
    vd = target_d - missile.velocity_down_mps
    closing = -(vn * n + ve * e + vd * d)
    gain = NAVIGATION * max(closing, 0.0) / distance
    an = gain * (vn + closing * n)
    ae = gain * (ve + closing * e)
    ad = gain * (vd + closing * d) - GRAVITY_MPS2
    speed = max(speed_mps(missile), 1.0)
    n = missile.velocity_north_mps / speed
    e = missile.velocity_east_mps / speed
    d = missile.velocity_down_mps / speed
    along = an * n + ae * e + ad * d
    return an - along * n, ae - along * e, ad - along * d


def speed_mps(missile):
    """Its speed."""
    return norm(missile.velocity_north_mps, missile.velocity_east_mps, missile.velocity_down_mps)


def move(missile, lift_n, lift_e, lift_d, deviation):
    """Flies a missile for one frame with the acceleration that its lift is asked for, as far as it can give it."""
    vn, ve, vd = missile.velocity_north_mps, missile.velocity_east_mps, missile.velocity_down_mps
    start = max(norm(vn, ve, vd), 1.0)
    before = LAUNCH_KG - burnt_kg(missile.flight_s)
    after = LAUNCH_KG - burnt_kg(missile.flight_s + FRAME_S)
    mass = 0.5 * (before + after)
    density = air_density_kgpm3(missile.altitude_m, deviation)
    area_m2_per_kg = 0.5 * density * start * start * LIFT_AREA_M2 / mass  # acceleration by angle of attack
    asked = norm(lift_n, lift_e, lift_d)
    given = min(asked, MOST_LIFT_MPS2, area_m2_per_kg * MOST_ATTACK_RAD)
    missile.lift_mps2 = given
    drag_per_m = 0.5 * density * SECTION_M2 * DRAG / mass
    drag_of_lift = given * given / area_m2_per_kg if given > 0.0 else 0.0
    half = 0.5 * FRAME_S
    speed = slowed(start, drag_per_m, drag_of_lift, half) + EXHAUST_MPS * math.log(before / after)
    speed = slowed(speed, drag_per_m, drag_of_lift, half)
    angle = given * FRAME_S / (0.5 * (start + speed))
    ahead, across = math.cos(angle) * speed / start, math.sin(angle) * speed / max(asked, 1e-9)
    new_n = ahead * vn + across * lift_n
    new_e = ahead * ve + across * lift_e
    new_d = ahead * vd + across * lift_d + GRAVITY_MPS2 * FRAME_S
    missile.velocity_north_mps, missile.velocity_east_mps, missile.velocity_down_mps = new_n, new_e, new_d
    missile.north_m += half * (vn + new_n)
    missile.east_m += half * (ve + new_e)
    missile.altitude_m -= half * (vd + new_d)
    missile.flight_s += FRAME_S


def slowed(speed, drag_per_m, drag_of_lift, seconds):
    """Speed after a time of drag ``k v^2`` (k in 1/m), v / (1 + k v t), and of the constant drag of the lift."""
    return max(speed / (1.0 + drag_per_m * speed * seconds) - drag_of_lift * seconds, 1.0)


def is_spent(missile, opening, floor_m):
    """Whether a missile destroys itself: too old, too slow, too low, or burnt out and falling behind its target."""
    return (
        missile.flight_s >= LIFE_S
        or speed_mps(missile) < SLOWEST_MPS
        or missile.altitude_m < floor_m
        or (opening and missile.flight_s >= BOOST_S + SUSTAIN_S)
    )


# ------------------------------------------------------------------------------------------------------------ seeker


def lock_range_m(cosine, p):
    """Range at which the seeker sees a target.

    Args:
        cosine: Of the angle between the line of sight from the missile and the target's nose: 1 is right behind it.
        p: Parameters.
    """
    front, rear = p.seeker_front_m * p.seeker_front_m, p.seeker_rear_m * p.seeker_rear_m
    return math.sqrt(front + (rear - front) * max(cosine, 0.0))


def sees(missile, n, e, d, cosine, p):
    """Whether a missile that flies has its target: it had it, and it is in the cone and in range of the seeker."""
    if missile.status != GUIDED:
        return False
    distance, speed = max(norm(n, e, d), CLOSEST_M), max(speed_mps(missile), 1.0)
    along = n * missile.velocity_north_mps + e * missile.velocity_east_mps + d * missile.velocity_down_mps
    in_cone = along >= math.cos(math.radians(p.seeker_deg)) * distance * speed
    return in_cone and distance <= lock_range_m(cosine, p)


# ------------------------------------------------------------------------------------------------------------ launch


def arm(s, slot):
    """Loads an aircraft, when a match starts."""
    p = s.parameters
    s.ammunition[slot] = int(p.red_missiles if s.team[slot] == RED else p.blue_missiles)


def may_launch(s, shooter, target):
    """Whether an aircraft can launch a missile at another: ammunition, a free record, cone, range, and a lock."""
    ready = s.ammunition[shooter] > 0 and free_missile(s, shooter) >= 0
    return ready and in_envelope(s.body[shooter], s.body[target], s.parameters)


def in_envelope(shooter, target, p):
    """Whether a target is in cone and range of a launch and of the seeker, which looks along the velocity at first."""
    n, e, d = target.north_m - shooter.north_m, target.east_m - shooter.east_m, shooter.altitude_m - target.altitude_m
    distance = norm(n, e, d)
    if distance < p.launch_near_m or distance > p.launch_far_m or distance < CLOSEST_M:
        return False
    ahead, _, _ = rotate_to_body(shooter, n, e, d)
    its_ahead, _, _ = rotate_to_body(target, n, e, d)
    vn, ve, vd = shooter.velocity_north_mps, shooter.velocity_east_mps, shooter.velocity_down_mps
    along = (n * vn + e * ve + d * vd) / max(norm(vn, ve, vd), 1.0)
    in_cone = ahead >= math.cos(math.radians(p.launch_deg)) * distance
    is_seen = along >= math.cos(math.radians(p.seeker_deg)) * distance
    return in_cone and is_seen and distance <= lock_range_m(its_ahead / distance, p)


def free_missile(s, shooter):
    """Number of a record of its own for the next missile of an aircraft, -1 while all are in flight."""
    each = s.missiles.shape[0] // s.body.shape[0]
    for k in range(shooter * each, (shooter + 1) * each):
        if not in_flight(s.missiles[k]):
            return k
    return -1


def launch(s, shooter, target):
    """Launches a missile, which `may_launch` allows; it starts with the velocity of the aircraft."""
    body = s.body[shooter]
    missile = s.missiles[free_missile(s, shooter)]
    start_missile(missile, body.north_m, body.east_m, body.altitude_m, shooter, target)
    missile.velocity_north_mps = body.velocity_north_mps
    missile.velocity_east_mps = body.velocity_east_mps
    missile.velocity_down_mps = body.velocity_down_mps
    s.ammunition[shooter] -= 1


def start_missile(missile, north_m, east_m, altitude_m, shooter, target):
    """Puts a missile into the air at a place; the caller writes its velocity."""
    missile.north_m, missile.east_m, missile.altitude_m = north_m, east_m, altitude_m
    missile.flight_s, missile.lift_mps2, missile.closest_m = 0.0, 0.0, 1e9
    missile.shooter, missile.target, missile.status = shooter, target, GUIDED


# ----------------------------------------------------------------------------------------------------------- warning


def time_to_go_s(missile, body):
    """Range by closing speed, s, at most 60; 60 for a missile that does not come closer."""
    n, e, d = missile.north_m - body.north_m, missile.east_m - body.east_m, body.altitude_m - missile.altitude_m
    distance = max(norm(n, e, d), CLOSEST_M)
    closing = closing_mps(missile, body)
    return min(distance / closing, LIFE_S) if closing > 0.0 else LIFE_S


def closing_mps(missile, body):
    """Speed at which a missile and an aircraft get closer."""
    n, e, d = missile.north_m - body.north_m, missile.east_m - body.east_m, body.altitude_m - missile.altitude_m
    along = (
        n * (missile.velocity_north_mps - body.velocity_north_mps)
        + e * (missile.velocity_east_mps - body.velocity_east_mps)
        + d * (missile.velocity_down_mps - body.velocity_down_mps)
    )
    return -along / max(norm(n, e, d), CLOSEST_M)


INBOUND = 2
"""Missiles that a pilot is warned of, the one that arrives first before the other."""

TIME_UNIT_S = 10.0
"""Scale of a time to go."""

MISSILES = ("first missile", "second missile")
WARNING_FIELDS = (
    Field(
        "warning",
        (INBOUND,),
        0.0,
        1.0,
        "1",
        "1 for a missile that follows this aircraft, first the next to arrive",
        parts=MISSILES,
    ),
    Field(
        "warning_direction",
        (INBOUND, 3),
        -1.0,
        1.0,
        "1",
        "unit vector to it in body axes, 0 without one",
        parts=BODY_AXES,
    ),
    Field("warning_range", (INBOUND,), 0.0, 5.0, "10 km", "its distance, 0 without one", parts=MISSILES),
    Field(
        "warning_closure",
        (INBOUND,),
        -5.0,
        5.0,
        "340 m/s",
        "speed at which it gets closer, 0 without one",
        parts=MISSILES,
    ),
    Field(
        "warning_time", (INBOUND,), 0.0, 6.0, "10 s", "distance by closure, at most 60 s, 0 without one", parts=MISSILES
    ),
)
"""What a pilot is told of the missiles that follow its aircraft, as `write_warnings` writes it."""


def threat(s, slot, after):
    """Number of the next missile to arrive that follows an aircraft, -1 without one.

    Args:
        s: Match record with `body` and `missiles`.
        slot: The aircraft.
        after: Number of the one that arrives just before it; -1 for the first.
    """
    best, best_s = -1, 0.0
    least_s = time_to_go_s(s.missiles[after], s.body[slot]) if after >= 0 else -1.0
    for k in range(s.missiles.shape[0]):
        if s.missiles[k].status == GUIDED and s.missiles[k].target == slot and k != after:
            time_s = time_to_go_s(s.missiles[k], s.body[slot])
            later = time_s > least_s or (time_s == least_s and k > after)
            if later and (best < 0 or time_s < best_s):
                best, best_s = k, time_s
    return best


def write_warnings(o, s, slot):
    """Writes `WARNING_FIELDS`, which are zero before."""
    ego, k = s.body[slot], -1
    for row in range(INBOUND):
        k = threat(s, slot, k)
        if k < 0:
            return
        missile = s.missiles[k]
        north, east = missile.north_m - ego.north_m, missile.east_m - ego.east_m
        x, y, z = rotate_to_body(ego, north, east, ego.altitude_m - missile.altitude_m)
        distance = max(norm(x, y, z), CLOSEST_M)
        o.warning[row] = 1.0
        o.warning_direction[row, 0] = clip(x / distance, -1.0, 1.0)
        o.warning_direction[row, 1] = clip(y / distance, -1.0, 1.0)
        o.warning_direction[row, 2] = clip(z / distance, -1.0, 1.0)
        o.warning_range[row] = clip(distance / RANGE_UNIT_M, 0.0, 5.0)
        o.warning_closure[row] = clip(closing_mps(missile, ego) / SPEED_UNIT_MPS, -5.0, 5.0)
        o.warning_time[row] = time_to_go_s(missile, ego) / TIME_UNIT_S
