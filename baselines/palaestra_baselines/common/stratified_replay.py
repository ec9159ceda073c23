"""A replay that draws a share of its sequences from matches that were paid.

Where rewards are sparse hardly any decision leads to one, and what is drawn uniformly holds nothing to learn from.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from palaestra_baselines.common.rollout import Decision, Replay, Sequences


class StratifiedReplay(Replay):
    """The last decisions of all lanes, and which of them belong to a match with any reward that is not 0.

    Attributes:
        share: Share of drawn sequences that begin in such a match, as far as there are any.
        marks: bool ``[rows, N]``: the decision belongs to a match that was paid, before the decision or after it.
        lengths: int64 ``[N]``: decisions so far of the match that is played.
        paid: bool ``[N]``: this match has been paid.
    """

    share = 0.0

    def __init__(self, rows: int, lanes: int) -> None:
        """Prepares the ring; arguments as in `Replay`."""
        super().__init__(rows, lanes)
        self.marks = np.zeros((rows, lanes), np.bool_)
        self.lengths, self.paid = np.zeros(lanes, np.int64), np.zeros(lanes, np.bool_)
        self._starts: np.ndarray | None = None

    def write_decision(self, decision: Decision) -> None:
        """Writes the decision, and marks all decisions of a match that is paid for the first time."""
        head, running = self.head, decision.running
        self.lengths = np.where(running, np.minimum(self.lengths + 1, self.rows - 1), 0)
        before = self.paid & running
        self.paid = before | ((decision.rewards != 0.0).any(1) & running)
        self.marks[head] = self.paid
        for lane in np.flatnonzero(self.paid & ~before):
            self.marks[(head - np.arange(self.lengths[lane])) % self.rows, lane] = True
        self._starts = None
        super().write_decision(decision)

    def sample_sequences(self, rng: np.random.Generator, size: int, length: int) -> Sequences:
        """Draws sequences of ``length`` decisions, `share` of them uniformly from starts in matches that were paid.

        Raises:
            ValueError: Fewer decisions of a lane have been written.
        """
        self._check_length(length)
        starts = self._paid_starts(length)
        marked = round(self.share * size) if len(starts) else 0
        chosen = starts[rng.integers(len(starts), size=marked)] if marked else np.zeros(0, np.int64)
        back = length + rng.integers(self.filled - length + 1, size=size - marked)
        rows = np.concatenate([chosen // self.lanes, self.head - back])
        lanes = np.concatenate([chosen % self.lanes, rng.integers(self.lanes, size=size - marked)])
        return self._sequences(rows, lanes, length)

    def _paid_starts(self, length: int) -> np.ndarray:
        """Marked decisions, as row * N + lane, from which ``length`` decisions have been written."""
        if self._starts is None:
            self._starts = np.flatnonzero(self.marks)
        age = (self.head - self._starts // self.lanes) % self.rows
        return self._starts[(age >= length) & (age <= self.filled)]

    def state(self) -> dict[str, Any]:
        """Contents for a checkpoint."""
        return {**super().state(), "marks": self.marks, "lengths": self.lengths, "paid": self.paid}

    def restore(self, state: dict[str, Any]) -> None:
        """Restores what `state` returned."""
        super().restore(state)
        self.marks, self.lengths, self.paid = (np.array(state[name]) for name in ("marks", "lengths", "paid"))
        self._starts = None
