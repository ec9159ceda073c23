"""Maps: where the units of both sides begin, what blue is ordered to do, and the ground.

A map is a JSON file; the bundled ones are the 23 of SMAC (Samvelyan et al. 2019), their ``sources`` tell what was
decoded and what is approximated:

.. code-block:: json

    {
      "format": 1,
      "name": "crossing",
      "sources": [],
      "ruleset": "smac-4.10",
      "size": [8, 4],
      "limit": 60,
      "red": {"groups": [{"unit": "marine", "count": 3, "at": [1.5, 2]}]},
      "blue": {
        "groups": [{"unit": "zealot", "count": 1, "at": [6, 2]}],
        "order": {"kind": "attack_move", "points": [[1.5, 2]]}
      },
      "terrain": [
        "##....##",
        "....^88.",
        "....^88.",
        "##....##"
      ]
    }

``size`` is width and height in cells, ``limit`` the decisions of a match. The units of a group all begin at one
point; the simulator then makes room between them. Red's groups come in the
order of SMAC's agents (by kind of unit; units of one kind are sorted by x and y when they have made room), blue's in
the order of the map's spawn script.

A group may come later: ``"arrives": [20, 40]`` draws one of the decisions 20 to 40 for each of its units; ``"wave": 1``
comes when blue has no fighter left on the field, then ``"wave": 2``, and so on. ``"at": "anywhere"`` draws a place on
the ground in each match. ``"reward": {"kill": 10, "loss": -1}`` replaces SMAC's reward (see `Payment`), and
``"ends": "never"`` leaves the end to the limit.

``order`` is the one order that blue gets at the beginning: ``none``; ``attack_units``, to hunt red's units wherever
they are; ``attack_move`` to a point, attacking what comes into range on the way. Of two points a random one between
them is drawn, uniformly on the line.

``terrain`` has a text for each row of cells, the first row on top (the greatest y). Cell (x, y) reaches from x to
x + 1 and from y to y + 1.

- ``.`` is the lowest ground; a digit from 1 to 9 is higher ground, in eighths of a cliff.
- ``^`` is the slope of a cliff: only cliff walkers pass.
- ``#`` is a wall or the outside: only what flies passes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from palaestra.core.files import FileError, TextSource, printable, printable_name
from palaestra.games.skirmish import ruleset as rulesets
from palaestra.games.skirmish.ruleset import Ruleset
from palaestra.games.skirmish.schema import (
    Reader,
    Refusal,
    build,
    bundled,
    find,
    integer,
    members,
    number,
    optional,
    record,
    short_name,
    suggestion,
    text,
    word,
)
from palaestra.games.skirmish.schema import load as load_file

FOLDER = "skirmish/maps"
SCENARIOS = "skirmish/scenarios"
"""Maps of ours: for the environments that are not SMAC's."""
FORMAT = 1
"""The newest format of a map that `load` reads."""
MOST_CELLS = 256
"""Width and height of a map."""
MOST_RED = 27
MOST_BLUE = 64
WALL, CLIFF = "#", "^"
LEVELS = ".123456789"
"""The character of level k."""
POINTS = {"none": (0, 0), "attack_units": (0, 0), "attack_move": (1, 2)}
"""Kinds of orders: least and most points."""

LATEST = 100_000
"""Decision by which a unit can arrive."""
MOST_WAVES = 32
ANYWHERE = "anywhere"
ENDS = ("wiped_out", "never")

_point = members(number(0, MOST_CELLS), 2, 2)


def _place(value: Any, key: str) -> tuple[float, float] | None:
    """Reads a point; None for `ANYWHERE`."""
    return None if value == ANYWHERE else _point(value, key)


@dataclass(frozen=True)
class _Group:
    unit: Annotated[str, text]
    count: Annotated[int, integer(1, MOST_BLUE)]
    at: Annotated[tuple[float, float] | None, _place]
    arrives: Annotated[tuple[int, int], members(integer(0, LATEST), 2, 2)] = (0, 0)
    wave: Annotated[int, integer(0, MOST_WAVES)] = 0

    def __post_init__(self) -> None:
        if self.arrives[0] > self.arrives[1]:
            raise Refusal("arrives", f"must be first and last decision, got {self.arrives[0]}, {self.arrives[1]}")
        if self.wave and self.arrives != (0, 0):
            raise Refusal("wave", "must be left out beside arrives: a wave comes when the one before is beaten")


@dataclass(frozen=True)
class _OrderInFile:
    kind: Annotated[str, word(*POINTS)]
    points: Annotated[tuple[tuple[float, float], ...], members(_point, 0, 2)]

    def __post_init__(self) -> None:
        least, most = POINTS[self.kind]
        if not least <= len(self.points) <= most:
            wanted = "no points" if most == 0 else f"{least} or {most} points"
            raise Refusal("points", f"{self.kind} takes {wanted}, got {len(self.points)}")


def _groups(most: int) -> Reader:
    """Reads the groups of a side of at most ``most`` units."""
    read_groups = members(record(_Group), 1, most)

    def read(value: Any, key: str) -> tuple[_Group, ...]:
        groups: tuple[_Group, ...] = read_groups(value, key)
        if (units := sum(group.count for group in groups)) > most:
            raise Refusal(key, f"must hold at most {most} units, got {units}")
        return groups

    return read


@dataclass(frozen=True)
class _Red:
    groups: Annotated[tuple[_Group, ...], _groups(MOST_RED)]


@dataclass(frozen=True)
class _Blue:
    groups: Annotated[tuple[_Group, ...], _groups(MOST_BLUE)]
    order: Annotated[_OrderInFile, record(_OrderInFile)]


@dataclass(frozen=True)
class Payment:
    """What red is paid for, before SMAC's scale; a map that has its own payment is not scaled.

    Attributes:
        damage: For each hit point and shield that blue loses by attacks.
        kill: For each unit of blue that dies.
        loss: For each unit of red that dies.
        prize: For each prize.
        win: At the end, if blue has no fighter left.
        defeat: At the end, if red has none.
    """

    damage: Annotated[float, number(-1000, 1000)] = 0.0
    kill: Annotated[float, number(-1000, 1000)] = 0.0
    loss: Annotated[float, number(-1000, 1000)] = 0.0
    prize: Annotated[float, number(-1000, 1000)] = 0.0
    win: Annotated[float, number(-1000, 1000)] = 0.0
    defeat: Annotated[float, number(-1000, 1000)] = 0.0


@dataclass(frozen=True)
class _MapInFile:
    format: Annotated[int, integer(1, FORMAT)]
    name: Annotated[str, short_name]
    sources: Annotated[tuple[str, ...], members(text, 0, 100)]
    ruleset: Annotated[str, text]
    size: Annotated[tuple[int, int], members(integer(1, MOST_CELLS), 2, 2)]
    limit: Annotated[int, integer(1, 1_000_000)]
    red: Annotated[_Red, record(_Red)]
    blue: Annotated[_Blue, record(_Blue)]
    terrain: Annotated[tuple[str, ...], members(text, 1, MOST_CELLS)]
    reward: Annotated[Payment | None, optional(record(Payment))] = None
    ends: Annotated[str, word(*ENDS)] = "wiped_out"

    def __post_init__(self) -> None:
        width, height = self.size
        if len(self.terrain) != height:
            raise Refusal("terrain", f"must have {height} rows as in size, got {len(self.terrain)}")
        for k, row in enumerate(self.terrain):
            if len(row) != width:
                raise Refusal(f"terrain.{k}", f"must have {width} cells as in size, got {len(row)}")
            if strange := set(row) - set(WALL + CLIFF + LEVELS):
                raise Refusal(f"terrain.{k}", f"must be made of {WALL}{CLIFF}{LEVELS}, got {min(strange)!r}")


@dataclass(frozen=True, eq=False)
class Order:
    """The order of a side at the beginning of a match.

    Attributes:
        kind: ``"none"``, ``"attack_move"`` or ``"attack_units"``.
        points: float64 ``[k, 2]``, x and y in cells: none; one to go to; or two, between which one is drawn.
    """

    kind: str
    points: np.ndarray


@dataclass(frozen=True, eq=False)
class Side:
    """The units of a side.

    Attributes:
        units: Names of their kinds, in the order of the agents.
        positions: float64 ``[units, 2]``, x and y in cells, where they begin. Units of a group share a point. NaN where
            a place is drawn anew in each match.
        arrivals: int64 ``[units, 2]``, first and last decision of which one is drawn; 0 is the start of the match.
        waves: int64 ``[units]``; 0, or the wave with which it comes.
        order: Red's is of the kind ``"none"``.
    """

    units: tuple[str, ...]
    positions: np.ndarray
    arrivals: np.ndarray
    waves: np.ndarray
    order: Order


@dataclass(frozen=True, eq=False)
class BattleMap:
    """A map and its ruleset. All arrays are read-only; row 0 of the ground is y = 0.

    Attributes:
        name: Of the map.
        sources: Where its numbers come from and which are approximations.
        ruleset: The ruleset that it is played by.
        size: Width and height, cells.
        limit: Decisions of a match.
        walkable: uint8 ``[height, width]``, 1 where every unit may stand.
        climbable: uint8 ``[height, width]``, 1 where cliff walkers may stand: ``walkable`` and the slopes of cliffs.
        level: int8 ``[height, width]``, height in eighths of a cliff over the lowest ground; -1 where it is not
            ``walkable``.
        red: The learners.
        blue: Their opponents.
        reward: What red is paid for; None is SMAC's reward.
        ends: ``"wiped_out"``: when a side has no fighter left; ``"never"``: by the limit alone.
        file: Where it was read from, for messages; "" if it is a bundled one.
    """

    name: str
    sources: tuple[str, ...]
    ruleset: Ruleset
    size: tuple[int, int]
    limit: int
    walkable: np.ndarray
    climbable: np.ndarray
    level: np.ndarray
    red: Side
    blue: Side
    reward: Payment | None = None
    ends: str = "wiped_out"
    file: str = ""

    def unfit(self, reason: str) -> ValueError:
        """The error for a map that cannot be played: a `FileError` if it is a file of the user."""
        return (
            FileError(f"{self.file}: {reason}")
            if self.file
            else ValueError(f"map {printable_name(self.name)}: {reason}")
        )


def names() -> tuple[str, ...]:
    """Names of SMAC's maps, all bundled."""
    return bundled(FOLDER)


def is_bundled(name: str) -> bool:
    """Whether a text is the name of a bundled map, SMAC's or ours."""
    return name in bundled(FOLDER) or name in bundled(SCENARIOS)


def load(name_or_path: TextSource, ruleset: TextSource | Ruleset | None = None) -> BattleMap:
    """Reads a map.

    Args:
        name_or_path: Name of a bundled one, SMAC's or ours; or a path, which is a `Path` or ends in ``.json``; or a
            file's content.
        ruleset: Plays the map by another ruleset than the one it names: a ruleset, or what `ruleset.load` takes.

    Raises:
        ValueError: No bundled map (or ruleset) has this name. Suggests the nearest.
        FileError: The file of the map (or of the ruleset) cannot be used. Names file, key and reason.
    """
    chosen = ruleset if ruleset is None or isinstance(ruleset, Ruleset) else rulesets.load(ruleset)
    folder = SCENARIOS if name_or_path in bundled(SCENARIOS) else FOLDER
    path = find(folder, name_or_path, "map")
    file = "" if name_or_path in bundled(folder) else str(path)
    return load_file(path, FORMAT, lambda content: _battle_map(build(_MapInFile, content, ""), chosen, file))


def _battle_map(found: _MapInFile, ruleset: Ruleset | None, file: str) -> BattleMap:
    if ruleset is None:
        if found.ruleset not in rulesets.names():
            reason = f"no ruleset {printable(found.ruleset)}: {suggestion(found.ruleset, rulesets.names())}"
            raise Refusal("ruleset", reason)
        ruleset = rulesets.load(found.ruleset)
    cells = np.array([list(row) for row in reversed(found.terrain)])
    level = np.full(cells.shape, -1, np.int8)
    for k, character in enumerate(LEVELS):
        level[cells == character] = k
    walkable = (level >= 0).astype(np.uint8)
    climbable = walkable | (cells == CLIFF)
    for side, groups in (("red", found.red.groups), ("blue", found.blue.groups)):
        for k, group in enumerate(groups):
            _check_group(group, f"{side}.groups.{k}", ruleset, walkable, climbable)
    for k, point in enumerate(found.blue.order.points):
        _check_inside(point, f"blue.order.points.{k}", found.size)
    return BattleMap(
        name=found.name,
        sources=found.sources,
        ruleset=ruleset,
        size=found.size,
        limit=found.limit,
        walkable=_read_only(walkable),
        climbable=_read_only(climbable),
        level=_read_only(level),
        red=_side(found.red.groups, _OrderInFile("none", ())),
        blue=_side(found.blue.groups, found.blue.order),
        reward=found.reward,
        ends=found.ends,
        file=file,
    )


def _check_group(group: _Group, key: str, ruleset: Ruleset, walkable: np.ndarray, climbable: np.ndarray) -> None:
    if group.unit not in ruleset.unit_names:
        reason = f"{printable(group.unit)} is no unit of {ruleset.name}: {suggestion(group.unit, ruleset.unit_names)}"
        raise Refusal(f"{key}.unit", reason)
    if group.at is None:
        return
    height, width = walkable.shape
    _check_inside(group.at, f"{key}.at", (width, height))
    unit = ruleset.unit(group.unit)
    passable = climbable if unit.cliff_walker else walkable
    x, y = group.at
    if not unit.flying and not passable[int(y), int(x)]:
        raise Refusal(f"{key}.at", f"a {group.unit} cannot stand at x = {x:g}, y = {y:g}: no ground there")


def _check_inside(point: tuple[float, float], key: str, size: tuple[int, int]) -> None:
    (x, y), (width, height) = point, size
    if x >= width or y >= height:
        raise Refusal(key, f"x = {x:g}, y = {y:g} is outside the map of {width} x {height} cells")


def _side(groups: tuple[_Group, ...], order: _OrderInFile) -> Side:
    each = [group for group in groups for _ in range(group.count)]
    return Side(
        units=tuple(group.unit for group in each),
        positions=_read_only(np.array([group.at or (np.nan, np.nan) for group in each], np.float64)),
        arrivals=_read_only(np.array([group.arrives for group in each], np.int64)),
        waves=_read_only(np.array([group.wave for group in each], np.int64)),
        order=Order(order.kind, _read_only(np.array(order.points, np.float64).reshape(-1, 2))),
    )


def _read_only(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array
