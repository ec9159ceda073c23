"""Rulesets: what the units of a battle can do, and the numbers that hold for all of them.

A ruleset is a JSON file whose keys are the fields of the dataclasses below. The bundled one, ``smac-4.10``, holds the
numbers of SMAC (Samvelyan et al. 2019) on version 4.10 of its game; its ``sources`` say where each comes from and
which are approximations. A file with other numbers is a ruleset too: `load` takes its path.

Distances are in cells, times in seconds of ``loops_per_second`` loops. Ranges go from edge to edge: both radii are
added. Sight and SMAC's shoot range go from centre to centre.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from palaestra.core.files import TextSource, printable_name
from palaestra.games.skirmish.schema import (
    Refusal,
    build,
    bundled,
    find,
    flag,
    integer,
    members,
    named,
    number,
    optional,
    record,
    short_name,
    suggestion,
    text,
    word,
)
from palaestra.games.skirmish.schema import load as load_file

FOLDER = "skirmish/rulesets"
FORMAT = 1
"""The newest format of a ruleset that `load` reads."""
MOST_UNITS = 64
"""Kinds of units in a ruleset."""
ATTRIBUTES = ("light", "armoured", "biological", "mechanical", "psionic", "massive", "structure")
"""Attribute k is bit ``1 << k`` of a mask."""
GROUND, AIR = 1, 2
"""Bits of what a weapon hits and of where a unit can be hit."""
SHAPES = ("circle", "line")
"""Shape k of a splash is the number k + 1; 0 is no splash."""
ABILITIES = ("boost", "jump")
"""Kind k of an ability is the number k + 1; 0 is no ability."""
PRIZES = ("moves", "all")
"""Kind k of a prize is the number k + 1; 0 is a unit."""

_length = number(0, 64)
_share = number(0, 1)


@dataclass(frozen=True)
class Splash:
    """Who else is hit in full when a target is hit; never the own team.

    Attributes:
        shape: ``"circle"`` around the target's centre (around the attacker's, if the weapon is ``suicide``), or
            ``"line"`` through the target's centre, at right angles to the shot.
        radius: Of the circle; half the length of the line. Cells.
        depth: Half the width of the line, cells; 0 for a circle.
    """

    shape: Annotated[str, word(*SHAPES)]
    radius: Annotated[float, _length]
    depth: Annotated[float, _length]


@dataclass(frozen=True)
class Weapon:
    """What a unit shoots with.

    Attributes:
        damage: Of one hit, before armour.
        hits: Hits of one attack, all at once; armour is subtracted from each.
        bonus: More damage of a hit against units with ``bonus_against``.
        bonus_against: One of `ATTRIBUTES`, or None without a bonus.
        range: From edge to edge, cells.
        cooldown_s: Time between attacks, seconds.
        targets: ``"ground"`` or ``"any"``.
        suicide: The unit dies in its attack, and attacks when it is killed.
        splash: Whom else it hits, or None.
    """

    damage: Annotated[float, number(0, 10_000)]
    hits: Annotated[int, integer(1, 16)]
    bonus: Annotated[float, number(0, 10_000)]
    bonus_against: Annotated[str | None, optional(word(*ATTRIBUTES))]
    range: Annotated[float, _length]
    cooldown_s: Annotated[float, number(0.0625, 1000)]
    targets: Annotated[str, word("ground", "any")]
    suicide: Annotated[bool, flag]
    splash: Annotated[Splash | None, optional(record(Splash))] = None

    def __post_init__(self) -> None:
        if (self.bonus > 0) != (self.bonus_against is not None):
            raise Refusal("bonus_against", "must name an attribute if there is a bonus, and be null if it is 0")


@dataclass(frozen=True)
class Heal:
    """How a unit heals others of its team.

    Attributes:
        hit_points_per_s: Speed of healing.
        hit_points_per_energy: Hit points that one unit of energy pays for.
        range: From edge to edge, cells.
        attribute: One of `ATTRIBUTES` that the healed unit needs.
    """

    hit_points_per_s: Annotated[float, number(0, 10_000)]
    hit_points_per_energy: Annotated[float, number(0.01, 10_000)]
    range: Annotated[float, _length]
    attribute: Annotated[str, word(*ATTRIBUTES)]


@dataclass(frozen=True)
class Energy:
    """What a unit pays abilities with.

    Attributes:
        start: At the beginning of a match.
        most: The upper bound.
        regeneration_per_s: Gain, 1/s.
    """

    start: Annotated[float, number(0, 10_000)]
    most: Annotated[float, number(0, 10_000)]
    regeneration_per_s: Annotated[float, number(0, 10_000)]

    def __post_init__(self) -> None:
        if self.start > self.most:
            raise Refusal("start", f"must be at most {self.most:g}, the most energy, got {self.start:g}")


@dataclass(frozen=True)
class Ability:
    """What a unit can do on an order of its own, where the environment grants it.

    Attributes:
        kind: ``"boost"`` walks and attacks faster for a while; ``"jump"`` is at once where it leads: an order each for
            north, south, east and west.
        duration_s: Of a boost, seconds; 0 of a jump.
        pause_s: From one use to the next, seconds.
        hit_points: What one use costs; a unit that would die of it may not use it.
        speed_factor: Of a boost: times the speed.
        attack_factor: Of a boost: cooldowns run so many times as fast.
        distance: Of a jump, cells; 0 of a boost.
    """

    kind: Annotated[str, word(*ABILITIES)]
    duration_s: Annotated[float, number(0, 1000)]
    pause_s: Annotated[float, number(0, 1000)]
    hit_points: Annotated[float, number(0, 10_000)]
    speed_factor: Annotated[float, number(1, 16)]
    attack_factor: Annotated[float, number(1, 16)]
    distance: Annotated[float, _length]

    def __post_init__(self) -> None:
        needed, of = ("duration_s", self.duration_s) if self.kind == "boost" else ("distance", self.distance)
        if of == 0:
            raise Refusal(needed, f"must be more than 0 for a {self.kind}")


@dataclass(frozen=True)
class Unit:
    """A kind of unit.

    Attributes:
        name: Its key in the file.
        hit_points: At the beginning and at most.
        shield: The same of the shield; 0 is none. The shield is hit before the hit points.
        armour: Subtracted from each hit on the hit points.
        attributes: Of `ATTRIBUTES`, for bonuses and healing.
        flying: Passes over everything; hit only by weapons that hit ``"any"``.
        cliff_walker: Climbs cliffs; on the ground and tall, so that any weapon hits it.
        speed_cells_per_s: Greatest speed; 0 cannot move.
        acceleration_cells_per_s2: None reaches the greatest speed at once.
        radius: Of the body that ranges are measured from, cells.
        separation_radius: Of the body that others do not enter, cells.
        sight: Of the unit itself, cells; SMAC replaces it by ``Ruleset.sight``.
        regeneration_per_s: Hit points, 1/s.
        cooldown_normaliser_loops: What SMAC divides the cooldown by in its state; a healer's energy instead.
        weapon: What it shoots with, or None.
        heal: How it heals, or None.
        energy: What it has, or None.
        ability: What it can do where that is granted, or None.
        prize: None for a unit; else a thing that red collects by touching it: ``"moves"`` to another place when it is
            collected, ``"all"`` come back when all of them are.
    """

    name: str
    hit_points: Annotated[float, number(0.5, 100_000)]
    shield: Annotated[float, number(0, 100_000)]
    armour: Annotated[float, number(0, 1000)]
    attributes: Annotated[tuple[str, ...], members(word(*ATTRIBUTES), 0, len(ATTRIBUTES))]
    flying: Annotated[bool, flag]
    cliff_walker: Annotated[bool, flag]
    speed_cells_per_s: Annotated[float, number(0, 16)]
    acceleration_cells_per_s2: Annotated[float | None, optional(number(0.01, 10_000))]
    radius: Annotated[float, number(0.0625, 4)]
    separation_radius: Annotated[float, number(0.0625, 4)]
    sight: Annotated[float, _length]
    regeneration_per_s: Annotated[float, number(0, 10_000)]
    cooldown_normaliser_loops: Annotated[float, number(1, 10_000)]
    weapon: Annotated[Weapon | None, optional(record(Weapon))] = None
    heal: Annotated[Heal | None, optional(record(Heal))] = None
    energy: Annotated[Energy | None, optional(record(Energy))] = None
    ability: Annotated[Ability | None, optional(record(Ability))] = None
    prize: Annotated[str | None, optional(word(*PRIZES))] = None

    def __post_init__(self) -> None:
        if self.prize and (self.speed_cells_per_s or self.weapon or self.heal):
            raise Refusal("prize", "must be left out: it neither moves, shoots nor heals")
        if len(set(self.attributes)) < len(self.attributes):
            raise Refusal("attributes", f"must name each attribute once, got {', '.join(self.attributes)}")
        if self.heal and not self.energy:
            raise Refusal("energy", "missing key: healing is paid with energy")
        if self.heal and self.weapon:
            raise Refusal("weapon", "must be left out: a unit heals or shoots")


@dataclass(frozen=True)
class Reward:
    """The numbers of SMAC's reward.

    Attributes:
        kill: For each opponent killed, in points of damage.
        win: For winning, in points of damage.
        defeat: For losing, in points of damage.
        negative_scale: Weight of the own losses where rewards may be negative.
        most: What the greatest possible sum of a match is scaled to.
    """

    kill: Annotated[float, number(0, 10_000)]
    win: Annotated[float, number(0, 10_000)]
    defeat: Annotated[float, number(-10_000, 0)]
    negative_scale: Annotated[float, _share]
    most: Annotated[float, number(0.01, 10_000)]


@dataclass(frozen=True)
class Ruleset:
    """The numbers of a game.

    Attributes:
        format: Of the file.
        name: Of the ruleset.
        sources: Where the numbers come from and which are approximations.
        loops_per_second: Steps of the simulation, 1/s.
        loops_per_decision: Loops between two decisions of an agent.
        sight: How far every agent sees, from centre to centre, cells.
        shoot_range: How far away a target may be ordered, from centre to centre, cells.
        acquire_range: How far a unit looks for targets by itself at least, from edge to edge, cells.
        move_cells: How far an order to move leads, cells.
        minimum_damage: What a hit does at least, whatever the armour.
        shield_armour: Subtracted from each hit on a shield.
        shield_regeneration_per_s: Gain of shields, 1/s.
        shield_delay_s: Time without damage after which shields regenerate, seconds.
        cooldown_deviation_loops: Least and most loops added to a cooldown, drawn uniformly from the integers.
        reward: SMAC's reward.
        units: All kinds in the order of the file: the numbers of `table`'s rows.
    """

    format: Annotated[int, integer(1, FORMAT)]
    name: Annotated[str, short_name]
    sources: Annotated[tuple[str, ...], members(text, 0, 100)]
    loops_per_second: Annotated[int, integer(1, 1000)]
    loops_per_decision: Annotated[int, integer(1, 1000)]
    sight: Annotated[float, _length]
    shoot_range: Annotated[float, _length]
    acquire_range: Annotated[float, _length]
    move_cells: Annotated[float, _length]
    minimum_damage: Annotated[float, number(0, 1000)]
    shield_armour: Annotated[float, number(0, 1000)]
    shield_regeneration_per_s: Annotated[float, number(0, 10_000)]
    shield_delay_s: Annotated[float, number(0, 1000)]
    cooldown_deviation_loops: Annotated[tuple[int, int], members(integer(-100, 100), 2, 2)]
    reward: Annotated[Reward, record(Reward)]
    units: Annotated[tuple[Unit, ...], named(Unit, MOST_UNITS)]

    def __post_init__(self) -> None:
        least, most = self.cooldown_deviation_loops
        if least > most:
            raise Refusal("cooldown_deviation_loops", f"must be the least and the most, got {least}, {most}")

    @property
    def unit_names(self) -> tuple[str, ...]:
        """Names of the units, in the order of `table`'s rows."""
        return tuple(unit.name for unit in self.units)

    def number_of(self, unit: str) -> int:
        """The row of a unit in `table`.

        Raises:
            ValueError: No such unit. Suggests the nearest.
        """
        if unit not in self.unit_names:
            raise ValueError(f"{unit!r} is no unit of {printable_name(self.name)}: {suggestion(unit, self.unit_names)}")
        return self.unit_names.index(unit)

    def unit(self, unit: str) -> Unit:
        """A unit by its name.

        Raises:
            ValueError: No such unit. Suggests the nearest.
        """
        return self.units[self.number_of(unit)]


def names() -> tuple[str, ...]:
    """Names of the bundled rulesets."""
    return bundled(FOLDER)


def is_bundled_ruleset(name: str) -> bool:
    """Whether a text is the name of a bundled ruleset."""
    return name in names()


def load(name_or_path: TextSource) -> Ruleset:
    """Reads a ruleset.

    Args:
        name_or_path: Name of a bundled one; or a path, which is a `Path` or ends in ``.json``; or a file's content.

    Raises:
        ValueError: No bundled ruleset has this name. Suggests the nearest.
        FileError: The file cannot be used. Names file, key and reason.
    """
    return load_file(find(FOLDER, name_or_path, "ruleset"), FORMAT, lambda content: build(Ruleset, content, ""))


COLUMNS: dict[str, tuple[str, str]] = {
    "hit_points": ("f8", "most hit points"),
    "shield": ("f8", "most shield; 0 without one"),
    "armour": ("f8", "subtracted from each hit on the hit points"),
    "attributes": ("i8", "mask of ATTRIBUTES"),
    "planes": ("i8", "where it can be hit: GROUND, AIR, both (cliff walkers), or 0 (a prize)"),
    "flying": ("i8", "1 or 0"),
    "cliff_walker": ("i8", "1 or 0"),
    "targets": ("i8", "what its weapon hits: GROUND, GROUND | AIR, or 0 without a weapon"),
    "damage": ("f8", "of one hit; 0 without a weapon"),
    "hits": ("i8", "of one attack; 0 without a weapon"),
    "bonus": ("f8", "more damage of a hit against bonus_mask"),
    "bonus_mask": ("i8", "mask of ATTRIBUTES; 0 without a bonus"),
    "range": ("f8", "of weapon or healing, cells from edge to edge; 0 without both"),
    "cooldown_loops": ("f8", "between attacks, loops, not rounded; 0 without a weapon"),
    "suicide": ("i8", "1 or 0"),
    "splash_shape": ("i8", "0 none, 1 circle, 2 line"),
    "splash_radius": ("f8", "cells"),
    "splash_depth": ("f8", "cells"),
    "heal_per_loop": ("f8", "hit points; 0 of units that do not heal"),
    "heal_per_energy": ("f8", "hit points that one unit of energy pays for; 0 of units that do not heal"),
    "heal_mask": ("i8", "mask of ATTRIBUTES that the healed unit needs"),
    "energy_start": ("f8", "0 without energy"),
    "energy_most": ("f8", "0 without energy"),
    "energy_per_loop": ("f8", "gain of energy"),
    "speed_per_loop": ("f8", "greatest speed, cells per loop"),
    "acceleration_per_loop": ("f8", "cells per loop, per loop; infinite where the greatest speed is reached at once"),
    "radius": ("f8", "cells, for ranges"),
    "separation_radius": ("f8", "cells, for collisions"),
    "sight": ("f8", "of the unit itself, cells"),
    "regeneration_per_loop": ("f8", "hit points"),
    "ability": ("i8", "0 none, 1 boost, 2 jump"),
    "ability_loops": ("f8", "duration of a boost"),
    "ability_pause_loops": ("f8", "from one use to the next"),
    "ability_hit_points": ("f8", "cost of one use"),
    "ability_speed": ("f8", "factor of a boost"),
    "ability_attack": ("f8", "factor of a boost"),
    "ability_distance": ("f8", "of a jump, cells"),
    "prize": ("i8", "0 for a unit, else what red collects: 1 moves, 2 all"),
    "cooldown_normaliser_loops": ("f8", "SMAC's divisor of cooldown, or of a healer's energy"),
}
"""Columns of `table`: dtype and meaning."""


def attribute_mask(*attributes: str) -> int:
    """The mask of some of `ATTRIBUTES`."""
    return sum(1 << ATTRIBUTES.index(attribute) for attribute in attributes)


def table(ruleset: Ruleset) -> np.ndarray:
    """All numbers of the units as one read-only structured array ``[units]``, for compiled kernels.

    Row k is ``ruleset.units[k]``; `COLUMNS` are its fields. Times are in loops, speeds and gains per loop.
    """
    rows = [tuple(_row(unit, ruleset.loops_per_second)[column] for column in COLUMNS) for unit in ruleset.units]
    numbers = np.array(rows, [(column, dtype) for column, (dtype, _) in COLUMNS.items()])
    numbers.flags.writeable = False
    return numbers


def _row(unit: Unit, loops: int) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(COLUMNS, 0)
    acceleration = unit.acceleration_cells_per_s2
    row.update(
        hit_points=unit.hit_points,
        shield=unit.shield,
        armour=unit.armour,
        attributes=attribute_mask(*unit.attributes),
        planes=0 if unit.prize else AIR if unit.flying else GROUND | AIR if unit.cliff_walker else GROUND,
        flying=unit.flying,
        cliff_walker=unit.cliff_walker,
        speed_per_loop=unit.speed_cells_per_s / loops,
        acceleration_per_loop=np.inf if acceleration is None else acceleration / loops**2,
        radius=unit.radius,
        separation_radius=unit.separation_radius,
        sight=unit.sight,
        regeneration_per_loop=unit.regeneration_per_s / loops,
        cooldown_normaliser_loops=unit.cooldown_normaliser_loops,
        prize=1 + PRIZES.index(unit.prize) if unit.prize else 0,
    )
    if unit.energy:
        row.update(
            energy_start=unit.energy.start,
            energy_most=unit.energy.most,
            energy_per_loop=unit.energy.regeneration_per_s / loops,
        )
    if unit.heal:
        row.update(
            range=unit.heal.range,
            heal_per_loop=unit.heal.hit_points_per_s / loops,
            heal_per_energy=unit.heal.hit_points_per_energy,
            heal_mask=attribute_mask(unit.heal.attribute),
        )
    if unit.ability:
        row.update(
            ability=1 + ABILITIES.index(unit.ability.kind),
            ability_loops=unit.ability.duration_s * loops,
            ability_pause_loops=unit.ability.pause_s * loops,
            ability_hit_points=unit.ability.hit_points,
            ability_speed=unit.ability.speed_factor,
            ability_attack=unit.ability.attack_factor,
            ability_distance=unit.ability.distance,
        )
    if unit.weapon:
        row.update(_weapon_columns(unit.weapon, loops))
    return row


def _weapon_columns(weapon: Weapon, loops: int) -> dict[str, Any]:
    columns = dict(
        damage=weapon.damage,
        hits=weapon.hits,
        bonus=weapon.bonus,
        bonus_mask=attribute_mask(weapon.bonus_against) if weapon.bonus_against else 0,
        range=weapon.range,
        cooldown_loops=weapon.cooldown_s * loops,
        targets=GROUND | AIR if weapon.targets == "any" else GROUND,
        suicide=weapon.suicide,
    )
    if weapon.splash:
        columns.update(
            splash_shape=1 + SHAPES.index(weapon.splash.shape),
            splash_radius=weapon.splash.radius,
            splash_depth=weapon.splash.depth,
        )
    return columns
