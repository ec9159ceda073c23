"""Observations of the Concert games: numbers of each location, and what a power sees of itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from palaestra.games.concert.concert_map import World
from palaestra.games.concert.concert_orders import (
    BITS,
    CONTESTED,
    ROOM,
    Board,
    count_of,
    is_fleet,
    location_of,
    own_number,
    power_of,
    unit_at,
)
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


def write_board(s, board, view, seen):
    """The board now and before the last moves, the last orders, and the time, in a view of the map."""
    world = board.map
    for k in range(world.locations):
        for feature in range(FEATURES):
            seen.board[k, feature] = board.template[k, feature]
            seen.previous_board[k, feature] = board.template[k, feature]
    for p in range(world.provinces):
        write_unit(board, view, p, s.unit[p], seen.board, KIND, OWNER)
        write_unit(board, view, p, s.dislodged[p], seen.board, LEFT, LEFT_OWNER)
        write_unit(board, view, p, s.last_unit[p], seen.previous_board, KIND, OWNER)
        if s.mark[p] == CONTESTED:
            write_all(board, view, p, seen.board, EMPTY, 1)
        seen.last_orders[board.seen_at[view, p]] = own_number(board, view, s.order[p])
        seen.last_results[board.seen_at[view, p]] = s.result[p]
    for c in range(world.centres):
        p = world.centre_province[c]
        write_owner(board, view, p, s.owner[c], seen.board)
        write_owner(board, view, p, s.last_owner[c], seen.previous_board)
    if s.phase == ADJUSTMENTS:
        write_adjustments(s, board, view, seen.board)
    seen.phase, seen.last_phase, seen.season, seen.year = s.phase, s.last_phase, s.season, s.year
    seen.last_year, seen.rules, seen.score = board.last_year, board.rules, board.score


def seen_power(view, power):
    """Number of a power in a view: the second view exchanges the two powers."""
    return 1 - power if view == 1 else power


def write_unit(board, view, p, unit, rows, kind, owner):
    """Kind and power of a unit at its location."""
    if unit != 0:
        row = rows[board.seen_at[view, location_of(board.map, unit, p)]]
        row[kind + NONE], row[owner + NO_POWER] = 0, 0
        row[kind + is_fleet(unit)], row[owner + seen_power(view, power_of(unit))] = 1, 1


def write_all(board, view, p, rows, feature, value):
    """A number of a province and of its coasts."""
    world = board.map
    rows[board.seen_at[view, p], feature] = value
    for k in range(world.coasts[p]):
        rows[board.seen_at[view, world.first_coast[p] + k], feature] = value


def write_owner(board, view, p, owner, rows):
    """Owner of a centre."""
    if owner >= 0:
        write_all(board, view, p, rows, CENTRE + UNOWNED, 0)
        write_all(board, view, p, rows, CENTRE + seen_power(view, owner), 1)


def write_adjustments(s, board, view, rows):
    """Where powers may build, and units of which some have to go."""
    world = board.map
    for power in range(world.powers):
        due = adjustment(s, world, power) if s.due[power] > 0 else 0
        if due > 0:
            for c in range(world.centres):
                if can_build_at(s, world, power, c):
                    write_all(board, view, world.centre_province[c], rows, BUILDS, 1)
        elif due < 0:
            for p in range(world.provinces):
                if s.unit[p] != 0 and power_of(s.unit[p]) == power:
                    rows[board.seen_at[view, location_of(world, s.unit[p], p)], REMOVES] = 1


def write_own(s, board, rows):
    """Who each power is, where its units stand that it orders, what it may build."""
    world = board.map
    for power in range(world.powers):
        rows[power].power = seen_power(power * board.mirrored, power)
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
                at = board.seen_at[power * board.mirrored, location_of(world, unit, p)]
                rows[power].units[count_of(counters, power)] = at
                counters += 1 << (BITS * power)


def write_next(s, board, rows):
    """The unit that each power orders next, its list, and what the power has ordered in this phase."""
    for power in range(board.map.powers):
        row, listing, p = rows[power], s.lists[power], s.next[power]
        for j in range(board.slots):
            row.earlier[j] = s.given[power, j] if j < s.asked else -1
        row.unit = -1
        if p >= 0:
            unit = s.unit[p] if s.phase == MOVES else s.dislodged[p]
            row.unit = board.seen_at[power * board.mirrored, location_of(board.map, unit, p)]
        for j in range(ROOM):
            row.candidates[j] = listing.ids[j] if j < listing.count else -1


def mirror(board: Board, states: Any, actions: Any) -> None:
    """Exchanges the two powers of a map that is its own mirror image."""
    world, provinces = board.map, np.asarray(board.map.mirror)[: board.map.provinces]
    centres = world.centre[provinces[world.centre_province]]
    for name in ("unit", "dislodged", "last_unit"):
        states[name] = mirrored_units(board, states[name])[:, provinces]
    mark = states["mark"][:, provinces]
    states["mark"] = np.where(mark >= 0, provinces[mark], mark)
    states["order"], states["result"] = board.image[states["order"]][:, provinces], states["result"][:, provinces]
    for name in ("owner", "last_owner"):
        owner = states[name][:, centres]
        states[name] = np.where(owner >= 0, 1 - owner, owner)
    exchanged = ["due", "alive", "acting"]
    if board.single:
        exchanged += ["given", "lists"]
        states["next"] = np.where(states["next"] >= 0, provinces[states["next"]], -1)[:, ::-1]
    for name in exchanged:
        states[name] = states[name][:, ::-1].copy()
    actions["power"] = actions["power"][:, ::-1].copy()


def mirrored_units(board: Board, units: np.ndarray) -> np.ndarray:
    """Units of the other power, on the mirror images of their coasts, uint8 [..., P]: still in their own provinces."""
    images = np.zeros((board.map.provinces, 256), np.uint8)
    for p in range(board.map.provinces):
        for form in range(2 + board.map.coasts[p]):
            for power in range(2):
                unit = 1 + power + 8 * form
                at = board.map.mirror[location_of(board.map, unit, p)]
                images[p, unit] = unit_at(board.map, 1 - power, form > 0, at)
    return images[np.arange(board.map.provinces), units]
