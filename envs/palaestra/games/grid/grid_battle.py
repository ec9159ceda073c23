"""GridBattle: two armies on a grid, up to 1,024 agents a side, each with a list of its neighbours.

## Description

A battle of many agents after the one of MAgent (Zheng et al., "MAgent: a many-agent reinforcement learning platform",
AAAI 2018) in MAgent2: its hit points, damage, moves and pay. Here no team goes first: all hit, then all move, at once.

In each decision, in this order:

1. Each agent hits whom it chose where that one *stands*, before anyone moves. All have 10 hit points at the start,
   and a hit takes `damage` tenths of one. Agents without hit points leave, also those that have hit somebody in this
   decision.
2. The living recover `recovery` tenths, but have no more than 10.
3. The living move to cells that were free before the decision, up to two cells far; who stands between is passed. Of
   several that want the same cell one gets it, drawn with equal chances (``ties="lots"``), or none
   (``ties="nobody"``). The others stay.

An agent stays, moves to a free cell, or hits an opponent in one of the 8 cells around it; the mask says what it may.

The scripts know where everybody is. ``"rush"`` goes to the nearest opponent and hits the first that it can, in the
order of the actions. ``"focus"`` goes there too and hits whom its team kills soonest, if all hit that can, of these the
one with most hit points. ``"hold_line"`` goes to the column at a quarter of the map, seen from its side, stays there
and hits the weakest. ``"wander"`` moves at random and hits the first. ``"flee"`` goes away from the nearest opponent
and hits nobody.

## Action Space

<!-- table: action -->

*Ahead* is to the right for red and to the left for blue: blue sees and acts in a mirror image, so that a player of one
team can play the other.

## Observation Space

<!-- table: observation -->

In the middle of its window an agent sees itself, as a teammate. Shares in `own` are rounded up.
``observation="windows"`` shows `own` and `window` alone, as one row of bytes, ``observation="entities"`` the nearest
agents of both teams within `radius`, whatever the `view`, as real numbers.

A number in `neighbours` is the row of the teammate in arrays of the own team. The nearest come first, by squared
distance, then by number; beyond the last, numbers are -1 and offsets 0. The dead see zeros and have no
neighbours.

The state for central critics has, besides the living and the time, the hit points of either team in 10 x 10 boxes of
the map, not mirrored; 1 is all of an agent.

## Rewards

``reward="magent"``: each living agent gets `step_reward` in each decision, `hit_reward` for a hit, and `death_reward`
when it leaves. `kill_reward` is divided among all who hit the one that leaves in that decision. Who leaves is paid for
its last hit too; to win is not paid. MAgent2 pays a hit 0.2 and takes 0.1 for the attempt; here an attempt always hits.

``reward="sparse"``: +1 to the team that has won, -1 to the other, when the match ends; nothing for a draw.

## Starting State

Red is anywhere in the left half, all free cells as likely. Nobody is in the two columns in the middle, three where
`map_size` is odd. Blue is the mirror image of red; if the armies differ in size, the rest of the larger one is placed
likewise.

## Episode End

A team without agents has lost (`wiped_out`); if neither has any, nobody has won. After 1,000 decisions the team with
more agents left has won, of as many the one with more hit points; if these are as many too, nobody.

## Arguments

<!-- table: options -->

<!-- table: parameters -->

## Version History

* v0: first version.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from palaestra.game import DRAW, TERMINATED, Field, Game, Option, Parameter, Representation, Role, integer, with_options
from palaestra.games.grid.grid_ground import (
    DIAGONAL,
    EDGE,
    FAR,
    FREE,
    FULL,
    LOTS,
    MAP_SIZE,
    MOST,
    NEAR,
    NOBODY,
    RADIUS,
    REWARD,
    TIES,
    VIEW,
    World,
    alternatives,
    choice_of,
    class_of,
    move,
    occupant,
    put,
    remove,
    scratch_fields,
    slots,
    start,
    state_fields,
    strike,
    write_legal,
)
from palaestra.games.grid.grid_scripts import NAMES, choose
from palaestra.games.grid.grid_scripts import plan as plan_of_script
from palaestra.games.grid.grid_sight import (
    OWN,
    SEEN_ENTITIES,
    STATE_SIZE,
    draw_maps,
    observation_of,
    sort_by_cell,
    window_field,
    write_entities,
    write_own,
    write_sight,
    write_window,
)
from palaestra.games.grid.grid_sight import global_state as state_of_both

RED, BLUE = 0, 1
WIPED_OUT = 2
MOVES, HITS = (*NEAR, *DIAGONAL, *FAR), (*NEAR, *DIAGONAL)
PARAMETERS = (
    Parameter("damage", 20, 1, FULL, "0.1 hit points", "of a hit; an agent has 100", whole=True),
    Parameter("recovery", 1, 0, FULL, "0.1 hit points", "of a living agent in a decision", whole=True),
    Parameter("step_reward", -0.005, -10.0, 10.0, "1", "to each agent in each decision"),
    Parameter("hit_reward", 0.1, -10.0, 10.0, "1", "for a hit"),
    Parameter("kill_reward", 5.0, -100.0, 100.0, "1", "for a kill, divided among those who hit"),
    Parameter("death_reward", -0.1, -100.0, 100.0, "1", "to who leaves"),
)


# --------------------------------------------------------------------------------------------------------------- rules


def reset(s, world):
    """Red anywhere in its half, blue as its mirror image."""
    start(s, world)
    s.info.red_left, s.info.blue_left = s.left[0], s.left[1]
    size, red, blue = world.size, world.sizes[0], world.sizes[1]
    for i in range(red if red > blue else blue):
        while True:
            row, column = integer(s, size), integer(s, size // 2 - 1)
            mirrored = size - 1 - column
            if occupant(s, row, column) == FREE and occupant(s, row, mirrored) == FREE:
                break
        if i < red:
            put(s, i, row, column)
        if i < blue:
            put(s, red + i, row, mirrored)


def step(s, world, actions, rewards, scratch):
    """All hit, then all move."""
    draw, pays = integer(s, LOTS), not world.sparse
    for k in range(slots(world)):
        scratch.act[k] = actions.soldier[k].act
    strike(s, world, scratch)
    if pays:
        pay_for_hits(s, world, rewards, scratch)
    hurt(s, world, scratch)
    move(s, world, draw, scratch)
    return end(s, world, rewards)


def pay_for_hits(s, world, rewards, scratch):
    """Pays for the step, hits, kills and deaths."""
    p = s.parameters
    for k in range(slots(world)):
        if s.alive[k]:
            rewards[k] = p.step_reward
            if dies(s, k, scratch):
                rewards[k] += p.death_reward
            victim = scratch.victim[k]
            if victim != NOBODY:
                rewards[k] += p.hit_reward
                if dies(s, victim, scratch):
                    rewards[k] += p.kill_reward / scratch.hits[victim]


def dies(s, k, scratch):
    """Whether the hits of this decision kill an agent."""
    return s.hit_points[k] <= scratch.hits[k] * s.parameters.damage


def hurt(s, world, scratch):
    """Takes hit points; who has none leaves, the others recover."""
    for k in range(slots(world)):
        if s.alive[k]:
            if dies(s, k, scratch):
                s.hit_points[k] = 0
                remove(s, k)
            else:
                left = s.hit_points[k] - scratch.hits[k] * np.int64(s.parameters.damage)
                left += np.int64(s.parameters.recovery)
                s.hit_points[k] = left if left < FULL else FULL


def end(s, world, rewards):
    """Whether a team is wiped out; at the end the winner, and its pay where nothing else is paid."""
    s.info.red_left, s.info.blue_left = s.left[0], s.left[1]
    over = s.left[0] == 0 or s.left[1] == 0
    if over:
        s.info.end_reason = WIPED_OUT
    if over or s.steps >= s.parameters.horizon:
        lead = s.left[0] - s.left[1]
        if lead == 0:
            for k in range(slots(world)):
                lead += s.hit_points[k] if s.team[k] == RED else -s.hit_points[k]
        s.info.winner = DRAW if lead == 0 else RED if lead > 0 else BLUE
        if world.sparse and lead != 0:
            for k in range(slots(world)):
                rewards[k] = 1.0 if s.team[k] == s.info.winner else -1.0
    return TERMINATED if over else 0


def legal(s, world, mask):
    """Free cells to move to, opponents to hit."""
    for k in range(slots(world)):
        if s.alive[k]:
            write_legal(s, world, k, mask.soldier[k].act)


def observe(s, world, observations, scratch):
    """Own numbers, window and lists of each living agent."""
    draw_maps(s, world, scratch)
    sort_by_cell(s, world, scratch)
    for k in range(slots(world)):
        write_sight(s, world, k, observations.soldier[k], scratch)


def observe_windows(s, world, observations, scratch):
    """Own numbers and window."""
    draw_maps(s, world, scratch)
    for k in range(slots(world)):
        if s.alive[k]:
            write_own(s, world, k, observations.soldier[k].own)
            write_window(s, world, k, observations.soldier[k].window, scratch)


def observe_entities(s, world, observations, scratch):
    """The nearest agents."""
    sort_by_cell(s, world, scratch)
    for k in range(slots(world)):
        if s.alive[k]:
            write_entities(s, world, k, observations.soldier[k], scratch)


def global_state(s, world, out):
    """Shares of living agents and time, and hit points on a coarse map."""
    state_of_both(s, world, out)


def plan(s, world, team, which, scratch):
    """What a script decides for the whole team."""
    plan_of_script(s, world, team, which, scratch)


def script(s, world, slot, which, actions, scratch):
    """The alternative that a script chooses."""
    actions.soldier[slot].act = choose(s, world, slot, which, scratch)


def mirror(agents: int, size: int, states: Any, actions: Any) -> None:
    """Exchanges the teams of so many agents each, and left and right of a map of so many cells a side."""
    slot = np.arange(states["row"].shape[1])
    slot[: 2 * agents] = np.roll(slot[: 2 * agents], agents)
    for name in ("row", "column", "hit_points", "alive", "acting"):
        states[name] = states[name][:, slot]
    states["column"][:, : 2 * agents] = size - 1 - states["column"][:, : 2 * agents]
    states["left"] = states["left"][:, ::-1].copy()
    image = np.concatenate([[FREE], slot + 1, [-1]])  # -1 is a wall
    cells = states["cell"][:, : size + 2 * EDGE, : size + 2 * EDGE]
    cells[...] = image[cells[:, :, ::-1]]
    actions["soldier"] = actions["soldier"][:, slot]


# ---------------------------------------------------------------------------------------------------------------- game


def check_room(agents: int, options: Mapping[str, Any]) -> int:
    """Refuses armies that fill more than a half of their side of the map, by ValueError."""
    side = options["map_size"]
    room = side * (side // 2 - 1) // 2
    if agents > room:
        raise ValueError(f"map_size={side} has room for {room} agents a side, got {agents}")
    return agents


@with_options(
    MAP_SIZE,
    Option("red", 81, "size of red", low=1, high=MOST, check=check_room),
    Option("blue", 81, "size of blue", low=1, high=MOST, check=check_room),
    VIEW,
    RADIUS,
    TIES,
    REWARD,
)
def game(options: Any) -> Game:
    """The rules of `palaestra/GridBattle-v0`."""
    size, red, blue = options.map_size, options.red, options.blue
    room = class_of(max(red, blue), size)
    ways = alternatives(MOVES, HITS)
    names = tuple(f"{team}_{i}" for team, count in (("red", red), ("blue", blue)) for i in range(count))
    observation = observation_of(options.view)
    numbers = options.numbers
    world = World(
        size, np.array([red, blue], np.int64), 1, ways, ways, options.view, options.radius, numbers.ties, numbers.reward
    )
    return Game(
        name="GridBattle",
        roles=(Role("soldier", names, observation, (choice_of(MOVES, HITS),), 2 * room[0]),),
        state=state_fields(room),
        reset=reset,
        step=step,
        observe=observe,
        legal=legal,
        script=script,
        plan=plan,
        scripts=NAMES,
        parameters=PARAMETERS,
        horizon=1000,
        info=(
            Field("red_left", (), 0, MOST, "1", "living agents of red", "i8"),
            Field("blue_left", (), 0, MOST, "1", "living agents of blue", "i8"),
        ),
        end_reasons=("wiped_out",),
        representations={
            "windows": Representation(
                "own numbers and window alone, as bytes",
                observe_windows,
                {"soldier": (OWN, window_field(options.view))},
            ),
            "entities": Representation(
                "the nearest agents of both teams", observe_entities, {"soldier": SEEN_ENTITIES}
            ),
        },
        default_observation="dict",
        reward="agent" if options.reward == "magent" else "team",
        global_state=global_state,
        global_state_size=STATE_SIZE,
        scratch=scratch_fields(room),
        world=world,
        zero_sum=options.reward == "sparse",
        determinism="cross-platform",
        render="palaestra.games.grid.grid_picture:draw",
        render_text="palaestra.games.grid.grid_picture:write",
        click="palaestra.games.grid.grid_picture:click",
        default_opponent="rush",
        symmetric_teams=red == blue,
        mirror=functools.partial(mirror, red, size) if red == blue else None,
    )
