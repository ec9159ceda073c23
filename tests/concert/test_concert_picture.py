"""Pictures, texts and clicks of the Concert games."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from games.play import started

from palaestra.core.compile.linker import record_view
from palaestra.games.concert import concert_picture as picture
from palaestra.games.concert.concert_clicks import click
from palaestra.games.concert.concert_map import load_map
from palaestra.games.concert.concert_orders import (
    BUILD_ARMY,
    BUILD_FLEET,
    MOVE,
    SUPPORT_HOLD,
    SUPPORT_MOVE,
    location_of,
    order_number,
    power_of,
    unit_at,
)
from palaestra.games.concert.concert_phases import ADJUSTMENTS, write_acting
from palaestra.games.concert.concert_powers import game
from palaestra.games.concert.concert_rules import write_lists
from palaestra.games.concert.map_drawing import CLOSED, WATER, drawing_of, neighbours
from palaestra.games.concert.order_marks import WRONG

pytestmark = pytest.mark.jitless

FRANCE, GERMANY = 2, 3
BOUNCE = {"PAR": (MOVE, "BUR"), "MUN": (MOVE, "BUR")}


def begun(**options: Any) -> tuple[Any, Any]:
    """A match, and its record."""
    sim = started(game(**options), compiled=False, autoreset_mode="off")
    return sim, record_view(sim.states)[0]


def drawn(sim: Any) -> np.ndarray:
    return np.asarray(picture.draw(sim.game, sim.game.world, sim.states[0]))


def province(sim: Any, key: str) -> int:
    return sim.game.captions.provinces.index(key)


def place(sim: Any, key: str, right: float = 0.0, down: float = 0.0) -> np.ndarray:
    """The pixel at which a unit is drawn, or one beside it, in radii of a unit."""
    made, _ = picture.background(sim.game.world.board[0].map, sim.game.captions)
    return made.places[province(sim, key)] + np.array((right, down)) * made.unit


def pixel(pixels: np.ndarray, at: Any) -> tuple[int, ...]:
    return tuple(int(value) for value in pixels[int(at[1]), int(at[0])])


def amount(pixels: np.ndarray, at: Any, color: Any) -> int:
    """How many pixels near a place are nearly of a colour."""
    x, y = (int(value) for value in at)
    window = pixels[y - 9 : y + 10, x - 9 : x + 10].astype(int)
    return int((np.abs(window - color[:3]).max(axis=2) < 25).sum())


def number(sim: Any, kind: int, *places: str) -> int:
    return order_number(sim.game.world.board[0].map, kind, *[*(province(sim, key) for key in places), 0][:2])


def after(**orders: tuple) -> Any:
    """The match after the first moves: kind and places of the orders in some provinces; the other units hold."""
    sim, s = begun()
    actions = np.zeros((1, 7, sim.game.world.board[0].slots), np.int64)
    for key, order in orders.items():
        power = power_of(s.unit[province(sim, key)])
        own = [p for p in np.flatnonzero(s.unit).tolist() if power_of(s.unit[p]) == power]
        actions[0, power, own.index(province(sim, key))] = number(sim, *order)
    sim.step(actions)
    assert not sim.info["illegal"].any()
    return sim


def test_units_are_of_the_colour_of_their_powers_at_their_places_and_land_of_its_owner() -> None:
    sim, s = begun()
    pixels, colors = drawn(sim), picture.colors_of(sim.game.captions)
    made, _ = picture.background(sim.game.world.board[0].map, sim.game.captions)
    for p in np.flatnonzero(s.unit).tolist():
        x, y = made.places[location_of(sim.game.world.board[0].map, s.unit[p], p)] + np.array((-0.75, 0.15)) * made.unit
        assert pixel(pixels, (x, y)) == colors[power_of(s.unit[p])]
    assert pixel(pixels, place(sim, "NTH", 0, 1)) == WATER
    assert pixel(pixels, place(sim, "PAR", 0, -2)) != pixel(pixels, place(sim, "SPA", 0, -2))


@pytest.mark.parametrize("name", ["standard", "duel20"])
def test_cells_cover_the_map_and_heavy_borders_are_where_no_unit_passes(name: str) -> None:
    world, names = load_map(name)
    made, near = drawing_of(world, names, picture.MAP), neighbours(world)
    left, top, right, bottom = picture.MAP
    corners = [np.array(outline).T for cells in made.cells for outline in cells]
    surface = sum(abs(float(x @ np.roll(y, 1) - y @ np.roll(x, 1))) / 2 for x, y in corners)
    assert surface == pytest.approx((right - left) * (bottom - top), rel=1e-3)
    for kind, curves in enumerate(made.curves):
        for curve in curves:
            middle = (np.array(curve[0]) + curve[-1]) / 2
            a, b = world.province_of[np.hypot(*(made.places - middle).T).argsort()[:2]]
            assert near[a, b] == (kind != CLOSED)


@pytest.mark.check
def test_a_move_is_an_arrow_that_has_a_cross_where_it_failed() -> None:
    sim = after(SEV=(MOVE, "RUM"))
    middle, color = (place(sim, "SEV") + place(sim, "RUM")) / 2, picture.COLORS["russia"]
    assert amount(drawn(sim), middle, color) > amount(drawn(after()), middle, color)
    assert amount(drawn(sim), middle, WRONG) == 0
    bounced = after(**BOUNCE)
    for key in BOUNCE:
        failed = place(bounced, key) + 0.55 * (place(bounced, "BUR") - place(bounced, key))
        assert amount(drawn(bounced), failed, WRONG) > 0


@pytest.mark.check
def test_a_support_is_a_line_and_faint_where_it_fits_no_order() -> None:
    order, moves = (SUPPORT_MOVE, "BRE", "PIC"), {"BRE": (MOVE, "PIC")}
    void, given = (
        (drawn(one) != drawn(other)).any(axis=2)[:, : picture.MAP[2]].sum()
        for one, other in ((after(PAR=order), after()), (after(PAR=order, **moves), after(**moves)))
    )
    assert 0 < void < given


def test_a_unit_that_has_to_retreat_stands_beside_its_place_with_a_red_edge() -> None:
    sim, s = begun()
    beside = place(sim, "MUN", 1.15, -1.15)
    before, p = amount(drawn(sim), beside, WRONG), province(sim, "MUN")
    s.dislodged[p] = unit_at(sim.game.world.board[0].map, FRANCE, False, p)
    assert before == 0 < amount(drawn(sim), beside, WRONG)
    assert pixel(drawn(sim), place(sim, "MUN", 0, 0.7)) == picture.COLORS["germany"]


def test_the_text_names_phase_units_orders_results_and_who_has_won() -> None:
    sim = after(**BOUNCE)
    lines = picture.write(sim.game, sim.game.world, sim.states[0]).split("\n")
    assert lines[0] == "Concert: autumn 1901, moves"
    assert {"france: F BRE, A MAR, A PAR", "germany: A BER H; F KIE H; A MUN - BUR (bounced)"} < set(lines)
    s = record_view(sim.states)[0]
    s.info.winner, s.info.end_reason = FRANCE, 2
    text = picture.write(sim.game, sim.game.world, sim.states[0])
    assert text.startswith("Concert: autumn 1901: france has won (solo)\n")


def clicked(sim: Any, power: int, at: Any) -> int | None:
    """The number of the order that a click means."""
    found = click(sim.game, sim.game.world, sim.states[0], power, int(at[0]), int(at[1]))
    return None if found is None else int(record_view(sim.states)[0].lists[power].ids[found])


def key_of(sim: Any, key: str) -> Any:
    """A pixel of a province's key."""
    x, base = picture.background(sim.game.world.board[0].map, sim.game.captions)[0].labels[province(sim, key)]
    return x + 10, base - 4


def test_a_click_orders_the_unit_with_the_bright_ring_to_hold_to_move_or_to_support() -> None:
    sim, s = begun(decisions="unit")
    ring = place(sim, "BRE", 1.3)
    assert amount(drawn(sim), ring, (255, 209, 92)) > amount(drawn(begun()[0]), ring, (255, 209, 92)) == 0
    assert clicked(sim, FRANCE, place(sim, "BRE")) == 0
    assert clicked(sim, FRANCE, place(sim, "MAO")) == number(sim, MOVE, "MAO")
    assert clicked(sim, FRANCE, key_of(sim, "PIC")) == number(sim, SUPPORT_MOVE, "PAR", "PIC")
    assert clicked(sim, FRANCE, place(sim, "MOS")) is clicked(sim, FRANCE, (2, 2)) is None
    s.unit[province(sim, "GAS")] = unit_at(sim.game.world.board[0].map, GERMANY, False, 0)
    write_lists(s, sim.game.world.board[0])
    assert clicked(sim, FRANCE, place(sim, "GAS")) == number(sim, SUPPORT_HOLD, "GAS")
    assert clicked(sim, FRANCE, place(sim, "GAS", 1.3)) == number(sim, MOVE, "GAS")


def test_a_click_builds_an_army_and_one_on_the_key_a_fleet() -> None:
    sim, s = begun(decisions="unit")
    s.unit[province(sim, "BRE")], s.phase = 0, ADJUSTMENTS
    write_acting(s, sim.game.world.board[0].map)
    write_lists(s, sim.game.world.board[0])
    assert clicked(sim, FRANCE, place(sim, "BRE")) == number(sim, BUILD_ARMY, "BRE")
    assert clicked(sim, FRANCE, key_of(sim, "BRE")) == number(sim, BUILD_FLEET, "BRE")
    assert clicked(sim, GERMANY, place(sim, "KIE")) is None
