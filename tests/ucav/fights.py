"""Matches of two aircraft whose records a test writes itself: no engine flies."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from palaestra.core.compile.linker import record_view
from palaestra.game import Game
from palaestra.games.ucav import CONTEST, dogfight, weapons
from palaestra.games.ucav.dogfight import BLUE, RED

STICK, MACRO = dogfight.game(), dogfight.game(commands="macro")
ALTITUDE_M, SPEED_MPS = 5000.0, 250.0


class Match:
    """One match whose aircraft are put where a test wants them."""

    def __init__(self, game: Game = STICK, seed: int = 1, **parameters: float) -> None:
        self.game: Any = game  # not every kind of game has every hook
        self.s: Any = record_view(np.zeros(1, game.state_dtype))[0]
        for parameter in game.parameters:
            given = CONTEST | parameters
            setattr(self.s.parameters, parameter.name, given.get(parameter.name, parameter.default))
        self.scratch: Any = record_view(np.zeros(1, game.scratch_dtype))[0]
        self.actions: Any = record_view(np.zeros(1, game.action_dtype))[0]
        self.rewards = np.zeros(2, np.float32)
        self.start(seed)

    def start(self, seed: int) -> None:
        self.s.rng = seed
        self.s.team[:], self.s.alive[:] = self.game.team_index, 1
        self.s.strength[:] = 1.0
        self.s.info.winner = -1
        with np.errstate(over="ignore"):
            self.game.reset(self.s, self.game.world)

    def put(self, slot: int, ahead_m: float, heading_deg: float = 0.0, altitude_m: float = ALTITUDE_M) -> Any:
        """Puts an aircraft on the north-south line through the origin, flying level."""
        body = self.s.body[slot]
        body.north_m, body.east_m, body.altitude_m = ahead_m, 0.0, altitude_m
        body.roll_rad, body.pitch_rad, body.heading_rad = 0.0, 0.0, math.radians(heading_deg)
        body.true_airspeed_mps, body.load_factor_g = SPEED_MPS, 1.0
        body.velocity_north_mps = SPEED_MPS * math.cos(body.heading_rad)
        body.velocity_east_mps = SPEED_MPS * math.sin(body.heading_rad)
        return body

    def chase(self, range_m: float = 400.0, off_deg: float = 0.0) -> Match:
        """Red right behind blue, its nose so far off."""
        self.put(RED, 0.0, off_deg)
        self.put(BLUE, range_m)
        return self

    def evaluate(self) -> bool:
        """One decision in which nothing moves."""
        self.rewards[:] = 0.0
        self.s.steps += 1
        weapons.note_places(self.s)
        return any(bool(self.game.evaluate(self.s, None, self.rewards, None)) for _ in range(self.game.periods))

    def see(self) -> Any:
        rows: Any = record_view(np.zeros(1, self.game.observation_dtype))[0]
        self.game.observe(self.s, self.game.world, rows, self.scratch)
        return rows.pilot

    @property
    def reason(self) -> str:
        return self.game.end_reason(int(self.s.info.end_reason))
