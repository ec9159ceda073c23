"""Orders of units, and which action of an agent means which order.

Actions 0 to 5 are the first six orders for all units. Then come the further orders of the side (``rules.orders``), then
a target each: opponents to attack, or teammates to heal for a healer.
"""

from __future__ import annotations

import math

import numpy as np

from palaestra.games.skirmish.battle_records import BLUE

NOTHING, STOP, NORTH, SOUTH, EAST, WEST, ATTACK_MOVE, AIM, BOOST, JUMP = range(10)
"""Orders. `JUMP` to ``JUMP + 3`` are jumps to the north, south, east and west; `LOOK` and the eleven after it turn the
sight, counterclockwise from the east in steps of 30 degrees."""
LOOK = JUMP + 4
DIRECTIONS = 12
FIRST = WEST + 1
"""The first action that is not the same for all units."""
AHEAD = np.array([[0, 1], [0, -1], [1, 0], [-1, 0]])
"""East and north of the orders from `NORTH` to `WEST`."""
_R = math.sqrt(3.0) / 2.0
FACING = np.array(
    [
        *([1, 0], [_R, 0.5], [0.5, _R], [0, 1], [-0.5, _R], [-_R, 0.5]),
        *([-1, 0], [-_R, -0.5], [-0.5, -_R], [0, -1], [0.5, -_R], [_R, -0.5]),
    ]
)
"""East and north of the directions of sight."""
NAMES = {
    ATTACK_MOVE: "attack_move",
    BOOST: "boost",
    **{JUMP + k: f"jump_{name}" for k, name in enumerate(("north", "south", "east", "west"))},
    **{LOOK + k: f"look_{30 * k}" for k in range(DIRECTIONS)},
}
"""Names of the orders that not all units have."""


def order_of(s, world, slot, action):
    """The order that an action of a slot means."""
    rules, team = world.rules[s.map], s.team[slot]
    if action >= rules.first_target[team]:
        return AIM
    order = action if action < FIRST else rules.orders[team, action - FIRST]
    return flipped(order) if rules.flips and team == BLUE else order


def action_of(s, world, slot, order):
    """The action of a slot that means an order; `STOP` where its side has none. Not for `AIM`, see `aim_at`."""
    rules, team = world.rules[s.map], s.team[slot]
    wanted = flipped(order) if rules.flips and team == BLUE else order
    if wanted < FIRST:
        return wanted
    for action in range(FIRST, rules.first_target[team]):
        if rules.orders[team, action - FIRST] == wanted:
            return action
    return STOP


def flipped(order):
    """The order mirrored: east for west."""
    return EAST + WEST - order if EAST <= order <= WEST else order


def target_of(s, world, slot, action):
    """Slot that an action aims at."""
    rules = world.rules[s.map]
    return first_target(s, world, slot) + action - rules.first_target[s.team[slot]]


def aim_at(s, world, slot, target):
    """The action that aims at a slot: an opponent, or a healer's teammate."""
    return world.rules[s.map].first_target[s.team[slot]] + target - first_target(s, world, slot)


def first_target(s, world, slot):
    """The first slot of those that a unit may aim at: its opponents, or its teammates if it heals."""
    heals = world.units[s.kind[slot]].heal_per_loop > 0.0
    return 0 if (s.team[slot] != BLUE) == heals else world.rules[s.map].reds


def targets_of(s, world, slot):
    """How many slots a unit may aim at."""
    rules = world.rules[s.map]
    return rules.reds if first_target(s, world, slot) == 0 else rules.blues
