"""Hauliers: a test game of long lists, in which an agent orders up to 17 carts, each to one of up to 253 yards.

Carts stand on a ring of yards, at most one in each. An order is a number for both yards, from and to; a cart reaches
as far as its yard says. A yard that a cart enters belongs to its team. Every fourth decision a team gets a cart in the
first of its yards that is free. With two teams the game is zero-sum: red and blue are paid the difference in yards.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import palaestra
from palaestra.game import Choice, Field, Game, Role, offer

TEAMS = ("red", "blue", "green", "amber", "white", "black", "pink")
YARDS, CARTS, ORDERS, ROOM = 108, 17, 11_713, 256
NONE, OWNED = -1, 2
MOST = YARDS // 2 + 1


class World(NamedTuple):
    """Sizes and how far carts go, read-only."""

    teams: int
    first_carts: int
    reach: np.ndarray  # yards to each side, int64 [YARDS]


def order(start, end):
    """The number of an order; 0 is none."""
    return 1 + start * YARDS + end


def reset(s, world):
    for yard in range(YARDS):
        s.owner[yard] = s.cart_in[yard] = NONE
    for a in range(world.teams):
        for w in range(CARTS):
            s.yard[a, w] = NONE
        for w in range(world.first_carts + (a == 0)):
            place(s, a, w, a * (YARDS // world.teams) + 2 * w)


def place(s, a, w, yard):
    s.yard[a, w], s.owner[yard], s.cart_in[yard] = yard, a, a


def step(s, world, actions, rewards, scratch):
    for k in range(world.teams):
        a = (k + s.steps) % world.teams
        for w in range(CARTS):
            start, chosen = s.yard[a, w], actions.haulier[a].orders[w]
            end = (chosen - 1) % YARDS
            if chosen > 0 and start != NONE and (chosen - 1) // YARDS == start and s.cart_in[end] == NONE:
                s.cart_in[start] = NONE
                place(s, a, w, end)
    if s.steps % 4 == 0:
        for a in range(world.teams):
            add_cart(s, a)
    return pay(s, world, rewards)


def add_cart(s, a):
    for w in range(CARTS):
        if s.yard[a, w] == NONE:
            for yard in range(YARDS):
                if s.owner[yard] == a and s.cart_in[yard] == NONE:
                    place(s, a, w, yard)
                    return


def pay(s, world, rewards):
    for a in range(world.teams):
        s.owned[a] = 0
    for yard in range(YARDS):
        if s.owner[yard] != NONE:
            s.owned[s.owner[yard]] += 1
    for a in range(world.teams):
        rewards[a] = s.owned[a] if world.teams > 2 else s.owned[a] - s.owned[1 - a]
        if s.owned[a] >= MOST:
            s.info.winner, s.info.end_reason = a, OWNED
    return s.info.end_reason == OWNED


def observe(s, world, observations, scratch):
    for a in range(world.teams):
        seen = observations.haulier[a]
        seen.owned = s.owned[a]
        for w in range(CARTS):
            seen.yard[w] = s.yard[a, w]
        for yard in range(YARDS):
            seen.owner[yard] = s.owner[yard]


def legal(s, world, mask):
    for a in range(world.teams):
        for w in range(CARTS):
            listing, start = mask.haulier[a].orders[w], s.yard[a, w]
            offer(listing, 0)
            if start != NONE:
                for far in range(1, world.reach[start] + 1):
                    offer(listing, order(start, (start + far) % YARDS))
                    offer(listing, order(start, (start - far) % YARDS))


def script(s, world, slot, which, actions, scratch):
    """0 "forward": every cart goes one yard on."""
    for w in range(CARTS):
        start = s.yard[slot, w]
        if start != NONE:
            actions.haulier[slot].orders[w] = order(start, (start + 1) % YARDS)


def game(teams: int = 7, far: int = 50, **changes: Any) -> Game:
    """The rules for 2 or 7 teams; a cart in every ninth yard goes ``far``, others 2 to 15 yards."""
    yards = np.arange(YARDS)
    reach = np.where(yards % 9 == 0, far, 2 + yards * 5 % 14)
    fields = (
        Field("owned", (), 0, YARDS),
        Field("yard", (CARTS,), NONE, YARDS - 1),
        Field("owner", (YARDS,), NONE, len(TEAMS)),
    )
    agents = tuple(f"{team}_0" for team in TEAMS[:teams])
    given: dict[str, Any] = {
        "name": "Hauliers",
        "roles": (Role("haulier", agents, fields, (Choice("orders", ORDERS, shape=(CARTS,), candidates=ROOM),)),),
        "state": (
            ("yard", "i8", (len(TEAMS), CARTS)),
            ("owner", "i8", (YARDS,)),
            ("cart_in", "i8", (YARDS,)),
            ("owned", "i8", (len(TEAMS),)),
        ),
        "reset": reset,
        "step": step,
        "observe": observe,
        "legal": legal,
        "script": script,
        "scripts": ("forward",),
        "horizon": 30,
        "end_reasons": ("owned",),
        "world": World(teams, 3, reach),
        "zero_sum": teams == 2,
        "reward": "team",
        "determinism": "cross-platform",
        "default_opponent": "forward",
    }
    return Game(**{**given, **changes})


palaestra.register("tests/Hauliers-v0", game, about="seven teams order carts by lists of hundreds of orders")
palaestra.register("tests/Hauliers-2-v0", game, about="the same with two teams, zero-sum", teams=2)
