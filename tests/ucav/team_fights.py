"""Matches of teams whose records a test writes itself: no engine flies."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from palaestra.core.compile.linker import record_view
from palaestra.game import Game
from palaestra.games.ucav import team, team_scripts

TWO, MACRO, UNEQUAL = team.game(red=2, blue=2), team.game(red=2, blue=2, commands="macro"), team.game(red=1, blue=3)
FOUR = team.game()
ALTITUDE_M, SPEED_MPS = 5000.0, 250.0


UNSHAPED = ("posture_weight", "altitude_weight", "energy_weight", "aim_weight")


class Match:
    """One match without shaping whose aircraft are put where a test wants them."""

    def __init__(self, game: Game = TWO, seed: int = 1, **parameters: float) -> None:
        self.game: Any = game
        self.count = len(game.agents)
        self.s: Any = record_view(np.zeros(1, game.state_dtype))[0]
        for parameter in game.parameters:
            default = 0.0 if parameter.name in UNSHAPED else parameter.default
            setattr(self.s.parameters, parameter.name, parameters.get(parameter.name, default))
        self.scratch: Any = record_view(np.zeros(1, game.scratch_dtype))[0]
        self.actions: Any = record_view(np.zeros(1, game.action_dtype))[0]
        self.rewards = np.zeros(game.slots, np.float32)
        self.s.rng, self.s.info.winner, self.s.team[:] = seed, -1, -1
        self.s.team[: self.count] = game.team_index
        self.s.alive[: self.count], self.s.strength[:] = 1, 1.0
        with np.errstate(over="ignore"):
            self.game.reset(self.s, self.game.world)

    def apart(self) -> Match:
        """All aircraft in level flight to the north, 2 km from their neighbours."""
        for slot in range(self.count):
            self.put(slot, 0.0, 2000.0 * slot)
        return self

    def put(self, slot: int, north_m: float, east_m: float, heading_deg: float = 0.0) -> Any:
        body = self.s.body[slot]
        body.north_m, body.east_m, body.altitude_m = north_m, east_m, ALTITUDE_M
        body.roll_rad, body.pitch_rad, body.heading_rad = 0.0, 0.0, math.radians(heading_deg)
        body.true_airspeed_mps, body.load_factor_g = SPEED_MPS, 1.0
        body.velocity_north_mps = SPEED_MPS * math.cos(body.heading_rad)
        body.velocity_east_mps = SPEED_MPS * math.sin(body.heading_rad)
        self.s.past_m[slot] = north_m, east_m, ALTITUDE_M
        return body

    def evaluate(self) -> bool:
        """One decision in which nothing moves."""
        self.rewards[:] = 0.0
        self.s.steps += 1
        over = False
        for _ in range(self.game.periods):
            over = over or bool(self.game.evaluate(self.s, self.game.world, self.rewards, self.scratch))
        return over

    def see(self) -> Any:
        rows: Any = record_view(np.zeros(1, self.game.kernel_observation_dtype))[0]
        self.game.observe(self.s, self.game.world, rows, self.scratch)
        return rows.pilot

    def plan(self, team: int, script: str) -> list[int]:
        """Targets of the team's members."""
        self.game.plan(self.s, self.game.world, team, team_scripts.SCRIPTS.index(script), self.scratch)
        return self.scratch.target[self.s.team == team].tolist()

    def why(self, slot: int) -> str:
        return self.game.end_reason(int(self.s.lost[slot]))

    @property
    def reason(self) -> str:
        return self.game.end_reason(int(self.s.info.end_reason))
