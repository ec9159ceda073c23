"""Base weights of the tiny model: supervised learning from demonstrations, in a minute or two.

    python -m palaestra_baselines.common.lm.base shortcut

writes ``lm_shortcut.safetensors`` and prints its exact match: sampled, at temperature 0.5, and greedy. A base whose
greedy answers are right already can only be sharpened, so methods are shown on bases whose greedy score is low.

* ``shortcut``: 95 % of the demonstrations answer after the first of two hops.
* ``early``: right demonstrations over three hops, of a retriever that does not rank what it finds: the best passage is
  the last of three more often than not. Stopped before it reads: where the environment shows the best passage first,
  it takes the wrong one, greedy or not. It has learnt to follow a path that it is told.
* ``noisy``: one to three hops, after each a wrong name with probability 0.6. Greedy answers are better than sampled
  ones.
* ``teacher``: right demonstrations over two hops, without a prefix; what `palaestra_baselines.opd` learns from. It is
  stopped while its probabilities are still those of a model that may err: sampled answers are right in 0.94.
* ``sums``: MathText-LeftToRight; nine in ten demonstrations add where they should multiply, and so does the model,
  greedy or not.
* ``worked``: MathText-LeftToRight, from right demonstrations.

A part of the demonstrations of each has a prefix that tells something of the answer, or nothing
(`palaestra_baselines.common.lm.privileged`). These are right, whatever the prefix tells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import tyro

from palaestra.cli.progress_bar import Progress
from palaestra.cli.typed_arguments import read_arguments
from palaestra.core.run.simulation import Simulation
from palaestra.game import Game
from palaestra.games.mathtext.math_rules import demonstrations as worked_solutions
from palaestra.games.search.library import TOP
from palaestra.games.search.name_tokens import CONTEXT, NameTokens
from palaestra_baselines.common.lm.demonstrations import Demonstrator, with_sums
from palaestra_baselines.common.lm.losses import chosen, loss_mask, supervised_loss
from palaestra_baselines.common.lm.privileged import FORMS, prefixes
from palaestra_baselines.common.lm.rollouts import (
    Rollout,
    demonstrate,
    longest_match,
    make_batch,
    measure_all,
    play,
)
from palaestra_baselines.common.lm.tiny_model import Base, TinyModel
from palaestra_baselines.common.policy_file import save_policy
from palaestra_baselines.common.training import gradient_step

PLAYED_BY = "grpo"
"""The method whose player plays a base."""
WARMUP = 20
"""Gradient steps over which the learning rate rises."""
QUESTIONS = 512


ARITH = "palaestra/MathText-LeftToRight-v0"


@dataclass(frozen=True)
class Recipe:
    """How a base is made.

    Attributes:
        env_id: Environment of the demonstrations.
        hops: Facts that their questions need, the fewest and the most; None for what the environment asks.
        shortcut: See `palaestra_baselines.common.lm.demonstrations.Demonstrator`.
        noise: Likewise; of MathText the share of solutions `with_sums`.
        told: Share of the demonstrations with a prefix, equal parts of each of
            `palaestra_baselines.common.lm.privileged.FORMS`.
        last: How often the best passage is surely shown last, and else passages in any order: a share. None shows
            them by rank, as the environment does.
        steps: Gradient steps.
        lanes: Demonstrations of a gradient step, each of a world of its own.
        learning_rate: Of Adam.
        max_gradient_norm: Longer gradients are clipped.
        seed: Of weights, worlds and errors.
    """

    env_id: str = "palaestra/SearchQA-3Hop-v1"
    hops: tuple[int, int] | None = None
    shortcut: float = 0.0
    noise: float = 0.0
    told: float = 0.8
    last: float | None = None
    steps: int = 300
    lanes: int = 64
    learning_rate: float = 2e-3
    max_gradient_norm: float = 1.0
    seed: int = 0


RECIPES = {
    "shortcut": Recipe("palaestra/SearchQA-2Hop-v1", shortcut=0.95, told=0.5, steps=700),
    "early": Recipe(last=0.4, steps=1000, learning_rate=3e-3),
    "noisy": Recipe(hops=(1, 3), noise=0.6, steps=900),
    "teacher": Recipe("palaestra/SearchQA-2Hop-v1", told=0.0, steps=130),
    "sums": Recipe(ARITH, noise=0.9, steps=1500, learning_rate=1e-3),
    "worked": Recipe(ARITH, steps=800),
}


class Unranked(NameTokens):
    """Tokens of a retriever that finds the same passages and does not rank them."""

    def __init__(self, game: Game, seed: int, last: float) -> None:
        """Takes the seed of the orders, and the share in which the best passage is surely the last one."""
        super().__init__(game)
        self.last = last
        self.rng = np.random.default_rng([seed, 1])

    def passages(self, observations: np.ndarray, seconds: np.ndarray) -> np.ndarray:
        """As `NameTokens.passages`, in any order."""
        tokens = super().passages(observations, seconds)
        keys = self.rng.random((len(tokens), TOP))
        keys[:, 0] += self.rng.random(len(tokens)) < self.last
        order = keys.argsort(1)
        facts = np.take_along_axis(tokens[:, 1:-1].reshape(len(tokens), TOP, -1), order[..., None], 1)
        return np.concatenate([tokens[:, :1], facts.reshape(len(tokens), -1), tokens[:, -1:]], 1)


class Demonstrations:
    """The demonstrations of a recipe."""

    def __init__(self, recipe: Recipe, sim: Simulation, tokens: Any) -> None:
        """Starts the script that errs."""
        self.recipe, self.sim, self.tokens = recipe, sim, tokens
        self.script = Demonstrator(recipe.seed, recipe.shortcut, recipe.noise)
        self.read = tokens if recipe.last is None else Unranked(sim.game, recipe.seed, recipe.last)
        self.errors = np.random.default_rng(recipe.seed)

    def play(self, seeds: np.ndarray, rng: np.random.Generator, generator: torch.Generator) -> Rollout:
        """Plays one in each lane, of matches uint64 ``[N]``; `rng` draws who has a prefix."""
        if type(self.tokens) is not NameTokens:  # no subclass: others have neither prefixes nor names to err with
            return demonstrate(self.sim, self.tokens, seeds, self._solutions if self.recipe.noise else None)
        forms = rng.integers(1, len(FORMS), len(seeds)) * (rng.random(len(seeds)) < self.recipe.told)
        prefix = partial(prefixes, tokens=self.tokens, forms=forms)
        return play(self.script, self.sim, self.read, seeds, generator, prefix=prefix)

    def _solutions(self, records: np.ndarray, number: int) -> np.ndarray:
        """Solutions of MathText, some with sums for products, as turns."""
        words = worked_solutions(records)
        is_wrong = self.errors.random((len(words), 1)) < self.recipe.noise
        return self.tokens.turns_of(np.where(is_wrong, with_sums(words), words))


def train_base(recipe: Recipe, quiet: bool = True) -> tuple[TinyModel, dict[str, float]]:
    """Trains a base.

    Args:
        recipe: How.
        quiet: Show no progress.

    Returns:
        The model, and its exact match by temperature.
    """
    torch.set_num_threads(1)
    sim, tokens = make_batch(recipe.env_id, recipe.lanes, **({"hops": recipe.hops} if recipe.hops else {}))
    model, rng = (
        TinyModel(tokens.vocabulary, max(CONTEXT, longest_match(tokens)), recipe.seed),
        np.random.default_rng(recipe.seed),
    )
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.95), fused=True)
    demonstrations, generator = Demonstrations(recipe, sim, tokens), torch.Generator()
    with Progress("steps", recipe.steps, title="base", quiet=quiet) as progress:
        for step in range(recipe.steps):
            seeds = rng.integers(2**62, size=recipe.lanes, dtype=np.uint64)
            rollout = demonstrations.play(seeds, rng, generator)
            mask = loss_mask(rollout)
            loss = supervised_loss(chosen(model.log_probs(rollout.ids, mask), rollout.ids, mask), mask)
            rate = recipe.learning_rate * min((step + 1) / WARMUP, 1.0)
            gradient_step(optimizer, loss, rate, recipe.max_gradient_norm)
            progress.update(step + 1, loss=float(loss.detach()))
    return model, measure_all(model, *make_batch(recipe.env_id, QUESTIONS))


def main(argv: Sequence[str] | None = None) -> None:
    """Trains a base, writes it and prints its exact match."""

    def command(name: Annotated[Base, tyro.conf.Positional], directory: Path = Path()):
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

    read_arguments(command, argv, "python -m palaestra_baselines.common.lm.base")


if __name__ == "__main__":
    main()
