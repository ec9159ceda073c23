"""TeamKeepAway: red wants to be where it alone knows, blue has to guess from how red moves and keep it away.

## Description

A zero-sum game of two teams after the "physical deception" and "keep-away" tasks of Lowe et al. ("Multi-agent
actor-critic for mixed cooperative-competitive environments", NeurIPS 2017). Two landmarks are in a walled square; one
of them, drawn for each match, is the goal. Red sees which, blue does not. The team whose nearest member is nearer to
the goal gains. Red can bluff, blue can shove: all players are discs that thrust, drift and push each other away
(`palaestra.games.teams.particles`); landmarks can be passed through. The arena is the square of 2 m around the origin,
and a wall sets the velocity into it to zero. A decision is 0.1 s.

## Action Space

<!-- table: action -->

With ``actions="continuous"`` the choice `move` is replaced by two numbers in [-1, 1], `force`: thrust to the right and
up as a share of the greatest.

## Observation Space

An offset is the other's position minus one's own. Teammates come before opponents, each in the order of their names.

<!-- table: observation -->

## Rewards

``reward="dense"``: red gets in each decision, and blue loses, ::

    distance of the goal from the nearest of blue - distance of the goal from the nearest of red      (m)

This is a level and not its change: a change would add up to the last distances minus the first, so that nothing would
be gained by being there early or lost by being kept away for a while.
``reward="sparse"``: +1 in the last decision to the team that has won, -1 to the other.

## Starting State

All players and landmarks are anywhere up to 0.9 m from the middle on each axis, uniformly, at rest.

## Episode End

Truncated after 50 decisions. Red has won if the sum of its dense rewards, the info `margin_m`, is more than
`margin_to_win_m`, blue if it is less. What blue does not know at first is worth something to red: the default of
`margin_to_win_m` gives it back, so that scripts win about as often on either side.

## Arguments

<!-- table: options -->

<!-- table: parameters -->

## Version History

* v0: first version.
"""

from __future__ import annotations

import math
from typing import Any

from palaestra.game import DRAW, Field, Game, Option, Parameter, Role, integer, uniform, with_options
from palaestra.games.teams.particles import (
    ACTIONS,
    ARENA_M,
    COAST_S,
    REWARD,
    action_of,
    add_contacts,
    advance,
    choose_force,
    choose_move,
    mirror_left_right,
    stop_at_walls,
    thrust_by_forces,
    thrust_by_moves,
    write_offset,
    write_vector,
)
from palaestra.kernels.pairing import pair_nearest
from palaestra.kernels.vectors import distance

RED, BLUE = 0, 1
MOST = 16
MASS_KG = 1.0
START_M = 0.9
GREATEST_SPEED_MPS = 3.0
NEAR_M = 0.02
"""Ways shorter than this the script does not go."""
CLOSE_M = 0.4
"""Blue believes that red wants to be at a landmark when all of red come nearer to it than this."""


PARAMETERS = (
    Parameter("margin_to_win_m", 1.4, -100.0, 100.0, "m", "sum of red's dense rewards above which red has won"),
    Parameter("force_n", 5.0, 0.0, 20.0, "N", "greatest thrust of a player of 1 kg"),
    Parameter("speed_mps", 1.3, 0.1, GREATEST_SPEED_MPS, "m/s", "greatest speed of a player"),
    Parameter("radius_m", 0.1, 0.01, 0.3, "m", "of a player"),
)


def observation_table(others: int, landmarks: int) -> tuple[Field, ...]:
    """What each player sees."""
    far_m, fast = 2 * ARENA_M, GREATEST_SPEED_MPS
    return (
        Field("velocity_mps", (2,), -fast, fast, "m/s", "own velocity, right and up", parts=("x", "y")),
        Field("position_m", (2,), -ARENA_M, ARENA_M, "m", "own position, 0 in the middle", parts=("x", "y")),
        Field(
            "goal",
            (landmarks,),
            0,
            1,
            "1",
            "red sees 1 for the goal and 0 for the rest, blue sees zeros",
            parts=tuple(f"landmark {k}" for k in range(landmarks)),
        ),
        Field("landmark_offset_m", (landmarks, 2), -far_m, far_m, "m", "offsets of the landmarks", parts=("x", "y")),
        Field(
            "other_offset_m", (others, 2), -far_m, far_m, "m", "offsets of teammates, then opponents", parts=("x", "y")
        ),
        Field("other_velocity_mps", (others, 2), -fast, fast, "m/s", "velocities, likewise", parts=("x", "y")),
    )


# --------------------------------------------------------------------------------------------------------------- rules


def reset(s, world):
    """Everything anywhere."""
    s.goal = integer(s, len(s.position_m) - len(s.alive))
    for i in range(len(s.position_m)):
        s.position_m[i, 0], s.position_m[i, 1] = uniform(s, -START_M, START_M), uniform(s, -START_M, START_M)


def step_by_moves(s, world, actions, rewards, scratch):
    """One decision with discrete actions."""
    thrust_by_moves(actions.player, 0, s.parameters.force_n, scratch)
    return play(s, world, rewards, scratch)


def step_by_forces(s, world, actions, rewards, scratch):
    """One decision with continuous actions."""
    thrust_by_forces(actions.player, 0, s.parameters.force_n, scratch)
    return play(s, world, rewards, scratch)


def play(s, world, rewards, scratch):
    """All agents move, then the distances from the goal are compared."""
    agents, red = len(s.alive), world.red
    for i in range(agents):
        scratch.radius_m[i] = s.parameters.radius_m
    for i in range(agents):  # landmarks collide with no agent
        force = scratch.force_n[i]
        force[0], force[1] = add_contacts(s, scratch, i, 0, agents, force[0], force[1])
    for i in range(agents):
        advance(s, scratch, i, MASS_KG, s.parameters.speed_mps)
        stop_at_walls(s, scratch, i)
    goal = agents + s.goal
    gain = nearest_m(s, red, agents, goal) - nearest_m(s, 0, red, goal)
    s.info.margin_m += gain
    if world.reward:
        gain = 0.0
    if s.steps >= s.parameters.horizon:
        margin_m = s.info.margin_m - s.parameters.margin_to_win_m
        s.info.winner = DRAW if margin_m == 0.0 else RED if margin_m > 0.0 else BLUE
        if world.reward and margin_m != 0.0:
            gain = math.copysign(1.0, margin_m)
    for a in range(agents):
        rewards[a] = gain if a < red else -gain
    return False


def nearest_m(s, first, last, goal):
    """Distance of a body from the nearest of the bodies ``first`` to ``last - 1``."""
    nearest = math.inf
    for i in range(first, last):
        nearest = min(nearest, distance(s.position_m, i, goal))
    return nearest


def observe(s, world, observations, scratch):
    """Everything, from where one is; the goal for red alone."""
    agents, red = len(s.alive), world.red
    for i in range(agents):
        seen = observations.player[i]
        write_vector(seen.velocity_mps, s.velocity_mps[i], GREATEST_SPEED_MPS)
        write_vector(seen.position_m, s.position_m[i], ARENA_M)
        for k in range(len(seen.goal)):
            seen.goal[k] = i < red and k == s.goal
            write_offset(seen.landmark_offset_m[k], s, agents + k, i, 2 * ARENA_M)
        row = 0
        for k in range(agents):
            j = k if i < red else (k + red) % agents
            if j != i:
                write_offset(seen.other_offset_m[row], s, j, i, 2 * ARENA_M)
                write_vector(seen.other_velocity_mps[row], s.velocity_mps[j], GREATEST_SPEED_MPS)
                row += 1


# ------------------------------------------------------------------------------------------------------------- scripts


def script_by_moves(s, world, slot, which, actions, scratch):
    """Red goes to the goal, blue to where it thinks that red goes; discrete."""
    dx, dy = way_to_place(s, world, scratch, slot)
    choose_move(actions.player[slot], dx, dy, NEAR_M)


def script_by_forces(s, world, slot, which, actions, scratch):
    """Red goes to the goal, blue to where it thinks that red goes; continuous."""
    dx, dy = way_to_place(s, world, scratch, slot)
    choose_force(actions.player[slot], dx, dy, NEAR_M)


def way_to_place(s, world, scratch, i):
    """From where a player would come to rest to the landmark that it wants.

    Blue goes where all of red seem to go; while they do not agree it splits over the landmarks.
    """
    agents, red = len(s.alive), world.red
    if i < red:
        place = agents + s.goal
    else:
        place = guess(s, red)
        if place < 0:
            pair_nearest(s.position_m, red, agents - red, agents, len(s.position_m) - agents, scratch.place)
            place = scratch.place[i - red]
    dx = s.position_m[place, 0] - s.position_m[i, 0] - COAST_S * s.velocity_mps[i, 0]
    dy = s.position_m[place, 1] - s.position_m[i, 1] - COAST_S * s.velocity_mps[i, 1]
    return dx, dy


def guess(s, red):
    """The landmark near which all of red will come to rest, -1 if there is none."""
    agents, common = len(s.alive), -1
    for i in range(red):
        nearest, least = -1, CLOSE_M * CLOSE_M
        for place in range(agents, len(s.position_m)):
            dx = s.position_m[place, 0] - s.position_m[i, 0] - COAST_S * s.velocity_mps[i, 0]
            dy = s.position_m[place, 1] - s.position_m[i, 1] - COAST_S * s.velocity_mps[i, 1]
            square = dx * dx + dy * dy
            if square < least:
                nearest, least = place, square
        if nearest < 0 or (i > 0 and nearest != common):
            return -1
        common = nearest
    return common


@with_options(
    Option("red", 2, "size of red", low=1, high=MOST),
    Option("blue", 2, "size of blue", low=1, high=MOST),
    Option("landmarks", 2, "how many there are", low=2, high=MOST),
    ACTIONS,
    REWARD,
)
def game(options: Any) -> Game:
    """The rules of `palaestra/TeamKeepAway-v0`."""
    red, blue, landmarks = options.red, options.blue, options.landmarks
    names = tuple(f"red_{k}" for k in range(red)) + tuple(f"blue_{k}" for k in range(blue))
    agents = red + blue
    is_discrete = options.actions == "discrete"
    return Game(
        name="TeamKeepAway",
        roles=(Role("player", names, observation_table(agents - 1, landmarks), (action_of(options.actions),)),),
        state=(
            ("position_m", "f8", (agents + landmarks, 2)),
            ("velocity_mps", "f8", (agents, 2)),
            ("goal", "i8"),
        ),
        reset=reset,
        step=step_by_moves if is_discrete else step_by_forces,
        observe=observe,
        script=script_by_moves if is_discrete else script_by_forces,
        scripts=("default",),
        parameters=PARAMETERS,
        horizon=50,
        info=(Field("margin_m", (), -1e6, 1e6, "m", "sum of red's dense rewards so far", "f8"),),
        scratch=(("force_n", "f8", (agents, 2)), ("radius_m", "f8", (agents,)), ("place", "i8", (blue,))),
        world=options.numbers,
        zero_sum=True,
        determinism="per-platform",
        default_opponent="default",
        render="palaestra.games.teams.render_particles:draw_keep_away",
        mirror=mirror_left_right,
    )
