"""Threads that each work on a slice of the lanes."""

import threading
import time
import weakref
from typing import Any

import pytest

from palaestra.core.run.lane_threads import LaneThreads

EDGES = [0, 2, 5, 9]


def test_each_slice_is_worked_on_once_by_its_thread():
    threads, seen = LaneThreads(3), []
    for _ in range(50):
        seen.clear()
        threads.run(lambda lo, hi, t: seen.append((lo, hi, t)), EDGES)
        assert sorted(seen) == [(0, 2, 0), (2, 5, 1), (5, 9, 2)]
    threads.end()


def test_the_error_of_the_first_slice_is_raised_when_all_are_done():
    threads, done = LaneThreads(3), []

    def work(lo: int, hi: int, t: int) -> None:
        if t:
            raise ValueError(f"slice {t}")
        done.append(t)

    with pytest.raises(ValueError, match="slice 1"):
        threads.run(work, EDGES)
    threads.run(lambda lo, hi, t: done.append(t), EDGES)
    assert sorted(done) == [0, 0, 1, 2]
    threads.end()


def test_after_an_interrupt_of_the_caller_late_slices_are_waited_for_and_not_taken_for_new_ones():
    threads, go_on, done = LaneThreads(2), threading.Event(), []

    def interrupted(lo: int, hi: int, t: int) -> None:
        if t == 0:
            raise KeyboardInterrupt
        go_on.wait()
        done.append("late")

    with pytest.raises(KeyboardInterrupt):
        threads.run(interrupted, EDGES)
    threading.Timer(0.05, go_on.set).start()

    def slow(lo: int, hi: int, t: int) -> None:
        time.sleep(0.05 * t)
        done.append(t)

    threads.run(slow, EDGES)
    assert done == [0, "late", 1]
    go_on.clear()
    with pytest.raises(KeyboardInterrupt):
        threads.run(interrupted, EDGES)
    threading.Timer(0.05, go_on.set).start()
    threads.end()
    threads.end()
    assert done == [0, "late", 1, "late"]


def test_nothing_of_the_work_is_kept():
    class Work:
        def __call__(self, *arguments: Any) -> None:
            pass

    work, threads = Work(), LaneThreads(2)
    threads.run(work, EDGES)
    kept = weakref.ref(work)
    threads.run(lambda *arguments: None, EDGES)  # the thread has come back from the work before
    del work
    assert kept() is None
    threads.end()


def test_threads_that_nobody_needs_end():
    threads = LaneThreads(3)
    threads.run(lambda *arguments: None, EDGES)
    before = threading.active_count()
    del threads
    deadline = time.monotonic() + 10.0
    while threading.active_count() > before - 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() == before - 2
