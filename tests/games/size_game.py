"""Couriers of two teams pick up parcels; new couriers arrive during the match.

## Description

Red and blue couriers walk on a square and pick up parcels. A parcel belongs to the first courier that reaches it; if
several reach it in the same decision, to the first in the order of slots, which alternates between the teams. Half of
the couriers are there from the start, the others arrive two in every third decision. All sizes are keywords, and all of
them share one compiled kernel: `agents` from 3 to 40, `parcels` from 4 to 64.

## Action Space

<!-- table: action -->

`parcel` 0 stays; 1 + j walks towards parcel j. The legal ones are listed: staying and the nearest parcels left.

## Observation Space

<!-- table: observation -->

`observation="nearest"` shows the nearest parcel alone.

## Rewards

Each member of a team is paid the worth of the parcels that its team picks up less that of the other team's.

## Starting State

Couriers and parcels lie uniformly on the square; each courier draws its speed.

## Episode End

Terminated when all parcels are picked up (`all_taken`). Truncated when no parcel was picked up for 60 decisions
(`stalled`), or by the horizon.

## Arguments

<!-- table: parameters -->

`agents=6`, `parcels=12` and `paces=2` are the sizes.

## Version History

* v0: first version.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

import palaestra
from palaestra.game import TERMINATED, TRUNCATED, Choice, Field, Game, Representation, Role, Table, offer, uniform

MOST_COURIERS, MOST_PARCELS, MOST_PACES = 40, 64, 4
LISTED = 8
"""Room in the list of candidates: staying and the nearest parcels."""
ALL_TAKEN, STALLED = 2, 3
PATIENCE = 60
NEAREST, SHARED_PLAN = 0, 1
FAR = 1e9


class World(NamedTuple):
    """Sizes and worths, read-only."""

    worth: np.ndarray
    couriers: int
    parcels: int
    paces: int


def square_distance(s, courier, parcel):
    """Square of the way from a courier to a parcel, m^2."""
    dx = s.parcel_m[parcel, 0] - s.position_m[courier, 0]
    dy = s.parcel_m[parcel, 1] - s.position_m[courier, 1]
    return dx * dx + dy * dy


def reset(s, world):
    """Places couriers and parcels; the second half of the couriers arrives later."""
    couriers, parcels = world.couriers, world.parcels
    for k in range(couriers):
        for axis in range(2):
            s.position_m[k, axis] = uniform(s, -1.0, 1.0)
        s.speed_m[k] = uniform(s, 0.05, 0.1)
        s.alive[k] = 1 if 2 * k < couriers else 0
    for j in range(parcels):
        for axis in range(2):
            s.parcel_m[j, axis] = uniform(s, -1.0, 1.0)
    s.left = parcels
    s.arrived = (couriers + 1) // 2


def walk(s, world, courier, parcel, pace):
    """One step towards a parcel; returns whether the courier picked it up."""
    way = math.sqrt(square_distance(s, courier, parcel))
    step_m = s.speed_m[courier] * (pace + 1) / world.paces
    share = 1.0 if way <= step_m else step_m / way
    for axis in range(2):
        s.position_m[courier, axis] += share * (s.parcel_m[parcel, axis] - s.position_m[courier, axis])
    return way <= step_m


def step(s, world, actions, rewards, scratch):
    """All couriers walk; a courier that reaches a parcel picks it up."""
    couriers = world.couriers
    gained = 0.0  # by red, less blue's
    s.idle += 1
    for k in range(couriers):
        parcel = actions.courier[k].parcel - 1
        goes = s.alive[k] and parcel >= 0 and not s.taken[parcel]
        if goes and walk(s, world, k, parcel, actions.courier[k].pace):
            s.taken[parcel] = 1
            s.left -= 1
            s.idle = 0
            gained += world.worth[parcel] if s.team[k] == 0 else -world.worth[parcel]
    for k in range(couriers):
        rewards[k] = gained if s.team[k] == 0 else -gained
    s.info.lead += gained
    if s.steps % 3 == 0:
        for _ in range(2):
            if s.arrived < couriers:
                s.alive[s.arrived] = 1
                s.acting[s.arrived] = 1
                s.arrived += 1
    if s.left == 0:
        s.info.end_reason = ALL_TAKEN
        s.info.winner = 0 if s.info.lead > 0.0 else 1 if s.info.lead < 0.0 else -1
        return TERMINATED
    if s.idle >= PATIENCE:
        s.info.end_reason = STALLED
        return TRUNCATED
    return 0


def observe_reset(s, world, observations, scratch):
    """What stays the same: each courier's speed."""
    for k in range(world.couriers):
        observations.courier[k].speed_m = s.speed_m[k]


def observe(s, world, observations, scratch):
    """Everything relative to the courier itself."""
    for k in range(world.couriers):
        if s.alive[k]:
            seen = observations.courier[k]
            for axis in range(2):
                seen.position_m[axis] = s.position_m[k, axis]
            for other in range(world.couriers):
                if s.alive[other]:
                    row = seen.couriers[other]
                    row.present = 1.0
                    row.teammate = 1.0 if s.team[other] == s.team[k] else 0.0
                    for axis in range(2):
                        row.offset_m[axis] = s.position_m[other, axis] - s.position_m[k, axis]
            for j in range(world.parcels):
                if not s.taken[j]:
                    row = seen.parcels[j]
                    row.left = 1.0
                    for axis in range(2):
                        row.offset_m[axis] = s.parcel_m[j, axis] - s.position_m[k, axis]


def nearest_parcel(s, world, courier, scratch):
    """The nearest parcel that is left and that the plan has not given away, or -1."""
    best, best_square = -1, FAR
    for j in range(world.parcels):
        if not s.taken[j] and not scratch.given[j]:
            square = square_distance(s, courier, j)
            if square < best_square:
                best, best_square = j, square
    return best


def observe_nearest(s, world, observations, scratch):
    """The nearest parcel alone."""
    for j in range(world.parcels):
        scratch.given[j] = 0
    for k in range(world.couriers):
        nearest = nearest_parcel(s, world, k, scratch) if s.alive[k] else -1
        if nearest >= 0:
            for axis in range(2):
                observations.courier[k].nearest_m[axis] = s.parcel_m[nearest, axis] - s.position_m[k, axis]


def legal(s, world, mask):
    """Staying, and the nearest parcels in the order of their distance; every pace."""
    for k in range(world.couriers):
        if s.alive[k]:
            may = mask.courier[k]
            for pace in range(world.paces):
                may.pace[pace] = 1
            offer(may.parcel, 0)
            last, last_square = -1, -1.0
            for _ in range(LISTED - 1):
                best, best_square = -1, FAR
                for j in range(world.parcels):
                    square = square_distance(s, k, j)
                    after = square > last_square or (square == last_square and j > last)
                    if not s.taken[j] and after and square < best_square:
                        best, best_square = j, square
                if best < 0:
                    break
                offer(may.parcel, best + 1)
                last, last_square = best, best_square


def plan(s, world, team, which, scratch):
    """Gives each courier of a team a parcel of its own, in the order of slots."""
    for j in range(world.parcels):
        scratch.given[j] = 0
    for k in range(world.couriers):
        if s.team[k] == team and s.alive[k]:
            goal = nearest_parcel(s, world, k, scratch)
            scratch.goal[k] = goal
            if which == SHARED_PLAN and goal >= 0:
                scratch.given[goal] = 1


def is_near(s, world, courier, parcel):
    """Whether a parcel is among those that a courier may walk to."""
    closer = 0
    for j in range(world.parcels):
        closer += not s.taken[j] and square_distance(s, courier, j) < square_distance(s, courier, parcel)
    return closer < LISTED - 1


def script(s, world, slot, which, actions, scratch):
    """0 "nearest": the nearest parcel; 1 "shared_plan": a parcel that no teammate walks to."""
    goal = scratch.goal[slot]
    actions.courier[slot].pace = world.paces - 1
    actions.courier[slot].parcel = goal + 1 if goal >= 0 and is_near(s, world, slot, goal) else 0


def draw(game: Any, world: Any, s: Any) -> np.ndarray:
    """Couriers in the colours of their teams, parcels left in grey: uint8 ``[96, 96, 3]``."""
    at = (np.arange(96) + 0.5) / 48.0 - 1.0
    picture = np.full((96, 96, 3), 240, np.uint8)
    couriers, parcels = world.couriers, world.parcels
    shown = [(s["parcel_m"][j], 0.03, (120, 120, 120)) for j in range(parcels) if not s["taken"][j]]
    colours = ((200, 60, 50), (60, 120, 200))
    shown += [(s["position_m"][k], 0.05, colours[s["team"][k]]) for k in range(couriers) if s["alive"][k]]
    for (x, y), radius, colour in shown:
        picture[(at[None, :] - x) ** 2 + (at[::-1, None] - y) ** 2 <= radius**2] = colour
    return picture


def write(game: Any, world: Any, s: Any) -> str:
    """Couriers that are alive and parcels that are left."""
    couriers, parcels = world.couriers, world.parcels
    there = [game.agents[k] for k in range(couriers) if s["alive"][k]]
    return f"{', '.join(there)}; parcels {', '.join(str(j) for j in range(parcels) if not s['taken'][j])}"


def game(agents: int = 6, parcels: int = 12, paces: int = 2) -> Game:
    """The rules for so many couriers (3 to 40), parcels (4 to 64) and paces (1 to 4)."""
    for name, value, low, high in (
        ("agents", agents, 3, MOST_COURIERS),
        ("parcels", parcels, 4, MOST_PARCELS),
        ("paces", paces, 1, MOST_PACES),
    ):
        if not low <= value <= high:
            raise ValueError(f"{name} must be in [{low}, {high}], got {value}")
    offset = Field("offset_m", (2,), -2.0, 2.0, "m", "from me")
    observation = (
        Field("position_m", (2,), -1.0, 1.0, "m", "mine"),
        Field("speed_m", (), 0.0, 0.1, "m", "my way in one decision", at="reset"),
        Table(
            "couriers",
            agents,
            (
                Field("present", (), 0, 1, "1", "1 if it is there"),
                Field("teammate", (), 0, 1, "1", "1 if it is of my team"),
                offset,
            ),
            "all couriers in their order",
            capacity=MOST_COURIERS,
        ),
        Table(
            "parcels",
            parcels,
            (Field("left", (), 0, 1, "1", "1 if it is still there"), offset),
            "all parcels in their order",
            capacity=MOST_PARCELS,
        ),
    )
    nearest = Representation(
        "the nearest parcel alone",
        observe_nearest,
        {"courier": (Field("nearest_m", (2,), -2.0, 2.0, "m", "offset of the nearest parcel"),)},
    )
    names = tuple(f"{('red', 'blue')[k % 2]}_{k // 2}" for k in range(agents))
    worth = np.array([0.25 * (1 + j % 4) for j in range(parcels)], np.float32)
    courier = Role(
        "courier",
        names,
        observation,
        (
            Choice("parcel", 1 + parcels, (), "0 stay, 1 + j: walk to parcel j", candidates=LISTED),
            Choice("pace", paces, (), "how fast, the last is full speed", capacity=MOST_PACES),
        ),
        capacity=MOST_COURIERS,
    )
    return Game(
        name="Couriers",
        roles=(courier,),
        state=(
            ("position_m", "f8", (MOST_COURIERS, 2)),
            ("speed_m", "f8", (MOST_COURIERS,)),
            ("parcel_m", "f8", (MOST_PARCELS, 2)),
            ("taken", "u1", (MOST_PARCELS,)),
            ("left", "i8"),
            ("arrived", "i8"),
            ("idle", "i8"),
        ),
        reset=reset,
        step=step,
        observe=observe,
        observe_reset=observe_reset,
        legal=legal,
        script=script,
        plan=plan,
        scripts=("nearest", "shared_plan"),
        horizon=200,
        info=(Field("lead", about="worth of red's parcels less blue's", dtype="f8"),),
        end_reasons=("all_taken",),
        truncation_reasons=("stalled",),
        lane_observation=(Field("worth", (parcels,), 0.0, 1.0, "1", "of each parcel", world="worth"),),
        representations={"nearest": nearest},
        default_observation="dict",
        scratch=(("given", "u1", (MOST_PARCELS,)), ("goal", "i8", (MOST_COURIERS,))),
        world=World(worth, agents, parcels, paces),
        zero_sum=True,
        determinism="cross-platform",
        default_opponent="nearest",
        render=f"{__name__}:draw",
        render_text=f"{__name__}:write",
    )


palaestra.register("tests/Couriers-v0", game, about="couriers of two teams pick up parcels")
palaestra.register("tests/Couriers-3-v0", game, about="the same with 3 couriers", agents=3, parcels=4, paces=1)
palaestra.register("tests/Couriers-40-v0", game, about="the same with 40 couriers", agents=40, parcels=64, paces=4)
palaestra.register("tests/CouriersLarge-v0", game, about="the same, larger", agents=9, parcels=20, paces=3)
