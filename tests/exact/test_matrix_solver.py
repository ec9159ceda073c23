"""Matrix games: known values, certificates that hold on all inputs, and errors that name the place."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from exact_claims import near_saddle
from palaestra.exact import matrix_game, matrix_games, matrix_solver

SHAPES = st.tuples(st.integers(1, 9), st.integers(1, 9))
FINITE = st.floats(-1e6, 1e6, allow_nan=False, width=64)
FEW = st.sampled_from([-1.0, 0.0, 1.0, 1.0 + 1e-9, 0.5, 0.5 - 1e-12])


def certify(payoffs, game) -> None:
    """The answer's own certificate, computed anew."""
    a = np.asarray(payoffs, np.float64)
    span = a.max() - a.min() or 1.0
    for strategy in (game.row_strategy, game.column_strategy):
        assert (strategy >= 0).all()
        assert strategy.sum() == pytest.approx(1.0, abs=1e-12)
    lower, upper = sorted([(game.row_strategy @ a).min(), (a @ game.column_strategy).max()])
    size = 1e-14 * max(np.abs(a).max(), 1e-300)
    assert lower == pytest.approx(game.lower, abs=size)
    assert upper == pytest.approx(game.upper, abs=size)
    assert game.lower <= game.value <= game.upper
    assert game.gap <= 1e-9
    assert upper - lower <= 1e-9 * span + 2 * size


@pytest.mark.check
@pytest.mark.parametrize(
    ("payoffs", "value", "row", "column"),
    [
        ([[0, -1, 1], [1, 0, -1], [-1, 1, 0]], 0, [1 / 3] * 3, [1 / 3] * 3),  # rock, paper, scissors
        ([[1, -1], [-1, 1]], 0, [1 / 2] * 2, [1 / 2] * 2),  # matching pennies
        ([[3, 0], [1, 2]], 1.5, [1 / 4, 3 / 4], [1 / 2, 1 / 2]),
        ([[2, 3], [1, 4]], 2, [1, 0], [1, 0]),  # a saddle
        ([[5]], 5, [1], [1]),
        ([[1, 2, 3]], 1, [1], [1, 0, 0]),
        ([[1], [2], [3]], 3, [0, 0, 1], [1]),
        (np.diag([1.0, 2.0, 4.0]), 4 / 7, [4 / 7, 2 / 7, 1 / 7], [4 / 7, 2 / 7, 1 / 7]),
    ],
)
def test_well_known_games(payoffs, value, row, column):
    game = matrix_game(payoffs)
    assert game.value == pytest.approx(value, abs=1e-14)
    np.testing.assert_allclose(game.row_strategy, row, atol=1e-14)
    np.testing.assert_allclose(game.column_strategy, column, atol=1e-14)


@pytest.mark.check
def test_the_answer_says_how_it_was_found():
    assert matrix_game([[2, 3], [1, 4]]).method == "saddle"
    assert matrix_game([[1, -1], [-1, 1]]).method == "simplex"
    flat = matrix_game(np.full((3, 2), 7.0))
    assert (flat.value, flat.gap) == (7.0, 0.0)


@pytest.mark.check
@given(SHAPES.flatmap(lambda shape: hnp.arrays(np.float64, shape, elements=FINITE)))
def test_every_answer_is_certified(payoffs):
    certify(payoffs, matrix_game(payoffs))


@given(SHAPES.flatmap(lambda shape: hnp.arrays(np.float64, shape, elements=FEW)))
def test_ties_and_almost_ties_are_certified(payoffs):
    certify(payoffs, matrix_game(payoffs))


@settings(max_examples=30)
@given(SHAPES, st.integers(0, 2**31))
def test_matrices_with_almost_a_saddle_point_are_certified(shape, seed):
    pytest.importorskip("scipy", reason="the last of them need the extra palaestra[exact]")
    many = near_saddle(np.random.default_rng(seed), 24, *shape)
    solved = matrix_games(many)
    assert solved.gap.max() <= 1e-9


@given(SHAPES.flatmap(lambda shape: hnp.arrays(np.float64, shape, elements=FINITE)))
def test_exchanging_the_players_changes_the_sign(payoffs):
    size = np.abs(payoffs).max()
    assert matrix_game(-payoffs.T).value == pytest.approx(-matrix_game(payoffs).value, abs=2e-9 * size + 1e-300)


def test_many_games_are_solved_as_each_alone():
    payoffs = np.random.default_rng(0).standard_normal((50, 4, 6))
    many = matrix_games(payoffs)
    for k, a in enumerate(payoffs):
        alone = matrix_game(a)
        assert (many.value[k], many.gap[k], many.method[k]) == (alone.value, alone.gap, alone.method)
        assert (many.row_strategy[k] == alone.row_strategy).all()
        assert (many.column_strategy[k] == alone.column_strategy).all()


def test_small_games_agree_with_scipy():
    pytest.importorskip("scipy", reason="needs the extra palaestra[exact]")
    payoffs = np.random.default_rng(1).standard_normal((60, 4, 5))
    for a, ours in zip(payoffs, matrix_games(payoffs).value, strict=True):
        _, _, lower, upper, gap = matrix_solver.highs(a)
        assert gap < 1e-9
        assert lower - 1e-9 <= ours <= upper + 1e-9


@pytest.mark.parametrize("exchanged", [False, True])
def test_the_second_solver_is_exact_where_its_usual_tolerances_are_not(exchanged):
    pytest.importorskip("scipy", reason="needs the extra palaestra[exact]")
    almost = np.array([[-8e-8, 1 - 2e-8], [1 - 4e-8, 1 - 1e-7], [1 - 6e-8, 1.0], [1 - 4e-8, 4e-8]])
    *_, gap = matrix_solver.highs(1.0 - almost.T if exchanged else almost)
    assert gap < 1e-12


def loosen(monkeypatch) -> None:
    """Makes the compiled solver answer with strategies that prove nothing."""

    def poor(a, x, y, lower, upper, gap, method):
        x[:], y[:], lower[:], upper[:], gap[:], method[:] = 1, 1, -9, 9, 9, 1

    monkeypatch.setattr(matrix_solver, "solve_matrices", poor)


def test_a_loose_certificate_is_made_good_by_the_second_solver(monkeypatch):
    pytest.importorskip("scipy", reason="needs the extra palaestra[exact]")
    loosen(monkeypatch)
    payoffs = [[0, -1, 1], [1, 0, -1], [-1, 1, 0]]
    game = matrix_game(payoffs)
    assert game.method == "highs"
    certify(payoffs, game)


def test_a_loose_certificate_without_scipy_says_what_to_install(monkeypatch):
    loosen(monkeypatch)
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    with pytest.raises(ImportError, match=r'pip install "palaestra\[exact\]"'):
        matrix_game([[1, 2], [3, 4]])


@pytest.mark.parametrize(
    ("payoffs", "message"),
    [
        ([[0, 1], [np.nan, 2]], "row 1, column 0 is nan"),
        ([[0, 1], [2, -np.inf]], "row 1, column 1 is -inf"),
        ([1, 2], r"must be \[rows, columns\], got an array of shape \(2,\)"),
        ([[]], "needs a row and a column"),
        (np.zeros((0, 3)), "needs a row and a column"),
        ([[1e308, -1e308], [0, 1]], "range of the payoffs"),
    ],
)
def test_what_is_no_matrix_game_is_refused(payoffs, message):
    with pytest.raises(ValueError, match=message):
        matrix_game(payoffs)


def test_a_bad_payoff_among_many_games_is_named():
    payoffs = np.zeros((3, 2, 2))
    payoffs[2, 0, 1] = np.inf
    with pytest.raises(ValueError, match="game 2, row 0, column 1 is inf"):
        matrix_games(payoffs)
    with pytest.raises(ValueError, match=r"\[games, rows, columns\]"):
        matrix_games([[1, 2]])
