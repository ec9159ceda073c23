"""What is drawn at the start of a match: kinds of units, where they stand, when they come.

Kinds and places of ``SkirmishGen`` follow SMACv2 (Ellis et al. 2023, its ``distributions.py``): each red unit is drawn
by weight, blue gets the same kinds and draws what it has more; a team without a fighter that survives its attack is
drawn again. Half of the matches place red uniformly in the western half and blue as its mirror image; in the others red
stands in the middle and blue in one to four groups, each on a diagonal of its own. All of it comes from the stream of
the lane.
"""

from __future__ import annotations

import numpy as np

from palaestra.core.rng import GOLDEN, SHIFT_11, TO_UNIT, mix64
from palaestra.game import apart, integer, uniform
from palaestra.games.skirmish.battle_records import BLUE, RED
from palaestra.games.skirmish.movement import GROUND, is_open

MARGIN = 1.0
"""Cells between a drawn place and the edge of the map."""
OFFSET = 2.0
"""Groups of a diagonal stand beyond this distance from the middle, along each axis, cells."""
TRIES = 1000


def draw_battle(s, world):
    """Kinds and places of both sides."""
    rules = world.rules[s.map]
    same = min(rules.reds, rules.blues)
    draw_team(s, world, 0, rules.reds, same)
    for k in range(same):
        s.kind[rules.reds + k] = s.kind[k]
    draw_team(s, world, rules.reds + same, rules.reds + rules.blues, rules.reds + rules.blues)
    if uniform(s, 0.0, 1.0) < 0.5:
        place_mirrored(s, world)
    else:
        place_around(s, world)


def draw_team(s, world, first, last, shared):
    """Kinds of the slots from ``first`` to before ``last``, drawn until one before ``shared`` fights and survives."""
    rules, fights, tries = world.rules[s.map], first >= last, 0
    while not fights and tries < TRIES:
        for slot in range(first, last):
            share = uniform(s, 0.0, 1.0)
            row = 0
            while row + 1 < rules.kinds and share >= rules.race[row, 1]:
                row += 1
            s.kind[slot] = int(rules.race[row, 0])
            unit = world.units[s.kind[slot]]
            fights |= slot < shared and unit.targets != 0 and not unit.suicide
        tries += 1


def place_mirrored(s, world):
    """Red anywhere in the western half, blue opposite; what blue has more anywhere in the eastern half."""
    rules = world.rules[s.map]
    middle = 0.5 * rules.width
    for k in range(max(rules.reds, rules.blues)):
        x = uniform(s, MARGIN, middle - MARGIN)
        y = uniform(s, MARGIN, rules.height - MARGIN)
        if k < rules.reds:
            s.position[k, 0], s.position[k, 1] = x, y
        if k < rules.blues:
            s.position[rules.reds + k, 0], s.position[rules.reds + k, 1] = rules.width - x, y


def place_around(s, world):
    """Red in the middle, blue in groups on the diagonals."""
    rules = world.rules[s.map]
    for k in range(rules.reds):
        stand_near(s, world, k, k, 0.5 * rules.width, 0.5 * rules.height)
    groups = 1 + integer(s, 4)
    for k in range(rules.blues):
        s.target[rules.reds + k] = integer(s, groups)
    used = 0
    for group in range(groups):
        corner = free_corner(used, integer(s, 4 - group))
        used |= 1 << corner
        share = uniform(s, 0.0, 1.0)
        to_x, to_y = (1.0 if corner & 1 else -1.0), (1.0 if corner & 2 else -1.0)
        x = 0.5 * rules.width + to_x * (OFFSET + share * (0.5 * rules.width - OFFSET))
        y = 0.5 * rules.height + to_y * (OFFSET + share * (0.5 * rules.height - OFFSET))
        place = 0
        for slot in range(rules.reds, rules.reds + rules.blues):
            if s.target[slot] == group:
                stand_near(s, world, slot, rules.reds + place, x, y)
                place += 1


def free_corner(used, number):
    """The corner, of 0 to 3, that is number ``number`` of those whose bit is not in ``used``."""
    for corner in range(4):
        if (used >> corner) & 1 == 0:
            if number == 0:
                return corner
            number -= 1
    return 0


def stand_near(s, world, slot, place, x, y):
    """Puts a unit on the place around a point that the opening of a slot holds, not beyond the edge of the map."""
    rules, opening = world.rules[s.map], world.openings[s.map, place]
    s.position[slot, 0] = min(max(x + opening.x, MARGIN), rules.width - MARGIN)
    s.position[slot, 1] = min(max(y + opening.y, MARGIN), rules.height - MARGIN)


def place_anywhere(s, world, slot):
    """Puts a unit on a place of the ground, drawn uniformly."""
    rules, terrain, bits = world.rules[s.map], world.terrain[s.map], GROUND
    for _ in range(TRIES):
        x, y = uniform(s, MARGIN, rules.width - MARGIN), uniform(s, MARGIN, rules.height - MARGIN)
        s.position[slot, 0], s.position[slot, 1] = x, y
        if is_open(terrain, bits, x, y):
            return


def draw_goal(s, world):
    """The point that blue is ordered to: one of its points, or one between the two."""
    rules = world.rules[s.map]
    share = uniform(s, 0.0, 1.0) if rules.points == 2 else 0.0
    for axis in range(2):
        first, second = rules.goals[0, axis], rules.goals[1, axis]
        s.goal_of_blue[axis] = first + share * (second - first)


def draw_abilities(s, world, slot):
    """When a red unit has its ability: never, always, or from one decision to another."""
    rules = world.rules[s.map]
    s.able[slot, 0] = s.able[slot, 1] = 0
    if rules.abilities == 1:
        s.able[slot, 1] = 2_000_000_000
    elif rules.abilities == 2:
        s.able[slot, 0] = integer(s, 21)
        s.able[slot, 1] = s.able[slot, 0] + 15 + integer(s, 31)


def draw_luck(s):
    """Starts the random streams of both sides' weapons."""
    for team in (RED, BLUE):
        s.luck[team] = np.uint64(integer(s, 1 << 52))


def lucky_integer(s, team, n):
    """An int in [0, n) from the stream of one side's weapons, as `palaestra.game.integer`."""
    s.luck[team] += GOLDEN
    return int(float(mix64(s.luck[team]) >> SHIFT_11) * TO_UNIT * n)


draw_battle_late = apart(draw_battle)
"""Compiled for the battles that are drawn."""
