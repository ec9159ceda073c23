"""Matches on graphs as pictures and as text, and what a click in the picture means. Nothing is hidden from the viewer.

Agents are numbered discs in the colours of their teams, and the last nodes of each are the line behind it. Those who
are asked for an action have a white rim. A hollow disc with a cross is where an agent has left the match. Lozenges are
exits. The nodes on which agents are in reach of others are shaded, the more the more others there are; where agents see
less than everything, nodes in sight of a team have its colour. On a graph of many nodes the edges from an agent have
its colour too. In a solved match of alternating moves rings mark the moves of optimal play, and the line below the
score says how many moves it takes to the capture.

Games share these functions that have the world `palaestra.games.pursuit.graph_ground.Ground` and the fields ``node``,
``graph`` and ``trail`` in their records. Those with ``hit_points`` and ``target`` show them too.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from palaestra.drawing.canvas import Canvas, Point
from palaestra.drawing.colors import BACKGROUND, MUTED, PANEL, SIGNAL, TEAMS, TEXT, Color, blend, fade
from palaestra.drawing.widgets import draw_legend, length_of
from palaestra.game import Facts, Game
from palaestra.games.pursuit.best_moves import best_nodes
from palaestra.games.pursuit.graph_background import (
    FOOTER,
    HEADER,
    LABELLED,
    MARGIN,
    SMALLEST,
    WIDTH,
    GraphBackground,
    background_of,
    draw_exit,
    exit_radius,
    node_color,
)
from palaestra.games.pursuit.graph_ground import FAR, NO_NODE, Ground
from palaestra.games.pursuit.solver import NEVER

NOBODY = -1
CLICK_PIXELS = 11.0
"""A click so near to a node means it, however small it is."""
MOST_PIPS = 8
"""Hit points that are drawn one by one; more are an arc."""
LIFE = 10.0
"""Pixels between two discs for what is left of their hit points."""
CROWD = 3
"""More agents on one node are drawn smaller."""


# --------------------------------------------------------------------------------------------------- who is where


def has_hit_points(game: Game) -> bool:
    """Whether agents of a game fight."""
    return "hit_points" in (game.state_dtype.names or ())


def slots_here(game: Game, s: Any) -> list[int]:
    """Slots of the agents that are in the match."""
    return [slot for slot in range(len(game.agents)) if s.alive[slot]]


def slots_left(game: Game, s: Any) -> list[int]:
    """Slots of the agents that have left the match; pursuers that are not in it have never been."""
    gone = [slot for slot in range(len(game.agents)) if not s.alive[slot]]
    return [slot for slot in gone if has_hit_points(game) or game.team_index[slot] == 1]


def seats(game: Game, background: GraphBackground, s: Any) -> dict[int, tuple[Point, float]]:
    """Middle and radius of each agent's disc: several on one node are drawn in rings around it, inside the picture."""
    crowds: dict[int, list[int]] = {}
    for slot in sorted(slots_here(game, s) + slots_left(game, s)):
        crowds.setdefault(int(s.node[slot]), []).append(slot)
    found: dict[int, tuple[Point, float]] = {}
    for node, crowd in crowds.items():
        radius = background.agent_radius if len(crowd) <= CROWD else max(0.8 * background.agent_radius, SMALLEST)
        apart = 2.15 * radius + (LIFE if has_hit_points(game) else 0.0)
        discs = background.points[node] + apart * np.array(fan(len(crowd)))
        low, high = discs.min(axis=0) - radius, discs.max(axis=0) + radius
        corner = np.array([WIDTH - MARGIN, background.height - FOOTER])
        discs += np.maximum((MARGIN, HEADER) - low, 0.0) - np.maximum(high - corner, 0.0)
        found.update({slot: ((x, y), radius) for slot, (x, y) in zip(crowd, discs.tolist(), strict=True)})
    return found


def fan(count: int) -> list[Point]:
    """Middles of discs of diameter 1 side by side around a point."""
    if count == 1:
        return [(0.0, 0.0)]
    if count <= 6:
        return ring(count, 0.5 / math.sin(math.pi / count))
    found, radius = [(0.0, 0.0)], 1
    while len(found) < count:
        found += ring(min(6 * radius, count - len(found)), float(radius))
        radius += 1
    return found


def ring(count: int, radius: float) -> list[Point]:
    """Points evenly on a circle, the first one on the left."""
    angles = [math.pi + 2.0 * math.pi * k / count for k in range(count)]
    return [(radius * math.cos(angle), radius * math.sin(angle)) for angle in angles]


def trail_of(s: Any, slot: int) -> list[int]:
    """The last nodes of an agent, the oldest first."""
    length = s.trail.shape[1]
    return [int(s.trail[slot, (int(s.steps) + 1 + k) % length]) for k in range(length)]


def reach_of(game: Game, s: Any) -> int:
    """Hops at which agents capture or hit others, 0 where they have to meet."""
    return next((int(s.parameters[name]) for name in ("reach", "radius") if name in _parameters(game)), 0)


def _parameters(game: Game) -> set[str]:
    return {parameter.name for parameter in game.parameters}


def teams_that_reach(game: Game) -> tuple[int, ...]:
    """Numbers of the teams whose reach matters: both where agents fight, else that of the pursuers."""
    return (0, 1) if has_hit_points(game) else (0,)


def count_near(game: Game, world: Ground, s: Any, team: int, hops: int) -> np.ndarray:
    """How many members of a team are at most so many hops from each node, int64 ``[V]``."""
    nodes = int(world.nodes[s.graph])
    slots = [slot for slot in slots_here(game, s) if game.team_index[slot] == team]
    return (world.hops[s.graph, s.node[slots], :nodes] <= hops).sum(axis=0)


# ------------------------------------------------------------------------------------------------------------- picture


def draw(game: Game, world: Any, s: Any) -> Canvas:
    """Draws one match on a graph.

    Args:
        game: The rules.
        world: Their graphs.
        s: The match record.

    Returns:
        720 x H pixels; all matches of a game give pictures of one size.
    """
    background = background_of(world, int(s.graph))
    canvas, places = background.canvas.copy(), seats(game, background, s)
    draw_header(canvas, game, world, s)
    draw_footer(canvas, game, world, background, s)
    draw_reach(canvas, game, world, background, s)
    draw_sight(canvas, game, world, background, s)
    for slot in places:
        draw_ways(canvas, game, world, background, s, slot)
    for slot in places:
        draw_trail(canvas, game, background, s, slot)
    draw_best_moves(canvas, game, world, background, s)
    draw_labels(canvas, background, places)
    draw_crowds(canvas, background, s, places)
    for slot in slots_left(game, s):
        draw_gone(canvas, places[slot], TEAMS[game.team_index[slot]])
    for slot in slots_here(game, s):
        draw_agent(canvas, game, s, slot, places[slot])
    if has_hit_points(game):
        draw_shots(canvas, game, s, places)
    return canvas


def draw_reach(canvas: Canvas, game: Game, world: Ground, background: GraphBackground, s: Any) -> None:
    """Shades the nodes in reach of a team, and the edges between them: more where more members reach."""
    hops = reach_of(game, s)
    for team in teams_that_reach(game) if hops > 0 else ():
        near = count_near(game, world, s, team, hops)
        shade = [fade(TEAMS[team], 0.1 + 0.1 * min(count, 4)) for count in range(int(near.max()) + 1)]
        for a, b in background.edges[(near[background.edges] > 0).all(axis=1)].tolist():
            for line in background.lines(a, b):
                canvas.line(line, fade(TEAMS[team], 0.28), 2.5)
        for node in np.flatnonzero(near).tolist():
            canvas.circle(background.point(node), min(max(0.4 * background.spacing, 3.0), 24.0), shade[near[node]])


def draw_sight(canvas: Canvas, game: Game, world: Ground, background: GraphBackground, s: Any) -> None:
    """Colours the nodes that a team sees, where it does not see everything."""
    if "vision" not in _parameters(game) or s.parameters.vision <= 0:
        return
    seen = [count_near(game, world, s, team, int(s.parameters.vision)) > 0 for team in range(2)]
    both = blend(TEAMS[0], TEAMS[1], 0.5)
    for nodes, color in ((seen[0] & ~seen[1], TEAMS[0]), (seen[1] & ~seen[0], TEAMS[1]), (seen[0] & seen[1], both)):
        for node in np.flatnonzero(nodes & (world.exit_hops[s.graph, : len(nodes)] > 0)).tolist():
            canvas.circle(
                background.point(node), background.node_radius, blend(node_color(background.node_radius), color, 0.45)
            )


def draw_labels(canvas: Canvas, background: GraphBackground, places: dict[int, tuple[Point, float]]) -> None:
    """The numbers of the nodes that are large enough and that no agent covers."""
    if background.node_radius < LABELLED:
        return
    letters = max(10, round(0.95 * background.node_radius))
    discs = [(*point, radius + background.node_radius) for point, radius in places.values()]
    for node, (x, y) in enumerate(background.points.tolist()):
        if all(math.dist((x, y), disc[:2]) > disc[2] for disc in discs):
            canvas.text((x, y + 0.36 * letters), str(node), blend(MUTED, TEXT, 0.4), letters, "ms")


def draw_ways(canvas: Canvas, game: Game, world: Ground, background: GraphBackground, s: Any, slot: int) -> None:
    """The edges from an agent in the colour of its team, where nodes are too small and too many to be told apart."""
    if background.node_radius >= LABELLED or not s.alive[slot]:
        return
    node, color = int(s.node[slot]), TEAMS[game.team_index[slot]]
    for other in world.neighbours[s.graph, node].tolist():
        if other not in (node, NO_NODE):
            for line in background.lines(node, other):
                canvas.line(line, fade(color, 0.4), 1.5)
            canvas.circle(background.point(other), float(background.radii[other]) + 0.7, blend(color, TEXT, 0.35))


def draw_best_moves(canvas: Canvas, game: Game, world: Ground, background: GraphBackground, s: Any) -> None:
    """Rings around the nodes where optimal play goes, see `palaestra.games.pursuit.best_moves.best_nodes`."""
    for slot, nodes in best_nodes(world, s).items():
        color = blend(TEAMS[game.team_index[slot]], TEXT, 0.25)
        for node in nodes:
            is_own = node == s.node[slot]
            radius = background.agent_radius + 3.0 if is_own else float(background.radii[node])
            canvas.circle(background.point(node), radius + 2.5, None, color, 2.0)


def draw_trail(canvas: Canvas, game: Game, background: GraphBackground, s: Any, slot: int) -> None:
    """The way of an agent in the last decisions, a little beside those of the others."""
    nodes, color = trail_of(s, slot), TEAMS[game.team_index[slot]]
    angle = 2.0 * math.pi * slot / len(game.agents)
    dx, dy = (min(2.0, 0.1 * background.spacing) * way for way in (math.cos(angle), math.sin(angle)))
    last = len(nodes) - 1
    for k in range(last):
        if nodes[k] != nodes[k + 1]:
            for line in background.lines(nodes[k], nodes[k + 1]):
                fresh = (k + 1) / last
                shifted = [(x + dx, y + dy) for x, y in line]
                canvas.line(shifted, fade(color, 0.1 + 0.65 * fresh), 1.0 + 2.5 * fresh)
    for k in range(last) if background.node_radius >= LABELLED else ():
        tint = blend(node_color(background.node_radius), color, 0.05 + 0.3 * (k + 1) / last)
        canvas.circle(background.point(nodes[k]), background.node_radius, tint)


def draw_crowds(canvas: Canvas, background: GraphBackground, s: Any, places: dict[int, tuple[Point, float]]) -> None:
    """Lines from a node to the agents that are drawn around it."""
    for slot, (point, _) in places.items():
        center = background.point(int(s.node[slot]))
        if point != center:
            canvas.line([center, point], blend(MUTED, TEXT, 0.3), 2.0)


def draw_agent(canvas: Canvas, game: Game, s: Any, slot: int, place: tuple[Point, float]) -> None:
    """A disc with the agent's number; a white rim if it is asked for an action."""
    (x, y), radius = place
    color = TEAMS[game.team_index[slot]]
    canvas.circle((x, y), radius + 1.5, PANEL)
    canvas.circle((x, y), radius, color, TEXT if s.acting[slot] else blend(color, BACKGROUND, 0.45), 1.5)
    letters = max(9, round(1.05 * radius))
    canvas.text((x, y + 0.36 * letters), game.agents[slot].rpartition("_")[2], BACKGROUND, letters, "ms")
    if has_hit_points(game):
        draw_life(canvas, (x, y), radius, color, float(s.hit_points[slot]), float(s.parameters.hit_points))


def draw_life(canvas: Canvas, center: Point, radius: float, color: Color, left: float, most: float) -> None:
    """Hit points around a disc, from the top clockwise: a pip for each, or an arc."""
    bright, dark, outer = blend(color, TEXT, 0.5), blend(color, BACKGROUND, 0.75), radius + 4.0
    canvas.circle(center, outer + 1.0, None, PANEL, 5.0)
    if most > MOST_PIPS or most != round(most):
        canvas.circle(center, outer, None, dark, 3.0)
        if left > 0.0:
            canvas.arc(center, outer, -90.0, -90.0 + 360.0 * min(left / most, 1.0), bright, 3.0)
        return
    gap = 14.0 if most > 1 else 0.0
    for pip in range(int(most)):
        start = -90.0 + 360.0 * pip / most
        is_left = pip < left
        canvas.arc(center, outer, start + 0.5 * gap, start + 360.0 / most - 0.5 * gap, bright if is_left else dark, 3.0)


def draw_gone(canvas: Canvas, place: tuple[Point, float], color: Color) -> None:
    """A hollow disc with a cross where an agent has left the match."""
    (x, y), radius = place
    faint, arm = blend(color, PANEL, 0.3), 0.36 * radius
    canvas.circle((x, y), radius, blend(color, PANEL, 0.88), faint, 1.5)
    for tilt in (-arm, arm):
        canvas.line([(x - arm, y - tilt), (x + arm, y + tilt)], faint, 2.0)


def draw_shots(canvas: Canvas, game: Game, s: Any, places: dict[int, tuple[Point, float]]) -> None:
    """A line from the rim of an agent to that of whom it dealt a point in the last decision, with a spark there."""
    for slot, ((start_x, start_y), radius) in places.items():
        target = int(s.target[slot])
        if target == NOBODY or target not in places:
            continue
        (end_x, end_y), far = places[target]
        long = math.dist((start_x, start_y), (end_x, end_y))
        if long <= radius + far:
            continue
        dx, dy = (end_x - start_x) / long, (end_y - start_y) / long
        color = blend(TEAMS[game.team_index[slot]], TEXT, 0.35)
        aside_x, aside_y = -2.5 * dy, 2.5 * dx  # two that hit each other have a line each
        hit = (end_x - far * dx + aside_x, end_y - far * dy + aside_y)
        line = [(start_x + radius * dx + aside_x, start_y + radius * dy + aside_y), hit]
        canvas.line(line, fade(color, 0.2), 4.5)
        canvas.line(line, fade(color, 0.9), 1.5)
        canvas.circle(hit, 2.6, SIGNAL)


def draw_header(canvas: Canvas, game: Game, world: Ground, s: Any) -> None:
    """Name, who is left or the winner, the number of the decision; below, the graph, whose turn it is, the score."""
    middle, base, below, winner = WIDTH / 2, 25, 45, int(s.info.winner)
    canvas.text((MARGIN, base), game.name, TEXT, 16)
    canvas.text((WIDTH - MARGIN, base), f"{int(s.steps)} / {s.parameters.horizon:.0f}", MUTED, 14, "rs")
    canvas.text((MARGIN, below), describe_graph(world, s), MUTED, 12)
    canvas.text((WIDTH - MARGIN, below), describe_score(game, s), MUTED, 12, "rs")
    reason = game.end_reason(int(s.info.end_reason))
    if reason:
        words = f"{game.team_names[winner]} has won" if winner >= 0 else "draw"
        canvas.text((middle, base), words, TEAMS[winner] if winner >= 0 else TEXT, 16, "ms")
        canvas.text((middle, below), reason, MUTED, 12, "ms")
        return
    canvas.text((middle, base), ":", MUTED, 16, "ms")
    for team, (side, anchor) in enumerate(((-10, "rs"), (10, "ls"))):
        count = sum(bool(s.alive[slot]) for slot in list(game.teams.values())[team])
        canvas.text((middle + side, base), str(count), TEAMS[team], 18, anchor)
    moving = mover(game, world, s)
    color = MUTED if moving == NOBODY else TEAMS[moving]
    canvas.text((middle, below), describe_turn(game, world, s), color, 12, "ms")


def mover(game: Game, world: Ground, s: Any) -> int:
    """Number of the team whose turn it is, `NOBODY` where both move at the same time."""
    return int(s.turn) if world.rules.order else NOBODY


def describe_graph(world: Ground, s: Any) -> str:
    """Sizes of the graph, and which one of the pool it is."""
    nodes = int(world.nodes[s.graph])
    edges = (int((world.neighbours[s.graph, :nodes] != NO_NODE).sum()) - nodes) // 2
    pool = f"graph {int(s.graph)} of {len(world.nodes)}: " if len(world.nodes) > 1 else ""
    return f"{pool}{nodes} nodes, {edges} edge{'s' * (edges != 1)}"


def describe_turn(game: Game, world: Ground, s: Any) -> str:
    """Who moves next, and how many moves it takes to the capture where that is known."""
    moving = mover(game, world, s)
    if moving == NOBODY:
        return "all move"
    words = f"{game.team_names[moving]} to move"
    if not world.rules.solved:
        return words
    left = optimal_moves_left(game, world, s)
    return f"{words}, no capture" if math.isnan(left) else f"{words}, capture in {count_of(round(left), 'move')}"


def describe_score(game: Game, s: Any) -> str:
    """The numbers that the game counts in a match."""
    counts = ((field.name, np.atleast_1d(s.info[field.name]).tolist()) for field in game.info)
    return ", ".join(f"{name.replace('_', ' ')} {' : '.join(f'{one:g}' for one in count)}" for name, count in counts)


def draw_footer(canvas: Canvas, game: Game, world: Ground, background: GraphBackground, s: Any) -> None:
    """What colours and marks mean."""
    base, words = background.height - 12.0, describe_rules(game, s)
    entries: list[Any] = list(zip(game.teams, TEAMS, strict=False))
    if world.rules.has_exits:
        entries.append(("exit", partial(draw_exit, canvas, radius=min(exit_radius(background), 8.0))))
    draw_legend(canvas, (MARGIN + 6.0, base - 4.0), entries, WIDTH - MARGIN - 16 - length_of(words, 12))
    canvas.text((WIDTH - MARGIN, base), words, MUTED, 12, "rs")


def describe_rules(game: Game, s: Any) -> str:
    """The numbers of the rules that the shades show."""
    hops, words = reach_of(game, s), []
    if hops > 0 or (not has_hit_points(game) and "need" in _parameters(game) and s.parameters.need > 1):
        shared = f" by {s.parameters.need:.0f}" if not has_hit_points(game) and s.parameters.need > 1 else ""
        within = f" within {count_of(hops, 'hop')}" if hops > 0 else ""
        words.append(f"{'reach' if has_hit_points(game) else 'capture'}{shared}{within}")
    if "vision" in _parameters(game) and s.parameters.vision > 0:
        words.append(f"vision {count_of(int(s.parameters.vision), 'hop')}")
    if game.world.rules.solved and game.world.rules.order:
        words.append("rings: best moves")
    return ", ".join(words)


def count_of(number: int, what: str) -> str:
    """A number of things."""
    return f"{number} {what}{'s' * (number != 1)}"


# ---------------------------------------------------------------------------------------------------------------- text


def write(game: Game, world: Any, s: Any) -> str:
    """One match as text: graph, decision, turn and score, then a line for each agent.

    Args:
        game: The rules.
        world: Their graphs.
        s: The match record.
    """
    reason, winner = game.end_reason(int(s.info.end_reason)), int(s.info.winner)
    status = describe_turn(game, world, s)
    if reason:
        status = f"{game.team_names[winner] or 'nobody'} has won ({reason})"
    lines = [
        describe_graph(world, s),
        ", ".join(
            filter(None, (f"decision {int(s.steps)} of {s.parameters.horizon:.0f}: {status}", describe_score(game, s)))
        ),
    ]
    there = sorted(slots_here(game, s) + slots_left(game, s))
    wide = max(len(agent) for agent in game.agents)
    return "\n".join([*lines, *(f"{game.agents[slot]:{wide}}  {write_agent(game, world, s, slot)}" for slot in there)])


def write_agent(game: Game, world: Ground, s: Any, slot: int) -> str:
    """Where an agent is, and how far from whom."""
    node = int(s.node[slot])
    if not s.alive[slot]:
        return f"has left the match at node {node}"
    words = [f"node {node:<4}"]
    nearest, hops = nearest_opponent(game, world, s, slot)
    if nearest != NOBODY:
        words.append(f"{count_of(hops, 'hop')} to {game.agents[nearest]}" if hops < FAR else "no way to an opponent")
    if world.rules.has_exits:
        hops = int(world.exit_hops[s.graph, node])
        words.append(f"{count_of(hops, 'hop')} to an exit" if hops < FAR else "no way to an exit")
    if has_hit_points(game):
        words.append(f"hit points {float(s.hit_points[slot]):g}/{float(s.parameters.hit_points):g}")
        if int(s.target[slot]) != NOBODY:
            words.append(f"has hit {game.agents[int(s.target[slot])]}")
    return "  ".join(words)


def nearest_opponent(game: Game, world: Ground, s: Any, slot: int) -> tuple[int, int]:
    """Slot of and hops to the nearest agent of the other team; `NOBODY` and `FAR` if there is none."""
    best, least = NOBODY, FAR
    for other in slots_here(game, s):
        hops = int(world.hops[s.graph, s.node[slot], s.node[other]])
        if game.team_index[other] != game.team_index[slot] and (best == NOBODY or hops < least):
            best, least = other, hops
    return best, least


# --------------------------------------------------------------------------------------------------------------- facts


def facts(game: Game, world: Ground, s: Any) -> Facts:
    """Where moves lead and at whom targets aim; how near the teams are, and how long optimal play goes on from here."""
    options = {}
    for slot, team in enumerate(game.team_index):
        ways = world.neighbours[s.graph, s.node[slot]].tolist()
        opponents = [agent for agent, other in zip(game.agents, game.team_index, strict=True) if other != team]
        moves = ["stay", *("" if way == NO_NODE else f"to node {way}" for way in ways[1:])]
        options[slot] = {"move": moves, "target": ["nobody", *opponents]}
    least = min((nearest_opponent(game, world, s, slot)[1] for slot in slots_here(game, s)), default=FAR)
    numbers: dict[str, float | list[float]] = {"hops between the teams": least if least < FAR else math.nan}
    if has_hit_points(game):
        points = [[s.hit_points[slot] for slot in slots_here(game, s) if game.team_index[slot] == k] for k in (0, 1)]
        numbers["hit points"] = [float(sum(each)) for each in points]
    if world.rules.solved:
        numbers["optimal moves left"] = optimal_moves_left(game, world, s)
    return Facts(options, numbers)


def optimal_moves_left(game: Game, world: Ground, s: Any) -> float:
    """Moves of the pursuers until the capture under optimal play of both; NaN where there is none, or it is over."""
    *pursuers, evader = (int(s.node[slot]) for slot in range(len(game.agents)))
    if not s.alive[len(pursuers)]:
        return 0.0
    here = 0
    for node in pursuers:
        here = (here + node) * world.hops.shape[1]
    ways = world.neighbours[s.graph, evader] if s.acting[len(pursuers)] and world.rules.order else [evader]
    times = [int(world.times[s.graph, here + int(node)]) for node in ways if node != NO_NODE]
    return math.nan if NEVER in times else float(max(times))


# --------------------------------------------------------------------------------------------------------------- mouse


def click(game: Game, world: Any, s: Any, slot: int, x: int, y: int) -> int | str | None:
    """What a click in the picture means for an agent.

    On its node: stay. On a neighbouring node: go there. On a teammate elsewhere: the next clicks command that one.

    Args:
        game: The rules.
        world: Their graphs.
        s: The match record.
        slot: The agent.
        x: Column of the pixel.
        y: Row of the pixel.

    Returns:
        The number of the alternative or the name of the teammate; None where there is neither, and for moves of who is
        not to move.
    """
    background = background_of(world, int(s.graph))
    node = node_at(background, x, y)
    if node != NO_NODE and s.alive[slot] and s.acting[slot]:
        ways = np.flatnonzero(world.neighbours[s.graph, s.node[slot]] == node)
        if len(ways):
            return int(ways[0])
    return teammate_at(game, background, s, slot, node, (x, y))


def node_at(background: GraphBackground, x: float, y: float) -> int:
    """The nearest node of those that a click may mean, or `NO_NODE`."""
    ways = np.hypot(background.points[:, 0] - x, background.points[:, 1] - y)
    node = int(ways.argmin())
    return node if ways[node] <= max(CLICK_PIXELS, background.agent_radius) else NO_NODE


def teammate_at(game: Game, background: GraphBackground, s: Any, slot: int, node: int, point: Point) -> str | None:
    """The teammate whose disc is at a point, else the first one on a node."""
    found = None
    places = seats(game, background, s)
    for other in slots_here(game, s):
        if other == slot or game.team_index[other] != game.team_index[slot]:
            continue
        if math.dist(point, places[other][0]) <= places[other][1]:
            return game.agents[other]
        if s.node[other] == node and found is None:
            found = game.agents[other]
    return found
