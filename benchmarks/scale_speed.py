"""Speed measurements of `palaestra.scale`: processes of a Ray cluster on this machine next to one process."""

from __future__ import annotations

import contextlib
import io
import os
import re
import time
from typing import Any

import numpy as np

from measurement import Measurement, NotHere, ReportProgress
from palaestra import evaluation, scale
from palaestra.scale.cluster import RayTasks, connected
from palaestra.scale.tasks import work_off

ACTORS = 2
EVALUATIONS: tuple[tuple[str, str, str, int, float], ...] = (
    ("palaestra/TeamTag-v0", "default", "default", 20_000, 1.6),
    ("palaestra/UcavDogfight-v2", "expert", "lead_pursuit", 200, 1.7),
)
"""Game, players, matches, and the bar of the speed-up."""
START_BAR_S = 8.0
TRIES = 5
"""Runs of each kind, one after the other in turn; the fastest counts."""
PIECES = 2000
"""Pieces without work that show what Ray and the driver do for each."""


def evaluations(report_progress: ReportProgress) -> list[Measurement]:
    """Evaluations by two processes of Ray over one process without it, and how long the processes take to start."""
    measurements = []
    for id, a, b, matches, bar in EVALUATIONS:
        ones, twos, starts = [], [], []
        with cluster():
            for number in range(TRIES + 1):  # the first one compiles and loads
                report_progress(f"{id} {number}/{TRIES}")
                began = time.perf_counter()
                one = evaluation.evaluate(id, a, b, matches=matches)
                ones.append(time.perf_counter() - began)
                two, wall_s, start_s = by_ray(id, a, b, matches)
                twos.append(wall_s)
                starts.append(start_s)
                if not np.array_equal(one.results, two.results):
                    raise RuntimeError(f"{id}: the tables differ")
        one_s, two_s = min(ones[1:]), min(twos[1:])
        note = f"s: {one_s:.2f} to {two_s:.2f}, {matches / two_s:,.0f} matches/s, {os.cpu_count()} cores"
        about = f"{matches:,} matches of {id}, {ACTORS} processes of Ray over one process, speed-up"
        measurements.append(Measurement("", about, one_s / two_s, bar, True, note))
    report_progress("start")
    id, a, b, matches, _ = EVALUATIONS[0]
    began = time.perf_counter()
    _, played_s, _ = by_ray(id, a, b, 64)
    start_s = time.perf_counter() - began - played_s
    measurements.append(
        Measurement("", "start and end of a cluster of two processes and their game, s", start_s, START_BAR_S, False)
    )
    return measurements


@contextlib.contextmanager
def cluster() -> Any:
    """Ray with as many processors as there are processes, until the end."""
    try:
        with connected(None, ACTORS) as ray:
            yield ray
    except ImportError as error:
        raise NotHere(str(error)) from None


def by_ray(id: str, a: str, b: str, matches: int) -> tuple[evaluation.MatchTable, float, float]:
    """A table, the seconds in which it was played, and those until the processes were ready, as it says itself."""
    first: list[float] = []
    said = io.StringIO()
    before = os.environ.pop("PALAESTRA_VERBOSE", None)
    try:
        with contextlib.redirect_stderr(said):
            table = scale.evaluate(
                id, a, b, matches=matches, actors=ACTORS, progress=lambda *state: first.append(time.perf_counter())
            )
    except ImportError as error:
        raise NotHere(str(error)) from None
    finally:
        if before is not None:
            os.environ["PALAESTRA_VERBOSE"] = before
    ready = re.search(r"ready after ([\d.]+) s", said.getvalue())
    return table, first[-1] - first[0], float(ready[1]) if ready else np.nan


def nothing(shared: Any, piece: int) -> int:
    """No work."""
    return piece


def overheads(report_progress: ReportProgress) -> list[Measurement]:
    """What a piece costs beside its work: seconds of the driver's processor, and of the clock with two processes."""
    with cluster() as ray:
        tasks = RayTasks(ray, nothing, None)
        count, cpu_s, wall_s = 0, 0.0, 0.0
        for round in range(2):  # the first one starts the processes
            report_progress(f"{round + 1}/2")
            cpu_s, wall_s = time.process_time(), time.perf_counter()
            count = sum(1 for _ in work_off(tasks, range(PIECES), ACTORS))
            cpu_s, wall_s = time.process_time() - cpu_s, time.perf_counter() - wall_s
    per_piece = 1e3 / count
    return [
        Measurement("", "a piece without work, ms of the driver's processor", cpu_s * per_piece, None, False),
        Measurement("", "a piece without work, ms of the clock, two processes", wall_s * per_piece, None, False),
    ]
