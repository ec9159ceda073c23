"""A frame of JSBSim as a program: its models in their order, what they know of each other, the aircraft's own files.

The order is JSBSim's (`FGFDMExec::Run`): each model reads what the models before it have just computed, and of those
after it what they computed in the frame before. Two things follow that are easily got wrong: the flight control system
sees the angle of attack, the airspeed and the pilot's acceleration of the last frame but the attitude of this one, and
the mass lags the fuel by a frame.

Left out is the ground: the gear is up and has no contact, forces that act on the ground alone (`GROUND`) are zero.
"""

from __future__ import annotations

import math

from palaestra.games.ucav.aircraft.components import POSITIONS, Components, properties_of
from palaestra.games.ucav.aircraft.expressions import Expressions
from palaestra.games.ucav.aircraft.flight_models import ATMOSPHERE, accelerations, auxiliary, propagate
from palaestra.games.ucav.aircraft.program import Program, variable
from palaestra.games.ucav.aircraft.propulsion import (
    Triplet,
    add_engine,
    add_thrust,
    contents,
    read_engines,
    read_tanks,
    show_speeds,
)
from palaestra.games.ucav.aircraft.reader import Element, Source
from palaestra.games.ucav.airframes import PAYLOAD
from palaestra.games.ucav.planets import Planet

SLUG_LB = 32.174049

GROUND = ("pushback", "hook", "crash-detect")
"""Systems and forces that act on the ground or in the wires of a carrier."""
FIXED = (
    "gear/wow",
    *("gear/gear-cmd-norm", "gear/gear-pos-norm", "gear/unit[0]/WOW", "gear/unit[1]/WOW", "gear/unit[2]/WOW"),
    *("fcs/pitch-trim-cmd-norm", "fcs/roll-trim-cmd-norm", "fcs/yaw-trim-cmd-norm", "fcs/steer-cmd-norm"),
    *("fcs/flap-cmd-norm", "fcs/speedbrake-cmd-norm", "fcs/spoiler-cmd-norm"),
    *("fcs/left-brake-cmd-norm", "fcs/right-brake-cmd-norm", "fcs/center-brake-cmd-norm"),
)
"""Properties that stay zero in flight: the gear is up, trim, flaps and brakes are not commanded."""
COMMANDS = ("fcs/aileron-cmd-norm", "fcs/elevator-cmd-norm", "fcs/rudder-cmd-norm", "fcs/throttle-cmd-norm")
INPUTS = ("wind_north", "wind_east", "wind_down", "pressure_ratio", "payload_lb")
"""What the game sets besides: the wind, ft/s, a factor on the pressure and so on the density of the air, and the weight
of the point mass named `palaestra.games.ucav.airframes.PAYLOAD`."""
POSE = (
    *("attitude_w", "attitude_x", "attitude_y", "attitude_z", "inertial_p", "inertial_q", "inertial_r"),
    *("position_x", "position_y", "position_z", "velocity_x", "velocity_y", "velocity_z", "earth_angle"),
)
"""The state that a flight begins with."""
CENTRE = ("cg_x", "cg_y", "cg_z")
"""Centre of gravity in the structural frame, in."""
KERNELS = (
    *("math", "abs", "min", "max", "NUMBERS", "Inertia", "Turbine", "place", "line", "plane"),
    *("turn", "rotation", "apply", "apply_back", "compose_back", "cross", "turned_earth", "pitch_angle", "roll_angle"),
    *(
        "heading_angle",
        "cosines",
        "place_on_sphere",
        "place_on_ellipsoid",
        "gravity",
        "with_mass",
        "angular_acceleration",
    ),
    *("temperature_and_pressure", "density_altitude", "calibrated_airspeed", "kinematic", "integral"),
    *("specific_consumption", "thrust_and_flow", "GAS_CONSTANT", "HEAT_RATIO", "SEA_LEVEL_DENSITY"),
    *(f"{name}_{k}" for name in ("SPEEDS", "RATES") for k in range(8)),
)
"""Names in statements that are functions and constants of the generated file."""


class Frame:
    """Builds the program of an aircraft.

    Attributes:
        program: The statements.
        tanks: Those with fuel, by number.
        engines: The turbines.
        engine_constants: Lines of the generated file that define what the turbines are.
    """

    def __init__(self, aircraft: Source, engines: dict[str, Source], systems: dict[str, Source], planet: Planet):
        """Reads the files.

        Args:
            aircraft: The aircraft's own.
            engines: Files of engines and thrusters by the name that the aircraft calls them by.
            systems: Files of its systems.
            planet: What it flies over.

        Raises:
            UnsupportedAircraft: Something in a file is not known.
        """
        self.aircraft, self.systems = aircraft, systems
        aircraft.check(
            aircraft.root,
            "fileheader metrics mass_balance ground_reactions external_reactions propulsion system autopilot "
            "flight_control aerodynamics output",
        )
        for force in (f for section in aircraft.root.findall("external_reactions") for f in section):
            if force.tag != "force" or force.get("name") not in GROUND:
                raise aircraft.refuse(force, "an external force that is not known")
        self.program = Program(frozenset(KERNELS), fixed=frozenset(map(variable, FIXED)))
        self.program.constants.update(dict.fromkeys((*POSITIONS, *map(variable, FIXED)), 0.0))
        self.expressions = Expressions(self.program, aircraft)
        self._read_metrics()
        propulsion = self._section("propulsion")
        aircraft.check(propulsion, "description documentation engine tank")
        self.tanks = read_tanks(aircraft, propulsion)
        self.engines = read_engines(aircraft, propulsion, engines)
        self.engine_constants: tuple[str, ...] = ()
        self.program.add(propagate(planet))
        self.program.add(ATMOSPHERE)
        self._flight_control()
        self._mass_balance()
        self.program.add(auxiliary(_from_centre(self._location("EYEPOINT")), _from_centre(self._location("AERORP"))))
        for number, engine in enumerate(self.engines):
            self.engine_constants += add_engine(self.program, number, engine, self.tanks)
        self.program.add(f"propulsion_total_fuel_lbs = {' + '.join(map(contents, self.tanks)) or '0.0'}")
        self._aerodynamics()
        for number, engine in enumerate(self.engines):
            add_thrust(self.program, number, engine, _from_centre(engine.place))
        self.program.add(accelerations(planet))

    def _section(self, tag: str) -> Element:
        section = self.aircraft.root.find(tag)
        if section is None:
            raise self.aircraft.refuse(self.aircraft.root, f"has no <{tag}>")
        return section

    def _read_metrics(self) -> None:
        source, metrics = self.aircraft, self._section("metrics")
        source.check(
            metrics, "description wingarea wingspan wing_incidence chord htailarea htailarm vtailarea vtailarm location"
        )
        number = lambda tag, unit: source.number(metrics, tag, unit, 0.0)  # noqa: E731
        incidence = number("wing_incidence", "RAD")
        found = {
            "metrics/Sw-sqft": number("wingarea", "FT2"),
            "metrics/bw-ft": number("wingspan", "FT"),
            "metrics/cbarw-ft": number("chord", "FT"),
            "metrics/iw-rad": incidence,
            "metrics/iw-deg": math.degrees(incidence),
            "metrics/Sh-sqft": number("htailarea", "FT2"),
            "metrics/lh-ft": number("htailarm", "FT"),
            "metrics/Sv-sqft": number("vtailarea", "FT2"),
            "metrics/lv-ft": number("vtailarm", "FT"),
        }
        self.program.constants.update({variable(path): value for path, value in found.items()})

    def _location(self, name: str) -> Triplet:
        """A named place of the metrics in the structural frame, in."""
        for element in self._section("metrics").findall("location"):
            if element.get("name") == name:
                return self.aircraft.triplet(element, "IN")
        return 0.0, 0.0, 0.0

    def _flight_control(self) -> None:
        for k in range(len(self.engines)):  # speeds of the last frame, or those that a flight begins with
            self.program.add(show_speeds(k))
        self.program.add("fcs_throttle_pos_norm = fcs_throttle_cmd_norm")
        for k in range(1, len(self.engines)):
            self.program.add(f"fcs_throttle_cmd_norm_{k}_ = fcs_throttle_cmd_norm")
            self.program.add(f"fcs_throttle_pos_norm_{k}_ = fcs_throttle_cmd_norm")
        sections = []
        for element in self.aircraft.root.findall("system"):
            file = element.get("file")
            if file not in GROUND:
                sections.append(
                    (self.aircraft, element) if file is None else (self.systems[file], self.systems[file].root)
                )
        for tag in ("autopilot", "flight_control"):
            sections += [(self.aircraft, element) for element in self.aircraft.root.findall(tag)]
        properties = properties_of(element for _, element in sections)
        for source, element in sections:
            if element.get("file") is not None:
                raise source.refuse(element, "stands in a file of its own")
            expressions = self.expressions if source is self.aircraft else Expressions(self.program, source)
            Components(expressions, properties).channels(element)

    def _mass_balance(self) -> None:
        source, section = self.aircraft, self._section("mass_balance")
        source.check(section, "description documentation ixx iyy izz ixy ixz iyz emptywt location pointmass")
        moments = [source.number(section, f"i{axes}", "SLUG*FT2", 0.0) for axes in ("xx", "yy", "zz", "xy", "xz", "yz")]
        sign = 1.0 if section.get("negated_crossproduct_inertia") == "false" else -1.0
        moments[3:] = [sign * moments[3], -sign * moments[4], sign * moments[5]]
        empty = repr(source.number(section, "emptywt", "LBS"))
        places = [source.triplet(e, "IN") for e in section.findall("location") if e.get("name") == "CG"]
        base = places[0] if places else (0.0, 0.0, 0.0)
        weights: list[tuple[str, Triplet]] = [(empty, base)]
        for point in section.findall("pointmass"):
            source.check(point, "description weight location")
            place = point.find("location")
            if place is None:
                raise source.refuse(point, "has no <location>")
            is_payload = point.get("name") == PAYLOAD
            weight = "payload_lb" if is_payload else repr(source.number(point, "weight", "LBS"))
            weights.append((weight, source.triplet(place, "IN")))
        fuel = [(contents(k), tank.place) for k, tank in self.tanks.items()]
        # JSBSim takes the inertia of the tanks about the centre of gravity of the frame before.
        before = tuple(f"tank_{name}" for name in CENTRE)
        self.program.lasting.update(CENTRE)
        self.program.add(f"{', '.join(before)} = {', '.join(CENTRE)}")
        total = " + ".join(weight for weight, _ in (weights[0], *fuel, *weights[1:]))
        self.program.add(f"inertia_weight_lbs = {total}\ninertia_mass_slugs = inertia_weight_lbs / {SLUG_LB!r}")
        for axis, name in enumerate(CENTRE):
            terms = " + ".join(f"{weight} * {at[axis]!r}" for weight, at in (*weights, *fuel) if at[axis]) or "0.0"
            self.program.add(f"{name} = ({terms}) / inertia_weight_lbs")
        self.program.add("inertia_cg_x_in, inertia_cg_y_in, inertia_cg_z_in = cg_x, cg_y, cg_z")
        self.program.add(f"inertia = Inertia({', '.join(map(repr, moments))})")
        for weight, at, centre in (*((w, at, CENTRE) for w, at in weights), *((w, at, before) for w, at in fuel)):
            self.program.add(f"inertia = with_mass(inertia, {weight} / {SLUG_LB!r}, {_from_centre(at, centre)})")

    # ------------------------------------------------------------------------------------------------- aerodynamics

    def _aerodynamics(self) -> None:
        source, section = self.aircraft, self._section("aerodynamics")
        source.check(section, "description documentation function axis")
        self.program.lasting.add("lift")
        self.program.add(
            """
            aero_bi2vel = metrics_bw_ft / (2.0 * velocities_vt_fps) if velocities_vt_fps > 0.0 else 0.0
            aero_ci2vel = metrics_cbarw_ft / (2.0 * velocities_vt_fps) if velocities_vt_fps > 0.0 else 0.0
            aero_alpha_wing_rad = aero_alpha_rad + metrics_iw_rad
            aero_cl_squared = (lift / (metrics_Sw_sqft * aero_qbar_psf)) ** 2.0 if aero_qbar_psf > 1.0 else 0.0
            """
        )
        for function in section.findall("function"):
            self._function(function)
        axes = {axis.get("name", ""): axis for axis in section.findall("axis")}
        forces = next((s for s in (("DRAG", "SIDE", "LIFT"), ("X", "Y", "Z")) if axes.keys() >= {*s}), None)
        if forces is None or set(axes) - {*forces, "ROLL", "PITCH", "YAW"}:
            raise source.refuse(section, f"the axes {sorted(axes)}")
        for name in (*forces, "ROLL", "PITCH", "YAW"):
            terms = []
            if name in axes:
                source.check(axes[name], "function")
                if set(axes[name].attrib) - {"name"}:
                    raise source.refuse(axes[name], "an axis with a frame or a unit of its own")
                terms = [self._function(function) for function in axes[name].findall("function")]
            self.program.add(f"aero_{name.lower()} = {' + '.join(terms) or '0.0'}")
        if forces[0] == "X":
            self.program.add("force_x, force_y, force_z = aero_x, aero_y, aero_z")
        else:
            self.program.add(
                """
                force_x = -cos_alpha * cos_beta * aero_drag - cos_alpha * sin_beta * aero_side + sin_alpha * aero_lift
                force_y = -sin_beta * aero_drag + cos_beta * aero_side
                force_z = -sin_alpha * cos_beta * aero_drag - sin_alpha * sin_beta * aero_side - cos_alpha * aero_lift
                """
            )
        self.program.add(
            """
            lift = sin_alpha * force_x - cos_alpha * force_z
            arm_x, arm_y, arm_z = cross(reference_x, reference_y, reference_z, force_x, force_y, force_z)
            moment_x, moment_y, moment_z = aero_roll + arm_x, aero_pitch + arm_y, aero_yaw + arm_z
            """
        )

    def _function(self, function: Element) -> str:
        """Adds a function of the aerodynamics as a variable of its name."""
        if set(function.attrib) - {"name"}:
            raise self.aircraft.refuse(function, f"a function with {sorted(set(function.attrib) - {'name'})}")
        name = variable(function.get("name") or f"aero/unnamed/{len(self.program.statements)}")
        if name in self.program.written() or name in ("dt", "channel_dt"):
            raise self.aircraft.refuse(function, "a name that the frame has for something else")
        self.program.add(f"{name} = {self.expressions.function(function)}")
        return name


def _from_centre(at: Triplet, centre: tuple[str, ...] = CENTRE) -> str:
    """A place in the structural frame (in: back, right, up) in body axes (ft) from a centre of gravity, as text."""
    x, y, z = at
    return f"({centre[0]} - {x!r}) / 12.0, ({y!r} - {centre[1]}) / 12.0, ({centre[2]} - {z!r}) / 12.0"
