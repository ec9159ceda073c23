"""JSBSim's functions, tables and conditions as Python expressions."""

from __future__ import annotations

import itertools

from palaestra.games.ucav.aircraft.program import Program, variable
from palaestra.games.ucav.aircraft.reader import Element, Source, lines_of, text_of

COMPARISONS = {
    **{"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=", "nq": "!="},
    **{sign: sign for sign in ("<", "<=", ">", ">=", "==", "!=")},
}
ONE_ARGUMENT = {
    "abs": "abs({})",
    "sin": "math.sin({})",
    "cos": "math.cos({})",
    "tan": "math.tan({})",
    "asin": "math.asin(min(max({}, -1.0), 1.0))",
    "acos": "math.acos(min(max({}, -1.0), 1.0))",
    "atan": "math.atan({})",
    "exp": "math.exp({})",
    "sqrt": "math.sqrt({})",
    "floor": "math.floor({})",
    "ceil": "math.ceil({})",
    "toradians": "(0.017453292519943295 * ({}))",
    "todegrees": "(57.29577951308232 * ({}))",
    "not": "(0.0 if ({}) else 1.0)",
    "ln": "(math.log({0}) if ({0}) > 0.0 else -math.inf)",
    "log2": "(math.log2({0}) if ({0}) > 0.0 else -math.inf)",
    "log10": "(math.log10({0}) if ({0}) > 0.0 else -math.inf)",
    "sign": "(-1.0 if ({}) < 0.0 else 1.0)",
    "integer": "math.copysign(math.floor(abs({0})), {0})",
    "fraction": "math.fmod({}, 1.0)",
}
TWO_ARGUMENTS = {
    "quotient": "(({}) / ({}))",
    "pow": "(({}) ** ({}))",
    "atan2": "math.atan2({}, {})",
    "fmod": "(math.fmod({0}, {1}) if ({1}) != 0.0 else math.inf)",
    **{tag: f"(1.0 if ({{}}) {sign} ({{}}) else 0.0)" for tag, sign in COMPARISONS.items() if tag.isalpha()},
}
COSINES = {
    **dict.fromkeys(("attitude_pitch_rad", "attitude_theta_rad"), "cos_pitch"),
    **dict.fromkeys(("attitude_roll_rad", "attitude_phi_rad"), "cos_roll"),
}
"""Cosines that the attitude has without its angles."""
JOINED = {"product": " * ", "sum": " + ", "difference": " - "}
AXES = ("row", "column", "table")
"""What the variables of a table look up, in the order of their number."""


class Expressions:
    """Turns elements of one file into expressions on the variables of a program.

    Attributes:
        program: Where variables, numbers and the places in tables go.
        source: The file.
    """

    def __init__(self, program: Program, source: Source) -> None:
        """For the elements of ``source``."""
        self.program, self.source = program, source
        self._places: dict[tuple[str, int, int], tuple[int, str]] = {}

    def read(self, path: str) -> str:
        """The value of a property; a minus sign before its path turns its sign."""
        return f"(-{variable(path[1:])})" if path.startswith("-") else variable(path)

    def parameter(self, text: str) -> str:
        """A number, or the value of a property."""
        try:
            return repr(float(text))
        except ValueError:
            return self.read(text)

    def function(self, element: Element) -> str:
        """The value of a ``<function>``."""
        inner = [child for child in element if child.tag != "description"]
        if len(inner) != 1:
            raise self.source.refuse(element, f"a function of {len(inner)} operations")
        return self.operation(inner[0])

    def operation(self, element: Element) -> str:
        """The value of one operation of a function."""
        tag = element.tag
        if tag in ("property", "p"):
            return self.read(text_of(element))
        if tag in ("value", "v"):
            return repr(self.source.value(element))
        if tag == "pi":
            return "math.pi"
        if tag in ("table", "t"):
            return self.table(element)
        parts = [self.operation(child) for child in element if child.tag != "description"]
        if tag in JOINED and parts:
            return f"({JOINED[tag].join(parts)})"
        if tag == "avg" and parts:
            return f"(({' + '.join(parts)}) / {float(len(parts))!r})"
        if tag in ("min", "max") and parts:
            text = parts[0]
            for part in parts[1:]:
                text = f"{tag}({text}, {part})"
            return text
        if tag == "cos" and parts[0] in COSINES:
            return COSINES[parts[0]]
        if tag in ONE_ARGUMENT and len(parts) == 1:
            return ONE_ARGUMENT[tag].format(*parts)
        if tag in TWO_ARGUMENTS and len(parts) == 2:
            return TWO_ARGUMENTS[tag].format(*parts)
        if tag == "ifthen" and len(parts) == 3:
            return f"(({parts[1]}) if ({parts[0]}) != 0.0 else ({parts[2]}))"
        if tag in ("and", "or") and parts:
            joined = f" {tag} ".join(f"({part}) != 0.0" for part in parts)
            return f"(1.0 if {joined} else 0.0)"
        raise self.source.refuse(element, "an operation of functions that is not known")

    def table(self, element: Element, default: str = "") -> str:
        """The value of a ``<table>``; ``default`` is what it is looked up by where it does not say."""
        self.source.check(element, "independentVar tableData description")
        axes, layers = element.findall("independentVar"), element.findall("tableData")
        lookup = {axis.get("lookup", "row"): self.read(text_of(axis)) for axis in axes} or {"row": default}
        if set(lookup) != {*AXES[: len(lookup)]} or len(lookup) < len(axes) or not all(lookup.values()):
            raise self.source.refuse(
                element, f"a table whose variables look up {[axis.get('lookup') for axis in axes]}"
            )
        if (len(layers) > 1) != (len(lookup) == 3) or not layers:
            raise self.source.refuse(element, f"a table of {len(lookup)} variables with {len(layers)} <tableData>")
        if len(lookup) == 1:
            return self._line(element, self._rows(layers[0]), lookup["row"])
        if len(lookup) == 2:
            return self._plane(element, self._rows(layers[0]), lookup)
        if any(layer.get("breakPoint") is None for layer in layers):
            raise self.source.refuse(element, "a <tableData> without breakPoint in a table of three variables")
        k, share = self.place(element, lookup["table"], tuple(float(layer.get("breakPoint", "")) for layer in layers))
        planes = [self._plane(element, self._rows(layer), lookup) for layer in layers]
        between = [f"{share} * ({above} - {below}) + {below}" for below, above in itertools.pairwise(planes)]
        text = between[-1]
        for number, below in reversed([*enumerate(between[:-1])]):
            text = f"{below} if {k} == {number} else {text}"
        return f"({text})"

    def _rows(self, data: Element) -> list[list[float]]:
        """The lines of a ``<tableData>``."""
        try:
            return [[float(number) for number in line.split()] for line in lines_of(data)]
        except ValueError as error:
            raise self.source.refuse(data, str(error)) from None

    def _line(self, element: Element, rows: list[list[float]], name: str) -> str:
        if not rows or any(len(row) != 2 for row in rows):
            raise self.source.refuse(element, "a table of one variable needs rows of two numbers")
        points, values = zip(*rows, strict=True)
        if len(points) < 2:
            return repr(values[0])
        k, share = self.place(element, name, points)
        return f"line(NUMBERS, {self.program.store(values)}, {k}, {share})"

    def _plane(self, element: Element, rows: list[list[float]], lookup: dict[str, str]) -> str:
        if not rows or any(len(row) != len(rows[0]) + 1 for row in rows[1:]):
            raise self.source.refuse(element, "a table of two variables needs rows as long as its first and one more")
        columns = rows[0]
        data = self.program.store(value for row in rows[1:] for value in row[1:])
        k, share = self.place(element, lookup["row"], tuple(row[0] for row in rows[1:]))
        column, column_share = self.place(element, lookup["column"], tuple(columns))
        return f"plane(NUMBERS, {data}, {len(columns)}, {k}, {share}, {column}, {column_share})"

    def place(self, element: Element, name: str, points: tuple[float, ...]) -> tuple[str, str]:
        """Variables that hold where a value lies among breakpoints: one search for all tables that share them."""
        if len(points) < 2 or any(low >= high for low, high in itertools.pairwise(points)):
            raise self.source.refuse(element, "breakpoints that do not rise")
        first = self.program.store(points)
        bare = name.strip("(-)")
        changes = sum(bare in statement.writes for statement in self.program.statements)
        mark, text = self._places.get((name, first, len(points)), (-1, ""))
        if mark != changes:
            text = f"{'minus_' if name != bare else ''}{bare}_{first}_{changes}"
            self._places[name, first, len(points)] = changes, text
            self.program.add(f"k_{text}, share_{text} = place(NUMBERS, {first}, {len(points)}, {name})")
        return f"k_{text}", f"share_{text}"

    def condition(self, element: Element) -> str:
        """The condition of a ``<test>``: lines and further tests, all of which or one of which must hold."""
        logic = element.get("logic", "AND")
        if logic not in ("AND", "OR"):
            raise self.source.refuse(element, f"the logic {logic!r} is not known")
        parts = [self._comparison(element, line) for line in lines_of(element)]
        self.source.check(element, element.tag)
        parts += [self.condition(child) for child in element]
        if not parts:
            raise self.source.refuse(element, "a test without a condition")
        return f"({f' {logic.lower()} '.join(parts)})"

    def _comparison(self, element: Element, line: str) -> str:
        words = line.split()
        if len(words) != 3 or words[1].lower() not in COMPARISONS:
            raise self.source.refuse(element, f"the condition {line!r} is not known")
        return f"{self.read(words[0])} {COMPARISONS[words[1].lower()]} {self.parameter(words[2])}"
