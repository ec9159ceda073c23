"""Python opponents get the rows of their own team in their own lanes; teammates are all but one agent."""

from __future__ import annotations

from typing import Any

import numpy as np

from palaestra.core.compile.batch_loop import RUNNING
from palaestra.core.contract.fields import values_of
from palaestra.testing.harness import Skipped, conformance, require
from palaestra.testing.players import Player
from palaestra.testing.snapshot_view import difference, snapshot_view, unlike
from palaestra.testing.subject import Subject

LANES = 5


class WatchingPlayer:
    """An `Opponent` that plays what a `Player` has written, and compares its arrays with the memory of the batch.

    Attributes:
        wrong: The first difference as text, or ``""``.
        decisions: Lanes that it was asked for, all calls together.
    """

    memory_size = 0
    kept_size = 0

    def __init__(self, sim: Any, team: str, lanes: np.ndarray, slots: tuple[int, ...]) -> None:
        """Watches a team in some lanes (bool ``[N]``), of which it plays some slots."""
        self._sim, self._team, self._lanes = sim, team, lanes
        self._own = np.isin(sim.game.teams[team], slots)
        self.wrong, self.decisions = "", 0

    def act(self, observations: Any, legal: Any, acting: Any, first: Any, seeds: Any, memory: Any) -> Any:
        """See `palaestra.core.run.opponents.Opponent`."""
        sim, game = self._sim, self._sim.game
        lanes = np.flatnonzero(self._lanes & (sim.states["pending"] == RUNNING))
        slots = list(game.teams[self._team])
        self.decisions += len(lanes)
        for name, given, own in (
            ("seeds", seeds, sim.lane_seeds[lanes]),
            ("acting", np.asarray(acting), (sim.states["acting"][lanes][:, slots] != 0) & self._own),
            ("first", np.asarray(first), sim.states["steps"][lanes] == 0),
            ("observations", observations, self._seen(lanes)),
            ("legal", legal, self._rows(sim.legal, lanes)),
        ):
            self.wrong = self.wrong or unlike(given, own, name)
        return self._rows(sim.actions, lanes)

    def _rows(self, arrays: Any, lanes: np.ndarray, always_dict: bool = False) -> Any:
        """The team's rows in arrays by role."""
        if arrays is None:
            return None
        roles = self._sim.game.team_roles(self._team)
        parts = {
            name: (arrays if isinstance(arrays, np.ndarray) else arrays[name])[lanes][:, list(slots)]
            for name, slots in roles.items()
        }
        return parts if always_dict or len(parts) > 1 else next(iter(parts.values()))

    def _seen(self, lanes: np.ndarray) -> Any:
        sim, game = self._sim, self._sim.game
        memory, number = sim.buffers.observations, list(game.teams).index(self._team)
        shared: dict[str, Any] = {}
        if game.team_observation:
            shared["team"] = {f.name: values_of(memory["team"], f)[lanes, number] for f in game.team_observation}
        if game.lane_observation:
            own = {f.name: values_of(memory["lane"], f)[lanes] for f in game.lane_observation if f.world is None}
            shared["lane"] = own | {name: array[lanes] for name, array in sim.world_observations.items()}
        parts = self._rows(sim.observations, lanes, always_dict=True)
        return {**parts, **shared} if shared or len(parts) > 1 else next(iter(parts.values()))


@conformance(order=1008)
def opponents_get_their_rows(subject: Subject) -> None:
    """A Python opponent gets observations, masks, acting agents and seeds of its team, of the lanes that it plays.

    One that plays a single agent sees what the whole team sees, and is asked for this agent alone.
    """
    game, draw = subject.game, subject.draw
    if len(game.teams) < 2:
        raise Skipped("a game of one team has no opponents")
    asked = 0
    sim = subject.batch(LANES, horizon=draw.integer("horizon", 8, 30))
    agents = [draw.choice("agent", [game.agents[slot] for slot in slots]) for slots in game.teams.values()]
    for team, name in (*((team, team) for team in game.teams), *zip(game.teams, agents, strict=True)):
        slots = game.teams[team] if name == team else (game.agents.index(name),)
        sim.reset(seed=draw.seed())
        lanes = draw.mask("lanes", LANES)
        watching, player = WatchingPlayer(sim, team, lanes, slots), Player(sim)
        sim.set_opponent(name, watching, lanes)
        for number in subject.rounds(6, 12, 150):
            player.play(sim)
            sim.step()
            require(not watching.wrong, f"{name}, decision {number}: {watching.wrong} (handed over, and in the batch)")
        sim.set_opponent(team, None)
        asked += watching.decisions
    subject.note(f"asked for {asked} lane-steps")


@conformance(order=1009)
def mates_leave_one_agent(subject: Subject) -> None:
    """With ``mates=`` the caller keeps the first agent of its team; the others play as by ``opponents=``, one by one.

    A list draws one player for all of them at each start, and keeps it until the match is over.
    """
    game, draw = subject.game, subject.draw
    (team, slots), *_ = game.teams.items()
    if len(slots) < 2 or not game.scripts:
        raise Skipped("no scripts" if len(slots) > 1 else f"{team} is one agent")
    others = [game.agents[slot] for slot in slots[1:]]
    name = draw.choice("mates", [*game.scripts, *game.mixtures, "random", f"{game.scripts[0]}:0.5"])
    given, named = subject.batch(3, mates=name), subject.batch(3, opponents=dict.fromkeys(others, name))
    drawn, seed = subject.batch(3, mates=[*game.scripts, "random"]), draw.seed()
    for sim in (given, named, drawn):
        found = sim.open_slots(team)
        require(found == slots[:1], f"mates leave the slots {found} of {team} to the caller, not {slots[:1]}")
        sim.reset(seed=seed)
    player = Player(named)
    for number in subject.rounds(6, 12, 100):
        player.play(named)
        for sim in (given, drawn):
            sim.buffers.action_words[...] = named.buffers.action_words
            sim.step()
        named.step()
        found = difference(game, snapshot_view(named), snapshot_view(given))
        require(not found, f"{found}, step {number}: mates={name!r}, and the same player named for each agent")
        playing = drawn.states["current_player"][drawn.states["steps"] > 0][:, slots[1:]]
        is_one = (playing == playing[:, :1]).all()
        require(is_one, f"step {number}: a list of mates is played by {playing.tolist()}, not by one player a lane")
    subject.note(f"{len(others)} of {team} are played by {name}")
