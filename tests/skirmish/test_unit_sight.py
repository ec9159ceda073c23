"""What units see where each sees by its own eyes: cones of sight, orders to turn, sight and range of each kind."""

from __future__ import annotations

import math
from typing import Any

import pytest
from skirmish.battles import SMAC, decide, put, start, unit

from palaestra.game import Choice
from palaestra.games.skirmish import games
from palaestra.games.skirmish.orders import EAST, FIRST, SOUTH, WEST

TURNS = 12
MEANINGS = tuple(f"look_{30 * k}" for k in range(TURNS))


def two(kind: str = "marine", other: str = "marine", at: tuple[float, float] = (16, 16), **keywords: Any) -> Any:
    """A red unit and a blue one, 4 cells to the east of it."""
    sim = start(games.generated("a", 1, 1, **keywords))
    for slot, (name, x) in enumerate(((kind, at[0]), (other, at[0] + 4.0))):
        numbers = SMAC.unit(name)
        put(sim, slot, kind=SMAC.number_of(name), position=(x, at[1]), hit_points=numbers.hit_points)
    return sim


def cone(**keywords: Any) -> Any:
    return two(view="cone", **keywords)


def seen(sim: Any) -> Any:
    """What red's unit knows of blue's."""
    return sim.buffers.observations["red"][0, 0]["units"][0]


def is_offered(sim: Any) -> bool:
    """Whether red's unit may attack blue's."""
    return bool(sim.legal["red"][0, 0, -1])


# --- the cone ---


def test_a_unit_sees_and_aims_ahead_alone():
    sim = cone()
    assert (seen(sim)["seen"], is_offered(sim)) == (1.0, True), "red looks to the east at first"
    put(sim, 1, position=(12.0, 16.0))
    assert not is_offered(sim)
    assert not any(seen(sim)[name].any() for name in seen(sim).dtype.names)
    assert is_offered(two()), "and all around with the round view"


@pytest.mark.parametrize(("degrees", "is_seen"), [(14.9, True), (-14.9, True), (15.1, False), (-15.1, False)])
def test_the_cone_reaches_15_degrees_to_both_sides(degrees: float, is_seen: bool):
    sim, angle = cone(), math.radians(degrees)
    for facing in (0, 4, 9):
        turned = angle + math.radians(30 * facing)
        put(sim, 0, facing=facing)
        put(sim, 1, position=(16 + 4 * math.cos(turned), 16 + 4 * math.sin(turned)))
        assert (seen(sim)["seen"], is_offered(sim)) == (float(is_seen), is_seen)


@pytest.mark.parametrize("k", range(TURNS))
def test_an_order_turns_the_sight_counterclockwise_from_the_east(k: int):
    sim = cone()
    decide(sim, FIRST + k)
    facing = sim.buffers.observations["red"][0, 0]["facing"].tolist()
    assert facing == pytest.approx([math.cos(math.radians(30 * k)), math.sin(math.radians(30 * k))])
    put(sim, 1, position=(16 + 4 * facing[0], 16 + 4 * facing[1]))
    assert is_offered(sim)


def test_the_orders_to_turn_have_names_and_are_there_in_a_cone_alone():
    order, plain = cone().game.roles[0].action[0], two().game.roles[0].action[0]
    assert isinstance(order, Choice)
    assert isinstance(plain, Choice)
    assert (order.meanings[FIRST:], order.n) == (MEANINGS, FIRST + TURNS + 1)
    assert plain.n == FIRST + 1


def test_a_unit_that_turns_goes_on_with_its_order():
    sim = cone()
    put(sim, 1, position=(16.0, 28.0))
    decide(sim, EAST)
    decide(sim, FIRST + 3)
    assert unit(sim, "position", 0).tolist() == pytest.approx([18, 16], abs=1e-5)
    sim = cone()
    decide(sim, FIRST + TURNS)
    put(sim, 0, cooldown=0.0)
    hurt = unit(sim, "hit_points", 1)
    decide(sim, FIRST + 6)
    assert unit(sim, "hit_points", 1) < hurt < 45, "it looks away and shoots at the one before"


def test_blue_sees_all_around():
    sim = cone()
    put(sim, 1, facing=0)  # away from red
    assert sim.legal["blue"][0, 0, -1]


def test_a_round_view_has_no_direction():
    assert two().buffers.observations["red"][0, 0]["facing"].tolist() == [0, 0]


# --- each kind's own ---


@pytest.mark.parametrize(("kind", "sight"), [("marine", 9), ("marauder", 10), ("medivac", 11)])
def test_each_kind_sees_as_far_as_its_own_sight(kind: str, sight: float):
    sim = two(kind)
    put(sim, 1, position=(16 + sight - 0.1, 16.0))
    assert seen(sim)["seen"] == 1
    assert seen(sim)["distance"] == pytest.approx((sight - 0.1) / sight)
    put(sim, 1, position=(16.0 + sight, 16.0))
    assert seen(sim)["seen"] == 0


@pytest.mark.parametrize(("kind", "reach"), [("marine", 5), ("marauder", 6), ("zealot", 2)])
def test_each_kind_aims_as_far_as_its_own_range_and_2_cells_at_least(kind: str, reach: float):
    sim = two(kind)
    put(sim, 1, position=(16.0 + reach, 16.0))
    assert is_offered(sim)
    assert seen(sim)["can_be_target"] == 1
    put(sim, 1, position=(16.1 + reach, 16.0))
    assert not is_offered(sim)


# --- the global state ---


def test_the_global_state_shows_what_nobody_sees_and_zeros_for_the_dead():
    sim = cone()
    put(sim, 1, position=(8.0, 24.0), hit_points=9.0)
    state = sim.state()[0].reshape(2, -1)
    assert state[1, :7].tolist() == pytest.approx([1, -0.5, 0.5, 0.2, 0, 0, 0])
    assert state[0, :4].tolist() == [1, 0, 0, 1]
    put(sim, 1, alive=0)
    assert not sim.state()[0].reshape(2, -1)[1].any()


def test_a_wall_of_the_map_forbids_a_step_whatever_the_view():
    sim = cone(at=(0.5, 16.0))
    legal = sim.legal["red"][0, 0]
    assert (legal[WEST], legal[EAST], legal[SOUTH]) == (0, 1, 1)
