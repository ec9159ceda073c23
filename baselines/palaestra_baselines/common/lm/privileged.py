"""What a model may be told of a question beforehand: a prefix, read before the question.

    path       TOLD  name relation name relation ... name    all facts that answer the question
    partial    likewise without the last fact
    answer     TOLD  name                                    of the answer alone
    dot        TOLD                                          tells nothing, but that there is a prefix
    none       no prefix

Dots fill prefixes up to one length, so that all that comes after them stands at the same positions. ``dot`` is the
control: what a model does better with the path than with the dot, it does by what the path says.

A model of Hugging Face reads the same in words, behind the question (`told_text`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import torch

from palaestra.core.contract.turn_tokens import DOT, PAD, TOLD, packed
from palaestra.core.run.simulation import Simulation
from palaestra_baselines.common.lm.hf_model import padded

Privileged = Literal["none", "path", "partial", "answer", "dot"]
FORMS: tuple[Privileged, ...] = ("none", "path", "partial", "answer", "dot")
NONE, PATH, PARTIAL, ANSWER, _ = range(len(FORMS))


def prefixes(sim: Simulation, tokens: Any, forms: np.ndarray) -> torch.Tensor:
    """The prefixes of the questions of all lanes.

    Args:
        sim: N matches of `palaestra.games.search.search_qa`.
        tokens: Their `palaestra.games.search.name_tokens.NameTokens`.
        forms: int64 ``[N]``, numbers of `FORMS`.

    Returns:
        int64 ``[N, 2 * most hops + 2]``, paddings alone where there is none.
    """
    facts, hops = tokens.facts(sim.states)
    most = facts.shape[1]
    forms, hop = forms[:, None], np.arange(most)
    tells = hop < hops - (forms == PARTIAL)
    tells &= (forms == PATH) | (forms == PARTIAL)
    told = np.where(tells[..., None], facts, PAD)
    told[:, 1:, 0] = PAD  # the subject of each further fact is the object of the one before
    answer = np.take_along_axis(facts[..., 2], hops - 1, 1)
    answers = np.where(forms == ANSWER, answer, PAD)
    row = packed(np.concatenate([np.full_like(forms, TOLD), told.reshape(len(told), -1), answers], 1), 2 * most + 2)
    return torch.from_numpy(np.where(forms == NONE, PAD, np.where(row == PAD, DOT, row)))


def told_text(form: Privileged, path: Sequence[Sequence[str]], answers: Sequence[str]) -> str:
    """What a model that reads text is told.

    Args:
        form: What of it.
        path: Subject, relation and object of each fact, or its title alone, as in ``info["path"]``.
        answers: The right ones, the first of which is told.
    """
    if form == "none":
        return ""
    if form == "answer":
        return f"Answer: {answers[0]}\n"
    facts = {"path": path, "partial": path[:-1], "dot": ()}[form]
    return f"Facts: {'; '.join(' - '.join(fact) for fact in facts) or '.'}\n"


def told_prompts(tokens: Any, form: Privileged) -> torch.Tensor:
    """The prompts of a teacher who reads more behind the questions of all lanes, int64 ``[N, L]``.

    Args:
        tokens: A `palaestra_baselines.common.lm.hf_model.TextTokens` of lanes that have begun.
        form: What it is told.

    Raises:
        ValueError: The environment does not tell its paths.
    """
    paths, answers = tokens.told("path", "SearchQA"), tokens.told("answers", "SearchQA")
    more = (told_text(form, *both) for both in zip(paths, answers, strict=True))
    asked = [tokens.prompt(text + told) for text, told in zip(tokens.asked, more, strict=True)]
    return torch.from_numpy(padded(asked))
