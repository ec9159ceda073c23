"""Abilities of red's units: who has one and when, what it costs, what it does, and orders that go on meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from skirmish.battles import OPEN, Units, decide, life, put, start, unit, write_map

from palaestra.games.skirmish import games
from palaestra.games.skirmish.combat import NOBODY
from palaestra.games.skirmish.orders import EAST, FIRST, NOTHING, STOP

BOOST, JUMP_NORTH, JUMP_SOUTH, JUMP_EAST, JUMP_WEST = range(FIRST, FIRST + 5)
AT_FIRST = FIRST + 5
"""Actions of red where it has abilities."""
FAR: Units = [("marine", 30, 18)]


def able(
    folder: Path,
    red: Units,
    blue: Units = FAR,
    terrain: Sequence[str] = OPEN,
    when: str = "always",
    lanes: int = 1,
) -> Any:
    return start(games.abilities(write_map(folder, red, blue, terrain), when), lanes=lanes)


def offered(sim: Any, slot: int = 0) -> list[int]:
    """The abilities that a unit may use now."""
    return [action for action in range(BOOST, AT_FIRST) if sim.legal["red"][0, slot, action]]


def walked(sim: Any, order: int) -> float:
    """How far the first unit gets to the east in a decision, cells."""
    before = unit(sim, "position", 0)[0]
    decide(sim, order)
    return float(unit(sim, "position", 0)[0] - before)


# --- who and when ---


@pytest.mark.parametrize(
    ("kind", "actions"),
    [
        ("marine", [BOOST]),
        ("marauder", [BOOST]),
        ("zealot", [BOOST]),
        ("stalker", [JUMP_NORTH, JUMP_SOUTH, JUMP_EAST, JUMP_WEST]),
        ("zergling", []),
        ("medivac", []),
    ],
)
def test_each_kind_may_use_the_ability_that_it_has(tmp_path: Path, kind: str, actions: list[int]):
    sim = able(tmp_path, [(kind, 10, 10)])
    assert offered(sim) == actions
    assert sim.game.roles[0].action[0].meanings[FIRST:] == (
        *("boost", "jump_north", "jump_south", "jump_east", "jump_west"),
    )


def test_without_abilities_nobody_may_use_one(tmp_path: Path):
    sim = able(tmp_path, [("marine", 10, 10), ("stalker", 10, 14)], when="never")
    assert offered(sim, 0) == offered(sim, 1) == []


def test_blue_has_no_orders_for_abilities(tmp_path: Path):
    sim = able(tmp_path, [("marine", 10, 10)])
    assert sim.game.roles[1].action[0].n == FIRST + 1 + 1


def test_an_ability_is_offered_from_the_decision_in_which_it_is_gained_until_it_is_lost(tmp_path: Path):
    sim = able(tmp_path, [("marine", 10, 10)], when="drift")
    sim.states["able"][0, 0] = 2, 4
    sim.refresh()
    seen = []
    for _ in range(6):
        own = sim.buffers.observations["red"][0, 0]["ability"].tolist()
        seen.append((offered(sim), own))
        decide(sim)
    has, lacks = ([BOOST], [1.0, 0.0]), ([], [0.0, 0.0])
    assert seen == [lacks, lacks, has, has, lacks, lacks]


@pytest.mark.parametrize(("kind", "order"), [("marine", BOOST), ("stalker", JUMP_EAST)])
def test_an_ability_that_is_offered_for_the_last_time_works(tmp_path: Path, kind: str, order: int):
    sim = able(tmp_path, [(kind, 10, 10)], when="drift")
    sim.states["able"][0, 0] = 0, 1
    sim.refresh()
    decide(sim, order)
    assert unit(sim, "pause", 0) > 0
    assert offered(sim) == []


def test_drifting_abilities_are_gained_by_decision_20_and_last_15_to_45_decisions(tmp_path: Path):
    sim = able(tmp_path, [("marine", 10, 10)] * 4, when="drift", lanes=40)
    gained, lost = sim.states["able"][:, :4].reshape(-1, 2).T
    lasted = lost - gained
    assert (gained.min(), gained.max()) == (0, 20)
    assert (lasted.min(), lasted.max()) == (15, 45)
    assert len({tuple(row) for row in sim.states["able"][0, :4].tolist()}) > 1, "each unit has its own"


# --- boost ---


@pytest.mark.parametrize(("kind", "cost"), [("marine", 10), ("marauder", 20), ("zealot", 0)])
def test_a_boost_costs_hit_points_that_nobody_is_paid_for(tmp_path: Path, kind: str, cost: float):
    sim = able(tmp_path, [(kind, 10, 10)])
    before = life(sim, 0)
    decide(sim, BOOST)
    assert before - life(sim, 0) == cost
    assert sim.rewards[0, 0] == 0
    assert sim.info["damage"][0] == 0


def test_a_unit_that_would_die_of_its_boost_may_not_use_it(tmp_path: Path):
    sim = able(tmp_path, [("marine", 10, 10)])
    put(sim, 0, hit_points=10.0)
    assert offered(sim) == []
    put(sim, 0, hit_points=10.5)
    assert offered(sim) == [BOOST]
    decide(sim, BOOST)
    assert life(sim, 0) == 0.5


def test_an_ability_may_be_used_again_after_its_pause(tmp_path: Path):
    sim = able(tmp_path, [("marine", 10, 10)])
    decide(sim, BOOST)
    assert unit(sim, "pause", 0) == 15 * 16 - 8
    put(sim, 0, pause=9.0)
    decide(sim)
    assert offered(sim) == []
    assert sim.buffers.observations["red"][0, 0]["ability_pause"] == pytest.approx(1 / (15 * 16))
    decide(sim)
    assert offered(sim) == [BOOST]


@pytest.mark.parametrize(("kind", "factor"), [("marine", 1.5), ("zealot", 2.2)])
def test_a_boosted_unit_walks_faster(tmp_path: Path, kind: str, factor: float):
    sim = able(tmp_path, [(kind, 10, 10)])
    plain = walked(sim, EAST)
    assert plain == pytest.approx(2.25 / 2, abs=1e-5)
    put(sim, 0, boosted=100.0)
    put(sim, 0, position=(10.0, 10.0))
    assert walked(sim, EAST) == pytest.approx(min(factor * plain, 2.0), abs=1e-5), "an order leads 2 cells"


def test_a_boost_ends(tmp_path: Path):
    sim = able(tmp_path, [("marine", 10, 10)])
    decide(sim, BOOST)
    assert sim.buffers.observations["red"][0, 0]["boosted"] == pytest.approx(232 / 240)
    put(sim, 0, boosted=4.0)
    assert walked(sim, EAST) == pytest.approx((4 * 1.5 + 4) * 2.25 / 16, abs=1e-5)


@pytest.mark.parametrize(("kind", "left"), [("marine", 20 - 8 * 1.5), ("zealot", 20 - 8)])
def test_a_boosted_unit_is_ready_sooner_to_attack_where_its_boost_says_so(tmp_path: Path, kind: str, left: float):
    sim = able(tmp_path, [(kind, 10, 10)])
    put(sim, 0, boosted=100.0, cooldown=20.0)
    decide(sim)
    assert unit(sim, "cooldown", 0) == left


def test_a_unit_that_boosts_itself_goes_on_with_its_order(tmp_path: Path):
    sim = able(tmp_path, [("marine", 10, 10)], [("marine", 14, 10)])
    decide(sim, AT_FIRST)
    hurt = life(sim, 1)
    put(sim, 0, cooldown=0.0)
    decide(sim, BOOST)
    assert unit(sim, "target", 0) == 1
    assert life(sim, 1) < hurt < 45
    sim = able(tmp_path, [("marine", 10, 10)])
    decide(sim, EAST)
    assert walked(sim, BOOST) == pytest.approx(2 - 2.25 / 2, abs=1e-5), "the rest of the way"


# --- jump ---


@pytest.mark.parametrize(
    ("order", "place"),
    [(JUMP_NORTH, (16, 18)), (JUMP_SOUTH, (16, 2)), (JUMP_EAST, (24, 10)), (JUMP_WEST, (8, 10))],
)
def test_a_stalker_jumps_8_cells_in_one_of_four_directions(tmp_path: Path, order: int, place: tuple[float, float]):
    sim = able(tmp_path, [("stalker", 16, 10)], [("marine", 1, 1)])
    decide(sim, order)
    assert unit(sim, "position", 0).tolist() == list(place)
    assert offered(sim) == []
    assert unit(sim, "pause", 0) == 10 * 16 - 8


def test_a_jump_leads_over_a_wall(tmp_path: Path):
    wall = ("." * 14 + "###" + "." * 15,) * 20
    sim = able(tmp_path, [("stalker", 10, 10)], FAR, wall)
    decide(sim, JUMP_EAST)
    assert unit(sim, "position", 0).tolist() == [18, 10]


@pytest.mark.parametrize(("x", "reached"), [(10.0, 15.5), (10.25, 15.75), (12.0, 15.5)])
def test_a_jump_into_a_wall_is_shorter_by_half_cells_until_it_fits(tmp_path: Path, x: float, reached: float):
    wall = ("." * 16 + "#" * 8 + "." * 8,) * 20
    sim = able(tmp_path, [("stalker", x, 10)], FAR, wall)
    decide(sim, JUMP_EAST)
    assert unit(sim, "position", 0).tolist() == [reached, 10]


def test_a_jump_beyond_the_map_ends_before_its_edge(tmp_path: Path):
    sim = able(tmp_path, [("stalker", 4, 10)])
    decide(sim, JUMP_WEST)
    assert unit(sim, "position", 0).tolist() == [0.5, 10]


def test_a_jump_without_room_stays_and_is_used_up(tmp_path: Path):
    cell = ("." * 32, *("#" * 32,) * 18, "." * 32)
    sim = able(tmp_path, [("stalker", 0.25, 0.5)], [("marine", 30, 0.5)], cell)
    decide(sim, JUMP_WEST)
    assert unit(sim, "position", 0).tolist() == [0.25, 0.5]
    assert offered(sim) == []


def test_a_jump_ends_the_order_before(tmp_path: Path):
    sim = able(tmp_path, [("stalker", 10, 10)], [("marine", 15, 10)])
    decide(sim, AT_FIRST)
    decide(sim, JUMP_WEST)
    assert (unit(sim, "order", 0), unit(sim, "target", 0)) == (STOP, NOBODY)


def test_an_order_that_was_not_offered_is_the_no_op_and_counted(tmp_path: Path):
    sim = able(tmp_path, [("marine", 10, 10)])
    sim.actions["red"][0], sim.actions["blue"][0] = JUMP_EAST, STOP
    sim.step()
    assert sim.info["illegal"][0].tolist() == [1, 0]
    assert sim.states["last_action"][0, 0] == NOTHING
    assert np.array_equal(unit(sim, "position", 0), [10, 10])
