"""Makes games of maps: the arrays that all matches share, the agents, and the hooks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from palaestra.game import Choice, Field, Game, Role
from palaestra.games.skirmish import battle, observe, orders, ruleset, smac_view, tactics
from palaestra.games.skirmish.battle_records import (
    GO_TO,
    HUNT,
    MOST_CHANGES,
    MOST_ORDERS,
    NO_ORDER,
    OPENING,
    RULES,
    Captions,
    World,
    match_fields,
    scratch_fields,
)
from palaestra.games.skirmish.formation import reachable, stand_around
from palaestra.games.skirmish.maps import BattleMap, Side
from palaestra.games.skirmish.movement import AIR, CLIFF, GROUND, HEIGHT, find_ways

CAPACITIES = ((10, 12), (27, 32), (2, 64))
"""Units of red and of blue in memory: all layouts that there are."""
MEANINGS = ("nothing", "stop", "north", "south", "east", "west")
SMAC, SPARSE = "smac", "sparse"
CHANGE_GAP = (8, 20)
"""Decisions from one change of sides to the next, least and most."""


@dataclass(frozen=True)
class Variant:
    """What a game has beyond the battle of its map.

    Attributes:
        reward_kind: ``"smac"`` or ``"sparse"``.
        both_learn: Blue sees what red sees, mirrored, has the same orders, and is paid the opposite.
        map_order: With ``both_learn``: blue's units stay in the map's order, as where blue does not learn.
        red_orders: Further orders of red, see `palaestra.games.skirmish.orders`.
        abilities: 0 none, 1 always, 2 gained and lost.
        changes: Units that change sides; each side has as many free slots for them.
        smac_rules: What red may do and is paid is SMAC's, see `palaestra.games.skirmish.smac_view`.
        race: Kinds that are drawn, with their weights; ranges of sight and of weapons are those of each kind. None
            takes the map's units and places, and the ranges of the ruleset.
        view: Cosine of half the angle of sight; -2 sees all around.
    """

    reward_kind: str = SMAC
    both_learn: bool = False
    map_order: bool = False
    red_orders: tuple[int, ...] = ()
    abilities: int = 0
    changes: int = 0
    smac_rules: bool = False
    race: tuple[tuple[str, float], ...] | None = None
    view: float = -2.0


LEAST_RANGE = 2.0
"""SMACv2's least range to shoot where each kind has its own, cells."""


def world_of(battles: Sequence[BattleMap], variant: Variant) -> World:
    """The arrays of some maps, of which each match draws one.

    Raises:
        ValueError: Maps of several rulesets, or units that find no place; names the map.
    """
    first = battles[0]
    for other in battles[1:]:
        if other.ruleset != first.ruleset:
            raise other.unfit(f"another ruleset than {first.name} has: draw maps of one alone")
    units = ruleset.table(first.ruleset)
    sizes = [max(len(getattr(b, side).units) for b in battles) for side in ("red", "blue")]
    reds, blues = (size + variant.changes for size in sizes)
    openings = np.zeros((len(battles), reds + blues), OPENING)
    rules = np.zeros(len(battles), RULES)
    rows, columns = (max(b.walkable.shape[axis] for b in battles) for axis in range(2))
    terrain = np.zeros((len(battles), rows, columns), np.uint8)
    for v, b in enumerate(battles):
        openings[v, : len(b.red.units)] = _openings(b, "red", units, variant)
        openings[v, reds : reds + len(b.blue.units)] = _openings(b, "blue", units, variant)
        height, width = b.walkable.shape
        terrain[v, :height, :width] = GROUND * b.walkable + CLIFF * b.climbable + AIR + (b.level + 1 << HEIGHT)
        rules[v] = _rules(b, units, openings[v], variant, reds, blues)
    ways = [find_ways(ground) for ground in terrain]
    cells = max(len(way) for way in ways)
    if cells:
        ways = [way if len(way) else find_ways(ground, always=True) for way, ground in zip(ways, terrain, strict=True)]
    return World(units, rules, openings, terrain, np.stack(ways))


def _openings(b: BattleMap, name: str, units: np.ndarray, variant: Variant) -> np.ndarray:
    """The records of one side; red in SMAC's order: by kind, x and y.

    Blue's are in the map's order; where both sides have the same units, or both learn and nothing else is asked, each
    is in the place of its mirror image. With SMAC's rules they are as SMAC has them.
    """
    side: Side = getattr(b, name)
    is_even = sorted(b.red.units) == sorted(b.blue.units) and not variant.smac_rules
    is_mirrored = name == "blue" and (is_even or (variant.both_learn and not variant.map_order))
    if is_mirrored:
        side = in_order_of(b.red.units, side)
    turn = (1, 1) if name == "red" else mirror_of(b) or (-1, 1)
    rows = np.array([b.ruleset.number_of(unit) for unit in side.units])
    found = np.zeros(len(rows), OPENING)
    found["kind"], found["there"], found["wave"] = rows, 1, side.waves
    found["first"], found["last"] = side.arrivals.T
    places = np.full((len(rows), 2), np.nan)
    if variant.race:
        return _with_places_around(found, b, units, variant)
    for together in np.unique(np.column_stack([side.waves, side.arrivals]), axis=0):
        members = (side.waves == together[0]) & (side.arrivals == together[1:]).all(axis=1)
        members = np.flatnonzero(members & ~np.isnan(side.positions[:, 0]))
        if len(members):
            places[members] = _places(b, name, side.positions[members], units[rows[members]], turn)
    found["x"], found["y"] = places.T
    if name == "red" or is_mirrored:
        kind = np.array([side.units.index(unit) for unit in side.units])
        x, y = (places * turn).T
        found = found[np.lexsort((y, x, kind, found["first"], found["wave"]))]
    return found


def mirror_of(b: BattleMap) -> tuple[int, int] | None:
    """Factors of x and y by which blue's points are the mirror image of red's, of the same units; None if they are not.

    ``(-1, 1)`` is a mirror between west and east, ``(1, -1)`` one between south and north. Places that are drawn are
    anybody's.
    """
    width, height = b.size
    red = sorted(zip(b.red.units, np.nan_to_num(b.red.positions, nan=-1.0).tolist(), strict=True))
    for factors, edge in (((-1, 1), (width, 0)), ((1, -1), (0, height))):
        image = np.nan_to_num(edge + b.blue.positions * factors, nan=-1.0)
        if red == sorted(zip(b.blue.units, image.tolist(), strict=True)):
            return factors
    return None


def in_order_of(units: Sequence[str], side: Side) -> Side:
    """A side with its kinds in the order of the other side's units, so that both have the same formation."""
    rank = {unit: k for k, unit in reversed(list(enumerate((*units, *side.units))))}
    order = sorted(range(len(side.units)), key=lambda k: rank[side.units[k]])
    arrays = {name: getattr(side, name)[order] for name in ("positions", "arrivals", "waves")}
    return replace(side, units=tuple(side.units[k] for k in order), **arrays)


def _with_places_around(found: np.ndarray, b: BattleMap, units: np.ndarray, variant: Variant) -> np.ndarray:
    """Openings whose places are offsets from the middle of a group, far enough apart for all kinds of a race."""
    assert variant.race is not None
    widest = units[[b.ruleset.number_of(kind) for kind, _ in variant.race]]["separation_radius"].max()
    middle, wide = np.full((len(found), 2), 64.0), np.full(len(found), widest)
    ground = [np.ones((128, 128), np.uint8)] * len(found)
    found["x"], found["y"] = (stand_around(middle, wide, np.zeros(len(found), bool), ground) - middle).T
    return found


def _places(b: BattleMap, name: str, points: np.ndarray, of_unit: np.ndarray, turn: tuple[int, int]) -> np.ndarray:
    known: dict[tuple, np.ndarray] = {}  # most units of a group are on the same ground
    cells = []
    for unit, point in zip(of_unit, points, strict=True):
        kind = (bool(unit["flying"]), bool(unit["cliff_walker"]), *point.tolist())
        if kind not in known:
            ground = b.climbable if unit["cliff_walker"] else b.walkable
            known[kind] = np.ones_like(ground) if unit["flying"] else reachable(ground, point)
        cells.append(known[kind])
    try:
        return stand_around(points, of_unit["separation_radius"], of_unit["flying"] == 1, cells, turn)
    except ValueError as error:
        raise b.unfit(f"{name}: {error}") from None


def _rules(b: BattleMap, units: np.ndarray, opening: np.ndarray, variant: Variant, reds: int, blues: int) -> Any:
    """The record `RULES` of one map."""
    numbers, there = b.ruleset, opening["there"] == 1
    least, last = numbers.cooldown_deviation_loops
    change_from, change_to = CHANGE_GAP if variant.changes else (0, 0)
    present = np.unique(opening["kind"][there])
    if variant.race:
        present = np.array([numbers.number_of(kind) for kind, _ in variant.race])
    record = np.zeros(1, RULES)[0]
    for name, value in dict(
        sight=0.0 if variant.race else numbers.sight,
        shoot_range=0.0 if variant.race else numbers.shoot_range,
        least_range=LEAST_RANGE,
        half_view=variant.view,
        acquire_range=numbers.acquire_range,
        move_cells=numbers.move_cells,
        minimum_damage=numbers.minimum_damage,
        shield_armour=numbers.shield_armour,
        shield_per_loop=numbers.shield_regeneration_per_s / numbers.loops_per_second,
        shield_delay_loops=numbers.shield_delay_s * numbers.loops_per_second,
        widest=units[present]["separation_radius"].max(),
        width=b.size[0],
        height=b.size[1],
        least_deviation=least,
        deviations=last - least + 1,
        loops=numbers.loops_per_decision,
        reds=reds,
        blues=blues,
        order={"none": NO_ORDER, "attack_move": GO_TO, "attack_units": HUNT}[b.blue.order.kind],
        points=len(b.blue.order.points),
        never_ends=b.ends == "never",
        zero_sum=variant.both_learn,
        flips=variant.both_learn,
        drawn=variant.race is not None,
        compat=variant.smac_rules,
        abilities=variant.abilities,
        changes=variant.changes,
        change_from=change_from,
        change_to=change_to,
        waves=opening["wave"].max(),
        has_prizes=(units[present]["prize"] > 0).any(),
        first_target=[orders.FIRST + len(own) for own in _orders_of(variant)],
        kinds=len(variant.race or ()),
        smac=smac_view.layout_of(b)[0],
        **_payment(b, units, opening, variant, reds),
    ).items():
        record[name] = value
    record["goals"][: len(b.blue.order.points)] = b.blue.order.points
    for team, own in enumerate(_orders_of(variant)):
        record["orders"][team, : len(own)] = own
    if variant.race:
        ends = np.cumsum([weight for _, weight in variant.race])
        kinds = [numbers.number_of(kind) for kind, _ in variant.race]
        record["race"][: len(kinds)] = np.column_stack([kinds, ends / ends[-1]])
    return record


def _payment(b: BattleMap, units: np.ndarray, opening: np.ndarray, variant: Variant, reds: int) -> dict[str, float]:
    """What red is paid for."""
    if variant.reward_kind == SPARSE:
        unit = _scale(b, units, opening, variant, reds) if variant.smac_rules else 1.0
        return dict(damage=0.0, kill=0.0, loss=0.0, prize=0.0, win=unit, defeat=-unit)
    if b.reward is not None:
        return {name: getattr(b.reward, name) for name in ("damage", "kill", "loss", "prize", "win", "defeat")}
    scale, paid = _scale(b, units, opening, variant, reds), b.ruleset.reward
    return dict(damage=scale, kill=scale * paid.kill, loss=0.0, prize=0.0, win=scale * paid.win, defeat=0.0)


def _scale(b: BattleMap, units: np.ndarray, opening: np.ndarray, variant: Variant, reds: int) -> float:
    """Pay of a point of damage, such that the most of a match is SMAC's."""
    blue = opening[reds:][opening[reds:]["there"] == 1]
    life = (units[blue["kind"]]["hit_points"] + units[blue["kind"]]["shield"]).sum()
    if variant.race:
        weights = np.array([weight for _, weight in variant.race])
        kinds = [b.ruleset.number_of(kind) for kind, _ in variant.race]
        each = units[kinds]["hit_points"] + units[kinds]["shield"]
        life = len(blue) * float(weights @ each) / float(weights.sum())
    paid = b.ruleset.reward
    return paid.most / (life + paid.kill * len(blue) + paid.win)


def _orders_of(variant: Variant) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Further orders of red and of blue."""
    return variant.red_orders, (variant.red_orders if variant.both_learn else (orders.ATTACK_MOVE,))


def make_game(battles: Sequence[BattleMap], variant: Variant | None = None, **more: Any) -> Game:
    """A game of some maps, of which each match draws one.

    Args:
        battles: The maps.
        variant: What there is beyond the battle; None is nothing.
        **more: Further members of the `Game`.

    Raises:
        ValueError: Maps that do not go together, or units that do not fit into memory or on the ground.
    """
    variant = Variant() if variant is None else variant
    if not 0 <= variant.changes <= MOST_CHANGES:
        raise ValueError(f"changes must be from 0 to {MOST_CHANGES}, got {variant.changes}")
    world = world_of(battles, variant)
    reds, blues = (int(world.rules[side][0]) for side in ("reds", "blues"))
    most_red, most_blue = next(((r, b) for r, b in CAPACITIES if r >= reds and b >= blues), (0, 0))
    if most_red == 0:
        rooms = ", ".join(f"{r} against {b}" for r, b in CAPACITIES)
        raise battles[0].unfit(f"{reds} units against {blues} fit into none of {rooms}")
    slots = most_red + most_blue
    kinds = {name for b in battles for name in b.red.units} if variant.race is None else {k for k, _ in variant.race}
    kinds |= {name for b in battles for name in b.blue.units} if variant.changes or variant.both_learn else set()
    heals = any(battles[0].ruleset.unit(kind).heal for kind in kinds)
    targets = max(reds, blues) if heals or variant.both_learn else blues
    red = Role(
        "red",
        tuple(f"red_{k}" for k in range(reds)),
        observe.full_observation(reds, blues, slots - 1),
        (_choice(variant.red_orders, targets, slots),),
        most_red,
    )
    blue = Role(
        "blue",
        tuple(f"blue_{k}" for k in range(blues)),
        observe.SMALL_OBSERVATION,
        (_choice((orders.ATTACK_MOVE,), max(reds, blues), slots),),
        most_blue,
    )
    members: dict[str, Any] = dict(
        name="Skirmish",
        roles=(red, blue),
        state=match_fields(slots),
        reset=battle.reset,
        step=battle.step,
        observe=observe.observe,
        legal=observe.legal,
        global_state=observe.global_state,
        global_state_size=observe.STATE * (reds + blues),
        script=tactics.script,
        plan=tactics.plan,
        scripts=tactics.NAMES,
        held_out=tactics.HELD_OUT,
        horizon=max(b.limit for b in battles),
        info=(
            Field("dead", (2,), 0, most_blue, "1", "units of red and of blue that have died", "i8"),
            Field("changed", (2,), 0, MOST_CHANGES, "1", "units of red and of blue that have changed sides", "i8"),
            Field("damage", (), 0, 1e9, "1", "hit points and shields that blue has lost by attacks", "f8"),
            Field("prizes", (), 0, 1e9, "1", "prizes that red has collected", "i8"),
        ),
        end_reasons=("wiped_out",),
        scratch=scratch_fields(slots),
        world=world,
        determinism="cross-platform",
        default_opponent="builtin",
        render="palaestra.games.skirmish.render:draw",
        render_text="palaestra.games.skirmish.render:write",
        render_fps=battles[0].ruleset.loops_per_second / battles[0].ruleset.loops_per_decision,
        click="palaestra.games.skirmish.render:click",
        facts="palaestra.games.skirmish.render:facts",
        plots=("units alive", "hit points"),
        captions=Captions(tuple(b.name for b in battles), battles[0].ruleset.unit_names),
    )
    if variant.both_learn:
        unit = Role("unit", (*red.agents, *blue.agents), red.observation, red.action, slots)
        members.update(
            roles=(unit,),
            step=battle.step_alike,
            observe=observe.observe_alike,
            legal=observe.legal_alike,
            script=tactics.script_alike,
        )
    if variant.smac_rules:
        members.update(legal=smac_view.legal_smac)
    return Game(**{**members, **more})


def _choice(further: tuple[int, ...], targets: int, slots: int) -> Choice:
    """The action of a side."""
    meanings = (*MEANINGS, *(orders.NAMES[order] for order in further))
    about = "from there on a target each"
    capacity = orders.FIRST + MOST_ORDERS + slots
    return Choice("order", orders.FIRST + len(further) + targets, meanings, about, capacity=capacity)
