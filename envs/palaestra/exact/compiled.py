"""How the solvers' inner loops are compiled: once a machine, and again when any of their sources has changed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])

SOURCES = ("simplex.py", "sweeps.py")
"""Files of compiled functions. They call each other, and numba watches a function's own file alone."""

_digest = hashlib.sha256(b"".join(Path(__file__).with_name(name).read_bytes() for name in SOURCES)).hexdigest()[:16]


def compiled(function: Function) -> Function:
    """Compiles with the disk cache where one can be written, else without."""
    function.__qualname__ = f"{function.__name__}_{_digest}"  # the cache's key
    try:
        return cast(Function, numba.njit(nogil=True, error_model="numpy", cache=True)(function))
    except RuntimeError as error:
        if "no locator available" not in str(error):
            raise
        return cast(Function, numba.njit(nogil=True, error_model="numpy")(function))
