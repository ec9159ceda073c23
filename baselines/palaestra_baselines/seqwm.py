"""SeqWM: agents plan one after another, each in a world model of its own that sees what earlier agents plan.

Zhao et al., "Empowering Multi-Robot Cooperation via Sequential World Models" (arXiv 2509.13095). Each agent has an
encoder, dynamics, a reward model and an actor (`palaestra_baselines.common.world_models`). In the mode ``seq`` agent k
sees the planned actions of agents 1 to k; a planner (`palaestra_baselines.common.planning`) chooses the actions of all.
Other modes differ in masks: an order drawn for each decision (``random``), everybody's actions (``centralised``),
nobody's (``decentralised``, where critic and elites are each agent's own, too).

A rollout z_0 = encoder(o_0), z_{t+1} by the recorded actions, of H decisions gives, with rho = 0.5, sums over agents
and means over rows (decisions after the end of a match count as 0),

    consistency: 20 / H sum_t rho^t mean (z_{t+1} - sg(encoder(o_{t+1})))^2
    reward:     0.1 / H sum_t rho^t CE(r(z_t, a_t), two-hot r_t)
    value:      0.1 / H sum_t rho^t CE(Q(z_t, a_t), two-hot y_t), mean of both critics, y by `value_targets` from
                V(o) = min Q'(e, actor(e)), e = encoder(o)
    actor:      mean_t rho^t (coefficient * log pi(a | sg z_t) - Q(sg z_t, a) / range of values)

A match that a rule ended is worth 0, one that the horizon truncated the value of its last position. Q' is the critic of
the target networks, sg stops gradients; the actor's loss moves actors alone. The target networks play evaluations.

Ours: actors see the actions of earlier agents; ``--actor-sees own`` hides them, as in the paper's code, and ``python
benchmarks/learn.py seqwm_copy`` compares. Targets have the rewards of ``--value-steps`` decisions, inputs are scaled by
the first, random decisions, actors learn all at once; sizes, learning rate, entropy and the range of the actors'
deviations differ::

    palaestra train seqwm --env-id palaestra/QuadPushBox-v0
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import nn

from palaestra import registry
from palaestra.game import Game
from palaestra_baselines.common.agents import Roster, keywords
from palaestra_baselines.common.planning import PlanningPlayer, decide, design_of, draws_size, make_player
from palaestra_baselines.common.policy_file import policy_for, read_policy
from palaestra_baselines.common.rollout import Sequences, random_actions, value_targets
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
)
from palaestra_baselines.common.world_models import SIZES, Design, Masks, Mode, Sight, WorldModel

METHOD = "seqwm"
RHO, CONSISTENCY, REWARD, VALUE = 0.5, 20.0, 0.1, 0.1
"""Weight of a decision over that of the one before; weights of the losses of the model."""
ENCODER_SHARE, RANGE_SHARE = 0.3, 0.01
"""Learning rate of the encoders, as a share of that of all others; how far the range of values moves in a step."""


@dataclass
class Args(LaneArgs):
    """Arguments of SeqWM, beside those of `LaneArgs`; what is 0 or empty is as ``--size`` says.

    Attributes:
        mode: Whose planned actions an agent sees.
        actor_sees: Whether actors see the actions of earlier agents, or their own latent alone.
        plan: Whether actions are planned; else the actor plays alone.
        size: ``small``, or ``published``, which needs a GPU or much time.
        latent: Numbers of a latent, a multiple of 8.
        encoder: Widths of the hidden layers of the encoders.
        models: Width of the hidden layers of dynamics and rewards.
        bins: Categories of rewards and values.
        largest: Symlog of the largest value that they represent.
        horizon: Decisions of a plan, and of the sequences of a gradient step.
        samples: Plans that an iteration of the planner compares.
        actor_samples: How many of them come from the actor.
        elites: Best plans, from which the next ones are drawn.
        iterations: Of the planner.
        deviation: Standard deviation of the first plans, whose numbers lie in [-1, 1].
        batch_size: Sequences of a gradient step.
        temperature: Of the weights of the elites, as a share of the running range of values.
        value_steps: n, decisions whose rewards a target of the value has.
        reward_scale: Rewards are multiplied by it before they are learnt.
        decisions_per_update: Decisions for each gradient step.
        warmup_steps: Decisions at random before learning starts.
        replay_size: Decisions that are kept.
        entropy: Coefficient of the entropy of the actors.
        tau: Coefficient of Polyak averaging of the target networks, at each gradient step.
    """

    MAY_BE_ZERO: ClassVar[tuple[str, ...]] = (*LaneArgs.MAY_BE_ZERO, "warmup_steps", "entropy")
    SHARES: ClassVar[tuple[str, ...]] = (*LaneArgs.SHARES, "tau")

    env_id: str = "palaestra/QuadPushBox-v0"
    opponent: str = ""
    total_steps: int = 50_000
    lanes: int = 32
    learning_rate: tuple[float, float] = (2e-3, 2e-4)
    gamma: float = 0.96
    hidden: tuple[int, ...] = ()
    max_gradient_norm: float = 20.0
    matches: int = 64
    evaluations: int = 10
    mode: Mode = "seq"
    actor_sees: Sight = "earlier"
    plan: bool = True
    size: Literal["small", "published"] = "small"
    latent: int = 0
    encoder: tuple[int, ...] = ()
    models: int = 0
    bins: int = 0
    largest: float = 0.0
    horizon: int = 0
    samples: int = 0
    actor_samples: int = 0
    elites: int = 0
    iterations: int = 0
    deviation: float = 0.0
    batch_size: int = 0
    temperature: float = 0.1
    value_steps: int = 3
    reward_scale: float = 10.0
    decisions_per_update: int = 4
    warmup_steps: int = 2_000
    replay_size: int = 200_000
    entropy: float = 0.01
    tau: float = 0.01
    directory: Path = Path("runs/seqwm/{env_id}")

    def __post_init__(self) -> None:
        """Fills in what the size says."""
        for name, value in SIZES[self.size].items():
            if not getattr(self, name):
                setattr(self, name, value)

    @property
    def design(self) -> Design:
        """What networks and planner are made of."""
        return Design(**{f.name: getattr(self, f.name) for f in dataclasses.fields(Design)})

    def check(self) -> None:
        """Looks at the arguments.

        Raises:
            ValueError: One that cannot be; names the option.
        """
        super().check()
        self.design.check()
        least = self.lanes * (self.horizon + self.value_steps)
        if self.warmup_steps < least:
            raise ValueError(
                f"--warmup-steps {self.warmup_steps} are too few for sequences of --horizon {self.horizon} and "
                f"--value-steps {self.value_steps} in {self.lanes} lanes: at least {least}"
            )
        if self.replay_size < self.warmup_steps:
            raise ValueError(f"--replay-size {self.replay_size} is less than --warmup-steps {self.warmup_steps}")


def learning_team(args: Args) -> tuple[str, Roster]:
    """Name and agents of the team that learns: the only one of a game where none is given.

    Raises:
        ValueError: The game has two teams and none is given, or the agents make choices.
    """
    game, _ = registry.make_game(args.env_id, **keywords(args.options))
    if not args.team and len(game.teams) > 1:
        names = ", ".join(game.teams)
        raise ValueError(f"{game.name} has the teams {names}: say by --team which one learns, by --opponent who plays")
    team = args.team or next(iter(game.teams))
    roster = Roster(game, [team], numbers=True)
    if not roster.gives_numbers:
        raise ValueError(f"{game.name}: agents make choices, and SeqWM plans real numbers: train by mappo or qmix")
    return team, roster


# ---------------------------------------------------------------------------------------------------------- the losses


def model_loss(
    model: WorldModel,
    target: nn.Module,
    batch: Sequences,
    rewards: torch.Tensor,
    masks: Masks,
    noise: torch.Tensor,
) -> tuple[torch.Tensor, dict[str, torch.Tensor], torch.Tensor]:
    """Loss of encoders, transitions and critics; see the module.

    Args:
        model: The world models.
        target: Target networks of the critics.
        batch: L decisions of B sequences.
        rewards: ``[L, B]``, as they are learnt.
        masks: Who sees whom in each sequence.
        noise: ``[A, L * B, M]``, standard normal draws of the actors.

    Returns:
        The loss, its parts, and the latents ``[A, L + 1, B, latent]`` of the rollout without gradient.
    """
    length, (total, count) = model.design.horizon, rewards.shape
    observed = model.read(batch.positions.observations).unflatten(1, (total + 1, count))
    actions = batch.actions.permute(2, 0, 1, 3)[:, :length]
    with torch.no_grad():
        encoded = model.encode(observed[:, 1:].flatten(1, 2))
        following, _ = model.act(encoded, masks.tiled(total), noise)
        values = model.two_hot.decode(target(encoded, following)).amin(0).unflatten(1, (total, count))
        y = value_targets(rewards, values, batch, model.design.gamma, total - length + 1)
    rewards, encoded = rewards[:length], encoded.unflatten(1, (total, count))[:, :length]
    latents, logits = [model.encode(observed[:, 0])], []
    for t in range(length):
        following, reward = model.step(latents[-1], actions[:, t], masks)
        latents.append(following)
        logits.append(reward)
    rollout = torch.stack(latents, 1)
    consistency = ((rollout[:, 1:] - encoded) ** 2).mean(-1).sum(0)
    reward = model.two_hot.loss(torch.stack(logits, 1), rewards.expand(model.roster.agents, -1, -1)).sum(0)
    critics = model.critics(rollout[:, :-1].flatten(1, 2), actions.flatten(1, 2)).unflatten(2, (length, count))
    value = model.two_hot.loss(critics, y).mean(0).sum(0)
    weights = decay(batch, length)[:-1]
    losses = {
        name: (weights * each).mean(1).sum() / length
        for name, each in (("consistency", consistency), ("reward", reward), ("value", value))
    }
    loss = CONSISTENCY * losses["consistency"] + REWARD * losses["reward"] + VALUE * losses["value"]
    return loss, losses, rollout.detach()


def actor_loss(
    model: WorldModel,
    latents: torch.Tensor,
    weights: torch.Tensor,
    masks: Masks,
    noise: torch.Tensor,
    entropy: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Loss of the actors, see the module, and the values ``[G, R]`` of their actions.

    Args:
        model: The world models; critics should not require gradients.
        latents: ``[A, R, latent]`` without gradient.
        weights: ``[R]``.
        masks: Who sees whom in each row.
        noise: ``[A, R, M]``, standard normal draws.
        entropy: Coefficient of the entropy.
    """
    actions, logs = model.act(latents, masks, noise)
    values = model.values(latents, actions).mean(0)
    assert logs is not None
    losses = entropy * logs.sum(0) - values.sum(0) / model.value_range
    return (weights * losses).mean(), values.detach()


def decay(batch: Sequences, length: int) -> torch.Tensor:
    """rho^t of the first positions of sequences, ``[L + 1, B]``; 0 where the match before has ended."""
    in_match = batch.weights[:length].cumprod(0)
    in_match = torch.cat([in_match, in_match[-1:]])
    return in_match * RHO ** torch.arange(len(in_match))[:, None]


# ------------------------------------------------------------------------------------------------------------ the loop


class Learner:
    """Networks and optimizers of a run.

    Attributes:
        model: The world models.
        target: Target networks of all: its critics give targets, and it is what is evaluated and saved.
        optimizers: Of the model, and of the actors.
    """

    def __init__(self, args: Args, roster: Roster) -> None:
        """Random weights from torch's generator."""
        self.args, self.model = args, WorldModel(roster, args.design)
        self.target = copy.deepcopy(self.model).requires_grad_(False)
        encoders = {"params": self.model.parameters_of("encoder"), "share": ENCODER_SHARE}
        others = {"params": self.model.parameters_of("transitions", "critics")}
        actors = self.model.parameters_of("actor")
        self.optimizers = torch.optim.Adam([encoders, others], fused=True), torch.optim.Adam(actors, fused=True)

    def arrays(self) -> dict[str, np.ndarray]:
        """Weights by name for a player."""
        return self.target.arrays()

    def notes(self) -> dict[str, Any]:
        """Metadata of a policy file."""
        return {"design": dataclasses.asdict(self.args.design)}

    def player(self, game: Game, team: str) -> PlanningPlayer:
        """The player of a team by copies of the current weights, without exploration."""
        return make_player(self.arrays(), self.args.design, game, team)

    def masks(self, rng: np.random.Generator, rows: int) -> Masks:
        """Who sees whom: the same in all rows, or by an order that is drawn for each."""
        agents = self.model.roster.agents
        if self.args.mode != "random":
            return self.model.masks(torch.arange(agents)[:, None])
        return self.model.masks(torch.from_numpy(rng.random((agents, rows)).argsort(0).argsort(0)))

    def update(self, batch: Sequences, team: int, rate: float, rng: np.random.Generator) -> list[torch.Tensor]:
        """A gradient step of all networks; returns losses: consistency, reward, value, actor."""
        args, model = self.args, self.model
        length, (total, count) = args.horizon, batch.weights.shape
        agents, _, numbers = model.counts.shape
        noise = torch.from_numpy(rng.standard_normal((agents, (total + length + 1) * count, numbers), np.float32))
        first, second, masks = noise[:, : total * count], noise[:, total * count :], self.masks(rng, count)
        rewards = batch.rewards[..., team] * args.reward_scale
        loss, parts, latents = model_loss(model, self.target.critics, batch, rewards, masks, first)
        gradient_step(self.optimizers[0], loss, rate, args.max_gradient_norm)
        model.critics.requires_grad_(False)
        rows, weights = latents.flatten(1, 2), decay(batch, length).flatten()
        loss, values = actor_loss(model, rows, weights, masks.tiled(length + 1), second, args.entropy)
        gradient_step(self.optimizers[1], loss, rate, args.max_gradient_norm)
        model.critics.requires_grad_(True)
        model.track_range(values[:, weights > 0.0], RANGE_SHARE)
        polyak_update(self.target, model, args.tau)
        self.target.value_range.copy_(model.value_range)
        return [*parts.values(), loss]


class PlanTraining(LaneTraining):
    """One run of SeqWM: random decisions first, then planned ones, and gradient steps on sequences of the replay."""

    LOSSES = ("consistency", "reward_loss", "value_loss", "actor_loss")
    LEARNS_NUMBERS = KEEPS_REPLAY = True
    args: Args

    def play(self, model: WorldModel) -> None:
        """One decision in all lanes: at random while the run warms up, then planned, or drawn by the actor."""
        collector, position = self.collector, self.collector.position
        if collector.steps < self.args.warmup_steps:
            collector.play(random_actions(collector), np.zeros_like(position.memory))
            return
        size = draws_size(model.design, self.roster.agents, self.roster.actions)
        normals = torch.from_numpy(collector.rng.standard_normal((self.args.lanes, size), np.float32))
        observed = {name: torch.from_numpy(rows) for name, rows in position.observations.items()}
        plan = decide(model, observed, torch.from_numpy(position.memory), normals, explore=True)
        collector.play(np.where(position.legal, plan.actions.numpy(), np.float32(0.0)), plan.following.numpy())


def train(args: Args, evaluation: Evaluation | None = None) -> Report:
    """Trains, or resumes; files and arguments as in `palaestra_baselines.fm3q.train`, errors as of `learning_team`."""
    team, roster = learning_team(args)
    args = dataclasses.replace(args, team=team)
    with RunFolder(args, METHOD) as folder:
        training = PlanTraining(
            args, folder, evaluation, args.replay_size // args.lanes, memory_size=args.horizon * roster.actions
        )
        learner, number = Learner(args, training.roster), int(training.roster.team_of[0])
        model, target, optimizers = learner.model, learner.target, learner.optimizers
        training.resume(model=model, target=target, model_optimizer=optimizers[0], actor_optimizer=optimizers[1])
        while training.should_continue(learner):
            training.play(model)
            if training.collector.steps < args.warmup_steps:
                continue
            if training.updates == 0:
                for network in (model, target):
                    network.standardise(training.replay.observed())
            rate = linear_schedule(args.learning_rate, training.progress)
            while (training.updates + 1) * args.decisions_per_update <= training.collector.steps:
                batch = training.replay.sample_sequences(
                    training.rng, args.batch_size, args.horizon + args.value_steps - 1
                )
                training.count_update(*learner.update(batch, number, rate, training.rng))
        return training.report()


def load_policy(path: Path, game: Game, team: str, plan: bool | None = None) -> PlanningPlayer:
    """The player of a policy file.

    Args:
        path: The file.
        game: The rules.
        team: Name of the team.
        plan: Whether it plans; False plays the actor alone, None as it was trained.

    Raises:
        FileError: The file is no saved policy, or one of another game.
    """
    with policy_for(path, game, team) as arrays:
        design = design_of(read_policy(path)[1].get("design"))
        return make_player(arrays, design if plan is None else dataclasses.replace(design, plan=plan), game, team)


def main(argv: Sequence[str] | None = None) -> None:
    """Trains."""
    learning_command(Args, METHOD, __doc__ or "", argv, train)


if __name__ == "__main__":
    main()
