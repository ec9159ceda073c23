"""Components of flight control systems as statements, in the order of their files."""

from __future__ import annotations

from palaestra.ucav.aircraft.expressions import Expressions
from palaestra.ucav.aircraft.program import variable
from palaestra.ucav.aircraft.reader import Element, UnsupportedAircraft, text_of

SURFACES = ("left-aileron", "right-aileron", "elevator", "rudder", "flap", "speedbrake", "spoiler")
"""Positions that JSBSim keeps in radians and degrees at once."""
TIED = tuple(variable(f"fcs/{name}-pos") for name in (*SURFACES, *(f"mag-{name}" for name in SURFACES), "throttle"))
"""How the variables begin that JSBSim's reset sets to zero."""
DEGREES = 57.29577951308232
COMMON = "description input output init clipto"
"""Children that every component may have."""


class Components:
    """Adds the components of a flight control system to the program of its expressions."""

    def __init__(self, expressions: Expressions) -> None:
        """For one file."""
        self.expressions, self.source, self.program = expressions, expressions.source, expressions.program

    def channels(self, system: Element) -> None:
        """Adds all channels of a ``<flight_control>``, an ``<autopilot>`` or a ``<system>``."""
        self.source.check(system, "description documentation property channel")
        for declared in system.findall("property"):
            self.program.constants.setdefault(variable(text_of(declared)), float(declared.get("value", 0.0)))
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
        name = component.get("name", "")
        target = variable(name if "/" in name else f"fcs/{name.strip().replace(' ', '-').lower()}")
        limits = component.find("clipto")
        if limits is not None:
            if limits.get("type"):
                raise self.source.refuse(limits, f"the type {limits.get('type')!r}")
            low, high = (self.expressions.parameter(text_of(self._child(limits, tag))) for tag in ("min", "max"))
            value = f"min(max({value}, {low}), {high})"
        self.program.add(f"{target} = {value}")
        for path in (target, *(text_of(output) for output in component.findall("output"))):
            if variable(path) != target:
                self.program.add(f"{variable(path)} = {target}")
            self._kept(path)

    def _kept(self, path: str) -> None:
        """Keeps degrees, radians and magnitude of a control surface in step; other properties survive a reset."""
        if not variable(path).startswith(TIED):
            self.program.lasting.add(variable(path))
        for surface in SURFACES:
            rad, deg = variable(f"fcs/{surface}-pos-rad"), variable(f"fcs/{surface}-pos-deg")
            if variable(path) == rad:
                self.program.add(f"{deg} = {DEGREES!r} * {rad}")
            elif variable(path) == deg:
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
        least, most = self._limits(component.find("range"), None)
        value, gain = self._input(component), self._gain(component)
        if (component.findtext("zero_centered") or "1").strip() in ("0", "false"):
            return f"({least!r} + ({value} - {low!r}) / {high - low!r} * {most - least!r}){gain}"
        below = f"{value} / {low!r} * {least!r}" if low else "0.0"
        return f"({value} / {high!r} * {most!r} if {value} > 0.0 else {below}){gain}"

    def _switch(self, component: Element) -> str:
        self.source.check(component, f"{COMMON} default test")
        default = component.find("default")
        text = "0.0" if default is None else self.expressions.parameter(default.get("value", "0"))
        for test in reversed(component.findall("test")):
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

    def _pid(self, component: Element) -> str:
        self.source.check(component, f"{COMMON} kp ki kd trigger")
        if component.get("type"):
            raise self.source.refuse(component, f"the type {component.get('type')!r}")
        gains = {}
        for tag in ("kp", "ki", "kd"):
            gain = component.find(tag)
            if gain is not None and gain.get("type", "ab2") != "ab2":
                raise self.source.refuse(gain, f"the type {gain.get('type')!r}")
            gains[tag] = "0.0" if gain is None else self.expressions.parameter(text_of(gain))
        trigger = component.find("trigger")
        stop = "0.0" if trigger is None else self.expressions.read(text_of(trigger))
        name = variable(component.get("name", ""))
        value, before, total = f"{name}_input", f"{name}_input_before", f"{name}_integral"
        self.program.add(f"{value} = {self._input(component)}")
        self.program.add(f"{total} = integral({total}, {value}, {before}, {stop}, {gains['ki']}, channel_dt)")
        rate = f"({value} - {before}) / channel_dt"
        self.program.add(f"{name}_sum = {gains['kp']} * {value} + {total} + {gains['kd']} * ({rate})")
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

    def _limits(self, element: Element | None, default: tuple[float, float] | None) -> tuple[float, float]:
        if element is None:
            if default is None:
                raise UnsupportedAircraft(f"{self.source.name}: an aerosurface_scale without a range")
            return default
        return self.source.number(element, "min"), self.source.number(element, "max")
