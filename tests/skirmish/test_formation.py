"""Formation: the places of units at the start of a match, alone and on all bundled maps."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from skirmish.battles import terrain_of

from palaestra.games.skirmish import maps
from palaestra.games.skirmish.battle_records import World
from palaestra.games.skirmish.build import Variant, mirror_of, world_of
from palaestra.games.skirmish.formation import reachable, stand_around
from palaestra.games.skirmish.maps import BattleMap
from palaestra.games.skirmish.movement import AIR, CLIFF, GROUND, NO_WAY

GROUND_32 = np.ones((32, 32), np.uint8)


def stand(
    points: list,
    radii: list,
    flying: list | None = None,
    open_cells: np.ndarray = GROUND_32,
    turn: tuple[int, int] = (1, 1),
):
    count = len(points)
    is_flier = np.array(flying or [False] * count)
    return stand_around(np.array(points, float), np.array(radii, float), is_flier, [open_cells] * count, turn)


def overlaps(points: np.ndarray, radii: np.ndarray, flying: np.ndarray) -> np.ndarray:
    """How deep the bodies of each pair of one plane overlap, cells; at most 0 where none does."""
    away = np.hypot(*(points[:, None] - points[None]).transpose(2, 0, 1))
    deep = radii[:, None] + radii[None] - away
    return deep[np.triu(flying[:, None] == flying[None], 1)]


# --- alone ---


@pytest.mark.jitless
def test_the_first_unit_stands_on_its_point_and_the_next_ones_as_near_as_they_fit():
    placed = stand([(16, 16)] * 5, [0.375] * 5)
    away = np.hypot(*(placed - 16).T)
    assert away.tolist() == [0, 0.75, 0.75, 0.75, 0.75]  # two radii; places are 0.25 apart
    assert placed.tolist() == [[16, 16], [16, 15.25], [16.75, 16], [16, 16.75], [15.25, 16]]  # counterclockwise


@pytest.mark.jitless
def test_a_body_that_does_not_fit_the_lattice_takes_the_next_place_outwards():
    placed = stand([(16, 16)] * 2, [0.5625, 0.5])  # 1.0625 apart at least
    assert np.hypot(*(placed[1] - 16)) == np.hypot(1, 0.5)  # not 1, nor hypot(1, 0.25) = 1.03
    assert np.hypot(*(stand([(16, 16)] * 2, [0.625, 0.625])[1] - 16)) == 1.25


@pytest.mark.jitless
def test_every_unit_stands_around_its_own_point():
    points = [(4, 4), (20, 9.5), (4, 4.5), (20.125, 28)]
    placed = stand(points, [0.375] * 4)
    assert placed[[0, 1, 3]].tolist() == [list(points[k]) for k in (0, 1, 3)]
    assert np.hypot(*(placed[2] - points[2])) == 0.25  # 0.75 from the first: (4, 4.75)


@pytest.mark.jitless
def test_no_two_bodies_overlap_and_fliers_stand_over_walkers():
    rng = np.random.default_rng(0)
    radii = rng.choice([0.375, 0.5, 0.625, 0.75], 40)
    flying = rng.random(40) < 0.3
    placed = stand([(16, 16)] * 40, list(radii), list(flying))
    assert overlaps(placed, radii, flying).max() <= 1e-9
    assert placed[flying][0].tolist() == placed[~flying][0].tolist() == [16, 16]


@pytest.mark.jitless
def test_nobody_stands_nearer_than_a_free_place_allows():
    radii = np.array([0.375, 0.75, 0.5, 0.375, 0.625, 0.375])
    placed = stand([(16, 16)] * 6, list(radii))
    grid = 16 + 0.25 * np.stack(np.meshgrid(*[np.arange(-16, 17)] * 2), -1).reshape(-1, 2)
    for k in range(6):
        away = np.hypot(*(grid[:, None] - placed[None, :k]).transpose(2, 0, 1))
        free = grid[(away >= radii[:k] + radii[k]).all(axis=1)]
        assert np.hypot(*(placed[k] - 16)) == np.hypot(*(free - 16).T).min()


@pytest.mark.jitless
def test_walls_and_the_edge_of_the_map_are_respected():
    open_cells = (terrain_of("#####", "#..##", "##..#", "#####") & GROUND).astype(np.uint8)
    placed = stand([(2.5, 2.5)] * 3, [0.375] * 3, open_cells=open_cells)
    cells = {(int(x), int(y)) for x, y in placed}
    assert cells <= {(1, 2), (2, 2), (2, 1), (3, 1)}
    assert len(placed) == 3
    assert (stand([(0, 0)] * 6, [0.5] * 6, open_cells=GROUND_32) >= 0).all()
    assert (stand([(31.9, 31.9)] * 6, [0.5] * 6, open_cells=GROUND_32) < 32).all()


@pytest.mark.jitless
def test_a_point_in_a_wall_leads_to_the_nearest_open_cell():
    open_cells = (terrain_of("#####", "#####", "####.") & GROUND).astype(np.uint8)
    assert stand([(1.5, 0.5)], [0.375], open_cells=open_cells).tolist() == [[4, 0.5]]


@pytest.mark.jitless
def test_units_of_one_group_may_stand_on_different_ground():
    here, there = np.zeros((8, 8), np.uint8), np.zeros((8, 8), np.uint8)
    here[:, :4], there[:, 4:] = 1, 1
    placed = stand_around(np.full((2, 2), 4.0), np.full(2, 0.375), np.zeros(2, bool), [here, there])
    assert placed.tolist() == [[3.75, 4], [4.5, 4]]


@pytest.mark.jitless
def test_the_other_side_stands_mirrored_in_x():
    radii = [0.375, 0.75, 0.5, 0.375, 0.625, 0.375, 0.5625]
    left, right = stand([(9, 16)] * 7, radii), stand([(23, 16)] * 7, radii, turn=(-1, 1))
    np.testing.assert_array_equal(right, (32, 0) + left * (-1, 1))
    assert (left != stand([(9, 16)] * 7, radii, turn=(-1, 1))).any()


@pytest.mark.jitless
def test_a_unit_whose_nearest_places_are_walls_stands_on_a_far_one():
    ground = np.zeros((20, 20), np.uint8)
    ground[10, 17] = 1
    (place,) = stand_around(np.array([[10.5, 10.5]]), np.array([0.5]), np.array([False]), [ground])
    assert place.tolist() == [17.0, 10.5]


def test_without_room_the_unit_is_named():
    open_cells = np.zeros((32, 32), np.uint8)
    open_cells[4, 4] = 1  # corners of the cell that are 0.75 apart: four marines
    with pytest.raises(ValueError, match="unit 4 finds no place within 8 cells of x = 4, y = 4"):
        stand([(4, 4)] * 9, [0.375] * 9, open_cells=open_cells)
    with pytest.raises(ValueError, match="unit 0 finds no place"):
        stand([(13, 4)], [0.375], open_cells=open_cells)  # the nearest place is at x = 4.75


@pytest.mark.jitless
def test_nobody_stands_behind_a_wall():
    open_cells = (terrain_of("#####", "#.#.#", "#.#.#", "#####") & GROUND).astype(np.uint8)
    here = reachable(open_cells, np.array([1.9, 1.5]))
    assert np.argwhere(here).tolist() == [[1, 1], [2, 1]]
    assert not reachable(open_cells, np.array([2.5, 1.5])).any()


# --- on the bundled maps; not jitless: tables of shortest ways for 1024 cells ---


@functools.cache
def bundled(name: str) -> tuple[BattleMap, World]:
    battle = maps.load(name)
    return battle, world_of([battle], Variant())


def starts(world: World) -> tuple[np.ndarray, np.ndarray]:
    """Kinds, and places float64 ``[agents, 2]``."""
    opening = world.openings[0]
    return opening["kind"], np.column_stack([opening["x"], opening["y"]])


@pytest.mark.parametrize("name", maps.names())
def test_both_sides_of_a_bundled_map_have_room(name: str):
    battle, world = bundled(name)
    kinds, places = starts(world)
    units = world.units[kinds]
    assert len(places) == len(battle.red.units) + len(battle.blue.units)
    assert overlaps(places, units["separation_radius"], units["flying"]).max() <= 1e-9
    columns, rows = np.floor(places).astype(int).T
    needed = np.where(units["flying"] == 1, AIR, np.where(units["cliff_walker"] == 1, CLIFF, GROUND))
    assert (world.terrain[0][rows, columns] & needed).all()
    wanted = np.concatenate([battle.red.positions, battle.blue.positions])
    assert np.hypot(*(places[:, None] - wanted[None]).transpose(2, 0, 1)).min(axis=1).max() <= 6


@pytest.mark.parametrize("name", maps.names())
def test_red_stands_in_the_order_of_the_maps_kinds_then_x_and_y(name: str):
    battle, world = bundled(name)
    reds = len(battle.red.units)
    kinds, places = starts(world)
    names = [battle.ruleset.unit_names[kind] for kind in kinds]
    keys = [(battle.red.units.index(kind), x, y) for kind, (x, y) in zip(names[:reds], places[:reds], strict=True)]
    assert keys == sorted(keys)
    assert sorted(names[:reds]) == sorted(battle.red.units)
    if sorted(battle.blue.units) != sorted(battle.red.units):
        assert names[reds:] == list(battle.blue.units)


@pytest.mark.parametrize("name", ["3m", "8m", "25m", "2s3z", "3s5z", "1c3s5z", "MMM", "bane_vs_bane"])
def test_where_both_sides_are_equal_blue_is_the_mirror_image_of_red_unit_by_unit(name: str):
    battle, world = bundled(name)
    kinds, places = (np.split(part, 2) for part in starts(world))
    factors = (1, -1) if name == "bane_vs_bane" else (-1, 1)
    assert mirror_of(battle) == factors
    edge = np.where(np.array(factors) < 0, battle.size, 0)
    assert kinds[0].tolist() == kinds[1].tolist()
    assert places[0].tolist() == (edge + places[1] * factors).tolist()


@pytest.mark.parametrize("name", ["MMM", "bane_vs_bane"])
def test_with_smacs_rules_blue_is_in_the_order_of_the_map(name: str):
    battle = maps.load(name)
    world = world_of([battle], Variant(smac_rules=True))
    names = [battle.ruleset.unit_names[kind] for kind in starts(world)[0][len(battle.red.units) :]]
    assert names == list(battle.blue.units)


def test_the_places_of_other_maps_are_no_mirror_images():
    for name in ("5m_vs_6m", "corridor", "2c_vs_64zg"):
        assert mirror_of(maps.load(name)) is None


@pytest.mark.parametrize("name", maps.names())
def test_blue_walkers_have_a_way_to_red(name: str):
    battle, world = bundled(name)
    ways = world.ways[0]
    if ways.size:
        columns, reds = world.terrain.shape[2], len(battle.red.units)
        x, y = np.floor(starts(world)[1]).astype(int).T
        cells = y * columns + x
        here, there = cells[reds:], cells[:reds]
        assert ((ways[np.ix_(there, here)] != NO_WAY) | (there[:, None] == here[None])).all()
