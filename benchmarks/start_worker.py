"""Measurements that need a fresh process: time of a first start, memory of a long run.

A process makes one measurement and ends. It runs under another version of palaestra too, as ``compare_worker.py`` does.
Its arguments are the name of a function in `MEASUREMENTS` and its keywords as JSON; the answer is a JSON object on
stdout.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import tempfile
import time
import tracemalloc
from typing import Any

from palaestra.cli.random_actions import batch_call

SIZE_ID, BODY_ID = "palaestra-bench/Size-v0", "palaestra-bench/Body-v0"


def cpu_s() -> float:
    """CPU seconds of this process, all its threads, and its finished children."""
    children = os.times()  # in hundredths of a second, which is enough for processes
    return time.process_time() + children.children_user + children.children_system


def compile_cold(id: str) -> dict[str, Any]:
    """The first decision of a game, the compiler itself loaded before.

    Returns:
        ``cpu_s`` and ``wall_s`` from `palaestra.make_batch` to the end of the first step, ``import_cpu_s``; or
        ``unknown`` where there is no such id.
    """
    cpu = cpu_s()
    import gymnasium
    import numba  # noqa: F401

    import palaestra

    if id not in gymnasium.registry:
        return {"unknown": True}

    imported, wall = cpu_s(), time.perf_counter()
    sim = palaestra.make_batch(id, 1)
    sim.reset(seed=0)
    sim.step()
    return {"cpu_s": cpu_s() - imported, "wall_s": time.perf_counter() - wall, "import_cpu_s": imported - cpu}


def make(id: str) -> dict[str, Any]:
    """``gymnasium.make`` as a user waits for it.

    Returns:
        ``wall_s`` and ``cpu_s`` of the call, ``import_s`` of the packages before it, ``step_s`` of the first reset and
        step after it, and the ``lines`` that it printed.
    """
    start = time.perf_counter()
    import gymnasium

    import palaestra  # noqa: F401

    imported = time.perf_counter()
    with tempfile.TemporaryFile("w+") as output:
        kept = os.dup(1), os.dup(2)
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
        cpu, called = cpu_s(), time.perf_counter()
        env = gymnasium.make(id)
        made, cpu = time.perf_counter(), cpu_s() - cpu
        env.reset(seed=0)
        env.step(env.action_space.sample())
        stepped = time.perf_counter()
        sys.stdout.flush()
        sys.stderr.flush()
        os.dup2(kept[0], 1)
        os.dup2(kept[1], 2)
        output.seek(0)
        lines = output.read().splitlines()
    seconds = {"wall_s": made - called, "cpu_s": cpu, "import_s": imported - start, "step_s": stepped - made}
    return {**seconds, "lines": lines}


def presets(game: str, keyword: str, values: list[int]) -> dict[str, list[float]]:
    """Games of one kernel and several sizes, one after the other, each from make to the end of its first step.

    Args:
        game: ``module:function`` that makes it.
        keyword: Of the function.
        values: What it takes, one a preset.

    Returns:
        ``wall_s`` and ``cpu_s`` of each.
    """
    import numba  # noqa: F401

    import palaestra

    palaestra.register(SIZE_ID, load(game), about="for the speed measurements")
    walls, cpus = [], []
    for value in values:
        wall, cpu = time.perf_counter(), cpu_s()
        sim = palaestra.make_batch(SIZE_ID, 1, **{keyword: value})
        sim.reset(seed=0)
        sim.step()
        walls.append(time.perf_counter() - wall)
        cpus.append(cpu_s() - cpu)
    return {"wall_s": walls, "cpu_s": cpus}


def memory(game: str, lanes: int, start: int, end: int) -> dict[str, float | None]:
    """Memory that a simulation holds after two numbers of decisions of matches that no horizon ends.

    Args:
        game: ``module:function`` that makes it.
        lanes: Matches.
        start: Decisions before the first look; caches and first copies are made by then.
        end: Decisions before the second look.

    Returns:
        ``allocated_bytes``, the growth of what Python and NumPy have allocated between the looks, and
        ``resident_bytes``, that of the process, what engines allocate included (None where it cannot be read).
    """
    import palaestra

    palaestra.register(BODY_ID, load(game), about="for the speed measurements")
    sim = palaestra.make_batch(BODY_ID, lanes, max_episode_steps=10 * end)
    call = batch_call(sim)
    looks = []
    tracemalloc.start()
    try:
        for decisions in (start, end - start):
            for _ in range(decisions):
                call()
            gc.collect()
            looks.append((tracemalloc.get_traced_memory()[0], resident_bytes()))
    finally:
        tracemalloc.stop()  # it slows down whatever this process does next
    (allocated, resident), (allocated_now, resident_now) = looks
    grown = None if resident is None or resident_now is None else resident_now - resident
    return {"allocated_bytes": allocated_now - allocated, "resident_bytes": grown}


def further(id: str, first: dict[str, Any], then: dict[str, Any]) -> dict[str, float | None]:
    """A further game of an id, after one whose kernel it shares: seconds to its first step, and memory.

    Args:
        id: Registered id.
        first: Keywords of the game that is made before.
        then: Keywords of the one that is measured.

    Returns:
        ``wall_s`` from make to the end of the first step, ``world_bytes`` of its world's arrays, ``resident_bytes``,
        by which the process has grown (None where it cannot be read).
    """
    import palaestra

    sims = [palaestra.make_batch(id, 1, **first)]
    sims[0].reset(seed=0)
    sims[0].step()
    gc.collect()
    before, wall = resident_bytes(), time.perf_counter()
    sims.append(palaestra.make_batch(id, 1, **then))
    sims[1].reset(seed=0)
    sims[1].step()
    wall, after = time.perf_counter() - wall, resident_bytes()
    grown = None if before is None or after is None else after - before
    world_bytes = sum(getattr(member, "nbytes", 0) for member in sims[1].game.world)
    return {"wall_s": wall, "world_bytes": world_bytes, "resident_bytes": grown}


def resident_bytes() -> int | None:
    """Memory of this process in RAM; None where the system does not report it (it is read from Linux's ``/proc``)."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return None


def load(spec: str) -> Any:
    """The function that ``module:function`` names."""
    module, _, function = spec.partition(":")
    return getattr(importlib.import_module(module), function)


MEASUREMENTS = {"compile_cold": compile_cold, "make": make, "presets": presets, "memory": memory, "further": further}


def main(arguments: list[str]) -> None:
    """Measures once and answers.

    Args:
        arguments: Name of the measurement, its keywords as JSON.
    """
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    name, keywords = arguments
    print(json.dumps(MEASUREMENTS[name](**json.loads(keywords))), file=answers, flush=True)
