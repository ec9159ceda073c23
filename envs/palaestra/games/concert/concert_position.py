"""A position of the Concert games, from the match record or from what powers observe, and its last orders as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from palaestra.game import AgentView
from palaestra.games.concert.adjudication import DISLODGED, OK, RESULTS, VOID
from palaestra.games.concert.concert_map import NOBODY, Names, World
from palaestra.games.concert.concert_orders import (
    BUILD_ARMY,
    BUILD_FLEET,
    REMOVE,
    Board,
    order_parts,
    power_of,
)
from palaestra.games.concert.concert_phases import ADJUSTMENTS, MOVES, PHASES, RETREATS, SEASONS, SPRING
from palaestra.games.concert.concert_sight import CENTRE, KIND, LEFT, LEFT_OWNER, OWNER, POWERS, mirrored_units
from palaestra.games.concert.order_grammar import order_text, unit_text


class Position(NamedTuple):
    """A position, and the orders that led to it.

    Attributes:
        year: Of the phase that comes next.
        season: SPRING or AUTUMN.
        phase: MOVES, RETREATS or ADJUSTMENTS.
        last_phase: That of the last orders.
        units: Bytes, 0 for none ``[P]``.
        dislodged: Units that have to retreat ``[P]``.
        owners: Powers, -1 for nobody ``[C]``.
        last_units: Units before the last moves ``[P]``.
        orders: Numbers of the orders of the last phase, by province ``[P]``.
        results: Of these ``[P]``.
    """

    year: int
    season: int
    phase: int
    last_phase: int
    units: np.ndarray
    dislodged: np.ndarray
    owners: np.ndarray
    last_units: np.ndarray
    orders: np.ndarray
    results: np.ndarray


class LastOrder(NamedTuple):
    """An order of the last phase.

    Attributes:
        power: Whose it was, -1 for a removal: the unit is not there any more.
        province: Where the unit stood, was built or removed.
        number: Of the order.
        result: One of `palaestra.games.concert.adjudication.RESULTS`, as its place.
        text: The order.
    """

    power: int
    province: int
    number: int
    result: int
    text: str


def position_of_record(s: Any) -> Position:
    """The position of a match record."""
    when = int(s.year), int(s.season), int(s.phase), int(s.last_phase)
    return Position(*when, s.unit, s.dislodged, s.owner, s.last_unit, s.order, s.result)


def position_of_lane(world: World, lane: Any) -> Position:
    """The position as all powers observe it, from the record of the fields that they share."""
    board = lane["board"]
    owners = board[world.centre_province, CENTRE : CENTRE + POWERS + 1].argmax(1)
    return Position(
        int(lane["year"]),
        int(lane["season"]),
        int(lane["phase"]),
        int(lane["last_phase"]),
        units_at(world, board, KIND, OWNER),
        units_at(world, board, LEFT, LEFT_OWNER),
        np.where(owners == POWERS, NOBODY, owners),
        units_at(world, lane["previous_board"], KIND, OWNER),
        lane["last_orders"],
        lane["last_results"],
    )


def position_of_view(board: Board, view: AgentView) -> Position:
    """The position on the map, from what a power observes in its own view."""
    shares = view.lane is not None and "board" in (view.lane.dtype.names or ())
    seen = position_of_lane(board.map, view.lane if shares else view.row)
    if not (board.mirrored and view.slot == 1):
        return seen
    world, provinces = board.map, board.seen_at[1, : board.map.provinces]
    owners = seen.owners[world.centre[provinces[world.centre_province]]]
    return seen._replace(
        units=mirrored_units(board, seen.units)[provinces],
        dislodged=mirrored_units(board, seen.dislodged)[provinces],
        owners=np.where(owners >= 0, 1 - owners, owners),
        last_units=mirrored_units(board, seen.last_units)[provinces],
        orders=board.image[seen.orders][provinces],
        results=seen.results[provinces],
    )


def units_at(world: World, board: np.ndarray, kind: int, owner: int) -> np.ndarray:
    """Units of all provinces, uint8 ``[P]``, from the numbers of the locations ``[L, features]``.

    Args:
        world: The map.
        board: The numbers.
        kind: First of those that say which kind of unit is there.
        owner: First of those that say whose it is.
    """
    units = np.zeros(world.provinces, np.uint8)
    places = np.flatnonzero(board[:, kind : kind + 2].any(1))
    provinces = world.province_of[places]
    coasts = np.where(places < world.provinces, 0, 1 + places - world.first_coast[provinces])
    forms = np.where(board[places, kind + 1] != 0, 1 + coasts, 0)
    units[provinces] = 1 + board[places, owner : owner + POWERS].argmax(1) + 8 * forms
    return units


# --------------------------------------------------------------------------------------------------------- last orders


def is_start(world: World, position: Position) -> bool:
    """Whether no order was carried out yet."""
    return (position.year, position.season, position.phase) == (world.first_year, SPRING, MOVES)


def last_orders(world: World, names: Names, position: Position) -> list[LastOrder]:
    """The orders of the last phase, by power, then by province; none at the start."""
    if is_start(world, position):
        return []
    phase = position.last_phase
    find = {MOVES: ordered_units, RETREATS: ordered_retreats, ADJUSTMENTS: ordered_adjustments}[phase]
    found = []
    for power, province, text in find(world, names, position):
        number, result = int(position.orders[province]), int(position.results[province])
        found.append(LastOrder(power, province, number, result, text))
    return sorted(found, key=lambda order: order.power % (POWERS + 2))


def ordered_units(world: World, names: Names, position: Position) -> Iterator[tuple[int, int, str]]:
    """Power, province and order of each unit in moves."""
    for p in np.flatnonzero(position.last_units).tolist():
        text = order_text(world, names, position.last_units, p, position.orders[p])
        yield int(power_of(position.last_units[p])), p, text


def ordered_retreats(world: World, names: Names, position: Position) -> Iterator[tuple[int, int, str]]:
    """Likewise of each unit that had to retreat."""
    for p in range(world.provinces):
        if position.orders[p] != 0 or position.results[p] == DISLODGED:
            unit = position.last_units[p]
            yield int(power_of(unit)), p, order_text(world, names, position.last_units, p, position.orders[p], unit)


def ordered_adjustments(world: World, names: Names, position: Position) -> Iterator[tuple[int, int, str]]:
    """Likewise of builds and removals; those by the rules of civil disorder have the result ``void``."""
    for p in range(world.provinces):
        kind, _, _ = order_parts(world, int(position.orders[p]))
        if kind in (BUILD_ARMY, BUILD_FLEET):
            text = order_text(world, names, position.units, -1, position.orders[p])
            yield int(power_of(position.units[p])), p, text
        elif kind == REMOVE or position.results[p] == VOID:
            yield NOBODY, p, f"remove {names.provinces[p]}"


# ----------------------------------------------------------------------------------------------------------- in words


def heading(position: Position, is_over: bool = False) -> str:
    """Season and year, and the phase while the match is running."""
    when = f"{SEASONS[position.season]} {position.year}"
    return when if is_over else f"{when}, {PHASES[position.phase]}"


def position_lines(world: World, names: Names, position: Position) -> Iterator[str]:
    """Centres and units of all powers."""
    yield "centres:"
    for power, name in enumerate((*names.powers, "nobody")):
        owner = power if power < world.powers else NOBODY
        keys = [names.provinces[world.centre_province[c]] for c in np.flatnonzero(position.owners == owner)]
        if keys:
            yield f"{name} {len(keys)}: {' '.join(keys)}"
    yield "units:"
    yield from unit_lines(world, names, position.units)
    if position.dislodged.any():
        yield "dislodged:"
        yield from unit_lines(world, names, position.dislodged)


def unit_lines(world: World, names: Names, units: np.ndarray) -> Iterator[str]:
    """A line of units for each power that has some."""
    provinces = np.flatnonzero(units).tolist()
    for power, name in enumerate(names.powers):
        texts = [unit_text(world, names, units[p], p) for p in provinces if power_of(units[p]) == power]
        if texts:
            yield f"{name}: {', '.join(texts)}"


def last_lines(world: World, names: Names, position: Position) -> Iterator[str]:
    """The last orders, a line for each power; results other than ``ok`` in brackets."""
    by_power = dict[str, list[str]]()
    for order in last_orders(world, names, position):
        name = names.powers[order.power] if order.power != NOBODY else "removed"
        result = "" if order.result == OK else f" ({RESULTS[order.result]})"
        by_power.setdefault(name, []).append(f"{order.text}{result}")
    if by_power:
        yield f"last {PHASES[position.last_phase]}:"
        for name, texts in by_power.items():
            yield f"{name}: {'; '.join(texts)}"
