"""Shapes in which a Python player may give the actions of its team."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from palaestra.core.contract.actions import ActionError, parts_by_role
from palaestra.core.contract.fields import Choice
from palaestra.core.contract.game_parts import Role
from palaestra.core.contract.rules import Game

Shape = tuple[int, ...]


def accepted_shapes(shape: Shape) -> list[Shape]:
    """The shapes of one lane's actions that mean the same as ``shape`` (``(A,)`` or ``(A, K, ...)``), itself first.

    Besides ``shape`` itself: all numbers in one row, agent after agent (``(A * K,)``), as the joint action of a
    Gymnasium space is; without the axis of agents where there is one agent; with an axis of one choice.
    """
    same = [shape, (prod(shape),)]
    if shape[0] == 1:
        same.append(shape[1:])
    if len(shape) == 1:
        same.append((*shape, 1))
    return list(dict.fromkeys(same))


def shape_text(shape: Shape) -> str:
    """``"[n, 2, 3]"`` of the shape ``(2, 3)`` of one lane."""
    return f"[{', '.join(['n', *map(str, shape)])}]"


def as_team_actions(given: Any, shape: Shape, name: str) -> np.ndarray:
    """Actions in the shape that the simulation holds them in.

    Args:
        given: An array in one of the `accepted_shapes`, after the axis of lanes.
        shape: ``(n, A)`` or ``(n, A, K, ...)``.
        name: Of the action, for errors.

    Raises:
        ActionError: Another shape; names those that are accepted.
    """
    array = np.asarray(given)
    if array.shape == shape:
        return array
    accepted = accepted_shapes(shape[1:])
    if array.shape[:1] != shape[:1] or array.shape[1:] not in accepted:
        shapes = " or ".join(map(shape_text, accepted))
        raise ActionError(f"{name} must have the shape {shapes} with n = {shape[0]}, got {array.shape}")
    return array.reshape(shape)


def action_shape(role: Role, agents: int) -> Shape | None:
    """Shape of one lane's actions of some agents of a role; None for composite actions, which have one a field."""
    choices = [isinstance(f, Choice) for f in role.action]
    if any(choices) and not all(choices):
        return None
    width = sum(f.size for f in role.action)
    return (agents,) if width == 1 and all(choices) else (agents, width)


def actions_by_role(game: Game, team: str, actions: Any, n: int) -> Mapping[str, Any]:
    """A team's actions by role, in the shapes that the simulation holds them in.

    Args:
        game: The rules.
        team: Name of the team.
        actions: See `palaestra.core.run.arrays.Arrays.write_team_actions`.
        n: Number of lanes.

    Raises:
        ActionError: Another shape, or other roles; names what is accepted.
    """
    members = {name: len(indices) for name, indices in game.team_roles(team).items()}
    roles = {role.name: role for role in game.roles if role.name in members}
    parts = dict.fromkeys(members, actions) if len(members) == 1 else _split(roles, members, actions)
    return {name: _in_shape(roles[name], (n, members[name]), parts[name]) for name in members}


def _in_shape(role: Role, agents: Shape, given: Any) -> Any:
    """A role's actions in shape; what is no mapping where there are fields is left to the checks of the simulation."""
    shape = action_shape(role, agents[1])
    if shape is not None:
        return as_team_actions(given, (agents[0], *shape), f"action of {role.name}")
    if not isinstance(given, Mapping):
        return given
    shapes = {f.name: (*agents, *f.shape) for f in role.action}
    fit = lambda name, part: as_team_actions(part, shapes[name], f"{name} of {role.name}")  # noqa: E731
    return {name: fit(name, part) if name in shapes else part for name, part in given.items()}


def _split(roles: Mapping[str, Role], members: Mapping[str, int], actions: Any) -> Mapping[str, Any]:
    """The actions of a team of several roles by role.

    Raises:
        ActionError: Neither a dict with these roles, nor one row of all choices where there are choices alone.
    """
    if isinstance(actions, Mapping) or not all(isinstance(f, Choice) for role in roles.values() for f in role.action):
        return parts_by_role(actions, list(members))
    widths = [count * sum(f.size for f in roles[name].action) for name, count in members.items()]
    array = np.asarray(actions)
    if array.ndim != 2 or array.shape[1] != sum(widths):
        raise ActionError(
            f"actions must be a dict with the roles {', '.join(members)}, or [n, {sum(widths)}] with the choices of "
            f"all agents side by side, got shape {array.shape}"
        )
    return dict(zip(members, np.split(array, np.cumsum(widths)[:-1], axis=1), strict=True))
