"""``observation="vector"`` of the Concert games."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from games.play import started

from palaestra.core.compile.linker import record_view
from palaestra.games.concert import concert_duel, concert_powers
from palaestra.games.concert.concert_orders import (
    BUILD_FLEET,
    CONTESTED,
    MOVE,
    SUPPORT_HOLD,
    SUPPORT_MOVE,
    order_number,
    unit_at,
)
from palaestra.games.concert.concert_phases import ADJUSTMENTS, AUTUMN, RETREATS, write_acting
from palaestra.games.concert.concert_vector import (
    ARMY,
    BUILDS,
    CENTRE,
    CLOCK,
    DISLODGED,
    ENTERED,
    FLEET,
    HOME,
    IS_AUTUMN,
    LEFT_EMPTY,
    NEXT,
    POWER,
    REMOVALS,
    SUPPORTED,
    YEARS_LEFT,
)

pytestmark = pytest.mark.jitless

BLUE, RED = 0, 1
AUSTRIA, ENGLAND, FRANCE, TURKEY = 0, 1, 2, 6


def begun(factory: Any = concert_duel, **options: Any) -> Any:
    game = factory.game(**options).represented("vector")
    return started(game, compiled=False, autoreset_mode="off")


def record(sim: Any) -> Any:
    """The match record."""
    return record_view(sim.states)[0]


def refresh(sim: Any) -> None:
    """Asks for orders anew after the record was changed."""
    write_acting(record(sim), sim.game.world.board[0].map)
    sim.refresh()


def places(sim: Any, power: int) -> np.ndarray:
    """What a power sees of the locations, ``[L, numbers]``."""
    world = sim.game.world.board[0].map
    return seen(sim, power)[:-CLOCK].reshape(world.locations, -1)


def clock(sim: Any, power: int) -> np.ndarray:
    """What a power sees of the time."""
    return seen(sim, power)[-CLOCK:]


def seen(sim: Any, power: int) -> np.ndarray:
    """What a power sees."""
    return np.asarray(sim.observations)[0, power]


def at(sim: Any, key: str) -> int:
    """Number of a location."""
    return sim.game.captions.locations.index(key)


@pytest.mark.parametrize("decisions", ["phase", "unit"])
def test_both_powers_of_a_duel_see_the_same_start(decisions: str) -> None:
    sim = begun(decisions=decisions)
    assert seen(sim, BLUE).any()
    np.testing.assert_array_equal(seen(sim, BLUE), seen(sim, RED))


def test_the_second_power_sees_the_mirror_images_of_places() -> None:
    sim = begun()
    record(sim).unit[at(sim, "WYR")] = unit_at(sim.game.world.board[0].map, BLUE, True, at(sim, "WYR/NC"))
    refresh(sim)
    assert places(sim, BLUE)[at(sim, "WYR/NC"), [FLEET, POWER]].tolist() == [1, 1]
    assert places(sim, RED)[at(sim, "VEL/SC"), [FLEET, POWER + 1]].tolist() == [1, 1]
    assert not places(sim, RED)[at(sim, "WYR/NC")].any()


def test_a_power_is_the_first_in_its_own_view() -> None:
    sim = begun(concert_powers)
    paris = at(sim, "PAR")
    for power, number in ((FRANCE, 0), (ENGLAND, 1), (AUSTRIA, 2), (TURKEY, 3)):
        row = places(sim, power)[paris]
        assert row[ARMY] == 1
        assert np.flatnonzero(row[POWER : POWER + 7]).tolist() == [number]
        assert np.flatnonzero(row[POWER + 7 : POWER + 14]).tolist() == [number]
        assert row[HOME] == (power == FRANCE)


def test_a_neutral_centre_has_no_owner() -> None:
    sim = begun(concert_powers)
    row = places(sim, FRANCE)[at(sim, "BEL")]
    assert np.flatnonzero(row).tolist() == [CENTRE]


def test_dislodged_units_and_contested_provinces_are_seen() -> None:
    sim = begun(concert_powers)
    s, world = record(sim), sim.game.world.board[0].map
    bur, mun = at(sim, "BUR"), at(sim, "MUN")
    s.unit[mun], s.unit[bur] = 0, unit_at(world, 3, False, bur)
    s.dislodged[bur], s.mark[bur], s.mark[at(sim, "PIC")] = unit_at(world, FRANCE, False, bur), mun, CONTESTED
    s.phase = RETREATS
    refresh(sim)
    row = places(sim, FRANCE)[bur]
    assert np.flatnonzero(row[:POWER]).tolist() == [ARMY, DISLODGED]
    assert np.flatnonzero(row[POWER : POWER + 7]).tolist() == [0, 1]  # the own one, and that of the next power
    assert np.flatnonzero(places(sim, FRANCE)[:, LEFT_EMPTY]).tolist() == [at(sim, "PIC")]
    assert clock(sim, FRANCE)[:3].tolist() == [0, 1, 0]


@pytest.mark.parametrize(("change", "expected"), [(0, {}), (1, {REMOVALS: 0.25}), (-1, {BUILDS: 0.25})])
def test_builds_and_removals_are_shares_of_the_orders(change: int, expected: dict[int, float]) -> None:
    sim = begun()
    s, world = record(sim), sim.game.world.board[0].map
    jorrow, kelmoor = at(sim, "JOR"), at(sim, "KEL")
    if change > 0:
        s.unit[kelmoor] = unit_at(world, BLUE, False, kelmoor)
    elif change < 0:
        s.unit[jorrow] = 0
    s.phase, s.season = ADJUSTMENTS, AUTUMN
    refresh(sim)
    assert clock(sim, BLUE)[[2, IS_AUTUMN]].tolist() == [1, 1]
    assert {k: clock(sim, BLUE)[k] for k in (BUILDS, REMOVALS) if clock(sim, BLUE)[k]} == expected


def test_the_years_that_are_left_fall_from_one_to_zero() -> None:
    sim = begun()
    board = sim.game.world.board[0]
    shares = []
    for year in range(board.map.first_year, board.last_year + 1):
        record(sim).year = year
        sim.refresh()
        shares.append(clock(sim, BLUE)[YEARS_LEFT])
    np.testing.assert_allclose(shares, np.linspace(1, 0, 12), rtol=1e-6)


@pytest.mark.parametrize("power", [BLUE, RED])
def test_a_power_sees_its_next_unit_and_its_orders_so_far(power: int) -> None:
    sim = begun(decisions="unit")
    s, world = record(sim), sim.game.world.board[0].map
    asked = at(sim, "IST")  # blue's second unit; red sees its own there, too
    first = places(sim, power).shape[1] - 3
    orders = (
        order_number(world, MOVE, at(sim, "KEL"), 0),
        order_number(world, SUPPORT_MOVE, asked, at(sim, "WYR")),
        order_number(world, SUPPORT_HOLD, at(sim, "JOR"), 0),
    )
    for j, number in enumerate(orders):
        s.given[power, j] = number
    s.asked = 3
    sim.refresh()
    rows = places(sim, power)
    assert np.flatnonzero(rows[:, first + ENTERED]).tolist() == [at(sim, "KEL")]
    assert np.flatnonzero(rows[:, first + SUPPORTED]).tolist() == [at(sim, "JOR"), at(sim, "WYR")]
    s.asked = 1
    s.next[power] = world.ranked[power, asked]
    sim.refresh()
    rows = places(sim, power)
    assert np.flatnonzero(rows[:, first + NEXT]).tolist() == [asked]
    assert not rows[:, first + SUPPORTED].any()


def test_a_build_counts_as_a_unit_that_comes() -> None:
    sim = begun(decisions="unit")
    s, world = record(sim), sim.game.world.board[0].map
    for key in ("HAL", "JOR"):
        s.unit[at(sim, key)] = 0
    s.phase, s.season = ADJUSTMENTS, AUTUMN
    refresh(sim)
    s.given[BLUE, 0], s.asked = order_number(world, BUILD_FLEET, at(sim, "HAL"), 0), 1
    sim.refresh()
    rows = places(sim, BLUE)
    assert np.flatnonzero(rows[:, rows.shape[1] - 3 + ENTERED]).tolist() == [at(sim, "HAL")]


def test_orders_of_a_phase_have_no_next_unit() -> None:
    phase, unit = (places(begun(decisions=decisions), BLUE) for decisions in ("phase", "unit"))
    np.testing.assert_array_equal(phase, unit[:, :-3])
