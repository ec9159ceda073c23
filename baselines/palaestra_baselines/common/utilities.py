"""Utility networks Q_i(o_i, a_i), and the greedy decentralised player made of them.

All agents of a group (`palaestra_baselines.common.agents.Group`) share a perceptron. A group has agents of both teams
where the teams are alike: observations look the same from either side. A bias of the first layer for each place in the
team distinguishes teammates, as a one-hot number beside the observation would.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import nn

from palaestra.core.fields import ObservationField, checked_bounds
from palaestra.core.game import Game
from palaestra_baselines.common.agents import Roster, group_rows
from palaestra_baselines.common.collector import Position
from palaestra_baselines.common.policy_file import arrays_to_layers, policy_for

NEVER = -1e9
"""Utility of an alternative that an agent of this role does not have."""
FLATTEST = 0.05
"""Least standard deviation of an input, as a share of its range: an input that hardly ever changes is not magnified."""


class UtilityNetwork(nn.Module):
    """Utilities of all agents of one group."""

    mean: torch.Tensor
    scale: torch.Tensor
    places: torch.Tensor

    def __init__(self, inputs: int, choices: int, places: np.ndarray, hidden: tuple[int, ...]) -> None:
        """A perceptron with rectified units.

        Args:
            inputs: Length of an observation.
            choices: Number of alternatives.
            places: int64 ``[A_group]``, place of each agent in its team.
            hidden: Widths of the hidden layers.
        """
        super().__init__()
        widths = (inputs, *hidden, choices)
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(widths))
        self.place_bias = nn.Parameter(torch.randn(int(places.max()) + 1, hidden[0]) / inputs**0.5)
        self.register_buffer("places", torch.from_numpy(places))
        self.register_buffer("mean", torch.zeros(inputs))
        self.register_buffer("scale", torch.ones(inputs))

    def features(self, observations: torch.Tensor) -> torch.Tensor:
        """Last hidden layer ``[..., A_group, width]`` of observations ``[..., A_group, inputs]``."""
        hidden = self.layers[0]((observations - self.mean) * self.scale) + self.place_bias[self.places]
        for layer in self.layers[1:-1]:
            hidden = layer(torch.relu(hidden))
        return torch.relu(hidden)

    def another_head(self) -> nn.Linear:
        """A layer of random weights like the last: other utilities from the same features."""
        last = cast(nn.Linear, self.layers[-1])
        return nn.Linear(last.in_features, last.out_features)

    def arrays(self) -> dict[str, np.ndarray]:
        """Weights by name for a player, the scaling of the input folded into the first layer."""
        first, *rest = cast(list[nn.Linear], list(self.layers))
        weight = first.weight * self.scale
        layers = [(weight, first.bias - weight @ self.mean), *((layer.weight, layer.bias) for layer in rest)]
        named: dict[str, torch.Tensor] = {"place_bias": self.place_bias}
        for number, (matrix, bias) in enumerate(layers):
            named |= {f"layer_{number}.weight": matrix, f"layer_{number}.bias": bias}
        return {name: value.detach().numpy().copy() for name, value in named.items()}


class Utilities(nn.Module):
    """Utilities of all learning agents: one `UtilityNetwork` per group.

    Attributes:
        memory_size: 0, it has no recurrent state.
    """

    memory_size = 0
    order: torch.Tensor

    def __init__(self, roster: Roster, hidden: tuple[int, ...]) -> None:
        """Networks of random weights from torch's generator."""
        super().__init__()
        self.groups = roster.groups
        self.missing = {name: roster.actions - roster.choices[g.role.name] for name, g in roster.groups.items()}
        self.networks = nn.ModuleDict()
        for name, group in roster.groups.items():
            role = group.role.name
            self.networks[name] = UtilityNetwork(roster.sizes[role], roster.choices[role], group.places, hidden)
        agents = [agent for group in roster.groups.values() for agent in group.agents]
        self.register_buffer("order", torch.from_numpy(np.argsort(agents)))

    def forward(self, observations: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Utilities ``[..., A, M]`` of observations ``[..., A_role, size]`` by role."""
        return self.values(self.features(observations))

    def evaluate(self, observations: Mapping[str, torch.Tensor], memory: None = None) -> tuple[torch.Tensor, None]:
        """Utilities ``[..., A, M]``, and no recurrent state."""
        return self(observations), None

    def features(self, observations: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Last hidden layers ``[..., A_group, width]`` by group."""
        networks: Any = self.networks.items()
        return {name: network.features(group_rows(self.groups[name], observations)) for name, network in networks}

    def values(self, features: Mapping[str, torch.Tensor], heads: nn.ModuleDict | None = None) -> torch.Tensor:
        """Utilities ``[..., A, M]`` of features, by the networks' last layers or by other ``heads``, by group."""
        parts = []
        networks: Any = self.networks.items()
        for name, network in networks:
            head = network.layers[-1] if heads is None else heads[name]
            part, missing = head(features[name]), self.missing[name]
            parts.append(nn.functional.pad(part, (0, missing), value=NEVER) if missing else part)
        return parts[0] if len(parts) == 1 else torch.cat(parts, -2)[..., self.order, :]

    def other_heads(self) -> nn.ModuleDict:
        """Layers of random weights like the last, by group: see `values`."""
        networks: Any = self.networks.items()
        return nn.ModuleDict({name: network.another_head() for name, network in networks})

    def standardise(self, observed: Mapping[str, np.ndarray]) -> None:
        """Scales inputs by mean and standard deviation of observations ``[N, A_role, size]`` by role."""
        networks: Any = self.networks.items()
        for name, network in networks:
            group = self.groups[name]
            rows = group_rows(group, observed).reshape(-1, observed[group.role.name].shape[-1])
            least = FLATTEST * np.concatenate(ranges(group.role.observation))
            deviation = np.maximum(rows.std(axis=0, dtype=np.float64), least)
            network.mean.copy_(torch.from_numpy(rows.mean(axis=0, dtype=np.float64)))
            network.scale.copy_(torch.from_numpy(1.0 / deviation))

    def arrays(self) -> dict[str, np.ndarray]:
        """Weights of all groups by ``group.name``."""
        networks: Any = self.networks.items()
        return {f"{group}.{name}": array for group, network in networks for name, array in network.arrays().items()}

    def notes(self) -> dict[str, Any]:
        """Further metadata of a policy file: none."""
        return {}

    def player(self, game: Game, team: str) -> UtilityPlayer:
        """The greedy player of a team by copies of the current weights."""
        return UtilityPlayer(self.arrays(), game, team)


def q_of_actions(values: torch.Tensor, actions: torch.Tensor, position: Position) -> torch.Tensor:
    """Utilities ``[..., A]`` of the actions ``[..., A]``; 0 for agents out of the match.

    Args:
        values: ``[..., A, M]``.
        actions: int64 ``[..., A]``.
        position: Says which agents are in the match.
    """
    return values.gather(-1, actions[..., None])[..., 0] * position.alive


def greedy(values: torch.Tensor, choice: torch.Tensor, position: Position) -> torch.Tensor:
    """Utilities ``[..., A]`` of each agent's best legal action; 0 for agents out of the match.

    Args:
        values: ``[..., A, M]``, by which the actions are valued.
        choice: ``[..., A, M]``, by which they are chosen (van Hasselt et al., arXiv 1509.06461: the online network's).
        position: Says what is legal, and which agents are in the match.
    """
    return q_of_actions(values, choice.masked_fill(~position.legal, -torch.inf).argmax(-1), position)


def ranges(fields: Iterable[ObservationField]) -> list[np.ndarray]:
    """Widths of the ranges of all numbers of an observation; 1 where a range is a point."""
    found = []
    for f in fields:
        low, high = checked_bounds(f)
        width = np.broadcast_to(high - low, f.shape).reshape(-1)
        found.append(np.where(width == 0.0, 1.0, width))
    return found


# ------------------------------------------------------------------------------------------------------------- player


class UtilityPlayer:
    """Plays one team greedily, each agent by its own utilities: an `palaestra.core.opponents.Opponent`.

    Attributes:
        memory_size: 0, the player is memoryless.
    """

    memory_size = 0

    def __init__(self, arrays: Mapping[str, np.ndarray], game: Game, team: str) -> None:
        """Reads the weights of the team.

        Args:
            arrays: As `Utilities.arrays` gives them.
            game: The rules.
            team: Name of the team.

        Raises:
            ValueError: The weights were made for another game.
        """
        roster = Roster(game)
        self.joint = roster.joint
        self.layers: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
        for name, group in roster.groups.items():
            own = [row for row, agent in enumerate(group.agents) if agent in game.teams[team]]
            if not own:
                continue
            layers = [(weight.T, bias) for weight, bias in arrays_to_layers(arrays, f"{name}.")]
            role, places = group.role.name, group.places[own]
            sizes = (layers[0][0].shape[0], layers[-1][0].shape[1])
            if sizes != (roster.sizes[role], roster.choices[role]):
                raise ValueError(
                    f"the policy sees {sizes[0]} numbers and has {sizes[1]} choices; {team} of {game.name} sees "
                    f"{roster.sizes[role]} and has {roster.choices[role]}, so it was trained for another game"
                )
            place_bias = arrays.get(f"{name}.place_bias", np.empty(0))
            if place_bias.ndim != 2 or place_bias.shape[1] != len(layers[0][1]):
                raise ValueError(f"the policy's {name}.place_bias is {place_bias.shape}, not one row for each place")
            if places.max() >= len(place_bias):
                raise ValueError(f"the policy is one for teams of {len(place_bias)}; {team} has {len(own)} in {role!r}")
            (weight, bias), *rest = layers
            self.layers[role] = [(weight, bias + place_bias[places]), *rest]

    def values(self, role: str, observations: np.ndarray) -> np.ndarray:
        """Utilities float32 ``[n, A_team, choices]`` of the team's agents of one role."""
        (weight, bias), *rest = self.layers[role]
        hidden = observations @ weight + bias
        for weight, bias in rest:
            hidden = np.maximum(hidden, 0.0) @ weight + bias
        return hidden

    def act(self, observations: Any, legal: Any, acting: Any, first: Any, seeds: Any, memory: Any) -> Any:
        """Actions of the team; see `palaestra.core.opponents.Opponent`."""
        chosen = {}
        for name in self.layers:
            values = self.values(name, observations[name] if isinstance(observations, dict) else observations)
            if legal is not None:
                allowed = legal[name] if isinstance(legal, dict) else legal
                values = np.where(self.joint[name].mask(allowed), values, -np.inf)
            chosen[name] = self.joint[name].split(values.argmax(axis=2))
        return next(iter(chosen.values())) if len(chosen) == 1 else chosen


def load_player(path: Path, game: Game, team: str) -> UtilityPlayer:
    """The greedy player of a policy file.

    Raises:
        FileError: The file is no saved policy, or one of another game.
    """
    with policy_for(path, game, team) as arrays:
        return UtilityPlayer(arrays, game, team)
