"""Orders as text, in the notation of the field: ``A PAR - BUR``, ``F NTH C A LON - NWY``.

=====================  ===================================================================
text                   meaning
=====================  ===================================================================
``A PAR H``            hold
``A PAR - BUR``        move, or retreat; a fleet names the coast where it reaches several: ``F MAO - SPA/NC``
``A LON - NWY via``    move of an army by convoy, where it could also walk
``A PAR S A MAR``      support a unit that does not move
``A PAR S A MAR - BUR``  support a move
``F NTH C A LON - NWY``  convoy
``A PAR disband``      give a unit up instead of a retreat
``build A PAR``        build; ``build F STP/NC``
``remove A PAR``       remove
``waive``              do not build
=====================  ===================================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from palaestra.games.concert.concert_map import Names, World
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
    is_fleet,
    location_of,
    order_number,
    order_parts,
)
from palaestra.games.concert.map_format import suggestion

LETTERS = ("A", "F")
"""Army and fleet."""
DISBAND, WAIVE, VIA_WORD = "disband", "waive", "via"


@dataclass(frozen=True, slots=True)
class Order:
    """An order that was read.

    Attributes:
        unit: Letter of the unit, empty for ``waive``.
        place: Its location, or where it is built or removed; -1 for ``waive``.
        kind: Of the order: see `palaestra.games.concert.concert_orders`.
        number: Of the order.
    """

    unit: str
    place: int
    kind: int
    number: int


def read_order(world: World, names: Names, text: str) -> Order:
    """Reads one order; capital letters and further spaces do not matter.

    Raises:
        ValueError: It is none; names the word and what may stand there.
    """
    words = text.replace(" via convoy", " via").split()
    first = words[0].lower() if words else ""
    if first == WAIVE and len(words) == 1:
        return Order("", -1, HOLD, 0)
    if first in ("build", "remove"):
        if len(words) != 3:
            raise ValueError(f'an order to {first} is as "{first} A {names.provinces[0]}", got {text!r}')
        letter, place = read_unit(names, words[1:3])
        kind = REMOVE if first == "remove" else BUILD_ARMY if letter == "A" else BUILD_FLEET
        at = place if kind == BUILD_FLEET else int(world.province_of[place])
        return Order(letter, place, kind, order_number(world, kind, at, 0))
    if len(words) < 3:
        raise ValueError(
            f"an order has at least three words, a unit's letter, its place and what it does; got {text!r}"
        )
    letter, place = read_unit(names, words[:2])
    kind, number = read_action(world, names, letter, place, words[2:])
    return Order(letter, place, kind, number)


def read_action(world: World, names: Names, letter: str, place: int, words: list[str]) -> tuple[int, int]:
    """Kind and number of what stands behind a unit."""
    verb, rest = words[0].lower(), words[1:]
    if verb in ("h", "hold", "d", DISBAND) and not rest:
        return HOLD, 0
    if verb == "-" and rest:
        return read_move(world, names, letter, place, rest)
    if verb in ("s", "c") and len(rest) in (2, 4):
        _, other = read_unit(names, rest[:2])
        subject = int(world.province_of[other])
        if len(rest) == 2 and verb == "s":
            return SUPPORT_HOLD, order_number(world, SUPPORT_HOLD, subject, 0)
        if len(rest) == 4 and rest[2] == "-":
            goal = int(world.province_of[read_place(names, rest[3])])
            kind = SUPPORT_MOVE if verb == "s" else CONVOY
            return kind, order_number(world, kind, subject, goal)
    forms = f'"H", "- place", "S unit", "S unit - place", "C unit - place" or "{DISBAND}"'
    raise ValueError(f"behind a unit stands {forms}, got {' '.join(words)!r}")


def read_move(world: World, names: Names, letter: str, place: int, words: list[str]) -> tuple[int, int]:
    """A move; by convoy if it says so, or if an army could not walk."""
    goal, by_convoy = read_place(names, words[0]), [word.lower() for word in words[1:]] == [VIA_WORD]
    if len(words) > 1 and not by_convoy:
        raise ValueError(f'behind a move may stand "{VIA_WORD}", got {" ".join(words[1:])!r}')
    province = int(world.province_of[goal])
    if letter == "F":
        return MOVE, order_number(world, MOVE, coast_of(world, place, goal), 0)
    if by_convoy or not world.army_edge[world.province_of[place], province]:
        return VIA, order_number(world, VIA, province, 0)
    return MOVE, order_number(world, MOVE, province, 0)


def coast_of(world: World, place: int, goal: int) -> int:
    """Where a fleet goes: of a province with several coasts that is named without one, the only one that it reaches."""
    if goal >= world.provinces or world.coasts[goal] == 0:
        return goal
    first = int(world.first_coast[goal])
    reached = [k for k in range(first, first + int(world.coasts[goal])) if world.fleet_edge[place, k]]
    return reached[0] if len(reached) == 1 else goal


def read_unit(names: Names, words: list[str]) -> tuple[str, int]:
    """Letter and location of a unit."""
    letter = words[0].upper()
    if letter not in LETTERS:
        raise ValueError(f"a unit begins with A or F, got {words[0]!r}")
    return letter, read_place(names, words[1])


def read_place(names: Names, word: str) -> int:
    """Number of a location."""
    place = word.upper()
    if place not in names.locations:
        near = suggestion(place, names.locations)
        raise ValueError(f"there is no place {word!r}{near}")
    return names.locations.index(place)


def order_text(world: World, names: Names, units: Any, province: int, number: int, dislodged: int = 0) -> str:
    """An order as text.

    Args:
        world: The map.
        names: Its names.
        units: Bytes of the units of all provinces [P], of which supports and convoys speak.
        province: Where the unit stands that has the order; -1 for builds and ``waive``.
        number: Of the order.
        dislodged: The unit, if it is one that has to retreat.
    """
    kind, a, b = order_parts(world, int(number))
    if kind in (BUILD_ARMY, BUILD_FLEET):
        return f"build {LETTERS[kind == BUILD_FLEET]} {names.locations[a]}"
    if kind == REMOVE:
        return f"remove {unit_text(world, names, units[a], a)}"
    if province < 0:
        return WAIVE
    own = unit_text(world, names, dislodged or units[province], province)
    if kind == HOLD:
        return f"{own} {DISBAND if dislodged else 'H'}"
    if kind in (MOVE, VIA):
        return f"{own} - {names.locations[a]}" + (f" {VIA_WORD}" if kind == VIA else "")
    other = unit_text(world, names, units[a], a)
    verb = "C" if kind == CONVOY else "S"
    return f"{own} {verb} {other}" + ("" if kind == SUPPORT_HOLD else f" - {names.provinces[b]}")


def unit_text(world: World, names: Names, unit: int, province: int) -> str:
    """A unit as text: ``F STP/NC``."""
    return f"{LETTERS[bool(is_fleet(unit))]} {names.locations[location_of(world, unit, province)]}"
