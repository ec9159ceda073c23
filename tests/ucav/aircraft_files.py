"""Aircraft for tests of the compiled engine: files of our own, and flights of generated modules as plain Python.

The files are written for these tests; nothing of JSBSim's (GPL) stands in them.
"""

from __future__ import annotations

import types
import xml.etree.ElementTree as ElementTree
from types import SimpleNamespace
from typing import Any

from palaestra.ucav.aircraft.frame import Frame
from palaestra.ucav.aircraft.outputs import Limits
from palaestra.ucav.aircraft.reader import Source
from palaestra.ucav.aircraft.writer import source_of
from palaestra.ucav.body import BODY
from palaestra.ucav.planets import PLANETS

ENGINE = """
<turbine_engine name="nothing">
  <milthrust unit="LBS"> 0 </milthrust> <maxthrust unit="LBS"> 0 </maxthrust>
  <function name="IdleThrust"> <value> 0 </value> </function>
  <function name="MilThrust"> <value> 0 </value> </function>
</turbine_engine>
"""
"""A turbine without thrust and fuel burn."""
BALL = dict.fromkeys(("ixx", "iyy", "izz"), 1.0)
"""Moments of inertia, slug ft^2."""


def aircraft_file(
    *,
    weight_lb: float = 100.0,
    inertia: dict[str, float] = BALL,
    drag: str = "",
    aerodynamics: str = "",
    control: str = "",
    propulsion: str = '<engine file="nothing"> <thruster file="push"/> </engine>',
) -> str:
    """The file of an aircraft: a body of 1 ft^2.

    Args:
        weight_lb: Empty.
        inertia: Elements of ``<mass_balance>``, slug ft^2.
        drag: Functions of the drag.
        aerodynamics: What stands in ``<aerodynamics>`` before the axes.
        control: What stands in ``<flight_control>``.
        propulsion: What stands in ``<propulsion>``.
    """
    moments = "".join(f'<{tag} unit="SLUG*FT2"> {value!r} </{tag}>' for tag, value in inertia.items())
    return f"""
    <fdm_config name="body">
      <metrics> <wingarea unit="FT2"> 1 </wingarea> <wingspan unit="FT"> 1 </wingspan> </metrics>
      <mass_balance> {moments} <emptywt unit="LBS"> {weight_lb!r} </emptywt> </mass_balance>
      <propulsion> {propulsion} </propulsion>
      <flight_control name="control"> {control} </flight_control>
      <aerodynamics> {aerodynamics}
        <axis name="DRAG"> {drag} </axis> <axis name="SIDE"/> <axis name="LIFT"/>
      </aerodynamics>
    </fdm_config>
    """


def frame_of(text: str, planet: str = "still", engine: str = ENGINE) -> Frame:
    """The frame of an aircraft whose files are texts."""
    read = lambda name, text: Source(name, ElementTree.fromstring(text))  # noqa: E731
    files = {"nothing": read("nothing.xml", engine), "push": read("push.xml", '<direct name="push"/>')}
    return Frame(read("body.xml", text), files, {}, PLANETS[planet])


def limits_around(planet: str) -> Limits:
    """The map of a planet, and tables without end."""
    ground = PLANETS[planet]
    scale = ground.equator_ft, ground.pole_ft, ground.rotation, ground.north_m_per_rad, ground.east_m_per_rad
    return Limits(*scale, -4.0, 4.0, -4.0, 4.0)


def imported(source: str) -> types.ModuleType:
    """A generated module."""
    module = types.ModuleType("palaestra_aircraft_of_a_test")
    exec(compile(source, module.__name__, "exec"), vars(module))
    return module


def module_of(text: str, planet: str = "still", probes: tuple[str, ...] = ()) -> types.ModuleType:
    """The generated module of an aircraft whose file is a text, with some more properties in its record."""
    return imported(source_of(frame_of(text, planet), limits_around(planet), probes))


class Flight:
    """A flight of a generated module as plain Python, with numbers of Python in its records.

    Attributes:
        e: The flight's record.
        body: The aircraft record of the rules.
        dt: Length of a frame, s.
    """

    def __init__(self, module: types.ModuleType, hz: float = 60.0, **start: float):
        """Loads it at members of the aircraft record, the others 0."""
        self.module, self.dt = module, 1.0 / hz
        self.e: Any = SimpleNamespace(**dict.fromkeys(module.FLIGHT.names, 0.0))
        self.body: Any = SimpleNamespace(**{**dict.fromkeys(BODY.names or (), 0.0), **start})
        module.load(self.e, self.body, self.dt)

    def advance(self, frames: int = 1) -> None:
        """Flies some frames."""
        self.module.fly(self.e, self.body, frames, self.dt)
