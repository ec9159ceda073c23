"""Observations of the Concert games as one vector: ``observation="vector"``.

Real numbers from the point of view of the power that looks: its own number comes first, then the powers behind it in
alphabetical order, then those before it. On a map with a mirror the second power sees mirror images of the places, so
that both powers see the same start.
"""

from __future__ import annotations

from palaestra.game import Field, Representation
from palaestra.games.concert.concert_orders import (
    BUILD_ARMY,
    BUILD_FLEET,
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

ARMY, FLEET, DISLODGED, LEFT_EMPTY, HOME, CENTRE, POWER = range(7)
"""First numbers of a location: an army, a fleet, a dislodged unit, a battle that left it empty, a home centre of the
own power, a centre; from `POWER` on the power of the unit, dislodged or not, then the owner of the centre."""
NEXT, ENTERED, SUPPORTED = range(3)
"""Last numbers of a location with ``decisions="unit"``: the next unit stands there, own orders of this phase move or
build there, own orders of this phase support a move to there or the unit there."""
IS_AUTUMN, YEARS_LEFT, BUILDS, REMOVALS, CLOCK = range(3, 8)
"""Numbers of the clock behind those of the phase (moves, retreats, adjustments); how many there are."""
ABOUT_CLOCK = "moves, retreats, adjustments, autumn, share of the years left, units to build, to remove"


def vector_of(board: Board) -> Representation:
    """The representation of a board."""
    world = board.map
    columns = POWER + 2 * world.powers + (SUPPORTED + 1) * board.single
    places = Field("places", (world.locations, columns), 0, 1, "1", "each location: see Observation Space")
    clock = Field("clock", (CLOCK,), 0, 1, "1", ABOUT_CLOCK)
    observe = observe_unit_vector if board.single else observe_phase_vector
    return Representation("real numbers from 0 to 1, the own power first", observe, {"power": (places, clock)})


def observe_phase_vector(s, world, observations, scratch):
    """What each power sees."""
    board = world.board[0]
    for power in range(board.map.powers):
        row = observations.power[power]
        write_units(s, board, power, row.places)
        write_centres(s, board, power, row.places)
        write_clock(s, board, power, row.clock)


def observe_unit_vector(s, world, observations, scratch):
    """The same, and the next unit and the orders of this phase."""
    observe_phase_vector(s, world, observations, scratch)
    board = world.board[0]
    for power in range(board.map.powers):
        write_given(s, board, power, observations.power[power].places)


def seen(board, power, location):
    """Where a power sees a location."""
    return board.seen_at[power * board.mirrored, location]


def relative(world, power, other):
    """Number of a power as another one sees it; 0 is itself."""
    return (other - power) % world.powers


def write_units(s, board, power, places):
    """Units, dislodged ones, and provinces that a battle left empty. Split coasts show units alone."""
    world = board.map
    for p in range(world.provinces):
        if s.mark[p] == CONTESTED:
            places[seen(board, power, p), LEFT_EMPTY] = 1.0
        unit = s.unit[p]
        if unit != 0:
            row = places[seen(board, power, location_of(world, unit, p))]
            row[FLEET if is_fleet(unit) else ARMY] = 1.0
            row[POWER + relative(world, power, power_of(unit))] = 1.0
        left = s.dislodged[p]
        if left != 0:
            row = places[seen(board, power, location_of(world, left, p))]
            row[DISLODGED] = 1.0
            row[POWER + relative(world, power, power_of(left))] = 1.0


def write_centres(s, board, power, places):
    """Centres and their owners."""
    world = board.map
    first = POWER + world.powers
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
    first = POWER + 2 * world.powers
    p = s.next[power]
    if p >= 0:
        unit = s.unit[p] if s.phase == MOVES else s.dislodged[p]
        places[seen(board, power, location_of(world, unit, p)), first + NEXT] = 1.0
    for j in range(s.asked if s.acting[power] else 0):
        kind, a, b = order_parts(world, s.given[power, j])
        if kind in (MOVE, VIA, BUILD_ARMY, BUILD_FLEET):
            places[a, first + ENTERED] = 1.0
        elif kind == SUPPORT_HOLD:
            places[a, first + SUPPORTED] = 1.0
        elif kind == SUPPORT_MOVE:
            places[b, first + SUPPORTED] = 1.0


__all__ = ["vector_of"]
