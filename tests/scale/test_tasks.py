"""Work that outlives dead processes, without Ray: pieces are done once each, whatever dies."""

from __future__ import annotations

import heapq
import itertools
import time
import tracemalloc
from typing import Any

import numpy as np
import pytest

from palaestra.evaluation.matches import MATCH
from palaestra.scale.pieces import Job, pieces_of
from palaestra.scale.saved import SavedResults
from palaestra.scale.tasks import MOST_LOSSES, Lost, work_off


class SimulatedTasks:
    """Pieces that take a second of simulated time each; some are lost."""

    def __init__(self, lost: frozenset[int] = frozenset(), result: Any = None) -> None:
        """``lost`` are the numbers of the calls of `start` that come to nothing."""
        self.now_s, self.calls, self.cancelled, self.most = 0.0, 0, 0, 0
        self._lost, self._result = lost, result
        self._ends: list[tuple[float, int]] = []
        self._pieces: dict[int, Any] = {}

    def start(self, piece: Any) -> int:
        heapq.heappush(self._ends, (self.now_s + 1.0, self.calls))
        self._pieces[self.calls] = piece
        self.calls += 1
        self.most = max(self.most, len(self._ends))
        return self.calls - 1

    def wait(self, running: list[int]) -> list[int]:
        assert sorted(running) == sorted(number for _, number in self._ends)
        self.now_s = self._ends[0][0]
        ended = []
        while self._ends and self._ends[0][0] == self.now_s:
            ended.append(heapq.heappop(self._ends)[1])
        return ended

    def result(self, handle: int) -> Any:
        piece = self._pieces.pop(handle)
        if handle in self._lost:
            raise Lost("the machine is gone")
        if isinstance(piece, Exception):
            raise piece
        return piece if self._result is None else self._result(piece)

    def cancel(self, running: list[int]) -> None:
        self.cancelled += len(running)


def test_each_piece_is_done_once_and_lost_ones_again():
    tasks = SimulatedTasks(lost=frozenset({0, 3, 5, 8}))
    reports: list[tuple[int, int, int]] = []
    done = list(work_off(tasks, list("abcdefg"), 3, lambda *state: reports.append(state)))
    assert sorted(done) == list(enumerate("abcdefg"))
    assert (tasks.calls, tasks.most) == (11, 3)
    assert reports[0] == (0, 3, 0)
    assert reports[-1] == (7, 0, 4)
    assert all(a <= b for (a, *_), (b, *_) in itertools.pairwise(reports))


def test_each_wait_is_reported_also_where_nothing_has_changed():
    class SleepyTasks(SimulatedTasks):
        def wait(self, running: list[int]) -> list[int]:
            self.now_s += 0.5
            return super().wait(running) if self.now_s >= 1.0 else []

    reports: list[tuple[int, int, int]] = []
    assert list(work_off(SleepyTasks(), ["a"], 1, lambda *state: reports.append(state))) == [(0, "a")]
    assert reports == [(0, 1, 0), (0, 1, 0), (1, 0, 0)]


def test_an_error_of_a_piece_is_raised_and_the_others_are_cancelled():
    tasks = SimulatedTasks()
    with pytest.raises(ZeroDivisionError):
        list(work_off(tasks, ["a", ZeroDivisionError(), "b", "c"], 3))
    assert tasks.cancelled == 1


def test_leaving_early_cancels_what_is_in_work():
    tasks = SimulatedTasks()
    for _ in work_off(tasks, list(range(10)), 4):
        break
    assert tasks.cancelled == 3


def test_a_piece_that_kills_every_process_is_named():
    tasks = SimulatedTasks(lost=frozenset(range(1000)))
    with pytest.raises(RuntimeError, match="processes died over the piece, the last: the machine is gone"):
        list(work_off(tasks, ["the piece"], 1))
    assert tasks.calls == MOST_LOSSES + 1


@pytest.mark.check
def test_a_thousand_processes_cost_little_to_serve(tmp_path):
    """Matches by 1,000 simulated processes, a piece a second each: at most 5 % of their work, and 500 MB."""
    pieces = pieces_of(0, 7, (2_500_000, 2_500_000))
    job = Job("test/Nothing-v0", ("", "", "", {}), {}, ("a", "b"), {}, 64)
    tasks = SimulatedTasks(result=lambda piece: np.zeros(piece.count, MATCH))
    tracemalloc.start()
    try:
        began = time.process_time()
        with SavedResults(tmp_path / "results.npz", [job], pieces) as saved:
            for number, results in work_off(tasks, pieces, 1000):
                saved.add(number, results)
        spent_s, peak = time.process_time() - began, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    work_s = 1.0 * len(pieces)
    print(f"{len(pieces)} pieces, {spent_s:.2f} s of {work_s:.0f} s, {peak / 2**20:.0f} MB")
    assert tasks.most == 1000
    assert spent_s <= 0.05 * work_s
    assert spent_s <= 0.5 * tasks.now_s  # one process can serve them all
    assert peak <= 500 * 2**20
