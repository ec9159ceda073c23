"""Pictures, texts and clicks of matches on graphs: who is drawn where, and what a click moves."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

pytest.importorskip("PIL", reason="pictures need the extra palaestra[render]")

from palaestra.cli.play import Session
from palaestra.core.compile.linker import record_view
from palaestra.drawing.colors import PANEL, SIGNAL, TEAMS, TEXT, blend
from palaestra.game import Game, Parameter
from palaestra.games.pursuit import graph_pursuit
from palaestra.games.pursuit.graph_background import (
    FOOTER,
    HEADER,
    MARGIN,
    PADDING,
    WIDTH,
    GraphBackground,
    background_of,
)
from palaestra.games.pursuit.graph_ground import ground_of
from palaestra.games.pursuit.graph_render import click, draw, seats, write
from palaestra.games.pursuit.graphs import Graph, read
from palaestra.games.pursuit.layouts import MOST_PAIRED, lay_out, places_of

pytestmark = pytest.mark.jitless

PURSUERS_WON, CAPTURED = 0, 2


def match(graph: Any = "grid:5x5", nodes: tuple[int, ...] = (0, 4, 24), pursuers: int = 2, **rules: Any) -> Any:
    """A game and the record of a match in which agents have stood on some nodes from the start on."""
    parameters = {name: rules.pop(name) for name in ("radius", "vision", "need") if name in rules}
    game = graph_pursuit.game(graph, pursuers=pursuers, evaders=len(nodes) - pursuers, **rules)
    return game, start(game, nodes, **parameters)


def start(game: Game, nodes: tuple[int, ...], **parameters: float) -> Any:
    """A record; its parameters are the game's, or as given."""
    s = record_view(np.zeros(1, game.state_dtype))[0]
    for parameter in game.parameters:
        s.parameters[parameter.name] = parameters.get(parameter.name, parameter.default)
    s.node[: len(nodes)] = nodes
    s.trail[:] = np.asarray(s.node)[:, None]
    s.alive[: len(nodes)], s.acting[: len(nodes)] = 1, 1
    s.info.winner = -1
    return s


def fight(nodes: tuple[int, ...], hit_points: tuple[float, ...], most: float = 3.0) -> Any:
    """A match of a game in which agents have hit points: two against the rest."""
    game = graph_pursuit.game("grid:5x5", pursuers=2, evaders=len(nodes) - 2)
    fields = (*game.state, ("hit_points", "f8", (game.slots,)), ("target", "i8", (game.slots,)))
    parameters = (Parameter("hit_points", most, 1.0, 100.0), Parameter("reach", 1, 1, 9, whole=True))
    game = dataclasses.replace(game, state=fields, parameters=parameters)
    s = start(game, nodes)
    s.hit_points[: len(nodes)], s.target[:] = hit_points, -1
    return game, s


def walk(s: Any, slot: int, *nodes: int) -> None:
    """Moves an agent, one node in a decision, as the rules note it."""
    for node in nodes:
        s.steps += 1
        s.node[slot] = node
        s.trail[:, s.steps % graph_pursuit.TRAIL] = s.node


def picture(game: Game, s: Any) -> np.ndarray:
    return np.asarray(draw(game, game.world, s), int)


def background(game: Game, s: Any) -> GraphBackground:
    return background_of(game.world, int(s.graph))


def likeness(image: np.ndarray, point: Any, color: tuple[int, ...], reach: int = 1) -> float:
    """The least distance of a colour from the pixels around a point."""
    x, y = (round(float(value)) for value in point)
    around = image[y - reach : y + reach + 1, x - reach : x + reach + 1]
    return float(np.abs(around - np.array(color[:3])).sum(-1).min())


def has_disc(image: np.ndarray, center: Any, radius: float, color: tuple[int, ...]) -> bool:
    """Whether the disc of an agent is there: left and right of its number."""
    x, y = center
    return all(likeness(image, (x + side * 0.62 * radius, y), color) < 25.0 for side in (-1, 1))


def between(game: Game, s: Any, a: int, b: int) -> np.ndarray:
    return background(game, s).points[[a, b]].mean(axis=0)


def push(game: Game, s: Any, slot: int, point: Any) -> int | str | None:
    x, y = (round(float(value)) for value in point)
    return click(game, game.world, s, slot, x, y)


# ------------------------------------------------------------------------------------------------------------- picture


def test_each_agent_is_a_disc_of_its_team_at_its_node():
    game, s = match()
    image, here = picture(game, s), background(game, s)
    for slot, node in enumerate((0, 4, 24)):
        assert has_disc(image, here.point(node), here.agent_radius, TEAMS[slot == 2])
    assert not any(has_disc(image, here.point(12), here.agent_radius, color) for color in TEAMS)


def test_the_best_moves_of_a_solved_match_have_rings_and_the_moves_to_the_capture_are_said():
    game, s = match("path:9", nodes=(2, 4, 8), order="alternating", solve=True)
    image, here = picture(game, s), background(game, s)
    ring = blend(TEAMS[0], TEXT, 0.25)
    above = lambda node: np.array(here.point(node)) - (0.0, here.node_radius + 2.5)  # noqa: E731
    assert likeness(image, above(5), ring) < 60.0
    assert likeness(image, above(3), ring) < 60.0, "the other pursuer alone decides: this one may go anywhere"
    assert likeness(image, above(7), ring) > 100.0, "the evader is not to move"
    assert "pursuer to move, capture in 4 moves" in write(game, game.world, s)
    open_game, s = match("cycle:9", nodes=(0, 4), pursuers=1, order="alternating", solve=True)
    assert "pursuer to move, no capture" in write(open_game, open_game.world, s)


def test_in_a_crowd_of_nodes_hubs_are_larger_and_the_edges_of_agents_have_their_colour():
    game, s = match("scale_free:200x2", nodes=(150, 100, 180))
    image, here = picture(game, s), background(game, s)
    degrees = (game.world.neighbours[0, :, 1:] >= 0).sum(axis=1)
    assert here.radii[degrees.argmax()] == pytest.approx(2.5 * here.node_radius)
    assert here.radii[degrees == 2] == pytest.approx(here.node_radius)
    for slot, node in enumerate((150, 100, 180)):
        tint = blend(TEAMS[slot == 2], TEXT, 0.35)
        assert all(likeness(image, here.point(other), tint) < 25.0 for other in game.world.neighbours[0, node, 1:3])
    few, s = match("scale_free:20x2", nodes=(0, 5, 9))
    assert len(set(background(few, s).radii.tolist())) == 1, "their numbers are told apart"


@pytest.mark.parametrize("crowd", [2, 3, 5, 9, 17])
def test_agents_on_one_node_are_all_to_be_seen_in_the_picture(crowd: int):
    game, s = match(nodes=(0,) * crowd, pursuers=crowd - 1)
    image, places = picture(game, s), seats(game, background(game, s), s)
    for slot, (center, radius) in places.items():
        assert has_disc(image, center, radius, TEAMS[slot == crowd - 1])
        assert MARGIN <= center[0] - radius < center[0] + radius <= WIDTH - MARGIN
        assert HEADER <= center[1] - radius < center[1] + radius <= len(image) - FOOTER
    centers = np.array([center for center, _ in places.values()])
    ways = np.linalg.norm(centers[:, None] - centers, axis=-1) + 1e3 * np.eye(crowd)
    assert ways.min() > 2.0 * max(radius for _, radius in places.values())


def test_pursuers_that_are_not_in_the_match_are_not_drawn():
    game, s = match()
    s.alive[1] = 0
    assert not has_disc(picture(game, s), background(game, s).point(4), background(game, s).agent_radius, TEAMS[0])
    assert "pursuer_1" not in write(game, game.world, s)


def test_a_captured_evader_is_a_hollow_disc():
    game, s = match()
    s.alive[2] = 0
    here = background(game, s)
    image, (x, y) = picture(game, s), here.point(24)
    assert not has_disc(image, (x, y), here.agent_radius, TEAMS[1])
    assert likeness(image, (x + here.agent_radius - 1.0, y), TEAMS[1], 2) < 200.0
    assert likeness(image, (x + 0.6 * here.agent_radius, y), PANEL) < 60.0


def test_who_is_asked_for_an_action_has_a_white_rim():
    game, s = match()
    here = background(game, s)
    rim = (here.point(0)[0], here.point(0)[1] - here.agent_radius + 1.0)
    asked = likeness(picture(game, s), rim, TEXT)
    s.acting[0] = 0
    assert asked + 100.0 < likeness(picture(game, s), rim, TEXT)


def test_the_trail_goes_along_the_last_edges_and_fades():
    game, s = match()
    walk(s, 0, 1, 2, 7)
    image = picture(game, s)
    red = [likeness(image, between(game, s, a, b), TEAMS[0], 3) for a, b in ((0, 1), (1, 2), (2, 7), (7, 12))]
    assert red[2] < red[1] < red[0] < red[3] - 20.0


def test_a_trail_ends_where_the_agent_was_eight_decisions_ago():
    game, s = match(graph="path:12", nodes=(0, 11), pursuers=1)
    still = picture(game, s)
    walk(s, 0, *range(1, 10))
    image = picture(game, s)
    changed = [
        bool(np.abs(image - still)[round(y) - 1 : round(y) + 2, round(x)].any())
        for x, y in (between(game, s, k, k + 1) for k in range(11))
    ]
    assert changed == [False] * 2 + [True] * 7 + [False] * 2


def test_exits_are_marked_and_explained():
    game, s = match(exits=[12])
    (x, y), plain = background(game, s).point(12), match()
    corner = 1.7 * background(game, s).node_radius
    marks = [(x + corner, y), (x - corner, y), (x, y + corner), (x, y - corner)]
    assert all(likeness(picture(game, s), mark, SIGNAL) < 80.0 for mark in marks)
    assert min(likeness(picture(*plain), mark, SIGNAL) for mark in marks) > 200.0


def test_nodes_in_reach_of_pursuers_are_shaded_the_more_the_more_there_are():
    game, s = match(nodes=(6, 8, 24), radius=1)
    image, here = picture(game, s), background(game, s)
    away = here.node_radius + 3.0
    glow = [image[round(here.points[node, 1] - away), round(here.points[node, 0] + away), 0] for node in (7, 11, 12)]
    assert glow[0] > glow[1] > glow[2]
    assert glow[2] == PANEL[0]


def test_nodes_in_sight_of_a_team_have_its_colour():
    game, s = match(nodes=(0, 0, 24), vision=1)
    image, here = picture(game, s), background(game, s)
    warmth = [int(image[round(y), round(x) - 8] @ (1, 0, -1)) for x, y in (here.points[node] for node in (5, 12, 19))]
    assert warmth[0] > warmth[1] + 30
    assert warmth[1] > warmth[2] + 10


def test_the_last_picture_and_text_name_the_winner():
    game, s = match()
    before = picture(game, s)
    s.info.winner, s.info.end_reason, s.alive[2] = PURSUERS_WON, CAPTURED, 0
    after = picture(game, s)
    title = after[10:30, WIDTH // 2 - 60 : WIDTH // 2 + 60]
    reds = (np.abs(title - np.array(TEAMS[0])).sum(-1) < 60).sum()
    assert reds > 3 * (np.abs(before[10:30, WIDTH // 2 - 60 : WIDTH // 2 + 60] - TEAMS[0]).sum(-1) < 60).sum()
    assert "pursuer has won (captured)" in write(game, game.world, s)


def test_matches_of_a_pool_have_pictures_of_one_size():
    game, s = match(graph=["path:9", "grid:4x4"], nodes=(0, 1, 3))
    first = picture(game, s)
    s.graph = 1
    second = picture(game, s)
    assert first.shape == second.shape
    assert (first != second).any()


def test_edges_between_the_borders_of_a_torus_leave_the_picture_on_both_sides():
    game, s = match(graph="torus:5x5")
    image, here = picture(game, s), background(game, s)
    (left, y), (right, _) = here.points[10], here.points[14]
    grid = picture(*match(graph="grid:5x5"))
    for x in (left - here.node_radius - 5.0, right + here.node_radius + 5.0):
        assert likeness(image, (x, y), PANEL, 0) > 60.0
        assert likeness(grid, (x, y), PANEL, 0) < 10.0


@pytest.mark.check
@pytest.mark.parametrize("graph", ["grid:64x64", "regular:4096x4"])
def test_a_graph_of_4096_nodes_is_drawn(graph: str):
    game, s = match(graph=graph, nodes=(0, 7, 4095), radius=2, vision=3)
    image, places = picture(game, s), seats(game, background(game, s), s)
    assert has_disc(image, *places[2], TEAMS[1])


# ---------------------------------------------------------------------------------------------------------- hit points


def test_hit_points_are_pips_around_the_disc():
    game, s = fight((0, 4, 24), (3.0, 1.0, 3.0))
    image, here = picture(game, s), background(game, s)
    bright = []
    for node in (0, 4):
        angles = np.radians([-30.0, 90.0, 210.0])
        x, y = here.point(node)
        pips = [(x + (here.agent_radius + 3.0) * np.cos(a), y + (here.agent_radius + 3.0) * np.sin(a)) for a in angles]
        bright.append([likeness(image, pip, TEAMS[0]) < 200.0 for pip in pips])
    assert bright == [[True, True, True], [True, False, False]]


def test_a_line_leads_to_whom_an_agent_has_hit():
    game, s = fight((6, 4, 8), (3.0, 3.0, 2.0))
    middle = between(game, s, 6, 8) + np.array([18.0, 0.0])
    still = picture(game, s)
    s.target[0] = 2
    shot = blend(TEAMS[0], TEXT, 0.35)
    assert likeness(picture(game, s), middle, shot, 4) < likeness(still, middle, shot, 4) - 80.0
    assert "hit points 3/3  has hit evader_0" in write(game, game.world, s)


def test_the_fallen_of_both_teams_are_hollow_discs():
    game, s = fight((6, 4, 8), (0.0, 3.0, 2.0))
    s.alive[0] = 0
    x, y = background(game, s).point(6)
    radius = background(game, s).agent_radius
    assert not has_disc(picture(game, s), (x, y), radius, TEAMS[0])
    assert likeness(picture(game, s), (x + radius - 1.0, y), TEAMS[0], 2) < 200.0


# ------------------------------------------------------------------------------------------------------------- layouts


def layout(graph: Graph) -> np.ndarray:
    return places_of(ground_of([graph]), 0)


def test_known_places_are_kept():
    (grid,) = read("grid:4x6")
    np.testing.assert_array_equal(layout(grid), grid.places)


NAMES = ["regular:100x3", "scale_free:150x1", "scale_free:700x2", "cycle:30", "complete:40", "tree:63x1"]


@pytest.mark.check
@pytest.mark.parametrize("name", NAMES)
def test_a_computed_layout_is_always_the_same_and_its_nodes_stand_apart(name: str):
    (graph,) = read(name)
    bare = Graph("bare", graph.nodes, graph.edges)
    found = layout(bare)
    ground = ground_of([bare])
    np.testing.assert_array_equal(found, lay_out(ground.neighbours[0], ground.hops[0]))
    ways = np.linalg.norm(found[:, None] - found, axis=-1) + np.eye(graph.nodes) * 1e3
    least = 0.005 if graph.nodes <= MOST_PAIRED else 0.0005
    assert ways.min() > least * np.ptp(found, axis=0).max()


def test_a_computed_layout_of_a_ring_is_a_ring():
    (graph,) = read("cycle:30")
    found = layout(Graph("bare", 30, graph.edges))
    radii = np.linalg.norm(found - found.mean(axis=0), axis=1)
    assert radii.min() > 0.95 * radii.max()


def test_a_computed_layout_of_a_grid_keeps_its_distances():
    (graph,) = read("grid:6x6")
    found = layout(Graph("bare", 36, graph.edges))
    ways = np.linalg.norm(found[:, None] - found, axis=-1)
    assert graph.places is not None
    real = np.linalg.norm(graph.places[:, None] - graph.places, axis=-1)
    assert np.corrcoef(ways.ravel(), real.ravel())[0, 1] > 0.98


def test_components_stand_side_by_side():
    edges = np.array([[0, 1], [1, 2], [2, 0], [4, 5], [5, 6]])
    found = layout(Graph("four", 8, edges))
    parts = [found[[0, 1, 2]], found[[4, 5, 6]], found[[3]], found[[7]]]
    for k, one in enumerate(parts):
        for other in parts[:k]:
            apart = np.maximum(one.min(axis=0) - other.max(axis=0), other.min(axis=0) - one.max(axis=0))
            assert apart.max() > 0.5


@pytest.mark.parametrize(
    "graph", ["scale_free:200x2", "tree:2x6", "grid:8x8", "grid:3x14", "petersen", "regular:30x3", "cycle:12"]
)
def test_a_graph_fills_its_frame(graph: str):
    game, s = match(graph=graph, nodes=(0, 3, 1))
    found = background(game, s)
    frame = np.array([WIDTH - 2 * MARGIN, found.height - HEADER - FOOTER]) - 2 * PADDING
    assert (np.ptp(found.points, axis=0) >= 0.9 * frame).all()
    assert (found.points.min(axis=0) >= (MARGIN + PADDING - 0.5, HEADER + PADDING - 0.5)).all()
    assert (found.points.max(axis=0) <= np.array([WIDTH - MARGIN, found.height - FOOTER]) - PADDING + 0.5).all()


def test_a_path_stays_a_line():
    game, s = match(graph=Graph("path", 5, np.array([[0, 1], [1, 2], [2, 3], [3, 4]])), nodes=(0, 3, 4))
    across, upright = np.ptp(background(game, s).points, axis=0)
    assert across > 0.9 * (WIDTH - 2 * MARGIN - 2 * PADDING)
    assert upright < 0.05 * across


def test_the_crowd_in_the_middle_of_a_large_graph_is_spread():
    game, s = match(graph="scale_free:200x2", nodes=(0, 3, 1))
    plain = places_of(game.world, 0)
    ways = np.linalg.norm(plain - plain.mean(axis=0), axis=1) / np.ptp(plain, axis=0).max()
    points = background(game, s).points
    spread = np.linalg.norm(points - points.mean(axis=0), axis=1) / np.ptp(points, axis=0).max()
    assert np.quantile(spread, 0.3) > 1.05 * np.quantile(ways, 0.3)


def test_an_edge_that_would_pass_over_a_node_is_bent():
    places = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [1.0, 1.0], [3.0, 0.0]])
    graph = Graph("five", 5, np.array([[0, 1], [0, 2], [1, 3], [2, 4]]), (), places)
    game, s = match(graph=graph, nodes=(0, 3, 4))
    assert background(game, s).bent.keys() == {(0, 2)}


# ---------------------------------------------------------------------------------------------------------------- text


def test_the_text_names_everybody_with_node_and_hops():
    game, s = match(graph="grid:5x5", exits=[20], order="alternating")
    s.steps = 3
    lines = write(game, game.world, s).splitlines()
    assert lines[0] == "25 nodes, 40 edges"
    assert lines[1] == "decision 3 of 128: pursuer to move, captured 0, escaped 0"
    assert lines[2:] == [
        "pursuer_0  node 0     8 hops to evader_0  4 hops to an exit",
        "pursuer_1  node 4     4 hops to evader_0  8 hops to an exit",
        "evader_0   node 24    4 hops to pursuer_1  4 hops to an exit",
    ]


def test_the_text_says_who_has_left_and_whose_turn_it_is():
    game, s = match(order="alternating", nodes=(0, 1, 23, 24))
    s.turn, s.alive[2] = 1, 0
    text = write(game, game.world, s)
    assert "evader to move" in text
    assert "evader_0   has left the match at node 23" in text


def test_no_way_is_said_in_words():
    game, s = match(graph=Graph("two", 4, np.array([[0, 1], [2, 3]])), nodes=(0, 2), pursuers=1)
    assert "node 0     no way to an opponent" in write(game, game.world, s)


# --------------------------------------------------------------------------------------------------------------- mouse


@pytest.mark.parametrize("graph", ["grid:5x5", "petersen", "torus:5x5", "regular:30x3"])
def test_a_click_on_a_neighbour_is_the_move_there_and_on_the_own_node_to_stay(graph: str):
    game, s = match(graph=graph, nodes=(7, 3, 0))
    near = game.world.neighbours[0, 7]
    for number in np.flatnonzero(near >= 0).tolist():
        assert push(game, s, 0, background(game, s).points[near[number]]) == number


def test_a_click_elsewhere_means_nothing():
    game, s = match(nodes=(6, 4, 24))
    assert push(game, s, 0, between(game, s, 6, 12) + 3.0) is None
    assert push(game, s, 0, background(game, s).points[18]) is None
    assert push(game, s, 0, background(game, s).points[24]) is None
    assert push(game, s, 0, (3, 3)) is None


def test_a_click_on_a_teammate_commands_it_next_unless_the_agent_can_go_there():
    game, s = match(nodes=(6, 4, 24))
    assert push(game, s, 0, background(game, s).points[4]) == "pursuer_1"
    s.node[1] = 7
    assert isinstance(push(game, s, 0, background(game, s).points[7]), int)


def test_a_click_on_the_disc_of_a_teammate_in_a_crowd_commands_that_one():
    game, s = match(graph="grid:3x3", nodes=(0, 8, 8, 8, 2), pursuers=4)
    for slot in (1, 2, 3):
        assert push(game, s, 0, seats(game, background(game, s), s)[slot][0]) == f"pursuer_{slot}"


def test_a_match_of_alternating_moves_is_played_by_clicks():
    session = Session("palaestra/GraphPursuit-v0", seed=3, order="alternating")
    session.start()
    game, s = session.sim.game, record_view(session.sim.states)[0]
    for _ in range(2):
        goal = int(game.world.neighbours[0, s.node[0], 2])
        x, y = background(game, s).point(goal)
        assert not session.decide([]), "it waits for the click"
        assert session.click(round(x), round(y))
        assert session.decide([])
        assert s.node[0] == goal
        assert not session.click(round(x) + 54, round(y)), "it is the evader's turn"
        assert session.decide([])


def test_who_is_not_to_move_cannot_be_moved():
    game, s = match(nodes=(6, 4, 24))
    s.acting[0] = 0
    assert push(game, s, 0, background(game, s).points[7]) is None
    assert push(game, s, 0, background(game, s).points[4]) == "pursuer_1"
