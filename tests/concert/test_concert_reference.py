"""Adjudication next to a slow one written from the published method: the same board, battles and results."""

from collections import Counter

import numpy as np
import pytest
from concert.random_phases import WORLD, Phase, phases, units_of
from concert.reference_adjudicator import Outcome, Unit, adjudicate
from games.play import simulation

from palaestra.core.compile.linker import jit_disabled
from palaestra.games.concert.adjudication import RESULTS
from palaestra.games.concert.concert_orders import CONTESTED, MOVE, NOTHING, power_of, unit_at
from palaestra.games.concert.concert_powers import game

pytestmark = pytest.mark.check

FEW, MANY, LANES = 500, 10_000, 64
COUNTS = [FEW, pytest.param(MANY, marks=pytest.mark.slow)]


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("coordinated", [False, True], ids=["random", "coordinated"])
@pytest.mark.parametrize("rules", ["2000", "2023"])
def test_orders_lead_where_the_reference_says(rules: str, coordinated: bool, count: int):
    sim, seen = simulation(game(rules=rules), LANES, compiled=not jit_disabled(), autoreset_mode="off"), Counter()
    for phase in phases(sim, count, seed=count, coordinated=coordinated):
        units = units_of(phase)
        expected = adjudicate(WORLD, units, rules)
        found = {p: RESULTS[phase.after["result"][p]] for p in units}
        assert found == expected.results, units
        assert board_of(expected, units, phase) == nonzero(phase.after["unit"]), units
        assert marks_of(expected) == nonzero(phase.after["mark"] - NOTHING), units
        seen.update(expected.cycles + list(found.values()))
    if coordinated:
        rare = {"paradox"} if count == MANY else set()
        assert {"ring", *RESULTS} | rare <= set(seen), "the orders meet all that can happen"


def board_of(outcome: Outcome, units: dict[int, Unit], phase: Phase) -> dict[int, int]:
    """Units by province after the moves, without those of powers that have just left."""
    board = {p: int(phase.before["unit"][p]) for p in units if p not in outcome.moved and p not in outcome.dislodged}
    for p, goal in outcome.moved.items():
        unit = units[p]
        board[goal] = int(unit_at(WORLD, unit.power, unit.is_fleet, unit.a if unit.kind == MOVE else goal))
    return {p: code for p, code in board.items() if phase.after["alive"][power_of(code)]}


def marks_of(outcome: Outcome) -> dict[int, int]:
    """What bars retreats, by province: a battle, or where the attacker came from."""
    origins = {p: origin for p, origin in outcome.dislodged.items() if origin is not None}
    return {p: mark - NOTHING for p, mark in (dict.fromkeys(outcome.contested, CONTESTED) | origins).items()}


def nonzero(values: np.ndarray) -> dict[int, int]:
    """Values that are not 0, by place."""
    return {int(place): int(values[place]) for place in np.flatnonzero(values)}
