"""Lanes in worker processes: bitwise equal results, and no wait for a dead worker."""

from collections.abc import Iterator
from multiprocessing.shared_memory import SharedMemory
from typing import Any

import numpy as np
import pytest
from games import two_team
from games.play import all_bytes, idle_actions, leaves, random_actions

from palaestra.core.contract.actions import ActionError
from palaestra.core.run import worker_pool
from palaestra.core.run.kernel import KernelSimulation
from palaestra.core.run.workers import ProcessSimulation, WorkerError

GAME = two_team.game()
N = 5
OPTIONS: dict[str, Any] = {"opponents": {"blue": "mix"}, "parameters": {"horizon": 25}, "autoreset_mode": "same_step"}


@pytest.fixture(scope="module")
def workers() -> Iterator[ProcessSimulation]:
    sim = ProcessSimulation(GAME, N, workers=2, **OPTIONS)
    yield sim
    sim.close()


@pytest.fixture
def pair(workers: ProcessSimulation) -> tuple[ProcessSimulation, KernelSimulation]:
    """The same matches in two processes and in this one."""
    local = KernelSimulation(GAME, N, **OPTIONS)
    for sim in (workers, local):
        sim.set_parameters(damage=0.6)
        sim.reset(seed=1)
    return workers, local


def play(pair: tuple[ProcessSimulation, KernelSimulation], steps: int, seed: int = 0) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        actions = random_actions(pair[1], rng)
        for sim in pair:
            sim.step(actions)


def assert_same(pair: tuple[ProcessSimulation, KernelSimulation]) -> None:
    there, here = pair
    np.testing.assert_array_equal(all_bytes(there), all_bytes(here))
    over = here.terminated | here.truncated
    for mine, its in zip(leaves(there.final_observations), leaves(here.final_observations), strict=True):
        assert mine[over].tobytes() == its[over].tobytes()
    np.testing.assert_array_equal(there.state(), here.state())


@pytest.mark.check
def test_workers_do_not_change_a_bit(pair):
    for seed in range(60):
        play(pair, 1, seed)
        assert_same(pair)


def test_what_is_set_here_acts_there(pair):
    play(pair, 5)
    for sim in pair:
        sim.set_parameters(damage=10.0, lanes=[1, 4])
        sim.set_opponent("blue", "fighter", lanes=[0, 3])
        sim.reset(np.array([True, False, False, False, True]), seed=9)
    play(pair, 20)
    assert_same(pair)


def test_a_snapshot_goes_from_here_to_there_and_back(pair):
    there, here = pair
    play(pair, 12)
    snapshot = here.snapshot()
    play(pair, 20)
    there.restore(snapshot)
    here.restore(there.snapshot())
    assert_same(pair)
    play(pair, 20)
    assert_same(pair)


def test_a_refused_action_moves_no_lane_in_any_process(pair):
    there, _ = pair
    before = all_bytes(there)
    actions = idle_actions(there)
    actions["scout"][4, 0] = 9
    with pytest.raises(ActionError, match=r"lane 4, red_0: move = 9"):
        there.step(actions)
    np.testing.assert_array_equal(all_bytes(there), before)


def test_an_interrupted_step_is_not_answered_by_the_next_verb(pair, monkeypatch: pytest.MonkeyPatch):
    there = pair[0]
    play(pair, 3)
    real = worker_pool.wait

    def interrupted(*arguments: Any) -> Any:
        monkeypatch.setattr(worker_pool, "wait", real)
        raise KeyboardInterrupt

    monkeypatch.setattr(worker_pool, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        there.step(idle_actions(there))
    for sim in pair:
        sim.reset(seed=8)
    play(pair, 3)
    assert_same(pair)


def test_there_are_no_more_workers_than_lanes_and_at_least_one():
    with pytest.raises(ValueError, match="workers must be at least 1, got 0"):
        ProcessSimulation(GAME, 2, workers=0)


@pytest.mark.check
def test_a_dead_worker_is_named_and_everything_is_freed():
    sim = ProcessSimulation(GAME, 1, workers=3, compiled=False)
    assert len(sim.processes) == 1
    sim.reset(seed=1)
    process, name = sim.processes[0], sim.memory.name
    process.kill()
    with pytest.raises(WorkerError, match=r"worker 0 \(lanes 0 to 0\) of Raid died with exit code"):
        sim.step(idle_actions(sim))
    assert not process.is_alive()
    with pytest.raises(FileNotFoundError):
        SharedMemory(name)
    with pytest.raises(RuntimeError, match="closed"):
        sim.reset()
    assert sim.rewards.shape == (1, 5)  # the arrays stay readable
