"""Games of many: a battle of hundreds on a grid, and players who choose many orders from long lists.

They are measured where numbers count: how long faces take with an agent more, how long before anything is compiled.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from palaestra.game import Choice, Field, Game, Role, integer, offer

VIEW, SEEN = 6, 13
"""Cells seen in each direction, and in all."""
ORDERS, LISTED, ALL_ORDERS = 17, 256, 2_000_000


class Ground(NamedTuple):
    """Sizes, read-only."""

    side: int
    agents: int


class Name(str):
    """A name that counts how often it is compared with another."""

    comparisons = 0

    def __eq__(self, other: object) -> bool:
        Name.comparisons += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def reset(s, world):
    """Agents stand at random, each on a cell of its own."""
    for y in range(world.side):
        for x in range(world.side):
            s.owner[y, x] = 0
    for a in range(world.agents):
        x, y = integer(s, world.side), integer(s, world.side)
        while s.owner[y, x] != 0:
            x, y = integer(s, world.side), integer(s, world.side)
        s.x[a], s.y[a], s.hit_points[a] = x, y, 10
        s.owner[y, x] = a + 1


def step(s, world, actions, rewards, scratch):
    """Moves to free cells; who stays hits all foes on the eight cells around it."""
    for a in range(world.agents):
        if not s.alive[a]:
            continue
        move = actions.fighter[a].move
        if move > 0:
            x, y = s.x[a] + (move - 1) % 3 - 1, s.y[a] + (move - 1) // 3 - 1
            if 0 <= x < world.side and 0 <= y < world.side and s.owner[y, x] == 0:
                s.owner[s.y[a], s.x[a]] = 0
                s.owner[y, x] = a + 1
                s.x[a], s.y[a] = x, y
            continue
        for y in range(max(s.y[a] - 1, 0), min(s.y[a] + 2, world.side)):
            for x in range(max(s.x[a] - 1, 0), min(s.x[a] + 2, world.side)):
                foe = s.owner[y, x] - 1
                if foe >= 0 and s.team[foe] != s.team[a] and s.hit_points[foe] > 0:
                    s.hit_points[foe] -= 1
                    rewards[a] += 0.1
    living = 0
    for a in range(world.agents):
        if s.alive[a] and s.hit_points[a] <= 0:
            s.alive[a] = 0
            s.owner[s.y[a], s.x[a]] = 0
        if s.alive[a]:
            living |= 1 << s.team[a]
    if living == 3:
        return 0
    s.info.end_reason = 2
    s.info.winner = -1 if living == 0 else living - 1
    return 1


def observe(s, world, observations, scratch):
    """Each agent sees who stands around it, where it is and how it is."""
    for a in range(world.agents):
        if not s.alive[a]:
            continue
        seen = observations.fighter[a]
        for j in range(SEEN):
            for i in range(SEEN):
                x, y = s.x[a] + i - VIEW, s.y[a] + j - VIEW
                if 0 <= x < world.side and 0 <= y < world.side and s.owner[y, x] != 0:
                    other = s.owner[y, x] - 1
                    seen.window[1 if s.team[other] == s.team[a] else 2, j, i] = s.hit_points[other]
                elif not (0 <= x < world.side and 0 <= y < world.side):
                    seen.window[0, j, i] = 1
        seen.place[0], seen.place[1] = s.x[a], s.y[a]
        seen.hit_points = s.hit_points[a]
        seen.time = s.steps % 256


def legal(s, world, mask):
    """Staying, and moving to free cells."""
    for a in range(world.agents):
        mask.fighter[a].move[0] = 1
        for move in range(1, 10):
            x, y = s.x[a] + (move - 1) % 3 - 1, s.y[a] + (move - 1) // 3 - 1
            if 0 <= x < world.side and 0 <= y < world.side and s.owner[y, x] == 0:
                mask.fighter[a].move[move] = 1


def script(s, world, slot, which, actions, scratch):
    """0 "nearest": walks towards the nearest foe, if the next cell is free."""
    best, move = 1 << 30, 0
    for foe in range(world.agents):
        if s.alive[foe] and s.team[foe] != s.team[slot]:
            dx, dy = sign(s.x[foe] - s.x[slot]), sign(s.y[foe] - s.y[slot])
            far = abs(s.x[foe] - s.x[slot]) + abs(s.y[foe] - s.y[slot])
            if far < best:
                best, move = far, 5 + dx + 3 * dy
    x, y = s.x[slot] + (move - 1) % 3 - 1, s.y[slot] + (move - 1) // 3 - 1
    if best < 1 << 30 and s.owner[y, x] == 0:
        actions.fighter[slot].move = move


def sign(number):
    """-1, 0 or 1."""
    return 1 if number > 0 else -1 if number < 0 else 0


def battle(red: int = 81, blue: int = 81, side: int = 45, masks: bool = True, **changes: Any) -> Game:
    """So many against so many; all that an agent sees is bytes, so that it has a flat form."""
    agents = tuple(f"red_{k}" for k in range(red)) + tuple(f"blue_{k}" for k in range(blue))
    fields = (
        Field("window", (3, SEEN, SEEN), 0, 255, "1", "walls, friends and foes by their hit points", dtype="u1"),
        Field("place", (2,), 0, 255, "cells", "column and row", dtype="u1"),
        Field("hit_points", (), 0, 255, "1", "own", dtype="u1"),
        Field("time", (), 0, 255, "decisions", "of the match", dtype="u1"),
    )
    fighter = Role("fighter", agents, fields, (Choice("move", 10, about="stay, or 1 + a cell of 3 x 3"),))
    given: dict[str, Any] = {
        "name": "Crowd",
        "roles": (fighter,),
        "state": (
            ("x", "i8", (red + blue,)),
            ("y", "i8", (red + blue,)),
            ("hit_points", "i8", (red + blue,)),
            ("owner", "i8", (side, side)),
        ),
        "reset": reset,
        "step": step,
        "observe": observe,
        "legal": legal if masks else None,
        "script": script,
        "scripts": ("nearest",),
        "horizon": 1000,
        "end_reasons": ("beaten",),
        "world": Ground(side, red + blue),
        "reward": "agent",
    }
    return Game(**{**given, **changes})


def crowd() -> Game:
    """81 against 81 that may try everything."""
    return battle(masks=False)


# -- lists of orders ---------------------------------------------------------------------------------------------------


def place(s, world):
    """Nothing is decided yet."""
    s.count = 0


def count_orders(s, world, actions, rewards, scratch):
    """Adds the orders up."""
    for a in range(7):
        for word in range(ORDERS):
            s.count += actions.power[a].orders[word]
    return 0


def observe_count(s, world, observations, scratch):
    """All see the sum's last digits."""
    for a in range(7):
        observations.power[a].count = s.count % 1000


def offer_orders(s, world, mask):
    """Holding, and a few of two million."""
    for a in range(7):
        for word in range(ORDERS):
            orders = mask.power[a].orders[word]
            offer(orders, 0)
            for k in range(2 + (a + word + s.steps) % 12):
                offer(orders, 1000 * word + 17 * k + s.steps % 100 + 1)


def powers(**changes: Any) -> Game:
    """Seven that give 17 orders each."""
    names = tuple(f"power{k}_0" for k in range(7))
    role = Role(
        "power",
        names,
        (Field("count", (), 0, 1000),),
        (Choice("orders", ALL_ORDERS, shape=(ORDERS,), candidates=LISTED),),
    )
    given: dict[str, Any] = {
        "name": "Orders",
        "roles": (role,),
        "state": (("count", "i8"),),
        "reset": place,
        "step": count_orders,
        "observe": observe_count,
        "legal": offer_orders,
        "horizon": 50,
    }
    return Game(**{**given, **changes})
