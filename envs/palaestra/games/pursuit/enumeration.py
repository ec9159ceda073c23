"""Positions of a small pursuit for `palaestra.exact.solve`: the nodes of all agents, and whose turn it is."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from palaestra.game import Enumeration
from palaestra.games.pursuit.graph_ground import ANY, Ground

MOST_POSITIONS = 2_000_000
MOST_STARTS = 2_000_000
"""Outcomes of the draw of a start."""


class Count(NamedTuple):
    """How positions are numbered: the turn, then the nodes of the pursuers and of the evader as digits.

    Attributes:
        nodes: V.
        agents: Pursuers and the evader.
        turns: 2 in alternating order, else 1.
    """

    nodes: int
    agents: int
    turns: int

    @property
    def positions(self) -> int:
        """Number of positions."""
        return self.turns * self.nodes**self.agents

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of values of each digit."""
        return (self.turns, *[self.nodes] * self.agents)


def counting(ground: Ground) -> Enumeration | None:
    """How the positions of a game are counted; None where there are several graphs, evaders or sizes, or too many."""
    rules = ground.rules
    pursuers, nodes = rules.pursuers, int(ground.nodes[0])
    count = Count(nodes, pursuers + 1, 2 if rules.order else 1)
    is_fixed = len(ground.nodes) == 1 and rules.evaders == 1 and rules.fewest_pursuers == pursuers
    if not is_fixed or rules.starts != ANY or count.positions > MOST_POSITIONS:
        return None
    # Starts of the evader: all nodes but those of the pursuers, of which there are 1 to k.
    starts = math.lcm(*(nodes - taken for taken in range(1, pursuers + 1) if taken < nodes)) * nodes**pursuers
    return Enumeration(
        positions=count.positions,
        write_state=partial(write_state, count),
        state_index=partial(state_index, count),
        initial_chance_outcomes=min(starts, MOST_STARTS),
        canonical=partial(canonical, count),
    )


def write_state(count: Count, states: Any, numbers: np.ndarray) -> None:
    """Writes positions into records of matches."""
    turn, *nodes = np.unravel_index(numbers, count.shape)
    states["turn"] = turn
    states["node"][:, : count.agents] = np.stack(nodes, axis=-1)
    states["alive"][:, : count.agents] = 1
    is_evader = np.arange(count.agents) == count.agents - 1
    states["acting"][:, : count.agents] = (turn[:, None] == is_evader) if count.turns == 2 else 1


def state_index(count: Count, states: Any) -> np.ndarray:
    """Numbers of the positions of records of matches."""
    nodes = states["node"][:, : count.agents]
    turn = states["turn"] if count.turns == 2 else np.zeros(len(nodes), np.int64)
    return np.ravel_multi_index((turn, *nodes.T), count.shape)


def canonical(count: Count, numbers: np.ndarray) -> np.ndarray:
    """The position with the pursuers in ascending order of their nodes: they are alike."""
    turn, *nodes = np.unravel_index(numbers, count.shape)
    return np.ravel_multi_index((turn, *np.sort(np.stack(nodes[:-1]), axis=0), nodes[-1]), count.shape)
