"""Threads that each work on a slice of the lanes; an interrupt of the caller anywhere leaves none of them stuck.

`concurrent.futures` hands work over with locks of Python. Ctrl-C between taking such a lock and the block that gives it
back leaves it taken, and a thread that needs it waits for ever. Here all hand-overs are calls of `queue.SimpleQueue`,
which is written in C: an interrupt comes before or after them.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from threading import Thread
from typing import Any

Call = Callable[[int, int, int], Any]
"""``call(lo, hi, t)`` works on lanes lo to hi with the work memory of thread t."""


class LaneThreads:
    """Threads 1 to ``count - 1``; the caller is thread 0.

    Attributes:
        pid: The process that they live in: threads do not survive a fork.
    """

    def __init__(self, count: int) -> None:
        """Starts them. Without a call of `end` they end when this object is collected."""
        self.pid = os.getpid()
        self._done: SimpleQueue = SimpleQueue()
        self._inboxes: list[SimpleQueue] = [SimpleQueue() for _ in range(1, count)]
        weakref.finalize(self, _dismiss, self._inboxes)
        self._threads = [Thread(target=_work, args=(inbox, self._done), daemon=True) for inbox in self._inboxes]
        for thread in self._threads:
            thread.start()

    def run(self, call: Call, edges: Sequence[int]) -> None:
        """Works on all slices side by side, and returns when the last one is done.

        After an exception in the caller's own slice the others may still be running: see `end`.

        Args:
            call: The work.
            edges: Slice t is ``edges[t]`` to ``edges[t + 1]``.

        Raises:
            BaseException: That of the first slice that failed; all of them are done then.
        """
        ticket = object()  # what an interrupted run has left in the queue is not taken for this one's
        for t, inbox in enumerate(self._inboxes, 1):
            inbox.put((ticket, call, edges[t], edges[t + 1], t))
        call(edges[0], edges[1], 0)
        errors: dict[int, BaseException] = {}
        missing = len(self._inboxes)
        while missing:
            of, t, error = self._done.get()
            if of is not ticket:
                continue
            missing -= 1
            if error is not None:
                errors[t] = error
        if errors:
            raise errors[min(errors)]

    def end(self) -> None:
        """Lets them finish what they have begun and waits for that; may be called again after an interrupt."""
        if self.pid != os.getpid():
            return
        _dismiss(self._inboxes)
        for thread in self._threads:
            thread.join()


def _dismiss(inboxes: list[SimpleQueue]) -> None:
    """Tells the threads of some inboxes to end after what they have begun."""
    for inbox in inboxes:
        inbox.put(None)


def _work(inbox: SimpleQueue, done: SimpleQueue) -> None:
    while (job := inbox.get()) is not None:
        ticket, call, lo, hi, t = job
        error = None
        try:
            call(lo, hi, t)
        except BaseException as raised:
            error = raised
        done.put((ticket, t, error))
        del job, call, error  # nothing of a simulation is kept alive between two steps
