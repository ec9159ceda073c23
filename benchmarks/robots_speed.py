"""Speed of robots: next to MuJoCo alone and to Gymnasium's robots; threads, starts, snapshots, memory and pictures."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from measurement import Measurement, NotHere, ReportProgress
from palaestra import registry
from palaestra.cli.random_actions import batch_call, samples
from palaestra.games.robots.engine import import_mujoco
from processes import start, this_installation


class Robots(NamedTuple):
    """A game that is measured.

    Attributes:
        id: Registered id.
        name: For tables.
        share_bar: Least share of MuJoCo alone in a run of the VectorEnv.
        decisions: Of a run, which takes about a tenth of a second: longer ones are all disturbed on a busy machine.
        keywords: Of the game.
    """

    id: str
    name: str
    share_bar: float
    decisions: int
    keywords: dict[str, Any]


THEIRS = "HalfCheetah-v5"
CHEETAH = Robots("palaestra/MaHalfCheetah-v0", "half cheetah", 0.93, 12, {"parts": "1"})
QUADRUPEDS = (
    Robots("palaestra/QuadGate2-v0", "QuadGate2", 0.95, 1, {}),
    Robots("palaestra/QuadPushBox-v0", "QuadPushBox", 0.95, 1, {}),
)
HANDS = Robots("palaestra/HandOver-v0", "HandOver", 0.85, 2, {})
ALL = (CHEETAH, *QUADRUPEDS, HANDS)
LANES, SETTLED, ROUNDS, SHARE_ROUNDS = 256, 20, 9, 31
"""Matches; decisions before a run is timed: by then robots lie, lean and touch; rounds, of which the fastest counts.

Of shares the median of the rounds' ratios counts: other work on the machine slows both runs of a round.
"""
KEPT_DECISIONS, MEMORY_LANES, MEMORY_DECISIONS = 100, 1024, 20
SYNC_BAR, SINGLE_BAR, RESTORE_BAR_MS, PICTURE_BAR_S = 1.5, 1.25, 2.0, 0.15
THREADS_BAR, SCENE_BAR_MS, COMPILE_BAR_S, MEMORY_BAR_MB = 1.6, 30.0, 4.0, 30.0


def shares(report_progress: ReportProgress) -> list[Measurement]:
    """MuJoCo alone over our VectorEnv, from the same states with the same controls."""
    _check_installed()
    return [_share(robots, report_progress) for robots in ALL]


def _share(robots: Robots, report_progress: ReportProgress) -> Measurement:
    """One run again and again: by the VectorEnv, and by MuJoCo alone with what it was told in that run.

    Raises:
        RuntimeError: MuJoCo alone did not end in the states in which the run ended.
    """
    envs: Any = gymnasium.make_vec(robots.id, num_envs=LANES, **robots.keywords)
    envs.reset(seed=0)
    actions = samples(envs.action_space)
    for number in range(SETTLED):
        envs.step(actions[number])
    sim, actions = envs.sim, actions[: robots.decisions]
    batch, saved, before = sim.engine.batch, sim.snapshot(), sim.engine.batch.state.copy()
    calls = _record(sim.engine, lambda: [envs.step(action) for action in actions])
    after, substeps = batch.state.copy(), sim.game.physics_options["substeps"]
    physics, vector = [], []
    for number in range(SHARE_ROUNDS):
        report_progress(f"{robots.name} {number + 1}/{SHARE_ROUNDS}")
        batch.state[...] = before
        physics.append(_cpu_s(lambda: _replay(batch, calls, substeps)))
        if batch.state.tobytes() != after.tobytes():
            raise RuntimeError(f"{robots.id}: MuJoCo alone does not repeat the run")
        sim.restore(saved)
        vector.append(_cpu_s(lambda: [envs.step(action) for action in actions]))
    envs.close()
    about = f"MuJoCo alone over VectorEnv, {robots.name}, {LANES} lanes"
    started = sum(call.numbers.shape[0] for call in calls if call.is_start) / robots.decisions / LANES
    lane_step_us = min(vector) / robots.decisions / LANES * 1e6
    note = f"us a lane-step: {lane_step_us:.1f}; matches that start in a step: {started:.1%}"
    share = float(np.median(np.divide(physics, vector)))
    return Measurement("", about, share, robots.share_bar, True, note)


class EngineCall(NamedTuple):
    """What an engine was asked to do.

    Attributes:
        is_start: Whether matches started.
        lanes: Which; None for all.
        numbers: Controls of all lanes; of a start the states of its lanes.
    """

    is_start: bool
    lanes: np.ndarray | None
    numbers: np.ndarray


def _record(engine: Any, run: Callable[[], Any]) -> list[EngineCall]:
    """What an engine is asked to do in a run."""
    calls: list[EngineCall] = []
    advance, load = engine.advance, engine.load

    def recording_advance(states: np.ndarray, lanes: np.ndarray) -> None:
        advance(states, lanes)
        calls.append(EngineCall(False, None if lanes.size == LANES else lanes.copy(), engine.batch.ctrl.copy()))

    def recording_load(states: np.ndarray, lanes: np.ndarray) -> None:
        load(states, lanes)
        if lanes.size:
            calls.append(EngineCall(True, lanes.copy(), engine.batch.state[lanes]))

    engine.advance, engine.load = recording_advance, recording_load
    run()
    del engine.advance, engine.load
    return calls


def _replay(batch: Any, calls: list[EngineCall], substeps: int) -> None:
    """The physics of a run without anything else."""
    for is_start, lanes, numbers in calls:
        if is_start:
            batch.state[lanes] = numbers
        else:
            batch.ctrl[...] = numbers
            batch.step(lanes, substeps)


def next_to_gymnasium(report_progress: ReportProgress) -> list[Measurement]:
    """The half cheetah next to Gymnasium's: a step of ``gymnasium.make``, and our VectorEnv over its vector of 32."""
    _check_installed()
    envs = gymnasium.make(CHEETAH.id, **CHEETAH.keywords), gymnasium.make(THEIRS)
    vectors: Any = (
        gymnasium.make_vec(CHEETAH.id, num_envs=LANES, **CHEETAH.keywords),
        gymnasium.vector.SyncVectorEnv([lambda: gymnasium.make(THEIRS)] * 32),
    )
    actions = np.random.default_rng(0).uniform(-1, 1, (900, LANES, 6)).astype(np.float32)
    singles: tuple[list[float], list[float]] = ([], [])
    lane_steps: tuple[list[float], list[float]] = ([], [])
    for vector in vectors:
        vector.reset(seed=0)
    for number in range(ROUNDS):
        report_progress(f"{number + 1}/{ROUNDS}")
        for env, taken in zip(envs, singles, strict=True):
            env.reset(seed=number)
            taken.append(_cpu_s(lambda env=env: [env.step(action) for action in actions[:, 0]]) / len(actions))
        for vector, taken in zip(vectors, lane_steps, strict=True):
            rows = np.ascontiguousarray(actions[: CHEETAH.decisions, : vector.num_envs])
            seconds = _cpu_s(lambda vector=vector, rows=rows: [vector.step(row) for row in rows])
            taken.append(seconds / rows.shape[0] / rows.shape[1])
    for env in (*envs, *vectors):
        env.close()
    single, vector = [[min(taken) * 1e6 for taken in pair] for pair in (singles, lane_steps)]
    about = f"gymnasium.make of {CHEETAH.id} over {THEIRS}, time"
    sync = "VectorEnv over Gymnasium's SyncVectorEnv of 32, half cheetah"
    note, sync_note = (
        f"us a {what}: {a:.1f} and {b:.1f}" for what, (a, b) in (("step", single), ("lane-step", vector))
    )
    return [
        Measurement("", about, single[0] / single[1], SINGLE_BAR, False, note),
        Measurement("", sync, vector[1] / vector[0], SYNC_BAR, True, sync_note),
    ]


def states(report_progress: ReportProgress) -> list[Measurement]:
    """Restoring all lanes of a batch, a picture, and the memory of a batch."""
    import_mujoco()
    restores, pictures = [], []
    for robots in ALL:
        report_progress(robots.name)
        sim = registry.make_batch(robots.id, LANES, threads=min(2, cores()), **robots.keywords)
        call = batch_call(sim)
        for _ in range(KEPT_DECISIONS):
            call()
        saved = sim.snapshot()
        restore_ms = 1e3 * min(_cpu_s(lambda sim=sim, saved=saved: sim.restore(saved)) for _ in range(20))
        sim.render(0)
        picture_s = min(_cpu_s(lambda sim=sim: sim.render(0)) for _ in range(5))
        sim.close()
        about = f"restore of {LANES} lanes after {KEPT_DECISIONS} decisions, {robots.name}, ms"
        restores.append(Measurement("", about, restore_ms, RESTORE_BAR_MS, False))
        pictures.append(Measurement("", f"picture of 320 x 240, {robots.name}, s", picture_s, PICTURE_BAR_S, False))
    report_progress("memory")
    return [*restores, *pictures, _memory(HANDS)]


MEMORY = """
import gc, json, sys
import palaestra
from start_worker import resident_bytes
id, lanes, decisions = json.loads(sys.argv[1])
first = palaestra.make_batch(id, 1)
first.reset(seed=0)
first.step()
gc.collect()
before = resident_bytes()
sim = palaestra.make_batch(id, lanes)
sim.reset(seed=0)
for _ in range(decisions):
    sim.step()
print(json.dumps([before, resident_bytes()]))
"""
"""Memory of a process before and after a batch; MuJoCo, the scene's code and the kernel are in it before."""


def _memory(robots: Robots) -> Measurement:
    """By how much a fresh process grows."""
    told = json.dumps([robots.id, MEMORY_LANES, MEMORY_DECISIONS])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", MEMORY, told]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    before, after = json.loads(answer.stdout)
    about = f"resident memory, {robots.name}, {MEMORY_LANES} lanes after {MEMORY_DECISIONS} decisions, MB"
    if before is None:
        return Measurement("", about, None, MEMORY_BAR_MB, False, "this system does not report it")
    note = f"kB a lane: {(after - before) / MEMORY_LANES / 1e3:.1f}"
    return Measurement("", about, (after - before) / 1e6, MEMORY_BAR_MB, False, note)


def starts(report_progress: ReportProgress) -> list[Measurement]:
    """Making the model of a game, and compiling its rules in a fresh process with an empty cache."""
    import_mujoco()
    scenes, kernels = [], []
    for robots in ALL:
        report_progress(robots.name)
        options = registry.make_game(robots.id, **robots.keywords)[0].physics_options
        scene_ms = 1e3 * min(_cpu_s(lambda o=options: o["model"](*o["arguments"])) for _ in range(5))
        with tempfile.TemporaryDirectory() as cache:
            found = start(this_installation(), "compile_cold", cache=cache, id=robots.id)
        scenes.append(Measurement("", f"making the model, {robots.name}, ms", scene_ms, SCENE_BAR_MS, False))
        about, note = f"make_batch to first step, empty cache, {robots.name}, CPU s", f"s: {found['wall_s']:.2f}"
        kernels.append(Measurement("", about, found["cpu_s"], COMPILE_BAR_S, False, note))
    return [*scenes, *kernels]


def threads(report_progress: ReportProgress) -> list[Measurement]:
    """Two threads next to one, wall time; their matches have to be the same bytes.

    Raises:
        NotHere: There is one core.
        RuntimeError: The matches differ.
    """
    import_mujoco()
    if cores() < 2:
        raise NotHere("needs two cores")
    measurements = []
    for robots in QUADRUPEDS:
        sims: list[Any] = [registry.make_batch(robots.id, LANES, threads=count, **robots.keywords) for count in (1, 2)]
        calls = [batch_call(sim) for sim in sims]
        taken: tuple[list[float], list[float]] = ([], [])
        for number in range(ROUNDS):
            report_progress(f"{robots.name} {number + 1}/{ROUNDS}")
            for call, walls in zip(calls, taken, strict=True):
                begun = time.perf_counter()
                for _ in range(robots.decisions):
                    call()
                walls.append(time.perf_counter() - begun)
        one, two = (sim.states.tobytes() + sim.engine.batch.state.tobytes() for sim in sims)
        if one != two:
            raise RuntimeError(f"{robots.id}: two threads play other matches than one")
        for sim in sims:
            sim.close()
        ms = [1e3 * min(walls) / robots.decisions for walls in taken]
        note = f"ms a decision: {ms[0]:.1f} to {ms[1]:.1f}, the same bytes; {cores()} cores"
        about = f"two threads, {robots.name}, {LANES} lanes, speed-up"
        measurements.append(Measurement("", about, ms[0] / ms[1], THREADS_BAR, True, note))
    return measurements


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _cpu_s(call: Callable[[], Any]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def _check_installed() -> None:
    """Whether MuJoCo and Gymnasium's own robots are here.

    Raises:
        NotHere: One of them is missing.
    """
    try:
        import_mujoco()
        gymnasium.make(THEIRS).close()
    except Exception as error:  # Gymnasium raises errors of its own
        raise NotHere('needs MuJoCo and Gymnasium\'s robots: pip install "palaestra[robots]" imageio') from error
