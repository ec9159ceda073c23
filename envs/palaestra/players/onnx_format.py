"""The parts of an ONNX file that a policy needs, checked and written anew.

An ONNX file is a message in the format of Protocol Buffers (``onnx.proto`` of the ONNX project numbers the fields). A
runtime understands more of it than a policy needs: numbers in other files, loops, operators of its own. `checked` reads
each field by the tables below, refuses those that are not in them, and returns a new file of those that it has checked,
so no other reader can find something else in it.

Exporters write more than the actions: values, log-probabilities, samples, next to each other from one network. The new
file has the first output alone, and of nodes, inputs and tensors those that it is computed from. A node that is left
out is not run, and may be what no policy needs; tensors are checked in any case.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from palaestra.core.files import printable

MOST_FIELDS = 100_000
"""Fields in all, which bound the time of the check; an exported network has some hundred."""
MOST_AXES = 8
DROP = "drop"
"""A comment: it has no effect on the result and is left out."""
INTEGER, FLOAT, TEXT, BYTES = "integer", "float", "text", "bytes"
INTEGERS, FLOATS = "integers", "floats"
"""Repeated numbers, packed into one field or each in a field of its own."""
MANY = "*"
"""Marks messages and texts that may be repeated. In another reader the last one of several would count, or all."""
FIELDS: dict[str, dict[int, str]] = {
    "model": {1: INTEGER, 2: DROP, 3: DROP, 4: DROP, 5: DROP, 6: DROP, 7: "graph", 8: "opset*", 14: DROP},
    "opset": {1: TEXT, 2: INTEGER},
    "graph": {
        **{1: "node*", 2: TEXT, 5: "tensor*", 10: DROP, 11: "value*", 12: "value*", 13: DROP, 14: DROP, 16: DROP},
    },
    "value": {1: TEXT, 2: "type", 3: DROP, 4: DROP},
    "type": {1: "tensor type", 6: DROP},
    "tensor type": {1: INTEGER, 2: "shape"},
    "shape": {1: "dimension*"},
    "dimension": {1: INTEGER, 2: TEXT, 3: DROP},
    "node": {1: "text*", 2: "text*", 3: TEXT, 4: TEXT, 5: "attribute*", 6: DROP, 7: TEXT, 9: DROP},
    "attribute": {1: TEXT, 2: FLOAT, 3: INTEGER, 4: TEXT, 5: "tensor", 7: FLOATS, 8: INTEGERS, 13: DROP, 20: INTEGER},
    "tensor": {
        **{1: INTEGERS, 2: INTEGER, 4: FLOATS, 5: INTEGERS, 7: INTEGERS, 8: TEXT, 9: BYTES, 10: FLOATS, 12: DROP},
        **{14: INTEGER, 16: DROP},
    },
}
"""By message: what each field holds. Sub-graphs, functions, sparse tensors, texts and files are in none."""
NODE, TENSOR, INPUT, OUTPUT = 1, 5, 11, 12
PARTS = {NODE: (1, 2), TENSOR: (8,), INPUT: (1,), OUTPUT: (1,)}
"""Fields of a graph that may be left out, and of each the fields with names: of a node those of inputs and outputs."""
REASONS = {
    ("tensor", 13): "keeps its numbers in another file (external_data=False exports one file)",
    ("tensor", 6): "holds texts",
    ("attribute", 6): "has a graph inside a node (a loop or a branch)",
    ("attribute", 9): "holds texts",
    ("graph", 15): "holds sparse tensors",
    ("model", 25): "has functions of its own",
}
SIZES = {1: 4, 2: 1, 3: 1, 6: 4, 7: 8, 9: 1, 11: 8}
"""Bytes of a number by its type: float, uint8, int8, int32, int64, bool, double. Texts and others are refused."""
OPERATORS = frozenset(
    b"""
    Abs Acos Acosh Add And ArgMax ArgMin Asin Asinh Atan Atanh BatchNormalization Cast CastLike Ceil Celu Clip
    Concat Constant ConstantOfShape Cos Cosh CumSum Div Elu Equal Erf Exp Expand EyeLike Flatten Floor Gather
    GatherElements GatherND Gelu Gemm Greater GreaterOrEqual HardSigmoid HardSwish Hardmax Identity IsInf IsNaN
    LayerNormalization LeakyRelu Less LessOrEqual Log LogSoftmax MatMul Max Mean Min Mish Mod Mul Neg Not OneHot
    Or PRelu Pad Pow RMSNormalization Range Reciprocal ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax
    ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Relu Reshape Round ScatterElements Selu Shape Shrink
    Sigmoid Sign Sin Sinh Size Slice Softmax Softplus Softsign Split Sqrt Squeeze Sub Sum Swish Tan Tanh
    ThresholdedRelu Tile TopK Transpose Unsqueeze Where Xor
    """.split()
)
"""Arithmetic on tensors. Of a new one: its time is a multiple of what it reads and writes, and it draws nothing.

Trilu, LpNormalization and InstanceNormalization are none: they count the rows of an empty tensor ``[2**40, 0]``.
"""
DRAWS = frozenset(b"Bernoulli Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike".split())
"""Operators that draw random numbers: a match could not be played again."""
DRAW_REMEDY = ", as it draws: export the likeliest action, for example policy(observation, deterministic=True)"
STANDARD = (b"", b"ai.onnx")
"""Names of the standard set of operators."""


def checked(content: bytes, most_bytes: int) -> bytes:
    """A file with the same policy in it, and nothing else.

    Args:
        content: An ONNX file.
        most_bytes: Largest sum of the tensors' sizes, and of the file.

    Raises:
        ValueError: Not ONNX, or something that a policy does not need; the message names it.
    """
    return bytes(_Copy(most_bytes).message("model", memoryview(content)))


class _Fields:
    """Reads fields, up to `MOST_FIELDS` in all."""

    def __init__(self) -> None:
        self.left = MOST_FIELDS

    def of(self, content: memoryview) -> Iterator[tuple[int, int, memoryview | int]]:
        """Those of a message: see `_fields`."""
        for field in _fields(content):
            self.left -= 1
            if self.left < 0:
                raise ValueError(f"has more than {MOST_FIELDS} fields")
            yield field


def _used(graph: memoryview) -> set[int]:
    """Places, among a graph's fields, of its first output and of the nodes, tensors and inputs it is computed from."""
    fields = _Fields()
    givers: dict[bytes, list[int]] = {}  # places of the parts that give a name
    needs: dict[int, list[bytes]] = {}  # names that the part at a place reads
    used, wanted = set[int](), list[bytes]()
    for place, (number, _, part) in enumerate(fields.of(graph)):
        if number not in PARTS or isinstance(part, int):
            continue
        texts = ((inner, name) for inner, wire, name in fields.of(part) if wire == 2 and not isinstance(name, int))
        named = [(inner, bytes(name)) for inner, name in texts if inner in PARTS[number]]
        reads = [name for inner, name in named if number == NODE and inner == 1 and name]  # without a name: none
        gives = [name for inner, name in named if number != NODE or inner == 2]
        if number != OUTPUT:
            needs[place] = reads
            for name in gives:
                givers.setdefault(name, []).append(place)
        elif not used:
            used.add(place)
            wanted = gives
    while wanted:
        new = [place for place in givers.pop(wanted.pop(), []) if place not in used]
        used.update(new)
        wanted += [name for place in new for name in needs[place]]
    return used


class _Copy:
    """One file on its way into a new one."""

    def __init__(self, most_bytes: int) -> None:
        self.fields, self.bytes_left = _Fields(), most_bytes

    def message(self, kind: str, content: memoryview) -> bytearray:
        """A message with the fields of its kind alone."""
        table, new, found = FIELDS[kind], bytearray(), {}
        used = _used(content) if kind == "graph" else set()
        for place, (number, wire, value) in enumerate(self.fields.of(content)):
            left_out = kind == "graph" and number in PARTS and place not in used
            if left_out and number in (NODE, OUTPUT):
                continue
            holds = table.get(number)
            if holds is None:
                raise ValueError(
                    REASONS.get((kind, number), f"has a field {number} in a {kind}, which no policy needs")
                )
            if holds == DROP:
                continue
            many = holds.endswith(MANY) or holds in (INTEGERS, FLOATS)
            if number in found and not many:
                raise ValueError(f"has the field {number} of a {kind} twice")
            field = self._field(holds.removesuffix(MANY), number, wire, value)
            if not left_out:
                new += field
            found.setdefault(number, []).append((wire, value))
        self._check(kind, found)
        return new

    def _field(self, holds: str, number: int, wire: int, value: memoryview | int) -> bytearray:
        """One field, written anew."""
        if isinstance(value, int):
            if holds not in (INTEGER, INTEGERS):
                raise ValueError("is damaged: a number is where none should be")
            return _varint(number << 3) + _varint(value)
        if holds in FIELDS and wire == 2:
            value = memoryview(self.message(holds, value))
        if holds == TEXT and not _is_text(value):  # a runtime reads names as UTF-8
            raise ValueError("is damaged: a name is no text")
        if holds == INTEGERS:
            self.bytes_left -= 8 * len(value)  # what a byte may become in a runtime
        fits = (
            wire == 2
            if holds in (TEXT, BYTES, INTEGERS, *FIELDS)
            else wire in (2, 5, 1)
            if holds == FLOATS
            else wire == 5
        )
        if not fits:
            raise ValueError(f"is damaged: no {holds} is where one should be")
        new = _varint(number << 3 | wire)
        if wire == 2:
            new += _varint(len(value))
        return new + value

    def _check(self, kind: str, found: dict[int, list]) -> None:
        """What is more than the kind of a field."""
        one = lambda number, default: found[number][0][1] if number in found else default  # noqa: E731
        if kind == "node":
            operator, domain = bytes(one(4, b"")), bytes(one(7, b""))
            if operator not in OPERATORS or domain not in STANDARD:
                name = b".".join(filter(None, (domain, operator))).decode(errors="replace")
                remedy = DRAW_REMEDY if operator in DRAWS and domain in STANDARD else ""
                raise ValueError(
                    f"uses the operator {printable(name)}, which is not among the {len(OPERATORS)} that play{remedy}"
                )
        elif kind == "tensor":
            self._check_tensor(found)
        elif kind == "attribute" and one(1, b"") == b"to" and one(3, 0) not in SIZES:
            raise ValueError("casts to a type that is no plain number")

    def _check_tensor(self, found: dict[int, list]) -> None:
        """Compares a tensor's size with what is left for all of them, before a runtime makes room for it."""
        dims = [n for wire, value in found.get(1, ()) for n in ([value] if wire == 0 else _varints(value))]
        kind = found[2][0][1] if 2 in found else 0
        if kind not in SIZES:
            raise ValueError(f"has a tensor of type {kind}, which is no plain number")
        if len(dims) > MOST_AXES or any(n > self.bytes_left for n in dims):
            raise ValueError("has tensors that are too large")
        self.bytes_left -= math.prod(dims) * SIZES[kind]
        if self.bytes_left < 0:
            raise ValueError("has tensors that are too large")
        if 14 in found and found[14][0][1]:
            raise ValueError(REASONS["tensor", 13])


def _is_text(content: memoryview) -> bool:
    try:
        bytes(content).decode()
    except UnicodeDecodeError:
        return False
    return True


def _fields(content: memoryview) -> Iterator[tuple[int, int, memoryview | int]]:
    """Number, wire type and value of each field: 0 an integer, 1 eight bytes, 2 a length and bytes, 5 four bytes.

    Raises:
        ValueError: Cut, or no message.
    """
    at, end = 0, len(content)
    while at < end:
        key, at = _read_varint(content, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = _read_varint(content, at)
            yield number, wire, value
            continue
        if wire == 2:
            size, at = _read_varint(content, at)
        else:
            size = {1: 8, 5: 4}.get(wire, end)
        if not number or size > end - at:
            raise ValueError("is damaged, was cut, or is something else")
        yield number, wire, content[at : at + size]
        at += size


def _read_varint(content: memoryview, at: int) -> tuple[int, int]:
    """An integer of 64 bits, seven in a byte, and where it ends."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(content):
            break
        value |= (content[at] & 127) << shift
        at += 1
        if content[at - 1] < 128:
            return value & (2**64 - 1), at
    raise ValueError("is damaged, was cut, or is something else")


def _varints(content: memoryview) -> list[int]:
    """Packed integers."""
    numbers, at = [], 0
    while at < len(content):
        number, at = _read_varint(content, at)
        numbers.append(number)
        if len(numbers) > MOST_AXES:
            break
    return numbers


def _varint(value: int) -> bytearray:
    """The bytes of an integer."""
    new = bytearray()
    while value > 127:
        new.append(value & 127 | 128)
        value >>= 7
    new.append(value)
    return new
