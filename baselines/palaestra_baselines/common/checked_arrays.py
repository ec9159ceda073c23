"""Arrays and texts in a safetensors file with a checksum over all of them: the file of policies and checkpoints."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from palaestra.core.files import FileError, open_regular, printable, write_atomically

LONGEST_REASON = 200
"""Characters of the reader's own error that a message repeats."""
CHECKSUM = "sha256"
"""Entry of the metadata that holds `checksum`; all other entries count for it."""


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> None:
    """Writes a file in one piece; the old one stays until the new one is on the disk.

    Args:
        path: File to write, ``.safetensors``. Its folder is made.
        arrays: Arrays of numbers or truth values by name.
        metadata: Texts by name; the checksum is added.

    Raises:
        OSError: It cannot be written; names ``path``.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    content = arrays_to_bytes(arrays, metadata)
    write_atomically(path, lambda file: file.write(content))


def arrays_to_bytes(arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> bytes:
    """The content of the file that `write_arrays` writes: the same bytes of the same arrays and texts.

    The library writes metadata in an order that changes from call to call; here the header is sorted.
    """
    contiguous = {name: np.ascontiguousarray(array).reshape(array.shape) for name, array in arrays.items()}
    content = save(contiguous, {**metadata, CHECKSUM: checksum(contiguous, metadata)})
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.dumps(json.loads(content[8:end]), sort_keys=True, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)  # arrays are aligned
    return len(header).to_bytes(8, "little") + header + content[end:]


def read_arrays(path: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Arrays and metadata that `write_arrays` wrote; the checksum is left out.

    The header is compared with the size of the file before anything is allocated: arrays are never larger than the
    file.

    Raises:
        FileError: Not such a file, cut, changed, or without a checksum.
        OSError: There is no such file, or it cannot be read.
    """
    open_regular(path).close()  # a pipe would keep safetensors waiting
    try:
        with safe_open(path, "numpy") as file:
            metadata = dict(file.metadata() or {})
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
    except (SafetensorError, ValueError, TypeError, KeyError, AttributeError) as error:  # the last four: other dtypes
        reason = printable(str(error) or type(error).__name__, LONGEST_REASON)
        raise FileError(f"{path}: no safetensors file that can be used ({reason}): take another copy of it") from error
    written = metadata.pop(CHECKSUM, None)
    if written is None:
        raise FileError(
            f"{path}: has no checksum (metadata {CHECKSUM!r}), so an older version or another program wrote it: "
            "train again, or, if you trust the file, add one by palaestra_baselines.common.policy_file.reseal(path)"
        )
    if written != checksum(arrays, metadata):
        raise FileError(f"{path}: its checksum is wrong, the file is damaged or was changed: take another copy of it")
    return arrays, metadata


def checksum(arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> str:
    """SHA-256 over metadata and over name, dtype, shape and bytes of each array, whatever their order."""
    shapes = {name: [array.dtype.str, list(array.shape)] for name, array in arrays.items()}
    digest = hashlib.sha256(json.dumps([dict(metadata), shapes], sort_keys=True).encode())
    for name in sorted(arrays):
        digest.update(np.ascontiguousarray(arrays[name]).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
