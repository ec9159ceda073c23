"""Physics of points: discs that thrust, drift, and push each other away. What the particle games share.

The world of the multi-agent particle environment (Mordatch and Abbeel, "Emergence of grounded compositional language in
multi-agent populations", AAAI 2018; Lowe et al., "Multi-agent actor-critic for mixed cooperative-competitive
environments", NeurIPS 2017), with the constants of its maintained form, mpe2. In each decision of `PERIOD_S` a body of
mass m with velocity v under the force F is moved by Euler's method, the old velocity first::

    x <- x + v * PERIOD_S
    v <- v * (1 - DAMPING) + F / m * PERIOD_S           then cut to the greatest speed of its kind

Two bodies at a distance d whose radii add up to r push each other away along the line between them by ::

    STIFFNESS_N_PER_M * MARGIN_M * ln(1 + exp((r - d) / MARGIN_M))

which is a spring where they overlap, smoothed over the margin. Forces below exp(-40) of that are left out: 4e-19 N.

Records: ``s.position_m`` float64 [B + F, 2] of the B bodies that move and the F that do not, ``s.velocity_mps`` float64
[B, 2], ``scratch.radius_m`` float64 [B + F], ``scratch.force_n`` float64 [B, 2]. The origin is the middle of the arena.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from palaestra.game import ActionField, Choice, Continuous, Option
from palaestra.kernels.scalars import clip
from palaestra.kernels.vectors import distance

PERIOD_S = 0.1
DAMPING = 0.25
"""Share of the velocity that is lost in each decision."""
STIFFNESS_N_PER_M = 100.0
MARGIN_M = 1e-3
NEGLIGIBLE_M = 40.0 * MARGIN_M
"""Gap between two bodies from which on they do not push each other."""
COAST_S = PERIOD_S / DAMPING
"""A body without thrust comes to rest after this time at its present speed (the sum of a geometric series)."""
ARENA_M = 1.0
"""Half the side of the square that the games are played in."""
OPEN_M, OPEN_MPS = 20.0, 20.0
"""Bounds of what is seen where there are no walls: mpe2 has none, a random walk of hundreds of decisions stays in."""

ACTIONS = Option("actions", "discrete", "thrust in one of four directions, or in any", words=("discrete", "continuous"))
REWARD = Option("reward", "dense", "what is paid: see Rewards", words=("dense", "sparse"))
GOAL_REWARD = replace(REWARD, words=("dense", "sparse", "first", "event"))
"""Of the cooperative games, whose task is solved when a number of goals is reached."""
FIRST = 2
"""Number of the word in `GOAL_REWARD`."""
SOLVED = 2
"""Number of the end reason."""
MOVE = Choice("move", 5, ("stay", "left", "right", "down", "up"), "direction of the thrust")
FORCE = Continuous(
    "force", (2,), -1.0, 1.0, "1", "thrust to the right and up, as a share of the greatest", parts=("right", "up")
)
DIRECTION_X, DIRECTION_Y = (0.0, -1.0, 1.0, 0.0, 0.0), (0.0, 0.0, 0.0, -1.0, 1.0)
"""Of the moves."""


def action_of(actions: str) -> ActionField:
    """How agents thrust: `MOVE` or `FORCE`."""
    return MOVE if actions == "discrete" else FORCE


# ------------------------------------------------------------------------------------------------------------- physics


def thrust_by_moves(players, first, greatest_n, scratch):
    """Thrust of the bodies ``first``, ``first + 1``, ... whose actions are ``players[k].move``."""
    for k in range(len(players)):
        scratch.force_n[first + k, 0] = DIRECTION_X[players[k].move] * greatest_n
        scratch.force_n[first + k, 1] = DIRECTION_Y[players[k].move] * greatest_n


def thrust_by_forces(players, first, greatest_n, scratch):
    """Thrust of the bodies ``first``, ``first + 1``, ... whose actions are ``players[k].force``."""
    for k in range(len(players)):
        scratch.force_n[first + k, 0] = players[k].force[0] * greatest_n
        scratch.force_n[first + k, 1] = players[k].force[1] * greatest_n


def touch(s, scratch, i, j):
    """Whether two bodies overlap."""
    return distance(s.position_m, i, j) < scratch.radius_m[i] + scratch.radius_m[j]


def overlap_m(gap_m):
    """Smooth overlap of two bodies with a gap between them (negative: they do overlap)."""
    exponent = -gap_m / MARGIN_M
    if exponent < 0.0:
        return math.log1p(math.exp(exponent)) * MARGIN_M
    return (exponent + math.log1p(math.exp(-exponent))) * MARGIN_M


def add_contacts(s, scratch, i, first, last, force_x, force_y):
    """A force plus what the bodies ``first`` to ``last - 1`` push body i with, added one after the other.

    Two bodies in exactly the same place do not push each other: there is no line between them.
    """
    x, y, radius_m = s.position_m[i, 0], s.position_m[i, 1], scratch.radius_m[i]
    for j in range(first, last):
        dx, dy = x - s.position_m[j, 0], y - s.position_m[j, 1]
        reach_m = radius_m + scratch.radius_m[j]
        far_m = reach_m + NEGLIGIBLE_M
        square = dx * dx + dy * dy
        if 0.0 < square < far_m * far_m:  # never itself
            distance = math.sqrt(square)
            overlap = overlap_m(distance - reach_m)
            force_x += STIFFNESS_N_PER_M * dx / distance * overlap
            force_y += STIFFNESS_N_PER_M * dy / distance * overlap
    return force_x, force_y


def advance(s, scratch, i, mass_kg, greatest_mps):
    """Moves a body for one decision by the force on it."""
    force = scratch.force_n[i]
    s.position_m[i, 0] += s.velocity_mps[i, 0] * PERIOD_S
    s.position_m[i, 1] += s.velocity_mps[i, 1] * PERIOD_S
    vx = s.velocity_mps[i, 0] * (1.0 - DAMPING) + force[0] / mass_kg * PERIOD_S
    vy = s.velocity_mps[i, 1] * (1.0 - DAMPING) + force[1] / mass_kg * PERIOD_S
    speed = math.sqrt(vx * vx + vy * vy)
    if speed > greatest_mps:
        vx, vy = vx / speed * greatest_mps, vy / speed * greatest_mps
    s.velocity_mps[i, 0], s.velocity_mps[i, 1] = vx, vy


def stop_at_walls(s, scratch, i):
    """Keeps a body inside the arena: the wall takes the speed towards it."""
    limit_m = ARENA_M - scratch.radius_m[i]
    for axis in range(2):
        x = s.position_m[i, axis]
        if abs(x) >= limit_m:
            s.position_m[i, axis] = math.copysign(limit_m, x)
            if s.velocity_mps[i, axis] * x > 0.0:
                s.velocity_mps[i, axis] = 0.0


# ------------------------------------------------------------------------------------------------------------- rewards


def are_goals_paid(reward: str) -> bool:
    """Whether `pay_goals` replaces the rewards of a decision."""
    return reward in ("first", "event")


def end_reasons_of(reward: str) -> tuple[str, ...]:
    """Ends by rule: only ``reward="first"`` has one."""
    return ("solved",) if reward == "first" else ()


def pay_goals(s, world, rewards, before, reached, goals):
    """Replaces the rewards of a decision by those of ``"first"`` or ``"event"``.

    Args:
        s: The match.
        world: Its options; ``world.reward`` is the number of a word in `GOAL_REWARD`.
        rewards: Of the decision, overwritten.
        before: Goals that were reached before the decision.
        reached: Goals that are reached after it.
        goals: All goals.

    Returns:
        Whether the match is over: ``"first"`` ends it as `SOLVED` when all goals are reached.
    """
    is_solved = world.reward == FIRST and reached == goals
    for k in range(len(rewards)):
        rewards[k] = 1.0 * is_solved if world.reward == FIRST else 1.0 * (reached - before)
    if is_solved:
        s.info.end_reason, s.info.winner = SOLVED, 0
    return is_solved


# --------------------------------------------------------------------------------------------------------- observations


def write_offset(out, s, of, by, limit_m):
    """Writes where body ``of`` is from body ``by``."""
    for axis in range(2):
        out[axis] = clip(s.position_m[of, axis] - s.position_m[by, axis], -limit_m, limit_m)


def write_vector(out, vector, limit):
    """Writes a vector, clipped."""
    out[0], out[1] = clip(vector[0], -limit, limit), clip(vector[1], -limit, limit)


# -------------------------------------------------------------------------------------------------------------- scripts


def choose_move(action, dx, dy, near_m):
    """Thrusts along the longer axis of the way to go; stays where that is shorter than ``near_m``."""
    if abs(dx) >= abs(dy):
        if abs(dx) >= near_m:
            action.move = 2 if dx > 0.0 else 1
    elif abs(dy) >= near_m:
        action.move = 4 if dy > 0.0 else 3


def choose_force(action, dx, dy, near_m):
    """Thrusts straight along the way to go, fully unless that is shorter than ``near_m``."""
    length_m = math.sqrt(dx * dx + dy * dy)
    scale = 1.0 / max(length_m, near_m)
    action.force[0], action.force[1] = clip(dx * scale, -1.0, 1.0), clip(dy * scale, -1.0, 1.0)


# ------------------------------------------------------------------------------------------------------------- mirrors


def mirror_points(states: Any) -> None:
    """Reflects positions and velocities of records [N] at the vertical line through the origin, in place."""
    states["position_m"][..., 0] *= -1.0
    states["velocity_mps"][..., 0] *= -1.0


def mirror_left_right(states: Any, actions: Any) -> None:
    """Left and right change places; the teams stay what they are.

    Args:
        states: Records of matches ``[N]``, changed in place.
        actions: Records of actions ``[N]``, a field ``[N, A_role]`` a role, changed in place: moves and forces.
    """
    mirror_points(states)
    for role in actions.dtype.names:
        players = actions[role]
        if "move" in players.dtype.names:
            move = players["move"]
            move[...] = np.array([0, 2, 1, 3, 4])[move]
        elif "force" in players.dtype.names:
            players["force"][..., 0] *= -1.0
