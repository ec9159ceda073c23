"""Movement phases for tests of the Concert games: positions from play and crowded ones, with random or matching orders.

Orders of three kinds: *random* ones are drawn from the lists; *coordinated* ones begin with moves, often into occupied
provinces, and let most of the other units support or convoy what is moved.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from concert.reference_adjudicator import Unit

from palaestra.core.run.simulation import Simulation
from palaestra.games.concert.concert_map import INLAND, SEA, load_map
from palaestra.games.concert.concert_orders import (
    CONVOY,
    MOVE,
    SUPPORT_HOLD,
    SUPPORT_MOVE,
    VIA,
    is_fleet,
    number_of_orders,
    order_parts,
    power_of,
    unit_at,
)
from palaestra.games.concert.concert_phases import ADJUSTMENTS, MOVES, write_acting

WORLD, NAMES = load_map("standard")
PARTS = np.array([order_parts(WORLD, number) for number in range(number_of_orders(WORLD))])
"""Kind, a and b of all orders, int64 [orders, 3]."""
MOST_UNITS = 17
"""Units that a power can order."""
CROWDED = 0.5
"""Share of the lanes whose positions are crowded ones."""


class Batch(NamedTuple):
    """A decision in all lanes: records and lists before it, the orders, and records after it.

    Attributes:
        before: Records [lanes].
        lists: Of the orders, a count and numbers [lanes, powers, slots].
        actions: Numbers of the orders [lanes, powers, slots].
        after: Records [lanes].
        crowded: Whether a position was put into the lane [lanes].
    """

    before: np.ndarray
    lists: np.ndarray
    actions: np.ndarray
    after: np.ndarray
    crowded: np.ndarray

    @property
    def moving(self) -> list[int]:
        """Lanes with a movement phase."""
        return np.flatnonzero(self.before["phase"] == MOVES).tolist()


class Phase(NamedTuple):
    """A movement phase: the records before and after, and the orders by province."""

    before: Any
    after: Any
    orders: np.ndarray


def batches(sim: Simulation, count: int, seed: int, *, coordinated: bool) -> Iterator[Batch]:
    """Decisions with at least so many movement phases, in a `palaestra/Concert-v0` without automatic resets."""
    rng, found = np.random.default_rng(seed), 0
    crowded = np.arange(sim.num_envs) < CROWDED * sim.num_envs
    sim.reset(seed=seed)
    while found < count:
        place_crowds(sim, rng, crowded)
        legal: Any = sim.legal
        before, lists = sim.states.copy(), legal["orders"].copy()
        actions = random_actions(rng, lists)
        for lane in np.flatnonzero(before["phase"] == MOVES) if coordinated else ():
            actions[lane] = coordinated_actions(rng, before[lane], lists[lane])
        sim.step(actions)
        batch = Batch(before, lists, actions, sim.states.copy(), crowded)
        found += len(batch.moving)
        yield batch
        if (over := sim.terminated | sim.truncated).any():
            sim.reset(over)


def phases(sim: Simulation, count: int, seed: int, *, coordinated: bool) -> Iterator[Phase]:
    """The movement phases of `batches`."""
    for batch in batches(sim, count, seed, coordinated=coordinated):
        for lane in batch.moving:
            before = batch.before[lane]
            yield Phase(before, batch.after[lane], orders_of(before, batch.actions[lane]))


def units_of(phase: Phase) -> dict[int, Unit]:
    """Units and orders of a phase, for the reference."""
    return {p: unit_of(phase.before["unit"][p], phase.orders[p]) for p in np.flatnonzero(phase.before["unit"]).tolist()}


def unit_of(code: int, order: int) -> Unit:
    """A unit with its order."""
    kind, a, b = PARTS[order].tolist()
    return Unit(int(power_of(code)), bool(is_fleet(code)), kind, a, b)


def slots_of(state: Any) -> list[list[int]]:
    """Provinces of the units to which each power gives orders, in their order."""
    if state["phase"] == ADJUSTMENTS:
        return [[] for _ in range(WORLD.powers)]
    units = state["unit"] if state["phase"] == MOVES else state["dislodged"]
    owners = np.where(units > 0, power_of(units), -1)
    return [[p for p in WORLD.ranked[power].tolist() if owners[p] == power] for power in range(WORLD.powers)]


def orders_of(state: Any, actions: np.ndarray) -> np.ndarray:
    """Numbers of the orders by province [P], 0 where nobody has one."""
    orders = np.zeros(WORLD.provinces, np.int64)
    for power, provinces in enumerate(slots_of(state)):
        orders[provinces] = actions[power, : len(provinces)]
    return orders


# ----------------------------------------------------------------------------------------------------------- positions


def place_crowds(sim: Simulation, rng: np.random.Generator, lanes: np.ndarray) -> None:
    """Puts crowded positions into some lanes."""
    records = sim.states.copy()
    for lane in np.flatnonzero(lanes):
        state = records.view(np.recarray)[lane]
        state.phase, state.season, state.year = MOVES, 0, WORLD.first_year
        state.unit, state.dislodged, state.owner = crowd(rng), 0, np.arange(WORLD.centres) % WORLD.powers
        write_acting(state, WORLD)
    sim.load_states(records[lanes], lanes)


def crowd(rng: np.random.Generator) -> np.ndarray:
    """Units of two to seven powers in many provinces, more of them at sea in some positions [P]."""
    units, left = np.zeros(WORLD.provinces, np.uint8), np.full(WORLD.powers, MOST_UNITS)
    powers, density, fleets = rng.integers(2, WORLD.powers + 1), rng.uniform(0.2, 0.9), rng.uniform(0.1, 0.9)
    for p in rng.permutation(WORLD.provinces).tolist():
        power = int(rng.integers(powers))
        if rng.random() < density and left[power] > 0:
            fleet = WORLD.ground[p] == SEA or (WORLD.ground[p] != INLAND and rng.random() < fleets)
            place = p + (WORLD.first_coast[p] - p + rng.integers(WORLD.coasts[p]) if WORLD.coasts[p] and fleet else 0)
            units[p] = unit_at(WORLD, power, fleet, place)
            left[power] -= 1
    return units


# -------------------------------------------------------------------------------------------------------------- orders


def random_actions(rng: np.random.Generator, lists: np.ndarray) -> np.ndarray:
    """One order of each list, by chance."""
    place = (rng.random(lists.shape) * lists["count"]).astype(np.int64)
    return np.take_along_axis(lists["ids"], place[..., None], -1)[..., 0]


def coordinated_actions(rng: np.random.Generator, state: Any, lists: np.ndarray) -> np.ndarray:
    """Orders that fit each other, for a movement phase [powers, slots]."""
    actions = np.zeros(lists.shape, np.int64)
    slots = [(power, j, p) for power, row in enumerate(slots_of(state)) for j, p in enumerate(row)]
    listed = {p: lists[power, j]["ids"][: lists[power, j]["count"]] for power, j, p in slots}
    orders = draw_convoys(rng, listed)
    targets = (
        state["unit"] > 0,
        np.isin(np.arange(WORLD.provinces), [p for p in orders if PARTS[orders[p], 0] == CONVOY]),
    )
    movers, fit = rng.uniform(0.2, 0.7), rng.uniform(0.5, 1.0)
    for p in [p for p in listed if p not in orders and rng.random() < movers]:
        orders[p] = draw_move(rng, listed[p], targets)
    goals = goals_of(orders)
    for p in [p for p in listed if p not in orders]:
        orders[p] = draw_help(rng, listed[p], goals) if rng.random() < fit else rng.choice(listed[p])
    for power, j, p in slots:
        actions[power, j] = orders[p]
    return actions


def goals_of(orders: dict[int, int]) -> np.ndarray:
    """Provinces to which units move, -1 where none does [P]."""
    goals = np.full(WORLD.provinces, -1)
    for p, order in orders.items():
        if PARTS[order, 0] in (MOVE, VIA):
            goals[p] = WORLD.province_of[PARTS[order, 1]]
    return goals


def draw_convoys(rng: np.random.Generator, listed: dict[int, np.ndarray]) -> dict[int, int]:
    """Orders of some fleets that convoy, and of the armies that they carry."""
    orders: dict[int, int] = {}
    share, via = rng.uniform(0, 1), rng.random()
    for p in rng.permutation(list(listed)).tolist():
        convoys = listed[p][PARTS[listed[p], 0] == CONVOY]
        if len(convoys) and rng.random() < share:
            goals = goals_of(orders)
            fitting = convoys[goals[PARTS[convoys, 1]] == PARTS[convoys, 2]]
            order = int(rng.choice(fitting if len(fitting) else convoys))
            _, army, goal = PARTS[order].tolist()
            moves = listed[army][np.isin(PARTS[listed[army], 0], (MOVE, VIA)) & (PARTS[listed[army], 1] == goal)]
            orders[p] = order
            if army not in orders and len(moves):
                orders[army] = int(moves[-1] if rng.random() < via else moves[0])
    return orders


def draw_move(rng: np.random.Generator, ids: np.ndarray, targets: tuple[np.ndarray, ...]) -> int:
    """A move; three of four times into a province of some kind, if there is one."""
    moves = ids[np.isin(PARTS[ids, 0], (MOVE, VIA))]
    goals = WORLD.province_of[PARTS[moves, 1]]
    if rng.random() < 0.75:
        wanted = targets[rng.integers(len(targets))][goals]
        moves = moves[wanted] if wanted.any() else moves
    return int(rng.choice(moves)) if len(moves) else 0


def draw_help(rng: np.random.Generator, ids: np.ndarray, goals: np.ndarray) -> int:
    """A convoy or a support of what another unit does; 0 if there is none."""
    ids = ids[PARTS[ids, 0] > VIA]
    kinds, a, b = PARTS[ids].T
    fits = goals[a] == np.where(kinds == SUPPORT_HOLD, -1, b)
    for some in (kinds == CONVOY, kinds == SUPPORT_MOVE, kinds == SUPPORT_HOLD):
        if (some & fits).any() and rng.random() < 0.7:
            return int(rng.choice(ids[some & fits]))
    return 0
