"""Writes replays as a dishonest person would: any member, any header, with a checksum that fits."""

from __future__ import annotations

import contextlib
import hashlib
import json
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np


def forge(source: Path, target: Path, header: dict[str, Any] | bytes | None = None, **arrays: Any) -> Path:
    """Copies a replay with other entries of its header, or another header, and other arrays (None leaves one away)."""
    with np.load(source) as archive:
        content = {name: archive[name] for name in archive.files if name != "checksum"}
    if isinstance(header, dict):
        header = json.dumps({**json.loads(content["header"].tobytes()), **header}).encode()
    if header is not None:
        content["header"] = np.frombuffer(header, np.uint8)
    content |= {name: np.asarray(array) for name, array in arrays.items() if array is not None}
    for name in [name for name, array in arrays.items() if array is None]:
        del content[name]
    write_sealed(target, content)
    return target


def write_sealed(target: Path | BinaryIO, content: dict[str, np.ndarray]) -> None:
    """Writes the members of a replay with the checksum that they should have; a path keeps its own suffix."""
    sha = hashlib.sha256()
    for name in sorted(content):
        sha.update(f"{name} {content[name].dtype.str} {content[name].shape}".encode())
        sha.update(content[name].tobytes())
    arrays: dict[str, Any] = {**content, "checksum": np.frombuffer(sha.digest(), np.uint8)}
    with target.open("wb") if isinstance(target, Path) else contextlib.nullcontext(target) as file:
        np.savez_compressed(file, **arrays)
