"""Lanes of a simulation as rows of bytes: recording and verification compare and hash them."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from palaestra.core.run.simulation import Simulation
from palaestra.replay.file import CHECK_BYTES


class LaneBytes:
    """All bytes of a lane that decide or show how it continues: record without padding, masks, rewards and flags.

    Attributes:
        results: Columns of `read` that decide nothing: rewards and flags.
        ends: Columns of the flags of a lane's end, which a lane that waits keeps.
        written_at_reset: Columns that a reset writes anew.
    """

    def __init__(self, sim: Simulation) -> None:
        """Finds the bytes; the arrays of a simulation stay the same objects."""
        dtype: Any = sim.game.state_dtype
        segments = _segments(dtype)
        places = np.concatenate([np.arange(lo, hi) for lo, hi in segments])
        states = _bytes(sim.states)
        others = (sim.buffers.masks, sim.rewards, sim.terminated, sim.truncated, sim.agent_terminated)
        self._parts = [states[:, lo:hi] for lo, hi in segments] + [_bytes(a) for a in others]
        sizes = [part.shape[1] for part in self._parts]
        rewards, terminated, truncated, agent_terminated = range(len(sizes) - 4, len(sizes))
        starts = np.cumsum([0, *sizes])
        self.results = np.arange(starts[rewards], starts[agent_terminated] + sizes[agent_terminated])
        self.ends = np.arange(starts[terminated], starts[truncated] + sizes[truncated])
        outlives = places < dtype.fields["steps"][1]
        self.written_at_reset = np.concatenate([np.flatnonzero(~outlives), np.arange(len(places), starts[-1])])

    def read(self) -> np.ndarray:
        """A copy of all lanes, uint8 ``[N, B]``."""
        return np.concatenate(self._parts, axis=1)


def record_bytes(records: np.ndarray) -> bytes:
    """The bytes of match records without padding."""
    rows = _bytes(np.ascontiguousarray(records))
    return b"".join(rows[:, lo:hi].tobytes() for lo, hi in _segments(records.dtype))


class HashChain:
    """One running SHA-256 a lane."""

    def __init__(self, lanes: int) -> None:
        """Nothing hashed yet."""
        self._hashes = [hashlib.sha256() for _ in range(lanes)]

    def add(self, rows: np.ndarray) -> None:
        """Hashes the lanes after an operation, uint8 ``[N, B]``; all of them, or none if it is interrupted."""
        size = rows.shape[1]
        data = memoryview(rows.reshape(-1))  # type: ignore[arg-type]
        hashes = [chain.copy() for chain in self._hashes]
        for lane, chain in enumerate(hashes):
            chain.update(data[lane * size : (lane + 1) * size])
        self._hashes = hashes

    def state(self) -> Any:
        """What `set_state` takes."""
        return self._hashes

    def set_state(self, state: Any) -> None:
        """Goes back to an earlier state."""
        self._hashes = state

    def check(self) -> np.ndarray:
        """Start of each lane's hash, uint8 ``[N, 8]``."""
        joined = b"".join(chain.digest()[:CHECK_BYTES] for chain in self._hashes)
        return np.frombuffer(joined, np.uint8).reshape(-1, CHECK_BYTES)

    def digest(self) -> str:
        """Hash of the hashes of all lanes."""
        return hashlib.sha256(b"".join(chain.digest() for chain in self._hashes)).hexdigest()


def _bytes(array: np.ndarray) -> np.ndarray:
    return array.view(np.uint8).reshape(len(array), -1)


def _segments(dtype: np.dtype) -> list[tuple[int, int]]:
    """Spans of bytes of a record that hold a value, without the padding between them."""
    spans: list[tuple[int, int]] = []
    for lo, hi in _leaves(dtype, 0):
        if spans and spans[-1][1] == lo:
            spans[-1] = (spans[-1][0], hi)
        else:
            spans.append((lo, hi))
    return spans


def _leaves(dtype: np.dtype, offset: int) -> list[tuple[int, int]]:
    base, shape = dtype.subdtype or (dtype, ())
    if base.fields is None:
        return [(offset, offset + dtype.itemsize)] if dtype.itemsize else []
    leaves: list[tuple[int, int]] = []
    for element in range(int(np.prod(shape, dtype=np.int64))):
        members = sorted((place, member) for member, place, *_ in base.fields.values())
        for place, member in members:
            leaves += _leaves(member, offset + element * base.itemsize + place)
    return leaves
