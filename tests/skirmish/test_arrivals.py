"""Who comes late, waves, and who changes sides: when, with what, and under which names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pettingzoo.test import parallel_api_test, parallel_seed_test
from skirmish.battles import Units, at_red, decide, life, put, start, unit, write_groups, write_map

from palaestra import register
from palaestra.core.compile.linker import jit_disabled
from palaestra.games.skirmish import games
from palaestra.games.skirmish.battle_records import ARRIVED, BLUE, NEVER, RED
from palaestra.games.skirmish.combat import NOBODY
from palaestra.games.skirmish.orders import ATTACK_MOVE, NOTHING, STOP
from palaestra.registry import make_parallel

ID, TURNCOATS = "test/SkirmishLate-v0", "test/SkirmishTurncoats-v0"
register(ID, "palaestra.games.skirmish.games:scenario", family="test")
register(TURNCOATS, "palaestra.games.skirmish.games:turncoats", family="test")
compiles = pytest.mark.skipif(jit_disabled(), reason="hundreds of decisions")

MARINE = {"unit": "marine", "at": [5, 10]}
FOE = {"unit": "marine", "at": [27, 10]}
"""Units of both sides, out of each other's sight."""


def late(folder: Path, red: list[dict[str, Any]], blue: list[dict[str, Any]], lanes: int = 1) -> Any:
    return start(games.scenario(write_groups(folder, red, blue)), lanes=lanes)


def on_field(sim: Any) -> list[str]:
    """Names of the agents that are there, in the order of the slots."""
    return [agent for agent, alive in zip(sim.game.agents, sim.alive[0], strict=True) if alive]


def lose(sim: Any, *slots: int) -> None:
    """One decision at the end of which these units are dead."""
    for slot in slots:
        put(sim, slot, hit_points=0.0)
    decide(sim)


# --- by time ---


def test_a_late_unit_comes_at_the_end_of_its_decision(tmp_path: Path):
    sim = late(tmp_path, [MARINE, MARINE | {"at": [5, 14], "arrives": [3, 3]}], [FOE])
    seen = []
    for _ in range(4):
        seen.append(on_field(sim))
        decide(sim)
    assert seen == [["red_0", "blue_0"]] * 3 + [["red_0", "red_1", "blue_0"]]


def test_a_late_unit_comes_to_its_place_with_all_that_its_kind_has(tmp_path: Path):
    stalker = {"unit": "stalker", "at": [5, 14], "arrives": [1, 1]}
    sim = late(tmp_path, [MARINE, stalker], [FOE])
    assert life(sim, 1) == 0
    decide(sim)
    assert unit(sim, "position", 1).tolist() == [5, 14]
    assert (unit(sim, "hit_points", 1), unit(sim, "shield", 1)) == (80, 80)
    assert unit(sim, "cooldown", 1) == 0


def test_a_unit_that_has_not_come_neither_fights_nor_is_a_target(tmp_path: Path):
    near = {"unit": "marine", "at": [8, 10], "arrives": [50, 50]}
    sim = late(tmp_path, [MARINE], [FOE, near])
    assert sim.legal["red"][0, 0, at_red(1)] == 0
    assert not sim.buffers.observations["red"][0, 0]["units"]["seen"].any()
    for _ in range(3):
        decide(sim, blue=ATTACK_MOVE)
    assert life(sim, 0) == 45


def test_the_decision_of_an_arrival_is_drawn_from_the_first_to_the_last(tmp_path: Path):
    sim = late(tmp_path, [MARINE, MARINE | {"arrives": [2, 4]}], [FOE], lanes=64)
    drawn = sim.states["arrives"][:, 1]
    assert sorted(set(drawn.tolist())) == [2, 3, 4]
    assert min((drawn == k).sum() for k in (2, 3, 4)) > 64 / 6


def test_a_draw_of_decision_0_is_the_start(tmp_path: Path):
    sim = late(tmp_path, [MARINE, MARINE | {"arrives": [0, 1]}], [FOE], lanes=32)
    drawn = sim.states["arrives"][:, 1]
    assert set(drawn.tolist()) == {ARRIVED, 1}
    np.testing.assert_array_equal(sim.alive[:, 1], drawn == ARRIVED)


def test_the_next_ones_come_early_when_their_side_has_nobody_on_the_field(tmp_path: Path):
    coming = [MARINE | {"arrives": [decision] * 2} for decision in (60, 50, 50)]
    sim = late(tmp_path, [MARINE, *coming], [FOE])
    lose(sim, 0)
    assert on_field(sim) == ["red_1", "red_2", "blue_0"], "red's slots are in the order of arrival"
    lose(sim, 1)
    assert on_field(sim) == ["red_2", "blue_0"]
    lose(sim, 2)
    assert on_field(sim) == ["red_3", "blue_0"]


def test_a_match_is_over_when_nobody_is_there_and_nobody_comes(tmp_path: Path):
    sim = late(tmp_path, [MARINE, MARINE | {"arrives": [50, 50]}], [FOE])
    lose(sim, 0)
    assert (sim.terminated[0], sim.info["winner"][0]) == (False, -1)
    lose(sim, 1)
    assert (sim.terminated[0], sim.info["winner"][0]) == (True, BLUE)


def test_a_side_that_has_lost_goes_on_as_long_as_fighters_come(tmp_path: Path):
    medivac = {"unit": "medivac", "at": [5, 10]}
    sim = late(tmp_path, [MARINE, medivac, MARINE | {"arrives": [4, 4]}], [FOE])
    lose(sim, 0)
    assert on_field(sim) == ["red_1", "blue_0"], "a healer is somebody: nobody comes early"
    assert not sim.terminated[0]
    for _ in range(3):
        decide(sim)
    assert on_field(sim) == ["red_1", "red_2", "blue_0"]


def test_healers_that_come_keep_no_match_alive(tmp_path: Path):
    sim = late(tmp_path, [MARINE, {"unit": "medivac", "at": [5, 10], "arrives": [50, 50]}], [FOE])
    lose(sim, 0)
    assert sim.terminated[0]
    assert sim.info["winner"][0] == BLUE


# --- waves ---


def test_a_wave_comes_when_blue_has_no_fighter_left_and_reds_part_comes_along(tmp_path: Path):
    sim = late(tmp_path, [MARINE, MARINE | {"wave": 1}], [FOE, FOE, FOE | {"wave": 1}, FOE | {"wave": 2}])
    assert on_field(sim) == ["red_0", "blue_0", "blue_1"]
    lose(sim, 2)
    assert on_field(sim) == ["red_0", "blue_1"], "one of blue is left"
    lose(sim, 3)
    assert on_field(sim) == ["red_0", "red_1", "blue_2"]
    lose(sim, 4)
    assert on_field(sim) == ["red_0", "red_1", "blue_3"]
    assert not sim.terminated[0]
    lose(sim, 5)
    assert sim.terminated[0]
    assert sim.info["winner"][0] == RED


def test_a_wave_waits_for_those_who_come_by_time(tmp_path: Path):
    medivac = {"unit": "medivac", "at": [27, 10]}
    sim = late(tmp_path, [MARINE], [FOE, medivac, FOE | {"arrives": [3, 3]}, FOE | {"wave": 1}])
    lose(sim, 1)
    assert on_field(sim) == ["red_0", "blue_1"], "the medivac, beside which nobody comes early"
    decide(sim)
    decide(sim)
    assert on_field(sim) == ["red_0", "blue_1", "blue_2"]
    lose(sim, 3)
    assert on_field(sim) == ["red_0", "blue_1", "blue_3"]


def test_a_wave_does_not_come_for_a_beaten_red(tmp_path: Path):
    sim = late(tmp_path, [MARINE, MARINE | {"wave": 1}], [FOE, FOE | {"wave": 1}])
    lose(sim, 0)
    assert sim.terminated[0]
    assert sim.info["winner"][0] == BLUE


def test_after_a_wave_without_fighters_of_blue_the_next_one_comes_along(tmp_path: Path):
    sim = late(tmp_path, [MARINE, MARINE | {"wave": 1}], [FOE, FOE | {"wave": 3}])
    lose(sim, 2)
    assert on_field(sim) == ["red_0", "red_1", "blue_1"]
    assert not sim.terminated[0]


# --- agents of a ParallelEnv ---


def small_env(folder: Path, **options: Any) -> Any:
    path = write_groups(folder, [MARINE, MARINE | {"at": [5, 14], "arrives": [2, 2]}], [FOE])
    env = make_parallel(ID, map=str(path), compiled=False, **options)
    env.reset(seed=0)
    return env


def test_a_late_agent_appears_in_the_decision_in_which_it_comes_with_all_that_an_agent_gets(tmp_path: Path):
    env = small_env(tmp_path)
    assert env.possible_agents == ["red_0", "red_1", "blue_0"]
    assert env.agents == ["red_0", "blue_0"]
    for expected in (["red_0", "blue_0"], ["red_0", "blue_0", "red_1"]):
        found = env.step(dict.fromkeys(env.agents, STOP))
        assert all(list(part) == expected for part in found)
    assert sorted(env.agents) == ["blue_0", "red_0", "red_1"]
    observations, rewards, terminated, truncated, infos = found
    own = observations["red_1"]["observation"]
    assert env.observation_space("red_1").contains(observations["red_1"])
    assert own[0] == 1.0, "all its hit points"
    assert (rewards["red_1"], terminated["red_1"], truncated["red_1"]) == (0.0, False, False)
    assert infos["red_1"]["acting"]
    assert observations["red_1"]["action_mask"][STOP]


def test_with_fixed_agents_the_absent_are_there_and_have_the_no_op_alone(tmp_path: Path):
    env = small_env(tmp_path, fixed_agents=True)
    seen, _ = env.reset(seed=0)
    assert np.flatnonzero(seen["red_1"]["action_mask"]).tolist() == [NOTHING]
    assert not seen["red_1"]["observation"].any()
    for _ in range(2):
        assert env.agents == ["red_0", "red_1", "blue_0"]
        seen = env.step({"red_0": STOP, "red_1": NOTHING, "blue_0": STOP})[0]
    assert seen["red_1"]["action_mask"][[NOTHING, STOP]].tolist() == [0, 1], "it has come"


@pytest.mark.check
@compiles
@pytest.mark.filterwarnings("ignore:No agents present but not all possible_agents")  # some names are never used
@pytest.mark.parametrize("name", ["Waves", "Late", "Turncoats"])
def test_pettingzoo_accepts_agents_that_come_and_go(name: str):
    id = f"palaestra/SkirmishUnshaped-{name}-v0"
    parallel_api_test(make_parallel(id), num_cycles=200)
    parallel_seed_test(lambda: make_parallel(id), num_cycles=60)


# --- who changes sides ---


RED_TWO: Units = [("zealot", 5, 10), ("zealot", 5, 14)]
BLUE_TWO: Units = [("marine", 27, 10), ("marine", 27, 14)]


def turn(folder: Path, red: Units = RED_TWO, blue: Units = BLUE_TWO, changes: int = 1, **more: Any) -> Any:
    """A match in which the next unit changes sides at the end of the first decision."""
    sim = start(games.turncoats(write_map(folder, red, blue), changes=changes), **more)
    sim.states["next_change"] = 1
    return sim


def turned(sim: Any) -> tuple[int, int]:
    """The slot that a unit has left, and the one in which it continues."""
    before = np.flatnonzero(sim.alive[0])
    decide(sim)
    after = np.flatnonzero(sim.alive[0])
    (left,), (entered,) = np.setdiff1d(before, after), np.setdiff1d(after, before)
    return int(left), int(entered)


def test_a_turncoat_leaves_its_slot_and_continues_in_a_free_one_of_the_other_side(tmp_path: Path):
    sim = turn(tmp_path)
    assert list(sim.game.agents) == ["red_0", "red_1", "red_2", "blue_0", "blue_1", "blue_2"]
    left, entered = turned(sim)
    assert (left, entered) in ((0, 5), (1, 5), (3, 2), (4, 2))
    assert sim.states["team"][0, left] != sim.states["team"][0, entered]
    assert np.flatnonzero(sim.agent_terminated[0]).tolist() == [left]


def test_a_turncoat_keeps_kind_place_life_and_cooldown_and_loses_its_order(tmp_path: Path):
    sim = turn(tmp_path)
    kept = dict(hit_points=30.0, shield=3.0, cooldown=20.0, boosted=12.0, pause=15.0, calm=5, facing=4)
    for slot in (0, 1, 3, 4):
        put(sim, slot, **kept)
    places = sim.states["position"][0].copy()
    kinds = sim.states["kind"][0].copy()
    left, entered = turned(sim)
    assert unit(sim, "kind", entered) == kinds[left]
    assert unit(sim, "position", entered).tolist() == places[left].tolist()
    found = {name: float(unit(sim, name, entered)) for name in kept}
    loops = 8.0
    after = dict(cooldown=12.0, boosted=12.0 - loops, pause=15.0 - loops, calm=5 + loops)
    assert found == {**kept, **after}
    assert (unit(sim, "order", entered), unit(sim, "target", entered)) == (STOP, NOBODY)
    assert life(sim, left) == 0


def test_a_turncoat_has_not_died_and_is_told_in_the_info(tmp_path: Path):
    sim = turn(tmp_path)
    left, _ = turned(sim)
    team = int(sim.states["team"][0, left])
    assert sim.info["changed"][0].tolist() == [team == RED, team == BLUE]
    assert sim.info["dead"][0].tolist() == [0, 0]
    assert sim.rewards[0, 0] == 0


def test_no_side_gives_its_last_fighter(tmp_path: Path):
    lonely: Units = [("marine", 5, 10), ("medivac", 5, 14)]
    for seed in range(4):
        left, entered = turned(turn(tmp_path, lonely, BLUE_TWO, seed=seed))
        assert left in (3, 4)
        assert entered == 2, "a healer does not count and does not change sides"
    nobody = turn(tmp_path, lonely, BLUE_TWO[:1])
    decide(nobody)
    assert nobody.info["changed"][0].tolist() == [0, 0]
    assert nobody.states["changes_left"][0] == 0, "the draw is over all the same"


def test_every_fighter_of_both_sides_may_change(tmp_path: Path):
    sim = turn(tmp_path, lanes=24)
    sim.actions["red"][...] = sim.actions["blue"][...] = STOP
    sim.step()
    left = np.argwhere(~sim.alive[:, [0, 1, 3, 4]])[:, 1]
    counts = np.bincount(left, minlength=4)
    assert counts.sum() == 24
    assert counts.min() >= 3


def test_a_slot_that_was_left_stays_empty(tmp_path: Path):
    sim = turn(tmp_path, changes=4)
    assert (sim.states["arrives"][0, : len(sim.game.agents)] == NEVER).sum() == 8
    gone: list[int] = []
    for _ in range(4):
        sim.states["next_change"] = sim.states["steps"] + 1
        left, entered = turned(sim)
        assert entered not in gone
        gone.append(left)
    assert len(set(gone)) == 4
    sim.states["next_change"] = sim.states["steps"] + 1
    before = on_field(sim)
    decide(sim)
    assert on_field(sim) == before, "no more than four"


def test_changes_follow_each_other_after_8_to_20_decisions(tmp_path: Path):
    sim = start(games.turncoats(write_map(tmp_path, [("zealot", 5, 10)], BLUE_TWO[:1]), changes=2), lanes=50)
    assert (sim.states["next_change"].min(), sim.states["next_change"].max()) == (8, 20)
    sim = turn(tmp_path, [("zealot", 5, 10)], BLUE_TWO[:1], changes=2, lanes=12)
    sim.actions["red"][...] = sim.actions["blue"][...] = STOP
    sim.step()
    assert 1 + 8 <= sim.states["next_change"].min() < 1 + 12
    assert 1 + 16 < sim.states["next_change"].max() <= 1 + 20


def test_a_turncoat_agent_ends_under_its_old_name_and_appears_under_a_new_one(tmp_path: Path):
    env = make_parallel(TURNCOATS, map=str(write_map(tmp_path, RED_TWO, BLUE_TWO)), changes=1, compiled=False)
    env.reset(seed=0)
    env.sim.states["next_change"] = 1
    before = set(env.agents)
    seen, rewards, terminated, truncated, _ = env.step(dict.fromkeys(env.agents, STOP))
    (new,), (old,) = set(env.agents) - before, before - set(env.agents)
    assert {agent for agent, flag in terminated.items() if flag} == {old}
    assert not any(truncated.values())
    assert {old, new} <= set(seen) & set(rewards)
    assert old.split("_")[0] != new.split("_")[0]
