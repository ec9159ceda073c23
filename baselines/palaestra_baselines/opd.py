"""On-policy distillation: a student samples, and at each of its tokens comes nearer to a teacher's distribution.

Fu et al., "Revisiting On-Policy Distillation" (arXiv 2603.25562): the student's own rollouts are evaluated by a
teacher with the same tokens. The usual loss takes the sampled token alone (``--loss sampled``): its advantage is the
difference of the two logarithms, an estimate of the reverse KL divergence that is noisy, and worst where teacher and
student disagree::

    sampled             -mean log pi(y) * sg(log q(y) - log pi(y))

The paper compares distributions on the K tokens S that the teacher thinks most probable, both renormalised on S, and
differentiates through the divergence::

    top_k               mean over tokens of  sum_{v in S} p(v) log(p(v) / t(v)),   p = pi / pi(S),  t = q / q(S)
    top_k_unnormalised  the same with p = pi, t = q: it is also made small by taking probability away from S
    full                the same with all tokens as S

The paper's, and defaults here: `top_k`, rollouts by nucleus sampling with top-p 0.9, special tokens neither learnt nor
in S (``--mask-special``). Options of its released code: ``--append-sampled`` takes the sampled token into S where it is
not there, ``--clamp 5`` holds each log(p / t) within 5. The released code has K = 32 of some 150,000 tokens and can
learn at the tokens of highest entropy alone. Ours: K = 16 of 136, all sampled tokens count alike, and no answer is
rewarded.

Student and teacher are tiny models of the same tokens, or two folders of Hugging Face with the same tokenizer::

    python -m palaestra_baselines.opd
    python -m palaestra_baselines.opd --model STUDENT --teacher TEACHER

The curve has, beside exact match: ``support_mass``, the student's probability of the teacher's K tokens; ``kl``, the
reverse KL divergence over all tokens; ``gradient_norm``, before it is clipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch

from palaestra_baselines import grpo
from palaestra_baselines.common.lm.hf_model import check_same_tokens
from palaestra_baselines.common.lm.losses import chosen, loss_mask, policy_loss, ratios, reverse_kl
from palaestra_baselines.common.lm.rollouts import Rollout, check_fits
from palaestra_baselines.common.lm.tiny_model import NEVER, Nucleus, load_base
from palaestra_baselines.common.run_folder import RunFolder
from palaestra_baselines.common.training import Report, gradient_step

METHOD = "opd"
load_policy = grpo.load_policy
Loss = Literal["sampled", "top_k", "top_k_unnormalised", "full"]


@dataclass
class Args(grpo.Args):
    """Arguments, beside those of `palaestra_baselines.grpo.Args`, of which level, kl, entropy and reward are not used.

    Attributes:
        base: The student: weights to start from.
        teacher: Weights of the teacher, by name or file; with `model` another folder of Hugging Face.
        loss: What is minimised.
        top_k: K, tokens of the teacher on which distributions are compared.
        append_sampled: Whether the sampled token is always one of them.
        clamp: Most that a logarithm of a ratio counts; 0 is no limit.
        top_p: Of nucleus sampling in rollouts; 1 samples all tokens.
        mask_special: Whether special tokens are left out.
    """

    MAY_BE_ZERO: ClassVar[tuple[str, ...]] = (*grpo.Args.MAY_BE_ZERO, "clamp")
    SHARES: ClassVar[tuple[str, ...]] = ("top_p",)

    base: str = "noisy"
    teacher: str = "teacher"
    loss: Loss = "top_k"
    top_k: int = 16
    append_sampled: Literal["yes", "no"] = "no"
    clamp: float = 0.0
    top_p: float = 0.9
    mask_special: Literal["yes", "no"] = "yes"
    passes: int = 1
    directory: Path = Path("runs/opd/{env_id}")

    def check(self) -> None:
        """Looks at the arguments.

        Raises:
            ValueError: One that does not fit; names the option.
        """
        super().check()
        for option, unused in (
            ("kl", 0.0),
            ("entropy", 0.0),
            ("level", "token"),
            ("mask_retrieved", "yes"),
            ("reward", "return"),
        ):
            if getattr(self, option) != unused:
                raise ValueError(f"--{option.replace('_', '-')} means nothing here: distillation has no reward")
        if self.model and self.teacher == type(self).teacher:
            raise ValueError("--model needs --teacher, another folder of a model with the same tokenizer")


def support_of(
    teacher: torch.Tensor, top_k: int, barred: torch.Tensor, ids: torch.Tensor | None = None
) -> torch.Tensor:
    """The K tokens that the teacher thinks most probable.

    Args:
        teacher: float32 ``[M, V]``, logarithms of its probabilities.
        top_k: K.
        barred: Bool ``[V]``, tokens that are never among them.
        ids: int64 ``[M]``, tokens that are among them in any case.

    Returns:
        Bool ``[M, V]``.
    """
    wanted = min(top_k, int((~barred).sum()))
    support = torch.zeros_like(teacher, dtype=torch.bool)
    support.scatter_(1, teacher.masked_fill(barred, -torch.inf).topk(wanted).indices, True)
    return support if ids is None else support.scatter_(1, ids[:, None], True)


def support_loss(
    student: torch.Tensor, teacher: torch.Tensor, support: torch.Tensor, renormalise: bool, clamp: float = 0.0
) -> torch.Tensor:
    """Mean over tokens of ``sum_{v in S} p(v) log(p(v) / t(v))``.

    Args:
        student: float32 ``[M, V]``, logarithms of its probabilities.
        teacher: Likewise.
        support: S, bool ``[M, V]``.
        renormalise: Whether p and t are distributions on S, or the student's and the teacher's own probabilities.
        clamp: Most that a logarithm counts; 0 is no limit.
    """
    if renormalise:
        student, teacher = (logs.masked_fill(~support, NEVER).log_softmax(-1) for logs in (student, teacher))
    difference = student - teacher
    if clamp:
        difference = difference.clamp(-clamp, clamp)
    return (student.exp() * difference).masked_fill(~support, 0.0).sum() / max(len(student), 1)


class Run(grpo.Run):
    """One training; the teacher does not change.

    Attributes:
        teacher: The teacher.
    """

    method = METHOD

    def __init__(self, args: Args, folder: RunFolder | None = None) -> None:
        """Loads the teacher.

        Raises:
            ValueError: It has other tokens than the student.
        """
        super().__init__(args, folder)
        if args.model:
            check_same_tokens(args.model, args.teacher)
            self.teacher: Any = self.load(args.teacher).requires_grad_(False)
        else:
            self.teacher = load_base(args.teacher).requires_grad_(False)
            check_fits(self.teacher, self.tokens)
        if args.top_p < 1.0:
            self.speaker = Nucleus(self.model, args.top_p)
        self.losses |= {"support_mass": 0.0, "kl": 0.0, "gradient_norm": 0.0}

    def learn(self, rollout: Rollout, advantages: torch.Tensor) -> None:
        """Learns from the teacher at the tokens that were sampled."""
        args, mask = self.args, loss_mask(rollout)
        with torch.no_grad():
            teacher = self.teacher.log_probs(rollout.ids, mask)
        barred = torch.zeros(teacher.shape[1], dtype=torch.bool)
        if args.mask_special == "yes":
            barred[list(self.tokens.special)] = True
        barred = barred.to(teacher.device)
        if args.mask_special == "yes":
            kept = ~barred[rollout.ids[mask]]
            mask, teacher = mask.masked_scatter(mask, kept), teacher[kept]
        support = support_of(teacher, args.top_k, barred, rollout.ids[mask] if args.append_sampled == "yes" else None)
        for number in range(args.passes):
            student = self.model.log_probs(rollout.ids, mask)
            if number == 0:
                mass = student.detach().exp().masked_fill(~support, 0.0).sum(1).mean()
                self.losses |= {"support_mass": float(mass), "kl": float(reverse_kl(student.detach(), teacher))}
            if args.loss == "sampled":
                loss = sampled_loss(student, teacher, rollout, mask, args)
            else:
                compared = (~barred).expand_as(support) if args.loss == "full" else support
                loss = support_loss(student, teacher, compared, args.loss == "top_k", args.clamp)
            norm = gradient_step(self.optimizer, loss, args.learning_rate, args.max_gradient_norm)
            self.losses["gradient_norm"] = norm


def sampled_loss(
    student: torch.Tensor, teacher: torch.Tensor, rollout: Rollout, mask: torch.Tensor, args: Args
) -> torch.Tensor:
    """Loss of a policy gradient whose advantage, at each token, is ``log q(y) - log pi(y)``.

    Args:
        student: float32 ``[M, V]``, logarithms of its probabilities at the M tokens of the mask.
        teacher: Likewise.
        rollout: The matches.
        mask: Bool ``[N, T]``.
        args: Of the run.
    """
    new, told = (chosen(logs, rollout.ids, mask) for logs in (student, teacher))
    advantages = told - new.detach()
    if args.clamp:
        advantages = advantages.clamp(-args.clamp, args.clamp)
    return policy_loss(ratios(new, rollout.log_probs, mask, rollout.turn), advantages, mask, args.clip)


def train(args: Args) -> Report:
    """Trains, or resumes; see `palaestra_baselines.grpo.train`."""
    return grpo.train(args, Run)


def main(argv: Sequence[str] | None = None) -> None:
    """Trains."""
    grpo.command(Args, METHOD, __doc__ or "", argv, train)


if __name__ == "__main__":
    main()
