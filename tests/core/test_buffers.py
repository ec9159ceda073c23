"""The arrays of a simulation stay the same objects, in memory of its own or of the caller's."""

import numpy as np
import pytest
from games import two_team, two_team_homogeneous
from games.play import idle_actions, leaves, random_actions, seen_bytes, started

pytestmark = pytest.mark.jitless

RAID, MELEE = two_team.game(), two_team_homogeneous.game()
N = 3


def test_the_arrays_stay_the_same_objects():
    sim, rng = started(RAID, N), np.random.default_rng(0)
    before = [id(a) for a in (*leaves(sim.observations), *leaves(sim.legal), *leaves(sim.info), sim.rewards, sim.alive)]
    for _ in range(10):
        sim.step(random_actions(sim, rng))
    sim.reset()
    sim.restore(sim.snapshot())
    after = [id(a) for a in (*leaves(sim.observations), *leaves(sim.legal), *leaves(sim.info), sim.rewards, sim.alive)]
    assert before == after


def test_memory_may_come_from_elsewhere():
    given: dict[str, np.ndarray] = {}

    def allocate(name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        given[name] = np.zeros(shape, dtype)
        return given[name]

    sim, twin = started(MELEE, N, allocate=allocate), started(MELEE, N)
    sim.step(idle_actions(sim))
    twin.step(idle_actions(twin))
    assert np.shares_memory(sim.observations, given["observations"])
    np.testing.assert_array_equal(given["rewards"], twin.rewards)
    np.testing.assert_array_equal(seen_bytes(sim), seen_bytes(twin))
