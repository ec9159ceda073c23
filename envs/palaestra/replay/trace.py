"""What a run of a simulation shows: its operations, the hashes of its lanes and the ends of its matches."""

from __future__ import annotations

import hashlib
from functools import partial
from typing import NamedTuple

import numpy as np

from palaestra.core.run.buffers import rows_of_bytes
from palaestra.core.run.simulation import Simulation
from palaestra.replay.lane_bytes import padding_mask
from palaestra.replay.lane_hashes import COLUMNS, HASH, SET, compiled_calls, lane_keys

ROOM = 64
"""Operations that the arrays of a trace hold at first; they grow by doubling."""


class Rows(NamedTuple):
    """What a trace has noted, with room for more.

    Attributes:
        log: int64 ``[K + 1, 3]``, after each operation: which it was, decisions and finished matches so far.
        lanes: bool ``[K, N]``, for which lanes each operation was.
        actions: int64 ``[K, N, W]``, by decision.
        checks: uint64 ``[K, N]``, hashes after every so many operations.
        matches: int64 ``[M, 4]``, lane, decisions so far, winner and end reason of each finished match.
    """

    log: np.ndarray
    lanes: np.ndarray
    actions: np.ndarray
    checks: np.ndarray
    matches: np.ndarray

    def with_more_room(self) -> Rows:
        """The same in arrays of twice the length."""
        return Rows(*map(_doubled, self))


def _doubled(array: np.ndarray) -> np.ndarray:
    longer = np.empty((2 * len(array), *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer


class Trace:
    """Follows a simulation call by call; recording and verification follow it in the same way.

    Attributes:
        operations: Operations so far, resets and decisions. All else that is valid follows from this number, which a
            call that was interrupted has not changed.
    """

    def __init__(self, sim: Simulation, check_every: int, words: np.ndarray | None = None) -> None:
        """Nothing has happened yet.

        Args:
            sim: What is followed; its arrays stay the same objects.
            check_every: Operations between two checks.
            words: `palaestra.core.contract.actions.ActionTable.words` whose actions are kept; none if None.
        """
        n, b = sim.num_envs, sim.buffers
        self.operations = 0
        self._everywhere = np.ones(n, np.bool_)
        self._check_every = check_every
        padding, masks, rewards = padding_mask(b.states.dtype), rows_of_bytes(b.masks), b.rewards.view(np.uint32)
        count = len(padding) + masks.shape[1] + rewards.shape[1] + b.agent_terminated.shape[1] + 1
        table = np.zeros((2, count), np.uint64)
        table[0, : len(padding)], table[1] = padding, lane_keys(count)
        columns = np.array([] if words is None else [words["agent"], words["column"]], np.int64).reshape(2, -1).T.copy()
        self._sums = np.zeros((2, n, COLUMNS), np.uint64)
        self._rows = Rows(
            log=np.zeros((ROOM + 1, 3), np.int64),
            lanes=np.empty((ROOM, n), np.bool_),
            actions=np.empty((ROOM, n, len(columns)), np.int64),
            checks=np.empty((ROOM, n), np.uint64),
            matches=np.empty((ROOM + n, 4), np.int64),
        )
        outlives = b.states.dtype.fields["steps"][1] // 8
        lanes = (b.states.view(np.uint64).reshape(n, -1), masks, table, self._sums, outlives, b.states["pending"])
        self._before = (*lanes, b.states["current_player"], b.action_words, columns)
        ends = (b.terminated, b.truncated, b.winners, b.end_reasons)
        self._after = (*lanes, rewards, b.agent_terminated, *ends)
        self._bind()

    def _bind(self) -> None:
        (begin, finish), rows = compiled_calls(), self._rows
        self._begin = partial(begin, *self._before, rows.log, rows.lanes, rows.actions)
        self._finish = partial(finish, *self._after, rows.log, rows.lanes, rows.checks, rows.matches, self._check_every)
        self._is_full = False

    def begin(self, call: int, which: np.ndarray | None = None) -> int:
        """A call is about to happen in some lanes (bool ``[N]``), or in all: see `palaestra.replay.lane_hashes`.

        Returns:
            The first lane that is not as the last call left it, or -1. What decides nothing is free, and so is what a
            reset writes anew.
        """
        if self._is_full:
            self._rows = self._rows.with_more_room()
            self._bind()
        return self._begin(call, self.operations, self._everywhere if which is None else which)

    def finish(self, call: int) -> None:
        """The call has happened."""
        self._is_full = self._finish(call, self.operations)
        if call != SET:
            self.operations += 1

    @property
    def steps(self) -> int:
        """Decisions so far."""
        return int(self._rows.log[self.operations, 1])

    @property
    def kinds(self) -> np.ndarray:
        """The operations, uint8 ``[K]``."""
        return self._rows.log[1 : self.operations + 1, 0].astype(np.uint8)

    @property
    def lanes(self) -> np.ndarray:
        """Those that each operation was for, bool ``[K, N]``."""
        return self._rows.lanes[: self.operations].copy()

    @property
    def actions(self) -> np.ndarray:
        """Those that came from outside, int64 ``[steps, N, W]``."""
        return self._rows.actions[: self.steps].copy()

    def check(self) -> np.ndarray:
        """The hashes now, uint8 ``[N, 8]``."""
        return self._sums[self.operations % 2, :, HASH].astype("<u8")[:, None].view(np.uint8)

    def checks(self) -> np.ndarray:
        """Those after every ``check_every`` operations and now, uint8 ``[C, N, 8]``."""
        count, rest = divmod(self.operations, self._check_every)
        checks = self._rows.checks[:count].astype("<u8")[..., None].view(np.uint8)
        return np.concatenate([checks, self.check()[None]]) if rest else checks

    def digest(self) -> str:
        """SHA-256 of the hashes of all lanes."""
        return hashlib.sha256(self.check().tobytes()).hexdigest()

    def match_rows(self) -> np.ndarray:
        """Lane, decisions so far, winner and end reason of each finished match, int64 ``[M, 4]``."""
        return self._rows.matches[: self._rows.log[self.operations, 2]].copy()
