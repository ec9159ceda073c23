"""What players computed for their decisions, such as probabilities, or wrote: kept for those who watch a recording."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from palaestra.core.run.simulation import Simulation
from palaestra.replay.file import ReplayError

DROPPED_BITS = 14
"""Of the 23 of a float32's fraction: three digits are kept, the rest does not compress."""

Columns = Mapping[str, Mapping[str, int]]
"""Numbers of an agent by team and by name, in the order in which the agents of all teams have their columns."""


class OutputLog:
    """Collects `palaestra.core.run.opponents.Opponent.policy_outputs` from decision to decision."""

    def __init__(self) -> None:
        """Nothing has been decided."""
        self._kept = dict[tuple[str, str], list[tuple[int, np.ndarray, np.ndarray, np.ndarray]]]()
        self._texts = list[tuple[int, int, int, str]]()

    def add(self, sim: Simulation, decision: int) -> None:
        """Adds what Python players have computed for a decision that is about to happen.

        Raises:
            ReplayError: An array has another shape than it should have; names the player.
        """
        for team, assignments in sim.opponent_assignments.items():
            for assignment in assignments:
                lanes, agents, tables = assignment.outputs or (np.empty(0, np.int64), None, {})
                for name, given in tables.items():
                    slots = sim.game.teams[team]
                    shape = (len(lanes), len(slots))
                    played = np.ones(shape, np.bool_) if agents is None else agents
                    if isinstance(given, np.ndarray) and given.dtype.kind == "O" and given.shape == shape:
                        at = np.argwhere(played & (given != "")).tolist()
                        self._texts += [(decision, int(lanes[k]), slots[a], str(given[k, a])) for k, a in at]
                        continue
                    table = np.asarray(given, np.float32)
                    if table.shape[:2] != shape or table.ndim > 3:
                        player = type(assignment.opponent).__name__
                        raise ReplayError(
                            f"policy_outputs[{name!r}] of {player}, {team}, has the shape {table.shape}: it should be "
                            f"{shape} or, with a number for each alternative, {(*shape, 'M')}"
                        )
                    bits = table.reshape(*shape, -1).view(np.int32) >> DROPPED_BITS << DROPPED_BITS
                    self._kept.setdefault((team, name), []).append((decision, lanes, played, bits.view(np.float32)))

    def add_turns(self, sim: Simulation, decision: int) -> None:
        """Adds what users have written as texts for a decision that is about to happen."""
        self._texts += [(decision, lane, slot, text) for (lane, slot), text in sim.written_turns.items()]
        sim.written_turns.clear()

    def texts(self, decisions: int) -> np.ndarray:
        """See `palaestra.replay.file.Replay.turns`."""
        rows = [row for row in self._texts if row[0] < decisions]
        return np.frombuffer(json.dumps(rows).encode() if rows else b"", np.uint8)

    def finish(self, sim: Simulation, decisions: int) -> tuple[dict[str, dict[str, int]], np.ndarray]:
        """The columns, and float32 ``[decisions, N, W]``, NaN where a player computed nothing."""
        columns = dict[str, dict[str, int]]()
        for (team, name), parts in sorted(self._kept.items()):
            columns.setdefault(team, {})[name] = max(table.shape[2] for *_, table in parts)
        width = sum(size * agents for _, _, agents, size in spans(columns, sim.game.teams))
        outputs = np.full((decisions, sim.num_envs, width), np.nan, np.float32)
        start = 0
        for team, name, agents, size in spans(columns, sim.game.teams):
            place = outputs[:, :, start : start + agents * size].reshape(decisions, sim.num_envs, agents, size)
            start += agents * size
            for decision, lanes, played, table in self._kept[team, name]:
                if decision < decisions:
                    row, member = np.nonzero(played)
                    place[decision, lanes[row], member, : table.shape[2]] = table[row, member]
        return columns, outputs


def spans(columns: Columns, teams: Mapping[str, Any]) -> Iterator[tuple[str, str, int, int]]:
    """Team, name, number of agents, and numbers of an agent of each part of the columns.

    Raises:
        ReplayError: There is no such team.
    """
    for team, names in columns.items():
        if team not in teams:
            raise ReplayError(f"there is no team {team!r} whose player could have computed something")
        for name, size in names.items():
            yield team, name, len(teams[team]), size
