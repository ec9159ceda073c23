"""Rulesets: the bundled numbers, the table for kernels, and every way in which a file is refused."""

from __future__ import annotations

import dataclasses
import json
import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import palaestra_assets
from palaestra.core.files import FileError
from palaestra.games.skirmish import ruleset as rulesets
from palaestra.games.skirmish.ruleset import AIR, GROUND, Unit, attribute_mask

SMAC = rulesets.load("smac-4.10")
TABLE = rulesets.table(SMAC)


def row(unit: str) -> np.void:
    return TABLE[SMAC.number_of(unit)]


def damage_per_loop(unit: str, against: str) -> float:
    """What a unit does to another without armour, on average."""
    shooter, target = row(unit), row(against)
    bonus = shooter["bonus"] if shooter["bonus_mask"] & target["attributes"] else 0.0
    return (shooter["damage"] + bonus) * shooter["hits"] / shooter["cooldown_loops"]


def test_the_bundled_ruleset_holds_the_units_of_smac_and_of_the_drills():
    assert rulesets.names() == ("smac-4.10",)
    assert SMAC.name == "smac-4.10"
    assert SMAC.unit_names == (
        "marine", "marauder", "medivac", "zealot", "stalker", "colossus", "zergling", "baneling", "hydralisk",
        "spine_crawler", "roach", "sentry", "immortal", "beacon", "shard",
    )  # fmt: skip


def test_the_global_rules_are_those_of_smac():
    assert (SMAC.loops_per_second, SMAC.loops_per_decision) == (16, 8)
    assert (SMAC.sight, SMAC.shoot_range, SMAC.move_cells) == (9.0, 6.0, 2.0)
    assert (SMAC.minimum_damage, SMAC.shield_armour) == (0.5, 0.0)
    assert (SMAC.shield_regeneration_per_s, SMAC.shield_delay_s) == (2.0, 10.0)
    assert SMAC.cooldown_deviation_loops == (-1, 2)
    assert dataclasses.astuple(SMAC.reward) == (10.0, 200.0, 0.0, 0.5, 20.0)


@pytest.mark.parametrize(
    ("unit", "hit_points", "shield", "armour", "attributes", "speed_per_s", "radius", "normaliser"),
    [
        ("marine", 45, 0, 0, "light biological", 2.25, 0.375, 15),
        ("marauder", 125, 0, 1, "armoured biological", 2.25, 0.5625, 25),
        ("medivac", 150, 0, 1, "armoured mechanical", 2.75, 0.75, 200),
        ("zealot", 100, 50, 1, "light biological", 2.25, 0.5, 22),
        ("stalker", 80, 80, 1, "armoured mechanical", 2.953125, 0.625, 35),
        ("colossus", 200, 150, 1, "armoured mechanical massive", 2.25, 1.0, 24),
        ("zergling", 35, 0, 0, "light biological", 2.953125, 0.375, 11),
        ("baneling", 30, 0, 0, "biological", 2.5, 0.375, 1),
        ("hydralisk", 80, 0, 0, "light biological", 2.25, 0.625, 10),
        ("spine_crawler", 300, 0, 2, "armoured biological structure", 0, 1.125, 15),
        ("roach", 145, 0, 1, "armoured biological", 2.25, 0.5, 15),
        ("immortal", 200, 100, 1, "armoured mechanical", 2.25, 0.75, 15),
    ],
)
def test_the_table_holds_the_body_of_each_unit(
    unit: str, hit_points: float, shield: float, armour: float, attributes: str, speed_per_s: float, radius: float,
    normaliser: float,
):  # fmt: skip
    found = row(unit)
    assert (found["hit_points"], found["shield"], found["armour"]) == (hit_points, shield, armour)
    assert found["attributes"] == attribute_mask(*attributes.split())
    assert found["speed_per_loop"] * 16 == speed_per_s
    assert (found["radius"], found["cooldown_normaliser_loops"]) == (radius, normaliser)


@pytest.mark.parametrize(
    ("unit", "damage", "hits", "bonus", "against", "reach", "cooldown_s", "targets"),
    [
        ("marine", 6, 1, 0, None, 5, 0.8608, GROUND | AIR),
        ("marauder", 10, 1, 10, "armoured", 6, 1.5, GROUND),
        ("zealot", 8, 2, 0, None, 0.1, 1.2, GROUND),
        ("stalker", 13, 1, 5, "armoured", 6, 1.87, GROUND | AIR),
        ("colossus", 10, 2, 5, "light", 7, 1.5, GROUND),
        ("zergling", 5, 1, 0, None, 0.1, 0.696, GROUND),
        ("hydralisk", 12, 1, 0, None, 5, 0.825, GROUND | AIR),
        ("spine_crawler", 25, 1, 5, "armoured", 7, 1.85, GROUND),
        ("roach", 16, 1, 0, None, 4, 2.0, GROUND),
        ("immortal", 20, 1, 30, "armoured", 6, 1.45, GROUND),
    ],
)
def test_the_table_holds_the_weapon_of_each_unit(
    unit: str, damage: float, hits: int, bonus: float, against: str | None, reach: float, cooldown_s: float,
    targets: int,
):  # fmt: skip
    found = row(unit)
    assert (found["damage"], found["hits"], found["bonus"]) == (damage, hits, bonus)
    assert found["bonus_mask"] == (attribute_mask(against) if against else 0)
    assert found["range"] == pytest.approx(reach, abs=2e-4)
    assert found["cooldown_loops"] == pytest.approx(16 * cooldown_s, abs=0.01)
    assert found["targets"] == targets


def test_bonuses_meet_attributes():
    assert damage_per_loop("stalker", "marauder") == pytest.approx(18 / 29.92, rel=1e-3)
    assert damage_per_loop("stalker", "zealot") == pytest.approx(13 / 29.92, rel=1e-3)
    assert damage_per_loop("baneling", "zealot") > damage_per_loop("baneling", "baneling")


def test_the_medivac_heals_and_pays_with_energy():
    medivac = row("medivac")
    assert (medivac["damage"], medivac["hits"], medivac["targets"], medivac["cooldown_loops"]) == (0, 0, 0, 0)
    assert (medivac["heal_per_loop"] * 16, medivac["heal_per_energy"], medivac["range"]) == (9, 3, 4)
    assert medivac["heal_mask"] == attribute_mask("biological")
    assert (medivac["energy_start"], medivac["energy_most"], medivac["energy_per_loop"] * 16) == (50, 200, 0.5625)


def test_only_the_medivac_flies_and_gathers_speed():
    assert [u.name for u in SMAC.units if u.flying and not u.prize] == ["medivac"]
    assert row("medivac")["planes"] == AIR
    assert row("medivac")["acceleration_per_loop"] == 2.3125 / 256
    assert np.isinf(TABLE["acceleration_per_loop"][TABLE["flying"] == 0]).all()


def test_only_the_colossus_walks_cliffs_and_is_hit_by_every_weapon():
    assert [u.name for u in SMAC.units if u.cliff_walker] == ["colossus"]
    assert row("colossus")["planes"] == GROUND | AIR
    assert row("marine")["planes"] == GROUND


def test_splashes_have_shapes():
    assert [int(row(u)["splash_shape"]) for u in ("marine", "baneling", "colossus")] == [0, 1, 2]
    assert (row("baneling")["splash_radius"], row("baneling")["suicide"]) == (2.2, 1)
    assert row("colossus")["splash_radius"] == 1.4


def test_the_table_is_read_only_numbers_of_the_columns_that_are_documented():
    assert TABLE.dtype.names == tuple(rulesets.COLUMNS)
    assert {TABLE.dtype[k].kind for k in range(len(rulesets.COLUMNS))} == {"f", "i"}
    with pytest.raises(ValueError, match="read-only"):
        TABLE["damage"][0] = 7
    with pytest.raises(dataclasses.FrozenInstanceError):
        SMAC.sight = 10  # type: ignore[misc]


def test_a_ruleset_can_be_sent_to_another_process():
    assert pickle.loads(pickle.dumps(SMAC)) == SMAC


def test_an_unknown_name_suggests_the_nearest():
    with pytest.raises(ValueError, match=r"no ruleset 'smac-4.1': did you mean 'smac-4\.10'\?"):
        rulesets.load("smac-4.1")
    with pytest.raises(ValueError, match=r"'marin' is no unit of smac-4\.10: did you mean 'marine'\?"):
        SMAC.unit("marin")
    assert isinstance(SMAC.unit("marine"), Unit)


# --- files that are refused ---


ASSET = "rulesets/smac-4.10"
Spoilt = Callable[[str, dict[str, Any]], Path]


def test_a_copy_of_the_bundled_file_is_the_same_ruleset(spoilt: Spoilt):
    assert rulesets.load(spoilt(ASSET, {})) == SMAC


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("format", 2, "2 is newer than 1, the newest that this version reads: update palaestra"),
        ("format", "1", "must be an integer from 1 to 1000000, got '1'"),
        ("format", ..., "must be an integer from 1 to 1000000, got None"),
        ("name", "two words", "must be 1 to 40 letters, digits or _.- that begin with no mark, got 'two words'"),
        ("sight", "9", "must be a number from 0 to 64, got '9'"),
        ("sight", True, "must be a number from 0 to 64, got True"),
        ("loops_per_second", 16.0, "must be an integer from 1 to 1000, got 16.0"),
        ("loops_per_second", 0, "must be an integer from 1 to 1000, got 0"),
        ("cooldown_deviation_loops", [2, -1], "must be the least and the most, got 2, -1"),
        ("cooldown_deviation_loops", [0], "must be an array of 2 members, got 1 members"),
        ("cooldown_deviation_loops.1", 0.5, "must be an integer from -100 to 100, got 0.5"),
        ("reward.kill", ..., "missing key"),
        ("reward", 10, "must be an object, got 10"),
        ("units", [], "must be an object of 1 to 64 members, got []"),
        ("units", {}, "must be an object of 1 to 64 members, got {}"),
        ("units.marine.hit_points", ..., "missing key"),
        ("units.marine.hitpoints", 45, "unknown key: did you mean 'hit_points'?"),
        (
            "units.marine.name",
            "marine",
            "unknown key: there are ability, acceleration_cells_per_s2, armour",
        ),
        ("units.marine.hit_points", -45, "must be a number from 0.5 to 100000, got -45"),
        ("units.marine.flying", 1, "must be true or false, got 1"),
        ("units.marine.attributes", "light", "must be an array of 0 to 7 members, got 'light'"),
        ("units.marine.attributes.0", "lite", "must be one of light, armoured, biological, mechanical"),
        ("units.marine.attributes", ["light", "light"], "must name each attribute once, got light, light"),
        ("units.marine.weapon", "rifle", "must be an object, got 'rifle'"),
        ("units.marine.weapon.range", math.nan, "must be a number from 0 to 64, got nan"),
        ("units.marine.weapon.range", math.inf, "must be a number from 0 to 64, got inf"),
        ("units.marine.weapon.range", -1, "must be a number from 0 to 64, got -1"),
        ("units.marine.weapon.range", None, "must be a number from 0 to 64, got None"),
        ("units.marine.weapon.cooldown_s", 0, "must be a number from 0.0625 to 1000, got 0"),
        ("units.marine.weapon.targets", "air", "must be one of ground, any, got 'air'"),
        ("units.marine.weapon.targets", ["any"], "must be one of ground, any, got ['any']"),
        ("units.marauder.weapon.bonus_against", None, "must name an attribute if there is a bonus, and be null if it"),
        ("units.baneling.weapon.splash.shape", "cone", "must be one of circle, line, got 'cone'"),
        ("units.medivac.energy.start", 201, "must be at most 200, the most energy, got 201"),
        ("units.medivac.energy", ..., "missing key: healing is paid with energy"),
        ("units.marine.ability", "boost", "must be an object, got 'boost'"),
        ("units.marine.ability.kind", "fly", "must be one of boost, jump, got 'fly'"),
        ("units.marine.ability.duration_s", 0, "must be more than 0 for a boost"),
        ("units.stalker.ability.distance", 0, "must be more than 0 for a jump"),
        ("units.marine.ability.speed_factor", 0.5, "must be a number from 1 to 16, got 0.5"),
        ("units.marine.ability.attack_factor", 17, "must be a number from 1 to 16, got 17"),
        ("units.marine.ability.pause_s", -1, "must be a number from 0 to 1000, got -1"),
        ("units.marine.ability.hit_points", ..., "missing key"),
        ("units.marine.ability.cost", 10, "unknown key: there are attack_factor, distance"),
        ("units.shard.prize", "some", "must be one of moves, all, got 'some'"),
        ("units.marine.prize", "all", "must be left out: it neither moves, shoots nor heals"),
        ("units.medivac.prize", "moves", "must be left out: it neither moves, shoots nor heals"),
    ],
)
def test_a_bad_value_is_refused_with_file_key_and_reason(spoilt: Spoilt, key: str, value: Any, reason: str):
    path = spoilt(ASSET, {key: value})
    with pytest.raises(FileError) as error:
        rulesets.load(path)
    assert str(error.value).startswith(f"{path}: {key}: {reason}")


def test_every_key_is_required_but_what_some_units_lack(spoilt: Spoilt):
    content = json.loads(palaestra_assets.path(f"skirmish/{ASSET}.json").read_text(encoding="utf-8"))
    unit, heal, energy = (f"units.{name}" for name in ("baneling", "medivac.heal", "medivac.energy"))
    medivac = content["units"]["medivac"]
    keys = [*content, *(f"{unit}.{key}" for key in content["units"]["baneling"])]
    keys += [f"{unit}.weapon.{key}" for key in content["units"]["baneling"]["weapon"]]
    keys += [f"{heal}.{key}" for key in medivac["heal"]] + [f"{energy}.{key}" for key in medivac["energy"]]
    for key in set(keys) - {"format", f"{unit}.weapon", f"{unit}.weapon.splash"}:
        with pytest.raises(FileError, match=rf": {key}: missing key$"):
            rulesets.load(spoilt(ASSET, {key: ...}))
    assert rulesets.load(spoilt(ASSET, {f"{unit}.weapon": ...})).unit("baneling").weapon is None


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "no JSON: Expecting value"),
        ("{", "no JSON: Expecting property name"),
        ("[" * 100_000, "no JSON: "),
        ('{"format": 1' + "0" * 5000 + "}", "no JSON: "),
        ("[]", "must hold a JSON object, got []"),
        ('{"format": 1, "format": 1}', "the key 'format' stands twice in one object"),
        ('{"format": 1, "a\\nb": 1}', "'a\\nb': unknown key: there are"),
    ],
)
def test_what_is_no_ruleset_at_all_is_refused_in_one_line(tmp_path: Path, content: str, reason: str):
    path = tmp_path / "own.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(FileError) as error:
        rulesets.load(path)
    assert str(error.value).startswith(f"{path}: {reason}")
    assert "\n" not in str(error.value)


def test_a_file_that_cannot_be_read_is_refused_by_its_path(tmp_path: Path):
    with pytest.raises(FileError, match=r"none\.json: cannot be read: No such file"):
        rulesets.load(str(tmp_path / "none.json"))
    with pytest.raises(FileError, match="no regular file: give a file"):
        rulesets.load(tmp_path)
    (tmp_path / "latin.json").write_bytes(b'{"name": "\xe9"}')
    with pytest.raises(FileError, match=r"latin\.json: no text in UTF-8: byte 10"):
        rulesets.load(tmp_path / "latin.json")


def test_a_unit_heals_or_shoots(spoilt: Spoilt):
    medivac = dataclasses.asdict(SMAC.unit("medivac"))
    changes = {"units.marine.heal": medivac["heal"], "units.marine.energy": medivac["energy"]}
    with pytest.raises(FileError, match=r"units\.marine\.weapon: must be left out: a unit heals or shoots"):
        rulesets.load(spoilt(ASSET, changes))


@pytest.mark.parametrize(
    ("unit", "ability", "loops", "pause", "cost", "speed", "attack", "distance"),
    [
        ("marine", 1, 240, 240, 10, 1.5, 1.5, 0),
        ("marauder", 1, 240, 240, 20, 1.5, 1.5, 0),
        ("zealot", 1, 56, 160, 0, 2.2, 1, 0),
        ("stalker", 2, 0, 160, 0, 1, 1, 8),
        ("zergling", 0, 0, 0, 0, 0, 0, 0),
    ],
)
def test_the_table_holds_the_ability_of_each_unit(
    unit: str, ability: int, loops: float, pause: float, cost: float, speed: float, attack: float, distance: float
):
    found = [row(unit)[f"ability{name}"] for name in ("", "_loops", "_pause_loops", "_hit_points")]
    found += [row(unit)[f"ability_{name}"] for name in ("speed", "attack", "distance")]
    assert found == [ability, loops, pause, cost, speed, attack, distance]


def test_prizes_are_in_the_table_and_nothing_hits_them():
    assert {name: int(row(name)["prize"]) for name in ("marine", "beacon", "shard")} == {
        "marine": 0, "beacon": 1, "shard": 2,
    }  # fmt: skip
    for name in ("beacon", "shard"):
        assert (row(name)["planes"], row(name)["targets"], row(name)["speed_per_loop"]) == (0, 0, 0)
