"""What agents of one lane see, do, may do, compute and are paid, as rows of numbers and the names of their columns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.lib.recfunctions import structured_to_unstructured

from palaestra.core.compile.linker import record_view
from palaestra.core.contract.factories import load
from palaestra.core.contract.fields import part_names
from palaestra.core.faces.agent_io import AgentIO
from palaestra.core.run.simulation import Simulation
from palaestra.drawing.display_list import natural, varints
from palaestra.game import AgentView, Choice, Facts, Game, Role, Table
from palaestra.replay.file import Replay, ReplayError
from palaestra.replay.policy_outputs import DROPPED_BITS, spans

MOST_OPTIONS = 64
"""Alternatives of a choice that have names; others are numbers."""
MOST_NUMBERS = 4_000_000
"""Actions, observations, outputs or numbers of the match of which there are more are left out of its page."""
MOST_COLUMNS = 256
"""Numbers of the match in a frame; what has more of them is not plotted."""
NOISE = 1e-7
"""Share of the largest value of a field below which a number is 0."""
SCALED = re.compile(r"(\d+(?:\.\d+)?) ([^\d\W].*)")
"""A unit that is a multiple of another one."""
NO_TURN = "(no turn)"
Numbers = Mapping[str, np.ndarray]
"""What is plotted of a match beside what agents see: one number, one a team, or one an agent."""


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
        self._turns = TurnReader(sim, lane, replay) if text_codec(game) else None
        self._written = replay.texts
        self._outputs = replay.outputs[:, lane]
        self._output_spans = list(spans(replay.output_columns, game.teams))
        if self._outputs.shape[1] != sum(agents * size for _, _, agents, size in self._output_spans):
            raise ReplayError(f"{replay.path or 'the replay'}: what players computed does not fit the teams")
        self._shown = {role.name: _shown_fields(role, bool(self._turns)) for role in game.roles}
        self._choices = {role.name: () if self._turns else role.action for role in game.roles}
        self._match_numbers = self._numbers_of_match(Facts())
        self._widths = {
            "actions": sum(field.size for role in self._roles for field in self._choices[role.name]),
            "observations": sum(field.size for role in self._roles for field in self._shown[role.name]),
            "outputs": self._outputs.shape[1],
            "match": 0,
        }
        self._counts = dict.fromkeys(self._widths, 0)
        self.left_out = dict[str, int]()

    def rows(self, decision: int | None) -> dict[str, np.ndarray]:
        """One row of each table, after a decision of this number; None after a reset, with NaN in place of actions."""
        sim, lane, game = self._sim, self._lane, self._sim.game
        acts = decision is not None and int(sim.states["steps"][lane]) > 0
        facts = Facts()
        if game.facts is not None:
            facts = load(game.facts)(game, game.world, record_view(sim.states)[lane])
        paid = [sim.team_rewards(team)[lane] for team in game.teams] if acts else np.zeros(len(game.teams))
        rows = {
            "rewards": np.array(sim.rewards[lane] if acts else np.zeros(len(game.agents)), np.float32),
            "team_rewards": np.array(paid, np.float64),
            "alive": sim.alive[lane].astype(np.uint8),
            "acting": sim.acting[lane].astype(np.uint8),
        }
        if self._has_room("actions"):
            actions = self._flat(sim.actions)
            rows["actions"] = actions if acts else np.full_like(actions, np.nan)
        if self._has_room("observations"):
            rows["observations"] = self._flat(sim.observations, fields=self._shown)
        if sim.legal is not None and not self._turns and any(map(len, self._columns.values())):
            rows["legal"] = self._flat(sim.legal, self._columns).astype(np.uint8)
        if self._output_spans and self._has_room("outputs"):
            rows["outputs"] = self._outputs[decision] if acts else np.full_like(self._outputs[0], np.nan)
        if facts.options:
            rows["option_names"] = np.array([self._number(name) for name in self._option_names(facts)], np.uint32)
        self._match_numbers = self._numbers_of_match(facts)
        self._widths["match"] = sum(map(len, self._match_numbers.values()))
        if self._has_room("match"):
            rows["match"] = np.concatenate([*self._match_numbers.values()]).astype(np.float32)
        now = -1 if decision is None or not acts else decision
        written = [self._written.get((now, lane, slot), "") for slot in range(len(self._roles))]
        if self._turns is not None:
            read, turns = self._turns.read(now >= 0)
            rows["texts"] = np.array([self._number(text) for text in read], np.uint32)
            written = [own or turn for own, turn in zip(written, turns, strict=True)]
        if self._written or self._turns is not None:
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
        game = self._sim.game
        places = [(role, k) for role in game.roles for k in range(len(role.agents))]
        return {
            "dropped_bits": dropped,
            "agents": list(game.agents),
            "actions": [[shown_action(field, k) for field in self._choices[role.name]] for role, k in places],
            "fields": [[shown_field(field, k) for field in self._shown[role.name]] for role, k in places],
            "outputs": [
                {"name": name, "agents": list(game.teams[team]), "size": size}
                for team, name, _, size in self._output_spans
            ],
            "match": [
                {
                    "name": name,
                    "size": len(numbers),
                    **scaled_unit(next((f.unit for f in game.info if f.name == name), "")),
                }
                for name, numbers in self._match_numbers.items()
            ],
            "plots": list(game.plots),
            "strings": list(self._strings),
            "notes": [f"{name} are left out: {numbers:,} numbers" for name, numbers in self.left_out.items()],
        }

    def outputs_of(self, name: str) -> Iterator[tuple[str, np.ndarray]]:
        """By team, the mean over its agents ``[decisions]`` of what its player computed under a name, a number each."""
        start = 0
        for team, output, agents, size in self._output_spans:
            if output == name and size == 1:
                yield team, self._outputs[:, start : start + agents].mean(axis=1)
            start += agents * size

    def _option_names(self, facts: Facts) -> Iterator[str]:
        """Names of the alternatives of all agents as the match stands, in the order of the header's ``options``."""
        for slot, role in enumerate(self._roles):
            for field in self._choices[role.name]:
                options, told = _options(field) or [], facts.options.get(slot, {}).get(field.name)
                yield from options if told is None else [*told, *[""] * len(options)][: len(options)]

    def _numbers_of_match(self, facts: Facts) -> Numbers:
        """Numbers of ``facts``, of the author's info and of his record: one, one a team, or one an agent."""
        sim, game = self._sim, self._sim.game
        record, agents = sim.states[self._lane], len(game.agents)
        found = {name: np.atleast_1d(np.asarray(value, np.float64)) for name, value in facts.numbers.items()}
        own = [(name, record[name]) for name, *_ in game.state if name != "rng"]
        for name, value in [*((field.name, record["info"][field.name]) for field in game.info), *own]:
            array = np.asarray(value)
            if array.dtype.names is None and array.ndim < 2 and array.dtype.kind in "iuf":
                numbers = np.atleast_1d(array).astype(np.float64)
                numbers = numbers[:agents] if len(numbers) == game.slots else numbers
                if len(numbers) in (1, len(game.teams), agents):
                    found.setdefault(name, numbers)
        names = sorted(found, key=lambda name: len(found[name]))  # those with few numbers first
        ends = accumulate(len(found[name]) for name in names)
        return {name: found[name] for name, end in zip(names, ends, strict=True) if end <= MOST_COLUMNS}

    def _has_large_numbers(self) -> bool:
        """Whether a choice has numbers of more than three digits, which are to stay whole."""
        fields = (field for role in self._roles for field in role.action)
        return any(isinstance(field, Choice) and field.n > 1000 for field in fields)

    def _has_room(self, name: str) -> bool:
        """Counts one row more of a table; False where it is too large or has no columns."""
        self._counts[name] += self._widths[name]
        if self._counts[name] > MOST_NUMBERS:
            self.left_out[name] = self._counts[name]
        return name not in self.left_out and self._widths[name] > 0

    def _flat(
        self, arrays: Any, columns: Mapping[str, np.ndarray] | None = None, fields: Mapping[str, Any] | None = None
    ) -> np.ndarray:
        """Numbers of one kind of all agents, float32; of each only those ``columns`` or ``fields`` of its role."""
        parts = list[np.ndarray]()
        for role in self._sim.game.roles:
            chosen = columns if fields is None else fields
            if chosen is not None and not len(chosen[role.name]):
                continue
            array = arrays[role.name] if isinstance(arrays, Mapping) else arrays
            rows = array[self._lane, : len(role.agents)]
            if rows.dtype.names is not None:
                rows = structured_to_unstructured(rows)
            rows = rows.reshape(len(rows), -1)
            if columns is not None:
                rows = rows[:, columns[role.name]]
            elif fields is not None and len(fields[role.name]) < len(role.observation):
                shown = [np.full(field.size, field in fields[role.name]) for field in role.observation]
                rows = rows[:, np.concatenate(shown)]
            parts.append(np.asarray(rows, np.float32).ravel())
        return np.concatenate(parts)

    def _number(self, text: Any) -> int:
        """A text's place among the strings, from 1 on; 0 for none."""
        return 1 + self._strings.setdefault(text, len(self._strings)) if isinstance(text, str) and text else 0


class TurnReader:
    """What agents read, and their turns as texts where no player has written them."""

    def __init__(self, sim: Simulation, lane: int, replay: Replay) -> None:
        """Nothing has been played."""
        name = text_codec(sim.game)
        self._sim, self._lane = sim, lane
        self._readers = [AgentIO(sim, (slot,), codec=name) for slot in range(len(sim.game.agents))]
        self._before: list[AgentView | None] = [None] * len(self._readers)

    def read(self, acts: bool) -> tuple[list[str], list[str]]:
        """Texts that the agents read now, and the turns that led here if ``acts``; empty for agents without a turn."""
        turns = [self._turn(slot) if acts else "" for slot in range(len(self._readers))]
        self._before = [self._kept(slot) for slot in range(len(self._readers))]
        return [str(reader.observe_lane(self._lane)) for reader in self._readers], turns

    def _kept(self, slot: int) -> AgentView | None:
        """A copy of what an agent sees, if it is asked."""
        if not self._sim.acting[self._lane, slot]:
            return None
        view = self._readers[slot].agent_view(self._lane)
        parts = {name: getattr(view, name) for name in ("row", "team", "lane", "mask", "record")}
        return replace(view, **{name: None if part is None else part.copy() for name, part in parts.items()})

    def _turn(self, slot: int) -> str:
        """What an agent wrote, as its codec would have read it."""
        view, encode = self._before[slot], getattr(self._readers[slot].codec, "encode_action", None)
        if view is None or encode is None:
            return ""
        (block,) = self._readers[slot].blocks
        action = block.actions[self._lane]
        words = structured_to_unstructured(action) if action.dtype.names is not None else action
        try:
            return encode(view, np.asarray(words).reshape(-1)) or NO_TURN
        except ValueError as error:
            return f"({error})"


def packed_floats(table: np.ndarray, dropped_bits: int) -> np.ndarray:
    """A table float32 ``[F, W]`` in LEB128, column by column: first bits as integers, differences from row to row."""
    bits = np.ascontiguousarray(table.T, np.float32).view(np.int32).astype(np.int64) >> dropped_bits
    steps = np.diff(bits, axis=1, prepend=0)
    return varints(natural(steps).ravel())


def text_codec(game: Game) -> str | None:
    """Name of the codec by which agents read text."""
    from gymnasium import spaces

    role = game.roles[0]
    texts = (n for n, codec in game.codecs.items() if isinstance(codec.observation_space(role), spaces.Text))
    return next(texts, None)


def _shown_fields(role: Role, reads_text: bool) -> list[Any]:
    """What an agent sees, without lists of token numbers that it reads as text."""
    return [f for f in role.observation if not (reads_text and f.size > 1 and np.dtype(f.dtype).kind in "iu")]


def _columns(role: Role) -> np.ndarray:
    """Columns of a role's flat mask that belong to choices with named options."""
    columns, start = list[int](), 0
    for field in role.action:
        if isinstance(field, Choice) and field.candidates is None:
            if _options(field):
                columns += range(start, start + field.n)
            start += field.n * field.size
    return np.array(columns, np.int64)


def _options(field: Any) -> list[str] | None:
    """Names of the alternatives of a choice."""
    if not isinstance(field, Choice) or field.candidates is not None or field.size > 1 or field.n > MOST_OPTIONS:
        return None
    return [field.meanings[k] if k < len(field.meanings) else f"{field.name} {k}" for k in range(field.n)]


def shown_action(field: Any, agent: int = 0) -> dict[str, Any]:
    """An action field as the page shows it for an agent, by its number in its role."""
    return {
        "name": field.name,
        "about": field.about,
        "options": _options(field),
        "size": field.size,
        "parts": () if isinstance(field, Choice) else part_names(field, agent),
        **scaled_unit(field.unit),
    }


def shown_field(field: Any, agent: int = 0) -> dict[str, Any]:
    """An observation field as the page shows it for an agent, by its number in its role; a table with its columns."""
    shown = {"name": field.name, "about": field.about, "size": field.size, **scaled_unit(field.unit)}
    bounds = np.abs(np.concatenate([np.ravel(field.low), np.ravel(field.high)]).astype(np.float64))
    shown["noise"] = NOISE * float(bounds[np.isfinite(bounds)].max(initial=0.0) or 1.0)
    if isinstance(field, Table):
        shown["columns"] = [
            {"name": c.name, "size": c.size, "parts": part_names(c, agent), **scaled_unit(c.unit)}
            for c in field.columns
        ]
    else:
        shown["parts"] = part_names(field, agent)
    return shown


def scaled_unit(unit: str) -> dict[str, Any]:
    """By what a number is multiplied, and the unit of the product; numbers of several units (``m, rad``) have none."""
    found = SCALED.fullmatch(unit)
    if found:
        return {"factor": float(found[1]), "unit": found[2]}
    return {"factor": 1.0, "unit": "" if unit == "1" or ", " in unit else unit}
