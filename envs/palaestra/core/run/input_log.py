"""The inputs of an engine that cannot save its state: repeated from a match's start, they bring it back.

Each lane has a log of its own, which is dropped when the lane's match starts anew. All logs together take at most
`LOG_BYTES`: a lane that would go beyond gives its log up, and until its next match there are no snapshots.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from palaestra.core.contract.fields import member_offset

LOG_BYTES = 2**30
"""Most memory that the log of a simulation may take; where there are worker processes, in each of them."""
CHUNK_PERIODS = 256
"""Periods by which a lane's log grows."""


@dataclass(frozen=True)
class Inputs:
    """How the bodies of each lane came to where they are.

    Attributes:
        starts: Bodies ``[N, K]`` as they were before the engine loaded them.
        periods: For each lane the inputs of its periods, raw bytes ``[periods, K]``.
    """

    starts: np.ndarray
    periods: tuple[np.ndarray, ...]

    def part(self, lo: int, hi: int) -> Inputs:
        """The lanes [lo, hi)."""
        return Inputs(self.starts[lo:hi], self.periods[lo:hi])

    @staticmethod
    def joined(parts: Sequence[Inputs]) -> Inputs:
        """Consecutive lanes as one."""
        return Inputs(np.concatenate([p.starts for p in parts]), tuple(rows for p in parts for rows in p.periods))


class InputLog:
    """The starts of the bodies and the inputs since then, lane by lane."""

    def __init__(self, owner: str, bodies: np.ndarray, command_fields: Sequence[str]) -> None:
        """Watches bodies.

        Args:
            owner: Name of the game, for errors.
            bodies: View ``[N, K]`` of the bodies in the match records.
            command_fields: Members of a body that are inputs.

        Raises:
            ValueError: No inputs are named, or one that is no member of a body.
        """
        if not command_fields:
            raise ValueError(f"{owner}: an engine without save needs command_fields, the members that it reads")
        if unknown := [name for name in command_fields if name not in (bodies.dtype.names or ())]:
            members = ", ".join(bodies.dtype.names or ())
            raise ValueError(f"{owner}: command_fields of the engine name {unknown[0]!r}, a body has {members}")
        self._owner, self._bodies = owner, bodies
        spans = [(member_offset(bodies.dtype, name), bodies.dtype[name].itemsize) for name in command_fields]
        first, end = min(at for at, _ in spans), max(at + size for at, size in spans)
        record: Any = {"names": ["inputs"], "formats": [f"V{end - first}"], "offsets": [first]}
        record["itemsize"] = bodies.dtype.itemsize
        self._inputs = bodies.view(np.dtype(record))["inputs"]
        self._starts = bodies.copy()
        self._chunks: list[list[np.ndarray]] = [[] for _ in range(len(bodies))]
        self._lengths = [0] * len(bodies)
        self._given_up: set[int] = set()
        self.nbytes = 0

    def start(self, lanes: np.ndarray) -> None:
        """Begins anew in ``lanes``, whose bodies are about to be loaded."""
        self._starts[lanes] = self._bodies[lanes]
        for lane in lanes.tolist():
            self._drop(lane)
            self._given_up.discard(lane)
        if len(lanes) == len(self._lengths):
            self.nbytes = 0  # whatever an interrupt in `append` has left

    def append(self, lanes: np.ndarray) -> None:
        """Keeps the inputs of ``lanes``, for which a period is about to run."""
        inputs, chunks, lengths = self._inputs, self._chunks, self._lengths
        for lane in lanes.tolist():
            at = lengths[lane] % CHUNK_PERIODS
            if at > 0 or self._grow(lane):
                chunks[lane][-1][at] = inputs[lane]
                lengths[lane] += 1

    def _grow(self, lane: int) -> bool:
        """Makes room for more periods of a lane; False where its log is given up."""
        if lane in self._given_up:
            return False
        chunk = np.empty((CHUNK_PERIODS, *self._inputs.shape[1:]), self._inputs.dtype)
        if self.nbytes + chunk.nbytes > LOG_BYTES:
            self._drop(lane)
            self._given_up.add(lane)
            return False
        self._chunks[lane].append(chunk)
        self.nbytes += chunk.nbytes
        return True

    def _drop(self, lane: int) -> None:
        self.nbytes -= sum(chunk.nbytes for chunk in self._chunks[lane])
        self._chunks[lane] = []
        self._lengths[lane] = 0

    def save(self) -> Inputs:
        """A copy of all logs.

        Raises:
            RuntimeError: The log of a lane was given up; says what to do.
        """
        if self._given_up:
            lanes = ", ".join(map(str, sorted(self._given_up)[:8])) + ("" if len(self._given_up) <= 8 else ", ...")
            raise RuntimeError(
                f"{self._owner}: no snapshot or copy now. Its engine cannot save its state, and the log of its inputs "
                f"has reached {LOG_BYTES / 2**20:g} MiB, so that of lanes {lanes} was given up. It starts anew with "
                "their next match: reset them, take snapshots earlier, or simulate fewer lanes or a shorter horizon"
            )
        nothing = np.empty((0, *self._inputs.shape[1:]), self._inputs.dtype)
        periods = tuple(
            np.concatenate(chunks)[:length] if chunks else nothing
            for chunks, length in zip(self._chunks, self._lengths, strict=True)
        )
        return Inputs(self._starts.copy(), periods)

    def restart(self, saved: Inputs) -> None:
        """Writes the starts of a saved log into the bodies and begins there."""
        self._bodies[...] = saved.starts
        self.start(np.arange(len(self._bodies)))

    def repeat(self, saved: Inputs, lanes: np.ndarray, period: int) -> None:
        """Writes the inputs of a saved period into the bodies of ``lanes`` and keeps them."""
        for lane in lanes.tolist():
            self._inputs[lane] = saved.periods[lane][period]
        self.append(lanes)
