"""What a Python player of a team is shown and what it returns, as a table computed from the game."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from palaestra.core.contract.action_shapes import accepted_shapes, action_shape, shape_text
from palaestra.core.contract.fields import is_homogeneous
from palaestra.game import Choice, Game, Role


@dataclass(frozen=True)
class PlayerShape:
    """One array that a player is shown or returns; n is the number of lanes.

    Attributes:
        what: ``"observation"``, ``"mask"`` or ``"action"``.
        part: Keys that lead to the array (``"guard, node"``: ``observations["guard"]["node"]``); empty where there is
            one array.
        shape: ``"[n, 2, 18]"``.
        dtype: NumPy's name.
        also: Other shapes of an action that mean the same.
    """

    what: str
    part: str
    shape: str
    dtype: str
    also: tuple[str, ...] = ()


def player_shapes(game: Game, team: str) -> list[PlayerShape]:
    """The arrays that a callable or an `Opponent` is shown and returns as a team: observations, masks, actions.

    Args:
        game: The rules, in the representation that is played (`Game.shown_as`).
        team: Name of the team.

    Raises:
        ValueError: The game has no such team.
    """
    if team not in game.teams:
        raise ValueError(f"{game.name} has no team {team!r}: choose from {', '.join(game.teams)}")
    members = {name: len(indices) for name, indices in game.team_roles(team).items()}
    roles = [(next(r for r in game.roles if r.name == name), count) for name, count in members.items()]
    shared = [*_shared(game)]
    alone = len(roles) == 1
    rows = [
        row for role, count in roles for row in _observations(role, count, "" if alone and not shared else role.name)
    ]
    rows += shared
    if game.legal is not None:
        rows += [row for role, count in roles for row in _masks(role, count, "" if alone else role.name)]
    rows += [row for role, count in roles for row in _actions(role, count, "" if alone else role.name)]
    if not alone and all(isinstance(f, Choice) for role, _ in roles for f in role.action):
        total = sum(count * sum(f.size for f in role.action) for role, count in roles)
        rows.append(PlayerShape("action", "or all roles side by side", shape_text((total,)), "int64"))
    return rows


def _join(*keys: str) -> str:
    return ", ".join(key for key in keys if key)


def _observations(role: Role, count: int, part: str) -> Iterator[PlayerShape]:
    if is_homogeneous(role.observation):
        size = sum(f.size for f in role.observation)
        dtype = np.dtype(role.observation[0].dtype).name
        yield PlayerShape("observation", part, shape_text((count, size)), dtype)
        return
    for f in role.observation:
        yield PlayerShape("observation", _join(part, f.name), shape_text((count, *f.shape)), np.dtype(f.dtype).name)


def _shared(game: Game) -> Iterator[PlayerShape]:
    for key, fields in (("team", game.team_observation), ("lane", game.lane_observation)):
        for f in fields:
            yield PlayerShape("observation", _join(key, f.name), shape_text(f.shape), np.dtype(f.dtype).name)


def _masks(role: Role, count: int, part: str) -> Iterator[PlayerShape]:
    choices = [f for f in role.action if isinstance(f, Choice)]
    if choices and all(f.candidates is None for f in choices):
        yield PlayerShape("mask", part, shape_text((count, sum(f.size * f.n for f in choices))), "int8")
        return
    for f in choices:
        if f.candidates is None:
            yield PlayerShape("mask", _join(part, f.name), shape_text((count, *f.shape, f.n)), "int8")
            continue
        yield PlayerShape("mask", _join(part, f.name, "count"), shape_text((count, *f.shape)), "int32")
        yield PlayerShape("mask", _join(part, f.name, "ids"), shape_text((count, *f.shape, f.candidates)), "int32")


def _actions(role: Role, count: int, part: str) -> Iterator[PlayerShape]:
    shape = action_shape(role, count)
    if shape is None:
        for f in role.action:
            kind = "int64" if isinstance(f, Choice) else "float64"
            yield _action(_join(part, f.name), (count, *f.shape), kind)
        return
    yield _action(part, shape, "int64" if isinstance(role.action[0], Choice) else "float64")


def _action(part: str, shape: tuple[int, ...], dtype: str) -> PlayerShape:
    first, *others = map(shape_text, accepted_shapes(shape))
    return PlayerShape("action", part, first, dtype, tuple(others))
