"""Map files: JSON in the format of the maps in the assets, checked key by key.

```text
{"name": ..., "about": ..., "first_year": 1901, "solo": 18,
 "powers": {"france": {"home": ["PAR"], "units": ["A PAR"]}},
 "provinces": {"PAR": {"name": "Paris", "ground": "inland", "centre": true, "at": [315, 455], "army": ["BUR", ...]},
               "SPA": {..., "ground": "coast", "army": [...], "coasts": {"NC": {"at": [...], "fleet": [...]}, ...}},
               "NTH": {..., "ground": "sea", "fleet": ["BEL", ...]}},
 "mirror": {"PAR": "VIE", ...}}
```

Fleets name a split coast, ``"SPA/NC"``. ``base``, the name of one of our maps, may stand in the place of ``provinces``.
``mirror`` names each location.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from reprlib import repr as shortened
from typing import Any, NamedTuple

import palaestra_assets
from palaestra.core.contract.keywords import check_count, check_word, nearest
from palaestra.core.files import read_text

MAPS = ("standard", "france_austria", "duel", "duel20")
"""Names of the maps in the assets."""
GROUNDS = ("inland", "coast", "sea")
INLAND, COAST, SEA = range(3)
LARGEST = 2**18
"""Characters of a map that are read."""
LATEST_YEAR, MOST_POWERS, MOST_COASTS = 9999, 8, 3
WIDTH, HEIGHT = 1000, 800
BORDERS = {
    "inland": ({"army"},),
    "coast": ({"army", "fleet"}, {"army", "coasts"}),
    "sea": ({"fleet"},),
}
"""The keys of a province for its borders, by its ground."""
TEXT, PROVINCE, COAST_NAME, POWER = (
    (re.compile(".{1,500}"), "a text of one line"),
    (re.compile("[A-Z]{3}"), "three capital letters"),
    (re.compile("[A-Z]{2}"), "two capital letters"),
    (re.compile("[a-z][a-z_]{0,19}"), "up to 20 small letters"),
)

Point = tuple[float, float]
Provinces = dict[str, "Province"]


class Province(NamedTuple):
    """A province.

    Attributes:
        title: Name.
        ground: INLAND, COAST or SEA.
        is_centre: Whether it has a supply centre.
        at: Where it is drawn.
        army: Keys of the provinces to which an army may walk.
        fleets: Keys of the locations to which a fleet may sail, by coast; ``""`` is the coast that is not split, or a
            sea.
        coasts_at: Where its split coasts are drawn.
    """

    title: str
    ground: int
    is_centre: bool
    at: Point
    army: list[str]
    fleets: dict[str, list[str]]
    coasts_at: list[Point]


class Power(NamedTuple):
    """The start of a power: keys of its home centres, and its units, ``"F STP/SC"``."""

    home: list[str]
    units: list[str]


class MapFile(NamedTuple):
    """A map file whose parts have the right types; whether they fit each other is not checked yet.

    Attributes:
        solo: Centres that win.
        first_year: Year of the first spring.
        provinces: By key, sorted.
        powers: By name, sorted.
        mirror: The mirror image of each location; None without one.
    """

    solo: int
    first_year: int
    provinces: Provinces
    powers: dict[str, Power]
    mirror: dict[str, str] | None


def map_text(keyword: str, name: Any) -> str:
    """The file of one of our maps.

    Raises:
        ValueError: No such map; the message begins with ``keyword``.
    """
    check_word(keyword, name, MAPS)
    return read_text(palaestra_assets.path(f"concert/{name}.json"), LARGEST)


def read_map_file(text: str) -> MapFile:
    """Reads a map file, and the provinces of its base where it has one.

    Raises:
        ValueError: No JSON, or a part of another type; names its key path.
    """
    content = _parse(text)
    _check_keys(content, "", ("name", "about", "first_year", "solo", "powers"), ("base", "provinces", "mirror"))
    for key in ("name", "about"):
        _word(content[key], key, TEXT)
    if ("base" in content) == ("provinces" in content):
        raise ValueError("provinces: a map has either provinces or a base")
    provinces = _provinces(content["provinces"]) if "provinces" in content else _base(content["base"])
    check_count("first_year", content["first_year"], 1, LATEST_YEAR)
    check_count("solo", content["solo"], 1, sum(province.is_centre for province in provinces.values()))
    powers = _object(content["powers"], "powers", POWER, 2, MOST_POWERS)
    mirror = content.get("mirror")
    if "mirror" in content and not isinstance(mirror, dict):
        raise ValueError(f"mirror: must be an object, got {shortened(mirror)}")
    for key, image in (mirror or {}).items():
        _word(image, f"mirror.{key}", TEXT)
    return MapFile(
        content["solo"],
        content["first_year"],
        provinces,
        {name: _power(powers[name], f"powers.{name}") for name in sorted(powers)},
        mirror,
    )


def suggestion(word: str, known: Collection[str]) -> str:
    """``", did you mean 'SPA/NC'?"`` where a name is near."""
    near = nearest(word, known)
    return "" if near is None else f", did you mean {near!r}?"


def _parse(text: str) -> dict[str, Any]:
    if len(text) > LARGEST:
        raise ValueError(f"it has {len(text)} characters, at most {LARGEST} are read")
    try:
        content = json.loads(text, object_pairs_hook=_without_repeats)
    except json.JSONDecodeError as error:
        raise ValueError(f"no JSON: {error}") from None
    except RecursionError:
        raise ValueError("no JSON: it is nested too deeply") from None
    if not isinstance(content, dict):
        raise ValueError(f"must be a JSON object, got {shortened(content)}")
    return content


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for name, value in pairs:
        if name in content:
            raise ValueError(f"the key {shortened(name)} stands twice in one object")
        content[name] = value
    return content


def _base(name: Any) -> Provinces:
    return read_map_file(map_text("base", name)).provinces


def _provinces(value: Any) -> Provinces:
    provinces = _object(value, "provinces", PROVINCE, 1, LARGEST)
    return {key: _province(provinces[key], f"provinces.{key}") for key in sorted(provinces)}


def _province(value: Any, key: str) -> Province:
    _check_keys(value, key, ("name", "ground", "at"), ("centre", "army", "fleet", "coasts"))
    ground = value["ground"]
    check_word(f"{key}.ground", ground, GROUNDS)
    is_centre = value.get("centre", False)
    if not isinstance(is_centre, bool):
        raise ValueError(f"{key}.centre: must be true or false, got {shortened(is_centre)}")
    given = {"army", "fleet", "coasts"} & set(value)
    if given not in BORDERS[ground]:
        allowed = " or ".join(", ".join(sorted(keys)) for keys in BORDERS[ground])
        raise ValueError(f"{key}: with the ground {ground!r} it has the keys {allowed}, got {', '.join(sorted(given))}")
    fleets = {"": _keys(value["fleet"], f"{key}.fleet")} if "fleet" in value else {}
    coasts_at = []
    if "coasts" in value:
        for name, coast in _object(value["coasts"], f"{key}.coasts", COAST_NAME, 2, MOST_COASTS).items():
            _check_keys(coast, f"{key}.coasts.{name}", ("at", "fleet"))
            fleets[name] = _keys(coast["fleet"], f"{key}.coasts.{name}.fleet")
            coasts_at.append(_point(coast["at"], f"{key}.coasts.{name}.at"))
    return Province(
        _word(value["name"], f"{key}.name", TEXT),
        GROUNDS.index(ground),
        is_centre,
        _point(value["at"], f"{key}.at"),
        _keys(value["army"], f"{key}.army") if "army" in value else [],
        fleets,
        coasts_at,
    )


def _power(value: Any, key: str) -> Power:
    _check_keys(value, key, ("home", "units"))
    power = Power(_keys(value["home"], f"{key}.home"), _keys(value["units"], f"{key}.units"))
    for name, members in power._asdict().items():
        if not members:
            raise ValueError(f"{key}.{name}: a power has at least one")
    return power


def _check_keys(value: Any, key: str, needed: tuple[str, ...], optional: tuple[str, ...] = ()) -> None:
    if not isinstance(value, dict):
        raise ValueError(f"{key}: must be an object, got {shortened(value)}")
    inside = f"{key}." if key else ""
    for name in value:
        if name not in needed + optional:
            raise ValueError(f"{inside}{name[:40]}: unknown key{suggestion(name, needed + optional)}")
    for name in needed:
        if name not in value:
            raise ValueError(f"{inside}{name}: missing key")


def _object(value: Any, key: str, form: tuple[re.Pattern[str], str], low: int, high: int) -> dict[str, Any]:
    """An object of ``low`` to ``high`` members whose keys are of a form."""
    if not isinstance(value, dict) or not low <= len(value) <= high:
        found = f"{len(value)}" if isinstance(value, dict) else shortened(value)
        raise ValueError(f"{key}: must be an object of {low} to {high} members, got {found}")
    for name in value:
        _word(name, key, form)
    return value


def _word(value: Any, key: str, form: tuple[re.Pattern[str], str]) -> str:
    if not isinstance(value, str) or not form[0].fullmatch(value):
        raise ValueError(f"{key}: must be {form[1]}, got {shortened(value)}")
    return value


def _keys(value: Any, key: str) -> list[str]:
    """A list of texts of which none stands twice."""
    if not isinstance(value, list) or not all(isinstance(member, str) for member in value):
        raise ValueError(f"{key}: must be a list of texts, got {shortened(value)}")
    if len(set(value)) < len(value):
        twice = next(member for member in value if value.count(member) > 1)
        raise ValueError(f"{key}: {shortened(twice)} stands twice")
    return value


def _point(value: Any, key: str) -> Point:
    is_pair = isinstance(value, list) and len(value) == 2
    if not is_pair or not all(isinstance(x, int | float) and not isinstance(x, bool) for x in value):
        raise ValueError(f"{key}: must be two numbers, got {shortened(value)}")
    if not (0 <= value[0] <= WIDTH and 0 <= value[1] <= HEIGHT):
        raise ValueError(f"{key}: must be inside of {WIDTH} x {HEIGHT}, got {shortened(value)}")
    return float(value[0]), float(value[1])
