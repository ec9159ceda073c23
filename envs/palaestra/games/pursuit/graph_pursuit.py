"""GraphPursuit: pursuers hunt evaders along the edges of a graph, or keep them from its exits.

## Description

The game of cops and robbers (Nowakowski and Winkler, "Vertex-to-vertex pursuit in a graph", 1983) with its relatives
from learning and network security under one set of rules: pursuers capture an evader when at least `need` of them are
at most `radius` hops away from it, and an evader that reaches an exit has escaped. Captured and escaped evaders leave
the match.

``order="simultaneous"`` (the default): all move at the same time. A pursuer and an evader that cross on an edge have
met: that is a capture as if they stood on the same node. ``order="alternating"``: first the pursuers, then the evaders,
and so on, each with full knowledge of the other team's move; a decision is one team's move. There is a best play
without chance, which `palaestra.exact.pursuit` computes for graphs of hundreds of nodes.

A share of captures can only be judged against what is possible: on a grid two pursuers can force a capture from every
start, on the Petersen graph only from those next to the evader or nearly so. With ``solve=True`` this is computed:
``starts="winnable"`` draws starts from which optimal pursuers win, and the script ``"optimal"`` plays either side.
Divide a share of captures by the share of winnable starts, or start there.

With `vision` above 0, a team sees opponents that are at most so many hops away from one of its members. What it does
not see changes nothing in its observations, masks and infos. Scripts read the match itself, whatever the vision.

The scripts play either team; in brackets what a team plays for which a script means nothing:

* ``stay``: never moves.
* ``greedy``: pursuers go nearer to the nearest evader, each for itself; evaders away from the nearest pursuer.
* ``shortest_path``: pursuers go the shortest way to the nearest evader, and where there are several, teammates go
  different ones; evaders go the shortest way to an exit (``flee`` without exits).
* ``flee``: evaders go to where most nodes are nearer to them than to any pursuer (pursuers: ``greedy``).
* ``keep_exits``: pursuers wait on the exits that the evaders are nearest to, and capture an evader that is one move
  away; evaders run to the nearest exit that they reach before any pursuer (both ``shortest_path`` without exits).
* ``optimal``, where the game is solved: optimal play of alternating moves. Pursuers capture in the fewest moves,
  evaders avoid it, else delay it. In simultaneous order it answers to where the others are now.

## Action Space

<!-- table: action -->

Alternative 0 stays; the others lead to the neighbours of the node in ascending order of their numbers. The mask allows
those that there are. In alternating order the team that is not to move stays.

## Observation Space

Hops are shares of the graph's diameter, so that they mean the same on all graphs; -1 is the value for agents that are
out of sight, not in the match, or have left. By default an agent sees hops from its node and from behind each
alternative, and for each alternative how far it is from all nodes: most and mean hops. Such a local view does not tell
where on the graph agents are. On a grid of 10 x 10 nodes 0.8 % of the positions that two pursuers can win look, to both
of them, like others with which they have no best move in common (24 % without most and mean hops;
``benchmarks/exact_claims.py``). ``observation="hops"`` leaves out ``neighbours``.
``observation="nodes"`` adds ``node_hops``, once for each team, and for the whole match ``graph``, the number of the
drawn graph, and ``diameter``, and ``node_neighbours``, the closed neighbourhoods of all graphs; observations are then a
dict.

With ``codec="graph"`` (it needs ``observation="nodes"``) an agent observes a `gymnasium.spaces.Graph`: a row for each
node with hops to the next exit, itself, its teammates and its opponents, and both directions of each edge.

<!-- table: observation -->

``env.state()`` has for each agent whether it is in the match, hops to the next exit and to all agents; then the time,
and the team that is to move (`palaestra.games.pursuit.graph_sight.global_state`).

## Rewards

For each evader that is captured the pursuers get 1 and the evaders -1; for each that escapes it is the other way round.
In every decision the pursuers pay `time_cost` to the evaders. The teams' rewards add up to exactly 0.

## Starting State

``starts="any"``: each pursuer starts on a node drawn uniformly; ``"together"``: all on one. Evaders start on nodes
drawn uniformly among those that are at least `start_hops` away from all pursuers and exits, or as far away as there are
any, and where they are not captured at once. ``"winnable"``: besides, the pursuers win from there under optimal play of
alternating moves. From a pool of graphs each match draws one, and with `fewest_pursuers` below `pursuers` the number of
pursuers; those that are not drawn are not in the match.

## Episode End

A match ends when the last evader has left: ``captured``, or ``escaped`` if one of them did. The pursuers have won if
they captured more evaders than escaped, the evaders if fewer; as many are a draw. It is truncated after 128 decisions:
then the evaders have won.

## Arguments

<!-- table: options -->

A text with a slash or a suffix is the path of a file: lines of two names (by blanks, tabs, commas or semicolons),
GraphML, GEXF, GML, Pajek, METIS, DIMACS, Matrix Market, graph6, sparse6 or a MovingAI map, told apart by their content
(`palaestra.games.pursuit.graph_files`). Weights are left out: each edge is one move. Nodes have the names of the
networkx graph or of the file; where these are words, or where there are none, their numbers from 0 on are names, too.

<!-- table: parameters -->

## Version History

* v0: first version.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from palaestra.core.contract.keywords import check_count
from palaestra.core.files import printable_name
from palaestra.game import Field, Game, Option, Parameter, Representation, Role, any_text, uniform, with_options
from palaestra.games.pursuit import graph_sight, pursuit_scripts
from palaestra.games.pursuit.codec import GraphCodec
from palaestra.games.pursuit.enumeration import counting
from palaestra.games.pursuit.graph_ground import (
    FAR,
    NO_NODE,
    TOGETHER,
    WINNABLE,
    Ground,
    exits_of,
    ground_of,
    with_solutions,
)
from palaestra.games.pursuit.graphs import Graph, class_of, is_family, read

PURSUERS, EVADERS = 0, 1
CAPTURED, ESCAPED = 2, 3
"""Numbers of the end reasons."""
CAPACITIES = ((3, 1), (8, 2), (16, 4))
"""Pursuers and evaders that kernels are compiled for."""
NODE_CAPACITIES = (128, 256, 512, 1024, 2048, 4096)
"""Nodes that kernels of ``observation="nodes"`` are compiled for."""
TRAIL = 8
"""Nodes of an agent that pictures show."""
TRIES = 32
"""Draws of pursuers that are looked at for a winnable start."""
BITS = 2.0**44
"""Outcomes that one draw serves."""


# -- start -------------------------------------------------------------------------------------------------------------


def draw(s, n):
    """An int in [0, n). One draw of the stream serves several, as long as its 53 bits are enough."""
    if s.outcomes * n > BITS or s.outcomes == 0.0:
        s.luck, s.outcomes = uniform(s, 0.0, 1.0), 1.0
    scaled = s.luck * n
    found = int(scaled)
    s.luck, s.outcomes = scaled - found, s.outcomes * n
    return found


def reset(s, world):
    """Draws a graph, how many pursuers there are, and where all agents start."""
    rules = world.rules
    pursuers, everybody = rules.pursuers, rules.pursuers + rules.evaders
    s.luck, s.outcomes = 0.0, 0.0
    if len(world.nodes) > 1:
        s.graph = draw(s, len(world.nodes))
    there = rules.fewest_pursuers
    if there < pursuers:
        there += draw(s, pursuers - there + 1)
    for slot in range(there, pursuers):
        s.alive[slot] = 0
    place_pursuers(s, world)
    tries = 1
    while tries < TRIES and rules.starts == WINNABLE and farthest_start(s, world) < 0:
        place_pursuers(s, world)
        tries += 1
    for slot in range(pursuers, everybody):
        s.node[slot] = start_of_evader(s, world)
    if tries == TRIES:
        for slot in range(everybody):
            s.node[slot] = world.safe_start[s.graph, slot]
    s.luck, s.outcomes = 0.0, 0.0
    for slot in range(everybody):
        for k in range(TRAIL):
            s.trail[slot, k] = s.node[slot]
    call_to_move(s, world)


def place_pursuers(s, world):
    """Draws the nodes of the pursuers."""
    rules = world.rules
    for slot in range(rules.pursuers):
        if slot == 0 or rules.starts != TOGETHER:
            s.node[slot] = draw(s, world.nodes[s.graph])
        else:
            s.node[slot] = s.node[0]


def distance_of_start(s, world, node):
    """Hops from a node to the nearest pursuer or exit; -1 where no evader may start."""
    rules, near, least = world.rules, 0, world.exit_hops[s.graph, node]
    for slot in range(rules.pursuers):
        if s.alive[slot]:
            hops = world.hops[s.graph, s.node[slot], node]
            near += hops <= s.parameters.radius
            least = min(least, hops)
    if near >= s.parameters.need or world.exit_hops[s.graph, node] == 0:
        return -1
    if rules.starts == WINNABLE and pursuit_scripts.time_of(s, world, node) <= 0:
        return -1
    return least


def farthest_start(s, world):
    """Most hops from a node where an evader may start to the nearest pursuer or exit; -1 if there is no such node."""
    farthest = -1
    for node in range(world.nodes[s.graph]):
        farthest = max(farthest, distance_of_start(s, world, node))
    return farthest


def start_of_evader(s, world):
    """Draws the node of an evader."""
    is_plain = s.parameters.need == 1.0 and s.parameters.radius == 0.0 and s.parameters.start_hops <= 1.0
    if is_plain and world.rules.has_exits == 0 and world.rules.starts != WINNABLE:
        return free_node(s, world)
    least, found = s.parameters.start_hops, count_starts(s, world, s.parameters.start_hops)
    if found == 0:
        least = farthest_start(s, world)
        found = count_starts(s, world, least)
    left = draw(s, found)
    for node in range(world.nodes[s.graph]):
        left -= distance_of_start(s, world, node) >= max(least, 0)
        if left < 0:
            return node
    return 0


def free_node(s, world):
    """Draws a node without a pursuer, as the general way does, but without looking at all nodes."""
    last = world.nodes[s.graph] - 1
    free = last + 1 - count_pursuers_to(s, world, last)
    if free == 0:
        return 0
    number = draw(s, free)
    node = number
    while node != number + count_pursuers_to(s, world, node):
        node = number + count_pursuers_to(s, world, node)
    return node


def count_pursuers_to(s, world, last):
    """Number of nodes from 0 to ``last`` where pursuers are."""
    count = 0
    for slot in range(world.rules.pursuers):
        is_new = s.alive[slot] != 0 and s.node[slot] <= last
        for other in range(slot):
            is_new &= s.alive[other] == 0 or s.node[other] != s.node[slot]
        count += is_new
    return count


def count_starts(s, world, least):
    """Number of nodes where an evader may start, at least so many hops away from pursuers and exits."""
    found = 0
    for node in range(world.nodes[s.graph]):
        found += distance_of_start(s, world, node) >= max(least, 0)
    return found


def call_to_move(s, world):
    """Asks the team whose turn it is for an action, or both where all move at the same time."""
    rules = world.rules
    for slot in range(rules.pursuers + rules.evaders):
        is_turn = rules.order == 0 or (slot >= rules.pursuers) == (s.turn == EVADERS)
        s.acting[slot] = s.alive[slot] != 0 and is_turn


# -- rules -------------------------------------------------------------------------------------------------------------


def step(s, world, actions, rewards, scratch):
    """All who are to move do, then evaders are captured or escape."""
    rules = world.rules
    pursuers, everybody = rules.pursuers, rules.pursuers + rules.evaders
    for slot in range(everybody):
        scratch.before[slot] = s.node[slot]
        if s.acting[slot]:
            move = actions.pursuer[slot].move if slot < pursuers else actions.evader[slot - pursuers].move
            s.node[slot] = world.neighbours[s.graph, s.node[slot], move]
        s.trail[slot, s.steps % TRAIL] = s.node[slot]
    gain, left = 0.0 - s.parameters.time_cost, 0
    for slot in range(pursuers, everybody):
        if s.alive[slot] and is_captured(s, world, scratch, slot):
            s.alive[slot] = 0
            s.info.captured += 1
            gain += 1.0
        elif s.alive[slot] and world.exit_hops[s.graph, s.node[slot]] == 0:
            s.alive[slot] = 0
            s.info.escaped += 1
            gain -= 1.0
        left += s.alive[slot]
    for slot in range(everybody):
        rewards[slot] = gain if slot < pursuers else 0.0 - gain
    if left == 0:
        s.info.end_reason = ESCAPED if s.info.escaped > 0 else CAPTURED
        if s.info.captured != s.info.escaped:
            s.info.winner = PURSUERS if s.info.captured > s.info.escaped else EVADERS
    elif s.steps >= s.parameters.horizon:
        s.info.winner = EVADERS
    if rules.order:
        s.turn = 1 - s.turn
    call_to_move(s, world)
    return left == 0


def is_captured(s, world, scratch, evader):
    """Whether enough pursuers are near an evader or have met it on an edge."""
    near, to = 0, s.node[evader]
    for slot in range(world.rules.pursuers):
        if s.alive[slot]:
            has_met = s.node[slot] == scratch.before[evader] and scratch.before[slot] == to
            near += has_met or world.hops[s.graph, s.node[slot], to] <= s.parameters.radius
    return near >= s.parameters.need


def legal(s, world, mask):
    """The alternatives that there are; who is not to move stays."""
    pursuers = world.rules.pursuers
    for slot in range(pursuers + world.rules.evaders):
        allowed = mask.pursuer[slot].move if slot < pursuers else mask.evader[slot - pursuers].move
        allowed[0] = 1
        if s.acting[slot]:
            ways = world.neighbours[s.graph, s.node[slot]]
            for way in range(1, len(ways)):
                if ways[way] == NO_NODE:
                    break
                allowed[way] = 1


# -- observations ------------------------------------------------------------------------------------------------------


def observe_hops(s, world, observations, scratch):
    """From where one is."""
    pursuers, everybody = world.rules.pursuers, graph_sight.count_everybody(world)
    graph_sight.find_seen(s, world, scratch, 0, pursuers)
    for slot in range(pursuers):
        if s.alive[slot]:
            hidden = graph_sight.line_up(s, world, scratch, slot, 0, pursuers)
            graph_sight.write_own(s, world, scratch, slot, observations.pursuer[slot], hidden)
    graph_sight.find_seen(s, world, scratch, pursuers, everybody)
    for slot in range(pursuers, everybody):
        if s.alive[slot]:
            hidden = graph_sight.line_up(s, world, scratch, slot, pursuers, everybody)
            graph_sight.write_own(s, world, scratch, slot, observations.evader[slot - pursuers], hidden)


def observe_local(s, world, observations, scratch):
    """Besides, from behind each alternative."""
    pursuers, everybody = world.rules.pursuers, graph_sight.count_everybody(world)
    graph_sight.find_seen(s, world, scratch, 0, pursuers)
    for slot in range(pursuers):
        if s.alive[slot]:
            hidden = graph_sight.line_up(s, world, scratch, slot, 0, pursuers)
            graph_sight.write_own(s, world, scratch, slot, observations.pursuer[slot], hidden)
            graph_sight.write_neighbours(s, world, scratch, slot, observations.pursuer[slot], hidden)
    graph_sight.find_seen(s, world, scratch, pursuers, everybody)
    for slot in range(pursuers, everybody):
        if s.alive[slot]:
            hidden = graph_sight.line_up(s, world, scratch, slot, pursuers, everybody)
            graph_sight.write_own(s, world, scratch, slot, observations.evader[slot - pursuers], hidden)
            graph_sight.write_neighbours(s, world, scratch, slot, observations.evader[slot - pursuers], hidden)


def observe_nodes(s, world, observations, scratch):
    """Besides, from every node, once for each team."""
    observe_local(s, world, observations, scratch)
    pursuers, everybody = world.rules.pursuers, graph_sight.count_everybody(world)
    observations.lane.graph = s.graph
    observations.lane.diameter = world.diameter[s.graph]
    graph_sight.write_nodes(s, world, scratch, observations.team[EVADERS], pursuers, everybody)
    graph_sight.find_seen(s, world, scratch, 0, pursuers)
    graph_sight.write_nodes(s, world, scratch, observations.team[PURSUERS], 0, pursuers)


# -- the game ----------------------------------------------------------------------------------------------------------


def parameters_of(pool: Sequence[Graph], fewest: int, fixed: tuple[int, int] | None) -> tuple[Parameter, ...]:
    """The numbers of the rules. ``fixed`` are `need` and `radius` of a game that is solved, which are fixed."""
    needs, radii = ((1, fewest), (0, FAR - 1)) if fixed is None else ((fixed[0], fixed[0]), (fixed[1], fixed[1]))
    farthest = min(graph.diameter for graph in pool)
    return (
        Parameter("need", needs[0], *needs, "1", "pursuers that must be near an evader to capture it", whole=True),
        Parameter("radius", radii[0], *radii, "hops", "within which a pursuer is near", whole=True),
        Parameter("vision", 0, 0, FAR - 1, "hops", "how far agents see; 0 is everything", whole=True),
        Parameter("start_hops", 1, 0, farthest, "hops", "from evaders to pursuers and exits at the start", whole=True),
        Parameter("time_cost", 0.0, 0.0, 1000.0, "1", "what pursuers pay to evaders in a decision"),
    )


def node_representation(
    observe: Callable, pool: Sequence[Graph], ground: Ground, room: int, hit_points: Field | None = None
) -> Representation:
    """``observation="nodes"``: besides what agents see by default, hops from every node, and the graph.

    Args:
        observe: Writes it.
        pool: The graphs of the game.
        ground: Their arrays.
        room: Agents in the kernel's memory.
        hit_points: Shown to a team too, where agents have some.
    """
    agents, nodes = ground.rules.pursuers + ground.rules.evaders, ground.hops.shape[1]
    node_room = next(capacity for capacity in NODE_CAPACITIES if capacity >= nodes)
    shape, about = ground.neighbours.shape, "closed neighbourhoods of the nodes of all graphs"
    hops = graph_sight.node_field(nodes, agents, (room, node_room))
    return Representation(
        "besides, hops from every node, and the graph",
        observe,
        {},
        team_observation=(hops,) if hit_points is None else (hops, hit_points),
        lane_observation=(
            Field("graph", (), 0, max(len(pool) - 1, 1), "1", "number of the graph in its pool", "i8"),
            Field("diameter", (), 1, nodes, "hops", "most hops between two nodes of the graph", "i8"),
            Field("node_neighbours", shape, NO_NODE, nodes - 1, about=about, dtype="i2", world="neighbours"),
        ),
        default_form="dict",
        codecs={"graph": GraphCodec(pool, ground.rules.pursuers, agents, has_hit_points=hit_points is not None)},
    )


def check_fewest(fewest: int, options: Mapping[str, Any]) -> int:
    """Refuses more pursuers than there are, by ValueError."""
    if fewest > options["pursuers"]:
        raise ValueError(f"fewest_pursuers must be at most pursuers={options['pursuers']}, got {fewest}")
    return fewest


def need_and_radius(solve: Any, options: Mapping[str, Any]) -> tuple[int, int] | None:
    """``need`` and ``radius`` of the solution that a user asks for; None without one.

    Raises:
        ValueError: Neither a flag nor a dict of these two, a number out of range, or options that do not go with it.
    """
    is_flag = isinstance(solve, bool | np.bool_)
    if is_flag and not solve:
        if options["starts"] == "winnable":
            raise ValueError('starts="winnable" needs the solution: give solve=True')
        return None
    if not is_flag and not (isinstance(solve, Mapping) and set(solve) <= {"need", "radius"}):
        raise ValueError(f'solve must be True, False or a dict {{"need": ..., "radius": ...}}, got {solve!r}')
    if options["evaders"] > 1 or options["fewest_pursuers"] < options["pursuers"]:
        raise ValueError("solve needs one evader and always as many pursuers: leave out evaders and fewest_pursuers")
    numbers = {"need": 1, "radius": 0, **({} if is_flag else solve)}
    check_count("solve['need']", numbers["need"], 1, options["pursuers"])
    check_count("solve['radius']", numbers["radius"], 0, FAR - 1)
    return int(numbers["need"]), int(numbers["radius"])


GRAPH = Option(
    "graph",
    "grid:10x10",
    'a name as `"grid:10x10"` (`palaestra.games.pursuit.families`), a pool as `"dungeons:256x200"`, an edge array '
    "`[E, 2]`, a networkx graph, a file, or a list of these",
    texts=is_family,
    check=lambda graph, options: read(graph),
)


@with_options(
    GRAPH,
    Option("pursuers", 2, "size of the team", low=1, high=CAPACITIES[-1][0]),
    Option(
        "fewest_pursuers",
        None,
        "each match draws a number of pursuers from this to `pursuers`; None is `pursuers`",
        low=1,
        high=CAPACITIES[-1][0],
        check=check_fewest,
        otherwise=lambda options: options["pursuers"],
    ),
    Option("evaders", 1, "size of the team", low=1, high=CAPACITIES[-1][1]),
    Option(
        "exits",
        0,
        "nodes by which evaders escape, each once, or how many (each as far as possible from those before)",
        texts=any_text,
        check=lambda exits, options: [exits_of(one, exits) for one in options["graph"]],
    ),
    Option("order", "simultaneous", "who moves in a decision, see Description", words=("simultaneous", "alternating")),
    Option("starts", "any", "where agents start, see Starting State", words=("any", "together", "winnable")),
    Option(
        "solve",
        False,
        'True solves the game for `need` 1 and `radius` 0, `{"need": 2, "radius": 1}` for others; these two are then '
        "fixed. It needs one evader and a fixed number of pursuers, and memory: V to the power of `pursuers` + 1 "
        "numbers of two bytes for each graph of V nodes",
        check=need_and_radius,
    ),
)
def game(options: Any) -> Game:
    """The rules of `palaestra/GraphPursuit-v0`.

    Raises:
        ValueError: A graph without a possible start, or a solution that would take too much memory; says what to do.
    """
    pool, exits, fixed = options.graph, options.exits, options.solve
    pursuers, evaders = options.pursuers, options.evaders
    for one in pool:
        if not one.is_connected and options.starts != "any":
            alone = printable_name(one.labels[int((one.hops[0] < 0).argmax())])
            raise one.refusal(f'starts="{options.starts}": it is not connected, no way leads from node 0 to {alone}')
    rules = dict(options.numbers._asdict(), has_exits=any(map(len, exits)), solved=fixed is not None)
    ground = ground_of(pool, exits, **rules)
    if fixed is not None:
        ground = with_solutions(ground, pool, exits, pursuers, *fixed)
    rooms = next(rooms for rooms in CAPACITIES if rooms[0] >= pursuers and rooms[1] >= evaders)
    ways, widest = max(one.neighbours.shape[1] for one in pool), class_of(pool)
    agents, room = pursuers + evaders, sum(rooms)
    red, blue = (tuple(f"{name}_{k}" for k in range(n)) for name, n in (("pursuer", pursuers), ("evader", evaders)))
    names = {"pursuer": graph_sight.column_names(red, blue), "evader": graph_sight.column_names(blue, red)}
    own = {role: graph_sight.own_fields(agents, room, columns) for role, columns in names.items()}
    pursuer, evader = (
        (*own[role], graph_sight.neighbour_field(ways, agents, (widest, room), columns))
        for role, columns in names.items()
    )
    move = graph_sight.move_choice(ways, widest)
    return Game(
        name="GraphPursuit",
        roles=(
            Role("pursuer", red, pursuer, (move,), rooms[0]),
            Role("evader", blue, evader, (move,), rooms[1]),
        ),
        state=(
            ("node", "i8", (room,)),
            ("graph", "i8"),
            ("turn", "i8"),
            ("trail", "i2", (room, TRAIL)),
            ("luck", "f8"),
            ("outcomes", "f8"),
        ),
        reset=reset,
        step=step,
        observe=observe_local,
        representations={
            "hops": Representation("hops from the own node alone", observe_hops, own),
            "nodes": node_representation(observe_nodes, pool, ground, room),
        },
        legal=legal,
        script=pursuit_scripts.script,
        plan=pursuit_scripts.plan,
        scripts=pursuit_scripts.NAMES if ground.rules.solved else pursuit_scripts.NAMES[:-1],
        parameters=parameters_of(pool, options.fewest_pursuers, fixed),
        horizon=128,
        info=(
            Field("captured", (), 0, CAPACITIES[-1][1], "1", "evaders that were captured", "i8"),
            Field("escaped", (), 0, CAPACITIES[-1][1], "1", "evaders that escaped", "i8"),
        ),
        end_reasons=("captured", "escaped"),
        global_state=graph_sight.global_state,
        global_state_size=graph_sight.state_size(agents),
        scratch=(
            ("before", "i8", (room,)),
            ("seen", "u1", (room,)),
            ("nodes", "u8", (room,)),
            ("hidden", "u8", (room,)),
            ("to", "i8", (room,)),
            ("ways", "i8", (room,)),
            ("best", "i8", (room,)),
            ("reached", "i8", (widest,)),
        ),
        world=ground,
        zero_sum=True,
        determinism="cross-platform",
        default_opponent="shortest_path",
        render="palaestra.games.pursuit.graph_render:draw",
        render_text="palaestra.games.pursuit.graph_render:write",
        render_fps=3.0,
        facts="palaestra.games.pursuit.graph_render:facts",
        plots=("hops between the teams", "optimal moves left") if ground.rules.solved else ("hops between the teams",),
        click="palaestra.games.pursuit.graph_render:click",
        enumeration=counting(ground),
    )
