"""Best moves that pictures of solved matches show: held against the solution move by move, and against the script."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from pursuit.hunts import hunt, place

from palaestra import exact
from palaestra.core.compile.linker import record_view
from palaestra.games.pursuit import best_moves
from palaestra.games.pursuit.best_moves import best_nodes

pytestmark = pytest.mark.jitless

SOLVED = {"order": "alternating", "solve": True}


def solved_match(graph: str, *nodes: int, turn: int = 0, **keywords: Any) -> Any:
    """World and record of a match in which the agents stand on these nodes."""
    sim = place(hunt(graph, pursuers=len(nodes) - 1, **SOLVED, **keywords), *nodes)
    s = record_view(sim.states)[0]
    s.turn = turn
    return sim.game.world, s


def never_last(moves: int) -> float:
    return np.inf if moves < 0 else float(moves)


@pytest.mark.parametrize("nodes", [(0, 15, 6), (0, 1, 15), (5, 10, 3), (12, 2, 9), (0, 0, 15), (1, 5, 0)])
def test_of_a_team_all_nodes_of_its_best_joint_moves_are_shown(nodes: tuple[int, int, int]):
    solution = exact.pursuit("grid:4x4", 2)
    around = [[int(node) for node in solution.graph.neighbours[node] if node >= 0] for node in range(16)]
    one, other, evader = nodes

    def left(a: int, b: int) -> float:
        if solution.times[a, b, evader] == 0:
            return 0.0
        return 1.0 + max(never_last(solution.times[a, b, node]) for node in around[evader])

    joint = {(a, b): left(a, b) for a, b in itertools.product(around[one], around[other])}
    best = [pair for pair, moves in joint.items() if moves == min(joint.values())]
    world, s = solved_match("grid:4x4", *nodes)
    shown = {slot: {pair[slot] for pair in best} for slot in (0, 1)}
    assert {slot: set(found) for slot, found in best_nodes(world, s).items()} == shown
    later = {node: never_last(solution.times[one, other, node]) for node in around[evader]}
    longest = [node for node, moves in later.items() if moves == max(later.values())]
    s.turn = 1
    assert best_nodes(world, s) == ({} if len(longest) == len(later) else {2: longest})


def test_an_evader_that_can_escape_is_shown_its_shortest_way_out():
    world, s = solved_match("path:7", 0, 4, turn=1, exits=[6])
    assert best_nodes(world, s) == {1: [5]}
    s.node[1] = 5
    assert best_nodes(world, s) == {1: [6]}


def test_nothing_is_shown_where_every_move_is_as_good_or_nothing_is_known(monkeypatch: pytest.MonkeyPatch):
    world, s = solved_match("cycle:9", 0, 4)
    assert best_nodes(world, s) == {}, "one pursuer never captures on a cycle"
    world, s = solved_match("grid:4x4", 0, 15, 6)
    assert best_nodes(world._replace(rules=world.rules._replace(order=0)), s) == {}
    assert best_nodes(world._replace(rules=world.rules._replace(solved=0)), s) == {}
    monkeypatch.setattr(best_moves, "MOST_LOOKED_AT", 40)
    assert best_nodes(world, s) == {}
    monkeypatch.undo()
    assert best_nodes(world, s)
    s.alive[2] = 0
    assert best_nodes(world, s) == {}
