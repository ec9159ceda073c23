"""Parameters of the rules in the match records: their defaults, changes for some lanes, and read-only views."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from palaestra.core.fields import parameter_values
from palaestra.core.game import Game

if TYPE_CHECKING:
    from palaestra.core.simulation import Simulation


def write_defaults(game: Game, states: Any) -> None:
    """Writes the default of each parameter into all match records."""
    for parameter in game.parameters:
        for record in _records(game):
            states[record][parameter.name] = parameter.start_value


def write_parameters(
    sim: Simulation, lanes: np.ndarray | Sequence[int] | None, values: Mapping[str, float | str | np.ndarray]
) -> None:
    """Changes parameters in all lanes or in ``lanes`` (mask or indices).

    They change at once, but for those that say ``at_start``: these wait for the lane's next match.
    """
    game = sim.game
    at_start = {p.name for p in game.parameters if p.at_start}
    for name, array in parameter_values(game.parameters, values, game.name).items():
        records = _records(game)
        for record in records[-1:] if name in at_start and sim.started else records:
            sim.states[record][name][slice(None) if lanes is None else lanes] = array


def parameter_views(game: Game, states: Any) -> dict[str, np.ndarray]:
    """Read-only views ``[N]`` of the parameters by name."""
    views = {}
    for p in game.parameters:
        view = states["parameters"][p.name][:]
        view.flags.writeable = False
        views[p.name] = view
    return views


def _records(game: Game) -> list[str]:
    """Where parameters are kept: what holds now, and what holds from a lane's next match on."""
    names = game.state_dtype.names or ()
    return [name for name in ("parameters", "next_parameters") if name in names]
