"""Fleets that may be ordered to convoy: those of a chain between two coasts that has no shorter chain within it."""

import numpy as np
import pytest
from concert.random_phases import NAMES, WORLD
from concert.reference_adjudicator import Resolver, Unit

from palaestra.games.concert.concert_map import COAST, SEA
from palaestra.games.concert.concert_orders import CONVOY, VIA, board_of, is_on_way
from palaestra.games.concert.concert_sight import template_of

pytestmark = pytest.mark.jitless

BOARD = board_of(WORLD, template_of(WORLD), rules=1, score=0, last_year=1915, single=0)
SEAS, COASTS = np.flatnonzero(WORLD.ground == SEA), np.flatnonzero(WORLD.ground == COAST)


def listed(fleets: list[int], start: int, goal: int) -> set[int]:
    """Which of these fleets the lists of orders let convoy."""
    numbers = {p: int(BOARD.sea_number[p]) for p in fleets}
    others = {p: sum(1 << number for q, number in numbers.items() if q != p) for p in fleets}
    ends = BOARD.coast_number[start], BOARD.coast_number[goal]
    return {p for p in fleets if is_on_way(BOARD, numbers[p], *ends, others[p])}


def needed(fleets: list[int], start: int, goal: int) -> set[int]:
    """Which of these fleets are part of a chain without a fleet too many, by the reference."""
    units = {p: Unit(0, True, CONVOY, start, goal) for p in fleets} | {start: Unit(0, False, VIA, goal, 0)}
    return {p for route in Resolver(WORLD, units, "2023").routes[start] for p in route}


def test_a_fleet_beside_a_shorter_chain_does_not_convoy():
    irish, channel, atlantic, start, goal = map(NAMES.provinces.index, ("IRI", "ENG", "MAO", "LVP", "SPA"))
    assert listed([irish, channel, atlantic], start, goal) == {irish, atlantic}


def test_each_fleet_of_a_chain_may_convoy_and_hardly_another_one():
    rng, right, wrong = np.random.default_rng(1), 0, 0
    for _ in range(300):
        fleets = SEAS[rng.random(len(SEAS)) < rng.choice([0.4, 0.6, 0.8])].tolist()
        start, goal = rng.choice(COASTS, 2, replace=False).tolist()
        offered, expected = listed(fleets, start, goal), needed(fleets, start, goal)
        assert expected <= offered
        right, wrong = right + len(expected), wrong + len(offered - expected)
    assert right > 100
    assert wrong <= 0.03 * right
