"""Observations of the Concert games: numbers of each location, and what a power sees of itself."""

from __future__ import annotations

import numpy as np

from palaestra.games.concert.concert_map import World
from palaestra.games.concert.concert_orders import BITS, CONTESTED, count_of, is_fleet, location_of, power_of
from palaestra.games.concert.concert_phases import ADJUSTMENTS, MOVES, adjustment, asked_power, can_build_at

POWERS = 7
"""Most powers that the numbers of a location have places for."""
KIND, OWNER, BUILDS, REMOVES, LEFT, LEFT_OWNER, GROUND, CENTRE, EMPTY, HOME = 0, 3, 11, 12, 13, 16, 24, 27, 36, 37
FEATURES = 38
"""Numbers of a location, and the first of each group: kind of unit (army, fleet, none), its power (or none), whether
the centre may be built in, whether a unit may have to go, kind and power of a dislodged unit, ground (inland, coast,
sea), owner of the centre (powers, nobody, no centre), whether a battle left it empty, whether it is a home centre."""
NONE, NO_POWER = 2, POWERS
"""Places of the kind and of the power of no unit."""
UNOWNED, NO_CENTRE = POWERS, POWERS + 1


def template_of(world: World) -> np.ndarray:
    """Numbers of each location on a board without units and owners, int8 [L, FEATURES]."""
    template = np.zeros((world.locations, FEATURES), np.int8)
    template[:, [KIND + NONE, LEFT + NONE, OWNER + NO_POWER, LEFT_OWNER + NO_POWER]] = 1
    for location, p in enumerate(world.province_of):
        template[location, GROUND + world.ground[p]] = 1
        template[location, CENTRE + (NO_CENTRE if world.centre[p] < 0 else UNOWNED)] = 1
        template[location, HOME] = world.home[p] >= 0
    return template


def write_lane(s, board, lane):
    """What all powers see: the board now and before the last moves, the last orders, and the time."""
    world = board.map
    for k in range(world.locations):
        for feature in range(FEATURES):
            lane.board[k, feature] = board.template[k, feature]
            lane.previous_board[k, feature] = board.template[k, feature]
    for p in range(world.provinces):
        write_unit(world, p, s.unit[p], lane.board, KIND, OWNER)
        write_unit(world, p, s.dislodged[p], lane.board, LEFT, LEFT_OWNER)
        write_unit(world, p, s.last_unit[p], lane.previous_board, KIND, OWNER)
        if s.mark[p] == CONTESTED:
            write_all(world, p, lane.board, EMPTY, 1)
        lane.last_orders[p] = s.order[p]
        lane.last_results[p] = s.result[p]
    for c in range(world.centres):
        p = world.centre_province[c]
        write_owner(world, p, s.owner[c], lane.board)
        write_owner(world, p, s.last_owner[c], lane.previous_board)
    if s.phase == ADJUSTMENTS:
        write_adjustments(s, world, lane.board)
    lane.phase, lane.season, lane.year = s.phase, s.season, s.year


def write_unit(world, p, unit, rows, kind, owner):
    """Kind and power of a unit at its location."""
    if unit != 0:
        row = rows[location_of(world, unit, p)]
        row[kind + NONE], row[owner + NO_POWER] = 0, 0
        row[kind + is_fleet(unit)], row[owner + power_of(unit)] = 1, 1


def write_all(world, p, rows, feature, value):
    """A number of a province and of its coasts."""
    rows[p, feature] = value
    for k in range(world.coasts[p]):
        rows[world.first_coast[p] + k, feature] = value


def write_owner(world, p, owner, rows):
    """Owner of a centre."""
    if owner >= 0:
        write_all(world, p, rows, CENTRE + UNOWNED, 0)
        write_all(world, p, rows, CENTRE + owner, 1)


def write_adjustments(s, world, rows):
    """Where powers may build, and units of which some have to go."""
    for power in range(world.powers):
        due = adjustment(s, world, power) if s.due[power] > 0 else 0
        if due > 0:
            for c in range(world.centres):
                if can_build_at(s, world, power, c):
                    write_all(world, world.centre_province[c], rows, BUILDS, 1)
        elif due < 0:
            for p in range(world.provinces):
                if s.unit[p] != 0 and power_of(s.unit[p]) == power:
                    rows[location_of(world, s.unit[p], p), REMOVES] = 1


def write_own(s, board, rows):
    """Who each power is, where its units stand that it orders, what it may build."""
    world = board.map
    for power in range(world.powers):
        rows[power].power = power
        for k in range(board.slots):
            rows[power].units[k] = -1
        if s.phase == ADJUSTMENTS:
            rows[power].build = adjustment(s, world, power)
    if s.phase == ADJUSTMENTS:
        return
    for row in range(board.orders):
        counters = 0
        for k in range(world.provinces):
            p = world.ranked[row, k]
            power = asked_power(s, board, row, p)
            if power >= 0:
                unit = s.unit[p] if s.phase == MOVES else s.dislodged[p]
                rows[power].units[count_of(counters, power)] = location_of(world, unit, p)
                counters += 1 << (BITS * power)
