"""Borders of a map: which of them armies and fleets may cross, both ways."""

from __future__ import annotations

import numpy as np

from palaestra.games.concert.map_format import INLAND, SEA, Provinces, suggestion


def army_borders(provinces: Provinces) -> np.ndarray:
    """Borders that an army may cross, uint8 ``[P, P]``.

    Raises:
        ValueError: A border with a sea, with no province, with itself, or in one direction.
    """
    index = {key: number for number, key in enumerate(provinces)}
    edge = np.zeros((len(index), len(index)), np.uint8)
    for key, province in provinces.items():
        for name in province.army:
            if name not in index:
                raise ValueError(f"provinces.{key}.army: no province {name!r}{suggestion(name, index)}")
            if provinces[name].ground == SEA:
                raise ValueError(f"provinces.{key}.army: {name} is a sea, where no army walks")
            edge[index[key], index[name]] = 1
    check_borders("army", edge, tuple(index))
    return edge


def fleet_borders(provinces: Provinces, locations: tuple[str, ...]) -> np.ndarray:
    """Borders that a fleet may cross, uint8 ``[L, L]``.

    Raises:
        ValueError: A border with a place where no fleet is, with no place, with its own province, or in one direction.
    """
    edge = np.zeros((len(locations), len(locations)), np.uint8)
    for key, province in provinces.items():
        for coast, names in province.fleets.items():
            where = f"{key}/{coast}" if coast else key
            for name in names:
                number = fleet_location(name, f"provinces.{where}.fleet", provinces, locations)
                edge[locations.index(where), number] = 1
    check_borders("fleet", edge, locations)
    return edge


def fleet_location(name: str, key: str, provinces: Provinces, locations: tuple[str, ...]) -> int:
    """The location of a fleet.

    Raises:
        ValueError: There is no such place, or a fleet cannot be there.
    """
    if name not in locations:
        raise ValueError(f"{key}: no province or coast {name[:40]!r}{suggestion(name, locations)}")
    if name in provinces and provinces[name].ground == INLAND:
        raise ValueError(f"{key}: {name} is inland, where no fleet sails")
    if name in provinces and "" not in provinces[name].fleets:
        coasts = " or ".join(f"{name}/{coast}" for coast in provinces[name].fleets)
        raise ValueError(f"{key}: {name} has split coasts, name one: {coasts}")
    return locations.index(name)


def check_borders(kind: str, edge: np.ndarray, keys: tuple[str, ...]) -> None:
    """Refuses borders of a province with itself and borders in one direction.

    Raises:
        ValueError: Names both places.
    """
    for here, there in np.argwhere(edge):
        if keys[here][:3] == keys[there][:3]:
            raise ValueError(f"provinces.{keys[here]}.{kind}: a border with itself, {keys[there]}")
        if not edge[there, here]:
            raise ValueError(
                f"provinces.{keys[here]}.{kind}: {keys[there]} has no {kind} border back: give both or none"
            )
