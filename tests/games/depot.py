"""Depot: a test game of sizes, tables, lists of candidates and rewards of one's own, for the tests of the faces.

Drivers of two teams go around a ring of places, each step to a neighbour or not at all, and each driver is paid
(slot + 1) / 3 for a step. A driver whose fuel is spent leaves the match; the last driver arrives late.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np

from palaestra.game import Choice, Continuous, Field, Game, Role, Table, offer

CAPACITY = 6  # drivers in memory
PLACES = 40  # places in memory
STAY = 0
ROOM = 4
CELL = 8  # pixels
FUEL = 3
ARRIVAL = 2

Kind = Literal["order", "full", "mixed"]


class Ring(NamedTuple):
    hops: np.ndarray  # float32 [places, places]


def ring(places: int) -> Ring:
    ahead = np.abs(np.subtract.outer(np.arange(places), np.arange(places)))
    return Ring(np.minimum(ahead, places - ahead).astype(np.float32))


def drivers(s):
    count = 0
    for a in range(CAPACITY):
        count += s.team[a] >= 0
    return count


def reset(s, world):
    for a in range(drivers(s)):
        s.here[a] = a
        s.fuel[a] = FUEL
    s.alive[drivers(s) - 1] = 0


def step(s, world, actions, rewards, scratch):
    left = 0
    for a in range(drivers(s)):
        order = actions.driver[a].order
        if s.alive[a] and order != STAY:
            s.here[a] = order - 1
            s.fuel[a] -= 1
            rewards[a] = (a + 1) / 3.0
            s.alive[a] = s.fuel[a] > 0
        left += s.alive[a]
    if s.steps == ARRIVAL:
        s.alive[drivers(s) - 1] = 1
        s.acting[drivers(s) - 1] = 1
    for team in range(2):
        s.info.moves[team] = s.steps
    return False


def observe(s, world, observations, scratch):
    places = len(world.hops)
    for a in range(drivers(s)):
        if not s.alive[a]:
            continue
        seen = observations.driver[a]
        seen.here = s.here[a]
        for j in range(2):
            seen.routes[j].to = (s.here[a] + 1 - 2 * j) % places
            seen.routes[j].cost[0] = 1.0
            seen.routes[j].cost[1] = j
            seen.odds[j] = (s.here[a] + j) % 2
    for team in range(2):
        observations.team[team].fuel = 0.0
    for a in range(drivers(s)):
        observations.team[s.team[a]].fuel += s.fuel[a]
    observations.lane.time = s.steps


def legal_order(s, world, mask):
    places = len(world.hops)
    for a in range(drivers(s)):
        offer(mask.driver[a].order, STAY)
        offer(mask.driver[a].order, 1 + (s.here[a] + 1) % places)
        offer(mask.driver[a].order, 1 + (s.here[a] - 1) % places)


def legal_full(s, world, mask):
    legal_order(s, world, mask)
    for a in range(drivers(s)):
        mask.driver[a].gear[0] = 1
        mask.driver[a].gear[1] = s.here[a] % 2
        for word in range(2):
            for sign in range(2 + word):
                mask.driver[a].signs[word, sign] = 1


def draw(game, world, s):
    """One row a driver, one cell a place; white where the driver is."""
    places = len(world.hops)
    picture = np.zeros((CELL * len(game.agents), CELL * places, 3), np.uint8)
    for a in range(len(game.agents)):
        x = CELL * int(s["here"][a])
        picture[CELL * a : CELL * (a + 1), x : x + CELL] = 255
    return picture


def write(game, world, s):
    return "drivers at " + " ".join(str(int(s["here"][a])) for a in range(len(game.agents)))


def click(game, world, s, slot, x, y):
    """The order to go where the click is, in whatever row; None where that is no neighbour; drivers by themselves."""
    place, row = x // CELL, y // CELL
    if row != slot and int(s["here"][row]) == place:
        return game.agents[row]
    if world.hops[int(s["here"][slot]), place] != 1.0:
        return None
    return {"order": 1 + place, "gear": 0, "signs": [0, 0], "effort": 0.5} if "effort" in names(game) else 1 + place


def names(game: Game) -> list[str]:
    return [f.name for f in game.roles[0].action]


def game(kind: Kind = "order", team_size: int = 2, places: int = 12, **changes: Any) -> Game:
    actions: list[Any] = [Choice("order", 1 + places, candidates=ROOM)]
    if kind != "order":
        actions += [Choice("gear", 2, capacity=3), Choice("signs", 3, shape=(2,))]
    if kind == "mixed":
        actions.append(Continuous("effort", (), 0, 1))
    seen = (
        Field("here", (), 0, places - 1),
        Table("routes", 2, (Field("to", (), 0, places - 1), Field("cost", (2,), 0, (1, 2))), "next places", capacity=3),
        Field("odds", (2,), 0, 1, capacity=5),
    )
    agents = tuple(f"{team}_{k}" for team in ("red", "blue") for k in range(team_size))
    given: dict[str, Any] = {
        "name": "Depot",
        "roles": (Role("driver", agents, seen, tuple(actions), capacity=CAPACITY),),
        "state": (("here", "i8", (CAPACITY,)), ("fuel", "i8", (CAPACITY,))),
        "reset": reset,
        "step": step,
        "observe": observe,
        "legal": legal_order if kind == "order" else legal_full,
        "horizon": 8,
        "info": (Field("moves", (2,), 0, 99, capacity=3, dtype="i8"),),
        "team_observation": (Field("fuel", (), 0, FUEL * CAPACITY),),
        "lane_observation": (
            Field("time", (), 0, 100),
            Field("hops", (places, places), 0, PLACES, world="hops"),
        ),
        "world": ring(places),
        "reward": "agent",
        "reward_dtype": "f8",
        "determinism": "cross-platform",
        "render": "games.depot:draw",
        "render_text": "games.depot:write",
        "click": "games.depot:click",
        "render_fps": 2.0,
    }
    return Game(**{**given, **changes})
