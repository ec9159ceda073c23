"""Spaces on a page: as Gymnasium prints them, what players receive and return, the place of each field."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from gymnasium import spaces

from palaestra.core.contract.spaces import action_space, box_space, dict_space
from palaestra.game import Choice, Game, ObservationField, Role
from palaestra.players.shapes import PlayerShape, player_shapes

Cells = dict[str, str]


class SpaceRow(NamedTuple):
    """One interface: who, and what it observes and does."""

    who: str
    observation: str
    action: str


def space_rows(game: Game) -> list[SpaceRow]:
    """Spaces by interface, in the representation that the game shows by default.

    Gymnasium's are those of a team, PettingZoo's those of an agent, a player's those of a team in n lanes. Teams and
    agents with the same spaces share a row.
    """
    shown, form = game.shown_as(None)
    rows = [
        *(
            SpaceRow(f'Gymnasium, `control="{team}"`', *_team_spaces(shown, team, form == "flat"))
            for team in game.teams
        ),
        *(
            SpaceRow(f"PettingZoo, {names_of(role.agents)}", *_agent_spaces(shown, role, form == "flat"))
            for role in shown.roles
        ),
        *(SpaceRow(f"player of {team}", *_player_shapes(shown, team)) for team in game.teams),
    ]
    return _shared(rows)


def with_indices(rows: Iterable[Cells], fields: Sequence[ObservationField], begin: int) -> list[Cells]:
    """Rows of a table with the place of each field in the flat vector, which begins with ``begin`` other numbers."""
    places = {}
    for field in fields:
        places[field.name] = f"[{begin}]" if field.size == 1 else f"[{begin}:{begin + field.size}]"
        begin += field.size
    return [{"name": row["name"], "index": places.get(row["name"], ""), **row} for row in rows]


def names_of(members: Sequence[str]) -> str:
    """``red_0``, ``red_1`` in code; of many the first and the last."""
    if len(members) <= 4:
        return ", ".join(f"`{m}`" for m in members)
    return f"`{members[0]}` to `{members[-1]}` ({len(members)})"


# -- parts -------------------------------------------------------------------------------------------------------------


def printed(space: spaces.Space) -> str:
    """A space as Gymnasium prints it; bounds that are arrays are named ``low`` and ``high``."""
    if isinstance(space, spaces.Box):
        low, high = _bound(space.low, "low"), _bound(space.high, "high")
        return f"Box({low}, {high}, {space.shape}, {space.dtype})"
    if isinstance(space, spaces.Dict):
        return f"Dict({', '.join(f'{name!r}: {printed(member)}' for name, member in space.items())})"
    return " ".join(str(space).split())


def _bound(values: np.ndarray, name: str) -> str:
    return str(values.flat[0]) if values.size and (values == values.flat[0]).all() else name


def _code(space: spaces.Space) -> str:
    return f"`{printed(space)}`"


def _roles(game: Game, team: str) -> list[tuple[Role, int]]:
    members = game.team_roles(team)
    return [(role, len(members[role.name])) for role in game.roles if role.name in members]


def _team_spaces(game: Game, team: str, flat: bool) -> tuple[str, str]:
    roles = _roles(game, team)
    if game.default_codec is not None and len(game.teams[team]) == 1:
        return _agent_spaces(game, roles[0][0], flat)
    acts = {role.name: action_space(role.action, count) for role, count in roles}
    choices = [f for role, count in roles for _ in range(count) for f in role.action]
    if len(acts) == 1:
        act: spaces.Space = next(iter(acts.values()))
    elif all(isinstance(f, Choice) for f in choices):
        act = spaces.MultiDiscrete([f.n for f in choices if isinstance(f, Choice) for _ in range(f.size)])
    else:
        act = spaces.Dict(acts)
    return _code(_observation(game, roles, flat)), _code(act)


def _agent_spaces(game: Game, role: Role, flat: bool) -> tuple[str, str]:
    if game.default_codec is not None:
        codec = game.codecs[game.default_codec]
        return _code(codec.observation_space(role)), _code(codec.action_space(role))
    return _code(_observation(game, [(role, 1)], flat)), _code(action_space(role.action))


def _observation(game: Game, roles: Sequence[tuple[Role, int]], flat: bool) -> spaces.Space:
    shared = [*game.team_observation, *game.lane_observation]
    if flat:
        boxes = [box_space([f for _ in range(count) for f in role.observation]) for role, count in roles]
        boxes += [box_space(shared)] if shared else []
        low, high = (np.concatenate([getattr(box, name) for box in boxes]) for name in ("low", "high"))
        return spaces.Box(low, high, dtype=low.dtype.type)
    parts = {role.name: dict_space(role.observation, None if count == 1 else count) for role, count in roles}
    own = dict(next(iter(parts.values())).spaces) if len(parts) == 1 else parts
    return spaces.Dict({**own, **(dict_space(shared).spaces if shared else {})})


def _player_shapes(game: Game, team: str) -> tuple[str, str]:
    shapes = player_shapes(game, team)
    seen = [_shape(row) for row in shapes if row.what == "observation"]
    acts = [_shape(row) for row in shapes if row.what == "action"]
    return "; ".join(seen), "; ".join(acts)


def _shape(row: PlayerShape) -> str:
    also = f" or {', '.join(f'`{shape}`' for shape in row.also)}" if row.also else ""
    return f"{row.part + ': ' if row.part else ''}`{row.shape}`{also} {row.dtype}"


def _shared(rows: Sequence[SpaceRow]) -> list[SpaceRow]:
    """Rows that differ in nothing but who they are of, as one."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for row in rows:
        kind, _, who = row.who.partition(" of ") if row.who.startswith("player") else row.who.partition(", ")
        found.setdefault((kind, row.observation, row.action), []).append(who)
    between = {"player": " of ", "Gymnasium": ", ", "PettingZoo": ", "}
    return [SpaceRow(kind + between[kind] + " or ".join(who), seen, act) for (kind, seen, act), who in found.items()]
