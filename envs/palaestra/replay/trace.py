"""What a run of a simulation shows: the hashes of its lanes and the ends of its matches."""

from __future__ import annotations

from typing import Any

import numpy as np

from palaestra.core.compile.batch_loop import RUNNING, WAITING
from palaestra.core.run.simulation import Simulation
from palaestra.replay.lane_bytes import HashChain, LaneBytes


class Trace:
    """Follows a simulation operation by operation; recording and verification follow it in the same way.

    Attributes:
        operations: Operations so far.
        steps: Decisions among them.
        checks: Starts of the lanes' hashes, uint8 ``[N, 8]``, after every ``check_every`` operations.
        matches: Lane, decisions so far, winner and end reason of each finished match.
    """

    def __init__(self, sim: Simulation, check_every: int) -> None:
        """Nothing has happened yet."""
        self.operations = self.steps = 0
        self.checks: list[np.ndarray] = []
        self.matches: list[tuple[int, int, int, int]] = []
        self._sim, self._check_every = sim, check_every
        self._lanes, self._chain = LaneBytes(sim), HashChain(sim.num_envs)
        self._seen = self._lanes.read()
        self._pending = sim.states["pending"].copy()

    def lane_changed_by_hand(self, reset_lanes: np.ndarray | None = None) -> int:
        """First lane that is not as the last call left it, or -1.

        Results, which decide nothing, are free; so is what a reset, in ``reset_lanes`` (bool ``[N]``), writes anew.
        """
        differs = self._lanes.read() != self._seen
        differs[:, self._lanes.results] = False
        if reset_lanes is not None:
            differs[np.ix_(reset_lanes, self._lanes.written_at_reset)] = False
        lanes = np.flatnonzero(differs.any(axis=1))
        return int(lanes[0]) if len(lanes) else -1

    def changed(self) -> None:
        """A call other than a reset or a decision has happened."""
        self._seen = self._lanes.read()

    def before(self) -> None:
        """A reset or a decision is about to happen."""
        self._pending = self._sim.states["pending"].copy()

    def after(self, reset_lanes: np.ndarray | None) -> None:
        """A reset of some lanes (bool ``[N]``) has happened, or a decision (None)."""
        rows = self._lanes.read()
        untouched = ~reset_lanes if reset_lanes is not None else self._pending == WAITING
        kept = self._lanes.results if reset_lanes is not None else self._lanes.ends
        at = np.ix_(untouched, kept)
        rows[at] = self._seen[at]  # users may write into the results of a lane that does not move
        self._seen = rows
        self._chain.add(rows)
        self.operations += 1
        if reset_lanes is None:
            self.steps += 1
            self._note_ends()
        if self.operations % self._check_every == 0:
            self.checks.append(self._chain.check())

    def state(self) -> tuple[Any, ...]:
        """Where it is, for `go_back`."""
        lengths = len(self.checks), len(self.matches)
        return (self.operations, self.steps, self._seen, self._pending, self._chain.state(), lengths)

    def go_back(self, state: tuple[Any, ...]) -> None:
        """Forgets what has been followed since."""
        self.operations, self.steps, self._seen, self._pending, chain, (checks, matches) = state
        self._chain.set_state(chain)
        del self.checks[checks:], self.matches[matches:]

    def all_checks(self) -> list[np.ndarray]:
        """`checks`, and one at the end."""
        return self.checks + ([self._chain.check()] if self.operations % self._check_every else [])

    def digest(self) -> str:
        """SHA-256 of the whole run."""
        return self._chain.digest()

    def match_rows(self) -> np.ndarray:
        """`matches` as int64 ``[M, 4]``."""
        return np.array(self.matches, np.int64).reshape(-1, 4)

    def _note_ends(self) -> None:
        sim = self._sim
        over = (sim.terminated | sim.truncated) & (self._pending == RUNNING)
        info = sim.final_info if sim.autoreset_mode == "same_step" else sim.info
        for lane in np.flatnonzero(over).tolist():
            self.matches.append((lane, self.steps, int(info["winner"][lane]), int(info["end_reason"][lane])))
