"""GraphConfront: two teams meet on a graph, move along its edges and shoot at who is near.

## Description

A confrontation after the setting of ARAC (Shi et al., arXiv 2511.08412, 2025), whose rules are not public: these are
ours. In a decision all agents of both teams move to a neighbouring node or stay. Then all shots fall together: each
agent deals one point of damage to its target if that is at most `reach` hops away now. An agent without hit points
leaves the match after its shot.

With `vision` above 0, a team sees opponents that are at most so many hops away from one of its members. What it does
not see changes nothing in its observations and masks. Scripts move by the match itself, whatever the vision, but shoot
only at opponents that their team sees.

The scripts: ``stay`` shoots and never moves; ``greedy`` goes to the nearest opponent and shoots at it; ``focus_fire``
goes, as a team, for the opponent with the fewest hit points, the nearest of these; ``kite`` goes where it has a target
and few opponents can shoot at it; ``flee`` keeps away from the nearest opponent and shoots at who comes near.

## Action Space

<!-- table: action -->

Alternative 0 of `move` stays; the others lead to the neighbours of the node in ascending order of their numbers.
Alternative 0 of `target` is nobody; the others are the opponents in the order of their names. The mask allows the moves
that there are, and the targets that are in the match, seen, and at most `reach` + 2 hops away: after both have moved
they may be in reach. A target that is not in reach then is not hit.

## Observation Space

Hops are shares of the graph's diameter; -1 is the value for agents that are out of sight or have left. ``"hops"``,
``"nodes"`` and the codec ``"graph"`` are as in [GraphPursuit](GraphPursuit.md); there are no exits. `hit_points` are
shares of the most, in the order of `hops`. With ``observation="nodes"`` a team sees besides the hit points of its
members and of opponents, in the order of ``node_hops``; with the codec those of each agent are a column of their own,
on its node.

<!-- table: observation -->

``env.state()`` is that of GraphPursuit, followed by the share of hit points of each agent.

## Rewards

``reward="dense"``: the hit points that the other team has lost in the decision, less those that the own team has lost,
as a share of all hit points of the larger team. ``reward="sparse"``: 1 for a victory and -1 for a defeat, at the end.
The teams' rewards add up to exactly 0.

## Starting State

A random draw decides which team is placed first: each of its agents on a node drawn uniformly. The agents of the other
team are placed on nodes drawn uniformly among those that are at least `start_hops` away from all of them, or as far
away as there are any. From a pool of graphs each match draws one.

## Episode End

A match ends when a team has no agent left (``wiped_out``): the other one has won; it is a draw if no agent is left.
It is truncated after 60 decisions: then the team with more hit points has won.

## Arguments

<!-- table: options -->

<!-- table: parameters -->

## Version History

* v0: first version.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from palaestra.game import (
    Choice,
    Field,
    Game,
    Option,
    Parameter,
    Representation,
    Role,
    integer,
    with_options,
)
from palaestra.games.pursuit import confront_scripts, graph_sight
from palaestra.games.pursuit.confront_scripts import AHEAD, NOBODY
from palaestra.games.pursuit.graph_ground import FAR, NO_NODE, ground_of
from palaestra.games.pursuit.graph_pursuit import GRAPH, TRAIL, node_representation
from palaestra.games.pursuit.graphs import MOST_NODES, class_of
from palaestra.kernels.inlining import inlined

RED, BLUE = 0, 1
WIPED_OUT = 2
"""Number of the end reason."""
CAPACITIES = (3, 8, 16)
"""Agents of a team that kernels are compiled for."""


# -- rules -------------------------------------------------------------------------------------------------------------


def reset(s, world):
    """Draws a graph and where all agents start."""
    red, everybody = world.rules.pursuers, graph_sight.count_everybody(world)
    if len(world.nodes) > 1:
        s.graph = integer(s, len(world.nodes))
    if integer(s, 2) == RED:
        place_first(s, world, 0, red)
        place_second(s, world, red, everybody, 0, red)
    else:
        place_first(s, world, red, everybody)
        place_second(s, world, 0, red, red, everybody)
    for slot in range(everybody):
        s.hit_points[slot], s.target[slot] = s.parameters.hit_points, NOBODY
        for k in range(TRAIL):
            s.trail[slot, k] = s.node[slot]


def place_first(s, world, first, last):
    """Draws the nodes of the team that is placed first."""
    for slot in range(first, last):
        s.node[slot] = integer(s, world.nodes[s.graph])


def hops_to_team(s, world, node, first, last):
    """Hops from a node to the nearest of some agents."""
    least = FAR
    for slot in range(first, last):
        least = min(least, world.hops[s.graph, s.node[slot], node])
    return least


def place_second(s, world, first, last, other_first, other_last):
    """Draws the nodes of the other team, far enough from the first one."""
    farthest, found = 0, 0
    for node in range(world.nodes[s.graph]):
        farthest = max(farthest, hops_to_team(s, world, node, other_first, other_last))
    least = min(s.parameters.start_hops, farthest)
    for node in range(world.nodes[s.graph]):
        found += hops_to_team(s, world, node, other_first, other_last) >= least
    for slot in range(first, last):
        left = integer(s, found)
        for node in range(world.nodes[s.graph]):
            left -= hops_to_team(s, world, node, other_first, other_last) >= least
            if left < 0:
                s.node[slot] = node
                break


@inlined
def step(s, world, actions, rewards, scratch):
    """All move, then all shots fall together."""
    red, everybody, at = world.rules.pursuers, graph_sight.count_everybody(world), s.steps % TRAIL
    for slot in range(everybody):
        if s.alive[slot]:
            ways = world.neighbours[np.uint64(s.graph), np.uint64(s.node[slot])]
            s.node[slot] = ways[np.uint64(actions.unit[slot].move)]
        s.trail[slot, at] = s.node[slot]
        scratch.damage[slot] = 0.0
    shoot(s, world, actions, scratch, 0, red, red)
    shoot(s, world, actions, scratch, red, everybody, 0)
    lost_by_red = lose_hit_points(s, scratch, 0, red)
    lost_by_blue = lose_hit_points(s, scratch, red, everybody)
    pay(s, world, rewards, lost_by_red, lost_by_blue)
    return s.info.end_reason != 0


@inlined
def shoot(s, world, actions, scratch, first, last, opponents):
    """Notes the damage that a team deals to the slots from ``opponents`` on; conditions are numbers, not branches."""
    reach = int(s.parameters.reach)
    for slot in range(first, last):
        chosen = actions.unit[slot].target
        target = np.uint64(opponents + max(chosen - 1, 0))
        node, other = np.uint64(s.node[np.uint64(slot)]), np.uint64(s.node[target])
        is_near = world.hops[np.uint64(s.graph), node, other] <= reach
        is_hit = is_near & (chosen > 0) & (s.alive[np.uint64(slot)] != 0) & (s.alive[target] != 0)
        s.target[slot] = np.int64(target) if is_hit else NOBODY
        scratch.damage[target] += is_hit


def lose_hit_points(s, scratch, first, last):
    """Takes the damage of a team; an agent without hit points leaves. Returns the hit points that it has lost."""
    lost = 0.0
    for slot in range(first, last):
        damage = min(scratch.damage[slot], s.hit_points[slot])
        s.hit_points[slot] -= damage
        lost += damage
        is_left = s.hit_points[slot] > 0.0
        s.alive[slot] = is_left
        s.acting[slot] = is_left
    return lost


def pay(s, world, rewards, lost_by_red, lost_by_blue):
    """Ends the match where it is over, and pays the teams."""
    red, everybody = world.rules.pursuers, graph_sight.count_everybody(world)
    red_left = sum_of_hit_points(s, 0, red)
    blue_left = sum_of_hit_points(s, red, everybody)
    is_wiped_out = red_left == 0.0 or blue_left == 0.0
    if is_wiped_out:
        s.info.end_reason = WIPED_OUT
    if (is_wiped_out or s.steps >= s.parameters.horizon) and red_left != blue_left:
        s.info.winner = RED if red_left > blue_left else BLUE
    gain = (lost_by_blue - lost_by_red) / (s.parameters.hit_points * max(red, everybody - red))
    if world.rules.sparse:
        gain = 0.0 if s.info.winner < 0 else 1.0 if s.info.winner == RED else -1.0
    for slot in range(everybody):
        rewards[slot] = gain if slot < red else 0.0 - gain


def sum_of_hit_points(s, first, last):
    """Hit points of a team."""
    total = 0.0
    for slot in range(first, last):
        total += s.hit_points[slot]
    return total


def legal(s, world, mask):
    """The moves that there are, and the targets that may be in reach after both have moved."""
    red, everybody = world.rules.pursuers, graph_sight.count_everybody(world)
    for slot in range(everybody):
        allowed = mask.unit[slot]
        allowed.move[0] = 1
        allowed.target[0] = 1
        if s.alive[slot]:
            ways = world.neighbours[np.uint64(s.graph), np.uint64(s.node[slot])]
            for way in range(1, len(allowed.move)):
                allowed.move[way] = ways[way] != NO_NODE
    allow_targets(s, world, mask, 0, red, red, everybody)
    allow_targets(s, world, mask, red, everybody, 0, red)


@inlined
def allow_targets(s, world, mask, first, last, other_first, other_last):
    """Allows the members of a team the opponents that it sees and that may come within reach."""
    farthest = int(s.parameters.reach) + AHEAD
    for other in range(other_first, other_last):
        if graph_sight.sees(s, world, first, last, other):
            row = world.hops[np.uint64(s.graph), np.uint64(s.node[other])]
            alternative = np.uint64(1 + other - other_first)
            for slot in range(first, last):
                member = np.uint64(slot)
                is_near = row[np.uint64(s.node[member])] <= farthest
                mask.unit[member].target[alternative] = is_near & (s.alive[member] != 0)


# -- observations ------------------------------------------------------------------------------------------------------


def observe_hops(s, world, observations, scratch):
    """From where one is."""
    observe_units(s, world, observations, scratch, write_own)


def observe_local(s, world, observations, scratch):
    """Besides, from behind each alternative."""
    observe_units(s, world, observations, scratch, write_own_and_neighbours)


@inlined
def observe_units(s, world, observations, scratch, write):
    """Observations of the units that live: a function writes what a unit sees, then come hit points."""
    red, everybody = world.rules.pursuers, graph_sight.count_everybody(world)
    note_shares(s, world, scratch)
    for team in range(2):
        first, last = (0, red) if team == RED else (red, everybody)
        line_up_team(s, world, scratch, first, last)
        for slot in range(first, last):
            step_forward(scratch, np.uint64(slot - first))
            if s.alive[slot]:
                hidden = find_hidden(s, scratch, slot, first, last)
                write(s, world, scratch, slot, observations.unit[slot], hidden)
                write_hit_points(scratch, observations.unit[slot])


def observe_nodes(s, world, observations, scratch):
    """Besides, from every node, once for each team."""
    observe_local(s, world, observations, scratch)
    red, everybody = world.rules.pursuers, graph_sight.count_everybody(world)
    observations.lane.graph = s.graph
    observations.lane.diameter = world.diameter[s.graph]
    for team in range(2):
        first, last = (0, red) if team == RED else (red, everybody)
        line_up_team(s, world, scratch, first, last)
        graph_sight.write_nodes(s, world, scratch, observations.team[team], first, last)
        write_hit_points(scratch, observations.team[team])


@inlined
def note_shares(s, world, scratch):
    """Notes what several observations show: shares of the horizon, of hit points by slot, of the diameter by hops."""
    farthest, per_hop = world.diameter[s.graph], world.per_hop[s.graph]
    scratch.time[0] = s.steps / s.parameters.horizon
    for slot in range(graph_sight.count_everybody(world)):
        scratch.points[slot] = s.hit_points[slot] / s.parameters.hit_points
    for hops in range(farthest + 1):
        scratch.share_of[hops] = graph_sight.share(hops, per_hop)
    scratch.share_of[farthest + 1] = 1.0  # where there is no way


@inlined
def line_up_team(s, world, scratch, first, last):
    """Writes nodes and shares of hit points in the order of the columns of a team's first member.

    That is `palaestra.games.pursuit.graph_sight.column_of`. The share of who is not seen is `UNSEEN`; the columns of
    opponents that are not seen are noted in ``scratch.hidden``, their number in ``scratch.unseen``.
    """
    everybody, members, hidden = graph_sight.count_everybody(world), last - first, 0
    graph_sight.find_seen(s, world, scratch, first, last)
    for column in range(members):
        write_column(s, scratch, np.uint64(column), np.uint64(first + column))
    for column in range(members, everybody):
        write_column(s, scratch, np.uint64(column), np.uint64(column - members if first > 0 else column))
        scratch.hidden[hidden] = column
        hidden += scratch.shares[column] < 0.0
    scratch.unseen[0] = hidden


@inlined
def write_column(s, scratch, column, slot):
    """Node and share of hit points of an agent."""
    scratch.nodes[column] = s.node[slot]
    scratch.shares[column] = scratch.points[slot] if scratch.seen[slot] else graph_sight.UNSEEN


@inlined
def step_forward(scratch, member):
    """Exchanges the first column with that of the next member: the columns are then in the order of that one.

    Called for each member in turn, 0 first: after member k - 1 the columns are k - 1, 0, ..., k - 2, k, ....
    """
    nodes, shares = scratch.nodes, scratch.shares
    nodes[0], nodes[member] = nodes[member], nodes[0]
    shares[0], shares[member] = shares[member], shares[0]


@inlined
def find_hidden(s, scratch, slot, first, last):
    """Notes in ``scratch.hidden`` the columns of teammates that have left, too. Returns the number of all of them."""
    hidden = scratch.unseen[0]
    for other in range(first, last):
        scratch.hidden[np.uint64(hidden)] = other - first + (other < slot)
        hidden += s.alive[np.uint64(other)] == 0
    return hidden


@inlined
def write_own(s, world, scratch, slot, seen, hidden):
    """What an agent sees from where it is, besides hit points."""
    seen.exit_hops = graph_sight.UNSEEN
    seen.time = scratch.time[0]
    row, farthest = world.hops[np.uint64(s.graph), np.uint64(s.node[slot])], world.diameter[s.graph] + 1
    for column in range(graph_sight.count_columns(world, len(seen.hops))):
        hops = min(row[scratch.nodes[column]], farthest)
        seen.hops[column] = scratch.share_of[np.uint64(hops)]
    for k in range(hidden):
        seen.hops[scratch.hidden[k]] = graph_sight.UNSEEN


@inlined
def write_own_and_neighbours(s, world, scratch, slot, seen, hidden):
    """The same, and from behind each alternative."""
    write_own(s, world, scratch, slot, seen, hidden)
    write_neighbours(s, world, scratch, slot, seen, hidden)


@inlined
def write_neighbours(s, world, scratch, slot, seen, hidden):
    """From behind each alternative; rows of alternatives that are not there are 0."""
    graph, farthest = np.uint64(s.graph), world.diameter[s.graph] + 1
    ways = world.neighbours[graph, np.uint64(s.node[slot])]
    for way in range(len(seen.neighbours)):
        if ways[way] == NO_NODE:
            break
        node, out = np.uint64(ways[way]), seen.neighbours[way]
        row = world.hops[graph, node]
        out[graph_sight.THERE] = 1.0
        out[graph_sight.TO_EXIT] = graph_sight.UNSEEN
        out[graph_sight.MOST], out[graph_sight.MEAN] = world.eccentricity[graph, node], world.farness[graph, node]
        for column in range(graph_sight.count_columns(world, len(out) - graph_sight.TO_EVERYBODY)):
            hops = min(row[scratch.nodes[column]], farthest)
            out[graph_sight.TO_EVERYBODY + column] = scratch.share_of[np.uint64(hops)]
        for k in range(hidden):
            out[np.uint64(graph_sight.TO_EVERYBODY) + scratch.hidden[k]] = graph_sight.UNSEEN


@inlined
def write_hit_points(scratch, seen):
    """``hit_points`` of all agents in the order of the columns."""
    for column in range(len(seen.hit_points)):
        seen.hit_points[column] = scratch.shares[column]


def global_state(s, world, out):
    """That of `palaestra.games.pursuit.graph_sight.global_state`, then the share of hit points of each agent."""
    everybody = graph_sight.count_everybody(world)
    graph_sight.global_state(s, world, out)
    for slot in range(everybody):
        out[len(out) - everybody + slot] = s.hit_points[slot] / s.parameters.hit_points


# -- the game ----------------------------------------------------------------------------------------------------------


def mirror(agents: int, states: Any, actions: Any) -> None:
    """Exchanges two teams of so many agents each."""
    exchanged = (np.arange(2 * agents) + agents) % (2 * agents)
    for name in ("node", "hit_points", "trail", "alive", "acting", "target"):
        states[name][:, : 2 * agents] = states[name][:, exchanged]
    target = states["target"][:, : 2 * agents]
    target[...] = np.where(target == NOBODY, NOBODY, exchanged[target])
    actions["unit"][:, : 2 * agents] = actions["unit"][:, exchanged]


@with_options(
    replace(GRAPH, default="grid:8x8", about="as in [GraphPursuit](GraphPursuit.md)"),
    Option("red", 3, "size of the team", low=1, high=CAPACITIES[-1]),
    Option("blue", 3, "size of the team", low=1, high=CAPACITIES[-1]),
    Option("reward", "dense", "what is paid: see Rewards", words=("dense", "sparse")),
)
def game(options: Any) -> Game:
    """The rules of `palaestra/GraphConfront-v0`.

    Raises:
        ValueError: A graph without a possible start.
    """
    pool, red, blue = options.graph, options.red, options.blue
    ground = ground_of(pool, pursuers=red, fewest_pursuers=red, evaders=blue, sparse=options.numbers.reward)
    room = next(room for room in CAPACITIES if room >= max(red, blue))
    ways, widest = max(one.neighbours.shape[1] for one in pool), class_of(pool)
    count = red + blue
    reds, blues = (tuple(f"{name}_{k}" for k in range(n)) for name, n in (("red", red), ("blue", blue)))
    seen = (*graph_sight.column_names(reds, blues), *graph_sight.column_names(blues, reds))
    points = Field(
        "hit_points",
        (count,),
        -1,
        1,
        "1",
        "shares of the most, in the order of hops",
        capacity=2 * room,
        parts=seen,
    )
    own = (*graph_sight.own_fields(count, 2 * room, seen), points)
    observation = (*own, graph_sight.neighbour_field(ways, count, (widest, 2 * room), seen))
    target = Choice("target", 1 + max(red, blue), ("nobody",), "then an opponent each", capacity=1 + room)
    return Game(
        name="GraphConfront",
        roles=(Role("unit", (*reds, *blues), observation, (graph_sight.move_choice(ways, widest), target), 2 * room),),
        state=(
            ("node", "i8", (2 * room,)),
            ("graph", "i8"),
            ("turn", "i8"),
            ("trail", "i2", (2 * room, TRAIL)),
            ("hit_points", "f8", (2 * room,)),
            ("target", "i8", (2 * room,)),
        ),
        reset=reset,
        step=step,
        observe=observe_local,
        representations={
            "hops": Representation("hops from the own node alone", observe_hops, {"unit": own}),
            "nodes": node_representation(observe_nodes, pool, ground, 2 * room, replace(points, parts=())),
        },
        legal=legal,
        script=confront_scripts.script,
        plan=confront_scripts.plan,
        scripts=confront_scripts.NAMES,
        parameters=(
            Parameter("reach", 1, 0, FAR - 1, "hops", "within which a target is hit", whole=True),
            Parameter("hit_points", 3, 1, 100, "1", "of each agent at the start", whole=True, at_start=True),
            Parameter("vision", 0, 0, FAR - 1, "hops", "how far agents see; 0 is everything", whole=True),
            Parameter("start_hops", 4, 0, FAR - 1, "hops", "between opponents at the start, if possible", whole=True),
        ),
        horizon=60,
        end_reasons=("wiped_out",),
        global_state=global_state,
        global_state_size=graph_sight.state_size(count) + count,
        scratch=(
            ("damage", "f8", (2 * room,)),
            ("seen", "u1", (2 * room,)),
            ("time", "f4", (1,)),
            ("share_of", "f4", (MOST_NODES + 1,)),
            ("points", "f4", (2 * room,)),
            ("shares", "f4", (2 * room,)),
            ("nodes", "u8", (2 * room,)),
            ("unseen", "i8", (1,)),
            ("hidden", "u8", (2 * room,)),
            ("focus", "i8", (2,)),
        ),
        world=ground,
        zero_sum=True,
        determinism="cross-platform",
        default_opponent="focus_fire",
        render="palaestra.games.pursuit.graph_render:draw",
        render_text="palaestra.games.pursuit.graph_render:write",
        render_fps=3.0,
        facts="palaestra.games.pursuit.graph_render:facts",
        plots=("hops between the teams", "hit points"),
        symmetric_teams=red == blue,
        mirror=partial(mirror, red) if red == blue else None,
    )
