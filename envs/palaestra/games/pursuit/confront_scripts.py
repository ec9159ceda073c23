"""Scripts of GraphConfront: where to go, and whom to shoot at from there."""

from __future__ import annotations

from palaestra.game import script_integer
from palaestra.games.pursuit import graph_sight
from palaestra.games.pursuit.graph_ground import FAR
from palaestra.games.pursuit.pursuit_scripts import WORST, count_ways

NAMES = ("stay", "greedy", "focus_fire", "kite", "flee")
STAY, GREEDY, FOCUS_FIRE, KITE, FLEE = range(len(NAMES))
NOBODY = -1
AHEAD = 2
"""Hops by which two agents can come nearer to each other in a decision."""


def others_first(world, slot):
    """First slot of the opponents."""
    return world.rules.pursuers if slot < world.rules.pursuers else 0


def others_last(world, slot):
    """Slot after the last one of the opponents."""
    red = world.rules.pursuers
    return red + world.rules.evaders if slot < red else red


def plan(s, world, team, which, scratch):
    """Whom a team goes for: of the opponents with the fewest hit points the nearest by the sum of hops."""
    red, everybody = world.rules.pursuers, world.rules.pursuers + world.rules.evaders
    first, last = (0, red) if team == 0 else (red, everybody)
    other_first, other_last = (red, everybody) if team == 0 else (0, red)
    scratch.focus[team] = NOBODY
    least = WORST
    for other in range(other_first, other_last):
        if s.alive[other]:
            hops = 0
            for slot in range(first, last):
                if s.alive[slot]:
                    hops += int(world.hops[s.graph, s.node[slot], s.node[other]])  # int16 as plain Python
            cost = s.hit_points[other] * FAR * 32 + hops
            if cost < least:
                scratch.focus[team], least = other, cost


def script(s, world, slot, which, actions, scratch):
    """One agent's move and target."""
    script_draw = script_integer(s, 2**20)  # always drawn
    if s.alive[slot] == 0:
        return
    focus = scratch.focus[0 if slot < world.rules.pursuers else 1] if which == FOCUS_FIRE else NOBODY
    way, best = 0, -WORST
    count = count_ways(world, s.graph, s.node[slot])
    for k in range(count):
        other_way = (k + script_draw) % count
        node = world.neighbours[s.graph, s.node[slot], other_way]
        good = worth(s, world, slot, which, node, focus)
        if good > best and (which != STAY or other_way == 0):
            way, best = other_way, good
    actions.unit[slot].move = way
    actions.unit[slot].target = aim(s, world, slot, world.neighbours[s.graph, s.node[slot], way], focus)


def worth(s, world, slot, which, node, focus):
    """How much an agent wants to be on a node."""
    if focus != NOBODY:
        return -world.hops[s.graph, s.node[focus], node]
    nearest, threats = FAR, 0
    for other in range(others_first(world, slot), others_last(world, slot)):
        if s.alive[other]:
            hops = world.hops[s.graph, s.node[other], node]
            nearest = min(nearest, hops)
            threats += hops <= s.parameters.reach
    if which == FLEE:
        return nearest
    if which == KITE:
        return (2 if threats == 1 else 0) * FAR - threats * FAR - nearest
    return -nearest


def aim(s, world, slot, node, focus):
    """The target from a node: whom the team goes for, else the nearest, of these the one with fewest hit points."""
    best, least, first = 0, WORST, others_first(world, slot)
    own_first, own_last = others_first(world, first), others_last(world, first)
    for other in range(first, others_last(world, slot)):
        is_legal = graph_sight.sees(s, world, own_first, own_last, other)
        is_legal &= world.hops[s.graph, s.node[slot], s.node[other]] <= s.parameters.reach + AHEAD
        if is_legal:
            hops = world.hops[s.graph, node, s.node[other]]
            cost = 128.0 * hops + s.hit_points[other]
            if other == focus and hops <= s.parameters.reach + 1:
                cost = -1.0
            if cost < least:
                best, least = 1 + other - first, cost
    return best
