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
            ValueError: A value out of range, or not one a lane. Nothing has changed.
        """
        which = picked_lanes(lanes, len(self._states))
        count = len(self._states["steps"][which])
        arrays = parameter_values(self._game.parameters, values, self._game.name)
        for name, array in arrays.items():
            if array.shape not in ((), (1,), (count,)):
                raise ValueError(f"{name} must be one value, or one for each of {count} lanes, got shape {array.shape}")
        for name, array in arrays.items():
            for record in self._records[-1:] if name in self._at_start and have_started else self._records:
                self._states[record][name][which] = array

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
