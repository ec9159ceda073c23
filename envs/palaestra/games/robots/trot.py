"""The trot of a quadruped: a commanded velocity becomes targets of its twelve joints, 50 times a second.

Feet of opposite corners move together. A foot on the ground goes back as fast as the trunk is to go ahead; one in the
air returns on an arc. Steps are longer where the trunk is faster than wanted (Raibert's rule), and an
integral of the velocity's error takes away what is left of it. Joints follow by inverse kinematics.
"""

from __future__ import annotations

import math

from palaestra.games.robots.quadruped import HIP_X_M, HIP_Y_M, LINK_M, SIDE_M

PERIOD_S = 0.02
STEPS_HZ = 3.0
CONTACT_S = 0.5 / STEPS_HZ
"""Time of a foot on the ground in a step."""
LIFT_M = 0.07
HEIGHT_M = 0.265
"""From the hips to the middle of a foot on the ground."""
STEP_GAIN_S = 0.04
"""Metres of a step for each m/s that the trunk is too fast."""
INTEGRAL_GAIN_PS = 1.0
MOST_CORRECTION = (0.3, 0.15, 0.3)
"""Of the integral: m/s, m/s, rad/s. Larger ones hold a robot that stumbles in its stumbling."""
MOST_CHANGE = (0.06, 0.04, 0.1)
"""Most that what is wanted changes in a period: m/s, m/s, rad/s."""
TOP = (1.0, 0.5, 1.0)
"""Velocity ahead (m/s), to the left (m/s), turning to the left (rad/s) that 1 commands."""


def start_trot(robot):
    """Feet in the middle of their ways, nothing wanted."""
    robot.phase = 0.25
    for k in range(3):
        robot.wanted[k] = 0.0
        robot.correction[k] = 0.0
    set_joints(robot, 0.0, 0.0, 0.0)


def trot(robot, ahead, left, turn):
    """Sets the targets of the joints for the next period.

    Args:
        robot: Record of a robot, `palaestra.games.robots.quadruped.ROBOT`.
        ahead: Command along the trunk, in [-1, 1], as `left` and `turn`; what is longer than 1 together is shortened.
        left: Command to the left.
        turn: Command of turning to the left.
    """
    length = max(1.0, math.sqrt(ahead * ahead + left * left + turn * turn))
    approach(robot, 0, ahead / length)
    approach(robot, 1, left / length)
    approach(robot, 2, turn / length)
    cos, sin = math.cos(heading(robot)), math.sin(heading(robot))
    speed = cos * robot.velocity_mps[0] + sin * robot.velocity_mps[1]
    drift = cos * robot.velocity_mps[1] - sin * robot.velocity_mps[0]
    correct(robot, 0, speed)
    correct(robot, 1, drift)
    correct(robot, 2, robot.turn_radps[2])
    robot.phase += STEPS_HZ * PERIOD_S
    robot.phase -= math.floor(robot.phase)
    set_joints(robot, STEP_GAIN_S * (speed - robot.wanted[0]), STEP_GAIN_S * (drift - robot.wanted[1]), 1.0)


def heading(body):
    """Where a body looks, in rad from the x axis."""
    w, x, y, z = body.quaternion[0], body.quaternion[1], body.quaternion[2], body.quaternion[3]
    return math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))


def approach(robot, k, share):
    """What is wanted goes towards a share of the top speed."""
    change = TOP[k] * share - robot.wanted[k]
    robot.wanted[k] += min(max(change, -MOST_CHANGE[k]), MOST_CHANGE[k])


def correct(robot, k, measured):
    """Adds the error of a velocity to its integral."""
    grown = robot.correction[k] + INTEGRAL_GAIN_PS * PERIOD_S * (robot.wanted[k] - measured)
    robot.correction[k] = min(max(grown, -MOST_CORRECTION[k]), MOST_CORRECTION[k])


def set_joints(robot, step_ahead_m, step_left_m, lift):
    """Targets of all joints at the phase of the trot."""
    ahead = robot.wanted[0] + robot.correction[0]
    left = robot.wanted[1] + robot.correction[1]
    turn = robot.wanted[2] + robot.correction[2]
    for leg in range(4):
        front = 1.0 - 2.0 * (leg // 2)
        side = 2.0 * (leg % 2) - 1.0
        foot_x, foot_y = front * HIP_X_M, side * (HIP_Y_M + SIDE_M)
        phase = robot.phase + 0.5 * (leg == 1 or leg == 2)
        phase -= math.floor(phase)
        if phase < 0.5:
            share, up = 0.5 - 2.0 * phase, 0.0
        else:
            passed = 2.0 * phase - 1.0
            share, up = -0.5 * math.cos(math.pi * passed), lift * LIFT_M * math.sin(math.pi * passed)
        x = CONTACT_S * (ahead - turn * foot_y) * share + step_ahead_m
        y = CONTACT_S * (left + turn * foot_x) * share + step_left_m + side * SIDE_M
        z = -HEIGHT_M + up
        reach(robot, leg, side * SIDE_M, x, y, z)


def reach(robot, leg, offset_m, x, y, z):
    """Joints that bring a foot to a place from the leg's first joint, along the trunk's axes."""
    down = math.sqrt(max(y * y + z * z - offset_m * offset_m, 0.01))
    hip = math.atan2(y, -z) - math.atan2(offset_m, down)
    square = min(x * x + down * down, 3.9 * LINK_M * LINK_M)
    bend = math.acos(square / (2.0 * LINK_M * LINK_M) - 1.0)
    robot.target_rad[3 * leg] = hip
    robot.target_rad[3 * leg + 1] = math.atan2(-x, down) + 0.5 * bend
    robot.target_rad[3 * leg + 2] = -bend


def steer(robot, action, x, y, look, slow_m):
    """A script's command: to a place, looking in a direction; slower within ``slow_m``."""
    way_x, way_y = x - robot.position_m[0], y - robot.position_m[1]
    own = heading(robot)
    ahead = math.cos(own) * way_x + math.sin(own) * way_y
    left = math.cos(own) * way_y - math.sin(own) * way_x
    turn = look - own
    turn -= 2.0 * math.pi * math.floor(turn / (2.0 * math.pi) + 0.5)
    action.velocity[0] = min(max(ahead / slow_m, -1.0), 1.0)
    action.velocity[1] = min(max(2.0 * left / slow_m, -1.0), 1.0)
    action.velocity[2] = min(max(1.5 * turn, -1.0), 1.0)
