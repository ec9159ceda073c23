"""SRFT: supervised and reinforcement fine-tuning of a language model in a single stage, weighted by its entropy.

Fu et al., "SRFT: A Single-Stage Method with Supervised and Reinforcement Fine-Tuning for Reasoning" (arXiv 2506.19767).
Of each question n answers are sampled, and one right answer is given, a demonstration. The loss has three parts; H is
the mean entropy of the policy at the tokens of a part, sg stops the gradient, rewards are 1 and -1::

    SFT            0.5 sg(exp(-H)) * mean over tokens of demonstrations of -log pi
    demonstrations mean over their tokens of -pi A: GRPO with the probability 1 for who wrote them, and no clip.
                   A compares a demonstration's reward with its group, the sampled answers and itself
    answers        mean over sampled tokens of  0.1 sg(exp(H)) (-log pi)  where the answer is right,
                   and log pi where it is wrong

So a policy that is sure of itself learns more from demonstrations, and one that is not learns more from its own right
answers. The released code has exp(+H) in the first weight, in contrast to the paper: ``--sft-entropy-sign +1``; and it
reshapes the probabilities of demonstrations to p / (p + 0.1), which we do not. ``--weights off`` sets both weights to
1, as the paper's ablation does. Ours: means are over tokens, of all answers together; a rollout is learnt from in one
pass, as the third part has no ratio.

Nothing bounds ``log pi`` of wrong answers from below, so it might spoil a policy that is hardly ever wrong; with
clipped gradients it did not in 8 of 8 runs, see the guide.

``--schedule sft`` learns from the demonstrations alone, ``sft_then_grpo`` from the demonstrations of the whole run
first and from as many rollouts afterwards: what SRFT is compared with, at equal demonstrations and rollouts::

    python -m palaestra_baselines.srft --base sums
    python -m palaestra_baselines.srft --base sums --schedule sft_then_grpo

``--model FOLDER`` trains a model of Hugging Face on the text that the environment gives as ``info["demonstration"]``,
or on the searches and the answer of ``info["path"]``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from palaestra_baselines import grpo
from palaestra_baselines.common.agents import keywords
from palaestra_baselines.common.lm.losses import (
    chosen,
    entropy,
    group_advantages,
    loss_mask,
    masked_mean,
    supervised_loss,
)
from palaestra_baselines.common.lm.rollouts import Rollout, demonstrate, make_batch
from palaestra_baselines.common.run_folder import RunFolder
from palaestra_baselines.common.training import Report, gradient_step

METHOD = "srft"
load_policy = grpo.load_policy
SFT_WEIGHT, RL_WEIGHT = 0.5, 0.1
"""Factors of the two weights."""


@dataclass
class Args(grpo.Args):
    """Arguments, beside those of `palaestra_baselines.grpo.Args`; those of GRPO's loss are for ``sft_then_grpo``.

    Attributes:
        schedule: ``single`` is SRFT; ``sft``, where each step counts as a rollout; or ``sft_then_grpo``.
        weights: Whether the weights depend on the entropy, or are 1.
        sft_entropy_sign: Sign of the entropy in the first weight: -1 is the paper's, +1 that of the released code.
    """

    env_id: str = "palaestra/MathText-LeftToRight-v0"
    base: str = "sums"
    reward: str = "exact_match"
    schedule: Literal["single", "sft", "sft_then_grpo"] = "single"
    weights: Literal["on", "off"] = "on"
    sft_entropy_sign: Literal["-1", "+1"] = "-1"
    passes: int = 1
    directory: Path = Path("runs/srft/{env_id}")

    def check(self) -> None:
        """Looks at the arguments.

        Raises:
            ValueError: One that does not fit; names the option.
        """
        super().check()
        if self.schedule != "single" and (self.weights, self.sft_entropy_sign) != ("on", "-1"):
            raise ValueError(
                f"--weights and --sft-entropy-sign are SRFT's: leave them out with --schedule {self.schedule}"
            )
        if self.schedule != "sft_then_grpo" and (self.kl or self.entropy):
            raise ValueError("--kl and --entropy are GRPO's: give --schedule sft_then_grpo, or leave them out")
        if self.schedule != "sft_then_grpo" and self.reward != "exact_match":
            raise ValueError("--reward is GRPO's: SRFT knows right and wrong answers; give --schedule sft_then_grpo")


@dataclass(frozen=True)
class Part:
    """Matches in a loss.

    Attributes:
        rollout: N matches.
        mask: Bool ``[N, T]``, the M tokens that count.
        log_probs: float32 ``[M, V]``, the policy's distributions at them, with gradients.
    """

    rollout: Rollout
    mask: torch.Tensor
    log_probs: torch.Tensor

    @property
    def chosen(self) -> torch.Tensor:
        """Logarithms of the probabilities of the tokens, ``[N, T]``."""
        return chosen(self.log_probs, self.rollout.ids, self.mask)


def demonstration_advantages(answers: Rollout, demonstrations: Rollout) -> torch.Tensor:
    """How much better each demonstration is than its group, the sampled answers and itself: float32 ``[groups]``.

    Args:
        answers: n matches of each question.
        demonstrations: One match of each.
    """
    groups = len(demonstrations.ids)
    union = torch.cat([answers.exact_match.view(groups, -1), demonstrations.exact_match[:, None]], 1)
    return group_advantages(2.0 * union.flatten() - 1.0, union.shape[1]).view(groups, -1)[:, -1]


def srft_loss(answers: Part, demonstrations: Part, args: Args) -> torch.Tensor:
    """The loss, see the beginning of this file."""
    sft_weight = rl_weight = torch.ones(())
    if args.weights == "on":
        sft_weight = SFT_WEIGHT * (float(args.sft_entropy_sign) * entropy(demonstrations.log_probs)).exp().detach()
        rl_weight = RL_WEIGHT * entropy(answers.log_probs).exp().detach()
    shown, own = demonstrations.chosen, answers.chosen
    advantages = demonstration_advantages(answers.rollout, demonstrations.rollout)[:, None]
    right = answers.rollout.exact_match[:, None]
    return (
        sft_weight * supervised_loss(shown, demonstrations.mask)
        - masked_mean(shown.exp() * advantages, demonstrations.mask)
        + masked_mean(((1.0 - right) - rl_weight * right) * own, answers.mask)
    )


class Run(grpo.Run):
    """One training.

    Attributes:
        taught: Steps of SFT before the first rollout, so far.
    """

    method = METHOD

    def __init__(self, args: Args, folder: RunFolder | None = None) -> None:
        """Starts lanes for demonstrations.

        Raises:
            ValueError: The environment has none as text.
        """
        super().__init__(args, folder)
        self.taught = 0
        self.shown, self.shown_tokens = (
            self._text_batch(args.groups)
            if args.model
            else make_batch(args.env_id, args.groups, **keywords(args.options))
        )
        if args.model:
            self.demonstrate(np.arange(args.groups, dtype=np.uint64))  # refuses what has none before it is played
        self.losses["entropy"] = 0.0

    def iterate(self) -> None:
        """Plays one match in each lane and learns from them and from demonstrations; or from these alone."""
        args = self.args
        matches = args.groups * args.group
        is_sft = args.schedule == "sft"
        if not is_sft and (args.schedule == "single" or self.taught * matches >= args.total_steps):
            super().iterate()
            return
        self.teach()
        self.steps += matches * is_sft

    def teach(self) -> None:
        """Learns from demonstrations alone, one of each of as many questions as a rollout has."""
        args = self.args
        demonstrations = self.demonstrate(self.rng.integers(2**62, size=args.groups, dtype=np.uint64))
        for _ in range(args.passes):
            part = self.part(demonstrations)
            gradient_step(
                self.optimizer, supervised_loss(part.chosen, part.mask), args.learning_rate, args.max_gradient_norm
            )
        self.taught += 1
        self.updates += 1

    def demonstrate(self, seeds: np.ndarray) -> Rollout:
        """A right match of each question, uint64 ``[groups]``."""
        return demonstrate(self.shown, self.shown_tokens, seeds).to(self.device)

    def part(self, rollout: Rollout) -> Part:
        """Matches as the policy sees them now."""
        mask = loss_mask(rollout)
        return Part(rollout, mask, self.model.log_probs(rollout.ids, mask))

    def learn(self, rollout: Rollout, advantages: torch.Tensor) -> None:
        """Learns from answers, and from a demonstration of each question."""
        args = self.args
        if args.schedule == "sft_then_grpo":
            super().learn(rollout, advantages)
            return
        demonstrations = self.demonstrate(self.seeds[:: args.group])
        for _ in range(args.passes):
            answers = self.part(rollout)
            self.losses["entropy"] = float(entropy(answers.log_probs.detach()))
            loss = srft_loss(answers, self.part(demonstrations), args)
            gradient_step(self.optimizer, loss, args.learning_rate, args.max_gradient_norm)

    def state(self) -> dict[str, Any]:
        """As of GRPO, and how far SFT has come."""
        return {**super().state(), "taught": self.taught}

    def restore(self, before: dict[str, Any]) -> None:
        """Restores what `state` returned."""
        super().restore(before)
        self.taught = before["taught"]


def train(args: Args) -> Report:
    """Trains, or resumes; see `palaestra_baselines.grpo.train`."""
    return grpo.train(args, Run)


def main(argv: Sequence[str] | None = None) -> None:
    """Trains."""
    grpo.command(Args, METHOD, __doc__ or "", argv, train)


if __name__ == "__main__":
    main()
