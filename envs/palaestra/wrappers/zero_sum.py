"""A ParallelEnv that checks rewards: members of a team have equal rewards, and team rewards add up to zero."""

from __future__ import annotations

from typing import Any

import numpy as np
from pettingzoo.utils import BaseParallelWrapper

from palaestra.wrappers.teams import teams_of


class ZeroSumError(AssertionError):
    """Rewards of a zero-sum game that do not add up, or members that do not share theirs."""


class CheckZeroSum(BaseParallelWrapper):
    """Raises in the step in which team rewards do not cancel exactly or the members of a team differ.

    Teams of different size have sums of agents' rewards that are not zero: what cancels are the teams' rewards, the
    common values of their members. A step in which a team has no member left is not added up, nor is anything where
    only one team is seen.
    """

    def __init__(self, env: Any) -> None:
        """Wraps a PettingZoo ParallelEnv whose agents form teams."""
        super().__init__(env)
        self._members = teams_of(env)
        self._step = 0

    def reset(self, seed: int | None = None, options: dict | None = None) -> Any:
        """Starts a match and its count of steps."""
        self._step = 0
        return super().reset(seed=seed, options=options)

    def step(self, actions: Any) -> Any:
        """Plays one decision.

        Raises:
            ZeroSumError: Names the step, the teams or agents, and their rewards.
        """
        result = super().step(actions)
        self._step += 1
        self._check(result[1])
        return result

    def _check(self, rewards: dict[str, float]) -> None:
        by_team = {}
        for team, members in self._members.items():
            own = {m: np.float64(rewards[m]) for m in members if m in rewards}
            if len({value.tobytes() for value in own.values()}) > 1:
                listed = ", ".join(f"{m} {float(value)!r}" for m, value in own.items())
                raise ZeroSumError(f"step {self._step}: the members of {team} do not share one reward: {listed}")
            if own:
                by_team[team] = float(next(iter(own.values())))
        if len(by_team) == len(self._members) > 1 and sum(by_team.values()) != 0.0:
            listed = ", ".join(f"{team} {value!r}" for team, value in by_team.items())
            raise ZeroSumError(f"step {self._step}: team rewards do not add up to 0: {listed}")
