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

``--model FOLDER`` trains a model of Hugging Face in text: its teacher reads the path in words, behind the question. The
paper also trains a model that makes the questions; ours come from the environment.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch

from palaestra_baselines import grpo
from palaestra_baselines.common.lm.losses import loss_mask
from palaestra_baselines.common.lm.privileged import FORMS, Privileged, prefixes, told_prompts
from palaestra_baselines.common.lm.rollouts import Rollout
from palaestra_baselines.common.run_folder import RunFolder
from palaestra_baselines.common.training import Report, polyak_update

METHOD = "pi_play"
load_policy = grpo.load_policy


@dataclass
class Args(grpo.Args):
    """Arguments, beside those of `palaestra_baselines.grpo.Args`.

    Attributes:
        privileged: What the teacher is told: path, partial, answer, dot or none.
        teacher_weight: lambda at the start; it falls linearly to 0 at the last step.
        teacher_rate: Share of the way to the student that the teacher's weights go after each iteration.
    """

    MAY_BE_ZERO: ClassVar[tuple[str, ...]] = (*grpo.Args.MAY_BE_ZERO, "teacher_weight", "teacher_rate")
    SHARES: ClassVar[tuple[str, ...]] = ("teacher_rate",)

    privileged: Privileged = "path"
    teacher_weight: float = 1.0
    teacher_rate: float = 0.05
    directory: Path = Path("runs/pi_play/{env_id}")


class Run(grpo.Run):
    """One training; the teacher is a part of its state."""

    method = METHOD

    def __init__(self, args: Args, folder: RunFolder | None = None) -> None:
        """The teacher starts as the student does."""
        super().__init__(args, folder)
        self.teacher = copy.deepcopy(self.model).requires_grad_(False)
        self.forms = np.full(self.sim.num_envs, FORMS.index(args.privileged))

    def learn(self, rollout: Rollout, advantages: torch.Tensor) -> None:
        """Learns from answers and from the teacher."""
        args = self.args
        weight = args.teacher_weight * max(1.0 - self.steps / args.total_steps, 0.0)
        teacher = grpo.Teacher(self.teacher_log_probs(rollout), weight) if weight else None
        grpo.update(self.model, self.reference, self.optimizer, rollout, advantages, args, teacher)
        polyak_update(self.teacher, self.model, args.teacher_rate)

    @torch.no_grad()
    def teacher_log_probs(self, rollout: Rollout) -> torch.Tensor:
        """Distributions ``[M, V]`` of the teacher, which is told more, at the tokens of the loss mask."""
        if self.args.model:  # another prompt, as a chat template ends the question where the turn begins
            told, begin = told_prompts(self.tokens, self.args.privileged), int(rollout.sampled.any(0).nonzero()[0])
        else:
            told, begin = prefixes(self.sim, self.tokens, self.forms), 0
        told, at = told.to(rollout.ids.device), loss_mask(rollout, retrieved=self.args.mask_retrieved == "no")
        ids = torch.cat([told, rollout.ids[:, begin:]], 1)
        return self.teacher.log_probs(ids, torch.cat([torch.zeros_like(told, dtype=torch.bool), at[:, begin:]], 1))

    def learnt(self) -> dict[str, Any]:
        """As of GRPO, and the teacher."""
        return {**super().learnt(), "teacher": self.teacher}


def train(args: Args) -> Report:
    """Trains, or resumes; see `palaestra_baselines.grpo.train`."""
    return grpo.train(args, Run)


def main(argv: Sequence[str] | None = None) -> None:
    """Trains."""
    grpo.command(Args, METHOD, __doc__ or "", argv, train)


if __name__ == "__main__":
    main()
