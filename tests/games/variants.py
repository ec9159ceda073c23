"""Games of ids under keywords that change their machine code, which several test files use: `make check` warms them."""

from __future__ import annotations

from palaestra import registry
from palaestra.game import Game


def pursuit_by_node() -> Game:
    """GraphPursuit that shows numbers of nodes."""
    return registry.make_game("palaestra/GraphPursuit-v0", observation="nodes")[0]


def solved_pursuit_by_node() -> Game:
    """The same with the solution of its graph, for the optimal scripts."""
    return registry.make_game("palaestra/GraphPursuit-v0", observation="nodes", graph="cycle:8", solve=True)[0]


def confront_by_node() -> Game:
    """GraphConfront that shows numbers of nodes."""
    return registry.make_game("palaestra/GraphConfront-v0", observation="nodes")[0]


def pursuit_by_hops() -> Game:
    """GraphPursuit that shows distances alone."""
    return registry.make_game("palaestra/GraphPursuit-v0", observation="hops")[0]


def confront_by_hops() -> Game:
    """GraphConfront that shows distances alone."""
    return registry.make_game("palaestra/GraphConfront-v0", observation="hops")[0]


def battle_seen_as_in_smac() -> Game:
    """A battle as SMAC shows it."""
    return registry.make_game("palaestra/Skirmish-3m-v0", observation="smac")[0]
