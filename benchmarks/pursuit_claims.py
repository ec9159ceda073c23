"""Theorems on pursuit, how fast it is solved, whether the environment plays as solved, whether its views tell enough.

A part of ``exact_claims.py``.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from measurement import Measurement
from palaestra import registry
from palaestra.games.pursuit.graph_pursuit import CAPTURED, ESCAPED
from palaestra.games.pursuit.solver import NEVER, PursuitSolution, capture_time, cop_number, solve_pursuit

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

ENVIRONMENT = "palaestra/GraphPursuit-v0"
OPTIMAL = "optimal"
PLAYED: tuple[tuple[str, int, dict[str, Any]], ...] = (
    ("grid:4x4", 2, {}),
    ("petersen", 2, {}),
    ("petersen", 3, {}),
    ("cycle:12", 1, {}),
    ("cycle:12", 2, {}),
    ("cube:4", 3, {}),
    ("grid:5x5", 2, {"need": 2, "radius": 1}),
    ("grid:5x5", 2, {"exits": (0, 24)}),
    ("tree:2x4", 1, {"exits": (30,)}),
)
"""Graphs, numbers of pursuers and rules, from all starts of which optimal sides play each other and all scripts."""
PLAYED_LARGE = ("grid:10x10", 2)
"""A graph from all starts of which optimal sides play each other."""
SCRIPTS: Mapping[str, tuple[str, ...]] = {
    "pursuer": ("greedy", "shortest_path", "keep_exits", "stay", "random"),
    "evader": ("greedy", "shortest_path", "flee", "keep_exits", "stay", "random"),
}
"""Players that optimal play of the other side meets, by team."""
ALIASED = ("grid:10x10", 2, 0.01)
"""A graph, a number of pursuers, and most of the winnable positions that may look alike without a common best move."""
LANES = 1 << 14
LONGER = 20
"""Decisions by which unwinnable matches are longer than the longest winnable ones."""


def pursuit_measurements() -> list[Measurement]:
    """Wrong cop numbers and capture times, seconds and bytes of solutions, all once compiled."""
    wrong_cops = [name for name, cops, _ in COPS if cop_number(name) != cops]
    wrong_times = [name for name, cops, moves, _ in CAPTURES if capture_time(name, cops) != moves]
    rows: list[Measurement] = [
        Measurement(
            "", f"cop numbers of {len(COPS)} graphs: not as proven", len(wrong_cops), 0, False, ", ".join(wrong_cops)
        ),
        Measurement(
            "",
            f"capture times of {len(CAPTURES)} graphs: not as proven",
            len(wrong_times),
            0,
            False,
            ", ".join(wrong_times),
        ),
    ]
    for name, pursuers, bar in SPEEDS:
        start = time.perf_counter()
        positions = solve_pursuit(name, pursuers).times.size
        seconds = time.perf_counter() - start
        rows.append(
            Measurement(
                "", f"{pursuers} pursuers on {name}: s to solve", seconds, bar, False, f"{positions:,} positions"
            )
        )
    name, pursuers, _ = SPEEDS[-1]
    tracemalloc.start()
    try:
        solve_pursuit(name, pursuers)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    rows.append(Measurement("", f"{pursuers} pursuers on {name}: bytes at a time", most, MOST_BYTES, False, ""))
    return [*rows, *play_measurements(), alias_measurement()]


@dataclass(frozen=True, eq=False)
class Matches:
    """Matches in alternating order from all starts that differ, one each; pursuers are alike.

    Attributes:
        times: Moves of the pursuers until the capture, as solved; `NEVER` where there is none. int64 ``[S]``.
        escapes: Moves of the evader until it has escaped, likewise.
        decisions: Decisions that were played, int64 ``[S]``.
        reasons: End reasons, int64 ``[S]``.
    """

    times: np.ndarray
    escapes: np.ndarray
    decisions: np.ndarray
    reasons: np.ndarray

    @property
    def as_solved(self) -> np.ndarray:
        """Where the match ended as solved, bool ``[S]``: pursuers move first, in every other decision."""
        is_captured = (self.reasons == CAPTURED) & (self.decisions == 2 * self.times - 1)
        is_escaped = (self.reasons == ESCAPED) & (self.decisions == 2 * self.escapes)
        goes_on = (self.reasons != CAPTURED) & (self.reasons != ESCAPED)
        undecided = (self.times == NEVER) & (self.escapes == NEVER)
        return np.select([self.times != NEVER, undecided], [is_captured, goes_on], is_escaped)

    @property
    def pursuers_gained(self) -> np.ndarray:
        """Where the pursuers did better than against optimal play, bool ``[S]``."""
        too_soon = (self.times == NEVER) | (self.decisions < 2 * self.times - 1)
        too_late = (self.reasons != ESCAPED) | (self.decisions > 2 * self.escapes)
        return ((self.reasons == CAPTURED) & too_soon) | ((self.escapes != NEVER) & too_late)

    @property
    def evader_gained(self) -> np.ndarray:
        """Where the evader did better than against optimal play, bool ``[S]``."""
        too_soon = (self.escapes == NEVER) | (self.decisions < 2 * self.escapes)
        too_late = (self.reasons != CAPTURED) | (self.decisions > 2 * self.times - 1)
        return ((self.reasons == ESCAPED) & too_soon) | ((self.times != NEVER) & too_late)


def play_all_starts(
    graph: str,
    pursuers: int,
    players: Sequence[tuple[str, str]] = ((OPTIMAL, OPTIMAL),),
    need: int = 1,
    radius: int = 0,
    exits: Sequence[int] = (),
) -> list[Matches]:
    """Plays from every start.

    Args:
        graph: Name of a graph.
        pursuers: How many there are.
        players: Scripts of pursuers and evader, a pair for each element of the result.
        need: Pursuers that must be near the evader to capture it.
        radius: How near, hops.
        exits: Nodes by which the evader escapes.
    """
    solution = solve_pursuit(graph, pursuers, need, radius, exits)
    nodes = np.stack(np.unravel_index(np.arange(solution.times.size), solution.times.shape), axis=-1)
    times = solution.times.reshape(-1).astype(np.int64)
    escapes = solution.escapes.reshape(-1).astype(np.int64) if solution.exits else np.full(len(times), NEVER)
    is_start = (times != 0) & ~np.isin(nodes[:, -1], solution.exits) & (np.diff(nodes[:, :-1]) >= 0).all(axis=1)
    nodes, times, escapes = nodes[is_start], times[is_start], escapes[is_start]
    longest = 2 * int(max(times.max(), escapes.max(), 0)) + LONGER
    sim = registry.make_batch(
        ENVIRONMENT,
        min(len(nodes), LANES),
        autoreset_mode="off",
        graph=graph,
        pursuers=pursuers,
        exits=list(exits),
        order="alternating",
        solve={"need": need, "radius": radius},
        horizon=longest,
    )
    found = []
    for pair in players:
        for team, player in zip(("pursuer", "evader"), pair, strict=True):
            sim.set_opponent(team, player)
        sim.reset(seed=0)
        ends = [_play(sim, nodes[k : k + sim.num_envs]) for k in range(0, len(nodes), sim.num_envs)]
        found.append(Matches(times, escapes, *np.concatenate(ends, axis=1)))
    sim.close()
    return found


def _load(sim: Any, nodes: np.ndarray) -> np.ndarray:
    """Starts matches at these nodes in the first lanes, the pursuers to move; bool ``[N]``, those lanes."""
    count, agents = nodes.shape
    states = sim.states[:count].copy()
    states["node"][:, :agents], states["alive"][:, :agents] = nodes, 1
    states["turn"], states["steps"], states["pending"] = 0, 0, 0
    states["acting"][:, :agents] = np.arange(agents) < agents - 1
    sim.reset()
    lanes = np.arange(sim.num_envs) < count
    sim.load_states(states, mask=lanes)
    return lanes


def _play(sim: Any, nodes: np.ndarray) -> np.ndarray:
    """Decisions and end reasons of matches from these nodes, int64 ``[2, starts]``."""
    count = len(nodes)
    lanes = _load(sim, nodes)
    ends = np.zeros((2, sim.num_envs), np.int64)
    is_over = ~lanes
    decision = 0
    while not is_over.all():
        sim.step()
        decision += 1
        new = (sim.terminated | sim.truncated) & ~is_over
        ends[:, new] = np.stack([np.full(new.sum(), decision), sim.info["end_reason"][new]])
        is_over |= new
    return ends[:, :count]


def play_measurements() -> list[Measurement]:
    """Starts from which optimal sides do not end as solved, and from which a script beats optimal play."""
    off, beaten, starts, games, where = 0, 0, 0, 0, []
    pairs = [(OPTIMAL, OPTIMAL)]
    pairs += [(name, OPTIMAL) for name in SCRIPTS["pursuer"]] + [(OPTIMAL, name) for name in SCRIPTS["evader"]]
    for graph, pursuers, rules in PLAYED:
        optimal, *others = play_all_starts(graph, pursuers, pairs, **rules)
        wrong = int((~optimal.as_solved).sum())
        gained = 0
        for (_, evader), matches in zip(pairs[1:], others, strict=True):
            gained += int((matches.pursuers_gained if evader == OPTIMAL else matches.evader_gained).sum())
        off, beaten, starts = off + wrong, beaten + gained, starts + len(optimal.times)
        games += sum(len(m.times) for m in others)
        where += [graph] if wrong or gained else []
    graph, pursuers = PLAYED_LARGE
    (large,) = play_all_starts(graph, pursuers)
    note = ", ".join(where)
    return [
        Measurement(
            "", f"optimal play from {starts:,} starts on {len(PLAYED)} graphs: not as solved", off, 0, False, note
        ),
        Measurement("", f"scripts against optimal play, {games:,} matches: beat it", beaten, 0, False, note),
        Measurement(
            "",
            f"optimal play from {len(large.times):,} starts on {graph}: not as solved",
            int((~large.as_solved).sum()),
            0,
            False,
            f"{pursuers} pursuers",
        ),
    ]


def best_moves(solution: PursuitSolution, nodes: np.ndarray) -> np.ndarray:
    """Which joint moves capture in the fewest moves, as bits of int64 ``[S]``; at most 63 joint moves.

    Args:
        solution: A solved pursuit.
        nodes: Of the pursuers, who are to move, and of the evader, int64 ``[S, k + 1]``.
    """
    ways = solution.graph.neighbours.astype(np.int64)
    times = np.where(solution.times == NEVER, np.iinfo(np.int16).max, solution.times.astype(np.int64))
    pursuers = nodes.shape[1] - 1
    left = np.empty((len(nodes), ways.shape[1] ** pursuers), np.int64)
    for joint, picked in enumerate(np.ndindex(*[ways.shape[1]] * pursuers)):
        went = [ways[nodes[:, k], way] for k, way in enumerate(picked)]
        answers = ways[nodes[:, -1]]
        after = times[(*(node[:, None] for node in went), np.where(answers < 0, nodes[:, -1:], answers))].max(axis=1)
        after[times[(*went, nodes[:, -1])] == 0] = 0
        after[np.min(went, axis=0) < 0] = np.iinfo(np.int64).max
        left[:, joint] = after
    is_best = left == left.min(axis=1, keepdims=True)
    return (is_best.astype(np.int64) << np.arange(left.shape[1])).sum(axis=1)


def aliased_share(graph: str, pursuers: int, **options: Any) -> tuple[float, int]:
    """Share of the winnable positions that look like others with which they have no best joint move in common.

    A team looks at what all its members observe. All positions are at the same time of a match.

    Args:
        graph: Name of a graph.
        pursuers: How many there are.
        **options: Keywords of the game.

    Returns:
        The share and the number of winnable positions.
    """
    solution = solve_pursuit(graph, pursuers)
    nodes = np.stack(np.nonzero(solution.times > 0), axis=-1)
    sim = registry.make_batch(
        ENVIRONMENT,
        min(len(nodes), LANES),
        autoreset_mode="off",
        graph=graph,
        pursuers=pursuers,
        order="alternating",
        **options,
    )
    sim.reset(seed=0)
    looks = np.empty(len(nodes), np.uint64)
    factors = np.random.default_rng(0).integers(1 << 63, size=1 << 12, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    for first in range(0, len(nodes), sim.num_envs):
        some = nodes[first : first + sim.num_envs]
        _load(sim, some)
        seen = np.ascontiguousarray(sim.team_view("pursuer", "observations")[: len(some)]).reshape(len(some), -1)
        bits = seen.view(np.uint32).reshape(len(some), -1).astype(np.uint64)
        looks[first : first + len(some)] = (bits * factors[: bits.shape[1]]).sum(axis=1, dtype=np.uint64)
    sim.close()
    _, group = np.unique(looks, return_inverse=True)
    common = np.full(int(group.max()) + 1, -1, np.int64)
    np.bitwise_and.at(common, group, best_moves(solution, nodes))
    return float((common[group] == 0).mean()), len(nodes)


def alias_measurement() -> Measurement:
    """Winnable positions in which what a team observes by default does not tell a best move."""
    graph, pursuers, bar = ALIASED
    share, positions = aliased_share(graph, pursuers)
    about = f"{pursuers} pursuers on {graph}: share of positions that look like others without a common best move"
    return Measurement("", about, share, bar, False, f"{positions:,} winnable positions")
