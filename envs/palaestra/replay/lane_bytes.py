"""Lanes of a simulation as rows of bytes: a recorder compares and hashes them, playback restores them."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from palaestra.core.simulation import Simulation
from palaestra.replay.file import CHECK_BYTES


class LaneBytes:
    """All bytes of a lane that decide or show how it continues: record without padding, masks, rewards and flags."""

    def __init__(self, sim: Simulation) -> None:
        """Finds the bytes; arrays are read anew each time, as ``out=`` may name others."""
        self._sim = sim
        self._segments = _segments(sim.game.state_dtype)
        self.record_size = sum(hi - lo for lo, hi in self._segments)
        self._dtype = sim.game.state_dtype

    def _parts(self) -> list[np.ndarray]:
        sim = self._sim
        states = _bytes(sim.states)
        others = (sim.buffers.masks, sim.rewards, sim.terminated, sim.truncated, sim.agent_terminated)
        return [states[:, lo:hi] for lo, hi in self._segments] + [_bytes(a) for a in others]

    def read(self) -> np.ndarray:
        """A copy of all lanes, uint8 ``[N, B]``."""
        return np.concatenate(self._parts(), axis=1)

    def write(self, lane: int, row: np.ndarray) -> None:
        """Restores a lane, uint8 ``[B]``.

        Raises:
            ValueError: The row is of another record.
        """
        start = 0
        for part in self._parts():
            part[lane] = row[start : start + part.shape[1]]
            start += part.shape[1]
        if start != len(row):
            raise ValueError(f"a lane has {start} bytes, the row has {len(row)}")

    def columns_of(self, field: str) -> np.ndarray:
        """Columns of `read` that belong to a field of the match record."""
        members: Any = self._dtype.fields
        dtype, offset = members[field][:2]
        places = np.concatenate([np.arange(lo, hi) for lo, hi in self._segments])
        return np.flatnonzero((places >= offset) & (places < offset + dtype.itemsize))


class HashChain:
    """One running SHA-256 a lane."""

    def __init__(self, lanes: int) -> None:
        """Nothing hashed yet."""
        self._hashes = [hashlib.sha256() for _ in range(lanes)]

    def add(self, rows: np.ndarray) -> None:
        """Hashes the lanes after an operation, uint8 ``[N, B]``."""
        size = rows.shape[1]
        data = memoryview(rows.reshape(-1))  # type: ignore[arg-type]
        for lane, chain in enumerate(self._hashes):
            chain.update(data[lane * size : (lane + 1) * size])

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
