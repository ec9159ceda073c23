"""simple_tag of mpe2, bit for bit: ``rules="mpe"`` of `palaestra.games.teams.tag`, to compare with published results.

Chasers are mpe2's adversaries, runners its good agents. From the same state the same actions lead to the same states as
in mpe2 1.1 (float64, but for forces below 4e-19 N, which are left out), the same observations and rewards (rounded to
float32), but for what is clipped: mpe2 has no bounds, here positions end 20 m from the middle. Each chaser gets 10 for
every touch of any chaser and any runner. A runner loses 10 for each chaser that touches it, and for each axis on which
it is farther than 0.9 m from the middle a growing penalty. No walls, no zero sum.
"""

from __future__ import annotations

import math
from typing import Any

from palaestra.game import Field, Game, Parameter, Role, uniform
from palaestra.games.teams.particles import (
    OPEN_M,
    OPEN_MPS,
    action_of,
    add_contacts,
    advance,
    thrust_by_forces,
    thrust_by_moves,
    touch,
    write_offset,
    write_vector,
)

CHASERS, RUNNERS = 0, 1
"""Numbers of the teams."""
MASS_KG = 1.0
TOUCH_REWARD = 10.0
START_M, OBSTACLE_START_M = 1.0, 0.9
FREE_M, EDGE_M, GREATEST_PENALTY = 0.9, 1.0, 10.0
GREATEST_SPEED_MPS = 2.0

BODIES = (
    Parameter("chaser_speed_mps", 1.0, 0.1, GREATEST_SPEED_MPS, "m/s", "greatest speed of a chaser (mpe2)"),
    Parameter("runner_speed_mps", 1.3, 0.1, GREATEST_SPEED_MPS, "m/s", "greatest speed of a runner (mpe2)"),
    Parameter("chaser_force_n", 3.0, 0.0, 20.0, "N", "greatest thrust of a chaser (mpe2); all weigh 1 kg"),
    Parameter("runner_force_n", 4.0, 0.0, 20.0, "N", "greatest thrust of a runner (mpe2)"),
    Parameter("chaser_radius_m", 0.075, 0.01, 0.3, "m", "of a chaser (mpe2)"),
    Parameter("runner_radius_m", 0.05, 0.01, 0.3, "m", "of a runner (mpe2)"),
    Parameter("obstacle_radius_m", 0.2, 0.01, 0.5, "m", "of an obstacle (mpe2)"),
)


def observation_table(others: int, runners: int, obstacles: int) -> tuple[Field, ...]:
    """What mpe2 shows an agent, in its order; ``runners`` are the others whose velocities are seen."""
    return (
        Field("velocity_mps", (2,), -OPEN_MPS, OPEN_MPS, "m/s", "own velocity, right and up", parts=("x", "y")),
        Field("position_m", (2,), -OPEN_M, OPEN_M, "m", "own position", parts=("x", "y")),
        Field(
            "obstacle_offset_m",
            (obstacles, 2),
            -2 * OPEN_M,
            2 * OPEN_M,
            "m",
            "offsets of the obstacles",
            parts=("x", "y"),
        ),
        Field(
            "other_offset_m",
            (others, 2),
            -2 * OPEN_M,
            2 * OPEN_M,
            "m",
            "offsets of chasers, then runners",
            parts=("x", "y"),
        ),
        Field(
            "runner_velocity_mps",
            (runners, 2),
            -OPEN_MPS,
            OPEN_MPS,
            "m/s",
            "velocities of the other runners",
            parts=("x", "y"),
        ),
    )


def count_chasers(s):
    """Chasers are the slots and bodies 0 to n - 1, runners those from n on."""
    return len(s.alive) - len(s.touched)


def set_radii(s, scratch):
    """Radii of all bodies."""
    chasers = count_chasers(s)
    for i in range(len(s.position_m)):
        if i < chasers:
            scratch.radius_m[i] = s.parameters.chaser_radius_m
        elif i < len(s.alive):
            scratch.radius_m[i] = s.parameters.runner_radius_m
        else:
            scratch.radius_m[i] = s.parameters.obstacle_radius_m


def move_all(s, scratch):
    """All forces come from the same moment, then all agents move. Thrusts are in ``scratch.force_n`` already."""
    chasers, agents, bodies = count_chasers(s), len(s.alive), len(s.position_m)
    for i in range(agents):
        force = scratch.force_n[i]
        force[0], force[1] = add_contacts(s, scratch, i, 0, bodies, force[0], force[1])
    for i in range(agents):
        greatest_mps = s.parameters.chaser_speed_mps if i < chasers else s.parameters.runner_speed_mps
        advance(s, scratch, i, MASS_KG, greatest_mps)


def reset(s, world):
    """All agents anywhere in the square, at rest."""
    agents = len(s.alive)
    for i in range(len(s.position_m)):
        limit_m = START_M if i < agents else OBSTACLE_START_M
        s.position_m[i, 0] = uniform(s, -limit_m, limit_m)
        s.position_m[i, 1] = uniform(s, -limit_m, limit_m)


def step_by_moves(s, world, actions, rewards, scratch):
    """One decision with discrete actions."""
    thrust_by_moves(actions.chaser, 0, s.parameters.chaser_force_n, scratch)
    thrust_by_moves(actions.runner, len(actions.chaser), s.parameters.runner_force_n, scratch)
    return play(s, rewards, scratch)


def step_by_forces(s, world, actions, rewards, scratch):
    """One decision with continuous actions."""
    thrust_by_forces(actions.chaser, 0, s.parameters.chaser_force_n, scratch)
    thrust_by_forces(actions.runner, len(actions.chaser), s.parameters.runner_force_n, scratch)
    return play(s, rewards, scratch)


def play(s, rewards, scratch):
    """All agents move, then touches and distance from the middle are paid."""
    set_radii(s, scratch)
    move_all(s, scratch)
    chasers, agents = count_chasers(s), len(s.alive)
    gain = 0.0
    for j in range(chasers, agents):
        loss = 0.0
        for i in range(chasers):
            loss += TOUCH_REWARD * touch(s, scratch, i, j)
        gain += loss
        s.touched[j - chasers] = loss > 0.0
        s.info.tags += loss > 0.0
        rewards[j] = -loss - outside_penalty(s.position_m[j, 0]) - outside_penalty(s.position_m[j, 1])
    for i in range(chasers):
        rewards[i] = gain
    if s.steps >= s.parameters.horizon:
        s.info.winner = CHASERS if s.info.tags > 0 else RUNNERS
    return False


def outside_penalty(coordinate_m):
    """What a runner loses for its distance from the middle on one axis."""
    x = abs(coordinate_m)
    if x < FREE_M:
        return 0.0
    if x < EDGE_M:
        return (x - FREE_M) * 10.0
    return min(math.exp(2.0 * x - 2.0), GREATEST_PENALTY)


def observe(s, world, observations, scratch):
    """Everything, from where one is."""
    chasers = count_chasers(s)
    for i in range(chasers):
        write_observations(observations.chaser[i], s, i)
    for i in range(chasers, len(s.alive)):
        write_observations(observations.runner[i - chasers], s, i)


def write_observations(seen, s, i):
    """What one agent sees."""
    chasers, agents = count_chasers(s), len(s.alive)
    write_vector(seen.velocity_mps, s.velocity_mps[i], OPEN_MPS)
    write_vector(seen.position_m, s.position_m[i], OPEN_M)
    for k in range(len(seen.obstacle_offset_m)):
        write_offset(seen.obstacle_offset_m[k], s, agents + k, i, 2 * OPEN_M)
    row, runner = 0, 0
    for j in range(agents):
        if j != i:
            write_offset(seen.other_offset_m[row], s, j, i, 2 * OPEN_M)
            row += 1
            if j >= chasers:
                write_vector(seen.runner_velocity_mps[runner], s.velocity_mps[j], OPEN_MPS)
                runner += 1


def game(options: Any) -> Game:
    """The rules of simple_tag; options as in `palaestra.games.teams.tag.game`."""
    chasers, runners, obstacles = options.chasers, options.runners, options.obstacles
    others = chasers + runners - 1
    action = (action_of(options.actions),)
    red, blue = (tuple(f"{team}_{k}" for k in range(n)) for team, n in (("red", chasers), ("blue", runners)))
    return Game(
        name="TeamTag",
        roles=(
            Role("chaser", red, observation_table(others, runners, obstacles), action),
            Role("runner", blue, observation_table(others, runners - 1, obstacles), action),
        ),
        state=(
            ("position_m", "f8", (others + 1 + obstacles, 2)),
            ("velocity_mps", "f8", (others + 1, 2)),
            ("touched", "u1", (runners,)),
        ),
        reset=reset,
        step=step_by_moves if options.actions == "discrete" else step_by_forces,
        observe=observe,
        parameters=BODIES,
        horizon=25,
        info=(Field("tags", (), 0, 2**53, "1", "tags so far", "i8"),),
        scratch=(("force_n", "f8", (others + 1, 2)), ("radius_m", "f8", (others + 1 + obstacles,))),
        determinism="per-platform",
        render="palaestra.games.teams.render_particles:draw_tag",
    )
