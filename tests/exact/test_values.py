"""Values: games solved by hand, bounds that hold, Littman's soccer as the oracle."""

from __future__ import annotations

import numpy as np
import pytest
from games import duel

from palaestra.core.compile.linker import jit_disabled
from palaestra.exact import enumerate_positions, matrix_game, simplex, solve, sweeps, values
from palaestra.exact.sweeps import GAME
from palaestra.exact.values import iterate, local_payoffs

pytestmark = pytest.mark.check

SOCCER = "palaestra/GridSoccer-v0"


@pytest.fixture(scope="module")
def soccer():
    return solve(SOCCER, symmetry=False)


@pytest.mark.parametrize("gamma", [0.5, 0.9, 0.99])
def test_a_game_that_is_solved_by_hand(gamma):
    # An attack: v = value of [[gamma v, 1], [1, gamma v]] = (1 + gamma v) / 2. Midfield: a saddle at 0.
    solution = solve(duel.game(), gamma)
    attack = 1 / (2 - gamma)
    np.testing.assert_allclose(solution.values, [0, attack, -attack], atol=1e-8)
    np.testing.assert_allclose(solution.policy("red")[1], [0.5, 0.5, 0], atol=1e-7)
    assert solution.policy("red")[0, duel.PRESS] == 1.0
    assert solution.start_value == pytest.approx(0, abs=1e-8)


def test_a_local_game_is_the_reward_and_the_discounted_value_of_what_follows():
    table = enumerate_positions(duel.game())
    value = np.array([0.0, 0.8, -0.8])
    np.testing.assert_allclose(local_payoffs(table, 0.5, value, 1), [[0.4, 1.0], [1.0, 0.4]])
    np.testing.assert_allclose(local_payoffs(table, 0.5, value, 0)[0], [0.0, 0.4, 0.4])  # by a coin, by the attack


@pytest.mark.parametrize("tolerance", [0.5, 1e-2, 1e-6])
def test_the_guaranteed_bounds_of_a_game_solved_by_hand_hold_its_values(tolerance):
    attack = 1 / (2 - 0.9)
    found = iterate(enumerate_positions(duel.game()), GAME, 0.9, tolerance)
    assert found.error <= tolerance
    assert (found.lower <= [1e-12, attack + 1e-12, 1e-12 - attack]).all()
    assert ([-1e-12, attack - 1e-12, -attack - 1e-12] <= found.upper).all()


def test_what_pure_strategies_are_worth():
    # A deterministic choice of a corner is exploited: the attack never succeeds, or always does.
    solution = solve(duel.game())
    np.testing.assert_allclose(solution.pure_maximin[1:], [0, -1], atol=1e-8)
    np.testing.assert_allclose(solution.pure_minimax[1:], [1, 0], atol=1e-8)
    assert {1, 2} <= set(solution.without_pure_saddle)
    assert np.isnan(solve(duel.game(), pure=False).pure_maximin).all()


def test_a_game_that_always_ends_may_be_undiscounted():
    # v(k) = (1 + v(k - 1)) / 2 with v(0) = 0.
    solution = solve(duel.game(tries=4), 1.0)
    worth = [1 - 0.5**k for k in range(1, 5)]
    np.testing.assert_allclose(solution.values, [0, *worth, *(-v for v in worth)], atol=1e-8)
    with pytest.raises(
        ValueError, match="gamma=1 is for games that never come back to a position; Duel may, in 3 of 3"
    ):
        solve(duel.game(), 1.0)


def test_a_long_undiscounted_game_is_solved_to_its_end():
    solution = solve(duel.game(tries=300), 1.0, tolerance=1e-10)
    assert solution.values[1] == pytest.approx(0.5, abs=1e-10)
    assert solution.values[300] == pytest.approx(1.0, abs=1e-10)


def test_littmans_soccer_is_worth_what_is_known(soccer):
    ball = soccer.table.starts[np.argmax(soccer.values[soccer.table.starts])]
    assert soccer.values[ball] == pytest.approx(0.218484, abs=1e-6)
    assert soccer.pure_maximin[ball] == pytest.approx(0.0, abs=1e-6)
    assert soccer.pure_minimax[ball] == pytest.approx(0.295245, abs=1e-6)
    assert len(soccer.without_pure_saddle) == 324
    gap = soccer.pure_minimax - soccer.pure_maximin
    assert gap.mean() == pytest.approx(0.098, abs=5e-4)
    assert gap.max() == pytest.approx(0.405, abs=1e-6)
    assert soccer.start_value == pytest.approx(0.0, abs=1e-8)


@pytest.mark.check
def test_in_alternating_order_a_deterministic_policy_is_optimal():
    solution = solve(SOCCER, order="alternating")
    assert len(solution.without_pure_saddle) == 0
    for policy in (solution.policy("red"), solution.policy("blue")):
        assert set(np.unique(policy)) == {0.0, 1.0}


def test_values_agree_for_positions_that_are_alike(soccer):
    few = solve(SOCCER)
    assert len(few.table) < 760
    np.testing.assert_allclose(few.value_of(np.arange(760)), soccer.values, atol=few.error + soccer.error)


def test_the_bounds_hold_the_exact_values(soccer):
    exact = iterate(soccer.table, GAME, 0.9, 1e-13).values
    for tolerance in (1e-1, 1e-3, 1e-6):
        found = iterate(soccer.table, GAME, 0.9, tolerance)
        assert found.error <= tolerance
        assert (found.lower <= exact + 1e-13).all()
        assert (exact - 1e-13 <= found.upper).all()
        assert found.error == max((found.upper - found.values).max(), (found.values - found.lower).max())


def test_plain_value_iteration_in_numpy_finds_the_same(soccer):
    table, v = soccer.table, np.zeros(760)
    for _ in range(2):  # two sweeps of the textbook
        v = np.array([matrix_game(local_payoffs(table, 0.9, v, p)).value for p in range(760)])
    w = soccer.values.copy()
    again = np.array([matrix_game(local_payoffs(table, 0.9, w, p)).value for p in range(760)])
    np.testing.assert_allclose(again, w, atol=4 * soccer.error)  # the fixed point
    assert np.abs(v - w).max() <= 0.9**2 * np.abs(w).max() + 1e-12  # and the contraction


def test_following_strategies_between_sweeps_changes_only_the_time(soccer, monkeypatch):
    monkeypatch.setattr(values, "FOLLOWED_SWEEPS", 0)
    plain = iterate(soccer.table, GAME, 0.9, 1e-8)
    assert plain.sweeps > soccer.sweeps
    np.testing.assert_allclose(plain.values, soccer.values, atol=2e-8)


def test_a_step_that_increases_the_residual_is_undone(soccer, monkeypatch):
    def astray(*arguments):
        arguments[8][:] = 5.0 - arguments[8]

    monkeypatch.setattr(values, "follow_policies", astray)
    found = iterate(soccer.table, GAME, 0.9, 1e-6)
    np.testing.assert_allclose(found.values, soccer.values, atol=2e-6)


def test_loose_brackets_are_narrowed_by_the_second_solver(soccer, monkeypatch):
    pytest.importorskip("scipy", reason="needs the extra palaestra[exact]")
    calls, true_sweep = [], values.sweep

    def loose_sweep(*arguments):
        true_sweep(*arguments)
        lower, upper, method = arguments[-3:]
        lower[434] -= 1e-4  # as if the simplex method had failed there
        upper[434] += 1e-4
        method[434] = 1

    def watched(a):
        calls.append(a.shape)
        return true_highs(a)

    true_highs = values.highs
    monkeypatch.setattr(values, "sweep", loose_sweep)
    monkeypatch.setattr(values, "highs", watched)
    found = iterate(soccer.table, GAME, 0.9, 1e-8)
    assert found.error <= 1e-8
    assert 0 < len(calls) < 100
    np.testing.assert_allclose(found.values, soccer.values, atol=2e-8)


def test_a_tolerance_out_of_reach_says_how_far_it_came():
    with pytest.raises(RuntimeError, match=r"error of 1e-17 was not reached in \d+ sweeps, it is .*raise tolerance="):
        solve(SOCCER, tolerance=1e-17)
    with pytest.raises(RuntimeError, match=r"not reached in 3 sweeps.*max_sweeps="):
        solve(SOCCER, max_sweeps=3)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"gamma": 0.0}, r"gamma must be in \(0, 1\], got 0"),
        ({"gamma": 1.5}, r"gamma must be in \(0, 1\], got 1.5"),
        ({"tolerance": 0.0}, "tolerance must be positive"),
        ({"tolerance": np.nan}, "tolerance must be positive"),
    ],
)
def test_numbers_out_of_range_are_refused(keywords, message):
    with pytest.raises(ValueError, match=message):
        solve(duel.game(), **keywords)


def test_a_table_takes_no_keywords():
    with pytest.raises(TypeError, match="keywords already"):
        solve(enumerate_positions(duel.game()), tries=3)


@pytest.mark.skipif(jit_disabled(), reason="nothing is compiled")
def test_what_is_compiled_beforehand_is_what_the_solvers_call():
    values.compile_solvers()
    names = ("bracket", "solve_matrices", "sweep", "solve_positions", "follow_policies", "order_of_play", "margins")
    functions = [getattr(simplex, name, None) or getattr(sweeps, name) for name in names]
    assert [len(function.signatures) for function in functions] == [1] * len(names)
    solution = solve(SOCCER)
    payoffs = local_payoffs(solution.table, 0.9, solution.values, 3)
    for one in (payoffs, 1.0 - payoffs.T):
        matrix_game(one)
    solve(duel.game(tries=2), 1.0)
    assert [len(function.signatures) for function in functions] == [1] * len(names)
