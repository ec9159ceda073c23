"""MASAC: soft actor-critic for a team whose agents give real numbers, with one critic of what all see and do.

Haarnoja et al., "Soft Actor-Critic Algorithms and Applications" (arXiv 1812.05905), with the centralised critic of Lowe
et al. (arXiv 1706.02275). The agents of a role share an actor, a normal distribution under tanh; the two critics Q read
the observations and actions of the whole team. Q' are their target networks, alpha is the temperature:

    V(o')    = min_k Q'_k(o', a') - alpha sum_i log pi(a'_i | o'_i),    a' drawn by pi
    critics:   mean of sum_k (Q_k(o, a) - y)^2,    y from the rewards of n decisions and V after them
    actor:     mean of alpha sum_i log pi(a_i | o_i) - min_k Q_k(o, a),    a drawn by pi
    alpha:     mean of -log alpha (sum_i log pi(a_i | o_i) + target entropy)

So alpha grows while the entropy is below its target. A match that a rule ended is worth 0 afterwards, one that the
horizon truncated the value of its last position. Entropies within the n decisions are left out.

Ours, for sparse rewards: a quarter of each batch comes from matches with any reward
(`palaestra_baselines.common.stratified_replay`), since critics learn 0 everywhere else; ``--bonus`` adds rewards for
rarely visited pairs of observation and action (`palaestra_baselines.common.visit_counts`), which fall with the share of
matches that are paid. Hidden layers of critics are normalised without weights. Evaluations play the means::

    palaestra train masac --env-id palaestra/SparseSpread-2-v0
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import nn

from palaestra import registry
from palaestra.game import Game
from palaestra_baselines.common.agents import Roster, keywords
from palaestra_baselines.common.flat_networks import fitting_network, load_arrays
from palaestra_baselines.common.number_networks import ActorPlayer, GroupNetworks, Inputs, TwinCritic, hidden_of
from palaestra_baselines.common.policy_file import policy_for
from palaestra_baselines.common.rollout import Replay, Sequences, random_actions, value_targets
from palaestra_baselines.common.run_folder import RunFolder
from palaestra_baselines.common.stratified_replay import StratifiedReplay
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
from palaestra_baselines.common.visit_counts import VisitCounts
from palaestra_baselines.common.world_models import squashed_normal

METHOD = "masac"


@dataclass
class Args(LaneArgs):
    """Arguments of MASAC, beside those of `LaneArgs`.

    Attributes:
        critic_hidden: Widths of the critics.
        value_steps: n, decisions whose rewards a target of the critics has.
        target_entropy: Entropy of the actors that the temperature aims at, for each number of an action.
        temperature: At the start.
        reward_scale: Rewards are multiplied by it before they are learnt.
        bonus: Reward of a decision in which every agent visits a new pair of observation and action; 0 for none.
        paid_share: Share of each batch from matches with any reward, as far as there are any.
        batch_size: Decisions in a gradient step.
        decisions_per_update: Decisions for each gradient step.
        warmup_steps: Decisions at random before learning starts.
        replay_size: Decisions that are kept.
        tau: Coefficient of Polyak averaging of the target networks, at each gradient step.
    """

    MAY_BE_ZERO: ClassVar[tuple[str, ...]] = (*LaneArgs.MAY_BE_ZERO, "bonus", "paid_share")
    SHARES: ClassVar[tuple[str, ...]] = (*LaneArgs.SHARES, "tau", "paid_share")
    ANY_SIGN: ClassVar[tuple[str, ...]] = ("target_entropy",)

    env_id: str = "palaestra/SparseSpread-2-v0"
    opponent: str = ""
    total_steps: int = 600_000
    lanes: int = 48
    learning_rate: tuple[float, float] = (1e-3, 2e-4)
    gamma: float = 0.97
    critic_hidden: tuple[int, ...] = (64, 64)
    evaluations: int = 12
    matches: int = 256
    value_steps: int = 3
    target_entropy: float = -2.5
    temperature: float = 0.02
    reward_scale: float = 1.0
    bonus: float = 0.0
    paid_share: float = 0.25
    batch_size: int = 256
    decisions_per_update: int = 48
    warmup_steps: int = 10_000
    replay_size: int = 200_000
    tau: float = 0.01
    directory: Path = Path("runs/masac/{env_id}")

    def check(self) -> None:
        """Looks at the arguments.

        Raises:
            ValueError: One that cannot be; names the option.
        """
        super().check()
        least = self.lanes * (self.value_steps + 1)
        if self.warmup_steps < least:
            raise ValueError(
                f"--warmup-steps {self.warmup_steps} are too few for --value-steps {self.value_steps} in {self.lanes} "
                f"lanes: at least {least}"
            )
        if self.replay_size < self.warmup_steps:
            raise ValueError(f"--replay-size {self.replay_size} is less than --warmup-steps {self.warmup_steps}")


# -------------------------------------------------------------------------------------------------------- the networks


class GaussianPolicy(nn.Module):
    """Normal distributions under tanh."""

    def __init__(self, roster: Roster, inputs: int, hidden: tuple[int, ...]) -> None:
        """Random weights from torch's generator."""
        super().__init__()
        self.network = GroupNetworks(roster, inputs, hidden, 2 * roster.actions)

    def forward(
        self, rows: torch.Tensor, legal: torch.Tensor, noise: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Actions ``[..., A, M]`` and logarithms ``[..., A]`` of their densities.

        Args:
            rows: Inputs ``[..., A, I]``.
            legal: bool ``[..., A, M]``: numbers that count.
            noise: Standard normal draws ``[..., A, M]``; None takes the means, without densities.
        """
        return squashed_normal(self.network(rows), noise, legal.float())


class Read(NamedTuple):
    """What an actor makes of inputs.

    Attributes:
        seen: The inputs ``[..., A, I]``, which critics read.
        rows: What the policy reads, ``[..., A, R]``.
        codes: int64 ``[..., A]``, of what was seen, where visits are counted by these; else None.
    """

    seen: torch.Tensor
    rows: torch.Tensor
    codes: torch.Tensor | None = None

    def at(self, *index: Any) -> Read:
        """The part of some rows, by an index of leading axes."""
        codes = None if self.codes is None else self.codes[index]
        return Read(self.seen[index], self.rows[index], codes)


class Actor(nn.Module):
    """What plays: scaled inputs, and a policy."""

    def __init__(self, roster: Roster, hidden: tuple[int, ...]) -> None:
        """Random weights from torch's generator."""
        super().__init__()
        self.inputs = Inputs(roster)
        self.policy: nn.Module = GaussianPolicy(roster, self.inputs.size, hidden)

    def read(self, seen: torch.Tensor) -> Read:
        """What networks read of inputs ``[..., A, I]``."""
        return Read(seen, seen)

    def arrays(self) -> dict[str, np.ndarray]:
        """Weights by name for a player."""
        return {name: value.detach().numpy().copy() for name, value in self.state_dict().items()}


# ---------------------------------------------------------------------------------------------------------- the losses


def soft_values(values: torch.Tensor, logs: torch.Tensor | None, temperature: torch.Tensor) -> torch.Tensor:
    """V ``[...]``, see the module.

    Args:
        values: ``[2, ...]``, of both target critics.
        logs: ``[..., A]``, of drawn actions; None for a policy without densities.
        temperature: alpha.
    """
    lesser = values.amin(0)
    return lesser if logs is None else lesser - temperature * logs.sum(-1)


def critic_loss(values: torch.Tensor, targets: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Loss of values ``[2, B]`` of both critics for targets ``[B]``, see the module."""
    return weighted_mean(((values - targets) ** 2).sum(0), weights)


def actor_loss(
    values: torch.Tensor, logs: torch.Tensor, temperature: torch.Tensor, weights: torch.Tensor
) -> torch.Tensor:
    """Loss of an actor whose actions have values ``[2, B]`` and logarithms ``[B, A]`` of densities, see the module."""
    return weighted_mean(temperature * logs.sum(-1) - values.amin(0), weights)


def temperature_loss(
    log_temperature: torch.Tensor, logs: torch.Tensor, targets: torch.Tensor, weights: torch.Tensor
) -> torch.Tensor:
    """Loss of the temperature for target entropies ``[B]``, see the module."""
    return weighted_mean(-log_temperature * (logs.detach().sum(-1) + targets), weights)


# ------------------------------------------------------------------------------------------------------------ the loop


class Learner:
    """Networks and optimizers of a run.

    Attributes:
        actor: What plays, is evaluated and saved.
        critic: Both critics.
        target: Their target networks.
        log_temperature: A module with this parameter alone.
        visits: Counts of what was visited.
        bonus: Reward of a decision in which every agent visits something new.
    """

    def __init__(self, args: Any, roster: Roster, actor: Any) -> None:
        """Random weights from torch's generator."""
        self.args, self.actor, self.bonus = args, actor, args.bonus
        self.team, size = int(roster.team_of[0]), actor.inputs.size
        self.critic = TwinCritic(roster.agents * (size + roster.actions), args.critic_hidden)
        self.target = copy.deepcopy(self.critic).requires_grad_(False)
        self.log_temperature = nn.ParameterList([torch.tensor(float(np.log(args.temperature)))])
        self.visits = VisitCounts(size)
        self.optimizers = {
            "critic": torch.optim.Adam(self.critic.parameters(), fused=True),
            "policy": torch.optim.Adam(actor.policy.parameters(), fused=True),
            "temperature": torch.optim.Adam(self.log_temperature.parameters()),
        }

    def learnt(self) -> dict[str, Any]:
        """All modules and optimizers by name, for checkpoints."""
        names = ("actor", "critic", "target", "log_temperature", "visits")
        optimizers = {f"{name}_optimizer": part for name, part in self.optimizers.items()}
        return {**{name: getattr(self, name) for name in names}, **optimizers}

    @property
    def temperature(self) -> torch.Tensor:
        """Alpha, without a gradient."""
        return self.log_temperature[0].detach().exp()

    def arrays(self) -> dict[str, np.ndarray]:
        """Weights by name for a player."""
        return self.actor.arrays()

    def notes(self) -> dict[str, Any]:
        """Further metadata of a policy file: none."""
        return {}

    def player(self, game: Game, team: str) -> ActorPlayer:
        """The player of a team by copies of the current weights, without exploration."""
        return make_player(self.arrays(), game, team)

    def standardise(self, replay: Replay) -> None:
        """Scales inputs by what is in the replay."""
        self.actor.inputs.standardise(replay.observed())

    @torch.no_grad()
    def act(self, observations: Mapping[str, torch.Tensor], legal: torch.Tensor, noise: torch.Tensor) -> np.ndarray:
        """Drawn actions ``[N, A, M]``, which are counted as visits of agents that act."""
        read = self.actor.read(self.actor.inputs(observations))
        actions, _ = self.actor.policy(read.rows, legal, noise)
        if self.bonus:
            self.visits.visit(self.index(read, actions), legal.any(-1))
        return actions.numpy()

    def index(self, read: Read, actions: torch.Tensor) -> torch.Tensor:
        """Entries int64 ``[..., A]`` of the counts."""
        codes = self.visits.signs(read.seen) if read.codes is None else read.codes
        return self.visits.index(codes, actions)

    @torch.no_grad()
    def targets(self, batch: Sequences, read: Read, noise: torch.Tensor) -> torch.Tensor:
        """Targets ``[B]`` of the first decisions of sequences of n decisions.

        Args:
            batch: The sequences.
            read: Of their positions, ``[n + 1, B, A, ...]``.
            noise: Standard normal draws ``[B, A, M]``.
        """
        args, legal = self.args, batch.positions.legal
        rewards = batch.rewards[..., self.team] * args.reward_scale
        if self.bonus:
            index = self.index(read.at(slice(-1)), batch.actions)
            rewards = rewards + self.bonus * self.visits.weight * self.visits.bonus(index, legal[:-1].any(-1))
        last = (batch.weights.cumprod(0).sum(0).long() - 1).clamp(min=0)  # decision after which the value is taken
        rows = torch.arange(len(last))
        after = read.at(last + 1, rows)
        actions, logs = self.actor.policy(after.rows, legal[last + 1, rows], noise)
        values = torch.zeros_like(rewards)
        values[last, rows] = soft_values(self.target(after.seen, actions), logs, self.temperature)
        return value_targets(rewards, values[None], batch, args.gamma, args.value_steps)[0, 0]

    def update(self, batch: Sequences, rate: float, rng: np.random.Generator) -> list[torch.Tensor | float]:
        """A gradient step of all networks; returns the losses that `Training.LOSSES` names."""
        with torch.no_grad():
            read = self.actor.read(self.actor.inputs(batch.positions.observations))
        y = self.targets(batch, read, draw(rng, *batch.actions.shape[1:]))
        first = read.at(0)
        loss = critic_loss(self.critic(first.seen, batch.actions[0]), y, batch.weights[0])
        self.step("critic", loss, rate)
        self.critic.requires_grad_(False)
        others = self.improve(first, batch, rate, rng)
        self.critic.requires_grad_(True)
        polyak_update(self.target, self.critic, self.args.tau)
        return [loss, *others]

    def improve(
        self, read: Read, batch: Sequences, rate: float, rng: np.random.Generator
    ) -> list[torch.Tensor | float]:
        """A gradient step of the policy and of the temperature; returns loss, temperature, and entropy of a number.

        Args:
            read: Of the first positions, ``[B, ...]``.
            batch: The sequences.
            rate: Learning rate.
            rng: Of the drawn actions.
        """
        legal, weights = batch.positions.legal[0], batch.weights[0]
        actions, logs = self.actor.policy(read.rows, legal, draw(rng, *legal.shape))
        loss = actor_loss(self.critic(read.seen, actions), logs, self.temperature, weights)
        self.step("policy", loss, rate)
        numbers = legal.sum((-1, -2)).float()
        targets = self.args.target_entropy * numbers
        self.step("temperature", temperature_loss(self.log_temperature[0], logs, targets, weights), rate)
        entropy = weighted_mean(-logs.detach().sum(-1) / numbers.clamp(min=1.0), weights)
        return [loss, self.temperature, entropy]

    def step(self, name: str, loss: torch.Tensor, rate: float) -> None:
        """A gradient step of one of the optimizers."""
        gradient_step(self.optimizers[name], loss, rate, self.args.max_gradient_norm)


class Training(LaneTraining):
    """One run: random decisions first, then drawn ones, and gradient steps on short sequences of the replay."""

    LOSSES = ("critic_loss", "actor_loss", "temperature", "entropy")
    REPLAY = StratifiedReplay
    LEARNS_NUMBERS = KEEPS_REPLAY = True
    args: Any
    replay: StratifiedReplay

    def play(self, learner: Learner) -> None:
        """One decision in all lanes, at random while the run warms up."""
        collector, position, paid = self.collector, self.collector.position, self.replay.paid
        if collector.steps < self.args.warmup_steps:
            actions = random_actions(collector)
        else:
            observed = {name: torch.from_numpy(rows) for name, rows in position.observations.items()}
            noise = draw(collector.rng, *position.legal.shape)
            actions = learner.act(observed, torch.from_numpy(position.legal), noise)
        decision = collector.play(actions)
        learner.visits.end_matches(paid[~decision.running])


def draw(rng: np.random.Generator, *shape: int) -> torch.Tensor:
    """Standard normal draws, float32."""
    return torch.from_numpy(rng.standard_normal(shape, np.float32))


def learning_team(args: LaneArgs) -> str:
    """Name of the team that learns: the only one of a game where none is given.

    Raises:
        ValueError: The game has two teams and none is given, or the agents make choices.
    """
    game, _ = registry.make_game(args.env_id, **keywords(args.options))
    if not args.team and len(game.teams) > 1:
        names = ", ".join(game.teams)
        raise ValueError(f"{game.name} has the teams {names}: say by --team which one learns, by --opponent who plays")
    team = args.team or next(iter(game.teams))
    if not Roster(game, [team], numbers=True).gives_numbers:
        raise ValueError(f"{game.name}: agents make choices, and this method learns real numbers: use mappo or qmix")
    return team


def learn(args: Any, method: str, training_of: Any, learner_of: Any, evaluation: Evaluation | None) -> Report:
    """The loop of MASAC and of methods made from it.

    Args:
        args: Arguments.
        method: Its name.
        training_of: `Training`, or a class made from it; called with arguments as in `LaneTraining`.
        learner_of: ``learner_of(training)`` -> a `Learner`.
        evaluation: What evaluations measure; the return if None.
    """
    args = dataclasses.replace(args, team=learning_team(args))
    with RunFolder(args, method) as folder:
        training = training_of(args, folder, evaluation, args.replay_size // args.lanes)
        training.replay.share = args.paid_share
        learner = learner_of(training)
        training.resume(**learner.learnt())
        while training.should_continue(learner):
            training.play(learner)
            if training.collector.steps < args.warmup_steps:
                continue
            if training.updates == 0:
                learner.standardise(training.replay)
            rate = linear_schedule(args.learning_rate, training.progress)
            while (training.updates + 1) * args.decisions_per_update <= training.collector.steps:
                batch = training.replay.sample_sequences(training.rng, args.batch_size, args.value_steps)
                training.count_update(*learner.update(batch, rate, training.rng))
        return training.report()


def train(args: Args, evaluation: Evaluation | None = None) -> Report:
    """Trains, or resumes; files and arguments as in `palaestra_baselines.fm3q.train`, errors as of `learning_team`."""

    def learner_of(training: Training) -> Learner:
        return Learner(training.args, training.roster, Actor(training.roster, training.args.hidden))

    return learn(args, METHOD, Training, learner_of, evaluation)


def make_player(arrays: Mapping[str, np.ndarray], game: Game, team: str, explore: bool = False) -> ActorPlayer:
    """The player of a team by weights.

    Args:
        arrays: As `Actor.arrays` gives them.
        game: The rules.
        team: Name of the team.
        explore: Whether actions are drawn; else they are the means.

    Raises:
        ValueError: The weights were made for another game.
    """
    roster = Roster(game, [team], numbers=True)
    hidden = hidden_of(arrays)
    actor = fitting_network(lambda: Actor(roster, hidden), arrays)
    load_arrays(actor, arrays)
    return ActorPlayer(actor, roster, team, explore)


def load_policy(path: Path, game: Game, team: str, explore: bool = False) -> ActorPlayer:
    """The player of a policy file; arguments as of `make_player`.

    Raises:
        FileError: The file is no saved policy, or one of another game.
    """
    with policy_for(path, game, team) as arrays:
        return make_player(arrays, game, team, explore)


def main(argv: Sequence[str] | None = None) -> None:
    """Trains."""
    learning_command(Args, METHOD, __doc__ or "", argv, train)


if __name__ == "__main__":
    main()
