"""CaptureTheFlag: three runners a team carry the other team's flag into their own half.

## Description

Red and blue play on a grid of 9 x 7 cells. Columns 0 to 3 are red's half, 5 to 8 are blue's, column 4 is neutral. Each
team has a flag in the middle of its outermost column. A runner that reaches the other team's flag carries it. A runner
in the other team's half is tagged where an opponent that is not waiting is in its cell or beside it: it drops the
flag, which returns to its place, goes back to its own outermost column and waits `penalty_decisions` decisions.

## Action Space

<!-- table: action -->

Directions are those of the team: blue sees the field turned round. Moves that leave the grid are illegal. A runner that
waits can only stay.

## Observation Space

Offsets are in the direction of the own team: the first number is forward. Teammates and opponents are in the order of
their names.

<!-- table: observation -->

## Rewards

Zero-sum: 1 for the team that brings the other team's flag into its own half, -1 for the other; 0 if both do so in the
same decision.

## Starting State

Each runner starts in its team's outermost column, in a row drawn uniformly.

## Episode End

``captured``: a flag is in the other team's half. Truncated after 100 decisions, without a winner.

## Arguments

<!-- table: parameters -->

## Version History

* v0: first version.
"""

from __future__ import annotations

import numpy as np

import palaestra
from palaestra.game import DRAW, TERMINATED, Choice, Field, Game, Parameter, Role, integer

COLUMNS, ROWS = 9, 7
HALF = 4  # columns of each half
FLAG_ROW = 3
PLAYERS, MEMBERS = 6, 3  # slots 0 to 2 are red, 3 to 5 are blue
STAY, FORWARD, BACK, UP, DOWN = range(5)
CAPTURED = 2  # number of the first end reason (0 is running, 1 the horizon)

RUNNER = Role(
    name="runner",
    agents=("red_0", "red_1", "red_2", "blue_0", "blue_1", "blue_2"),
    observation=(
        Field("position", (2,), 0, 8, "cells", "columns from my flag's, and row"),
        Field("carries", (), 0, 1, "1", "I carry their flag"),
        Field("waits", (), 0, 20, "decisions", "until I play again"),
        Field("teammate_offset", (2, 2), -8, 8, "cells", "of my teammates"),
        Field("opponent_offset", (3, 2), -8, 8, "cells", "of the opponents"),
        Field("opponent_carries", (3,), 0, 1, "1", "it carries our flag"),
        Field("opponent_waits", (3,), 0, 1, "1", "it waits: it cannot tag"),
    ),
    action=(Choice("move", 5, ("stay", "forward", "back", "up", "down"), "one cell"),),
)


def reset(s, world):
    """Places all runners in their outermost column."""
    for k in range(PLAYERS):
        s.ahead[k] = 0
        s.row[k] = integer(s, ROWS)


def step(s, world, actions, rewards, scratch):
    """All move, then all tags happen at the same time, then flags."""
    for k in range(PLAYERS):
        if s.waits[k] > 0:
            s.waits[k] -= 1
        else:
            move(s, k, actions.runner[k].move)
    for k in range(PLAYERS):
        scratch.tagged[k] = is_tagged(s, k)
    for k in range(PLAYERS):
        if scratch.tagged[k]:
            s.info.tags[1 - s.team[k]] += 1
            s.ahead[k], s.carries[k] = 0, 0
            s.waits[k] = np.int64(s.parameters.penalty_decisions)
        s.acting[k] = 1 if s.waits[k] == 0 else 0  # `alive` stays 1: the runner comes back
    red, blue = brings_the_flag(s, 0), brings_the_flag(s, MEMBERS)
    if not (red or blue):
        return 0
    s.info.end_reason = CAPTURED
    s.info.winner = DRAW if red and blue else (0 if red else 1)
    for k in range(PLAYERS):
        gained = 1.0 if s.team[k] == s.info.winner else -1.0
        rewards[k] = 0.0 if red and blue else gained
    return TERMINATED


def move(s, k, direction):
    """One cell; the mask forbids moves that leave the grid. Who reaches the flag takes it."""
    if direction == FORWARD:
        s.ahead[k] += 1
    elif direction == BACK:
        s.ahead[k] -= 1
    elif direction == UP:
        s.row[k] += 1
    elif direction == DOWN:
        s.row[k] -= 1
    if s.ahead[k] == COLUMNS - 1 and s.row[k] == FLAG_ROW and not is_carried(s, s.team[k]):
        s.carries[k] = 1


def is_carried(s, team):
    """Whether a member of the team carries the other team's flag."""
    carried = False
    for k in range(team * MEMBERS, (team + 1) * MEMBERS):
        carried = carried or s.carries[k] == 1
    return carried


def is_tagged(s, k):
    """Whether an opponent that plays is beside a runner in that opponent's half."""
    if s.ahead[k] < COLUMNS - HALF:
        return False
    first = MEMBERS if k < MEMBERS else 0
    for j in range(first, first + MEMBERS):
        if s.waits[j] == 0 and abs(offset_ahead(s, k, j)) + abs(s.row[j] - s.row[k]) <= 1:
            return True
    return False


def offset_ahead(s, k, j):
    """Columns from runner k to runner j, forward for k."""
    ahead = s.ahead[j] if s.team[j] == s.team[k] else COLUMNS - 1 - s.ahead[j]
    return ahead - s.ahead[k]


def brings_the_flag(s, first):
    """Whether a runner of the team that begins with slot `first` is in its own half with the flag."""
    home = False
    for k in range(first, first + MEMBERS):
        home = home or (s.carries[k] == 1 and s.ahead[k] < HALF)
    return home


def observe(s, world, observations, scratch):
    """Each sees the field in its own direction."""
    for k in range(PLAYERS):
        seen = observations.runner[k]
        seen.position[0], seen.position[1] = s.ahead[k], s.row[k]
        seen.carries, seen.waits = s.carries[k], s.waits[k]
        teammates = opponents = 0
        for j in range(PLAYERS):
            ahead, rows = offset_ahead(s, k, j), s.row[j] - s.row[k]
            if s.team[j] != s.team[k]:
                seen.opponent_offset[opponents, 0], seen.opponent_offset[opponents, 1] = ahead, rows
                seen.opponent_carries[opponents] = s.carries[j]
                seen.opponent_waits[opponents] = 1.0 if s.waits[j] > 0 else 0.0
                opponents += 1
            elif j != k:
                seen.teammate_offset[teammates, 0], seen.teammate_offset[teammates, 1] = ahead, rows
                teammates += 1


def legal(s, world, mask):
    """No runner leaves the grid; a waiting one stays."""
    for k in range(PLAYERS):
        may = mask.runner[k].move
        may[STAY] = 1
        if s.waits[k] == 0:
            may[FORWARD] = 1 if s.ahead[k] < COLUMNS - 1 else 0
            may[BACK] = 1 if s.ahead[k] > 0 else 0
            may[UP] = 1 if s.row[k] < ROWS - 1 else 0
            may[DOWN] = 1 if s.row[k] > 0 else 0


def script(s, world, slot, which, actions, scratch):
    """0 "rush": all run for the flag; 1 "guard": the first member guards the own half, the others run."""
    if which == 1 and slot % MEMBERS == 0:
        actions.runner[slot].move = guard(s, slot)
    elif s.carries[slot]:
        actions.runner[slot].move = BACK
    else:
        actions.runner[slot].move = towards(s, slot, COLUMNS - 1, FLAG_ROW)


def guard(s, slot):
    """A step towards the opponent that is deepest in the own half, else towards the middle of it."""
    first = MEMBERS if slot < MEMBERS else 0
    target, depth = -1, COLUMNS - HALF - 1
    for j in range(first, first + MEMBERS):
        if s.waits[j] == 0 and s.ahead[j] > depth:
            target, depth = j, s.ahead[j]
    if target < 0:
        return towards(s, slot, HALF - 2, FLAG_ROW)
    return towards(s, slot, COLUMNS - 1 - s.ahead[target], s.row[target])


def towards(s, slot, ahead, row):
    """The direction of a cell, rows first."""
    if s.row[slot] != row:
        return UP if row > s.row[slot] else DOWN
    if s.ahead[slot] != ahead:
        return FORWARD if ahead > s.ahead[slot] else BACK
    return STAY


def draw(game, world, s):
    """The grid from above, red's half on the left: uint8 ``[140, 180, 3]``."""
    cells = np.full((ROWS, COLUMNS, 3), 235, np.uint8)
    cells[:, :HALF], cells[:, -HALF:] = (250, 225, 220), (220, 230, 250)
    cells[FLAG_ROW, 0], cells[FLAG_ROW, -1] = (250, 160, 150), (150, 180, 250)
    for k in range(PLAYERS):
        column = s["ahead"][k] if k < MEMBERS else COLUMNS - 1 - s["ahead"][k]
        shade = 0.5 if s["waits"][k] else 1.0
        colour = np.array((210, 50, 40) if k < MEMBERS else (40, 90, 210)) * shade
        cells[s["row"][k], column] = (240, 190, 40) if s["carries"][k] else colour
    return np.kron(cells[::-1], np.ones((20, 20, 1), np.uint8))


def game() -> Game:
    """The rules of ``examples/CaptureTheFlag-v0``."""
    return Game(
        name="CaptureTheFlag",
        roles=(RUNNER,),
        state=(
            ("ahead", "i8", (PLAYERS,)),  # columns from the own flag's
            ("row", "i8", (PLAYERS,)),
            ("waits", "i8", (PLAYERS,)),
            ("carries", "u1", (PLAYERS,)),
        ),
        reset=reset,
        step=step,
        observe=observe,
        legal=legal,
        script=script,
        scripts=("rush", "guard"),
        parameters=(Parameter("penalty_decisions", 8, 0, 20, "decisions", "that a tagged runner waits"),),
        horizon=100,
        info=(Field("tags", (2,), 0, 1e6, "1", "tags by red and by blue so far", "i8"),),
        end_reasons=("captured",),
        scratch=(("tagged", "u1", (PLAYERS,)),),
        zero_sum=True,
        determinism="cross-platform",
        default_opponent="guard",
        render=f"{__name__}:draw",
        render_fps=5,
    )


palaestra.register("examples/CaptureTheFlag-v0", game, about="three against three carry a flag home")

if __name__ == "__main__":
    batch = palaestra.make_batch(
        "examples/CaptureTheFlag-v0", num_envs=4096, opponents={"red": "guard", "blue": "rush"}
    )
    batch.reset(seed=0)
    won = np.zeros(2, int)
    for _ in range(300):
        batch.step()
        won += [int((batch.rewards[:, 0] > 0).sum()), int((batch.rewards[:, 0] < 0).sum())]
    print(f"guard won {won[0]} matches, rush won {won[1]}")
