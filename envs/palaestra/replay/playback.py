"""Re-simulation of a replay: step by step for pictures and tables, or to the end for verification."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from palaestra import __version__, registry
from palaestra.core.actions import ActionError
from palaestra.core.game import Game
from palaestra.core.identity import rules_digest
from palaestra.core.simulation import Simulation
from palaestra.replay.file import STEP, Replay, ReplayError
from palaestra.replay.lane_bytes import HashChain, LaneBytes
from palaestra.replay.provenance import engine_key


@dataclass(frozen=True)
class Verification:
    """Whether a replay repeated bitwise.

    Attributes:
        ok: All hashes are equal.
        steps: Decisions played.
        digest: SHA-256 of the run as it was played now.
        lane: First lane that diverged, -1 if none.
        first_step: Number of decisions after which that lane was still equal.
        last_step: Number of decisions after which it was not.
    """

    ok: bool
    steps: int
    digest: str
    lane: int = -1
    first_step: int = -1
    last_step: int = -1

    def __str__(self) -> str:
        """One line for people."""
        if self.ok:
            return f"the replay repeats bitwise: {self.steps} decisions, {self.digest[:16]}"
        if self.lane < 0:
            return "the replay repeats, but its digest is not that of the file"
        if self.last_step - self.first_step <= 1:
            return f"the replay diverges: lane {self.lane}, decision {self.last_step}"
        return f"the replay diverges: lane {self.lane}, between decision {self.first_step + 1} and {self.last_step}"


def verify(replay: Replay) -> Verification:
    """Plays a replay to the end and compares the hashes.

    Raises:
        ReplayError: It was recorded under other rules or with another engine; says which.
    """
    checks = iter(replay.checks)
    good, steps = 0, 0
    chain: HashChain | None = None
    lanes: LaneBytes | None = None
    for operation, sim in enumerate(_operations(replay), 1):
        lanes, chain = lanes or LaneBytes(sim), chain or HashChain(replay.num_envs)
        chain.add(lanes.read())
        steps += int(replay.operations[operation - 1] == STEP)
        if operation % replay.check_every and operation != len(replay.operations):
            continue
        differs = (chain.check() != next(checks, -1)).any(axis=-1)
        if differs.any():
            return Verification(False, steps, chain.digest(), int(np.flatnonzero(differs)[0]), good, steps)
        good = steps
    assert chain is not None, "a replay has a reset"
    return Verification(chain.digest() == replay.digest, steps, chain.digest())


def frames(replay: Replay) -> Iterator[Simulation]:
    """The simulation after the first reset and after every decision and further reset; it is closed at the end.

    Raises:
        ReplayError: It was recorded under other rules or with another engine; says which.
    """
    return _operations(replay)


def check_fits(replay: Replay) -> Game:
    """The rules of a replay, if they are those that it was recorded under.

    Raises:
        ReplayError: They are not, or the engine is another; says what differs.
    """
    made = f"the replay was recorded by palaestra {replay.palaestra}, this is {__version__}"
    try:
        game, _ = registry.make_game(replay.id, **replay.keywords)
    except (KeyError, TypeError, ValueError) as error:
        name, _, version = replay.id.rpartition("-v")
        other = [id for id in registry.ROWS if id.rpartition("-v")[0] == name]
        if replay.id not in registry.ROWS and other:
            raise ReplayError(f"{name} is not played as -v{version} here but as {', '.join(other)}: {made}") from error
        hint = "" if replay.id in registry.ROWS else "; import the module that registers it first"
        raise ReplayError(f"{error.args[0] if error.args else error} ({made}{hint})") from error
    now = engine_key(game)
    if replay.engine != now:
        raise ReplayError(
            f"{replay.id} repeats only with the engine and platform that recorded it: {replay.engine or 'none'}; "
            f"this is {now or 'none'}"
        )
    rules = rules_digest(game)
    if replay.rules != rules:
        raise ReplayError(f"the rules of {replay.id} are other ones (digest {rules}, not {replay.rules}): {made}")
    return game


def _operations(replay: Replay) -> Iterator[Simulation]:
    check_fits(replay)
    sim = registry.make_batch(
        replay.id, replay.num_envs, **{**replay.keywords, "autoreset_mode": replay.autoreset_mode}
    )
    sim.lane_seeds[...] = np.array(replay.seeds, np.uint64)
    lanes = LaneBytes(sim)
    change = steps = resets = 0
    try:
        for number, operation in enumerate(replay.operations):
            while change < len(replay.changes) and replay.change_operations[change] == number:
                _put(lanes, int(replay.change_lanes[change]), replay.changes[change])
                change += 1
            if operation == STEP:
                _step(sim, replay.actions[steps])
                steps += 1
            else:
                sim.reset(replay.reset_lanes[resets])
                resets += 1
            yield sim
    finally:
        sim.close()


def _put(lanes: LaneBytes, lane: int, row: np.ndarray) -> None:
    try:
        lanes.write(lane, row)
    except ValueError as error:
        raise ReplayError(f"the replay does not fit the match record of its rules: {error}") from error


def _step(sim: Any, words: np.ndarray) -> None:
    columns = sim.action_table.words["column"]
    if words.shape != (sim.num_envs, len(columns)):
        raise ReplayError(f"the replay has actions of shape {words.shape}, the rules of {(sim.num_envs, len(columns))}")
    sim.buffers.action_words[:, columns] = words
    try:
        sim.step()
    except ActionError as error:
        raise ReplayError(f"the replay holds an action that the rules refuse: {error}") from error
