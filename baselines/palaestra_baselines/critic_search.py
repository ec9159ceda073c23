"""CriticSearch: GRPO in which a frozen critic also says of each turn, after the match, whether it was of use.

"CriticSearch" (arXiv 2511.12159): outcome alone rewards every turn of a match alike. A critic that does not learn reads
the finished match and the right answer and labels each turn. Our reading of the paper, whose exact form was not at
hand::

    A_outcome = (r - mean(r)) / (std(r) + 1e-4)              over the matches of a group, see `palaestra_baselines.grpo`
    A_turn    = (label - mean(label)) / (std(label) + 1e-4)  over all turns of the group, labels 1 and -1
    A         = (1 - a) A_outcome + a A_turn                 for the tokens of the turn, a = 0.25

Critics: ``model``, a model that is told the right answer and labels a turn by all that came up to its end
(`palaestra_baselines.common.lm.critic`): a tiny model, or with ``--model FOLDER`` this model as it was at the start, or
that of ``--critic-model FOLDER``; ``exact``, the environment's own labels; ``noisy:0.2``, these with each one
wrong with probability 0.2::

    python -m palaestra_baselines.critic_search --env-id palaestra/SearchQA-3Hop-v1 --base noisy

The column ``critic_accuracy`` is the share of turns whose label is the environment's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch

from palaestra_baselines import grpo
from palaestra_baselines.common.lm.critic import (
    accuracy,
    label_text_turns,
    label_turns,
    load_critic,
    told_answers,
)
from palaestra_baselines.common.lm.hf_model import HFModel, check_same_tokens
from palaestra_baselines.common.lm.losses import SMALLEST_DEVIATION
from palaestra_baselines.common.lm.rollouts import UNSAID, Rollout
from palaestra_baselines.common.run_folder import RunFolder
from palaestra_baselines.common.training import Report

METHOD = "critic_search"
load_policy = grpo.load_policy
NOISY = "noisy:"


@dataclass
class Args(grpo.Args):
    """Arguments, beside those of `palaestra_baselines.grpo.Args`.

    Attributes:
        critic: Who labels turns: model, exact, or noisy:P with a share P of wrong labels.
        critic_model: Folder of a critic for --model, with its tokenizer; that of --model by default.
        turn_weight: Share a of the turns in the advantage.
    """

    MAY_BE_ZERO: ClassVar[tuple[str, ...]] = (*grpo.Args.MAY_BE_ZERO, "turn_weight")
    SHARES: ClassVar[tuple[str, ...]] = ("turn_weight",)

    critic: str = "model"
    critic_model: str = ""
    turn_weight: float = 0.25
    directory: Path = Path("runs/critic_search/{env_id}")

    def check(self) -> None:
        """Looks at the arguments.

        Raises:
            ValueError: One that does not fit; names the option.
        """
        super().check()
        noise_of(self.critic)
        if self.critic_model and not (self.model and self.critic == "model"):
            raise ValueError("--critic-model is for --model FOLDER with --critic model")


def noise_of(critic: str) -> float:
    """Share of wrong labels of a critic that is no model.

    Raises:
        ValueError: No such critic.
    """
    if critic in ("model", "exact"):
        return 0.0
    try:
        noise = float(critic.removeprefix(NOISY))
    except ValueError:
        noise = -1.0
    if not critic.startswith(NOISY) or not 0.0 <= noise <= 1.0:
        raise ValueError(f"--critic {critic}: give model, exact, or noisy:P with P from 0 to 1")
    return noise


def turn_advantages(labels: torch.Tensor, group: int) -> torch.Tensor:
    """Labels, normalised over all turns of a group.

    Args:
        labels: int64 ``[N, turns]``: 1, -1, and 0 for turns that were not played.
        group: Successive matches that are a group.

    Returns:
        float32 ``[N, turns]``, 0 for turns that were not played.
    """
    grouped = labels.float().reshape(-1, group * labels.shape[1])
    played = (grouped != 0.0).float()
    count = played.sum(1, keepdim=True)
    centred = (grouped - grouped.sum(1, keepdim=True) / count) * played
    deviation = (centred.square().sum(1, keepdim=True) / (count - 1.0).clamp(min=1.0)).sqrt()
    return (centred / (deviation + SMALLEST_DEVIATION)).reshape(labels.shape)


def mixed_advantages(outcome: torch.Tensor, turns: torch.Tensor, turn: torch.Tensor, weight: float) -> torch.Tensor:
    """The advantage of each token.

    Args:
        outcome: float32 ``[N]``, of the answers.
        turns: float32 ``[N, turns]``, of the turns.
        turn: int64 ``[N, T]``, the turn of each token, -1 for tokens of none.
        weight: Share of the turns.

    Returns:
        float32 ``[N, T]``; tokens of no turn have that of the answer.
    """
    of_token = turns.gather(1, turn.clamp(min=0))
    mixed = (1.0 - weight) * outcome[:, None] + weight * of_token
    return torch.where(turn == UNSAID, outcome[:, None], mixed)


class Run(grpo.Run):
    """One training; the critic does not change."""

    method = METHOD

    def __init__(self, args: Args, folder: RunFolder | None = None) -> None:
        """Loads the critic where it is a model.

        Raises:
            ValueError: It has another tokenizer than the policy.
        """
        super().__init__(args, folder)
        self.critic: Any = None
        if args.critic == "model":
            self.critic = self._text_critic() if args.model else load_critic()
        self.losses["critic_accuracy"] = 0.0

    def _text_critic(self) -> HFModel:
        folder = self.args.critic_model or self.args.model
        check_same_tokens(self.args.model, folder)
        return self.load(folder).requires_grad_(False)

    def learn(self, rollout: Rollout, advantages: torch.Tensor) -> None:
        """Learns from answers and turns."""
        args = self.args
        labels = self.labels(rollout)
        self.losses["critic_accuracy"] = accuracy(labels, rollout.labels)
        turns = turn_advantages(labels, args.group)
        super().learn(rollout, mixed_advantages(advantages, turns, rollout.turn, args.turn_weight))

    def labels(self, rollout: Rollout) -> torch.Tensor:
        """The critic's labels, int64 ``[N, turns]``."""
        if self.critic is not None and self.args.model:
            return label_text_turns(self.critic, rollout, self.tokens)
        if self.critic is not None:
            return label_turns(self.critic, rollout, told_answers(self.sim, self.tokens))
        wrong = torch.rand(rollout.labels.shape, generator=self.generator) < noise_of(self.args.critic)
        return torch.where(wrong.to(self.device), -rollout.labels, rollout.labels)


def train(args: Args) -> Report:
    """Trains, or resumes; see `palaestra_baselines.grpo.train`."""
    return grpo.train(args, Run)


def main(argv: Sequence[str] | None = None) -> None:
    """Trains."""
    grpo.command(Args, METHOD, __doc__ or "", argv, train)


if __name__ == "__main__":
    main()
