"""World models for tests: small random ones of teams without a game, and one that is exact.

`ExactModel` is a point in the plane; agent k pushes it along axis k. It is asked by the planner in the place of a
`palaestra_baselines.common.world_models.WorldModel`, and `exact_worth` says what a plan is worth by NumPy alone.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from palaestra_baselines.common.rollout import Position, Sequences
from palaestra_baselines.common.world_models import Design, Masks, WorldModel, make_masks

PUSH, GOAL, PRICE, STAY = 0.5, np.array([0.6, -0.45]), 0.05, 2.0
"""Length of a push; where the point should be; of a push of 1; weight of the last position."""
TILT = np.array([[1.0, 0.6], [0.6, 1.0]])
"""Distances count by this form, so that what is best for one agent depends on the other."""


def make_design(**changes: Any) -> Design:
    """A small design."""
    small: dict[str, Any] = {
        **{"mode": "seq", "actor_sees": "earlier", "plan": True, "gamma": 0.9, "latent": 16, "encoder": (16,)},
        **{"models": 16, "hidden": (16, 16), "bins": 21, "largest": 3.0, "horizon": 2, "samples": 16},
        **{"actor_samples": 4, "elites": 4, "iterations": 2, "deviation": 2.0, "temperature": 0.5},
    }
    return Design(**{**small, **changes})


def make_roster(agents: int = 2, numbers: int = 1, size: int = 3) -> Any:
    """What a world model reads of a roster, of one role."""
    return SimpleNamespace(
        agents=agents,
        actions=numbers,
        sizes={"walker": size},
        columns={"walker": slice(0, agents)},
        choices={"walker": numbers},
    )


def random_model(roster: Any, seed: int = 0, spread: float = 0.7, **changes: Any) -> WorldModel:
    """A model all of whose weights are random: at first the last layers of a new one are 0."""
    torch.manual_seed(seed)
    model = WorldModel(roster, make_design(**changes))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.uniform_(-spread, spread)
    return model


def make_sequences(
    observations: torch.Tensor, actions: torch.Tensor, rewards: torch.Tensor, continues: Any, weights: Any
) -> Sequences:
    """Sequences of a role ``walker``: ``[L + 1, B, A, size]``, ``[L, B, A, M]``, and three ``[L, B]``."""
    none: Any = None
    position = Position({"walker": observations}, none, none, none, none)
    continues, weights = (torch.as_tensor(x, dtype=torch.float32) for x in (continues, weights))
    return Sequences(position, none, actions, rewards[..., None], continues, weights)


class ExactModel:
    """The point: a latent is the position, which all agents share; their actor pushes half way to the goal."""

    def __init__(self, **changes: Any) -> None:
        """The design, of two agents with a number each."""
        self.design = make_design(**changes)
        self.roster = make_roster(2, 1, 2)
        self.counts = torch.ones(2, 1, 1)
        self.value_range = torch.ones(1)
        self.two_hot = SimpleNamespace(decode=lambda rewards: rewards)

    def masks(self, places: torch.Tensor) -> Masks:
        """Who sees whom."""
        return make_masks(self.design.mode, self.design.actor_sees, places)

    def step(self, latents: torch.Tensor, actions: torch.Tensor, masks: Masks) -> tuple[torch.Tensor, torch.Tensor]:
        """The next position, and what each agent is paid there for its push."""
        following = latents + PUSH * actions[..., 0].T[None]
        return following, nearness(following) - PRICE * actions[..., 0] ** 2

    def act(self, latents: torch.Tensor, masks: Masks, noise: torch.Tensor | None) -> tuple[torch.Tensor, None]:
        """A push of each along its own axis."""
        goal = torch.from_numpy(GOAL).float()
        pushes = (goal - latents[0]).T[..., None]
        return (pushes if noise is None else pushes + noise).clamp(-1.0, 1.0), None

    def values(self, latents: torch.Tensor, actions: torch.Tensor) -> torch.Tensor:
        """Both values, of the position alone."""
        return (STAY * nearness(latents[:1])).expand(2, -1, -1)


def nearness(positions: torch.Tensor) -> torch.Tensor:
    """Minus the square of the distance to the goal, of ``[..., 2]``."""
    missed = positions - torch.from_numpy(GOAL).float()
    return -((missed @ torch.from_numpy(TILT).float()) * missed).sum(-1)


def exact_worth(start: np.ndarray, plans: np.ndarray, gamma: float) -> np.ndarray:
    """What plans float64 ``[n, H, 2]`` are worth to the team from a position ``[2]``."""
    position, total, near = start[None], np.zeros(len(plans)), np.zeros(len(plans))
    for t in range(plans.shape[1]):
        position = position + PUSH * plans[:, t]
        missed = position - GOAL
        near = -np.einsum("ni,ij,nj->n", missed, TILT, missed)
        total += gamma**t * (near - PRICE * (plans[:, t] ** 2).mean(-1))
    return total + gamma ** plans.shape[1] * STAY * near
