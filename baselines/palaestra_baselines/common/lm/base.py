"""Base weights of the tiny model: supervised learning from demonstrations, in a minute or two.

    python -m palaestra_baselines.common.lm.base shortcut

writes ``lm_shortcut.safetensors`` and prints its exact match: sampled, at temperature 0.5, and greedy. A base whose
greedy answers are right already can only be sharpened, so methods are shown on bases whose greedy score is low.

* ``shortcut``: 95 % of the demonstrations answer after the first of two hops.
* ``early``: right demonstrations over three hops; the last weights whose greedy score was at most 0.4.
* ``noisy``: three hops, after each a wrong name with probability 0.6. Sampled answers are poor, greedy ones right.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import torch
import tyro

import palaestra_assets
from palaestra.cli.progress_bar import Progress
from palaestra_baselines.common.lm.demonstrations import Demonstrator
from palaestra_baselines.common.lm.losses import chosen, loss_mask, supervised_loss
from palaestra_baselines.common.lm.name_tokens import CONTEXT, VOCABULARY
from palaestra_baselines.common.lm.rollouts import make_batch, measure_all, measure_exact_match, play
from palaestra_baselines.common.lm.tiny_model import TinyModel, model_of
from palaestra_baselines.common.policy_file import read_policy, save_policy
from palaestra_baselines.common.training import gradient_step

PLAYED_BY = "grpo"
"""The method whose player plays a base."""
WARMUP = 20
"""Gradient steps over which the learning rate rises."""
CHECK_EVERY = 5
"""Gradient steps between two looks at the greedy score, after the first quarter."""
QUESTIONS = 512


@dataclass(frozen=True)
class Recipe:
    """How a base is made.

    Attributes:
        env_id: Environment of the demonstrations.
        shortcut: See `palaestra_baselines.common.lm.demonstrations.Demonstrator`.
        noise: Likewise.
        steps: Gradient steps, at most.
        most_greedy: Greedy exact match that the base must not exceed.
        lanes: Demonstrations of a gradient step, each of a world of its own.
        learning_rate: Of Adam.
        max_gradient_norm: Longer gradients are clipped.
        seed: Of weights, worlds and errors.
    """

    env_id: str = "palaestra/SearchQA-3Hop-v0"
    shortcut: float = 0.0
    noise: float = 0.0
    steps: int = 400
    most_greedy: float = 1.0
    lanes: int = 64
    learning_rate: float = 2e-3
    max_gradient_norm: float = 1.0
    seed: int = 0


RECIPES = {
    "shortcut": Recipe("palaestra/SearchQA-2Hop-v0", shortcut=0.95, steps=300),
    "early": Recipe(most_greedy=0.4, lanes=32, learning_rate=4e-3),
    "noisy": Recipe(noise=0.6, steps=600),
}


def train_base(recipe: Recipe, quiet: bool = True) -> tuple[TinyModel, dict[str, float]]:
    """Trains a base.

    Args:
        recipe: How.
        quiet: Show no progress.

    Returns:
        The model, and its exact match by temperature.
    """
    torch.set_num_threads(1)
    sim, tokens = make_batch(recipe.env_id, recipe.lanes)
    questions, _ = make_batch(recipe.env_id, QUESTIONS)
    model, rng = TinyModel(VOCABULARY, CONTEXT, recipe.seed), np.random.default_rng(recipe.seed)
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.95), fused=True)
    script, generator = Demonstrator(recipe.seed, recipe.shortcut, recipe.noise), torch.Generator()
    kept = copy.deepcopy(model.state_dict())
    with Progress("steps", recipe.steps, title="base", quiet=quiet) as progress:
        for step in range(recipe.steps):
            seeds = rng.integers(2**62, size=recipe.lanes, dtype=np.uint64)
            rollout = play(script, sim, tokens, seeds, generator)
            mask = loss_mask(rollout)
            loss = supervised_loss(chosen(model.log_probs(rollout.ids, mask), rollout.ids, mask), mask)
            rate = recipe.learning_rate * min((step + 1) / WARMUP, 1.0)
            gradient_step(optimizer, loss, rate, recipe.max_gradient_norm)
            progress.update(step + 1, loss=float(loss.detach()))
            if recipe.most_greedy < 1.0 and step >= recipe.steps // 4 and (step + 1) % CHECK_EVERY == 0:
                if measure_exact_match(model, questions, tokens, temperature=0.0) > recipe.most_greedy:
                    model.load_state_dict(kept)
                    break
                kept = copy.deepcopy(model.state_dict())
    return model, measure_all(model, questions, tokens)


def base_file(name: str) -> Path:
    """The file of a base: a bundled one by its name, or any policy of a language model by its path."""
    return palaestra_assets.path(f"weights/lm_{name}.safetensors") if name in RECIPES else Path(name)


def load_base(name: str) -> TinyModel:
    """The model of `base_file`, with gradients.

    Raises:
        FileError: It is no saved policy.
        ValueError: It is one of another method.
    """
    return model_of(read_policy(base_file(name))[0]).requires_grad_(True)


def main(argv: Sequence[str] | None = None) -> None:
    """Trains a base, writes it and prints its exact match."""

    def command(name: Annotated[Literal["shortcut", "early", "noisy"], tyro.conf.Positional], directory: Path = Path()):
        """Trains base weights.

        Args:
            name: Which.
            directory: Where the file goes.
        """
        model, figures = train_base(RECIPES[name], quiet=False)
        path, recipe = directory / f"lm_{name}.safetensors", asdict(RECIPES[name])
        save_policy(
            path, model.arrays(), method=PLAYED_BY, env_id=recipe["env_id"], args=recipe, base=name, figures=figures
        )
        print(f"{path}: exact match {', '.join(f'{column} {value:.3f}' for column, value in figures.items())}")

    tyro.cli(command, args=argv, prog="python -m palaestra_baselines.common.lm.base")


if __name__ == "__main__":
    main()
