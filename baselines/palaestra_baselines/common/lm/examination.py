"""A model that makes questions: matches of ``palaestra/Examiner-v0`` in groups, and its base weights.

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
import tyro

import palaestra_assets
from palaestra import registry
from palaestra.cli.progress_bar import Progress
from palaestra.core.run.simulation import Simulation
from palaestra.search.search_qa import Form
from palaestra_baselines.common.lm.losses import chosen, loss_mask, supervised_loss
from palaestra_baselines.common.lm.name_tokens import (
    ASK,
    ASKING,
    CONTEXT,
    FIRST_NAME,
    FIRST_RELATION,
    VOCABULARY,
    NameTokens,
)
from palaestra_baselines.common.lm.rollouts import Columns, Outcome, Rollout, converse, outcome_of
from palaestra_baselines.common.lm.tiny_model import TinyModel, model_of
from palaestra_baselines.common.policy_file import read_policy, save_policy
from palaestra_baselines.common.training import gradient_step

ID = "palaestra/Examiner-v0"
FILE = "weights/lm_examiner.safetensors"
FORM: Form = "tokens"
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
        hops: int64 ``[Q]``, relations that each question names, accepted or not; 0 where none was asked.
        right: int64 ``[Q]``, right answers of its n students.
    """

    examiner: Rollout
    students: Rollout | None
    lanes: torch.Tensor
    hops: torch.Tensor
    right: torch.Tensor


def make_examination(lanes: int, opponents: Any = None) -> tuple[Simulation, NameTokens]:
    """Lanes of the game that wait when their match is over, and what translates them."""
    sim = registry.make_batch(ID, lanes, autoreset_mode="off", opponents=opponents, form=FORM, examiner_turns=TURNS)
    return sim, NameTokens(sim.game)


def rows_of(sim: Simulation, role: str) -> np.ndarray:
    """Observations of the only agent of a role, ``[N, 127]``; a view, valid until the next step."""
    observations: Any = sim.observations
    return observations[role][:, 0]


@torch.no_grad()
def examine(
    examiner: Any, student: Any, sim: Simulation, tokens: NameTokens, seeds: np.ndarray, generator: torch.Generator
) -> Examination:
    """Plays Q groups of n matches.

    Args:
        examiner: Asks.
        student: Answers, in n lanes of each group.
        sim: ``Q * n`` lanes of the game, see `make_examination`.
        tokens: Translates.
        seeds: uint64 ``[Q]``.
        generator: Of the draws of tokens.
    """
    group, world = sim.num_envs // len(seeds), sim.game.world
    sim.reset(seed=np.repeat(seeds, group))
    nothing = np.zeros((sim.num_envs, 1, 17), np.int64)
    known = tokens.new_memory(len(seeds))

    def ask(words: torch.Tensor, alive: torch.Tensor) -> Outcome:
        actions = tokens.actions(words.numpy(), known, ASK).repeat(group, 0)[:, None]
        sim.step({"examiner": actions, "student": nothing}, lanes=alive.numpy().repeat(group))
        goes_on, labels = (values[::group] for values in outcome_of(sim))
        goes_on = goes_on & torch.from_numpy(sim.info["accepted"][::group] == 0)
        return (goes_on, labels), torch.from_numpy(tokens.passages(rows_of(sim, "examiner")[::group], known))

    prompts = torch.from_numpy(tokens.questions(rows_of(sim, "examiner")[::group], known))
    everyone = torch.ones(len(seeds), dtype=torch.bool)
    asked = converse(examiner, prompts, everyone, world.examiner_turns, ask, generator, most=ASKING)
    accepted = torch.from_numpy(sim.info["accepted"] == 1)
    posed = accepted[::group]
    of_examiner = asked[0].rollout(posed.float(), *asked[1:])
    hops = asked_hops(of_examiner)
    if not accepted.any():
        return Examination(of_examiner, None, accepted, hops, torch.zeros_like(hops))
    seconds = tokens.new_memory(sim.num_envs)

    def answer(words: torch.Tensor, alive: torch.Tensor) -> Outcome:
        actions = np.zeros_like(nothing[:, 0])
        actions[accepted] = tokens.actions(words.numpy(), seconds[accepted])
        lanes = np.zeros(sim.num_envs, np.bool_)
        lanes[accepted] = alive
        sim.step({"examiner": nothing, "student": actions[:, None]}, lanes=lanes)
        goes_on, labels = (values[accepted] for values in outcome_of(sim))
        return (goes_on, labels), torch.from_numpy(tokens.passages(rows_of(sim, "student"), seconds))[accepted]

    prompts = torch.from_numpy(tokens.questions(rows_of(sim, "student"), seconds))[accepted]
    everyone = torch.ones(len(prompts), dtype=torch.bool)
    columns, turns, labels = converse(student, prompts, everyone, world.max_turns, answer, generator)
    exact_match = torch.from_numpy(sim.info["exact_match"].astype(np.float32))
    right = (exact_match * accepted).view(-1, group).sum(1).long()
    return Examination(of_examiner, columns.rollout(exact_match[accepted], turns, labels), accepted, hops, right)


def asked_hops(examiner: Rollout) -> torch.Tensor:
    """Relations that the last turns of an examiner name, int64 ``[Q]``; 0 where they ask nothing."""
    is_last = examiner.turn == examiner.turn.max(1, keepdim=True).values
    asks = (is_last & (examiner.ids == ASK)).any(1)
    return (is_last & (examiner.ids >= FIRST_RELATION) & (examiner.ids < FIRST_NAME)).sum(1) * asks


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


def demonstrate(sim: Simulation, tokens: NameTokens, seeds: np.ndarray) -> Rollout:
    """Matches of the environment's script up to its questions; ``sim`` is made with it as the examiner's opponent."""
    sim.reset(seed=seeds)
    known, columns = tokens.new_memory(len(seeds)), Columns()
    columns.read(torch.from_numpy(tokens.questions(rows_of(sim, "examiner"), known)), retrieved=False)
    alive, turns = torch.ones(len(seeds), dtype=torch.bool), torch.zeros(len(seeds), dtype=torch.int64)
    for turn in range(sim.game.world.examiner_turns):
        sim.step(lanes=alive.numpy())
        actions: Any = sim.actions
        words = torch.from_numpy(tokens.turns_of(actions["examiner"][:, 0], ASK)).where(alive[:, None], 0)
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
    sim, tokens = make_examination(LANES, {"examiner": "oracle", "student": "closed_book"})
    model, rng = TinyModel(VOCABULARY, CONTEXT, seed), np.random.default_rng(seed)
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.95), fused=True)
    with Progress("steps", steps, title="examiner", quiet=quiet) as progress:
        for step in range(steps):
            rollout = demonstrate(sim, tokens, rng.integers(2**62, size=LANES, dtype=np.uint64))
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

    tyro.cli(command, args=argv, prog="python -m palaestra_baselines.common.lm.examination")


if __name__ == "__main__":
    main()
