"""The policy of a team on graphs, and the player of its file."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from palaestra.core.files import FileError
from palaestra.core.game import Game
from palaestra.core.opponents import Opponent
from palaestra_baselines.common.combined_choices import JointChoice
from palaestra_baselines.common.graph_networks import (
    GraphRoster,
    Maps,
    Places,
    WaysNetwork,
    decide,
    named_parameters,
    nodes_of,
)
from palaestra_baselines.common.policy_file import policy_for, read_policy
from palaestra_baselines.common.unit_networks import fitting_network

NETWORK = "ways_network"
"""Entry of a policy's metadata."""


class GraphPolicy(nn.Module):
    """The actor, and what a file of it holds."""

    def __init__(self, maps: Maps, width: int, heads: int, decoder: str) -> None:
        """A network of random weights from torch's generator."""
        super().__init__()
        self.network, self.decoder = WaysNetwork(maps, width, heads, 1), decoder
        self.width, self.heads = width, heads

    @property
    def sequential(self) -> bool:
        """Whether members see the decisions of earlier ones."""
        return self.decoder == "sequential"

    def choose(self, places: Places, legal: torch.Tensor) -> torch.Tensor:
        """The most probable alternatives int64 ``[S, k]``; ``legal [S, k, M]``."""
        return decide(self.network.scores, self.network.maps, places, legal, None, self.sequential)

    def arrays(self) -> dict[str, np.ndarray]:
        """Weights by name."""
        return dict(named_parameters(self.network))

    def notes(self) -> dict[str, Any]:
        """Shape of the network."""
        return {NETWORK: {"width": self.width, "heads": self.heads, "decoder": self.decoder}}

    def player(self, game: Game, team: str) -> Opponent:
        """The greedy player of a team by a copy of the weights."""
        return Player(copy.deepcopy(self), game, team)


class Player:
    """Plays a team greedily; it remembers nothing."""

    memory_size = 0

    def __init__(self, policy: GraphPolicy, game: Game, team: str) -> None:
        """Plays ``team`` of ``game`` by a policy."""
        self.policy, self.members = policy, len(game.teams[team])
        self.joint = JointChoice(game, game.role_of(game.teams[team][0])[0])

    def act(self, observations: Any, legal: Any, acting: Any, first: Any, seeds: Any, memory: Any) -> np.ndarray:
        """Moves of the team; see `palaestra.core.opponents.Opponent`."""
        places = Places.of(torch.from_numpy(nodes_of(observations)), self.members)
        allowed = torch.from_numpy(self.joint.mask(np.asarray(legal)))
        return self.joint.split(self.policy.choose(places, allowed).numpy())


def load_graph_player(path: Path, game: Game, team: str) -> Opponent:
    """The greedy player of a policy file, on any graph and for any number of agents.

    Raises:
        FileError: The file is no saved policy of graphs, or the game does not show its nodes.
    """
    with policy_for(path, game, team) as arrays:
        shape: Any = read_policy(path)[1].get(NETWORK)
        GraphRoster(game, [team])
        try:
            policy = fitting_network(
                lambda: GraphPolicy(Maps(game), shape["width"], shape["heads"], shape["decoder"]), arrays
            )
            policy.network.load_state_dict({name: torch.from_numpy(array) for name, array in arrays.items()})
        except (RuntimeError, TypeError, KeyError, AssertionError, ZeroDivisionError) as error:
            raise FileError(f"{path}: the weights do not fit: {' '.join(str(error).split())[:200]}") from error
        return policy.player(game, team)
