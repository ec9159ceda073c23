"""Which engine flies the aircraft of a game: options of all games of flights, and what `palaestra.game.Game` gets.

Both engines fly the same aircraft around the same planet under the same commands. ``"compiled"`` is JSBSim's frame as
machine code (`palaestra.games.ucav.aircraft`): the flights are a field of the match record, ``flight``. ``"jsbsim"`` is
JSBSim itself (`palaestra.games.ucav.jsbsim_engine`).
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any

from palaestra.game import Option
from palaestra.games.ucav.aircraft.generated import compiled_aircraft
from palaestra.games.ucav.aircraft.reader import UnsupportedAircraft
from palaestra.games.ucav.airframes import AIRFRAMES, airframe_digest, root_folder
from palaestra.games.ucav.body import PERIOD_S
from palaestra.games.ucav.planets import PLANETS

ENGINES = ("compiled", "jsbsim")
"""Words of ``engine=``."""
PHYSICS_HZ, MOST_HZ = 60, 10_000
"""Frames of an engine in a second: by default, at most."""
PERIODS_HZ = round(1.0 / PERIOD_S)


class FlightDigest:
    """Says which aircraft and planet decide the rules: `palaestra.game.Game.model_digest`."""

    def __init__(self, airframe: str, planet: str) -> None:
        """For names of `AIRFRAMES` and `PLANETS`."""
        self.airframe, self.planet = airframe, planet

    def __call__(self) -> str:
        """The files of the aircraft, corrected, and the numbers of the planet."""
        return f"{airframe_digest(self.airframe, root_folder())} {PLANETS[self.planet]!r}"

    def licence(self) -> str:
        """For the game's page."""
        return "the aircraft is JSBSim's (GPL), read from the user's installation and never part of palaestra"


def frames_in_a_period(physics_hz: int) -> int:
    """Frames that an engine flies on one set of commands."""
    return physics_hz // PERIODS_HZ


def checked_rate(physics_hz: int, above: Any) -> int:
    """A rate that has a whole number of frames in a period."""
    if physics_hz % PERIODS_HZ:
        raise ValueError(f"physics_hz must be a multiple of {PERIODS_HZ}, got {physics_hz}")
    return physics_hz


def jsbsim_version() -> str:
    """Version of JSBSim, the key of per-platform hashes."""
    return f"jsbsim {version('jsbsim')}"


def compiled_version() -> str:
    """The same of flights that are compiled from its files."""
    return f"compiled from jsbsim {version('jsbsim')}"


@functools.cache
def default_engine(airframe: str, planet: str) -> str:
    """The engine that flies unless the user says so."""
    try:
        compiled_aircraft(airframe, planet)
    except UnsupportedAircraft as error:
        warnings.warn(f"JSBSim itself flies {airframe!r}, more slowly: {error}", RuntimeWarning, stacklevel=6)
        return "jsbsim"
    return "compiled"


FLIGHT_OPTIONS = (
    Option(
        "airframe",
        "f16",
        "JSBSim's F-16 with its flaperon mixer corrected, or as installed (`f16-jsbsim`)",
        words=tuple(AIRFRAMES),
    ),
    Option(
        "planet",
        "still",
        "a sphere on which heading and place do not matter, or the turning Earth",
        words=tuple(PLANETS),
    ),
    Option(
        "engine",
        None,
        "what computes the flight: JSBSim's frame as machine code, or JSBSim itself, whose results the former repeats "
        "to a micrometre; None is `compiled` where the aircraft can be compiled",
        words=ENGINES,
        otherwise=lambda above: default_engine(above["airframe"], above["planet"]),
        example="jsbsim",
    ),
    Option(
        "physics_hz",
        PHYSICS_HZ,
        f"frames of the engine in a second, a multiple of {PERIODS_HZ}",
        low=PERIODS_HZ,
        high=MOST_HZ,
        unit="1/s",
        check=checked_rate,
    ),
)
"""Of all games of flights."""


def flight_of_game(options: Any, count: int) -> dict[str, Any]:
    """Keywords of a `palaestra.game.Game` whose match record has that number of aircraft in ``body``.

    Args:
        options: `FLIGHT_OPTIONS` of the user.
        count: Of aircraft.

    Returns:
        What goes into `Game` as it is, and ``state``: fields that the match record gets besides the game's own.

    Raises:
        ValueError: An aircraft that cannot be compiled.
        ImportError: jsbsim, whose aircraft fly, is not installed; the message names the extra that brings it.
    """
    airframe, planet, physics_hz = options.airframe, options.planet, options.physics_hz
    keywords: dict[str, Any] = {"model_digest": FlightDigest(airframe, planet), "determinism": "per-platform"}
    if options.engine == "jsbsim":
        frames = frames_in_a_period(physics_hz)
        return keywords | {
            "physics": "palaestra.games.ucav.jsbsim_engine:JsbsimEngine",
            "physics_options": {"physics_hz": physics_hz, "frames": frames, "airframe": airframe, "planet": planet},
            "engine_version": jsbsim_version,
            "state": (),
        }
    hooks = compiled_hooks(airframe, planet, physics_hz)
    return keywords | {
        "load": hooks.load,
        "advance": hooks.advance,
        "engine_version": compiled_version,
        "state": (("flight", hooks.record, (count,)),),
    }


@functools.cache
def compiled_hooks(airframe: str, planet: str, physics_hz: int) -> SimpleNamespace:
    """The hooks ``load`` and ``advance`` of games whose flights are compiled, and the ``record`` of a flight."""
    aircraft = compiled_aircraft(airframe, planet)
    load, advance = _bound(aircraft.load_flight, aircraft.fly_period, frames_in_a_period(physics_hz), 1.0 / physics_hz)
    for hook in (load, advance):  # processes find it by this name, see `__getattr__`
        hook.__qualname__ = f"{airframe}/{planet}/{physics_hz}.{hook.__name__}"
    return SimpleNamespace(load=load, advance=advance, record=aircraft.FLIGHT)


def _bound(load_flight: Callable, fly_period: Callable, frames: int, dt: float) -> tuple[Callable, Callable]:
    def load(s, world, scratch):
        """Starts the flights at the conditions that the rules wrote into the aircraft records."""
        for k in range(s.body.shape[0]):
            if s.body[k].throttle_command >= 0.0:
                load_flight(s.flight[k], s.body[k], dt)

    def advance(s, world, scratch):
        """Flies all aircraft for one period but those that the rules do not let fly (`NOT_FLOWN`)."""
        for k in range(s.body.shape[0]):
            if s.body[k].throttle_command >= 0.0:
                fly_period(s.flight[k], s.body[k], frames, dt)

    return load, advance


def __getattr__(name: str) -> SimpleNamespace:
    """The hooks that a pickle names: the process that it comes to compiles the aircraft, or loads it from the cache."""
    if name.count("/") != 2:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    airframe, planet, physics_hz = name.split("/")
    return compiled_hooks(airframe, planet, int(physics_hz))
