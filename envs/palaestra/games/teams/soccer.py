"""Soccer on a grid: run the ball into the other team's goal; a player that runs into another loses the ball.

## Description

The soccer game of Littman ("Markov games as a framework for multi-agent reinforcement learning", ICML 1994), one
against one (`palaestra/GridSoccer-v0`, 4 rows by 5 columns as in the paper) and two against two
(`palaestra/TeamGridSoccer-3x3-v0`, `-3x4-v0` and `-4x5-v0`, named by rows and columns), under one set of rules. Red
attacks the right edge, blue the left. Each player occupies a cell of its own; one of them has the ball.

A move goes to one of the four neighbouring cells, or nowhere. A player that moves into an occupied cell stays where it
is. If it had the ball, the player in that cell has it now: an opponent wins it, a teammate receives a pass. No player
can take the ball otherwise: a defender wins it by standing where the ball wants to go. The player with the ball in
front of the other team's goal scores by moving forward. All other edges, a team's own goal among them, are walls.

The goal is in the middle of the edge and one cell wider than a team, so that no team closes it by standing in it: two
cells for one against one. Where so many cells cannot lie in the middle it is one wider again: three of three rows and
four of four for two against two.

``order="simultaneous"`` (the default): all decide at the same time, then the moves are carried out one after the other
in an order drawn at random, in which the teams take turns. The best play mixes its moves by chance.
``order="alternating"``: the teams decide and move in turns, two teammates in an order drawn at random. There is a best
play that never mixes.

One against one on 4 by 5 with a discount factor of 0.9, the kick-off is worth 0.218484 to the side with the ball if
both mix at their best. Without mixing it can be sure of 0 alone, and the other side of losing no more than 0.295245: in
324 of the 760 positions the two differ, by 0.098 on the average of all positions and at most by 0.405. A method whose
policies are deterministic cannot learn the value there; in alternating order it can.

The scripts: ``striker`` runs for the goal with the ball and around players in its way, or passes to a teammate that it
runs into; without the ball the nearest gets in front of the holder. A teammate of the holder keeps beside it, a second
defender between the ball and the goal. In alternating order two pairs of strikers at full strength never let each
other through. ``runner`` always runs forward, ball or not, and never around another player.

## Action Space

<!-- table: action -->

Forward is towards the other team's goal: east for red, west for blue. In alternating order the team that is not to
move stays.

## Observation Space

Each player observes the whole pitch, one plane of cells for each kind of player and one for the ball, as if its own
team attacked the right edge: for blue the columns are mirrored. Members of a team are distinguished only as oneself and
the teammate, the opponents not at all. ``teammate`` is there in two against two, ``turn`` in alternating order.

<!-- table: observation -->

## Rewards

1 to the team that scores and -1 to the other, to each of their members; else 0.

## Starting State

One against one, the players start in Littman's cells: red in the second column from the left in the row below the
middle, blue in the cell that this one turns into when the pitch is turned by half. Two against two, teammates start in
the same column, above and below the middle. The holder of the ball is drawn uniformly among all players, and in
alternating order the team that moves first is drawn by another.

## Episode End

By rule with a goal (``goal``). Truncated after 100 decisions: a draw.

## Arguments

<!-- table: options -->

<!-- table: parameters -->

## Version History

* v0: first version.
"""

from __future__ import annotations

from functools import partial
from itertools import permutations, product
from typing import Any, NamedTuple

import numpy as np

from palaestra.game import Choice, Enumeration, Field, Game, Option, Role, integer, script_integer, with_options
from palaestra.games.teams.soccer_positions import Count, canonical, mirror, state_index, write_state

RED, BLUE, NO_AGENT = 0, 1, -1
NORTH, SOUTH, FORWARD, BACK, STAY = range(5)
GOAL = 2
"""Number of the end reason."""
STRIKER, RUNNER = 0, 1
"""Numbers of the scripts."""

MOVE = Choice("move", 5, ("north", "south", "forward", "back", "stay"), noop=STAY)


class Pitch(NamedTuple):
    """What does not change during a match. Slots 0 ... players-1 are red's, the others blue's.

    Attributes:
        rows: Of the pitch.
        columns: Of the pitch.
        mouth_first_row: First row of the mouths.
        mouth_last_row: Their last row.
        kickoff_row: int64 [A].
        kickoff_column: int64 [A].
        kickoffs: Slot of the holder and team whose turn it is, by outcome of the draw, int64 [initial_chance_outcomes,
            2].
        orders: Slots in the order in which they move, by turn and outcome of the draw, int64 [turns, chance_outcomes,
            movers].
    """

    rows: int
    columns: int
    mouth_first_row: int
    mouth_last_row: int
    kickoff_row: np.ndarray
    kickoff_column: np.ndarray
    kickoffs: np.ndarray
    orders: np.ndarray


# -- rules -------------------------------------------------------------------------------------------------------------


def team_of(s, slot):
    """Red or blue."""
    return RED if slot < len(s.row) // 2 else BLUE


def progress(s, world, slot, team):
    """Column of a player as ``team`` sees it, which attacks the last."""
    return s.column[slot] if team == RED else world.columns - 1 - s.column[slot]


def call_to_move(s, world):
    """Asks the team whose turn it is for an action, or both where all move at the same time."""
    for slot in range(len(s.row)):
        s.acting[slot] = len(world.orders) == 1 or team_of(s, slot) == s.turn


def reset(s, world):
    """All players in place; a random draw gives the ball and, in alternating order, the first move."""
    for slot in range(len(s.row)):
        s.row[slot] = world.kickoff_row[slot]
        s.column[slot] = world.kickoff_column[slot]
    draw = integer(s, len(world.kickoffs))
    s.holder, s.turn = world.kickoffs[draw, 0], world.kickoffs[draw, 1]
    call_to_move(s, world)


def occupant(s, row, column):
    """Slot of the player in a cell, or -1."""
    for slot in range(len(s.row)):
        if s.row[slot] == row and s.column[slot] == column:
            return slot
    return NO_AGENT


def is_at_mouth(s, world, slot):
    """Whether a move forward leads into the other team's goal."""
    in_front = world.mouth_first_row <= s.row[slot] <= world.mouth_last_row
    return in_front and progress(s, world, slot, team_of(s, slot)) == world.columns - 1


def destination(s, slot, move):
    """Row and column that a move leads to, on the pitch or beside it."""
    row, column = s.row[slot], s.column[slot]
    ahead = 1 if team_of(s, slot) == RED else -1
    if move == NORTH:
        row -= 1
    elif move == SOUTH:
        row += 1
    elif move == FORWARD:
        column += ahead
    elif move == BACK:
        column -= ahead
    return row, column


def is_on_pitch(world, row, column):
    """Whether there is such a cell."""
    return 0 <= row < world.rows and 0 <= column < world.columns


def carry_out(s, world, slot, move):
    """Moves one player. Returns whether it scored."""
    if move == STAY:
        return False
    if move == FORWARD and s.holder == slot and is_at_mouth(s, world, slot):
        return True
    row, column = destination(s, slot, move)
    if is_on_pitch(world, row, column):
        other = occupant(s, row, column)
        if other == NO_AGENT:
            s.row[slot], s.column[slot] = row, column
        elif s.holder == slot:
            s.holder = other
    return False


def step(s, world, actions, rewards, scratch):
    """The moves of a decision one after the other, until a goal is scored."""
    draw = integer(s, world.orders.shape[1])
    for k in range(world.orders.shape[2]):
        slot = world.orders[s.turn, draw, k]
        if carry_out(s, world, slot, actions.player[slot].move):
            s.info.winner, s.info.end_reason = team_of(s, slot), GOAL
            for other in range(len(s.row)):
                rewards[other] = 1.0 if team_of(s, other) == s.info.winner else -1.0
            break
    if len(world.orders) > 1:
        s.turn = 1 - s.turn
        call_to_move(s, world)
    return s.info.end_reason != 0


# -- observations ------------------------------------------------------------------------------------------------------


def observe_singles(s, world, observations, scratch):
    """One against one. All planes are zero before."""
    for slot in range(len(s.row)):
        write_observations(s, world, slot, observations.player[slot])


def observe_singles_in_turn(s, world, observations, scratch):
    """One against one in alternating order."""
    observe_singles(s, world, observations, scratch)
    tell_turn(s, observations)


def observe_pairs(s, world, observations, scratch):
    """Two against two."""
    for slot in range(len(s.row)):
        seen = observations.player[slot]
        write_observations(s, world, slot, seen)
        teammate = teammate_of(slot)
        seen.teammate[s.row[teammate], progress(s, world, teammate, team_of(s, slot))] = 1.0
        seen.teammate_has_ball = s.holder == teammate


def observe_pairs_in_turn(s, world, observations, scratch):
    """Two against two in alternating order."""
    observe_pairs(s, world, observations, scratch)
    tell_turn(s, observations)


def teammate_of(slot):
    """The other one of a pair."""
    return slot ^ 1


def write_observations(s, world, slot, seen):
    """What every player sees, its own team attacking to the right."""
    team = team_of(s, slot)
    seen.own[s.row[slot], progress(s, world, slot, team)] = 1.0
    for other in range(len(s.row)):
        if team_of(s, other) != team:
            seen.opponents[s.row[other], progress(s, world, other, team)] = 1.0
    seen.ball[s.row[s.holder], progress(s, world, s.holder, team)] = 1.0
    seen.has_ball = s.holder == slot
    seen.opponents_have_ball = team_of(s, s.holder) != team


def tell_turn(s, observations):
    """Whether the team is to move."""
    for slot in range(len(s.row)):
        observations.player[slot].turn = s.acting[slot]


def planes(rows: int, columns: int, players: int, order: str) -> tuple[Field, ...]:
    """What a player sees."""
    cells = (rows, columns)
    seen = [
        Field("own", cells, 0, 1, about="its own cell is 1"),
        Field("opponents", cells, 0, 1, about="cells of opponents are 1"),
        Field("ball", cells, 0, 1, about="the cell of the holder of the ball is 1"),
        Field("has_ball", (), 0, 1, about="it has the ball"),
        Field("opponents_have_ball", (), 0, 1, about="an opponent has the ball"),
    ]
    if players == 2:
        seen += [
            Field("teammate", cells, 0, 1, about="the cell of its teammate is 1"),
            Field("teammate_has_ball", (), 0, 1, about="its teammate has the ball"),
        ]
    if order == "alternating":
        seen.append(Field("turn", (), 0, 1, about="its team is to move"))
    return tuple(seen)


# -- scripts -----------------------------------------------------------------------------------------------------------


def script(s, world, slot, which, actions, scratch):
    """One player's move. Scripts think in rows and in columns as their own team sees them."""
    script_draw = script_integer(s, 4)  # always drawn
    if which == RUNNER:
        actions.player[slot].move = FORWARD
    elif s.holder == slot:
        actions.player[slot].move = dribble(s, world, slot, script_draw)
    elif team_of(s, s.holder) == team_of(s, slot):
        actions.player[slot].move = support(s, world, slot, script_draw)
    else:
        actions.player[slot].move = defend(s, world, slot, script_draw)


def occupant_after(s, world, slot, move):
    """The occupant of the cell that a move leads to: a slot, -1 for none, or the slot itself where the pitch ends."""
    row, column = destination(s, slot, move)
    return occupant(s, row, column) if is_on_pitch(world, row, column) else slot


def go(s, world, slot, row, column, script_draw):
    """A move towards a cell along the longer way first; a random draw decides where both are as long."""
    down, ahead = row - s.row[slot], column - progress(s, world, slot, team_of(s, slot))
    if down == 0 and ahead == 0:
        return STAY
    if abs(ahead) > abs(down) or (abs(ahead) == abs(down) and script_draw & 1):
        return FORWARD if ahead > 0 else BACK
    return SOUTH if down > 0 else NORTH


def dribble(s, world, slot, script_draw):
    """With the ball: forward, or around an opponent, or to a teammate that is past it or where no way leads around."""
    if is_at_mouth(s, world, slot):
        return FORWARD
    onward = FORWARD
    if progress(s, world, slot, team_of(s, slot)) == world.columns - 1:
        onward = SOUTH if s.row[slot] < world.mouth_first_row else NORTH
    ahead = occupant_after(s, world, slot, onward)
    if ahead == NO_AGENT or (ahead != slot and team_of(s, ahead) == team_of(s, slot)):
        return onward
    side = NORTH if script_draw & 1 else SOUTH
    for _ in range(2):
        beside = occupant_after(s, world, slot, side)
        if beside == NO_AGENT or (beside != slot and team_of(s, beside) == team_of(s, slot)):
            return side
        side = NORTH + SOUTH - side
    return BACK if occupant_after(s, world, slot, BACK) == NO_AGENT else STAY


def support(s, world, slot, script_draw):
    """The teammate has the ball: beside it, where a pass can go."""
    row = s.row[s.holder]
    side = 1 if s.row[slot] > row or (s.row[slot] == row and script_draw & 1) else -1
    if not 0 <= row + side < world.rows:
        side = -side
    return go(s, world, slot, row + side, progress(s, world, s.holder, team_of(s, slot)), script_draw >> 1)


def way_to_ball(s, slot):
    """Steps to the holder of the ball."""
    return abs(s.row[slot] - s.row[s.holder]) + abs(s.column[slot] - s.column[s.holder])


def defend(s, world, slot, script_draw):
    """An opponent has the ball: the nearest blocks its way, the other between it and the mouth."""
    row, column = s.row[s.holder], progress(s, world, s.holder, team_of(s, slot))
    if len(s.row) > 2:
        teammate = teammate_of(slot)
        ours, teammates = way_to_ball(s, slot), way_to_ball(s, teammate)
        if teammates < ours or (teammates == ours and teammate < slot):
            return go(s, world, slot, min(max(row, world.mouth_first_row), world.mouth_last_row), 0, script_draw)
    if column > 0:
        column -= 1
    elif row < world.mouth_first_row:
        row += 1
    else:
        row -= 1
    return go(s, world, slot, row, column, script_draw)


# -- the game ----------------------------------------------------------------------------------------------------------


def mouth_rows(rows: int, players: int) -> tuple[int, int]:
    """First and last row of a mouth: in the middle, wider than a team if the edge is."""
    wide = players + 1
    wide = min(rows, wide + (rows - wide) % 2)
    return (rows - wide) // 2, (rows + wide) // 2 - 1


def draw_outcomes(red_first: list[tuple[int, ...]], players: int) -> list[tuple[int, ...]]:
    """Outcomes of a draw between the teams: those given, and with the teams exchanged those opposite to them."""
    exchange = lambda slots: tuple((slot + players) % (2 * players) for slot in slots)  # noqa: E731
    return red_first + [exchange(slots) for slots in reversed(red_first)]


def pitch(rows: int, columns: int, players: int, order: str) -> Pitch:
    """The tables of a game. Opposite outcomes of a draw are each other's mirror images: no team is better off."""
    red_row = [rows // 2] if players == 1 else [(rows - 2) // 2, rows - 1 - (rows - 2) // 2]
    blue_row = [rows - 1 - row for row in red_row] if players == 1 else red_row
    column = (columns - 1) // 4
    teammates = list(permutations(range(players)))
    if order == "simultaneous":
        interleaved = [
            tuple(slot for k in range(players) for slot in (red[k], players + blue[k]))
            for red, blue in product(teammates, teammates)
        ]
        orders = [draw_outcomes(interleaved, players)]
    else:
        both = draw_outcomes(teammates, players)
        orders = [both[: len(teammates)], both[len(teammates) :]]
    holders = draw_outcomes([(slot,) for slot in range(players)], players)
    turns = (RED,) if order == "simultaneous" else (RED, BLUE)
    kickoffs = [(holder, turn) for turn in turns for (holder,) in holders]
    first_row, last_row = mouth_rows(rows, players)
    return Pitch(
        rows=int(rows),
        columns=int(columns),
        mouth_first_row=int(first_row),
        mouth_last_row=int(last_row),
        kickoff_row=np.array(red_row + blue_row),
        kickoff_column=np.array([column] * players + [columns - 1 - column] * players),
        kickoffs=np.array(kickoffs),
        orders=np.array(orders),
    )


@with_options(
    Option("rows", 4, "of the pitch", low=2, high=16),
    Option("columns", 5, "of the pitch", low=3, high=16),
    Option("players", 1, "of a team", low=1, high=2),
    Option(
        "order",
        "simultaneous",
        "all move at once, or the teams in turns",
        words=("simultaneous", "alternating"),
    ),
)
def game(options: Any) -> Game:
    """The rules of `palaestra/GridSoccer-v0` and the ids `palaestra/TeamGridSoccer-...-v0`."""
    rows, columns, players, order = options
    world = pitch(rows, columns, players, order)
    count = Count(rows, columns, players, len(world.orders))
    observe = (
        (observe_singles, observe_singles_in_turn),
        (observe_pairs, observe_pairs_in_turn),
    )[players - 1][order == "alternating"]
    agents = tuple(f"{team}_{k}" for team in ("red", "blue") for k in range(players))
    return Game(
        name="GridSoccer" if players == 1 else "TeamGridSoccer",
        roles=(Role("player", agents, planes(rows, columns, players, order), (MOVE,)),),
        state=(("row", "i8", (len(agents),)), ("column", "i8", (len(agents),)), ("holder", "i8"), ("turn", "i8")),
        reset=reset,
        step=step,
        observe=observe,
        script=script,
        scripts=("striker", "runner"),
        default_opponent="striker",
        horizon=100,
        end_reasons=("goal",),
        world=world,
        zero_sum=True,
        render="palaestra.games.teams.render_soccer:draw_soccer",
        render_fps=3.0,
        determinism="cross-platform",
        enumeration=Enumeration(
            positions=count.positions,
            write_state=partial(write_state, count),
            state_index=partial(state_index, count),
            chance_outcomes=world.orders.shape[1],
            initial_chance_outcomes=len(world.kickoffs),
            canonical=partial(canonical, count),
        ),
        symmetric_teams=True,
        mirror=partial(mirror, count),
    )
