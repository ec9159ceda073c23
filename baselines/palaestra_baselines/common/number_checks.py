"""Numbers that a training can have."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any


def check_numbers(values: Mapping[str, Any], may_be_zero: Iterable[str], shares: Iterable[str]) -> None:
    """Looks at the numbers of a training.

    Args:
        values: Values of all arguments by name: numbers, tuples of numbers, and others, which are left alone.
        may_be_zero: Names of those that may be 0; all others are greater.
        shares: Names of those that lie in [0, 1].

    Raises:
        ValueError: One is not finite, negative, 0 or above 1, or a tuple is empty; names the option and its value.
    """
    for name, value in values.items():
        numbers = value if isinstance(value, tuple) else (value,)
        if not all(isinstance(x, int | float) and not isinstance(x, bool) for x in numbers):
            continue
        option = f"--{name.replace('_', '-')}"
        if name == "options":
            continue
        if not numbers:
            raise ValueError(f"{option} takes at least one number, got none")
        given = " ".join(f"{x}" for x in numbers)
        if name in shares:
            wanted, fits = "between 0 and 1", all(0.0 <= x <= 1.0 for x in numbers)
        elif name in may_be_zero:
            wanted, fits = "not negative", all(0.0 <= x < math.inf for x in numbers)
        else:
            wanted, fits = "greater than 0", all(0.0 < x < math.inf for x in numbers)
        if not fits:
            raise ValueError(f"{option} must be {wanted}, got {given}")
