"""ARAC: soft actor-critic for a team on a graph, drawn towards a reference policy by a weight that adapts.

"Adaptive Regularized Multi-Agent Soft Actor-Critic in Graph-Structured Adversarial Games" (Shi, Lu, Zhu and Zhao, arXiv
2511.08412, 2025): centralised training of a soft actor-critic, an attention network on the graph, and a divergence of
the policy to a reference, with a weight that is large at first and adapts so that the faults of an imperfect reference
are not kept. The paper is known to us by its abstract alone: the rule of adaptation, the network and the numbers are
ours.

Agents of the team decide one after the other, each with the earlier decisions before it (``decoder="sequential"``; that
needs communication when the policy is executed; ``"independent"`` decides at once). With i the agent, c the nodes where
earlier teammates are going and a its alternatives:

    critics:   Q_i(s, c, a_i)  ->  V_{i+1}(s, (c, a_i)) of the next agent; of the last one
               sum_t gamma^t r_t over n decisions + gamma^n V_1(s_n)
               V_i(s, c) = sum_a pi_i(a) (min(Q_1, Q_2) - alpha log pi_i(a))
    policy:    sum_a pi_i(a) (alpha log pi_i(a) - min(Q_1, Q_2)) - beta sum_a ref_i(a) log pi_i(a)

The last term is the divergence KL(ref || pi) without the part that does not depend on pi. The reference plays in some
lanes, so that its returns are known. With the mean discounted returns R of the last matches of either:

    A     = (R_pi - R_ref) / (|R_pi| + |R_ref|)
    beta  <- clip(beta exp(eta (kappa - A)), beta_min, beta_max)

While the policy is not better than the reference by kappa, beta stays at its largest; then it falls, and comes back if
the policy gets worse. A perfect reference is never beaten, so that its weight stays. ``beta="fixed"`` keeps the first
weight, ``"linear"`` lets it fall to 0 in the training, ``"none"`` is a soft actor-critic without a reference (MASAC).

Pursuers learn against a script::

    python -m palaestra_baselines.arac --env-id palaestra/GraphPursuit-Grid10-v0 --reference shortest_path

Greedy play takes the most probable alternative of each agent.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch

from palaestra_baselines.common.graph_networks import (
    MASKED,
    GraphRoster,
    Maps,
    Places,
    WaysNetwork,
    decide,
    prefixes,
)
from palaestra_baselines.common.graph_policy import GraphPolicy, load_graph_player
from palaestra_baselines.common.graph_references import Reference
from palaestra_baselines.common.reference_weight import MatchReturns, ReferenceWeight, WeightRule
from palaestra_baselines.common.run_folder import RunFolder
from palaestra_baselines.common.stores import Sequences
from palaestra_baselines.common.value_learning import (
    Evaluation,
    LaneArgs,
    LaneTraining,
    Report,
    gradient_step,
    learning_command,
    linear_schedule,
    polyak_update,
    weighted_mean,
)

METHOD = "arac"
load_policy = load_graph_player
"""The greedy player of a policy file; `palaestra` looks for this name."""


@dataclass
class Args(LaneArgs):
    """Arguments beside those of `palaestra_baselines.common.value_learning.LaneArgs`.

    Attributes:
        beta: How the weight of the reference is chosen.
        reference: The reference policy, see `palaestra_baselines.common.graph_references`.
        decoder: Whether agents decide one after the other or at once.
        beta_first: First and largest weight.
        beta_least: Smallest weight.
        beta_rate: eta.
        advantage_wanted: kappa.
        reference_share: Share of the lanes in which the reference plays; none with ``beta="none"``.
        return_decay: Weight of a match in the mean returns.
        entropy: alpha, at the start and at the end; falls linearly.
        width: Of the layers of the networks.
        heads: Of their attention.
        updates: Gradient steps after each decision of all lanes.
        batch_size: Positions in a gradient step.
        replay_size: Decisions that are kept.
        warmup_steps: Decisions before learning starts; they are those of the untrained policy.
        steps_ahead: n, decisions of the team before the value of a position.
        tau: Coefficient of Polyak averaging of the target network, at each gradient step.
        average: Likewise of the policy that is evaluated and saved.
    """

    MAY_BE_ZERO: ClassVar[tuple[str, ...]] = (*LaneArgs.MAY_BE_ZERO, "warmup_steps", "beta_least", "entropy")
    SHARES: ClassVar[tuple[str, ...]] = (*LaneArgs.SHARES, "tau", "average", "reference_share", "return_decay")

    env_id: str = "palaestra/GraphPursuit-Grid10-v0"
    options: tuple[str, ...] = ("observation=nodes",)
    team: str = "pursuer"
    opponent: str = "optimal"
    total_steps: int = 400_000
    lanes: int = 128
    gamma: float = 0.95
    learning_rate: tuple[float, float] = (2e-3, 2e-4)
    beta: WeightRule = "adaptive"
    reference: Literal["shortest_path", "optimal", "random"] = "shortest_path"
    decoder: Literal["sequential", "independent"] = "sequential"
    beta_first: float = 0.03
    beta_least: float = 0.003
    beta_rate: float = 0.05
    advantage_wanted: float = 0.05
    reference_share: float = 0.125
    return_decay: float = 0.02
    entropy: tuple[float, float] = (0.01, 0.001)
    width: int = 32
    heads: int = 4
    updates: int = 1
    batch_size: int = 256
    replay_size: int = 200_000
    warmup_steps: int = 10_000
    steps_ahead: int = 3
    tau: float = 0.01
    average: float = 0.01
    directory: Path = Path("runs/arac")


# ----------------------------------------------------------------------------------------------------------- the losses


def returns_ahead(some: Sequences, team: int, gamma: float) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Discounted rewards of sequences up to the end of their match, and the positions that stand for the rest.

    Args:
        some: Sequences of L rows of a match.
        team: Number of the team that learns.
        gamma: Discount of a row.

    Returns:
        float32 ``[B]``, the row of the position int64 ``[B]``, and its discount float32 ``[B]``, 0 where a rule ended
        the match.
    """
    length, count = some.weights.shape
    total, discount = torch.zeros(count), torch.ones(count)
    row, goes_on = torch.full((count,), length), torch.ones(count)
    for k in range(length):
        is_cut = (goes_on > 0) & (some.weights[k] == 0)  # the horizon truncated the match before this row
        row = torch.where(is_cut, k, row)
        goes_on = goes_on * some.weights[k]
        total = total + goes_on * discount * some.rewards[k, :, team]
        discount = torch.where(goes_on > 0, discount * gamma * some.continues[k], discount)
        goes_on = goes_on * some.continues[k]
    return total, row, discount


def masked_log_softmax(logits: torch.Tensor, legal: torch.Tensor) -> torch.Tensor:
    """Logarithms of the probabilities of legal alternatives ``[..., M]``; very small ones of the others."""
    return logits.masked_fill(~legal, MASKED).log_softmax(dim=-1)


def soft_values(logits: torch.Tensor, values: torch.Tensor, legal: torch.Tensor, alpha: float) -> torch.Tensor:
    """``sum_a pi(a) (Q(a) - alpha log pi(a))`` ``[...]`` of logits and values ``[..., M]``."""
    log_policy = masked_log_softmax(logits, legal)
    return (log_policy.exp() * (values - alpha * log_policy) * legal).sum(dim=-1)


def policy_loss(
    logits: torch.Tensor,
    values: torch.Tensor,
    reference: torch.Tensor,
    legal: torch.Tensor,
    weights: torch.Tensor,
    alpha: float,
    beta: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """``sum_a pi(a) (alpha log pi(a) - Q(a)) - beta sum_a ref(a) log pi(a)`` and the entropy, means by ``weights [S]``.

    Logits, values, reference and legal alternatives are ``[S, M]``.
    """
    log_policy = masked_log_softmax(logits, legal)
    policy = log_policy.exp()
    entropy = -(policy * log_policy * legal).sum(dim=1)
    divergence = -(reference * log_policy * legal).sum(dim=1)
    expected = (policy * values * legal).sum(dim=1)
    return weighted_mean(beta * divergence - alpha * entropy - expected, weights), weighted_mean(entropy, weights)


def errors_of(
    outputs: torch.Tensor, actions: torch.Tensor, targets: torch.Tensor, weights: torch.Tensor
) -> torch.Tensor:
    """Squared errors of both critics, ``[S, M, 2]``, at the actions ``[S]``; their mean by ``weights [S]``."""
    taken = outputs[torch.arange(len(targets)), actions]
    return weighted_mean(((taken - targets[:, None]) ** 2).sum(dim=1), weights)


def critic_targets(values: torch.Tensor, present: torch.Tensor, last: torch.Tensor) -> torch.Tensor:
    """Targets ``[S, k]``: the value of the decision of the next agent in the match, of the last one what it brings.

    Args:
        values: ``V_i``, ``[S, k]``.
        present: Members in the match, bool ``[S, k]``.
        last: ``[S]``.
    """
    following, targets = last, []
    for member in range(values.shape[1] - 1, -1, -1):
        targets.append(following)
        following = torch.where(present[:, member], values[:, member], following)
    return torch.stack(targets[::-1], dim=1)


# ------------------------------------------------------------------------------------------------------------- the loop


class GraphTraining(LaneTraining):
    """One run of ARAC."""

    LOSSES = ("critic_loss", "entropy", "beta", "advantage")
    ROSTER = GraphRoster
    args: Args

    def state(self) -> dict[str, Any]:
        """What a checkpoint holds beside the learnt parts."""
        return {"replay": self.replay.state(), **super().state()}

    def restore(self, before: dict[str, Any]) -> None:
        """Restores what `state` returned."""
        self.replay.restore(before["replay"])
        super().restore(before)

    def sample(self, length: int) -> Sequences:
        """Sequences that begin with a decision of the team."""
        size = self.args.batch_size
        some = self.replay.sample_sequences(self.rng, 4 * size, length)
        picked = (some.positions.asked[0].any(dim=1) & (some.weights[0] > 0)).nonzero()[:size, 0]
        positions = some.positions.named()
        taken = {name: value[:, picked] for name, value in positions.items()}
        return Sequences(
            type(some.positions).from_named(taken),
            some.keeps[:, picked],
            some.actions[:, picked],
            some.rewards[:, picked],
            some.continues[:, picked],
            some.weights[:, picked],
        )


class Learner:
    """The networks and their gradient steps."""

    def __init__(self, args: Args, training: GraphTraining) -> None:
        """Networks of random weights from torch's generator."""
        game = training.roster.game
        self.args, self.maps = args, Maps(game)
        self.members, self.team = training.roster.agents, int(training.roster.team_of[0])
        self.stride = 2 if game.world.rules.alternating else 1
        self.length = args.steps_ahead * self.stride
        self.policy = GraphPolicy(self.maps, args.width, args.heads, args.decoder)
        self.critics = WaysNetwork(self.maps, args.width, args.heads, outputs=2)
        self.target, self.average = copy.deepcopy(self.critics), copy.deepcopy(self.policy)
        self.reference = Reference(args.reference, game, self.maps, args.team)
        self.weight = ReferenceWeight(
            args.beta, args.beta_first, args.beta_least, args.beta_rate, args.advantage_wanted
        )
        lanes = 0 if args.beta == "none" else round(args.reference_share * args.lanes)
        self.returns = MatchReturns(args.lanes, lanes, args.gamma ** (1.0 / self.stride), args.return_decay)
        self.policy_optimizer, self.critic_optimizer = (
            torch.optim.Adam(part.parameters(), fused=True) for part in (self.policy, self.critics)
        )

    def learnt(self) -> dict[str, Any]:
        """All that is learnt, by name."""
        return {
            name: getattr(self, name)
            for name in (
                "policy",
                "critics",
                "target",
                "average",
                "weight",
                "returns",
                "policy_optimizer",
                "critic_optimizer",
            )
        }

    def play(self, training: GraphTraining) -> None:
        """One decision in all lanes, drawn from the policy or, in its own lanes, from the reference."""
        collector = training.collector
        position, legal = collector.position, collector.position.legal
        actions = legal.argmax(axis=2)
        noise = -np.log(np.maximum(collector.rng.standard_exponential(legal.shape, np.float32), 1e-30))
        is_reference = np.arange(len(legal)) < self.returns.reference_lanes
        for rows, network in ((~is_reference, self.policy.network), (is_reference, self.reference)):
            asked = rows & position.asked.any(axis=1)
            if asked.any():
                places = Places.of(torch.from_numpy(position.observations["nodes"][asked, 0]), self.members)
                given = (torch.from_numpy(legal[asked]), torch.from_numpy(noise[asked]))
                actions[asked] = decide(network.scores, self.maps, places, *given, self.policy.sequential).numpy()
        decision = collector.play(actions)
        self.returns.count(decision.rewards[:, self.team], decision.running)

    def next_values(self, places: Places, legal: torch.Tensor, alpha: float) -> torch.Tensor:
        """``V`` ``[S]`` of the first agent that is in the match, by the target critics; ``legal [S, k, M]``."""
        agent = (places.own >= 0).int().argmax(dim=1)
        allowed = legal[torch.arange(len(agent)), agent]
        logits = self.policy.network(places, agent)[0][..., 0]
        return soft_values(logits, self.target(places, agent)[0].amin(dim=2), allowed, alpha)

    def update(self, training: GraphTraining) -> None:
        """One gradient step of critics, policy and target, and one of the weight of the reference."""
        args, share = self.args, training.progress
        alpha, rate = linear_schedule(args.entropy, share), linear_schedule(args.learning_rate, share)
        some = training.sample(self.length)
        nodes, legals = some.positions.observations["nodes"][:, :, 0], some.positions.legal
        places, legal = Places.of(nodes[0], self.members), legals[0].flatten(0, 1)
        at, agent = prefixes(places, self.maps, some.actions[0], sequential=True)
        before, _ = prefixes(places, self.maps, some.actions[0], self.policy.sequential)
        present = places.own >= 0
        weights = present.float().flatten()

        outputs, ways = self.critics(at, agent)
        values = outputs.detach().amin(dim=2)
        logits = self.policy.network(before, agent)[0][..., 0]
        with torch.no_grad():
            total, row, discount = returns_ahead(some, self.team, args.gamma ** (1.0 / self.stride))
            after = row, torch.arange(len(row))
            following = self.next_values(Places.of(nodes[after], self.members), legals[after], alpha)
            soft = soft_values(logits, values, legal, alpha).unflatten(0, (-1, self.members))
            targets = critic_targets(soft, present, total + discount * following).flatten()
        critic_loss = errors_of(outputs, some.actions[0].flatten(), targets, weights)
        gradient_step(self.critic_optimizer, critic_loss, rate, args.max_gradient_norm)

        reference = self.reference(at, agent, legal, ways)
        loss, entropy = policy_loss(logits, values, reference, legal, weights, alpha, self.weight.beta)
        gradient_step(self.policy_optimizer, loss, rate, args.max_gradient_norm)
        polyak_update(self.target, self.critics, args.tau)
        polyak_update(self.average, self.policy, args.average)
        self.weight.update(self.returns.advantage, share)
        facts = (torch.tensor(self.weight.beta), torch.tensor(self.returns.advantage))
        training.count_update(critic_loss, entropy, *facts)


def train(args: Args, evaluation: Evaluation | None = None) -> Report:
    """Trains, or resumes; files and arguments as in `palaestra_baselines.fm3q.train`."""
    with RunFolder(args, METHOD) as folder:
        training = GraphTraining(args, folder, evaluation, max(args.replay_size // args.lanes, 2))
        learner = Learner(args, training)
        training.resume(**learner.learnt())
        while training.should_continue(learner.average):
            learner.play(training)
            if training.collector.steps >= args.warmup_steps and training.replay.filled >= learner.length:
                for _ in range(args.updates):
                    learner.update(training)
        return training.report()


def main(argv: Sequence[str] | None = None) -> None:
    """Trains."""
    learning_command(Args, METHOD, __doc__ or "", argv, train)


if __name__ == "__main__":
    main()
