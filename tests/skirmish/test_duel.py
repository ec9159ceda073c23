"""The duel, in which both sides learn: mirrored views and orders, zero-sum pay, and who may mirror whom."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from skirmish.battles import OPEN, SMAC, Units, put, start, unit, write_map

from palaestra.core.compile.linker import jit_disabled
from palaestra.core.files import FileError
from palaestra.game import Choice
from palaestra.games.skirmish import games, maps
from palaestra.games.skirmish.battle_records import BLUE, RED
from palaestra.games.skirmish.orders import EAST, FIRST, NORTH, NOTHING, STOP, WEST
from palaestra.testing import check

compiles = pytest.mark.skipif(jit_disabled(), reason="hundreds of decisions")
SCALE = 20 / (45 + 10 + 200)
"""Pay of a point of damage against one marine."""


def duel(folder: Path, red: Units, blue: Units, **keywords: Any) -> Any:
    return start(games.duel(write_map(folder, red, blue), **keywords))


def face_to_face(folder: Path, **keywords: Any) -> Any:
    """A marine of each side, in range of each other."""
    return duel(folder, [("marine", 14, 10)], [("marine", 18, 10)], **keywords)


def decide(sim: Any, *orders: int) -> None:
    sim.actions[0] = orders
    sim.step()
    assert not sim.info["illegal"].any()


# --- fair sides ---


@pytest.mark.check
@compiles
def test_mirrored_matches_are_the_mirror_image_and_every_reward_is_the_opposite():
    wanted = ["mirror_symmetry_holds", "zero_sum_is_exact"]
    report = check("palaestra/SkirmishDuel-v0", only=wanted)
    assert {result.name: result.status for result in report.results} == dict.fromkeys(wanted, "passed")


@pytest.mark.parametrize("map", ["3m", "8m", "2s3z", "1c3s5z", "arena"])
def test_equal_sides_on_mirrored_ground_are_symmetric(map: str):
    game = games.duel(map)
    assert game.symmetric_teams
    assert game.mirror is not None


@pytest.mark.parametrize("map", ["5m_vs_6m", "2m_vs_1z", "corridor", "waves"])
def test_other_maps_promise_no_symmetry(map: str):
    game = games.duel(map)
    assert game.mirror is None
    assert not game.symmetric_teams
    assert game.zero_sum


def test_a_map_whose_points_are_not_mirrored_promises_no_symmetry(tmp_path: Path):
    red: Units = [("marine", 10, 10)]
    assert games.is_mirrored(maps.load(write_map(tmp_path, red, [("marine", 22, 10)])))
    assert not games.is_mirrored(maps.load(write_map(tmp_path, red, [("marine", 22, 11)])))
    assert not games.is_mirrored(maps.load(write_map(tmp_path, red, [("zealot", 22, 10)])))
    wall = (*OPEN[:9], "." * 20 + "#" + "." * 11, *OPEN[10:])
    assert not games.is_mirrored(maps.load(write_map(tmp_path, red, [("marine", 22, 10)], wall)))
    assert games.duel(write_map(tmp_path, red, [("marine", 22, 10)], wall)).mirror is None


def test_sides_that_are_mirrored_in_y_are_refused(tmp_path: Path):
    with pytest.raises(ValueError, match=r"map bane_vs_bane: its sides are mirrored in y, .* exchange x and y"):
        games.duel("bane_vs_bane")
    red: Units = [("marine", 10, 8), ("zealot", 12, 8)]
    with pytest.raises(FileError, match=r"own\.json: its sides are mirrored in y"):
        games.duel(write_map(tmp_path, red, [("zealot", 12, 12), ("marine", 10, 12)]))
    assert not games.duel(write_map(tmp_path, red, [("zealot", 12, 13), ("marine", 10, 12)])).symmetric_teams


@pytest.mark.parametrize("map", ["3m", "2s3z"])
def test_blue_begins_with_what_red_sees_and_may_do(map: str):
    sim = start(games.duel(map))
    count = len(maps.load(map).red.units)
    seen, legal = sim.buffers.observations["unit"][0], sim.legal[0]
    own = [name for name in seen.dtype.names if name != "units"]
    others = seen.dtype["units"].base.names
    for k in range(count):
        assert all(np.array_equal(seen[k][name], seen[count + k][name]) for name in own)
        assert all(np.array_equal(seen[k]["units"][name], seen[count + k]["units"][name]) for name in others)
        assert legal[k].tolist() == legal[count + k].tolist()
    x = sim.states["position"][0, : 2 * count, 0]
    np.testing.assert_array_equal(x[:count], 32 - x[count:])


# --- what blue sees and does ---


def test_blue_sees_offsets_mirrored_teammates_first(tmp_path: Path):
    sim = duel(tmp_path, [("marine", 14, 10)], [("marine", 18, 11), ("zealot", 21, 11)])
    rows = sim.buffers.observations["unit"][0, 1]["units"]
    assert rows["seen"].tolist() == [1, 1]
    assert rows["offset"].ravel().tolist() == pytest.approx([-3 / 9, 0, 4 / 9, -1 / 9])
    assert rows["shield"][:2].tolist() == [1, 0], "the zealot, then red's marine"


def test_blues_east_is_the_west_of_the_map(tmp_path: Path):
    sim = duel(tmp_path, [("marine", 5, 10)], [("marine", 26, 10)])
    decide(sim, EAST, EAST)
    assert unit(sim, "position", 0)[0] > 5
    assert unit(sim, "position", 1)[0] < 26
    decide(sim, NORTH, NORTH)
    assert unit(sim, "position", 1)[1] > 10


def test_blue_may_not_go_west_at_the_eastern_edge(tmp_path: Path):
    sim = duel(tmp_path, [("marine", 5, 10)], [("marine", 31.5, 10)])
    legal = sim.legal[0, 1]
    assert (legal[WEST], legal[EAST]) == (0, 1)
    free = sim.buffers.observations["unit"][0, 1]["free"].tolist()
    assert free == [1, 1, 1, 0], "north, south, east, west"


def test_neither_side_attacks_on_its_way_and_both_have_a_target_for_each_opponent_or_teammate(tmp_path: Path):
    order = duel(tmp_path, [("marine", 14, 10)], [("marine", 18, 10)] * 3).game.roles[0].action[0]
    assert isinstance(order, Choice)
    assert order.n == FIRST + 3
    sim = face_to_face(tmp_path)
    decide(sim, STOP, STOP)
    assert sim.states["hit_points"][0, :2].tolist() == [45, 45]


def test_both_sides_aim_at_each_other(tmp_path: Path):
    sim = face_to_face(tmp_path)
    decide(sim, FIRST, FIRST)
    assert sim.states["hit_points"][0, :2].tolist() == [39, 39]


# --- pay ---


def test_damage_pays_who_does_it_and_costs_who_takes_it(tmp_path: Path):
    sim = face_to_face(tmp_path)
    decide(sim, FIRST, STOP)
    assert sim.rewards[0].tolist() == pytest.approx([6 * SCALE, -6 * SCALE])
    put(sim, 1, cooldown=0.0)
    put(sim, 0, cooldown=20.0)
    decide(sim, STOP, FIRST)
    assert sim.rewards[0].tolist() == pytest.approx([-6 * SCALE, 6 * SCALE])


def test_equal_damage_pays_nothing(tmp_path: Path):
    sim = face_to_face(tmp_path)
    decide(sim, FIRST, FIRST)
    assert sim.rewards[0].tolist() == [0, 0]


@pytest.mark.parametrize(("loser", "winner"), [(1, RED), (0, BLUE)])
def test_a_kill_and_the_victory_pay_the_opposite_to_both(tmp_path: Path, loser: int, winner: int):
    sim = face_to_face(tmp_path)
    put(sim, loser, hit_points=6.0)
    decide(sim, *(STOP if slot == loser else FIRST for slot in range(2)))
    most = (6 + 10 + 200) * SCALE
    assert sim.rewards[0, 1 - loser] == pytest.approx(most)
    assert sim.rewards[0, loser] == -sim.rewards[0, 1 - loser]
    assert (sim.terminated[0], sim.info["winner"][0]) == (True, winner)


def test_sparse_pays_the_end_alone(tmp_path: Path):
    sim = face_to_face(tmp_path, reward="sparse")
    decide(sim, FIRST, STOP)
    assert sim.rewards[0].tolist() == [0, 0]
    put(sim, 0, hit_points=6.0)
    put(sim, 1, cooldown=0.0)
    decide(sim, STOP, FIRST)
    assert sim.rewards[0].tolist() == [-1, 1]


def test_scripts_play_both_sides_alike():
    sim = start(games.duel("3m"))
    for team in ("red", "blue"):
        sim.set_opponent(team, "nearest")
    for _ in range(6):
        sim.step()
    state = sim.states[0]
    assert state["last_action"][:3].tolist() == state["last_action"][3:6].tolist()
    assert (state["last_action"][:6] != NOTHING).all()
    assert state["position"][:3, 0].tolist() == (32 - state["position"][3:6, 0]).tolist()
    assert SMAC.number_of("marine") == state["kind"][0]


def test_a_wrong_map_is_named():
    with pytest.raises(ValueError, match="no map '3n'"):
        games.duel("3n")


@pytest.mark.check
def test_sides_whose_kinds_stand_in_another_order_in_the_file_are_alike_too():
    assert maps.load("MMM").red.units != maps.load("MMM").blue.units
    assert games.is_mirrored(maps.load("MMM"))
    result = check("palaestra/SkirmishDuel-v0", map="MMM", only=["mirror_symmetry_holds"]).results[0]
    assert result.status == "passed", result.message


def test_blue_may_stay_in_the_order_in_which_it_stands_in_skirmish():
    for map, given in (("5m_vs_6m", {"blue_order": "map"}), ("2s3z", {})):
        kept, as_ever = games.duel(map, **given), games.battle(map)
        assert np.array_equal(kept.world.openings, as_ever.world.openings)
    with pytest.raises(ValueError, match="blue_order"):
        games.duel("2s3z", blue_order="map")
    mirrored = games.duel("5m_vs_6m").world.openings
    assert not np.array_equal(mirrored, games.battle("5m_vs_6m").world.openings)
