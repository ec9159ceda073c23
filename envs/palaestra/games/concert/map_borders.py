"""Borders of a map: what armies and fleets may cross, lists of neighbours, distances."""

from __future__ import annotations

import numpy as np

from palaestra.games.concert.map_format import INLAND, SEA, Provinces, suggestion

FAR = 127
"""Steps to a place that cannot be reached."""


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


def by_province(values: np.ndarray, province_of: np.ndarray) -> np.ndarray:
    """The largest value of each province's locations, ``[L, ...]`` -> ``[P, ...]``; no value is below 0."""
    largest = np.zeros((int(province_of.max()) + 1, *values.shape[1:]), values.dtype)
    np.maximum.at(largest, province_of, values)
    return largest


def neighbours(edge: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lists of neighbours in one array: the first member of each place, int16 ``[n + 1]``, and the members, int8."""
    start = np.append(0, np.cumsum(edge.sum(axis=1, dtype=np.int64))).astype(np.int16)
    return start, np.nonzero(edge)[1].astype(np.int8)


def fewest_steps(edge: np.ndarray) -> np.ndarray:
    """The length of a shortest path between two places, FAR without one, int8 ``[n, n]``."""
    reached = np.eye(len(edge), dtype=bool)
    steps = np.where(reached, 0, FAR).astype(np.int8)
    for length in range(1, len(edge)):
        grown = reached | (reached.astype(int) @ edge > 0)
        steps[grown & ~reached] = length
        reached = grown
    return steps


def fleet_steps(edge: np.ndarray, province_of: np.ndarray) -> np.ndarray:
    """The fewest moves of a fleet from a location to any coast of a province, FAR without, int8 ``[L, P]``."""
    return np.ascontiguousarray(FAR - by_province(FAR - fewest_steps(edge).T, province_of).T)
