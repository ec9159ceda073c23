"""Calls besides resets and decisions as rows of numbers, and back, as a replay holds them.

A row has a call, the number of its target, another number, the lanes, and the bits of a value for each lane:

===============  ==============================================  ==================  =====================
call             target                                          number              value
===============  ==============================================  ==================  =====================
SEED                                                                                 seed
STREAM           0 the rules' stream, 1 the scripts'                                 state, uint64
SET_OPPONENT     place in the names of the teams and the agents  player              strength, float64
SET_PARAMETER    place in the game's parameters                                      float64
SNAPSHOT         number of the snapshot, from 0
RESTORE          number of the snapshot
REFRESH
STEP_LANES       (the next decision is for these lanes alone)
===============  ==============================================  ==================  =====================

On playback each row is such a call of the simulation, which checks what it is given. No call sets the stream of a lane:
any 64 bits are valid.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from palaestra.core.compile.batch_loop import CALLER, RANDOM
from palaestra.core.rng import SALT_RULES, SALT_SCRIPTS, lane_keys
from palaestra.core.run.opponents import MIXTURES
from palaestra.core.run.simulation import Simulation
from palaestra.core.run.snapshot import Snapshot
from palaestra.game import Game
from palaestra.replay.file import (
    LARGEST,
    REFRESH,
    RESTORE,
    SEED,
    SET_OPPONENT,
    SET_PARAMETER,
    SNAPSHOT,
    STEP_LANES,
    STREAM,
    Replay,
    ReplayError,
)

STREAMS = (("rng", SALT_RULES), ("script_rng", SALT_SCRIPTS))


@dataclass(frozen=True)
class Change:
    """One row.

    Attributes:
        call: Which call, a number of `palaestra.replay.file`.
        what: Number of its target.
        number: Another number.
        lanes: bool ``[N]``.
        values: int64 ``[N]``, 0 outside the lanes.
    """

    call: int
    what: int
    number: int
    lanes: np.ndarray
    values: np.ndarray


def change(call: int, lanes: np.ndarray, what: int = 0, number: int = 0, values: Any = None) -> Change:
    """A row of a call; ``values`` (``[N]``, of 8 bytes each) are copied."""
    bits = np.zeros(len(lanes), np.int64)
    if values is not None:
        bits[lanes] = np.ascontiguousarray(values).view(np.int64)[lanes]
    return Change(call, what, number, lanes.copy(), bits)


def starting_changes(sim: Simulation) -> list[Change]:
    """Calls that bring a new simulation with the same `Simulation.lane_seeds` to the state of ``sim``."""
    game, states = sim.game, sim.states
    everywhere = np.ones(sim.num_envs, np.bool_)
    rows = [
        change(STREAM, everywhere, number, values=states[name])
        for number, (name, salt) in enumerate(STREAMS)
        if (states[name] != lane_keys(sim.lane_seeds, salt)).any()
    ]
    for slot in range(len(game.agents)):
        players, strengths = states["assigned_player"][:, slot], states["strength"][:, slot]
        for player, strength in sorted(set(zip(players.tolist(), strengths.tolist(), strict=True))):
            if (player, strength) != (CALLER, 1.0):
                lanes = (players == player) & (strengths == strength)
                rows.append(change(SET_OPPONENT, lanes, len(game.teams) + slot, player, strengths.copy()))
    return rows + parameter_changes(sim, tuple(p.name for p in game.parameters), everywhere)


def opponent_change(sim: Simulation, team_or_agent: str, lanes: np.ndarray) -> Change:
    """What `Simulation.set_opponent` has just done."""
    slot = sim.game.teams.get(team_or_agent, (0,))[0]
    if team_or_agent in sim.game.agents and team_or_agent not in sim.game.teams:
        slot = sim.game.agents.index(team_or_agent)
    player = int(sim.states["assigned_player"][lanes, slot][0])
    strengths = sim.states["strength"][:, slot].copy()
    return change(SET_OPPONENT, lanes, _place(sim.game, team_or_agent), player, strengths)


def parameter_changes(sim: Simulation, names: tuple[str, ...], lanes: np.ndarray) -> list[Change]:
    """What `Simulation.set_parameters` has just done."""
    record = "next_parameters" if "next_parameters" in (sim.game.state_dtype.names or ()) else "parameters"
    places = [parameter.name for parameter in sim.game.parameters]
    return [change(SET_PARAMETER, lanes, places.index(name), values=sim.states[record][name].copy()) for name in names]


def _names(game: Game) -> list[str]:
    return [*game.teams, *game.agents]


def _place(game: Game, team_or_agent: str) -> int:
    return _names(game).index(team_or_agent)


@dataclass
class ChangePlayer:
    """Repeats the calls of a replay.

    Attributes:
        sim: Plays the replay.
        replay: The replay.
        last_uses: Row of the last restore of each snapshot.
        snapshots: Those that are still to be restored, by number.
        step_lanes: Lanes of the next decision, bool ``[N]``; None for all.
    """

    sim: Simulation
    replay: Replay
    last_uses: dict[int, int] = field(default_factory=dict)
    snapshots: dict[int, Snapshot] = field(default_factory=dict)
    step_lanes: np.ndarray | None = None

    def __post_init__(self) -> None:
        """Finds out how long each snapshot is needed."""
        calls = self.replay.change_verbs
        self.last_uses = {int(calls[row, 1]): int(row) for row in np.flatnonzero(calls[:, 0] == RESTORE)}

    def play(self, row: int) -> None:
        """Repeats the call of a row.

        Raises:
            ReplayError: There is no such call, team, parameter or snapshot.
            ValueError: The simulation refuses it.
        """
        sim, game = self.sim, self.sim.game
        call, what, number = self.replay.change_verbs[row].tolist()
        lanes, values = self.replay.change_lanes[row], self.replay.change_values[row]
        if call == SEED:
            sim.seed(values.view(np.uint64), lanes)
        elif call == STREAM:
            sim.states[_one_of(STREAMS, what, "stream")[0]][lanes] = values.view(np.uint64)[lanes]
        elif call == SET_OPPONENT:
            name = _one_of(_names(game), what, "team or agent")
            sim.set_opponent(name, _player(game, number, values.view(np.float64)[lanes]), lanes)
        elif call == SET_PARAMETER:
            name = _one_of(game.parameters, what, "parameter").name
            sim.set_parameters(lanes, **{name: values.view(np.float64)[lanes]})
        elif call == SNAPSHOT:
            self._snapshot(row, what)
        elif call == RESTORE:
            self._restore(row, what)
        elif call == REFRESH:
            sim.refresh(lanes)
        elif call == STEP_LANES:
            self.step_lanes = lanes
        else:
            raise ReplayError(f"there is no call number {call}")

    def _snapshot(self, row: int, number: int) -> None:
        if self.last_uses.get(number, -1) < row:
            return
        if (len(self.snapshots) + 1) * self.sim.states.nbytes > LARGEST:
            raise ReplayError(f"its snapshots would need more than {LARGEST} bytes of memory")
        self.snapshots[number] = self.sim.snapshot()

    def _restore(self, row: int, number: int) -> None:
        if number not in self.snapshots:
            raise ReplayError(f"snapshot {number} was not taken before it is restored")
        self.sim.restore(self.snapshots[number])
        if self.last_uses[number] == row:
            del self.snapshots[number]


def _one_of(things: Any, number: int, kind: str) -> Any:
    if not 0 <= number < len(things):
        raise ReplayError(f"there is no {kind} number {number}")
    return things[number]


def _player(game: Game, number: int, strengths: np.ndarray) -> str | None:
    """The `opponent=` text for a player of one strength."""
    if number == CALLER:
        return None
    if number == RANDOM:
        return "random"
    drawn = {MIXTURES[name]: name for name in game.mixtures}
    name = drawn.get(number) or _one_of(game.scripts, number, "script")
    return f"{name}:{float(strengths[0])!r}" if len(strengths) else name
