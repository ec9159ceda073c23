"""Rewards of goals other than the one that was asked for, as hindsight replay wants them."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from palaestra.core.contract.factories import load
from palaestra.core.contract.rules import Game

ACHIEVED, DESIRED = "achieved_goal", "desired_goal"


NO_GOALS = "its game has no rewards by goals (Game.goal_reward), or this observation shows no goals"
"""Why a face has no `compute_reward`."""


def has_goals(game: Game, space: spaces.Space) -> bool:
    """Whether the game has rewards by goals and the observations of one match show goals."""
    return game.goal_reward is not None and isinstance(space, spaces.Dict) and {ACHIEVED, DESIRED} <= space.keys()


def compute_reward(game: Game, space: Any, achieved: Any, desired: Any, info: Any) -> Any:
    """What the rules pay where these goals are achieved and desired.

    Args:
        game: The rules, with rewards by goals.
        space: Observation space of one match, with goals.
        achieved: Goals that are achieved after a decision, of the shape of ``space["achieved_goal"]`` or ``[N, ...]``
            of it.
        desired: Goals that were to be achieved, likewise.
        info: Handed on to `Game.goal_reward`.

    Returns:
        A float, or ``[N]`` of the dtype of rewards.

    Raises:
        ValueError: The arrays have other shapes.
    """
    achieved, desired = np.asarray(achieved), np.asarray(desired)
    shape = space[ACHIEVED].shape
    if achieved.shape != desired.shape or shape not in (achieved.shape, achieved.shape[1:]):
        raise ValueError(f"goals have shape {shape} or (N, *{shape}), not {achieved.shape} and {desired.shape}")
    reward_of = load(game.goal_reward)  # type: ignore[arg-type] (there is one)
    if achieved.shape == shape:
        return float(reward_of(achieved[None], desired[None], info)[0])
    return np.asarray(reward_of(achieved, desired, info), game.reward_dtype)
