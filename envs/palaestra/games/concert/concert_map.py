"""Maps: provinces, borders and powers from JSON files, checked, as arrays for the rules.

A *province* is a place that one unit may occupy. A *location* is where a unit stands in it: the province itself, or one
of its split coasts (``SPA/NC``). A unit is one byte, see `unit_code`.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from palaestra.core.contract.worlds import read_only
from palaestra.core.files import FileError
from palaestra.games.concert.map_borders import (
    FAR,
    army_borders,
    by_province,
    fewest_steps,
    fleet_borders,
    fleet_location,
    fleet_steps,
    neighbours,
)
from palaestra.games.concert.map_format import (
    COAST,
    INLAND,
    MAPS,
    SEA,
    MapFile,
    Power,
    Provinces,
    map_text,
    read_map_file,
    suggestion,
)

__all__ = ["ARMY", "COAST", "FAR", "FLEET", "FORMS", "INLAND", "MAPS", "NOBODY", "SEA", "Names", "World", "load_map"]
__all__ += ["read_map", "unit_code", "unit_form", "unit_location", "unit_power"]

ARMY, FLEET = 0, 1
"""Forms of a unit. A fleet on the k-th split coast has the form FLEET + 1 + k."""
FORMS = 8
"""Unit codes of one form: the most powers."""
NOBODY = -1
"""No power, no centre, no coast."""
MOST_LOCATIONS = 127
"""Locations are int8."""


class World(NamedTuple):
    """A map as the rules read it. P provinces by key, L locations: the provinces, then the split coasts. Read-only.

    Attributes:
        provinces: P.
        locations: L.
        powers: Q, in alphabetical order.
        centres: C, in the order of their provinces.
        solo: Centres that win.
        first_year: Year of the first spring.
        ground: INLAND, COAST or SEA, int8 ``[P]``.
        province_of: Province of a location, int8 ``[L]``.
        first_coast: First split coast of a province, -1 without any, int8 ``[P]``.
        coasts: How many split coasts, int8 ``[P]``.
        army_edge: Where an army may walk, uint8 ``[P, P]``.
        fleet_edge: Where a fleet may sail, uint8 ``[L, L]``.
        fleet_reach: Provinces with a coast to which a fleet may sail, uint8 ``[L, P]``.
        army_start: Neighbours of p are ``army_list[army_start[p]:army_start[p + 1]]``, int16 ``[P + 1]``.
        army_list: Provinces, int8.
        fleet_start: The same for fleets, int16 ``[L + 1]``.
        fleet_list: Locations, int8.
        centre: Number of the province's centre or -1, int8 ``[P]``.
        centre_province: Its inverse, int8 ``[C]``.
        home: Power whose home centre it is or -1, int8 ``[P]``.
        start_unit: Unit code at the start, uint8 ``[P]``.
        start_owner: Power or -1, int8 ``[C]``.
        rank: Place of a province in the order in which a power counts, int8 ``[Q, P]``. With a mirror the second
            power counts in the order of the mirror images.
        ranked: Its inverse, int8 ``[Q, P]``.
        army_steps: Fewest moves of an army that fleets may carry over any sea, int8 ``[P, P]``; FAR: none.
        fleet_steps: Fewest moves of a fleet to any coast of a province, int8 ``[L, P]``; FAR: none.
        mirror: Mirror image of each location, int8 ``[L]``; ``[0]`` without one.
    """

    provinces: int
    locations: int
    powers: int
    centres: int
    solo: int
    first_year: int
    ground: np.ndarray
    province_of: np.ndarray
    first_coast: np.ndarray
    coasts: np.ndarray
    army_edge: np.ndarray
    fleet_edge: np.ndarray
    fleet_reach: np.ndarray
    army_start: np.ndarray
    army_list: np.ndarray
    fleet_start: np.ndarray
    fleet_list: np.ndarray
    centre: np.ndarray
    centre_province: np.ndarray
    home: np.ndarray
    start_unit: np.ndarray
    start_owner: np.ndarray
    rank: np.ndarray
    ranked: np.ndarray
    army_steps: np.ndarray
    fleet_steps: np.ndarray
    mirror: np.ndarray


@dataclass(frozen=True, eq=False)
class Names:
    """Names and picture of a map.

    Attributes:
        provinces: Keys, ``"SPA"``.
        titles: Of the provinces, ``"Spain"``.
        powers: In the order of the world.
        locations: Keys, ``"SPA/NC"``.
        at: Where a unit is drawn, float64 ``[L, 2]`` in 0..1000 x 0..800, y down.
    """

    provinces: tuple[str, ...]
    titles: tuple[str, ...]
    powers: tuple[str, ...]
    locations: tuple[str, ...]
    at: np.ndarray


def unit_code(power: int, form: int) -> int:
    """The code of a unit; 0 is none. ``form``: ARMY, FLEET, or FLEET + 1 + k on the k-th split coast."""
    return 1 + power + FORMS * form


def unit_power(code: int) -> int:
    """The power of a unit."""
    return (code - 1) % FORMS


def unit_form(code: int) -> int:
    """The form of a unit."""
    return (code - 1) // FORMS


def unit_location(world: World, province: int, code: int) -> int:
    """The location at which a unit of a province stands."""
    form = unit_form(code)
    return province if form <= FLEET else int(world.first_coast[province]) + form - FLEET - 1


@functools.cache
def load_map(name: str) -> tuple[World, Names]:
    """One of `MAPS`; each is read once.

    Raises:
        ValueError: No such map.
    """
    return read_map(map_text("map", name), name)


def read_map(text: str, source: str) -> tuple[World, Names]:
    """Reads and checks a map.

    Args:
        text: JSON, see `map_format`.
        source: What messages call it.

    Raises:
        ValueError: No map, or one that breaks a rule of maps. Names source, key and reason.
    """
    try:
        return build_map(read_map_file(text))
    except ValueError as error:
        raise FileError(f"{source}: {error}") from None


def build_map(file: MapFile) -> tuple[World, Names]:
    """Checks what the parts of a map say about each other, and makes the arrays.

    Raises:
        ValueError: Names key and reason.
    """
    keys, locations = tuple(file.provinces), location_keys(file.provinces)
    coasts = np.array([len(province.coasts_at) for province in file.provinces.values()], np.int8)
    province_of = np.array([keys.index(location[:3]) for location in locations], np.int8)
    first_coast = np.where(coasts > 0, len(keys) + np.cumsum(coasts) - coasts, NOBODY).astype(np.int8)
    is_centre = np.array([province.is_centre for province in file.provinces.values()])
    army_edge, fleet_edge = army_borders(file.provinces), fleet_borders(file.provinces, locations)
    fleet_reach = np.ascontiguousarray(by_province(fleet_edge.T, province_of).T)
    army_start, army_list = neighbours(army_edge)
    fleet_start, fleet_list = neighbours(fleet_edge)
    home = home_powers(file)
    standing = start_units(file.provinces, file.powers, locations)
    coast_form = np.arange(len(locations)) - np.where(coasts > 0, first_coast, 0)[province_of] + 1
    coast_form[: len(keys)] = 0
    world = World(
        provinces=len(keys),
        locations=len(locations),
        powers=len(file.powers),
        centres=int(is_centre.sum()),
        solo=file.solo,
        first_year=file.first_year,
        ground=np.array([province.ground for province in file.provinces.values()], np.int8),
        province_of=province_of,
        first_coast=first_coast,
        coasts=coasts,
        army_edge=army_edge,
        fleet_edge=fleet_edge,
        fleet_reach=fleet_reach,
        army_start=army_start,
        army_list=army_list,
        fleet_start=fleet_start,
        fleet_list=fleet_list,
        centre=np.where(is_centre, np.cumsum(is_centre) - 1, NOBODY).astype(np.int8),
        centre_province=np.flatnonzero(is_centre).astype(np.int8),
        home=home,
        start_unit=by_province(np.where(standing > 0, standing + FORMS * coast_form, 0).astype(np.uint8), province_of),
        start_owner=home[is_centre],
        rank=np.tile(np.arange(len(keys), dtype=np.int8), (len(file.powers), 1)),
        ranked=np.tile(np.arange(len(keys), dtype=np.int8), (len(file.powers), 1)),
        army_steps=fewest_steps(army_edge | by_province(fleet_reach, province_of)),
        fleet_steps=fleet_steps(fleet_edge, province_of),
        mirror=np.zeros(1, np.int8),
    )
    if file.mirror is not None:
        world = add_mirror(world, mirror_images(file.mirror, locations), locations, standing)
    at = [p.at for p in file.provinces.values()] + [at for p in file.provinces.values() for at in p.coasts_at]
    titles = tuple(province.title for province in file.provinces.values())
    return read_only(world), Names(keys, titles, tuple(file.powers), locations, read_only(np.array(at, float)))


def location_keys(provinces: Provinces) -> tuple[str, ...]:
    """Keys of the provinces, then of their split coasts.

    Raises:
        ValueError: Too many.
    """
    coasts = (f"{key}/{coast}" for key, province in provinces.items() for coast in province.fleets if coast)
    keys = (*provinces, *coasts)
    if len(keys) > MOST_LOCATIONS:
        raise ValueError(f"provinces: {len(keys)} provinces and coasts, at most {MOST_LOCATIONS} are possible")
    return keys


def home_powers(file: MapFile) -> np.ndarray:
    """The power whose home centre a province is, or -1, int8 ``[P]``.

    Raises:
        ValueError: A home is no province, no centre, or of two powers.
    """
    keys, powers = tuple(file.provinces), tuple(file.powers)
    home = np.full(len(keys), NOBODY, np.int8)
    for number, (name, power) in enumerate(file.powers.items()):
        for key in power.home:
            if key not in file.provinces:
                raise ValueError(f"powers.{name}.home: no province {key[:40]!r}{suggestion(key, keys)}")
            if not file.provinces[key].is_centre:
                raise ValueError(f"powers.{name}.home: {key} has no supply centre")
            if home[keys.index(key)] != NOBODY:
                raise ValueError(f"powers.{name}.home: {key} is a home of {powers[home[keys.index(key)]]} too")
            home[keys.index(key)] = number
    return home


def start_units(provinces: Provinces, powers: dict[str, Power], locations: tuple[str, ...]) -> np.ndarray:
    """The unit at each location at the start, as a code of the form ARMY or FLEET or 0, uint8 ``[L]``.

    Raises:
        ValueError: A unit where it cannot stand, or two in one province.
    """
    units = np.zeros(len(locations), np.uint8)
    taken: dict[str, str] = {}
    for number, (power, start) in enumerate(powers.items()):
        key = f"powers.{power}.units"
        for unit in start.units:
            form, _, place = unit.partition(" ")
            if form == "F":
                location = fleet_location(place, key, provinces, locations)
            elif form == "A" and place in provinces and provinces[place].ground != SEA:
                location = locations.index(place)
            else:
                reason = "an army stands in a province on land" if form == "A" else "it must begin with A or F"
                raise ValueError(f"{key}: {unit[:40]!r}: {reason}, as in 'A PAR' or 'F STP/SC'")
            if place[:3] in taken:
                raise ValueError(f"{key}: {unit!r}: the province has a unit already, {taken[place[:3]]!r}")
            taken[place[:3]] = unit
            units[location] = unit_code(number, FLEET if form == "F" else ARMY)
    return units


def mirror_images(images: dict[str, str], locations: tuple[str, ...]) -> np.ndarray:
    """The mirror image of each location, int8 ``[L]``.

    Raises:
        ValueError: A location without image, an unknown one, one that is not the image of its image, or a coast whose
            image is of another province.
    """
    for name in (*images, *images.values()):
        if name not in locations:
            raise ValueError(f"mirror: no province or coast {name[:40]!r}{suggestion(name, locations)}")
    for name in locations:
        if name not in images:
            raise ValueError(f"mirror: {name} has no image: name each province and each split coast")
        image = images[name]
        if images.get(image) != name:
            raise ValueError(f"mirror: {name} has the image {image}, whose image is {images.get(image)}")
        if (image[:3], len(image)) != (images[name[:3]], len(name)):
            raise ValueError(f"mirror: {name} has the image {image}: coasts go with their provinces")
    return np.array([locations.index(images[name]) for name in locations], np.int8)


def add_mirror(world: World, mirror: np.ndarray, locations: tuple[str, ...], units: np.ndarray) -> World:
    """The map with a mirror that exchanges its two powers and changes nothing else.

    Args:
        world: The map without its mirror.
        mirror: int8 ``[L]``.
        locations: Their keys.
        units: See `start_units`.

    Raises:
        ValueError: Names a place, and what is not kept there.
    """
    if world.powers != 2:
        raise ValueError(f"mirror: exchanges two powers, the map has {world.powers}")
    places = mirror[: world.provinces]
    rival = np.array([1, 0, NOBODY], np.int8)  # -1 counts from the end
    swapped = np.where(units > 0, units.astype(int) + np.where((units - 1) % FORMS == 0, 1, -1), 0)
    kept = {
        "ground": (world.ground, world.ground[places]),
        "centres": (world.centre >= 0, world.centre[places] >= 0),
        "army borders": (world.army_edge, world.army_edge[np.ix_(places, places)]),
        "fleet borders": (world.fleet_edge, world.fleet_edge[np.ix_(mirror, mirror)]),
        "homes": (world.home, rival[world.home[places]]),
        "units": (units, swapped[mirror]),
    }
    for what, (own, mirrored) in kept.items():
        if (own != mirrored).any():
            place = np.argwhere(own != mirrored)[0, 0]
            raise ValueError(f"mirror: does not keep the {what} of {locations[place]}")
    rank = np.stack([world.rank[0], places])  # a mirror is its own inverse
    return world._replace(rank=rank, ranked=rank.copy(), mirror=mirror)
