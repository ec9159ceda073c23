"""Scripts of pursuit. What a team does together is planned first: `plan` writes the node to go to for each member.

Slots are numbered pursuers first. Nodes to go to are in ``scratch.to``.
"""

from __future__ import annotations

import numpy as np

from palaestra.game import apart, script_integer
from palaestra.games.pursuit.graph_ground import FAR, NO_NODE

NAMES = ("stay", "greedy", "shortest_path", "flee", "keep_exits", "optimal")
STAY, GREEDY, SHORTEST_PATH, FLEE, KEEP_EXITS, OPTIMAL = range(len(NAMES))
PURSUERS = 0
NEVER = -1
WORST = 2**60


def script(s, world, slot, which, actions, scratch):
    """One agent's move."""
    script_draw = script_integer(s, 2**20)  # always drawn
    pursuers = world.rules.pursuers
    way = choose(s, world, slot, which, script_draw, scratch)
    if slot < pursuers:
        actions.pursuer[slot].move = way
    else:
        actions.evader[slot - pursuers].move = way


def choose(s, world, slot, which, script_draw, scratch):
    """The alternative that an agent takes."""
    if which == STAY:
        return 0
    is_pursuer = slot < world.rules.pursuers
    if which == GREEDY or (is_pursuer and which == FLEE):
        return go_near(s, world, slot, script_draw) if is_pursuer else go_away(s, world, slot, script_draw)
    return way_to(s, world, slot, scratch.to[slot])


def way_to(s, world, slot, node):
    """The alternative that leads to a neighbouring node, 0 if none does."""
    ways = world.neighbours[s.graph, s.node[slot]]
    for way in range(len(ways)):
        if ways[way] == node:
            return way
    return 0


def hops_to_nearest(s, world, node, first, last):
    """Hops from a node to the nearest agent of some slots that is in the match; `FAR` if there is none."""
    least = FAR
    for slot in range(first, last):
        if s.alive[slot]:
            least = min(least, int(world.hops[s.graph, s.node[slot], node]))  # int16 as plain Python
    return least


def count_ways(world, graph, node):
    """Size of a closed neighbourhood."""
    ways, count = world.neighbours[graph, node], 0
    while count < len(ways) and ways[count] != NO_NODE:
        count += 1
    return count


def go_near(s, world, slot, script_draw):
    """A pursuer's move that leads nearest to an evader; a random draw decides between equal ones."""
    first, last = world.rules.pursuers, world.rules.pursuers + world.rules.evaders
    ways, count = world.neighbours[s.graph, s.node[slot]], count_ways(world, s.graph, s.node[slot])
    best, least = 0, WORST
    for k in range(count):
        way = (k + script_draw) % count
        hops = hops_to_nearest(s, world, ways[way], first, last)
        if hops < least:
            best, least = way, hops
    return best


def go_away(s, world, slot, script_draw):
    """An evader's move that leads farthest from the nearest pursuer; a random draw decides between equal ones."""
    ways, count = world.neighbours[s.graph, s.node[slot]], count_ways(world, s.graph, s.node[slot])
    best, most = 0, -1
    for k in range(count):
        way = (k + script_draw) % count
        hops = hops_to_nearest(s, world, ways[way], 0, world.rules.pursuers)
        if hops > most:
            best, most = way, hops
    return best


def plan(s, world, team, which, scratch):
    """Writes the node to go to for each member of a team."""
    if which >= SHORTEST_PATH:
        plan_together(s, world, team, which, scratch)


def play_together(s, world, team, which, scratch):
    """See `plan`."""
    pursuers, everybody = world.rules.pursuers, world.rules.pursuers + world.rules.evaders
    has_exits = world.rules.has_exits > 0
    if team == PURSUERS:
        if which == OPTIMAL:
            plan_optimal_pursuers(s, world, scratch)
        elif which == KEEP_EXITS and has_exits:
            plan_guards(s, world, scratch)
        elif which != FLEE:
            plan_hunt(s, world, scratch)
        return
    for slot in range(pursuers, everybody):
        if s.alive[slot]:
            if which == OPTIMAL:
                scratch.to[slot] = best_of_evader(s, world, slot)
            elif has_exits and which == SHORTEST_PATH:
                scratch.to[slot] = step_towards_next_exit(s, world, slot)
            elif has_exits and which == KEEP_EXITS:
                scratch.to[slot] = step_to_open_exit(s, world, slot, scratch)
            else:
                scratch.to[slot] = step_to_most_room(s, world, slot, scratch)


plan_together = apart(play_together)


# -- pursuers ----------------------------------------------------------------------------------------------------------


def plan_hunt(s, world, scratch):
    """Each pursuer goes the shortest way to the nearest evader, if possible one that no teammate goes."""
    pursuers, everybody = world.rules.pursuers, world.rules.pursuers + world.rules.evaders
    for slot in range(pursuers):
        if s.alive[slot]:
            ways, best = world.neighbours[s.graph, s.node[slot]], WORST
            for way in range(count_ways(world, s.graph, s.node[slot])):
                is_taken = False
                for other in range(slot):
                    is_taken |= s.alive[other] != 0 and scratch.to[other] == ways[way]
                cost = 2 * hops_to_nearest(s, world, ways[way], pursuers, everybody) + is_taken
                if cost < best:
                    best = cost
                    scratch.to[slot] = ways[way]


def plan_guards(s, world, scratch):
    """Pursuers go to the exits that evaders are nearest to, each to one of its own; who can capture does."""
    pursuers, everybody = world.rules.pursuers, world.rules.pursuers + world.rules.evaders
    exits = world.exits[s.graph]
    for slot in range(pursuers):
        scratch.best[slot] = NO_NODE
    for _ in range(pursuers):
        guarded, danger = NO_NODE, WORST
        for k in range(len(exits)):
            is_taken = exits[k] == NO_NODE
            for slot in range(pursuers):
                is_taken |= not is_taken and scratch.best[slot] == exits[k]
            if not is_taken:
                hops = hops_to_nearest(s, world, exits[k], pursuers, everybody)
                if hops < danger:
                    guarded, danger = exits[k], hops
        guard, least = NO_NODE, WORST
        for slot in range(pursuers):
            if guarded != NO_NODE and s.alive[slot] and scratch.best[slot] == NO_NODE:
                hops = world.hops[s.graph, s.node[slot], guarded]
                if hops < least:
                    guard, least = slot, hops
        if guard != NO_NODE:
            scratch.best[guard] = guarded
    plan_hunt(s, world, scratch)
    for slot in range(pursuers):
        is_near = hops_to_nearest(s, world, s.node[slot], pursuers, everybody) <= 1
        if s.alive[slot] and scratch.best[slot] != NO_NODE and not is_near:
            scratch.to[slot] = step_towards(s, world, s.node[slot], scratch.best[slot])


def step_towards(s, world, node, goal):
    """The neighbour of a node that is nearest to a goal."""
    ways, best, least = world.neighbours[s.graph, node], node, WORST
    for way in range(count_ways(world, s.graph, node)):
        hops = world.hops[s.graph, goal, ways[way]]
        if hops < least:
            best, least = ways[way], hops
    return best


# -- evaders -----------------------------------------------------------------------------------------------------------


def step_towards_next_exit(s, world, slot):
    """The neighbour that is nearest to an exit."""
    ways, best, least = world.neighbours[s.graph, s.node[slot]], s.node[slot], WORST
    for way in range(count_ways(world, s.graph, s.node[slot])):
        hops = world.exit_hops[s.graph, ways[way]]
        if hops < least:
            best, least = ways[way], hops
    return best


def step_to_open_exit(s, world, slot, scratch):
    """Towards the nearest exit that it reaches before any pursuer; where there is none, where most room is."""
    exits, goal, least = world.exits[s.graph], NO_NODE, WORST
    for k in range(len(exits)):
        if exits[k] != NO_NODE:
            hops = world.hops[s.graph, s.node[slot], exits[k]]
            if hops < least and hops < hops_to_nearest(s, world, exits[k], 0, world.rules.pursuers):
                goal, least = exits[k], hops
    return step_to_most_room(s, world, slot, scratch) if goal == NO_NODE else step_towards(s, world, s.node[slot], goal)


def step_to_most_room(s, world, slot, scratch):
    """The neighbour from which it reaches most nodes before any pursuer; of equal ones the farthest from pursuers."""
    pursuers, reached, between = world.rules.pursuers, scratch.reached, world.hops[s.graph]
    ways, count = world.neighbours[s.graph, s.node[slot]], count_ways(world, s.graph, s.node[slot])
    for way in range(count):
        reached[way] = 0
    for node in range(np.uint64(world.nodes[s.graph])):  # outside: the pursuers' hops are looked up once a node
        hops = hops_to_nearest(s, world, node, 0, pursuers)
        for way in range(count):
            reached[way] += between[np.uint64(ways[way]), node] < hops
    best, most = s.node[slot], -1
    for way in range(count):
        near = hops_to_nearest(s, world, ways[way], 0, pursuers)
        score = reached[way] * (FAR + 1) + near if near > 0 else 0
        if score > most:
            best, most = ways[way], score
    return best


# -- optimal play ------------------------------------------------------------------------------------------------------


def position_of(s, world, node):
    """Index of the pursuers' nodes and an evader's node in ``world.times``."""
    most, number = world.hops.shape[1], 0
    for slot in range(world.rules.pursuers):
        number = number * most + s.node[slot]
    return number * most + node


def time_of(s, world, node):
    """Moves in which the pursuers capture an evader on a node, it being their turn; `NEVER` if they cannot force it."""
    return int(world.times[s.graph, position_of(s, world, node)])


def harm_of_node(s, world, position, node):
    """How bad a position is for the evader that has gone there: worse ones are larger, escapes are negative."""
    time = int(world.times[s.graph, position])  # int16 as plain Python
    if time == 0:
        return 2 * FAR + 2
    if world.exit_hops[s.graph, node] == 0:
        return -2 * FAR
    if world.rules.has_exits > 0 and world.escapes[s.graph, position] != NEVER:
        return int(world.escapes[s.graph, position]) - 2 * FAR
    return 0 if time == NEVER else 2 * FAR - time


def best_of_evader(s, world, slot):
    """The node where an optimal evader goes; of equal ones the farthest from the nearest pursuer."""
    start = position_of(s, world, 0)
    ways, best, least = world.neighbours[s.graph, s.node[slot]], s.node[slot], WORST
    for way in range(count_ways(world, s.graph, s.node[slot])):
        node = ways[way]
        harm = harm_of_node(s, world, start + node, node) * (FAR + 1)
        harm -= hops_to_nearest(s, world, node, 0, world.rules.pursuers)
        if harm < least:
            best, least = node, harm
    return best


def plan_optimal_pursuers(s, world, scratch):
    """The joint move of optimal pursuers; of equal ones the nearest by the sum of hops, then the first."""
    pursuers, most = world.rules.pursuers, world.hops.shape[1]
    evader, best = s.node[pursuers], -8 * FAR * (FAR + 1)
    for slot in range(pursuers):
        scratch.ways[slot] = 0
        scratch.to[slot] = s.node[slot]
    is_over = False
    while not is_over:
        number, near = 0, 0
        for slot in range(pursuers):
            node = np.int64(world.neighbours[s.graph, s.node[slot], scratch.ways[slot]])  # int16 as plain Python
            number = number * most + node
            near += min(int(world.hops[s.graph, node, evader]), FAR // pursuers)
        good = value_of_move(s, world, number * most, evader) * (FAR + 1) - near
        if good > best:
            best = good
            for slot in range(pursuers):
                scratch.to[slot] = world.neighbours[s.graph, s.node[slot], scratch.ways[slot]]
        is_over = not count_up(s, world, scratch)


def value_of_move(s, world, start, evader):
    """How good it is for the pursuers to have gone to the position ``start`` with the evader to move."""
    if world.times[s.graph, start + evader] == 0:
        return 2 * FAR + 2
    ways, least = world.neighbours[s.graph, evader], WORST
    for way in range(count_ways(world, s.graph, evader)):
        least = min(least, harm_of_node(s, world, start + np.int64(ways[way]), ways[way]))
    return least


def count_up(s, world, scratch):
    """The next joint move in ``scratch.ways``. Returns whether there is one."""
    for slot in range(world.rules.pursuers - 1, -1, -1):
        scratch.ways[slot] += 1
        if scratch.ways[slot] < count_ways(world, s.graph, s.node[slot]):
            return True
        scratch.ways[slot] = 0
    return False
