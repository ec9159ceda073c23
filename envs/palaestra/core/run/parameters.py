"""Parameters of the rules in the match records: their defaults, changes for some lanes, and read-only views."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from palaestra.core.contract.fields import parameter_values
from palaestra.core.contract.keywords import nearest, picked_lanes
from palaestra.core.contract.rules import Game


class ParameterRecords:
    """The parameters of N matches: what holds now, and what holds from a lane's next match on."""

    def __init__(self, game: Game, states: Any) -> None:
        """The parameters in ``states``, match records ``[N]``."""
        self._game, self._states = game, states
        self._at_start = {p.name for p in game.parameters if p.at_start}
        self._records = [name for name in ("parameters", "next_parameters") if name in states.dtype.names]

    def write_defaults(self) -> None:
        """Writes the default of each parameter into all match records."""
        for parameter in self._game.parameters:
            for record in self._records:
                self._states[record][parameter.name] = parameter.default

    def write(
        self,
        lanes: np.ndarray | Sequence[int] | None,
        values: Mapping[str, float | str | np.ndarray],
        have_started: bool,
    ) -> None:
        """Changes parameters in all lanes or in ``lanes`` (mask or indices).

        They change at once, but for those that say ``at_start`` in matches that have started: these wait for the lane's
        next match.

        Raises:
            TypeError: An unknown parameter; suggests the near name.
            ValueError: A value out of range, the ends of a range exchanged, or not one a lane. Nothing has changed.
        """
        which = picked_lanes(lanes, len(self._states))
        count = len(self._states["steps"][which])
        arrays = parameter_values(self._game.parameters, values, self._game.name)
        for name, array in arrays.items():
            if array.shape not in ((), (1,), (count,)):
                raise ValueError(f"{name} must be one value, or one for each of {count} lanes, got shape {array.shape}")
        self._check_ranges(arrays, which)
        for name, array in arrays.items():
            for record in self._records[-1:] if name in self._at_start and have_started else self._records:
                self._states[record][name][which] = array

    def _check_ranges(self, arrays: Mapping[str, np.ndarray], which: slice | np.ndarray) -> None:
        """Raises ValueError where a range would end below its beginning."""
        for p in self._game.parameters:
            if p.up_to and (p.name in arrays or p.up_to in arrays):
                held = self._states[self._records[-1]]
                low, high = (arrays.get(name, held[name][which]) for name in (p.name, p.up_to))
                if (low > high).any():
                    lane = np.flatnonzero(np.broadcast_to(low > high, np.shape(held[p.name][which])))[0]
                    low, high = (np.broadcast_to(end, np.shape(held[p.name][which]))[lane] for end in (low, high))
                    raise ValueError(
                        f"{p.name} must not exceed {p.up_to}, got {low:g} and {high:g}: give both ends in one call"
                    )

    def views(self) -> dict[str, np.ndarray]:
        """Read-only views ``[N]`` of the parameters by name."""
        views = {}
        for p in self._game.parameters:
            view = self._states["parameters"][p.name][:]
            view.flags.writeable = False
            views[p.name] = view
        return views


def no_parameter(game: Game, name: str) -> str:
    """The error for a name that is no parameter of the rules."""
    known = [p.name for p in game.parameters]
    near = nearest(name, known)
    hint = f"there are: {', '.join(known)}" if near is None else f"did you mean {near!r}?"
    return f"{game.name} has no parameter {name!r}; {hint}"
