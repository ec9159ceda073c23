"""Writes files in the format ONNX, also such as no program writes, by the numbers of the fields in onnx.proto."""

from __future__ import annotations

import struct
from collections.abc import Iterable

import numpy as np

FLOAT, INT64 = 1, 7
"""Types of tensors."""


def varint(n: int) -> bytes:
    n %= 2**64
    return bytes([n & 127 | 128]) + varint(n >> 7) if n > 127 else bytes([n])


def field(number: int, value: int | bytes | str) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    content = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(content)) + content


def tensor(name: str, dims: Iterable[int], kind: int, raw: bytes, more: bytes = b"") -> bytes:
    return b"".join(field(1, n) for n in dims) + field(2, kind) + field(8, name) + field(9, raw) + more


def floats(name: str, array: np.ndarray) -> bytes:
    return tensor(name, array.shape, FLOAT, array.astype("<f4").tobytes())


def integers(name: str, *numbers: int) -> bytes:
    return tensor(name, (len(numbers),), INT64, struct.pack(f"<{len(numbers)}q", *numbers))


def node(operator: str, inputs: Iterable[str], output: str, more: bytes = b"") -> bytes:
    return b"".join(field(1, name) for name in inputs) + field(2, output) + field(4, operator) + more


def value(name: str, *dims: int | str, kind: int = FLOAT) -> bytes:
    shape = b"".join(field(1, field(2 if isinstance(n, str) else 1, n)) for n in dims)
    return field(1, name) + field(2, field(1, field(1, kind) + field(2, shape)))


def model(
    nodes: Iterable[bytes],
    tensors: Iterable[bytes],
    rows: int | str = "rows",
    more: bytes = b"",
    sees: int = 34,
    gives: int | None = 2,
    kind: int = FLOAT,
) -> bytes:
    """A network from ``seen [rows, sees]`` to ``actions [rows, gives]``, or ``[rows]``; ``more`` ends its graph."""
    graph = [field(1, entry) for entry in nodes] + [field(2, "policy")] + [field(5, entry) for entry in tensors]
    shape = (rows,) if gives is None else (rows, gives)
    graph += [field(11, value("seen", rows, sees)), field(12, value("actions", *shape, kind=kind)), more]
    return field(1, 8) + field(7, b"".join(graph)) + field(8, field(1, "") + field(2, 17))
