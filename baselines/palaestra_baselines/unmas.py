"""UNMAS: a total for teams whose units come and go, and utilities for sets of actions that change with them.

Chai et al., "UNMAS: Multiagent Reinforcement Learning for Unshaped Cooperative Scenarios" (arXiv 2203.14477):

*Two action streams.* Features h_i of an agent give the values of the named alternatives by one layer (environment-
oriented); a value for each target comes from h_i and what the agent sees of that unit (unit-oriented).

*A self-weighting mixer.* Each utility is mixed by itself and weighted by how much the agent matters; agents out of the
match have no weight, so the total fits any number of agents::

    q_i = |w_q(s)| . elu(Q_i |w_1(s)| + b_1(s)) + b_q(s)
    k_i = alive_i exp(|w_k(s)| . [enc(o_i), enc(s)] + b_k(s))
    Q_tot = sum_i k_i q_i / n_alive + V(s)

The weights w, b and V are hypernetworks of the global state s. Q_tot rises in every Q_i, so each agent's own greedy
action is a greedy joint action. These formulas, the streams and double Q-learning's targets are the paper's.

``--network paper`` has the paper's networks: utilities and mixer read vectors of fixed length, so their weights belong
to one battle although dead units have no share. ``--network entity`` (ours, the default) reads units: utilities of
`palaestra_baselines.common.unit_networks`, and the state as a set of units, encoded and pooled by side. No weight
depends on a number of units: they play and learn any battle of these units, several at once too::

    python -m palaestra_baselines.unmas --env-id palaestra/Skirmish-5m_vs_6m-v0
    python -m palaestra_baselines.unmas --env-id palaestra/SkirmishUnshaped-Maps-v0 --options 'maps=["3m","5m","8m"]'

Ours with all networks: the total is divided by the number of living agents, which the published code cuts at 8; every
target's value uses the agent's own features, where that code has none for a target whose number exceeds the agents';
healers aim at the rows of their teammates, where that code reads those of opponents; the exponent is divided by the
root of the number of its inputs and cut at `LARGEST`; the hypernetworks share a hidden layer; targets, loss and
schedule are those of `palaestra_baselines.qmix` (no recurrence unless ``--recurrent``, Adam, lambda-returns, many
matches at once).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn

from palaestra.core.run.opponents import Opponent
from palaestra.game import Game
from palaestra_baselines.common.agents import Roster
from palaestra_baselines.common.flat_networks import NEVER, FlatUtilities, load_flat_player
from palaestra_baselines.common.policy_file import read_policy
from palaestra_baselines.common.rollout import Position
from palaestra_baselines.common.training import Evaluation, Report, learning_command
from palaestra_baselines.common.unit_networks import UnitLayout, UnitStream, load_utilities, make_utilities
from palaestra_baselines.qmix import Factored, FactoredArgs, train_factored

METHOD = "unmas"
ROWS = 64
"""Width of the encoding of a row: 64 in the code of UNMAS, whose stream then has a layer of 32."""
LARGEST = 5.0
"""Largest exponent of an agent's weight."""


@dataclass
class Args(FactoredArgs):
    """Arguments beside those of `palaestra_baselines.qmix.FactoredArgs`.

    Attributes:
        network: ``entity`` fits any number of units, ``paper`` has the paper's networks of fixed length, ``flat`` the
            utilities of QMIX, whose one layer reads the whole observation, and the mixer of ``entity``.
        mixer_hidden: Width of the hidden layer of the hypernetworks.
    """

    network: Literal["entity", "paper", "flat"] = "entity"
    hidden: tuple[int, ...] = (32, 64)
    mixer_hidden: int = 64
    directory: Path = Path("runs/unmas/{env_id}")


class TwoStreamUtilities(FlatUtilities):
    """The paper's utilities: each target has a value made of the agent's features and of the target's row."""

    targets: torch.Tensor

    def __init__(self, roster: Roster, hidden: tuple[int, ...], recurrent: bool) -> None:
        """Networks of random weights from torch's generator; arguments as of `FlatUtilities`.

        Raises:
            ValueError: The agents have several roles, or the game has no table of units, see `UnitLayout.of`.
        """
        layout = UnitLayout.of(roster)
        super().__init__(roster, hidden, recurrent, outputs=len(layout.named))
        self.layout = layout
        self.row, self.stream = nn.Linear(layout.table.width, ROWS), UnitStream(hidden[-1], ROWS, ROWS // 2)
        self.register_buffer("targets", torch.from_numpy(layout.targets_of_rows()), persistent=False)

    def values(self, features: torch.Tensor, observed: torch.Tensor) -> torch.Tensor:
        """Utilities ``[..., A, M]`` of features ``[..., A, H]`` of observations ``[..., A, size]``."""
        rows = self.layout.split(observed)[1]
        aimed = self.stream(self.stream.of_agent(features)[..., None, :], self.row(rows))
        is_target = (rows[..., self.layout.target] > 0.0) & (rows[..., self.layout.seen] > 0.0)
        places = torch.where(is_target, self.targets, self.layout.targets)
        never = aimed.new_full((*aimed.shape[:-1], self.layout.targets + 1), NEVER)
        return torch.cat([self.named(features), never.scatter(-1, places, aimed)[..., :-1]], -1)


class StateVector(nn.Module):
    """Encodes the global state as one vector of fixed length: ``relu(W s + b)``."""

    def __init__(self, state_size: int, hidden: int) -> None:
        """A layer of random weights from torch's generator."""
        super().__init__()
        self.layer = nn.Linear(state_size, hidden)

    def forward(self, state: torch.Tensor) -> torch.Tensor:
        """``[..., hidden]`` of ``[..., S]``."""
        return torch.relu(self.layer(state))


class StateUnits(nn.Module):
    """Encodes the global state as a set of units, whose numbers stand one after the other, first 1 for a living one.

    ``e_j = relu(W_side unit_j + b_side)`` of living units; then a layer of the mean of each side and of the
    logarithms of their numbers.
    """

    def __init__(self, roster: Roster, state_size: int, rows: int, hidden: int) -> None:
        """Layers of random weights from torch's generator.

        Args:
            roster: The learning agents, of one team.
            state_size: Length of the global state.
            rows: Width of the encoding of a unit.
            hidden: Width of the encoding of the state.

        Raises:
            ValueError: The state has not equally many numbers for each agent of the game.
        """
        super().__init__()
        sides = [list(slots) for slots in roster.game.teams.values()]
        self.units, own = sum(len(side) for side in sides), int(roster.team_of[0])
        if not state_size or state_size % self.units:
            raise ValueError(f"{roster.game.name}: the state has {state_size} numbers, no row for each agent")
        self.slots = [sides[own], [slot for k, side in enumerate(sides) if k != own for slot in side]]
        self.sides = nn.ModuleList(nn.Linear(state_size // self.units, rows) for _ in self.slots)
        self.layer = nn.Linear(2 * rows + 2, hidden)

    def forward(self, state: torch.Tensor) -> torch.Tensor:
        """``[..., hidden]`` of ``[..., S]``."""
        units, pooled = state.unflatten(-1, (self.units, -1)), []
        for layer, slots in zip(self.sides, self.slots, strict=True):
            rows = units[..., slots[0] : slots[-1] + 1, :].contiguous()
            alive = rows[..., :1]
            encoded = torch.relu(layer(rows)) * alive
            number = alive.sum(-2)
            pooled += [encoded.sum(-2) / number.clamp(min=1.0), number.log1p()]
        return torch.relu(self.layer(torch.cat(pooled, -1)))


class SelfWeightingMixer(nn.Module):
    """The mixer of the module's docstring."""

    def __init__(self, state: nn.Module, hidden: int, observed: int, embedding: int, role: str | None) -> None:
        """Hypernetworks of random weights from torch's generator.

        Args:
            state: Encodes the global state: ``[..., hidden]`` of ``[..., S]``.
            hidden: Its width, the hidden layer of the hypernetworks.
            observed: Numbers that stand for an agent's observation.
            embedding: Width of the mixer's hidden layer, of ``enc(o_i)`` and of ``enc(s)``.
            role: Role whose observations ``enc`` reads; None if it reads the features of the utilities, through which
                no gradient flows.
        """
        super().__init__()
        self.state, self.role, self.embedding = state, role, embedding
        self.sizes = (embedding, embedding, embedding, 2 * embedding, 1, 1, 1)
        self.hyper = nn.Linear(hidden, sum(self.sizes))
        self.of_agent, self.of_state = nn.Linear(observed, embedding), nn.Linear(hidden, embedding)

    def forward(self, utilities: torch.Tensor, position: Position, features: Any) -> torch.Tensor:
        """Totals ``[..., 1]`` of utilities ``[..., A]`` at positions with their global state."""
        state = self.state(position.state)
        w1, b1, wq, wk, bq, bk, v = self.hyper(state).split(self.sizes, -1)
        mixed = nn.functional.elu(utilities[..., None] * w1.abs()[..., None, :] + b1[..., None, :])
        q = (mixed * wq.abs()[..., None, :]).sum(-1) + bq
        observed = features.detach() if self.role is None else position.observations[self.role]
        agents, match = torch.relu(self.of_agent(observed)), torch.relu(self.of_state(state))
        wk_agent, wk_match = wk.abs().split(self.embedding, -1)
        exponent = (agents * wk_agent[..., None, :]).sum(-1) + (match * wk_match).sum(-1, keepdim=True)
        exponent = exponent / (2 * self.embedding) ** 0.5 + bk
        weights = exponent.clamp(max=LARGEST).exp() * position.alive
        number = position.alive.sum(-1, keepdim=True).clamp(min=1)
        return (weights * q).sum(-1, keepdim=True) / number + v


def make_networks(args: Args, roster: Roster, state_size: int) -> Factored:
    """The networks of the learning agents."""
    if args.network != "paper":
        utilities = make_utilities(roster, args.network, args.hidden, args.recurrent)
        state = StateUnits(roster, state_size, args.embedding, args.mixer_hidden)
        has_features = args.network == "entity" or args.recurrent
        (role,) = [None] if has_features else roster.sizes
        observed = args.hidden[-1] if role is None else roster.sizes[role]
        return Factored(utilities, SelfWeightingMixer(state, args.mixer_hidden, observed, args.embedding, role))
    flat = TwoStreamUtilities(roster, args.hidden, args.recurrent)
    state, role = StateVector(state_size, args.mixer_hidden), flat.role.name
    return Factored(flat, SelfWeightingMixer(state, args.mixer_hidden, roster.sizes[role], args.embedding, role))


def train(args: Args, evaluation: Evaluation | None = None) -> Report:
    """Trains, or resumes; files and arguments as in `palaestra_baselines.fm3q.train`."""
    return train_factored(args, METHOD, lambda roster, state_size: make_networks(args, roster, state_size), evaluation)


def load_policy(path: Path, game: Game, team: str) -> Opponent:
    """The greedy player of a policy file; one with the network ``entity`` plays any game of the same units.

    Raises:
        FileError: The file is no saved policy, or does not fit the team.
    """
    if "row.weight" in read_policy(path)[0]:
        return load_flat_player(path, game, team, TwoStreamUtilities)
    return load_utilities(path, game, team)


def main(argv: Sequence[str] | None = None) -> None:
    """Trains."""
    learning_command(Args, METHOD, __doc__ or "", argv, train)


if __name__ == "__main__":
    main()
