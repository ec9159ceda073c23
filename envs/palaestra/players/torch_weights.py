"""Weights that ``torch.save`` wrote, read without torch and without running anything in them.

Such a file is a zip archive: ``data.pkl`` is a pickle of a dict of tensors, ``data/0``, ``data/1``, ... their numbers.
A pickle is a program for a machine with a stack. `_Machine` knows the few instructions that a dict of tensors needs
(`pickletools` names them) and calls nothing: where torch would call ``_rebuild_tensor_v2``, it takes numbers from the
archive. ``torch.load(weights_only=True)`` is no bound for untrusted files: it makes a ``bytearray`` of any size.
"""

from __future__ import annotations

import io
import math
import pickletools
import zipfile
from typing import Any

import numpy as np

from palaestra.core.files import printable

MOST_PICKLE_BYTES = 200_000
"""Of the dict; a tensor has about 150."""
MOST_COPIES = 4
"""How many times as large as its file the tensors and their numbers may be: twice for a file of half precision."""
MOST_AXES = 8
STORAGES = {"torch FloatStorage": "<f4", "torch DoubleStorage": "<f8", "torch HalfStorage": "<f2"}
ORDERED_DICT, REBUILD_TENSOR = "collections OrderedDict", "torch._utils _rebuild_tensor_v2"
PUSHES = ("BINUNICODE", "SHORT_BINUNICODE", "BININT", "BININT1", "BININT2", "LONG1")
TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
MARK = object()
CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": (), "MARK": MARK}


class _Global(str):
    """Module and name of something that a pickle asks for."""


def read_weights(content: bytes) -> dict[str, np.ndarray]:
    """The tensors of a file, finite float32 arrays by name.

    Args:
        content: The file; it must be a zip archive whose members are not compressed, as torch writes it.

    Raises:
        ValueError: Something else than finite tensors; the message names it.
        zipfile.BadZipFile, OSError, EOFError, KeyError, RuntimeError: A damaged archive.
    """
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        folder = next((name for name in archive.namelist() if name.endswith("/data.pkl")), "data.pkl")[
            : -len("data.pkl")
        ]
        program = _member(archive, f"{folder}data.pkl", MOST_PICKLE_BYTES)
        if f"{folder}byteorder" in archive.namelist() and _member(archive, f"{folder}byteorder", 99) != b"little":
            raise ValueError("numbers in another order of bytes")
        machine = _Machine(archive, f"{folder}data/", MOST_COPIES * len(content))
        try:
            for code, argument, _ in pickletools.genops(program):
                machine.run(code.name, argument)
            tensors = machine.stack.pop()
        except (IndexError, KeyError, TypeError) as error:  # the stack holds something else than an instruction needs
            raise ValueError("no program that makes a dict of tensors") from error
    if not isinstance(tensors, dict) or not all(isinstance(tensor, np.ndarray) for tensor in tensors.values()):
        raise ValueError("no dict of tensors")
    for name, tensor in tensors.items():
        if not np.isfinite(tensor).all():
            raise ValueError(f"{printable(name)} is not finite")
    return tensors


def _member(archive: zipfile.ZipFile, name: str, most_bytes: int) -> bytes:
    """A member that is not compressed: its size is then bounded by that of the file."""
    entry = archive.getinfo(name)
    if entry.compress_type != zipfile.ZIP_STORED or entry.file_size > most_bytes:
        raise ValueError(f"{printable(name)} is compressed or too large")
    return archive.read(entry)


class _Machine:
    """Runs a pickle, one instruction at a time; its result is left on the stack."""

    def __init__(self, archive: zipfile.ZipFile, folder: str, most_bytes: int) -> None:
        self.archive, self.folder, self.bytes_left = archive, folder, most_bytes
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def run(self, name: str, argument: Any) -> None:
        """One instruction."""
        stack = self.stack
        if name in PUSHES:
            stack.append(argument)
        elif name in CONSTANTS:
            stack.append(CONSTANTS[name])
        elif name == "GLOBAL":
            stack.append(_Global(argument))
        elif name == "EMPTY_DICT":
            stack.append({})
        elif name in ("BINPUT", "LONG_BINPUT"):
            self.memo[argument] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(self.memo[argument])
        elif name in TUPLES:
            stack[-TUPLES[name] :] = [tuple(stack[-TUPLES[name] :])]
        elif name == "TUPLE":
            stack.append(tuple(self._since_mark()))
        elif name == "BUILD":
            stack.pop()  # notes of torch about the modules
        elif name in ("BINPERSID", "REDUCE", "SETITEM", "SETITEMS"):
            getattr(self, f"_{name.lower()}")()
        elif name not in ("PROTO", "STOP"):
            raise ValueError(f"the instruction {name}, which no dict of tensors needs")

    def _since_mark(self) -> list[Any]:
        """Takes what lies above the last mark."""
        items: list[Any] = []
        while (item := self.stack.pop()) is not MARK:
            items.append(item)
        return items[::-1]

    def _binpersid(self) -> None:
        """The numbers of ``("storage", type, name, device, length)``."""
        _, kind, name, _, length = self.stack.pop()
        if not isinstance(kind, _Global) or kind not in STORAGES:
            raise ValueError(f"numbers of type {printable(kind)}")
        numbers = np.frombuffer(_member(self.archive, f"{self.folder}{name}", self.bytes_left), STORAGES[kind])
        if type(length) is not int or len(numbers) != length:
            raise ValueError(f"{len(numbers)} numbers where there should be {printable(length)}")
        self.bytes_left -= numbers.nbytes
        self.stack.append(numbers)

    def _reduce(self) -> None:
        """What a call would give, of the two that there are."""
        arguments, function = self.stack.pop(), self.stack.pop()
        if not isinstance(function, _Global) or not isinstance(arguments, tuple):
            raise ValueError("no program that makes a dict of tensors")
        if function == ORDERED_DICT and not arguments:
            self.stack.append({})
        elif function == REBUILD_TENSOR:
            self.stack.append(_tensor(*arguments[:4]))
            self.bytes_left -= self.stack[-1].nbytes
            if self.bytes_left < 0:
                raise ValueError("tensors larger than the file")
        else:
            raise ValueError(f"a call of {printable(function)}")

    def _setitem(self) -> None:
        """One entry of a dict."""
        self._set([self.stack.pop(-2), self.stack.pop()])

    def _setitems(self) -> None:
        """Several."""
        self._set(self._since_mark())

    def _set(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if not isinstance(target, dict) or not all(isinstance(key, str) for key in items[::2]):
            raise ValueError("no dict of tensors")
        target.update(zip(items[::2], items[1::2], strict=True))


def _tensor(numbers: Any, offset: Any, shape: Any, strides: Any) -> np.ndarray:
    """A float32 copy of the part of a storage that a tensor shows; shape and strides in numbers."""
    whole = [offset, *shape, *strides]
    if not isinstance(numbers, np.ndarray) or not all(type(n) is int and n >= 0 for n in whole):
        raise ValueError("a tensor without numbers or sizes")
    if len(shape) != len(strides) or len(shape) > MOST_AXES or math.prod(shape) > len(numbers):
        raise ValueError("a tensor larger than its numbers")
    last = offset + sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True))
    if math.prod(shape) == 0 or last >= len(numbers):
        raise ValueError("a tensor beyond its numbers")
    in_bytes = [stride * numbers.itemsize for stride in strides]
    return np.lib.stride_tricks.as_strided(numbers[offset:], shape, in_bytes).astype(np.float32)
