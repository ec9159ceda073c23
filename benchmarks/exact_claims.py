"""The claims about the exact solvers, measured on this machine: ``python benchmarks/exact_claims.py``."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator

import numpy as np

from measurement import Measurement, print_measurements
from palaestra.exact.matrix_solver import matrix_games
from palaestra.exact.positions import enumerate_positions
from palaestra.exact.values import solve
from pursuit_claims import pursuit_measurements

SOCCER = "palaestra/GridSoccer-v0"
SHAPES = ((1, 1), (2, 2), (3, 3), (2, 5), (5, 5), (9, 4), (9, 9), (13, 25), (25, 13), (25, 25))
MATRICES = 100_000
LITTMAN = {"value": 0.218484, "pure maximin": 0.0, "pure minimax": 0.295245}
"""Littman's soccer at kick-off for the side with the ball, gamma = 0.9, from an independent solver."""


def near_saddle(rng: np.random.Generator, count: int, m: int, n: int) -> np.ndarray:
    """Matrices ``[count, m, n]`` like those of value iteration, hard for a simplex method, six kinds by turns.

    Few different integers; a saddle point among them, disturbed by 1e-3 to 1e-12; rows and columns that repeat; such
    that almost repeat; few different numbers, almost; numbers that all but agree.
    """
    a = np.empty((count, m, n))
    for k in range(count):
        noise = rng.standard_normal((m, n)) * 10.0 ** -rng.uniform(3, 12)
        integers = rng.integers(-2, 3, (m, n)).astype(np.float64)
        if k % 6 == 0:
            a[k] = integers
        elif k % 6 == 1:
            i, j = rng.integers(m), rng.integers(n)
            integers[i], integers[:, j] = np.abs(integers[i]), -np.abs(integers[:, j])
            integers[i, j] = 0.0
            a[k] = integers + noise
        elif k % 6 in (2, 3):
            distinct = rng.standard_normal((m, n))
            a[k] = distinct[rng.integers(m, size=m)][:, rng.integers(n, size=n)] + (noise if k % 6 == 3 else 0.0)
        elif k % 6 == 4:
            a[k] = rng.uniform(-1, 1, 4)[rng.integers(4, size=(m, n))] + noise
        else:
            a[k] = rng.standard_normal() + noise
    return a


def matrix_accuracy(matrices: int = MATRICES) -> list[Measurement]:
    """Largest certified gap over random and near-saddle matrices."""
    found = []
    each = -(-matrices // len(SHAPES))
    kinds: tuple[tuple[str, Callable[..., np.ndarray]], ...] = (
        ("random", lambda rng, k, m, n: rng.standard_normal((k, m, n))),
        ("near-saddle", near_saddle),
    )
    for name, draw in kinds:
        rng = np.random.default_rng(0)
        solved = [matrix_games(draw(rng, each, m, n)) for m, n in SHAPES]
        methods, counts = np.unique(np.concatenate([s.method for s in solved]), return_counts=True)
        note = ", ".join(f"{count} {method}" for method, count in zip(methods, counts, strict=True))
        about = f"{each * len(SHAPES):,} {name} matrices up to 25x25: largest relative gap"
        found.append(Measurement("", about, max(float(s.gap.max()) for s in solved), 1e-9, False, note))
    return found


def matrix_speed() -> list[Measurement]:
    """Random matrix games next to scipy's linprog with HiGHS, the best of some rounds that take turns.

    Raises:
        ImportError: scipy is missing.
    """
    try:
        from scipy.optimize import linprog
    except ImportError as error:
        raise ImportError('the comparison needs scipy: pip install "palaestra[exact]"') from error
    found = []
    for size, bar, count in ((5, 500.0, 4000), (25, 20.0, 400)):
        a = np.random.default_rng(0).standard_normal((count, size, size))
        program = {
            "c": np.append(np.zeros(size), -1.0),
            "b_ub": np.zeros(size),
            "A_eq": np.append(np.ones(size), 0.0)[None],
            "b_eq": [1.0],
            "bounds": [(0, None)] * size + [(None, None)],
            "method": "highs",
        }
        ours, theirs = [], []
        matrix_games(a[:2])
        for round_ in range(15):
            start = time.perf_counter()
            matrix_games(a)
            ours.append((time.perf_counter() - start) / count)
            for k in range(3):
                constraints = np.hstack([-a[3 * round_ + k].T, np.ones((size, 1))])
                start = time.perf_counter()
                linprog(A_ub=constraints, **program)
                theirs.append(time.perf_counter() - start)
        note = f"{1e6 * min(ours):.2f} to {1e6 * min(theirs):,.0f} us a game"
        found.append(
            Measurement("", f"{size}x{size}: faster than scipy's linprog", min(theirs) / min(ours), bar, True, note)
        )
    return found


def littman() -> list[Measurement]:
    """Littman's soccer, enumerated and solved with all bounds, once compiled."""
    solve(SOCCER)
    seconds, solution = [], None
    for _ in range(5):
        start = time.perf_counter()
        solution = solve(SOCCER)
        seconds.append(time.perf_counter() - start)
    assert solution is not None
    table = solution.table
    holder = table.starts[np.argmax(solution.values[table.starts])]
    values = (solution.values[holder], solution.pure_maximin[holder], solution.pure_minimax[holder])
    error = max(abs(float(v) - known) for v, known in zip(values, LITTMAN.values(), strict=True))
    everywhere = solve(enumerate_positions(SOCCER, symmetry=False))
    mixed = len(everywhere.without_pure_saddle)
    note = ", ".join(f"{name} {v:+.6f}" for name, v in zip(LITTMAN, values, strict=True))
    off = abs(mixed - 324)
    return [
        Measurement(
            "", "Littman's soccer: s to enumerate and solve", min(seconds), 0.2, False, f"{solution.sweeps} sweeps"
        ),
        Measurement("", "Littman's soccer: guaranteed error", solution.error, 1e-8, False),
        Measurement("", "Littman's soccer at kick-off: off the known values by", error, 1e-6, False, note),
        Measurement("", "Littman's soccer: positions without a pure saddle, off 324 by", off, 0, False, f"{mixed}"),
    ]


def measurements() -> Iterator[Measurement]:
    """All of them."""
    for measure in (matrix_accuracy, matrix_speed, littman, pursuit_measurements):
        yield from measure()


def main() -> int:
    """Prints all measurements. Returns 1 if a bar was missed."""
    found = list(measurements())
    print_measurements(found)
    return 1 if any(measurement.holds is False for measurement in found) else 0


if __name__ == "__main__":
    sys.exit(main())
