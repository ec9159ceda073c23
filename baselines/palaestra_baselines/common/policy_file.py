"""Saved policies: a safetensors file whose metadata names the method, the environment and the arguments.

`palaestra.core.opponents.policy_metadata` reads the metadata without safetensors; the module of the method turns the
arrays into a player with its own ``load_policy(path, game, team)``.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file

from palaestra.core.fields import Continuous, bounds
from palaestra.core.game import Game
from palaestra.core.opponents import policy_metadata

Layers = Sequence[tuple[np.ndarray, np.ndarray]]
"""``(W [outputs, inputs], b [outputs])`` of each layer of a perceptron."""


def save_policy(
    path: Path, arrays: Mapping[str, np.ndarray], *, method: str, env_id: str, args: Any, **more: Any
) -> None:
    """Writes a policy; the write is atomic.

    Args:
        path: File to write, ``.safetensors``.
        arrays: Weights by name.
        method: Name of the method in the entry-point group ``palaestra.baselines``.
        env_id: Environment that it was trained in.
        args: The method's arguments: a dataclass or a mapping. Paths among them are left out.
        **more: Anything else worth keeping that JSON can hold (figures, versions).
    """
    values = dict(args) if isinstance(args, Mapping) else dataclasses.asdict(args)
    values = {k: v for k, v in values.items() if not isinstance(v, Path)}  # paths are the machine's, not the policy's
    notes = {"args": values, **more}
    metadata = {name: json.dumps(value, default=str) for name, value in notes.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".part")
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    save_file(contiguous, unfinished, {"method": method, "env_id": env_id, **metadata})
    unfinished.replace(path)


def read_policy(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays and metadata that `save_policy` wrote.

    Raises:
        ValueError: The file is not a saved policy.
    """
    metadata = policy_metadata(path)
    plain = ("method", "env_id", "format")
    decoded = {name: text if name in plain else json.loads(text) for name, text in metadata.items()}
    return load_file(path), decoded


def layer_arrays(layers: Layers) -> dict[str, np.ndarray]:
    """Names the arrays of a perceptron ``layer_0.weight``, ``layer_0.bias``, ..."""
    named = {}
    for number, (weight, bias) in enumerate(layers):
        named[f"layer_{number}.weight"], named[f"layer_{number}.bias"] = weight, bias
    return named


def arrays_to_layers(arrays: Mapping[str, np.ndarray]) -> list[tuple[np.ndarray, np.ndarray]]:
    """The layers that `layer_arrays` named."""
    count = sum(name.startswith("layer_") and name.endswith(".weight") for name in arrays)
    return [(arrays[f"layer_{k}.weight"], arrays[f"layer_{k}.bias"]) for k in range(count)]


class PerceptronPlayer:
    """An `palaestra.core.opponents.Opponent` that clips the output of a tanh perceptron to the bounds of its action.

    Attributes:
        memory_size: 0, it remembers nothing.
    """

    memory_size = 0

    def __init__(self, layers: Layers, low: np.ndarray, high: np.ndarray) -> None:
        """Keeps the layers in float64.

        Args:
            layers: Of one agent: its observation to its action.
            low: Lower bounds of the action.
            high: Upper bounds of the action.
        """
        self.layers = [(np.asarray(w, np.float64).T, np.asarray(b, np.float64)) for w, b in layers]
        self.low, self.high = np.asarray(low, np.float64), np.asarray(high, np.float64)

    def __call__(self, observations: np.ndarray) -> np.ndarray:
        """Actions float64 ``[..., outputs]`` of observations ``[..., inputs]``."""
        hidden = np.asarray(observations, np.float64)
        for number, (weight, bias) in enumerate(self.layers):
            hidden = hidden @ weight + bias
            if number < len(self.layers) - 1:
                hidden = np.tanh(hidden)
        return np.clip(hidden, self.low, self.high)

    def act(self, observations: Any, legal: Any, acting: Any, first: Any, seeds: Any, memory: Any) -> np.ndarray:
        """Actions of the team; see `palaestra.core.opponents.Opponent`."""
        return self(observations)


def perceptron_player(arrays: Mapping[str, np.ndarray], game: Game, team: str) -> PerceptronPlayer:
    """A player for one team of a game with continuous actions.

    Raises:
        ValueError: The network has other inputs or outputs than the team's agents.
    """
    role, _ = game.role_of(game.teams[team][0])
    layers = arrays_to_layers(arrays)
    reals = [f for f in role.action if isinstance(f, Continuous)]
    if len(reals) < len(role.action):
        raise ValueError(f"{team} of {game.name} has choices to make, the policy gives numbers")
    low, high = (np.concatenate([pair[side].reshape(-1) for pair in map(bounds, reals)]) for side in (0, 1))
    seen, sees = sum(f.size for f in role.observation), layers[0][0].shape[1]
    if (sees, len(layers[-1][1])) != (seen, len(low)):
        raise ValueError(
            f"the policy sees {sees} numbers and gives {len(layers[-1][1])}; "
            f"{team} of {game.name} sees {seen} and gives {len(low)}, so it was trained for another game"
        )
    return PerceptronPlayer(layers, low, high)
