"""Fair timing: the benchmarks take turns, in rounds, and the best round of each counts.

Other work on the machine only ever adds time, so the least of several interleaved rounds is nearest to the truth, and a
ratio of two of them is what carries over to other machines. Wall time counts where threads or processes work, the
thread's own CPU time elsewhere.

This module imports nothing of palaestra: processes that run another version of it measure with this one.
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
class Benchmark:
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
    """Best round of a benchmark.

    Attributes:
        wall_s: Seconds a call by the clock on the wall.
        cpu_s: Seconds a call of this thread's CPU time.
        size: As in `Benchmark`.
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
    benchmarks: Sequence[Benchmark],
    *,
    rounds: int = ROUNDS,
    round_s: float = ROUND_S,
    report_progress: Callable[[int, int], object] | None = None,
) -> list[Timing]:
    """Times benchmarks in turns.

    Args:
        benchmarks: What to time.
        rounds: Turns of each.
        round_s: Least seconds a turn.
        report_progress: Called with the numbers of finished and of all rounds.

    Returns:
        The best round of each, in their order.
    """
    calls = []
    for benchmark in benchmarks:
        warm_up(benchmark.call, WARM_UP_CALLS, WARM_UP_S)
        calls.append(calls_of(benchmark.call, round_s))
    best = [(float("inf"), float("inf"))] * len(benchmarks)
    with no_garbage_collection():
        for number in range(rounds):
            for k, benchmark in enumerate(benchmarks):
                wall, cpu = time_calls(benchmark.call, calls[k])
                best[k] = (min(best[k][0], wall / calls[k]), min(best[k][1], cpu / calls[k]))
            if report_progress is not None:
                report_progress(number + 1, rounds)
    return [Timing(wall, cpu, benchmark.size) for (wall, cpu), benchmark in zip(best, benchmarks, strict=True)]


def warm_up(call: Callable[[], object], calls: int, longest_s: float = float("inf")) -> None:
    """Plays into the middle of the matches: so many calls, or fewer if they take longer than ``longest_s`` seconds."""
    end = time.perf_counter() + longest_s
    for _ in range(calls):
        call()
        if time.perf_counter() > end:
            break


def calls_of(call: Callable[[], object], round_s: float) -> int:
    """How many calls fill a turn of ``round_s`` seconds; at least one."""
    calls = 1
    while True:
        wall, _ = time_calls(call, calls)
        if wall >= round_s / 4:
            return max(1, round(calls * round_s / wall))
        calls *= 4


def time_calls(call: Callable[[], object], calls: int) -> tuple[float, float]:
    """Seconds of so many calls: by the clock on the wall, and of this thread's CPU time."""
    cpu, wall = time.thread_time(), time.perf_counter()
    for _ in range(calls):
        call()
    return time.perf_counter() - wall, time.thread_time() - cpu


@contextmanager
def no_garbage_collection():
    """Keeps the garbage collector out of a round."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
