"""How the solvers' inner loops are compiled: once a machine, and again when any of their sources has changed."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

from palaestra.core.compile import compiler
from palaestra.core.compile.linker import jit_disabled
from palaestra.game import Importing

with Importing("numba"):
    import numba

    from palaestra.core.compile import numba_cache

Function = TypeVar("Function", bound=Callable[..., Any])

SOURCES = ("compiled.py", "simplex.py", "sweeps.py")
"""This file and those of compiled functions. They call each other, and numba watches a function's own file alone."""

_digest = hashlib.sha256(b"".join(Path(__file__).with_name(name).read_bytes() for name in SOURCES)).hexdigest()[:16]


def compiled(function: Function) -> Function:
    """Compiles a function that Python calls."""
    return _compiled(function, {"nogil": True, "error_model": "numpy"})


def inner(function: Function) -> Function:
    """Compiles a function that only compiled code calls and that makes no arrays: this halves the compiler's work."""
    return _compiled(function, compiler.options(inside=True))


def _compiled(function: Function, options: dict[str, Any]) -> Function:
    """Compiles with the disk cache where one can be written, else without."""
    function.__qualname__ = f"{function.__name__}_{_digest}"  # the cache's key
    dispatcher = compiler.compile_whole(numba.njit(**options)(function))
    if not jit_disabled():
        with contextlib.suppress(RuntimeError):  # no folder: each process compiles
            numba_cache.keep(dispatcher)
    return cast(Function, dispatcher)
