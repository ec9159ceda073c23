"""Recording of a simulation, and of whole matches between players."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from palaestra import __version__, make_batch
from palaestra.core.compile.batch_loop import RUNNING
from palaestra.core.compile.identity import rules_digest
from palaestra.core.contract.file_keywords import plain_keywords
from palaestra.core.files import FileError
from palaestra.core.run.opponents import OpponentSpec
from palaestra.core.run.recorder_protocol import Call
from palaestra.core.run.simulation import Simulation
from palaestra.core.run.snapshot import Snapshot
from palaestra.registry import held_keywords, make_game, mates_of
from palaestra.replay.changes import (
    Change,
    change,
    opponent_change,
    parameter_changes,
    starting_changes,
)
from palaestra.replay.file import (
    REFRESH,
    RESET,
    RESTORE,
    SEED,
    SNAPSHOT,
    STEP,
    STEP_LANES,
    Replay,
    ReplayError,
)
from palaestra.replay.lane_bytes import record_bytes
from palaestra.replay.lane_hashes import SET
from palaestra.replay.player_texts import outside_names, player_texts
from palaestra.replay.policy_outputs import OutputLog
from palaestra.replay.provenance import engine_key
from palaestra.replay.trace import Trace
from palaestra.wrappers.transcript import text_keywords

OPERATIONS = {"reset": RESET, "step": STEP}


class Recorder:
    """Records the calls of a simulation, from the next reset of all its lanes on.

    These are resets, seeds, decisions with the actions from outside, parameters, players, and the return to a snapshot
    that was taken during the recording. Actions of Python opponents are recorded; scripts are played again.
    A replay holds calls, never the memory of a match. So a recording cannot contain what no call does: `load_states`
    and `restore` of a foreign snapshot are refused while it runs, and match records that were written by hand
    (``sim.states[...] = ...``) end it with an error at the next call. What was recorded until then stays.

    ::

        with Recorder(envs.sim) as recorder:
            ...
        recorder.replay().save("run.npz")
    """

    def __init__(self, sim: Simulation, *, check_every: int = 1, keep_outputs: bool = False) -> None:
        """Starts to record.

        Args:
            sim: Made by `palaestra.make_batch` or one of the faces (``env.unwrapped.sim``).
            check_every: Operations between two checks; a divergence lies between two of them. 8 bytes a lane each.
            keep_outputs: Also keep what Python players compute for their decisions, such as probabilities, for those
                who watch: ``policy_outputs`` of `palaestra.core.run.opponents.Opponent`.

        Raises:
            ReplayError: The simulation cannot be made again from a file; the message gives the reason.
        """
        if sim.origin is None:
            raise ReplayError("this simulation was made by hand: make it by palaestra.make_batch, which knows its id")
        if check_every < 1:
            raise ValueError(f"check_every must be at least 1, got {check_every}")
        self._id, keywords = sim.origin
        self._keywords = _plain(_held(self._id, keywords, sim), self._id)
        self._sim, self._check_every, self.keep_outputs = sim, check_every, keep_outputs
        self._outputs = OutputLog()
        self._trace = Trace(sim, check_every, sim.action_table.words)
        self._everywhere = np.ones(sim.num_envs, np.bool_)
        self._changes: list[tuple[int, Change]] = []
        self._snapshots: dict[bytes, int] = {}
        self._pending: tuple[Call, np.ndarray, Any] | None = None
        sim.recorder = self

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stops recording; what was recorded stays."""
        if self._sim.recorder is self:
            self._sim.recorder = None

    def before(self, call: Call, which: np.ndarray | None = None, what: Any = None) -> None:
        """See `palaestra.core.run.recorder_protocol.RecorderProtocol`."""
        self._pending = None
        lanes = self._everywhere if which is None else which
        if self._trace.operations:
            self._check(call, lanes, what)
        elif call == "reset" and lanes.all():
            self._changes = [(0, row) for row in starting_changes(self._sim)]
            self._seeds = self._sim.lane_seeds.copy()
            self._outside = outside_names(self._sim)
            self._players = player_texts(self._sim, self._outside)
            self._trace.begin(RESET, lanes)
        else:
            return
        if call == "step":
            self._outputs.add_turns(self._sim, self._trace.steps)
            if self.keep_outputs:
                self._outputs.add(self._sim, self._trace.steps)
        self._pending = call, lanes, what

    def after(self) -> None:
        """See `palaestra.core.run.recorder_protocol.RecorderProtocol`."""
        if self._pending is None:
            return
        call, lanes, what = self._pending
        self._pending = None
        kind = OPERATIONS.get(call, SET)
        if kind == SET:
            if not lanes.any():
                return
            self._changes += [(self._trace.operations, row) for row in self._rows(call, lanes, what)]
            if call == "snapshot":  # known from here on, as its row is there
                self._snapshots.setdefault(_content(what), len(self._snapshots))
        self._trace.finish(kind)

    def _check(self, call: Call, lanes: np.ndarray, what: Any) -> None:
        """Whether a replay can hold a call, and all that happened since the last one."""
        if call == "load_states":
            raise ReplayError(
                "load_states cannot be recorded, as a replay holds calls and no match records: stop the recording first"
            )
        if call == "restore" and _content(what) not in self._snapshots:
            raise ReplayError(
                "this snapshot cannot be recorded: take it from this simulation while the recording runs, "
                "or stop the recording first"
            )
        lane = self._trace.begin(OPERATIONS.get(call, SET), lanes)
        if lane >= 0:
            self.stop()
            raise ReplayError(
                f"the match record of lane {lane} was written by hand, or by a call that was interrupted, which no "
                f"replay can repeat: the recording of {self._sim.game.name} has stopped. Use seed, set_parameters, "
                "set_opponent and restore instead"
            )

    def _rows(self, call: Call, lanes: np.ndarray, what: Any) -> list[Change]:
        """The rows of a call that has just happened."""
        sim = self._sim
        if call == "seed":
            return [change(SEED, lanes, values=sim.lane_seeds)]
        if call == "set_opponent":
            return [opponent_change(sim, what, lanes)]
        if call == "set_parameters":
            return parameter_changes(sim, what, lanes)
        if call == "snapshot":
            return [] if _content(what) in self._snapshots else [change(SNAPSHOT, lanes, len(self._snapshots))]
        if call == "restore":
            return [change(RESTORE, lanes, self._snapshots[_content(what)])]
        return [change(REFRESH, lanes)]

    def _kept_changes(self) -> list[tuple[int, Change]]:
        """Those before the last operation in their order, without snapshots that were never restored."""
        trace, lanes = self._trace, self._trace.lanes
        some = np.flatnonzero((trace.kinds == STEP) & ~lanes.all(axis=1)).tolist()
        changes = [*self._changes, *((operation, change(STEP_LANES, lanes[operation])) for operation in some)]
        changes = [(operation, row) for operation, row in changes if operation < trace.operations]
        restored = {row.what for _, row in changes if row.call == RESTORE}
        kept = [(operation, row) for operation, row in changes if row.call != SNAPSHOT or row.what in restored]
        return sorted(kept, key=itemgetter(0))

    def replay(self) -> Replay:
        """What has been recorded so far.

        Raises:
            ReplayError: Nothing: no reset of all lanes came.
        """
        trace = self._trace
        if not trace.operations:
            raise ReplayError("nothing was recorded: a recording starts with a reset of all lanes")
        sim, n = self._sim, self._sim.num_envs
        changes = self._kept_changes()
        columns, outputs = self._outputs.finish(sim, trace.steps)
        return Replay(
            id=self._id,
            keywords=self._keywords,
            num_envs=n,
            autoreset_mode=sim.autoreset_mode,
            players=self._players,
            outside=self._outside,
            teams=list(sim.game.teams),
            end_reasons=list(sim.game.all_end_reasons),
            palaestra=__version__,
            rules=rules_digest(sim.game),
            engine=engine_key(sim.game),
            check_every=self._check_every,
            digest=trace.digest(),
            output_columns=columns,
            seeds=self._seeds,
            operations=trace.kinds,
            reset_lanes=trace.lanes[trace.kinds == RESET],
            actions=trace.actions,
            change_operations=np.array([operation for operation, _ in changes], np.int64),
            change_verbs=np.array([(c.call, c.what, c.number) for _, c in changes], np.int64).reshape(-1, 3),
            change_lanes=np.array([c.lanes for _, c in changes], np.bool_).reshape(-1, n),
            change_values=np.array([c.values for _, c in changes], np.int64).reshape(-1, n),
            match_rows=trace.match_rows(),
            checks=trace.checks(),
            outputs=outputs,
            turns=self._outputs.texts(trace.steps),
        )


def record(
    id: str,
    players: Mapping[str, OpponentSpec] | None = None,
    *,
    seed: int = 0,
    num_envs: int = 1,
    check_every: int = 1,
    mates: OpponentSpec | Sequence[OpponentSpec] = None,
    **keywords: Any,
) -> Replay:
    """Plays one match in each lane and records it, with what Python players compute (``keep_outputs`` of `Recorder`).

    Args:
        id: Registered id.
        players: Players by team, see `palaestra.core.run.opponents.resolve`; the game's default opponent plays the
            others.
        seed: Lane i plays under ``seed + i``.
        num_envs: Matches side by side.
        check_every: See `Recorder`.
        mates: Players of all agents but the first of the first team in ``players``, as for `palaestra.make_batch`.
        **keywords: As for `palaestra.make_batch`.

    Raises:
        ValueError: No such team or player; names the choices. Mates of nobody, or of a team of one.
    """
    keywords = text_keywords(id, keywords, (players or {}).values())
    sim = make_batch(id, num_envs, **{**keywords, "autoreset_mode": "off"})
    try:
        for team, player in {**dict.fromkeys(sim.game.teams, sim.game.default_opponent), **(players or {})}.items():
            sim.set_opponent(team, player)
        if mates is not None:
            learner = next(iter(players or ()), None)
            if learner not in sim.game.teams:
                raise ValueError("mates= are those of the first team in players=: name it, and who plays it")
            for agent, player in mates_of(id, sim.game, learner, mates, keywords).items():
                sim.set_opponent(agent, player)
        with Recorder(sim, check_every=check_every, keep_outputs=True) as recorder:
            sim.reset(seed=seed)
            while (sim.states["pending"] == RUNNING).any():
                sim.step()
        return recorder.replay()
    finally:
        sim.close()


def _held(id: str, keywords: Mapping[str, Any], sim: Simulation) -> dict[str, Any]:
    """The keywords with the content of files, if it is that of which the simulation was made."""
    held = held_keywords(id, keywords)
    if held != keywords and rules_digest(make_game(id, **held)[0]) != rules_digest(sim.game):
        raise ReplayError("a file that the simulation was made of has changed since: make it again, then record")
    return held


def _plain(keywords: Mapping[str, Any], id: str) -> dict[str, Any]:
    try:
        return plain_keywords(keywords, id)
    except FileError as error:
        raise ReplayError(str(error)) from error


def _content(snapshot: Snapshot) -> bytes:
    """Hash by which a snapshot is known again, in a copy too."""
    return hashlib.sha256(record_bytes(snapshot.states) + snapshot.lane_seeds.tobytes()).digest()
