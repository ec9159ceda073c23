"""Reads ``.npz`` archives of other people: no pickle, nothing evaluated, sizes checked before memory is allocated."""

from __future__ import annotations

import math
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import numpy as np

from palaestra.core.files import FileError, open_regular, printable

NPY_START = b"\x93NUMPY\x01\x00"
NPY_HEADER = re.compile(rb"\{'descr': '([<|][a-z]\d+)', 'fortran_order': False, 'shape': \(([\d, ]{0,200})\), \} *\n")
LONGEST_NPY_HEADER = 512
"""Bytes of the text before an array; plain arrays of a few axes have 118."""
LONGEST_LIST = 2**20
"""Bytes of an archive's list of members, which the zip module reads at once; a member has about 60."""
ENCRYPTED = 1
"""Bit of a zip member's flags."""
DAMAGES = (
    ValueError, KeyError, EOFError, OSError, RuntimeError, MemoryError, struct.error, zlib.error, zipfile.BadZipFile
)  # fmt: skip
"""What the zip module raises for files that are none of its own."""


class Archive:
    """An opened ``.npz`` archive; a context manager.

    Every error is a `palaestra.core.files.FileError` that names the file, but for those of the file system.

    Attributes:
        path: The file.
        sizes: Bytes that each member says that it has, by name without ``.npy``.
        stored: Bytes that it has in the file, compressed or not.
    """

    def __init__(self, path: str | Path) -> None:
        """Reads the list of members.

        Raises:
            FileError: No zip archive, a member twice, or one that is encrypted or compressed in another way.
            OSError: The file cannot be read.
        """
        self.path = Path(path)
        self._file = open_regular(self.path)
        try:
            self._check_end()
            self._zip = zipfile.ZipFile(self._file)
            self._members: dict[str, zipfile.ZipInfo] = {}
            for member in self._zip.infolist():
                self._check_member(member)
                self._members[member.filename.removesuffix(".npy")] = member
        except FileError:
            self._file.close()
            raise
        except DAMAGES as error:
            self._file.close()
            raise FileError(f"{self.path} is no archive of arrays (npz): {_line(error)}") from error
        self.sizes = {name: member.file_size for name, member in self._members.items()}
        self.stored = {name: member.compress_size for name, member in self._members.items()}

    def _check_end(self) -> None:
        """The last 22 bytes, which NumPy writes without a comment and, below 2 GB, without an extension before them."""
        size = self._file.seek(0, os.SEEK_END)
        self._file.seek(max(size - 42, 0))
        tail = self._file.read()
        end = tail[-22:]
        if not end.startswith(b"PK\5\6") or tail.startswith(b"PK\6\7"):
            raise FileError(f"{self.path} is no archive of arrays (npz), or it is cut off")
        if int.from_bytes(end[12:16], "little") > LONGEST_LIST:
            raise FileError(f"{self.path} is no archive of arrays (npz): it lists too many members")

    def _check_member(self, member: zipfile.ZipInfo) -> None:
        name = member.filename.removesuffix(".npy")
        if name in self._members or not member.filename.endswith(".npy"):
            raise FileError(f"{self.path} has a member {printable(member.filename)} that is no array or is there twice")
        if member.flag_bits & ENCRYPTED or member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise FileError(f"{self.path}: member {printable(name)} is encrypted or compressed in an unknown way")

    def __enter__(self) -> Archive:
        """Itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the file."""
        self._zip.close()
        self._file.close()

    def read(self, name: str, dtype: str, shape: Sequence[int | None], most_bytes: int) -> np.ndarray:
        """One array; nothing is inflated before its size is known to be right.

        Args:
            name: Of the member, without ``.npy``.
            dtype: Its type as ``dtype.str``, ``"<f8"`` say.
            shape: Its shape; None for an axis of any length.
            most_bytes: Largest size.

        Raises:
            FileError: It is missing, damaged, too large, or of another type or shape.
        """
        if name not in self._members:
            raise FileError(f"{self.path} has no array {name!r}")
        member = self._members[name]
        if member.file_size > most_bytes + LONGEST_NPY_HEADER:
            raise FileError(f"{self.path}: array {name!r} has {member.file_size} bytes, more than {most_bytes}")
        try:
            with self._zip.open(member) as file:
                start = len(NPY_START) + 2
                head = file.read(start)
                length = int.from_bytes(head[-2:], "little")
                if not head.startswith(NPY_START) or length > LONGEST_NPY_HEADER:
                    raise FileError(f"{self.path}: member {name!r} is no plain array (npy 1.0)")
                found, lengths = self._header(name, file.read(length))
                if found != dtype or len(lengths) != len(shape) or not _fits(lengths, shape):
                    wanted = "x".join("any" if n is None else str(n) for n in shape)
                    raise FileError(
                        f"{self.path}: array {name!r} is {found} {'x'.join(map(str, lengths))}, not {dtype} {wanted}"
                    )
                size = math.prod(lengths) * np.dtype(dtype).itemsize
                if start + length + size != member.file_size:
                    raise FileError(f"{self.path}: array {name!r} does not have the size that it says")
                content = file.read()
        except FileError:
            raise
        except DAMAGES as error:
            raise FileError(f"{self.path}: array {name!r} is damaged or cut off: {_line(error)}") from error
        if len(content) != size:
            raise FileError(f"{self.path}: array {name!r} is cut off")
        return np.frombuffer(content, dtype).reshape(lengths)

    def _header(self, name: str, text: bytes) -> tuple[str, tuple[int, ...]]:
        """Type and shape in the header of an array, which is compared with a pattern and never evaluated."""
        match = NPY_HEADER.fullmatch(text)
        if match is None:
            raise FileError(f"{self.path}: member {name!r} is no plain array in row order")
        return match[1].decode(), tuple(int(word) for word in match[2].replace(b" ", b"").split(b",") if word)


def _fits(lengths: tuple[int, ...], shape: Sequence[int | None]) -> bool:
    return all(wanted in (None, length) for length, wanted in zip(lengths, shape, strict=True))


def _line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:200]
