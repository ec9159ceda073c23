"""Networks of a fixed number of inputs for teams of one role: recurrent utilities, and those with a value per target.

`palaestra_baselines.common.utilities.Utilities` is for memoryless agents of any number of roles.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from palaestra.core.game import Game
from palaestra_baselines.common.agents import Roster
from palaestra_baselines.common.policy_file import policy_for
from palaestra_baselines.common.unit_networks import NetworkPlayer, UnitLayout, UnitStream, fitting_network, load_arrays
from palaestra_baselines.common.utilities import FLATTEST, NEVER, ranges

ROWS = 64
"""Width of the encoding of a row: 64 in the code of UNMAS, whose stream then has a layer of 32."""


class FlatUtilities(nn.Module):
    """Utilities of agents of one role that read their whole observation by one layer.

        h = relu(W o + b_place)  ->  relu(V h + c), or a cell of gated recurrent units (Cho et al., arXiv 1406.1078)

    Attributes:
        memory_size: H, length of the recurrent state of an agent; 0 without recurrence.
    """

    mean: torch.Tensor
    scale: torch.Tensor
    places: torch.Tensor
    targets: torch.Tensor

    def __init__(self, roster: Roster, hidden: tuple[int, ...], recurrent: bool, streams: bool) -> None:
        """Networks of random weights from torch's generator.

        Args:
            roster: The learning agents.
            hidden: Widths of the first layer (the first) and of the features (the last).
            recurrent: Whether agents have a recurrent state.
            streams: Whether each target has a value made of the features and of the target's row; needs a table of
                units, see `UnitLayout.of`. Otherwise the last layer gives the values of all alternatives.

        Raises:
            ValueError: The agents have several roles, or the game has no such table.
        """
        super().__init__()
        if len(roster.groups) != 1:
            raise ValueError(f"{roster.game.name}: agents that learn have several roles; this network is for one")
        (group,) = roster.groups.values()
        inputs, (first, last) = roster.sizes[group.role.name], (hidden[0], hidden[-1])
        self.role, self.memory_size = group.role, last if recurrent else 0
        self.first = nn.Linear(inputs, first)
        self.place_bias = nn.Parameter(torch.randn(int(group.places.max()) + 1, first) / inputs**0.5)
        self.second = nn.GRUCell(first, last) if recurrent else nn.Linear(first, last)
        self.layout = UnitLayout.of(roster) if streams else None
        self.named = nn.Linear(last, roster.actions if self.layout is None else len(self.layout.named))
        self.register_buffer("places", torch.from_numpy(group.places), persistent=False)
        self.register_buffer("mean", torch.zeros(inputs))
        self.register_buffer("scale", torch.ones(inputs))
        if self.layout is not None:
            self.row, self.stream = nn.Linear(self.layout.table.width, ROWS), UnitStream(last, ROWS, ROWS // 2)
            self.register_buffer("targets", torch.from_numpy(self.layout.rows_of_targets()), persistent=False)

    def forward(self, observations: Mapping[str, torch.Tensor], memory: torch.Tensor | None = None) -> torch.Tensor:
        """Utilities ``[..., A, M]``, as `evaluate` gives them."""
        return self.evaluate(observations, memory)[0]

    def evaluate(
        self, observations: Mapping[str, torch.Tensor], memory: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Utilities ``[..., A, M]`` and features ``[..., A, H]``, which are the new recurrent state.

        Args:
            observations: ``[..., A, size]`` by role.
            memory: ``[..., A, H]``, recurrent state before the decision; only with recurrence.

        Raises:
            ValueError: The network is recurrent, and ``memory`` is None.
        """
        observed = observations[self.role.name]
        first = torch.relu(self.first((observed - self.mean) * self.scale) + self.place_bias[self.places])
        if not self.memory_size:
            features = torch.relu(self.second(first))
        elif memory is None:
            raise ValueError("the network is recurrent: it wants the recurrent state of the agents")
        else:
            features = self.second(first.flatten(0, -2), memory.flatten(0, -2)).unflatten(0, first.shape[:-1])
        values = self.named(features)
        return (values if self.layout is None else self._with_targets(values, features, observed)), features

    def _with_targets(self, named: torch.Tensor, features: torch.Tensor, observed: torch.Tensor) -> torch.Tensor:
        assert self.layout is not None
        rows = self.layout.split(observed)[1]
        values = nn.functional.pad(self.stream(features, self.row(rows)), (0, 1), value=NEVER)
        aimed = (rows[..., self.layout.target] * rows[..., self.layout.seen] > 0.0) & self.teammates
        index = torch.where(aimed.any(-1, keepdim=True), self.targets[1], self.targets[0])
        return torch.cat([named, values.gather(-1, index)], -1)

    @property
    def teammates(self) -> torch.Tensor:
        """Bool ``[A, R]``: which rows are teammates."""
        assert self.layout is not None
        return torch.from_numpy(np.arange(self.layout.table.rows) < self.layout.teammates[:, None])

    def standardise(self, observed: Mapping[str, np.ndarray]) -> None:
        """Scales inputs by mean and standard deviation of observations ``[N, A, size]`` by role."""
        rows = observed[self.role.name].reshape(-1, len(self.mean))
        least = FLATTEST * np.concatenate(ranges(self.role.observation))
        self.mean.copy_(torch.from_numpy(rows.mean(axis=0, dtype=np.float64)))
        self.scale.copy_(torch.from_numpy(1.0 / np.maximum(rows.std(axis=0, dtype=np.float64), least)))

    def arrays(self) -> dict[str, np.ndarray]:
        """Weights by name for a player."""
        return {name: value.detach().numpy().copy() for name, value in self.state_dict().items()}

    def notes(self) -> dict[str, Any]:
        """Further metadata of a policy file: none."""
        return {}

    def player(self, game: Game, team: str) -> NetworkPlayer:
        """The greedy player of a team by copies of the current weights."""
        return flat_player(self.arrays(), game, team)


def flat_player(arrays: Mapping[str, np.ndarray], game: Game, team: str) -> NetworkPlayer:
    """The greedy player of a team.

    Args:
        arrays: As `FlatUtilities.arrays` gives them.
        game: The rules.
        team: Name of the team.

    Raises:
        ValueError: The weights were made for another game.
    """
    roster, is_recurrent = Roster(game, [team]), "second.weight_ih" in arrays
    names = ("first.weight", "second.weight_hh" if is_recurrent else "second.weight")
    if any(name not in arrays or arrays[name].ndim != 2 for name in names):
        raise ValueError(f"the policy has no matrices {' and '.join(names)}")
    hidden = (len(arrays[names[0]]), arrays[names[1]].shape[1 if is_recurrent else 0])
    streams = "stream.out.weight" in arrays
    network = fitting_network(lambda: FlatUtilities(roster, hidden, is_recurrent, streams), arrays)
    load_arrays(network, arrays)
    return NetworkPlayer(network, roster)


def load_flat_player(path: Path, game: Game, team: str) -> NetworkPlayer:
    """The greedy player of a policy file.

    Raises:
        FileError: The file is no saved policy, or one of another game.
    """
    with policy_for(path, game, team) as arrays:
        return flat_player(arrays, game, team)
