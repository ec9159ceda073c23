"""Combat: what attacks do to armour, shields and hit points, whom they reach, healing, recovery, splashes, deaths.

All numbers are worked out from the table of units: a decision has 8 loops, a second 16.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from skirmish.battles import at_blue, at_red, decide, fight, life, put, unit

from palaestra.games.skirmish.battle import BLUE, RED
from palaestra.games.skirmish.combat import NOBODY
from palaestra.games.skirmish.orders import ATTACK_MOVE, STOP

pytestmark = pytest.mark.jitless

# --- one attack ---


@pytest.mark.parametrize(
    ("attacker", "target", "lost"),
    [
        ("marine", "marine", 6),
        ("marine", "marauder", 6 - 1),
        ("marauder", "marine", 10),
        ("marauder", "marauder", 10 + 10 - 1),
        ("zealot", "marauder", 2 * (8 - 1)),
        ("zealot", "spine_crawler", 2 * (8 - 2)),
        ("zergling", "spine_crawler", 5 - 2),
        ("zealot", "zealot", 2 * 8),
        ("stalker", "zealot", 13),
        ("stalker", "stalker", 13 + 5),
        ("stalker", "medivac", 13 + 5 - 1),
        ("hydralisk", "marauder", 12 - 1),
        ("spine_crawler", "marauder", 25 + 5 - 1),
        ("colossus", "marine", 2 * (10 + 5)),
        ("colossus", "marauder", 2 * (10 - 1)),
        ("immortal", "stalker", 20 + 30),
        ("baneling", "marine", 20 + 15),
        ("baneling", "marauder", 20 - 1),
    ],
)
def test_an_attack_takes_damage_and_bonus_less_armour_of_each_hit(
    tmp_path: Path, attacker: str, target: str, lost: float
):
    sim = fight(tmp_path, [(attacker, 10, 10)], [(target, 10, 11)])
    before = life(sim, 1)
    decide(sim, at_red(0))
    regenerated = 8 * 0.2734 / 16 if target == "spine_crawler" else 0.0
    assert before - life(sim, 1) == pytest.approx(lost - regenerated, abs=1e-9)
    assert sim.info["damage"][0] == lost


@pytest.mark.parametrize(
    ("shield", "left_shield", "left_hit_points"),
    [
        (50, 50 - 16, 100),
        (16, 0, 100),
        (12, 0, 100 - (4 - 1)),  # the second hit: 4 of 8 come through
        (8, 0, 100 - (8 - 1)),
        (5, 0, 100 - (3 - 1) - (8 - 1)),
        (0, 0, 100 - 7 - 7),
        (15.5, 0, 100 - 0.5),  # half a point comes through, armour 1: the least damage
    ],
)
def test_a_shield_is_hit_first_and_what_comes_through_is_lessened_by_armour(
    tmp_path: Path, shield: float, left_shield: float, left_hit_points: float
):
    sim = fight(tmp_path, [("zealot", 10, 10)], [("zealot", 11, 10)])
    put(sim, 1, shield=shield)
    decide(sim, at_red(0))
    assert (unit(sim, "shield", 1), unit(sim, "hit_points", 1)) == (left_shield, left_hit_points)


def test_damage_that_is_paid_is_what_the_target_had_left(tmp_path: Path):
    sim = fight(tmp_path, [("marauder", 10, 10)], [("marauder", 15, 10), ("marine", 25, 10)])
    put(sim, 1, hit_points=7.0)
    decide(sim, at_red(0))
    assert not unit(sim, "alive", 1)
    assert sim.info["damage"][0] == 7
    assert sim.info["dead"][0].tolist() == [0, 1]


# --- time between attacks ---


@pytest.mark.check
def test_the_next_attack_follows_after_the_cooldown_and_minus_1_to_2_loops(tmp_path: Path):
    sim = fight(tmp_path, [("marine", 10, 9 + k) for k in range(5)], [("marauder", 14, 11)])
    added: list[float] = []
    for _ in range(40):
        sim.states["cooldown"], sim.states["hit_points"][0, 5] = 0.0, 125.0
        decide(sim, at_red(0))
        added += [
            unit(sim, "cooldown", slot) + 8 - 13.7734375 for slot in range(5)
        ]  # 0.86083984375 s; 8 loops are over
    assert sorted(set(added)) == [-1, 0, 1, 2]
    assert all(30 <= added.count(loops) <= 70 for loops in (-1, 0, 1, 2))  # of 200, uniform: 50 each


def test_a_unit_attacks_only_when_its_cooldown_is_over(tmp_path: Path):
    sim = fight(tmp_path, [("marine", 10, 10)], [("marauder", 14, 10)])
    put(sim, 0, cooldown=8.0)
    decide(sim, at_red(0))
    assert (unit(sim, "hit_points", 1), unit(sim, "cooldown", 0)) == (125, 0)
    decide(sim, at_red(0))
    assert unit(sim, "hit_points", 1) == 120
    put(sim, 0, cooldown=6.5)  # 0 or less after 7 loops, in time for the last one
    decide(sim, at_red(0))
    assert unit(sim, "hit_points", 1) == 115


@pytest.mark.check
def test_a_zealot_attacks_every_19_to_22_loops(tmp_path: Path):
    sim = fight(tmp_path, [("zealot", 10, 10)], [("spine_crawler", 10, 11.6)])
    attacks = 0
    for _ in range(100):
        put(sim, 1, hit_points=300.0)
        decide(sim, at_red(0))
        attacks += unit(sim, "hit_points", 1) < 295
    assert 800 / 22 - 1 <= attacks <= 800 / 19 + 1  # 19.2 loops, -1 to 2, up to the next whole loop
    assert attacks == pytest.approx(800 / 20.5, abs=2)


# --- ranges ---


@pytest.mark.parametrize(
    ("attacker", "target", "reach"),
    [
        ("marine", "marine", 5 + 0.375 + 0.375),
        ("marine", "marauder", 5 + 0.375 + 0.5625),
        ("zergling", "spine_crawler", 0.10009765625 + 0.375 + 1.125),
        ("baneling", "marauder", 0.25 + 0.375 + 0.5625),
    ],
)
def test_ranges_go_from_edge_to_edge(tmp_path: Path, attacker: str, target: str, reach: float):
    near = fight(tmp_path, [(attacker, 10, 10)], [(target, 10 + reach, 10)])
    far = fight(tmp_path, [(attacker, 10, 10)], [(target, 10 + reach + 1e-6, 10)])
    before = life(near, 1)
    for sim in (near, far):
        decide(sim, at_red(0))
        assert life(sim, 1) < before
    assert unit(near, "position", 0).tolist() == [10, 10]
    assert unit(far, "position", 0)[0] > 10.05  # it had to go nearer first


def test_an_attacker_goes_to_its_target_until_it_is_in_range(tmp_path: Path):
    sim = fight(tmp_path, [("zealot", 10, 10)], [("marauder", 14, 10)])
    decide(sim, at_red(0))
    assert unit(sim, "position", 0) == pytest.approx([11.125, 10])
    assert unit(sim, "hit_points", 1) == 125


# --- planes ---


def test_a_zealot_may_not_attack_a_medivac_and_a_stalker_may(tmp_path: Path):
    sim = fight(tmp_path, [("zealot", 10, 10), ("stalker", 10, 13)], [("medivac", 10, 11), ("marine", 10, 12)])
    assert sim.legal["red"][0, :, at_red(0)].tolist() == [0, 1]
    assert sim.legal["red"][0, :, at_red(1)].tolist() == [1, 1]


def test_blue_zealots_pass_a_medivac_by_and_blue_stalkers_do_not(tmp_path: Path):
    order = {"kind": "attack_move", "points": [[20, 10]]}
    for kind, hits in (("zealot", False), ("stalker", True)):
        sim = fight(tmp_path, [("medivac", 11, 10), ("marine", 2, 18)], [(kind, 10, 10)], order=order)
        decide(sim, STOP, ATTACK_MOVE)
        assert (unit(sim, "hit_points", 0) < 150) == hits
        assert (unit(sim, "position", 2)[0] > 10.5) != hits


@pytest.mark.parametrize(("attacker", "lost"), [("zealot", 2 * 8), ("stalker", 13 + 5)])
def test_a_colossus_is_hit_by_weapons_for_the_ground_and_for_the_air(tmp_path: Path, attacker: str, lost: float):
    sim = fight(tmp_path, [(attacker, 10, 10)], [("colossus", 10, 11.5)])
    decide(sim, at_red(0))
    assert unit(sim, "shield", 1) == 150 - lost


# --- who acts ---


def test_a_red_unit_never_fires_without_an_order(tmp_path: Path):
    sim = fight(tmp_path, [("marauder", 10, 10)], [("marine", 13, 10)])
    for _ in range(10):
        decide(sim, STOP, ATTACK_MOVE)
    assert unit(sim, "hit_points", 1) == 45
    assert unit(sim, "position", 0).tolist() == [10, 10]
    assert unit(sim, "hit_points", 0) < 125  # blue does fire by itself


def test_the_attackers_of_a_dead_target_are_idle_until_the_next_decision(tmp_path: Path):
    sim = fight(tmp_path, [("marine", 10, 10), ("marine", 9.75, 11)], [("marine", 15.5, 10), ("marine", 12, 10)])
    put(sim, 2, hit_points=6.0)
    decide(sim, at_red(0))
    assert not unit(sim, "alive", 2)
    assert [unit(sim, "order", slot) for slot in (0, 1)] == [STOP, STOP]
    assert [unit(sim, "target", slot) for slot in (0, 1)] == [NOBODY, NOBODY]
    gone = np.hypot(*(unit(sim, "position", 1) - (9.75, 11)))
    assert gone == pytest.approx(2.25 / 16, abs=1e-5)  # the loop of the death alone
    assert unit(sim, "hit_points", 3) == 45  # which the second marine could have shot at


@pytest.mark.check
def test_slots_beyond_the_agents_do_nothing(tmp_path: Path):
    sim = fight(tmp_path, [("marine", 3, 9 + k) for k in range(3)], [("marine", 29, 9 + k) for k in range(3)],
                order={"kind": "attack_move", "points": [[3, 10]]})  # fmt: skip
    assert sim.states["alive"].shape == (1, 22)  # memory for 10 + 12
    for _ in range(16):  # 1.125 cells each: 8 of 26 cells are left
        decide(sim, STOP, ATTACK_MOVE)
    assert sim.states["position"][0, 3:6, 0] == pytest.approx(29 - 16 * 1.125, abs=0.2)
    assert sim.states["hit_points"][0].tolist() == [45] * 6 + [0] * 16
    while not sim.terminated[0]:
        decide(sim, STOP, ATTACK_MOVE)
    assert sim.info["dead"][0].tolist() == [3, 0]
    for name in ("alive", "hit_points", "shield", "position", "cooldown", "order"):
        assert not sim.states[name][0, 6:].any(), name


# --- the hits of a loop fall together ---


def test_two_marines_that_shoot_at_each_other_in_one_loop_both_die_and_nobody_wins(tmp_path: Path):
    sim = fight(tmp_path, [("marine", 10, 10)], [("marine", 14, 10)])
    for slot in (0, 1):
        put(sim, slot, hit_points=6.0)
    decide(sim, at_red(0), at_blue(0))
    assert sim.info["dead"][0].tolist() == [1, 1]
    assert sim.terminated[0]
    assert sim.info["winner"][0] == -1
    assert sim.game.end_reason(sim.info["end_reason"][0]) == "wiped_out"


@pytest.mark.parametrize(("first", "winner"), [(0, RED), (1, BLUE)])
def test_who_shoots_a_loop_earlier_wins(tmp_path: Path, first: int, winner: int):
    sim = fight(tmp_path, [("marine", 10, 10)], [("marine", 14, 10)])
    put(sim, first, hit_points=6.0, cooldown=3.0)
    put(sim, 1 - first, hit_points=6.0, cooldown=4.0)
    decide(sim, at_red(0), at_blue(0))
    assert sim.info["winner"][0] == winner
    assert unit(sim, "hit_points", first) == 6


def test_a_side_whose_last_unit_is_a_medivac_has_lost(tmp_path: Path):
    sim = fight(tmp_path, [("marine", 10, 10)], [("marine", 14, 10), ("medivac", 16, 10)])
    put(sim, 1, hit_points=6.0)
    decide(sim, at_red(0))
    assert sim.terminated[0]
    assert sim.info["winner"][0] == RED
    assert unit(sim, "alive", 2)


# --- shields, regeneration ---


def test_a_shield_regenerates_10_s_after_the_last_damage_at_2_per_s(tmp_path: Path):
    sim = fight(tmp_path, [("marine", 10, 10)], [("stalker", 14, 10)])
    put(sim, 1, shield=40.0)
    decide(sim, at_red(0))  # hits in the first loop
    assert unit(sim, "shield", 1) == 34
    for _ in range(19):
        decide(sim)
    assert unit(sim, "calm", 1) == 160
    assert unit(sim, "shield", 1) == 34
    decide(sim)
    assert unit(sim, "shield", 1) == 35  # 8 loops of 2 / 16
    put(sim, 1, calm=156)
    decide(sim)
    assert unit(sim, "shield", 1) == 35.5  # 4 loops


def test_damage_to_hit_points_delays_the_shield_too(tmp_path: Path):
    sim = fight(tmp_path, [("marine", 10, 10)], [("stalker", 14, 10)])
    put(sim, 1, shield=0.0)
    decide(sim, at_red(0))
    assert unit(sim, "hit_points", 1) == 75
    assert (unit(sim, "shield", 1), unit(sim, "calm", 1)) == (0, 8)


def test_shields_and_hit_points_recover_to_their_most(tmp_path: Path):
    sim = fight(tmp_path, [("zergling", 10, 10)], [("stalker", 25, 10)])
    put(sim, 0, hit_points=20.0)
    put(sim, 1, hit_points=60.0, shield=79.5, calm=1000)
    decide(sim)
    assert unit(sim, "hit_points", 0) == pytest.approx(20 + 0.2734 / 2)  # half a second
    assert (unit(sim, "hit_points", 1), unit(sim, "shield", 1)) == (60, 80)
    put(sim, 0, hit_points=34.9)
    decide(sim)
    assert unit(sim, "hit_points", 0) == 35


# --- healing ---


def healing(folder: Path, hit_points: float = 20.0, energy: float = 50.0) -> Any:
    """A red medivac by a wounded marine, after a decision of healing."""
    sim = fight(folder, [("marine", 10, 10), ("medivac", 10, 12)], [("marine", 28, 10)])
    put(sim, 0, hit_points=hit_points)
    put(sim, 1, energy=energy)
    decide(sim, [STOP, at_red(0)])
    return sim


GAINED = 0.5625 / 2
"""Energy that a medivac gains in a decision."""


def test_a_medivac_heals_9_hit_points_per_second_for_1_energy_per_3(tmp_path: Path):
    sim = healing(tmp_path)
    assert unit(sim, "hit_points", 0) == 24.5
    assert unit(sim, "energy", 1) == pytest.approx(50 - 4.5 / 3 + GAINED)


def test_healing_stops_at_the_most(tmp_path: Path):
    sim = healing(tmp_path, hit_points=44.0)
    assert unit(sim, "hit_points", 0) == 45
    assert unit(sim, "energy", 1) == pytest.approx(50 - 1 / 3 + GAINED)


def test_without_energy_a_medivac_heals_only_what_it_gains(tmp_path: Path):
    sim = healing(tmp_path, energy=0.0)
    gain = 0.5625 / 16  # a loop's energy, spent in the next
    assert unit(sim, "hit_points", 0) == pytest.approx(20 + 7 * 3 * gain)
    assert unit(sim, "energy", 1) == pytest.approx(gain)


def test_energy_is_at_most_200(tmp_path: Path):
    sim = fight(tmp_path, [("marine", 10, 10), ("medivac", 10, 12)], [("marine", 28, 10)])
    put(sim, 1, energy=199.9)
    decide(sim)
    assert unit(sim, "energy", 1) == 200


def test_two_medivacs_heal_a_unit_twice_as_fast_and_no_further_than_its_most(tmp_path: Path):
    sim = fight(tmp_path, [("marine", 10, 10), ("medivac", 10, 12), ("medivac", 10, 8)], [("marine", 28, 10)])
    put(sim, 0, hit_points=20.0)
    decide(sim, [STOP, at_red(0), at_red(0)])
    assert unit(sim, "hit_points", 0) == 29
    put(sim, 0, hit_points=44.8)
    decide(sim, [STOP, at_red(0), at_red(0)])
    assert unit(sim, "hit_points", 0) == 45
    spent = 2 * (50 + 2 * GAINED) - unit(sim, "energy", 1) - unit(sim, "energy", 2)
    assert spent == pytest.approx(9 / 3 + 0.2 / 3)


def test_a_medivac_heals_biological_teammates_that_are_no_healers(tmp_path: Path):
    red = [("marine", 10, 10), ("medivac", 10, 12), ("medivac", 11, 10), ("stalker", 12, 10)]
    sim = fight(tmp_path, red, [("marine", 12, 12), ("medivac", 10, 13)])
    assert sim.legal["red"][0, 1, at_red(0) : at_red(4)].tolist() == [1, 0, 0, 0]


def test_healing_does_not_save_who_dies_in_the_same_loop(tmp_path: Path):
    sim = fight(tmp_path, [("marine", 10, 10), ("medivac", 10, 12)], [("marine", 14, 10)])
    put(sim, 0, hit_points=6.0)
    decide(sim, [STOP, at_red(0)], at_blue(0))
    assert not unit(sim, "alive", 0)


# --- splashes ---


def test_a_baneling_explodes_when_it_attacks_and_hits_every_opponent_in_its_circle_and_no_teammate(tmp_path: Path):
    edge = 2.2 + 0.375
    red = [("marine", 10, 10.9), ("marine", 10 + edge - 1e-6, 10), ("marine", 10 - edge - 1e-6, 10), ("medivac", 9, 10)]
    sim = fight(tmp_path, red, [("baneling", 10, 10), ("marine", 10, 9), ("baneling", 10.9, 9)])
    decide(sim, STOP, [at_blue(0), STOP, STOP])
    assert [unit(sim, "hit_points", slot) for slot in range(4)] == [45 - 35, 45 - 35, 45, 150]  # it does not hit fliers
    assert [unit(sim, "alive", slot) for slot in range(4, 7)] == [0, 1, 1]
    assert [unit(sim, "hit_points", slot) for slot in range(5, 7)] == [45, 30]
    assert sim.info["dead"][0].tolist() == [0, 1]


def test_a_baneling_explodes_when_it_is_killed(tmp_path: Path):
    sim = fight(tmp_path, [("marine", 5, 10), ("marauder", 10, 11)], [("baneling", 10, 10), ("marine", 10, 9)])
    put(sim, 2, hit_points=6.0)
    decide(sim, [at_red(0), STOP])
    assert not unit(sim, "alive", 2)
    assert [unit(sim, "hit_points", slot) for slot in (0, 1, 3)] == [45, 125 - 19, 45]


def test_a_baneling_that_is_killed_as_it_attacks_explodes_once(tmp_path: Path):
    sim = fight(tmp_path, [("marine", 5, 10), ("marauder", 10, 11)], [("baneling", 10, 10), ("marine", 20, 9)])
    put(sim, 2, hit_points=6.0)
    decide(sim, [at_red(0), STOP], [at_blue(1), STOP])
    assert unit(sim, "hit_points", 1) == 125 - 19


def test_killed_banelings_set_off_each_other(tmp_path: Path):
    red = [("marine", 5, 10), ("baneling", 11.5, 10)]
    sim = fight(tmp_path, red, [("baneling", 10, 10), ("marauder", 14, 10), ("marauder", 17, 10)])
    put(sim, 1, hit_points=20.0)
    put(sim, 2, hit_points=6.0)
    decide(sim, [at_red(0), STOP])
    assert [unit(sim, "alive", slot) for slot in range(5)] == [1, 0, 0, 1, 1]
    assert [unit(sim, "hit_points", slot) for slot in (0, 3, 4)] == [45, 125 - 19, 125]


@pytest.mark.parametrize(("along_x", "along_y"), [(1.0, 0.0), (0.0, 1.0), (0.6, 0.8), (-0.8, 0.6)])
def test_the_line_of_a_colossus_lies_across_the_line_of_fire(tmp_path: Path, along_x: float, along_y: float):
    wide, deep = 1.4 + 0.375, 0.15 + 0.375  # half of the line, and the radius of a marine
    offsets = [(0, 0), (0, wide - 1e-6), (0, -wide + 1e-6), (0, wide + 1e-6), (deep - 1e-6, 1), (deep + 1e-6, 1),
               (-deep + 1e-6, -1), (-deep - 1e-6, -1), (-3, 0), (3, 0)]  # fmt: skip
    points = [(16 + (5 + a) * along_x - b * along_y, 10 + (5 + a) * along_y + b * along_x) for a, b in offsets]
    red = [("colossus", 16, 10), ("marine", 16 + 6 * along_x, 10 + 6 * along_y)]
    sim = fight(tmp_path, red, [("marine", x, y) for x, y in points])
    decide(sim, [at_red(0), STOP])
    left = [unit(sim, "hit_points", 2 + k) for k in range(len(points))]
    assert left == [45 - 2 * 15 if hit else 45 for hit in (1, 1, 1, 0, 1, 0, 1, 0, 0, 0)]
    assert unit(sim, "hit_points", 1) == 45


def test_a_baneling_of_blue_that_explodes_is_paid_like_one_that_is_killed(tmp_path: Path):
    sim = fight(tmp_path, [("marauder", 10, 10)], [("baneling", 10.9, 10), ("zealot", 30, 10)])
    decide(sim, STOP, [at_blue(0), STOP])
    assert sim.info["dead"][0].tolist() == [0, 1]
    assert sim.info["damage"][0] == 30.0
    most = 30 + 150 + 2 * 10 + 200
    assert sim.rewards[0, 0] == pytest.approx(20 / most * (30 + 10))
