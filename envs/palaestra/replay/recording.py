"""Recording of a simulation, and of whole matches between players."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

import numpy as np

from palaestra import __version__, make_batch
from palaestra.core.batch_loop import CALLER, MIX, RANDOM, RUNNING
from palaestra.core.identity import rules_digest
from palaestra.core.opponents import OpponentSpec, player_name
from palaestra.core.simulation import Simulation
from palaestra.replay.file import CHECK_BYTES, RESET, STEP, Replay, ReplayError
from palaestra.replay.lane_bytes import HashChain, LaneBytes
from palaestra.replay.provenance import engine_key


class Recorder:
    """Records all inputs of a simulation, from the next reset of all its lanes on.

    Inputs are actions, resets, seeds, parameters, players, and match records written by hand. Actions of Python
    opponents are recorded; scripts are played again. What an engine holds besides the record is not
    recorded: `Simulation.restore` of a game with bodies ends a recording with an error.

        with Recorder(envs.sim) as recorder:
            ...
        recorder.replay().save("run.npz")
    """

    def __init__(self, sim: Simulation, *, check_every: int = 1) -> None:
        """Starts to record.

        Args:
            sim: Made by `palaestra.make_batch` or one of the faces (``env.unwrapped.sim``).
            check_every: Operations between two checks; a divergence lies between two of them. 8 bytes a lane each.

        Raises:
            ReplayError: The simulation cannot be made again from a file; says why.
        """
        if sim.origin is None:
            raise ReplayError("this simulation was made by hand: make it by palaestra.make_batch, which knows its id")
        if check_every < 1:
            raise ValueError(f"check_every must be at least 1, got {check_every}")
        self._id, keywords = sim.origin
        self._keywords = _plain(keywords, self._id)
        self._sim, self._check_every = sim, check_every
        self._lanes, self._chain = LaneBytes(sim), HashChain(sim.num_envs)
        words = sim.action_table.words
        self._agents, self._columns = words["agent"], words["column"]
        self._fixed_columns = _fixed_columns(sim, self._lanes)
        self._operations: list[int] = []
        self._reset_lanes: list[np.ndarray] = []
        self._actions: list[np.ndarray] = []
        self._changes: list[tuple[int, int, np.ndarray]] = []
        self._checks: list[np.ndarray] = []
        self._matches: list[dict[str, Any]] = []
        self._seen = self._lanes.read()
        self._running = np.zeros(sim.num_envs, np.bool_)
        self._pending: tuple[int, np.ndarray] | None = None
        sim.recorder = self

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stops recording; what was recorded stays."""
        if self._sim.recorder is self:
            self._sim.recorder = None

    def before(self, sim: Simulation, which: np.ndarray | None) -> None:
        """See `palaestra.core.recorder_protocol.RecorderProtocol`."""
        if not self._operations:
            if which is None or not which.all():
                return
            self._players = _players(sim)
            self._seeds = [int(s) for s in sim.lane_seeds]
        self._note_changes(which)
        if which is not None:
            self._pending = (RESET, which.copy())
            return
        self._running = sim.states["pending"] == RUNNING
        outside = (sim.states["current_player"][:, self._agents] == CALLER) & self._running[:, None]
        self._pending = (STEP, np.where(outside, sim.buffers.action_words[:, self._columns], 0))

    def after(self, sim: Simulation) -> None:
        """See `palaestra.core.recorder_protocol.RecorderProtocol`."""
        if self._pending is None:
            return
        operation, what = self._pending
        self._pending = None
        self._operations.append(operation)
        (self._reset_lanes if operation == RESET else self._actions).append(what)
        self._seen = self._lanes.read()
        self._chain.add(self._seen)
        if len(self._operations) % self._check_every == 0:
            self._checks.append(self._chain.check())
        if operation == STEP:
            self._note_ends(sim)

    def _note_changes(self, which: np.ndarray | None) -> None:
        """Keeps the lanes that are not as the last operation left them; all of them before the first."""
        now = self._lanes.read()
        differs = now != self._seen
        changed = differs.any(axis=1) if self._operations else np.ones(len(now), np.bool_)
        moved = differs[:, self._fixed_columns].any(axis=1) & bool(self._operations)
        if which is not None:
            moved &= ~which
        if moved.any():
            self.stop()
            raise ReplayError(
                f"lane {int(np.flatnonzero(moved)[0])} was changed in the middle of a match (restore?): a replay "
                f"cannot do that to the engine of {self._sim.game.name}, the recording has stopped"
            )
        self._changes += [(len(self._operations), int(lane), now[lane]) for lane in np.flatnonzero(changed)]

    def _note_ends(self, sim: Simulation) -> None:
        over = (sim.terminated | sim.truncated) & self._running
        info = sim.final_info if sim.autoreset_mode == "same_step" else sim.info
        teams = list(sim.game.teams)
        for lane in np.flatnonzero(over):
            winner = int(info["winner"][lane])
            self._matches.append(
                {
                    "lane": int(lane),
                    "step": len(self._actions),
                    "winner": teams[winner] if winner >= 0 else None,
                    "end_reason": sim.game.end_reason(int(info["end_reason"][lane])),
                }
            )

    def replay(self) -> Replay:
        """What has been recorded so far.

        Raises:
            ReplayError: Nothing: no reset of all lanes came.
        """
        if not self._operations:
            raise ReplayError("nothing was recorded: a recording starts with a reset of all lanes")
        sim, n = self._sim, self._sim.num_envs
        checks = list(self._checks)
        if len(self._operations) % self._check_every:
            checks.append(self._chain.check())
        stacked = lambda rows, empty: np.array(rows) if rows else empty  # noqa: E731
        return Replay(
            id=self._id,
            keywords=self._keywords,
            num_envs=n,
            autoreset_mode=sim.autoreset_mode,
            seeds=self._seeds,
            players=self._players,
            matches=list(self._matches),
            palaestra=__version__,
            rules=rules_digest(sim.game),
            engine=engine_key(sim.game),
            check_every=self._check_every,
            digest=self._chain.digest(),
            operations=np.array(self._operations, np.uint8),
            reset_lanes=np.array(self._reset_lanes),
            actions=stacked(self._actions, np.zeros((0, *sim.buffers.action_words.shape), np.int64)),
            change_operations=np.array([operation for operation, _, _ in self._changes], np.int64),
            change_lanes=np.array([lane for _, lane, _ in self._changes], np.int64),
            changes=np.array([row for _, _, row in self._changes]),
            checks=np.array(checks).reshape(-1, n, CHECK_BYTES),
        )


def record(
    id: str,
    players: Mapping[str, OpponentSpec] | None = None,
    *,
    seed: int = 0,
    num_envs: int = 1,
    check_every: int = 1,
    **keywords: Any,
) -> Replay:
    """Plays one match in each lane and records it.

    Args:
        id: Registered id.
        players: Players by team, see `palaestra.core.opponents.resolve`; the game's default opponent plays the
            others.
        seed: Lane i plays under ``seed + i``.
        num_envs: Matches side by side.
        check_every: See `Recorder`.
        **keywords: As for `palaestra.make_batch`.

    Raises:
        ValueError: No such team or player; names the choices.
    """
    sim = make_batch(id, num_envs, **{**keywords, "autoreset_mode": "off"})
    try:
        for team, player in {**dict.fromkeys(sim.game.teams, sim.game.default_opponent), **(players or {})}.items():
            sim.set_opponent(team, player)
        with Recorder(sim, check_every=check_every) as recorder:
            sim.reset(seed=seed)
            while (sim.states["pending"] == RUNNING).any():
                sim.step()
        return recorder.replay()
    finally:
        sim.close()


def _plain(keywords: Mapping[str, Any], id: str) -> dict[str, Any]:
    """The keywords as JSON values."""
    plain = {}
    for name, value in keywords.items():
        try:
            plain[name] = json.loads(json.dumps(value, default=_plain_value))
        except TypeError as error:
            raise ReplayError(
                f"{id} was made with {name}={value!r}, which a file cannot hold: a replay needs numbers, strings, "
                "lists and dicts"
            ) from error
    return plain


def _plain_value(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, PurePath):
        return str(value)
    raise TypeError(type(value).__name__)


def _fixed_columns(sim: Simulation, lanes: LaneBytes) -> np.ndarray:
    """What may not change while a match runs: the rules' own fields, where an engine holds more than they say."""
    columns = np.arange(lanes.record_size if sim.game.physics is not None else 0)
    free = (
        "rng",
        "script_rng",
        "assigned_player",
        "strength",
        "parameters",
        "next_parameters",
        "seeded",
        "current_player",
    )
    for name in (name for name in free if name in (sim.game.state_dtype.names or ())):
        columns = np.setdiff1d(columns, lanes.columns_of(name))
    return columns


def _players(sim: Simulation) -> dict[str, str]:
    """Players by team, in words; agent by agent where a team has several."""
    words = {}
    for team, slots in sim.game.teams.items():
        assignments = [player_name(assignment.opponent) for assignment in sim.opponent_assignments.get(team, [])]
        by_agent = {sim.game.agents[slot]: _player_of(sim, slot, assignments) for slot in slots}
        one = len(set(by_agent.values())) == 1
        words[team] = by_agent[sim.game.agents[slots[0]]] if one else "; ".join(f"{a} {p}" for a, p in by_agent.items())
    return words


def _player_of(sim: Simulation, slot: int, assignments: list[str]) -> str:
    numbers = {int(number) for number in sim.states["assigned_player"][:, slot]}
    strengths = sorted(set(sim.states["strength"][:, slot].tolist()))
    grade = "" if strengths == [1.0] else ":" + "|".join(f"{strength:g}" for strength in strengths)
    names = [_player_name(sim, number) + grade for number in sorted(numbers - {CALLER})]
    if CALLER in numbers:
        names += assignments or ["caller"]
    return ", ".join(dict.fromkeys(names))


def _player_name(sim: Simulation, number: int) -> str:
    return {MIX: "mix", RANDOM: "random"}.get(number) or sim.game.scripts[number]
