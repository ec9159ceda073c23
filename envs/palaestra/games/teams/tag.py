"""TeamTag: slower chasers hunt faster runners in a walled square with obstacles.

## Description

The predator and prey of Lowe et al. ("Multi-agent actor-critic for mixed cooperative-competitive environments",
NeurIPS 2017) as an exact zero-sum game of two teams. Red chases, blue runs. All are discs that thrust, drift and push
each other away (`palaestra.games.teams.particles`); runners are smaller, faster and accelerate harder. The arena is the
square of 2 m around the origin, and a wall sets the velocity into it to zero. Round obstacles are in it, drawn anew
for each match. A decision is 0.1 s.

What differs from mpe2's `simple_tag_v3`, and why:

* A runner that is touched costs its team exactly `contact_reward` in that decision and gives it to the chasers,
  whatever the number of chasers at it. There a runner pays 10 for each chaser that touches it, while every chaser gets
  10 for each touch: with three chasers one touch pays 30 for 10.
* Walls keep runners in. There the plane is endless and runners pay a penalty for leaving the square.
* Each agent observes the velocities of all others, teammates first. There only those of the runners are seen.
* The two teams start in different halves, so that no match starts with a touch.

``rules="mpe"`` has simple_tag_v3 itself, see Arguments.

## Action Space

<!-- table: action -->

With ``actions="continuous"`` the choice `move` is replaced by two numbers in [-1, 1], `force`: thrust to the right and
up as a share of the greatest.

## Observation Space

Teammates come before opponents, each in the order of their names. An offset is the other's position minus one's own.

<!-- table: observation -->

## Rewards

``reward="dense"``: in every decision the chasers get `contact_reward` for each runner that one of them touches, and
the runners lose it. ``reward="sparse"``: +1 to the chasers and -1 to the runners when the tags reach `tags_to_win`,
which ends the match. A tag is a decision in which a runner is touched.

## Starting State

One team starts in the left half, the other in the right, which is drawn at random: positions are uniform, 0.1 to 0.9 m
from the middle line and up to 0.9 m above or below, all at rest. Obstacles are anywhere up to 0.9 m from the
middle; an agent that starts inside one is pushed out.

## Episode End

Truncated after 50 decisions. The chasers have won if there were `tags_to_win` tags (info `tags`), else the runners.
With ``reward="sparse"`` the last of these tags ends the match (``tagged``).

## Arguments

<!-- table: options -->

<!-- table: parameters -->

## Version History

* v0: first version.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from palaestra.game import Field, Game, Option, Parameter, Role, uniform, with_options
from palaestra.games.teams import tag_mpe
from palaestra.games.teams.particles import (
    ACTIONS,
    ARENA_M,
    DAMPING,
    DIRECTION_X,
    DIRECTION_Y,
    PERIOD_S,
    REWARD,
    action_of,
    choose_force,
    choose_move,
    mirror_left_right,
    stop_at_walls,
    thrust_by_forces,
    thrust_by_moves,
    touch,
    write_offset,
    write_vector,
)
from palaestra.games.teams.tag_mpe import (
    BODIES,
    CHASERS,
    GREATEST_SPEED_MPS,
    MASS_KG,
    RUNNERS,
    count_chasers,
    move_all,
    set_radii,
)
from palaestra.kernels.pairing import pair_nearest
from palaestra.kernels.scalars import clip

TAGGED = 2
"""Number of the end reason."""
MOST = 16
START_NEAR_M, START_FAR_M = 0.1, 0.9

PARAMETERS = (
    Parameter("contact_reward", 1.0, 0.0, 1000.0, "1", "what a touched runner costs its team in a decision"),
    Parameter("tags_to_win", 1, 1, 10_000, "1", "tags that the chasers need to win"),
    *BODIES,
)


def observation_table(others: int, obstacles: int) -> tuple[Field, ...]:
    """What each agent sees."""
    return (
        Field("is_chaser", (), 0, 1, "1", "1 for chasers, 0 for runners"),
        Field(
            "velocity_mps",
            (2,),
            -GREATEST_SPEED_MPS,
            GREATEST_SPEED_MPS,
            "m/s",
            "own velocity, right and up",
            parts=("x", "y"),
        ),
        Field("position_m", (2,), -ARENA_M, ARENA_M, "m", "own position, 0 in the middle", parts=("x", "y")),
        Field(
            "obstacle_offset_m",
            (obstacles, 2),
            -2 * ARENA_M,
            2 * ARENA_M,
            "m",
            "offsets of the obstacles",
            parts=("x", "y"),
        ),
        Field(
            "other_offset_m",
            (others, 2),
            -2 * ARENA_M,
            2 * ARENA_M,
            "m",
            "offsets of teammates, then opponents",
            parts=("x", "y"),
        ),
        Field(
            "other_velocity_mps",
            (others, 2),
            -GREATEST_SPEED_MPS,
            GREATEST_SPEED_MPS,
            "m/s",
            "velocities, likewise",
            parts=("x", "y"),
        ),
    )


# --------------------------------------------------------------------------------------------------------------- rules


def reset(s, world):
    """Teams in different halves, obstacles anywhere."""
    chasers, agents = count_chasers(s), len(s.alive)
    side = 1.0 if uniform(s, 0.0, 1.0) < 0.5 else -1.0
    for i in range(agents):
        s.position_m[i, 0] = (side if i < chasers else -side) * uniform(s, START_NEAR_M, START_FAR_M)
        s.position_m[i, 1] = uniform(s, -START_FAR_M, START_FAR_M)
    for i in range(agents, len(s.position_m)):
        s.position_m[i, 0] = uniform(s, -START_FAR_M, START_FAR_M)
        s.position_m[i, 1] = uniform(s, -START_FAR_M, START_FAR_M)


def step_by_moves(s, world, actions, rewards, scratch):
    """One decision with discrete actions."""
    chasers = count_chasers(s)
    thrust_by_moves(actions.player[:chasers], 0, s.parameters.chaser_force_n, scratch)
    thrust_by_moves(actions.player[chasers:], chasers, s.parameters.runner_force_n, scratch)
    return play(s, world, rewards, scratch)


def step_by_forces(s, world, actions, rewards, scratch):
    """One decision with continuous actions."""
    chasers = count_chasers(s)
    thrust_by_forces(actions.player[:chasers], 0, s.parameters.chaser_force_n, scratch)
    thrust_by_forces(actions.player[chasers:], chasers, s.parameters.runner_force_n, scratch)
    return play(s, world, rewards, scratch)


def play(s, world, rewards, scratch):
    """All agents move, then touches are paid."""
    set_radii(s, scratch)
    move_all(s, scratch)
    chasers, agents, touched = count_chasers(s), len(s.alive), 0
    for i in range(agents):
        stop_at_walls(s, scratch, i)
    for j in range(chasers, agents):
        is_touched = False
        for i in range(chasers):
            is_touched |= touch(s, scratch, i, j)
        s.touched[j - chasers] = is_touched
        touched += is_touched
    s.info.tags += touched
    has_won = s.info.tags >= s.parameters.tags_to_win
    is_over = has_won and world.reward != 0
    if is_over:
        s.info.end_reason = TAGGED
    if is_over or s.steps >= s.parameters.horizon:
        s.info.winner = CHASERS if has_won else RUNNERS
    gain = 1.0 * is_over if world.reward else s.parameters.contact_reward * touched
    for a in range(agents):
        rewards[a] = gain if a < chasers else -gain
    return is_over


def observe(s, world, observations, scratch):
    """Everything, from where one is."""
    agents = len(s.alive)
    for i in range(agents):
        seen = observations.player[i]
        write_vector(seen.velocity_mps, s.velocity_mps[i], GREATEST_SPEED_MPS)
        write_vector(seen.position_m, s.position_m[i], ARENA_M)
        for k in range(len(seen.obstacle_offset_m)):
            write_offset(seen.obstacle_offset_m[k], s, agents + k, i, 2 * ARENA_M)
        write_others(seen, s, i)


def write_others(seen, s, i):
    """Teammates first, then opponents."""
    chasers, agents, row = count_chasers(s), len(s.alive), 0
    is_chaser = i < chasers
    seen.is_chaser = is_chaser
    for k in range(agents):
        j = k if is_chaser else (k + chasers) % agents
        if j != i:
            write_offset(seen.other_offset_m[row], s, j, i, 2 * ARENA_M)
            write_vector(seen.other_velocity_mps[row], s.velocity_mps[j], GREATEST_SPEED_MPS)
            row += 1


# ------------------------------------------------------------------------------------------------------------- scripts

LEAD_S = 0.4
"""A chaser goes for where its prey will be after this time."""
AHEAD = 6
"""Decisions that a runner looks ahead."""
DIAGONAL = math.sqrt(0.5)
WAYS_X = (*DIRECTION_X, DIAGONAL, DIAGONAL, -DIAGONAL, -DIAGONAL)
WAYS_Y = (*DIRECTION_Y, DIAGONAL, -DIAGONAL, DIAGONAL, -DIAGONAL)
"""Thrusts that a runner weighs: the moves in their order, then the diagonals."""
WALL_DANGER, OBSTACLE_DANGER = 0.1, 0.1
"""Of a wall and of an obstacle, as a share of that of a chaser at the same gap. Danger is one over the gap."""
WALL_GAP_M, LEAST_GAP_M = 0.05, 0.02
"""Added to the gap to a wall; the least gap to a body. So no danger is without end."""


def script_by_moves(s, world, slot, which, actions, scratch):
    """Chasers intercept, runners flee; discrete."""
    set_radii(s, scratch)
    if slot < count_chasers(s):
        dx, dy = intercept(s, scratch, slot)
        choose_move(actions.player[slot], dx, dy, 0.0)
    else:
        actions.player[slot].move = flee(s, scratch, slot, len(DIRECTION_X))


def script_by_forces(s, world, slot, which, actions, scratch):
    """Chasers intercept, runners flee; continuous."""
    set_radii(s, scratch)
    if slot < count_chasers(s):
        dx, dy = intercept(s, scratch, slot)
        choose_force(actions.player[slot], dx, dy, 1e-3)
    else:
        way = flee(s, scratch, slot, len(WAYS_X))
        actions.player[slot].force[0], actions.player[slot].force[1] = WAYS_X[way], WAYS_Y[way]


def intercept(s, scratch, slot):
    """The way that a chaser should go: to where its prey will be, less its own drift."""
    chasers = count_chasers(s)
    pair_nearest(s.position_m, 0, chasers, chasers, len(s.touched), scratch.prey)
    j = scratch.prey[slot]
    dx = s.position_m[j, 0] - s.position_m[slot, 0] + LEAD_S * (s.velocity_mps[j, 0] - s.velocity_mps[slot, 0])
    dy = s.position_m[j, 1] - s.position_m[slot, 1] + LEAD_S * (s.velocity_mps[j, 1] - s.velocity_mps[slot, 1])
    return dx, dy


def flee(s, scratch, slot, ways):
    """Number of the thrust on whose way there is the least danger."""
    best, least = 0, math.inf
    for way in range(ways):
        found = danger_of_way(s, scratch, slot, WAYS_X[way], WAYS_Y[way])
        if found < least:
            best, least = way, found
    return best


def danger_of_way(s, scratch, slot, thrust_x, thrust_y):
    """Danger that a runner meets if it keeps a thrust: its drift without pushes, seen at each decision."""
    x, y = s.position_m[slot, 0], s.position_m[slot, 1]
    vx, vy = s.velocity_mps[slot, 0], s.velocity_mps[slot, 1]
    gain_mps = s.parameters.runner_force_n / MASS_KG * PERIOD_S
    limit_m, most_mps = ARENA_M - scratch.radius_m[slot], s.parameters.runner_speed_mps
    total = 0.0
    for k in range(AHEAD):
        x, y = clip(x + vx * PERIOD_S, -limit_m, limit_m), clip(y + vy * PERIOD_S, -limit_m, limit_m)
        vx, vy = (1.0 - DAMPING) * vx + gain_mps * thrust_x, (1.0 - DAMPING) * vy + gain_mps * thrust_y
        scale = most_mps / max(math.sqrt(vx * vx + vy * vy), most_mps)
        vx, vy = scale * vx, scale * vy
        total += danger(s, scratch, slot, x, y, (k + 1) * PERIOD_S)
    return total


def danger(s, scratch, slot, x, y, ahead_s):
    """How dangerous it will be for a runner to be at a place after a time in which chasers only drift."""
    total = WALL_DANGER / (WALL_GAP_M + ARENA_M - abs(x)) + WALL_DANGER / (WALL_GAP_M + ARENA_M - abs(y))
    chasers, agents = count_chasers(s), len(s.alive)
    for i in range(chasers):
        dx = x - s.position_m[i, 0] - ahead_s * s.velocity_mps[i, 0]
        dy = y - s.position_m[i, 1] - ahead_s * s.velocity_mps[i, 1]
        gap_m = math.sqrt(dx * dx + dy * dy) - scratch.radius_m[i] - scratch.radius_m[slot]
        total += 1.0 / max(gap_m, LEAST_GAP_M)
    for i in range(agents, len(s.position_m)):
        dx, dy = x - s.position_m[i, 0], y - s.position_m[i, 1]
        gap_m = math.sqrt(dx * dx + dy * dy) - scratch.radius_m[i] - scratch.radius_m[slot]
        total += OBSTACLE_DANGER / max(gap_m, LEAST_GAP_M)
    return total


@with_options(
    Option("chasers", 3, "size of red", low=1, high=MOST),
    Option("runners", 1, "size of blue", low=1, high=MOST),
    Option("obstacles", 2, "how many there are", low=0, high=MOST),
    ACTIONS,
    Option(
        "rules",
        "team",
        "`mpe` is mpe2's simple_tag_v3 to the last bit of a float32: its observations, its rewards, no walls, "
        "25 decisions (`palaestra.games.teams.tag_mpe`). It is not zero-sum",
        words=("team", "mpe"),
    ),
    replace(REWARD, only={"rules": "team"}),
)
def game(options: Any) -> Game:
    """The rules of `palaestra/TeamTag-v0`."""
    if options.rules == "mpe":
        return tag_mpe.game(options)
    chasers, runners, obstacles = options.chasers, options.runners, options.obstacles
    agents = chasers + runners
    names = tuple(f"red_{k}" for k in range(chasers)) + tuple(f"blue_{k}" for k in range(runners))
    is_discrete = options.actions == "discrete"
    return Game(
        name="TeamTag",
        roles=(Role("player", names, observation_table(agents - 1, obstacles), (action_of(options.actions),)),),
        state=(
            ("position_m", "f8", (agents + obstacles, 2)),
            ("velocity_mps", "f8", (agents, 2)),
            ("touched", "u1", (runners,)),
        ),
        reset=reset,
        step=step_by_moves if is_discrete else step_by_forces,
        observe=observe,
        script=script_by_moves if is_discrete else script_by_forces,
        scripts=("default",),
        parameters=PARAMETERS,
        horizon=50,
        info=(Field("tags", (), 0, 2**53, "1", "tags so far", "i8"),),
        end_reasons=("tagged",),
        scratch=(("force_n", "f8", (agents, 2)), ("radius_m", "f8", (agents + obstacles,)), ("prey", "i8", (chasers,))),
        world=options.numbers,
        zero_sum=True,
        determinism="per-platform",
        default_opponent="default",
        render="palaestra.games.teams.render_particles:draw_tag",
        mirror=mirror_left_right,
    )
