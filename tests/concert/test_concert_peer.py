"""Movement phases next to the engine of the package `diplomacy`: the same boards and the same dislodged units.

The package follows the rules of 2000. By the rules no power helps to dislodge its own unit, and a convoy is disrupted
only if a fleet is dislodged. The package counts supports of the attacked unit's own power in two places: where the
attacker comes by convoy, and when it asks whether a fleet still convoys, which then fails though the fleet stays. Where
the rules and the package differ, the package must agree with the reference once that does the same.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from concert.random_phases import NAMES, WORLD, Phase, phases, units_of
from concert.reference_adjudicator import Outcome, Resolver, Unit
from games.play import simulation

from palaestra.core.compile.linker import jit_disabled
from palaestra.games.concert.adjudication import DISLODGED
from palaestra.games.concert.concert_orders import CONVOY, MOVE, power_of, unit_at
from palaestra.games.concert.concert_powers import game
from palaestra.games.concert.order_grammar import order_text, unit_text

pytestmark = pytest.mark.peers

COUNT, LANES = 5000, 64
POWERS = [power.upper() for power in NAMES.powers]


@dataclass(frozen=True)
class Result:
    """What a phase leads to, in words.

    Attributes:
        board: Power by unit, as in "F SPA/NC".
        dislodged: Units, named by where they stood.
    """

    board: dict[str, str]
    dislodged: set[str]


class OwnSupport(Resolver):
    """The reference as the package does it."""

    def attack_strength(self, p: int) -> int:
        """Counts all supports of an attack by convoy on a unit of another power."""
        q = self.goal[p]
        if p in self.by_sea and q in self.units and self.units[q].power != self.units[p].power:
            return 1 + self.support(p)
        return super().attack_strength(p)

    def has_path(self, p: int) -> bool:
        """Lets an army walk where it can and its convoy is disrupted."""
        is_walking = p in self.by_sea and self.units[p].kind == MOVE
        return super().has_path(p) or is_walking

    def judge(self, p: int) -> bool:
        """Counts all supports of an attack on a fleet that convoys."""
        if self.units[p].kind != CONVOY:
            return super().judge(p)
        return not any(self.overcomes(q, p) for q, goal in self.goal.items() if goal == p)

    def overcomes(self, p: int, fleet: int) -> bool:
        """Whether an attack is stronger than a fleet and than all others that attack it."""
        attack, others = 1 + self.support(p), [q for q in self.goal if q != p and self.goal[q] == fleet]
        is_foreign = self.units[p].power != self.units[fleet].power
        return is_foreign and all(attack > other for other in (1, *map(self.prevent_strength, others)))


@pytest.mark.parametrize("coordinated", [False, True], ids=["random", "coordinated"])
def test_orders_lead_where_the_package_says(coordinated: bool):
    engine: Any = pytest.importorskip("diplomacy", reason='pip install "diplomacy>=1.1.2"')
    sim, seen = simulation(game(rules="2000"), LANES, compiled=not jit_disabled(), autoreset_mode="off"), Counter()
    for phase in phases(sim, COUNT, seed=2, coordinated=coordinated):
        ours, theirs = our_result(phase), their_result(engine.Game(), phase)
        if ours != theirs:
            units = units_of(phase)
            assert reference_result(OwnSupport(WORLD, units, "2000").outcome(), units, phase) == theirs, texts(phase)
        seen["all"] += 1
        seen["same"] += ours == theirs
        seen["dislodged"] += len(ours.dislodged)
    assert seen["same"] >= (0.95 if coordinated else 0.998) * seen["all"]
    assert seen["dislodged"] > (0.3 if coordinated else 0.03) * seen["all"]


def our_result(phase: Phase) -> Result:
    """What the rules of Concert say."""
    return Result(
        named(dict(enumerate(phase.after["unit"].tolist())), phase),
        {name_of(phase, p) for p in np.flatnonzero(phase.after["result"] == DISLODGED).tolist()},
    )


def reference_result(outcome: Outcome, units: dict[int, Unit], phase: Phase) -> Result:
    """What the reference says."""
    board = {p: int(phase.before["unit"][p]) for p in units if p not in outcome.moved and p not in outcome.dislodged}
    for p, goal in outcome.moved.items():
        unit = units[p]
        board[goal] = int(unit_at(WORLD, unit.power, unit.is_fleet, unit.a if unit.kind == MOVE else goal))
    return Result(named(board, phase), {name_of(phase, p) for p in outcome.dislodged})


def their_result(match: Any, phase: Phase) -> Result:
    """What the package says; ``match`` is a new one."""
    orders: dict[str, list[str]] = {power: [] for power in POWERS}
    units: dict[str, list[str]] = {power: [] for power in POWERS}
    for p in units_of(phase):
        power = POWERS[power_of(phase.before["unit"][p])]
        units[power].append(name_of(phase, p))
        orders[power].append(order_of(phase, p))
    match.clear_units()
    match.clear_centers()
    for power in POWERS:
        match.set_units(power, units[power])
    for power in POWERS:
        match.set_orders(power, orders[power])
    results = match.process().results
    stands = {unit: power for power, some in match.get_units().items() for unit in some if not unit.startswith("*")}
    return Result(
        {unit: power for unit, power in stands.items() if phase.after["alive"][POWERS.index(power)]},
        {unit for unit, words in results.items() if "dislodged" in map(str, words)},
    )


def named(board: dict[int, int], phase: Phase) -> dict[str, str]:
    """A board in words, without powers that have just left."""
    return {
        unit_text(WORLD, NAMES, code, p): POWERS[power_of(code)]
        for p, code in board.items()
        if code and phase.after["alive"][power_of(code)]
    }


def name_of(phase: Phase, p: int) -> str:
    """The unit that stood in a province, in words."""
    return unit_text(WORLD, NAMES, int(phase.before["unit"][p]), p)


def order_of(phase: Phase, p: int) -> str:
    """The order of the unit in a province, as the package writes it."""
    return order_text(WORLD, NAMES, phase.before["unit"], p, int(phase.orders[p])).replace(" via", " VIA")


def texts(phase: Phase) -> list[str]:
    """All orders of a phase."""
    return [f"{POWERS[power_of(phase.before['unit'][p])]} {order_of(phase, p)}" for p in units_of(phase)]
