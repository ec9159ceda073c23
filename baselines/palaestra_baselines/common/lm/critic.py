"""A critic: a language model that reads a finished match and the right answer, and says of each turn if it was of use.

It is a model of labelled matches: it has learnt to write ``TOLD answer``, the question, and each turn behind its label,
`GOOD` or `BAD`. A turn gets the label under which label and turn together are more probable, after what came before::

    label = argmax  log p(label | before) + log p(turn | label, before)

So it need not compare what a turn says with what was read, which a model of two layers hardly learns, but to tell what
a turn of use would say. It learns from matches of the demonstrator and of the bases, whose turns the environment
labels, and is frozen afterwards::

    python -m palaestra_baselines.common.lm.critic

writes ``lm_critic.safetensors`` and prints the share of turns that it labels as the environment does.

A model of Hugging Face is asked instead (`label_text_turns`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

import palaestra_assets
from palaestra.cli.progress_bar import Progress
from palaestra.cli.typed_arguments import read_arguments
from palaestra.core.contract.turn_tokens import BAD, GOOD, PAD, TOLD
from palaestra.core.files.model_loading import token_ids
from palaestra.core.run.simulation import Simulation
from palaestra.games.search.name_tokens import CONTEXT, VOCABULARY, NameTokens
from palaestra_baselines.common.lm.base import RECIPES
from palaestra_baselines.common.lm.demonstrations import Demonstrator
from palaestra_baselines.common.lm.hf_model import HFModel, TextTokens, padded
from palaestra_baselines.common.lm.losses import chosen, supervised_loss
from palaestra_baselines.common.lm.rollouts import EVALUATION_SEED, UNSAID, Rollout, make_batch, play
from palaestra_baselines.common.lm.tiny_model import TinyModel, load_base, model_of
from palaestra_baselines.common.policy_file import read_policy, save_policy
from palaestra_baselines.common.training import gradient_step

FILE = "weights/lm_critic.safetensors"
STEPS, LANES, LEARNING_RATE, WARMUP, MAX_GRADIENT_NORM = 1600, 96, 2e-3, 20, 1.0
BASES = ("shortcut", "early", "noisy")
"""Whose matches it learns to label."""
PLAYERS = ("noisy", "demonstrator", "noisy", "early", "noisy", "shortcut")
"""Whose matches are labelled, in turn: bases, each in its own environment, and the demonstrator in that of `noisy`."""
ASKED = "\n\nThe right answer is {}. Did the last turn help to find it? Say yes or no: "
"""What a model of Hugging Face is asked after each turn."""
NOISE = 0.5
"""Of the demonstrator whose matches are labelled, see `palaestra_baselines.common.lm.demonstrations.Demonstrator`."""


def told_answers(sim: Simulation, tokens: NameTokens) -> torch.Tensor:
    """What a critic is told of the matches of all lanes, int64 ``[N, 2]``: `TOLD` and the name of the answer."""
    facts, hops = tokens.facts(sim.states)
    answers = np.take_along_axis(facts[..., 2], hops - 1, 1)
    return torch.from_numpy(np.concatenate([np.full_like(answers, TOLD), answers], 1))


def labelled(rollout: Rollout, told: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The matches with a label before each turn.

    Args:
        rollout: N matches in columns, see `palaestra_baselines.common.lm.rollouts`.
        told: int64 ``[N, 2]``, see `told_answers`.
        labels: int64 ``[N, turns]``: 1, -1, or 0 for turns that were not played.

    Returns:
        Tokens int64 ``[N, T]``, and the turn that each label and each token of a turn belongs to, `UNSAID` elsewhere.
    """
    words = torch.where(labels > 0, GOOD, BAD).where(labels != 0, PAD)
    ids, turns, begin = [told], [torch.full_like(told, UNSAID)], 0
    for turn in range(labels.shape[1]):
        start = int((rollout.turn == turn).any(0).nonzero()[0])
        number = torch.full((len(words), 1), turn).where(labels[:, turn : turn + 1] != 0, UNSAID)
        ids += [rollout.ids[:, begin:start], words[:, turn : turn + 1]]
        turns += [rollout.turn[:, begin:start], number]
        begin = start
    return torch.cat([*ids, rollout.ids[:, begin:]], 1), torch.cat([*turns, rollout.turn[:, begin:]], 1)


@torch.no_grad()
def label_turns(critic: Any, rollout: Rollout, told: torch.Tensor) -> torch.Tensor:
    """The labels that a critic gives, int64 ``[N, most turns]``: 1 of use, -1 of no use, 0 after the end.

    Args:
        critic: A language model; `palaestra_baselines.common.lm.tiny_model` says what it can do.
        rollout: N matches.
        told: int64 ``[N, 2]``, see `told_answers`.
    """
    labels = torch.zeros_like(rollout.labels)
    for turn in range(labels.shape[1]):
        played, scores = rollout.turns > turn, list[torch.Tensor]()
        for label in (1, -1):
            labels[:, turn] = torch.where(played, label, 0)
            ids, turns = labelled(rollout, told, labels[:, : turn + 1])
            at = turns == turn
            scores.append(chosen(critic.log_probs(ids, at), ids, at).sum(1))
        labels[:, turn] = torch.where(scores[0] > scores[1], 1, -1).where(played, 0)
    return labels


@torch.no_grad()
def label_text_turns(critic: HFModel, rollout: Rollout, tokens: TextTokens) -> torch.Tensor:
    """As `label_turns`, of a model that reads each match up to the end of a turn and then `ASKED`.

    A turn is of use if ``yes`` is more probable than ``no``.

    Args:
        critic: The model.
        rollout: N matches.
        tokens: Of these matches, whose lanes have not started anew.

    Raises:
        ValueError: The environment does not tell its answers.
    """
    answers, device = tokens.told("answers", "SearchQA"), rollout.ids.device
    said = (token_ids(tokens.tokenizer, word, special=False) for word in ("yes", "no"))
    words = [torch.tensor(numbers).add(1).repeat(len(answers), 1).to(device) for numbers in said]
    labels, columns = torch.zeros_like(rollout.labels), torch.arange(rollout.ids.shape[1], device=device)
    for turn in range(int(rollout.turns.max())):
        end = torch.where(rollout.turn == turn, columns, -1).amax(1, keepdim=True)
        last = rollout.ids.gather(1, end.clamp(min=0))[:, 0].cpu().tolist()
        asked = padded([tokens.reply(ASKED.format(right[0]), k) for right, k in zip(answers, last, strict=True)])
        read = torch.cat([rollout.ids.where(columns <= end, PAD), torch.from_numpy(asked).to(device)], 1)
        scores = list[torch.Tensor]()
        for word in words:
            ids = torch.cat([read, word], 1)
            at = (torch.arange(ids.shape[1], device=device) >= read.shape[1]).expand_as(ids)
            scores.append(chosen(critic.log_probs(ids, at), ids, at).sum(1))
        labels[:, turn] = torch.where(scores[0] > scores[1], 1, -1).where(rollout.turns > turn, 0)
    return labels


def accuracy(labels: torch.Tensor, exact: torch.Tensor) -> float:
    """Share of the turns whose labels are the exact ones."""
    played = exact != 0
    return float((labels == exact)[played].float().mean())


def train_critic(steps: int = STEPS, seed: int = 0, quiet: bool = True) -> tuple[TinyModel, dict[str, float]]:
    """Trains a critic.

    Args:
        steps: Gradient steps.
        seed: Of worlds and draws.
        quiet: Show no progress.

    Returns:
        The model, and the share of turns that it labels rightly in matches of each base that it has not seen.
    """
    torch.set_num_threads(1)
    critic, rng = TinyModel(VOCABULARY, CONTEXT, seed), np.random.default_rng(seed)
    batches = {name: make_batch(RECIPES[name].env_id, LANES) for name in BASES}
    bases: dict[str, Any] = {name: load_base(name) for name in BASES}
    players = {**bases, "demonstrator": Demonstrator(seed, noise=NOISE)}
    places = {**batches, "demonstrator": batches["noisy"]}
    optimizer = torch.optim.Adam(critic.parameters(), betas=(0.9, 0.95), fused=True)
    generator = torch.Generator().manual_seed(seed)
    with Progress("steps", steps, title="critic", quiet=quiet) as progress:
        for step in range(steps):
            name = PLAYERS[step % len(PLAYERS)]
            rollout = play(players[name], *places[name], rng.integers(2**62, size=LANES, dtype=np.uint64), generator)
            ids, turns = labelled(rollout, told_answers(*places[name]), rollout.labels)
            mask = turns != UNSAID
            loss = supervised_loss(chosen(critic.log_probs(ids, mask), ids, mask), mask)
            rate = LEARNING_RATE * min((step + 1) / WARMUP, 1.0, 2.0 * (1.0 - step / steps))
            gradient_step(optimizer, loss, rate, MAX_GRADIENT_NORM)
            progress.update(step + 1, loss=float(loss.detach()))
    figures = dict[str, float]()
    for name, batch in batches.items():
        seeds = np.arange(EVALUATION_SEED, EVALUATION_SEED + LANES, dtype=np.uint64)
        rollout = play(bases[name], *batch, seeds, generator)
        figures[name] = accuracy(label_turns(critic, rollout, told_answers(*batch)), rollout.labels)
    return critic, figures


def load_critic() -> TinyModel:
    """The bundled critic."""
    return model_of(read_policy(palaestra_assets.path(FILE))[0])


def main(argv: Sequence[str] | None = None) -> None:
    """Trains the critic, writes it and prints its accuracy."""

    def command(directory: Path = Path()):
        """Trains the critic.

        Args:
            directory: Where the file goes.
        """
        critic, figures = train_critic(quiet=False)
        path, env_id = directory / Path(FILE).name, RECIPES["shortcut"].env_id
        save_policy(path, critic.arrays(), method="grpo", env_id=env_id, args={"steps": STEPS}, figures=figures)
        print(f"{path}: right labels {', '.join(f'{name} {value:.3f}' for name, value in figures.items())}")

    read_arguments(command, argv, "python -m palaestra_baselines.common.lm.critic")


if __name__ == "__main__":
    main()
