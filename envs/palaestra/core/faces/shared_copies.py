"""Observations and masks of the many agents of a single match: one copy a field for all agents of a role."""

from __future__ import annotations

import functools
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from palaestra.core.contract.fields import values_of
from palaestra.core.faces.agent_io import AgentIO
from palaestra.core.faces.blocks import Block, Form, in_box, of_role
from palaestra.core.faces.masks import Masks, OpenMasks
from palaestra.core.run.buffers import observation_rows

MANY: dict[Form, int] = {"flat": 16, "dict": 8}
"""Agents of a role from which on one copy for all of them is faster than a copy each."""
Rows = np.ndarray | slice
"""Some agents by their numbers within their role, or `ALL`."""
ALL = slice(None)


class SharedCopies:
    """What agents see and may choose, as the `AgentIO` of each says it; those of a large role get it together."""

    def __init__(self, agent_ios: Mapping[str, AgentIO]) -> None:
        """Finds the large roles.

        Args:
            agent_ios: One of each agent, in the same form, of a simulation of one lane.
        """
        self._agent_ios = agent_ios
        self._places = {a: (b.role.name, b.rows.start) for a, agent_io in agent_ios.items() for b in agent_io.blocks}
        counts = Counter(name for name, _ in self._places.values())
        one = next(iter(agent_ios.values()))
        self._many = MANY[one.form] if one.codec is None else sys.maxsize
        firsts = {name: a for a, (name, _) in reversed(self._places.items()) if counts[name] >= self._many}
        self._roles = {name: RoleRows(agent_ios[agent]) for name, agent in firsts.items()}
        self._least = self._many if self._roles else sys.maxsize
        self._grouped: list[str] = []
        self._groups: list[tuple[RoleRows | None, list[str], Rows]] = []

    def observe(self, agents: list[str]) -> dict[str, Any]:
        """Observations by agent: arrays of their own, see `RoleRows`."""
        if len(agents) < self._least:
            return {a: self._agent_ios[a].observe_one() for a in agents}
        return self._gather(agents, RoleRows.observe, AgentIO.observe_one)

    def masks(self, agents: list[str]) -> dict[str, dict[str, Any]]:
        """Masks by agent, see `AgentIO.masks_of`."""
        if len(agents) < self._least:
            return {a: self._agent_ios[a].masks_of() for a in agents}
        return self._gather(agents, RoleRows.masks, AgentIO.masks_of)

    def _gather(
        self, agents: list[str], together: Callable[[RoleRows, Rows], list[Any]], alone: Callable[[AgentIO], Any]
    ) -> dict[str, Any]:
        if agents != self._grouped:
            self._group(agents)
        found: dict[str, Any] = {}
        for role_rows, members, rows in self._groups:
            if role_rows is None:
                found.update((a, alone(self._agent_ios[a])) for a in members)
            else:
                found.update(zip(members, together(role_rows, rows), strict=True))
        return found if self._in_order else {a: found[a] for a in agents}

    def _group(self, agents: list[str]) -> None:
        """Sorts agents by role."""
        by_role: dict[str, tuple[list[str], list[int]]] = {}
        for agent in agents:
            name, number = self._places[agent]
            members, numbers = by_role.setdefault(name, ([], []))
            members.append(agent)
            numbers.append(number)
        self._grouped, self._groups = list(agents), []
        for name, (members, numbers) in by_role.items():
            role_rows = self._roles.get(name) if len(members) >= self._many else None
            is_whole = role_rows is not None and numbers == list(range(len(role_rows)))
            self._groups.append((role_rows, members, ALL if is_whole else np.array(numbers)))
        self._in_order = [a for _, members, _ in self._groups for a in members] == agents


class RoleRows:
    """Observations and masks of the agents of one role.

    The agents take the place of the lanes: a field is copied once a step for all, and each agent gets its row. Rows may
    be written to: no two overlap, and no later step changes them. Whoever keeps one keeps all agents' rows of that
    field and step in memory.
    """

    def __init__(self, agent_io: AgentIO) -> None:
        """Finds views of the only lane.

        Args:
            agent_io: That of one agent of the role, without a codec. The others have the same form.
        """
        block = agent_io.blocks[0]
        self._io, self._role = agent_io, block.role
        first_slot = agent_io.slots[0] - block.rows.start
        self._slots = np.arange(first_slot, first_slot + len(block.role.agents))
        self._open: OpenMasks | None = None
        self._parts = list(self._find_parts())

    @functools.cached_property
    def _masks(self) -> Masks:
        """Masks with the agents in place of the lanes, made when they are first asked for."""
        sim = self._io.sim
        if sim.legal is None:
            self._open = OpenMasks(sim)
        legal = sim.legal if self._open is None else self._open.legal
        return Masks(of_role(legal, self._role)[0][:, None], [Block(sim, self._role, [0])])

    def _find_parts(self) -> Iterator[tuple[str, np.ndarray, np.ndarray | None]]:
        """Names of the fields, views of their values, and which of these each agent sees: its own where None."""
        game, memory, role = self._io.sim.game, self._io.sim.buffers.observations, self._role
        if self._io.form == "flat":
            yield "", observation_rows(memory, role)[0], None
        else:
            for f in role.observation:
                yield f.name, in_box(values_of(memory[role.name][0], f)), None
        for f in game.team_observation:
            yield f.name, in_box(values_of(memory["team"][0], f)), game.team_index[self._slots]
        for f in game.lane_observation:
            source = self._io.sim.world_observations.get(f.name)
            values = in_box(values_of(memory["lane"], f) if source is None else source)
            yield f.name, values[:1], np.zeros(len(self._slots), np.int64)

    def __len__(self) -> int:
        """Agents of the role."""
        return len(self._slots)

    def observe(self, rows: Rows = ALL) -> list[Any]:
        """Observations of some agents."""
        seen = self._flat(rows) if self._io.form == "flat" else self._fields(rows)
        if self._io.mask_mode != "obs":
            return seen
        own_key, mask_key = self._io.mask_keys
        columns = [("candidates" if name == "candidates" else mask_key, column) for name, column in self._columns(rows)]
        if len(columns) == 1:
            name, column = columns[0]
            return [{own_key: own, name: masks} for own, masks in zip(seen, column, strict=True)]
        masked = [{own_key: own} for own in seen]
        for name, column in columns:
            _add(masked, name, column)
        return masked

    def masks(self, rows: Rows = ALL) -> list[dict[str, Any]]:
        """What some agents may choose, as `AgentIO.masks_of` says it."""
        found: list[dict[str, Any]] = [{} for _ in self._slots[rows]]
        for name, column in self._columns(rows):
            _add(found, name, column)
        return found

    def _flat(self, rows: Rows) -> list[np.ndarray]:
        parts = [_taken(values, places, rows) for _, values, places in self._parts]
        if len(parts) == 1:
            return list(parts[0])
        return list(np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1))

    def _fields(self, rows: Rows) -> list[dict[str, np.ndarray]]:
        seen: list[dict[str, np.ndarray]] = [{} for _ in self._slots[rows]]
        for name, values, places in self._parts:
            if values.flags.writeable:
                _add(seen, name, _taken(values, places, rows))
            else:  # an array of the world, the same for all
                _add(seen, name, (values[0].view() for _ in seen))
        return seen

    def _columns(self, rows: Rows) -> Iterator[tuple[str, Iterable[Any]]]:
        """Names of the masks, and those of each agent."""
        masks, io = self._masks, self._io
        if self._open is not None:
            self._open.update()
        if io.joint is not None:
            yield "action_mask", io.joint.masks(masks.whole(rows))
            return
        if masks.dense:
            dense = _taken(masks.flat(copy=False), None, rows)
            yield "action_mask", dense if io.split is None else map(io.split, dense)
        if masks.candidates:
            lists: list[dict[str, np.ndarray]] = [{} for _ in self._slots[rows]]
            for name, ids in masks.candidates.items():
                _add(lists, name, _taken(ids, None, rows))
            yield "candidates", lists


def _taken(values: np.ndarray, places: np.ndarray | None, rows: Rows) -> np.ndarray:
    """A copy of the values that some agents see."""
    if places is not None:
        return values[places[rows]]
    return values.copy() if rows is ALL else values[rows]


def _add(dicts: list[dict[str, Any]], name: str, column: Iterable[Any]) -> None:
    """Gives each dict its value."""
    for one, value in zip(dicts, column, strict=True):
        one[name] = value
