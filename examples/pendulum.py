"""Pendulum: swing a rod up and hold it there. The rules are hooks; an engine of one's own moves the rod.

## Description

A rod hangs on a motor that is too weak to lift it at once: it has to swing. The rules never integrate anything. They
hand a torque to the engine (`command`) and look at what became of the rod (`evaluate`). `Rods` is the engine: NumPy on
all lanes of a batch. An engine for MuJoCo or a program of your own has the same five members.

## Action Space

<!-- table: action -->

## Observation Space

<!-- table: observation -->

## Rewards

In each decision the cosine of the angle (1 upright, -1 hanging), less `effort_price` times the square of the torque,
times the time of the decision.

## Starting State

The rod hangs within 0.2 rad, at rest.

## Episode End

``broken``: the rod turns faster than 25 rad/s. Truncated after 200 decisions (10 s).

## Arguments

<!-- table: parameters -->

## Version History

* v0: first version.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import palaestra
from palaestra.game import TERMINATED, Continuous, Field, Game, Parameter, Role, uniform

PERIOD_S, PERIODS = 0.01, 5  # the engine runs at 100 Hz, the agent decides at 20 Hz
GRAVITY_MPS2, ROD_M, ROD_KG = 9.81, 1.0, 1.0
BROKEN_RADPS = 25.0
BROKEN = 2  # number of the first end reason (0 is running, 1 the horizon)

ROD = np.dtype([("torque_nm", "f8"), ("angle_rad", "f8"), ("velocity_radps", "f8")], align=True)
"""A body: the torque is the rules', the engine writes the others; `reset` writes where it starts."""

MOTOR = Role(
    name="motor",
    agents=("motor_0",),
    observation=(
        Field("up", (2,), -1.0, 1.0, "1", "cosine and sine of the angle, 0 is upright"),
        Field("velocity_radps", (), -30.0, 30.0, "rad/s", "positive to the left"),
    ),
    action=(Continuous("torque_nm", (), -2.0, 2.0, "N m", "of the motor"),),
)


def reset(s, world):
    """The rod hangs."""
    s.rods[0].angle_rad = math.pi + uniform(s, -0.2, 0.2)


def command(s, world, actions, scratch):
    """Hands the torque to the engine, before each period."""
    s.rods[0].torque_nm = actions.motor[0].torque_nm


def evaluate(s, world, rewards, scratch):
    """Pays for one period, and ends the match where the rod breaks."""
    rod = s.rods[0]
    effort = rod.torque_nm * rod.torque_nm
    rewards[0] += (math.cos(rod.angle_rad) - s.parameters.effort_price * effort) * PERIOD_S
    if abs(rod.velocity_radps) <= BROKEN_RADPS:
        return 0
    s.info.end_reason = BROKEN
    return TERMINATED


def observe(s, world, observations, scratch):
    """What the motor measures."""
    rod, seen = s.rods[0], observations.motor[0]
    seen.up[0], seen.up[1] = math.cos(rod.angle_rad), math.sin(rod.angle_rad)
    seen.velocity_radps = rod.velocity_radps


def script(s, world, slot, which, actions, scratch):
    """0 "pump": adds energy while the rod swings, and balances it near the top."""
    rod = s.rods[0]
    lean = math.atan2(math.sin(rod.angle_rad), math.cos(rod.angle_rad))
    if abs(lean) < 0.2 and abs(rod.velocity_radps) < 2.0:
        torque = -20.0 * lean - 6.0 * rod.velocity_radps
    else:
        push = 2.0 if rod.velocity_radps >= 0.0 else -2.0
        torque = push if energy(rod) < 0.0 else -push
    actions.motor[slot].torque_nm = min(max(torque, -2.0), 2.0)


def energy(rod):
    """Energy above that of the upright rod at rest, J."""
    inertia = ROD_KG * ROD_M * ROD_M / 3.0
    height = 0.5 * ROD_M * (math.cos(rod.angle_rad) - 1.0)
    return 0.5 * inertia * rod.velocity_radps * rod.velocity_radps + ROD_KG * GRAVITY_MPS2 * height


class Rods:
    """The engine: semi-implicit Euler on all lanes at once. It keeps nothing outside the match records."""

    body_field = "rods"
    command_fields = ("torque_nm",)

    def __init__(self, game: Game, lanes: int, threads: int, damping: float = 0.05) -> None:
        """See `palaestra.game.PhysicsEngine`; ``damping`` (N m s) is an option of this engine."""
        self.damping = damping

    def load(self, states: Any, lanes: np.ndarray) -> None:
        """Starts rods at the angles in their records, at rest."""
        states["rods"]["velocity_radps"][lanes] = 0.0

    def advance(self, states: Any, lanes: np.ndarray) -> None:
        """One period."""
        rods = states["rods"]
        angle, velocity = rods["angle_rad"][lanes], rods["velocity_radps"][lanes]
        torque = rods["torque_nm"][lanes] + 0.5 * ROD_KG * GRAVITY_MPS2 * ROD_M * np.sin(angle)
        velocity = velocity + 3.0 * (torque - self.damping * velocity) / (ROD_KG * ROD_M**2) * PERIOD_S
        rods["angle_rad"][lanes], rods["velocity_radps"][lanes] = angle + velocity * PERIOD_S, velocity

    def save(self, lanes: np.ndarray) -> dict[str, np.ndarray]:
        """What the match records do not hold: nothing."""
        return {}

    def load_saved(self, saved: Any, lanes: np.ndarray) -> None:
        """Takes it back."""

    def close(self) -> None:
        """Frees nothing."""


def game() -> Game:
    """The rules of ``examples/Pendulum-v0``."""
    return Game(
        name="Pendulum",
        roles=(MOTOR,),
        state=(("rods", ROD, (1,)),),
        reset=reset,
        command=command,
        evaluate=evaluate,
        periods=PERIODS,
        observe=observe,
        script=script,
        scripts=("pump",),
        physics=f"{__name__}:Rods",
        physics_options={"damping": 0.05},
        parameters=(Parameter("effort_price", 0.05, 0.0, 1.0, "1/(N m)^2", "price of the torque"),),
        horizon=200,
        end_reasons=("broken",),
        default_opponent="pump",
        render_fps=20,
    )


palaestra.register("examples/Pendulum-v0", game, about="swing a rod up with an engine of one's own")

if __name__ == "__main__":
    for player in ("random", "pump"):
        batch = palaestra.make_batch("examples/Pendulum-v0", num_envs=256, opponents={"motor": player})
        batch.reset(seed=0)
        earned = 0.0
        for _ in range(200):
            batch.step()
            earned += float(batch.rewards.mean())
        print(f"{player}: {earned:.2f} of at most 10 a match")
