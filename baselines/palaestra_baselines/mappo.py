"""MAPPO: a team learns by proximal policy optimisation with one central value of the global state.

Yu et al., "The Surprising Effectiveness of PPO in Cooperative Multi-Agent Games" (arXiv 2103.01955): the agents of a
team share the weights of a policy pi(a_i | o_i) over their legal actions. A critic V(s) of the global state, which is
used in training alone, gives the advantages A by generalised advantage estimation. Both are trained by PPO (Schulman et
al., arXiv 1707.06347) on the last rollout of all lanes, several epochs of few minibatches:

    rho_i = pi(a_i | o_i) / pi_old(a_i | o_i)
    policy:  -mean_i min(rho_i A, clip(rho_i, 1 - c, 1 + c) A) - entropy coefficient * mean_i entropy of pi(. | o_i)
    value:   mean of max(huber(V - R), huber(V_old + clip(V - V_old, -c, c) - R)),    R = V_old + A

Values are learnt of targets scaled by their running mean and deviation; advantages have mean 0 and deviation 1 over the
agents that act. Agents out of the match, and those that do not act, have no part in the policy's loss. A match that the
horizon truncated is worth the value of its last position.

Ours: the inputs are scaled once, by a first rollout of random actions that is not learnt from (the paper normalises
layers); learning rate and entropy coefficient fall linearly; the critic has no recurrence, since it sees the whole
state; with ``--network entity`` policy and critic fit any number of units. Greedy play takes the most probable legal
action of each agent. The team learns against a script, or alone where a game has one team::

    python -m palaestra_baselines.mappo --env-id palaestra/Skirmish-2s3z-v0 --team red --opponent builtin

``--options mates=mix`` lets other players have all agents of the team but the first: it learns beside teammates that it
does not know. The weights are then learnt for this agent alone, and ``palaestra eval --set mates=held_out`` plays it.

Agents that give real numbers draw all of them from normal distributions on ranges scaled to [-1, 1], and pi is the
density of the draw u. What is played is u clipped to the ranges; the loss takes u itself, so that no density is
truncated. The means come from the network, the deviations are weights of each role; greedy play takes the means::

    log pi(u | o) = sum_k -(u_k - mean_k(o))^2 / (2 deviation_k^2) - log deviation_k - log(2 pi) / 2
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import nn

from palaestra.core.run.opponents import Opponent
from palaestra.game import Game
from palaestra_baselines.common.flat_networks import FlatUtilities, Utilities, masked_log_softmax, scale_inputs, unroll
from palaestra_baselines.common.rollout import (
    Sequences,
    draw_actions,
    draw_numbers,
    generalised_advantages,
    random_actions,
)
from palaestra_baselines.common.run_folder import RunFolder
from palaestra_baselines.common.training import (
    Evaluation,
    LaneArgs,
    LaneTraining,
    Report,
    gradient_step,
    learning_command,
    linear_schedule,
    weighted_mean,
)
from palaestra_baselines.common.unit_networks import UnitUtilities, load_utilities

METHOD = "mappo"
SLOPE = 10.0
"""Error, in deviations of the targets, beyond which the loss of the value grows linearly: the paper's."""


def load_policy(path: Path, game: Game, team: str) -> Opponent:
    """The greedy player of a policy file; see `load_utilities`."""
    player = load_utilities(path, game, team)
    player.gives_logits = True
    return player


@dataclass
class Args(LaneArgs):
    """Arguments of MAPPO, beside those of `LaneArgs`.

    Attributes:
        network: ``flat`` reads observations and states as vectors; ``entity`` reads them unit by unit.
        recurrent: Whether the agents have a recurrent state.
        rollout: Decisions of each lane between two updates.
        chunk: Successive decisions over which gradients flow through the recurrent state.
        epochs: Passes over a rollout.
        minibatches: Gradient steps of an epoch.
        clip: How far an update may change the probability of an action, and the value.
        gae_lambda: Decay of generalised advantage estimation.
        entropy: Coefficient of the entropy, at the start and at the end; falls linearly.
        critic_learning_rate: Of the critic, at the start and at the end; falls linearly.
        critic_hidden: Widths of the critic.
        value_decay: Share of the old running moments of the targets that a rollout keeps.
    """

    MAY_BE_ZERO: ClassVar[tuple[str, ...]] = (*LaneArgs.MAY_BE_ZERO, "entropy")
    SHARES: ClassVar[tuple[str, ...]] = (*LaneArgs.SHARES, "clip", "gae_lambda", "value_decay")

    env_id: str = "palaestra/Skirmish-2s3z-v0"
    team: str = "red"
    opponent: str = "builtin"
    total_steps: int = 300_000
    lanes: int = 64
    network: Literal["flat", "entity"] = "flat"
    recurrent: bool = False
    rollout: int = 64
    chunk: int = 8
    epochs: int = 5
    minibatches: int = 4
    clip: float = 0.2
    gae_lambda: float = 0.95
    entropy: tuple[float, float] = (0.01, 0.001)
    learning_rate: tuple[float, float] = (1e-3, 1e-4)
    critic_learning_rate: tuple[float, float] = (1e-3, 1e-4)
    critic_hidden: tuple[int, ...] = (64, 64)
    value_decay: float = 0.9
    directory: Path = Path("runs/mappo/{env_id}")

    @property
    def length(self) -> int:
        """Decisions of a sequence of a minibatch: one without recurrence."""
        return self.chunk if self.recurrent else 1

    def check(self) -> None:
        """Looks at the arguments.

        Raises:
            ValueError: One that cannot be; names the option.
        """
        super().check()
        if not self.team:
            raise ValueError("--team says which team learns, against --opponent; MAPPO does not learn both")
        if self.rollout % self.length:
            raise ValueError(f"--rollout must be a multiple of --chunk, got {self.rollout} and {self.chunk}")
        if self.minibatches > self.lanes * self.rollout // self.length:
            raise ValueError(f"--minibatches {self.minibatches} are more than the sequences of a rollout")


# -------------------------------------------------------------------------------------------------------- the networks


class Critic(nn.Module):
    """Value of a global state by a perceptron with rectified units."""

    mean: torch.Tensor
    scale: torch.Tensor

    def __init__(self, inputs: int, hidden: tuple[int, ...]) -> None:
        """Layers of random weights from torch's generator.

        Args:
            inputs: S, length of the state.
            hidden: Widths of the hidden layers.
        """
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise((inputs, *hidden, 1)))
        self.register_buffer("mean", torch.zeros(inputs))
        self.register_buffer("scale", torch.ones(inputs))

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Values ``[...]`` of states ``[..., S]``."""
        return by_layers(self.layers, (states - self.mean) * self.scale)

    def standardise(self, states: np.ndarray) -> None:
        """Scales inputs by mean and standard deviation of states ``[N, S]``."""
        scale_inputs(self, states, None)


class UnitCritic(nn.Module):
    """Value of a global state that has a row of numbers for each agent, all 0 for agents out of the match.

    No weight depends on the number of agents. Rows are encoded by weights of their own for each team, and pooled::

        e_j = relu(W_team row_j + b_team)
        V = perceptron([mean_j e_j, max_j e_j, log(1 + number of agents in the match) of each team])
    """

    mean: torch.Tensor
    scale: torch.Tensor

    def __init__(self, game: Game, size: int, hidden: tuple[int, ...]) -> None:
        """Layers of random weights from torch's generator.

        Args:
            game: The rules.
            size: S, length of the state.
            hidden: Widths of the features of a row (the first) and of the layers after the pooling.

        Raises:
            ValueError: The state is not one row of equal length for each agent.
        """
        super().__init__()
        agents = len(game.team_index)
        if game.global_state is None or size % agents:
            raise ValueError(
                f"{game.name}: the global state of {size} numbers has no row for each of {agents} agents: "
                "use --network flat"
            )
        self.members = [list(slots) for slots in game.teams.values()]
        self.agents, width, rows = agents, size // agents, hidden[0]
        self.teams = nn.ModuleList(nn.Linear(width, rows) for _ in self.members)
        pooled = len(self.members) * (2 * rows + 1)
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise((pooled, *hidden, 1)))
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("scale", torch.ones(width))

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Values ``[...]`` of states ``[..., S]``."""
        rows = states.unflatten(-1, (self.agents, -1))
        is_in = (rows != 0.0).any(-1, keepdim=True).float()
        rows, pooled = (rows - self.mean) * self.scale, []
        for layer, slots in zip(self.teams, self.members, strict=True):
            present = is_in[..., slots, :]
            encoded = torch.relu(layer(rows[..., slots, :])) * present
            number = present.sum(-2)
            pooled += [encoded.sum(-2) / number.clamp(min=1.0), encoded.amax(-2), number.log1p()]
        return by_layers(self.layers, torch.cat(pooled, -1))

    def standardise(self, states: np.ndarray) -> None:
        """Scales inputs by mean and standard deviation over agents in the match, of states ``[N, S]``."""
        rows = states.reshape(len(states) * self.agents, -1)
        scale_inputs(self, rows[rows.any(1)], None)


def by_layers(layers: nn.ModuleList, inputs: torch.Tensor) -> torch.Tensor:
    """Values ``[...]`` of inputs ``[..., I]`` by the layers of a perceptron."""
    for layer in layers[:-1]:
        inputs = torch.relu(layer(inputs))
    return layers[-1](inputs)[..., 0]


class ValueScale(nn.Module):
    """Running mean and standard deviation of the targets of a critic, which learns targets of mean 0 and deviation 1.

    First and second moment are exponential averages over updates, divided by the weight that they have gathered, as in
    value normalisation of Yu et al. (arXiv 2103.01955).
    """

    moments: torch.Tensor
    gathered: torch.Tensor

    def __init__(self, decay: float) -> None:
        """Knows no targets yet: mean 0, deviation 1.

        Args:
            decay: Share of the old averages that an update keeps.
        """
        super().__init__()
        self.decay = decay
        self.register_buffer("moments", torch.zeros(2, dtype=torch.float64))
        self.register_buffer("gathered", torch.zeros((), dtype=torch.float64))

    def update(self, targets: torch.Tensor, weights: torch.Tensor) -> None:
        """Adds targets of any shape; ``weights`` of the same shape are 0 for those that do not count."""
        values, share = targets.double(), weights.double() / weights.sum().clamp(min=1.0)
        fresh = torch.stack([(values * share).sum(), (values**2 * share).sum()])
        self.moments.lerp_(fresh, 1.0 - self.decay)
        self.gathered.lerp_(torch.ones_like(self.gathered), 1.0 - self.decay)

    def mean_and_deviation(self) -> tuple[float, float]:
        """Of the targets so far; the deviation is at least 1e-2."""
        if not self.gathered:
            return 0.0, 1.0
        mean, square = (self.moments / self.gathered).tolist()
        return mean, max(square - mean**2, 1e-4) ** 0.5

    def normalised(self, targets: torch.Tensor) -> torch.Tensor:
        """Targets as the critic learns them."""
        mean, deviation = self.mean_and_deviation()
        return (targets - mean) / deviation

    def restored(self, outputs: torch.Tensor) -> torch.Tensor:
        """Values of a critic's outputs: the inverse of `normalised`."""
        mean, deviation = self.mean_and_deviation()
        return outputs * deviation + mean


# ------------------------------------------------------------------------------------------------------------ the loss


def policy_loss(
    new: torch.Tensor, old: torch.Tensor, advantages: torch.Tensor, acts: torch.Tensor, clip: float
) -> torch.Tensor:
    """Clipped surrogate, -mean of min(rho A, clip(rho, 1 - c, 1 + c) A) with rho = exp(new - old).

    Args:
        new: ``[..., A]``, logarithms of the probabilities of the actions that were taken.
        old: ``[..., A]``, of the policy that took them.
        advantages: ``[..., 1]`` of the team.
        acts: ``[..., A]``, weights of the mean: 1 for agents that acted in a match, else 0.
        clip: c.
    """
    ratio = (new - old).exp()
    clipped = ratio.clamp(1.0 - clip, 1.0 + clip)
    return -weighted_mean(torch.minimum(ratio * advantages, clipped * advantages), acts)


def mean_entropy(log_probabilities: torch.Tensor, acts: torch.Tensor) -> torch.Tensor:
    """Mean entropy of policies ``[..., A, M]`` of agents that acted, ``acts [..., A]``."""
    return weighted_mean(-(log_probabilities.exp() * log_probabilities).sum(-1), acts)


def log_densities(
    means: torch.Tensor, log_deviations: torch.Tensor, numbers: torch.Tensor, counts: torch.Tensor
) -> torch.Tensor:
    """Logarithms ``[..., A, M]`` of the densities of drawn numbers; 0 for those that an agent does not have.

    Args:
        means: ``[..., A, M]``.
        log_deviations: ``[A, M]``, logarithms of the standard deviations.
        numbers: ``[..., A, M]``, not clipped.
        counts: bool ``[..., A, M]``, the numbers that an agent has.
    """
    distances = (numbers - means) * (-log_deviations).exp()
    return (-0.5 * distances**2 - log_deviations - 0.5 * math.log(2.0 * math.pi)) * counts


def mean_normal_entropy(log_deviations: torch.Tensor, counts: torch.Tensor, acts: torch.Tensor) -> torch.Tensor:
    """Mean entropy, over agents that acted, of their normal distributions; arguments as in `log_densities`."""
    return weighted_mean(((log_deviations + 0.5 * math.log(2.0 * math.pi * math.e)) * counts).sum(-1), acts)


def value_loss(
    new: torch.Tensor, old: torch.Tensor, targets: torch.Tensor, weights: torch.Tensor, clip: float
) -> torch.Tensor:
    """Clipped loss of values: the mean of the larger Huber loss, of the new value and of its clipped change.

    Args:
        new: ``[...]``.
        old: ``[...]``, values before the update.
        targets: ``[...]``, all three scaled.
        weights: ``[...]``, 0 where a lane started its next match.
        clip: How far from the old value a change counts.
    """
    clipped = old + (new - old).clamp(-clip, clip)
    losses = [nn.functional.huber_loss(v, targets, reduction="none", delta=SLOPE) for v in (new, clipped)]
    return weighted_mean(torch.maximum(*losses), weights)


# --------------------------------------------------------------------------------------------------------- the rollout


@dataclass(frozen=True)
class Samples:
    """Decisions ``[L, N, ...]`` of a rollout, or sequences of them as a minibatch ``[C, B, ...]``.

    Attributes:
        observations: ``[..., A_role, size]`` by role.
        legal: bool ``[..., A, M]``, alternatives, or numbers that count.
        states: ``[..., S]``.
        memory: ``[..., A, H]``, recurrent state before each decision; H is 0 without recurrence.
        keeps: ``[..., A, 1]``, see `Sequences`.
        actions: int64 ``[..., A]``, or numbers ``[..., A, M]``.
        acts: ``[..., A]``, 1 for agents that acted in a match, else 0.
        old: ``[..., A]``, logarithms of the probabilities of the actions when they were taken.
        advantages: ``[..., 1]``.
        values: ``[...]``, outputs of the critic before the update.
        targets: ``[...]``, what it is to learn, scaled.
        weights: ``[...]``, 0 where a lane started its next match.
    """

    observations: dict[str, torch.Tensor]
    legal: torch.Tensor
    states: torch.Tensor
    memory: torch.Tensor
    keeps: torch.Tensor
    actions: torch.Tensor
    acts: torch.Tensor
    old: torch.Tensor
    advantages: torch.Tensor
    values: torch.Tensor
    targets: torch.Tensor
    weights: torch.Tensor

    def at(self, rows: torch.Tensor, lanes: torch.Tensor) -> Samples:
        """Those of some rows and lanes, of any common shape."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        picked = {name: value[rows, lanes] for name, value in values.items() if name != "observations"}
        return Samples({role: seen[rows, lanes] for role, seen in self.observations.items()}, **picked)


def logits_of(actor: Any, samples: Samples) -> torch.Tensor:
    """Logits, or means, ``[C, B, A, M]`` of sequences; with recurrence from the state before their first decision."""
    return unroll(actor, samples.observations, samples.memory, samples.keeps)[0]


def log_policy(actor: Any, samples: Samples) -> torch.Tensor:
    """Logarithms ``[C, B, A, M]`` of the probabilities of all alternatives, or of the density of each drawn number."""
    outputs = logits_of(actor, samples)
    if samples.actions.is_floating_point():
        return log_densities(outputs, actor.log_deviation[actor.group_of], samples.actions, samples.legal)
    return masked_log_softmax(outputs, samples.legal)


def log_chosen(logs: torch.Tensor, actions: torch.Tensor) -> torch.Tensor:
    """Logarithms ``[..., A]`` of the probabilities of choices ``[..., A]``, or of the densities of all numbers."""
    return logs.sum(-1) if actions.is_floating_point() else logs.gather(-1, actions[..., None])[..., 0]


def entropy_of(actor: Any, logs: torch.Tensor, samples: Samples) -> torch.Tensor:
    """Mean entropy of a policy by its `log_policy`."""
    if samples.actions.is_floating_point():
        return mean_normal_entropy(actor.log_deviation[actor.group_of], samples.legal, samples.acts)
    return mean_entropy(logs, samples.acts)


@torch.no_grad()
def read_rollout(
    rollout: Sequences, actor: Any, critic: nn.Module, scale: ValueScale, args: Args, team: int
) -> Samples:
    """The decisions of a rollout with all that their losses need, under the networks that took them.

    Args:
        rollout: With global states.
        actor: The policy.
        critic: The values.
        scale: Scale of their targets; counts those of this rollout.
        args: Arguments of the run.
        team: Number of the team that learns.
    """
    positions = rollout.positions
    outputs = critic(positions.state)
    values = scale.restored(outputs)[..., None]
    rewards = rollout.rewards[..., team : team + 1]
    advantages = generalised_advantages(rollout, rewards, values, args.gamma, args.gae_lambda)
    targets = (values[:-1] + advantages)[..., 0]
    scale.update(targets, rollout.weights)
    acts = positions.asked[:-1] * rollout.weights[..., None]
    length, count = rollout.actions.shape[:2]
    memory = positions.memory if actor.memory_size else torch.zeros(length + 1, count, acts.shape[-1], 0)
    samples = Samples(
        {role: seen[:-1] for role, seen in positions.observations.items()},
        positions.legal[:-1],
        positions.state[:-1],
        memory[:-1],
        rollout.keeps[:-1],
        rollout.actions,
        acts,
        torch.zeros_like(acts),
        standardised(advantages, acts),
        outputs[:-1],
        scale.normalised(targets),
        rollout.weights,
    )
    rows, lanes = sequences(torch.arange(length // args.length * count), args.length, count)
    some = samples.at(rows, lanes)
    samples.old[rows, lanes] = log_chosen(log_policy(actor, some), some.actions)
    return samples


def standardised(advantages: torch.Tensor, acts: torch.Tensor) -> torch.Tensor:
    """Advantages ``[..., 1]`` of mean 0 and deviation 1 over the agents that acted, ``acts [..., A]``."""
    weights = acts.sum(-1, keepdim=True)
    centred = advantages - weighted_mean(advantages, weights)
    return centred / weighted_mean(centred**2, weights).sqrt().clamp(min=1e-6)


def sequences(numbers: torch.Tensor, length: int, lanes: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows ``[C, B]`` and lanes ``[C, B]`` of sequences ``[B]`` by number: those of all lanes, then the next rows."""
    rows = numbers // lanes * length + torch.arange(length)[:, None]
    return rows, (numbers % lanes).expand_as(rows)


# ------------------------------------------------------------------------------------------------------------ the loop


class RolloutTraining(LaneTraining):
    """One run of MAPPO: rollouts, each of which is learnt from and forgotten."""

    LOSSES = ("loss", "value_loss", "entropy")
    LEARNS_BESIDE_OTHERS = LEARNS_NUMBERS = True
    args: Args

    def minibatches(self) -> list[torch.Tensor]:
        """Numbers of the sequences of an epoch's minibatches: all of a rollout in random order."""
        count = self.args.rollout // self.args.length * self.args.lanes
        return list(torch.from_numpy(self.rng.permutation(count)).tensor_split(self.args.minibatches))


@torch.no_grad()
def decide(training: LaneTraining, actor: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """Actions int64 ``[N, A]``, or numbers ``[N, A, M]``, drawn from the policy; the recurrent state after them."""
    position, rng = training.collector.position, training.collector.rng
    observed = {role: torch.from_numpy(seen) for role, seen in position.observations.items()}
    outputs, after = actor.evaluate(observed, torch.from_numpy(position.memory) if actor.memory_size else None)
    if training.roster.gives_numbers:
        deviations = actor.log_deviation.exp()[actor.group_of].numpy()
        actions = draw_numbers(rng, position.legal, outputs.numpy(), deviations)
    else:
        actions = draw_actions(rng, position.legal, outputs.numpy())
    return actions, after.numpy() if actor.memory_size else None


def make_networks(args: Args, training: LaneTraining) -> tuple[Any, Any]:
    """Policy and critic of random weights.

    Raises:
        ValueError: The game's observations or states cannot be read unit by unit.
    """
    roster, size = training.roster, training.collector.position.state.shape[-1]
    if args.network == "entity":
        if roster.gives_numbers:
            raise ValueError(f"{roster.game.name}: agents give numbers, not choices of units: use --network flat")
        actor = UnitUtilities(roster, args.hidden, args.recurrent)
        return actor, UnitCritic(roster.game, size, args.critic_hidden)
    actor = FlatUtilities(roster, args.hidden) if args.recurrent else Utilities(roster, args.hidden)
    return actor, Critic(size, args.critic_hidden)


def play_at_random(training: LaneTraining, args: Args, actor: Any, critic: Any) -> None:
    """Plays a rollout of random actions and scales the inputs of both networks by it."""
    collector = training.collector
    for _ in range(args.rollout):
        collector.play(random_actions(collector), collector.position.memory)
    actor.standardise(training.replay.observed())
    critic.standardise(training.replay.last(args.rollout).positions.state.flatten(0, 1).numpy())


def train(args: Args, evaluation: Evaluation | None = None, method: str = METHOD) -> Report:
    """Trains, or resumes; files and arguments as in `palaestra_baselines.fm3q.train`, ``method`` the name in them."""
    with RunFolder(args, method) as folder:
        memory_size = args.hidden[-1] if args.recurrent else 0
        training = RolloutTraining(args, folder, evaluation, args.rollout, with_state=True, memory_size=memory_size)
        actor, critic = make_networks(args, training)
        scale, team = ValueScale(args.value_decay), int(training.roster.team_of[0])
        actor_optimizer, critic_optimizer = (torch.optim.Adam(n.parameters(), fused=True) for n in (actor, critic))
        training.resume(
            actor=actor,
            critic=critic,
            scale=scale,
            actor_optimizer=actor_optimizer,
            critic_optimizer=critic_optimizer,
        )
        if folder.before is None:
            play_at_random(training, args, actor, critic)
        while training.should_continue(actor):
            for _ in range(args.rollout):
                training.collector.play(*decide(training, actor))
            samples = read_rollout(training.replay.last(args.rollout), actor, critic, scale, args, team)
            rates = [
                linear_schedule(ends, training.progress) for ends in (args.learning_rate, args.critic_learning_rate)
            ]
            entropy_coefficient = linear_schedule(args.entropy, training.progress)
            for _ in range(args.epochs):
                for numbers in training.minibatches():
                    batch = samples.at(*sequences(numbers, args.length, args.lanes))
                    new = log_policy(actor, batch)
                    chosen = log_chosen(new, batch.actions)
                    loss = policy_loss(chosen, batch.old, batch.advantages, batch.acts, args.clip)
                    entropy = entropy_of(actor, new, batch)
                    gradient_step(
                        actor_optimizer, loss - entropy_coefficient * entropy, rates[0], args.max_gradient_norm
                    )
                    error = value_loss(critic(batch.states), batch.values, batch.targets, batch.weights, args.clip)
                    gradient_step(critic_optimizer, error, rates[1], args.max_gradient_norm)
                    training.count_update(loss, error, entropy)
        return training.report()


def main(argv: Sequence[str] | None = None) -> None:
    """Trains."""
    learning_command(Args, METHOD, __doc__ or "", argv, train)


if __name__ == "__main__":
    main()
