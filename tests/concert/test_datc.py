"""Adjudicator test cases by number: from a position and its orders follow a board, dislodged units, results of orders.

The cases stand in ``datc.toml``. All cases of the same rules are lanes of one batch. Orders that a unit may not be
given are replaced by the no-op and count as void.
"""

import functools
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from games.play import simulation

from palaestra.core.compile.linker import jit_disabled
from palaestra.games.concert.adjudication import RESULTS
from palaestra.games.concert.concert_map import load_map
from palaestra.games.concert.concert_orders import is_fleet, location_of, power_of, unit_at
from palaestra.games.concert.concert_phases import ADJUSTMENTS, AUTUMN, MOVES, RETREATS, write_acting
from palaestra.games.concert.concert_powers import game
from palaestra.games.concert.order_grammar import read_order

pytestmark = pytest.mark.check

CASES = tomllib.loads((Path(__file__).parent / "datc.toml").read_text("utf-8"))["case"]
NUMBERS = {"2000": 158, "2023": 164}
"""Numbers of DATC 2.5, for the rules of 2000, and of DATC 3.0, for those of 2023."""
START = {"movement": (MOVES, 0), "retreat": (MOVES, 0), "build": (ADJUSTMENTS, AUTUMN)}
"""Phase and season in which a case begins."""
WORLD, NAMES = load_map("standard")
PROVINCE = {key: number for number, key in enumerate(NAMES.provinces)}
POWERS = [power.capitalize() for power in NAMES.powers]


class Outcome(NamedTuple):
    """A position after its orders: units by power, provinces of dislodged units, results by province."""

    board: dict[str, set[str]]
    dislodged: set[str]
    results: dict[str, str]


def cases_of(rules: str) -> list[dict[str, Any]]:
    """The cases that hold for some rules and that orders can express."""
    return [case for case in CASES if rules in case["rules"] and "skip" not in case]


def name_of(case: dict[str, Any]) -> str:
    """Number of a case, and which part of it."""
    return case["number"] + case.get("part", "")


def each(key: str = "number") -> pytest.MarkDecorator:
    """One test a case that says something about ``key``, for each of its rules."""
    chosen = [(rules, case) for rules in NUMBERS for case in cases_of(rules) if key in case]
    return pytest.mark.parametrize(
        ("rules", "case"), [pytest.param(*pair, id=f"{name_of(pair[1])}-{pair[0]}") for pair in chosen]
    )


# --------------------------------------------------------------------------------------------------------------- tests


@each()
def test_orders_lead_to_the_board_of_the_case(rules: str, case: dict[str, Any]):
    board = outcomes(rules)[name_of(case)].board
    assert board == {power: set(units) for power, units in case["after"].items()}, case["title"]


@each()
def test_units_are_dislodged_where_the_case_says(rules: str, case: dict[str, Any]):
    assert outcomes(rules)[name_of(case)].dislodged == set(case.get("dislodged", [])), case["title"]


@each("results")
def test_orders_have_the_results_of_the_case(rules: str, case: dict[str, Any]):
    results = outcomes(rules)[name_of(case)].results
    assert {province: results[province] for province in case["results"]} == case["results"], case["title"]


@pytest.mark.parametrize("rules", NUMBERS)
def test_all_numbers_are_there_and_none_is_there_twice(rules: str):
    cases = [case for case in CASES if rules in case["rules"]]
    assert len({case["number"] for case in cases}) == NUMBERS[rules]
    assert max(Counter(map(name_of, cases)).values()) == 1


# ------------------------------------------------------------------------------------------------------------ positions


@functools.cache
def outcomes(rules: str) -> dict[str, Outcome]:
    """What becomes of all cases of some rules, by name."""
    cases = cases_of(rules)
    sim = simulation(game(rules=rules), len(cases), compiled=not jit_disabled())
    sim.reset(seed=1)
    records = sim.states.copy()
    for record, case in zip(records.view(np.recarray), cases, strict=True):
        write_position(record, case)
    sim.load_states(records)
    refused = play(sim, [case.get("before") or case.get("orders", {}) for case in cases])
    states = sim.states.copy()
    results = [results_of(state, provinces) for state, provinces in zip(states, refused, strict=True)]
    retreats = np.array([case["phase"] == "retreat" for case in cases]) & (states["phase"] == RETREATS)
    play(sim, [case.get("orders", {}) if retreats[lane] else {} for lane, case in enumerate(cases)], retreats)
    return {
        name_of(case): Outcome(board_of(units), {at for at, what in becomes.items() if what == "dislodged"}, becomes)
        for case, units, becomes in zip(cases, sim.states["unit"], results, strict=True)
    }


def write_position(s: Any, case: dict[str, Any]) -> None:
    """Puts the units and the owners of a case into a match record."""
    s.phase, s.season = START[case["phase"]]
    s.unit[:], s.owner[:] = 0, -1
    for power, units in case["units"].items():
        for form, key in map(str.split, units):
            place = NAMES.locations.index(key)
            s.unit[WORLD.province_of[place]] = unit_at(WORLD, POWERS.index(power), form == "F", place)
    for power, centres in case.get("centres", {}).items():
        for key in centres:
            s.owner[WORLD.centre[PROVINCE[key]]] = POWERS.index(power)
    write_acting(s, WORLD)


def board_of(units: np.ndarray) -> dict[str, set[str]]:
    """Units by power, as the cases name them."""
    board: dict[str, set[str]] = {}
    for province in np.flatnonzero(units).tolist():
        unit = units[province]
        words = f"{'F' if is_fleet(unit) else 'A'} {NAMES.locations[location_of(WORLD, unit, province)]}"
        board.setdefault(POWERS[power_of(unit)], set()).add(words)
    return board


def results_of(state: np.void, refused: set[int]) -> dict[str, str]:
    """Results by province; an order that was refused is void unless its unit was dislodged."""
    results = {key: RESULTS[state["result"][number]] for key, number in PROVINCE.items()}
    for province in refused:
        if results[NAMES.provinces[province]] != "dislodged":
            results[NAMES.provinces[province]] = "void"
    return results


# --------------------------------------------------------------------------------------------------------------- orders


def play(sim: Any, orders: list[dict[str, list[str]]], lanes: np.ndarray | None = None) -> list[set[int]]:
    """One decision. Returns the provinces, by lane, whose orders were refused."""
    actions = np.zeros(sim.actions.shape, sim.actions.dtype)
    refused = [
        write_orders(state, lists, given, actions[lane])
        for lane, (state, lists, given) in enumerate(zip(sim.states, sim.legal["orders"], orders, strict=True))
    ]
    sim.step(actions, lanes)
    assert not sim.info["illegal"].any()
    return refused


def write_orders(state: np.void, lists: np.ndarray, orders: dict[str, list[str]], row: np.ndarray) -> set[int]:
    """Writes the orders of a match into its actions. Returns the provinces whose orders were refused."""
    if state["phase"] == ADJUSTMENTS:
        for power, texts in orders.items():
            index = POWERS.index(power)
            write_adjustments(state["due"][index], lists[index, 0], texts, row[index])
        return set()
    units = state["unit"] if state["phase"] == MOVES else state["dislodged"]
    refused = set()
    for power, texts in orders.items():
        index = POWERS.index(power)
        slots = [p for p in WORLD.ranked[index].tolist() if units[p] and power_of(units[p]) == index]
        for order in (read_order(WORLD, NAMES, text) for text in texts):
            province = WORLD.province_of[order.place]
            is_own = province in slots and is_fleet(units[province]) == (order.unit == "F")
            if is_own and order.number in numbers_of(lists[index, slots.index(province)]):
                row[index, slots.index(province)] = order.number
            else:
                refused.add(province)
    return refused


def write_adjustments(due: int, listing: np.void, texts: list[str], row: np.ndarray) -> None:
    """Writes as many builds or removals of a power as are due, without those that it may not give."""
    numbers = [read_order(WORLD, NAMES, text).number for text in texts]
    given = [number for number in numbers if number in numbers_of(listing)][:due]
    row[: len(given)] = given


def numbers_of(listing: np.void) -> list[int]:
    """Numbers of the orders of a list."""
    return listing["ids"][: listing["count"]].tolist()
