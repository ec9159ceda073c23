"""QMIX: the total of a team rises in the utility of each of its agents, by weights that the global state decides.

Rashid et al., "QMIX: Monotonic Value Function Factorisation for Deep Multi-Agent Reinforcement Learning" (arXiv
1803.11485). Utilities q of the chosen actions are mixed by a network of one hidden layer::

    Q_tot(s, q) = |w_2(s)| . elu(|W_1(s)| q + b_1(s)) + v(s),    q_i = Q_i(o_i, a_i)

Hypernetworks make its weights of the global state s; the absolute values keep Q_tot monotone, so that each agent acts
greedily by its own utility. Targets are lambda-returns of sequences from the replay, primes are target networks::

    y_t = r_t + gamma [(1 - lambda) V_{t+1} + lambda y_{t+1}],    V_t = Q_tot'(s_t, Q_i'(o_i, argmax_a Q_i(o_i, a)))

The greedy actions are the online network's (van Hasselt et al., arXiv 1509.06461), and the returns are not corrected
for the policy that played them (Peng and Williams, "Incremental multi-step Q-learning", 1996). ``lambda = 0`` is
one-step Q-learning.

Schedule: after each decision of all lanes ``updates`` gradient steps by Adam, each followed by Polyak averaging of the
target network (``tau``) and of the utilities that are evaluated and saved (``average``). Epsilon falls linearly over
``epsilon_until`` of the training, the learning rate over all of it.

As in the paper: the form of the mixer, targets of double Q-learning, epsilon-greedy exploration, shared weights of the
agents. Ours: many matches at once, single decisions or short sequences from the replay in place of whole episodes, Adam
and Polyak averaging, lambda-returns, one hidden layer that all hypernetworks share, recurrence as an option, and a
network of utilities that fits any number of units (``--network entity``). An agent out of the match has utility 0 and
so no part in the total. One team learns against a script::

    python -m palaestra_baselines.qmix --env-id palaestra/Skirmish-3m-v0
    python -m palaestra_baselines.qmix --env-id palaestra/Skirmish-2s3z-v0 --network entity
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, cast

import torch
from torch import nn

from palaestra_baselines.common.agents import Roster
from palaestra_baselines.common.flat_networks import FlatUtilities, Utilities, greedy, q_of_actions, unroll
from palaestra_baselines.common.rollout import Position, Sequences, generalised_advantages
from palaestra_baselines.common.run_folder import RunFolder
from palaestra_baselines.common.training import (
    Evaluation,
    LearningArgs,
    Report,
    Training,
    learn,
    learning_command,
    weighted_mean,
)
from palaestra_baselines.common.unit_networks import Network, UnitUtilities, load_utilities, make_utilities

METHOD = "qmix"
load_policy = load_utilities


@dataclass
class FactoredArgs(LearningArgs):
    """Arguments of methods with a total value of one team, beside those of `LearningArgs`.

    Attributes:
        length: Successive decisions of a lane in a gradient step; ``batch_size`` divided by it are drawn.
        td_lambda: Decay of the returns over a sequence; 0 for one-step targets.
        reward_scale: Rewards are multiplied by this.
        recurrent: Whether agents have a recurrent state.
        embedding: Width of the mixer.
        average: Coefficient of Polyak averaging of the weights that are evaluated and saved, at each gradient step.
    """

    SHARES: ClassVar[tuple[str, ...]] = (*LearningArgs.SHARES, "td_lambda", "average")

    env_id: str = "palaestra/Skirmish-3m-v0"
    team: str = "red"
    opponent: str = "builtin"
    total_steps: int = 200_000
    evaluations: int = 8
    lanes: int = 64
    updates: int = 2
    replay_size: int = 50_000
    warmup_steps: int = 5_000
    length: int = 4
    td_lambda: float = 0.6
    reward_scale: float = 0.1
    recurrent: bool = False
    embedding: int = 32
    average: float = 0.01

    @property
    def memory_size(self) -> int:
        """Length of the recurrent state of an agent."""
        return self.hidden[-1] if self.recurrent else 0


@dataclass
class Args(FactoredArgs):
    """Arguments beside those of `FactoredArgs`.

    Attributes:
        network: ``flat`` reads the whole observation by one layer, ``entity`` each unit's row by the same weights.
        mixer: ``monotone`` is that of QMIX, ``sum`` adds the utilities up as VDN does, with the targets of QMIX.
        mixer_hidden: Width of the hidden layer of the hypernetworks.
    """

    network: Network = "flat"
    mixer: Literal["monotone", "sum"] = "monotone"
    mixer_hidden: int = 64
    directory: Path = Path("runs/qmix/{env_id}")


# --------------------------------------------------------------------------------------------------------- the networks


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


class SumMixer(nn.Module):
    """``Q_tot = sum_i q_i``, the total of VDN (arXiv 1706.05296)."""

    def forward(self, utilities: torch.Tensor, position: Position, features: Any) -> torch.Tensor:
        """Totals ``[..., 1]`` of utilities ``[..., A]``, 0 for agents out of the match."""
        return utilities.sum(-1, keepdim=True)


class Factored(nn.Module):
    """Utilities and the mixer of a team.

    Attributes:
        utilities: Module of utilities.
        mixer: ``mixer(utilities [..., A], position, features) -> totals [..., 1]``.
    """

    def __init__(self, utilities: Utilities | FlatUtilities | UnitUtilities, mixer: nn.Module) -> None:
        """Keeps the parts."""
        super().__init__()
        self.utilities, self.mixer = cast(Any, utilities), mixer

    def evaluate(self, sequences: Sequences) -> tuple[torch.Tensor, Any]:
        """Utilities ``[L + 1, B, A, M]`` and features at all positions of sequences, see `unroll`."""
        positions = sequences.positions
        return unroll(self.utilities, positions.observations, positions.memory, sequences.keeps)


def make_networks(args: Args, roster: Roster, state_size: int) -> Factored:
    """The networks of the learning agents."""
    utilities = make_utilities(roster, args.network, args.hidden, args.recurrent)
    if args.mixer == "sum":
        return Factored(utilities, SumMixer())
    return Factored(utilities, MonotoneMixer(state_size, roster.agents, args.embedding, args.mixer_hidden))


# ------------------------------------------------------------------------------------------------------------- the loss


def until_last(position: Position) -> Position:
    """Positions ``[L, B, ...]`` without the last ones of sequences."""
    return Position.from_named({name: value[:-1] for name, value in position.named().items()})


def lambda_returns(
    target: Factored, choice: torch.Tensor, sequences: Sequences, rewards: torch.Tensor, args: FactoredArgs
) -> torch.Tensor:
    """Targets ``y [L, B, 1]``, see the module.

    Args:
        target: The target networks.
        choice: ``[L + 1, B, A, M]``, utilities by which the greedy actions are chosen, if ``args.double``.
        sequences: Decisions.
        rewards: ``[L, B]``.
        args: ``gamma``, ``td_lambda`` and ``double``.
    """
    with torch.no_grad():
        values, features = target.evaluate(sequences)
        best = greedy(values, choice if args.double else values, sequences.positions)
        totals = target.mixer(best, sequences.positions, features)
        paid = rewards[..., None].expand_as(totals[:-1])
        return generalised_advantages(sequences, paid, totals, args.gamma, args.td_lambda) + totals[:-1]


def td_loss(online: Factored, target: Factored, sequences: Sequences, team: int, args: FactoredArgs) -> torch.Tensor:
    """Mean of ``(y - Q_tot)^2`` over decisions of matches; agents out of the match have utility 0.

    Args:
        online: The online networks.
        target: Their target networks.
        sequences: Decisions.
        team: Number of the team that learns.
        args: Arguments of the run.
    """
    values, features = online.evaluate(sequences)
    y = lambda_returns(target, values.detach(), sequences, args.reward_scale * sequences.rewards[..., team], args)
    before = until_last(sequences.positions)
    chosen = q_of_actions(values[:-1], sequences.actions, before)
    totals = online.mixer(chosen, before, None if features is None else features[:-1])
    return weighted_mean(((totals - y) ** 2).mean(-1), sequences.weights)


# ------------------------------------------------------------------------------------------------------------- the loop


def train_factored(
    args: FactoredArgs, method: str, make: Callable[[Roster, int], Factored], evaluation: Evaluation | None
) -> Report:
    """Trains, or resumes; files and arguments as in `palaestra_baselines.fm3q.train`.

    Args:
        args: Arguments of the run.
        method: Its name.
        make: Makes the networks of the learning agents and the length of the global state.
        evaluation: What evaluations measure; matches against the script if None.

    Raises:
        ValueError: No team is named: factored values are those of one team.
    """
    if not args.team:
        raise ValueError(f"{method} learns as one team against a script: say which by --team")
    with RunFolder(args, method) as folder:
        training = Training(args, folder, evaluation, with_state=True, memory_size=args.memory_size)
        collector, team = training.collector, int(training.roster.team_of[0])
        online = make(training.roster, collector.position.state.shape[1])
        target = copy.deepcopy(online).requires_grad_(False)
        average = copy.deepcopy(target.utilities)
        return learn(
            training,
            online,
            target,
            loss=lambda: td_loss(online, target, training.sample_sequences(args.length), team, args),
            utilities_of=lambda network: network.utilities,
            average=average,
        )


def train(args: Args, evaluation: Evaluation | None = None) -> Report:
    """Trains, or resumes; files and arguments as in `palaestra_baselines.fm3q.train`."""
    return train_factored(args, METHOD, lambda roster, state_size: make_networks(args, roster, state_size), evaluation)


def main(argv: Sequence[str] | None = None) -> None:
    """Trains."""
    learning_command(Args, METHOD, __doc__ or "", argv, train)


if __name__ == "__main__":
    main()
