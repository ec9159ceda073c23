"""Hooks of the Concert games: a decision, lists of orders, observations; and the game made of them.

With ``decisions="phase"`` a power gives all orders of a phase at once. With ``"unit"`` it gives one, by its place in
the list of its next unit; the phase is carried out when all are given.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from palaestra.game import TERMINATED, Choice, Field, Game, Option, Parameter, Role, offer, uniform
from palaestra.games.concert import adjudication, concert_scripts
from palaestra.games.concert.concert_map import MAPS, load_map
from palaestra.games.concert.concert_orders import (
    BITS,
    ROOM,
    Board,
    board_of,
    convoy_goals,
    count_of,
    fleets_at_sea,
    ground_of,
    is_army_at_coast,
    list_builds,
    list_moves,
    list_removals,
    list_retreats,
    list_supported_convoys,
    number_of_orders,
    own_number,
    sort_list,
    without_fleet,
)
from palaestra.games.concert.concert_phases import (
    ADJUSTMENTS,
    MOVES,
    PHASES,
    SEASONS,
    adjustment,
    asked_power,
    asks,
    go_on,
    is_first,
    resolve,
    set_up,
    share,
    write_acting,
)
from palaestra.games.concert.concert_scripts import NAMES, choose
from palaestra.games.concert.concert_scripts import plan as plan_of_script
from palaestra.games.concert.concert_sight import FEATURES, mirror, template_of, write_board, write_next, write_own
from palaestra.games.concert.concert_vector import vector_of

FIRST_YEAR, FARTHEST_YEAR = 1, 9999
STANDARD = "standard"
SCORES = ("squares", "draw_size", "centres")
PARAMETERS = (
    Parameter(
        "quiet_years", 5, 1, 1000, "1", "autumns in a row without a new owner of a centre that make a stalemate",
        whole=True,
    ),
)  # fmt: skip


# -------------------------------------------------------------------------------------------------------- a decision


def reset_phase(s, world):
    """Units and centres where they start, and the first moves.

    The draw lets the stream of the rules differ from match to match: scripts derive theirs from it.
    """
    board = world.board[0]
    uniform(s, 0.0, 1.0)
    set_up(s, board.map)
    write_acting(s, board.map)


def reset_unit(s, world):
    """The same, and the lists of the first units."""
    reset_phase(s, world)
    write_lists(s, world.board[0])


def step_phase(s, world, actions, rewards, scratch):
    """Carries out the orders of all powers."""
    board = world.board[0]
    for power in range(board.map.powers):
        for j in range(board.slots):
            scratch.given[power, j] = own_number(board, power, actions.power[power].orders[j])
    return carry_out(s, board, rewards, scratch)


def step_unit(s, world, actions, rewards, scratch):
    """Notes an order of each power that has one to give; carries out all when none is left."""
    board = world.board[0]
    powers, is_complete = board.map.powers, True
    for power in range(powers):
        if s.acting[power]:
            s.given[power, s.asked] = s.lists[power].ids[actions.power[power].order]
    s.asked += 1
    for power in range(powers):
        s.acting[power] = s.due[power] > s.asked
        is_complete = is_complete and not s.acting[power]
    result = 0
    if is_complete:
        for power in range(powers):
            for j in range(board.slots):
                scratch.given[power, j] = own_number(board, power, s.given[power, j])
                s.given[power, j] = 0
        s.asked = 0
        result = carry_out(s, board, rewards, scratch)
    write_lists(s, board)
    return result


def carry_out(s, board, rewards, scratch):
    """Carries out the orders of a phase, and pays at the end of the match."""
    world = board.map
    resolve(s, board, scratch.given, scratch)
    if not go_on(s, board):
        return 0
    for power in range(world.powers):
        s.acting[power] = 0
        rewards[power] = share(s, board, power)
        if is_first(s, world, power) and (board.score != 1 or s.info.end_reason == 2):
            s.info.winner = power
    if world.powers == 2:
        rewards[0] -= rewards[1]  # 2 x share - 1, in a way that is exact for both powers
        rewards[1] = -rewards[0]
    return TERMINATED


# -------------------------------------------------------------------------------------------------------------- lists


def legal_phase(s, world, mask):
    """A list of orders for each unit of a power that has to order."""
    board = world.board[0]
    fleets = fleets_at_sea(s, board)
    s.info.left_out = 0
    for power in range(board.map.powers):
        for j in range(s.due[power], board.slots):
            listing = mask.power[power].orders[j]
            listing.count, listing.ids[0] = 1, 0
        if s.phase == ADJUSTMENTS:
            for j in range(s.due[power]):
                list_adjustments(s, board, power, mask.power[power].orders[j])
    if s.phase != ADJUSTMENTS:
        list_units(s, board, fleets, mask)
    if board.mirrored:
        for power in range(board.map.powers):
            for j in range(s.due[power]):
                sort_list(board, power, mask.power[power].orders[j])


def list_units(s, board, fleets, mask):
    """The lists of all units that have to move or to retreat."""
    for row in range(board.orders):
        counters = 0
        for k in range(board.map.provinces):
            p = board.map.ranked[row, k]
            power = asked_power(s, board, row, p)
            if power >= 0:
                list_first(s, board, p, fleets, mask.power[power].orders[count_of(counters, power)])
                counters += 1 << (BITS * power)
    if s.phase == MOVES and fleets != 0:
        for other in range(board.map.provinces):
            if is_army_at_coast(s, board, other):
                goals = convoy_goals(board, other, fleets)
                if goals != 0:
                    list_supports(s, board, other, goals, fleets, mask)


def list_adjustments(s, board, power, listing):
    """Orders for one of the units that a power may build or has to remove."""
    if adjustment(s, board.map, power) > 0:
        list_builds(s, board, power, listing)
    else:
        list_removals(s, board, power, listing)


def list_first(s, board, p, fleets, listing):
    """Orders of a unit, without supports of convoyed armies."""
    if s.phase == MOVES:
        list_moves(s, board, p, fleets, listing)
    else:
        list_retreats(s, board, p, listing)


def list_supports(s, board, other, goals, fleets, mask):
    """Supports, by all other units, of an army where it can go by convoy alone."""
    world = board.map
    for row in range(board.orders):
        counters = 0
        for k in range(world.provinces):
            p = world.ranked[row, k]
            power = asked_power(s, board, row, p)
            if power >= 0:
                if p != other:
                    here = goals
                    if board.sea_number[p] >= 0:
                        here = convoy_goals(board, other, without_fleet(board, p, fleets))
                    listing = mask.power[power].orders[count_of(counters, power)]
                    list_supported_convoys(s, board, p, other, here, listing)
                counters += 1 << (BITS * power)


def write_lists(s, board):
    """The list of the next unit of each power, with ``decisions="unit"``."""
    world, fleets = board.map, fleets_at_sea(s, board)
    s.info.left_out = 0
    for power in range(world.powers):
        listing = s.lists[power]
        listing.count = 0
        s.next[power] = -1
        if not s.acting[power]:
            offer(listing, 0)
        elif s.phase == ADJUSTMENTS:
            list_adjustments(s, board, power, listing)
        else:
            s.next[power] = asked_province(s, world, power)
            list_one(s, board, s.next[power], fleets, listing)
        if board.mirrored:
            sort_list(board, power, listing)
        if s.phase == ADJUSTMENTS:
            leave_out_given(s, power, listing)
        for k in range(listing.count, ROOM):
            listing.ids[k] = -1


def list_one(s, board, p, fleets, listing):
    """All orders of a unit."""
    list_first(s, board, p, fleets, listing)
    if s.phase == MOVES and fleets != 0:
        for other in range(board.map.provinces):
            if other != p and is_army_at_coast(s, board, other):
                goals = convoy_goals(board, other, without_fleet(board, p, fleets))
                list_supported_convoys(s, board, p, other, goals, listing)


def asked_province(s, world, power):
    """Province of the unit for which a power gives an order next."""
    j = 0
    for k in range(world.provinces):
        p = world.ranked[power, k]
        if asks(s, world, power, p):
            if j == s.asked:
                return p
            j += 1
    return -1


def leave_out_given(s, power, listing):
    """Takes builds and removals that were ordered before out of a list."""
    kept = 1
    for k in range(1, listing.count):
        is_new = True
        for j in range(s.asked):
            is_new = is_new and listing.ids[k] != s.given[power, j]
        if is_new:
            listing.ids[kept] = listing.ids[k]
            kept += 1
    listing.count = kept


def legal_unit(s, world, mask):
    """As many alternatives as the list of the next unit has orders."""
    board = world.board[0]
    for power in range(board.map.powers):
        flags = mask.power[power].order
        for j in range(s.lists[power].count):
            flags[j] = 1


# ------------------------------------------------------------------------------------------------------- observations


def observe_phase(s, world, observations, scratch):
    """The board, now and before the last moves, and each power's own units."""
    board = world.board[0]
    write_board(s, board, 0, observations.lane)
    write_own(s, board, observations.power)


def observe_unit(s, world, observations, scratch):
    """The same, and the list of the next unit."""
    board = world.board[0]
    write_board(s, board, 0, observations.lane)
    write_own(s, board, observations.power)
    write_next(s, board, observations.power)


def observe_duel_phase(s, world, observations, scratch):
    """As `observe_phase`, each power in its own view."""
    board = world.board[0]
    for power in range(board.map.powers):
        write_board(s, board, power * board.mirrored, observations.power[power])
    write_own(s, board, observations.power)


def observe_duel_unit(s, world, observations, scratch):
    """As `observe_unit`, each power in its own view."""
    observe_duel_phase(s, world, observations, scratch)
    write_next(s, world.board[0], observations.power)


# ------------------------------------------------------------------------------------------------------------ scripts


def plan(s, world, team, which, scratch):
    """What a script decides for all units of a power."""
    plan_of_script(s, world, team, which, scratch)
    board = world.board[0]
    for j in range(board.slots):
        scratch.planned[team, j] = own_number(board, team, scratch.planned[team, j])


def script_phase(s, world, slot, which, actions, scratch):
    """The orders that a script gives."""
    board = world.board[0]
    for j in range(board.slots):
        actions.power[slot].orders[j] = scratch.planned[slot, j]


def script_unit(s, world, slot, which, actions, scratch):
    """The place in the list of the order that a script gives."""
    actions.power[slot].order = choose(s, slot, scratch)


# --------------------------------------------------------------------------------------------------------------- game

OPTIONS = (
    Option("rules", "2023", "of which year: see Description", words=("2000", "2023")),
    Option("score", "squares", "what the powers share at the end: see Rewards", words=SCORES),
    Option("decisions", "phase", "all orders of a phase at once, or one order", words=("phase", "unit")),
    Option("form", "numbers", "what is read and written", words=("numbers", "text")),
    Option(
        "repair", "hold", "a wrong order: the unit holds, or an error", words=("hold", "refuse"), only={"form": "text"}
    ),
)


OBSERVE = ((observe_phase, observe_unit), (observe_duel_phase, observe_duel_unit))
"""Hooks for several powers and for two, each for orders of a phase and of a unit."""


def last_year_option(years: int) -> Option:
    """The option of the last year, by default so many years from the first on."""

    def check(last_year: int, options: Any) -> int:
        """Refuses years before the first one, by ValueError."""
        world, _ = load_map(options.get("map", STANDARD))
        if last_year < world.first_year:
            raise ValueError(f"last_year must be at least {world.first_year}, the first year, got {last_year}")
        return last_year

    return Option(
        "last_year",
        None,
        f"with which the match ends; by default the {years}th",
        low=FIRST_YEAR,
        high=FARTHEST_YEAR,
        check=check,
        otherwise=lambda options: load_map(options.get("map", STANDARD))[0].first_year + years - 1,
        example=1905,
    )


def observation_fields(board: Board) -> tuple[tuple[Field, ...], tuple[Field, ...]]:
    """What all powers see, and what one sees."""
    world, top = board.map, number_of_orders(board.map) - 1
    shape = (world.locations, FEATURES)
    lane = (
        Field("board", shape, 0, 1, "1", "each location: see Observation Space", "i1"),
        Field("previous_board", shape, 0, 1, "1", "the same before the last moves", "i1"),
        Field("last_orders", (world.provinces,), 0, top, "1", "of the last phase, by province", "i4"),
        Field("last_results", (world.provinces,), 0, len(adjudication.RESULTS) - 1, "1", "of these orders", "i1"),
        Field("phase", (), 0, len(PHASES) - 1, "1", "0 moves, 1 retreats, 2 adjustments", "i4"),
        Field("last_phase", (), 0, len(PHASES) - 1, "1", "of the last orders", "i4"),
        Field("season", (), 0, len(SEASONS) - 1, "1", "0 spring, 1 autumn", "i4"),
        Field("year", (), FIRST_YEAR, FARTHEST_YEAR + 1, "1", "of the phase", "i4"),
        Field("last_year", (), FIRST_YEAR, FARTHEST_YEAR, "1", "of the match", "i4"),
        Field("rules", (), 0, 1, "1", "0 those of 2000, 1 those of 2023", "i4"),
        Field("score", (), 0, len(SCORES) - 1, "1", "0 squares, 1 draw_size, 2 centres", "i4"),
    )
    own = (
        Field("power", (), 0, world.powers - 1, "1", "number of the own power", "i4"),
        Field("units", (board.slots,), -1, world.locations - 1, "1", "where the units to order stand, or -1", "i4"),
        Field("build", (), -board.slots - 1, board.slots, "1", "units to build, or to remove if negative", "i4"),
    )
    more = (
        Field("unit", (), -1, world.locations - 1, "1", "where the next unit stands, or -1", "i4"),
        Field("earlier", (board.slots,), -1, top, "1", "own orders of this phase so far, or -1", "i4"),
        Field("candidates", (ROOM,), -1, top, "1", "orders of the alternatives, or -1", "i4"),
    )
    return lane, own + more if board.single else own


def make_game(name: str, map: str, options: Any, codec: Any) -> Game:
    """The game of a map.

    Args:
        name: Its name.
        map: The map's.
        options: Values of `OPTIONS` and ``last_year``.
        codec: ``codec(board, names, repair)`` for ``form="text"``.
    """
    world, names = load_map(map)
    numbers = options.numbers
    board = board_of(world, template_of(world), numbers.rules, numbers.score, options.last_year, numbers.decisions)
    lane, own = observation_fields(board)
    orders = number_of_orders(world)
    action = (
        Choice("order", ROOM, about="place in the list of the next unit")
        if board.single
        else Choice("orders", orders, about="an order for each unit", shape=(board.slots,), candidates=ROOM)
    )
    agents = tuple(f"{power}_0" for power in names.powers)
    years, is_duel = options.last_year - world.first_year + 1, world.powers == 2
    return Game(
        name=name,
        roles=(Role("power", agents, lane + own if is_duel else own, (action,)),),
        state=state_fields(board),
        reset=reset_unit if board.single else reset_phase,
        step=step_unit if board.single else step_phase,
        observe=OBSERVE[is_duel][board.single],
        legal=legal_unit if board.single else legal_phase,
        plan=plan,
        script=script_unit if board.single else script_phase,
        scripts=NAMES,
        parameters=PARAMETERS,
        horizon=years * 5 * (board.slots if board.single else 1),
        info=(
            Field("left_out", (), 0, 1e6, "1", "orders for which the lists have no room", "i8"),
            Field("guesses", (), 0, 1e6, "1", "times that orders hung on themselves", "i8"),
        ),
        end_reasons=("solo", "stalemate", "last_year"),
        lane_observation=() if is_duel else lane,
        representations={"vector": vector_of(board)},
        default_observation="dict",
        reward="team",
        scratch=scratch_fields(board),
        world=ground_of(board),
        captions=names,
        codecs={"text": codec(board, names, options.repair)},
        default_codec="text" if options.form == "text" else None,
        render="palaestra.games.concert.concert_picture:draw",
        render_text="palaestra.games.concert.concert_picture:write",
        render_fps=1.0,
        click="palaestra.games.concert.concert_clicks:click" if board.single else None,
        zero_sum=is_duel,
        symmetric_teams=bool(board.mirrored),
        mirror=partial(mirror, board) if board.mirrored else None,
        determinism="cross-platform",
        default_opponent="province_value",
    )


def state_fields(board: Board) -> tuple[tuple, ...]:
    """Fields of the match record."""
    world = board.map
    provinces, centres = (world.provinces,), (world.centres,)
    fields = (
        ("unit", "u1", provinces),
        ("dislodged", "u1", provinces),
        ("mark", "i1", provinces),
        ("owner", "i1", centres),
        ("order", "i2", provinces),
        ("result", "i1", provinces),
        ("last_unit", "u1", provinces),
        ("last_owner", "i1", centres),
        ("due", "i1", (world.powers,)),
        ("phase", "i8"),
        ("last_phase", "i8"),
        ("season", "i8"),
        ("year", "i8"),
        ("quiet_years", "i8"),
    )
    listing = [("count", "i4"), ("ids", "i4", (ROOM,))]
    single = (
        ("asked", "i8"),
        ("next", "i1", (world.powers,)),
        ("given", "i2", (world.powers, board.slots)),
        ("lists", listing, (world.powers,)),
    )
    return fields + single if board.single else fields


def scratch_fields(board: Board) -> tuple[tuple, ...]:
    """Fields of the work record."""
    shape = (board.map.powers, board.slots)
    return (
        ("given", "i2", shape),
        ("planned", "i2", shape),
        *concert_scripts.scratch_fields(board.map),
        *adjudication.scratch_fields(board.map.provinces),
    )


__all__ = ["MAPS", "OPTIONS", "last_year_option", "make_game"]
