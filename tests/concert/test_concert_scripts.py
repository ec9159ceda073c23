"""Scripts of the Concert games: legal orders, as many supports as are needed, and each script beats the one before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from games.play import long_without_the_compiler, started

from palaestra import make_batch
from palaestra.core.compile.linker import record_view
from palaestra.evaluation import evaluate
from palaestra.games.concert import concert_powers
from palaestra.games.concert.concert_map import NOBODY
from palaestra.games.concert.concert_orders import unit_at
from palaestra.games.concert.concert_phases import ADJUSTMENTS, AUTUMN, RETREATS, write_acting
from palaestra.games.concert.concert_scripts import NAMES
from palaestra.games.concert.order_grammar import order_text

pytestmark = pytest.mark.jitless

ENGLAND, FRANCE, GERMANY = 1, 2, 3
DUEL = "palaestra/ConcertDuel-v0"


def position(**units: str) -> Any:
    """The standard map in autumn with some units, as ``france="A PAR, F BRE"``; the first power owns all centres."""
    sim = started(concert_powers.game(), compiled=False, autoreset_mode="off")
    s, (world, names) = record_view(sim.states)[0], board_of(sim)
    s.unit[:], s.owner[:], s.season = 0, names.powers.index(next(iter(units))), AUTUMN
    for power, listed in units.items():
        for unit in listed.split(", "):
            at = names.locations.index(unit[2:])
            number = unit_at(world, names.powers.index(power), unit[0] == "F", at)
            s.unit[world.province_of[at]] = number
    return sim


def board_of(sim: Any) -> tuple[Any, Any]:
    """Map and names."""
    return sim.game.world.board[0].map, sim.game.captions


def own(sim: Any, power: int, *provinces: str) -> None:
    """Gives those of some provinces that are centres to a power."""
    world, names = board_of(sim)
    for key in provinces:
        c = world.centre[names.provinces.index(key)]
        if c >= 0:
            record_view(sim.states)[0].owner[c] = power


def orders_of(sim: Any, script: str, power: int) -> set[str]:
    """What a script orders a power's units, in words; all of it is in the lists."""
    s, (world, names) = record_view(sim.states)[0], board_of(sim)
    write_acting(s, world)
    sim.refresh()
    units, left, due = s.unit.copy(), s.dislodged.copy(), int(s.due[power])
    phase = int(s.phase)
    sim.set_opponent(names.powers[power], script)
    sim.step()
    assert not sim.info["illegal"].any()
    numbers = sim.team_view(names.powers[power], "actions")[0].reshape(-1)
    if phase == ADJUSTMENTS:
        return {order_text(world, names, units, -1, int(number)) for number in numbers[:due]}
    asked = left if phase == RETREATS else units
    places = [p for p in world.ranked[power] if asked[p] != 0 and (asked[p] - 1) % 8 == power]
    pairs = zip(places, numbers, strict=False)
    return {order_text(world, names, units, int(p), int(n), int(left[p])) for p, n in pairs}


# ------------------------------------------------------------------------------------------------------------- legality


@long_without_the_compiler
@pytest.mark.parametrize("script", NAMES[1:])
@pytest.mark.parametrize("id", [DUEL, "palaestra/Concert-v0"])
def test_all_orders_of_scripts_are_in_the_lists_in_all_phases_of_matches_that_are_half_random(script: str, id: str):
    sim = make_batch(id, 6, autoreset_mode="next_step")
    for team in sim.game.teams:
        sim.set_opponent(team, f"{script}:0.5")
    sim.reset(seed=3)
    phases = set()
    for _ in range(60):
        phases |= set(sim.states["phase"].tolist())
        sim.step()
        assert not sim.info["illegal"].any()
    assert phases == {0, 1, 2}


@pytest.mark.slow
@long_without_the_compiler
@pytest.mark.parametrize("script", NAMES[1:])
def test_a_power_plays_the_same_match_whether_it_gives_its_orders_at_once_or_one_by_one(script: str):
    ends = []
    for decisions in ("phase", "unit"):
        sim = make_batch(DUEL, 8, autoreset_mode="off", decisions=decisions)
        for team in sim.game.teams:
            sim.set_opponent(team, script)
        sim.reset(seed=5)
        while not (sim.info["end_reason"] != 0).all():
            sim.step()
        ends.append([sim.states[name].tolist() for name in ("unit", "owner", "order", "year")])
    assert ends[0] == ends[1]


@long_without_the_compiler
def test_matches_of_the_same_lane_differ():
    sim = make_batch(DUEL, 1, autoreset_mode="off")
    for team in sim.game.teams:
        sim.set_opponent(team, "province_value")
    sim.reset(seed=0)
    first = []
    for _ in range(8):
        sim.step()
        first.append(tuple(sim.states["order"][0].tolist()))
        sim.reset()
    assert len(set(first)) > 1


# ------------------------------------------------------------------------------------------------------------ positions


def test_two_units_take_a_held_centre():
    sim = position(france="A BUR, A RUH", germany="A MUN")
    own(sim, GERMANY, "MUN")
    attack = {"A BUR - MUN", "A RUH S A BUR - MUN"}, {"A RUH - MUN", "A BUR S A RUH - MUN"}
    assert orders_of(sim, "greedy_support", FRANCE) in attack


@pytest.mark.check
def test_the_search_makes_legal_orders_as_plain_python():
    sim = position(france="A BUR, A RUH", germany="A MUN")
    assert {order[:5] for order in orders_of(sim, "search", FRANCE)} == {"A BUR", "A RUH"}


def test_as_many_support_as_are_needed_against_a_supported_defence():
    sim = position(france="A BUR, A RUH, A TYR", germany="A MUN, A KIE")
    own(sim, GERMANY, "MUN", "KIE")
    orders = orders_of(sim, "greedy_support", FRANCE)
    assert len([order for order in orders if order.endswith("- MUN") and " S " in order]) == 2


def test_a_threatened_centre_is_held_with_support():
    sim = position(france="A PAR, A GAS", germany="A BUR, A PIC")
    held, supported = sorted(orders_of(sim, "greedy_support", FRANCE), reverse=True)
    assert held in ("A PAR H", "A PAR S A GAS")
    assert supported == "A GAS S A PAR"


def test_an_army_is_convoyed_to_a_centre_of_nobody():
    sim = position(england="A YOR, F NTH")
    own(sim, NOBODY, "NWY", "POR")
    assert orders_of(sim, "greedy_support", ENGLAND) == {"A YOR - NWY via", "F NTH C A YOR - NWY"}


def test_a_unit_goes_to_a_centre_beside_it_which_nobody_owns():
    sim = position(france="A SPA")
    own(sim, NOBODY, "POR")
    assert orders_of(sim, "greedy_support", FRANCE) == {"A SPA - POR"}


def test_units_retreat_to_different_places_or_disband():
    sim = position(germany="A PAR, A MAR")
    s, (world, names) = record_view(sim.states)[0], board_of(sim)
    s.phase = RETREATS
    for key in ("PAR", "MAR"):
        s.dislodged[names.provinces.index(key)] = unit_at(world, FRANCE, False, 0)
    goals = [order.split("- ")[-1] for order in orders_of(sim, "province_value", FRANCE)]
    assert len(set(goals)) == 2


def test_builds_are_in_different_centres():
    sim = position(france="A SPA", germany="A MUN")
    own(sim, GERMANY, *board_of(sim)[1].provinces)
    own(sim, FRANCE, "SPA", "PAR", "MAR")
    record_view(sim.states)[0].phase = ADJUSTMENTS
    assert {order.split()[2][:3] for order in orders_of(sim, "province_value", FRANCE)} == {"PAR", "MAR"}


def test_the_unit_far_from_all_centres_of_others_is_removed():
    sim = position(france="A MAR, F BAR", germany="A MUN")
    own(sim, GERMANY, "MUN", "PAR")
    own(sim, NOBODY, *board_of(sim)[1].provinces)
    own(sim, FRANCE, "MAR")
    record_view(sim.states)[0].phase = ADJUSTMENTS
    assert orders_of(sim, "province_value", FRANCE) == {"remove F BAR"}


# ------------------------------------------------------------------------------------------------------------- strength


@long_without_the_compiler
@pytest.mark.parametrize(("stronger", "weaker", "least"), [
    ("province_value", "random", 0.9),
    ("greedy_support", "province_value", 0.55),
    ("search", "greedy_support", 0.55),
])  # fmt: skip
def test_each_script_beats_the_one_before(stronger: str, weaker: str, least: float):
    table = evaluate(DUEL, stronger, weaker, matches=200)
    assert table.score_interval[0] > least, (table.score, table.score_interval)


@long_without_the_compiler
def test_one_power_of_seven_gets_more_than_its_share_against_weaker_ones():
    shares = []
    for number in range(7):
        sim = make_batch("palaestra/Concert-v0", 8, autoreset_mode="off")
        for k, team in enumerate(sim.game.teams):
            sim.set_opponent(team, "greedy_support" if k == number else "province_value")
        sim.reset(seed=number)
        total = np.zeros(8)
        for _ in range(80):
            running = sim.info["end_reason"] == 0
            sim.step()
            total += np.where(running, sim.rewards[:, number], 0.0)
        shares.append(total.mean())
    assert np.mean(shares) > 0.22
