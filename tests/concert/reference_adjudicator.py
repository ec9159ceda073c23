"""A slow adjudicator of moves, in plain Python: what the rules of the Concert games are compared with.

It follows the recursive method of L. B. Kruijswijk, "The Math of Adjudication": an order asks the orders on which it
hangs. An order that is asked again before it has answered is supposed to fail, then to succeed. If both lead to the
same answer, that is the answer. Else the orders hang on each other: convoys among them fail (Szykman's rule), moves in
a ring succeed. It shares with the rules nothing but the map and the numbers of orders.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from palaestra.games.concert.concert_map import SEA, World
from palaestra.games.concert.concert_orders import CONVOY, MOVE, SUPPORT_HOLD, SUPPORT_MOVE, VIA


class Unit(NamedTuple):
    """A unit and its order: ``kind``, ``a`` and ``b`` as `palaestra.games.concert.concert_orders` numbers orders."""

    power: int
    is_fleet: bool
    kind: int
    a: int
    b: int


@dataclass(frozen=True)
class Outcome:
    """What becomes of the orders. Units are named by the province where they stood.

    ``moved``: goals. ``dislodged``: where the attacker came from, None if by convoy. ``contested``: provinces that a
    battle left empty. ``cycles``: "ring" or "paradox", each time that orders hung on themselves.
    """

    moved: dict[int, int]
    dislodged: dict[int, int | None]
    contested: set[int]
    results: dict[int, str]
    cycles: list[str]


def adjudicate(world: World, units: dict[int, Unit], rules: str) -> Outcome:
    """Resolves the orders of all units, given by province, by the rules of "2000" or "2023"."""
    return Resolver(world, units, rules).outcome()


@dataclass
class Resolver:
    """Answers by the province of the unit: whether its move, its support or its convoy succeeds.

    ``known`` answers are final. ``supposed`` ones were supposed, or follow from what was: ``hangs`` says from which
    suppositions, ``uses`` which of them each order has used that was asked and has not answered.
    """

    world: World
    units: dict[int, Unit]
    rules: str
    known: dict[int, bool] = field(default_factory=dict)
    supposed: dict[int, bool] = field(default_factory=dict)
    hangs: dict[int, set[int]] = field(default_factory=dict)
    uses: list[set[int]] = field(default_factory=lambda: [set()])
    cycles: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Finds goals, convoy routes and who goes by sea."""
        movers = {p: unit for p, unit in self.units.items() if unit.kind in (MOVE, VIA)}
        self.goal = {p: int(self.world.province_of[unit.a]) for p, unit in movers.items()}
        self.routes = {p: self.find_routes(p) for p, unit in movers.items() if not unit.is_fleet}
        self.by_sea = {p for p in self.routes if self.goes_by_sea(p)}

    def carriers(self, army: int) -> list[int]:
        """Fleets that are ordered to convoy an army where it goes."""
        return [p for p, unit in self.units.items() if (unit.kind, unit.a, unit.b) == (CONVOY, army, self.goal[army])]

    def find_routes(self, army: int) -> list[tuple[int, ...]]:
        """Chains of these fleets that lead it there, none with a fleet too many."""
        near, joins = self.world.fleet_reach, self.world.fleet_edge
        carriers, routes = self.carriers(army), []
        starts = [p for p in carriers if near[p, army]]
        chains = [(p,) for p in starts]
        while chains:
            chain = chains.pop()
            if near[chain[-1], self.goal[army]]:
                routes.append(chain)
                continue
            further = [p for p in carriers if p not in starts and joins[chain[-1], p]]
            chains += [(*chain, p) for p in further if not any(p == q or joins[p, q] for q in chain[:-1])]
        return routes

    def goes_by_sea(self, army: int) -> bool:
        """Whether an army means to go by convoy."""
        unit, routes = self.units[army], self.routes[army]
        if self.world.ground[army] == SEA or not self.world.army_edge[army, self.goal[army]]:
            return True
        if unit.kind == VIA:
            return self.rules == "2023" or bool(routes)
        return bool(routes) and any(self.units[fleet].power == unit.power for fleet in self.carriers(army))

    def has_path(self, p: int) -> bool:
        """Whether a moving unit reaches its goal."""
        return p not in self.by_sea or any(all(self.ask(fleet) for fleet in route) for route in self.routes[p])

    def ask(self, p: int) -> bool:
        """Whether an order succeeds."""
        if p in self.known:
            return self.known[p]
        if p in self.supposed:
            self.uses[-1] |= self.hangs[p]
            return self.supposed[p]
        first, hangs = self.suppose(p, False)
        if hangs - {p}:  # hangs on an order that asked: that one decides
            self.hangs = {q: (on - {p}) | (hangs - {p}) if p in on else on for q, on in self.hangs.items()}
            self.supposed[p] = first
            self.uses[-1] |= self.hangs[p]
            return first
        cycle = self.forget(p)
        if hangs:
            second, _ = self.suppose(p, True)
            cycle = self.forget(p)
            if first != second:
                self.break_cycle(cycle)
                return self.ask(p)
        self.known[p] = first
        return first

    def suppose(self, p: int, answer: bool) -> tuple[bool, set[int]]:
        """The answer that follows from supposing one, and the suppositions that it hangs on."""
        self.supposed[p], self.hangs[p] = answer, {p}
        self.uses.append(set())
        follows = self.judge(p)
        return follows, self.uses.pop()

    def forget(self, p: int) -> list[int]:
        """Drops the supposed answers of orders that hang on an order, and its own; returns whose they were."""
        cycle = [q for q, orders in self.hangs.items() if p in orders]
        for q in cycle:
            del self.supposed[q], self.hangs[q]
        return cycle

    def break_cycle(self, cycle: list[int]) -> None:
        """Answers orders that hang on each other, of which some are convoys or moves in a ring."""
        convoys = [p for p in cycle if self.units[p].kind == CONVOY]
        if convoys:
            self.cycles.append("paradox")
            self.known |= dict.fromkeys(convoys, False)
            return
        ring = [next(p for p in cycle if p in self.goal)]
        while self.goal[ring[-1]] not in ring:
            ring.append(self.goal[ring[-1]])
        ring = ring[ring.index(self.goal[ring[-1]]) :]
        self.cycles.append("ring")
        self.known |= dict.fromkeys(ring, True)

    def judge(self, p: int) -> bool:
        """Whether an order succeeds, by what others answer."""
        if p in self.goal:
            return self.enters(p)
        if self.units[p].kind == CONVOY:
            return not self.attackers_in(p)
        return self.is_matched(p) and not self.is_cut(p)

    def enters(self, p: int) -> bool:
        """Whether a unit moves: more attack than whatever stands there, head to head comes, or goes there too."""
        goal = self.goal[p]
        if not self.has_path(p):
            return False
        attack, other = self.attack_strength(p), self.head_to_head(p)
        if attack == 0 or attack <= (self.hold_strength(goal) if other is None else 1 + self.support(other)):
            return False
        return all(attack > self.prevent_strength(q) for q in self.goal if q != p and self.goal[q] == goal)

    def head_to_head(self, p: int) -> int | None:
        """The unit that p moves against while it moves against p, both by land."""
        q = self.goal[p]
        return q if self.goal.get(q) == p and not {p, q} & self.by_sea else None

    def attack_strength(self, p: int) -> int:
        """1 and the supports; no power helps to dislodge its own unit."""
        q = self.goal[p]
        if q not in self.units or (q in self.goal and self.head_to_head(p) is None and self.ask(q)):
            return 1 + self.support(p)
        power = self.units[q].power
        return 0 if power == self.units[p].power else 1 + self.support(p, without=power)

    def hold_strength(self, p: int) -> int:
        """Strength of what stands in a province."""
        if p not in self.units:
            return 0
        if p in self.goal:
            return 0 if self.ask(p) else 1
        return 1 + self.support(p)

    def prevent_strength(self, p: int) -> int:
        """Strength with which a unit that tries to enter keeps others out."""
        if not self.has_path(p):
            return 0
        other = self.head_to_head(p)
        return 0 if other is not None and self.ask(other) else 1 + self.support(p)

    def support(self, p: int, without: int | None = None) -> int:
        """How many supports a unit gets, of those not of a power."""
        kind, goal = (SUPPORT_MOVE, self.goal[p]) if p in self.goal else (SUPPORT_HOLD, 0)
        return sum(
            (unit.kind, unit.a, unit.b) == (kind, p, goal) and unit.power != without and self.ask(q)
            for q, unit in self.units.items()
        )

    def is_matched(self, p: int) -> bool:
        """Whether the other unit does what a support or a convoy says."""
        _, _, kind, a, b = self.units[p]
        if kind == SUPPORT_HOLD:
            return a in self.units and a not in self.goal
        return self.goal.get(a) == b and (kind == SUPPORT_MOVE or a in self.by_sea)

    def is_cut(self, p: int) -> bool:
        """Whether a support fails: by an attack from elsewhere than where it leads, or by being dislodged."""
        unit = self.units[p]
        for q, goal in self.goal.items():
            if goal == p and self.units[q].power != unit.power:
                led_against = unit.kind == SUPPORT_MOVE and unit.b == q
                if self.ask(q) if led_against else self.has_path(q):
                    return True
        return False

    def attackers_in(self, p: int) -> list[int]:
        """Units that enter the province of one that stays."""
        return [q for q, goal in self.goal.items() if goal == p and self.ask(q)]

    def outcome(self) -> Outcome:
        """All answers."""
        moved = {p: goal for p, goal in self.goal.items() if self.ask(p)}
        dislodged = {
            p: None if q in self.by_sea else q for p in self.units if p not in moved for q in self.attackers_in(p)
        }
        stayed = [p for p in self.goal if p not in moved]
        left = {p for p in self.units if p not in moved and p not in dislodged} | set(moved.values())
        contested = {self.goal[p] for p in stayed if self.prevent_strength(p) > 0} - left
        results = {p: "dislodged" if p in dislodged else self.result(p) for p in self.units}
        return Outcome(moved, dislodged, contested, results, self.cycles)

    def result(self, p: int) -> str:
        """What became of the order of a unit that was not dislodged."""
        if p in self.goal:
            if self.ask(p) or self.has_path(p):
                return "ok" if self.ask(p) else "bounced"
            return "disrupted" if self.routes[p] else "no_convoy"
        kind = self.units[p].kind
        if kind in (SUPPORT_HOLD, SUPPORT_MOVE, CONVOY) and not self.is_matched(p):
            return "void"
        return "cut" if kind in (SUPPORT_HOLD, SUPPORT_MOVE) and not self.ask(p) else "ok"
