"""One line for records that hold large arrays, and what a notebook shows of them."""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Mapping
from typing import Any

import numpy as np

FEW = 8
"""Numbers of an array, or members of a list, that are shown; of longer ones the shape or length."""
LONGEST_TEXT = 60
NOISE = 1e-12
"""Smaller numbers are shown as 0: what is left of a sum that is 0."""
BOUNDS = ("error", "gap")
"""Ends of names of numbers that are small by nature, and are shown as they are."""


def short_repr(record: Any) -> str:
    """The class of a dataclass and its fields; of large arrays dtype and shape, of long lists the length."""
    shown = [f"{name}={value}" for name, value in _fields(record)]
    return f"{type(record).__name__}({', '.join(shown)})"


def fields_html(record: Any) -> str:
    """The same for a notebook, a line a field."""
    fields = _fields(record)
    width = max(len(name) for name, _ in fields)
    return text_html("\n".join([type(record).__name__, *(f"  {name:<{width}}  {value}" for name, value in fields)]))


def text_html(text: str) -> str:
    """A text as a notebook shows it."""
    return f"<pre>{html.escape(text)}</pre>"


def _fields(record: Any) -> list[tuple[str, str]]:
    """Names and values. Numbers without digits are 0, but for bounds of errors, which keep theirs."""
    values = ((f.name, getattr(record, f.name)) for f in dataclasses.fields(record))
    return [(name, _shown(value if name.endswith(BOUNDS) else _rounded(value))) for name, value in values]


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return value if abs(value) >= NOISE else 0.0
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return np.where(np.abs(value) < NOISE, 0.0, value)
    return value


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
