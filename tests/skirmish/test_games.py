"""Games of several maps, drills with prizes and waves, pay of a map of one's own, and what is refused."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from skirmish.battles import OPEN, SMAC, at_red, decide, life, put, start, unit, write_groups, write_map

from palaestra import make_batch
from palaestra.core.compile.linker import jit_disabled
from palaestra.games.skirmish import build, games, maps, movement
from palaestra.games.skirmish.battle_records import BLUE, RED
from palaestra.games.skirmish.orders import EAST, FIRST, NOTHING, STOP

compiles = pytest.mark.skipif(jit_disabled(), reason="hundreds of matches")
OUTSIDE = -100.0


def on_map(game: Any, number: int) -> Any:
    """A match on one of the maps of a game."""
    sim = start(game)
    seed = 0
    while sim.states["map"][0] != number:
        seed += 1
        sim.reset(seed=seed)
    return sim


# --- several maps ---


@pytest.mark.check
@compiles
def test_all_maps_are_drawn_about_equally():
    sim = make_batch("palaestra/SkirmishUnshaped-Maps-v0", 256, maps=["3m", "5m", "2s3z"], autoreset_mode="off")
    sim.reset(seed=0)
    counts = np.bincount(sim.states["map"], minlength=3)
    assert counts.min() > 256 / 3 - 3 * 7.5
    assert counts.sum() == 256


@pytest.mark.parametrize(("number", "count"), [(0, 3), (1, 5)])
def test_there_are_as_many_agents_as_on_the_largest_map_and_the_absent_are_dead(number: int, count: int):
    sim = on_map(games.drawn_maps(["3m", "5m"]), number)
    assert sim.alive.shape == (1, 10)
    there = [k < count for k in range(5)]
    assert sim.alive[0].tolist() == there * 2
    assert np.flatnonzero(sim.legal["red"][0, 4]).tolist()[0] == (STOP if count == 5 else NOTHING)
    rows = sim.buffers.observations["red"][0, 0]["units"]["seen"]
    assert rows[:4].tolist() == there[1:]
    assert not sim.legal["red"][0, 0, FIRST:].any(), "nobody is near"
    assert sim.state()[0].reshape(10, -1)[:, 0].tolist() == there * 2


@pytest.mark.parametrize("number", [0, 1])
def test_the_reward_is_that_of_the_map(number: int):
    game = games.drawn_maps(["3m", "5m"])
    sim = on_map(game, number)
    count = (3, 5)[number]
    for k in range(count):
        put(sim, 5 + k, hit_points=6.0, position=unit(sim, "position", 0) + np.array([3, 0]))
    decide(sim, [at_red(min(k, count - 1)) if k < count else NOTHING for k in range(5)])
    assert sim.terminated[0]
    most = count * (45 + 10) + 200
    assert sim.rewards[0, 0] == pytest.approx(20 / most * (count * (6 + 10) + 200))


def test_each_match_is_played_on_the_ground_of_its_map():
    game = games.drawn_maps(["3m", "corridor"])
    terrain = game.world.terrain & movement.GROUND
    np.testing.assert_array_equal(terrain[0], maps.load("3m").walkable)
    np.testing.assert_array_equal(terrain[1], maps.load("corridor").walkable)
    here, ahead = terrain[:, :, :-1], terrain[:, :, 1:]
    row, column = np.argwhere((here.all(axis=0)) & (ahead[0] == 1) & (ahead[1] == 0))[0]
    for number in (0, 1):
        sim = on_map(game, number)
        put(sim, 0, kind=SMAC.number_of("zealot"), position=(column + 0.9, row + 0.5))
        assert sim.legal["red"][0, 0, EAST] == (number == 0)
        put(sim, 6, alive=1, hit_points=45.0, position=(column + 3.9, row + 0.5))
        decide(sim, [at_red(0), *[STOP if alive else NOTHING for alive in sim.alive[0, 1:6]]])
        assert (unit(sim, "position", 0)[0] > column + 1) == (number == 0)


def test_a_smaller_map_ends_at_its_own_edge(tmp_path: Path):
    small = write_groups(
        tmp_path, [{"unit": "marine", "at": [9, 3]}], [{"unit": "marine", "at": [1, 3]}], ("." * 10,) * 6, name="small"
    )
    sim = on_map(games.drawn_maps([small, "3m"]), 0)
    put(sim, 0, position=(9.5, 3.0))
    assert sim.legal["red"][0, 0, EAST] == 0
    assert sim.game.world.rules["width"].tolist() == [10, 32]


@pytest.mark.parametrize("make", [games.battle, games.duel])
def test_battles_are_played_by_another_ruleset(make: Any, spoilt: Any):
    other = spoilt("rulesets/smac-4.10", {"name": "harder", "units.marine.hit_points": 10})
    sim = start(make("3m", ruleset=str(other)))
    there = sim.states["alive"][0] == 1
    assert set(sim.states["hit_points"][0, there]) == {10.0}


def test_maps_of_several_rulesets_are_refused(spoilt: Any):
    other = maps.load("3m", spoilt("rulesets/smac-4.10", {"name": "harder", "units.marine.hit_points": 10}))
    with pytest.raises(ValueError, match="another ruleset than 3m has: draw maps of one alone"):
        build.make_game([maps.load("3m"), other])


# --- drills ---


def drill(name: str) -> Any:
    return start(games.drill(name))


def test_a_beacon_pays_1_when_it_is_reached_and_is_then_somewhere_else():
    sim = drill("beacon")
    put(sim, 1, position=(25.0, 25.0))
    decide(sim)
    assert (sim.rewards[0, 0], sim.info["prizes"][0]) == (0, 0)
    put(sim, 1, position=(16.0, 17.8))  # radii 0.375 and 1.5
    decide(sim)
    assert (sim.rewards[0, 0], sim.info["prizes"][0]) == (1, 1)
    assert sim.alive[0].tolist() == [True, True]
    assert unit(sim, "position", 1).tolist() != [16.0, 17.8]
    assert (unit(sim, "position", 1) >= 1).all()
    assert (unit(sim, "position", 1) <= 31).all()


def test_a_prize_that_moves_waits_for_no_other(tmp_path: Path):
    beacons = [{"unit": "beacon", "at": [x, 10]} for x in (6, 26)]
    sim = start(games.scenario(write_groups(tmp_path, [{"unit": "marine", "at": [5, 10]}], beacons, ends="never")))
    before = sim.states["position"][0, :3].copy()
    decide(sim)
    moved = (sim.states["position"][0, :3] != before).any(axis=1)
    assert moved.tolist() == [False, True, False]
    assert not sim.states["taken"].any()


def test_a_beacon_is_no_target_and_no_obstacle_and_is_never_asked():
    sim = drill("beacon")
    put(sim, 1, position=(20.0, 16.0))
    assert not sim.legal["red"][0, 0, FIRST:].any()
    assert not sim.acting[0, 1]
    assert np.flatnonzero(sim.legal["blue"][0, 0]).tolist() == [NOTHING]
    put(sim, 1, position=(17.0, 16.0))
    put(sim, 0, order=EAST)
    decide(sim, EAST)
    assert unit(sim, "position", 0)[0] == pytest.approx(16 + 2.25 / 2, abs=1e-5)


def test_a_drill_that_never_ends_goes_on_without_units_until_its_limit():
    sim = drill("beacon")
    put(sim, 0, hit_points=0.0)
    decide(sim)
    assert not sim.alive[0, 0]
    assert not sim.terminated[0]
    sim.states["steps"] = sim.game.horizon - 1
    sim.states["parameters"]["horizon"] = sim.game.horizon
    decide(sim)
    assert (sim.truncated[0], sim.terminated[0], sim.info["winner"][0]) == (True, False, -1)


def shards(*near: int) -> Any:
    """The drill of shards; two marines at (16, 16), these shards at them and the others far."""
    sim = drill("shards")
    state = sim.states[0]
    state["position"][0], state["position"][1] = (16, 16), (20, 16)
    state["position"][2:22] = np.stack([np.arange(1.0, 21.0), np.full(20, 30.0)], axis=1)
    for k in near:
        state["position"][2 + k] = 16, 16.5
    sim.refresh()
    return sim


def test_each_shard_pays_1_and_is_gone():
    sim = shards(3, 7)
    decide(sim)
    assert (sim.rewards[0, 0], sim.info["prizes"][0]) == (2, 2)
    assert np.flatnonzero(sim.states["taken"][0]).tolist() == [2 + 3, 2 + 7]
    seen = sim.buffers.observations["red"][0, 0]["units"]["seen"]
    assert seen[1:].sum() == 0
    decide(sim)
    assert sim.rewards[0, 0] == 0


def test_all_shards_come_back_when_all_are_collected():
    sim = shards(0)
    sim.states["taken"][0, 3:21] = 1
    sim.states["position"][0, 3:21] = OUTSIDE
    decide(sim)
    assert sim.rewards[0, 0] == 1
    assert sim.states["taken"][0].sum() == 19, "one is left"
    put(sim, 21, position=(20.0, 16.5))
    decide(sim)
    assert sim.rewards[0, 0] == 1, "the other marine collects too"
    assert not sim.states["taken"].any()
    assert (sim.states["position"][0, 2:22] >= 1).all()
    assert len(np.unique(sim.states["position"][0, 2:22], axis=0)) == 20


def test_the_dead_collect_nothing():
    sim = drill("beacon")
    put(sim, 1, position=(16.0, 16.0))
    put(sim, 0, hit_points=0.0)
    decide(sim)
    assert sim.info["prizes"][0] == 0


def test_the_hunt_hides_what_is_out_of_sight_and_pays_for_zerglings_and_marines():
    sim = drill("hunt")
    state = sim.states[0]
    state["position"][3:28] = 1.0, 1.0
    state["position"][:3] = [(16, 16), (16, 30), (30, 16)]
    put(sim, 3, position=(24.9, 16.0))
    put(sim, 4, position=(25.1, 16.0))
    row = sim.buffers.observations["red"][0, 0]["units"]
    assert row["seen"][2:4].tolist() == [1, 0]
    assert not any(row[name][3].any() for name in row.dtype.names)
    put(sim, 3, hit_points=6.0, position=(20.0, 16.0))
    decide(sim, [at_red(0), STOP, STOP])
    assert sim.rewards[0, 0] == 1
    put(sim, 1, hit_points=0.0)
    decide(sim)
    assert sim.rewards[0, 0] == -1
    assert sim.info["dead"][0].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("name", "first", "per_wave", "kill"), [("waves", (9, 4), (5, 4), 10), ("splash_waves", (9, 10), (4, 10), 5)]
)
def test_a_wave_comes_when_the_one_before_is_beaten_and_kills_and_losses_pay(
    name: str, first: tuple[int, int], per_wave: tuple[int, int], kill: float
):
    sim = drill(name)
    reds = sim.game.roles[0].agents
    assert (sim.alive[0, : len(reds)].sum(), sim.alive[0, len(reds) :].sum()) == first
    foes = slice(len(reds), len(reds) + first[1])
    sim.states["hit_points"][0, foes] = 0.0
    put(sim, 0, hit_points=0.0)
    sim.states["position"][0, foes] = 31.0, 31.0
    decide(sim)
    assert sim.rewards[0, 0] == first[1] * kill - 1
    assert sim.alive[0, : len(reds)].sum() == first[0] - 1 + per_wave[0]
    assert sim.alive[0, len(reds) :].sum() == per_wave[1]
    assert not sim.terminated[0]


# --- pay ---


def paid(folder: Path, reward: dict[str, float], ends: str = "wiped_out", pays: str = "smac") -> Any:
    """A marine that is about to win against one."""
    more: dict[str, Any] = {"ends": ends, "reward": reward}
    red, blue = [{"unit": "marine", "at": [14, 10]}], [{"unit": "marine", "at": [18, 10]}]
    sim = start(games.scenario(write_groups(folder, red, blue, OPEN, **more), pays))
    put(sim, 1, hit_points=6.0)
    return sim


@pytest.mark.parametrize(
    ("reward", "expected"),
    [
        ({"damage": 0.5}, 3),
        ({"kill": 2}, 2),
        ({"win": 7}, 7),
        ({"defeat": -7, "loss": -1, "prize": 4}, 0),
        ({"damage": 1, "kill": -3, "win": 0.25}, 6 - 3 + 0.25),
    ],
)
def test_a_map_pays_for_what_it_says_without_a_scale(tmp_path: Path, reward: dict[str, float], expected: float):
    sim = paid(tmp_path, reward)
    decide(sim, at_red(0))
    assert sim.rewards[0].tolist() == [expected, 0]
    assert sim.info["winner"][0] == RED


def test_a_defeat_costs_what_the_map_says(tmp_path: Path):
    sim = paid(tmp_path, {"defeat": -7, "loss": -1, "win": 100})
    put(sim, 0, hit_points=0.0)
    decide(sim)
    assert sim.rewards[0, 0] == -8
    assert sim.info["winner"][0] == BLUE


def test_a_sparse_reward_replaces_that_of_the_map(tmp_path: Path):
    sim = paid(tmp_path, {"damage": 1, "kill": 10}, pays="sparse")
    decide(sim, at_red(0))
    assert sim.rewards[0, 0] == 1
    sim = paid(tmp_path, {"damage": 1, "kill": 10}, pays="sparse")
    put(sim, 0, hit_points=0.0)
    decide(sim)
    assert sim.rewards[0, 0] == -1


def test_a_match_that_never_ends_has_no_winner_and_pays_no_victory(tmp_path: Path):
    sim = paid(tmp_path, {"kill": 1, "win": 100}, ends="never")
    decide(sim, at_red(0))
    assert life(sim, 1) == 0
    assert (sim.terminated[0], sim.info["winner"][0], sim.rewards[0, 0]) == (False, -1, 1)


def test_units_that_come_late_are_part_of_the_scale(tmp_path: Path):
    foes = [{"unit": "marine", "at": [18, 10]}, {"unit": "zealot", "at": [28, 10], "arrives": [9, 9]}]
    sim = start(games.scenario(write_groups(tmp_path, [{"unit": "marine", "at": [14, 10]}], foes)))
    decide(sim, at_red(0))
    assert sim.rewards[0, 0] == pytest.approx(6 * 20 / (45 + 150 + 2 * 10 + 200))


# --- what is refused ---


@pytest.mark.parametrize(
    ("factory", "keywords", "reason"),
    [
        ("scenario", {"map": "wave"}, "no map 'wave'"),
        ("drawn_maps", {"maps": "3m"}, """maps must be a list of maps, like ["3m", "5m"], got '3m'"""),
        ("drawn_maps", {"maps": []}, """maps must be a list of maps, like ["3m", "5m"], got []"""),
        ("drawn_maps", {"maps": ["3m", "3n"]}, "no map '3n'"),
        ("turncoats", {"map": "3n"}, "no map '3n'"),
        ("turncoats", {"map": "2c_vs_64zg"}, "map 2c_vs_64zg: 5 units against 67 fit into none of 10 against 12, 27"),
    ],
)
def test_a_wrong_keyword_is_named(factory: str, keywords: dict[str, Any], reason: str):
    with pytest.raises(ValueError, match=re.escape(reason)):
        getattr(games, factory)(**keywords)


@pytest.mark.parametrize("changes", [-1, 5])
def test_a_twist_with_too_many_changes_is_refused(changes: int):
    with pytest.raises(ValueError, match=f"changes must be from 0 to 4, got {changes}"):
        build.make_game([maps.load("3m")], build.Variant(changes=changes))


def test_the_horizon_is_that_of_the_longest_map():
    sizes: Sequence[str] = ("3m", "2s3z", "MMM")
    assert games.drawn_maps(sizes).horizon == max(maps.load(name).limit for name in sizes) == 150
    assert SMAC.loops_per_decision == games.drawn_maps(sizes).world.rules["loops"][0]


def test_a_file_of_ones_own_may_be_drawn_beside_a_bundled_map(tmp_path: Path):
    own = write_map(tmp_path, [("zealot", 5, 10)], [("marine", 27, 10)] * 4)
    assert len(games.drawn_maps([own, "3m"]).agents) == 3 + 4
