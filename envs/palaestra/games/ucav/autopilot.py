"""A cascaded PID that flies an aircraft record: kernel functions, called once a period (`PERIOD_S`).

Outer laws turn what a pilot wants into roll, flight-path angle and speed; `steer` turns those into the four commands
of the record:

* **roll** error -> roll-rate command of the stick, damped by the measured roll rate;
* **flight-path** error -> vertical acceleration -> load factor at this bank (inverted too: there the law pushes to
  stay level and pulls to go down) -> pitch stick, with the turn's own pitch rate fed forward and an integral on the
  load-factor error;
* **speed** error -> throttle, with an integral that stops while the throttle is at a stop;
* **sideslip** and the rate of a coordinated turn -> rudder.

The F-16's flight control system is itself a rate controller (stick -> roll rate, stick -> pitch rate and load
factor), so the laws command it, as a pilot does. ``python -m palaestra_baselines.pid --grid`` compares gains.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from palaestra.games.ucav.body import PERIOD_S
from palaestra.games.ucav.geometry import GRAVITY_MPS2, SLOWEST_MPS
from palaestra.kernels.angles import wrap_angle_rad
from palaestra.kernels.scalars import clip

AUTOPILOT = np.dtype(
    [
        ("aileron_integral", "f8"),  # stick that holds the roll angle
        ("flight_path_integral_g", "f8"),  # what the load factor must be above the law to hold the path
        ("stick_integral", "f8"),  # elevator that holds the load factor
        ("throttle_integral", "f8"),  # throttle that holds the speed
    ],
    align=True,
)
"""Memory of the laws for one aircraft; all zero at the start of a flight."""

LOWEST_LOAD_FACTOR_G = -3.0  # the flight control system limits the stick to -4 g; a margin for the overshoot
HIGHEST_LOAD_FACTOR_G = 7.0  # 9 g ends a match
STEEPEST_TURN_G = 6.0  # vertical acceleration that the flight-path law may ask for, g
FLATTEST_COSINE = 0.25  # beyond 75 degrees of bank no load factor carries the aircraft: the demand fades to 0 at 90
LOWEST_ATTACK_RAD = math.radians(-8.0)  # at this angle of attack the stick no longer pushes
ATTACK_MARGIN_RAD = math.radians(5.0)  # from this much above it on it pushes less
ATTACK_LEAD_S = 0.2  # the angle of attack is predicted this far ahead
MOST_TRIM = 0.2  # bound of the aileron's integral
NEAR_RAD = 0.15  # the integrals of the angles run only this close to the command: on the way there they would wind up
CRUISE_THROTTLE = 0.35  # throttle at zero error and empty integral


class Gains(NamedTuple):
    """Numbers of the laws.

    Attributes:
        roll: Stick per radian of roll error.
        roll_rate: Stick per rad/s of roll rate, against it.
        roll_integral: Stick per radian and second of roll error.
        flight_path: Rate of turn of the flight path per radian of its error, 1/s.
        flight_path_lead: How far ahead the flight path is predicted, because load factor follows the stick late, s.
        flight_path_integral: Load factor per radian and second of flight-path error, g/(rad s).
        pitch_rate: Stick per rad/s of pitch rate that the wanted load factor implies.
        load_factor: Stick per g of load-factor error.
        load_factor_integral: Stick per g and second of load-factor error.
        speed: Throttle per m/s of speed error.
        speed_integral: Throttle per m/s and second of speed error.
        sideslip: Rudder per radian of sideslip.
        turn_rate: Rudder per rad/s of the yaw rate of a coordinated turn.
    """

    roll: float
    roll_rate: float
    roll_integral: float
    flight_path: float
    flight_path_lead: float
    flight_path_integral: float
    pitch_rate: float
    load_factor: float
    load_factor_integral: float
    speed: float
    speed_integral: float
    sideslip: float
    turn_rate: float


GAINS = Gains(
    roll=2.0,
    roll_rate=0.1,
    roll_integral=2.0,
    flight_path=4.0,
    flight_path_lead=0.15,
    flight_path_integral=0.5,
    pitch_rate=4.0,
    load_factor=0.05,
    load_factor_integral=0.05,
    speed=0.2,
    speed_integral=0.002,
    sideslip=4.0,
    turn_rate=8.0,
)
"""Gains with which scripts and macros fly."""


TRACKING_GAINS = GAINS._replace(
    roll=3.5,
    roll_rate=0.35,
    roll_integral=9.0,
    flight_path=8.5,
    flight_path_lead=0.2,
    flight_path_integral=0.6,
    sideslip=3.0,
    turn_rate=10.0,
)
"""Gains of the script of `palaestra/UcavTrack-v3`, the reference for learned inner loops.

They settle nearer to the command than `GAINS`, with which scripts and macros fly: half the roll error and 0.6 of that
of the flight path. Over the whole window of a command both are alike: it is the way there, on which stick, load factor
and thrust are at their stops.
"""


def steer(body, autopilot, roll_command_rad, flight_path_command_rad, speed_command_mps):
    """Flies roll, flight-path angle and true airspeed with `GAINS`. Writes the four commands of ``body``."""
    steer_with(GAINS, body, autopilot, roll_command_rad, flight_path_command_rad, speed_command_mps)


def steer_with(gains, body, autopilot, roll_command_rad, flight_path_command_rad, speed_command_mps):
    """The same with any gains.

    Args:
        gains: A `Gains`.
        body: Aircraft record (`palaestra.games.ucav.body.BODY`).
        autopilot: Memory of the laws (`AUTOPILOT`).
        roll_command_rad: Wanted roll angle, any turn.
        flight_path_command_rad: Wanted climb angle of the velocity.
        speed_command_mps: Wanted true airspeed.
    """
    hold_roll(gains, body, autopilot, roll_command_rad)
    pull(gains, body, autopilot, load_factor_for_flight_path(gains, body, autopilot, flight_path_command_rad))
    hold_speed(gains, body, autopilot, speed_command_mps)


def steer_load_factor(body, autopilot, roll_command_rad, load_factor_command_g, speed_command_mps):
    """Flies roll, load factor and true airspeed with `GAINS`. Writes the four commands of ``body``."""
    hold_roll(GAINS, body, autopilot, roll_command_rad)
    pull(GAINS, body, autopilot, load_factor_command_g)
    hold_speed(GAINS, body, autopilot, speed_command_mps)


def hold_roll(gains, body, autopilot, roll_command_rad):
    """Aileron and rudder.

    The stick commands a roll rate, so a proportional law with rate damping settles but for the rolling moment of a
    sideslip, which the integral holds against. The flight control system's yaw damper resists every yaw rate, that of
    a turn too; the rudder cancels it for the rate of a coordinated turn, r = g / V sin(roll) cos(pitch).
    """
    error = wrap_angle_rad(roll_command_rad - body.roll_rad)
    if abs(error) < NEAR_RAD:
        integral = autopilot.aileron_integral + gains.roll_integral * error * PERIOD_S
        autopilot.aileron_integral = clip(integral, -MOST_TRIM, MOST_TRIM)
    stick = gains.roll * error - gains.roll_rate * body.p_radps + autopilot.aileron_integral
    body.aileron_command = clip(stick, -1.0, 1.0)
    radps_per_g = GRAVITY_MPS2 / max(body.true_airspeed_mps, SLOWEST_MPS)
    turn_rate = radps_per_g * math.sin(body.roll_rad) * math.cos(body.pitch_rad)
    body.rudder_command = clip(gains.sideslip * body.sideslip_rad + gains.turn_rate * turn_rate, -1.0, 1.0)


def load_factor_for_flight_path(gains, body, autopilot, flight_path_command_rad):
    """Load factor that turns the flight path towards the command at the present bank, g.

    With lift along the aircraft's normal, V dgamma/dt = g (n cos(roll) - cos(gamma)) (Stevens, Lewis and Johnson, 3rd
    ed., 2.5 in flat flight), so n = (V dgamma/dt / g + cos(gamma)) / cos(roll). Near 90 degrees of bank, where the
    quotient has no bound, it fades to zero.
    """
    error = wrap_angle_rad(flight_path_command_rad - body.flight_path_angle_rad)
    upright = math.cos(body.roll_rad)
    lift_share = 1.0 / upright if abs(upright) >= FLATTEST_COSINE else upright / (FLATTEST_COSINE * FLATTEST_COSINE)
    g_per_radps = max(body.true_airspeed_mps, SLOWEST_MPS) / GRAVITY_MPS2
    turn_rate = (body.load_factor_g * upright - math.cos(body.flight_path_angle_rad)) / g_per_radps
    acceleration_g = g_per_radps * gains.flight_path * (error - gains.flight_path_lead * turn_rate)
    if abs(error) < NEAR_RAD:
        integral = autopilot.flight_path_integral_g + gains.flight_path_integral * error * PERIOD_S
        autopilot.flight_path_integral_g = clip(integral, -1.0, 1.0)
    carried_g = math.cos(body.flight_path_angle_rad) + autopilot.flight_path_integral_g
    wanted_g = (clip(acceleration_g, -STEEPEST_TURN_G, STEEPEST_TURN_G) + carried_g) * lift_share
    return clip(wanted_g, LOWEST_LOAD_FACTOR_G, HIGHEST_LOAD_FACTOR_G)


def pull(gains, body, autopilot, load_factor_command_g):
    """Elevator: the pitch rate that belongs to the load factor, and a PI law on the error.

    q = g / V (n - cos(pitch) cos(roll)) holds in any steady turn. The aerodynamic tables end at -10 degrees of angle
    of attack, which a slow aircraft reaches when it pushes to hold itself inverted: the stick gives way before. (At
    the other end the flight control system does.)
    """
    radps_per_g = GRAVITY_MPS2 / max(body.true_airspeed_mps, SLOWEST_MPS)
    gravity = math.cos(body.pitch_rad) * math.cos(body.roll_rad)
    pitch_rate = radps_per_g * (load_factor_command_g - gravity)
    error = load_factor_command_g - body.load_factor_g
    proportional = gains.pitch_rate * pitch_rate + gains.load_factor * error
    step = gains.load_factor_integral * error * PERIOD_S
    stick = proportional + autopilot.stick_integral + step
    attack_rate = body.q_radps - radps_per_g * (body.load_factor_g - gravity)
    attack = body.angle_of_attack_rad + ATTACK_LEAD_S * attack_rate
    lowest = clip((LOWEST_ATTACK_RAD - attack) / ATTACK_MARGIN_RAD, -1.0, 1.0)
    if (stick < 1.0 or step < 0.0) and (stick > lowest or step > 0.0):
        autopilot.stick_integral = clip(autopilot.stick_integral + step, -1.0, 1.0)
    body.elevator_command = clip(stick, lowest, 1.0)


def hold_speed(gains, body, autopilot, speed_command_mps):
    """Throttle: PI on the true airspeed; the integral stops while the error pushes the throttle against a stop."""
    error = speed_command_mps - body.true_airspeed_mps
    step = gains.speed_integral * error * PERIOD_S
    throttle = CRUISE_THROTTLE + gains.speed * error + autopilot.throttle_integral + step
    if (throttle < 1.0 or step < 0.0) and (throttle > 0.0 or step > 0.0):
        autopilot.throttle_integral = clip(autopilot.throttle_integral + step, -1.0, 1.0)
    body.throttle_command = clip(throttle, 0.0, 1.0)


def heading_to_roll(body, heading_command_rad, steepest_rad):
    """Roll angle that turns towards a heading of the nose: proportional, at most ``steepest_rad``."""
    error = wrap_angle_rad(heading_command_rad - body.heading_rad)
    return clip(2.0 * error, -steepest_rad, steepest_rad)


def altitude_to_flight_path(body, altitude_command_m, steepest_rad):
    """Flight-path angle that closes a difference of altitude in 8 s, at most ``steepest_rad``."""
    rate = (altitude_command_m - body.altitude_m) / 8.0
    limit = math.sin(steepest_rad)
    return math.asin(clip(rate / max(body.true_airspeed_mps, SLOWEST_MPS), -limit, limit))
