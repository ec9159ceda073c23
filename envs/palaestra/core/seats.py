"""Python opponents at the table: which lanes each of them plays, what it remembers there, and how it is asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from palaestra.core.lanes import RUNNING
from palaestra.core.opponents import Opponent

if TYPE_CHECKING:
    from palaestra.core.simulation import Simulation


@dataclass
class Seat:
    """A python opponent of one team and the lanes in which it plays.

    Attributes:
        opponent: Who.
        lanes: bool ``[N]``.
        memory: float64 ``[N, memory_size]``; the first ``kept_size`` numbers of a lane outlive its matches.
    """

    opponent: Opponent
    lanes: np.ndarray
    memory: np.ndarray

    @property
    def kept(self) -> int:
        """How many numbers of a lane outlive its matches."""
        return getattr(self.opponent, "kept_size", 0)


Seats = dict[str, list[Seat]]
"""Python opponents by team; teams without any are left out."""


def take_seat(seats: Seats, team: str, opponent: Opponent | None, which: np.ndarray) -> None:
    """Gives the lanes ``which`` (bool ``[N]``) of a team to a python opponent, or takes them from all of them."""
    for seat in seats.get(team, []):
        seat.lanes &= ~which
    left = [seat for seat in seats.pop(team, []) if seat.lanes.any()]
    if opponent is not None:
        left.append(Seat(opponent, which.copy(), np.zeros((len(which), opponent.memory_size), np.float64)))
    if left:
        seats[team] = left


def forget(seats: Seats, which: np.ndarray | slice) -> None:
    """Clears what outlives matches, in lanes that start from a seed."""
    for seat in (seat for of_team in seats.values() for seat in of_team):
        seat.memory[which, : seat.kept] = 0.0


def ask(sim: Simulation, seats: Seats) -> list[tuple[Seat, np.ndarray, np.ndarray]]:
    """Writes the actions of the python opponents. Returns what they will remember once the step has happened."""
    remembered = []
    first = sim.states["steps"] == 0
    for team, of_team in seats.items():
        for seat in of_team:
            lanes = np.flatnonzero(seat.lanes & (sim.states["pending"] == RUNNING))
            if lanes.size == 0:
                continue
            memory = seat.memory[lanes]
            memory[first[lanes], seat.kept :] = 0.0
            chosen = seat.opponent.act(
                sim.team_view(team, "observations", lanes),
                sim.team_view(team, "legal", lanes),
                sim.acting[lanes][:, sim.game.teams[team]],
                first[lanes],
                sim.lane_seeds[lanes],
                memory,
            )
            remembered.append((seat, lanes, memory))
            sim.write_team_actions(team, chosen, lanes)
    return remembered
