"""Tracking errors of a player: fixed flights of `palaestra/UcavTrack-v0`, the same for every player."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import palaestra
from palaestra.core.simulation import Simulation
from palaestra_baselines.pid import SETTLED_AFTER_S

ENV_ID = "palaestra/UcavTrack-v0"
TEST_SEED, TEST_FLIGHTS = 1 << 52, 64
"""Test flights, the same for all players. No player is trained, tuned or chosen on them."""
ERRORS = ("roll_rms_deg", "flight_path_rms_deg", "speed_rms_mps")


@dataclass(frozen=True)
class Tracking:
    """What a player achieved: root mean squares over the settled part of all commands.

    Attributes:
        roll_rms_deg: Roll error.
        flight_path_rms_deg: Flight-path error.
        speed_rms_mps: Airspeed error.
        action_change: Mean absolute change of the four actions a decision.
        ended: Flights that a rule ended.
    """

    roll_rms_deg: float
    flight_path_rms_deg: float
    speed_rms_mps: float
    action_change: float
    ended: int

    def ratios(self, reference: Tracking) -> tuple[float, ...]:
        """The three errors over those of a reference."""
        return tuple(getattr(self, name) / getattr(reference, name) for name in ERRORS)


def evaluation_flights(
    flights: int = TEST_FLIGHTS, workers: int = 2, script: str | None = None, **parameters: float
) -> Simulation:
    """Flights of the registered task for `track`; ``script="pid"`` lets the PID fly."""
    opponents = {"pilot": script} if script else {}
    options: dict[str, Any] = {"autoreset_mode": "off", "workers": workers, "opponents": opponents}
    return palaestra.make_batch(ENV_ID, flights, **options, **parameters)


def track(sim: Simulation, seed: int, player: Callable[[np.ndarray], np.ndarray] | None = None) -> Tracking:
    """Flies all lanes to their end; settled is the time from five seconds after a command on.

    Args:
        sim: As from `evaluation_flights`.
        seed: Of the first lane: the same seed gives the same starts and commands to every player.
        player: Observations ``[N, 29]`` to actions ``[N, 4]``; None where a script flies.
    """
    sim.reset(seed=seed)
    squares, count, changes, moves = np.zeros(3), 0, 0.0, 0
    flying = np.ones(sim.num_envs, np.bool_)
    observations, actions = sim.observations, sim.actions
    assert isinstance(observations, np.ndarray)
    assert isinstance(actions, np.ndarray)
    while flying.any():
        if player is not None:
            actions[:, 0] = player(observations[:, 0])
        sim.step()
        info = sim.info
        errors = np.stack(
            [np.degrees(info["turn_error_rad"]), np.degrees(info["climb_error"]), info["speed_error_mps"]]
        )
        settled = flying & (info["command_age_s"] > SETTLED_AFTER_S)
        squares += (errors[:, settled] ** 2).sum(axis=1)
        count += int(settled.sum())
        changes += float(info["action_change"][flying].sum())
        moves += int(flying.sum())
        flying &= ~(sim.terminated | sim.truncated)
    roll, flight_path, speed = np.sqrt(squares / count).tolist() if count else [math.inf] * 3
    return Tracking(roll, flight_path, speed, changes / moves, int((sim.info["end_reason"] > 1).sum()))


def cpu_seconds(*sims: Simulation) -> float:
    """Processor time so far of this process and of the worker processes of some simulations (0 for those off Linux)."""
    total = time.process_time()
    for process in (p for sim in sims for p in getattr(sim, "processes", ())):
        try:
            fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += (int(fields[11]) + int(fields[12])) / 100.0
    return total
