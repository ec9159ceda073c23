"""Positions of `palaestra.games.teams.soccer`: their numbers for exact solvers, their mirror images."""

from __future__ import annotations

from itertools import permutations, product
from math import perm
from typing import Any, NamedTuple

import numpy as np


class Count(NamedTuple):
    """How positions are numbered: arrangements of the players, then the holder of the ball, then whose turn it is.

    Attributes:
        rows: Of the pitch.
        columns: Of the pitch.
        players: Of a team.
        turns: 2 in alternating order, else 1.
    """

    rows: int
    columns: int
    players: int
    turns: int

    @property
    def cells(self) -> int:
        """Of the pitch."""
        return self.rows * self.columns

    @property
    def positions(self) -> int:
        """Their number."""
        return perm(self.cells, 2 * self.players) * 2 * self.players * self.turns


def number_of(count: Count, cells: np.ndarray, holder: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """Numbers of positions, int64 [N], from cells [N, A], slots of the holder [N] and turns [N].

    A player's digit is its cell among those that the players before it have left free.
    """
    number = np.zeros(len(cells), np.int64)
    for slot in range(cells.shape[1]):
        taken = (cells[:, :slot] < cells[:, slot, None]).sum(1)
        number = number * (count.cells - slot) + cells[:, slot] - taken
    return (number * cells.shape[1] + holder) * count.turns + turn


def position_of(count: Count, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cells int64 [N, A], slots of the holder [N] and turns [N] of positions: the inverse of `number_of`."""
    slots = 2 * count.players
    rest, turn = np.divmod(np.asarray(numbers, np.int64), count.turns)
    rest, holder = np.divmod(rest, slots)
    cells = np.zeros((len(rest), slots), np.int64)
    for slot in reversed(range(slots)):
        rest, cells[:, slot] = np.divmod(rest, count.cells - slot)
    for slot in range(slots):
        for taken in np.sort(cells[:, :slot], 1).T:
            cells[:, slot] += cells[:, slot] >= taken
    return cells, holder, turn


def write_state(count: Count, states: Any, numbers: np.ndarray) -> None:
    """See `Enumeration.write_state`."""
    cells, holder, turn = position_of(count, numbers)
    states["row"], states["column"] = np.divmod(cells, count.columns)
    states["holder"], states["turn"] = holder, turn
    states["alive"] = 1
    team = np.arange(2 * count.players) // count.players
    states["acting"] = True if count.turns == 1 else team == turn[:, None]


def state_index(count: Count, states: Any) -> np.ndarray:
    """See `Enumeration.state_index`."""
    return number_of(count, states["row"] * count.columns + states["column"], states["holder"], states["turn"])


def canonical(count: Count, numbers: np.ndarray) -> np.ndarray:
    """Teammates may be exchanged and the pitch be reflected from north to south: the smallest number of all these."""
    cells, holder, turn = position_of(count, numbers)
    row, column = np.divmod(cells, count.columns)
    reflected = (count.rows - 1 - row) * count.columns + column
    smallest = np.asarray(numbers, np.int64)
    teammates = list(permutations(range(count.players)))
    for red, blue in product(teammates, teammates):
        slots = np.array([*red, *(count.players + teammate for teammate in blue)])
        held = np.argsort(slots)[holder]
        for arrangement in (cells, reflected):
            smallest = np.minimum(smallest, number_of(count, arrangement[:, slots], held, turn))
    return smallest


def mirror(count: Count, states: Any, actions: Any) -> None:
    """Exchanges the teams and reflects the columns. Forward stays forward."""
    slots = 2 * count.players
    exchanged = (np.arange(slots) + count.players) % slots
    states["column"] = count.columns - 1 - states["column"][:, exchanged]
    for name in ("row", "alive", "acting"):
        states[name] = states[name][:, exchanged]
    states["holder"] = exchanged[states["holder"]]
    states["turn"] = count.turns - 1 - states["turn"]
    actions["player"] = actions["player"][:, exchanged]
