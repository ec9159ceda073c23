"""Values of places, by which the scripts of the Concert games choose.

A centre is worth something to a power if another one owns it, nobody does, or it may be lost. A place is worth what the
centres there and near are: the worth spreads over the borders of armies and over those of fleets, some steps far, and
less with each step. That units go where such values are high is the classical idea of simple players (D. Norman,
DumbBot, 2001). Who could reach a place with how many units is counted: `strength`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from palaestra.core.rng import mix64
from palaestra.games.concert.concert_orders import is_fleet, location_of, power_of

STEPS = 6
"""Steps over which worth spreads."""


class Weights(NamedTuple):
    """Weights of the values, all without unit: the worth of a centre of another power is 1.

    Attributes:
        neutral: Worth of a centre that nobody owns.
        own: Worth of an own centre that nobody threatens.
        threat: What each unit that threatens it adds.
        spread: Share of its neighbours' sum that a place has in the next step.
        spring, autumn: Share of the worth of the place itself; in autumn centres change their owner.
        decay: Share of a step in the next one.
    """

    neutral: float = 1.0
    own: float = 0.05
    threat: float = 0.35
    spread: float = 0.2
    spring: float = 1.0
    autumn: float = 2.0
    decay: float = 0.8


WEIGHTS = Weights()


def scratch_fields(provinces: int, locations: int, powers: int) -> tuple[tuple, ...]:
    """Fields of the work record, for a map of so many places and powers."""
    return (
        ("script_rng", "u8"),
        ("worth", "f8", (provinces,)),
        ("step", "f8", (2, locations)),
        ("army_value", "f8", (provinces,)),
        ("fleet_value", "f8", (locations,)),
        ("reach", "i8", (powers, provinces)),
        ("rivals", "i8", (provinces,)),
    )


def seed_draws(s, power, scratch):
    """Starts the random stream of a power's plan: in all decisions of a phase the same, so that the plan is the same.

    The stream of the rules stands for the match: the rules draw from it when a match starts, and never later.
    """
    number = ((s.year * 2 + s.season) * 3 + s.phase) * 8 + power
    scratch.script_rng = mix64(mix64(s.rng) ^ np.uint64(number))


# --------------------------------------------------------------------------------------------------------------- reach


def ways(world, unit, province):
    """First and last + 1 of the places of a unit's moves in the list of neighbours."""
    if is_fleet(unit):
        at = location_of(world, unit, province)
        return world.fleet_start[at], world.fleet_start[at + 1]
    return world.army_start[province], world.army_start[province + 1]


def way(world, unit, k):
    """Location to which a move leads."""
    return world.fleet_list[k] if is_fleet(unit) else world.army_list[k]


def count_reach(s, world, scratch):
    """Counts, for each power and province, its units that may move there or stand there."""
    for p in range(world.provinces):
        for power in range(world.powers):
            scratch.reach[power, p] = 0
    for p in range(world.provinces):
        unit = s.unit[p]
        if unit != 0:
            power, before = power_of(unit), p
            scratch.reach[power, p] += 1
            first, last = ways(world, unit, p)
            for k in range(first, last):
                goal = world.province_of[way(world, unit, k)]
                if goal != before:  # coasts of a province follow each other
                    scratch.reach[power, goal] += 1
                before = goal


def count_rivals(world, power, scratch):
    """Most units of one other power that reach or hold each province."""
    for p in range(world.provinces):
        most = 0
        for other in range(world.powers):
            if other != power:
                most = max(most, scratch.reach[other, p])
        scratch.rivals[p] = most


# --------------------------------------------------------------------------------------------------------------- worth


def write_values(s, world, power, scratch):
    """Values of all places for a power; `count_reach` has been called."""
    count_rivals(world, power, scratch)
    for p in range(world.provinces):
        c, worth = world.centre[p], 0.0
        if c >= 0:
            worth = 1.0
            if s.owner[c] < 0:
                worth = WEIGHTS.neutral
            elif s.owner[c] == power:
                worth = WEIGHTS.own + WEIGHTS.threat * scratch.rivals[p]
        scratch.worth[p] = worth
    here = WEIGHTS.autumn if s.season else WEIGHTS.spring
    spread_armies(world, here, scratch)
    spread_fleets(world, here, scratch)


def spread_armies(world, here, scratch):
    """Values of provinces for armies."""
    for p in range(world.provinces):
        scratch.step[0, p] = scratch.worth[p]
        scratch.army_value[p] = here * scratch.worth[p]
    share = 1.0
    for n in range(STEPS):
        now, then = n % 2, (n + 1) % 2
        share *= WEIGHTS.decay
        for p in range(world.provinces):
            total = scratch.step[now, p]
            for k in range(world.army_start[p], world.army_start[p + 1]):
                total += scratch.step[now, world.army_list[k]]
            scratch.step[then, p] = total * WEIGHTS.spread
            scratch.army_value[p] += share * total * WEIGHTS.spread


def spread_fleets(world, here, scratch):
    """Values of locations for fleets."""
    for l in range(world.locations):  # noqa: E741
        scratch.step[0, l] = scratch.worth[world.province_of[l]]
        scratch.fleet_value[l] = here * scratch.worth[world.province_of[l]]
    share = 1.0
    for n in range(STEPS):
        now, then = n % 2, (n + 1) % 2
        share *= WEIGHTS.decay
        for l in range(world.locations):  # noqa: E741
            total = scratch.step[now, l]
            for k in range(world.fleet_start[l], world.fleet_start[l + 1]):
                total += scratch.step[now, world.fleet_list[k]]
            scratch.step[then, l] = total * WEIGHTS.spread
            scratch.fleet_value[l] += share * total * WEIGHTS.spread


def value_at(unit, location, scratch):
    """Value of a location for a unit."""
    return scratch.fleet_value[location] if is_fleet(unit) else scratch.army_value[location]
