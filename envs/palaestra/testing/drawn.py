"""The numbers that a check draws: lane counts, threads, seeds, horizons, moments, parameters.

Each check has a generator of its own, seeded by the seed of the run, the id and the check's name. So one run looks at
other numbers than the next seed's, and a failure, which names all of them, is repeated by the same seed.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from palaestra.game import Parameter

Option = TypeVar("Option")

SEEDS = (0, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**32 + 1, 2**63 - 1, 2**63)
"""Seeds at which a number of fewer bits or a sign would go wrong."""
LARGEST_SEED = 2**64 - 2**10
"""Room for the lanes of a batch, which count up from its seed."""
WIDE = 1e6
"""A range this many times wider than the default is none to draw from: values then are drawn around the default."""
SHOWN = 12
"""Longest list that a failure prints whole."""


class Draw:
    """Draws numbers and remembers them by name.

    Attributes:
        numbers: What was drawn last under each name, in the order of the first draws.
    """

    def __init__(self, *parts: object) -> None:
        """Seeds the generator by these parts (the seed of the run, the id, the name of the check)."""
        self._random = random.Random("/".join(map(str, parts)))
        self.numbers: dict[str, Any] = {}

    def __str__(self) -> str:
        return ", ".join(f"{name} = {_text(value)}" for name, value in self.numbers.items())

    def integer(self, name: str, low: int, high: int) -> int:
        """An integer in [low, high]."""
        return self._kept(name, self._random.randint(low, high))

    def real(self, name: str, low: float, high: float) -> float:
        """A number in [low, high)."""
        return self._kept(name, low + (high - low) * self._random.random())

    def chance(self, share: float) -> bool:
        """True in this share of the calls; not remembered."""
        return self._random.random() < share

    def choice(self, name: str, options: Sequence[Option]) -> Option:
        """One of the options."""
        return self._kept(name, self._random.choice(options))

    def order(self, count: int) -> np.ndarray:
        """The numbers 0 to count - 1 in a random order, int64; not remembered."""
        return np.array(self._random.sample(range(count), count), np.int64)

    def seed(self, name: str = "seed") -> int:
        """A seed in [0, 2**64): every bit matters in most of them, some are at the edge of fewer bits."""
        kind = self._random.random()
        if kind < 0.25:
            return self._kept(name, self._random.choice(SEEDS))
        return self._kept(name, self._random.randrange(1000 if kind < 0.4 else LARGEST_SEED))

    def seeds(self, name: str, lanes: int) -> np.ndarray:
        """A seed for each lane, uint64 ``[lanes]``, all different; the largest of all is among the possible ones."""
        drawn: list[int] = []
        while len(drawn) < lanes:
            value = 2**64 - 1 if self._random.random() < 0.1 else self.seed(name)
            if value not in drawn:
                drawn.append(value)
        return self._kept(name, np.array(drawn, np.uint64))

    def mask(self, name: str, lanes: int) -> np.ndarray:
        """Some of the lanes, bool ``[lanes]``: at least one."""
        which = np.array([self._random.random() < 0.5 for _ in range(lanes)], np.bool_)
        which[self._random.randrange(lanes)] = True
        return self._kept(name, which)

    def parameter(
        self, name: str, parameter: Parameter, lanes: int | None = None, others: Sequence[Parameter] = ()
    ) -> Any:
        """Values of a parameter within its range, one a lane, or one number without ``lanes``.

        Each is the lowest, the highest, the default or any other; of a wide range of whole numbers often a small one.
        An end of a range (`Parameter.up_to`) of ``others`` leaves the range at least as wide as the defaults.
        """
        if parameter.up_to:
            parameter = replace(parameter, high=parameter.default)
        if any(other.up_to == parameter.name for other in others):
            parameter = replace(parameter, low=parameter.default)
        values = [self._value(parameter) for _ in range(lanes or 1)]
        return self._kept(name, values[0] if lanes is None else np.array(values, np.float64))

    def _value(self, parameter: Parameter) -> float:
        if parameter.values:
            return float(self._random.choice(parameter.values))
        low, high, default = parameter.low, parameter.high, parameter.default
        width = WIDE * max(abs(default), 1.0)
        narrow_low = low if low > -width else default - max(abs(default), 1.0)
        narrow_high = high if high < width else default + max(abs(default), 1.0)
        span = narrow_high - narrow_low
        between = narrow_low + span * self._random.random()
        integral = all(float(v).is_integer() for v in (low, high, default) if abs(v) < width)
        # A count of decisions of up to 1000 shows what it does in a short walk where it is small.
        near = narrow_low + span ** self._random.random() if integral and span > 1.0 else between
        drawn = self._random.choice((narrow_low, narrow_high, default, between, near))
        return float(min(max(round(drawn) if integral else drawn, narrow_low), narrow_high))

    def _kept(self, name: str, value: Any) -> Any:
        self.numbers[name] = value
        return value


def _text(value: Any) -> str:
    if isinstance(value, np.ndarray):
        shown = np.flatnonzero(value) if value.dtype == np.bool_ else value
        more = ", ..." if len(shown) > SHOWN else ""
        kind = "lanes " if value.dtype == np.bool_ else ""
        return f"{kind}[{', '.join(f'{v}' for v in shown[:SHOWN].tolist())}{more}]"
    return f"{value!r}" if isinstance(value, float) else str(value)
