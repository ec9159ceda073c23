"""Recorded matches of a family of tasks as arrays, and what sequence models draw from them.

The number of a task says which matches belong together, and nothing else: no network reads it, and draws depend on the
order of the matches alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from palaestra_baselines.common.decision_transformers import HISTORY, Decisions, Scaling

PERCENTILE = 95.0
"""Of the returns in training tasks: what is aimed at in play."""


@dataclass(frozen=True)
class Matches:
    """N matches, each of at most T decisions; what lies behind the end of a match is 0.

    Attributes:
        states: Float32 ``[N, T + 1, n]``.
        actions: Float32 ``[N, T, m]``, in [-1, 1].
        rewards: Float32 ``[N, T]``.
        lengths: int64 ``[N]``: decisions of each match.
        tasks: int64 ``[N]``: number of the task of each.
    """

    states: np.ndarray
    actions: np.ndarray
    rewards: np.ndarray
    lengths: np.ndarray
    tasks: np.ndarray

    def __len__(self) -> int:
        """N."""
        return len(self.lengths)

    @property
    def weights(self) -> np.ndarray:
        """Float32 ``[N, T]``: 1 for decisions, 0 behind the end."""
        return (np.arange(self.rewards.shape[1]) < self.lengths[:, None]).astype(np.float32)

    @property
    def to_go(self) -> np.ndarray:
        """Float32 ``[N, T]``: rewards of a decision and of all after it."""
        return np.ascontiguousarray(np.cumsum(self.rewards[:, ::-1], 1)[:, ::-1])

    @property
    def digest(self) -> str:
        """SHA-256 of all numbers; those of tasks count by who shares one."""
        parts = (self.states, self.actions, self.rewards, self.lengths, first_of_task(self.tasks))
        return hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).hexdigest()


def gather_matches(episodes: Sequence[Any]) -> Matches:
    """Matches of a list of episodes.

    Args:
        episodes: Each has ``observations [T + 1, n]``, ``actions [T, m]`` in [-1, 1], ``rewards [T]`` and the number
            ``task``; T may differ.

    Raises:
        ValueError: There is none, or one does not fit itself or the first.
    """
    if not episodes:
        raise ValueError("no episode is given: at least one is needed")
    sizes = (episodes[0].observations.shape[1], episodes[0].actions.shape[1])
    for number, episode in enumerate(episodes):
        steps = len(episode.rewards)
        shapes = (episode.observations.shape, episode.actions.shape)
        if not steps or shapes != ((steps + 1, sizes[0]), (steps, sizes[1])):
            raise ValueError(
                f"episode {number} has observations {shapes[0]}, actions {shapes[1]} and {steps} rewards: these are "
                f"[T + 1, {sizes[0]}], [T, {sizes[1]}] and T >= 1"
            )
    lengths = np.array([len(episode.rewards) for episode in episodes], np.int64)
    longest, count = int(lengths.max()), len(episodes)
    states, actions = np.zeros((count, longest + 1, sizes[0]), np.float32), np.zeros((count, longest, sizes[1]))
    rewards = np.zeros((count, longest), np.float32)
    for number, episode in enumerate(episodes):
        states[number, : lengths[number] + 1] = episode.observations
        actions[number, : lengths[number]] = episode.actions
        rewards[number, : lengths[number]] = episode.rewards
    tasks = np.array([episode.task for episode in episodes], np.int64)
    return Matches(states, actions.astype(np.float32), rewards, lengths, tasks)


def first_of_task(tasks: np.ndarray) -> np.ndarray:
    """Index of the first match of each match's task, int64 ``[N]``: equal for equal tasks, whatever their numbers."""
    _, first, group = np.unique(tasks, return_index=True, return_inverse=True)
    return first[group]


class TaskGroups:
    """For each match the matches of the same task, among these or among others.

    Attributes:
        order: int64 ``[M]``: the matches that are drawn, those of a task side by side.
        start: int64 ``[N]``: where the task of each match begins there.
        size: int64 ``[N]``: how many matches its task has there.
        place: int64 ``[N]``: where each match stands there; None where others are drawn.
    """

    def __init__(self, tasks: np.ndarray, among: np.ndarray | None = None) -> None:
        """Sorts the matches.

        Args:
            tasks: Numbers of the tasks of all matches, ``[N]``.
            among: Those of the matches that are drawn, ``[M]``; the same matches if None.

        Raises:
            ValueError: A task has none.
        """
        labels = first_of_task(np.concatenate([tasks, tasks if among is None else among]))
        own, drawn = labels[: len(tasks)], labels[len(tasks) :]
        self.order = np.argsort(drawn, kind="stable")
        self.place = np.argsort(self.order) if among is None else None
        self.start, end = (np.searchsorted(drawn[self.order], own, side=side) for side in ("left", "right"))
        self.size = end - self.start
        if not self.size.all():
            raise ValueError(f"no match to draw from in task {tasks[np.argmin(self.size)]}")

    def draw(self, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A match of the task of each of ``rows``, drawn uniformly; another one, as far as there is one."""
        size, start = self.size[rows], self.start[rows]
        if self.place is None:
            return self.order[start + rng.integers(size)]
        shift = rng.integers(np.maximum(size - 1, 1)) + (size > 1)
        return self.order[start + (self.place[rows] - start + shift) % size]


@dataclass(frozen=True)
class Learnable:
    """Scaled matches as tensors, see `Matches`.

    Attributes:
        decisions: ``[N, T, ...]``.
        to_go: ``[N, T]``.
        weights: ``[N, T]``.
    """

    decisions: Decisions
    to_go: torch.Tensor
    weights: torch.Tensor

    def rows(self, z: torch.Tensor) -> torch.Tensor:
        """Rows ``[N, T, R]`` with contexts z ``[N, T, context]``, see `DecisionTransformer`."""
        states, actions, rewards, _ = self.decisions
        return torch.cat([states, self.to_go[..., None], actions, rewards[..., None], z], -1)

    def histories(self, rows: torch.Tensor, at: torch.Tensor) -> tuple[Decisions, torch.Tensor]:
        """The `HISTORY` decisions ``[B, HISTORY, ...]`` before decisions ``at [B]`` of matches, and which are there."""
        steps = at[:, None] + torch.arange(-HISTORY, 0)
        return self.decisions.at(rows[:, None], steps.clamp(min=0)), steps >= 0


def fit_scaling(matches: Matches) -> Scaling:
    """Scaling by the matches, which are those of training tasks."""
    scaling, kept = Scaling(matches.states.shape[2]), matches.weights > 0.0
    before = matches.states[:, :-1]
    samples = {
        "state": before[kept],
        "change": (matches.states[:, 1:] - before)[kept],
        "reward": matches.rewards[kept],
        "to_go": matches.to_go[kept],
    }
    scaling.fit(**{name: torch.from_numpy(values) for name, values in samples.items()})
    return scaling


def target_of(matches: Matches) -> float:
    """The return that is aimed at in play, in every task of a family: a high one of its training tasks."""
    return float(np.percentile(matches.rewards.sum(1, dtype=np.float64), PERCENTILE))


def make_learnable(matches: Matches, scaling: Scaling) -> Learnable:
    """Matches as networks read them; what lies behind the end of a match is 0."""
    weights = torch.from_numpy(matches.weights)
    states, rewards, to_go = (torch.from_numpy(x) for x in (matches.states, matches.rewards, matches.to_go))
    inside = weights[..., None]
    decisions = Decisions(
        scaling("state", states[:, :-1]) * inside,
        torch.from_numpy(matches.actions) * inside,
        scaling("reward", rewards) * weights,
        scaling("change", states[:, 1:] - states[:, :-1]) * inside,
    )
    return Learnable(decisions, scaling("to_go", to_go) * weights, weights)


def largest_segments(errors: torch.Tensor, lengths: np.ndarray, size: int) -> torch.Tensor:
    """First decision of the segment of ``size`` decisions with the largest sum of errors in each match, int64 ``[N]``.

    Args:
        errors: ``[N, T]``, T >= size.
        lengths: ``[N]``; a segment lies within its match, that of a shorter match begins at its start.
        size: Decisions of a segment.
    """
    sums = errors.unfold(1, size, 1).sum(-1)
    last = torch.from_numpy(np.maximum(lengths - size, 0))
    return sums.masked_fill(torch.arange(sums.shape[1]) > last[:, None], -torch.inf).argmax(1)
