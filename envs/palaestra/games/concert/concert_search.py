"""Search of the Concert games: plans of a power against plans that the others may have, all adjudicated; see `search`.

Plans of the others are drawn as `province_value` and `greedy_support` make them. The plan of the greatest mean value is
played. The value of a position counts the centres that a power would own if the units stayed, and how safe they are.
"""

from __future__ import annotations

from typing import NamedTuple

from palaestra.games.concert.adjudication import YES, adjudicate
from palaestra.games.concert.concert_attacks import draft_attacks
from palaestra.games.concert.concert_drafts import SHARPNESS, draft_by_value
from palaestra.games.concert.concert_orders import MOVE, is_fleet, location_of, order_parts, power_of, unit_at
from palaestra.games.concert.concert_values import count_reach, count_rivals, value_at, write_values

OWN_PLANS, RIVAL_PLANS = 24, 6
"""Plans of the power, and of all others together; the first of each is that of `greedy_support`."""
GREEDY_WEIGHT = 3.0
"""Weight of the first plan of the others; that of the rest is 1."""


class Terms(NamedTuple):
    """Terms of the value of a position, in centres.

    Attributes:
        soon: A centre in which a unit stands that will own it in autumn.
        unsafe: An own centre that others reach with more units.
        chance: A centre of others that more own units reach than theirs.
        lost: A dislodged own unit.
        drives: A dislodged unit of another power.
        position: A unit at the best place.
    """

    soon: float = 0.7
    unsafe: float = 0.3
    chance: float = 0.2
    lost: float = 0.5
    drives: float = 0.15
    position: float = 0.3


TERMS = Terms()


def scratch_fields(provinces: int) -> tuple[tuple, ...]:
    """Fields of the work record, for a map of so many provinces."""
    return (
        ("trial", [("unit", "u1", (provinces,)), ("order", "i2", (provinces,))]),
        ("after", [("unit", "u1", (provinces,))]),
        ("own_plans", "i2", (OWN_PLANS, provinces)),
        ("rival_plans", "i2", (RIVAL_PLANS, provinces)),
    )


def search(s, board, power, scratch):
    """Drafts the plan of the greatest mean value."""
    world = board.map
    for p in range(world.provinces):
        scratch.trial.unit[p] = s.unit[p]
        for m in range(RIVAL_PLANS):
            scratch.rival_plans[m, p] = 0
    for other in range(world.powers):
        if other != power and s.alive[other]:
            write_values(s, world, other, scratch)
            for m in range(RIVAL_PLANS):
                draft(s, board, other, m, SHARPNESS, scratch)
                keep(s, world, other, scratch.rival_plans[m], scratch)
    write_values(s, world, power, scratch)
    for k in range(OWN_PLANS):
        draft(s, board, power, k, k % (SHARPNESS + 1), scratch)  # some plans are bolder than others
        keep(s, world, power, scratch.own_plans[k], scratch)
    best, chosen = -1e9, 0
    for k in range(OWN_PLANS):
        value = mean_value(s, board, power, scratch.own_plans[k], scratch)
        if value > best:
            best, chosen = value, k
    for p in range(world.provinces):
        scratch.draft[p] = scratch.own_plans[chosen, p]


def draft(s, board, power, number, sharpness, scratch):
    """Drafts a plan of a power: number 0 as `greedy_support`, the others as `province_value`."""
    if number == 0:
        draft_attacks(s, board, power, scratch)
    else:
        draft_by_value(s, board.map, power, sharpness, scratch)


def keep(s, world, power, plans, scratch):
    """Copies the draft of a power into a row of plans."""
    for p in range(world.provinces):
        if s.unit[p] != 0 and power_of(s.unit[p]) == power:
            plans[p] = scratch.draft[p]


def mean_value(s, board, power, plan, scratch):
    """Mean value of a plan over the plans of the others."""
    total = 0.0
    for m in range(RIVAL_PLANS):
        for p in range(board.map.provinces):
            own = s.unit[p] != 0 and power_of(s.unit[p]) == power
            scratch.trial.order[p] = plan[p] if own else scratch.rival_plans[m, p]
        adjudicate(scratch.trial, board, scratch)
        move_units(board.map, scratch)
        total += (GREEDY_WEIGHT if m == 0 else 1.0) * position_value(s, board.map, power, scratch)
    return total


def move_units(world, scratch):
    """Units after the adjudicated moves; dislodged ones are gone."""
    units, after = scratch.trial.unit, scratch.after.unit
    for p in range(world.provinces):
        after[p] = units[p]
    for i in range(scratch.count):
        if scratch.moves[i] == YES or scratch.is_dislodged[i] == YES:
            after[scratch.at[i]] = 0
    for i in range(scratch.count):
        if scratch.moves[i] == YES:
            start, goal = scratch.at[i], scratch.goal[i]
            kind, location, _ = order_parts(world, scratch.trial.order[start])
            after[goal] = unit_at(world, scratch.whose[i], is_fleet(units[start]), location if kind == MOVE else goal)


def position_value(s, world, power, scratch):
    """Value of the position after moves for a power, in centres."""
    after, value, scale = scratch.after, 0.0, TERMS.position
    count_reach(after, world, scratch)
    count_rivals(world, power, scratch)
    for c in range(world.centres):
        value += centre_value(s, world, power, c, scratch)
    for p in range(world.provinces):
        unit = after.unit[p]
        if unit != 0 and power_of(unit) == power:
            value += scale * value_at(unit, location_of(world, unit, p), scratch)
    for i in range(scratch.count):
        if scratch.is_dislodged[i] == YES:
            value += -TERMS.lost if scratch.whose[i] == power else TERMS.drives
    return value


def centre_value(s, world, power, c, scratch):
    """What a centre adds to the value of a position."""
    p, owner = world.centre_province[c], s.owner[c]
    unit = scratch.after.unit[p]
    holder = power_of(unit) if unit != 0 else owner
    if s.season == 0 and holder != owner:
        return TERMS.soon * worth_of(world, power, holder) + (1.0 - TERMS.soon) * worth_of(world, power, owner)
    value = worth_of(world, power, holder)
    if holder == power:
        return value - TERMS.unsafe * (scratch.rivals[p] > scratch.reach[power, p])
    return value + TERMS.chance * (scratch.reach[power, p] > scratch.rivals[p])


def worth_of(world, power, owner):
    """What a centre is worth to a power by its owner: the loss of one other is shared by all."""
    if owner < 0:
        return 0.0
    return 1.0 if owner == power else -1.0 / (world.powers - 1)


__all__ = ["scratch_fields", "search"]
