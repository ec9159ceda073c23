"""A pretrained model that learns text search on one core: ``python benchmarks/learn.py real_model``.

Gemma 3 with 270 M weights (`learning.real_model` says how to install it) answers no question of SearchQA-2Hop by
itself: it is a base model, and has seen no tags. So it first learns from oracle transcripts, right searches and the
right answer of questions drawn anew (SFT), and then by GRPO from the return of its own matches. All weights learn, in
float32. The prompt is the question alone: instructions would be most of what is read.

The clock of the figure is processor time, ``MINUTES`` of a core, and counts evaluations too; ``WARM_UP`` of it is SFT.
Exact match is that of held-out questions, greedy, before the first step and at equal times from then on. One run, of
one seed: it shows that the parts fit and what a core can do, and compares no methods. Killed, it goes on from its last
evaluation; checkpoints under ``runs/real_model`` take 8 GB.

Sizes are chosen by what was measured on one core: a transcript has 210 tokens; a step of SFT on four of them took 25 s,
a token of 16 matches 0.7 s, so a rollout about two minutes and its gradient step as long. Learning rates are not tuned:
that of SFT is the one of Google's guide to fine-tuning this model, that of GRPO a fifth of it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from time import process_time
from typing import Any

import torch

from learning import drawing
from learning.figures import FigureArgs, write_rows
from learning.real_model import write_model
from learning.study import Figure
from palaestra_baselines import grpo, srft
from palaestra_baselines.common.lm.rollouts import measure_exact_match
from palaestra_baselines.common.run_folder import RunFolder
from palaestra_baselines.common.run_outputs import CHECKPOINT

NAME = "real_model"
MINUTES, EVALUATIONS = 30, 2
"""Processor time of the run, and evaluations behind the first one at equal shares of it."""
WARM_UP = 1 / 2
"""Share of the run that is SFT; an evaluation falls on its end."""
RATES = (5e-5, 1e-5)
"""Learning rates of SFT and GRPO."""
QUESTIONS = 32
RUN: dict[str, Any] = {
    "env_id": "palaestra/SearchQA-2Hop-v1",
    "options": ("prompt=plain",),
    "turn_tokens": 32,
    "groups": 4,
    "group": 4,
    "reward": "return",
    "schedule": "sft_then_grpo",
}
SFT, GRPO = "SFT", "SFT then GRPO"


class Run(srft.Run):
    """A run of so many seconds of a core: `steps` counts those; which of its stages learns depends on them alone."""

    def __init__(self, args: srft.Args, folder: RunFolder | None = None) -> None:
        """Starts."""
        super().__init__(args, folder)
        torch.set_num_threads(1)
        self.began_s, self.before_s = process_time(), 0

    def iterate(self) -> None:
        """SFT at first, then GRPO."""
        is_sft = self.steps < WARM_UP * self.args.total_steps
        self.args = dataclasses.replace(self.args, learning_rate=RATES[0 if is_sft else 1])
        if is_sft:
            self.teach()
        else:
            grpo.Run.iterate(self)
        self.steps = self.before_s + round(process_time() - self.began_s)

    def restore(self, before: dict[str, Any]) -> None:
        """The clock goes on where it was."""
        super().restore(before)
        self.before_s = self.steps

    def measure(self, policy: Any) -> dict[str, float]:
        """Greedy exact match alone: other temperatures would take three times as long."""
        found = measure_exact_match(self.model, *self.questions, temperature=0.0, player=self.player)
        print(f"{self.steps / 60:.0f} minutes, {self.taught} steps of SFT, ", end="")
        print(f"{self.updates - self.taught} rollouts of GRPO: exact match {found:.3f}", flush=True)
        return {"exact_match": found, "taught": self.taught}


def real_model(args: FigureArgs) -> None:
    """Exact match of a pretrained model over minutes; one seed, whatever the command asks for."""
    folder = args.runs / NAME
    settings = srft.Args(
        **RUN,
        model=str(write_model(folder / "start")),
        total_steps=round(60 * MINUTES),
        evaluations=EVALUATIONS,
        questions=QUESTIONS,
        directory=folder,
        trust_checkpoint=args.trust_checkpoint,
        quiet=True,
    )
    report = grpo.train(dataclasses.replace(settings, resume=(settings.folder / CHECKPOINT).exists()), Run)
    write_rows(args.figures / f"{NAME}.csv", [table_row(row) for row in report.log])
    draw_real(args.figures)


def table_row(row: Mapping[str, float]) -> dict[str, Any]:
    """A row of the table for one of the curve."""
    rollouts = int(row["iterations"] - row["taught"])
    counts = {"minutes": row["steps"] / 60, "sft_steps": int(row["taught"]), "rollouts": rollouts}
    shown = {name: row[name] for name in ("exact_match", "reward", "mixed", "cpu_s")}
    return {"stage": GRPO if rollouts else SFT, **counts, **shown}


def draw_real(folder: Path) -> None:
    """Draws exact match over minutes; GRPO begins where SFT ends."""
    table = folder / f"{NAME}.csv"
    rows = drawing.read_table(table)
    taught = [row for row in rows if row["stage"] == SFT]
    runs = {SFT: taught, GRPO: [*taught[-1:], *(row for row in rows if row["stage"] == GRPO)]}
    shown = {name: drawing.curve_over_seeds([run], "exact_match", "minutes") for name, run in runs.items()}
    drawing.draw(
        table, [drawing.Panel("Gemma 3, 270 M", "exact match, greedy", shown, x_label="minutes", is_share=True)]
    )


FIGURES = (Figure(NAME, real_model, draw_real),)
