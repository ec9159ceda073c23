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
weight, ``"linear"`` lets it fall to 0 in the training. Two parts of the method can be left out, one at a time: with
``"lanes"`` the reference plays in its lanes and beta is 0; with ``--beta fixed --reference-share 0`` the divergence is
there and the reference plays nowhere. ``"none"`` leaves out both: a soft actor-critic without a reference (MASAC).

Pursuers learn against a script::

    python -m palaestra_baselines.arac --env-id palaestra/GraphPursuit-Grid10-v0 --reference shortest_path

Greedy play takes the most probable alternative of each agent; ``--play drawn`` draws from the policy, as the training
does. A deterministic team that meets a deterministic opponent may go in circles until the horizon, and its curve then
falls and rises with them. Draws do not, but need a policy of low entropy, as ``--entropy 0.002 0.0005`` gives one.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import nn

from palaestra.core.files import FileError
from palaestra.core.run.opponents import Opponent
from palaestra.game import Game
from palaestra_baselines.arac_graphs import (
    MEMBER,
    NODE,
    PAIR,
    TARGET,
    GraphPlayer,
    GraphRoster,
    Graphs,
    PairAttention,
    Places,
    Reference,
    decide,
    prefixes,
)
from palaestra_baselines.common.flat_networks import fitting_network, masked_log_softmax
from palaestra_baselines.common.policy_file import policy_for, read_policy
from palaestra_baselines.common.rollout import Position, Sequences
from palaestra_baselines.common.run_folder import RunFolder
from palaestra_baselines.common.training import (
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
NETWORK = "ways_network"
"""Entry of a policy's metadata."""
LEARNT = ("policy", "critics", "target", "average", "weight", "returns", "policy_optimizer", "critic_optimizer")
"""Parts of a `Learner` that a checkpoint keeps."""
Play = Literal["greedy", "drawn"]
WeightRule = Literal["adaptive", "fixed", "linear", "lanes", "none"]


@dataclass
class Args(LaneArgs):
    """Arguments beside those of `palaestra_baselines.common.training.LaneArgs`.

    Attributes:
        beta: How the weight of the reference is chosen.
        reference: The reference policy, see `palaestra_baselines.arac_graphs`.
        decoder: Whether agents decide one after the other or at once.
        beta_first: First and largest weight.
        beta_least: Smallest weight.
        beta_rate: eta.
        advantage_wanted: kappa.
        reference_share: Share of the lanes in which the reference plays; none with ``beta="none"``. ``"adaptive"`` and
            ``"lanes"`` need at least one lane.
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
        play: How this policy plays.
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
    play: Play = "greedy"
    directory: Path = Path("runs/arac/{env_id}")

    @property
    def reference_lanes(self) -> int:
        """Number of lanes in which the reference plays."""
        return 0 if self.beta == "none" else round(self.reference_share * self.lanes)

    def check(self) -> None:
        """Looks at the numbers.

        Raises:
            ValueError: See `LaneArgs`; or the reference plays in no lane where its returns or its matches are needed.
        """
        super().check()
        if self.beta in ("adaptive", "lanes") and self.reference_lanes == 0:
            raise ValueError(
                f"--beta {self.beta} needs a lane in which the reference plays: --reference-share "
                f"{self.reference_share:g} of {self.lanes} lanes is none; give more, or --beta fixed, linear or none"
            )


# --------------------------------------------------------------------------------------------------------- the networks


class MoveNetwork(nn.Module):
    """Numbers for each alternative of an agent, by attention over where opponents may go and over teammates.

    The encoder looks, from each node where an opponent may go, at all members of the team; the decoder from each node
    where the agent may go at these nodes as encoded, and at its teammates. Where agents aim, an alternative is a node
    to go to and an opponent, and its numbers are the sum of one for the node and one for the opponent from there.
    """

    def __init__(self, graphs: Graphs, width: int, heads: int, outputs: int) -> None:
        """Layers of random weights from torch's generator.

        Args:
            graphs: The graphs.
            width: Of all hidden layers.
            heads: Of the attention.
            outputs: Numbers for each alternative.
        """
        super().__init__()
        self.graphs = graphs
        self.encode = PairAttention(width, NODE + 1, MEMBER, heads)
        self.encoded = nn.Linear(width + NODE + 1, width)
        self.decode_others = PairAttention(width, NODE, width, heads)
        self.decode_own = PairAttention(width, NODE, MEMBER, heads)
        self.hidden = nn.Linear(2 * width + NODE, width)
        self.output = nn.Linear(width, outputs)
        if graphs.targets:
            self.aim_from, self.aim_pair = nn.Linear(width, width), nn.Linear(PAIR + TARGET, width)
            self.aim = nn.Linear(width, outputs)

    def forward(self, places: Places, agent: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Numbers ``[S, M, outputs]`` of the alternatives and the nodes ``[S, D]`` that they lead to.

        M is D, or D (1 + m) where agents aim: nodes, and for each no target and every opponent.

        Args:
            places: Positions, in which those that have decided are where they are going.
            agent: Number of the member that decides, int64 ``[S]``.
        """
        graphs, graph, own = self.graphs, places.graph, places.own
        far, is_there = graph[:, None, None], (own >= 0)[:, None]
        moves = graphs.neighbours(graph, own.gather(1, agent[:, None])[:, 0])
        ahead = graphs.neighbours(graph[:, None], places.others)
        life = places.other_life[:, :, None, None].expand(-1, -1, graphs.moves, 1)
        seen, ahead = torch.cat([graphs.places(far, ahead), life], dim=-1).flatten(1, 2), ahead.flatten(1)
        queries = graphs.places(graph[:, None], moves)
        is_self = torch.arange(own.shape[1]) == agent[:, None]
        kinds = [is_self, places.decided & ~is_self, ~places.decided & ~is_self, places.own_life]
        members = torch.stack([kind.float() for kind in kinds], dim=-1)

        covered = self.encode(seen, members, graphs.pairs(far, ahead[:, :, None], own[:, None]), is_there)
        encoded = torch.relu(self.encoded(torch.cat([covered, seen], dim=-1)))
        pairs = graphs.pairs(far, moves[:, :, None], ahead[:, None])
        others = self.decode_others(queries, encoded, pairs, (ahead >= 0)[:, None])
        pairs = graphs.pairs(far, moves[:, :, None], own[:, None])
        teammates = self.decode_own(queries, members, pairs, is_there & ~is_self[:, None])
        hidden = torch.relu(self.hidden(torch.cat([others, teammates, queries], dim=-1)))
        numbers = self.output(hidden)
        if graphs.targets:
            numbers = numbers[:, :, None] + self._aims(places, moves, hidden)
            numbers = numbers.flatten(1, 2)
        return numbers, moves

    def scores(self, places: Places, agent: torch.Tensor, legal: torch.Tensor) -> torch.Tensor:
        """The first number of each alternative, ``[S, M]``, as logits of a policy."""
        return self(places, agent)[0][..., 0]

    def _aims(self, places: Places, moves: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
        """Numbers ``[S, D, 1 + m, outputs]`` of no target and of every opponent as a target."""
        pairs = self.graphs.pairs(places.graph[:, None, None], moves[:, :, None], places.others[:, None])
        target = torch.stack([places.other_life, places.aimed], dim=-1)[:, None].expand(-1, moves.shape[1], -1, -1)
        aims = torch.relu(self.aim_from(hidden)[:, :, None] + self.aim_pair(torch.cat([pairs, target], dim=-1)))
        return torch.cat([torch.zeros_like(aims[:, :, :1, : self.aim.out_features]), self.aim(aims)], dim=2)


class GraphPolicy(nn.Module):
    """The actor, and what a file of it holds."""

    def __init__(self, graphs: Graphs, width: int, heads: int, decoder: str, play: Play = "greedy") -> None:
        """A network of random weights from torch's generator."""
        super().__init__()
        self.network, self.decoder, self.play = MoveNetwork(graphs, width, heads, 1), decoder, play
        self.width, self.heads, self.sequential = width, heads, decoder == "sequential"

    def choose(self, places: Places, legal: torch.Tensor, draw: torch.Tensor | None = None) -> torch.Tensor:
        """Alternatives int64 ``[S, k]``, see `palaestra_baselines.arac_graphs.decide`; ``legal [S, k, M]``."""
        return decide(self.network.scores, self.network.graphs, places, legal, draw, self.sequential)

    def arrays(self) -> dict[str, np.ndarray]:
        """Weights by name."""
        return {name: value.numpy().copy() for name, value in self.network.state_dict().items()}

    def notes(self) -> dict[str, Any]:
        """Shape of the network."""
        return {NETWORK: {"width": self.width, "heads": self.heads, "decoder": self.decoder, "play": self.play}}

    def player(self, game: Game, team: str) -> Opponent:
        """The player of a team by a copy of the weights."""
        return GraphPlayer(copy.deepcopy(self).choose, game, team, draws=self.play == "drawn")


def load_policy(path: Path, game: Game, team: str) -> Opponent:
    """The player of a policy file, on any graph and for any number of agents.

    Raises:
        FileError: The file is no saved policy of graphs, or the game does not show its nodes.
    """
    with policy_for(path, game, team) as arrays:
        shape: Any = read_policy(path)[1].get(NETWORK)
        GraphRoster(game, [team])
        try:
            policy = fitting_network(lambda: GraphPolicy(Graphs(game), **{"play": "greedy", **shape}), arrays)
            policy.network.load_state_dict({name: torch.from_numpy(array) for name, array in arrays.items()})
        except (RuntimeError, TypeError, KeyError, AssertionError, ZeroDivisionError) as error:
            raise FileError(f"{path}: the weights do not fit: {' '.join(str(error).split())[:200]}") from error
        return policy.player(game, team)


# ----------------------------------------------------------------------------------------------- the reference's weight


class MatchReturns:
    """Discounted returns of the matches that the policy plays, and of those that the reference plays in its own lanes.

    Attributes:
        of_policy: Mean return of the last matches of the policy, by exponential averaging.
        of_reference: Likewise of the reference.
    """

    def __init__(self, lanes: int, reference_lanes: int, gamma: float, decay: float) -> None:
        """No match has ended.

        Args:
            lanes: N.
            reference_lanes: Number of lanes, the first ones, in which the reference plays.
            gamma: Discount of a decision.
            decay: Weight of a match in the mean of its policy; the first ones weigh more, so that they count alike.
        """
        self.reference_lanes, self.gamma, self.decay = reference_lanes, gamma, decay
        self._return, self._discount = np.zeros(lanes), np.ones(lanes)
        self._means, self._counts = np.zeros(2), np.zeros(2)

    @property
    def of_policy(self) -> float:
        """See above."""
        return float(self._means[0])

    @property
    def of_reference(self) -> float:
        """See above."""
        return float(self._means[1])

    @property
    def advantage(self) -> float:
        """``(R_pi - R_ref) / (|R_pi| + |R_ref|)``, in [-1, 1]; 0 until matches of both have ended."""
        if not self._counts.all():
            return 0.0
        one, other = self._means
        return float((one - other) / max(abs(one) + abs(other), 1e-6))

    def count(self, rewards: np.ndarray, running: np.ndarray) -> None:
        """Counts a decision of all lanes.

        Args:
            rewards: float32 ``[N]``.
            running: bool ``[N]``: it was a decision of a match; else the lane has started its next match.
        """
        for lane in np.flatnonzero(~running):
            kind = int(lane < self.reference_lanes)
            self._counts[kind] += 1
            weight = max(self.decay, 1.0 / self._counts[kind])
            self._means[kind] += weight * (self._return[lane] - self._means[kind])
        self._return = np.where(running, self._return + self._discount * rewards, 0.0)
        self._discount = np.where(running, self._discount * self.gamma, 1.0)

    def state_dict(self) -> dict[str, Any]:
        """For a checkpoint."""
        return {name: vars(self)[name].copy() for name in ("_return", "_discount", "_means", "_counts")}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The inverse."""
        vars(self).update({name: np.array(value) for name, value in state.items()})


class ReferenceWeight:
    """beta: ``adaptive``, ``fixed``, ``linear`` (falls to 0 in the training), ``lanes`` or ``none`` (are 0)."""

    def __init__(self, rule: WeightRule, first: float, least: float, rate: float, wanted: float) -> None:
        """The first weight.

        Args:
            rule: See above.
            first: First and largest weight.
            least: Smallest weight of ``adaptive``.
            rate: eta of ``adaptive``: how fast it changes.
            wanted: kappa of ``adaptive``: the advantage over which it falls.
        """
        self.rule, self.first, self.least, self.rate, self.wanted = rule, first, least, rate, wanted
        self.beta = 0.0 if rule in ("lanes", "none") else first

    def update(self, advantage: float, share: float) -> None:
        """One step, with the advantage of the policy over the reference; ``share`` of the training is done."""
        if self.rule == "adaptive":
            changed = self.beta * math.exp(self.rate * (self.wanted - advantage))
            self.beta = min(max(changed, self.least), self.first)
        elif self.rule == "linear":
            self.beta = self.first * (1.0 - share)

    def state_dict(self) -> dict[str, float]:
        """For a checkpoint."""
        return {"beta": self.beta}

    def load_state_dict(self, state: dict[str, float]) -> None:
        """The inverse."""
        self.beta = state["beta"]


# ----------------------------------------------------------------------------------------------------------- the losses


def n_step_returns(some: Sequences, team: int, gamma: float) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
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
    row, is_running = torch.full((count,), length), torch.ones(count)
    for k in range(length):
        is_cut = (is_running > 0) & (some.weights[k] == 0)  # the horizon truncated the match before this row
        row = torch.where(is_cut, k, row)
        is_running = is_running * some.weights[k]
        total = total + is_running * discount * some.rewards[k, :, team]
        discount = torch.where(is_running > 0, discount * gamma * some.continues[k], discount)
        is_running = is_running * some.continues[k]
    return total, row, discount


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
    KEEPS_REPLAY = True
    args: Args

    def sample(self, length: int) -> Sequences:
        """Sequences that begin with a decision of the team."""
        size = self.args.batch_size
        some = self.replay.sample_sequences(self.rng, 4 * size, length)
        picked = (some.positions.asked[0].any(dim=1) & (some.weights[0] > 0)).nonzero()[:size, 0]
        positions = Position.from_named({name: value[:, picked] for name, value in some.positions.named().items()})
        others = (some.keeps, some.actions, some.rewards, some.continues, some.weights)
        return Sequences(positions, *(value[:, picked] for value in others))


class Learner:
    """The networks and their gradient steps."""

    def __init__(self, args: Args, training: GraphTraining) -> None:
        """Networks of random weights from torch's generator."""
        game = training.roster.game
        self.args, self.graphs = args, Graphs(game)
        self.members, self.team = training.roster.agents, int(training.roster.team_of[0])
        self.stride = 2 if game.world.rules.order else 1
        self.length = args.steps_ahead * self.stride
        self.policy = GraphPolicy(self.graphs, args.width, args.heads, args.decoder, args.play)
        self.critics = MoveNetwork(self.graphs, args.width, args.heads, outputs=2)
        self.target, self.average = copy.deepcopy(self.critics), copy.deepcopy(self.policy)
        self.reference = Reference(args.reference, game, self.graphs, args.team)
        self.weight = ReferenceWeight(
            args.beta, args.beta_first, args.beta_least, args.beta_rate, args.advantage_wanted
        )
        self.returns = MatchReturns(
            args.lanes, args.reference_lanes, args.gamma ** (1.0 / self.stride), args.return_decay
        )
        self.policy_optimizer, self.critic_optimizer = (
            torch.optim.Adam(part.parameters(), fused=True) for part in (self.policy, self.critics)
        )

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
                actions[asked] = decide(network.scores, self.graphs, places, *given, self.policy.sequential).numpy()
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
        at, agent = prefixes(places, self.graphs, some.actions[0], sequential=True)
        before, _ = prefixes(places, self.graphs, some.actions[0], self.policy.sequential)
        present = places.own >= 0
        weights = present.float().flatten()

        outputs, moves = self.critics(at, agent)
        values = outputs.detach().amin(dim=2)
        logits = self.policy.network(before, agent)[0][..., 0]
        with torch.no_grad():
            total, row, discount = n_step_returns(some, self.team, args.gamma ** (1.0 / self.stride))
            after = row, torch.arange(len(row))
            following = self.next_values(Places.of(nodes[after], self.members), legals[after], alpha)
            soft = soft_values(logits, values, legal, alpha).unflatten(0, (-1, self.members))
            targets = critic_targets(soft, present, total + discount * following).flatten()
        critic_loss = errors_of(outputs, some.actions[0].flatten(), targets, weights)
        gradient_step(self.critic_optimizer, critic_loss, rate, args.max_gradient_norm)

        reference = self.reference(at, agent, legal, moves)
        loss, entropy = policy_loss(logits, values, reference, legal, weights, alpha, self.weight.beta)
        gradient_step(self.policy_optimizer, loss, rate, args.max_gradient_norm)
        polyak_update(self.target, self.critics, args.tau)
        polyak_update(self.average, self.policy, args.average)
        self.weight.update(self.returns.advantage, share)
        training.count_update(critic_loss, entropy, self.weight.beta, self.returns.advantage)


def train(args: Args, evaluation: Evaluation | None = None) -> Report:
    """Trains, or resumes; files and arguments as in `palaestra_baselines.fm3q.train`."""
    with RunFolder(args, METHOD) as folder:
        training = GraphTraining(args, folder, evaluation, max(args.replay_size // args.lanes, 2))
        learner = Learner(args, training)
        training.resume(**{name: getattr(learner, name) for name in LEARNT})
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
