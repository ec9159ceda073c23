"""CartPole is Gymnasium's CartPole-v1, step by step."""

import math
from typing import Any

import gymnasium
import numpy as np
import pytest
from games.play import long_without_the_compiler
from gymnasium.envs.classic_control.cartpole import CartPoleEnv, CartPoleVectorEnv
from hypothesis import given, settings
from hypothesis import strategies as st

from palaestra.core.contract.spaces import box_space
from palaestra.core.run.kernel import KernelSimulation
from palaestra.games.calibration import cartpole

pytestmark = pytest.mark.jitless

GAME = cartpole.game()
STATE = ("position_m", "velocity_mps", "angle_rad", "velocity_radps")
ANGLES = np.linspace(-0.5, 0.5, 10_001)
SAME_SINE = all(
    (ours(float(x)) == theirs(x)) for x in ANGLES for ours, theirs in ((math.sin, np.sin), (math.cos, np.cos))
)
"""Both games do the same float64 operations in the same order. Only sine and cosine may differ: ours are the C
library's, NumPy may have its own for some processors. Where they agree everything is equal to the bit; else one step
from the same state is equal to a few units in the last place."""


def started(n: int = 1, seed: int = 1, **options: Any) -> Any:
    sim = KernelSimulation(GAME, n, **options)
    sim.reset(seed=seed)
    return sim


def states_of(sim: KernelSimulation) -> np.ndarray:
    """float64 [4, N]."""
    return np.stack([sim.states[name] for name in STATE])


def balance(sim: KernelSimulation, rng: np.random.Generator, slips: Any) -> np.ndarray:
    """A push under the pole, the wrong way now and then."""
    x, v, angle, w = states_of(sim)
    right = angle + 0.3 * w + 0.05 * x + 0.1 * v > 0
    return (right ^ (rng.random(sim.num_envs) < slips)).astype(np.int64)


def assert_same(ours: np.ndarray, theirs: np.ndarray) -> None:
    if SAME_SINE:
        np.testing.assert_array_equal(ours, theirs)
    else:
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-14)


def single(state: np.ndarray, **constants: float) -> CartPoleEnv:
    env: Any = gymnasium.make("CartPole-v1").unwrapped
    env.reset(seed=0)
    env.state = state
    for name, value in constants.items():
        assert hasattr(env, name)
        setattr(env, name, value)
    env.total_mass, env.polemass_length = env.masspole + env.masscart, env.masspole * env.length
    return env


@pytest.mark.check
@pytest.mark.parametrize("slips", [0.02, 0.3, 0.5])
def test_a_match_equals_gymnasiums_from_the_same_state(slips: float):
    n, rng = 8, np.random.default_rng(0)
    sim = started(n, autoreset_mode="off")
    envs = [single(states_of(sim)[:, lane]) for lane in range(n)]
    compared = 0
    for _ in range(499):
        running = ~sim.terminated
        actions = balance(sim, rng, slips)
        sim.step(actions[:, None])
        for lane in np.flatnonzero(running):
            seen, reward, terminated, _, _ = envs[lane].step(int(actions[lane]))
            assert_same(states_of(sim)[:, lane], np.asarray(envs[lane].state))
            assert_same(sim.observations[lane, 0], seen)
            assert (reward, terminated) == (sim.rewards[lane, 0], sim.terminated[lane])
            if not SAME_SINE:
                envs[lane].state = states_of(sim)[:, lane]
            compared += 1
    assert compared > (1000 if slips < 0.2 else 100)
    assert sim.terminated.any() == (slips > 0.2)


@pytest.mark.check
def test_a_batch_equals_gymnasiums_vector_environment_from_the_same_states():
    n, rng = 16, np.random.default_rng(0)
    sim, vector = started(n), CartPoleVectorEnv(n)
    vector.reset(seed=0)
    vector.state = states_of(sim)
    ends = np.zeros(2, np.int64)
    for _ in range(1200):
        starts_anew = sim.terminated | sim.truncated
        actions = balance(sim, rng, np.where(np.arange(n) < n // 2, 0.0, 0.4))
        sim.step(actions[:, None])
        seen, reward, terminated, truncated, _ = vector.step(actions)
        np.testing.assert_array_equal(sim.rewards[:, 0], reward)
        np.testing.assert_array_equal(sim.terminated, terminated)
        np.testing.assert_array_equal(sim.truncated, truncated)
        assert_same(sim.observations[~starts_anew, 0], seen[~starts_anew])
        if starts_anew.any() or not SAME_SINE:  # their new matches come from a stream that all lanes share
            vector.state = states_of(sim)
        ends += [terminated.sum(), truncated.sum()]
    assert (ends > [20, 10]).all()


def test_the_parameters_are_gymnasiums_constants():
    given = {"gravity_mps2": 5.0, "cart_mass_kg": 2.0, "pole_mass_kg": 0.3, "half_length_m": 0.8, "force_n": 7.0}
    given["period_s"] = 0.01
    sim = started(parameters=given, autoreset_mode="off")
    theirs = {"gravity": 5.0, "masscart": 2.0, "masspole": 0.3, "length": 0.8, "force_mag": 7.0, "tau": 0.01}
    env, rng = single(states_of(sim)[:, 0], **theirs), np.random.default_rng(0)
    for _ in range(60):
        action = balance(sim, rng, 0.0)
        sim.step(action[:, None])
        env.step(int(action[0]))
        assert_same(states_of(sim)[:, 0], np.asarray(env.state))
        env.state = states_of(sim)[:, 0]
    assert not sim.terminated[0]


@pytest.mark.check
def test_matches_start_near_the_middle_uniformly():
    start = states_of(started(20_000))
    assert (start >= -0.05).all()
    assert (start < 0.05).all()
    np.testing.assert_allclose(start.mean(axis=1), 0, atol=1e-3)  # 5 standard errors
    np.testing.assert_allclose(start.var(axis=1), 0.1**2 / 12, rtol=0.03)
    assert np.abs(np.corrcoef(start)[~np.eye(4, dtype=bool)]).max() < 0.04


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("position_m", 2.41, "off_track"),
        ("position_m", -2.41, "off_track"),
        ("angle_rad", 0.21, "fell"),
        ("angle_rad", -0.21, "fell"),
    ],
)
def test_an_end_has_a_reason_and_is_paid(name: str, value: float, reason: str):
    sim = started(autoreset_mode="off")
    sim.states[name] = value
    sim.step([[1]])
    assert sim.terminated[0]
    assert GAME.end_reason(sim.info["end_reason"][0]) == reason
    assert sim.rewards[0, 0] == 1


def test_a_match_that_is_never_lost_is_truncated_after_500_decisions():
    sim, rng = started(autoreset_mode="off"), np.random.default_rng(0)
    for step in range(500):
        assert not sim.truncated[0], step
        sim.step(balance(sim, rng, 0.0)[:, None])
    assert sim.truncated[0]
    assert not sim.terminated[0]


@long_without_the_compiler
def test_the_default_cart_reaches_no_bound_that_gymnasium_does_not_have():
    sim, rng = started(256), np.random.default_rng(0)
    fastest = np.zeros(2)
    for _ in range(300):
        _, _, angle, w = states_of(sim)
        # Lanes that run to one side as long as the pole lets them, lanes that swing it, and lanes at random.
        action = np.choose(np.arange(256) % 3, [angle + 0.3 * w > 0.15, w > 0, rng.random(256) < 0.5])
        sim.step(action.astype(np.int64)[:, None])
        fastest = np.maximum(fastest, np.abs(states_of(sim)[[1, 3]]).max(axis=1))
    assert (fastest > [2.0, 2.0]).all()
    assert (fastest < [cartpole.SEEN_VELOCITY_MPS / 2, cartpole.SEEN_VELOCITY_RADPS / 2]).all()


PARAMETER_VALUES = st.fixed_dictionaries(
    {p.name: st.sampled_from([p.low, p.default, p.high]) for p in cartpole.PARAMETERS}
)


@settings(max_examples=30)
@given(PARAMETER_VALUES, st.integers(0, 1))
def test_the_bounds_hold_whatever_the_parameters(parameters: dict[str, float], push: int):
    sim, space = started(parameters=parameters), box_space(cartpole.CART.observation)
    for _ in range(40):
        sim.step([[push]])
        assert space.contains(sim.observations[0, 0]), sim.observations[0, 0]


def test_a_picture_shows_the_cart_and_the_pole_where_they_are():
    pytest.importorskip("PIL")
    sim = started(2)
    sim.states["position_m"], sim.states["angle_rad"] = [-1.2, 1.2], 0.0
    left, right = sim.render(0), sim.render(1)
    assert (left.shape, left.dtype) == ((400, 600, 3), np.uint8)
    for picture, x in ((left, 150), (right, 450)):
        brown = np.argwhere((picture == [202, 152, 101]).all(axis=2))
        assert abs(brown[:, 1].mean() - x) < 1.5
        assert brown[:, 0].min() < 200 < brown[:, 0].max()
    sim.states["angle_rad"] = 0.2
    tips = [np.argwhere((p == [202, 152, 101]).all(axis=2))[0] for p in (right, sim.render(1))]
    assert tips[1][1] > tips[0][1] + 20
