"""The meaning of a click on the map, for ``palaestra play``, where a decision is the order of one unit."""

from __future__ import annotations

import math
from typing import Any

from palaestra.core.compile.linker import record_view
from palaestra.drawing.widgets import length_of
from palaestra.game import Game
from palaestra.games.concert.concert_map import World
from palaestra.games.concert.concert_orders import (
    BUILD_ARMY,
    BUILD_FLEET,
    CONVOY,
    HOLD,
    MOVE,
    REMOVE,
    SUPPORT_HOLD,
    SUPPORT_MOVE,
    VIA,
    order_parts,
    own_number,
    power_of,
)
from palaestra.games.concert.concert_picture import background
from palaestra.games.concert.map_drawing import DOT, GAP, MapDrawing, label_size

ON_UNIT, ON_KEY, ON_GROUND = range(3)
MEANT = (
    (SUPPORT_HOLD, REMOVE, MOVE, VIA),
    (SUPPORT_MOVE, CONVOY, BUILD_FLEET),
    (MOVE, VIA, BUILD_ARMY, REMOVE),
)
"""Kinds of orders that a click on each may mean; the first that is listed is taken."""


def click(game: Game, world: Any, s: Any, slot: int, x: int, y: int) -> int | None:
    """The order that a click gives to the unit with the bright ring.

    On its own province: hold, or disband where it has to retreat. On another unit: support it where it stands. On the
    key of a province: support a move to it, of an own unit if there is one; else convoy an army to it; build a fleet.
    Elsewhere in a province: move there, by convoy where it cannot walk; build an army; remove the unit. Of several
    coasts the one nearest to the click is meant, of several orders the first in the list.

    Args:
        game: The rules.
        world: With their board.
        s: The match record.
        slot: The power.
        x: Column of the pixel.
        y: Row of the pixel.

    Returns:
        The place in the list, or None where a click means no order of the list.
    """
    match: Any = record_view(s)
    ground = world.board[0]
    board = ground.map
    drawing, _ = background(board, game.captions)
    location = drawing.location_at(x, y)
    if location is None or not match.acting[slot]:
        return None
    spot, province = spot_at(board, game, drawing, match, (x, y), location)
    if province == match.next[slot]:
        return 0
    listing = match.lists[slot]
    numbers = [own_number(ground, slot, number) for number in listing.ids[: listing.count].tolist()]
    parts = [order_parts(board, int(number)) for number in numbers]
    found = [k for k, part in enumerate(parts) if goal_of(board, *part) == province and part[0] in MEANT[spot]]

    def rank(k: int) -> tuple[int, bool, bool]:
        kind, a, _ = parts[k]
        is_others = kind == SUPPORT_MOVE and power_of(match.unit[a]) != slot
        return MEANT[spot].index(kind), is_others, kind in (MOVE, BUILD_FLEET) and a != location

    return min(found, key=rank, default=None)


def spot_at(
    board: World, game: Game, drawing: MapDrawing, match: Any, at: tuple[int, int], location: int
) -> tuple[int, int]:
    """What was clicked, and the province to which it belongs: keys may lie beyond their province's border."""
    x, y = at
    size = label_size(game.captions)
    for p, (left, base) in enumerate(drawing.labels):
        width = 2 * DOT + GAP + length_of(game.captions.provinces[p], size)
        if left - 2 <= x <= left + width and base - size <= y <= base + 3:
            return ON_KEY, p
    province = int(board.province_of[location])
    is_near = math.dist(drawing.places[location], at) <= drawing.unit
    return (ON_UNIT if is_near and match.unit[province] != 0 else ON_GROUND), province


def goal_of(board: World, kind: int, a: int, b: int) -> int:
    """The province that has to be clicked for an order."""
    if kind in (SUPPORT_MOVE, CONVOY):
        return b
    return -1 if kind == HOLD else int(board.province_of[a])
