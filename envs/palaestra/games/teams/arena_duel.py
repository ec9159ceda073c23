"""ArenaDuel2v2: two against two robots with turrets fight in an arena with obstacles, commanded by macro moves.

## Description

A replacement of the robot arena of FM3Q (Hu, Zhu, Li and Zhao, arXiv 2402.00738), whose simulator is a closed Unity
program. Taken from its published code: an arena of 8 x 4.5 m with 9 obstacles, robots with 2000 hit
points, four armour plates and limited ammunition, 50 decisions in 180 s, 2 x 4 macro actions, 37 numbers for each
agent, and a randomised friction with a constant of 0.0375, which we read as its spread. Everything else is ours: the
layout, which is its own image when turned by half a turn, what the macro actions mean, what is seen, and what a round
does.

A decision lasts 3.6 s, 20 substeps of 0.18 s. In each all robots drive, then all aim and shoot, then all rounds hit at
the same time. Only the starting state is random.

* A robot drives on the shortest way around the obstacles to the post that serves its move best
  (`palaestra.games.teams.arena_moves`). Posts form a lattice of 1 m. Robots do not hinder each other. A robot that
  moves turns its chassis to its direction of motion, one at rest turns it to its target.
* A robot sees another if no obstacle crosses the line between the nodes of the lattice of 0.25 m nearest to them.
* The turret turns by up to 37 degrees in a substep. When it points at the target it fires one round, as long as there
  are any and the target is seen and within `range_m`. Of a round's damage the share that hits counts: 1 - distance /
  `range_m`, times `moving_accuracy` while the robot drives. Damage goes by the plate that faces the shooter: front,
  side or rear, a right angle each.
* A robot without hit points leaves the match.

## Action Space

<!-- table: action -->

`target` is the opponent to attack; if it is dead the other takes its place, and a robot that sees only the other shoots
at it. The moves: ``advance`` to the nearest post from which the target is seen, about 1.5 m from it; ``flank``, the
same with a preference for its sides and its rear; ``cover``, to a near post that the fewest opponents see; ``hold``,
stay.

## Observation Space

Positions are from the middle of the arena, in shares of 4 m. Blue sees the arena turned by half a turn, so both teams
see their own start on the left. Directions are unit vectors. All values of a dead robot are 0.

<!-- table: observation -->

## Rewards

``reward="dense"``: hit points that the other team has lost in the decision less those of one's own, in units of 2000.
``reward="sparse"``: +1 for the win and -1 for the defeat at the end of the match, 0 for a draw.

## Starting State

All robots with all hit points and rounds, facing the middle, at a place drawn uniformly from 0.35 x 1.7 m at the own
end of the arena, one robot on each side of the middle line. The friction of the match is drawn uniformly from
[-`friction_spread`, `friction_spread`): all drive that much faster.

## Episode End

By rule when a team has no robot left (``wiped_out``): the other has won; if both fall in the same substep it is a draw.
Truncated after 50 decisions: the team with more hit points left has won. Info `hit_points` counts them by team.

## Arguments

All scripts attack the weaker opponent together and stop within 2.2 m of
it; ``focus`` advances, ``flanker`` flanks, ``shelter`` advances but takes cover when both opponents see it and it is
weaker.

<!-- table: options -->

<!-- table: parameters -->

## Version History

* v0: first version.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from palaestra.game import Choice, Field, Game, Option, Parameter, Role, uniform, with_options
from palaestra.games.teams.arena_fire import NO_AGENT, fire_all, plate_facing
from palaestra.games.teams.arena_map import HALF_LENGTH_M, build
from palaestra.games.teams.arena_moves import (
    NOWHERE,
    OPPONENTS,
    TEAM_OF,
    choose_post,
    drive_all,
    living_opponent,
    look_around,
)
from palaestra.games.teams.arena_scripts import script
from palaestra.kernels.scalars import clip

RED, BLUE = 0, 1
SUBSTEPS = 20
WIPED_OUT = 2
"""Number of the end reason."""
HIT_POINTS = 2000.0
PER_HIT_POINT, PER_M, PER_PLATE = 1.0 / HIT_POINTS, 1.0 / HALF_LENGTH_M, 1.0 / 3.0
"""Scales of what is seen and paid."""
START_M = ((-3.75, -3.4), (0.3, 2.0))
"""Where red's first robot starts, x and z; the second one on the other side, blue turned by half a turn."""

AGENTS = ("red_0", "red_1", "blue_0", "blue_1")
OPPONENT_NAMES = ("first opponent", "second opponent")
OBSERVATION = (
    Field("own_position", (2,), -1, 1, "1", "own place, x and z", parts=("x", "z")),
    Field("own_heading", (2,), -1, 1, "1", "to where the own front plate points", parts=("x", "z")),
    Field("own_turret", (2,), -1, 1, "1", "to where the own barrel points", parts=("x", "z")),
    Field("own_hit_points", (), 0, 1, "1", "share left"),
    Field("own_rounds", (), 0, 1, "1", "share left"),
    Field("own_target", (), 0, 1, "1", "opponent that it attacks"),
    Field("teammate_position", (2,), -1, 1, "1", "place of the teammate", parts=("x", "z")),
    Field("teammate_heading", (2,), -1, 1, "1", "to where its front plate points", parts=("x", "z")),
    Field("teammate_hit_points", (), 0, 1, "1", "share left"),
    Field("teammate_rounds", (), 0, 1, "1", "share left"),
    Field("teammate_target", (), 0, 1, "1", "opponent that it attacks"),
    Field("opponent_position", (2, 2), -1, 1, "1", "places of the opponents", parts=("x", "z")),
    Field("opponent_heading", (2, 2), -1, 1, "1", "to where their front plates point", parts=("x", "z")),
    Field("opponent_hit_points", (2,), 0, 1, "1", "shares left", parts=OPPONENT_NAMES),
    Field("opponent_rounds", (2,), 0, 1, "1", "shares left", parts=OPPONENT_NAMES),
    Field("time_left", (), 0, 1, "1", "share of the match"),
    Field("sees_opponent", (2,), 0, 1, "1", "1 for an opponent that it sees", parts=OPPONENT_NAMES),
    Field("teammate_sees_opponent", (2,), 0, 1, "1", "1 for an opponent that the teammate sees", parts=OPPONENT_NAMES),
    Field(
        "opponent_plate",
        (2,),
        0,
        1,
        "1",
        "visible plate of an opponent: 1/3 front, 2/3 side, 1 rear, 0 out of sight",
        parts=OPPONENT_NAMES,
    ),
    Field("own_plate", (2,), 0, 1, "1", "plate of its own that an opponent sees, likewise", parts=OPPONENT_NAMES),
)
ACTION = (
    Choice("target", 2, OPPONENT_NAMES),
    Choice("move", 4, ("advance", "flank", "cover", "hold"), noop=3),
)
PARAMETERS = (
    Parameter("speed_mps", 1.0, 0.1, 3.0, "m/s", "of a robot"),
    Parameter("friction_spread", 0.0375, 0.0, 0.5, "1", "greatest change of the speed by the friction of a match"),
    Parameter("rounds", 200, 0, 10_000, "1", "that a robot starts with"),
    Parameter("range_m", 5.0, 0.5, 10.0, "m", "distance at which no round hits any more"),
    Parameter("moving_accuracy", 0.5, 0.0, 1.0, "1", "share of hits that is left while driving"),
    Parameter("front_damage", 20.0, 0.0, 2000.0, "1", "hit points that a round takes at the front plate"),
    Parameter("side_damage", 40.0, 0.0, 2000.0, "1", "at a side plate"),
    Parameter("rear_damage", 60.0, 0.0, 2000.0, "1", "at the rear plate"),
)


# -- rules -------------------------------------------------------------------------------------------------------------


def reset(s, world):
    """Teams at opposite ends; the places of all four are drawn apart, so that no match is its own mirror image."""
    s.friction = uniform(s, -s.parameters.friction_spread, s.parameters.friction_spread)
    for slot in range(4):
        end = 1.0 if TEAM_OF[slot] == RED else -1.0
        side = 1.0 if slot % 2 == 0 else -1.0
        s.position_m[slot, 0] = end * uniform(s, START_M[0][0], START_M[0][1])
        s.position_m[slot, 1] = end * side * uniform(s, START_M[1][0], START_M[1][1])
        s.heading[slot, 0] = s.turret[slot, 0] = end
        s.hit_points[slot], s.rounds[slot] = HIT_POINTS, s.parameters.rounds
        s.post[slot], s.shot_at[slot] = NOWHERE, NO_AGENT
    s.info.hit_points[RED], s.info.hit_points[BLUE] = hit_points_of(s, RED), hit_points_of(s, BLUE)


def step(s, world, actions, rewards, scratch):
    """One decision: each robot chooses a post, then drives and shoots for 3.6 s or until a team has no robot left."""
    red_before, blue_before = hit_points_of(s, RED), hit_points_of(s, BLUE)
    look_around(s, world.sight, scratch)
    for slot in range(4):
        if s.alive[slot]:
            s.target[slot] = actions.robot[slot].target
            target = living_opponent(s, slot, s.target[slot])
            s.post[slot] = choose_post(s, world, slot, actions.robot[slot].move, target, scratch)
    for _ in range(SUBSTEPS):
        drive_all(s, world.next_node, scratch)
        look_around(s, world.sight, scratch)
        fire_all(s, scratch)
        if not (s.alive[0] or s.alive[1]) or not (s.alive[2] or s.alive[3]):
            s.info.end_reason = WIPED_OUT
            break
    red, blue = hit_points_of(s, RED), hit_points_of(s, BLUE)
    s.info.hit_points[RED], s.info.hit_points[BLUE] = red, blue
    is_over = s.info.end_reason == WIPED_OUT
    if (is_over or s.steps >= s.parameters.horizon) and red != blue:
        s.info.winner = RED if red > blue else BLUE
    gain = ((blue_before - blue) - (red_before - red)) * PER_HIT_POINT
    if world.is_sparse:
        gain = 0.0 if s.info.winner == NO_AGENT else 1.0 if s.info.winner == RED else -1.0
    for slot in range(4):
        rewards[slot] = gain if TEAM_OF[slot] == RED else -gain
    return is_over


def hit_points_of(s, team):
    """What both robots of a team have left."""
    return s.hit_points[2 * team] + s.hit_points[2 * team + 1]


# -- observations ------------------------------------------------------------------------------------------------------


def observe(s, world, observations, scratch):
    """Each robot observes the living as if its own team had started on the left."""
    look_around(s, world.sight, scratch)
    time_left = clip(1.0 - s.steps / s.parameters.horizon, 0.0, 1.0)
    full = s.parameters.rounds if s.parameters.rounds > 1.0 else 1.0
    for slot in range(4):
        seen, teammate = observations.robot[slot], slot ^ 1
        turned = 1.0 if TEAM_OF[slot] == RED else -1.0
        seen.time_left = time_left
        if s.alive[slot]:
            for axis in range(2):
                seen.own_position[axis] = turned * s.position_m[slot, axis] * PER_M
                seen.own_heading[axis] = turned * s.heading[slot, axis]
                seen.own_turret[axis] = turned * s.turret[slot, axis]
            seen.own_hit_points = s.hit_points[slot] * PER_HIT_POINT
            seen.own_rounds = clip(s.rounds[slot] / full, 0.0, 1.0)
            seen.own_target = s.target[slot]
        if s.alive[teammate]:
            for axis in range(2):
                seen.teammate_position[axis] = turned * s.position_m[teammate, axis] * PER_M
                seen.teammate_heading[axis] = turned * s.heading[teammate, axis]
            seen.teammate_hit_points = s.hit_points[teammate] * PER_HIT_POINT
            seen.teammate_rounds = clip(s.rounds[teammate] / full, 0.0, 1.0)
            seen.teammate_target = s.target[teammate]
        for k in range(2):
            opponent = OPPONENTS[slot, k]
            if s.alive[opponent]:
                for axis in range(2):
                    seen.opponent_position[k, axis] = turned * s.position_m[opponent, axis] * PER_M
                    seen.opponent_heading[k, axis] = turned * s.heading[opponent, axis]
                seen.opponent_hit_points[k] = s.hit_points[opponent] * PER_HIT_POINT
                seen.opponent_rounds[k] = clip(s.rounds[opponent] / full, 0.0, 1.0)
            seen.sees_opponent[k] = scratch.sees[slot, opponent]
            seen.teammate_sees_opponent[k] = scratch.sees[teammate, opponent]
            if scratch.sees[slot, opponent]:
                seen.opponent_plate[k] = (1 + plate_facing(s, opponent, slot)) * PER_PLATE
                seen.own_plate[k] = (1 + plate_facing(s, slot, opponent)) * PER_PLATE


# -- the game ----------------------------------------------------------------------------------------------------------


def mirror(posts: int, states: Any, actions: Any) -> None:
    """Exchanges the teams and turns the arena by half a turn."""
    exchanged = np.array([2, 3, 0, 1])
    for name in ("position_m", "heading", "turret"):
        states[name] = -states[name][:, exchanged]
    for name in ("hit_points", "rounds", "target", "alive", "acting"):
        states[name] = states[name][:, exchanged]
    post, shot_at = states["post"][:, exchanged], states["shot_at"][:, exchanged]
    states["post"] = np.where(post == NOWHERE, NOWHERE, posts - 1 - post)
    states["shot_at"] = np.where(shot_at == NO_AGENT, NO_AGENT, exchanged[shot_at])
    actions["robot"] = actions["robot"][:, exchanged]


@with_options(Option("reward", "dense", "each loss of hit points is paid, or the end alone", words=("dense", "sparse")))
def game(options: Any) -> Game:
    """The rules of `palaestra/ArenaDuel2v2-v0`."""
    world = build(options.reward == "sparse")
    return Game(
        name="ArenaDuel2v2",
        roles=(Role("robot", AGENTS, OBSERVATION, ACTION),),
        state=(
            ("position_m", "f8", (4, 2)),
            ("heading", "f8", (4, 2)),
            ("turret", "f8", (4, 2)),
            ("hit_points", "f8", (4,)),
            ("rounds", "f8", (4,)),
            ("target", "i8", (4,)),
            ("post", "i8", (4,)),
            ("shot_at", "i8", (4,)),
            ("friction", "f8"),
        ),
        reset=reset,
        step=step,
        observe=observe,
        script=script,
        scripts=("focus", "shelter", "flanker"),
        parameters=PARAMETERS,
        horizon=50,
        plots=("hit_points",),
        info=(Field("hit_points", (2,), 0, 2 * HIT_POINTS, "1", "left, by team", "f8"),),
        end_reasons=("wiped_out",),
        scratch=(
            ("node", "u8", (4,)),
            ("sees", "u1", (4, 4)),
            ("is_moving", "u1", (4,)),
            ("damage", "f8", (4,)),
            ("hit_share", "f8", (4,)),
        ),
        world=world,
        zero_sum=True,
        determinism="cross-platform",
        default_opponent="focus",
        render="palaestra.games.teams.render_arena:draw_arena",
        render_fps=1.0 / 3.6,
        symmetric_teams=True,
        mirror=partial(mirror, len(world.post_node)),
    )
