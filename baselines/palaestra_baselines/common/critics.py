"""Values of global states, for centralised critics, and the running scale of their targets."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import nn

from palaestra.core.game import Game

FLATTEST = 0.05
"""Least standard deviation of an input: one that hardly ever changes is not magnified."""


class Critic(nn.Module):
    """Value of a global state by a perceptron with rectified units."""

    mean: torch.Tensor
    scale: torch.Tensor

    def __init__(self, inputs: int, hidden: tuple[int, ...]) -> None:
        """Layers of random weights from torch's generator.

        Args:
            inputs: S, length of the state.
            hidden: Widths of the hidden layers.
        """
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise((inputs, *hidden, 1)))
        self.register_buffer("mean", torch.zeros(inputs))
        self.register_buffer("scale", torch.ones(inputs))

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Values ``[...]`` of states ``[..., S]``."""
        return by_layers(self.layers, (states - self.mean) * self.scale)

    def standardise(self, states: np.ndarray) -> None:
        """Scales inputs by mean and standard deviation of states ``[N, S]``."""
        scale_inputs(self, states)


class UnitCritic(nn.Module):
    """Value of a global state that has a row of numbers for each agent, all 0 for agents out of the match.

    No weight depends on the number of agents. Rows are encoded by weights of their own for each team, and pooled::

        e_j = relu(W_team row_j + b_team)
        V = perceptron([mean_j e_j, max_j e_j, log(1 + number of agents in the match) of each team])
    """

    mean: torch.Tensor
    scale: torch.Tensor

    def __init__(self, game: Game, size: int, hidden: tuple[int, ...]) -> None:
        """Layers of random weights from torch's generator.

        Args:
            game: The rules.
            size: S, length of the state.
            hidden: Widths of the features of a row (the first) and of the layers after the pooling.

        Raises:
            ValueError: The state is not one row of equal length for each agent.
        """
        super().__init__()
        agents = len(game.team_index)
        if game.global_state is None or size % agents:
            raise ValueError(
                f"{game.name}: the global state of {size} numbers has no row for each of {agents} agents: "
                "use --network flat"
            )
        self.members = [list(slots) for slots in game.teams.values()]
        self.agents, width, rows = agents, size // agents, hidden[0]
        self.teams = nn.ModuleList(nn.Linear(width, rows) for _ in self.members)
        pooled = len(self.members) * (2 * rows + 1)
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise((pooled, *hidden, 1)))
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("scale", torch.ones(width))

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Values ``[...]`` of states ``[..., S]``."""
        rows = states.unflatten(-1, (self.agents, -1))
        is_in = (rows != 0.0).any(-1, keepdim=True).float()
        rows, pooled = (rows - self.mean) * self.scale, []
        for layer, slots in zip(self.teams, self.members, strict=True):
            present = is_in[..., slots, :]
            encoded = torch.relu(layer(rows[..., slots, :])) * present
            number = present.sum(-2)
            pooled += [encoded.sum(-2) / number.clamp(min=1.0), encoded.amax(-2), number.log1p()]
        return by_layers(self.layers, torch.cat(pooled, -1))

    def standardise(self, states: np.ndarray) -> None:
        """Scales inputs by mean and standard deviation over agents in the match, of states ``[N, S]``."""
        rows = states.reshape(len(states) * self.agents, -1)
        scale_inputs(self, rows[rows.any(1)])


def by_layers(layers: nn.ModuleList, inputs: torch.Tensor) -> torch.Tensor:
    """Values ``[...]`` of inputs ``[..., I]`` by the layers of a perceptron."""
    for layer in layers[:-1]:
        inputs = torch.relu(layer(inputs))
    return layers[-1](inputs)[..., 0]


def scale_inputs(critic: Any, rows: np.ndarray) -> None:
    """Sets ``mean`` and ``scale`` of a critic by rows ``[N, I]``."""
    deviation = np.maximum(rows.std(axis=0, dtype=np.float64), FLATTEST)
    critic.mean.copy_(torch.from_numpy(rows.mean(axis=0, dtype=np.float64)))
    critic.scale.copy_(torch.from_numpy(1.0 / deviation))


class ValueScale(nn.Module):
    """Running mean and standard deviation of the targets of a critic, which learns targets of mean 0 and deviation 1.

    First and second moment are exponential averages over updates, divided by the weight that they have gathered, as in
    value normalisation of Yu et al. (arXiv 2103.01955).
    """

    moments: torch.Tensor
    gathered: torch.Tensor

    def __init__(self, decay: float) -> None:
        """Knows no targets yet: mean 0, deviation 1.

        Args:
            decay: Share of the old averages that an update keeps.
        """
        super().__init__()
        self.decay = decay
        self.register_buffer("moments", torch.zeros(2, dtype=torch.float64))
        self.register_buffer("gathered", torch.zeros((), dtype=torch.float64))

    def update(self, targets: torch.Tensor, weights: torch.Tensor) -> None:
        """Adds targets of any shape; ``weights`` of the same shape are 0 for those that do not count."""
        values, share = targets.double(), weights.double() / weights.sum().clamp(min=1.0)
        fresh = torch.stack([(values * share).sum(), (values**2 * share).sum()])
        self.moments.lerp_(fresh, 1.0 - self.decay)
        self.gathered.lerp_(torch.ones_like(self.gathered), 1.0 - self.decay)

    def mean_and_deviation(self) -> tuple[float, float]:
        """Of the targets so far; the deviation is at least 1e-2."""
        if not self.gathered:
            return 0.0, 1.0
        mean, square = (self.moments / self.gathered).tolist()
        return mean, max(square - mean**2, 1e-4) ** 0.5

    def normalised(self, targets: torch.Tensor) -> torch.Tensor:
        """Targets as the critic learns them."""
        mean, deviation = self.mean_and_deviation()
        return (targets - mean) / deviation

    def restored(self, outputs: torch.Tensor) -> torch.Tensor:
        """Values of a critic's outputs: the inverse of `normalised`."""
        mean, deviation = self.mean_and_deviation()
        return outputs * deviation + mean
