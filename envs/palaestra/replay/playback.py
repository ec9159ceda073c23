"""Re-simulation of a replay: step by step for pictures and tables, or to the end for verification."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from palaestra import __version__, registry
from palaestra.core.compile.identity import rules_digest
from palaestra.core.files import printable_error
from palaestra.core.run.simulation import MODES, Simulation
from palaestra.game import Game
from palaestra.replay.changes import ChangePlayer
from palaestra.replay.file import LARGEST, STEP, Replay, ReplayError, check_keywords
from palaestra.replay.lane_hashes import SET
from palaestra.replay.player_texts import player_texts
from palaestra.replay.provenance import engine_key
from palaestra.replay.trace import Trace


@dataclass(frozen=True)
class Verification:
    """Whether a replay repeated bitwise, and whether its own account of the run is true.

    Names of Python players and the version of palaestra cannot be verified.

    Attributes:
        ok: All hashes are equal, and so is the file's account of the run.
        steps: Decisions played.
        digest: `Replay.digest` of the run as it was played now.
        lane: First lane that diverged, -1 if none.
        first_step: Number of decisions after which that lane was still equal.
        last_step: Number of decisions after which it was not.
        wrong: Parts of the file's account that are not true: of ``matches``, ``players``, ``seeds``, ``digest``.
    """

    ok: bool
    steps: int
    digest: str
    lane: int = -1
    first_step: int = -1
    last_step: int = -1
    wrong: tuple[str, ...] = ()

    def __str__(self) -> str:
        """One line for people."""
        if self.ok:
            return f"the replay repeats bitwise: {self.steps} decisions, {self.digest[:16]}"
        if self.wrong == ("digest",):
            return "the replay repeats, but its digest is not that of the file"
        if self.lane < 0:
            return f"the replay repeats, but the file gives other {' and '.join(self.wrong)} than were played"
        if self.last_step - self.first_step <= 1:
            return f"the replay diverges: lane {self.lane}, decision {self.last_step}"
        return f"the replay diverges: lane {self.lane}, between decision {self.first_step + 1} and {self.last_step}"


def verify(replay: Replay) -> Verification:
    """Plays a replay to the end and compares the hashes, the ends of all matches, the players and the seeds.

    Raises:
        ReplayError: It was recorded under other rules or with another engine, or holds what they refuse; the message
            names it.
    """
    good = 0
    playback = trace = None
    for playback in _play(replay, traced=True):
        trace = playback.trace
        assert trace is not None
        if trace.operations % replay.check_every and trace.operations < len(replay.operations):
            continue
        differs = (trace.check() != replay.checks[(trace.operations - 1) // replay.check_every]).any(axis=-1)
        if differs.any():
            return Verification(False, trace.steps, trace.digest(), int(np.flatnonzero(differs)[0]), good, trace.steps)
        good = trace.steps
    assert playback is not None, "a replay has a reset"
    assert trace is not None
    claims = {
        "matches": np.array_equal(trace.match_rows(), replay.match_rows),
        "players": playback.players == dict(replay.players),
        "seeds": np.array_equal(playback.seeds, replay.seeds),
        "digest": trace.digest() == replay.digest,
    }
    wrong = tuple(name for name, is_so in claims.items() if not is_so)
    return Verification(not wrong, trace.steps, trace.digest(), wrong=wrong)


def frames(replay: Replay) -> Iterator[Simulation]:
    """The simulation after the first reset and after every decision and further reset; it is closed at the end.

    Raises:
        ReplayError: It was recorded under other rules or with another engine, or holds what they refuse; the message
            names it.
    """
    for playback in _play(replay):
        yield playback.sim


def check_fits(replay: Replay) -> Game:
    """The rules of a replay, if they are those that it was recorded under.

    Raises:
        ReplayError: They are not, or the engine is another; the message names the difference.
    """
    with _named(replay):
        return _fitting(replay)


@contextmanager
def _named(replay: Replay) -> Iterator[None]:
    """Lets every refusal begin with the file."""
    try:
        yield
    except ReplayError as error:
        if not replay.path or str(error).startswith(replay.path):
            raise
        raise ReplayError(f"{replay.path}: {error}") from error.__cause__


def _fitting(replay: Replay) -> Game:
    check_keywords(replay)  # the id may have been registered after the file was read
    made = f"the replay was recorded by palaestra {replay.palaestra}, this is {__version__}"
    try:
        game, _ = registry.make_game(replay.id, **replay.keywords)
    except Exception as error:  # the factory of a game, which may be a third party's, gets the keywords of the file
        name, _, version = replay.id.rpartition("-v")
        other = [id for id in registry.ROWS if id.rpartition("-v")[0] == name]
        if replay.id not in registry.ROWS and other:
            raise ReplayError(f"{name} is not played as -v{version} here but as {', '.join(other)}: {made}") from error
        hint = "" if replay.id in registry.ROWS else "; import the module that registers it first"
        raise ReplayError(f"{printable_error(error)} ({made}{hint})") from error
    now = engine_key(game)
    if replay.engine != now:
        raise ReplayError(
            f"{replay.id} repeats only with the engine and platform that recorded it: {replay.engine or 'none'}; "
            f"this is {now or 'none'}"
        )
    rules = rules_digest(game)
    if replay.rules != rules:
        raise ReplayError(f"the rules of {replay.id} are other ones (digest {rules}, not {replay.rules}): {made}")
    if (replay.teams, replay.end_reasons) != (list(game.teams), list(game.all_end_reasons)):
        raise ReplayError(f"the replay names other teams or end reasons than {replay.id} has")
    return game


class Playback:
    """A simulation that plays a replay.

    Attributes:
        sim: It.
        trace: What it shows, or None.
        players: The players at the first reset, as text.
        seeds: The seeds of the lanes then, uint64 ``[N]``.
    """

    def __init__(self, replay: Replay, *, traced: bool) -> None:
        """Makes the simulation and gives it the seeds.

        Raises:
            ReplayError: The rules are others, or refuse the content of the file.
        """
        game = check_fits(replay)
        lane_bytes = game.state_dtype.itemsize + game.observation_dtype.itemsize
        if replay.num_envs * lane_bytes > LARGEST:
            raise ReplayError(f"the replay has {replay.num_envs} lanes of {lane_bytes} bytes: too many to play")
        if replay.autoreset_mode not in MODES:
            raise ReplayError(f"the replay has the autoreset_mode {replay.autoreset_mode!r}, not one of {list(MODES)}")
        self._replay = replay
        self.players: dict[str, str] = {}
        self.seeds = replay.seeds
        self.sim: Any = None
        with _Refusals("its keywords are refused"):
            self.sim = registry.make_batch(
                replay.id, replay.num_envs, **{**replay.keywords, "autoreset_mode": replay.autoreset_mode}
            )
            self.sim.seed(replay.seeds)
        self.trace = Trace(self.sim, replay.check_every) if traced else None
        self._changes = ChangePlayer(self.sim, replay)
        self._change = self._steps = self._resets = 0

    def play(self, number: int) -> None:
        """Plays one operation and the changes before it.

        Raises:
            ReplayError: The rules refuse one of them.
        """
        replay, sim = self._replay, self.sim
        with _Refusals(f"operation {number} is refused"):
            while self._change < len(replay.change_operations) and replay.change_operations[self._change] == number:
                self._changes.play(self._change)
                if self.trace is not None:
                    self.trace.finish(SET)
                self._change += 1
            if number == 0:
                self.players, self.seeds = player_texts(sim, replay.outside), sim.lane_seeds.copy()
            kind = int(replay.operations[number])
            which = self._changes.step_lanes if kind == STEP else replay.reset_lanes[self._resets]
            if self.trace is not None:
                self.trace.begin(kind, which)
            if kind == STEP:
                _step(sim, replay.actions[self._steps], which)
                self._steps += 1
                self._changes.step_lanes = None
            else:
                sim.reset(which)
                self._resets += 1
            if self.trace is not None:
                self.trace.finish(kind)


class _Refusals:
    """Turns what a simulation raises into a `ReplayError`; a context manager."""

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None: ...

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, ValueError | TypeError | OverflowError | RuntimeError | MemoryError):
            raise ReplayError(f"the replay cannot be played, {self._what}: {printable_error(error)}") from error


def _play(replay: Replay, *, traced: bool = False) -> Iterator[Playback]:
    with _named(replay):
        playback = Playback(replay, traced=traced)
    try:
        for number in range(len(replay.operations)):
            with _named(replay):
                playback.play(number)
            yield playback
    finally:
        playback.sim.close()


def _step(sim: Any, words: np.ndarray, lanes: np.ndarray | None) -> None:
    columns = sim.action_table.words["column"]
    if words.shape != (sim.num_envs, len(columns)):
        raise ReplayError(f"the replay has actions of shape {words.shape}, the rules of {(sim.num_envs, len(columns))}")
    sim.buffers.action_words[:, columns] = words
    sim.step() if lanes is None else sim.step(lanes=lanes)
