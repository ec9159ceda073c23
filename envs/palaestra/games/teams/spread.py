"""Spread: three agents cover three landmarks without running into each other.

## Description

The cooperative navigation of Lowe et al. ("Multi-agent actor-critic for mixed cooperative-competitive environments",
NeurIPS 2017). Agents are discs that thrust, drift and push each other away (`palaestra.games.teams.particles`) on an
endless plane; no landmark is assigned to an agent. States follow mpe2's `simple_spread_v3` bit for bit, but for forces
below 4e-19 N, which are left out. A decision is 0.1 s.

## Action Space

<!-- table: action -->

With ``actions="continuous"`` the choice `move` is replaced by two numbers in [-1, 1], `force`: thrust to the right and
up as a share of the greatest.

## Observation Space

An offset is the other's position minus one's own. What lies beyond the bounds is clipped; there are none in mpe2.

<!-- table: observation -->

## Rewards

``reward="dense"``: with the distance of each landmark from the agent nearest to it, and with the number of other agents
that an agent overlaps with, averaged over the agents, in each decision ::

    reward = -(1 - local_ratio) * sum of the distances - local_ratio * mean number of overlaps

``reward="sparse"``: +1 in each decision after which every landmark has an agent within `cover_radius_m`, else 0.
``reward="first"``: +1 after the first such decision, which ends the match; 0 before.
``reward="event"``: the change of the number of covered landmarks, which is 0 before the first decision: +1 for each
further one, -1 for each that is left. So the return is the number of landmarks that are covered at the end.

`SparseSpread-2-v0`, `SparseSpread-v0` (three agents) and `SparseSpread-5-v0` are tasks of exploration: continuous
actions, ``reward="first"``, radii of 0.2, 0.2 and 0.3 m. Random play solves 1.8, 0.39 and 0.97 % of the matches, the
script 99.9, 99.2 and 97.8 % (100,000 matches each). The dense task beside each is `Spread-v0` with as many agents and
continuous actions.

## Starting State

Agents and landmarks are anywhere in the square of 2 m around the origin, uniformly, at rest.

## Episode End

Truncated after 25 decisions. With ``reward="first"`` terminated when all landmarks are covered (`solved`). The winner
is the team if all landmarks are covered at the end, else there is none; the info `covered` counts the landmarks that
are covered now.

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
from palaestra.games.teams.particles import (
    ACTIONS,
    COAST_S,
    GOAL_REWARD,
    OPEN_M,
    OPEN_MPS,
    action_of,
    add_contacts,
    advance,
    are_goals_paid,
    choose_force,
    choose_move,
    end_reasons_of,
    mirror_left_right,
    pay_goals,
    thrust_by_forces,
    thrust_by_moves,
    touch,
    write_offset,
    write_vector,
)
from palaestra.kernels.pairing import pair_nearest
from palaestra.kernels.vectors import distance

MASS_KG = 1.0
START_M = 1.0
MOST = 16
SILENCE = 2
"""Length of an agent's message in mpe2."""
NEAR_M = 0.05
"""Ways shorter than this the script does not go."""

PARAMETERS = (
    Parameter("local_ratio", 0.5, 0.0, 1.0, "1", "weight of the overlaps; that of the distances is the rest (mpe2)"),
    Parameter("cover_radius_m", 0.15, 0.01, 1.0, "m", "distance within which a landmark is covered"),
    Parameter("radius_m", 0.15, 0.01, 0.3, "m", "of an agent (mpe2)"),
    Parameter("force_n", 5.0, 0.0, 20.0, "N", "greatest thrust of an agent, which weighs 1 kg (mpe2)"),
)


def observation_table(agents: int, has_silence: bool) -> tuple[Field, ...]:
    """What each agent sees, in the order of mpe2."""
    fields = (
        Field("velocity_mps", (2,), -OPEN_MPS, OPEN_MPS, "m/s", "own velocity, right and up", parts=("x", "y")),
        Field("position_m", (2,), -OPEN_M, OPEN_M, "m", "own position", parts=("x", "y")),
        Field(
            "landmark_offset_m", (agents, 2), -2 * OPEN_M, 2 * OPEN_M, "m", "offsets of the landmarks", parts=("x", "y")
        ),
        Field(
            "other_offset_m",
            (agents - 1, 2),
            -2 * OPEN_M,
            2 * OPEN_M,
            "m",
            "offsets of the other agents",
            parts=("x", "y"),
        ),
    )
    silence = Field("silence", (agents - 1, SILENCE), 0, 1, "1", "messages of the others: always 0")
    return (*fields, silence) if has_silence else fields


# --------------------------------------------------------------------------------------------------------------- rules


def reset(s, world):
    """Everything anywhere in the square."""
    for i in range(len(s.position_m)):
        s.position_m[i, 0], s.position_m[i, 1] = uniform(s, -START_M, START_M), uniform(s, -START_M, START_M)


def step_by_moves(s, world, actions, rewards, scratch):
    """One decision with discrete actions."""
    thrust_by_moves(actions.agent, 0, s.parameters.force_n, scratch)
    return play(s, world, rewards, scratch)


def step_by_forces(s, world, actions, rewards, scratch):
    """One decision with continuous actions."""
    thrust_by_forces(actions.agent, 0, s.parameters.force_n, scratch)
    return play(s, world, rewards, scratch)


def goals_by_moves(s, world, actions, rewards, scratch):
    """One decision with discrete actions, paid by ``reward="first"`` or ``"event"``."""
    before = s.info.covered
    step_by_moves(s, world, actions, rewards, scratch)
    return pay_goals(s, world, rewards, before, s.info.covered, len(s.alive))


def goals_by_forces(s, world, actions, rewards, scratch):
    """The same with continuous actions."""
    before = s.info.covered
    step_by_forces(s, world, actions, rewards, scratch)
    return pay_goals(s, world, rewards, before, s.info.covered, len(s.alive))


def play(s, world, rewards, scratch):
    """All agents move, then distances and overlaps are paid."""
    agents = len(s.alive)
    for i in range(agents):
        scratch.radius_m[i] = s.parameters.radius_m
    for i in range(agents):  # landmarks collide with no agent
        force = scratch.force_n[i]
        force[0], force[1] = add_contacts(s, scratch, i, 0, agents, force[0], force[1])
    for i in range(agents):
        advance(s, scratch, i, MASS_KG, math.inf)
    pay(s, world, rewards, scratch)
    if s.steps >= s.parameters.horizon and s.info.covered == agents:
        s.info.winner = 0
    return False


def pay(s, world, rewards, scratch):
    """Rewards, and which landmarks are covered."""
    agents, covered, shared, overlaps = len(s.alive), 0, 0.0, 0
    for j in range(agents, 2 * agents):
        nearest_m = math.inf
        for i in range(agents):
            nearest_m = min(nearest_m, distance(s.position_m, i, j))
        shared -= nearest_m
        s.covered[j - agents] = nearest_m <= s.parameters.cover_radius_m
        covered += nearest_m <= s.parameters.cover_radius_m
    s.info.covered = covered
    ratio = s.parameters.local_ratio
    for i in range(agents):
        own = 0
        for j in range(agents):
            own += i != j and touch(s, scratch, i, j)
        overlaps += own
        rewards[i] = shared * (1.0 - ratio) - own * ratio
    if world.rules == 0:
        common = shared * (1.0 - ratio) - overlaps / agents * ratio
        for i in range(agents):
            rewards[i] = 1.0 * (covered == agents) if world.reward else common


def observe(s, world, observations, scratch):
    """Everything, from where one is."""
    agents = len(s.alive)
    for i in range(agents):
        seen = observations.agent[i]
        write_vector(seen.velocity_mps, s.velocity_mps[i], OPEN_MPS)
        write_vector(seen.position_m, s.position_m[i], OPEN_M)
        for k in range(agents):
            write_offset(seen.landmark_offset_m[k], s, agents + k, i, 2 * OPEN_M)
        row = 0
        for j in range(agents):
            if j != i:
                write_offset(seen.other_offset_m[row], s, j, i, 2 * OPEN_M)
                row += 1


# ------------------------------------------------------------------------------------------------------------- scripts


def script_by_moves(s, world, slot, which, actions, scratch):
    """Goes to its landmark; discrete."""
    dx, dy = way_to_landmark(s, scratch, slot)
    choose_move(actions.agent[slot], dx, dy, NEAR_M)


def script_by_forces(s, world, slot, which, actions, scratch):
    """Goes to its landmark; continuous."""
    dx, dy = way_to_landmark(s, scratch, slot)
    choose_force(actions.agent[slot], dx, dy, NEAR_M)


def way_to_landmark(s, scratch, slot):
    """From where an agent would come to rest to its landmark: the nearest pairs are formed first."""
    agents = len(s.alive)
    pair_nearest(s.position_m, 0, agents, agents, agents, scratch.landmark)
    j = scratch.landmark[slot]
    dx = s.position_m[j, 0] - s.position_m[slot, 0] - COAST_S * s.velocity_mps[slot, 0]
    dy = s.position_m[j, 1] - s.position_m[slot, 1] - COAST_S * s.velocity_mps[slot, 1]
    return dx, dy


@with_options(
    Option("agents", 3, "how many agents and landmarks", low=1, high=MOST),
    ACTIONS,
    Option(
        "rules",
        "team",
        "`mpe` has the observations and rewards of mpe2, rounded to float32: observations end with the silence of the "
        "others (two zeros each), and each agent pays for its own overlaps instead of their mean",
        words=("team", "mpe"),
    ),
    replace(GOAL_REWARD, only={"rules": "team"}),
)
def game(options: Any) -> Game:
    """The rules of `palaestra/Spread-v0`."""
    agents = options.agents
    names = tuple(f"agent_{k}" for k in range(agents))
    is_discrete = options.actions == "discrete"
    pays_goals = are_goals_paid(options.reward)
    by_moves, by_forces = (goals_by_moves, goals_by_forces) if pays_goals else (step_by_moves, step_by_forces)
    return Game(
        name="Spread",
        roles=(Role("agent", names, observation_table(agents, options.rules == "mpe"), (action_of(options.actions),)),),
        state=(
            ("position_m", "f8", (2 * agents, 2)),
            ("velocity_mps", "f8", (agents, 2)),
            ("covered", "u1", (agents,)),
        ),
        reset=reset,
        step=by_moves if is_discrete else by_forces,
        observe=observe,
        script=script_by_moves if is_discrete else script_by_forces,
        scripts=("default",),
        parameters=PARAMETERS,
        horizon=25,
        end_reasons=end_reasons_of(options.reward),
        info=(Field("covered", (), 0, MOST, "1", "landmarks that are covered now", "i8"),),
        scratch=(("force_n", "f8", (agents, 2)), ("radius_m", "f8", (agents,)), ("landmark", "i8", (agents,))),
        world=options.numbers,
        determinism="per-platform",
        default_opponent="default",
        render="palaestra.games.teams.render_particles:draw_spread",
        mirror=mirror_left_right,
    )
