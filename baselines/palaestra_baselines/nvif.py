"""NVIF: messages of neighbours are compressed to a latent that is learnt without rewards before the team learns to act.

"NVIF: Neighboring Variational Information Flow for Large-Scale Cooperative Multi-Agent Scenarios" (Chai, Zhu and Zhao,
arXiv 2207.00964): agents of large teams exchange messages with their neighbours; a variational autoencoder compresses
what is shared into a latent state, which does not depend on the task and is pretrained; PPO and DQN learn policies of
the agent's observation and the latent, in games of MAgent. The paper is known to us by its abstract alone and has no
public code or table: networks, targets and numbers are ours.

*Messages.* `palaestra_baselines.common.neighbours`: exchanges with the neighbours in an agent's list, whose offsets are
added to their messages. ``--messages none`` exchanges nothing, ``mean`` learns the messages from rewards alone, and
``nvif`` gives them a Gaussian latent z with a decoder that is trained before, on random play, by

    -log p(x_i | z) - w log p(b_i | z) + beta KL(N(mu, sigma^2) || N(0, 1)),    z = mu + sigma epsilon

x_i is the agent's own window; b_i says in which of 7 x 7 boxes of 3 x 3 cells around the agent itself or its neighbours
see an opponent, and w is larger where there is one, since nearly all boxes are empty; beta is small, or the latent
would say nothing. Then z = mu divided by the deviation of mu on random play: a policy overlooks small numbers for long.
``--tuned frozen`` keeps what leads to z, ``all`` learns on from rewards.

*PPO* is that of `palaestra_baselines.mappo` with a value V(x_i, z_i) of each agent, from the same layers, and rewards
and advantages of its own; those have mean 0 and deviation 1 over the agents that acted. *DQN* (``--algorithm dqn``)
takes the scores as values::

    y_i = r_i + gamma max_a Q'(x_i', z_i', a)    with the online network's choice of a; 0 after the match or a death

No agent sees its absolute place, so that what is learnt on one map can be played on another of any size, by any number
of agents. One team learns against a script::

    python -m palaestra_baselines.nvif --env-id palaestra/GridPursuit-Blind-v0
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import nn

from palaestra import registry
from palaestra.core.files import FileError
from palaestra.core.run.opponents import Opponent, OpponentSpec
from palaestra.game import Game
from palaestra_baselines.common.agents import keywords, make_lanes, opponents_of
from palaestra_baselines.common.flat_networks import greedy, masked_log_softmax, q_of_actions
from palaestra_baselines.common.neighbours import (
    NETWORK,
    NeighbourNetwork,
    NeighbourPlayer,
    NeighbourRoster,
    Observations,
    Shape,
    gathered,
    in_match,
    inputs_of,
    player_of,
)
from palaestra_baselines.common.policy_file import policy_for, read_policy
from palaestra_baselines.common.rollout import (
    RUN_BITS,
    Batch,
    Collector,
    Replay,
    Sequences,
    draw_actions,
    generalised_advantages,
    random_actions,
)
from palaestra_baselines.common.run_folder import RunFolder
from palaestra_baselines.common.training import (
    EVALUATION_SEED,
    Evaluation,
    LaneTraining,
    LearningArgs,
    Report,
    Training,
    gradient_step,
    learn,
    learning_command,
    linear_schedule,
    weighted_mean,
)
from palaestra_baselines.mappo import mean_entropy, policy_loss, standardised

METHOD = "nvif"
BOXES, CELLS = 7, 3
"""Boxes of a side of the map that the latent tells, and cells of a side of a box."""
OPPONENT = 3
"""Channel of a window."""
VALUE_WEIGHT = 0.5
"""Of the squared error of the values of PPO."""
PRETRAINING_RUN = 2**29
"""Number of the run whose matches are played at random before a training, plus its seed."""


@dataclass
class Args(LearningArgs):
    """Arguments beside those of `LearningArgs`; those of the replay and of epsilon are for DQN alone.

    Attributes:
        algorithm: How agents learn from rewards.
        messages: What agents know of their neighbours, see the module.
        offsets: Whether receivers of messages know where their neighbours are.
        tuned: Whether the part before the latent goes on learning.
        hops: Exchanges of messages in a decision.
        width: Numbers of a message and of the latent.
        pretraining: Gradient steps on random play before the training, with ``messages="nvif"``; 0 starts from scratch.
        random_decisions: Decisions of random play before the training; they are not counted among ``total_steps``.
        occupied: w, weight of a box with an opponent.
        beta: Weight of the divergence.
        rollout: Decisions of each lane between two updates of PPO.
        epochs: Passes over a rollout.
        minibatches: Gradient steps of an epoch.
        clip: How far an update may change the probability of an action.
        gae_lambda: Decay of generalised advantage estimation.
        entropy: Coefficient of the entropy, at the start and at the end; falls linearly.
    """

    MAY_BE_ZERO: ClassVar[tuple[str, ...]] = (
        *LearningArgs.MAY_BE_ZERO,
        *("entropy", "pretraining", "beta"),
    )
    SHARES: ClassVar[tuple[str, ...]] = (*LearningArgs.SHARES, "clip", "gae_lambda")

    env_id: str = "palaestra/GridPursuit-Blind-v0"
    team: str = "predator"
    opponent: str = "wander"
    algorithm: Literal["ppo", "dqn"] = "ppo"
    messages: Literal["none", "mean", "nvif"] = "nvif"
    offsets: bool = True
    tuned: Literal["all", "frozen"] = "all"
    hops: int = 2
    width: int = 32
    pretraining: int = 700
    random_decisions: int = 6_400
    occupied: float = 15.0
    beta: float = 1e-3
    total_steps: int = 100_000
    evaluations: int = 10
    matches: int = 128
    lanes: int = 32
    hidden: tuple[int, ...] = (64, 64)
    learning_rate: tuple[float, float] = (2e-3, 5e-4)
    gamma: float = 0.95
    max_gradient_norm: float = 1.0
    rollout: int = 25
    epochs: int = 3
    minibatches: int = 4
    clip: float = 0.2
    gae_lambda: float = 0.95
    entropy: tuple[float, float] = (0.03, 0.01)
    replay_size: int = 30_000
    warmup_steps: int = 3_200
    batch_size: int = 64
    directory: Path = Path("runs/nvif/{env_id}")

    @property
    def shape(self) -> Shape:
        """Sizes of the network."""
        hops = 0 if self.messages == "none" else self.hops
        return Shape(hops, self.offsets, self.messages == "nvif", self.width, self.hidden)

    def check(self) -> None:
        """Looks at the arguments.

        Raises:
            ValueError: One that cannot be; names the option.
        """
        super().check()
        if not self.team:
            raise ValueError("--team says which team learns, against --opponent; NVIF does not learn both")
        if self.tuned == "frozen" and not (self.messages == "nvif" and self.pretraining):
            raise ValueError("--tuned frozen keeps a pretrained latent: it needs --messages nvif and --pretraining > 0")
        if self.minibatches > self.lanes * self.rollout:
            raise ValueError(f"--minibatches {self.minibatches} are more than the decisions of a rollout")


# -------------------------------------------------------------------------------------------------------- pretraining


def opponents_seen(observations: Observations) -> torch.Tensor:
    """Boxes in which an agent or its neighbours see an opponent, float32 ``[S, A, BOXES^2]`` of 0 and 1.

    The middle box has the agent in its middle; rows of boxes, then columns, both as in windows.
    """
    window, neighbours, offsets = (observations[name] for name in ("window", "neighbours", "offsets"))
    side = window.shape[-2]
    cells = (window[..., OPPONENT] > 0).flatten(-2).float()
    own = torch.arange(window.shape[1]).expand(len(window), -1)[..., None]
    index = torch.cat([own, neighbours.long()], -1)
    seen = gathered(cells, index.clamp(min=0)) * (index >= 0)[..., None]
    ways = torch.arange(side) - side // 2
    steps = torch.stack(torch.meshgrid(ways, ways, indexing="ij"), -1).flatten(0, 1)
    places = nn.functional.pad(offsets.long(), (0, 0, 1, 0))[..., None, :] + steps
    boxes = (places + BOXES * CELLS // 2).div(CELLS, rounding_mode="floor")
    seen = seen * ((boxes >= 0) & (boxes < BOXES)).all(-1)
    numbers = (boxes[..., 0] * BOXES + boxes[..., 1]).clamp(0, BOXES**2 - 1)
    empty = torch.zeros(*seen.shape[:2], BOXES**2)
    return empty.scatter_add_(-1, numbers.flatten(2), seen.flatten(2)).clamp(max=1.0)


def reconstruction_loss(
    logits: torch.Tensor, window: torch.Tensor, boxes: torch.Tensor, alive: torch.Tensor, occupied: float
) -> torch.Tensor:
    """Mean cross-entropy of windows and boxes, over agents in the match, of one number.

    Args:
        logits: ``[S, A, C + B]`` of the decoder.
        window: ``[S, A, C]``, shares.
        boxes: ``[S, A, B]``, 0 or 1.
        alive: Bool ``[S, A]``.
        occupied: Weight of boxes that are 1.
    """
    targets = torch.cat([window, boxes], -1)
    weights = torch.cat([torch.ones_like(window), 1.0 + (occupied - 1.0) * boxes], -1)
    errors = nn.functional.binary_cross_entropy_with_logits(logits, targets, weights, reduction="none")
    return weighted_mean(errors.mean(-1), alive.float())


def divergence(mean: torch.Tensor, log_variance: torch.Tensor, alive: torch.Tensor) -> torch.Tensor:
    """Mean divergence of normal distributions ``[S, A, W]`` from N(0, 1), in nats, over agents in the match."""
    return weighted_mean(0.5 * (mean**2 + log_variance.exp() - 1.0 - log_variance).sum(-1), alive.float())


def play_at_random(args: Args) -> dict[str, torch.Tensor]:
    """What agents observe in matches of random play, fields ``[S, A, ...]``; nobody looks at rewards."""
    sim = make_lanes(
        args.env_id, args.options, args.lanes, opponents_of(args.env_id, args.options, args.team, args.opponent)
    )
    roster, rows = NeighbourRoster(sim.game, [args.team]), -(-args.random_decisions // args.lanes)
    replay = Replay(rows + 1, args.lanes)
    collector = Collector(sim, roster, replay, PRETRAINING_RUN + args.seed)
    for _ in range(rows):
        collector.play(random_actions(collector))
    sim.close()
    return {name: torch.from_numpy(values) for name, values in replay.observed().items()}


def pretrain(network: NeighbourNetwork, args: Args) -> None:
    """Learns the latent on random play, then scales it; and what the decoder reads of it.

    The last tenth of the decisions is not learnt from: readings are those of the boxes there, by the mean latent.
    """
    observed = play_at_random(args)
    window = inputs_of(observed)[..., -observed["window"].flatten(2).shape[-1] :]
    boxes, alive = opponents_seen(observed), in_match(observed)
    count, rng = len(alive) * 9 // 10, np.random.default_rng([args.seed, 3])
    outputs = window.shape[-1] + BOXES**2
    decoder = nn.Sequential(nn.Linear(args.width, args.hidden[0]), nn.ReLU(), nn.Linear(args.hidden[0], outputs))
    learnt = [*network.parameters(), *decoder.parameters()]
    optimizer = torch.optim.Adam([{"params": [p for p in learnt if p.requires_grad]}], fused=True)

    def latents(rows: torch.Tensor | slice) -> tuple[torch.Tensor, torch.Tensor]:
        some = {name: values[rows] for name, values in observed.items()}
        return network.distribution(network.last_messages(some, inputs_of(some)))

    for _ in range(args.pretraining):
        rows = torch.from_numpy(rng.integers(count, size=args.batch_size))
        mean, log_variance = latents(rows)
        drawn = mean + torch.randn(mean.shape) * (0.5 * log_variance).exp()
        loss = reconstruction_loss(decoder(drawn), window[rows], boxes[rows], alive[rows], args.occupied)
        loss = loss + args.beta * divergence(mean, log_variance, alive[rows])
        gradient_step(optimizer, loss, args.learning_rate[0], args.max_gradient_norm)
    with torch.no_grad():
        network.scale.copy_(latents(slice(0, count))[0][alive[:count]].std(0).clamp(min=1e-3))
        told = decoder(latents(slice(count, None))[0])[..., -(BOXES**2) :].sigmoid()[alive[count:]]
    real = boxes[count:][alive[count:]] > 0
    network.readings.copy_(torch.stack([told[real].mean(), told[~real].mean()]))


def make_network(args: Args, training: LaneTraining, folder: RunFolder) -> NeighbourNetwork:
    """The network of a run: pretrained if it begins, and frozen if it is to be."""
    roster: Any = training.roster
    network = NeighbourNetwork(roster.inputs, roster.actions, args.shape)
    if args.messages == "nvif" and folder.before is None:
        pretrain(network, args)
        told = "boxes with an opponent read {:.2f}, others {:.2f}".format(*network.readings.tolist())
        folder.progress.say(f"{args.pretraining} gradient steps on random play: {told}")
    if args.tuned == "frozen":
        network.freeze()
    return network


# ------------------------------------------------------------------------------------------------------------------ PPO


class RolloutTraining(LaneTraining):
    """One run of PPO."""

    LOSSES = ("loss", "value_loss", "entropy")
    ROSTER = NeighbourRoster
    args: Args

    def decide(self, network: NeighbourNetwork) -> np.ndarray:
        """Actions int64 ``[N, A]`` drawn from the policy."""
        position, rng = self.collector.position, self.collector.rng
        with torch.no_grad():
            logits = network({name: torch.from_numpy(seen) for name, seen in position.observations.items()})
        return draw_actions(rng, position.legal, logits.numpy())


@torch.no_grad()
def read_rollout(rollout: Sequences, network: NeighbourNetwork, args: Args) -> dict[str, torch.Tensor]:
    """All that the losses of decisions need, by name: fields of observations ``[S, A, ...]``, ``legal [S, A, M]``.

    And, all ``[S, A]``: ``actions``, ``acts`` (1 for agents that acted in a match, else 0), ``old`` (logarithms of the
    probabilities of the actions), ``advantages`` and ``targets`` of the values.
    """
    positions = rollout.positions
    logits, values = network.evaluate(positions.observations)
    values = values * positions.alive
    advantages = generalised_advantages(rollout, rollout.rewards, values, args.gamma, args.gae_lambda)
    acts = positions.asked[:-1] * rollout.weights[..., None]
    old = masked_log_softmax(logits[:-1], positions.legal[:-1]).gather(-1, rollout.actions[..., None])[..., 0]
    samples = {name: seen[:-1] for name, seen in positions.observations.items()}
    samples |= {"legal": positions.legal[:-1], "actions": rollout.actions, "acts": acts, "old": old}
    samples |= {
        "advantages": standardised(advantages[..., None], acts[..., None])[..., 0],
        "targets": values[:-1] + advantages,
    }
    return {name: value.flatten(0, 1) for name, value in samples.items()}


def ppo_losses(
    network: NeighbourNetwork, batch: dict[str, torch.Tensor], clip: float
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Clipped surrogate, squared error of the values and entropy, means over agents that acted; see `read_rollout`."""
    logits, values = network.evaluate(batch)
    logs, acts = masked_log_softmax(logits, batch["legal"]), batch["acts"]
    new = logs.gather(-1, batch["actions"][..., None])[..., 0]
    loss = policy_loss(new, batch["old"], batch["advantages"], acts, clip)
    return loss, weighted_mean((values - batch["targets"]) ** 2, acts), mean_entropy(logs, acts)


def train_ppo(args: Args, folder: RunFolder, evaluation: Evaluation | None) -> Report:
    """Rollouts of all lanes, each learnt from in a few epochs and forgotten."""
    training = RolloutTraining(args, folder, evaluation, args.rollout)
    network = make_network(args, training, folder)
    optimizer = torch.optim.Adam(network.parameters(), fused=True)
    training.resume(network=network, optimizer=optimizer)
    while training.should_continue(network):
        for _ in range(args.rollout):
            training.collector.play(training.decide(network))
        samples = read_rollout(training.replay.last(args.rollout), network, args)
        rate, share = (linear_schedule(ends, training.progress) for ends in (args.learning_rate, args.entropy))
        for _ in range(args.epochs):
            order = torch.from_numpy(training.rng.permutation(len(samples["acts"])))
            for rows in order.tensor_split(args.minibatches):
                batch = {name: value[rows] for name, value in samples.items()}
                loss, error, entropy = ppo_losses(network, batch, args.clip)
                total = loss + VALUE_WEIGHT * error - share * entropy
                gradient_step(optimizer, total, rate, args.max_gradient_norm)
                training.count_update(loss, error, entropy)
    return training.report()


# ------------------------------------------------------------------------------------------------------------------ DQN


class ReplayTraining(Training):
    """One run of DQN."""

    ROSTER = NeighbourRoster


def td_loss(
    online: NeighbourNetwork, target: NeighbourNetwork, batch: Batch, gamma: float, double: bool = True
) -> torch.Tensor:
    """Mean of ``(y_i - Q(x_i, z_i, a_i))^2`` over agents that acted, see the module.

    Args:
        online: The online network.
        target: Its target network.
        batch: Decisions with rewards of the agents.
        gamma: Discount per decision.
        double: Choose the greedy actions by the online network.
    """
    before, after = batch.before, batch.after
    with torch.no_grad():
        values = target(after.observations)
        choice = online(after.observations) if double else values
        y = batch.rewards + gamma * batch.continues[:, None] * greedy(values, choice, after)
    chosen = q_of_actions(online(before.observations), batch.actions, before)
    return weighted_mean((chosen - y) ** 2, before.asked * batch.weights[:, None])


def train_dqn(args: Args, folder: RunFolder, evaluation: Evaluation | None) -> Report:
    """Epsilon-greedy play, learnt from by batches of a replay."""
    training = ReplayTraining(args, folder, evaluation)
    online = make_network(args, training, folder)
    target = copy.deepcopy(online)
    loss = lambda: td_loss(online, target, training.sample(), args.gamma, args.double)  # noqa: E731
    return learn(training, online, target, loss)


# ------------------------------------------------------------------------------------------------------------- matches


def catches_of(
    env_id: str, options: tuple[str, ...], team: str, player: OpponentSpec, opponent: str, matches: int, seed: int
) -> np.ndarray:
    """Prey caught in each of some matches of a pursuit, float64 ``[matches]``.

    ``player`` plays ``team``, ``opponent`` the other; ``options`` are ``name=value`` each, ``seed`` numbers a run.
    """
    given = keywords(options)
    teams = registry.make_game(env_id, **given)[0].teams
    opponents = {name: player if name == team else opponent for name in teams}
    sim = registry.make_batch(env_id, matches, autoreset_mode="off", opponents=opponents, **given)
    sim.reset(seed=seed << RUN_BITS)
    while not (sim.terminated | sim.truncated).all():
        sim.step()
    catches = sim.info["catches"].astype(np.float64)
    sim.close()
    return catches


def evaluate_catches(args: Args, player_of_team: Callable[[str], Opponent]) -> dict[str, float]:
    """Catches a match, with half of its 95 % interval, by the normal approximation."""
    player = player_of_team(args.team)
    catches = catches_of(args.env_id, args.options, args.team, player, args.opponent, args.matches, EVALUATION_SEED)
    return {"catches": float(catches.mean()), "half_width": 1.96 * float(catches.std() / len(catches) ** 0.5)}


def load_policy(path: Path, game: Game, team: str, shuffled: bool = False) -> NeighbourPlayer:
    """The greedy player of a policy file, for any number of agents on a map of any size.

    Args:
        path: The file.
        game: The rules.
        team: Name of the team.
        shuffled: Whether agents get messages of teammates drawn at random in place of their neighbours'.

    Raises:
        FileError: The file is no saved policy of this method, or does not fit the team.
    """
    with policy_for(path, game, team) as arrays:
        notes = read_policy(path)[1]
        try:
            shape = Shape(**{**notes[NETWORK], "hidden": tuple(notes[NETWORK]["hidden"])})
            player = player_of(arrays, shape, game, team, shuffled)
            player.gives_logits = notes["args"]["algorithm"] == "ppo"
        except (TypeError, KeyError, RuntimeError, AttributeError) as error:
            raise FileError(f"{path}: its metadata have no {NETWORK} that fits: {str(error)[:200]}") from error
        return player


def train(args: Args, evaluation: Evaluation | None = None) -> Report:
    """Trains, or resumes; files and arguments as in `palaestra_baselines.fm3q.train`."""
    with RunFolder(args, METHOD) as folder:
        game, _ = registry.make_game(args.env_id, **keywords(args.options))
        if evaluation is None and any(f.name == "catches" for f in game.info):
            evaluation = partial(evaluate_catches, args)
        return (train_dqn if args.algorithm == "dqn" else train_ppo)(args, folder, evaluation)


def main(argv: Sequence[str] | None = None) -> None:
    """Trains."""
    learning_command(Args, METHOD, __doc__ or "", argv, train)


if __name__ == "__main__":
    main()
