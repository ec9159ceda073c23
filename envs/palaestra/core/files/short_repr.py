"""One line for records that hold large arrays."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

FEW = 8
"""Numbers of an array, or members of a list, that are shown; of longer ones the shape or length."""
LONGEST_TEXT = 60


def short_repr(record: Any) -> str:
    """The class of a dataclass and its fields; of large arrays dtype and shape, of long lists the length."""
    shown = [f"{f.name}={_shown(getattr(record, f.name))}" for f in dataclasses.fields(record)]
    return f"{type(record).__name__}({', '.join(shown)})"


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.size > FEW:
        return f"{value.dtype}{list(value.shape)}"
    if isinstance(value, np.ndarray):
        return np.array2string(value, precision=6, separator=", ").replace("\n", "")
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list | tuple) and len(value) > FEW:
        return f"<{len(value)} {type(value).__name__} members>"
    if isinstance(value, tuple):
        return f"({', '.join(map(_shown, value))})"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key!r}: {_shown(member)}" for key, member in value.items()) + "}"
    text = repr(value)
    return text if dataclasses.is_dataclass(value) or len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}..."
