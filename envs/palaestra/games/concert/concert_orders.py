"""Orders of the Concert games as numbers, and the lists of those that a unit may be given.

An order's number says all but whose it is: ``SUPPORT_MOVE MAR BUR`` is the same number for each unit that may give it.
With P provinces and L locations (the provinces, then the split coasts) the numbers are, in this order:

===============  ======  ==============================================================================
kind             count   meaning
===============  ======  ==============================================================================
`HOLD`           1       0: hold; disband, where a unit has to retreat; waive, where one may be built
`MOVE`           L       move or retreat to a location
`VIA`            P       move of an army to a province by a convoy
`SUPPORT_HOLD`   P       support the unit in a province, which does not move
`SUPPORT_MOVE`   P * P   support the move from a province to a province
`CONVOY`         P * P   convoy the army in a province to a province
`BUILD_ARMY`     P       build an army in a province
`BUILD_FLEET`    L       build a fleet at a location
`REMOVE`         P       remove the unit in a province
===============  ======  ==============================================================================

A unit is a byte: 0 is none, else 1 + power + 8 * form, see `palaestra.games.concert.concert_map`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from palaestra.game import offer
from palaestra.games.concert.concert_map import World

HOLD, MOVE, VIA, SUPPORT_HOLD, SUPPORT_MOVE, CONVOY, BUILD_ARMY, BUILD_FLEET, REMOVE = range(9)
ROOM = 256
"""Most orders in a list; what does not fit is left out from its end, where the supports of convoyed armies stand."""
MOST_COASTS = 62
"""Coastal provinces, and seas, of a map: sets of them are the bits of an integer."""
MOST_ORDERS = 2**15
INLAND, COAST, SEA = 0, 1, 2
BITS = 6
"""Of the counter of a power, in an integer that holds those of all powers."""


class Board(NamedTuple):
    """A map, and what follows from it, read-only.

    Attributes:
        map: The map.
        sea_number: Number of each sea among the seas, else -1, int64 [P].
        coast_number: Number of each coastal province among these, else -1, int64 [P].
        sea_near: Seas next to each sea, as bits, int64 [seas].
        sea_coast: Coastal provinces next to each sea, as bits, int64 [seas].
        coast_sea: Seas next to each coastal province, as bits, int64 [coasts].
        near_start: Provinces next to p are ``near_list[near_start[p]:near_start[p + 1]]``, int64 [P + 1].
        near_list: Provinces, int64.
        orders_of: Number of the order in which each power counts provinces, int64 [powers].
        orders: How many such orders there are: the first rows of ``map.ranked``.
        mirrored: 1 if the second power sees and orders in the mirror image of the map, which is the first one's view.
        seen_at: Place of each location in both views, int64 [2, L].
        image: The number of the order that is the mirror image of each order, int16 [orders]; [1] without a mirror.
        template: Numbers of each location on an empty board: see `palaestra.games.concert.concert_sight`.
        slots: Orders that a power may give in a phase.
        rules: 0 the rules of 2000, 1 those of 2023.
        score: 0 squares, 1 equal shares of a draw, 2 centres.
        last_year: The game ends with it.
        single: 1 if a decision is the order of one unit.
    """

    map: World
    sea_number: np.ndarray
    coast_number: np.ndarray
    sea_near: np.ndarray
    sea_coast: np.ndarray
    coast_sea: np.ndarray
    near_start: np.ndarray
    near_list: np.ndarray
    orders_of: np.ndarray
    orders: int
    mirrored: int
    seen_at: np.ndarray
    image: np.ndarray
    template: np.ndarray
    slots: int
    rules: int
    score: int
    last_year: int
    single: int


def board_of(world: World, template: np.ndarray, rules: int, score: int, last_year: int, single: int) -> Board:
    """The board of a map.

    Raises:
        ValueError: More seas, coastal provinces or orders than there are numbers.
    """
    if number_of_orders(world) > MOST_ORDERS:
        raise ValueError(f"a map has at most {MOST_ORDERS} orders, got {number_of_orders(world)}")
    world = World._make(wide(value) for value in world)
    seas, coasts = (np.flatnonzero(world.ground == ground) for ground in (SEA, COAST))
    if max(len(seas), len(coasts)) > MOST_COASTS:
        raise ValueError(f"a map has at most {MOST_COASTS} seas and coastal provinces, got {len(seas)}, {len(coasts)}")
    sea_number, coast_number = (np.full(world.provinces, -1, np.int64) for _ in range(2))
    sea_number[seas], coast_number[coasts] = np.arange(len(seas)), np.arange(len(coasts))
    near = world.fleet_reach[seas] != 0
    reach = world.army_edge != 0
    np.logical_or.at(reach, world.province_of, world.fleet_reach != 0)
    mirrored = bool((world.ranked[0] != world.ranked[-1]).any())
    return Board(
        world,
        sea_number,
        coast_number,
        near[:, seas] @ (1 << np.arange(len(seas))),
        near[:, coasts] @ (1 << np.arange(len(coasts))),
        near[:, coasts].T @ (1 << np.arange(len(seas))),
        np.append(0, np.cumsum(reach.sum(axis=1))),
        np.nonzero(reach)[1],
        np.arange(world.powers) * mirrored,
        1 + mirrored,
        int(mirrored),
        np.stack([np.arange(world.locations), world.mirror if mirrored else np.arange(world.locations)]),
        images_of_orders(world) if mirrored else np.zeros(1, np.int16),
        template,
        world.solo - 1,
        rules,
        score,
        last_year,
        single,
    )


class Ground(NamedTuple):
    """The world of a game.

    Attributes:
        board: One record of the fields of `Board`: what is handed from function to function is then one address.
    """

    board: np.ndarray


def ground_of(board: Board) -> Ground:
    """The world of a game on a board."""
    return Ground(np.array([as_tuple(board)], record_type(board)).view(np.recarray))


def record_type(values: tuple) -> np.dtype:
    """The record that holds a named tuple of numbers, arrays and further named tuples."""
    members = []
    for name, value in zip(values._fields, values, strict=True):  # type: ignore[attr-defined]
        if isinstance(value, tuple):
            members.append((name, record_type(value)))
        elif isinstance(value, np.ndarray):
            members.append((name, value.dtype, value.shape))
        else:
            members.append((name, "i8"))
    return np.dtype((np.record, members))


def as_tuple(values: tuple) -> tuple:
    """A named tuple as plain tuples, as NumPy takes the values of a record."""
    return tuple(as_tuple(value) if isinstance(value, tuple) else value for value in values)


def wide(value: int | np.ndarray) -> int | np.ndarray:
    """Small signed numbers as int64: numbers of orders are sums of them, which NumPy would keep small."""
    return value.astype(np.int64) if isinstance(value, np.ndarray) and value.dtype.kind == "i" else value


# ------------------------------------------------------------------------------------------------------------- numbers


def number_of_orders(world: World) -> int:
    """How many numbers there are."""
    return order_number(world, REMOVE, world.provinces, 0)


def order_number(world, kind, a, b):
    """Number of an order.

    Args:
        world: The map.
        kind: One of the kinds.
        a: Location (`MOVE`, `BUILD_FLEET`) or province of which the order speaks first.
        b: Province of which it speaks second (`SUPPORT_MOVE`, `CONVOY`).
    """
    p, l = world.provinces, world.locations  # noqa: E741
    if kind == HOLD:
        return 0
    if kind == MOVE:
        return 1 + a
    if kind <= SUPPORT_HOLD:
        return 1 + l + (kind - VIA) * p + a
    if kind <= CONVOY:
        return 1 + l + 2 * p + (kind - SUPPORT_MOVE) * p * p + a * p + b
    first = 1 + l + 2 * p + 2 * p * p
    if kind == BUILD_ARMY:
        return first + a
    return first + p + a if kind == BUILD_FLEET else first + p + l + a


def order_parts(world, number):
    """Kind, a and b of a number, as of `order_number`; `HOLD` for numbers that are none."""
    p, l = world.provinces, world.locations  # noqa: E741
    left = number - 1
    if left < 0:
        return HOLD, 0, 0
    if left < l:
        return MOVE, left, 0
    left -= l
    if left < 2 * p:
        return VIA + left // p, left % p, 0
    left -= 2 * p
    if left < 2 * p * p:
        return SUPPORT_MOVE + left // (p * p), left % (p * p) // p, left % p
    left -= 2 * p * p
    if left < p:
        return BUILD_ARMY, left, 0
    left -= p
    if left < l:
        return BUILD_FLEET, left, 0
    left -= l
    return (REMOVE, left, 0) if left < p else (HOLD, 0, 0)


# --------------------------------------------------------------------------------------------------------------- units


def images_of_orders(world: World) -> np.ndarray:
    """The mirror image of each order, int16 [orders]."""
    images = np.zeros(number_of_orders(world), np.int16)
    for number in range(1, len(images)):
        kind, a, b = order_parts(world, number)
        images[number] = order_number(world, kind, world.mirror[a], world.mirror[b])
    return images


def own_number(board, power, number):
    """Number of an order in the view of a power, from that on the map; and conversely."""
    return board.image[number] if board.mirrored and power == 1 else number


def sort_list(board, power, listing):
    """Puts a list into the view of its power, by numbers: both powers then have the same list in mirrored positions."""
    for k in range(listing.count):
        number, j = own_number(board, power, listing.ids[k]), k
        while j > 0 and listing.ids[j - 1] > number:
            listing.ids[j] = listing.ids[j - 1]
            j -= 1
        listing.ids[j] = number


def power_of(unit):
    """Power of a unit."""
    return (np.int64(unit) - 1) % 8


def is_fleet(unit):
    """Whether a unit is a fleet."""
    return unit > 8


def location_of(world, unit, province):
    """Where a unit stands in its province."""
    form = (np.int64(unit) - 1) // 8
    return province if form < 2 else world.first_coast[province] + form - 2


def unit_at(world, power, fleet, location):
    """A unit of a power at a location; armies stand at provinces."""
    form = 0
    if fleet:
        form = 1 if location < world.provinces else 2 + location - world.first_coast[world.province_of[location]]
    return 1 + power + 8 * form


def may_walk(world, unit, province, goal):
    """Whether a unit reaches a province in one move, without a convoy."""
    if is_fleet(unit):
        return world.fleet_reach[location_of(world, unit, province), goal] != 0
    return world.army_edge[province, goal] != 0


def count_of(counters, power):
    """The counter of a power among those in an integer."""
    return (counters >> (BITS * power)) & (2**BITS - 1)


# --------------------------------------------------------------------------------------------------------------- lists


def put(s, listing, number):
    """Adds an order to a list, or counts it where the list is full."""
    if listing.count < ROOM:
        offer(listing, number)
    else:
        s.info.left_out += 1


def fleets_at_sea(s, board):
    """Seas with a fleet, as bits."""
    fleets = 0
    for p in range(board.map.provinces):
        if board.sea_number[p] >= 0 and s.unit[p] != 0:
            fleets |= 1 << board.sea_number[p]
    return fleets


def list_moves(s, board, province, fleets, listing):
    """Orders of the unit in a province: hold, moves, moves by convoy, supports, convoys.

    What is left are the supports of armies that can go by convoy alone: `list_supported_convoys` puts them last.
    """
    world, unit = board.map, s.unit[province]
    offer(listing, 0)
    list_ways(s, board, unit, province, fleets, listing)
    for k in range(board.near_start[province], board.near_start[province + 1]):
        p = board.near_list[k]
        if s.unit[p] != 0 and may_walk(world, unit, province, p):
            put(s, listing, order_number(world, SUPPORT_HOLD, p, 0))
    for k in range(board.near_start[province], board.near_start[province + 1]):
        if may_walk(world, unit, province, board.near_list[k]):
            list_supported_moves(s, board, province, board.near_list[k], listing)
    if board.sea_number[province] >= 0:
        list_convoys(s, board, province, fleets, listing)


def list_ways(s, board, unit, province, fleets, listing):
    """Moves of a unit, and those by convoy."""
    world = board.map
    if is_fleet(unit):
        at = location_of(world, unit, province)
        for k in range(world.fleet_start[at], world.fleet_start[at + 1]):
            put(s, listing, order_number(world, MOVE, world.fleet_list[k], 0))
        return
    for k in range(world.army_start[province], world.army_start[province + 1]):
        put(s, listing, order_number(world, MOVE, world.army_list[k], 0))
    if board.coast_number[province] >= 0 and fleets != 0:
        goals = convoy_goals(board, province, fleets)
        for p in range(world.provinces):
            if p != province and has_bit(goals, board.coast_number[p]):
                put(s, listing, order_number(world, VIA, p, 0))


def list_supported_moves(s, board, province, goal, listing):
    """Supports, by the unit in a province, of moves to a goal without a convoy."""
    world = board.map
    for k in range(board.near_start[goal], board.near_start[goal + 1]):
        other = board.near_list[k]
        if other != province and s.unit[other] != 0 and may_walk(world, s.unit[other], other, goal):
            put(s, listing, order_number(world, SUPPORT_MOVE, other, goal))


def list_convoys(s, board, province, fleets, listing):
    """Convoys by the fleet in a sea: of armies, to coasts, where it is no detour."""
    world, sea = board.map, board.sea_number[province]
    rest = fleets & ~(1 << sea)
    group = connected(board, (1 << sea) | (board.sea_near[sea] & rest), rest)
    coasts = coasts_of(board, group)
    for p in range(world.provinces):
        if is_army_at_coast(s, board, p) and has_bit(coasts, board.coast_number[p]):
            for goal in range(world.provinces):
                number = board.coast_number[goal]
                if goal != p and has_bit(coasts, number) and is_on_way(board, sea, board.coast_number[p], number, rest):
                    put(s, listing, order_number(world, CONVOY, p, goal))


def is_on_way(board, sea, start, goal, rest):
    """Whether a fleet in a sea is part of a chain of fleets between two coasts that has no shorter chain within it.

    Shortcuts are looked for from the fleets beside it. One between two fleets farther away is overlooked, which makes
    one of a hundred listed convoys a detour where seas are crowded; no fleet that can help is left out.

    Args:
        board: The board.
        sea: Number of the sea.
        start: Number of a coast.
        goal: Number of another one.
        rest: Seas of the other fleets, as bits.
    """
    direct, near = board.sea_coast[sea], board.sea_near[sea] & rest
    if has_bit(direct, start):
        return has_bit(direct, goal) or leads_to(board, near, rest & ~board.coast_sea[start], goal)
    if has_bit(direct, goal):
        return leads_to(board, near, rest & ~board.coast_sea[goal], start)
    before, behind = near & ~board.coast_sea[goal], near & ~board.coast_sea[start]
    far = rest & ~near
    for first in range(len(board.sea_near)):
        if has_bit(before, first):
            for second in range(len(board.sea_near)):
                if has_bit(behind & ~board.sea_near[first], second) and first != second:
                    here = far & ~board.coast_sea[goal] & ~board.sea_near[second] | (1 << first)
                    there = far & ~board.coast_sea[start] & ~board.sea_near[first] | (1 << second)
                    if leads_to(board, 1 << first, here, start) and leads_to(board, 1 << second, there, goal):
                        return True
    return False


def leads_to(board, seas, fleets, coast):
    """Whether fleets lead from some of these seas to a coast."""
    return has_bit(coasts_of(board, connected(board, seas & fleets, fleets)), coast)


def list_supported_convoys(s, board, province, other, goals, listing):
    """Supports, by the unit in a province, of moves that an army elsewhere can make by convoy alone.

    Args:
        s: The match.
        board: The board.
        province: Of the supporting unit.
        other: Of the army, a coast.
        goals: Coasts to which it may be convoyed without the supporting unit, as bits.
        listing: The list.
    """
    world, unit = board.map, s.unit[province]
    for k in range(board.near_start[province], board.near_start[province + 1]):
        goal = board.near_list[k]
        is_reached = goal != other and has_bit(goals, board.coast_number[goal]) and world.army_edge[other, goal] == 0
        if is_reached and may_walk(world, unit, province, goal):
            put(s, listing, order_number(world, SUPPORT_MOVE, other, goal))


def is_army_at_coast(s, board, province):
    """Whether a province holds an army that may be convoyed."""
    return board.coast_number[province] >= 0 and s.unit[province] != 0 and not is_fleet(s.unit[province])


def without_fleet(board, province, fleets):
    """Seas with a fleet, as bits, but for the province."""
    return fleets & ~(1 << board.sea_number[province]) if board.sea_number[province] >= 0 else fleets


def has_bit(bits, number):
    """Whether a set holds a number; -1 is in none."""
    return number >= 0 and (bits >> number) & 1 != 0


def convoy_goals(board, province, fleets):
    """Coasts, as bits, to which fleets in some seas could convoy an army."""
    seas, coast = 0, board.coast_number[province]
    for number in range(len(board.sea_coast)):
        if has_bit(fleets, number) and has_bit(board.sea_coast[number], coast):
            seas |= 1 << number
    return coasts_of(board, connected(board, seas, fleets)) if seas != 0 else 0


def connected(board, seas, fleets):
    """Seas with fleets, as bits, that fleets connect with some of these."""
    before = 0
    while seas != before:
        before = seas
        for number in range(len(board.sea_near)):
            if has_bit(before, number):
                seas |= board.sea_near[number] & fleets
    return seas


def coasts_of(board, seas):
    """Coasts, as bits, next to seas, as bits."""
    coasts = 0
    for number in range(len(board.sea_coast)):
        if has_bit(seas, number):
            coasts |= board.sea_coast[number]
    return coasts


def list_retreats(s, board, province, listing):
    """Orders of the dislodged unit of a province: disband, and retreats."""
    world, unit = board.map, s.dislodged[province]
    offer(listing, 0)
    if is_fleet(unit):
        at = location_of(world, unit, province)
        for k in range(world.fleet_start[at], world.fleet_start[at + 1]):
            if is_free(s, world.province_of[world.fleet_list[k]], s.mark[province]):
                offer(listing, order_number(world, MOVE, world.fleet_list[k], 0))
        return
    for k in range(world.army_start[province], world.army_start[province + 1]):
        if is_free(s, world.army_list[k], s.mark[province]):
            offer(listing, order_number(world, MOVE, world.army_list[k], 0))


def is_free(s, province, attacker):
    """Whether a unit may retreat to a province: no unit, no battle that left it empty, no attacker came thence."""
    return s.unit[province] == 0 and s.mark[province] != CONTESTED and province != attacker


NOTHING, CONTESTED = -1, -2
"""Marks of a province after moves: nothing, or a battle that left it empty; else where the attacker came from."""


def list_builds(s, board, power, listing):
    """Orders of a power that may build: waive, and armies and fleets in its home centres."""
    world = board.map
    offer(listing, 0)
    for c in range(world.centres):
        p = world.centre_province[c]
        if world.home[p] == power and s.owner[c] == power and s.unit[p] == 0:
            offer(listing, order_number(world, BUILD_ARMY, p, 0))
            if world.ground[p] == COAST and world.coasts[p] == 0:
                offer(listing, order_number(world, BUILD_FLEET, p, 0))
            for k in range(world.coasts[p]):
                offer(listing, order_number(world, BUILD_FLEET, world.first_coast[p] + k, 0))


def list_removals(s, board, power, listing):
    """Orders of a power that has to remove units: 0 leaves the choice to the rules of civil disorder."""
    world = board.map
    offer(listing, 0)
    for p in range(world.provinces):
        if s.unit[p] != 0 and power_of(s.unit[p]) == power:
            offer(listing, order_number(world, REMOVE, p, 0))
