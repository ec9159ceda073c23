"""The learned inner loop: what it sees, and how it flies an aircraft record from inside the rules of another game.

`palaestra/UcavTrack-v3` trains it with the observation `TRACKING`; the dogfight writes the same observation with the
same function and evaluates the saved network (`palaestra.kernels.networks`) in its `command` hook. Both are kernel
functions, so an inner loop costs no call into a learning framework and plays back to the bit.
"""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np

import palaestra_assets
from palaestra.core.contract.fields import record_dtype
from palaestra.core.files import LONGEST_LINE, FileError, escaped, open_regular, printable
from palaestra.game import Continuous, Field, Importing
from palaestra.games.ucav.body import PERIOD_S
from palaestra.games.ucav.sight import ALTITUDE, MACH, MOTION, SPEED_UNIT_MPS, SUPPLY, write_ego
from palaestra.kernels.angles import wrap_angle_rad
from palaestra.kernels.networks import WIDEST, Network, make_network, mlp
from palaestra.kernels.scalars import clip

SPEED_ERROR_UNIT_MPS = 100.0
TIME_UNIT_S = 10.0
LARGEST_ERROR = 5.0
"""Scales of the command part, and where its errors are clipped."""
NEAR, MOST_INTEGRAL_S = 0.05, 0.1
"""In the units of the errors: how near to the command an error is integrated, and the bound of its integral."""

STICK = (
    Continuous("aileron", about="positive rolls right"),
    Continuous("elevator", about="positive is nose up"),
    Continuous("rudder", about="positive yaws right"),
    Continuous("throttle", about="-1 idle, 0 military power, 1 full afterburner"),
)


def tracking_table(turn: str, climb: str, climb_unit: str) -> tuple[Field, ...]:
    """Observation of the inner loop; every command mode has the same layout.

    Args:
        turn: What the first error is an error of.
        climb: What the second error is an error of.
        climb_unit: Value of 1 in the second error.
    """
    return (
        ALTITUDE,
        *MOTION,
        MACH,
        Field("calibrated_airspeed", (), 0.0, 5.0, "340 m/s", "what the air feels like: root of dynamic pressure"),
        *SUPPLY,
        Field(
            "turn_error",
            (2,),
            -1.0,
            1.0,
            "1",
            f"sine and cosine of the {turn} error, command minus own",
            parts=("sine", "cosine"),
        ),
        Field("climb_error", (), -LARGEST_ERROR, LARGEST_ERROR, climb_unit, f"{climb} error, command minus own"),
        Field("speed_error", (), -LARGEST_ERROR, LARGEST_ERROR, "100 m/s", "true airspeed error, command minus own"),
        Field("command_age", (), 0.0, 5.0, "10 s", "time since the command was given"),
        Field(
            "last_action",
            (4,),
            -1.0,
            1.0,
            "1",
            "aileron, elevator, rudder and throttle of the last action",
            parts=tuple(control.name for control in STICK),
        ),
        Field("pull_error", (), -LARGEST_ERROR, LARGEST_ERROR, climb_unit, f"{climb} error times the cosine of roll"),
        Field(
            "integrals",
            (3,),
            -1.0,
            1.0,
            "0.1 s",
            "time integrals of the three errors, angles in rad",
            parts=(turn, climb, "speed"),
        ),
    )


TRACKING = tracking_table("roll angle", "flight-path angle", "rad")
TRACKING_SIZE = sum(f.size for f in TRACKING)
"""Numbers in it: inputs of a network."""

INNER_LOOP_SCRATCH = (
    ("tracking", record_dtype(TRACKING)),
    ("inputs", "f8", (WIDEST,)),
    ("front", "f8", (WIDEST,)),
    ("back", "f8", (WIDEST,)),
)
"""Work fields that a game with a learned inner loop adds to its scratch record."""


def integrate_errors(integrals, turn_error_rad, climb_error, speed_error_mps):
    """Adds the errors of one period to their integrals ``[3]``.

    An error that is larger than `NEAR` adds nothing: on the way to a command the integrals would wind up.

    Args:
        integrals: In the units of the observation times seconds, within `MOST_INTEGRAL_S`; zero at the start.
        turn_error_rad: Error of the angle that the mode turns by.
        climb_error: Error in the unit of the mode's table.
        speed_error_mps: Error of the true airspeed.
    """
    integrals[0] = integrate(integrals[0], turn_error_rad)
    integrals[1] = integrate(integrals[1], climb_error)
    integrals[2] = integrate(integrals[2], speed_error_mps / SPEED_ERROR_UNIT_MPS)


def integrate(integral, error):
    """The integral after one more period."""
    if abs(error) > NEAR:
        return integral
    return clip(integral + error * PERIOD_S, -MOST_INTEGRAL_S, MOST_INTEGRAL_S)


def write_tracking_observation(o, body, integrals, turn_error_rad, climb_error, speed_error_mps, command_age_s):
    """Writes the observation of the inner loop.

    Args:
        o: Record of `tracking_table`.
        body: Aircraft record; its commands are the last action.
        integrals: As of `integrate_errors`.
        turn_error_rad: Error of the angle that the mode turns by.
        climb_error: Error in the unit of the mode's table.
        speed_error_mps: Error of the true airspeed.
        command_age_s: Time since the command was given.
    """
    write_ego(o, body)
    o.calibrated_airspeed = clip(body.calibrated_airspeed_mps / SPEED_UNIT_MPS, 0.0, 5.0)
    o.turn_error[0], o.turn_error[1] = math.sin(turn_error_rad), math.cos(turn_error_rad)
    o.climb_error = clip(climb_error, -LARGEST_ERROR, LARGEST_ERROR)
    o.speed_error = clip(speed_error_mps / SPEED_ERROR_UNIT_MPS, -LARGEST_ERROR, LARGEST_ERROR)
    o.command_age = clip(command_age_s / TIME_UNIT_S, 0.0, 5.0)
    o.last_action[0] = clip(body.aileron_command, -1.0, 1.0)
    o.last_action[1] = clip(body.elevator_command, -1.0, 1.0)
    o.last_action[2] = clip(body.rudder_command, -1.0, 1.0)
    o.last_action[3] = clip(2.0 * body.throttle_command - 1.0, -1.0, 1.0)
    o.pull_error = clip(climb_error, -LARGEST_ERROR, LARGEST_ERROR) * math.cos(body.roll_rad)
    for i in range(3):
        o.integrals[i] = integrals[i] / MOST_INTEGRAL_S


def flatten(o, x):
    """Copies a tracking observation into a row of numbers, in the order of the table: `TRACKING_SIZE` of them."""
    x[0] = o.altitude
    x[1], x[2] = o.roll[0], o.roll[1]
    x[3], x[4] = o.pitch[0], o.pitch[1]
    x[5], x[6], x[7] = o.velocity[0], o.velocity[1], o.velocity[2]
    x[8], x[9] = o.airspeed, o.climb_rate
    x[10], x[11], x[12] = o.rates[0], o.rates[1], o.rates[2]
    x[13], x[14], x[15], x[16] = o.angle_of_attack, o.sideslip, o.load_factor, o.mach
    x[17], x[18], x[19] = o.calibrated_airspeed, o.engine, o.fuel
    x[20], x[21] = o.turn_error[0], o.turn_error[1]
    x[22], x[23], x[24] = o.climb_error, o.speed_error, o.command_age
    x[25], x[26], x[27], x[28] = o.last_action[0], o.last_action[1], o.last_action[2], o.last_action[3]
    x[29] = o.pull_error
    x[30], x[31], x[32] = o.integrals[0], o.integrals[1], o.integrals[2]


def steer_by_network(
    weights,
    biases,
    sizes,
    scratch,
    body,
    integrals,
    roll_command_rad,
    flight_path_command_rad,
    speed_command_mps,
    command_age_s,
):
    """Lets a trained network fly roll, flight-path angle and speed for a period. Writes the commands of ``body``.

    Args:
        weights: As in `palaestra.kernels.networks.Network`, from the game's `world`.
        biases: As above.
        sizes: As above; `TRACKING_SIZE` inputs, 4 outputs in the units of the action of `palaestra/UcavTrack-v3`.
        scratch: Record with the fields `INNER_LOOP_SCRATCH`.
        body: Aircraft record.
        integrals: Those of the aircraft, [3]; brought up to date.
        roll_command_rad: Wanted roll angle.
        flight_path_command_rad: Wanted climb angle of the velocity.
        speed_command_mps: Wanted true airspeed.
        command_age_s: Time since the command was given.
    """
    roll_error_rad = wrap_angle_rad(roll_command_rad - body.roll_rad)
    flight_path_error_rad = wrap_angle_rad(flight_path_command_rad - body.flight_path_angle_rad)
    speed_error_mps = speed_command_mps - body.true_airspeed_mps
    integrate_errors(integrals, roll_error_rad, flight_path_error_rad, speed_error_mps)
    write_tracking_observation(
        scratch.tracking, body, integrals, roll_error_rad, flight_path_error_rad, speed_error_mps, command_age_s
    )
    flatten(scratch.tracking, scratch.inputs)
    mlp(weights, biases, sizes, scratch.inputs, scratch.front, scratch.back)
    body.aileron_command = clip(scratch.front[0], -1.0, 1.0)
    body.elevator_command = clip(scratch.front[1], -1.0, 1.0)
    body.rudder_command = clip(scratch.front[2], -1.0, 1.0)
    body.throttle_command = 0.5 * (clip(scratch.front[3], -1.0, 1.0) + 1.0)


def load_inner_loop(inner_loop: str) -> Network:
    """The network that flies macros.

    Args:
        inner_loop: ``"ppo"`` is the one among the assets, anything else the path of a ``.safetensors`` file, such as
            `palaestra_baselines.ppo_tracking` writes: ``layer_0.weight`` [outputs, inputs], ``layer_0.bias``
            [outputs], and so on.

    Raises:
        FileError: No such layers, they do not fit each other or are too wide, or the network does not take the
            observation of `TRACKING` or does not give four commands.
        FileNotFoundError: There is no such file.
        ImportError: The package safetensors is missing; the message names the extra that brings it.
    """
    path = palaestra_assets.path("weights/ucav_inner_loop.safetensors") if inner_loop == "ppo" else Path(inner_loop)
    if not path.exists():
        raise FileNotFoundError(
            f'no inner loop at {escaped(str(path))}: give "pid", "ppo" or the .safetensors file of a trained one'
        )
    open_regular(path).close()  # a pipe would keep safetensors waiting
    try:
        network = make_network(_layers(path))
        if network.sizes[0] != TRACKING_SIZE or network.sizes[-1] != len(STICK):
            raise ValueError(f"its layers have {network.sizes.tolist()} numbers")
    except (ValueError, TypeError, KeyError, AttributeError) as error:  # the last three: dtypes that NumPy has not
        reason = printable(str(error) or type(error).__name__, LONGEST_LINE)
        raise FileError(f"{path} is no inner loop: {reason}: give the file of a trained one") from error
    return network


def _layers(path: Path) -> list[tuple[np.ndarray, np.ndarray]]:
    with Importing("safetensors", 'a learned inner loop needs safetensors: pip install "palaestra[flight]"'):
        from safetensors import SafetensorError, safe_open
    try:
        with safe_open(path, "numpy") as file:
            names = sorted(file.keys())
            layers = [(f"layer_{k}.weight", f"layer_{k}.bias") for k in range(len(names) // 2)]
            if not names or names != sorted(itertools.chain(*layers)):
                raise ValueError("expected layer_0.weight, layer_0.bias, ... and nothing else")
            return [(file.get_tensor(weight), file.get_tensor(bias)) for weight, bias in layers]
    except SafetensorError as error:
        raise ValueError(str(error)) from error
