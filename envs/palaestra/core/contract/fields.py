"""Field tables: one list of named quantities gives the memory layout, the spaces and the documentation.

An author writes each quantity once::

    PILOT = (
        Field("altitude_m", low=0.0, high=20_000.0, unit="m", about="height above sea level"),
        Field("velocity_mps", (3,), low=-900.0, high=900.0, unit="m/s", about="body axes"),
        Table("missiles", 4, (Field("range_m", (), 0.0, 1e5, "m"), Field("seen", (), 0, 1)), about="nearest first"),
    )

`record_dtype(PILOT)` is what a kernel writes into (``observations.pilot[k].altitude_m = ...``,
``observations.pilot[k].missiles[j].range_m = ...``), `palaestra.core.contract.spaces` makes what a learner sees,
`table_rows` is what the documentation and ``palaestra info`` print.

A table may have a *capacity* beside its visible size: memory layout and machine code come from the capacity, everything
that users see from the visible size, so that games of many sizes share one compiled kernel.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from palaestra.core.contract.keywords import check_word, nearest

Shape = tuple[int, ...]
Bound = Any
"""A number for all elements, or numbers in the field's shape (kept as nested tuples)."""
Parts = tuple[str, ...] | tuple[tuple[str, ...], ...]
"""Names of the numbers along the last axis of a field: of all agents of a role, or for each agent its own."""


@dataclass(frozen=True, slots=True)
class Field:
    """A named quantity of an observation, of the info record or of a match.

    Attributes:
        name: Identifier, with a unit suffix where it has a unit (``altitude_m``).
        shape: Shape of one value that users see; ``()`` for a scalar.
        low: Smallest value that may occur (inclusive): a number, or an array in the field's shape. Needed for
            observations; may be infinite where ``checked`` is given.
        high: Largest value that may occur (inclusive), likewise.
        unit: SI unit, ``"1"`` for a pure number.
        about: One line for the documentation.
        dtype: NumPy scalar type. Observations are ``"f4"`` unless they hold masks, tokens or double precision.
        capacity: Shape of one value in memory: an int (the first axis) or a shape; None where it is ``shape``. Kernels
            see arrays of this size and fill their visible corner.
        checked: Finite range ``(low, high)`` that the conformance kit holds the values to where the bounds of the
            space are infinite.
        at: ``"reset"`` for what stays the same during a match: written by `Game.observe_reset` alone.
        world: Name of the array in the game's world that this field *is* (lane fields): no memory, no copies.
        parts: Names of the numbers along its last axis, for those who watch a match; or such names for each agent of
            the role, where they differ.
    """

    name: str
    shape: Shape = ()
    low: Bound = -np.inf
    high: Bound = np.inf
    unit: str = "1"
    about: str = ""
    dtype: str = "f4"
    capacity: int | Shape | None = None
    checked: tuple[float, float] | None = None
    at: Literal["step", "reset"] = "step"
    world: str | None = None
    parts: Parts = ()

    def __post_init__(self) -> None:
        """Keeps bounds hashable."""
        _freeze_bounds(self)
        _check_parts(self)
        if len(self.memory_shape) != len(self.shape) or any(
            c < n for c, n in zip(self.memory_shape, self.shape, strict=True)
        ):
            raise ValueError(f"{self.name}: capacity {self.capacity} does not hold the shape {self.shape}")

    @property
    def size(self) -> int:
        """Number of scalars that users see."""
        return prod(self.shape)

    @property
    def memory_shape(self) -> Shape:
        """Shape in the kernel's memory."""
        if self.capacity is None:
            return self.shape
        return (self.capacity, *self.shape[1:]) if isinstance(self.capacity, int) else self.capacity

    def member(self, visible: bool) -> tuple:
        """The field as a member of a record, in the visible or in the memory's shape."""
        return (self.name, self.dtype, self.shape if visible else self.memory_shape)


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of equal entities, each with the same named columns: an observation of many units, nodes or edges.

    Kernels write ``observations.<role>[k].<table>[row].<column>``; learners see one Box ``[rows, width]``.

    Attributes:
        name: Identifier.
        rows: Number of rows that users see.
        columns: What a row holds; all of one dtype. A column may have a shape, it then is several numbers.
        about: One line for the documentation: what the rows are and in which order.
        capacity: Rows in memory, None where they are ``rows``.
        at: As in `Field`.
    """

    name: str
    rows: int
    columns: tuple[Field, ...]
    about: str = ""
    capacity: int | None = None
    at: Literal["step", "reset"] = "step"

    unit = ""
    checked = None
    world = None

    def __post_init__(self) -> None:
        """Refuses rows of several dtypes, columns of many sizes, and a capacity below the rows."""
        if len({c.dtype for c in self.columns}) != 1:
            raise ValueError(f"{self.name}: the columns of a table share one dtype")
        if any(c.capacity is not None or c.at != "step" or c.world is not None for c in self.columns):
            raise ValueError(f"{self.name}: capacity, at and world belong to the table, not to a column")
        if self.capacity is not None and self.capacity < self.rows:
            raise ValueError(f"{self.name}: capacity {self.capacity} does not hold {self.rows} rows")

    @property
    def dtype(self) -> str:
        """NumPy scalar type of the columns."""
        return self.columns[0].dtype

    @property
    def width(self) -> int:
        """Numbers in a row."""
        return sum(c.size for c in self.columns)

    @property
    def shape(self) -> Shape:
        """``(rows, width)``."""
        return (self.rows, self.width)

    @property
    def size(self) -> int:
        """Number of scalars that users see."""
        return self.rows * self.width

    @property
    def low(self) -> np.ndarray:
        """Lower bounds of a row, float64 ``[width]``."""
        return np.concatenate([bounds(c)[0].reshape(-1) for c in self.columns])

    @property
    def high(self) -> np.ndarray:
        """Upper bounds of a row, float64 ``[width]``."""
        return np.concatenate([bounds(c)[1].reshape(-1) for c in self.columns])

    def member(self, visible: bool) -> tuple:
        """The table as a member of a record: an array of records."""
        rows = self.rows if visible or self.capacity is None else self.capacity
        return (self.name, record_dtype(self.columns), (rows,))


ObservationField = Field | Table


@dataclass(frozen=True, slots=True)
class Choice:
    """An action that is one of ``n`` alternatives, an int64 in ``[0, n)``, or an array of such.

    Attributes:
        name: Identifier.
        n: Number of alternatives that users see.
        meanings: What each alternative does, for the documentation and the keyboard.
        about: One line for the documentation.
        noop: The alternative that an illegal or absent choice is replaced by.
        shape: Shape of the choice: ``()`` for one, ``(L,)`` for L tokens, say.
        capacity: Alternatives in the kernel's mask, None where they are ``n``.
        candidates: For thousands of alternatives: `Game.legal` lists at most this many ids instead of a dense mask.
    """

    name: str
    n: int
    meanings: tuple[str, ...] = ()
    about: str = ""
    noop: int = 0
    shape: Shape = ()
    capacity: int | None = None
    candidates: int | None = None

    unit = "1"

    def __post_init__(self) -> None:
        """Refuses a capacity below the visible size and lists without room."""
        if self.capacity is not None and self.capacity < self.n:
            raise ValueError(f"{self.name}: capacity {self.capacity} does not hold {self.n} alternatives")
        if self.candidates is not None and self.candidates < 1:
            raise ValueError(f"{self.name}: a list of candidates has room for at least 1, got {self.candidates}")
        if self.candidates is not None and self.capacity is not None:
            raise ValueError(f"{self.name}: a list of candidates needs no capacity, any n shares its kernel")

    @property
    def size(self) -> int:
        """Number of choices."""
        return prod(self.shape)

    def mask_member(self, visible: bool) -> tuple:
        """Its mask as a member of a record: dense flags ``[..., n]``, or ``count`` and ``ids`` of the candidates."""
        if self.candidates is not None:
            return (self.name, np.dtype([("count", "i4"), ("ids", "i4", (self.candidates,))]), self.shape)
        n = self.n if visible or self.capacity is None else self.capacity
        return (self.name, "i1", (*self.shape, n))

    @property
    def mask_bytes(self) -> int:
        """Bytes of the visible mask of one of its ``size`` choices."""
        return self.n if self.candidates is None else 4 + 4 * self.candidates


@dataclass(frozen=True, slots=True)
class Continuous:
    """An action that is a bounded real number or an array of them.

    Attributes:
        name: Identifier.
        shape: Shape of one value.
        low: Lower bound (inclusive), finite: a number, or an array in the field's shape.
        high: Upper bound (inclusive), finite, likewise.
        unit: Unit of the number.
        about: One line for the documentation.
        noop: Value used for an agent that gives no action: a number, or an array in the field's shape.
        parts: As in `Field`.
    """

    name: str
    shape: Shape = ()
    low: Bound = -1.0
    high: Bound = 1.0
    unit: str = "1"
    about: str = ""
    noop: Bound = 0.0
    parts: Parts = ()

    def __post_init__(self) -> None:
        """Keeps bounds hashable."""
        _freeze_bounds(self, "noop")
        _check_parts(self)

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
        at_start: A change takes effect when a lane's next match starts, not in the middle of one. ``reset`` takes it
            among its ``options``, for the matches that it starts alone.
        whole: Only whole numbers are values.
        words: Names of the values 0, 1, ...: users may give them in place of the numbers.
        shaping: Weight of a reward that only helps learning: at 0 the rules pay what counts.
        up_to: Name of the parameter that is the other end of the range which this one begins: it may not be smaller.
        values: All values, where they are not all numbers of a range; ``low`` and ``high`` are the ends.
    """

    name: str
    default: float
    low: float = -np.inf
    high: float = np.inf
    unit: str = "1"
    about: str = ""
    at_start: bool = False
    whole: bool = False
    words: tuple[str, ...] = ()
    up_to: str = ""
    shaping: bool = False
    values: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        """Words are the whole numbers from 0 on."""
        if self.values:
            for name, end in (("low", min(self.values)), ("high", max(self.values))):
                object.__setattr__(self, name, end)
        if self.words:
            for name, value in (("low", 0), ("high", len(self.words) - 1), ("whole", True)):
                object.__setattr__(self, name, value)

    def number(self, value: Any) -> np.ndarray:
        """The value, or an array of values, as float64.

        Raises:
            ValueError: No number, or out of range, or no such word; names the range, or the words.
        """
        array = _plain_array(value)
        if self.words and array is not None and array.dtype.kind == "U":
            for word in array.flat:
                check_word(self.name, str(word), self.words)
            array = np.array([self.words.index(word) for word in array.flat]).reshape(array.shape)
        if array is None or array.dtype.kind not in "biuf":
            raise ValueError(f"{self.name} must be a number in {self._range_text}, got {value!r}")
        is_flag, array = array.dtype.kind == "b", array.astype(np.float64)
        if self.values and not np.isin(array, self.values).all():
            raise ValueError(f"{self.name} must be one of {', '.join(f'{v:g}' for v in self.values)}, got {value}")
        if not ((array >= self.low) & (array <= self.high)).all():
            raise ValueError(f"{self.name} must be in {self._range_text}, got {value}")
        if self.whole and (is_flag or (array != np.floor(array)).any()):
            raise ValueError(f"{self.name} must be a whole number, got {value}")
        return array

    @property
    def _range_text(self) -> str:
        return f"[{self.low:g}, {self.high:g}]" + ("" if self.unit == "1" else f" {self.unit}")


def _plain_array(value: Any) -> np.ndarray | None:
    """The value as an array; None for rows of unlike lengths."""
    try:
        return np.asarray(value)
    except ValueError:
        return None


def _freeze_bounds(field: Field | Continuous, *more: str) -> None:
    for name in ("low", "high", *more):
        value = getattr(field, name)
        if not isinstance(value, int | float):
            array = np.asarray(value, np.float64)
            if array.shape not in ((), field.shape):
                raise ValueError(f"{field.name}: {name} has shape {array.shape}, the field {field.shape}")
            object.__setattr__(field, name, _nested(array))


def part_names(field: Field | Continuous, agent: int) -> tuple[str, ...]:
    """Names of the numbers along the last axis of a field, as agent ``agent`` of its role sees it; else empty."""
    names: Any = field.parts[agent] if _is_by_agent(field.parts) else field.parts
    return names


def check_agents_of_parts(field: Field | Continuous, agents: int) -> None:
    """Refuses names by agent that are not those of so many agents.

    Raises:
        ValueError: They are not.
    """
    if _is_by_agent(field.parts) and len(field.parts) != agents:
        raise ValueError(f"{field.name}: parts of {len(field.parts)} agents for a role of {agents}")


def _check_parts(field: Field | Continuous) -> None:
    length = (field.shape or (1,))[-1]
    for names in field.parts if _is_by_agent(field.parts) else (field.parts,):
        if names and len(names) != length:
            raise ValueError(f"{field.name}: {len(names)} parts for the shape {field.shape}")


def _is_by_agent(parts: Parts) -> bool:
    return bool(parts) and not isinstance(parts[0], str)


def _nested(array: np.ndarray) -> Any:
    return tuple(_nested(row) for row in array) if array.ndim else float(array)


def bounds(field: Field | Table | Continuous) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper bounds of each number, float64 in the field's visible shape."""
    return np.broadcast_to(np.asarray(field.low, np.float64), field.shape), np.broadcast_to(
        np.asarray(field.high, np.float64), field.shape
    )


def checked_bounds(field: ObservationField) -> tuple[np.ndarray, np.ndarray]:
    """The range that values are held to: the finite ``checked`` one where it is given, else the bounds."""
    if isinstance(field, Table):
        pairs = [checked_bounds(c) for c in field.columns]
        return np.concatenate([low.reshape(-1) for low, _ in pairs]), np.concatenate(
            [high.reshape(-1) for _, high in pairs]
        )
    if field.checked is None:
        return bounds(field)
    return np.broadcast_to(field.checked[0], field.shape), np.broadcast_to(field.checked[1], field.shape)


def record_dtype(fields: Iterable[ObservationField], visible: bool = False) -> np.dtype:
    """Packed record of the fields in their order; all-float32 tables can be viewed as a flat vector.

    Args:
        fields: The fields; those that are an array of the world take no memory.
        visible: In the sizes that users see instead of those of the kernel's memory.
    """
    return np.dtype([f.member(visible) for f in fields if f.world is None])


def action_dtype(fields: Iterable[ActionField]) -> np.dtype:
    """Record of an action. Every scalar is one 8-byte word: int64 for a `Choice`, float64 for a `Continuous`."""
    return np.dtype([(f.name, "i8" if isinstance(f, Choice) else "f8", f.shape) for f in fields])


def mask_dtype(fields: Iterable[ActionField], visible: bool = False) -> np.dtype:
    """Record of the masks of an action's choices."""
    return np.dtype([f.mask_member(visible) for f in fields if isinstance(f, Choice)])


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
        arrays[name] = known[name].number(value)
    return arrays


def member_offset(dtype: Any, name: str) -> int:
    """Byte offset of a member of a record."""
    return dtype.fields[name][1]


def is_homogeneous(fields: Sequence[ObservationField]) -> bool:
    """Whether the record is also one flat vector of a single dtype."""
    return len({f.dtype for f in fields}) == 1


def values_of(records: Any, field: ObservationField) -> np.ndarray:
    """View of a field in records ``[...]``: ``[..., *field.shape]``, the columns of a table side by side."""
    if isinstance(field, Field):
        return records[field.name]
    plain = np.dtype(
        {
            "names": [field.name],
            "formats": [(field.dtype, (len_of(records.dtype[field.name]), field.width))],
            "offsets": [member_offset(records.dtype, field.name)],
            "itemsize": records.dtype.itemsize,
        }
    )
    return records.view(plain)[field.name]


def len_of(dtype: np.dtype) -> int:
    """Elements of an array member."""
    return prod(dtype.shape)


def table_rows(fields: Iterable[Field | Table | Choice | Continuous | Parameter]) -> list[dict[str, str]]:
    """Documentation rows (name, shape, low, high, unit, about), the same for docs and command line.

    The columns of an entity table follow it, as ``table.column``.
    """
    rows = []
    for f in fields:
        low, high = _range_texts(f)
        shape = "" if isinstance(f, Parameter) or not f.shape else "x".join(map(str, f.shape))
        row = {"name": f.name, "shape": shape, "low": low, "high": high, "unit": f.unit, "about": _about(f)}
        rows.append(row)
        if isinstance(f, Table):
            columns = table_rows(f.columns)
            rows += [{**column, "name": f"{f.name}.{column['name']}"} for column in columns]
    return rows


def _range_texts(f: Field | Table | Choice | Continuous | Parameter) -> tuple[str, str]:
    if isinstance(f, Table):
        return "", ""
    if isinstance(f, Choice):
        return "0", str(f.n - 1)
    return _bound_text(f.low, min), _bound_text(f.high, max)


UNLIMITED = 2.0**53
"""Finite bounds from here on are shown as ``no limit``: float64 does not hold every whole number beyond it."""


def _bound_text(bound: ArrayLike, outer: Any) -> str:
    numbers = np.unique(np.asarray(bound, np.float64))
    if numbers.size == 1 and UNLIMITED <= numbers[0] < np.inf:
        return "no limit"
    return f"{numbers[0]:g}" if numbers.size == 1 else f"{outer(numbers):g} (differs)"


def _about(f: Field | Table | Choice | Continuous | Parameter) -> str:
    about = f.about
    meanings = f.meanings if isinstance(f, Choice) else f.words if isinstance(f, Parameter) else ()
    if meanings:
        about = f"{about}: " if about else ""
        about += ", ".join(f"{i} {m}" for i, m in enumerate(meanings))
    notes = []
    if isinstance(f, Choice) and f.candidates is not None:
        notes.append(f"legal ones as a list of at most {f.candidates}")
    if isinstance(f, Field):
        if f.checked is not None:
            notes.append(f"in practice within [{f.checked[0]:g}, {f.checked[1]:g}]")
        if f.world is not None:
            notes.append("the same for all matches")
    if isinstance(f, Field | Table) and f.at == "reset":
        notes.append("fixed during a match")
    if isinstance(f, Parameter):
        notes.append(f"default {f.default:g}")
        if f.shaping:
            notes.append("0 in evaluations")
        if f.at_start:
            notes.append("a change takes effect at the next match")
    return " ".join([about, *(f"({note})" for note in notes)]) if notes else about


def unknown_keyword(name: str, known: Mapping[str, Any], what: str) -> NoReturn:
    """Refuses a keyword and suggests the near one.

    The message has Python's words: some libraries try a keyword and look for them.
    """
    near = nearest(name, known)
    hint = f"known: {', '.join(known)}" if near is None else f"did you mean {near!r}?"
    raise TypeError(f"got an unexpected keyword argument {name!r}: it is not a {what}; {hint}")
