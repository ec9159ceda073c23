"""NumPy's values as plain ones: what ``json.dumps`` and message protocols take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


def jsonable(value: Any) -> Any:
    """A copy of an info, an observation or any part of them in plain Python values.

    Arrays and tuples become lists, records dicts, NumPy's numbers Python's, names of dicts texts. Numbers that are not
    finite stay as they are.

    Raises:
        TypeError: A value of another kind; names its type.
    """
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, np.generic | np.ndarray):
        rows: Any = value
        if value.dtype.names is not None:
            if value.shape:
                return [jsonable(row) for row in rows]
            return {name: jsonable(rows[name]) for name in value.dtype.names}
        plain = value.tolist()
        return plain if value.dtype.kind in "biufU" else jsonable(plain) if value.dtype.kind == "O" else _refused(value)
    if isinstance(value, Mapping):
        return {str(name): jsonable(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(part) for part in value]
    for kind in (bool, int, float, str):  # enumerations and other kinds of these
        if isinstance(value, kind):
            return kind(value)
    return _refused(value)


def _refused(value: Any) -> Any:
    raise TypeError(f"a {type(value).__name__} has no plain form: jsonable takes numbers, texts, arrays, lists, dicts")
