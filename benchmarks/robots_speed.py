"""Speed of robots: what is left of MuJoCo's own speed, next to Gymnasium's robots, and of snapshots and pictures."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

from measurement import Measurement, NotHere, ReportProgress
from palaestra import registry
from palaestra.robots.engine import import_mujoco

OURS, THEIRS = "palaestra/MaHalfCheetah-v0", "HalfCheetah-v5"
LANES, DECISIONS, ROUNDS = 256, 60, 7
SHARE_BAR, SYNC_BAR, SINGLE_BAR, RESTORE_BAR_MS, PICTURE_BAR_S = 0.93, 1.5, 1.25, 2.0, 0.15


def shares(report_progress: ReportProgress) -> list[Measurement]:
    """MuJoCo alone over our VectorEnv, from the same states with the same controls; and over Gymnasium's vector.

    The controls of a run are kept; MuJoCo alone starts from the state that it had then and gets them again.
    """
    _check_installed()
    envs: Any = gymnasium.make_vec(OURS, num_envs=LANES, parts="1")
    theirs = gymnasium.vector.SyncVectorEnv([lambda: gymnasium.make(THEIRS)] * 32)
    envs.reset(seed=0)
    theirs.reset(seed=0)
    rng = np.random.default_rng(0)
    actions = rng.uniform(-1, 1, (DECISIONS, LANES, 6)).astype(np.float32)
    few = np.ascontiguousarray(actions[:, :32])
    physics, vector, sync = [], [], []
    for number in range(ROUNDS):
        report_progress(f"{number + 1}/{ROUNDS}")
        sim = envs.sim
        batch, start = sim.engine.batch, sim.engine.batch.state.copy()
        vector.append(_cpu_s(lambda: [envs.step(row) for row in actions]))
        after = sim.snapshot()
        batch.state[...] = start

        def alone(batch: Any = batch) -> None:
            for row in actions:
                batch.ctrl[...] = row
                batch.step(None, 5)

        physics.append(_cpu_s(alone))
        sim.restore(after)
        sync.append(_cpu_s(lambda: [theirs.step(row) for row in few]))
    envs.close()
    theirs.close()
    note, share = f"us a lane-step: {min(vector) / DECISIONS / LANES * 1e6:.1f}", _best(physics, vector)
    sync_ratio, about = _best(sync, vector) * LANES / 32, "VectorEnv over Gymnasium's SyncVectorEnv of 32, half cheetah"
    return [
        Measurement("", f"MuJoCo alone over VectorEnv, half cheetah, {LANES} lanes", share, SHARE_BAR, True, note),
        Measurement("", about, sync_ratio, SYNC_BAR, True),
    ]


def single(report_progress: ReportProgress) -> list[Measurement]:
    """A step of ``gymnasium.make`` next to that of Gymnasium's task."""
    _check_installed()
    envs = gymnasium.make(OURS, parts="1"), gymnasium.make(THEIRS)
    actions = np.random.default_rng(0).uniform(-1, 1, (900, 6)).astype(np.float32)
    times: tuple[list[float], list[float]] = ([], [])
    for number in range(ROUNDS):
        report_progress(f"{number + 1}/{ROUNDS}")
        for env, taken in zip(envs, times, strict=True):
            env.reset(seed=number)
            taken.append(_cpu_s(lambda env=env: [env.step(action) for action in actions]))
    ours, theirs = (min(taken) / len(actions) * 1e6 for taken in times)
    note = f"us a step: {ours:.1f} and {theirs:.1f}"
    return [Measurement("", f"gymnasium.make of {OURS} over {THEIRS}, time", ours / theirs, SINGLE_BAR, False, note)]


def states(report_progress: ReportProgress) -> list[Measurement]:
    """Restoring all lanes of a batch, and a picture."""
    _check_installed()
    sim = registry.make_batch(OURS, LANES)
    sim.reset(seed=0)
    for _ in range(100):
        sim.step()
    saved = sim.snapshot()
    restore = min(_cpu_s(lambda: sim.restore(saved)) for _ in range(20))
    sim.render(0)
    picture = min(_cpu_s(lambda: sim.render(0)) for _ in range(5))
    return [
        Measurement("", f"restore of {LANES} half cheetahs, ms", restore * 1e3, RESTORE_BAR_MS, False),
        Measurement("", "picture of 320 x 240, s", picture, PICTURE_BAR_S, False),
    ]


def _best(numerators: list[float], denominators: list[float]) -> float:
    return min(numerators) / min(denominators)


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
