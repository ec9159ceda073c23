"""GridPursuit: predators on a grid catch prey, and may have to hit one together in the same decision.

## Description

A pursuit of many agents after the one of MAgent (Zheng et al., "MAgent: a many-agent reinforcement learning platform",
AAAI 2018). Predators move one cell along rows and columns, prey are faster: they may move diagonally too. In each
decision, in this order:

1. Each predator hits whom it chose where that one *stands*, before anyone moves. A prey that at least `need` predators
   hit in the same decision is caught; fewer hits change nothing. A caught prey does not move.
2. The others move to cells that were free before the decision. Of several that want the same cell one gets it, drawn
   with equal chances (``ties="lots"``), or none (``ties="nobody"``). The others stay.
3. A caught prey has left, or with ``returns=True`` comes back in a cell that is free now, all as likely.

An agent stays or moves to a free cell, or a predator hits a prey in one of the 8 cells around it; the mask says what it
may. The presets ``-Blind`` and ``-BlindEasy`` need several predators at once, but show two cells to each side. What the
nearest teammates within 14 and 10 cells know decides there.

The scripts know where everybody is. Predators: ``"rush"`` goes to the nearest prey and hits the first that it can, in
the order of the actions. ``"focus"`` goes there too, but hits only prey that as many as needed can hit, of these the
one that most can hit. ``"hold_line"`` goes to the column at a quarter of the map. ``"wander"`` moves at random and hits
the first. ``"flee"`` is as ``"rush"``. Prey: ``"flee"`` goes away from the nearest predator, ``"wander"`` moves at
random, ``"rush"`` and ``"focus"`` go to the nearest predator, ``"hold_line"`` to that column.

## Action Space

<!-- table: action -->

*Ahead* is to the right for all agents.

## Observation Space

<!-- table: observation -->

In the middle of its window an agent sees itself, as a teammate. Shares in `own` are rounded up.
``observation="windows"`` shows `own` and `window` alone, as one row of bytes, ``observation="entities"`` the nearest
agents of both teams within `radius`, whatever the `view`, as real numbers.

A number in `neighbours` is the row of the teammate in arrays of the own team. The nearest come first, by squared
distance, then by number; beyond the last, numbers are -1 and offsets 0. Who has left sees zeros and has
no neighbours.

All agents have all of their hit points. The state for central critics has, besides the living and the time, how many
agents of either team are in 10 x 10 boxes of the map.

## Rewards

``reward="magent"``: a predator gets `hit_reward` for each hit, and `catch_reward` if that prey is caught. A caught prey
gets `caught_reward`. In ``-Blind`` and ``-BlindEasy`` a hit pays 0.1, so that random play meets a reward at all.

``reward="sparse"``: for each catch +1 to all predators and -1 to all prey.

## Starting State

All agents are in free cells, all as likely.

## Episode End

When all prey are caught (`all_caught`) the predators have won. After 500 decisions the prey have won, if any are left.
With ``returns=True`` nobody wins; the info `catches` counts. The default opponent is then "wander", else "flee".

## Arguments

<!-- table: options -->

<!-- table: parameters -->

## Version History

* v0: first version.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from palaestra.game import TERMINATED, Field, Game, Option, Parameter, Representation, Role, integer, with_options
from palaestra.games.grid.grid_ground import (
    DIAGONAL,
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
    put_anywhere,
    remove,
    scratch_fields,
    slots,
    start,
    state_fields,
    strike,
    take_away,
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

PREDATOR, PREY = 0, 1
ALL_CAUGHT = 2
AROUND = (*NEAR, *DIAGONAL)
PARAMETERS = (
    Parameter("hit_reward", -0.2, -10.0, 10.0, "1", "to a predator for each hit"),
    Parameter("catch_reward", 1.0, -100.0, 100.0, "1", "to each predator that has hit a prey which is caught"),
    Parameter("caught_reward", -1.0, -100.0, 100.0, "1", "to a prey that is caught"),
)


# --------------------------------------------------------------------------------------------------------------- rules


def reset(s, world):
    """All agents anywhere."""
    start(s, world)
    for k in range(slots(world)):
        put_anywhere(s, world, k)


def step(s, world, actions, rewards, scratch):
    """Predators hit, then all but caught prey move."""
    draw, predators = integer(s, LOTS), world.sizes[PREDATOR]
    for k in range(slots(world)):
        scratch.act[k] = actions.predator[k].act if k < predators else actions.prey[k - predators].act
    strike(s, world, scratch)
    if not world.sparse:
        pay_for_hits(s, world, rewards, scratch)
    caught = 0
    for k in range(predators, slots(world)):
        if is_caught(world, k, scratch):
            scratch.act[k] = 0
            caught += 1
            if not world.returns:
                remove(s, k)
    move(s, world, draw, scratch)
    if world.returns:
        for k in range(predators, slots(world)):
            if is_caught(world, k, scratch):
                take_away(s, k)
                put_anywhere(s, world, k)
    s.info.catches += caught
    if world.sparse:
        for k in range(slots(world)):
            rewards[k] = caught if k < predators else -caught
    return end(s, world)


def is_caught(world, k, scratch):
    """Whether as many predators have hit a prey as are needed."""
    return scratch.hits[k] >= world.need


def pay_for_hits(s, world, rewards, scratch):
    """Pays predators for hits and catches, and caught prey."""
    p = s.parameters
    for k in range(slots(world)):
        victim = scratch.victim[k]
        if victim != NOBODY:
            rewards[k] = p.hit_reward
            if is_caught(world, victim, scratch):
                rewards[k] += p.catch_reward
        elif k >= world.sizes[PREDATOR] and is_caught(world, k, scratch):
            rewards[k] = p.caught_reward


def end(s, world):
    """Whether all prey are caught, and who has won."""
    if s.left[PREY] == 0:
        s.info.end_reason, s.info.winner = ALL_CAUGHT, PREDATOR
        return TERMINATED
    if s.steps >= s.parameters.horizon and not world.returns:
        s.info.winner = PREY
    return 0


def legal(s, world, mask):
    """Free cells to move to, prey to hit."""
    predators = world.sizes[PREDATOR]
    for k in range(slots(world)):
        if s.alive[k]:
            if k < predators:
                write_legal(s, world, k, mask.predator[k].act)
            else:
                write_legal(s, world, k, mask.prey[k - predators].act)


def observe(s, world, observations, scratch):
    """Own numbers, window and lists of each living agent."""
    predators = world.sizes[PREDATOR]
    draw_maps(s, world, scratch)
    sort_by_cell(s, world, scratch)
    for k in range(slots(world)):
        seen = observations.predator[k] if k < predators else observations.prey[k - predators]
        write_sight(s, world, k, seen, scratch)


def observe_windows(s, world, observations, scratch):
    """Own numbers and window."""
    predators = world.sizes[PREDATOR]
    draw_maps(s, world, scratch)
    for k in range(slots(world)):
        if s.alive[k]:
            seen = observations.predator[k] if k < predators else observations.prey[k - predators]
            write_own(s, world, k, seen.own)
            write_window(s, world, k, seen.window, scratch)


def observe_entities(s, world, observations, scratch):
    """The nearest agents."""
    predators = world.sizes[PREDATOR]
    sort_by_cell(s, world, scratch)
    for k in range(slots(world)):
        if s.alive[k]:
            seen = observations.predator[k] if k < predators else observations.prey[k - predators]
            write_entities(s, world, k, seen, scratch)


def global_state(s, world, out):
    """Shares of living agents and time, and agents on a coarse map."""
    state_of_both(s, world, out)


def plan(s, world, team, which, scratch):
    """What a script decides for the whole team."""
    plan_of_script(s, world, team, which, scratch)


def script(s, world, slot, which, actions, scratch):
    """The alternative that a script chooses."""
    act, predators = choose(s, world, slot, which, scratch), world.sizes[PREDATOR]
    if slot < predators:
        actions.predator[slot].act = act
    else:
        actions.prey[slot - predators].act = act


# ---------------------------------------------------------------------------------------------------------------- game


def check_room(prey: int, options: Mapping[str, Any]) -> int:
    """Refuses agents that fill more than a half of the map, by ValueError."""
    size, predators = options["map_size"], options["predators"]
    if prey + predators > size**2 // 2:
        raise ValueError(
            f"map_size={size} has room for {size**2 // 2} agents, got {predators} predators and {prey} prey"
        )
    return prey


def check_need(need: int, options: Mapping[str, Any]) -> int:
    """Refuses more hits than there are predators, by ValueError."""
    if need > options["predators"]:
        raise ValueError(f"need={need} is more than predators={options['predators']}: no prey could be caught")
    return need


@with_options(
    MAP_SIZE,
    Option("predators", 25, "how many there are", low=1, high=MOST),
    Option("prey", 50, "how many there are", low=1, high=MOST, check=check_room),
    VIEW,
    RADIUS,
    Option("need", 1, "hits in one decision that catch a prey", low=1, high=8, check=check_need),
    Option("returns", False, "whether a caught prey comes back elsewhere"),
    TIES,
    REWARD,
)
def game(options: Any) -> Game:
    """The rules of `palaestra/GridPursuit-v0`."""
    size, predators, prey = options.map_size, options.predators, options.prey
    room = class_of(max(predators, prey), size)
    observation = observation_of(options.view)
    windows = (OWN, window_field(options.view))
    world = World(
        size,
        np.array([predators, prey], np.int64),
        0,
        alternatives(NEAR, AROUND),
        alternatives(AROUND, ()),
        options.view,
        options.radius,
        options.numbers.ties,
        options.numbers.reward,
        options.need,
        options.numbers.returns,
    )
    roles = [
        Role(name, tuple(f"{name}_{i}" for i in range(count)), observation, (choice,), room[0])
        for name, count, choice in (
            ("predator", predators, choice_of(NEAR, AROUND)),
            ("prey", prey, choice_of(AROUND, ())),
        )
    ]
    return Game(
        name="GridPursuit",
        roles=tuple(roles),
        state=state_fields(room),
        reset=reset,
        step=step,
        observe=observe,
        legal=legal,
        script=script,
        plan=plan,
        scripts=NAMES,
        parameters=PARAMETERS,
        horizon=500,
        info=(Field("catches", (), 0, 1e9, "1", "prey that were caught", "i8"),),
        end_reasons=("all_caught",),
        representations={
            "windows": Representation(
                "own numbers and window alone, as bytes", observe_windows, {"predator": windows, "prey": windows}
            ),
            "entities": Representation(
                "the nearest agents of both teams", observe_entities, {"predator": SEEN_ENTITIES, "prey": SEEN_ENTITIES}
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
        default_opponent="wander" if options.returns else "flee",
    )
