"""Macros: roll, flight-path angle and airspeed that an inner loop flies for half a second; how actions encode them."""

from __future__ import annotations

import math

from palaestra.game import Continuous
from palaestra.games.ucav.body import PERIOD_S
from palaestra.kernels.angles import wrap_angle_rad
from palaestra.kernels.scalars import clip

MACRO_PERIODS = 5
"""Periods in which an inner loop flies one macro: 2 Hz."""
MACRO_S = MACRO_PERIODS * PERIOD_S
"""Time between two macros, s."""
ROLL_SPAN_RAD, FLIGHT_PATH_SPAN_RAD = math.pi, math.radians(60.0)
SPEED_LOW_MPS, SPEED_HIGH_MPS = 120.0, 400.0
"""The range of a macro from -1 to 1: roll, flight-path angle (rad, symmetric) and true airspeed (m/s)."""

MACRO = (
    Continuous("roll", unit="180 deg", about="roll angle to hold, positive is right wing down"),
    Continuous("flight_path", unit="60 deg", about="flight-path angle to hold, positive climbs"),
    Continuous("speed", about=f"true airspeed to hold: -1 is {SPEED_LOW_MPS:.0f} m/s, 1 is {SPEED_HIGH_MPS:.0f} m/s"),
)


def read_macro(action):
    """Roll angle, flight-path angle (rad) and true airspeed (m/s) that an action encodes."""
    speed = SPEED_LOW_MPS + 0.5 * (action.speed + 1.0) * (SPEED_HIGH_MPS - SPEED_LOW_MPS)
    return action.roll * ROLL_SPAN_RAD, action.flight_path * FLIGHT_PATH_SPAN_RAD, speed


def write_macro(action, roll_rad, flight_path_rad, speed_mps):
    """Encodes a macro, clipped to its range: the inverse of `read_macro`."""
    action.roll = clip(wrap_angle_rad(roll_rad) / ROLL_SPAN_RAD, -1.0, 1.0)
    action.flight_path = clip(flight_path_rad / FLIGHT_PATH_SPAN_RAD, -1.0, 1.0)
    action.speed = clip((speed_mps - SPEED_LOW_MPS) / (0.5 * (SPEED_HIGH_MPS - SPEED_LOW_MPS)) - 1.0, -1.0, 1.0)
