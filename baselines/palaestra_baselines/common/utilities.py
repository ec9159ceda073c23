"""Utility networks Q_i(o_i, a_i), and the greedy decentralised player that they become.

All agents of a crew (`palaestra_baselines.common.self_play.Crew`) share a perceptron, those of both teams where the
teams are alike: observations look the same from either side. What tells team mates apart is a bias of the first layer
for each place in the team, as a one-hot number beside the observation would be.
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
from palaestra_baselines.common.policy_file import read_policy, save_policy
from palaestra_baselines.common.self_play import Crew, Roster

NEVER = -1e9
"""Utility of an alternative that an agent of this role does not have."""
FLATTEST = 0.05
"""Least deviation of an input, as a share of its range: what hardly ever changes is not blown up."""


class UtilityNetwork(nn.Module):
    """Utilities of all agents of one crew."""

    mean: torch.Tensor
    scale: torch.Tensor
    places: torch.Tensor

    def __init__(self, inputs: int, choices: int, places: np.ndarray, hidden: tuple[int, ...]) -> None:
        """A perceptron with rectified units.

        Args:
            inputs: Numbers that an agent sees.
            choices: Its alternatives.
            places: int64 ``[A_crew]``, place of each agent in its team.
            hidden: Widths of the layers between.
        """
        super().__init__()
        widths = (inputs, *hidden, choices)
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(widths))
        self.place_bias = nn.Parameter(torch.randn(int(places.max()) + 1, hidden[0]) / inputs**0.5)
        self.register_buffer("places", torch.from_numpy(places))
        self.register_buffer("mean", torch.zeros(inputs))
        self.register_buffer("scale", torch.ones(inputs))

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """Utilities ``[B, A_crew, choices]`` of observations ``[B, A_crew, inputs]``."""
        hidden = self.layers[0]((observations - self.mean) * self.scale) + self.place_bias[self.places]
        for layer in self.layers[1:]:
            hidden = layer(torch.relu(hidden))
        return hidden

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
    """Utilities of all agents: a `UtilityNetwork` a crew."""

    order: torch.Tensor

    def __init__(self, roster: Roster, hidden: tuple[int, ...]) -> None:
        """Networks of random weights from torch's generator."""
        super().__init__()
        self.crews = roster.crews
        self.missing = {name: roster.actions - roster.choices[crew.role.name] for name, crew in roster.crews.items()}
        self.networks = nn.ModuleDict()
        for name, crew in roster.crews.items():
            role = crew.role.name
            self.networks[name] = UtilityNetwork(roster.sizes[role], roster.choices[role], crew.places, hidden)
        slots = [slot for crew in roster.crews.values() for slot in crew.slots]
        self.register_buffer("order", torch.from_numpy(np.argsort(slots)))

    def forward(self, observations: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Utilities ``[B, A, M]`` of observations ``[B, A_role, size]`` by role."""
        parts = []
        for name, network in self.networks.items():
            part = network(crew_rows(self.crews[name], observations))
            missing = self.missing[name]
            parts.append(nn.functional.pad(part, (0, missing), value=NEVER) if missing else part)
        return parts[0] if len(parts) == 1 else torch.cat(parts, 1)[:, self.order]

    def standardise(self, seen: Mapping[str, np.ndarray]) -> None:
        """Scales inputs by mean and deviation of observations ``[N, A_role, size]`` by role."""
        networks: Any = self.networks.items()
        for name, network in networks:
            crew = self.crews[name]
            rows = crew_rows(crew, seen).reshape(-1, seen[crew.role.name].shape[-1])
            least = FLATTEST * np.concatenate(ranges(crew.role.observation))
            deviation = np.maximum(rows.std(axis=0, dtype=np.float64), least)
            network.mean.copy_(torch.from_numpy(rows.mean(axis=0, dtype=np.float64)))
            network.scale.copy_(torch.from_numpy(1.0 / deviation))

    def arrays(self) -> dict[str, np.ndarray]:
        """Weights of all crews by ``crew.name``."""
        networks: Any = self.networks.items()
        return {f"{crew}.{name}": array for crew, network in networks for name, array in network.arrays().items()}


def crew_rows(crew: Crew, observations: Mapping[str, Any]) -> Any:
    """What the members of a crew see, ``[B, A_crew, size]``, of an array or tensor by role."""
    rows = observations[crew.role.name]
    return rows if len(crew.members) == rows.shape[1] else rows[:, crew.members]


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
    """Plays one team greedily, every agent by its own utilities: an `palaestra.core.opponents.Opponent`.

    Attributes:
        memory_size: 0, it remembers nothing.
    """

    memory_size = 0

    def __init__(self, arrays: Mapping[str, np.ndarray], game: Game, team: str) -> None:
        """Takes what it needs of the weights.

        Args:
            arrays: As `Utilities.arrays` gives them.
            game: The rules.
            team: Whom it plays.

        Raises:
            ValueError: The weights were made for another game.
        """
        roster = Roster(game)
        self.layers: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
        for name, crew in roster.crews.items():
            own = [row for row, slot in enumerate(crew.slots) if slot in game.teams[team]]
            if not own:
                continue
            count = sum(key.startswith(f"{name}.layer_") and key.endswith(".weight") for key in arrays)
            layers = [(arrays[f"{name}.layer_{k}.weight"].T, arrays[f"{name}.layer_{k}.bias"]) for k in range(count)]
            role, places = crew.role.name, crew.places[own]
            sizes = (layers[0][0].shape[0], layers[-1][0].shape[1]) if layers else (0, 0)
            if sizes != (roster.sizes[role], roster.choices[role]):
                raise ValueError(
                    f"the policy sees {sizes[0]} numbers and has {sizes[1]} choices; {team} of {game.name} sees "
                    f"{roster.sizes[role]} and has {roster.choices[role]}, so it was trained for another game"
                )
            place_bias = arrays[f"{name}.place_bias"]
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
                values = np.where(legal[name] if isinstance(legal, dict) else legal, values, -np.inf)
            chosen[name] = values.argmax(axis=2)
        return next(iter(chosen.values())) if len(chosen) == 1 else chosen


def save_utilities(path: Path, utilities: Utilities, **facts: Any) -> None:
    """Writes a policy file; ``facts`` as `palaestra_baselines.common.policy_file.save_policy` takes them."""
    save_policy(path, utilities.arrays(), **facts)


def load_player(path: Path, game: Game, team: str) -> UtilityPlayer:
    """The greedy player of a policy file."""
    return UtilityPlayer(read_policy(path)[0], game, team)
