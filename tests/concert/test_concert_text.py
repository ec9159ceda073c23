"""``form="text"`` of the Concert games: what a power reads, and orders that are written and read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from games.play import started

from palaestra.core.compile.linker import record_view
from palaestra.core.faces.agent_io import AgentIO
from palaestra.games.concert.concert_orders import BUILD_FLEET, MOVE, order_number, unit_at
from palaestra.games.concert.concert_phases import ADJUSTMENTS, RETREATS, write_acting
from palaestra.games.concert.concert_powers import game
from palaestra.games.concert.order_reader import READ_CHARACTERS, READ_ORDERS, orders_in

pytestmark = pytest.mark.jitless

FRANCE = 2


@pytest.fixture(params=["phase", "unit"])
def match(request: Any) -> Any:
    """A match, before its first moves, for both sizes of decisions."""
    return begun(decisions=request.param)


def begun(**options: Any) -> Any:
    return started(game(form="text", **options), compiled=False, autoreset_mode="off")


def power(sim: Any, number: int = FRANCE) -> tuple[Any, Any]:
    """The codec, and what it may read of a power."""
    io = AgentIO(sim, (number,))
    return io.codec, io.agent_view()


def read(sim: Any, turn: str) -> list[int]:
    """Numbers of France's orders in a turn."""
    codec, view = power(sim)
    return codec.decode(view, turn).tolist()


def number(sim: Any, kind: int, *places: str) -> int:
    """An order's number: `order_number` with the places by name."""
    locations = sim.game.captions.locations
    return order_number(sim.game.world.board[0].map, kind, *[*map(locations.index, places), 0, 0][:2])


def turn_to(sim: Any, phase: int) -> None:
    """Goes on to a phase with the units that are there."""
    record(sim).phase = phase
    write_acting(record(sim), sim.game.world.board[0].map)
    sim.refresh()


def record(sim: Any) -> Any:
    """The match record."""
    return record_view(sim.states)[0]


def dislodge(sim: Any) -> None:
    """A position in which France has to retreat from BUR, after the Germans came from MUN."""
    s, names, world = record(sim), sim.game.captions.provinces, sim.game.world.board[0].map
    bur, mun = names.index("BUR"), names.index("MUN")
    s.unit[mun], s.unit[bur] = 0, unit_at(world, 3, False, bur)
    s.last_unit[bur], s.dislodged[bur], s.mark[bur] = (unit_at(world, FRANCE, False, bur),) * 2 + (mun,)
    turn_to(sim, RETREATS)


def test_a_power_reads_phase_centres_units_and_its_orders(match: Any) -> None:
    codec, view = power(match)
    text = codec.encode(view)
    lines = text.split("\n")
    assert lines[0] == "spring 1901, moves. You are france. 18 centres win."
    assert "france 3: BRE MAR PAR" in lines
    assert "russia: A MOS, F SEV, F STP/SC, A WAR" in lines
    assert "F BRE H; F BRE - ENG; F BRE - GAS" in text
    assert ("A PAR H" in text) == (match.game.world.board[0].single == 0)
    assert "last moves:" not in text


def test_a_power_reads_the_last_orders_and_what_became_of_them() -> None:
    sim = begun()
    actions = {}
    for k, turn in enumerate(("", "", "A PAR - BUR", "A MUN - BUR\nF KIE - DEN", "", "", "")):
        codec, view = power(sim, k)
        actions[k] = codec.decode(view, turn)
    sim.step(np.stack([*actions.values()])[None])
    codec, view = power(sim)
    text = codec.encode(view)
    assert "last moves:" in text
    assert "france: F BRE H; A MAR H; A PAR - BUR (bounced)" in text
    assert "germany: A BER H; F KIE - DEN; A MUN - BUR (bounced)" in text


def test_a_power_reads_who_is_dislodged_and_where_it_may_go() -> None:
    sim = begun()
    dislodge(sim)
    codec, view = power(sim)
    lines = codec.encode(view).split("\n")
    assert lines[lines.index("dislodged:") + 1] == "france: A BUR"
    assert lines[-1] == "A BUR disband; A BUR - BEL; A BUR - GAS; A BUR - PIC; A BUR - RUH"
    codec, view = power(sim, 0)
    assert codec.encode(view).endswith("You have nothing to order.")


def test_a_power_reads_how_many_units_it_may_build() -> None:
    sim = begun()
    record(sim).unit[sim.game.captions.provinces.index("BRE")] = 0
    turn_to(sim, ADJUSTMENTS)
    codec, view = power(sim)
    assert codec.encode(view).endswith("you may build 1, out of\nwaive; build A BRE; build F BRE")


def test_a_long_list_of_orders_is_cut_and_says_how_much_is_left_out() -> None:
    sim = begun()
    record(sim).unit[sim.game.captions.provinces.index("ENG")] = unit_at(sim.game.world.board[0].map, FRANCE, True, 0)
    sim.refresh()
    codec, view = power(sim)
    line = next(line for line in codec.encode(view).split("\n") if line.startswith("F ENG H"))
    assert line.count(";") == 11
    assert line.endswith("more")


@pytest.mark.check
@pytest.mark.parametrize("decisions", ["phase", "unit"])
def test_each_order_that_may_be_given_is_written_and_read_as_it_is(decisions: str) -> None:
    sim = started(game(form="text", decisions=decisions), compiled=False, seed=4, autoreset_mode="off")
    for team in sim.game.teams:
        sim.set_opponent(team, "random")
    phases, count = set(), 0
    for _ in range(6 if decisions == "phase" else 16):
        phases.add(int(sim.states["phase"][0]))
        for agent in range(7):
            codec, view = power(sim, agent)
            for action in actions_of(sim, view):
                assert np.array_equal(codec.decode(view, codec.encode_action(view, action)), action)
                count += 1
        sim.step()
    assert ADJUSTMENTS in phases
    assert count > 500


def actions_of(sim: Any, view: Any) -> list[Any]:
    """Actions with one order each that is not the first of its list."""
    if sim.game.world.board[0].single:
        return list(range(int(view.mask["order"].sum())))
    found = []
    for slot, listing in enumerate(view.mask["orders"]):
        for order in listing["ids"][1 : listing["count"] : 3]:
            found.append(np.zeros(sim.game.world.board[0].slots, np.int64))
            found[-1][slot] = order
    return found


@pytest.mark.parametrize(
    "turn", ["F BRE - MAO\nA PAR - GAS", "a par - gas;  F bre - mao ;", "A PAR - GAS\n\nF BRE - MAO"]
)
def test_orders_stand_on_lines_or_between_semicolons_in_any_order(turn: str) -> None:
    sim = begun()
    assert read(sim, turn)[:4] == [number(sim, MOVE, "MAO"), 0, number(sim, MOVE, "GAS"), 0]


def test_orders_in_the_last_pair_of_tags_are_read_and_other_text_is_free() -> None:
    tagged = (
        "I could <orders>A PAR - BUR</orders>, but\n<orders>\nA PAR - GAS\n</orders> is safer; A MAR - SPA. <orders"
    )
    assert orders_in(tagged) == [(3, "A PAR - GAS")]
    assert orders_in("A PAR - GAS </orders>") == [(1, "A PAR - GAS </orders>")]


def test_only_the_first_orders_of_a_long_turn_are_read() -> None:
    assert len(orders_in("A PAR H;" * 1000)) == READ_ORDERS + 1
    assert orders_in(" " * READ_CHARACTERS + "A PAR H") == []


@pytest.mark.parametrize(
    ("turn", "message"),
    [
        (
            "A MAR - SPA\nA PAR - LON",
            r"order 2 \(line 2\): 'A PAR - LON': it cannot be ordered now; near are 'A PAR",
        ),
        ("A PAR -> BUR", r"order 1 \(line 1\): 'A PAR -> BUR': behind a unit stands .*; near are 'A PAR - BUR'"),
        ("A PAX H", r"order 1 \(line 1\): 'A PAX H': there is no place 'PAX'"),
        ("\nA MUN - BUR", r"order 1 \(line 2\): 'A MUN - BUR': A MUN is a unit of germany"),
        ("A BUR - PAR", r"order 1 \(line 1\): 'A BUR - PAR': you have no unit to order in BUR"),
        ("A BRE - PAR", r"order 1 \(line 1\): 'A BRE - PAR': the unit there is F BRE; near are 'F BRE"),
        ("A PAR H; A PAR - BUR", r"order 2 \(line 1\): 'A PAR - BUR': a second order for A PAR"),
        ("waive", r"order 1 \(line 1\): 'waive': 'waive' is for builds"),
        ("<orders>\nA PAR</orders>", r"order 1 \(line 2\): 'A PAR': an order has at least three words"),
    ],
)
def test_a_refusal_says_which_order_is_wrong_where_it_stands_and_what_is_near(turn: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read(begun(repair="refuse"), turn)


def test_a_refusal_tells_five_errors_and_counts_the_others() -> None:
    with pytest.raises(ValueError, match=r"order 5 .*; 3 more errors$"):
        read(begun(repair="refuse"), "A XXX H;" * 8)


@pytest.mark.parametrize(
    ("turn", "illegal"),
    [("A PAR - BUR", 0), ("A PAR - LON", 1), ("A PAR - LON\nF BRE - PAR", 2), ("no idea", 1), ("A PAR H; A PAR H", 1)],
)
def test_a_wrong_order_holds_and_is_counted(turn: str, illegal: int) -> None:
    sim = begun()
    orders = np.zeros((1, 7, sim.game.world.board[0].slots), np.int64)
    orders[0, FRANCE] = read(sim, turn)
    sim.step(orders)
    assert sim.info["illegal"][0].tolist() == [0, 0, illegal, 0, 0, 0, 0]
    paris = sim.game.captions.provinces.index("PAR")
    assert (sim.states["unit"][0, paris] == 0) == (turn == "A PAR - BUR")


def test_a_wrong_order_of_one_unit_is_counted_too() -> None:
    sim = begun(decisions="unit")
    orders = np.zeros((1, 7), np.int64)
    codec, view = power(sim)
    orders[0, FRANCE] = codec.decode(view, "F BRE - PAR")
    sim.step(orders)
    assert sim.info["illegal"][0, FRANCE] == 1


def test_builds_fill_the_places_in_their_order_and_a_second_one_in_a_province_is_wrong() -> None:
    sim = begun(repair="refuse")
    for key in ("BRE", "PAR"):
        record(sim).unit[sim.game.captions.provinces.index(key)] = 0
    turn_to(sim, ADJUSTMENTS)
    assert read(sim, "waive\nbuild F BRE")[:2] == [0, number(sim, BUILD_FLEET, "BRE")]
    with pytest.raises(ValueError, match="a second order for BRE"):
        read(sim, "build F BRE; build A BRE")
    with pytest.raises(ValueError, match="one more than the 2"):
        read(sim, "build F BRE; waive; build A PAR")


def test_what_may_not_be_ordered_has_no_text() -> None:
    sim = begun()
    codec, view = power(sim)
    action = np.zeros(sim.game.world.board[0].slots, np.int64)
    action[0] = number(sim, MOVE, "MOS")
    with pytest.raises(ValueError, match="may not be given"):
        codec.encode_action(view, action)
