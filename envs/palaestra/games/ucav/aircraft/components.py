"""Components of flight control systems as statements, in the order of their files."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from palaestra.games.ucav.aircraft.expressions import Expressions
from palaestra.games.ucav.aircraft.program import variable
from palaestra.games.ucav.aircraft.reader import Element, text_of

SURFACES = ("left-aileron", "right-aileron", "elevator", "rudder", "flap", "speedbrake", "spoiler")
"""Positions that JSBSim keeps in radians and degrees at once."""
POSITIONS = frozenset(
    variable(f"fcs/{name}")
    for surface in SURFACES
    for name in (f"{surface}-pos-rad", f"{surface}-pos-deg", f"{surface}-pos-norm", f"mag-{surface}-pos-rad")
)
"""Variables that are zero until something writes them, and that JSBSim's reset sets to zero."""
OTHER_MODELS = re.compile("(simulation|inertia|propulsion|external_reactions|atmosphere|forces|moments)/")
"""How the properties begin by which a component would steer JSBSim's other models."""
IDLE = ("gear_", "fcs_steer_", "fcs_left_brake_", "fcs_right_brake_", "fcs_center_brake_")
"""How the variables begin that components may write though they are fixed: nothing of them acts in flight."""
INTEGRALS = {"rect": "{0}", "trap": "0.5 * ({0} + {1})", "ab2": ""}
"""What a PID controller sums up in a frame, of its input and that of the frame before; `integral` has ab2."""
DEGREES = 57.29577951308232
COMMON = "description input output init clipto"
"""Children that every component may have."""


class Properties(NamedTuple):
    """What the systems of an aircraft do with properties.

    Attributes:
        declared: Variables of ``<property>``: JSBSim's reset sets them to the values declared.
        writers: How many components write a variable.
    """

    declared: dict[str, float]
    writers: Counter[str]


def properties_of(systems: Iterable[Element]) -> Properties:
    """The properties of systems that belong together."""
    declared: dict[str, float] = {}
    writers: Counter[str] = Counter()
    for system in systems:
        for element in system.findall("property"):
            declared.setdefault(variable(text_of(element)), float(element.get("value", 0.0)))
        for component in system.findall("channel/*"):
            writers.update({*_outputs(component)})
    return Properties(declared, writers)


def _target(component: Element) -> str:
    """Variable of the property that has a component's name."""
    name = component.get("name", "")
    return variable(name if "/" in name else f"fcs/{name.strip().replace(' ', '-').lower()}")


def _outputs(component: Element) -> dict[str, str]:
    """Variables that a component writes, first that of its name, and their paths in the file."""
    paths = [text_of(output) for output in component.findall("output")]
    return {_target(component): component.get("name", ""), **{variable(path): path for path in paths}}


class Components:
    """Adds the components of a flight control system to the program of its expressions."""

    def __init__(self, expressions: Expressions, properties: Properties) -> None:
        """For one file of those that the properties belong to."""
        self.expressions, self.source, self.program = expressions, expressions.source, expressions.program
        self.properties = properties

    def channels(self, system: Element) -> None:
        """Adds all channels of a ``<flight_control>``, an ``<autopilot>`` or a ``<system>``."""
        self.source.check(system, "description documentation property channel")
        for name, value in self.properties.declared.items():
            self.program.constants.setdefault(name, value)
        for channel in system.findall("channel"):
            if set(channel.attrib) - {"name"}:
                raise self.source.refuse(channel, f"a channel with {sorted(set(channel.attrib) - {'name'})}")
            for component in channel:
                if component.tag not in ("description", "documentation"):
                    self.add(component)

    def add(self, component: Element) -> None:
        """Adds one component.

        Raises:
            UnsupportedAircraft: Its kind, or something in it, is not known.
        """
        kind = getattr(self, f"_{component.tag}", None)
        if kind is None:
            raise self.source.refuse(component, "a component that is not known")
        self.write(component, kind(component))

    def write(self, component: Element, value: str) -> None:
        """Assigns the value, cut to its limits, to the component's outputs and its name."""
        target, limits = _target(component), component.find("clipto")
        if limits is not None:
            if limits.get("type"):
                raise self.source.refuse(limits, f"the type {limits.get('type')!r}")
            low, high = (self.expressions.parameter(text_of(self._child(limits, tag))) for tag in ("min", "max"))
            value = f"min(max({value}, {low}), {high})"
        for name, path in _outputs(component).items():
            if name == value:
                self._hold(name)
                continue
            self._check_output(component, path, name)
            self.program.add(f"{name} = {value if name == target else target}")
            self._kept(name)

    def _hold(self, name: str) -> None:
        """Leaves a variable as it is, that a component only ever gives its own value."""
        self.properties.writers[name] -= 1
        self.program.constants.setdefault(name, 0.0)

    def _check_output(self, component: Element, path: str, name: str) -> None:
        if OTHER_MODELS.match(path):
            raise self.source.refuse(component, f"steers another model by {path}")
        if name in self.program.fixed and not name.startswith(IDLE):
            raise self.source.refuse(component, f"writes {path}, which nobody commands here")
        if self.properties.declared.get(name):
            raise self.source.refuse(component, f"writes {path}, which is declared with a value")

    def _kept(self, name: str) -> None:
        """Keeps degrees, radians and magnitude of a control surface in step; other properties survive a reset."""
        is_throttle = name.startswith("fcs_throttle_pos_norm")
        if name not in POSITIONS and name not in self.properties.declared and not is_throttle:
            self.program.lasting.add(name)
        for surface in SURFACES:
            rad, deg = variable(f"fcs/{surface}-pos-rad"), variable(f"fcs/{surface}-pos-deg")
            if name == rad:
                self.program.add(f"{deg} = {DEGREES!r} * {rad}")
            elif name == deg:
                self.program.add(f"{rad} = {1.0 / DEGREES!r} * {deg}")
            else:
                continue
            self.program.add(f"{variable(f'fcs/mag-{surface}-pos-rad')} = abs({rad})")

    # -------------------------------------------------------------------------------------------------------- kinds

    def _summer(self, component: Element) -> str:
        self.source.check(component, f"{COMMON} bias")
        bias = self.source.number(component, "bias", default=0.0)
        inputs = [self.expressions.read(text_of(i)) for i in component.findall("input")]
        return " + ".join([*inputs, *([repr(bias)] if bias else [])])

    def _pure_gain(self, component: Element) -> str:
        self.source.check(component, f"{COMMON} gain")
        return f"{self._input(component)}{self._gain(component)}"

    def _scheduled_gain(self, component: Element) -> str:
        self.source.check(component, f"{COMMON} gain table")
        scheduled = self.expressions.table(self._child(component, "table"))
        return f"{scheduled} * {self._input(component)}{self._gain(component)}"

    def _aerosurface_scale(self, component: Element) -> str:
        self.source.check(component, f"{COMMON} gain domain range zero_centered")
        low, high = self._limits(component.find("domain"), (-1.0, 1.0))
        least, most = self._limits(self._child(component, "range"), (0.0, 0.0))
        value, gain = self._input(component), self._gain(component)
        if (component.findtext("zero_centered") or "1").strip() in ("0", "false"):
            return f"({least!r} + ({value} - {low!r}) / {high - low!r} * {most - least!r}){gain}"
        below = f"{value} / {low!r} * {least!r}" if low else "0.0"
        return f"({value} / {high!r} * {most!r} if {value} > 0.0 else {below}){gain}"

    def _switch(self, component: Element) -> str:
        self.source.check(component, f"{COMMON} default test")
        default, tests = component.find("default"), component.findall("test")
        text = "0.0" if default is None else self.expressions.parameter(default.get("value", "0"))
        if text in _outputs(component) and all(map(self._never, tests)):
            return text
        for test in reversed(tests):
            value, condition = self.expressions.parameter(test.get("value", "")), self.expressions.condition(test)
            text = f"({value} if {condition} else {text})"
        return text

    def _kinematic(self, component: Element) -> str:
        self.source.check(component, f"{COMMON} traverse noscale")
        settings = self._child(component, "traverse").findall("setting")
        positions = [self.source.number(setting, "position") for setting in settings]
        times = [self.source.number(setting, "time") for setting in settings]
        if len(positions) < 2:
            raise self.source.refuse(component, "an actuator of one position")
        first = self.program.store((*positions, *times))
        outputs = component.findall("output")
        name = component.get("name", "")
        here = variable(text_of(outputs[0]) if outputs else name if "/" in name else f"fcs/{name}")
        scale = "" if component.find("noscale") is not None else f"{positions[-1]!r} * "
        target = f"{scale}{self._input(component)}"
        return f"kinematic(NUMBERS, {first}, {len(positions)}, {target}, {here}, channel_dt)"

    def _fcs_function(self, component: Element) -> str:
        self.source.check(component, f"{COMMON} function")
        text = self.expressions.function(self._child(component, "function"))
        return f"{text} * {self._input(component)}" if component.find("input") is not None else text

    def _deadband(self, component: Element) -> str:
        self.source.check(component, f"{COMMON} width gain")
        width, gain = component.find("width"), self.source.number(component, "gain", default=1.0)
        value = self._input(component)
        text = value if width is None else _without_deadband(value, self.expressions.parameter(text_of(width)))
        return f"({text}) * {gain!r}" if gain != 1.0 else text

    def _lag_filter(self, component: Element) -> str:
        (c1,) = self._coefficients(component, 1)
        name, step = self._filter_input(component), f"channel_dt * {c1}"
        return self._filter_output(
            name,
            f"({name}_input + {name}_before) * ({step} / (2.0 + {step}))"
            f" + {name}_output_before * ((2.0 - {step}) / (2.0 + {step}))",
        )

    def _lead_lag_filter(self, component: Element) -> str:
        c1, c2, c3, c4 = self._coefficients(component, 4)
        name, below = self._filter_input(component), f"(2.0 * {c3} + channel_dt * {c4})"
        return self._filter_output(
            name,
            f"{name}_input * ((2.0 * {c1} + channel_dt * {c2}) / {below})"
            f" + {name}_before * ((channel_dt * {c2} - 2.0 * {c1}) / {below})"
            f" + {name}_output_before * ((2.0 * {c3} - channel_dt * {c4}) / {below})",
        )

    def _washout_filter(self, component: Element) -> str:
        (c1,) = self._coefficients(component, 1)
        name, step = self._filter_input(component), f"channel_dt * {c1}"
        return self._filter_output(
            name,
            f"{name}_input * (2.0 / (2.0 + {step})) - {name}_before * (2.0 / (2.0 + {step}))"
            f" + {name}_output_before * ((2.0 - {step}) / (2.0 + {step}))",
        )

    def _second_order_filter(self, component: Element) -> str:
        c1, c2, c3, c4, c5, c6 = self._coefficients(component, 6)
        name = self._filter_input(component)
        self.program.add(
            f"""
            {name}_below = 4.0 * {c4} + 2.0 * {c5} * channel_dt + {c6} * channel_dt * channel_dt
            {name}_a = (4.0 * {c1} + 2.0 * {c2} * channel_dt + {c3} * channel_dt * channel_dt) / {name}_below
            {name}_b = (2.0 * {c3} * channel_dt * channel_dt - 8.0 * {c1}) / {name}_below
            {name}_c = (4.0 * {c1} - 2.0 * {c2} * channel_dt + {c3} * channel_dt * channel_dt) / {name}_below
            {name}_d = (2.0 * {c6} * channel_dt * channel_dt - 8.0 * {c4}) / {name}_below
            {name}_e = (4.0 * {c4} - 2.0 * {c5} * channel_dt + {c6} * channel_dt * channel_dt) / {name}_below
            """
        )
        return self._filter_output(
            name,
            f"{name}_input * {name}_a + {name}_before * {name}_b + {name}_two_before * {name}_c"
            f" - {name}_output_before * {name}_d - {name}_output_two_before * {name}_e",
            two=True,
        )

    def _coefficients(self, component: Element, count: int) -> list[str]:
        tags = [f"c{number}" for number in range(1, count + 1)]
        self.source.check(component, f"{COMMON} {' '.join(tags)}")
        return [f"({self.expressions.parameter(text_of(self._child(component, tag)))})" for tag in tags]

    def _filter_input(self, component: Element) -> str:
        """Adds the input of a filter, 0 in the first frame after a reset. Returns how its variables begin."""
        name = self._memory(component)
        self.program.add(f"{name}_input = {self._input(component)} if {name}_runs != 0.0 else 0.0\n{name}_runs = 1.0")
        return name

    def _filter_output(self, name: str, value: str, *, two: bool = False) -> str:
        """Adds the output of a filter before its limits, and what it remembers; all of that is 0 after a reset."""
        self.program.add(f"{name}_output = {value}")
        if two:
            self.program.add(f"{name}_two_before = {name}_before\n{name}_output_two_before = {name}_output_before")
        self.program.add(f"{name}_before = {name}_input\n{name}_output_before = {name}_output")
        return f"{name}_output"

    def _memory(self, component: Element) -> str:
        """How the variables begin that a component remembers: its name, made different from those of others."""
        name, written = _target(component), self.program.written()
        while f"{name}_input" in written:
            name += "_"
        return name

    def _actuator(self, component: Element) -> str:
        """JSBSim's actuator: lag, rate limit, deadband, hysteresis and bias, one after the other.

        In the first frame of all it passes its input on; a reset empties its memory, but does not make it new.
        """
        self.source.check(component, f"{COMMON} lag rate_limit bias deadband_width hysteresis_width")
        name = self._memory(component)
        self.program.add(f"{name}_input = {self._input(component)}")
        value = f"{name}_input"
        if component.find("lag") is not None:
            value = self._actuator_lag(name, value, self.expressions.parameter(text_of(self._child(component, "lag"))))
        if component.find("rate_limit") is not None:
            value = self._rate_limit(component, name, value)
        width = self.source.number(component, "deadband_width", default=0.0)
        if width:
            value = _without_deadband(value, repr(width))
        play = 0.5 * self.source.number(component, "hysteresis_width", default=0.0)
        if play:
            self.program.add(f"{name}_dead = {value}")
            value, before = f"{name}_dead", f"{name}_play"
            down = f"min({before}, {value} + {play!r}) if {value} < {before} else {value}"
            up = f"max({before}, {value} - {play!r}) if {value} > {before} else {down}"
            self.program.add(f"{before} = {value} if {name}_runs == 0.0 else {up}")
            value = before
        self.program.add(f"{name}_runs = 1.0")
        self.program.lasting.add(f"{name}_runs")
        bias = self.source.number(component, "bias", default=0.0)
        return f"{value} + {bias!r}" if bias else value

    def _actuator_lag(self, name: str, value: str, lag: str) -> str:
        step, before = f"channel_dt * ({lag})", f"{name}_lagged"
        share, rest = f"{step} / (2.0 + {step})", f"(2.0 - {step}) / (2.0 + {step})"
        passed = f"({share}) * ({value} + {name}_before) + {before} * ({rest})"
        self.program.add(f"{before} = {passed} if {name}_runs != 0.0 else {value}\n{name}_before = {value}")
        return before

    def _rate_limit(self, component: Element, name: str, value: str) -> str:
        rates, before = {}, f"{name}_rated"
        for limit in component.findall("rate_limit"):
            senses = [limit.get("sense", "")[:4]] if limit.get("sense") else ["incr", "decr"]
            rates.update((sense, self.expressions.parameter(text_of(limit))) for sense in senses)
        text = value
        if "incr" in rates:
            most = f"({rates['incr']}) * channel_dt"
            text = f"{before} + {most} if {value} - {before} > {most} else {text}"
        if "decr" in rates:
            most = f"-({rates['decr']}) * channel_dt"
            text = f"{before} + {most} if {value} - {before} < {most} else {text}"
        self.program.add(f"{before} = {value} if {name}_runs == 0.0 else {text}")
        return before

    def _integrator(self, component: Element) -> str:
        self.source.check(component, f"{COMMON} c1 trigger")
        return self._controller(component, "c1", "trap")

    def _pid(self, component: Element) -> str:
        self.source.check(component, f"{COMMON} kp ki kd pvdot trigger")
        if component.get("type", "standard") != "standard":
            raise self.source.refuse(component, f"the type {component.get('type')!r}")
        return self._controller(component, "ki", "ab2")

    def _controller(self, component: Element, integral: str, kind: str) -> str:
        """A PID controller whose ``integral`` gain is summed up as that says, or as ``kind``."""
        gains = {}
        for tag in ("kp", integral, "kd"):
            gain = component.find(tag)
            gains[tag] = "0.0" if gain is None else self.expressions.parameter(text_of(gain))
            kind = gain.get("type", kind) if gain is not None and tag == integral else kind
        if kind not in INTEGRALS:
            raise self.source.refuse(component, f"the type {kind!r}")
        trigger, rate = component.find("trigger"), component.find("pvdot")
        stop = "0.0" if trigger is None else self.expressions.read(text_of(trigger))
        name = variable(component.get("name", ""))
        value, before, total = f"{name}_input", f"{name}_input_before", f"{name}_integral"
        self.program.add(f"{value} = {self._input(component)}")
        if kind == "ab2":
            self.program.add(f"{total} = integral({total}, {value}, {before}, {stop}, {gains[integral]}, channel_dt)")
        else:
            more = f"{gains[integral]} * channel_dt * ({INTEGRALS[kind].format(value, before)})"
            self.program.add(f"{total} = 0.0 if {stop} < 0.0 else {total} + {more} if abs({stop}) < 1e-6 else {total}")
        slope = f"({value} - {before}) / channel_dt" if rate is None else self.expressions.read(text_of(rate))
        if component.get("type"):
            self.program.add(f"{name}_sum = {gains['kp']} * ({value} + {total} + {gains['kd']} * ({slope}))")
        else:
            self.program.add(f"{name}_sum = {gains['kp']} * {value} + {total} + {gains['kd']} * ({slope})")
        self.program.add(f"{before} = {value}")
        return f"{name}_sum"

    # -------------------------------------------------------------------------------------------------------- parts

    def _child(self, element: Element, tag: str) -> Element:
        child = element.find(tag)
        if child is None:
            raise self.source.refuse(element, f"has no <{tag}>")
        return child

    def _input(self, component: Element) -> str:
        inputs = component.findall("input")
        if len(inputs) != 1:
            raise self.source.refuse(component, f"{len(inputs)} inputs in place of one")
        return self.expressions.read(text_of(inputs[0]))

    def _gain(self, component: Element) -> str:
        """The factor at the end of an expression."""
        gain = component.find("gain")
        return "" if gain is None else f" * {self.expressions.parameter(text_of(gain))}"

    def _limits(self, element: Element | None, default: tuple[float, float]) -> tuple[float, float]:
        if element is None:
            return default
        return self.source.number(element, "min"), self.source.number(element, "max")

    def _never(self, test: Element) -> bool:
        """Whether a test never holds: it is about properties that nothing changes."""
        condition, constants = self.expressions.condition(test), self.program.constants
        names = {node.id for node in ast.walk(ast.parse(condition)) if isinstance(node, ast.Name)}
        known = {name: constants[name] for name in names & constants.keys() if not self.properties.writers[name]}
        return len(known) == len(names) and not eval(condition, {"__builtins__": {}}, known)


def _without_deadband(value: str, width: str) -> str:
    """A value without its part inside a band around zero."""
    half = f"0.5 * {width}"
    return f"{value} - min(max({value}, -({half})), {half})"
