"""Maps: the 23 of SMAC with their sizes, the ground and the orders, and every way in which a file is refused."""

from __future__ import annotations

import dataclasses
import functools
import json
import pickle
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import palaestra_assets
from palaestra.core.files import FileError
from palaestra.games.skirmish import maps
from palaestra.games.skirmish import ruleset as rulesets
from palaestra.games.skirmish.maps import BattleMap

SMAC = rulesets.load("smac-4.10")
loaded = functools.cache(maps.load)

# Limit, units of red and of blue; SMAC's sizes: actions, observation, state.
FACTS = {
    "3m": (60, "3 marine", "3 marine", 9, 30, 48),
    "8m": (120, "8 marine", "8 marine", 14, 80, 168),
    "25m": (150, "25 marine", "25 marine", 31, 250, 950),
    "5m_vs_6m": (70, "5 marine", "6 marine", 12, 55, 98),
    "8m_vs_9m": (120, "8 marine", "9 marine", 15, 85, 179),
    "10m_vs_11m": (150, "10 marine", "11 marine", 17, 105, 243),
    "27m_vs_30m": (180, "27 marine", "30 marine", 36, 285, 1170),
    "MMM": (150, "2 marauder, 7 marine, 1 medivac", "7 marine, 2 marauder, 1 medivac", 16, 160, 290),
    "MMM2": (180, "2 marauder, 7 marine, 1 medivac", "8 marine, 3 marauder, 1 medivac", 18, 176, 322),
    "2s3z": (120, "2 stalker, 3 zealot", "2 stalker, 3 zealot", 11, 80, 120),
    "3s5z": (150, "3 stalker, 5 zealot", "3 stalker, 5 zealot", 14, 128, 216),
    "3s5z_vs_3s6z": (170, "3 stalker, 5 zealot", "3 stalker, 6 zealot", 15, 136, 230),
    "3s_vs_3z": (150, "3 stalker", "3 zealot", 9, 36, 54),
    "3s_vs_4z": (200, "3 stalker", "4 zealot", 10, 42, 61),
    "3s_vs_5z": (250, "3 stalker", "5 zealot", 11, 48, 68),
    "1c3s5z": (180, "1 colossus, 3 stalker, 5 zealot", "1 colossus, 3 stalker, 5 zealot", 15, 162, 270),
    "2m_vs_1z": (150, "2 marine", "1 zealot", 7, 16, 26),
    "2s_vs_1sc": (300, "2 stalker", "1 spine_crawler", 7, 17, 27),
    "6h_vs_8z": (150, "6 hydralisk", "8 zealot", 14, 78, 140),
    "corridor": (400, "6 zealot", "24 zergling", 30, 156, 282),
    "so_many_baneling": (100, "7 zealot", "32 baneling", 38, 202, 397),
    "bane_vs_bane": (200, "4 baneling, 20 zergling", "20 zergling, 4 baneling", 30, 336, 984),
    "2c_vs_64zg": (400, "2 colossus", "64 zergling", 70, 332, 342),
}


def composition(units: tuple[str, ...]) -> str:
    return ", ".join(f"{count} {unit}" for unit, count in Counter(units).items())


def smac_sizes(battle: BattleMap) -> tuple[int, int, int]:
    """Actions, observation and state of SMAC's code with its default options."""
    reds, blues = len(battle.red.units), len(battle.blue.units)
    actions = 6 + blues
    red_shield, blue_shield = (any(SMAC.unit(unit).shield for unit in side.units) for side in (battle.red, battle.blue))
    kinds = len(set(battle.red.units))
    kind_bits = kinds if kinds > 1 else 0
    observation = 4 + blues * (5 + blue_shield + kind_bits) + (reds - 1) * (5 + red_shield + kind_bits)
    observation += 1 + red_shield + kind_bits
    state = reds * (4 + red_shield + kind_bits) + blues * (3 + blue_shield + kind_bits) + reds * actions
    return actions, observation, state


def test_there_are_the_23_maps_of_smac():
    assert set(maps.names()) == set(FACTS)
    assert len(maps.names()) == 23


@pytest.mark.parametrize("name", FACTS)
def test_limit_and_units_are_those_of_smac(name: str):
    limit, red, blue, *_ = FACTS[name]
    battle = loaded(name)
    assert (battle.name, battle.size, battle.limit) == (name, (32, 32), limit)
    assert (composition(battle.red.units), composition(battle.blue.units)) == (red, blue)
    assert battle.ruleset == SMAC
    assert battle.sources


@pytest.mark.parametrize("name", FACTS)
def test_the_sizes_follow_from_smac_s_formulas(name: str):
    assert smac_sizes(loaded(name)) == FACTS[name][3:]


@pytest.mark.parametrize("name", FACTS)
def test_every_unit_begins_on_ground_from_which_it_can_reach_the_other_side(name: str):
    battle = loaded(name)
    (x, y), *others = {(int(x), int(y)) for x, y in [*battle.red.positions, *battle.blue.positions]}
    reached, frontier = set(), [(x, y)]
    while frontier:
        x, y = frontier.pop()
        if (x, y) not in reached and 0 <= x < 32 and 0 <= y < 32 and battle.walkable[y, x]:
            reached.add((x, y))
            frontier += [(x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1)]
    assert reached.issuperset(others)
    assert len(reached) == battle.walkable.sum(), "no ground that nobody reaches"


@pytest.mark.parametrize(
    "name",
    ["3m", "8m", "25m", "5m_vs_6m", "8m_vs_9m", "10m_vs_11m", "27m_vs_30m", "MMM", "MMM2", "2s3z", "3s5z",
     "3s5z_vs_3s6z", "1c3s5z"],
)  # fmt: skip
def test_the_common_arena_is_a_band_of_16_rows(name: str):
    battle = loaded(name)
    band = np.zeros((32, 32), np.uint8)
    band[8:24] = 1
    np.testing.assert_array_equal(battle.walkable, band)
    np.testing.assert_array_equal(battle.level, np.where(band, 0, -1))
    assert (battle.red.positions == [9, 16]).all()
    assert (battle.blue.positions == [23, 16]).all()
    assert battle.blue.order.kind == "attack_move"
    np.testing.assert_array_equal(battle.blue.order.points, [[9, 16]])


@pytest.mark.parametrize("name", ["3s_vs_3z", "3s_vs_4z", "3s_vs_5z"])
def test_stalkers_meet_zealots_alone_on_open_ground(name: str):
    assert loaded(name).walkable.all()


def test_blue_s_orders_are_those_of_the_maps():
    orders = {name: loaded(name).blue.order for name in FACTS}
    kinds = {name: (order.kind, len(order.points)) for name, order in orders.items()}
    assert {name: order for name, order in kinds.items() if order != ("attack_move", 1)} == {
        "2m_vs_1z": ("attack_move", 2),
        "2s_vs_1sc": ("none", 0),
        "2c_vs_64zg": ("attack_units", 0),
    }
    np.testing.assert_array_equal(loaded("2m_vs_1z").blue.order.points, loaded("2m_vs_1z").red.positions)
    np.testing.assert_array_equal(loaded("corridor").blue.order.points, [[4.47, 4.3298]])
    assert {loaded(name).red.order.kind for name in FACTS} == {"none"}


def test_units_of_a_group_share_a_point_and_groups_have_their_own():
    bane = loaded("bane_vs_bane")
    assert Counter(map(tuple, bane.red.positions.tolist())) == {(16, 8): 4, (16, 11): 20}
    assert Counter(map(tuple, bane.blue.positions.tolist())) == {(16, 21): 20, (16, 24): 4}


def test_the_corridor_narrows_to_three_cells():
    walkable = loaded("corridor").walkable
    assert [int(walkable[y].sum()) for y in (10, 11, 12, 13, 14, 15)] == [10, 11, 3, 3, 13, 14]
    assert "".join(map(str, walkable[12])) == "0" * 11 + "111" + "0" * 18


def test_colossi_alone_climb_the_cliff_between_two_levels():
    battle = loaded("2c_vs_64zg")
    slope = (battle.climbable == 1) & (battle.walkable == 0)
    assert np.argwhere(slope).tolist() == [[y, x] for y in (12, 13) for x in range(4, 28)]
    assert (battle.level[11, 16], battle.level[12, 16], battle.level[14, 16]) == (0, -1, 8)
    assert battle.level[15, :8].tolist() == [0, 0, 0, 0, 1, 3, 5, 8], "a ramp, in eighths of a cliff"
    others = [loaded(name) for name in FACTS if name != "2c_vs_64zg"]
    assert all((other.climbable == other.walkable).all() and other.level.max() == 0 for other in others)


def test_all_arrays_are_read_only_and_of_the_documented_types():
    battle = loaded("2m_vs_1z")
    found = {
        "walkable": battle.walkable, "climbable": battle.climbable, "level": battle.level,
        "red": battle.red.positions, "blue": battle.blue.positions,
        "points": battle.blue.order.points, "no points": battle.red.order.points,
    }  # fmt: skip
    types = {key: (array.dtype.name, array.shape) for key, array in found.items()}
    assert types == {
        "walkable": ("uint8", (32, 32)), "climbable": ("uint8", (32, 32)), "level": ("int8", (32, 32)),
        "red": ("float64", (2, 2)), "blue": ("float64", (1, 2)),
        "points": ("float64", (2, 2)), "no points": ("float64", (0, 2)),
    }  # fmt: skip
    assert not any(array.flags.writeable for array in found.values())
    with pytest.raises(dataclasses.FrozenInstanceError):
        battle.limit = 1  # type: ignore[misc]


def test_a_map_can_be_sent_to_another_process():
    copy = pickle.loads(pickle.dumps(loaded("corridor")))
    np.testing.assert_array_equal(copy.level, loaded("corridor").level)
    assert copy.red.units == loaded("corridor").red.units


# --- own files ---

Spoilt = Callable[[str, dict[str, Any]], Path]


def test_an_unknown_name_suggests_the_nearest():
    with pytest.raises(ValueError, match=r"no map '3mm': did you mean '3m'\?"):
        maps.load("3mm")
    with pytest.raises(ValueError, match="no map 'xyz': there are 10m_vs_11m, "):
        maps.load("xyz")
    with pytest.raises(ValueError, match=r"no ruleset 'smac': did you mean 'smac-4\.10'\?"):
        maps.load("3m", "smac")


def test_a_map_is_played_by_another_ruleset(spoilt: Spoilt):
    other = spoilt("rulesets/smac-4.10", {"name": "harder", "units.marine.hit_points": 10})
    for given in (other, str(other), rulesets.load(other)):
        battle = maps.load("3m", given)
        assert battle.ruleset.name == "harder"
        assert battle.ruleset.unit("marine").hit_points == 10


def test_a_ruleset_without_a_unit_of_the_map_is_refused():
    without = dataclasses.replace(SMAC, units=SMAC.units[:3])
    assert maps.load("3m", without).ruleset is without
    with pytest.raises(FileError, match=r"2s3z\.json: red\.groups\.0\.unit: 'stalker' is no unit of smac-4\.10: there"):
        maps.load("2s3z", without)


def test_the_example_of_the_docstring_is_a_map(tmp_path: Path):
    example = (maps.__doc__ or "").partition("{")[2].partition("\n    }\n")[0]
    path = tmp_path / "crossing.json"
    path.write_text("{" + example + "}", encoding="utf-8")
    battle = maps.load(path)
    assert battle.walkable.tolist() == [
        [0, 0, 1, 1, 1, 1, 0, 0],
        [1, 1, 1, 1, 0, 1, 1, 1],
        [1, 1, 1, 1, 0, 1, 1, 1],
        [0, 0, 1, 1, 1, 1, 0, 0],
    ]
    assert battle.climbable[1:3].all()
    assert battle.level[1].tolist() == [0, 0, 0, 0, -1, 8, 8, 0]


def test_the_first_row_of_the_terrain_is_the_greatest_y(spoilt: Spoilt):
    assert maps.load(spoilt("maps/3m", {"terrain.0": "....." + "#" * 27})).walkable[31].tolist() == [1] * 5 + [0] * 27


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("format", 2, "2 is newer than 1, the newest that this version reads: update palaestra"),
        ("ruleset", "smac-4.1", "no ruleset 'smac-4.1': did you mean 'smac-4.10'?"),
        ("ruleset", 4.1, "must be a string, got 4.1"),
        ("limit", 0, "must be an integer from 1 to 1000000, got 0"),
        ("limits", 60, "unknown key: did you mean 'limit'?"),
        ("size", [32], "must be an array of 2 members, got 1 members"),
        ("size.0", 300, "must be an integer from 1 to 256, got 300"),
        ("terrain", ["."] * 31, "must have 32 rows as in size, got 31"),
        ("terrain.3", "..", "must have 32 cells as in size, got 2"),
        ("terrain.3", "x" * 32, "must be made of #^.123456789, got 'x'"),
        ("terrain.3", 3, "must be a string, got 3"),
        ("red", ..., "missing key"),
        ("red", [], "must be an object, got []"),
        ("red.order", {"kind": "none", "points": []}, "unknown key: there are groups"),
        ("red.groups", [], "must be an array of 1 to 27 members, got 0 members"),
        ("red.groups.0.count", 0, "must be an integer from 1 to 64, got 0"),
        ("red.groups.0.count", 2.5, "must be an integer from 1 to 64, got 2.5"),
        ("red.groups.0.unit", "marinr", "'marinr' is no unit of smac-4.10: did you mean 'marine'?"),
        ("red.groups.0.at", [9], "must be an array of 2 members, got 1 members"),
        ("red.groups.0.at.1", float("nan"), "must be a number from 0 to 256, got nan"),
        ("red.groups.0.at.1", -1, "must be a number from 0 to 256, got -1"),
        ("red.groups.0.at", [32, 16], "x = 32, y = 16 is outside the map of 32 x 32 cells"),
        ("red.groups.0.at", [9, 24.5], "a marine cannot stand at x = 9, y = 24.5: no ground there"),
        ("red.groups.0.at", "nowhere", "must be an array of 2 members, got 'nowhere'"),
        ("red.groups.0.arrives", 20, "must be an array of 2 members, got 20"),
        ("red.groups.0.arrives", [20], "must be an array of 2 members, got 1 members"),
        ("red.groups.0.arrives", [40, 20], "must be first and last decision, got 40, 20"),
        ("red.groups.0.wave", 33, "must be an integer from 0 to 32, got 33"),
        ("red.groups.0.wave", 0.5, "must be an integer from 0 to 32, got 0.5"),
        ("reward", 10, "must be an object, got 10"),
        ("ends", "soon", "must be one of wiped_out, never, got 'soon'"),
        ("blue.order", ..., "missing key"),
        ("blue.order.kind", "flee", "must be one of none, attack_units, attack_move, got 'flee'"),
        ("blue.order.points", [], "attack_move takes 1 or 2 points, got 0"),
        ("blue.order.points", [[1, 1]] * 3, "must be an array of 0 to 2 members, got 3 members"),
        ("blue.order.points.0", [9, 40], "x = 9, y = 40 is outside the map of 32 x 32 cells"),
        ("blue.order.points.0.0", "9", "must be a number from 0 to 256, got '9'"),
    ],
)
def test_a_bad_value_is_refused_with_file_key_and_reason(spoilt: Spoilt, key: str, value: Any, reason: str):
    path = spoilt("maps/3m", {key: value})
    with pytest.raises(FileError) as error:
        maps.load(path)
    assert str(error.value) == f"{path}: {key}: {reason}"


def test_orders_without_a_point_take_none(spoilt: Spoilt):
    with pytest.raises(FileError, match=r"blue\.order\.points: attack_units takes no points, got 1"):
        maps.load(spoilt("maps/3m", {"blue.order.kind": "attack_units"}))


@pytest.mark.parametrize(("side", "most"), [("red", 27), ("blue", 64)])
def test_a_side_holds_at_most_as_many_units_as_there_are_slots(spoilt: Spoilt, side: str, most: int):
    half = {"unit": "marine", "at": [9, 16]}
    groups = [half | {"count": most - 1}, half | {"count": 1}]
    assert len(getattr(maps.load(spoilt("maps/3m", {f"{side}.groups": groups})), side).units) == most
    groups[1]["count"] = 2
    with pytest.raises(FileError, match=rf"{side}\.groups: must hold at most {most} units, got {most + 1}"):
        maps.load(spoilt("maps/3m", {f"{side}.groups": groups}))


def test_fliers_begin_anywhere_and_cliff_walkers_on_cliffs(spoilt: Spoilt):
    on_the_wall = {"red.groups.0.unit": "medivac", "red.groups.0.at": [9, 30]}
    assert maps.load(spoilt("maps/3m", on_the_wall)).red.units[0] == "medivac"
    on_the_cliff = {"red.groups.0.at": [16, 12]}
    assert maps.load(spoilt("maps/2c_vs_64zg", on_the_cliff)).red.units[0] == "colossus"
    with pytest.raises(FileError, match=r"blue\.groups\.0\.at: a zergling cannot stand at x = 16, y = 12"):
        maps.load(spoilt("maps/2c_vs_64zg", {"blue.groups.0.at": [16, 12]}))


def test_the_bundled_files_hold_the_names_that_they_are_found_by():
    for folder in ("maps", "scenarios", "rulesets"):
        for path in palaestra_assets.path(f"skirmish/{folder}").glob("*.json"):
            assert json.loads(path.read_text(encoding="utf-8"))["name"] == path.stem


JUNK = [None, True, -1, 10**400, 1e999, 0.5, "", "\ud800", "no\nline", [], [[]], {}, {"": {}}, [None] * 300]


def key_paths(content: Any, prefix: str = "") -> list[str]:
    members = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    here = [(f"{prefix}{name}", member) for name, member in members]
    return [key for key, _ in here] + [key for name, member in here for key in key_paths(member, f"{name}.")]


@pytest.mark.parametrize("asset", ["maps/2c_vs_64zg", "scenarios/roach-waves", "rulesets/smac-4.10"])
def test_junk_anywhere_is_read_or_refused_in_one_line(spoilt: Spoilt, asset: str):
    load = rulesets.load if asset.startswith("rulesets") else maps.load
    paths = key_paths(json.loads(palaestra_assets.path(f"skirmish/{asset}.json").read_text(encoding="utf-8")))
    wanted = [p for p in paths if not p.startswith("units.") or p.startswith(("units.medivac", "units.baneling"))]
    file, refusals = spoilt(asset, {}), []
    for k, path in enumerate(wanted):
        for junk in JUNK[k % 6 :: 6]:
            spoilt(asset, {path: junk})
            try:
                load(file)
            except FileError as error:
                refusals.append(str(error))
    assert all(refusal.isprintable() and refusal.startswith(f"{file}: ") for refusal in refusals)
    assert len(refusals) > len(wanted)


# --- what comes later, what is drawn, what is paid ---


def test_groups_say_when_they_come_and_the_others_are_there_at_the_start(spoilt: Spoilt):
    groups = [
        {"unit": "marine", "count": 2, "at": [9, 16]},
        {"unit": "zealot", "count": 1, "at": [9, 16], "arrives": [20, 40]},
        {"unit": "marine", "count": 2, "at": "anywhere", "wave": 2},
    ]
    side = maps.load(spoilt("maps/3m", {"red.groups": groups})).red
    assert side.arrivals.tolist() == [[0, 0], [0, 0], [20, 40], [0, 0], [0, 0]]
    assert side.waves.tolist() == [0, 0, 0, 2, 2]
    assert np.isnan(side.positions[3:]).all()
    assert not np.isnan(side.positions[:3]).any()


@pytest.mark.parametrize(
    ("asset", "key", "value", "reason"),
    [
        ("late", "red.groups.1.arrives.1", 100_001, "must be an integer from 0 to 100000, got 100001"),
        ("late", "red.groups.1.arrives.0", -1, "must be an integer from 0 to 100000, got -1"),
        ("roach-waves", "reward.kills", 10, "unknown key: did you mean 'kill'?"),
        ("roach-waves", "reward.kill", "10", "must be a number from -1000 to 1000, got '10'"),
        ("roach-waves", "reward.loss", -1001, "must be a number from -1000 to 1000, got -1001"),
    ],
)
def test_a_bad_arrival_or_reward_is_refused_by_its_key(spoilt: Spoilt, asset: str, key: str, value: Any, reason: str):
    path = spoilt(f"scenarios/{asset}", {key: value})
    with pytest.raises(FileError) as error:
        maps.load(path)
    assert str(error.value) == f"{path}: {key}: {reason}"


def test_a_wave_comes_not_by_time(spoilt: Spoilt):
    with pytest.raises(FileError, match=r"blue\.groups\.0\.wave: must be left out beside arrives: a wave comes when"):
        maps.load(spoilt("maps/3m", {"blue.groups.0.wave": 1, "blue.groups.0.arrives": [1, 2]}))


def test_a_map_without_a_reward_or_an_end_has_those_of_smac(spoilt: Spoilt):
    assert (loaded("3m").reward, loaded("3m").ends) == (None, "wiped_out")
    own = maps.load(spoilt("maps/3m", {"reward": {"kill": 10, "loss": -1}, "ends": "never"}))
    assert own.reward == maps.Payment(damage=0, kill=10, loss=-1, prize=0, win=0, defeat=0)
    assert own.ends == "never"


@pytest.mark.parametrize("name", ["waves", "late", "open", "5m", "10m", "beacon", "shards", "hunt"])
def test_our_own_maps_are_found_by_their_names_beside_those_of_smac(name: str):
    assert maps.load(name).name == name
    assert name not in maps.names()


def test_the_drills_hold_the_units_and_times_of_pysc2s_mini_games():
    found = {}
    for name in ("beacon", "shards", "hunt", "roach-waves", "splash-waves"):
        battle = maps.load(name)
        first = [dict(Counter(np.array(side.units)[side.waves == 0].tolist())) for side in (battle.red, battle.blue)]
        found[name] = (*first, battle.limit / 2)
    assert found == {
        "beacon": ({"marine": 1}, {"beacon": 1}, 120),
        "shards": ({"marine": 2}, {"shard": 20}, 120),
        "hunt": ({"marine": 3}, {"zergling": 25}, 180),
        "roach-waves": ({"marine": 9}, {"roach": 4}, 180),
        "splash-waves": ({"marine": 9}, {"zergling": 6, "baneling": 4}, 180),
    }  # fmt: skip
