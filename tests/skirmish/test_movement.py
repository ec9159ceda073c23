"""Movement: open cells, sliding along walls, shortest ways, speeds, cliffs, fliers, and bodies that push each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from skirmish.battles import at_blue, at_red, decide, fight, put, terrain_of, unit

from palaestra.games.skirmish.movement import (
    AIR,
    CLIFF,
    GROUND,
    NEAR,
    NO_WAY,
    STEP_X,
    STEP_Y,
    find_ways,
    go,
    is_open,
    next_point,
    sees_way,
    shortest_ways,
    sort_by_x,
)
from palaestra.games.skirmish.orders import ATTACK_MOVE, EAST, NORTH, SOUTH, STOP, WEST

pytestmark = pytest.mark.jitless

CORNER = terrain_of(
    "..#.",
    "..^.",
    "....",
)
"""A wall at x = 2, y = 2 and a cliff at x = 2, y = 1."""

# --- cells ---


@pytest.mark.parametrize(
    ("x", "y", "bits"),
    [
        (0.001, 0.001, GROUND | CLIFF | AIR),
        (0.0, 1.0, 0),
        (1.0, 0.0, 0),
        (3.999, 2.999, GROUND | CLIFF | AIR),
        (2.0, 1.5, CLIFF | AIR),
        (2.999, 1.999, CLIFF | AIR),
        (2.5, 2.5, AIR),
        (1.999, 2.5, GROUND | CLIFF | AIR),
        (4.0, 1.0, 0),
        (1.0, 3.0, 0),
        (-0.001, 1.0, 0),
        (1.0, -0.001, 0),
    ],
)
def test_a_point_is_open_to_who_may_stand_in_its_cell(x: float, y: float, bits: int):
    for bit in (GROUND, CLIFF, AIR):
        assert is_open(CORNER, bit, x, y) == bool(bits & bit)


@pytest.mark.parametrize(
    ("to", "reached"),
    [
        ((1.5, 0.5), (1.5, 0.5)),
        ((1.875, 0.875), (1.875, 0.875)),
        ((2.25, 1.75), (1.75, 1.75)),  # the cliff is to the east: it slides north
        ((2.25, 1.25), (1.75, 1.25)),
        ((2.25, 0.75), (2.25, 0.75)),
        ((-0.25, 1.75), (1.75, 1.75)),  # off the map
        ((1.75, 3.25), (1.75, 1.5)),
    ],
)
def test_a_step_into_a_wall_is_taken_along_the_axis_that_is_free(to: tuple[float, float], reached: tuple[float, float]):
    position = np.array([1.75, 1.5])
    go(CORNER, GROUND, position, *to)
    assert tuple(position) == reached


def test_a_step_from_below_into_a_wall_goes_on_along_x():
    position = np.array([2.25, 0.75])
    go(CORNER, GROUND, position, 2.5, 1.25)
    assert position.tolist() == [2.5, 0.75]


def test_a_step_that_is_blocked_along_both_axes_is_none():
    position = np.array([0.25, 0.25])
    go(CORNER, GROUND, position, -0.25, -0.25)
    assert position.tolist() == [0.25, 0.25]


def test_a_cliff_is_no_wall_to_cliff_walkers_and_a_wall_is_none_to_fliers():
    for bits, to, reached in ((CLIFF, (2.25, 1.5), (2.25, 1.5)), (CLIFF, (2.25, 2.5), (2.25, 1.5)),
                              (AIR, (2.25, 2.5), (2.25, 2.5))):  # fmt: skip
        position = np.array([1.75, 1.5])
        go(CORNER, bits, position, *to)
        assert tuple(position) == reached


@pytest.mark.parametrize(
    ("start", "end", "walker", "climber", "flier"),
    [
        ((0.5, 0.5), (3.5, 0.5), True, True, True),
        ((0.5, 1.5), (3.5, 1.5), False, True, True),
        ((0.5, 2.5), (3.5, 2.5), False, False, True),
        ((3.5, 2.5), (0.5, 2.5), False, False, True),
        ((1.5, 0.5), (1.5, 2.5), True, True, True),
        ((3.5, 2.5), (1.5, 0.5), False, True, True),
        ((0.5, 0.5), (4.5, 0.5), False, False, False),
        ((1.5, 1.5), (1.5, 1.5), True, True, True),
    ],
)
def test_a_way_is_seen_where_the_straight_line_is_open(
    start: tuple[float, float], end: tuple[float, float], walker: bool, climber: bool, flier: bool
):
    seen = [sees_way(CORNER, bits, *start, *end) for bits in (GROUND, CLIFF, AIR)]
    assert seen == [walker, climber, flier]


# --- shortest ways ---


def ways_over(terrain: np.ndarray) -> np.ndarray:
    """The table of directions, by plain Python."""
    cells = terrain.size
    ways = np.empty((cells, cells), np.uint8)
    shortest_ways(terrain, ways, np.empty(cells, np.int64), np.empty(cells, np.int64))
    return ways


def walk(terrain: np.ndarray, ways: np.ndarray, start: tuple[int, int], goal: tuple[int, int]) -> Iterator[Any]:
    """Column and row of the cells on the way between two, both of them among them."""
    columns, (x, y) = terrain.shape[1], start
    yield x, y
    while (x, y) != goal:
        direction = ways[goal[1] * columns + goal[0], y * columns + x]
        assert direction != NO_WAY
        to_x, to_y = x + STEP_X[direction], y + STEP_Y[direction]
        assert all(terrain[row, column] & GROUND for row, column in ((to_y, to_x), (y, to_x), (to_y, x)))
        x, y = int(to_x), int(to_y)
        yield x, y


@pytest.mark.parametrize(
    ("rows", "goal", "steps"),
    [
        (["...", "...", "..."], (0, 0), ["222", "112", "012"]),
        (["....", ".##.", "...."], (0, 0), ["2345", "1##4", "0123"]),  # no step cuts a corner of the wall
        (["....", ".^^.", "...."], (0, 0), ["2345", "1^^4", "0123"]),
        (["..#..", "..#..", "....."], (4, 2), ["66#10", "55#11", "54322"]),
        (["..#", ".#.", "..."], (2, 1), ["56#", "4#0", "321"]),
    ],
)
def test_ways_are_as_short_as_steps_that_need_both_cells_beside_a_diagonal_allow(
    rows: Sequence[str], goal: tuple[int, int], steps: Sequence[str]
):
    terrain = terrain_of(*rows)
    ways = ways_over(terrain)
    for y, row in enumerate(reversed(steps)):
        for x, number in enumerate(row):
            if number.isdigit():
                cells = list(walk(terrain, ways, (x, y), goal))
                assert len(cells) - 1 == int(number), (x, y)


def test_ways_to_where_none_leads_end_in_the_nearest_cells_that_can_be_reached():
    terrain = terrain_of(
        "..#.",
        ".^##",
        "....",
    )
    ways = ways_over(terrain)
    closed, wall, others = 11, [6, 7, 10], [0, 1, 2, 3, 4, 8, 9]
    assert (ways[:, [closed, 5, *wall]] == NO_WAY).all()
    assert ((ways[np.ix_(others, others)] == NO_WAY) == np.eye(7, dtype=bool)).all()
    for goal, ends in ((5, {1, 4, 9}), (6, {2}), (7, {3, closed}), (10, {9, closed}), (closed, {3, 9, closed})):
        assert set(np.flatnonzero(ways[goal] == NO_WAY)) - {5, *wall} == ends | {closed}, goal
    assert [int(ways[5, cell]) for cell in (0, 8, 2, 3)] == [0, 3, 2, 2]  # east, south, west, west


def test_ground_that_is_one_rectangle_needs_no_table():
    assert find_ways(terrain_of("####", "#..#", "#..#", "####")).shape == (0, 0)
    assert find_ways(terrain_of("...", "...")).shape == (0, 0)
    assert find_ways(terrain_of("..#", "...")).shape == (6, 6)


def test_the_next_point_is_the_goal_in_sight_or_the_middle_of_the_next_cell():
    ways, point = ways_over(CORNER), np.zeros(2)
    for bits, to, expected in (
        (GROUND, (1.25, 0.25), (1.25, 0.25)),
        (GROUND, (3.5, 2.5), (1.5, 1.5)),  # south, as no diagonal passes the cliff
        (CLIFF, (3.5, 1.75), (1.5, 1.5)),
        (AIR, (3.5, 2.5), (3.5, 2.5)),
        (GROUND, (2.5, 2.5), (2.5, 2.5)),  # no way: straight on
        (GROUND, (9.0, 2.5), (9.0, 2.5)),
        (GROUND, (1.5, -7.0), (1.5, -7.0)),
    ):
        next_point(CORNER, ways, bits, np.array([1.5, 2.9]), *to, point)
        assert tuple(point) == expected, (bits, to)


# --- walking ---


@pytest.mark.parametrize(
    ("kind", "cells"),
    [("marine", 1.125), ("stalker", 2.953125 / 2), ("zergling", 2.953125 / 2), ("baneling", 1.25), ("colossus", 1.125)],
)
@pytest.mark.parametrize(("order", "x", "y"), [(NORTH, 0, 1), (SOUTH, 0, -1), (EAST, 1, 0), (WEST, -1, 0)])
def test_a_unit_walks_half_a_second_at_its_speed_in_a_decision(
    tmp_path: Path, kind: str, cells: float, order: int, x: int, y: int
):
    sim = fight(tmp_path, [(kind, 10, 10)], [("marine", 30, 10)])
    decide(sim, order)
    assert unit(sim, "position", 0) == pytest.approx([10 + cells * x, 10 + cells * y], abs=1e-12)
    decide(sim, order)
    assert unit(sim, "position", 0) == pytest.approx([10 + 2 * cells * x, 10 + 2 * cells * y], abs=1e-12)
    decide(sim, STOP)
    assert unit(sim, "position", 0) == pytest.approx([10 + 2 * cells * x, 10 + 2 * cells * y], abs=1e-12)


def test_a_medivac_gathers_speed_until_it_stops(tmp_path: Path):
    sim = fight(tmp_path, [("medivac", 10, 10), ("marine", 2, 2)], [("marine", 30, 10)])
    gain = 2.3125 / 16**2  # cells per loop, in each loop
    decide(sim, [EAST, STOP])
    assert unit(sim, "position", 0)[0] == pytest.approx(10 + 36 * gain)  # 1 + 2 + ... + 8
    decide(sim, [EAST, STOP])
    assert unit(sim, "position", 0)[0] == pytest.approx(10 + 136 * gain)  # ... + 16
    decide(sim, [EAST, STOP])  # the greatest speed is 2.75 / 16 = 19.03 gains
    assert unit(sim, "position", 0)[0] == pytest.approx(10 + 190 * gain + 5 * 2.75 / 16)
    decide(sim)
    x = unit(sim, "position", 0)[0]
    decide(sim, [EAST, STOP])
    assert unit(sim, "position", 0)[0] == pytest.approx(x + 36 * gain)


def test_a_structure_may_not_be_ordered_to_move(tmp_path: Path):
    sim = fight(tmp_path, [("spine_crawler", 10, 10)], [("marine", 15, 10)])
    assert not sim.legal["red"][0, 0, NORTH : WEST + 1].any()
    decide(sim, at_red(0))
    assert unit(sim, "position", 0).tolist() == [10, 10]


BARRIER = ("......#..^..",) * 6
"""A wall from x = 6 to 7 and a cliff from x = 9 to 10, both across the map."""


@pytest.mark.parametrize(
    ("kind", "over_wall", "over_cliff"),
    [("zealot", False, False), ("colossus", False, True), ("medivac", True, True)],
)
def test_cliff_walkers_cross_cliffs_and_fliers_cross_walls(
    tmp_path: Path, kind: str, over_wall: bool, over_cliff: bool
):
    sim = fight(tmp_path, [(kind, 2.5, 2.5), ("marine", 0.5, 0.5)], [("marine", 0.5, 5.5)], BARRIER)
    for last, passes in ((6, over_wall), (9, over_cliff)):
        put(sim, 0, position=(last - 0.5, 2.5))
        assert sim.legal["red"][0, 0, EAST] == passes
        put(sim, 0, position=(last - 1.05, 2.5), pace=1.0)  # the order is legal to all, and leads into the wall
        assert sim.legal["red"][0, 0, EAST]
        decide(sim, [EAST, STOP])
        assert (unit(sim, "position", 0)[0] > last) == passes
        assert unit(sim, "position", 0)[0] > last - 0.2


CHOKE = ("." * 24, *("......#................." for _ in range(5)))
"""A wall from x = 6 to 7 that leaves y = 5 to 6 free."""


@pytest.mark.parametrize(("kind", "goes_around"), [("marine", True), ("stalker", True), ("medivac", False)])
def test_a_walker_goes_around_a_wall_and_a_flier_over_it(tmp_path: Path, kind: str, goes_around: bool):
    order = {"kind": "attack_move", "points": [[3.5, 0.5]]}
    blue = [(kind, 9.5, 0.5), ("marine", 12.5, 0.5)]
    sim = fight(tmp_path, [("marine", 23.5, 5.5)], blue, CHOKE, order)
    highest = 0.5
    for _ in range(13):  # about 12 cells, at 1.125 in a decision
        decide(sim, STOP, [ATTACK_MOVE, STOP])
        x, y = unit(sim, "position", 1)
        assert not goes_around or not 6 <= x < 7 or y >= 5
        highest = max(highest, y)
    assert unit(sim, "position", 1) == pytest.approx([3.5, 0.5])
    assert highest >= 5 if goes_around else highest == 0.5


def test_an_attacker_goes_around_a_wall_to_its_target(tmp_path: Path):
    sim = fight(tmp_path, [("zealot", 5.5, 2.5)], [("marine", 7.5, 2.5)], CHOKE)
    for _ in range(12):
        decide(sim, at_red(0))
        x, y = unit(sim, "position", 0)
        assert not 6 <= x < 7 or y >= 5
    assert unit(sim, "hit_points", 1) < 45
    assert unit(sim, "position", 0)[0] >= 7


PLATEAU = ("............", ".....^^^^...", ".....^##^...", ".....^##^...", ".....^^^^...", "............")


@pytest.mark.parametrize(("at", "foot"), [((5.5, 2.5), (4, 2)), ((7.5, 4.5), (6, 5))])
def test_who_cannot_climb_waits_at_the_foot_of_a_cliff_nearest_to_its_target(
    tmp_path: Path, at: tuple[float, float], foot: tuple[int, int]
):
    hunt = {"kind": "attack_units", "points": []}
    sim = fight(tmp_path, [("colossus", *at), ("marine", 11.5, 0.5)], [("zergling", 0.5, 2.5)], PLATEAU, hunt)
    places = list[tuple[int, int]]()
    for _ in range(16):
        put(sim, 2, hit_points=35.0)
        decide(sim, [STOP, STOP], ATTACK_MOVE)
        x, y = unit(sim, "position", 2)
        places.append((int(x), int(y)))
    assert places[-4:] == [foot] * 4


# --- bodies ---


def test_the_order_of_x_is_kept():
    rng = np.random.default_rng(0)
    position, order = rng.uniform(0, 9, (40, 2)), np.arange(40)
    for _ in range(3):
        rng.shuffle(order[:30])
        sort_by_x(position, order, 30)
        assert sorted(order[:30]) == sorted(set(order[:30]))
        assert (np.diff(position[order[:30], 0]) >= 0).all()
        assert order[30:].tolist() == list(range(30, 40))
        position += rng.normal(0, 1, position.shape)


def test_equal_x_keep_their_order():
    order = np.array([2, 0, 1])
    sort_by_x(np.zeros((3, 2)), order, 3)
    assert order.tolist() == [2, 0, 1]


@pytest.mark.parametrize(
    ("first", "second", "after"),
    [
        (("marine", 10, 10), ("marine", 10.5, 10), ((9.875, 10), (10.625, 10))),
        (("marine", 10.5, 10), ("marine", 10, 10), ((10.625, 10), (9.875, 10))),
        (("marine", 10, 10), ("marine", 10, 10.5), ((10, 9.875), (10, 10.625))),
        (("zealot", 10, 10), ("zealot", 10.5, 10), ((9.875, 10), (10.625, 10))),  # bodies are smaller than for ranges
        (("marine", 10, 10), ("spine_crawler", 11, 10), ((9.5, 10), (11, 10))),
        (("spine_crawler", 10, 10), ("marine", 10, 9), ((10, 10), (10, 8.5))),
        (("spine_crawler", 10, 10), ("spine_crawler", 11, 10), ((10, 10), (11, 10))),
        (("medivac", 10, 10), ("marine", 10.5, 10), ((10, 10), (10.5, 10))),
        (("medivac", 10, 10), ("medivac", 11, 10), ((9.75, 10), (11.25, 10))),
        (("colossus", 10, 10), ("marine", 11, 10), ((9.9375, 10), (11.0625, 10))),
        (("marine", 10, 10), ("marine", 10.75, 10), ((10, 10), (10.75, 10))),
        (("marine", 10, 10), ("marine", 10.3, 10.4), ((9.925, 9.9), (10.375, 10.5))),  # 0.5 apart, along 3 : 4
        (("marine", 10, 10), ("marine", 10, 10), ((9.625, 10), (10.375, 10))),  # the lower slot to the left
        (("marine", 10 + 1e-10, 10), ("marine", 10, 10), ((9.625, 10), (10.375, 10))),  # likewise
    ],
)
@pytest.mark.parametrize("are_mates", [True, False])
def test_bodies_that_overlap_push_each_other_apart_by_half_of_the_overlap(
    tmp_path: Path, first: Any, second: Any, after: Any, are_mates: bool
):
    others = [("marine", 2, 2)], [("marine", 30, 18)]
    red, blue = ([first, second, *others[0]], others[1]) if are_mates else ([first, *others[0]], [second, *others[1]])
    sim = fight(tmp_path, red, blue)
    decide(sim)
    slots = (0, 1) if are_mates else (0, 2)
    assert np.array([unit(sim, "position", slot) for slot in slots]) == pytest.approx(np.array(after), abs=1e-6)


@pytest.mark.check
def test_nobody_is_pushed_into_a_wall_or_off_the_map(tmp_path: Path):
    red, blue = [("marine", 5.99, 2.5), ("marine", 0.01, 4.5)], [("marine", 5.59, 2.5), ("marine", 0.41, 4.5)]
    sim = fight(tmp_path, red, blue, CHOKE)
    decide(sim)
    (wall, _), (edge, _), (by_wall, _), (by_edge, _) = sim.states["position"][0, :4]
    assert 5.99 <= wall < 6
    assert 0 <= edge <= 0.01
    assert wall - by_wall == pytest.approx(0.75, abs=0.01)  # half of what is left in each loop
    assert by_edge - edge == pytest.approx(0.75, abs=0.01)


@pytest.mark.check
def test_a_crowd_comes_apart(tmp_path: Path):
    crowd = [("zergling", 10 + 0.1 * (k % 4), 10 + 0.1 * (k // 4)) for k in range(16)]
    sim = fight(tmp_path, [("marine", 30, 18)], crowd)
    for _ in range(12):
        decide(sim)
    points = sim.states["position"][0, 1:17]
    away = np.hypot(*(points[:, None] - points[None]).transpose(2, 0, 1))[~np.eye(16, dtype=bool)]
    assert away.min() > 0.75 - 0.02
    assert away.max() < 8


def pushed_twice(points: np.ndarray, touch: float, near: float) -> np.ndarray:
    """Where discs of one size are after a loop: two pushes by half of each overlap, of the pairs that began near."""
    apart = points[:, None] - points[None]
    pairs = np.hypot(*apart.transpose(2, 0, 1)) < touch + near
    for _ in range(2):
        apart = points[:, None] - points[None]
        away = np.hypot(*apart.transpose(2, 0, 1)) + np.eye(len(points))
        overlaps = pairs & (away < touch) & ~np.eye(len(points), dtype=bool)
        points = points + (np.where(overlaps, (touch - away) / away / 2, 0.0)[..., None] * apart).sum(1)
    return points


def test_bodies_that_are_near_push_each_other_twice_in_a_loop(tmp_path: Path):
    rng = np.random.default_rng(5)
    points = 10 + np.round(rng.uniform(0, 2, (30, 2)), 3)
    sim = fight(tmp_path, [("marine", 30, 18)], [("zergling", x, y) for x, y in points])
    decide(sim)
    for _ in range(8):
        points = pushed_twice(points, 0.75, NEAR)
    assert sim.states["position"][0, 1:31] == pytest.approx(points, abs=1e-4)


def test_a_body_that_is_walked_into_gives_way(tmp_path: Path):
    sim = fight(tmp_path, [("marine", 10, 10), ("marine", 11, 10)], [("marine", 30, 18)])
    decide(sim, [EAST, STOP])
    left, right = unit(sim, "position", 0)[0], unit(sim, "position", 1)[0]
    assert 11 < right < 11.875
    assert right - left == pytest.approx(0.75)


@pytest.mark.parametrize(("red", "blue"), [(at_red(0), at_blue(0)), (EAST, WEST), (NORTH, NORTH)])
def test_mirrored_orders_move_units_as_mirrors(tmp_path: Path, red: int, blue: int):
    sim = fight(tmp_path, [("zealot", 10, 10)], [("zealot", 16, 10)])
    for _ in range(3):
        decide(sim, red, blue)
        (red_x, red_y), (blue_x, blue_y) = sim.states["position"][0, :2]
        assert red_x + blue_x == pytest.approx(26)
        assert red_y == blue_y


def test_nobody_passes_between_two_walls_that_touch_at_a_corner(tmp_path: Path):
    ground = ("######", "###..#", "#..###", "######")
    sim = fight(tmp_path, [("zealot", 2.5, 1.5)], [("marine", 4.3, 2.6)], ground)
    for _ in range(8):
        decide(sim, at_red(0))
    x, y = unit(sim, "position", 0)
    assert (x < 3, y < 2) == (True, True)
    assert unit(sim, "hit_points", 1) == 45


@pytest.mark.jitless
def test_places_are_rounded_to_a_grid_that_its_mirror_image_keeps():
    ground = np.full((20, 32), GROUND, np.uint8)
    step = 2.0**-20
    for x, rounded in ((9 + 0.5 * step, 9.0), (9 + 1.5 * step, 9 + 2 * step), (9.3, None), (9 + 0.7 * step, 9 + step)):
        place, image = np.array([9.5, 9.5]), np.array([22.5, 9.5])
        go(ground, GROUND, place, x, 9.25)
        go(ground, GROUND, image, 32.0 - x, 9.25)
        assert rounded is None or place[0] == rounded
        assert place[0] * 2**20 == int(place[0] * 2**20)
        assert image.tolist() == [32.0 - place[0], 9.25]
