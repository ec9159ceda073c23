"""What agents on a graph see of each other: hops, as shares of the diameter, from where they are and could go.

Columns of agents are in the order of the observing agent: itself, its teammates, then its opponents, each in the
order of their names. A team shares what it sees; with ``vision`` 0 that is everything.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from palaestra.game import Choice, Field
from palaestra.games.pursuit.graph_ground import FAR, NO_NODE
from palaestra.kernels.inlining import inlined

UNSEEN = -1.0
"""Hops to agents that are out of sight or have left, and to exits where there are none."""
NO_WAY = -1
"""Likewise in ``node_hops``."""
THERE, TO_EXIT, MOST, MEAN, TO_EVERYBODY = range(5)
"""Columns of ``neighbours``; from the last one on, one an agent."""
Names = tuple[tuple[str, ...], ...]
STATE_OF_AGENT = 2
"""Numbers of an agent in the global state, besides its hops to all agents."""
FEW = 8
"""Most columns that are written whether their agents are there or not."""


def column_names(team: Sequence[str], opponents: Sequence[str]) -> Names:
    """Names of the columns of agents, for each agent of a team."""
    return tuple((own, *(mate for mate in team if mate != own), *opponents) for own in team)


def own_fields(agents: int, capacity: int, names: Names) -> tuple[Field, ...]:
    """What an agent sees from where it is; ``names`` are those of the columns of agents, for each agent of the role."""
    return (
        Field(
            "hops",
            (agents,),
            -1,
            1,
            "1",
            "to oneself (0), teammates and opponents",
            capacity=capacity,
            parts=names,
        ),
        Field("exit_hops", (), -1, 1, "1", "to the next exit; -1 without exits"),
        Field("time", (), 0, 1, "1", "share of the horizon that is over"),
    )


def neighbour_field(ways: int, agents: int, capacity: tuple[int, int], names: Names) -> Field:
    """The same from behind each alternative of a move."""
    about = (
        "a row an alternative: 1 if it is there, hops from there to the next exit, most and mean hops from there to "
        "all nodes, then hops to each agent as in hops"
    )
    parts = tuple(
        ("is there", "to exit", "most hops", "mean hops", *(f"to {name}" for name in columns)) for columns in names
    )
    shape, room = (ways, TO_EVERYBODY + agents), (capacity[0], TO_EVERYBODY + capacity[1])
    return Field("neighbours", shape, -1, 1, "1", about, capacity=room, parts=parts)


def node_field(nodes: int, agents: int, capacity: tuple[int, int]) -> Field:
    """Hops from all nodes, what a team sees of its graph."""
    about = "hops from every node to the next exit, to the team's members and to opponents, a row each; -1 as in hops"
    shape, room = (1 + agents, nodes), (1 + capacity[0], capacity[1])
    return Field("node_hops", shape, NO_WAY, nodes - 1, "hops", about, dtype="i2", capacity=room)


def move_choice(ways: int, capacity: int) -> Choice:
    """Where to go."""
    return Choice("move", ways, ("stay",), "index into the closed neighbourhood of the node", capacity=capacity)


@inlined
def share(hops, per_hop):
    """Hops as a share of the diameter."""
    part = hops * per_hop
    return part if part < 1.0 else 1.0


def count_everybody(world):
    """Number of agents, slots 0 to this."""
    return world.rules.pursuers + world.rules.evaders


@inlined
def count_columns(world, room):
    """How many columns to write: all that there is room for where these are few, a number that the compiler knows.

    The columns after those of the agents are not shown.
    """
    return room if room <= FEW else count_everybody(world)


def sees(s, world, first, last, other):
    """Whether the team with the slots ``first`` to ``last`` - 1 sees an agent.

    It sees its members and agents at most ``vision`` hops away from one of them; with 0 all agents in the match.
    """
    if s.alive[other] == 0:
        return False
    if s.parameters.vision == 0.0 or first <= other < last:
        return True
    row, is_seen = world.hops[s.graph, s.node[other]], False
    for slot in range(first, last):
        is_seen |= s.alive[slot] != 0 and row[s.node[slot]] <= s.parameters.vision
    return is_seen


def find_seen(s, world, scratch, first, last):
    """Writes into ``scratch.seen`` which agents a team sees."""
    for other in range(count_everybody(world)):
        scratch.seen[other] = sees(s, world, first, last, other)


@inlined
def column_of(slot, other, first, last):
    """Index of ``other`` in the observation order of ``slot``, of the team ``first`` to ``last`` - 1."""
    if other == slot:
        return 0
    if first <= other < last:
        return other - first + (1 if other < slot else 0)
    return last - first + other if other < first else other - first


def line_up(s, world, scratch, slot, first, last):
    """Writes the nodes of all agents into ``scratch.nodes`` in the observation order of ``slot``.

    Columns of agents that are not seen go into ``scratch.hidden``; returns their number.
    """
    hidden = 0
    for other in range(count_everybody(world)):
        column = column_of(slot, other, first, last)
        scratch.nodes[column] = s.node[other]
        if not scratch.seen[other]:
            scratch.hidden[hidden] = column
            hidden += 1
    return hidden


def write_own(s, world, scratch, slot, seen, hidden):
    """``hops``, ``exit_hops`` and ``time`` of an agent after `line_up`."""
    graph, node, per_hop = s.graph, s.node[slot], world.per_hop[s.graph]
    seen.exit_hops = share(world.exit_hops[graph, node], per_hop) if world.rules.has_exits else UNSEEN
    seen.time = s.steps / s.parameters.horizon
    row = world.hops[np.uint64(graph), np.uint64(node)]
    for column in range(count_columns(world, len(seen.hops))):
        seen.hops[column] = share(row[scratch.nodes[column]], per_hop)
    for k in range(hidden):
        seen.hops[scratch.hidden[k]] = UNSEEN


def write_neighbours(s, world, scratch, slot, seen, hidden):
    """``neighbours`` of an agent after `line_up`; rows of alternatives that are not there are 0."""
    graph, per_hop = s.graph, world.per_hop[s.graph]
    ways = world.neighbours[np.uint64(graph), np.uint64(s.node[slot])]
    for way in range(len(seen.neighbours)):
        if ways[way] == NO_NODE:
            break
        node, out = np.uint64(ways[way]), seen.neighbours[way]
        row = world.hops[np.uint64(graph), node]
        out[THERE] = 1.0
        out[TO_EXIT] = UNSEEN
        out[MOST], out[MEAN] = world.eccentricity[np.uint64(graph), node], world.farness[np.uint64(graph), node]
        for column in range(count_columns(world, len(out) - TO_EVERYBODY)):
            out[TO_EVERYBODY + column] = share(row[scratch.nodes[column]], per_hop)
        for k in range(hidden):
            out[np.uint64(TO_EVERYBODY) + scratch.hidden[k]] = UNSEEN
    if world.rules.has_exits:
        for way in range(len(ways)):
            if ways[way] == NO_NODE:
                break
            seen.neighbours[way, TO_EXIT] = share(world.exit_hops[graph, ways[way]], per_hop)


def write_nodes(s, world, scratch, seen, first, last):
    """``node_hops`` of the team with the slots ``first`` to ``last`` - 1."""
    graph = s.graph
    write_row(seen.node_hops[0], world.exit_hops[graph], world.rules.has_exits != 0)
    for slot in range(count_everybody(world)):
        row = seen.node_hops[1 + column_of(first, slot, first, last)]
        write_row(row, world.hops[graph, np.uint64(s.node[slot])], scratch.seen[slot] != 0)


def write_row(out, hops, is_seen):
    """Hops to one agent from every node."""
    if is_seen:
        for node in range(len(hops)):
            out[node] = hops[node] if hops[node] != FAR else NO_WAY
    else:
        for node in range(len(hops)):
            out[node] = NO_WAY


def global_state(s, world, out):
    """For each agent: 1 if it is in the match, hops to the next exit, and hops to all agents in the order of names.

    Then the share of the horizon that is over, and the number of the team that is to move. Hops of or to agents
    that are not in the match are `UNSEEN`.
    """
    everybody, graph, per_hop, at = count_everybody(world), s.graph, world.per_hop[s.graph], 0
    for slot in range(everybody):
        there = s.alive[slot] != 0
        out[at] = there
        out[at + 1] = UNSEEN
        if there and world.rules.has_exits > 0:
            out[at + 1] = share(world.exit_hops[graph, s.node[slot]], per_hop)
        at += STATE_OF_AGENT
        for other in range(everybody):
            is_known = there and s.alive[other] != 0
            out[at] = share(world.hops[graph, s.node[slot], s.node[other]], per_hop) if is_known else UNSEEN
            at += 1
    out[at] = s.steps / s.parameters.horizon
    out[at + 1] = s.turn


def state_size(agents: int) -> int:
    """Numbers of the global state."""
    return agents * (STATE_OF_AGENT + agents) + 2
