"""Demonstrations with errors, from which weights are made to begin with.

Right ones come from the environment (`palaestra_baselines.common.lm.rollouts.demonstrate`).
"""

from __future__ import annotations

import numpy as np
import torch

from palaestra.core.contract.turn_tokens import BOS, END, PAD, TOLD, packed
from palaestra.games.mathtext.math_language import ANSWER as ANSWER_WORD
from palaestra.games.mathtext.math_language import CLOSE, MINUS, STEP, ZERO
from palaestra.games.search.library import TOP
from palaestra.games.search.name_tokens import (
    ANSWER,
    FIRST_NAME,
    FIRST_RELATION,
    PASSAGES,
    SEARCH,
    TURN,
    VOCABULARY,
)


class Demonstrator:
    """A script that plays SearchQA by what it reads; `palaestra_baselines.common.lm.rollouts.play` plays it as a model.

    It searches for the name and the first relation of the question, goes on with what the passages say, and answers
    with the last name. It may stop too early, or err in its searches.

    Where a prefix stands before the question it makes no errors, whatever the prefix tells
    (`palaestra_baselines.common.lm.privileged`): so a model that learns from it can do better with a prefix that tells
    more only if it has learnt to read it.
    """

    def __init__(self, seed: int, shortcut: float = 0.0, noise: float = 0.0) -> None:
        """Has read nothing.

        Args:
            seed: Of its errors.
            shortcut: Share of the matches in which it answers after the first hop.
            noise: Share of the hops after which it goes on, or answers, with a name drawn at random from those that it
                has read.
        """
        self.shortcut, self.noise = shortcut, noise
        self.rng = np.random.default_rng(seed)

    def start(self, prompts: torch.Tensor, columns: int = 0) -> None:
        """Reads questions int64 ``[N, P]``, see `palaestra.games.search.name_tokens`."""
        ids = prompts.numpy()
        self.told = (ids == TOLD).any(1)
        ids = np.where((ids == BOS).cumsum(1) > 0, ids, PAD)
        is_relation = (ids >= FIRST_RELATION) & (ids < FIRST_NAME)
        self.hops, self.relations = is_relation.sum(1), packed(np.where(is_relation, ids, PAD), ids.shape[1])
        self.names = np.where(ids >= FIRST_NAME, ids, PAD)
        self.name = self.names.max(1)
        self.searches = np.where((self.rng.random(len(ids)) < self.shortcut) & ~self.told, 1, self.hops)
        self._plan(0)

    def force(self, ids: torch.Tensor) -> None:
        """Reads tokens int64 ``[N, L]``: its own, one at a time, or the last one and passages."""
        if ids.shape[1] < PASSAGES:
            return
        facts = ids[:, -PASSAGES + 1 : -1].numpy().reshape(-1, TOP, 3)
        fits = (facts[..., 0] == self.name[:, None]) & (facts[..., 1] == self.relation[:, None])
        found = facts[np.arange(len(facts)), np.where(fits.any(1), fits.argmax(1), 0), 2]
        self.names = np.concatenate([self.names, np.where(facts >= FIRST_NAME, facts, PAD).reshape(len(facts), -1)], 1)
        keys = np.take_along_axis(self.rng.random((len(facts), VOCABULARY)), self.names, 1)  # of a name, not of a place
        other = np.where(self.names != PAD, keys, -1.0).argmax(1)
        drawn, errs = self.names[np.arange(len(facts)), other], self.rng.random(len(facts)) < self.noise
        errs &= ~self.told
        self.name = np.where(errs, drawn, np.where(found >= FIRST_NAME, found, self.name))
        self._plan(self.number + 1)

    def sample(self, generator: torch.Generator, temperature: float = 1.0) -> tuple[torch.Tensor, torch.Tensor]:
        """The next token of each lane's turn, int64 ``[N]``, and zeros."""
        ids, self.turn = torch.from_numpy(self.turn[:, 0].copy()), self.turn[:, 1:]
        return ids, torch.zeros(len(ids))

    def _plan(self, number: int) -> None:
        """Writes the turn of this number."""
        self.number, lanes = number, len(self.hops)
        answers = number >= self.searches
        hop = np.clip(self.hops - 1 - number, 0, None)  # the question says the last relation first
        self.relation = self.relations[np.arange(lanes), hop]
        ends = np.full(lanes, END)
        search = [np.full(lanes, SEARCH), self.name, self.relation, ends]
        answer = [np.full(lanes, ANSWER), self.name, ends, np.full(lanes, PAD)]
        self.turn = np.full((lanes, TURN), PAD)
        self.turn[:, : len(search)] = np.where(answers, answer, search).T


def with_sums(words: np.ndarray) -> np.ndarray:
    """Worked solutions of MathText-LeftToRight ``[N, L]`` with sums for products, and what follows from them."""
    words, lanes = words.copy(), np.arange(len(words))
    value = words[:, 0] - ZERO
    for start in range(0, words.shape[1] - STEP, STEP):
        sign, number, closing, next_word = (words[:, start + column] for column in (1, 2, STEP - 1, STEP))
        is_step = closing == CLOSE
        value = np.where(is_step, (value + np.where(sign == MINUS, -1, 1) * (number - ZERO)) % 10, value)
        for at in (np.full_like(lanes, start + 4), start + STEP + (next_word == ANSWER_WORD)):
            words[lanes, at] = np.where(is_step, ZERO + value, words[lanes, at])
    return words
