"""The compiled aircraft against JSBSim, the oracle: frame by frame, and in free flight under the same commands.

Generated modules fly as plain Python. Comparisons are functions that return the largest difference of each quantity;
the negative controls show that a broken aircraft is seen by them.
"""

from __future__ import annotations

import math
import re
import types
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ucav.aircraft_files import (
    CONTROL,
    CONTROLLED,
    ENGINE,
    GAME,
    PROPULSION,
    TURBINE,
    Flight,
    aircraft_file,
    frame_of,
    imported,
    limits_around,
    module_of,
)

from palaestra.games.ucav.aircraft import air, machinery, motion
from palaestra.games.ucav.aircraft.generated import limits_of, read_frame
from palaestra.games.ucav.aircraft.program import variable
from palaestra.games.ucav.aircraft.writer import source_of
from palaestra.games.ucav.body import BODY

pytest.importorskip("jsbsim", reason="the aircraft need the extra palaestra[flight]")
import jsbsim

from palaestra.games.ucav.airframes import AIRFRAMES, aircraft_tree, root_folder, systems_folder
from palaestra.games.ucav.jsbsim_engine import JsbsimEngine, silence

pytestmark = pytest.mark.check

Commands = tuple[float, float, float, float]
"""Aileron, elevator, rudder, throttle."""
Start = dict[str, Any]
"""Members of the aircraft record; "kind": keywords of the engine."""
COMMANDS = ("aileron_command", "elevator_command", "rudder_command", "throttle_command")

# Quantity; what is compared (property of JSBSim: variable of the frame); the largest difference that counts as none.
SURFACES = (
    "elevator-pos-rad",
    "aileron-pos-rad",
    "rudder-pos-rad",
    "lef-pos-rad",
    "flaperon-mix-rad",
    "speedbrake-pos-rad",
)
QUANTITIES: dict[str, tuple[dict[str, str], float]] = {
    "surfaces": ({f"fcs/{name}": variable(f"fcs/{name}") for name in (*SURFACES, "tef-control")}, 1e-9),  # rad
    "forces": ({f"forces/fb{axis}-total-lbs": f"force_{axis}" for axis in "xyz"}, 1e-3),  # lbf
    "moments": (
        {f"moments/{name}-total-lbsft": f"moment_{axis}" for name, axis in zip("lmn", "xyz", strict=True)},
        1e-3,  # lbf ft
    ),
    "thrust": ({"propulsion/engine/thrust-lbs": "engine_0_thrust"}, 1e-3),  # lbf
    "spools": ({f"propulsion/engine/n{k}": f"engine_0_n{k}" for k in (1, 2)}, 1e-9),  # percent
    "fuel flow": ({"propulsion/engine/fuel-flow-rate-pps": "fuel_flow_pps"}, 1e-9),  # lb/s
    "accelerations": (
        {f"accelerations/{name}-ft_sec2": f"accelerations_{name}_ft_sec2" for name in ("udot", "vdot", "wdot")},
        1e-6,  # ft/s^2
    ),
    "turns": (
        {f"accelerations/{name}idot-rad_sec2": f"{name}_acceleration" for name in "pqr"},
        1e-9,  # rad/s^2
    ),
    "centre of gravity": ({f"inertia/cg-{axis}-in": f"cg_{axis}" for axis in "xyz"}, 1e-9),
}
PROBES = tuple(name for names, _ in QUANTITIES.values() for name in names.values() if name != "fuel_flow_pps")
NAMES = BODY.names or ()
OUTPUTS = NAMES[NAMES.index("north_m") : NAMES.index("finite")]


def generated(airframe: str = "f16-jsbsim", planet: str = "wgs84") -> str:
    """The generated file of an aircraft, with what is compared in its record."""
    root = root_folder()
    tree = aircraft_tree(airframe, root)
    name = f"{AIRFRAMES[airframe].model}.xml"
    frame = read_frame(tree, name, root / "engine", systems_folder(airframe, root), planet)
    return source_of(frame, limits_of(tree, planet), PROBES)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    patch = pytest.MonkeyPatch()
    patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    yield generated()
    patch.undo()


@pytest.fixture(scope="module")
def compiled(source):
    """The aircraft as installed, over the Earth."""
    return imported(source)


class Pair:
    """The same flight in JSBSim and in a generated module.

    Attributes:
        oracle: JSBSim's aircraft record.
        fdm: JSBSim.
        flight: The module's.
    """

    def __init__(self, module: types.ModuleType, hz: int = 60, fuel_lb: float | None = None, **start: Any) -> None:
        """Loads both; ``kind`` in ``start`` are keywords of the engine, the rest members of the aircraft record."""
        self.engine = JsbsimEngine(GAME, 1, physics_hz=hz, frames=1, **start.pop("kind", {}))
        self.states: Any = np.zeros(1, GAME.state_dtype)
        self.oracle = self.states["body"][0, 0]
        for name, value in start.items():
            self.oracle[name] = value
        self.flight = Flight(module, hz, **start)
        self.engine.load(self.states, [0])
        self.fdm = self.engine.aircraft[0][0].fdm
        if fuel_lb is not None:
            for number in ("", "[1]"):
                path = f"propulsion/tank{number}/contents-lbs"
                self.fdm[path] = fuel_lb
                setattr(self.flight.e, variable(path), fuel_lb)

    def advance(self, commands: Commands, frames: int = 1) -> None:
        for name, value in zip(COMMANDS, commands, strict=True):
            self.oracle[name] = value
            setattr(self.flight.body, name, value)
        for _ in range(frames):
            self.engine.advance(self.states, [0])
        self.flight.advance(frames)

    def frame_differences(self) -> dict[str, float]:
        """Largest difference of each of `QUANTITIES`, in its unit."""
        e = self.flight.e
        e.fuel_flow_pps = e.engine_0_fuel_flow / 3600.0
        return {
            quantity: max(abs(self.fdm[path] - getattr(e, name)) for path, name in names.items())
            for quantity, (names, _) in QUANTITIES.items()
        }

    def flight_differences(self) -> dict[str, float]:
        """Distance, m, and angle between the attitudes, deg."""
        one, two = self.oracle, self.flight.body
        away = [float(one[name]) - getattr(two, name) for name in ("north_m", "east_m", "altitude_m")]
        attitudes = [
            np.array(motion.quaternion(*(float(get(name)) for name in ("roll_rad", "pitch_rad", "heading_rad"))))
            for get in (one.__getitem__, lambda name: getattr(two, name))
        ]
        turned = 2.0 * min(np.linalg.norm(attitudes[0] - attitudes[1]), np.linalg.norm(attitudes[0] + attitudes[1]))
        return {"m": math.dist(away, (0, 0, 0)), "deg": math.degrees(turned)}

    def close(self) -> None:
        self.engine.close()


def largest(found: Iterable[dict[str, float]]) -> dict[str, float]:
    """Of each quantity."""
    total: dict[str, float] = {}
    for differences in found:
        total = {name: max(value, total.get(name, 0.0)) for name, value in differences.items()}
    return total


# ---------------------------------------------------------------------------------------------------- frame by frame

STICKS = [
    (0.0, 0.0, 0.0),
    *((sign, 0.0, 0.0) for sign in (-1.0, 1.0)),
    *((0.0, sign, 0.0) for sign in (-1.0, 1.0)),
    *((0.0, 0.0, sign) for sign in (-1.0, 1.0)),
    *((0.3, 0.5, 0.0), (-0.3, 0.5, 0.1), (0.7, -0.4, -0.6), (-0.8, 0.9, 0.4), (0.1, -0.1, 0.9), (0.02, 0.1, -0.01)),
]
"""Aileron, elevator, rudder."""
STALL: Start = {"altitude_m": 8000.0, "true_airspeed_mps": 10.0}
CONDITIONS: dict[str, Start] = {
    "low and slow": {"altitude_m": 900.0, "true_airspeed_mps": 105.0, "pitch_rad": 0.15, "throttle_command": 0.4},
    "high and transonic": {"altitude_m": 12_500.0, "true_airspeed_mps": 305.0, "throttle_command": 0.55},
    "idle": {"altitude_m": 6000.0, "true_airspeed_mps": 210.0, "roll_rad": 2.0, "throttle_command": 0.0},
    "full burner": {"altitude_m": 3000.0, "true_airspeed_mps": 390.0, "roll_rad": -0.7, "throttle_command": 1.0},
    "windy": {
        **{"altitude_m": 5000.0, "true_airspeed_mps": 230.0, "throttle_command": 0.45, "density_deviation": 0.08},
        **{"wind_north_mps": 12.0, "wind_east_mps": -25.0, "wind_down_mps": 3.0, "payload_kg": 900.0},
    },
}


def compare_frames(module: types.ModuleType, condition: Start, sticks=STICKS, frames: int = 12):
    """Largest differences in the first frames under each stick, from a place that differs from stick to stick."""
    found = []
    for k, stick in enumerate(sticks):
        place = {"north_m": 1500.0 * (k - 6), "east_m": 900.0 * (6 - k), "heading_rad": 0.5 * k}
        pair = Pair(module, **place, **condition)
        for _ in range(frames):
            pair.advance((*stick, condition["throttle_command"]))
            found.append(pair.frame_differences())
        pair.close()
    return largest(found)


def compare_spooling(module: types.ModuleType):
    """Largest differences under military power, idle, full burner, half a burner and idle: two seconds each."""
    pair, found = Pair(module, **CONDITIONS["idle"]), []
    for throttle in (0.5, 0.1, 1.0, 0.75, 0.0):
        for _ in range(120):
            pair.advance((0.0, 0.1, 0.0, throttle))
            found.append(pair.frame_differences())
    pair.close()
    return largest(found)


def too_large(differences: dict[str, float]) -> dict[str, float]:
    """Those of a frame that count."""
    return {name: value for name, value in differences.items() if not value <= QUANTITIES[name][1]}


@pytest.mark.parametrize("condition", CONDITIONS)
def test_every_frame_has_jsbsims_surfaces_forces_and_accelerations(compiled, condition):
    assert too_large(compare_frames(compiled, CONDITIONS[condition])) == {}


@pytest.mark.parametrize(("airframe", "planet"), [("f16", "still"), ("f16", "wgs84"), ("f16-jsbsim", "still")])
@pytest.mark.usefixtures("source")
def test_every_airframe_around_every_planet_has_jsbsims_frames(airframe, planet):
    kind = {"airframe": airframe, "planet": planet}
    module = imported(generated(airframe, planet))
    for condition in ("high and transonic", "windy"):
        assert too_large(compare_frames(module, {**CONDITIONS[condition], "kind": kind}, STICKS[7:10])) == {}


def test_a_change_of_throttle_spools_and_burns_as_in_jsbsim(compiled):
    assert too_large(compare_spooling(compiled)) == {}


def test_a_deep_stall_opens_the_speed_brake_as_in_jsbsim(compiled):
    pair, found = Pair(compiled, **STALL), []
    for _ in range(240):
        pair.advance((0.0, 0.0, 0.0, 0.0))
        found.append(pair.frame_differences())
    assert pair.fdm["fcs/speedbrake-pos-rad"] > 0.1
    pair.close()
    assert too_large(largest(found)) == {}


def test_a_flight_without_fuel_ends_as_in_jsbsim(compiled):
    """The tanks run dry at full burner: the thrust ends and the spools run down. JSBSim shows no flow without fuel."""
    pair, found = Pair(compiled, fuel_lb=6.0, **CONDITIONS["full burner"]), []
    for _ in range(15 * 60):
        pair.advance((0.02, 0.1, 0.0, 1.0))
        found.append(pair.frame_differences())
        if not pair.oracle["fuel_kg"]:
            del found[-1]["fuel flow"]
    assert too_large(largest(found)) == {}
    assert pair.flight.body.fuel_kg == pair.oracle["fuel_kg"] == 0.0
    assert pair.flight.e.engine_0_thrust == 0.0
    assert 10.0 < pair.fdm["propulsion/engine/n2"] < 50.0
    assert within(pair.flight_differences(), CLOSE)
    pair.close()


def test_the_record_of_the_rules_shows_what_jsbsims_does(compiled):
    pair = Pair(compiled, **CONDITIONS["windy"])
    for k in range(60):
        pair.advance((0.3, 0.4, 0.1, 0.9 if k < 30 else 0.2))
        for name in OUTPUTS:
            assert getattr(pair.flight.body, name) == pytest.approx(float(pair.oracle[name]), abs=1e-8), name
        assert (pair.flight.body.finite, pair.flight.body.in_tables) == (1, 1)
    pair.close()


# ------------------------------------------------------------------------------------------------------- free flight


def hold(time: float, body: Any, random: np.random.Generator) -> Commands:
    """Wings level, a little up."""
    return -0.2 * float(body["roll_rad"]), 0.5 * (0.1 - float(body["pitch_rad"])), 0.0, 0.45


def spiral(time: float, body: Any, random: np.random.Generator) -> Commands:
    """Rolls to 75 deg and pulls 4 g."""
    roll = min(max(0.5 * (1.3 - float(body["roll_rad"])), -0.5), 0.5)
    pull = min(max(0.2 + 0.15 * (4.0 - float(body["load_factor_g"])), 0.0), 1.0)
    return roll, pull if time > 1.0 else 0.0, 0.0, 1.0


def transonic(time: float, body: Any, random: np.random.Generator) -> Commands:
    """A new stick five times a second; beyond 480 m/s the control system oscillates, which makes rounding grow."""
    aileron, elevator, rudder = random.uniform((-0.3, -0.1, -0.2), (0.3, 0.4, 0.2))
    throttle = random.uniform(0.5, 0.8)
    return aileron, elevator, rudder, throttle if body["true_airspeed_mps"] < 390.0 else 0.0


def wild(time: float, body: Any, random: np.random.Generator) -> Commands:
    """Stick to the stops, burner on and off; pulls up when low, as JSBSim alone has a ground."""
    aileron, elevator, rudder = random.uniform((-1.0, -0.5, -1.0), (1.0, 1.0, 1.0))
    if body["altitude_m"] < 5000.0:
        return min(max(-float(body["roll_rad"]), -1.0), 1.0), 0.7, 0.0, 1.0
    return aileron, elevator, rudder, float(random.integers(2))


FLIGHTS: dict[str, tuple[Callable[..., Commands], Start]] = {
    "hold": (hold, {"altitude_m": 6000.0, "true_airspeed_mps": 240.0, "north_m": 20_000.0, "heading_rad": 0.8}),
    "spiral": (spiral, {"altitude_m": 8000.0, "true_airspeed_mps": 270.0, "north_m": -15_000.0, "heading_rad": 3.9}),
    "transonic": (transonic, {"altitude_m": 9500.0, "true_airspeed_mps": 310.0, "east_m": 20_000.0, "heading_rad": 2}),
    "wild": (wild, {"altitude_m": 10_500.0, "true_airspeed_mps": 280.0, "north_m": 5000.0, "heading_rad": 5.5}),
}
PERIOD_S = 0.2
"""Time between two commands."""
CLOSE = 1e-4
"""Metres between flights that count as the same: rounding alone makes up to 2e-7 m in a minute."""


def compare_flights(module: types.ModuleType, flight: str, seconds: float, hz: int = 60, seed: int = 0, **start: Any):
    """Largest differences of a free flight."""
    stick, begin = FLIGHTS[flight]
    pair, random, found = Pair(module, hz, throttle_command=0.5, **{**begin, **start}), np.random.default_rng(seed), []
    heights, speeds = [], []
    for k in range(round(seconds / PERIOD_S)):
        pair.advance(stick(k * PERIOD_S, pair.oracle, random), round(PERIOD_S * hz))
        found.append(pair.flight_differences())
        speeds.append(float(pair.oracle["true_airspeed_mps"]))
        heights.append(float(pair.oracle["altitude_m"]))
    pair.close()
    assert min(heights) > 500.0, "JSBSim alone has a ground"
    assert max(speeds) < 480.0, "rounding grows"
    return largest(found)


def within(differences: dict[str, float], close: float) -> bool:
    """Whether flights are the same up to a distance, m, and a tenth of that in degrees."""
    return differences["m"] <= close and differences["deg"] <= 0.1 * close


@pytest.mark.parametrize("hz", [60, 120])
@pytest.mark.parametrize("flight", FLIGHTS)
def test_a_free_flight_of_half_a_minute_stays_within_a_tenth_of_a_millimetre_of_jsbsims(compiled, flight, hz):
    assert within(compare_flights(compiled, flight, 30.0, hz), CLOSE)


@pytest.mark.slow  # 25 s
@pytest.mark.parametrize("hz", [60, 120])
@pytest.mark.parametrize("flight", FLIGHTS)
def test_a_free_flight_of_a_minute_stays_within_a_millimetre_of_jsbsims(compiled, flight, hz):
    for seed in range(3):
        start = {"north_m": 8000.0 * (seed - 1), "east_m": -9000.0 * (seed - 1), "heading_rad": 2.0 * seed}
        assert within(compare_flights(compiled, flight, 60.0, hz, seed, **start), 10.0 * CLOSE)


# ------------------------------------------------------------------------------------------- aircraft of our own files


def fdm_of(folder: Path, aircraft: str, engine: str = ENGINE, hz: int = 60, **start: float) -> Any:
    """JSBSim with an aircraft whose files are texts, started as `JsbsimEngine` starts one."""
    for name, text in {"body": aircraft, "nothing": engine, "push": '<direct name="push"/>'}.items():
        (folder / f"{name}.xml").write_text(text, encoding="utf-8")
    with silence(jsbsim):
        fdm = jsbsim.FGFDMExec(None)
        fdm.set_debug_level(0)
        fdm.set_dt(1.0 / hz)
        assert fdm.load_model_with_paths("body", str(folder), str(folder), str(folder), False)
        for name, value in start.items():
            fdm[f"ic/{name.replace('_', '-')}"] = value
        for _ in range(2):
            fdm.reset_to_initial_conditions(0)
    return fdm


def test_every_kind_of_component_computes_what_jsbsims_does(tmp_path):
    text = aircraft_file(control=CONTROL)
    fdm = fdm_of(tmp_path, text, h_sl_ft=10_000.0, u_fps=300.0)
    flight = Flight(module_of(text, "wgs84", CONTROLLED), altitude_m=3048.0, true_airspeed_mps=91.44)
    random, found = np.random.default_rng(0), []
    for k in range(200):
        if k % 7 == 0:
            stick = (0.25, -0.2, 0.95) if k % 21 == 0 else random.uniform(-1.0, 1.0, 3).tolist()
            for name, command in zip(("aileron", "elevator", "rudder"), stick, strict=True):
                fdm[f"fcs/{name}-cmd-norm"] = command
            flight.body.aileron_command, flight.body.elevator_command = stick[0], -stick[1]
            flight.body.rudder_command = -stick[2]
        fdm.run()
        flight.advance()
        found.append({path: abs(fdm[path] - getattr(flight.e, variable(path))) for path in CONTROLLED})
    assert {path: error for path, error in largest(found).items() if error > 1e-12} == {}


INSTRUMENTS = (
    *("aero/alphadot-rad_sec", "aero/betadot-rad_sec", "aero/mag-beta-deg", "aero/h_b-cg-ft", "aero/h_b-mac-ft"),
    *("aero/bi2vel", "aero/ci2vel", "aero/cl-squared", "aero/alpha-wing-rad", "accelerations/Nx", "accelerations/Ny"),
    *(f"accelerations/n-pilot-{axis}-norm" for axis in "xyz"),
    *("velocities/ve-kts", "velocities/vc-kts", "velocities/vg-fps", "flight-path/gamma-rad"),
    *("atmosphere/density-altitude", "atmosphere/sigma", "position/h-agl-ft", "attitude/pitch-rad"),
)
MADE = {
    **{"inertia/weight-lbs": "inertia_weight_lbs", "inertia/cg-x-in": "cg_x", "inertia/cg-z-in": "cg_z"},
    **{"metrics/Sw-sqft": "wing", "metrics/cbarw-ft": "chord", "metrics/iw-rad": "incidence"},
    **{f"forces/fb{axis}-total-lbs": f"force_{axis}" for axis in "xyz"},
    **{f"moments/{name}-total-lbsft": f"moment_{axis}" for name, axis in zip("lmn", "xyz", strict=True)},
    **{f"accelerations/{name}idot-rad_sec2": f"{name}_acceleration" for name in "pqr"},
    **{"propulsion/engine/thrust-lbs": "engine_0_thrust", "propulsion/total-fuel-lbs": "propulsion_total_fuel_lbs"},
    **{"propulsion/engine/n1": "engine_0_n1", "propulsion/engine/n2": "engine_0_n2"},
    **{path: variable(path) for path in INSTRUMENTS},
}
FORCES = """
<function name="aero/pressure"> <product> <p>aero/qbar-psf</p> <p>metrics/Sw-sqft</p> </product> </function>
<axis name="X"> <function name="aero/x"> <product> <p>aero/pressure</p> <v>-0.02</v> </product> </function> </axis>
<axis name="Y"> <function name="aero/y">
  <product> <p>aero/pressure</p> <p>aero/beta-rad</p> <v>-1</v> </product>
</function> </axis>
<axis name="Z"> <function name="aero/z">
  <product> <p>aero/pressure</p> <p>aero/alpha-rad</p> <v>-3</v> </product>
</function> </axis>
<axis name="PITCH"> <function name="aero/m">
  <product> <p>aero/pressure</p> <p>metrics/cbarw-ft</p> <p>velocities/q-aero-rad_sec</p> <v>-0.3</v> </product>
</function> </axis>
"""


def test_an_aircraft_in_metric_units_with_a_turbine_of_its_own_flies_as_in_jsbsim(tmp_path):
    text = aircraft_file(propulsion=PROPULSION)
    start, end = text.index("<aerodynamics>") + len("<aerodynamics>"), text.index("</aerodynamics>")
    text = text[:start] + FORCES + text[end:]
    metrics = """<wingarea unit="M2"> 2 </wingarea> <wingspan unit="M"> 4 </wingspan> <chord unit="M"> 0.5 </chord>
        <wing_incidence unit="DEG"> 2 </wing_incidence>
        <location name="AERORP" unit="M"> <x> 0.1 </x> <z> 0.05 </z> </location>
        <location name="EYEPOINT" unit="M"> <x> -1.5 </x> <y> 0.2 </y> <z> 0.4 </z> </location>"""
    masses = """<ixx unit="KG*M2"> 90 </ixx> <iyy unit="KG*M2"> 200 </iyy> <izz unit="KG*M2"> 260 </izz>
        <ixz unit="KG*M2"> 11 </ixz> <emptywt unit="KG"> 300 </emptywt>
        <location name="CG" unit="M"> <x> 0.02 </x> <y> 0 </y> <z> -0.03 </z> </location>
        <pointmass name="pilot"> <weight unit="KG"> 80 </weight>
        <location unit="M"> <x> -1.2 </x> <y> 0.1 </y> <z> 0.2 </z> </location> </pointmass>"""
    for tag, inner in (("metrics", metrics), ("mass_balance", masses)):
        text = re.sub(rf"<{tag}>.*</{tag}>", f"<{tag}> {inner} </{tag}>", text, flags=re.DOTALL)
    fdm = fdm_of(tmp_path, text, TURBINE, h_sl_ft=10_000.0, u_fps=500.0)
    fdm["fcs/throttle-cmd-norm"] = 0.3
    fdm.get_propulsion().init_running(-1)
    fdm["propulsion/engine/n1"], fdm["propulsion/engine/n2"] = 25.0 + 0.6 * 73.0, 55.0 + 0.6 * 46.0
    frame = frame_of(text, "wgs84", TURBINE)
    for name, path in {"wing": "metrics_Sw_sqft", "chord": "metrics_cbarw_ft", "incidence": "metrics_iw_rad"}.items():
        frame.program.add(f"{name} = {path}")
    module = imported(source_of(frame, limits_around("wgs84"), tuple(MADE.values())))
    flight = Flight(module, altitude_m=3048.0, true_airspeed_mps=152.4, throttle_command=0.3)
    found = []
    for k in range(400):
        flight.body.throttle_command = fdm["fcs/throttle-cmd-norm"] = (0.3, 1.0, 1.7, 0.0)[k // 100]
        fdm.run()
        flight.advance()
        found.append(
            {path: abs(fdm[path] - getattr(flight.e, name)) / (1.0 + abs(fdm[path])) for path, name in MADE.items()}
        )
    assert {path: error for path, error in largest(found).items() if error > 1e-9} == {}


# -------------------------------------------------------------------------------------------------- negative controls


def edited(source: str, pattern: str, replacement: str) -> types.ModuleType:
    """A generated module with a mistake: a text of its source replaced."""
    text, count = re.subn(pattern, replacement, source, flags=re.MULTILINE)
    assert count > 0, pattern
    return imported(text)


def terms_of_the_aerodynamics(source: str) -> list[str]:
    """Variables that are summed to forces and moments, and are not zero as long as the gear is up."""
    sums = re.findall(r"^    aero_(?:drag|side|lift|roll|pitch|yaw) = (.*)$", source, re.MULTILINE)
    names = [name for text in sums for name in text.split(" + ")]
    return [name for name in names if "gear_gear_pos" not in re.findall(rf"^    {name} = .*$", source, re.MULTILINE)[0]]


@pytest.mark.check
def test_a_missing_term_of_the_aerodynamics_is_seen(source):
    """40 aircraft: two seconds."""
    names = terms_of_the_aerodynamics(source)
    assert len(names) > 30
    for name in names:
        broken = edited(source, rf"^(    {name} = ).*$", r"\g<1>0.0")
        condition, frames = CONDITIONS["full burner"], 6
        if "speedbrake" in re.findall(rf"^    {name} = .*$", source, re.MULTILINE)[0]:
            condition, frames = {**STALL, "throttle_command": 0.0}, 240
        found = too_large(compare_frames(broken, condition, STICKS[7:9], frames))
        assert {"forces", "accelerations", "moments", "turns"} & found.keys(), name


def test_a_constant_spooling_is_seen(compiled, monkeypatch):
    monkeypatch.setattr(machinery, "spool_rate", lambda share, density_ratio, delay: delay / 1.5)
    assert {"spools", "thrust", "fuel flow"} <= too_large(compare_spooling(compiled)).keys()


def test_a_density_altitude_without_the_stratosphere_is_seen(source):
    broken = imported(source)

    def without(density):
        height = air.height_of_density(air.TROPOSPHERE, density)
        return height * air.EARTH_RADIUS_FT / (air.EARTH_RADIUS_FT - height)

    broken.density_altitude = without  # type: ignore[attr-defined]
    thick = {"density_deviation": 0.01}  # on the standard day the altitude itself is taken
    assert {"thrust", "forces"} <= too_large(compare_frames(broken, CONDITIONS["high and transonic"] | thick)).keys()
    assert too_large(compare_frames(broken, CONDITIONS["low and slow"] | thick)) == {}
    high: Start = {"altitude_m": 13_000.0, **thick}
    assert not within(compare_flights(broken, "transonic", 10.0, **high), CLOSE)


@pytest.mark.parametrize("step", ["0.5 * dt", "1.001 * dt"])
def test_another_step_of_the_control_system_is_seen(source, step):
    """JSBSim keeps the step that it loads an aircraft with, whatever is set later."""
    broken = edited(source, r"run_frame\(e, dt, dt\)", f"run_frame(e, dt, {step})")
    assert "surfaces" in too_large(compare_frames(broken, CONDITIONS["idle"]))
    assert not within(compare_flights(broken, "wild", 10.0), CLOSE)


@pytest.mark.parametrize(
    ("pattern", "replacement"),
    [
        (r"0\.00108262982", "0.001082"),  # J2 of gravity
        (r"earth_angle \+ 7\.292115e-05 \* dt", "earth_angle"),
        (r"1\.5 \* acceleration_x - 0\.5 \* acceleration_x_before", "acceleration_x"),
        (r"(engine_0_burnt = .*) / 3600", r"\1 / 3610"),
        (r"body_acceleration_z \+ tangent_z \+ centre_z", "body_acceleration_z + tangent_z"),
    ],
)
def test_a_wrong_number_in_the_motion_is_seen_in_free_flight(source, pattern, replacement):
    assert not within(compare_flights(edited(source, pattern, replacement), "wild", 20.0), CLOSE)
