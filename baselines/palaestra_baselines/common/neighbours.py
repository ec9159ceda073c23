"""Agents that exchange messages with the teammates in their lists of neighbours, by weights that fit any number.

A game shows each agent ``own`` numbers, a ``window`` of cells, its ``neighbours`` (indices among the agents of the
team, -1 beyond the last) and their ``offsets`` in cells. Of what an agent sees itself, x_i, its own absolute place is
left out. One exchange projects messages m, gathers them by index and adds a projection of the neighbour's offset::

    g_i = mean over neighbours j that are present of relu(W m_j + b + U offset_ij),    0 without neighbours

The message of an agent out of the match is 0: W m_j + b counts as 0. After the first messages, of x_i alone, each
exchange makes the next ones of an agent's own message and what it has got::

    m_i <- relu(V_1 x_i + c_1),    then for each hop    m_i <- relu(V [m_i, g_i] + c)

The latent z_i of an agent are its last messages or, with a ``latent`` head, a linear map of them (the mean of a normal
distribution) divided by a fixed ``scale``. Actions are scored, and positions valued, by a perceptron of (x_i, z_i).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import nn

from palaestra.core.run.simulation import Simulation
from palaestra.game import Game
from palaestra_baselines.common.agents import Roster
from palaestra_baselines.common.flat_networks import GreedyPlayer, fitting_network, load_arrays

FIELDS = ("own", "window", "neighbours", "offsets")
SEEN_OF_OWN = 4
"""Own numbers before the absolute place."""
UNIT = 100.0
"""Own numbers and cells are in %."""
FAR = 8.0
"""Cells of an offset that count as 1."""
NETWORK = "neighbour_network"
"""Entry of a policy's metadata: the `Shape` of the network."""
Observations = Mapping[str, torch.Tensor]
"""`FIELDS` by name, ``[..., A, *shape of the field]``."""


class NeighbourRoster(Roster):
    """The agents of one team, of one role, that observe windows and lists of neighbours; each has its own rewards.

    Attributes:
        inputs: Numbers that an agent sees itself, see `inputs_of`.
    """

    TAKES_RECORDS = True

    def __init__(self, game: Game, teams: Any) -> None:
        """See `Roster`.

        Raises:
            ValueError: The agents observe other fields or have several roles, or `Roster` refuses the game.
        """
        super().__init__(game, teams)
        groups = list(self.groups.values())
        fields = {f.name: f for f in groups[0].role.observation}
        if len(groups) != 1 or tuple(fields) != FIELDS:
            raise ValueError(
                f"{game.name}: messages are learnt by agents of one role that observe {', '.join(FIELDS)}; these "
                f"observe {', '.join(fields)}"
            )
        self.role, self.inputs = groups[0].role.name, SEEN_OF_OWN + fields["window"].size

    def read_observations(self, sim: Simulation) -> dict[str, np.ndarray]:
        """Fields ``[N, A, ...]`` by name, of their own dtypes."""
        read: Any = sim.observations
        return fields_of((read[self.role] if isinstance(read, dict) else read)[:, self.rows[self.role]])

    def read_rewards(self, sim: Simulation) -> np.ndarray:
        """Rewards float32 ``[N, A]`` of the agents."""
        return sim.rewards[:, self.slots].astype(np.float32)


def fields_of(records: np.ndarray) -> dict[str, np.ndarray]:
    """Contiguous arrays of the fields of records."""
    return {name: np.ascontiguousarray(records[name]) for name in FIELDS}


def inputs_of(observations: Observations) -> torch.Tensor:
    """What agents see themselves, without their absolute place, float32 ``[..., A, I]``; 0 out of the match."""
    own, window = observations["own"][..., :SEEN_OF_OWN], observations["window"].flatten(-3)
    return torch.cat([own, window], -1).float() / UNIT


def in_match(observations: Observations) -> torch.Tensor:
    """Bool ``[..., A]``: agents in the match: the others observe zeros alone."""
    return (observations["own"] != 0).any(-1)


def gathered(values: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """``[..., A, K, W]``: rows of ``values [..., A, W]`` by index, int64 ``[..., A, K]`` of agents in [0, A)."""
    agents, width = values.shape[-2:]
    rows = values.reshape(-1, width)
    first = torch.arange(0, len(rows), agents).view(*index.shape[:-2], 1, 1)
    return rows.index_select(0, (first + index).flatten()).view(*index.shape, width)


class Exchange(nn.Module):
    """One exchange of messages, see the module."""

    def __init__(self, width: int, offsets: bool) -> None:
        """Layers of random weights from torch's generator.

        Args:
            width: W, numbers of a message.
            offsets: Whether a receiver knows where its neighbours are.
        """
        super().__init__()
        self.message = nn.Linear(width, width)
        self.offset = nn.Linear(2, width, bias=False) if offsets else None

    def forward(
        self, messages: torch.Tensor, neighbours: torch.Tensor, offsets: torch.Tensor, alive: torch.Tensor
    ) -> torch.Tensor:
        """What agents get, ``[..., A, W]``.

        Args:
            messages: ``[..., A, W]``.
            neighbours: Integers ``[..., A, K]``, see the module.
            offsets: ``[..., A, K, 2]``, cells.
            alive: Bool ``[..., A]``, agents in the match.
        """
        present = (neighbours >= 0)[..., None].float()
        heard = gathered(self.message(messages) * alive[..., None], neighbours.long().clamp(min=0))
        if self.offset is not None:
            heard = heard + self.offset(offsets.float() / FAR)
        return (torch.relu(heard) * present).sum(-2) / present.sum(-2).clamp(min=1.0)


@dataclass(frozen=True)
class Shape:
    """Sizes of a network.

    Attributes:
        hops: Exchanges of messages; without any an agent knows what it sees alone.
        offsets: Whether receivers know where their neighbours are.
        latent: Whether a linear head makes the latent of the last messages.
        width: Numbers of a message and of the latent.
        hidden: Widths of the perceptron of (x, z).
    """

    hops: int
    offsets: bool
    latent: bool
    width: int
    hidden: tuple[int, ...]


class NeighbourNetwork(nn.Module):
    """Scores of the alternatives of all agents, and their values.

    Attributes:
        memory_size: 0, it has no recurrent state.
        frozen: Whether the part before the latent does not learn.
        scale: float32 ``[W]``, by which a latent with a head is divided.
        readings: float32 ``[2]``, what a decoder of the latent gave boxes with and without an opponent.
    """

    memory_size = 0
    scale: torch.Tensor
    readings: torch.Tensor

    def __init__(self, inputs: int, actions: int, shape: Shape) -> None:
        """Layers of random weights from torch's generator.

        Args:
            inputs: I, numbers that an agent sees itself.
            actions: M, alternatives of an agent.
            shape: Sizes.
        """
        super().__init__()
        self.shape, self.frozen = shape, False
        width = shape.width
        self.first = nn.Linear(inputs, width)
        self.exchanges = nn.ModuleList(Exchange(width, shape.offsets) for _ in range(shape.hops))
        self.updates = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(shape.hops))
        self.normal = nn.Linear(width, 2 * width) if shape.latent else None
        self.register_buffer("scale", torch.ones(width))
        self.register_buffer("readings", torch.zeros(2))
        widths = (inputs + width, *shape.hidden)
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(widths))
        self.scores, self.value = nn.Linear(widths[-1], actions), nn.Linear(widths[-1], 1)

    def forward(self, observations: Observations) -> torch.Tensor:
        """Scores ``[..., A, M]`` of the alternatives."""
        return self.evaluate(observations)[0]

    def evaluate(self, observations: Observations, memory: None = None) -> tuple[torch.Tensor, torch.Tensor]:
        """Scores ``[..., A, M]`` and values ``[..., A]``."""
        seen = inputs_of(observations)
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.frozen):
            latent = self.last_messages(observations, seen)
            if self.normal is not None:
                latent = self.distribution(latent)[0] / self.scale
        hidden = torch.cat([seen, latent], -1)
        for layer in self.layers:
            hidden = torch.relu(layer(hidden))
        return self.scores(hidden), self.value(hidden)[..., 0]

    def last_messages(self, observations: Observations, seen: torch.Tensor) -> torch.Tensor:
        """Messages ``[..., A, W]`` after all exchanges, of what agents see themselves ``[..., A, I]``."""
        alive, lists = in_match(observations), (observations["neighbours"], observations["offsets"])
        messages = torch.relu(self.first(seen))
        for exchange, update in zip(self.exchanges, self.updates, strict=True):
            messages = torch.relu(update(torch.cat([messages, exchange(messages, *lists, alive)], -1)))
        return messages

    def distribution(self, messages: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Means and logarithms of the variances ``[..., A, W]`` of the latents of last messages."""
        assert self.normal is not None
        mean, log_variance = self.normal(messages).chunk(2, -1)
        return mean, log_variance.clamp(-8.0, 8.0)

    def freeze(self) -> None:
        """From now on only what reads the latent learns."""
        self.frozen = True
        for name, weight in self.named_parameters():
            weight.requires_grad_(name.startswith(("layers.", "scores.", "value.")))

    def standardise(self, observed: Mapping[str, np.ndarray]) -> None:
        """Does nothing: inputs are shares."""

    def arrays(self) -> dict[str, np.ndarray]:
        """Weights by name."""
        return {name: value.detach().numpy().copy() for name, value in self.state_dict().items()}

    def notes(self) -> dict[str, Any]:
        """Further metadata of a policy file."""
        return {NETWORK: asdict(self.shape), "readings": self.readings.tolist()}

    def player(self, game: Game, team: str) -> NeighbourPlayer:
        """The greedy player of a team by copies of the current weights."""
        return player_of(self.arrays(), self.shape, game, team)


# ------------------------------------------------------------------------------------------------------------- players


class NeighbourPlayer(GreedyPlayer):
    """Plays one team greedily: an `palaestra.core.run.opponents.Opponent`.

    Attributes:
        memory_size: 0, the player is memoryless.
    """

    memory_size = 0

    def __init__(self, network: NeighbourNetwork, roster: NeighbourRoster, shuffled: bool = False) -> None:
        """Keeps the network.

        Args:
            network: Its weights fit any number of agents.
            roster: The team's agents.
            shuffled: Whether agents get messages of teammates drawn at random in place of their neighbours'.
        """
        super().__init__(roster)
        self.network, self.role = network, roster.role
        self.draws = torch.Generator().manual_seed(0) if shuffled else None

    def act(self, observations: Any, legal: Any, acting: Any, first: Any, seeds: Any, memory: Any) -> np.ndarray:
        """Actions of the team; see `palaestra.core.run.opponents.Opponent`."""
        observed = {name: torch.from_numpy(rows) for name, rows in fields_of(observations).items()}
        if self.draws is not None:
            observed["neighbours"] = shuffled_senders(observed["neighbours"], in_match(observed), self.draws)
        with torch.no_grad():
            return self.best(self.role, self.network(observed).numpy(), legal)


def shuffled_senders(neighbours: torch.Tensor, alive: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Lists ``[N, A, K]`` in which each living agent has another one's number, by a permutation drawn for each row."""
    draws = torch.rand(alive.shape, generator=generator)
    sender = torch.empty(alive.shape, dtype=torch.int64)
    sender.scatter_(1, (~alive).float().sort(stable=True, dim=1)[1], (draws + (~alive).float()).argsort(1))
    index = neighbours.long()
    named = sender.gather(1, index.clamp(min=0).flatten(1)).view_as(index)
    return torch.where(index >= 0, named, index)


def player_of(
    arrays: Mapping[str, np.ndarray], shape: Shape, game: Game, team: str, shuffled: bool = False
) -> NeighbourPlayer:
    """The greedy player of a team.

    Raises:
        ValueError: The weights were made for another game, or the game shows no neighbours.
    """
    roster = NeighbourRoster(game, [team])
    network = fitting_network(lambda: NeighbourNetwork(roster.inputs, roster.actions, shape), arrays)
    load_arrays(network, arrays)
    return NeighbourPlayer(network, roster, shuffled)
