"""Which engine flies the aircraft of a game: the keywords of `palaestra.game.Game` that say so.

Both engines fly the same aircraft around the same planet under the same commands. ``"compiled"`` is JSBSim's frame as
machine code (`palaestra.ucav.aircraft`): the flights are a field of the match record, ``flight``. ``"jsbsim"`` is
JSBSim itself (`palaestra.ucav.jsbsim_engine`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from palaestra.game import check_word
from palaestra.ucav.aircraft.library import compiled_aircraft
from palaestra.ucav.airframes import AIRFRAMES
from palaestra.ucav.planets import PLANETS

ENGINES = ("compiled", "jsbsim")
"""Words of ``engine=``."""
PERIODS_HZ = 10
"""Periods of all games a second."""


def flight_keywords(engine: str, airframe: str, planet: str, physics_hz: int, count: int) -> dict[str, Any]:
    """Keywords of a game whose match record has the aircraft in ``body``.

    Args:
        engine: A word of `ENGINES`.
        airframe: A name of `palaestra.ucav.airframes.AIRFRAMES`.
        planet: A name of `palaestra.ucav.planets.PLANETS`.
        physics_hz: Frames a second, a multiple of 10.
        count: Aircraft in a match.

    Returns:
        What goes into `Game` as it is; ``state`` are fields that the match record gets besides the game's own.

    Raises:
        ValueError: An unknown word, or a rate that has no whole number of frames in a period.
    """
    check_word("engine", engine, ENGINES)
    check_word("airframe", airframe, tuple(AIRFRAMES))
    check_word("planet", planet, tuple(PLANETS))
    frames, rest = divmod(physics_hz, PERIODS_HZ)
    if frames < 1 or rest:
        raise ValueError(f"physics_hz must be a multiple of {PERIODS_HZ}, got {physics_hz}")
    if engine == "jsbsim":
        options = {"physics_hz": physics_hz, "frames": frames, "airframe": airframe, "planet": planet}
        return {"physics": "palaestra.ucav.jsbsim_engine:JsbsimEngine", "physics_options": options, "state": ()}
    aircraft = compiled_aircraft(airframe, planet)
    load, advance = compiled_hooks(aircraft.load_flight, aircraft.fly_period, frames, 1.0 / physics_hz)
    return {"load": load, "advance": advance, "state": (("flight", aircraft.FLIGHT, (count,)),)}


def compiled_hooks(load_flight: Callable, fly_period: Callable, frames: int, dt: float) -> tuple[Callable, Callable]:
    """The hooks ``load`` and ``advance`` of a game whose flights are compiled."""

    def load(s, world, scratch):
        """Starts the flights at the conditions that the rules wrote into the aircraft records."""
        for k in range(s.body.shape[0]):
            load_flight(s.flight[k], s.body[k], dt)

    def advance(s, world, scratch):
        """Flies all aircraft for one period."""
        for k in range(s.body.shape[0]):
            fly_period(s.flight[k], s.body[k], frames, dt)

    return load, advance
