"""Checkpoints without pickle: a safetensors file whose metadata is the JSON of everything that is no array."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file


def save_checkpoint(path: Path, state: dict[str, Any]) -> None:
    """Writes a checkpoint; the write is atomic.

    Args:
        path: The file, ``.safetensors``.
        state: Dicts and lists, nested to any depth, of arrays, torch tensors, numbers, texts, truth values and None.
            Keys are texts or whole numbers. A tuple comes back as a list.

    Raises:
        TypeError: Something else is in it.
    """
    arrays: dict[str, np.ndarray] = {}
    metadata = {"state": json.dumps(packed(state, arrays))}
    unfinished = path.with_suffix(".part")
    save_file(arrays, unfinished, metadata)
    unfinished.replace(path)


def load_checkpoint(path: Path) -> dict[str, Any]:
    """What `save_checkpoint` wrote."""
    with safe_open(path, "numpy") as file:
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
        return unpacked(json.loads(file.metadata()["state"]), arrays)


def packed(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """A value as JSON can hold it; its arrays go to ``arrays``, by number.

    Raises:
        TypeError: A checkpoint cannot hold it.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, dict):
        return {"dict": [[key, packed(entry, arrays)] for key, entry in value.items()]}
    if isinstance(value, list | tuple):
        return {"list": [packed(entry, arrays) for entry in value]}
    is_tensor = hasattr(value, "detach")
    array = value.detach().cpu().numpy() if is_tensor else value
    if not isinstance(array, np.ndarray) or array.dtype.names or array.dtype.hasobject:
        raise TypeError(f"a checkpoint holds arrays, numbers and texts, not {type(value).__name__}")
    name = str(len(arrays))
    arrays[name] = np.ascontiguousarray(array).reshape(array.shape)
    return {"tensor" if is_tensor else "array": name}


def unpacked(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """The inverse of `packed`."""
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "dict":
        return {key: unpacked(entry, arrays) for key, entry in content}
    if kind == "list":
        return [unpacked(entry, arrays) for entry in content]
    if kind == "tensor":
        import torch

        return torch.from_numpy(arrays[content])
    return arrays[content]
