"""Aircraft of JSBSim besides the F-16: the compiled frame against JSBSim, which is loaded by its own Python API.

Generated modules fly as plain Python. `compare` is the whole comparison; it takes any aircraft of JSBSim's folder.
"""

from __future__ import annotations

import functools
import types
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from ucav.aircraft_files import ENGINE, PROPULSION, Flight, aircraft_file, imported

import palaestra_assets
from palaestra.games.ucav.aircraft.generated import limits_of, read_frame
from palaestra.games.ucav.aircraft.program import variable
from palaestra.games.ucav.aircraft.reader import UnsupportedAircraft
from palaestra.games.ucav.aircraft.writer import source_of
from palaestra.games.ucav.planets import PLANETS

pytest.importorskip("jsbsim", reason="the aircraft need the extra palaestra[flight]")
import jsbsim

from palaestra.games.ucav.airframes import root_folder
from palaestra.games.ucav.jsbsim_engine import silence

HZ = 60
FOOT_M = 0.3048
FORCES = {
    **{f"force_{axis}": f"forces/fb{axis}-total-lbs" for axis in "xyz"},
    **{f"moment_{axis}": f"moments/{name}-total-lbsft" for axis, name in zip("xyz", "lmn", strict=True)},
}
ACCELERATIONS = {
    **{variable(path): path for path in (f"accelerations/{u}dot-ft_sec2" for u in "uvw")},
    **{f"{axis}_acceleration": f"accelerations/{axis}idot-rad_sec2" for axis in "pqr"},
}
SURFACES = tuple(f"fcs/{name}-pos-rad" for name in ("elevator", "left-aileron", "right-aileron", "rudder"))
OUTPUTS = ("fcs/all-filters", "fcs/all-actuators", "fcs/all-sums", "fcs/looked-up")
"""Properties of our own aircraft."""
STICKS = ((0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, -0.5, 1.0), (-0.7, 0.4, -0.6))
CONDITIONS = ((20_000.0, 800.0, 0.5), (5_000.0, 500.0, 1.0), (35_000.0, 1_200.0, 0.0))
"""Altitude, ft, airspeed, ft/s, throttle."""


class Model(NamedTuple):
    """An aircraft of JSBSim in its folders.

    Attributes:
        name: Of its file.
        folder: Where that lies.
        systems: Where its systems lie.
        engines: Where its engines and thrusters lie.
    """

    name: str
    folder: Path
    systems: Path
    engines: Path


def installed(name: str) -> Model:
    """An aircraft as JSBSim ships it."""
    folder = root_folder() / "aircraft" / name
    own = folder / "Systems"
    return Model(name, folder, own if own.is_dir() else root_folder() / "systems", root_folder() / "engine")


@functools.cache
def compiled(model: Model) -> types.ModuleType:
    """Its generated module, with what is compared in its record."""
    tree = ElementTree.parse(model.folder / f"{model.name}.xml").getroot()
    frame = read_frame(tree, f"{model.name}.xml", model.engines, model.systems, "wgs84")
    thrusts = [f"propulsion/engine[{k}]/thrust-lbs" for k in range(len(frame.engines))]
    probes = (*FORCES, *ACCELERATIONS, *SURFACES, *thrusts, *OUTPUTS)
    limits = limits_of(tree, "wgs84")
    finite = limits._make(min(max(value, -1e9), 1e9) for value in limits)  # the F-15 has no table of the sideslip
    return imported(source_of(frame, finite, probes))


def oracle(model: Model, start: dict[str, float]) -> Any:
    """JSBSim at the beginning of a flight, as `palaestra.games.ucav.jsbsim_engine.Aircraft.load` begins it."""
    planet = PLANETS["wgs84"]
    fdm = jsbsim.FGFDMExec(str(root_folder()))
    fdm.set_debug_level(0)
    fdm.set_dt(1.0 / HZ)
    folders = str(model.folder), str(model.engines), str(model.systems)
    with silence(jsbsim):
        assert fdm.load_model_with_paths(model.name, *folders, False)
    fdm["systems/radar/range"] = 1.0  # JSBSim ends the process where the F-104 reads a property that there is not
    fdm.load_ic(str(palaestra_assets.path("ucav/origin.xml")).removesuffix(".xml"), False)
    condition = {
        **{"lat-geod-rad": start["north_m"] / planet.north_m_per_rad},
        **{"long-gc-rad": start["east_m"] / planet.east_m_per_rad, "h-sl-ft": start["altitude_m"] / FOOT_M},
        **{"psi-true-rad": start["heading_rad"], "theta-rad": start["pitch_rad"], "phi-rad": start["roll_rad"]},
        **{"u-fps": start["true_airspeed_mps"] / FOOT_M, "v-fps": 0.0, "w-fps": 0.0},
    }
    for name, value in condition.items():
        fdm[f"ic/{name}"] = value
    fdm["gear/gear-pos-norm"], fdm["gear/gear-cmd-norm"] = 0.0, 0.0
    for _ in range(2):
        fdm.reset_to_initial_conditions(0)
    command(fdm, (0.0, 0.0, 0.0), start["throttle_command"])
    fdm.get_propulsion().init_running(-1)
    power = min(1.0, 2.0 * start["throttle_command"])
    for number, file in enumerate(engine_files(model)):
        for shaft, idle in (("n1", "30"), ("n2", "60")):
            low, high = float(file.findtext(f"idle{shaft}", idle)), float(file.findtext(f"max{shaft}", "100"))
            fdm[f"propulsion/engine[{number}]/{shaft}"] = low + power * (high - low)
    return fdm


def engine_files(model: Model) -> list[ElementTree.Element]:
    """The files of its engines."""
    tree = ElementTree.parse(model.folder / f"{model.name}.xml").getroot()
    names = [engine.get("file") for engine in tree.findall("propulsion/engine")]
    return [ElementTree.parse(model.engines / f"{name}.xml").getroot() for name in names]


def command(fdm: Any, stick: tuple[float, float, float], throttle: float) -> None:
    """Sets aileron, elevator, rudder, and the throttles of all engines."""
    fdm["fcs/aileron-cmd-norm"], fdm["fcs/elevator-cmd-norm"] = stick[0], -stick[1]
    fdm["fcs/rudder-cmd-norm"] = -stick[2]
    for number in range(fdm.get_propulsion().get_num_engines()):
        fdm[f"fcs/throttle-cmd-norm[{number}]"] = throttle


def random_start(seed: int) -> dict[str, float]:
    """A condition in the whole envelope."""
    random = np.random.default_rng(seed)
    low_high = {
        **{"north_m": (-5e3, 5e3), "east_m": (-5e3, 5e3), "altitude_m": (1500.0, 11e3)},
        **{"roll_rad": (-3.0, 3.0), "pitch_rad": (-0.5, 0.5), "heading_rad": (0.0, 6.28)},
        **{"true_airspeed_mps": (150.0, 350.0), "throttle_command": (0.0, 1.0)},
    }
    return {name: float(random.uniform(*ends)) for name, ends in low_high.items()}


def level_start(altitude_ft: float, speed_fps: float, throttle: float) -> dict[str, float]:
    """Straight and level."""
    start = dict.fromkeys(random_start(0), 0.0)
    return {
        **start,
        **{"altitude_m": altitude_ft * FOOT_M, "true_airspeed_mps": speed_fps * FOOT_M, "throttle_command": throttle},
    }


def sticks(seed: int, frames: int) -> Iterator[tuple[tuple[float, float, float], float]]:
    """Random stick and throttle, new five times a second."""
    random = np.random.default_rng(seed)
    for _ in range(0, frames, 12):
        aileron, elevator, rudder, throttle = random.uniform(-1.0, 1.0, 4).tolist()
        yield from [((aileron, 0.7 * elevator + 0.3, rudder), abs(throttle))] * min(12, frames)


def compare(
    model: Model, start: dict[str, float], programme: Iterator[tuple[tuple[float, float, float], float]]
) -> dict[str, float]:
    """Flies both and returns the largest difference in any frame, by quantity.

    Returns:
        ``forces`` (lbf and lbf ft), ``accelerations`` (ft/s^2 and rad/s^2), ``surfaces`` (rad), ``thrust`` (lbf),
        ``n2`` (percent), ``fuel`` (lb), ``place`` (m), ``outputs`` and, for what moves at all, ``range`` (rad): how far
        JSBSim's surfaces are deflected at most.
    """
    flight, fdm, planet = Flight(compiled(model), HZ, **start), oracle(model, start), PLANETS["wgs84"]
    worst: dict[str, float] = {}

    def note(name: str, ours: float, theirs: float) -> None:
        worst[name] = max(worst.get(name, 0.0), abs(ours - theirs) if np.isfinite(ours) else np.inf)

    engines = range(fdm.get_propulsion().get_num_engines())
    for stick, throttle in programme:
        body, e = flight.body, flight.e
        body.aileron_command, body.elevator_command, body.rudder_command = stick
        body.throttle_command = throttle
        flight.advance()
        command(fdm, stick, throttle)
        fdm.run()
        for group, pairs in (("forces", FORCES), ("accelerations", ACCELERATIONS)):
            for name, path in pairs.items():
                note(group, getattr(e, name), fdm[path])
        for path in SURFACES:
            note("surfaces", getattr(e, variable(path), 0.0), fdm[path])
            note("range", 0.0, fdm[path])
        for path in OUTPUTS:
            if hasattr(e, variable(path)):
                note("outputs", getattr(e, variable(path)), fdm[path])
        for number in engines:
            thrust = f"propulsion/engine[{number}]/thrust-lbs"
            note("thrust", getattr(e, variable(thrust)), fdm[thrust])
            note("n2", getattr(e, f"engine_{number}_n2"), fdm[f"propulsion/engine[{number}]/n2"])
        note("fuel", e.propulsion_total_fuel_lbs, fdm["propulsion/total-fuel-lbs"])
        note("place", body.north_m, fdm["position/lat-geod-rad"] * planet.north_m_per_rad)
        note("place", body.east_m, fdm["position/long-gc-rad"] * planet.east_m_per_rad)
        note("place", body.altitude_m, fdm["position/h-sl-ft"] * FOOT_M)
    return worst


def check(model: Model, worst: dict[str, float]) -> None:
    """Asserts that the two are equal: what is left is rounding."""
    bounds = {"forces": 1e-3, "thrust": 1e-3, "accelerations": 1e-6, "surfaces": 1e-9, "outputs": 1e-9}
    bounds |= {"n2": 1e-9, "fuel": 1e-6, "place": 1e-6}
    assert {name: worst[name] for name in bounds if worst.get(name, 0.0) > bounds[name]} == {}, model.name


FIGHTERS = ("f15", "f22", "f104")


@pytest.mark.parametrize("name", FIGHTERS)
@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_frame_after_the_start_is_that_of_jsbsim(name, condition):
    model = installed(name)
    for stick in STICKS:
        check(model, compare(model, level_start(*condition), iter([(stick, condition[2])])))


@pytest.mark.parametrize("name", FIGHTERS)
def test_a_second_of_random_stick_is_that_of_jsbsim(name):
    worst = compare(installed(name), random_start(1), sticks(1, HZ))
    check(installed(name), worst)
    assert (worst["range"] > 0.1) == (name != "f22")  # see below


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", FIGHTERS)
def test_ten_seconds_of_random_stick_end_where_jsbsims_do(name, seed):
    worst = compare(installed(name), random_start(seed), sticks(seed, 10 * HZ))
    assert worst["place"] < 1e-3
    assert worst["fuel"] < 1e-6


@pytest.fixture
def loose_f22(tmp_path) -> Model:
    """The F-22 with actuators that move: JSBSim 1.3 takes their lag of 0 to say that they never do."""
    tree = ElementTree.parse(installed("f22").folder / "f22.xml")
    for actuator in tree.iter("actuator"):
        for lag in actuator.findall("lag"):
            actuator.remove(lag)
    tree.write(tmp_path / "f22.xml")
    return installed("f22")._replace(folder=tmp_path)


def test_the_control_system_of_the_f22_flies_as_in_jsbsim_when_its_actuators_move(loose_f22):
    worst = compare(loose_f22, random_start(3), sticks(3, HZ))
    check(loose_f22, worst)
    assert worst["range"] > 0.1


def test_a_piston_engine_is_refused_by_name():
    with pytest.raises(UnsupportedAircraft, match=r'eng_io320\.xml: <piston_engine name="IO320">.*engine="jsbsim"'):
        compiled(installed("c172p"))


# ---------------------------------------------------------------------------------------------------- our own aircraft

ALL = """
<property value="3"> fcs/three </property> <property value="0.3"> fcs/width </property>
<property> fcs/declared </property>
<channel name="all">
  <lag_filter name="fcs/lag"> <input> fcs/aileron-cmd-norm </input> <c1> 7 </c1> </lag_filter>
  <lag_filter name="fcs/lag-of-three"> <input> -fcs/three </input> <c1> fcs/three </c1> </lag_filter>
  <lead_lag_filter name="Lead And Lag">
    <input> fcs/aileron-cmd-norm </input> <c1> 2 </c1> <c2> 7.25 </c2> <c3> 0.5 </c3> <c4> 6 </c4>
    <clipto> <min> -1 </min> <max> 2 </max> </clipto>
  </lead_lag_filter>
  <washout_filter name="fcs/washout"> <input> fcs/elevator-cmd-norm </input> <c1> 3 </c1> </washout_filter>
  <second_order_filter name="fcs/second">
    <input> fcs/rudder-cmd-norm </input>
    <c1> 0.1 </c1> <c2> 1 </c2> <c3> 30 </c3> <c4> 0.2 </c4> <c5> 2 </c5> <c6> 25 </c6>
  </second_order_filter>
  <summer name="fcs/all-filters">
    <input> fcs/lag </input> <input> fcs/lag-of-three </input> <input> fcs/lead-and-lag </input>
    <input> fcs/washout </input> <input> fcs/second </input>
  </summer>
  <actuator name="fcs/slow">
    <input> fcs/aileron-cmd-norm </input> <lag> 20 </lag>
    <rate_limit sense="incr"> 9 </rate_limit> <rate_limit sense="decr"> fcs/three </rate_limit>
    <deadband_width> 0.1 </deadband_width> <hysteresis_width> 0.2 </hysteresis_width> <bias> 0.03 </bias>
    <clipto> <min> -0.7 </min> <max> 0.8 </max> </clipto>
  </actuator>
  <actuator name="fcs/of-three"> <input> fcs/three </input> <rate_limit> 0.5 </rate_limit> </actuator>
  <actuator name="fcs/held"> <input> fcs/three </input> <lag> 0 </lag> </actuator>
  <summer name="fcs/all-actuators">
    <input> fcs/slow </input> <input> fcs/of-three </input> <input> fcs/held </input>
  </summer>
  <deadband name="fcs/band">
    <input> fcs/aileron-cmd-norm </input> <width> fcs/width </width> <gain> 2 </gain>
  </deadband>
  <switch name="fcs/stop">
    <default value="0"/>
    <test value="1"> fcs/aileron-cmd-norm gt 0.7 </test> <test value="-1"> fcs/aileron-cmd-norm lt -0.9 </test>
  </switch>
  <integrator name="fcs/sum"> <input> fcs/band </input> <c1> 1.7 </c1> <trigger> fcs/stop </trigger> </integrator>
  <integrator name="fcs/plain"> <input> fcs/aileron-cmd-norm </input> <c1 type="rect"> fcs/three </c1> </integrator>
  <pid name="fcs/standard" type="standard">
    <input> fcs/aileron-cmd-norm </input> <kp> 0.4 </kp> <ki> 0.8 </ki> <kd> 0.02 </kd> <pvdot> fcs/band </pvdot>
  </pid>
  <integrator name="fcs/early"> <input> fcs/declared </input> <c1 type="rect"> 1 </c1> </integrator>
  <pure_gain name="fcs/declared"> <input> fcs/three </input> <gain> 1 </gain> </pure_gain>
  <integrator name="fcs/kept"> <input> fcs/lasting </input> <c1 type="rect"> 1 </c1> </integrator>
  <pure_gain name="fcs/lasting"> <input> fcs/three </input> <gain> 1 </gain> </pure_gain>
  <summer name="fcs/all-sums">
    <input> fcs/early </input> <input> fcs/kept </input>
    <input> fcs/band </input> <input> fcs/sum </input> <input> fcs/plain </input> <input> fcs/standard </input>
  </summer>
  <fcs_function name="fcs/looked-up"> <function> <sum>
    <table>
      <independentVar lookup="column"> fcs/lag </independentVar>
      <independentVar lookup="row"> fcs/aileron-cmd-norm </independentVar>
      <independentVar lookup="table"> fcs/elevator-cmd-norm </independentVar>
      <tableData breakPoint="-0.6">
                0  0.2
           0    1  3
           0.5  2  8
      </tableData>
      <tableData breakPoint="0.1">
                0.1  0.3  0.5
           0.1  5    7    0
           0.4  6    1    2
           0.9  4    3    9
      </tableData>
      <tableData breakPoint="0.5">
                0  0.2
           0    1  3
           0.5  2  8
      </tableData>
    </table>
    <log2><sum> <v>2</v> <p>fcs/lag</p> </sum></log2> <ln><sum> <v>2</v> <p>fcs/lag</p> </sum></ln>
    <log10><sum> <v>2</v> <p>fcs/lag</p> </sum></log10> <sign><p>fcs/lag</p></sign>
    <integer><product> <v>7</v> <p>fcs/lag</p> </product></integer>
    <fraction><product> <v>7</v> <p>fcs/lag</p> </product></fraction>
    <fmod> <p>fcs/lag</p> <v>0.15</v> </fmod> <avg> <p>fcs/lag</p> <v>1</v> <v>4</v> </avg>
    <p>fcs/flap-pos-deg</p> <p>fcs/mag-spoiler-pos-rad</p> <p>gear/wow</p>
    <product> <v>0.01</v> <p>propulsion/engine/n2</p> </product>
  </sum> </function> </fcs_function>
</channel>
"""
"""Each component that the F-16 does not have."""
DRAG = """<function name="drag"> <product>
  <p> aero/qbar-psf </p> <sum> <v> 0.02 </v> <product> <v> 0.1 </v> <p> aero/cl-squared </p> </product> </sum>
</product> </function>"""


def written(folder: Path, text: str, engine: str) -> Model:
    """An aircraft of our own as files."""
    files = {"body": text, "nothing": engine, "push": '<direct name="push"/>'}
    for name, content in files.items():
        (folder / f"{name}.xml").write_text(content.strip())
    return Model("body", folder, folder, folder)


def test_each_component_computes_what_jsbsims_does(tmp_path):
    model = written(tmp_path, aircraft_file(control=ALL, drag=DRAG), ENGINE)
    start = level_start(10_000.0, 300.0, 0.3)
    worst = compare(model, start, sticks(7, 4 * HZ))
    check(model, worst)
    assert worst["outputs"] < 1e-11
    flight, fdm = Flight(compiled(model), HZ, **start), oracle(model, start)
    for path in OUTPUTS[:-1]:
        assert getattr(flight.e, variable(path)) == pytest.approx(fdm[path], abs=1e-12)


TURBINE = """
<turbine_engine name="nothing">
  <milthrust unit="LBS"> 100 </milthrust> <bleed> 0.1 </bleed>
  <augmented> {} </augmented> <augmethod> {} </augmethod>
  <function name="IdleThrust"> <value> 0.1 </value> </function>
  <function name="MilThrust"> <p> atmosphere/sigma </p> </function>
  <function name="AugThrust"> <value> 0.02 </value> </function>
</turbine_engine>
"""


@pytest.mark.parametrize("throttle", [0.2, 1.0])
@pytest.mark.parametrize(("augmented", "method"), [(0, 0), (1, 0), (1, 1), (1, 2)])
def test_each_kind_of_afterburner_starts_and_burns_as_in_jsbsim(tmp_path, augmented, method, throttle):
    text = aircraft_file(propulsion=PROPULSION.replace('unit="M"', 'unit="IN"'), drag=DRAG)
    model = written(tmp_path, text, TURBINE.format(augmented, method))
    programme = [((0.1, 0.2, 0.0), throttle)] * 40 + [((0.0, 0.0, 0.0), 1.0 - throttle)] * 40
    check(model, compare(model, level_start(10_000.0, 300.0, throttle), iter(programme)))
