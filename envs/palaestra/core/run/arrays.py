"""The arrays of N matches by the names that users know: views of `palaestra.core.run.buffers.Buffers`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from palaestra.core.contract.action_shapes import actions_by_role
from palaestra.core.contract.actions import ActionTable, parts_by_role, write_actions
from palaestra.core.contract.fields import Field, values_of
from palaestra.core.contract.game_parts import Role
from palaestra.core.contract.keywords import check_word, picked_lanes
from palaestra.core.contract.rules import Game
from palaestra.core.run.buffers import Buffers, info_views, mask_rows, observation_rows

ByRole = Any
"""An array where the game has one role, else a dict of arrays by role."""
Lanes = np.ndarray | slice
"""Indices, a bool mask ``[N]`` or a slice."""


def summed(rewards: np.ndarray) -> np.ndarray:
    """Sums of rewards of members ``[N, k]``, in the order of slots: they do not depend on the number of lanes."""
    return rewards.cumsum(axis=1, dtype=rewards.dtype)[:, -1]


class Arrays:
    """The arrays of a simulation; their attributes are described in `palaestra.core.run.simulation.Simulation`."""

    def __init__(self, game: Game, num_envs: int, buffers: Buffers, action_table: ActionTable) -> None:
        """Names the parts of the buffers that users see."""
        self.game, self.num_envs, self.buffers, self.action_table = game, num_envs, buffers, action_table
        b, agents = buffers, slice(len(game.agents))
        self.states = b.states
        self.written_turns: dict[tuple[int, int], str] = {}  # by lane and slot, while there is a recorder
        self.observations = self._per_role(lambda r: observation_rows(b.observations, r))
        names = b.observations.dtype.names
        self.team_observations: np.ndarray | None = b.observations["team"] if "team" in names else None
        self.lane_observations: np.ndarray | None = b.observations["lane"] if "lane" in names else None
        self.actions = self._per_role(lambda r: action_table.rows(b.action_words, r))
        self.rewards, self.agent_terminated = b.rewards[:, agents], b.agent_terminated[:, agents]
        self.terminated, self.truncated = b.terminated, b.truncated
        self.alive = self.states["alive"].view("?")[:, agents]
        self.acting = self.states["acting"].view("?")[:, agents]
        self.final_observations = self._per_role(lambda r: observation_rows(b.final_observations, r))
        has_legal = game.legal is not None
        self.legal: ByRole | None = self._per_role(lambda r: mask_rows(b.masks, r)) if has_legal else None
        self.final_legal: ByRole | None = self._per_role(lambda r: mask_rows(b.final_masks, r)) if has_legal else None
        self.info = info_views(self.states["info"], game)
        self.final_info = info_views(b.final_info, game)
        self.world_observations = {
            f.name: np.broadcast_to(getattr(game.world, f.world), (num_envs, *f.shape))
            for f in game.lane_observation
            if isinstance(f, Field) and f.world is not None
        }

    def _per_role(self, view: Callable[[Role], np.ndarray]) -> ByRole:
        roles = self.game.roles
        return view(roles[0]) if len(roles) == 1 else {r.name: view(r) for r in roles}

    def write_actions(self, actions: Any) -> None:
        """Writes the actions of all agents: an array like `actions`, or a dict by role.

        Raises:
            ActionError: Wrong shape or kind. Ranges are checked by `Simulation.step`.
        """
        if isinstance(self.actions, np.ndarray):
            write_actions(self.game.roles[0], self.actions, actions)
            return
        parts = parts_by_role(actions, list(self.actions))
        for role in self.game.roles:
            write_actions(role, self.actions[role.name], parts[role.name])

    def team_view(self, team: str, what: str, lanes: Lanes = slice(None)) -> Any:
        """Rows of one team in ``observations`` or ``legal``: ``[n, A_team, ...]``.

        A dict by role if the team has several, and for observations also if there are team or lane fields: under
        ``"team"`` and ``"lane"`` dicts by field.
        """
        source = getattr(self, what)
        if source is None:
            return None
        parts: dict[str, Any] = {}
        for role, slots in self.game.team_roles(team).items():
            array = source if isinstance(source, np.ndarray) else source[role]
            parts[role] = array[lanes][:, slots]
        if what == "observations":
            parts.update(self._shared_rows(team, lanes))
        return next(iter(parts.values())) if len(parts) == 1 else parts

    def _shared_rows(self, team: str, lanes: Lanes) -> dict[str, Any]:
        """What a team sees besides its agents' own rows: ``"team"`` and ``"lane"``, dicts of arrays ``[n, ...]``."""
        game, memory = self.game, self.buffers.observations
        number = list(game.teams).index(team)
        shared: dict[str, Any] = {}
        if game.team_observation:
            shared["team"] = {f.name: values_of(memory["team"], f)[lanes][:, number] for f in game.team_observation}
        if game.lane_observation:
            own = {f.name: values_of(memory["lane"], f)[lanes] for f in game.lane_observation if f.world is None}
            count = len(np.arange(self.num_envs)[lanes])
            shared["lane"] = own | {name: array[:count] for name, array in self.world_observations.items()}
        return shared

    def write_team_actions(
        self, team: str, actions: Any, lanes: Lanes = slice(None), agents: np.ndarray | None = None
    ) -> None:
        """Writes the actions of one team, or of some of its agents.

        Args:
            team: Name of the team.
            actions: ``[n, A_team]`` (one choice) or ``[n, A_team, K]``, or one of the shapes of
                `palaestra.core.contract.action_shapes.accepted_shapes`; a dict of these by field for composite actions.
                A dict by role where the team has several roles, or, where all of them make choices alone, their choices
                side by side ``[n, sum]``, role after role.
            lanes: Lanes that the n rows are for.
            agents: bool ``[n, A_team]``: whose actions are written; all if None.

        Raises:
            ActionError: Wrong shape or kind; names the shapes that are accepted. Ranges are checked by
                `Simulation.step`.
        """
        lanes = lanes if isinstance(lanes, slice) else np.arange(self.num_envs)[lanes]
        members = self.game.team_roles(team)
        parts: Mapping[str, Any] | None = None
        first = 0  # of a role's members in the team
        for name, slots in members.items():
            role = next(r for r in self.game.roles if r.name == name)
            target = self.actions if isinstance(self.actions, np.ndarray) else self.actions[name]
            rows = np.empty_like(target[lanes][:, slots])
            if len(members) == 1 and np.shape(actions) == rows.shape:  # the common case
                write_actions(role, rows, actions)
            else:
                parts = parts or actions_by_role(self.game, team, actions, len(rows))
                write_actions(role, rows, parts[name])
            if agents is not None:
                row, member = np.nonzero(agents[:, first : first + len(slots)])
                target[np.arange(self.num_envs)[lanes][row], np.array(slots)[member]] = rows[row, member]
            elif isinstance(lanes, slice):
                target[lanes, slots] = rows
            else:
                target[lanes[:, None], slots] = rows
            first += len(slots)

    def note_turns(self, slot: int, actions: Sequence[Any], which: np.ndarray | None = None) -> None:
        """Keeps texts that an agent has written in the lanes ``which`` (all if None), for a recorder."""
        if getattr(self, "recorder", None) is None:
            return
        for lane in range(self.num_envs) if which is None else np.flatnonzero(which).tolist():
            if isinstance(actions[lane], str):
                self.written_turns[lane, slot] = actions[lane]

    def team_rewards(self, team: str) -> np.ndarray:
        """Reward of a team ``[N]``: the common value of its members, or the sum where each has its own."""
        check_word("team", team, tuple(self.game.teams))
        slots = self.game.teams[team]
        return summed(self.rewards[:, slots]) if self.game.reward == "agent" else self.rewards[:, slots[0]]

    def _which(self, mask: np.ndarray | None) -> np.ndarray:
        """The lanes of a mask, bool ``[N]``; all without one.

        Raises:
            ValueError: The mask is not bool ``[N]``.
        """
        if mask is None:
            return np.ones(self.num_envs, np.bool_)
        which = np.ascontiguousarray(mask)
        if which.dtype != np.bool_ or which.shape != (self.num_envs,):
            raise ValueError(f"mask must be bool of shape ({self.num_envs},), got {which.dtype} {which.shape}")
        return which

    def _picked(self, lanes: np.ndarray | Sequence[int] | None) -> np.ndarray:
        """The lanes of a mask or of indices, bool ``[N]``; all if None."""
        which = np.zeros(self.num_envs, np.bool_)
        which[picked_lanes(lanes, self.num_envs)] = True
        return which
