"""JSBSim as the engine behind the aircraft records of a match.

The rules write commands and initial conditions into ``s.body`` and read everything else (`palaestra.games.ucav.body`).
This module keeps one JSBSim instance per aircraft in this process and copies numbers between the two. JSBSim holds the
GIL while it runs, so more than one core needs more than one process; that is the business of the simulation that owns
the engine. JSBSim cannot save its state either: snapshots repeat the commands of a flight.

Three things here are not obvious, and each has a test:

* **The reset is exact.** JSBSim's own reset leaves traces of the flight before: the flap, gear and speed-brake
  actuators stay where they were, the centre of gravity is still that of the burnt fuel when the pilot's acceleration
  is computed, and the initial-condition object carries rounding noise of its previous values into the new velocity
  and even into a wind of 1e-13 ft/s. `Aircraft.load` therefore starts from a fixed initial-condition file, sets the
  new condition always in the same order, zeroes every actuator that remembers and resets twice. Afterwards the same
  condition gives the same bytes, whatever was flown before.
* **The gear is up.** JSBSim loads the F-16 with its gear down, which doubles the drag and locks the leading-edge flap
  schedule.
* **Positions are flat.** The match lives around latitude 0, longitude 0 of the planet; angles become metres with the
  radii of curvature there at 5 km. A metre of the map is a metre of air to 0.1 % from the ground to 11 km.
"""

from __future__ import annotations

import contextlib
import functools
import math
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

import palaestra_assets
from palaestra.game import Game
from palaestra.games.ucav.airframes import (
    AIRFRAMES,
    aircraft_folder,
    aircraft_tree,
    common_range,
    import_jsbsim,
    root_folder,
    systems_folder,
)
from palaestra.games.ucav.body import BODY
from palaestra.games.ucav.geometry import rotate_to_body
from palaestra.games.ucav.planets import PLANETS, Planet

FOOT_M = 0.3048
POUND_KG = 0.45359237
NORTH_M_PER_RAD, EAST_M_PER_RAD = PLANETS["wgs84"].north_m_per_rad, PLANETS["wgs84"].east_m_per_rad

COMMANDS = ("aileron", "elevator", "rudder", "throttle")
WIND = ("wind_north", "wind_east", "wind_down")
SEA_LEVEL_PRESSURE_PSF = 2116.228

# Field of the record, property of JSBSim, factor; in the order of the record, so that one row is one slice. The first
# two are angles in JSBSim; the planet has their factors.
OUTPUTS: tuple[tuple[str, str, float], ...] = (
    ("north_m", "position/lat-geod-rad", 1.0),
    ("east_m", "position/long-gc-rad", 1.0),
    ("altitude_m", "position/h-sl-ft", FOOT_M),
    ("roll_rad", "attitude/phi-rad", 1.0),
    ("pitch_rad", "attitude/theta-rad", 1.0),
    ("heading_rad", "attitude/psi-rad", 1.0),
    ("true_airspeed_mps", "velocities/vt-fps", FOOT_M),
    ("velocity_north_mps", "velocities/v-north-fps", FOOT_M),
    ("velocity_east_mps", "velocities/v-east-fps", FOOT_M),
    ("velocity_down_mps", "velocities/v-down-fps", FOOT_M),
    ("u_mps", "velocities/u-aero-fps", FOOT_M),
    ("v_mps", "velocities/v-aero-fps", FOOT_M),
    ("w_mps", "velocities/w-aero-fps", FOOT_M),
    ("p_radps", "velocities/p-rad_sec", 1.0),
    ("q_radps", "velocities/q-rad_sec", 1.0),
    ("r_radps", "velocities/r-rad_sec", 1.0),
    ("flight_path_angle_rad", "flight-path/gamma-rad", 1.0),
    ("angle_of_attack_rad", "aero/alpha-rad", 1.0),
    ("sideslip_rad", "aero/beta-rad", 1.0),
    ("load_factor_g", "accelerations/Nz", 1.0),  # at the centre of gravity, +1 in level flight
    ("mach", "velocities/mach", 1.0),
    ("calibrated_airspeed_mps", "velocities/vc-fps", FOOT_M),
    ("engine_n2_fraction", "propulsion/engine/n2", 0.01),
    ("fuel_kg", "propulsion/total-fuel-lbs", POUND_KG),
)
WORDS = BODY.itemsize // 8
FIRST = BODY.fields["north_m"][1] // 8  # type: ignore[index]
LAST = FIRST + len(OUTPUTS)
ANGLE_OF_ATTACK, SIDESLIP = (
    [name for name, _, _ in OUTPUTS].index(name) for name in ("angle_of_attack_rad", "sideslip_rad")
)

# The order matters: JSBSim keeps some of the earlier values while it takes the next.
INITIAL_CONDITION = (
    *("lat-geod-rad", "long-gc-rad", "h-sl-ft", "psi-true-rad", "theta-rad", "phi-rad"),
    *("u-fps", "v-fps", "w-fps"),
)

# Every component of JSBSim's F-16 that keeps its last position across a reset. `test_plant.py` looks for others.
REMEMBERING_ACTUATORS = (
    "fcs/tef-control",
    "fcs/lef-control",
    "gear/gear-pos-norm",
    "gear/gear-cmd-norm",
    "fcs/speedbrake-pos-deg",  # no command reaches it, but the flight control system opens it in a deep stall
)

# The initial-condition object remembers too; a file is the only way to set all of it at once. JSBSim reads it anew in
# every reset and adds the suffix .xml itself. It is an asset: a temporary file would outlive a killed process.
ORIGIN = "ucav/origin.xml"

MOST_IDLE = 64
"""Aircraft of closed plants that are kept, 32 MB."""
idle_aircraft: dict[tuple[int, str, str], list[Aircraft]] = {}
"""By frames a second, airframe and planet."""


@dataclass(frozen=True)
class Model:
    """Data of the aircraft's own files, read when an engine is made; nothing of them is stored in this repository.

    Attributes:
        angle_of_attack_rad: Lowest and highest angle that all aerodynamic tables cover.
        sideslip_rad: The same for the sideslip angle.
        n1_percent: Fan speed at idle and at military power.
        n2_percent: Core speed at idle and at military power.
    """

    angle_of_attack_rad: tuple[float, float]
    sideslip_rad: tuple[float, float]
    n1_percent: tuple[float, float]
    n2_percent: tuple[float, float]


@functools.cache
def read_model(root: Path, airframe: str = "f16-jsbsim") -> Model:
    """Reads the limits of the tables and the engine speeds from the XML files of an installed JSBSim.

    Args:
        root: JSBSim's data folder.
        airframe: A name of `AIRFRAMES`.

    Raises:
        RuntimeError: The file of the aircraft is not the one that its corrections are made for.
    """
    aircraft = aircraft_tree(airframe, root)
    aerodynamics, engine = aircraft.find("aerodynamics"), aircraft.find("propulsion/engine")
    if aerodynamics is None or engine is None:
        raise RuntimeError(f"{root}: the aircraft {airframe} has no aerodynamics or no engine")
    tables = list(aerodynamics.iter("table"))
    turbine = ElementTree.parse(root / "engine" / f"{engine.get('file')}.xml").getroot()
    speeds = [float(turbine.findtext(tag, "nan")) for tag in ("idlen1", "maxn1", "idlen2", "maxn2")]
    return Model(
        common_range(tables, "aero/alpha-rad"),
        common_range(tables, "aero/beta-rad"),
        (speeds[0], speeds[1]),
        (speeds[2], speeds[3]),
    )


class Aircraft:
    """One JSBSim instance with its property nodes looked up once."""

    def __init__(self, fdm: Any, model: Model, planet: Planet) -> None:
        """Takes over an instance that holds an aircraft (`make_fdm`); it flies after `load`."""
        self.fdm, self.model = fdm, model
        self.origin = str(palaestra_assets.path(ORIGIN)).removesuffix(".xml")
        self.map_scale = planet.north_m_per_rad, planet.east_m_per_rad
        self.scales = np.array([*self.map_scale, *(factor for _, _, factor in OUTPUTS[2:])])
        nodes = fdm.get_property_manager()
        setter = lambda name: nodes.get_node(name).set_double_value  # noqa: E731
        self.outputs = [nodes.get_node(name).get_double_value for _, name, _ in OUTPUTS]
        self.commands = tuple(setter(f"fcs/{name}-cmd-norm") for name in COMMANDS)
        self.actuators = tuple(setter(name) for name in REMEMBERING_ACTUATORS)
        self.initial = tuple(setter(f"ic/{name}") for name in INITIAL_CONDITION)
        self.engine_speeds = setter("propulsion/engine/n1"), setter("propulsion/engine/n2")
        self.wind = tuple(setter(f"atmosphere/{name.replace('_', '-')}-fps") for name in WIND)
        self.pressure, self.payload = setter("atmosphere/P-sl-psf"), setter(payload_property(fdm))
        self.propulsion = fdm.get_propulsion()

    def load(self, row: np.ndarray) -> None:
        """Starts a flight, exactly, from the initial condition in a record (float64 [WORDS]) and writes its outputs.

        A record with a throttle below 0 stays as it is (`palaestra.games.ucav.body.NOT_FLOWN`), here and in `advance`.
        """
        *commands, density_deviation, payload_kg = row[:FIRST].tolist()
        if commands[3] < 0.0:
            return
        north, east, altitude, roll, pitch, heading, speed = row[FIRST : FIRST + 7].tolist()
        attitude = SimpleNamespace(roll_rad=roll, pitch_rad=pitch, heading_rad=heading)
        forward, right, down = rotate_to_body(attitude, *commands[4:])
        fdm = self.fdm
        fdm.load_ic(self.origin, False)
        condition = (
            north / self.map_scale[0],
            east / self.map_scale[1],
            altitude / FOOT_M,
            heading,
            pitch,
            roll,
            (speed + forward) / FOOT_M,
            right / FOOT_M,
            down / FOOT_M,
        )
        for put, value in zip(self.initial, condition, strict=True):
            put(value)
        for put in (*self.actuators, self.payload):
            put(0.0)
        fdm.reset_to_initial_conditions(0)  # fills the tanks, but sees the pilot's seat from the old centre of gravity
        fdm.reset_to_initial_conditions(0)
        self._put_wind(commands)
        if any((*commands[4:], density_deviation, payload_kg)):
            self.pressure((1.0 + density_deviation) * SEA_LEVEL_PRESSURE_PSF)
            self.payload(payload_kg / POUND_KG)
            fdm.suspend_integration()
            fdm.run()  # a frame without time: the flight begins in this air
            fdm.resume_integration()
        self._put_commands(commands)
        self.propulsion.init_running(-1)
        power = min(1.0, max(0.0, 2.0 * commands[3]))  # military power is throttle 0.5
        for put, (idle, full) in zip(self.engine_speeds, (self.model.n1_percent, self.model.n2_percent), strict=True):
            put(idle + power * (full - idle))
        row[LAST:].view(np.uint8)[:2] = 1
        self.write(row)

    def advance(self, row: np.ndarray, frames: int) -> None:
        """Flies ``frames`` frames under the commands in a record (float64 [WORDS]) and writes the outputs into it.

        After an output that is not finite, the flight is frozen until the next `load`.
        """
        flags = row[LAST:].view(np.uint8)
        commands = row[:FIRST].tolist()
        if not flags[0] or commands[3] < 0.0:
            return
        try:
            self._put_commands(commands)
            run = self.fdm.run
            for _ in range(frames):
                run()
        except (RuntimeError, ArithmeticError, ValueError):  # JSBSim throws when a position leaves the planet
            flags[0] = 0
            return
        self.write(row)

    def _put_commands(self, commands: list[float]) -> None:
        """Puts stick, throttle and wind, the first numbers of a record, into JSBSim."""
        self._put_wind(commands)
        aileron, elevator, rudder, throttle = self.commands
        aileron(commands[0])
        elevator(-commands[1])  # JSBSim: negative is nose up
        rudder(-commands[2])  # positive is nose left
        throttle(commands[3])

    def _put_wind(self, commands: list[float]) -> None:
        for put, speed in zip(self.wind, commands[4:], strict=False):
            put(speed / FOOT_M)

    def write(self, row: np.ndarray) -> None:
        """Copies JSBSim's state into a record (float64 [WORDS])."""
        values = [get() for get in self.outputs]
        flags = row[LAST:].view(np.uint8)
        if not math.isfinite(sum(values)):
            flags[0] = 0
            return
        row[FIRST:LAST] = values
        row[FIRST:LAST] *= self.scales
        alpha, beta = self.model.angle_of_attack_rad, self.model.sideslip_rad
        flags[1] = alpha[0] <= values[ANGLE_OF_ATTACK] <= alpha[1] and beta[0] <= values[SIDESLIP] <= beta[1]


def payload_property(fdm: Any) -> str:
    """Path of the weight of the point mass that `palaestra.games.ucav.airframes.aircraft_tree` adds, the last one."""
    last = len(fdm.query_property_catalog("inertia/pointmass-weight-lbs").splitlines()) - 1
    return "inertia/pointmass-weight-lbs" + (f"[{last}]" if last else "")


def make_fdm(jsbsim: Any, root: Path, airframe: str, folder: Path, planet: Planet, physics_hz: int) -> Any:
    """Builds a JSBSim instance with an aircraft (12 ms, 0.5 MB).

    Args:
        jsbsim: The module.
        root: Its data folder.
        airframe: A name of `AIRFRAMES`.
        folder: Where the aircraft's file lies (`aircraft_folder`).
        planet: What it flies around.
        physics_hz: Frames a second.

    Raises:
        RuntimeError: JSBSim cannot load the aircraft.
    """
    fdm = jsbsim.FGFDMExec(str(root))
    fdm.set_debug_level(0)
    fdm.set_dt(1.0 / physics_hz)
    if planet.asset is not None:  # before the aircraft: a planet resets the models
        fdm.load_planet(str(palaestra_assets.path(planet.asset)), False)
    model, systems = AIRFRAMES[airframe].model, systems_folder(airframe, root)
    if not fdm.load_model_with_paths(model, str(folder), str(root / "engine"), str(systems), False):
        raise RuntimeError(f"jsbsim {jsbsim.__version__} cannot load the aircraft {airframe!r} of {root}")
    return fdm


class JsbsimEngine:
    """Flies every aircraft of every lane with JSBSim, in this process, one after the other.

    Aircraft of closed plants are used again: `Aircraft.load` is exact whatever was flown before.

    What it does depends on the aircraft records alone, so that a flight can be repeated from its start and its
    commands.

    Attributes:
        body_field: Field of the match record that holds the aircraft.
        command_fields: Members of an aircraft record that are read in every period.
    """

    command_fields = (*(f"{name}_command" for name in COMMANDS), *(f"{name}_mps" for name in WIND))

    def __init__(
        self,
        game: Game,
        lanes: int,
        threads: int = 1,
        *,
        physics_hz: int = 60,
        frames: int = 6,
        airframe: str = "f16-jsbsim",
        planet: str = "wgs84",
    ) -> None:
        """Builds ``lanes`` x K aircraft, K being the number of aircraft records in a match.

        Args:
            game: Rules whose match record has a field of type `palaestra.games.ucav.body.BODY` and shape (K,).
            lanes: Matches at a time.
            threads: Ignored: JSBSim holds the interpreter's lock, so threads would wait for each other. More than one
                core needs ``workers=``, processes.
            physics_hz: Frames a second.
            frames: Frames in one `advance`; 60 Hz and 6 frames are ten commands a second.
            airframe: ``"f16"``, corrected, or ``"f16-jsbsim"``, as installed (`AIRFRAMES`).
            planet: ``"wgs84"``, the Earth, or ``"still"``, a sphere that does not turn (`PLANETS`).

        Raises:
            ImportError: jsbsim is not installed.
            RuntimeError: The installed aircraft is not the one that the corrections are made for.
        """
        jsbsim, root = import_jsbsim(), root_folder()
        self.body_field = body_field(game.state_dtype)
        self.count = game.state_dtype[self.body_field].shape[0]
        self.frames = frames
        self._idle = idle_aircraft.setdefault((physics_hz, airframe, planet), [])
        self.model = read_model(root, airframe)
        with silence(jsbsim), aircraft_folder(airframe, root) as folder:

            def take() -> Aircraft:
                with contextlib.suppress(IndexError):  # another thread may have taken the last one
                    return self._idle.pop()
                fdm = make_fdm(jsbsim, root, airframe, folder, PLANETS[planet], physics_hz)
                return Aircraft(fdm, self.model, PLANETS[planet])

            self.aircraft = [[take() for _ in range(self.count)] for _ in range(lanes)]

    def load(self, states: np.ndarray, lanes: Iterable[int]) -> None:
        """Starts the flights of some lanes at the conditions that the rules wrote into the aircraft records.

        Read are position, roll, pitch, heading, true airspeed (along the nose: angle of attack and sideslip start at
        zero), the air, the payload and the commands; the engine has settled at ``throttle_command``. All outputs are
        written.

        Args:
            states: Match records (N,).
            lanes: Indices into them.
        """
        rows = self._rows(states)
        for lane in lanes:
            for aircraft, row in zip(self.aircraft[lane], rows[lane], strict=True):
                aircraft.load(row)

    def advance(self, states: np.ndarray, lanes: Iterable[int]) -> None:
        """Flies the aircraft of some lanes for one period under the commands in their records.

        Args:
            states: Match records (N,).
            lanes: Indices into them.
        """
        rows = self._rows(states)
        for lane in lanes:
            for aircraft, row in zip(self.aircraft[lane], rows[lane], strict=True):
                aircraft.advance(row, self.frames)

    def close(self) -> None:
        """Gives the aircraft back to the plants that are made later, at most `MOST_IDLE` of a kind."""
        room = max(0, MOST_IDLE - len(self._idle))
        self._idle += [aircraft for row in self.aircraft for aircraft in row][:room]
        self.aircraft = []

    def _rows(self, states: np.ndarray) -> np.ndarray:
        """The aircraft records as float64 (N, K, WORDS), a view."""
        return states[self.body_field].view(np.float64).reshape(len(states), self.count, WORDS)


def body_field(state: np.dtype) -> str:
    """Name of the field of a match record that holds the aircraft.

    Raises:
        ValueError: There is none.
    """
    for name in state.names or ():
        if state[name].base.names == BODY.names:
            return name
    raise ValueError(f"the match record has no field of type palaestra.games.ucav.body.BODY: {state.names}")


@contextlib.contextmanager
def silence(jsbsim: Any) -> Iterator[None]:
    """Keeps JSBSim's banner off the terminal."""

    class Silence(jsbsim.FGLogger):
        """Discards every message."""

        def nothing(self, *message: Any) -> None:
            """Forgets."""

        set_level = file_location = message = format = flush = nothing

    before = jsbsim.get_logger()
    jsbsim.set_logger(Silence())
    try:
        yield
    finally:
        jsbsim.set_logger(before)
