"""TeamPush: two teams push one heavy puck towards each other's end of a walled square.

## Description

A zero-sum game of two equal teams after the "push" tasks of the multi-agent particle environment (Lowe et al., NeurIPS
2017), with nothing hidden: all are discs that thrust, drift and push each other away
(`palaestra.games.teams.particles`), and in the middle lies a puck that weighs as much as three of them. Red pushes it
to the right end, blue to the left. One alone moves it slowly, two together twice as fast, and a player on its wrong
side must go around. The arena is the square of 2 m around the origin; a wall sets the velocity into it to zero. A
decision is 0.1 s.

Both teams see and steer as if they attacked to the right, so that one network can play all agents of both.

## Action Space

<!-- table: action -->

With ``actions="continuous"`` the choice `move` is replaced by two numbers in [-1, 1], `force`: thrust forward and up as
a share of the greatest.

## Observation Space

Forward is where one's team attacks. An offset is the other's position minus one's own. Teammates come before opponents,
each in the order of their names.

<!-- table: observation -->

## Rewards

``reward="dense"``: how far the puck came towards the opponents' end in this decision, as a share of the way from the
middle to the goal line: the change of a potential, so a match from the middle to a goal pays 1 in all, however long it
takes.
``reward="sparse"``: +1 for the goal. In both the other team gets the same with the other sign.

## Starting State

The puck lies in the middle, each team starts anywhere 0.4 to 0.9 m from the middle line on its own side and up to 0.9 m
above or below; everything is at rest.

## Episode End

A rule ends the match when the middle of the puck has passed a goal line, `goal_m` from the middle (``goal``): the team
that attacks there has won. Truncated after 100 decisions: then the team has won into whose opponents' half the puck has
come, to the left or right of the middle line.

## Arguments

<!-- table: options -->

<!-- table: parameters -->

## Version History

* v0: first version.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from palaestra.game import DRAW, Choice, Field, Game, Option, Parameter, Role, uniform, with_options
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
    stop_at_walls,
    thrust_by_forces,
    thrust_by_moves,
)
from palaestra.kernels.scalars import clip

RED, BLUE = 0, 1
GOAL = 2
"""Number of the end reason."""
MOST = 16
MASS_KG = 1.0
START_NEAR_M, START_FAR_M = 0.4, 0.9
GREATEST_SPEED_MPS = 3.0

PARAMETERS = (
    Parameter("goal_m", 0.7, 0.1, 0.8, "m", "distance of the goal lines from the middle"),
    Parameter("force_n", 5.0, 0.0, 20.0, "N", "greatest thrust of a player of 1 kg"),
    Parameter("speed_mps", 1.3, 0.1, GREATEST_SPEED_MPS, "m/s", "greatest speed of a player"),
    Parameter("radius_m", 0.075, 0.01, 0.3, "m", "of a player"),
    Parameter("puck_mass_kg", 3.0, 0.1, 100.0, "kg", "mass of the puck"),
    Parameter("puck_radius_m", 0.15, 0.01, 0.2, "m", "of the puck"),
)


def observation_table(players: int) -> tuple[Field, ...]:
    """What each player sees."""
    far_m, fast = 2 * ARENA_M, GREATEST_SPEED_MPS
    return (
        Field("velocity_mps", (2,), -fast, fast, "m/s", "own velocity, forward and up", parts=("x", "y")),
        Field("position_m", (2,), -ARENA_M, ARENA_M, "m", "own position, 0 in the middle", parts=("x", "y")),
        Field("puck_offset_m", (2,), -far_m, far_m, "m", "offset of the puck", parts=("x", "y")),
        Field("puck_velocity_mps", (2,), -fast, fast, "m/s", "velocity of the puck", parts=("x", "y")),
        Field(
            "other_offset_m",
            (2 * players - 1, 2),
            -far_m,
            far_m,
            "m",
            "offsets of teammates, then opponents",
            parts=("x", "y"),
        ),
        Field("other_velocity_mps", (2 * players - 1, 2), -fast, fast, "m/s", "velocities, likewise", parts=("x", "y")),
    )


# --------------------------------------------------------------------------------------------------------------- rules


def side_of(s, i):
    """1 for red, which attacks to the right, -1 for blue."""
    return 1.0 if 2 * i < len(s.alive) else -1.0


def reset(s, world):
    """All players on their own side, the puck in the middle."""
    for i in range(len(s.alive)):
        s.position_m[i, 0] = -side_of(s, i) * uniform(s, START_NEAR_M, START_FAR_M)
        s.position_m[i, 1] = uniform(s, -START_FAR_M, START_FAR_M)


def step_by_moves(s, world, actions, rewards, scratch):
    """One decision with discrete actions."""
    thrust_by_moves(actions.player, 0, s.parameters.force_n, scratch)
    return play(s, world, rewards, scratch)


def step_by_forces(s, world, actions, rewards, scratch):
    """One decision with continuous actions."""
    thrust_by_forces(actions.player, 0, s.parameters.force_n, scratch)
    return play(s, world, rewards, scratch)


def play(s, world, rewards, scratch):
    """Everything moves, then the way of the puck is paid."""
    agents = len(s.alive)
    before_m = s.position_m[agents, 0]
    move_all(s, scratch)
    puck_m, goal_m = s.position_m[agents, 0], s.parameters.goal_m
    is_goal = abs(puck_m) >= goal_m
    if is_goal:
        s.info.end_reason = GOAL
    if is_goal or s.steps >= s.parameters.horizon:
        s.info.winner = DRAW if puck_m == 0.0 else RED if puck_m > 0.0 else BLUE
    if world.reward == 0:
        gain = (puck_m - before_m) / goal_m
    elif is_goal:
        gain = 1.0 if puck_m > 0.0 else -1.0
    else:
        gain = 0.0
    for a in range(agents):
        rewards[a] = side_of(s, a) * gain
    return is_goal


def move_all(s, scratch):
    """All forces come from the same moment, then all bodies move.

    Pushes are added up team by team and the two sums then, so that no team's are rounded before the other's.
    """
    agents = len(s.alive)
    team, puck = agents // 2, agents
    for i in range(agents):
        scratch.radius_m[i] = s.parameters.radius_m
        scratch.force_n[i, 0] *= side_of(s, i)
    scratch.radius_m[puck] = s.parameters.puck_radius_m
    scratch.force_n[puck, 0] = scratch.force_n[puck, 1] = 0.0
    for i in range(agents + 1):
        red_x, red_y = add_contacts(s, scratch, i, 0, team, 0.0, 0.0)
        blue_x, blue_y = add_contacts(s, scratch, i, team, agents, 0.0, 0.0)
        puck_x, puck_y = add_contacts(s, scratch, i, puck, puck + 1, 0.0, 0.0)
        scratch.force_n[i, 0] += (red_x + blue_x) + puck_x
        scratch.force_n[i, 1] += (red_y + blue_y) + puck_y
    for i in range(agents + 1):
        mass_kg = s.parameters.puck_mass_kg if i == puck else MASS_KG
        advance(s, scratch, i, mass_kg, GREATEST_SPEED_MPS if i == puck else s.parameters.speed_mps)
        stop_at_walls(s, scratch, i)


def observe(s, world, observations, scratch):
    """Everything, from where one is, attacking to the right."""
    agents = len(s.alive)
    team, puck = agents // 2, agents
    for i in range(agents):
        seen, side = observations.player[i], side_of(s, i)
        write_sided(seen.velocity_mps, side, s.velocity_mps[i], GREATEST_SPEED_MPS)
        write_sided(seen.position_m, side, s.position_m[i], ARENA_M)
        write_sided_offset(seen.puck_offset_m, side, s, puck, i)
        write_sided(seen.puck_velocity_mps, side, s.velocity_mps[puck], GREATEST_SPEED_MPS)
        row, first = 0, 0 if i < team else team
        for k in range(agents):
            j = (first + k) % agents
            if j != i:
                write_sided_offset(seen.other_offset_m[row], side, s, j, i)
                write_sided(seen.other_velocity_mps[row], side, s.velocity_mps[j], GREATEST_SPEED_MPS)
                row += 1


def write_sided(out, side, vector, limit):
    """Writes a vector in the frame of a team that attacks to that side, clipped."""
    out[0], out[1] = clip(side * vector[0], -limit, limit), clip(vector[1], -limit, limit)


def write_sided_offset(out, side, s, of, by):
    """Writes where body ``of`` is from body ``by``, likewise."""
    out[0] = clip(side * (s.position_m[of, 0] - s.position_m[by, 0]), -2 * ARENA_M, 2 * ARENA_M)
    out[1] = clip(s.position_m[of, 1] - s.position_m[by, 1], -2 * ARENA_M, 2 * ARENA_M)


# ------------------------------------------------------------------------------------------------------------- scripts

CLEARANCE_M = 0.1


def script_by_moves(s, world, slot, which, actions, scratch):
    """Goes behind the puck and pushes; discrete."""
    forward, up = way_to_push(s, slot)
    choose_move(actions.player[slot], forward, up, 0.0)


def script_by_forces(s, world, slot, which, actions, scratch):
    """Goes behind the puck and pushes; continuous."""
    forward, up = way_to_push(s, slot)
    choose_force(actions.player[slot], forward, up, 1e-3)


def way_to_push(s, i):
    """The way that a player should go, forward and up, less its own drift.

    Teammates ram the puck side by side. A player that has hit it or is ahead of it goes back behind it, on its own
    side.
    """
    agents = len(s.alive)
    team, puck, side = agents // 2, agents, side_of(s, i)
    reach_m = s.parameters.radius_m + s.parameters.puck_radius_m
    ahead_m = side * (s.position_m[puck, 0] - s.position_m[i, 0])
    above_m = s.position_m[puck, 1] - s.position_m[i, 1]
    lane_m = (i % team - 0.5 * (team - 1)) * min(2.0 * s.parameters.radius_m, 2.0 * reach_m / (team + 1))
    drift_forward_m = COAST_S * side * s.velocity_mps[i, 0]
    drift_up_m = COAST_S * s.velocity_mps[i, 1]
    if ahead_m > reach_m and abs(above_m) < reach_m:  # ram
        return 2.0 * reach_m, above_m + lane_m - drift_up_m
    if ahead_m > reach_m:
        return ahead_m - reach_m - CLEARANCE_M - drift_forward_m, above_m + lane_m - drift_up_m
    detour_m = reach_m + CLEARANCE_M
    up_m = above_m - detour_m if above_m > 0.0 else above_m + detour_m
    return ahead_m - detour_m - drift_forward_m, up_m - drift_up_m


def mirror(states: Any, actions: Any) -> None:
    """The teams change ends and places: what red did, blue does."""
    agents = states["alive"].shape[1]
    order = np.roll(np.arange(agents), agents // 2)
    for name in ("position_m", "velocity_mps"):
        states[name][:, :agents] = states[name][:, order]
        states[name][..., 0] *= -1.0
    for name in ("alive", "acting"):
        states[name][...] = states[name][:, order]
    actions["player"][...] = actions["player"][:, order]


def sided_action(actions: str) -> Any:
    """`particles.action_of` with the names of a team that attacks to the right."""
    action = action_of(actions)
    if isinstance(action, Choice):
        return replace(action, meanings=("stay", "back", "forward", "down", "up"))
    return replace(action, about="thrust forward and up, as a share of the greatest")


@with_options(Option("players", 2, "size of each team", low=1, high=MOST), ACTIONS, REWARD)
def game(options: Any) -> Game:
    """The rules of `palaestra/TeamPush-v0`."""
    players = options.players
    names = tuple(f"{team}_{k}" for team in ("red", "blue") for k in range(players))
    bodies = 2 * players + 1
    is_discrete = options.actions == "discrete"
    return Game(
        name="TeamPush",
        roles=(Role("player", names, observation_table(players), (sided_action(options.actions),)),),
        state=(("position_m", "f8", (bodies, 2)), ("velocity_mps", "f8", (bodies, 2))),
        reset=reset,
        step=step_by_moves if is_discrete else step_by_forces,
        observe=observe,
        script=script_by_moves if is_discrete else script_by_forces,
        scripts=("default",),
        parameters=PARAMETERS,
        horizon=100,
        end_reasons=("goal",),
        scratch=(("force_n", "f8", (bodies, 2)), ("radius_m", "f8", (bodies,))),
        world=options.numbers,
        zero_sum=True,
        determinism="per-platform",
        default_opponent="default",
        render="palaestra.games.teams.render_particles:draw_push",
        symmetric_teams=True,
        mirror=mirror,
    )
