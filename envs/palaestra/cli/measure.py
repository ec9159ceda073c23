"""Fair timing: the rivals take turns, in rounds, and the best round of each counts.

Other work on the machine only ever adds time, so the least of several interleaved rounds is nearest to the truth, and a
ratio of two of them is what carries over to other machines. Wall time counts where threads or processes work, the
thread's own CPU time elsewhere.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

ROUNDS = 7
ROUND_S = 0.05
WARM_UP_CALLS = 200
WARM_UP_S = 1.0


@dataclass(frozen=True)
class Subject:
    """Something to time.

    Attributes:
        name: For the table.
        call: One call.
        size: What a call does, in the unit of the table (decisions of lanes, of agents, frames).
        close: Called when all is measured.
    """

    name: str
    call: Callable[[], object]
    size: float = 1.0
    close: Callable[[], object] = lambda: None


@dataclass(frozen=True)
class Timing:
    """Best round of a subject.

    Attributes:
        wall_s: Seconds a call by the clock on the wall.
        cpu_s: Seconds a call of this thread's CPU time.
        size: As in `Subject`.
    """

    wall_s: float
    cpu_s: float
    size: float

    @property
    def per_second(self) -> float:
        """Units a second, by the wall."""
        return self.size / self.wall_s

    @property
    def ns(self) -> float:
        """Nanoseconds of CPU time a unit."""
        return 1e9 * self.cpu_s / self.size


def measure(
    subjects: Sequence[Subject],
    *,
    rounds: int = ROUNDS,
    round_s: float = ROUND_S,
    tell: Callable[[int, int], object] | None = None,
) -> list[Timing]:
    """Times subjects in turns.

    Args:
        subjects: What to time.
        rounds: Turns of each.
        round_s: Least seconds a turn.
        tell: Called with the numbers of finished and of all rounds.

    Returns:
        The best round of each, in their order.
    """
    calls = [_warm_up(subject, round_s) for subject in subjects]
    best = [(float("inf"), float("inf"))] * len(subjects)
    with _no_garbage_collection():
        for number in range(rounds):
            for k, subject in enumerate(subjects):
                wall, cpu = _time(subject.call, calls[k])
                best[k] = (min(best[k][0], wall / calls[k]), min(best[k][1], cpu / calls[k]))
            if tell is not None:
                tell(number + 1, rounds)
    return [Timing(wall, cpu, subject.size) for (wall, cpu), subject in zip(best, subjects, strict=True)]


def _warm_up(subject: Subject, round_s: float) -> int:
    """Plays into the middle of the matches and finds how many calls fill a turn."""
    end = time.perf_counter() + WARM_UP_S
    for _ in range(WARM_UP_CALLS):
        subject.call()
        if time.perf_counter() > end:
            break
    calls = 1
    while True:
        wall, _ = _time(subject.call, calls)
        if wall >= round_s / 4:
            return max(1, round(calls * round_s / wall))
        calls *= 4


def _time(call: Callable[[], object], calls: int) -> tuple[float, float]:
    cpu, wall = time.thread_time(), time.perf_counter()
    for _ in range(calls):
        call()
    return time.perf_counter() - wall, time.thread_time() - cpu


@contextmanager
def _no_garbage_collection():
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
