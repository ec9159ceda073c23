"""Scripts of the Concert games, from trivial to strong.

`hold` holds, disbands and waives. `province_value` lets each unit draw a place by its value. `greedy_support` plans
attacks with as many supports as they need, defences, and convoys. `search` adjudicates plans of both of these against
plans that the others may have, and takes the best.
"""

from __future__ import annotations

from palaestra.game import apart
from palaestra.games.concert import concert_drafts, concert_search, concert_values
from palaestra.games.concert.concert_attacks import draft_attacks
from palaestra.games.concert.concert_drafts import (
    SHARPNESS,
    draft_by_value,
    draft_retreats,
    plan_adjustments,
    write_plan,
)
from palaestra.games.concert.concert_map import World
from palaestra.games.concert.concert_phases import ADJUSTMENTS, MOVES, RETREATS
from palaestra.games.concert.concert_search import search
from palaestra.games.concert.concert_values import count_reach, seed_draws, write_values

NAMES = ("hold", "province_value", "greedy_support", "search")
HOLD_ALL, PROVINCE_VALUE, GREEDY_SUPPORT, SEARCH = range(len(NAMES))


def scratch_fields(world: World) -> tuple[tuple, ...]:
    """Fields of the work record that the scripts need."""
    return (
        *concert_values.scratch_fields(world.provinces, world.locations, world.powers),
        *concert_drafts.scratch_fields(world.provinces),
        *concert_search.scratch_fields(world.provinces),
    )


def plan(s, world, power, which, scratch):
    """Writes the orders of a power, in the order in which it gives them, to ``scratch.planned[power]``.

    With ``decisions="unit"`` this is called at each decision of a phase, and plans the same each time.
    """
    for j in range(world.board[0].slots):
        scratch.planned[power, j] = 0
    if which == HOLD_ALL:
        return
    if s.phase != MOVES or which == PROVINCE_VALUE:
        plan_by_value_late(s, world, power, scratch)
    elif which == GREEDY_SUPPORT:
        plan_attacks_late(s, world, power, scratch)
    else:
        plan_by_search_late(s, world, power, scratch)


def plan_by_value(s, world, power, scratch):
    """Plans `province_value`, and what all scripts do in retreats and adjustments."""
    board = world.board[0]
    weigh_up(s, board.map, power, scratch)
    if s.phase == ADJUSTMENTS:
        plan_adjustments(s, board, power, scratch)
    elif s.phase == RETREATS:
        draft_retreats(s, board.map, power, scratch)
        write_plan(s, board.map, power, scratch)
    else:
        draft_by_value(s, board.map, power, SHARPNESS, scratch)
        write_plan(s, board.map, power, scratch)


def plan_attacks(s, world, power, scratch):
    """Plans the moves of `greedy_support`."""
    board = world.board[0]
    weigh_up(s, board.map, power, scratch)
    draft_attacks(s, board, power, scratch)
    write_plan(s, board.map, power, scratch)


def plan_by_search(s, world, power, scratch):
    """Plans the moves of `search`."""
    board = world.board[0]
    weigh_up(s, board.map, power, scratch)
    search(s, board, power, scratch)
    write_plan(s, board.map, power, scratch)


plan_by_value_late, plan_attacks_late, plan_by_search_late = (
    apart(plan_by_value),
    apart(plan_attacks),
    apart(plan_by_search),
)


def weigh_up(s, world, power, scratch):
    """Starts the draws of a plan, and counts and values all places."""
    seed_draws(s, power, scratch)
    count_reach(s, world, scratch)
    write_values(s, world, power, scratch)


def choose(s, power, scratch):
    """The place of the planned order in the list of the next unit of a power; 0 where it is not there."""
    listing, number = s.lists[power], scratch.planned[power, s.asked]
    for k in range(listing.count):
        if listing.ids[k] == number:
            return k
    return 0
