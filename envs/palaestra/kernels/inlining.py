"""A mark for functions that are compiled into their callers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Function = TypeVar("Function", bound=Callable)


def inlined(function: Function) -> Function:
    """Marks a kernel function that is compiled into its callers instead of being called; no result changes.

    A call hands over each array of a world as 7 to 11 numbers, which takes longer than many a function runs. The mark
    is for functions that run often and are called from one or two places: each of these holds a copy.
    """
    vars(function)["targetoptions"] = {"forceinline": True}  # as numba's own functions name it
    return function
