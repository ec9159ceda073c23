"""Records what tiny models say to each token of worked solutions, for ``recorded`` of ``palaestra/LLMEnsemble-v0``.

    python -m palaestra_baselines.common.lm.record experts.npz sums worked
    python -m palaestra_baselines.rlae --options recorded=experts.npz

A document is the first T tokens of the solution of a question of MathText-LeftToRight; the models read the question
and the right solution so far. Tokens have the numbers of `palaestra_baselines.common.lm.math_tokens`. All solutions
have four steps, or as many as T tokens need. 24 tokens are four steps without their answer, 27 are all.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import tyro

from palaestra import registry
from palaestra.cli import one_line
from palaestra.cli.progress_bar import Progress
from palaestra.cli.typed_arguments import read_arguments
from palaestra.core.contract.keywords import check_count
from palaestra.core.files import write_atomically
from palaestra.evaluation import evaluate
from palaestra.games.ensemble.ensemble_rules import MOST_EXPERTS
from palaestra.games.mathtext.math_language import DEFAULT_OPERATIONS, MOST_OPERATIONS, PLUS, STEP
from palaestra_baselines.common.lm.base import ARITH, load_base
from palaestra_baselines.common.lm.losses import loss_mask
from palaestra_baselines.common.lm.math_tokens import MathTokens, WorkedSolutions
from palaestra_baselines.common.lm.rollouts import check_fits, make_batch, play

ENSEMBLE = "palaestra/LLMEnsemble-v0"
DOMAINS = ("+", "-", "*", "answer")
"""Domains by their numbers: the operation of the worked step that a token belongs to, or none."""
MOST_DOCUMENTS = 100_000
BEHIND_STEPS = 3
"""Tokens behind the last step: two of the answer, and the end."""
LANES, MATCHES = 64, 1024
"""Documents that are read at once; matches of each script that measure a file."""


def record(names: Sequence[str], documents: int, tokens: int, seed: int = 0, quiet: bool = True) -> dict[str, Any]:
    """Records models.

    Args:
        names: K models, see `palaestra_baselines.common.lm.base.load_base`; 2 to 8.
        documents: C.
        tokens: T, tokens of a document.
        seed: Of the questions.
        quiet: Show no progress.

    Returns:
        ``probs`` float32 ``[C, T, K, V]``, ``right`` int32 ``[C, T]`` and ``domain`` int32 ``[C, T]``.

    Raises:
        ValueError: A number out of range, a model of other tokens, or a file that is no policy; names it.
    """
    check_count("the number of models", len(names), 2, MOST_EXPERTS)
    check_count("documents", documents, 1, MOST_DOCUMENTS)
    check_count("tokens of a document, spans * span_tokens,", tokens, 1, STEP * MOST_OPERATIONS + BEHIND_STEPS)
    operations = max(DEFAULT_OPERATIONS[1], (tokens - BEHIND_STEPS + STEP - 1) // STEP)
    sim, words = make_batch(ARITH, min(documents, LANES), operations=operations)
    assert isinstance(words, MathTokens)
    models, script = [load_base(name).requires_grad_(False) for name in names], WorkedSolutions(sim, words)
    for name, model in zip(names, models, strict=True):
        try:
            check_fits(model, words)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
    rng = np.random.default_rng(seed)
    probs = np.empty((documents, tokens, len(models), words.vocabulary), np.float32)
    solutions = np.empty((documents, STEP * operations + BEHIND_STEPS), np.int64)
    with Progress("documents", documents, title="record", quiet=quiet) as progress:
        for start in range(0, documents, LANES):
            end, seeds = min(start + LANES, documents), rng.integers(2**62, size=sim.num_envs, dtype=np.uint64)
            rollout = play(script, sim, words, seeds, torch.Generator())
            mask = loss_mask(rollout)
            solutions[start:end] = rollout.ids[mask].view(sim.num_envs, -1)[: end - start]
            mask &= mask.cumsum(1) <= tokens
            for k, model in enumerate(models):
                distributions = model.log_probs(rollout.ids, mask).exp().view(sim.num_envs, tokens, -1)
                probs[start:end, :, k] = distributions[: end - start]
            progress.update(end)
    starts = np.arange(tokens) // STEP * STEP
    signs = np.take(words.word_of[solutions], starts + 1, axis=1) - PLUS
    domain = np.where(starts < STEP * operations, signs, DOMAINS.index("answer"))
    return {"probs": probs, "right": solutions[:, :tokens].astype(np.int32, "C"), "domain": domain.astype(np.int32)}


def main(argv: Sequence[str] | None = None) -> None:
    """Records models, writes the file and prints the shares of right tokens."""

    def command(
        out: Annotated[Path, tyro.conf.Positional],
        names: Annotated[tuple[str, ...], tyro.conf.Positional],
        documents: int = 512,
        spans: int = 6,
        span_tokens: int = 4,
        seed: int = 0,
        overwrite: bool = False,
    ):
        """Records what language models say to each token of worked solutions of MathText-LeftToRight.

        Args:
            out: The file.
            names: Models: sums, worked, or files of policies of the same tokens. 2 to 8.
            documents: Solutions.
            spans: Spans of a match, for LLMEnsemble.
            span_tokens: Tokens of a span; a document has spans * span_tokens tokens.
            seed: Of the questions.
            overwrite: Replace a file that exists.
        """
        if out.exists() and not overwrite:
            raise FileExistsError(f"{out} exists: --overwrite replaces it, another name keeps both")
        sizes: dict[str, Any] = {"spans": spans, "span_tokens": span_tokens}
        registry.make_game(ENSEMBLE, **sizes)
        arrays = record(names, documents, spans * span_tokens, seed, quiet=False)
        write_atomically(out, lambda file: np.savez(file, **arrays))
        shares = (arrays["probs"].argmax(3) == arrays["right"][..., None]).mean((0, 1))
        for name, share in zip(names, shares, strict=True):
            print(f"{name}: {share:.3f} of the tokens right")
        for script in ("uniform", "oracle"):
            table = evaluate(ENSEMBLE, script, matches=MATCHES, num_envs=MATCHES, recorded=str(out), **sizes)
            print(f"{script}: {table.mean_return:.3f}")

    try:
        read_arguments(command, argv, "python -m palaestra_baselines.common.lm.record")
    except (ValueError, OSError) as error:
        raise SystemExit(f"record: {one_line(error)}") from error


if __name__ == "__main__":
    main()
