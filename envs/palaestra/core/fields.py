"""Field tables: one list of named quantities gives the memory layout, the spaces and the documentation.

An author writes each quantity once::

    PILOT = (
        Field("altitude_m", low=0.0, high=20_000.0, unit="m", about="height above sea level"),
        Field("velocity_mps", (3,), low=-900.0, high=900.0, unit="m/s", about="body axes"),
    )

`record_dtype(PILOT)` is what a kernel writes into (``observations.pilot[k].altitude_m = ...``), `box_space` and
`dict_space` are what a learner sees, `table_rows` is what the documentation and ``palaestra info`` print.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NoReturn

import numpy as np
from gymnasium import spaces
from numpy.typing import DTypeLike

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Field:
    """A named quantity of an observation, of the info record or of a match.

    Attributes:
        name: Identifier, with a unit suffix where it has a unit (``altitude_m``).
        shape: Shape of one value; ``()`` for a scalar.
        low: Smallest value that may occur (inclusive). Needed for observations.
        high: Largest value that may occur (inclusive). Needed for observations.
        unit: SI unit, ``"1"`` for a pure number.
        about: One line for the documentation.
        dtype: NumPy scalar type. Observations are ``"f4"`` unless they hold masks or tokens.
    """

    name: str
    shape: Shape = ()
    low: float = -np.inf
    high: float = np.inf
    unit: str = "1"
    about: str = ""
    dtype: str = "f4"

    @property
    def size(self) -> int:
        """Number of scalars."""
        return prod(self.shape)


@dataclass(frozen=True, slots=True)
class Choice:
    """An action that is one of ``n`` alternatives, an int64 in ``[0, n)``.

    Attributes:
        name: Identifier.
        n: Number of alternatives.
        meanings: What each alternative does, for the documentation and the keyboard.
        about: One line for the documentation.
        noop: The alternative that an illegal or absent choice is replaced by.
    """

    name: str
    n: int
    meanings: tuple[str, ...] = ()
    about: str = ""
    noop: int = 0

    shape = ()
    size = 1
    unit = "1"


@dataclass(frozen=True, slots=True)
class Continuous:
    """An action that is a bounded real number or an array of them.

    Attributes:
        name: Identifier.
        shape: Shape of one value.
        low: Lower bound (inclusive), finite.
        high: Upper bound (inclusive), finite.
        unit: Unit of the number.
        about: One line for the documentation.
        noop: Value used for an agent that gives no action.
    """

    name: str
    shape: Shape = ()
    low: float = -1.0
    high: float = 1.0
    unit: str = "1"
    about: str = ""
    noop: float = 0.0

    @property
    def size(self) -> int:
        """Number of scalars."""
        return prod(self.shape)


ActionField = Choice | Continuous


@dataclass(frozen=True, slots=True)
class Parameter:
    """A number of the rules that differs per lane and may change while running.

    It is a keyword of every face, a member of ``s.parameters`` in the kernel (float64) and never a compiled-in
    constant.

    Attributes:
        name: Identifier and keyword.
        default: Value unless the user says otherwise.
        low: Smallest legal value.
        high: Largest legal value.
        unit: Unit.
        about: One line for the documentation.
    """

    name: str
    default: float
    low: float = -np.inf
    high: float = np.inf
    unit: str = "1"
    about: str = ""


def record_dtype(fields: Iterable[Field]) -> np.dtype:
    """Packed record of the fields in their order; all-float32 tables can be viewed as a flat vector."""
    return np.dtype([(f.name, f.dtype, f.shape) for f in fields])


def action_dtype(fields: Iterable[ActionField]) -> np.dtype:
    """Record of an action. Every scalar is one 8-byte word: int64 for a `Choice`, float64 for a `Continuous`."""
    return np.dtype([(f.name, "i8" if isinstance(f, Choice) else "f8", f.shape) for f in fields])


def parameter_dtype(parameters: Iterable[Parameter]) -> np.dtype:
    """Record of the parameters, all float64."""
    return np.dtype([(p.name, "f8") for p in parameters])


def parameter_values(parameters: Iterable[Parameter], given: Mapping[str, Any], owner: str) -> dict[str, np.ndarray]:
    """The given values as float64 arrays.

    Raises:
        TypeError: An unknown parameter; suggests the near one.
        ValueError: Out of range; names the range.
    """
    known = {p.name: p for p in parameters}
    arrays: dict[str, np.ndarray] = {}
    for name, value in given.items():
        if name not in known:
            unknown_keyword(name, known, f"{owner} parameter")
        parameter = known[name]
        array = np.asarray(value, np.float64)
        if not ((array >= parameter.low) & (array <= parameter.high)).all():
            raise ValueError(f"{name} must be in [{parameter.low:g}, {parameter.high:g}] {parameter.unit}, got {value}")
        arrays[name] = array
    return arrays


def member_offset(dtype: Any, name: str) -> int:
    """Byte offset of a member of a record."""
    return dtype.fields[name][1]


def is_homogeneous(fields: Sequence[Field]) -> bool:
    """Whether the record is also one flat vector of a single dtype."""
    return len({f.dtype for f in fields}) == 1


def _bounds(fields: Iterable[Field | Continuous]) -> tuple[np.ndarray, np.ndarray]:
    low = [np.full(f.size, f.low) for f in fields]
    high = [np.full(f.size, f.high) for f in fields]
    return np.concatenate(low), np.concatenate(high)


def box_space(fields: Sequence[Field]) -> spaces.Box:
    """Flat Box of the concatenated fields.

    Raises:
        ValueError: The fields have different dtypes (use `dict_space`).
    """
    if not is_homogeneous(fields):
        names = ", ".join(f"{f.name}:{f.dtype}" for f in fields)
        raise ValueError(f'fields of different dtypes have no flat vector ({names}): use observation="dict"')
    dtype = np.dtype(fields[0].dtype)
    low, high = _bounds(fields)
    return spaces.Box(low.astype(dtype), high.astype(dtype), dtype=dtype.type)


def dict_space(fields: Sequence[Field]) -> spaces.Dict:
    """Dict with one Box a field."""
    return spaces.Dict({f.name: _field_box(f, f.dtype) for f in fields})


def _field_box(field: Field | Continuous, dtype: DTypeLike) -> spaces.Box:
    kind: Any = np.dtype(dtype).type
    return spaces.Box(kind(field.low), kind(field.high), field.shape, kind)


def action_space(fields: Sequence[ActionField], agents: int = 1) -> spaces.Space:
    """The natural space of ``agents`` equal actions joined into one.

    One `Choice` is Discrete, several are MultiDiscrete, `Continuous` fields are one flat Box (float32), a mixture is a
    Dict by field name. For several agents the same, agent after agent.
    """
    choices = [f for f in fields if isinstance(f, Choice)]
    axes = [f for f in fields if isinstance(f, Continuous)]
    if choices and axes:
        joined: dict[str, spaces.Space] = {}
        for f in fields:
            if isinstance(f, Choice):
                joined[f.name] = spaces.Discrete(f.n) if agents == 1 else spaces.MultiDiscrete([f.n] * agents)
            else:
                shape = f.shape if agents == 1 else (agents, *f.shape)
                joined[f.name] = spaces.Box(np.float32(f.low), np.float32(f.high), shape)
        return spaces.Dict(joined)
    if choices:
        sizes = [f.n for f in choices] * agents
        return spaces.Discrete(sizes[0]) if len(sizes) == 1 else spaces.MultiDiscrete(sizes)
    low, high = _bounds(axes)
    return spaces.Box(np.tile(low, agents).astype(np.float32), np.tile(high, agents).astype(np.float32))


def table_rows(fields: Iterable[Field | Choice | Continuous | Parameter]) -> list[dict[str, str]]:
    """Documentation rows (name, shape, low, high, unit, about), the same for docs and command line."""
    rows = []
    for f in fields:
        if isinstance(f, Choice):
            low, high = "0", str(f.n - 1)
        else:
            low, high = f"{f.low:g}", f"{f.high:g}"
        shape = "" if isinstance(f, Parameter) or not f.shape else "x".join(map(str, f.shape))
        about = f.about
        if isinstance(f, Choice) and f.meanings:
            about = f"{about}: " if about else ""
            about += ", ".join(f"{i} {m}" for i, m in enumerate(f.meanings))
        if isinstance(f, Parameter):
            about = f"{about} (default {f.default:g})"
        rows.append({"name": f.name, "shape": shape, "low": low, "high": high, "unit": f.unit, "about": about})
    return rows


def unknown_keyword(name: str, known: Mapping[str, Any], what: str) -> NoReturn:
    """Refuses a keyword and suggests the near one."""
    near = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
    raise TypeError(f"{name!r} is not a {what}: {hint}")
