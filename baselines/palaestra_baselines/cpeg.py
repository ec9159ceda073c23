"""CPEG: a multimodal policy of one step, a consensus of the team, and a bonus that the consensus guides.

Fu et al., "CPEG: Leveraging Consistency Policy with Consensus Guidance for Multi-agent Exploration" (arXiv 2411.03603).
The paper's abstract names the parts; its code was not found: formulas and numbers here are ours. CPEG
is MASAC (`palaestra_baselines.masac`) with three parts changed; with ``--policy gaussian --consensus False
--no-guidance`` and equal learning rates it is MASAC, decision for decision.

Consistency policy (Song et al., "Consistency Models", arXiv 2303.01469), with k_1 = eps < .. < k_N levels of noise, s =
0.5, z and z' standard normal, f' the target network, o what the agent sees, c its code, and a an action of the replay::

    f(x, k) = s^2 / ((k - eps)^2 + s^2) x + s (k - eps) / sqrt(s^2 + k^2) F(x, k, o, c)
    loss = mean sum (f(a + k_{n+1} z, k_{n+1}) - f'(a + k_n z, k_n))^2 - eta min_j Q_j(o, f(k_N z', k_N)) / mean abs Q

f(x, eps) = x, so that f learns to give actions of the replay, near those of great value. An action is f(k_N z', k_N),
clipped to [-1, 1]. It has no density: there is no temperature, and exploration is the noise of the policy.

Consensus: latents e_i of what agents see are replaced by the nearest entries q_i of two codebooks (van den Oord et al.,
arXiv 1711.00937). A decoder d predicts the global state from the entries; e is the mean latent of the team, sg stops
gradients, and the gradient of d passes straight from q_i to e_i::

    loss = mean (d(q_i) - state)^2 + 0.25 mean (e_i - sg q_i)^2 + agreement * mean (e_i - sg e)^2

Codebooks are running means of their latents; an entry that 100 batches did not use starts again from a latent. Codes
come from own observations, in play, too. ``--consensus state`` makes one code from what all agents see together, which
play would have to communicate: an upper line. Guidance: the bonus of MASAC, by codes::

    palaestra train cpeg --env-id palaestra/SparseSpread-2-v0
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import nn

from palaestra.game import Game
from palaestra_baselines import masac
from palaestra_baselines.common.agents import Roster
from palaestra_baselines.common.flat_networks import fitting_network, load_arrays, scale_inputs
from palaestra_baselines.common.number_networks import ActorPlayer, GroupNetworks, Inputs, hidden_of, perceptron
from palaestra_baselines.common.policy_file import policy_for, read_policy
from palaestra_baselines.common.rollout import Replay, Sequences
from palaestra_baselines.common.training import Evaluation, Report, learning_command, polyak_update, weighted_mean
from palaestra_baselines.masac import GaussianPolicy, Read, draw

METHOD = "cpeg"
LEVELS, LEAST_NOISE, MOST_NOISE, SPREAD = 12, 0.01, 2.0, 0.5
"""Noise levels, the least (eps) and the greatest, and s: the deviation of actions that f assumes."""
PARTS, ENTRIES, WIDTH = 2, 16, 8
"""Codebooks, their entries, and numbers of an entry."""
COMMITMENT, KEPT, UNUSED = 0.25, 0.99, 100
"""Weight of the commitment; share of the old running means; batches after which an unused entry starts again."""
LEAST_VALUE = 0.01
"""Least mean of abs Q by which values are divided, where nothing has been paid yet."""
Kind = Literal["consistency", "gaussian"]
Consents = Literal[True, False, "state"]


@dataclass
class Args(masac.Args):
    """Arguments of CPEG, beside those of MASAC.

    Attributes:
        policy: ``consistency``, or the normal distributions of MASAC.
        consensus: Whether agents have a code of what they see; ``state`` makes one of what all see together.
        guidance: Whether there is a bonus.
        eta: Weight of the value in the loss of a consistency policy.
        agreement: Weight by which latents are drawn to the mean of the team.
        encoder_hidden: Widths of encoder and decoder of the codes.
    """

    MAY_BE_ZERO: ClassVar[tuple[str, ...]] = (*masac.Args.MAY_BE_ZERO, "eta", "agreement")

    policy: Kind = "consistency"
    consensus: Consents = True
    guidance: bool = True
    learning_rate: tuple[float, float] = (3e-3, 3e-4)
    bonus: float = 0.05
    eta: float = 1.0
    agreement: float = 5.0
    encoder_hidden: tuple[int, ...] = (64,)
    directory: Path = Path("runs/cpeg/{env_id}")


# ---------------------------------------------------------------------------------------------- the consistency policy


class ConsistencyPolicy(nn.Module):
    """Gives actions by one step from noise, see the module.

    Attributes:
        levels: Noise levels k ``[LEVELS]``, rising.
    """

    levels: torch.Tensor

    def __init__(self, roster: Roster, inputs: int, hidden: tuple[int, ...]) -> None:
        """Random weights from torch's generator."""
        super().__init__()
        numbers = roster.actions
        self.network = GroupNetworks(roster, inputs + numbers + LEVELS, hidden, numbers)
        levels = torch.logspace(math.log10(LEAST_NOISE), math.log10(MOST_NOISE), LEVELS)
        levels[0] = LEAST_NOISE
        self.register_buffer("levels", levels, persistent=False)

    def denoise(self, rows: torch.Tensor, noisy: torch.Tensor, number: torch.Tensor) -> torch.Tensor:
        """Values of f ``[..., A, M]``, see the module.

        Args:
            rows: Inputs ``[..., A, I]``.
            noisy: x ``[..., A, M]``.
            number: int64 ``[..., A]``, of the noise level.
        """
        level = self.levels[number][..., None]
        above = level - LEAST_NOISE
        total = (SPREAD**2 + level**2).sqrt()
        one_hot = nn.functional.one_hot(number, LEVELS).to(noisy.dtype)
        outputs = self.network(torch.cat([rows, noisy / total, one_hot], -1))
        return SPREAD**2 / (above**2 + SPREAD**2) * noisy + SPREAD * above / total * outputs

    def forward(self, rows: torch.Tensor, legal: torch.Tensor, noise: torch.Tensor | None) -> tuple[torch.Tensor, None]:
        """Actions ``[..., A, M]`` in [-1, 1], and no densities.

        Args:
            rows: Inputs ``[..., A, I]``.
            legal: bool ``[..., A, M]``: numbers that count.
            noise: Standard normal draws ``[..., A, M]``; None takes 0.
        """
        x = torch.zeros(legal.shape) if noise is None else MOST_NOISE * noise
        number = torch.full(legal.shape[:-1], LEVELS - 1)
        return self.denoise(rows, x, number).clamp(-1.0, 1.0) * legal, None


def consistency_loss(
    policy: ConsistencyPolicy,
    target: ConsistencyPolicy,
    rows: torch.Tensor,
    actions: torch.Tensor,
    legal: torch.Tensor,
    noise: torch.Tensor,
    number: torch.Tensor,
) -> torch.Tensor:
    """Squared distances ``[..., A]`` of f at level n + 1 and f' at level n, from the same noise; see the module.

    Args:
        policy: f.
        target: f', without a gradient.
        rows: Inputs ``[..., A, I]``.
        actions: a ``[..., A, M]``.
        legal: bool ``[..., A, M]``: numbers that count.
        noise: z ``[..., A, M]``.
        number: n, int64 ``[..., A]``, from 0 to LEVELS - 2.
    """
    with torch.no_grad():
        wanted = target.denoise(rows, actions + target.levels[number][..., None] * noise, number)
    given = policy.denoise(rows, actions + policy.levels[number + 1][..., None] * noise, number + 1)
    return ((given - wanted) ** 2 * legal).sum(-1)


def value_loss(values: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """-mean min_j Q_j / mean abs Q of values ``[2, B]`` of drawn actions."""
    lesser = values.amin(0)
    scale = weighted_mean(lesser.detach().abs(), weights).clamp(min=LEAST_VALUE)
    return -weighted_mean(lesser, weights) / scale


# ------------------------------------------------------------------------------------------------------- the consensus


class Consensus(nn.Module):
    """Codes of what agents see, see the module.

    Attributes:
        codebook: ``[PARTS, ENTRIES, WIDTH]``.
        uses: Running number of latents of each entry in a batch, ``[PARTS, ENTRIES]``.
        unused: Batches since an entry was last used, float32 ``[PARTS, ENTRIES]``.
    """

    codebook: torch.Tensor
    uses: torch.Tensor
    unused: torch.Tensor

    def __init__(self, roster: Roster, inputs: int, hidden: tuple[int, ...], joint: bool) -> None:
        """Random weights from torch's generator.

        Args:
            roster: The agents.
            inputs: I, length of a row of inputs.
            hidden: Widths of the encoder.
            joint: Whether there is one code, of what all agents see together.
        """
        super().__init__()
        self.joint, outputs = joint, PARTS * WIDTH
        self.encoder: nn.Module = (
            perceptron(roster.agents * inputs, hidden, outputs)
            if joint
            else GroupNetworks(roster, inputs, hidden, outputs)
        )
        self.register_buffer("codebook", torch.randn(PARTS, ENTRIES, WIDTH))
        self.register_buffer("uses", torch.zeros(PARTS, ENTRIES))
        self.register_buffer("unused", torch.zeros(PARTS, ENTRIES))

    def encode(self, seen: torch.Tensor) -> torch.Tensor:
        """Latents e ``[..., A, PARTS, WIDTH]`` of inputs ``[..., A, I]``."""
        if self.joint:
            latents = self.encoder(seen.flatten(-2))[..., None, :].expand(*seen.shape[:-1], -1)
        else:
            latents = self.encoder(seen)
        return latents.unflatten(-1, (PARTS, WIDTH))

    def quantise(self, latents: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Numbers int64 ``[..., PARTS]`` of the nearest entries, and these, of latents ``[..., PARTS, WIDTH]``."""
        rows = latents.detach().reshape(-1, PARTS, WIDTH).transpose(0, 1)
        scores = 2.0 * rows @ self.codebook.transpose(1, 2) - (self.codebook**2).sum(-1)[:, None]
        number = scores.argmax(-1)
        entries = self.codebook.gather(1, number[..., None].expand(-1, -1, WIDTH))
        shape = latents.shape[:-2]
        return number.T.reshape(*shape, PARTS), entries.transpose(0, 1).reshape(*shape, PARTS, WIDTH)

    def update_codebook(self, latents: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
        """Moves entries towards the means of their latents ``[R, PARTS, WIDTH]``, and starts unused ones again.

        Args:
            latents: Of agents in a match.
            rng: Says from which latents entries start.

        Returns:
            Perplexity of the entries' use in this batch, the mean over codebooks: ENTRIES if all are used alike.
        """
        if not self.uses.any():
            self._start(torch.ones_like(self.uses, dtype=torch.bool), latents, rng)
        number, _ = self.quantise(latents)
        one_hot = nn.functional.one_hot(number.T, ENTRIES).float()  # [PARTS, R, ENTRIES]
        uses, sums = one_hot.sum(1), one_hot.transpose(1, 2) @ latents.transpose(0, 1)
        before = KEPT * self.uses
        self.uses.copy_(before + (1.0 - KEPT) * uses)
        self.codebook.mul_(before[..., None]).add_((1.0 - KEPT) * sums).div_(self.uses.clamp(min=1e-6)[..., None])
        self.unused.add_(1.0).masked_fill_(uses > 0.0, 0.0)
        self._start(self.unused >= UNUSED, latents, rng)
        shares = uses / uses.sum(-1, keepdim=True)
        return (-(shares * shares.clamp(min=1e-9).log()).sum(-1)).exp().mean()

    def _start(self, which: torch.Tensor, latents: torch.Tensor, rng: np.random.Generator) -> None:
        parts, entries = torch.nonzero(which, as_tuple=True)
        rows = torch.from_numpy(rng.integers(len(latents), size=len(parts)))
        self.codebook[parts, entries] = latents[rows, parts]
        self.uses[parts, entries], self.unused[parts, entries] = 1.0, 0.0


def consensus_loss(
    consensus: Consensus,
    decoder: nn.Module,
    latents: torch.Tensor,
    states: torch.Tensor,
    alive: torch.Tensor,
    agreement: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The loss of the consensus, see the module, and the share of pairs of teammates that have the same code.

    Args:
        consensus: Gives the codes.
        decoder: d.
        latents: ``[B, A, PARTS, WIDTH]``.
        states: Scaled, ``[B, S]``.
        alive: float32 ``[B, A]``: 1 for agents in a match, 0 for others, which do not count.
        agreement: Weight of the last part.
    """
    number, entries = consensus.quantise(latents)
    passed = latents + (entries - latents).detach()
    predicted = decoder(passed.flatten(2))
    mean = (latents * alive[..., None, None]).sum(1) / alive.sum(1).clamp(min=1.0)[:, None, None]
    each = (
        ((predicted - states[:, None]) ** 2).mean(-1)
        + COMMITMENT * ((latents - entries) ** 2).mean((-1, -2))
        + agreement * ((latents - mean.detach()[:, None]) ** 2).mean((-1, -2))
    )
    pairs = torch.triu(alive[:, :, None] * alive[:, None], 1)
    same = (number[:, :, None] == number[:, None]).all(-1)
    return weighted_mean(each, alive), weighted_mean(same.float(), pairs)


# ------------------------------------------------------------------------------------------------------------ the loop


class Actor(masac.Actor):
    """What plays: scaled inputs, the policy, and the consensus if there is one."""

    def __init__(
        self,
        roster: Roster,
        hidden: tuple[int, ...],
        policy: Kind,
        consensus: Consents,
        encoder_hidden: tuple[int, ...],
    ) -> None:
        """Random weights from torch's generator."""
        nn.Module.__init__(self)
        self.inputs = Inputs(roster)
        size = self.inputs.size + (PARTS * WIDTH if consensus else 0)
        kind = ConsistencyPolicy if policy == "consistency" else GaussianPolicy
        self.policy: nn.Module = kind(roster, size, hidden)
        self.consensus = None
        if consensus:
            self.consensus = Consensus(roster, self.inputs.size, encoder_hidden, consensus == "state")

    def read(self, seen: torch.Tensor) -> Read:
        """What networks read of inputs ``[..., A, I]``: with codes, without their gradient."""
        if self.consensus is None:
            return Read(seen, seen)
        number, entries = self.consensus.quantise(self.consensus.encode(seen))
        codes = number[..., 0]
        for part in range(1, PARTS):
            codes = codes * ENTRIES + number[..., part]
        return Read(seen, torch.cat([seen, entries.flatten(-2)], -1), codes)


class Learner(masac.Learner):
    """Networks and optimizers of a run.

    Attributes:
        policy_target: Target network of a consistency policy.
        decoder: Predicts the global state from codes, where there are any.
    """

    def __init__(self, args: Args, roster: Roster, state_size: int) -> None:
        """Random weights from torch's generator; ``state_size`` is the length of the global state."""
        design = (args.hidden, args.policy, args.consensus, args.encoder_hidden)
        super().__init__(args, roster, Actor(roster, *design))
        self.bonus = args.bonus if args.guidance else 0.0
        self.policy_target = copy.deepcopy(self.actor.policy).requires_grad_(False)
        if args.consensus:
            self.decoder = Decoder(state_size, args.encoder_hidden)
            learning = [*self.actor.consensus.parameters(), *self.decoder.parameters()]
            self.optimizers["consensus"] = torch.optim.Adam(learning, fused=True)

    def learnt(self) -> dict[str, Any]:
        """All modules and optimizers by name, for checkpoints."""
        more = {"decoder": self.decoder} if self.args.consensus else {}
        return {**super().learnt(), "policy_target": self.policy_target, **more}

    def notes(self) -> dict[str, Any]:
        """Metadata of a policy file."""
        return {"design": {"policy": self.args.policy, "consensus": self.args.consensus}}

    def player(self, game: Game, team: str) -> ActorPlayer:
        """The player of a team by copies of the current weights."""
        return make_player(self.arrays(), self.args.policy, self.args.consensus, game, team)

    def standardise(self, replay: Replay) -> None:
        """Scales inputs by what is in the replay."""
        super().standardise(replay)
        if self.args.consensus:
            states = replay.arrays["state"][: replay.filled]
            scale_inputs(self.decoder, states.reshape(-1, states.shape[-1]), None)

    def update(self, batch: Sequences, rate: float, rng: np.random.Generator) -> list[torch.Tensor | float]:
        """A gradient step of all networks; returns the losses that `Training.LOSSES` names."""
        losses = super().update(batch, rate, rng)
        return [*losses, *(self.consent(batch, rate, rng) if self.args.consensus else (0.0, 0.0, 0.0))]

    def improve(
        self, read: Read, batch: Sequences, rate: float, rng: np.random.Generator
    ) -> list[torch.Tensor | float]:
        """A gradient step of the policy; arguments and results as of MASAC, 0 where there is no density."""
        if self.args.policy == "gaussian":
            return super().improve(read, batch, rate, rng)
        legal, policy = batch.positions.legal[0], self.actor.policy
        weights, acts = batch.weights[0], legal.any(-1) * batch.weights[0][:, None]
        number = torch.from_numpy(rng.integers(LEVELS - 1, size=legal.shape[:-1]))
        distances = consistency_loss(
            policy, self.policy_target, read.rows, batch.actions[0], legal, draw(rng, *legal.shape), number
        )
        actions, _ = policy(read.rows, legal, draw(rng, *legal.shape))
        loss = weighted_mean(distances, acts) + self.args.eta * value_loss(self.critic(read.seen, actions), weights)
        self.step("policy", loss, rate)
        polyak_update(self.policy_target, policy, self.args.tau)
        return [loss, 0.0, 0.0]

    def consent(self, batch: Sequences, rate: float, rng: np.random.Generator) -> list[torch.Tensor | float]:
        """A gradient step of the consensus; returns loss, share of teammates that agree, and perplexity."""
        consensus, actor = self.actor.consensus, self.actor
        with torch.no_grad():
            seen = actor.inputs({role: rows[0] for role, rows in batch.positions.observations.items()})
        alive = batch.positions.alive[0] * batch.weights[0][:, None]
        states = self.decoder.scaled(batch.positions.state[0])
        latents = consensus.encode(seen)
        loss, same = consensus_loss(consensus, self.decoder, latents, states, alive, self.args.agreement)
        self.step("consensus", loss, rate)
        with torch.no_grad():
            perplexity = consensus.update_codebook(latents.detach()[alive > 0.0], rng)
        return [loss, same, perplexity]


class Decoder(nn.Module):
    """Predicts the scaled global state from the entries of a code."""

    mean: torch.Tensor
    scale: torch.Tensor

    def __init__(self, state_size: int, hidden: tuple[int, ...]) -> None:
        """Random weights from torch's generator."""
        super().__init__()
        self.network = perceptron(PARTS * WIDTH, hidden, state_size)
        self.register_buffer("mean", torch.zeros(state_size))
        self.register_buffer("scale", torch.ones(state_size))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Scaled states ``[..., S]`` of entries ``[..., PARTS * WIDTH]``."""
        return self.network(rows)

    def scaled(self, states: torch.Tensor) -> torch.Tensor:
        """States ``[..., S]`` as they are predicted."""
        return (states - self.mean) * self.scale


class Training(masac.Training):
    """One run, as of MASAC."""

    LOSSES = (*masac.Training.LOSSES, "consensus_loss", "agreement", "perplexity")


def train(args: Args, evaluation: Evaluation | None = None) -> Report:
    """Trains, or resumes; files and arguments as in `palaestra_baselines.fm3q.train`, errors as of `learning_team`."""

    def learner_of(training: Training) -> Learner:
        state = training.collector.position.state
        return Learner(training.args, training.roster, 0 if state is None else state.shape[1])

    training_of = partial(Training, with_state=bool(args.consensus))
    return masac.learn(args, METHOD, training_of, learner_of, evaluation)


def make_player(
    arrays: Mapping[str, np.ndarray], policy: Kind, consensus: Consents, game: Game, team: str, explore: bool = True
) -> ActorPlayer:
    """The player of a team by weights.

    Args:
        arrays: As `Actor.arrays` gives them.
        policy: Kind of the policy.
        consensus: Of the policy.
        game: The rules.
        team: Name of the team.
        explore: Whether a consistency policy draws actions; else it takes the noise 0. Normal ones take their means.

    Raises:
        ValueError: The weights were made for another game.
    """
    roster, hidden = Roster(game, [team], numbers=True), hidden_of(arrays)
    prefix = "consensus.encoder." if consensus == "state" else "consensus.encoder.networks.0."
    encoder = hidden_of(arrays, prefix) if consensus else ()
    actor = fitting_network(lambda: Actor(roster, hidden, policy, consensus, encoder), arrays)
    load_arrays(actor, arrays)
    draws = explore and policy == "consistency"
    return ActorPlayer(actor, roster, team, draws)


def load_policy(path: Path, game: Game, team: str, explore: bool = True) -> ActorPlayer:
    """The player of a policy file; arguments as of `make_player`.

    Raises:
        FileError: The file is no saved policy, or one of another game.
    """
    with policy_for(path, game, team) as arrays:
        design: Any = read_policy(path)[1].get("design")
        kinds, consents = ("consistency", "gaussian"), (True, False, "state")
        if not isinstance(design, dict) or design.get("policy") not in kinds or design.get("consensus") not in consents:
            raise ValueError("the metadata name no policy and consensus of CPEG")
        return make_player(arrays, design["policy"], design["consensus"], game, team, explore)


def main(argv: Sequence[str] | None = None) -> None:
    """Trains."""
    learning_command(Args, METHOD, __doc__ or "", argv, train)


if __name__ == "__main__":
    main()
