"""Melee: five points against five in a square, one role, all numbers float32: the game to measure overheads with.

A point thrusts and drifts; it takes hit points from the nearest enemy within its reach. A team is paid what it takes
minus what it loses, and wins when no point of the other is left.
"""

from __future__ import annotations

import math

from palaestra.game import Continuous, Field, Game, Parameter, Role, uniform

SIDE = 5
POINTS = 2 * SIDE
ARENA, SPEED, REACH = 1.0, 0.1, 0.3
WIPED_OUT = 2

AGENTS = tuple(f"{team}_{k}" for team in ("red", "blue") for k in range(SIDE))
SEEN = (
    Field("position", (2,), -ARENA, ARENA),
    Field("velocity", (2,), -SPEED, SPEED),
    Field("offset", (POINTS, 2), -2 * ARENA, 2 * ARENA, about="of all points, in their order"),
    Field("hit_points", (POINTS,), 0, 1),
)
PARAMETERS = (Parameter("damage", 0.02, 0, 1, "1", "hit points that a hit takes"),)


def reset(s, world):
    for a in range(POINTS):
        for axis in range(2):
            s.position[a, axis] = uniform(s, -ARENA, ARENA)
        s.hit_points[a] = 1.0


def nearest_enemy(s, a):
    """The nearest living point of the other team, or -1, and the square of its distance."""
    best, best_square = -1, math.inf
    first = SIDE if a < SIDE else 0
    for b in range(first, first + SIDE):
        dx, dy = s.position[b, 0] - s.position[a, 0], s.position[b, 1] - s.position[a, 1]
        square = dx * dx + dy * dy
        if s.alive[b] and square < best_square:
            best, best_square = b, square
    return best, best_square


def step(s, world, actions, rewards, scratch):
    for a in range(POINTS):
        scratch.lost[a] = 0.0
        for axis in range(2):
            velocity = s.velocity[a, axis] + 0.02 * actions.point[a].thrust[axis]
            s.velocity[a, axis] = min(max(velocity, -SPEED), SPEED)
            position = s.position[a, axis] + s.velocity[a, axis]
            s.position[a, axis] = min(max(position, -ARENA), ARENA)
    for a in range(POINTS):
        if s.alive[a]:
            target, square = nearest_enemy(s, a)
            if target >= 0 and square < REACH * REACH:
                scratch.lost[target] += s.parameters.damage
    gain, left, right = 0.0, 0, 0
    for a in range(POINTS):
        loss = min(s.hit_points[a], scratch.lost[a])
        s.hit_points[a] -= loss
        s.alive[a] = s.hit_points[a] > 0.0
        if a < SIDE:
            gain -= loss
            left += s.alive[a]
        else:
            gain += loss
            right += s.alive[a]
    for a in range(POINTS):
        rewards[a] = gain if a < SIDE else -gain
    if left and right:
        return False
    s.info.end_reason = WIPED_OUT
    s.info.winner = (1 if right else -1) if not left else 0
    return True


def observe(s, world, observations, scratch):
    for a in range(POINTS):
        seen = observations.point[a]
        for axis in range(2):
            seen.position[axis] = s.position[a, axis]
            seen.velocity[axis] = s.velocity[a, axis]
        for b in range(POINTS):
            for axis in range(2):
                seen.offset[b, axis] = s.position[b, axis] - s.position[a, axis]
            seen.hit_points[b] = s.hit_points[b]


def script(s, world, slot, which, actions, scratch):
    target, square = nearest_enemy(s, slot)
    if target >= 0:
        length = math.sqrt(square) + 1e-9
        for axis in range(2):
            actions.point[slot].thrust[axis] = (s.position[target, axis] - s.position[slot, axis]) / length


def game(thrust: float = 1.0) -> Game:
    return Game(
        name="Melee",
        roles=(Role("point", AGENTS, SEEN, (Continuous("thrust", (2,), -thrust, thrust),)),),
        state=(("position", "f8", (POINTS, 2)), ("velocity", "f8", (POINTS, 2)), ("hit_points", "f8", (POINTS,))),
        reset=reset,
        step=step,
        observe=observe,
        script=script,
        scripts=("chaser",),
        parameters=PARAMETERS,
        horizon=200,
        end_reasons=("wiped_out",),
        scratch=(("lost", "f8", (POINTS,)),),
        zero_sum=True,
        symmetric_teams=True,
        determinism="cross-platform",
        default_opponent="chaser",
    )
