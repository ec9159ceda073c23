"""Files of a model's folder: where they lie, their JSON, and the headers of their weights."""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from palaestra.core.files import FileError, open_regular, printable, read_limited

CONFIG, WEIGHTS = "config.json", "model.safetensors"
LARGEST_JSON, LARGEST_HEADER = 2**20, 2**24
"""Bytes of a file of options, and of the header of weights; the largest that are published have a quarter."""
LARGEST_WEIGHTS = 2**40
MOST_FILES = 10_000
TYPES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1}
"""Bytes of numbers of a ``.safetensors`` file; those of quantised weights are not among them."""


def digest_of_folder(folder: Path) -> str:
    """SHA-256 of the names and contents of all files.

    Raises:
        FileError: It holds what is no regular file, or leads out of it.
    """
    digest = hashlib.sha256()
    for path in files_of(folder):
        with open_regular(path, LARGEST_WEIGHTS) as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()  # pyright: ignore[reportArgumentType]
        digest.update(f"{path.relative_to(folder).as_posix()}\0{content}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def files_of(folder: Path) -> list[Path]:
    """All files of a folder and of those inside, in order.

    Raises:
        FileError: One is no regular file, or leads out of the folder; or there are too many.
    """
    found = list[Path]()
    for place, folders, names in os.walk(folder):
        for name in (*folders, *names):
            path = Path(place, name)
            if name in names or path.is_symlink():
                inside(folder, path)
        found += (Path(place, name) for name in names)
        if len(found) > MOST_FILES:
            raise FileError(f"{folder}: more than {MOST_FILES} files: no model has as many")
    return sorted(found)


def inside(folder: Path, path: Path) -> Path:
    """Where a file of a folder lies, links followed: in the folder, or among the blobs of Hugging Face's cache.

    Raises:
        FileError: It lies elsewhere, or is no regular file.
    """
    real, root = Path(os.path.realpath(path)), Path(os.path.realpath(folder))
    roots = [root, *([root.parents[1] / "blobs"] if root.parent.name == "snapshots" else [])]
    if not any(real.is_relative_to(allowed) for allowed in roots):
        raise FileError(f"{path}: a link that leads out of the folder: give a folder that holds all of its files")
    try:
        is_file = stat.S_ISREG(os.stat(real).st_mode)
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror}") from None
    if not is_file:
        raise FileError(f"{path}: no regular file: give a file, not a folder, pipe or device")
    return real


def read_json(root: Path, path: Path, most_bytes: int, prose: bool = False) -> dict[str, Any]:
    """The object of a JSON file.

    Args:
        root: The model's folder.
        path: The file.
        most_bytes: Largest size.
        prose: Whether texts may hold line breaks and the like.

    Raises:
        FileError: It cannot be read, is no JSON object, or has texts that no terminal can show.
    """
    value = parsed(path, content_of(root, path, most_bytes))
    if not isinstance(value, dict):
        raise FileError(f"{path}: no object of JSON: give the file as the library saves it")
    if not prose:
        for at, text in texts_of(value):
            if not text.isprintable():
                raise FileError(f"{path}: {printable(at)} holds {printable(text)}, with control characters")
    return value


def content_of(root: Path, path: Path, most_bytes: int) -> bytes:
    """The content of a file of a model's folder.

    Raises:
        FileError: It is not there, no regular file of the folder, too large, or cannot be read.
    """
    if not is_there(path):
        raise FileError(f"{path}: there is no such file: give the folder of a model as the library saves it")
    inside(root, path)
    try:
        return read_limited(path, most_bytes)
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror}") from None


def parsed(path: Path, content: bytes) -> Any:
    """A JSON value.

    Raises:
        FileError: It is none.
    """
    try:
        return json.loads(content.decode())
    except (ValueError, RecursionError) as error:
        raise FileError(f"{path}: no JSON: {printable(error)}") from None


def is_there(path: Path) -> bool:
    """Whether there is a file, a broken link too."""
    return os.path.lexists(path)


def write_json(path: Path, value: Any) -> None:
    """Writes a JSON value."""
    path.write_text(json.dumps(value), encoding="utf-8")


def texts_of(value: Any, at: str = "") -> Iterator[tuple[str, str]]:
    """Keys and texts of a JSON value, with their places."""
    if isinstance(value, str):
        yield at, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield at, key
            yield from texts_of(inner, f"{at}.{key}".lstrip("."))
    elif isinstance(value, list):
        for inner in value:
            yield from texts_of(inner, at)


def read_shapes(root: Path, path: Path) -> dict[str, tuple[int, ...]]:
    """The shapes of the tensors of a ``.safetensors`` file, whose header fits its size.

    Raises:
        FileError: It does not.
    """
    if not is_there(path):
        raise FileError(f"{path}: there is no such file: give the folder of a model as the library saves it")
    inside(root, path)
    try:
        with open_regular(path, LARGEST_WEIGHTS) as file:
            size = os.fstat(file.fileno()).st_size
            length = int.from_bytes(file.read(8), "little")
            if not 2 <= length <= min(LARGEST_HEADER, size - 8):
                raise FileError(f"{path}: no safetensors file: save the model again")
            header = parsed(path, file.read(length))
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror}") from None
    try:
        return _shapes(header, size - 8 - length)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise FileError(f"{path}: its header does not fit its content: take another copy of it") from None


def _shapes(header: dict[str, Any], size: int) -> dict[str, tuple[int, ...]]:
    """See `read_shapes`.

    Raises:
        ValueError, TypeError, KeyError, AttributeError: The header is none, or does not fit.
    """
    header.pop("__metadata__", None)
    spans, shapes = [], {}
    for name, entry in header.items():
        shape, (begin, end) = tuple(entry["shape"]), entry["data_offsets"]
        if not all(type(number) is int and number >= 0 for number in (*shape, begin, end)) or not name.isprintable():
            raise ValueError(name)
        if math.prod(shape) * TYPES[entry["dtype"]] != end - begin:
            raise ValueError(name)
        spans.append((begin, end))
        shapes[name] = shape
    at = 0
    for begin, end in sorted(spans):
        if begin != at:
            raise ValueError("a gap, or two tensors in one place")
        at = end
    if at != size or not shapes:
        raise ValueError("another size")
    return shapes


def link(source: Path, target: Path) -> None:
    """Lets a file be found at another place, by a copy where there are no links."""
    for make in (os.symlink, os.link, shutil.copyfile):  # Windows has links for administrators alone
        try:
            make(source, target)
            return
        except OSError:
            if make is shutil.copyfile:
                raise
