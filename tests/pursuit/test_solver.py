"""Optimal play of pursuit: against a search by plain sweeps, against theorems, and played from every start."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from palaestra.games.pursuit import solver
from palaestra.games.pursuit.graphs import Graph, read
from palaestra.games.pursuit.solver import NEVER, capture_time, cop_number, solve_pursuit
from pursuit_claims import CAPTURES, COPS

Position = tuple[int, ...]


def is_captured(graph: Graph, pursuers: Position, evader: int, need: int, radius: int) -> bool:
    return sum(0 <= graph.hops[p, evader] <= radius for p in pursuers) >= need


def near(graph: Graph, node: int) -> list[int]:
    return [int(other) for other in graph.neighbours[node] if other >= 0]


def joint_moves(graph: Graph, pursuers: Position) -> list[Position]:
    return list(itertools.product(*(near(graph, node) for node in pursuers)))


def times_by_sweeps(graph: Graph, k: int, need: int, radius: int, exits: Position) -> tuple[np.ndarray, np.ndarray]:
    """Capture and escape times by sweeps over all positions, in plain Python."""
    shape = (graph.nodes,) * (k + 1)
    times, escapes = np.full(shape, NEVER), np.full(shape, NEVER)
    for position in np.ndindex(shape):
        if is_captured(graph, position[:-1], position[-1], need, radius):
            times[position] = 0

    def caught_after(pursuers: Position, evader: int) -> bool:
        """Whether the evader, to move, is lost by what is known so far."""
        if times[(*pursuers, evader)] == 0:
            return True
        ahead = [(node, times[(*pursuers, node)]) for node in near(graph, evader)]
        return all(time == 0 or (time != NEVER and node not in exits) for node, time in ahead)

    def out_after(pursuers: Position, evader: int) -> bool:
        if times[(*pursuers, evader)] == 0:
            return False
        ahead = [node for node in near(graph, evader) if times[(*pursuers, node)] != 0]
        return any(node in exits or escapes[(*pursuers, node)] != NEVER for node in ahead)

    for table, good, some in ((times, caught_after, any), (escapes, out_after, all)):
        for time in range(1, 1000):
            new = [
                position
                for position in np.ndindex(shape)
                if table[position] == NEVER
                and times[position] != 0
                and some(good(ahead, position[-1]) for ahead in joint_moves(graph, position[:-1]))
            ]
            for position in new:
                table[position] = time
            if not new:
                break
    return times, escapes


@pytest.mark.parametrize("seed", range(40))
def test_times_are_those_of_plain_sweeps(seed: int):
    draw = np.random.default_rng(seed)
    nodes, k = int(draw.integers(1, 7)), int(draw.integers(1, 3))
    pairs = np.array(list(itertools.combinations(range(nodes), 2)), np.int64).reshape(-1, 2)
    graph = Graph("drawn", nodes, pairs[draw.random(len(pairs)) < draw.uniform(0.3, 0.8)])
    need, radius = int(draw.integers(1, k + 1)), int(draw.integers(0, 3)) // 2
    exits = tuple(int(node) for node in np.flatnonzero(draw.random(nodes) < 0.2))
    solved = solve_pursuit(graph, k, need, radius, exits)
    times, escapes = times_by_sweeps(graph, k, need, radius, exits)
    np.testing.assert_array_equal(solved.times, times)
    if exits:
        np.testing.assert_array_equal(solved.escapes, escapes)


@pytest.mark.parametrize(("name", "nodes"), [("king:8x8", 64), ("cycle:65", 65), ("path:129", 129)])
def test_times_where_nodes_fill_words_and_spill_over(name: str, nodes: int):
    (graph,) = read(name)
    times = solve_pursuit(graph, 1).times.astype(int)
    assert times.shape == (nodes, nodes)
    if name == "path:129":  # the evader runs to the end that lies behind it
        p, e = np.indices(times.shape)
        expected = np.where(e < p, p, nodes - 1 - p)
        np.testing.assert_array_equal(times, np.where(graph.hops <= 1, graph.hops, expected))
        assert times.max() == nodes - 1
    elif name == "cycle:65":  # an evader beside the pursuer is lost, any other runs round and round
        np.testing.assert_array_equal(times, np.where(graph.hops <= 1, graph.hops, NEVER))
    else:  # a strong product of paths: one pursuer is enough from everywhere
        assert (times >= graph.hops).all()
        assert times.max() <= 2 * graph.diameter


def test_long_times_need_wider_numbers():
    solved = solve_pursuit("path:300", 1)
    assert (solved.times.dtype, solved.times.max()) == (np.int16, 299)
    assert solve_pursuit("path:100", 1).times.dtype == np.int8


# ------------------------------------------------------------------------------------------------------------ theorems


@pytest.mark.parametrize(("name", "cops", "source"), COPS, ids=[name for name, _, _ in COPS])
def test_cop_numbers_are_those_of_the_theorems(name: str, cops: int, source: str):
    assert cop_number(name) == cops, source


@pytest.mark.parametrize(("name", "cops", "time", "source"), CAPTURES, ids=[f"{row[0]}-{row[1]}" for row in CAPTURES])
def test_capture_times_are_those_of_the_theorems(name: str, cops: int, time: int, source: str):
    assert capture_time(name, cops) == time, source


def test_too_few_cops_never_capture():
    assert capture_time("petersen", 2) == NEVER
    with pytest.raises(ValueError, match="2 pursuers are not enough on this graph: raise most"):
        cop_number("petersen", most=2)


# ---------------------------------------------------------------------------------------------------------------- play

PLAYED: list[tuple[str, int, dict[str, Any]]] = [
    ("grid:4x4", 2, {}),
    ("petersen", 2, {}),
    ("torus:3x4", 2, {"radius": 1, "need": 2}),
    ("tree:2x3", 2, {"exits": (7, 14)}),
    ("cycle:9", 1, {"exits": (4,)}),
]


@pytest.mark.check
@pytest.mark.parametrize(("name", "k", "rules"), PLAYED, ids=[row[0] for row in PLAYED])
def test_optimal_play_lasts_as_long_as_solved_and_nobody_beats_it(name: str, k: int, rules: dict[str, Any]):
    """From every position each side's move keeps its time, and no move of the other side gains on it."""
    solved = solve_pursuit(name, k, **rules)
    graph = solved.graph
    for position in np.ndindex(solved.times.shape):
        pursuers, evader = position[:-1], position[-1]
        time = int(solved.times[position])
        if time == 0:
            continue
        ahead = solved.pursuer_moves(pursuers, evader)
        assert all(to in near(graph, node) for to, node in zip(ahead, pursuers, strict=True))
        if time != NEVER and solved.times[(*ahead, evader)] != 0:
            replies = near(graph, evader)
            left = [int(solved.times[(*ahead, node)]) for node in replies]
            assert all(0 <= value <= time - 1 for value in left)
            assert not any(node in solved.exits and value for node, value in zip(replies, left, strict=True))
        for other in joint_moves(graph, pursuers):
            if solved.times[(*other, evader)] == 0:
                assert time == 1
                continue
            reply = solved.evader_move(other, evader)
            after = int(solved.times[(*other, reply)])
            if time == NEVER:
                assert reply in solved.exits or after == NEVER
            elif reply not in solved.exits:
                assert after >= time - 1 or after == NEVER
        if solved.exits and solved.escapes[position] != NEVER:
            reply = solved.evader_move(ahead, evader)
            assert reply in solved.exits or 0 < solved.escapes[(*ahead, reply)] < solved.escapes[position]


def test_a_whole_match_of_optimal_players():
    solved = solve_pursuit("grid:6x6", 2)
    pursuers, evader, moves = (0, 0), 35, 0
    while solved.times[(*pursuers, evader)] != 0:
        pursuers, moves = solved.pursuer_moves(pursuers, evader), moves + 1
        if solved.times[(*pursuers, evader)] != 0:
            evader = solved.evader_move(pursuers, evader)
    assert moves == solved.times[0, 0, 35]


# ------------------------------------------------------------------------------------------------------------- refused


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"graph": "dungeons:2x20"}, r"one graph, 'dungeons:2x20' are 2: pass one of them"),
        ({"graph": "petersen", "pursuers": 0}, r"pursuers must be an integer from 1 to 16"),
        ({"graph": "petersen", "need": 3}, r"need must be an integer from 1 to 2"),
        ({"graph": "petersen", "radius": -1}, r"radius must be an integer from 0 to 4096"),
        ({"graph": "petersen", "exits": (10,)}, r"petersen has no node 10"),
        (
            {"graph": "regular:200x4", "pursuers": 4},
            r"4 pursuers on regular:200x4 \(200 nodes\) would take 1,216\.0 GB",
        ),
    ],
)
def test_what_cannot_be_solved_is_refused(arguments: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=message):
        solve_pursuit(**arguments)


def test_players_are_told_what_does_not_fit():
    solved = solve_pursuit("petersen", 2)
    with pytest.raises(ValueError, match="one for 2 pursuers, got 1 nodes"):
        solved.pursuer_moves((1,), 2)
    with pytest.raises(ValueError, match="petersen has no node 10"):
        solved.evader_move((1, 10), 2)


def test_memory_is_told_before_it_is_taken():
    (graph,) = read("grid:10x10")
    assert solver.bytes_needed(graph, 3) == 100**3 * (100 * 3 + 8 * 2 * 5)
