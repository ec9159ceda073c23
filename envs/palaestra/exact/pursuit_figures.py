"""Theorems on pursuit, and how fast it is solved on named graphs: a part of `palaestra.exact.solver_figures`."""

from __future__ import annotations

import time
import tracemalloc

from palaestra.pursuit.solver import capture_time, cop_number, solve_pursuit

COPS: tuple[tuple[str, int, str], ...] = (
    ("tree:3x2", 1, "Nowakowski and Winkler 1983: trees can be dismantled"),
    ("complete:6", 1, "likewise"),
    ("king:5x5", 1, "Nowakowski and Winkler 1983: strong products of such graphs"),
    ("cycle:12", 2, "no node of a cycle of four or more is a corner"),
    ("grid:5x5", 2, "Maamoun and Meyniel 1987: products of k trees have ceil((k + 1) / 2)"),
    ("cube:3", 2, "likewise with k = 3"),
    ("cube:4", 3, "likewise with k = 4"),
    ("petersen", 3, "Aigner and Fromme 1984: girth 5 and three neighbours, at least 3; Baird et al. 2014: not more"),
    ("heawood", 3, "Aigner and Fromme 1984 from below"),
    ("dodecahedron", 3, "Aigner and Fromme 1984: planar graphs have at most 3"),
    ("torus:5x5", 3, "Neufeld and Nowakowski 1998: products of two cycles"),
)
"""Cop numbers of graphs, and who has proven them."""
CAPTURES: tuple[tuple[str, int, int, str], ...] = (
    ("path:9", 1, 4, "the radius of a tree"),
    ("tree:2x4", 1, 4, "likewise"),
    ("cycle:12", 2, 3, "two cops on opposite sides: a quarter of the cycle"),
    ("grid:6x6", 2, 5, "Mehrabian 2011: floor((m + n) / 2) - 1"),
    ("grid:4x9", 2, 5, "likewise"),
    ("grid:10x10", 2, 9, "likewise"),
    ("complete:6", 1, 1, "one move to anywhere"),
    ("petersen", 3, 1, "three cops dominate it"),
)
"""Graphs, numbers of cops, their capture times, and why."""
SPEEDS = (("grid:10x10", 2, 0.1), ("grid:10x20", 2, 0.4), ("grid:10x10", 3, 4.0))
"""Graphs, numbers of pursuers, and seconds that a solution may take."""
MOST_BYTES = 0.4e9
"""Bytes that the largest of these solutions may take at a time."""

Row = tuple[str, float, float, bool, str]
"""Arguments of `palaestra.exact.solver_figures.figure`."""


def pursuit_rows() -> list[Row]:
    """Wrong cop numbers and capture times, seconds and bytes of solutions, all once compiled."""
    wrong_cops = [name for name, cops, _ in COPS if cop_number(name) != cops]
    wrong_times = [name for name, cops, moves, _ in CAPTURES if capture_time(name, cops) != moves]
    rows: list[Row] = [
        (f"cop numbers of {len(COPS)} graphs: not as proven", len(wrong_cops), 0, False, ", ".join(wrong_cops)),
        (f"capture times of {len(CAPTURES)} graphs: not as proven", len(wrong_times), 0, False, ", ".join(wrong_times)),
    ]
    for name, pursuers, bar in SPEEDS:
        start = time.perf_counter()
        positions = solve_pursuit(name, pursuers).times.size
        seconds = time.perf_counter() - start
        rows.append((f"{pursuers} pursuers on {name}: s to solve", seconds, bar, False, f"{positions:,} positions"))
    name, pursuers, _ = SPEEDS[-1]
    tracemalloc.start()
    try:
        solve_pursuit(name, pursuers)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    rows.append((f"{pursuers} pursuers on {name}: bytes at a time", most, MOST_BYTES, False, ""))
    return rows
