"""Parameters of the rules in the match records: their defaults, changes for some lanes, and read-only views."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from palaestra.core.fields import parameter_values
from palaestra.core.game import Game
from palaestra.core.keywords import nearest, picked_lanes

if TYPE_CHECKING:
    from palaestra.core.simulation import Simulation


def write_defaults(game: Game, states: Any) -> None:
    """Writes the default of each parameter into all match records."""
    for parameter in game.parameters:
        for record in _records(game):
            states[record][parameter.name] = parameter.default


def write_parameters(
    sim: Simulation, lanes: np.ndarray | Sequence[int] | None, values: Mapping[str, float | str | np.ndarray]
) -> None:
    """Changes parameters in all lanes or in ``lanes`` (mask or indices).

    They change at once, but for those that say ``at_start``: these wait for the lane's next match.

    Raises:
        TypeError: An unknown parameter; suggests the near name.
        ValueError: A value out of range, or not one a lane. Nothing has changed.
    """
    game = sim.game
    which = picked_lanes(lanes, sim.num_envs)
    count = len(sim.states["steps"][which])
    at_start = {p.name for p in game.parameters if p.at_start}
    arrays = parameter_values(game.parameters, values, game.name)
    for name, array in arrays.items():
        if array.shape not in ((), (1,), (count,)):
            raise ValueError(f"{name} must be one value, or one for each of {count} lanes, got shape {array.shape}")
    for name, array in arrays.items():
        records = _records(game)
        for record in records[-1:] if name in at_start and sim.started else records:
            sim.states[record][name][which] = array


def parameter_views(game: Game, states: Any) -> dict[str, np.ndarray]:
    """Read-only views ``[N]`` of the parameters by name."""
    views = {}
    for p in game.parameters:
        view = states["parameters"][p.name][:]
        view.flags.writeable = False
        views[p.name] = view
    return views


def no_parameter(sim: Simulation, name: str) -> str:
    """What to say of a name that is no parameter of the rules."""
    known = [p.name for p in sim.game.parameters]
    near = nearest(name, known)
    hint = f"there are: {', '.join(known)}" if near is None else f"did you mean {near!r}?"
    return f"{sim.game.name} has no parameter {name!r}; {hint}"


def _records(game: Game) -> list[str]:
    """Where parameters are kept: what holds now, and what holds from a lane's next match on."""
    names = game.state_dtype.names or ()
    return [name for name in ("parameters", "next_parameters") if name in names]
