"""What agents of one lane see, do, may do, compute and are paid, as rows of numbers and the names of their columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.lib.recfunctions import structured_to_unstructured

from palaestra.core.faces.agent_io import AgentIO
from palaestra.core.run.simulation import Simulation
from palaestra.drawing.display_list import natural, varints
from palaestra.game import Choice, Game, Role
from palaestra.replay.file import Replay, ReplayError
from palaestra.replay.policy_outputs import DROPPED_BITS, spans

MOST_OPTIONS = 64
"""Alternatives of a choice that have names; others are numbers."""
MOST_NUMBERS = 4_000_000
"""Actions, observations or outputs of a match with more are left out of its page."""


class AgentTables:
    """Reads the arrays of a simulation for one lane.

    Attributes:
        left_out: How many numbers the tables would have that are too large, by name. They have no more rows.
    """

    def __init__(self, sim: Simulation, lane: int, replay: Replay) -> None:
        """Finds the agents; the simulation's arrays stay where they are.

        Args:
            sim: The simulation.
            lane: Its lane that is read.
            replay: What it plays; tells what players computed.

        Raises:
            ReplayError: What it tells does not fit the teams.
        """
        self._sim, self._lane, game = sim, lane, sim.game
        self._roles = [role for role in game.roles for _ in role.agents]
        self._columns = {role.name: _columns(role) for role in game.roles}
        self._strings = dict[str, int]()
        self._readers = list[AgentIO]()
        if name := _text_codec(game):
            self._readers = [AgentIO(sim, (slot,), codec=name) for slot in range(len(game.agents))]
        self._written = replay.texts
        self._outputs = replay.outputs[:, lane]
        self._output_spans = list(spans(replay.output_columns, game.teams))
        if self._outputs.shape[1] != sum(agents * size for _, _, agents, size in self._output_spans):
            raise ReplayError(f"{replay.path or 'the replay'}: what players computed does not fit the teams")
        self._widths = {
            "actions": sum(field.size for role in self._roles for field in role.action),
            "observations": sum(field.size for role in self._roles for field in role.observation),
            "outputs": self._outputs.shape[1],
        }
        self._numbers = dict.fromkeys(self._widths, 0)
        self.left_out = dict[str, int]()

    def rows(self, decision: int | None) -> dict[str, np.ndarray]:
        """One row of each table, after a decision of this number; None after a reset, with NaN in place of actions."""
        sim, lane = self._sim, self._lane
        acts = decision is not None and int(sim.states["steps"][lane]) > 0
        rows = {
            "rewards": np.array(sim.rewards[lane] if acts else np.zeros(len(sim.game.agents)), np.float32),
            "alive": sim.alive[lane].astype(np.uint8),
            "acting": sim.acting[lane].astype(np.uint8),
        }
        if self._has_room("actions"):
            actions = self._flat(sim.actions)
            rows["actions"] = actions if acts else np.full_like(actions, np.nan)
        if self._has_room("observations"):
            rows["observations"] = self._flat(sim.observations)
        if sim.legal is not None and any(map(len, self._columns.values())):
            rows["legal"] = self._flat(sim.legal, self._columns).astype(np.uint8)
        if self._output_spans and self._has_room("outputs"):
            rows["outputs"] = self._outputs[decision] if acts else np.full_like(self._outputs[0], np.nan)
        if self._readers:
            rows["texts"] = np.array([self._number(reader.observe_lane(lane)) for reader in self._readers], np.uint32)
        if self._written:
            now = -1 if decision is None or not acts else decision
            written = [self._written.get((now, lane, slot), "") for slot in range(len(self._roles))]
            rows["turns"] = np.array([self._number(text) for text in written], np.uint32)
        return rows

    def header(self, blocks: dict[str, np.ndarray]) -> dict[str, Any]:
        """Names of the columns and of what is left out; packs tables of numbers in ``blocks``."""
        dropped = dict[str, int]()
        for name in self._widths:
            if name not in blocks:
                continue
            table = blocks.pop(name)
            is_exact = name == "actions" and self._has_large_numbers()
            is_exact |= bool((np.isnan(table) | (table == np.rint(table))).all())
            dropped[name] = 0 if is_exact else DROPPED_BITS
            blocks[name] = packed_floats(table, dropped[name])
        return {
            "dropped_bits": dropped,
            "agents": list(self._sim.game.agents),
            "actions": [[_action(field) for field in role.action] for role in self._roles],
            "fields": [
                [{"name": f.name, "about": f.about, "unit": f.unit, "size": f.size} for f in role.observation]
                for role in self._roles
            ],
            "outputs": [
                {"name": name, "agents": list(self._sim.game.teams[team]), "size": size}
                for team, name, _, size in self._output_spans
            ],
            "plots": list(self._sim.game.plots),
            "strings": list(self._strings),
            "notes": [f"{name} are left out: {numbers:,} numbers" for name, numbers in self.left_out.items()],
        }

    def _has_large_numbers(self) -> bool:
        """Whether a choice has numbers of more than three digits, which are to stay whole."""
        fields = (field for role in self._roles for field in role.action)
        return any(isinstance(field, Choice) and field.n > 1000 for field in fields)

    def _has_room(self, name: str) -> bool:
        """Counts one row more of a table; False where it is too large."""
        self._numbers[name] += self._widths[name]
        if self._numbers[name] > MOST_NUMBERS:
            self.left_out[name] = self._numbers[name]
        return name not in self.left_out

    def _flat(self, arrays: Any, columns: Mapping[str, np.ndarray] | None = None) -> np.ndarray:
        """Numbers of one kind of all agents, float32; of each only those ``columns`` of its role, if given."""
        parts = list[np.ndarray]()
        for role in self._sim.game.roles:
            if columns is not None and not len(columns[role.name]):
                continue
            array = arrays[role.name] if isinstance(arrays, Mapping) else arrays
            rows = array[self._lane, : len(role.agents)]
            if rows.dtype.names is not None:
                rows = structured_to_unstructured(rows)
            if columns is not None:
                rows = rows.reshape(len(rows), -1)[:, columns[role.name]]
            parts.append(np.asarray(rows, np.float32).ravel())
        return np.concatenate(parts)

    def _number(self, text: Any) -> int:
        """A text's place among the strings, from 1 on; 0 for none."""
        return 1 + self._strings.setdefault(text, len(self._strings)) if isinstance(text, str) and text else 0


def packed_floats(table: np.ndarray, dropped_bits: int) -> np.ndarray:
    """A table float32 ``[F, W]`` in LEB128, column by column: first bits as integers, differences from row to row."""
    bits = np.ascontiguousarray(table.T, np.float32).view(np.int32).astype(np.int64) >> dropped_bits
    steps = np.diff(bits, axis=1, prepend=0)
    return varints(natural(steps).ravel())


def _text_codec(game: Game) -> str | None:
    """Name of the codec by which agents read text."""
    from gymnasium import spaces

    role = game.roles[0]
    texts = (n for n, codec in game.codecs.items() if isinstance(codec.observation_space(role), spaces.Text))
    return next(texts, None)


def _columns(role: Role) -> np.ndarray:
    """Columns of a role's flat mask that belong to choices with named options."""
    columns, start = list[int](), 0
    for field in role.action:
        if isinstance(field, Choice) and field.candidates is None:
            if _has_options(field):
                columns += range(start, start + field.n)
            start += field.n * field.size
    return np.array(columns, np.int64)


def _has_options(field: Any) -> bool:
    return isinstance(field, Choice) and field.candidates is None and field.size == 1 and field.n <= MOST_OPTIONS


def _action(field: Any) -> dict[str, Any]:
    """An action field as the page shows it."""
    options = None
    if _has_options(field):
        options = [field.meanings[k] if k < len(field.meanings) else str(k) for k in range(field.n)]
    return {"name": field.name, "about": field.about, "unit": field.unit, "options": options, "size": field.size}
