"""``form="text"`` of the Concert games: what a power reads, and orders that are written and read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from games.play import started

from palaestra.core.compile.linker import record_view
from palaestra.core.faces.agent_io import AgentIO
from palaestra.games.concert import concert_duel, concert_powers
from palaestra.games.concert.concert_orders import BUILD_FLEET, MOVE, order_number, unit_at
from palaestra.games.concert.concert_phases import ADJUSTMENTS, RETREATS, write_acting
from palaestra.games.concert.order_reader import READ_CHARACTERS, READ_ORDERS, orders_in

pytestmark = pytest.mark.jitless

FRANCE = 2


def begun(factory: Any = concert_powers.game, **options: Any) -> Any:
    return started(factory(form="text", **options), compiled=False, seed=4, autoreset_mode="off")


def power(sim: Any, number: int = FRANCE) -> tuple[Any, Any]:
    """The codec, and what it may read of a power."""
    io = AgentIO(sim, (number,))
    return io.codec, io.agent_view()


def shown(sim: Any, number: int = FRANCE) -> list[str]:
    """The lines that a power reads."""
    codec, view = power(sim, number)
    return codec.encode(view).split("\n")


def read(sim: Any, turn: str) -> list[int]:
    """Numbers of France's orders in a turn."""
    codec, view = power(sim)
    return codec.decode(view, turn).tolist()


def number(sim: Any, kind: int, place: str) -> int:
    """An order's number, with its place by name."""
    return order_number(sim.game.world.board[0].map, kind, sim.game.captions.locations.index(place), 0)


def turn_to(sim: Any, phase: int, *without: str) -> Any:
    """Goes on to a phase, with no units in some provinces."""
    s = record_view(sim.states)[0]
    for key in without:
        s.unit[sim.game.captions.provinces.index(key)] = 0
    s.phase = phase
    write_acting(s, sim.game.world.board[0].map)
    sim.refresh()
    return sim


@pytest.mark.parametrize("decisions", ["phase", "unit"])
def test_a_power_reads_phase_centres_units_and_its_orders(decisions: str) -> None:
    lines = shown(begun(decisions=decisions))
    assert lines[0] == "spring 1901, moves. You are france. 18 centres win."
    assert "france 3: BRE MAR PAR" in lines
    assert "russia: A MOS, F SEV, F STP/SC, A WAR" in lines
    assert any(line.startswith("F BRE H; F BRE - ENG; F BRE - GAS") for line in lines)
    assert any(line.startswith("A PAR H") for line in lines) == (decisions == "phase")


def test_a_power_reads_the_last_orders_and_what_became_of_them() -> None:
    sim = begun()
    orders = np.zeros((1, 7, sim.game.world.board[0].slots), np.int64)
    for k, turn in ((FRANCE, "A PAR - BUR"), (3, "A MUN - BUR\nF KIE - DEN")):
        codec, view = power(sim, k)
        orders[0, k] = codec.decode(view, turn)
    sim.step(orders)
    lines = shown(sim)
    assert "last moves:" in lines
    assert "france: F BRE H; A MAR H; A PAR - BUR (bounced)" in lines
    assert "germany: A BER H; F KIE - DEN; A MUN - BUR (bounced)" in lines


def test_a_power_reads_who_is_dislodged_and_where_it_may_go() -> None:
    sim = begun()
    s, world, names = record_view(sim.states)[0], sim.game.world.board[0].map, sim.game.captions.provinces
    bur, mun = names.index("BUR"), names.index("MUN")
    s.unit[bur], s.dislodged[bur], s.mark[bur] = unit_at(world, 3, False, bur), unit_at(world, FRANCE, False, bur), mun
    lines = shown(turn_to(sim, RETREATS, "MUN"))
    assert lines[lines.index("dislodged:") + 1] == "france: A BUR"
    assert lines[-1] == "A BUR disband; A BUR - BEL; A BUR - GAS; A BUR - PIC; A BUR - RUH"
    assert shown(sim, 0)[-1] == "You have nothing to order."


def test_a_long_list_of_orders_is_cut_and_says_how_much_is_left_out() -> None:
    sim = begun()
    s, world = record_view(sim.states)[0], sim.game.world.board[0].map
    s.unit[sim.game.captions.provinces.index("ENG")] = unit_at(world, FRANCE, True, 0)
    sim.refresh()
    line = next(line for line in shown(sim) if line.startswith("F ENG H"))
    assert line.count(";") == 11
    assert line.endswith("more")


@pytest.mark.check
@pytest.mark.parametrize("decisions", ["phase", "unit"])
@pytest.mark.parametrize("factory", [concert_powers.game, concert_duel.game])
def test_each_order_that_may_be_given_is_written_and_read_as_it_is(factory: Any, decisions: str) -> None:
    sim, phases, count = begun(factory, decisions=decisions), set(), 0
    for team in sim.game.teams:
        sim.set_opponent(team, "random")
    for _ in range(6 if decisions == "phase" else 16):
        phases.add(int(sim.states["phase"][0]))
        for agent in range(len(sim.game.agents)):
            codec, view = power(sim, agent)
            for action in actions_of(sim, view):
                assert np.array_equal(codec.decode(view, codec.encode_action(view, action)), action)
                count += 1
        sim.step()
    assert ADJUSTMENTS in phases
    assert count > 30 * len(sim.game.agents)


def test_both_powers_of_a_duel_read_the_same_map_though_their_numbers_are_of_their_own_views() -> None:
    sim = begun(concert_duel.game)
    blue, red = shown(sim, 0), shown(sim, 1)
    assert blue[blue.index("units:") : -3] == red[red.index("units:") : -3]
    assert blue[-3].startswith("F HAL H")
    assert red[-3].startswith("F AST H")


def actions_of(sim: Any, view: Any) -> list[Any]:
    """Actions of one order each that is not the first of its list."""
    if sim.game.world.board[0].single:
        return list(range(int(view.mask["order"].sum())))
    found = []
    for slot, listing in enumerate(view.mask["orders"]):
        for order in listing["ids"][1 : listing["count"] : 3]:
            found.append(np.zeros(sim.game.world.board[0].slots, np.int64))
            found[-1][slot] = order
    return found


@pytest.mark.parametrize(
    "turn", ["F BRE - MAO\nA PAR - GAS", "a par - gas; f bre - mao;", "A PAR - GAS;;\nF BRE - MAO"]
)
def test_orders_stand_on_lines_or_between_semicolons_in_any_order(turn: str) -> None:
    sim = begun()
    assert read(sim, turn)[:4] == [number(sim, MOVE, "MAO"), 0, number(sim, MOVE, "GAS"), 0]


def test_the_first_orders_of_the_last_pair_of_tags_are_read_and_other_text_is_free() -> None:
    tagged = (
        "I could <orders>A PAR - BUR</orders>, but\n<orders>\nA PAR - GAS\n</orders> is safer; A MAR - SPA. <orders"
    )
    assert orders_in(tagged) == [(3, "A PAR - GAS")]
    assert orders_in("A PAR - GAS </orders>") == [(1, "A PAR - GAS </orders>")]
    assert len(orders_in("A PAR H;" * 1000)) == READ_ORDERS + 1
    assert orders_in(" " * READ_CHARACTERS + "A PAR H") == []


@pytest.mark.parametrize(
    ("turn", "message"),
    [
        ("A MAR - SPA\nA PAR - LON", r"order 2 \(line 2\): 'A PAR - LON': it cannot be ordered now; near are 'A PAR"),
        ("A PAR -> BUR", r"order 1 \(line 1\): 'A PAR -> BUR': behind a unit stands .*; near are 'A PAR - BUR'"),
        ("A PAX H", r"order 1 \(line 1\): 'A PAX H': there is no place 'PAX'"),
        ("\nA MUN - BUR", r"order 1 \(line 2\): 'A MUN - BUR': A MUN is a unit of germany"),
        ("A BUR - PAR", r"order 1 \(line 1\): 'A BUR - PAR': you have no unit to order in BUR"),
        ("A BRE - PAR", r"order 1 \(line 1\): 'A BRE - PAR': the unit there is F BRE; near are 'F BRE"),
        ("A PAR H; A PAR - BUR", r"order 2 \(line 1\): 'A PAR - BUR': a second order for A PAR"),
        ("waive", r"order 1 \(line 1\): 'waive': 'waive' is for builds"),
        ("A XXX H;" * 8, r"order 5 .*; 3 more errors$"),
    ],
)
def test_a_refusal_says_which_orders_are_wrong_where_they_stand_and_what_is_near(turn: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read(begun(repair="refuse"), turn)


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
    assert (sim.states["unit"][0, sim.game.captions.provinces.index("PAR")] == 0) == (illegal == 0)


def test_a_wrong_order_of_one_unit_is_counted_too() -> None:
    sim = begun(decisions="unit")
    orders = np.zeros((1, 7), np.int64)
    codec, view = power(sim)
    orders[0, FRANCE] = codec.decode(view, "F BRE - PAR")
    sim.step(orders)
    assert sim.info["illegal"][0, FRANCE] == 1


def test_a_power_reads_what_it_may_build_and_builds_in_no_province_twice() -> None:
    sim = turn_to(begun(repair="refuse"), ADJUSTMENTS, "BRE", "PAR")
    assert shown(sim)[-2:] == ["you may build 2, out of", "waive; build A BRE; build F BRE; build A PAR"]
    assert read(sim, "waive\nbuild F BRE")[:2] == [0, number(sim, BUILD_FLEET, "BRE")]
    for turn, message in (("build F BRE; build A BRE", "second order for BRE"), ("waive; waive; waive", "than the 2")):
        with pytest.raises(ValueError, match=message):
            read(sim, turn)
