"""What holds in all phases of the Concert games, whatever the orders are: in play and in crowded positions."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from concert.random_phases import (
    PARTS,
    WORLD,
    Batch,
    batches,
    orders_of,
    random_actions,
    slots_of,
)
from games.play import simulation

from palaestra.core.compile.linker import jit_disabled
from palaestra.game import Game
from palaestra.games.concert import concert_duel, concert_powers
from palaestra.games.concert.adjudication import BOUNCED, CUT, DISLODGED, OK, VOID
from palaestra.games.concert.concert_map import INLAND, SEA
from palaestra.games.concert.concert_orders import (
    CONVOY,
    HOLD,
    MOVE,
    SUPPORT_HOLD,
    SUPPORT_MOVE,
    VIA,
    is_fleet,
    power_of,
)
from palaestra.games.concert.concert_phases import ADJUSTMENTS, MOVES, RETREATS

pytestmark = pytest.mark.check

FEW, MANY, LANES = 500, 100_000, 64
COORDINATED = pytest.mark.parametrize("coordinated", [False, True], ids=["random", "coordinated"])
COUNTS = pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
POSSIBLE = {SUPPORT_MOVE: (OK, CUT, DISLODGED)} | dict.fromkeys((HOLD, SUPPORT_HOLD, CONVOY), (OK,))
POSSIBLE |= dict.fromkeys((MOVE, VIA), (OK, BOUNCED))
"""Results of an order for which the other units do their part."""
BOARD = ("unit", "dislodged", "mark", "owner")


def played(game: Game, lanes: int = LANES) -> Any:
    """A simulation whose matches end without a next one."""
    return simulation(game, lanes, compiled=not jit_disabled(), autoreset_mode="off")


def standard(count: int, coordinated: bool) -> Iterator[Batch]:
    """Decisions on the standard map."""
    return batches(played(concert_powers.game()), count, seed=count + 1, coordinated=coordinated)


# ----------------------------------------------------------------------------------------------------------- the board


@COUNTS
@COORDINATED
def test_armies_stand_on_land_and_fleets_on_a_coast_or_at_sea(count: int, coordinated: bool):
    for batch in standard(count, coordinated):
        for units in (batch.after["unit"], batch.after["dislodged"]):
            form, fleets = (units.astype(int) - 1) // 8, (units > 0) & is_fleet(units)
            assert not ((units > 0) & ~fleets & (WORLD.ground == SEA)).any()
            assert not (fleets & (WORLD.ground == INLAND)).any()
            assert (form[fleets] <= 1 + np.broadcast_to(WORLD.coasts, units.shape)[fleets]).all()
            assert ((form >= 2) == (fleets & (WORLD.coasts > 0))).all(), "a fleet stands on one of several coasts"


@COUNTS
@COORDINATED
def test_moves_keep_all_units_and_retreats_bring_back_or_remove_those_dislodged(count: int, coordinated: bool):
    for batch in standard(count, coordinated):
        for before, after in zip(batch.before, batch.after, strict=True):
            if before["phase"] == ADJUSTMENTS:
                continue
            where = before["unit"] if before["phase"] == MOVES else before["dislodged"]
            lost = after["result"] == DISLODGED if before["phase"] == MOVES else after["result"] != OK
            kept = kinds(before["unit"]) if before["phase"] == RETREATS else Counter()
            expected = kept + kinds(where[(where > 0) & ~lost])
            assert {k: n for k, n in expected.items() if after["alive"][k[0]]} == kinds(after["unit"])
            if before["phase"] == RETREATS:
                assert not after["dislodged"].any()


def kinds(units: np.ndarray) -> Counter:
    """How many armies and fleets each power has."""
    return Counter((int(power_of(code)), bool(is_fleet(code))) for code in units[units > 0])


@COUNTS
def test_no_power_has_more_units_than_centres_after_adjustments(count: int):
    seen = 0
    for batch in standard(count, coordinated=False):
        for before, after in zip(batch.before, batch.after, strict=True):
            if before["phase"] == ADJUSTMENTS:
                units = np.bincount(power_of(after["unit"][after["unit"] > 0]), minlength=WORLD.powers)
                assert (units <= np.bincount(after["owner"][after["owner"] >= 0], minlength=WORLD.powers)).all()
                seen += 1
    assert seen


# -------------------------------------------------------------------------------------------------------------- orders


@COUNTS
@COORDINATED
def test_what_happens_does_not_depend_on_the_number_of_a_power(count: int, coordinated: bool):
    rng, twin = np.random.default_rng(count), played(concert_powers.game())
    twin.reset(seed=1)
    for batch in standard(count, coordinated):
        new, has_homes = rng.permutation(WORLD.powers), batch.before["phase"] == ADJUSTMENTS
        twin.load_states(renamed(batch.before, new))
        twin.step(np.ascontiguousarray(batch.actions[:, np.argsort(new)]))
        expected = renamed(batch.after, new)
        for field in (*BOARD, "order", "result"):
            np.testing.assert_array_equal(twin.states[field][~has_homes], expected[field][~has_homes], err_msg=field)


def renamed(records: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Records in which power k is called ``new[k]``; where it may build stays."""
    renamed, old = records.copy(), np.argsort(new)
    for field in ("unit", "dislodged", "last_unit"):
        units = records[field]
        renamed[field] = np.where(units > 0, units.astype(int) - power_of(units) + new[power_of(units) % 7], 0)
    for field in ("owner", "last_owner"):
        renamed[field] = np.where(records[field] >= 0, new[records[field]], records[field])
    for field in ("alive", "acting", "due"):
        renamed[field] = records[field][:, old]
    return renamed


@COUNTS
@COORDINATED
def test_a_void_order_in_place_of_a_hold_changes_nothing_else(count: int, coordinated: bool):
    twin, changed = played(concert_powers.game()), 0
    twin.reset(seed=1)
    for batch in standard(count, coordinated):
        actions, idle = batch.actions.copy(), []
        for lane in batch.moving:
            orders = orders_of(batch.before[lane], actions[lane])
            for power, row in enumerate(slots_of(batch.before[lane])):
                for j, p in enumerate(row):
                    void = void_orders(batch.lists[lane, power, j], orders) if orders[p] == 0 else ()
                    if len(void):
                        actions[lane, power, j] = void[lane % len(void)]
                        idle.append((lane, p))
        twin.load_states(batch.before)
        twin.step(actions)
        for field in BOARD:
            np.testing.assert_array_equal(twin.states[field], batch.after[field], err_msg=field)
        expected = batch.after["result"].copy()
        for lane, p in idle:
            expected[lane, p] = DISLODGED if expected[lane, p] == DISLODGED else VOID
        np.testing.assert_array_equal(twin.states["result"], expected)
        changed += len(idle)
    assert changed > count / 10


def void_orders(listing: Any, orders: np.ndarray) -> np.ndarray:
    """Supports and convoys of a list for moves that nobody makes."""
    ids = listing["ids"][: listing["count"]]
    kinds, a, b = PARTS[ids].T
    other = PARTS[orders[WORLD.province_of[a]]]
    made = np.isin(other[:, 0], (MOVE, VIA)) & (WORLD.province_of[other[:, 1]] == b)
    return ids[np.isin(kinds, (SUPPORT_MOVE, CONVOY)) & ~made]


# --------------------------------------------------------------------------------------------------------------- lists


@COUNTS
def test_lists_hold_no_order_twice_and_in_play_leave_none_out(count: int):
    for batch in standard(count, coordinated=False):
        counts, ids = batch.lists["count"], batch.lists["ids"]
        is_used = np.arange(ids.shape[-1]) < counts[..., None]
        ordered = np.sort(np.where(is_used, ids, -1 - np.arange(ids.shape[-1])), axis=-1)
        assert (np.diff(ordered, axis=-1) > 0).all()
        assert not batch.after["info"]["left_out"][~batch.crowded].any()


@COUNTS
def test_each_listed_order_is_carried_out_if_the_others_do_their_part(count: int):
    rng, twin, seen = np.random.default_rng(count), played(concert_powers.game()), Counter()
    twin.reset(seed=1)
    for batch in standard(count, coordinated=False):
        chosen, actions = {}, np.zeros_like(batch.actions)
        for lane in batch.moving:
            if batch.before[lane]["info"]["left_out"]:  # a full list may lack the convoy that another unit needs
                continue
            slots = slots_of(batch.before[lane])
            places = {p: (power, j) for power, row in enumerate(slots) for j, p in enumerate(row)}
            lists = batch.lists[lane]
            listed = {p: lists[place]["ids"][: lists[place]["count"]] for p, place in places.items()}
            p = int(rng.choice(list(listed)))
            order = int(rng.choice(listed[p]))
            for other, place in places.items():
                actions[lane][place] = order if other == p else part_of(other, listed[other], p, order)
            chosen[lane] = p, int(PARTS[order, 0])
        twin.load_states(batch.before)
        twin.step(actions)
        for lane, (p, kind) in chosen.items():
            assert twin.states["result"][lane, p] in POSSIBLE[kind], (kind, p)
            seen[kind] += 1
    assert set(seen) == set(POSSIBLE)


def part_of(province: int, ids: np.ndarray, leader: int, order: int) -> int:
    """What a unit does for an order of another one: it moves as is supported or convoyed, or convoys; else it holds."""
    kind, a, b = PARTS[order].tolist()
    army, goal = (leader, a) if kind == VIA else (a, b)
    kinds, its_a, its_b = PARTS[ids].T
    fitting = (kinds == CONVOY) & (its_a == army) & (its_b == goal) & (kind in (VIA, SUPPORT_MOVE, CONVOY))
    if kind in (SUPPORT_MOVE, CONVOY) and province == army:
        fitting = np.isin(kinds, (VIA,) if kind == CONVOY else (MOVE, VIA)) & (WORLD.province_of[its_a] == goal)
    return int(ids[fitting][0]) if fitting.any() else 0


# --------------------------------------------------------------------------------------------------------------- score


@pytest.mark.parametrize("score", ["squares", "draw_size", "centres"])
def test_shares_of_all_powers_are_one_together(score: str):
    for rewards in final_rewards(concert_powers.game(score=score)):
        assert (rewards >= 0).all()
        assert abs(rewards.sum() - 1) < 1e-6


@pytest.mark.parametrize("score", ["squares", "draw_size", "centres"])
def test_the_duel_is_exactly_zero_sum(score: str):
    for rewards in final_rewards(concert_duel.game(score=score)):
        assert rewards[0] == -rewards[1]


def final_rewards(game: Game) -> list[np.ndarray]:
    """What the powers are paid at the end of matches of random play, which differ."""
    sim, rng, found = played(game), np.random.default_rng(5), []
    sim.reset(seed=5)
    running = np.ones(LANES, bool)
    while running.any():
        sim.step(random_actions(rng, sim.legal["orders"]), running)
        found += list(sim.rewards[running & sim.terminated].copy())
        running &= ~(sim.terminated | sim.truncated)
    assert len({tuple(rewards) for rewards in found}) > 1
    return found
