"""Optimal play of pursuit on a graph with full information and alternating moves, pursuers first.

A position is the nodes of the pursuers and of the evader. Let C be the positions in which the evader is captured: at
least ``need`` pursuers are at most ``radius`` hops away. With W_0 = C, the pursuers capture within t of their moves
from W_t::

    F_t = C + {(P, e): all e' in N[e] off the exits have (P, e') in W_t, and no e' outside C is an exit}
    W_{t+1} = C + {(P, e): some P' in N[P] has (P', e) in F_t}

N are closed neighbourhoods: who moves may stay. The evader is lost where it moves from F, and its *capture time* is the
first t. This is retrograde analysis of cops and robbers (Nowakowski and Winkler 1983; Clarke and MacGillivray,
"Characterizations of k-copwin graphs", 2012). With exits the evader's escapes are found in the same way from the nodes
that it leaves by; an evader that is neither caught nor escapes plays on for ever, and no team has won.

For each tuple P the evader's nodes are the bits of a few words, so a sweep costs ``V^k`` words and not ``V^(k+1)``
positions. Pursuers move one after the other: the union over their joint moves is that of one pursuer's moves at a
time. Neighbours of a set of nodes are looked up four bits at a time.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from palaestra.core.compile.compiler import compile_cached
from palaestra.core.compile.linker import jit_disabled
from palaestra.core.contract.keywords import check_count
from palaestra.core.files import printable_name
from palaestra.games.pursuit.graphs import MOST_NODES, Graph, read

NEVER = -1
"""Time of what does not happen."""
MOST_GIGABYTES = 4.0
WORD = 64
NIBBLES = WORD // 4
LONGEST = 2**15 - 1
"""Largest time that an array of times holds."""
DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
"""A word whose 64 windows of six bits all differ: times a power of two, its first six bits say which power."""
BIT_OF = np.zeros(WORD, np.int64)
BIT_OF[[((1 << bit) * int(DE_BRUIJN) & 2**WORD - 1) >> 58 for bit in range(WORD)]] = range(WORD)


def spread(before, after, neighbours, outer, inner):
    """One pursuer moves: ``after[a, v, x]`` is the union of ``before[a, n, x]`` over the neighbours n of v.

    Arrays of words are flat; ``outer`` and ``inner`` are the numbers of a and x, ``neighbours`` int16 ``[V, D]``.
    """
    nodes, width = neighbours.shape
    for a in range(outer):
        for v in range(nodes):
            to = (a * nodes + v) * inner
            start = (a * nodes + v) * inner
            for x in range(inner):
                after[to + x] = before[start + x]
            for k in range(1, width):
                if neighbours[v, k] < 0:
                    break
                start = (a * nodes + neighbours[v, k]) * inner
                for x in range(inner):
                    after[to + x] |= before[start + x]


def neighbours_of_sets(sets, after, table, words):
    """``after[p]`` are all neighbours of the nodes in ``sets[p]``, itself included; both uint64 ``[P, words]``, flat.

    ``table`` uint64 ``[4-bit group, 16, words]`` has the neighbours of each subset of four nodes.
    """
    for p in range(len(sets) // words):
        for w in range(words):
            after[p * words + w] = 0
        for part in range(words):
            word, group = sets[p * words + part], part * NIBBLES
            while word != 0:
                subset = word & np.uint64(15)
                if subset != 0:
                    for w in range(words):
                        after[p * words + w] |= table[group, subset, w]
                word >>= np.uint64(4)
                group += 1


def note_new(wins, more, times, words, nodes, time, bit_of):
    """Writes ``time`` where a bit is in ``more`` and not in ``wins``, and adds it to ``wins``. Returns how many were.

    ``bit_of`` is `BIT_OF`: it finds the lowest bit of a word without a loop.
    """
    found = 0
    for p in range(len(wins) // words):
        for w in range(words):
            new = more[p * words + w] & ~wins[p * words + w]
            if new != 0:
                wins[p * words + w] |= new
                while new != 0:
                    lowest = new & (~new + np.uint64(1))
                    times[p * nodes + WORD * w + bit_of[(lowest * DE_BRUIJN) >> np.uint64(58)]] = time
                    new ^= lowest
                    found += 1
    return found


@cache
def _compiled(function: Any) -> Any:
    if jit_disabled():
        return np.errstate(over="ignore")(function)  # what is multiplied by a De Bruijn number wraps around
    return compile_cached(function)


@dataclass(frozen=True, eq=False)
class PursuitSolution:
    """Optimal play of a pursuit, see the module.

    Attributes:
        graph: The graph.
        pursuers: k.
        need: Pursuers that must be near.
        radius: How near, hops.
        exits: Nodes by which the evader escapes.
        times: int8 or int16 ``[V, ..., V]``, nodes of the k pursuers and of the evader, pursuers to move: their moves
            until the capture, 0 where the evader is captured, `NEVER` where it can avoid it.
        escapes: Likewise the evader's moves until it has escaped, `NEVER` where the pursuers can prevent it. Empty
            without exits.
    """

    graph: Graph
    pursuers: int
    need: int
    radius: int
    exits: tuple[int, ...]
    times: np.ndarray = field(repr=False)
    escapes: np.ndarray = field(repr=False)

    @property
    def winnable(self) -> np.ndarray:
        """Whether the pursuers can force a capture, bool with the shape of `times`."""
        return self.times != NEVER

    @property
    def capture_time(self) -> int:
        """Moves of pursuers that choose where they begin, against an evader that chooses next; `NEVER` if it is safe.

        The capture time of the graph for k cops, where ``need`` is 1, ``radius`` 0 and there are no exits.
        """
        worst = np.where(self.winnable, self.times.astype(np.int16), LONGEST).max(axis=-1)
        least = int(worst.min())
        return NEVER if least == LONGEST else least

    def pursuer_moves(self, pursuers: Sequence[int], evader: int) -> tuple[int, ...]:
        """Nodes where optimal pursuers go from a position.

        They capture as soon as the evader allows it. Where they cannot, they prevent an escape, then delay it, and come
        near by the sum of hops. Among equally good moves the first in order of nodes is taken.

        Args:
            pursuers: Numbers of their nodes, of names those that ``graph.node_of`` gives.
            evader: Likewise.

        Raises:
            ValueError: No such node, or another number of pursuers.
        """
        self._check(pursuers, evader)
        ways = [self._near(node) for node in pursuers]
        return min(itertools.product(*ways), key=lambda ahead: (*self._after_pursuers(ahead, evader), ahead))

    def evader_move(self, pursuers: Sequence[int], evader: int) -> int:
        """The node where an optimal evader goes from a position, it being its turn.

        It escapes as soon as it can, else it is never captured if that is possible, else as late as possible; among
        equal moves it takes the one farthest from the nearest pursuer, then the first in order of nodes.

        Args:
            pursuers: Numbers of their nodes, of names those that ``graph.node_of`` gives.
            evader: Likewise.

        Raises:
            ValueError: No such node, or another number of pursuers.
        """
        self._check(pursuers, evader)
        return min(self._near(evader), key=lambda node: (*self._for_evader(pursuers, node), node))

    def _check(self, pursuers: Sequence[int], evader: int) -> None:
        if len(pursuers) != self.pursuers:
            raise ValueError(f"the solution is one for {self.pursuers} pursuers, got {len(pursuers)} nodes")
        for node in (*pursuers, evader):
            if not 0 <= node < self.graph.nodes:
                what = f"{printable_name(self.graph.name)} has no node {node}"
                raise ValueError(f"{what}: numbers of nodes are 0 to {self.graph.nodes - 1}, see graph.node_of")

    def _near(self, node: int) -> list[int]:
        return [int(other) for other in self.graph.neighbours[node] if other >= 0]

    def _for_evader(self, pursuers: Sequence[int], node: int) -> tuple[int, ...]:
        """How bad a node is for the evader that goes there: worse ones are larger."""
        time = int(self.times[(*pursuers, node)])
        far = -min(int(self.graph.hops[p, node]) % (LONGEST + 1) for p in pursuers)  # unreachable is farthest
        if time == 0:
            return (3, 0, far)
        if node in self.exits:
            return (0, 0, far)
        escape = int(self.escapes[(*pursuers, node)]) if self.exits else NEVER
        if escape != NEVER:
            return (0, escape, far)
        return (1, 0, far) if time == NEVER else (2, -time, far)

    def _after_pursuers(self, pursuers: Sequence[int], evader: int) -> tuple[int, ...]:
        """How bad a position is for the pursuers that have gone there."""
        near = sum(int(self.graph.hops[p, evader]) % (LONGEST + 1) for p in pursuers)
        if self.times[(*pursuers, evader)] == 0:
            return (0, 0, near)
        kind, value = min(self._for_evader(pursuers, node)[:2] for node in self._near(evader))
        return (3 - kind, -value, near)


def bytes_needed(graph: Graph, pursuers: int, exits: bool = False) -> int:
    """Bytes that `solve_pursuit` takes at most at a time: five sets of words, and times, once while they get wider."""
    words = -(-graph.nodes // WORD)
    return graph.nodes**pursuers * (graph.nodes * (3 + 2 * exits) + 8 * words * 5)


def solve_pursuit(
    graph: Any,
    pursuers: int = 2,
    need: int = 1,
    radius: int = 0,
    exits: Sequence[Any] = (),
    most_gigabytes: float = MOST_GIGABYTES,
) -> PursuitSolution:
    """Solves a pursuit of one evader with full information, alternating moves and no limit of time.

    Args:
        graph: What `palaestra.games.pursuit.graphs.read` takes, one graph.
        pursuers: k.
        need: Pursuers that must be near the evader to capture it.
        radius: How near, hops.
        exits: Nodes by which the evader escapes, numbers or labels.
        most_gigabytes: Memory that the solution may take.

    Raises:
        ValueError: No such graph or node, a number out of range, or too much memory; says how much it would be.
    """
    graphs = read(graph)
    if len(graphs) != 1:
        raise ValueError(f"a solution is one of one graph, {graph!r} are {len(graphs)}: pass one of them")
    (one,) = graphs
    check_count("pursuers", pursuers, 1, 16)
    check_count("need", need, 1, pursuers)
    check_count("radius", radius, 0, MOST_NODES)
    leaves = tuple(sorted(one.nodes_of(exits, "exits")))
    needed = bytes_needed(one, pursuers, bool(leaves))
    if needed > most_gigabytes * 1e9:
        what = (
            f"{pursuers} pursuers on {printable_name(one.name)} ({one.nodes} nodes) would take {needed / 1e9:,.1f} GB"
        )
        raise ValueError(f"{what}, allowed are {most_gigabytes:g}: take fewer, or raise most_gigabytes")
    sweeps = _Sweeps(one, pursuers)
    captured = sweeps.captured(need, radius)
    out = sweeps.words_of(np.isin(np.arange(one.nodes), leaves))
    shape = (one.nodes,) * (pursuers + 1)
    times = sweeps.capture_times(captured, out).reshape(shape)
    escapes = sweeps.escape_times(captured, out).reshape(shape) if leaves else np.zeros(0, np.int8)
    return PursuitSolution(one, pursuers, need, radius, leaves, times, escapes)


class _Sweeps:
    """Sets of positions as words: uint64 ``[V^k, words]``, flat; bit e of the words of P is position (P, e)."""

    def __init__(self, graph: Graph, pursuers: int) -> None:
        self.graph, self.pursuers = graph, pursuers
        self.nodes, self.words = graph.nodes, -(-graph.nodes // WORD)
        self.all = self.words_of(np.ones(self.nodes, bool))
        hops = graph.hops
        self.near = np.stack([self.words_of((row >= 0) & (row <= 1)) for row in hops])
        groups = -(-self.nodes // 4)
        padded = np.zeros((4 * groups, self.words), np.uint64)
        padded[: self.nodes] = self.near
        table = np.zeros((groups, 16, self.words), np.uint64)
        for subset in range(16):
            for bit in range(4):
                if subset >> bit & 1:
                    table[:, subset] |= padded.reshape(groups, 4, self.words)[:, bit]
        self.table = table

    def words_of(self, members: np.ndarray) -> np.ndarray:
        """A set of nodes, bool ``[V]``, as words."""
        bits = np.zeros(self.words * WORD, bool)
        bits[: self.nodes] = members
        return np.packbits(bits, bitorder="little").view("<u8").astype(np.uint64)

    def captured(self, need: int, radius: int) -> np.ndarray:
        """The positions in which the evader is captured."""
        hops = self.graph.hops
        balls = np.stack([self.words_of((row >= 0) & (row <= radius)) for row in hops])
        at_least = [self.all] + [np.zeros(self.words, np.uint64)] * need  # by number: nodes near that many pursuers
        for _ in range(self.pursuers):
            spaced = [np.expand_dims(ones, -2) for ones in at_least]
            more = [spaced[0], *(spaced[j] | (spaced[j - 1] & balls) for j in range(1, need + 1))]
            at_least = [np.broadcast_to(ones, (*spaced[-1].shape[:-2], self.nodes, self.words)) for ones in more]
        return np.ascontiguousarray(at_least[need]).reshape(-1)

    def moved(self, positions: np.ndarray, work: np.ndarray) -> np.ndarray:
        """The union over all joint moves of the pursuers, in one of the two arrays, both of which are overwritten."""
        spread_one, inner = _compiled(spread), self.words
        for k in range(self.pursuers):
            spread_one(positions, work, self.graph.neighbours, self.nodes ** (self.pursuers - 1 - k), inner)
            positions, work = work, positions
            inner *= self.nodes
        return positions

    def capture_times(self, captured: np.ndarray, out: np.ndarray) -> np.ndarray:
        """`PursuitSolution.times`, flat."""
        look_up, note = _compiled(neighbours_of_sets), _compiled(note_new)
        times = np.full(len(captured) // self.words * self.nodes, NEVER, np.int8)
        wins, free, work = np.zeros_like(captured), np.empty_like(captured), np.empty_like(captured)
        note(wins, captured, times, self.words, self.nodes, 0, BIT_OF)
        for time in range(1, LONGEST):
            if time == np.iinfo(np.int8).max + 1:
                times = times.astype(np.int16)
            rows = free.reshape(-1, self.words)  # where the evader may go: not to be lost there, or out by an exit
            np.bitwise_or(~wins.reshape(-1, self.words), out, out=rows)
            rows &= self.all
            free &= ~captured
            look_up(free, work, self.table, self.words)
            np.invert(work, out=work)
            work |= captured
            work.reshape(-1, self.words)[:] &= self.all
            after = self.moved(work, free)
            if note(wins, after, times, self.words, self.nodes, time, BIT_OF) == 0:
                break
        return times

    def escape_times(self, captured: np.ndarray, out: np.ndarray) -> np.ndarray:
        """`PursuitSolution.escapes`, flat."""
        look_up, note = _compiled(neighbours_of_sets), _compiled(note_new)
        times = np.full(len(captured) // self.words * self.nodes, NEVER, np.int8)
        escapes, free, work = np.zeros_like(captured), np.empty_like(captured), np.empty_like(captured)
        for time in range(1, LONGEST):
            if time == np.iinfo(np.int8).max + 1:
                times = times.astype(np.int16)
            rows = free.reshape(-1, self.words)
            np.bitwise_or(escapes.reshape(-1, self.words), out, out=rows)
            free &= ~captured
            look_up(free, work, self.table, self.words)  # evader to move, it escapes from here
            work &= ~captured
            np.invert(work, out=work)
            work.reshape(-1, self.words)[:] &= self.all
            after = self.moved(work, free)  # some move of the pursuers prevents it
            np.invert(after, out=after)
            after.reshape(-1, self.words)[:] &= self.all
            after &= ~captured
            if note(escapes, after, times, self.words, self.nodes, time, BIT_OF) == 0:
                break
        return times


def cop_number(graph: Any, most: int = 4, most_gigabytes: float = MOST_GIGABYTES) -> int:
    """The least number of pursuers that capture an evader from some start, wherever the evader begins.

    Args:
        graph: As for `solve_pursuit`.
        most: Largest number that is tried.
        most_gigabytes: As for `solve_pursuit`.

    Raises:
        ValueError: No number up to ``most`` is enough, or as for `solve_pursuit`.
    """
    for count in range(1, most + 1):
        if solve_pursuit(graph, count, most_gigabytes=most_gigabytes).capture_time != NEVER:
            return count
    raise ValueError(f"{most} pursuers are not enough on this graph: raise most")


def capture_time(graph: Any, pursuers: int, most_gigabytes: float = MOST_GIGABYTES) -> int:
    """Moves that k pursuers need from their best start against the best evader; `NEVER` if it is safe.

    Args:
        graph: As for `solve_pursuit`.
        pursuers: k.
        most_gigabytes: As for `solve_pursuit`.

    Raises:
        ValueError: As for `solve_pursuit`.
    """
    return solve_pursuit(graph, pursuers, most_gigabytes=most_gigabytes).capture_time
