"""Optimal play of GraphPursuit from every start, and that wrong ends are found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from palaestra.core.compile.linker import jit_disabled
from palaestra.games.pursuit.graph_pursuit import CAPTURED, ESCAPED
from palaestra.games.pursuit.solver import NEVER
from pursuit_claims import OPTIMAL, SCRIPTS, Matches, play_all_starts

compiles = pytest.mark.skipif(jit_disabled(), reason="thousands of decisions")
HORIZON = 1
PLAYED: tuple[tuple[str, int, dict[str, Any]], ...] = (
    ("petersen", 2, {}),
    ("petersen", 3, {}),
    ("cycle:12", 1, {}),
    ("grid:4x4", 2, {}),
    ("grid:5x5", 2, {"exits": (0, 24)}),
    ("grid:5x5", 2, {"need": 2, "radius": 1}),
)
NAMES = [f"{graph} {pursuers} {' '.join(rules)}".strip() for graph, pursuers, rules in PLAYED]
PAIRS = [(name, OPTIMAL) for name in SCRIPTS["pursuer"]] + [(OPTIMAL, name) for name in SCRIPTS["evader"]]


@pytest.mark.check
@compiles
@pytest.mark.parametrize(("graph", "pursuers", "rules"), PLAYED, ids=NAMES)
def test_optimal_sides_end_as_solved_from_every_start_and_no_script_does_better(
    graph: str, pursuers: int, rules: dict[str, Any]
):
    optimal, *others = play_all_starts(graph, pursuers, [(OPTIMAL, OPTIMAL), *PAIRS], **rules)
    assert optimal.as_solved.all()
    assert not (optimal.pursuers_gained | optimal.evader_gained).any()
    for pair, matches in zip(PAIRS, others, strict=True):
        assert not (matches.pursuers_gained if pair[1] == OPTIMAL else matches.evader_gained).any(), pair
    assert not all(matches.as_solved.all() for matches in others), "scripts are worse somewhere"


def matches(rows: list[tuple[int, int, int, int]]) -> Matches:
    """Matches of rows (time, escape, decisions, end reason)."""
    return Matches(*np.array(rows, np.int64).T)


@pytest.mark.parametrize(
    ("solved", "decisions", "reason", "expected"),
    [  # expected: as solved, pursuers gained, evader gained
        ((3, NEVER), 5, CAPTURED, (True, False, False)),
        ((3, NEVER), 3, CAPTURED, (False, True, False)),
        ((3, NEVER), 7, CAPTURED, (False, False, True)),
        ((3, NEVER), 4, ESCAPED, (False, False, True)),
        ((3, NEVER), 40, HORIZON, (False, False, True)),
        ((NEVER, 2), 4, ESCAPED, (True, False, False)),
        ((NEVER, 2), 2, ESCAPED, (False, False, True)),
        ((NEVER, 2), 6, ESCAPED, (False, True, False)),
        ((NEVER, 2), 3, CAPTURED, (False, True, False)),
        ((NEVER, 2), 40, HORIZON, (False, True, False)),
        ((NEVER, NEVER), 40, HORIZON, (True, False, False)),
        ((NEVER, NEVER), 5, CAPTURED, (False, True, False)),
        ((NEVER, NEVER), 4, ESCAPED, (False, False, True)),
    ],
)
def test_wrong_ends_are_found(solved: tuple[int, int], decisions: int, reason: int, expected: tuple[bool, bool, bool]):
    right = (1, NEVER, 1, CAPTURED)
    some = matches([right, (*solved, decisions, reason)])
    assert (some.as_solved[0], some.pursuers_gained[0], some.evader_gained[0]) == (True, False, False)
    assert (some.as_solved[1], some.pursuers_gained[1], some.evader_gained[1]) == expected
