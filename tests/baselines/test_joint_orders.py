"""Joint orders: what powers see of positions, plans drawn one order after another, and the anchor's probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from baselines.concert_positions import DUEL, SHORT, Positions, Uniform, positions_of

from palaestra import make_batch
from palaestra.core.compile.linker import record_view
from palaestra.games.concert import concert_drafts as drafts
from palaestra.games.concert import concert_values as values
from palaestra.games.concert import concert_vector as vector
from palaestra.games.concert.concert_orders import (
    BUILD_ARMY,
    BUILD_FLEET,
    HOLD,
    MOVE,
    REMOVE,
    SEA,
    SUPPORT_HOLD,
    SUPPORT_MOVE,
    is_fleet,
    location_of,
    order_parts,
    own_number,
)
from palaestra.games.concert.concert_phases import ADJUSTMENTS, MOVES, RETREATS, asks
from palaestra.registry import make_game
from palaestra_baselines.common.joint_orders import (
    Terrain,
    View,
    draw_plans,
    drawn,
    features_of,
    has_choice,
    join,
    log_probabilities,
    power_of,
    records_of,
    view_of,
)
from palaestra_baselines.common.value_anchor import UNIFORM, Anchor

GAMES = {
    "duel": (DUEL, SHORT),
    "duel20": ("palaestra/ConcertDuel-20-v0", {**SHORT, "lanes": 4, "last_year": 5}),
    "france_austria": (DUEL, {**SHORT, "lanes": 4, "last_year": 1906, "map": "france_austria"}),
    "concert": ("palaestra/Concert-v0", {**SHORT, "lanes": 2, "seed": 0, "last_year": 1903}),
}


@pytest.fixture(params=[game if game == "duel" else pytest.param(game, marks=pytest.mark.check) for game in GAMES])
def positions(request: pytest.FixtureRequest) -> Positions:
    """Positions of a game, in all its phases."""
    id, keywords = GAMES[request.param]
    found = positions_of(id, **keywords)
    assert set(found.records["phase"]) == {MOVES, RETREATS, ADJUSTMENTS}
    return found


def in_turn(order: Any) -> Any:
    """A view of two positions with three lists, and its plans."""
    lists = np.array([[[1, 2, -1], [3, 4, 5], [0, -1, -1]], [[6, 7, 8], [0, -1, -1], [9, 1, -1]]], np.int16)
    return View(np.zeros((2, 1), np.float32), np.zeros(2, np.int64), np.full((2, 3), -1), lists[:, order])


class Following:
    """The probability of an order grows with its number, and with the orders given before."""

    def prepare(self, view: View) -> View:
        return view

    def probabilities(self, known: View, rows: np.ndarray, slot: int, earlier: np.ndarray) -> np.ndarray:
        lists = known.lists[rows, slot].astype(float)
        weights = np.where(lists >= 0, lists + 1.0 + earlier[:, :slot].sum(1, keepdims=True) * (lists % 2), 0.0)
        return weights / weights.sum(1, keepdims=True)


# -- positions ---------------------------------------------------------------------------------------------------------


@pytest.mark.check
def test_features_are_the_numbers_of_observation_vector_for_all_powers(positions: Positions):
    for power, view in enumerate(positions.views):
        assert view.features.dtype == np.float32
        np.testing.assert_array_equal(view.features, positions.vectors[:, power])


def test_builds_are_as_many_as_home_centres_are_free():
    sim = make_batch(DUEL, 1, compiled=False, observation="vector")
    sim.reset(seed=0)
    terrain, records = Terrain(make_game(DUEL)[0]), sim.states.copy()
    units = records["unit"][0]
    first, second = np.flatnonzero(power_of(units) == 0)[:2]
    units[first], units[second] = 0, units[power_of(units) == 1][0]
    records["phase"], records["season"] = ADJUSTMENTS, 1
    sim.load_states(records)
    seen: Any = sim.observations
    sim.close()
    for power, builds in enumerate((1, 0)):
        features = features_of(terrain, records, power)
        assert features[0, -vector.CLOCK + vector.BUILDS] == builds / terrain.slots
        np.testing.assert_array_equal(features, seen[:, power])


def test_records_that_show_an_observation_give_the_same_view(positions: Positions):
    terrain = positions.terrain
    for power, view in enumerate(positions.views):
        records = records_of(terrain, positions.seen[power])
        viewer = 0 if terrain.board.mirrored else power
        seen = view_of(terrain, records, positions.lists[:, power], viewer)
        np.testing.assert_array_equal(seen.features, view.features)
        np.testing.assert_array_equal(seen.units, view.units)


def test_a_view_says_where_the_units_stand_and_what_each_list_allows(positions: Positions):
    for power, view in enumerate(positions.views):
        is_late = view.phase == ADJUSTMENTS
        np.testing.assert_array_equal(view.units[~is_late], positions.units[power][~is_late])
        assert (view.units[is_late] == -1).all()
        counts, ids = positions.lists[:, power]["count"], positions.lists[:, power]["ids"]
        np.testing.assert_array_equal((view.lists >= 0).sum(2), counts)
        for n, slot in np.ndindex(counts.shape):
            assert view.lists[n, slot, : counts[n, slot]].tolist() == ids[n, slot, : counts[n, slot]].tolist()
        np.testing.assert_array_equal(has_choice(view.lists), counts > 1)


def test_joined_views_keep_their_positions_and_lists():
    first, second = (positions_of(DUEL, **SHORT).views[power] for power in (0, 1))
    short = View(second.features, second.phase, second.units, second.lists[..., :1])
    both = join([first, short])
    assert len(both) == len(first) + len(second)
    np.testing.assert_array_equal(both.take(slice(len(first))).lists, first.lists)
    np.testing.assert_array_equal(both.lists[len(first) :, :, 0], second.lists[..., 0])
    assert (both.lists[len(first) :, :, 1:] == -1).all()
    assert not has_choice(short.lists).any()
    np.testing.assert_array_equal(both.units[len(first) :], second.units)


def test_games_without_joint_orders_are_refused():
    with pytest.raises(ValueError, match="joint orders are those of Concert"):
        Terrain(make_game("palaestra/TeamTag-v0")[0])
    with pytest.raises(ValueError, match='ConcertDuel: joint orders need decisions="phase"'):
        Terrain(make_game(DUEL, decisions="unit")[0])


# -- plans -------------------------------------------------------------------------------------------------------------


def test_plans_are_drawn_as_often_as_their_probabilities_say():
    view, count = in_turn([0, 1, 2]), 20_000
    plans = draw_plans(Following(), view, np.random.default_rng(0).random((2, count, 3)))
    for n in range(2):
        distinct, times = np.unique(plans[n], axis=0, return_counts=True)
        shares = np.exp(log_probabilities(Following(), view.take([n]), distinct[None])[0])
        assert len(distinct) == 6
        assert shares.sum() == pytest.approx(1.0)
        assert ((times - count * shares) ** 2 / (count * shares)).sum() < 20.5  # chi-square, 5 degrees: 0.999


def test_a_plan_is_as_probable_as_its_orders_one_after_another():
    plans = np.array([[[2, 5, 0], [1, 4, 0]], [[7, 0, 1], [8, 0, 9]]])
    second, fourth = (1 + 5 + 2) / (4 + 2 + 5 + 6 + 2), 5 / (4 + 1 + 5 + 6 + 1)
    first = [[3 / 5 * second, 2 / 5 * fourth], [(8 / 24) * (2 + 7) / (10 + 2 + 14), 9 / 24 * (10 + 8) / (12 + 16)]]
    np.testing.assert_allclose(np.exp(log_probabilities(Following(), in_turn([0, 1, 2]), plans)), first)


def test_plans_of_lists_read_backwards_are_the_same_plans_backwards():
    view, count = in_turn([0, 1, 2]), 4_000
    assert (view.backwards().lists == in_turn([2, 1, 0]).lists).all()
    plans = draw_plans(Uniform(), view.backwards(), np.random.default_rng(0).random((2, count, 3)))[..., ::-1]
    for n in range(2):
        for slot in range(3):
            listed, times = np.unique(plans[n, :, slot], return_counts=True)
            allowed = view.lists[n, slot][view.lists[n, slot] >= 0]
            assert listed.tolist() == sorted(allowed)
            np.testing.assert_allclose(times / count, 1 / len(allowed), atol=0.04)


def test_draws_at_the_ends_of_the_unit_interval_take_the_first_and_the_last_order_with_a_weight():
    weights = np.array([[0.0, 1.0, 3.0, 0.0], [1.0, 1.0, 1.0, 1.0]]).cumsum(1)
    assert drawn(weights, np.array([0.0, 0.0])).tolist() == [1, 0]
    assert drawn(weights, np.array([0.24, 0.26])).tolist() == [1, 1]
    assert drawn(weights, np.array([0.26, 0.74])).tolist() == [2, 2]
    assert drawn(weights, np.nextafter([1.0, 1.0], 0.0)).tolist() == [2, 3]


# -- the anchor --------------------------------------------------------------------------------------------------------


def draft(terrain: Terrain, record: Any, power: int) -> Any:
    """The script's work record for a power, before any order."""
    fields = values.scratch_fields(terrain.provinces, terrain.locations, terrain.powers)
    scratch = record_view(np.zeros(1, [*fields, *drafts.scratch_fields(terrain.provinces)]))[0]
    values.count_reach(record, terrain.map, scratch)
    values.write_values(record, terrain.map, power, scratch)
    return scratch


def some_of(positions: Positions, power: int, most: int) -> np.ndarray:
    """Numbers of positions, all retreats among them but those of others from others: the anchor counts both there."""
    terrain, left = positions.terrain, power_of(positions.records["dislodged"])
    is_known = (terrain.powers == 2) | np.isin(left, (-1, power)).all(1)
    is_retreat, spread = (left >= 0).any(1), np.arange(len(left)) % (1 + len(left) // most) == 0
    return np.flatnonzero((spread | is_retreat) & is_known)


def places_of(terrain: Terrain, power: int) -> np.ndarray:
    """Where a power sees each province."""
    return terrain.view(power)[: terrain.provinces]


@pytest.mark.check
def test_values_of_places_are_those_of_the_script(positions: Positions):
    terrain = positions.terrain
    world = terrain.map
    for power, view in enumerate(positions.views):
        known, at = Anchor(terrain).prepare(view), terrain.view(power)
        for n in some_of(positions, power, 40):
            record: Any = record_view(positions.records)[n]
            scratch = draft(terrain, record, power)
            chances = [drafts.chance(record, world, power, p, scratch) for p in range(terrain.provinces)]
            chance = np.array(chances if view.phase[n] == MOVES else np.ones(terrain.provinces))[world.province_of]
            army = scratch.army_value[world.province_of] * chance
            np.testing.assert_allclose(known.army[n, at], army**4, rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(known.fleet[n, at], (scratch.fleet_value * chance) ** 4, rtol=1e-9, atol=1e-12)
            np.testing.assert_array_equal(known.rivals[n, places_of(terrain, power)], scratch.rivals)
            for p in np.flatnonzero(record.unit):
                place = location_of(world, record.unit[p], p)
                worth = values.value_at(record.unit[p], place, scratch)
                assert known.value[n, at[p]] == pytest.approx(worth, rel=1e-9)


def test_conditionals_are_nine_tenths_the_choices_of_the_script_and_a_tenth_uniform(positions: Positions):
    terrain, rng = positions.terrain, np.random.default_rng(0)
    anchor, supports = Anchor(terrain), 0
    for power, view in enumerate(positions.views):
        some = some_of(positions, power, 16)
        few, draws = view.take(some), rng.random((len(some), 1, terrain.slots))
        plans = np.where(
            rng.random((len(some), 1)) < 0.5, *(draw_plans(p, few, draws)[:, 0] for p in (anchor, Uniform()))
        )
        known, records = anchor.prepare(few), record_view(positions.records)[some]
        drawn_up = [draft(terrain, record, power) for record in records]
        for slot in range(terrain.slots):
            found = anchor.probabilities(known, np.arange(len(some)), slot, plans)
            np.testing.assert_allclose(found.sum(1), 1.0)
            for n, (record, scratch) in enumerate(zip(records, drawn_up, strict=True)):
                numbers = few.lists[n, slot][few.lists[n, slot] >= 0]
                assert not found[n, len(numbers) :].any()
                weights = script_weights(terrain, record, power, slot, plans[n], numbers, scratch)
                flat = np.ones(len(numbers)) / len(numbers)
                expected = (1 - UNIFORM) * weights / weights.sum() + UNIFORM * flat if weights.any() else flat
                np.testing.assert_allclose(found[n, : len(numbers)], expected, rtol=1e-9)
                supports += (weights[np.isin(terrain.parts[numbers, 0], (SUPPORT_HOLD, SUPPORT_MOVE))] > 0).any()
    assert supports > 3


def script_weights(
    terrain: Terrain, record: Any, power: int, slot: int, plan: np.ndarray, numbers: np.ndarray, scratch: Any
) -> np.ndarray:
    """How the script values orders of a unit after the earlier orders of a plan, as numbers in the power's view."""
    board, world = terrain.board, terrain.map
    scratch.comes[:], scratch.open[:], scratch.backers[:] = drafts.NOBODY, 0, 0
    is_late = record.phase == ADJUSTMENTS
    units = [] if is_late else [p for p in world.ranked[power] if asks(record, world, power, p)]
    if record.phase == MOVES:
        scratch.open[units] = 1
    for d in range(slot):
        follow(world, scratch, record.phase, units[d] if d < len(units) else -1, own_number(board, power, plan[d]))
    p = units[slot] if slot < len(units) else -1
    scratch.open[p if p >= 0 else slice(0)] = 0
    return np.array([weight(world, record, power, p, own_number(board, power, n), scratch) for n in numbers])


def follow(world: Any, scratch: Any, phase: int, p: int, number: int) -> None:
    """Notes an earlier order of the unit in a province, or a build or removal."""
    kind, a, b = order_parts(world, number)
    if p < 0 and kind != HOLD:
        scratch.comes[world.province_of[a]] = world.province_of[a]
    elif p >= 0:
        scratch.open[p] = 0
        if kind == MOVE:
            scratch.comes[world.province_of[a]] = p
        elif phase == MOVES:
            scratch.comes[p] = p
    if kind in (SUPPORT_HOLD, SUPPORT_MOVE):
        scratch.backers[a if kind == SUPPORT_HOLD else b] += 1


def weight(world: Any, s: Any, power: int, p: int, number: int, scratch: Any) -> float:
    """How the script values an order."""
    kind, a, b = order_parts(world, number)
    goal = world.province_of[a] if kind in (MOVE, BUILD_ARMY, BUILD_FLEET, REMOVE) else b if kind == SUPPORT_MOVE else a

    def worth(unit: int, place: int) -> float:
        return (values.value_at(unit, place, scratch) * drafts.chance(s, world, power, goal, scratch)) ** 4

    if s.phase != MOVES:
        if kind == HOLD or scratch.comes[goal] != drafts.NOBODY:
            return 0.0
        if kind == REMOVE:
            return values.value_at(s.unit[goal], location_of(world, s.unit[goal], goal), scratch) ** -4
        is_naval = kind == BUILD_FLEET or a >= world.provinces or world.ground[goal] == SEA
        return (scratch.fleet_value[a] if is_naval else scratch.army_value[goal]) ** 4
    unit = s.unit[p] if p >= 0 else 0
    if kind == HOLD and unit:
        goal = p
        return worth(unit, location_of(world, unit, p))
    if kind == MOVE:
        is_taken = scratch.open[goal] or scratch.comes[goal] != drafts.NOBODY
        return 0.0 if is_taken else worth(unit, a)
    helps = {SUPPORT_HOLD: scratch.comes[goal] == goal, SUPPORT_MOVE: scratch.comes[goal] == a and a != goal}
    if helps.get(kind, False) and drafts.needs_support(s, world, goal, scratch):
        coasts = np.flatnonzero(world.province_of == goal).tolist() if is_fleet(unit) else [int(goal)]
        return max(worth(unit, place) for place in coasts)
    return 0.0
