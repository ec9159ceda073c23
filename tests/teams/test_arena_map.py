"""The arena of the robot duel: its obstacles, and the tables of what sees what and how to drive."""

import numpy as np
import pytest

from palaestra.games.teams import arena_map
from palaestra.games.teams.arena_map import COLUMNS, NODES, OBSTACLES_M, ROBOT_RADIUS_M, SPACING_M

ARENA = arena_map.build(is_sparse=False)
AT_M = arena_map.node_positions_m()
FREE = arena_map.free_nodes()


def node(x_m: float, z_m: float) -> int:
    """The node at a place of the lattice."""
    (found,) = np.flatnonzero((AT_M[:, 0] == x_m) & (AT_M[:, 1] == z_m))
    return int(found)


def test_nine_obstacles_stand_in_the_arena_each_with_its_opposite():
    assert len(OBSTACLES_M) == 9
    np.testing.assert_array_equal(OBSTACLES_M[::-1], OBSTACLES_M * [-1, -1, 1, 1])
    assert (np.abs(OBSTACLES_M[:, :2]) + OBSTACLES_M[:, 2:] <= [4.0, 2.25]).all()


def test_half_a_turn_leaves_every_table_as_it_is():
    opposite = NODES - 1 - np.arange(NODES)
    np.testing.assert_array_equal(AT_M[opposite], -AT_M)
    np.testing.assert_array_equal(FREE[opposite], FREE)
    np.testing.assert_array_equal(ARENA.sight[::-1, ::-1], ARENA.sight)
    np.testing.assert_array_equal(opposite[ARENA.post_node][::-1], ARENA.post_node)
    np.testing.assert_array_equal(ARENA.post_m[::-1], -ARENA.post_m)
    np.testing.assert_array_equal(ARENA.way_m[::-1, ::-1], ARENA.way_m)
    np.testing.assert_array_equal(opposite[ARENA.next_node[::-1, ::-1]], ARENA.next_node)


def test_visibility_is_symmetric():
    np.testing.assert_array_equal(ARENA.sight, ARENA.sight.T)
    assert ARENA.sight.diagonal()[FREE].all()


@pytest.mark.parametrize(
    ("start_m", "end_m", "is_seen"),
    [
        ((-0.5, 0.0), (0.5, 0.0), False),
        ((-0.5, 0.5), (0.5, 0.5), True),
        ((-0.5, -0.5), (0.5, 0.5), False),
        ((-3.5, 0.0), (-1.0, 0.0), False),
        ((-3.5, 0.75), (3.5, 0.75), True),
        ((-3.75, 2.0), (3.75, 2.0), False),
    ],
)
def test_obstacles_hide_what_is_behind_them(start_m: tuple, end_m: tuple, is_seen: bool):
    assert ARENA.sight[node(*start_m), node(*end_m)] == is_seen


def test_no_line_of_sight_passes_through_an_obstacle():
    rng = np.random.default_rng(0)
    pairs = rng.integers(NODES, size=(400, 2))
    shares = np.linspace(0, 1, 801)[:, None]
    for a, b in pairs:
        line = AT_M[a] + shares * (AT_M[b] - AT_M[a])
        depth_m = (OBSTACLES_M[:, 2:] - np.abs(line[:, None] - OBSTACLES_M[:, :2])).min(2).max()
        if depth_m > 1e-6:
            assert not ARENA.sight[a, b], (AT_M[a], AT_M[b])
        elif depth_m < -0.01:
            assert ARENA.sight[a, b], (AT_M[a], AT_M[b])


def test_every_way_leads_to_its_post_past_all_obstacles_and_is_as_long_as_it_says():
    for k, post in enumerate(ARENA.post_node):
        for start in np.flatnonzero(FREE)[k::17]:
            here, driven_m = int(start), 0.0
            while here != post:
                there = int(ARENA.next_node[k, here])
                driven_m += float(np.hypot(*(AT_M[there] - AT_M[here])))
                assert FREE[there]
                assert driven_m <= ARENA.way_m[k, start] + 1e-9
                here = there
            assert driven_m == pytest.approx(ARENA.way_m[k, start])


def test_no_way_is_shorter_than_the_straight_line_and_steps_lead_to_neighbours():
    straight_m = np.hypot(*(AT_M[None] - ARENA.post_m[:, None]).transpose(2, 0, 1))
    assert (ARENA.way_m >= straight_m - 1e-9).all()
    step = np.abs(AT_M[ARENA.next_node] - AT_M[None])
    assert step.max() == SPACING_M


def test_robots_on_free_nodes_touch_nothing():
    apart_m = np.maximum(np.abs(AT_M[FREE][:, None] - OBSTACLES_M[:, :2]) - OBSTACLES_M[:, 2:], 0.0)
    assert np.hypot(*apart_m.transpose(2, 0, 1)).min() >= ROBOT_RADIUS_M - 1e-9
    assert (np.abs(AT_M) + ROBOT_RADIUS_M <= [4.0, 2.25]).all()
    assert len(AT_M) == NODES == COLUMNS * arena_map.ROWS
