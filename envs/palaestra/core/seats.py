"""The players of a match: scripts by slot; Python opponents, what they remember of a lane and how they are asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from palaestra.core.game import Game
from palaestra.core.lanes import EXTERNAL, MIX, RUNNING
from palaestra.core.opponents import Opponent, OpponentSpec, resolve, split_strength
from palaestra.core.rng import draw_integers

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


def assign(sim: Simulation, who: str, opponent: OpponentSpec, which: np.ndarray) -> None:
    """Says who plays a team or an agent in the lanes ``which`` (bool ``[N]``): see `Simulation.set_opponent`.

    Raises:
        ValueError: No such team, agent or player, or one agent of a team for a player that is no script.
    """
    game, states = sim.game, sim.states
    team, slots = _team_of(game, who)
    name, strength = split_strength(game, opponent)
    resolved = resolve(game, team, name)
    number = resolved if isinstance(resolved, int) else EXTERNAL
    if number != EXTERNAL and len(game.teams) == 1 and game.script is None:
        raise ValueError(f"{game.name} has one team and no scripts: whoever calls step plays it")
    if who == team:
        take_seat(sim.seats, team, None if isinstance(resolved, int) else resolved, which)
    elif not isinstance(resolved, int):
        raise ValueError(f"{who} can be given to a script alone: whoever else plays, plays a whole team ({team})")
    now = number
    if number == MIX:  # matches that run are played by a script drawn now, later ones by one drawn at their start
        now = draw_integers(states["script_rng"], which, len(game.scripts)) if sim.started else EXTERNAL
    for slot in slots:
        states["strength"][which, slot] = strength
        states["assigned"][which, slot] = number
        states["playing"][which, slot] = now


def _team_of(game: Game, who: str) -> tuple[str, tuple[int, ...]]:
    """Team and slots of a team's or an agent's name."""
    if who in game.teams:
        return who, game.teams[who]
    if who in game.agents:
        return who.rpartition("_")[0], (game.agents.index(who),)
    teams, agents = ", ".join(game.teams), ", ".join(game.agents)
    raise ValueError(f"{game.name} has no team {who!r}: choose from {teams}, or one agent from {agents}")


def open_slots(sim: Simulation, team: str) -> tuple[int, ...]:
    """Slots of a team that, in some lane, are played by whoever calls `step`."""
    seated = np.zeros(sim.num_envs, np.bool_)
    for seat in sim.seats.get(team, []):
        seated |= seat.lanes
    outside = (sim.states["assigned"] == EXTERNAL) & ~seated[:, None]
    return tuple(slot for slot in sim.game.teams[team] if outside[:, slot].any())


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


def memories_of(seats: Seats) -> dict[str, np.ndarray]:
    """Copies of what the python opponents of each team remember, side by side: float64 ``[N, sum of sizes]``."""
    return {team: np.concatenate([seat.memory for seat in of_team], axis=1) for team, of_team in seats.items()}


def restore_memories(seats: Seats, memories: dict[str, np.ndarray]) -> None:
    """Gives the python opponents back what `memories_of` took."""
    for team, of_team in seats.items():
        start = 0
        for seat in of_team:
            width = seat.memory.shape[1]
            seat.memory[...] = memories[team][:, start : start + width]
            start += width


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
