"""Duel: a game of three positions that can be solved by hand, for the tests of `palaestra.exact`.

In midfield either team presses, waits or gives the ball away. A team that presses a waiting team gets the attack; if
both do the same, a random draw decides; a team that gives the ball away defends. In an attack both teams choose a
corner: the attackers score if the corners differ, else they try again. With ``tries`` an attack has so many attempts
and the match then ends without a goal. A team of two chooses the sum of its members' corners modulo 2, and gives the
ball away if one of them does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from palaestra.game import Choice, Enumeration, Field, Game, Role, integer, offer

MIDFIELD, RED_ATTACKS, BLUE_ATTACKS = 0, 1, 2
PRESS, WAIT, GIVE_AWAY = 0, 1, 2
GOAL, SPENT = 2, 3


def reset(s, world):
    s.side = MIDFIELD


def team_choice(world, actions, team):
    size = world[1]
    total = 0
    for k in range(size):
        move = actions.player[team * size + k].move
        if move == GIVE_AWAY:
            return GIVE_AWAY
        total += move
    return total % 2


def step(s, world, actions, rewards, scratch):
    draw = integer(s, 2)
    red, blue = team_choice(world, actions, 0), team_choice(world, actions, 1)
    if s.side == MIDFIELD:
        if red == blue:
            s.side = RED_ATTACKS + draw
        elif red == GIVE_AWAY or (blue == PRESS and red == WAIT):
            s.side = BLUE_ATTACKS
        else:
            s.side = RED_ATTACKS
        s.left = world[0]
        return False
    if red != blue:
        s.info.winner = s.side - RED_ATTACKS
        s.info.end_reason = GOAL
        for a in range(2 * world[1]):
            rewards[a] = 1.0 if (a < world[1]) == (s.info.winner == 0) else -1.0
        return True
    if s.left > 1:
        s.left -= 1
    elif s.left == 1:
        s.info.end_reason = SPENT
        return True
    return False


def observe(s, world, observations, scratch):
    for a in range(2 * world[1]):
        observations.player[a].midfield = s.side == MIDFIELD
        observations.player[a].attacks = s.side == (RED_ATTACKS if a < world[1] else BLUE_ATTACKS)
        observations.player[a].left = s.left


def legal(s, world, mask):
    for a in range(2 * world[1]):
        for j in range(3):
            mask.player[a].move[j] = j < GIVE_AWAY or s.side == MIDFIELD


def legal_listed(s, world, mask):
    for a in range(2 * world[1]):
        offer(mask.player[a].move, PRESS)
        offer(mask.player[a].move, WAIT)
        if s.side == MIDFIELD:
            offer(mask.player[a].move, GIVE_AWAY)


def script(s, world, slot, which, actions, scratch):
    actions.player[slot].move = PRESS


def game(players: int = 1, tries: int = 0, capacity: int | None = None, listed: bool = False, **changes: Any) -> Game:
    """The rules.

    Args:
        players: Of each team.
        tries: Attempts of an attack, 0 for as many as it takes.
        capacity: Players of both teams in memory.
        listed: Whether the legal moves are a list instead of a mask.
        **changes: Fields of `Game`.
    """
    kinds = max(tries, 1)

    def write_state(states: Any, numbers: np.ndarray) -> None:
        attack, rest = np.divmod(numbers - 1, kinds)
        states["side"] = np.where(numbers == 0, MIDFIELD, RED_ATTACKS + attack)
        states["left"] = np.where((numbers == 0) | (tries == 0), 0, rest + 1)
        states["alive"][:, : 2 * players] = states["acting"][:, : 2 * players] = 1

    def state_index(states: Any) -> np.ndarray:
        rest = np.maximum(states["left"], 1) - 1
        return np.where(states["side"] == MIDFIELD, 0, 1 + (states["side"] - RED_ATTACKS) * kinds + rest)

    fields = (Field("midfield", (), 0, 1), Field("attacks", (), 0, 1), Field("left", (), 0, 99))
    agents = tuple(f"{team}_{k}" for team in ("red", "blue") for k in range(players))
    move = Choice("move", 3, candidates=4 if listed else None)
    given: dict[str, Any] = {
        "name": "Duel",
        "roles": (Role("player", agents, fields, (move,), capacity),),
        "state": (("side", "i8"), ("left", "i8")),
        "reset": reset,
        "step": step,
        "observe": observe,
        "legal": legal_listed if listed else legal,
        "script": script,
        "scripts": ("presser",),
        "world": (tries, players),
        "end_reasons": ("goal", "spent"),
        "zero_sum": True,
        "determinism": "cross-platform",
        "enumeration": Enumeration(1 + 2 * kinds, write_state, state_index, chance_outcomes=2),
    }
    return Game(**{**given, **changes})
