"""Models of Stable-Baselines3 and sb3-contrib as players."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

from palaestra.core.faces.agent_io import ChoicesMode
from palaestra.core.faces.blocks import Form
from palaestra.game import Importing
from palaestra.players.choosing import Chance, as_choices, as_reals, choose, from_unit, probabilities
from palaestra.players.views import TeamView, space_text

with Importing("torch"):
    import torch

NO_DISTRIBUTION = "the model gives no distribution to draw from: deterministic=True"


class Sb3Model:
    """A model or its policy: PPO, A2C and MaskablePPO by their distribution, DQN by its values, SAC by its actor.

    Other policies are asked by their own ``predict``, without masks. Also see `palaestra.players.model_player.Model`.
    """

    def __init__(self, model: Any) -> None:
        """Reads the spaces.

        Raises:
            TypeError: It has no policy.
            ValueError: A recurrent policy.
        """
        policy = getattr(model, "policy", model)
        if not hasattr(policy, "obs_to_tensor"):
            raise TypeError(f"{type(model).__name__} has no policy that could play")
        if hasattr(policy, "lstm_actor"):
            raise ValueError(f"{type(model).__name__} is recurrent: write an Opponent that keeps its state in memory")
        self.name, self.policy = type(model).__name__, policy
        self.outputs: Mapping[str, np.ndarray] = {}
        self.observation_space, self.action_space = policy.observation_space, policy.action_space
        self.forms: tuple[Form | None, ...] = (
            ("dict",) if isinstance(self.observation_space, spaces.Dict) else ("flat",)
        )
        is_discrete = isinstance(self.action_space, spaces.Discrete)
        self.choices: tuple[ChoicesMode, ...] = ("separate", "discrete") if is_discrete else ("separate",)
        self.spaces = f"{space_text(self.observation_space)} -> {space_text(self.action_space)}"

    def refusal(self, view: TeamView) -> str:
        """See `Model`."""
        sees = _same(self.observation_space, view.observation_space, bounds=False)
        return "" if sees and _same(self.action_space, view.action_space) else "other spaces"

    def act(self, view: TeamView, rows: Any, masks: np.ndarray | None, chance: Chance | None) -> np.ndarray:
        """See `Model`."""
        policy = self.policy
        training = bool(policy.training)
        policy.set_training_mode(False)
        try:
            with torch.no_grad():
                return self._act(policy.obs_to_tensor(rows)[0], rows, view, masks, chance)
        finally:
            policy.set_training_mode(training)

    def _act(self, seen: Any, rows: Any, view: TeamView, masks: np.ndarray | None, chance: Chance | None) -> np.ndarray:
        policy, space = self.policy, self.action_space
        self.outputs = {}
        if hasattr(policy, "get_distribution"):
            found: Any = policy.get_distribution(seen)
            parts = _categoricals(found)
            if parts:
                logits = np.concatenate([part.logits.cpu().numpy() for part in parts], axis=1)
                if len(parts) == 1:
                    self.outputs = {"probability": probabilities(logits, masks)}
                return as_choices(choose(logits, masks, view.sizes, chance), space)
            return as_reals(_reals(found, chance), space)
        if hasattr(policy, "q_net") and view.sizes:
            if chance is not None:
                raise ValueError(NO_DISTRIBUTION)
            self.outputs = {"action value": policy.q_net(seen).cpu().numpy()}
            return as_choices(choose(self.outputs["action value"], masks, view.sizes, None), space)
        if chance is None:
            return policy.predict(rows, deterministic=True)[0]
        actor: Any = getattr(policy, "actor", None)
        if not hasattr(actor, "get_action_dist_params") or getattr(actor, "use_sde", False):
            raise ValueError(NO_DISTRIBUTION)
        mean, log_std, _ = actor.get_action_dist_params(seen)
        drawn = mean.cpu().numpy() + np.exp(log_std.cpu().numpy()) * chance.normals(mean.shape[1])
        return from_unit(np.tanh(drawn), space)


def _categoricals(found: Any) -> list[Any]:
    """The distributions of the choices: SB3 names them ``distribution``, sb3-contrib also ``distributions``."""
    inner = getattr(found, "distributions", None) or found.distribution
    parts = list(inner) if isinstance(inner, list | tuple) else [inner]
    return parts if all(isinstance(part, torch.distributions.Categorical) for part in parts) else []


def _reals(found: Any, chance: Chance | None) -> np.ndarray:
    """The mean of a Gaussian, or a draw.

    Raises:
        ValueError: A distribution of another kind has to be drawn from.
    """
    if chance is None:
        return found.mode().cpu().numpy()
    inner = found.distribution
    if type(found).__name__ != "DiagGaussianDistribution":
        raise ValueError(NO_DISTRIBUTION)
    mean, std = inner.mean.cpu().numpy(), inner.stddev.cpu().numpy()
    return mean + std * chance.normals(mean.shape[1])


def _same(one: Any, other: Any, bounds: bool = True) -> bool:
    """Whether a space is another one; without bounds only of its kind and shape."""
    if isinstance(one, spaces.Dict) and isinstance(other, spaces.Dict):
        return list(one) == list(other) and all(_same(one[name], other[name], bounds) for name in one)
    if isinstance(one, spaces.Box) and isinstance(other, spaces.Box):
        same_bounds = one.shape == other.shape and np.allclose(one.low, other.low) and np.allclose(one.high, other.high)
        return one.shape == other.shape and (not bounds or bool(same_bounds))
    return one == other
