"""The arrays of a simulation are its own or the caller's, and stay the same objects."""

from typing import Any

import numpy as np
import pytest
from games import two_team, two_team_homogeneous
from games.play import idle_actions, leaves, random_actions, seen_bytes, simulation

from palaestra.core.actions import ActionError

pytestmark = pytest.mark.jitless

RAID, MELEE = two_team.game(), two_team_homogeneous.game()
N, STEPS = 3, 60


def started(game=MELEE, **options) -> Any:
    sim = simulation(game, N, **options)
    sim.reset(seed=1)
    return sim


def rollout(sim: Any, steps: int = STEPS, rubbish: float = 7.0) -> dict[str, Any]:
    """Arrays [T, N, ...] of a learner, full of what was there before."""
    shapes = {"observations": sim.observations.shape, "rewards": sim.rewards.shape}
    slots: dict[str, Any] = {k: np.full((steps, *shape), rubbish, np.float32) for k, shape in shapes.items()}
    return slots | {name: np.ones((steps, N), np.bool_) for name in ("terminated", "truncated")}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_a_rollout_can_be_written_where_it_is_needed(mode: str, threads: int):
    options = {"autoreset_mode": mode, "parameters": {"horizon": 20}, "opponents": {"blue": "chaser"}}
    sim, twin = started(threads=threads, **options), started(**options)
    slots, rng = rollout(sim), np.random.default_rng(0)
    for t in range(STEPS):
        actions = random_actions(sim, rng)
        sim.step(actions, out={name: array[t] for name, array in slots.items()})
        twin.step(actions)
        for name, array in slots.items():
            np.testing.assert_array_equal(array[t], getattr(twin, name))
            assert np.shares_memory(getattr(sim, name), array[t])
    assert slots["truncated"].sum() >= 2 * N


def test_lanes_that_wait_show_their_last_match_in_every_buffer():
    sim, rng = started(autoreset_mode="off", parameters={"horizon": [2, 50, 50]}), np.random.default_rng(0)
    slots = rollout(sim, 4)
    for t in range(4):
        sim.step(random_actions(sim, rng), out={name: array[t] for name, array in slots.items()})
    np.testing.assert_array_equal(slots["truncated"][:, 0], [False, True, True, True])
    np.testing.assert_array_equal(slots["observations"][3, 0], slots["observations"][1, 0])
    assert not slots["rewards"][2:, 0].any()
    assert (slots["observations"][3, 1] != slots["observations"][1, 1]).any()


def test_python_opponents_see_the_match_and_not_the_empty_buffer():
    seen = []

    def watch(observations: np.ndarray) -> np.ndarray:
        seen.append(observations.copy())
        return np.zeros((len(observations), 5, 2))

    sim, twin = started(opponents={"blue": watch}), started(opponents={"blue": watch})
    slots = rollout(sim, 3)
    for t in range(3):
        sim.step(idle_actions(sim), out={"observations": slots["observations"][t]})
        twin.step(idle_actions(sim))
    for mine, its in zip(seen[::2], seen[1::2], strict=True):
        np.testing.assert_array_equal(mine, its)


def test_a_refused_action_leaves_the_buffers_as_they_were():
    sim = started()
    sim.step(idle_actions(sim))
    before, own = seen_bytes(sim), sim.observations
    slots = rollout(sim, 1)
    with pytest.raises(ActionError):
        sim.step(idle_actions(sim) + np.nan, out={name: array[0] for name, array in slots.items()})
    np.testing.assert_array_equal(seen_bytes(sim), before)
    assert sim.observations is own
    assert (slots["observations"] == 7).all()


@pytest.mark.parametrize(
    ("out", "complaint"),
    [
        ({"states": np.zeros(N)}, "out= takes observations, rewards, terminated, truncated, not 'states'"),
        ({"rewards": np.zeros((N, 10))}, r"a writable C-contiguous float32 array of shape \(3, 10\), got float64"),
        ({"rewards": np.zeros((N, 9), "f4")}, r"of shape \(3, 10\), got float32 \(3, 9\)"),
        ({"rewards": np.zeros((10, N), "f4").T}, "C-contiguous"),
        ({"rewards": np.zeros((N, 20), "f4")[:, ::2]}, "C-contiguous"),
        ({"rewards": np.broadcast_to(np.float32(0), (N, 10))}, "writable"),
        ({"terminated": np.zeros(N, "u1")}, "bool array"),
        ({"rewards": np.zeros(N * 40 + 1, "u1")[1:].view("f4").reshape(N, 10)}, "C-contiguous"),
    ],
)
def test_an_array_that_does_not_fit_is_refused_and_none_is_taken(out: dict, complaint: str):
    sim = started()
    own = sim.terminated
    with pytest.raises(ValueError, match=complaint):
        sim.step(idle_actions(sim), out={"terminated": np.zeros(N, np.bool_), **out})
    assert sim.terminated is own
    assert (sim.states["steps"] == 0).all()


def test_observations_of_several_roles_have_no_single_buffer():
    sim = started(RAID)
    with pytest.raises(ValueError, match="games with one role"):
        sim.step(idle_actions(sim), out={"observations": np.zeros((N, 3, 5), "f4")})


def test_the_arrays_stay_the_same_objects():
    sim, rng = started(RAID), np.random.default_rng(0)
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

    sim, twin = started(allocate=allocate), started()
    sim.step(idle_actions(sim))
    twin.step(idle_actions(twin))
    assert np.shares_memory(sim.observations, given["observations"])
    np.testing.assert_array_equal(given["rewards"], twin.rewards)
    np.testing.assert_array_equal(seen_bytes(sim), seen_bytes(twin))
