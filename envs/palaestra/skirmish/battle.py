"""The battle of a map: two sides fight in loops of simulation until one of them has no fighter left.

`game` makes the rules for one map; `palaestra.register` gives them an id. A decision lasts ``loops_per_decision`` loops
of the ruleset. In each loop all living units act on what is there at its beginning: they walk, attack or heal by their
order. Then all attacks hit at once (`palaestra.skirmish.combat`), all units move and make room for each other
(`palaestra.skirmish.movement`), the dead leave, and the living recover.

* Red never does anything without an order. An order to attack or to heal leads there first; when its target dies, the
  unit stands until the next decision.
* Blue has one order more, to attack on its way (`palaestra.skirmish.observe.ATTACK_MOVE`): it goes where the map
  orders its side and turns to opponents within the rules' acquire range (`palaestra.skirmish.combat.acquire`).
* A match ends when a side has no unit left that can shoot; healers do not count. Both at once is a draw.
* Red is paid the hit points and shields that blue loses by attacks, those of who attacks by its own death among them, a
  bonus for each kill and one for the victory. SMAC (Samvelyan et al. 2019) does so too, but pays also for what blue's
  shields recover. Blue is paid nothing.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np

from palaestra.core.fields import Choice, Field
from palaestra.core.game import TERMINATED, Game, Role
from palaestra.core.keywords import check_word
from palaestra.core.rng import uniform
from palaestra.skirmish import maps, ruleset, scripts
from palaestra.skirmish.combat import NOBODY, acquire, attack, can_hit, gap, heal, is_wounded, recover, take_hits
from palaestra.skirmish.formation import stand_around
from palaestra.skirmish.maps import BattleMap
from palaestra.skirmish.movement import AIR, CLIFF, GROUND, find_ways, go, next_point, push_apart, sort_by_x
from palaestra.skirmish.observe import (
    AHEAD,
    ATTACK_MOVE,
    BLUE_OBSERVATION,
    BLUE_TARGETS,
    NORTH,
    RED_TARGETS,
    STOP,
    WEST,
    legal,
    observe,
    red_observation,
    standing,
)

RED, BLUE = 0, 1
WIPED_OUT = 2
NO_ORDER, GO_TO, HUNT = range(3)
"""What blue is told at the start of a match."""
EVERYWHERE = 1e9
PUSHES = 2
"""How often in a loop bodies push each other apart: crowds are pressed together less."""
CAPACITIES = ((10, 12), (27, 32), (2, 64))
"""Units of red and of blue in memory: all kernels that there are."""

RULES = np.dtype(
    [
        (name, "f8")
        for name in (
            "sight", "shoot_range", "acquire_range", "move_cells", "minimum_damage", "shield_armour", "shield_per_loop",
            "shield_delay_loops", "kill", "win", "scale", "widest",
        )
    ]
    + [(name, "i8") for name in ("least_deviation", "deviations", "loops", "reds", "blues",
                              "order", "points", "sparse")],
    align=True,
)  # fmt: skip
"""The numbers of a ruleset and of a map that the rules need."""


class World(NamedTuple):
    """What all matches on a map share.

    Attributes:
        units: `palaestra.skirmish.ruleset.table`, one row a kind of unit.
        rules: One record `RULES`.
        kinds: Rows of ``units``, int64 ``[agents]``: red's, then blue's.
        starts: Where they stand at the start, float64 ``[agents, 2]``, cells.
        goals: Points of blue's order, float64 ``[2, 2]``, cells.
        terrain: Who may stand where, uint8 ``[rows, columns]``: bits of `palaestra.skirmish.movement`.
        ways: See `palaestra.skirmish.movement.shortest_ways`; ``[0, 0]`` where straight lines are never blocked.
    """

    units: np.ndarray
    rules: np.ndarray
    kinds: np.ndarray
    starts: np.ndarray
    goals: np.ndarray
    terrain: np.ndarray
    ways: np.ndarray


# --------------------------------------------------------------------------------------------------------------- match


def reset(s, world):
    """Both sides stand in formation; blue gets its order."""
    rules = world.rules[0]
    for slot in range(rules.reds + rules.blues):
        s.kind[slot] = world.kinds[slot]
        unit = world.units[s.kind[slot]]
        s.position[slot, 0], s.position[slot, 1] = world.starts[slot, 0], world.starts[slot, 1]
        s.hit_points[slot], s.shield[slot], s.energy[slot] = unit.hit_points, unit.shield, unit.energy_start
        s.calm[slot] = int(rules.shield_delay_loops)
        s.order[slot], s.target[slot] = STOP, NOBODY
    share = uniform(s, 0.0, 1.0) if rules.points == 2 else 0.0
    for axis in range(2):
        s.goal_of_blue[axis] = world.goals[0, axis] + share * (world.goals[1, axis] - world.goals[0, axis])


def step(s, world, actions, rewards, scratch):
    """One decision: orders, then the loops of simulation in which all units act at once."""
    rules = world.rules[0]
    scratch.count = 0
    for slot in range(rules.reds + rules.blues):
        scratch.lost[slot] = 0.0
        if s.alive[slot]:
            scratch.living[scratch.count] = slot
            scratch.count += 1
            order = actions.red[slot].order if slot < rules.reds else actions.blue[slot - rules.reds].order
            take_order(s, world, slot, order)
    killed = 0
    for _ in range(rules.loops):
        killed += play_loop(s, world, scratch)
    return settle(s, world, rewards, scratch, killed)


def take_order(s, world, slot, order):
    """Changes what a unit does from now on."""
    rules = world.rules[0]
    s.order[slot] = order
    if NORTH <= order <= WEST:
        s.target[slot] = NOBODY
        for axis in range(2):
            s.goal[slot, axis] = s.position[slot, axis] + rules.move_cells * AHEAD[order - NORTH, axis]
    elif slot < rules.reds:
        s.target[slot] = target_of_red(s, world, slot, order)
    elif order >= BLUE_TARGETS:
        s.target[slot] = target_of_blue(s, world, slot, order)
    elif order != ATTACK_MOVE:
        s.target[slot] = NOBODY


def target_of_red(s, world, slot, order):
    """Slot that an order of a red unit aims at: an opponent, or a teammate for a healer; or `NOBODY`."""
    if order < RED_TARGETS:
        return NOBODY
    heals = world.units[s.kind[slot]].heal_per_loop > 0.0
    return order - RED_TARGETS + (0 if heals else world.rules[0].reds)


def target_of_blue(s, world, slot, order):
    """The same for a blue unit."""
    heals = world.units[s.kind[slot]].heal_per_loop > 0.0
    return order - BLUE_TARGETS + (world.rules[0].reds if heals else 0)


def play_loop(s, world, scratch):
    """One loop: all living units act on what they see, then all of it happens. Returns how many of blue died."""
    rules = world.rules[0]
    for k in range(scratch.count):
        slot = scratch.living[k]
        scratch.aimed[slot] = NOBODY
        scratch.healed[slot] = 0.0
        scratch.walks[slot] = 0
        for axis in range(2):
            scratch.wanted[slot, axis] = s.position[slot, axis]
    for k in range(scratch.count):
        slot = scratch.living[k]
        act(s, world, scratch, slot)
        if not scratch.walks[slot]:
            s.pace[slot] = 0.0
    take_hits(s, world, scratch)
    for k in range(scratch.count):
        slot = scratch.living[k]
        unit = world.units[s.kind[slot]]
        go(world.terrain, standing(unit), s.position[slot], scratch.wanted[slot, 0], scratch.wanted[slot, 1])
    for _ in range(PUSHES):
        push_apart(s, world, scratch)
        for k in range(scratch.count):
            slot = scratch.living[k]
            x, y = s.position[slot, 0] + scratch.pushed[slot, 0], s.position[slot, 1] + scratch.pushed[slot, 1]
            go(world.terrain, standing(world.units[s.kind[slot]]), s.position[slot], x, y)
    killed, kept = 0, 0
    for k in range(scratch.count):
        slot = scratch.living[k]
        if s.hit_points[slot] <= 0.0:
            s.alive[slot] = 0
            s.hit_points[slot] = s.shield[slot] = s.energy[slot] = 0.0
            killed += slot >= rules.reds
            s.info.dead[0 if slot < rules.reds else 1] += 1
            continue
        scratch.living[kept] = slot
        kept += 1
        recover(s, world, scratch, slot)
    scratch.count = kept
    sort_by_x(s.position, scratch.living, kept)
    return killed


def act(s, world, scratch, slot):
    """What one unit wants to do in this loop, by its order."""
    order = s.order[slot]
    if order == ATTACK_MOVE and slot >= world.rules[0].reds:
        attack_move(s, world, scratch, slot)
    elif s.target[slot] != NOBODY:
        if not s.alive[s.target[slot]]:
            s.order[slot], s.target[slot] = STOP, NOBODY
        else:
            engage(s, world, scratch, slot, s.target[slot])
    elif NORTH <= order <= WEST:
        walk(s, world, scratch, slot, s.goal[slot, 0], s.goal[slot, 1])


def attack_move(s, world, scratch, slot):
    """Engages whom it has chosen as long as it reaches it, else chooses anew; walks on if there is nobody."""
    rules, target = world.rules[0], s.target[slot]
    reach = world.units[s.kind[slot]].range
    if target == NOBODY or not s.alive[target] or gap(s, world, slot, target) > reach or is_healed(s, world, slot):
        scan = EVERYWHERE if rules.order == HUNT else max(rules.acquire_range, reach)
        target = s.target[slot] = acquire(s, world, scratch, slot, scan)
    if target != NOBODY:
        engage(s, world, scratch, slot, target)
    elif rules.order == GO_TO:
        walk(s, world, scratch, slot, s.goal_of_blue[0], s.goal_of_blue[1])


def is_healed(s, world, slot):
    """Whether a healer's patient needs it no more."""
    return world.units[s.kind[slot]].heal_per_loop > 0.0 and not is_wounded(s, world, s.target[slot])


def engage(s, world, scratch, slot, target):
    """Attacks or heals a unit that is in range, or goes to it."""
    unit = world.units[s.kind[slot]]
    if gap(s, world, slot, target) > unit.range:
        walk(s, world, scratch, slot, s.position[target, 0], s.position[target, 1])
    elif unit.heal_per_loop > 0.0:
        heal(s, world, scratch, slot, target)
    elif s.cooldown[slot] <= 0.0 and can_hit(s, world, slot, target):
        attack(s, world, scratch, slot, target)


def walk(s, world, scratch, slot, to_x, to_y):
    """Wants to be one loop's way nearer to a point."""
    unit = world.units[s.kind[slot]]
    next_point(world.terrain, world.ways, standing(unit), s.position[slot], to_x, to_y, scratch.point)
    dx, dy = scratch.point[0] - s.position[slot, 0], scratch.point[1] - s.position[slot, 1]
    way = math.sqrt(dx * dx + dy * dy)
    scratch.walks[slot] = 1
    s.pace[slot] = min(s.pace[slot] + unit.acceleration_per_loop, unit.speed_per_loop)
    share = 1.0 if way <= s.pace[slot] else s.pace[slot] / way
    scratch.wanted[slot, 0] = s.position[slot, 0] + share * dx
    scratch.wanted[slot, 1] = s.position[slot, 1] + share * dy


def settle(s, world, rewards, scratch, killed):
    """Pays red and says whether the match is over."""
    rules = world.rules[0]
    damage, fighters_of_red, fighters_of_blue = 0.0, 0, 0
    for slot in range(rules.reds + rules.blues):
        fights = s.alive[slot] and world.units[s.kind[slot]].targets != 0
        if slot < rules.reds:
            fighters_of_red += fights
        else:
            fighters_of_blue += fights
            damage += scratch.lost[slot]
    s.info.damage += damage
    is_over = fighters_of_red == 0 or fighters_of_blue == 0
    if is_over:
        s.info.end_reason = WIPED_OUT
        if fighters_of_red != fighters_of_blue:
            s.info.winner = RED if fighters_of_red > 0 else BLUE
    has_won = s.info.winner == RED
    paid = (damage + rules.kill * killed + rules.win * has_won) * rules.scale
    if rules.sparse:
        paid = 1.0 * has_won - 1.0 * (s.info.winner == BLUE)
    for slot in range(rules.reds):
        rewards[slot] = paid
    return TERMINATED if is_over else 0


# ---------------------------------------------------------------------------------------------------------------- game


def world_of(battle: BattleMap, is_sparse: bool) -> World:
    """The arrays of a map."""
    rules, units = battle.ruleset, ruleset.table(battle.ruleset)
    kinds, starts = [], []
    for name, side, turn in (("red", battle.red, 1), ("blue", battle.blue, -1)):
        rows = np.array([rules.number_of(unit) for unit in side.units])
        of_unit = units[rows]
        everywhere = np.ones_like(battle.walkable)
        cells = [
            everywhere if u["flying"] else battle.climbable if u["cliff_walker"] else battle.walkable for u in of_unit
        ]
        kinds.append(rows)
        try:
            at = stand_around(side.positions, of_unit["separation_radius"], of_unit["flying"] == 1, cells, turn)
        except ValueError as error:
            raise ValueError(f"map {battle.name}, {name}: {error}") from None
        starts.append(at)
    red = np.lexsort((starts[0][:, 1], starts[0][:, 0], kinds[0]))  # SMAC's order: by kind, x and y
    kinds[0], starts[0] = kinds[0][red], starts[0][red]
    terrain = (GROUND * battle.walkable + CLIFF * battle.climbable + AIR).astype(np.uint8)
    order = battle.blue.order
    goals = np.zeros((2, 2))
    goals[: len(order.points)] = order.points
    life = [(units[k]["hit_points"] + units[k]["shield"]).sum() for k in kinds]
    most = life[1] + rules.reward.kill * len(kinds[1]) + rules.reward.win
    least, last = rules.cooldown_deviation_loops
    numbers = np.zeros(1, RULES)
    numbers[0] = tuple(
        dict(
            sight=rules.sight,
            shoot_range=rules.shoot_range,
            acquire_range=rules.acquire_range,
            move_cells=rules.move_cells,
            minimum_damage=rules.minimum_damage,
            shield_armour=rules.shield_armour,
            shield_per_loop=rules.shield_regeneration_per_s / rules.loops_per_second,
            shield_delay_loops=rules.shield_delay_s * rules.loops_per_second,
            kill=rules.reward.kill,
            win=rules.reward.win,
            scale=rules.reward.most / most,
            widest=units[np.concatenate(kinds)]["separation_radius"].max(),
            least_deviation=least,
            deviations=last - least + 1,
            loops=rules.loops_per_decision,
            reds=len(kinds[0]),
            blues=len(kinds[1]),
            order={"none": NO_ORDER, "attack_move": GO_TO, "attack_units": HUNT}[order.kind],
            points=len(order.points),
            sparse=is_sparse,
        ).values()
    )
    return World(units, numbers, np.concatenate(kinds), np.concatenate(starts), goals, terrain, find_ways(terrain))


def game(map: str | Path = "3m", reward: str = "smac") -> Game:
    """The battle of a map.

    Args:
        map: Name of a bundled map, or a path: see `palaestra.skirmish.maps.load`.
        reward: ``"smac"``: damage to opponents, kills and victory, scaled so that all of it is 20 in a match;
            ``"sparse"``: 1 for a victory and -1 for a defeat, at the end.

    Raises:
        ValueError: No such map or reward, or a map whose units do not fit into memory or on the ground.
        FileError: The file of the map cannot be used.
    """
    check_word("reward", reward, ("smac", "sparse"))
    battle = maps.load(map)
    world = world_of(battle, reward == "sparse")
    reds, blues = len(battle.red.units), len(battle.blue.units)
    most_red, most_blue = next(((r, b) for r, b in CAPACITIES if r >= reds and b >= blues), (0, 0))
    if most_red == 0:
        rooms = ", ".join(f"{r} against {b}" for r, b in CAPACITIES)
        raise ValueError(f"map {battle.name}: {reds} units against {blues} fit into none of {rooms}")
    slots = most_red + most_blue
    healers = any(battle.ruleset.unit(unit).heal for unit in battle.red.units)
    red_targets = max(reds if healers else 0, blues)
    meanings = ("nothing", "stop", "north", "south", "east", "west")
    red = Role(
        "red",
        tuple(f"red_{k}" for k in range(reds)),
        red_observation(reds, blues, most_red - 1 + most_blue),
        (Choice("order", RED_TARGETS + red_targets, meanings, capacity=RED_TARGETS + slots),),
        most_red,
    )
    blue = Role(
        "blue",
        tuple(f"blue_{k}" for k in range(blues)),
        BLUE_OBSERVATION,
        (Choice("order", BLUE_TARGETS + max(reds, blues), (*meanings, "attack_move"), capacity=BLUE_TARGETS + slots),),
        most_blue,
    )
    return Game(
        name="Skirmish",
        roles=(red, blue),
        state=(
            *((name, "f8", (slots,)) for name in ("hit_points", "shield", "energy", "cooldown", "pace")),
            *((name, "f8", (slots, 2)) for name in ("position", "goal")),
            *((name, "i8", (slots,)) for name in ("kind", "order", "target", "calm")),
            ("goal_of_blue", "f8", (2,)),
        ),
        reset=reset,
        step=step,
        observe=observe,
        legal=legal,
        script=scripts.script,
        plan=scripts.plan,
        scripts=scripts.NAMES,
        horizon=battle.limit,
        info=(
            Field("dead", (2,), 0, most_blue, "1", "units of red and of blue that have died", "i8"),
            Field(
                "damage",
                (),
                0,
                1e9,
                "1",
                "hit points and shields that blue has lost by attacks",
                "f8",
            ),
        ),
        end_reasons=("wiped_out",),
        scratch=(
            ("count", "i8"),
            ("focus", "i8", (2,)),
            *((name, "i8", (slots,)) for name in ("living", "aimed", "exploded", "walks")),
            *((name, "f8", (slots,)) for name in ("lost", "healed")),
            *((name, "f8", (slots, 2)) for name in ("wanted", "pushed")),
            ("point", "f8", (2,)),
        ),
        world=world,
        determinism="cross-platform",
        default_opponent="builtin",
    )
