"""The process does not matter: hashes of strings, the current folder, time, environment, number of the process."""

from __future__ import annotations

import os
import pickle
import sys
import time
from contextlib import suppress

from palaestra import registry
from palaestra.testing import other_process
from palaestra.testing.harness import CheckError, Skipped, conformance
from palaestra.testing.other_process import LANES, Task, names_files
from palaestra.testing.subject import Level, Subject

CPU_S: dict[Level, float] = {"preset": 0.0, "fast": 0.01, "full": 1.0}
"""Processor time of decisions as plain Python, in each of two processes."""
MOST: dict[Level, int] = {"preset": 1, "fast": 6, "full": 60}
"""Decisions at most."""


def _begin() -> None:
    with suppress(OSError):
        other_process.start()


@conformance(order=219, prepare=_begin)
def another_process_plays_the_same(subject: Subject) -> None:
    """Another process makes the same game and plays the same matches, codecs and texts included.

    It has other hashes of strings, another folder, time and environment. Rules are plain Python in both.
    """
    draw, scripts = subject.draw, subject.game.scripts
    script = draw.choice("script", scripts) if scripts else ""
    row, keywords, seed = registry.row(subject.id), subject.batch_keywords, draw.seed()
    folder = os.getcwd() if names_files({**row.kwargs, **keywords}) else None
    sim = subject.batch(LANES, compiled=False)
    task = Task(row, keywords, seed, script, _decisions(subject, seed), folder, [os.path.abspath(p) for p in sys.path])
    ours = other_process.trace(sim, task)
    for number in range(1, 4 if subject.level == "full" else 2):
        try:
            theirs = other_process.ask(task, number)
        except (OSError, LookupError, pickle.PicklingError, AttributeError, TypeError) as error:
            raise Skipped(f"no other process can be asked: {error}") from None
        except RuntimeError as error:
            raise CheckError(f"another process cannot play this: {error}") from None
        for (what, here), (_, there) in zip(ours, theirs, strict=True):
            if here != there:
                raise CheckError(
                    f"another process has other digests of {what}, from the same seed: something depends on hash(), "
                    "the order of a set, the current folder, the time, the environment or the process"
                )
    subject.note(f"{task.decisions} decisions of {LANES} lanes")


def _decisions(subject: Subject, seed: int) -> int:
    """How many decisions of plain Python are played in a moment."""
    sim = subject.batch(LANES, compiled=False)
    sim.reset(seed=seed)
    started, number = time.process_time(), 0
    while number < MOST[subject.level] and time.process_time() - started < CPU_S[subject.level]:
        sim.step()
        number += 1
    return max(number, 1)
