"""Aircraft for tests of the compiled engine: files of our own, and flights of generated modules as plain Python.

The files are written for these tests; nothing of JSBSim's (GPL) stands in them.
"""

from __future__ import annotations

import types
import xml.etree.ElementTree as ElementTree
from types import SimpleNamespace
from typing import Any

import numpy as np

from palaestra.games.ucav.aircraft.frame import Frame
from palaestra.games.ucav.aircraft.outputs import Limits
from palaestra.games.ucav.aircraft.reader import Source
from palaestra.games.ucav.aircraft.writer import source_of
from palaestra.games.ucav.body import BODY
from palaestra.games.ucav.planets import PLANETS

ENGINE = """
<turbine_engine name="nothing">
  <milthrust unit="LBS"> 0 </milthrust> <maxthrust unit="LBS"> 0 </maxthrust>
  <function name="IdleThrust"> <value> 0 </value> </function>
  <function name="MilThrust"> <value> 0 </value> </function>
</turbine_engine>
"""
"""A turbine without thrust and fuel burn."""
CONTROL = """
<property value="3"> fcs/three </property>
<channel name="all">
  <summer name="fcs/sum">
    <input> fcs/aileron-cmd-norm </input> <input> -fcs/elevator-cmd-norm </input> <bias> 0.3 </bias>
    <clipto> <min> -1 </min> <max> 0.9 </max> </clipto> <output> fcs/sum-out </output>
  </summer>
  <pure_gain name="Twice The Sum"> <input> -fcs/sum </input> <gain> 2.5 </gain> </pure_gain>
  <scheduled_gain name="fcs/scheduled">
    <input> fcs/rudder-cmd-norm </input> <gain> 0.5 </gain>
    <table> <independentVar> fcs/sum </independentVar> <tableData>
      -0.5 1
      0.0 3
      0.4 2
    </tableData> </table>
  </scheduled_gain>
  <aerosurface_scale name="fcs/scaled">
    <input> fcs/sum </input> <gain> 1.5 </gain>
    <domain> <min> -2 </min> <max> 0.5 </max> </domain> <range> <min> -0.3 </min> <max> 0.7 </max> </range>
  </aerosurface_scale>
  <aerosurface_scale name="fcs/shifted">
    <input> fcs/sum </input> <zero_centered> 0 </zero_centered>
    <domain> <min> -2 </min> <max> 0.5 </max> </domain> <range> <min> -0.3 </min> <max> 0.7 </max> </range>
  </aerosurface_scale>
  <switch name="fcs/chosen">
    <default value="-fcs/sum"/>
    <test logic="OR" value="0.25">
      fcs/sum lt -0.6
      fcs/rudder-cmd-norm GE 0.9
      <test>
        fcs/sum &gt; 0.2
        fcs/rudder-cmd-norm &lt; 0.0
      </test>
    </test>
    <test value="fcs/scaled"> fcs/aileron-cmd-norm == 0.25 </test>
  </switch>
  <kinematic name="fcs/slow">
    <input> fcs/sum </input>
    <traverse>
      <setting> <position> -10 </position> <time> 0 </time> </setting>
      <setting> <position> 5 </position> <time> 0.7 </time> </setting>
      <setting> <position> 20 </position> <time> 0.2 </time> </setting>
    </traverse>
    <output> fcs/slow-out </output>
  </kinematic>
  <kinematic name="fcs/unscaled">
    <input> fcs/sum </input> <noscale/>
    <traverse>
      <setting> <position> 0 </position> <time> 0 </time> </setting>
      <setting> <position> 1 </position> <time> 0.5 </time> </setting>
    </traverse>
  </kinematic>
  <pid name="fcs/controller">
    <input> fcs/sum </input> <kp> 0.4 </kp> <ki> 0.8 </ki> <kd> 0.02 </kd> <trigger> fcs/chosen </trigger>
    <clipto> <min> -3 </min> <max> fcs/three </max> </clipto>
  </pid>
  <pid name="fcs/plain"> <input> fcs/sum </input> <kp> 0.4 </kp> <ki> fcs/three </ki> </pid>
  <fcs_function name="fcs/mixed">
    <input> fcs/rudder-cmd-norm </input>
    <function> <sum>
      <product> <abs><p>fcs/sum</p></abs> <pow> <value> 1.7 </value> <p>fcs/sum</p> </pow> </product>
      <ifthen> <lt> <p>fcs/sum</p> <v>0.1</v> </lt> <sin><p>fcs/sum</p></sin> <cos><p>fcs/sum</p></cos> </ifthen>
      <difference>
        <max> <p>fcs/sum</p> <p>fcs/rudder-cmd-norm</p> <v>0.05</v> </max> <min> <p>fcs/sum</p> <v>0.2</v> </min>
        <atan2> <p>fcs/sum</p> <v>2</v> </atan2>
      </difference>
      <quotient> <toradians><v>40</v></toradians> <sqrt><sum> <v>2</v> <p>fcs/sum</p> </sum></sqrt> </quotient>
      <and> <gt> <p>fcs/sum</p> <v>0</v> </gt> <not><ge> <p>fcs/rudder-cmd-norm</p> <v>0.5</v> </ge></not> </and>
      <todegrees><pi/></todegrees> <exp><asin><p>fcs/sum</p></asin></exp>
      <floor><product> <v>7</v> <p>fcs/sum</p> </product></floor>
      <table>
        <independentVar lookup="row"> fcs/sum </independentVar>
        <independentVar lookup="column"> -fcs/rudder-cmd-norm </independentVar>
        <tableData>
               -1   0   0.5
          -0.5  1   2   4
          0     3   1   5
          0.6   7   0   2
        </tableData>
      </table>
    </sum> </function>
  </fcs_function>
</channel>
"""
"""A control system with one component of each kind."""
CONTROLLED = (
    *("fcs/sum-out", "fcs/twice-the-sum", "fcs/scheduled", "fcs/scaled", "fcs/shifted", "fcs/chosen", "fcs/slow"),
    *("fcs/unscaled", "fcs/controller", "fcs/plain", "fcs/mixed"),
)
"""What its components write."""
TURBINE = """
<turbine_engine name="jet">
  <milthrust unit="N"> 4000 </milthrust> <maxthrust unit="LBS"> 1500 </maxthrust>
  <bypassratio> 0.6 </bypassratio> <bleed> 0.03 </bleed> <tsfc> 0.9 </tsfc> <atsfc> 2.1 </atsfc>
  <idlen1> 25 </idlen1> <idlen2> 55 </idlen2> <maxn1> 98 </maxn1> <maxn2> 101 </maxn2>
  <augmented> 1 </augmented> <augmethod> 2 </augmethod>
  <function name="IdleThrust"> <value> 0.08 </value> </function>
  <function name="MilThrust"> <table>
    <independentVar lookup="row"> velocities/mach </independentVar>
    <independentVar lookup="column"> atmosphere/density-altitude </independentVar>
    <tableData>
           0     40000
      0    1.0   0.3
      0.4  0.9   0.35
      2    1.2   0.5
    </tableData>
  </table> </function>
  <function name="AugThrust"> <product> <v> 0.9 </v> <p> atmosphere/sigma </p> </product> </function>
</turbine_engine>
"""
PROPULSION = """
<engine file="nothing"> <feed> 0 </feed> <feed> 1 </feed>
  <thruster file="push">
    <location unit="M"> <x> 1 </x> <y> 0.3 </y> <z> -0.1 </z> </location>
    <orient unit="DEG"> <roll> 0 </roll> <pitch> 4 </pitch> <yaw> -3 </yaw> </orient>
  </thruster>
</engine>
<tank type="FUEL">
  <location unit="IN"> <x> 30 </x> <y> 5 </y> </location>
  <capacity unit="LBS"> 50 </capacity> <contents unit="LBS"> 40 </contents>
</tank>
<tank type="FUEL">
  <location unit="M"> <x> -1 </x> <z> 0.2 </z> </location>
  <capacity unit="LBS"> 50 </capacity> <contents unit="LBS"> 30 </contents>
</tank>
"""
"""A turbine with an afterburner that pushes at an angle, and two tanks."""
GAME: Any = SimpleNamespace(state_dtype=np.dtype([("body", BODY, (1,))], align=True))
"""What the engines ask about a game: here of one aircraft."""
BALL = {"ixx": 1.0, "iyy": 1.0, "izz": 1.0}
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
    <fdm_config name="body" version="2.0">
      <metrics> <wingarea unit="FT2"> 1 </wingarea> <wingspan unit="FT"> 1 </wingspan> </metrics>
      <mass_balance> {moments} <emptywt unit="LBS"> {weight_lb!r} </emptywt> </mass_balance>
      <propulsion> {propulsion} </propulsion>
      <ground_reactions/>
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
