"""Scripts that move with care: what each orders in one situation, that mirrored sides mirror, and what they win."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from skirmish.battles import Units, at_blue, at_red, fight, put

from palaestra import make_batch, register
from palaestra.core.compile.linker import jit_disabled
from palaestra.games.skirmish import battle_records, maps, tactics
from palaestra.games.skirmish.orders import EAST, NORTH, SOUTH, STOP, WEST

pytestmark = pytest.mark.check

ID = "test/Skirmish-tactics-v0"
register(ID, "palaestra.games.skirmish.games:battle", family="test")
NEW = ("split", "surround", "kite", "retreat_heal")


def orders(sim: Any, red: str, blue: str = "hold") -> list[int]:
    """What all units are ordered by the scripts of their sides."""
    sim.set_opponent("red", red)
    sim.set_opponent("blue", blue)
    sim.step()
    return sim.states["last_action"][0].tolist()


def duel(folder: Path, stalker: tuple[float, float], zealot: tuple[float, float], cooldown: float) -> int:
    sim = fight(folder, [("stalker", *stalker)], [("zealot", *zealot)])
    put(sim, 0, cooldown=cooldown)
    return orders(sim, "kite")[0]


def test_a_kiting_unit_shoots_when_its_weapon_is_ready_and_its_pursuer_is_not_there_yet(tmp_path: Path):
    assert duel(tmp_path, (16, 10), (20, 10), cooldown=0.0) == at_red(0)


def test_a_kiting_unit_walks_away_while_its_weapon_is_not_ready(tmp_path: Path):
    assert duel(tmp_path, (16, 10), (19, 10), cooldown=20.0) == WEST
    assert duel(tmp_path, (16, 10), (13, 10), cooldown=20.0) == EAST


def test_a_kiting_unit_walks_away_from_a_pursuer_that_reaches_it_though_its_weapon_is_ready(tmp_path: Path):
    assert duel(tmp_path, (16, 10), (18, 10), cooldown=0.0) == WEST


def test_a_cornered_kiting_unit_slides_along_the_wall(tmp_path: Path):
    assert duel(tmp_path, (0.5, 10), (2.5, 10.5), cooldown=20.0) == SOUTH
    assert duel(tmp_path, (0.5, 10), (2.5, 9.5), cooldown=20.0) == NORTH


def wounded(folder: Path, red: Units, cooldown: float) -> int:
    """What a marine with few hit points does at which a marine aims."""
    sim = fight(folder, red, [("marine", 21, 10)])
    put(sim, 0, hit_points=6.0, cooldown=cooldown)
    put(sim, len(red), target=0)
    return orders(sim, "retreat_heal")[0]


def test_a_wounded_unit_steps_back_while_its_weapon_is_not_ready_and_others_are_there(tmp_path: Path):
    both = [("marine", 16, 10), ("marine", 16, 12)]
    assert wounded(tmp_path, both, cooldown=12.0) == WEST
    assert wounded(tmp_path, both, cooldown=0.0) == at_red(0)
    assert wounded(tmp_path, both[:1], cooldown=12.0) == at_red(0)


def test_a_healer_heals_the_wounded_with_the_fewest_hit_points(tmp_path: Path):
    red = [("medivac", 12, 10), ("marauder", 14, 10), ("marine", 14, 11), ("marine", 14, 12)]
    sim = fight(tmp_path, red, [("zealot", 30, 10)] * 4)
    put(sim, 1, hit_points=60.0)
    assert orders(sim, "retreat_heal")[0] == at_red(1)  # the others have fewer but lack none
    put(sim, 3, hit_points=30.0)
    assert orders(sim, "retreat_heal")[0] == at_red(3)


def test_a_healer_follows_fighters_and_never_leads(tmp_path: Path):
    red = [("medivac", 12, 10), ("marine", 8, 10)]
    assert orders(fight(tmp_path, red, [("zealot", 30, 10)] * 2), "retreat_heal")[0] == WEST


@pytest.mark.parametrize(("foe", "expected"), [("baneling", [SOUTH, NORTH]), ("zealot", [EAST, EAST])])
def test_units_spread_out_where_opponents_have_splash(tmp_path: Path, foe: str, expected: list[int]):
    sim = fight(tmp_path, [("zealot", 10, 9.5), ("zealot", 10, 10.5)], [(foe, 25, 10)])
    assert orders(sim, "split")[:2] == expected


def test_units_that_explode_go_where_opponents_are_many(tmp_path: Path):
    crowd = [("marine", 14.0, 6.5), ("marine", 14.0, 5.5), ("marine", 14.5, 6.0)]
    sim = fight(tmp_path, [("baneling", 10, 10)], [("marine", 10, 14), *crowd])
    assert orders(sim, "split")[0] in (at_red(1), at_red(2), at_red(3))


def test_melee_units_walk_past_opponents_to_places_of_their_own(tmp_path: Path):
    red = [("zealot", 17, 6), ("zealot", 13, 10), ("zealot", 17, 14)]
    blue = [("zealot", 18, 10)]
    assert orders(fight(tmp_path, red, blue), "surround")[:3] == [EAST, EAST, EAST]
    sim = fight(tmp_path, red, blue)
    assert orders(sim, "nearest")[:3] == [at_red(0), at_red(0), at_red(0)]


@pytest.mark.check
def test_every_script_of_red_plays_as_the_mirrored_script_of_blue(tmp_path: Path):
    kinds = ["marine", "stalker", "zealot", "medivac", "baneling", "marine"]
    random = np.random.default_rng(5)
    mirror = {EAST: WEST, WEST: EAST}
    for name in NEW:
        for _ in range(3):
            x, y = random.integers(60, 120, 6) / 8, random.integers(50, 110, 6) / 8
            red = [(kind, float(a), float(b)) for kind, a, b in zip(kinds, x, y, strict=True)]
            sim = fight(tmp_path, red, [(kind, 32.0 - a, b) for kind, a, b in red])
            sim.set_opponent("red", name)
            sim.set_opponent("blue", name)
            sim.states["hit_points"][0, [0, 6]] = 6.0
            sim.refresh()
            sim.step()
            reds, blues = sim.states["last_action"][0][:6].tolist(), sim.states["last_action"][0][6:12].tolist()
            expected = [
                mirror.get(o, o if o <= STOP or o in (NORTH, SOUTH) else o + at_blue(0) - at_red(0)) for o in reds
            ]
            assert blues == expected, name


@pytest.mark.skipif(jit_disabled(), reason="thousands of decisions")
def test_kiting_beats_five_zealots_that_nobody_beats_by_standing():
    rates = {}
    for name in ("kite", "nearest"):
        sim = make_batch(ID, 64, map="3s_vs_5z", autoreset_mode="off", opponents={"red": name, "blue": "builtin"})
        sim.reset(seed=3)
        for _ in range(maps.load("3s_vs_5z").limit):
            sim.step()
        rates[name] = float((sim.info["winner"] == battle_records.RED).mean())
    assert rates["kite"] - rates["nearest"] >= 0.6


def test_the_scripts_keep_their_numbers():
    assert tactics.NAMES[tactics.SPLIT :] == NEW
    numbers = (tactics.SPLIT, tactics.SURROUND, tactics.KITE, tactics.RETREAT_HEAL)
    assert tuple(tactics.NAMES[number] for number in numbers) == NEW


def test_of_equal_directions_the_one_towards_home_comes_first():
    assert [tactics.direction(2, team) for team in (0, 1)] == [WEST, EAST]
