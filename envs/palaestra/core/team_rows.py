"""What one team sees and does in a batch: the rows that a Python opponent is handed, and where its actions go."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from palaestra.core.action_shapes import actions_by_role
from palaestra.core.actions import write_actions
from palaestra.core.fields import values_of

if TYPE_CHECKING:
    from palaestra.core.simulation import Simulation

Lanes = np.ndarray | slice
"""Indices, a bool mask ``[N]`` or a slice."""


def team_rows(sim: Simulation, team: str, what: str, lanes: Lanes) -> Any:
    """Rows of one team in ``observations`` or ``legal``: ``[n, A_team, ...]``.

    A dict by role if the team has several, and for observations also if there are team or lane fields: under
    ``"team"`` and ``"lane"`` dicts by field.
    """
    source = getattr(sim, what)
    if source is None:
        return None
    parts: dict[str, Any] = {}
    for role, slots in sim.game.team_roles(team).items():
        array = source if isinstance(source, np.ndarray) else source[role]
        parts[role] = array[lanes][:, slots]
    if what == "observations":
        parts.update(_shared_rows(sim, team, lanes))
    return next(iter(parts.values())) if len(parts) == 1 else parts


def _shared_rows(sim: Simulation, team: str, lanes: Lanes) -> dict[str, Any]:
    """What a team sees besides its agents' own rows: ``"team"`` and ``"lane"``, dicts of arrays ``[n, ...]``."""
    game, memory = sim.game, sim.buffers.observations
    number = list(game.teams).index(team)
    shared: dict[str, Any] = {}
    if game.team_observation:
        shared["team"] = {f.name: values_of(memory["team"], f)[lanes][:, number] for f in game.team_observation}
    if game.lane_observation:
        own = {f.name: values_of(memory["lane"], f)[lanes] for f in game.lane_observation if f.world is None}
        count = len(np.arange(sim.num_envs)[lanes])
        shared["lane"] = own | {name: array[:count] for name, array in sim.world_observations.items()}
    return shared


def write_team_rows(sim: Simulation, team: str, actions: Any, lanes: Lanes) -> None:
    """Writes the actions of one team.

    Args:
        sim: The simulation.
        team: Name of the team.
        actions: ``[n, A_team]`` (one choice) or ``[n, A_team, K]``, or one of the shapes of
            `palaestra.core.action_shapes.accepted_shapes`; a dict of these by field for composite actions. A dict by
            role where the team has several roles, or, where all of them make choices alone, their choices side by side
            ``[n, sum]``, role after role.
        lanes: Lanes that the n rows are for.

    Raises:
        ActionError: Wrong shape or kind; names the shapes that are accepted. Ranges are checked by `Simulation.step`.
    """
    lanes = lanes if isinstance(lanes, slice) else np.arange(sim.num_envs)[lanes]
    members = sim.game.team_roles(team)
    parts: Mapping[str, Any] | None = None
    for name, slots in members.items():
        role = next(r for r in sim.game.roles if r.name == name)
        target = sim.actions if isinstance(sim.actions, np.ndarray) else sim.actions[name]
        rows = np.empty_like(target[lanes][:, slots])
        if len(members) == 1 and np.shape(actions) == rows.shape:  # the common case
            write_actions(role, rows, actions)
        else:
            parts = parts or actions_by_role(sim.game, team, actions, len(rows))
            write_actions(role, rows, parts[name])
        if isinstance(lanes, slice):
            target[lanes, slots] = rows
        else:
            target[lanes[:, None], slots] = rows
