"""Losses of language models on rollouts. B sequences of T tokens; a mask says which tokens count.

Sources: group advantage and the estimate of KL of Shao et al., "DeepSeekMath" (arXiv 2402.03300, GRPO); the clipped
ratio of Schulman et al., "Proximal Policy Optimization" (arXiv 1707.06347), one ratio for a turn as in ST-PPO (arXiv
2511.20718), one for a sequence as in Zheng et al., "Group Sequence Policy Optimization" (arXiv 2507.18071). All means
are over the tokens that count of all sequences: a token of a long match counts as much as one of a short match.
"""

from __future__ import annotations

from typing import Literal

import torch

from palaestra.core.contract.turn_tokens import PAD
from palaestra_baselines.common.lm.rollouts import Rollout

Level = Literal["token", "turn", "sequence"]
SMALLEST_DEVIATION = 1e-4


def loss_mask(rollout: Rollout, retrieved: bool = False) -> torch.Tensor:
    """Which tokens count, bool ``[B, T]``: those that the model sampled.

    Args:
        rollout: Matches.
        retrieved: Also count the tokens of passages, which the model did not choose.
    """
    mask = rollout.sampled | rollout.retrieved if retrieved else rollout.sampled
    return mask & (rollout.ids != PAD)


def spread(values: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Values ``[M]`` of the tokens of a mask ``[B, T]`` at their places, 0 elsewhere."""
    return values.new_zeros(mask.shape).masked_scatter(mask, values)


def chosen(log_probs: torch.Tensor, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Logarithms of the probabilities of the tokens that were taken, ``[B, T]``, of distributions ``[M, V]``."""
    return spread(log_probs.gather(1, ids[mask][:, None])[:, 0], mask)


def masked_mean(values: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Mean of values ``[B, T]`` over the tokens that count; 0 if none does."""
    return (values * mask).sum() / mask.sum().clamp(min=1)


def group_advantages(rewards: torch.Tensor, group: int) -> torch.Tensor:
    """``A = (r - mean) / (std + 1e-4)`` over each group of successive matches, ``[B]``; std divides by G - 1.

    Args:
        rewards: float ``[B]``.
        group: G, matches of a group.
    """
    grouped = rewards.view(-1, group)
    deviation = grouped.std(1, keepdim=True) if group > 1 else torch.zeros_like(grouped)
    return ((grouped - grouped.mean(1, keepdim=True)) / (deviation + SMALLEST_DEVIATION)).flatten()


def ratios(
    new: torch.Tensor, old: torch.Tensor, mask: torch.Tensor, turn: torch.Tensor, level: Level = "token"
) -> torch.Tensor:
    """Probability ratios ``[B, T]``: of each token, or the geometric mean over its turn or its whole sequence.

    Args:
        new: ``[B, T]``, logarithms of the probabilities of the tokens.
        old: ``[B, T]``, of the policy that sampled them.
        mask: bool ``[B, T]``, tokens that count.
        turn: int64 ``[B, T]``, the turn of each token, -1 for tokens of none: these are a turn together.
        level: Over what the mean is taken.
    """
    change = (new - old) * mask
    if level == "token":
        return change.exp()
    part = torch.zeros_like(turn) if level == "sequence" else turn + 1
    shape = (len(turn), int(part.max()) + 1)
    sums = change.new_zeros(shape).scatter_add(1, part, change)
    counts = change.new_zeros(shape).scatter_add(1, part, mask.to(change.dtype))
    return (sums / counts.clamp(min=1)).gather(1, part).exp()


def policy_loss(ratio: torch.Tensor, advantages: torch.Tensor, mask: torch.Tensor, clip: float) -> torch.Tensor:
    """``-mean min(rho A, clip(rho, 1 - c, 1 + c) A)`` over the tokens that count.

    Args:
        ratio: rho ``[B, T]``, see `ratios`.
        advantages: ``[B, T]`` or ``[B, 1]``.
        mask: bool ``[B, T]``.
        clip: c.
    """
    clipped = ratio.clamp(1.0 - clip, 1.0 + clip)
    return -masked_mean(torch.minimum(ratio * advantages, clipped * advantages), mask)


def kl_to_reference(new: torch.Tensor, reference: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Mean of ``exp(d) - d - 1`` with ``d = reference - new``: an estimate of KL(policy, reference) that is >= 0.

    Args:
        new: ``[B, T]``, logarithms of the probabilities of tokens that the policy sampled.
        reference: ``[B, T]``, of the reference.
        mask: bool ``[B, T]``.
    """
    difference = (reference - new) * mask
    return masked_mean(difference.exp() - difference - 1.0, mask)


def reverse_kl(log_probs: torch.Tensor, teacher: torch.Tensor) -> torch.Tensor:
    """Mean of KL(policy, teacher) over whole distributions, the policy's and the teacher's ``[M, V]``."""
    return (log_probs.exp() * (log_probs - teacher)).sum() / max(len(log_probs), 1)


def supervised_loss(new: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Mean of ``-log pi`` over the tokens that count, of ``new [B, T]``: SFT."""
    return -masked_mean(new, mask)


def entropy(log_probs: torch.Tensor) -> torch.Tensor:
    """Mean entropy of distributions ``[M, V]``; 0 if there are none."""
    return -(log_probs.exp() * log_probs).sum() / max(len(log_probs), 1)
