"""Rewards of goals other than the one that was asked for, as hindsight replay wants them."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from palaestra.core.spec.factories import load
from palaestra.core.spec.rules import Game

ACHIEVED, DESIRED = "achieved_goal", "desired_goal"


def compute_reward(game: Game, space: spaces.Space, achieved: Any, desired: Any, info: Any) -> Any:
    """What the rules pay where these goals are achieved and desired.

    Args:
        game: The rules.
        space: Observation space of one match.
        achieved: Goals that are achieved after a decision, of the shape of ``space["achieved_goal"]`` or ``[N, ...]``
            of it.
        desired: Goals that were to be achieved, likewise.
        info: Handed on to `Game.goal_reward`.

    Returns:
        A float, or ``[N]`` of the dtype of rewards.

    Raises:
        NotImplementedError: The game has no rewards by goals.
        ValueError: The observation shows no goals, or the arrays have other shapes.
    """
    if game.goal_reward is None:
        raise NotImplementedError(f"{game.name} has no rewards by goals (Game.goal_reward)")
    if not isinstance(space, spaces.Dict) or not {ACHIEVED, DESIRED} <= space.keys():
        raise ValueError(f"this observation has no {ACHIEVED} and {DESIRED}: choose a representation with them")
    achieved, desired = np.asarray(achieved), np.asarray(desired)
    shape = space[ACHIEVED].shape
    if achieved.shape != desired.shape or shape not in (achieved.shape, achieved.shape[1:]):
        raise ValueError(f"goals have shape {shape} or (N, *{shape}), not {achieved.shape} and {desired.shape}")
    if achieved.shape == shape:
        return float(load(game.goal_reward)(achieved[None], desired[None], info)[0])
    return np.asarray(load(game.goal_reward)(achieved, desired, info), game.reward_dtype)
