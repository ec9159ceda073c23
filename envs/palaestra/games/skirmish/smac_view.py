"""What SMAC shows (``observation="smac"``), allows and pays (``smac_rules=True``), value for value.

The rules are those of github.com/oxwhirl/smac (MIT, commit d6aab33, file smac/env/starcraft2/starcraft2.py) with its
default options; functions of that file are named in the docstrings. What ``observation="smac"`` changes:

* An observation is one vector in SMAC's order: where the unit may go, its opponents, its teammates, itself. The state
  is one vector too. Both hold no energy, attributes, ranges or cooldowns but those that SMAC has.
* The first number of an opponent says whether the action of its place in SMAC's mask is legal. A healer's actions aim
  at teammates, so for a healer the number in the row of opponent k is about teammate k.
* Where stalkers and zealots fight, the two columns of their kinds are exchanged in the rows of opponents.

What ``smac_rules=True`` changes:

* Every living opponent in reach may be ordered as a target, also by units whose weapon cannot hit it; such an order
  changes nothing: the unit goes on with the order before. Fliers and cliff walkers may be ordered to go where all units
  can stand, only there.
* Red is paid the absolute value of all that blue's hit points and shields have changed by, so that healing and recovery
  lessen the pay of a decision, or are paid themselves when they are more than the damage.
* A sparse reward is scaled by the same factor as the other one.
* Where red has healers and both sides lose their last fighter at once, red has lost.
"""

from __future__ import annotations

import math

import numpy as np

from palaestra.game import Field, Game, Representation
from palaestra.games.skirmish.battle_records import BLUE, LAYOUT, RED
from palaestra.games.skirmish.combat import can_heal, can_hit
from palaestra.games.skirmish.maps import BattleMap
from palaestra.games.skirmish.observe import is_free, is_near, observe_blue, share, write_legal
from palaestra.games.skirmish.orders import FIRST, NORTH, NOTHING, STOP, WEST

MOVES = WEST - NORTH + 1
SEEN = 5
"""Numbers of a unit in an observation: attackable or visible, distance, x, y, hit points; then shield and kind."""
OF_RED, OF_BLUE = 4, 3
"""Numbers of a unit in the state: hit points, (red: cooldown or energy,) x, y; then shield and kind."""
MOST_TYPES = 3
"""Columns for kinds that all maps of SMAC get along with: such maps share their kernels."""
COLUMNS_OF_OPPONENTS: dict[tuple[str, ...], tuple[str, ...]] = {("stalker", "zealot"): ("zealot", "stalker")}
"""Kinds in SMAC's order, and their order in the rows of opponents where it is another one (get_unit_type_id)."""


def layout_of(battle: BattleMap) -> np.ndarray:
    """The layout of SMAC's vectors for a map: one record `LAYOUT`, shape ``[1]``.

    ``shield_of_red``, ``shield_of_blue``: 1 if a unit of the side has a shield: SMAC's races a_race and b_race are
    "P" for these maps. ``types``: columns for the kinds of units, SMAC's unit_type_bits: all kinds on the map, 0 where
    each side has but one. ``column_of_red``, ``column_of_blue``: the column of a kind by its row in `World.units`, in
    the order in which the map names red's kinds. ``actions``: of an agent. ``healers``: 1 if red has some. ``width``,
    ``height``: of the map, cells. SMAC divides by the playable area, which is the whole map on its 23 maps (MapInfo).
    """
    rules = battle.ruleset
    kinds = tuple(dict.fromkeys((*battle.red.units, *battle.blue.units)))
    shields = [any(rules.unit(unit).shield > 0 for unit in side.units) for side in (battle.red, battle.blue)]
    layout = np.zeros(1, LAYOUT)
    layout["shield_of_red"], layout["shield_of_blue"] = shields
    is_mixed = max(len(set(side.units)) for side in (battle.red, battle.blue)) > 1
    layout["types"] = len(kinds) if is_mixed else 0
    layout["healers"] = any(rules.unit(unit).heal for unit in battle.red.units)
    teammates = len(battle.red.units) if layout["healers"][0] else 0
    layout["actions"] = FIRST + max(teammates, len(battle.blue.units))
    layout["width"], layout["height"] = battle.size
    for name, order in (("column_of_red", kinds), ("column_of_blue", COLUMNS_OF_OPPONENTS.get(kinds, kinds))):
        layout[name] = -1
        for column, kind in enumerate(order):
            layout[name][0, rules.number_of(kind)] = column
    return layout


def sizes(battle: BattleMap) -> tuple[int, int, int]:
    """Numbers in an observation and in the state, and actions of an agent (get_obs_size, get_state_size)."""
    layout, reds, blues = layout_of(battle)[0], len(battle.red.units), len(battle.blue.units)
    red, blue = (int(layout["types"] + layout[name]) for name in ("shield_of_red", "shield_of_blue"))
    actions = int(layout["actions"])
    state = reds * (OF_RED + red) + blues * (OF_BLUE + blue) + reds * actions
    return observation_size(reds, blues, red, blue), state, actions


def observation_size(reds: int, blues: int, red: int, blue: int) -> int:
    """Numbers in an observation; ``red`` and ``blue`` are the columns of a unit's shield and kind."""
    return MOVES + blues * (SEEN + blue) + (reds - 1) * (SEEN + red) + 1 + red


def representation(battle: BattleMap, game: Game) -> Representation:
    """``observation="smac"`` of the game of a map."""
    columns = 1 + max(MOST_TYPES, int(layout_of(battle)["types"][0]))
    red, blue = (role.slots for role in game.roles)
    about = "SMAC's: moves that are legal; opponents; teammates; oneself"
    capacity, (size, state_size, _) = observation_size(red, blue, columns, columns), sizes(battle)
    return Representation(
        "SMAC's observations and state, value for value; smac_rules=True has its masks and rewards",
        observe_smac,
        {"red": (Field("obs", (size,), -1, 1, "1", about, capacity=capacity),)},
        global_state=state_smac,
        global_state_size=state_size,
    )


# ------------------------------------------------------------------------------------------------------------ kernels


def is_offered(s, world, slot, other):
    """Whether SMAC lets a unit of red aim at another one (get_avail_agent_actions).

    At living opponents within its shoot range, whatever the weapon. A healer aims at living teammates that do not heal.
    """
    if not is_near(s, world, slot, other):
        return False
    heals = world.units[s.kind[slot]].heal_per_loop > 0.0
    if heals:
        return s.team[slot] == s.team[other] and world.units[s.kind[other]].heal_per_loop == 0.0
    return s.team[slot] != s.team[other]


def is_refused(s, world, slot, target):
    """Whether an order to aim at a unit is one that the game refuses: the weapon or the healing cannot do it."""
    return not (can_heal(s, world, slot, target) if s.team[slot] == s.team[target] else can_hit(s, world, slot, target))


def is_legal_target(s, world, slot, k):
    """Whether the action that aims at place k is in the mask of a unit of red."""
    rules = world.rules[s.map]
    if world.units[s.kind[slot]].heal_per_loop > 0.0:
        return k < rules.reds and is_offered(s, world, slot, k)
    return k < rules.blues and is_offered(s, world, slot, rules.reds + k)


def legal_smac(s, world, mask):
    """What every living unit may do; the dead do nothing."""
    rules, layout = world.rules[s.map], world.rules[s.map].smac
    for slot in range(rules.reds):
        allowed = mask.red[slot].order
        if not s.alive[slot]:
            allowed[NOTHING] = 1
            continue
        allowed[STOP] = 1
        for order in range(NORTH, WEST + 1):
            allowed[order] = is_free(s, world, slot, order)
        for k in range(layout.actions - FIRST):
            allowed[FIRST + k] = is_legal_target(s, world, slot, k)
    for k in range(rules.blues):
        write_legal(s, world, rules.reds + k, mask.blue[k].order)


def observe_smac(s, world, observations, scratch):
    """What every living unit of red sees (get_obs_agent); zeros for the dead. Blue sees what it always does."""
    for slot in range(world.rules[s.map].reds):
        if s.alive[slot]:
            write_view(s, world, observations.red[slot].obs, slot)
    observe_blue(s, world, observations)


def write_view(s, world, out, slot):
    """One observation."""
    rules, layout = world.rules[s.map], world.rules[s.map].smac
    for k in range(MOVES):
        out[k] = is_free(s, world, slot, NORTH + k)
    at = MOVES
    for k in range(rules.blues):
        if write_seen(s, world, out, at, slot, rules.reds + k):
            out[at] = is_legal_target(s, world, slot, k)
        at += SEEN + layout.shield_of_blue + layout.types
    for other in range(rules.reds):
        if other != slot:
            if write_seen(s, world, out, at, slot, other):
                out[at] = 1.0
            at += SEEN + layout.shield_of_red + layout.types
    out[at] = s.hit_points[slot] / world.units[s.kind[slot]].hit_points
    write_shield_and_kind(s, world, out, at + 1, slot)


def write_seen(s, world, out, at, slot, other):
    """The numbers of another unit from the second one on, if it lives and is in sight; returns whether it is."""
    sight = world.rules[s.map].sight
    dx, dy = s.position[other, 0] - s.position[slot, 0], s.position[other, 1] - s.position[slot, 1]
    square = dx * dx + dy * dy
    if not s.alive[other] or square >= sight * sight:
        return False
    out[at + 1] = math.sqrt(square) / sight
    out[at + 2], out[at + 3] = dx / sight, dy / sight
    out[at + 4] = s.hit_points[other] / world.units[s.kind[other]].hit_points
    write_shield_and_kind(s, world, out, at + SEEN, other)
    return True


def write_shield_and_kind(s, world, out, at, slot):
    """Share of the shield, where the side has shields, and a 1 in the column of the kind, where there are columns."""
    layout, is_red = world.rules[s.map].smac, slot < world.rules[s.map].reds
    if layout.shield_of_red if is_red else layout.shield_of_blue:
        out[at] = share(s.shield[slot], world.units[s.kind[slot]].shield)
        at += 1
    if layout.types > 0:
        out[at + (layout.column_of_red[s.kind[slot]] if is_red else layout.column_of_blue[s.kind[slot]])] = 1.0


def state_smac(s, world, out):
    """SMAC's state (get_state): red's units, blue's units, red's last actions one-hot; zeros for the dead.

    A cooldown is divided by SMAC's own number of loops (unit_max_cooldown), which the random delays may exceed: marines
    reach 1.05, zerglings 1.19, hydralisks 1.52, colossi 1.08. All other numbers lie in [-1, 1]. The dead have the last
    action 0; all actions are zeros before the first decision.
    """
    rules, layout = world.rules[s.map], world.rules[s.map].smac
    at = 0
    out[:] = 0.0
    for slot in range(rules.reds + rules.blues):
        is_red = slot < rules.reds
        width = OF_RED + layout.shield_of_red if is_red else OF_BLUE + layout.shield_of_blue
        if s.alive[slot]:
            unit = world.units[s.kind[slot]]
            out[at] = s.hit_points[slot] / unit.hit_points
            place = at + 1
            if is_red:
                waits = s.energy[slot] if unit.heal_per_loop > 0.0 else s.cooldown[slot]
                out[place] = waits / unit.cooldown_normaliser_loops
                place += 1
            out[place] = (s.position[slot, 0] - 0.5 * layout.width) / layout.width
            out[place + 1] = (s.position[slot, 1] - 0.5 * layout.height) / layout.height
            write_shield_and_kind(s, world, out, place + 2, slot)
        at += width + layout.types
    for slot in range(rules.reds):
        if s.last_action[slot] >= 0:
            out[at + s.last_action[slot]] = 1.0
        at += layout.actions


def change_of_blue(s, world):
    """What a decision did to blue (reward_battle), scaled: life lost less life gained, and kills.

    A unit that dies has lost what it had at the end of the decision before. A unit that has arrived since counts from
    the next decision on. Keeps hit points and shields for the next decision in ``s.life_before``.
    """
    rules, lost, killed = world.rules[s.map], 0.0, 0
    for slot in range(rules.reds, rules.reds + rules.blues):
        left = s.hit_points[slot] + s.shield[slot] if s.alive[slot] else 0.0
        if s.life_before[slot] > 0.0:
            lost += s.life_before[slot] - left
            killed += s.alive[slot] == 0
        s.life_before[slot] = left
    return rules.damage * lost + rules.kill * killed


def smac_reward(s, world):
    """What SMAC pays for a decision (step, with reward_only_positive); call it once, when the winner is known.

    The absolute value of damage and kills less recovery, and 200 for a victory, times 20 / (the greatest sum without
    recovery); a sparse reward, 1 for a victory and -1 for a defeat, times the same factor. Nothing more for a defeat or
    at the limit of time.
    """
    rules, change = world.rules[s.map], change_of_blue(s, world)
    return math.fabs(change) + rules.win * (s.info.winner == RED) + rules.defeat * (s.info.winner == BLUE)
