"""Speed measurements of Skirmish: decisions a second next to SMAX and TeamTag, faces, memory, and first starts."""

from __future__ import annotations

import gc
import importlib
import os
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from measurement import Measurement, NotHere, ReportProgress, timed
from palaestra import registry
from palaestra.cli import benchmarks
from palaestra.cli.measure import Benchmark, Timing
from processes import start, this_installation
from team_speed import TAG, next_to_tag, random_play

LANES = 64
SPEEDS = {"2s3z": (150e3, 3.2), "10m_vs_11m": (70e3, 1.5), "27m_vs_30m": (18e3, 0.38)}
"""Bars by map: decisions a second of a match on one core, and their share of TeamTag's in per cent."""
MAP = "2s3z"
SMAX_BAR, SMAX_STEPS = 4.0, 100
"""SMAX_STEPS: decisions of every lane in one call of SMAX."""
ONE_THREAD = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
GYMNASIUM_BAR, PARALLEL_BAR = 50e3, 40e3
BYTES = {"2s3z": 24e3, "27m_vs_30m": 144e3}
"""Most bytes a lane by map."""
BYTES_LANES = (64, 192)
LAYOUTS = {"battle": ("2s3z", "3m", "8m", "MMM", "10m_vs_11m"), "duel": ("3m", "8m", "2s3z", "MMM")}
"""Maps that share the kernel of the first, by the function of `palaestra.games.skirmish.games`."""
COLD_BAR_S, FURTHER_BAR_MS, WARM_BAR_S = 12.0, 50.0, 2.0
TRIES = 2
"""Fresh processes of each start; the fastest counts."""


def id_of(map: str) -> str:
    """The battle of a map."""
    return f"palaestra/Skirmish-{map}-v0"


def speeds(report_progress: ReportProgress) -> list[Measurement]:
    """Decisions a second of one match on one core, with observations and masks, TeamTag in the same run."""
    *timings, tag = timed(*(battle(map) for map in SPEEDS), random_play(TAG))
    measurements = []
    for (map, bars), timing in zip(SPEEDS.items(), timings, strict=True):
        measurements += next_to_tag(f"Skirmish {map}, {LANES} lanes", timing, bars, tag)
    return measurements


def battle(map: str) -> Benchmark:
    """Matches with observations and masks: red by random legal orders, blue by its script."""
    sim = registry.make_batch(id_of(map), LANES)
    sim.set_opponent("red", "random")
    sim.set_opponent("blue", "builtin")
    sim.reset(seed=0)
    return Benchmark(map, sim.step, LANES, sim.close)


def next_to_smax(report_progress: ReportProgress) -> list[Measurement]:
    """Battles of `MAP` next to JaxMARL's SMAX on one core, by the clock on the wall, as XLA has threads of its own.

    Raises:
        NotHere: jaxmarl is missing.
    """
    with one_core():
        ours, theirs = timed(battle(MAP), smax(MAP), round_s=0.3)
    return [smax_measurement(ours, theirs)]


def smax_measurement(ours: Timing, theirs: Timing) -> Measurement:
    """How many times more decisions a second are ours."""
    note = f"decisions/s by the wall: {ours.per_second:,.0f} to {theirs.per_second:,.0f}"
    about = f"Skirmish {MAP} over JaxMARL's SMAX on the CPU, {LANES} lanes"
    return Measurement("", about, ours.per_second / theirs.per_second, SMAX_BAR, True, note)


def smax(map: str) -> Benchmark:
    """SMAX: one compiled loop over `SMAX_STEPS` decisions of `LANES` matches.

    Its agents play random legal actions, its opponents their heuristic; finished matches start anew. The masks and
    observations of every decision are computed: the actions are drawn by the masks, the sums of the observations and
    rewards are returned.

    Raises:
        NotHere: jaxmarl is missing.
    """
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    os.environ.setdefault("XLA_FLAGS", ONE_THREAD)
    try:
        jax: Any = importlib.import_module("jax")
        jnp: Any = importlib.import_module("jax.numpy")
        jaxmarl: Any = importlib.import_module("jaxmarl")
        scenarios: Any = importlib.import_module("jaxmarl.environments.smax")
    except ImportError as error:
        raise NotHere("needs JaxMARL: pip install jaxmarl==0.2.0 jax") from error
    env = jaxmarl.make("HeuristicEnemySMAX", scenario=scenarios.map_name_to_scenario(map))

    def act(key: Any, masks: Any) -> Any:
        """Random legal actions by agent."""
        keys = jax.random.split(key, len(env.agents))
        return {
            agent: jax.random.categorical(k, jnp.where(masks[agent] > 0, 0.0, -1e9))
            for agent, k in zip(env.agents, keys, strict=True)
        }

    def decide(carry: Any, _: Any) -> tuple[Any, Any]:
        key, states = carry
        key, action_key, step_key = jax.random.split(key, 3)
        masks = jax.vmap(env.get_avail_actions)(states)
        actions = jax.vmap(act)(jax.random.split(action_key, LANES), masks)
        seen, states, rewards, _, _ = jax.vmap(env.step)(jax.random.split(step_key, LANES), states, actions)
        used = sum(seen[agent].sum() + rewards[agent].sum() for agent in env.agents)
        return (key, states), used + seen["world_state"].sum()

    play = jax.jit(lambda carry: jax.lax.scan(decide, carry, None, SMAX_STEPS))
    _, first = jax.vmap(env.reset)(jax.random.split(jax.random.key(0), LANES))
    carry = [(jax.random.key(1), first)]

    def call() -> None:
        carry[0], used = play(carry[0])
        used.block_until_ready()

    call()  # compiles
    return Benchmark("SMAX", call, LANES * SMAX_STEPS)


@contextmanager
def one_core() -> Iterator[None]:
    """Keeps this thread, and those that it starts, on one core where the system can."""
    find: Callable[[int], set[int]] | None = getattr(os, "sched_getaffinity", None)
    if find is None:
        yield
        return
    cores = find(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def faces(report_progress: ReportProgress) -> list[Measurement]:
    """Decisions a second of one match that hand out observations and masks; red's actions are drawn before."""
    single, parallel = timed(benchmarks.single(id_of(MAP), "builtin"), benchmarks.parallel(id_of(MAP), "builtin"))
    rows = (("gymnasium.make", single, GYMNASIUM_BAR), ("ParallelEnv", parallel, PARALLEL_BAR))
    return [face_measurement(face, timing, bar) for face, timing, bar in rows]


def face_measurement(face: str, timing: Timing, bar: float) -> Measurement:
    """Decisions of the match; the size of a face's `Timing` is the number of agents of both sides."""
    agents = timing.size
    note = f"us a decision: {agents * timing.ns / 1e3:.1f}"
    return Measurement(
        "", f"{face} Skirmish {MAP} with masks, decisions a second", 1e9 / timing.ns / agents, bar, True, note
    )


def memory(report_progress: ReportProgress) -> list[Measurement]:
    """Bytes that each further lane allocates, all arrays."""
    return [
        Measurement("", f"Skirmish {map}, bytes a lane, all arrays", bytes_a_lane(id_of(map)), bar, False)
        for map, bar in BYTES.items()
    ]


def bytes_a_lane(id: str) -> float:
    """What the arrays of `BYTES_LANES` lanes take after a reset and a step, their difference a lane."""
    few, many = BYTES_LANES
    array_bytes(id, few)  # what is made once
    return (array_bytes(id, many) - array_bytes(id, few)) / (many - few)


def array_bytes(id: str, lanes: int) -> int:
    """What NumPy has allocated for one simulation; not Python's own memory, of which caches and garbage are a part."""
    was_tracing = tracemalloc.is_tracing()
    if not was_tracing:
        tracemalloc.start()
    try:
        before = traced_array_bytes()
        sim = registry.make_batch(id, lanes)
        sim.set_opponent([*sim.game.teams][-1], "random")
        sim.reset(seed=0)
        sim.step()
        after = traced_array_bytes()
        sim.close()
        return after - before
    finally:
        if not was_tracing:
            tracemalloc.stop()


def traced_array_bytes() -> int:
    """What NumPy has allocated since tracing began and not yet freed."""
    gc.collect()
    of_arrays = tracemalloc.DomainFilter(inclusive=True, domain=np.lib.tracemalloc_domain)
    return sum(trace.size for trace in tracemalloc.take_snapshot().filter_traces([of_arrays]).traces)


def first_starts(report_progress: ReportProgress) -> list[Measurement]:
    """Fresh processes: compiling a layout, further maps of it in the same process, and a start with compiled code."""
    measurements = []
    for factory, maps in LAYOUTS.items():
        runs, warms = [], []
        for number in range(TRIES):
            report_progress(f"{factory} {number + 1}/{TRIES}")
            with tempfile.TemporaryDirectory() as cache:
                keywords = {"game": f"palaestra.games.skirmish.games:{factory}", "keyword": "map", "values": list(maps)}
                runs.append(start(this_installation(), "presets", cache=cache, **keywords))
                if factory == "battle":
                    start(this_installation(), "make", cache=cache, id=id_of(MAP))  # keeps what the face needs
                    warms.append(start(this_installation(), "make", cache=cache, id=id_of(MAP)))
        measurements += layout_measurements(factory, maps, runs)
        if warms:
            measurements.append(warm_measurement(warms))
    return measurements


def layout_measurements(factory: str, maps: tuple[str, ...], runs: list[Any]) -> list[Measurement]:
    """Compiling, and the slowest of the further maps, of the fastest processes."""
    cold = min(runs, key=lambda run: run["wall_s"][0])
    compiled = f"Skirmish {factory}, compiling a layout: make to first step, cold, s"
    further = f"Skirmish {factory}, a further map of the layout: make to first step, ms"
    return [
        Measurement("", compiled, cold["wall_s"][0], COLD_BAR_S, False, f"CPU s: {cold['cpu_s'][0]:.2f}"),
        further_measurement(further, maps, runs, FURTHER_BAR_MS),
    ]


def further_measurement(about: str, names: Sequence[str], runs: list[Any], bar: float) -> Measurement:
    """Milliseconds of the slowest game after the first, each that of the fastest process."""
    ms = [1e3 * min(run["wall_s"][k] for run in runs) for k in range(1, len(names))]
    each = ", ".join(f"{name} {further:.1f}" for name, further in zip(names[1:], ms, strict=True))
    return Measurement("", about, max(ms), bar, False, f"the slowest of {each}")


def warm_measurement(warms: list[Any]) -> Measurement:
    """From the imports to the first step, where compiled code is on the disk."""
    names = ("import_s", "wall_s", "step_s")
    best = min(warms, key=lambda found: sum(found[name] for name in names))
    note = ", ".join(f"{part} {best[name]:.2f}" for part, name in zip(("import", "make", "step"), names, strict=True))
    about = f"Skirmish {MAP}, warm process: imports to first step, s"
    return Measurement("", about, sum(best[name] for name in names), WARM_BAR_S, False, note)
