"""The generated file of an airframe: its numbers and the functions cut out of its frame, as Python source.

The source holds the tables of the aircraft's file, which is JSBSim's (GPL): it is kept in the user's cache and never
becomes part of this project.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from palaestra.games.ucav.aircraft.frame import COMMANDS, INPUTS, POSE, Frame
from palaestra.games.ucav.aircraft.outputs import Limits
from palaestra.games.ucav.aircraft.program import function_text, variable
from palaestra.games.ucav.aircraft.propulsion import contents

OUTPUTS = (
    *("velocities_vt_fps", "aero_alpha_rad", "aero_beta_rad", "velocities_mach", "velocities_vc_fps"),
    *("accelerations_Nz", "propulsion_total_fuel_lbs", "engine_0_n2"),
)
"""What the rules see of a frame besides position and attitude."""
HEADER = '''"""Generated from JSBSim's files of an aircraft by palaestra.games.ucav.aircraft. Do not edit."""

import math

import numpy as np

from palaestra.game import apart
from palaestra.games.ucav.aircraft.air import (
    GAS_CONSTANT, HEAT_RATIO, SEA_LEVEL_DENSITY, calibrated_airspeed, density_altitude, temperature_and_pressure
)
from palaestra.games.ucav.aircraft.motion import (
    Inertia, angular_acceleration, apply, apply_back, compose_back, cosines, cross, gravity, heading_angle, pitch_angle,
    place_on_ellipsoid, place_on_sphere, roll_angle, rotation, turn, turned_earth, with_mass
)
from palaestra.games.ucav.aircraft.outputs import Limits, put_air_and_payload, put_commands, put_no_air, put_pose, show
from palaestra.games.ucav.aircraft.machinery import (
    Rates, Speeds, Turbine, integral, kinematic, specific_consumption, thrust_and_flow
)
from palaestra.games.ucav.aircraft.tables import line, place, plane
from palaestra.games.ucav.body import BODY
'''
FOOTER = '''
run_frame = apart(frame, (FLIGHT, "f8", "f8"))


def load(e, body, dt):
    """Starts a flight as JSBSim does: two resets of two frames without time, then the engines."""
    clear(e)
    put_no_air(e)
    for k in range(2):
        reset(e)
        put_pose(e, body, LIMITS)
        run_frame(e, 0.0, dt)
        x, y, z = e.acceleration_x, e.acceleration_y, e.acceleration_z
        run_frame(e, 0.0, dt)
    if put_air_and_payload(e, body):
        run_frame(e, 0.0, dt)
    put_pose(e, body, LIMITS)
    e.acceleration_x_before, e.acceleration_y_before, e.acceleration_z_before = x, y, z
    settle(e, min(1.0, max(0.0, 2.0 * body.throttle_command)))
    body.finite = 1
    show(e, body, LIMITS)


load_flight = apart(load, (FLIGHT, BODY, "f8"))


def fly(e, body, frames, dt):
    """Flies some frames under the commands of the aircraft record; one that is not finite stays where it is.

    A flight of zeros begins as the aircraft record says.
    """
    if body.finite == 0:
        return
    if e.pressure_ratio == 0.0:
        load_flight(e, body, dt)
    put_commands(e, body)
    for _ in range(frames):
        run_frame(e, dt, dt)
    show(e, body, LIMITS)


fly_period = apart(fly, (FLIGHT, BODY, "i8", "f8"))
'''


def source_of(frame: Frame, limits: Limits, probes: Iterable[str] = ()) -> str:
    """The generated file.

    Args:
        frame: The aircraft's frame.
        limits: Map and tables.
        probes: Paths of further properties that are kept in the record, for tests.
    """
    return "\n".join([HEADER, *_constants(frame, limits), *_functions(frame, probes)]) + FOOTER


def _constants(frame: Frame, limits: Limits) -> Iterator[str]:
    yield f"NUMBERS = np.array({[float(number) for number in frame.program.numbers]!r})"
    yield "NUMBERS.flags.writeable = False"
    yield from frame.engine_constants
    yield f"LIMITS = {limits!r}"


def _functions(frame: Frame, probes: Iterable[str]) -> Iterator[str]:
    program = frame.program
    steady = [f"engine_{number}_steady_flow" for number in range(len(frame.engines))]
    roots = (*OUTPUTS, *POSE, *map(variable, probes))
    statements, needed = program.needed(program.written() & {*roots})
    settling, needed_to_settle = program.needed_once(steady)
    inputs = {*map(variable, COMMANDS), *INPUTS}
    kept = sorted(program.written() & {*roots, *needed, *needed_to_settle})
    yield f"FLIGHT = np.dtype({[(name, 'f8') for name in sorted({*kept, *inputs, *POSE})]!r})"
    before = lambda names: {name: _source(frame, name, inputs) for name in names}  # noqa: E731
    yield from function_text("frame", "e, dt, channel_dt", statements, before(needed), kept)
    cleared = [name for name in kept if name not in inputs]
    yield "\n\ndef clear(e):"
    yield from (f"    e.{name} = 0.0" for name in cleared)
    yield "\n\ndef reset(e):"
    yield from (f"    e.{name} = 0.0" for name in cleared if name not in program.lasting)
    yield from (f"    e.{variable(path)} = 0.0" for path in COMMANDS)
    for number, tank in frame.tanks.items():
        yield f"    e.{contents(number)} = {tank.contents_lb!r}"
    yield "\n\ndef settle(e, power):"
    yield "    dt = 0.0"
    yield from (f"    {name} = {text}" for name, text in sorted(before(needed_to_settle).items()) if name != "dt")
    yield from (f"    {statement.text}" for statement in settling)
    for number in range(len(frame.engines)):
        e = f"e.engine_{number}"
        yield f"    speeds = SPEEDS_{number}"
        yield f"    {e}_n1 = speeds.idle_n1 + power * (speeds.full_n1 - speeds.idle_n1)"
        yield f"    {e}_n2 = speeds.idle_n2 + power * (speeds.full_n2 - speeds.idle_n2)"
        yield f"    {e}_share, {e}_augmented, {e}_fuel_flow = 1.0, 0.0, engine_{number}_steady_flow"
    yield "\n"


def _source(frame: Frame, name: str, inputs: set[str]) -> str:
    """What a variable begins a frame with."""
    if name in inputs or name in frame.program.written():
        return f"e.{name}"
    if name in ("dt", "channel_dt"):
        return name
    if name in frame.program.constants:
        return repr(frame.program.constants[name])
    raise frame.aircraft.refuse(frame.aircraft.root, f"reads {name}, which nothing in it writes")
