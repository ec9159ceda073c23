"""Tanks and turbines of an aircraft as statements of a frame."""

from __future__ import annotations

import math
from typing import NamedTuple

from palaestra.games.ucav.aircraft.expressions import Expressions
from palaestra.games.ucav.aircraft.program import Program, variable
from palaestra.games.ucav.aircraft.reader import Element, Source, text_of

Triplet = tuple[float, float, float]
REMEMBERED = ("n1", "n2", "share", "fuel_flow", "augmented")
"""Fields of `palaestra.games.ucav.aircraft.machinery.Turbine` that are carried to the next frame."""


class Engine(NamedTuple):
    """A turbine and where it sits.

    Attributes:
        source: Its file.
        thrust: Unit vector of its thrust in body axes.
        place: In the structural frame, in.
        feed: Numbers of the tanks that it burns from.
    """

    source: Source
    thrust: Triplet
    place: Triplet
    feed: tuple[int, ...]


class Tank(NamedTuple):
    """A fuel tank.

    Attributes:
        contents_lb: At the start.
        place: In the structural frame, in.
    """

    contents_lb: float
    place: Triplet


def contents(tank: int) -> str:
    """Variable that holds the fuel in a tank, lb."""
    return variable(f"propulsion/tank[{tank}]/contents-lbs")


def read_tanks(source: Source, section: Element) -> dict[int, Tank]:
    """The tanks that hold fuel, by number.

    Raises:
        UnsupportedAircraft: A tank is something else.
    """
    tanks = {}
    for number, tank in enumerate(section.findall("tank")):
        source.check(tank, "description location capacity contents")
        place = tank.find("location")
        if tank.get("type") != "FUEL" or place is None:
            raise source.refuse(tank, "a tank without fuel or place")
        fuel = source.number(tank, "contents", "LBS", 0.0)
        if fuel > 0.0:
            tanks[number] = Tank(fuel, source.triplet(place, "IN"))
    return tanks


def read_engines(source: Source, section: Element, files: dict[str, Source]) -> list[Engine]:
    """The engines.

    Args:
        source: The aircraft's file.
        section: Its ``<propulsion>``.
        files: Files of engines and thrusters by name.

    Raises:
        UnsupportedAircraft: One is no turbine with direct thrust.
    """
    engines = []
    for engine in section.findall("engine"):
        source.check(engine, "feed thruster location orient")
        thruster = engine.find("thruster")
        if thruster is None:
            raise source.refuse(engine, "has no thruster")
        file = files[engine.get("file", "")]
        if file.root.tag != "turbine_engine":
            raise file.refuse(file.root, "an engine of another kind than a turbine")
        source.check(thruster, "location orient")
        if files[thruster.get("file", "")].root.tag != "direct":
            raise source.refuse(thruster, "a thruster of another kind than <direct>")
        place, orient = thruster.find("location"), thruster.find("orient")
        at = (0.0, 0.0, 0.0) if place is None else source.triplet(place, "IN")
        _, pitch, yaw = (0.0,) * 3 if orient is None else source.triplet(orient, "RAD", "roll pitch yaw")
        pointing = (math.cos(pitch) * math.cos(yaw), math.cos(pitch) * math.sin(yaw), -math.sin(pitch))
        engines.append(Engine(file, pointing, at, tuple(int(text_of(f)) for f in engine.findall("feed"))))
    return engines


def add_engine(program: Program, number: int, engine: Engine, tanks: dict[int, Tank]) -> tuple[str, str]:
    """Adds thrust and fuel burn of one turbine.

    Returns:
        Lines of the generated file that define ``SPEEDS_k`` and ``RATES_k``.

    Raises:
        UnsupportedAircraft: Its file has something that is not known.
    """
    source, root, name = engine.source, engine.source.root, f"engine_{number}"
    source.check(
        root,
        "description documentation milthrust maxthrust bypassratio bleed tsfc atsfc idlen1 idlen2 maxn1 maxn2 "
        "ignitionn1 ignitionn2 n1spinup n2spinup n1startrate n2startrate n1spindown n2spindown "
        "augmented augmethod injected function",
    )
    value = lambda tag, default=None: source.number(root, tag, "", default)  # noqa: E731
    military, full = (source.number(root, tag, "LBS", 10_000.0) for tag in ("milthrust", "maxthrust"))
    is_augmented, method = value("augmented", 0.0) == 1.0, value("augmethod", 0.0)
    if method not in ((0.0, 1.0, 2.0) if is_augmented else (0.0,)):
        raise source.refuse(root, f"the method of augmentation {method:g}, {'with' if is_augmented else 'without'} one")
    expressions = Expressions(program, source)
    tables = {f.get("name", ""): expressions.function(f) for f in root.findall("function")}
    needed = {"IdleThrust", "MilThrust", *(("AugThrust",) if method else ())}
    if tables.keys() - {"IdleThrust", "MilThrust", "AugThrust", "Injection"} or not tables.keys() >= needed:
        raise source.refuse(root, f"the functions {sorted(tables)}")
    idle_flow = 107.0 * military**0.2
    throttle = variable(f"fcs/throttle-pos-norm[{number}]")
    boost, switch = float(method == 2.0), float(method == 1.0)
    # JSBSim starts engines at military power, which lights an afterburner that has a switch. A flight begins with
    # `engine_k_augmented` 0, so that is whether such an afterburner is out.
    speeds = (value("idlen1", 30.0), value("idlen2", 60.0), value("maxn1", 100.0), value("maxn2", 100.0))
    starts_lit = switch != 0.0 and speeds[3] > 97.0
    lit = lambda state: f"1.0 - {state}" if starts_lit else state  # noqa: E731
    steady = (
        f"max(({name}_idle + {name}_military) * specific_consumption({value('tsfc', 0.8)!r}, atmosphere_T_R, 1.0), "
        f"{idle_flow!r})"
    )
    if starts_lit:
        steady = f"{value('atsfc', 1.7)!r} * {name}_full"
    before = [lit(f"{name}_{part}") if part == "augmented" else f"{name}_{part}" for part in REMEMBERED]
    program.add(
        f"""
        {name}_lever = min({throttle}, 1.0)
        {name}_burner = min(max({throttle} - 1.0, 0.0), 1.0)
        {name}_idle = {military!r} * {tables["IdleThrust"]}
        {name}_military = ({military!r} - {name}_idle) * {tables["MilThrust"]}
        {name}_full = {full!r} * {tables.get("AugThrust", "0.0")}
        {name}_steady_flow = {steady}
        {name}_runs = 1.0 if {name}_starved == 0.0 else 0.0
        {name}_before = Turbine({", ".join(before)}, 0.0)
        {name}_now = thrust_and_flow(
            {name}_before, {name}_runs, SPEEDS_{number}, RATES_{number}, {name}_lever, {name}_burner, {name}_idle,
            {name}_military, {name}_full, {boost!r}, {switch!r}, atmosphere_T_R, atmosphere_sigma, aero_qbar_psf, dt,
        )
        {name}_thrust = {name}_now.thrust
        {variable(f"propulsion/engine[{number}]/thrust-lbs")} = {name}_thrust
        """
    )
    for part in REMEMBERED:
        now = f"{name}_now.{part}"
        program.add(f"{name}_{part} = {lit(now) if part == 'augmented' else now}")
    program.add(show_speeds(number))
    _burn(program, name, [tank for tank in engine.feed if tank in tanks])
    rates = (value("tsfc", 0.8), value("atsfc", 1.7), idle_flow, value("bleed", 0.0))
    stopping = (value("n1spindown", 2.0), value("n2spindown", 2.0))
    return (
        f"SPEEDS_{number} = Speeds{(*speeds, 90.0 / (value('bypassratio', 0.0) + 3.0), 2.4, 3.0)!r}",
        f"RATES_{number} = Rates{(*rates, *stopping)!r}",
    )


def show_speeds(number: int) -> str:
    """Statements that show the speeds of a turbine as properties."""
    return "\n".join(f"{variable(f'propulsion/engine[{number}]/{n}')} = engine_{number}_{n}" for n in ("n1", "n2"))


def _burn(program: Program, name: str, fed: list[int]) -> None:
    """Takes the fuel of a frame from the tanks that have some, in equal parts."""
    count = " + ".join(f"(1.0 if {contents(k)} > 0.0 else 0.0)" for k in fed) or "0.0"
    program.add(f"{name}_tanks = {count}\n{name}_starved = 1.0 if {name}_tanks == 0.0 else 0.0")
    program.add(f"{name}_burnt = {name}_fuel_flow / 3600.0 * dt / max({name}_tanks, 1.0)")
    for tank in fed:
        program.add(f"{contents(tank)} = max({contents(tank)} - {name}_burnt, 0.0)")


def add_thrust(program: Program, number: int, engine: Engine, lever: str) -> None:
    """Adds force and moment of one turbine; ``lever`` is its place from the centre of gravity in body axes."""
    x, y, z = engine.thrust
    thrust = f"engine_{number}_thrust"
    program.add(
        f"""
        push_x, push_y, push_z = {x!r} * {thrust}, {y!r} * {thrust}, {z!r} * {thrust}
        lever_x, lever_y, lever_z = {lever}
        twist_x, twist_y, twist_z = cross(lever_x, lever_y, lever_z, push_x, push_y, push_z)
        force_x, force_y, force_z = force_x + push_x, force_y + push_y, force_z + push_z
        moment_x, moment_y, moment_z = moment_x + twist_x, moment_y + twist_y, moment_z + twist_z
        """
    )
