"""pi-Play: GRPO with a teacher that is told how the question was made, and is otherwise the student itself.

"pi-Play" (arXiv 2604.14054): who knows the path of facts from which a question was built, answers it better. So the
same model is its own teacher where it is told the path beforehand. The student plays without it, learns from its
answers as in `palaestra_baselines.grpo`, and comes nearer to the teacher at every token that it has sampled::

    loss = loss of GRPO + lambda * mean KL(student(. | question, before), teacher(. | path, question, before))

The distance is over whole distributions. lambda falls linearly from `teacher_weight` to 0 during the training. The
teacher is a moving average of the student: after each iteration its weights move by 0.05 towards the student's. With
``lambda = 0`` this is plain self-play.

``--privileged partial`` tells the path without its last fact, ``answer`` the answer alone, ``none`` nothing, and
``dot`` is a prefix that says nothing: what a path teaches beyond it is due to what the path says
(`palaestra_baselines.common.lm.privileged`)::

    python -m palaestra_baselines.pi_play --env-id palaestra/SearchQA-3Hop-v1 --base early

With ``--questions-by examiner`` questions are made, too, in ``palaestra/Examiner-v1``. A second model, the examiner,
searches a world and asks; n students answer each question, k of them right. In each of three rounds it learns first, by
REINFORCE, then the student does::

    r = 1[0 < k < n] (n - k) / (n - 1) + 0.5 for a question that is accepted
    A = (r - mean(r)) / (std(r) + 1e-4)                              over the questions of an iteration

``--model FOLDER`` trains a model of Hugging Face in text: its teacher reads the path in words, behind the question, and
with ``--questions-by examiner`` the examiner starts as the same model.

The paper tells its examiner how many facts a question has to have, and compares questions of as many. Ours chooses,
and may ask what is refused: compared among questions of one length alone, it would not learn to ask longer ones.
"""

from __future__ import annotations

import copy
import dataclasses
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch

from palaestra_baselines import grpo
from palaestra_baselines.common.agents import keywords
from palaestra_baselines.common.lm.examination import (
    Examination,
    examine,
    examiner_rewards,
    load_examiner,
    make_examination,
    make_text_examination,
)
from palaestra_baselines.common.lm.losses import group_advantages, loss_mask
from palaestra_baselines.common.lm.privileged import FORMS, Privileged, prefixes
from palaestra_baselines.common.lm.rollouts import Rollout
from palaestra_baselines.common.training import Report

METHOD = "pi_play"
load_policy = grpo.load_policy
MOST_REFUSED = 10
"""Iterations in a row without any question that is accepted: an examiner that asks nothing valid is paid nothing, and
so does not learn to."""


@dataclass
class Args(grpo.Args):
    """Arguments, beside those of `palaestra_baselines.grpo.Args`.

    Attributes:
        questions_by: Who asks: environment, or examiner, which learns to ask.
        rounds: Times that the examiner learns.
        examiner_iterations: Its iterations in each round.
        format_reward: What it is paid for a question that is accepted.
        privileged: What the teacher is told: path, partial, answer, dot or none.
        teacher_weight: lambda at the start; it falls linearly to 0 at the last step.
        teacher_rate: Share of the way to the student that the teacher's weights go after each iteration.
    """

    MAY_BE_ZERO: ClassVar[tuple[str, ...]] = (*grpo.Args.MAY_BE_ZERO, "teacher_weight", "teacher_rate", "format_reward")
    SHARES: ClassVar[tuple[str, ...]] = ("teacher_rate",)

    questions_by: Literal["environment", "examiner"] = "environment"
    rounds: int = 3
    examiner_iterations: int = 10
    format_reward: float = 0.5
    privileged: Privileged = "path"
    teacher_weight: float = 1.0
    teacher_rate: float = 0.05
    directory: Path = Path("runs/pi_play")

    def check(self) -> None:
        """Looks at the arguments.

        Raises:
            ValueError: One that does not fit; names the option.
        """
        super().check()
        if self.questions_by == "examiner" and self.group < 2:
            raise ValueError("--questions-by examiner compares students: give --group 2 or more")


@torch.no_grad()
def follow(teacher: torch.nn.Module, student: torch.nn.Module, rate: float) -> None:
    """Moves the weights of the teacher towards the student's by a share of the way."""
    for weight, newer in zip(teacher.parameters(), student.parameters(), strict=True):
        weight.lerp_(newer, rate)


class Run(grpo.Run):
    """One training; the teacher, and an examiner where there is one, are parts of its state.

    Attributes:
        rounds: Rounds of the examiner so far.
        refused: Iterations in a row, the last one included, without a question that was accepted.
        played: Lanes whose matches the student has just played.
    """

    method = METHOD

    def __init__(self, args: Args) -> None:
        """The teacher starts as the student does."""
        super().__init__(args)
        self.teacher = copy.deepcopy(self.model).requires_grad_(False)
        self.rounds, self.refused, self.played = 0, 0, torch.ones(self.sim.num_envs, dtype=torch.bool)
        self.forms = np.full(self.sim.num_envs, FORMS.index(args.privileged))
        if args.questions_by == "examiner":
            lanes = self.sim.num_envs
            if args.model:
                given = keywords(args.options)
                prompt = {"prompt": given["prompt"]} if "prompt" in given else {}  # as in evaluations
                self.batch = make_text_examination(lanes, args.model, args.turn_tokens, **prompt)
                self.examiner = copy.deepcopy(self.model)
            else:
                self.batch, self.examiner = make_examination(lanes), load_examiner()
            self.sim, self.tokens = self.batch.sim, self.batch.student
            self.examiner_optimizer: torch.optim.Optimizer = torch.optim.Adam(self.examiner.parameters(), fused=True)
            self.seen |= {"accepted": 0.0, "fair": 0.0, "hops": 0.0}

    def iterate(self) -> None:
        """Plays one match in each lane and learns from them; the examiner learns before, at the start of a round.

        Raises:
            ValueError: All questions of `MOST_REFUSED` iterations were refused.
        """
        args = self.args
        if args.questions_by == "environment":
            super().iterate()
            return
        began_s = time.process_time()
        if self.rounds < min(args.rounds, 1 + args.rounds * self.steps // args.total_steps):
            for _ in range(args.examiner_iterations):
                self.teach_examiner(self.examine())
            self.rounds += 1
        examination = self.examine()
        students, self.played = examination.students, examination.lanes
        self.refused = self.refused + 1 if students is None else 0
        if self.refused == MOST_REFUSED:
            raise ValueError(
                f"all {MOST_REFUSED * args.groups} questions of the last {MOST_REFUSED} iterations were refused, so "
                "nobody learns: give a --model that can ask (palaestra/Examiner-v1 tells what is refused and why), or "
                "--questions-by environment"
            )
        if students is not None:
            advantages = group_advantages(students.exact_match, args.group)
            self.seen |= self.statistics(students, advantages)
            self.learn(students, advantages)
            self.steps += int(students.turns.sum())
        self.iterations += 1
        self.cpu_s += time.process_time() - began_s

    def examine(self) -> Examination:
        """Lets the examiner ask, and the student answer each question n times."""
        seeds = self.rng.integers(2**62, size=self.args.groups, dtype=np.uint64)
        played = examine(self.examiner, self.model, self.batch, seeds, self.generator)
        accepted, right = played.examiner.exact_match, played.right
        self.seen |= {
            "accepted": float(accepted.mean()),
            "fair": float(((right > 0) & (right < self.args.group)).float().mean()),
            "hops": float(played.hops.sum() / accepted.sum().clamp(min=1.0)),
        }
        return played

    def teach_examiner(self, played: Examination) -> None:
        """One step of the examiner."""
        accepted = played.examiner.exact_match
        rewards = examiner_rewards(played.right, accepted, self.args.group, self.args.format_reward)
        advantages = group_advantages(rewards, len(rewards))
        args = dataclasses.replace(self.args, passes=1, mask_retrieved="yes")
        grpo.update(self.examiner, None, self.examiner_optimizer, played.examiner, advantages, args)

    def learn(self, rollout: Rollout, advantages: torch.Tensor) -> None:
        """Learns from answers and from the teacher."""
        args = self.args
        weight = args.teacher_weight * max(1.0 - self.steps / args.total_steps, 0.0)
        teacher = grpo.Teacher(self.teacher_log_probs(rollout), weight) if weight else None
        grpo.update(self.model, self.reference, self.optimizer, rollout, advantages, args, teacher)
        follow(self.teacher, self.model, args.teacher_rate)

    @torch.no_grad()
    def teacher_log_probs(self, rollout: Rollout) -> torch.Tensor:
        """Distributions ``[M, V]`` of the teacher, which is told more, at the tokens of the loss mask."""
        if self.args.model:  # behind the question, as a text may begin with a token that belongs at the very start
            told, begin = self.tokens.privileged(self.args.privileged), int(rollout.sampled.any(0).nonzero()[0])
        else:
            told, begin = prefixes(self.sim, self.tokens, self.forms), 0
        at = loss_mask(rollout, retrieved=self.args.mask_retrieved == "no")
        unread = torch.zeros_like(told[self.played], dtype=torch.bool)
        ids, at = (
            torch.cat([row[:, :begin], inserted, row[:, begin:]], 1)
            for row, inserted in ((rollout.ids, told[self.played]), (at, unread))
        )
        return self.teacher.log_probs(ids, at)

    def state(self) -> dict[str, Any]:
        """As of GRPO, and the teacher and the examiner."""
        state = {**super().state(), "teacher": self.teacher.state_dict(), "rounds": self.rounds}
        if self.args.questions_by == "examiner":
            state |= {
                "examiner": self.examiner.state_dict(),
                "examiner_optimizer": self.examiner_optimizer.state_dict(),
            }
        return state

    def restore(self, before: dict[str, Any]) -> None:
        """Restores what `state` returned."""
        super().restore(before)
        self.teacher.load_state_dict(before["teacher"])
        self.rounds = before["rounds"]
        if self.args.questions_by == "examiner":
            self.examiner.load_state_dict(before["examiner"])
            self.examiner_optimizer.load_state_dict(before["examiner_optimizer"])


def train(args: Args) -> Report:
    """Trains, or resumes; see `palaestra_baselines.grpo.train`."""
    return grpo.train(args, Run)


def main(argv: Sequence[str] | None = None) -> None:
    """Trains."""
    grpo.command(Args, METHOD, __doc__ or "", argv, train)


if __name__ == "__main__":
    main()
