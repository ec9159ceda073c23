"""The players of a match: scripts by slot; Python opponents, their memory per lane and how they are queried."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from palaestra.core.batch_loop import CALLER, MIX, RUNNING
from palaestra.core.game import Game
from palaestra.core.keywords import check_word
from palaestra.core.opponents import Opponent, OpponentSpec, resolve, split_strength
from palaestra.core.rng import draw_integers

if TYPE_CHECKING:
    from palaestra.core.simulation import Simulation


@dataclass
class OpponentAssignment:
    """A python opponent of one team and the lanes in which it plays.

    Attributes:
        opponent: The player.
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


OpponentAssignments = dict[str, list[OpponentAssignment]]
"""Python opponents by team; teams without any are left out."""


def assign(sim: Simulation, team_or_agent: str, opponent: OpponentSpec, which: np.ndarray) -> None:
    """Assigns the player of a team or an agent in the lanes ``which`` (bool ``[N]``): see `Simulation.set_opponent`.

    Raises:
        ValueError: No such team, agent or player, or one agent of a team for a player that is no script.
    """
    game, states = sim.game, sim.states
    team, slots = _team_of(game, team_or_agent)
    name, strength = split_strength(game, opponent)
    resolved = resolve(game, team, name)
    number = resolved if isinstance(resolved, int) else CALLER
    if number != CALLER and len(game.teams) == 1 and game.script is None:
        raise ValueError(f"{game.name} has one team and no scripts: the caller of step plays it")
    if team_or_agent == team:
        assign_opponent(sim.opponent_assignments, team, None if isinstance(resolved, int) else resolved, which)
    elif not isinstance(resolved, int):
        raise ValueError(f"{team_or_agent} can be given to a script alone: other players play a whole team ({team})")
    now = number
    if number == MIX:  # matches that run are played by a script drawn now, later ones by one drawn at their start
        now = draw_integers(states["script_rng"], which, len(game.scripts)) if sim.started else CALLER
    for slot in slots:
        states["strength"][which, slot] = strength
        states["assigned_player"][which, slot] = number
        states["current_player"][which, slot] = now


def _team_of(game: Game, team_or_agent: str) -> tuple[str, tuple[int, ...]]:
    """Team and slots of a team's or an agent's name."""
    if team_or_agent in game.teams:
        return team_or_agent, game.teams[team_or_agent]
    if team_or_agent in game.agents:
        return team_or_agent.rpartition("_")[0], (game.agents.index(team_or_agent),)
    teams, agents = ", ".join(game.teams), ", ".join(game.agents)
    raise ValueError(f"{game.name} has no team {team_or_agent!r}: choose from {teams}, or one agent from {agents}")


def open_slots(sim: Simulation, team: str) -> tuple[int, ...]:
    """Slots of a team that, in some lane, the caller of `step` plays."""
    check_word("team", team, tuple(sim.game.teams))
    assigned = np.zeros(sim.num_envs, np.bool_)
    for assignment in sim.opponent_assignments.get(team, []):
        assigned |= assignment.lanes
    outside = (sim.states["assigned_player"] == CALLER) & ~assigned[:, None]
    return tuple(slot for slot in sim.game.teams[team] if outside[:, slot].any())


def assign_opponent(assignments: OpponentAssignments, team: str, opponent: Opponent | None, which: np.ndarray) -> None:
    """Gives the lanes ``which`` (bool ``[N]``) of a team to a python opponent, or takes them from all of them."""
    for assignment in assignments.get(team, []):
        assignment.lanes &= ~which
    left = [assignment for assignment in assignments.pop(team, []) if assignment.lanes.any()]
    if opponent is not None:
        left.append(
            OpponentAssignment(opponent, which.copy(), np.zeros((len(which), opponent.memory_size), np.float64))
        )
    if left:
        assignments[team] = left


def clear_memory(assignments: OpponentAssignments, which: np.ndarray | slice) -> None:
    """Clears what outlives matches, in lanes that start from a seed."""
    for assignment in (assignment for of_team in assignments.values() for assignment in of_team):
        assignment.memory[which, : assignment.kept] = 0.0


def memories_of(assignments: OpponentAssignments) -> dict[str, np.ndarray]:
    """Copies of what the python opponents of each team remember, side by side: float64 ``[N, sum of sizes]``."""
    return {
        team: np.concatenate([assignment.memory for assignment in of_team], axis=1)
        for team, of_team in assignments.items()
    }


def restore_memories(assignments: OpponentAssignments, memories: dict[str, np.ndarray]) -> None:
    """Gives the python opponents back what `memories_of` took."""
    for team, of_team in assignments.items():
        start = 0
        for assignment in of_team:
            width = assignment.memory.shape[1]
            assignment.memory[...] = memories[team][:, start : start + width]
            start += width


def query_opponents(
    sim: Simulation, assignments: OpponentAssignments
) -> list[tuple[OpponentAssignment, np.ndarray, np.ndarray]]:
    """Writes the actions of the python opponents. Returns what they will remember once the step has happened."""
    remembered = []
    first = sim.states["steps"] == 0
    for team, of_team in assignments.items():
        for assignment in of_team:
            lanes = np.flatnonzero(assignment.lanes & (sim.states["pending"] == RUNNING))
            if lanes.size == 0:
                continue
            memory = assignment.memory[lanes]
            memory[first[lanes], assignment.kept :] = 0.0
            chosen = assignment.opponent.act(
                sim.team_view(team, "observations", lanes),
                sim.team_view(team, "legal", lanes),
                sim.acting[lanes][:, sim.game.teams[team]],
                first[lanes],
                sim.lane_seeds[lanes],
                memory,
            )
            remembered.append((assignment, lanes, memory))
            sim.write_team_actions(team, chosen, lanes)
    return remembered
