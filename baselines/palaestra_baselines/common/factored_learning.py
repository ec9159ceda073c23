"""Learning of a team's value that is factored into utilities of its agents: the loop of QMIX and UNMAS.

One team learns against a script. A method supplies the utilities and the mixer that makes a total of the utilities of
chosen actions, and nothing else::

    Q_tot(s, q),  q_i = Q_i(o_i, a_i)
    y_t = r_t + gamma [(1 - lambda) V_{t+1} + lambda y_{t+1}],    V_t = Q_tot'(s_t, Q_i'(o_i, argmax_a Q_i(o_i, a)))

The greedy actions are the online network's (van Hasselt et al., arXiv 1509.06461), primes are target networks, and the
returns of sequences from the replay are not corrected for the policy that played them (Peng and Williams, "Incremental
multi-step Q-learning", 1996). ``lambda = 0`` is one-step Q-learning.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, cast

import torch
from torch import nn

from palaestra_baselines.common.agents import Roster
from palaestra_baselines.common.collector import Position, epsilon_greedy
from palaestra_baselines.common.run_folder import RunFolder
from palaestra_baselines.common.stores import Sequences, generalised_advantages
from palaestra_baselines.common.utilities import greedy, q_of_actions
from palaestra_baselines.common.value_learning import (
    Evaluation,
    LearningArgs,
    Policy,
    Report,
    Training,
    learn,
    weighted_mean,
)


@dataclass
class FactoredArgs(LearningArgs):
    """Arguments beside those of `LearningArgs`.

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


class UtilityModule(Policy, Protocol):
    """Networks of utilities; see `palaestra_baselines.common.unit_networks.UnitUtilities`."""

    memory_size: Any

    def evaluate(self, observations: Mapping[str, torch.Tensor], memory: Any = None) -> tuple[torch.Tensor, Any]:
        """Utilities ``[..., A, M]`` and features of the agents, with recurrence their new state ``[..., A, H]``."""
        ...

    def standardise(self, observed: Mapping[str, Any]) -> None:
        """Scales inputs by observations ``[N, A_role, size]`` by role."""
        ...


class Factored(nn.Module):
    """Utilities and the mixer of a team.

    Attributes:
        utilities: Module of utilities.
        mixer: ``mixer(utilities [..., A], position, features) -> totals [..., K]``: K is 1, or A where agents learn
            alone.
    """

    def __init__(self, utilities: UtilityModule, mixer: nn.Module) -> None:
        """Keeps the parts."""
        super().__init__()
        self.utilities, self.mixer = cast(Any, utilities), mixer

    def evaluate(self, sequences: Sequences) -> tuple[torch.Tensor, Any]:
        """Utilities ``[L + 1, B, A, M]`` and features at all positions of sequences.

        With recurrence the state at the beginning is the recorded one, and is kept as far as ``sequences.keeps`` says.
        """
        positions = sequences.positions
        if not self.utilities.memory_size:
            return self.utilities.evaluate(positions.observations)
        memory, values, features = positions.memory[0], [], []
        for t, keeps in enumerate(sequences.keeps):
            observed = {role: rows[t] for role, rows in positions.observations.items()}
            value, memory = self.utilities.evaluate(observed, memory * keeps)
            values.append(value)
            features.append(memory)
        return torch.stack(values), torch.stack(features)


class Sum(nn.Module):
    """The mixer of value decomposition networks (Sunehag et al., arXiv 1706.05296): ``Q_tot = sum_i Q_i``."""

    def forward(self, utilities: torch.Tensor, position: Position, features: Any) -> torch.Tensor:
        """Totals ``[..., 1]`` of utilities ``[..., A]``."""
        return utilities.sum(-1, keepdim=True)


class Independent(nn.Module):
    """No mixer: each agent learns by itself from the reward of the team."""

    def forward(self, utilities: torch.Tensor, position: Position, features: Any) -> torch.Tensor:
        """The utilities ``[..., A]`` themselves."""
        return utilities


def until_last(position: Position) -> Position:
    """Positions ``[L, B, ...]`` without the last ones of sequences."""
    return Position.from_named({name: value[:-1] for name, value in position.named().items()})


def returns(
    target: Factored, choice: torch.Tensor, sequences: Sequences, rewards: torch.Tensor, args: FactoredArgs
) -> torch.Tensor:
    """Targets ``y [L, B, K]``, see the module.

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
    y = returns(target, values.detach(), sequences, args.reward_scale * sequences.rewards[..., team], args)
    before = until_last(sequences.positions)
    chosen = q_of_actions(values[:-1], sequences.actions, before)
    totals = online.mixer(chosen, before, None if features is None else features[:-1])
    return weighted_mean(((totals - y) ** 2).mean(-1), sequences.weights)


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
            play=lambda epsilon: play(training, online, epsilon),
            utilities_of=lambda network: network.utilities,
            average=average,
        )


def play(training: Training, network: Factored, epsilon: float) -> None:
    """One decision in all lanes, at random while the run warms up."""
    collector, values, memory = training.collector, None, None
    position, is_recurrent = collector.position, bool(network.utilities.memory_size)
    if is_recurrent or not training.is_warming_up:
        observed = {name: torch.from_numpy(rows) for name, rows in position.observations.items()}
        before = torch.from_numpy(position.memory) if is_recurrent else None
        with torch.no_grad():
            values, features = network.utilities.evaluate(observed, before)
        memory = features.numpy() if is_recurrent else None
        values = None if training.is_warming_up else values.numpy()
    collector.play(epsilon_greedy(collector.rng, position.legal, values, epsilon), memory)
