"""A team whose agents read and write text: what a codec reads of a player's arrays, and the actions that it decodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from palaestra.core.contract.fields import values_of
from palaestra.game import AgentView, Choice, Game


class TextTeam:
    """The agents of a team and their codec.

    Attributes:
        codec: Of their text; the game's default one if that is text.
        places: Slot, role, and row among the role's agents in this team, of each agent in the order of an
            `palaestra.core.run.opponents.Opponent`'s columns.
    """

    def __init__(self, game: Game, team: str) -> None:
        """Finds the codec.

        Raises:
            ValueError: No codec of the game has text; says what to give.
        """
        self._game, roles = game, {role.name: role for role in game.roles}
        self._names = list(game.team_roles(team))
        places = [
            (game.agents.index(roles[name].agents[slot]), roles[name], k)
            for name, slots in game.team_roles(team).items()
            for k, slot in enumerate(slots)
        ]
        self.places = sorted(places, key=lambda place: game.teams[team].index(place[0]))
        names = sorted(game.codecs, key=lambda name: name != game.default_codec)
        found = [codec for codec in map(game.codecs.__getitem__, names) if self._is_text(codec)]
        if not found:
            raise ValueError(
                f'{game.name} has no text here, and this player reads and writes nothing else: give form="text" where '
                "it has this keyword, or name another player"
            )
        self.codec: Any = found[0]

    def _is_text(self, codec: Any) -> bool:
        of_roles = ((codec.observation_space(role), codec.action_space(role)) for _, role, _ in self.places)
        return all(isinstance(space, spaces.Text) for pair in of_roles for space in pair)

    def view(self, place: int, lane: int, observations: Any, legal: Any) -> AgentView:
        """What the codec reads of an agent, from the arguments of `palaestra.core.run.opponents.Opponent.act`."""
        game, (slot, role, k) = self._game, self.places[place]
        seen = observations if isinstance(observations, Mapping) else {role.name: observations}
        masks = legal if isinstance(legal, Mapping) else {role.name: legal}
        mask = masks.get(role.name)
        own = [f for f in game.lane_observation if f.world is None]
        return AgentView(
            role=role,
            slot=slot,
            row=_record(seen[role.name][lane, k], game.observation_dtype, role.name),
            team=_shared(game.team_observation, seen.get("team"), lane, game.observation_dtype, "team"),
            lane=_shared(own, seen.get("lane"), lane, game.observation_dtype, "lane"),
            world=game.world,
            mask=None if mask is None else _record(mask[lane, k], game.mask_dtype, role.name),
            record=None,
        )

    def actions(self, decoded: Mapping[tuple[int, int], Any], n: int) -> Any:
        """Actions of the team as a player returns them; zeros for agents that have none.

        Args:
            decoded: What the codec gave, by lane and place.
            n: Number of lanes.
        """
        parts = {name: self._nothing(name, n) for name in self._names}
        for (lane, place), action in decoded.items():
            _, role, k = self.places[place]
            parts[role.name][lane, k] = (
                np.concatenate([np.ravel(action[f.name]) for f in role.action])
                if isinstance(action, Mapping)
                else np.ravel(action)
            )
        return next(iter(parts.values())) if len(parts) == 1 else parts

    def _nothing(self, name: str, n: int) -> np.ndarray:
        """Zeros ``[n, A_role, K]``, all numbers of an agent side by side."""
        roles = [role for _, role, _ in self.places if role.name == name]
        kind = np.int64 if all(isinstance(f, Choice) for f in roles[0].action) else np.float64
        return np.zeros((n, len(roles), sum(f.size for f in roles[0].action)), kind)


def _record(row: Any, dtypes: np.dtype, name: str) -> Any:
    """An agent's numbers as the record that the game declares."""
    return row if row.dtype.names is not None else np.ascontiguousarray(row).view(dtypes[name].base)[0]


def _shared(fields: Sequence[Any], arrays: Any, lane: int, dtypes: np.dtype, name: str) -> Any:
    """Arrays by field as a record; None without any."""
    if not fields or arrays is None:
        return None
    record = np.zeros(1, dtypes[name].base)
    for f in fields:
        values_of(record, f)[0] = arrays[f.name][lane]
    return record[0]
