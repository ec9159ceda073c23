"""Ways to spoil a file: damage, other formats, zip tricks, pickles, and dishonest values under a right checksum.

A mutation gets the content of an honest file, a generator, and a `Supply`; it returns the content of the new file.
"""

from __future__ import annotations

import io
import json
import pickle
import struct
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

EVIL_NUMBERS: tuple[float, ...] = (
    *(0, -1, 1, 7, 255, 10**6, 10**9, 10**12, 2**31, 2**32 - 1, 2**62, 2**63 - 1, -(2**63), -(10**9)),
    *(float("nan"), float("inf"), -float("inf"), 1e300, -1e300, 1e-300, 0.5),
)
PRIVATE = tuple(f"secret.{suffix}" for suffix in ("json", "edges", "txt", "safetensors", "zip", "onnx", "npz"))
"""Files of the user in the working directory, which no file of somebody else may open."""
EVIL_ENTRIES: tuple[Any, ...] = (
    *EVIL_NUMBERS,
    *(*PRIVATE, *(f"../../home/{name}" for name in PRIVATE), "//attacker/share/x.json"),
    *(None, True, "", "x", "\x1b[2J", "../../etc/passwd", "os:system", "palaestra/CartPole-v0", "a" * 100_000),
    *([], {}, [[]], {"": []}, [1, "two", None], {"red": 3}, {"red": [None]}, 10**400, -0.0),
)
ENTRIES_OF_INTEREST = 4
"""How often the header of a file is spoilt compared with one array."""


class Payload:
    """Leaves a file where it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self._marker = str(marker)

    def __reduce__(self) -> tuple:
        return (open, (self._marker, "w"))


@dataclass(frozen=True)
class Supply:
    """What mutations need besides the file.

    Attributes:
        others: Contents of other honest files of the kind.
        marker: File that a payload leaves.
    """

    others: list[bytes]
    marker: Path


Mutation = Callable[[bytes, np.random.Generator, Supply], bytes]


# ----------------------------------------------------------------------------------------------------------- any file


def flip_bits(data: bytes, rng: np.random.Generator, supply: Supply) -> bytes:
    """One to eight bits are others."""
    spoilt = bytearray(data)
    for _ in range(rng.integers(1, 9)):
        spoilt[rng.integers(len(spoilt))] ^= 1 << rng.integers(8)
    return bytes(spoilt)


def cut(data: bytes, rng: np.random.Generator, supply: Supply) -> bytes:
    """The end is missing, as after a full disk, or the start."""
    at = int(rng.integers(len(data)))
    return data[:at] if rng.random() < 0.8 else data[at:]


def zero_block(data: bytes, rng: np.random.Generator, supply: Supply) -> bytes:
    """A block is zero, as after a power cut."""
    at, size = int(rng.integers(len(data))), int(rng.integers(1, 4097))
    return data[:at] + bytes(min(size, len(data) - at)) + data[at + size :]


def insert_bytes(data: bytes, rng: np.random.Generator, supply: Supply) -> bytes:
    """Bytes too many, anywhere."""
    at = int(rng.integers(len(data) + 1))
    return data[:at] + rng.bytes(int(rng.integers(1, 100))) + data[at:]


def splice(data: bytes, rng: np.random.Generator, supply: Supply) -> bytes:
    """The start of one file and the end of another."""
    other = pick(supply.others, rng)
    return data[: rng.integers(len(data))] + other[rng.integers(len(other)) :]


def foreign(data: bytes, rng: np.random.Generator, supply: Supply) -> bytes:
    """A file of another program."""
    arrays = io.BytesIO()
    np.savez(arrays, something=np.zeros(3), header=np.zeros(5))
    array = io.BytesIO()
    np.save(array, np.arange(9.0))
    deep = b"[" * 200_000
    return pick(
        [b"", b"\0" * 4096, b"dear friend\n" * 99, rng.bytes(3000), arrays.getvalue(), array.getvalue(), deep, b"{}"],
        rng,
    )


def pickled(data: bytes, rng: np.random.Generator, supply: Supply) -> bytes:
    """A pickle that leaves a file: plain, as an array of objects, or as torch writes it."""
    payload = pickle.dumps(Payload(supply.marker), protocol=int(rng.integers(0, 6)))
    objects = io.BytesIO()
    np.save(objects, np.array([Payload(supply.marker)], object), allow_pickle=True)
    form = int(rng.integers(4))
    if form == 0:
        return payload
    if form == 1:
        return objects.getvalue()
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as target:
        if form == 2:
            target.writestr("archive/data.pkl", payload)
            target.writestr("archive/version", "3\n")
        else:
            for name in ("header", "checksum", "operations", "data", "arr_0"):
                target.writestr(f"{name}.npy", objects.getvalue())
    return archive.getvalue()


ANY_FILE: tuple[Mutation, ...] = (flip_bits, cut, zero_block, insert_bytes, splice, foreign, pickled)


# -------------------------------------------------------------------------------------------------------- zip archives


def members_of(data: bytes) -> list[tuple[str, bytes]]:
    """Names and contents of an honest archive."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return [(name, archive.read(name)) for name in archive.namelist()]


def archive_of(members: list[tuple[str, bytes]], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    """An archive; a name may stand in it twice."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", compression) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return target.getvalue()


def swap_members(data: bytes, rng: np.random.Generator, supply: Supply) -> bytes:
    """Members change places, or come from another file."""
    members, others = members_of(data), dict(members_of(pick(supply.others, rng)))
    a, b = rng.integers(len(members), size=2)
    if rng.random() < 0.5:
        members[a], members[b] = (members[a][0], members[b][1]), (members[b][0], members[a][1])
    else:
        members[a] = (members[a][0], others.get(members[a][0], b""))
    return archive_of(members)


def trick_archive(data: bytes, rng: np.random.Generator, supply: Supply) -> bytes:
    """A member twice, too many, gone, elsewhere, in another compression, a bomb, or with other numbers in its list."""
    members = members_of(data)
    at = int(rng.integers(len(members)))
    name, content = members[at]
    trick = int(rng.integers(9))
    if trick == 0:
        return archive_of([*members, (name, content[::-1])])
    if trick == 1:
        return archive_of(
            [*members, (pick(["../../evil.npy", "/etc/evil.npy", "payload.pickle", "x.npy"], rng), content)]
        )
    if trick == 2:
        return archive_of(members[:at] + members[at + 1 :])
    if trick == 3:
        return archive_of(members, pick([zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA], rng))
    if trick == 4:
        return archive_of([*members[:at], (name, content + bytes(30_000_000)), *members[at + 1 :]])
    if trick == 5:
        return archive_of([*members[:at], (name, vast_array(rng)), *members[at + 1 :]])
    spoilt = bytearray(data)
    entry = pick([k for k in range(len(spoilt) - 46) if spoilt[k : k + 4] == b"PK\x01\x02"], rng)
    place, form = pick([(6, "<H"), (8, "<H"), (10, "<H"), (20, "<I"), (24, "<I"), (28, "<H"), (42, "<I")], rng)
    struct.pack_into(form, spoilt, entry + place, int(rng.integers(2**16)))
    return bytes(spoilt)


def vast_array(rng: np.random.Generator) -> bytes:
    """An array that says that it is vast."""
    shape = pick(["(9999999999999,)", "(0, 99999999999999999999)", "(-1,)", "(2147483647, 2147483647, 2)", "()"], rng)
    descr = pick(["<i8", "|O", "|V0", "<U99999999", "|u1"], rng)
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    padded = text + " " * (117 - len(text)) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(padded)) + padded.encode() + bytes(64)


ARCHIVES: tuple[Mutation, ...] = (swap_members, trick_archive)


# --------------------------------------------------------------------------------------------------------- evil values


def pick(things: Any, rng: np.random.Generator) -> Any:
    """One of several things."""
    return things[int(rng.integers(len(things)))]


def evil_array(array: np.ndarray, rng: np.random.Generator, other: np.ndarray | None = None) -> np.ndarray:
    """An array of which some numbers, the type or the shape are others."""
    how = int(rng.integers(8))
    if how == 0:
        return array.astype(pick(["f4", "f8", "i4", "u8", "u1", "?", "S3", "c16", ">i8"], rng))
    if how == 1:
        return array.reshape(pick([(-1,), (1, *array.shape), (*array.shape, 1)], rng))
    if how == 2:
        return array[: rng.integers(len(array) + 1)] if array.ndim else array
    if how == 3 and array.ndim and len(array):
        return np.concatenate([array, array[rng.integers(len(array), size=2)]])
    if how == 4 and other is not None:
        return other
    spoilt = np.array(array)
    if spoilt.size:
        for at in rng.integers(spoilt.size, size=rng.integers(1, 4)):
            put(spoilt.reshape(-1), int(at), pick(EVIL_NUMBERS, rng))
    return spoilt


def put(numbers: np.ndarray, at: int, value: float) -> None:
    """Writes a number; what its type cannot hold as the bits of a float64, as reals stand in rows of integers."""
    if numbers.dtype.kind in "iub" and (value != value or abs(value) > 2**63 or value != int(value)):
        bits = np.array([value], np.float64).view(np.uint8)
        numbers[at : at + 1].view(np.uint8)[:] = bits[: numbers.itemsize]
    else:
        with np.errstate(all="ignore"):
            numbers[at : at + 1] = np.array([value]).astype(numbers.dtype)


def evil_json(value: Any, rng: np.random.Generator, depth: int = 0) -> Any:
    """JSON of which one entry, at any depth, is another, missing or new."""
    if isinstance(value, dict) and value and (depth == 0 or rng.random() < 0.7):
        key = pick(list(value), rng)
        how = int(rng.integers(8))
        if how == 0:
            return {k: v for k, v in value.items() if k != key}
        if how == 1:
            return {**value, pick(["more", "", "__class__", "workers", "num_envs"], rng): pick(EVIL_ENTRIES, rng)}
        return {**value, key: evil_json(value[key], rng, depth + 1)}
    if isinstance(value, list) and value and rng.random() < 0.7:
        at = int(rng.integers(len(value)))
        return [*value[:at], evil_json(value[at], rng, depth + 1), *value[at + 1 :]]
    return pick(EVIL_ENTRIES, rng)


def evil_text(text: bytes, rng: np.random.Generator) -> bytes:
    """The text of some JSON with an entry changed, or deep."""
    if rng.random() < 0.1:
        return pick([b"[" * 100_000, b'{"a":' * 50_000, b"9" * 10_000, b"NaN", b"\xff\xfe", b"", b"null"], rng)
    try:
        return json.dumps(evil_json(json.loads(text), rng)).encode()
    except (ValueError, RecursionError):  # it is evil already
        return text
