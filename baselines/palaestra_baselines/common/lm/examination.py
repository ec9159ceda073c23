"""A model that makes questions: matches of ``palaestra/Examiner-v1`` in groups, and its base weights.

A group is n lanes of one world. The examiner plays once and its turns are taken in all n lanes, so that n students get
the same question::

    python -m palaestra_baselines.common.lm.examination

trains an examiner on the environment's script, whose walks over one to three facts are all valid, and writes
``lm_examiner.safetensors``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

import palaestra_assets
from palaestra import registry
from palaestra.cli.progress_bar import Progress
from palaestra.cli.typed_arguments import read_arguments
from palaestra.core.run.simulation import Simulation
from palaestra_baselines.common.lm.hf_model import TextTokens
from palaestra_baselines.common.lm.losses import chosen, loss_mask, supervised_loss
from palaestra_baselines.common.lm.name_tokens import ASK, CONTEXT, VOCABULARY, NameTokens
from palaestra_baselines.common.lm.rollouts import (
    Columns,
    Converse,
    Outcome,
    Rollout,
    converse,
    converse_at_own_pace,
    outcome_of,
)
from palaestra_baselines.common.lm.tiny_model import TinyModel, model_of
from palaestra_baselines.common.policy_file import read_policy, save_policy
from palaestra_baselines.common.training import gradient_step

ID = "palaestra/Examiner-v1"
FILE = "weights/lm_examiner.safetensors"
TURNS = 4
"""Of the examiner: it may search for three facts and ask."""
STEPS, LANES, LEARNING_RATE, WARMUP, MAX_GRADIENT_NORM = 1000, 64, 2e-3, 20, 1.0


@dataclass(frozen=True)
class Examination:
    """Matches of Q groups of n.

    Attributes:
        examiner: Q matches of the examiner; `exact_match` is 1 where its question was accepted.
        students: The matches of the students whose question was accepted, group by group.
        lanes: bool ``[Q * n]``, the lanes of these matches.
        hops: int64 ``[Q]``, relations of each question that was accepted, else 0.
        right: int64 ``[Q]``, right answers of its n students.
    """

    examiner: Rollout
    students: Rollout | None
    lanes: torch.Tensor
    hops: torch.Tensor
    right: torch.Tensor


@dataclass(frozen=True)
class ExaminerBatch:
    """Lanes of the game, and how models take their turns in them.

    Attributes:
        sim: N lanes that wait when their match is over.
        examiner: Translates for the examiner.
        student: Translates for the student.
        converse: All lanes a turn at a time, or each at its own pace.
    """

    sim: Simulation
    examiner: Any
    student: Any
    converse: Converse = converse


def make_examination(lanes: int, opponents: Any = None) -> ExaminerBatch:
    """Lanes for tiny models."""
    sim = _make_batch(lanes, opponents, "tokens")
    return ExaminerBatch(sim, NameTokens(sim.game, ASK), NameTokens(sim.game))


def make_text_examination(lanes: int, folder: str, turn_tokens: int, **keywords: Any) -> ExaminerBatch:
    """Lanes for models of Hugging Face, with keywords of the game.

    See `palaestra_baselines.common.lm.hf_model.TextTokens`.
    """
    sim = _make_batch(lanes, None, "text", **keywords)
    examiner, student = (TextTokens(sim, folder, turn_tokens, slot) for slot in range(2))
    return ExaminerBatch(sim, examiner, student, converse_at_own_pace)


def _make_batch(lanes: int, opponents: Any, form: str, **keywords: Any) -> Simulation:
    given: dict[str, Any] = {"form": form, "examiner_turns": TURNS, **keywords}
    return registry.make_batch(ID, lanes, autoreset_mode="off", opponents=opponents, **given)


def rows_of(sim: Simulation, role: str) -> np.ndarray:
    """Observations of the only agent of a role, ``[N, 126]``; a view, valid until the next step."""
    observations: Any = sim.observations
    return observations[role][:, 0]


@torch.no_grad()
def examine(
    examiner: Any, student: Any, batch: ExaminerBatch, seeds: np.ndarray, generator: torch.Generator
) -> Examination:
    """Plays Q groups of n matches.

    Args:
        examiner: Asks.
        student: Answers, in n lanes of each group.
        batch: ``Q * n`` lanes of the game.
        seeds: uint64 ``[Q]``.
        generator: Of the draws of tokens.
    """
    sim, world = batch.sim, batch.sim.game.world
    group, of_examiner, of_student = sim.num_envs // len(seeds), batch.examiner, batch.student
    sim.reset(seed=np.repeat(seeds, group))
    nothing = np.zeros((sim.num_envs, 1, 17), np.int64)
    known = of_examiner.new_memory(sim.num_envs)

    def ask(words: torch.Tensor, speaking: torch.Tensor) -> Outcome:
        actions = of_examiner.actions(words.numpy(), known[::group]).repeat(group, 0)[:, None]
        sim.step({"examiner": actions, "student": nothing}, lanes=speaking.numpy().repeat(group))
        goes_on, labels = (values[::group] for values in outcome_of(sim))
        goes_on = goes_on & torch.from_numpy(sim.info["accepted"][::group] == 0)
        return (goes_on, labels), torch.from_numpy(of_examiner.passages(rows_of(sim, "examiner"), known)[::group])

    prompts = torch.from_numpy(of_examiner.questions(rows_of(sim, "examiner"), known)[::group])
    columns, *counts = batch.converse(examiner, prompts, of_examiner, world.examiner_turns, ask, generator, 1.0)
    accepted = torch.from_numpy(sim.info["accepted"] == 1)
    asked = columns.rollout(accepted[::group].float(), *counts)
    hops = torch.from_numpy(sim.info["hops"][::group].astype(np.int64))
    if not accepted.any():
        return Examination(asked, None, accepted, hops, torch.zeros_like(hops))
    learnt = of_student.new_memory(sim.num_envs)

    def answer(words: torch.Tensor, speaking: torch.Tensor) -> Outcome:
        actions = np.zeros_like(nothing[:, 0])
        actions[accepted] = of_student.actions(words.numpy(), learnt[accepted])
        lanes = np.zeros(sim.num_envs, np.bool_)
        lanes[accepted] = speaking
        sim.step({"examiner": nothing, "student": actions[:, None]}, lanes=lanes)
        goes_on, labels = (values[accepted] for values in outcome_of(sim))
        return (goes_on, labels), torch.from_numpy(of_student.passages(rows_of(sim, "student"), learnt))[accepted]

    prompts = torch.from_numpy(of_student.questions(rows_of(sim, "student"), learnt))[accepted]
    columns, *counts = batch.converse(student, prompts, of_student, world.max_turns, answer, generator, 1.0)
    exact_match = torch.from_numpy(sim.info["exact_match"].astype(np.float32))
    right = (exact_match * accepted).view(-1, group).sum(1).long()
    return Examination(asked, columns.rollout(exact_match[accepted], *counts), accepted, hops, right)


def examiner_rewards(right: torch.Tensor, accepted: torch.Tensor, students: int, format_reward: float) -> torch.Tensor:
    """``1[0 < k < n] (n - k) / (n - 1)``, and `format_reward` for a question that was accepted, float32 ``[Q]``.

    Args:
        right: int64 ``[Q]``, k.
        accepted: float32 ``[Q]``, 1 where the question was accepted.
        students: n, at least 2.
        format_reward: See above.
    """
    is_fair = (right > 0) & (right < students)
    return is_fair * (students - right) / (students - 1) + format_reward * accepted


# -- base weights ------------------------------------------------------------------------------------------------------


def demonstrate(batch: ExaminerBatch, seeds: np.ndarray) -> Rollout:
    """Matches of the environment's script, the opponent in the examiner's place, up to its questions."""
    sim, tokens = batch.sim, batch.examiner
    sim.reset(seed=seeds)
    known, columns = tokens.new_memory(len(seeds)), Columns()
    columns.read(torch.from_numpy(tokens.questions(rows_of(sim, "examiner"), known)), retrieved=False)
    alive, turns = torch.ones(len(seeds), dtype=torch.bool), torch.zeros(len(seeds), dtype=torch.int64)
    for turn in range(sim.game.world.examiner_turns):
        sim.step(lanes=alive.numpy())
        actions: Any = sim.actions
        words = torch.from_numpy(tokens.turns_of(actions["examiner"][:, 0])).where(alive[:, None], 0)
        columns.say(words, torch.zeros(words.shape), turn)
        turns, alive = turns + alive, alive & torch.from_numpy(sim.info["accepted"] == 0) & outcome_of(sim)[0]
        if not alive.any():
            break
        found = torch.from_numpy(tokens.passages(rows_of(sim, "examiner"), known))
        columns.read(found.where(alive[:, None], 0), retrieved=True)
    accepted = torch.from_numpy(sim.info["accepted"].astype(np.float32))
    return columns.rollout(accepted, turns, torch.zeros((len(seeds), 1), dtype=torch.int64))


def train_examiner(steps: int = STEPS, seed: int = 0, quiet: bool = True) -> TinyModel:
    """Trains an examiner's base weights on the script's matches; `seed` is of weights and worlds."""
    torch.set_num_threads(1)
    batch = make_examination(LANES, {"examiner": "oracle", "student": "closed_book"})
    model, rng = TinyModel(VOCABULARY, CONTEXT, seed), np.random.default_rng(seed)
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.95), fused=True)
    with Progress("steps", steps, title="examiner", quiet=quiet) as progress:
        for step in range(steps):
            rollout = demonstrate(batch, rng.integers(2**62, size=LANES, dtype=np.uint64))
            mask = loss_mask(rollout)
            loss = supervised_loss(chosen(model.log_probs(rollout.ids, mask), rollout.ids, mask), mask)
            gradient_step(optimizer, loss, LEARNING_RATE * min((step + 1) / WARMUP, 1.0), MAX_GRADIENT_NORM)
            progress.update(step + 1, loss=float(loss.detach()))
    return model


def load_examiner() -> TinyModel:
    """The bundled base weights, with gradients."""
    return model_of(read_policy(palaestra_assets.path(FILE))[0]).requires_grad_(True)


def main(argv: Sequence[str] | None = None) -> None:
    """Trains the base weights and writes them."""

    def command(directory: Path = Path()):
        """Trains the base weights of an examiner.

        Args:
            directory: Where the file goes.
        """
        model, path = train_examiner(quiet=False), directory / Path(FILE).name
        save_policy(path, model.arrays(), method="grpo", env_id=ID, args={"steps": STEPS})
        print(path)

    read_arguments(command, argv, "python -m palaestra_baselines.common.lm.examination")


if __name__ == "__main__":
    main()
