"""What methods for teams whose agents give real numbers share: inputs, networks by group, a joint critic, a player.

Tensors have the agent after the leading axes: observations ``[..., A, I]``, actions ``[..., A, M]`` in [-1, 1].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import nn

from palaestra.players.choosing import Chance
from palaestra_baselines.common.agents import Roster
from palaestra_baselines.common.flat_networks import FLATTEST, ranges
from palaestra_baselines.common.world_models import Perceptrons, StackedLinear, units

CHUNK = 32
"""Matches that a player decides at once, filled up: what it plays does not depend on how many are played beside it."""


class Inputs(nn.Module):
    """Observations of all agents as rows of one length: scaled numbers, 0 where a role sees less, then a one-hot place.

    The place is that among the agents that share weights.

    Attributes:
        size: I, the length of a row.
    """

    mean: torch.Tensor
    scale: torch.Tensor
    places: torch.Tensor

    def __init__(self, roster: Roster) -> None:
        """Mean 0 and deviation 1 of all inputs."""
        super().__init__()
        self.game, self.columns, width = roster.game, roster.columns, max(roster.sizes.values())
        places = np.zeros(roster.agents, np.int64)
        for group in roster.groups.values():
            places[list(group.agents)] = group.places
        one_hot = np.eye(int(places.max()) + 1, dtype=np.float32)[places]
        self.register_buffer("places", torch.from_numpy(one_hot), persistent=False)
        self.register_buffer("mean", torch.zeros(roster.agents, width))
        self.register_buffer("scale", torch.ones(roster.agents, width))
        self.size = width + one_hot.shape[1]

    def forward(self, observations: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Rows ``[..., A, I]`` of observations ``[..., A_role, size]`` by role."""
        width = self.mean.shape[1]
        rows = [nn.functional.pad(seen, (0, width - seen.shape[-1])) for seen in observations.values()]
        seen = rows[0] if len(rows) == 1 else torch.cat(rows, -2)
        places = self.places.expand(*seen.shape[:-1], -1)
        return torch.cat([(seen - self.mean) * self.scale, places], -1)

    def standardise(self, observed: Mapping[str, np.ndarray]) -> None:
        """Scales inputs by mean and standard deviation of observations ``[N, A_role, size]`` over the role's agents."""
        for role in self.game.roles:
            if role.name in observed:
                rows = observed[role.name].reshape(-1, observed[role.name].shape[-1])
                size, columns = rows.shape[-1], self.columns[role.name]
                deviation = rows.std(axis=0, dtype=np.float64)
                deviation = np.maximum(deviation, FLATTEST * np.concatenate(ranges(role.observation)))
                self.mean[columns, :size] = torch.from_numpy(rows.mean(axis=0, dtype=np.float64)).float()
                self.scale[columns, :size] = torch.from_numpy(1.0 / deviation).float()


def perceptron(inputs: int, hidden: Sequence[int], outputs: int) -> nn.Sequential:
    """Layers with rectified units between them, of random weights from torch's generator."""
    layers = [layer for a, b in pairwise((inputs, *hidden)) for layer in (nn.Linear(a, b), nn.ReLU())]
    return nn.Sequential(*layers, nn.Linear((inputs, *hidden)[-1], outputs))


class GroupNetworks(nn.Module):
    """A perceptron for each group of agents, which share its weights."""

    order: torch.Tensor

    def __init__(self, roster: Roster, inputs: int, hidden: Sequence[int], outputs: int) -> None:
        """Random weights from torch's generator."""
        super().__init__()
        self.agents = [list(group.agents) for group in roster.groups.values()]
        self.networks = nn.ModuleList(perceptron(inputs, hidden, outputs) for _ in self.agents)
        order = np.argsort([agent for agents in self.agents for agent in agents])
        self.register_buffer("order", torch.from_numpy(order), persistent=False)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Outputs ``[..., A, outputs]`` of rows ``[..., A, inputs]``."""
        networks: Any = self.networks
        if len(networks) == 1:
            return networks[0](rows)
        parts = [network(rows[..., agents, :]) for network, agents in zip(networks, self.agents, strict=True)]
        return torch.cat(parts, -2)[..., self.order, :]


class TwinCritic(nn.Module):
    """Two values of what all agents see and do (Fujimoto et al., arXiv 1802.09477)."""

    def __init__(self, inputs: int, hidden: Sequence[int]) -> None:
        """Random weights; values are 0 at first.

        Args:
            inputs: Numbers of the inputs and actions of all agents.
            hidden: Widths of the hidden layers.
        """
        super().__init__()
        self.first = StackedLinear(1, inputs, 2 * hidden[0])
        self.rest = Perceptrons(2, hidden[0], hidden[1:], 1, zero=True)

    def forward(self, seen: torch.Tensor, actions: torch.Tensor) -> torch.Tensor:
        """Values ``[2, ...]`` of inputs ``[..., A, I]`` and actions ``[..., A, M]``."""
        rows = torch.cat([seen.flatten(-2), actions.flatten(-2)], -1)
        hidden = units(self.first(rows.reshape(1, -1, rows.shape[-1]))[0].unflatten(-1, (2, -1)))
        return self.rest(hidden.transpose(0, 1))[..., 0].view(2, *rows.shape[:-1])


class ActorPlayer:
    """Plays a team by an actor: an `palaestra.core.run.opponents.Opponent`.

    Draws come from the seed of the lane and the number of the decision, so that a match repeats to the bit.

    Attributes:
        memory_size: 1, the number of the decision.
        policy_outputs: Empty.
    """

    memory_size = 1

    def __init__(self, actor: Any, roster: Roster, team: str, explore: bool) -> None:
        """Keeps an `Actor` of the team's agents; ``explore`` draws actions, else there is no noise."""
        self.actor, self.roster, self.explore = actor, roster, explore
        self.team, self.policy_outputs = list(roster.game.teams).index(team), dict[str, np.ndarray]()
        self.legal = torch.zeros(roster.agents, roster.actions, dtype=torch.bool)
        for name, columns in roster.columns.items():
            self.legal[columns, : roster.choices[name]] = True

    def act(self, observations: Any, legal: Any, acting: Any, first: Any, seeds: Any, memory: Any) -> Any:
        """Actions of the team; see `palaestra.core.run.opponents.Opponent`."""
        roster, count, shape = self.roster, len(memory), self.legal.shape
        seen = observations if isinstance(observations, dict) else {next(iter(roster.sizes)): observations}
        noise = Chance(seeds, memory[:, 0], 1, self.team).normals(shape.numel()).astype(np.float32)
        parts, own = [], self.legal.expand(CHUNK, -1, -1)
        for start in range(0, count, CHUNK):
            rows = np.minimum(np.arange(start, start + CHUNK), count - 1)
            chunk = {name: torch.from_numpy(np.ascontiguousarray(seen[name][rows])) for name in roster.sizes}
            drawn = torch.from_numpy(noise[rows]).unflatten(1, shape) if self.explore else None
            with torch.no_grad():
                parts.append(self.actor.policy(self.actor.read(self.actor.inputs(chunk)).rows, own, drawn)[0])
        memory[:, 0] += 1
        actions = torch.cat(parts)[:count].numpy()
        chosen = {name: roster.joint[name].split(actions[:, columns]) for name, columns in roster.columns.items()}
        return next(iter(chosen.values())) if len(chosen) == 1 else chosen


def hidden_of(arrays: Mapping[str, np.ndarray], prefix: str = "policy.network.networks.0.") -> tuple[int, ...]:
    """Widths of the hidden layers of a `perceptron` in a policy file, which may be anybody's.

    Raises:
        ValueError: It has no layers.
    """
    names = [f"{prefix}{2 * k}.weight" for k in range(len(arrays))]
    found = [arrays[name] for name in names if name in arrays]
    if not found or any(array.ndim != 2 for array in found):
        raise ValueError(f"the policy has no layers {prefix}0.weight: another method saved it")
    return tuple(len(array) for array in found[:-1])
