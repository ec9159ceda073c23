"""What a collector has recorded: a replay of single decisions, of sequences, or a rollout with its advantages.

One ring of rows serves all three. A row holds a position of all lanes and the decision there; the row after it holds
the position to which the decision led.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from palaestra_baselines.common.collector import OBSERVATIONS, Decision, Position


@dataclass(frozen=True)
class Batch:
    """Single decisions.

    Attributes:
        before: Positions ``[B, ...]`` before the decisions.
        after: Positions after them: where a match ended, its last one.
        actions: int64 ``[B, A]``.
        rewards: float32 ``[B, T]`` of each team.
        continues: float32 ``[B]``: 0 where a rule ended the match, else 1.
        weights: float32 ``[B]``: 0 where a lane started its next match, which is no decision, else 1.
    """

    before: Position
    after: Position
    actions: torch.Tensor
    rewards: torch.Tensor
    continues: torch.Tensor
    weights: torch.Tensor


@dataclass(frozen=True)
class Sequences:
    """Sequences of L successive decisions, time first. They may cross from one match to the next.

    Attributes:
        positions: Positions ``[L + 1, B, ...]``; ``positions.memory[0]`` is the recurrent state at the beginning.
        keeps: float32 ``[L + 1, B, A, 1]``: an agent's recurrent state before a position is multiplied by this: 0 at
            the start of a match and out of the match, else 1.
        actions: int64 ``[L, B, A]``.
        rewards: float32 ``[L, B, T]``.
        continues: float32 ``[L, B]``, as in `Batch`.
        weights: float32 ``[L, B]``, as in `Batch`.
    """

    positions: Position
    keeps: torch.Tensor
    actions: torch.Tensor
    rewards: torch.Tensor
    continues: torch.Tensor
    weights: torch.Tensor


class Replay:
    """The last decisions of all lanes.

    Attributes:
        arrays: Arrays ``[rows, N, ...]`` by name, allocated when something is first written.
        head: Row of the last position, whose decision is not written yet.
        filled: Rows of decisions that can be drawn.
    """

    def __init__(self, rows: int, lanes: int) -> None:
        """Prepares the ring.

        Args:
            rows: Decisions of a lane that are kept, plus one: the row at the head waits for its decision.
            lanes: N.
        """
        self.rows, self.lanes = rows, lanes
        self.arrays: dict[str, np.ndarray] = {}
        self._flat: dict[str, torch.Tensor] = {}
        self.head = self.filled = 0

    def _array(self, name: str, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        if name not in self.arrays:
            self.arrays[name] = np.zeros((self.rows, *shape), dtype)
            self._flat[name] = torch.from_numpy(self.arrays[name].reshape(self.rows * self.lanes, *shape[1:]))
        return self.arrays[name]

    def _write(self, name: str, value: np.ndarray) -> None:
        self._array(name, value.shape, value.dtype)[self.head] = value

    def write_position(self, position: Position) -> None:
        """Writes the position before the next decision."""
        for name, value in position.named().items():
            self._write(name, value)

    def write_decision(self, decision: Decision) -> None:
        """Writes the decision at the last position and moves to the next row."""
        for name, value in vars(decision).items():
            self._write(name, value)
        self.head = (self.head + 1) % self.rows
        self.filled = min(self.filled + 1, self.rows - 1)

    def observed(self) -> dict[str, np.ndarray]:
        """All observations that are kept, ``[rows * N, A_role, size]`` by role."""
        flat = {name: array[: self.filled] for name, array in self.arrays.items() if name.startswith(OBSERVATIONS)}
        return {n.removeprefix(OBSERVATIONS): rows.reshape(-1, *rows.shape[2:]) for n, rows in flat.items()}

    def sample(self, rng: np.random.Generator, size: int) -> Batch:
        """Draws single decisions uniformly."""
        rows = (self.head - 1 - rng.integers(self.filled, size=size)) % self.rows
        lanes = rng.integers(self.lanes, size=size)
        before = torch.from_numpy(rows * self.lanes + lanes)
        after = torch.from_numpy((rows + 1) % self.rows * self.lanes + lanes)
        return Batch(self._positions(before), self._positions(after), *self._decisions(before))

    def sample_sequences(self, rng: np.random.Generator, size: int, length: int) -> Sequences:
        """Draws sequences of ``length`` decisions uniformly from all that lie in the ring.

        Raises:
            ValueError: Fewer decisions of a lane have been written.
        """
        self._check_length(length)
        back = length + rng.integers(self.filled - length + 1, size=size)
        return self._sequences(self.head - back, rng.integers(self.lanes, size=size), length)

    def last(self, length: int) -> Sequences:
        """The last ``length`` decisions of all lanes: a rollout, ``B`` is N.

        Raises:
            ValueError: Fewer decisions of a lane have been written.
        """
        self._check_length(length)
        return self._sequences(np.array(self.head - length), np.arange(self.lanes), length)

    def _check_length(self, length: int) -> None:
        if not 1 <= length <= self.filled:
            raise ValueError(f"sequences of {length} decisions were asked for; {self.filled} of a lane are kept")

    def _sequences(self, starts: np.ndarray, lanes: np.ndarray, length: int) -> Sequences:
        rows = (starts + np.arange(length + 1)[:, None]) % self.rows
        index = torch.from_numpy(rows * self.lanes + lanes)
        positions = self._positions(index)
        keeps = (positions.alive & ~positions.first[..., None])[..., None].float()
        return Sequences(positions, keeps, *self._decisions(index[:-1]))

    def _positions(self, index: torch.Tensor) -> Position:
        names = [name for name in self._flat if name not in Decision.__dataclass_fields__]
        return Position.from_named({name: self._flat[name][index] for name in names})

    def _decisions(self, index: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        actions, rewards, terminated, running = (self._flat[name][index] for name in Decision.__dataclass_fields__)
        return actions.long(), rewards, 1.0 - terminated.float(), running.float()

    def state(self) -> dict[str, Any]:
        """Contents for a checkpoint: the rows that have been written."""
        used = self.rows if self.filled == self.rows - 1 else self.filled + 1
        return {"head": self.head, "filled": self.filled, "arrays": {n: a[:used] for n, a in self.arrays.items()}}

    def restore(self, state: dict[str, Any]) -> None:
        """Restores what `state` returned."""
        self.head, self.filled = state["head"], state["filled"]
        for name, array in state["arrays"].items():
            self._array(name, array.shape[1:], array.dtype)[: len(array)] = array


def generalised_advantages(
    rollout: Sequences, rewards: torch.Tensor, values: torch.Tensor, gamma: float, gae_lambda: float
) -> torch.Tensor:
    """Advantages by generalised advantage estimation (Schulman et al., arXiv 1506.02438).

        delta_t = r_t + gamma V_{t+1} - V_t,    A_t = delta_t + gamma lambda A_{t+1}

    V_{t+1} is 0 where a rule ended the match, and that of the last position where the horizon truncated it; A_{t+1} is
    0 in both cases.

    Args:
        rollout: Says where matches end.
        rewards: ``[L, B, K]``, of teams or of agents.
        values: ``[L + 1, B, K]``, of the positions.
        gamma: Discount per decision.
        gae_lambda: Decay of the estimate.

    Returns:
        ``[L, B, K]``; 0 where a lane started its next match. Added to ``values[:-1]`` they are the targets of the
        values.
    """
    continues, weights = rollout.continues[..., None], rollout.weights[..., None]
    deltas = rewards + gamma * continues * values[1:] - values[:-1]
    decays = gamma * gae_lambda * continues
    advantages, carried = torch.empty_like(deltas), torch.zeros_like(deltas[0])
    for t in range(len(deltas) - 1, -1, -1):
        carried = weights[t] * (deltas[t] + decays[t] * carried)
        advantages[t] = carried
    return advantages
