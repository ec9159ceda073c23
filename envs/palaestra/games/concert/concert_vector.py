"""Observations of the Concert games as one vector: ``observation="vector"``.

Real numbers from the point of view of the power that looks: its own number comes first, then the powers behind it in
alphabetical order, then those before it. On a map with a mirror the second power sees mirror images of the places, so
that both powers see the same start.
"""

from __future__ import annotations

from palaestra.game import Field, Representation
from palaestra.games.concert.concert_map import World
from palaestra.games.concert.concert_orders import (
    CONTESTED,
    MOVE,
    SUPPORT_HOLD,
    SUPPORT_MOVE,
    VIA,
    Board,
    is_fleet,
    location_of,
    order_parts,
    power_of,
)
from palaestra.games.concert.concert_phases import ADJUSTMENTS, MOVES, adjustment

ARMY, FLEET, DISLODGED, LEFT_EMPTY, HOME, CENTRE = range(6)
"""First numbers of a location: an army, a fleet, a dislodged unit, a battle that left it empty, a home centre of the
own power, a centre. Behind these: the power of the unit, dislodged or not, then the owner of the centre."""
NEXT, ENTERED, SUPPORTED = range(3)
"""Last numbers of a location with ``decisions="unit"``: the next unit stands there; own orders of this phase move there;
own orders of this phase support a move thither, or the unit there."""
IS_AUTUMN, YEARS_LEFT, BUILDS, REMOVALS = 3, 4, 5, 6
CLOCK = 7
"""Numbers of the clock: the phase (moves, retreats, adjustments), then these."""


def vector_of(board: Board) -> Representation:
    """The representation of a board."""
    world = board.map
    fields = (
        Field("places", (world.locations, columns_of(board)), 0, 1, "1", "each location: see Observation Space"),
        Field(
            "clock", (CLOCK,), 0, 1, "1", "phase (moves, retreats, adjustments), autumn, years left, builds, removals"
        ),
    )
    return Representation("real numbers from the point of view of the power", observe_vector, {"power": fields})


def columns_of(board: Board) -> int:
    """Numbers of a location."""
    return owner_column(board.map) + board.map.powers + (SUPPORTED + 1) * board.single


def owner_column(world: World) -> int:
    """First number of the owner of a centre."""
    return CENTRE + 1 + world.powers


def observe_vector(s, world, observations, scratch):
    """What each power sees."""
    board = world.board[0]
    for power in range(board.map.powers):
        row = observations.power[power]
        write_units(s, board, power, row.places)
        write_centres(s, board, power, row.places)
        write_clock(s, board, power, row.clock)
        if board.single:
            write_given(s, board, power, row.places)


def seen(board, power, location):
    """Where a power sees a location."""
    return board.seen_at[power * board.mirrored, location]


def relative(world, power, other):
    """Number of a power as another one sees it; 0 is itself."""
    return (other - power) % world.powers


def write_units(s, board, power, places):
    """Units, dislodged ones, and provinces that a battle left empty."""
    world = board.map
    for p in range(world.provinces):
        if s.mark[p] == CONTESTED:
            places[seen(board, power, p), LEFT_EMPTY] = 1.0
        unit = s.unit[p]
        if unit != 0:
            row = places[seen(board, power, location_of(world, unit, p))]
            row[FLEET if is_fleet(unit) else ARMY] = 1.0
            row[CENTRE + 1 + relative(world, power, power_of(unit))] = 1.0
        left = s.dislodged[p]
        if left != 0:
            row = places[seen(board, power, location_of(world, left, p))]
            row[DISLODGED] = 1.0
            row[CENTRE + 1 + relative(world, power, power_of(left))] = 1.0


def write_centres(s, board, power, places):
    """Centres and their owners."""
    world = board.map
    first = CENTRE + 1 + world.powers
    for c in range(world.centres):
        p = world.centre_province[c]
        row = places[seen(board, power, p)]
        row[CENTRE] = 1.0
        row[HOME] = 1.0 if world.home[p] == power else 0.0
        if s.owner[c] >= 0:
            row[first + relative(world, power, s.owner[c])] = 1.0


def write_clock(s, board, power, clock):
    """Phase and season, the share of the years that are left, units to build and to remove as shares of the orders."""
    world = board.map
    clock[s.phase] = 1.0
    clock[IS_AUTUMN] = s.season
    clock[YEARS_LEFT] = (board.last_year - s.year) / max(board.last_year - world.first_year, 1)
    if s.phase == ADJUSTMENTS:
        due = adjustment(s, world, power)
        clock[BUILDS if due > 0 else REMOVALS] = min(abs(due) / board.slots, 1.0)


def write_given(s, board, power, places):
    """Where the next unit stands, and the own orders of this phase so far, which are in the view of the power."""
    world = board.map
    first = CENTRE + 1 + 2 * world.powers
    p = s.next[power]
    if p >= 0:
        unit = s.unit[p] if s.phase == MOVES else s.dislodged[p]
        places[seen(board, power, location_of(world, unit, p)), first + NEXT] = 1.0
    for j in range(s.asked if s.acting[power] else 0):
        kind, a, b = order_parts(world, s.given[power, j])
        if kind in (MOVE, VIA):
            places[a, first + ENTERED] = 1.0
        elif kind == SUPPORT_HOLD:
            places[a, first + SUPPORTED] = 1.0
        elif kind == SUPPORT_MOVE:
            places[b, first + SUPPORTED] = 1.0


__all__ = ["vector_of"]
