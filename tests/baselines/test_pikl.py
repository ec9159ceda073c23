"""piKL-Hedge: its rounds by hand, its limits, what the rules say of pairs of plans, and factorised joint policies."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("scipy")

from baselines.concert_positions import DUEL, SHORT, positions_of
from scipy.optimize import linprog

from palaestra import make_batch
from palaestra_baselines.common.joint_orders import Terrain, View, draw_plans, log_probabilities
from palaestra_baselines.common.pikl import (
    Results,
    Search,
    nash_conv,
    payoffs,
    pikl_hedge,
    sampled_hedge,
    search_plans,
    softmax,
    views_of,
)
from palaestra_baselines.common.value_anchor import Anchor

PENNIES = np.array([[1.0, -1.0], [-1.0, 1.0]])


def zero_sum(first: np.ndarray) -> np.ndarray:
    """Values of both powers ``[1, I, J, 2]`` from those of the first."""
    return np.stack([first, -first], -1)[None]


class Tables:
    """Results by tables: ``values[power][plan of power 0, plan of power 1, ...]``; the first order is the plan."""

    def __init__(self, values: np.ndarray, lanes: int = 64) -> None:
        self.values, self.sim = values, SimpleNamespace(num_envs=lanes)

    def after(self, records: np.ndarray, plans: np.ndarray, powers: Sequence[int]) -> np.ndarray:
        return self.values[(np.asarray(records), *plans[:, :, 0].T)][:, list(powers)]


def numbered(count: int, powers: int, positions: int = 1) -> list[np.ndarray]:
    """Plans of one order, their number."""
    return [np.tile(np.arange(count)[:, None], (positions, 1, 1)) for _ in range(powers)]


# -- Hedge -------------------------------------------------------------------------------------------------------------


def test_the_first_round_plays_the_anchor_and_the_second_what_follows_from_it():
    values = np.array([[[0.3, 0.2], [-0.5, 0.1], [0.4, -0.6]], [[0.0, 0.7], [0.9, -0.2], [-0.1, 0.5]]])[None]
    anchors = (np.log([[0.25, 0.75]]), np.log([[0.5, 0.3, 0.2]]))
    first, second = pikl_hedge(values, Search(anchor_weight=0.2, rounds=1), anchors)
    np.testing.assert_allclose(first, [[0.25, 0.75]])
    np.testing.assert_allclose(second, [[0.5, 0.3, 0.2]])
    q0 = [0.5 * 0.3 - 0.3 * 0.5 + 0.2 * 0.4, 0.3 * 0.9 - 0.2 * 0.1]
    q1 = [0.25 * 0.2 + 0.75 * 0.7, 0.25 * 0.1 - 0.75 * 0.2, -0.25 * 0.6 + 0.75 * 0.5]
    scale = 0.2 + 1 / (4.0 * 1)
    for power, (q, tau) in enumerate(((q0, [0.25, 0.75]), (q1, [0.5, 0.3, 0.2]))):
        shares = [math.exp((value + 0.2 * math.log(t)) / scale) for value, t in zip(q, tau, strict=True)]
        expected = [(t + share / sum(shares)) / 2 for t, share in zip(tau, shares, strict=True)]
        found = pikl_hedge(values, Search(anchor_weight=0.2, rounds=2, hedge_step=4.0), anchors)[power]
        np.testing.assert_allclose(found[0], expected)


def test_values_are_means_of_all_rounds_and_policies_too():
    values, search = zero_sum(np.array([[0.8, -0.4], [0.1, 0.2]])), Search(anchor_weight=0.1, rounds=3, hedge_step=5.0)
    rounds = [(np.full(2, 0.5), np.full(2, 0.5))]
    for t in (1, 2):
        q0 = np.mean([values[0, :, :, 0] @ y for _, y in rounds], axis=0)
        q1 = np.mean([x @ values[0, :, :, 1] for x, _ in rounds], axis=0)
        scale = 0.1 + 1 / (5.0 * t)
        rounds.append((softmax(q0 / scale), softmax(q1 / scale)))
    for power, found in enumerate(pikl_hedge(values, search)):
        np.testing.assert_allclose(found[0], np.mean([policies[power] for policies in rounds], axis=0))


def test_a_large_lambda_gives_the_anchor():
    rng = np.random.default_rng(0)
    values, tau = zero_sum(rng.uniform(-1, 1, (3, 4))), [rng.dirichlet(np.ones(k)) for k in (3, 4)]
    found = pikl_hedge(values, Search(anchor_weight=1e6), [np.log(t)[None] for t in tau])
    for policy, expected in zip(found, tau, strict=True):
        np.testing.assert_allclose(policy[0], expected, atol=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_a_small_lambda_comes_near_an_equilibrium(seed: int):
    matrix = np.random.default_rng(seed).uniform(-1, 1, (4, 5))
    (x, value), (y, other) = equilibrium(matrix), equilibrium(-matrix.T)
    assert value == pytest.approx(-other)
    assert nash_conv(matrix[None], x[None], y[None])[0] == pytest.approx(0.0, abs=1e-9)
    first, second = pikl_hedge(zero_sum(matrix), Search(anchor_weight=0.002, rounds=3000))
    assert nash_conv(matrix[None], first, second)[0] < 0.02
    assert first[0] @ matrix @ second[0] == pytest.approx(value, abs=0.01)
    np.testing.assert_allclose(first[0], x, atol=0.06)
    np.testing.assert_allclose(second[0], y, atol=0.06)


def equilibrium(matrix: np.ndarray) -> tuple[np.ndarray, float]:
    """The maximin policy of the rows, and its value, by linear programming."""
    rows, columns = matrix.shape
    found = linprog(
        [*np.zeros(rows), -1.0],
        A_ub=np.hstack([-matrix.T, np.ones((columns, 1))]),
        b_ub=np.zeros(columns),
        A_eq=[[*np.ones(rows), 0.0]],
        b_eq=[1.0],
        bounds=[*[(0, 1)] * rows, (None, None)],
    )
    return found.x[:rows], found.x[rows]


def test_a_policy_can_be_exploited_for_what_the_best_responses_gain():
    even, biased = np.array([[0.5, 0.5]]), np.array([[0.75, 0.25]])
    assert nash_conv(PENNIES[None], even, even).tolist() == [0.0]
    assert nash_conv(PENNIES[None], biased, even).tolist() == [0.5]
    assert nash_conv(PENNIES[None], even, biased).tolist() == [0.5]
    skewed = np.array([[3.0, 0.0, -1.0], [1.0, 2.0, 0.0]])[None]
    assert nash_conv(skewed, np.array([[0.25, 0.75]]), np.array([[0.5, 0.5, 0.0]]))[0] == pytest.approx(1.5 + 0.25)


def test_lambda_decides_how_far_a_policy_leaves_the_anchor():
    values, search = zero_sum(np.array([[0.5, 0.5], [0.0, 0.0]])), Search(rounds=4000, anchor_weight=0.25)
    first, second = pikl_hedge(values, search)
    np.testing.assert_allclose(first[0, 0], 1 / (1 + math.exp(-0.5 / 0.25)), atol=0.001)
    np.testing.assert_allclose(second[0], 0.5)


def test_positions_are_searched_alike_alone_and_together_in_parts():
    rng = np.random.default_rng(1)
    first = rng.uniform(-1, 1, (5, 3, 3))
    tables: Any = Tables(np.stack([first, -first], -1), lanes=20)
    orders = np.stack([np.roll(np.arange(3), n) for n in range(5)])
    together = search_plans(tables, np.arange(5), [orders[..., None]] * 2, Search(plans=3), rng)
    for n, order in enumerate(orders):
        for power, policy in enumerate(pikl_hedge(zero_sum(first[n][np.ix_(order, order)]), Search(plans=3))):
            np.testing.assert_allclose(together[power][n], policy[0])


# -- more than two powers ----------------------------------------------------------------------------------------------


def test_drawn_plans_of_the_others_give_nearly_the_same_policies():
    first = np.random.default_rng(2).uniform(-1, 1, (2, 3, 3))
    tables: Any = Tables(np.stack([first, -first], -1))
    search = Search(plans=3, anchor_weight=0.4, rounds=1000)
    found = sampled_hedge(tables, np.arange(2), numbered(3, 2, 2), search, np.random.default_rng(0))
    for power in (0, 1):
        exact = pikl_hedge(np.stack([first, -first], -1), search)[power]
        assert np.ptp(exact) > 0.3
        np.testing.assert_allclose(found[power], exact, atol=0.03)


def test_each_of_three_powers_follows_its_own_values():
    own = np.random.default_rng(3).uniform(-1, 1, (3, 2, 4))  # power, position, plan
    first, second, third = own[0][:, :, None, None], own[1][:, None, :, None], own[2][:, None, None, :]
    grid = np.stack(np.broadcast_arrays(first, second, third), -1)
    tables: Any = Tables(grid)
    search = Search(plans=4, anchor_weight=0.3, rounds=20, hedge_step=2.0)
    found = search_plans(tables, np.arange(2), numbered(4, 3, 2), search, np.random.default_rng(0))
    scales = [0.3 + 1 / (2.0 * t) for t in range(1, 20)]
    for power in range(3):
        rounds = [np.full((2, 4), 0.25), *(softmax(own[power] / scale) for scale in scales)]
        np.testing.assert_allclose(found[power], np.mean(rounds, axis=0))


# -- results -----------------------------------------------------------------------------------------------------------


class Sums:
    """A value that differs from position to position and from power to power."""

    def values(self, features: np.ndarray) -> np.ndarray:
        return features @ np.sin(np.arange(features.shape[1])) / 10.0


@pytest.mark.check
def test_results_are_the_rewards_at_the_end_and_half_the_difference_of_values_before():
    positions, rng = positions_of(DUEL, **SHORT), np.random.default_rng(0)
    some = np.flatnonzero(positions.ends | (np.arange(len(positions.ends)) % 12 == 0))
    records, views = positions.records[some], [view.take(some) for view in positions.views]
    terrain = positions.terrain
    uniforms = rng.random((len(some), 1, terrain.slots))
    plans = np.concatenate([draw_plans(Anchor(terrain), view, uniforms) for view in views], 1)
    few, one = (make_batch(DUEL, n, autoreset_mode="off", compiled=False, last_year=SHORT["last_year"]) for n in (3, 1))
    few.reset(seed=9)
    one.reset(seed=9)
    found = Results(terrain, few, Sums()).after(records, plans, (0, 1))
    ended = []
    for n in range(len(some)):
        one.load_states(records[n : n + 1])
        one.step(plans[n : n + 1])
        told = [Sums().values(view.features)[0] for view in views_of(terrain, one)]
        expected = one.rewards[0] if one.terminated[0] else [(told[0] - told[1]) / 2, (told[1] - told[0]) / 2]
        np.testing.assert_allclose(found[n], expected, atol=1e-6)
        ended.append(bool(one.terminated[0]))
    assert len(some) % 3
    assert {True, False} == set(ended)
    assert (found.sum(1) == 0).all()
    assert np.ptp(found[np.array(ended), 0]) > 0
    few.close()
    one.close()


def test_pairs_of_plans_are_valued_with_the_plan_of_the_first_power_before_that_of_the_second():
    values = np.random.default_rng(4).uniform(-1, 1, (2, 3, 3, 2))
    plans = [np.array([[[2], [0]], [[1], [2]]]), np.array([[[0], [1], [2]], [[2], [1], [0]]])]
    tables: Any = Tables(values)
    found = payoffs(tables, np.arange(2), plans)
    assert found.shape == (2, 2, 3, 2)
    for n, i, j in np.ndindex(2, 2, 3):
        np.testing.assert_array_equal(found[n, i, j], values[n, plans[0][n, i, 0], plans[1][n, j, 0]])


# -- joint policies, one order after another ---------------------------------------------------------------------------


class Conditioned:
    """The conditionals of a joint policy over all plans of one position: the share of the plans with a prefix."""

    def __init__(self, plans: np.ndarray, shares: np.ndarray) -> None:
        self.plans, self.shares = plans, shares

    def prepare(self, view: View) -> View:
        return view

    def probabilities(self, known: View, rows: np.ndarray, slot: int, earlier: np.ndarray) -> np.ndarray:
        lists = known.lists[rows, slot].astype(np.int64)
        agrees = (self.plans[None, :, :slot] == earlier[:, None, :slot]).all(-1)
        mass = np.stack([((self.plans[:, slot] == number[:, None]) & agrees) @ self.shares for number in lists.T], -1)
        return mass / mass.sum(1, keepdims=True)


def enumerated(view: View) -> np.ndarray:
    """All plans of the first position, int64 ``[K, S]``."""
    return np.array(list(itertools.product(*(row[row >= 0].tolist() for row in view.lists[0]))), np.int64)


@pytest.fixture(scope="module")
def opening() -> tuple[Anchor, list[View], list[np.ndarray], list[np.ndarray]]:
    """The anchor, what both powers see of the first moves, all their plans, and the anchor's logarithms."""
    sim = make_batch(DUEL, 1, compiled=False)
    sim.reset(seed=0)
    terrain = Terrain(sim.game)
    anchor, views = Anchor(terrain), views_of(terrain, sim)
    plans = [enumerated(view)[None] for view in views]
    return anchor, views, plans, [log_probabilities(anchor, view, p) for view, p in zip(views, plans, strict=True)]


def test_the_anchor_gives_all_plans_of_the_opening_together_probability_one(opening: Any):
    _, _, plans, logarithms = opening
    assert [p.shape for p in plans] == [(1, 4 * 7 * 7, 4)] * 2
    for logarithm in logarithms:
        assert np.exp(logarithm).sum() == pytest.approx(1.0)


def assert_factors(opening: Any, values: np.ndarray) -> None:
    """The conditionals of both joint policies multiply to them."""
    _, views, plans, logarithms = opening
    policies = pikl_hedge(values, Search(), logarithms)
    for view, every, policy in zip(views, plans, policies, strict=True):
        assert policy.sum() == pytest.approx(1.0)
        found = np.exp(log_probabilities(Conditioned(every[0], policy[0]), view, every))
        np.testing.assert_allclose(found, policy, rtol=0, atol=1e-6)


def test_the_conditionals_of_a_joint_policy_over_all_plans_multiply_to_it(opening: Any):
    count = opening[2][0].shape[1]
    assert_factors(opening, zero_sum(np.random.default_rng(5).uniform(-0.3, 0.3, (count, count))))


@pytest.mark.check
def test_the_conditionals_of_a_joint_policy_over_all_adjudicated_plans_multiply_to_it(opening: Any):
    sim = make_batch(DUEL, 4096, autoreset_mode="off")
    sim.reset(seed=0)
    terrain, plans = Terrain(sim.game), opening[2]
    values = payoffs(Results(terrain, sim, Sums()), sim.states[:1].copy(), plans)
    sim.close()
    assert np.ptp(values) > 0.05
    assert_factors(opening, values)


def test_drawn_plans_weighed_by_values_stand_for_all_plans_weighed_by_the_anchor_too(opening: Any):
    anchor, (view, _), (plans, _), (logarithms, _) = opening
    rng, count = np.random.default_rng(6), 4000
    worth = rng.uniform(-0.2, 0.2, (plans.shape[1], 1))
    exact = pikl_hedge(zero_sum(worth), Search(), (logarithms, np.zeros((1, 1))))[0][0]
    drawn = draw_plans(anchor, view, rng.random((1, count, plans.shape[2])))[0]
    which = (plans[0][None] == drawn[:, None]).all(-1).argmax(1)
    weights = pikl_hedge(zero_sum(worth[which]), Search())[0][0]
    found = np.bincount(which, weights, minlength=len(exact))
    assert np.abs(exact - np.exp(logarithms[0])).sum() > 0.5
    assert np.abs(found - exact).sum() < 0.2
