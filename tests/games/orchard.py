"""Orchard: a test game with every kind of size, in which each number says where it comes from.

Pickers and carriers of two teams count what they do; the teams' slots alternate. Parameters say when a match ends, how,
and which agents leave it after the first decision.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from games.play import simulation

from palaestra.game import TRUNCATED, Choice, Continuous, Field, Game, Parameter, Role, Table, offer, uniform

PICKERS, CARRIERS, PAIRS, ROWS = 4, 3, 3, 5  # in memory
SLOTS = PICKERS + CARRIERS
FULL: dict[str, Any] = {"pickers": PICKERS, "carriers": CARRIERS, "pairs": PAIRS, "rows": ROWS}
GOODS = 13_000
ROOM = 4
NONE, RULE, CUT = 0.0, 1.0, 2.0  # values of the parameter ending
SOLD, SPOILT = 2, 3


class Sizes(NamedTuple):
    """Visible sizes."""

    pickers: int
    carriers: int
    pairs: int
    rows: int


class World(NamedTuple):
    """Sizes and prices, read-only."""

    sizes: Sizes
    prices: np.ndarray  # float32 [P]


def reset(s, world):
    """Draws what stays the same, and keeps the parameters that the match began with."""
    for a in range(world.sizes.pickers + world.sizes.carriers):
        s.drawn[a] = uniform(s, 0.0, 1.0)
    s.began = 10.0 * s.parameters.tempo + s.parameters.style


def step(s, world, actions, rewards, scratch):
    """Counts; ends in a bool of Python, in TRUNCATED, or not at all."""
    pickers = world.sizes.pickers
    for a in range(pickers + world.sizes.carriers):
        if s.alive[a]:
            if a < pickers:
                gain = actions.picker[a].pick
            else:
                carrier = actions.carrier[a - pickers]
                gain = carrier.loads[0] + carrier.loads[1]
                for axis in range(2):
                    s.force[a, axis] = carrier.force[axis]
            s.count[a] += gain
            rewards[a] = gain / 3.0
        if s.steps == 1 and s.parameters.leaver == a:
            s.alive[a] = 0
    for j in range(world.sizes.pairs):
        s.info.totals[j] = s.steps + j
    if s.steps == s.parameters.ends_at:
        if s.parameters.ending == CUT:
            s.info.end_reason = SPOILT
            return TRUNCATED
        if s.parameters.ending == RULE:
            s.info.end_reason = SOLD
            s.info.winner = 1
            return True
    return 0


def observe(s, world, observations, scratch):
    """Everything that changes."""
    pickers = world.sizes.pickers
    for a in range(pickers + world.sizes.carriers):
        observations.team[s.team[a]].total += s.count[a]
        if not s.alive[a]:
            continue
        if a >= pickers:
            observations.carrier[a - pickers].count = s.count[a]
            continue
        seen = observations.picker[a]
        seen.count = s.count[a]
        for i in range(world.sizes.pairs):
            seen.pair[i] = 10 * a + i
            for j in range(2):
                seen.grid[i, j] = 100 * a + 10 * i + j
        for r in range(world.sizes.rows):
            seen.rows[r].kind = r
            seen.rows[r].offset[0] = a
            seen.rows[r].offset[1] = s.steps
    observations.lane.time = s.steps


def observe_reset(s, world, observations, scratch):
    """What stays the same during a match."""
    for a in range(world.sizes.pickers):
        observations.picker[a].drawn = s.drawn[a]
    for team in range(2):
        observations.team[team].home = 7 + team
    for j in range(world.sizes.pairs):
        observations.lane.weather[j] = s.drawn[0] + j


def legal(s, world, mask):
    """Slots of even number may not pick 2; a carrier may load nothing, what its slot says and, at times, the last."""
    pickers = world.sizes.pickers
    for a in range(pickers + world.sizes.carriers):
        if a < pickers:
            for j in range(2 + a % 2):
                mask.picker[a].pick[j] = 1
        else:
            for word in range(2):
                loads = mask.carrier[a - pickers].loads[word]
                offer(loads, 0)
                offer(loads, 100 * (word + 1) + a)
                if s.steps % 2 == 1:
                    offer(loads, GOODS - 1)
                for extra in range(int(s.parameters.flood)):
                    offer(loads, 5000 + extra)


def plan(s, world, team, which, scratch):
    """Counts its calls and leaves a token for the scripts."""
    s.plans[team, which] += 1
    scratch.token[team] = 100 * (which + 1) + s.steps


def script(s, world, slot, which, actions, scratch):
    """0 "one", 1 "two": takes the token of the plan, and picks."""
    s.token[slot] = scratch.token[s.team[slot]]
    s.asked[slot] += 1
    if slot < world.sizes.pickers:
        actions.picker[slot].pick = 1
    else:
        actions.carrier[slot - world.sizes.pickers].loads[which] = 100 * (which + 1) + slot


def names(pickers: int, carriers: int) -> list[str]:
    """Agents in their order: red, blue, red, blue; then blue, red, blue."""
    colours = [("red", "blue")[k % 2] for k in range(pickers)] + [("blue", "red")[k % 2] for k in range(carriers)]
    return [f"{colour}_{colours[:k].count(colour)}" for k, colour in enumerate(colours)]


def game(
    pickers: int = 3, carriers: int = 2, pairs: int = 2, rows: int = 2, capacity: bool = True, **changes: Any
) -> Game:
    """The rules in these sizes; without ``capacity`` memory has the sizes that users see."""
    room = lambda size: size if capacity else None  # noqa: E731
    agents = names(pickers, carriers)
    picker = (
        Field("count", (), 0, 1e6),
        Field("pair", (pairs,), 0, 99, capacity=room(PAIRS)),
        Field("grid", (pairs, 2), 0, 999, capacity=(PAIRS, 4) if capacity else None),
        Field("drawn", (), 0, 1, at="reset"),
        Table("rows", rows, (Field("kind", (), 0, 9), Field("offset", (2,), 0, (9, 99))), capacity=room(ROWS)),
    )
    roles = (
        Role("picker", tuple(agents[:pickers]), picker, (Choice("pick", 3, capacity=room(5)),), room(PICKERS)),
        Role(
            "carrier",
            tuple(agents[pickers:]),
            (Field("count", (), 0, 1e6, dtype="f8"), Field("shelf", (pairs,), 0, 1, capacity=room(PAIRS))),
            (
                Choice("loads", GOODS, shape=(2,), candidates=ROOM),
                Continuous("force", (2,), (-1.0, 0.0), (1.0, 5.0), noop=(0.5, 2.0)),
            ),
            room(CARRIERS),
        ),
    )
    given: dict[str, Any] = {
        "name": "Orchard",
        "roles": roles,
        "state": (
            ("drawn", "f8", (SLOTS,)),
            ("began", "f8"),
            ("count", "i8", (SLOTS,)),
            ("force", "f8", (SLOTS, 2)),
            ("plans", "i8", (2, 2)),
            ("token", "i8", (SLOTS,)),
            ("asked", "i8", (SLOTS,)),
        ),
        "reset": reset,
        "step": step,
        "observe": observe,
        "observe_reset": observe_reset,
        "legal": legal,
        "script": script,
        "plan": plan,
        "scripts": ("one", "two"),
        "parameters": (
            Parameter("leaver", -1, -1, SLOTS),
            Parameter("ends_at", 1000, 0, 1000),
            Parameter("ending", NONE, NONE, CUT, whole=True),
            Parameter("flood", 0, 0, 9),
            Parameter("tempo", 1.0, 0.0, 5.0, "1", "of the match", at_start=True),
            Parameter("style", 0, 0, 1, "1", "of the match", at_start=True, whole=True),
        ),
        "horizon": 20,
        "info": (Field("totals", (pairs,), 0, 99, capacity=room(PAIRS), dtype="i8"),),
        "end_reasons": ("sold",),
        "truncation_reasons": ("spoilt",),
        "team_observation": (Field("total", (), 0, 1e6), Field("home", (), 0, 9, at="reset")),
        "lane_observation": (
            Field("time", (), 0, 99),
            Field("weather", (pairs,), 0, 9, capacity=room(PAIRS), at="reset"),
            Field("prices", (4 + pairs,), 0, 99, world="prices"),
        ),
        "scratch": (("token", "i8", (2,)),),
        "world": World(Sizes(pickers, carriers, pairs, rows), np.arange(4 + pairs, dtype=np.float32)),
        "reward": "agent",
        "reward_dtype": "f8",
        "determinism": "cross-platform",
        "default_opponent": "one",
    }
    return Game(**{**given, **changes})


def started(n: int = 3, rules: Game | None = None, **options: Any) -> Any:
    """Matches of the rules (default sizes unless given) that have started with seed 1."""
    sim = simulation(rules or game(), n, **options)
    sim.reset(seed=1)
    return sim
