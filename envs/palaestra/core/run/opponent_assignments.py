"""The players of a match: scripts by slot; Python opponents, their memory per lane and how they are queried."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from palaestra.core.compile.batch_loop import CALLER, HELD_OUT, MIX, RANDOM, RUNNING
from palaestra.core.compile.linker import scripts_play
from palaestra.core.contract.keywords import check_word
from palaestra.core.contract.rules import Game
from palaestra.core.rng import draw_integers
from palaestra.core.run.arrays import Arrays
from palaestra.core.run.opponents import Opponent, OpponentSpec, resolve, split_strength

Remembered = list[tuple[str, "OpponentAssignment", np.ndarray, np.ndarray]]
"""Teams, assignments, lanes, and what the opponents will remember in them once the step has happened."""
Outputs = tuple[np.ndarray, np.ndarray | None, Mapping[str, np.ndarray]]
"""Lanes, the agents played there (bool ``[n, A_team]``, None for all), and tables by name."""


@dataclass
class OpponentAssignment:
    """A Python opponent of one team, and which agents it plays in which lanes.

    Attributes:
        opponent: The player.
        agents: bool ``[N, A_team]``.
        whole_team: bool ``[N]``: it was given the team, and has those agents back that other players give back.
        memory: float64 ``[N, memory_size]``; the first ``kept_size`` numbers of a lane outlive its matches.
        lanes: bool ``[N]``: where it plays an agent; as of the last `settle`, like the next.
        plays_all: Whether it plays all agents there.
        outputs: What the player computed in the last decision, if that was asked.
    """

    opponent: Opponent
    agents: np.ndarray
    whole_team: np.ndarray
    memory: np.ndarray
    lanes: np.ndarray
    plays_all: bool = True
    outputs: Outputs | None = None

    def settle(self) -> None:
        """Derives from ``agents`` what every decision asks for."""
        self.lanes = np.asarray(self.agents.any(axis=1))
        self.plays_all = bool((self.agents.all(axis=1) == self.lanes).all())

    @property
    def kept(self) -> int:
        """How many numbers of a lane outlive its matches."""
        return getattr(self.opponent, "kept_size", 0)

    def remember(self, arrays: Arrays, team: str, lanes: np.ndarray, memory: np.ndarray) -> None:
        """Keeps what the player of a team remembers of a step in some lanes, its rewards included where it asks."""
        at = getattr(self.opponent, "reward_at", None)
        if at is not None:
            memory[:, at] = arrays.team_rewards(team)[lanes]
        self.memory[lanes] = memory


class OpponentAssignments(dict[str, list[OpponentAssignment]]):
    """Python opponents by team; teams without any are left out. Scripts are numbers in the match records."""

    def assign(
        self, arrays: Arrays, team_or_agent: str, opponent: OpponentSpec, which: np.ndarray, have_started: bool
    ) -> None:
        """Assigns a player in the lanes ``which`` (bool ``[N]``): see `Simulation.set_opponent`.

        Raises:
            ValueError: No such team, agent or player.
        """
        game, states = arrays.game, arrays.states
        team, slots = _team_of(game, team_or_agent)
        name, strength = split_strength(game, opponent)
        resolved = resolve(game, team, name)
        number = resolved if isinstance(resolved, int) else CALLER
        if number != CALLER and not scripts_play(game):
            raise ValueError(
                f"{game.name} has one team and no scripts: the caller of step plays it (a game with a script can be "
                "played at random, too)"
            )
        player = None if isinstance(resolved, int) else resolved
        if team_or_agent == team:
            self._give_team(game, team, player, which)
        else:
            self._give_agent(game, team, game.teams[team].index(slots[0]), player, which, number == CALLER)
        now = number
        if number in (MIX, HELD_OUT):  # a script drawn now plays running matches, one drawn at their start later ones
            mixed = len(game.scripts) - len(game.held_out)
            first, count = (0, mixed) if number == MIX else (mixed, len(game.held_out))
            now = first + draw_integers(states["script_rng"], which, count) if have_started else CALLER
        for slot in slots:
            states["strength"][which, slot] = strength
            states["assigned_player"][which, slot] = number
            states["current_player"][which, slot] = now

    def _give_team(self, game: Game, team: str, opponent: Opponent | None, which: np.ndarray) -> None:
        """Gives the lanes ``which`` (bool ``[N]``) of a team to a Python opponent, or takes them from all of them."""
        for assignment in self.get(team, []):
            assignment.agents[which] = False
            assignment.whole_team[which] = False
        if opponent is not None:
            assignment = self._new(game, team, opponent, len(which))
            assignment.agents[which] = True
            assignment.whole_team[which] = True
        self._settle(team)

    def _give_agent(
        self, game: Game, team: str, place: int, opponent: Opponent | None, which: np.ndarray, back: bool
    ) -> None:
        """Gives one agent, at a place in its team, to a Python opponent in the lanes ``which``, or takes it away.

        With ``back`` the player of the rest of the team has it again. A player that has other agents of the team plays
        them together with this one, with one memory.
        """
        for assignment in self.get(team, []):
            assignment.agents[which, place] = assignment.whole_team[which] if back and opponent is None else False
        if opponent is not None:
            known = [assignment for assignment in self.get(team, []) if assignment.opponent is opponent]
            assignment = known[0] if known else self._new(game, team, opponent, len(which))
            assignment.memory[which & ~assignment.lanes] = 0.0
            assignment.agents[which, place] = True
        self._settle(team)

    def _new(self, game: Game, team: str, opponent: Opponent, lanes: int) -> OpponentAssignment:
        """A player that plays nobody yet."""
        agents, memory = np.zeros((lanes, len(game.teams[team])), np.bool_), np.zeros((lanes, opponent.memory_size))
        made = OpponentAssignment(opponent, agents, np.zeros(lanes, np.bool_), memory, np.zeros(lanes, np.bool_))
        self.setdefault(team, []).append(made)
        return made

    def _settle(self, team: str) -> None:
        """Ends a change: drops players that play nobody."""
        for assignment in self.get(team, []):
            assignment.settle()
        left = [a for a in self.pop(team, []) if a.agents.any() or a.whole_team.any()]
        if left:
            self[team] = left

    def open_slots(self, game: Game, states: np.ndarray, team: str) -> tuple[int, ...]:
        """Slots of a team that, in some lane, the caller of `step` plays."""
        check_word("team", team, tuple(game.teams))
        slots = game.teams[team]
        outside = states["assigned_player"][:, slots] == CALLER
        for assignment in self.get(team, []):
            outside &= ~assignment.agents
        return tuple(slot for slot, is_open in zip(slots, outside.any(axis=0), strict=True) if is_open)

    def clear_memory(self, which: np.ndarray | slice) -> None:
        """Clears what outlives matches, in lanes that start from a seed."""
        for assignment in (assignment for of_team in self.values() for assignment in of_team):
            assignment.memory[which, : assignment.kept] = 0.0

    def memory_sizes(self) -> dict[str, int]:
        """How many numbers the Python opponents of each team remember in a lane."""
        return {team: sum(a.memory.shape[1] for a in of_team) for team, of_team in self.items()}

    def memories(self) -> dict[str, np.ndarray]:
        """Copies of what the Python opponents of each team remember, side by side: float64 ``[N, sum of sizes]``."""
        return {team: np.concatenate([a.memory for a in of_team], axis=1) for team, of_team in self.items()}

    def restore_memories(self, memories: dict[str, np.ndarray]) -> None:
        """Gives the Python opponents back what `memories` took."""
        for team, of_team in self.items():
            start = 0
            for assignment in of_team:
                width = assignment.memory.shape[1]
                assignment.memory[...] = memories[team][:, start : start + width]
                start += width

    def query(
        self, arrays: Arrays, lane_seeds: np.ndarray, which: np.ndarray | None = None, keep_outputs: bool = False
    ) -> Remembered:
        """Writes the actions of the Python opponents in the lanes ``which`` (bool ``[N]``, all if None) that play.

        With ``keep_outputs`` also keeps what they computed, `OpponentAssignment.outputs`.

        Returns:
            What they will remember once the step has happened.
        """
        remembered: Remembered = []
        if not self:
            return remembered
        states = arrays.states
        first, play = states["steps"] == 0, states["pending"] == RUNNING
        if which is not None:
            play &= which
        for team, of_team in self.items():
            for assignment in of_team:
                assignment.outputs = None
                lanes = np.flatnonzero(assignment.lanes & play)
                if lanes.size == 0:
                    continue
                memory = assignment.memory[lanes]
                memory[first[lanes], assignment.kept :] = 0.0
                acting = arrays.acting[lanes][:, arrays.game.teams[team]]
                agents = None if assignment.plays_all else assignment.agents[lanes]
                chosen = assignment.opponent.act(
                    arrays.team_view(team, "observations", lanes),
                    arrays.team_view(team, "legal", lanes),
                    acting if agents is None else acting & agents,
                    first[lanes],
                    lane_seeds[lanes],
                    memory,
                )
                remembered.append((team, assignment, lanes, memory))
                if keep_outputs:
                    assignment.outputs = lanes, agents, getattr(assignment.opponent, "policy_outputs", {})
                scripts = getattr(assignment.opponent, "script_players", None)
                if scripts is not None:
                    _let_scripts_play(arrays, team, lanes, assignment.agents[lanes], *scripts)
                if scripts is None or (scripts[0] == CALLER).any():
                    arrays.write_team_actions(team, chosen, lanes, agents)
        return remembered


def _let_scripts_play(
    arrays: Arrays, team: str, lanes: np.ndarray, agents: np.ndarray, numbers: np.ndarray, strengths: np.ndarray
) -> None:
    """Assigns scripts to the agents (bool ``[n, A_team]``) of a Python player, as `Simulation.set_opponent` does.

    A recorder is told of each change: a replay has the scripts, which draw, and not the player.

    Raises:
        ValueError: The game has no such script.
    """
    states, game, recorder = arrays.states, arrays.game, getattr(arrays, "recorder", None)
    if not ((numbers >= RANDOM) & (numbers < len(game.scripts))).all():
        raise ValueError(f"script_players holds numbers from {RANDOM} to {len(game.scripts) - 1}, got {numbers}")
    slots = game.teams[team]
    found = [states[name][lanes][:, slots] for name in ("assigned_player", "current_player", "strength")]
    differs = (found[0] != numbers[:, None]) | (found[1] != numbers[:, None]) | (found[2] != strengths[:, None])
    differs &= agents
    for place in np.flatnonzero(differs.any(axis=0)).tolist():
        slot, changed = slots[place], differs[:, place]
        for number, strength in sorted(set(zip(numbers[changed].tolist(), strengths[changed].tolist(), strict=True))):
            rows = np.flatnonzero(changed & (numbers == number) & (strengths == strength))
            which = np.zeros(len(states), np.bool_)
            which[lanes[rows]] = True
            if recorder is not None:
                recorder.before("set_opponent", which, game.agents[slot])
            states["strength"][lanes[rows], slot] = strength
            states["assigned_player"][lanes[rows], slot] = number
            states["current_player"][lanes[rows], slot] = number
            if recorder is not None:
                recorder.after()


def _team_of(game: Game, team_or_agent: str) -> tuple[str, tuple[int, ...]]:
    """Team and slots of a team's or an agent's name."""
    if team_or_agent in game.teams:
        return team_or_agent, game.teams[team_or_agent]
    if team_or_agent in game.agents:
        return team_or_agent.rpartition("_")[0], (game.agents.index(team_or_agent),)
    teams, agents = ", ".join(game.teams), ", ".join(game.agents)
    raise ValueError(f"{game.name} has no team {team_or_agent!r}: choose from {teams}, or one agent from {agents}")
