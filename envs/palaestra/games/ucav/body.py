"""The aircraft as the rules see it: one record per slot that an engine fills and the rules read.

Frame: flat local north-east-down of the match's origin on the equator; heading 0 is north, positive roll is right wing
down, positive pitch is nose up. An engine reads the commands and the air and writes everything else.
"""

from __future__ import annotations

import numpy as np

PERIOD_S = 0.1
"""Time that an engine flies on one set of commands, s: the rules are evaluated once a period."""

RED, BLUE = 0, 1
"""Slots of the two aircraft of a fight, and numbers of their teams."""
COUNT = 2
"""Aircraft in a fight, each of its own team."""

BODY = np.dtype(
    [
        # commands, written by the rules, read by the engine; each in [-1, 1], throttle in [0, 1]
        ("aileron_command", "f8"),  # positive rolls right
        ("elevator_command", "f8"),  # positive is nose UP (JSBSim's own sign is the opposite: the engine flips it)
        ("rudder_command", "f8"),  # positive yaws right
        ("throttle_command", "f8"),  # 0 idle, 0.5 military power, 1 full afterburner; below 0: see `NOT_FLOWN`
        # the air around the aircraft, written by the rules, read by the engine in every period
        ("wind_north_mps", "f8"),  # velocity of the air over the ground
        ("wind_east_mps", "f8"),
        ("wind_down_mps", "f8"),
        # read by the engine when it loads a flight
        ("density_deviation", "f8"),  # of the air from the standard day at all heights, as a share: 0.1 is 10 % denser
        ("payload_kg", "f8"),  # at the centre of gravity of the empty aircraft
        # kinematics, written by the engine (and by `reset`, as the initial condition that the engine loads)
        ("north_m", "f8"),
        ("east_m", "f8"),
        ("altitude_m", "f8"),
        ("roll_rad", "f8"),
        ("pitch_rad", "f8"),
        ("heading_rad", "f8"),  # of the nose, in [0, 2 pi)
        ("true_airspeed_mps", "f8"),
        # written by the engine only
        ("velocity_north_mps", "f8"),  # over the ground
        ("velocity_east_mps", "f8"),
        ("velocity_down_mps", "f8"),
        ("u_mps", "f8"),  # velocity through the air in body axes: forward, right, down
        ("v_mps", "f8"),
        ("w_mps", "f8"),
        ("p_radps", "f8"),
        ("q_radps", "f8"),
        ("r_radps", "f8"),
        ("flight_path_angle_rad", "f8"),
        ("angle_of_attack_rad", "f8"),
        ("sideslip_rad", "f8"),
        ("load_factor_g", "f8"),  # +1 in level flight
        ("mach", "f8"),
        ("calibrated_airspeed_mps", "f8"),
        ("engine_n2_fraction", "f8"),
        ("fuel_kg", "f8"),
        ("finite", "u1"),  # 0 as soon as an output is not a finite number; the others keep their last finite value
        ("in_tables", "u1"),  # 0 outside the envelope of the engine's aerodynamic tables
        ("reserved", "u1", (6,)),  # no gaps: a copy leaves them undefined, and bytes are compared
    ],
    align=True,
)

NOT_FLOWN = -1.0
"""Throttle of an aircraft that no engine flies, as one that is out of the match: its record stays as it is."""


def opponent_of(slot):
    """Slot of the aircraft that one fights: its target and the one that shoots at it.

    Each has exactly one. With teams of several, this is where a target is chosen.
    """
    return BLUE if slot == RED else RED
