"""Whole battles: rewards, ends, orders, what units see, and how the scripts fare."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from skirmish.battles import write_map

from palaestra import make_batch, register
from palaestra.core.compile.linker import jit_disabled, link
from palaestra.game import Choice
from palaestra.games.skirmish import battle_records, games, maps
from palaestra.games.skirmish.orders import ATTACK_MOVE, EAST, FIRST, NOTHING, STOP

pytestmark = pytest.mark.check

ID = "test/Skirmish-v0"
register(ID, "palaestra.games.skirmish.games:battle", family="test")
compiles = pytest.mark.skipif(jit_disabled(), reason="thousands of decisions")


def batch(map: str, lanes: int = 1, **options: Any) -> Any:
    sim = make_batch(ID, lanes, map=map, **{"autoreset_mode": "off", "opponents": {"blue": "builtin"}, **options})
    sim.reset(seed=3)
    return sim


def orders(sim: Any, red: list[int]) -> None:
    sim.actions["red"][0] = red
    sim.step()


def win_rate(map: str, red: str, matches: int = 256) -> float:
    sim = batch(map, matches, opponents={"red": red, "blue": "builtin"})
    for _ in range(maps.load(map).limit):
        sim.step()
    return float((sim.info["winner"] == battle_records.RED).mean())


@pytest.mark.parametrize("map", ["3m", "MMM", "2s3z", "5m_vs_6m", "MMM2"])
def test_the_small_maps_share_one_kernel(map: str):
    assert link(games.battle(map)) is link(games.battle("2s3z"))


@pytest.mark.parametrize("map", maps.names())
def test_red_may_choose_among_as_many_orders_as_in_smac(map: str):
    game, blues = games.battle(map), len(maps.load(map).blue.units)
    order = game.roles[0].action[0]
    assert isinstance(order, Choice)
    assert order.n == 6 + blues  # no map has more teammates than opponents where there are healers
    assert game.horizon == maps.load(map).limit


@compiles
def test_focus_fire_wins_where_it_should_and_random_play_never_does():
    assert win_rate("2s3z", "focus_fire") >= 0.9
    assert win_rate("2s3z", "random") <= 0.01
    assert win_rate("3m", "random") <= 0.01


def test_a_match_that_is_won_pays_twenty_and_is_over():
    sim = batch("3m", opponents={"blue": "hold"}, compiled=False)
    slots = slice(3, 6)
    sim.states["hit_points"][0, slots] = 6.0
    sim.states["position"][0, slots] = sim.states["position"][0, :3] + [4.0, 0.0]
    sim.refresh()
    paid = 0.0
    for _ in range(40):
        alive = np.flatnonzero(sim.alive[0, slots])
        if len(alive) == 0:
            break
        orders(sim, [FIRST + int(alive[0]) if up else NOTHING for up in sim.alive[0, :3]])
        paid += float(sim.rewards[0, 0])
    most = 3 * 45 + 3 * 10 + 200
    assert sim.terminated[0]
    assert (sim.info["winner"][0], sim.game.end_reason(int(sim.info["end_reason"][0]))) == (
        battle_records.RED,
        "wiped_out",
    )
    assert paid == pytest.approx(20 / most * (3 * 6 + 3 * 10 + 200), rel=1e-6)
    assert sim.rewards[0, :3].tolist() == [sim.rewards[0, 0]] * 3
    assert sim.rewards[0, 3:].tolist() == [0.0] * 3
    assert sim.info["dead"][0].tolist() == [0, 3]
    assert sim.info["damage"][0] == 18.0


def test_sparse_pays_one_at_the_end_alone():
    sim = batch("2m_vs_1z", reward="sparse", compiled=False)
    sim.states["hit_points"][0, 0] = 0.5
    sim.states["hit_points"][0, 1] = 0.5
    seen = []
    while not sim.terminated[0]:
        orders(sim, [STOP if up else NOTHING for up in sim.alive[0, :2]])
        seen.append(float(sim.rewards[0, 0]))
    assert seen[-1] == -1.0
    assert not any(seen[:-1])


def test_a_red_unit_never_fires_without_an_order():
    sim = batch("3m", opponents={"blue": "hold"}, compiled=False)
    sim.states["position"][0, 3:6] = sim.states["position"][0, :3] + [3.0, 0.0]
    sim.actions["blue"][...] = STOP
    sim.set_opponent("blue", None)
    for _ in range(10):
        sim.actions["red"][...] = STOP
        sim.step()
    assert sim.states["hit_points"][0, :6].tolist() == [45.0] * 6


def test_blue_comes_to_where_it_is_ordered_and_stays_there():
    sim = batch("2s3z", compiled=False)
    sim.states["position"][0, :5] = [4.0, 8.5]  # out of the way
    sim.states["position"][0, :5, 1] += np.arange(5.0) * 0.1
    before = sim.states["position"][0, 5:10, 0].mean()
    for _ in range(14):
        sim.actions["red"][...] = STOP
        sim.step()
    middle = sim.states["position"][0, 5:10].mean(axis=0)
    assert before - middle[0] == pytest.approx(14.0, abs=1.0)
    assert middle[1] == pytest.approx(16.0, abs=1.0)


def test_the_mask_offers_what_lies_within_six_cells_and_open_ground():
    sim = batch("3m", compiled=False)
    sim.states["position"][0, 0] = [31.5, 16.0]  # at the right edge of the map
    sim.states["position"][0, 3:6] = [[25.5, 16.0], [25.4, 16.0], [31.5, 22.0]]
    sim.refresh()
    mask = sim.legal["red"][0, 0]
    assert mask[[NOTHING, STOP, EAST]].tolist() == [0, 1, 0]
    assert mask[FIRST:].tolist() == [1, 0, 1]
    sim.states["alive"][0, 0] = 0
    sim.refresh()
    assert np.flatnonzero(sim.legal["red"][0, 0]).tolist() == [NOTHING]


def test_a_healer_is_offered_teammates_that_are_no_healers():
    sim = batch("MMM", compiled=False)
    units = maps.load("MMM").red.units
    kinds = [sim.states["kind"][0, k] for k in range(10)]
    medic = next(k for k in range(10) if sim.game.world.units[kinds[k]]["heal_per_loop"] > 0)
    assert sorted(units).count("medivac") == 1
    offered = np.flatnonzero(sim.legal["red"][0, medic][FIRST:])
    assert offered.tolist() == [k for k in range(10) if k != medic]


def test_what_is_out_of_sight_is_zero():
    sim = batch("3m", compiled=False)
    sim.states["position"][0, 0] = [10.0, 16.0]
    sim.states["position"][0, 3:6] = [[18.9, 16.0], [19.0, 16.0], [16.0, 16.0]]
    sim.refresh()
    seen = sim.buffers.observations["red"][0, 0]["units"]
    assert seen["seen"][2:5].tolist() == [1.0, 0.0, 1.0]
    assert seen["distance"][2:5].tolist() == pytest.approx([8.9 / 9, 0.0, 6.0 / 9])
    assert seen["offset"][4].tolist() == pytest.approx([6.0 / 9, 0.0])
    assert not any(seen[name][3].any() for name in seen.dtype.names)
    assert seen["can_be_target"][2:5].tolist() == [0.0, 0.0, 1.0]


def test_blue_attacks_on_its_way_though_it_has_but_one_order():
    sim = batch("3m", compiled=False)
    for _ in range(8):
        sim.actions["red"][...] = STOP
        sim.step()
    assert (sim.states["order"][0, 3:6] == ATTACK_MOVE).all()
    assert sim.states["hit_points"][0, :3].sum() < 3 * 45


def test_a_wrong_map_is_named():
    with pytest.raises(ValueError, match="3n"):
        games.battle("3n")


def test_a_map_whose_units_do_not_fit_is_named(tmp_path: Path):
    crowd = [("zergling", 20.0, 10.0)] * 40
    with pytest.raises(ValueError, match=r"own.json: 3 units against 40 fit into none of 10 against 12, 27 against 32"):
        games.battle(write_map(tmp_path, [("marine", 5, 5)] * 3, crowd))
    cell = ("#" * 6, "#.##.#", "#" * 6)
    with pytest.raises(ValueError, match=r"own.json: blue: unit 1 finds no place within 8 cells of x = 4.5, y = 1.5"):
        games.battle(write_map(tmp_path, [("marine", 1.5, 1.5)], [("colossus", 4.5, 1.5)] * 3, cell))
