"""A pole is hinged to a cart: push the cart left or right so that the pole does not fall.

## Description

The cart-pole of Barto, Sutton and Anderson ("Neuronlike adaptive elements that can solve difficult learning control
problems", IEEE Transactions on Systems, Man, and Cybernetics, 1983): a pole is hinged on a cart that moves on a
straight track without friction. `palaestra/CartPole-v0` is Gymnasium's CartPole-v1 in our way of writing: from the same
state the same actions lead to the same states, observations, rewards and ends, bit for bit where sine and cosine are
the same. It is the yardstick of speed (`palaestra bench`) and the first example to read.

## Action Space

<!-- table: action -->

## Observation Space

The state as float32. Position and angle end at twice the limits of the match, as in Gymnasium. There the velocities
have no bounds; ours cannot be reached with the default parameters, and what others reach beyond is clipped.

<!-- table: observation -->

## Rewards

1 for each decision, the last one included.

## Starting State

Position, velocity, angle and angular velocity are drawn uniformly from [-0.05, 0.05).

## Episode End

By rule when the cart is more than 2.4 m away from the middle (``off_track``) or the pole leans more than 12 degrees
(``fell``). Truncated after 500 decisions.

## Arguments

<!-- table: parameters -->

## Version History

* v0: first version.
"""

from __future__ import annotations

import math

from palaestra.game import Choice, Field, Game, Parameter, Role, uniform
from palaestra.kernels.scalars import clip

POSITION_LIMIT_M = 2.4
ANGLE_LIMIT_RAD = 12 * 2 * math.pi / 360
START_LIMIT = 0.05
OFF_TRACK, FELL = 2, 3
"""Numbers of the end reasons."""

# By default no acceleration exceeds 30: over the 4.8 m and 0.42 rad of a match that makes 17 m/s and 5 rad/s.
SEEN_POSITION_M, SEEN_ANGLE_RAD = 2 * POSITION_LIMIT_M, 2 * ANGLE_LIMIT_RAD
SEEN_VELOCITY_MPS = SEEN_VELOCITY_RADPS = 20.0

CART = Role(
    name="cart",
    agents=("cart_0",),
    observation=(
        Field("position_m", (), -SEEN_POSITION_M, SEEN_POSITION_M, "m", "of the cart, 0 in the middle of the track"),
        Field("velocity_mps", (), -SEEN_VELOCITY_MPS, SEEN_VELOCITY_MPS, "m/s", "of the cart"),
        Field("angle_rad", (), -SEEN_ANGLE_RAD, SEEN_ANGLE_RAD, "rad", "of the pole, 0 upright, positive to the right"),
        Field("velocity_radps", (), -SEEN_VELOCITY_RADPS, SEEN_VELOCITY_RADPS, "rad/s", "of the pole"),
    ),
    action=(Choice("push", 2, ("left", "right")),),
)

PARAMETERS = (
    Parameter("gravity_mps2", 9.8, 0.1, 100.0, "m/s^2", "gravity"),
    Parameter("cart_mass_kg", 1.0, 0.1, 10.0, "kg", "mass of the cart"),
    Parameter("pole_mass_kg", 0.1, 0.01, 10.0, "kg", "mass of the pole"),
    Parameter("half_length_m", 0.5, 0.05, 5.0, "m", "half the length of the pole"),
    Parameter("force_n", 10.0, 0.0, 100.0, "N", "strength of a push"),
    Parameter("period_s", 0.02, 0.001, 0.1, "s", "time between two decisions"),
)


def reset(s, world):
    """Everything near the middle, upright and at rest."""
    s.position_m = uniform(s, -START_LIMIT, START_LIMIT)
    s.velocity_mps = uniform(s, -START_LIMIT, START_LIMIT)
    s.angle_rad = uniform(s, -START_LIMIT, START_LIMIT)
    s.velocity_radps = uniform(s, -START_LIMIT, START_LIMIT)


def step(s, world, actions, rewards, scratch):
    """The equations of Florian ("Correct equations for the dynamics of the cart-pole system", 2007), Euler's method."""
    p = s.parameters
    force_n = p.force_n if actions.cart[0].push == 1 else -p.force_n
    mass_kg = p.pole_mass_kg + p.cart_mass_kg
    pole_moment = p.pole_mass_kg * p.half_length_m
    cos, sin = math.cos(s.angle_rad), math.sin(s.angle_rad)
    push_mps2 = (force_n + pole_moment * (s.velocity_radps * s.velocity_radps) * sin) / mass_kg
    acceleration_radps2 = (p.gravity_mps2 * sin - cos * push_mps2) / (
        p.half_length_m * (4.0 / 3.0 - p.pole_mass_kg * (cos * cos) / mass_kg)
    )
    acceleration_mps2 = push_mps2 - pole_moment * acceleration_radps2 * cos / mass_kg
    s.position_m += p.period_s * s.velocity_mps
    s.velocity_mps += p.period_s * acceleration_mps2
    s.angle_rad += p.period_s * s.velocity_radps
    s.velocity_radps += p.period_s * acceleration_radps2
    rewards[0] = 1.0
    if abs(s.position_m) > POSITION_LIMIT_M:
        s.info.end_reason = OFF_TRACK
    elif abs(s.angle_rad) > ANGLE_LIMIT_RAD:
        s.info.end_reason = FELL
    return s.info.end_reason != 0


def observe(s, world, observations, scratch):
    """The state, clipped."""
    seen = observations.cart[0]
    seen.position_m = clip(s.position_m, -SEEN_POSITION_M, SEEN_POSITION_M)
    seen.velocity_mps = clip(s.velocity_mps, -SEEN_VELOCITY_MPS, SEEN_VELOCITY_MPS)
    seen.angle_rad = clip(s.angle_rad, -SEEN_ANGLE_RAD, SEEN_ANGLE_RAD)
    seen.velocity_radps = clip(s.velocity_radps, -SEEN_VELOCITY_RADPS, SEEN_VELOCITY_RADPS)


def game() -> Game:
    """The rules of `palaestra/CartPole-v0`."""
    return Game(
        name="CartPole",
        roles=(CART,),
        state=(("position_m", "f8"), ("velocity_mps", "f8"), ("angle_rad", "f8"), ("velocity_radps", "f8")),
        reset=reset,
        step=step,
        observe=observe,
        parameters=PARAMETERS,
        horizon=500,
        end_reasons=("off_track", "fell"),
        render="palaestra.games.calibration.render_cartpole:draw_cartpole",
        render_fps=50.0,
    )
