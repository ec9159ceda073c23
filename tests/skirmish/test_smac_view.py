"""SMAC's observations, state, masks and rewards, number by number.

Expected numbers are worked out by hand from the formulas of github.com/oxwhirl/smac (MIT, commit d6aab33,
smac/env/starcraft2/starcraft2.py): distances and offsets over the sight of 9 cells, positions from the middle of the
map (16, 16) over its 32 cells, cooldowns over unit_max_cooldown.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from skirmish.battles import SMAC, at_red, decide, life, put, write_map

from palaestra.core.run.kernel import KernelSimulation
from palaestra.games.skirmish import battle_records, games, maps
from palaestra.games.skirmish.orders import EAST, FIRST, NORTH, NOTHING, SOUTH, STOP, WEST
from palaestra.games.skirmish.smac_view import layout_of, sizes

MAPS = {
    "3m": ("T", "T", 0, 30, 48, 9),
    "8m": ("T", "T", 0, 80, 168, 14),
    "25m": ("T", "T", 0, 250, 950, 31),
    "5m_vs_6m": ("T", "T", 0, 55, 98, 12),
    "8m_vs_9m": ("T", "T", 0, 85, 179, 15),
    "10m_vs_11m": ("T", "T", 0, 105, 243, 17),
    "27m_vs_30m": ("T", "T", 0, 285, 1170, 36),
    "MMM": ("T", "T", 3, 160, 290, 16),
    "MMM2": ("T", "T", 3, 176, 322, 18),
    "2s3z": ("P", "P", 2, 80, 120, 11),
    "3s5z": ("P", "P", 2, 128, 216, 14),
    "3s5z_vs_3s6z": ("P", "P", 2, 136, 230, 15),
    "3s_vs_3z": ("P", "P", 0, 36, 54, 9),
    "3s_vs_4z": ("P", "P", 0, 42, 61, 10),
    "3s_vs_5z": ("P", "P", 0, 48, 68, 11),
    "1c3s5z": ("P", "P", 3, 162, 270, 15),
    "2m_vs_1z": ("T", "P", 0, 16, 26, 7),
    "corridor": ("P", "Z", 0, 156, 282, 30),
    "6h_vs_8z": ("Z", "P", 0, 78, 140, 14),
    "2s_vs_1sc": ("P", "Z", 0, 17, 27, 7),
    "so_many_baneling": ("P", "Z", 0, 202, 397, 38),
    "bane_vs_bane": ("Z", "Z", 2, 336, 984, 30),
    "2c_vs_64zg": ("P", "Z", 0, 332, 342, 70),
}
"""a_race, b_race and unit_type_bits of smac_maps.py; what get_obs_size, get_state_size and get_total_actions return."""


def start(map: str | Path, **options: Any) -> Any:
    game = games.battle(map, smac_rules=True, **options).represented("smac")
    sim = KernelSimulation(game, 1, compiled=False, autoreset_mode="off")
    sim.reset(seed=0)
    return sim


def leave(sim: Any, units: dict[int, tuple[float, float, float]], **numbers: dict[int, float]) -> None:
    """Leaves some units alone on the map: x, y and hit points of each slot, then other numbers of slots by name."""
    s = sim.states[0]
    s["alive"][:] = 0
    for slot, (x, y, hit_points) in units.items():
        s["alive"][slot] = 1
        s["position"][slot] = x, y
        s["hit_points"][slot] = hit_points
    for name, of_slot in numbers.items():
        for slot, number in of_slot.items():
            s[name][slot] = number
    sim.refresh()


def vector(size: int, runs: dict[int, list[float]]) -> np.ndarray:
    """Zeros but for the runs of numbers that begin at some places."""
    out = np.zeros(size)
    for at, numbers in runs.items():
        out[at : at + len(numbers)] = numbers
    return out


def seen(sim: Any, agent: int) -> np.ndarray:
    return sim.buffers.observations["red"][0, agent]["obs"]


def mask(sim: Any, agent: int) -> list[int]:
    return np.flatnonzero(sim.legal["red"][0, agent]).tolist()


def same(got: np.ndarray, wanted: np.ndarray) -> None:
    np.testing.assert_array_equal(got, wanted.astype(np.float32))


@pytest.mark.parametrize("map", maps.names())
def test_vectors_have_the_sizes_of_smac(map: str):
    ally, enemy, types, *wanted = MAPS[map]
    layout = layout_of(maps.load(map))[0]
    assert (layout["shield_of_red"], layout["shield_of_blue"]) == (ally == "P", enemy == "P")
    assert layout["types"] == types
    assert sizes(maps.load(map)) == tuple(wanted)


def test_the_game_shows_vectors_of_these_sizes():
    sim = start("MMM2")
    assert seen(sim, 0).shape == (176,)
    assert sim.state().shape == (1, 322)
    assert sim.legal["red"].shape == (1, 10, 18)


@pytest.mark.parametrize(
    ("map", "kinds"),
    [
        ("MMM", ["marauder"] * 2 + ["marine"] * 7 + ["medivac"]),
        ("2s3z", ["stalker"] * 2 + ["zealot"] * 3),
        ("1c3s5z", ["colossus"] + ["stalker"] * 3 + ["zealot"] * 5),
        ("bane_vs_bane", ["baneling"] * 4 + ["zergling"] * 20),
    ],
)
def test_agents_come_by_kind_then_by_x_then_by_y(map: str, kinds: list[str]):
    world, n = games.battle(map).world, len(kinds)
    assert [SMAC.unit_names[k] for k in world.openings[0]["kind"][:n]] == kinds
    places = world.openings[0][["x", "y"]][:n].tolist()
    keys = [(kinds.index(kind), x, y) for kind, (x, y) in zip(kinds, places, strict=True)]
    assert keys == sorted(keys)


def mmm() -> Any:
    """Marauder 0, marine 2 and medivac 9 of red; marine 0, marine 1, marauder 7 and medivac 9 of blue."""
    sim = start("MMM")
    red = {0: (16, 16, 100), 2: (12, 13, 9), 9: (13, 20, 75)}
    blue = {10: (19, 20, 36), 11: (25, 16, 45), 17: (22, 16, 50), 19: (16, 24, 150)}
    leave(sim, {**red, **blue}, cooldown={0: 10, 2: 3}, energy={9: 50})
    return sim


def test_a_marauder_of_mmm_sees_what_it_sees_in_smac():
    # 4 moves, 10 opponents and 9 teammates of 8 numbers, 4 of its own; kinds: marauder, marine, medivac
    wanted = {
        0: [1, 1, 1, 1],
        4 + 0 * 8: [1, 5 / 9, 3 / 9, 4 / 9, 36 / 45, 0, 1, 0],  # 3 east, 4 north: distance 5
        4 + 7 * 8: [1, 6 / 9, 6 / 9, 0, 50 / 125, 1, 0, 0],  # at 6 cells: just in reach; marine 1 at 9: out of sight
        4 + 9 * 8: [0, 8 / 9, 0, 8 / 9, 150 / 150, 0, 0, 1],
        84 + 1 * 8: [1, 5 / 9, -4 / 9, -3 / 9, 9 / 45, 0, 1, 0],  # agent 2: the second of the others
        84 + 8 * 8: [1, 5 / 9, -3 / 9, 4 / 9, 75 / 150, 0, 0, 1],
        156: [100 / 125, 1, 0, 0],
    }
    same(seen(mmm(), 0), vector(160, wanted))


def test_a_medivac_reads_in_the_rows_of_opponents_whom_it_may_heal():
    # opponent 0 stands at distance 6, teammate 0 may be healed: 1. Opponent 9 is near, teammate 9 is itself: 0.
    wanted = {
        0: [1, 1, 1, 1],
        4 + 0 * 8: [1, 6 / 9, 6 / 9, 0, 36 / 45, 0, 1, 0],
        4 + 9 * 8: [0, 5 / 9, 3 / 9, 4 / 9, 150 / 150, 0, 0, 1],
        84 + 0 * 8: [1, 5 / 9, 3 / 9, -4 / 9, 100 / 125, 1, 0, 0],
        84 + 2 * 8: [1, math.sqrt(1 + 49) / 9, -1 / 9, -7 / 9, 9 / 45, 0, 1, 0],
        156: [75 / 150, 0, 0, 1],
    }
    same(seen(mmm(), 9), vector(160, wanted))


def test_the_state_of_mmm_is_the_state_of_smac():
    # 10 allies of 7 numbers: hit points, cooldown or energy, x, y, kind; 10 enemies of 6; 10 last actions of 16
    wanted = {
        0 * 7: [100 / 125, 10 / 25, 0, 0, 1, 0, 0],
        2 * 7: [9 / 45, 3 / 15, -4 / 32, -3 / 32, 0, 1, 0],
        9 * 7: [75 / 150, 50 / 200, -3 / 32, 4 / 32, 0, 0, 1],
        70 + 0 * 6: [36 / 45, 3 / 32, 4 / 32, 0, 1, 0],
        70 + 1 * 6: [45 / 45, 9 / 32, 0, 0, 1, 0],
        70 + 7 * 6: [50 / 125, 6 / 32, 0, 1, 0, 0],
        70 + 9 * 6: [150 / 150, 0, 8 / 32, 0, 0, 1],
    }
    same(mmm().state()[0], vector(290, wanted))


def test_the_masks_of_mmm_are_the_masks_of_smac():
    sim, moves = mmm(), [STOP, NORTH, SOUTH, EAST, WEST]
    assert mask(sim, 0) == [*moves, at_red(0), at_red(7)]
    assert mask(sim, 1) == [NOTHING]  # dead
    assert mask(sim, 2) == moves
    assert mask(sim, 9) == [*moves, at_red(0)]  # the marine is too far, the others are dead or itself


def test_a_stalker_of_2s3z_sees_the_kinds_of_opponents_exchanged():
    # 4 moves, 5 opponents and 4 teammates of 8 numbers: 5, the shield, stalker and zealot (opponents: zealot, stalker)
    sim = start("2s3z")
    leave(
        sim,
        {0: (16, 16, 40), 2: (16, 13, 25), 5: (20, 19, 80), 7: (8, 16, 50)},
        shield={0: 20, 2: 10, 5: 40, 7: 50},
        cooldown={0: 7, 2: 11},
    )
    wanted = {
        0: [1, 1, 1, 1],
        4 + 0 * 8: [1, 5 / 9, 4 / 9, 3 / 9, 80 / 80, 40 / 80, 0, 1],
        4 + 2 * 8: [0, 8 / 9, -8 / 9, 0, 50 / 100, 50 / 50, 1, 0],
        44 + 1 * 8: [1, 3 / 9, 0, -3 / 9, 25 / 100, 10 / 50, 0, 1],
        76: [40 / 80, 20 / 80, 1, 0],
    }
    same(seen(sim, 0), vector(80, wanted))
    assert mask(sim, 0) == [STOP, NORTH, SOUTH, EAST, WEST, at_red(0)]
    # 5 allies of 7 numbers, 5 enemies of 6, 5 last actions of 11
    wanted = {
        0 * 7: [40 / 80, 7 / 35, 0, 0, 20 / 80, 1, 0],
        2 * 7: [25 / 100, 11 / 22, 0, -3 / 32, 10 / 50, 0, 1],
        35 + 0 * 6: [80 / 80, 4 / 32, 3 / 32, 40 / 80, 0, 1],
        35 + 2 * 6: [50 / 100, -8 / 32, 0, 50 / 50, 1, 0],
    }
    same(sim.state()[0], vector(120, wanted))


def test_a_stalker_of_3s_vs_5z_sees_no_kinds():
    # 4 moves, 5 opponents and 2 teammates of 6 numbers; the eastern edge of the map is half a cell away
    sim = start("3s_vs_5z")
    leave(sim, {0: (31.5, 16, 80), 2: (28.5, 12, 20), 7: (25.5, 16, 10)}, shield={0: 0, 2: 80, 7: 25}, cooldown={2: 28})
    wanted = {
        0: [1, 1, 0, 1],
        4 + 4 * 6: [1, 6 / 9, -6 / 9, 0, 10 / 100, 25 / 50],
        34 + 1 * 6: [1, 5 / 9, -3 / 9, -4 / 9, 20 / 80, 80 / 80],
        46: [80 / 80, 0],
    }
    same(seen(sim, 0), vector(48, wanted))
    assert mask(sim, 0) == [STOP, NORTH, SOUTH, WEST, at_red(4)]
    # 3 allies of 5 numbers, 5 enemies of 4, 3 last actions of 11
    wanted = {
        0 * 5: [80 / 80, 0, 15.5 / 32, 0, 0],
        2 * 5: [20 / 80, 28 / 35, 12.5 / 32, -4 / 32, 80 / 80],
        15 + 4 * 4: [10 / 100, 9.5 / 32, 0, 25 / 50],
    }
    same(sim.state()[0], vector(68, wanted))


def test_only_the_side_with_shields_has_their_column():
    # 2m_vs_1z: 4 moves, 1 opponent of 6 numbers, 1 teammate of 5, 1 of its own
    sim = start("2m_vs_1z")
    leave(sim, {0: (16, 16, 9), 1: (16, 13, 18), 2: (20, 19, 75)}, shield={2: 10}, cooldown={0: 6})
    wanted = {0: [1, 1, 1, 1], 4: [1, 5 / 9, 4 / 9, 3 / 9, 75 / 100, 10 / 50], 10: [1, 3 / 9, 0, -3 / 9, 18 / 45]}
    same(seen(sim, 0), vector(16, {**wanted, 15: [9 / 45]}))
    # 2 allies of 4 numbers, 1 enemy of 4, 2 last actions of 7
    wanted = {0: [9 / 45, 6 / 15, 0, 0], 4: [18 / 45, 0, 0, -3 / 32], 8: [75 / 100, 4 / 32, 3 / 32, 10 / 50]}
    same(sim.state()[0], vector(26, wanted))


def test_a_baneling_of_bane_vs_bane_sees_the_same_columns_on_both_sides():
    # 4 moves, 24 opponents and 23 teammates of 7 numbers; kinds: baneling, zergling
    sim = start("bane_vs_bane")
    leave(sim, {0: (16, 16, 15), 4: (16, 19, 7), 24: (20, 13, 35), 44: (10, 16, 30)}, cooldown={4: 5.5})
    wanted = {
        0: [1, 1, 1, 1],
        4 + 0 * 7: [1, 5 / 9, 4 / 9, -3 / 9, 35 / 35, 0, 1],
        4 + 20 * 7: [1, 6 / 9, -6 / 9, 0, 30 / 30, 1, 0],
        172 + 3 * 7: [1, 3 / 9, 0, 3 / 9, 7 / 35, 0, 1],
        333: [15 / 30, 1, 0],
    }
    same(seen(sim, 0), vector(336, wanted))
    assert mask(sim, 0) == [STOP, NORTH, SOUTH, EAST, WEST, at_red(0), at_red(20)]
    # 24 allies of 6 numbers, 24 enemies of 5, 24 last actions of 30
    wanted = {
        0 * 6: [15 / 30, 0, 0, 0, 1, 0],
        4 * 6: [7 / 35, 5.5 / 11, 0, 3 / 32, 0, 1],
        144 + 0 * 5: [35 / 35, 4 / 32, -3 / 32, 0, 1],
        144 + 20 * 5: [30 / 30, -6 / 32, 0, 1, 0],
    }
    same(sim.state()[0], vector(984, wanted))


def test_the_dead_see_zeros():
    sim = start("3m")
    leave(sim, {0: (16, 16, 45), 3: (18, 16, 45)})
    assert not seen(sim, 1).any()


def test_the_state_holds_the_last_actions_and_the_dead_have_action_0():
    sim = start("3m")
    leave(sim, {0: (9, 16, 45), 2: (10, 16, 45), 3: (25, 16, 45)})
    actions = sim.state()[0, 21:].reshape(3, 9)  # after 3 allies of 4 and 3 enemies of 3 numbers
    assert not actions.any()
    decide(sim, red=[WEST, NOTHING, STOP])
    actions = sim.state()[0, 21:].reshape(3, 9)
    assert actions.argmax(axis=1).tolist() == [WEST, NOTHING, STOP]
    assert actions.sum() == 3


def test_a_flier_may_only_be_ordered_over_ground():
    sim = start("MMM")
    top = float(np.flatnonzero(maps.load("MMM").walkable[:, 16])[-1])
    leave(sim, {0: (16, top + 0.5, 125), 9: (16, top + 0.5, 150), 10: (20, 16, 45)})
    assert NORTH not in mask(sim, 0)
    assert NORTH not in mask(sim, 9)


def test_a_move_over_the_western_edge_is_in_the_mask_as_cells_are_rounded_towards_zero():
    sim = start("3s_vs_5z")
    leave(sim, {0: (0.5, 16, 80), 1: (31.5, 16, 80), 3: (20, 16, 100)})
    assert WEST in mask(sim, 0)  # 0.5 - 1 = -0.5 is rounded to cell 0
    assert EAST not in mask(sim, 1)  # 31.5 + 1 = 32.5: cell 32 is outside


def test_an_order_that_the_weapon_cannot_carry_out_changes_nothing():
    sim = start("MMM")
    leave(sim, {0: (16, 16, 125), 2: (12, 16, 45), 10: (30, 16, 45), 19: (16, 20, 150)})
    idle = [NOTHING] * 10
    decide(sim, red=[EAST, NOTHING, STOP, *idle[3:]])
    at = sim.states[0]["position"][0].copy()
    assert at_red(9) in mask(sim, 0)
    decide(sim, red=[at_red(9), NOTHING, STOP, *idle[3:]])  # a medivac flies, a marauder shoots at the ground
    assert sim.states[0]["position"][0, 0] == pytest.approx(18.0)  # the way of 2 cells of the order before
    assert at[0] < 17.5
    assert life(sim, 19) == 150


def two_sides(tmp_path: Path, red: list[str], blue: list[str], **options: Any) -> Any:
    """Units far from each other, 20 cells apart, that do nothing."""
    return start(
        write_map(
            tmp_path,
            [(kind, 4, 3 + 3 * k) for k, kind in enumerate(red)],
            [(kind, 28, 3 + 3 * k) for k, kind in enumerate(blue)],
        ),
        **options,
    )


def paid(sim: Any) -> float:
    return float(sim.rewards[0, 0])


def test_what_blues_shields_recover_is_paid(tmp_path: Path):
    sim = two_sides(tmp_path, ["marine"], ["zealot"])
    put(sim, 1, shield=20.0, life_before=120.0)
    decide(sim)
    gained = float(sim.states[0]["shield"][1]) - 20
    assert gained > 0
    assert paid(sim) == pytest.approx(gained * 20 / (150 + 10 + 200), rel=1e-6)


def test_what_blue_recovers_lessens_the_pay_for_damage(tmp_path: Path):
    sim = two_sides(tmp_path, ["marine"], ["zealot", "zealot"])
    put(sim, 1, shield=20.0, life_before=120.0)
    put(sim, 2, hit_points=97.0, life_before=150.0)  # as if hit for 3 hit points in this decision
    decide(sim)
    gained = float(sim.states[0]["shield"][1]) - 20
    assert 0 < gained < 3
    assert paid(sim) == pytest.approx((3 - gained) * 20 / (300 + 20 + 200), rel=1e-6)


def test_a_kill_pays_the_life_that_was_left_and_ten_and_the_last_one_200(tmp_path: Path):
    sim = start(write_map(tmp_path, [("marine", 4, 10)], [("marine", 8, 10), ("marine", 8, 12)]))
    for slot in (1, 2):
        put(sim, slot, hit_points=4.0, life_before=4.0)
    points = []
    for target in (0, 1):
        while sim.states[0]["alive"][1 + target]:
            decide(sim, red=at_red(target))
            points.append(paid(sim) * (90 + 20 + 200) / 20)
    assert [p for p in points if p != 0] == pytest.approx([14, 214], rel=1e-6)


def test_a_unit_that_arrives_counts_from_the_next_decision_on(tmp_path: Path):
    sim = two_sides(tmp_path, ["marine"], ["marine", "marine"])
    put(sim, 2, alive=0, life_before=0.0)
    put(sim, 2, alive=1)
    decide(sim)
    assert paid(sim) == 0
    assert sim.states[0]["life_before"][2] == 45


def test_a_sparse_reward_is_scaled_too(tmp_path: Path):
    sim = start(write_map(tmp_path, [("marine", 4, 10)], [("marine", 8, 10)]), reward="sparse")
    put(sim, 1, hit_points=4.0)
    while not sim.terminated[0]:
        decide(sim, red=at_red(0))
    assert paid(sim) == pytest.approx(1 * 20 / (45 + 10 + 200), rel=1e-6)


def test_red_has_lost_when_both_sides_have_only_healers_left(tmp_path: Path):
    sim = two_sides(tmp_path, ["marine", "medivac"], ["marine", "medivac"])
    put(sim, 0, alive=0)
    put(sim, 2, alive=0)
    decide(sim)
    assert sim.terminated[0]
    assert sim.info["winner"][0] == battle_records.BLUE


def test_both_sides_without_healers_draw(tmp_path: Path):
    sim = start(write_map(tmp_path, [("baneling", 4, 10)], [("baneling", 4.5, 10)]))
    put(sim, 1, hit_points=12.0, life_before=12.0)
    while not sim.terminated[0]:
        decide(sim, red=at_red(0))
    assert sim.info["winner"][0] == -1
    # the 12 that were left of blue's and 10 for the kill: no victory
    assert paid(sim) == pytest.approx(22 * 20 / (30 + 10 + 200), rel=1e-6)


def test_a_wrong_word_is_named():
    with pytest.raises(ValueError, match="has no observation 'smacv2': choose from 'flat', 'dict', 'smac'"):
        games.battle("3m").represented("smacv2")


def test_a_fourth_kind_has_a_column_of_its_own(tmp_path: Path):
    sim = two_sides(tmp_path, ["marine", "stalker"], ["zealot", "hydralisk"])
    assert layout_of(maps.load(tmp_path / "own.json"))["types"][0] == 4
    same(seen(sim, 1)[-6:], np.array([1, 1, 0, 1, 0, 0]))  # hit points, shield; marine, stalker, zealot, hydralisk
    assert sizes(maps.load(tmp_path / "own.json"))[2] == FIRST + 2
