"""QMIX: the total of a team rises in the utility of each of its agents, by weights that the global state decides.

Rashid et al., "QMIX: Monotonic Value Function Factorisation for Deep Multi-Agent Reinforcement Learning" (arXiv
1803.11485). Utilities q of the chosen actions are mixed by a network of one hidden layer::

    Q_tot(s, q) = |w_2(s)| . elu(|W_1(s)| q + b_1(s)) + v(s)

Hypernetworks make its weights of the global state s; the absolute values keep Q_tot monotone, so that each agent acts
greedily by its own utility. As in the paper: the form of the mixer, targets of double Q-learning, epsilon-greedy
exploration, shared weights of the agents. Ours: many matches at once, single decisions or short sequences from the
replay in place of whole episodes, Adam and Polyak averaging, lambda-returns, one hidden layer that all hypernetworks
share, recurrence as an option, and a network of utilities that fits any number of units (``--network entity``). An
agent out of the match has utility 0 and so no part in the total.

``--mixer vdn`` adds up the utilities, ``--mixer iql`` lets each agent learn by itself: comparisons by the same loop::

    python -m palaestra_baselines.qmix --env-id palaestra/Skirmish-3m-v0
    python -m palaestra_baselines.qmix --env-id palaestra/Skirmish-2s3z-v0 --network entity --mixer vdn
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn

from palaestra.core.game import Game
from palaestra.core.opponents import Opponent
from palaestra_baselines.common.agents import Roster
from palaestra_baselines.common.collector import Position
from palaestra_baselines.common.factored_learning import (
    Factored,
    FactoredArgs,
    Independent,
    Sum,
    UtilityModule,
    train_factored,
)
from palaestra_baselines.common.flat_networks import FlatUtilities, load_flat_player
from palaestra_baselines.common.policy_file import read_policy
from palaestra_baselines.common.unit_networks import UNITS, UnitUtilities, load_unit_player
from palaestra_baselines.common.utilities import Utilities, load_player
from palaestra_baselines.common.value_learning import Evaluation, Report, learning_command

METHOD = "qmix"


@dataclass
class Args(FactoredArgs):
    """Arguments beside those of `palaestra_baselines.common.factored_learning.FactoredArgs`.

    Attributes:
        mixer: How utilities become the total: ``qmix``, ``vdn`` (their sum), or ``iql`` (no total).
        network: ``flat`` reads the whole observation by one layer, ``entity`` each unit's row by the same weights.
        mixer_hidden: Width of the hidden layer of the hypernetworks.
    """

    mixer: Literal["qmix", "vdn", "iql"] = "qmix"
    network: Literal["flat", "entity"] = "flat"
    mixer_hidden: int = 64
    directory: Path = Path("runs/qmix")


class MonotoneMixer(nn.Module):
    """``Q_tot = |w_2(s)| . elu(|W_1(s)| q + b_1(s)) + v(s)``."""

    def __init__(self, state_size: int, agents: int, embedding: int, hidden: int) -> None:
        """Hypernetworks of random weights from torch's generator.

        Args:
            state_size: Length of the global state.
            agents: A.
            embedding: Width of the mixer's hidden layer.
            hidden: Width of the hidden layer of the hypernetworks.
        """
        super().__init__()
        self.sizes = (embedding * agents, embedding, embedding, 1)
        self.hyper = nn.Sequential(nn.Linear(state_size, hidden), nn.ReLU(), nn.Linear(hidden, sum(self.sizes)))

    def forward(self, utilities: torch.Tensor, position: Position, features: Any) -> torch.Tensor:
        """Totals ``[..., 1]`` of utilities ``[..., A]`` at positions with their global state."""
        w1, w2, b1, v = self.hyper(position.state).split(self.sizes, -1)
        weights = w1.abs().unflatten(-1, (utilities.shape[-1], -1))
        hidden = nn.functional.elu((utilities[..., None] * weights).sum(-2) + b1)
        return (w2.abs() * hidden).sum(-1, keepdim=True) + v


def make_networks(args: Args, roster: Roster, state_size: int) -> Factored:
    """The networks of the learning agents."""
    utilities: UtilityModule
    if args.network == "entity":
        utilities = UnitUtilities(roster, args.hidden, args.recurrent)
    elif args.recurrent:
        utilities = FlatUtilities(roster, args.hidden, recurrent=True, streams=False)
    else:
        utilities = Utilities(roster, args.hidden)
    if args.mixer == "qmix":
        return Factored(utilities, MonotoneMixer(state_size, roster.agents, args.embedding, args.mixer_hidden))
    return Factored(utilities, Sum() if args.mixer == "vdn" else Independent())


def train(args: Args, evaluation: Evaluation | None = None) -> Report:
    """Trains, or resumes; files and arguments as in `palaestra_baselines.fm3q.train`."""
    return train_factored(args, METHOD, lambda roster, state_size: make_networks(args, roster, state_size), evaluation)


def load_policy(path: Path, game: Game, team: str) -> Opponent:
    """The greedy player of a policy file, by whichever network it holds.

    Raises:
        FileError: The file is no saved policy, or does not fit the team.
    """
    arrays, notes = read_policy(path)
    if UNITS in notes:
        return load_unit_player(path, game, team)
    return (load_flat_player if "first.weight" in arrays else load_player)(path, game, team)


def main(argv: Sequence[str] | None = None) -> None:
    """Trains."""
    learning_command(Args, METHOD, __doc__ or "", argv, train)


if __name__ == "__main__":
    main()
